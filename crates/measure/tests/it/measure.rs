//! The measurement finds the costs it is shown: on a file system in memory whose calls cost known times.

use crate::fake::Fake;
use crate::fake::costs::cost;
use fault::{Fault as _, Kind};
use measure::{Host, MeasureError, MeasureOptions, Progress, measure_on};
use std::cell::Cell;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;
use system::SystemProfile;
use system::vector::{Class, entry_name, parse_entry_name};
use system::{Behaviour, Family, Parameters};

const HOST: Host = Host {
    memory_available_bytes: 1 << 34,
    dirty_background_bytes: 1 << 30,
    dirty_limit_bytes: 1 << 31,
    dirty_expire_ns: 30_000_000_000,
    timer_overhead_ns: 20.0,
};

fn measure(fake: &mut Fake, options: &MeasureOptions) -> Result<SystemProfile, MeasureError> {
    measure_on(fake, &HOST, options, &|| false, &mut |_| {})
}

fn roomy() -> Fake {
    Fake::default()
}

/// One quick measurement that several tests look at, with its reports of progress and the descriptors that were open
/// when caches were dropped.
fn quick() -> &'static (SystemProfile, Vec<Progress>, usize) {
    static MEASURED: OnceLock<(SystemProfile, Vec<Progress>, usize)> = OnceLock::new();
    MEASURED.get_or_init(|| {
        let mut fake = roomy();
        let mut seen = Vec::new();
        let options = MeasureOptions::quick(1);
        let profile = measure_on(&mut fake, &HOST, &options, &|| false, &mut |p| seen.push(p)).expect("measured");
        (profile, seen, fake.open_at_drop)
    })
}

/// Every entry that was measured is what the file system charges.
fn assert_costs(profile: &SystemProfile, factor: u64) {
    for (name, entry) in &profile.entries {
        let (class, at) = parse_entry_name(name).expect("an entry's name");
        let expected = (cost(class, at) * factor) as f64;
        assert!((entry.mean_ns - expected).abs() < 0.06, "{name}: {} measured, {expected} charged", entry.mean_ns);
        assert!((entry.low_ns - expected).abs() < 0.06 && (entry.high_ns - expected).abs() < 0.06, "{name}");
        assert!(entry.samples > 0 && !entry.rounds_ns.is_empty());
    }
}

#[test]
fn the_vector_is_what_the_calls_cost() {
    let (profile, _, open_at_drop) = quick();
    for &class in Class::ALL {
        let points = if class.is_curve() { class.points() } else { &[0] };
        for &at in points {
            let name = entry_name(class, at);
            assert!(profile.entries.contains_key(&name), "{name} is missing: {:?}", profile.missing);
        }
    }
    assert!(profile.missing.is_empty(), "{:?}", profile.missing);
    assert_costs(profile, 1);
    assert_eq!(*open_at_drop, 0, "descriptors keep things in the caches");
}

#[test]
fn what_a_system_does_is_found_by_trying() {
    let budget = Some(Duration::from_secs(4));
    let options = MeasureOptions { budget, ..MeasureOptions::quick(3) };
    for family in [Family::Log, Family::Each, Family::Segments] {
        for (shares, cut_writes, directory_commits) in [(false, true, true), (true, false, true), (true, true, false)] {
            let mut fake = roomy();
            (fake.family, fake.shares, fake.cut_writes) = (family, shares, cut_writes);
            (fake.directory_commits, fake.leaves_changes) = (directory_commits, shares);
            fake.preallocates = shares;
            let found = measure(&mut fake, &options).expect("measured").behaviour;
            let expected = Behaviour {
                family: Some(family),
                sync_writes_others: Some(false),
                copies_share: Some(shares),
                preallocates: Some(shares),
                truncate_writes: Some(cut_writes),
                directory_commits: Some(directory_commits),
                sync_leaves_changes: directory_commits.then_some(shares),
            };
            assert_eq!(found, expected);
        }
    }
}

/// Each size comes from 300 touches at random, so one measurement may be off by a sixth; the middle of three is not.
#[test]
fn sizes_of_caches_are_found() {
    let found = [2, 3, 4].map(|seed| {
        let mut fake = Fake::new(200 << 20, 6000, 4000);
        let parameters = measure(&mut fake, &MeasureOptions::quick(seed)).expect("measured").parameters;
        assert!(!parameters.data_cache_is_lower_bound);
        parameters
    });
    let is_near = |size: fn(&Parameters) -> u64, truth: u64| {
        let mut sizes: Vec<u64> = found.iter().map(size).collect();
        sizes.sort_unstable();
        assert!((sizes[1] as f64 / truth as f64 - 1.0).abs() < 0.15, "{sizes:?} and {truth}");
    };
    is_near(|p| p.data_cache_bytes, 200 << 20);
    is_near(|p| p.name_cache_entries, 6000);
    is_near(|p| p.attribute_cache_files, 4000);
}

#[test]
fn caches_that_are_not_exceeded_are_lower_bounds() {
    let (profile, _, _) = quick();
    let p = profile.parameters;
    assert!(p.data_cache_is_lower_bound && p.data_cache_bytes >= 128 << 20, "{p:?}");
    assert_eq!((p.name_cache_entries, p.attribute_cache_files), (0, 0));
    assert!(p.names_seen_cached >= 4000);
    assert_eq!(p.data_cache_to_simulate_bytes(), 1 << 34);
}

/// The sync that wakes the device came between a change and the sync that is timed, and committed the change: on ext4
/// with `data=journal` a small sync had a price of 80 us, and took three times as long.
#[test]
fn syncs_are_timed_with_something_to_commit() {
    let mut fake = roomy();
    (fake.journals_data, fake.leaves_changes, fake.directory_commits) = (true, true, true);
    let profile = measure(&mut fake, &MeasureOptions::quick(1)).expect("measured");
    for class in [
        Class::FsyncAppend,
        Class::FdatasyncAppend,
        Class::FsyncOverwrite,
        Class::FdatasyncOverwrite,
        Class::FsyncCreate,
        Class::FdatasyncCreate,
    ] {
        let name = entry_name(class, 4096);
        assert!(
            profile.entries[&name].mean_ns > 0.99 * cost(class, 4096) as f64,
            "{name}: {:?}",
            profile.entries[&name]
        );
    }
}

#[test]
fn syncs_of_several_threads_are_slower_by_what_they_cost_each_other() {
    let (profile, _, _) = quick();
    let others: Vec<u32> = profile.sync_beside.iter().map(|point| point.others).collect();
    assert_eq!(others, [1, 3, 7, 15]);
    // Half as long again, and others' data besides.
    assert!(profile.sync_beside.iter().all(|point| point.slowdown > 1.49), "{:?}", profile.sync_beside);
}

#[test]
fn calls_beside_those_of_another_thread_are_slower_by_what_they_cost_each_other() {
    let beside = quick().0.parameters.calls_beside;
    assert!((beside - 1.5).abs() < 0.01, "{beside}: two processes at once take half as long again");
}

#[test]
fn write_back_and_its_effect() {
    let (profile, _, _) = quick();
    let bytes = 64u64 << 20;
    let expected = bytes as f64 * 1e9 / cost(Class::SyncFs, bytes) as f64;
    assert!((profile.parameters.writeback_bytes_per_s / expected - 1.0).abs() < 1e-6);
    let expected = 500.0 * 1e9 / cost(Class::SyncFs, 500 * 4096) as f64;
    assert!((profile.parameters.writeback_files_per_s / expected - 1.0).abs() < 1e-3);
    let (first, loaded) = profile.write_load.split_first().expect("a curve");
    assert_eq!((first.load_bytes_per_s, first.slowdown), (0.0, 1.0));
    assert_eq!(loaded.len(), 3);
    for point in loaded {
        assert!((point.slowdown - 1.5).abs() < 0.05, "{point:?}");
    }
}

#[test]
fn the_budget_holds_on_a_slow_device_too() {
    // Forty times slower: an fsync takes 20 ms, a cold lookup 2 ms, as on a worn disk.
    let mut fake = roomy();
    fake.factor = 40;
    let began = fake.now_ns;
    let profile = measure(&mut fake, &MeasureOptions::quick(5)).expect("measured");
    let took = Duration::from_nanos(fake.now_ns - began);
    assert!(took < Duration::from_secs(55), "{took:?}");
    assert_costs(&profile, 40);
    assert!(profile.entries.len() > 80, "{} entries; {:?}", profile.entries.len(), profile.missing);
    assert!(profile.missing.values().all(|why| why.contains("time was used up")), "{:?}", profile.missing);
}

#[test]
fn what_a_system_refuses_is_missing_with_the_reason() {
    let mut fake = roomy();
    (fake.root, fake.xattrs, fake.direct) = (false, false, false);
    let profile = measure(&mut fake, &MeasureOptions::quick(6)).expect("measured");
    for name in ["lus_nc", "lur_nc", "lus_ac", "lur_ac", "lun_nc", "readdiru"] {
        assert!(profile.missing[name].contains("cannot be dropped"), "{name}");
        assert!(!profile.entries.keys().any(|entry| parse_entry_name(entry).is_some_and(|(c, _)| c.name() == name)));
    }
    assert!(profile.missing["setxattr"].contains("EOPNOTSUPP") && profile.missing.contains_key("getxattr"));
    assert!(profile.missing["rdd"].contains("EINVAL"));
    assert_eq!(profile.entries["rmu_4096"].cache, Some(posix::CacheState::Unverified));
    assert_eq!(profile.entries["readdir_100"].mean_ns, cost(Class::ReadDir, 100) as f64);
}

/// Names and attributes are measured in a mixture, where the last call of a kind lies some dozens of calls back.
/// Programs make the same call again and again: `fcntl` took half of its price so.
#[test]
fn what_the_calls_before_cost_a_call_is_found() {
    let mut fake = roomy();
    fake.reuse_power = 0.15;
    let profile = measure(&mut fake, &MeasureOptions::quick(1)).expect("measured");
    for (class, at) in [
        (Class::Stat, 0),
        (Class::Fstat, 0),
        (Class::Fcntl, 0),
        (Class::Fchmod, 0),
        (Class::Rename, 0),
        (Class::ReadCached, 4096),
        (Class::WriteExtend, 512),
    ] {
        let entry = &profile.entries[&entry_name(class, at)];
        let reuse = entry.reuse.unwrap_or_else(|| panic!("{class:?}: no distances were seen"));
        assert!((reuse.power - 0.15).abs() < 0.02, "{class:?}: {reuse:?}");
        let expected = cost(class, at) as f64 * (reuse.distance / 16.0).powf(0.15);
        // Rounds that differ in their distances are not all in the mean.
        assert!((entry.mean_ns / expected - 1.0).abs() < 0.1, "{class:?}: {} for {expected}", entry.mean_ns);
    }
    let unlike = |p: &SystemProfile| p.entries.values().filter(|e| e.reuse.is_some_and(|r| r.power > 0.001)).count();
    assert_eq!(unlike(&quick().0), 0, "a system without such caches has no such price");
}

#[test]
fn the_same_seed_measures_the_same() {
    let options = MeasureOptions { budget: Some(Duration::from_secs(8)), ..MeasureOptions::quick(7) };
    let text = |mut fake: Fake| {
        let mut profile = measure(&mut fake, &options).expect("measured");
        profile.measured_unix_s = 0;
        profile.to_text().expect("valid")
    };
    let first = text(roomy());
    assert_eq!(first, text(roomy()));
    assert!(SystemProfile::parse(&first, Path::new("x")).is_ok());
}

#[test]
fn a_full_target_is_an_error_that_says_so() {
    let mut fake = roomy();
    fake.capacity_bytes = 40 << 20;
    let error = measure(&mut fake, &MeasureOptions::quick(8)).expect_err("no space");
    assert!(error.to_string().contains("ENOSPC") && error.to_string().contains("full"), "{error}");
    assert_eq!(error.kind(), Kind::Environment);
}

#[test]
fn an_interrupt_ends_it() {
    let asked = Cell::new(0);
    let interrupted = || {
        asked.set(asked.get() + 1);
        asked.get() > 100_000
    };
    let result = measure_on(&mut roomy(), &HOST, &MeasureOptions::quick(9), &interrupted, &mut |_| {});
    assert!(matches!(result, Err(MeasureError::Interrupted)));
}

#[test]
fn progress_rises_to_the_end() {
    let (_, seen, _) = quick();
    assert!(seen.len() > 20);
    assert!(seen.windows(2).all(|w| w[0].done_share <= w[1].done_share && w[0].elapsed <= w[1].elapsed));
    let last = seen.last().expect("reports");
    assert_eq!((last.done_share, last.stage), (1.0, "done"));
    assert!(seen.iter().all(|p| p.elapsed + p.remaining <= Duration::from_secs(50)));
}
