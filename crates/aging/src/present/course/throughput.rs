//! Throughput by file size, fresh against aged.

use document::plot::{IntervalPoint, interval_lines};
use document::{Cell, Document, Table};
use stats::Estimate;
use workload::{Compared, Comparison, Unit, Verdict};

/// A rate's unit for people, and what it is divided by.
const fn unit(of: Unit) -> (&'static str, f64) {
    let (title, _, scale) = workload::present::unit(of);
    (title, scale)
}

/// The phases of a comparison, in their order.
pub(super) fn phases(rows: &[Compared]) -> Vec<workload::Phase> {
    let mut phases = Vec::new();
    for row in rows {
        if !phases.contains(&row.phase) {
            phases.push(row.phase);
        }
    }
    phases
}

/// The ratio with its interval, where it has one.
pub(super) fn ratio(row: &Compared) -> Cell {
    match row.verdict {
        Verdict::Unknown => Cell::Ratio(row.ratio.median),
        _ => Cell::Interval { value: row.ratio.median, low: row.ratio.low, high: row.ratio.high },
    }
}

/// One comparison: a table, and a plot of rates for each phase.
pub(super) fn one(document: &mut Document, comparison: &Comparison) {
    document.paragraph(format!(
        "{}: fresh is {}, aged is {}. {}",
        comparison.benchmark,
        comparison.a,
        comparison.b,
        comparison.how_to_read("the aged one")
    ));
    document.list(comparison.cautions.iter().map(ToString::to_string).collect());
    let mut table = Table::new(
        "throughput",
        "",
        &[
            ("Files", "file_size"),
            ("Phase", "phase"),
            ("Fresh", "fresh"),
            ("Aged", "aged"),
            ("Unit", "unit"),
            ("Aged / fresh", "ratio"),
            ("Aged is", "verdict"),
        ],
    );
    for row in &comparison.rows {
        let (name, scale) = unit(row.unit);
        let rate = |e: &Estimate| Cell::Interval { value: e.median / scale, low: e.low / scale, high: e.high / scale };
        table.row(vec![
            Cell::from(row.label.clone()),
            Cell::from(row.phase.name()),
            rate(&row.a),
            rate(&row.b),
            Cell::from(name),
            ratio(row),
            Cell::from(row.verdict.name()),
        ]);
    }
    document.table(table);
    for phase in phases(&comparison.rows) {
        let rows: Vec<&Compared> = comparison.rows.iter().filter(|row| row.phase == phase).collect();
        let Some((name, scale)) = rows.first().map(|row| unit(row.unit)) else { continue };
        let of = |series: &'static str, side: fn(&Compared) -> &Estimate| {
            rows.iter().filter_map(move |row| {
                let (x, e) = (row.size_bytes? as f64, side(row));
                Some(IntervalPoint { series, x, y: e.median / scale, low: e.low / scale, high: e.high / scale })
            })
        };
        let points: Vec<IntervalPoint<'_>> = of("fresh", |row| &row.a).chain(of("aged", |row| &row.b)).collect();
        if !points.is_empty() {
            let title = format!("Rate of {} by file size, fresh and aged, with 95 % intervals.", phase.name());
            document.plot(interval_lines(&title, "file size", &format!("{}, {name}", phase.name()), &points));
        }
    }
}
