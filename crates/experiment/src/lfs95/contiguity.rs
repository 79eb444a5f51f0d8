//! How much of files of two and of sixteen blocks lies in one piece on an aged file system: of those that its use has
//! left, and of new ones that are written into its free space.

use super::laboratory;
use super::relative::available_bytes;
use crate::alloc96::replay::{failed, whole_blocks_of};
use crate::testbed::{call, make_files};
use crate::{ExperimentError, alloc96};
use ffs::{Ffs, FreeMaps};
use kernel::{Ino, Volume as _};
use layout::scores::file::FileLayout;
use layout::scores::score::LayoutScore;
use posix::{Call, FileKind, FileSystem as _, Mode, OpenFlags};

/// Blocks of the files.
pub(super) const BLOCKS: [u64; 2] = [2, 16];
/// New files of each size, where there is room for so many.
const WRITTEN_MAX: u64 = 100;
const FILES_PER_DIRECTORY: u64 = 25;
/// The first inode that a file may have.
const FIRST: u32 = 3;

/// Layout scores by [`BLOCKS`]: the share of their blocks from the second on that lie behind the one before.
pub(super) type ByBlocks = [LayoutScore; BLOCKS.len()];

/// Of the files that there are. What counts is blocks that were allocated whole, as in `alloc96/by-size`.
///
/// # Errors
/// A file's blocks cannot be looked at.
pub(super) fn there(volume: &Ffs) -> Result<ByBlocks, ExperimentError> {
    let mut found = ByBlocks::default();
    for ino in (FIRST..volume.geometry().inodes()).map(Ino) {
        let Ok(attributes) = volume.attributes(ino) else { continue };
        if attributes.kind != FileKind::File || attributes.nlink == 0 || attributes.size_bytes == 0 {
            continue;
        }
        let layout = whole_blocks_of(volume, ino, attributes.size_bytes)?;
        for (blocks, score) in BLOCKS.iter().zip(&mut found) {
            if layout.blocks == *blocks {
                score.add(layout.score);
            }
        }
    }
    Ok(found)
}

/// Of new files, written into the free space of a file system of which nothing else is kept.
///
/// # Errors
/// They do not fit.
pub(super) fn written(volume: &Ffs, words: &str) -> Result<ByBlocks, ExperimentError> {
    let maps = FreeMaps::of(volume)?;
    let mut found = ByBlocks::default();
    for (blocks, score) in BLOCKS.iter().zip(&mut found) {
        let mut lab = laboratory(Ffs::from_free_maps(&maps, alloc96::policy(words)?)?)?;
        let block_bytes = u64::from(lab.volume().geometry().bsize);
        let files = (available_bytes(volume) / 4 * 3 / (blocks * block_bytes)).clamp(1, WRITTEN_MAX);
        let paths = make_files(&mut lab, "new", files, blocks * block_bytes, FILES_PER_DIRECTORY)?;
        // Where a block stays is known when it is written.
        call(&mut lab, "writing back", &Call::SyncFs)?;
        for path in paths {
            let open = Call::Open { at: path.as_str().into(), flags: OpenFlags::READ, mode: Mode(0) };
            let fd = lab.call(&open).fd().map_err(failed("opening a new file"))?;
            let extents = lab.extents(fd).map_err(|_| failed("looking at a new file")(posix::Errno::EOPNOTSUPP))?;
            score.add(FileLayout::of(&extents, block_bytes).score);
            call(&mut lab, "closing", &Call::Close { fd })?;
        }
    }
    Ok(found)
}
