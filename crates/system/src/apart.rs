//! How far two profiles of one system are from each other: what the noise of the machine, and its drift between the
//! two, make of each cost.

use super::{Entry, SystemProfile};
use crate::vector::parse_entry_name;
use serde::Serialize;
use stats::quantile;

/// Two profiles of one system.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Apart {
    /// Median over the entries of [`EntryApart::share`].
    pub median: f64,
    /// 90th percentile.
    pub p90: f64,
    /// Entries that both have, the farthest apart first.
    pub entries: Vec<EntryApart>,
    /// Entries that one of them lacks.
    pub missing: Vec<String>,
}

/// One entry of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntryApart {
    /// Its name.
    pub name: String,
    /// In the one, nanoseconds.
    pub first_ns: f64,
    /// In the other.
    pub second_ns: f64,
    /// Whether the two 95 % intervals have nothing in common: then it is not the noise that they were drawn from.
    pub disjoint: bool,
}

impl EntryApart {
    /// Their difference as a share of their mean.
    pub fn share(&self) -> f64 {
        let mean = f64::midpoint(self.first_ns, self.second_ns);
        if mean > 0.0 { (self.first_ns - self.second_ns).abs() / mean } else { 0.0 }
    }
}

/// Compares two profiles entry by entry.
pub fn apart(first: &SystemProfile, second: &SystemProfile) -> Apart {
    let both = |(name, a): (&String, &Entry)| {
        let b = second.entries.get(name)?;
        let disjoint = a.high_ns < b.low_ns || b.high_ns < a.low_ns;
        Some(EntryApart { name: name.clone(), first_ns: a.mean_ns, second_ns: b.mean_ns, disjoint })
    };
    let mut entries: Vec<EntryApart> = first.entries.iter().filter_map(both).collect();
    entries.sort_by(|a, b| b.share().total_cmp(&a.share()).then_with(|| a.name.cmp(&b.name)));
    let mut shares: Vec<f64> = entries.iter().map(EntryApart::share).collect();
    shares.sort_by(f64::total_cmp);
    let lacks = |a: &SystemProfile, b: &SystemProfile| {
        a.entries.keys().filter(|name| !b.entries.contains_key(*name)).cloned().collect::<Vec<String>>()
    };
    let mut missing = [lacks(first, second), lacks(second, first)].concat();
    missing.sort_by_key(|name| parse_entry_name(name));
    Apart { median: quantile(&shares, 0.5), p90: quantile(&shares, 0.9), entries, missing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_farthest_come_first() {
        let profile = |entries: &[(&str, f64, f64)]| SystemProfile {
            entries: entries
                .iter()
                .map(|&(name, low_ns, high_ns)| {
                    let mean_ns = f64::midpoint(low_ns, high_ns);
                    (name.to_owned(), Entry { low_ns, high_ns, ..Entry::exactly(mean_ns) })
                })
                .collect(),
            ..SystemProfile::default()
        };
        let first = profile(&[("open", 90.0, 110.0), ("stat", 50.0, 50.0), ("rm_0", 10.0, 30.0), ("rdo", 1.0, 1.0)]);
        let second = profile(&[("open", 140.0, 160.0), ("stat", 50.0, 50.0), ("rm_0", 20.0, 30.0)]);
        let apart = apart(&first, &second);
        let shares: Vec<(&str, i64, bool)> =
            apart.entries.iter().map(|e| (e.name.as_str(), (e.share() * 1000.0) as i64, e.disjoint)).collect();
        assert_eq!(shares, [("open", 400, true), ("rm_0", 222, false), ("stat", 0, false)]);
        assert_eq!((apart.median * 1000.0) as i64, 222);
        assert_eq!(apart.missing, ["rdo"]);
    }
}
