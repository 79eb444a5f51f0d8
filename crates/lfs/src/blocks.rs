//! Following a file's pointers.

use crate::format::{Dinode, ENDIAN, FragAddr, Geometry, Ino, NDADDR};
use crate::{LfsError, Store};
use device::store::read;
use ufs::Disk as _;

/// A block that a file points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its number; negative for an indirect block (see [`ufs::indirect`]).
    pub lbn: i64,
    /// Where it is.
    pub addr: FragAddr,
    /// Bytes on disk: whole fragments.
    pub bytes: u32,
}

/// What is done with each block of a file.
pub type EachBlock<'a> = &'a mut dyn FnMut(Block) -> Result<(), LfsError>;

/// What is done with each piece of a file: its byte in the file, its bytes.
pub type EachPiece<'a> = &'a mut dyn FnMut(u64, &[u8]) -> Result<(), LfsError>;

/// Every block that an inode points to, indirect ones before what they point to; holes are left out. Stops at the
/// file's size.
pub fn file_blocks<S: Store + ?Sized>(
    store: &S,
    g: &Geometry,
    ino: Ino,
    inode: &Dinode,
    each: EachBlock<'_>,
) -> Result<(), LfsError> {
    blocks_of(store, g, ino, inode, false, each)
}

/// The same; with `all`, as for whoever writes to the file, a pointer behind its end, which would come to count when it
/// grows, is an error.
pub(crate) fn blocks_of<S: Store + ?Sized>(
    store: &S,
    g: &Geometry,
    ino: Ino,
    inode: &Dinode,
    whole: bool,
    each: EachBlock<'_>,
) -> Result<(), LfsError> {
    let budget = g.size_frags / g.frag + NDADDR as u32 + 1;
    Walk { store, g, ino, inode, budget, blocks: inode.size.div_ceil(g.bsize.into()), whole }.file(each)
}

/// Hands over a file's data in order, at most `max_bytes` bytes at a time; holes are left out.
pub fn file_data<S: Store + ?Sized>(
    store: &S,
    g: &Geometry,
    ino: Ino,
    inode: &Dinode,
    max_bytes: u32,
    each: EachPiece<'_>,
) -> Result<(), LfsError> {
    // Adjacent blocks are read together.
    let mut run: Option<(u64, u64, u64)> = None;
    let mut flush = |run: &mut Option<(u64, u64, u64)>| -> Result<(), LfsError> {
        let Some((from, at, bytes)) = run.take() else { return Ok(()) };
        let bytes = bytes.min(inode.size.saturating_sub(from));
        for done in (0..bytes).step_by(max_bytes.max(1) as usize) {
            let piece = read(store, at + done, (bytes - done).min(max_bytes.into()) as usize)?;
            each(from + done, &piece)?;
        }
        Ok(())
    };
    file_blocks(store, g, ino, inode, &mut |block| {
        let Ok(lbn) = u64::try_from(block.lbn) else { return Ok(()) };
        let (from, at, bytes) = (lbn << g.bshift, g.byte_of(block.addr), u64::from(block.bytes));
        match &mut run {
            Some((run_from, run_at, run_bytes)) if *run_from + *run_bytes == from && *run_at + *run_bytes == at => {
                *run_bytes += bytes;
            }
            _ => {
                flush(&mut run)?;
                run = Some((from, at, bytes));
            }
        }
        Ok(())
    })?;
    flush(&mut run)
}

struct Walk<'a, S: ?Sized> {
    store: &'a S,
    g: &'a Geometry,
    ino: Ino,
    inode: &'a Dinode,
    /// Blocks that may still be met: a sound file has no more than the file system.
    budget: u32,
    /// Blocks of the file, by its size.
    blocks: u64,
    /// Whether to look at pointers behind its end.
    whole: bool,
}

impl<S: Store + ?Sized> Walk<'_, S> {
    fn file(&mut self, each: EachBlock<'_>) -> Result<(), LfsError> {
        if !self.inode.has_blocks(self.g.maxsymlinklen) {
            return Ok(());
        }
        if self.inode.size > self.g.max_file_bytes() {
            return self.damaged(format!("size {} is more than {}", self.inode.size, self.g.max_file_bytes()));
        }
        for (lbn, pointer) in self.inode.db.iter().enumerate().take(self.blocks.min(NDADDR as u64) as usize) {
            let bytes = self.g.block_bytes(self.inode.size, lbn as u64);
            self.block(lbn as i64, *pointer, bytes, each)?;
        }
        for (lbn, pointer) in self.inode.db.iter().enumerate().skip(self.blocks.min(NDADDR as u64) as usize) {
            self.behind_the_end(lbn as u64, *pointer)?;
        }
        let mut first = NDADDR as u64;
        let mut span = 1;
        for (level, pointer) in self.inode.ib.iter().enumerate() {
            if first >= self.blocks {
                self.behind_the_end(first, *pointer)?;
                continue;
            }
            self.indirect(level as u32, first, span, *pointer, each)?;
            span *= u64::from(self.g.nindir);
            first += span;
        }
        Ok(())
    }

    /// An indirect block: its pointers reach `span` blocks each, the first at `first`.
    fn indirect(
        &mut self,
        level: u32,
        first: u64,
        span: u64,
        pointer: i64,
        each: EachBlock<'_>,
    ) -> Result<(), LfsError> {
        if pointer == 0 {
            return Ok(());
        }
        let addr = self.block(-(first as i64) - i64::from(level), pointer, self.g.bsize, each)?;
        let bytes = read(self.store, self.g.byte_of(addr), self.g.bsize as usize)?;
        for i in 0..self.g.nindir {
            let at = first + u64::from(i) * span;
            let pointer = i64::from(i32::get(ENDIAN, &bytes, i as usize * 4));
            if at >= self.blocks {
                if !self.whole {
                    break;
                }
                self.behind_the_end(at, pointer)?;
                continue;
            }
            if level > 0 {
                self.indirect(level - 1, at, span / u64::from(self.g.nindir), pointer, each)?;
            } else {
                self.block(at as i64, pointer, self.g.bsize, each)?;
            }
        }
        Ok(())
    }

    fn block(&mut self, lbn: i64, pointer: i64, bytes: u32, each: EachBlock<'_>) -> Result<FragAddr, LfsError> {
        if pointer == 0 {
            return Ok(FragAddr(0));
        }
        let addr = u32::try_from(pointer).ok().map(FragAddr);
        let Some(addr) = addr.filter(|addr| self.g.within_segment(*addr, bytes >> self.g.fshift)) else {
            return self.damaged(format!("pointer {pointer} of block {lbn} does not lie within a segment"));
        };
        let Some(rest) = self.budget.checked_sub(1) else {
            return self.damaged("has more blocks than the file system".to_owned());
        };
        self.budget = rest;
        each(Block { lbn, addr, bytes })?;
        Ok(addr)
    }

    fn behind_the_end(&self, lbn: u64, pointer: i64) -> Result<(), LfsError> {
        if self.whole && pointer != 0 {
            return self.damaged(format!("points to block {lbn}, behind its end at {} bytes", self.inode.size));
        }
        Ok(())
    }

    fn damaged<T>(&self, problem: String) -> Result<T, LfsError> {
        Err(LfsError::Inode { ino: self.ino.0, problem })
    }
}
