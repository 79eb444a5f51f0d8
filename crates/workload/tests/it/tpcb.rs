//! Transaction processing: what a transaction does, where its time goes, and how full the file system is.

use crate::fake::{Fake, SYNC_NS};
use posix::FileSystem;
use workload::tpcb::{Database, Options};
use workload::{Phase, Repeat, Unit, WorkloadError, run_on_with_log};

/// 400 leaf pages, and room for 16 of them beside 3 inner pages and 5 of branches and tellers.
fn options() -> Options {
    Options {
        account_bytes: 400 * 4096,
        pool_bytes: 24 * 4096,
        window: 20,
        transactions: 100,
        repeat: Repeat::once(),
        ..Options::default()
    }
}

#[test]
fn a_transaction_reads_a_page_writes_another_and_appends_to_the_history() {
    let mut fs = Fake::default();
    assert_eq!(options().frames(), 16);
    let result = run_on_with_log(&mut fs, None, &options(), &mut |_| {}).unwrap();
    let phase = &result.targets[0].points[0].phases[0];
    let round = &phase.rounds[0];
    assert_eq!((phase.phase, phase.unit, round.completed), (Phase::Transactions, Unit::TransactionsPerSecond, 100));
    let read = round.count("account pages read").unwrap();
    assert_eq!(round.count("account pages written"), Some(read), "the cache is full: one goes for each that comes");
    assert!((85..=100).contains(&read), "16 of 400 pages are in the cache: {read}");
    assert_eq!(round.bytes, 2 * read * 4096 + 100 * 50);
    assert_eq!(round.calls_ns, round.bytes, "the fake's time is a nanosecond a byte");
    assert_eq!(phase.rate.median, 100.0 * 1e9 / round.calls_ns as f64);
    // Each history record follows a page read, and that its predecessor's write.
    let calls: Vec<&String> = fs.log.iter().skip_while(|line| *line != "drop").skip(1).collect();
    let last: Vec<&str> =
        calls.iter().rev().skip_while(|line| !line.starts_with("write ")).map(|line| line.as_str()).collect();
    let top = "fsage-bench-tpcb.0-0";
    assert_eq!(last[0], format!("write {top}/history 50"));
    assert!(last[1].starts_with(&format!("pread {top}/account 4096 @")), "{}", last[1]);
    assert!(last[2].starts_with(&format!("pwrite {top}/account 4096 @")), "{}", last[2]);
    let aligned = |line: &&str| line.rsplit('@').next().unwrap().parse::<u64>().unwrap() % 4096 == 0;
    assert!(fs.logged("pwrite").iter().all(aligned) && fs.logged("pread").iter().all(aligned));
    assert!(fs.nodes().is_empty() && fs.descriptors() == 0);
}

#[test]
fn what_the_database_computes_is_part_of_a_transaction() {
    let mut fs = Fake::default();
    let result = run_on_with_log(&mut fs, None, &Options { compute_ns: 1000, ..options() }, &mut |_| {}).unwrap();
    let round = &result.targets[0].points[0].phases[0].rounds[0];
    assert_eq!(round.calls_ns, round.bytes + 100 * 1000, "a nanosecond a byte, and 1000 for each transaction");
}

#[test]
fn the_log_is_on_another_file_system_and_its_time_counts() {
    let (mut fs, mut log) = (Fake::default(), Fake::default());
    let with = run_on_with_log(&mut fs, Some(&mut log), &options(), &mut |_| {}).unwrap();
    let round = &with.targets[0].points[0].phases[0].rounds[0];
    assert_eq!(round.calls_ns, round.bytes + 100 * (1024 + SYNC_NS), "a nanosecond a byte here, and the log's time");
    assert_eq!(round.elapsed_ns, round.calls_ns, "the other file system's time passes on this one's clock");
    assert!(fs.logged("fdatasync").is_empty());
    assert_eq!(log.logged("fdatasync").len(), log.logged("write").len());
    assert!(log.nodes().is_empty() && log.descriptors() == 0);
}

#[test]
fn the_file_system_is_filled_to_each_share() {
    let mut fs = Fake::of_capacity(8 << 20);
    let options = Options { utilisations: vec![0.5, 0.75], ..options() };
    let result = run_on_with_log(&mut fs, None, &options, &mut |_| {}).unwrap();
    let found: Vec<(&str, u64)> = result.targets[0]
        .points
        .iter()
        .map(|p| {
            let used = p.phases[0].rounds[0].count("file system in use at the start, permille").unwrap();
            (p.point.label.as_str(), used)
        })
        .collect();
    assert_eq!(found, [("TPC-B, 50 % in use", 500), ("TPC-B, 75 % in use", 750)]);
    // The account file alone is more than that.
    let error =
        run_on_with_log(&mut fs, None, &Options { utilisations: vec![0.1], ..options }, &mut |_| {}).unwrap_err();
    assert!(matches!(error, WorkloadError::Options(_)), "{error}");
    assert!(error.to_string().contains("more than the 10.0 % asked for"), "{error}");
    assert!(fs.nodes().is_empty() && fs.descriptors() == 0);
}

#[test]
fn the_free_space_is_written_over_before_the_state_is_called_steady() {
    let warm_up = |turnover| {
        let mut fs = Fake::of_capacity(4 << 20);
        let options = Options { turnover, ..options() };
        let mut database = Database::begin(&mut fs, None, &options, Some(0.5), "0").unwrap();
        let warm_up = database.warm_up(&mut fs, None).unwrap();
        let round = database.measure(&mut fs, None).unwrap();
        assert_eq!(round.completed, 100);
        database.end(&mut fs, None).unwrap();
        assert!(fs.nodes().is_empty());
        assert!(fs.now_ns() > 0);
        warm_up
    };
    let (short, long) = (warm_up(0.0), warm_up(3.0));
    assert!(short.steady && long.steady);
    // Three times 2 MiB, a page for almost every transaction.
    assert!(long.transactions >= 3 * 512 && short.transactions < 3 * 512, "{short:?} {long:?}");
}

#[test]
fn a_rate_that_never_settles_is_said_so() {
    let mut fs = Fake::of_capacity(4 << 20);
    let options = Options { turnover: 1e6, windows_max: 10, ..options() };
    let result = run_on_with_log(&mut fs, None, &options, &mut |_| {}).unwrap();
    let notes = &result.targets[0].notes;
    assert!(notes.iter().any(|note| note.contains("not steady after 200 transactions")), "{notes:?}");
}
