//! The log of a journaled file system: where it lies, its format, replaying it, making one.
//!
//! What lives here: the log as bytes ([`mod@format`]), what becomes of it after a crash ([`replay()`]), giving a file
//! system one ([`make()`]), and the way round its ring while the file system is mounted (`writer`). What may not: what
//! is written to it then; that is `integrity::journal`'s. The format is our own; docs/ffs-log.md has every field.
//! Journaled Soft Updates keep records of another kind in it ([`notes`]), and recover by them (`recover`).
//!
//! The log is an ordinary file, `/.fsjournal`, whose blocks lie behind one another. The superblock knows its place, in
//! bytes that no BSD uses. Other readers see a file that nobody needs.

pub mod format;
mod make;
pub mod notes;
mod recover;
mod replay;
mod replayed;
mod writer;

use crate::planted::Planted;
use crate::policy::Options;
use crate::{Ffs, FfsError, Image, Search, Store};
pub use make::make;
pub(crate) use replay::{LogState, empty_anew};
pub use replay::{replay, replay_planted};
pub use replayed::{Replayed, Step};
pub(crate) use writer::LogWriter;

/// The name of the log, in the root directory.
pub const LOG_NAME: &str = ".fsjournal";

/// A live file system from an image, as a mount has it: the log is replayed, and where the mode needs one and there is
/// none, one is made.
///
/// # Errors
/// The file system is damaged, its log makes no sense, or there is no room for one.
pub fn load<S: Store>(store: S, options: Options, planted: Planted) -> Result<(Ffs, Image<S>), FfsError> {
    load_if(store, options, planted, |_| Ok(()))
}

/// The same, if the image is accepted once its log has been replayed. Nothing is made in one that is not.
pub(crate) fn load_if<S: Store>(
    mut store: S,
    options: Options,
    planted: Planted,
    accept: impl Fn(&Image<S>) -> Result<(), FfsError>,
) -> Result<(Ffs, Image<S>), FfsError> {
    let replayed = replay_planted(&mut store, planted)?;
    let mut image = Image::open(store, Search::Standard)?;
    accept(&image)?;
    if options.integrity.has_log()
        && image.superblock().wide()
        && image.superblock().snapinum.iter().any(|ino| *ino != 0)
    {
        // Before anything is made in it.
        let why =
            "it has a snapshot, which is not kept beside a log: mount it with another mode, or remove the snapshot";
        return Err(FfsError::NotWritable(why.to_owned()));
    }
    if replayed.is_none() && options.integrity.has_log() {
        let mut store = image.into_store();
        make(&mut store, None)?;
        image = Image::open(store, Search::Standard)?;
    }
    let mut volume = Ffs::load(&image, options)?;
    volume.replayed = replayed.filter(|done| !done.is_nothing()).map(Box::new);
    Ok((volume, image))
}

/// Blocks that an operation changes at most, besides a cylinder group's block for each group.
pub(crate) const OPERATION_BLOCKS: u64 = 16;
