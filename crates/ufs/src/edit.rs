//! Changing an image file so that nothing of it can be lost.

use crate::ImageError;
use device::store::{FileStore, Overlay, StoreError, copy_sparse};
use posix::output::Output;
use rustix::fs::{FlockOperation, Gid, Uid};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// How an image is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edit {
    /// In a copy beside it, which takes its place when it is complete, checked and on the disk. Whatever goes wrong
    /// before that, the image is as it was. Needs room for the copy, unless the file system shares blocks between
    /// files.
    #[default]
    Copy,
    /// Where it is: for block devices, and images too large to copy. What goes wrong leaves a file system marked as in
    /// use, with whatever was there before.
    InPlace,
}

/// Changes the image `path`. `change` gets the image or a copy of it, and gives it back with its result; `check` says
/// what is wrong with a copy before it takes the image's place. Block devices are always changed in place. While this
/// goes on nobody else can do the same.
pub fn edit<T, E: ImageError + From<StoreError>>(
    path: &Path,
    how: Edit,
    change: impl FnOnce(FileStore) -> Result<(FileStore, T), E>,
    check: impl FnOnce(Overlay<&mut FileStore>) -> Result<Option<String>, E>,
) -> Result<T, E> {
    let path = path.canonicalize().map_err(host::<E>(path, "open it"))?;
    let original =
        OpenOptions::new().read(true).write(true).open(&path).map_err(host::<E>(&path, "open it for writing"))?;
    let meta = original.metadata().map_err(host::<E>(&path, "read its attributes"))?;
    // Whoever waited for another edit to end would hold the image that it has replaced.
    let _lock = Lock::take(&original).map_err(host::<E>(&path, "lock it: something else is writing to it"))?;
    let now = path.metadata().map_err(host::<E>(&path, "read its attributes"))?;
    if (now.dev(), now.ino()) != (meta.dev(), meta.ino()) {
        return Err(host::<E>(&path, "lock it: something else has just written to it")(
            io::ErrorKind::ResourceBusy.into(),
        ));
    }
    if how == Edit::InPlace || meta.file_type().is_block_device() {
        let (store, result) = change(store_of::<E>(original, &path)?)?;
        store.into_file().sync_all().map_err(host::<E>(&path, "write it"))?;
        return Ok(result);
    }
    let copy = Copy::beside::<E>(&path)?;
    copy.fill::<E>(&original, &path)?;
    let (mut store, result) = change(store_of::<E>(copy.open::<E>()?, copy.output.temporary())?)?;
    if let Some(problem) = check(Overlay::new(&mut store))? {
        let problem = format!("what was written to a copy is not sound ({problem}); it is as it was");
        return Err(E::not_writable(problem));
    }
    let file = store.into_file();
    // Owners first: changing them takes set-id bits away. Whose image it is matters less than that it is there.
    let _ = rustix::fs::fchown(&file, Some(Uid::from_raw(meta.uid())), Some(Gid::from_raw(meta.gid())));
    let mode = std::fs::Permissions::from_mode(meta.mode() & 0o7777);
    file.set_permissions(mode).map_err(host::<E>(copy.output.temporary(), "set its mode"))?;
    file.sync_all().map_err(host::<E>(copy.output.temporary(), "write it"))?;
    copy.replace::<E>(&path)?;
    Ok(result)
}

/// An exclusive lock on an open image, against mounts of ours, edits and repairs. Closing the file is not enough to end
/// it: a process that another thread has just forked holds the same open file until it executes its program.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Takes it; `WouldBlock` if somebody else has it.
    pub fn take(image: &File) -> io::Result<Lock> {
        let image = image.try_clone()?;
        rustix::fs::flock(&image, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Lock(image))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // It can only fail where there is no lock any more.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

fn store_of<E: ImageError>(file: File, path: &Path) -> Result<FileStore, E> {
    FileStore::new(file).map_err(host::<E>(path, "find its size"))
}

/// A copy that is removed unless it takes the image's place.
struct Copy {
    output: Output,
    file: File,
}

impl Copy {
    fn beside<E: ImageError>(image: &Path) -> Result<Copy, E> {
        let made = Output::create(image, 0o600).map_err(host::<E>(image, "make a copy beside it"));
        made.map(|(output, file)| Copy { output, file })
    }

    fn open<E: ImageError>(&self) -> Result<File, E> {
        self.file.try_clone().map_err(host::<E>(self.output.temporary(), "open it"))
    }

    /// Shares the blocks of the image where the file system can; otherwise copies what is not zeros.
    fn fill<E: ImageError + From<StoreError>>(&self, original: &File, path: &Path) -> Result<(), E> {
        if rustix::fs::ioctl_ficlone(&self.file, original).is_ok() {
            return Ok(());
        }
        let again = original.try_clone().map_err(host::<E>(path, "open it"))?;
        Ok(copy_sparse(&store_of::<E>(again, path)?, &self.file)?)
    }

    fn replace<E: ImageError>(self, image: &Path) -> Result<(), E> {
        self.output.finish().map_err(host::<E>(image, "replace it"))?;
        // The name is on the disk when the directory is.
        let directory = image.parent().map(File::open).transpose().map_err(host::<E>(image, "open its directory"))?;
        directory.map_or(Ok(()), |directory| directory.sync_all()).map_err(host::<E>(image, "write its directory"))
    }
}

fn host<E: ImageError>(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> E {
    let path = path.display().to_string();
    move |source| E::host(path, doing, source)
}
