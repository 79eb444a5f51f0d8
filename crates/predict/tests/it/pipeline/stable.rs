//! fsync, write-back, and the patterns databases make of them.

use super::builder::{Trace, cold, primes};
use predict::pipeline::{InitialCaches, Pace, PredictOptions, PricedCall, predict_calls};
use system::{Entry, Family, SystemProfile};
use trace::{Op, flag};

const K: u64 = 1024;

#[test]
fn create_write_fsync_unlink() {
    let mut t = Trace::new();
    let f = t.create("/f");
    t.write(f, 0, 16 * K);
    t.fd(Op::Fsync, f);
    t.fd(Op::Fsync, f);
    t.close(f);
    t.on(Op::Unlink, "/f");
    assert_eq!(cold(&t), ["cr -1*lun_ac lun_nc", "wra_16384", "fsync_cr_16384", "fsync_clean", "close_wr", "rm_16384"]);
}

#[test]
fn what_is_dirty_decides() {
    let mut t = Trace::new().has("/f", 64 * K);
    let f = t.open("/f", flag::WRITE);
    t.write(f, 0, 4 * K);
    t.fd(Op::Fdatasync, f);
    t.write(f, 0, 4 * K);
    t.fd(Op::Fsync, f);
    t.write(f, 64 * K, 4 * K);
    t.fd(Op::Fdatasync, f);
    t.fd(Op::Futimens, f);
    t.fd(Op::Fdatasync, f);
    t.fd(Op::Fsync, f);
    let got = cold(&t);
    let syncs: Vec<&str> = [2, 4, 6, 8, 9].into_iter().map(|i| got[i].as_str()).collect();
    // Times alone are nothing to fdatasync; fsync has to commit them, with no data of its own.
    assert_eq!(syncs, ["fds_ovr_4096", "fsync_ovr_4096", "fds_app_4096", "fsync_clean", "fsync_ovr_4096"]);
}

/// A sync right after another was as dear as one after a second of other calls: quickstart said +30 to +40 % on a
/// virtual machine whose host takes 45 us for a sync, and 160 us where the device has rested for 10 ms.
#[test]
fn a_device_that_has_rested_is_slower() {
    let mut t = Trace::new().has("/f", 64 * K);
    let f = t.open("/f", flag::WRITE);
    let sync = |t: &mut Trace, stats: usize| {
        for _ in 0..stats {
            t.on(Op::Stat, "/f");
        }
        t.write(f, 0, 4 * K);
        t.fd(Op::Fdatasync, f);
    };
    [0, 1, 6, 1000].into_iter().for_each(|stats| sync(&mut t, stats));
    let mut system = primes();
    for (name, ns) in [("stat", 50_000.0), ("wru_4096", 0.0), ("fds_ovr_4096", 45_000.0)] {
        system.entries.insert(name.into(), Entry::exactly(ns));
    }
    for (name, ns) in
        [("sync_idle_100000", 10_000.0), ("sync_idle_300000", 30_000.0), ("sync_idle_10000000", 110_000.0)]
    {
        system.entries.insert(name.into(), Entry::exactly(ns));
    }
    let mut syncs = Vec::new();
    let mut each = |call: PricedCall<'_>| {
        if call.event.op() == Op::Fdatasync {
            syncs.push(call.ns);
        }
    };
    predict_calls(&t.workload(t.calls()), &[system], &PredictOptions::default(), Some(&mut each)).expect("predicted");
    let expected = [0.0, 0.5 * 10_000.0, 30_000.0, 110_000.0].map(|rest| 45_000.0 + rest);
    for (sync, expected) in syncs.iter().zip(expected) {
        assert!((sync - expected).abs() < 300.0, "{syncs:?}");
    }
    assert_eq!(syncs.len(), 4);
}

/// An editor that syncs eight times was a fifth too cheap: its first sync took twice what the others did.
#[test]
fn the_first_sync_on_a_cold_system_is_dearer() {
    let mut t = Trace::new().has("/f", 64 * K);
    let f = t.open("/f", flag::WRITE);
    t.fd(Op::Fsync, f);
    for _ in 0..2 {
        t.write(f, 0, 4 * K);
        t.fd(Op::Fsync, f);
    }
    let mut system = primes();
    system.entries.insert("sync_first".into(), Entry::exactly(300_000.0));
    let syncs = |options: &PredictOptions| -> Vec<String> {
        let vectors = t.vectors(&system, options);
        [1, 3, 5].map(|call| vectors[call].clone()).to_vec()
    };
    assert_eq!(syncs(&PredictOptions::default()), ["fsync_clean", "fsync_ovr_4096 sync_first", "fsync_ovr_4096"]);
    let warm = PredictOptions { initial: InitialCaches::Warm, ..PredictOptions::default() };
    assert_eq!(syncs(&warm), ["fsync_clean", "fsync_ovr_4096", "fsync_ovr_4096"]);
}

#[test]
fn other_files_new_data_is_on_top() {
    let mut t = Trace::new();
    let other = t.create("/other");
    t.write(other, 0, 1024 * K);
    let f = t.create("/f");
    t.write(f, 0, 4 * K);
    t.fd(Op::Fsync, f);
    assert_eq!(cold(&t)[4], "fsync_cr_4096 0.1*fsync_log_10 fsync_oth_1048576");
}

#[test]
fn sqlite_rollback_journal() {
    let mut t = Trace::new().has("/d/", 0).has("/d/db", 64 * K);
    let db = t.open("/d/db", flag::READ | flag::WRITE);
    t.read(db, 0, 4 * K);
    for _ in 0..2 {
        let journal = t.create("/d/db-journal");
        t.write(journal, 0, 512);
        t.write(journal, 512, 4 * K);
        t.fd(Op::Fdatasync, journal);
        let directory = t.open("/d", flag::READ | flag::DIRECTORY);
        t.fd(Op::Fsync, directory);
        t.close(directory);
        t.write(journal, 0, 12);
        t.fd(Op::Fdatasync, journal);
        t.write(db, 0, 4 * K);
        t.fd(Op::Fdatasync, db);
        t.close(journal);
        t.on(Op::Unlink, "/d/db-journal");
    }
    let got = cold(&t);
    let second = &got[15..];
    assert_eq!(second.len(), 13);
    // The name of the journal was absent and cached since it was removed: no lookup goes to disk.
    assert_eq!(second[0], "cr lu_bc");
    // Two dirty pages of a new file,
    // and the name removed before, for the log.
    assert_eq!(second[3], "0.333333*fds_cr_16384 0.666667*fds_cr_4096 0.1*fsync_log_10");
    // The journal's fdatasync committed the directory as well: one log.
    assert_eq!(second[5], "fsync_dir_clean");
    // Its header is overwritten, then the database's page.
    assert_eq!(second[8], "fds_ovr_4096");
    assert_eq!(second[9], "wrc_4096");
    assert_eq!(second[10], "fds_ovr_4096");
}

#[test]
fn with_a_log_per_file_the_directory_is_still_to_be_committed() {
    let mut btrfs = primes();
    btrfs.environment.fs_type = "btrfs".into();
    // A directory's own inode has changed, too, which only fsync writes where there is no log (ext4 without a journal).
    for (how, priced) in [(Op::Fsync, "fsync_dir"), (Op::Fdatasync, "fds_dir")] {
        let mut t = Trace::new();
        let f = t.create("/f");
        t.fd(Op::Fsync, f);
        let d = t.open("/", flag::READ | flag::DIRECTORY);
        t.fd(how, d);
        assert_eq!(cold(&t)[3], "fsync_dir_clean");
        assert_eq!(t.vectors(&btrfs, &PredictOptions::default())[3], priced);
    }
}

/// Three new files, all written before the first is synced.
fn late(system: &SystemProfile, op: Op) -> Vec<String> {
    let mut t = Trace::new();
    let files = ["/a", "/b", "/c"].map(|path| {
        let f = t.create(path);
        t.write(f, 0, 4 * K);
        f
    });
    for f in files {
        t.fd(op, f);
    }
    let d = t.open("/", flag::READ | flag::DIRECTORY);
    t.fd(Op::Fsync, d);
    let mut got = t.vectors(system, &PredictOptions::default());
    let directory = got.pop().expect("the last call");
    got.drain(..6);
    got.truncate(3);
    got.push(directory);
    got
}

/// Forty new files synced one after the other were priced as if each had to carry the data of all others.
#[test]
fn what_a_sync_carries_is_a_matter_of_the_family() {
    let of = |family, writes_others| {
        let mut system = primes();
        (system.behaviour.family, system.behaviour.sync_writes_others) = (Some(family), Some(writes_others));
        system
    };
    let log = of(Family::Log, false);
    // The first commits the names of all; the blocks of each are allocated when its data is written.
    assert_eq!(
        late(&log, Op::Fsync),
        ["fsync_cr_4096 0.2*fsync_log_10", "fsync_late_4096", "fsync_late_4096", "fsync_dir_clean"]
    );
    assert_eq!(late(&log, Op::Fdatasync)[1..], ["fds_late_4096", "fds_late_4096", "fsync_dir_clean"]);
    let with_data = of(Family::Log, true);
    let got = late(&with_data, Op::Fsync);
    assert!(got[0].contains("fsync_oth_65536"), "{}", got[0]);
    assert_eq!(got[1..], ["fsync_clean", "fsync_clean", "fsync_dir_clean"]);
    let each = of(Family::Each, false);
    assert_eq!(late(&each, Op::Fsync), ["fsync_cr_4096", "fsync_late_4096", "fsync_late_4096", "fsync_dir"]);
    let segments = of(Family::Segments, false);
    assert_eq!(
        late(&segments, Op::Fsync),
        ["0.666667*fsync_cr_16384 0.333333*fsync_cr_4096", "fsync_clean", "fsync_clean", "fsync_dir_clean"]
    );
}

/// With a log of segments an old file's sync is of that file alone.
#[test]
fn segments_with_names_are_written_together() {
    let mut t = Trace::new().has("/old", 64 * K);
    let old = t.open("/old", flag::WRITE);
    let new = t.create("/new");
    t.write(new, 0, 64 * K);
    t.write(old, 64 * K, 4 * K);
    t.fd(Op::Fsync, old);
    t.fd(Op::Fsync, new);
    let mut lfs = primes();
    lfs.behaviour.family = Some(Family::Segments);
    assert_eq!(t.vectors(&lfs, &PredictOptions::default())[4..], ["fsync_app_4096", "fsync_cr_65536"]);
}

#[test]
fn a_log_carries_the_names_of_others() {
    let mut t = Trace::new().has("/f", 64 * K);
    for i in 0..100 {
        let other = t.create(&format!("/other{i}"));
        t.close(other);
    }
    let f = t.open("/f", flag::WRITE);
    t.write(f, 64 * K, 4 * K);
    t.fd(Op::Fsync, f);
    t.write(f, 68 * K, 4 * K);
    t.fd(Op::Fsync, f);
    let got = cold(&t);
    assert_eq!([&got[202], &got[204]], ["fsync_app_4096 fsync_log_100", "fsync_app_4096"]);
}

/// SQLite's sync after it has cut its journal was priced as one of 4 KB more: 282 us on ext4, and 191 were measured.
#[test]
fn a_length_without_data_costs_what_a_name_does() {
    let mut t = Trace::new().has("/f", 64 * K);
    let f = t.open("/f", flag::WRITE);
    t.fd(Op::Ftruncate, f).req_bytes = Some(8 * K);
    t.fd(Op::Fdatasync, f);
    t.fd(Op::Ftruncate, f).req_bytes = Some(4 * K);
    t.fd(Op::Fsync, f);
    let got = cold(&t);
    assert_eq!([&got[2], &got[4]], ["fds_dir", "fsync_dir"]);
}

#[test]
fn pages_side_by_side_cost_less_than_scattered_ones() {
    let mut t = Trace::new().has("/db", 1024 * K);
    let f = t.open("/db", flag::WRITE);
    for i in 0..4 {
        t.write(f, i * 64 * K, 4 * K);
    }
    t.fd(Op::Fdatasync, f);
    t.write(f, 0, 64 * K);
    t.fd(Op::Fdatasync, f);
    // Sixteen pages in four runs: four are scattered, twelve beside them.
    for i in 0..4 {
        t.write(f, i * 128 * K, 16 * K);
    }
    t.fd(Op::Fsync, f);
    let got = cold(&t);
    assert_eq!([&got[5], &got[7]], ["fds_ovr_16384", "fds_seq_65536"]);
    assert_eq!(got[12], "fsync_ovr_16384 -1*fsync_seq_16384 fsync_seq_65536");
}

#[test]
fn synchronous_writes_are_a_write_and_a_sync() {
    let mut t = Trace::new().has("/f", 64 * K);
    let data = t.open("/f", flag::WRITE | flag::DSYNC);
    t.write(data, 0, 4 * K);
    let all = t.open("/g", flag::WRITE | flag::CREATE | flag::SYNC);
    t.write(all, 0, 4 * K);
    let got = cold(&t);
    assert_eq!(got[1], "fds_ovr_4096 wru_4096");
    assert_eq!(got[3], "fsync_cr_4096 wra_4096");
}

#[test]
fn syncfs_writes_everything() {
    let mut t = Trace::new();
    let f = t.create("/f");
    t.write(f, 0, 64 * K);
    t.call(Op::SyncFs);
    t.fd(Op::Fsync, f);
    t.call(Op::Sync);
    assert_eq!(cold(&t)[2..], ["syncfs_65536", "fsync_clean", "syncfs_0"]);
}

/// A system on which write-back begins at 16 pages or after 10 us.
fn with_writeback() -> SystemProfile {
    let mut system = primes();
    let p = &mut system.parameters;
    p.dirty_background_bytes = 16 * 4 * K;
    p.dirty_limit_bytes = 64 * 4 * K;
    p.dirty_expire_ns = 10_000;
    p.writeback_bytes_per_s = 4096.0 * 1e6; // a page in 1 us
    p.writeback_files_per_s = 1e6;
    system
}

#[test]
fn written_back_by_age_a_file_is_removed_clean() {
    let mut t = Trace::new();
    let f = t.create("/f");
    t.write(f, 0, 4 * K);
    t.close(f);
    for _ in 0..20 {
        t.on(Op::Stat, "/f");
    }
    t.on(Op::Unlink, "/f");
    // As fast as possible the whole trace takes less than 10 us; at the recorded pace 2 us a call.
    let asap = t.vectors(&with_writeback(), &PredictOptions::default());
    let recorded = t.vectors(&with_writeback(), &PredictOptions { pace: Pace::Recorded, ..PredictOptions::default() });
    assert_eq!((asap[23].as_str(), recorded[23].as_str()), ("rmd_4096", "rm_4096"));
}

#[test]
fn a_fast_writer_waits_at_the_dirty_limit() {
    let mut t = Trace::new();
    let f = t.create("/f");
    for i in 0..100 {
        t.write(f, i * 16 * K, 16 * K);
    }
    let prediction = t.predict_with(&with_writeback(), &PredictOptions::default());
    // 400 pages at 1 us each, of which at most 52 (the set point) may be left in the cache, and the calls take next to
    // nothing.
    let waited = prediction.writeback.stall_ns;
    assert!(waited > 300_000.0 && waited <= 400_000.0, "{waited}");
    assert!(prediction.cache.pages_written_back + prediction.cache.pages_dirty_at_end >= 400);
    let entries: f64 = prediction.by_entry.iter().map(|e| e.ns).sum();
    assert!((prediction.total_ns - entries - waited).abs() < 1e-3);
}

#[test]
fn background_write_back_slows_calls_down() {
    let mut t = Trace::new();
    let f = t.create("/f");
    t.write(f, 0, 80 * K);
    for _ in 0..10 {
        t.on(Op::Stat, "/f");
    }
    let mut system = with_writeback();
    let load = |load_bytes_per_s, slowdown| system::WriteLoad { load_bytes_per_s, time_s: slowdown, slowdown };
    system.write_load = vec![load(1e6, 1.0), load(4096.0 * 1e6, 3.0)];
    let calm = t.predict_with(&with_writeback(), &PredictOptions::default());
    let slowed = t.predict_with(&system, &PredictOptions::default());
    // 20 pages are above the threshold of 16; the flusher works for 20 us, during which every stat takes three times as
    // long.
    let stat = |p: &predict::pipeline::SystemPrediction| p.by_op.iter().find(|o| o.op == "stat").map(|o| o.ns);
    assert_eq!(stat(&slowed), stat(&calm).map(|ns| ns * 3.0));
    assert!((slowed.writeback.overhead_ns - (slowed.total_ns - calm.total_ns)).abs() < 1e-6);
}

/// Two threads of dbench that sync files of their own were priced as one after the other.
#[test]
fn a_sync_beside_anothers_costs_what_was_measured_so() {
    let trace = |second_begins_ns: u64| {
        let mut t = Trace::new();
        let files = ["/a", "/b"].map(|path| t.create(path));
        for f in files {
            t.write(f, 0, 4 * K);
        }
        for (f, t_ns) in files.into_iter().zip([100_000, second_begins_ns]) {
            let sync = t.fd(Op::Fsync, f);
            (sync.t_ns, sync.dur_ns, sync.tid) = (t_ns, 50_000, 1 + u32::from(t_ns != 100_000));
        }
        t
    };
    let mut system = primes();
    let fsync = |system: &system::SystemProfile, second_begins_ns| {
        let prediction = trace(second_begins_ns).predict_with(system, &PredictOptions::default());
        prediction.by_op.iter().find(|o| o.op == "fsync").map_or(0.0, |o| o.ns)
    };
    let of_both = fsync(&system, 120_000);
    system.sync_beside = vec![system::SyncBeside { others: 1, slowdown: 3.0 }];
    assert_eq!(fsync(&system, 150_000), of_both, "the first has ended");
    let of_second = (fsync(&system, 149_999) - of_both) / 2.0;
    assert!(of_second > 0.0 && of_second < of_both, "three times, of the second only: {of_second} of {of_both}");
}

/// Calls of threads that ran at a time took 1.3 times as long as alone, and were priced as alone.
#[test]
fn a_call_beside_anothers_takes_longer() {
    let stats = |begins_ns: u64, tid: u32, first: Op| {
        let mut t = Trace::new().has("/f", 4 * K);
        let f = t.open("/f", flag::READ);
        let ahead = t.fd(first, f);
        (ahead.t_ns, ahead.dur_ns) = (100_000, 50_000);
        let stat = t.fd(Op::Fstat, f);
        (stat.t_ns, stat.tid) = (begins_ns, tid);
        let mut system = primes();
        system.parameters.calls_beside = 2.0;
        let vectors = t.vectors(&system, &PredictOptions::default());
        vectors[2].clone()
    };
    assert_eq!(stats(120_000, 2, Op::Futimens), "2*fstat");
    assert_eq!(stats(150_000, 2, Op::Futimens), "fstat", "the other has ended");
    assert_eq!(stats(120_000, 2, Op::Fsync), "fstat", "who syncs sleeps");
}

/// How `sync_file_range` was asked, in the kernel's bits; `None`: a trace that does not tell.
fn sync_range(t: &mut Trace, f: trace::OfdId, asked: Option<u16>) {
    let event = t.fd(Op::SyncRange, f);
    (event.offset, event.req_bytes, event.mode) = (Some(0), Some(0), asked);
}

#[test]
fn write_back_that_is_only_started_is_no_sync() {
    let mut t = Trace::new();
    let f = t.create("/f");
    t.write(f, 0, 16 * K);
    sync_range(&mut t, f, Some(2));
    sync_range(&mut t, f, Some(2));
    sync_range(&mut t, f, Some(1));
    t.fd(Op::Fsync, f);
    let got = cold(&t);
    // It makes the data clean and commits nothing: the file is still new to the log.
    assert_eq!(got[2..], ["sfr_16384", "fadvise", "fadvise", "fsync_cr_4096"]);
    let mut waited = Trace::new();
    let f = waited.create("/f");
    waited.write(f, 0, 16 * K);
    sync_range(&mut waited, f, Some(7));
    waited.write(f, 0, 4 * K);
    sync_range(&mut waited, f, None);
    assert_eq!(cold(&waited)[2..], ["fds_seq_16384", "wrc_4096", "fds_ovr_4096"]);
}

/// The device takes 10 ms for the file; whoever waits at once waits for that, once.
#[test]
fn who_waits_for_what_was_started_waits_for_what_is_left() {
    let mut system = primes();
    system.parameters.writeback_bytes_per_s = 16.0 * 1024.0 / 0.01;
    system.parameters.writeback_files_per_s = 400.0;
    let waits = |asked: &[Option<u16>]| {
        let mut t = Trace::new();
        let f = t.create("/f");
        t.write(f, 0, 16 * K);
        asked.iter().for_each(|&asked| sync_range(&mut t, f, asked));
        t.predict_with(&system, &PredictOptions::default()).writeback.stall_ns
    };
    assert_eq!(waits(&[Some(2)]), 0.0, "nobody does");
    let waited_ns = waits(&[Some(2), Some(1)]);
    let call_ns = 10e6 - waited_ns;
    assert!((0.0..1e6).contains(&call_ns), "10 ms less what the call itself took: {waited_ns}");
    assert_eq!(waits(&[Some(2), Some(1), Some(1)]), waited_ns);
    assert_eq!(waits(&[Some(7)]), 0.0, "that is in its class");
}

#[test]
fn advice_that_pages_are_not_needed_takes_the_clean_ones() {
    let mut t = Trace::new().has("/f", 64 * K);
    let f = t.open("/f", flag::READ | flag::WRITE);
    let advise = |t: &mut Trace, asked: Option<u16>, offset, len| {
        let event = t.fd(Op::Fadvise, f);
        (event.offset, event.req_bytes, event.mode) = (Some(offset), Some(len), asked);
    };
    t.read(f, 0, 64 * K);
    advise(&mut t, None, 0, 0);
    t.read(f, 0, 64 * K);
    // From the second byte to the 63,000th: fourteen whole pages.
    advise(&mut t, Some(4), 1, 63_000);
    t.read(f, 0, 4 * K);
    t.read(f, 4 * K, 4 * K);
    t.write(f, 8 * K, 4 * K);
    advise(&mut t, Some(4), 0, 0);
    t.read(f, 8 * K, 4 * K);
    t.read(f, 60 * K, 4 * K);
    let got = cold(&t);
    assert_eq!(got[3], "rdc_65536");
    assert_eq!((got[5].as_str(), got[6].as_str()), ("rdc_4096", "rrd_4096"));
    assert_eq!((got[9].as_str(), got[10].as_str()), ("rdc_4096", "rrd_4096"), "a dirty page stays");
}
