//! Figures by simulated day: layout, and use against what was planned.

use super::{day, day_cell, thinned};
use document::chart::{Axis, Colours, Dot, chart};
use document::{Cell, Document, Table};
use layout::Series;
use layout::present::{score, share};
use layout::series::{Days, PointSummary};
use units::show;

/// Rows a table by day has at most.
const ROWS_MAX: usize = 40;
/// Points a line has at most.
const DOTS_MAX: usize = 1000;

pub(super) const DAYS: Axis<'static> = Axis::Days("simulated day");

/// The axis of days of some series.
pub(super) fn days<'s>(mut series: impl Iterator<Item = &'s Series>) -> Axis<'static> {
    if series.any(|series| series.header.days == Days::Simulated) { DAYS } else { Axis::Days("day") }
}

/// Score, pieces and split files by day.
pub(super) fn layout(document: &mut Document, series: &Series) {
    let points: Vec<PointSummary> = series.points.iter().map(|p| p.summary()).collect();
    document.heading("Layout over time").table(by_day(&points));
    let axis = days(std::iter::once(series));
    let of = |name: &str, figure: fn(&PointSummary) -> Option<f64>| -> Vec<Dot> {
        points.iter().filter_map(|p| Some(Dot::new(name, p.day, figure(p)?))).collect()
    };
    let mut scores = of("all files", |p| p.layout_score);
    if scores.is_empty() {
        return;
    }
    // Where all files are hot, they say nothing of their own.
    let hot = series.points.iter().filter_map(|p| p.survey.files.known()?.hot.as_ref()?.share_of_files);
    if hot.into_iter().any(|share| share < 1.0) {
        scores.extend(of("hot files", |p| p.hot_layout_score));
    }
    let title = "Aggregate layout score: the share of blocks that directly follow the one before them in their file.";
    document.plot(chart(title, axis, Axis::Score("layout score"), Colours::Apart, &scores));
    let title = "Extents for each MiB of data.";
    document.plot(chart(title, axis, Axis::Number("extents per MiB"), Colours::Apart, &of("", |p| p.extents_per_mib)));
    let mut shares = of("in more than one piece", |p| p.broken_share);
    shares.extend(of("split: data in another group", |p| p.split_share));
    document.plot(chart(
        "Files of two blocks or more in more than one piece, and files whose first block is in another allocation \
         group than the inode.",
        axis,
        Axis::Share("share of files"),
        Colours::Apart,
        &shares,
    ));
}

fn by_day(points: &[PointSummary]) -> Table {
    let columns = [
        ("Day", "day"),
        ("Operations", "operations"),
        ("In use", "used_share"),
        ("Files", "files"),
        ("Layout score", "layout_score"),
        ("Extents per MiB", "extents_per_mib"),
        ("In pieces", "broken_share"),
        ("Split", "split_share"),
    ];
    let rows = thinned(points, ROWS_MAX);
    let caption = if rows.len() < points.len() {
        format!("{} of {} surveys, evenly spaced.", rows.len(), points.len())
    } else {
        String::new()
    };
    let mut table = Table::new("by_day", &caption, &columns);
    // Snapshots do not say how many there were.
    let told = points.iter().any(|p| p.operations > 0);
    let operations = |n: u64| if told { Cell::Count(n) } else { Cell::Empty };
    for p in rows {
        table.row(vec![
            day_cell(p.day),
            operations(p.operations),
            share(p.used_share),
            Cell::Count(p.files),
            score(p.layout_score),
            p.extents_per_mib.map_or(Cell::Empty, Cell::Number),
            share(p.broken_share),
            share(p.split_share),
        ]);
    }
    table
}

/// Use against the plan.
pub(super) fn used(document: &mut Document, series: &Series) {
    if series.used.is_empty() {
        return;
    }
    document.heading("Utilisation").paragraph(deviation(series));
    let mut table = Table::new(
        "utilisation",
        "",
        &[
            ("Day", "day"),
            ("Planned", "planned_share"),
            ("Actual", "actual_share"),
            ("Actual - planned, points", "difference"),
        ],
    );
    for used in thinned(&series.used, ROWS_MAX / 2) {
        let difference = used.planned_share.map(|planned| used.actual_share - planned);
        table.row(vec![
            day_cell(used.day),
            share(used.planned_share),
            Cell::Share(used.actual_share),
            difference.map_or(Cell::Empty, Cell::SignedShare),
        ]);
    }
    document.table(table);
    let drawn = thinned(&series.used, DOTS_MAX);
    let planned = drawn.iter().filter_map(|u| Some(Dot::new("planned", u.day, u.planned_share?)));
    let dots: Vec<Dot> = planned.chain(drawn.iter().map(|u| Dot::new("actual", u.day, u.actual_share))).collect();
    let axis = days(std::iter::once(series));
    let title = "Share of the file system in use, as planned and as statvfs had it.";
    document.plot(chart(title, axis, Axis::Share("in use"), Colours::Apart, &dots));
}

/// What the series has; the result of the run counts every reading, against what was steered to.
const READ: &str = "At the first reading of each day, use was";

fn deviation(series: &Series) -> String {
    let off = series.used.iter().filter_map(|u| Some((u, u.actual_share - u.planned_share?)));
    let over = off.clone().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, by)| *by > 0.0);
    let under = off.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, by)| *by < 0.0);
    let far = |which: &str, found: Option<(&layout::series::UsedPoint, f64)>| {
        found.map(|(u, by)| {
            format!("at most {} points {which} the plan (day {})", show::significant(by.abs() * 100.0), day(u.day))
        })
    };
    if [over, under].into_iter().flatten().all(|(_, by)| by.abs() < 0.0005) {
        let planned = series.used.iter().any(|u| u.planned_share.is_some());
        return if planned { format!("{READ} within 0.05 points of the plan.") } else { String::new() };
    }
    let parts: Vec<String> = [far("over", over), far("under", under)].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!("{READ} {}.", parts.join(", ")) }
}
