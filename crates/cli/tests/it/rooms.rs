//! The rooms of the house are as DESIGN.md says: each crate has its row, uses only what stands above it, and says why
//! if it is large.

use crate::documents::{sources, top};
use std::collections::BTreeSet;
use std::path::Path;

/// The crates of the table, from the top.
fn table(design: &str) -> Vec<&str> {
    design.lines().filter_map(|line| line.strip_prefix("| `crates/")?.split('`').next()).collect()
}

/// What a crate needs to be built, tests apart.
fn dependencies(manifest: &str) -> BTreeSet<&str> {
    let after = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let section = after.split("\n[").next().unwrap_or_default();
    section.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).filter(|name| !name.is_empty()).collect()
}

#[test]
fn dependencies_point_down_the_table() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let design = std::fs::read_to_string(crates.join("../DESIGN.md")).unwrap();
    let table = table(&design);
    let folders: BTreeSet<String> =
        crates.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(table.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>(), folders);
    let mut arrows = 0;
    for (row, name) in table.iter().enumerate() {
        let manifest = std::fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
        for other in dependencies(&manifest).into_iter().filter(|other| folders.contains(*other)) {
            assert!(table[..row].contains(&other), "{name} uses {other}, which stands below it in DESIGN.md");
            arrows += 1;
        }
    }
    assert!(arrows > table.len(), "{arrows} arrows: the manifests were not understood");
}

/// A crate of more lines than this says in DESIGN.md why it is one.
const LARGE: usize = 9_000;

#[test]
fn a_large_crate_says_why_it_is_one() {
    let design = std::fs::read_to_string(top().join("DESIGN.md")).unwrap();
    let (_, reasons) = design.split_once("Crates of more than 9,000 lines").unwrap();
    let reasons = reasons.lines().skip(2).take_while(|line| !line.is_empty());
    let named: BTreeSet<&str> = reasons.filter_map(|line| line.strip_prefix("* `")?.split('`').next()).collect();
    let lines = |name: &str| -> usize {
        let texts = sources(&top().join("crates").join(name).join("src"));
        texts.values().map(|text| text.lines().count()).sum()
    };
    let large: BTreeSet<&str> = table(&design).into_iter().filter(|name| lines(name) > LARGE).collect();
    assert_eq!(large, named, "crates of more than {LARGE} lines, and those whose reason DESIGN.md gives");
}

/// As rustfmt.toml says; rustfmt itself breaks neither comments nor texts, and leaves what is around a long text as it
/// is.
const COLUMNS: usize = 120;

#[test]
fn lines_are_at_most_120_columns() {
    let rooms = ["benchmarks/src", "crates", "fuzz/fuzz_targets", "python/src"].map(|room| sources(&top().join(room)));
    let all = || rooms.iter().flatten().flat_map(|(path, text)| text.lines().zip(1..).map(move |line| (path, line)));
    assert!(all().count() > 200_000, "{} lines: the sources were not found", all().count());
    let long = all().filter(|(_, (line, _))| line.chars().count() > COLUMNS);
    let long: Vec<String> = long.map(|(path, (_, number))| format!("{}:{number}", path.display())).collect();
    assert!(long.is_empty(), "lines of more than {COLUMNS} columns:\n{}", long.join("\n"));
}
