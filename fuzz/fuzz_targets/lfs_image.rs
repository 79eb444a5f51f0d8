//! Any bytes as an LFS image, or any changes to the metadata of one with files in it, unmounted or not: readers and
//! checks end without a panic; what can be mounted can be written to, and a sound file system is still one after that.
//! The first byte says which; its upper bits whether the checksums are put right again. With `FSAGE_FUZZ_IMAGE=FILE`
//! the image is written there first.
#![no_main]

#[path = "common/images.rs"]
mod images;

use images::{DATE_NS, change, tree};
use kernel::payload::Image as Payload;
use kernel::{Durability, Ino, NewNode, ReadAhead, Transfers, Untimed, Volume as _, WriteRange};
use lfs::format::{FragAddr, ROOT_INO, SegNo, SegmentSummary, Superblock, cksum};
use lfs::mkfs::{MkfsOptions, mkfs};
use lfs::recover::partial_at;
use lfs::{Checkpoint, ExtractOptions, Image, InsertOptions, Inserter, Lfs, MemoryStore, Options, Overlay};
use libfuzzer_sys::fuzz_target;
use posix::FileKind;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

const BYTES: usize = 2 << 20;

/// A sound image, where its metadata is, and the summaries among that.
struct Sound {
    store: MemoryStore,
    places: Vec<Range<usize>>,
    summaries: Vec<usize>,
}

fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("fsage-fuzz-{name}-{}", std::process::id()))
}

fn sound(which: usize) -> &'static Sound {
    static MADE: [OnceLock<Sound>; 4] = [const { OnceLock::new() }; 4];
    MADE[which % 4].get_or_init(|| {
        let (bsize, fsize) = [(4096, 512), (4096, 512), (8192, 1024), (4096, 4096)][which % 4];
        let size_bytes = BYTES as u64;
        let options =
            MkfsOptions { bsize, fsize, ssize: Some(65536), lost_found: true, ..MkfsOptions::new(size_bytes) };
        let mut store = MemoryStore(vec![0; BYTES]);
        mkfs(&mut store, &options).expect("sound options");
        let mut inserter = Inserter::open(store, Options::default(), DATE_NS).expect("a new image");
        let options = InsertOptions { owner: Some((1, 2)), ..InsertOptions::default() };
        inserter.insert(&tree().join("."), b"/", options, &mut |_| true).expect("room");
        let (mut store, _) = inserter.finish().expect("room");
        if which % 4 == 1 {
            store = used(store, false).expect("it is sound");
        }
        let (places, summaries) = metadata(&store);
        Sound { store, places, summaries }
    })
}

/// Mounts what is in a store and uses it: new files, changed ones, removed ones, a checkpoint in between. Nothing if it
/// cannot be loaded or mounted. It is left mounted, or not.
fn used(mut store: MemoryStore, unmount: bool) -> Option<MemoryStore> {
    let volume = Lfs::load(&mut store, Options::default()).ok()?;
    let store = Arc::new(Mutex::new(store));
    let transfers = Transfers { largest_bytes: 65536, read_ahead: ReadAhead::None, cluster_writes: true };
    let payload = Payload::full(store.clone());
    let mut live = Untimed::with_image(volume, 256 << 10, 64, transfers, DATE_NS, payload);
    live.run(|volume, cx| volume.mount(cx)).ok()?;
    let new = NewNode { kind: FileKind::File, mode: 0o644, target: b"" };
    let root = live.volume().root();
    for n in 0..12_u8 {
        let name = [b'f', b'0' + n];
        let there = live.run(|volume, cx| volume.lookup(cx, root, &name));
        let made = match there {
            Ok(Some(ino)) => Ok(ino),
            Ok(None) => live.run(|volume, cx| volume.create(cx, root, &name, &new)),
            Err(error) => Err(error),
        };
        let Ok(ino) = made else { continue };
        live.touch(ino);
        let data = vec![n; usize::from(n) * 1700 + 1];
        let range = WriteRange {
            ino,
            offset: u64::from(n % 3) * 30_000,
            len_bytes: data.len() as u64,
            data: Some(&data),
            sync: None,
        };
        let _ = live.run(|volume, cx| volume.write(cx, &range));
        match n {
            4 => {
                let _ = live.run(|volume, cx| volume.sync(cx, Durability::All));
            }
            7 => remove(&mut live, root, b"f0"),
            _ => {}
        }
        let _ = live.run(|volume, cx| volume.fsync(cx, ino, Durability::All));
    }
    if unmount {
        live.run(|volume, cx| volume.unmount(cx)).ok()?;
    }
    drop(live);
    Arc::into_inner(store)?.into_inner().ok()
}

fn remove(live: &mut Untimed<Lfs>, dir: Ino, name: &[u8]) {
    let Ok(Some(ino)) = live.run(|volume, cx| volume.lookup(cx, dir, name)) else { return };
    if live.volume().attributes(ino).is_ok_and(|attributes| attributes.kind == FileKind::File)
        && live.run(|volume, cx| volume.unlink(cx, dir, name, ino)).is_ok()
        && live.volume().attributes(ino).is_ok_and(|attributes| attributes.nlink == 0)
    {
        live.run(|volume, cx| volume.release(cx, ino));
        live.gone(ino);
    }
}

fn metadata(store: &MemoryStore) -> (Vec<Range<usize>>, Vec<usize>) {
    let image = Image::open(store.clone(), Checkpoint::Newer).expect("sound");
    let g = *image.geometry();
    let at = |addr: FragAddr| g.byte_of(addr) as usize;
    let sb = image.superblock().clone();
    let mut places: Vec<Range<usize>> =
        sb.sboffs[..2].iter().map(|place| at(FragAddr(*place))).map(|at| at..at + 512).collect();
    places.push(at(FragAddr(sb.idaddr))..at(FragAddr(sb.idaddr)) + g.ibsize as usize);
    let mut summaries = Vec::new();
    for segment in (0..g.nseg).map(SegNo) {
        let superblock = sb.sboffs.contains(&g.segment_base(segment).0) || segment.0 == 0;
        let mut addr = g.log_start(segment, superblock);
        while let Ok(partial) = partial_at(store, &g, addr) {
            summaries.push(at(addr));
            places.push(at(addr)..at(addr) + 200);
            addr = partial.end;
        }
    }
    let inodes = std::iter::once(lfs::format::IFILE_INO).chain(image.ifile().in_use().map(|(ino, _)| ino));
    for ino in inodes {
        if let Some(addr) = image.ifile().daddr(ino) {
            places.push(at(addr)..at(addr) + g.ibsize as usize);
        }
        let Ok(inode) = image.inode(ino) else { continue };
        let wanted = inode.is_dir() || ino == lfs::format::IFILE_INO;
        let _ = image.blocks(ino, &inode, &mut |block| {
            if wanted || block.lbn < 0 {
                places.push(at(block.addr)..at(block.addr) + 512);
            }
            Ok(())
        });
    }
    (places, summaries)
}

/// Puts the checksums of superblocks and summaries right.
fn sum_again(sound: &Sound, store: &mut MemoryStore) {
    for place in &sound.places[..2] {
        let sum = cksum(&store.0[place.start..place.start + 508]);
        store.0[place.start + 508..place.start + 512].copy_from_slice(&sum.to_le_bytes());
    }
    let Ok(g) = Superblock::decode(&sound.store.0[8192..], 8192).and_then(|sb| sb.geometry(8192)) else { return };
    for at in &sound.summaries {
        let bytes = &mut store.0[*at..*at + g.sumsize as usize];
        let sum = cksum(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        let addr = FragAddr((*at as u64 >> g.fshift) as u32);
        let Ok(summary) = SegmentSummary::decode(&store.0[*at..*at + g.sumsize as usize], &g, *at as u64) else {
            continue;
        };
        let Ok((pieces, _)) = summary.pieces(&g, addr) else { continue };
        let firsts: Vec<u8> =
            pieces.iter().flat_map(|piece| store.0[g.byte_of(piece.addr()) as usize..][..4].to_vec()).collect();
        store.0[*at + 4..*at + 8].copy_from_slice(&cksum(&firsts).to_le_bytes());
        let sum = cksum(&store.0[*at + 4..*at + g.sumsize as usize]);
        store.0[*at..*at + 4].copy_from_slice(&sum.to_le_bytes());
    }
}

fn read_everything(store: &MemoryStore) {
    for checkpoint in [Checkpoint::Newer, Checkpoint::Older] {
        let Ok(mut image) = Image::open(store.clone(), checkpoint) else { continue };
        let _ = image.roll_forward();
        let _ = image.dump_superblock();
        let _ = image.dump_segments();
        let _ = image.dump_ifile();
        for segment in (0..image.geometry().nseg.min(40)).map(SegNo) {
            let _ = image.dump_segment(segment);
        }
        let _ = image.walk(ROOT_INO, &mut |_, ino, inode| {
            let _ = image.symlink(ino, inode);
            let _ = image.dump_inode(ino);
            image.data(ino, inode, &mut |_, _| Ok(()))
        });
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((which, rest)) = input.split_first() else { return };
    let store = match which % 5 {
        4 => MemoryStore(rest.to_vec()),
        n => {
            let sound = sound(n.into());
            let mut store = sound.store.clone();
            rest.chunks_exact(8).for_each(|piece| change(&mut store.0, &sound.places, piece));
            if which & 0x80 != 0 {
                sum_again(sound, &mut store);
            }
            store
        }
    };
    if let Ok(path) = std::env::var("FSAGE_FUZZ_IMAGE") {
        std::fs::write(path, &store.0).expect("a place for the image");
    }
    read_everything(&store);
    if rest.len() % 16 == 8
        && let Ok(mut image) = Image::open(store.clone(), Checkpoint::Newer)
    {
        let _ = image.roll_forward();
        let to = temporary("out");
        let _ = lfs::extract(&image, b"/dir", &to, ExtractOptions::default(), &mut |done| done.files < 60);
        let _ = std::fs::remove_dir_all(to);
    }
    let clean = lfs::fsck(Overlay::new(&mut store.clone()), &mut |_| true).is_ok_and(|report| report.is_clean());
    let after = used(store.clone(), true);
    if clean {
        let after = after.expect("a sound file system is mounted and unmounted");
        let report = lfs::fsck(after, &mut |_| true).expect("it was readable a moment ago");
        assert!(report.is_clean() && report.marked_clean, "{:?}", report.problems);
    }
    if let Ok(mut inserter) = Inserter::open(store, Options::default(), DATE_NS) {
        // Full, or refused where the tree has a file already.
        let _ = inserter.insert(&tree().join("dir"), b"/new", InsertOptions::default(), &mut |_| true);
        let (after, _) = inserter.finish().expect("what was sound is sound");
        let report = lfs::fsck(after, &mut |_| true).expect("it was readable a moment ago");
        assert!(report.is_clean(), "{:?}", report.problems);
    }
});
