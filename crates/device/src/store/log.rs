//! The writes of a run in their order with their times: what a crash would leave behind.
//!
//! A write may be on the medium from the time it was issued, and is for certain from its completion if that was durable, or
//! else from the completion of the first flush issued after it completed. A crash keeps every write that is on the medium
//! for certain, and any of the others.

use crate::{Completion, Lbn};

/// A write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRecord {
    /// When it was handed to the device.
    pub issued_ns: u64,
    /// When the host was told; `None` while it is not.
    pub completed_ns: Option<u64>,
    /// From when it is on the medium for certain.
    pub durable_ns: Option<u64>,
    /// First sector.
    pub lbn: Lbn,
    /// Sectors.
    pub sectors: u32,
    /// Its bytes, if they are kept.
    pub data: Option<Box<[u8]>>,
}

/// Writes in the order in which they were issued.
#[derive(Clone, Debug, Default)]
pub struct WriteLog {
    records: Vec<WriteRecord>,
}

impl WriteLog {
    /// An empty log.
    pub fn new() -> WriteLog {
        WriteLog::default()
    }

    /// A write is handed to the device; its number.
    pub fn issued(&mut self, now_ns: u64, lbn: Lbn, sectors: u32, data: Option<Box<[u8]>>) -> usize {
        let record = WriteRecord { issued_ns: now_ns, completed_ns: None, durable_ns: None, lbn, sectors, data };
        self.records.push(record);
        self.records.len() - 1
    }

    /// The device has completed a write. Unknown numbers are passed over.
    pub fn completed(&mut self, number: usize, completion: &Completion) {
        if let Some(record) = self.records.get_mut(number) {
            record.completed_ns = Some(completion.at_ns);
            record.durable_ns = completion.durable.then_some(completion.at_ns);
        }
    }

    /// A flush that was issued at `issued_ns` has completed: every write completed by then is on the medium.
    pub fn flushed(&mut self, issued_ns: u64, completed_ns: u64) {
        for record in &mut self.records {
            if record.durable_ns.is_none() && record.completed_ns.is_some_and(|at_ns| at_ns <= issued_ns) {
                record.durable_ns = Some(completed_ns);
            }
        }
    }

    /// All writes.
    pub fn records(&self) -> &[WriteRecord] {
        &self.records
    }

    /// Writes that a crash at a time keeps for certain, in order.
    pub fn kept(&self, crash_ns: u64) -> impl Iterator<Item = &WriteRecord> {
        self.records.iter().filter(move |record| record.durable_ns.is_some_and(|at_ns| at_ns <= crash_ns))
    }

    /// Writes that a crash at a time may keep or lose, in order.
    pub fn in_doubt(&self, crash_ns: u64) -> impl Iterator<Item = &WriteRecord> {
        self.records.iter().filter(move |record| {
            record.issued_ns <= crash_ns && record.durable_ns.is_none_or(|at_ns| at_ns > crash_ns)
        })
    }
}
