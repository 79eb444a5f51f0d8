//! The live file system: [`Lfs`] behind [`kernel::Volume`].
//!
//! All structures are in memory in native form: superblock, segments, every inode in use with its pointers, directories as
//! their bytes. An operation changes them at once and marks what it has changed; nothing goes to the disk before the segment
//! writer (`segment`) gathers it. What is in memory only has no address yet ([`UNWRITTEN`]).
//!
//! What lives here: the operations. What may not: where things are written (`segment`, `checkpoint`), what is cleaned
//! (`cleaner`), on-disk structures (`format`).

mod balloc;
mod check;
mod encode;
mod entries;
mod image;
mod inodes;
mod operations;
mod space;
mod truncate;

pub(crate) mod pointers {
    //! The pointers of a file, direct or in indirect blocks.
    pub(crate) use ufs::indirect::{Indirects, Leaf, Pointer, of_number, way};
}

use crate::checkpoint::{IFILE, IfileState};
use crate::cleaner::Cleaner;
use crate::format::{Dinode, FragAddr, Geometry, Superblock, Time};
use crate::planted::Planted;
use crate::policy::Options;
use crate::segment::Log;
use crate::segment::plan::Partial;
pub use check::Disagreement;
pub(crate) use inodes::Body;
use inodes::{InodeMap, Inodes, MapEntry, Node};
use kernel::{Block, BlockId, Cx, Ino, Lbn, Pbn};
use pointers::Pointer;
use posix::Errno;
pub(crate) use space::with_overhead;
use ufs::directory::Directory;

/// The pointer of a block that is in memory and in no segment yet.
pub(crate) const UNWRITTEN: Pointer = -2;

/// The number by which the cache knows a changed inode.
pub(crate) const INODE_LBN: Lbn = Lbn(i64::MIN);

/// What a log-structured file system has done since it was mounted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Partial segments written.
    pub partial_segments: u64,
    /// Checkpoints made.
    pub checkpoints: u64,
    /// Superblocks written.
    pub superblocks: u64,
    /// What the cleaner has done.
    pub cleaner: crate::cleaner::CleanerCounters,
    /// Bytes that the log has taken: new data, what the cleaner has moved, and all that goes with them.
    pub log_bytes: u64,
}

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
    /// Pointers that are cut, with the bytes they had on the disk.
    freed: Vec<(Pointer, u32)>,
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

    /// Live share of each segment that has been written, in their order: what the histograms of Rosenblum and Ousterhout (1992)
    /// show.
    pub fn segment_utilisations(&self) -> impl Iterator<Item = f64> + '_ {
        let whole = f64::from(self.g.ssize);
        let dirty = self.log.segments.iter().filter(|segment| segment.state == crate::segment::SegmentState::Dirty);
        dirty.map(move |segment| f64::from(segment.live_bytes) / whole)
    }

    // ---- inodes

    #[inline]
    pub(crate) fn node(&self, ino: Ino) -> Result<&Node, Errno> {
        self.inodes.get(ino.0).ok_or(Errno::ESTALE)
    }

    #[inline]
    pub(crate) fn node_mut(&mut self, ino: Ino) -> Result<&mut Node, Errno> {
        self.inodes.get_mut(ino.0).ok_or(Errno::ESTALE)
    }

    /// An inode, or a block of its file, differs from the disk from now on.
    #[inline]
    pub(crate) fn changed(&mut self, cx: &mut Cx, ino: Ino) {
        if ino == IFILE {
            return;
        }
        if let Some(node) = self.inodes.get_mut(ino.0)
            && !std::mem::replace(&mut node.dirty, true)
        {
            self.dirty.push(ino);
            cx.make(&inode_in_memory(ino));
        }
    }

    /// A directory operation has changed an inode: it goes to the log together with all others of which that is true.
    pub(crate) fn operate(&mut self, cx: &mut Cx, ino: Ino) {
        self.changed(cx, ino);
        if let Some(node) = self.inodes.get_mut(ino.0)
            && !std::mem::replace(&mut node.dirop, true)
        {
            self.operations += 1;
        }
    }

    /// The block that an inode is in, if it has been written.
    fn inode_block(&self, ino: Ino) -> Option<Block> {
        let node = self.inodes.get(ino.0).filter(|node| !node.daddr.is_none())?;
        Some(Block::device(self.pbn(node.daddr), self.g.ibsize))
    }

    /// Makes an inode with the next free number.
    fn new_node(&mut self, cx: &mut Cx, d: Dinode, body: Body) -> Result<Ino, Errno> {
        cx.cpu(cx.costs().inode_ns);
        if self.map.head() == 0 {
            self.extend_ifile(cx)?;
        }
        let (number, version) = self.map.take().ok_or(Errno::ENOSPC)?;
        let ino = Ino(number);
        let (lbn, _) = self.g.map_place(Ino(number));
        self.read_ifile(cx, lbn)?;
        self.ifile.touch(0);
        self.ifile.touch(lbn);
        let d = Dinode { generation: version, inumber: number, ..d };
        let node = Node {
            d,
            indirects: None,
            body,
            daddr: FragAddr(0),
            frags: Default::default(),
            dirty: false,
            dirop: false,
            moving: 0,
        };
        self.inodes.insert(number, node);
        self.operate(cx, ino);
        Ok(ino)
    }

    /// Has a block of the ifile in memory.
    fn read_ifile(&mut self, cx: &mut Cx, lbn: u64) -> Result<(), Errno> {
        let addr = self.pointer(IFILE, lbn)?;
        let block = self.file_block(self.node(IFILE)?, IFILE, lbn, addr, self.g.bsize);
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
        let block = self.file_block(self.node(IFILE)?, IFILE, lbn, target.addr, self.g.bsize);
        cx.make(&block);
        self.node_mut(IFILE)?.d.size = (lbn + 1) << self.g.bshift;
        self.ifile.touch(lbn);
        Ok(())
    }

    fn fresh_dinode(&self, cx: &Cx, mode: u16) -> Dinode {
        let now = time_of(cx.date_ns());
        Dinode { mode, atime: now, mtime: now, ctime: now, ..Dinode::default() }
    }

    // ---- places

    pub(crate) fn pbn(&self, addr: FragAddr) -> Pbn {
        Pbn(u64::from(addr.0) << (self.g.fshift - 9))
    }

    /// Where a pointer leads. What is in memory only has no place; its blocks are never read.
    pub(crate) fn pbn_of(&self, pointer: Pointer) -> Pbn {
        self.pbn(FragAddr(u32::try_from(pointer).unwrap_or(0)))
    }

    /// A block of a file as the cache knows it.
    pub(crate) fn file_block(&self, node: &Node, ino: Ino, lbn: u64, addr: Pointer, bytes: u32) -> Block {
        let (lbn, pbn) = (Lbn(lbn as i64), self.pbn_of(addr));
        match node.body {
            Body::File => Block::data(ino, lbn, pbn, bytes),
            Body::Directory(_) | Body::Symlink(_) | Body::Ifile => Block::metadata(ino, lbn, pbn, bytes),
        }
    }

    pub(crate) fn indirect_block(&self, ino: Ino, number: i64, addr: Pointer) -> Block {
        Block::metadata(ino, Lbn(number), self.pbn_of(addr), self.g.bsize)
    }

    /// Counts fragments to a file's space, and to all.
    pub(crate) fn charge(&mut self, ino: Ino, frags: i64) {
        self.used_frags = self.used_frags.saturating_add_signed(frags);
        if let Some(node) = self.inodes.get_mut(ino.0) {
            node.d.blocks = u32::try_from(i64::from(node.d.blocks) + frags).unwrap_or(0);
        }
    }
}

/// What the cache knows of an inode that has changed.
fn inode_in_memory(ino: Ino) -> Block {
    let id = BlockId { ino, lbn: INODE_LBN };
    Block { id, pbn: Pbn(0), bytes: crate::format::DINODE_BYTES, contents: kernel::Contents::Metadata }
}

/// A date, nanoseconds since 1970, as an inode has it.
pub(crate) fn time_of(date_ns: i64) -> Time {
    Time { s: date_ns.div_euclid(1_000_000_000), ns: date_ns.rem_euclid(1_000_000_000) as i32 }
}

/// The reverse.
pub(crate) fn date_of(time: Time) -> i64 {
    time.s.saturating_mul(1_000_000_000).saturating_add(time.ns.into())
}
