//! FFS under the operations of [`ufs::live`]: inodes, and in which order changes reach the disk.

use super::inodes::{Node, Own};
use super::{Ffs, Pointer};
use crate::format::{Dinode, DirFormat, FragAddr, GroupNo, Time, Version, symlink_area_bytes};
use crate::integrity::mode;
use crate::planted::Bug;
use crate::policy::directories;
use kernel::{BlockId, Cx, Ino, Pbn};
use posix::Errno;
use std::ops::RangeInclusive;
use ufs::FileType;
use ufs::live::{Backing, Change, CutIndirects, Freed, Name, NewInode, Piece, Sizes, Target, time_of};

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

    fn times(&self) -> RangeInclusive<i64> {
        match self.g.layout.version {
            Version::Ufs1 => i32::MIN.into()..=i32::MAX.into(),
            Version::Ufs2 => i64::MIN..=i64::MAX,
        }
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
        mode!(self.inode_taken(cx, ino));
        Ok(ino)
    }

    fn keeps_chunks(&self, dir: Ino) -> bool {
        mode!(self.keeps_chunks(dir))
    }

    fn releases_later(&mut self, cx: &mut Cx, ino: Ino) -> bool {
        mode!(self.releases_later(cx, ino))
    }

    fn free_inode(&mut self, cx: &mut Cx, ino: Ino) {
        let Ok(node) = self.node_mut(ino) else { return };
        if node.d.extb != [0; 2] {
            let was = node.clone();
            (node.d.extsize, node.d.extb) = (0, [0; 2]);
            let mut extended: Vec<Freed> = self.extended_pieces(&was).collect();
            mode!(self.cut(cx, ino, &mut extended, CutIndirects::default()));
        }
        cx.forget_file(ino);
        mode!(self.inode_freed(cx, ino));
    }

    fn balloc(&mut self, cx: &mut Cx, ino: Ino, lbn: u64, end: u32) -> Result<Target, Errno> {
        self.block_for_writing(cx, ino, lbn, end)
    }

    fn may_change(&self, ino: Ino) -> Result<(), Errno> {
        if self.is_log(ino) { Err(Errno::EPERM) } else { Ok(()) }
    }

    fn may_write(&self, ino: Ino) -> Result<(), Errno> {
        if self.snapshot_ino() == Some(ino) { Err(Errno::EPERM) } else { self.may_change(ino) }
    }

    fn shown_in_hole(&self, ino: Ino, lbn: u64) -> Option<Piece> {
        self.shown_in_snapshot(ino, lbn)
    }

    // ---- operations: what they are together is the mode's

    fn admit(&mut self, cx: &mut Cx, _change: Change) -> Result<(), Errno> {
        mode!(self.begins(cx));
        Ok(())
    }

    fn settle(&mut self, cx: &mut Cx) {
        mode!(self.ends(cx));
    }

    fn begin_release(&mut self, cx: &mut Cx, ino: Ino) {
        mode!(self.release_begins(cx));
        if self.snapshot_ino() == Some(ino) {
            self.drop_snapshot(cx);
        }
    }

    fn end_release(&mut self, cx: &mut Cx) {
        mode!(self.release_ends(cx));
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

    // ---- ordered updates: what they are to the disk is the mode's (`integrity`)

    fn inode_made(&mut self, cx: &mut Cx, ino: Ino) {
        mode!(self.inode_made(cx, ino));
    }

    fn target_made(&mut self, cx: &mut Cx, block: BlockId) {
        mode!(self.target_made(cx, block));
    }

    fn directory_made(&mut self, cx: &mut Cx, dir: Ino, block: BlockId) {
        mode!(self.directory_made(cx, dir, block));
    }

    fn link_added(&mut self, cx: &mut Cx, ino: Ino) {
        mode!(self.link_added(cx, ino));
    }

    fn link_dropped(&mut self, cx: &mut Cx, ino: Ino, links: i16) {
        mode!(self.link_dropped(cx, ino, links));
    }

    fn name_added(&mut self, cx: &mut Cx, dir: Ino, at: u64, entry: Name<'_>, grown: bool) -> Result<(), Errno> {
        mode!(self.name_added(cx, dir, at, entry, grown))
    }

    fn name_removed(&mut self, cx: &mut Cx, dir: Ino, at: u64, entry: Name<'_>) -> Result<(), Errno> {
        mode!(self.name_removed(cx, dir, at, entry))
    }

    fn name_changed(&mut self, cx: &mut Cx, dir: Ino, at: u64, from: Ino, entry: Name<'_>) -> Result<(), Errno> {
        mode!(self.name_changed(cx, dir, at, from, entry))
    }

    fn parent_changed(&mut self, cx: &mut Cx, dir: Ino, from: Ino, parent: Ino) -> Result<(), Errno> {
        mode!(self.parent_changed(cx, dir, from, parent))
    }

    fn attributes_changed(&mut self, cx: &mut Cx, ino: Ino) {
        self.update(cx, ino);
    }

    fn length_set(&mut self, cx: &mut Cx, ino: Ino) {
        mode!(self.length_set(cx, ino));
    }

    fn cut(&mut self, cx: &mut Cx, ino: Ino, freed: &mut Vec<Freed>, indirects: CutIndirects) -> Result<(), Errno> {
        mode!(self.cut(cx, ino, freed, indirects));
        Ok(())
    }
}

impl Ffs {
    /// An inode is not in use any more, and its number is free.
    pub(crate) fn free_number(&mut self, cx: &mut Cx, ino: Ino) {
        let Some(node) = self.inodes.get(ino.0) else { return };
        let directory = node.d.is_dir();
        self.inodes.remove(ino.0);
        let group = self.inode_group(ino);
        cx.read(&Ffs::group_block(&self.g, group));
        self.space.free_inode(ino, directory);
        self.group_changed(cx, group);
    }
}
