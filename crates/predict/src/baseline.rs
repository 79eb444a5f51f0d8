//! What simpler methods say: the baselines that a prediction has to beat.

use crate::pipeline::postprocess::OpTotal;
use serde::Serialize;
use system::vector::Class;
use system::{PriceTable, SystemProfile};
use trace::Op;
use trace::profile::Durations;

/// Totals of the simpler methods, nanoseconds. `None`: the profile lacks what the method needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Baselines {
    /// Calls of each type times one mean latency of the type, without a cache model.
    pub count_times_mean_ns: Option<f64>,
    /// Bytes read and written over the system's sequential throughput.
    pub bandwidth_only_ns: Option<f64>,
    /// The traced time of the same calls, unchanged; `None` where the trace has no durations.
    pub same_as_traced_ns: Option<f64>,
    /// How far that is the calls' own time: taken in the kernel it is an honest baseline, of strace's it is none.
    pub traced: Durations,
}

impl Baselines {
    /// Computes them from a prediction's operation counts; predicted times are not used.
    pub fn new(by_op: &[OpTotal], profile: &SystemProfile) -> Baselines {
        let table = PriceTable::new(profile);
        let count = by_op.iter().map(|o| Some(o.calls as f64 * mean_latency(&table, o)?)).sum();
        let bandwidth = by_op.iter().map(|o| transfer(&table, o)).sum();
        Baselines {
            count_times_mean_ns: count,
            bandwidth_only_ns: bandwidth,
            same_as_traced_ns: Some(by_op.iter().map(|o| o.traced_ns as f64).sum()),
            traced: Durations::default(),
        }
    }

    /// The same, knowing how far traced durations are the calls' own.
    pub fn with_durations(self, traced: Durations) -> Baselines {
        let same_as_traced_ns = self.same_as_traced_ns.filter(|_| traced != Durations::None);
        Baselines { same_as_traced_ns, traced, ..self }
    }
}

/// The classes one call type may turn out to be, which someone without a cache model averages over.
fn classes_of(op: Op) -> &'static [Class] {
    use Class as C;
    match op {
        Op::Open => &[C::Open, C::Create, C::OpenMissing],
        Op::Close => &[C::Close, C::CloseWritten],
        Op::Read | Op::MapRead => &[C::ReadCached, C::ReadSeq, C::ReadRand],
        Op::Write | Op::MapWrite => &[C::WriteAppend, C::WriteCached, C::WriteUncached],
        Op::Copy => &[C::CopyRange],
        Op::Seek => &[C::Seek],
        Op::Fsync => &[C::FsyncClean, C::FsyncAppend, C::FsyncOverwrite, C::FsyncCreate],
        Op::Fdatasync => &[C::FsyncClean, C::FdatasyncAppend, C::FdatasyncOverwrite, C::FdatasyncCreate],
        Op::SyncRange => &[C::SyncRangeStart, C::FdatasyncOverwrite],
        Op::Sync | Op::SyncFs => &[C::SyncFs],
        Op::Truncate | Op::Ftruncate => &[C::TruncateCached, C::TruncateUncached],
        Op::Fallocate => &[C::Fallocate],
        Op::Fadvise | Op::Readahead => &[C::Fadvise],
        Op::Stat => &[C::Stat],
        Op::Fstat => &[C::Fstat],
        Op::StatFs => &[C::StatFs],
        Op::Access => &[C::Access],
        Op::ReadLink => &[C::ReadLink, C::ReadLinkNone],
        Op::GetDents => &[C::ReadDir, C::ReadDirCold],
        Op::Mkdir => &[C::Mkdir],
        Op::Rmdir => &[C::Rmdir],
        Op::Unlink => &[C::Remove, C::RemoveDirty, C::RemoveUncached],
        Op::Rename => &[C::Rename, C::RenameOver],
        Op::Link => &[C::Link],
        Op::Symlink => &[C::Symlink],
        Op::Mknod => &[C::Create],
        Op::Chmod => &[C::Chmod],
        Op::Fchmod => &[C::Fchmod],
        Op::Chown => &[C::Chown],
        Op::Fchown => &[C::Fchown],
        Op::Utimens => &[C::Utimens],
        Op::Futimens => &[C::Futimens],
        Op::SetXattr => &[C::SetXattr],
        Op::GetXattr => &[C::GetXattr, C::GetXattrMissing],
        Op::ListXattr => &[C::ListXattr],
        Op::RemoveXattr => &[C::RemoveXattr],
        Op::Mmap => &[C::Mmap],
        Op::Fcntl => &[C::Fcntl],
        _ => &[],
    }
}

/// The unweighted mean over the classes the profile has, at the type's mean request size; 0 for a type that costs
/// nothing.
fn mean_latency(table: &PriceTable, op: &OpTotal) -> Option<f64> {
    let classes = classes_of(Op::from_name(&op.op)?);
    if classes.is_empty() {
        return Some(0.0);
    }
    let size = if op.bytes > 0 { op.bytes / op.calls.max(1) } else { 4096 };
    let prices: Vec<f64> = classes.iter().filter_map(|&c| table.price_ns(c, size)).collect();
    (!prices.is_empty()).then(|| prices.iter().sum::<f64>() / prices.len() as f64)
}

/// Bytes over the throughput of 1 MB sequential requests.
fn transfer(table: &PriceTable, op: &OpTotal) -> Option<f64> {
    const REQUEST_BYTES: u64 = 1 << 20;
    let per_request =
        |class| table.price_ns(class, REQUEST_BYTES).map(|ns| op.bytes as f64 * ns / REQUEST_BYTES as f64);
    match Op::from_name(&op.op)? {
        _ if op.bytes == 0 => Some(0.0),
        Op::Read | Op::MapRead => per_request(Class::ReadSeq).or_else(|| per_request(Class::ReadCached)),
        Op::Write | Op::MapWrite => per_request(Class::WriteAppend).or_else(|| per_request(Class::WriteCached)),
        Op::Copy => per_request(Class::CopyRange).or_else(|| per_request(Class::WriteAppend)),
        _ => Some(0.0),
    }
}
