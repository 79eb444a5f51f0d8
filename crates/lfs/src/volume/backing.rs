//! LFS under the operations of [`ufs::live`]: inodes with numbers from the map, and what an operation has changed.
//!
//! Blocks are free at once in memory. On the disk a file has them until its inode is written again; the segments they
//! are in are not written before that (see `checkpoint`).

use super::inodes::{Node, Own};
use super::{Lfs, Pointer, UNWRITTEN};
use crate::format::{DIR_FORMAT, Dinode, DirFormat, FragAddr, NDADDR, SYMLINK_AREA_BYTES};
use crate::segment::INODE_BYTES;
use kernel::{Block, BlockId, Cx, Ino, Lbn, Pbn};
use posix::Errno;
use ufs::live::{Backing, Change, CutIndirects, Files as _, Freed, Name, NewInode, Sizes, Target, time_of};

impl Backing for Lfs {
    type Inode = Dinode;
    type Own = Own;

    const ATOMIC: bool = true;

    #[inline]
    fn node(&self, ino: Ino) -> Result<&Node, Errno> {
        self.inodes.get(ino.0).ok_or(Errno::ESTALE)
    }

    #[inline]
    fn node_mut(&mut self, ino: Ino) -> Result<&mut Node, Errno> {
        self.inodes.get_mut(ino.0).ok_or(Errno::ESTALE)
    }

    #[inline]
    fn sizes(&self) -> Sizes {
        let g = &self.g;
        Sizes { bsize: g.bsize, bshift: g.bshift, fsize: g.fsize, fshift: g.fshift, nindir: g.nindir.into() }
    }

    fn dir_format(&self) -> DirFormat {
        DIR_FORMAT
    }

    fn has_blocks(&self, inode: &Dinode) -> bool {
        inode.has_blocks(self.g.maxsymlinklen)
    }

    fn held_bytes(&self, inode: &Dinode) -> u64 {
        u64::from(inode.blocks) << self.g.fshift
    }

    /// What is in memory only has no place; its blocks are never read.
    #[inline]
    fn pbn_of(&self, pointer: Pointer) -> Pbn {
        self.pbn(FragAddr(u32::try_from(pointer).unwrap_or(0)))
    }

    fn spare_list(&mut self) -> &mut Vec<Freed> {
        &mut self.freed
    }

    /// With the next free number, wherever the directory is.
    fn new_inode(&mut self, cx: &mut Cx, _dir: Ino, new: NewInode) -> Result<Ino, Errno> {
        cx.cpu(cx.costs().inode_ns);
        if self.map.head() == 0 {
            self.extend_ifile(cx)?;
        }
        let (number, version) = self.map.take().ok_or(Errno::ENOSPC)?;
        let ino = Ino(number);
        let (lbn, _) = self.g.map_place(ino);
        self.read_ifile(cx, lbn)?;
        self.ifile.touch(0);
        self.ifile.touch(lbn);
        let now = time_of(cx.date_ns());
        let mut d = Dinode {
            mode: new.file_type.mode_bits() | new.permissions & ufs::mode::PERMISSIONS,
            nlink: new.nlink,
            inumber: number,
            atime: now,
            mtime: now,
            ctime: now,
            generation: version,
            ..Dinode::default()
        };
        d.db[0] = new.device.into();
        self.inodes.insert(number, Node { d, indirects: None, body: new.body, own: Own::default() });
        self.operate(cx, ino);
        Ok(ino)
    }

    fn free_inode(&mut self, cx: &mut Cx, ino: Ino) {
        cx.forget_file(ino);
        let node = self.inodes.remove(ino.0).expect("what is freed is there");
        assert_eq!(node.d.blocks, 0, "inode {ino} is freed with its blocks");
        if node.own.dirop {
            self.operations -= 1;
            if !node.own.daddr.is_none() {
                // The log says that it is gone together with its name.
                self.dead.push(Dinode { nlink: 0, size: 0, db: [0; NDADDR], ib: Default::default(), ..node.d });
            }
        }
        self.left(node.own.daddr.0.into(), INODE_BYTES);
        self.map.give_back(ino.0);
        self.ifile.touch(0);
        self.ifile.touch(self.g.map_place(ino).0);
    }

    fn balloc(&mut self, cx: &mut Cx, ino: Ino, lbn: u64, end: u32) -> Result<Target, Errno> {
        self.block_for_writing(cx, ino, lbn, end)
    }

    fn put_target(&mut self, ino: Ino, target: &[u8]) -> Result<bool, Errno> {
        let short = target.len() < self.g.maxsymlinklen as usize && target.len() <= SYMLINK_AREA_BYTES;
        if short {
            self.node_mut(ino)?.d.set_pointer_area(target);
        }
        Ok(short)
    }

    // ---- room

    /// For a name: a block more of the directory with what is above it, a block of the ifile, what is new.
    fn admit(&mut self, cx: &mut Cx, change: Change) -> Result<(), Errno> {
        let bsize = u64::from(self.g.bsize);
        let new_blocks = match change {
            Change::Create => 4,
            Change::CreateSpecial | Change::Link | Change::Rename { replaces: false } => 3,
            Change::Rename { replaces: true } => 0,
            Change::Remove => return self.admit_change(cx, 2 * bsize),
            Change::Attributes => return self.admit_change(cx, self.g.ibsize.into()),
            Change::Length { grows: true } => return self.make_room(cx, 5 * bsize, self.reserve_bytes()),
            Change::Length { grows: false } => return self.admit_change(cx, 5 * bsize),
        };
        self.admit_blocks(cx, new_blocks * u64::from(self.g.frag), (2 + new_blocks) * bsize)
    }

    fn settle(&mut self, cx: &mut Cx) {
        self.write_if_much(cx);
    }

    // ---- updates: an operation's go to the log together

    fn change_block(&mut self, cx: &mut Cx, block: &Block) {
        self.indirects_changed(cx, block.id.ino, block.id.lbn.0 as u64);
        cx.change(block);
    }

    fn inode_made(&mut self, _cx: &mut Cx, _ino: Ino) {}

    fn target_made(&mut self, _cx: &mut Cx, _block: BlockId) {}

    fn directory_made(&mut self, _cx: &mut Cx, _dir: Ino, _block: BlockId) {}

    fn link_added(&mut self, cx: &mut Cx, ino: Ino) {
        self.operate(cx, ino);
    }

    fn link_dropped(&mut self, cx: &mut Cx, ino: Ino, _links: i16) {
        self.operate(cx, ino);
    }

    fn name_added(&mut self, cx: &mut Cx, dir: Ino, at: u64, _entry: Name<'_>, _grown: bool) -> Result<(), Errno> {
        self.directory_changed(cx, dir, at)
    }

    fn name_removed(&mut self, cx: &mut Cx, dir: Ino, at: u64, _entry: Name<'_>) -> Result<(), Errno> {
        self.directory_changed(cx, dir, at)
    }

    fn name_changed(&mut self, cx: &mut Cx, dir: Ino, at: u64, _from: Ino, _entry: Name<'_>) -> Result<(), Errno> {
        self.directory_changed(cx, dir, at)
    }

    fn parent_changed(&mut self, cx: &mut Cx, dir: Ino, _from: Ino, _parent: Ino) -> Result<(), Errno> {
        self.directory_changed(cx, dir, 0)
    }

    fn attributes_changed(&mut self, cx: &mut Cx, ino: Ino) {
        self.changed(cx, ino);
    }

    fn length_set(&mut self, cx: &mut Cx, ino: Ino) {
        self.changed(cx, ino);
    }

    /// What is cut is given up at once, as long as it is on the disk: which it may be for less than in memory.
    fn pointers_cut(&mut self, cx: &mut Cx, ino: Ino, freed: &mut Vec<Freed>) {
        let (mut last, mut runs, mut bytes) = (None, 0, 0);
        for piece in freed.drain(..) {
            bytes += i64::from(piece.bytes);
            let place = self.inodes.get_mut(ino.0).and_then(|node| node.own.frags.get_mut(piece.lbn as usize));
            let on_disk = place.map_or(piece.bytes, |frags| u32::from(std::mem::take(frags)) << self.g.fshift);
            // Blocks that follow one another in a segment are taken off its count together (`SEGDEC` of 4.4BSD).
            let segment = u32::try_from(piece.addr).ok().and_then(|addr| self.g.segment_of(FragAddr(addr)));
            if last != Some(segment) {
                (last, runs) = (Some(segment), runs + 1);
            }
            self.left(piece.addr, on_disk);
        }
        self.charge(ino, -(bytes >> self.g.fshift));
        cx.cpu(cx.costs().allocate_ns * runs);
    }

    fn cut(&mut self, cx: &mut Cx, ino: Ino, freed: &mut Vec<Freed>, indirects: CutIndirects) -> Result<(), Errno> {
        // Fragments of the last block; on the disk it is as long as it was.
        let bytes: u32 = freed.iter().map(|piece| piece.bytes).sum();
        self.charge(ino, -i64::from(bytes >> self.g.fshift));
        // What an indirect block points to is known from the block itself: one that is not in memory is read to be
        // given up.
        for (number, addr) in indirects.leaves.into_iter().chain(indirects.upper) {
            if addr > 0 {
                cx.read(&self.indirect_block(ino, number, addr));
            }
            cx.forget(BlockId { ino, lbn: Lbn(number) });
            self.left(addr, self.g.bsize);
            self.charge(ino, -i64::from(self.g.frag));
        }
        for (number, addr) in indirects.changed {
            debug_assert!(addr != UNWRITTEN || cx.cache().contains(BlockId { ino, lbn: Lbn(number) }));
            cx.change(&self.indirect_block(ino, number, addr));
        }
        self.changed(cx, ino);
        Ok(())
    }
}

impl Lfs {
    /// A directory operation has changed a block of a directory.
    fn directory_changed(&mut self, cx: &mut Cx, dir: Ino, at: u64) -> Result<(), Errno> {
        let block = self.directory_block(dir, at)?;
        self.change_block(cx, &block);
        self.operate(cx, dir);
        Ok(())
    }
}
