//! A target made ready for one run: a private directory in it, and the promise to leave nothing behind.

use crate::cleanup::{self, Entry, Kept};
use crate::mounted::{Origin, usage};
use crate::scratch::Scratch;
use crate::{Mounted, SetupError, Target, interrupt};
use rustix::fs::{self, OFlags};
use std::io;
use std::path::{Path, PathBuf};

/// What a run wants of its target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceOptions {
    /// Leave the private directory (and the scratch file system, mounted) where it is, also if the process is killed.
    pub keep: bool,
    /// Of a scratch target: where its image is to be, new or as an earlier workspace left it. It stays there,
    /// unmounted, however the process ends, and `keep` is not needed.
    pub image: Option<Image>,
    /// Write a new scratch target's image out before the file system is made: for comparing a fresh file system with a
    /// used one.
    pub written: bool,
    /// Space the run will use; opening fails if the target has less, with a margin of a sixteenth.
    pub need_bytes: u64,
    /// Files and directories the run will make at the same time.
    pub need_inodes: u64,
}

/// The image of a scratch target that outlives its workspace. The private directory in it is called
/// [`Image::DIRECTORY`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// A new file.
    New(PathBuf),
    /// A file that an earlier workspace made.
    Old(PathBuf),
}

impl Image {
    /// The private directory's name.
    pub const DIRECTORY: &str = "fsage-aged";

    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Image::New(path) | Image::Old(path) => path,
        }
    }
}

/// A private directory `fsage-<16 hex>` in a target, removed with everything in it when this is dropped. On ext4 the
/// work is in one of the same kind of name within it, apart from what was there before ([`Workspace::spread`]).
///
/// Drop the handles given out by [`fs`](Workspace::fs) first: a scratch file system goes away with the last of
/// them.
#[derive(Debug)]
pub struct Workspace {
    target: Target,
    path: PathBuf,
    keep: bool,
    /// That it is kept, once it is ready.
    kept: Option<Kept>,
    // The order matters: handles, then the directory, then what it lies on.
    mounted: Option<Mounted>,
    directory: Option<Entry>,
    scratch: Option<Scratch>,
}

impl Workspace {
    /// Makes the target ready: for a scratch target an image, mkfs and mount; then the private directory.
    pub fn open(target: &Target, options: &WorkspaceOptions) -> Result<Workspace, SetupError> {
        match target {
            Target::Lab(text) => Err(SetupError::Laboratory(text.clone())),
            Target::Directory(path) => Workspace::in_directory(target, path, options),
            Target::Scratch(spec) => {
                let scratch = Scratch::make(spec, options.keep, options.image.as_ref(), options.written)?;
                Workspace::on_scratch(target, scratch, options)
            }
        }
    }

    fn in_directory(target: &Target, parent: &Path, options: &WorkspaceOptions) -> Result<Workspace, SetupError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = fs::open(parent, flags, fs::Mode::empty());
        let root = opened.map_err(|e| SetupError::from_io(parent, "open the target", e.into()))?;
        check_room(parent, &root, options)?;
        let made = cleanup::private_directory(parent);
        let (path, directory) = made.map_err(|source| match source.kind() {
            // The target itself was there a moment ago: it is of a kind that holds no directories, or vanished.
            io::ErrorKind::NotFound => {
                SetupError::Io { path: parent.to_path_buf(), doing: "make a private directory", source }
            }
            _ => SetupError::from_io(parent, "make a private directory", source),
        })?;
        // What is kept has one directory, for whoever looks at it.
        let path = if options.keep {
            path
        } else {
            elsewhere(&path).map_err(|e| SetupError::from_io(&path, "make a private directory", e))?
        };
        let origin = Origin { target: target.to_string(), ..Origin::default() };
        let mounted = Mounted::open_described(&path, origin);
        let mounted = mounted.map_err(|e| SetupError::from_io(&path, "open the private directory", e))?;
        let workspace = Workspace {
            target: target.clone(),
            path,
            keep: options.keep,
            kept: None,
            mounted: Some(mounted),
            directory: Some(directory),
            scratch: None,
        };
        workspace.ready()
    }

    /// Takes up the private directory that an earlier workspace on a directory has kept; it is kept again.
    ///
    /// # Errors
    /// [`SetupError`] where it is not there, or is none of ours.
    pub fn reopen(target: &Target, path: &Path) -> Result<Workspace, SetupError> {
        if !cleanup::is_private_name(path) {
            return Err(SetupError::Missing { path: path.to_path_buf() });
        }
        let origin = Origin { target: target.to_string(), ..Origin::default() };
        let mounted = Mounted::open_described(path, origin);
        let mounted = mounted.map_err(|e| SetupError::from_io(path, "open the private directory", e))?;
        let workspace = Workspace {
            target: target.clone(),
            path: path.to_path_buf(),
            keep: true,
            kept: None,
            mounted: Some(mounted),
            directory: None,
            scratch: None,
        };
        workspace.ready()
    }

    fn on_scratch(target: &Target, scratch: Scratch, options: &WorkspaceOptions) -> Result<Workspace, SetupError> {
        let trouble =
            |doing: &'static str| move |e: io::Error| SetupError::from_io(Path::new(&target.to_string()), doing, e);
        check_room(Path::new(&target.to_string()), scratch.root(), options)?;
        let name = match options.image {
            Some(_) => Image::DIRECTORY.to_string(),
            None => cleanup::private_name().map_err(trouble("find a random name"))?,
        };
        if !matches!(options.image, Some(Image::Old(_))) {
            let made = fs::mkdirat(scratch.root(), name.as_str(), fs::Mode::RWXU);
            made.map_err(|e| trouble("make a private directory")(e.into()))?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = fs::openat(scratch.root(), name.as_str(), flags, fs::Mode::empty());
        let root = root.map_err(|e| trouble("open the private directory")(e.into()))?;
        let path = match scratch.mount_point() {
            Some(point) => point.join(&name),
            None => PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&root))),
        };
        let mounted = Mounted::rooted(root, path.clone(), scratch.origin(target.to_string()));
        let mounted = mounted.map_err(trouble("open the private directory"))?;
        let workspace = Workspace {
            target: target.clone(),
            path,
            keep: options.keep,
            kept: None,
            mounted: Some(mounted),
            directory: None,
            scratch: Some(scratch),
        };
        workspace.ready()
    }

    /// Setting up can take a while: a signal in the meantime ends it here.
    fn ready(mut self) -> Result<Workspace, SetupError> {
        if interrupt::requested() {
            // Nothing is in it yet that could be kept.
            self.keep = false;
            return Err(SetupError::Interrupted);
        }
        if let Some(scratch) = &mut self.scratch {
            let named = scratch.take_its_name();
            named
                .map_err(|e| SetupError::from_io(Path::new(&self.target.to_string()), "give the image its name", e))?;
        }
        // What is to be kept must not be swept up by a later run, should this one be killed.
        if self.keep {
            self.kept = Some(Kept::new(&self.path));
            if let Some(directory) = self.directory.take() {
                directory.forget();
            }
            if let Some(scratch) = &mut self.scratch {
                scratch.stays();
            }
        }
        Ok(self)
    }

    /// A handle rooted in the private directory.
    pub fn fs(&self) -> Mounted {
        match &self.mounted {
            Some(mounted) => mounted.clone(),
            None => unreachable!("only `finish` takes the handle, and it owns or drops the workspace"),
        }
    }

    /// A handle rooted in a directory below the private one, made if it is missing.
    pub fn subdir(&self, path: impl AsRef<Path>) -> io::Result<Mounted> {
        self.fs().subdir(path)
    }

    /// The image of a scratch target, open; good beyond the workspace's end, when the file system in it is unmounted.
    pub fn image(&self) -> io::Result<Option<std::fs::File>> {
        self.scratch.as_ref().map(Scratch::image).transpose()
    }

    /// Asks ext4 to spread the subdirectories of a directory below the private one over its groups, as it does those of
    /// a root directory (`chattr +T`). Others spread them by themselves, or have no such thing.
    pub fn spread(&self, below: impl AsRef<Path>) {
        spread(&self.path.join(below));
    }

    /// The target this is on.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Where the private directory is. A scratch file system that is not kept is attached nowhere: its path
    /// (`/proc/self/fd/N`) is good in this process only, and while this lives.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the work is after the end, if it was to be kept.
    pub fn kept(&self) -> Option<&Path> {
        self.keep.then_some(self.path.as_path())
    }

    /// Removes everything, and reports what dropping would have to swallow. With `keep`, leaves it.
    pub fn close(mut self) -> io::Result<()> {
        self.finish()?;
        // Whoever closes it names it.
        if let Some(kept) = self.kept.take() {
            kept.told();
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        cleanup::stand_aside();
        let Some(mounted) = self.mounted.take() else { return Ok(()) };
        let vanished = self.directory.is_some() && !self.keep && mounted.has_moved_away(&self.path);
        drop(mounted);
        let directory = self.directory.take();
        let scratch = self.scratch.take();
        if self.keep {
            return Ok(());
        }
        let mut removed = directory.map_or(Ok(()), Entry::remove);
        if vanished && removed.is_ok() {
            let message = format!(
                "{}: the target is no longer there, and the private directory went with it",
                self.path.display()
            );
            removed = Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        removed.and(scratch.map_or(Ok(()), Scratch::close))
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if let Err(error) = self.finish() {
            crate::notice::tell(&format!("cannot clean up target '{}': {error}", self.target));
        }
    }
}

/// Whether the subdirectories of a directory will be spread.
fn spread(directory: &Path) -> bool {
    let set = || -> rustix::io::Result<()> {
        let handle = fs::open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, fs::Mode::empty())?;
        fs::ioctl_setflags(&handle, fs::ioctl_getflags(&handle)? | fs::IFlags::TOPDIR)
    };
    set().is_ok()
}

/// A directory for the work in a private one: where that can be, in another part of the disk than what was there
/// before.
///
/// ext4 without a journal passes over every inode that was removed in the last minutes. Where an earlier run of ours
/// has just removed its thousands, making a file takes up to fifty times as long, and one run does not tell what the
/// next takes.
fn elsewhere(private: &Path) -> io::Result<PathBuf> {
    if !spread(private) {
        return Ok(private.to_path_buf());
    }
    // ext4 chooses the group by the name.
    let path = private.join(cleanup::private_name()?);
    fs::mkdir(&path, fs::Mode::RWXU)?;
    Ok(path)
}

/// Whether a file system has the room that a run needs, and a margin for its metadata.
fn check_room(path: &Path, root: &std::os::fd::OwnedFd, options: &WorkspaceOptions) -> Result<(), SetupError> {
    let room = usage(root).map_err(|e| SetupError::from_io(path, "look at the free space", e))?;
    let margin = |need: u64| need.saturating_add(need / 16);
    if margin(options.need_bytes) > room.available_bytes {
        let (need_bytes, free_bytes) = (margin(options.need_bytes), room.available_bytes);
        return Err(SetupError::NoSpace { path: path.to_path_buf(), need_bytes, free_bytes });
    }
    // File systems that make inodes on demand say 0 of 0.
    if room.total_inodes > 0 && margin(options.need_inodes) > room.free_inodes {
        let (need, free) = (margin(options.need_inodes), room.free_inodes);
        return Err(SetupError::NoInodes { path: path.to_path_buf(), need, free });
    }
    Ok(())
}
