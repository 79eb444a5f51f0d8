//! `NAME.snapshot`: one checked Parquet file, a row per name, the description in its footer. With block lists it has
//! three columns more.

use super::blocks::{BYTES_MAX, Blocks, BlocksMeta, ListAt, Lists, Place, bits_of, flags_of};
use super::series::no_blocks;
use super::{Builder, FORMAT, FORMAT_VERSION, Inode, InodeGroups, Snapshot, SnapshotMeta};
use arrow_array::builder::{ArrayBuilder, ListBuilder, StringBuilder, StructBuilder, UInt8Builder, UInt64Builder};
use arrow_array::types::{Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, ListArray, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Fields, Schema};
use columnar::{Check, Columns, Encoding, FileError, NameRoom, ParquetIn, ParquetOut, as_stored, encoded, properties};
use layout::map::Span;
use layout::{AddressSpace, Survey, SurveyOptions};
use posix::output::Output;
use posix::{Extent, FileKind};
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use trace::profile::{escape, unescape};

const ROW_GROUP_ROWS: usize = 1 << 16;
/// A row group that has so many extents ends with the row that brought them.
const ROW_GROUP_EXTENTS: usize = 1 << 20;

/// No name is longer.
const NAME_BYTES_MAX: usize = 255;

const PATH: &str = "path";
const KIND: &str = "kind";
const SIZE: &str = "size_bytes";
const ALLOCATED: &str = "allocated_bytes";
const INO: &str = "ino";
const GENERATION: &str = "generation";
const CTIME: &str = "ctime_ns";
const MTIME: &str = "mtime_ns";
const NLINK: &str = "nlink";
// With block lists.
const POSITION: &str = "position";
const EXTENTS: &str = "extents";
const NO_EXTENTS: &str = "no_extents";
// Within `extents`.
const LOGICAL: &str = "logical_bytes";
const PHYSICAL: &str = "physical_bytes";
const LEN: &str = "len_bytes";
const FLAGS: &str = "flags";

fn fields() -> Vec<Field> {
    let required = |name: &str, kind: DataType| Field::new(name, kind, false);
    vec![
        required(PATH, DataType::Utf8),
        required(KIND, DataType::Utf8),
        required(SIZE, DataType::UInt64),
        required(ALLOCATED, DataType::UInt64),
        required(INO, DataType::UInt64),
        Field::new(GENERATION, DataType::UInt32, true),
        required(CTIME, DataType::Int64),
        required(MTIME, DataType::Int64),
        required(NLINK, DataType::UInt32),
    ]
}

/// An extent within a list.
fn extent_fields() -> Fields {
    let field = |name, kind| Field::new(name, kind, true);
    vec![
        field(LOGICAL, DataType::UInt64),
        field(PHYSICAL, DataType::UInt64),
        field(LEN, DataType::UInt64),
        field(FLAGS, DataType::UInt8),
    ]
    .into()
}

/// The columns of block lists.
fn block_fields() -> Vec<Field> {
    // Nulls within a list are allowed by the type and refused by the reader: tools that write such files anew make
    // every field nullable.
    let item = Field::new("item", DataType::Struct(extent_fields()), true);
    vec![
        Field::new(POSITION, DataType::UInt32, false),
        Field::new(EXTENTS, DataType::List(Arc::new(item)), true),
        Field::new(NO_EXTENTS, DataType::Utf8, true),
    ]
}

/// The names of file kinds, as in a workload profile's snapshot.
const KINDS: [(FileKind, &str); 4] = [
    (FileKind::File, "file"),
    (FileKind::Directory, "directory"),
    (FileKind::Symlink, "symlink"),
    (FileKind::Special, "special"),
];

impl Snapshot {
    /// Writes `NAME.snapshot`: beside it first, and under its name when whole. A file of that name is replaced.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let (output, file) = Output::create(path, 0o666).map_err(FileError::io(path, "make the file"))?;
        self.write_to(file, path)?;
        output.finish().map_err(FileError::io(path, "give the finished file its name"))
    }

    fn write_to(&self, file: File, path: &Path) -> Result<(), FileError> {
        let with_blocks = self.lists.is_some();
        let blocks = if with_blocks { block_fields() } else { Vec::new() };
        let schema = Arc::new(Schema::new([fields(), blocks].concat()));
        // Sorted paths share their beginnings; neighbours have neighbouring inodes.
        let settings = encoded(properties(), PATH, Encoding::DELTA_BYTE_ARRAY);
        let settings = encoded(settings, INO, Encoding::DELTA_BINARY_PACKED);
        // A file's extents follow each other, and so do many files'.
        let delta = |settings, column| {
            encoded(settings, &format!("{EXTENTS}.list.item.{column}"), Encoding::DELTA_BINARY_PACKED)
        };
        let settings = if with_blocks { [LOGICAL, PHYSICAL, LEN].into_iter().fold(settings, delta) } else { settings };
        let mut out = ParquetOut::into_file(file, path.to_owned(), schema, settings.build())?;
        let mut first = 0;
        while first < self.entries().len() {
            let rows = first..self.row_group_end(first);
            first = rows.end;
            out.write_arrays(self.columns(rows))?;
            out.end_row_group()?;
        }
        out.describe(&FORMAT, &self.meta)?;
        out.finish()?;
        Ok(())
    }

    /// Where a row group ends that begins with this row.
    fn row_group_end(&self, first: usize) -> usize {
        let most = (first + ROW_GROUP_ROWS).min(self.entries().len());
        if self.lists.is_none() {
            return most;
        }
        let mut extents = 0;
        for row in first..most {
            extents += self.blocks(row).map_or(0, |blocks| blocks.len());
            if extents >= ROW_GROUP_EXTENTS {
                return row + 1;
            }
        }
        most
    }

    /// Some rows.
    fn columns(&self, range: Range<usize>) -> Vec<ArrayRef> {
        let rows = self.entries().get(range.clone()).unwrap_or_default();
        let u64s = |f: fn(&Inode) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(rows.iter().map(|e| f(&e.inode))))
        };
        let i64s = |f: fn(&Inode) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|e| f(&e.inode))))
        };
        let kind =
            |e: &super::Entry| KINDS.iter().find(|(k, _)| *k == e.inode.kind).map_or("special", |(_, name)| name);
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(range.clone().map(|i| escape(&self.path(i)).into_owned()))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(kind))),
            u64s(|i| i.size_bytes),
            u64s(|i| i.allocated_bytes),
            u64s(|i| i.ino),
            Arc::new(rows.iter().map(|e| e.inode.generation).collect::<UInt32Array>()),
            i64s(|i| i.ctime_ns),
            i64s(|i| i.mtime_ns),
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|e| e.inode.nlink))),
        ];
        if self.lists.is_some() {
            columns.extend(self.block_columns(range));
        }
        columns
    }

    /// The columns of block lists of some rows.
    fn block_columns(&self, rows: Range<usize>) -> [ArrayRef; 3] {
        let position = rows.clone().map(|row| self.position(row).unwrap_or_default());
        let position = UInt32Array::from_iter_values(position);
        let (mut lists, mut reasons) = (lists_builder(), StringBuilder::new());
        for blocks in rows.map(|row| self.blocks(row)) {
            let known = matches!(blocks, Some(Blocks::Known(_)));
            match blocks {
                Some(Blocks::Known(extents)) => {
                    extents.for_each(|extent| push(lists.values(), &extent));
                    reasons.append_null();
                }
                Some(Blocks::Unknown(why)) => reasons.append_value(why),
                Some(Blocks::NotKept) | None => reasons.append_null(),
            }
            lists.append(known);
        }
        [Arc::new(position), Arc::new(lists.finish()), Arc::new(reasons.finish())]
    }

    /// Reads what a snapshot says of itself.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn read_meta(path: &Path) -> Result<SnapshotMeta, FileError> {
        described(&open(path)?)
    }

    /// Reads a snapshot, and of its block lists nothing.
    ///
    /// # Errors
    /// [`FileError`], naming file and place.
    pub fn read(path: &Path) -> Result<Snapshot, FileError> {
        let file = open(path)?;
        let meta = described(&file)?;
        read(&file, SnapshotMeta { blocks: None, ..meta })
    }

    /// Reads a snapshot with its block lists, where it has them.
    ///
    /// # Errors
    /// [`FileError`], naming file and place.
    pub fn read_whole(path: &Path) -> Result<Snapshot, FileError> {
        let file = open(path)?;
        let meta = described(&file)?;
        if meta.version < FORMAT_VERSION {
            return read(&file, SnapshotMeta { blocks: None, ..meta });
        }
        let Some(blocks) = &meta.blocks else {
            return Err(file.corrupt("footer", "it says nothing of the block lists that a file of its version has"));
        };
        check_blocks(&meta, blocks).map_err(|(place, message)| file.corrupt(place, message))?;
        as_stored(&block_fields())(path, file.schema())?;
        read(&file, meta)
    }

    /// Whether a file is a Parquet file: of those that a command about layout is given, only snapshots are.
    pub fn is_one(path: &Path) -> bool {
        let mut first = [0; 4];
        path.is_file()
            && posix::input::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok()
            && first == *b"PAR1"
    }

    /// The layout of a snapshot's moment, from its block lists.
    ///
    /// # Errors
    /// [`FileError`], naming file and place; it has none.
    pub fn layout_of(path: &Path, options: &SurveyOptions) -> Result<Survey, FileError> {
        let snapshot = Snapshot::read_whole(path)?;
        snapshot.survey(&path.display().to_string(), options).ok_or_else(|| no_blocks(path))
    }

    /// Reads a snapshot for its block lists.
    ///
    /// # Errors
    /// [`FileError`], naming file and place; it has none.
    pub fn read_with_blocks(path: &Path) -> Result<Snapshot, FileError> {
        let snapshot = Snapshot::read_whole(path)?;
        if snapshot.lists.is_some() { Ok(snapshot) } else { Err(no_blocks(path)) }
    }
}

/// What a snapshot says of itself, where it can be.
fn described(file: &ParquetIn) -> Result<SnapshotMeta, FileError> {
    let meta: SnapshotMeta = file.description()?;
    check_unit(meta.block_bytes).map_err(|why| file.corrupt("footer, block_bytes", why))?;
    if let Some(InodeGroups { inodes_per_group, count, .. }) = meta.inode_groups
        && (inodes_per_group == 0 || count == 0)
    {
        let message = format!("{count} groups of {inodes_per_group} inodes, which no file system has");
        return Err(file.corrupt("footer, inode_groups", message));
    }
    Ok(meta)
}

/// A unit of allocation is a power of two.
fn check_unit(bytes: u32) -> Result<(), String> {
    if bytes.is_power_of_two() { Ok(()) } else { Err(format!("a block of {bytes} bytes, which is no power of two")) }
}

/// A device is never so many times as large as what its file system has for files: inode tables and a journal take the
/// half of one at most.
const SPAN_TIMES_MAX: u64 = 1024;

/// Whether a description of block lists can be: place and message where not.
fn check_blocks(meta: &SnapshotMeta, blocks: &BlocksMeta) -> Result<(), (&'static str, String)> {
    check_unit(blocks.block_bytes).map_err(|why| ("footer, blocks, block_bytes", why))?;
    let Span { start_bytes, len_bytes } = blocks.span;
    let end = start_bytes.checked_add(len_bytes).filter(|end| *end <= BYTES_MAX);
    let message = match (end, blocks.addresses) {
        (None, _) => "the addresses in use end beyond every device".to_owned(),
        // These are no device's.
        (Some(_), AddressSpace::BtrfsLogical) => return Ok(()),
        (Some(end), AddressSpace::Device | AddressSpace::BtrfsTranslated) => {
            let size = meta.total_bytes;
            if size == 0 || end / SPAN_TIMES_MAX <= size {
                return Ok(());
            }
            format!("the addresses in use end at byte {end}, far beyond the device of a file system of {size} bytes")
        }
    };
    Err(("footer, blocks, span", message))
}

/// What is kept of a file's rows for each of its bytes. A row of ours takes a few bytes of its file at least, and a
/// hundred of memory.
const ROWS_PER_BYTE: u64 = 128;

/// Reads the rows, with block lists where the description has them.
fn read(file: &ParquetIn, meta: SnapshotMeta) -> Result<Snapshot, FileError> {
    if meta.entries != file.rows() {
        let message = format!("{} rows where the description states {}", file.rows(), meta.entries);
        return Err(file.corrupt("footer", message));
    }
    let with_blocks = meta.blocks.is_some();
    let fields = if with_blocks { [fields(), block_fields()].concat() } else { fields() };
    let names: Vec<&str> = fields.iter().map(|f| f.name().as_str()).collect();
    let mut builder = if with_blocks { Builder::with_blocks() } else { Builder::default() };
    let mut room = file.room(ROWS_PER_BYTE);
    for group in 0..file.row_groups() {
        file.read_row_group(group, &names, |columns| append(columns, &mut builder, &mut room))?;
    }
    builder.finish(meta).map_err(|(row, why)| file.corrupt(format!("row {row}"), why))
}

fn open(path: &Path) -> Result<ParquetIn, FileError> {
    ParquetIn::open(path.to_owned(), &FORMAT, Check::Footer, as_stored(&fields()))
}

/// A builder of a list of extents.
fn lists_builder() -> ListBuilder<StructBuilder> {
    let numbers = || -> Box<dyn ArrayBuilder> { Box::new(UInt64Builder::new()) };
    let fields: Vec<Box<dyn ArrayBuilder>> = vec![numbers(), numbers(), numbers(), Box::new(UInt8Builder::new())];
    ListBuilder::new(StructBuilder::new(extent_fields(), fields))
}

/// Adds an extent to the list in hand.
fn push(extents: &mut StructBuilder, extent: &Extent) {
    let numbers = [extent.logical_bytes, extent.physical_bytes, extent.len_bytes];
    for (field, number) in numbers.into_iter().enumerate() {
        if let Some(column) = extents.field_builder::<UInt64Builder>(field) {
            column.append_value(number);
        }
    }
    if let Some(flags) = extents.field_builder::<UInt8Builder>(numbers.len()) {
        flags.append_value(bits_of(extent.flags));
    }
    extents.append(true);
}

fn append(columns: &Columns<'_>, builder: &mut Builder, room: &mut NameRoom) -> Result<(), FileError> {
    let (paths, kinds) = (columns.text(PATH)?, columns.text(KIND)?);
    let (sizes, allocated, inos) = (
        columns.numbers::<UInt64Type>(SIZE)?,
        columns.numbers::<UInt64Type>(ALLOCATED)?,
        columns.numbers::<UInt64Type>(INO)?,
    );
    let generations = columns.optional_numbers::<UInt32Type>(GENERATION)?;
    let (ctimes, mtimes) = (columns.numbers::<Int64Type>(CTIME)?, columns.numbers::<Int64Type>(MTIME)?);
    let nlinks = columns.numbers::<UInt32Type>(NLINK)?;
    let blocks = builder.has_blocks().then(|| BlockColumns::of(columns)).transpose()?;
    for row in 0..columns.rows() {
        let text = paths.value(row);
        let bad = |column: &str, message: String| columns.corrupt(row, column, message);
        let name = unescape(text.as_bytes()).map_err(|e| bad(PATH, format!("{e} in {text:?}")))?;
        let kind = KINDS.iter().find(|(_, name)| *name == kinds.value(row)).map(|(kind, _)| *kind);
        let inode = Inode {
            kind: kind.ok_or_else(|| bad(KIND, format!("unknown {:?}", kinds.value(row))))?,
            size_bytes: sizes[row],
            allocated_bytes: allocated[row],
            ino: inos[row],
            generation: (!generations.is_null(row)).then(|| generations.value(row)),
            ctime_ns: ctimes[row],
            mtime_ns: mtimes[row],
            nlink: nlinks[row],
        };
        // The name is shorter than the path, and once more among those that are held against each other.
        let kept = size_of::<super::Entry>() + name.len().min(NAME_BYTES_MAX) + size_of::<(u64, usize)>();
        columns.file().take_room(room, kept, "rows", "tree")?;
        let wrong = |why: String| bad(PATH, format!("{text:?} {why}"));
        let (Some(blocks), Some(lists)) = (&blocks, builder.lists()) else {
            builder.push(&name, inode).map_err(wrong)?;
            continue;
        };
        let before = lists.bytes();
        let at = blocks.take(columns, row, lists)?;
        columns.file().take_room(room, lists.bytes() - before, "block lists", "tree")?;
        builder.push_at(&name, inode, Place { position: blocks.positions[row], at }).map_err(wrong)?;
    }
    Ok(())
}

/// The columns of block lists, taken apart.
struct BlockColumns<'a> {
    positions: &'a [u32],
    lists: &'a ListArray,
    logical: &'a [u64],
    physical: &'a [u64],
    lens: &'a [u64],
    flags: &'a [u8],
    reasons: &'a StringArray,
}

impl<'a> BlockColumns<'a> {
    fn of(columns: &Columns<'a>) -> Result<BlockColumns<'a>, FileError> {
        let within = columns.optional_lists(EXTENTS)?;
        let numbers = |field| columns.numbers_within::<UInt64Type>(EXTENTS, within, field);
        Ok(BlockColumns {
            positions: columns.numbers::<UInt32Type>(POSITION)?,
            lists: within.0,
            logical: numbers(LOGICAL)?,
            physical: numbers(PHYSICAL)?,
            lens: numbers(LEN)?,
            flags: columns.numbers_within::<UInt8Type>(EXTENTS, within, FLAGS)?,
            reasons: columns.optional_text(NO_EXTENTS)?,
        })
    }

    /// The list of a row.
    fn take(&self, columns: &Columns<'_>, row: usize, lists: &mut Lists) -> Result<ListAt, FileError> {
        let bad = |message: String| columns.corrupt(row, EXTENTS, message);
        match (self.lists.is_null(row), self.reasons.is_null(row)) {
            (true, true) => return Ok(ListAt::NotKept),
            (true, false) => {
                return lists.told(self.reasons.value(row)).map_err(|why| columns.corrupt(row, NO_EXTENTS, why));
            }
            (false, false) => return Err(bad("there is a list, and a reason why there is none".to_owned())),
            (false, true) => {}
        }
        let offsets = self.lists.value_offsets();
        let offset = |row: usize| offsets.get(row).and_then(|at| usize::try_from(*at).ok()).unwrap_or_default();
        let range = offset(row)..offset(row + 1);
        if let Some(bits) = self.flags.get(range.clone()).into_iter().flatten().find(|bits| flags_of(**bits).is_none())
        {
            return Err(bad(format!("flags {bits:#x} have a bit that means nothing")));
        }
        let number = |column: &[u64], i: usize| column.get(i).copied().unwrap_or_default();
        let extents = range.map(|i| Extent {
            logical_bytes: number(self.logical, i),
            physical_bytes: number(self.physical, i),
            len_bytes: number(self.lens, i),
            flags: self.flags.get(i).and_then(|bits| flags_of(*bits)).unwrap_or_default(),
        });
        lists.add(extents).map_err(bad)
    }
}
