//! Layout and free space of a file system, and two surveys side by side.

pub mod map;

use self::map::{Panel, maps};
use crate::scores::class::ClassRow;
use crate::scores::free::FreeSpace;
use crate::{Available, Comparison, FilesLayout, Survey};
use document::chart::{Axis, Colours, Dot, chart, steps};
use document::{Cell, Document, Plot, Table};
use units::show;

/// One survey.
pub fn layout(survey: &Survey) -> Document {
    let source = &survey.source;
    let mut document = Document::new(format!("Layout of {}", source.target));
    document.table(source_table(survey));
    document.list(source.notes.clone());
    document.heading("Files");
    match &survey.files {
        Available::Known(files) => {
            document.table(files_table(files)).table(kinds_table(files));
            if let Some(why) = files.split.why() {
                document.paragraph(format!("Split files are not available: {why}."));
            }
            document.heading("Layout score by size").table(size_table(files)).table(block_table(files));
            document.plot(score_plot(&[("layout score".to_owned(), files)]));
            document.table(worst_table(files));
        }
        Available::Unavailable(why) => drop(document.paragraph(format!("Not available: {why}"))),
    }
    document.heading("Free space");
    match &survey.free {
        Available::Known(free) => {
            document.table(free_table(free)).table(histogram_table(free));
            document.plot(cdf_plot(&[("free space".to_owned(), free)]));
        }
        Available::Unavailable(why) => drop(document.paragraph(format!("Not available: {why}"))),
    }
    if survey.map.is_some() {
        document.heading("The disk");
        map_of(&mut document, &[(&source.target, survey)]);
    }
    if !survey.walked.unreadable_examples.is_empty() {
        let total: u64 = survey.walked.unreadable.values().sum();
        document.heading(format!("Not read: {}", show::count(total)));
        document.list(survey.walked.unreadable_examples.clone());
    }
    document
}

/// Two surveys side by side.
pub fn layout_comparison(comparison: &Comparison, a: &Survey, b: &Survey) -> Document {
    let mut document = Document::new(format!("Layout: {} (A) and {} (B)", comparison.a, comparison.b));
    document.list(comparison.cautions.iter().map(ToString::to_string).collect());
    let mut table =
        Table::new("layout_comparison", "", &[("Figure", "figure"), ("A", "a"), ("B", "b"), ("B - A", "difference")]);
    for row in &comparison.figures {
        let cell = |value: Option<f64>| value.map_or(Cell::Empty, |value| in_unit(&row.unit, value));
        let difference = row.difference.map_or(Cell::Empty, |value| match row.unit.as_str() {
            "bytes" => Cell::Bytes(value),
            "share" => Cell::SignedShare(value),
            "score" => Cell::SignedScore(value),
            _ => Cell::Number(value),
        });
        table.row(vec![Cell::from(row.figure.clone()), cell(row.a), cell(row.b), difference]);
    }
    document.table(table);
    let mut sizes = Table::new(
        "layout_by_size_comparison",
        "Aggregate layout score by file size.",
        &[
            ("Size up to", "high_bytes"),
            ("Files A", "files_a"),
            ("Files B", "files_b"),
            ("Score A", "score_a"),
            ("Score B", "score_b"),
            ("B - A", "difference"),
        ],
    );
    for row in &comparison.by_size {
        sizes.row(vec![
            Cell::Bytes(row.high_bytes as f64),
            Cell::Count(row.files_a),
            Cell::Count(row.files_b),
            score(row.score_a),
            score(row.score_b),
            row.difference.map_or(Cell::Empty, Cell::SignedScore),
        ]);
    }
    document.heading("By size").table(sizes);
    let names = [format!("A: {}", comparison.a), format!("B: {}", comparison.b)];
    let files: Vec<(String, &FilesLayout)> =
        names.iter().zip([a, b]).filter_map(|(name, survey)| Some((name.clone(), survey.files.known()?))).collect();
    let free: Vec<(String, &FreeSpace)> =
        names.iter().zip([a, b]).filter_map(|(name, survey)| Some((name.clone(), survey.free.known()?))).collect();
    if !files.is_empty() {
        document.plot(score_plot(&files));
    }
    if !free.is_empty() {
        document.plot(cdf_plot(&free));
    }
    if a.map.is_some() || b.map.is_some() {
        document.heading("The disk");
        let [name_a, name_b] = names.each_ref().map(String::as_str);
        map_of(&mut document, &[(name_a, a), (name_b, b)]);
    }
    document
}

/// The map of one survey, where it has one.
pub fn map_of(document: &mut Document, surveys: &[(&str, &Survey)]) {
    let mut panels = Vec::new();
    for (title, survey) in surveys {
        match &survey.map {
            Some(Available::Known(map)) => {
                panels.push(Panel { title: (*title).to_owned(), map, age: Box::new(|ns| days_before(survey, ns)) })
            }
            Some(Available::Unavailable(why)) => drop(document.paragraph(format!("{title}: there is no map: {why}."))),
            None => {}
        }
    }
    maps(document, &panels, "last written, days before the survey", false);
}

/// Days from a time to a survey; 0 of a later one.
pub fn days_before(survey: &Survey, unix_ns: i64) -> f64 {
    (survey.source.taken_unix_s as f64 - unix_ns as f64 / 1e9).max(0.0) / 86_400.0
}

/// A figure in its unit.
pub fn in_unit(unit: &str, value: f64) -> Cell {
    match unit {
        "bytes" => Cell::Bytes(value),
        "share" => Cell::Share(value),
        "score" => score(Some(value)),
        // Counts are below 2^53 where they can be told apart at all.
        "count" => Cell::Count(value as u64),
        "percent" => Cell::Share(value / 100.0),
        _ => Cell::Number(value),
    }
}

/// A layout score, where there is one.
pub fn score(value: Option<f64>) -> Cell {
    value.map_or(Cell::Empty, Cell::Score)
}

/// A share, where there is one.
pub fn share(value: Option<f64>) -> Cell {
    value.map_or(Cell::Empty, Cell::Share)
}

fn figures(name: &str, caption: &str) -> Table {
    Table::new(name, caption, &[("Figure", "figure"), ("Value", "value")])
}

fn add(table: &mut Table, figure: &str, value: Cell) {
    table.row(vec![Cell::from(figure), value]);
}

fn source_table(survey: &Survey) -> Table {
    let (source, walked) = (&survey.source, &survey.walked);
    let mut table = figures("source", "");
    add(&mut table, "file system", Cell::from(source.fs_type.name()));
    add(&mut table, "options", Cell::from(source.options.clone()));
    add(&mut table, "block", Cell::Bytes(source.block_bytes as f64));
    add(&mut table, "size", Cell::Bytes(source.total_bytes as f64));
    let used = source.total_bytes.saturating_sub(source.free_bytes) as f64;
    add(&mut table, "in use", share((source.total_bytes > 0).then(|| used / source.total_bytes as f64)));
    add(&mut table, "addresses", Cell::from(source.addresses.describe()));
    if let Some(groups) = source.groups {
        let kind = match groups.kind {
            crate::geometry::GroupKind::Ext4BlockGroups => "block groups",
            crate::geometry::GroupKind::XfsAllocationGroups => "allocation groups",
            crate::geometry::GroupKind::BtrfsDataBlockGroups => "data block groups",
            crate::geometry::GroupKind::CylinderGroups => "cylinder groups",
        };
        add(&mut table, kind, Cell::Count(groups.count));
    }
    add(&mut table, "files", Cell::Count(walked.files));
    add(&mut table, "further names of the same files", Cell::Count(walked.further_links));
    add(&mut table, "directories", Cell::Count(walked.directories));
    table
}

fn files_table(files: &FilesLayout) -> Table {
    let mut table = figures("files", "");
    add(&mut table, "aggregate layout score", score(files.layout_score));
    if let Some(hot) = &files.hot {
        let days = if hot.days.fract() == 0.0 { hot.days.to_string() } else { show::significant(hot.days) };
        let named = |what: &str| format!("{what} modified in the last {days} days");
        if files.hot_apart().is_some() {
            add(&mut table, &named("layout score of files"), score(hot.row.layout_score));
            add(&mut table, &named("files"), Cell::Count(hot.row.files));
            add(&mut table, "their share of placed blocks", share(hot.share_of_blocks));
        } else {
            let which = if hot.row.files == 0 { "none" } else { "all: they have no figures of their own" };
            add(&mut table, &named("files"), Cell::from(which));
        }
    }
    add(&mut table, "files that have a score", Cell::Count(files.all.scored_files));
    add(&mut table, "files in more than one piece", Cell::Count(files.all.broken_files));
    add(&mut table, "blocks not after their predecessor", Cell::Count(files.score.breaks()));
    add(&mut table, "extents", Cell::Count(files.all.extents));
    add(&mut table, "extents per file", files.all.extents_per_file.map_or(Cell::Empty, Cell::Number));
    add(&mut table, "extents per MiB", files.extents_per_mib.map_or(Cell::Empty, Cell::Number));
    match &files.split {
        Available::Known(split) => {
            add(&mut table, "split files (data in another group than the inode)", share(split.share()));
            if let Some(beyond) = split.split_beyond_flex {
                let beyond = (split.files > 0).then(|| beyond as f64 / split.files as f64);
                add(&mut table, "split beyond the flexible group", share(beyond));
            }
            let mean = split.distance_groups.mean_bytes();
            add(&mut table, "mean distance of split files, groups", mean.map_or(Cell::Empty, Cell::Number));
        }
        Available::Unavailable(_) => add(&mut table, "split files", Cell::from("not available, see below")),
    }
    add(&mut table, "next file in directory order starts where the last ended", share(files.locality.adjacent_share()));
    add(&mut table, "next file within 1 MiB", share(files.locality.share_below(1 << 20)));
    add(&mut table, "mean distance to the next file", files.locality.mean_bytes().map_or(Cell::Empty, Cell::Bytes));
    add(&mut table, "seeks of a tree scan", Cell::Count(files.scan.seeks));
    add(&mut table, "seeks per MiB read", files.scan.seeks_per_mib().map_or(Cell::Empty, Cell::Number));
    add(&mut table, "distance of a tree scan", Cell::Bytes(files.scan.distance_bytes as f64));
    add(&mut table, "mean seek", files.scan.mean_seek_bytes().map_or(Cell::Empty, Cell::Bytes));
    add(&mut table, "XFS fragmentation factor", Cell::Share(files.xfs_fragmentation));
    table
}

fn kinds_table(files: &FilesLayout) -> Table {
    let mut table = Table::new(
        "kinds",
        "Extents counted apart. Inline, encoded, delayed and unknown ones are not in the score.",
        &[("Kind", "kind"), ("Files", "files"), ("Extents", "extents"), ("Bytes in files", "bytes")],
    );
    let kinds = &files.kinds;
    for (name, tally) in [
        ("inline", kinds.inline),
        ("encoded (compressed)", kinds.encoded),
        ("shared", kinds.shared),
        ("unwritten", kinds.unwritten),
        ("delayed", kinds.delayed),
        ("unknown", kinds.unknown),
    ] {
        if tally.extents > 0 {
            table.row(vec![
                Cell::from(name),
                Cell::Count(tally.files),
                Cell::Count(tally.extents),
                Cell::Bytes(tally.bytes as f64),
            ]);
        }
    }
    table
}

fn class_cells(first: Cell, row: &ClassRow) -> Vec<Cell> {
    vec![
        first,
        Cell::Count(row.files),
        Cell::Bytes(row.bytes as f64),
        score(row.layout_score),
        row.extents_per_file.map_or(Cell::Empty, Cell::Number),
        Cell::Count(row.broken_files),
    ]
}

const CLASS_COLUMNS: [(&str, &str); 5] = [
    ("Files", "files"),
    ("Bytes", "bytes"),
    ("Layout score", "layout_score"),
    ("Extents per file", "extents_per_file"),
    ("Broken files", "broken_files"),
];

fn class_table(name: &str, caption: &str, first: (&str, &str)) -> Table {
    let columns: Vec<(&str, &str)> = std::iter::once(first).chain(CLASS_COLUMNS).collect();
    Table::new(name, caption, &columns)
}

fn size_table(files: &FilesLayout) -> Table {
    let mut table = class_table("by_size", "Classes end at powers of two.", ("Size up to", "high_bytes"));
    for row in &files.by_size {
        table.row(class_cells(Cell::Bytes(row.high as f64), row));
    }
    table
}

fn block_table(files: &FilesLayout) -> Table {
    let mut table =
        class_table("by_blocks", "Small files by their exact number of placed blocks.", ("Blocks", "blocks"));
    for row in &files.by_blocks {
        table.row(class_cells(Cell::Count(row.low), row));
    }
    table
}

fn worst_table(files: &FilesLayout) -> Table {
    let mut table = Table::new(
        "worst",
        "The files with the most blocks not after their predecessor.",
        &[
            ("Path", "path"),
            ("Size", "size_bytes"),
            ("Extents", "extents"),
            ("Breaks", "breaks"),
            ("Layout score", "layout_score"),
        ],
    );
    for file in &files.worst {
        table.row(vec![
            Cell::from(file.path.clone()),
            Cell::Bytes(file.size_bytes as f64),
            Cell::Count(file.extents),
            Cell::Count(file.breaks),
            score(Some(file.layout_score)),
        ]);
    }
    table
}

fn free_table(free: &FreeSpace) -> Table {
    let mut table = figures("free", "");
    add(&mut table, "free space", Cell::Bytes(free.free_bytes as f64));
    if let Some(bytes) = free.unallocated_bytes {
        add(&mut table, "device space in no chunk, apart", Cell::Bytes(bytes as f64));
    }
    add(&mut table, "free extents", Cell::Count(free.extents));
    add(&mut table, "largest", Cell::Bytes(free.largest_bytes as f64));
    add(&mut table, "mean", free.mean_bytes.map_or(Cell::Empty, Cell::Bytes));
    for chunk in &free.chunks {
        let size = show::bytes(chunk.chunk_bytes as f64);
        add(&mut table, &format!("in extents of {size} or more"), Cell::Share(chunk.share));
        add(&mut table, &format!("in whole aligned chunks of {size}"), Cell::Share(chunk.aligned_share));
    }
    let zfs = free.zfs_percent.map_or(Cell::Empty, |percent| Cell::Share(percent as f64 / 100.0));
    add(&mut table, "fragmentation by ZFS's table", zfs);
    let fsperf = &free.fsperf;
    add(&mut table, "fragmented groups (fsperf)", Cell::Count(fsperf.fragmented_groups));
    add(&mut table, "their mean fragmentation (fsperf)", Cell::Share(fsperf.mean_percent / 100.0));
    add(&mut table, "95th percentile (fsperf)", Cell::Share(fsperf.p95_percent / 100.0));
    table
}

fn histogram_table(free: &FreeSpace) -> Table {
    let mut table = Table::new(
        "free_histogram",
        "Free extents by length.",
        &[("From", "low_bytes"), ("Extents", "extents"), ("Bytes", "bytes"), ("Share of free", "share")],
    );
    for bucket in free.histogram.iter().filter(|b| b.extents > 0) {
        table.row(vec![
            Cell::Bytes(bucket.low_bytes as f64),
            Cell::Count(bucket.extents),
            Cell::Bytes(bucket.bytes as f64),
            Cell::Share(bucket.bytes as f64 / free.free_bytes.max(1) as f64),
        ]);
    }
    table
}

fn score_plot(surveys: &[(String, &FilesLayout)]) -> Plot {
    let mut points = Vec::new();
    for (name, files) in surveys {
        let rows = files.by_size.iter().filter_map(|row| Some((row.high, row.layout_score?)));
        points.extend(rows.map(|(high, score)| Dot::new(name.clone(), high as f64, score)));
    }
    let (x, y) = (Axis::Bytes("file size up to"), Axis::Score("layout score"));
    chart("Aggregate layout score by file size.", x, y, Colours::Apart, &points)
}

fn cdf_plot(surveys: &[(String, &FreeSpace)]) -> Plot {
    let mut points = Vec::new();
    for (name, free) in surveys {
        points.extend(free.cdf.iter().map(|p| Dot::new(name.clone(), p.len_bytes as f64, p.share)));
    }
    let (x, y) = (Axis::Bytes("length of free extent"), Axis::Share("share of free space"));
    steps("Share of free space in extents up to a length.", x, y, Colours::Apart, &points)
}
