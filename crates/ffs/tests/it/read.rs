//! Reading images that other systems made, file for file, and getting the same bytes back from every structure.

use crate::common::{Thing, foreign_images, makefs, manifest, sample_tree, tree};
use ffs::{ExtractOptions, FileStore, GroupNo, Image, Ino, Search, Store, extract};
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use testkit::{Tool, tool};

const SPECIAL: ExtractOptions = ExtractOptions { owners: false, special: true };

fn open(path: &Path) -> Image<FileStore> {
    Image::open(FileStore::new(File::open(path).unwrap()).unwrap(), Search::Standard).unwrap()
}

/// Decodes and encodes the superblock with its copies, every group and every inode.
fn round_trip(image: &Image<FileStore>) {
    let (g, store) = (*image.geometry(), image.store());
    let same = |at: u64, bytes: &[u8], what: &str| {
        let mut on_disk = vec![0; bytes.len()];
        store.read_at(at, &mut on_disk).unwrap();
        assert!(on_disk == bytes, "{what} at byte {at} differs");
    };
    same(image.superblock_at(), &image.superblock().encode(), "superblock");
    for c in (0..g.ncg).map(GroupNo) {
        let group = image.group(c).unwrap();
        same(g.byte_of(g.group_block(c)), &group.encode(&g), "group");
        assert_ne!(group.hash_is_right(&g), Some(false));
    }
    for ino in (0..g.inodes()).map(Ino) {
        let inode = image.inode(ino).unwrap();
        same(g.inode_at(ino).unwrap(), &inode.encode(&g), "inode");
        assert_ne!(inode.hash_is_right(&g), Some(false));
    }
}

#[test]
fn images_of_other_systems_file_for_file() {
    let scratch = tempfile::tempdir().unwrap();
    for (name, path, text) in foreign_images(scratch.path()) {
        let image = open(&path);
        round_trip(&image);
        let to = scratch.path().join(&name);
        let done = extract(&image, b"/", &to, SPECIAL, &mut |_| true).unwrap();
        assert!(done.left_out.is_empty() || !done.left_out.iter().any(|l| !l.contains("root")), "{:?}", done.left_out);
        let mut found = tree(&to);
        let expected = manifest(&text);
        if name == "ufs2-freebsd" {
            let sparse: Vec<String> = found.keys().filter(|k| k.starts_with("./sparse")).cloned().collect();
            assert!(!sparse.is_empty());
            for name in sparse {
                let meta = to.join(&name).metadata().unwrap();
                assert!(meta.blocks() * 512 < 1 << 20, "{name}: holes stay holes");
                found.remove(&name);
            }
        }
        for (path, thing) in &expected {
            assert_eq!(found.get(path), Some(thing), "{name}: {path}");
        }
        let only_here: Vec<&String> = found.keys().filter(|k| !expected.contains_key(*k)).collect();
        assert_eq!(only_here, Vec::<&String>::new(), "{name}");
    }
}

#[test]
fn images_by_makefs_file_for_file() {
    let Some(program) = tool(Tool::Makefs) else { return };
    let scratch = tempfile::tempdir().unwrap();
    for (block, fragment) in [(4096, 512), (8192, 1024), (8192, 8192), (16384, 2048), (32768, 8192), (65536, 8192)] {
        let from = scratch.path().join(format!("tree{block}-{fragment}"));
        sample_tree(&from, block as usize);
        let expected = tree(&from);
        for (version, endian) in [(1, "le"), (1, "be"), (2, "le"), (2, "be")] {
            let path = scratch.path().join("made.img");
            makefs(&program, &path, &from, version, endian, block, fragment);
            let image = open(&path);
            assert_eq!((image.geometry().bsize, image.geometry().fsize), (block, fragment));
            round_trip(&image);
            let to = scratch.path().join(format!("out{block}-{fragment}-{version}-{endian}"));
            let done = extract(&image, b"/", &to, SPECIAL, &mut |_| true).unwrap();
            assert_eq!(tree(&to), expected, "{block}/{fragment}, version {version}, {endian}");
            let files = expected.values().filter(|t| matches!(t, Thing::File { .. })).count() as u64;
            assert_eq!((done.files + done.hard_links, done.hard_links), (files, 1));
            let (a, b) = (from.join("size2").metadata().unwrap(), to.join("size2").metadata().unwrap());
            assert_eq!((a.mtime(), b.mode()), (b.mtime(), a.mode()));
            std::fs::remove_file(&path).unwrap();
            std::fs::remove_dir_all(&to).unwrap();
        }
    }
}
