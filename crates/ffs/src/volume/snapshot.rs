//! Snapshots: a file that shows the whole file system as it was (`ffs_snapshot.c`; McKusick, "Running 'fsck' in the
//! Background", BSDCon 2002).
//!
//! On the disk it is a regular file with the flag `SF_SNAPSHOT`, as long as the file system and listed in its
//! superblock. A pointer of 0 means that the block is as it was, in its place; 1, that it was free; any other leads to
//! what it held. In memory its pointers are those that lead somewhere, and a bit for each block says whether its
//! pointer on the disk is 0.
//!
//! Blocks are kept where they set out for the disk, the only place where any is written over: whoever writes one has
//! the old one copied first, and waits until map, copy and pointer are on the disk. So it makes no difference whether
//! the block has been freed and given to somebody else meanwhile. What lives here: taking one, keeping blocks, showing,
//! removing it.

use super::inodes::Node;
use super::{Ffs, pointers};
use crate::FfsError;
use crate::format::{Bitmap, Dinode, FragAddr, Geometry, GroupNo, NDADDR, SF_SNAPSHOT};
use crate::integrity::mode;
use crate::planted::Bug;
use kernel::program::IoId;
use kernel::{Block, BlockId, Cx, Durability, Ino, Lbn, NewNode, Volume as _};
use pointers::{Indirects, Leaf, Pointer};
use posix::{Errno, FileKind};
use std::collections::BTreeSet;
use ufs::live::{CutIndirects, Files as _, Freed, Piece, operations};

/// `BLK_NOCOPY`: the block was free.
const NO_COPY: Pointer = 1;
/// `BLK_SNAP`: the block belongs to a snapshot.
const OF_SNAPSHOT: Pointer = 2;

/// The snapshot of a file system.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) ino: Ino,
    /// Blocks of the file system that were in use and have not been written over since.
    wanted: Bitmap,
    /// Blocks whose old bytes are on their way, with the request that writes the pointer to them.
    under_way: Vec<(u64, IoId)>,
}

impl Snapshot {
    /// From an inode as it is on the disk; its pointers are then as they are kept in memory.
    pub(super) fn load(ino: u32, node: &mut Node, g: &Geometry) -> Result<Snapshot, FfsError> {
        let blocks = blocks(g);
        let wrong = |what: &str| Err(FfsError::Inode { ino, problem: format!("the snapshot {what}") });
        if node.d.size != g.size_frags << g.fshift {
            return wrong("is not as long as the file system");
        }
        let mut wanted = Bitmap::new(blocks as usize);
        wanted.put_range(0, blocks as usize, true);
        let mut look = |lbn: u64, pointer: &mut Pointer| {
            if *pointer != 0 {
                wanted.put(lbn as usize, false);
            }
            if matches!(*pointer, NO_COPY | OF_SNAPSHOT) {
                *pointer = 0;
            }
        };
        for (lbn, pointer) in (0..blocks).zip(&mut node.d.db) {
            look(lbn, pointer);
        }
        for first in (NDADDR as u64..blocks).step_by(g.nindir() as usize) {
            let leaf = node.indirects.as_mut().and_then(|indirects| indirects.leaves.get_mut(&first));
            let Some(leaf) = leaf else { return wrong("lacks an indirect block") };
            for (lbn, pointer) in (first..blocks).zip(&mut leaf.pointers) {
                look(lbn, pointer);
            }
        }
        Ok(Snapshot { ino: Ino(ino), wanted, under_way: Vec::new() })
    }

    fn wants(&self, lbn: u64) -> bool {
        self.wanted.get(lbn as usize)
    }
}

/// Blocks of a file system, the last one maybe shorter.
fn blocks(g: &Geometry) -> u64 {
    g.size_frags.div_ceil(g.frag.into())
}

/// A block of a file system in its place.
fn in_place(g: &Geometry, lbn: u64) -> Piece {
    let addr = lbn * u64::from(g.frag);
    let frags = (g.size_frags - addr).min(g.frag.into());
    Piece { addr: addr as Pointer, bytes: (frags << g.fshift) as u32 }
}

impl Ffs {
    /// Takes a snapshot into a new file. `EBUSY` if there is one, `EOPNOTSUPP` with a log and where the superblock has
    /// no list of them.
    pub fn take_snapshot(&mut self, cx: &mut Cx, dir: Ino, name: &[u8]) -> Result<Ino, Errno> {
        if self.options.integrity.has_log() || self.log.is_some() || !self.sb.wide() {
            return Err(Errno::EOPNOTSUPP);
        }
        if self.snapshot.is_some() {
            return Err(Errno::EBUSY);
        }
        if self.g.size_frags << self.g.fshift > self.g.max_file_bytes() {
            return Err(Errno::EFBIG);
        }
        if self.lookup(cx, dir, name)?.is_some() {
            return Err(Errno::EEXIST);
        }
        let new = NewNode { kind: FileKind::File, mode: 0o400, target: b"" };
        let ino = operations::create(self, cx, dir, name, &new)?;
        let made = self.sync(cx, Durability::All).and_then(|()| self.fill_snapshot(cx, ino));
        if let Err(error) = made {
            operations::unlink(self, cx, dir, name, ino)?;
            operations::release(self, cx, ino);
            return Err(error);
        }
        Ok(ino)
    }

    /// The snapshot's inode.
    pub fn snapshot_ino(&self) -> Option<Ino> {
        self.snapshot.as_ref().map(|snapshot| snapshot.ino)
    }

    /// Everything is on the disk, the empty file too: what the disk has now is kept from now on.
    fn fill_snapshot(&mut self, cx: &mut Cx, ino: Ino) -> Result<(), Errno> {
        let g = self.g;
        let blocks = blocks(&g);
        let mut wanted = Bitmap::new(blocks as usize);
        for lbn in 0..blocks {
            let Piece { addr, bytes } = in_place(&g, lbn);
            wanted.put(lbn as usize, !self.space.is_free(FragAddr(addr.unsigned_abs()), bytes >> g.fshift));
        }
        // What taking and keeping a snapshot changes is copied at once, so that keeping one block never takes another.
        let mut at_once = BTreeSet::new();
        let mut add = |at: u64, len: u64| at_once.extend(at >> g.bshift..=(at + len - 1) >> g.bshift);
        let superblock = self.superblock_now(true).encode();
        add(self.sb_at, superblock.len() as u64);
        add(g.byte_of(g.csaddr), g.cssize.into());
        (0..g.ncg).for_each(|group| add(g.byte_of(g.group_block(GroupNo(group))), g.cgsize.into()));
        add(self.inode_block(ino).pbn.bytes(), g.bsize.into());
        let mut numbers = BTreeSet::new();
        for first in (NDADDR as u64..blocks).step_by(g.nindir() as usize) {
            let way = pointers::way(first, g.nindir()).ok_or(Errno::EFBIG)?;
            numbers.extend(way.numbers.iter().take(way.slot + 1));
        }
        let needed = (at_once.len() + numbers.len()) as i64;
        if self.space.total.nbfree < needed {
            return Err(Errno::ENOSPC);
        }
        let mut changed = BTreeSet::new();
        let mut take = |fs: &mut Ffs, cx: &mut Cx, home: GroupNo| {
            let addr = fs.find_space(cx, home, FragAddr(0), g.frag, None).ok_or(Errno::ENOSPC)?;
            changed.insert(fs.space.group_of(addr));
            Ok::<Pointer, Errno>(addr.0 as Pointer)
        };
        let home = self.inode_group(ino);
        let mut indirects = Indirects::default();
        for number in numbers {
            let addr = take(self, cx, home)?;
            match pointers::of_number(number, g.nindir()) {
                Some((first, 0)) => drop(indirects.leaves.insert(first, Leaf { addr, pointers: Vec::new() })),
                _ => drop(indirects.upper.insert(number, addr)),
            }
            cx.make(&self.indirect_block(ino, number, addr));
        }
        let mut tops = [0; 3];
        let mut first = NDADDR as u64;
        for (level, top) in (0_u32..).zip(&mut tops) {
            *top = indirects.addr(-(first as i64) - i64::from(level), g.nindir());
            first = first.saturating_add(g.nindir().saturating_pow(level + 1));
        }
        let any = !indirects.leaves.is_empty();
        let Some(node) = self.inodes.get_mut(ino.0) else { return Err(Errno::ESTALE) };
        node.indirects = any.then(|| Box::new(indirects));
        (node.d.ib, node.d.size) = (tops, g.size_frags << g.fshift);
        node.d.flags |= SF_SNAPSHOT;
        self.charge(ino, needed * i64::from(g.frag));
        for lbn in at_once {
            let addr = take(self, cx, g.group_of(FragAddr(lbn * u64::from(g.frag))))?;
            self.copy_to(cx, ino, lbn, addr);
            let from = lbn << g.bshift;
            if (from..from + u64::from(g.bsize)).contains(&self.sb_at) {
                // As BSD's: what it shows was not in use.
                let id = BlockId { ino, lbn: Lbn(lbn as i64) };
                cx.fill(id, self.sb_at, (self.sb_at - from) as u32, superblock.len() as u32, Some(&superblock));
            }
            self.set_pointer(cx, ino, lbn, addr)?;
            wanted.put(lbn as usize, false);
        }
        self.snapshot = Some(Snapshot { ino, wanted, under_way: Vec::new() });
        // Until the inode is on the disk, there is none.
        for group in changed {
            cx.write(self, Ffs::group_block(&g, group).id, false);
        }
        cx.flush_file(self, ino, Durability::All);
        cx.wait_for_writes();
        if let Some(place) = self.sb.snapinum.first_mut() {
            *place = ino.0;
        }
        self.write_superblock(cx, true);
        self.update(cx, ino);
        cx.write(self, self.inode_block(ino).id, true);
        Ok(())
    }

    /// Has the bytes of a block of the file system in the snapshot's, which is to lie elsewhere.
    fn copy_to(&mut self, cx: &mut Cx, ino: Ino, lbn: u64, addr: Pointer) {
        let here = in_place(&self.g, lbn);
        let place = self.pbn(FragAddr(here.addr.unsigned_abs()));
        let block = Block::data(ino, Lbn(lbn as i64), place, here.bytes);
        cx.read(&block);
        cx.resize(block.id, self.g.bsize);
        cx.relocate(block.id, self.pbn(FragAddr(addr.unsigned_abs())));
    }

    /// A block sets out for the disk: what it writes over is kept first.
    pub(super) fn keep_old(&mut self, cx: &mut Cx, id: BlockId) {
        let Some(Block { pbn, bytes, .. }) = cx.cache().block(id) else { return };
        let end = pbn.bytes() + u64::from(bytes.max(1));
        for lbn in pbn.bytes() >> self.g.bshift..=(end - 1) >> self.g.bshift {
            let Some(snapshot) = &mut self.snapshot else { return };
            snapshot.under_way.retain(|(_, io)| cx.ios().get(*io).is_some());
            if self.planted != Some(Bug::SnapshotCopyLate) {
                for (_, io) in snapshot.under_way.iter().filter(|(of, _)| *of == lbn) {
                    cx.wait_for(*io);
                }
            }
            if snapshot.wants(lbn) {
                self.keep_block(cx, lbn);
            }
        }
    }

    fn keep_block(&mut self, cx: &mut Cx, lbn: u64) {
        let Some(ino) = self.snapshot_ino() else { return };
        let Some(addr) = self.space_for_copy(cx, lbn) else { return self.drop_snapshot(cx) };
        self.copy_to(cx, ino, lbn, addr.0 as Pointer);
        self.write_kept(cx, Ffs::group_block(&self.g, self.space.group_of(addr)).id);
        self.write_kept(cx, BlockId { ino, lbn: Lbn(lbn as i64) });
        self.enter_kept(cx, ino, lbn, addr);
    }

    /// A block for a copy. It writes nothing over itself: one that was in use when the snapshot was taken, and is free
    /// now, is the snapshot's as it is (BSD has it be so when it is freed). None is taken that others wait for.
    fn space_for_copy(&mut self, cx: &mut Cx, lbn: u64) -> Option<FragAddr> {
        let (g, frag) = (self.g, u64::from(self.g.frag));
        let home = g.group_of(FragAddr(lbn * frag));
        let mut aside = Vec::new();
        let found = loop {
            let ino = self.snapshot_ino()?;
            cx.cpu(cx.costs().allocate_ns);
            let mut look = |group: GroupNo| {
                cx.read(&Ffs::group_block(&g, group));
            };
            let Some(addr) = self.space.allocate(home, FragAddr(0), g.frag, &mut look) else { break None };
            if self.moves.concern(addr, g.frag) {
                aside.push(addr);
                continue;
            }
            let group = self.space.group_of(addr);
            self.group_changed(cx, group);
            let own = addr.0 / frag;
            if !self.snapshot.as_ref().is_some_and(|snapshot| snapshot.wants(own)) {
                break Some(addr);
            }
            self.write_kept(cx, Ffs::group_block(&g, group).id);
            self.enter_kept(cx, ino, own, addr);
        };
        for addr in aside {
            self.space.free(addr, g.frag);
        }
        found
    }

    fn write_kept(&mut self, cx: &mut Cx, id: BlockId) {
        cx.write(self, id, self.planted != Some(Bug::SnapshotCopyLate));
    }

    /// The old bytes of a block are on the disk, in a block of the snapshot: it gets the pointer to them.
    fn enter_kept(&mut self, cx: &mut Cx, ino: Ino, lbn: u64, addr: FragAddr) {
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.wanted.put(lbn as usize, false);
        }
        let set = self.set_pointer(cx, ino, lbn, addr.0 as Pointer);
        assert!(set.is_ok(), "the snapshot has a place for the pointer to block {lbn}: {set:?}");
        self.charge(ino, self.g.frag.into());
        self.touch_later(ino);
        let holder = match pointers::way(lbn, self.g.nindir()) {
            Some(way) => BlockId { ino, lbn: Lbn(-(way.leaf as i64)) },
            None => {
                self.update(cx, ino);
                self.inode_block(ino).id
            }
        };
        self.write_kept(cx, holder);
        if let (Some(snapshot), Some(io)) = (&mut self.snapshot, cx.io_of(holder)) {
            snapshot.under_way.push((lbn, io));
        }
    }

    /// There is no snapshot any more; its file is empty. Also where there is no room for a block that it is to keep.
    pub(super) fn drop_snapshot(&mut self, cx: &mut Cx) {
        let Some(Snapshot { ino, .. }) = self.snapshot.take() else { return };
        let bytes = self.g.bsize;
        let mut freed = Vec::new();
        // An inode that has a snapshot is there.
        let _ = self.each_block(ino, &mut |lbn, piece| {
            freed.push(Freed { lbn: lbn as i64, addr: piece.addr, bytes });
        });
        let Some(node) = self.inodes.get_mut(ino.0) else { return };
        if let Some(indirects) = node.indirects.take() {
            freed.extend(indirects.leaves.iter().map(|(at, leaf)| Freed {
                lbn: -(*at as i64),
                addr: leaf.addr,
                bytes,
            }));
            freed.extend(indirects.upper.iter().map(|(number, addr)| Freed { lbn: *number, addr: *addr, bytes }));
        }
        (node.d.db, node.d.ib, node.d.size, node.d.blocks) = ([0; NDADDR], [0; 3], 0, 0);
        node.d.flags &= !SF_SNAPSHOT;
        cx.forget_file(ino);
        // One that the superblock lists and that is none does no harm, but not the other way round.
        self.update(cx, ino);
        cx.write(self, self.inode_block(ino).id, true);
        self.sb.snapinum.fill(0);
        self.write_superblock(cx, true);
        // Cutting takes it off the file's count, where it is no more.
        let frags: i64 = freed.iter().map(|piece| i64::from(piece.bytes >> self.g.fshift)).sum();
        self.charge(ino, frags);
        mode!(self.cut(cx, ino, &mut freed, CutIndirects::default()));
    }

    /// Writing has had blocks kept: the inode of the snapshot is on the disk as it is now. Its own block is kept
    /// already.
    pub(super) fn write_snapshot_inode(&mut self, cx: &mut Cx) {
        let Some(ino) = self.snapshot_ino() else { return };
        if self.inodes.get(ino.0).is_some_and(|node| node.own.pending) {
            self.update(cx, ino);
            cx.write(self, self.inode_block(ino).id, true);
        }
    }

    // ---- how it looks

    /// A block of the snapshot that has no copy: the file system's own, if it was in use.
    pub(super) fn shown_in_snapshot(&self, ino: Ino, lbn: u64) -> Option<Piece> {
        let snapshot = self.snapshot.as_ref().filter(|snapshot| snapshot.ino == ino)?;
        snapshot.wants(lbn).then(|| in_place(&self.g, lbn))
    }

    /// An inode as it is on the disk.
    pub(crate) fn encode_inode(&self, ino: u32, d: &Dinode) -> Vec<u8> {
        let Some(snapshot) = self.snapshot.as_ref().filter(|snapshot| snapshot.ino.0 == ino) else {
            return d.encode(&self.g);
        };
        let mut d = d.clone();
        for (lbn, pointer) in (0..blocks(&self.g)).zip(&mut d.db) {
            if *pointer == 0 && !snapshot.wants(lbn) {
                *pointer = NO_COPY;
            }
        }
        d.encode(&self.g)
    }

    /// The places in an indirect block that are for blocks that were free.
    pub(super) fn not_copied(&self, id: BlockId) -> impl Iterator<Item = (usize, Pointer)> + '_ {
        let n = self.g.nindir();
        let snapshot = self.snapshot.as_ref().filter(|snapshot| snapshot.ino == id.ino);
        let first = pointers::of_number(id.lbn.0, n).filter(|(_, level)| *level == 0).map(|(first, _)| first);
        let places = snapshot.zip(first).map(|(snapshot, first)| {
            let kept = self.inodes.get(id.ino.0).map(|node| node.pointers_of_leaf(first)).unwrap_or_default();
            let end = (first + n).min(blocks(&self.g));
            (0..)
                .zip(first..end)
                .filter(move |(at, lbn)| !snapshot.wants(*lbn) && kept.get(*at).copied().unwrap_or(0) == 0)
        });
        places.into_iter().flatten().map(|(at, _)| (at, NO_COPY))
    }

    /// For a test: what a snapshot must not forget.
    pub(super) fn forget_freed(&mut self, addr: FragAddr) {
        let lbn = addr.0 / u64::from(self.g.frag);
        if self.planted == Some(Bug::SnapshotFreedNotKept)
            && let Some(snapshot) = &mut self.snapshot
        {
            snapshot.wanted.put(lbn as usize, false);
        }
    }
}
