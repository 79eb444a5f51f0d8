//! Whole predictions: sums, determinism, linearity, what-ifs, refusals.

use super::builder::{Trace, cold, primes};
use crate::random::Random;
use predict::cache_sizes::cache_sizes;
use predict::explain;
use predict::pipeline::{CachePolicy, InMemory, PredictError, PredictOptions, PricedCall, predict, predict_calls};
use predict::rank;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use system::vector::Class;
use system::{Entry, Reuse, SystemProfile};
use trace::{Op, flag};

const K: u64 = 1024;

/// `fcntl` again and again took half of what it takes in a mixture, where it is measured.
#[test]
fn a_call_just_after_its_like_costs_less() {
    let mut t = Trace::new().has("/f", 10).has("/g", 10);
    let kinds = [Op::Chmod, Op::Access, Op::ReadLink, Op::Utimens];
    t.on(Op::Stat, "/f");
    t.on(Op::Stat, "/f");
    for i in 0..15 {
        t.on(kinds[i % 4], "/f");
    }
    t.on(Op::Stat, "/f");
    let mut system = primes();
    let stat = system.entries.get_mut("stat").unwrap();
    (stat.mean_ns, stat.reuse) = (1000.0, Some(Reuse { distance: 16.0, power: 0.25 }));
    let mut stats = Vec::new();
    let mut each = |call: PricedCall<'_>| {
        if call.event.op() == Op::Stat {
            stats.push(call.ns);
        }
    };
    predict_calls(&t.workload(t.calls()), &[system], &PredictOptions::default(), Some(&mut each)).expect("predicted");
    assert_eq!(stats[1..], [500.0, 1000.0], "one call ago, and sixteen");
    assert!(stats[0] >= 2000.0, "never before: as far as can be");
}

/// A bit of everything.
fn mixed() -> Trace {
    let mut t = Trace::new().has("/src/", 0).has("/out/", 0);
    for i in 0..40 {
        t = t.has(&format!("/src/f{i}.c"), 3000 + 700 * i);
    }
    t.in_directory("/src");
    for i in 0..40 {
        let name = format!("f{i}.c");
        t.on(Op::Stat, &name);
        let f = t.open(&name, flag::READ);
        t.fd(Op::Fstat, f);
        t.read(f, 0, 3000 + 700 * i);
        t.fd(Op::Read, f).ret = 0;
        t.close(f);
        t.fails(Op::Access, &format!("/usr/include/h{}.h", i % 7), posix::Errno::ENOENT);
        let o = t.create(&format!("/out/f{i}.tmp"));
        t.write(o, 0, 20 * K + 100 * i);
        if i % 5 == 0 {
            t.fd(Op::Fsync, o);
        }
        t.close(o);
        t.on_two(Op::Rename, &format!("/out/f{i}.tmp"), &format!("/out/f{}.o", i % 30));
        if i % 9 == 0 {
            t.on(Op::Unlink, &format!("/out/f{}.o", i % 30));
        }
    }
    t
}

#[test]
fn the_total_is_the_dot_product_and_reveals_the_counts() {
    let mut t = Trace::new().has("/d/", 0).has("/d/f", 4 * K);
    for _ in 0..3 {
        let f = t.open("/d/f", flag::READ);
        t.read(f, 0, 4 * K);
        t.close(f);
    }
    let p = t.predict();
    let price = |name: &str| primes().entries[name].mean_ns;
    let expected = 2.0 * price("lur_nc")
        + 3.0 * price("lu_bc")
        + 3.0 * price("open")
        + price("rdf_4096")
        + 2.0 * price("rdc_4096")
        + 3.0 * price("close");
    assert_eq!(p.total_ns, expected);
    let ops: f64 = p.by_op.iter().map(|o| o.ns).sum();
    let entries: f64 = p.by_entry.iter().map(|e| e.ns).sum();
    assert!((ops - expected).abs() < 1e-9 && (entries - expected).abs() < 1e-9);
    assert_eq!(p.by_directory[0].path, "/");
    assert_eq!(p.by_directory[0].ns, expected, "the root's subtree is everything");
    assert_eq!(p.by_file[0].path, "/d/f");
    assert_eq!(p.timeline.ns.iter().sum::<f64>(), expected);
}

#[test]
fn every_sum_of_a_mixed_trace_agrees() {
    let p = mixed().predict();
    let close = |x: f64| (x / p.total_ns - 1.0).abs() < 1e-9;
    assert!(close(p.by_op.iter().map(|o| o.ns).sum()));
    assert!(close(p.by_entry.iter().map(|e| e.ns).sum()));
    assert!(close(p.by_directory.iter().map(|d| d.own_ns).sum()));
    assert!(close(p.timeline.ns.iter().sum()));
    assert_eq!(p.calls, mixed().calls() as u64);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let t = mixed();
    let json = || {
        let workload = t.workload(t.calls());
        let p = predict(&workload, &[primes(), primes()], &PredictOptions::default()).expect("a prediction");
        let ranking = rank::rank(&p.systems, 3);
        serde_json::to_string(&(&p, &ranking, explain::explain(&p.systems[0], &p.systems[1]))).expect("JSON")
    };
    assert_eq!(json(), json());
}

#[test]
fn batches_do_not_matter() {
    let t = mixed();
    let whole = t.workload(t.calls());
    let run = |w| predict(w, &[primes()], &PredictOptions::default()).expect("a prediction");
    assert_eq!(run(&whole), run(&in_batches(&whole, 7)));
}

/// The same calls in batches of so many.
fn in_batches(whole: &InMemory, calls: usize) -> InMemory {
    let mut split = whole.clone();
    let all = split.batches.remove(0);
    for events in all.events.chunks(calls) {
        split.batches.push(trace::Batch {
            events: events.to_vec(),
            paths: all.paths.clone(),
            ..trace::Batch::default()
        });
    }
    split
}

/// Calls in directories that grow and shrink, on paths through several of them, with some names that are seldom met.
fn wandering(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let mut t = Trace::new().has("/a/", 0).has("/a/b/", 0).has("/a/b/c/", 0).has("/a/d/", 0).has_link("/a/l", "b/c");
    let directories = ["/a", "/a/b", "/a/b/c", "/a/d", "/a//b/./c", "/a/b/../d", "/a/l", "/a/b/c/"];
    let mut made = Vec::new();
    for i in 0..1500 {
        let directory = directories[random.below(8) as usize];
        let real = ["/a", "/a/b", "/a/b/c", "/a/d", "/a/b/c", "/a/d", "/a/b/c", "/a/b/c"];
        let real = real[directories.iter().position(|d| *d == directory).expect("one of them")];
        match random.below(8) {
            0..3 => {
                let file = t.create(&format!("{directory}/f{i}"));
                t.write(file, 0, 5000);
                t.close(file);
                made.push(format!("{real}/f{i}"));
            }
            3 if !made.is_empty() => {
                let gone = made.swap_remove(random.below(made.len() as u64) as usize);
                t.on(Op::Unlink, &gone);
            }
            4 => {
                t.on(Op::Mkdir, &format!("{real}/dir{i}"));
            }
            5 => {
                t.fails(Op::Access, &format!("{directory}/not{}", random.below(20)), posix::Errno::ENOENT);
            }
            6 => {
                t.on(Op::Stat, directory);
            }
            _ if !made.is_empty() => {
                let met = made[random.below(made.len() as u64) as usize].clone();
                t.on(Op::Stat, &met);
            }
            _ => {}
        }
    }
    t
}

/// Caches so small that names, inodes and blocks of directories come and go.
fn cramped() -> SystemProfile {
    let mut system = primes();
    system.parameters.name_cache_entries = 7;
    system.parameters.attribute_cache_files = 5;
    system.parameters.data_cache_bytes = 40 * K;
    system
}

#[test]
fn batches_do_not_matter_where_directories_grow() {
    for seed in 1..=8 {
        let t = wandering(seed);
        let whole = t.workload(t.calls());
        let run = |w: &InMemory| predict(w, &[cramped()], &PredictOptions::default()).expect("a prediction");
        let expected = run(&whole);
        assert!(expected.systems[0].cache.name_misses > 500, "{:?}", expected.systems[0].cache);
        for calls in [1, 13, 200] {
            assert_eq!(run(&in_batches(&whole, calls)), expected, "seed {seed}, {calls} calls in a batch");
        }
    }
}

/// Which parts a thread gets, and when, decides nothing.
#[test]
fn threads_do_not_matter() {
    let systems: Vec<SystemProfile> = (1..=5)
        .map(|n| {
            let mut system = primes();
            system.parameters.data_cache_bytes = n * 16 * K;
            system
        })
        .collect();
    let t = wandering(3);
    let workload = in_batches(&t.workload(t.calls()), 100);
    let run = || {
        let mut calls: Vec<Vec<(u64, f64)>> = vec![Vec::new(); systems.len()];
        let options = PredictOptions::default();
        let mut each = |call: PricedCall<'_>| calls[call.system].push((call.event.head.seq, call.ns));
        let heard = predict_calls(&workload, &systems, &options, Some(&mut each)).expect("a prediction");
        assert_eq!(predict(&workload, &systems, &options).expect("a prediction"), heard);
        (heard, calls)
    };
    let one = std::thread::scope(|scope| {
        let one_processor = scope.spawn(|| {
            let mut first = CpuSet::new();
            let all = sched_getaffinity(None).expect("its processors");
            first.set((0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu)).expect("one"));
            sched_setaffinity(None, &first).expect("one of them");
            assert_eq!(std::thread::available_parallelism().expect("a number").get(), 1);
            run()
        });
        one_processor.join().expect("no panic")
    });
    assert!(one.1.iter().all(|calls| calls.len() > 1000));
    assert_eq!(run(), one);
}

#[test]
fn a_system_is_predicted_alike_in_any_company() {
    let t = mixed();
    let workload = t.workload(t.calls());
    let mut slow = primes();
    slow.name = "slow".into();
    for entry in slow.entries.values_mut() {
        *entry = Entry::exactly(entry.mean_ns * 1000.0);
    }
    // Write-back by age on the slow system only: a shared simulation would be wrong for one of them.
    let mut both = [primes(), slow];
    for system in &mut both {
        system.parameters.dirty_expire_ns = 5_000_000;
        system.parameters.writeback_bytes_per_s = 1e9;
    }
    let options = PredictOptions::default();
    let together = predict(&workload, &both, &options).expect("a prediction").systems;
    for (system, expected) in both.iter().zip(together) {
        let alone = predict(&workload, std::slice::from_ref(system), &options).expect("a prediction").systems.remove(0);
        assert_eq!(alone, expected);
    }
    assert!(predict(&workload, &both, &options).expect("a prediction").systems[1].cache.pages_written_back > 0);
}

#[test]
fn an_entry_twice_as_dear_costs_its_share_more() {
    let t = mixed();
    let before = t.predict();
    for share in &before.by_entry {
        let options =
            PredictOptions { set_ns: vec![(share.entry.clone(), 2.0 * share.mean_ns)], ..PredictOptions::default() };
        let after = t.predict_with(&primes(), &options);
        let change = after.total_ns - before.total_ns;
        assert!((change - share.ns).abs() < 1e-6 * before.total_ns, "{}: {change} for {}", share.entry, share.ns);
    }
}

#[test]
fn a_larger_cache_is_never_slower_here() {
    let mut t = Trace::new();
    for i in 0..8 {
        t = t.has(&format!("/f{i}"), 256 * K);
    }
    for _ in 0..3 {
        for i in 0..8 {
            let f = t.open(&format!("/f{i}"), flag::READ);
            t.read(f, 0, 256 * K);
            t.close(f);
        }
    }
    let total = |bytes| {
        let options = PredictOptions { cache_bytes: Some(bytes), ..PredictOptions::default() };
        let mut system = primes();
        system.entries.insert("rdf_262144".into(), Entry::exactly(1e6));
        t.predict_with(&system, &options).cache.page_misses
    };
    assert_eq!(total(1024 * K), 3 * 8 * 64, "LRU and a loop that does not fit");
    assert_eq!(total(4096 * K), 8 * 64);
}

/// Each size says what a prediction with that size says, in the order of sizes and systems whatever is simulated at
/// once.
#[test]
fn sizes_of_the_cache_are_predictions_of_their_own() {
    let mut trace = mixed();
    for i in 0..40 {
        let f = trace.open(&format!("/src/f{i}.c"), flag::READ);
        trace.read(f, 0, 3000 + 700 * i);
        trace.close(f);
    }
    let workload = trace.workload(trace.calls());
    let mut slow = primes();
    slow.name = "slow".into();
    for entry in slow.entries.values_mut() {
        *entry = Entry::exactly(3.0 * entry.mean_ns);
    }
    let systems = [primes(), slow];
    let sizes = [16 * K, 128 * K, 4096 * K];
    let options = PredictOptions { cache_policy: Some(CachePolicy::Clock), ..PredictOptions::default() };
    let found = cache_sizes(&workload, &systems, &options, &sizes).unwrap();
    assert_eq!(found.iter().map(|size| size.cache_bytes).collect::<Vec<_>>(), sizes);
    for size in &found {
        let options = PredictOptions { cache_bytes: Some(size.cache_bytes), ..options.clone() };
        let plain = predict(&workload, &systems, &options).unwrap();
        for (with, plain) in size.systems.iter().zip(&plain.systems) {
            assert_eq!((&with.system, with.total_ns, with.interval), (&plain.system, plain.total_ns, plain.interval));
            assert_eq!((with.page_hits, with.page_misses), (plain.cache.page_hits, plain.cache.page_misses));
        }
        assert_eq!(size.systems.len(), 2);
    }
    let misses = |at: usize| found[at].systems[0].page_misses;
    assert!(misses(0) > misses(2), "a small cache forgets: {found:?}");
}

#[test]
fn what_the_caches_did_over_time_adds_up() {
    let mut system = primes();
    // Write-back of what is older than a call.
    (system.parameters.dirty_expire_ns, system.parameters.writeback_bytes_per_s) = (1, 1e12);
    let p = mixed().predict_with(&system, &PredictOptions::default());
    let t = &p.cache_timeline;
    assert_eq!(t.page_hits.iter().sum::<u64>(), p.cache.page_hits);
    assert_eq!(t.page_misses.iter().sum::<u64>(), p.cache.page_misses);
    assert_eq!(t.written_back_bytes.iter().sum::<u64>(), 4 * K * p.cache.pages_written_back);
    assert!(p.cache.pages_written_back > 0 && t.dirty_bytes.iter().any(|bytes| *bytes > 0), "{t:?}");
}

/// Two files in use, and many that are read once: what stays depends on the policy, and on nothing else.
#[test]
fn a_scan_takes_the_cache_from_lru_and_not_from_linux() {
    let mut t = Trace::new();
    let mut names: Vec<String> = (0..2).map(|i| format!("/used{i}")).collect();
    names.extend((0..40).map(|i| format!("/scanned{i}")));
    for name in &names {
        t = t.has(name, 256 * K);
    }
    let (used, scanned) = names.split_at(2);
    for name in used.iter().chain(used).chain(scanned).chain(used) {
        let f = t.open(name, flag::READ);
        // In small requests: 64 of them are one use.
        for i in 0..64 {
            t.read(f, i * 4 * K, 4 * K);
        }
        t.close(f);
    }
    let misses = |cache_policy| {
        let options = PredictOptions {
            cache_bytes: Some(2048 * K),
            cache_policy: Some(cache_policy),
            ..PredictOptions::default()
        };
        let got = t.predict_with(&primes(), &options);
        // The profile may say so too.
        let mut system = primes();
        (system.parameters.data_cache_bytes, system.parameters.cache_policy) = (2048 * K, cache_policy);
        system.parameters.data_cache_is_lower_bound = false;
        let named = t.predict_with(&system, &PredictOptions::default());
        assert_eq!((named.cache_policy, named.cache), (cache_policy, got.cache));
        got.cache.page_misses
    };
    let window = misses(CachePolicy::Lru) - misses(CachePolicy::Linux);
    assert!((100..=128).contains(&window), "both files but for the first windows: {window} pages");
    assert_eq!(primes().parameters.cache_policy, CachePolicy::Lru, "what profiles without a word of it have");
}

#[test]
fn low_coverage_is_refused_with_what_is_missing() {
    let mut t = Trace::new().has("/f", 4 * K);
    t.on(Op::Stat, "/f");
    t.on(Op::Ioctl, "/f");
    t.call(Op::IoUring);
    let workload = t.workload(t.calls());
    let error = predict(&workload, &[primes()], &PredictOptions::default()).expect_err("one call of three");
    let text = error.to_string();
    assert!(
        text.contains("33.3 %") && text.contains("1 calls of ioctl") && text.contains("1 calls of io_uring"),
        "{text}"
    );
    let lenient = PredictOptions { min_coverage: 0.3, ..PredictOptions::default() };
    assert_eq!(predict(&workload, &[primes()], &lenient).expect("a prediction").systems[0].calls, 1);
}

#[test]
fn a_missing_entry_is_named_with_who_needs_it() {
    let mut system = primes();
    system.entries.retain(|name, _| !name.starts_with("fsync") && !name.starts_with("fds") && name != "stat");
    let mut t = Trace::new();
    let f = t.create("/f");
    t.write(f, 0, 100);
    t.fd(Op::Fsync, f);
    let workload = t.workload(t.calls());
    match predict(&workload, &[system], &PredictOptions::default()) {
        Err(PredictError::MissingEntries { missing, .. }) => {
            assert_eq!((missing.len(), missing[0].class), (1, "fsync_cr"));
            assert_eq!(missing[0].needed_by, [("fsync", 1)]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn stand_ins_are_used_and_reported() {
    let mut system = primes();
    system.entries.retain(|name, _| !name.starts_with("rrd_") && name != "opendir");
    let mut t = Trace::new().has("/f", 1024 * K);
    let f = t.open("/f", flag::READ);
    t.read(f, 512 * K, 4 * K);
    t.open("/", flag::READ | flag::DIRECTORY);
    assert_eq!(t.vectors(&system, &PredictOptions::default())[1..], ["rd_4096", "open"]);
    let p = t.predict_with(&system, &PredictOptions::default());
    let used: Vec<(&str, &str)> = p.fallbacks.iter().map(|f| (f.class.as_str(), f.instead[0].as_str())).collect();
    assert_eq!(used, [("lur_few", "lur_nc"), ("lus_nn", "lus_nc"), ("opendir", "open"), ("rrd", "rd")]);
    assert!(p.warnings.iter().any(|w| w.to_string().contains("opendir, rrd")), "{:?}", p.warnings);
}

#[test]
fn without_root_cold_names_are_priced_by_the_blocks_they_read() {
    let mut system = primes();
    system.entries.retain(|name, _| !["lus_nc", "lur_nc", "lus_ac", "lur_ac", "lun_nc"].contains(&name.as_str()));
    let mut t = Trace::new().has("/d/", 0).has("/d/f", 5).has("/d/g", 5);
    t.on(Op::Stat, "/d/f");
    t.on(Op::Stat, "/d/g");
    t.fails(Op::Stat, "/e", posix::Errno::ENOENT);
    let mut cold = Trace::new();
    cold.fails(Op::Stat, "/e", posix::Errno::ENOENT);
    assert_eq!(
        t.vectors(&system, &PredictOptions::default()),
        ["lu_bc 2*rrd_4096 stat", "lu_bc rd_4096 stat", "lun_ac"]
    );
    assert_eq!(cold.vectors(&system, &PredictOptions::default()), ["lun_ac rrd_4096"]);
}

#[test]
fn the_thesis_prices_a_removal_as_truncation_and_removal() {
    let mut system = SystemProfile::default();
    for (name, ns) in [("rm_0", 10.0), ("trc_4096", 100.0), ("trc_16384", 200.0), ("lu_bc", 1.0), ("lur_nc", 5.0)] {
        system.entries.insert(name.into(), Entry::exactly(ns));
    }
    let mut t = Trace::new().has("/f", 16 * K);
    t.on(Op::Unlink, "/f");
    assert_eq!(t.vectors(&system, &PredictOptions::default()), ["lur_nc rm_0 trc_16384"]);
}

#[test]
fn what_ifs_by_curve_and_unknown_names() {
    let t = mixed();
    let free = PredictOptions { set_ns: vec![("fsync_cr".into(), 0.0)], ..PredictOptions::default() };
    assert!(t.predict_with(&primes(), &free).total_ns < t.predict().total_ns);
    let wrong = PredictOptions { set_ns: vec![("fsyncc".into(), 0.0)], ..PredictOptions::default() };
    let workload = t.workload(t.calls());
    assert!(matches!(predict(&workload, &[primes()], &wrong), Err(PredictError::Override(_))));
    assert!(matches!(predict(&workload, &[], &wrong), Err(PredictError::NoSystem)));
}

#[test]
fn all_classes_have_a_price_or_a_stand_in_with_a_minimal_profile() {
    // What the thesis' text profile holds, by today's names.
    let mut system = SystemProfile::default();
    for name in [
        "lu_bc",
        "lus_nc",
        "lur_nc",
        "lus_ac",
        "lur_ac",
        "open",
        "cr",
        "rm_0",
        "stat",
        "mkdir",
        "rmdir",
        "rename",
        "chmod",
        "rdo",
        "wro",
        "rdc_4096",
        "rdc_65536",
        "rd_4096",
        "rd_65536",
        "rrd_4096",
        "rrd_65536",
        "wrc_4096",
        "wrc_65536",
        "tr_4096",
        "tr_65536",
        "trc_4096",
        "trc_65536",
    ] {
        system.entries.insert(name.into(), Entry::exactly(1.0));
    }
    let unpriced: Vec<&str> = Class::ALL
        .iter()
        .filter(|&&class| !predict::pipeline::can_price(&system, class))
        .map(|class| class.name())
        .collect();
    assert_eq!(
        unpriced,
        [
            "fsync_app",
            "fsync_ovr",
            "fsync_cr",
            "fsync_seq",
            "fsync_late",
            "fds_app",
            "fds_ovr",
            "fds_cr",
            "fds_seq",
            "fds_late",
            "fsync_dir",
            "fds_dir",
            "syncfs"
        ],
        "only stable storage has nothing like it in the thesis"
    );
}

#[test]
fn quantiles_come_from_the_entries() {
    let mut system = primes();
    let mut entry = Entry::exactly(100.0);
    entry.quantiles_ns = vec![50.0, 60.0, 70.0, 80.0, 90.0, 110.0, 130.0, 150.0, 200.0, 400.0];
    system.entries.insert("stat".into(), entry);
    system.entries.insert("lu_bc".into(), Entry::exactly(0.0));
    system.entries.insert("lur_nc".into(), Entry::exactly(0.0));
    let mut t = Trace::new().has("/f", 1);
    for _ in 0..100 {
        t.on(Op::Stat, "/f");
    }
    let p = t.predict_with(&system, &PredictOptions::default());
    assert_eq!(p.by_op[0].quantiles_ns, vec![50.0, 60.0, 70.0, 80.0, 90.0, 110.0, 130.0, 150.0, 200.0, 400.0]);
}

#[test]
fn an_empty_trace() {
    let t = Trace::new();
    let p = t.predict();
    assert_eq!((p.total_ns, p.calls), (0.0, 0));
    assert!(cold(&t).is_empty());
}

/// Held against a replay, which touches no mapping and makes one close of each description, a prediction has neither.
#[test]
fn a_prediction_of_a_replay_is_of_the_calls_that_it_makes() {
    use predict::pipeline::Calls;
    let mut t = Trace::new().has("/f", 64 * 1024);
    let f = t.open("/f", flag::READ);
    let mapped = t.on(Op::MapRead, "/f");
    (mapped.offset, mapped.ret) = (Some(0), 64 * 1024);
    t.read(f, 0, 64 * 1024);
    t.fd(Op::Close, f);
    t.close(f);
    let all = t.vectors(&primes(), &PredictOptions::default());
    assert_eq!(all[2], "rdc_65536", "the mapping has brought it in");
    assert_eq!(all.len(), 5);
    let replayed = PredictOptions { calls: Calls::Replayed, ..PredictOptions::default() };
    let (open, close) = (&all[0], &all[4]);
    assert_eq!(t.vectors(&primes(), &replayed), [open.as_str(), "", "rdf_65536", "", close.as_str()]);
}
