//! The aging workload's file: same in, same bytes; what was written is read back; damage is found and named.

use aging::format::{PlanMeta, Reader, Writer};
use aging::{AgingError, AgingOp, DAY_NS, NodeId, OpKind};
use std::path::Path;

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
        let result = Reader::open(&path).and_then(|r| r.batches(0).collect::<Result<Vec<_>, AgingError>>());
        assert!(at >= rows_end || result.is_err(), "damage at byte {at} went unnoticed");
    }
    for keep in (0..sound.len()).step_by(97) {
        std::fs::write(&path, &sound[..keep]).expect("writing");
        let error = Reader::open(&path).err().expect("a truncated file");
        assert!(error.to_string().contains("a.aging"), "{error}");
    }
}
