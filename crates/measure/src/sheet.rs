//! Where every timed call is written down, and what becomes of it: entries of the vector.

use posix::CacheState;
use stats::{QUANTILES, mean, midmean, midmean_interval, quantile};
use std::collections::BTreeMap;
use system::Entry;
use system::vector::{Class, Part, entry_name};

/// Calls in a batch, of a class that does not wait for the device. Smaller batches hide more of what other programs do, but
/// also of what the file system's own helpers do: a create in a hundred that waits for btrfs's workers belongs to the price.
const BATCH_CALLS: usize = 64;

/// Whether calls of a class wait for the device as a rule.
///
/// The others take microseconds, and one in some dozens is interrupted for milliseconds by whatever else runs on the
/// machine. Their rounds are therefore cut into batches: so few of these are hit that [`midmean`] sets them aside, while what a
/// file system itself does once in a few calls stays in.
fn waits_for_device(class: Class) -> bool {
    // Of the lookups beside cached inodes few read anything.
    class.part() != Part::Processor && class != Class::LookupNearMiss
}

/// An entry's calls, by round.
#[derive(Clone, Debug, Default)]
struct Series {
    /// Calls of the round under way.
    current: Vec<f64>,
    /// Means of the rounds (or batches) that have ended.
    rounds: Vec<f64>,
    /// Every call of the rounds that have ended.
    all: Vec<f64>,
    cache: Option<CacheState>,
}

/// Every timed call of a measurement.
#[derive(Clone, Debug, Default)]
pub(super) struct Sheet {
    series: BTreeMap<(Class, u64), Series>,
    missing: BTreeMap<String, String>,
}

impl Sheet {
    /// Writes down one call.
    pub(super) fn record(&mut self, class: Class, at: u64, ns: f64) {
        let key = (class, if class.is_curve() { at } else { 0 });
        self.series.entry(key).or_default().current.push(ns);
    }

    /// Says in which cache state a class is measured; the less certain of two states stays.
    pub(super) fn note_cache(&mut self, class: Class, at: u64, state: CacheState) {
        let key = (class, if class.is_curve() { at } else { 0 });
        let cache = &mut self.series.entry(key).or_default().cache;
        if *cache != Some(CacheState::Unverified) {
            *cache = Some(state);
        }
    }

    /// Gives up a whole class, or one entry of it, for a reason; what was written down of it is discarded at the end.
    pub(super) fn give_up(&mut self, name: String, why: String) {
        self.missing.entry(name).or_insert(why);
    }

    /// Whether a class was given up.
    pub(super) fn given_up(&self, class: Class) -> bool {
        !self.missing.is_empty() && self.missing.contains_key(class.name())
    }

    /// Ends the round under way.
    pub(super) fn end_round(&mut self) {
        for (&(class, _), series) in &mut self.series {
            if series.current.is_empty() {
                continue;
            }
            let batches = if waits_for_device(class) { 1 } else { (series.current.len() / BATCH_CALLS).max(1) };
            let calls = series.current.len().div_ceil(batches);
            series.rounds.extend(series.current.chunks(calls).filter_map(mean));
            series.all.append(&mut series.current);
        }
    }

    /// The mean of an entry in the round under way, or else over the rounds so far.
    pub(super) fn mean_so_far(&self, class: Class, at: u64) -> Option<f64> {
        let series = self.series.get(&(class, if class.is_curve() { at } else { 0 }))?;
        if !series.current.is_empty() {
            Some(midmean(&series.current))
        } else if !series.rounds.is_empty() {
            Some(midmean(&series.rounds))
        } else {
            None
        }
    }

    /// The median, over the given classes' entries, of the interval's width relative to the mean; infinite before two rounds.
    pub(super) fn relative_width(&self, classes: &[Class]) -> f64 {
        let mut widths: Vec<f64> = Vec::new();
        for ((class, _), series) in &self.series {
            if !classes.contains(class) || series.rounds.is_empty() {
                continue;
            }
            if series.rounds.len() < 2 {
                return f64::INFINITY;
            }
            let (low, high) = midmean_interval(&series.rounds, 1);
            widths.push((high - low) / midmean(&series.rounds).max(1.0));
        }
        widths.sort_by(f64::total_cmp);
        if widths.is_empty() { f64::INFINITY } else { quantile(&widths, 0.5) }
    }

    /// The vector, and why some of it is missing. Every class without any entry gets a reason.
    pub(super) fn finish(mut self) -> (BTreeMap<String, Entry>, BTreeMap<String, String>) {
        self.end_round();
        let mut entries = BTreeMap::new();
        for (&(class, at), series) in &self.series {
            let name = entry_name(class, at);
            if !series.rounds.is_empty() && !self.given_up(class) && !self.missing.contains_key(&name) {
                entries.insert(name, series.entry(u64::from(class as u8) << 32 ^ at));
            }
        }
        for &class in Class::ALL {
            let wanted: Vec<String> = if class.is_curve() {
                class.points().iter().map(|&at| entry_name(class, at)).collect()
            } else {
                vec![entry_name(class, 0)]
            };
            let absent: Vec<&String> = wanted.iter().filter(|name| !entries.contains_key(*name)).collect();
            if absent.len() == wanted.len() {
                let why = "the time was used up before it was reached".to_owned();
                self.missing.entry(class.name().to_owned()).or_insert(why);
            } else {
                for name in absent {
                    let why = "the time was used up before it was reached".to_owned();
                    self.missing.entry(name.clone()).or_insert(why);
                }
            }
        }
        (entries, self.missing)
    }
}

impl Series {
    fn entry(&self, seed: u64) -> Entry {
        // Derived costs (differences) can come out below zero by noise; no price may.
        let tidy = |ns: f64| (ns.max(0.0) * 10.0).round() / 10.0;
        let mut sorted = self.all.clone();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = midmean_interval(&self.rounds, seed);
        Entry {
            mean_ns: tidy(midmean(&self.rounds)),
            low_ns: tidy(low),
            high_ns: tidy(high),
            samples: self.all.len() as u64,
            quantiles_ns: QUANTILES.iter().map(|&share| tidy(quantile(&sorted, share))).collect(),
            rounds_ns: self.rounds.iter().copied().map(tidy).collect(),
            cache: self.cache,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_become_entries() {
        let mut sheet = Sheet::default();
        for round in [[1.0, 3.0], [2.0, 6.0], [3.0, 9.0]] {
            for ns in round {
                sheet.record(Class::ReadCached, 4096, ns);
                sheet.record(Class::Open, 77, 10.0);
            }
            sheet.end_round();
        }
        sheet.record(Class::SetXattr, 0, 1.0);
        sheet.give_up("setxattr".to_owned(), "EOPNOTSUPP".to_owned());
        let (entries, missing) = sheet.finish();
        let read = &entries["rdc_4096"];
        assert_eq!((read.mean_ns, read.samples, &read.rounds_ns[..]), (4.0, 6, &[2.0, 4.0, 6.0][..]));
        assert_eq!(entries["open"].mean_ns, 10.0);
        assert!(!entries.contains_key("setxattr"));
        assert_eq!(missing["setxattr"], "EOPNOTSUPP");
        assert!(missing["rdc_1"].contains("time") && missing["stat"].contains("time"));
        assert!(!missing.contains_key("rdc"));
    }

    #[test]
    fn an_interruption_does_not_price_a_short_call() {
        let mut sheet = Sheet::default();
        for round in 0..8 {
            for call in 0..64 {
                let interrupted = call == 10 && round % 4 == 0;
                sheet.record(Class::Stat, 0, if interrupted { 4_000_000.0 } else { 1000.0 });
                // What the file system does to one call in 32 belongs to its price.
                let own = if call % 32 == 0 { 33_000.0 } else { 1000.0 };
                sheet.record(Class::Create, 0, if interrupted { 4_000_000.0 } else { own });
            }
            sheet.end_round();
        }
        let (entries, _) = sheet.finish();
        assert_eq!((entries["stat"].mean_ns, entries["stat"].rounds_ns.len()), (1000.0, 8));
        assert_eq!(entries["stat"].quantiles_ns[9], 4_000_000.0, "it is reported all the same");
        assert_eq!(entries["cr"].mean_ns, 2000.0);
    }

    #[test]
    fn what_waits_for_the_device_is_not_cut_into_batches() {
        let mut sheet = Sheet::default();
        for _ in 0..4 {
            for call in 0..128 {
                sheet.record(Class::FsyncClean, 0, 1000.0);
                sheet.record(Class::ReadRand, 4096, if call == 0 { 129_000.0 } else { 1000.0 });
            }
            sheet.end_round();
        }
        let (entries, _) = sheet.finish();
        assert_eq!((entries["rrd_4096"].mean_ns, entries["rrd_4096"].rounds_ns.len()), (2000.0, 4));
    }

    #[test]
    fn differences_never_become_negative_prices() {
        let mut sheet = Sheet::default();
        sheet.record(Class::FsyncOther, 65536, -5.0);
        let (entries, _) = sheet.finish();
        assert_eq!(entries["fsync_oth_65536"].mean_ns, 0.0);
    }
}
