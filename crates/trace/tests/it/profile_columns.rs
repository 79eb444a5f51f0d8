//! An operation's columns: docs/formats.md says which they are, and each comes back from a file.

use crate::common::{meta, plain};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trace::profile::{Reader, Row, Writer, WriterOptions};
use trace::{Batch, FileId, OfdId, Op, Snapshot};

type Cell = Option<String>;

/// What a row says in each of its columns that may be null. Columns and fields of [`Row`] are told apart by hand here,
/// so a new one that is in neither place does not compile.
fn cells(row: &Row, batch: &Batch) -> BTreeMap<&'static str, Cell> {
    let &Row { seq: _, t_ns: _, dur_ns: _, pid: _, tid: _, op: _, flags: _, errno: _, ret: _, .. } = row;
    let &Row { mode, ofd, ofd2, file, parent, path, path2, caller_dir, caller_dir2, .. } = row;
    let &Row { offset, offset2, req_bytes, size_before, running_ns, blocked_ns, .. } = row;
    let text = |id: Option<_>| id.map(|id| String::from_utf8_lossy(batch.paths.get(id)).into_owned());
    let number = |n: Option<u64>| n.map(|n| n.to_string());
    BTreeMap::from([
        ("ofd_id", number(ofd.map(|id| id.0))),
        ("ofd_id2", number(ofd2.map(|id| id.0))),
        ("file_id", number(file.map(|id| id.0))),
        ("parent_id", number(parent.map(|id| id.0))),
        ("path", text(path)),
        ("path2", text(path2)),
        ("offset", number(offset)),
        ("offset2", number(offset2)),
        ("req_bytes", number(req_bytes)),
        ("mode", number(mode.map(u64::from))),
        ("size_before", number(size_before)),
        ("caller_dir", text(caller_dir)),
        ("caller_dir2", text(caller_dir2)),
        ("running_ns", number(running_ns)),
        ("blocked_ns", number(blocked_ns)),
    ])
}

/// A row of an operation with something in every column, in each something else.
fn full(seq: u64, op: Op, batch: &mut Batch) -> Row {
    let mut path = |text: &str| Some(batch.paths.intern(text.as_bytes()));
    Row {
        mode: Some(0o640),
        ofd: Some(OfdId(11)),
        ofd2: Some(OfdId(12)),
        file: Some(FileId(13)),
        parent: Some(FileId(14)),
        path: path("/d/a"),
        path2: path("/e/b"),
        caller_dir: path("/d"),
        caller_dir2: path("/e"),
        offset: Some(15),
        offset2: Some(16),
        req_bytes: Some(17),
        size_before: Some(18),
        running_ns: Some(19),
        blocked_ns: Some(20),
        ..plain(seq, op)
    }
}

/// The rows of a table of the section on `trace.parquet`: of each cell what is between backquotes, and its text.
fn table(head: &str) -> Vec<Vec<(Vec<String>, String)>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section = page.split("\n### ").find(|section| section.starts_with("trace.parquet\n")).unwrap();
    let rows = section.lines().skip_while(|line| *line != head).skip(2).take_while(|line| line.starts_with('|'));
    let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let cell = |cell: &str| (quoted(cell), cell.trim().to_owned());
    rows.map(|row| row.trim_matches('|').split('|').map(cell).collect()).collect()
}

#[test]
fn each_operation_keeps_its_columns_in_a_file() {
    // Every row has these where the tracer can tell.
    const OF_ALL: [&str; 2] = ["running_ns", "blocked_ns"];
    let mut of_operation: BTreeMap<String, (BTreeSet<String>, bool)> = BTreeMap::new();
    for row in table("| operations | columns |") {
        let [(operations, _), (columns, text)] = &row[..] else { panic!("{row:?}: an operation's row has two cells") };
        for operation in operations {
            let columns = columns.iter().cloned().chain(OF_ALL.map(str::to_owned)).collect();
            let before = of_operation.insert(operation.clone(), (columns, text.contains("or else")));
            assert_eq!(before, None, "{operation} is there twice");
        }
    }
    let names: BTreeSet<String> = Op::ALL.iter().map(|op| op.name().to_owned()).collect();
    assert_eq!(of_operation.keys().cloned().collect::<BTreeSet<_>>(), names, "the operations of docs/formats.md");

    // Each operation twice: by a description, and without one.
    let mut batch = Batch::default();
    let mut rows = Vec::new();
    for &op in Op::ALL {
        let by_description = full(rows.len() as u64, op, &mut batch);
        rows.push(by_description);
        rows.push(Row { seq: rows.len() as u64, ofd: None, ..by_description });
    }
    batch.events = rows.iter().map(Into::into).collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.workload");
    let mut writer = Writer::create(&path, WriterOptions::default()).unwrap();
    writer.push(&batch).unwrap();
    writer.finish(meta(), &Snapshot::default()).unwrap();
    let read: Vec<Batch> = Reader::open(&path).unwrap().batches().unwrap().collect::<Result<_, _>>().unwrap();
    let read: Vec<_> =
        read.iter().flat_map(|batch| batch.events.iter().map(|event| cells(&Row::from(event), batch))).collect();
    assert_eq!(read.len(), rows.len());

    for (row, read) in rows.iter().zip(&read) {
        let (columns, either) = &of_operation[row.op.name()];
        for (column, cell) in cells(row, &batch) {
            let left_out = *either && column == if row.ofd.is_some() { "caller_dir" } else { "ofd_id" };
            let expected = if columns.contains(column) && !left_out { cell } else { None };
            assert_eq!(read[column], expected, "{column} of {} by {:?}", row.op.name(), row.ofd);
        }
    }
}

#[test]
fn the_page_has_each_column_that_may_be_null() {
    let rows = table("| column | type | null | meaning |");
    let optional = rows.iter().filter(|row| row[2].1 != "never").flat_map(|row| row[0].0.iter().map(String::as_str));
    let mut batch = Batch::default();
    let row = full(0, Op::Copy, &mut batch);
    let known = cells(&row, &batch);
    assert_eq!(optional.collect::<BTreeSet<_>>(), known.keys().copied().collect());
    let values: BTreeSet<&Cell> = known.values().collect();
    assert_eq!(values.len(), known.len(), "one column's value could pass for another's");
}
