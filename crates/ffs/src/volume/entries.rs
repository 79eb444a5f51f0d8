//! Names in directories: looked up, entered, taken out, and with them the blocks of directories.

use super::{Body, Ffs, Piece};
use crate::format::FileType;
use crate::planted::Bug;
use kernel::{Cx, Ino};
use posix::Errno;
use ufs::directory::{Directory, Slot};

impl Ffs {
    pub(super) fn directory(&self, ino: Ino) -> Result<&Directory, Errno> {
        match &self.node(ino)?.body {
            Body::Directory(directory) => Ok(directory),
            Body::File | Body::Symlink(_) => Err(Errno::ENOTDIR),
        }
    }

    pub(super) fn directory_mut(&mut self, ino: Ino) -> Result<&mut Directory, Errno> {
        match &mut self.node_mut(ino)?.body {
            Body::Directory(directory) => Ok(directory),
            Body::File | Body::Symlink(_) => Err(Errno::ENOTDIR),
        }
    }

    /// Has the block of a directory in memory that a byte is in; `change` marks it as changed.
    pub(super) fn directory_block(&mut self, cx: &mut Cx, dir: Ino, at: u64, change: bool) -> Result<(), Errno> {
        let lbn = at >> self.g.bshift;
        let Some(piece) = self.piece(dir, lbn)? else { return Err(Errno::EIO) };
        let block = self.file_block(self.node(dir)?, dir, lbn, piece);
        if change {
            cx.change(&block);
        } else {
            cx.read(&block);
        }
        Ok(())
    }

    /// The same for a change whose order matters.
    fn directory_block_in_order(&mut self, cx: &mut Cx, dir: Ino, at: u64) -> Result<(), Errno> {
        self.directory_block(cx, dir, at, true)?;
        let lbn = kernel::Lbn((at >> self.g.bshift) as i64);
        self.in_order(cx, kernel::BlockId { ino: dir, lbn });
        Ok(())
    }

    /// Reads a directory as far as looking a name up does: from where the last one was found, round to there, or to the name
    /// (`ufs_lookup`).
    pub(super) fn search(&mut self, cx: &mut Cx, dir: Ino, found: Option<u32>) -> Result<(), Errno> {
        let directory = self.directory(dir)?;
        let (len, entries) = (directory.len_bytes(), u64::from(directory.entries()));
        let bsize = u64::from(self.g.bsize);
        let start = u64::from(directory.last_found) / bsize * bsize;
        let start = if start < len { start } else { 0 };
        let target = found.map(u64::from);
        let mut at = start;
        let mut passed = 0;
        loop {
            self.directory_block(cx, dir, at, false)?;
            let end = (at + bsize).min(len);
            if let Some(target) = target.filter(|target| (at..end).contains(target)) {
                passed += target - at;
                break;
            }
            passed += end - at;
            at = if end >= len { 0 } else { end };
            if at == start {
                break;
            }
        }
        cx.cpu(cx.costs().entry_ns * (entries * passed / len.max(1) + 1));
        if let Some(found) = found {
            self.directory_mut(dir)?.last_found = found;
        }
        Ok(())
    }

    /// Enters a name that is not there (`ufs_direnter`).
    pub(super) fn enter(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], ino: Ino, kind: FileType) -> Result<(), Errno> {
        cx.cpu(cx.costs().name_ns);
        let directory = self.directory(dir)?;
        let slot = directory.slot(name.len());
        let (old_len, new_len) = (directory.len_bytes(), directory.len_after(slot));
        if slot == Slot::Append {
            self.grow_directory(cx, dir, old_len, new_len)?;
        } else if new_len < old_len {
            self.directory_mut(dir)?.cut(new_len);
            self.shorten(cx, dir, new_len)?;
        }
        let at = self.directory_mut(dir)?.enter(slot, name, ino.0, kind.entry_type());
        self.stamp_modified(cx, dir)?;
        self.update(cx, dir);
        self.directory_block_in_order(cx, dir, at)?;
        if slot == Slot::Append && self.planted != Some(Bug::DirectoryLengthLate) {
            self.update_in_order(cx, dir);
        }
        Ok(())
    }

    /// Room for another chunk.
    fn grow_directory(&mut self, cx: &mut Cx, dir: Ino, old_len: u64, new_len: u64) -> Result<(), Errno> {
        let lbn = old_len >> self.g.bshift;
        let end = ((new_len - 1) & u64::from(self.g.bsize - 1)) as u32 + 1;
        let target = self.block_for_writing(cx, dir, lbn, end)?;
        let block = self.file_block(self.node(dir)?, dir, lbn, target.piece);
        if target.fresh {
            cx.make(&block);
        } else {
            cx.change(&block);
        }
        self.node_mut(dir)?.d.size = new_len;
        Ok(())
    }

    /// Takes a name out (`ufs_dirremove`).
    pub(super) fn leave(&mut self, cx: &mut Cx, dir: Ino, name: &[u8]) -> Result<(), Errno> {
        cx.cpu(cx.costs().name_ns);
        let found = self.directory(dir)?.find(name).ok_or(Errno::ENOENT)?;
        let at = self.directory_mut(dir)?.leave(name, found.at);
        self.stamp_modified(cx, dir)?;
        self.update(cx, dir);
        if self.planted == Some(Bug::NameOutlivesInode) {
            return self.directory_block(cx, dir, at, true);
        }
        self.directory_block_in_order(cx, dir, at)
    }

    /// Makes a name stand for another inode (`ufs_dirrewrite`).
    pub(super) fn reenter(
        &mut self,
        cx: &mut Cx,
        dir: Ino,
        name: &[u8],
        ino: Ino,
        kind: FileType,
    ) -> Result<(), Errno> {
        cx.cpu(cx.costs().name_ns);
        let format = self.dir_format();
        let directory = self.directory_mut(dir)?;
        let found = directory.find(name).ok_or(Errno::ENOENT)?;
        directory.rewrite(found.at, ino.0, Some(if format.old { 0 } else { kind.entry_type() }));
        self.stamp_modified(cx, dir)?;
        self.update(cx, dir);
        self.directory_block_in_order(cx, dir, found.at.into())
    }

    /// Makes a directory's `..` lead elsewhere.
    pub(super) fn move_parent(&mut self, cx: &mut Cx, dir: Ino, parent: Ino) -> Result<(), Errno> {
        self.directory_mut(dir)?.set_parent(parent.0);
        self.directory_block_in_order(cx, dir, 0)
    }

    /// The first block of a new directory.
    pub(super) fn first_chunk(&mut self, cx: &mut Cx, dir: Ino) -> Result<(), Errno> {
        let len = self.directory(dir)?.len_bytes();
        let target = self.block_for_writing(cx, dir, 0, len as u32)?;
        let block = self.file_block(self.node(dir)?, dir, 0, Piece { ..target.piece });
        cx.make(&block);
        self.node_mut(dir)?.d.size = len;
        self.update(cx, dir);
        self.in_order(cx, block.id);
        self.update_in_order(cx, dir);
        Ok(())
    }

    pub(super) fn stamp_modified(&mut self, cx: &Cx, ino: Ino) -> Result<(), Errno> {
        let now = super::time_of(cx.date_ns());
        let d = &mut self.node_mut(ino)?.d;
        (d.mtime, d.ctime) = (now, now);
        Ok(())
    }
}
