//! A recorded run of ordinary tools (sh, cp, mv, ln, tar, sort, rm, find, xargs, dd) and the events it must become.
//! `FSAGE_BLESS=1` rewrites the expectation.

use crate::import_common::import;
use std::path::Path;

#[test]
fn a_run_of_ordinary_tools() {
    let import = import(include_str!("../data/tools.strace"));
    let mut text: String = import.rows.iter().map(|row| row.text() + "\n").collect();
    text.push_str(&serde_json::to_string_pretty(&import.summary).expect("JSON"));
    text.push('\n');
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tools.golden");
    if std::env::var_os("FSAGE_BLESS").is_some() {
        std::fs::write(&path, &text).expect("written");
    }
    let want = std::fs::read_to_string(&path).expect("tests/data/tools.golden");
    for (i, (got, want)) in text.lines().zip(want.lines()).enumerate() {
        assert_eq!(got, want, "line {}", i + 1);
    }
    assert_eq!(text.lines().count(), want.lines().count());
}
