//! What no system call shows: accesses through mappings and io_uring requests. The programs print what they did; that
//! is the truth.

use crate::common::{Recorded, Row, compiled, may_record, record_to};
use std::ffi::OsString;
use std::path::Path;
use trace::{Op, flag};

const PAGE: u64 = 4096;

/// Runs a program on a file beside it, recorded; what it printed.
fn run(source: &str, directory: &Path) -> Option<(Recorded, String, Vec<u8>)> {
    run_with(source, directory, &[])
}

fn run_with(source: &str, directory: &Path, more: &[&str]) -> Option<(Recorded, String, Vec<u8>)> {
    let program = compiled(source, directory)?;
    let (file, printed) = (directory.join("file"), directory.join("printed"));
    let mut command = vec![program, OsString::from(&file)];
    command.extend(more.iter().map(OsString::from));
    let recorded = record_to(&command, directory, &printed);
    let file = std::fs::canonicalize(&file).expect("the file").into_os_string().into_encoded_bytes();
    Some((recorded, std::fs::read_to_string(&printed).expect("its output"), file))
}

#[test]
fn reads_and_writes_through_mappings() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let Some((recorded, printed, file)) = run(include_str!("../programs/mapped.c"), directory.path()) else { return };
    assert_eq!(recorded.status.code(), Some(0));
    let coverage = &recorded.imported.summary.coverage;
    if !coverage.accesses_seen {
        testkit::skip("this kernel has no tracepoints of faults");
        return;
    }
    let of = |op: Op| -> Vec<&Row> { recorded.rows.iter().filter(|r| r.event.op == op && r.path() == file).collect() };
    let pages = |rows: &[&Row]| -> Vec<u64> {
        let mut pages: Vec<u64> = rows
            .iter()
            .flat_map(|r| {
                let first = r.event.offset.expect("an offset") / PAGE;
                first..first + u64::try_from(r.event.ret).expect("bytes") / PAGE
            })
            .collect();
        pages.sort_unstable();
        pages
    };
    let said = |kind: &str| -> Vec<u64> {
        printed.lines().filter_map(|l| l.strip_prefix(kind)).map(|n| n.trim().parse().expect("a page")).collect()
    };
    assert_eq!(said("R").len() + said("W").len(), 6, "{printed}");
    assert_eq!(recorded.imported.summary.problems, []);
    // A page that was in the cache after all shows its neighbours in the cache too; one that was read, itself.
    let (read, written) = (pages(&of(Op::MapRead)), pages(&of(Op::MapWrite)));
    let is_exact = of(Op::MapRead).iter().all(|r| r.event.ret == i64::try_from(PAGE).expect("small"));
    for page in said("R") {
        assert!(read.contains(&page), "page {page} in {read:?}");
    }
    if is_exact {
        assert_eq!(read, said("R"));
    }
    assert_eq!(written, said("W"));
    // They are reads of the device, so the thread slept; and they are of the file that was opened by its name.
    let opened = recorded.rows.iter().find(|r| r.event.op == Op::Open && r.path() == file).expect("the open");
    for row in of(Op::MapRead).into_iter().chain(of(Op::MapWrite)) {
        assert_eq!(row.event.file, opened.event.file);
        assert_eq!(row.event.flags & flag::FOREIGN, 0);
        // A fault that is told of only at its end has no time of its own, and nothing is said of where it went.
        let spent = row.event.running_ns.zip(row.event.blocked_ns).map(|(a, b)| a + b);
        assert_eq!(spent, (row.event.dur_ns > 0).then_some(row.event.dur_ns));
    }
    // The program's own image is read by faults too.
    let program = directory.path().join("program");
    let image = std::fs::canonicalize(program).expect("its path").into_os_string().into_encoded_bytes();
    assert!(recorded.rows.iter().any(|r| r.event.op == Op::MapRead && r.path() == image), "the image");
    assert_eq!(coverage.data_map_accesses, 0, "what is seen is not reckoned as unseen");
    assert_eq!(coverage.share(0), Some(1.0));
    assert_eq!(recorded.imported.meta().unseen.maps, 0);
    // PostgreSQL's shared memory was taken for files of which no name was known.
    assert_eq!(recorded.totals.unknown_accesses, 0);
}

#[test]
fn requests_of_an_io_uring() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let Some((recorded, printed, file)) = run(include_str!("../programs/ring.c"), directory.path()) else { return };
    if recorded.status.code() == Some(42) {
        testkit::skip("no io_uring can be made here");
        return;
    }
    assert_eq!(recorded.status.code(), Some(0));
    let coverage = &recorded.imported.summary.coverage;
    if !coverage.requests_seen {
        testkit::skip("this kernel has no tracepoints of io_uring");
        return;
    }
    // IORING_OP_FSYNC 3, READ 22, WRITE 23, as <linux/io_uring.h> has them.
    let op = |opcode: &str| match opcode {
        "3" => Op::Fdatasync,
        "22" => Op::Read,
        "23" => Op::Write,
        other => panic!("opcode {other}"),
    };
    let said: Vec<(Op, u64, u64, i64)> = printed
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |i: usize| words[i].parse().expect("a number");
            (op(words[0]), number(1), number(2), words[3].parse().expect("a result"))
        })
        .collect();
    assert_eq!(said.len(), 5);
    let from = recorded.rows.iter().position(|r| r.event.op == Op::IoUring).expect("the ring");
    // What the program prints goes through write(2), on another file.
    let seen: Vec<(Op, u64, u64, i64)> = recorded.rows[from..]
        .iter()
        .filter(|r| matches!(r.event.op, Op::Read | Op::Write | Op::Fdatasync))
        .filter(|r| r.path() == file || r.event.errno == 9)
        .map(|r| {
            let e = &r.event;
            let ret = if e.errno == 0 { e.ret } else { -i64::from(e.errno) };
            (e.op, e.offset.unwrap_or(0), e.req_bytes.unwrap_or(0), ret)
        })
        .collect();
    assert_eq!(seen, said);
    assert_eq!(coverage.share(0), Some(1.0), "{coverage:?}");
}

#[test]
fn requests_that_are_not_modelled_are_counted_by_their_names() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let Some((recorded, printed, _)) = run_with(include_str!("../programs/ring.c"), directory.path(), &["others"])
    else {
        return;
    };
    if recorded.status.code() == Some(42) {
        testkit::skip("no io_uring can be made here");
        return;
    }
    assert_eq!(recorded.status.code(), Some(0));
    let coverage = &recorded.imported.summary.coverage;
    if !coverage.requests_seen {
        testkit::skip("this kernel has no tracepoints of io_uring");
        return;
    }
    let results: Vec<i64> = printed.lines().filter_map(|line| line.split(' ').nth(3)?.parse().ok()).collect();
    assert_eq!(results.len(), 7, "{printed}");
    for name in ["fallocate", "mkdirat", "openat", "statx", "close", "renameat", "unlinkat"] {
        assert_eq!(coverage.other_by_name.get(&format!("io_uring {name}")), Some(&1), "{name}: {coverage:?}");
    }
}

/// Nothing tells how they went: they count as not modelled, so the coverage is not whole.
#[test]
fn requests_without_completion_are_counted() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let Some((recorded, printed, file)) = run_with(include_str!("../programs/ring.c"), directory.path(), &["silent"])
    else {
        return;
    };
    if recorded.status.code() == Some(42) {
        testkit::skip("no io_uring can be made here");
        return;
    }
    assert_eq!(recorded.status.code(), Some(0));
    let coverage = &recorded.imported.summary.coverage;
    if !coverage.requests_seen {
        testkit::skip("this kernel has no tracepoints of io_uring");
        return;
    }
    assert_eq!(printed.lines().count(), 2, "what completed: {printed}");
    for (name, count) in [("write", 7), ("mkdirat", 1)] {
        let name = format!("io_uring {name} without completion");
        assert_eq!(coverage.other_by_name.get(&name), Some(&count), "{name}: {coverage:?}");
    }
    assert!(coverage.share(0).is_some_and(|share| share < 1.0), "{coverage:?}");
    let of_file = |op: Op| recorded.rows.iter().filter(|r| r.event.op == op && r.path() == file).count();
    // The five by the descriptor are of the file; which one a number of the ring's own table is, is not told.
    assert_eq!((of_file(Op::Read), of_file(Op::Write), of_file(Op::Other)), (1, 0, 5));
}
