//! The aging workload's file: same in, same bytes; what was written is read back; damage is found and named.

use aging::format::{Counts, DayUse, FORMAT_VERSION, META_KEY, PlanMeta, Reader, Writer};
use aging::{AgingOp, DAY_NS, NodeId, OpKind};
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use columnar::{FileError, ParquetOut, properties};
use std::path::Path;
use std::sync::Arc;

fn ops(files: u64) -> Vec<AgingOp> {
    let mut ops = vec![AgingOp { name: Some((*b"home \xff").into()), ..AgingOp::new(0, OpKind::Mkdir, NodeId(1)) }];
    for i in 0..files {
        let t_ns = i * DAY_NS / 1000;
        let node = NodeId(i + 2);
        ops.push(AgingOp { dir: NodeId(1), size_bytes: i * 7, ..AgingOp::new(t_ns, OpKind::Create, node) });
        if i >= 100 {
            ops.push(AgingOp::new(t_ns, OpKind::Delete, NodeId(i - 98)));
        }
    }
    ops
}

fn write(path: &Path, ops: &[AgingOp]) -> PlanMeta {
    let mut writer = Writer::create(path, 1 << 30, 4096).expect("a new file");
    for op in ops {
        writer.push(op.clone()).expect("a possible operation");
    }
    let days = u32::try_from(ops.last().map_or(0, |op| op.t_ns) / DAY_NS).expect("few days") + 3;
    writer.finish(PlanMeta { seed: 7, days, ..PlanMeta::default() }).expect("a whole file")
}

#[test]
fn what_is_written_is_read_back_and_the_bytes_are_the_same_every_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let (a, b) = (dir.path().join("a.aging"), dir.path().join("b.aging"));
    let ops = ops(100_000);
    let meta = write(&a, &ops);
    write(&b, &ops);
    assert!(std::fs::read(&a).expect("a") == std::fs::read(&b).expect("b"), "two runs wrote different bytes");
    let reader = Reader::open(&a).expect("our own file");
    assert_eq!(reader.meta(), &meta);
    let back: Vec<AgingOp> = reader.batches(0).flat_map(|b| b.expect("a sound row group")).collect();
    assert!(back == ops);
    for first in [1, 65_535, 65_536, 150_000, ops.len() as u64, u64::MAX] {
        let rest: Vec<AgingOp> = reader.batches(first).flat_map(|b| b.expect("a sound row group")).collect();
        assert!(rest == ops[usize::try_from(first).unwrap_or(usize::MAX).min(ops.len())..], "from {first}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).expect("the directory").count(), 2, "temporary files are left");
}

#[test]
fn the_books_are_right() {
    let dir = tempfile::tempdir().expect("a directory");
    let meta = write(&dir.path().join("a.aging"), &ops(5_000));
    assert_eq!(meta.counts.operations, 1 + 5_000 + 4_900);
    assert_eq!(meta.counts.of(OpKind::Delete), 4_900);
    assert_eq!(meta.counts.files_at_end, 100);
    assert_eq!(meta.counts.bytes_at_end, (4_900..5_000).map(|i| i * 7).sum::<u64>());
    assert_eq!(meta.utilisation.len(), 7);
    let last = meta.utilisation.last().expect("a day");
    assert_eq!(last.used_bytes, (4_900..5_000u64).map(|i| (i * 7).next_multiple_of(4096)).sum::<u64>());
    assert!((last.used_share - last.used_bytes as f64 / (1u64 << 30) as f64).abs() < 1e-12);
    assert_eq!(meta.utilisation[0].operations, 1 + 1_000 + 900);
}

#[test]
fn a_contradiction_is_refused_and_nothing_is_left() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(&dir.path().join("a.aging"), 1 << 30, 4096).expect("a new file");
    let error = writer.push(AgingOp::new(0, OpKind::Delete, NodeId(5))).expect_err("there is no node 5");
    assert!(error.to_string().contains("operation 0 (delete of node 5)"), "{error}");
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path()).expect("the directory").count(), 0);
}

#[test]
fn every_damaged_byte_of_the_rows_is_found_and_no_damage_panics() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.aging");
    write(&path, &ops(300));
    let sound = std::fs::read(&path).expect("the file");
    let footer = u32::from_le_bytes(sound[sound.len() - 8..sound.len() - 4].try_into().expect("4 bytes"));
    let rows_end = sound.len() - 8 - footer as usize;
    for at in (0..sound.len()).step_by(7) {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x40;
        std::fs::write(&path, &bytes).expect("writing");
        let result = Reader::open(&path).and_then(|r| r.batches(0).collect::<Result<Vec<_>, FileError>>());
        assert!(at >= rows_end || result.is_err(), "damage at byte {at} went unnoticed");
    }
    let description = sound.windows(11).position(|bytes| bytes == b"{\"version\":").expect("the description");
    let description_end = description + sound[description..].iter().position(|b| *b == 0).expect("what follows it");
    for at in description..description_end - 8 {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).expect("writing");
        assert!(Reader::open(&path).is_err(), "damage at byte {at} of the description went unnoticed");
    }
    for keep in (0..sound.len()).step_by(97) {
        std::fs::write(&path, &sound[..keep]).expect("writing");
        let error = Reader::open(&path).err().expect("a truncated file");
        assert!(error.to_string().contains("a.aging"), "{error}");
    }
}

/// A file that says what the writer would not: sound checksums, and any rows and description.
fn forge(path: &Path, ops: &[AgingOp], meta: &PlanMeta) {
    let number = |name: &str| Field::new(name, DataType::UInt64, false);
    let text = |name: &str, nulls| Field::new(name, DataType::Utf8, nulls);
    let schema = Arc::new(Schema::new(vec![
        number("t_ns"),
        text("op", false),
        number("file_id"),
        number("dir_id"),
        text("name", true),
        number("offset_bytes"),
        number("size_bytes"),
    ]));
    let numbers = |f: fn(&AgingOp) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(ops.iter().map(f))) };
    let name = |op: &AgingOp| op.name.as_deref().map(|name| String::from_utf8_lossy(name).into_owned());
    let columns: Vec<ArrayRef> = vec![
        numbers(|op| op.t_ns),
        Arc::new(StringArray::from_iter_values(ops.iter().map(|op| op.kind.name()))),
        numbers(|op| op.node.0),
        numbers(|op| op.dir.0),
        Arc::new(ops.iter().map(name).collect::<StringArray>()),
        numbers(|op| op.offset_bytes),
        numbers(|op| op.size_bytes),
    ];
    let _ = std::fs::remove_file(path);
    let mut out = ParquetOut::create(path.to_owned(), Arc::clone(&schema), properties().build()).expect("a new file");
    out.write(&RecordBatch::try_new(schema, columns).expect("equal columns")).expect("written");
    out.end_row_group().expect("written");
    out.key_value(META_KEY, serde_json::to_string(meta).expect("JSON"));
    out.finish().expect("written");
}

/// The description of some operations on the first of so many days.
fn meta_of(ops: &[AgingOp], days: u32) -> PlanMeta {
    let mut counts = Counts { operations: ops.len() as u64, ..Counts::default() };
    for op in ops {
        *counts.by_kind.entry(op.kind.name().to_owned()).or_default() += 1;
    }
    counts.files_at_end = counts.of(OpKind::Create);
    let (operations, files) = (counts.operations, counts.files_at_end);
    let day_use = |day| DayUse { day, operations, files, ..DayUse::default() };
    let utilisation = (1..=days.min(100)).map(day_use).collect();
    PlanMeta { version: FORMAT_VERSION, capacity_bytes: 1 << 30, days, counts, utilisation, ..PlanMeta::default() }
}

fn said(path: &Path) -> String {
    let read = Reader::open(path).and_then(|reader| reader.verify());
    read.expect_err("refused").to_string()
}

fn create(t_ns: u64, node: u64, dir: u64, name: Option<&str>) -> AgingOp {
    let name = name.map(|name| name.as_bytes().into());
    AgingOp { dir: NodeId(dir), name, ..AgingOp::new(t_ns, OpKind::Create, NodeId(node)) }
}

/// A replay had a row for each day: 10 GB for 10^8 of them.
#[test]
fn a_hundred_million_days_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("days.aging");
    let ops = [create(0, 1, 0, None)];
    forge(&path, &ops, &meta_of(&ops, 3));
    Reader::open(&path).and_then(|reader| reader.verify()).expect("what is sound is read");
    forge(&path, &ops, &meta_of(&ops, 100_000_000));
    let said = self::said(&path);
    assert!(said.contains("days.aging: footer: 100000000 simulated days; there are at most 200000"), "{said}");
    let mut meta = meta_of(&ops, 3);
    meta.utilisation.pop();
    forge(&path, &ops, &meta);
    assert!(self::said(&path).contains("the use at the end of 2 days, of 3"), "{}", self::said(&path));
}

/// Times that went back and days that are none made a replay's clock run backwards; whoever reads finds them, not only
/// a check.
#[test]
fn times_go_forward_and_within_the_days() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("times.aging");
    for (last_ns, says) in [(4, "time goes back from 5 ns to 4 ns"), (3 * DAY_NS, "is after the last of 3 days")] {
        let ops = [create(5, 1, 0, None), create(last_ns, 2, 0, None)];
        forge(&path, &ops, &meta_of(&ops, 3));
        let reader = Reader::open(&path).expect("the description is sound");
        let error = reader.batches(0).find_map(Result::err).expect("refused");
        let said = error.to_string();
        assert!(said.contains("times.aging: row 1, column t_ns") && said.contains(says), "{said}");
    }
}

/// Their sum was too much for 64 bits.
#[test]
fn more_bytes_than_there_are_can_be_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("bytes.aging");
    let ops: Vec<AgingOp> = (1..4).map(|n| AgingOp { size_bytes: u64::MAX, ..create(0, n, 0, None) }).collect();
    forge(&path, &ops, &meta_of(&ops, 1));
    let said = self::said(&path);
    assert!(said.contains(&format!("3 files of {} bytes are left", u64::MAX)), "{said}");
}

#[test]
fn a_check_finds_what_contradicts_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("names.aging");
    let rename = AgingOp { kind: OpKind::Rename, ..create(0, 2, 0, Some("a")) };
    for (ops, says) in [
        (vec![create(0, 1, 0, Some("a")), create(0, 2, 0, Some("a"))], "row 1: the name of node 2 is taken"),
        (vec![create(0, 1, 0, Some("a")), create(0, 2, 0, None), rename], "row 2: the name of node 2 is taken"),
        (vec![create(0, 1, 7, None)], "row 0: node 7 does not exist"),
    ] {
        forge(&path, &ops, &meta_of(&ops, 1));
        let said = self::said(&path);
        assert!(said.contains("names.aging") && said.contains(says), "{said}");
    }
    let ops = [create(0, 1, 0, None), create(0, 2, 0, None)];
    let mut meta = meta_of(&ops, 1);
    meta.counts.files_at_end = 1;
    forge(&path, &ops, &meta);
    assert!(said(&path).contains("2 files of 0 bytes are left"), "{}", said(&path));
    let sound = meta_of(&ops, 2);
    type Change = fn(&mut PlanMeta);
    let changes: [(Change, &str); 6] = [
        (|meta| meta.counts.written_bytes = 1, "0 bytes written where the description states 1"),
        (|meta| meta.counts.used_bytes_max = 1, "0 bytes used at most where the description states 1"),
        (|meta| meta.utilisation[0].files = 1, "at the end of day 1 there are 2 files in 0 bytes after 2 operations"),
        (|meta| meta.utilisation[1].operations = 1, "at the end of day 2"),
        (|meta| meta.utilisation[1].used_share = 0.5, "a share of 0.5, for day 2"),
        (|meta| meta.utilisation[1].day = 3, "for day 3"),
    ];
    for (change, says) in changes {
        let mut meta = sound.clone();
        change(&mut meta);
        forge(&path, &ops, &meta);
        assert!(said(&path).contains(says), "{}", said(&path));
    }
    meta.counts.by_kind.insert("create".to_owned(), 1);
    forge(&path, &ops, &meta);
    assert!(said(&path).contains("2 operations create where the description states 1"), "{}", said(&path));
}
