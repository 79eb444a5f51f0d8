//! Reading an aging workload.

use super::books::Books;
use super::{Counts, DAYS_MAX, DayUse, FORMAT_VERSION, META_CHECK_KEY, META_KEY, PlanMeta, columns};
use crate::{AgingError, AgingOp, DAY_NS, NodeId, OpKind};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch, StringArray};
use posix::interrupt;
use serde::Deserialize;
use std::path::Path;
use trace::parquet_file::{Check, ParquetIn};
use trace::profile::{ProfileError, unescape};

/// An open aging workload.
pub struct Reader {
    file: ParquetIn,
    meta: PlanMeta,
}

impl Reader {
    /// Opens a file, and checks its description and columns. Row groups are verified when they are read.
    ///
    /// # Errors
    /// [`AgingError`], naming file and place.
    pub fn open(path: &Path) -> Result<Reader, AgingError> {
        posix::memory::in_hand(path);
        let file = ParquetIn::open(path.to_owned(), Check::Footer, "", |path, found| {
            for field in columns::schema().fields() {
                let schema = |message: String| ProfileError::Schema {
                    path: path.to_owned(),
                    column: field.name().clone(),
                    message,
                };
                let have = found.field_with_name(field.name());
                let have = have.map_err(|_| schema("not in the file: no aging workload".into()))?;
                if have.data_type() != field.data_type() {
                    return Err(schema(format!("is {} instead of {}", have.data_type(), field.data_type())));
                }
            }
            Ok(found.clone())
        })?;
        let meta = read_meta(path, &file)?;
        check(&meta, file.rows()).map_err(|message| AgingError::corrupt(path, "footer", message))?;
        Ok(Reader { file, meta })
    }

    /// Reads every operation, and checks that each follows from those before it and that all together are what the description
    /// states.
    ///
    /// # Errors
    /// [`AgingError`], naming file and row.
    pub fn verify(&self) -> Result<(), AgingError> {
        let bad = |place: String, why: String| AgingError::corrupt(self.path(), place, why);
        let mut books = Books::new(self.meta.capacity_bytes, self.meta.block_bytes);
        for batch in self.batches(0) {
            for op in batch? {
                interrupt::check().map_err(|source| AgingError::Io {
                    path: self.path().to_owned(),
                    doing: "read on",
                    source,
                })?;
                let row = books.operations();
                books.apply(&op).map_err(|why| bad(format!("row {row}"), why.to_string()))?;
            }
        }
        let (counts, days) = books.close(self.meta.days);
        differs(&self.meta, &counts, &days).map_or(Ok(()), |why| Err(bad("footer".to_owned(), why)))
    }

    /// The description.
    pub fn meta(&self) -> &PlanMeta {
        &self.meta
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The operations from number `first` (from 0) on, in order, in batches of at most a row group.
    pub fn batches(&self, first: u64) -> Batches<'_> {
        let ends_before = |g: &usize| self.file.row_range(*g).is_some_and(|(at, rows)| at + rows as u64 <= first);
        let group = (0..self.file.row_groups()).take_while(ends_before).count();
        Batches { reader: self, group, first, now_ns: 0 }
    }
}

/// How what a description states differs from what its rows are, if it does.
fn differs(meta: &PlanMeta, counts: &Counts, days: &[DayUse]) -> Option<String> {
    let stated = &meta.counts;
    for kind in OpKind::ALL {
        let (found, stated) = (counts.of(kind), stated.of(kind));
        if found != stated {
            return Some(format!("{found} operations {} where the description states {stated}", kind.name()));
        }
    }
    let (files, bytes) = (counts.files_at_end, counts.bytes_at_end);
    if (files, bytes) != (stated.files_at_end, stated.bytes_at_end) {
        let stated = format!("{} files of {} bytes", stated.files_at_end, stated.bytes_at_end);
        return Some(format!("{files} files of {bytes} bytes are left where the description states {stated}"));
    }
    for (what, found, stated) in [
        ("bytes written", counts.written_bytes, stated.written_bytes),
        ("bytes used at most", counts.used_bytes_max, stated.used_bytes_max),
    ] {
        if found != stated {
            return Some(format!("{found} {what} where the description states {stated}"));
        }
    }
    // Shares pass through text; what they are shares of is compared exactly.
    let same = |a: &DayUse, b: &DayUse| {
        let share = (a.used_share - b.used_share).abs() <= 1e-9 * b.used_share.max(1.0);
        share && (a.day, a.operations, a.files, a.used_bytes) == (b.day, b.operations, b.files, b.used_bytes)
    };
    let (stated, found) = meta.utilisation.iter().zip(days).find(|(stated, found)| !same(stated, found))?;
    Some(format!(
        "at the end of day {} there are {} files in {} bytes after {} operations, a share of {}; the description states {} files in \
         {} bytes after {} operations, a share of {}, for day {}",
        found.day,
        found.files,
        found.used_bytes,
        found.operations,
        found.used_share,
        stated.files,
        stated.used_bytes,
        stated.operations,
        stated.used_share,
        stated.day
    ))
}

/// What the rest of the program takes a description's word for.
fn check(meta: &PlanMeta, rows: u64) -> Result<(), String> {
    let stated = meta.counts.operations;
    if stated != rows {
        return Err(format!("{rows} rows where the description states {stated}"));
    }
    if meta.days > DAYS_MAX {
        return Err(format!("{} simulated days; there are at most {DAYS_MAX}", meta.days));
    }
    if meta.utilisation.len() as u64 != u64::from(meta.days) {
        return Err(format!("the use at the end of {} days, of {}", meta.utilisation.len(), meta.days));
    }
    match meta.utilisation.iter().find(|day| !(day.used_share >= 0.0 && day.used_share.is_finite())) {
        Some(day) => Err(format!("a used share of {} on day {}", day.used_share, day.day)),
        None => Ok(()),
    }
}

fn read_meta(path: &Path, file: &ParquetIn) -> Result<PlanMeta, AgingError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let bad = |message: String| AgingError::corrupt(path, format!("footer, {META_KEY}"), message);
    let text = file.key_value(META_KEY).ok_or_else(|| bad("missing: no aging workload of fsage's".into()))?;
    let Versioned { version } = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
    if version != FORMAT_VERSION {
        return Err(AgingError::Version { path: path.to_owned(), found: version, supported: FORMAT_VERSION });
    }
    let sum = format!("{:08x}", crc32c::crc32c(text.as_bytes()));
    if file.key_value(META_CHECK_KEY).is_some_and(|stated| stated != sum) {
        return Err(bad("checksum does not match: the bytes are damaged".into()));
    }
    serde_json::from_str(text).map_err(|e| bad(e.to_string()))
}

/// Operations in order, a row group at a time.
pub struct Batches<'a> {
    reader: &'a Reader,
    group: usize,
    first: u64,
    /// When the last operation read is.
    now_ns: u64,
}

impl Batches<'_> {
    /// Operations are in the order of their times, and within the plan's days.
    fn check_times(&mut self, ops: &[AgingOp], first_row: u64) -> Result<(), AgingError> {
        let end_ns = u64::from(self.reader.meta.days).saturating_mul(DAY_NS);
        for (row, op) in (first_row..).zip(ops) {
            let bad = |why| Err(AgingError::corrupt(self.reader.path(), format!("row {row}, column t_ns"), why));
            if op.t_ns < self.now_ns {
                return bad(format!("time goes back from {} ns to {} ns", self.now_ns, op.t_ns));
            }
            if op.t_ns >= end_ns {
                return bad(format!("{} ns is after the last of {} days", op.t_ns, self.reader.meta.days));
            }
            self.now_ns = op.t_ns;
        }
        Ok(())
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<Vec<AgingOp>, AgingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let file = &self.reader.file;
        let (at, rows) = file.row_range(self.group)?;
        let mut ops = Vec::with_capacity(rows);
        let mut failed = None;
        let read = file.read_row_group(self.group, &columns::ALL, |batch| {
            decode(file.path(), batch, at + ops.len() as u64, &mut ops).unwrap_or_else(|e| failed = Some(e));
            Ok(())
        });
        // After a failure there is nothing more to come.
        self.group = if read.is_err() || failed.is_some() { file.row_groups() } else { self.group + 1 };
        if let Some(error) = failed.or(read.err().map(AgingError::from)) {
            return Some(Err(error));
        }
        if let Err(error) = self.check_times(&ops, at) {
            self.group = file.row_groups();
            return Some(Err(error));
        }
        let skip = usize::try_from(self.first.saturating_sub(at)).unwrap_or(usize::MAX).min(ops.len());
        ops.drain(..skip);
        Some(Ok(ops))
    }
}

fn decode(path: &Path, batch: &RecordBatch, first_row: u64, out: &mut Vec<AgingOp>) -> Result<(), AgingError> {
    let place = |row: usize, column: &str| format!("row {}, column {column}", first_row + row as u64);
    let missing = |name: &str| AgingError::corrupt(path, format!("column {name}"), "missing or of another type");
    let no_nulls =
        |name: &str, array: &dyn Array| match (0..array.len()).find(|&i| array.null_count() > 0 && array.is_null(i)) {
            None => Ok(()),
            Some(i) => Err(AgingError::corrupt(path, place(i, name), "is null, which only name may be")),
        };
    let numbers = |name: &'static str| {
        let array = batch.column_by_name(name).and_then(|a| a.as_primitive_opt::<UInt64Type>());
        let array = array.ok_or_else(|| missing(name))?;
        no_nulls(name, array)?;
        Ok::<_, AgingError>(array.values())
    };
    let text = |name: &'static str| -> Result<&StringArray, AgingError> {
        batch.column_by_name(name).and_then(|a| a.as_string_opt::<i32>()).ok_or_else(|| missing(name))
    };
    let (times, files, dirs) = (numbers(columns::T_NS)?, numbers(columns::FILE_ID)?, numbers(columns::DIR_ID)?);
    let (offsets, sizes) = (numbers(columns::OFFSET)?, numbers(columns::SIZE)?);
    let (kinds, names) = (text(columns::OP)?, text(columns::NAME)?);
    no_nulls(columns::OP, kinds)?;
    for row in 0..batch.num_rows() {
        let kind = OpKind::from_name(kinds.value(row));
        let unknown = || AgingError::corrupt(path, place(row, columns::OP), format!("unknown {:?}", kinds.value(row)));
        let name = if names.is_null(row) { None } else { Some(component(path, &place, row, names.value(row))?) };
        out.push(AgingOp {
            t_ns: times[row],
            kind: kind.ok_or_else(unknown)?,
            node: NodeId(files[row]),
            dir: NodeId(dirs[row]),
            name,
            offset_bytes: offsets[row],
            size_bytes: sizes[row],
        });
    }
    Ok(())
}

/// A name must be one component: it is joined to a directory of ours, and must not lead out of it.
fn component(
    path: &Path,
    place: &dyn Fn(usize, &str) -> String,
    row: usize,
    text: &str,
) -> Result<Box<[u8]>, AgingError> {
    let bad = |message: String| AgingError::corrupt(path, place(row, columns::NAME), message);
    let bytes = unescape(text.as_bytes()).map_err(|e| bad(format!("{e} in {text:?}")))?;
    match &bytes[..] {
        b"" | b"." | b".." => Err(bad(format!("{text:?} is no name"))),
        b if b.contains(&b'/') || b.contains(&0) => Err(bad(format!("{text:?} is not one component of a path"))),
        b if b.len() > 255 => Err(bad(format!("{} bytes are longer than a name may be (255)", b.len()))),
        b => Ok(b.into()),
    }
}
