//! Records as bytes: length, checksums, compressed JSON.

use super::record::{Record, RecordRef};
use crate::LayoutError;
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;

/// What the file begins with.
pub(super) const MAGIC: &[u8] = b"fsage.series/1\n";
/// What files of every version begin with.
const FAMILY: &[u8] = b"fsage.series/";
/// Length, checksum of the payload, checksum of both.
const HEAD_BYTES: usize = 12;
/// No record is longer, packed or not: a survey with the finest map is some 40 MiB of JSON.
const RECORD_BYTES_MAX: u64 = 256 << 20;
/// zstd's default: maps shrink about tenfold, at hundreds of megabytes a second.
const LEVEL: i32 = 3;

/// Where reading ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    /// The end of the last record that was accepted.
    pub(super) at_byte: u64,
    /// What an interrupted write left behind it.
    pub(super) torn_bytes: u64,
}

/// A record with its head.
pub(super) fn encode(record: &RecordRef<'_>) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(record)?;
    let payload = zstd::encode_all(json.as_slice(), LEVEL)?;
    let len = u32::try_from(payload.len())
        .ok()
        .filter(|_| json.len() as u64 <= RECORD_BYTES_MAX)
        .ok_or_else(|| io::Error::other("the survey is too large for a series; make a coarser map"))?;
    let mut out = Vec::with_capacity(HEAD_BYTES + payload.len());
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&crc32c::crc32c(&payload).to_le_bytes());
    out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
    out.extend_from_slice(&payload);
    Ok(out)
}

/// Reads records in order: `each(start byte, record)` until it answers `false` or the file ends.
pub(super) fn read(path: &Path, each: &mut dyn FnMut(u64, Record) -> bool) -> Result<End, LayoutError> {
    let io = |source| LayoutError::Io { target: path.display().to_string(), doing: "read the series", source };
    let bad = |problem: String| LayoutError::SeriesFile { path: path.display().to_string(), problem };
    let file = posix::input::open(path).map_err(io)?;
    let len = file.metadata().map_err(io)?.len();
    let mut reader = Reader { input: BufReader::new(file), at: 0, len };
    let magic = reader.take(MAGIC.len() as u64).map_err(io)?;
    if magic != MAGIC {
        return Err(bad(match magic.starts_with(FAMILY) {
            true => "was written by another version: its first line is not \"fsage.series/1\"".to_owned(),
            false => "is not a series: give a file that `fsage age` wrote".to_owned(),
        }));
    }
    let mut first = true;
    while reader.left() > 0 {
        let start = reader.at;
        let payload = match reader.frame().map_err(io)? {
            Frame::Whole(payload) => payload,
            Frame::Torn => {
                if first {
                    return Err(bad(format!("ends at byte {len}, before its header is complete; age anew")));
                }
                return Ok(End { at_byte: start, torn_bytes: len - start });
            }
            Frame::Damaged(what) => {
                return Err(bad(format!("is damaged at byte {start}: {what}; the records before it are whole")));
            }
        };
        let record = decode(&payload).map_err(|why| bad(format!("has at byte {start} no record: {why}")))?;
        if first != matches!(record, Record::Header(_)) {
            return Err(bad(format!("has at byte {start} a record out of place: the header comes first, and once")));
        }
        first = false;
        if !each(start, record) {
            return Ok(End { at_byte: start, torn_bytes: 0 });
        }
    }
    if first {
        return Err(bad("ends before its header; age anew".to_owned()));
    }
    Ok(End { at_byte: len, torn_bytes: 0 })
}

enum Frame {
    Whole(Vec<u8>),
    /// The file ends before the record does.
    Torn,
    Damaged(&'static str),
}

struct Reader {
    input: BufReader<File>,
    at: u64,
    len: u64,
}

impl Reader {
    fn left(&self) -> u64 {
        self.len.saturating_sub(self.at)
    }

    /// At most so many bytes.
    fn take(&mut self, bytes: u64) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        self.input.by_ref().take(bytes).read_to_end(&mut out)?;
        self.at += out.len() as u64;
        Ok(out)
    }

    fn frame(&mut self) -> io::Result<Frame> {
        let head = self.take(HEAD_BYTES as u64)?;
        let word = |at: usize| head.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        let (Some(len), Some(checksum), Some(of_head)) = (word(0), word(4), word(8)) else { return Ok(Frame::Torn) };
        if head.get(..8).map(crc32c::crc32c) != Some(of_head) {
            // A machine that went down may leave zeros where data was to go.
            let zero = head.iter().all(|b| *b == 0) && self.rest_is_zero()?;
            return Ok(if zero {
                Frame::Torn
            } else {
                Frame::Damaged("the checksum of a record's head does not match")
            });
        }
        if u64::from(len) > RECORD_BYTES_MAX {
            return Ok(Frame::Damaged("a record is longer than records are"));
        }
        if u64::from(len) > self.left() {
            self.at = self.len;
            return Ok(Frame::Torn);
        }
        let payload = self.take(u64::from(len))?;
        if crc32c::crc32c(&payload) != checksum {
            return Ok(Frame::Damaged("the checksum of a record does not match"));
        }
        Ok(Frame::Whole(payload))
    }

    fn rest_is_zero(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 8192];
        loop {
            match self.input.read(&mut buffer)? {
                0 => return Ok(true),
                n if buffer.iter().take(n).any(|b| *b != 0) => return Ok(false),
                _ => {}
            }
        }
    }
}

fn decode(payload: &[u8]) -> Result<Record, String> {
    let mut json = Vec::new();
    let decoder = zstd::Decoder::with_buffer(payload).map_err(|e| e.to_string())?;
    decoder.take(RECORD_BYTES_MAX + 1).read_to_end(&mut json).map_err(|e| e.to_string())?;
    if json.len() as u64 > RECORD_BYTES_MAX {
        return Err("it unpacks to more than a record holds".to_owned());
    }
    let record: Record = serde_json::from_slice(&json).map_err(|e| e.to_string())?;
    if let Record::Point(point) = &record
        && let Some(map) = point.survey.map.as_ref().and_then(|map| map.known())
    {
        map.check()?;
    }
    Ok(record)
}
