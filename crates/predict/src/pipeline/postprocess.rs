//! Stage 5: sums and distributions.
//!
//! Everything is accumulated as the trace streams by and is bounded: by operations, entries, report directories, live
//! files, and a fixed number of time buckets.

use super::annotated::{NodeId, Note, Status, Step};
use super::preprocess::{Preprocess, ReportDirectory};
use super::price::{Price, Pricer};
use serde::Serialize;
use stats::QUANTILES;
use std::collections::BTreeMap;
use system::SystemProfile;
use trace::{Batch, Event, Op};

/// Buckets of the time line; their width doubles as the trace goes on.
const BUCKETS: usize = 64;
/// Width of the first buckets, nanoseconds.
const BUCKET_NS: u64 = 1 << 20;
/// Vanished files kept apart before the cheapest are merged into the rest.
const REMOVED_MAX: usize = 4096;

/// Calls and time of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OpTotal {
    /// The operation's name.
    pub op: String,
    /// Priced calls.
    pub calls: u64,
    /// Of these, calls that failed.
    pub failed: u64,
    /// Bytes read, written or copied.
    pub bytes: u64,
    /// Predicted time, nanoseconds, waiting for write-back included.
    pub ns: f64,
    /// Time as traced, nanoseconds.
    pub traced_ns: u64,
    /// Predicted latency at the quantiles of [`QUANTILES`], nanoseconds.
    pub quantiles_ns: Vec<f64>,
}

/// Time under one directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DirectoryTotal {
    /// Path; bytes that are no UTF-8 are replaced.
    pub path: String,
    /// Depth below the root.
    pub depth: u16,
    /// Calls in the whole subtree.
    pub calls: u64,
    /// Time in the whole subtree, nanoseconds.
    pub ns: f64,
    /// Time directly in it, nanoseconds.
    pub own_ns: f64,
}

/// Time on one file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FileTotal {
    /// Path; of a file that is gone, the path of the call that removed it.
    pub path: String,
    /// Predicted time, nanoseconds.
    pub ns: f64,
}

/// Time spent over the trace's own time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// Width of a bucket of traced time, nanoseconds.
    pub bucket_ns: u64,
    /// Predicted time of the calls that began in each, nanoseconds.
    pub ns: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OpSum {
    calls: u64,
    failed: u64,
    bytes: u64,
    ns: f64,
    traced_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct CallSum {
    calls: u64,
    ns: f64,
}

/// One system's sums.
#[derive(Clone, Debug)]
pub struct Postprocess {
    ops: Vec<OpSum>,
    /// By operation and dominant entry.
    shapes: Vec<CallSum>,
    entries: usize,
    directories: Vec<CallSum>,
    files: Vec<f64>,
    removed: BTreeMap<Box<[u8]>, f64>,
    gone_rest_ns: f64,
    timeline: Timeline,
    files_top: usize,
    /// Everything, waiting included.
    pub total_ns: f64,
    /// What write-back in the background added to latencies.
    pub overhead_ns: f64,
    /// What writers waited for write-back.
    pub stall_ns: f64,
}

impl Postprocess {
    /// Nothing yet, for a system with so many entries; `files_top` files are named at the end.
    pub fn new(entries: usize, files_top: usize) -> Postprocess {
        Postprocess {
            ops: vec![OpSum::default(); Op::ALL.len()],
            shapes: vec![CallSum::default(); Op::ALL.len() * entries.max(1)],
            entries: entries.max(1),
            directories: Vec::new(),
            files: Vec::new(),
            removed: BTreeMap::new(),
            gone_rest_ns: 0.0,
            timeline: Timeline { bucket_ns: BUCKET_NS, ns: vec![0.0; BUCKETS] },
            files_top,
            total_ns: 0.0,
            overhead_ns: 0.0,
            stall_ns: 0.0,
        }
    }

    /// Adds one priced call: `ns` is its latency, `stall_ns` of which it waited for write-back.
    #[inline]
    pub fn add(&mut self, event: &Event, note: &Note, price: Price, ns: f64, stall_ns: f64) {
        let op = event.op() as usize;
        self.total_ns += ns;
        self.stall_ns += stall_ns;
        if let Some(sum) = self.ops.get_mut(op) {
            sum.calls += 1;
            sum.failed += u64::from(event.head.errno.is_some());
            sum.ns += ns;
            sum.traced_ns = sum.traced_ns.saturating_add(event.head.dur_ns);
            if matches!(event.op(), Op::Read | Op::Write | Op::Copy) {
                sum.bytes = sum.bytes.saturating_add(u64::try_from(event.head.ret).unwrap_or(0));
            }
        }
        if let Some(shape) = self.shapes.get_mut(op * self.entries + usize::from(price.dominant)) {
            shape.calls += 1;
            shape.ns += ns;
        }
        let directory = note.directory as usize;
        if directory >= self.directories.len() {
            self.directories.resize(directory + 1, CallSum::default());
        }
        let sum = &mut self.directories[directory];
        sum.calls += 1;
        sum.ns += ns;
        if self.files_top > 0 && note.node != NodeId::NONE {
            let at = note.node.index();
            if at >= self.files.len() {
                self.files.resize(at + 1 + at / 2, 0.0);
            }
            self.files[at] += ns;
        }
        self.add_time(event.head.t_ns, ns);
    }

    fn add_time(&mut self, t_ns: u64, ns: f64) {
        while t_ns / self.timeline.bucket_ns >= BUCKETS as u64 {
            for i in 0..BUCKETS {
                let pair = if i < BUCKETS / 2 { self.timeline.ns[2 * i] + self.timeline.ns[2 * i + 1] } else { 0.0 };
                self.timeline.ns[i] = pair;
            }
            self.timeline.bucket_ns *= 2;
        }
        self.timeline.ns[(t_ns / self.timeline.bucket_ns) as usize] += ns;
    }

    /// Settles files that an event removed: their numbers are about to be used again.
    pub fn freed(&mut self, event: &Event, batch: &Batch, steps: &[Step]) {
        if self.files_top == 0 {
            return;
        }
        for step in steps {
            let Step::Freed { node, .. } = step else { continue };
            let Some(ns) = self.files.get_mut(node.index()).map(std::mem::take) else { continue };
            if ns <= 0.0 {
                continue;
            }
            let renamed = if event.op() == Op::Rename { event.path2() } else { None };
            let Some(path) = renamed.or(event.path()) else {
                self.gone_rest_ns += ns;
                continue;
            };
            *self.removed.entry(batch.paths.get(path).into()).or_default() += ns;
            if self.removed.len() > REMOVED_MAX {
                self.merge_gone();
            }
        }
    }

    /// Keeps the more expensive half of the vanished files apart.
    fn merge_gone(&mut self) {
        let mut all: Vec<(Box<[u8]>, f64)> = std::mem::take(&mut self.removed).into_iter().collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        self.gone_rest_ns += all.drain(REMOVED_MAX / 2..).map(|(_, ns)| ns).sum::<f64>();
        self.removed = all.into_iter().collect();
    }

    /// The operations that occurred, in their order.
    pub fn by_op(&self, pricer: &Pricer, profile: &SystemProfile) -> Vec<OpTotal> {
        let mut totals = Vec::new();
        for (i, (&op, sum)) in Op::ALL.iter().zip(&self.ops).enumerate() {
            if sum.calls > 0 {
                let shapes = self.shapes.get(i * self.entries..(i + 1) * self.entries).unwrap_or(&[]);
                totals.push(OpTotal {
                    op: op.name().to_owned(),
                    calls: sum.calls,
                    failed: sum.failed,
                    bytes: sum.bytes,
                    ns: sum.ns,
                    traced_ns: sum.traced_ns,
                    quantiles_ns: mixture(shapes, pricer, profile),
                });
            }
        }
        totals
    }

    /// Directories whose subtree took at least `share_min` of the time, down to a depth, the most expensive first.
    pub fn by_directory(&self, reports: &[ReportDirectory], top: usize) -> Vec<DirectoryTotal> {
        let mut sums: Vec<(CallSum, f64)> = reports
            .iter()
            .enumerate()
            .map(|(i, _)| self.directories.get(i).copied().unwrap_or_default())
            .map(|sum| (sum, sum.ns))
            .collect();
        // A directory's number is above its parent's: one pass from the end adds subtrees up.
        for i in (1..reports.len()).rev() {
            let (sum, parent) = (sums[i].0, reports[i].parent as usize);
            sums[parent].0.calls += sum.calls;
            sums[parent].0.ns += sum.ns;
        }
        let mut totals: Vec<DirectoryTotal> = reports
            .iter()
            .zip(&sums)
            .filter(|(_, (sum, _))| sum.calls > 0)
            .map(|(report, (sum, own_ns))| DirectoryTotal {
                path: String::from_utf8_lossy(&report.path).into_owned(),
                depth: report.depth(),
                calls: sum.calls,
                ns: sum.ns,
                own_ns: *own_ns,
            })
            .collect();
        totals.sort_by(|a, b| b.ns.total_cmp(&a.ns).then_with(|| a.path.cmp(&b.path)));
        totals.truncate(top);
        totals
    }

    /// The most expensive files.
    pub fn by_file(&self, preprocess: &Preprocess) -> Vec<FileTotal> {
        let live = self.files.iter().enumerate().filter(|(_, ns)| **ns > 0.0);
        let mut numbers: Vec<(usize, f64)> = live.map(|(i, &ns)| (i, ns)).collect();
        numbers.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        numbers.truncate(self.files_top);
        let named = numbers.into_iter().map(|(i, ns)| (preprocess.tree().path_of(NodeId(i as u32)), ns));
        let removed = self.removed.iter().map(|(path, &ns)| (path.to_vec(), ns));
        let mut all: Vec<(Vec<u8>, f64)> = named.chain(removed).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all.truncate(self.files_top);
        let total = |(path, ns): (Vec<u8>, f64)| FileTotal { path: String::from_utf8_lossy(&path).into_owned(), ns };
        all.into_iter().map(total).collect()
    }

    /// Time over the trace, without the empty end.
    pub fn timeline(&self) -> Timeline {
        let mut timeline = self.timeline.clone();
        while timeline.ns.last() == Some(&0.0) {
            timeline.ns.pop();
        }
        timeline
    }
}

/// Quantiles of a mixture: each part has the shape of its dominant entry's calls, scaled to the part's own mean.
fn mixture(shapes: &[CallSum], pricer: &Pricer, profile: &SystemProfile) -> Vec<f64> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut calls = 0.0;
    for (entry, shape) in shapes.iter().enumerate().filter(|(_, s)| s.calls > 0) {
        let mean = shape.ns / shape.calls as f64;
        let weight = shape.calls as f64;
        calls += weight;
        let measured = pricer.names().get(entry).and_then(|name| profile.entries.get(name));
        match measured.filter(|e| e.quantiles_ns.len() == QUANTILES.len() && e.mean_ns > 0.0) {
            None => points.push((mean, weight)),
            Some(measured) => {
                // Each quantile stands for the calls half-way to its neighbours.
                let mut below = 0.0;
                for (i, &ns) in measured.quantiles_ns.iter().enumerate() {
                    let above = match (QUANTILES.get(i), QUANTILES.get(i + 1)) {
                        (Some(a), Some(b)) => (a + b) / 2.0,
                        _ => 1.0,
                    };
                    points.push((ns * mean / measured.mean_ns, weight * (above - below)));
                    below = above;
                }
            }
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    QUANTILES.iter().map(|share| weighted_quantile(&points, share * calls)).collect()
}

fn weighted_quantile(points: &[(f64, f64)], target: f64) -> f64 {
    let mut sum = 0.0;
    for &(ns, weight) in points {
        sum += weight;
        if sum >= target {
            return ns;
        }
    }
    points.last().map_or(0.0, |p| p.0)
}

/// Counts of events by status, and what they took when traced.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Coverage {
    /// Events of the trace.
    pub events: u64,
    /// Events by status name.
    pub by_status: BTreeMap<&'static str, u64>,
    /// Uncovered events by operation name.
    pub uncovered_by_op: BTreeMap<&'static str, u64>,
    /// Traced time of priced calls, nanoseconds.
    pub modelled_traced_ns: u64,
    /// Priced calls, and those left out because no replay makes them, over these and uncovered calls; 1 if there were
    /// none.
    pub calls_share: f64,
    /// The share the tracer's importer states, accesses through mappings included; absent where it could not be known.
    pub stated_share: Option<f64>,
    /// Priced calls where trace and model disagreed.
    pub surprises: u64,
    /// Names that were there before the trace and in no snapshot.
    pub discovered_names: u64,
}

/// Counts events for the [`Coverage`].
#[derive(Clone, Debug)]
pub struct CoverageCounter {
    by_status: [u64; Status::ALL.len()],
    uncovered: Vec<u64>,
    modelled_traced_ns: u64,
}

impl Default for CoverageCounter {
    fn default() -> Self {
        CoverageCounter { by_status: [0; Status::ALL.len()], uncovered: vec![0; Op::ALL.len()], modelled_traced_ns: 0 }
    }
}

impl CoverageCounter {
    /// Counts one event.
    #[inline]
    pub fn count(&mut self, event: &Event, note: &Note) {
        self.by_status[note.status as usize] += 1;
        if note.status == Status::Modelled {
            self.modelled_traced_ns = self.modelled_traced_ns.saturating_add(event.head.dur_ns);
        } else if note.status.is_uncovered()
            && let Some(count) = self.uncovered.get_mut(event.op() as usize)
        {
            *count += 1;
        }
    }

    /// The counts by name, and the shares.
    pub fn finish(&self, preprocess: &Preprocess, stated_share: Option<f64>) -> Coverage {
        // What a replay does not make could have been priced.
        let modelled = self.by_status[Status::Modelled as usize] + self.by_status[Status::NotReplayed as usize];
        let uncovered: u64 = self.uncovered.iter().sum();
        let all = modelled + uncovered;
        let statuses = Status::ALL.iter().zip(&self.by_status).filter(|(_, n)| **n > 0);
        let ops = Op::ALL.iter().zip(&self.uncovered).filter(|(_, n)| **n > 0);
        Coverage {
            events: self.by_status.iter().sum(),
            by_status: statuses.map(|(status, &n)| (status.name(), n)).collect(),
            uncovered_by_op: ops.map(|(op, &n)| (op.name(), n)).collect(),
            modelled_traced_ns: self.modelled_traced_ns,
            calls_share: if all == 0 { 1.0 } else { modelled as f64 / all as f64 },
            stated_share,
            surprises: preprocess.surprises(),
            discovered_names: preprocess.discovered_names(),
        }
    }
}

impl Coverage {
    /// The share of file system activity that the prediction stands for, as far as known.
    pub fn share(&self) -> f64 {
        self.stated_share.map_or(self.calls_share, |stated| stated.min(self.calls_share))
    }
}
