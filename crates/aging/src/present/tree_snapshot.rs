//! A snapshot of a tree, in figures.

use crate::snapshot::Summary;
use document::{Cell, Document, Table};
use std::collections::BTreeMap;
use units::show;

/// As many as our own snapshots keep; somebody else's may have any number.
const UNREADABLE_MAX: usize = 20;

/// What is in one snapshot of `file_bytes` bytes.
pub fn tree_snapshot(name: &str, file_bytes: u64, summary: &Summary) -> Document {
    let meta = &summary.meta;
    let mut table = Table::new("snapshot", "", &[("Figure", "figure"), ("Value", "value")]);
    let mut add = |figure: &str, value: Cell| table.row(vec![Cell::from(figure), value]);
    add("directory", Cell::from(units::text::printable(&meta.root)));
    add("host", Cell::from(meta.host.clone()));
    add("file system", Cell::from(meta.fs_type.name()));
    let days = |ns: i64| format!("{:.3} (simulated days)", ns as f64 / 86_400e9);
    let date = |ns: i64| crate::snapshot::expand_name("%F %H:%M:%S UTC", ns).unwrap_or_default();
    let time = |ns: i64| Cell::from(if meta.simulated { days(ns) } else { date(ns) });
    add("taken", time(meta.taken_ns));
    add("walk", Cell::Ns(meta.taken_ns.saturating_sub(meta.began_ns).max(0) as f64));
    add("latest change of an inode", summary.last_change_ns.map_or(Cell::Empty, time));
    add("size", Cell::Bytes(meta.total_bytes as f64));
    add("free", Cell::Bytes(meta.free_bytes as f64));
    add("files", Cell::Count(summary.files));
    add("directories", Cell::Count(summary.directories));
    add("symbolic links", Cell::Count(summary.symlinks));
    add("special files", Cell::Count(summary.special));
    add("further names (hard links)", Cell::Count(summary.further_names));
    add("lengths of files", Cell::Bytes(summary.bytes as f64));
    add("space of files", Cell::Bytes(summary.allocated_bytes as f64));
    add("inodes of known generation", Cell::Count(summary.with_generation));
    let groups = meta.inode_groups.map(|g| Cell::from(format!("{} of {} inodes", g.count, g.inodes_per_group)));
    add("allocation groups", groups.unwrap_or_else(|| Cell::from("not known")));
    if let Some(blocks) = &summary.blocks {
        let without: u64 = blocks.files_without.values().sum();
        add("files with a block list", Cell::Count(blocks.files));
        add("files without", Cell::Count(without));
        add("directories with a block list", Cell::Count(blocks.directories));
        add("extents in block lists", Cell::Count(blocks.extents));
        add("bytes in block lists", Cell::Bytes(blocks.bytes as f64));
    }
    add("unreadable", Cell::Count(meta.unreadable));
    add("on other file systems or mounts, left out", Cell::Count(meta.other_file_systems));
    add("bytes of this file", Cell::Bytes(file_bytes as f64));
    let mut document = Document::new(format!("Snapshot {name}"));
    document.table(table);
    if let Some(why) = &meta.no_generations {
        document.paragraph(format!(
            "Generations of inodes are not known ({why}). Successive snapshots then tell a file from another with the \
             same inode number by its place, length and modification time only."
        ));
    }
    if let Some(blocks) = &summary.blocks {
        let told = |which: &str, without: &BTreeMap<String, u64>| -> Vec<String> {
            let line = |(why, n): (&String, &u64)| {
                format!("{} {which} without a block list: {}", show::count(*n), units::text::printable(why))
            };
            without.iter().map(line).collect()
        };
        document.list(told("files", &blocks.files_without)).list(told("directories", &blocks.directories_without));
    }
    let (first, others) = meta.first_unreadable.split_at(UNREADABLE_MAX.min(meta.first_unreadable.len()));
    let mut lines: Vec<String> = first.iter().map(|line| units::text::printable(line)).collect();
    if !others.is_empty() {
        lines.push(format!("and {} more, which the JSON result has", show::count(others.len() as u64)));
    }
    document.list(lines);
    document
}
