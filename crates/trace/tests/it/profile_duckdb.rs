//! A profile read by software that is not ours: DuckDB, column by column.
//!
//! Needs `python3` with the `duckdb` module; skipped otherwise.

use crate::common::{meta, plain};
use posix::FileKind;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use trace::profile::{Annotation, AnnotationKind, Row, Values, Writer, WriterOptions, escape};
use trace::{Batch, FileId, OfdId, Op, Snapshot, SnapshotEntry};

/// Every row of a Parquet file as JSON, or `None` where DuckDB is missing.
fn duckdb_rows(file: &Path, order: &str) -> Option<Vec<Value>> {
    const SCRIPT: &str = "
import sys, json
import duckdb
cursor = duckdb.execute(f'select * from read_parquet(?) order by {sys.argv[2]}', [sys.argv[1]])
names = [d[0] for d in cursor.description]
for row in cursor.fetchall():
    print(json.dumps(dict(zip(names, row))))
";
    let python = testkit::python_with("duckdb")?;
    let output = Command::new(python).args(["-c", SCRIPT]).arg(file).arg(order).output().expect("python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect())
}

/// Events that have all that their operations can have, and more: what means nothing is not kept.
fn sample() -> Batch {
    let mut batch = Batch::default();
    for (i, &op) in Op::ALL.iter().cycle().take(200).enumerate() {
        let mut event = plain(i as u64 * 2, op);
        let n = i as u64;
        event.dur_ns = n * n;
        (event.pid, event.tid) = (u32::MAX - i as u32, i as u32);
        (event.ret, event.errno, event.flags) = (-(n as i64), i as u16 % 120, 1 << (i % 32));
        event.mode = (i % 3 == 0).then_some(i as u16 & 0o777);
        event.ofd = (i % 2 == 0).then_some(OfdId(u64::MAX - n));
        event.ofd2 = (i % 7 == 0).then_some(OfdId(n));
        event.file = (i % 5 != 0).then_some(FileId(n / 3));
        event.parent = (i % 4 != 0).then_some(FileId(n / 9));
        event.path = (i % 6 != 0).then(|| batch.paths.intern(format!("/dir/ü\n{}\\", i % 11).as_bytes()));
        event.path2 = (i % 9 == 0).then(|| batch.paths.intern(b"/bad\xff\xfeutf8"));
        event.caller_dir = (i % 8 == 0).then(|| batch.paths.intern(b"/dir"));
        event.caller_dir2 = (i % 10 == 0).then(|| batch.paths.intern(b"/dir"));
        event.offset = (i % 2 == 1).then_some(n << 50);
        event.offset2 = (i % 11 == 0).then_some(n);
        event.req_bytes = (i % 3 == 1).then_some(n * 4096);
        event.running_ns = (i % 5 == 2).then_some(n * n / 2);
        event.blocked_ns = (i % 5 < 3).then_some(n * n / 3);
        event.size_before = (i % 3 == 2).then_some(u64::MAX - n);
        batch.events.push(event.into());
    }
    batch
}

fn expected_rows(batch: &Batch, notes: &[Option<String>]) -> Vec<Value> {
    let text = |id: Option<trace::PathId>| id.map(|id| escape(batch.paths.get(id)).into_owned());
    let row = |(e, note): (&trace::Event, &Option<String>)| {
        let e = Row::from(e);
        json!({
            "seq": e.seq, "t_ns": e.t_ns, "dur_ns": e.dur_ns, "pid": e.pid, "tid": e.tid, "op": e.op.name(),
            "ofd_id": e.ofd.map(|i| i.0), "ofd_id2": e.ofd2.map(|i| i.0),
            "file_id": e.file.map(|i| i.0), "parent_id": e.parent.map(|i| i.0),
            "path": text(e.path), "path2": text(e.path2), "offset": e.offset, "offset2": e.offset2,
            "req_bytes": e.req_bytes, "ret": e.ret, "errno": e.errno, "flags": e.flags, "mode": e.mode,
            "size_before": e.size_before, "caller_dir": text(e.caller_dir), "caller_dir2": text(e.caller_dir2),
            "running_ns": e.running_ns, "blocked_ns": e.blocked_ns, "note": note,
        })
    };
    batch.events.iter().zip(notes).map(row).collect()
}

#[test]
fn duckdb_reads_every_column() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.workload");
    let batch = sample();
    let notes: Vec<Option<String>> =
        (0..batch.events.len()).map(|i| (i % 4 != 1).then(|| format!("note {i}"))).collect();
    let annotation = Annotation { name: "note".into(), kind: AnnotationKind::Utf8, meaning: "for the test".into() };
    let options = WriterOptions { annotations: vec![annotation], row_group_rows: 64, ..WriterOptions::default() };
    let mut link = SnapshotEntry::implied(b"/dir/link".to_vec(), FileKind::Symlink);
    link.target = Some(b"../\xff".to_vec());
    (link.ino, link.dev, link.mtime_ns, link.mode) = (u64::MAX, 7, -5, 0o777);
    let snapshot = Snapshot::from_entries(vec![link, SnapshotEntry::implied(b"/dir".to_vec(), FileKind::Directory)]);
    let mut writer = Writer::create(&path, options).unwrap();
    writer.push_annotated(&batch, &[Values::Utf8(notes.clone())]).unwrap();
    writer.finish(meta(), &snapshot).unwrap();

    let Some(rows) = duckdb_rows(&path.join("trace.parquet"), "seq") else { return };
    let expected = expected_rows(&batch, &notes);
    assert_eq!(rows.len(), expected.len());
    for (got, want) in rows.iter().zip(&expected) {
        assert_eq!(got, want);
    }
    let Some(rows) = duckdb_rows(&path.join("snapshot.parquet"), "path") else { return };
    let want = json!([
        {"path": "/dir", "kind": "directory", "size_bytes": 0, "mode": 0o755, "uid": 0, "gid": 0, "nlink": 1, "ino": 0,
         "dev": 0, "mtime_ns": 0, "target": null, "provenance": "trace"},
        {"path": "/dir/link", "kind": "symlink", "size_bytes": 0, "mode": 0o777, "uid": 0, "gid": 0, "nlink": 1,
         "ino": u64::MAX, "dev": 7, "mtime_ns": -5, "target": "../\\xFF", "provenance": "trace"},
    ]);
    assert_eq!(Value::Array(rows), want);
}
