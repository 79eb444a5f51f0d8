//! Crashes at every point of random workloads with the cleaner running: after recovery everything is consistent, what was promised
//! is there, and the tree is as it was after some call.
//!
//! The model of a disk: it completes writes one by one. A power failure leaves those completed (`order=together`), or, where the
//! file system asks for flushes (`order=barrier`), those before the last flush and any part of what came after, torn
//! between sectors.
//!
//! `FSAGE_LFS_CRASH_POINTS=100000 cargo test --release -p fsage-lfs --test crash -- --nocapture` runs as many points of each model. A
//! failure prints its seed and point.

#![allow(clippy::unwrap_used)]

#[path = "crash/verify.rs"]
mod verify;
#[path = "crash/workload.rs"]
mod workload;

use kernel::LogEntry;
use lfs::MemoryStore;
use lfs::mkfs::MkfsOptions;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use workload::{Case, Run};

const SECTOR: usize = 512;

fn points(usual: u64) -> u64 {
    std::env::var("FSAGE_LFS_CRASH_POINTS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Small disks of several sizes of block, fragment, segment.
fn case(number: u64, words: [&'static str; 3]) -> Case {
    let (bsize, fsize, ssize, segments) = [
        (4096, 512, 64 << 10, 36),
        (8192, 1024, 128 << 10, 30),
        (4096, 1024, 128 << 10, 26),
        (4096, 4096, 128 << 10, 40),
    ][number as usize % 4];
    let size_bytes = segments * u64::from(ssize);
    let mkfs = MkfsOptions { bsize, fsize, ssize: Some(ssize), ..MkfsOptions::new(size_bytes) };
    Case { mkfs, words: words[number as usize % 3], seed: 77 + number, calls: 1200 }
}

fn apply(disk: &mut MemoryStore, entry: &LogEntry) {
    if let LogEntry::Write(write) = entry {
        let at = write.pbn.bytes() as usize;
        let bytes = write.contents.as_deref().unwrap();
        disk.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
    apply_discard(disk, entry);
}

/// What is discarded may read as anything.
fn apply_discard(disk: &mut MemoryStore, entry: &LogEntry) {
    if let LogEntry::Discard { pbn, bytes, .. } = entry {
        let at = pbn.bytes() as usize;
        disk.0[at..at + *bytes as usize].fill(0xD1);
    }
}

/// Some sectors of a write.
fn apply_torn(disk: &mut MemoryStore, entry: &LogEntry, sectors: &mut dyn FnMut(usize, usize) -> bool) {
    apply_discard(disk, entry);
    if let LogEntry::Write(write) = entry {
        let at = write.pbn.bytes() as usize;
        let bytes = write.contents.as_deref().unwrap();
        let count = bytes.len() / SECTOR;
        for (number, sector) in bytes.chunks(SECTOR).enumerate() {
            if sectors(number, count) {
                disk.0[at + number * SECTOR..at + number * SECTOR + sector.len()].copy_from_slice(sector);
            }
        }
    }
}

fn failed(run: &Run, point: usize, how: &str, problem: &str) -> ! {
    panic!("{how}, {:?}, point {point} of {}: {problem}", run.case, run.log.len());
}

/// Every prefix of the log.
#[test]
fn after_any_write() {
    let wanted = points(200);
    let (mut done, mut number, mut cleaned) = (0, 0, 0);
    while done < wanted {
        let run =
            workload::run(case(number, ["cleaner=greedy", "cleaner=cost-benefit,low=20,high=30,discard=on", "cleaner=netbsd"]));
        cleaned += run.segments_cleaned;
        let mut disk = run.before.clone();
        // All points, or some from all over the log.
        let stride = if wanted < 1000 { run.log.len() / 90 + 1 } else { 1 };
        for (point, entry) in run.log.iter().enumerate() {
            apply(&mut disk, entry);
            if point % stride == 0 && matches!(entry, LogEntry::Write(_)) {
                if let Err(problem) = verify::verify(&run, &disk, point + 1, point + 1) {
                    failed(&run, point, "after a write", &problem);
                }
                if point % (40 * stride) == 0
                    && let Err(problem) = verify::mount_again(&run, &disk)
                {
                    failed(&run, point, "mounted after a write", &problem);
                }
                done += 1;
            }
        }
        number += 1;
    }
    println!("{done} crash points in {number} runs, {cleaned} segments cleaned");
    assert!(cleaned > 0);
}

/// What a disk with a cache of its own may leave: everything before a flush, and any sectors of what came after.
#[test]
fn between_flushes() {
    let wanted = points(200);
    let (mut done, mut number, mut cleaned) = (0, 0, 0);
    let words = ["cleaner=greedy,order=barrier", "cleaner=cost-benefit,order=barrier,low=20,high=30,discard=on", "order=barrier"];
    while done < wanted {
        let run = workload::run(case(number, words));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(run.case.seed);
        cleaned += run.segments_cleaned;
        let mut disk = run.before.clone();
        let mut since_flush: Vec<&LogEntry> = Vec::new();
        let mut flushed = 0;
        let stride = if wanted < 1000 { run.log.len() / 90 + 1 } else { 1 };
        for (point, entry) in run.log.iter().enumerate() {
            if matches!(entry, LogEntry::Flush { .. }) {
                since_flush.drain(..).for_each(|entry| apply(&mut disk, entry));
                flushed = point + 1;
                continue;
            }
            since_flush.push(entry);
            if point % stride != 0 {
                continue;
            }
            let mut crashed = disk.clone();
            for entry in &since_flush {
                match random.next_u64() % 4 {
                    0 => {}
                    1 => apply(&mut crashed, entry),
                    2 => {
                        let cut = random.next_u64();
                        apply_torn(&mut crashed, entry, &mut |n, count| (n as u64) < cut % (count as u64 + 1));
                    }
                    _ => apply_torn(&mut crashed, entry, &mut |_, _| random.next_u64().is_multiple_of(2)),
                }
            }
            if let Err(problem) = verify::verify(&run, &crashed, flushed, point + 1) {
                failed(&run, point, "between flushes", &problem);
            }
            done += 1;
        }
        number += 1;
    }
    println!("{done} crash points in {number} runs, {cleaned} segments cleaned");
    assert!(cleaned > 0);
}
