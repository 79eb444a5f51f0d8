//! Reading and writing.

use super::costs::cost;
use super::{BLOCK, Done, Fake};
use posix::{Errno, Fd, Reply};
use system::vector::Class;

impl Fake {
    pub(super) fn read(&mut self, fd: Fd, offset: Option<u64>, len: u64) -> Done {
        let open = self.fds.get_mut(&fd.0).filter(|open| open.flags.read).ok_or(Errno::EBADF)?;
        let node = open.node;
        let from = offset.unwrap_or(open.offset);
        let size = self.nodes[node].size;
        if from >= size {
            return Ok((Reply::Count(0), cost(Class::ReadOverhead, 0)));
        }
        let len = len.min(size - from);
        if offset.is_none() {
            open.offset += len;
        }
        let first = open.read_end.is_none();
        let adjacent = open.read_end.replace(from + len) == Some(from);
        if open.flags.direct {
            return Ok((Reply::Count(len), cost(Class::ReadDirect, len)));
        }
        let cached = self.touch(node, from, len);
        let class = match (cached, adjacent) {
            (true, _) => Class::ReadCached,
            (false, true) => Class::ReadSeq,
            (false, false) if first && from == 0 && len == size => Class::ReadFirst,
            (false, false) => Class::ReadRand,
        };
        Ok((Reply::Count(len), cost(class, len)))
    }

    /// On Linux `O_APPEND` counts for `pwrite(2)` too.
    pub(super) fn write(&mut self, fd: Fd, offset: Option<u64>, len: u64) -> Done {
        let open = self.fds.get_mut(&fd.0).filter(|open| open.flags.write).ok_or(Errno::EBADF)?;
        if len == 0 {
            return Ok((Reply::Count(0), cost(Class::WriteOverhead, 0)));
        }
        let (node, flags) = (open.node, open.flags);
        let size = self.nodes[node].size;
        let from = if flags.append { size } else { offset.unwrap_or(open.offset) };
        self.resize(node, size.max(from + len))?;
        // Later than any time that is set.
        self.nodes[node].mtime_ns = i64::MAX;
        if let (None, Some(open)) = (offset, self.fds.get_mut(&fd.0)) {
            open.offset = from + len;
        }
        let done = |class, at| Ok((Reply::Count(len), cost(class, at)));
        if flags.direct {
            return done(Class::WriteDirect, len);
        }
        self.dirty.insert(node);
        let cached = self.touch(node, from, len);
        let file = &mut self.nodes[node];
        if from + len > size {
            let class = match from {
                _ if from.is_multiple_of(BLOCK) => Class::WriteAppend,
                _ if from / BLOCK * BLOCK < size - file.new_bytes => Class::WriteExtendAllocated,
                _ => Class::WriteExtend,
            };
            self.empty_made -= u64::from(size == 0).min(self.empty_made);
            file.new_bytes += len;
            return done(class, len);
        }
        file.over_bytes += len;
        file.over_runs += u64::from(file.over_runs == 0 || from != file.over_end);
        file.over_end = from + len;
        match (cached, from.is_multiple_of(BLOCK) && len.is_multiple_of(BLOCK)) {
            (true, _) => done(Class::WriteCached, len),
            (false, true) => done(Class::WriteUncached, len),
            (false, false) => done(Class::WritePartial, 0),
        }
    }

    /// Has a range in the cache, and says whether it was there.
    fn touch(&mut self, node: usize, from: u64, len: u64) -> bool {
        self.nodes[node].map_cached = true;
        let blocks = from / BLOCK..(from + len).div_ceil(BLOCK);
        let cached = blocks.clone().all(|block| self.data.has(&(node, block)));
        for block in blocks {
            self.data.touch((node, block));
        }
        cached
    }

    pub(super) fn drop_blocks(&mut self, node: usize) {
        for block in 0..self.nodes[node].size.div_ceil(BLOCK) {
            self.data.forget(&(node, block));
        }
    }

    pub fn resize(&mut self, node: usize, size: u64) -> Result<(), Errno> {
        let file = &mut self.nodes[node];
        let used_bytes = self.used_bytes - file.size + size;
        if size > file.size && used_bytes > self.capacity_bytes {
            return Err(Errno::ENOSPC);
        }
        (self.used_bytes, file.size, file.allocated) = (used_bytes, size, size);
        Ok(())
    }

    pub(super) fn dirty_bytes(&self) -> u64 {
        self.dirty.iter().map(|&n| self.nodes[n].new_bytes + self.nodes[n].over_bytes).sum()
    }
}
