//! The bytes of blocks, where somebody wants them.
//!
//! A lab file system works without any. Bytes are there for what a process gave explicitly (a marker file is read back
//! as written), and, in full mode, for every block: of an image that other systems are to read, or of a crash test.
//! What has no bytes reads as a pattern made from its place in the file, the same in every run.

use crate::Pbn;
use device::store::{SparseStore, Store};
use rustc_hash::FxHashMap;
use stats::random::mix;
use std::fmt;
use std::io::{self, IoSlice};
use std::ops::Deref;
use std::sync::Arc;

/// Where blocks of the disk have their bytes: all of them, or those that processes gave, on a [`Store`].
///
/// Once something could not be written nothing is written any more: file systems write one thing only when another is
/// there, and what is left is as a power failure at that moment leaves it.
pub struct Image {
    store: Box<dyn Store + Send>,
    /// Something could not be written.
    failed: bool,
    /// Which sectors have bytes; `None` if all have.
    given: Option<Given>,
    /// What is to be written with what comes behind it.
    gathered: Gathered,
}

/// Neighbouring bytes on their way to the store: one write of many blocks costs the host far less than many.
#[derive(Default)]
struct Gathered {
    at_byte: u64,
    pieces: Vec<Piece>,
    bytes: usize,
}

/// Bytes to be written together with others. A payload is shared with the cache: it is copied if somebody changes it
/// meanwhile.
pub(crate) enum Piece {
    Made(Vec<u8>),
    Payload(Arc<[u8]>),
}

impl Deref for Piece {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Piece::Made(bytes) => bytes,
            Piece::Payload(bytes) => bytes,
        }
    }
}

/// So much is gathered at most.
const GATHERED_BYTES: usize = 1 << 20;

impl Image {
    /// For the bytes that processes give, and no others; in memory.
    pub fn of_given() -> Image {
        let store = Box::new(SparseStore::new(u64::MAX));
        Image { store, failed: false, given: Some(Given::default()), gathered: Gathered::default() }
    }

    /// For the bytes of every block, metadata included: in an image file, in memory, or in an `Arc<Mutex<_>>` of either
    /// whose other end shows what is on the disk at any time. What is in the store at the beginning is on the disk.
    pub fn full(store: impl Store + Send + 'static) -> Image {
        Image { store: Box::new(store), failed: false, given: None, gathered: Gathered::default() }
    }

    /// For every block, in memory, zeros at the beginning.
    pub fn full_in_memory(len_bytes: u64) -> Image {
        Image::full(SparseStore::new(len_bytes))
    }

    /// Another image with the same bytes; `None` where the store has only one set of them.
    pub(crate) fn duplicate(&self) -> Option<Image> {
        assert!(self.gathered.pieces.is_empty(), "whoever gathers settles");
        let store = self.store.duplicate()?;
        Some(Image { store, failed: self.failed, given: self.given.clone(), gathered: Gathered::default() })
    }

    /// Fills `out` with the bytes at a place; says whether there are any.
    pub fn read(&self, pbn: Pbn, out: &mut [u8]) -> io::Result<bool> {
        assert!(self.gathered.pieces.is_empty(), "whoever gathers settles before it reads");
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

    /// The same where something may be gathered.
    pub(crate) fn settle_and_read(&mut self, pbn: Pbn, out: &mut [u8]) -> io::Result<bool> {
        self.settle()?;
        self.read(pbn, out)
    }

    /// Fills `out` from a byte of the disk on; only of an image that has all bytes.
    pub(crate) fn read_full(&mut self, at_byte: u64, out: &mut [u8]) -> io::Result<()> {
        self.settle()?;
        debug_assert!(self.is_full(), "what has no bytes cannot be read byte by byte");
        self.store.read_at(at_byte, out)
    }

    /// What was written is on stable storage when this returns.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.settle()?;
        self.may_write()?;
        self.store.sync().inspect_err(|_| self.failed = true)
    }

    /// Whether something could not be written.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    fn may_write(&self) -> io::Result<()> {
        match self.failed {
            false => Ok(()),
            true => Err(io::Error::other("nothing is written any more since an earlier write has failed")),
        }
    }

    /// Puts bytes at a place, together with what is gathered behind them: whoever gathers [settles](Image::settle) when
    /// it is done. The store gets everything in the order in which it came.
    pub(crate) fn gather(&mut self, pbn: Pbn, bytes: Piece) -> io::Result<()> {
        self.may_write()?;
        let Gathered { at_byte, bytes: waiting, .. } = self.gathered;
        if at_byte + waiting as u64 != pbn.bytes() || waiting + bytes.len() > GATHERED_BYTES {
            self.settle()?;
            self.gathered.at_byte = pbn.bytes();
        }
        self.gathered.bytes += bytes.len();
        self.gathered.pieces.push(bytes);
        Ok(())
    }

    /// Writes what was gathered.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        if self.gathered.pieces.is_empty() {
            return Ok(());
        }
        let Gathered { at_byte, pieces, bytes } = &mut self.gathered;
        if let Some(given) = &mut self.given {
            given.set(Pbn(*at_byte / Pbn::BYTES), *bytes as u64);
        }
        let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let written = self.store.write_pieces(*at_byte, &mut slices).inspect_err(|_| self.failed = true);
        pieces.clear();
        *bytes = 0;
        written
    }

    /// A block is written that has no bytes: those of given ones are forgotten.
    pub(crate) fn discard(&mut self, pbn: Pbn, bytes: u64) -> io::Result<()> {
        self.settle()?;
        self.may_write()?;
        let Self { store, given, .. } = self;
        match given {
            Some(given) => given.clear(pbn, bytes, &mut |at, len| store.discard(at, len)),
            None => Ok(()),
        }
    }

    /// A place is discarded: its bytes are anything.
    pub(crate) fn give_up(&mut self, pbn: Pbn, bytes: u64) -> io::Result<()> {
        self.settle()?;
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
        assert!(self.gathered.pieces.is_empty(), "whoever gathers settles");
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
#[derive(Clone, Default)]
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
    use proptest::prelude::*;
    use std::sync::Mutex;

    fn put(image: &mut Image, pbn: Pbn, bytes: Vec<u8>) {
        image.gather(pbn, Piece::Made(bytes)).unwrap();
        image.settle().unwrap();
    }

    #[derive(Default)]
    struct Notes {
        writes: Vec<(u64, Vec<u8>)>,
        /// How many more succeed.
        good: Option<usize>,
    }

    /// A store that notes each write.
    #[derive(Clone, Default)]
    struct Noted(Arc<Mutex<Notes>>);

    impl Store for Noted {
        fn len_bytes(&self) -> u64 {
            1 << 40
        }
        fn read_at(&self, _at: u64, _buf: &mut [u8]) -> io::Result<()> {
            Ok(())
        }
        fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
            let Notes { writes, good } = &mut *self.0.lock().unwrap();
            match good {
                Some(0) => return Err(io::Error::other("full")),
                Some(good) => *good -= 1,
                None => {}
            }
            writes.push((at, bytes.to_vec()));
            Ok(())
        }
    }

    proptest! {
        /// What is gathered reaches the store piece by piece in the order in which it came, whatever lies between, and
        /// nothing after a failure.
        #[test]
        fn gathered_writes_keep_their_order(
            pieces in prop::collection::vec((0_u64..6, 1_usize..4, 0_u8..8), 1..60),
            good in prop::option::of(0_usize..70),
        ) {
            let noted = Noted::default();
            noted.0.lock().unwrap().good = good;
            let mut image = Image::full(noted.clone());
            let mut expected = Vec::new();
            let (mut next, mut failed) = (Pbn(0), false);
            for (number, (jump, sectors, then)) in pieces.into_iter().enumerate() {
                let at = if jump == 0 { Pbn(next.0 + 5) } else { next };
                let bytes = vec![number as u8; sectors * 512];
                failed |= image.gather(at, Piece::Made(bytes.clone())).is_err();
                expected.push((at.bytes(), bytes));
                next = Pbn(at.0 + sectors as u64);
                failed |= match then {
                    0 => image.settle().is_err(),
                    1 => image.sync().is_err(),
                    2 => image.settle_and_read(Pbn(0), &mut [0; 512]).is_err(),
                    _ => false,
                };
            }
            failed |= image.settle().is_err();
            let good = good.unwrap_or(usize::MAX);
            prop_assert_eq!(failed, good < expected.len());
            prop_assert_eq!(image.has_failed(), failed);
            expected.truncate(good);
            prop_assert_eq!(&noted.0.lock().unwrap().writes, &expected);
        }
    }

    #[test]
    fn given_bytes_are_there_until_others_nobody_gave_come() {
        let mut image = Image::of_given();
        let mut out = [1; 2048];
        assert!(!image.may_have_bytes() && !image.read(Pbn(60), &mut out).unwrap());
        put(&mut image, Pbn(60), vec![7; 4096]);
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
        let mut image = Image { given: Some(Given::default()), ..Image::full(shared.clone()) };
        for round in 0..100 {
            put(&mut image, Pbn(round * 128), vec![7; 65536]);
            image.discard(Pbn(round * 128), 65536).unwrap();
        }
        assert_eq!(shared.lock().unwrap().held_bytes(), 0);
    }
}
