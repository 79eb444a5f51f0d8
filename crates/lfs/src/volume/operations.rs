//! The operations of [`Volume`].

use super::{Body, Lfs, UNWRITTEN, date_of, time_of};
use crate::checkpoint::IFILE;
use crate::format::{Dinode, FileType, NDADDR, PF_CLEAN, ROOT_INO, SYMLINK_AREA_BYTES, mode};
use crate::planted::Bug;
use crate::policy::CleanerPolicy;
use crate::segment::{INODE_BYTES, Scope};
use kernel::{
    Attributes, BlockId, Cx, Durability, Entry, Ino, Lbn, Mapped, NewNode, Rename, SetAttributes, Volume, WriteRange,
};
use posix::{Errno, Extent, ExtentFlags, FileKind, FreeExtent, FsUsage};
use ufs::directory::Directory;
use ufs::insert::Special;

/// How often a checkpoint is made where nothing else asks for one (`update`, every 30 seconds).
const CHECKPOINT_NS: u64 = 30_000_000_000;

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

impl Lfs {
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

    fn add_links(&mut self, cx: &mut Cx, ino: Ino, links: i16) -> Result<(), Errno> {
        let now = time_of(cx.date_ns());
        let d = &mut self.node_mut(ino)?.d;
        d.nlink = d.nlink.checked_add(links).ok_or(Errno::EMLINK)?.max(0);
        d.ctime = now;
        self.operate(cx, ino);
        Ok(())
    }

    /// Takes back an inode whose name could not be entered.
    fn unmake(&mut self, cx: &mut Cx, ino: Ino) {
        if let Some(node) = self.inodes.get_mut(ino.0) {
            node.d.nlink = 0;
        }
        self.release(cx, ino);
    }

    /// Room for a directory operation: a block more of the directory with what is above it, a block of the ifile, what is new.
    fn admit_name(&mut self, cx: &mut Cx, new_blocks: u64) -> Result<(), Errno> {
        let blocks = 2 + new_blocks;
        self.admit(cx, new_blocks * u64::from(self.g.frag), blocks * u64::from(self.g.bsize))
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
        self.admit_name(cx, 3)?;
        let (file_type, device) = special.parts();
        let new = NewNode { kind: FileKind::Special, mode: permissions, target: b"" };
        let made = self.make_typed(cx, dir, name, &new, file_type, device);
        self.settle(cx);
        made
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
        let mut d = self.fresh_dinode(cx, file_type.mode_bits() | new.mode & mode::PERMISSIONS);
        d.nlink = 1;
        d.db[0] = device.into();
        let body = match new.kind {
            FileKind::Symlink => Body::Symlink(new.target.into()),
            _ => Body::File,
        };
        let ino = self.new_node(cx, d, body)?;
        let linked = match new.kind {
            FileKind::Symlink => self.write_target(cx, ino, new.target),
            _ => Ok(()),
        };
        if let Err(error) = linked.and_then(|()| self.enter(cx, dir, name, ino, file_type)) {
            self.unmake(cx, ino);
            return Err(error);
        }
        Ok(ino)
    }

    /// Where a symbolic link leads: in the inode if it is short, else in a block.
    fn write_target(&mut self, cx: &mut Cx, ino: Ino, target: &[u8]) -> Result<(), Errno> {
        if target.len() > self.g.bsize as usize {
            return Err(Errno::ENAMETOOLONG);
        }
        if target.len() < self.g.maxsymlinklen as usize && target.len() <= SYMLINK_AREA_BYTES {
            let d = &mut self.node_mut(ino)?.d;
            d.set_pointer_area(target);
            d.size = target.len() as u64;
        } else {
            let wanted = self.block_for_writing(cx, ino, 0, target.len() as u32)?;
            let block = self.file_block(self.node(ino)?, ino, 0, wanted.addr, wanted.bytes);
            cx.make(&block);
            self.node_mut(ino)?.d.size = target.len() as u64;
        }
        Ok(())
    }

    fn make_directory(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], new: &NewNode<'_>) -> Result<Ino, Errno> {
        self.room_for_link(dir)?;
        let mut d = self.fresh_dinode(cx, FileType::Directory.mode_bits() | new.mode & mode::PERMISSIONS);
        d.nlink = 2;
        let kind = FileType::Directory.entry_type();
        let empty = Box::new(Directory::new(crate::format::DIR_FORMAT, 0, dir.0, kind));
        let ino = self.new_node(cx, d, Body::Directory(empty))?;
        let made = self.first_chunk(cx, ino, dir).and_then(|()| self.enter(cx, dir, name, ino, FileType::Directory));
        if let Err(error) = made {
            self.unmake(cx, ino);
            return Err(error);
        }
        self.add_links(cx, dir, 1)?;
        Ok(ino)
    }

    /// Writes one piece of a range, inside one block.
    fn write_piece(&mut self, cx: &mut Cx, range: &WriteRange<'_>, at: u64, len: u32, done: u64) -> Result<(), Errno> {
        let (ino, bsize) = (range.ino, self.g.bsize);
        let lbn = at >> self.g.bshift;
        let within = (at & u64::from(bsize - 1)) as u32;
        // The block and what is above it have to have room in the log.
        let above = if lbn < NDADDR as u64 { 0 } else { 3 };
        self.make_room(cx, u64::from(bsize) * (1 + above), self.reserve_bytes())?;
        let target = self.block_for_writing(cx, ino, lbn, within + len)?;
        let block = self.file_block(self.node(ino)?, ino, lbn, target.addr, target.bytes);
        if target.fresh {
            cx.take(&block);
            if len < target.bytes {
                cx.zero(block.id, lbn << self.g.bshift, 0);
            }
        } else if len < target.bytes {
            cx.read(&block);
        } else {
            cx.take(&block);
        }
        let bytes = range.data.and_then(|data| data.get(done as usize..(done as usize + len as usize)));
        // Dirty first: a block on its way to the disk is waited for before it changes.
        cx.dirty(block.id);
        cx.fill(block.id, at, within, len, bytes);
        let now = time_of(cx.date_ns());
        let d = &mut self.node_mut(ino)?.d;
        d.size = d.size.max(at + u64::from(len));
        (d.mtime, d.ctime) = (now, now);
        self.changed(cx, ino);
        Ok(())
    }

    /// Blocks of a file that lie behind one another from `lbn` on, at most `most`, in the same list of pointers.
    fn run_ahead(&self, ino: Ino, lbn: u64, most: u32) -> Result<u32, Errno> {
        let node = self.node(ino)?;
        let full = (node.d.size >> self.g.bshift).saturating_sub(lbn + 1);
        let most = u64::from(most).min(full) as usize;
        let way = super::pointers::way(lbn, u64::from(self.g.nindir));
        let (list, index): (&[i64], usize) = match way {
            None => (&node.d.db, lbn as usize),
            Some(way) => {
                let leaf = node.indirects.as_ref().and_then(|indirects| indirects.leaves.get(&way.leaf));
                (leaf.map(|leaf| leaf.pointers.as_slice()).unwrap_or_default(), way.index)
            }
        };
        let frag = i64::from(self.g.frag);
        let here = list.get(index..).unwrap_or_default();
        let run = here.windows(2).take(most).take_while(|pair| matches!(pair, [a, b] if *a > 0 && *b == *a + frag));
        Ok(run.count() as u32)
    }

    /// Every block of a file in its order, holes left out: number, pointer, bytes in memory.
    pub(super) fn each_block(&self, ino: Ino, each: &mut dyn FnMut(u64, i64, u32)) -> Result<(), Errno> {
        let node = self.node(ino)?;
        if !node.d.has_blocks(self.g.maxsymlinklen) {
            return Ok(());
        }
        for (lbn, addr) in (0..).zip(&node.d.db).filter(|(_, addr)| **addr != 0) {
            each(lbn, *addr, self.g.block_bytes(node.d.size, lbn));
        }
        for (first, leaf) in node.indirects.iter().flat_map(|indirects| &indirects.leaves) {
            for (lbn, addr) in (*first..).zip(&leaf.pointers).filter(|(_, addr)| **addr != 0) {
                each(lbn, *addr, self.g.bsize);
            }
        }
        Ok(())
    }

    /// Has both superblocks say that the file system is in use, or that it is not; the checkpoint is the last one made.
    fn mark(&mut self, cx: &mut Cx, clean: bool) {
        let flags = &mut self.sb.f.pflags;
        *flags = if clean { *flags | PF_CLEAN } else { *flags & !PF_CLEAN };
        for _ in 0..2 {
            self.write_superblock(cx, Durability::All);
        }
    }
}

impl Volume for Lfs {
    fn root(&self) -> Ino {
        ROOT_INO
    }

    fn block_bytes(&self) -> u32 {
        self.g.bsize
    }

    fn file_max_bytes(&self) -> u64 {
        // Block numbers are 32 bits wide in a summary.
        self.g.max_file_bytes().min((i32::MAX as u64) << self.g.bshift)
    }

    fn type_name(&self) -> &str {
        "lfs"
    }

    fn options(&self) -> String {
        self.options.to_string()
    }

    fn mount(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        cx.read(&self.superblock_block());
        for lbn in 0..u64::from(self.g.cleansz + self.g.segtabsz) {
            self.read_ifile(cx, lbn)?;
        }
        self.mounted = true;
        self.last_checkpoint_ns = cx.now_ns();
        // Roll-forward may have met inodes for which the inode map on the disk has no block.
        let blocks = u64::from(self.g.cleansz + self.g.segtabsz) + u64::from(self.map.len() / self.g.ifpb.max(1));
        while self.node(IFILE)?.d.size >> self.g.bshift < blocks {
            self.lengthen_ifile(cx)?;
        }
        // What was held open when the power failed has lost its last name.
        let orphans: Vec<u32> = self.inodes.iter().filter(|(_, node)| node.d.nlink <= 0).map(|(ino, _)| ino).collect();
        for ino in orphans {
            self.release(cx, Ino(ino));
        }
        if self.recovered {
            // Serial numbers that a crash may have left behind in the log do not come again. Within a segment they follow one
            // another.
            if self.needed_bytes(cx) + self.log.left_bytes() <= self.log.room_bytes() && self.log.advance().is_ok() {
                self.log.serial += 1 << 20;
            }
            self.ifile.touch(0);
            self.checkpoint(cx, Durability::All)?;
            self.write_superblock(cx, Durability::All);
            self.recovered = false;
        } else {
            self.mark(cx, false);
        }
        Ok(())
    }

    fn unmount(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        self.order_free_inodes(cx);
        if self.checkpoint(cx, Durability::All).is_err() {
            self.clean_for_room(cx, true)?;
            self.checkpoint(cx, Durability::All)?;
        }
        // Each superblock may make segments clean, which the ifile is to know; but it may be too full for that.
        for _ in 0..2 {
            self.order_free_inodes(cx);
            let _ = self.checkpoint(cx, Durability::All);
        }
        self.mounted = false;
        self.mark(cx, true);
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
            allocated_bytes: u64::from(d.blocks) << self.g.fshift,
            atime_ns: date_of(d.atime),
            mtime_ns: date_of(d.mtime),
            ctime_ns: date_of(d.ctime),
        })
    }

    fn load(&mut self, cx: &mut Cx, ino: Ino) -> Result<(), Errno> {
        self.node(ino)?;
        let (lbn, _) = self.g.map_place(ino);
        self.read_ifile(cx, lbn)?;
        if let Some(block) = self.inode_block(ino) {
            cx.read(&block);
        }
        Ok(())
    }

    fn set_attributes(&mut self, cx: &mut Cx, ino: Ino, set: &SetAttributes) -> Result<(), Errno> {
        self.admit_change(cx, self.g.ibsize.into())?;
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
        self.changed(cx, ino);
        self.settle(cx);
        Ok(())
    }

    fn accessed(&mut self, cx: &mut Cx, ino: Ino) {
        // The time of access is in the inode map, so that reading does not move the inode.
        if let Some(node) = self.inodes.get_mut(ino.0) {
            node.d.atime = time_of(cx.date_ns());
            self.ifile.touch(self.g.map_place(ino).0);
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
        self.admit_name(cx, 4)?;
        let made = match new.kind {
            FileKind::Directory => self.make_directory(cx, dir, name, new),
            FileKind::File | FileKind::Symlink | FileKind::Special => self.make_file(cx, dir, name, new),
        };
        self.settle(cx);
        made
    }

    fn link(&mut self, cx: &mut Cx, ino: Ino, dir: Ino, name: &[u8]) -> Result<(), Errno> {
        self.live_directory(dir)?;
        self.room_for_link(ino)?;
        self.admit_name(cx, 3)?;
        let file_type = self.file_type(ino)?;
        self.enter(cx, dir, name, ino, file_type)?;
        self.add_links(cx, ino, 1)?;
        self.settle(cx);
        Ok(())
    }

    fn unlink(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Errno> {
        self.admit_change(cx, 2 * u64::from(self.g.bsize))?;
        self.leave(cx, dir, name)?;
        self.add_links(cx, ino, -1)?;
        self.settle(cx);
        Ok(())
    }

    fn rmdir(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Errno> {
        if !self.directory(ino)?.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.admit_change(cx, 2 * u64::from(self.g.bsize))?;
        self.leave(cx, dir, name)?;
        self.add_links(cx, dir, -1)?;
        self.add_links(cx, ino, -2)?;
        self.settle(cx);
        Ok(())
    }

    fn rename(&mut self, cx: &mut Cx, rename: &Rename<'_>) -> Result<(), Errno> {
        let Rename { from_dir, from_name, ino, to_dir, to_name, replaced } = *rename;
        self.live_directory(to_dir)?;
        let file_type = self.file_type(ino)?;
        let directory = file_type == FileType::Directory;
        let moves = directory && from_dir != to_dir;
        if let Some(old) = replaced.filter(|_| directory)
            && !self.directory(old)?.is_empty()
        {
            return Err(Errno::ENOTEMPTY);
        }
        if moves && replaced.is_none() {
            self.room_for_link(to_dir)?;
        }
        self.admit_name(cx, if replaced.is_some() { 0 } else { 3 })?;
        match replaced {
            Some(old) => {
                self.reenter(cx, to_dir, to_name, ino, file_type)?;
                if directory {
                    // The replaced directory's `..` is gone; that of the moved one may come.
                    self.add_links(cx, to_dir, -1)?;
                    self.add_links(cx, old, -2)?;
                } else {
                    self.add_links(cx, old, -1)?;
                }
            }
            None => self.enter(cx, to_dir, to_name, ino, file_type)?,
        }
        if moves {
            self.add_links(cx, to_dir, 1)?;
            self.add_links(cx, from_dir, -1)?;
            self.move_parent(cx, ino, to_dir)?;
        }
        self.leave(cx, from_dir, from_name)?;
        self.add_links(cx, ino, 0)?;
        self.settle(cx);
        Ok(())
    }

    fn release(&mut self, cx: &mut Cx, ino: Ino) {
        cx.cpu(cx.costs().inode_ns);
        let Ok(node) = self.node(ino) else { return };
        if node.d.has_blocks(self.g.maxsymlinklen) && (node.d.blocks > 0 || node.d.size > 0) {
            // It has no other user, and nothing in it can be missing: cutting it cannot fail.
            let cut = self.shorten(cx, ino, 0);
            debug_assert!(cut.is_ok(), "inode {}: {cut:?}", ino.0);
        }
        cx.forget_file(ino);
        let Some(node) = self.inodes.remove(ino.0) else { return };
        debug_assert_eq!(node.d.blocks, 0, "inode {}", ino.0);
        if node.dirop {
            self.operations -= 1;
            if !node.daddr.is_none() {
                // The log says that it is gone together with its name.
                self.dead.push(Dinode { nlink: 0, size: 0, db: [0; NDADDR], ib: Default::default(), ..node.d });
            }
        }
        self.left(node.daddr.0.into(), INODE_BYTES);
        self.map.give_back(ino.0);
        self.ifile.touch(0);
        self.ifile.touch(self.g.map_place(ino).0);
    }

    fn readlink(&mut self, cx: &mut Cx, ino: Ino) -> Result<Vec<u8>, Errno> {
        let node = self.node(ino)?;
        if !node.d.is_short_symlink(self.g.maxsymlinklen) {
            let bytes = self.bytes_of_block(ino, 0)?;
            let block = self.file_block(node, ino, 0, self.pointer(ino, 0)?, bytes);
            cx.read(&block);
        }
        match &self.node(ino)?.body {
            Body::Symlink(target) => Ok(target.to_vec()),
            Body::File | Body::Directory(_) | Body::Ifile => Err(Errno::EINVAL),
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
        let Ok(number) = u64::try_from(lbn.0) else { return Ok(None) };
        let n = u64::from(self.g.nindir);
        if let Some(way) = super::pointers::way(number, n) {
            for indirect in way.numbers.iter().take(way.slot + 1) {
                let addr = self.indirect_addr(ino, *indirect);
                if addr == 0 {
                    return Ok(None);
                }
                cx.read(&self.indirect_block(ino, *indirect, addr));
            }
        }
        let addr = self.pointer(ino, number)?;
        let bytes = self.bytes_of_block(ino, number)?;
        if addr == 0 || bytes == 0 {
            return Ok(None);
        }
        debug_assert!(addr != UNWRITTEN || cx.cache().contains(BlockId { ino, lbn }), "inode {} block {number}", ino.0);
        let ahead = if addr > 0 { self.run_ahead(ino, number, ahead)? } else { 0 };
        Ok(Some(Mapped { pbn: self.pbn_of(addr), bytes, ahead }))
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
        match range.sync {
            Some(how) => self.fsync(cx, ino, how)?,
            None => self.settle(cx),
        }
        Ok(done)
    }

    fn truncate(&mut self, cx: &mut Cx, ino: Ino, size_bytes: u64) -> Result<(), Errno> {
        if size_bytes > self.file_max_bytes() {
            return Err(Errno::EFBIG);
        }
        let bytes = 5 * u64::from(self.g.bsize);
        if size_bytes > self.node(ino)?.d.size {
            self.make_room(cx, bytes, self.reserve_bytes())?;
        } else {
            self.admit_change(cx, bytes)?;
        }
        self.stamp_modified(cx, ino)?;
        self.set_length(cx, ino, size_bytes)?;
        self.settle(cx);
        Ok(())
    }

    fn fsync(&mut self, cx: &mut Cx, ino: Ino, how: Durability) -> Result<(), Errno> {
        if how == Durability::Started {
            // A daemon: as good a time as any to write everything.
            let old = cx.now_ns().saturating_sub(self.last_checkpoint_ns) >= CHECKPOINT_NS;
            if old || ino == IFILE {
                return self.sync(cx, how);
            }
            if self.node(ino).is_ok_and(|node| node.dirty) {
                self.write_dirty(cx);
            }
            return Ok(());
        }
        if self.node(ino)?.dirty && !self.keep_room(cx) && self.options.cleaner == CleanerPolicy::Off {
            // Without a cleaner, what is left is for unmounting.
            return Err(Errno::ENOSPC);
        }
        let node = self.node(ino)?;
        let (dirty, dirop) = (node.dirty, node.dirop);
        if dirty {
            let one = [ino];
            let scope = if dirop { Scope::Operations } else { Scope::Files(&one) };
            if self.flush(cx, scope, 0).is_err() {
                self.clean_for_room(cx, true)?;
                self.flush(cx, scope, 0)?;
            }
        }
        if !self.planted.has(Bug::FsyncReturnsEarly) {
            self.settle_log(cx);
        }
        Ok(())
    }

    fn sync(&mut self, cx: &mut Cx, how: Durability) -> Result<(), Errno> {
        if !self.keep_room(cx) && self.options.cleaner == CleanerPolicy::Off {
            // Without a cleaner, what is left is for unmounting.
            return Err(Errno::ENOSPC);
        }
        if self.checkpoint(cx, how).is_err() {
            self.clean_for_room(cx, true)?;
            self.checkpoint(cx, how)?;
        }
        Ok(())
    }

    fn write_back(&mut self, cx: &mut Cx, blocks: &[BlockId]) {
        if blocks.iter().any(|id| id.ino == IFILE && cx.cache().is_dirty(*id)) {
            // Nobody can be told if the disk is full; the blocks stay dirty.
            let _ = self.sync(cx, Durability::Started);
        } else if blocks.iter().any(|id| cx.cache().is_dirty(*id)) {
            self.write_dirty(cx);
        }
    }

    fn wants_work(&self, cx: &Cx) -> bool {
        self.mounted && self.wants_cleaning(cx)
    }

    fn idle_work_after_ns(&self, cx: &Cx) -> Option<u64> {
        if self.mounted { self.idle_cleaning_after_ns(cx) } else { None }
    }

    fn work(&mut self, cx: &mut Cx, idle: bool) -> bool {
        // The daemon may wake up while the last writes of unmounting are on their way.
        self.mounted && self.clean_in_background(cx, idle)
    }

    fn extents(&self, ino: Ino) -> Result<Vec<Extent>, Errno> {
        let mut extents: Vec<Extent> = Vec::new();
        self.each_block(ino, &mut |lbn, addr, bytes| {
            let Ok(frag) = u64::try_from(addr) else { return };
            let (logical_bytes, len) = (lbn << self.g.bshift, u64::from(bytes));
            let physical_bytes = frag << self.g.fshift;
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
        for (from, to) in self.free_places() {
            let (physical_bytes, len_bytes) = (self.g.byte_of(from), u64::from(to.0 - from.0) << self.g.fshift);
            match extents.last_mut() {
                Some(last) if last.physical_bytes + last.len_bytes == physical_bytes => last.len_bytes += len_bytes,
                _ => extents.push(FreeExtent { physical_bytes, len_bytes }),
            }
        }
        extents
    }

    fn usage(&self) -> FsUsage {
        let bytes = |frags: u64| frags << self.g.fshift;
        let free = bytes(self.free_frags());
        let new_inodes = self.free_frags() / u64::from(self.g.ib_frags()) * u64::from(self.g.inopb);
        FsUsage {
            total_bytes: bytes(self.capacity_frags()),
            free_bytes: free,
            available_bytes: free,
            total_inodes: u64::from(self.inodes.len()) + new_inodes,
            free_inodes: new_inodes,
            block_bytes: self.g.fsize,
        }
    }
}
