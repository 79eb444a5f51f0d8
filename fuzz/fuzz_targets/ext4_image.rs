//! Any changes to a small ext4 image of `mkfs.ext4`'s: the survey of it ends with a result or an error. Without that
//! program, the bytes themselves are the image.
#![no_main]

use layout::SurveyOptions;
use layout::ext4::{Image, survey_image};
use libfuzzer_sys::fuzz_target;
use std::process::Command;
use std::sync::OnceLock;

fn sound() -> &'static Vec<u8> {
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    MADE.get_or_init(|| {
        let root = std::env::temp_dir().join(format!("fsage-fuzz-ext4-{}", std::process::id()));
        let (tree, image) = (root.join("tree"), root.join("image"));
        std::fs::create_dir_all(tree.join("dir/below")).expect("a writable temporary directory");
        for n in 0..60 {
            std::fs::write(tree.join(format!("dir/file {n}")), vec![7; n * 900]).expect("space");
        }
        std::fs::write(tree.join("large"), vec![7; 300_000]).expect("space");
        // Without checksums, which would stop every change early.
        let made = Command::new("mkfs.ext4")
            .args(["-q", "-F", "-O", "^metadata_csum,^64bit,^has_journal", "-b", "1024", "-d"])
            .args([&tree, &image])
            .arg("2M")
            .status();
        let bytes = if made.is_ok_and(|status| status.success()) {
            std::fs::read(&image).unwrap_or_default()
        } else {
            Vec::new()
        };
        let _ = std::fs::remove_dir_all(&root);
        bytes
    })
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = sound().clone();
    if bytes.is_empty() {
        bytes = input.to_vec();
    } else {
        // Eight bytes each: where, in the first 64 KiB or anywhere, and what.
        for change in input.chunks_exact(8) {
            let at = u32::from_le_bytes([change[0], change[1], change[2], change[3]]) as usize;
            let at = if at % 4 == 0 { at / 4 % bytes.len() } else { at / 4 % (64 << 10) };
            for (place, byte) in bytes.iter_mut().skip(at).zip(&change[4..]) {
                *place = *byte;
            }
        }
    }
    let _ = survey_image(&Image::from_bytes(bytes), "fuzz", &SurveyOptions::default(), &mut |_| true);
});
