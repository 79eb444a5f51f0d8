//! Stores of bytes against a plain vector, and the log of writes.

#![allow(clippy::unwrap_used)]

use device::store::{BlockStore, FileStore, SparseStore, StoreError, WriteLog};
use device::{Completion, Lbn};
use proptest::prelude::*;

const SECTORS: u64 = 300;

fn agrees(store: &mut dyn BlockStore, operations: &[(u8, u64, u64, u8)]) {
    let mut model = vec![0u8; SECTORS as usize * 512];
    for &(kind, lbn, sectors, byte) in operations {
        let sectors = sectors.min(SECTORS - lbn);
        let range = lbn as usize * 512..(lbn + sectors) as usize * 512;
        let mut buffer = vec![byte; range.len()];
        match kind {
            0 => {
                store.discard(Lbn(lbn), sectors).unwrap();
                model[range].fill(0);
            }
            1 | 2 => {
                store.read(Lbn(lbn), &mut buffer).unwrap();
                assert_eq!(buffer, model[range]);
            }
            _ => {
                store.write(Lbn(lbn), &buffer).unwrap();
                model[range].fill(byte);
            }
        }
    }
    let mut all = vec![1u8; model.len()];
    store.read(Lbn(0), &mut all).unwrap();
    assert_eq!(all, model);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]
    #[test]
    fn stores_hold_what_was_written(
        operations in proptest::collection::vec((0u8..6, 0u64..SECTORS, 0u64..150, any::<u8>()), 1..60),
    ) {
        agrees(&mut SparseStore::new(512, SECTORS), &operations);
        let directory = tempfile::tempdir().unwrap();
        agrees(&mut FileStore::create(&directory.path().join("image"), 512, SECTORS).unwrap(), &operations);
    }
}

#[test]
fn a_sparse_store_takes_room_for_what_was_written_only() {
    let mut store = SparseStore::new(512, 1 << 40);
    store.write(Lbn((1 << 40) - 1), &[7; 512]).unwrap();
    assert!(store.allocated_bytes() <= 64 * 512);
    store.discard(Lbn(0), 1 << 40).unwrap();
    assert_eq!(store.allocated_bytes(), 0);
}

#[test]
fn what_is_not_there_is_refused() {
    let mut store = SparseStore::new(512, 10);
    assert!(matches!(store.write(Lbn(10), &[0; 512]), Err(StoreError::OutOfRange { .. })));
    assert!(matches!(store.write(Lbn(u64::MAX), &[0; 512]), Err(StoreError::OutOfRange { .. })));
    assert!(matches!(store.read(Lbn(0), &mut [0; 100]), Err(StoreError::NotSectors { .. })));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    FileStore::create(&path, 512, 4).unwrap().write(Lbn(3), &[9; 512]).unwrap();
    assert!(matches!(FileStore::create(&path, 512, 4), Err(StoreError::Io { .. })), "an image is not overwritten");
    assert!(matches!(FileStore::open(&path, 4096, true), Err(StoreError::BadSize { .. })));
    let image = FileStore::open(&path, 512, false).unwrap();
    let mut sector = [0; 512];
    image.read(Lbn(3), &mut sector).unwrap();
    assert_eq!(sector, [9; 512]);
}

#[test]
fn a_crash_keeps_what_was_flushed_and_may_keep_what_was_not() {
    let mut log = WriteLog::new();
    let done = |at_ns, durable| Completion { tag: 0, at_ns, durable };
    let a = log.issued(0, Lbn(1), 8, None);
    let b = log.issued(10, Lbn(2), 8, None);
    log.completed(a, &done(5, true));
    log.completed(b, &done(20, false));
    let c = log.issued(30, Lbn(3), 8, None);
    log.flushed(25, 50);
    log.completed(c, &done(40, false));
    let kept = |at| log.kept(at).map(|record| record.lbn.0).collect::<Vec<_>>();
    let doubt = |at| log.in_doubt(at).map(|record| record.lbn.0).collect::<Vec<_>>();
    assert_eq!((kept(4), doubt(4)), (vec![], vec![1]));
    assert_eq!((kept(45), doubt(45)), (vec![1], vec![2, 3]));
    assert_eq!((kept(60), doubt(60)), (vec![1, 2], vec![3]), "the third write came after the flush");
}
