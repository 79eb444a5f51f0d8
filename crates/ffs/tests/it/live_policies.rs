//! Each policy on a file system made for it: where things go, and what is written when.

use ffs::alloc::Space;
use ffs::mkfs::{DiskGeometry, GroupSize, MkfsOptions};
use ffs::policy::Options;
use ffs::{Ffs, FragAddr, GroupNo, Version};
use kernel::{Durability, Ino, NewNode, ReadAhead, Rename, Transfers, Untimed, Volume, WriteRange};
use posix::FileKind;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

const BLOCK: u64 = 8192;

fn options(words: &str) -> Options {
    let mut options = Options::default();
    assert!(words.split(',').all(|word| options.set(word)), "{words}");
    options
}

/// 8 KB blocks, 1 KB fragments, groups of 4 MB.
fn small(size_mb: u64) -> MkfsOptions {
    MkfsOptions {
        group: Some(GroupSize::Fragments(4096)),
        density: Some(16384),
        maxcontig: Some(7),
        minfree: 5,
        ..MkfsOptions::new(Version::Ufs1, size_mb << 20)
    }
}

struct Live(Untimed<Ffs>);

impl Live {
    fn new(made: &MkfsOptions, words: &str) -> Live {
        let transfers = Transfers { largest_bytes: 7 * 8192, read_ahead: ReadAhead::Cluster, cluster_writes: true };
        Live(Untimed::new(Ffs::format(made, options(words)).unwrap(), 4 << 20, 100, transfers, 0))
    }

    fn make(&mut self, dir: Ino, name: &str, kind: FileKind) -> Ino {
        let new = NewNode { kind, mode: 0o755, target: b"" };
        let ino = self.0.run(|volume, cx| volume.create(cx, dir, name.as_bytes(), &new)).unwrap();
        self.0.touch(ino);
        ino
    }

    fn write(&mut self, ino: Ino, offset: u64, len_bytes: u64) -> bool {
        self.0.touch(ino);
        let range = WriteRange { ino, offset, len_bytes, data: None, sync: None };
        self.0.run(|volume, cx| volume.write(cx, &range)) == Ok(len_bytes)
    }

    fn file(&mut self, name: &str, len_bytes: u64) -> Ino {
        let ino = self.make(Ino(2), name, FileKind::File);
        assert!(self.write(ino, 0, len_bytes));
        ino
    }

    fn remove(&mut self, name: &str, ino: Ino) {
        self.0.run(|volume, cx| {
            volume.unlink(cx, Ino(2), name.as_bytes(), ino).unwrap();
            volume.release(cx, ino);
        });
        self.0.forget(ino);
    }

    /// Where a file's blocks lie, in fragments; the place of each full or partial block.
    fn blocks(&self, ino: Ino) -> Vec<u64> {
        let extents = self.0.volume().extents(ino).unwrap();
        let blocks = extents.iter().flat_map(|extent| {
            (0..extent.len_bytes.div_ceil(BLOCK)).map(|n| (extent.physical_bytes + n * BLOCK) / 1024)
        });
        blocks.collect()
    }

    fn group_of(&self, frag: u64) -> u32 {
        self.0.volume().geometry().group_of(FragAddr(frag)).0
    }

    /// The synchronous writes that an operation makes.
    fn waits(&mut self, operation: impl FnOnce(&mut Ffs, &mut kernel::Cx)) -> u64 {
        let before = self.0.requests().synchronous_writes;
        self.0.run(operation);
        self.0.requests().synchronous_writes - before
    }
}

/// The free space of an empty file system.
fn space(size_mb: u64) -> Space {
    Ffs::format(&small(size_mb), Options::default()).unwrap().space().clone()
}

fn take(space: &mut Space, group: u32, preferred: u64, frags: u32) -> Option<u64> {
    space.allocate(GroupNo(group), FragAddr(preferred), frags, &mut |_| ()).map(|addr| addr.0)
}

#[test]
fn the_wanted_block_then_the_next_in_the_map() {
    let mut space = space(16);
    let base = 4096 + 2048;
    assert_eq!(take(&mut space, 1, base, 8), Some(base));
    assert_eq!(take(&mut space, 1, base, 8), Some(base + 8), "taken: the next free one");
    assert_eq!(take(&mut space, 1, base + 5, 8), Some(base + 16), "of the block it is in");
    // Without a preference, from the block found in the map last.
    assert_eq!(take(&mut space, 1, 0, 8), Some(base + 24));
    space.free(FragAddr(base + 8), 8);
    assert_eq!(take(&mut space, 1, base, 8), Some(base + 8));
}

#[test]
fn fragments_go_to_the_smallest_run_that_is_long_enough() {
    let mut space = space(16);
    let base = 4096 + 2048;
    for block in 0..3 {
        assert_eq!(take(&mut space, 1, base + block * 8, 8), Some(base + block * 8));
    }
    // Runs of 5, 2 and 3 free fragments.
    space.free(FragAddr(base), 5);
    space.free(FragAddr(base + 8 + 3), 2);
    space.free(FragAddr(base + 16 + 5), 3);
    assert_eq!(take(&mut space, 1, base, 2), Some(base + 8 + 3), "the run of 2 exactly");
    assert_eq!(take(&mut space, 1, base, 2), Some(base + 16 + 5), "then the beginning of that of 3");
    assert_eq!(take(&mut space, 1, base, 1), Some(base + 16 + 7), "and its rest");
    assert_eq!(take(&mut space, 1, base, 4), Some(base));
    // None is long enough: a block is split.
    let split = take(&mut space, 1, base, 6).unwrap();
    assert_eq!((split, space.summary(GroupNo(1)).nffree), (base + 24, 1 + 2));
    // Given back piece by piece, it is a block again.
    let before = space.total().nbfree;
    space.free(FragAddr(split), 6);
    assert_eq!((space.total().nbfree, space.summary(GroupNo(1)).nffree), (before + 1, 1));
}

#[test]
fn a_fragment_grows_where_it_is_if_it_can() {
    let mut space = space(16);
    let base = 4096 + 2048;
    let mut look = |_| ();
    assert_eq!(take(&mut space, 1, base, 8), Some(base));
    space.free(FragAddr(base + 2), 4);
    assert!(space.extend(FragAddr(base), 2, 5, &mut look), "of 4 free behind it, 3");
    assert!(!space.extend(FragAddr(base), 5, 7, &mut look), "one is left, then comes another's");
    assert!(space.extend(FragAddr(base), 5, 6, &mut look));
    assert!(!space.extend(FragAddr(base + 6), 2, 3, &mut look), "not over the end of the block");
    assert_eq!(space.summary(GroupNo(1)).nffree, 0);
}

#[test]
fn groups_are_tried_in_the_order_of_the_hash() {
    let mut space = space(40);
    let groups = 10;
    let free = |space: &Space, group| space.summary(GroupNo(group)).nbfree;
    let mut order = Vec::new();
    // A block of group 3 each time: when a group is full the next one in the order serves.
    while space.total().nbfree > 0 {
        let group = (take(&mut space, 3, 0, 8).unwrap() / 4096) as u32;
        if order.last() != Some(&group) {
            order.push(group);
        }
    }
    let mut expected: Vec<u32> = Vec::new();
    for group in ffs::alloc::hash_order(3, groups) {
        if !expected.contains(&group) {
            expected.push(group);
        }
    }
    assert_eq!(order, expected);
    assert_eq!((take(&mut space, 3, 0, 8), free(&space, 3)), (None, 0));
}

#[test]
fn clusters_are_not_taken_before_the_preference() {
    let mut space = space(16);
    let mut look = |_| ();
    let base = 4096 + 2048;
    // Leave free in group 1: blocks base .. base + 7 blocks, and 3 blocks further on.
    while let Some(addr) = space.allocate(GroupNo(1), FragAddr(0), 8, &mut look) {
        if addr.0 / 4096 != 1 {
            space.free(addr, 8);
            break;
        }
    }
    for block in (0..7).chain(20..23) {
        space.free(FragAddr(base + block * 8), 8);
    }
    assert_eq!(space.allocate_cluster(FragAddr(base + 160), 3, &mut look), Some(FragAddr(base + 160)));
    space.free(FragAddr(base + 160), 8);
    // One block further on only two of the three would be left; those before are not looked at; group 2 has some.
    let elsewhere = space.allocate_cluster(FragAddr(base + 8 * 8), 4, &mut look).unwrap();
    assert_eq!(elsewhere.0 / 4096, 2);
    assert_eq!(space.allocate_cluster(FragAddr(base), 7, &mut look), Some(FragAddr(base)), "at the preference itself");
    assert_eq!(space.allocate_cluster(FragAddr(base), 8, &mut look), None, "longer ones are not counted");
}

#[test]
fn a_gap_for_the_rotation_after_maxcontig_blocks() {
    let made = MkfsOptions {
        disk: Some(DiskGeometry { heads: 4, sectors: 32, rpm: 3600, positions: 8 }),
        group: Some(GroupSize::Cylinders(32)),
        rotdelay: 4,
        maxcontig: Some(2),
        ..MkfsOptions::new(Version::Ufs1, 16 << 20)
    };
    let mut live = Live::new(&made, "original,noorder");
    let ino = live.file("f", 6 * BLOCK);
    let blocks = live.blocks(ino);
    // 4 ms * 60 /s * 32 sectors / (2 sectors * 1000) = 3 fragments, in whole blocks: 8. So one block is left out.
    let gaps: Vec<u64> = blocks.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [8, 16, 8, 16, 8]);
}

#[test]
fn a_file_goes_to_another_group_with_its_first_indirect_block_or_its_second() {
    for (words, switches) in [("original,switch,noorder", true), ("original,noswitch,noorder", false)] {
        let mut live = Live::new(&small(40), words);
        // The inode's group has less than the average free.
        let fill = live.file("fill", 10 * BLOCK);
        let ino = live.file("f", 20 * BLOCK);
        let blocks = live.blocks(ino);
        assert_eq!(live.group_of(blocks[0]), live.group_of(live.blocks(fill)[0]));
        assert_eq!(live.group_of(blocks[12]) != live.group_of(blocks[11]), switches, "{words}: {blocks:?}");
        assert!(blocks[12..].windows(2).all(|pair| pair[1] == pair[0] + 8), "then on in one piece: {blocks:?}");
    }
    // With metadata in a zone of its own, the indirect block lies between the data.
    let mut live = Live::new(&small(40), "original,metaspace,noorder");
    let ino = live.file("f", 20 * BLOCK);
    let blocks = live.blocks(ino);
    assert_eq!(blocks[12] - blocks[11], 16, "{blocks:?}");
}

#[test]
fn a_file_goes_on_to_another_group_after_maxbpg_blocks() {
    let mut live = Live::new(&MkfsOptions { maxbpg: Some(32), ..small(40) }, "original,noorder");
    let ino = live.file("f", (12 + 100) * BLOCK);
    let blocks = live.blocks(ino);
    let changes: Vec<usize> =
        (1..blocks.len()).filter(|n| live.group_of(blocks[*n]) != live.group_of(blocks[*n - 1])).collect();
    assert_eq!(changes, [12, 12 + 32, 12 + 64, 12 + 96]);
}

#[test]
fn smart_fragments_follow_the_last_full_block() {
    for (words, smart) in [("original,bestfit,noorder", false), ("original,smartfrags,noorder", true)] {
        let mut live = Live::new(&small(16), words);
        // A run of free fragments that best fit prefers.
        let one = live.file("one", 3 * 1024);
        let ino = live.file("f", 2 * BLOCK + 2 * 1024);
        let blocks = live.blocks(ino);
        assert_eq!(blocks[2] == blocks[1] + 8, smart, "{words}: {blocks:?}");
        // A file without full blocks keeps the original policy.
        let small = live.file("small", 2 * 1024);
        assert_eq!(live.blocks(small)[0] / 8, if smart { live.blocks(one)[0] / 8 } else { blocks[2] / 8 });
    }
}

#[test]
fn directories_are_spread_or_kept_together() {
    let groups = |words: &str| {
        let mut live = Live::new(&small(40), words);
        let top = live.make(Ino(2), "top", FileKind::Directory);
        let dirs: Vec<Ino> = (0..6).map(|n| live.make(top, &format!("d{n}"), FileKind::Directory)).collect();
        let group = |ino: Ino| ino.0 / live.0.volume().geometry().ipg;
        (group(top), dirs.iter().map(|ino| group(*ino)).collect::<Vec<_>>())
    };
    let (top, spread) = groups("spread,noorder");
    // The fewest directories, the first of them; group 0 has the root.
    assert_eq!((top, spread), (1, vec![2, 3, 4, 5, 6, 7]));
    let (top, together) = groups("dirpref,noorder");
    assert_eq!(together[0], top, "beside its parent");
    assert!(together.windows(2).all(|pair| (pair[1] + 10 - pair[0]) % 10 <= 1), "{together:?}");
}

#[test]
fn metadata_is_written_at_once_where_order_matters() {
    let mut live = Live::new(&small(16), "conventional");
    let (root, new) = (Ino(2), NewNode { kind: FileKind::File, mode: 0o644, target: b"" });
    let dir = NewNode { kind: FileKind::Directory, ..new };
    // The inode, then the name.
    assert_eq!(live.waits(|volume, cx| assert!(volume.create(cx, root, b"f", &new).is_ok())), 2);
    let ino = live.0.run(|volume, cx| volume.lookup(cx, root, b"f")).unwrap().unwrap();
    assert_eq!(live.waits(|volume, cx| volume.link(cx, ino, root, b"g").unwrap()), 2);
    assert_eq!(live.waits(|volume, cx| volume.unlink(cx, root, b"g", ino).unwrap()), 1);
    // The link for two names, the new name, the old one.
    let rename = Rename { from_dir: root, from_name: b"f", ino, to_dir: root, to_name: b"h", replaced: None };
    assert_eq!(live.waits(|volume, cx| volume.rename(cx, &rename).unwrap()), 3);
    // The inode, the parent's link, the first block, the inode with it, the name.
    assert_eq!(live.waits(|volume, cx| assert!(volume.create(cx, root, b"d", &dir).is_ok())), 5);
    // Data waits for nobody; the indirect block does.
    let range = |len_bytes| WriteRange { ino, offset: 0, len_bytes, data: None, sync: None };
    assert_eq!(live.waits(|volume, cx| assert!(volume.write(cx, &range(12 * BLOCK)).is_ok())), 0);
    assert_eq!(live.waits(|volume, cx| assert!(volume.write(cx, &range(13 * BLOCK)).is_ok())), 1);
    // The name; then the inode without its blocks, before they are free.
    assert_eq!(live.waits(|volume, cx| volume.unlink(cx, root, b"h", ino).unwrap()), 1);
    assert_eq!(live.waits(|volume, cx| volume.release(cx, ino)), 1);
}

/// A place that a block had left was written for before anybody got it, though no pointer to it had ever been on the
/// disk: on a disk in use each new file waited for the one before it.
#[test]
fn what_is_new_moves_without_waiting() {
    let mut live = Live::new(&small(16), "realloc,conventional");
    // Every other block is free.
    let small: Vec<Ino> = (0..100).map(|n| live.file(&format!("small {n}"), BLOCK)).collect();
    for (n, ino) in small.iter().enumerate().step_by(2) {
        live.remove(&format!("small {n}"), *ino);
    }
    live.0.run(|volume, cx| volume.sync(cx, Durability::All)).unwrap();
    // At once, and in pieces, whose fragments move; behind the twelfth block is the indirect one, which is waited for.
    for (n, (bytes, piece, waits)) in
        [(64 << 10, 64 << 10, 0), (64 << 10, 1000, 0), (14 * BLOCK, 14 * BLOCK, 1)].repeat(3).into_iter().enumerate()
    {
        let ino = live.make(Ino(2), &format!("new {n}"), FileKind::File);
        let before = live.0.requests().synchronous_writes;
        for offset in (0..bytes).step_by(piece as usize) {
            assert!(live.write(ino, offset, piece.min(bytes - offset)));
        }
        assert_eq!(
            live.0.requests().synchronous_writes - before,
            waits,
            "file {n}, {bytes} bytes in pieces of {piece}"
        );
        let blocks = live.blocks(ino);
        assert!(blocks.windows(2).take(6).all(|pair| pair[1] == pair[0] + 8), "nothing has moved: {blocks:?}");
    }
    assert!(live.0.volume().check().is_empty());
}

/// What the disk has a pointer to is another matter: the new one is written before anybody gets the old place, once.
#[test]
fn what_the_disk_knows_of_is_waited_for() {
    let mut live = Live::new(&small(16), "realloc,conventional");
    let grows = live.file("grows", 1000);
    // The rest of the block, so that it cannot grow where it is.
    let beside = live.file("beside", 6000);
    assert_eq!(live.blocks(beside), [live.blocks(grows)[0] + 1]);
    live.0.run(|volume, cx| volume.sync(cx, Durability::All)).unwrap();
    let before = live.0.requests().synchronous_writes;
    let old = live.blocks(grows)[0];
    assert!(live.write(grows, 1000, 2000));
    assert_ne!(live.blocks(grows)[0], old);
    assert_eq!(live.0.requests().synchronous_writes, before, "nobody wants the place yet");
    let taker = live.make(Ino(2), "taker", FileKind::File);
    let between = live.0.requests().synchronous_writes;
    assert!(live.write(taker, 0, 1000));
    assert_eq!(live.blocks(taker)[0], old);
    // Making the taker writes its inode, which is in one block with that of the file that has grown, whose data goes
    // first; then the name. The directory's own inode is in that block too, and has changed again: it is written once
    // more before the place is taken.
    assert_eq!((between - before, live.0.requests().synchronous_writes - between), (3, 1));
}

/// Which blocks an indirect block gives back is known from it alone, so that removing a file reads it.
#[test]
fn indirect_blocks_are_read_to_be_given_up() {
    let far = (12 + 2048) * BLOCK;
    let reads = |places: &[u64]| {
        let mut live = Live::new(&small(16), "noswitch");
        let ino = live.make(Ino(2), "file", FileKind::File);
        assert!(places.iter().all(|at| live.write(ino, *at, BLOCK)));
        live.0.run(|volume, cx| volume.unmount(cx)).unwrap();
        let transfers = Transfers { largest_bytes: 7 * 8192, read_ahead: ReadAhead::Cluster, cluster_writes: true };
        let mut cold = Live(Untimed::new(live.0.into_volume(), 4 << 20, 100, transfers, 0));
        cold.0.run(|volume, cx| volume.load(cx, ino)).unwrap();
        cold.0.touch(ino);
        cold.remove("file", ino);
        assert!(cold.0.volume().check().is_empty());
        cold.0.requests().reads
    };
    let direct = reads(&[0, 11 * BLOCK]);
    assert_eq!(reads(&[0, 12 * BLOCK]), direct + 1);
    assert_eq!(reads(&[0, far]), direct + 3, "the double one, one that it points to, and the map of another group");
    assert_eq!(reads(&[0, 12 * BLOCK, far]), direct + 4);
}

#[test]
fn nothing_is_waited_for_without_order() {
    let mut live = Live::new(&small(16), "noorder");
    for n in 0..200 {
        let ino = live.file(&format!("file {n}"), n * 1000 + 1);
        if n % 2 == 0 {
            live.remove(&format!("file {n}"), ino);
        }
        live.make(Ino(2), &format!("dir {n}"), FileKind::Directory);
    }
    live.0.run(|volume, cx| volume.sync(cx, Durability::Started)).unwrap();
    assert_eq!(live.0.requests().synchronous_writes, 0);
    assert!(live.0.volume().check().is_empty());
}

#[test]
fn the_reserve_is_kept_from_users() {
    for (words, of_reserve) in [("noorder,user", 0), ("noorder,root", 100)] {
        let mut live = Live::new(&small(16), words);
        let ino = live.make(Ino(2), "f", FileKind::File);
        let mut size = 0;
        while live.write(ino, size, BLOCK) {
            size += BLOCK;
        }
        let usage = live.0.volume().usage();
        let reserve = usage.total_bytes / 20;
        let left = usage.free_bytes;
        assert!(
            left <= reserve && left + 2 * BLOCK >= reserve * (100 - of_reserve) / 100,
            "{words}: {left} of {reserve}"
        );
        assert_eq!(usage.available_bytes, 0);
    }
}

/// Layout scores by number of blocks, after files have come and gone.
fn aged(words: &str) -> Vec<f64> {
    let mut live = Live::new(&small(48), words);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    let mut files: Vec<(String, Ino)> = Vec::new();
    let mut serial = 0;
    let mut at_most = |n: u64| random.next_u64() % n;
    for _ in 0..14_000 {
        let usage = live.0.volume().usage();
        let full = usage.free_bytes * 5 < usage.total_bytes;
        if full || (files.len() > 100 && at_most(3) == 0) {
            let (name, ino) = files.swap_remove(at_most(files.len() as u64) as usize);
            live.remove(&name, ino);
            continue;
        }
        serial += 1;
        let size = match at_most(3) {
            0 => 1 + at_most(3 * BLOCK),
            1 => 1 + at_most(9 * BLOCK),
            _ => 1 + at_most(18 * BLOCK),
        };
        let name = format!("file {serial}");
        let ino = live.make(Ino(2), &name, FileKind::File);
        if live.write(ino, 0, size) {
            files.push((name, ino));
        } else {
            live.remove(&name, ino);
        }
    }
    let mut follow = vec![(0, 0); 20];
    for (_, ino) in &files {
        let blocks = live.blocks(*ino);
        let scored = &mut follow[blocks.len()];
        scored.0 += blocks.windows(2).filter(|pair| pair[1] == pair[0] + 8).count();
        scored.1 += blocks.len().saturating_sub(1);
    }
    assert!(live.0.volume().check().is_empty());
    follow.iter().map(|(good, all)| *good as f64 / (*all).max(1) as f64).collect()
}

fn mean(scores: &[f64]) -> f64 {
    scores.iter().sum::<f64>() / scores.len() as f64
}

#[test]
fn dips_at_two_blocks_and_at_thirteen() {
    let (original, realloc) = (aged("original,noorder"), aged("realloc,noorder"));
    println!("original {original:.2?}\nrealloc {realloc:.2?}");
    assert!(mean(&realloc[3..13]) > mean(&original[3..13]) + 0.1, "realloc is better");
    assert!(realloc[2] + 0.1 < mean(&realloc[3..8]), "but not for two blocks");
    for scores in [&original, &realloc] {
        assert!(mean(&scores[13..15]) < mean(&scores[10..13]), "the 13th block goes elsewhere");
    }
}

/// Blocks that a cache under pressure wants clean, and of which something would be left out, are not written again and
/// again: what they wait for is. What No Order writes is the measure.
#[test]
fn a_full_cache_does_not_write_what_would_be_left_out() {
    let writes = |mode: &str| {
        let transfers = Transfers { largest_bytes: 7 * 8192, read_ahead: ReadAhead::Cluster, cluster_writes: true };
        let volume = Ffs::format(&small(128), options(mode)).unwrap();
        let mut live = Live(Untimed::new(volume, 1 << 20, 20_000, transfers, 0));
        live.0.run(|volume, cx| volume.mount(cx)).unwrap();
        let files: Vec<Ino> = (0..3000).map(|n| live.file(&format!("file {n}"), 20_000)).collect();
        for (n, ino) in files.iter().enumerate().filter(|(n, _)| n % 3 == 0) {
            live.remove(&format!("file {n}"), *ino);
        }
        live.0.run(|volume, cx| volume.sync(cx, Durability::All)).unwrap();
        assert_eq!(live.0.volume().check(), []);
        live.0.requests().writes
    };
    let (noorder, softdep) = (writes("noorder"), writes("softdep"));
    assert!(softdep * 10 <= noorder * 12, "{softdep} writes, and {noorder} without an order");
}
