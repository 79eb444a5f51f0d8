//! Copying files into an image: what is FFS's own of it.

use crate::format::{Version, flags};
use crate::policy::{Integrity, Options};
use crate::volume::crashed::is_tolerable;
use crate::{Ffs, FfsError, FileStore, Image, Store, fsck};
use kernel::Volume as _;
use std::path::Path;
use ufs::edit::Edit;
use ufs::insert::Insertable;

/// A file system in an image that files are copied into.
pub type Inserter<S> = ufs::insert::Inserter<Ffs, S>;

/// Changes the image `path`: see [`ufs::edit::edit`]. A copy is checked by [`fsck()`] before it takes the image's
/// place.
pub fn edit<T>(
    path: &Path,
    how: Edit,
    change: impl FnOnce(FileStore) -> Result<(FileStore, T), FfsError>,
) -> Result<T, FfsError> {
    ufs::edit::edit(path, how, change, |copy| {
        let report = fsck(copy, &mut |_| true)?;
        Ok(report.problems.first().map(|problem| problem.message.clone()))
    })
}

impl Insertable for Ffs {
    type Options = Options;
    type Error = FfsError;

    fn open<S: Store>(store: S, options: Options) -> Result<(Ffs, S), FfsError> {
        let (volume, image) = crate::log::load_if(store, options, None, |image| writable(image, &options))?;
        Ok((volume, image.into_store()))
    }

    fn has_narrow_times(&self) -> bool {
        self.geometry().layout.version == Version::Ufs1
    }

    fn disagreement(&self) -> Option<String> {
        self.check().first().map(ToString::to_string)
    }

    fn full(&self, path: String) -> FfsError {
        let usage = self.usage();
        FfsError::Full { path, available_bytes: usage.available_bytes, free_inodes: Some(usage.free_inodes) }
    }
}

/// Refuses what must not be written to. What a crash of Soft Updates leaves may be, under them.
fn writable<S: Store>(image: &Image<S>, options: &Options) -> Result<(), FfsError> {
    let sb = image.superblock();
    let refused = |why: &str| Err(FfsError::NotWritable(why.to_owned()));
    if options.integrity == Integrity::Softdep && is_tolerable(sb) {
        return Ok(());
    }
    let marked = sb.wide() && sb.flags & (flags::UNCLEAN | flags::NEEDSFSCK) != 0;
    if sb.clean & 1 == 0 || marked {
        return refused("it was not unmounted cleanly; `fsage fsck IMAGE --repair --in-place` puts it right");
    }
    Ok(())
}
