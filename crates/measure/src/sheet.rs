//! Where every timed call is written down, and what becomes of it: entries of the vector.

use posix::CacheState;
use stats::{QUANTILES, mean, midmean, midmean_interval, quantile};
use std::collections::BTreeMap;
use system::vector::{Class, Part, entry_name};
use system::{Distance, Entry, Reuse};

/// Calls in a batch, of a class that does not wait for the device. Smaller batches hide more of what other programs do,
/// but also of what the file system's own helpers do: a create in a hundred that waits for btrfs's workers belongs to
/// the price.
const BATCH_CALLS: usize = 64;

/// Whether calls of a class wait for the device as a rule.
///
/// The others take microseconds, and one in some dozens is interrupted for milliseconds by whatever else runs on the
/// machine. Their rounds are therefore cut into batches: so few of these are hit that [`midmean`] sets them aside,
/// while what a file system itself does once in a few calls stays in.
fn waits_for_device(class: Class) -> bool {
    // Of the lookups beside cached inodes few read anything.
    class.part() != Part::Processor && class != Class::LookupNearMiss
}

/// The least that an entry's distances must say: squares of their logarithms, from the mean, summed. Single calls
/// differ by a third or so; then the power is known to about a twentieth.
const TELLING_DISTANCES: f64 = 60.0;
/// A call that takes longer by more than this power of its distance has not been seen, except by chance.
const STEEPEST: f64 = 0.5;

/// The least that all rounds together must say of how calls follow the core: squares of the logarithm of the loop's
/// time, from the mean of each entry, summed.
const TELLING: f64 = 0.5;

/// A round (or batch) that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Round {
    /// Mean of its calls, nanoseconds.
    mean_ns: f64,
    /// Mean of what the loop took beside them; 0 where nothing was probed.
    probe_ns: f64,
}

/// An entry's calls, by round.
#[derive(Clone, Debug, Default)]
struct Series {
    /// Calls of the round under way, each with what the loop took last before it.
    current: Vec<(f64, f64)>,
    /// The rounds (or batches) that have ended.
    rounds: Vec<Round>,
    /// Every call of the rounds that have ended.
    all: Vec<f64>,
    reuse: ReuseSums,
    cache: Option<CacheState>,
}

/// Sums over an entry's calls, for the line of the logarithm of the time over that of the reuse distance.
#[derive(Clone, Copy, Debug, Default)]
struct ReuseSums {
    calls: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    /// Of those that are in the mean: how many at each distance, to the nearest power of two.
    mixed: [u32; Distance::STEPS],
    /// How many are in runs.
    in_runs: u32,
}

/// Every timed call of a measurement.
#[derive(Clone, Debug, Default)]
pub(super) struct Sheet {
    series: BTreeMap<(Class, u64), Series>,
    missing: BTreeMap<String, String>,
    /// What the loop took last, nanoseconds.
    probe_ns: f64,
    /// What it took each time in the round under way, and the means of the rounds before.
    probes: Vec<f64>,
    probes_of_rounds: Vec<f64>,
    probes_taken: u64,
    /// Calls are made in runs of one kind: they tell what the distance does, and are in no mean.
    in_a_row: bool,
}

/// What is left of a measurement when it ends.
pub(super) struct Finished {
    pub(super) entries: BTreeMap<String, Entry>,
    pub(super) missing: BTreeMap<String, String>,
    /// How long the loop took ([`posix::core_probe`]); `None` in virtual time.
    pub(super) core: Option<Entry>,
    /// By what power of that the calls take longer that do not wait for the device.
    pub(super) core_power: f64,
}

impl Sheet {
    /// Writes down how long the loop took that shows how much of its core the processor has.
    pub(super) fn probed(&mut self, ns: f64) {
        self.probe_ns = ns;
        self.probes.push(ns);
        self.probes_taken += 1;
    }

    /// Says whether calls are made in runs of one kind from now on.
    pub(super) fn set_in_a_row(&mut self, in_a_row: bool) {
        self.in_a_row = in_a_row;
    }

    /// Writes down one cost.
    pub(super) fn record(&mut self, class: Class, at: u64, ns: f64) {
        let (probe_ns, in_a_row) = (self.probe_ns, self.in_a_row);
        let series = self.series(class, at);
        if !in_a_row {
            series.current.push((ns, probe_ns));
        }
    }

    /// Writes down a call that is a class's own, and how far back the last of its kind was.
    pub(super) fn record_call(&mut self, class: Class, at: u64, ns: f64, distance: u64) {
        self.record(class, at, ns);
        let in_a_row = self.in_a_row;
        if !waits_for_device(class) {
            self.series(class, at).reuse.add(ns, distance, !in_a_row);
        }
    }

    fn series(&mut self, class: Class, at: u64) -> &mut Series {
        self.series.entry((class, if class.is_curve() { at } else { 0 })).or_default()
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
            // One lookup in hundreds reads a block for the others, and its time is theirs.
            let whole = waits_for_device(class) || class == Class::LookupNearMiss;
            let batches = if whole { 1 } else { (series.current.len() / BATCH_CALLS).max(1) };
            let calls = series.current.len().div_ceil(batches);
            let round = |calls: &[(f64, f64)]| {
                let of = |which: fn(&(f64, f64)) -> f64| mean(&calls.iter().map(which).collect::<Vec<f64>>());
                Some(Round { mean_ns: of(|call| call.0)?, probe_ns: of(|call| call.1)? })
            };
            series.rounds.extend(series.current.chunks(calls).filter_map(round));
            series.all.extend(series.current.drain(..).map(|call| call.0));
        }
        self.probes_of_rounds.extend(mean(&self.probes));
        self.probes.clear();
    }

    /// The mean of an entry in the round under way, or else over the rounds so far.
    pub(super) fn mean_so_far(&self, class: Class, at: u64) -> Option<f64> {
        let series = self.series.get(&(class, if class.is_curve() { at } else { 0 }))?;
        if !series.current.is_empty() {
            Some(midmean(&series.current.iter().map(|call| call.0).collect::<Vec<f64>>()))
        } else if !series.rounds.is_empty() {
            Some(midmean(&series.means()))
        } else {
            None
        }
    }

    /// The median, over the given classes' entries, of the interval's width relative to the mean; infinite before two
    /// rounds.
    pub(super) fn relative_width(&self, classes: &[Class]) -> f64 {
        let mut widths: Vec<f64> = Vec::new();
        for ((class, _), series) in &self.series {
            if !classes.contains(class) || series.rounds.is_empty() {
                continue;
            }
            if series.rounds.len() < 2 {
                return f64::INFINITY;
            }
            let means = series.means();
            let (low, high) = midmean_interval(&means, 1);
            widths.push((high - low) / midmean(&means).max(1.0));
        }
        widths.sort_by(f64::total_cmp);
        if widths.is_empty() { f64::INFINITY } else { quantile(&widths, 0.5) }
    }

    /// The vector, and why some of it is missing. Every class without any entry gets a reason. What does not wait for
    /// the device is as with the share of the core that the processor had on average: each entry met another state of
    /// it.
    pub(super) fn finish(mut self) -> Finished {
        self.end_round();
        let core_power = self.core_power();
        let core = (!self.probes_of_rounds.is_empty()).then(|| self.core());
        if let Some(core) = &core {
            for ((class, _), series) in &mut self.series {
                if !waits_for_device(*class) {
                    series.level(core.mean_ns, core_power);
                }
            }
        }
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
        Finished { entries, missing: self.missing, core, core_power }
    }

    /// How long the loop took.
    fn core(&self) -> Entry {
        let tidy = |ns: f64| (ns * 10.0).round() / 10.0;
        let (low, high) = midmean_interval(&self.probes_of_rounds, 0);
        Entry {
            mean_ns: tidy(midmean(&self.probes_of_rounds)),
            low_ns: tidy(low),
            high_ns: tidy(high),
            samples: self.probes_taken,
            rounds_ns: self.probes_of_rounds.iter().copied().map(tidy).collect(),
            ..Entry::default()
        }
    }

    /// By what power of the loop's time calls take longer: the slope of the logarithms within each entry, over all that
    /// do not wait for the device; 0 where the core was always the same.
    fn core_power(&self) -> f64 {
        let (mut both, mut of_probe) = (0.0, 0.0);
        for ((class, _), series) in &self.series {
            if waits_for_device(*class) {
                continue;
            }
            let logs = series.rounds.iter().filter(|r| r.mean_ns > 0.0 && r.probe_ns > 0.0);
            let logs: Vec<(f64, f64)> = logs.map(|r| (r.mean_ns.ln(), r.probe_ns.ln())).collect();
            let n = logs.len() as f64;
            if logs.len() < 2 {
                continue;
            }
            let (ns, probe) = logs.iter().fold((0.0, 0.0), |sum, log| (sum.0 + log.0 / n, sum.1 + log.1 / n));
            both += logs.iter().map(|log| (log.0 - ns) * (log.1 - probe)).sum::<f64>();
            of_probe += logs.iter().map(|log| (log.1 - probe).powi(2)).sum::<f64>();
        }
        if of_probe < TELLING { 0.0 } else { ((both / of_probe).clamp(0.0, 1.0) * 1000.0).round() / 1000.0 }
    }
}

impl Series {
    fn means(&self) -> Vec<f64> {
        self.rounds.iter().map(|round| round.mean_ns).collect()
    }

    /// Makes each round as it would have been with the core's average.
    fn level(&mut self, probe_ns: f64, power: f64) {
        for round in self.rounds.iter_mut().filter(|round| round.probe_ns > 0.0) {
            round.mean_ns *= (probe_ns / round.probe_ns).powf(power);
        }
    }

    fn entry(&self, seed: u64) -> Entry {
        // Derived costs (differences) can come out below zero by noise; no price may.
        let tidy = |ns: f64| (ns.max(0.0) * 10.0).round() / 10.0;
        let mut sorted = self.all.clone();
        sorted.sort_by(f64::total_cmp);
        let means = self.means();
        let (low, high) = midmean_interval(&means, seed);
        Entry {
            mean_ns: tidy(midmean(&means)),
            low_ns: tidy(low),
            high_ns: tidy(high),
            samples: self.all.len() as u64,
            quantiles_ns: QUANTILES.iter().map(|&share| tidy(quantile(&sorted, share))).collect(),
            rounds_ns: means.into_iter().map(tidy).collect(),
            reuse: self.reuse.line(),
            cache: self.cache,
        }
    }
}

impl ReuseSums {
    fn add(&mut self, ns: f64, distance: u64, mixed: bool) {
        let (x, y) = ((distance.clamp(1, Reuse::FARTHEST) as f64).ln(), ns.max(1.0).ln());
        self.calls += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        if mixed {
            self.mixed[Distance::of(distance).step()] += 1;
        } else {
            self.in_runs += 1;
        }
    }

    /// The line, where the distances are far enough from each other to tell. Calls that are never made in runs have
    /// none: what comes before them may change more than what the caches hold.
    fn line(&self) -> Option<Reuse> {
        let spread = self.xx - self.x * self.x / self.calls;
        let mixed: f64 = self.mixed.iter().copied().map(f64::from).sum();
        if mixed == 0.0 || self.in_runs == 0 || spread < TELLING_DISTANCES {
            return None;
        }
        let tidy = |value: f64| (value * 1000.0).round() / 1000.0;
        let power = ((self.xy - self.x * self.y / self.calls) / spread).clamp(0.0, STEEPEST);
        // One distance at which a call takes as long as these do on average; without a power, their geometric mean.
        let shares = self.mixed.iter().zip(0..).map(|(&calls, step)| (f64::from(calls) / mixed, f64::from(step)));
        let distance = if power > 0.0 {
            shares.map(|(share, step)| share * (step * power).exp2()).sum::<f64>().powf(1.0 / power)
        } else {
            shares.map(|(share, step)| share * step).sum::<f64>().exp2()
        };
        Some(Reuse { distance: tidy(distance.max(1.0)), power: tidy(power) })
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
        let Finished { entries, missing, .. } = sheet.finish();
        let read = &entries["rdc_4096"];
        assert_eq!((read.mean_ns, read.samples, &read.rounds_ns[..]), (4.0, 6, &[2.0, 4.0, 6.0][..]));
        assert_eq!(entries["open"].mean_ns, 10.0);
        assert!(!entries.contains_key("setxattr"));
        assert_eq!(missing["setxattr"], "EOPNOTSUPP");
        assert!(missing["rdc_1"].contains("time") && missing["stat"].contains("time"));
        assert!(!missing.contains_key("rdc"));
    }

    /// Two calls that take the same; the core is another's for half of the time, and more of the one call fell into
    /// that.
    #[test]
    fn what_met_a_busy_core_is_no_dearer_than_what_did_not() {
        let mut sheet = Sheet::default();
        for round in 0..20 {
            let busy = round % 2 == 0;
            sheet.probed(if busy { 3000.0 } else { 1500.0 });
            let factor = if busy { 2.0f64.powf(0.8) } else { 1.0 };
            // Noise that is not the core's.
            let noise = 1.0 + f64::from(round % 5) * 0.01;
            let times = |often: bool| if often { 4 } else { 1 };
            for _ in 0..BATCH_CALLS * times(busy) {
                sheet.record(Class::Stat, 0, 1000.0 * factor * noise);
            }
            for _ in 0..BATCH_CALLS * times(!busy) {
                sheet.record(Class::Open, 0, 1000.0 * factor * noise);
            }
            sheet.record(Class::FsyncClean, 0, 1000.0);
            sheet.end_round();
        }
        let done = sheet.finish();
        let core = done.core.unwrap();
        assert_eq!((core.mean_ns, core.samples), (2250.0, 20));
        assert!((done.core_power - 0.8).abs() < 0.05, "{}", done.core_power);
        let (stat, open) = (done.entries["stat"].mean_ns, done.entries["open"].mean_ns);
        assert!((stat / open - 1.0).abs() < 0.03, "{stat} {open}");
        assert!((stat / (1020.0 * 1.5f64.powf(0.8)) - 1.0).abs() < 0.05, "{stat}: as with the average of the core");
        assert_eq!(done.entries["fsync_clean"].mean_ns, 1000.0, "what waits for the device stays");
    }

    #[test]
    fn a_core_that_stays_the_same_changes_nothing() {
        let mut sheet = Sheet::default();
        for round in 0..20 {
            sheet.probed(1500.0 + f64::from(round % 3));
            sheet.record(Class::Stat, 0, 1000.0 + f64::from(round) * 50.0);
            sheet.end_round();
        }
        let done = sheet.finish();
        assert_eq!((done.core_power, done.entries["stat"].mean_ns), (0.0, 1475.0));
    }

    #[test]
    fn runs_of_one_kind_are_in_no_mean_but_say_what_the_distance_does() {
        let mut sheet = Sheet::default();
        for call in 0..400u64 {
            sheet.set_in_a_row(false);
            let distance = 8 << (call % 5);
            sheet.record_call(Class::Stat, 0, 1000.0 * (distance as f64 / 32.0).powf(0.2), distance);
            sheet.record_call(Class::Open, 0, 1000.0, 32);
            sheet.record_call(Class::Chmod, 0, 1000.0 * distance as f64, distance);
            sheet.set_in_a_row(true);
            sheet.record_call(Class::Open, 0, 1000.0, 32);
            sheet.record_call(Class::Stat, 0, 1000.0 / 2.0, 1);
            sheet.record_call(Class::Close, 0, 1000.0, 1);
        }
        let entries = sheet.finish().entries;
        let reuse = entries["stat"].reuse.unwrap();
        assert_eq!(reuse.power, 0.2);
        let mean_ns = 1000.0 * (reuse.distance / 32.0).powf(0.2);
        assert!((entries["stat"].mean_ns / mean_ns - 1.0).abs() < 0.01, "{reuse:?} {}", entries["stat"].mean_ns);
        assert_eq!(entries["open"].reuse, None, "always at one distance");
        assert_eq!(entries["chmod"].reuse, None, "never in a row");
        assert!(!entries.contains_key("close"), "only in a row");
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
        let entries = sheet.finish().entries;
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
        let entries = sheet.finish().entries;
        assert_eq!((entries["rrd_4096"].mean_ns, entries["rrd_4096"].rounds_ns.len()), (2000.0, 4));
    }

    #[test]
    fn differences_never_become_negative_prices() {
        let mut sheet = Sheet::default();
        sheet.record(Class::FsyncOther, 65536, -5.0);
        let entries = sheet.finish().entries;
        assert_eq!(entries["fsync_oth_65536"].mean_ns, 0.0);
    }
}
