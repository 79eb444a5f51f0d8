//! What a replay has read and written.

use super::format::SECTOR;
use device::store::Store;
use serde::Serialize;
use std::cell::RefCell;

/// What replaying has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// Transactions.
    pub transactions: u64,
    /// Sectors of the log that were read.
    pub log_sectors: u64,
    /// Sectors that were written in their places.
    pub sectors: u64,
    /// Records of journaled Soft Updates.
    pub records: u64,
    /// Files without a name that were freed.
    pub orphans: u64,
    /// Whether the file system was in use with its log, and its totals were counted anew.
    pub counted: bool,
    /// What was written, in order.
    #[serde(skip)]
    pub steps: Vec<Step>,
    /// What the records of journaled Soft Updates had it read, besides the log: byte and length.
    #[serde(skip)]
    pub reads: Vec<(u64, u64)>,
}

/// A step of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Whole sectors.
    Write {
        /// Where.
        at_byte: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// What is written so far is on the medium before anything else is written.
    Flush,
}

/// A store that keeps lists of what is written to it, and of what is read. Whatever store that is, the code is the
/// same: replaying is too long to have it in the program once for each kind.
pub(super) struct Noted<'a> {
    pub(super) store: &'a mut dyn Store,
    pub(super) steps: Vec<Step>,
    pub(super) reads: RefCell<Vec<(u64, u64)>>,
}

impl Noted<'_> {
    pub(super) fn flush(&mut self) {
        self.steps.push(Step::Flush);
    }
}

impl Store for Noted<'_> {
    fn len_bytes(&self) -> u64 {
        self.store.len_bytes()
    }
    fn read_at(&self, at: u64, buf: &mut [u8]) -> std::io::Result<()> {
        self.reads.borrow_mut().push((at, buf.len() as u64));
        self.store.read_at(at, buf)
    }
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.store.write_at(at, bytes)?;
        let at_byte = at / SECTOR * SECTOR;
        let end = (at + bytes.len() as u64).next_multiple_of(SECTOR);
        let mut whole = vec![0; (end - at_byte) as usize];
        self.store.read_at(at_byte, &mut whole)?;
        self.steps.push(Step::Write { at_byte, bytes: whole });
        Ok(())
    }
}

impl Replayed {
    /// Whether there was anything to do.
    pub fn is_nothing(&self) -> bool {
        self.transactions == 0 && self.orphans == 0 && !self.counted
    }
}
