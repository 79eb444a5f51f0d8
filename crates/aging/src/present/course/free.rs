//! Free space by simulated day: how much of it is in how large pieces.

use super::{day, day_cell, thinned};
use document::chart::{Axis, Colours, Dot, steps};
use document::{Cell, Document, Table};
use layout::present::share;
use layout::{Series, SeriesPoint};

/// Distributions drawn at most.
const CURVES_MAX: usize = 6;
/// Rows of the table at most.
const ROWS_MAX: usize = 40;

pub(super) fn over_time(document: &mut Document, series: &Series) {
    let known: Vec<&SeriesPoint> = series.points.iter().filter(|p| p.survey.free.known().is_some()).collect();
    document.heading("Free space over time").table(table(&known));
    let mut dots = Vec::new();
    for point in thinned(&known, CURVES_MAX) {
        let name = format!("day {}", day(point.day));
        let cdf = point.survey.free.known().map(|f| f.cdf.as_slice()).unwrap_or_default();
        dots.extend(cdf.iter().map(|p| Dot::new(name.clone(), p.len_bytes as f64, p.share)));
    }
    if !dots.is_empty() {
        let title =
            "Share of free space in free extents up to a length: the further left a curve, the smaller the pieces.";
        let (x, y) = (Axis::Bytes("length of free extent"), Axis::Share("share of free space"));
        document.plot(steps(title, x, y, Colours::InOrder, &dots));
    }
}

fn table(points: &[&SeriesPoint]) -> Table {
    let mut table = Table::new(
        "free_by_day",
        "Large pieces: the share of free space in extents of at least 64 KiB and 1 MiB.",
        &[
            ("Day", "day"),
            ("Free", "free_bytes"),
            ("Extents", "free_extents"),
            ("Largest", "largest_free_bytes"),
            ("In 64 KiB", "free_in_64k_share"),
            ("In 1 MiB", "free_in_1m_share"),
        ],
    );
    for point in thinned(points, ROWS_MAX) {
        let p = point.summary();
        let bytes = |bytes: Option<u64>| bytes.map_or(Cell::Empty, |bytes| Cell::Bytes(bytes as f64));
        table.row(vec![
            day_cell(p.day),
            bytes(p.free_bytes),
            p.free_extents.map_or(Cell::Empty, Cell::Count),
            bytes(p.largest_free_bytes),
            share(p.free_in_64k_share),
            share(p.free_in_1m_share),
        ]);
    }
    table
}
