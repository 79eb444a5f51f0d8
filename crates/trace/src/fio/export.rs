//! From a workload's calls to a log that `fio --read_iolog` replays.
//!
//! fio makes no directories and writes where the log's names point, so names here are flat and relative (`/var/lib/x`
//! is `var-lib-x`): it is run in a directory of its own, and nothing outside is touched. A log has one open state for
//! each file, so descriptors of one file are merged: it opens with the first and closes with the last.

use crate::profile::Reader;
use crate::text::trace::ExportError;
use crate::{Batch, Call, Event, FileId, OfdId, Opened, PathId, Range, flag};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// fio reads no longer ones (`%256s`).
const NAME_BYTES_MAX: usize = 255;
/// What is kept of a longer one, so that a number finds room behind it.
const NAME_BYTES_KEPT: usize = 200;

/// Versions of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Without time: versions of fio differ in the unit of `wait`, so none is written.
    V2,
    /// With time stamps; fio 3.31 and later.
    V3,
}

/// Calls that a log cannot say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The operation.
    pub op: &'static str,
    /// Why.
    pub reason: &'static str,
    /// How many.
    pub calls: u64,
}

/// What an export wrote, and what it could not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// Files.
    pub files: u64,
    /// Reads, and their bytes.
    pub reads: u64,
    #[allow(missing_docs)]
    pub read_bytes: u64,
    /// Writes, and their bytes.
    pub writes: u64,
    #[allow(missing_docs)]
    pub written_bytes: u64,
    /// `sync` and `datasync` lines.
    pub syncs: u64,
    #[allow(missing_docs)]
    pub datasyncs: u64,
    /// What was left out, most first.
    pub left_out: Vec<LeftOut>,
}

impl Exported {
    /// Calls left out in all.
    pub fn left_out_calls(&self) -> u64 {
        self.left_out.iter().map(|left| left.calls).sum()
    }
}

/// Writes a workload as a log.
///
/// # Errors
/// The profile is damaged, or the output cannot be written.
pub fn write(reader: &Reader, version: Version, out: impl Write) -> Result<Exported, ExportError> {
    let mut log = Log::new(version, out);
    log.run(reader)?;
    Ok(log.exported())
}

/// The files that a log reads more of than it writes, by their names in it, and how many bytes each must have before.
///
/// # Errors
/// The profile is damaged.
pub fn files_needed(reader: &Reader) -> Result<Vec<(Vec<u8>, u64)>, ExportError> {
    let mut log = Log::new(Version::V3, io::sink());
    log.run(reader)?;
    let needed = log.files.into_iter().filter(|file| file.needed > 0);
    Ok(needed.map(|file| (file.name, file.needed)).collect())
}

struct Log<W> {
    out: W,
    version: Version,
    files: Vec<File>,
    names: FxHashSet<Vec<u8>>,
    by_id: FxHashMap<FileId, usize>,
    by_path: FxHashMap<Vec<u8>, usize>,
    by_ofd: FxHashMap<OfdId, usize>,
    exported: Exported,
    left_out: BTreeMap<(&'static str, &'static str), u64>,
    now_us: u64,
}

struct File {
    name: Vec<u8>,
    descriptions: u64,
    written_to: u64,
    needed: u64,
}

impl<W: Write> Log<W> {
    fn new(version: Version, out: W) -> Self {
        Log {
            out,
            version,
            files: Vec::new(),
            names: FxHashSet::default(),
            by_id: FxHashMap::default(),
            by_path: FxHashMap::default(),
            by_ofd: FxHashMap::default(),
            exported: Exported::default(),
            left_out: BTreeMap::new(),
            now_us: 0,
        }
    }

    fn run(&mut self, reader: &Reader) -> Result<(), ExportError> {
        let number = if self.version == Version::V2 { 2 } else { 3 };
        writeln!(self.out, "fio version {number} iolog")?;
        let mut batches = reader.batches()?;
        let mut batch = Batch::default();
        while batches.next_into(&mut batch)? {
            for event in &batch.events {
                self.event(&batch, event)?;
            }
        }
        let open: Vec<usize> =
            (0..).zip(&self.files).filter(|(_, file)| file.descriptions > 0).map(|(i, _)| i).collect();
        for file in open {
            self.line(file, "close", None)?;
        }
        Ok(self.out.flush()?)
    }

    fn exported(self) -> Exported {
        let mut left_out: Vec<LeftOut> =
            self.left_out.into_iter().map(|((op, reason), calls)| LeftOut { op, reason, calls }).collect();
        left_out.sort_by(|a, b| b.calls.cmp(&a.calls).then(a.op.cmp(b.op)).then(a.reason.cmp(b.reason)));
        Exported { files: self.files.len() as u64, left_out, ..self.exported }
    }

    fn event(&mut self, batch: &Batch, e: &Event) -> Result<(), ExportError> {
        if e.head.flags & flag::FOREIGN != 0 {
            return Ok(());
        }
        self.now_us = self.now_us.max(e.head.t_ns / 1000);
        match &e.call {
            // Offsets stand in the reads and writes, and a log has one thread and no programs.
            Call::Seek(_)
            | Call::Dup(_)
            | Call::Chdir(_)
            | Call::Fchdir(_)
            | Call::Clone
            | Call::Exit
            | Call::Exec(_) => Ok(()),
            Call::Close(of) => self.close(e, of.ofd),
            _ if e.head.errno.is_some() => self.leave_out(e, "it failed"),
            _ if e.head.flags & flag::UNFINISHED != 0 => self.leave_out(e, "it never returned"),
            Call::Open { .. } if e.head.flags & (flag::DIRECTORY | flag::PATH_ONLY | flag::TMPFILE) != 0 => {
                self.leave_out(e, "a log has no directories and no files without names")
            }
            Call::Open { at, ofd, .. } => match self.file(batch, at.file, at.path)? {
                Some(file) => self.open(*ofd, file),
                None => self.leave_out(e, "the file's name is not known"),
            },
            Call::Read(Range { of, .. }) | Call::Write(Range { of, .. }) | Call::Fsync(of) | Call::Fdatasync(of) => {
                match self.opened(batch, of)? {
                    Some(file) => self.transfer(e, file),
                    None => self.leave_out(e, "the file's name is not known"),
                }
            }
            _ => self.leave_out(e, "a log has no word for it"),
        }
    }

    fn transfer(&mut self, e: &Event, file: usize) -> Result<(), ExportError> {
        let bytes = u64::try_from(e.head.ret).unwrap_or(0);
        let said = &mut self.exported;
        let (action, range) = match e.call {
            Call::Fsync(_) => {
                said.syncs += 1;
                ("sync", (0, 0))
            }
            Call::Fdatasync(_) => {
                said.datasyncs += 1;
                ("datasync", (0, 0))
            }
            _ if bytes == 0 => return self.leave_out(e, "it moved no bytes"),
            Call::Read(Range { offset: Some(offset), .. }) => {
                said.reads += 1;
                said.read_bytes = said.read_bytes.saturating_add(bytes);
                ("read", (offset, bytes))
            }
            Call::Write(Range { offset: Some(offset), .. }) => {
                said.writes += 1;
                said.written_bytes = said.written_bytes.saturating_add(bytes);
                ("write", (offset, bytes))
            }
            _ => return self.leave_out(e, "its offset is not known"),
        };
        if let Some(state) = self.files.get_mut(file) {
            let end = range.0.saturating_add(range.1);
            match e.call {
                Call::Write(_) => state.written_to = state.written_to.max(end),
                Call::Read(_) if end > state.written_to => state.needed = state.needed.max(end),
                _ => {}
            }
        }
        self.line(file, action, Some(range))
    }

    fn open(&mut self, ofd: Option<OfdId>, file: usize) -> Result<(), ExportError> {
        if let Some(ofd) = ofd {
            self.by_ofd.insert(ofd, file);
        }
        let Some(state) = self.files.get_mut(file) else { return Ok(()) };
        state.descriptions += 1;
        if state.descriptions == 1 { self.line(file, "open", None) } else { Ok(()) }
    }

    fn close(&mut self, e: &Event, ofd: Option<OfdId>) -> Result<(), ExportError> {
        let last = e.head.flags & flag::LAST != 0 && e.head.flags & flag::UNFINISHED == 0;
        let Some(file) = ofd.filter(|_| last).and_then(|ofd| self.by_ofd.remove(&ofd)) else { return Ok(()) };
        let Some(state) = self.files.get_mut(file) else { return Ok(()) };
        state.descriptions = state.descriptions.saturating_sub(1);
        if state.descriptions == 0 { self.line(file, "close", None) } else { Ok(()) }
    }

    /// The file of a call on a descriptor, opened now if that was before the trace began.
    fn opened(&mut self, batch: &Batch, of: &Opened) -> Result<Option<usize>, ExportError> {
        if let Some(&file) = of.ofd.and_then(|ofd| self.by_ofd.get(&ofd)) {
            return Ok(Some(file));
        }
        let Some(file) = self.file(batch, of.file, of.path)? else { return Ok(None) };
        self.open(of.ofd, file)?;
        Ok(Some(file))
    }

    /// The file of a call, added if it is new.
    fn file(&mut self, batch: &Batch, id: Option<FileId>, path: Option<PathId>) -> Result<Option<usize>, ExportError> {
        if let Some(&file) = id.and_then(|id| self.by_id.get(&id)) {
            return Ok(Some(file));
        }
        let Some(path) = path else { return Ok(None) };
        let path = crate::track::normalise(batch.paths.get(path)).into_owned();
        let file = match self.by_path.get(&path) {
            Some(&file) => file,
            None => {
                let name = self.name(&path);
                let file = self.files.len();
                self.files.push(File { name, descriptions: 0, written_to: 0, needed: 0 });
                self.by_path.insert(path, file);
                self.line(file, "add", None)?;
                file
            }
        };
        if let Some(id) = id {
            self.by_id.insert(id, file);
        }
        Ok(Some(file))
    }

    /// A name of its own for a path, of bytes that fio's scanf takes and a shell leaves alone.
    fn name(&mut self, path: &[u8]) -> Vec<u8> {
        let flat = |&b: &u8| if b.is_ascii_alphanumeric() || b"._+".contains(&b) { b } else { b'-' };
        let mut base: Vec<u8> = path.iter().map(flat).skip_while(|&b| b == b'-' || b == b'.').collect();
        if base.is_empty() {
            base.extend_from_slice(b"file");
        }
        if base.len() > NAME_BYTES_MAX {
            base.truncate(NAME_BYTES_KEPT);
        }
        let mut name = base.clone();
        let mut copy = 1u64;
        while !self.names.insert(name.clone()) {
            copy += 1;
            base.truncate(NAME_BYTES_KEPT);
            name = [&base[..], format!(".{copy}").as_bytes()].concat();
        }
        name
    }

    fn line(&mut self, file: usize, action: &str, range: Option<(u64, u64)>) -> Result<(), ExportError> {
        let Some(state) = self.files.get(file) else { return Ok(()) };
        if self.version == Version::V3 {
            write!(self.out, "{} ", self.now_us)?;
        }
        self.out.write_all(&state.name)?;
        match range {
            Some((offset, length)) => writeln!(self.out, " {action} {offset} {length}")?,
            None => writeln!(self.out, " {action}")?,
        }
        Ok(())
    }

    fn leave_out(&mut self, e: &Event, reason: &'static str) -> Result<(), ExportError> {
        *self.left_out.entry((e.op().name(), reason)).or_default() += 1;
        Ok(())
    }
}
