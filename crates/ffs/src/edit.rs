//! Changing an image file so that nothing of it can be lost.

use crate::{FfsError, FileStore, Overlay, copy_sparse, fsck};
use rustix::fs::{FlockOperation, Gid, Uid};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// How an image is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edit {
    /// In a copy beside it, which takes its place when it is complete, checked and on the disk. Whatever goes wrong before that,
    /// the image is as it was. Needs room for the copy, unless the file system shares blocks between files.
    #[default]
    Copy,
    /// Where it is: for block devices, and images too large to copy. What goes wrong leaves a file system marked as in use,
    /// with whatever was there before.
    InPlace,
}

/// Changes the image `path`. `change` gets the image or a copy of it, and gives it back with its result. Block devices are always
/// changed in place. While this goes on nobody else can do the same.
pub fn edit<T>(
    path: &Path,
    how: Edit,
    change: impl FnOnce(FileStore) -> Result<(FileStore, T), FfsError>,
) -> Result<T, FfsError> {
    let path = path.canonicalize().map_err(host(path, "open it"))?;
    let original = OpenOptions::new().read(true).write(true).open(&path).map_err(host(&path, "open it for writing"))?;
    let meta = original.metadata().map_err(host(&path, "read its attributes"))?;
    // Whoever waited for another edit to end would hold the image that it has replaced.
    rustix::fs::flock(&original, FlockOperation::NonBlockingLockExclusive)
        .map_err(|errno| host(&path, "lock it: something else is writing to it")(errno.into()))?;
    let now = path.metadata().map_err(host(&path, "read its attributes"))?;
    if (now.dev(), now.ino()) != (meta.dev(), meta.ino()) {
        return Err(host(&path, "lock it: something else has just written to it")(io::ErrorKind::ResourceBusy.into()));
    }
    if how == Edit::InPlace || meta.file_type().is_block_device() {
        let (store, result) = change(store_of(original, &path)?)?;
        store.into_file().sync_all().map_err(host(&path, "write it"))?;
        return Ok(result);
    }
    let copy = Copy::beside(&path)?;
    copy.fill(&original, &path)?;
    let (mut store, result) = change(store_of(copy.open()?, &copy.path)?)?;
    let report = fsck(Overlay::new(&mut store), &mut |_| true)?;
    if let Some(problem) = report.problems.first() {
        let message = format!("what was written to a copy is not sound ({}); it is as it was", problem.message);
        return Err(FfsError::NotWritable(message));
    }
    let file = store.into_file();
    // Owners first: changing them takes set-id bits away. Whose image it is matters less than that it is there.
    let _ = rustix::fs::fchown(&file, Some(Uid::from_raw(meta.uid())), Some(Gid::from_raw(meta.gid())));
    let mode = std::fs::Permissions::from_mode(meta.mode() & 0o7777);
    file.set_permissions(mode).map_err(host(&copy.path, "set its mode"))?;
    file.sync_all().map_err(host(&copy.path, "write it"))?;
    copy.replace(&path)?;
    Ok(result)
}

fn store_of(file: File, path: &Path) -> Result<FileStore, FfsError> {
    FileStore::new(file).map_err(host(path, "find its size"))
}

/// A file that is removed unless it takes an image's place.
struct Copy {
    path: PathBuf,
    done: bool,
}

impl Copy {
    fn beside(image: &Path) -> Result<Copy, FfsError> {
        let name = image.file_name().unwrap_or_default().to_string_lossy();
        let path = image.with_file_name(format!(".{name}.fsage-{}", std::process::id()));
        File::create_new(&path).map_err(host(&path, "make a copy of the image"))?;
        Ok(Copy { path, done: false })
    }

    fn open(&self) -> Result<File, FfsError> {
        let file = OpenOptions::new().read(true).write(true).open(&self.path);
        file.map_err(host(&self.path, "open it"))
    }

    /// Shares the blocks of the image where the file system can; otherwise copies what is not zeros.
    fn fill(&self, original: &File, path: &Path) -> Result<(), FfsError> {
        let file = self.open()?;
        if rustix::fs::ioctl_ficlone(&file, original).is_ok() {
            return Ok(());
        }
        let again = original.try_clone().map_err(host(path, "open it"))?;
        Ok(copy_sparse(&store_of(again, path)?, &file)?)
    }

    fn replace(mut self, image: &Path) -> Result<(), FfsError> {
        std::fs::rename(&self.path, image).map_err(host(image, "replace it"))?;
        self.done = true;
        // The name is on the disk when the directory is.
        let directory = image.parent().map(File::open).transpose().map_err(host(image, "open its directory"))?;
        directory.map_or(Ok(()), |directory| directory.sync_all()).map_err(host(image, "write its directory"))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if !self.done {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn host(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> FfsError {
    let path = path.display().to_string();
    move |source| FfsError::Host { path, doing, source }
}
