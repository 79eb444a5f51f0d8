//! The Sleuth Kit reads what mkfs makes and what fsck has repaired, and finds the same names and the same free space.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/damage.rs"]
mod damage;

use common::{makefs, run, sample_tree, tool};
use damage::{Patient, damages};
use ffs::mkfs::MkfsOptions;
use ffs::{Image, MemoryStore, Search, Version, fsck, mkfs};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The number after a label in what fsstat prints.
fn figure(text: &str, label: &str) -> i64 {
    let line = text.lines().find(|line| line.starts_with(label)).unwrap_or_else(|| panic!("no {label} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn agrees(name: &str, store: &MemoryStore, scratch: &Path, fsstat: &Path, fls: &Path) {
    let path = scratch.join("image");
    std::fs::write(&path, &store.0).unwrap();
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let (sb, g) = (image.superblock(), image.geometry());
    let text = run(Command::new(fsstat).args(["-f", "ufs"]).arg(&path));
    for (label, expected) in [
        ("Num of Directories:", sb.cstotal().ndir),
        ("Num of Avail Inodes:", sb.cstotal().nifree),
        ("Num of Avail Full Blocks:", sb.cstotal().nbfree),
        ("Num of Avail Fragments:", sb.cstotal().nffree),
        ("Number of Cylinder Groups:", g.ncg.into()),
        ("Inodes per group:", g.ipg.into()),
        ("Fragments per group:", g.fpg.into()),
        ("Block Size:", g.bsize.into()),
    ] {
        assert_eq!(figure(&text, label), expected, "{name}: {label}");
    }
    let mut ours = BTreeSet::new();
    image
        .walk(ffs::format::ROOT_INO, &mut |path, ino, _| {
            let path = String::from_utf8(path.to_vec()).unwrap();
            ours.extend(path.strip_prefix("./").map(|path| (ino.0, path.to_owned())));
            Ok(())
        })
        .unwrap();
    let theirs: BTreeSet<(u32, String)> = run(Command::new(fls).args(["-f", "ufs", "-r", "-p", "-u"]).arg(&path))
        .lines()
        .filter(|line| !line.contains("$OrphanFiles"))
        .map(|line| {
            let (head, path) = line.split_once('\t').unwrap();
            (head.split_whitespace().last().unwrap().trim_end_matches(':').parse().unwrap(), path.to_owned())
        })
        .collect();
    assert_eq!(theirs, ours, "{name}");
}

#[test]
fn the_sleuth_kit_agrees() {
    let (Some(fsstat), Some(fls)) = (tool("fsstat"), tool("fls")) else { return };
    let scratch = tempfile::tempdir().unwrap();
    for version in [Version::Ufs1, Version::Ufs2] {
        let mut store = MemoryStore(vec![0; 20 << 20]);
        let options = MkfsOptions { lost_found: true, ..MkfsOptions::new(version, 20 << 20) };
        mkfs(&mut store, &options).unwrap();
        agrees("mkfs", &store, scratch.path(), &fsstat, &fls);
    }
    let Some(program) = tool("makefs") else { return };
    let from = scratch.path().join("tree");
    sample_tree(&from, 4096);
    for (version, endian) in [(1, "le"), (1, "be")] {
        let path = scratch.path().join("base.img");
        makefs(&program, &path, &from, version, endian, 4096, 512);
        let base = MemoryStore(std::fs::read(&path).unwrap());
        for (what, damage, ..) in damages().into_iter().step_by(12) {
            let mut patient = Patient::new(&base);
            damage(&mut patient);
            fsck(&mut patient.store, &mut |_| true).unwrap();
            agrees(&format!("version {version}, {endian}, {what}"), &patient.store, scratch.path(), &fsstat, &fls);
        }
    }
}
