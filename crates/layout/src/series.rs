//! Surveys over time: what an aging run keeps of itself, appended to as it goes.
//!
//! A series is written by [`SeriesWriter`] and read by [`Series::load`]:
//!
//! ```no_run
//! # fn keep(survey: layout::Survey) -> Result<(), layout::LayoutError> {
//! use layout::{SeriesHeader, SeriesPoint, SeriesWriter};
//! let path = std::path::Path::new("run.series");
//! let (name, workload) = ("ext4:8G".into(), "home directories".into());
//! let header = SeriesHeader { name, workload, ..SeriesHeader::default() };
//! let mut writer = SeriesWriter::create(path, &header)?;
//! writer.clock(1_700_000_000_000_000_000, 0)?; // at this moment it was simulated time 0
//! writer.used(1.0, Some(0.091), 0.090)?; // day 1: planned and actual share in use
//! writer.point(&SeriesPoint { day: 1.0, t_unix_ns: 1_700_000_001_000_000_000, operations: 5000, survey })?;
//! // After a kill: what was recorded up to the day of the last checkpoint is kept, the rest is dropped.
//! let mut writer = SeriesWriter::resume(path, 1.0)?.writer;
//! # Ok(()) }
//! ```
//!
//! # The file
//!
//! `fsage.series/1` and a newline, then records. A record is the length of its payload, the payload's CRC-32C, and the
//! CRC-32C of these eight bytes, each 4 bytes little-endian; then the payload, JSON compressed with zstd:
//! `{"header": ...}` first, then `{"point": ...}`, `{"clock": ...}` and `{"used": ...}` in order of time. Points are
//! synced to disk. A run that is killed can leave an incomplete record at the end: it is left out and said so
//! ([`Series::torn_bytes`]); any other damage is an error that names the byte.

mod frames;
mod summary;
mod writer;

pub use summary::{PointSummary, SeriesSummary};
pub use writer::{Resumed, SeriesWriter};

use crate::{LayoutError, Survey};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Nanoseconds in a simulated day.
const DAY_NS: f64 = 86_400e9;

/// Simulated time as days, the form in which a series keeps it.
pub fn day_of(simulated_ns: u64) -> f64 {
    simulated_ns as f64 / DAY_NS
}

/// What a series is of.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SeriesHeader {
    /// What it is called in tables and legends (`ext4`, `/mnt/data`).
    pub name: String,
    /// The workload that aged it.
    pub workload: String,
    /// Where it ran.
    pub environment: posix::Environment,
    /// What the reader should know (`fallocate` instead of real writes, ...).
    pub notes: Vec<String>,
    /// Which days are counted.
    #[serde(skip_serializing_if = "Days::is_simulated")]
    pub days: Days,
}

/// Which days a series counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Days {
    /// Those of a plan, from its beginning.
    #[default]
    Simulated,
    /// Those of the calendar, from the first survey.
    Real,
}

impl Days {
    fn is_simulated(&self) -> bool {
        *self == Days::Simulated
    }
}

/// A survey at a moment of simulated time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Simulated days since the beginning.
    pub day: f64,
    /// When it was taken, nanoseconds since the epoch.
    pub t_unix_ns: i64,
    /// Operations performed before it.
    pub operations: u64,
    /// The survey.
    pub survey: Survey,
}

/// A moment by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockPoint {
    /// Nanoseconds since the epoch, by the clock that sets modification times.
    pub unix_ns: i64,
    /// Simulated nanoseconds since the beginning.
    pub simulated_ns: u64,
}

/// The share of the file system in use at a moment of simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsedPoint {
    /// Simulated days since the beginning.
    pub day: f64,
    /// As planned, 0 to 1; `None` where nothing was planned.
    pub planned_share: Option<f64>,
    /// As `statvfs` had it, 0 to 1.
    pub actual_share: f64,
}

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

/// One record, as it is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record {
    Header(Box<SeriesHeader>),
    Point(Box<SeriesPoint>),
    Clock(ClockPoint),
    Used(UsedPoint),
}

/// One record, as it is written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum RecordRef<'a> {
    Header(&'a SeriesHeader),
    Point(&'a SeriesPoint),
    Clock(ClockPoint),
    Used(UsedPoint),
}

impl Record {
    /// Its simulated day; `None` for the header, which is before all.
    fn day(&self) -> Option<f64> {
        match self {
            Record::Header(_) => None,
            Record::Point(point) => Some(point.day),
            Record::Clock(clock) => Some(day_of(clock.simulated_ns)),
            Record::Used(used) => Some(used.day),
        }
    }
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
