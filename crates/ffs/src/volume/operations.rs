//! The operations of [`Volume`], each in the order of steps that 4.4BSD has (`ufs_vnops.c`, `ffs_vnops.c`, `ffs_vfsops.c`).

use super::{Body, Ffs, Piece, date_of, time_of};
use crate::format::{FileType, FragAddr, GroupNo, NDADDR, mode, symlink_area_bytes};
use crate::planted::Bug;
use crate::policy::directories;
use kernel::{
    Attributes, Block, BlockId, Cx, Durability, Entry, Ino, Lbn, Mapped, NewNode, Rename, SetAttributes, Volume,
    WriteRange,
};
use posix::{Errno, Extent, ExtentFlags, FileKind, FreeExtent, FsUsage};
use ufs::directory::Directory;
use ufs::insert::Special;

fn kind_of(file_type: Option<FileType>) -> FileKind {
    match file_type {
        Some(FileType::Regular) => FileKind::File,
        Some(FileType::Directory) => FileKind::Directory,
        Some(FileType::Symlink) => FileKind::Symlink,
        _ => FileKind::Special,
    }
}

/// The type of a new inode. What has no data of its own is a FIFO.
fn type_of(kind: FileKind) -> FileType {
    match kind {
        FileKind::File => FileType::Regular,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Special => FileType::Fifo,
    }
}

impl Ffs {
    fn file_type(&self, ino: Ino) -> Result<FileType, Errno> {
        self.node(ino)?.d.file_type().ok_or(Errno::EIO)
    }

    /// A directory that is still in the tree.
    fn live_directory(&self, dir: Ino) -> Result<(), Errno> {
        if self.node(dir)?.d.nlink <= 0 { Err(Errno::ENOENT) } else { Ok(()) }
    }

    /// `EMLINK` if an inode has as many links as it can count (`LINK_MAX`).
    fn room_for_link(&self, ino: Ino) -> Result<(), Errno> {
        if self.node(ino)?.d.nlink == i16::MAX { Err(Errno::EMLINK) } else { Ok(()) }
    }

    /// One link more, on the disk before the name that it is for.
    fn add_link(&mut self, cx: &mut Cx, ino: Ino) -> Result<(), Errno> {
        let now = time_of(cx.date_ns());
        let d = &mut self.node_mut(ino)?.d;
        d.nlink = d.nlink.checked_add(1).ok_or(Errno::EMLINK)?;
        d.ctime = now;
        self.update_in_order(cx, ino);
        Ok(())
    }

    /// One link fewer, after the name is gone.
    fn drop_link(&mut self, cx: &mut Cx, ino: Ino, links: i16) -> Result<(), Errno> {
        let now = time_of(cx.date_ns());
        let d = &mut self.node_mut(ino)?.d;
        d.nlink = d.nlink.saturating_sub(links).max(0);
        d.ctime = now;
        self.update(cx, ino);
        Ok(())
    }

    /// Takes back an inode whose name could not be entered.
    fn unmake(&mut self, cx: &mut Cx, ino: Ino) {
        if let Some(node) = self.inodes.get_mut(ino.0) {
            node.d.nlink = 0;
        }
        self.release(cx, ino);
    }

    /// Makes a pipe, a socket or a device (`mknod`). A device's number is in the place of its first block.
    pub(crate) fn make_special_file(
        &mut self,
        cx: &mut Cx,
        dir: Ino,
        name: &[u8],
        permissions: u16,
        special: Special,
    ) -> Result<Ino, Errno> {
        self.live_directory(dir)?;
        let (file_type, device) = special.parts();
        let new = NewNode { kind: FileKind::Special, mode: permissions, target: b"" };
        self.make_typed(cx, dir, name, &new, file_type, device)
    }

    fn make_file(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], new: &NewNode<'_>) -> Result<Ino, Errno> {
        self.make_typed(cx, dir, name, new, type_of(new.kind), 0)
    }

    fn make_typed(
        &mut self,
        cx: &mut Cx,
        dir: Ino,
        name: &[u8],
        new: &NewNode<'_>,
        file_type: FileType,
        device: u16,
    ) -> Result<Ino, Errno> {
        let mode = file_type.mode_bits() | new.mode & mode::PERMISSIONS;
        let mut d = self.fresh_dinode(cx, mode);
        d.nlink = 1;
        d.db[0] = device.into();
        let body = match new.kind {
            FileKind::Symlink => Body::Symlink(new.target.into()),
            _ => Body::File,
        };
        let preferred = directories::file_preference(dir);
        directories::note_new_inode(&mut self.space, preferred, false);
        let ino = self.new_node(cx, preferred, d, body)?;
        // 4.4BSD enters a symbolic link's name before it writes the target; a name that leads nowhere is what this avoids.
        let linked = match new.kind {
            FileKind::Symlink => self.write_target(cx, ino, new.target),
            _ => Ok(()),
        };
        // The inode is on the disk before its name.
        match self.planted {
            Some(Bug::InodeAfterName) => self.update(cx, ino),
            _ => self.update_in_order(cx, ino),
        }
        if let Err(error) = linked.and_then(|()| self.enter(cx, dir, name, ino, file_type)) {
            self.unmake(cx, ino);
            return Err(error);
        }
        Ok(ino)
    }

    /// Where a symbolic link leads: in the inode if it is short, else in a block.
    fn write_target(&mut self, cx: &mut Cx, ino: Ino, target: &[u8]) -> Result<(), Errno> {
        let g = self.g;
        let short =
            (target.len() as u64) < u64::from(g.maxsymlinklen) && target.len() <= symlink_area_bytes(g.layout.version);
        if target.len() > g.bsize as usize {
            return Err(Errno::ENAMETOOLONG);
        }
        if short {
            let d = &mut self.node_mut(ino)?.d;
            d.set_pointer_area(target, &g);
            d.size = target.len() as u64;
        } else {
            let wanted = self.block_for_writing(cx, ino, 0, target.len() as u32)?;
            let block = self.file_block(self.node(ino)?, ino, 0, wanted.piece);
            cx.make(&block);
            self.node_mut(ino)?.d.size = target.len() as u64;
            self.in_order(cx, block.id);
        }
        Ok(())
    }

    fn make_directory(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], new: &NewNode<'_>) -> Result<Ino, Errno> {
        self.room_for_link(dir)?;
        let parent = dir;
        let (tuning, policy) = (self.tuning, self.options.directories);
        let preferred = directories::directory_preference(&self.space, &tuning, policy, parent, &mut self.random);
        directories::note_new_inode(&mut self.space, preferred, true);
        let mut d = self.fresh_dinode(cx, FileType::Directory.mode_bits() | new.mode & mode::PERMISSIONS);
        d.nlink = 2;
        let format = self.dir_format();
        let kind = if format.old { 0 } else { FileType::Directory.entry_type() };
        let empty = Box::new(Directory::new(format, 0, dir.0, kind));
        let ino = self.new_node(cx, preferred, d, Body::Directory(empty))?;
        *self.directory_mut(ino)? = Directory::new(format, ino.0, dir.0, kind);
        self.update_in_order(cx, ino);
        // The parent's link is counted before there is a `..` that is one, so that a crash leaves too many, not too few.
        self.add_link(cx, dir)?;
        let made = self.first_chunk(cx, ino).and_then(|()| self.enter(cx, dir, name, ino, FileType::Directory));
        if let Err(error) = made {
            self.drop_link(cx, dir, 1)?;
            self.unmake(cx, ino);
            return Err(error);
        }
        Ok(ino)
    }

    /// What the new name replaced has lost it; an empty directory loses its own entry for itself as well.
    fn replace(&mut self, cx: &mut Cx, rename: &Rename<'_>, replaced: Ino, directory: bool) -> Result<(), Errno> {
        let file_type = self.file_type(rename.ino)?;
        if directory && !self.directory(replaced)?.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.reenter(cx, rename.to_dir, rename.to_name, rename.ino, file_type)?;
        if directory {
            // The replaced directory's `..` is gone; that of the moved one may come.
            self.drop_link(cx, rename.to_dir, 1)?;
            self.drop_link(cx, replaced, 2)
        } else {
            self.drop_link(cx, replaced, 1)
        }
    }

    /// Writes one piece of a range, inside one block.
    fn write_piece(&mut self, cx: &mut Cx, range: &WriteRange<'_>, at: u64, len: u32, done: u64) -> Result<(), Errno> {
        let (ino, bsize) = (range.ino, self.g.bsize);
        let lbn = at >> self.g.bshift;
        let within = (at & u64::from(bsize - 1)) as u32;
        let target = self.block_for_writing(cx, ino, lbn, within + len)?;
        let now = time_of(cx.date_ns());
        let node = self.node_mut(ino)?;
        node.d.size = node.d.size.max(at + u64::from(len));
        (node.d.mtime, node.d.ctime) = (now, now);
        let size = node.d.size;
        let block = self.file_block(self.node(ino)?, ino, lbn, target.piece);
        if target.fresh {
            cx.take(&block);
            if len < target.piece.bytes {
                cx.zero(block.id, lbn << self.g.bshift, 0);
            }
        } else if len < target.piece.bytes {
            cx.read(&block);
        } else {
            cx.take(&block);
        }
        let bytes = range.data.and_then(|data| data.get(done as usize..(done as usize + len as usize)));
        cx.fill(block.id, at, within, len, bytes);
        if range.sync.is_some() || within + len < bsize {
            cx.dirty(block.id);
        } else {
            kernel::cluster::write(self, cx, ino, Lbn(lbn as i64), block.pbn, size);
        }
        Ok(())
    }

    /// Blocks of a file that lie behind one another from `lbn` on, at most `most`, in the same list of pointers.
    fn run_ahead(&self, ino: Ino, lbn: u64, most: u32) -> Result<u32, Errno> {
        let (pointers, index) = self.pointers_beside(ino, lbn)?;
        let frag = i64::from(self.g.frag);
        let size = self.node(ino)?.d.size;
        let full = (size >> self.g.bshift).saturating_sub(lbn + 1);
        let most = u64::from(most).min(full) as usize;
        let here = pointers.get(index..).unwrap_or_default();
        let run = here.windows(2).take(most).take_while(|pair| matches!(pair, [a, b] if *b == *a + frag)).count();
        Ok(run as u32)
    }

    /// The superblock and the summaries, written now.
    fn write_superblock(&mut self, cx: &mut Cx, wait: bool) {
        let g = self.g;
        self.sb.set_time(cx.date_ns().div_euclid(1_000_000_000));
        let summaries = u64::from(g.cssize);
        for at in (0..summaries).step_by(g.bsize as usize) {
            let bytes = (summaries - at).min(g.bsize.into()).next_multiple_of(g.fsize.into()) as u32;
            let block = Block::device(self.pbn(g.csaddr.plus(at >> g.fshift)), bytes);
            cx.make(&block);
            cx.write(self, block.id, wait);
        }
        let block = self.superblock_block();
        cx.make(&block);
        cx.write(self, block.id, wait);
        self.modified = false;
    }

    fn superblock_block(&self) -> Block {
        Block::device(kernel::Pbn(self.sb_at / 512), (self.sb.sb_bytes() as u32).next_multiple_of(512))
    }
}

impl Volume for Ffs {
    fn root(&self) -> Ino {
        crate::format::ROOT_INO
    }

    fn block_bytes(&self) -> u32 {
        self.g.bsize
    }

    fn file_max_bytes(&self) -> u64 {
        self.g.max_file_bytes()
    }

    fn type_name(&self) -> &str {
        "ffs"
    }

    fn options(&self) -> String {
        self.options.to_string()
    }

    fn mount(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        cx.read(&self.superblock_block());
        let summaries = u64::from(self.g.cssize).next_multiple_of(self.g.fsize.into()) as u32;
        cx.read(&Block::device(self.pbn(self.g.csaddr), summaries.min(self.g.bsize)));
        self.mounted = true;
        if self.sb.wide() {
            self.sb.mtime = cx.date_ns().div_euclid(1_000_000_000);
        }
        self.write_superblock(cx, true);
        Ok(())
    }

    fn unmount(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        self.sync(cx, Durability::All)?;
        self.mounted = false;
        self.write_superblock(cx, true);
        Ok(())
    }

    fn attributes(&self, ino: Ino) -> Result<Attributes, Errno> {
        let d = &self.node(ino)?.d;
        Ok(Attributes {
            kind: kind_of(d.file_type()),
            mode: d.permissions(),
            uid: d.uid,
            gid: d.gid,
            nlink: u32::try_from(d.nlink).unwrap_or(0),
            generation: d.generation,
            size_bytes: d.size,
            allocated_bytes: d.blocks.saturating_mul(512),
            atime_ns: date_of(d.atime),
            mtime_ns: date_of(d.mtime),
            ctime_ns: date_of(d.ctime),
        })
    }

    fn load(&mut self, cx: &mut Cx, ino: Ino) -> Result<(), Errno> {
        self.node(ino)?;
        cx.read(&self.inode_block(ino));
        Ok(())
    }

    fn unload(&mut self, cx: &mut Cx, ino: Ino) {
        // Where nothing is pending, the inode, which nobody has used for long, need not be looked at.
        if !self.pending.is_empty() && self.inodes.get(ino.0).is_some_and(|node| node.pending) {
            self.update(cx, ino);
        }
    }

    fn set_attributes(&mut self, cx: &mut Cx, ino: Ino, set: &SetAttributes) -> Result<(), Errno> {
        let now = time_of(cx.date_ns());
        let d = &mut self.node_mut(ino)?.d;
        if let Some(permissions) = set.mode {
            d.mode = d.mode & mode::IFMT | permissions & mode::PERMISSIONS;
        }
        d.uid = set.uid.unwrap_or(d.uid);
        d.gid = set.gid.unwrap_or(d.gid);
        d.atime = set.atime_ns.map_or(d.atime, time_of);
        d.mtime = set.mtime_ns.map_or(d.mtime, time_of);
        d.ctime = now;
        self.update(cx, ino);
        Ok(())
    }

    fn accessed(&mut self, cx: &mut Cx, ino: Ino) {
        if let Some(node) = self.inodes.get_mut(ino.0) {
            node.d.atime = time_of(cx.date_ns());
            self.touch_later(ino);
        }
    }

    fn lookup(&mut self, cx: &mut Cx, dir: Ino, name: &[u8]) -> Result<Option<Ino>, Errno> {
        let found = self.directory(dir)?.find(name);
        self.search(cx, dir, found.map(|found| found.at))?;
        Ok(found.map(|found| Ino(found.ino)))
    }

    fn parent(&mut self, cx: &mut Cx, dir: Ino) -> Result<Ino, Errno> {
        let parent = self.directory(dir)?.parent().ok_or(Errno::EIO)?;
        if self.node(dir)?.d.size > 0 {
            self.directory_block(cx, dir, 0, false)?;
        }
        Ok(Ino(parent))
    }

    fn create(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], new: &NewNode<'_>) -> Result<Ino, Errno> {
        self.live_directory(dir)?;
        match new.kind {
            FileKind::Directory => self.make_directory(cx, dir, name, new),
            FileKind::File | FileKind::Symlink | FileKind::Special => self.make_file(cx, dir, name, new),
        }
    }

    fn link(&mut self, cx: &mut Cx, ino: Ino, dir: Ino, name: &[u8]) -> Result<(), Errno> {
        self.live_directory(dir)?;
        let file_type = self.file_type(ino)?;
        self.add_link(cx, ino)?;
        let entered = self.enter(cx, dir, name, ino, file_type);
        if entered.is_err() {
            self.drop_link(cx, ino, 1)?;
        }
        entered
    }

    fn unlink(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Errno> {
        self.leave(cx, dir, name)?;
        self.drop_link(cx, ino, 1)
    }

    fn rmdir(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Errno> {
        if !self.directory(ino)?.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.leave(cx, dir, name)?;
        self.drop_link(cx, dir, 1)?;
        self.drop_link(cx, ino, 2)
    }

    fn rename(&mut self, cx: &mut Cx, rename: &Rename<'_>) -> Result<(), Errno> {
        let Rename { from_dir, from_name, ino, to_dir, to_name, replaced } = *rename;
        self.live_directory(to_dir)?;
        let file_type = self.file_type(ino)?;
        let directory = file_type == FileType::Directory;
        let moves = directory && from_dir != to_dir;
        if moves {
            self.room_for_link(to_dir)?;
        }
        // A link for the time that it has two names.
        self.add_link(cx, ino)?;
        if self.planted == Some(Bug::OldNameFirst) {
            self.leave(cx, from_dir, from_name)?;
        }
        let named = match replaced {
            Some(old) => self
                .replace(cx, rename, old, directory)
                .and_then(|()| if moves { self.add_link(cx, to_dir) } else { Ok(()) }),
            None if moves => self.add_link(cx, to_dir).and_then(|()| {
                let entered = self.enter(cx, to_dir, to_name, ino, file_type);
                if entered.is_err() {
                    self.drop_link(cx, to_dir, 1)?;
                }
                entered
            }),
            None => self.enter(cx, to_dir, to_name, ino, file_type),
        };
        if let Err(error) = named {
            self.drop_link(cx, ino, 1)?;
            return Err(error);
        }
        if moves {
            self.drop_link(cx, from_dir, 1)?;
            self.move_parent(cx, ino, to_dir)?;
        }
        if self.planted != Some(Bug::OldNameFirst) {
            self.leave(cx, from_dir, from_name)?;
        }
        self.drop_link(cx, ino, 1)?;
        Ok(())
    }

    fn release(&mut self, cx: &mut Cx, ino: Ino) {
        cx.cpu(cx.costs().inode_ns);
        let Ok(node) = self.node(ino) else { return };
        let (directory, has_blocks) = (node.d.is_dir(), node.d.has_blocks(&self.g));
        if has_blocks && (node.d.blocks > 0 || node.d.size > 0) {
            // It has no other user, and nothing in it can be missing: cutting it cannot fail.
            let cut = self.shorten(cx, ino, 0);
            debug_assert!(cut.is_ok(), "inode {}: {cut:?}", ino.0);
        }
        let Ok(node) = self.node_mut(ino) else { return };
        if node.d.extb != [0; 2] {
            let was = node.clone();
            (node.d.extsize, node.d.extb) = (0, [0; 2]);
            let extended: Vec<Piece> = self.extended_pieces(&was).collect();
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

    fn readlink(&mut self, cx: &mut Cx, ino: Ino) -> Result<Vec<u8>, Errno> {
        if let Some(piece) = self.target_block(ino)? {
            let block = self.file_block(self.node(ino)?, ino, 0, piece);
            cx.read(&block);
        }
        match &self.node(ino)?.body {
            Body::Symlink(target) => Ok(target.to_vec()),
            Body::File | Body::Directory(_) => Err(Errno::EINVAL),
        }
    }

    fn readdir(
        &mut self,
        cx: &mut Cx,
        dir: Ino,
        cookie: u64,
        sink: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<(), Errno> {
        let bsize = u64::from(self.g.bsize);
        let (mut at, mut read_to) = (cookie, cookie / bsize * bsize);
        while at < self.node(dir)?.d.size {
            if at >= read_to {
                self.directory_block(cx, dir, at, false)?;
                read_to = (at / bsize + 1) * bsize;
            }
            let Some((here, head, name)) = self.directory(dir)?.entry_from(at) else { return Ok(()) };
            if here >= read_to {
                // The next entry is in a block not read yet.
                at = here;
                continue;
            }
            let behind = Directory::behind(here, &head);
            let kind = kind_of(self.inodes.get(head.ino).and_then(|node| node.d.file_type()));
            if !sink(Entry { name, ino: Ino(head.ino), kind, cookie: behind }) {
                return Ok(());
            }
            at = behind;
        }
        Ok(())
    }

    fn map(&mut self, cx: &mut Cx, ino: Ino, lbn: Lbn, ahead: u32) -> Result<Option<Mapped>, Errno> {
        let Ok(lbn) = u64::try_from(lbn.0) else { return Ok(None) };
        if lbn >= NDADDR as u64 {
            let n = self.g.nindir();
            let Some(way) = super::pointers::way(lbn, n) else { return Ok(None) };
            for number in way.numbers.iter().take(way.slot + 1) {
                let addr = self.node(ino)?.indirects.as_ref().map_or(0, |indirects| indirects.addr(*number, n));
                if addr == 0 {
                    return Ok(None);
                }
                cx.read(&self.indirect_block(ino, *number, addr));
            }
        }
        let Some(piece) = self.piece(ino, lbn)? else { return Ok(None) };
        let ahead = self.run_ahead(ino, lbn, ahead)?;
        Ok(Some(Mapped { pbn: self.pbn_of(piece.addr), bytes: piece.bytes, ahead }))
    }

    fn write(&mut self, cx: &mut Cx, range: &WriteRange<'_>) -> Result<u64, Errno> {
        let (ino, bsize) = (range.ino, u64::from(self.g.bsize));
        let size_before = self.node(ino)?.d.size;
        let mut done = 0;
        let mut failed = None;
        while done < range.len_bytes {
            let at = range.offset + done;
            let len = (bsize - at % bsize).min(range.len_bytes - done) as u32;
            if let Err(error) = self.write_piece(cx, range, at, len, done) {
                failed = Some(error);
                break;
            }
            done += u64::from(len);
        }
        if let Some(error) = failed {
            // The file may have been lengthened for a block that then was not to be had.
            let length = if done > 0 { size_before.max(range.offset + done) } else { size_before };
            if self.node(ino)?.d.size > length {
                self.shorten(cx, ino, length)?;
            }
            if done == 0 {
                return Err(error);
            }
        }
        self.update(cx, ino);
        if let Some(how) = range.sync {
            self.fsync(cx, ino, how)?;
        }
        Ok(done)
    }

    fn truncate(&mut self, cx: &mut Cx, ino: Ino, size_bytes: u64) -> Result<(), Errno> {
        if size_bytes > self.file_max_bytes() {
            return Err(Errno::EFBIG);
        }
        self.stamp_modified(cx, ino)?;
        self.set_length(cx, ino, size_bytes)?;
        self.update_in_order(cx, ino);
        Ok(())
    }

    fn reallocate(&mut self, cx: &mut Cx, ino: Ino, first: Lbn, blocks: u32) -> bool {
        self.reallocate_cluster(cx, ino, first, blocks)
    }

    fn fsync(&mut self, cx: &mut Cx, ino: Ino, how: Durability) -> Result<(), Errno> {
        let inodes = self.inode_block(ino).id;
        self.moved_data_first(cx, |holder, data| data.ino == ino || holder == inodes);
        cx.flush_file(self, ino, how);
        if self.node(ino)?.pending {
            self.update(cx, ino);
        }
        let block = self.inode_block(ino).id;
        if cx.cache().is_dirty(block) {
            cx.write(self, block, how != Durability::Started);
        }
        Ok(())
    }

    fn sync(&mut self, cx: &mut Cx, how: Durability) -> Result<(), Errno> {
        self.settle_pending(cx);
        self.moved_data_first(cx, |_, _| true);
        cx.flush_all(self, how);
        if self.modified {
            self.write_superblock(cx, how != Durability::Started);
        }
        Ok(())
    }

    fn write_back(&mut self, cx: &mut Cx, blocks: &[BlockId]) {
        self.moved_data_first(cx, |holder, _| blocks.contains(&holder));
        cx.write_in_place(self, blocks);
    }

    fn extents(&self, ino: Ino) -> Result<Vec<Extent>, Errno> {
        let mut extents: Vec<Extent> = Vec::new();
        self.each_block(ino, &mut |lbn, piece| {
            let (logical_bytes, len) = (lbn << self.g.bshift, u64::from(piece.bytes));
            let physical_bytes = piece.addr.unsigned_abs() << self.g.fshift;
            match extents.last_mut() {
                Some(last)
                    if last.logical_bytes + last.len_bytes == logical_bytes
                        && last.physical_bytes + last.len_bytes == physical_bytes =>
                {
                    last.len_bytes += len;
                }
                _ => {
                    let flags = ExtentFlags::default();
                    extents.push(Extent { logical_bytes, physical_bytes, len_bytes: len, flags });
                }
            }
        })?;
        Ok(extents)
    }

    fn free_extents(&self) -> Vec<FreeExtent> {
        let mut extents: Vec<FreeExtent> = Vec::new();
        for group in 0..self.g.ncg {
            let base = self.g.group_base(GroupNo(group));
            self.space.free_runs(GroupNo(group), &mut |from, frags| {
                let physical_bytes = self.g.byte_of(FragAddr(base.0 + u64::from(from)));
                let len_bytes = u64::from(frags) << self.g.fshift;
                match extents.last_mut() {
                    Some(last) if last.physical_bytes + last.len_bytes == physical_bytes => last.len_bytes += len_bytes,
                    _ => extents.push(FreeExtent { physical_bytes, len_bytes }),
                }
            });
        }
        extents
    }

    fn usage(&self) -> FsUsage {
        let bytes = |frags: i64| u64::try_from(frags).unwrap_or(0) << self.g.fshift;
        let free = self.space.free_frags();
        FsUsage {
            total_bytes: bytes(self.tuning.dsize),
            free_bytes: bytes(free),
            available_bytes: bytes(self.tuning.available(free)),
            total_inodes: u64::from(self.g.inodes()),
            free_inodes: u64::try_from(self.space.total.nifree).unwrap_or(0),
            block_bytes: self.g.fsize,
        }
    }

    fn shape(&self) -> posix::Shape {
        let groups = posix::GroupShape {
            first_bytes: 0,
            len_bytes: u64::from(self.g.fpg) << self.g.fshift,
            count: self.g.ncg.into(),
            inodes: self.g.ipg.into(),
        };
        posix::Shape { block_bytes: self.g.bsize, groups: Some(groups) }
    }
}

impl Ffs {
    /// The block that a long symbolic link's target is in.
    fn target_block(&self, ino: Ino) -> Result<Option<Piece>, Errno> {
        let node = self.node(ino)?;
        if node.d.is_short_symlink(&self.g) { Ok(None) } else { self.piece(ino, 0) }
    }

    /// Every block of a file in its order, holes left out.
    pub(super) fn each_block(&self, ino: Ino, each: &mut dyn FnMut(u64, Piece)) -> Result<(), Errno> {
        let node = self.node(ino)?;
        if !node.d.has_blocks(&self.g) {
            return Ok(());
        }
        let blocks = node.d.size.div_ceil(self.g.bsize.into());
        let direct = (0..).zip(&node.d.db).take(blocks.min(NDADDR as u64) as usize);
        for (lbn, addr) in direct.filter(|(_, addr)| **addr != 0) {
            each(lbn, Piece { addr: *addr, bytes: self.g.block_bytes(node.d.size, lbn) });
        }
        let leaves = node.indirects.iter().flat_map(|indirects| &indirects.leaves);
        for (first, leaf) in leaves {
            for (lbn, addr) in (*first..blocks).zip(&leaf.pointers).filter(|(_, addr)| **addr != 0) {
                each(lbn, Piece { addr: *addr, bytes: self.g.bsize });
            }
        }
        Ok(())
    }
}
