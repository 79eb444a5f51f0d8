//! Snapshots of inodes of any rows, any block lists and any description, with sound checksums: refused or read; what is
//! read with its lists is written and read as the same, and has a layout; and what is planned from one, two or three is
//! a sound plan.

#![no_main]

#[path = "common/documents.rs"]
mod documents;
#[path = "common/rows.rs"]
mod rows;

use aging::format::{Reader, Writer};
use aging::plan::snapshots::{SnapshotsOptions, plan, planned_for};
use aging::snapshot::{BlocksMeta, FORMAT_VERSION, Snapshot, SnapshotMeta};
use arrow_schema::{DataType, Field};
use layout::geometry::{GroupKind, Groups, InodeRule, Ranges};
use layout::map::Span;
use layout::{AddressSpace, Available, MapOrder, Method, SurveyOptions};
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use rows::Column;
use std::path::PathBuf;
use std::sync::Arc;

const COLUMNS: [Column; 9] = [
    ("path", DataType::Utf8, false, &["", "a", "a/b", "a/c", "b", "c", "c/d", "c/d/e", "..", "a//b", "/", "\\x00"]),
    ("kind", DataType::Utf8, false, &["file", "file", "directory", "symlink", "special"]),
    ("size_bytes", DataType::UInt64, false, &[]),
    ("allocated_bytes", DataType::UInt64, false, &[]),
    ("ino", DataType::UInt64, false, &["rising"]),
    ("generation", DataType::UInt32, true, &[]),
    ("ctime_ns", DataType::Int64, false, &[]),
    ("mtime_ns", DataType::Int64, false, &[]),
    ("nlink", DataType::UInt32, false, &[]),
];

/// The columns of block lists.
fn block_columns() -> [Column; 3] {
    let numbers = ["logical_bytes", "physical_bytes", "len_bytes"].map(|name| Field::new(name, DataType::UInt64, true));
    let fields: Vec<Field> = numbers.into_iter().chain([Field::new("flags", DataType::UInt8, true)]).collect();
    let item = Field::new("item", DataType::Struct(fields.into()), true);
    // A list whose first number rises passes more often.
    [
        ("position", DataType::UInt32, false, &[]),
        ("extents", DataType::List(Arc::new(item)), true, &["far apart"]),
        ("no_extents", DataType::Utf8, true, &["not told"]),
    ]
}

fn blocks() -> BlocksMeta {
    BlocksMeta {
        method: Method::Mounted,
        options: String::new(),
        addresses: AddressSpace::Device,
        block_bytes: 1,
        span: Span { start_bytes: 0, len_bytes: 1 << 30 },
        groups: Available::Known(Groups {
            kind: GroupKind::Ext4BlockGroups,
            ranges: Ranges::Uniform { first_bytes: 0, len_bytes: 4, count: 8 },
            inodes: InodeRule::PerGroup(2),
            per_flex: 2,
        }),
        no_split: None,
        unavailable: None,
        notes: Vec::new(),
    }
}

fuzz_target!(|input: &[u8]| {
    let mut u = Unstructured::new(input);
    let with_blocks = u.arbitrary().unwrap_or(false);
    let columns = if with_blocks { [&COLUMNS[..], &block_columns()].concat() } else { COLUMNS.to_vec() };
    let directory = std::env::temp_dir();
    let named = |name: &str| directory.join(format!("fsage-fuzz-{}-{name}", std::process::id()));
    let mut paths: Vec<PathBuf> = Vec::new();
    for n in 0..u.int_in_range(1..=3).unwrap_or(1) {
        let path = named(&format!("{n}.snapshot"));
        let written = rows::write(&path, &columns, 16, &mut u, |batches, u| {
            let meta = SnapshotMeta {
                version: if with_blocks { FORMAT_VERSION } else { 1 },
                blocks: with_blocks.then(blocks),
                taken_ns: n * 1_000_000_000_000_000,
                total_bytes: 1 << 30,
                block_bytes: 4096,
                entries: batches.iter().map(|batch| batch.num_rows() as u64).sum(),
                ..SnapshotMeta::default()
            };
            let value = serde_json::to_value(meta).expect("JSON");
            let value = if u.ratio(1, 3).unwrap_or(false) { documents::changed(value, u) } else { value };
            let text = value.to_string();
            let sum = format!("{:08x}", crc32c::crc32c(text.as_bytes()));
            vec![("fsage.snapshot_crc32c".to_owned(), sum), ("fsage.snapshot".to_owned(), text)]
        });
        if written.is_err() {
            return;
        }
        if let Ok(snapshot) = Snapshot::read_with_blocks(&path) {
            let _ = snapshot.summary();
            let map = u.arbitrary().unwrap_or(false).then(MapOrder::default);
            let options = SurveyOptions { map, ..SurveyOptions::default() };
            let survey = snapshot.survey("it", &options).expect("it has lists");
            let _ = survey.map.as_ref().and_then(|map| map.known()).map(|map| map.totals());
            let _ = layout::present::layout(&survey);
            let again = named("again.snapshot");
            let _ = std::fs::remove_file(&again);
            snapshot.write(&again).expect("space");
            let read = Snapshot::read_with_blocks(&again).expect("our own file");
            assert!((0..snapshot.entries().len()).all(|i| read.position(i) == snapshot.position(i)));
            assert!(read.entries() == snapshot.entries() && read.summary().blocks == snapshot.summary().blocks);
        }
        if let Ok(snapshot) = Snapshot::read(&path) {
            let _ = snapshot.summary();
            paths.push(path);
        }
    }
    let Ok(target) = planned_for(&paths) else { return };
    let plan_path = named("x.aging");
    let Ok(mut writer) = Writer::create(&plan_path, target.capacity_bytes, target.block_bytes) else { return };
    if let Ok(meta) = plan(&paths, &SnapshotsOptions::default(), &mut writer, &mut |_| true)
        && writer.finish(meta).is_ok()
    {
        Reader::open(&plan_path).and_then(|reader| reader.verify()).expect("our own plan is sound");
    }
});
