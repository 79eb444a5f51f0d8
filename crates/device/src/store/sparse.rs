//! A store in memory that takes room only for what was written.

use super::{BlockStore, StoreError};
use crate::Lbn;
use std::collections::BTreeMap;

/// Sectors of a piece that is allocated as a whole.
const PIECE_SECTORS: u64 = 64;

/// Sectors in memory.
#[derive(Clone, Debug)]
pub struct SparseStore {
    sector_bytes: u32,
    capacity_sectors: u64,
    pieces: BTreeMap<u64, Box<[u8]>>,
}

impl SparseStore {
    /// An empty store.
    ///
    /// # Panics
    /// If a sector has no bytes.
    pub fn new(sector_bytes: u32, capacity_sectors: u64) -> SparseStore {
        assert!(sector_bytes > 0, "a sector has bytes");
        SparseStore { sector_bytes, capacity_sectors, pieces: BTreeMap::new() }
    }

    /// Bytes of memory that its contents take.
    pub fn allocated_bytes(&self) -> u64 {
        self.pieces.len() as u64 * PIECE_SECTORS * u64::from(self.sector_bytes)
    }

    /// Calls `each` with piece, range within the piece and range of the buffer, for all that sectors cover.
    fn parts(&self, lbn: Lbn, sectors: u64, mut each: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>)) {
        let bytes = u64::from(self.sector_bytes);
        let (mut next, end) = (lbn.0, lbn.0 + sectors);
        while next < end {
            let piece = next / PIECE_SECTORS;
            let stop = ((piece + 1) * PIECE_SECTORS).min(end);
            let within = |sector: u64| ((sector - piece * PIECE_SECTORS) * bytes) as usize;
            let buffer = |sector: u64| ((sector - lbn.0) * bytes) as usize;
            each(piece, within(next)..within(stop), buffer(next)..buffer(stop));
            next = stop;
        }
    }
}

impl BlockStore for SparseStore {
    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn capacity_sectors(&self) -> u64 {
        self.capacity_sectors
    }

    fn read(&self, lbn: Lbn, into: &mut [u8]) -> Result<(), StoreError> {
        let sectors = self.checked(lbn, into.len())?;
        self.parts(lbn, sectors, |piece, within, buffer| match self.pieces.get(&piece) {
            Some(held) => into[buffer].copy_from_slice(&held[within]),
            None => into[buffer].fill(0),
        });
        Ok(())
    }

    fn write(&mut self, lbn: Lbn, from: &[u8]) -> Result<(), StoreError> {
        let sectors = self.checked(lbn, from.len())?;
        let size = (PIECE_SECTORS * u64::from(self.sector_bytes)) as usize;
        let mut parts = Vec::new();
        self.parts(lbn, sectors, |piece, within, buffer| parts.push((piece, within, buffer)));
        for (piece, within, buffer) in parts {
            let held = self.pieces.entry(piece).or_insert_with(|| vec![0; size].into_boxed_slice());
            held[within].copy_from_slice(&from[buffer]);
        }
        Ok(())
    }

    fn discard(&mut self, lbn: Lbn, sectors: u64) -> Result<(), StoreError> {
        self.in_range(lbn, sectors)?;
        if sectors == 0 {
            return Ok(());
        }
        let size = (PIECE_SECTORS * u64::from(self.sector_bytes)) as usize;
        let (first, last) = (lbn.0 / PIECE_SECTORS, (lbn.0 + sectors - 1) / PIECE_SECTORS);
        // Only pieces that are there need work, however long the range.
        let held: Vec<u64> = self.pieces.range(first..=last).map(|(&piece, _)| piece).collect();
        for piece in held {
            let start = (piece * PIECE_SECTORS).max(lbn.0) - piece * PIECE_SECTORS;
            let end = ((piece + 1) * PIECE_SECTORS).min(lbn.0 + sectors) - piece * PIECE_SECTORS;
            let range = (start * u64::from(self.sector_bytes)) as usize..(end * u64::from(self.sector_bytes)) as usize;
            if range == (0..size) {
                self.pieces.remove(&piece);
            } else if let Some(bytes) = self.pieces.get_mut(&piece) {
                bytes[range].fill(0);
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}
