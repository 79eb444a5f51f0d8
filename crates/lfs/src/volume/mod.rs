//! The live file system: [`Lfs`] behind [`kernel::Volume`].
//!
//! All structures are in memory in native form: superblock, segments, every inode in use with its pointers, directories
//! as their bytes. An operation changes them at once and marks what it has changed; nothing goes to the disk before the
//! segment writer (`segment`) gathers it. What is in memory only has no address yet ([`UNWRITTEN`]).
//!
//! What lives here: what LFS has under the operations of [`ufs::live`] (`backing`), and writing data. What may not:
//! where things are written (`segment`, `checkpoint`), what is cleaned (`cleaner`), on-disk structures (`format`).

mod backing;
mod balloc;
mod check;
mod counters;
mod encode;
mod image;
mod inodes;
mod operations;
mod space;

pub(crate) mod pointers {
    //! The pointers of a file, direct or in indirect blocks.
    pub(crate) use ufs::indirect::{Indirects, Leaf, Pointer, of_number, way};
}

use crate::cleaner::state::Cleaner;
use crate::format::{Dinode, FragAddr, Geometry, Superblock};
use crate::ifile_state::{IFILE, IfileState};
use crate::planted::Planted;
use crate::policy::Options;
use crate::segment::Log;
use crate::segment::plan::Partial;
pub use counters::Counters;
pub(crate) use inodes::Body;
use inodes::{InodeMap, Inodes, MapEntry, Node, Own};
use kernel::{Block, BlockId, Cx, Ino, Lbn, Pbn};
use pointers::Pointer;
use posix::Errno;
pub(crate) use space::with_overhead;
pub use ufs::live::check::Disagreement;
use ufs::live::{Backing as _, Files as _, Freed, Piece};

/// The pointer of a block that is in memory and in no segment yet.
pub(crate) const UNWRITTEN: Pointer = -2;

/// The number by which the cache knows a changed inode.
pub(crate) const INODE_LBN: Lbn = Lbn(i64::MIN);

/// A log-structured file system.
#[derive(Clone, Debug)]
pub struct Lfs {
    pub(crate) sb: Superblock,
    pub(crate) g: Geometry,
    pub(crate) options: Options,
    pub(crate) inodes: Inodes,
    pub(crate) map: InodeMap,
    pub(crate) log: Log,
    /// Bytes of segments that superblocks and the label take.
    pub(crate) lost_bytes: u64,
    /// Blocks of the ifile that differ from the disk.
    pub(crate) ifile: IfileState,
    /// Files that differ from the disk, in the order they became so. Some may be written or gone by now.
    pub(crate) dirty: Vec<Ino>,
    /// How many of them directory operations have changed.
    pub(crate) operations: u32,
    /// Inodes that are on the disk and whose files are gone.
    pub(crate) dead: Vec<Dinode>,
    /// Fragments that files hold, the ifile included.
    pub(crate) used_frags: u64,
    pub(crate) cleaner: Cleaner,
    pub(crate) counters: Counters,
    /// The partial segment whose bytes are being made.
    pub(crate) writing: Option<Partial>,
    /// The summary that is being written again.
    pub(crate) rewriting: Option<Vec<u8>>,
    /// Which superblock comes next: the second?
    pub(crate) turn: bool,
    pub(crate) last_checkpoint_ns: u64,
    /// Lists that are used again: blocks of a file with the places of those that move, and numbers of indirect blocks.
    pub(crate) scratch: (Vec<(i64, Option<FragAddr>)>, Vec<i64>),
    pub(crate) spare_partials: Vec<Partial>,
    /// Reused for what is cut from files.
    freed: Vec<Freed>,
    mounted: bool,
    /// Whether it was not unmounted cleanly and has not been written since.
    recovered: bool,
    /// A bug that a test must find.
    pub(crate) planted: Planted,
}

impl Lfs {
    /// Sizes and places.
    pub fn geometry(&self) -> &Geometry {
        &self.g
    }

    /// The superblock as the last checkpoint has it.
    pub fn superblock(&self) -> &Superblock {
        &self.sb
    }

    /// The choices in force.
    pub fn choices(&self) -> &Options {
        &self.options
    }

    /// What it has done since it was mounted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Segments that nothing is in, and all there are.
    pub fn clean_segments(&self) -> (u32, u32) {
        (self.log.clean + 1, self.g.nseg)
    }

    /// Live share of each segment that has been written, in their order: what the histograms of Rosenblum and
    /// Ousterhout (1992) show.
    pub fn segment_utilisations(&self) -> impl Iterator<Item = f64> + '_ {
        let whole = f64::from(self.g.ssize);
        let dirty = self.log.segments.iter().filter(|segment| segment.state == crate::segment::SegmentState::Dirty);
        dirty.map(move |segment| f64::from(segment.live_bytes) / whole)
    }

    // ---- inodes

    /// An inode, or a block of its file, differs from the disk from now on.
    #[inline]
    pub(crate) fn changed(&mut self, cx: &mut Cx, ino: Ino) {
        if ino == IFILE {
            return;
        }
        if let Some(node) = self.inodes.get_mut(ino.0)
            && !std::mem::replace(&mut node.own.dirty, true)
        {
            self.dirty.push(ino);
            cx.make(&inode_in_memory(ino));
        }
    }

    /// A directory operation has changed an inode: it goes to the log together with all others of which that is true.
    pub(crate) fn operate(&mut self, cx: &mut Cx, ino: Ino) {
        self.changed(cx, ino);
        if let Some(node) = self.inodes.get_mut(ino.0)
            && !std::mem::replace(&mut node.own.dirop, true)
        {
            self.operations += 1;
        }
    }

    /// The block that an inode is in, if it has been written.
    fn inode_block(&self, ino: Ino) -> Option<Block> {
        let node = self.inodes.get(ino.0).filter(|node| !node.own.daddr.is_none())?;
        Some(Block::device(self.pbn(node.own.daddr), self.g.ibsize))
    }

    /// Has a block of the ifile in memory.
    fn read_ifile(&mut self, cx: &mut Cx, lbn: u64) -> Result<(), Errno> {
        let addr = self.pointer(IFILE, lbn)?;
        let block = self.file_block(self.node(IFILE)?, IFILE, lbn, Piece { addr, bytes: self.g.bsize });
        cx.read(&block);
        Ok(())
    }

    /// Another block of the inode map.
    fn extend_ifile(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        self.lengthen_ifile(cx)?;
        self.map.grow(self.g.ifpb);
        Ok(())
    }

    /// Another block of the ifile.
    fn lengthen_ifile(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        let lbn = self.node(IFILE)?.d.size >> self.g.bshift;
        let target = self.block_for_writing(cx, IFILE, lbn, self.g.bsize)?;
        let block = self.file_block(self.node(IFILE)?, IFILE, lbn, target.piece);
        cx.make(&block);
        self.node_mut(IFILE)?.d.size = (lbn + 1) << self.g.bshift;
        self.ifile.touch(lbn);
        Ok(())
    }

    // ---- places

    pub(crate) fn pbn(&self, addr: FragAddr) -> Pbn {
        Pbn(u64::from(addr.0) << (self.g.fshift - 9))
    }

    /// Counts fragments to a file's space, and to all.
    pub(crate) fn charge(&mut self, ino: Ino, frags: i64) {
        self.used_frags = self.used_frags.checked_add_signed(frags).expect("what is given up was used");
        if let Some(node) = self.inodes.get_mut(ino.0) {
            let blocks = i64::from(node.d.blocks) + frags;
            node.d.blocks = u32::try_from(blocks).expect("a file gives up what it has");
        }
    }
}

/// What the cache knows of an inode that has changed.
fn inode_in_memory(ino: Ino) -> Block {
    let id = BlockId { ino, lbn: INODE_LBN };
    Block { id, pbn: Pbn(0), bytes: crate::format::DINODE_BYTES, contents: kernel::Contents::Metadata }
}
