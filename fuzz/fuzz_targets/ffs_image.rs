//! Any bytes as an FFS image, or any changes to a small sound one: readers and checks end without a panic, and what a check has
//! repaired is clean. The first byte says which.
#![no_main]

use ffs::format::ROOT_INO;
use ffs::mkfs::{GroupSize, MkfsOptions};
use ffs::{Image, MemoryStore, Overlay, Search, Version};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

const BYTES: usize = 1 << 20;

fn sound(version: Version) -> &'static MemoryStore {
    static MADE: [OnceLock<MemoryStore>; 2] = [OnceLock::new(), OnceLock::new()];
    MADE[usize::from(version == Version::Ufs2)].get_or_init(|| {
        let mut store = MemoryStore(vec![0; BYTES]);
        let options = MkfsOptions {
            bsize: 4096,
            fsize: 512,
            group: Some(GroupSize::Fragments(512)),
            ipg: Some(64),
            lost_found: true,
            ..MkfsOptions::new(version, BYTES as u64)
        };
        ffs::mkfs(&mut store, &options).expect("sound options");
        store
    })
}

fuzz_target!(|input: &[u8]| {
    let Some((which, rest)) = input.split_first() else { return };
    let mut store = match which % 3 {
        0 => MemoryStore(rest.to_vec()),
        1 => sound(Version::Ufs1).clone(),
        _ => sound(Version::Ufs2).clone(),
    };
    if which % 3 != 0 {
        // Changes of eight bytes each: where, in the first 256 KiB or anywhere, and what.
        for change in rest.chunks_exact(8) {
            let at = u32::from_le_bytes([change[0], change[1], change[2], change[3]]) as usize;
            let at = if at % 4 == 0 { at / 4 % BYTES } else { at / 4 % (BYTES / 4) };
            for (place, byte) in store.0.iter_mut().skip(at).zip(&change[4..]) {
                *place = *byte;
            }
        }
    }
    if let Ok(image) = Image::open(store.clone(), Search::Copies) {
        let _ = image.dump_groups();
        let _ = image.dump_free();
        let _ = image.walk(ROOT_INO, &mut |_, ino, inode| {
            let _ = image.symlink(ino, inode);
            image.data(ino, inode, &mut |_, _| Ok(()))
        });
    }
    if let Ok(report) = ffs::fsck(&mut store, &mut |_| true) {
        if report.unrepaired == 0 {
            let again = ffs::fsck(Overlay::new(&mut store), &mut |_| true).expect("it was readable a moment ago");
            assert!(again.is_clean(), "{:?} after {:?}", again.problems, report.problems);
        }
    }
});
