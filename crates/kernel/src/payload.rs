//! The bytes of blocks, where somebody wants them.
//!
//! A lab file system works without any. Bytes are there for what a process gave explicitly (a marker file is read back as
//! written), and, in full mode, for every block: of an image that other systems are to read, or of a crash test. What has no bytes
//! reads as a pattern made from its place in the file, the same in every run.

use crate::Pbn;
use device::store::{SparseStore, Store};
use rustc_hash::FxHashMap;
use stats::random::mix;
use std::cell::Cell;
use std::fmt;
use std::io;

/// Where blocks of the disk have their bytes: all of them, or those that processes gave, on a [`Store`].
///
/// Once something could not be written nothing is written any more: file systems write one thing only when another is there, and what is left is as a power
/// failure at that moment leaves it.
pub struct Image {
    store: Box<dyn Store + Send>,
    /// Something could not be written.
    failed: Cell<bool>,
    /// Which sectors have bytes; `None` if all have.
    given: Option<Given>,
}

impl Image {
    /// For the bytes that processes give, and no others; in memory.
    pub fn of_given() -> Image {
        let store = Box::new(SparseStore::new(u64::MAX));
        Image { store, failed: Cell::new(false), given: Some(Given::default()) }
    }

    /// For the bytes of every block, metadata included: in an image file, in memory, or in an `Arc<Mutex<_>>` of either whose
    /// other end shows what is on the disk at any time. What is in the store at the beginning is on the disk.
    pub fn full(store: impl Store + Send + 'static) -> Image {
        Image { store: Box::new(store), failed: Cell::new(false), given: None }
    }

    /// For every block, in memory, zeros at the beginning.
    pub fn full_in_memory(len_bytes: u64) -> Image {
        Image::full(SparseStore::new(len_bytes))
    }

    /// Fills `out` with the bytes at a place; says whether there are any.
    pub fn read(&self, pbn: Pbn, out: &mut [u8]) -> io::Result<bool> {
        let Some(given) = &self.given else { return self.store.read_at(pbn.bytes(), out).map(|()| true) };
        let mut any = false;
        for (sector, piece) in (pbn.0..).zip(out.chunks_mut(Pbn::BYTES as usize)) {
            if given.has(sector) {
                self.store.read_at(sector * Pbn::BYTES, piece)?;
                any = true;
            } else {
                piece.fill(0);
            }
        }
        Ok(any)
    }

    /// Fills `out` from a byte of the disk on; only of an image that has all bytes.
    pub(crate) fn read_full(&self, at_byte: u64, out: &mut [u8]) -> io::Result<()> {
        debug_assert!(self.is_full(), "what has no bytes cannot be read byte by byte");
        self.store.read_at(at_byte, out)
    }

    /// What was written is on stable storage when this returns.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.may_write()?;
        self.store.sync().inspect_err(|_| self.failed.set(true))
    }

    /// Whether something could not be written.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.get()
    }

    fn may_write(&self) -> io::Result<()> {
        match self.failed.get() {
            false => Ok(()),
            true => Err(io::Error::other("nothing is written any more since an earlier write has failed")),
        }
    }

    /// Puts bytes at a place.
    pub(crate) fn write(&mut self, pbn: Pbn, bytes: &[u8]) -> io::Result<()> {
        self.may_write()?;
        if let Some(given) = &mut self.given {
            given.set(pbn, bytes.len() as u64);
        }
        self.store.write_at(pbn.bytes(), bytes).inspect_err(|_| self.failed.set(true))
    }

    /// A block is written that has no bytes: those of given ones are forgotten.
    pub(crate) fn discard(&mut self, pbn: Pbn, bytes: u64) -> io::Result<()> {
        self.may_write()?;
        let Self { store, given, .. } = self;
        match given {
            Some(given) => given.clear(pbn, bytes, &mut |at, len| store.discard(at, len)),
            None => Ok(()),
        }
    }

    /// A place is discarded: its bytes are anything.
    pub(crate) fn give_up(&mut self, pbn: Pbn, bytes: u64) -> io::Result<()> {
        self.may_write()?;
        match self.given {
            Some(_) => self.discard(pbn, bytes),
            None => self.store.discard(pbn.bytes(), bytes),
        }
    }

    /// Whether it may have bytes anywhere: asked before each read of data.
    pub(crate) fn may_have_bytes(&self) -> bool {
        self.given.as_ref().is_none_or(|given| !given.sectors.is_empty())
    }

    /// The store that the bytes are on.
    pub fn store(&self) -> &(dyn Store + Send) {
        &*self.store
    }

    /// Whether every block gets bytes, metadata included.
    pub fn is_full(&self) -> bool {
        self.given.is_none()
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image").field("full", &self.is_full()).finish_non_exhaustive()
    }
}

/// Sectors that have bytes.
#[derive(Default)]
struct Given {
    /// A bit for each, by stretches of 64.
    sectors: FxHashMap<u64, u64>,
}

/// Sectors of a stretch.
const STRETCH: u64 = u64::BITS as u64;
/// Sectors that a store can give up together.
const TOGETHER: u64 = 8;

impl Given {
    fn has(&self, sector: u64) -> bool {
        self.sectors.get(&(sector / STRETCH)).is_some_and(|bits| bits >> (sector % STRETCH) & 1 == 1)
    }

    fn set(&mut self, pbn: Pbn, bytes: u64) {
        for sector in pbn.0..pbn.after(bytes).0 {
            *self.sectors.entry(sector / STRETCH).or_default() |= 1 << (sector % STRETCH);
        }
    }

    /// Clears a range; `unused` is told where no sector has bytes any more: byte and length.
    fn clear(&mut self, pbn: Pbn, bytes: u64, unused: &mut dyn FnMut(u64, u64) -> io::Result<()>) -> io::Result<()> {
        if self.sectors.is_empty() {
            return Ok(());
        }
        let (from, end) = (pbn.0, pbn.after(bytes).0);
        for group in from / TOGETHER..end.div_ceil(TOGETHER) {
            let stretch = group * TOGETHER / STRETCH;
            let Some(bits) = self.sectors.get_mut(&stretch) else { continue };
            let (low, high) = ((group * TOGETHER).max(from), ((group + 1) * TOGETHER).min(end));
            for sector in low..high {
                *bits &= !(1 << (sector % STRETCH));
            }
            if *bits >> (group * TOGETHER % STRETCH) & 0xFF == 0 {
                unused(group * TOGETHER * Pbn::BYTES, TOGETHER * Pbn::BYTES)?;
            }
            if *bits == 0 {
                self.sectors.remove(&stretch);
            }
        }
        Ok(())
    }
}

/// The bytes of a file that nobody gave: incompressible, a function of the file and the offset.
pub fn filler(ino: crate::Ino, offset: u64, out: &mut [u8]) {
    let seed = (u64::from(ino.0) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for (at, byte) in (offset..).zip(out.iter_mut()) {
        *byte = (mix(seed ^ (at / 8), 0) >> (8 * (at % 8))) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn given_bytes_are_there_until_others_nobody_gave_come() {
        let mut image = Image::of_given();
        let mut out = [1; 2048];
        assert!(!image.may_have_bytes() && !image.read(Pbn(60), &mut out).unwrap());
        image.write(Pbn(60), &[7; 4096]).unwrap();
        assert!(image.read(Pbn(66), &mut out).unwrap());
        assert!(out[..1024] == [7; 1024] && out[1024..] == [0; 1024], "sectors 66 and 67 of 60 to 67");
        image.discard(Pbn(61), 3 * 512).unwrap();
        assert!(image.read(Pbn(60), &mut out).unwrap());
        assert!(out[..512] == [7; 512] && out[512..] == [0; 1536]);
        image.discard(Pbn(0), 1 << 20).unwrap();
        assert!(!image.may_have_bytes());
    }

    #[test]
    fn what_nobody_needs_takes_no_memory() {
        let shared = Arc::new(Mutex::new(SparseStore::new(1 << 30)));
        let mut image =
            Image { store: Box::new(shared.clone()), failed: Cell::new(false), given: Some(Given::default()) };
        for round in 0..100 {
            image.write(Pbn(round * 128), &[7; 65536]).unwrap();
            image.discard(Pbn(round * 128), 65536).unwrap();
        }
        assert_eq!(shared.lock().unwrap().held_bytes(), 0);
    }
}
