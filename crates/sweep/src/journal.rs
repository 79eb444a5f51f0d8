//! The journal of a sweep: a line for each task that has ended, appended as it ends.
//!
//! The first line is `fsage.sweep-journal/1`. Each further one is the CRC-32C of the rest of the line (eight
//! hexadecimal digits), a space, and an [`Entry`] as JSON. A run that is killed can leave a part of a line at the end:
//! it is cut off, and its task runs again. Any other damage is an error that names the line.

use crate::{Figure, SweepError};
use fault::refused;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const FIRST_LINE: &str = "fsage.sweep-journal/1\n";
/// What is written is on stable storage after this long at the latest. A power failure costs no more tasks than that.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// No task's figures take more. A longer line is damage, and not what a killed run left.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// What became of a task. It depends on nothing but the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It has a result.
    Figures(Vec<Figure>),
    /// It has none.
    Failed {
        /// The command's exit code; none where a signal ended it or it took too long.
        exit: Option<i32>,
        /// What the command said.
        message: String,
    },
}

/// A task that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number.
    pub task: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// How long it took from its process's start to its end, seconds.
    pub seconds: f64,
    /// When it began, milliseconds since the epoch.
    pub began_unix_ms: u64,
    /// The machine that ran it.
    pub host: String,
    /// How often it was begun, this time included, where others were ended by a signal.
    pub attempts: u32,
}

/// The journal, open for appending.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Where its last whole line ends.
    end: u64,
    synced: Instant,
}

/// Where an entry stands in the journal.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    at: u64,
    len: u64,
}

impl Journal {
    /// Opens a journal, or makes it, and hands on what is in it. What a killed run left of a last line is cut off.
    ///
    /// # Errors
    /// It is damaged, or the system refuses; those of `each`.
    pub fn open(
        path: &Path,
        each: &mut dyn FnMut(Entry, Place) -> Result<(), SweepError>,
    ) -> Result<Journal, SweepError> {
        let file = File::options().read(true).append(true).create(true).open(path);
        let mut file = file.map_err(refused(path, "open"))?;
        let end = scan(path, &mut file, each)?;
        let io = |doing| refused(path, doing);
        if end == 0 {
            file.set_len(0).map_err(io("write"))?;
            file.write_all(FIRST_LINE.as_bytes()).map_err(io("write"))?;
        } else {
            file.set_len(end).map_err(io("write"))?;
        }
        let end = end.max(FIRST_LINE.len() as u64);
        Ok(Journal { path: path.to_owned(), file, end, synced: Instant::now() })
    }

    /// Reads a journal without changing it: nothing can be appended to what this returns.
    ///
    /// # Errors
    /// As [`open`](Journal::open).
    pub fn read(
        path: &Path,
        each: &mut dyn FnMut(Entry, Place) -> Result<(), SweepError>,
    ) -> Result<Journal, SweepError> {
        let mut file = posix::input::open(path).map_err(refused(path, "open"))?;
        let end = scan(path, &mut file, each)?;
        Ok(Journal { path: path.to_owned(), file, end, synced: Instant::now() })
    }

    /// Appends an entry. It survives whatever happens to this process from now on.
    ///
    /// # Errors
    /// The system refuses: the disk is full.
    pub fn append(&mut self, entry: &Entry) -> Result<Place, SweepError> {
        let json = serde_json::to_string(entry).map_err(|error| SweepError::Damaged {
            file: self.path.clone(),
            place: format!("task {}", entry.task),
            message: format!("cannot be written as JSON: {error}"),
        })?;
        let line = format!("{:08x} {json}\n", crc32c::crc32c(json.as_bytes()));
        self.file.write_all(line.as_bytes()).map_err(refused(&self.path, "write"))?;
        let place = Place { at: self.end, len: line.len() as u64 };
        self.end += place.len;
        if self.synced.elapsed() >= SYNC_EVERY {
            self.sync()?;
        }
        Ok(place)
    }

    /// Brings what was appended to stable storage.
    ///
    /// # Errors
    /// The system refuses.
    pub fn sync(&mut self) -> Result<(), SweepError> {
        self.synced = Instant::now();
        Ok(self.file.sync_data().map_err(refused(&self.path, "write to stable storage"))?)
    }

    /// Reads one entry again.
    ///
    /// # Errors
    /// It is not what it was.
    pub fn entry(&mut self, place: Place) -> Result<Entry, SweepError> {
        let io = |doing| refused(&self.path, doing);
        self.file.seek(SeekFrom::Start(place.at)).map_err(io("read"))?;
        let mut line = vec![0; usize::try_from(place.len).unwrap_or_default()];
        self.file.read_exact(&mut line).map_err(io("read"))?;
        parse(&line).map_err(|message| damaged(&self.path, format!("byte {}", place.at), message))
    }
}

fn damaged(path: &Path, place: String, message: String) -> SweepError {
    let message = format!("{message}; restore it from a copy, or remove the folder and run the sweep again");
    SweepError::Damaged { file: path.to_owned(), place, message }
}

/// Hands on every whole line's entry; where the last one ends.
fn scan(
    path: &Path,
    file: &mut File,
    each: &mut dyn FnMut(Entry, Place) -> Result<(), SweepError>,
) -> Result<u64, SweepError> {
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let (mut line, mut end, mut number) = (Vec::new(), 0u64, 0u64);
    loop {
        line.clear();
        let read = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        read.map_err(refused(path, "read"))?;
        if line.last() != Some(&b'\n') {
            if line.len() as u64 == LINE_BYTES_MAX {
                let message = format!("is longer than {LINE_BYTES_MAX} bytes");
                return Err(damaged(path, format!("line {}", number + 1), message));
            }
            // No newline: the end, or what a killed run left of a line.
            return Ok(end);
        }
        number += 1;
        let place = Place { at: end, len: line.len() as u64 };
        end += place.len;
        if number == 1 {
            if line != FIRST_LINE.as_bytes() {
                return Err(damaged(path, "line 1".to_owned(), "is not fsage.sweep-journal/1".to_owned()));
            }
            continue;
        }
        let entry = parse(&line).map_err(|message| damaged(path, format!("line {number}"), message))?;
        each(entry, place)?;
    }
}

fn parse(line: &[u8]) -> Result<Entry, String> {
    let text = std::str::from_utf8(line).map_err(|_| "is not UTF-8".to_owned())?;
    let (sum, json) = text.trim_end_matches('\n').split_once(' ').ok_or("has no checksum")?;
    if sum != format!("{:08x}", crc32c::crc32c(json.as_bytes())) {
        return Err("its checksum does not match: the bytes are damaged".to_owned());
    }
    serde_json::from_str(json).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(task: u64) -> Entry {
        Entry {
            task,
            outcome: Outcome::Failed { exit: Some(3), message: format!("no {task}") },
            seconds: 0.5,
            began_unix_ms: 7,
            host: "here".to_owned(),
            attempts: 1,
        }
    }

    fn tasks(path: &Path) -> Result<Vec<u64>, SweepError> {
        let mut found = Vec::new();
        Journal::open(path, &mut |entry, _| {
            found.push(entry.task);
            Ok(())
        })?;
        Ok(found)
    }

    /// Cut anywhere: whole lines stay, the rest is written again.
    #[test]
    fn a_torn_line_is_cut_off_wherever_it_ends() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut journal = Journal::open(&path, &mut |_, _| Ok(())).unwrap();
        let mut ends = vec![std::fs::metadata(&path).unwrap().len()];
        for task in 1..=3 {
            let place = journal.append(&entry(task)).unwrap();
            assert_eq!(journal.entry(place).unwrap(), entry(task));
            ends.push(std::fs::metadata(&path).unwrap().len());
        }
        let whole = std::fs::read(&path).unwrap();
        for cut in (0..=whole.len()).step_by(7).chain(ends.iter().map(|end| *end as usize)) {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let kept = ends.iter().skip(1).filter(|end| **end as usize <= cut).count() as u64;
            assert_eq!(tasks(&path).unwrap(), (1..=kept).collect::<Vec<u64>>(), "cut at {cut}");
            Journal::open(&path, &mut |_, _| Ok(())).unwrap().append(&entry(9)).unwrap();
            assert_eq!(tasks(&path).unwrap().last(), Some(&9), "cut at {cut}");
        }
    }

    #[test]
    fn damage_within_is_an_error_that_names_the_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut journal = Journal::open(&path, &mut |_, _| Ok(())).unwrap();
        for task in 1..=3 {
            journal.append(&entry(task)).unwrap();
        }
        let mut bytes = std::fs::read(&path).unwrap();
        let at = FIRST_LINE.len() + 40;
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let message = tasks(&path).unwrap_err().to_string();
        assert!(message.contains("line 2") && message.contains("checksum"), "{message}");
    }
}
