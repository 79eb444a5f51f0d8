//! What the processor spends on operations.

use serde::{Deserialize, Serialize};

/// Processor time of a machine, by kind of work. Nanoseconds, but for copying.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Entering and leaving the kernel.
    pub call_ns: u64,
    /// A component of a path, found in the name cache or not.
    pub component_ns: u64,
    /// Looking at one entry of a directory.
    pub entry_ns: u64,
    /// Opening: a descriptor and what belongs to it; half of it again for closing.
    pub open_ns: u64,
    /// Reading or changing attributes in memory.
    pub attributes_ns: u64,
    /// Making or removing an inode, apart from blocks and directory.
    pub inode_ns: u64,
    /// Entering or removing a name in a directory.
    pub name_ns: u64,
    /// Finding a block in the buffer cache, or making room for it.
    pub block_ns: u64,
    /// Allocating or freeing a block on the disk.
    pub allocate_ns: u64,
    /// Preparing a request and taking its interrupt.
    pub request_ns: u64,
    /// Moving a byte between process and cache, picoseconds.
    pub copy_ps_per_byte: u64,
}

impl Costs {
    /// No time at all: what is left is the disk's.
    pub const FREE: Costs = Costs {
        call_ns: 0,
        component_ns: 0,
        entry_ns: 0,
        open_ns: 0,
        attributes_ns: 0,
        inode_ns: 0,
        name_ns: 0,
        block_ns: 0,
        allocate_ns: 0,
        request_ns: 0,
        copy_ps_per_byte: 0,
    };

    /// Moving so many bytes between process and cache.
    pub fn copy_ns(&self, bytes: u64) -> u64 {
        let ps = u128::from(bytes) * u128::from(self.copy_ps_per_byte);
        u64::try_from(ps / 1000).unwrap_or(u64::MAX)
    }
}
