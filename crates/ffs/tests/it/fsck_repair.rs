//! Damage in every field class: found, repaired to a state that a second check finds clean, and nothing lost that could
//! still be reached.

use crate::common::{makefs, sample_tree};
use crate::damage::{Keeps, Patient, damages};
use ffs::format::ROOT_INO;
use ffs::fsck::Report;
use ffs::{FileType, Image, MemoryStore, Overlay, Search, fsck};
use std::collections::BTreeMap;
use testkit::{Tool, tool};

/// Files and symbolic links by path, with what they hold.
type Tree = BTreeMap<String, Vec<u8>>;

fn tree_of(store: &MemoryStore) -> Tree {
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let mut tree = Tree::new();
    image
        .walk(ROOT_INO, &mut |path, ino, inode| {
            let mut bytes = Vec::new();
            match inode.file_type() {
                Some(FileType::Regular) => {
                    bytes.resize(inode.size as usize, 0);
                    image.data(ino, inode, &mut |at, data| {
                        bytes[at as usize..at as usize + data.len()].copy_from_slice(data);
                        Ok(())
                    })?;
                }
                Some(FileType::Symlink) => bytes = image.symlink(ino, inode)?,
                _ => bytes.extend(b"directory"),
            }
            tree.insert(String::from_utf8_lossy(path).into_owned(), bytes);
            Ok(())
        })
        .unwrap();
    tree
}

fn kinds(report: &Report) -> Vec<&'static str> {
    let mut kinds: Vec<&str> = report.problems.iter().map(|p| p.kind.word()).collect();
    kinds.dedup();
    kinds
}

/// The base images: every version and byte order, blocks of 4096 bytes for several groups.
fn bases(scratch: &std::path::Path) -> Vec<(String, MemoryStore)> {
    let Some(program) = tool(Tool::Makefs) else { return Vec::new() };
    let from = scratch.join("tree");
    sample_tree(&from, 4096);
    [(1, "le"), (1, "be"), (2, "le"), (2, "be")]
        .into_iter()
        .map(|(version, endian)| {
            let path = scratch.join("base.img");
            makefs(&program, &path, &from, version, endian, 4096, 512);
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.truncate(24 << 20);
            (format!("version {version}, {endian}"), MemoryStore(bytes))
        })
        .collect()
}

#[test]
fn every_field_class() {
    let scratch = tempfile::tempdir().unwrap();
    for (n, (name, base)) in bases(scratch.path()).into_iter().enumerate() {
        let before = tree_of(&base);
        // Every kind in each format and each byte order; not in all four combinations, which takes long.
        for (what, damage, kind, keeps) in damages().into_iter().step_by(if n % 3 == 0 { 1 } else { 4 }) {
            let mut patient = Patient::new(&base);
            damage(&mut patient);
            let mut store = patient.store;
            let label = format!("{name}: {what}");
            let damaged = store.clone();
            let seen = fsck(Overlay::new(&mut store), &mut |_| true).unwrap();
            assert!(store == damaged, "{label}: a check changes nothing");
            assert!(kinds(&seen).contains(&kind), "{label}: found {:?}", seen.problems);
            let repaired = fsck(&mut store, &mut |_| true).unwrap();
            assert_eq!(repaired.problems, seen.problems, "{label}: a check finds what a repair does");
            assert_eq!(repaired.unrepaired, 0, "{label}");
            let again = fsck(Overlay::new(&mut store), &mut |_| true).unwrap();
            assert!(again.is_clean(), "{label}: {:?} after {:?}", again.problems, seen.problems);
            compare(&label, &before, &tree_of(&store), keeps, &seen);
        }
    }
}

fn compare(label: &str, before: &Tree, after: &Tree, keeps: Keeps, seen: &Report) {
    match keeps {
        Keeps::Everything => {
            for (path, bytes) in before {
                let now = after.get(path);
                assert!(
                    now == Some(bytes),
                    "{label}: {path}, {} bytes before, {:?} now; {:?}",
                    bytes.len(),
                    now.map(Vec::len),
                    seen.problems
                );
            }
            assert_eq!(before.len(), after.len(), "{label}");
        }
        Keeps::Contents => {
            let held: Vec<&Vec<u8>> = after.values().collect();
            for (path, bytes) in before {
                assert!(
                    bytes == b"directory" || held.contains(&bytes),
                    "{label}: what {path} held is lost; {:?}",
                    seen.problems
                );
            }
        }
        Keeps::AllBut(n) => {
            let changed: Vec<&String> =
                before.iter().filter(|(p, b)| after.get(*p) != Some(b)).map(|(p, _)| p).collect();
            // A file with two names changes under both.
            assert!(
                changed.len() <= n + usize::from(changed.iter().any(|p| p.contains("hard"))),
                "{label}: {changed:?} changed"
            );
        }
    }
}
