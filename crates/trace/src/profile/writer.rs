//! Writing a workload profile as a stream.

use super::columns::trace_fields;
use super::encode::Columns;
use super::pages::Encoder;
use super::schedule_file::ScheduleOut;
use super::values::Values;
use super::{
    Annotation, AnnotationKind, FILES, FORMAT, FORMAT_VERSION, META_FILE, Meta, SCHEDULE_FILE, SNAPSHOT_FILE,
    TRACE_FILE, encode, meta, snapshot_file,
};
use crate::room::Room;
use crate::schedule::Turn;
use crate::{Batch, Provenance, Snapshot};
use arrow_schema::{DataType, Field, Schema};
use columnar::{FileError, ParquetOut, create_private, properties};
use parquet::arrow::arrow_writer::{ArrowColumnWriter, compute_leaves};
use parquet::errors::ParquetError;
use posix::cleanup::Growing;
use rustix::fs::{Access, AtFlags, CWD};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a profile is written.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Replace a profile that is there already. Anything else of that name is never replaced.
    pub overwrite: bool,
    /// Columns beyond the format's own, in the order in which [`Writer::push_annotated`] is given their values.
    pub annotations: Vec<Annotation>,
    /// Rows of a row group: the unit of reading, writing and checking.
    pub row_group_rows: usize,
    /// What is left to others on the file system.
    pub room: Option<Room>,
    /// Where the profile grows, and what is left to others where it is put in the end; `None`: it grows beside its
    /// final place.
    pub grows_in: Option<(PathBuf, Room)>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions {
            overwrite: false,
            annotations: Vec::new(),
            row_group_rows: ROW_GROUP_ROWS,
            room: None,
            grows_in: None,
        }
    }
}

/// Rows of a row group by default. Large enough that dictionaries and compression pay, small enough that a decoded row
/// group stays in the order of ten megabytes.
pub const ROW_GROUP_ROWS: usize = 1 << 16;

/// A row group ends early when this many encoded bytes have gathered (long paths), so that memory stays bounded.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// Events taken apart at a time. Each column is a pass over them, so they should stay in the processor's cache.
const CHUNK_ROWS: usize = 1024;

/// Writes `NAME.workload/` as a stream of batches; memory is bounded by one row group.
///
/// Everything goes to a directory beside the final one, which [`finish`](Writer::finish) renames into place; a writer
/// dropped before that removes what it wrote.
pub struct Writer {
    trace: Option<ParquetOut>,
    columns: Columns,
    encoder: Encoder,
    /// The annotation columns of the row group in progress.
    annotations: Vec<ArrowColumnWriter>,
    /// From the first turn on.
    schedule: Option<ScheduleOut>,
    directories: Directories,
    options: WriterOptions,
    events: u64,
    next_seq: u64,
}

impl Writer {
    /// Begins a profile at `directory` (by convention `NAME.workload`).
    ///
    /// # Errors
    /// The directory exists (and is not to be overwritten, or is no profile), or cannot be created.
    pub fn create(directory: &Path, options: WriterOptions) -> Result<Writer, FileError> {
        check_annotations(directory, &options.annotations)?;
        let directories = Directories::create(directory, options.overwrite, options.grows_in.clone())?;
        let mut fields = trace_fields();
        fields.extend(options.annotations.iter().map(|a| Field::new(&a.name, annotation_type(a.kind), true)));
        let schema = Arc::new(Schema::new(fields));
        let path = directories.growing.path().join(TRACE_FILE);
        let encoder = Encoder::new().map_err(FileError::io(&path, "make a compressor"))?;
        let trace = ParquetOut::create(path, schema, properties().build())?;
        Ok(Writer {
            trace: Some(trace),
            columns: Columns::new(),
            encoder,
            annotations: Vec::new(),
            schedule: None,
            directories,
            options,
            events: 0,
            next_seq: 0,
        })
    }

    /// Appends events, in `seq` order.
    ///
    /// # Errors
    /// The disk, or events out of order.
    pub fn push(&mut self, batch: &Batch) -> Result<(), FileError> {
        self.push_annotated(batch, &[])
    }

    /// Appends events with the values of the annotation columns, one [`Values`] per column of the options.
    ///
    /// # Errors
    /// The disk, events out of order, or values whose type or number is not that of the columns.
    pub fn push_annotated(&mut self, batch: &Batch, values: &[Values]) -> Result<(), FileError> {
        self.check_order(batch)?;
        self.check_values(batch, values)?;
        self.push_schedule(&batch.schedule)?;
        self.columns.begin_batch();
        let mut from = 0;
        while from < batch.events.len() {
            let room = self.options.row_group_rows.saturating_sub(self.columns.rows()).max(1);
            let len = (batch.events.len() - from).min(room).min(CHUNK_ROWS);
            self.columns.add(&batch.events[from..from + len], &batch.paths);
            self.annotate(values, from, len)?;
            if self.columns.rows() >= self.options.row_group_rows || self.columns.bytes() >= ROW_GROUP_BYTES {
                self.end_row_group()?;
            }
            self.events += len as u64;
            from += len;
        }
        Ok(())
    }

    /// Appends turns of threads, beside those that come with events.
    ///
    /// # Errors
    /// The disk, or times that contradict each other.
    pub fn push_schedule(&mut self, turns: &[Turn]) -> Result<(), FileError> {
        if turns.is_empty() {
            return Ok(());
        }
        let path = self.directories.growing.path().join(SCHEDULE_FILE);
        if let Some(room) = self.options.room {
            room.check(&path, size_of_val(turns) as u64).map_err(FileError::io(&path, "write"))?;
        }
        match &mut self.schedule {
            Some(schedule) => schedule.push(turns),
            None => self.schedule.insert(ScheduleOut::create(path)?).push(turns),
        }
    }

    /// Adds the annotations' values from `from`, `len` of them, to the row group in progress.
    fn annotate(&mut self, values: &[Values], from: usize, len: usize) -> Result<(), FileError> {
        let Some(trace) = &self.trace else { return Ok(()) };
        let invalid = |e: ParquetError| FileError::invalid(&self.directories.last, e);
        if self.annotations.is_empty() && !values.is_empty() {
            self.annotations = trace.arrow_columns().map_err(invalid)?.split_off(trace_fields().len());
        }
        for (column, values) in self.annotations.iter_mut().zip(values) {
            let field = Field::new("annotation", annotation_type(values.kind()), true);
            for leaf in compute_leaves(&field, &encode::annotation(values, from, len)).map_err(invalid)? {
                column.write(&leaf).map_err(invalid)?;
            }
        }
        Ok(())
    }

    fn end_row_group(&mut self) -> Result<(), FileError> {
        let Some(trace) = &mut self.trace else { return Ok(()) };
        if self.columns.rows() == 0 {
            return Ok(());
        }
        if let Some(room) = self.options.room {
            let path = self.directories.growing.path().join(TRACE_FILE);
            room.check(&path, self.columns.bytes() as u64).map_err(FileError::io(&path, "write"))?;
        }
        let descr = trace.columns();
        let (columns, encoder) = (&mut self.columns, &mut self.encoder);
        let annotations = std::mem::take(&mut self.annotations);
        trace.row_group(|group| {
            columns.write(encoder, &descr, group)?;
            annotations.into_iter().try_for_each(|column| column.close()?.append_to_row_group(group))
        })
    }

    /// The directory in which the profile grows until it is finished. Whoever gives up a writer that another thread
    /// holds removes it.
    pub fn partial(&self) -> &Path {
        self.directories.growing.path()
    }

    /// How many events were pushed.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Writes the snapshot and `meta.json` and renames the profile into place. Returns the meta as written.
    ///
    /// # Errors
    /// The disk; the profile's name was taken meanwhile.
    pub fn finish(self, meta: Meta, snapshot: &Snapshot) -> Result<Meta, FileError> {
        self.finish_unless(meta, snapshot, &mut || false)
    }

    /// The same unless it is given up: that is asked once, when nothing is left but to give the finished profile its
    /// name.
    ///
    /// # Errors
    /// As [`finish`](Self::finish); given up ([`FileError::Io`], interrupted), which leaves nothing.
    pub fn finish_unless(
        mut self,
        mut meta: Meta,
        snapshot: &Snapshot,
        given_up: &mut dyn FnMut() -> bool,
    ) -> Result<Meta, FileError> {
        self.end_row_group()?;
        let Some(trace) = self.trace.take() else { return Ok(meta) };
        let check = trace.finish()?;
        meta.files.clear();
        meta.files.insert(TRACE_FILE.into(), check);
        let check = snapshot_file::write(&self.directories.growing.path().join(SNAPSHOT_FILE), snapshot)?;
        meta.files.insert(SNAPSHOT_FILE.into(), check);
        if let Some(schedule) = self.schedule.take() {
            meta.files.insert(SCHEDULE_FILE.into(), schedule.finish()?);
        }
        meta.format_version = FORMAT_VERSION;
        meta.fsage_version = env!("CARGO_PKG_VERSION").into();
        meta.events = self.events;
        meta.annotations = std::mem::take(&mut self.options.annotations);
        let count = |p: Provenance| snapshot.entries.iter().filter(|e| e.provenance == p).count() as u64;
        meta.snapshot.entries = snapshot.entries.len() as u64;
        meta.snapshot.before = count(Provenance::Before);
        meta.snapshot.after = count(Provenance::After);
        meta.snapshot.trace = count(Provenance::Trace);
        self.write_meta(&meta)?;
        self.directories.publish(given_up)?;
        Ok(meta)
    }

    fn write_meta(&self, meta: &Meta) -> Result<(), FileError> {
        let path = self.directories.growing.path().join(META_FILE);
        let text = meta::to_text(meta).map_err(|e| FileError::invalid(&path, e))?;
        let mut file = create_private(&path)?;
        io::Write::write_all(&mut file, text.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(FileError::io(&path, "write"))
    }

    fn check_order(&mut self, batch: &Batch) -> Result<(), FileError> {
        for event in &batch.events {
            if event.head.seq < self.next_seq {
                let message =
                    format!("event {} comes after event {}: seq must grow", event.head.seq, self.next_seq - 1);
                return Err(FileError::invalid(&self.directories.last.join(TRACE_FILE), message));
            }
            self.next_seq = event.head.seq.saturating_add(1);
        }
        Ok(())
    }

    fn check_values(&self, batch: &Batch, values: &[Values]) -> Result<(), FileError> {
        let fits = values.len() == self.options.annotations.len()
            && values
                .iter()
                .zip(&self.options.annotations)
                .all(|(v, a)| v.kind() == a.kind && v.len() == batch.events.len());
        if fits {
            return Ok(());
        }
        let message = "annotation values do not fit the annotation columns in number, type or length";
        Err(FileError::invalid(&self.directories.last.join(TRACE_FILE), message))
    }
}

fn annotation_type(kind: AnnotationKind) -> DataType {
    match kind {
        AnnotationKind::F64 => DataType::Float64,
        AnnotationKind::U64 => DataType::UInt64,
        AnnotationKind::Bool => DataType::Boolean,
        AnnotationKind::Utf8 => DataType::Utf8,
    }
}

/// Annotation names must be new ones, or two columns would answer to one name.
fn check_annotations(directory: &Path, annotations: &[Annotation]) -> Result<(), FileError> {
    let mut names: Vec<String> = trace_fields().iter().map(|f| f.name().clone()).collect();
    for annotation in annotations {
        if names.contains(&annotation.name) {
            let message = format!("there is a column {} already", annotation.name);
            return Err(FileError::invalid(&directory.join(TRACE_FILE), message));
        }
        names.push(annotation.name.clone());
    }
    Ok(())
}

/// Where a path's last name is.
fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The final directory and the one in which the profile grows.
struct Directories {
    last: PathBuf,
    growing: Growing,
    overwrite: bool,
    /// What is left to others in the final place, if the profile grows elsewhere.
    room: Option<Room>,
}

impl Directories {
    fn create(last: &Path, overwrite: bool, grows_in: Option<(PathBuf, Room)>) -> Result<Directories, FileError> {
        check_replaceable(last, overwrite)?;
        let invalid = || FileError::invalid(last, "not a name for a directory");
        let name = last.file_name().ok_or_else(invalid)?;
        Growing::sweep(parent_of(last), Some(name), &FILES);
        if grows_in.is_some() {
            // It is told now, and not when everything is done.
            let (needed, as_we_are) = (Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
            let may = rustix::fs::accessat(CWD, parent_of(last), needed, as_we_are).map_err(io::Error::from);
            may.map_err(FileError::io(last, "make it there"))?;
        }
        let parent = grows_in.as_ref().map_or(parent_of(last), |(directory, _)| directory);
        // What a workload calls its files is nobody else's business.
        let growing = Growing::within(parent, name);
        let growing = growing.map_err(FileError::io(last, "create a directory for it to grow in"))?;
        Ok(Directories { last: last.to_owned(), growing, overwrite, room: grows_in.map(|(_, room)| room) })
    }

    /// A copy of what grew elsewhere, beside the final place, from where it can be renamed.
    fn near(&mut self) -> Result<Option<Directories>, FileError> {
        if parent_of(self.growing.path()) == parent_of(&self.last) {
            return Ok(None);
        }
        if let Some(room) = self.room {
            let sizes = FILES.map(|name| fs::metadata(self.growing.path().join(name)));
            let bytes = sizes.into_iter().flatten().map(|meta| meta.len()).sum();
            room.check(parent_of(&self.last), bytes).map_err(FileError::io(&self.last, "write"))?;
        }
        let near = Directories::create(&self.last, self.overwrite, None)?;
        for name in FILES {
            let (from, to) = (self.growing.path().join(name), near.growing.path().join(name));
            if name == SCHEDULE_FILE && !from.exists() {
                continue;
            }
            let mut new = create_private(&to)?;
            let copied = fs::File::open(&from).and_then(|mut old| io::copy(&mut old, &mut new));
            copied.and_then(|_| new.sync_all()).map_err(FileError::io(&to, "copy the profile"))?;
        }
        // Nothing is left to be done when the profile is in its place.
        let grown = self.growing.path().to_owned();
        self.growing.remove().map_err(FileError::io(&grown, "remove"))?;
        Ok(Some(near))
    }

    /// Gives the finished profile its name, unless it is given up; an old one goes.
    fn publish(&mut self, given_up: &mut dyn FnMut() -> bool) -> Result<(), FileError> {
        check_replaceable(&self.last, self.overwrite)?;
        let mut near = self.near()?;
        if given_up() {
            return Err(FileError::io(&self.last, "make")(io::ErrorKind::Interrupted.into()));
        }
        let growing = near.as_mut().map_or(&mut self.growing, |near| &mut near.growing);
        growing
            .publish(&self.last, self.overwrite)
            .map_err(FileError::io(&self.last, "rename the finished profile into place"))
    }
}

/// Fails unless nothing is there, or a profile (nothing but a profile) that may be overwritten.
fn check_replaceable(path: &Path, overwrite: bool) -> Result<(), FileError> {
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(FileError::io(path, "look at")(e)),
        Ok(_) if !overwrite => return Err(FileError::Exists { path: path.to_owned() }),
        Ok(found) if !found.is_dir() => return Err(FileError::NotOurs { path: path.to_owned(), format: &FORMAT }),
        Ok(_) => {}
    }
    for entry in fs::read_dir(path).map_err(FileError::io(path, "list"))? {
        let name = entry.map_err(FileError::io(path, "list"))?.file_name();
        if !FILES.iter().any(|ours| name == *ours) {
            return Err(FileError::NotOurs { path: path.to_owned(), format: &FORMAT });
        }
    }
    Ok(())
}
