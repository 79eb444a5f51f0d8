//! A whole series, in memory.

use super::frames;
use super::record::{ClockPoint, Record, SeriesHeader, SeriesPoint, UsedPoint, day_of};
use crate::LayoutError;
use serde::Serialize;
use std::path::Path;

/// Surveys over time.
#[derive(Clone, Debug, PartialEq, Default, Serialize)]
pub struct Series {
    /// What it is of.
    pub header: SeriesHeader,
    /// Surveys, in order of time.
    pub points: Vec<SeriesPoint>,
    /// Both clocks, in order of time.
    pub clock: Vec<ClockPoint>,
    /// Use, in order of time.
    pub used: Vec<UsedPoint>,
    /// Bytes of an incomplete record at the end of the file, left out.
    pub torn_bytes: u64,
}

impl Series {
    /// Reads a series.
    ///
    /// # Errors
    /// [`LayoutError::Io`]; [`LayoutError::SeriesFile`] with the byte where the file is not what it should be.
    pub fn load(path: &Path) -> Result<Series, LayoutError> {
        let mut series = Series::default();
        let torn = frames::read(path, &mut |_, record| {
            match record {
                Record::Header(header) => series.header = *header,
                Record::Point(point) => series.points.push(*point),
                Record::Clock(clock) => series.clock.push(clock),
                Record::Used(used) => series.used.push(used),
            }
            true
        })?;
        series.torn_bytes = torn.torn_bytes;
        Ok(series)
    }

    /// The simulated day of a moment by the wall clock, between the clock's points in proportion; before the first and
    /// after the last, theirs. `None` without a clock.
    pub fn day_of_unix_ns(&self, unix_ns: i64) -> Option<f64> {
        let after = self.clock.partition_point(|c| c.unix_ns <= unix_ns);
        let before = after.checked_sub(1).and_then(|i| self.clock.get(i));
        match (before, self.clock.get(after)) {
            (None, None) => None,
            (Some(only), None) | (None, Some(only)) => Some(day_of(only.simulated_ns)),
            (Some(a), Some(b)) => {
                let part = (unix_ns.abs_diff(a.unix_ns)) as f64 / (b.unix_ns.abs_diff(a.unix_ns)) as f64;
                let (a, b) = (day_of(a.simulated_ns), day_of(b.simulated_ns));
                Some(a + (b - a) * part)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_read_between_its_points() {
        let day = 86_400_000_000_000;
        let clock = [(1000, 0), (2000, 10 * day), (5000, 13 * day)];
        let clock = clock.map(|(unix_ns, simulated_ns)| ClockPoint { unix_ns, simulated_ns }).to_vec();
        let series = Series { clock, ..Series::default() };
        let days = [0, 1000, 1500, 2000, 4000, 9000].map(|ns| series.day_of_unix_ns(ns).unwrap());
        assert_eq!(days, [0.0, 0.0, 5.0, 10.0, 12.0, 13.0]);
        assert_eq!(Series::default().day_of_unix_ns(5), None);
    }
}
