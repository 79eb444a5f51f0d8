//! Block lists of snapshots: what a file may hold and what is refused, that they are read back as written, and that
//! those who do not want them get the snapshot they always got. `snapshot_scratch` and the tests of the command hold
//! them against file systems.

use aging::snapshot::{Blocks, BlocksMeta, Builder, Inode, Snapshot, SnapshotMeta};
use arrow_array::builder::{ArrayBuilder, ListBuilder, StringBuilder, StructBuilder, UInt8Builder, UInt64Builder};
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::{DataType, Field, Schema};
use columnar::{Check, Format, ParquetIn, ParquetOut, as_stored, properties};
use fault::{Fault as _, Kind};
use layout::geometry::{GroupKind, Groups, InodeRule, Ranges};
use layout::map::Span;
use layout::{AddressSpace, Available, MapOrder, Method, SurveyOptions};
use posix::{Extent, ExtentFlags, FileKind};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// Lists of a file system of eight groups of a megabyte.
pub fn blocks_meta() -> BlocksMeta {
    BlocksMeta {
        method: Method::Mounted,
        options: "rw".into(),
        addresses: AddressSpace::Device,
        block_bytes: 4096,
        span: Span { start_bytes: 0, len_bytes: 8 << 20 },
        groups: Available::Known(Groups {
            kind: GroupKind::Ext4BlockGroups,
            ranges: Ranges::Uniform { first_bytes: 0, len_bytes: 1 << 20, count: 8 },
            inodes: InodeRule::PerGroup(10),
            per_flex: 1,
        }),
        no_split: None,
        unavailable: None,
        notes: Vec::new(),
    }
}

fn meta() -> SnapshotMeta {
    SnapshotMeta {
        total_bytes: 8 << 20,
        free_bytes: 4 << 20,
        block_bytes: 4096,
        fs_type: "ext4".into(),
        taken_ns: 10,
        blocks: Some(blocks_meta()),
        ..SnapshotMeta::default()
    }
}

pub fn extent(logical_bytes: u64, physical_bytes: u64, len_bytes: u64) -> Extent {
    Extent { logical_bytes, physical_bytes, len_bytes, flags: ExtentFlags::default() }
}

fn inode(kind: FileKind, ino: u64, nlink: u32) -> Inode {
    Inode { kind, size_bytes: 8192, allocated_bytes: 8192, ino, generation: Some(1), ctime_ns: 5, mtime_ns: 5, nlink }
}

/// A tree of each kind of thing: of two pieces with a hole, inline, empty, of two names, not readable, and what has no
/// list.
pub fn sound() -> Snapshot {
    let mut builder = Builder::with_blocks();
    let mut push = |path: &str, kind, ino, nlink, position, blocks: Option<Result<&[Extent], &str>>| {
        builder.push_with(path.as_bytes(), inode(kind, ino, nlink), position, blocks).expect("a sound row");
    };
    let inline = ExtentFlags { inline: true, ..ExtentFlags::default() };
    let two = [extent(0, 3 << 20, 4096), extent(8192, 40_960, 4096)];
    use FileKind::{Directory, File, Symlink};
    push("/", Directory, 2, 3, 0, Some(Ok(&[extent(0, 4096, 4096)])));
    push("/a", File, 11, 1, 3, Some(Ok(&two)));
    push("/d", Directory, 12, 2, 1, Some(Err("directories do not tell")));
    push("/d/inline", File, 13, 1, 0, Some(Ok(&[Extent { flags: inline, ..extent(0, 77, 100) }])));
    push("/e", File, 14, 1, 0, Some(Ok(&[])));
    push("/l", Symlink, 15, 1, 2, None);
    push("/n", File, 16, 2, 5, Some(Ok(&two[..1])));
    push("/o", File, 16, 2, 4, Some(Ok(&two[..1])));
    push("/x", File, 17, 1, 6, Some(Err("permission denied (EACCES)")));
    builder.finish(meta()).expect("a sound snapshot")
}

#[test]
fn lists_are_read_back_as_written_and_left_out_where_nobody_asks() {
    let work = tempfile::tempdir().expect("a directory");
    let path = work.path().join("a.snapshot");
    let snapshot = sound();
    snapshot.write(&path).expect("a new file");
    let whole = Snapshot::read_with_blocks(&path).expect("our own file");
    assert_eq!(whole, snapshot);
    assert_eq!(whole.meta.version, 2);
    let list = |index| match whole.blocks(index) {
        Some(Blocks::Known(extents)) => extents.collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(list(1), [extent(0, 3 << 20, 4096), extent(8192, 40_960, 4096)]);
    assert!(list(3)[0].flags.inline && list(4).is_empty());
    assert!(matches!(whole.blocks(8), Some(Blocks::Unknown("permission denied (EACCES)"))));
    assert!(matches!(whole.blocks(5), Some(Blocks::NotKept)));
    // The names alone are what they are without lists, and such a snapshot is a file of the version that older programs
    // read.
    let plain = Snapshot::read(&path).expect("our own file");
    assert!(plain.blocks(1).is_none() && plain.meta.blocks.is_none());
    assert_eq!((plain.entries(), plain.meta.version), (snapshot.entries(), 1));
    let other = work.path().join("plain.snapshot");
    plain.write(&other).expect("a new file");
    assert_eq!(Snapshot::read_whole(&other).expect("our own file"), plain);
    let error = Snapshot::read_with_blocks(&other).expect_err("no lists");
    assert!(error.to_string().contains("plain.snapshot") && error.to_string().contains("--blocks"), "{error}");
    assert_eq!(error.kind(), Kind::BadInput);
}

#[test]
fn a_survey_of_lists_counts_what_is_there_and_says_what_is_not() {
    let options = SurveyOptions { map: MapOrder::of_side(4), ..SurveyOptions::default() };
    let survey = sound().survey("a.snapshot", &options).expect("there are lists");
    assert_eq!(survey.source.method, Method::Snapshot);
    let walked = &survey.walked;
    assert_eq!((walked.files, walked.further_links, walked.directories, walked.others), (4, 1, 2, 1));
    let files = survey.files.known().expect("there are lists");
    assert_eq!((files.records, files.all.extents, files.score.pairs, files.score.following), (4, 3, 1, 0));
    assert_eq!(files.kinds.inline.files, 1);
    // In the order of the listing: /e, /d/inline, /a, /o (the first of its names). Only the last two have a place: from
    // the end of /a's second piece to the beginning of /o's.
    assert_eq!((files.locality.count, files.locality.sum_bytes), (1, (3 << 20) - (40_960 + 4096)));
    // Inode 16 belongs to group 1, 11 to group 1 as well; their data lie in group 3.
    assert_eq!(files.split.known().map(|s| (s.files, s.split)), Some((2, 2)));
    assert!(survey.free.why().is_some_and(|why| why.contains("which space is free")));
    let map = survey.map.and_then(|map| map.known().cloned()).expect("a map");
    assert_eq!((map.totals().file_bytes, map.free_bytes.known().is_some()), (3 * 4096, false));
}

#[test]
fn lists_that_cannot_be_are_named() {
    let error = |path: &str, kind, blocks: Option<Result<&[Extent], &str>>| {
        let mut builder = Builder::with_blocks();
        builder.push_with(b"/", inode(FileKind::Directory, 2, 2), 0, Some(Ok(&[]))).expect("a root");
        builder.push_with(path.as_bytes(), inode(kind, 3, 1), 0, blocks).expect_err(path)
    };
    let overlap = [extent(0, 0, 4096), extent(4095, 8192, 1)];
    assert!(error("/a", FileKind::File, Some(Ok(&overlap))).contains("extent 1 begins at byte 4095"));
    assert!(error("/a", FileKind::File, None).contains("neither"));
    assert!(error("/a", FileKind::File, Some(Err(&"why ".repeat(1025)))).contains("a reason of 4100 bytes"));
    assert!(error("/a", FileKind::Special, Some(Ok(&[]))).contains("neither a file nor a directory"));
    let mut builder = Builder::with_blocks();
    builder.push_with(b"/", inode(FileKind::Directory, 2, 2), 0, Some(Ok(&[]))).expect("a root");
    builder.push_with(b"/a", inode(FileKind::File, 3, 2), 0, Some(Ok(&[extent(0, 5, 5)]))).expect("a name");
    builder.push_with(b"/b", inode(FileKind::File, 3, 2), 1, Some(Ok(&[extent(0, 6, 5)]))).expect("a name");
    let (row, why) = builder.finish(meta()).expect_err("one inode, two places");
    assert!(row == 2 && why.contains("other blocks"), "{row} {why}");
    // As many reasons as files.
    let mut builder = Builder::with_blocks();
    builder.push_with(b"/", inode(FileKind::Directory, 2, 2), 0, Some(Ok(&[]))).expect("a root");
    let mut push = |i: u32| {
        let (name, why) = (format!("/{i:05}"), format!("reason {i}"));
        builder.push_with(name.as_bytes(), inode(FileKind::File, 100 + u64::from(i), 1), i, Some(Err(&why)))
    };
    assert!((0..1000).all(|i| push(i).is_ok()));
    assert!(push(1000).is_err_and(|why| why.contains("more than the 1000")));
    // Lists, and nothing that says what they are; and the other way round.
    let mut builder = Builder::with_blocks();
    builder.push_with(b"/", inode(FileKind::Directory, 2, 2), 0, Some(Ok(&[]))).expect("a root");
    assert!(builder.finish(SnapshotMeta { blocks: None, ..meta() }).is_err());
    let mut builder = Builder::default();
    builder.push(b"/", inode(FileKind::Directory, 2, 2)).expect("a root");
    assert!(builder.finish(meta()).is_err());
}

/// No sentence.
static LONG: &str = {
    const BYTES: [u8; 5000] = [b'a'; 5000];
    match std::str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => "",
    }
};

/// An extent as somebody wrote it, whether it can be or not.
type Written = Option<(Option<u64>, u64, u64, u8)>;

/// The file with other columns and another description, and its checksums right.
fn rewritten(from: &Path, to: &Path, change: impl FnOnce(&mut Vec<(Field, ArrayRef)>, &mut serde_json::Value)) {
    static ANY: Format =
        Format { name: "any", version: 9, oldest: 0, key: Some("fsage.snapshot"), missing: "", again: "" };
    let file = ParquetIn::open(from.to_owned(), &ANY, Check::Footer, as_stored(&NO_FIELDS)).expect("our own file");
    let (schema, batches) = file.record_batches(&[], || true).expect("our own file");
    let [batch] = batches.as_slice() else { panic!("one row group") };
    let fields = schema.fields().iter().map(|field| field.as_ref().clone());
    let mut columns: Vec<(Field, ArrayRef)> = fields.zip(batch.columns().iter().cloned()).collect();
    let mut meta: serde_json::Value = file.description().expect("our own file");
    change(&mut columns, &mut meta);
    let typed = |(field, column): &(Field, ArrayRef)| field.clone().with_data_type(column.data_type().clone());
    let schema = Arc::new(Schema::new(columns.iter().map(typed).collect::<Vec<_>>()));
    let _ = std::fs::remove_file(to);
    let mut out = ParquetOut::create(to.to_owned(), schema, properties().build()).expect("a new file");
    out.write_arrays(columns.into_iter().map(|(_, column)| column).collect()).expect("equal columns");
    out.end_row_group().expect("space");
    out.describe(&ANY, &meta).expect("JSON");
    out.finish().expect("space");
}

/// A file as tools look at it that want no column of it.
const NO_FIELDS: [Field; 0] = [];

/// The columns `extents` and `no_extents` of these rows.
fn columns_of(rows: &[(Option<Vec<Written>>, Option<&str>)]) -> [(&'static str, ArrayRef); 2] {
    let numbers = ["logical_bytes", "physical_bytes", "len_bytes"].map(|name| Field::new(name, DataType::UInt64, true));
    let fields: Vec<Field> = numbers.into_iter().chain([Field::new("flags", DataType::UInt8, true)]).collect();
    let number = || -> Box<dyn ArrayBuilder> { Box::new(UInt64Builder::new()) };
    let builders = vec![number(), number(), number(), Box::new(UInt8Builder::new())];
    let mut lists = ListBuilder::new(StructBuilder::new(fields, builders));
    let mut reasons = StringBuilder::new();
    for (list, reason) in rows {
        for written in list.iter().flatten() {
            let (logical, physical, len, flags) = written.unwrap_or((None, 0, 0, 0));
            for (field, number) in [logical, Some(physical), Some(len)].into_iter().enumerate() {
                lists.values().field_builder::<UInt64Builder>(field).expect("ours").append_option(number);
            }
            lists.values().field_builder::<UInt8Builder>(3).expect("ours").append_value(flags);
            lists.values().append(written.is_some());
        }
        lists.append(list.is_some());
        reasons.append_option(*reason);
    }
    [("extents", Arc::new(lists.finish())), ("no_extents", Arc::new(reasons.finish()))]
}

#[test]
fn what_somebody_else_wrote_is_refused_by_place_or_carried() {
    let work = tempfile::tempdir().expect("a directory");
    let path = work.path().join("a.snapshot");
    let mut builder = Builder::with_blocks();
    builder.push_with(b"/", inode(FileKind::Directory, 2, 2), 0, Some(Err("not told"))).expect("a root");
    builder.push_with(b"/a", inode(FileKind::File, 3, 1), 0, Some(Ok(&[extent(0, 4096, 8192)]))).expect("a file");
    builder.push_with(b"/l", inode(FileKind::Symlink, 4, 1), 1, None).expect("a link");
    builder.finish(meta()).expect("a sound snapshot").write(&path).expect("a new file");
    let read = |list: Option<Vec<Written>>,
                reason: Option<&'static str>,
                of_link: Option<Vec<Written>>,
                version: u32| {
        let other = work.path().join("b.snapshot");
        let changed = columns_of(&[(None, Some("not told")), (list, reason), (of_link, None)]);
        rewritten(&path, &other, |columns, meta| {
            for (name, array) in changed {
                columns.iter_mut().filter(|(field, _)| field.name() == name).for_each(|(_, c)| *c = Arc::clone(&array));
            }
            meta["version"] = version.into();
        });
        // A planner reads what it always read.
        let plain = Snapshot::read(&other);
        (Snapshot::read_with_blocks(&other), plain)
    };
    let one = |logical, physical, len, flags| Some(vec![Some((Some(logical), physical, len, flags))]);
    let (sound, _) = read(one(0, 4096, 8192, 0), None, None, 2);
    assert_eq!(sound.expect("as it was"), Snapshot::read_with_blocks(&path).expect("our own file"));
    let two = |a: (u64, u64, u64), b: (u64, u64, u64)| {
        Some(vec![Some((Some(a.0), a.1, a.2, 0)), Some((Some(b.0), b.1, b.2, 0))])
    };
    for (list, reason, of_link, part) in [
        (two((0, 0, 4096), (4000, 8192, 4096)), None, None, "row 1, column extents: extent 1 begins at byte 4000"),
        (two((4096, 0, 4096), (0, 8192, 4096)), None, None, "row 1, column extents: extent 1 begins at byte 0"),
        (one(u64::MAX, 0, 1, 0), None, None, "row 1, column extents: extent 0 of 1 bytes at byte"),
        (one(0, 1 << 63, 1, 0), None, None, "ends beyond every device"),
        (one(0, 0, u64::MAX, 0), None, None, "ends beyond every file"),
        (one(0, 0, 1, 0x80), None, None, "row 1, column extents: flags 0x80 have a bit that means nothing"),
        (None, Some(LONG), None, "row 1, column no_extents: a reason of 5000 bytes"),
        (one(0, 0, 1, 0), Some("why"), None, "row 1, column extents: there is a list, and a reason"),
        (None, None, None, "row 1, column path: \"/a\" has neither a list"),
        (one(0, 0, 1, 0), None, one(0, 0, 1, 0), "row 2, column path: \"/l\" has a list of blocks, and is neither"),
        (Some(vec![None]), None, None, "row 1, column extents: is null within a list"),
        (Some(vec![Some((None, 0, 0, 0))]), None, None, "row 1, column extents, logical_bytes: is null within a list"),
    ] {
        let (whole, plain) = read(list, reason, of_link, 2);
        let error = whole.expect_err(part);
        assert!(error.to_string().contains(part) && error.to_string().contains("b.snapshot"), "{part}: {error}");
        assert_eq!(error.kind(), Kind::BadInput);
        assert_eq!(plain.expect("names alone").entries().len(), 3);
    }
    // Nobody can say what a later version means.
    assert!(read(None, Some("why"), None, 3).0.expect_err("version 3").to_string().contains("use a newer fsage"));
    // Beyond the device, in a place of another file, of no length: a file system may have grown, or share what it does
    // not say. It is carried.
    let far = two((0, 1 << 61, 1 << 61), (1 << 62, 4096, 0));
    let options = SurveyOptions { map: MapOrder::of_side(4), ..SurveyOptions::default() };
    let carried = read(far, None, None, 2).0.expect("a list all the same");
    let survey = carried.survey("b", &options).expect("there are lists");
    let files = survey.files.known().expect("there are lists");
    assert_eq!((files.records, files.split.known().map(|s| s.files)), (1, Some(0)), "{files:?}");
}

#[test]
fn a_file_that_lacks_what_its_version_has_is_refused() {
    let work = tempfile::tempdir().expect("a directory");
    let (path, other) = (work.path().join("a.snapshot"), work.path().join("b.snapshot"));
    sound().write(&path).expect("a new file");
    for missing in ["position", "extents", "no_extents"] {
        rewritten(&path, &other, |columns, _| columns.retain(|(field, _)| field.name() != missing));
        let error = Snapshot::read_with_blocks(&other).expect_err(missing).to_string();
        assert!(error.contains(&format!("column {missing}: not in the file")), "{error}");
    }
    rewritten(&path, &other, |_, meta| meta["blocks"] = serde_json::Value::Null);
    let error = Snapshot::read_with_blocks(&other).expect_err("no description").to_string();
    assert!(error.contains("b.snapshot") && error.contains("says nothing of the block lists"), "{error}");
}

/// A unit that is none, addresses of no device: they were accepted, and the layout counted by them.
#[test]
fn a_unit_or_addresses_that_cannot_be_are_refused_by_place() {
    let work = tempfile::tempdir().expect("a directory");
    let (path, other) = (work.path().join("a.snapshot"), work.path().join("b.snapshot"));
    sound().write(&path).expect("a new file");
    let refused = |part: &str, change: &dyn Fn(&mut serde_json::Value)| {
        rewritten(&path, &other, |_, meta| change(meta));
        let error = Snapshot::read_with_blocks(&other).expect_err(part);
        assert!(error.to_string().contains(&format!("b.snapshot: footer, {part}")), "{part}: {error}");
        assert_eq!(error.kind(), Kind::BadInput);
    };
    for bytes in [0, 3, u32::MAX] {
        let part = format!("block_bytes: a block of {bytes} bytes, which is no power of two");
        refused(&part, &|meta| meta["block_bytes"] = bytes.into());
        refused(&format!("blocks, {part}"), &|meta| meta["blocks"]["block_bytes"] = bytes.into());
    }
    // Without lists, and the description alone, it is refused as well.
    rewritten(&path, &other, |_, meta| meta["block_bytes"] = 3.into());
    assert!(Snapshot::read(&other).is_err() && Snapshot::read_meta(&other).is_err());
    let beyond_all = "blocks, span: the addresses in use end beyond every device";
    for (start, len) in [(u64::MAX, 8 << 20), (0, 1 << 63), (i64::MAX as u64, 1), (1 << 63, u64::MAX)] {
        refused(beyond_all, &|meta| {
            meta["blocks"]["span"] = serde_json::json!({ "start_bytes": start, "len_bytes": len })
        });
    }
    let far = "blocks, span: the addresses in use end at byte 4611686018427387904, far beyond the device of a file \
        system of 8388608 bytes";
    refused(far, &|meta| meta["blocks"]["span"]["len_bytes"] = (1u64 << 62).into());
    // The inode tables and the journal of a file system are no part of its size; and btrfs has addresses of its own.
    let sound = |change: &dyn Fn(&mut serde_json::Value)| {
        rewritten(&path, &other, |_, meta| change(meta));
        assert!(Snapshot::read_with_blocks(&other).is_ok());
    };
    sound(&|meta| meta["blocks"]["span"]["len_bytes"] = (80 << 20).into());
    sound(&|meta| {
        meta["blocks"]["span"]["start_bytes"] = (1u64 << 50).into();
        meta["blocks"]["addresses"] = "btrfs_logical".into();
    });
}

/// A path of megabytes was quoted whole.
#[test]
fn a_path_of_megabytes_is_quoted_in_part() {
    let work = tempfile::tempdir().expect("a directory");
    let (path, other) = (work.path().join("a.snapshot"), work.path().join("b.snapshot"));
    sound().write(&path).expect("a new file");
    let long = format!("/a{}", "b".repeat(5 << 20));
    rewritten(&path, &other, |columns, _| {
        let (_, paths) = columns.iter_mut().find(|(field, _)| field.name() == "path").expect("there");
        let texts = ["/", long.as_str(), "/d", "/d/inline", "/e", "/l", "/n", "/o", "/x"];
        *paths = Arc::new(arrow_array::StringArray::from_iter_values(texts));
    });
    let error = Snapshot::read(&other).expect_err("no name").to_string();
    assert!(
        error.contains("b.snapshot: row 1, column path: \"/abbb") && error.contains("does not end in a name"),
        "{error}"
    );
    assert!(error.contains("characters left out") && error.len() < 2_000, "{} bytes", error.len());
}

/// What is kept of rows was not bounded at all.
#[test]
fn what_is_kept_of_a_file_has_a_length_for_it() {
    let work = tempfile::tempdir().expect("a directory");
    let path = work.path().join("a.snapshot");
    sound().write(&path).expect("a new file");
    let file = ParquetIn::open(path.clone(), &aging::snapshot::FORMAT, Check::Footer, as_stored(&NO_FIELDS));
    let file = file.expect("our own file");
    let most = (256 << 20) + 128 * std::fs::metadata(&path).expect("the file").len() as usize;
    let mut room = file.room(128);
    file.take_room(&mut room, most - 7, "rows", "tree").expect("room");
    file.take_room(&mut room, 7, "rows", "tree").expect("room");
    let error = file.take_room(&mut room, 1, "rows", "tree").expect_err("no room").to_string();
    assert!(error.contains("its rows unpack to more than 268435456 bytes and 128 for each of its own"), "{error}");
}

#[test]
fn row_groups_end_where_lists_are_long() {
    let work = tempfile::tempdir().expect("a directory");
    let path = work.path().join("a.snapshot");
    let mut builder = Builder::with_blocks();
    builder.push_with(b"/", inode(FileKind::Directory, 2, 2), 0, Some(Ok(&[]))).expect("a root");
    let long: Vec<Extent> = (0..700_000).map(|i| extent(i * 4096, (i * 2) * 4096, 4096)).collect();
    for i in 0..4u32 {
        let name = format!("/{i}");
        builder
            .push_with(name.as_bytes(), inode(FileKind::File, u64::from(i) + 10, 1), i, Some(Ok(&long)))
            .expect("a file");
    }
    let snapshot = builder.finish(meta()).expect("a sound snapshot");
    snapshot.write(&path).expect("a new file");
    assert_eq!(Snapshot::read_with_blocks(&path).expect("our own file"), snapshot);
    let format = &aging::snapshot::FORMAT;
    let file = ParquetIn::open(path.clone(), format, Check::Footer, as_stored(&NO_FIELDS)).expect("our own file");
    assert_eq!((file.row_groups(), file.rows()), (2, 5));
    // Neighbouring extents that lie alike cost next to nothing: less than a byte each.
    let bytes = std::fs::metadata(&path).expect("the file").len();
    assert!(bytes < 4 * 700_000 / 2, "{bytes} bytes");
}

/// Numbers that meet, and the largest there are.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..20, 2 => (0u32..64).prop_map(|bit| 1 << bit), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn any_list() -> impl Strategy<Value = Option<Vec<Written>>> {
    let wild = proptest::collection::vec((number(), number(), number(), any::<u8>()), 0..5);
    // What can be, with the longest extents and the farthest places that there are.
    let bytes = || prop_oneof![4 => 0u64..20, 1 => (0u32..60).prop_map(|bit| 1 << bit)];
    let sound = proptest::collection::vec((bytes(), bytes(), bytes(), 0u8..128), 0..5).prop_map(|mut list| {
        let mut end = 0;
        for (logical, _, len, _) in &mut list {
            *logical += end;
            end = *logical + *len;
        }
        list
    });
    let list = prop_oneof![1 => wild, 9 => sound].prop_map(|list| -> Vec<Written> {
        list.into_iter().map(|(logical, physical, len, flags)| Some((Some(logical), physical, len, flags))).collect()
    });
    proptest::option::weighted(0.8, list)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever the lists, the groups and the addresses are said to be: refused, or read, surveyed, shown, written and
    /// read as the same.
    #[test]
    fn any_lists_are_refused_or_have_a_layout(
        lists in proptest::collection::vec(any_list(), 4),
        groups in (number(), number(), number(), number(), number()),
        span in (number(), number()),
        block_bytes in prop_oneof![9 => (0u32..32).prop_map(|bit| 1 << bit), 1 => any::<u32>()],
        (total_bytes, free_bytes) in (prop_oneof![number(), Just(0), (50u32..64).prop_map(|bit| 1 << bit)], number()),
        (taken_ns, days) in (any::<i64>(), 0.0..1e6),
        side in 0u32..5,
    ) {
        let work = tempfile::tempdir().expect("a directory");
        let (path, other) = (work.path().join("a.snapshot"), work.path().join("b.snapshot"));
        let mut builder = Builder::with_blocks();
        builder.push_with(b"/", inode(FileKind::Directory, 2, 2), 0, Some(Ok(&[]))).expect("a root");
        for (i, name) in (0u32..).zip(["/a", "/b", "/c"]) {
            let row = inode(FileKind::File, u64::from(i) + 10, 1);
            builder.push_with(name.as_bytes(), row, i % 2, Some(Ok(&[]))).expect("a file");
        }
        builder.finish(meta()).expect("a sound snapshot").write(&path).expect("a new file");
        let rows: Vec<_> = lists.iter().map(|list| (list.clone(), list.is_none().then_some("why"))).collect();
        let columns = columns_of(&rows);
        rewritten(&path, &other, |there, meta| {
            for (name, array) in columns {
                there.iter_mut().filter(|(field, _)| field.name() == name).for_each(|(_, c)| *c = Arc::clone(&array));
            }
            let (first_bytes, len_bytes, count, per_group, per_flex) = groups;
            meta["blocks"]["groups"]["known"] = serde_json::json!({
                "kind": "ext4_block_groups",
                "ranges": { "uniform": { "first_bytes": first_bytes, "len_bytes": len_bytes, "count": count } },
                "inodes": { "per_group": per_group },
                "per_flex": per_flex,
            });
            meta["blocks"]["span"] = serde_json::json!({ "start_bytes": span.0, "len_bytes": span.1 });
            meta["blocks"]["block_bytes"] = block_bytes.into();
            (meta["total_bytes"], meta["free_bytes"]) = (total_bytes.into(), free_bytes.into());
            (meta["taken_ns"], meta["began_ns"]) = (taken_ns.into(), taken_ns.into());
        });
        let Ok(snapshot) = Snapshot::read_with_blocks(&other) else { return Ok(()) };
        let options =
            SurveyOptions { map: MapOrder::of_side(1 << side), hot_days: Some(days), ..SurveyOptions::default() };
        let survey = snapshot.survey("it", &options).expect("there are lists");
        let _ = layout::present::layout(&survey);
        let _ = layout::compare(&survey, &survey);
        let saved = work.path().join("survey.json");
        layout::save(&survey, &saved).expect("a new file");
        prop_assert!(layout::load(&saved).is_ok());
        let series = aging::snapshot::layout_by_day(std::slice::from_ref(&other), &options, &mut |_| true);
        let series = series.expect("one snapshot is a series");
        let _ = aging::present::course::document(&aging::present::course::Input::new(&series));
        std::fs::remove_file(&path).expect("ours");
        snapshot.write(&path).expect("a new file");
        prop_assert_eq!(Snapshot::read_with_blocks(&path).expect("our own file"), snapshot);
    }
}
