//! Snapshots: whatever is done after one was taken, it shows every block that was in use as it was then.

use crate::lab::{Ager, content, events};
use device::crash::{Crash, Plan};
use ffs::format::SF_SNAPSHOT;
use ffs::mkfs::{MkfsOptions, mkfs};
use ffs::planted::Bug;
use ffs::{Endian, Ffs, GroupNo, Image, MemoryStore, Overlay, Planted, Search, Version, fsck};
use posix::{Call, FileSystem as _};

/// A small disk.
pub fn disk(version: Version, endian: Endian, bsize: u32, fsize: u32, size_bytes: u64) -> MemoryStore {
    let options = MkfsOptions { bsize, fsize, endian, density: Some(8192), ..MkfsOptions::new(version, size_bytes) };
    let mut store = MemoryStore(vec![0; size_bytes as usize]);
    mkfs(&mut store, &options).unwrap();
    store
}

/// The first block in use that a snapshot does not show as the disk had it, if there is one. That the superblock is
/// marked as clean in it is the one difference there may be.
pub fn differs(disk: &MemoryStore, shown: &[u8]) -> Option<String> {
    let image = Image::open(disk.clone(), Search::Standard).unwrap();
    let g = *image.geometry();
    if shown.len() as u64 != g.size_frags << g.fshift {
        return Some(format!("{} bytes", shown.len()));
    }
    let mut there = disk.0[..shown.len()].to_vec();
    let sb = image.superblock_at() as usize;
    there[sb..sb + 1376].copy_from_slice(&shown[sb..sb + 1376]);
    let mut superblock = image.superblock().clone();
    superblock.clean = 1;
    if shown[sb..sb + 1376] != superblock.encode()[..1376] {
        return Some("the superblock".to_owned());
    }
    for c in (0..g.ncg).map(GroupNo) {
        let (group, base) = (image.group(c).unwrap(), g.group_base(c).0);
        for frag in (0..g.group_frags(c)).filter(|frag| !group.free.get(*frag as usize)) {
            let at = ((base + u64::from(frag)) << g.fshift) as usize;
            let fragment = at..at + g.fsize as usize;
            if there[fragment.clone()] != shown[fragment] {
                return Some(format!("fragment {} of group {}", frag, c.0));
            }
        }
    }
    None
}

/// Ages a disk, takes a snapshot, goes on, and looks at the snapshot: what is wrong, and the disk.
pub fn aged(
    before: MemoryStore,
    words: &str,
    seed: u64,
    planted: Planted,
    steps: [u32; 2],
) -> (Option<String>, MemoryStore, Ffs) {
    let (mut ager, disk) = Ager::start(before, words, seed, planted);
    for _ in 0..steps[0] {
        ager.step();
    }
    let seen_then = ager.listing();
    let synced = ager.sync(&disk);
    ager.lab.snapshot("snap").unwrap();
    let taken = content(&disk.lock().unwrap(), "snap");
    is_as_it_was(&synced, &taken);
    for _ in 0..steps[1] {
        ager.step();
    }
    let here = ager.read("snap");
    let seen = ager.listing_without("snap");
    let volume = ager.lab.unmount().unwrap();
    let store = disk.lock().unwrap().clone();
    assert!(fsck(MemoryStore(taken.clone()), &mut |_| true).unwrap().is_clean());
    assert_eq!(crate::lab::listing_without(&MemoryStore(taken.clone()), "snap"), seen_then);
    let late = content(&store, "snap");
    let mut wrong = differs(&MemoryStore(taken.clone()), &late);
    wrong = wrong.or_else(|| (here != late).then(|| "what a process reads".to_owned()));
    assert_eq!(crate::lab::listing_without(&store, "snap"), seen);
    (wrong, store, volume)
}

/// A snapshot that has just been taken shows what was on the disk, but for its own new file.
fn is_as_it_was(synced: &MemoryStore, taken: &[u8]) {
    let image = Image::open(MemoryStore(taken.to_vec()), Search::Standard).unwrap();
    let g = *image.geometry();
    let mut others = 0;
    for lbn in 0..g.size_frags / u64::from(g.frag) {
        let block = (lbn << g.bshift) as usize..((lbn + 1) << g.bshift) as usize;
        let free = |frag: u64| {
            let group = image.group(g.group_of(ffs::FragAddr(frag))).unwrap();
            group.free.get((frag - g.group_base(g.group_of(ffs::FragAddr(frag))).0) as usize)
        };
        let frags = lbn * u64::from(g.frag)..(lbn + 1) * u64::from(g.frag);
        let differs = synced.0[block.clone()] != taken[block];
        others += u32::from(differs && frags.into_iter().any(|frag| !free(frag)));
    }
    // Superblock, summaries, its group, its inode, the directory and maybe its inode.
    assert!(others <= 8, "{others} blocks are not as they were");
}

const MODES: [&str; 3] = ["conventional", "noorder", "softdep"];

pub fn shapes() -> impl Iterator<Item = (Version, Endian, u32, u32)> {
    [
        (Version::Ufs1, Endian::Little, 4096, 512),
        (Version::Ufs2, Endian::Big, 8192, 1024),
        (Version::Ufs1, Endian::Big, 8192, 8192),
        (Version::Ufs2, Endian::Little, 16384, 2048),
    ]
    .into_iter()
}

#[test]
fn it_shows_what_was_there_whatever_is_done_since() {
    let seeds = testkit::parameter("FSAGE_SNAPSHOT_SEEDS").unwrap_or(1);
    for seed in 0..seeds {
        for (number, (version, endian, bsize, fsize)) in shapes().enumerate() {
            for mode in MODES {
                let what = format!("seed {seed}, {version} {endian:?} {bsize}/{fsize} {mode}");
                let before = disk(version, endian, bsize, fsize, 12 << 20);
                let words = format!("realloc,{mode}");
                let (wrong, store, volume) = aged(before, &words, seed * 100 + number as u64, None, [300, 900]);
                assert_eq!(wrong, None, "{what}");
                assert!(volume.check().is_empty(), "{what}: {:?}", volume.check());
                let report = fsck(store.clone(), &mut |_| true).unwrap();
                assert!(report.is_clean() && report.marked_clean, "{what}: {:?}", report.problems);
            }
        }
    }
}

/// What came of looking at every moment of a run.
#[derive(Debug, Default)]
struct Crashes {
    states: u32,
    /// With a snapshot in them.
    with_one: u32,
    /// The first that is wrong.
    wrong: Option<String>,
}

/// Takes a snapshot in the midst of operations and crashes at every moment since: either there is none, or it is as it
/// was.
fn crashes(mode: &str, seed: u64, planted: Planted, steps: u32) -> Crashes {
    let before = disk(Version::Ufs2, Endian::Little, 4096, 1024, 3 << 20);
    let (mut ager, disk) = Ager::start(before, &format!("realloc,{mode}"), seed, planted);
    for _ in 0..120 {
        ager.step();
    }
    let base = ager.sync(&disk);
    ager.lab.record_writes(true);
    ager.lab.snapshot("snap").unwrap();
    let mut log = ager.lab.take_log();
    let returned = log.len();
    let now = disk.lock().unwrap().clone();
    let image = Image::open(now.clone(), Search::Standard).unwrap();
    let (ino, inode) = image.resolve(b"snap").unwrap();
    let truth = content(&now, "snap");
    let g = *image.geometry();
    let taken = Image::open(MemoryStore(truth.clone()), Search::Standard).unwrap();
    let groups: Vec<_> = (0..g.ncg).map(|c| taken.group(GroupNo(c)).unwrap()).collect();
    for _ in 0..steps {
        ager.step();
    }
    ager.sync(&disk);
    log.extend(ager.lab.take_log());
    let events = events(log);
    let plan = Plan { most_of_a_point: 6, ..Plan::default() };
    let mut crash = Crash::new(base, &events, plan);
    let mut found = Crashes::default();
    while let Some(point) = crash.next_point().unwrap() {
        for choice in 0..point.choices {
            crash.lay(&point, choice).unwrap();
            let id = format!("{mode}, seed {seed}, state {}.{choice}", point.number);
            found.states += 1;
            let image = Image::open(crash.disk(), Search::Standard).unwrap();
            let there = image.inode(ino).unwrap();
            let listed = image.superblock().snapinum[0] == ino.0;
            if listed && there.flags & SF_SNAPSHOT != 0 && there.generation == inode.generation {
                found.with_one += 1;
                image
                    .data(ino, &there, &mut |at, bytes| {
                        for (n, piece) in bytes.chunks(g.fsize as usize).enumerate() {
                            let at = at + (n as u64) * u64::from(g.fsize);
                            let frag = ffs::FragAddr(at >> g.fshift);
                            let group = g.group_of(frag);
                            let free = groups[group.0 as usize].free.get((frag.0 - g.group_base(group).0) as usize);
                            if !free && truth[at as usize..][..piece.len()] != *piece && found.wrong.is_none() {
                                found.wrong = Some(format!("{id}: fragment {}", frag.0));
                            }
                        }
                        Ok(())
                    })
                    .unwrap();
            } else if point.number >= returned {
                found.wrong.get_or_insert(format!("{id}: the snapshot is gone"));
            }
            if found.states.is_multiple_of(16) {
                let mut left = Overlay::new(crash.disk());
                let report = fsck(&mut left, &mut |_| true).unwrap();
                assert_eq!(report.unrepaired, 0, "{id}: {:?}", report.problems);
                if mode == "softdep" && planted.is_none() {
                    assert_eq!(report.beyond_soft_updates(), None, "{id}");
                }
            }
            crash.lift().unwrap();
        }
    }
    found
}

#[test]
fn a_crash_leaves_it_as_it_was_or_leaves_none() {
    let seeds = testkit::parameter("FSAGE_SNAPSHOT_SEEDS").unwrap_or(1);
    for mode in MODES {
        for seed in 0..seeds {
            let found = crashes(mode, seed, None, 60);
            println!("{mode}, seed {seed}: {} states, {} with a snapshot", found.states, found.with_one);
            assert_eq!(found.wrong, None);
            assert!(found.with_one > 100, "{mode}: {found:?}");
        }
    }
}

#[test]
fn planted_bugs_of_snapshots_are_found() {
    for mode in MODES {
        let late = (0..10).find_map(|seed| crashes(mode, seed, Some(Bug::SnapshotCopyLate), 60).wrong);
        assert!(late.is_some(), "{mode}: a block is written over before its copy is on the disk");
        println!("{mode}: {}", late.unwrap());
        let disk = || disk(Version::Ufs2, Endian::Little, 8192, 1024, 6 << 20);
        let not_kept = (0..10).find_map(|seed| aged(disk(), mode, seed, Some(Bug::SnapshotFreedNotKept), [200, 400]).0);
        assert!(not_kept.is_some(), "{mode}: what was free for a while is not kept");
        println!("{mode}: {}", not_kept.unwrap());
    }
}

/// It goes with its name, and its blocks are free; a new one can be taken then, and not before.
#[test]
fn there_is_one_and_it_can_be_removed() {
    for mode in MODES {
        let (mut ager, disk) = Ager::start(disk(Version::Ufs1, Endian::Little, 8192, 1024, 6 << 20), mode, 3, None);
        (0..200).for_each(|_| ager.step());
        ager.sync(&disk);
        let free = ager.lab.volume().space().free_frags();
        ager.lab.snapshot("snap").unwrap();
        assert!(ager.lab.volume().space().free_frags() < free);
        assert_eq!(ager.lab.snapshot("other"), Err(posix::Errno::EBUSY));
        let write = posix::OpenFlags::WRITE;
        let fd = ager.open("snap", write).unwrap();
        let call = Call::Write { fd, offset: Some(0), len_bytes: 1, data: None };
        assert_eq!(ager.lab.call(&call).result, Err(posix::Errno::EPERM));
        assert_eq!(ager.lab.call(&Call::Ftruncate { fd, len_bytes: 0 }).result, Err(posix::Errno::EPERM));
        ager.close(fd);
        ager.lab.call(&Call::Unlink { at: "snap".into() }).result.unwrap();
        ager.sync(&disk);
        ager.lab.pause_ns(60_000_000_000);
        assert_eq!(ager.lab.volume().space().free_frags(), free, "{mode}");
        ager.lab.snapshot("other").unwrap();
        let volume = ager.lab.unmount().unwrap();
        assert!(volume.check().is_empty(), "{mode}: {:?}", volume.check());
        let store = disk.lock().unwrap().clone();
        assert!(fsck(store.clone(), &mut |_| true).unwrap().is_clean(), "{mode}");
        // Nothing is made in an image that is refused.
        let mut journal = ffs::policy::Options::default();
        assert!(journal.set("journal=async"));
        let refused = ffs::log::load(store, journal, None).unwrap_err().to_string();
        assert!(refused.contains("snapshot"), "{refused}");
    }
}

/// Where there is no room for a block that it is to keep, there is no snapshot any more, and its file is empty.
#[test]
fn a_full_disk_gives_it_up() {
    for mode in MODES {
        let words = format!("{mode},root");
        let (mut ager, disk) = Ager::start(disk(Version::Ufs2, Endian::Big, 4096, 1024, 3 << 20), &words, 5, None);
        (0..200).for_each(|_| ager.step());
        ager.lab.snapshot("snap").unwrap();
        for _ in 0..50 {
            ager.fill();
            (0..60).for_each(|_| ager.step());
            if ager.lab.volume().snapshot_ino().is_none() {
                break;
            }
        }
        assert_eq!(ager.lab.volume().snapshot_ino(), None, "{mode}: it was not to be kept");
        assert!(ager.listing()["snap"].3.is_empty(), "{mode}");
        let volume = ager.lab.unmount().unwrap();
        assert!(volume.check().is_empty(), "{mode}: {:?}", volume.check());
        let store = disk.lock().unwrap().clone();
        let report = fsck(store, &mut |_| true).unwrap();
        assert!(report.is_clean(), "{mode}: {:?}", report.problems);
    }
}

/// What a mount has left the next one goes on with.
#[test]
fn another_mount_keeps_it() {
    for (number, (version, endian, bsize, fsize)) in shapes().enumerate() {
        let mut truth = None;
        let mut store = disk(version, endian, bsize, fsize, 8 << 20);
        for (life, mode) in ["softdep", "conventional", "noorder", "softdep"].into_iter().enumerate() {
            let (mut ager, disk) = Ager::start(store, mode, 7 + life as u64, None);
            ager.leave_alone("snap");
            (0..150).for_each(|_| ager.step());
            if life == 0 {
                ager.lab.snapshot("snap").unwrap();
                truth = Some(MemoryStore(content(&disk.lock().unwrap(), "snap")));
            }
            (0..150).for_each(|_| ager.step());
            ager.lab.unmount().unwrap();
            store = disk.lock().unwrap().clone();
            assert_eq!(differs(truth.as_ref().unwrap(), &content(&store, "snap")), None, "{number}, life {life}");
            let report = fsck(store.clone(), &mut |_| true).unwrap();
            assert!(report.is_clean(), "{number}, life {life}: {:?}", report.problems);
        }
        // As BSD's own check of bytes has it: see bsd_fsck.
        let image = Image::open(store.clone(), Search::Standard).unwrap();
        let at = image.superblock_at() as usize;
        for (what, bytes) in [("the snapshot", content(&store, "snap")), ("the disk", store.0)] {
            let complaints = crate::bsd_fsck::complaints(&bytes, endian == Endian::Big, at);
            assert_eq!(complaints, Vec::<String>::new(), "{number}: {what}");
        }
    }
}
