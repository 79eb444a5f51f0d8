//! Layout score by file size: fresh, halfway and aged.

use super::{day, ends};
use document::chart::{Axis, Colours, Dot, chart};
use document::{Cell, Document, Table};
use layout::present::score;
use layout::{Series, SeriesPoint};

pub(super) fn by_size(document: &mut Document, series: &Series) {
    let Some((first, last)) = ends(series) else { return };
    let half = (first.day + last.day) / 2.0;
    let middle = series.points.iter().min_by(|a, b| (a.day - half).abs().total_cmp(&(b.day - half).abs()));
    let mut stages: Vec<&SeriesPoint> = Vec::new();
    for point in [Some(first), middle, Some(last)].into_iter().flatten() {
        if stages.last().is_none_or(|before| before.day < point.day) {
            stages.push(point);
        }
    }
    document.heading("Layout score by file size").table(table(&stages));
    let mut dots = Vec::new();
    for stage in &stages {
        let name = format!("day {}", day(stage.day));
        let rows = stage.survey.files.known().map(|f| f.by_size.as_slice()).unwrap_or_default();
        let scored = rows.iter().filter_map(|row| Some((row.high, row.layout_score?)));
        dots.extend(scored.map(|(high, score)| Dot::new(name.clone(), high as f64, score)));
    }
    if !dots.is_empty() {
        let (x, y) = (Axis::Bytes("file size up to"), Axis::Score("layout score"));
        document.plot(chart("Aggregate layout score of files by size.", x, y, Colours::InOrder, &dots));
    }
}

fn table(stages: &[&SeriesPoint]) -> Table {
    let titles: Vec<[String; 2]> =
        stages.iter().map(|s| [format!("Score, day {}", day(s.day)), format!("Files, day {}", day(s.day))]).collect();
    let mut columns = vec![("Size up to", "high_bytes")];
    columns.extend(titles.iter().flatten().map(|title| (title.as_str(), title.as_str())));
    let mut table = Table::new("by_size", "Classes end at powers of two.", &columns);
    let rows = |s: &SeriesPoint| s.survey.files.known().map(|f| f.by_size.clone()).unwrap_or_default();
    let of: Vec<_> = stages.iter().map(|s| rows(s)).collect();
    let mut sizes: Vec<u64> = of.iter().flatten().map(|row| row.high).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for high in sizes {
        let mut cells = vec![Cell::Bytes(high as f64)];
        for rows in &of {
            let row = rows.iter().find(|row| row.high == high);
            cells.push(score(row.and_then(|row| row.layout_score)));
            cells.push(Cell::Count(row.map_or(0, |row| row.files)));
        }
        table.row(cells);
    }
    table
}
