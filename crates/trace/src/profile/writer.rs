//! Writing a workload profile as a stream.

use super::columns::trace_fields;
use super::encode::Columns;
use super::pages::Encoder;
use super::{
    Annotation, AnnotationKind, FORMAT_VERSION, META_FILE, Meta, ProfileError, SNAPSHOT_FILE, TRACE_FILE, encode, meta,
    snapshot_file,
};
use crate::parquet_file::{self, ParquetOut};
use crate::{Batch, Provenance, Snapshot};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::arrow_writer::{ArrowColumnWriter, compute_leaves};
use parquet::errors::ParquetError;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a profile is written.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Replace a profile that is there already. Anything else of that name is never replaced.
    pub overwrite: bool,
    /// Columns beyond the format's own, in the order in which [`Writer::push_annotated`] is given their values.
    pub annotations: Vec<Annotation>,
    /// Rows of a row group: the unit of reading, writing and checking.
    pub row_group_rows: usize,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions { overwrite: false, annotations: Vec::new(), row_group_rows: ROW_GROUP_ROWS }
    }
}

/// Rows of a row group by default. Large enough that dictionaries and compression pay, small enough that a decoded row
/// group stays in the order of ten megabytes.
pub const ROW_GROUP_ROWS: usize = 1 << 16;

/// A row group ends early when this many encoded bytes have gathered (long paths), so that memory stays bounded.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// Events taken apart at a time. Each column is a pass over them, so they should stay in the processor's cache.
const CHUNK_ROWS: usize = 1024;

/// The values of one annotation column for one batch; `None` is a null.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// For [`AnnotationKind::F64`].
    F64(Vec<Option<f64>>),
    /// For [`AnnotationKind::U64`].
    U64(Vec<Option<u64>>),
    /// For [`AnnotationKind::Bool`].
    Bool(Vec<Option<bool>>),
    /// For [`AnnotationKind::Utf8`].
    Utf8(Vec<Option<String>>),
}

impl Values {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Values::F64(v) => v.len(),
            Values::U64(v) => v.len(),
            Values::Bool(v) => v.len(),
            Values::Utf8(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their type.
    pub fn kind(&self) -> AnnotationKind {
        match self {
            Values::F64(_) => AnnotationKind::F64,
            Values::U64(_) => AnnotationKind::U64,
            Values::Bool(_) => AnnotationKind::Bool,
            Values::Utf8(_) => AnnotationKind::Utf8,
        }
    }
}

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
    pub fn create(directory: &Path, options: WriterOptions) -> Result<Writer, ProfileError> {
        check_annotations(directory, &options.annotations)?;
        let directories = Directories::create(directory, options.overwrite)?;
        let mut fields = trace_fields();
        fields.extend(options.annotations.iter().map(|a| Field::new(&a.name, annotation_type(a.kind), true)));
        let schema = Arc::new(Schema::new(fields));
        let path = directories.partial.join(TRACE_FILE);
        let encoder = Encoder::new().map_err(ProfileError::io(&path, "make a compressor"))?;
        let trace = ParquetOut::create(path, schema, parquet_file::properties().build())?;
        Ok(Writer {
            trace: Some(trace),
            columns: Columns::new(),
            encoder,
            annotations: Vec::new(),
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
    pub fn push(&mut self, batch: &Batch) -> Result<(), ProfileError> {
        self.push_annotated(batch, &[])
    }

    /// Appends events with the values of the annotation columns, one [`Values`] per column of the options.
    ///
    /// # Errors
    /// The disk, events out of order, or values whose type or number is not that of the columns.
    pub fn push_annotated(&mut self, batch: &Batch, values: &[Values]) -> Result<(), ProfileError> {
        self.check_order(batch)?;
        self.check_values(batch, values)?;
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

    /// Adds the annotations' values from `from`, `len` of them, to the row group in progress.
    fn annotate(&mut self, values: &[Values], from: usize, len: usize) -> Result<(), ProfileError> {
        let Some(trace) = &self.trace else { return Ok(()) };
        let invalid =
            |e: ParquetError| ProfileError::Invalid { path: self.directories.last.clone(), message: e.to_string() };
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

    fn end_row_group(&mut self) -> Result<(), ProfileError> {
        let Some(trace) = &mut self.trace else { return Ok(()) };
        if self.columns.rows() == 0 {
            return Ok(());
        }
        let descr = trace.columns();
        let (columns, encoder) = (&mut self.columns, &mut self.encoder);
        let annotations = std::mem::take(&mut self.annotations);
        trace.row_group(|group| {
            columns.write(encoder, &descr, group)?;
            annotations.into_iter().try_for_each(|column| column.close()?.append_to_row_group(group))
        })
    }

    /// The directory in which the profile grows until it is finished. Whoever gives up a writer that another thread holds removes it.
    pub fn partial(&self) -> &Path {
        &self.directories.partial
    }

    /// How many events were pushed.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Writes the snapshot and `meta.json` and renames the profile into place. Returns the meta as written.
    ///
    /// # Errors
    /// The disk; the profile's name was taken meanwhile.
    pub fn finish(mut self, mut meta: Meta, snapshot: &Snapshot) -> Result<Meta, ProfileError> {
        self.end_row_group()?;
        let Some(trace) = self.trace.take() else { return Ok(meta) };
        let check = trace.finish()?;
        meta.files.clear();
        meta.files.insert(TRACE_FILE.into(), check);
        let check = snapshot_file::write(&self.directories.partial.join(SNAPSHOT_FILE), snapshot)?;
        meta.files.insert(SNAPSHOT_FILE.into(), check);
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
        self.directories.publish()?;
        Ok(meta)
    }

    fn write_meta(&self, meta: &Meta) -> Result<(), ProfileError> {
        let path = self.directories.partial.join(META_FILE);
        let text =
            meta::to_text(meta).map_err(|e| ProfileError::Invalid { path: path.clone(), message: e.to_string() })?;
        let mut file = parquet_file::create_private(&path)?;
        io::Write::write_all(&mut file, text.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(ProfileError::io(&path, "write"))
    }

    fn check_order(&mut self, batch: &Batch) -> Result<(), ProfileError> {
        for event in &batch.events {
            if event.seq < self.next_seq {
                let message = format!("event {} comes after event {}: seq must grow", event.seq, self.next_seq - 1);
                return Err(ProfileError::Invalid { path: self.directories.last.join(TRACE_FILE), message });
            }
            self.next_seq = event.seq.saturating_add(1);
        }
        Ok(())
    }

    fn check_values(&self, batch: &Batch, values: &[Values]) -> Result<(), ProfileError> {
        let fits = values.len() == self.options.annotations.len()
            && values
                .iter()
                .zip(&self.options.annotations)
                .all(|(v, a)| v.kind() == a.kind && v.len() == batch.events.len());
        if fits {
            return Ok(());
        }
        let message = "annotation values do not fit the annotation columns in number, type or length".into();
        Err(ProfileError::Invalid { path: self.directories.last.join(TRACE_FILE), message })
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
fn check_annotations(directory: &Path, annotations: &[Annotation]) -> Result<(), ProfileError> {
    let mut names: Vec<String> = trace_fields().iter().map(|f| f.name().clone()).collect();
    for annotation in annotations {
        if names.contains(&annotation.name) {
            let message = format!("there is a column {} already", annotation.name);
            return Err(ProfileError::Invalid { path: directory.join(TRACE_FILE), message });
        }
        names.push(annotation.name.clone());
    }
    Ok(())
}

/// The final directory and the one beside it in which the profile grows.
struct Directories {
    last: PathBuf,
    partial: PathBuf,
    overwrite: bool,
    published: bool,
    /// Locked while the profile grows: a directory nobody has locked was left by a killed writer.
    _lock: fs::File,
}

impl Directories {
    fn create(last: &Path, overwrite: bool) -> Result<Directories, ProfileError> {
        check_replaceable(last, overwrite)?;
        let invalid = || ProfileError::Invalid { path: last.to_owned(), message: "not a name for a directory".into() };
        let name = last.file_name().ok_or_else(invalid)?;
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        prefix.push(".partial-");
        sweep(last, &prefix);
        static WRITERS: AtomicU64 = AtomicU64::new(0);
        loop {
            let mut partial_name = prefix.clone();
            partial_name.push(format!("{}-{}", std::process::id(), WRITERS.fetch_add(1, Ordering::Relaxed)));
            let partial = last.with_file_name(partial_name);
            // What a workload calls its files is nobody else's business.
            match fs::DirBuilder::new().mode(0o700).create(&partial) {
                Ok(()) => {}
                // Of a process of this number elsewhere (another container), which lives and holds its lock.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(ProfileError::io(&partial, "create the directory")(e)),
            }
            let lock = fs::File::open(&partial).map_err(ProfileError::io(&partial, "open the directory"))?;
            // Taken by a sweep in the moment before the lock: another name will do.
            if lock_is_ours(&lock) != Some(false) && partial.exists() {
                return Ok(Directories { last: last.to_owned(), partial, overwrite, published: false, _lock: lock });
            }
        }
    }

    /// Renames the finished profile into place; an old one is moved aside first and removed after.
    fn publish(&mut self) -> Result<(), ProfileError> {
        check_replaceable(&self.last, self.overwrite)?;
        let mut old_name = self.partial.clone().into_os_string();
        old_name.push("-old");
        let old = PathBuf::from(old_name);
        let replaced = match fs::rename(&self.last, &old) {
            Ok(()) => true,
            Err(e) if e.kind() == io::ErrorKind::NotFound => false,
            Err(e) => return Err(ProfileError::io(&self.last, "move the old profile aside")(e)),
        };
        if let Err(e) = fs::rename(&self.partial, &self.last) {
            if replaced {
                fs::rename(&old, &self.last).map_err(ProfileError::io(&old, "move the old profile back"))?;
            }
            return Err(ProfileError::io(&self.last, "rename the finished profile into place")(e));
        }
        self.published = true;
        if replaced {
            fs::remove_dir_all(&old).map_err(ProfileError::io(&old, "remove the old profile"))?;
        }
        Ok(())
    }
}

/// Removes what killed writers of the same profile left. What cannot be looked at or removed is left alone.
fn sweep(last: &Path, prefix: &std::ffi::OsStr) {
    let parent = last.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let numbers = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        let is_ours = numbers.is_some_and(|n| !n.is_empty() && n.iter().all(|b| b.is_ascii_digit() || *b == b'-'));
        if is_ours
            && let Ok(directory) = fs::File::open(entry.path())
            && lock_is_ours(&directory) == Some(true)
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Locks a directory; `false` if somebody else has the lock, `None` where the file system has no locks.
fn lock_is_ours(directory: &fs::File) -> Option<bool> {
    use rustix::fs::{FlockOperation, flock};
    match flock(directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Some(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Some(false),
        Err(_) => None,
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        if !self.published {
            // Nothing can be reported here; what is left is a hidden directory named after this process.
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}

/// Fails unless nothing is there, or a profile (nothing but a profile) that may be overwritten.
fn check_replaceable(path: &Path, overwrite: bool) -> Result<(), ProfileError> {
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(ProfileError::io(path, "look at")(e)),
        Ok(_) if !overwrite => return Err(ProfileError::Exists { path: path.to_owned() }),
        Ok(found) if !found.is_dir() => return Err(ProfileError::NotOurs { path: path.to_owned() }),
        Ok(_) => {}
    }
    for entry in fs::read_dir(path).map_err(ProfileError::io(path, "list"))? {
        let name = entry.map_err(ProfileError::io(path, "list"))?.file_name();
        if ![META_FILE, TRACE_FILE, SNAPSHOT_FILE].iter().any(|ours| name == *ours) {
            return Err(ProfileError::NotOurs { path: path.to_owned() });
        }
    }
    Ok(())
}
