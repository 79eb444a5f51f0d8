//! What the kernel writes block by block over months of calls is, after unmounting, byte for byte what the file
//! system's structures stored at once are: every policy, both formats, both byte orders, fragments and indirect blocks,
//! disks that fill up.

use crate::bsd_fsck;
use crate::lab::{Aged, age};
use ffs::mkfs::{DiskGeometry, GroupSize, MkfsOptions, mkfs};
use ffs::{Endian, GroupNo, Image, MemoryStore, Overlay, Search, Version, fsck};
use std::collections::HashMap;

fn made(options: &MkfsOptions) -> MemoryStore {
    let mut store = MemoryStore(vec![0; options.size_bytes as usize]);
    mkfs(&mut store, options).unwrap();
    store
}

fn compare(name: &str, aged: &Aged) {
    let image = Image::open(aged.store.clone(), Search::Standard).unwrap();
    let g = *image.geometry();
    let mut contents: HashMap<u32, Vec<u8>> = HashMap::new();
    let mut data = |ino: kernel::Ino, at: u64, place: &mut [u8]| {
        let content = contents.entry(ino.0).or_insert_with(|| {
            let inode = image.inode(ino).unwrap();
            let mut content = vec![0; inode.size as usize];
            image
                .data(ino, &inode, &mut |at, bytes| {
                    content[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
                    Ok(())
                })
                .unwrap();
            content
        });
        place.copy_from_slice(&content[at as usize..at as usize + place.len()]);
        Ok(())
    };
    let mut stored = aged.before.clone();
    aged.volume.store(&mut stored, Some(&mut data)).unwrap();
    let mut written = aged.store.clone();
    // The kernel writes one superblock; its copies stay as mkfs made them, as on any BSD.
    for c in (0..g.ncg).map(GroupNo) {
        let at = image.superblock().copy_at(&g, c) as usize;
        written.0[at..at + 8192].copy_from_slice(&stored.0.clone()[at..at + 8192]);
        // What is free holds whatever it held last.
        let group = image.group(c).unwrap();
        let base = g.group_base(c).0;
        for frag in (0..g.group_frags(c)).filter(|frag| group.free.get(*frag as usize)) {
            let at = ((base + u64::from(frag)) << g.fshift) as usize;
            written.0[at..at + g.fsize as usize].copy_from_slice(&stored.0[at..at + g.fsize as usize]);
        }
    }
    let differs = written.0.iter().zip(&stored.0).position(|(a, b)| a != b);
    assert_eq!(differs.map(|at| (at, at >> g.fshift)), None, "{name}: first byte that differs, and its fragment");
    let mut store = aged.store.clone();
    let report = fsck(Overlay::new(&mut store), &mut |_| true).unwrap();
    assert!(report.is_clean() && report.marked_clean, "{name}: {:?}", report.problems);
    let complaints = bsd_fsck::complaints(&aged.store.0, g.endian() == Endian::Big, image.superblock_at() as usize);
    assert_eq!(complaints, Vec::<String>::new(), "{name}");
}

#[test]
fn the_image_is_what_is_in_memory() {
    let base = |version, endian, bsize, fsize| MkfsOptions {
        bsize,
        fsize,
        endian,
        density: Some(4096),
        ..MkfsOptions::new(version, 6 << 20)
    };
    let disk = MkfsOptions {
        disk: Some(DiskGeometry { heads: 4, sectors: 32, rpm: 3600, positions: 8 }),
        group: Some(GroupSize::Cylinders(32)),
        rotdelay: 4,
        maxcontig: Some(1),
        ..base(Version::Ufs1, Endian::Little, 8192, 1024)
    };
    let cases = [
        (base(Version::Ufs1, Endian::Little, 4096, 512), "original,switch,bestfit,spread,conventional", false),
        (base(Version::Ufs1, Endian::Big, 8192, 1024), "realloc,noswitch,smartfrags,dirpref,noorder", true),
        (disk, "original,switch,bestfit,spread,noorder", true),
        (base(Version::Ufs2, Endian::Little, 16384, 2048), "realloc,metaspace,smartfrags,dirpref,conventional", true),
        (base(Version::Ufs2, Endian::Big, 4096, 4096), "realloc,switch,bestfit,spread,noorder,root", true),
    ];
    for (seed, (options, words, fill)) in (1..).zip(cases) {
        let aged = age(made(&options), words, 600, fill, seed);
        assert!(!fill || aged.out_of_space > 0, "{words}: it fills up");
        compare(&format!("{options:?} {words}"), &aged);
    }
}
