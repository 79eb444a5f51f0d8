//! Shared by the tests of the replayer.
#![allow(dead_code, clippy::unwrap_used)] // Each test uses a part; helpers may fail by panicking.

pub mod faulty;
pub mod lagging;
pub mod plans;

use aging::Tree;
use aging::age::{AgeError, AgeOptions, AgeResult, Begin, Observer, age, identity};
use aging::format::Reader;
use posix::{FileKind, Mounted};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Nothing is watched.
pub struct Nobody;
impl<F> Observer<F> for Nobody {}

/// Path, and what is there: kind and length (of directories 0).
pub type Listing = BTreeMap<PathBuf, (FileKind, u64)>;

/// What the plan says is there at its end.
pub fn planned(plan: &Reader) -> Listing {
    let mut tree = Tree::new();
    let (mut names, mut links) = (BTreeMap::new(), BTreeMap::new());
    for batch in plan.batches(0) {
        for op in batch.expect("a readable plan") {
            tree.apply(&op).expect("a possible operation");
            use aging::OpKind::{Create, Mkdir, Rename, Symlink};
            if matches!(op.kind, Create | Mkdir | Rename | Symlink) {
                names.insert(op.node, op.name.clone());
            }
            if op.kind == Symlink {
                links.insert(op.node, op.size_bytes);
            }
        }
    }
    let mut listing = Listing::new();
    for (id, node) in tree.nodes().filter(|(id, _)| id.0 != 0) {
        let mut path = PathBuf::new();
        let mut at = id;
        let mut components = Vec::new();
        while at.0 != 0 {
            let found = tree.get(at).expect("alive");
            let derived = aging::AgingOp::derived_name(at, found.kind == FileKind::Directory);
            let given = names[&at].as_deref().map(|n| String::from_utf8_lossy(n).into_owned());
            components.push(given.unwrap_or(derived));
            at = found.parent;
        }
        path.extend(components.iter().rev());
        let size = links.get(&id).copied().unwrap_or(node.size_bytes);
        listing.insert(path, (node.kind, size));
    }
    listing
}

/// What is there.
pub fn walked(root: &Path) -> Listing {
    let mut listing = Listing::new();
    let mut queue = vec![root.to_owned()];
    while let Some(dir) = queue.pop() {
        for entry in std::fs::read_dir(&dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            let meta = path.symlink_metadata().expect("there");
            let relative = path.strip_prefix(root).expect("below").to_owned();
            if relative == Path::new(aging::age::MARKER_NAME) {
                continue;
            }
            let found = if meta.is_dir() {
                queue.push(path);
                (FileKind::Directory, 0)
            } else if meta.is_symlink() {
                (FileKind::Symlink, meta.len())
            } else {
                (FileKind::File, meta.len())
            };
            listing.insert(relative, found);
        }
    }
    listing
}

/// Fails with the first differences of two trees.
pub fn same(found: &Listing, expected: &Listing, what: &str) {
    let one_sided = |a: &Listing, b: &Listing| -> Vec<_> {
        let differs = |(path, value): &(&PathBuf, &(FileKind, u64))| b.get(*path) != Some(*value);
        a.iter().filter(differs).take(5).map(|(p, v)| (p.clone(), *v)).collect()
    };
    let (more, less) = (one_sided(found, expected), one_sided(expected, found));
    assert!(more.is_empty() && less.is_empty(), "{what}: found {more:?}, expected {less:?}");
}

/// Replays a plan in a directory.
pub fn replay(root: &Path, plan: &Path, options: &AgeOptions) -> Result<AgeResult, AgeError> {
    let mut fs = Mounted::open(root).expect("a directory");
    let reader = Reader::open(plan)?;
    let begin = Begin { plan: identity(plan)?, groups: Err("not asked".into()), resume: None };
    age(&mut fs, &reader, options, begin, &mut Nobody)
}
