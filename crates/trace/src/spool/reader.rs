//! Reading a spool.

use super::frame::{self, Found, Kind, MAGIC};
use super::{End, Follow, Growth, Header, Lost, NamesEnd, SpoolError, names};
use crate::SnapshotEntry;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a spool holds behind its header, in the order in which it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Some of the names read before the run.
    Names(Vec<SnapshotEntry>),
    /// All of them have been told.
    NamesEnd(NamesEnd),
    /// Whole records in the tracer's notation.
    Records(Vec<u8>),
    /// Records are missing here.
    Lost(Lost),
    /// How the recording ended.
    End(End),
}

/// Reads a spool frame by frame.
#[derive(Debug)]
pub struct Reader<R> {
    input: BufReader<R>,
    path: PathBuf,
    header: Header,
    at: u64,
    /// What the frames so far hold, bytes.
    unpacked_bytes: u64,
    torn_bytes: u64,
    over: bool,
}

/// What the frames of any spool may hold, beyond [`UNPACKED_PER_BYTE`].
const UNPACKED_BYTES: u64 = 64 << 20;

/// What frames may hold for each byte of the spool. Names that are all the same take thousands of bytes for one, and
/// whoever imports keeps each; the times of real calls, and the inodes of real files, differ, and take an eighth of a
/// line at least.
const UNPACKED_PER_BYTE: u64 = 256;

impl Reader<File> {
    /// Opens a spool that nobody writes any more.
    ///
    /// # Errors
    /// It cannot be opened, is no spool, or ends in its header.
    pub fn open(path: &Path) -> Result<Reader<File>, SpoolError> {
        Reader::new(open(path)?, path)
    }
}

impl Reader<Follow> {
    /// Opens a spool that a writer in this process is still writing.
    ///
    /// # Errors
    /// As [`open`](Reader::open).
    pub fn follow(path: &Path, growth: Arc<Growth>) -> Result<Reader<Follow>, SpoolError> {
        Reader::new(Follow::new(open(path)?, growth), path)
    }
}

fn open(path: &Path) -> Result<File, SpoolError> {
    posix::input::open(path).map_err(|source| SpoolError::Io { path: path.to_owned(), doing: "open the spool", source })
}

impl<R: Read> Reader<R> {
    /// Reads the header. `path` is what errors call the input.
    ///
    /// # Errors
    /// As [`open`](Reader::open).
    pub fn new(input: R, path: &Path) -> Result<Reader<R>, SpoolError> {
        let mut input = BufReader::with_capacity(1 << 18, input);
        let failed = |source| SpoolError::Io { path: path.to_owned(), doing: "read the spool", source };
        let mut magic = Vec::new();
        input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(failed)?;
        if magic != MAGIC {
            return Err(foreign(path, &magic));
        }
        let damaged = |what: String| SpoolError::Damaged { path: path.to_owned(), at: MAGIC.len() as u64, what };
        let (found, used) = frame::read(&mut input).map_err(failed)?;
        let at = MAGIC.len() as u64 + used;
        let header = match found {
            Found::Frame(Kind::Header, raw) => json(&raw).map_err(damaged)?,
            Found::Frame(..) => return Err(damaged("the first frame is not the header".into())),
            Found::Damaged(what) => return Err(damaged(what.into())),
            Found::Nothing | Found::Torn(_) => return Err(SpoolError::NoHeader { path: path.to_owned(), at }),
        };
        Ok(Reader { input, path: path.to_owned(), header, at, unpacked_bytes: 0, torn_bytes: 0, over: false })
    }

    /// Where the records come from.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes read so far: the place of the next frame.
    pub fn at_byte(&self) -> u64 {
        self.at
    }

    /// Bytes of a last frame that an interrupted write left behind. It was left out.
    pub fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    /// The next frame; `None` at the end, and where the last frame is torn.
    ///
    /// # Errors
    /// Reading fails, or the spool is damaged: what was read before is whole.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, SpoolError> {
        if self.over {
            return Ok(None);
        }
        let read = self.read_frame();
        self.over = !matches!(read, Ok(Some(_)));
        read
    }

    fn read_frame(&mut self) -> Result<Option<Frame>, SpoolError> {
        let start = self.at;
        let damaged = |what: String| SpoolError::Damaged { path: self.path.clone(), at: start, what };
        let (found, used) = frame::read(&mut self.input).map_err(|source| SpoolError::Io {
            path: self.path.clone(),
            doing: "read the spool",
            source,
        })?;
        if let Found::Frame(_, raw) = &found {
            self.unpacked_bytes += raw.len() as u64;
            let most = UNPACKED_BYTES.saturating_add((start + used).saturating_mul(UNPACKED_PER_BYTE));
            if self.unpacked_bytes > most {
                return Err(damaged(format!(
                    "the frames up to here unpack to more than {most} bytes, which no recording's do"
                )));
            }
        }
        let frame = match found {
            Found::Nothing => return Ok(None),
            Found::Torn(bytes) => {
                self.torn_bytes = bytes;
                return Ok(None);
            }
            Found::Damaged(what) => return Err(damaged(what.into())),
            Found::Frame(Kind::Header, _) => return Err(damaged("a second header".into())),
            Found::Frame(Kind::Names, raw) => {
                Frame::Names(names::read(&raw).ok_or_else(|| damaged("a frame of names holds none".into()))?)
            }
            Found::Frame(Kind::NamesEnd, raw) => Frame::NamesEnd(json(&raw).map_err(damaged)?),
            Found::Frame(Kind::Records, raw) => Frame::Records(raw),
            Found::Frame(Kind::Lost, raw) => Frame::Lost(json(&raw).map_err(damaged)?),
            Found::Frame(Kind::End, raw) => Frame::End(json(&raw).map_err(damaged)?),
        };
        self.at += used;
        Ok(Some(frame))
    }
}

fn json<T: DeserializeOwned>(raw: &[u8]) -> Result<T, String> {
    serde_json::from_slice(raw).map_err(|e| format!("a frame's text is not what it should be ({e})"))
}

fn foreign(path: &Path, begin: &[u8]) -> SpoolError {
    let path = path.to_owned();
    if MAGIC.starts_with(begin) {
        return SpoolError::NoHeader { path, at: begin.len() as u64 };
    }
    match begin.strip_prefix(frame::FAMILY) {
        Some(version) => {
            let found = version.escape_ascii().to_string().trim_end_matches("\\n").to_owned();
            SpoolError::Version { path, found, supported: "1" }
        }
        None => SpoolError::NotSpool { path },
    }
}
