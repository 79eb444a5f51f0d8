//! FFS under the operations of [`ufs::live`]: inodes, and in which order changes reach the disk.

use super::inodes::{Node, Own};
use super::{Ffs, Pointer};
use crate::format::{Dinode, DirFormat, FragAddr, GroupNo, Time, Version, symlink_area_bytes};
use crate::planted::Bug;
use crate::policy::directories;
use kernel::{Block, BlockId, Cx, Ino, Pbn};
use posix::Errno;
use ufs::FileType;
use ufs::live::{Backing, CutIndirects, Files as _, Freed, NewInode, Sizes, Target, time_of};

impl Backing for Ffs {
    type Inode = Dinode;
    type Own = Own;

    const ATOMIC: bool = false;

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
        Sizes { bsize: g.bsize, bshift: g.bshift, fsize: g.fsize, fshift: g.fshift, nindir: g.nindir() }
    }

    fn dir_format(&self) -> DirFormat {
        self.g.dir_format()
    }

    fn has_blocks(&self, inode: &Dinode) -> bool {
        inode.has_blocks(&self.g)
    }

    fn held_bytes(&self, inode: &Dinode) -> u64 {
        inode.blocks.saturating_mul(512)
    }

    #[inline]
    fn pbn_of(&self, pointer: Pointer) -> Pbn {
        self.pbn(FragAddr(pointer.unsigned_abs()))
    }

    fn spare_list(&mut self) -> &mut Vec<Freed> {
        &mut self.freed
    }

    fn removes_old_name_first(&self) -> bool {
        self.planted == Some(Bug::OldNameFirst)
    }

    fn new_inode(&mut self, cx: &mut Cx, dir: Ino, new: NewInode) -> Result<Ino, Errno> {
        let directory = new.file_type == FileType::Directory;
        let preferred = if directory {
            let (tuning, policy) = (self.tuning, self.options.directories);
            directories::directory_preference(&self.space, &tuning, policy, dir, &mut self.random)
        } else {
            directories::file_preference(dir)
        };
        directories::note_new_inode(&mut self.space, preferred, directory);
        cx.cpu(cx.costs().inode_ns);
        if self.space.total.nifree == 0 {
            return Err(Errno::ENOSPC);
        }
        let Ffs { g, space, .. } = self;
        let mut look = |group: GroupNo| {
            cx.read(&Ffs::group_block(g, group));
        };
        let ino = space.allocate_inode(preferred, directory, &mut look).ok_or(Errno::ENOSPC)?;
        self.group_changed(cx, self.inode_group(ino));
        let now = time_of(cx.date_ns());
        let mut d = Dinode {
            mode: new.file_type.mode_bits() | new.permissions & ufs::mode::PERMISSIONS,
            nlink: new.nlink,
            atime: now,
            mtime: now,
            ctime: now,
            birthtime: if self.g.layout.version == Version::Ufs2 { now } else { Time::default() },
            generation: self.new_generation(),
            ..Dinode::default()
        };
        d.db[0] = new.device.into();
        self.inodes.insert(ino.0, Node { d, indirects: None, body: new.body, own: Own::default() });
        Ok(ino)
    }

    fn free_inode(&mut self, cx: &mut Cx, ino: Ino) {
        let Ok(node) = self.node_mut(ino) else { return };
        let directory = node.d.is_dir();
        if node.d.extb != [0; 2] {
            let was = node.clone();
            (node.d.extsize, node.d.extb) = (0, [0; 2]);
            let extended: Vec<Freed> = self.extended_pieces(&was).collect();
            // As with data, the inode is on the disk without them before they are free for others.
            self.update_in_order(cx, ino);
            self.free_pieces(cx, ino, &extended);
        }
        cx.forget_file(ino);
        self.update(cx, ino);
        self.inodes.remove(ino.0);
        let group = self.inode_group(ino);
        cx.read(&Ffs::group_block(&self.g, group));
        self.space.free_inode(ino, directory);
        self.group_changed(cx, group);
    }

    fn balloc(&mut self, cx: &mut Cx, ino: Ino, lbn: u64, end: u32) -> Result<Target, Errno> {
        self.block_for_writing(cx, ino, lbn, end)
    }

    fn put_target(&mut self, ino: Ino, target: &[u8]) -> Result<bool, Errno> {
        let g = self.g;
        let short =
            (target.len() as u64) < u64::from(g.maxsymlinklen) && target.len() <= symlink_area_bytes(g.layout.version);
        if short {
            self.node_mut(ino)?.d.set_pointer_area(target, &g);
        }
        Ok(short)
    }

    // ---- ordered updates

    /// The inode is on the disk before its name.
    fn inode_made(&mut self, cx: &mut Cx, ino: Ino) {
        match self.planted {
            Some(Bug::InodeAfterName) if self.directory(ino).is_err() => self.update(cx, ino),
            _ => self.update_in_order(cx, ino),
        }
    }

    fn target_made(&mut self, cx: &mut Cx, block: BlockId) {
        self.in_order(cx, block);
    }

    fn directory_made(&mut self, cx: &mut Cx, dir: Ino, block: BlockId) {
        self.update(cx, dir);
        self.in_order(cx, block);
        self.update_in_order(cx, dir);
    }

    /// On the disk before the name that the link is for.
    fn link_added(&mut self, cx: &mut Cx, ino: Ino) {
        self.update_in_order(cx, ino);
    }

    fn link_dropped(&mut self, cx: &mut Cx, ino: Ino) {
        self.update(cx, ino);
    }

    fn name_added(&mut self, cx: &mut Cx, dir: Ino, at: u64, _ino: Ino, grown: bool) -> Result<(), Errno> {
        self.update(cx, dir);
        self.directory_block_in_order(cx, dir, at)?;
        if grown && self.planted != Some(Bug::DirectoryLengthLate) {
            self.update_in_order(cx, dir);
        }
        Ok(())
    }

    fn name_removed(&mut self, cx: &mut Cx, dir: Ino, at: u64, _ino: Ino) -> Result<(), Errno> {
        self.update(cx, dir);
        if self.planted == Some(Bug::NameOutlivesInode) {
            cx.change(&self.directory_block(dir, at)?);
            return Ok(());
        }
        self.directory_block_in_order(cx, dir, at)
    }

    fn name_changed(&mut self, cx: &mut Cx, dir: Ino, at: u64, _from: Ino, _to: Ino) -> Result<(), Errno> {
        self.update(cx, dir);
        self.directory_block_in_order(cx, dir, at)
    }

    fn parent_changed(&mut self, cx: &mut Cx, dir: Ino, _parent: Ino) -> Result<(), Errno> {
        self.directory_block_in_order(cx, dir, 0)
    }

    fn attributes_changed(&mut self, cx: &mut Cx, ino: Ino) {
        self.update(cx, ino);
    }

    fn length_set(&mut self, cx: &mut Cx, ino: Ino) {
        self.update_in_order(cx, ino);
    }

    /// The inode goes to the disk with its pointers cleared before the blocks are free for others.
    fn cut(&mut self, cx: &mut Cx, ino: Ino, freed: &mut Vec<Freed>, indirects: CutIndirects) -> Result<(), Errno> {
        for (number, addr) in indirects.changed {
            let block = self.indirect_block(ino, number, addr);
            cx.change(&block);
            self.in_order(cx, block.id);
        }
        match self.planted {
            Some(Bug::FreeBeforeInode) => self.update(cx, ino),
            _ => self.update_in_order(cx, ino),
        }
        // What an indirect block points to is known from the block itself: one that is not in memory is read to be given up.
        for (lbn, addr) in indirects.upper.into_iter().chain(indirects.leaves) {
            let block = self.indirect_block(ino, lbn, addr);
            cx.read(&block);
            cx.forget(block.id);
            freed.push(Freed { lbn, addr, bytes: self.g.bsize });
        }
        self.free_pieces(cx, ino, freed);
        Ok(())
    }
}

impl Ffs {
    /// A block of a directory has changed, and the order matters.
    fn directory_block_in_order(&mut self, cx: &mut Cx, dir: Ino, at: u64) -> Result<(), Errno> {
        let block: Block = self.directory_block(dir, at)?;
        cx.change(&block);
        self.in_order(cx, block.id);
        Ok(())
    }
}
