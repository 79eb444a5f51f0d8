//! Plans from recorded workloads: what the trace did is done again, run after run and copy beside copy.

use crate::sources::replay::Replayed;
use aging::format::{PlanMeta, Reader};
use aging::plan::profile::{Again, ProfileOptions, plan};
use aging::plan::short_lived::ShortLived;
use aging::plan::{PlanError, PlannedFor, write};
use aging::{AgingOp, DAY_NS, OpKind};
use fault::{Fault as _, Kind};
use posix::FileKind;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trace::profile::{Writer, WriterOptions};
use trace::strace::{ImportOptions, Importer};
use trace::{Snapshot, SnapshotEntry};

const TRACE: &str = "\
1 1700000000.000000 openat(AT_FDCWD</w>, \"new\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</w/new> <0.000001>
1 1700000000.100000 write(3</w/new>, \"\"..., 5000) = 5000 <0.000001>
1 1700000000.200000 pwrite64(3</w/new>, \"\"..., 100, 4950) = 100 <0.000001>
1 1700000000.300000 fsync(3</w/new>) = 0 <0.000001>
1 1700000000.400000 close(3</w/new>) = 0 <0.000001>
1 1700000001.000000 mkdir(\"/w/d\", 0777) = 0 <0.000001>
1 1700000001.100000 rename(\"/w/new\", \"/w/d/moved\") = 0 <0.000001>
1 1700000001.200000 unlink(\"/w/old\") = 0 <0.000001>
1 1700000001.300000 openat(AT_FDCWD</w>, \"log\", O_WRONLY|O_APPEND) = 3</w/log> <0.000001>
1 1700000001.400000 pwrite64(3</w/log>, \"\"..., 50, 1000) = 50 <0.000001>
1 1700000001.500000 ftruncate(3</w/log>, 900) = 0 <0.000001>
1 1700000001.600000 close(3</w/log>) = 0 <0.000001>
1 1700000002.000000 renameat2(AT_FDCWD</w>, \"/w/a\", AT_FDCWD</w>, \"/w/b\", RENAME_EXCHANGE) = 0 <0.000001>
1 1700000002.100000 link(\"/w/b\", \"/w/d/also\") = 0 <0.000001>
1 1700000002.200000 unlink(\"/w/b\") = 0 <0.000001>
1 1700000002.300000 symlink(\"moved\", \"/w/d/link\") = 0 <0.000001>
1 1700000002.400000 openat(AT_FDCWD</w>, \"/w/d/link\", O_WRONLY|O_TRUNC) = 3</w/d/moved> <0.000001>
1 1700000002.500000 write(3</w/d/moved>, \"\"..., 70) = 70 <0.000001>
1 1700000002.600000 close(3</w/d/moved>) = 0 <0.000001>
1 1700000003.000000 openat(AT_FDCWD</w>, \"short\", O_WRONLY|O_CREAT|O_EXCL, 0666) = 3</w/short> <0.000001>
1 1700000003.100000 write(3</w/short>, \"\"..., 123) = 123 <0.000001>
1 1700000003.200000 close(3</w/short>) = 0 <0.000001>
1 1700000003.300000 unlink(\"/w/short\") = 0 <0.000001>
1 1700000003.400000 openat(AT_FDCWD</w>, \"missing\", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000001>
1 1700000003.500000 rename(\"/w/log\", \"/w/c\") = 0 <0.000001>
1 1700000003.600000 openat(AT_FDCWD</w>, \"/elsewhere/read\", O_RDONLY) = 3</elsewhere/read> <0.000001>
1 1700000003.700000 read(3</elsewhere/read>, \"\"..., 123) = 123 <0.000001>
1 1700000004.000000 +++ exited with 0 +++
";

/// The tree before: path, length (`None`: a directory).
const BEFORE: [(&str, Option<u64>); 9] = [
    ("/elsewhere", None),
    ("/elsewhere/read", Some(777)),
    ("/w", None),
    ("/w/a", Some(10)),
    ("/w/b", Some(20)),
    ("/w/c", Some(30)),
    ("/w/log", Some(1000)),
    ("/w/old", Some(40)),
    ("/w/untouched", Some(50)),
];

/// The tree after, without what is elsewhere; `None` for directories.
const AFTER: [(&str, Option<u64>); 7] = [
    ("/w", None),
    ("/w/a", Some(20)),
    ("/w/c", Some(900)),
    ("/w/d", None),
    ("/w/d/also", Some(10)),
    ("/w/d/moved", Some(70)),
    ("/w/untouched", Some(50)),
];

fn profile(directory: &Path) -> PathBuf {
    profile_of(directory, TRACE)
}

fn profile_of(directory: &Path, trace: &str) -> PathBuf {
    let path = directory.join("w.workload");
    let mut writer = Writer::create(&path, WriterOptions::default()).expect("a new profile");
    let mut importer = Importer::new(ImportOptions::default());
    let mut push = |batch: trace::Batch| writer.push(&batch);
    importer.read(trace.as_bytes(), &mut push).expect("a sound trace");
    let mut imported = importer.finish(&mut push).expect("a sound trace");
    let entries = BEFORE.iter().zip(1..).map(|((path, size), ino)| {
        let kind = if size.is_some() { FileKind::File } else { FileKind::Directory };
        let entry = SnapshotEntry::implied(path.as_bytes().to_vec(), kind);
        SnapshotEntry { size_bytes: size.unwrap_or(4096), ino, provenance: trace::Provenance::Before, ..entry }
    });
    let known = Snapshot::from_entries(entries.collect());
    let found = known.merged(Snapshot::from_entries(imported.implied_snapshot()));
    writer.finish(imported.meta(), &found).expect("a whole profile");
    path
}

fn planned(path: &Path, options: &ProfileOptions, capacity_bytes: u64) -> Result<(PlanMeta, Vec<AgingOp>), PlanError> {
    let out = path.with_file_name("plan.aging");
    let planned_for = PlannedFor { capacity_bytes, block_bytes: 4096 };
    let meta = write(&out, planned_for, |writer| plan(path, options, capacity_bytes, writer, &mut |_| true))?;
    let ops = Reader::open(&out)?.batches(0).flat_map(|b| b.expect("our own file")).collect();
    Ok((meta, ops))
}

fn replayed(ops: &[AgingOp]) -> BTreeMap<Vec<u8>, (FileKind, u64)> {
    let mut tree = Replayed::default();
    ops.iter().for_each(|op| tree.apply(op));
    tree.paths()
}

/// What a copy should have left, under its directory.
fn expected(root: &str) -> BTreeMap<Vec<u8>, (FileKind, u64)> {
    let path = |name: &str| format!("/{root}{name}").into_bytes();
    let after = AFTER.iter().map(|(name, size)| match size {
        Some(size) => (path(name), (FileKind::File, *size)),
        None => (path(name), (FileKind::Directory, 0)),
    });
    after.chain([(path(""), (FileKind::Directory, 0)), (path("/w/d/link"), (FileKind::Symlink, 5))]).collect()
}

#[test]
fn one_run_leaves_the_tree_that_the_workload_left() {
    let work = tempfile::tempdir().expect("a directory");
    let path = profile(work.path());
    let (meta, ops) = planned(&path, &ProfileOptions::default(), 1 << 30).expect("a plan");
    assert_eq!(replayed(&ops), expected("copy-0-run-0"));
    assert_eq!((meta.days, meta.counts.of(OpKind::Fsync)), (1, 1));
    let overwrites: Vec<_> =
        ops.iter().filter(|op| op.kind == OpKind::Overwrite).map(|op| (op.offset_bytes, op.size_bytes)).collect();
    assert_eq!(overwrites, [(4950, 50)]);
}

/// What was only read was left out.
#[test]
fn what_was_read_is_read_again_where_asked_for() {
    let work = tempfile::tempdir().expect("a directory");
    let path = profile(work.path());
    let reads = |ops: &[AgingOp]| -> Vec<(u64, u64)> {
        ops.iter().filter(|op| op.kind == OpKind::Read).map(|op| (op.offset_bytes, op.size_bytes)).collect()
    };
    let (meta, ops) = planned(&path, &ProfileOptions::default(), 1 << 30).expect("a plan");
    assert_eq!((reads(&ops), meta.counts.of(OpKind::Read)), (Vec::new(), 0));
    let options = ProfileOptions { reads: true, ..ProfileOptions::default() };
    let (meta, ops) = planned(&path, &options, 1 << 30).expect("a plan");
    assert_eq!((reads(&ops), meta.counts.of(OpKind::Read)), (vec![(0, 123)], 1));
    let mut left = expected("copy-0-run-0");
    left.insert(b"/copy-0-run-0/elsewhere".to_vec(), (FileKind::Directory, 0));
    left.insert(b"/copy-0-run-0/elsewhere/read".to_vec(), (FileKind::File, 777));
    assert_eq!(replayed(&ops), left);
}

/// Found by planning `cp`, which copies in the kernel: no read was planned.
#[test]
fn a_copy_in_the_kernel_reads_its_source() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = "\
1 1700000000.000000 openat(AT_FDCWD</w>, \"/elsewhere/read\", O_RDONLY) = 3</elsewhere/read> <0.000001>
1 1700000000.100000 openat(AT_FDCWD</w>, \"copy\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 4</w/copy> <0.000001>
1 1700000000.200000 copy_file_range(3</elsewhere/read>, NULL, 4</w/copy>, NULL, 700, 0) = 700 <0.000001>
1 1700000000.300000 copy_file_range(3</elsewhere/read>, NULL, 4</w/copy>, NULL, 700, 0) = 77 <0.000001>
1 1700000000.400000 +++ exited with 0 +++
";
    let options = ProfileOptions { reads: true, ..ProfileOptions::default() };
    let (_, ops) = planned(&profile_of(work.path(), trace), &options, 1 << 30).expect("a plan");
    let reads = ops.iter().filter(|op| op.kind == OpKind::Read).map(|op| (op.offset_bytes, op.size_bytes));
    assert_eq!(reads.collect::<Vec<_>>(), [(0, 700), (700, 77)]);
}

#[test]
fn runs_on_the_same_tree_end_as_one_run_does() {
    let work = tempfile::tempdir().expect("a directory");
    let path = profile(work.path());
    let options =
        ProfileOptions { repeat: 5, again: Again::Same, copies: 3, days: Some(10), ..ProfileOptions::default() };
    let (meta, ops) = planned(&path, &options, 1 << 30).expect("a plan");
    let all: BTreeMap<_, _> = (0..3).flat_map(|copy| expected(&format!("copy-{copy}"))).collect();
    assert_eq!(replayed(&ops), all);
    assert_eq!(meta.days, 10);
    assert!(ops.iter().any(|op| op.t_ns / DAY_NS == 9));
}

#[test]
fn fresh_trees_fill_the_capacity_and_the_oldest_go_first() {
    let work = tempfile::tempdir().expect("a directory");
    let path = profile(work.path());
    let options = ProfileOptions { repeat: 10, days: Some(10), fill: 1.0, ..ProfileOptions::default() };
    // A run needs eight blocks at most and leaves five files of one block each.
    let (meta, ops) = planned(&path, &options, 20 * 4096).expect("a plan");
    assert!(meta.counts.used_bytes_max <= 20 * 4096 && meta.counts.used_bytes_max > 12 * 4096);
    let left = replayed(&ops);
    let expected: BTreeMap<_, _> = (7..10).flat_map(|run| expected(&format!("copy-0-run-{run}"))).collect();
    assert_eq!(left, expected);
    let error = planned(&path, &options, 4 * 4096).expect_err("no room for one");
    assert!(error.to_string().contains("no room") && error.kind() == Kind::Usage, "{error}");
}

#[test]
fn short_lived_files_are_those_made_and_removed() {
    let work = tempfile::tempdir().expect("a directory");
    let path = profile(work.path());
    let found = ShortLived::read(&path).expect("there is one");
    assert_eq!(found.profiles().len(), 1);
    let file = found.profiles()[0][0];
    assert_eq!((file.size_bytes, file.life_ns), (123, 300_000_000));
    // Of the files made, `new` lasts.
    assert_eq!(found.per_lasting_file(), 1.0);
}

/// Its second removal was taken for that of another file that had been there: one name was planned twice.
#[test]
fn a_name_that_comes_back_unseen_is_planned_as_made() {
    let work = tempfile::tempdir().expect("a directory");
    let twice = "\
1 1700000000.000000 unlink(\"/w/old\") = 0 <0.000001>
1 1700000000.100000 unlink(\"/w/old\") = 0 <0.000001>
1 1700000001.000000 +++ exited with 0 +++
";
    let (meta, ops) = planned(&profile_of(work.path(), twice), &ProfileOptions::default(), 1 << 30).expect("a plan");
    assert_eq!(meta.counts.of(OpKind::Delete), 2);
    let left = replayed(&ops);
    assert!(left.contains_key(b"/copy-0-run-0/w/untouched".as_slice()), "{left:?}");
    assert!(!left.contains_key(b"/copy-0-run-0/w/old".as_slice()), "{left:?}");
}

/// It was told to plan it again: the advice of another format.
#[test]
fn a_damaged_workload_is_to_be_recorded_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = profile(dir.path());
    let trace = path.join("trace.parquet");
    let mut bytes = std::fs::read(&trace).expect("a trace");
    bytes[20] ^= 1;
    std::fs::write(&trace, bytes).expect("damage");
    let error = planned(&path, &ProfileOptions::default(), 1 << 30).expect_err("damaged");
    let said = error.to_string();
    assert_eq!(error.kind(), Kind::BadInput, "{said}");
    assert!(
        said.contains("trace.parquet: row group 0") && said.ends_with("or record or import the workload again"),
        "{said}"
    );
}
