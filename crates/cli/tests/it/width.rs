//! How wide text is where standard output is no terminal.

use crate::common::{fsage, succeeds};

/// The widest line that is printed.
fn widest(columns: Option<&str>) -> usize {
    let mut command = fsage();
    match columns {
        Some(columns) => command.env("COLUMNS", columns),
        None => command.env_remove("COLUMNS"),
    };
    let text = succeeds(&command.args(["plan", "personality", "--list"]).output().unwrap());
    text.lines().map(|line| line.chars().count()).max().unwrap()
}

#[test]
fn columns_says_how_wide_and_otherwise_a_hundred_are_enough() {
    let whole = widest(Some("1000"));
    assert!(whole > 100, "{whole}: the test needs a wide table");
    for (columns, most) in [(Some("60"), 60), (Some("90"), 90), (None, 100)] {
        let widest = widest(columns);
        assert!(widest <= most && widest > most - 25, "{columns:?}: {widest}");
    }
}
