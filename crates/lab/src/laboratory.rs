//! A laboratory behind a trait, whatever file system is in it.

use crate::OpenError;
use device::store::{FileStore, StoreError, copy_sparse};
use ffs::Ffs;
use kernel::{Counters, Ino, Lab, Volume, payload};
use lfs::Lfs;
use posix::output::Output;
use posix::{Extent, FileSystem};
use std::io;
use std::path::Path;

/// A file system in virtual time with what POSIX hides, for commands that do not care which it is.
pub trait Laboratory: FileSystem + Send {
    /// What went on below the calls: caches, names, device.
    fn counters(&self) -> Counters;

    /// Another laboratory in just this state, as [`Lab::duplicate`] makes it.
    fn another(&self) -> Option<Box<dyn Laboratory>>;

    /// How it was made, in the words of the targets' grammar.
    fn made(&self) -> String;

    /// The directory that paths start in.
    fn root(&self) -> Ino;

    /// Has paths start in another.
    fn set_root(&mut self, root: Ino);

    /// Has calls be made that cannot leave that directory, or has no longer.
    fn set_contained(&mut self, contained: bool);

    /// Writes everything back and, if an image is asked for, the file system into that new file. Data that nobody gave
    /// are zeros in it, unless every byte was kept.
    ///
    /// # Errors
    /// The device or the image refuses.
    fn unmount(self: Box<Self>, image: Option<&Path>) -> Result<(), OpenError>;
}

/// What a laboratory has to know of a file system besides how to run it.
trait Kept: Volume + Sized + Send {
    /// How it was made, in the words of the targets' grammar.
    fn made(&self) -> String;

    /// Bytes of its image.
    fn image_bytes(&self) -> u64;

    /// Writes its structures, and the data that processes gave, into an image.
    fn store_with(&self, store: &mut FileStore, bytes: &payload::Image) -> Result<(), Self::Error>;

    /// What is wrong with it.
    type Error: From<StoreError>;

    /// The same for whoever asked for a target.
    fn open_error(target: String, source: Self::Error) -> OpenError;
}

impl Kept for Ffs {
    type Error = ffs::FfsError;

    fn made(&self) -> String {
        let (g, tuning) = (self.geometry(), self.tuning());
        let version = format!("{:?}", g.layout.version).to_lowercase();
        format!(
            "{version},size={},bsize={},fsize={},groups={},fpg={},ipg={},minfree={},maxcontig={},\
             maxbpg={},avgfilesize={},avgfpdir={}",
            g.size_frags << g.fshift,
            g.bsize,
            g.fsize,
            g.ncg,
            g.fpg,
            g.ipg,
            tuning.minfree,
            tuning.maxcontig,
            tuning.maxbpg,
            tuning.avgfilesize,
            tuning.avgfpdir
        )
    }

    fn image_bytes(&self) -> u64 {
        self.geometry().size_frags << self.geometry().fshift
    }

    fn store_with(&self, store: &mut FileStore, bytes: &payload::Image) -> Result<(), ffs::FfsError> {
        self.store(store, Some(&mut given(self, bytes)))
    }

    fn open_error(target: String, source: ffs::FfsError) -> OpenError {
        OpenError::Ffs { target, source }
    }
}

impl Kept for Lfs {
    type Error = lfs::LfsError;

    fn made(&self) -> String {
        let (g, sb) = (self.geometry(), &self.superblock().f);
        format!(
            "size={},bsize={},fsize={},segment={},segments={},minfree={},minfreeseg={},resvseg={}",
            self.image_bytes(),
            g.bsize,
            g.fsize,
            g.ssize,
            g.nseg,
            sb.minfree,
            sb.minfreeseg,
            sb.resvseg
        )
    }

    fn image_bytes(&self) -> u64 {
        u64::from(self.superblock().f.size) << self.geometry().fshift
    }

    /// A log's checksums cover the data too: without every byte there is no image.
    fn store_with(&self, _store: &mut FileStore, _bytes: &payload::Image) -> Result<(), lfs::LfsError> {
        Err(lfs::LfsError::Options("an image of a log has every byte in it: open it with data=full".to_owned()))
    }

    fn open_error(target: String, source: lfs::LfsError) -> OpenError {
        OpenError::Lfs { target, source }
    }
}

impl<V: Kept> Laboratory for Lab<V>
where
    Lab<V>: FileSystem,
{
    fn counters(&self) -> Counters {
        Lab::counters(self)
    }

    fn another(&self) -> Option<Box<dyn Laboratory>> {
        Some(Box::new(self.duplicate()?))
    }

    fn made(&self) -> String {
        self.volume().made()
    }

    fn root(&self) -> Ino {
        Lab::root(self)
    }

    fn set_root(&mut self, root: Ino) {
        Lab::set_root(self, root);
    }

    fn set_contained(&mut self, contained: bool) {
        Lab::set_contained(self, contained);
    }

    fn unmount(self: Box<Self>, image: Option<&Path>) -> Result<(), OpenError> {
        let target = self.setup().target.clone();
        let unmounted = self.unmount_with_image();
        let (volume, bytes) = unmounted.map_err(|errno| OpenError::Unmount { target: target.clone(), errno })?;
        let Some(path) = image else { return Ok(()) };
        let io = |source| OpenError::io(path, "write the image", source);
        if path.symlink_metadata().is_ok() {
            return Err(io(std::io::ErrorKind::AlreadyExists.into()));
        }
        let (whole, file) = Output::create(path, 0o666).map_err(io)?;
        let written = if bytes.is_full() {
            copy_sparse(bytes.store(), &file).map_err(V::Error::from)
        } else {
            file.set_len(volume.image_bytes()).map_err(io)?;
            let mut store = FileStore::new(file).map_err(io)?;
            volume.store_with(&mut store, &bytes)
        };
        // Half an image is worse than none.
        written.map_err(|source| V::open_error(target, source))?;
        whole.finish().map_err(io)
    }
}

/// The bytes that processes gave, block by block as an image is written; zeros elsewhere.
fn given<'a>(
    volume: &'a impl Volume,
    bytes: &'a payload::Image,
) -> impl FnMut(Ino, u64, &mut [u8]) -> io::Result<()> + 'a {
    let mut file: (Option<Ino>, Vec<Extent>) = (None, Vec::new());
    move |ino, at, out| {
        if file.0 != Some(ino) {
            file = (Some(ino), volume.extents(ino)?);
        }
        let after = file.1.partition_point(|extent| extent.logical_bytes <= at);
        let Some(extent) = after.checked_sub(1).and_then(|n| file.1.get(n)) else { return Ok(()) };
        let place_bytes = extent.physical_bytes + (at - extent.logical_bytes);
        bytes.read(kernel::Pbn(place_bytes / kernel::Pbn::BYTES), out).map(drop)
    }
}
