//! What is asked of a device, and what comes back.

use serde::Serialize;

/// A logical block number: a sector's address as the host sees it, counted in sectors of
/// [`crate::Device::sector_bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Lbn(pub u64);

impl Lbn {
    /// The block `sectors` further on.
    pub fn plus(self, sectors: u64) -> Lbn {
        Lbn(self.0.saturating_add(sectors))
    }
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Data to the host.
    Read,
    /// Data from the host.
    Write,
    /// Everything acknowledged so far onto the medium; carries no sectors.
    Flush,
    /// The sectors hold nothing of value any more.
    Trim,
}

/// A request to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// What to do.
    pub operation: Operation,
    /// The first sector.
    pub lbn: Lbn,
    /// How many sectors; 0 for a flush.
    pub sectors: u32,
}

impl Request {
    /// A read.
    pub fn read(lbn: u64, sectors: u32) -> Request {
        Request { operation: Operation::Read, lbn: Lbn(lbn), sectors }
    }

    /// A write.
    pub fn write(lbn: u64, sectors: u32) -> Request {
        Request { operation: Operation::Write, lbn: Lbn(lbn), sectors }
    }

    /// A trim.
    pub fn trim(lbn: u64, sectors: u32) -> Request {
        Request { operation: Operation::Trim, lbn: Lbn(lbn), sectors }
    }

    /// A flush.
    pub fn flush() -> Request {
        Request { operation: Operation::Flush, lbn: Lbn(0), sectors: 0 }
    }

    /// The first sector behind it.
    pub fn end(&self) -> Lbn {
        self.lbn.plus(u64::from(self.sectors))
    }
}

/// A request that a device has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The caller's name for the request.
    pub tag: u64,
    /// When the host is told.
    pub at_ns: u64,
    /// Of a write: whether its data are on the medium (or in memory that survives a power failure) at `at_ns`. If not,
    /// they are after the next flush.
    pub durable: bool,
}

/// Why a device refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The request reaches behind the last sector.
    #[error("sectors {} to {} reach behind the device's end: it has {capacity_sectors} \
        sectors", .lbn.0, .lbn.0.saturating_add(u64::from(*.sectors)))]
    OutOfRange {
        /// First sector asked for.
        lbn: Lbn,
        /// Sectors asked for.
        sectors: u32,
        /// Sectors there are.
        capacity_sectors: u64,
    },
    /// A read, write or trim of nothing.
    #[error("a read, write or trim of no sectors")]
    Empty,
    /// More sectors than one command carries.
    #[error("a transfer of {sectors} sectors; the largest this device takes is {limit_sectors}: split it")]
    TooLong {
        /// Sectors asked for.
        sectors: u32,
        /// The most in one command.
        limit_sectors: u32,
    },
    /// The device has no such command.
    #[error("this device has no trim command")]
    NoTrim,
    /// An array has lost more members than it can do without.
    #[error("the array has lost too many members for this request")]
    Failed,
}
