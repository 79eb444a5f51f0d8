//! Single rows of a trace with their annotations, to be looked at.

use super::values::Values;
use super::{Reader, decode};
use crate::Batch;
use arrow_array::RecordBatch;
use columnar::{Columns, FileError};

/// A few consecutive rows of a trace.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Row number of the first (rows count from 0).
    pub first_row: u64,
    /// The events and the paths they name.
    pub batch: Batch,
    /// Every column beyond the format's own that has a type of [`Values`], by name, with a value per event.
    pub annotations: Vec<(String, Values)>,
}

impl Reader {
    /// At most `count` rows from row `from`, annotations included; fewer (or none) at the end of the trace. Reads
    /// whole row groups: meant for looking, not for streaming.
    ///
    /// # Errors
    /// A damaged or unreadable row group.
    pub fn rows(&self, from: u64, count: usize) -> Result<Rows, FileError> {
        let schema = self.trace.schema();
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let mut out = Rows { first_row: from, ..Rows::default() };
        let mut found = 0;
        for group in 0..self.trace.row_groups() {
            let Some((first_row, rows)) = self.trace.row_range(group) else { break };
            let end = first_row + rows as u64;
            if end <= from || found >= count {
                continue;
            }
            self.trace.read_row_group(group, &names, |columns| {
                let skip = usize::try_from(from.saturating_sub(columns.first_row())).unwrap_or(usize::MAX);
                let skip = skip.min(columns.rows());
                let take = (columns.rows() - skip).min(count - found);
                let slice = columns.batch().slice(skip, take);
                let first = columns.first_row() + skip as u64;
                decode::append(&Columns::new(columns.file(), &slice, first), &mut out.batch)?;
                append_annotations(&slice, &mut out.annotations);
                found += take;
                Ok(())
            })?;
        }
        Ok(out)
    }
}

fn append_annotations(batch: &RecordBatch, out: &mut Vec<(String, Values)>) {
    let ours = super::columns::trace_fields();
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        if ours.iter().any(|f| f.name() == field.name()) {
            continue;
        }
        let Some(values) = decode::values(array.as_ref()) else { continue };
        match out.iter_mut().find(|(name, _)| name == field.name()) {
            None => out.push((field.name().clone(), values)),
            Some((_, have)) => match (have, values) {
                (Values::F64(a), Values::F64(b)) => a.extend(b),
                (Values::U64(a), Values::U64(b)) => a.extend(b),
                (Values::Bool(a), Values::Bool(b)) => a.extend(b),
                (Values::Utf8(a), Values::Utf8(b)) => a.extend(b),
                // The columns of one file have one type.
                _ => {}
            },
        }
    }
}
