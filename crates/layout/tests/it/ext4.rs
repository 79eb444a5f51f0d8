//! Every shape of ext4 that mkfs makes: the image reader against the mounted survey, `filefrag`, `e2freefrag`,
//! `dumpe2fs`.

use crate::common::{Scratch, can_run, filefrag, files_below, fragment, number_after, run, score_by_blocks};
use layout::{Available, Method, Survey, SurveyOptions, survey};
use std::path::Path;
use testkit::Tool;

const TOOLS: &[Tool] = &[Tool::MkfsExt4, Tool::E2freefrag, Tool::Dumpe2fs, Tool::Filefrag];

fn options() -> SurveyOptions {
    SurveyOptions {
        taken_unix_s: Some(4_000_000_000),
        hot_days: Some(36_500.0),
        worst_files: 10,
        map: layout::MapOrder::new(4),
    }
}

fn taken(path: &Path) -> Survey {
    survey(path, &options(), &mut |_| true).unwrap_or_else(|e| panic!("{e}"))
}

/// Makes a file system, fragments it, and compares everything with everything.
fn check(mkfs: &[&str]) {
    if !can_run(TOOLS) {
        return;
    }
    let mut scratch = Scratch::make(96 << 20, mkfs);
    fragment(&scratch.mount(""), 7);
    scratch.unmount();
    let image = taken(&scratch.image());
    assert_eq!(image.source.method, Method::Ext4Image);
    let point = scratch.mount("ro");
    let mounted = taken(&point);

    assert_eq!(image.walked, mounted.walked, "{mkfs:?}");
    assert_eq!(image.source.groups, mounted.source.groups);
    assert_eq!(image.source.block_bytes, mounted.source.block_bytes);
    assert!(image.source.notes.is_empty(), "{:?}", image.source.notes);
    let (mut from_image, mut from_mount) =
        (image.files.known().unwrap().clone(), mounted.files.known().unwrap().clone());
    // Neighbouring records may have been joined in the kernel's cache; extents are what both agree on.
    (from_image.records, from_mount.records) = (0, 0);
    (from_image.kinds.unwritten.extents, from_mount.kinds.unwritten.extents) = (0, 0);
    assert_eq!(from_image, from_mount, "{mkfs:?}");
    assert_eq!(image.free, mounted.free, "{mkfs:?}");
    assert_eq!(image.map, mounted.map, "{mkfs:?}");
    assert!(from_image.layout_score.is_some_and(|s| s < 0.999), "the content is not fragmented");
    assert!(from_image.hot.as_ref().is_some_and(|h| h.row.files == from_image.all.files));

    against_filefrag(&point, &mounted);
    scratch.unmount(); // e2freefrag counts no chunks where it sees the file system mounted.
    if !mkfs.contains(&"bigalloc") {
        // e2freefrag takes a cluster's bit for a block: its own sums then disagree with each other.
        against_e2freefrag(&scratch.image(), &image);
    }
    against_dumpe2fs(&scratch.image(), &image);
}

fn against_filefrag(point: &Path, survey: &Survey) {
    let block = survey.source.block_bytes;
    let (mut following, mut pairs) = (0, 0);
    for path in files_below(point) {
        if path.to_str().is_none() {
            continue; // One block at most: no score.
        }
        let (f, p) = score_by_blocks(&filefrag(&path, block), block);
        following += f;
        pairs += p;
    }
    let score = survey.files.known().unwrap().score;
    assert_eq!((score.following, score.pairs), (following, pairs), "by filefrag's extents, block by block");
}

/// The histogram's lines are `    4K...    8K-  :             9             9    0.04%`.
fn against_e2freefrag(image: &Path, survey: &Survey) {
    let Available::Known(free) = &survey.free else { panic!("no free space") };
    let text = run("e2freefrag", &["-c", "1024", image.to_str().unwrap()]);
    assert_eq!(number_after(&text, "Num. free extent:") as u64, free.extents, "{text}");
    assert_eq!(number_after(&text, "Max. free extent:") as u64, free.largest_bytes >> 10, "{text}");
    assert_eq!(number_after(&text, "Min. free extent:") as u64, free.smallest_bytes >> 10, "{text}");
    // With blocks of 1 KiB, e2freefrag counts chunks from block 1, not from byte 0.
    if survey.source.block_bytes > 1024 {
        assert_eq!(number_after(&text, "Free chunks:") as u64, free.chunks[1].aligned_chunks, "{text}");
    }
    let size = |text: &str| -> u64 {
        let text = text.trim().trim_end_matches(['-', ' ']);
        let (digits, unit) = text.split_at(text.len() - 1);
        digits.trim().parse::<u64>().unwrap()
            << match unit {
                "K" => 10,
                "M" => 20,
                _ => 30,
            }
    };
    let mut buckets = Vec::new();
    for line in text.lines().filter(|line| line.contains("...")) {
        let (range, counts) = line.split_once(':').unwrap();
        let counts: Vec<u64> = counts.split_whitespace().take(2).map(|n| n.parse().unwrap()).collect();
        let low = size(range.split("...").next().unwrap());
        buckets.push((low, counts[0], counts[1] * survey.source.block_bytes));
    }
    let ours = free.histogram.iter().filter(|b| b.extents > 0).map(|b| (b.low_bytes, b.extents, b.bytes));
    assert_eq!(ours.collect::<Vec<_>>(), buckets, "{text}");
}

fn against_dumpe2fs(image: &Path, survey: &Survey) {
    let text = run("dumpe2fs", &["-h", image.to_str().unwrap()]);
    let free = survey.free.known().unwrap();
    assert_eq!(number_after(&text, "Free blocks:") as u64 * survey.source.block_bytes, free.free_bytes);
    assert_eq!(number_after(&text, "Block count:") as u64 * survey.source.block_bytes, survey.source.total_bytes);
    assert_eq!(survey.source.free_bytes, free.free_bytes);
    let features = text.lines().find_map(|line| line.strip_prefix("Filesystem features:")).expect("a line of features");
    assert_eq!(survey.source.options, features.split_whitespace().collect::<Vec<_>>().join(","));
    let all = run("dumpe2fs", &[image.to_str().unwrap()]);
    let groups = all.lines().filter(|line| line.starts_with("Group ") && line.contains(": (Blocks ")).count() as u64;
    assert_eq!(survey.source.groups.map(|g| g.count), Some(groups));
}

#[test]
fn as_mkfs_makes_it() {
    check(&["mkfs.ext4", "-q", "-F", "-b", "4096"]);
}

#[test]
fn small_blocks_many_groups() {
    check(&["mkfs.ext4", "-q", "-F", "-b", "1024", "-g", "2048"]);
}

#[test]
fn ext2_with_indirect_blocks() {
    check(&["mkfs.ext4", "-q", "-F", "-t", "ext2", "-b", "1024"]);
}

#[test]
fn ext3_with_indirect_blocks() {
    check(&["mkfs.ext4", "-q", "-F", "-t", "ext3", "-I", "128"]);
}

#[test]
fn clusters() {
    check(&["mkfs.ext4", "-q", "-F", "-O", "bigalloc", "-C", "16384"]);
}

#[test]
fn meta_block_groups() {
    check(&["mkfs.ext4", "-q", "-F", "-b", "1024", "-g", "1024", "-O", "meta_bg,^resize_inode"]);
}

#[test]
fn two_backups_and_no_flexible_groups() {
    check(&["mkfs.ext4", "-q", "-F", "-b", "2048", "-g", "4096", "-O", "sparse_super2,^flex_bg,^resize_inode"]);
}

#[test]
fn inline_data() {
    check(&["mkfs.ext4", "-q", "-F", "-O", "inline_data", "-I", "256"]);
}

#[test]
fn group_checksums_and_32_bits() {
    check(&["mkfs.ext4", "-q", "-F", "-O", "^metadata_csum,uninit_bg,^64bit", "-b", "1024", "-g", "8192"]);
}

#[test]
fn no_directory_index() {
    check(&[
        "mkfs.ext4",
        "-q",
        "-F",
        "-O",
        "^dir_index,^filetype",
        "-E",
        "hash_seed=12345678-1234-1234-1234-123456789abc",
    ]);
}

#[test]
fn a_mounted_image_is_said_to_be_dirty() {
    if !can_run(TOOLS) {
        return;
    }
    let mut scratch = Scratch::make(64 << 20, &["mkfs.ext4", "-q", "-F"]);
    std::fs::write(scratch.mount("").join("file"), b"x").unwrap();
    rustix::fs::sync();
    let survey = taken(&scratch.image());
    assert!(
        survey.source.notes.iter().any(|n| n.contains("journal has not been replayed")),
        "{:?}",
        survey.source.notes
    );
}
