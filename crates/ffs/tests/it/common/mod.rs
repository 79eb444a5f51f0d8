//! What the tests of images share: images made by other systems, trees to compare with, makefs.

#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command that must succeed; its standard output.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Images of other systems, unpacked into `scratch`, with their manifests.
pub fn foreign_images(scratch: &Path) -> Vec<(String, PathBuf, String)> {
    ["ufs1-linux", "ufs1-netbsd", "ufs2-freebsd", "ufs2-linux"]
        .into_iter()
        .map(|name| {
            let image = testkit::fixture::unpack(&format!("images/{name}.img"), scratch);
            (name.to_owned(), image, testkit::fixture::text(&format!("images/{name}.manifest")))
        })
        .collect()
}

/// What a path is, as manifests put it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    File { sha256: String, size: u64, links: u64, mode: u32 },
    Dir { mode: u32 },
    Link { target: String },
}

/// Reads a manifest: `sha256 size links mode path`, `dir mode path`, `link target path`.
pub fn manifest(text: &str) -> BTreeMap<String, Thing> {
    // A kernel message of the machine that wrote the manifest got into one of them.
    text.lines()
        .filter(|line| !line.starts_with("ufs: "))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let mode = |word: &str| u32::from_str_radix(word, 8).unwrap();
            match words.as_slice() {
                ["dir", m, path] => ((*path).to_owned(), Thing::Dir { mode: mode(m) }),
                ["link", target, path] => ((*path).to_owned(), Thing::Link { target: (*target).to_owned() }),
                [sha256, size, links, m, path] => {
                    let (size, links) = (size.parse().unwrap(), links.parse().unwrap());
                    ((*path).to_owned(), Thing::File { sha256: (*sha256).to_owned(), size, links, mode: mode(m) })
                }
                other => panic!("a manifest line of {} words: {line}", other.len()),
            }
        })
        .collect()
}

/// The same of a tree on this machine; hashes by sha256sum.
pub fn tree(root: &Path) -> BTreeMap<String, Thing> {
    let mut things = BTreeMap::new();
    let mut to_hash = Vec::new();
    let mut todo = vec![root.to_owned()];
    while let Some(path) = todo.pop() {
        let meta = path.symlink_metadata().unwrap();
        let below = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let name = if below.is_empty() { ".".to_owned() } else { format!("./{below}") };
        let mode = meta.mode() & 0o7777;
        if meta.is_dir() {
            things.insert(name, Thing::Dir { mode });
            todo.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        } else if meta.is_symlink() {
            let target = std::fs::read_link(&path).unwrap().to_str().unwrap().to_owned();
            things.insert(name, Thing::Link { target });
        } else if meta.is_file() {
            things.insert(
                name.clone(),
                Thing::File { sha256: String::new(), size: meta.len(), links: meta.nlink(), mode },
            );
            // Sparse giants are compared by size only.
            if meta.len() < 1 << 30 {
                to_hash.push(name);
            }
        }
    }
    for names in to_hash.chunks(200) {
        let out = run(Command::new("sha256sum").current_dir(root).arg("--").args(names));
        for line in out.lines() {
            let (hash, name) = line.split_once("  ").unwrap();
            if let Some(Thing::File { sha256, .. }) = things.get_mut(name) {
                *sha256 = hash.to_owned();
            }
        }
    }
    things
}

/// A tree with every kind of file that matters to the format: sizes around each boundary, holes, links, long names.
pub fn sample_tree(root: &Path, block: usize) {
    std::fs::create_dir(root).unwrap();
    let bytes =
        |n: usize, seed: usize| -> Vec<u8> { (0..n).map(|i| (i.wrapping_mul(31) ^ (i >> 8) ^ seed) as u8).collect() };
    let put = |name: &str, n: usize| std::fs::write(root.join(name), bytes(n, name.len())).unwrap();
    put("empty", 0);
    put("one", 1);
    for (i, n) in [block / 8, block / 8 + 1, block - 1, block, block + 1, 5 * block + 7, 12 * block].iter().enumerate()
    {
        put(&format!("size{i}"), *n);
    }
    put("first-indirect", 12 * block + 1);
    put("indirect", 12 * block + 40 * block + 5);
    std::fs::create_dir_all(root.join("dir/below/deep")).unwrap();
    std::fs::write(root.join("dir/below/deep/file"), bytes(3000, 3)).unwrap();
    for i in 0..120 {
        std::fs::write(root.join(format!("dir/{}-{i}", "n".repeat(i + 20))), bytes(i * 37, i)).unwrap();
    }
    std::fs::hard_link(root.join("size3"), root.join("dir/hard")).unwrap();
    std::os::unix::fs::symlink("../size1", root.join("dir/short")).unwrap();
    std::os::unix::fs::symlink("x/".repeat(100), root.join("dir/long")).unwrap();
    std::fs::set_permissions(root.join("one"), PermissionsExt::from_mode(0o4751)).unwrap();
    std::fs::set_permissions(root.join("dir/below"), PermissionsExt::from_mode(0o1700)).unwrap();
}

/// An image of 24 MiB of a tree by makefs.
pub fn makefs(program: &Path, image: &Path, tree: &Path, version: u32, endian: &str, bsize: u32, fsize: u32) {
    makefs_sized(program, image, tree, "24m", &format!("version={version},bsize={bsize},fsize={fsize}"), endian);
}

/// The same of a given size.
pub fn makefs_sized(program: &Path, image: &Path, tree: &Path, size: &str, options: &str, endian: &str) {
    let fixed = ["-t", "ffs", "-f", "300", "-b", "30%"];
    run(Command::new(program).args(fixed).args(["-o", options, "-s", size, "-B", endian]).arg(image).arg(tree));
}
