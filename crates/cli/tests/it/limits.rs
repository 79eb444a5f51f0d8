//! Small inputs that ask for much: each is refused, by name and in time, or costs no more than it is worth.
//!
//! Every command runs with 2 GiB of address space, and is given up after a time that it never comes near.

use crate::common;
use crate::common::plan_file::{self, Row};
use crate::common::{fails, small_system, small_workload, succeeds};
use posix::FileKind;
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;
use std::time::Duration;
use trace::profile::{self, Meta, PATH_BYTES_MAX, Writer, WriterOptions, escape};
use trace::{Batch, Event, FileId, OfdId, Op, Snapshot, SnapshotEntry, flag};

/// In KiB, for the shell's `ulimit -v`.
const ADDRESS_SPACE_KIB: u64 = 2 << 20;
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs the binary in a directory, within the limits.
fn limited(directory: &Path, args: &[&str]) -> Output {
    within(directory, ADDRESS_SPACE_KIB, args)
}

fn within(directory: &Path, address_space_kib: u64, args: &[&str]) -> Output {
    let mut command = assert_cmd::Command::new("sh");
    command.args(["-c", &format!("ulimit -v {address_space_kib} && exec \"$0\" \"$@\"")]);
    command.arg(env!("CARGO_BIN_EXE_fsage")).args(args).env_remove("RUST_BACKTRACE");
    command.current_dir(directory).timeout(PATIENCE).output().expect("the shell runs")
}

/// `machine=/dev/zero` was read until memory ended, a FIFO was waited for.
#[test]
fn descriptions_are_regular_files() {
    let d = tempfile::tempdir().expect("a directory");
    let at = |name: &str| d.path().join(name);
    fs::create_dir(at("target")).expect("a directory");
    fs::create_dir(at("geriatrix")).expect("a directory");
    small_workload(d.path());
    for (kind, named) in [("zero", "a character device"), ("fifo", "a FIFO"), ("directory", "a directory")] {
        let make = |name: &str| {
            let _ = fs::remove_file(at(name)).or_else(|_| fs::remove_dir(at(name)));
            match kind {
                "zero" => symlink("/dev/zero", at(name)).expect("a link"),
                "fifo" => mkfifoat(CWD, at(name), Mode::RWXU).expect("a FIFO"),
                _ => fs::create_dir(at(name)).expect("a directory"),
            }
        };
        for name in ["x.toml", "x.img", "x.aging", "x.system", "x.snapshot", "x.series", "x.json", "x.trace"] {
            make(name);
        }
        for name in ["age_distribution.txt", "size_distribution.txt", "dir_distribution.txt"] {
            make(&format!("geriatrix/{name}"));
        }
        make("small.workload/meta.json");
        let mut commands = vec![
            vec!["bench", "seqfile", "ffs:machine=./x.toml"],
            vec!["bench", "seqfile", "ffs@./x.toml"],
            vec!["bench", "seqfile", "ffs:image=x.img"],
            vec!["drive", "describe", "./x.toml"],
            vec!["drive", "validate", "st32430n", "x.trace"],
            vec!["plan", "personality", "./x.toml", "-o", "p.aging"],
            vec!["plan", "geriatrix", "geriatrix", "--capacity", "1G", "-o", "p.aging"],
            vec!["plan", "snapshots", "x.snapshot", "x.snapshot", "-o", "p.aging"],
            vec!["age", "target", "--plan", "x.aging"],
            vec!["inspect", "x.aging"],
            vec!["inspect", "x.system"],
            vec!["inspect", "x.snapshot"],
            vec!["inspect", "small.workload"],
            vec!["replay", "small.workload", "target"],
            vec!["layout", "--series", "x.series"],
            vec!["mkfs", "free-maps", "new.img", "x.json"],
            vec!["dump", "x.img", "superblock"],
            vec!["fsck", "x.img"],
            vec!["clean", "x.img"],
        ];
        if kind != "directory" {
            // A directory may be what `bench -o` made, and has no files to copy out of it.
            commands.push(vec!["cp", "x.img:/", "out"]);
            commands.push(vec!["bench", "--compare", "x.json", "x.json"]);
        }
        for args in commands {
            let output = limited(d.path(), &args);
            assert_eq!(output.status.code(), Some(4), "{kind}: {args:?}: {}", common::stderr(&output));
            assert!(common::stderr(&output).contains(named), "{kind}: {args:?}: {}", common::stderr(&output));
        }
    }
}

/// A processor was 8 bytes of memory, and 2^31 of them 17 GB.
#[test]
fn a_machine_has_a_number_of_processors() {
    let d = tempfile::tempdir().expect("a directory");
    let machine = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines/pentium-120.toml"));
    let machine = machine.expect("a machine");
    let many = machine.replace("count = 1\n", "count = 2147483648\n");
    assert_ne!(many, machine);
    fs::write(d.path().join("many.toml"), many).expect("a file");
    let output = limited(d.path(), &["bench", "seqfile", "ffs:size=16M,machine=./many.toml"]);
    fails(&output, 4, &["many.toml", "cpu.count", "4096 processors"]);
}

/// Arrays of two, 5,000 levels deep, were made one by one.
#[test]
fn arrays_have_a_number_of_drives() {
    let d = tempfile::tempdir().expect("a directory");
    let target = format!("ffs@{}st32430n", "raid0:2x".repeat(5000));
    let output = limited(d.path(), &["bench", "seqfile", &target]);
    assert_eq!(common::code(&output), 2, "{}", common::stderr(&output));
    assert!(common::stderr(&output).contains("nested at most 4 deep"), "{}", common::stderr(&output));
}

/// A recording of a call on each of some paths, which the writer takes as they are.
fn stats_of(directory: &Path, paths: impl Iterator<Item = Vec<u8>>) {
    let mut writer = Writer::create(directory, WriterOptions::default()).expect("a new profile");
    let mut batch = Batch::default();
    for (n, path) in (0..).zip(paths) {
        let path = Some(batch.paths.intern(&path));
        batch.events.push(
            profile::Row { pid: 1, tid: 1, path, dur_ns: 1000, ..profile::Row::new(n, n * 2000, Op::Stat) }.into(),
        );
    }
    writer.push(&batch).expect("written");
    writer.finish(Meta::default(), &Snapshot::default()).expect("a whole profile");
}

/// The path of every directory was kept whole: the deeper, the longer, and 2.8 GB in all.
#[test]
fn deep_paths_cost_what_their_names_do() {
    let d = tempfile::tempdir().expect("a directory");
    small_system(d.path(), "a", 2_000.0);
    let deep = |n: u32| format!("/{n}{}", "/a".repeat(20_000)).into_bytes();
    stats_of(&d.path().join("deep.workload"), (0..6).map(deep));
    succeeds(&limited(d.path(), &["inspect", "deep.workload"]));
    succeeds(&limited(d.path(), &["predict", "deep.workload", "a.system", "--min-coverage", "0"]));
    let replayed = limited(d.path(), &["replay", "deep.workload", "ffs:size=800M,density=2048", "--json"]);
    let result: serde_json::Value = serde_json::from_str(&succeeds(&replayed)).expect("JSON");
    assert_eq!((&result["rebuilt"]["entries"], &result["calls"]), (&120_006.into(), &6.into()));
    // With more of them it is no recording.
    stats_of(&d.path().join("many.workload"), (0..300).map(deep));
    fails(
        &limited(d.path(), &["replay", "many.workload", "/tmp"]),
        4,
        &["many.workload: call 50", "1000000 directories"],
    );
    for args in [
        &["predict", "many.workload", "a.system", "--min-coverage", "0"][..],
        &["predict", "many.workload", "a.system", "--min-coverage", "0", "--stages-out", "stages"],
    ] {
        fails(&limited(d.path(), args), 4, &["many.workload: call 50", "1000000 directories"]);
    }
}

/// Each call was a step for each component of its path, and all steps of 65,536 calls were held at once: gigabytes for
/// a file of 24 KB.
#[test]
fn calls_on_deep_paths_are_priced_in_parts() {
    let d = tempfile::tempdir().expect("a directory");
    small_system(d.path(), "a", 2_000.0);
    let paths: Vec<Vec<u8>> = (0..300).map(|n| format!("/{n}{}", "/a".repeat(2_999)).into_bytes()).collect();
    let calls = 6_000;
    let mut writer = Writer::create(&d.path().join("w.workload"), WriterOptions::default()).expect("a new profile");
    let mut batch = Batch::default();
    for n in 0..calls {
        let path = Some(batch.paths.intern(&paths[n as usize % paths.len()]));
        let op = if n < 300 { Op::Mknod } else { Op::Chmod };
        batch
            .events
            .push(profile::Row { pid: 1, tid: 1, path, dur_ns: 1000, ..profile::Row::new(n, n * 2000, op) }.into());
    }
    writer.push(&batch).expect("written");
    writer.finish(Meta::default(), &Snapshot::default()).expect("a whole profile");
    let args = ["predict", "w.workload", "a.system", "--min-coverage", "0", "--json"];
    let predicted: serde_json::Value = serde_json::from_str(&succeeds(&limited(d.path(), &args))).expect("JSON");
    let calls_of = |system: &serde_json::Value| system["calls"].as_u64();
    assert_eq!(calls_of(&predicted["prediction"]["systems"][0]), Some(calls), "{predicted}");
    succeeds(&limited(d.path(), &["plan", "profile", "w.workload", "--capacity", "8G", "-o", "p.aging"]));
    succeeds(&limited(d.path(), &["inspect", "p.aging"]));
    // Directories that nothing is done in are told of as well.
    let mut writer = Writer::create(&d.path().join("x.workload"), WriterOptions::default()).expect("a new profile");
    let mut batch = Batch::default();
    for n in 0..400 {
        let path = Some(batch.paths.intern(&format!("/{n}{}", "/a".repeat(2_999)).into_bytes()));
        batch.events.push(profile::Row { pid: 1, tid: 1, path, ..profile::Row::new(n, n * 2000, Op::Mknod) }.into());
    }
    writer.push(&batch).expect("written");
    writer.finish(Meta::default(), &Snapshot::default()).expect("a whole profile");
    let planned = limited(d.path(), &["plan", "profile", "x.workload", "--capacity", "8G", "-o", "q.aging"]);
    fails(&planned, 4, &["x.workload: call 333", "1000000 directories"]);
}

/// An aging workload of one row group whose names, `name` all of them, are one entry of a dictionary.
fn plan_of_one_name(path: &Path, rows: usize, name: &[u8]) {
    plan_file::write(path, &[vec![Row::new("create", Some(name.to_vec().into())); rows]], 0);
}

/// A file of some kilobytes was unpacked to 4 GB, and the program was killed for it.
#[test]
fn what_unpacks_to_much_is_refused_by_name() {
    let d = tempfile::tempdir().expect("a directory");
    plan_of_one_name(&d.path().join("small.aging"), 3, b"a");
    fails(&limited(d.path(), &["inspect", "small.aging"]), 4, &["small.aging: row 0", "after the last of 0 days"]);
    plan_of_one_name(&d.path().join("bomb.aging"), 1 << 16, &[b'a'; 60_000]);
    let bytes = fs::metadata(d.path().join("bomb.aging")).expect("there").len();
    assert!(bytes < 20_000, "{bytes}");
    for args in [&["inspect", "bomb.aging"][..], &["age", "/tmp", "--plan", "bomb.aging"]] {
        fails(
            &limited(d.path(), args),
            4,
            &["bomb.aging: row group 0 (bytes 4 to ", "), column name: unpacks to more than 1073741824 bytes"],
        );
    }
    // Where there is less memory than that, that is what is missing.
    plan_of_one_name(&d.path().join("large.aging"), 5_000, &[b'a'; 60_000]);
    fails(&within(d.path(), 500 << 10, &["inspect", "small.aging"]), 4, &["small.aging: row 0"]);
    let output = within(d.path(), 500 << 10, &["inspect", "large.aging"]);
    fails(&output, 3, &["large.aging: row group 0 (", "column name: reading it takes more memory than there is"]);
}

/// Names of 60,000 bytes that differ in their last ones cost their file next to nothing, and were kept one and all: 120
/// KB took 5 GB.
#[test]
fn names_have_a_length_for_their_file() {
    let d = tempfile::tempdir().expect("a directory");
    small_system(d.path(), "a", 2_000.0);
    let long = "a".repeat(60_000);
    let names = 0..6_000_u64;
    let mut writer = Writer::create(&d.path().join("trace.workload"), WriterOptions::default()).expect("a new profile");
    for first in names.clone().step_by(500) {
        let mut batch = Batch::default();
        for n in first..first + 500 {
            let path = Some(batch.paths.intern(format!("/{long}{n:08}").as_bytes()));
            batch.events.push(
                profile::Row { pid: 1, tid: 1, path, dur_ns: 1000, ..profile::Row::new(n, n * 2000, Op::Stat) }.into(),
            );
        }
        writer.push(&batch).expect("written");
    }
    writer.finish(Meta::default(), &Snapshot::default()).expect("a whole profile");
    let entry = |n| SnapshotEntry::implied(format!("/{long}{n:08}").into_bytes(), FileKind::File);
    let snapshot = Snapshot::from_entries(names.map(entry).collect());
    let writer = Writer::create(&d.path().join("names.workload"), WriterOptions::default()).expect("a new profile");
    writer.finish(Meta::default(), &snapshot).expect("a whole profile");
    let predict = ["predict", "trace.workload", "a.system", "--min-coverage", "0"];
    for (file, args) in [
        ("trace.workload/trace.parquet", &["inspect", "trace.workload"][..]),
        ("trace.workload/trace.parquet", &predict),
        ("trace.workload/trace.parquet", &["replay", "trace.workload", "/tmp"]),
        ("names.workload/snapshot.parquet", &["inspect", "names.workload", "--snapshot"]),
    ] {
        let bytes = fs::metadata(d.path().join(file)).expect("there").len();
        assert!(bytes < 80_000, "{file}: {bytes}");
        fails(&limited(d.path(), args), 4, &[file, "its names unpack to more than 268435456 bytes and 1024"]);
    }
}

/// What no file can have for a path failed a replay on the target, which named no file; a longer path was walked.
#[test]
fn a_path_without_nul_and_of_a_length() {
    let d = tempfile::tempdir().expect("a directory");
    fs::create_dir(d.path().join("target")).expect("a directory");
    let longest = [&b"/"[..], &vec![b'a'; PATH_BYTES_MAX - 1]].concat();
    // The writer leaves out what the reader refuses.
    let paths = [b"/a\0b".to_vec(), [&longest[..], b"a"].concat(), longest.clone(), b"/b".to_vec()];
    stats_of(&d.path().join("w.workload"), paths.into_iter());
    let csv = succeeds(&limited(d.path(), &["export", "w.workload"]));
    let named: Vec<&str> = csv.lines().skip(1).map(|row| row.split(',').nth(10).expect("a path")).collect();
    assert_eq!(named, ["", "", &format!("\"{}\"", escape(&longest)), "\"/b\""]);
    // A snapshot is written as it is.
    let snapshot = Snapshot::from_entries(vec![SnapshotEntry::implied(b"/x\0y".to_vec(), FileKind::File)]);
    let writer = Writer::create(&d.path().join("nul.workload"), WriterOptions::default()).expect("a new profile");
    writer.finish(Meta::default(), &snapshot).expect("a whole profile");
    for args in [&["replay", "nul.workload", "target"][..], &["inspect", "nul.workload"]] {
        fails(&limited(d.path(), args), 4, &["nul.workload/snapshot.parquet", "row 0", "a NUL (byte 2)"]);
    }
}

/// Two calls of 2^63 ns made `inspect` panic. Every number here is the largest of its kind.
#[test]
fn sums_end_at_the_largest_number() {
    let d = tempfile::tempdir().expect("a directory");
    small_system(d.path(), "a", 2_000.0);
    small_system(d.path(), "b", 3_000.0);
    let mut writer = Writer::create(&d.path().join("w.workload"), WriterOptions::default()).expect("a new profile");
    let mut batch = Batch::default();
    let paths = ["/a", "/b"].map(|path| batch.paths.intern(path.as_bytes()));
    let ofd = Some(OfdId(u64::MAX));
    let mut seq = 0;
    for op in Op::ALL {
        for (n, path) in (0..).zip(paths) {
            let event = profile::Row {
                dur_ns: u64::MAX - n,
                pid: u32::MAX,
                tid: u32::MAX - n as u32,
                flags: if n == 0 { 0 } else { flag::WRITE | flag::CREATE },
                mode: Some(u16::MAX),
                ret: i64::MAX,
                ofd,
                ofd2: ofd,
                file: Some(FileId(u64::MAX)),
                parent: Some(FileId(u64::MAX)),
                path: Some(path),
                path2: Some(paths[1]),
                offset: Some(u64::MAX),
                offset2: Some(u64::MAX),
                req_bytes: Some(u64::MAX),
                size_before: Some(u64::MAX),
                running_ns: Some(u64::MAX),
                blocked_ns: Some(u64::MAX),
                ..profile::Row::new(seq, u64::MAX - n, *op)
            };
            batch.events.extend([event, profile::Row { seq: seq + 1, ..event }].map(Event::from));
            seq += 2;
        }
    }
    writer.push(&batch).expect("written");
    let mut entries = Vec::new();
    for (path, kind) in [("/", FileKind::Directory), ("/a", FileKind::File), ("/c", FileKind::File)] {
        let (size_bytes, nlink, ino) = (u64::MAX, u32::MAX, u64::MAX);
        entries.push(SnapshotEntry { size_bytes, nlink, ino, ..SnapshotEntry::implied(path.into(), kind) });
    }
    writer.finish(Meta::default(), &Snapshot::from_entries(entries)).expect("a whole profile");
    for args in [
        &["inspect", "w.workload"][..],
        &["inspect", "w.workload", "--latency"],
        &["inspect", "w.workload", "--rows"],
        &["inspect", "w.workload", "--snapshot"],
        &["export", "w.workload", "-o", "w.csv"],
        &["export", "w.workload", "--format", "fio", "-o", "w.fio"],
        &["export", "w.workload", "--anonymise", "-o", "x.workload"],
        &["predict", "w.workload", "a.system", "b.system", "--min-coverage", "0", "--explain", "a", "b"],
        &["predict", "w.workload", "a.system", "--min-coverage", "0", "--stages-out", "stages"],
    ] {
        let output = limited(d.path(), args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", common::stderr(&output));
    }
    // What cannot be: a file of 2^64 bytes, and what would be left to plan.
    fails(&limited(d.path(), &["replay", "w.workload", "ffs"]), 3, &["free"]);
    let planned = limited(d.path(), &["plan", "profile", "w.workload", "--capacity", "1G", "-o", "p.aging"]);
    assert!(matches!(planned.status.code(), Some(2 | 4)), "{}", common::stderr(&planned));
}

/// ENODEV for a mapping of what has no pages was told as a device that went away.
#[test]
fn a_directory_that_cannot_be_mapped_is_a_difference() {
    let d = tempfile::tempdir().expect("a directory");
    fs::create_dir(d.path().join("target")).expect("a directory");
    let mut writer = Writer::create(&d.path().join("w.workload"), WriterOptions::default()).expect("a new profile");
    let mut batch = Batch::default();
    let path = Some(batch.paths.intern(b"/a"));
    let ofd = Some(OfdId(1));
    for (n, op) in (0..).zip([Op::Open, Op::Mmap, Op::Close]) {
        let flags = if op == Op::Open { flag::DIRECTORY } else { 0 };
        let req_bytes = (op == Op::Mmap).then_some(4096);
        let event = profile::Row { pid: 1, tid: 1, ofd, path, flags, req_bytes, ..profile::Row::new(n, n * 1000, op) };
        batch.events.push(event.into());
    }
    writer.push(&batch).expect("written");
    writer.finish(Meta::default(), &Snapshot::default()).expect("a whole profile");
    let replayed = succeeds(&limited(d.path(), &["replay", "w.workload", "target", "--json"]));
    let result: serde_json::Value = serde_json::from_str(&replayed).expect("JSON");
    assert_eq!((&result["calls"], &result["differences"]["total"]), (&2.into(), &1.into()), "{replayed}");
}

/// What an image does not begin with was an error of usage, and a place beyond what any file can have one of the
/// machine.
#[test]
fn an_image_that_is_none_is_a_bad_input() {
    let d = tempfile::tempdir().expect("a directory");
    fs::write(d.path().join("zeros.img"), vec![0; 1 << 20]).expect("a file");
    for args in [
        &["layout", "zeros.img"][..],
        &["dump", "zeros.img", "superblock"],
        &["fsck", "zeros.img"],
        &["clean", "zeros.img"],
        &["cp", "zeros.img:/", "out"],
        &["bench", "seqfile", "ffs:image=zeros.img"],
        &["bench", "seqfile", "lfs:image=zeros.img"],
    ] {
        fails(&limited(d.path(), args), 4, &["zeros.img"]);
    }
    let store = ffs::FileStore::open(&d.path().join("zeros.img")).expect("a file");
    let error = ffs::Store::read_at(&store, u64::MAX - 600, &mut [0; 512]).expect_err("beyond");
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
}

/// Some messages named no file.
#[test]
fn errors_of_mkfs_and_measure_name_the_file() {
    let d = tempfile::tempdir().expect("a directory");
    for name in ["tree", "target"] {
        fs::create_dir(d.path().join(name)).expect("a directory");
    }
    fs::write(d.path().join("tree/file"), vec![7; 4_000_000]).expect("a file");
    fs::write(d.path().join("file"), "a file").expect("a file");
    for (args, named) in [
        (&["mkfs", "ffs", "none/new.img", "--size", "16M"][..], "none/new.img"),
        (&["mkfs", "lfs", "none/new.img", "--size", "16M"], "none/new.img"),
        (&["mkfs", "ffs", "file/new.img", "--size", "16M"], "file/new.img"),
        (&["mkfs", "ffs", "file", "--size", "16M"], "file"),
        (&["mkfs", "ffs", "new.img", "--size", "16M", "--populate", "nothing"], "nothing"),
        (&["mkfs", "ffs", "new.img", "--size", "2M", "--populate", "tree"], "new.img"),
        (&["mkfs", "lfs", "new.img", "--size", "16M", "--populate", "nothing"], "nothing"),
        (&["mkfs", "free-maps", "new.img", "nothing.json"], "nothing.json"),
        (&["mkfs", "free-maps", "new.img", "file"], "file"),
        (&["measure", "nothing", "--budget", "1s"], "nothing"),
        (&["measure", "file", "--budget", "1s"], "file"),
        (&["measure", "target", "--budget", "1s", "-o", "none/new.system"], "none"),
        (&["measure", "ffs:size=1M"], "ffs:size=1M"),
    ] {
        let output = limited(d.path(), args);
        let said = common::stderr(&output);
        assert!(matches!(output.status.code(), Some(2..=4)) && said.contains(named), "{args:?}: {said}");
        assert_eq!(common::names(d.path()), ["file", "target", "tree"], "{args:?}");
    }
}

/// A NUL passed the importer, and no file could be made of it.
#[test]
fn a_traced_path_with_nul_is_a_path_that_is_not_known() {
    let d = tempfile::tempdir().expect("a directory");
    let call = |path: &str| {
        format!("1 1700000000.000001 stat(\"{path}\", {{st_mode=S_IFREG|0644, st_size=5}}) = 0 <0.000010>\n")
    };
    fs::write(d.path().join("a.strace"), call("/a\\0b") + &call("/c")).expect("a file");
    succeeds(&limited(d.path(), &["import", "a.strace", "-o", "w.workload"]));
    let csv = succeeds(&limited(d.path(), &["export", "w.workload"]));
    let named: Vec<&str> = csv.lines().skip(1).map(|row| row.split(',').nth(10).expect("a path")).collect();
    assert_eq!(named, ["", "\"/c\""]);
    succeeds(&limited(d.path(), &["inspect", "w.workload"]));
}

/// What the description says of the rows was believed.
#[test]
fn events_that_are_not_the_rows_are_refused() {
    let d = tempfile::tempdir().expect("a directory");
    let meta = small_workload(d.path()).join("meta.json");
    let text = fs::read_to_string(&meta).expect("a description");
    let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let events = value["events"].as_u64().expect("a number");
    let fields = value.as_object_mut().expect("an object");
    fields.insert("events".to_owned(), (events + 1).into());
    // Written by hand, it has no checksum; the trace still has.
    fields.remove("meta_crc32c").expect("a checksum");
    fs::write(&meta, value.to_string()).expect("a file");
    for command in ["inspect", "export"] {
        let said = format!("{events} rows where meta.json states {}", events + 1);
        fails(&limited(d.path(), &[command, "small.workload"]), 4, &["small.workload", &said]);
    }
}

/// Exit codes were those of usage and of the machine.
#[test]
fn damaged_images_are_bad_inputs() {
    let d = tempfile::tempdir().expect("a directory");
    fs::create_dir(d.path().join("tree")).expect("a directory");
    fs::write(d.path().join("tree/file"), vec![7; 100_000]).expect("a file");
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 3] = [
        ("cut off", |bytes| bytes.truncate(70_000)),
        ("zeros behind the superblocks", |bytes| bytes[80_000..].fill(0)),
        ("ones behind the superblocks", |bytes| bytes[80_000..].fill(0xFF)),
    ];
    for kind in ["ffs", "lfs"] {
        let ufs: &[&str] = if kind == "ffs" { &["--ufs", "2"] } else { &[] };
        let args = [&["mkfs", kind, "sound.img", "--size", "16M", "--populate", "tree", "--force"], ufs].concat();
        succeeds(&limited(d.path(), &args));
        let sound = fs::read(d.path().join("sound.img")).expect("an image");
        for (what, damage) in damages {
            let mut bytes = sound.clone();
            damage(&mut bytes);
            fs::write(d.path().join("bad.img"), bytes).expect("a file");
            let target = format!("{kind}:image=bad.img");
            for args in [
                &["layout", "bad.img"][..],
                &["dump", "bad.img", "directory"],
                &["cp", "bad.img:/", "out"],
                &["cp", "tree/file", "bad.img:/again"],
                &["bench", "seqfile", &target],
            ] {
                let output = limited(d.path(), args);
                let said = common::stderr(&output);
                assert_eq!(output.status.code(), Some(4), "{kind}, {what}: {args:?}: {said}");
                assert!(said.contains("bad.img"), "{kind}, {what}: {args:?}: {said}");
                let _ = fs::remove_dir_all(d.path().join("out"));
            }
        }
    }
}

/// In blocks of 512 bytes, for the shell's `ulimit -f`.
const FILE_BLOCKS: u64 = 40;

/// SIGXFSZ ended the program wherever it was, and cleaned nothing. Now it is a write that fails.
#[test]
fn a_limit_of_file_sizes_leaves_nothing_half_done() {
    let d = tempfile::tempdir().expect("a directory");
    let run = |args: &[&str]| succeeds(&common::run(d.path(), args));
    let tree = d.path().join("tree");
    for directory in ["tree", "target"] {
        fs::create_dir(d.path().join(directory)).expect("a directory");
    }
    for n in 1..1_000_u128 {
        // Names that nothing makes shorter.
        let name = format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
        fs::write(tree.join(name), [7; 100]).expect("a new file");
    }
    fs::write(tree.join("large"), vec![7; 100_000]).expect("a new file");
    common::long_workload(&d.path().join("w.workload"), 20_000);
    small_system(d.path(), "a", 2_000.0);
    run(&["export", "w.workload", "--format", "fio-v2", "-o", "w.iolog"]);
    run(&["mkfs", "ffs", "ffs.img", "--size", "16M", "--ufs", "2", "--populate", "tree"]);
    run(&["mkfs", "lfs", "lfs.img", "--size", "16M", "--populate", "tree"]);
    run(&["plan", "personality", "home", "--capacity", "64M", "--days", "20", "-o", "plan.aging"]);
    run(&["plan", "personality", "home", "--for", "ffs:size=64M", "--days", "20", "-o", "lab.aging"]);
    run(&["inspect", "w.workload", "--html", "made.html"]); // an earlier one
    let before = common::names(d.path());
    for args in [
        &["import", "w.iolog", "--cwd", "/", "-o", "made.workload"][..],
        &["export", "w.workload", "-o", "made.csv"],
        &["export", "w.workload", "--anonymise", "-o", "made.workload"],
        &["inspect", "w.workload", "--html", "made.html"],
        &["predict", "w.workload", "a.system", "--html", "made.html"],
        &["plan", "profile", "w.workload", "--repeat", "20", "--capacity", "1G", "-o", "made.aging"],
        &["plan", "personality", "home", "--capacity", "1G", "--days", "20", "-o", "made.aging"],
        &["snapshot", "tree", "-o", "made.snapshot"],
        &["layout", "tree", "--html", "made.html"],
        &["mkfs", "ffs", "made.img", "--size", "16M"],
        &["mkfs", "lfs", "made.img", "--size", "16M"],
        &["fsck", "ffs.img", "--repair", "--copy", "made.img"],
        &["cp", "ffs.img:/large", "made"],
        &["cp", "tree/large", "ffs.img:/again"],
        &["cp", "tree/large", "lfs.img:/again"],
        &["clean", "lfs.img"],
        &["age", "target", "--plan", "plan.aging", "--room", "64M"],
        &["age", "ffs:size=64M", "--plan", "lab.aging", "--image", "made.img.zst"],
        &["age", "ffs:size=64M", "--plan", "lab.aging", "--keep", "made.img"],
        &["measure", "target", "--budget", "1s", "-o", "made.system"],
    ] {
        let sums = |name: &str| fs::read(d.path().join(name)).expect("it is there");
        let whole = ["ffs.img", "lfs.img", "made.html"].map(sums);
        let mut command = assert_cmd::Command::new("sh");
        command.args(["-c", &format!("ulimit -f {FILE_BLOCKS} && exec \"$0\" \"$@\"")]);
        command.arg(env!("CARGO_BIN_EXE_fsage")).args(args).env_remove("RUST_BACKTRACE").env("TMPDIR", d.path());
        let output = command.current_dir(d.path()).timeout(PATIENCE).output().expect("the shell runs");
        let said = common::stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {said}");
        assert!(said.contains("File too large") || said.contains("EFBIG"), "{args:?}: {said}");
        // What could not be written is named, be it on its way.
        let is_output = |arg: &&&str| arg.starts_with("made") || arg.contains(".img") || **arg == "target";
        let mut outputs = args.iter().filter(is_output).filter_map(|arg| arg.split(':').next());
        assert!(outputs.any(|output| said.contains(output)) || said.contains("/fsage-"), "{args:?}: {said}");
        assert_eq!(common::names(d.path()), before, "{args:?}");
        assert_eq!(common::names(&d.path().join("target")), Vec::<String>::new(), "{args:?}");
        assert!(["ffs.img", "lfs.img", "made.html"].map(sums) == whole, "{args:?} changed what was there");
    }
}

/// A number as Thrift's compact protocol writes it, seven bits a byte.
fn varint(mut n: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while n > 127 {
        bytes.push((n & 127) as u8 | 128);
        n >>= 7;
    }
    bytes.push(n as u8);
    bytes
}

/// A Parquet file without rows whose columns are groups in groups: eight bytes a level.
fn parquet_of_groups(levels: usize) -> Vec<u8> {
    let root = [&b"\x48\x01r\x15\x02\0"[..]];
    let groups = std::iter::repeat_n(&b"\x35\0\x18\x01g\x15\x02\0"[..], levels);
    let schema = root.into_iter().chain(groups).chain([&b"\x15\x02\x25\0\x18\x01x\0"[..]]);
    // The version, a list of structures; after it no rows, no row groups.
    let mut footer = [&b"\x15\x02\x19\xfc"[..], &varint(levels + 2)].concat();
    footer.extend(schema.flatten());
    footer.extend(b"\x16\0\x19\x0c\0");
    let length = u32::try_from(footer.len()).expect("a short footer").to_le_bytes();
    [b"PAR1", &footer[..], &length, b"PAR1"].concat()
}

/// The Parquet decoder calls itself for each level of the columns: 20,000 of them, in a file of 160 KB, ended the
/// process by its stack.
#[test]
fn columns_in_columns_end_no_stack() {
    let d = tempfile::tempdir().expect("a directory");
    small_workload(d.path());
    // Read unchecked, as if another tool had written it; whoever makes one can make its checksums too.
    let meta = d.path().join("small.workload/meta.json");
    let mut unchecked: serde_json::Value = serde_json::from_slice(&fs::read(&meta).expect("read")).expect("JSON");
    let fields = unchecked.as_object_mut().expect("an object");
    fields.remove("meta_crc32c").expect("a checksum");
    fields["files"].as_object_mut().expect("files").remove("snapshot.parquet").expect("a check");
    fs::write(&meta, unchecked.to_string()).expect("written");
    let commands = [
        ("x.aging", &["inspect", "x.aging"][..]),
        ("x.snapshot", &["inspect", "x.snapshot"]),
        ("small.workload/snapshot.parquet", &["inspect", "small.workload"]),
    ];
    for (file, args) in commands {
        for (levels, said) in [(20_000, "20002 elements"), (900, "")] {
            fs::write(d.path().join(file), parquet_of_groups(levels)).expect("written");
            fails(&limited(d.path(), args), 4, &[file, said]);
        }
        // What does not begin as a footer does is none: the list may not hide behind something else.
        let mut other = parquet_of_groups(20_000);
        other[4] = 0x25;
        fs::write(d.path().join(file), other).expect("written");
        fails(&limited(d.path(), args), 4, &[file, "footer"]);
    }
}
