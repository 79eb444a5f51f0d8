//! Seeded mutations of small ext4 images: every outcome is a survey or an error that names a byte; never a panic, and
//! never more work than the image is long.

use crate::common;
use crate::common::{Scratch, can_run};
use layout::SurveyOptions;
use layout::ext4::{Ext4Error, Image, survey_image};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use testkit::Tool;

const ROUNDS: u64 = 150;

/// Content without mounting: mkfs fills the image from a directory, so that no root is needed.
fn image(bytes: u64, options: &[&str]) -> Option<Vec<u8>> {
    testkit::tool(testkit::Tool::MkfsExt4)?;
    let content = tempfile::tempdir().unwrap();
    for i in 0..60 {
        let directory = content.path().join(format!("d{}", i % 3));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("file-{i}")), vec![i as u8; i * 700]).unwrap();
    }
    let mut command = vec!["mkfs.ext4", "-q", "-F", "-d", content.path().to_str().unwrap()];
    command.extend(options);
    let scratch = Scratch::make(bytes, &command);
    Some(std::fs::read(scratch.image()).unwrap())
}

fn survey(bytes: Vec<u8>) -> Result<layout::Survey, Ext4Error> {
    let mut steps = 0u32;
    survey_image(
        &Image::from_bytes(bytes),
        "fuzz",
        &SurveyOptions { map: layout::MapOrder::new(4), ..SurveyOptions::default() },
        &mut |_| {
            steps += 1;
            assert!(steps < 100_000, "the walk does not end");
            true
        },
    )
}

/// The lines of 64 bytes that are not all zero.
fn used_lines(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len() / 64).filter(|i| bytes[i * 64..(i + 1) * 64].iter().any(|b| *b != 0)).collect()
}

/// Damages bytes where metadata is: the superblock, the descriptors and whatever blocks are not all zero.
fn mutate(bytes: &mut [u8], used: &[usize], random: &mut Xoshiro256PlusPlus) {
    for _ in 0..1 + random.next_u64() % 6 {
        let line = match random.next_u64() % 3 {
            0 => 16 + (random.next_u64() % 16) as usize,
            _ => used[(random.next_u64() % used.len() as u64) as usize],
        };
        let at = line * 64 + (random.next_u64() % 64) as usize;
        let bits = (random.next_u64() >> 32) as u32;
        match random.next_u64() % 4 {
            0 => bytes[at] = 0xFF,
            1 => bytes[at] = 0,
            2 => bytes[at] = bits as u8,
            _ => bytes[at] ^= 1 << (bits % 8),
        }
    }
}

fn check(options: &[&str], seed: u64) {
    let Some(whole) = image(4 << 20, options) else { return };
    let sound = survey(whole.clone()).unwrap_or_else(|e| panic!("{options:?}: {e}"));
    assert_eq!(sound.walked.files, 60);
    let used = used_lines(&whole);
    let (mut errors, mut surveys) = (0, 0);
    for round in 0..ROUNDS {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed + round);
        let mut bytes = whole.clone();
        mutate(&mut bytes, &used, &mut random);
        match survey(bytes) {
            Ok(_) => surveys += 1,
            Err(Ext4Error::Interrupted) => panic!("nobody interrupted round {round}"),
            Err(error) => {
                assert!(error.to_string().contains("byte") || matches!(error, Ext4Error::Unsupported(_)), "{error}");
                errors += 1;
            }
        }
    }
    // Either all would mean that the mutations do not reach what is read, or nothing else.
    assert!(errors > 0 && surveys > 0, "{errors} errors, {surveys} surveys");
}

#[test]
fn with_checksums() {
    check(&[], 1000);
}

/// Without checksums, damage reaches the trees and directories themselves.
#[test]
fn extents_without_checksums() {
    check(&["-O", "^metadata_csum,^uninit_bg"], 2000);
}

#[test]
fn indirect_blocks() {
    check(&["-t", "ext2"], 3000);
}

#[test]
fn inline_data() {
    check(&["-O", "inline_data,^metadata_csum", "-I", "256"], 4000);
}

#[test]
fn a_cut_off_image_names_its_end() {
    let Some(whole) = image(4 << 20, &[]) else { return };
    for len in [0, 1023, 1100, 2048, 4096, 1 << 20, (4 << 20) - 1] {
        let error = survey(whole[..len].to_vec()).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("byte"), "{len}: {error}");
    }
}

/// A tree whose every pointer names the same block would be walked for ever by a reader that trusts it.
#[test]
fn indirect_blocks_that_name_themselves() {
    let Some(mut bytes) = image(4 << 20, &["-t", "ext2", "-b", "1024"]) else { return };
    // Every inode's pointers, single to triple indirect, to block 200; block 200 full of 200s.
    let table = u32::from_le_bytes(bytes[2048 + 8..2048 + 12].try_into().unwrap()) as usize * 1024;
    let inode_bytes = u16::from_le_bytes(bytes[1024 + 0x58..1024 + 0x5A].try_into().unwrap()) as usize;
    for ino in 11..60 {
        let at = table + ino * inode_bytes + 0x28;
        bytes[at..at + 60].chunks_mut(4).for_each(|p| p.copy_from_slice(&200u32.to_le_bytes()));
    }
    bytes[200 * 1024..201 * 1024].chunks_mut(4).for_each(|p| p.copy_from_slice(&200u32.to_le_bytes()));
    let error = survey(bytes).map(|_| ()).unwrap_err();
    assert!(matches!(error, Ext4Error::Damaged { .. }), "{error}");
}

/// Real content, damaged: more kinds of structure than mkfs makes from a directory.
#[test]
fn fragmented_content() {
    if !can_run(&[Tool::MkfsExt4]) {
        return;
    }
    let mut scratch =
        Scratch::make(24 << 20, &["mkfs.ext4", "-q", "-F", "-b", "1024", "-O", "^metadata_csum,^has_journal"]);
    common::fragment(&scratch.mount(""), 3);
    scratch.unmount();
    let whole = std::fs::read(scratch.image()).unwrap();
    let used = used_lines(&whole);
    for round in 0..60 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(9000 + round);
        let mut bytes = whole.clone();
        mutate(&mut bytes, &used, &mut random);
        if let Err(error) = survey(bytes) {
            assert!(error.to_string().contains("byte") || matches!(error, Ext4Error::Unsupported(_)), "{error}");
        }
    }
}
