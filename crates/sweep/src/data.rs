//! The data set of a sweep: Parquet files that any tool reads, written from the journal in the order of the tasks.
//!
//! `results/` has a row for each figure: the task's number, its parameters (a column for each axis), and the figure. It
//! is partitioned as Hive does it, `results/drive=st32430n/figures.parquet`; a partition's column is in its directory's
//! name alone. `tasks.parquet` has a row for each task, `timing.parquet` when, where and how long each ran.
//! docs/formats.md has the columns.

use crate::journal::Outcome;
use crate::partition::hive;
use crate::spec::{AxisValue, Spec};
use crate::tasks::Tasks;
use crate::{Entry, Folder, SweepError};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use columnar::{FileError, Format, ParquetOut};
use fault::refused;
use posix::cleanup::Growing;
use posix::output::Output;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A table of figures.
pub const FORMAT: Format = Format {
    name: "a table of a sweep",
    version: 1,
    oldest: 1,
    key: Some("fsage.sweep"),
    missing: "run the sweep: fsage sweep SPEC.toml",
    again: "run the sweep again: it writes its tables from its journal",
};

/// Folder of the figures.
pub const RESULTS: &str = "results";
/// The tasks' table.
pub const TASKS: &str = "tasks.parquet";
/// The table of times.
pub const TIMING: &str = "timing.parquet";
/// A partition's file.
const FIGURES: &str = "figures.parquet";
/// Tasks of a partition where the sweep names no axis for it.
const BATCH: u64 = 1000;
/// Rows of a row group.
const ROWS_MAX: usize = 1 << 17;
/// A partition is a file; more of them are no data set that anybody wants.
const PARTITIONS_MAX: usize = 10_000;

/// What stands in every table's footer.
#[derive(Serialize)]
struct Description<'a> {
    version: u32,
    fsage: &'a str,
    name: &'a str,
    tasks: u64,
    spec: &'a str,
}

/// Values of one axis, as a column has them.
enum Cells {
    Int(Vec<i64>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<String>),
}

impl Cells {
    /// An empty column for an axis: of the narrowest type that has room for all of its values.
    fn of(values: &[AxisValue]) -> Cells {
        if values.iter().all(|value| matches!(value, AxisValue::Int(_))) {
            Cells::Int(Vec::new())
        } else if values.iter().all(|value| value.number().is_some()) {
            Cells::Float(Vec::new())
        } else if values.iter().all(|value| matches!(value, AxisValue::Bool(_))) {
            Cells::Bool(Vec::new())
        } else {
            Cells::Text(Vec::new())
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Cells::Int(_) => DataType::Int64,
            Cells::Float(_) => DataType::Float64,
            Cells::Bool(_) => DataType::Boolean,
            Cells::Text(_) => DataType::Utf8,
        }
    }

    fn push(&mut self, value: &AxisValue) {
        match (self, value) {
            (Cells::Int(cells), AxisValue::Int(n)) => cells.push(*n),
            (Cells::Bool(cells), AxisValue::Bool(b)) => cells.push(*b),
            (Cells::Float(cells), value) => cells.push(value.number().unwrap_or(f64::NAN)),
            (Cells::Text(cells), value) => cells.push(value.text()),
            // `of` has looked at every value.
            (Cells::Int(_) | Cells::Bool(_), _) => unreachable!("a value of another type than its axis's"),
        }
    }

    fn take(&mut self) -> ArrayRef {
        match self {
            Cells::Int(cells) => Arc::new(Int64Array::from(std::mem::take(cells))),
            Cells::Float(cells) => Arc::new(Float64Array::from(std::mem::take(cells))),
            Cells::Bool(cells) => Arc::new(BooleanArray::from(std::mem::take(cells))),
            Cells::Text(cells) => Arc::new(StringArray::from(std::mem::take(cells))),
        }
    }
}

/// Columns of parameters: each with its axis.
struct Parameters(Vec<(usize, Cells)>);

impl Parameters {
    fn of(spec: &Spec, without: &[usize]) -> Parameters {
        let axes = spec.axes.iter().enumerate().filter(|(axis, _)| !without.contains(axis));
        Parameters(axes.map(|(at, axis)| (at, Cells::of(&axis.values))).collect())
    }

    fn fields(&self, spec: &Spec) -> Vec<Field> {
        let field = |(axis, cells): &(usize, Cells)| Field::new(&spec.axes[*axis].name, cells.data_type(), false);
        self.0.iter().map(field).collect()
    }

    fn push(&mut self, values: &[AxisValue]) {
        for (axis, cells) in &mut self.0 {
            cells.push(&values[*axis]);
        }
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        self.0.iter_mut().map(|(_, cells)| cells.take()).collect()
    }
}

/// A table that is written into a new file.
struct Table {
    out: ParquetOut,
}

impl Table {
    fn create(
        path: PathBuf,
        file: Option<std::fs::File>,
        fields: Vec<Field>,
        about: &Description<'_>,
    ) -> Result<Table, FileError> {
        let (schema, properties) = (Arc::new(Schema::new(fields)), columnar::properties().build());
        let mut out = match file {
            Some(file) => ParquetOut::into_file(file, path, schema, properties)?,
            None => {
                let file = std::fs::File::options().write(true).create_new(true).open(&path);
                let file = file.map_err(FileError::io(&path, "create the file"))?;
                ParquetOut::into_file(file, path, schema, properties)?
            }
        };
        out.describe(&FORMAT, about)?;
        Ok(Table { out })
    }
}

/// Writes the data set of a sweep from what its folder holds, in place of the one that is there.
///
/// # Errors
/// The system refuses, the journal is damaged, or there are more partitions than make sense.
pub fn write(spec: &Spec, tasks: &Tasks, folder: &mut Folder) -> Result<(), SweepError> {
    let fsage = env!("CARGO_PKG_VERSION");
    let about = Description { version: FORMAT.version, fsage, name: &spec.name, tasks: tasks.len(), spec: &spec.text };
    let partitions = partitions(spec, tasks, folder)?;
    let root = folder.path().to_owned();
    let mut growing = Growing::within(&root, OsStr::new(RESULTS)).map_err(refused(&root, "make a directory in"))?;
    for (directory, numbers) in &partitions {
        let place = growing.path().join(directory);
        std::fs::create_dir_all(&place).map_err(refused(&place, "make"))?;
        figures(spec, tasks, folder, &place.join(FIGURES), numbers, &about)?;
    }
    let place = root.join(RESULTS);
    // Only whoever runs it may read what grows; the data set is for everybody whom its folder is for.
    std::fs::set_permissions(growing.path(), permissions_of(&root)?).map_err(refused(&place, "set the mode of"))?;
    growing.publish(&place, true).map_err(refused(&place, "put the data set in place at"))?;
    task_table(spec, tasks, folder, &about)?;
    timing_table(spec, tasks, folder, &about)
}

fn permissions_of(directory: &Path) -> Result<std::fs::Permissions, SweepError> {
    Ok(std::fs::metadata(directory).map_err(refused(directory, "look at"))?.permissions())
}

/// Which tasks' figures go into which directory.
fn partitions(spec: &Spec, tasks: &Tasks, folder: &mut Folder) -> Result<BTreeMap<PathBuf, Vec<u64>>, SweepError> {
    let mut found: BTreeMap<PathBuf, Vec<u64>> = BTreeMap::new();
    for number in 1..=tasks.len() {
        if !matches!(folder.entry(number)?, Some(Entry { outcome: Outcome::Figures(_), .. })) {
            continue;
        }
        let Some(task) = tasks.get(spec, number) else { continue };
        let mut directory = PathBuf::new();
        for &axis in &spec.partition {
            directory.push(hive(&spec.axes[axis].name, &task.values[axis].text()));
        }
        if spec.partition.is_empty() {
            directory.push(hive("batch", &((number - 1) / BATCH).to_string()));
        }
        found.entry(directory).or_default().push(number);
    }
    if found.len() > PARTITIONS_MAX && !spec.partition.is_empty() {
        let message = format!("partition: {} partitions; {PARTITIONS_MAX} at most: name fewer axes", found.len());
        return Err(SweepError::Spec { file: spec.file.clone(), line: None, message });
    }
    Ok(found)
}

fn figures(
    spec: &Spec,
    tasks: &Tasks,
    folder: &mut Folder,
    path: &Path,
    numbers: &[u64],
    about: &Description<'_>,
) -> Result<(), SweepError> {
    let mut parameters = Parameters::of(spec, &spec.partition);
    let mut fields = vec![Field::new("task", DataType::UInt64, false)];
    fields.extend(parameters.fields(spec));
    for name in ["subject", "part", "metric"] {
        fields.push(Field::new(name, DataType::Utf8, false));
    }
    fields.push(Field::new("value", DataType::Float64, false));
    fields.push(Field::new("low", DataType::Float64, true));
    fields.push(Field::new("high", DataType::Float64, true));
    fields.push(Field::new("unit", DataType::Utf8, false));
    let mut table = Table::create(path.to_owned(), None, fields, about)?;
    let (mut of_task, mut texts, mut value) = (Vec::new(), [const { Vec::<String>::new() }; 4], Vec::new());
    let (mut low, mut high) = (Vec::<Option<f64>>::new(), Vec::<Option<f64>>::new());
    for (at, &number) in numbers.iter().enumerate() {
        let Some(Entry { outcome: Outcome::Figures(found), .. }) = folder.entry(number)? else { continue };
        let Some(task) = tasks.get(spec, number) else { continue };
        for figure in found {
            of_task.push(number);
            parameters.push(&task.values);
            for (texts, text) in texts.iter_mut().zip([figure.subject, figure.part, figure.metric, figure.unit]) {
                texts.push(text);
            }
            value.push(figure.value);
            low.push(figure.interval.map(|(low, _)| low));
            high.push(figure.interval.map(|(_, high)| high));
        }
        if of_task.len() < ROWS_MAX && at + 1 < numbers.len() {
            continue;
        }
        let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(std::mem::take(&mut of_task)))];
        columns.extend(parameters.take());
        let [subject, part, metric, unit] =
            texts.each_mut().map(|texts| -> ArrayRef { Arc::new(StringArray::from(std::mem::take(texts))) });
        columns.extend([subject, part, metric]);
        columns.push(Arc::new(Float64Array::from(std::mem::take(&mut value))));
        columns.push(Arc::new(Float64Array::from(std::mem::take(&mut low))));
        columns.push(Arc::new(Float64Array::from(std::mem::take(&mut high))));
        columns.push(unit);
        table.out.write_arrays(columns)?;
        table.out.end_row_group()?;
    }
    table.out.finish()?;
    Ok(())
}

/// Writes a table in place of the one that is there.
fn replace(
    path: &Path,
    fields: Vec<Field>,
    about: &Description<'_>,
    fill: impl FnOnce(&mut ParquetOut) -> Result<(), SweepError>,
) -> Result<(), SweepError> {
    let (output, file) = Output::create(path, 0o666).map_err(refused(path, "make"))?;
    let mut table = Table::create(path.to_owned(), Some(file), fields, about)?;
    fill(&mut table.out)?;
    table.out.finish()?;
    Ok(output.finish().map_err(refused(path, "put in place"))?)
}

fn task_table(spec: &Spec, tasks: &Tasks, folder: &mut Folder, about: &Description<'_>) -> Result<(), SweepError> {
    let mut parameters = Parameters::of(spec, &[]);
    let mut fields = vec![Field::new("task", DataType::UInt64, false)];
    fields.extend(parameters.fields(spec));
    for (name, null) in [("status", false), ("message", true), ("command", false)] {
        fields.push(Field::new(name, DataType::Utf8, null));
    }
    replace(&folder.path().join(TASKS), fields, about, |out| {
        let numbers: Vec<u64> = (1..=tasks.len()).collect();
        for numbers in numbers.chunks(ROWS_MAX) {
            let (mut status, mut messages, mut commands) = (Vec::new(), Vec::new(), Vec::new());
            for &number in numbers {
                let Some(task) = tasks.get(spec, number) else { continue };
                parameters.push(&task.values);
                let (word, message) = match folder.entry(number)?.map(|entry| entry.outcome) {
                    Some(Outcome::Figures(_)) => ("done", None),
                    Some(Outcome::Failed { message, .. }) => ("failed", Some(message)),
                    None => ("open", None),
                };
                status.push(word);
                messages.push(message);
                commands.push(task.command());
            }
            let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(numbers.to_vec()))];
            columns.extend(parameters.take());
            columns.push(Arc::new(StringArray::from(status)));
            columns.push(Arc::new(StringArray::from(messages)));
            columns.push(Arc::new(StringArray::from(commands)));
            out.write_arrays(columns)?;
            out.end_row_group()?;
        }
        Ok(())
    })
}

fn timing_table(spec: &Spec, tasks: &Tasks, folder: &mut Folder, about: &Description<'_>) -> Result<(), SweepError> {
    let fields = vec![
        Field::new("task", DataType::UInt64, false),
        Field::new("seconds", DataType::Float64, false),
        Field::new("began_unix_ms", DataType::UInt64, false),
        Field::new("host", DataType::Utf8, false),
        Field::new("attempts", DataType::UInt32, false),
    ];
    debug_assert!(spec.axes.iter().all(|axis| !axis.values.is_empty()), "an axis without values");
    replace(&folder.path().join(TIMING), fields, about, |out| {
        let (mut task, mut seconds, mut began) = (Vec::new(), Vec::new(), Vec::new());
        let (mut hosts, mut attempts) = (Vec::new(), Vec::new());
        for number in 1..=tasks.len() {
            if let Some(entry) = folder.entry(number)? {
                task.push(number);
                seconds.push(entry.seconds);
                began.push(entry.began_unix_ms);
                hosts.push(entry.host);
                attempts.push(entry.attempts);
            }
        }
        out.write_arrays(vec![
            Arc::new(UInt64Array::from(task)),
            Arc::new(Float64Array::from(seconds)),
            Arc::new(UInt64Array::from(began)),
            Arc::new(StringArray::from(hosts)),
            Arc::new(UInt32Array::from(attempts)),
        ])?;
        Ok(out.end_row_group()?)
    })
}
