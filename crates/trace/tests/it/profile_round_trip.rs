//! Whatever goes into a workload profile comes out again.

use crate::common::{Spelled, batches, meta, plain, snapshot, spell};
use columnar::FileError;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use trace::profile::{Annotation, AnnotationKind, Reader, Values, Writer, WriterOptions};
use trace::{About, Batch, Call, Op, Snapshot, Target, Via};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn arbitrary_profiles_round_trip(batches in batches(), snapshot in snapshot(),
        rows in prop_oneof![Just(7usize), Just(64), Just(1 << 16)]) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.workload");
        let options = WriterOptions { row_group_rows: rows, ..WriterOptions::default() };
        let mut writer = Writer::create(&path, options).unwrap();
        for batch in &batches {
            writer.push(batch).unwrap();
        }
        let written = writer.finish(meta(), &snapshot).unwrap();
        let reader = Reader::open(&path).unwrap();
        prop_assert_eq!(reader.meta(), &written);
        prop_assert_eq!(reader.snapshot().unwrap(), snapshot);
        let sent: Vec<Spelled> = batches.iter().flat_map(spell).collect();
        let got: Vec<Spelled> = reader.batches().unwrap().flat_map(|b| spell(&b.unwrap())).collect();
        prop_assert_eq!(reader.events(), sent.len() as u64);
        prop_assert_eq!(got, sent);
    }
}

fn a_batch(n: u64) -> Batch {
    let mut batch = Batch::default();
    for seq in 0..n {
        let mut event = plain(seq, Op::Stat);
        event.path = Some(batch.paths.intern(format!("/d/{}", seq % 5).as_bytes()));
        event.caller_dir = Some(batch.paths.intern(b"/d"));
        batch.events.push(event.into());
    }
    batch
}

#[test]
fn one_path_has_one_id_in_a_batch() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.workload");
    let mut batch = a_batch(20);
    for event in &mut batch.events {
        let (path, caller_dir) = (event.path(), event.caller_dir());
        let from = About { via: caller_dir.map_or(Via::Path, Via::Dir), path, ..About::default() };
        event.call = Call::Link { from, to: Target { path, caller_dir } };
    }
    let mut writer = Writer::create(&path, WriterOptions::default()).unwrap();
    writer.push(&batch).unwrap();
    writer.finish(meta(), &Snapshot::default()).unwrap();
    let got = Reader::open(&path).unwrap().batches().unwrap().next().unwrap().unwrap();
    assert_eq!(got.paths.len(), 6);
    assert!(got.events.iter().all(|e| e.path() == e.path2() && e.caller_dir() == e.caller_dir2()));
}

#[test]
fn annotations_are_kept_and_paged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.workload");
    let column = |name: &str, kind| Annotation { name: name.into(), kind, meaning: "for the test".into() };
    let annotations = vec![
        column("hits", AnnotationKind::U64),
        column("price_ns", AnnotationKind::F64),
        column("cold", AnnotationKind::Bool),
        column("pattern", AnnotationKind::Utf8),
    ];
    let options = WriterOptions { annotations: annotations.clone(), row_group_rows: 8, ..WriterOptions::default() };
    let values = |n: u64| {
        vec![
            Values::U64((0..n).map(|i| (i % 3 != 0).then_some(i)).collect()),
            Values::F64((0..n).map(|i| Some(i as f64 / 2.0)).collect()),
            Values::Bool((0..n).map(|i| Some(i % 2 == 0)).collect()),
            Values::Utf8((0..n).map(|i| Some(format!("p{i}"))).collect()),
        ]
    };
    let mut writer = Writer::create(&path, options).unwrap();
    assert!(matches!(writer.push(&a_batch(3)), Err(FileError::Invalid { .. })), "annotation values are required");
    drop(writer);
    let options = WriterOptions { annotations: annotations.clone(), row_group_rows: 8, ..WriterOptions::default() };
    let mut writer = Writer::create(&path, options).unwrap();
    writer.push_annotated(&a_batch(30), &values(30)).unwrap();
    writer.finish(meta(), &Snapshot::default()).unwrap();

    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.meta().annotations, annotations);
    assert_eq!(reader.batches().unwrap().map(|b| b.unwrap().events.len()).sum::<usize>(), 30);
    let rows = reader.rows(6, 5).unwrap();
    assert_eq!(rows.batch.events.iter().map(|e| e.head.seq).collect::<Vec<_>>(), [6, 7, 8, 9, 10]);
    assert_eq!(rows.annotations[0], ("hits".into(), Values::U64(vec![None, Some(7), Some(8), None, Some(10)])));
    assert_eq!(rows.annotations[1].1, Values::F64([3.0, 3.5, 4.0, 4.5, 5.0].map(Some).to_vec()));
    assert_eq!(rows.annotations[3].1.len(), 5);
    assert_eq!(reader.rows(28, 10).unwrap().batch.events.len(), 2);
    assert_eq!(reader.rows(1000, 10).unwrap().batch.events.len(), 0);
}

#[test]
fn nothing_is_left_or_overwritten_unasked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.workload");
    let names = || fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
    let mut writer = Writer::create(&path, WriterOptions::default()).unwrap();
    writer.push(&a_batch(10)).unwrap();
    drop(writer);
    assert!(names().is_empty(), "an interrupted writer leaves nothing: {:?}", names());

    let write = |n, overwrite| -> Result<_, FileError> {
        let mut writer = Writer::create(&path, WriterOptions { overwrite, ..WriterOptions::default() })?;
        writer.push(&a_batch(n))?;
        writer.finish(meta(), &Snapshot::default())
    };
    write(10, false).unwrap();
    assert!(matches!(write(11, false), Err(FileError::Exists { .. })));
    assert_eq!(Reader::open(&path).unwrap().events(), 10);
    write(12, true).unwrap();
    assert_eq!(Reader::open(&path).unwrap().events(), 12);
    assert_eq!(names(), ["w.workload"]);

    fs::write(path.join("notes.txt"), "mine").unwrap();
    assert!(matches!(write(13, true), Err(FileError::NotOurs { .. })));
    fs::write(dir.path().join("file"), "mine").unwrap();
    let file = dir.path().join("file");
    let onto = Writer::create(&file, WriterOptions { overwrite: true, ..WriterOptions::default() });
    assert!(matches!(onto.err().unwrap(), FileError::NotOurs { .. }));
}

#[test]
fn events_out_of_order_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut batch = a_batch(3);
    batch.events.swap(0, 1);
    let mut writer = Writer::create(&dir.path().join("w.workload"), WriterOptions::default()).unwrap();
    assert!(matches!(writer.push(&batch), Err(FileError::Invalid { .. })));
}

/// Everybody's names were readable by everybody, as far as the umask lets.
#[test]
fn a_profile_is_its_owners_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.workload");
    let mut writer = Writer::create(&path, WriterOptions::default()).unwrap();
    writer.push(&a_batch(3)).unwrap();
    writer.finish(meta(), &Snapshot::default()).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    let files: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
}
