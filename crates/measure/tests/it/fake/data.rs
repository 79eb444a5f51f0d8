//! Reading and writing.

use super::costs::cost;
use super::{BLOCK, Done, Fake};
use posix::{Errno, Fd, Reply};
use std::ops::Range;
use system::vector::Class;

impl Fake {
    pub(super) fn read(&mut self, fd: Fd, offset: Option<u64>, len: u64) -> Done {
        let open = self.fds.get_mut(&fd.0).ok_or((Errno::EBADF, 0))?;
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
        if open.direct {
            return Ok((Reply::Count(len), cost(Class::ReadDirect, len)));
        }
        let blocks = from / BLOCK..(from + len).div_ceil(BLOCK);
        let cached = blocks.clone().all(|block| self.data.has(&(node, block)));
        for block in blocks {
            self.data.touch((node, block));
        }
        self.nodes[node].map_cached = true;
        let class = match (cached, adjacent) {
            (true, _) => Class::ReadCached,
            (false, true) => Class::ReadSeq,
            (false, false) if first && from == 0 && len == size => Class::ReadFirst,
            (false, false) => Class::ReadRand,
        };
        Ok((Reply::Count(len), cost(class, len)))
    }

    pub(super) fn write(&mut self, fd: Fd, offset: Option<u64>, len: u64) -> Done {
        let open = self.fds.get_mut(&fd.0).ok_or((Errno::EBADF, 0))?;
        if len == 0 {
            return Ok((Reply::Count(0), cost(Class::WriteOverhead, 0)));
        }
        let node = open.node;
        let from = offset.unwrap_or(open.offset);
        if offset.is_none() {
            open.offset += len;
        }
        if open.direct {
            return Ok((Reply::Count(len), cost(Class::WriteDirect, len)));
        }
        let blocks = from / BLOCK..(from + len).div_ceil(BLOCK);
        let cached = blocks.clone().all(|block| self.data.has(&(node, block)));
        let file = &mut self.nodes[node];
        file.map_cached = true;
        let class = if from + len > file.size {
            self.space = self.space.checked_sub(len).ok_or((Errno::ENOSPC, 0))?;
            let class = match from {
                _ if from.is_multiple_of(BLOCK) => Class::WriteAppend,
                _ if from / BLOCK * BLOCK < file.size - file.new_bytes => Class::WriteExtendAllocated,
                _ => Class::WriteExtend,
            };
            self.empty_made -= u64::from(file.size == 0).min(self.empty_made);
            file.size = from + len;
            file.new_bytes += len;
            class
        } else {
            file.over_bytes += len;
            file.over_runs += u64::from(file.over_runs == 0 || from != file.over_end);
            file.over_end = from + len;
            match (cached, from.is_multiple_of(BLOCK) && len.is_multiple_of(BLOCK)) {
                (true, _) => Class::WriteCached,
                (false, true) => Class::WriteUncached,
                (false, false) => return self.wrote(node, blocks, len, cost(Class::WritePartial, 0)),
            }
        };
        self.wrote(node, blocks, len, cost(class, len))
    }

    pub(super) fn wrote(&mut self, node: usize, blocks: Range<u64>, len: u64, ns: u64) -> Done {
        for block in blocks {
            self.data.touch((node, block));
        }
        self.dirty.insert(node);
        Ok((Reply::Count(len), ns))
    }

    pub(super) fn dirty_bytes(&self) -> u64 {
        self.dirty.iter().map(|&n| self.nodes[n].new_bytes + self.nodes[n].over_bytes).sum()
    }
}
