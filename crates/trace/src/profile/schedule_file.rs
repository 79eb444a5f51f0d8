//! `schedule.parquet`: a row per turn, in the order in which they were recorded. Only a profile of the recorder in the
//! kernel has it.

use super::SCHEDULE;
use crate::schedule::{Happened, Turn};
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use columnar::{Check, Columns, FileCheck, FileError, ParquetIn, ParquetOut, as_stored, properties};
use std::path::PathBuf;
use std::sync::Arc;

const ROW_GROUP_ROWS: usize = 1 << 16;

fn fields() -> Vec<Field> {
    let required = |name: &str, kind: DataType| Field::new(name, kind, false);
    let optional = |name: &str, kind: DataType| Field::new(name, kind, true);
    vec![
        required("t_ns", DataType::UInt64),
        required("tid", DataType::UInt32),
        required("what", DataType::Utf8),
        optional("woken_ns", DataType::UInt64),
        optional("until_ns", DataType::UInt64),
        optional("own_ns", DataType::UInt64),
        optional("other_tid", DataType::UInt32),
    ]
}

/// The file while it is written.
pub(super) struct ScheduleOut {
    out: ParquetOut,
    path: PathBuf,
}

impl ScheduleOut {
    pub fn create(path: PathBuf) -> Result<ScheduleOut, FileError> {
        let schema = Arc::new(Schema::new(fields()));
        let out = ParquetOut::create(path.clone(), schema, properties().build())?;
        Ok(ScheduleOut { out, path })
    }

    pub fn push(&mut self, turns: &[Turn]) -> Result<(), FileError> {
        if let Some((turn, why)) = turns.iter().find_map(|turn| Some((turn, turn.fault()?))) {
            let message = format!("a turn of thread {} at {} ns: {why}", turn.tid, turn.t_ns);
            return Err(FileError::invalid(&self.path, message));
        }
        for turns in turns.chunks(ROW_GROUP_ROWS) {
            self.out.write_arrays(columns(turns))?;
            if self.out.rows_in_progress() >= ROW_GROUP_ROWS {
                self.out.end_row_group()?;
            }
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<FileCheck, FileError> {
        self.out.end_row_group()?;
        self.out.finish()
    }
}

fn columns(turns: &[Turn]) -> Vec<ArrayRef> {
    let woken = |turn: &Turn| match turn.what {
        Happened::Slept { woken_ns, .. } => Some(woken_ns),
        _ => None,
    };
    let until = |turn: &Turn| match turn.what {
        Happened::Slept { until_ns, .. } | Happened::Waited { until_ns } => Some(until_ns),
        _ => None,
    };
    let own = |turn: &Turn| match turn.what {
        Happened::Recorder { own_ns } => Some(own_ns),
        _ => None,
    };
    let other = |turn: &Turn| match turn.what {
        Happened::Began { parent } => Some(parent),
        Happened::Slept { waker, .. } => waker,
        _ => None,
    };
    vec![
        Arc::new(UInt64Array::from_iter_values(turns.iter().map(|turn| turn.t_ns))),
        Arc::new(UInt32Array::from_iter_values(turns.iter().map(|turn| turn.tid))),
        Arc::new(StringArray::from_iter_values(turns.iter().map(|turn| turn.what.name()))),
        Arc::new(turns.iter().map(woken).collect::<UInt64Array>()),
        Arc::new(turns.iter().map(until).collect::<UInt64Array>()),
        Arc::new(turns.iter().map(own).collect::<UInt64Array>()),
        Arc::new(turns.iter().map(other).collect::<UInt32Array>()),
    ]
}

/// Opens the file and checks its columns.
pub(super) fn open(path: PathBuf, check: Check<'_>) -> Result<ParquetIn, FileError> {
    ParquetIn::open(path, &SCHEDULE, check, as_stored(&fields()))
}

/// Reads all turns.
pub(super) fn read(file: &ParquetIn) -> Result<Vec<Turn>, FileError> {
    let fields = fields();
    let names: Vec<&str> = fields.iter().map(|f| f.name().as_str()).collect();
    let mut turns = Vec::new();
    for group in 0..file.row_groups() {
        file.read_row_group(group, &names, |columns| append(columns, &mut turns))?;
    }
    Ok(turns)
}

fn append(columns: &Columns<'_>, out: &mut Vec<Turn>) -> Result<(), FileError> {
    let times = columns.numbers::<UInt64Type>("t_ns")?;
    let tids = columns.numbers::<UInt32Type>("tid")?;
    let whats = columns.text("what")?;
    let woken = columns.optional_numbers::<UInt64Type>("woken_ns")?;
    let until = columns.optional_numbers::<UInt64Type>("until_ns")?;
    let own = columns.optional_numbers::<UInt64Type>("own_ns")?;
    let others = columns.optional_numbers::<UInt32Type>("other_tid")?;
    for (i, (&t_ns, &tid)) in times.iter().zip(tids).enumerate() {
        let needed = |column: &str| columns.corrupt(i, column, format!("is null where what is {:?}", whats.value(i)));
        let woken_ns = || woken.is_valid(i).then(|| woken.value(i)).ok_or_else(|| needed("woken_ns"));
        let until_ns = || until.is_valid(i).then(|| until.value(i)).ok_or_else(|| needed("until_ns"));
        let own_ns = || own.is_valid(i).then(|| own.value(i)).ok_or_else(|| needed("own_ns"));
        let other = others.is_valid(i).then(|| others.value(i));
        let what = match whats.value(i) {
            "began" => Happened::Began { parent: other.ok_or_else(|| needed("other_tid"))? },
            "slept" => Happened::Slept { woken_ns: woken_ns()?, until_ns: until_ns()?, waker: other },
            "waited" => Happened::Waited { until_ns: until_ns()? },
            "recorder" => Happened::Recorder { own_ns: own_ns()? },
            "ended" => Happened::Ended,
            unknown => return Err(columns.corrupt(i, "what", format!("unknown value {unknown:?}"))),
        };
        let turn = Turn { tid, t_ns, what };
        if let Some(why) = turn.fault() {
            return Err(columns.corrupt(i, "t_ns", format!("the times contradict each other: {why}")));
        }
        out.push(turn);
    }
    Ok(())
}
