//! Writing the annotated trace out: the workload profile again, with what the stages found as further columns.
//!
//! `fsage inspect` shows it, and anything that reads Parquet.

use super::annotated::{Annotated, DirtyKind, Found, Mark, Pattern};
use super::given;
use super::options::{PredictError, PredictOptions};
use super::parts::{begin, each_part};
use super::request::Request;
use super::run::{Group, Member, PricedCall};
use serde::Serialize;
use std::path::Path;
use system::SystemProfile;
use system::vector::entry_name;
use trace::profile::{Annotation, AnnotationKind, Meta, Reader, Values, Writer, WriterOptions};

/// After which stage the trace is written out; later ones have the columns of earlier ones as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Walks, failures, disagreements.
    Preprocess,
    /// Hits and misses, dirty state.
    Cache,
    /// Sequential or random.
    Pattern,
    /// Request vector and predicted latency.
    Price,
}

/// One column: from which stage on, its description, and how a row's value is found.
struct Column {
    stage: Stage,
    name: &'static str,
    kind: AnnotationKind,
    meaning: &'static str,
    fill: fn(&PricedCall<'_>, &mut Cell),
}

/// A value of any column type; the column's type decides which is read.
#[derive(Default)]
struct Cell {
    number: Option<u64>,
    real: Option<f64>,
    text: Option<String>,
    truth: Option<bool>,
}

const COLUMNS: &[Column] = &[
    Column {
        stage: Stage::Preprocess,
        name: "lookups",
        kind: AnnotationKind::U64,
        meaning: "path components looked up",
        fill: |call, cell| cell.number = Some(u64::from(call.note.lookups)),
    },
    Column {
        stage: Stage::Preprocess,
        name: "failed_at",
        kind: AnnotationKind::U64,
        meaning: "component, from 1, at which the walk of a failing call ended",
        fill: |call, cell| cell.number = (call.note.failed_at > 0).then_some(u64::from(call.note.failed_at)),
    },
    Column {
        stage: Stage::Preprocess,
        name: "surprise",
        kind: AnnotationKind::Bool,
        meaning: "trace and model disagreed; the trace was believed",
        fill: |call, cell| cell.truth = Some(call.note.surprise),
    },
    Column {
        stage: Stage::Cache,
        name: "lookup_misses",
        kind: AnnotationKind::U64,
        meaning: "components whose name or attributes were not cached",
        fill: |call, cell| cell.number = Some(call.lookup_misses()),
    },
    Column {
        stage: Stage::Cache,
        name: "cached_bytes",
        kind: AnnotationKind::U64,
        meaning: "bytes read from or written over cached pages",
        fill: |call, cell| cell.number = call.cached_bytes(),
    },
    Column {
        stage: Stage::Cache,
        name: "disk_bytes",
        kind: AnnotationKind::U64,
        meaning: "bytes read from disk",
        fill: |call, cell| cell.number = call.disk_bytes(),
    },
    Column {
        stage: Stage::Cache,
        name: "new_bytes",
        kind: AnnotationKind::U64,
        meaning: "bytes written that had no blocks before",
        fill: |call, cell| cell.number = call.new_bytes(),
    },
    Column {
        stage: Stage::Cache,
        name: "dirty",
        kind: AnnotationKind::Utf8,
        meaning: "what a sync or removal found: clean, overwritten, appended, created, late (new, committed by \
            another's sync), names, dirty, uncached; started: write-back that is not waited for",
        fill: |call, cell| cell.text = call.dirt().map(str::to_owned),
    },
    Column {
        stage: Stage::Pattern,
        name: "pattern",
        kind: AnnotationKind::Utf8,
        meaning: "of what went to disk: first, sequential or random",
        fill: |call, cell| cell.text = call.pattern().map(str::to_owned),
    },
    Column {
        stage: Stage::Price,
        name: given::COLUMN,
        kind: AnnotationKind::Utf8,
        meaning: "the request vector: how many of which class at which size",
        fill: |call, cell| cell.text = Some(request_text(call.requests)),
    },
    Column {
        stage: Stage::Price,
        name: "predicted_ns",
        kind: AnnotationKind::F64,
        meaning: "predicted latency, nanoseconds",
        fill: |call, cell| cell.real = Some(call.ns),
    },
];

impl PricedCall<'_> {
    /// Components whose name or attributes were not cached.
    pub fn lookup_misses(&self) -> u64 {
        let misses =
            |m: &&Mark| matches!(m, Mark::Lookup { found, .. } if !matches!(found, Found::Hit | Found::NegativeHit));
        self.marks.iter().filter(misses).count() as u64
    }

    /// Bytes read from or written over cached pages; `None` of a call that moves no data.
    pub fn cached_bytes(&self) -> Option<u64> {
        bytes(self.marks, |m| match *m {
            Mark::Read { cached_bytes, .. } | Mark::Write { cached_bytes, .. } => Some(cached_bytes),
            _ => None,
        })
    }

    /// Bytes read from disk; `None` of a call that reads nothing.
    pub fn disk_bytes(&self) -> Option<u64> {
        bytes(self.marks, |m| match *m {
            Mark::Read { disk_bytes, .. } => Some(disk_bytes),
            _ => None,
        })
    }

    /// Bytes written that had no blocks before; `None` of a call that writes nothing.
    pub fn new_bytes(&self) -> Option<u64> {
        bytes(self.marks, |m| match *m {
            Mark::Write { new_bytes, .. } => Some(new_bytes),
            _ => None,
        })
    }

    /// What a sync or removal found.
    pub fn dirt(&self) -> Option<&'static str> {
        self.marks.iter().find_map(dirty)
    }

    /// The pattern of what went to disk.
    pub fn pattern(&self) -> Option<&'static str> {
        self.marks.iter().rev().find_map(pattern)
    }
}

fn bytes(marks: &[Mark], of: impl Fn(&Mark) -> Option<u64>) -> Option<u64> {
    marks.iter().filter_map(of).reduce(|a, b| a + b)
}

fn dirty(mark: &Mark) -> Option<&'static str> {
    match mark {
        Mark::Sync(sync) | Mark::Write { sync: Some(sync), .. } => Some(match sync.kind {
            DirtyKind::Clean => "clean",
            DirtyKind::Overwrite => "overwritten",
            DirtyKind::Append => "appended",
            DirtyKind::Create => "created",
            DirtyKind::Late => "late",
            DirtyKind::Names => "names",
            DirtyKind::CleanDirectory => "clean directory",
        }),
        Mark::SyncRange { started_bytes: 0, .. } => Some("clean"),
        Mark::SyncRange { .. } => Some("started"),
        Mark::Remove { dirty: true, .. } => Some("dirty"),
        Mark::Remove { uncached: true, .. } => Some("uncached"),
        Mark::Remove { .. } => Some("clean"),
        _ => None,
    }
}

fn pattern(mark: &Mark) -> Option<&'static str> {
    match mark {
        Mark::Lookup { pattern, .. } | Mark::Read { pattern, .. } => match pattern {
            Pattern::None => None,
            Pattern::First => Some("first"),
            Pattern::FirstNext => Some("first_next"),
            Pattern::Sequential => Some("sequential"),
            Pattern::Random => Some("random"),
        },
        _ => None,
    }
}

fn request_text(requests: &[Request]) -> String {
    let one = |r: &Request| {
        let name = entry_name(r.class, r.size);
        if r.weight == 1.0 { name } else { format!("{} {name}", r.weight) }
    };
    requests.iter().map(one).collect::<Vec<_>>().join(given::AND)
}

/// Writes a workload profile with the annotations of all stages up to one, for one system.
///
/// Calls that are not priced have nulls. The profile's meta data is kept.
///
/// # Errors
/// The profile cannot be read, a what-if means nothing, or the disk.
pub fn write_annotated(
    reader: &Reader,
    system: &SystemProfile,
    options: &PredictOptions,
    up_to: Stage,
    directory: &Path,
    overwrite: bool,
) -> Result<Meta, PredictError> {
    let profile = options.applied_to(system)?;
    let columns: Vec<&Column> = COLUMNS.iter().filter(|c| c.stage <= up_to).collect();
    let annotation = |c: &&Column| Annotation { name: c.name.to_owned(), kind: c.kind, meaning: c.meaning.to_owned() };
    let writer_options =
        WriterOptions { overwrite, annotations: columns.iter().map(annotation).collect(), ..WriterOptions::default() };
    let mut writer = Writer::create(directory, writer_options)?;
    let snapshot = reader.snapshot()?;
    let mut preprocess = begin(reader.directory(), &snapshot, options.calls)?;
    let mut group = Group::new(Member::new(0, &profile, options), options, &preprocess);
    let mut annotated = Annotated::default();
    for batch in reader.batches()? {
        let batch = batch?;
        let mut values: Vec<Values> = columns.iter().map(|c| nulls(c.kind, batch.events.len())).collect();
        let mut fill = |call: PricedCall<'_>| {
            for (column, values) in columns.iter().zip(&mut values) {
                let mut cell = Cell::default();
                (column.fill)(&call, &mut cell);
                put(values, call.index, cell);
            }
        };
        each_part(&mut preprocess, reader.directory(), &batch, &mut annotated, &mut |annotated| {
            group.batch(&batch, annotated, &mut Some(&mut fill));
        })?;
        writer.push_annotated(&batch, &values)?;
    }
    writer.push_schedule(&reader.schedule()?.unwrap_or_default())?;
    Ok(writer.finish(reader.meta().clone(), &snapshot)?)
}

fn nulls(kind: AnnotationKind, rows: usize) -> Values {
    match kind {
        AnnotationKind::F64 => Values::F64(vec![None; rows]),
        AnnotationKind::U64 => Values::U64(vec![None; rows]),
        AnnotationKind::Bool => Values::Bool(vec![None; rows]),
        AnnotationKind::Utf8 => Values::Utf8(vec![None; rows]),
    }
}

fn put(values: &mut Values, row: usize, cell: Cell) {
    match values {
        Values::F64(column) => set(column, row, cell.real),
        Values::U64(column) => set(column, row, cell.number),
        Values::Bool(column) => set(column, row, cell.truth),
        Values::Utf8(column) => set(column, row, cell.text),
    }
}

fn set<T>(column: &mut [Option<T>], row: usize, value: Option<T>) {
    if let Some(place) = column.get_mut(row) {
        *place = value;
    }
}
