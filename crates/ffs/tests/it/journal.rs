//! File systems with a log: what a crash leaves is replayed, and whatever stands in the log is no reason to panic.

use crate::bsd_fsck;
use ffs::log::format::{Ring, SECTOR};
use ffs::log::{LOG_NAME, load, make, replay};
use ffs::mkfs::MkfsOptions;
use ffs::policy::Options;
use ffs::{Endian, Ffs, Image, MemoryStore, Search, Version, fsck, mkfs};
use kernel::{Durability, Ino, NewNode, ReadAhead, Transfers, Untimed, Volume as _, WriteRange, payload};
use posix::{Errno, FileKind};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::{Arc, Mutex};

const ROOT: Ino = ffs::format::ROOT_INO;
pub const LAYOUTS: [(Version, Endian); 4] = [
    (Version::Ufs1, Endian::Little),
    (Version::Ufs1, Endian::Big),
    (Version::Ufs2, Endian::Little),
    (Version::Ufs2, Endian::Big),
];

fn options(words: &str) -> Options {
    let mut options = Options { seed: 1, ..Options::default() };
    assert!(words.split(',').all(|word| options.set(word)), "{words}");
    options
}

/// A journaled file system on a disk that can be looked at while it is mounted.
pub struct Mounted {
    fs: Untimed<Ffs>,
    disk: Arc<Mutex<MemoryStore>>,
}

fn blank((version, endian): (Version, Endian)) -> MemoryStore {
    let options = MkfsOptions { endian, bsize: 4096, fsize: 512, ..MkfsOptions::new(version, 3 << 20) };
    let mut store = MemoryStore(vec![0; options.size_bytes as usize]);
    mkfs(&mut store, &options).unwrap();
    store
}

impl Mounted {
    fn new(store: MemoryStore, words: &str) -> Mounted {
        let (volume, image) = load(store, options(words), None).unwrap();
        let disk = Arc::new(Mutex::new(image.into_store()));
        let transfers = Transfers { largest_bytes: 1 << 16, read_ahead: ReadAhead::Cluster, cluster_writes: true };
        let bytes = payload::Image::full(disk.clone());
        let mut fs = Untimed::with_image(volume, 1 << 20, 100, transfers, 0, bytes);
        fs.run(|volume, cx| volume.mount(cx)).unwrap();
        Mounted { fs, disk }
    }

    fn make(&mut self, dir: Ino, name: &str, kind: FileKind) -> Ino {
        let new = NewNode { kind, mode: 0o755, target: b"" };
        let ino = self.fs.run(|volume, cx| volume.create(cx, dir, name.as_bytes(), &new)).unwrap();
        self.fs.touch(ino);
        ino
    }

    fn write(&mut self, ino: Ino, bytes: &[u8]) {
        let len_bytes = bytes.len() as u64;
        let range = WriteRange { ino, offset: 0, len_bytes, data: Some(bytes), sync: None };
        assert_eq!(self.fs.run(|volume, cx| volume.write(cx, &range)), Ok(len_bytes));
    }

    fn fsync(&mut self, ino: Ino) {
        self.fs.run(|volume, cx| volume.fsync(cx, ino, Durability::All)).unwrap();
    }

    fn remove(&mut self, name: &str, ino: Ino) {
        self.fs.run(|volume, cx| volume.unlink(cx, ROOT, name.as_bytes(), ino)).unwrap();
        self.fs.run(|volume, cx| volume.release(cx, ino));
        self.fs.forget(ino);
    }

    /// The disk as it is now: what a power failure leaves of a drive without a cache.
    pub fn crashed(&self) -> MemoryStore {
        self.disk.lock().unwrap().clone()
    }

    pub fn unmounted(mut self) -> MemoryStore {
        self.fs.run(|volume, cx| volume.unmount(cx)).unwrap();
        assert_eq!(self.fs.volume().check(), []);
        self.crashed()
    }
}

/// One that has done something, and has more to do.
pub fn used(layout: (Version, Endian)) -> Mounted {
    let mut mounted = Mounted::new(blank(layout), "journal=async");
    let dir = mounted.make(ROOT, "dir", FileKind::Directory);
    for n in 0..20 {
        let ino = mounted.make(dir, &format!("file{n}"), FileKind::File);
        mounted.write(ino, &vec![n; 700 * usize::from(n)]);
    }
    let gone = mounted.make(ROOT, "gone", FileKind::File);
    mounted.write(gone, &[9; 30_000]);
    mounted.fsync(gone);
    mounted.remove("gone", gone);
    let last = mounted.make(ROOT, "last", FileKind::File);
    mounted.write(last, b"the last");
    mounted.fsync(last);
    mounted.make(ROOT, "never", FileKind::File);
    mounted
}

fn clean(store: &MemoryStore) {
    let report = fsck(&mut store.clone(), &mut |_| true).unwrap();
    assert!(report.is_clean(), "{report:#?}");
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let big = image.geometry().endian() == Endian::Big;
    let complaints = bsd_fsck::complaints(&store.0, big, image.superblock_at() as usize);
    assert_eq!(complaints, Vec::<String>::new(), "BSD's check");
}

fn names(store: &MemoryStore) -> Vec<String> {
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let root = image.inode(ROOT).unwrap();
    let entries = image.directory(ROOT, &root).unwrap();
    let names = entries.iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned());
    names.filter(|name| !name.starts_with('.')).collect()
}

#[test]
fn what_was_committed_is_there_after_a_crash() {
    for layout in LAYOUTS {
        let mut store = used(layout).crashed();
        let not_clean = fsck(&mut store.clone(), &mut |_| true).unwrap();
        assert_eq!(
            not_clean.problems.iter().map(|problem| problem.kind.word()).collect::<Vec<_>>(),
            ["log"],
            "{layout:?}"
        );
        let done = replay(&mut store).unwrap().unwrap();
        assert!(done.transactions > 0 && done.sectors > 0 && done.counted, "{done:?}");
        clean(&store);
        assert_eq!(names(&store), ["dir", "last"], "{layout:?}");
        let again = replay(&mut store.clone()).unwrap().unwrap();
        assert!(again.is_nothing(), "{again:?}");
        // And it can be mounted, used and unmounted.
        let mut mounted = Mounted::new(store, "journal=sync");
        mounted.make(ROOT, "more", FileKind::File);
        let store = mounted.unmounted();
        clean(&store);
        assert_eq!(names(&store), ["dir", "last", "more"]);
    }
}

#[test]
fn the_log_is_empty_after_unmounting() {
    for layout in LAYOUTS {
        let store = used(layout).unmounted();
        clean(&store);
        assert!(replay(&mut store.clone()).unwrap().unwrap().is_nothing());
        assert_eq!(names(&store), ["dir", "last", "never"]);
        // Other modes take it as it is.
        let store = Mounted::new(store, "conventional").unmounted();
        clean(&store);
    }
}

/// A crashed file system that another system's fsck has put right: clean, and what was in the log is still in it.
fn checked_elsewhere(layout: (Version, Endian)) -> MemoryStore {
    let crashed = used(layout).crashed();
    let mut store = crashed.clone();
    replay(&mut store).unwrap();
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let ring = Ring::new(image.superblock().log_place().unwrap(), image.geometry()).unwrap();
    let log = ring.header_at as usize..(ring.byte_of(0) + ring.sectors * SECTOR) as usize;
    store.0[log.clone()].copy_from_slice(&crashed.0[log]);
    store
}

/// Its log was replayed over what had been written since.
#[test]
fn a_log_that_is_out_of_date_is_not_replayed() {
    for layout in LAYOUTS {
        let mut mounted = Mounted::new(checked_elsewhere(layout), "conventional");
        let last = mounted.fs.run(|volume, cx| volume.lookup(cx, ROOT, b"last")).unwrap().unwrap();
        mounted.remove("last", last);
        mounted.make(ROOT, "more", FileKind::File);
        let store = mounted.unmounted();
        clean(&store);
        // And once more, with the log.
        let mut mounted = Mounted::new(store, "journal=async");
        let other = mounted.make(ROOT, "other", FileKind::File);
        mounted.fsync(other);
        let mut store = mounted.crashed();
        assert!(replay(&mut store).unwrap().unwrap().transactions > 0);
        clean(&store);
        assert_eq!(names(&store), ["dir", "more", "other"], "{layout:?}");
    }
}

/// A system that knows nothing of the log had mounted it and lost power.
#[test]
fn a_crash_without_the_log_is_left_to_the_check() {
    for layout in LAYOUTS {
        // Our own, in another mode: the log was taken as empty, and the file system marked as clean.
        let mut mounted = Mounted::new(used(layout).unmounted(), "noorder");
        let ino = mounted.make(ROOT, "more", FileKind::File);
        mounted.write(ino, &[7; 20_000]);
        let ours = mounted.crashed();
        // Another's: it says when it has mounted it.
        let mut theirs = checked_elsewhere(layout);
        let image = Image::open(theirs.clone(), Search::Standard).unwrap();
        let mut sb = image.superblock().clone();
        (sb.clean, sb.mtime) = (0, sb.mtime + 100);
        let at = image.superblock_at() as usize;
        let bytes = sb.encode();
        theirs.0[at..at + bytes.len()].copy_from_slice(&bytes);
        for mut store in [ours, theirs] {
            assert!(replay(&mut store).unwrap().unwrap().is_nothing(), "{layout:?}");
            let error = <Ffs as ufs::insert::Insertable>::open(store, options("journal=async")).unwrap_err();
            assert!(error.to_string().contains("not unmounted cleanly"), "{error}");
        }
    }
}

/// More than the log holds, many times over: it goes round, and is never found full.
#[test]
fn a_small_log_goes_round() {
    let mut store = blank(LAYOUTS[0]);
    make(&mut store, Some(200 << 10)).unwrap();
    let mut mounted = Mounted::new(store, "journal=async");
    for round in 0..30_u8 {
        let dir = mounted.make(ROOT, &format!("dir{round}"), FileKind::Directory);
        for n in 0..30 {
            let ino = mounted.make(dir, &format!("file{n}"), FileKind::File);
            mounted.write(ino, &[round; 300]);
        }
        let large = mounted.make(ROOT, "large", FileKind::File);
        mounted.write(large, &vec![round; 600_000]);
        mounted.remove("large", large);
    }
    let counts = mounted.fs.volume().log_counts().unwrap();
    assert!(counts.checkpoints > 3 && counts.sectors > 2 * (200 << 10) / SECTOR, "{counts:?}");
    clean(&mounted.unmounted());
}

#[test]
fn nobody_may_change_the_log() {
    let mut mounted = used(LAYOUTS[0]);
    let log = mounted.fs.run(|volume, cx| volume.lookup(cx, ROOT, LOG_NAME.as_bytes())).unwrap().unwrap();
    let name = LOG_NAME.as_bytes();
    assert_eq!(mounted.fs.run(|volume, cx| volume.unlink(cx, ROOT, name, log)), Err(Errno::EPERM));
    assert_eq!(mounted.fs.run(|volume, cx| volume.truncate(cx, log, 0)), Err(Errno::EPERM));
    assert_eq!(mounted.fs.run(|volume, cx| volume.link(cx, log, ROOT, b"log")), Err(Errno::EPERM));
    let range = WriteRange { ino: log, offset: 0, len_bytes: 3, data: Some(b"abc"), sync: None };
    assert_eq!(mounted.fs.run(|volume, cx| volume.write(cx, &range)), Err(Errno::EPERM));
    clean(&mounted.unmounted());
}

#[test]
fn a_log_that_cannot_be_is_refused() {
    for (bytes, says) in [(16 << 10, "needs at least"), (64 << 20, "in one piece")] {
        let error = make(&mut blank(LAYOUTS[0]), Some(bytes)).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// Seeded damage in the log and in what the superblock says of it: an error that names a place, or a log that ends
/// earlier; never a panic, and never something that the full check cannot put right. `FSAGE_FFS_SEEDS=FROM..TO` runs
/// those seeds alone.
#[test]
fn whatever_stands_in_a_log_is_forgiven() {
    for (layout, base) in LAYOUTS.map(|layout| (layout, used(layout).crashed())) {
        let image = Image::open(base.clone(), Search::Standard).unwrap();
        let ring = Ring::new(image.superblock().log_place().unwrap(), image.geometry()).unwrap();
        let superblock = image.superblock_at();
        let (mut errors, mut replayed) = (0, 0);
        for seed in crate::mutate::seeds(150) {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut below = |n: u64| random.next_u64() % n.max(1);
            let mut store = base.clone();
            let record = ring.byte_of(0);
            // Damage that the checksum sees, and damage that has the right one.
            let sealed = below(2) == 0;
            let at = match below(4) {
                0 => superblock + 888 + below(24),
                1 => ring.header_at + below(56),
                2 => record + below(40),
                _ => record + 40 + below(600),
            };
            store.0[at as usize] = below(256) as u8;
            if below(3) == 0 {
                store.0[(at as usize / 8) * 8..][..8].fill([0, 0xFF][below(2) as usize]);
            }
            if sealed {
                reseal(&mut store, &ring);
            }
            println!("{layout:?}, seed {seed}");
            match replay(&mut store.clone()) {
                Ok(Some(done)) => replayed += done.transactions,
                Ok(None) => {}
                Err(error) => {
                    assert!(error.to_string().contains("byte "), "{error}");
                    errors += 1;
                }
            }
            let Ok(report) = fsck(&mut store, &mut |_| true) else { continue };
            if report.unrepaired == 0 {
                let again = fsck(&mut store, &mut |_| true).unwrap();
                assert!(again.is_clean(), "{again:#?}");
            }
        }
        assert!(errors > 10 && replayed > 10, "{errors} errors, {replayed} transactions");
    }
}

/// Puts the right checksums on the header and the first transaction, whatever they say.
fn reseal(store: &mut MemoryStore, ring: &Ring) {
    let header = ring.header_at as usize;
    let sector = &mut store.0[header..header + SECTOR as usize];
    let mut moved = sector.to_vec();
    // The header has its checksum four bytes further on than a transaction.
    moved[8..12].fill(0);
    let sum = !crc32c::crc32c(&moved);
    let bytes = if ring.endian == Endian::Big { sum.to_be_bytes() } else { sum.to_le_bytes() };
    sector[8..12].copy_from_slice(&bytes);
    let record = ring.byte_of(0) as usize;
    let raw: [u8; 4] = store.0[record + 24..record + 28].try_into().unwrap();
    let sectors = if ring.endian == Endian::Big { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) };
    let end = record + sectors as usize % 1000 * SECTOR as usize;
    if let Some(bytes) = store.0.get_mut(record..end).filter(|bytes| bytes.len() >= 8) {
        ffs::log::format::seal(bytes, ring.endian);
    }
}
