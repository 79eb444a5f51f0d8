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
mod load;
mod record;
mod summary;
mod writer;

pub use load::Series;
pub use record::{ClockPoint, Days, SeriesHeader, SeriesPoint, UsedPoint, day_of};
pub use summary::{PointSummary, SeriesSummary};
pub use writer::{Resumed, SeriesWriter};
