//! Whether everything in memory agrees: what fsck asks of an image, asked of the live structures.

use super::node::{Body, Node};
use crate::DiskInode;
use crate::directory::Directory;
use rustc_hash::FxHashMap;
use std::fmt;

/// Something that does not agree with something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The inode concerned, if one is.
    pub ino: Option<u32>,
    /// What.
    pub what: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ino {
            Some(ino) => write!(f, "inode {ino}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// As many are listed.
const MOST: usize = 100;

/// Lists a disagreement, unless something agrees.
pub fn note(found: &mut Vec<Disagreement>, agrees: bool, ino: Option<u32>, what: impl FnOnce() -> String) {
    if !agrees && found.len() < MOST {
        found.push(Disagreement { ino, what: what() });
    }
}

/// What link counts are to names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The same.
    AreNames,
    /// A crash may have left more; the `..` of a directory without a name may not be counted yet.
    MayBeMore,
}

/// Every inode has as many names as links, and nothing else has any. `unnamed` is an inode in use that has none.
pub fn links<'a, D: DiskInode + 'a, O: 'a>(
    inodes: impl Iterator<Item = (u32, &'a Node<D, O>)> + Clone,
    unnamed: Option<u32>,
    links: Links,
    found: &mut Vec<Disagreement>,
) {
    let mut names: FxHashMap<u32, i32> = FxHashMap::default();
    let mut parents: Vec<(u32, u32)> = Vec::new();
    for (ino, node) in inodes.clone() {
        let Body::Directory(directory) = &node.body else { continue };
        let mut at = 0;
        while let Some((here, head, name)) = directory.entry_from(at) {
            // One that was removed and is still open has entries that do not count.
            if node.d.nlink() > 0 {
                match name {
                    b"." | b".." if links == Links::MayBeMore => parents.push((ino, head.ino)),
                    _ => *names.entry(head.ino).or_default() += 1,
                }
            }
            at = Directory::behind(here, &head);
        }
        let same = directory.len_bytes() == node.d.size();
        note(found, same, Some(ino), || format!("directory of {} bytes", directory.len_bytes()));
    }
    let named = names.clone();
    for (dir, parent) in parents {
        if dir == parent || named.contains_key(&dir) {
            *names.entry(parent).or_default() += 1;
        }
    }
    for (ino, node) in inodes.filter(|(ino, _)| Some(*ino) != unnamed) {
        let counted = names.remove(&ino).unwrap_or(0);
        let nlink = i32::from(node.d.nlink());
        let agrees = counted == nlink || links == Links::MayBeMore && counted < nlink;
        note(found, agrees, Some(ino), || format!("has {counted} names and {} links", node.d.nlink()));
    }
    let mut lost: Vec<_> = names.into_iter().collect();
    lost.sort_unstable();
    for (ino, count) in lost {
        note(found, false, Some(ino), || format!("is not in use and has {count} names"));
    }
}
