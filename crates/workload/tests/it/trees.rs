//! Benchmarks of trees that are there: what is read, in which order, and that nothing of anybody's is harmed.

use crate::fake::{CLOSE_NS, Fake, GETDENTS_NS, OPEN_NS, STAT_NS};
use fault::{Fault as _, Kind};
use posix::{Errno, FileKind};
use std::path::PathBuf;
use workload::hotfiles::{self, Select};
use workload::{AGED_MARKER, Phase, Repeat, WorkloadError, scan};

const DAY_NS: i64 = 86_400_000_000_000;

/// Two directories; listing order is that of creation, which is not that of names.
fn tree() -> Fake {
    let mut fs = Fake::default();
    fs.add("z", FileKind::File, 100, 10 * DAY_NS);
    fs.add("b", FileKind::Directory, 0, 0);
    fs.add("a", FileKind::Directory, 0, 0);
    fs.add("b/2", FileKind::File, 3000, 40 * DAY_NS);
    fs.add("a/9", FileKind::File, 2000, 39 * DAY_NS);
    fs.add("b/1", FileKind::File, 1000, 35 * DAY_NS);
    fs.add("a/empty", FileKind::File, 0, 40 * DAY_NS);
    fs.add("a/link", FileKind::Symlink, 3, 40 * DAY_NS);
    fs.add("a/fifo", FileKind::Special, 0, 40 * DAY_NS);
    fs.add("a/c", FileKind::Directory, 0, 0);
    fs.add("a/c/old", FileKind::File, 700, DAY_NS);
    fs
}

fn aged() -> Fake {
    let mut fs = tree();
    let marker = fs.add(AGED_MARKER, FileKind::File, 14, 50 * DAY_NS);
    marker.content = br#"{"plan": "h"} "#.to_vec();
    fs
}

fn once() -> Repeat {
    Repeat { rounds: 1, warm_up: false, seed: 1 }
}

fn hot(select: Select) -> hotfiles::Options {
    hotfiles::Options { select, piece_bytes: 2048, repeat: once(), overwrite: false }
}

fn list(paths: &[&str]) -> Select {
    Select::List { from: "hot.txt".into(), paths: paths.iter().map(PathBuf::from).collect() }
}

/// Paths read, in order, after caches were dropped.
fn read_after_drop(fs: &Fake) -> Vec<String> {
    let drop = fs.log.iter().position(|line| line == "drop").unwrap();
    let opened = fs.log[drop..].iter().filter_map(|line| line.strip_prefix("open "));
    opened.map(str::to_owned).collect()
}

fn changed(fs: &Fake) -> bool {
    ["create", "rewrite", "write", "unlink", "mkdir", "rmdir", "utimens"].iter().any(|w| !fs.logged(w).is_empty())
}

#[test]
fn hot_files_are_read_directory_by_directory_and_nothing_is_written() {
    for (select, expected) in [
        (Select::NewerDays(5.0), vec!["a/9", "b/1", "b/2"]),
        (Select::NewerDays(0.0), vec!["b/2"]),
        (Select::NewerDays(30.0), vec!["z", "a/9", "b/1", "b/2"]),
        (Select::Share(0.4), vec!["a/9", "b/2"]),
        (Select::Share(0.001), vec!["b/2"]),
        (Select::Share(1.0), vec!["z", "a/9", "a/c/old", "b/1", "b/2"]),
        (list(&["./b/1", "a/c/old", "a/empty"]), vec!["a/c/old", "b/1"]),
    ] {
        let mut fs = tree();
        let result = workload::run_on(&mut fs, &hot(select.clone()), &mut |_| {}).unwrap();
        assert_eq!(read_after_drop(&fs), expected, "{select:?}");
        assert!(!changed(&fs), "{:?}", fs.log);
        let round = &result.targets[0].phase("hot files", Phase::Read).unwrap().rounds[0];
        assert_eq!(round.files, expected.len() as u64);
        let calls = round.files * (OPEN_NS + CLOSE_NS) + round.bytes;
        assert_eq!(round.calls_ns, calls, "one nanosecond a byte");
    }
}

#[test]
fn a_tree_that_is_not_ours_is_never_overwritten() {
    let overwrite = hotfiles::Options { overwrite: true, ..hot(Select::Share(1.0)) };
    let no_marker = tree();
    let mut broken = tree();
    broken.add(AGED_MARKER, FileKind::File, 4, 0).content = b"nope".to_vec();
    let mut list = tree();
    list.add(AGED_MARKER, FileKind::File, 2, 0).content = b"[]".to_vec();
    let mut huge = tree();
    huge.add(AGED_MARKER, FileKind::File, 1 << 30, 0);
    let mut directory = tree();
    directory.add(AGED_MARKER, FileKind::Directory, 0, 0);
    let mut link = tree();
    link.add(AGED_MARKER, FileKind::Symlink, 1, 0);
    let mut deeper = tree();
    deeper.add("a/.fsage-aged", FileKind::File, 2, 0).content = b"{}".to_vec();
    for mut fs in [no_marker, broken, list, huge, directory, link, deeper] {
        let before = format!("{:?}", fs.nodes());
        let error = workload::run_on(&mut fs, &overwrite, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("refusing to overwrite"), "{error}");
        assert_eq!(error.kind(), Kind::Usage);
        assert!(!changed(&fs));
        assert_eq!(format!("{:?}", fs.nodes()), before);
        assert_eq!(fs.descriptors(), 0);
    }
}

#[test]
fn our_tree_is_overwritten_in_place_after_all_reading_and_stays_as_hot_as_it_was() {
    let mut fs = aged();
    fs.node("b/1").nlink = 2;
    let holes = fs.add("b/holes", FileKind::File, 900_000, 40 * DAY_NS);
    holes.allocated = 4096;
    let before: Vec<(PathBuf, u64, i64)> = fs.nodes().iter().map(|(p, n)| (p.clone(), n.size, n.mtime_ns)).collect();
    let repeat = Repeat { rounds: 3, warm_up: true, seed: 1 };
    let options = hotfiles::Options { overwrite: true, repeat, ..hot(Select::NewerDays(5.0)) };
    let result = workload::run_on(&mut fs, &options, &mut |_| {}).unwrap();
    let after: Vec<(PathBuf, u64, i64)> = fs.nodes().iter().map(|(p, n)| (p.clone(), n.size, n.mtime_ns)).collect();
    assert_eq!(after, before);
    assert_eq!(fs.logged("rewrite"), ["rewrite a/9", "rewrite b/2"].repeat(3));
    let words: Vec<&str> = fs.log.iter().map(|line| line.split(' ').next().unwrap()).collect();
    let last_read = words.iter().rposition(|word| *word == "read").unwrap();
    let first_write = words.iter().position(|word| *word == "write").unwrap();
    assert!(last_read < first_write, "{words:?}");
    let [point] = result.targets[0].points.as_slice() else { panic!("one row of the result") };
    assert_eq!(point.phases.iter().map(|p| p.phase).collect::<Vec<_>>(), [Phase::Read, Phase::Overwrite]);
    assert_eq!(point.phases[1].rounds.len(), 3);
    assert_eq!(point.phases[1].rounds[0].bytes, 5000);
    assert!(result.targets[0].notes.iter().any(|n| n.starts_with("2 hot files are read but not overwritten")));
    assert!(read_after_drop(&fs).iter().all(|path| path != AGED_MARKER));
}

#[test]
fn a_failing_overwrite_puts_the_times_back() {
    let mut whole = aged();
    let options = hotfiles::Options { overwrite: true, ..hot(Select::Share(1.0)) };
    workload::run_on(&mut whole, &options, &mut |_| {}).unwrap();
    let writes = whole.log.iter().enumerate().filter(|(_, line)| line.starts_with("write"));
    for (at, _) in writes {
        let mut fs = aged();
        fs.fail_at = Some(at as u64);
        let before = format!("{:?}", fs.nodes());
        workload::run_on(&mut fs, &options, &mut |_| {}).unwrap_err();
        assert_eq!(format!("{:?}", fs.nodes()), before);
        assert_eq!(fs.descriptors(), 0);
    }
}

#[test]
fn what_cannot_be_read_is_an_error_or_is_counted() {
    let mut fs = Fake::default();
    let error = workload::run_on(&mut fs, &hot(Select::NewerDays(30.0)), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("no files with data"), "{error}");
    let error =
        workload::run_on(&mut fs, &scan::Options { repeat: once(), ..Default::default() }, &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage, "{error}");
    for path in ["missing", "a", "a/link", "../z", "b/1/"] {
        let mut fs = tree();
        let twice = list(&[path, path]);
        let error = workload::run_on(&mut fs, &hot(twice), &mut |_| {}).unwrap_err();
        assert!(matches!(error, WorkloadError::Options(ref why) if why.starts_with("hot.txt: ")), "{path}: {error}");
    }
    for select in [Select::NewerDays(-1.0), Select::NewerDays(f64::NAN), Select::Share(0.0), Select::Share(1.1)] {
        let error = workload::run_on(&mut tree(), &hot(select), &mut |_| {}).unwrap_err();
        assert!(matches!(error, WorkloadError::Options(_)), "{error}");
    }
    let mut fs = tree();
    fs.node("a").errno = Some(Errno::EACCES);
    fs.node("b").dev = 2;
    let result = workload::run_on(&mut fs, &hot(Select::Share(1.0)), &mut |_| {}).unwrap();
    assert_eq!(read_after_drop(&fs), ["z"]);
    assert!(result.targets[0].notes[0].starts_with("2 names of the tree could not be looked at"));
}

#[test]
fn a_file_of_another_owner_is_read_all_the_same() {
    for scanning in [true, false] {
        let mut fs = tree();
        // Opening it without a change to its access time is not allowed.
        fs.node("b/2").foreign = true;
        fs.node("b/1").errno = Some(Errno::EACCES);
        let result = if scanning {
            workload::run_on(&mut fs, &scan::Options { repeat: once(), ..Default::default() }, &mut |_| {}).unwrap()
        } else {
            workload::run_on(&mut fs, &hot(Select::NewerDays(5.0)), &mut |_| {}).unwrap()
        };
        let phase = &result.targets[0].points[0].phases[0];
        assert_eq!(phase.rounds[0].files, if scanning { 5 } else { 2 });
        assert!(result.targets[0].notes.iter().any(|n| n.starts_with("1 ") && n.contains("b/1: EACCES")));
        let drop = fs.log.iter().position(|line| line == "drop").unwrap();
        let opens = fs.log[drop..].iter().filter(|line| *line == "open b/2").count();
        // A scan finds out on the way, and looks at the extents afterwards; hot files are tried beforehand.
        assert_eq!(opens, if scanning { 3 } else { 1 }, "{:?}", fs.log);
    }
}

#[test]
fn a_scan_goes_in_directory_order_depth_first() {
    let mut fs = tree();
    let options = scan::Options { stat_only: false, piece_bytes: 1024, repeat: once() };
    let result = workload::run_on(&mut fs, &options, &mut |_| {}).unwrap();
    let drop = fs.log.iter().position(|line| line == "drop").unwrap();
    let end = fs.log.iter().rposition(|line| line == "close a/c/old").unwrap();
    let visited: Vec<&str> =
        fs.log[drop..=end].iter().filter(|l| l.starts_with("open")).map(String::as_str).take(9).collect();
    let expected = [
        "opendir ",
        "open z",
        "opendir b",
        "open b/2",
        "open b/1",
        "opendir a",
        "open a/9",
        "open a/empty",
        "opendir a/c",
    ];
    assert_eq!(visited, expected);
    let round = &result.targets[0].phase("whole tree", Phase::Scan).unwrap().rounds[0];
    assert_eq!((round.files, round.bytes), (6, 6800));
    // Ten opens and closes; each directory is listed twice; each file read until nothing comes.
    let reads = [100u64, 3000, 1000, 2000, 0, 700].iter().map(|size| (size.div_ceil(1024) + 1) * 1024).sum::<u64>();
    assert_eq!(round.calls_ns, 10 * (OPEN_NS + CLOSE_NS) + 8 * GETDENTS_NS + reads);
    assert!(!changed(&fs));
}

#[test]
fn a_scan_of_attributes_asks_every_name() {
    let mut fs = tree();
    let options = scan::Options { stat_only: true, repeat: once(), ..Default::default() };
    let result = workload::run_on(&mut fs, &options, &mut |_| {}).unwrap();
    let round = &result.targets[0].phase("whole tree, attributes", Phase::Stat).unwrap().rounds[0];
    assert_eq!(round.files, 11);
    assert_eq!(round.calls_ns, 11 * STAT_NS + 4 * (OPEN_NS + CLOSE_NS + 2 * GETDENTS_NS));
    assert!(fs.logged("read").is_empty() && !changed(&fs));
}

#[test]
fn a_scan_counts_what_it_cannot_read_and_stays_on_its_file_system() {
    let mut fs = tree();
    fs.node("z").errno = Some(Errno::EACCES);
    fs.node("b").dev = 2;
    fs.node("a/9").unwritten = true;
    let options = scan::Options { repeat: Repeat { rounds: 2, ..once() }, ..Default::default() };
    let result = workload::run_on(&mut fs, &options, &mut |_| {}).unwrap();
    let notes = &result.targets[0].notes;
    assert_eq!(notes[0], "2 names could not be read; the first is z: EACCES");
    assert!(notes[1].starts_with("1 of 3 files looked at hold preallocated extents"), "{notes:?}");
    assert_eq!(result.targets[0].points[0].phases[0].rounds[0].files, 3);
    assert_eq!(fs.descriptors(), 0);
}
