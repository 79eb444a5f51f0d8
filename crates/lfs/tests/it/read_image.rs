//! The images that NetBSD wrote are read file for file, the crashed one rolled forward to the file that was synced.

use crate::common;
use lfs::format::{Ino, ROOT_INO, SegNo};
use lfs::{Checkpoint, Image, MemoryStore};

fn open(name: &str, checkpoint: Checkpoint) -> Image<MemoryStore> {
    Image::open(MemoryStore(common::netbsd(name)), checkpoint).unwrap()
}

/// Every name with type and permissions, links, size, and for a file its bytes as (first, how many are like it).
fn tree(image: &Image<MemoryStore>) -> Vec<String> {
    let mut lines = Vec::new();
    image
        .walk(ROOT_INO, &mut |path, ino, inode| {
            let mut data = Vec::new();
            if !inode.is_dir() {
                image.data(ino, inode, &mut |at, bytes| {
                    assert_eq!(at, data.len() as u64);
                    data.extend_from_slice(bytes);
                    Ok(())
                })?;
            }
            let same = data.iter().filter(|b| **b == data[0]).count();
            let first = data.first().map(|b| char::from(*b));
            let (mode, nlink, size) = (inode.mode, inode.nlink, inode.size);
            lines.push(format!("{} {ino} {mode:o} {nlink} {size} {first:?} {same}", String::from_utf8_lossy(path)));
            Ok(())
        })
        .unwrap();
    lines.sort();
    lines
}

const CLEAN: [&str; 4] = [
    ". 2 40755 3 512 None 0",
    "./by_rump 3 100644 2 70000 Some('z') 70000",
    "./l2 3 100644 2 70000 Some('z') 70000",
    "./rdir 4 40755 2 512 None 0",
];

#[test]
fn the_clean_image() {
    for checkpoint in [Checkpoint::Newer, Checkpoint::Older] {
        let mut image = open("clean", checkpoint);
        let before = image.ifile().clone();
        assert_eq!(image.roll_forward().unwrap().ended_by, "unmounted cleanly");
        assert_eq!(*image.ifile(), before);
        assert_eq!(tree(&image), CLEAN);
    }
}

#[test]
fn the_crashed_image() {
    let mut image = open("crashed", Checkpoint::Newer);
    assert_eq!(tree(&image), CLEAN, "as of the checkpoint");
    let done = image.roll_forward().unwrap();
    let mut expected = CLEAN.to_vec();
    expected.push("./rfw 5 100644 1 9000 Some('z') 9000");
    assert_eq!(tree(&image), expected);
    assert_eq!((done.from_serial, done.to_serial, done.partial_segments, done.dropped), (6, 8, 2, 0));
    assert_eq!(done.inodes, [2, 3, 4, 5].map(Ino));
    assert_eq!((done.freed.len(), done.segments), (0, vec![SegNo(1)]));
    let (sb, info) = (image.superblock(), &image.ifile().info);
    assert_eq!((sb.offset, sb.curseg, sb.nextseg, sb.serial, sb.nfiles, sb.nclean), (170, 128, 256, 8, 5, 62));
    // Two summaries and two inode blocks; a new file of nine fragments.
    assert_eq!((sb.dmeta, sb.bfree, sb.avail), (12 + 4, 6948 - 4 - 9, 6927 - 14));
    assert_eq!((info.free_head, info.free_tail), (6, 408));
}

#[test]
fn a_log_is_followed_only_while_it_is_whole() {
    let mut image = common::netbsd("crashed");
    // A byte of the second partial segment's inode block, within the four that are summed.
    image[169 << 10] ^= 1;
    let mut image = Image::open(MemoryStore(image), Checkpoint::Newer).unwrap();
    let tail = image.log_tail();
    assert_eq!((tail.partials.len(), tail.complete), (1, 1));
    assert!(tail.ended_by.contains("are not those it was written with"), "{}", tail.ended_by);
    assert_eq!(image.roll_forward().unwrap().to_serial, 7);
    assert!(image.inode(Ino(5)).is_ok(), "the file was whole before");

    // The first one said to be continued, without the second: dropped, and the file with it.
    let mut bytes = image.into_parts().0.0;
    let at = 156 << 10;
    bytes[at + 24] |= 2;
    let sum = lfs::format::cksum(&bytes[at + 4..at + 1024]);
    bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    let mut image = Image::open(MemoryStore(bytes), Checkpoint::Newer).unwrap();
    let done = image.roll_forward().unwrap();
    assert_eq!((done.to_serial, done.dropped), (6, 1));
    assert_eq!(tree(&image), CLEAN);
}

#[test]
fn either_superblock_will_do() {
    let bytes = common::netbsd("crashed");
    let mut torn = bytes.clone();
    torn[8192 + 340] ^= 0xFF;
    let image = Image::open(MemoryStore(torn), Checkpoint::Newer).unwrap();
    assert_eq!(image.superblock_at(), 768 << 10);
    assert_eq!(tree(&image), CLEAN);
    let mut gone = bytes;
    gone[8192..8192 + 512].fill(0);
    assert!(Image::open(MemoryStore(gone), Checkpoint::Newer).is_err());
}

#[test]
fn the_other_checkpoint_where_one_is_not_complete() {
    let mut bytes = common::netbsd("clean");
    // Superblock 0 as it was one checkpoint before; then the ifile's inode of the newer one never came to the disk.
    let crashed = common::netbsd("crashed");
    bytes[8192..8192 + 512].copy_from_slice(&crashed[8192..8192 + 512]);
    let image = Image::open(MemoryStore(bytes.clone()), Checkpoint::Newer).unwrap();
    assert_eq!((image.superblock().serial, image.superblock_at()), (7, 768 << 10));
    bytes[181 << 10..182 << 10].fill(0);
    let image = Image::open(MemoryStore(bytes.clone()), Checkpoint::Newer).unwrap();
    assert_eq!((image.superblock().serial, image.superblock_at()), (6, 8192));
    assert_eq!(tree(&image), CLEAN);
    let report = lfs::fsck(MemoryStore(bytes), &mut |_| true).unwrap();
    assert!(report.problems.iter().any(|p| p.kind == "checkpoint"), "{:?}", report.problems);
}
