//! Free maps: those of a sound image with a few values changed, or with any bytes of its superblock changed, are
//! refused, or a file system is made from them that its own check finds sound.

#![no_main]

#[path = "common/documents.rs"]
mod documents;

use ffs::mkfs::{GroupSize, MkfsOptions};
use ffs::policy::Options;
use ffs::{Ffs, FreeMaps, Image, MemoryStore, Search, Version};
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use std::sync::OnceLock;

const BYTES: u64 = 1 << 20;

fn sound() -> &'static [Value; 2] {
    static MADE: OnceLock<[Value; 2]> = OnceLock::new();
    MADE.get_or_init(|| {
        [Version::Ufs1, Version::Ufs2].map(|version| {
            let mut store = MemoryStore(vec![0; BYTES as usize]);
            let options = MkfsOptions {
                bsize: 4096,
                fsize: 512,
                group: Some(GroupSize::Fragments(512)),
                ipg: Some(64),
                ..MkfsOptions::new(version, BYTES)
            };
            ffs::mkfs(&mut store, &options).expect("sound options");
            let image = Image::open(store, Search::Standard).expect("sound");
            serde_json::to_value(FreeMaps::of_image(&image).expect("sound")).expect("JSON")
        })
    })
}

/// Changes bytes of the superblock, which is hexadecimal text.
fn change_superblock(value: &mut Value, u: &mut Unstructured<'_>) -> Option<()> {
    let mut text = value["superblock"].as_str()?.to_owned().into_bytes();
    for _ in 0..u.int_in_range(0..=4).ok()? {
        let at = u.int_in_range(0..=text.len().checked_sub(8)?).ok()? & !1;
        for digit in text.get_mut(at..at + 8)? {
            *digit = b"00000001234567ff"[usize::from(u.arbitrary::<u8>().ok()? % 16)];
        }
    }
    value["superblock"] = String::from_utf8(text).ok()?.into();
    Some(())
}

fuzz_target!(|input: &[u8]| {
    let mut u = Unstructured::new(input);
    let which = usize::from(u.arbitrary::<bool>().unwrap_or(false));
    let mut value = sound()[which].clone();
    if u.arbitrary().unwrap_or(false) {
        let _ = change_superblock(&mut value, &mut u);
    } else {
        value = documents::changed(value, &mut u);
    }
    let Ok(maps) = serde_json::from_value::<FreeMaps>(value) else { return };
    let _ = (maps.figures(), maps.emptied().map(|maps| maps.figures()));
    // A sparse store would do; this one is in memory.
    if maps.size_bytes() > 64 << 20 {
        return;
    }
    let Ok(volume) = Ffs::from_free_maps(&maps, Options::default()) else { return };
    let mut store = MemoryStore(vec![0; maps.size_bytes() as usize]);
    if volume.store(&mut store, None).is_ok() {
        let report = ffs::fsck(&mut store, &mut |_| true).expect("what was just made can be read");
        assert!(report.is_clean(), "{:?}", report.problems);
    }
});
