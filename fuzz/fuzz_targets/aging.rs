//! Aging workloads of any rows and any description, with sound checksums: refused, or sound by their own check; and
//! what is planned from one again is sound.

#![no_main]

#[path = "common/documents.rs"]
mod documents;
#[path = "common/rows.rs"]
mod rows;

use aging::format::{Counts, DayUse, FORMAT_VERSION, META_KEY, PlanMeta, Reader};
use aging::{OpKind, Tree};
use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::DataType;
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use rows::Column;

const COLUMNS: [Column; 7] = [
    ("t_ns", DataType::UInt64, false, &["rising"]),
    (
        "op",
        DataType::Utf8,
        false,
        &[
            "mkdir",
            "create",
            "create",
            "symlink",
            "append",
            "overwrite",
            "truncate",
            "punch_hole",
            "rename",
            "fsync",
            "delete",
            "rmdir",
        ],
    ),
    ("file_id", DataType::UInt64, false, &["rising"]),
    ("dir_id", DataType::UInt64, false, &[]),
    ("name", DataType::Utf8, true, &["a", "b", "f1", "d2", "..", ".", "a/b", "", "\\x00", "\\x2f"]),
    ("offset_bytes", DataType::UInt64, false, &[]),
    ("size_bytes", DataType::UInt64, false, &[]),
];

/// A description that counts what is there, as far as that goes without looking at the operations one by one.
fn description(batches: &[RecordBatch], u: &mut Unstructured<'_>) -> serde_json::Value {
    let mut counts = Counts::default();
    for batch in batches {
        let kinds = batch.column_by_name("op").expect("a column").as_string::<i32>();
        for kind in (0..kinds.len()).map(|row| kinds.value(row)) {
            counts.operations += 1;
            *counts.by_kind.entry(kind.to_owned()).or_default() += 1;
        }
    }
    counts.files_at_end = counts.of(OpKind::Create);
    let days = u.int_in_range(0..=3).unwrap_or(1);
    let utilisation = (1..=days).map(|day| DayUse { day, ..DayUse::default() }).collect();
    let meta = PlanMeta {
        version: FORMAT_VERSION,
        capacity_bytes: 1 << 30,
        block_bytes: 4096,
        days,
        counts,
        utilisation,
        ..PlanMeta::default()
    };
    let value = serde_json::to_value(meta).expect("JSON");
    if u.ratio(1, 4).unwrap_or(false) { documents::changed(value, u) } else { value }
}

fuzz_target!(|input: &[u8]| {
    let mut u = Unstructured::new(input);
    let path = std::env::temp_dir().join(format!("fsage-fuzz-{}.aging", std::process::id()));
    let written = rows::write(&path, &COLUMNS, 24, &mut u, |batches, u| {
        let text = description(batches, u).to_string();
        let sum = if u.ratio(31, 32).unwrap_or(true) { crc32c::crc32c(text.as_bytes()) } else { 0 };
        vec![("fsage.aging_crc32c".to_owned(), format!("{sum:08x}")), (META_KEY.to_owned(), text)]
    });
    if written.is_err() {
        return;
    }
    let Ok(reader) = Reader::open(&path) else { return };
    let sound = reader.verify().is_ok();
    // Whoever replays meets the operations one by one, and stops at the first that contradicts those before it.
    let mut tree = Tree::new();
    let mut possible = true;
    for batch in reader.batches(0) {
        let Ok(ops) = batch else {
            possible = false;
            break;
        };
        for op in ops {
            if let Some(name) = &op.name {
                assert!(!name.is_empty() && !name.contains(&b'/') && !matches!(&**name, b"." | b".."), "{name:?}");
            }
            possible = possible && tree.apply(&op).is_ok();
        }
    }
    assert!(possible || !sound, "a check passed what is impossible");
    for first in [1, 30, u64::MAX] {
        reader.batches(first).take_while(Result::is_ok).for_each(drop);
    }
});
