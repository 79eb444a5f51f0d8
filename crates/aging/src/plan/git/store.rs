//! git's own files: loose objects, packs, the index, the branch and its log.
//!
//! What is known of an object is its length, and its stored length where git stores it whole; of objects stored as
//! differences the compressed length is taken to be the mean share that whole ones have. Lengths of trees, commits and
//! of the index follow from their formats (gitformat-index(5), gitformat-pack(5)); names of trees are made up, as they
//! do not matter.

use super::history::Object;
use super::worktree::Tree;
use columnar::FileError;
use stats::random::{GOLDEN, finalise};

/// A tree's entry: mode, name of some length and the binary hash, which does not compress.
const TREE_ENTRY_BYTES: u64 = 36;
/// A usual commit object, compressed.
const COMMIT_BYTES: u64 = 200;
/// An index entry with a path of some length; header and checksum.
const INDEX_ENTRY_BYTES: u64 = 96;
const INDEX_FIXED_BYTES: u64 = 32;
/// A line of the branch's log, and the branch itself.
const LOG_LINE_BYTES: u64 = 150;
const REF_BYTES: u64 = 41;
/// A pack's index: fan-out table and checksums; per object hash, checksum and offset.
const PACK_INDEX_FIXED_BYTES: u64 = 1072;
const PACK_INDEX_OBJECT_BYTES: u64 = 28;
/// Packs above which git joins them all (`gc.autoPackLimit`).
const PACKS_MAX: usize = 50;

struct Pack {
    name: String,
    bytes: u64,
    objects: u64,
}

/// The object store.
pub(super) struct Store {
    gc_every: u64,
    loose: Vec<(Vec<u8>, u64)>,
    packs: Vec<Pack>,
    made_up: u64,
    /// Sums over objects stored whole, for the mean share.
    whole_bytes: f64,
    whole_stored_bytes: f64,
}

impl Store {
    pub(super) fn new(gc_every: u64) -> Store {
        Store { gc_every, loose: Vec::new(), packs: Vec::new(), made_up: 0, whole_bytes: 1.0, whole_stored_bytes: 0.4 }
    }

    /// Packs written so far and still there.
    pub(super) fn packs(&self) -> usize {
        self.packs.len()
    }

    /// The length of an object compressed by itself.
    pub(super) fn compressed(&mut self, object: Object) -> u64 {
        if let Some(stored) = object.stored_bytes {
            self.whole_bytes += object.bytes as f64;
            self.whole_stored_bytes += stored as f64;
            return stored;
        }
        (object.bytes as f64 * self.whole_stored_bytes / self.whole_bytes) as u64 + 16
    }

    /// A name for an object that git was not asked for.
    fn made_up(&mut self) -> String {
        self.made_up += 1;
        // splitmix64, three times over for forty digits: spread as hashes are.
        let mut digits = String::new();
        for i in 0..3 {
            digits.push_str(&format!("{:016x}", finalise((self.made_up * 3 + i).wrapping_mul(GOLDEN))));
        }
        digits.truncate(40);
        digits
    }

    /// Writes one loose object: under a temporary name in its directory, then renamed.
    pub(super) fn loose(&mut self, tree: &mut Tree<'_>, hash: &str, bytes: u64) -> Result<(), FileError> {
        let (directory, rest) = hash.split_at_checked(2).unwrap_or((hash, ""));
        let path = format!(".git/objects/{directory}/{rest}").into_bytes();
        if tree.has_file(&path) {
            return Ok(());
        }
        let temporary = format!(".git/objects/{directory}/tmp_obj_{:06x}", self.loose.len());
        tree.replace(&path, temporary.as_bytes(), bytes)?;
        self.loose.push((path, bytes));
        Ok(())
    }

    /// The trees and the commit that a commit adds; `directories` are those with changes in them, the root included.
    pub(super) fn commit(&mut self, tree: &mut Tree<'_>, hash: &str, directories: &[Vec<u8>]) -> Result<(), FileError> {
        for directory in directories {
            let bytes = tree.names_in(directory) * TREE_ENTRY_BYTES + 16;
            let name = self.made_up();
            self.loose(tree, &name, bytes)?;
        }
        self.loose(tree, hash, COMMIT_BYTES)?;
        let entries = tree.files() as u64;
        tree.replace(b".git/index", b".git/index.lock", entries * INDEX_ENTRY_BYTES + INDEX_FIXED_BYTES)?;
        tree.replace(b".git/refs/heads/branch", b".git/refs/heads/branch.lock", REF_BYTES)?;
        tree.append(b".git/logs/HEAD", LOG_LINE_BYTES)?;
        tree.append(b".git/logs/refs/heads/branch", LOG_LINE_BYTES)
    }

    /// Packs the loose objects once there are enough of them.
    pub(super) fn collect(&mut self, tree: &mut Tree<'_>) -> Result<(), FileError> {
        if self.gc_every == 0 || (self.loose.len() as u64) < self.gc_every {
            return Ok(());
        }
        let loose = std::mem::take(&mut self.loose);
        let mut pack = Pack {
            name: self.made_up(),
            bytes: loose.iter().map(|(_, bytes)| bytes).sum(),
            objects: loose.len() as u64,
        };
        let old = if self.packs.len() >= PACKS_MAX { std::mem::take(&mut self.packs) } else { Vec::new() };
        for other in &old {
            pack.bytes += other.bytes;
            pack.objects += other.objects;
        }
        self.write_pack(tree, pack)?;
        for other in old {
            for suffix in ["idx", "pack"] {
                tree.unlink(format!(".git/objects/pack/pack-{}.{suffix}", other.name).as_bytes())?;
            }
        }
        for (path, _) in loose {
            // git leaves the directories that lose their last object to its next clean-up of them, which is part of
            // this.
            tree.unlink(&path)?;
            if let Some(slash) = memchr::memrchr(b'/', &path) {
                tree.remove_empty(&path[..slash])?;
            }
        }
        Ok(())
    }

    /// A pack as a clone brings it.
    pub(super) fn cloned(&mut self, tree: &mut Tree<'_>, bytes: u64, objects: u64) -> Result<(), FileError> {
        let name = self.made_up();
        self.write_pack(tree, Pack { name, bytes, objects })
    }

    fn write_pack(&mut self, tree: &mut Tree<'_>, pack: Pack) -> Result<(), FileError> {
        let index_bytes = PACK_INDEX_FIXED_BYTES + pack.objects * PACK_INDEX_OBJECT_BYTES;
        for (suffix, bytes) in [("pack", pack.bytes), ("idx", index_bytes)] {
            let path = format!(".git/objects/pack/pack-{}.{suffix}", pack.name);
            let temporary = format!(".git/objects/pack/tmp_{suffix}_{:06x}", self.packs.len());
            tree.replace(path.as_bytes(), temporary.as_bytes(), bytes)?;
        }
        self.packs.push(pack);
        Ok(())
    }
}
