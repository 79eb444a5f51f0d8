//! A store in a file: an image that other programs can read.

use super::{BlockStore, StoreError};
use crate::Lbn;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Sectors in a file.
#[derive(Debug)]
pub struct FileStore {
    file: File,
    name: String,
    sector_bytes: u32,
    capacity_sectors: u64,
}

/// Zeros written at a time where sectors are forgotten.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

impl FileStore {
    /// Makes a new file of so many sectors, all zeros; fails if it is there.
    pub fn create(path: &Path, sector_bytes: u32, capacity_sectors: u64) -> Result<FileStore, StoreError> {
        let name = path.display().to_string();
        let bytes = capacity_sectors.checked_mul(u64::from(sector_bytes)).filter(|&bytes| bytes > 0);
        let Some(bytes) = bytes else {
            return Err(StoreError::BadSize { file: name, bytes: capacity_sectors, sector_bytes });
        };
        let made = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = made.and_then(|file| file.set_len(bytes).map(|()| file));
        let file = file.map_err(|source| StoreError::Io { file: name.clone(), source })?;
        Ok(FileStore { file, name, sector_bytes, capacity_sectors })
    }

    /// Opens an image, for reading and writing or for reading only.
    pub fn open(path: &Path, sector_bytes: u32, writable: bool) -> Result<FileStore, StoreError> {
        let name = path.display().to_string();
        let opened = OpenOptions::new().read(true).write(writable).open(path);
        let sized = opened.and_then(|file| file.metadata().map(|meta| (file, meta.len())));
        let (file, bytes) = sized.map_err(|source| StoreError::Io { file: name.clone(), source })?;
        if sector_bytes == 0 || bytes == 0 || bytes % u64::from(sector_bytes) != 0 {
            return Err(StoreError::BadSize { file: name, bytes, sector_bytes });
        }
        Ok(FileStore { file, name, sector_bytes, capacity_sectors: bytes / u64::from(sector_bytes) })
    }

    fn io(&self, source: std::io::Error) -> StoreError {
        StoreError::Io { file: self.name.clone(), source }
    }

    fn offset(&self, lbn: Lbn) -> u64 {
        lbn.0 * u64::from(self.sector_bytes)
    }
}

impl BlockStore for FileStore {
    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn capacity_sectors(&self) -> u64 {
        self.capacity_sectors
    }

    fn read(&self, lbn: Lbn, into: &mut [u8]) -> Result<(), StoreError> {
        self.checked(lbn, into.len())?;
        self.file.read_exact_at(into, self.offset(lbn)).map_err(|source| self.io(source))
    }

    fn write(&mut self, lbn: Lbn, from: &[u8]) -> Result<(), StoreError> {
        self.checked(lbn, from.len())?;
        self.file.write_all_at(from, self.offset(lbn)).map_err(|source| self.io(source))
    }

    fn discard(&mut self, lbn: Lbn, sectors: u64) -> Result<(), StoreError> {
        self.in_range(lbn, sectors)?;
        let (mut at, end) = (self.offset(lbn), self.offset(lbn.plus(sectors)));
        while at < end {
            let bytes = (end - at).min(ZEROS.len() as u64);
            self.file.write_all_at(&ZEROS[..bytes as usize], at).map_err(|source| self.io(source))?;
            at += bytes;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.file.sync_all().map_err(|source| self.io(source))
    }
}
