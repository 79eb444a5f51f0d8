//! Reads a workload profile and counts what is in it: `cargo run -p fsage-trace --example read_workload [W.workload]`.
//!
//! Shows [`Reader`]: what the profile says of itself, the calls in batches, and the names that the workload found.
//! Without an argument it reads the recording that comes with `fsage quickstart`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use trace::profile::Reader;
use trace::{Batch, Op};

/// What one operation was asked for in all.
#[derive(Default)]
pub struct Count {
    /// How many calls.
    pub calls: u64,
    /// How many of them failed.
    pub failed: u64,
    /// Bytes that reads and writes have moved.
    pub bytes: u64,
}

/// Counts the calls of a profile by operation.
///
/// # Errors
/// The profile cannot be read, or is damaged.
pub fn count(reader: &Reader) -> Result<BTreeMap<Op, Count>, Box<dyn Error>> {
    let mut counts: BTreeMap<Op, Count> = BTreeMap::new();
    let mut batches = reader.batches()?;
    let mut batch = Batch::default(); // used again, so that memory is that of one batch
    while batches.next_into(&mut batch)? {
        for event in &batch.events {
            let count = counts.entry(event.op()).or_default();
            count.calls += 1;
            count.failed += u64::from(event.head.errno.is_some());
            if matches!(event.op(), Op::Read | Op::Write) {
                count.bytes += u64::try_from(event.head.ret).unwrap_or(0); // -1 where it failed
            }
        }
    }
    Ok(counts)
}

/// The recording that comes with `fsage quickstart`.
pub fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/src/quickstart/recorded")
}

/// Prints the counts of the profile that the argument names.
pub fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).map_or_else(bundled, PathBuf::from);
    let reader = Reader::open(&path)?;
    let names = reader.snapshot()?.entries.len();
    println!("{}: {} calls, began with {names} names", path.display(), reader.events());
    for (op, count) in count(&reader)? {
        println!("{:12} {:8} calls {:6} failed {:12} bytes", op.name(), count.calls, count.failed, count.bytes);
    }
    Ok(())
}
