//! Whether a replay ages a file system as its original was aged: aggregate layout score per simulated day, of both.
//!
//! The check of Smith and Seltzer (*File System Aging*, SIGMETRICS 1997, section 4) and of chapter 3 of Smith's
//! *Workload-Specific File System Benchmarks* (2001): there the original was a file server in use, here it can be any
//! run that was surveyed day by day. What may not live here: how layout is scored (crate `layout`), how runs are made
//! (`age`).

use layout::{Available, Series, SeriesPoint};
use serde::Serialize;

/// The scores of one simulated day.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DayPair {
    /// The day, at its end.
    pub day: f64,
    /// Aggregate layout score of the original; `None` where no file has two blocks.
    pub original: Option<f64>,
    /// Of the replay.
    pub replayed: Option<f64>,
}

/// The scores of the files of one range of lengths, on the last day.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizePair {
    /// Shortest, in bytes.
    pub low_bytes: u64,
    /// Longest.
    pub high_bytes: u64,
    /// Scored files of the original.
    pub original_files: u64,
    /// Scored files of the replay.
    pub replayed_files: u64,
    /// Aggregate layout score of the original's.
    pub original: Option<f64>,
    /// Of the replay's.
    pub replayed: Option<f64>,
}

/// An original and its replay compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SelfCheck {
    /// Of which file system or workload.
    pub name: String,
    /// The days that both were surveyed on, in order.
    pub days: Vec<DayPair>,
    /// Mean over the days of |replayed - original|; `None` where no day has both scores.
    pub mean_difference: Option<f64>,
    /// The largest of them.
    pub largest_difference: Option<f64>,
    /// Replayed less original on the last day.
    pub final_difference: Option<f64>,
    /// Correlation (Pearson) of the two over the days; `None` where one of them does not change.
    pub correlation: Option<f64>,
    /// By length, on the last day that both were surveyed on.
    pub by_size: Vec<SizePair>,
}

impl SelfCheck {
    /// Whether mean and final difference are below a bound (0.02 is what this method aims for).
    pub fn within(&self, bound: f64) -> bool {
        let below = |difference: Option<f64>| difference.is_some_and(|d| d.abs() < bound);
        below(self.mean_difference) && below(self.final_difference)
    }
}

/// Compares two series of surveys. Points of one day (to the nearest whole day) are paired; days that only one has are
/// left out.
pub fn compare(name: &str, original: &Series, replayed: &Series) -> SelfCheck {
    let mut pairs = Vec::new();
    let mut last = None;
    for (day, point) in by_day(original) {
        if let Some((_, other)) = by_day(replayed).into_iter().find(|(d, _)| *d == day) {
            pairs.push(DayPair { day: point.day, original: score(point), replayed: score(other) });
            last = Some((point, other));
        }
    }
    let by_size = last.map(|(a, b)| sizes(a, b)).unwrap_or_default();
    SelfCheck { by_size, ..compare_scores(name, pairs) }
}

/// Compares scores by day, without lengths of files.
pub fn compare_scores(name: &str, days: Vec<DayPair>) -> SelfCheck {
    let both: Vec<(f64, f64)> = days.iter().filter_map(|d| Some((d.original?, d.replayed?))).collect();
    let n = both.len() as f64;
    let differences = || both.iter().map(|(original, replayed)| replayed - original);
    SelfCheck {
        name: name.to_owned(),
        mean_difference: (!both.is_empty()).then(|| differences().map(f64::abs).sum::<f64>() / n),
        largest_difference: differences().map(f64::abs).max_by(f64::total_cmp),
        final_difference: days.last().and_then(|d| Some(d.replayed? - d.original?)),
        correlation: correlation(&both),
        by_size: Vec::new(),
        days,
    }
}

/// The last point of each day that has one.
fn by_day(series: &Series) -> Vec<(i64, &SeriesPoint)> {
    let mut days: Vec<(i64, &SeriesPoint)> = Vec::new();
    for point in &series.points {
        let day = point.day.round() as i64;
        match days.last_mut() {
            Some(last) if last.0 == day => last.1 = point,
            _ => days.push((day, point)),
        }
    }
    days
}

fn score(point: &SeriesPoint) -> Option<f64> {
    match &point.survey.files {
        Available::Known(files) => files.layout_score,
        Available::Unavailable(_) => None,
    }
}

fn sizes(original: &SeriesPoint, replayed: &SeriesPoint) -> Vec<SizePair> {
    let (Available::Known(a), Available::Known(b)) = (&original.survey.files, &replayed.survey.files) else {
        return Vec::new();
    };
    let mut ranges: Vec<(u64, u64)> = a.by_size.iter().chain(&b.by_size).map(|row| (row.low, row.high)).collect();
    ranges.sort_unstable();
    ranges.dedup();
    ranges
        .into_iter()
        .map(|(low, high)| {
            let row = |rows: &[layout::scores::class::ClassRow]| {
                rows.iter()
                    .find(|r| (r.low, r.high) == (low, high))
                    .map_or((0, None), |r| (r.scored_files, r.layout_score))
            };
            let ((original_files, original), (replayed_files, replayed)) = (row(&a.by_size), row(&b.by_size));
            SizePair { low_bytes: low, high_bytes: high, original_files, replayed_files, original, replayed }
        })
        .collect()
}

fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    let mean = |f: fn(&(f64, f64)) -> f64| pairs.iter().map(f).sum::<f64>() / n;
    let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |f: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|(x, y)| f(x - mx, y - my)).sum::<f64>();
    let spread = (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt();
    (pairs.len() > 1 && spread > 0.0).then(|| sum(&|x, y| x * y) / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(day: f64, original: f64, replayed: f64) -> DayPair {
        DayPair { day, original: Some(original), replayed: Some(replayed) }
    }

    #[test]
    fn differences_and_correlation() {
        let days = vec![
            DayPair { day: 0.0, original: None, replayed: Some(1.0) },
            pair(1.0, 0.9, 0.92),
            pair(2.0, 0.8, 0.79),
            pair(3.0, 0.7, 0.70),
        ];
        let check = compare_scores("x", days);
        assert!((check.mean_difference.expect("three days") - 0.01).abs() < 1e-12);
        assert!((check.largest_difference.expect("three days") - 0.02).abs() < 1e-12);
        assert!(check.final_difference.expect("a last day").abs() < 1e-12);
        assert!(check.correlation.expect("both change") > 0.98);
        assert!(check.within(0.02) && !check.within(0.005));
    }

    #[test]
    fn nothing_to_compare_is_said_so() {
        let none = compare_scores("x", vec![DayPair { day: 1.0, original: None, replayed: Some(1.0) }]);
        assert_eq!((none.mean_difference, none.final_difference, none.correlation), (None, None, None));
        assert!(!none.within(1.0));
        assert_eq!(compare_scores("x", vec![pair(1.0, 0.5, 0.5), pair(2.0, 0.5, 0.5)]).correlation, None);
    }
}
