//! What a series is made of.

use crate::Survey;
use serde::{Deserialize, Serialize};

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

/// One record, as it is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    Header(Box<SeriesHeader>),
    Point(Box<SeriesPoint>),
    Clock(ClockPoint),
    Used(UsedPoint),
}

/// One record, as it is written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordRef<'a> {
    Header(&'a SeriesHeader),
    Point(&'a SeriesPoint),
    Clock(ClockPoint),
    Used(UsedPoint),
}

impl Record {
    /// Its simulated day; `None` for the header, which is before all.
    pub(super) fn day(&self) -> Option<f64> {
        match self {
            Record::Header(_) => None,
            Record::Point(point) => Some(point.day),
            Record::Clock(clock) => Some(day_of(clock.simulated_ns)),
            Record::Used(used) => Some(used.day),
        }
    }
}
