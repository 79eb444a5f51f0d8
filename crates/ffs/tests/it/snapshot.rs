//! Snapshots: whatever is done after one was taken, it shows every block that was in use as it was then.


use crate::lab::Ager;
use ffs::mkfs::{MkfsOptions, mkfs};
use ffs::{Endian, Ffs, GroupNo, Image, MemoryStore, Planted, Search, Version, fsck};


/// A small disk.
fn disk(version: Version, endian: Endian, bsize: u32, fsize: u32, size_bytes: u64) -> MemoryStore {
    let options = MkfsOptions { bsize, fsize, endian, density: Some(8192), ..MkfsOptions::new(version, size_bytes) };
    let mut store = MemoryStore(vec![0; size_bytes as usize]);
    mkfs(&mut store, &options).unwrap();
    store
}

/// What the file of a snapshot shows, by the reader of images.
pub fn shown(store: &MemoryStore, path: &[u8]) -> Vec<u8> {
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let (ino, inode) = image.resolve(path).unwrap();
    let mut bytes = vec![0; inode.size as usize];
    image
        .data(ino, &inode, &mut |at, data| {
            bytes[at as usize..at as usize + data.len()].copy_from_slice(data);
            Ok(())
        })
        .unwrap();
    bytes
}

/// The first block in use that a snapshot does not show as the disk had it, if there is one. That the superblock is marked as clean in it
/// is the one difference there may be.
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
fn aged(before: MemoryStore, words: &str, seed: u64, planted: Planted, steps: [u32; 2]) -> (Option<String>, MemoryStore, Ffs) {
    let (mut ager, disk) = Ager::start(before, words, seed, planted);
    for _ in 0..steps[0] {
        ager.step();
    }
    let seen_then = ager.listing();
    ager.lab.snapshot("snap").unwrap();
    let then = disk.lock().unwrap().clone();
    // What was on the disk before its own inode and the list of snapshots were.
    let taken = shown(&then, b"snap");
    for _ in 0..steps[1] {
        ager.step();
    }
    let here = ager.read("snap");
    let seen = ager.listing_without("snap");
    let volume = ager.lab.unmount().unwrap();
    let store = disk.lock().unwrap().clone();
    assert!(fsck(MemoryStore(taken.clone()), &mut |_| true).unwrap().is_clean());
    assert_eq!(crate::lab::listing_without(&MemoryStore(taken.clone()), "snap"), seen_then);
    let late = shown(&store, b"snap");
    let mut wrong = differs(&MemoryStore(taken.clone()), &late);
    if let Some(w) = &wrong {
        let image = Image::open(store.clone(), Search::Standard).unwrap();
        let g = *image.geometry();
        let (ino, inode) = image.resolve(b"snap").unwrap();
        let lbn = 248 / 8;
        let ib = store.0[(inode.ib[0] as usize) * 512 + (lbn - 12) * 4..][..4].to_vec();
        let a = &taken[248 * 512..249 * 512]; let b = &late[248*512..249*512]; let c = &here[248*512..249*512]; let d = &store.0[248*512..249*512]; let e = &then.0[248*512..249*512];
        eprintln!("{w} {ino:?} pointer {ib:?} here=late {} here=taken {} late=store {} then=taken {} first diff {:?} inodes at {:?} ipg {} {}", c==b, c==a, b==d, e==a, a.iter().zip(b).position(|(x,y)| x!=y), g.group_inodes(GroupNo(0)), g.ipg, 0);
        eprintln!("{:?}\n{:?}", &a[..128], &b[..128]);
    }
    wrong = wrong.or_else(|| (here != late).then(|| "what a process reads".to_owned()));
    assert_eq!(crate::lab::listing_without(&store, "snap"), seen);
    (wrong, store, volume)
}

const MODES: [&str; 3] = ["conventional", "noorder", "softdep"];

fn shapes() -> impl Iterator<Item = (Version, Endian, u32, u32)> {
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
    let seeds = match std::env::var("FSAGE_SNAPSHOT_SEEDS") {
        Ok(seeds) => seeds.parse().unwrap(),
        Err(_) => 1,
    };
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
