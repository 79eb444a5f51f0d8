//! Any bytes as an FFS image, or any changes to the metadata of a sound one with files in it: readers and checks end
//! without a panic, what a check has repaired is clean, and what can be loaded can be written to. The first byte says
//! which.
#![no_main]

#[path = "common/images.rs"]
mod images;

use ffs::format::ROOT_INO;
use ffs::mkfs::{GroupSize, MkfsOptions};
use ffs::policy::Options;
use ffs::{Endian, FragAddr, GroupNo, Image, Ino, InsertOptions, Inserter, MemoryStore, Overlay, Search, Version};
use images::{DATE_NS, change, tree};
use libfuzzer_sys::fuzz_target;
use std::ops::Range;
use std::sync::OnceLock;

const BYTES: usize = 1 << 20;

/// A sound image, and where its metadata is.
struct Sound {
    store: MemoryStore,
    places: Vec<Range<usize>>,
}

fn sound(which: usize) -> &'static Sound {
    static MADE: [OnceLock<Sound>; 4] = [const { OnceLock::new() }; 4];
    MADE[which % 4].get_or_init(|| {
        let version = if which % 2 == 0 { Version::Ufs1 } else { Version::Ufs2 };
        let mut store = MemoryStore(vec![0; BYTES]);
        let options = MkfsOptions {
            bsize: 4096,
            fsize: 512,
            group: Some(GroupSize::Fragments(512)),
            ipg: Some(64),
            lost_found: true,
            endian: if which % 4 < 2 { Endian::Little } else { Endian::Big },
            ..MkfsOptions::new(version, BYTES as u64)
        };
        ffs::mkfs(&mut store, &options).expect("sound options");
        let mut inserter = Inserter::open(store, Options::default(), DATE_NS).expect("a new image");
        let options = InsertOptions { owner: Some((1, 2)), ..InsertOptions::default() };
        inserter.insert(&tree().join("."), b"/", options, &mut |_| true).expect("room");
        let (store, _) = inserter.finish().expect("room");
        let places = metadata(&store);
        Sound { store, places }
    })
}

fn metadata(store: &MemoryStore) -> Vec<Range<usize>> {
    let image = Image::open(store.clone(), Search::Standard).expect("sound");
    let g = *image.geometry();
    let at = |addr: FragAddr| g.byte_of(addr) as usize;
    let sb = image.superblock_at() as usize;
    let mut places = vec![sb..sb + 1376, sb + 1000..sb + 1376, at(g.csaddr)..at(g.csaddr) + g.cssize as usize];
    for c in (0..g.ncg).map(GroupNo) {
        let (group, inodes) = (at(g.group_block(c)), at(g.group_inodes(c)));
        places.push(group..group + g.cgsize as usize);
        places.push(inodes..inodes + g.ipg as usize * g.layout.version.inode_bytes() as usize);
    }
    for ino in (2..g.inodes()).map(Ino) {
        let inode = image.inode(ino).expect("sound");
        if inode.has_blocks(&g) {
            let own = inode.ib.iter().chain(inode.db.iter().filter(|_| inode.is_dir()));
            places.extend(own.filter(|p| **p > 0).map(|p| at(FragAddr(*p as u64))).map(|at| at..at + 512));
        }
    }
    places
}

fuzz_target!(|input: &[u8]| {
    let Some((which, rest)) = input.split_first() else { return };
    let mut store = match which % 5 {
        4 => MemoryStore(rest.to_vec()),
        which => {
            let sound = sound(which.into());
            let mut store = sound.store.clone();
            rest.chunks_exact(8).for_each(|piece| change(&mut store.0, &sound.places, piece));
            store
        }
    };
    if let Ok(image) = Image::open(store.clone(), Search::Copies) {
        let _ = image.dump_groups();
        let _ = image.dump_free();
        let _ = image.walk(ROOT_INO, &mut |_, ino, inode| {
            let _ = image.symlink(ino, inode);
            let _ = image.dump_inode(ino);
            image.data(ino, inode, &mut |_, _| Ok(()))
        });
    }
    if let Ok(mut inserter) = Inserter::open(store.clone(), Options::default(), DATE_NS) {
        // Full or damaged where loading does not look: refused, or done.
        let _ = inserter.insert(&tree().join("dir"), b"/", InsertOptions::default(), &mut |_| true);
        let _ = inserter.finish();
    }
    if let Ok(report) = ffs::fsck(&mut store, &mut |_| true)
        && report.unrepaired == 0
    {
        let again = ffs::fsck(Overlay::new(&mut store), &mut |_| true).expect("it was readable a moment ago");
        assert!(again.is_clean(), "{:?} after {:?}", again.problems, report.problems);
    }
});
