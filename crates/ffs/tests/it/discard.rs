//! Discards of the Fast File System: a disk that loses what is discarded at once still has every file, and free space
//! is free on it.

use device::fixed::FixedDevice;
use ffs::mkfs::{MkfsOptions, mkfs};
use ffs::policy::Options;
use ffs::{Ffs, Image, MemoryStore, Search, Version, fsck};
use kernel::{Lab, LogEntry, Machine, Setup, payload};
use posix::{Call, Fd, FileSystem, Mode, OpenFlags};

const SIZE: u64 = 16 << 20;

fn lab(words: &str) -> (Lab<Ffs>, MemoryStore) {
    let mut options = Options::default();
    assert!(words.split(',').all(|word| options.set(word)));
    let mut empty = MemoryStore(vec![0; SIZE as usize]);
    mkfs(&mut empty, &MkfsOptions::new(Version::Ufs1, SIZE)).unwrap();
    let before = empty.clone();
    let image = Image::open(empty, Search::Standard).unwrap();
    let volume = Ffs::load(&image, options).unwrap();
    let mut machine = Machine::load("pentium-120").unwrap();
    machine.memory.buffer_cache_bytes.value = 1 << 20;
    let (target, drive) = ("ffs".into(), "fixed".into());
    let setup = Setup { machine, target, drive, epoch_ns: 820_000_000_000_000_000 };
    let device = Box::new(FixedDevice::new(SIZE, 1_000_000));
    let mut lab = Lab::with_image(volume, device, setup, payload::Image::full(image.into_store())).unwrap();
    lab.record_writes(true);
    (lab, before)
}

fn write(lab: &mut Lab<Ffs>, fd: Fd, data: &[u8]) {
    let call = Call::Write { fd, offset: Some(0), len_bytes: data.len() as u64, data: Some(data) };
    assert!(lab.call(&call).result.is_ok());
}

/// Files that come, are cut, written anew, and mostly go; which are left, with what is in them.
fn churn(lab: &mut Lab<Ffs>) -> Vec<(String, Vec<u8>)> {
    let mut left = Vec::new();
    for n in 0..120_usize {
        let path = format!("file {n}");
        let open = Call::Open { at: path.as_str().into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
        let fd = lab.call(&open).fd().unwrap();
        let data: Vec<u8> = (0..n * 2500 % 170_000 + 100).map(|i| (i * 7 + n) as u8).collect();
        write(lab, fd, &data);
        if n % 4 == 1 {
            assert!(lab.call(&Call::Ftruncate { fd, len_bytes: 10_000 }).result.is_ok());
            write(lab, fd, &data);
        }
        assert!(lab.call(&Call::Close { fd }).result.is_ok());
        if n % 6 == 0 {
            left.push((path, data));
        } else {
            assert!(lab.call(&Call::Unlink { at: path.as_str().into() }).result.is_ok());
        }
    }
    assert!(lab.call(&Call::SyncFs).result.is_ok());
    left
}

/// The disk after a log, on which what is discarded is lost at once.
fn replay(disk: &mut MemoryStore, log: &[LogEntry]) -> u64 {
    let mut discarded_bytes = 0;
    for entry in log {
        match entry {
            LogEntry::Write(write) => {
                let at = write.pbn.bytes() as usize;
                let bytes = write.contents.as_deref().unwrap();
                disk.0[at..at + bytes.len()].copy_from_slice(bytes);
            }
            LogEntry::Discard { pbn, bytes, .. } => {
                let at = pbn.bytes() as usize;
                disk.0[at..at + *bytes as usize].fill(0xD1);
                discarded_bytes += bytes;
            }
            LogEntry::Flush { .. } => {}
        }
    }
    discarded_bytes
}

#[test]
fn what_is_discarded_is_free_and_all_else_is_there() {
    for words in ["discard,conventional", "discard,noorder", "discard,original,smartfrags"] {
        let (mut lab, mut disk) = lab(words);
        let left = churn(&mut lab);
        let discarded = replay(&mut disk, &lab.take_log());
        assert!(discarded > 4 << 20, "{words}: {discarded}");
        let counters = lab.counters().device;
        assert_eq!((counters.discarded_bytes, counters.discards > 0), (discarded, true), "{words}");
        for (path, data) in left {
            let open = Call::Open { at: path.as_str().into(), flags: OpenFlags::READ, mode: Mode(0) };
            let fd = lab.call(&open).fd().unwrap();
            for extent in lab.extents(fd).unwrap() {
                let from = extent.physical_bytes as usize;
                let len = (extent.len_bytes as usize).min(data.len() - extent.logical_bytes as usize);
                let at = extent.logical_bytes as usize;
                assert!(disk.0[from..from + len] == data[at..at + len], "{words}: {path} at {at}");
            }
        }
        let report = fsck(&mut disk, &mut |_| true).unwrap();
        assert!(report.is_clean(), "{words}: {report:?}");
    }
}

#[test]
fn nothing_is_discarded_unless_asked_for() {
    let (mut lab, _) = lab("conventional");
    churn(&mut lab);
    assert!(!lab.take_log().iter().any(|entry| matches!(entry, LogEntry::Discard { .. })));
}
