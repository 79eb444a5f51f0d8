//! Reading and writing files.

use super::Lab;
use super::descriptors::Description;
use crate::program::Direction;
use crate::{BlockId, Contents, Durability, Ino, Lbn, Volume, WriteRange, readahead};
use posix::{Errno, Fd, FileKind, OpenFlags, Reply, Residency, Whence};

/// What one call moves at most (`MAX_RW_COUNT` of linux/fs.h).
const CALL_BYTES_MAX: u64 = 0x7fff_f000;
/// Memory is made room in after so much has been moved: a large call may not fill memory beyond its size.
const PIECE_BYTES: u64 = 64 << 10;
/// The largest offset there is.
const OFFSET_MAX: u64 = i64::MAX as u64;

impl<V: Volume> Lab<V> {
    pub(super) fn read(&mut self, fd: Fd, offset: Option<u64>, len_bytes: u64) -> Result<Reply, Errno> {
        let description = self.descriptors.get(fd)?;
        description.readable()?;
        let at = offset.unwrap_or(description.offset);
        match description.kind {
            FileKind::Directory => return Err(Errno::EISDIR),
            _ if at > OFFSET_MAX => return Err(Errno::EINVAL),
            FileKind::File => {}
            FileKind::Symlink | FileKind::Special => return Err(Errno::EINVAL),
        }
        let ino = description.ino;
        let size_bytes = self.volume.attributes(ino)?.size_bytes;
        let len = size_bytes.saturating_sub(at).min(len_bytes.min(CALL_BYTES_MAX));
        if len > 0 {
            self.read_blocks(ino, at, len, size_bytes)?;
            if description.flags.direct {
                self.drop_clean_data(ino, at, len);
            }
            if !description.flags.noatime {
                self.volume.accessed(&mut self.cx, ino);
            }
        }
        if offset.is_none() {
            self.descriptors.set_offset(fd, at + len);
        }
        Ok(Reply::Count(len))
    }

    fn read_blocks(&mut self, ino: Ino, offset: u64, len: u64, size_bytes: u64) -> Result<(), Errno> {
        let block = u64::from(self.volume.block_bytes());
        let (first, end) = (offset / block, (offset + len).div_ceil(block));
        let per_piece = (PIECE_BYTES / block).max(1);
        for lbn in first..end {
            readahead::read(&mut self.volume, &mut self.cx, ino, Lbn(lbn as i64), size_bytes)?;
            let (from, to) = ((lbn * block).max(offset), ((lbn + 1) * block).min(offset + len));
            self.cx.cpu(self.cx.costs.copy_ns(to - from));
            if (lbn - first) % per_piece == per_piece - 1 {
                self.make_room();
            }
        }
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        fd: Fd,
        offset: Option<u64>,
        len_bytes: u64,
        data: Option<&[u8]>,
    ) -> Result<Reply, Errno> {
        let description = self.descriptors.get(fd)?;
        if data.is_some_and(|data| data.len() as u64 != len_bytes) {
            return Err(Errno::EINVAL);
        }
        description.writable()?;
        if description.kind != FileKind::File {
            return Err(Errno::EINVAL);
        }
        if offset.is_some_and(|offset| offset > OFFSET_MAX) {
            return Err(Errno::EINVAL);
        }
        let ino = description.ino;
        let at = match offset {
            _ if description.flags.append => self.volume.attributes(ino)?.size_bytes,
            Some(offset) => offset,
            None => description.offset,
        };
        let len = len_bytes.min(CALL_BYTES_MAX);
        if len == 0 {
            // Not even O_APPEND moves the offset then.
            return Ok(Reply::Count(0));
        }
        let written = self.write_range(ino, at, len, data, durability(&description.flags))?;
        if description.flags.direct {
            self.drop_clean_data(ino, at, written);
        }
        if offset.is_none() {
            self.descriptors.set_offset(fd, at + written);
        }
        Ok(Reply::Count(written))
    }

    fn write_range(
        &mut self,
        ino: Ino,
        offset: u64,
        len: u64,
        data: Option<&[u8]>,
        sync: Option<Durability>,
    ) -> Result<u64, Errno> {
        let most = self.volume.file_max_bytes();
        if offset >= most {
            return Err(Errno::EFBIG);
        }
        let len = len.min(most - offset);
        let mut done = 0;
        while done < len {
            let at = offset + done;
            // Whole pieces of the file, unless each would have to be waited for.
            let piece = if sync.is_some() { len } else { (PIECE_BYTES - at % PIECE_BYTES).min(len - done) };
            let data = data.and_then(|data| data.get(done as usize..(done + piece) as usize));
            self.cx.cpu(self.cx.costs.copy_ns(piece));
            let range = WriteRange { ino, offset: at, len_bytes: piece, data, sync };
            match self.volume.write(&mut self.cx, &range) {
                Ok(written) => {
                    done += written;
                    if written < piece {
                        break;
                    }
                }
                Err(_) if done > 0 => break,
                Err(errno) => return Err(errno),
            }
            self.make_room();
        }
        Ok(done)
    }

    pub(super) fn seek(&mut self, fd: Fd, offset: i64, whence: Whence) -> Result<Reply, Errno> {
        let description = self.descriptors.get(fd)?;
        description.opened()?;
        let Description { ino, kind, .. } = description;
        if kind == FileKind::Special {
            return Err(Errno::ESPIPE);
        }
        let size = self.volume.attributes(ino)?.size_bytes;
        let from = |base: u64| base.checked_add_signed(offset).filter(|to| *to <= OFFSET_MAX).ok_or(Errno::EINVAL);
        let to = match whence {
            Whence::Set => from(0)?,
            Whence::Current => from(description.offset)?,
            Whence::End => from(size)?,
            Whence::Data | Whence::Hole => {
                let at = u64::try_from(offset).ok().filter(|at| *at < size).ok_or(Errno::ENXIO)?;
                self.seek_data(ino, at, size, whence == Whence::Data)?
            }
        };
        if kind == FileKind::File && to > self.volume.file_max_bytes() {
            return Err(Errno::EINVAL);
        }
        self.descriptors.set_offset(fd, to);
        Ok(Reply::Count(to))
    }

    fn seek_data(&mut self, ino: Ino, at: u64, size: u64, data: bool) -> Result<u64, Errno> {
        let extents = self.volume.extents(ino)?;
        if data {
            let next = extents.iter().find(|e| e.logical_bytes + e.len_bytes > at);
            return next.map(|e| e.logical_bytes.max(at)).filter(|to| *to < size).ok_or(Errno::ENXIO);
        }
        let mut to = at;
        for extent in extents {
            if extent.logical_bytes > to {
                break;
            }
            to = to.max(extent.logical_bytes + extent.len_bytes);
        }
        Ok(to.min(size))
    }

    pub(super) fn copy_range(
        &mut self,
        (from, from_offset): (Fd, Option<u64>),
        (to, to_offset): (Fd, Option<u64>),
        len_bytes: u64,
    ) -> Result<Reply, Errno> {
        let (source, sink) = (self.descriptors.get(from)?, self.descriptors.get(to)?);
        if [source.kind, sink.kind].contains(&FileKind::Directory) {
            return Err(Errno::EISDIR);
        }
        if [source.kind, sink.kind] != [FileKind::File; 2] {
            return Err(Errno::EINVAL);
        }
        source.readable()?;
        sink.writable()?;
        if sink.flags.append {
            return Err(Errno::EBADF);
        }
        let (start, target) = (from_offset.unwrap_or(source.offset), to_offset.unwrap_or(sink.offset));
        let size_bytes = self.volume.attributes(source.ino)?.size_bytes;
        let len = len_bytes.min(CALL_BYTES_MAX).min(size_bytes.saturating_sub(start));
        let overlap = start < target.saturating_add(len) && target < start.saturating_add(len);
        if source.ino == sink.ino && overlap && len > 0 {
            return Err(Errno::EINVAL);
        }
        let mut done = 0;
        while done < len {
            let piece = PIECE_BYTES.min(len - done);
            self.read_blocks(source.ino, start + done, piece, size_bytes)?;
            let bytes = self.known_bytes(source.ino, start + done, piece)?;
            let sync = durability(&sink.flags);
            match self.write_range(sink.ino, target + done, piece, bytes.as_deref(), sync) {
                Ok(written) => done += written,
                Err(_) if done > 0 => break,
                Err(errno) => return Err(errno),
            }
        }
        if from_offset.is_none() {
            self.descriptors.set_offset(from, start + done);
        }
        if to_offset.is_none() {
            self.descriptors.set_offset(to, target + done);
        }
        Ok(Reply::Count(done))
    }

    /// A file's bytes, if anybody keeps any.
    fn known_bytes(&mut self, ino: Ino, offset: u64, len: u64) -> Result<Option<Vec<u8>>, Errno> {
        if !self.cx.keeps_bytes() {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(len).map_err(|_| Errno::EOVERFLOW)?];
        self.copy_out(ino, offset, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// `POSIX_FADV_WILLNEED`: starts reading a range.
    pub(super) fn prefetch(&mut self, ino: Ino, offset: u64, len: u64) -> Result<(), Errno> {
        let block = u64::from(self.volume.block_bytes());
        let full = self.volume.attributes(ino)?.size_bytes / block;
        let end = offset.saturating_add(len).div_ceil(block).min(full);
        let most = (self.cx.transfers.largest_bytes / self.volume.block_bytes()).max(1);
        let mut lbn = offset / block;
        while lbn < end && (lbn - offset / block) * block < self.cx.cache.capacity_bytes() / 2 {
            let id = BlockId { ino, lbn: Lbn(lbn as i64) };
            let mut run = 1;
            if !self.cx.cache.contains(id)
                && let Some(mapped) = self.volume.map(&mut self.cx, ino, id.lbn, most - 1)?
            {
                let blocks = u32::try_from(end - lbn).unwrap_or(u32::MAX).min(mapped.ahead + 1);
                let first = crate::Block::data(ino, id.lbn, mapped.pbn, mapped.bytes);
                run = self.cx.read_run(&first, blocks, false).max(1);
            }
            lbn += u64::from(run);
        }
        Ok(())
    }

    /// Gives up a file's data blocks that lie in a range and are neither dirty nor on their way.
    pub(super) fn drop_clean_data(&mut self, ino: Ino, offset: u64, len: u64) {
        let block = u64::from(self.volume.block_bytes());
        let range = (offset / block) as i64..=(offset.saturating_add(len).saturating_sub(1) / block) as i64;
        let slots: Vec<u32> = self.cx.cache.blocks_of(ino).collect();
        for slot in slots {
            let buffer = self.cx.cache.get(slot);
            let data = buffer.contents == Contents::Data && range.contains(&buffer.id.lbn.0);
            if data && !buffer.dirty && buffer.io.is_none() {
                self.cx.drop_slot(slot);
            }
        }
    }

    /// How much of a file's data from one byte to before another is in memory.
    pub(super) fn cached_data(&self, ino: Ino, from: u64, to: u64) -> Residency {
        let block = u64::from(self.volume.block_bytes());
        let blocks = to.div_ceil(block).saturating_sub(from / block);
        let range = (from / block) as i64..to.div_ceil(block) as i64;
        let (mut present, mut cached_bytes, mut dirty_bytes) = (0, 0, 0);
        for slot in self.cx.cache.blocks_of(ino) {
            let buffer = self.cx.cache.get(slot);
            let moving = buffer.io.and_then(|io| self.cx.ios().get(io)).map(|io| io.direction);
            // What is being read is not there yet.
            let there = buffer.contents == Contents::Data && moving != Some(Direction::Read);
            if there && range.contains(&buffer.id.lbn.0) {
                present += 1;
                cached_bytes += u64::from(buffer.bytes);
                dirty_bytes += if buffer.dirty || moving.is_some() { u64::from(buffer.bytes) } else { 0 };
            }
        }
        Residency { cached_bytes, missing_bytes: (blocks - present) * block, dirty_bytes: Some(dirty_bytes) }
    }

    /// Whether any of a file's data is in memory.
    pub(super) fn has_data(&self, ino: Ino) -> bool {
        self.cx.cache.blocks_of(ino).any(|slot| self.cx.cache.get(slot).contents == Contents::Data)
    }
}

/// What a descriptor's flags ask of each write.
fn durability(flags: &OpenFlags) -> Option<Durability> {
    if flags.sync {
        Some(Durability::All)
    } else if flags.dsync || flags.direct {
        Some(Durability::Data)
    } else {
        None
    }
}
