//! Several profiles of one system as one: a machine that drifts is at none of several times as it is over all of them.

use super::{Entry, Parameters, References, Reuse, SyncBeside, SystemProfile};
use crate::vector::parse_entry_name;
use posix::CacheState;
use stats::{median, midmean, midmean_interval};
use std::collections::BTreeMap;

impl SystemProfile {
    /// The profiles of one system, measured at different times, as one: the rounds of each entry stand side by side,
    /// sizes and rates are the median. What the system is and does is taken from the last one. A single profile stays
    /// as it is.
    ///
    /// # Panics
    /// If there is none.
    pub fn pooled(profiles: &[SystemProfile]) -> SystemProfile {
        let last = profiles.last().expect("there is a profile");
        if profiles.len() == 1 {
            return last.clone();
        }
        let entries = pooled_entries(profiles.iter().map(|p| &p.entries));
        let missing = last.missing.iter().filter(|(name, _)| {
            let lacks = |p: &SystemProfile| p.missing.contains_key(*name) && !p.entries.contains_key(*name);
            profiles.iter().all(lacks)
        });
        SystemProfile {
            provenance: format!("{}, {} times in turn", last.provenance, profiles.len()),
            parameters: pooled_parameters(profiles),
            write_load: middle_load(profiles).write_load.clone(),
            sync_beside: pooled_beside(profiles),
            missing: missing.map(|(name, why)| (name.clone(), why.clone())).collect(),
            references: pooled_references(profiles),
            entries,
            ..last.clone()
        }
    }
}

fn pooled_entries<'p>(all: impl Iterator<Item = &'p BTreeMap<String, Entry>>) -> BTreeMap<String, Entry> {
    let mut by_name: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for (name, entry) in all.flatten() {
        by_name.entry(name).or_default().push(entry);
    }
    let pool = |(name, entries): (&str, Vec<&Entry>)| {
        let seed = parse_entry_name(name).map_or(0, |(class, at)| u64::from(class as u8) << 32 ^ at);
        (name.to_owned(), pooled_entry(&entries, seed))
    };
    by_name.into_iter().map(pool).collect()
}

fn pooled_references(profiles: &[SystemProfile]) -> References {
    let mut all: BTreeMap<_, Vec<&Entry>> = BTreeMap::new();
    for (&reference, entry) in profiles.iter().flat_map(|p| &p.references) {
        all.entry(reference).or_default().push(entry);
    }
    all.into_iter().map(|(reference, entries)| (reference, pooled_entry(&entries, reference as u64))).collect()
}

/// An entry of several. A hand-written one has no rounds: its mean counts as one.
fn pooled_entry(entries: &[&Entry], seed: u64) -> Entry {
    if let [only] = entries {
        return (*only).clone();
    }
    let rounds_of = |e: &&Entry| if e.rounds_ns.is_empty() { vec![e.mean_ns] } else { e.rounds_ns.clone() };
    let rounds_ns: Vec<f64> = entries.iter().flat_map(rounds_of).collect();
    let tidy = |ns: f64| (ns * 10.0).round() / 10.0;
    let (low, high) = midmean_interval(&rounds_ns, seed);
    let levels = entries.iter().map(|e| e.quantiles_ns.len()).max().unwrap_or(0);
    let quantile = |level| entries.iter().filter_map(|e| e.quantiles_ns.get(level).copied()).collect::<Vec<f64>>();
    let middle =
        |of: fn(&Reuse) -> f64| median(&entries.iter().filter_map(|e| e.reuse.as_ref().map(of)).collect::<Vec<f64>>());
    let caches = entries.iter().filter_map(|e| e.cache);
    Entry {
        mean_ns: tidy(midmean(&rounds_ns)),
        low_ns: tidy(low),
        high_ns: tidy(high),
        samples: entries.iter().map(|e| e.samples).sum(),
        quantiles_ns: (0..levels).filter_map(|level| median(&quantile(level))).collect(),
        rounds_ns,
        reuse: middle(|r| r.distance).zip(middle(|r| r.power)).map(|(distance, power)| Reuse { distance, power }),
        // The less certain of the states.
        cache: caches.reduce(|a, b| if a == CacheState::Unverified { a } else { b }),
    }
}

fn pooled_parameters(profiles: &[SystemProfile]) -> Parameters {
    let last = &profiles[profiles.len() - 1].parameters;
    let middle = |value: fn(&Parameters) -> f64| {
        let values: Vec<f64> = profiles.iter().map(|p| value(&p.parameters)).collect();
        median(&values).expect("there is a profile")
    };
    // A size that was reached is worth more than a bound that was not.
    let reached: Vec<f64> = profiles
        .iter()
        .filter(|p| !p.parameters.data_cache_is_lower_bound)
        .map(|p| p.parameters.data_cache_bytes as f64)
        .collect();
    let bound = profiles.iter().map(|p| p.parameters.data_cache_bytes).max().unwrap_or(0);
    Parameters {
        data_cache_bytes: median(&reached).map_or(bound, |bytes| bytes as u64),
        data_cache_is_lower_bound: reached.is_empty(),
        memory_available_bytes: middle(|p| p.memory_available_bytes as f64) as u64,
        writeback_bytes_per_s: middle(|p| p.writeback_bytes_per_s),
        writeback_files_per_s: middle(|p| p.writeback_files_per_s),
        timer_overhead_ns: middle(|p| p.timer_overhead_ns),
        core_power: middle(|p| p.core_power),
        calls_beside: middle(|p| p.calls_beside),
        ..*last
    }
}

/// The profile whose greatest slowdown under load is the middle one.
fn middle_load(profiles: &[SystemProfile]) -> &SystemProfile {
    let slowest = |p: &SystemProfile| p.write_load.iter().map(|load| load.slowdown).fold(1.0, f64::max);
    let mut sorted: Vec<&SystemProfile> = profiles.iter().filter(|p| !p.write_load.is_empty()).collect();
    sorted.sort_by(|a, b| slowest(a).total_cmp(&slowest(b)));
    sorted.get(sorted.len() / 2).copied().unwrap_or(&profiles[0])
}

/// The median of each point.
fn pooled_beside(profiles: &[SystemProfile]) -> Vec<SyncBeside> {
    let mut all: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for point in profiles.iter().flat_map(|p| &p.sync_beside) {
        all.entry(point.others).or_default().push(point.slowdown);
    }
    all.into_iter()
        .filter_map(|(others, slowdowns)| Some(SyncBeside { others, slowdown: median(&slowdowns)? }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reference;
    use crate::vector::Class;

    fn measured(open: &[f64], sync_ns: f64) -> SystemProfile {
        let entry = |rounds: &[f64]| Entry {
            mean_ns: midmean(rounds),
            rounds_ns: rounds.to_vec(),
            samples: rounds.len() as u64,
            quantiles_ns: vec![rounds[0]; 3],
            cache: Some(CacheState::Cold),
            ..Entry::default()
        };
        SystemProfile {
            entries: BTreeMap::from([(Class::Open.name().to_owned(), entry(open))]),
            references: BTreeMap::from([(Reference::Sync, entry(&[sync_ns]))]),
            missing: BTreeMap::from([("setxattr".to_owned(), "refused".to_owned())]),
            ..SystemProfile::default()
        }
    }

    #[test]
    fn rounds_stand_side_by_side() {
        let (mut first, mut second) = (measured(&[10.0, 12.0], 100.0), measured(&[20.0, 22.0], 300.0));
        first.parameters.writeback_bytes_per_s = 1e6;
        (second.parameters.data_cache_bytes, second.parameters.data_cache_is_lower_bound) = (5000, false);
        second.missing.insert("open".to_owned(), "no time".to_owned());
        second.entries.get_mut("open").unwrap().cache = Some(CacheState::Unverified);
        let pooled = SystemProfile::pooled(&[second.clone(), first.clone()]);
        let open = &pooled.entries["open"];
        assert_eq!((open.mean_ns, &open.rounds_ns[..]), (16.0, &[20.0, 22.0, 10.0, 12.0][..]));
        assert_eq!((open.samples, &open.quantiles_ns[..]), (4, &[15.0; 3][..]));
        assert!(open.low_ns < 16.0 && open.high_ns > 16.0);
        assert_eq!(open.cache, Some(CacheState::Unverified), "the less certain state stays");
        assert_eq!(pooled.references[&Reference::Sync].mean_ns, 200.0);
        assert_eq!(pooled.missing.keys().collect::<Vec<_>>(), ["setxattr"], "one of them has open");
        let p = pooled.parameters;
        assert_eq!((p.data_cache_bytes, p.data_cache_is_lower_bound), (5000, false), "a bound does not hide a size");
        assert_eq!(p.writeback_bytes_per_s, 5e5);
        assert_eq!(SystemProfile::pooled(std::slice::from_ref(&first)), first);
    }
}
