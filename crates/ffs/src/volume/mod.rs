//! The live file system: [`Ffs`] behind [`kernel::Volume`].
//!
//! All structures are in memory in native form: superblock, groups, every inode in use with its pointers, directories
//! as their bytes. An operation changes them at once and says to the [`Cx`] which blocks it needed, changed and wrote.
//! The bytes of a block are made when somebody asks for them (`encode`), in the on-disk format; a whole image can be
//! loaded and stored.
//!
//! What lives here: what FFS has under the operations of [`ufs::live`] (`backing`), and writing data. What may not:
//! free maps (`alloc`), where things should go (`policy`), on-disk structures (`format`).

mod backing;
mod balloc;
mod check;
pub(crate) mod crashed;
pub(crate) mod encode;
mod free;
mod image;
pub(crate) mod inodes;
mod operations;
pub(crate) mod pointers;
mod snapshot;

use crate::FfsError;
use crate::alloc::Space;
use crate::format::{CylinderGroup, FragAddr, Geometry, GroupNo, Superblock};
use crate::integrity::{Deps, Journal, Moves, mode};
use crate::log::{LogState, Replayed};
use crate::planted::Planted;
use crate::policy::optim::Optimise;
use crate::policy::{Options, Reserve, Tuning, smartfrags};
pub use image::DataSource;
use inodes::{Inodes, Node};
use kernel::{Block, Cx, Ino, Pbn};
use pointers::Pointer;
use posix::Errno;
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use snapshot::Snapshot;
use ufs::live::Freed;
pub use ufs::live::check::Disagreement;

/// A Fast File System.
#[derive(Clone, Debug)]
pub struct Ffs {
    pub(crate) sb: Superblock,
    /// Byte of the superblock.
    pub(crate) sb_at: u64,
    pub(crate) g: Geometry,
    pub(crate) tuning: Tuning,
    pub(crate) options: Options,
    pub(crate) space: Space,
    pub(crate) optim: Optimise,
    pub(crate) inodes: Inodes,
    random: Xoshiro256PlusPlus,
    /// Of the inode made last.
    generation: u32,
    /// Inodes whose last change is in no block yet.
    pending: Vec<Ino>,
    /// Reused by [`policy`](crate::policy) for the blocks it moves.
    pub(crate) moving: Vec<Pointer>,
    /// Reused for what is cut from files.
    freed: Vec<Freed>,
    /// Whether superblock and summaries differ from the disk.
    modified: bool,
    mounted: bool,
    /// A bug that a test must find.
    pub(crate) planted: Planted,
    /// What has moved, as long as the disk may not know.
    pub(crate) moves: Moves,
    /// What Soft Updates remember.
    pub(crate) soft: Deps,
    /// What a crash has left, until a check has gone over it.
    crashed: Option<crashed::Crashed>,
    /// Its snapshot, if it has one.
    snapshot: Option<Snapshot>,
    /// Its log, if it has one, as it is while nothing is in it.
    pub(crate) log: Option<LogState>,
    /// What is to be replayed while it is mounted, so that it takes its time.
    pub(crate) replayed: Option<Box<Replayed>>,
    /// What goes to the log, while it is mounted with one.
    pub(crate) journal: Option<Box<Journal>>,
}

impl Ffs {
    pub(crate) fn assemble(
        sb: Superblock,
        sb_at: u64,
        groups: Vec<CylinderGroup>,
        inodes: Inodes,
        options: Options,
    ) -> Result<Ffs, FfsError> {
        let g = sb.geometry(sb_at)?;
        let generation = inodes.iter().map(|(_, node)| node.d.generation).max().unwrap_or(0);
        let ffs = Ffs {
            tuning: Tuning::of(&sb, &g),
            space: Space::new(&sb, &g, groups),
            optim: if sb.optim == 1 { Optimise::Space } else { Optimise::Time },
            sb,
            sb_at,
            g,
            options,
            inodes,
            random: Xoshiro256PlusPlus::seed_from_u64(options.seed),
            generation,
            pending: Vec::new(),
            moving: Vec::new(),
            freed: Vec::new(),
            modified: false,
            mounted: false,
            planted: None,
            moves: Moves::default(),
            soft: Deps::default(),
            crashed: None,
            snapshot: None,
            log: None,
            replayed: None,
            journal: None,
        };
        Ok(ffs)
    }

    /// Sizes and places.
    pub fn geometry(&self) -> &Geometry {
        &self.g
    }

    /// The same file system under other choices, as a mount with other options makes it.
    pub fn with_choices(mut self, options: Options) -> Ffs {
        self.options = options;
        self.leave_journal();
        self
    }

    /// Breaks a rule, for tests that must find it.
    #[doc(hidden)]
    pub fn plant(&mut self, planted: Planted) {
        self.planted = planted;
    }

    /// The choices in force.
    pub fn choices(&self) -> &Options {
        &self.options
    }

    /// What is free.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// What the superblock says about allocation.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    // ---- inodes

    pub(crate) fn inode_group(&self, ino: Ino) -> GroupNo {
        GroupNo(ino.0 / self.g.ipg)
    }

    /// The block that an inode is in.
    pub(crate) fn inode_block(&self, ino: Ino) -> Block {
        let (group, index) = (GroupNo(ino.0 / self.g.ipg), ino.0 % self.g.ipg);
        let first = self.g.group_inodes(group);
        let block = u64::from(index / self.g.inopb()) * u64::from(self.g.frag);
        Block::device(self.pbn(first.plus(block)), self.g.bsize)
    }

    /// An inode has changed: its block is changed with it.
    pub(crate) fn update(&mut self, cx: &mut Cx, ino: Ino) {
        let block = self.inode_block(ino);
        cx.change(&block);
        if let Some(node) = self.inodes.get_mut(ino.0) {
            node.own.pending = false;
        }
    }

    /// An inode has changed in a way that nobody needs on the disk soon.
    pub(crate) fn touch_later(&mut self, ino: Ino) {
        if let Some(node) = self.inodes.get_mut(ino.0)
            && !node.own.pending
        {
            node.own.pending = true;
            self.pending.push(ino);
        }
    }

    /// Moves changes that are in no block yet into their blocks.
    pub(crate) fn settle_pending(&mut self, cx: &mut Cx) {
        let pending = std::mem::take(&mut self.pending);
        for ino in &pending {
            mode!(self.begins(cx));
            if self.inodes.get(ino.0).is_some_and(|node| node.own.pending) {
                self.update(cx, *ino);
            }
        }
        self.pending = pending;
        self.pending.clear();
    }

    pub(crate) fn new_generation(&mut self) -> u32 {
        self.generation = (self.generation & 0x7FFF_FFFF).wrapping_add(1);
        self.generation
    }

    // ---- places

    pub(crate) fn pbn(&self, addr: FragAddr) -> Pbn {
        Pbn(addr.0 << (self.g.fshift - 9))
    }

    pub(crate) fn group_block(g: &Geometry, group: GroupNo) -> Block {
        Block::device(Pbn(g.group_block(group).0 << (g.fshift - 9)), g.cgsize)
    }

    // ---- space

    /// Whether an ordinary caller may take space.
    fn may_take(&self) -> bool {
        self.options.reserve == Reserve::Open || self.tuning.available(self.space.free_frags()) > 0
    }

    /// Allocates for a file (`ffs_alloc`). `smart` is the block to break for fragments, if that policy has one.
    pub(crate) fn allocate(
        &mut self,
        cx: &mut Cx,
        ino: Ino,
        preferred: FragAddr,
        frags: u32,
        smart: Option<FragAddr>,
    ) -> Result<Pointer, Errno> {
        cx.cpu(cx.costs().allocate_ns);
        if frags == self.g.frag && self.space.total.nbfree == 0 || !self.may_take() {
            return Err(Errno::ENOSPC);
        }
        let addr = self.find_space(cx, self.inode_group(ino), preferred, frags, smart).ok_or(Errno::ENOSPC)?;
        self.charge(ino, i64::from(frags));
        self.has_new_blocks(ino);
        Ok(addr.0 as i64)
    }

    /// Finds space and takes it; the group that has it is changed.
    fn find_space(
        &mut self,
        cx: &mut Cx,
        home: GroupNo,
        preferred: FragAddr,
        frags: u32,
        smart: Option<FragAddr>,
    ) -> Option<FragAddr> {
        let Ffs { g, space, .. } = self;
        let preferred = if preferred.0 < g.size_frags { preferred } else { FragAddr(0) };
        let group = if preferred.0 == 0 { home } else { space.group_of(preferred) };
        let mut look = |group: GroupNo| {
            cx.read(&Ffs::group_block(g, group));
        };
        let broken = smart.filter(|block| frags < g.frag && space.break_block(*block, frags, &mut look));
        let found = match broken {
            Some(block) => Some(block),
            None => space.allocate(group, preferred, frags, &mut look),
        };
        if let Some(addr) = found {
            self.forget_freed(addr);
            mode!(self.taken(cx, addr, frags));
            self.group_changed(cx, self.space.group_of(addr));
        }
        found
    }

    pub(crate) fn group_changed(&mut self, cx: &mut Cx, group: GroupNo) {
        cx.dirty(Ffs::group_block(&self.g, group).id);
        self.modified = true;
    }

    /// Counts fragments to a file's space.
    pub(crate) fn charge(&mut self, ino: Ino, frags: i64) {
        let sectors = frags * i64::from(self.g.fsize / 512);
        if let Some(node) = self.inodes.get_mut(ino.0) {
            node.d.blocks = node.d.blocks.checked_add_signed(sectors).expect("a file gives up what it has");
        }
    }

    /// Gives fragments back (`ffs_blkfree`).
    pub(crate) fn free(&mut self, cx: &mut Cx, addr: Pointer, frags: u32) {
        cx.cpu(cx.costs().allocate_ns);
        let addr = FragAddr(addr.unsigned_abs());
        cx.change(&Ffs::group_block(&self.g, self.space.group_of(addr)));
        self.modified = true;
        if !self.keep_until_committed(addr, frags) {
            self.space.free(addr, frags);
        }
    }

    /// Gives blocks back one after another; what that costs is said for all that are in one group at once.
    pub(crate) fn free_blocks(&mut self, cx: &mut Cx, blocks: &[Pointer]) {
        let mut rest = blocks;
        while let [first, ..] = rest {
            let (addr, frag) = (FragAddr(first.unsigned_abs()), self.g.frag);
            self.free(cx, *first, frag);
            let group = self.space.group_of(addr);
            let same = |addr: &&Pointer| self.space.group_of(FragAddr(addr.unsigned_abs())) == group;
            let others = rest.iter().skip(1).take_while(same).count();
            let block = Ffs::group_block(&self.g, group).id;
            let (now, later) = rest.split_at(1 + others);
            rest = later;
            let mut now = now.get(1..).unwrap_or_default();
            if cx.read_again(block, now.len() as u64) {
                cx.cpu(cx.costs().allocate_ns * now.len() as u64);
                if self.keeps_until_committed() {
                    for addr in now {
                        self.keep_until_committed(FragAddr(addr.unsigned_abs()), frag);
                    }
                    continue;
                }
                while let [first, ..] = now {
                    let run = self.space.run_in_group(now.iter().copied());
                    self.space.free_blocks(FragAddr(first.unsigned_abs()), run as u32);
                    now = now.get(run..).unwrap_or_default();
                }
            } else {
                now.iter().for_each(|addr| self.free(cx, *addr, frag));
            }
        }
    }

    fn smart_block(&self, node: &Node, lbn: u64) -> Option<FragAddr> {
        let before = lbn.checked_sub(1).and_then(|before| node.d.db.get(before as usize)).copied().unwrap_or(0);
        smartfrags::block_to_break(self.options.fragments, lbn, before, self.g.frag)
    }
}
