//! Reading a workload profile as a stream.

use super::columns::trace_fields;
use super::{
    FORMAT, META_FILE, Meta, SCHEDULE_FILE, SNAPSHOT_FILE, TRACE, TRACE_FILE, check_of, decode, meta, schedule_file,
    snapshot_file,
};
use crate::schedule::Turn;
use crate::{Batch, Event, Op, Snapshot, flag};
use arrow_schema::Field;
use columnar::{FileError, NameRoom, ParquetIn};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// An open workload profile.
pub struct Reader {
    directory: PathBuf,
    meta: Meta,
    pub(super) trace: ParquetIn,
    snapshot: ParquetIn,
    schedule: Option<ParquetIn>,
    returned: BTreeMap<u64, u64>,
}

/// `meta.json` is read whole; none is anywhere near this long.
const META_BYTES_MAX: u64 = 256 << 20;

impl Reader {
    /// Opens a profile: reads `meta.json`, and checks that trace and snapshot are there, whole as far as length and
    /// footer tell, and have the right columns. Row groups are verified when they are read.
    ///
    /// # Errors
    /// [`FileError`], naming file and place.
    pub fn open(directory: &Path) -> Result<Reader, FileError> {
        posix::memory::in_hand(directory);
        let mut meta = read_meta(directory)?;
        let returned = std::mem::take(&mut meta.returned);
        let (path, check) = (directory.join(TRACE_FILE), check_of(&meta, TRACE_FILE));
        let trace = ParquetIn::open(path, &TRACE, check, decode::trace_schema)?;
        let snapshot = snapshot_file::open(directory.join(SNAPSHOT_FILE), check_of(&meta, SNAPSHOT_FILE))?;
        if trace.rows() != meta.events {
            let (rows, stated) = (trace.rows(), meta.events);
            let message = format!("{rows} rows where meta.json states {stated} \"events\"");
            return Err(trace.corrupt("footer", message));
        }
        let path = directory.join(SCHEDULE_FILE);
        let has_schedule = meta.files.contains_key(SCHEDULE_FILE) || path.exists();
        let schedule = has_schedule.then(|| schedule_file::open(path, check_of(&meta, SCHEDULE_FILE))).transpose()?;
        Ok(Reader { directory: directory.to_owned(), meta, trace, snapshot, schedule, returned })
    }

    /// The profile's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// `meta.json`, but for [`Meta::returned`], which the rows already follow.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Rows of the trace.
    pub fn events(&self) -> u64 {
        self.trace.rows()
    }

    /// The file of the trace itself, for who wants its columns and not its events.
    pub fn trace_file(&self) -> &ParquetIn {
        &self.trace
    }

    /// The file of the names that were there when the trace began.
    pub fn snapshot_file(&self) -> &ParquetIn {
        &self.snapshot
    }

    /// The file that tells when threads had no processor; `None`: the tracer does not tell.
    pub fn schedule_file(&self) -> Option<&ParquetIn> {
        self.schedule.as_ref()
    }

    /// The events from the first, a batch per row group.
    ///
    /// # Errors
    /// None now; the iterator's items carry what is found wrong while reading, and end there.
    pub fn batches(&self) -> Result<Batches<'_>, FileError> {
        self.batches_without(&[])
    }

    /// The same without the columns named, which takes less time: in each event their values are none. Only numbers
    /// that may be none anyway can be left out.
    ///
    /// # Errors
    /// As [`batches`](Reader::batches).
    pub fn batches_without(&self, unread: &[&str]) -> Result<Batches<'_>, FileError> {
        let mut columns = trace_fields();
        for name in unread {
            let field = columns.iter().find(|field| field.name() == name);
            assert!(
                field.is_some_and(|field| field.is_nullable() && field.data_type().is_primitive()),
                "{name} is needed"
            );
            columns.retain(|field| field.name() != name);
        }
        let room = self.trace.room_for_names();
        Ok(Batches { reader: self, columns, next: 0, returned: self.returned.clone(), room })
    }

    /// The names that were there when the trace began.
    ///
    /// # Errors
    /// The snapshot is damaged, or not in order.
    pub fn snapshot(&self) -> Result<Snapshot, FileError> {
        snapshot_file::read(&self.snapshot)
    }

    /// When threads had no processor and why, in the order in which that was recorded; `None`: the tracer does not
    /// tell.
    ///
    /// # Errors
    /// The file is damaged, or its times contradict each other.
    pub fn schedule(&self) -> Result<Option<Vec<Turn>>, FileError> {
        self.schedule.as_ref().map(schedule_file::read).transpose()
    }
}

/// The events of a trace, one row group at a time.
pub struct Batches<'a> {
    reader: &'a Reader,
    columns: Vec<Field>,
    next: usize,
    /// Of the rows to come: how many closes of a description are not its last.
    returned: BTreeMap<u64, u64>,
    /// For the names of the rows to come.
    room: NameRoom,
}

impl Batches<'_> {
    /// Reads the next batch into `batch`, whose contents are replaced and whose memory is used again. `false` at the
    /// end.
    ///
    /// # Errors
    /// A damaged or unreadable row group, named.
    pub fn next_into(&mut self, batch: &mut Batch) -> Result<bool, FileError> {
        batch.events.clear();
        batch.paths.clear();
        batch.schedule.clear();
        let trace = &self.reader.trace;
        if self.next >= trace.row_groups() {
            return Ok(false);
        }
        let names: Vec<&str> = self.columns.iter().map(|f| f.name().as_str()).collect();
        let group = self.next;
        // After an error the iterator has ended: the rows that follow a hole would mislead.
        self.next = trace.row_groups();
        trace.read_row_group(group, &names, |columns| decode::append(columns, batch))?;
        trace.take_names(&mut self.room, batch.paths.bytes())?;
        self.next = group + 1;
        if !self.returned.is_empty() {
            batch.events.iter_mut().for_each(|event| self.keep_open(event));
        }
        Ok(true)
    }

    /// Takes the mark off a close that was not the last.
    fn keep_open(&mut self, event: &mut Event) {
        if event.op() == Op::Close
            && event.head.flags & flag::LAST != 0
            && let Some(ofd) = event.ofd()
            && let Some(times) = self.returned.get_mut(&ofd.0).filter(|times| **times > 0)
        {
            *times -= 1;
            event.head.flags &= !flag::LAST;
        }
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<Batch, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut batch = Batch::default();
        match self.next_into(&mut batch) {
            Ok(true) => Some(Ok(batch)),
            Ok(false) => None,
            Err(e) => Some(Err(e)),
        }
    }
}

fn read_meta(directory: &Path) -> Result<Meta, FileError> {
    let path = directory.join(META_FILE);
    match directory.metadata() {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(FileError::IsFile { path: directory.to_owned(), format: &FORMAT }),
        Err(_) => return Err(FORMAT.missing(directory)),
    }
    let bytes = posix::input::read(&path, META_BYTES_MAX).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => FORMAT.missing(&path),
        _ => FileError::io(&path, "read")(e),
    })?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|e| FORMAT.corrupt(&path, format!("byte {}", e.valid_up_to()), "not UTF-8"))?;
    meta::from_text(&path, text)
}
