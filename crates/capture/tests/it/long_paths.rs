//! Files deep in a tree: their paths are told in whole as long as the kernel itself takes them, and beyond that the
//! file is known without.

use crate::common::{Row, may_record, record};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use trace::Op;

/// Records a shell that makes `depth` directories named `name` in each other, and writes and reads a file in the last;
/// the calls on it.
fn in_a_deep_directory(name: &str, depth: u32) -> (Vec<u8>, Vec<Row>) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let script = format!(
        "i=0; while [ $i -lt {depth} ]; do mkdir {name}; cd -P {name}; i=$((i + 1)); done; echo text >deep; cat deep; \
         rm deep"
    );
    let argv: Vec<OsString> = ["sh", "-c", &script].map(Into::into).to_vec();
    let recorded = record(&argv, directory.path());
    assert_eq!(recorded.status.code(), Some(0));
    assert_eq!(recorded.imported.summary.problems, []);
    let root = std::fs::canonicalize(directory.path()).expect("its path").into_os_string().into_vec();
    let is_on_it = |row: &Row| {
        matches!(row.event.op, Op::Open | Op::Write | Op::Read | Op::Unlink | Op::Stat)
            && row.path().ends_with(b"/deep")
    };
    let rows: Vec<Row> = recorded.rows.into_iter().filter(is_on_it).collect();
    let path = [root, format!("/{name}").repeat(depth as usize).into_bytes(), b"/deep".to_vec()].concat();
    let did = |op: Op| rows.iter().filter(|row| row.event.op == op).count();
    assert!(did(Op::Open) == 2 && did(Op::Write) >= 1 && did(Op::Read) >= 1 && did(Op::Unlink) == 1, "{rows:?}");
    (path, rows)
}

/// Torture in the kernel, seed 7, a million operations: below 64 directories a file was none.
#[test]
fn a_hundred_directories_deep() {
    if !may_record() {
        return;
    }
    let (path, rows) = in_a_deep_directory("d", 100);
    assert!(rows.iter().all(|row| row.path() == path), "{rows:?}");
    assert!(rows.iter().all(|row| row.event.file.is_some() && row.event.file == rows[0].event.file), "{rows:?}");
}

/// The same seed: so was one whose path is longer than any call takes.
#[test]
fn deeper_than_a_path_can_say() {
    if !may_record() {
        return;
    }
    let (path, rows) = in_a_deep_directory(&"n".repeat(240), 20);
    assert!(path.len() > 4096);
    assert!(rows.iter().all(|row| row.event.file.is_some() && row.event.file == rows[0].event.file), "{rows:?}");
    let moved = rows.iter().filter(|row| matches!(row.event.op, Op::Write | Op::Read));
    assert!(moved.clone().all(|row| row.event.offset.is_some()), "{rows:?}");
}
