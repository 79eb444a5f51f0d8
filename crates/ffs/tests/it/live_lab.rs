//! A live file system in the laboratory: calls of processes, caches, the syncer, a device; the bytes on it afterwards.

use crate::live::Disk;
use device::fixed::FixedDevice;
use ffs::mkfs::{MkfsOptions, mkfs};
use ffs::policy::Options;
use ffs::{Ffs, Image, MemoryStore, Search, Version};
use kernel::{Lab, Machine, Setup};
use posix::{At, Call, FileSystem, Mode, OpenFlags};
use std::sync::{Arc, Mutex};

const SIZE: u64 = 16 << 20;

/// An empty file system in use, and the disk that it is on.
fn mounted(words: &str) -> (Lab<Ffs>, Disk) {
    let mut options = Options::default();
    assert!(words.split(',').all(|word| options.set(word)));
    let mut empty = MemoryStore(vec![0; SIZE as usize]);
    mkfs(&mut empty, &MkfsOptions::new(Version::Ufs1, SIZE)).unwrap();
    let image = Image::open(empty, Search::Standard).unwrap();
    let volume = Ffs::load(&image, options).unwrap();
    let disk: Disk = Arc::new(Mutex::new(image.into_store()));
    let setup = Setup {
        machine: Machine::load("pentium-120").unwrap(),
        target: "ffs".into(),
        drive: "fixed".into(),
        epoch_ns: 820_000_000_000_000_000,
    };
    let device = Box::new(FixedDevice::new(SIZE, 10_000_000));
    (Lab::with_image(volume, device, setup, kernel::payload::Image::full(disk.clone())).unwrap(), disk)
}

fn run(words: &str) -> (Vec<u8>, u64) {
    let (mut lab, disk) = mounted(words);
    let mut call = |call: Call<'_>| {
        let outcome = lab.call(&call);
        assert!(outcome.result.is_ok(), "{call:?}: {outcome:?}");
        outcome
    };
    call(Call::Mkdir { at: "dir".into(), mode: Mode(0o755) });
    for n in 0..60_usize {
        let path = format!("dir/file {n}");
        let at: At<'_> = path.as_str().into();
        let fd = call(Call::Open { at, flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) }).fd().unwrap();
        let data: Vec<u8> = (0..n * 3000 + 1).map(|i| (i * 7 + n) as u8).collect();
        call(Call::Write { fd, offset: None, len_bytes: data.len() as u64, data: Some(&data) });
        if n % 7 == 0 {
            call(Call::Fsync { fd });
        }
        call(Call::Close { fd });
        if n % 3 == 0 {
            call(Call::Unlink { at });
        } else if n % 5 == 0 {
            let to = format!("moved {n}");
            call(Call::Rename { from: at, to: to.as_str().into(), noreplace: false, exchange: false });
        }
    }
    let now_ns = lab.now_ns();
    let volume = lab.unmount().unwrap();
    assert!(volume.check().is_empty());
    let bytes = std::mem::take(&mut disk.lock().unwrap().0);
    (bytes, now_ns)
}

#[test]
fn what_processes_wrote_is_on_the_disk() {
    let (bytes, conventional_ns) = run("conventional");
    let mut store = MemoryStore(bytes);
    assert!(ffs::fsck(&mut store, &mut |_| true).unwrap().is_clean());
    let image = Image::open(store, Search::Standard).unwrap();
    for n in 0..60_usize {
        let path = if n % 5 == 0 { format!("moved {n}") } else { format!("dir/file {n}") };
        let found = image.resolve(path.as_bytes());
        if n % 3 == 0 {
            assert!(found.is_err(), "{path}");
            continue;
        }
        let (ino, inode) = found.unwrap();
        let mut content = Vec::new();
        image
            .data(ino, &inode, &mut |_, bytes| {
                content.extend_from_slice(bytes);
                Ok(())
            })
            .unwrap();
        assert!(content.iter().enumerate().all(|(i, byte)| *byte == (i * 7 + n) as u8), "{path}");
        assert_eq!(content.len(), n * 3000 + 1);
    }
    let (again, again_ns) = run("conventional");
    assert!(again == image.into_store().0 && again_ns == conventional_ns, "the same, byte for byte, every run");
    let (_, noorder_ns) = run("noorder");
    let (bytes, softdep_ns) = run("softdep");
    assert!(ffs::fsck(MemoryStore(bytes), &mut |_| true).unwrap().is_clean());
    assert!(softdep_ns < conventional_ns, "{softdep_ns} against {conventional_ns}");
    assert!(noorder_ns < conventional_ns, "{noorder_ns} against {conventional_ns}");
}

/// Links that were to be dropped with a directory's `..` were kept on the disk for ever when that went back to where
/// the disk has it (an ager under Soft Updates).
#[test]
fn links_that_wait_for_a_parent_go_when_it_goes_back() {
    let (mut lab, disk) = mounted("softdep");
    for path in ["p", "q", "r", "p/x"] {
        assert!(lab.call(&Call::Mkdir { at: path.into(), mode: Mode(0o755) }).result.is_ok());
    }
    lab.drop_caches().unwrap();
    for [from, to] in [["p/x", "q/x"], ["q/x", "r/x"], ["r/x", "p/y"]] {
        let call = Call::Rename { from: from.into(), to: to.into(), noreplace: false, exchange: false };
        assert!(lab.call(&call).result.is_ok(), "{call:?}");
    }
    assert!(lab.unmount().unwrap().check().is_empty());
    let disk = disk.lock().unwrap();
    let report = ffs::fsck(MemoryStore(disk.0.clone()), &mut |_| true).unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
}
