//! Where the bytes are: stores of sectors, beside the timing models and independent of them.

mod file;
mod log;
mod sparse;

pub use file::FileStore;
pub use log::{WriteLog, WriteRecord};
pub use sparse::SparseStore;

use crate::Lbn;

/// Why sectors cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The buffer is not a whole number of sectors.
    #[error("{bytes} bytes are not a whole number of sectors of {sector_bytes} bytes")]
    NotSectors {
        /// Bytes given.
        bytes: usize,
        /// Bytes of a sector.
        sector_bytes: u32,
    },
    /// Sectors that are not there.
    #[error("sectors {} to {} reach behind the store's {capacity_sectors}", .lbn.0, .lbn.0.saturating_add(*.sectors))]
    OutOfRange {
        /// First sector.
        lbn: Lbn,
        /// How many.
        sectors: u64,
        /// Sectors there are.
        capacity_sectors: u64,
    },
    /// The file behind the store.
    #[error("{file}: {source}")]
    Io {
        /// Path.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file that is not a whole number of sectors, or empty.
    #[error("{file}: {bytes} bytes are not one or more sectors of {sector_bytes} bytes")]
    BadSize {
        /// Path.
        file: String,
        /// Its size.
        bytes: u64,
        /// Bytes of a sector.
        sector_bytes: u32,
    },
}

/// Sectors that hold bytes. A sector that was never written reads as zeros.
pub trait BlockStore {
    /// Bytes of a sector.
    fn sector_bytes(&self) -> u32;

    /// Sectors.
    fn capacity_sectors(&self) -> u64;

    /// Reads whole sectors into a buffer.
    fn read(&self, lbn: Lbn, into: &mut [u8]) -> Result<(), StoreError>;

    /// Writes whole sectors from a buffer.
    fn write(&mut self, lbn: Lbn, from: &[u8]) -> Result<(), StoreError>;

    /// Forgets sectors: they read as zeros again.
    fn discard(&mut self, lbn: Lbn, sectors: u64) -> Result<(), StoreError>;

    /// Makes what was written so far last, where the store outlives the process.
    fn sync(&mut self) -> Result<(), StoreError>;

    /// Sectors of a buffer, if it is whole sectors that are there.
    fn checked(&self, lbn: Lbn, bytes: usize) -> Result<u64, StoreError> {
        let sector_bytes = self.sector_bytes();
        if !bytes.is_multiple_of(sector_bytes as usize) {
            return Err(StoreError::NotSectors { bytes, sector_bytes });
        }
        let sectors = (bytes / sector_bytes as usize) as u64;
        self.in_range(lbn, sectors)?;
        Ok(sectors)
    }

    /// Whether sectors are there.
    fn in_range(&self, lbn: Lbn, sectors: u64) -> Result<(), StoreError> {
        let capacity_sectors = self.capacity_sectors();
        if lbn.0.checked_add(sectors).is_none_or(|end| end > capacity_sectors) {
            return Err(StoreError::OutOfRange { lbn, sectors, capacity_sectors });
        }
        Ok(())
    }
}
