//! Writing an aging workload.

use super::{DAYS_MAX, DayUse, FORMAT_VERSION, META_KEY, PlanMeta, ROW_GROUP_ROWS, columns};
use crate::{AgingError, AgingOp, DAY_NS, OpKind, Tree};
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use posix::output::Output;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace::parquet_file::ParquetOut;
use trace::profile::escape;

/// Writes `NAME.aging`, checks every operation against the tree made so far, and keeps the books that go into the description.
///
/// Nothing is under the final name until [`Writer::finish`]; a writer dropped before removes what it wrote.
pub struct Writer {
    path: PathBuf,
    output: Output,
    out: Option<ParquetOut>,
    rows: Vec<AgingOp>,
    tree: Tree,
    books: Books,
}

/// Sums over what was pushed.
struct Books {
    capacity_bytes: u64,
    block_bytes: u64,
    operations: u64,
    by_kind: [u64; OpKind::ALL.len()],
    written_bytes: u64,
    used_bytes: u64,
    used_bytes_max: u64,
    days: Vec<DayUse>,
}

impl Books {
    fn rounded(&self, bytes: u64) -> u64 {
        bytes.checked_next_multiple_of(self.block_bytes.max(1)).unwrap_or(u64::MAX)
    }

    /// Ends the days before `day` (from 0).
    fn end_days(&mut self, day: u64, files: u64) {
        while (self.days.len() as u64) < day {
            let number = u32::try_from(self.days.len() + 1).unwrap_or(u32::MAX);
            let used_share =
                if self.capacity_bytes == 0 { 0.0 } else { self.used_bytes as f64 / self.capacity_bytes as f64 };
            let (operations, used_bytes) = (self.operations, self.used_bytes);
            self.days.push(DayUse { day: number, operations, files, used_bytes, used_share });
        }
    }
}

impl Writer {
    /// Begins a file for a file system of `capacity_bytes` in blocks of `block_bytes`. A file of that name is replaced
    /// when the new one is whole.
    ///
    /// # Errors
    /// [`AgingError::Io`].
    pub fn create(path: &Path, capacity_bytes: u64, block_bytes: u64) -> Result<Writer, AgingError> {
        let made = Output::create(path, 0o666);
        let (output, file) =
            made.map_err(|source| AgingError::Io { path: path.to_owned(), doing: "make the file", source })?;
        let out = ParquetOut::into_file(file, path.to_owned(), columns::schema(), columns::properties())?;
        let books = Books {
            capacity_bytes,
            block_bytes,
            operations: 0,
            by_kind: [0; OpKind::ALL.len()],
            written_bytes: 0,
            used_bytes: 0,
            used_bytes_max: 0,
            days: Vec::new(),
        };
        let rows = Vec::with_capacity(ROW_GROUP_ROWS);
        Ok(Writer { path: path.to_owned(), output, out: Some(out), rows, tree: Tree::new(), books })
    }

    /// The tree as the operations pushed so far have made it.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Lengths of the files alive, each rounded up to a block, summed.
    pub fn used_bytes(&self) -> u64 {
        self.books.used_bytes
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.books.operations
    }

    /// Adds one operation.
    ///
    /// # Errors
    /// [`AgingError::Invalid`] for one that contradicts those before it (a fault of the planner); [`AgingError::Io`].
    pub fn push(&mut self, op: AgingOp) -> Result<(), AgingError> {
        let day = op.t_ns / DAY_NS;
        if day >= u64::from(DAYS_MAX) {
            return Err(self.invalid(&op, format!("day {day} is beyond {DAYS_MAX}")));
        }
        self.books.end_days(day, self.tree.files());
        let before = self.tree.apply(&op).map_err(|why| self.invalid(&op, why.to_string()))?;
        let after = match op.kind {
            OpKind::Delete => 0,
            OpKind::Create | OpKind::Append | OpKind::Truncate => self.tree.get(op.node).map_or(0, |n| n.size_bytes),
            _ => before,
        };
        let books = &mut self.books;
        books.used_bytes = (books.used_bytes + books.rounded(after)).saturating_sub(books.rounded(before));
        books.used_bytes_max = books.used_bytes_max.max(books.used_bytes);
        books.operations += 1;
        books.by_kind[usize::from(op.kind.code())] += 1;
        books.written_bytes += op.written_bytes();
        self.rows.push(op);
        if self.rows.len() == ROW_GROUP_ROWS { self.flush() } else { Ok(()) }
    }

    fn invalid(&self, op: &AgingOp, why: String) -> AgingError {
        let place = format!("operation {} ({} of node {})", self.books.operations, op.kind.name(), op.node.0);
        AgingError::Invalid { path: self.path.clone(), message: format!("{place}: {why}") }
    }

    fn flush(&mut self) -> Result<(), AgingError> {
        let Some(out) = &mut self.out else { return Ok(()) };
        let rows = &self.rows;
        let numbers =
            |f: fn(&AgingOp) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(rows.iter().map(f))) };
        let batch = RecordBatch::try_new(
            columns::schema(),
            vec![
                numbers(|op| op.t_ns),
                Arc::new(StringArray::from_iter_values(rows.iter().map(|op| op.kind.name()))),
                numbers(|op| op.node.0),
                numbers(|op| op.dir.0),
                Arc::new(rows.iter().map(|op| op.name.as_deref().map(escape)).collect::<StringArray>()),
                numbers(|op| op.offset_bytes),
                numbers(|op| op.size_bytes),
            ],
        );
        let batch = batch.map_err(|e| AgingError::Invalid { path: self.path.clone(), message: e.to_string() })?;
        out.write(&batch)?;
        out.end_row_group()?;
        self.rows.clear();
        Ok(())
    }

    /// Ends the file and gives it its name. Of `meta`, `version`, `fsage`, `counts` and `utilisation` are filled in here;
    /// the last days of `meta.days` that saw no operation are there too.
    ///
    /// # Errors
    /// [`AgingError::Io`]; [`AgingError::Invalid`] for a `meta.days` before the last operation.
    pub fn finish(mut self, mut meta: PlanMeta) -> Result<PlanMeta, AgingError> {
        self.flush()?;
        if meta.days > DAYS_MAX {
            let message = format!("{} days are more than {DAYS_MAX}", meta.days);
            return Err(AgingError::Invalid { path: self.path.clone(), message });
        }
        self.books.end_days(u64::from(meta.days), self.tree.files());
        let books = &mut self.books;
        if self.tree.now_ns() / DAY_NS >= u64::from(meta.days) && books.operations > 0 {
            let message = format!("the last operation is on day {}, of {}", self.tree.now_ns() / DAY_NS + 1, meta.days);
            return Err(AgingError::Invalid { path: self.path.clone(), message });
        }
        meta.version = FORMAT_VERSION;
        meta.fsage = env!("CARGO_PKG_VERSION").to_owned();
        meta.capacity_bytes = books.capacity_bytes;
        meta.block_bytes = books.block_bytes;
        meta.utilisation = std::mem::take(&mut books.days);
        let counts = &mut meta.counts;
        counts.operations = books.operations;
        counts.by_kind = OpKind::ALL.iter().zip(books.by_kind).map(|(k, n)| (k.name().to_owned(), n)).collect();
        counts.written_bytes = books.written_bytes;
        counts.files_at_end = self.tree.files();
        counts.bytes_at_end = self.tree.bytes();
        counts.used_bytes_max = books.used_bytes_max;
        let json = serde_json::to_string(&meta)
            .map_err(|e| AgingError::Invalid { path: self.path.clone(), message: e.to_string() })?;
        if let Some(mut out) = self.out.take() {
            out.key_value(META_KEY, json);
            out.finish()?;
        }
        let Writer { path, output, .. } = self;
        output.finish().map_err(|source| AgingError::Io { path, doing: "give the finished file its name", source })?;
        Ok(meta)
    }
}
