//! Images with changed bytes: whatever they say, reading them ends, and does so without a panic; what can be loaded can
//! be used.
//!
//! Changes are made where structures are, with the checksums put right again as often as not, so that what is behind
//! them is reached. A case is named by its image and seed. `FSAGE_LFS_MUTATIONS` sets how many.

use crate::common;
use crate::live;
use kernel::{Durability, NewNode, ReadAhead, Transfers, Untimed, Volume as _, WriteRange};
use lfs::format::{FragAddr, Geometry, Ino, Piece, ROOT_INO, SegNo, SegmentSummary, Superblock, cksum};
use lfs::mkfs::{MkfsOptions, mkfs};
use lfs::{Checkpoint, Image, Lfs, LfsError, MemoryStore, Options};
use posix::FileKind;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::{Arc, Mutex};

/// Reads everything that there is, in every way; how far it came.
fn read_everything(store: &mut MemoryStore) -> Result<u64, LfsError> {
    let report = lfs::fsck(&mut *store, &mut |_| true);
    let mut done = u64::from(report.is_ok_and(|r| r.is_clean()));
    for checkpoint in [Checkpoint::Newer, Checkpoint::Older] {
        let mut image = Image::open(&mut *store, checkpoint)?;
        let _ = image.roll_forward();
        let _ = image.dump_superblock();
        done += image.dump_segments().len() as u64;
        for segment in (0..image.geometry().nseg.min(4)).map(SegNo) {
            let _ = image.dump_segment(segment);
        }
        let inodes: Vec<Ino> = image.ifile().in_use().map(|(ino, _)| ino).take(1000).collect();
        for ino in inodes {
            let _ = image.dump_inode(ino);
            let _ = image.dump_directory(ino);
        }
        let _ = image.dump_ifile();
        image.walk(ROOT_INO, &mut |_, ino, inode| {
            image.data(ino, inode, &mut |_, bytes| {
                done += bytes.len() as u64;
                // A file of holes and one block may be long; what is there of it is not.
                Ok(())
            })
        })?;
    }
    Ok(done)
}

/// Mounts and uses it, whatever it is, if it can be loaded: copies files in, over and over what is there, and unmounts
/// it.
fn use_it(store: MemoryStore) -> bool {
    let Ok(volume) = Lfs::load(store.clone(), Options::default()) else { return false };
    let disk = Arc::new(Mutex::new(store));
    let transfers = Transfers { largest_bytes: 65536, read_ahead: ReadAhead::None, cluster_writes: true };
    let image = kernel::payload::Image::full(disk);
    let mut live = Untimed::with_image(volume, 1 << 20, 64, transfers, 1_000_000_000_000_000_000, image);
    if live.run(|volume, cx| volume.mount(cx)).is_err() {
        return false;
    }
    let root = live.volume().root();
    let new = NewNode { kind: FileKind::File, mode: 0o644, target: b"" };
    let mut all: Vec<kernel::Ino> = Vec::new();
    let _ = live.run(|volume, cx| {
        volume.readdir(cx, root, 0, &mut |entry| {
            all.push(entry.ino);
            true
        })
    });
    for n in 0..8_u8 {
        let name = [b'~', b'0' + n];
        if let Ok(ino) = live.run(|volume, cx| volume.create(cx, root, &name, &new)) {
            live.touch(ino);
            all.push(ino);
        }
    }
    for ino in all {
        if live.volume().attributes(ino).is_ok_and(|attributes| attributes.kind == FileKind::File) {
            let data = vec![7; 30_000];
            let range = WriteRange { ino, offset: 11_000, len_bytes: 30_000, data: Some(&data), sync: None };
            let _ = live.run(|volume, cx| volume.write(cx, &range));
            let _ = live.run(|volume, cx| volume.truncate(cx, ino, 9_000));
            let _ = live.run(|volume, cx| volume.fsync(cx, ino, Durability::All));
        }
    }
    live.run(|volume, cx| volume.unmount(cx)).is_ok()
}

/// Places worth changing: superblocks, summaries, ifile blocks, inode blocks, directories.
fn places(bytes: &[u8]) -> (Geometry, Vec<(usize, usize)>) {
    let sb = Superblock::decode(&bytes[8192..], 8192).unwrap();
    let g = sb.geometry(8192).unwrap();
    let mut places = vec![(8192, 512), ((sb.sboffs[1] as usize) << g.fshift, 512)];
    for segment in (0..2).map(SegNo) {
        let mut addr = g.log_start(segment, segment.0 == 0);
        loop {
            let at = g.byte_of(addr) as usize;
            let Ok(summary) = SegmentSummary::decode(&bytes[at..], &g, at as u64) else { break };
            places.push((at, 200));
            let (pieces, end) = summary.pieces(&g, addr).unwrap();
            for piece in pieces {
                let at = g.byte_of(piece.addr()) as usize;
                match piece {
                    Piece::Inodes { .. } => places.push((at, g.ibsize as usize)),
                    Piece::Block { ino, bytes, .. } if ino.0 <= 2 => places.push((at, (bytes as usize).min(600))),
                    Piece::Block { .. } => {}
                }
            }
            addr = end;
        }
    }
    // What is live more often than what the log has left behind.
    let mut store = MemoryStore(bytes.to_vec());
    let image = Image::open(&mut store, Checkpoint::Newer).unwrap();
    let mut live = vec![(8192, 512), ((sb.sboffs[1] as usize) << g.fshift, 512)];
    let mut place = |addr: FragAddr, len: usize| live.push((g.byte_of(addr) as usize, len));
    place(FragAddr(sb.idaddr), g.ibsize as usize);
    for (ino, entry) in image.ifile().in_use() {
        place(FragAddr(entry.daddr), g.ibsize as usize);
        let inode = image.inode(ino).unwrap();
        image
            .blocks(ino, &inode, &mut |block| {
                if block.lbn < 0 || inode.is_dir() || ino.0 == 1 {
                    place(block.addr, 600);
                }
                Ok(())
            })
            .unwrap();
    }
    let repeat = 1 + 3 * places.len() / live.len();
    places.extend(std::iter::repeat_n(live, repeat).flatten());
    (g, places)
}

/// Puts the checksums of what may have been changed right.
fn sum_again(bytes: &mut [u8], g: &Geometry, at: usize, len: usize) {
    if len == 512 {
        let sum = cksum(&bytes[at..at + 508]);
        bytes[at + 508..at + 512].copy_from_slice(&sum.to_le_bytes());
    } else if len == 200 {
        let sum = cksum(&bytes[at + 4..at + g.sumsize as usize]);
        bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    }
}

/// A word that is likely to matter: small, large, or an address nearby.
fn word(random: &mut impl Rng, old: u32, g: &Geometry) -> u32 {
    match random.next_u32() % 8 {
        0 => 0,
        1 => u32::MAX,
        2 => i32::MAX as u32,
        3 => old.wrapping_add(1),
        4 => old.wrapping_sub(1),
        5 => random.next_u32() % g.size_frags,
        6 => old ^ (1 << (random.next_u32() % 32)),
        _ => random.next_u32(),
    }
}

fn mutated(name: &str, image: Vec<u8>, cases: u64) {
    let (g, places) = places(&image);
    let mut store = MemoryStore(image);
    let (mut read, mut refused, mut used) = (0, 0, 0);
    for seed in 0..cases {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut undo = Vec::new();
        for _ in 0..1 + random.next_u32() % 4 {
            let (at, len) = places[random.next_u32() as usize % places.len()];
            undo.push((at, store.0[at..at + len.max(1024)].to_vec()));
            for _ in 0..1 + random.next_u32() % 8 {
                let place = at + (random.next_u32() as usize % len) / 4 * 4;
                let old = u32::from_le_bytes(store.0[place..place + 4].try_into().unwrap());
                let new = word(&mut random, old, &g);
                store.0[place..place + 4].copy_from_slice(&new.to_le_bytes());
            }
            if random.next_u32() % 4 != 0 {
                sum_again(&mut store.0, &g, at, len);
            }
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // Reading is quick.
            if seed % 4 == 0 {
                used += u64::from(use_it(store.clone()));
            }
            read_everything(&mut store)
        }));
        match outcome.unwrap_or_else(|_| panic!("image {name}, seed {seed}: a panic")) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
        for (at, bytes) in undo.into_iter().rev() {
            store.0[at..at + bytes.len()].copy_from_slice(&bytes);
        }
    }
    println!("{name}: {read} read to the end, {refused} not; {used} used");
    assert!(used > cases / 400, "{name}: {used} used");
    assert!(read > cases / 20 && refused > cases / 20, "{name}: {read} read, {refused} refused of {cases}");
    assert!(read_everything(&mut store).is_ok(), "all changes were undone");
}

fn cases() -> u64 {
    testkit::parameter("FSAGE_LFS_MUTATIONS").unwrap_or(400)
}

#[test]
fn of_images_that_netbsd_wrote() {
    for name in ["clean", "crashed"] {
        let image = common::netbsd(name);
        mutated(name, image, cases());
    }
}

#[test]
fn of_images_that_the_live_file_system_left() {
    for case in live::cases(true).into_iter().step_by(9).take(2) {
        let name = format!("{:?}", case.mkfs);
        let mut run = live::Run::new(case);
        (0..300).for_each(|_| run.step());
        mutated(&name, run.disk().0, cases() / 8);
    }
}

#[test]
fn of_a_new_image_with_indirect_blocks() {
    let options =
        MkfsOptions { bsize: 4096, fsize: 512, ssize: Some(36 << 10), lost_found: true, ..MkfsOptions::new(96 << 20) };
    let mut store = MemoryStore(vec![0; 96 << 20]);
    mkfs(&mut store, &options).unwrap();
    let sb = Superblock::decode(&store.0[8192..], 8192).unwrap();
    assert!(sb.segtabsz > 12);
    let image = Image::open(&mut store, Checkpoint::Newer).unwrap();
    assert!(image.ifile().daddr(Ino(2)).is_some_and(|addr| addr > FragAddr(0)));
    mutated("new", store.0, cases() / 8);
}
