//! The Sleuth Kit reads what mkfs makes and what fsck has repaired, and finds the same names and the same free space.

use crate::common::{makefs, run, sample_tree};
use crate::damage::{Patient, damages};
use crate::lab;
use ffs::mkfs::MkfsOptions;
use ffs::policy::Options;
use ffs::{Endian, FileType, Image, InsertOptions, Inserter, MemoryStore, Search, Version, fsck, mkfs};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use testkit::{Tool, tool};

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

/// Every so many of the regular files, byte for byte.
fn reads(name: &str, store: &MemoryStore, scratch: &Path, icat: &Path, every: usize) {
    let path = scratch.join("image");
    std::fs::write(&path, &store.0).unwrap();
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let mut files = BTreeMap::new();
    image
        .walk(ffs::format::ROOT_INO, &mut |_, ino, inode| {
            if inode.file_type() == Some(FileType::Regular) {
                let mut bytes = vec![0; inode.size as usize];
                image.data(ino, inode, &mut |at, data| {
                    bytes[at as usize..at as usize + data.len()].copy_from_slice(data);
                    Ok(())
                })?;
                files.insert(ino.0, bytes);
            }
            Ok(())
        })
        .unwrap();
    for (ino, bytes) in files.iter().step_by(every) {
        let out = Command::new(icat).args(["-f", "ufs"]).arg(&path).arg(ino.to_string()).output().unwrap();
        assert!(out.status.success() && out.stdout == *bytes, "{name}: inode {ino} of {} bytes", bytes.len());
    }
}

/// What the laboratory has aged and filled, and what was copied into it.
#[test]
fn the_sleuth_kit_reads_what_was_aged_and_copied_into() {
    let (Some(fsstat), Some(fls), Some(icat)) = (tool(Tool::Fsstat), tool(Tool::Fls), tool(Tool::Icat)) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("tree");
    sample_tree(&from, 4096);
    for (version, endian, words, fill) in [
        (Version::Ufs1, Endian::Little, "realloc,noswitch,smartfrags,dirpref,noorder", true),
        (Version::Ufs1, Endian::Big, "original,switch,bestfit,spread,conventional", false),
        (Version::Ufs2, Endian::Little, "realloc,metaspace,bestfit,dirpref,conventional", false),
    ] {
        let options = MkfsOptions { endian, density: Some(4096), ..MkfsOptions::new(version, 10 << 20) };
        let mut store = MemoryStore(vec![0; 10 << 20]);
        mkfs(&mut store, &options).unwrap();
        let name = format!("{version}, {endian:?}, {words}");
        let mut store = lab::age(store, words, 600, fill, 7).store;
        agrees(&name, &store, scratch.path(), &fsstat, &fls);
        reads(&name, &store, scratch.path(), &icat, 9);
        if !fill {
            let mut inserter = Inserter::open(store, Options::default(), 1_000_000_000_000_000_000).unwrap();
            inserter.insert(&from, b"/", InsertOptions::default(), &mut |_| true).unwrap();
            store = inserter.finish().unwrap().0;
            agrees(&format!("{name}, copied into"), &store, scratch.path(), &fsstat, &fls);
            reads(&name, &store, scratch.path(), &icat, 19);
        }
    }
}

#[test]
fn the_sleuth_kit_agrees() {
    let (Some(fsstat), Some(fls)) = (tool(Tool::Fsstat), tool(Tool::Fls)) else { return };
    let scratch = tempfile::tempdir().unwrap();
    for version in [Version::Ufs1, Version::Ufs2] {
        let mut store = MemoryStore(vec![0; 20 << 20]);
        let options = MkfsOptions { lost_found: true, ..MkfsOptions::new(version, 20 << 20) };
        mkfs(&mut store, &options).unwrap();
        agrees("mkfs", &store, scratch.path(), &fsstat, &fls);
    }
    let Some(program) = tool(Tool::Makefs) else { return };
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
