//! File systems made again from their free-space maps: just the same is free, every checker finds them sound, and files
//! are written into what is free as into any other.

use crate::common::{foreign_images, makefs, sample_tree};
use crate::live::{Case, Run, cases};
use device::fixed::FixedDevice;
use ffs::format::ROOT_INO;
use ffs::mkfs::MkfsOptions;
use ffs::policy::Options;
use ffs::{Endian, Ffs, FfsError, FileStore, FreeMaps, Image, MemoryStore, Search, Version, fsck};
use kernel::{Lab, Machine, Setup, Volume as _};
use posix::{Call, FileSystem as _, Mode, OpenFlags};
use testkit::{Tool, tool};

/// Builds from maps, writes the image, and has everything look at it.
fn reconstructed(maps: &FreeMaps) -> (Ffs, MemoryStore) {
    let volume = Ffs::from_free_maps(maps, Options::default()).unwrap();
    let mut store = MemoryStore(vec![0; maps.size_bytes() as usize]);
    volume.store(&mut store, None).unwrap();
    let report = fsck(&mut store, &mut |_| true).unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
    let image = Image::open(store, Search::Standard).unwrap();
    assert_eq!(FreeMaps::of_image(&image).unwrap(), FreeMaps::of(&volume).unwrap());
    Ffs::load(&image, Options::default()).unwrap();
    (volume, image.into_store())
}

fn aged(case: Case, steps: u64) -> MemoryStore {
    let mut run = Run::new(Case { bytes: true, ..case });
    for _ in 0..steps {
        run.step();
    }
    run.disk()
}

#[test]
fn the_same_is_free_and_nothing_else() {
    let mut pieces = 0;
    for case in cases(true) {
        let image = Image::open(aged(case.clone(), 500), Search::Standard).unwrap();
        let maps = FreeMaps::of_image(&image).unwrap();
        let (volume, _) = reconstructed(&maps);
        assert_eq!(FreeMaps::of(&volume).unwrap(), maps, "{case:?}");
        let root = volume.attributes(ROOT_INO).unwrap();
        assert!(root.size_bytes <= 1024, "the root holds no data");
        pieces += (0..volume.geometry().ncg).map(|group| maps.runs(ffs::GroupNo(group)).count()).sum::<usize>();
    }
    assert!(pieces > 300, "{pieces} runs of free fragments are no aged file systems");
}

#[test]
fn emptied_is_as_newly_made() {
    for version in [Version::Ufs1, Version::Ufs2] {
        let new = Ffs::format(&MkfsOptions::new(version, 24 << 20), Options::default()).unwrap();
        let emptied = FreeMaps::of(&new).unwrap().emptied().unwrap();
        assert_eq!(emptied.free_frags(), FreeMaps::of(&new).unwrap().free_frags() + 1, "the root's fragment");
        let (volume, _) = reconstructed(&emptied);
        assert_eq!(FreeMaps::of(&volume).unwrap(), FreeMaps::of(&new).unwrap());
        assert_eq!(volume.space().total(), new.space().total());
    }
}

/// A superblock of which any word is anything is refused, or made sound. Found by fuzzing: a number of pointers of 0
/// stayed as it was.
#[test]
fn what_a_superblock_says_of_itself_is_put_right() {
    let mut made = 0;
    for version in [Version::Ufs1, Version::Ufs2] {
        let options =
            MkfsOptions { bsize: 4096, fsize: 512, density: Some(16384), ..MkfsOptions::new(version, 1 << 20) };
        let value = serde_json::to_value(stored(&options)).unwrap();
        for (at, word) in (0..1376).step_by(4).flat_map(|at| ["00000000", "ffffff7f"].map(|word| (at, word))) {
            let mut changed = value.clone();
            let mut superblock = changed["superblock"].as_str().unwrap().to_owned();
            superblock.replace_range(2 * at..2 * at + 8, word);
            changed["superblock"] = superblock.into();
            let Ok(maps) = serde_json::from_value::<FreeMaps>(changed) else { continue };
            let Ok(volume) = Ffs::from_free_maps(&maps, Options::default()) else { continue };
            let mut store = MemoryStore(vec![0; maps.size_bytes() as usize]);
            volume.store(&mut store, None).unwrap();
            let report = fsck(&mut store, &mut |_| true).unwrap();
            assert!(report.is_clean(), "{version:?}, {word} at byte {at}: {:#?}", report.problems);
            made += 1;
        }
    }
    assert!(made > 500, "{made} of them were made");
}

/// Every other fragment is used, of all groups and then, without a whole block anywhere for directories, of the last
/// one only.
#[test]
fn held_in_small_pieces() {
    let options = MkfsOptions { density: Some(1024), ..MkfsOptions::new(Version::Ufs1, 6 << 20) };
    let empty = stored(&options);
    let odd = |runs: Vec<(u32, u32)>| -> Vec<(u32, u32)> {
        runs.iter().flat_map(|(from, frags)| (*from..from + frags).step_by(2)).map(|frag| (frag, 1)).collect()
    };
    let groups = empty.geometry().ncg;
    for (from, blocks) in [(0, true), (groups - 1, true), (groups - 1, false)] {
        let mut value = serde_json::to_value(&empty).unwrap();
        for number in from..groups {
            let mut runs: Vec<(u32, u32)> = serde_json::from_value(value["free"][number as usize].clone()).unwrap();
            // Some whole blocks in use at the end, or none.
            let last = runs.last_mut().unwrap();
            last.1 = if blocks { (last.1 - 128) / 8 * 8 } else { 80 };
            let tail = (last.0 + last.1, 800);
            let mut free = odd(runs);
            if !blocks {
                free.push(tail);
            }
            value["free"][number as usize] = serde_json::to_value(free).unwrap();
        }
        let maps: FreeMaps = serde_json::from_value(value).unwrap();
        let (volume, _) = reconstructed(&maps);
        assert_eq!(FreeMaps::of(&volume).unwrap(), maps);
    }
}

fn stored(options: &MkfsOptions) -> FreeMaps {
    FreeMaps::of(&Ffs::format(options, Options::default()).unwrap()).unwrap()
}

/// A superblock at byte 73728 that does not say where it belongs.
fn nowhere(value: &serde_json::Value) -> (serde_json::Value, serde_json::Value) {
    let mut superblock = value["superblock"].as_str().unwrap().to_owned();
    superblock.replace_range(2000..2016, "ffffffffffffffff");
    (73728.into(), superblock.into())
}

#[test]
fn the_form_in_files_and_what_is_wrong_with_it() {
    for (version, endian) in [(Version::Ufs1, Endian::Big), (Version::Ufs2, Endian::Little)] {
        let maps = stored(&MkfsOptions { endian, ..MkfsOptions::new(version, 8 << 20) });
        let value = serde_json::to_value(&maps).unwrap();
        assert_eq!(serde_json::from_value::<FreeMaps>(value.clone()).unwrap(), maps);
        let changed = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut value = value.clone();
            change(&mut value);
            serde_json::from_value::<FreeMaps>(value).unwrap_err().to_string()
        };
        let refused = [
            (changed(&|v| v["free"].as_array_mut().unwrap().truncate(1)), "maps of 1 groups"),
            (changed(&|v| v["free"][0] = serde_json::json!([[0, 1]])), "metadata is free"),
            (changed(&|v| v["free"][1] = serde_json::json!([[4_000_000_000_u32, 4_000_000_000_u32]])), "has no"),
            (changed(&|v| v["superblock"] = "0".into()), "hexadecimal"),
            (changed(&|v| v["superblock"] = "00".repeat(2000).into()), "magic"),
        ];
        for (message, part) in refused {
            assert!(message.contains(part), "{message}");
        }
        // A fuzzer's finding (00 2f ca ec 0b bc): the summaries of groups lie among what is free, and then files got
        // their place.
        let moved = |v: &mut serde_json::Value| {
            let mut bytes = v["superblock"].as_str().unwrap().to_owned();
            // The lowest byte of csaddr, where UFS1 had it and where both have it now.
            for (at, width) in [(152, 4), (1096, 8)] {
                let byte = 2 * if endian == Endian::Big { at + width - 1 } else { at };
                bytes.replace_range(byte..byte + 2, "f8");
            }
            v["superblock"] = bytes.into();
        };
        let message = changed(&moved);
        assert!(message.contains("summaries"), "{message}");
        // A fuzzer's finding (86 3b 2a 3b e8 ...): copies of the superblock, written last, wiped out the groups behind
        // them.
        let close = |v: &mut serde_json::Value| {
            let mut bytes = v["superblock"].as_str().unwrap().to_owned();
            // sblkno becomes the last fragment before cblkno.
            let byte = |at: usize| 2 * if endian == Endian::Big { at + 3 } else { at };
            let cblkno = u8::from_str_radix(&bytes[byte(12)..byte(12) + 2], 16).unwrap();
            bytes.replace_range(byte(8)..byte(8) + 2, &format!("{:02x}", cblkno - 1));
            v["superblock"] = bytes.into();
        };
        // A fragment of the other holds a superblock.
        if version == Version::Ufs1 {
            let message = changed(&close);
            assert!(message.contains("copies of the superblock"), "{message}");
        }
        if version == Version::Ufs2 {
            // A fuzzer's finding: what was made had its superblock where no check looks for it.
            let message = changed(&|v| (v["superblock_at"], v["superblock"]) = nowhere(v));
            assert!(message.contains("at byte 73728"), "{message}");
        }
    }
    let full = serde_json::from_value::<FreeMaps>(serde_json::json!({
        "superblock_at": 0, "superblock": "", "free": []
    }));
    assert!(full.is_err());
}

/// More pieces than inodes is an error, not an endless file system.
#[test]
fn too_many_pieces() {
    let options = MkfsOptions { ipg: Some(64), ..MkfsOptions::new(Version::Ufs1, 8 << 20) };
    let mut value = serde_json::to_value(stored(&options)).unwrap();
    for group in value["free"].as_array_mut().unwrap() {
        let runs: Vec<(u32, u32)> = serde_json::from_value(group.clone()).unwrap();
        let odd: Vec<(u32, u32)> =
            runs.iter().flat_map(|(from, frags)| (*from..from + frags).step_by(2)).map(|frag| (frag, 1)).collect();
        *group = serde_json::to_value(odd).unwrap();
    }
    let maps: FreeMaps = serde_json::from_value(value).unwrap();
    let refused = Ffs::from_free_maps(&maps, Options::default());
    assert!(matches!(&refused, Err(FfsError::FreeMaps(why)) if why.contains("inodes")), "{refused:?}");
}

/// Files that hold something can be removed like others: then everything is free.
#[test]
fn what_is_held_can_be_given_back() {
    let image = Image::open(aged(cases(true).remove(0), 1500), Search::Standard).unwrap();
    let maps = FreeMaps::of_image(&image).unwrap();
    let volume = Ffs::from_free_maps(&maps, Options::default()).unwrap();
    let setup =
        Setup { machine: Machine::load("today").unwrap(), target: "ffs".into(), drive: "fixed".into(), epoch_ns: 0 };
    let mut lab = Lab::new(volume, Box::new(FixedDevice::new(maps.size_bytes(), 1_000_000)), setup).unwrap();
    let directories = names(&mut lab, ".");
    assert!(!directories.is_empty() && directories.iter().all(|name| name.starts_with(".held")));
    for directory in directories {
        for file in names(&mut lab, &directory) {
            assert!(lab.call(&Call::Unlink { at: format!("{directory}/{file}").as_str().into() }).result.is_ok());
        }
        assert!(lab.call(&Call::Rmdir { at: directory.as_str().into() }).result.is_ok());
    }
    let volume = lab.unmount().unwrap();
    assert!(volume.check().is_empty());
    assert_eq!(
        FreeMaps::of(&volume).unwrap().free_frags() + 1,
        maps.emptied().unwrap().free_frags(),
        "but the root's fragment"
    );
}

fn names(lab: &mut Lab<Ffs>, directory: &str) -> Vec<String> {
    let open = Call::Open { at: directory.into(), flags: OpenFlags::READ, mode: Mode(0) };
    let fd = lab.call(&open).fd().unwrap();
    let names = lab.entries(fd).unwrap().into_iter().map(|(name, _)| name.into_string().unwrap()).collect();
    assert!(lab.call(&Call::Close { fd }).result.is_ok());
    names
}

/// Images of other systems, and of makefs: their metadata may lie elsewhere.
#[test]
fn images_of_other_systems() {
    let scratch = tempfile::tempdir().unwrap();
    for (name, path, _) in foreign_images(scratch.path()) {
        let store = FileStore::new(std::fs::File::open(path).unwrap()).unwrap();
        same_again(&name, store);
    }
    let Some(program) = tool(Tool::Makefs) else { return };
    let tree = scratch.path().join("tree");
    sample_tree(&tree, 8192);
    for (version, endian) in [(1, "le"), (1, "be"), (2, "le")] {
        let path = scratch.path().join(format!("made{version}{endian}"));
        makefs(&program, &path, &tree, version, endian, 8192, 1024);
        same_again(endian, FileStore::new(std::fs::File::open(path).unwrap()).unwrap());
    }
}

fn same_again(name: &str, store: FileStore) {
    let image = Image::open(store, Search::Standard).unwrap();
    let maps = FreeMaps::of_image(&image).unwrap();
    let (volume, _) = reconstructed(&maps);
    assert_eq!(FreeMaps::of(&volume).unwrap(), maps, "{name}");
}
