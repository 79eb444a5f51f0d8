//! What a replay measured: latencies per operation and per directory, and how outcomes differed from the trace.

use super::translate::Mismatch;
use hdrhistogram::Histogram;
use posix::Errno;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use trace::Op;
use trace::disposition::Skip;

/// Quantiles reported for each operation: those of system profiles, so that the two can be compared.
use stats::QUANTILES;

/// Calls of one operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpResult {
    /// Name of the operation.
    pub op: String,
    /// Calls made.
    pub count: u64,
    /// Of these, calls that failed, as traced or not.
    pub failed: u64,
    /// Sum of their latencies, nanoseconds.
    pub total_ns: u64,
    /// Mean latency, nanoseconds.
    pub mean_ns: f64,
    /// Latency at each of [`QUANTILES`], nanoseconds, within 0.1 %.
    pub quantiles_ns: Vec<u64>,
}

/// The calls that a replay of the first twentieth of the trace makes: these, in the same state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// Calls made.
    pub calls: u64,
    /// Sum of their latencies, nanoseconds.
    pub total_ns: u64,
}

impl Sample {
    /// One call of so many of a trace is in the sample.
    pub const ONE_IN: u64 = 20;

    /// What it says of `calls` calls, nanoseconds; `None` if it has none itself.
    pub fn estimate_ns(self, calls: u64) -> Option<f64> {
        (self.calls > 0).then(|| self.total_ns as f64 * calls as f64 / self.calls as f64)
    }
}

/// Calls on what lies below one directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SubtreeResult {
    /// The directory in the traced system, escaped as in every table.
    pub path: String,
    /// Calls made.
    pub count: u64,
    /// Sum of their latencies, nanoseconds.
    pub total_ns: u64,
}

/// A call whose outcome was not the traced one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Position in the trace.
    pub seq: u64,
    /// Operation.
    pub op: String,
    /// Path, escaped; empty where the trace has none.
    pub path: String,
    /// What the trace says.
    pub expected: String,
    /// What the replay got.
    pub got: String,
}

/// Differences of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DifferenceCount {
    /// Operation.
    pub op: String,
    /// What the trace says (`success`, an error's name, or `a count`).
    pub expected: String,
    /// What the replay got.
    pub got: String,
    /// How many.
    pub count: u64,
}

/// All differences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Differences {
    /// How many in all.
    pub total: u64,
    /// By kind, most frequent first.
    pub kinds: Vec<DifferenceCount>,
    /// The first ones, in the order of the trace.
    pub first: Vec<Difference>,
}

/// One lane's measurements, merged with the others' at the end.
#[derive(Debug)]
pub(super) struct Tally {
    ops: Vec<Option<OpTally>>,
    subtrees: FxHashMap<Box<[u8]>, (u64, u64)>,
    /// The directory of the last call and its sums, kept out of the map: calls come in runs.
    current: (Vec<u8>, u64, u64),
    subtree_depth: usize,
    /// Calls of the trace before this one are of the sample.
    sample_end: u64,
    sample: Sample,
    /// How much of its core the processor had; `None` where time is virtual.
    core: Option<CoreTally>,
    pub skipped: BTreeMap<Skip, u64>,
    kinds: BTreeMap<(Op, Kind), u64>,
    first: Vec<(u64, Op, Vec<u8>, Mismatch)>,
    first_max: usize,
}

/// Time in calls from one look at the core to the next, nanoseconds.
const PROBE_EVERY_NS: u64 = 100_000;

/// Looks at the core, one for so much time in calls.
#[derive(Clone, Copy, Debug, Default)]
struct CoreTally {
    since_ns: u64,
    sum_ns: f64,
    probes: u64,
}

impl CoreTally {
    fn probe(&mut self) {
        self.sum_ns += posix::core_probe::ns();
        self.probes += 1;
    }
}

#[derive(Debug)]
struct OpTally {
    histogram: Histogram<u64>,
    count: u64,
    failed: u64,
    total_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Errno(u16, u16),
    Count,
}

impl Tally {
    pub fn new(subtree_depth: usize, first_max: usize, sample_end: u64, is_virtual: bool) -> Tally {
        Tally {
            ops: std::iter::repeat_with(|| None).take(Op::ALL.len()).collect(),
            subtrees: FxHashMap::default(),
            current: (Vec::new(), 0, 0),
            subtree_depth,
            sample_end,
            sample: Sample::default(),
            core: (!is_virtual).then(CoreTally::default),
            skipped: BTreeMap::new(),
            kinds: BTreeMap::new(),
            first: Vec::new(),
            first_max,
        }
    }

    pub fn skip(&mut self, why: Skip) {
        *self.skipped.entry(why).or_default() += 1;
    }

    /// `seq`: the call's position in the trace.
    pub fn timed(&mut self, seq: u64, op: Op, path: &[u8], dur_ns: u64, failed: bool) {
        if seq < self.sample_end {
            self.sample.calls += 1;
            self.sample.total_ns += dur_ns;
        }
        let slot = &mut self.ops[op as usize];
        let tally = slot.get_or_insert_with(|| OpTally {
            // Two digits and a half: a quantile is within 0.1 %. One hour and longer count as one hour.
            histogram: Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("constant bounds are valid"),
            count: 0,
            failed: 0,
            total_ns: 0,
        });
        tally.histogram.saturating_record(dur_ns.max(1));
        tally.count += 1;
        tally.failed += u64::from(failed);
        tally.total_ns += dur_ns;
        self.in_subtree(path, dur_ns);
        if let Some(core) = &mut self.core {
            core.since_ns += dur_ns;
            if core.since_ns >= PROBE_EVERY_NS || core.probes == 0 {
                core.since_ns %= PROBE_EVERY_NS;
                core.probe();
            }
        }
    }

    fn in_subtree(&mut self, path: &[u8], dur_ns: u64) {
        let dir = subtree(path, self.subtree_depth);
        if dir != self.current.0 {
            self.flush_subtree();
            self.current.0.clear();
            self.current.0.extend_from_slice(dir);
        }
        self.current.1 += 1;
        self.current.2 += dur_ns;
    }

    fn flush_subtree(&mut self) {
        let (path, count, total_ns) = &mut self.current;
        if *count > 0 {
            match self.subtrees.get_mut(path.as_slice()) {
                Some(sums) => *sums = (sums.0 + *count, sums.1 + *total_ns),
                None => {
                    self.subtrees.insert(path.as_slice().into(), (*count, *total_ns));
                }
            }
        }
        (*count, *total_ns) = (0, 0);
    }

    pub fn differs(&mut self, seq: u64, op: Op, path: &[u8], mismatch: Mismatch) {
        let kind = match mismatch {
            Mismatch::Errno { expected, got } => Kind::Errno(expected, got),
            Mismatch::Count { .. } => Kind::Count,
        };
        *self.kinds.entry((op, kind)).or_default() += 1;
        if self.first.len() < self.first_max {
            self.first.push((seq, op, path.to_vec(), mismatch));
        }
    }

    pub fn merge(&mut self, mut other: Tally) {
        other.flush_subtree();
        self.flush_subtree();
        for (mine, theirs) in self.ops.iter_mut().zip(other.ops) {
            match (mine, theirs) {
                (Some(mine), Some(theirs)) => {
                    mine.histogram.add(theirs.histogram).expect("histograms have the same bounds");
                    mine.count += theirs.count;
                    mine.failed += theirs.failed;
                    mine.total_ns += theirs.total_ns;
                }
                (mine, Some(theirs)) => *mine = Some(theirs),
                (_, None) => {}
            }
        }
        if let (Some(mine), Some(theirs)) = (&mut self.core, other.core) {
            mine.sum_ns += theirs.sum_ns;
            mine.probes += theirs.probes;
        }
        self.sample.calls += other.sample.calls;
        self.sample.total_ns += other.sample.total_ns;
        for (path, (count, ns)) in other.subtrees {
            let sums = self.subtrees.entry(path).or_default();
            *sums = (sums.0 + count, sums.1 + ns);
        }
        for (why, count) in other.skipped {
            *self.skipped.entry(why).or_default() += count;
        }
        for (kind, count) in other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
        self.first.append(&mut other.first);
    }

    pub fn total_ns(&self) -> u64 {
        self.ops.iter().flatten().map(|t| t.total_ns).sum()
    }

    /// The mean of what the loop took that shows how much of its core the processor had ([`posix::core_probe`]),
    /// nanoseconds.
    pub fn core_ns(&self) -> Option<f64> {
        self.core.filter(|core| core.probes > 0).map(|core| core.sum_ns / core.probes as f64)
    }

    pub fn sample(&self) -> Sample {
        self.sample
    }

    pub fn calls(&self) -> u64 {
        self.ops.iter().flatten().map(|t| t.count).sum()
    }

    pub fn per_op(&self) -> Vec<OpResult> {
        let tallied = Op::ALL.iter().zip(&self.ops).filter_map(|(op, t)| Some((op, t.as_ref()?)));
        tallied
            .map(|(op, t)| OpResult {
                op: op.name().to_owned(),
                count: t.count,
                failed: t.failed,
                total_ns: t.total_ns,
                mean_ns: t.total_ns as f64 / t.count as f64,
                quantiles_ns: QUANTILES.iter().map(|&q| t.histogram.value_at_quantile(q)).collect(),
            })
            .collect()
    }

    pub fn per_subtree(&mut self) -> Vec<SubtreeResult> {
        self.flush_subtree();
        let mut out: Vec<_> = self
            .subtrees
            .iter()
            .map(|(path, &(count, total_ns))| SubtreeResult { path: escaped(path), count, total_ns })
            .collect();
        out.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.path.cmp(&b.path)));
        out
    }

    pub fn differences(&mut self) -> Differences {
        let mut kinds: Vec<_> = self
            .kinds
            .iter()
            .map(|(&(op, kind), &count)| {
                let (expected, got) = match kind {
                    Kind::Errno(expected, got) => (errno_text(expected), errno_text(got)),
                    Kind::Count => ("a count".to_owned(), "another count".to_owned()),
                };
                DifferenceCount { op: op.name().to_owned(), expected, got, count }
            })
            .collect();
        kinds.sort_by_key(|k| std::cmp::Reverse(k.count));
        self.first.sort_by_key(|(seq, ..)| *seq);
        let first = self.first.iter().take(self.first_max).map(|(seq, op, path, mismatch)| {
            let (expected, got) = match *mismatch {
                Mismatch::Errno { expected, got } => (errno_text(expected), errno_text(got)),
                Mismatch::Count { expected, got } => (expected.to_string(), got.to_string()),
            };
            Difference { seq: *seq, op: op.name().to_owned(), path: escaped(path), expected, got }
        });
        Differences { total: self.kinds.values().sum(), first: first.collect(), kinds }
    }
}

fn errno_text(errno: u16) -> String {
    if errno == 0 { "success".to_owned() } else { Errno(errno).to_string() }
}

fn escaped(path: &[u8]) -> String {
    trace::profile::escape(path).into_owned()
}

/// The directory at most `depth` components below the root that a path lies in; the last component of a path is its
/// name and never part of it.
pub(super) fn subtree(path: &[u8], depth: usize) -> &[u8] {
    let mut slashes = path.iter().enumerate().filter(|(i, b)| **b == b'/' && *i > 0).map(|(i, _)| i);
    let mut end = 0;
    for _ in 0..depth {
        match slashes.next() {
            Some(i) => end = i,
            None => break,
        }
    }
    if end == 0 { &path[..path.len().min(1)] } else { &path[..end] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtrees_are_cut_at_their_depth() {
        assert_eq!(subtree(b"/a/b/c/d", 2), b"/a/b");
        assert_eq!(subtree(b"/a/b", 2), b"/a");
        assert_eq!(subtree(b"/a", 2), b"/");
        assert_eq!(subtree(b"", 2), b"");
    }

    #[test]
    fn merging_adds_everything_up() {
        let mut a = Tally::new(1, 2, 2, false);
        let mut b = Tally::new(1, 2, 2, false);
        a.timed(0, Op::Read, b"/x/f", 100, false);
        b.timed(2, Op::Read, b"/x/g", 300, true);
        b.timed(1, Op::Write, b"/y/g", 5, false);
        b.differs(1, Op::Read, b"/x/g", Mismatch::Errno { expected: 0, got: 2 });
        a.differs(0, Op::Read, b"/x/f", Mismatch::Count { expected: 1, got: 2 });
        a.merge(b);
        assert_eq!((a.total_ns(), a.calls()), (405, 3));
        let ops = a.per_op();
        assert_eq!((ops[0].op.as_str(), ops[0].count, ops[0].failed, ops[0].mean_ns), ("read", 2, 1, 200.0));
        assert_eq!(a.sample(), Sample { calls: 2, total_ns: 105 }, "the first two of the trace, whoever made them");
        assert_eq!(a.sample().estimate_ns(40), Some(2100.0));
        let subtrees = a.per_subtree();
        assert_eq!(subtrees[0], SubtreeResult { path: "/x".into(), count: 2, total_ns: 400 });
        let d = a.differences();
        assert_eq!(d.total, 2);
        assert_eq!(d.first.iter().map(|d| d.seq).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(d.first[1].got, "ENOENT");
    }
}
