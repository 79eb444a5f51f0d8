//! Why one system is faster than another for a workload: the difference of two predictions, taken apart.

use crate::pipeline::SystemPrediction;
use serde::Serialize;
use std::collections::BTreeMap;
use system::vector::{Class, parse_entry_name};

/// One part of a difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Part {
    /// Entry, class, operation, or "waiting for write-back".
    pub name: String,
    /// What it means, in a sentence; empty for operations.
    pub meaning: String,
    /// How often it counts in either.
    pub a_count: f64,
    #[allow(missing_docs)]
    pub b_count: f64,
    /// What one costs in either, nanoseconds.
    pub a_each_ns: f64,
    #[allow(missing_docs)]
    pub b_each_ns: f64,
    /// Its time in either, nanoseconds.
    pub a_ns: f64,
    #[allow(missing_docs)]
    pub b_ns: f64,
    /// `b_ns - a_ns`.
    pub difference_ns: f64,
    /// The difference over the sum of what all parts differ by, whichever way: -1 to 1, and 0 where no part differs.
    /// Over the difference of the totals, parts that cancel would be more than all of it.
    pub share_of_parts: f64,
}

/// A difference of two predictions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Explanation {
    /// Names of the systems.
    pub a: String,
    #[allow(missing_docs)]
    pub b: String,
    /// Predicted totals, nanoseconds.
    pub a_total_ns: f64,
    #[allow(missing_docs)]
    pub b_total_ns: f64,
    /// `b - a`.
    pub difference_ns: f64,
    /// By entry of the vector, the largest contribution first.
    pub by_entry: Vec<Part>,
    /// The same with the sizes of a curve together.
    pub by_class: Vec<Part>,
    /// By operation.
    pub by_op: Vec<Part>,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    count: [f64; 2],
    ns: [f64; 2],
}

/// Takes the difference of two predictions of the same workload apart.
pub fn explain(a: &SystemPrediction, b: &SystemPrediction) -> Explanation {
    let mut entries: BTreeMap<String, Sums> = BTreeMap::new();
    let mut classes: BTreeMap<String, Sums> = BTreeMap::new();
    let mut ops: BTreeMap<String, Sums> = BTreeMap::new();
    for (side, prediction) in [a, b].into_iter().enumerate() {
        for share in &prediction.by_entry {
            let class = parse_entry_name(&share.entry).map_or(share.entry.as_str(), |(class, _)| class.name());
            add(&mut entries, &share.entry, side, share.weight, share.ns);
            add(&mut classes, class, side, share.weight, share.ns);
        }
        if prediction.writeback.stall_ns > 0.0 {
            for map in [&mut entries, &mut classes] {
                add(map, WAITING, side, 1.0, prediction.writeback.stall_ns);
            }
        }
        for op in &prediction.by_op {
            add(&mut ops, &op.op, side, op.calls as f64, op.ns);
        }
    }
    let difference_ns = b.total_ns - a.total_ns;
    Explanation {
        a: a.system.clone(),
        b: b.system.clone(),
        a_total_ns: a.total_ns,
        b_total_ns: b.total_ns,
        difference_ns,
        by_entry: parts(entries),
        by_class: parts(classes),
        by_op: parts(ops),
    }
}

/// The name of the part that is in no entry.
pub const WAITING: &str = "waiting for write-back";

fn add(map: &mut BTreeMap<String, Sums>, name: &str, side: usize, count: f64, ns: f64) {
    let sums = map.entry(name.to_owned()).or_default();
    sums.count[side] += count;
    sums.ns[side] += ns;
}

fn parts(map: BTreeMap<String, Sums>) -> Vec<Part> {
    let all_ns: f64 = map.values().map(|sums| (sums.ns[1] - sums.ns[0]).abs()).sum();
    let each = |ns: f64, count: f64| if count == 0.0 { 0.0 } else { ns / count };
    let mut parts: Vec<Part> = map
        .into_iter()
        .map(|(name, Sums { count, ns })| Part {
            meaning: meaning(&name),
            name,
            a_count: count[0],
            b_count: count[1],
            a_each_ns: each(ns[0], count[0]),
            b_each_ns: each(ns[1], count[1]),
            a_ns: ns[0],
            b_ns: ns[1],
            difference_ns: ns[1] - ns[0],
            share_of_parts: each(ns[1] - ns[0], all_ns),
        })
        .collect();
    parts.sort_by(|x, y| y.difference_ns.abs().total_cmp(&x.difference_ns.abs()).then_with(|| x.name.cmp(&y.name)));
    parts
}

fn meaning(name: &str) -> String {
    let class = parse_entry_name(name).map(|(class, _)| class).or_else(|| Class::from_name(name));
    class.map_or_else(String::new, |class| class.meaning().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{EntryShare, OpTotal};

    fn prediction(system: &str, entries: &[(&str, f64, f64)], ops: &[(&str, u64, f64)]) -> SystemPrediction {
        let by_entry: Vec<EntryShare> = entries
            .iter()
            .map(|&(entry, weight, mean_ns)| EntryShare {
                entry: entry.into(),
                weight,
                mean_ns,
                ns: weight * mean_ns,
                ..EntryShare::default()
            })
            .collect();
        let by_op =
            ops.iter().map(|&(op, calls, ns)| OpTotal { op: op.into(), calls, ns, ..OpTotal::default() }).collect();
        let total_ns = by_entry.iter().map(|e| e.ns).sum();
        SystemPrediction { system: system.into(), total_ns, by_entry, by_op, ..SystemPrediction::default() }
    }

    #[test]
    fn the_parts_sum_to_the_difference() {
        let entries_a = [("open", 10.0, 100.0), ("fsync_cr_4096", 2.0, 1000.0), ("fsync_cr_16384", 1.0, 1500.0)];
        let entries_b = [("open", 10.0, 90.0), ("fsync_cr_4096", 2.0, 3000.0), ("fsync_cr_16384", 1.0, 3500.0)];
        let a = prediction("a", &entries_a, &[("open", 10, 1000.0), ("fsync", 3, 3500.0)]);
        let b = prediction("b", &entries_b, &[("open", 10, 900.0), ("fsync", 3, 9500.0)]);
        let e = explain(&a, &b);
        assert_eq!(e.difference_ns, 5900.0);
        for parts in [&e.by_entry, &e.by_class, &e.by_op] {
            let sum: f64 = parts.iter().map(|p| p.difference_ns).sum();
            let shares: f64 = parts.iter().map(|p| p.share_of_parts.abs()).sum();
            assert!(parts.iter().all(|p| p.share_of_parts * p.difference_ns >= 0.0), "{parts:?}");
            assert!((sum - 5900.0).abs() < 1e-6 && (shares - 1.0).abs() < 1e-9);
        }
        assert_eq!((e.by_class[0].name.as_str(), e.by_class[0].difference_ns), ("fsync_cr", 6000.0));
        assert!(e.by_class[0].meaning.contains("fsync of a new file"));
        assert_eq!(e.by_entry[0].name, "fsync_cr_4096");
    }
}
