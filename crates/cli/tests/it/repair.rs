//! Repairs that made things worse, each with the commands that showed it.

use crate::common;
use crate::common::{code, run, succeeds};
use crate::passes;
use crate::raw;
use serde_json::Value;
use std::path::Path;

const MADE: &str = "--size 6M --bsize 8K --fsize 1K --time 1700000000";

fn fsage(at: &Path, line: &str) -> std::process::Output {
    run(at, &line.split_whitespace().collect::<Vec<_>>())
}

fn json(at: &Path, line: &str) -> Value {
    let output = fsage(at, &format!("{line} --json"));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{line}: {e}: {}", common::stderr(&output)))
}

/// Makes `N.img` of the tree `t`, with further options.
fn made(at: &Path, n: u32, options: &str) {
    succeeds(&fsage(at, &format!("mkfs ffs {n}.img {MADE} {options} --populate t")));
    assert_eq!(code(&fsage(at, &format!("fsck {n}.img"))), 0);
}

/// `dd conv=notrunc`.
fn poke(at: &Path, image: &str, byte: usize, bytes: &[u8]) {
    let path = at.join(image);
    let mut all = std::fs::read(&path).unwrap();
    all[byte..byte + bytes.len()].copy_from_slice(bytes);
    std::fs::write(path, all).unwrap();
}

/// Repairs `N.img` to `Nr.img`, which must be clean then, and stays as it is when it is repaired again.
fn repaired(at: &Path, n: u32) {
    assert_eq!(code(&fsage(at, &format!("fsck {n}.img"))), 1, "the damage is seen");
    assert_eq!(code(&fsage(at, &format!("fsck {n}.img --repair --copy {n}r.img"))), 1);
    let again = fsage(at, &format!("fsck {n}r.img --repair --copy {n}rr.img"));
    assert_eq!(code(&again), 0, "{}", String::from_utf8_lossy(&again.stdout));
    assert!(
        std::fs::read(at.join(format!("{n}r.img"))).unwrap() == std::fs::read(at.join(format!("{n}rr.img"))).unwrap()
    );
}

fn copied(at: &Path, n: u32, name: &str) -> Vec<u8> {
    let _ = std::fs::remove_file(at.join("out"));
    succeeds(&fsage(at, &format!("cp {n}r.img:/{name} out")));
    std::fs::read(at.join("out")).unwrap()
}

/// A stray indirect pointer of an empty file leads to another's data: "bad pointers" in there were cleared.
#[test]
fn a_a_repair_does_not_clear_pointers_in_anothers_data() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::create_dir(at.join("t")).unwrap();
    std::fs::write(at.join("t/a"), b"").unwrap();
    std::fs::write(at.join("t/b"), [b'B'; 8192]).unwrap();
    made(at, 1, "");
    let (a, b) = (json(at, "dump 1.img inode /a"), json(at, "dump 1.img inode /b"));
    assert_eq!((&a["ino"], &a["at_byte"]), (&Value::from(3), &Value::from(33152)));
    assert!(b.to_string().contains("96"), "b.db[0] is 96: {b}");
    poke(at, "1.img", 33240, b"\x60\0\0\0");
    repaired(at, 1);
    assert!(copied(at, 1, "b") == [b'B'; 8192], "b is as it was");
    assert_eq!(copied(at, 1, "a"), b"", "size and block count of a agree");
}

/// Another's indirect block as data: the blocks below it were not known to be in use when the copy was made.
#[test]
fn b_a_copy_is_not_written_over_what_a_shared_indirect_block_leads_to() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::create_dir(at.join("t")).unwrap();
    std::fs::write(at.join("t/a"), b"").unwrap();
    let file = std::fs::File::create(at.join("t/s")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[b'S'; 8192], 20 * 8192).unwrap();
    made(at, 2, "--fpg 8192");
    assert!(json(at, "dump 2.img inode /s").to_string().contains("296"), "s.ib[0] is 296");
    poke(at, "2.img", 33192, b"\x28\x01\0\0");
    repaired(at, 2);
    assert!(copied(at, 2, "s") == std::fs::read(at.join("t/s")).unwrap(), "s is as it was");
    assert_eq!(copied(at, 2, "a"), b"", "size and block count of a agree");
}

/// Of two files with damage of their own one shares a block with a third, and the other one, which contradicts itself,
/// has a stray indirect pointer to its data: what agrees is settled first, and its data is not taken for pointers.
#[test]
fn b_what_contradicts_itself_is_settled_last() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::create_dir(at.join("t")).unwrap();
    for (name, fill, blocks) in [("a", b'A', 2), ("y", b'Y', 1), ("b", b'B', 2)] {
        std::fs::write(at.join("t").join(name), vec![fill; blocks * 8192]).unwrap();
    }
    made(at, 9, "");
    let image = std::fs::read(at.join("9.img")).unwrap();
    let inode = |name: &str| json(at, &format!("dump 9.img inode /{name}"))["at_byte"].as_u64().unwrap() as usize;
    let (a, b, y) = (inode("a"), inode("b"), inode("y"));
    let pointer = |inode: usize, n: usize| image[inode + 40 + 4 * n..][..4].to_vec();
    let (first, second) = if a < b { (a, b) } else { (b, a) };
    // The first, which agrees with itself, has a block of the second's.
    poke(at, "9.img", first + 44, &pointer(second, 0));
    // And the third's indirect pointer leads to the second's data; size and pointers do not agree, count and pointers
    // do.
    poke(at, "9.img", y + 88, &pointer(second, 1));
    poke(at, "9.img", y + 104, &32_u32.to_le_bytes());
    repaired(at, 9);
    let (name, fill) = if a < b { ("b", b'B') } else { ("a", b'A') };
    assert!(copied(at, 9, name) == vec![fill; 2 * 8192], "{name} is as it was");
    assert!(copied(at, 9, "y") == [b'Y'; 8192]);
}

/// An indirect block that was zeroed: the file gets shorter, and the block must not stay behind its end.
#[test]
fn c_nothing_is_left_beyond_the_end_of_a_file() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::create_dir(at.join("t")).unwrap();
    std::fs::write(at.join("t/c"), vec![b'C'; 200_000]).unwrap();
    made(at, 3, "");
    poke(at, "3.img", 1544 * 1024, &[0; 8192]);
    repaired(at, 3);
    let dump = json(at, "dump 3r.img inode /c").to_string();
    assert!(dump.contains("\"98304\"") && dump.contains("[0, 0, 0]"), "{dump}");
    assert!(copied(at, 3, "c") == [b'C'; 98304]);
}

/// A pointer beyond the size is reported wherever it is.
#[test]
fn c_a_pointer_beyond_the_size_is_reported() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::create_dir(at.join("t")).unwrap();
    std::fs::write(at.join("t/c"), vec![b'C'; 200_000]).unwrap();
    made(at, 4, "");
    // 24.4 blocks: places 13 and on of the indirect block are behind the end.
    for place in [13_usize, 2047] {
        poke(at, "4.img", 1544 * 1024 + 4 * place, &5000_u32.to_le_bytes());
        repaired(at, 4);
        assert!(copied(at, 4, "c") == vec![b'C'; 200_000], "size and block count agree");
        std::fs::remove_file(at.join("4r.img")).unwrap();
        std::fs::remove_file(at.join("4rr.img")).unwrap();
        poke(at, "4.img", 1544 * 1024 + 4 * place, &[0; 4]);
    }
    // And in the inode: the double and the triple indirect one.
    for byte in [92, 96] {
        poke(at, "4.img", 33024 + 128 + byte, &5000_u32.to_le_bytes());
        repaired(at, 4);
        assert!(copied(at, 4, "c") == vec![b'C'; 200_000]);
        std::fs::remove_file(at.join("4r.img")).unwrap();
        std::fs::remove_file(at.join("4rr.img")).unwrap();
        poke(at, "4.img", 33024 + 128 + byte, &[0; 4]);
    }
}

/// Links that no system would make: one is left out and reported, the rest is copied, and the check sees it.
#[test]
fn d_one_bad_symbolic_link_does_not_stop_a_copy() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::create_dir(at.join("t")).unwrap();
    for name in ["l1", "l2", "l3"] {
        std::os::unix::fs::symlink("target/of/the/link", at.join("t").join(name)).unwrap();
    }
    std::fs::write(at.join("t/z"), b"the last").unwrap();
    made(at, 5, "");
    let inode = |name: &str| json(at, &format!("dump 5.img inode /{name}"))["at_byte"].as_u64().unwrap() as usize;
    let (l1, l2, l3) = (inode("l1"), inode("l2"), inode("l3"));
    poke(at, "5.img", l1 + 40 + 3, b"\0"); // A zero byte in the target.
    poke(at, "5.img", l2 + 8, &[0; 8]); // No target.
    poke(at, "5.img", l2 + 40, &[0; 60]);
    // As long as a block, and longer than any path: a block of its own.
    poke(at, "5.img", l3 + 8, &8000_u64.to_le_bytes());
    poke(at, "5.img", l3 + 40, &[0; 60]);
    poke(at, "5.img", l3 + 40, &4000_u32.to_le_bytes());
    poke(at, "5.img", l3 + 104, &16_u32.to_le_bytes());
    poke(at, "5.img", 4000 * 1024, &[b'p'; 8000]);
    let out = fsage(at, "cp 5.img:/ out --json");
    assert_eq!(code(&out), 1, "{}", common::stderr(&out));
    assert_eq!(std::fs::read(at.join("out/z")).unwrap(), b"the last");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(["l1", "l2", "l3"].iter().all(|name| text.contains(&format!("out/{name}"))), "{text}");
    let found = json(at, "fsck 5.img")["problems"].to_string();
    for name in ["l1", "l2", "l3"] {
        let ino = json(at, &format!("dump 5.img inode /{name}"))["ino"].to_string();
        assert!(found.contains(&format!("\"ino\":{ino}")), "{name}: {found}");
    }
    repaired(at, 5);
    std::fs::remove_dir_all(at.join("out")).unwrap();
    let out = fsage(at, "cp 5r.img:/ out");
    assert_eq!(code(&out), 0, "everything can be copied out of what was repaired: {}", common::stderr(&out));
}

/// A check hash where none is kept, and flags that nobody knows.
#[test]
fn i_stray_hashes_and_flags_are_noticed() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::create_dir(at.join("t")).unwrap();
    for (n, byte, options) in [(6, 24 * 1024 + 132, ""), (7, 8192 + 1312 + 2, "")] {
        made(at, n, options);
        poke(at, &format!("{n}.img"), byte, &[0x5a]);
        repaired(at, n);
    }
}

/// Files that found no room were tried again in a directory that had been removed in between: ENOENT "the plan
/// contradicts itself".
#[test]
fn e_aging_goes_on_where_the_file_system_is_full() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    succeeds(&fsage(at, "age ffs:size=64M --like home --years 1 --fill 0.95 --seed 1"));
}

/// Nothing was left for the mark, and no image was kept.
#[test]
fn e_an_image_is_kept_that_has_no_room_for_the_mark() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    let said = succeeds(&fsage(
        at,
        "age ffs:data=full,ufs2,root,size=32M --like news --years 1 --fill 0.85 --seed 1 --keep n.img",
    ));
    assert!(said.contains("no .fsage-aged"), "{said}");
    assert_eq!(code(&fsage(at, "fsck n.img")), 0);
}

/// The list of free inodes in the order in which they were freed: NetBSD's kernel sorts it and writes half of it back.
#[test]
fn f_the_free_inodes_of_an_aged_log_are_in_ascending_order() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    let target = "lfs:data=full,size=48M,seed=1,low=20,high=40";
    succeeds(&fsage(at, &format!("age {target} --like home --years 0.5 --fill 0.5 --keep al.img --seed 1")));
    let image = std::fs::read(at.join("al.img")).unwrap();
    assert_eq!(passes::complaints(&image, passes::Writer::Ours), Vec::<String>::new());
}

/// Changes fields of every superblock of a log, and puts the checksums right.
fn change_superblocks(image: &mut [u8], change: &dyn Fn(&mut [u8])) {
    let first = raw::Superblock(&image[8192..8704]);
    let places: Vec<u64> =
        (0..10).map(|n| first.sboff(n)).take_while(|at| *at != 0).map(|at| at * first.fsize()).collect();
    for at in places {
        let place = &mut image[at as usize..][..512];
        change(place);
        let sum = raw::cksum(&place[..508]);
        place[508..].copy_from_slice(&sum.to_le_bytes());
    }
}

/// What newfs_lfs writes: `nfiles` 0, and half of the inode blocks as free. Both were called damage, and `cp` and
/// `clean` refused.
#[test]
fn g_a_file_system_as_newfs_lfs_makes_it_is_clean_and_written_to() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::write(at.join("file"), vec![7; 70_000]).unwrap();
    succeeds(&fsage(at, "mkfs lfs g.img --size 24M --time 1700000000"));
    let mut image = std::fs::read(at.join("g.img")).unwrap();
    // One block of inodes.
    let half = raw::Superblock(&image[8192..8704]).ibsize() / raw::Superblock(&image[8192..8704]).fsize() / 2;
    change_superblocks(&mut image, &|sb| {
        sb[40..44].fill(0);
        let bfree = raw::u32_at(sb, 36) + half as u32;
        sb[36..40].copy_from_slice(&bfree.to_le_bytes());
    });
    assert_eq!(passes::complaints(&image, passes::Writer::Other), Vec::<String>::new(), "it is one that NetBSD takes");
    std::fs::write(at.join("g.img"), &image).unwrap();
    succeeds(&fsage(at, "fsck g.img"));
    succeeds(&fsage(at, "cp file g.img:/"));
    succeeds(&fsage(at, "fsck g.img"));
    let image = std::fs::read(at.join("g.img")).unwrap();
    assert_eq!(passes::complaints(&image, passes::Writer::Other), Vec::<String>::new());
    // As one that a kernel has used: one low.
    let mut low = image.clone();
    change_superblocks(&mut low, &|sb| sb[40] = sb[40].saturating_sub(1));
    std::fs::write(at.join("low.img"), &low).unwrap();
    succeeds(&fsage(at, "fsck low.img"));
    succeeds(&fsage(at, "cp file low.img:/again"));
    // More than there are is damage.
    let mut high = image;
    change_superblocks(&mut high, &|sb| sb[40] += 1);
    std::fs::write(at.join("high.img"), &high).unwrap();
    assert_eq!(code(&fsage(at, "fsck high.img")), 1);
}

/// What a repair changes can be taken back; nothing is written without `--repair`.
#[test]
fn a_repair_is_taken_back() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::create_dir(at.join("t")).unwrap();
    std::fs::write(at.join("t/c"), vec![b'C'; 200_000]).unwrap();
    made(at, 8, "");
    poke(at, "8.img", 1544 * 1024, &[0; 8192]);
    poke(at, "8.img", 8192 + 1312 + 2, &[0x5a]);
    let damaged = std::fs::read(at.join("8.img")).unwrap();
    for line in ["fsck 8.img", "fsck 8.img -n", "fsck 8.img --repair --copy x.img --undo x.undo"] {
        assert_eq!(code(&fsage(at, line)), 1);
        assert!(std::fs::read(at.join("8.img")).unwrap() == damaged, "{line}");
    }
    assert_eq!(code(&fsage(at, "fsck 8.img --undo no.undo")), 2, "--undo is for --repair");
    assert_eq!(code(&fsage(at, "fsck 8.img --repair --in-place --undo 8.undo")), 1);
    let repaired = std::fs::read(at.join("8.img")).unwrap();
    succeeds(&fsage(at, "fsck 8.img"));
    assert!(repaired == std::fs::read(at.join("x.img")).unwrap());
    common::fails(&fsage(at, "fsck 8.img --repair --in-place --undo 8.undo"), 2, &["8.undo", "already there"]);
    let bytes = json(at, "fsck 8.img --revert 8.undo")["changed_bytes"].as_u64().unwrap();
    assert!(std::fs::read(at.join("8.img")).unwrap() == damaged);
    assert_eq!(bytes as usize, damaged.iter().zip(&repaired).filter(|(a, b)| a != b).count());
    // The copy's changes are the same, and it can be taken back as well.
    succeeds(&fsage(at, "fsck x.img --revert x.undo"));
    assert!(std::fs::read(at.join("x.img")).unwrap() == damaged);
    // Not when somebody has written since.
    assert_eq!(code(&fsage(at, "fsck 8.img --repair --in-place --undo 9.undo")), 1);
    std::fs::write(at.join("new"), b"new").unwrap();
    succeeds(&fsage(at, "cp new 8.img:/"));
    let used = std::fs::read(at.join("8.img")).unwrap();
    common::fails(&fsage(at, "fsck 8.img --revert 9.undo"), 4, &["9.undo", "changed after the repair"]);
    common::fails(&fsage(at, "fsck 8.img --revert 8.img"), 4, &["byte 0"]);
    assert!(std::fs::read(at.join("8.img")).unwrap() == used);
}

/// It was told that a copy "is as it was", and an image that was only marked, too.
#[test]
fn what_became_of_an_image_without_problems_is_said() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::create_dir(at.join("t")).unwrap();
    made(at, 8, "");
    let clean = std::fs::read(at.join("8.img")).unwrap();
    let copied = succeeds(&fsage(at, "fsck 8.img --repair"));
    assert!(copied.contains("nothing to repair; 8.img.repaired is a copy without a change"), "{copied}");
    assert!(std::fs::read(at.join("8.img.repaired")).unwrap() == clean);
    let in_place = succeeds(&fsage(at, "fsck 8.img --repair --in-place"));
    assert!(in_place.contains("nothing to repair; 8.img was not changed"), "{in_place}");
    assert!(std::fs::read(at.join("8.img")).unwrap() == clean);
    // The mark of a clean unmount.
    poke(at, "8.img", 8192 + 209, &[0]);
    let marked = succeeds(&fsage(at, "fsck 8.img --repair --in-place"));
    assert!(marked.contains("nothing to repair; 8.img is now marked as clean"), "{marked}");
    assert!(std::fs::read(at.join("8.img")).unwrap() == clean);
    assert!(succeeds(&fsage(at, "fsck 8.img")).contains("Clean."));
}

/// The undo file was replaced by the repaired copy, and the image by the report, without a word.
#[test]
fn no_output_takes_the_place_of_the_image_or_of_another() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::create_dir(at.join("t")).unwrap();
    std::fs::write(at.join("t/c"), vec![b'C'; 200_000]).unwrap();
    made(at, 8, "");
    poke(at, "8.img", 1544 * 1024, &[0; 8192]);
    std::os::unix::fs::symlink("8.img", at.join("link")).unwrap();
    let damaged = std::fs::read(at.join("8.img")).unwrap();
    for line in [
        "fsck 8.img --html 8.img",
        "fsck 8.img --html ./t/../8.img",
        "fsck link --html 8.img",
        "fsck ffs:image=8.img@st39102lw --html ./8.img",
        "fsck ffs:image=8.img@st39102lw --repair --copy x --html x",
        "fsck 8.img --repair --copy x --undo x",
        "fsck 8.img --repair --copy x --undo ./x",
        "fsck 8.img --repair --undo 8.img.repaired",
        "fsck 8.img --repair --copy x --html t/../x",
        "fsck 8.img --repair --in-place --undo x --html x",
        "fsck 8.img --revert x --html x",
    ] {
        common::fails(&fsage(at, line), 2, &["are the same file"]);
        assert!(std::fs::read(at.join("8.img")).unwrap() == damaged, "{line}");
        assert_eq!(common::names(at), ["8.img", "link", "t"], "{line}");
    }
    // Each for itself.
    let line = "fsck 8.img --repair --copy x --undo y --html z";
    assert_eq!(code(&fsage(at, line)), 1);
    succeeds(&fsage(at, "fsck x"));
    succeeds(&fsage(at, "fsck x --revert y"));
    assert!(std::fs::read(at.join("x")).unwrap() == damaged);
}
