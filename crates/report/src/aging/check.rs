//! How well a replay reproduces its original: layout score per day of both (Smith and Seltzer 1997, section 4; Smith 2001,
//! chapter 3).

use crate::chart::{Axis, Colours, Dot, chart};
use crate::layout::score;
use crate::{Cell, Document, Table};

/// An original and its replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Of which file system or workload.
    pub name: String,
    /// Simulated day, and the aggregate layout scores of original and replay at its end; `None` where one is not known.
    pub days: Vec<(f64, Option<f64>, Option<f64>)>,
    /// Mean over the days of |replayed - original|.
    pub mean_difference: Option<f64>,
    /// Replayed less original on the last day.
    pub final_difference: Option<f64>,
}

/// Several checks: a report of their own.
pub fn self_check(checks: &[Check]) -> Document {
    let mut document = Document::new("Aging checked against itself");
    section(&mut document, checks);
    document
}

/// Both scores by day.
pub(super) fn section(document: &mut Document, checks: &[Check]) {
    document.heading("Original and replay").paragraph(
        "The original performs every operation; the replay what was planned from daily snapshots of it. Both should age alike.",
    );
    let mut table = Table::new(
        "self_check",
        "",
        &[
            ("Of", "name"),
            ("Days", "days"),
            ("Original, at the end", "original_score"),
            ("Replayed, at the end", "replayed_score"),
            ("Mean difference", "mean_difference"),
            ("Final difference", "final_difference"),
        ],
    );
    let mut dots = Vec::new();
    for check in checks {
        let last = check.days.last();
        table.row(vec![
            Cell::from(check.name.clone()),
            Cell::Count(check.days.len() as u64),
            score(last.and_then(|d| d.1)),
            score(last.and_then(|d| d.2)),
            score(check.mean_difference),
            check.final_difference.map_or(Cell::Empty, Cell::SignedScore),
        ]);
        for (day, original, replayed) in &check.days {
            for (kind, value) in [("original", original), ("replayed", replayed)] {
                let dot = |y: f64| Dot { kind: kind.to_owned(), ..Dot::new(check.name.clone(), *day, y) };
                dots.extend(value.map(dot));
            }
        }
    }
    document.table(table);
    if !dots.is_empty() {
        let title = "Aggregate layout score by day: the original and its replay.";
        document.plot(chart(title, super::over_time::DAYS, Axis::Score("layout score"), Colours::Apart, &dots));
    }
}
