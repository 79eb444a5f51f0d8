//! The image below a mounted file system: its lock, and errors that name it.

use crate::MountError;
use device::store::{FileStore, Store};
use rustix::fs::FlockOperation;
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

/// An image, locked for as long as it is open: against writers, or by one against all. Whoever reads the image without
/// a lock is not kept from it.
#[derive(Debug)]
pub(crate) struct Locked {
    /// Its own descriptor of the same open file: the lock is that file's.
    file: File,
}

impl Locked {
    /// Opens an image, a regular file or a block device, and locks it.
    pub(crate) fn open(path: &Path, read_only: bool) -> Result<(Locked, ImageStore), MountError> {
        let wrong = |doing| move |source| MountError::Io { path: path.to_owned(), doing, source };
        // Looks what it is before it is opened for writing: what is no image at all is refused there.
        let no_image = |source| MountError::Open { path: path.to_owned(), source };
        let looked_at = posix::input::open_image(path).map_err(no_image)?;
        let file = if read_only {
            looked_at
        } else {
            OpenOptions::new().read(true).write(true).open(path).map_err(wrong("open it for writing"))?
        };
        let operation =
            if read_only { FlockOperation::NonBlockingLockShared } else { FlockOperation::NonBlockingLockExclusive };
        match rustix::fs::flock(&file, operation) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(MountError::InUse { path: path.to_owned() }),
            Err(error) => return Err(wrong("lock it")(error.into())),
        }
        let locked = Locked { file: file.try_clone().map_err(wrong("open it again"))? };
        let store = FileStore::new(file).map_err(wrong("find its size"))?;
        Ok((locked, ImageStore { store, path: path.to_owned(), waiting_bytes: Cell::new(0), early: Cell::new(false) }))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing is not enough while a child process that was just forked has the file open. It can only fail where
        // there is no lock.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// An image whose errors say which one it is, and where in it.
#[derive(Debug)]
pub(crate) struct ImageStore {
    store: FileStore,
    path: PathBuf,
    /// What was written since the last sync.
    waiting_bytes: Cell<u64>,
    /// Whether the host is to begin writing at once what is written.
    early: Cell<bool>,
}

/// Where a sync once had to wait for so much, as those of a log do, the host begins at once with everything from then
/// on: the next one has little to wait for (so does PostgreSQL with `backend_flush_after`).
const EARLY_BYTES: u64 = 8 << 20;
/// Pieces below this are left to the host: what begins early costs a call each.
const EARLY_PIECE_BYTES: u64 = 64 << 10;

impl ImageStore {
    fn begin_early(&self, at: u64, len_bytes: u64) {
        self.waiting_bytes.update(|waiting| waiting + len_bytes);
        if self.early.get() && len_bytes >= EARLY_PIECE_BYTES {
            // What cannot be written is said by the sync.
            let _ = posix::begin_write_back(self.store.file(), at, len_bytes);
        }
    }

    fn named<T>(&self, result: io::Result<T>, doing: &str, at: u64, len: usize) -> io::Result<T> {
        result.map_err(|error| {
            let path = self.path.display();
            io::Error::new(error.kind(), format!("{path}: cannot {doing} {len} bytes at byte {at}: {error}"))
        })
    }
}

impl Store for ImageStore {
    fn len_bytes(&self) -> u64 {
        self.store.len_bytes()
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        self.named(self.store.read_at(at, buf), "read", at, buf.len())
    }

    fn next_data(&self, at: u64) -> io::Result<u64> {
        self.store.next_data(at)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_pieces(at, &mut [IoSlice::new(bytes)])
    }

    fn write_pieces(&mut self, at: u64, pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
        let len = pieces.iter().map(|piece| piece.len()).sum();
        let written = self.store.write_pieces(at, pieces);
        self.named(written, "write", at, len)?;
        self.begin_early(at, len as u64);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        if self.waiting_bytes.replace(0) >= EARLY_BYTES {
            self.early.set(true);
        }
        let path = self.path.display();
        self.store.sync().map_err(|error| {
            io::Error::new(error.kind(), format!("{path}: cannot put what was written onto the disk: {error}"))
        })
    }
}
