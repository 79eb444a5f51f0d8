//! The bytes of a file.

use crate::{FileError, Format};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// An open file, and what it is supposed to be.
pub(crate) struct Source {
    pub path: PathBuf,
    pub format: &'static Format,
    pub len: u64,
    file: File,
}

impl Source {
    pub fn open(path: PathBuf, format: &'static Format) -> Result<Source, FileError> {
        let file = posix::input::open(&path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => format.missing(&path),
            _ => FileError::io(&path, "open")(e),
        })?;
        let len = file.metadata().map_err(FileError::io(&path, "look at"))?.len();
        Ok(Source { path, format, len, file })
    }

    /// Reads a range of bytes.
    pub fn read(&self, start: u64, end: u64) -> Result<Vec<u8>, FileError> {
        let place = || format!("bytes {start} to {end}");
        let len = end.checked_sub(start).and_then(|n| usize::try_from(n).ok());
        let len = len.ok_or_else(|| self.corrupt(place(), "not a range"))?;
        let mut bytes = vec![0; len];
        match self.file.read_exact_at(&mut bytes, start) {
            Ok(()) => Ok(bytes),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.corrupt(place(), "the file ends before them: it is truncated"))
            }
            Err(e) => Err(FileError::io(&self.path, "read")(e)),
        }
    }

    pub fn corrupt(&self, place: impl Into<String>, message: impl ToString) -> FileError {
        self.format.corrupt(&self.path, place, message)
    }
}
