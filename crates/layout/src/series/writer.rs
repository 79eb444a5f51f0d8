//! Writing a series as it happens.

use super::frames::{self, MAGIC};
use super::record::{ClockPoint, Record, RecordRef, SeriesHeader, SeriesPoint, UsedPoint};
use crate::LayoutError;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Appends records to a series. Each is written in one call, so that a kill between two loses nothing.
#[derive(Debug)]
pub struct SeriesWriter {
    file: File,
    path: PathBuf,
    /// The end of the last whole record.
    len_bytes: u64,
}

/// A series taken up again.
#[derive(Debug)]
pub struct Resumed {
    /// At the end of what was kept.
    pub writer: SeriesWriter,
    /// Points that are kept.
    pub points: u64,
    /// Bytes of later records, and of an incomplete one, that were dropped.
    pub dropped_bytes: u64,
}

impl SeriesWriter {
    /// Begins a series.
    ///
    /// # Errors
    /// [`LayoutError::Io`], also where the file is there already: it is not overwritten.
    pub fn create(path: &Path, header: &SeriesHeader) -> Result<SeriesWriter, LayoutError> {
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(io(path, "begin the series"))?;
        let mut writer = SeriesWriter { file, path: path.to_owned(), len_bytes: 0 };
        let begun = frames::encode(&RecordRef::Header(header))
            .and_then(|record| writer.append_bytes(&[MAGIC, &record].concat()))
            .and_then(|()| writer.file.sync_data());
        begun.map_err(io(path, "begin the series"))?;
        Ok(writer)
    }

    /// Takes a series up again at a simulated day: records up to and including that day are kept, later ones, which
    /// will happen again, are removed from the file. Compare days made by [`day_of`](super::day_of) on both sides.
    ///
    /// # Errors
    /// As [`Series::load`](super::Series::load), and where the file cannot be shortened.
    pub fn resume(path: &Path, day: f64) -> Result<Resumed, LayoutError> {
        let mut points = 0;
        let end = frames::read(path, &mut |_, record| {
            let keep = record.day().is_none_or(|d| d <= day);
            points += u64::from(keep && matches!(record, Record::Point(_)));
            keep
        })?;
        let shortened = OpenOptions::new().write(true).open(path).and_then(|mut file| {
            let dropped = file.metadata()?.len().saturating_sub(end.at_byte);
            file.set_len(end.at_byte)?;
            file.seek(SeekFrom::Start(end.at_byte))?;
            file.sync_data()?;
            Ok((file, dropped))
        });
        let (file, dropped_bytes) = shortened.map_err(io(path, "take the series up again"))?;
        let writer = SeriesWriter { file, path: path.to_owned(), len_bytes: end.at_byte };
        Ok(Resumed { writer, points, dropped_bytes })
    }

    /// Appends a survey, and brings it and all before it to stable storage.
    pub fn point(&mut self, point: &SeriesPoint) -> Result<(), LayoutError> {
        self.append(&RecordRef::Point(point))?;
        self.file.sync_data().map_err(io(&self.path, "append to the series"))
    }

    /// Notes that at this moment (nanoseconds since the epoch) it was so late in simulated time.
    pub fn clock(&mut self, unix_ns: i64, simulated_ns: u64) -> Result<(), LayoutError> {
        self.append(&RecordRef::Clock(ClockPoint { unix_ns, simulated_ns }))
    }

    /// Notes how full the file system is on a simulated day, and how full it was planned to be; shares from 0 to 1.
    pub fn used(&mut self, day: f64, planned_share: Option<f64>, actual_share: f64) -> Result<(), LayoutError> {
        self.append(&RecordRef::Used(UsedPoint { day, planned_share, actual_share }))
    }

    fn append(&mut self, record: &RecordRef<'_>) -> Result<(), LayoutError> {
        let written = frames::encode(record).and_then(|bytes| self.append_bytes(&bytes));
        written.map_err(io(&self.path, "append to the series"))
    }

    fn append_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        match written {
            Ok(()) => self.len_bytes = self.len_bytes.saturating_add(bytes.len() as u64),
            // A part of a record (no space left) must not stand before the next one. The first error is the one to
            // report.
            Err(_) => {
                let _ = self.file.set_len(self.len_bytes);
                let _ = self.file.seek(SeekFrom::Start(self.len_bytes));
            }
        }
        written
    }
}

fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> LayoutError {
    let target = path.display().to_string();
    move |source| LayoutError::Io { target, doing, source }
}
