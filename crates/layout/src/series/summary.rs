//! A series in figures: one row a survey.

use super::load::Series;
use super::record::{SeriesPoint, UsedPoint};
use serde::Serialize;

/// What `--json` prints of a series: without maps and histograms, which the file has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesSummary {
    /// What it is called.
    pub name: String,
    /// The workload that aged it.
    pub workload: String,
    /// `ext4`, `xfs`, ...
    pub fs_type: String,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// Its surveys, in order of time.
    pub points: Vec<PointSummary>,
    /// Use over time.
    pub used: Vec<UsedPoint>,
    /// Bytes of an incomplete record at the end of the file.
    pub torn_bytes: u64,
}

/// A survey in figures; null where it could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PointSummary {
    /// Simulated day.
    pub day: f64,
    /// When, nanoseconds since the epoch.
    pub t_unix_ns: i64,
    /// Operations before it.
    pub operations: u64,
    /// Share of the file system in use.
    pub used_share: Option<f64>,
    /// Regular files.
    pub files: u64,
    /// Aggregate layout score.
    pub layout_score: Option<f64>,
    /// Layout score of hot files.
    pub hot_layout_score: Option<f64>,
    /// Extents for each MiB of placed data.
    pub extents_per_mib: Option<f64>,
    /// Extents of a file that has any.
    pub extents_per_file: Option<f64>,
    /// Share of the files that have a score which are in more than one piece.
    pub broken_share: Option<f64>,
    /// Share of files with their first block in another group than their inode.
    pub split_share: Option<f64>,
    /// Free space, bytes.
    pub free_bytes: Option<u64>,
    /// Free extents.
    pub free_extents: Option<u64>,
    /// The largest, bytes.
    pub largest_free_bytes: Option<u64>,
    /// Share of free space in extents of 64 KiB or more.
    pub free_in_64k_share: Option<f64>,
    /// Share of free space in extents of 1 MiB or more.
    pub free_in_1m_share: Option<f64>,
}

impl SeriesPoint {
    /// The survey in figures.
    pub fn summary(&self) -> PointSummary {
        let (files, free) = (self.survey.files.known(), self.survey.free.known());
        let source = &self.survey.source;
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        let in_chunks = |bytes| free.and_then(|f| f.chunks.iter().find(|c| c.chunk_bytes == bytes)).map(|c| c.share);
        PointSummary {
            day: self.day,
            t_unix_ns: self.t_unix_ns,
            operations: self.operations,
            used_share: share(source.total_bytes.saturating_sub(source.free_bytes), source.total_bytes),
            files: self.survey.walked.files,
            layout_score: files.and_then(|f| f.layout_score),
            hot_layout_score: files.and_then(|f| f.hot.as_ref()?.row.layout_score),
            extents_per_mib: files.and_then(|f| f.extents_per_mib),
            extents_per_file: files.and_then(|f| f.all.extents_per_file),
            broken_share: files.and_then(|f| share(f.all.broken_files, f.all.scored_files)),
            split_share: files.and_then(|f| f.split.known()?.share()),
            free_bytes: free.map(|f| f.free_bytes),
            free_extents: free.map(|f| f.extents),
            largest_free_bytes: free.map(|f| f.largest_bytes),
            free_in_64k_share: in_chunks(64 << 10),
            free_in_1m_share: in_chunks(1 << 20),
        }
    }
}

impl Series {
    /// The series in figures.
    pub fn summary(&self) -> SeriesSummary {
        SeriesSummary {
            name: self.header.name.clone(),
            workload: self.header.workload.clone(),
            fs_type: self.fs_type().to_owned(),
            notes: self.header.notes.clone(),
            points: self.points.iter().map(SeriesPoint::summary).collect(),
            used: self.used.clone(),
            torn_bytes: self.torn_bytes,
        }
    }

    /// The type of the file system, as its surveys have it.
    pub fn fs_type(&self) -> &str {
        self.points.first().map_or(self.header.environment.fs_type.name(), |p| p.survey.source.fs_type.name())
    }
}
