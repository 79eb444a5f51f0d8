//! The bytes of blocks, where somebody wants them.
//!
//! A lab file system works without any. Bytes are there for what a process gave explicitly (a marker file is read back as
//! written), and, in full mode, for every block: of an image that other systems are to read, or of a crash test. What has no bytes
//! reads as a pattern made from its place in the file, the same in every run.

use crate::Pbn;
use rustc_hash::FxHashMap;
use std::io;

/// Where blocks of the disk have their bytes.
pub trait Image: Send {
    /// Fills `out` with the bytes at a place; says whether there are any.
    fn read(&mut self, pbn: Pbn, out: &mut [u8]) -> io::Result<bool>;

    /// Puts bytes at a place.
    fn write(&mut self, pbn: Pbn, bytes: &[u8]) -> io::Result<()>;

    /// Forgets the bytes at a place, if the image can be without.
    fn discard(&mut self, pbn: Pbn, bytes: u64) -> io::Result<()>;

    /// Whether it may have bytes at a place: asked before each read of data.
    fn may_have(&self, pbn: Pbn) -> bool;

    /// Whether every block gets bytes, metadata included.
    fn is_full(&self) -> bool;
}

/// Bytes in memory: those that processes gave explicitly, or all.
#[derive(Debug, Default)]
pub struct Memory {
    /// By address, in units of [`Pbn::BYTES`].
    sectors: FxHashMap<u64, Box<[u8; Pbn::BYTES as usize]>>,
    full: bool,
}

impl Memory {
    /// For the bytes that processes gave, and no others.
    pub fn of_given() -> Memory {
        Memory::default()
    }

    /// For the bytes of every block.
    pub fn of_all() -> Memory {
        Memory { full: true, ..Memory::default() }
    }
}

impl Image for Memory {
    fn read(&mut self, pbn: Pbn, out: &mut [u8]) -> io::Result<bool> {
        let mut any = false;
        for (sector, piece) in (pbn.0..).zip(out.chunks_mut(Pbn::BYTES as usize)) {
            match self.sectors.get(&sector) {
                Some(bytes) => {
                    piece.copy_from_slice(&bytes[..piece.len()]);
                    any = true;
                }
                None => piece.fill(0),
            }
        }
        Ok(any)
    }

    fn write(&mut self, pbn: Pbn, bytes: &[u8]) -> io::Result<()> {
        for (sector, piece) in (pbn.0..).zip(bytes.chunks(Pbn::BYTES as usize)) {
            self.sectors.entry(sector).or_insert_with(|| Box::new([0; Pbn::BYTES as usize]))[..piece.len()]
                .copy_from_slice(piece);
        }
        Ok(())
    }

    fn discard(&mut self, pbn: Pbn, bytes: u64) -> io::Result<()> {
        if !self.sectors.is_empty() {
            for sector in pbn.0..pbn.after(bytes).0 {
                self.sectors.remove(&sector);
            }
        }
        Ok(())
    }

    fn may_have(&self, _pbn: Pbn) -> bool {
        !self.sectors.is_empty()
    }

    fn is_full(&self) -> bool {
        self.full
    }
}

/// The bytes of a file that nobody gave: incompressible, a function of the file and the offset.
pub fn filler(ino: crate::Ino, offset: u64, out: &mut [u8]) {
    let seed = (u64::from(ino.0) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for (at, byte) in (offset..).zip(out.iter_mut()) {
        *byte = (mix(seed ^ (at / 8)) >> (8 * (at % 8))) as u8;
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
