//! How well a replay reproduces its original: layout score per day of both (Smith and Seltzer 1997, section 4; Smith
//! 2001, chapter 3).

use crate::verify::SelfCheck;
use document::chart::{Axis, Colours, Dot, chart};
use document::{Cell, Document, Table};
use layout::present::score;

/// Checks, as a report of their own.
pub fn self_check(checks: &[SelfCheck]) -> Document {
    let mut document = Document::new("Aging checked against itself");
    section(&mut document, checks);
    document
}

/// Both scores by day, and by file size on the last.
pub(super) fn section(document: &mut Document, checks: &[SelfCheck]) {
    document.heading("Original and replay").paragraph(
        "The original performs every operation; the replay what was planned from daily snapshots of it. Both should \
         age alike.",
    );
    document.table(differences(checks));
    let pairs = |check: &SelfCheck| check.days.iter().map(|d| (d.day, d.original, d.replayed)).collect::<Vec<_>>();
    let dots = dots(checks, pairs);
    if !dots.is_empty() {
        let title = "Aggregate layout score by day: the original and its replay.";
        document.plot(chart(title, super::over_time::DAYS, Axis::Score("layout score"), Colours::Apart, &dots));
    }
    let pairs = |check: &SelfCheck| {
        check.by_size.iter().map(|s| (s.high_bytes as f64, s.original, s.replayed)).collect::<Vec<_>>()
    };
    let dots = self::dots(checks, pairs);
    document.table(sizes(checks));
    if !dots.is_empty() {
        let title = "Aggregate layout score by file size on the last day: the original and its replay.";
        let (x, y) = (Axis::Bytes("file size up to"), Axis::Score("layout score"));
        document.plot(chart(title, x, y, Colours::Apart, &dots));
    }
}

type Pair = (f64, Option<f64>, Option<f64>);

/// A solid line for each original, a dashed one for its replay.
fn dots(checks: &[SelfCheck], pairs: impl Fn(&SelfCheck) -> Vec<Pair>) -> Vec<Dot> {
    let mut dots = Vec::new();
    for check in checks {
        for (x, original, replayed) in pairs(check) {
            for (kind, value) in [("original", original), ("replayed", replayed)] {
                let dot = |y: f64| Dot { kind: kind.to_owned(), ..Dot::new(check.name.clone(), x, y) };
                dots.extend(value.map(dot));
            }
        }
    }
    dots
}

fn differences(checks: &[SelfCheck]) -> Table {
    let mut table = Table::new(
        "self_check",
        "",
        &[
            ("Of", "name"),
            ("Days", "days"),
            ("Original, last day", "original_score"),
            ("Replayed", "replayed_score"),
            ("Mean |difference|", "mean_difference"),
            ("Largest", "largest_difference"),
            ("Last day", "final_difference"),
            ("Correlation", "correlation"),
        ],
    );
    for check in checks {
        let last = check.days.last();
        table.row(vec![
            Cell::from(check.name.clone()),
            Cell::Count(check.days.len() as u64),
            score(last.and_then(|d| d.original)),
            score(last.and_then(|d| d.replayed)),
            score(check.mean_difference),
            score(check.largest_difference),
            check.final_difference.map_or(Cell::Empty, Cell::SignedScore),
            check.correlation.map_or(Cell::Empty, Cell::Number),
        ]);
    }
    table
}

fn sizes(checks: &[SelfCheck]) -> Table {
    let mut table = Table::new(
        "self_check_by_size",
        "Files that have a score, and their aggregate score, on the last day.",
        &[
            ("Of", "name"),
            ("Size up to", "high_bytes"),
            ("Files, original", "original_files"),
            ("Replayed", "replayed_files"),
            ("Score, original", "original_score"),
            ("Replayed", "replayed_score"),
        ],
    );
    for check in checks {
        for row in &check.by_size {
            table.row(vec![
                Cell::from(check.name.clone()),
                Cell::Bytes(row.high_bytes as f64),
                Cell::Count(row.original_files),
                Cell::Count(row.replayed_files),
                score(row.original),
                score(row.replayed),
            ]);
        }
    }
    table
}
