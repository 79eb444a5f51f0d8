//! A target that has been made ready, whatever kind it is of.

use crate::{FileSystem, Target, Workspace};
use std::io;
use std::path::{Component, Path, PathBuf};

/// A target made ready for one run: handles on a directory of the run's own, and the promise to leave nothing behind.
///
/// Drop the handles before closing it.
pub trait Site {
    /// The target this is on.
    fn target(&self) -> &Target;

    /// A handle rooted in the run's own directory.
    fn handle(&self) -> Box<dyn FileSystem>;

    /// A handle rooted in a directory below that, made with its parents if it is missing.
    ///
    /// # Errors
    /// It cannot be made, or the path leads above the root.
    fn handle_below(&self, path: &Path) -> io::Result<Box<dyn FileSystem>>;

    /// Where the run's own directory is, as the file system's own path walk knows it.
    fn root_path(&self) -> &Path;

    /// Where the work is after the end, if it is to be kept.
    fn kept(&self) -> Option<&Path>;

    /// Removes everything, and reports what dropping would have to swallow. What is to be kept is kept.
    ///
    /// # Errors
    /// Something could not be removed, or not be kept.
    fn close(self: Box<Self>) -> io::Result<()>;

    /// The workspace, if this is one: for what only a mounted file system has.
    fn workspace(&self) -> Option<&Workspace> {
        None
    }
}

/// The directories on the way to one below a root, itself last.
///
/// # Errors
/// The path leads upward.
pub fn way_below(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut way: Vec<PathBuf> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => {
                way.push(way.last().map_or_else(|| PathBuf::from(name), |above| above.join(name)))
            }
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                let message = format!("{}: a directory below the target must not contain '..'", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
        }
    }
    Ok(way)
}

impl Site for Workspace {
    fn target(&self) -> &Target {
        Workspace::target(self)
    }
    fn handle(&self) -> Box<dyn FileSystem> {
        Box::new(self.fs())
    }
    fn handle_below(&self, path: &Path) -> io::Result<Box<dyn FileSystem>> {
        Ok(Box::new(self.subdir(path)?))
    }
    fn root_path(&self) -> &Path {
        self.path()
    }
    fn kept(&self) -> Option<&Path> {
        Workspace::kept(self)
    }
    fn close(self: Box<Self>) -> io::Result<()> {
        Workspace::close(*self)
    }
    fn workspace(&self) -> Option<&Workspace> {
        Some(self)
    }
}
