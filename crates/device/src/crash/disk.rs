//! A disk whose states are told apart by a number, and a store that keeps a log of what is written to it.

use super::log::{Event, SECTOR_BYTES, Write};
use crate::store::{Overlay, Store};
use std::io;

type Sector = [u8; SECTOR_BYTES];

/// A store with changes laid over it, and a sum over what they changed: no two states share it, but by a chance of one
/// in 2^64.
#[derive(Debug)]
pub struct Disk<S> {
    bytes: Overlay<S>,
    sum: u64,
    /// What was there before, while something is tried out.
    undo: Option<Vec<(u64, Sector)>>,
}

/// A number for what is in a sector: FxHash over its words, with its place.
fn sum_of(number: u64, sector: &Sector) -> u64 {
    let mut sum = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for word in sector.as_chunks::<8>().0 {
        sum = (sum.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    // The low bits of a product depend on low bits only.
    sum ^ sum >> 32
}

impl<S: Store> Disk<S> {
    /// A disk as it is.
    pub fn new(base: S) -> Disk<S> {
        Disk { bytes: Overlay::new(base), sum: 0, undo: None }
    }

    /// The number of what it holds now, among all that it has held: 0 at the beginning.
    pub fn state(&self) -> u64 {
        self.sum
    }

    /// A sector.
    pub(super) fn sector(&self, number: u64) -> io::Result<Sector> {
        let mut sector = [0; SECTOR_BYTES];
        self.bytes.read_at(number * SECTOR_BYTES as u64, &mut sector)?;
        Ok(sector)
    }

    /// Writes a sector.
    pub(super) fn put(&mut self, number: u64, sector: &Sector) -> io::Result<()> {
        let old = self.sector(number)?;
        if old == *sector {
            return Ok(());
        }
        if let Some(undo) = &mut self.undo {
            undo.push((number, old));
        }
        self.bytes.write_at(number * SECTOR_BYTES as u64, sector)?;
        self.sum = self.sum.wrapping_sub(sum_of(number, &old)).wrapping_add(sum_of(number, sector));
        Ok(())
    }

    /// What is written from here on will be [put back](Disk::back).
    pub(super) fn try_out(&mut self) {
        assert!(self.undo.is_none(), "one state is laid over a disk at a time");
        self.undo = Some(Vec::new());
    }

    /// As it was.
    pub(super) fn back(&mut self) -> io::Result<()> {
        for (number, sector) in self.undo.take().into_iter().flatten().rev() {
            self.put(number, &sector)?;
        }
        Ok(())
    }
}

/// To look at; whoever recovers it lays an [`Overlay`] over it.
impl<S: Store> Store for &Disk<S> {
    fn len_bytes(&self) -> u64 {
        self.bytes.len_bytes()
    }
    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        self.bytes.read_at(at, buf)
    }
    fn write_at(&mut self, _at: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

/// A store that keeps a log of what is written to it, one write after the other: what a repair is interrupted in.
#[derive(Debug)]
pub struct Recording<S> {
    store: S,
    log: Vec<Event>,
}

impl<S: Store> Recording<S> {
    /// Nothing is written yet.
    pub fn new(store: S) -> Recording<S> {
        Recording { store, log: Vec::new() }
    }

    /// What was written, in order.
    pub fn into_log(self) -> Vec<Event> {
        self.log
    }
}

impl<S: Store> Store for Recording<S> {
    fn len_bytes(&self) -> u64 {
        self.store.len_bytes()
    }
    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        self.store.read_at(at, buf)
    }
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let sector = SECTOR_BYTES as u64;
        // Whole sectors, as they go to a drive.
        let first = at / sector * sector;
        let end = (at + bytes.len() as u64).next_multiple_of(sector).min(self.store.len_bytes());
        let mut whole = vec![0; (end - first) as usize];
        self.store.read_at(first, &mut whole)?;
        let before = whole.clone();
        self.store.write_at(at, bytes)?;
        self.store.read_at(first, &mut whole)?;
        if whole != before {
            let submitted_after = self.log.len() as u64;
            self.log.push(Event::Write(Write { at_byte: first, bytes: whole.into(), submitted_after, durable: true }));
        }
        Ok(())
    }
}
