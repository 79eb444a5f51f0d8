//! Writing a spool.

use super::frame::{Kind, MAGIC, Packer};
use super::{End, FRAME_BYTES_MAX, Growth, Header, Lost, NamesEnd, SpoolError, names};
use crate::SnapshotEntry;
use crate::room::Room;
use crate::snapshot::Walked;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of a frame, in bytes: a kill while they are written loses little.
const NAMES_BYTES: usize = 1 << 20;

/// Writes a spool, a frame a call. What it has written is readable at once ([`Writer::growth`]) and stays whole when a
/// later write fails: what such a write left behind is cut off.
pub struct Writer {
    file: File,
    path: PathBuf,
    packer: Packer,
    /// The end of the last whole frame.
    len_bytes: u64,
    growth: Arc<Growth>,
    /// What is left to others.
    room: Option<Room>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("path", &self.path).field("len_bytes", &self.len_bytes).finish_non_exhaustive()
    }
}

impl Writer {
    /// Begins a spool. Only its owner can read it, as it holds the names of files of whatever was traced.
    ///
    /// # Errors
    /// The file is there already (it is never overwritten), or cannot be made.
    pub fn create(path: &Path, header: &Header) -> Result<Writer, SpoolError> {
        let failed = |doing| move |source| SpoolError::Io { path: path.to_owned(), doing, source };
        let begin = |packer: &mut Packer| -> io::Result<Vec<u8>> {
            let raw = serde_json::to_vec(header)?;
            if raw.len() > FRAME_BYTES_MAX {
                return Err(io::Error::other("the command and its arguments are longer than a frame of the spool"));
            }
            Ok([MAGIC, &packer.pack(Kind::Header, &raw)?].concat())
        };
        let made = Packer::new().and_then(|mut packer| Ok((begin(&mut packer)?, packer)));
        let (begin, packer) = made.map_err(failed("begin the spool"))?;
        let file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed("make the spool"))?;
        let mut writer =
            Writer { file, path: path.to_owned(), packer, len_bytes: 0, growth: Growth::new(), room: None };
        if let Err(source) = writer.append(&begin) {
            // It was made here and holds nothing.
            let _ = std::fs::remove_file(path);
            return Err(SpoolError::Io { path: path.to_owned(), doing: "begin the spool", source });
        }
        Ok(writer)
    }

    /// Leaves so much room on the file system to others: records and names that would take of it fail.
    pub fn leaving(mut self, room: Room) -> Writer {
        self.room = Some(room);
        self
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes written.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// How far it has got, for a reader that follows. It ends when the writer is dropped.
    pub fn growth(&self) -> Arc<Growth> {
        Arc::clone(&self.growth)
    }

    /// Writes the names read before the run, with `roots`, the real paths of the trees read, escaped.
    ///
    /// # Errors
    /// The disk.
    pub fn names(&mut self, walked: &Walked, roots: Vec<String>) -> io::Result<()> {
        let mut raw = Vec::with_capacity(NAMES_BYTES);
        for entry in &walked.snapshot.entries {
            self.name(entry, &mut raw)?;
        }
        if !raw.is_empty() {
            self.frame(Kind::Names, &raw)?;
        }
        let end = NamesEnd { roots, unreadable: walked.unreadable.clone(), truncated: walked.truncated };
        self.json(Kind::NamesEnd, &end)
    }

    fn name(&mut self, entry: &SnapshotEntry, raw: &mut Vec<u8>) -> io::Result<()> {
        names::append(entry, raw);
        if raw.len() >= NAMES_BYTES {
            self.frame(Kind::Names, raw)?;
            raw.clear();
        }
        Ok(())
    }

    /// Writes whole records. More than [`FRAME_BYTES_MAX`] go into several frames.
    ///
    /// # Errors
    /// The disk. What was written before stays.
    pub fn records(&mut self, records: &[u8]) -> io::Result<()> {
        records.chunks(FRAME_BYTES_MAX).try_for_each(|part| self.frame(Kind::Records, part))
    }

    /// Notes that records are missing here.
    ///
    /// # Errors
    /// The disk.
    pub fn lost(&mut self, lost: &Lost) -> io::Result<()> {
        self.json(Kind::Lost, lost)
    }

    /// Notes how the recording ended.
    ///
    /// # Errors
    /// The disk.
    pub fn end(&mut self, end: &End) -> io::Result<()> {
        self.json(Kind::End, end)
    }

    fn json(&mut self, kind: Kind, value: &impl Serialize) -> io::Result<()> {
        let mut raw = serde_json::to_vec(value)?;
        if raw.len() >= FRAME_BYTES_MAX {
            return Err(io::Error::other("a description longer than a frame of the spool"));
        }
        raw.push(b'\n');
        self.frame(kind, &raw)
    }

    fn frame(&mut self, kind: Kind, raw: &[u8]) -> io::Result<()> {
        let bytes = self.packer.pack(kind, raw)?;
        // What tells of a gap and of the end is small, and without it the rest says less.
        if let (Some(room), Kind::Names | Kind::Records) = (self.room, kind) {
            room.check(&self.path, bytes.len() as u64)?;
        }
        self.append(&bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        match written {
            Ok(()) => {
                self.len_bytes += bytes.len() as u64;
                self.growth.reached(self.len_bytes);
            }
            // A part of a frame (no space left) must not stand before the next one. The first error is the one to
            // report.
            Err(_) => {
                let _ = self.file.set_len(self.len_bytes);
                let _ = self.file.seek(SeekFrom::Start(self.len_bytes));
            }
        }
        written
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.growth.end();
    }
}
