//! New file systems: the same sizes and places as the image that NetBSD's kernel has mounted, and readable.

use crate::common;
use lfs::format::{ROOT_INO, Superblock, SuperblockFields};
use lfs::mkfs::{MkfsOptions, mkfs};
use lfs::{Checkpoint, Image, MemoryStore};

fn made(options: &MkfsOptions) -> Image<MemoryStore> {
    let mut store = MemoryStore(vec![0; options.size_bytes as usize]);
    mkfs(&mut store, options).unwrap();
    Image::open(store, Checkpoint::Newer).unwrap()
}

#[test]
fn the_same_superblock_as_the_image_that_netbsd_mounted() {
    let image = common::netbsd("clean");
    // A copy of the superblock that nobody has written since the file system was made.
    let theirs = Superblock::decode(&image[1536 << 10..], 1536 << 10).unwrap().f;
    let ours = made(&MkfsOptions {
        ssize: Some(128 << 10),
        ident: Some(theirs.ident),
        time_s: theirs.tstamp as i64,
        ..MkfsOptions::new(8 << 20)
    });
    let sb = ours.superblock().f.clone();
    // What that image has otherwise: superblocks and label not taken off the space, a margin held back, no triple
    // indirect blocks, and the place before the checkpoint's partial segment.
    let label_and_superblocks = 8 + 10 * 8;
    assert_eq!(sb.dsize, theirs.dsize - 80);
    assert_eq!(sb.bfree as u32, theirs.dsize - label_and_superblocks - 25 - 2, "25 fragments of files, 2 of metadata");
    assert_eq!(sb.avail, 63 * 128 - 9 * 8 + (128 - 43) - 4 * 128);
    assert_eq!(sb.maxfilesize, (12 + 2048 + 2048_u64.pow(2) + 2048_u64.pow(3)) * 8192);
    assert_eq!((sb.lastpseg, theirs.lastpseg), (sb.offset, 16));
    let SuperblockFields { dsize, bfree, avail, maxfilesize, lastpseg, cksum, .. } = theirs;
    assert_eq!(SuperblockFields { dsize, bfree, avail, maxfilesize, lastpseg, cksum, ..sb }, theirs);
}

#[test]
fn the_same_log_as_the_image_that_netbsd_mounted() {
    let image = common::netbsd("clean");
    let theirs = Superblock::decode(&image[1536 << 10..], 1536 << 10).unwrap().f;
    let ours = made(&MkfsOptions {
        ssize: Some(128 << 10),
        ident: Some(theirs.ident),
        time_s: theirs.tstamp as i64,
        ..MkfsOptions::new(8 << 20)
    });
    let (store, ..) = ours.into_parts();
    let same =
        |from: usize, to: usize| assert_eq!(store.0[from << 10..to << 10], image[from << 10..to << 10], "{from}");
    // The summary differs in its checksums only: of the cleaner information, bfree and avail differ.
    assert_eq!(store.0[(16 << 10) + 8..17 << 10], image[(16 << 10) + 8..17 << 10]);
    same(17, 18); // The root directory.
    assert_eq!(store.0[18 << 10..(18 << 10) + 8], image[18 << 10..(18 << 10) + 8]);
    assert_eq!(store.0[(18 << 10) + 16..26 << 10], image[(18 << 10) + 16..26 << 10]);
    same(26, 43); // Segment usage, the inode map, the inodes.
}

#[test]
fn any_size_is_readable() {
    for (size, options) in [
        (8 << 20, MkfsOptions { lost_found: true, ..MkfsOptions::new(8 << 20) }),
        (1 << 20, MkfsOptions { bsize: 4096, fsize: 512, ssize: Some(40 << 10), ..MkfsOptions::new(1 << 20) }),
        (64 << 20, MkfsOptions { bsize: 16384, fsize: 2048, ibsize: Some(16384), ..MkfsOptions::new(64 << 20) }),
        (100 << 20, MkfsOptions { bsize: 32768, fsize: 8192, ssize: Some(1000 << 10), ..MkfsOptions::new(100 << 20) }),
        // So many segments that the usage table needs indirect blocks and more than one segment.
        (256 << 20, MkfsOptions { bsize: 4096, fsize: 1024, ssize: Some(32 << 10), ..MkfsOptions::new(256 << 20) }),
    ] {
        let options = MkfsOptions { time_s: 1_000_000_000, ..options };
        let image = made(&options);
        let sb = image.superblock();
        assert!(u64::from(sb.nseg) * u64::from(sb.ssize) <= size);
        assert_eq!(sb.sboffs.iter().filter(|addr| **addr != 0).count(), if sb.nseg > 50 { 10 } else { 5 }, "{size}");
        let mut names = Vec::new();
        image
            .walk(ROOT_INO, &mut |path, _, inode| {
                names.push((String::from_utf8_lossy(path).into_owned(), inode.nlink));
                Ok(())
            })
            .unwrap();
        let expected = if options.lost_found { vec![(".", 3), ("./lost+found", 2)] } else { vec![(".", 2)] };
        assert!(names.iter().map(|(name, n)| (name.as_str(), *n)).eq(expected));
        let tail = image.log_tail();
        assert_eq!(tail.partials.len(), 0, "{tail:?}");
        assert_eq!(image.ifile().free_list().count() as u32, sb.ifpb - 3 - u32::from(options.lost_found));
    }
}

#[test]
fn what_makes_no_file_system_is_refused() {
    let refused = |options: MkfsOptions| options.check().unwrap_err().to_string();
    assert!(refused(MkfsOptions { bsize: 65536, ..MkfsOptions::new(8 << 20) }).contains("4096 to 32768"));
    assert!(refused(MkfsOptions { fsize: 512, ..MkfsOptions::new(8 << 20) }).contains("fragment"));
    assert!(refused(MkfsOptions { ssize: Some(2 << 20), ..MkfsOptions::new(8 << 20) }).contains("4 segments"));
    assert!(refused(MkfsOptions { ssize: Some(1 << 13), ..MkfsOptions::new(8 << 20) }).contains("multiple"));
    assert!(refused(MkfsOptions::new(4 << 40)).contains("larger ones reach further"));
    assert!(refused(MkfsOptions { minfreeseg: Some(126), ..MkfsOptions::new(8 << 20) }).contains("too few"));
    let mut short = MemoryStore(vec![0; 1 << 20]);
    assert!(mkfs(&mut short, &MkfsOptions::new(8 << 20)).is_err());
}

/// `fsage fsck IMAGE` looked for UFS then, though what opens a log finds its second superblock, and all that is in it.
#[test]
fn a_log_whose_first_superblock_is_torn_is_a_log() {
    let options = MkfsOptions::new(8 << 20);
    let mut store = MemoryStore(vec![0; options.size_bytes as usize]);
    mkfs(&mut store, &options).unwrap();
    let first = Superblock::FIRST_AT as usize;
    store.0[first..first + 4].fill(0);
    assert!(Image::open(store.clone(), Checkpoint::Newer).is_ok());
    assert!(lfs::is_lfs(&store));
    assert!(!lfs::fsck(store.clone(), &mut |_| true).unwrap().is_clean());
    store.0[first..first + 512].fill(0);
    assert!(!lfs::is_lfs(&store));
}
