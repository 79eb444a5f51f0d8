//! Copying files into an image: what is LFS's own of it.
//!
//! What is copied is appended to the log. Nothing that was there is overwritten before two checkpoints know it as dead,
//! and the last checkpoint says that the file system is clean; so an image whose log was left behind by a crash can be
//! copied into too: it is rolled forward first.

use crate::policy::Options;
use crate::{FileStore, Lfs, LfsError, Overlay, Store, fsck};
use kernel::Volume as _;
use std::path::Path;
use ufs::edit::Edit;
use ufs::insert::Insertable;

/// A file system in an image that files are copied into.
pub type Inserter<S> = ufs::insert::Inserter<Lfs, S>;

/// Changes the image `path`: see [`ufs::edit::edit`]. A copy is checked by [`fsck`](crate::fsck()) before it takes the
/// image's place.
pub fn edit<T>(
    path: &Path,
    how: Edit,
    change: impl FnOnce(FileStore) -> Result<(FileStore, T), LfsError>,
) -> Result<T, LfsError> {
    ufs::edit::edit(path, how, change, |copy| first_problem(copy))
}

fn first_problem<S: Store>(store: S) -> Result<Option<String>, LfsError> {
    let report = fsck(store, &mut |_| true)?;
    Ok(report.problems.first().map(|problem| match (problem.ino, problem.segment) {
        (Some(ino), _) => format!("inode {ino}: {}", problem.message),
        (None, Some(segment)) => format!("segment {segment}: {}", problem.message),
        (None, None) => problem.message.clone(),
    }))
}

impl Insertable for Lfs {
    type Options = Options;
    type Error = LfsError;

    /// A damaged file system is refused: what two files claim, or the usage table does not know of, could be
    /// overwritten.
    fn open<S: Store>(mut store: S, options: Options) -> Result<(Lfs, S), LfsError> {
        if let Some(problem) = first_problem(Overlay::new(&mut store))? {
            return Err(LfsError::NotWritable(format!(
                "it is damaged ({problem}); `fsage fsck IMAGE` lists what is wrong"
            )));
        }
        let volume = Lfs::load(&mut store, options)?;
        Ok((volume, store))
    }

    fn has_narrow_times(&self) -> bool {
        true
    }

    fn disagreement(&self) -> Option<String> {
        self.check().first().map(ToString::to_string)
    }

    fn full(&self, path: String) -> LfsError {
        LfsError::Full { path, available_bytes: self.usage().available_bytes, free_inodes: None }
    }
}
