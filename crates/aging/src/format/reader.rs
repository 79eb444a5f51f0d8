//! Reading an aging workload.

use super::books::Books;
use super::{Counts, DAYS_MAX, DayUse, FORMAT, PlanMeta, columns};
use crate::{AgingOp, DAY_NS, NodeId, OpKind};
use arrow_array::Array;
use arrow_array::types::UInt64Type;
use columnar::{Check, Columns, FileError, ParquetIn, as_stored};
use posix::interrupt;
use std::path::Path;
use trace::profile::unescape;

/// An open aging workload.
pub struct Reader {
    file: ParquetIn,
    meta: PlanMeta,
}

impl Reader {
    /// Opens a file, and checks its description and columns. Row groups are verified when they are read.
    ///
    /// # Errors
    /// [`FileError`], naming file and place.
    pub fn open(path: &Path) -> Result<Reader, FileError> {
        posix::memory::in_hand(path);
        let schema = columns::schema();
        let file = ParquetIn::open(path.to_owned(), &FORMAT, Check::Footer, as_stored(schema.fields()))?;
        let meta = file.description()?;
        check(&meta, file.rows()).map_err(|message| file.corrupt("footer", message))?;
        Ok(Reader { file, meta })
    }

    /// Reads every operation, and checks that each follows from those before it and that all together are what the
    /// description states.
    ///
    /// # Errors
    /// [`FileError`], naming file and row.
    pub fn verify(&self) -> Result<(), FileError> {
        let bad = |place: String, why: String| self.file.corrupt(place, why);
        let mut books = Books::new(self.meta.capacity_bytes, self.meta.block_bytes);
        for batch in self.batches(0) {
            for op in batch? {
                interrupt::check().map_err(FileError::io(self.path(), "read on"))?;
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

    /// The file itself, for who wants its columns and not its operations.
    pub fn file(&self) -> &ParquetIn {
        &self.file
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
        "at the end of day {} there are {} files in {} bytes after {} operations, a share of {}; the description \
         states {} files in {} bytes after {} operations, a share of {}, for day {}",
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
    fn check_times(&mut self, ops: &[AgingOp], first_row: u64) -> Result<(), FileError> {
        let end_ns = u64::from(self.reader.meta.days).saturating_mul(DAY_NS);
        for (row, op) in (first_row..).zip(ops) {
            let bad = |why| Err(self.reader.file.corrupt(format!("row {row}, column t_ns"), why));
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
    type Item = Result<Vec<AgingOp>, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        let file = &self.reader.file;
        let (at, rows) = file.row_range(self.group)?;
        let mut ops = Vec::with_capacity(rows);
        let read = file.read_row_group(self.group, &columns::ALL, |columns| decode(columns, &mut ops));
        // After a failure there is nothing more to come.
        self.group = if read.is_err() { file.row_groups() } else { self.group + 1 };
        if let Err(error) = read {
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

fn decode(rows: &Columns<'_>, out: &mut Vec<AgingOp>) -> Result<(), FileError> {
    let numbers = |name| rows.numbers::<UInt64Type>(name);
    let (times, files, dirs) = (numbers(columns::T_NS)?, numbers(columns::FILE_ID)?, numbers(columns::DIR_ID)?);
    let (offsets, sizes) = (numbers(columns::OFFSET)?, numbers(columns::SIZE)?);
    let (kinds, names) = (rows.text(columns::OP)?, rows.optional_text(columns::NAME)?);
    for row in 0..rows.rows() {
        let kind = OpKind::from_name(kinds.value(row));
        let unknown = || rows.corrupt(row, columns::OP, format!("unknown {:?}", kinds.value(row)));
        let name = if names.is_null(row) { None } else { Some(component(rows, row, names.value(row))?) };
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
fn component(rows: &Columns<'_>, row: usize, text: &str) -> Result<Box<[u8]>, FileError> {
    let bad = |message: String| rows.corrupt(row, columns::NAME, message);
    let bytes = unescape(text.as_bytes()).map_err(|e| bad(format!("{e} in {text:?}")))?;
    check_name(&bytes).map_err(bad)?;
    Ok(bytes.into())
}

/// The same of the bytes themselves, which the writer is asked for too: what is written can be read.
pub(super) fn check_name(name: &[u8]) -> Result<(), String> {
    let shown = || units::text::path(name);
    match name {
        b"" | b"." | b".." => Err(format!("{:?} is no name", shown())),
        b if b.contains(&b'/') || b.contains(&0) => Err(format!("{:?} is not one component of a path", shown())),
        b if b.len() > 255 => Err(format!("{} bytes are longer than a name may be (255)", b.len())),
        _ => Ok(()),
    }
}
