//! LFS images: what was made, what a check found, and structures as they are.

use crate::dump::{DirectoryDump, IfileDump, InodeDump, PartialRow, SegmentDump, SegmentRow, SuperblockDump};
use crate::format::{Field, Piece};
use crate::fsck::Report;
use crate::mkfs::Made;
use crate::{Cleaned, Inserted, text};
use document::{Cell, Document, Table};
use units::show;

const FIGURES: [(&str, &str); 2] = [("Figure", "figure"), ("Value", "value")];

fn add(table: &mut Table, figure: &str, value: Cell) {
    table.row(vec![Cell::from(figure), value]);
}

fn exact(n: impl ToString) -> Cell {
    Cell::from(n.to_string())
}

/// A new file system, and what was copied into it.
pub fn made(image: &str, made: &Made, done: Option<&Inserted>) -> Document {
    let mut table = Table::new("mkfs", "", &FIGURES);
    add(&mut table, "size", Cell::Bytes(made.size_bytes as f64));
    add(&mut table, "for data", Cell::Bytes(made.data_bytes as f64));
    add(&mut table, "free", Cell::Bytes(made.free_bytes as f64));
    add(&mut table, "block", Cell::Bytes(made.bsize.into()));
    add(&mut table, "fragment", Cell::Bytes(made.fsize.into()));
    add(&mut table, "segments", Cell::Count(made.segments.into()));
    add(&mut table, "bytes of a segment", Cell::Bytes(made.ssize.into()));
    add(&mut table, "segments for the cleaner", Cell::Count(made.minfreeseg.into()));
    add(&mut table, "blocks of the ifile", Cell::Count(made.ifile_blocks));
    let places: Vec<String> = made.superblocks_at.iter().map(u64::to_string).collect();
    add(&mut table, "superblocks at bytes", Cell::from(places.join(", ")));
    add(&mut table, "identity", Cell::from(format!("{:#x}", made.ident)));
    let mut document = Document::new(format!("Made a log-structured file system in {image}"));
    document.table(table);
    if let Some(done) = done {
        ufs::present::into(document.heading("Copied"), done);
    }
    document
}

/// What the cleaner has done.
pub fn cleaned(image: &str, done: &Cleaned) -> Document {
    let mut table = Table::new("cleaned", "", &FIGURES);
    add(&mut table, "segments", Cell::Count(done.segments.into()));
    add(&mut table, "of them clean before", Cell::Count(done.clean_before.into()));
    add(&mut table, "and after", Cell::Count(done.clean_after.into()));
    add(&mut table, "segments that live data were moved out of", Cell::Count(done.cleaned));
    if done.cleaned > 0 {
        add(&mut table, "how full they were", Cell::Share(done.mean_utilisation));
    }
    add(&mut table, "read", Cell::Bytes(done.read_bytes as f64));
    add(&mut table, "written", Cell::Bytes(done.written_bytes as f64));
    let mut document = Document::new(format!("Cleaned {image}"));
    document.table(table);
    document
}

/// A check.
pub fn checked(image: &str, report: &Report) -> Document {
    let mut document = Document::new(format!("Check of {image}"));
    document.paragraph(format!("{}.", capital(&report.state())));
    let columns =
        [("Part", "phase"), ("Kind", "kind"), ("Inode", "ino"), ("Segment", "segment"), ("Problem", "problem")];
    let mut problems = Table::new("problems", "", &columns);
    let number = |n: Option<u32>| n.map_or(Cell::Empty, exact);
    for problem in &report.problems {
        problems.row(vec![
            Cell::from(problem.phase.title()),
            Cell::from(problem.kind),
            number(problem.ino),
            number(problem.segment),
            Cell::from(problem.message.clone()),
        ]);
    }
    document.table(problems);
    if report.problem_count > report.problems.len() as u64 {
        let more = report.problem_count - report.problems.len() as u64;
        document.paragraph(format!("{} more problems are not listed.", show::count(more)));
    }
    let (contents, done) = (&report.contents, &report.rolled_forward);
    let bytes = |frags: f64| Cell::Bytes(frags * f64::from(report.fsize));
    let mut table = Table::new("contents", "", &FIGURES);
    add(&mut table, "superblock at byte", exact(report.superblock_at));
    let serials = report.serials.map(|serial| serial.map_or("damaged".to_owned(), |n| n.to_string()));
    add(&mut table, "serial numbers of the two checkpoints", Cell::from(serials.join(", ")));
    if done.partial_segments > 0 || done.dropped > 0 {
        add(&mut table, "rolled forward to serial number", exact(done.to_serial));
        add(&mut table, "partial segments dropped", Cell::Count(done.dropped));
    }
    add(&mut table, "files", Cell::Count(contents.files));
    add(&mut table, "directories", Cell::Count(contents.directories));
    add(&mut table, "live", Cell::Bytes(contents.live_bytes as f64));
    add(&mut table, "summaries and inode blocks", bytes(contents.meta_frags as f64));
    add(&mut table, "free", bytes(contents.free_frags as f64));
    add(&mut table, "before segments must be cleaned", bytes(contents.available_frags as f64));
    add(&mut table, "clean segments", Cell::Count(contents.clean_segments));
    add(&mut table, "dirty segments", Cell::Count(contents.dirty_segments));
    add(&mut table, "problems", Cell::Count(report.problem_count));
    document.table(table);
    document.paragraph(match (report.is_clean(), report.marked_clean) {
        (true, true) => "Clean.",
        (true, false) => "Clean after roll-forward in memory; a mount does the same. Nothing was changed.",
        (false, _) => "Nothing was changed.",
    });
    document
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn fields(name: &str, fields: &[Field]) -> Table {
    let mut table = Table::new(name, "", &[("Byte", "at"), ("Field", "field"), ("Value", "value")]);
    for field in fields {
        table.row(vec![exact(field.at), Cell::from(field.name), Cell::from(field.value.clone())]);
    }
    table
}

/// A superblock.
pub fn superblock(dump: &SuperblockDump) -> Document {
    let mut document = Document::new(format!("Superblock at byte {}", dump.at_byte));
    document.table(fields("superblock", &dump.fields));
    let mut all = Table::new("superblocks", "", &[("Byte", "at_byte"), ("Serial", "serial")]);
    for (at, serial) in &dump.all {
        all.row(vec![exact(at), serial.map_or(Cell::from("damaged"), exact)]);
    }
    document.heading("All superblocks").table(all);
    document
}

const SEGMENT_COLUMNS: [(&str, &str); 8] = [
    ("Segment", "segment"),
    ("First fragment", "base"),
    ("Live bytes", "nbytes"),
    ("Utilisation", "utilisation"),
    ("Partial segments", "nsums"),
    ("Inode blocks", "ninos"),
    ("Last written", "lastmod"),
    ("Flags", "flags"),
];

fn segment_row(row: &SegmentRow) -> Vec<Cell> {
    vec![
        exact(row.segment),
        exact(row.base),
        exact(row.nbytes),
        Cell::Share(row.utilisation),
        exact(row.nsums),
        exact(row.ninos),
        exact(row.lastmod),
        Cell::from(row.flags.join(" ")),
    ]
}

/// All segments, a line each.
pub fn segments(rows: &[SegmentRow]) -> Document {
    let mut table = Table::new("segments", "", &SEGMENT_COLUMNS);
    for row in rows {
        table.row(segment_row(row));
    }
    let mut document = Document::new("Segment usage");
    document.table(table);
    document
}

/// One segment, with what its partial segments hold.
pub fn segment(dump: &SegmentDump) -> Document {
    let mut document = Document::new(format!("Segment {}", dump.usage.segment));
    let mut usage = Table::new("usage", "", &SEGMENT_COLUMNS);
    usage.row(segment_row(&dump.usage));
    document.table(usage);
    let columns = [
        ("Fragment", "addr"),
        ("Behind it", "end"),
        ("Serial", "serial"),
        ("Written", "create"),
        ("Next segment", "next"),
        ("Flags", "flags"),
        ("Inodes", "ninos"),
        ("Checksum", "datasum"),
        ("Counts", "counts"),
    ];
    let mut partials = Table::new("partial_segments", "", &columns);
    for (i, row) in dump.partials.iter().enumerate() {
        partials.row(vec![
            exact(row.addr),
            exact(row.end),
            exact(row.serial),
            exact(row.create),
            exact(row.next),
            Cell::from(row.flags.join(" ")),
            exact(row.ninos),
            Cell::from(if row.datasum_is_right { "right" } else { "wrong" }),
            Cell::from(if i < usize::from(dump.counted) { "yes" } else { "no" }),
        ]);
    }
    document.heading("Partial segments").table(partials);
    document.paragraph(format!("No more, since {}.", dump.ended_by));
    for row in &dump.partials {
        document.heading(format!("Partial segment {}", row.serial)).table(pieces(row));
    }
    document
}

fn pieces(row: &PartialRow) -> Table {
    let columns = [
        ("Fragment", "addr"),
        ("What", "what"),
        ("Inode", "ino"),
        ("Version", "version"),
        ("Block", "lbn"),
        ("Size", "bytes"),
    ];
    let mut table = Table::new("pieces", "", &columns);
    for piece in &row.pieces {
        table.row(match piece {
            Piece::Inodes { addr } => {
                vec![exact(addr), Cell::from("inodes"), Cell::Empty, Cell::Empty, Cell::Empty, Cell::Empty]
            }
            Piece::Block { addr, ino, version, lbn, bytes } => vec![
                exact(addr),
                Cell::from(if *lbn < 0 { "indirect block" } else { "data" }),
                exact(ino),
                exact(version),
                exact(lbn),
                Cell::Bytes((*bytes).into()),
            ],
        });
    }
    table
}

/// The ifile.
pub fn ifile(dump: &IfileDump) -> Document {
    let mut document = Document::new(format!("Ifile of {} blocks", dump.blocks));
    document.table(fields("cleaner_info", &dump.cleaner));
    let columns = [("Inode", "ino"), ("Version", "version"), ("Fragment", "addr"), ("Last read", "atime")];
    let mut map = Table::new("inode_map", "", &columns);
    for row in &dump.in_use {
        map.row(vec![exact(row.ino), exact(row.version), exact(row.addr), exact(row.atime)]);
    }
    document.heading("Inodes in use").table(map);
    document.paragraph(format!("{} of {} inodes are free.", show::count(dump.free), show::count(dump.entries)));
    document
}

/// An inode.
pub fn inode(dump: &InodeDump) -> Document {
    let kind = dump.file_type.map_or_else(|| "of no known type".to_owned(), |t| t.to_string());
    let title = format!("Inode {} at fragment {}, segment {}: {kind}", dump.ino, dump.addr, dump.segment);
    let mut document = Document::new(title);
    if let Some(target) = &dump.target {
        document.paragraph(format!("target: {target}"));
    }
    document.table(fields("inode", &dump.fields));
    if let Some(map) = &dump.map {
        document.heading("Entry of the inode map").table(fields("map", &map.fields()));
    }
    let columns = [("Block of the file", "lbn"), ("Fragment", "addr"), ("Segment", "segment"), ("Size", "bytes")];
    let mut runs = Table::new("runs", "", &columns);
    for run in &dump.runs {
        runs.row(vec![exact(run.lbn), exact(run.addr), exact(run.segment), Cell::Bytes(run.bytes as f64)]);
    }
    document.heading("Blocks").table(runs);
    document
}

/// A directory.
pub fn directory(dump: &DirectoryDump) -> Document {
    let mut table = Table::new("directory", "", &[("Inode", "ino"), ("Type", "type"), ("Name", "name")]);
    for entry in &dump.entries {
        table.row(vec![exact(entry.ino), Cell::from(entry.kind.clone()), Cell::from(text::escaped(&entry.name))]);
    }
    let mut document = Document::new(format!("Directory, inode {}", dump.ino));
    document.table(table);
    document
}
