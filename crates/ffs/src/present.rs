//! FFS images: what was made, what a check found, what was copied, and structures as they are.

use crate::dump::{DirectoryDump, FreeRun, GroupDump, GroupRow, InodeDump, RunRow, SuperblockDump};
use crate::format::Field;
use crate::fsck::{Left, Report};
use crate::mkfs::Made;
use crate::{FreeFigures, Inserted, text};
use document::{Cell, Document, Table};
use units::show;

const FIGURES: [(&str, &str); 2] = [("Figure", "figure"), ("Value", "value")];

fn add(table: &mut Table, figure: &str, value: Cell) {
    table.row(vec![Cell::from(figure), value]);
}

/// A new file system, and what was copied into it.
pub fn made(image: &str, made: &Made, done: Option<&Inserted>) -> Document {
    let mut table = Table::new("mkfs", "", &FIGURES);
    add(&mut table, "format", Cell::from(format!("{}, {}", made.version, made.endian)));
    add(&mut table, "size", Cell::Bytes(made.size_bytes as f64));
    add(&mut table, "for data", Cell::Bytes(made.data_bytes as f64));
    add(&mut table, "block", Cell::Bytes(made.bsize.into()));
    add(&mut table, "fragment", Cell::Bytes(made.fsize.into()));
    add(&mut table, "cylinder groups", Cell::Count(made.groups.into()));
    add(&mut table, "bytes of a group", Cell::Bytes(f64::from(made.fpg) * f64::from(made.fsize)));
    add(&mut table, "inodes of a group", Cell::Count(made.ipg.into()));
    add(&mut table, "superblock at byte", Cell::from(made.superblock_at.to_string()));
    let copies: Vec<String> = made.copies_at.iter().take(4).map(u64::to_string).collect();
    let more = if made.copies_at.len() > 4 { ", …" } else { "" };
    add(&mut table, "copies at bytes", Cell::from(copies.join(", ") + more));
    add(&mut table, "seed", Cell::from(made.seed.to_string()));
    let mut document = Document::new(format!("Made a file system in {image}"));
    document.table(table);
    if let Some(done) = done {
        ufs::present::into(document.heading("Copied"), done);
    }
    document
}

/// A check.
pub fn checked(image: &str, report: &Report, outcome: &str) -> Document {
    let mut document = Document::new(format!("Check of {image}"));
    let mut problems = Table::new(
        "problems",
        "",
        &[
            ("Phase", "phase"),
            ("Kind", "kind"),
            ("Inode", "ino"),
            ("Byte", "at_byte"),
            ("Problem", "problem"),
            ("Repair", "repair"),
        ],
    );
    let number = |n: Option<u64>| n.map_or(Cell::Empty, |n| Cell::from(n.to_string()));
    for problem in &report.problems {
        problems.row(vec![
            Cell::from(problem.phase.title()),
            Cell::from(problem.kind.word()),
            number(problem.ino.map(u64::from)),
            number(problem.at_byte),
            Cell::from(problem.message.clone()),
            Cell::from(problem.repair.as_deref().unwrap_or("none known")),
        ]);
    }
    document.table(problems);
    if report.problem_count > report.problems.len() as u64 {
        let more = report.problem_count - report.problems.len() as u64;
        document.paragraph(format!("{} more problems are not listed.", show::count(more)));
    }
    let contents = &report.contents;
    let bytes = |frags: u64| Cell::Bytes(frags as f64 * f64::from(report.fsize));
    let mut table = Table::new("contents", "", &FIGURES);
    add(&mut table, "format", Cell::from(format!("{}, {}", report.version, report.endian)));
    add(&mut table, "superblock at byte", Cell::from(report.superblock_at.to_string()));
    add(&mut table, "marked clean", Cell::from(if report.marked_clean { "yes" } else { "no" }));
    add(&mut table, "files", Cell::Count(contents.files));
    add(&mut table, "directories", Cell::Count(contents.directories));
    add(&mut table, "used", bytes(contents.used_frags));
    add(&mut table, "free", bytes(contents.free_frags));
    add(&mut table, "of that in part blocks", bytes(contents.free_in_part_blocks));
    add(&mut table, "fragmentation", Cell::Share(contents.fragmentation));
    add(&mut table, "problems", Cell::Count(report.problem_count));
    document.table(table);
    document.paragraph(outcome);
    document
}

fn fields(name: &str, caption: &str, fields: &[Field]) -> Table {
    let mut table = Table::new(name, caption, &[("Byte", "at"), ("Field", "field"), ("Value", "value")]);
    for field in fields {
        table.row(vec![Cell::from(field.at.to_string()), Cell::from(field.name), Cell::from(field.value.clone())]);
    }
    table
}

/// What a check in the background has given back.
pub fn checked_in_background(image: &str, left: &Left, fsize: u32, outcome: &str) -> Document {
    let mut document = Document::new(format!("Check of {image} in the background"));
    let mut table = Table::new("left", "", &FIGURES);
    add(&mut table, "files and directories without a name", Cell::Count(left.unnamed));
    add(&mut table, "link counts too high", Cell::Count(left.link_counts));
    add(&mut table, "inodes marked as used", Cell::Count(left.inodes));
    add(&mut table, "space marked as used", Cell::Bytes(left.frags as f64 * f64::from(fsize)));
    document.heading("What the crash has left").table(table).paragraph(outcome);
    document
}

/// How long it took until a file system could be used, and until its check in the background had ended.
pub fn checked_beside_work(document: &mut Document, machine: &str, drive: &str, (usable_ns, ended_ns): (u64, u64)) {
    let mut table = Table::new("virtual_time", "", &FIGURES);
    add(&mut table, "machine", Cell::from(machine));
    add(&mut table, "drive", Cell::from(drive));
    add(&mut table, "until it can be used", Cell::Ns(usable_ns as f64));
    add(&mut table, "until all is given back", Cell::Ns(ended_ns as f64));
    document.heading("In virtual time").table(table);
}

/// A superblock.
pub fn superblock(dump: &SuperblockDump) -> Document {
    let mut document = Document::new(format!("Superblock at byte {}", dump.at_byte));
    let wide = if dump.wide_fields { "" } else { ", wide fields not in use" };
    document.paragraph(format!("{}, {}{wide}", dump.version, dump.endian));
    document.table(fields("superblock", "", &dump.fields));
    document
}

/// All groups, a line each.
pub fn groups(rows: &[GroupRow]) -> Document {
    let columns = [
        ("Group", "group"),
        ("Byte", "at_byte"),
        ("First fragment", "base"),
        ("Fragments", "frags"),
        ("Directories", "ndir"),
        ("Free blocks", "nbfree"),
        ("Free fragments", "nffree"),
        ("Free inodes", "nifree"),
    ];
    let mut table = Table::new("groups", "", &columns);
    let exact = |n: u64| Cell::from(n.to_string());
    let signed = |n: i32| Cell::from(n.to_string());
    for row in rows {
        table.row(vec![
            exact(row.group.into()),
            exact(row.at_byte),
            exact(row.base),
            exact(row.frags.into()),
            signed(row.ndir),
            signed(row.nbfree),
            signed(row.nffree),
            signed(row.nifree),
        ]);
    }
    let mut document = Document::new("Cylinder groups");
    document.table(table);
    document
}

/// One group.
pub fn group(dump: &GroupDump) -> Document {
    let mut document = Document::new(format!("Cylinder group {} at byte {}", dump.group, dump.at_byte));
    document.table(fields("group", "", &dump.fields));
    let mut clusters = Table::new(
        "clusters",
        "Runs of free blocks by length; the last line counts longer ones too.",
        &[("Blocks", "blocks"), ("Runs", "runs")],
    );
    for (i, count) in dump.cluster_sum.iter().enumerate() {
        clusters.row(vec![Cell::from((i + 1).to_string()), Cell::Count((*count).into())]);
    }
    document.heading("Clusters").table(clusters);
    let mut used = Table::new("used_inodes", "", &[("From", "from"), ("To", "to")]);
    for (from, to) in &dump.used_inodes {
        used.row(vec![Cell::from(from.to_string()), Cell::from(to.to_string())]);
    }
    document.heading("Inodes in use").table(used);
    document.heading("Free fragments").table(free_table(&dump.free));
    document
}

/// Free fragments.
pub fn free(runs: &[FreeRun]) -> Document {
    let mut document = Document::new("Free fragments");
    document.table(free_table(runs));
    document
}

/// What is free, of maps or of a file system made of them.
pub fn free_maps(image: &str, figures: &FreeFigures) -> Document {
    let mut table = Table::new("free", "", &FIGURES);
    add(&mut table, "size", Cell::Bytes(figures.size_bytes as f64));
    add(&mut table, "cylinder groups", Cell::Count(figures.groups.into()));
    add(&mut table, "free", Cell::Bytes(figures.free_bytes as f64));
    add(&mut table, "of that in part blocks", Cell::Bytes(figures.in_part_blocks_bytes as f64));
    add(&mut table, "runs of free fragments", Cell::Count(figures.runs));
    add(&mut table, "longest", Cell::Bytes(figures.longest_run_bytes as f64));
    let mut document = Document::new(format!("Free space of {image}"));
    document.table(table);
    document
}

fn free_table(runs: &[FreeRun]) -> Table {
    let columns = [("Group", "group"), ("First fragment", "addr"), ("Fragments", "frags"), ("Size", "bytes")];
    let mut table = Table::new("free", "", &columns);
    for run in runs {
        table.row(vec![
            Cell::from(run.group.to_string()),
            Cell::from(run.addr.to_string()),
            Cell::Count(run.frags),
            Cell::Bytes(run.bytes as f64),
        ]);
    }
    table
}

/// An inode.
pub fn inode(dump: &InodeDump) -> Document {
    let kind = dump.file_type.map_or_else(|| "not in use or of no known type".to_owned(), |t| t.to_string());
    let title = format!("Inode {} at byte {}, group {}: {kind}", dump.ino, dump.at_byte, dump.group);
    let mut document = Document::new(title);
    if let Some(target) = &dump.target {
        document.paragraph(format!("target: {target}"));
    }
    document.table(fields("inode", "", &dump.fields));
    document.heading("Data").table(runs("runs", &dump.runs));
    if !dump.extended.is_empty() {
        document.heading("Extended attributes").table(runs("extended", &dump.extended));
    }
    document
}

fn runs(name: &str, rows: &[RunRow]) -> Table {
    let columns = [("Block of the file", "lbn"), ("Fragment", "addr"), ("Group", "group"), ("Size", "bytes")];
    let mut table = Table::new(name, "", &columns);
    for run in rows {
        table.row(vec![
            Cell::from(run.lbn.to_string()),
            Cell::from(run.addr.to_string()),
            Cell::from(run.group.to_string()),
            Cell::Bytes(run.bytes as f64),
        ]);
    }
    table
}

/// A directory.
pub fn directory(dump: &DirectoryDump) -> Document {
    let mut table = Table::new("directory", "", &[("Inode", "ino"), ("Type", "type"), ("Name", "name")]);
    for entry in &dump.entries {
        table.row(vec![
            Cell::from(entry.ino.to_string()),
            Cell::from(entry.kind.clone()),
            Cell::from(text::escaped(&entry.name)),
        ]);
    }
    let mut document = Document::new(format!("Directory, inode {}", dump.ino));
    document.table(table);
    document
}
