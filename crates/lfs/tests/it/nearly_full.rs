//! A nearly full disk: files are written over again and again, the cleaner always at work, and nothing is refused.
//!
//! `FSAGE_LFS_NEARLY_FULL=1 cargo test --release -p fsage-lfs --test it nearly_full::` runs every policy.

use kernel::{Durability, Ino, NewNode, ReadAhead, Transfers, Untimed, Volume, WriteRange};
use lfs::mkfs::MkfsOptions;
use lfs::{Lfs, Options};
use posix::{Errno, FileKind};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

#[derive(Clone, Copy, Debug)]
struct Case {
    size_mb: u64,
    bsize: u32,
    fsize: u32,
    ssize_kb: u32,
    minfreeseg: Option<u32>,
    words: &'static str,
    /// Share of what is said to be free, percent.
    fill: u64,
}

struct Disk {
    live: Untimed<Lfs>,
    dirs: Vec<Ino>,
    files: Vec<Ino>,
    /// Whether the last file could not be written.
    full: bool,
}

impl Disk {
    fn new(case: Case) -> Disk {
        let mkfs = MkfsOptions {
            bsize: case.bsize,
            fsize: case.fsize,
            ssize: Some(case.ssize_kb << 10),
            minfreeseg: case.minfreeseg,
            resvseg: case.minfreeseg.map(|kept| (kept * 2 / 5).max(2)),
            ..MkfsOptions::new(case.size_mb << 20)
        };
        let mut options = Options::default();
        assert!(case.words.split(',').all(|word| options.set(word)), "{case:?}");
        let volume = Lfs::format(&mkfs, options).unwrap();
        let transfers = Transfers { largest_bytes: 65536, read_ahead: ReadAhead::Cluster, cluster_writes: true };
        let mut live = Untimed::new(volume, 2 << 20, 1000, transfers, 820_000_000_000_000_000);
        live.run(|volume, cx| volume.mount(cx)).unwrap();
        Disk { live, dirs: Vec::new(), files: Vec::new(), full: false }
    }

    fn make(&mut self, parent: Ino, name: &str, kind: FileKind) -> Result<Ino, Errno> {
        let new = NewNode { kind, mode: 0o755, target: b"" };
        self.live.run(|volume, cx| volume.create(cx, parent, name.as_bytes(), &new))
    }

    fn write(&mut self, ino: Ino, len_bytes: u64) -> Result<u64, Errno> {
        self.live.touch(ino);
        let range = WriteRange { ino, offset: 0, len_bytes, data: None, sync: None };
        self.live.run(|volume, cx| volume.write(cx, &range))
    }

    fn fill(&mut self, share: u64) {
        let total = self.live.volume().usage().total_bytes;
        loop {
            if self.live.volume().usage().free_bytes * 100 < total * (100 - share) {
                return;
            }
            let number = self.files.len();
            if number.is_multiple_of(100) {
                let Ok(dir) = self.make(Ino(2), &format!("d{number}"), FileKind::Directory) else { return };
                self.dirs.push(dir);
            }
            let dir = *self.dirs.last().unwrap();
            let Ok(ino) = self.make(dir, &format!("f{number}"), FileKind::File) else { return };
            self.files.push(ino);
            if self.write(ino, 4096).is_err() {
                // It stays, empty, and is not written to again.
                self.full = true;
                return;
            }
        }
    }
}

/// Twice, everything removed in between.
fn written_over(case: Case) {
    let mut disk = Disk::new(case);
    write_over(&mut disk, case);
    let (dirs, files) = (std::mem::take(&mut disk.dirs), std::mem::take(&mut disk.files));
    for (number, ino) in files.into_iter().enumerate() {
        let dir = dirs[number / 100];
        let removed = disk.live.run(|volume, cx| {
            volume.unlink(cx, dir, format!("f{number}").as_bytes(), ino)?;
            volume.release(cx, ino);
            Ok::<(), Errno>(())
        });
        assert_eq!(removed, Ok(()), "{case:?}: file {number} could not be removed");
        disk.live.forget(ino);
    }
    for (number, dir) in dirs.into_iter().enumerate() {
        let name = format!("d{}", number * 100);
        let removed = disk.live.run(|volume, cx| {
            volume.rmdir(cx, Ino(2), name.as_bytes(), dir)?;
            volume.release(cx, dir);
            Ok::<(), Errno>(())
        });
        assert_eq!(removed, Ok(()), "{case:?}: directory {number} could not be removed");
        disk.live.forget(dir);
    }
    write_over(&mut disk, case);
    let unmounted = disk.live.run(|volume, cx| volume.unmount(cx));
    assert_eq!(unmounted, Ok(()), "{case:?}");
}

fn write_over(disk: &mut Disk, case: Case) {
    disk.fill(case.fill);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(case.fill);
    let written = disk.files.len() as u64 - u64::from(std::mem::take(&mut disk.full));
    let turns = written * 3;
    for turn in 0..turns {
        let n = random.next_u64() % written;
        let ino = disk.files[n as usize];
        let result = disk.write(ino, 4096);
        let volume = disk.live.volume();
        let (clean, all) = volume.clean_segments();
        assert_eq!(
            result,
            Ok(4096),
            "{case:?}: write {turn} of {turns}, {} files, {clean} of {all} segments clean, {:?}",
            disk.files.len(),
            volume.counters()
        );
        if turn % 1000 == 0 {
            disk.live.pause_ns(30_000_000_000);
            let synced = disk.live.run(|volume, cx| volume.sync(cx, Durability::All));
            assert_eq!(synced, Ok(()), "{case:?}: after write {turn}");
        }
    }
    let problems = disk.live.volume().check();
    assert!(problems.is_empty(), "{case:?}: {problems:?}");
}

const WORDS: [&str; 8] = [
    "cleaner=greedy,plug=0",
    "cleaner=cost-benefit,low=1,high=3,plug=90",
    "cleaner=netbsd,plug=80",
    "cleaner=greedy,low=1,high=3,plug=0",
    "cleaner=greedy,plug=80",
    "cleaner=cost-benefit,plug=0",
    "cleaner=greedy,cleaning=all",
    "cleaner=cost-benefit,low=10,high=10,plug=0",
];

/// All policies at all of these shares if `FSAGE_LFS_NEARLY_FULL` is set, else two policies at two.
fn every(shares: &[u64], run: impl Fn(&'static str, u64)) {
    let all = std::env::var_os("FSAGE_LFS_NEARLY_FULL").is_some();
    let words = if all { WORDS.as_slice() } else { WORDS.get(..2).unwrap() };
    let shares = if all { shares } else { shares.get(shares.len() - 2..).unwrap() };
    for words in words {
        shares.iter().for_each(|share| run(words, *share));
    }
}

#[test]
fn blocks_of_4_kb() {
    every(&[90, 95, 98, 100], |words, fill| {
        let minfreeseg = Some(7);
        written_over(Case { size_mb: 16, bsize: 4096, fsize: 4096, ssize_kb: 128, minfreeseg, words, fill });
    });
}

#[test]
fn fragments() {
    every(&[90, 95, 98, 100], |words, fill| {
        let minfreeseg = None;
        written_over(Case { size_mb: 16, bsize: 8192, fsize: 1024, ssize_kb: 128, minfreeseg, words, fill });
    });
}

#[test]
fn small_segments() {
    every(&[90, 98, 100], |words, fill| {
        let minfreeseg = Some(6);
        written_over(Case { size_mb: 16, bsize: 4096, fsize: 4096, ssize_kb: 64, minfreeseg, words, fill });
    });
}

#[test]
fn larger_segments() {
    every(&[90, 98], |words, fill| {
        let minfreeseg = Some(7);
        written_over(Case { size_mb: 32, bsize: 4096, fsize: 4096, ssize_kb: 256, minfreeseg, words, fill });
    });
}

#[test]
fn cleaned_as_a_whole() {
    let (words, minfreeseg) = ("cleaner=cost-benefit,cleaning=all,plug=0", Some(7));
    written_over(Case { size_mb: 8, bsize: 4096, fsize: 4096, ssize_kb: 128, minfreeseg, words, fill: 98 });
}

/// Checkpoints of an inode map of many blocks, all of which change: they were written several times each, more than was
/// counted on, until the log had no room for the rest.
#[test]
fn a_large_inode_map() {
    let words = "cleaner=greedy,low=1,high=3,idle=0,dirty=50";
    let minfreeseg = Some(10);
    written_over(Case { size_mb: 96, bsize: 4096, fsize: 4096, ssize_kb: 256, minfreeseg, words, fill: 88 });
}

/// A database: pages of one large file are written over at random and a little is appended to another, beside a file
/// that is never touched. Each segment that is moved changes nearly all indirect blocks of the first.
fn pages_of_a_large_file(words: &'static str, fill: u64) {
    const PAGES: u64 = 60_672;
    let case = Case { size_mb: 960, bsize: 4096, fsize: 4096, ssize_kb: 1024, minfreeseg: None, words, fill };
    let mut disk = Disk::new(case);
    let files = ["pages", "rest", "history"].map(|name| disk.make(Ino(2), name, FileKind::File).unwrap());
    let [pages, rest, history] = files;
    let write = |disk: &mut Disk, ino: Ino, offset: u64, len_bytes: u64| {
        disk.live.touch(ino);
        disk.live.run(|volume, cx| volume.write(cx, &WriteRange { ino, offset, len_bytes, data: None, sync: None }))
    };
    (0..PAGES / 16).for_each(|n| assert_eq!(write(&mut disk, pages, n << 16, 1 << 16), Ok(1 << 16)));
    let total = disk.live.volume().usage().total_bytes;
    let mut filled = 0;
    while disk.live.volume().usage().free_bytes * 100 > total * (100 - fill) {
        assert_eq!(write(&mut disk, rest, filled, 1 << 16), Ok(1 << 16), "{case:?}");
        filled += 1 << 16;
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(fill);
    for turn in 0..60_000 {
        let page = random.next_u64() % PAGES;
        let both = (write(&mut disk, pages, page * 4096, 4096), write(&mut disk, history, turn * 50, 50));
        let volume = disk.live.volume();
        let (clean, all) = volume.clean_segments();
        let state = || format!("{case:?}: page {turn}, {clean} of {all} segments clean, {:?}", volume.counters());
        assert_eq!(both, (Ok(4096), Ok(50)), "{}", state());
        if turn % 1000 == 0 {
            disk.live.pause_ns(30_000_000_000);
            assert_eq!(
                disk.live.run(|volume, cx| volume.sync(cx, Durability::All)),
                Ok(()),
                "{case:?}: after page {turn}"
            );
        }
    }
    let problems = disk.live.volume().check();
    assert!(problems.is_empty(), "{case:?}: {problems:?}");
}

#[test]
fn pages_of_a_large_file_are_written_over() {
    every(&[60, 75, 85], pages_of_a_large_file);
    pages_of_a_large_file("cleaner=cost-benefit,cleaning=all,memory=1M", 75);
}
