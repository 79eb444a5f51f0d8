//! A part of a device, as a partition table cuts it off.
//!
//! Where a file system begins decides in which zone of a disk it lies: how many sectors a track has there, and so
//! whether a step of the file system's own idea of a track comes just in time or just too late.

use crate::request::{Completion, Lbn, Operation, Request, RequestError};
use crate::{Device, FlashCounts};

/// Everything of a device from a sector on.
#[derive(Clone)]
pub struct Partition {
    under: Box<dyn Device>,
    first_sector: u64,
}

impl Partition {
    /// The part from `first_sector` to the end; empty where the device ends before.
    pub fn new(under: Box<dyn Device>, first_sector: u64) -> Partition {
        Partition { under, first_sector }
    }
}

impl Device for Partition {
    fn duplicate(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn sector_bytes(&self) -> u32 {
        self.under.sector_bytes()
    }

    fn capacity_sectors(&self) -> u64 {
        self.under.capacity_sectors().saturating_sub(self.first_sector)
    }

    fn max_transfer_sectors(&self) -> u32 {
        self.under.max_transfer_sectors()
    }

    fn supports_trim(&self) -> bool {
        self.under.supports_trim()
    }

    fn flash_counts(&self) -> Option<FlashCounts> {
        self.under.flash_counts()
    }

    fn submit(&mut self, now_ns: u64, tag: u64, request: Request) -> Result<(), RequestError> {
        self.check(&request)?;
        let lbn = match request.operation {
            Operation::Flush => request.lbn,
            _ => Lbn(request.lbn.0 + self.first_sector),
        };
        self.under.submit(now_ns, tag, Request { lbn, ..request })
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.under.next_event_ns()
    }

    fn poll(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        self.under.poll(now_ns, completions);
    }
}
