//! Where bytes are, beside the timing models and independent of them: a file, memory, or changes laid over either.

use fault::{Fault, Kind};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {len} bytes at byte {at_byte}: {source}")]
pub struct StoreError {
    /// "read", "write" or "copy".
    pub doing: &'static str,
    /// Where.
    pub at_byte: u64,
    /// How many.
    pub len: usize,
    /// Why.
    pub source: io::Error,
}

impl Fault for StoreError {
    fn kind(&self) -> Kind {
        // An image that ends too early is a bad one.
        if self.source.kind() == io::ErrorKind::UnexpectedEof { Kind::BadInput } else { Kind::Environment }
    }
}

/// A run of bytes that can be read and written at any place.
pub trait Store {
    /// How many bytes there are.
    fn len_bytes(&self) -> u64;

    /// Fills `buf` from byte `at`; an error (`UnexpectedEof`) where the store ends before.
    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()>;

    /// Where the next byte is, from `at` on, that may be other than zero; the end where there is none.
    fn next_data(&self, at: u64) -> io::Result<u64> {
        Ok(at)
    }

    /// Writes `bytes` at byte `at`, inside the store.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Writes pieces one behind the other from byte `at` on, inside the store.
    fn write_pieces(&mut self, mut at: u64, pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
        for piece in pieces {
            self.write_at(at, piece)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// Nobody needs these bytes any more: what takes room for them may give it up. They read as anything then.
    fn discard(&mut self, _at: u64, _len_bytes: u64) -> io::Result<()> {
        Ok(())
    }

    /// What was written is on stable storage when this returns; nothing to do where there is none.
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// Another store with the same bytes: what is written to one is not in the other. `None` where there is only one,
    /// as of a file that is written.
    fn duplicate(&self) -> Option<Box<dyn Store + Send>> {
        None
    }
}

macro_rules! through {
    ($handle:ty) => {
        impl<S: Store + ?Sized> Store for $handle {
            fn len_bytes(&self) -> u64 {
                (**self).len_bytes()
            }
            fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
                (**self).read_at(at, buf)
            }
            fn next_data(&self, at: u64) -> io::Result<u64> {
                (**self).next_data(at)
            }
            fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
                (**self).write_at(at, bytes)
            }
            fn write_pieces(&mut self, at: u64, pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
                (**self).write_pieces(at, pieces)
            }
            fn discard(&mut self, at: u64, len_bytes: u64) -> io::Result<()> {
                (**self).discard(at, len_bytes)
            }
            fn sync(&self) -> io::Result<()> {
                (**self).sync()
            }
            fn duplicate(&self) -> Option<Box<dyn Store + Send>> {
                (**self).duplicate()
            }
        }
    };
}
through!(&mut S);
through!(Box<S>);

/// As many pieces as one call takes (`UIO_MAXIOV` of linux/uio.h).
const PIECES_MAX: usize = 1024;

/// An image file or block device.
#[derive(Debug)]
pub struct FileStore {
    file: File,
    len_bytes: u64,
    /// Whether it was opened to be read only.
    only_read: bool,
}

impl FileStore {
    /// Opens an image to be read: a regular file or a block device.
    pub fn open(path: &Path) -> io::Result<FileStore> {
        Ok(FileStore { only_read: true, ..FileStore::new(posix::input::open_image(path)?)? })
    }

    /// Takes an open file. Its length is found by seeking, so that block devices work too.
    pub fn new(file: File) -> io::Result<FileStore> {
        use std::io::Seek as _;
        let len_bytes = (&file).seek(io::SeekFrom::End(0))?;
        Ok(FileStore { file, len_bytes, only_read: false })
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file back.
    pub fn into_file(self) -> File {
        self.file
    }
}

impl Store for FileStore {
    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        // The system has other words for a place beyond what a file can have.
        within(self.len_bytes, at, buf.len())?;
        self.file.read_exact_at(buf, at)
    }
    fn next_data(&self, at: u64) -> io::Result<u64> {
        match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(at)) {
            Ok(found) => Ok(found.min(self.len_bytes)),
            Err(rustix::io::Errno::NXIO) => Ok(self.len_bytes),
            // Block devices know no holes.
            Err(rustix::io::Errno::INVAL) => Ok(at),
            Err(error) => Err(error.into()),
        }
    }
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        within(self.len_bytes, at, bytes.len())?;
        self.file.write_all_at(bytes, at)
    }
    fn write_pieces(&mut self, mut at: u64, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
        within(self.len_bytes, at, pieces.iter().map(|piece| piece.len()).sum())?;
        IoSlice::advance_slices(&mut pieces, 0); // leaves out those in front that are empty
        while !pieces.is_empty() {
            let some = &pieces[..pieces.len().min(PIECES_MAX)];
            match rustix::io::pwritev(&self.file, some, at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    at += written as u64;
                    IoSlice::advance_slices(&mut pieces, written);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
    fn duplicate(&self) -> Option<Box<dyn Store + Send>> {
        let file = self.file.try_clone().ok().filter(|_| self.only_read)?;
        Some(Box::new(FileStore { file, ..*self }))
    }
}

/// An image in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryStore(pub Vec<u8>);

impl MemoryStore {
    fn range(&self, at: u64, len: usize) -> io::Result<std::ops::Range<usize>> {
        within(self.0.len() as u64, at, len)?;
        let start = usize::try_from(at).map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        Ok(start..start + len)
    }
}

impl Store for MemoryStore {
    fn len_bytes(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        let range = self.range(at, buf.len())?;
        buf.copy_from_slice(self.0.get(range).unwrap_or_default());
        Ok(())
    }
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let range = self.range(at, bytes.len())?;
        if let Some(place) = self.0.get_mut(range) {
            place.copy_from_slice(bytes);
        }
        Ok(())
    }
    fn duplicate(&self) -> Option<Box<dyn Store + Send>> {
        Some(Box::new(self.clone()))
    }
}

/// An image in memory that is only looked at; its copies share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frozen(pub Arc<[u8]>);

impl Store for Frozen {
    fn len_bytes(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        within(self.len_bytes(), at, buf.len())?;
        let start = usize::try_from(at).map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        buf.copy_from_slice(self.0.get(start..start + buf.len()).unwrap_or_default());
        Ok(())
    }
    fn write_at(&mut self, _at: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
    fn duplicate(&self) -> Option<Box<dyn Store + Send>> {
        Some(Box::new(self.clone()))
    }
}

/// Bytes in memory with room only where something was written; elsewhere zeros. For images as large as the disks they
/// stand for.
#[derive(Clone, Debug, Default)]
pub struct SparseStore {
    len_bytes: u64,
    /// By number; one that is not there is all zeros.
    pages: FxHashMap<u64, Box<[u8; SPARSE_PAGE]>>,
}

/// Bytes of a page of [`SparseStore`]: what most blocks and fragments of file systems are multiples or halves of.
const SPARSE_PAGE: usize = 4096;

impl SparseStore {
    /// So many zeros.
    pub fn new(len_bytes: u64) -> SparseStore {
        SparseStore { len_bytes, pages: FxHashMap::default() }
    }

    /// Memory that the bytes take.
    pub fn held_bytes(&self) -> u64 {
        self.pages.len() as u64 * SPARSE_PAGE as u64
    }

    /// Each page that a range touches, with the part of it and the part of the range.
    fn parts(at: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let here = at + done as u64;
            let (page, offset) = (here / SPARSE_PAGE as u64, (here % SPARSE_PAGE as u64) as usize);
            let n = (SPARSE_PAGE - offset).min(len - done);
            let part = (page, offset..offset + n, done..done + n);
            done += n;
            (n > 0).then_some(part)
        })
    }
}

impl Store for SparseStore {
    fn duplicate(&self) -> Option<Box<dyn Store + Send>> {
        Some(Box::new(self.clone()))
    }

    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        within(self.len_bytes, at, buf.len())?;
        for (page, inside, part) in SparseStore::parts(at, buf.len()) {
            let Some(place) = buf.get_mut(part) else { continue };
            match self.pages.get(&page).and_then(|page| page.get(inside)) {
                Some(bytes) => place.copy_from_slice(bytes),
                None => place.fill(0),
            }
        }
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        within(self.len_bytes, at, bytes.len())?;
        for (page, inside, part) in SparseStore::parts(at, bytes.len()) {
            let Some(bytes) = bytes.get(part) else { continue };
            if !self.pages.contains_key(&page) && bytes.iter().all(|byte| *byte == 0) {
                continue;
            }
            let page = self.pages.entry(page).or_insert_with(|| Box::new([0; SPARSE_PAGE]));
            if let Some(place) = page.get_mut(inside) {
                place.copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    fn discard(&mut self, at: u64, len_bytes: u64) -> io::Result<()> {
        let page = SPARSE_PAGE as u64;
        for whole in at.div_ceil(page)..at.saturating_add(len_bytes) / page {
            self.pages.remove(&whole);
        }
        Ok(())
    }
}

/// A store that others look at while somebody writes it: a laboratory's image.
impl<S: Store + ?Sized> Store for Arc<Mutex<S>> {
    fn len_bytes(&self) -> u64 {
        locked(self).len_bytes()
    }
    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        locked(self).read_at(at, buf)
    }
    fn next_data(&self, at: u64) -> io::Result<u64> {
        locked(self).next_data(at)
    }
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        locked(self).write_at(at, bytes)
    }
    fn write_pieces(&mut self, at: u64, pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
        locked(self).write_pieces(at, pieces)
    }
    fn discard(&mut self, at: u64, len_bytes: u64) -> io::Result<()> {
        locked(self).discard(at, len_bytes)
    }
    fn sync(&self) -> io::Result<()> {
        locked(self).sync()
    }
}

/// Whoever panicked with the lock has left whole writes behind or parts of them, as a crash does.
fn locked<S: ?Sized>(store: &Mutex<S>) -> MutexGuard<'_, S> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

fn within(store_bytes: u64, at: u64, len: usize) -> io::Result<()> {
    match at.checked_add(len as u64) {
        Some(end) if end <= store_bytes => Ok(()),
        _ => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
    }
}

/// Bytes of a page of [`Overlay`]: the smallest fragment, so that no more than what changes is copied.
const PAGE: u64 = 512;

/// Changes kept in memory over a store that stays as it is: how a check tries its repairs without making them.
#[derive(Debug)]
pub struct Overlay<S> {
    under: S,
    pages: BTreeMap<u64, Box<[u8]>>,
}

/// A piece of a store that changes laid over it replace.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    /// Where.
    pub at_byte: u64,
    /// What is there.
    pub old: Vec<u8>,
    /// What replaces it, of the same length.
    pub new: &'a [u8],
}

impl<S: Store> Overlay<S> {
    /// No changes yet.
    pub fn new(under: S) -> Overlay<S> {
        Overlay { under, pages: BTreeMap::new() }
    }

    /// Bytes of the pages that were written.
    pub fn changed_bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// Pages that differ from what is below.
    pub fn changes(&self) -> Result<Vec<Change<'_>>, StoreError> {
        let mut changes = Vec::new();
        for (number, page) in &self.pages {
            let old = read(&self.under, number * PAGE, page.len())?;
            if old[..] != page[..] {
                changes.push(Change { at_byte: number * PAGE, old, new: page });
            }
        }
        Ok(changes)
    }

    /// Writes the changes to what is below.
    pub fn apply(mut self) -> Result<S, StoreError> {
        for (number, page) in &self.pages {
            write(&mut self.under, number * PAGE, page)?;
        }
        Ok(self.under)
    }
}

impl<S: Store> Store for Overlay<S> {
    fn duplicate(&self) -> Option<Box<dyn Store + Send>> {
        Some(Box::new(Overlay { under: self.under.duplicate()?, pages: self.pages.clone() }))
    }

    fn len_bytes(&self) -> u64 {
        self.under.len_bytes()
    }

    fn next_data(&self, at: u64) -> io::Result<u64> {
        let changed = self.pages.range(at / PAGE..).next().map(|(number, _)| at.max(number * PAGE));
        Ok(self.under.next_data(at)?.min(changed.unwrap_or(u64::MAX)))
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        self.under.read_at(at, buf)?;
        if self.pages.is_empty() {
            return Ok(());
        }
        let end = at + buf.len() as u64;
        for (number, page) in self.pages.range(at / PAGE..end.div_ceil(PAGE)) {
            let page_at = number * PAGE;
            let (from, to) = (page_at.max(at), (page_at + page.len() as u64).min(end));
            let source = page.get((from - page_at) as usize..(to - page_at) as usize).unwrap_or_default();
            if let Some(place) = buf.get_mut((from - at) as usize..(to - at) as usize) {
                place.copy_from_slice(source);
            }
        }
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        within(self.len_bytes(), at, bytes.len())?;
        let mut done = 0;
        while done < bytes.len() {
            let here = at + done as u64;
            let (number, offset) = (here / PAGE, (here % PAGE) as usize);
            let n = (PAGE as usize - offset).min(bytes.len() - done);
            if !self.pages.contains_key(&number) {
                let len = PAGE.min(self.under.len_bytes() - number * PAGE);
                let mut page = vec![0; len as usize];
                self.under.read_at(number * PAGE, &mut page)?;
                self.pages.insert(number, page.into());
            }
            let page = self.pages.get_mut(&number).and_then(|page| page.get_mut(offset..offset + n));
            if let (Some(page), Some(source)) = (page, bytes.get(done..done + n)) {
                page.copy_from_slice(source);
            }
            done += n;
        }
        Ok(())
    }
}

/// Copies a store into an empty file of the same length, leaving out what is all zeros. A signal ends it.
pub fn copy_sparse<S: Store + ?Sized>(from: &S, to: &File) -> Result<(), StoreError> {
    const PIECE: u64 = 64 << 10;
    static ZEROS: [u8; PIECE as usize] = [0; PIECE as usize];
    let len_bytes = from.len_bytes();
    let wrong = |at_byte, len, source| StoreError { doing: "copy", at_byte, len, source };
    to.set_len(len_bytes).map_err(|source| wrong(0, 0, source))?;
    let mut at = 0;
    while at < len_bytes {
        let next =
            posix::interrupt::check().and_then(|()| from.next_data(at)).map_err(|source| wrong(at, 0, source))?;
        // Whole pieces, so that what is written begins where blocks do.
        let piece_at = next / PIECE * PIECE;
        if piece_at >= len_bytes {
            break;
        }
        at = (piece_at + PIECE).min(len_bytes);
        let piece = read(from, piece_at, (at - piece_at) as usize)?;
        if ZEROS.get(..piece.len()) != Some(&piece) {
            to.write_all_at(&piece, piece_at).map_err(|source| wrong(piece_at, piece.len(), source))?;
        }
    }
    Ok(())
}

/// Reads, with an error that says where.
pub fn read<S: Store + ?Sized>(store: &S, at_byte: u64, len: usize) -> Result<Vec<u8>, StoreError> {
    if within(store.len_bytes(), at_byte, len).is_err() {
        let source = io::Error::new(io::ErrorKind::UnexpectedEof, format!("the image ends at {}", store.len_bytes()));
        return Err(StoreError { doing: "read", at_byte, len, source });
    }
    let mut buf = vec![0; len];
    store.read_at(at_byte, &mut buf).map_err(|source| StoreError { doing: "read", at_byte, len, source })?;
    Ok(buf)
}

/// Writes, with an error that says where.
pub fn write<S: Store + ?Sized>(store: &mut S, at_byte: u64, bytes: &[u8]) -> Result<(), StoreError> {
    store.write_at(at_byte, bytes).map_err(|source| StoreError { doing: "write", at_byte, len: bytes.len(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_written_one_behind_the_other() {
        let image = tempfile::tempfile().unwrap();
        image.set_len(1 << 20).unwrap();
        let mut store = FileStore::new(image).unwrap();
        // More than one call takes, and empty ones among them.
        let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        let parts: Vec<&[u8]> = [&[][..]].into_iter().chain(bytes.chunks(97)).chain([&[][..]]).collect();
        assert!(parts.len() > 3 * PIECES_MAX);
        let slices = || parts.iter().map(|part| IoSlice::new(part)).collect::<Vec<_>>();
        store.write_pieces(1234, &mut slices()).unwrap();
        assert_eq!(read(&store, 1234, bytes.len()).unwrap(), bytes);
        assert_eq!((read(&store, 1233, 1).unwrap(), read(&store, 1234 + 300_000, 1).unwrap()), (vec![0], vec![0]));
        let beyond = store.write_pieces((1 << 20) - 299_999, &mut slices()).unwrap_err();
        assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(read(&store, (1 << 20) - 1000, 1000).unwrap(), [0; 1000], "nothing of it is written");
        store.write_pieces(0, &mut []).unwrap();
    }

    /// A target's image was copied byte by byte, its holes too.
    #[test]
    fn changes_over_holes_leave_them_to_be_skipped() {
        let bytes = 4 << 30;
        let image = tempfile::tempfile().unwrap();
        image.set_len(bytes).unwrap();
        image.write_all_at(&[1], 3 << 30).unwrap();
        let mut changed = Overlay::new(FileStore::new(image).unwrap());
        let data = changed.next_data(0).unwrap();
        assert!(data > (2 << 30) && data <= 3 << 30, "{data}");
        write(&mut changed, (1 << 30) + 700, &[2, 3]).unwrap();
        assert_eq!(changed.next_data(5).unwrap(), (1 << 30) + 512);
        assert_eq!(changed.next_data((1 << 30) + 701).unwrap(), (1 << 30) + 701);
        assert_eq!(changed.next_data((1 << 30) + 1024).unwrap(), data);
        assert_eq!(changed.next_data((3 << 30) + (1 << 20)).unwrap(), bytes);
        let copy = tempfile::tempfile().unwrap();
        copy_sparse(&changed, &copy).unwrap();
        let mut here = [0; 2];
        copy.read_exact_at(&mut here, (1 << 30) + 700).unwrap();
        assert_eq!(here, [2, 3]);
        copy.read_exact_at(&mut here[..1], 3 << 30).unwrap();
        assert_eq!(here[0], 1);
    }

    /// Every byte of an image as large as its disk was read, its holes too, and no signal was heard.
    #[test]
    fn a_copy_has_the_same_bytes_and_no_more_room() {
        use std::os::unix::fs::MetadataExt as _;
        let bytes = (3 << 30) + 12_345;
        let image = tempfile::tempfile().unwrap();
        image.set_len(bytes).unwrap();
        let places = [0, 65_535, (1 << 30) + 70_000, bytes - 1];
        for (at, byte) in places.into_iter().zip(1..) {
            image.write_all_at(&[byte], at).unwrap();
        }
        // Zeros that take room.
        image.write_all_at(&[0; 200_000], 2 << 30).unwrap();
        let copy = tempfile::tempfile().unwrap();
        let image = FileStore::new(image).unwrap();
        copy_sparse(&image, &copy).unwrap();
        assert_eq!(copy.metadata().unwrap().len(), bytes);
        let mut here = [0; 1];
        for (at, byte) in places.into_iter().zip(1..) {
            copy.read_exact_at(&mut here, at).unwrap();
            assert_eq!(here, [byte], "{at}");
        }
        assert!(copy.metadata().unwrap().blocks() * 512 <= 4 * (64 << 10), "{:?}", copy.metadata().unwrap());
        // What is not a file: the same bytes, wherever they begin.
        let mut memory = MemoryStore(vec![0; 300_000]);
        memory.write_at(131_071, &[5, 6, 7]).unwrap();
        memory.write_at(299_999, &[8]).unwrap();
        let copy = tempfile::tempfile().unwrap();
        copy_sparse(&memory, &copy).unwrap();
        let mut all = vec![1; 300_000];
        copy.read_exact_at(&mut all, 0).unwrap();
        assert!(all == memory.0);
    }

    #[test]
    fn an_overlay_changes_nothing_below() {
        let below = MemoryStore((0..=255).cycle().take(1300).collect());
        let mut over = Overlay::new(below.clone());
        over.write_at(500, &[9; 600]).unwrap();
        over.write_at(1290, &[7; 10]).unwrap();
        assert!(over.write_at(1291, &[7; 10]).is_err(), "past the end");
        let mut expected = below.0.clone();
        expected[500..1100].fill(9);
        expected[1290..].fill(7);
        let mut read = vec![0; 1300];
        over.read_at(0, &mut read).unwrap();
        assert_eq!(read, expected);
        let mut part = vec![0; 20];
        over.read_at(1085, &mut part).unwrap();
        assert_eq!(part, expected[1085..1105]);
        assert_eq!(over.under, below);
    }

    #[test]
    fn a_sparse_store_is_as_large_as_what_is_in_it() {
        let mut store = SparseStore::new(1 << 40);
        store.write_at((1 << 39) - 3, &[1, 2, 3, 4, 5, 6]).unwrap();
        store.write_at(8192, &[0; 10_000]).unwrap();
        assert_eq!(store.held_bytes(), 2 * 4096, "zeros take no room");
        let mut read = [9; 12];
        store.read_at((1 << 39) - 6, &mut read).unwrap();
        assert_eq!(read, [0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0]);
        assert!(store.read_at((1 << 40) - 3, &mut read).is_err() && store.write_at(u64::MAX - 3, &read).is_err());
        store.discard(1 << 39, 4096).unwrap();
        assert_eq!(store.held_bytes(), 4096);
        store.write_at((1 << 39) - 3, &[0; 3]).unwrap();
        store.read_at((1 << 39) - 6, &mut read).unwrap();
        assert_eq!(read, [0; 12]);
    }

    #[test]
    fn a_shared_store_is_one_store() {
        let mut one = Arc::new(Mutex::new(MemoryStore(vec![0; 16])));
        let other = one.clone();
        one.write_at(3, &[7]).unwrap();
        assert_eq!(read(&other, 0, 5).unwrap(), [0, 0, 0, 7, 0]);
    }
}
