//! The rooms of the house are as DESIGN.md says: each crate has its row, and uses only what stands above it.

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
