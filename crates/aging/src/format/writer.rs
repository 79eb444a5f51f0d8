//! Writing an aging workload.

use super::books::Books;
use super::{DAYS_MAX, FORMAT, FORMAT_VERSION, PlanMeta, ROW_GROUP_ROWS, columns};
use crate::{AgingOp, DAY_NS, Tree};
use arrow_array::{ArrayRef, StringArray, UInt64Array};
use columnar::{FileError, ParquetOut};
use posix::output::Output;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace::profile::escape;

/// Writes `NAME.aging`, checks every operation against the tree made so far, and keeps the books that go into the
/// description.
///
/// Nothing is under the final name until [`Writer::finish`]; a writer dropped before removes what it wrote.
pub struct Writer {
    path: PathBuf,
    output: Output,
    out: Option<ParquetOut>,
    rows: Vec<AgingOp>,
    books: Books,
}

impl Writer {
    /// Begins a file for a file system of `capacity_bytes` in blocks of `block_bytes`. A file of that name is replaced
    /// when the new one is whole.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn create(path: &Path, capacity_bytes: u64, block_bytes: u64) -> Result<Writer, FileError> {
        let (output, file) = Output::create(path, 0o666).map_err(FileError::io(path, "make the file"))?;
        let out = ParquetOut::into_file(file, path.to_owned(), columns::schema(), columns::settings())?;
        let rows = Vec::with_capacity(ROW_GROUP_ROWS);
        let books = Books::new(capacity_bytes, block_bytes);
        Ok(Writer { path: path.to_owned(), output, out: Some(out), rows, books })
    }

    /// The tree as the operations pushed so far have made it.
    pub fn tree(&self) -> &Tree {
        self.books.tree()
    }

    /// Lengths of the files alive, each rounded up to a block, summed.
    pub fn used_bytes(&self) -> u64 {
        self.books.used_bytes()
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.books.operations()
    }

    /// Adds one operation.
    ///
    /// # Errors
    /// [`FileError::Invalid`] for one that contradicts those before it (a fault of the planner); [`FileError::Io`].
    pub fn push(&mut self, op: AgingOp) -> Result<(), FileError> {
        let day = op.t_ns / DAY_NS;
        if day >= u64::from(DAYS_MAX) {
            return Err(self.invalid(&op, format!("day {day} is beyond {DAYS_MAX}")));
        }
        if let Some(name) = &op.name {
            super::reader::check_name(name).map_err(|why| self.invalid(&op, why))?;
        }
        self.books.apply(&op).map_err(|why| self.invalid(&op, why.to_string()))?;
        self.rows.push(op);
        if self.rows.len() == ROW_GROUP_ROWS { self.flush() } else { Ok(()) }
    }

    fn invalid(&self, op: &AgingOp, why: String) -> FileError {
        let place = format!("operation {} ({} of node {})", self.books.operations(), op.kind.name(), op.node.0);
        FileError::invalid(&self.path, format!("{place}: {why}"))
    }

    fn flush(&mut self) -> Result<(), FileError> {
        let Some(out) = &mut self.out else { return Ok(()) };
        let rows = &self.rows;
        let numbers =
            |f: fn(&AgingOp) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(rows.iter().map(f))) };
        out.write_arrays(vec![
            numbers(|op| op.t_ns),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|op| op.kind.name()))),
            numbers(|op| op.node.0),
            numbers(|op| op.dir.0),
            Arc::new(rows.iter().map(|op| op.name.as_deref().map(escape)).collect::<StringArray>()),
            numbers(|op| op.offset_bytes),
            numbers(|op| op.size_bytes),
        ])?;
        out.end_row_group()?;
        self.rows.clear();
        Ok(())
    }

    /// Ends the file and gives it its name. Of `meta`, `version`, `fsage`, `counts` and `utilisation` are filled in
    /// here; the last days of `meta.days` that saw no operation are there too.
    ///
    /// # Errors
    /// [`FileError::Io`]; [`FileError::Invalid`] for a `meta.days` before the last operation.
    pub fn finish(mut self, mut meta: PlanMeta) -> Result<PlanMeta, FileError> {
        self.flush()?;
        if meta.days > DAYS_MAX {
            let message = format!("{} days are more than {DAYS_MAX}", meta.days);
            return Err(FileError::invalid(&self.path, message));
        }
        let now_ns = self.books.tree().now_ns();
        if now_ns / DAY_NS >= u64::from(meta.days) && self.books.operations() > 0 {
            let message = format!("the last operation is on day {}, of {}", now_ns / DAY_NS + 1, meta.days);
            return Err(FileError::invalid(&self.path, message));
        }
        meta.version = FORMAT_VERSION;
        meta.fsage = env!("CARGO_PKG_VERSION").to_owned();
        (meta.capacity_bytes, meta.block_bytes) = (self.books.capacity_bytes, self.books.block_bytes);
        (meta.counts, meta.utilisation) = self.books.close(meta.days);
        if let Some(mut out) = self.out.take() {
            out.describe(&FORMAT, &meta)?;
            out.finish()?;
        }
        let Writer { path, output, .. } = self;
        output.finish().map_err(FileError::io(&path, "give the finished file its name"))?;
        Ok(meta)
    }
}
