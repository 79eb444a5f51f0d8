//! Every field of superblock, copies and groups that the fsck_ffs of FreeBSD and NetBSD look at: what we make, age,
//! copy into and repair has them as they want them, and our fsck sees to each.

use crate::bsd_fsck;
use crate::common::{makefs, sample_tree};
use crate::live;
use ffs::mkfs::MkfsOptions;
use ffs::{Endian, GroupNo, Image, MemoryStore, Overlay, Search, Version, fsck, mkfs};
use testkit::{Tool, tool};

fn complaints(store: &MemoryStore) -> Vec<String> {
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let big = image.geometry().endian() == Endian::Big;
    bsd_fsck::complaints(&store.0, big, image.superblock_at() as usize)
}

fn none(name: &str, store: &MemoryStore) {
    assert_eq!(complaints(store), Vec::<String>::new(), "{name}");
}

#[test]
fn what_mkfs_makes() {
    for version in [Version::Ufs1, Version::Ufs2] {
        for (n, bsize) in [4096, 8192, 16384, 32768, 65536].into_iter().enumerate() {
            for parts in [1, 2, 4, 8] {
                let options = MkfsOptions {
                    bsize,
                    fsize: bsize / parts,
                    endian: if n % 2 == 0 { Endian::Little } else { Endian::Big },
                    lost_found: parts > 2,
                    ..MkfsOptions::new(version, 20 << 20)
                };
                let mut store = MemoryStore(vec![0; options.size_bytes as usize]);
                mkfs(&mut store, &options).unwrap();
                none(&format!("{options:?}"), &store);
            }
        }
    }
}

#[test]
fn what_the_live_file_system_leaves() {
    for case in live::cases(true) {
        let name = format!("{case:?}");
        let mut run = live::Run::new(case);
        for _ in 0..300 {
            run.step();
        }
        none(&name, &run.disk());
    }
}

/// An image with files, aged a little.
fn aged(version: Version, endian: Endian) -> MemoryStore {
    let case = live::cases(true).into_iter().find(|case| {
        case.mkfs.version == version
            && case.mkfs.endian == endian
            && case.mkfs.disk.is_none()
            && case.mkfs.bsize < 65536
    });
    let mut run = live::Run::new(case.unwrap());
    for _ in 0..400 {
        run.step();
    }
    run.disk()
}

/// A field: its name, whether it is in the superblock (or in a group), its byte, how wide it is.
type Field = (&'static str, bool, usize, usize);

const OF_BOTH: [Field; 45] = [
    ("maxbsize", true, 860, 4),
    ("sblockactualloc", true, 992, 8),
    ("sblockloc", true, 1000, 8),
    ("unknown flags", true, 1312, 4),
    ("a check hash where none is kept", false, 132, 4),
    ("minfree", true, 60, 4),
    ("bmask", true, 72, 4),
    ("fmask", true, 76, 4),
    ("bshift", true, 80, 4),
    ("fshift", true, 84, 4),
    ("fragshift", true, 96, 4),
    ("fsbtodb", true, 100, 4),
    ("sbsize", true, 104, 4),
    ("nindir", true, 116, 4),
    ("inopb", true, 120, 4),
    ("optim", true, 128, 4),
    ("cssize", true, 156, 4),
    ("clean", true, 209, 1),
    ("cgrotor", true, 724, 4),
    ("metaspace", true, 880, 8),
    ("cstotal", true, 1008, 8),
    ("cstotal", true, 1016, 8),
    ("cstotal", true, 1032, 8),
    ("numclusters", true, 1040, 8),
    ("cstotal spare", true, 1048, 8),
    ("pendingblocks", true, 1104, 8),
    ("pendinginodes", true, 1112, 4),
    ("maxsymlinklen", true, 1320, 4),
    ("maxfilesize", true, 1328, 8),
    ("qbmask", true, 1336, 8),
    ("qfmask", true, 1344, 8),
    ("firstfield", false, 0, 4),
    ("cgx", false, 12, 4),
    ("old_niblk", false, 18, 2),
    ("ndblk", false, 20, 4),
    ("cs", false, 32, 4),
    ("rotor", false, 40, 4),
    ("frsum", false, 60, 4),
    ("iusedoff", false, 92, 4),
    ("clusteroff", false, 108, 4),
    ("nclusterblks", false, 112, 4),
    ("niblk", false, 116, 4),
    ("unrefs", false, 124, 4),
    ("a spare byte", false, 150, 1),
    ("old_ncyl", false, 16, 2),
];
const OF_UFS1: [Field; 12] = [
    ("old_rps", true, 68, 4),
    ("old_nspf", true, 124, 4),
    ("old_npsect", true, 132, 4),
    ("old_interleave", true, 136, 4),
    ("old_trackskew", true, 140, 4),
    ("old_nsect", true, 168, 4),
    ("old_spc", true, 172, 4),
    ("old_ncyl", true, 176, 4),
    ("old_cpc", true, 856, 4),
    ("old_postblformat", true, 1356, 4),
    ("old_nrpos", true, 1360, 4),
    ("initediblk", false, 120, 4),
];

#[test]
fn our_fsck_sees_to_every_field() {
    for (version, endian) in [
        (Version::Ufs1, Endian::Little),
        (Version::Ufs1, Endian::Big),
        (Version::Ufs2, Endian::Little),
        (Version::Ufs2, Endian::Big),
    ] {
        let base = aged(version, endian);
        none("before", &base);
        let image = Image::open(base.clone(), Search::Standard).unwrap();
        let g = *image.geometry();
        let group = g.byte_of(g.group_block(GroupNo(g.ncg - 1))) as usize;
        let ufs1 = if version == Version::Ufs1 { &OF_UFS1[..] } else { &[] };
        for &(name, in_superblock, at, width) in OF_BOTH.iter().chain(ufs1) {
            let label = format!("{version}, {endian:?}: {name} at {at}");
            let mut store = base.clone();
            let at = at + if in_superblock { image.superblock_at() as usize } else { group };
            // All ones, except where only one bit is looked at; numbers are negative or out of bounds then.
            let value = if name == "clean" { 0 } else { 0x7F };
            let low = if endian == Endian::Little { at } else { at + width - 1 };
            let high = if endian == Endian::Little { at + width - 1 } else { at };
            store.0[low] ^= 0x55;
            store.0[high] = value;
            repaired(&label, &mut store);
        }
        // Bits behind the end of a map, a copy of the superblock, the summaries.
        let header = image.group(GroupNo(g.ncg - 1)).unwrap();
        let maps = [
            ("inode map", group + header.iusedoff as usize),
            (
                "fragment map",
                group + header.freeoff as usize + if header.ndblk < g.fpg { header.ndblk as usize / 8 } else { 0 },
            ),
            ("cluster map", group + header.clusteroff as usize),
            ("cluster summary", group + header.clustersumoff as usize + 4),
            ("summaries", g.byte_of(g.csaddr) as usize + 5),
            ("copy of bmask", image.superblock().copy_at(&g, GroupNo(g.ncg - 1)) as usize + 73),
        ];
        for (name, at) in maps {
            let mut store = base.clone();
            store.0[at] ^= 0x80;
            repaired(&format!("{version}, {endian:?}: {name}"), &mut store);
        }
    }
}

fn repaired(label: &str, store: &mut MemoryStore) {
    let big = Image::open(store.clone(), Search::Copies).unwrap().geometry().endian() == Endian::Big;
    let at = Image::open(store.clone(), Search::Copies).unwrap().superblock_at() as usize;
    assert!(!bsd_fsck::complaints(&store.0, big, at).is_empty(), "{label}: this is no damage");
    let report = fsck(&mut *store, &mut |_| true).unwrap();
    let marked = !report.marked_clean;
    assert!((!report.is_clean() || marked) && report.unrepaired == 0, "{label}: {:?}", report.problems);
    none(&format!("{label}: after {:?}", report.problems), store);
    let again = fsck(Overlay::new(store), &mut |_| true).unwrap();
    assert!(again.is_clean() && again.marked_clean, "{label}: {:?}", again.problems);
}

#[test]
fn what_makefs_makes() {
    let Some(program) = tool(Tool::Makefs) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let (from, path) = (scratch.path().join("tree"), scratch.path().join("base.img"));
    sample_tree(&from, 4096);
    for endian in ["le", "be"] {
        makefs(&program, &path, &from, 1, endian, 4096, 512);
        let store = MemoryStore(std::fs::read(&path).unwrap());
        // The oracle is right about what another system's tools make.
        none(&format!("makefs, {endian}"), &store);
    }
}
