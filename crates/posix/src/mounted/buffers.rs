//! What reads go to and writes come from: buffers that cost nothing inside the timed section.
//!
//! Both are page-aligned, as `O_DIRECT` asks, and faulted in before use.
#![allow(unsafe_code)]

use crate::Errno;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io::IoSlice;
use std::sync::OnceLock;

/// Requests up to this size are one plain buffer; larger ones are one system call over the same memory again.
pub(crate) const PIECE_BYTES: usize = 16 << 20;
/// What one `read` or `write` moves at most (`MAX_RW_COUNT` of linux/fs.h).
pub(crate) const REQUEST_BYTES_MAX: u64 = 0x7fff_f000;
const PAGE: usize = 4096;

/// Anonymous memory, page-aligned and already backed by pages.
#[derive(Debug)]
pub(crate) struct Pages {
    start: *mut u8,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone and is reached only through `&` or `&mut`, like a `Box<[u8]>`.
unsafe impl Send for Pages {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Pages {}

impl Pages {
    /// `len` bytes, rounded up to whole pages.
    pub(crate) fn new(len: usize) -> Result<Pages, Errno> {
        let len = len.max(1).checked_next_multiple_of(PAGE).ok_or(Errno::ENOMEM)?;
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: a new private anonymous mapping at an address of the kernel's choice aliases nothing.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
        Ok(Pages { start: start.cast(), len })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `start` is `len` readable, initialised (zeroed) bytes, mapped until drop.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, writable, and `&mut self` makes it the only access.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this address and length, and no reference outlives `self`.
        let _ = unsafe { munmap(self.start.cast(), self.len) };
    }
}

/// A buffer that grows to the largest request seen, up to [`PIECE_BYTES`].
#[derive(Debug, Default)]
pub(crate) struct Scratchpad {
    pages: Option<Pages>,
}

impl Scratchpad {
    /// At least `len` bytes (no more than [`PIECE_BYTES`]).
    pub(crate) fn at_least(&mut self, len: usize) -> Result<&mut [u8], Errno> {
        let wanted = len.clamp(128 << 10, PIECE_BYTES).next_power_of_two();
        match &mut self.pages {
            Some(pages) if pages.len >= wanted => {}
            pages => *pages = Some(Pages::new(wanted)?),
        }
        self.pages.as_mut().and_then(|p| p.bytes_mut().get_mut(..len)).ok_or(Errno::ENOMEM)
    }

    /// A list of pieces of `len` bytes in all, every one of them the same memory: the contents of so large a read
    /// are not wanted, and the memory is bounded.
    pub(crate) fn repeated(&mut self, len: usize) -> Result<Vec<libc::iovec>, Errno> {
        let piece = self.at_least(PIECE_BYTES)?;
        let base = piece.as_mut_ptr().cast::<libc::c_void>();
        let full = len / PIECE_BYTES;
        let mut list = vec![libc::iovec { iov_base: base, iov_len: PIECE_BYTES }; full];
        if !len.is_multiple_of(PIECE_BYTES) {
            list.push(libc::iovec { iov_base: base, iov_len: len % PIECE_BYTES });
        }
        Ok(list)
    }
}

/// Incompressible bytes, the same in every run.
fn filler() -> Result<&'static [u8], Errno> {
    static FILLER: OnceLock<Result<Pages, Errno>> = OnceLock::new();
    let made = FILLER.get_or_init(|| {
        let mut pages = Pages::new(PIECE_BYTES)?;
        Xoshiro256PlusPlus::seed_from_u64(0x66_73_61_67_65).fill_bytes(pages.bytes_mut());
        Ok(pages)
    });
    made.as_ref().map(Pages::bytes).map_err(|e| *e)
}

/// Hands out pieces of the filler, each from another position, so that neighbouring blocks differ.
///
/// Small pieces come from the first MiB, which stays in the processor's cache as the data of a program that
/// has just produced it would.
#[derive(Debug)]
pub(crate) struct Filler {
    position: usize,
}

const SMALL_WINDOW: usize = 1 << 20;
const STEP: usize = 65 * 64;

impl Filler {
    /// `stream` distinguishes handles, so that two threads do not write the same bytes.
    pub(crate) fn new(stream: usize) -> Filler {
        Filler { position: stream.wrapping_mul(37 * STEP) % SMALL_WINDOW }
    }

    /// Makes the shared bytes, so that the first write does not wait for them.
    pub(crate) fn prepare() -> Result<(), Errno> {
        filler().map(|_| ())
    }

    /// `len` bytes (no more than [`PIECE_BYTES`]), page-aligned if `aligned`.
    pub(crate) fn piece(&mut self, len: usize, aligned: bool) -> Result<&'static [u8], Errno> {
        let all = filler()?;
        let room = all.len().checked_sub(len).ok_or(Errno::EINVAL)?;
        let window = if len <= SMALL_WINDOW / 4 { SMALL_WINDOW } else { room + 1 };
        let start = self.position % window;
        let start = if aligned { start - start % PAGE } else { start };
        self.position = (self.position + len.next_multiple_of(64) + STEP) % (64 * PIECE_BYTES);
        all.get(start..start + len).ok_or(Errno::EINVAL)
    }

    /// A list of pieces of `len` bytes in all, for one gathering write.
    pub(crate) fn pieces(&mut self, len: usize, aligned: bool) -> Result<Vec<IoSlice<'static>>, Errno> {
        let mut list = Vec::new();
        let mut rest = len;
        while rest > 0 {
            let take = rest.min(PIECE_BYTES - SMALL_WINDOW);
            list.push(IoSlice::new(self.piece(take, aligned)?));
            rest -= take;
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_grows_and_is_aligned() {
        let mut pad = Scratchpad::default();
        for len in [1, 512, 4096, 200_000, PIECE_BYTES] {
            let bytes = pad.at_least(len).unwrap();
            assert_eq!(bytes.len(), len);
            assert_eq!(bytes.as_ptr() as usize % PAGE, 0);
        }
        let list = pad.repeated(2 * PIECE_BYTES + 5).unwrap();
        assert_eq!(list.iter().map(|v| v.iov_len).sum::<usize>(), 2 * PIECE_BYTES + 5);
    }

    #[test]
    fn successive_pieces_differ_and_do_not_compress() {
        let mut filler = Filler::new(0);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            assert!(seen.insert(filler.piece(4096, false).unwrap().to_vec()));
        }
        // Byte values of random data are all about equally frequent.
        let mut counts = [0u32; 256];
        filler.piece(1 << 20, false).unwrap().iter().for_each(|&b| counts[usize::from(b)] += 1);
        assert!(counts.iter().all(|&c| (3500..4700).contains(&c)), "{counts:?}");
    }

    #[test]
    fn pieces_of_any_length_are_there() {
        let mut filler = Filler::new(3);
        for len in [0, 1, 4095, 300_000, PIECE_BYTES - 1, PIECE_BYTES] {
            for _ in 0..5 {
                let piece = filler.piece(len, true).unwrap();
                assert_eq!((piece.len(), piece.as_ptr() as usize % PAGE), (len, 0));
            }
        }
        assert!(filler.piece(PIECE_BYTES + 1, false).is_err());
        let list = filler.pieces(5 * PIECE_BYTES + 77, true).unwrap();
        assert_eq!(list.iter().map(|s| s.len()).sum::<usize>(), 5 * PIECE_BYTES + 77);
    }
}
