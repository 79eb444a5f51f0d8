//! Sequences of operations: all short ones over a few names, and long ones drawn by a seed.

use crate::{Found, Identity, Kind, Op};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;

/// What every sequence finds: a file in the root, a directory with a file of more than a block, everything synced.
pub fn prologue(block_bytes: u32) -> Vec<Op> {
    let path = |path: &str| path.to_owned();
    vec![
        Op::Create { path: path("a") },
        Op::Write { path: path("a"), at_byte: 0, len_bytes: 2500 },
        Op::Mkdir { path: path("d") },
        Op::Create { path: path("d/b") },
        Op::Write { path: path("d/b"), at_byte: 0, len_bytes: u64::from(block_bytes) + 900 },
        Op::Sync,
    ]
}

/// How long time passes at the end of a sequence, milliseconds: until the kernel has written back everything.
pub const SETTLE_MS: u64 = 65_000;

/// Names of short sequences.
const FILES: [&str; 3] = ["a", "b", "d/b"];
const DIRECTORIES: [&str; 2] = ["d", "e"];

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Directory,
    /// Which file: several names may be one's.
    File(u32),
    /// A symbolic link: nobody writes through it.
    Link,
}

/// A tree as far as it says which operations make sense.
#[derive(Clone, Debug, Default)]
struct Names {
    paths: BTreeMap<String, Node>,
    lengths: BTreeMap<u32, u64>,
    made: u32,
}

impl Names {
    fn after(ops: &[Op]) -> Names {
        let mut names = Names::default();
        ops.iter().for_each(|op| names.perform(op));
        names
    }

    fn of(found: &Found) -> Names {
        let mut names = Names::default();
        let mut known: BTreeMap<Identity, u32> = BTreeMap::new();
        for (path, id) in &found.tree {
            let Some((kind, content)) = found.files.get(id) else { continue };
            let node = match kind {
                Kind::Directory => Node::Directory,
                Kind::File => {
                    let file = *known.entry(*id).or_insert_with(|| {
                        names.made += 1;
                        names.made
                    });
                    names.lengths.insert(file, content.len());
                    Node::File(file)
                }
                Kind::Symlink | Kind::Special => Node::Link,
            };
            names.paths.insert(path.clone(), node);
        }
        names
    }

    fn has_parent(&self, path: &str) -> bool {
        path.rsplit_once('/').is_none_or(|(parent, _)| self.is_directory(parent))
    }

    fn is_free(&self, path: &str) -> bool {
        !self.paths.contains_key(path) && self.has_parent(path)
    }

    fn is_empty_directory(&self, path: &str) -> bool {
        let below = format!("{path}/");
        self.is_directory(path) && !self.paths.keys().any(|other| other.starts_with(&below))
    }

    fn is_directory(&self, path: &str) -> bool {
        self.paths.get(path) == Some(&Node::Directory)
    }

    fn file(&self, path: &str) -> Option<u32> {
        match self.paths.get(path) {
            Some(Node::File(file)) => Some(*file),
            _ => None,
        }
    }

    fn length(&self, path: &str) -> Option<u64> {
        self.file(path).and_then(|file| self.lengths.get(&file).copied())
    }

    fn perform(&mut self, op: &Op) {
        match op {
            Op::Create { path } => {
                self.made += 1;
                self.paths.insert(path.clone(), Node::File(self.made));
                self.lengths.insert(self.made, 0);
            }
            Op::Mkdir { path } => {
                self.paths.insert(path.clone(), Node::Directory);
            }
            Op::Symlink { path, .. } => {
                self.paths.insert(path.clone(), Node::Link);
            }
            Op::Write { path, at_byte, len_bytes } => {
                let end = at_byte + len_bytes;
                let file = self.file(path);
                if let Some(length) = file.and_then(|file| self.lengths.get_mut(&file)) {
                    *length = (*length).max(end);
                }
            }
            Op::Truncate { path, len_bytes } => {
                let file = self.file(path);
                if let Some(length) = file.and_then(|file| self.lengths.get_mut(&file)) {
                    *length = *len_bytes;
                }
            }
            Op::Rename { from, to } => {
                let below = format!("{from}/");
                let moved: Vec<(String, Node)> = self
                    .paths
                    .iter()
                    .filter(|(path, _)| *path == from || path.starts_with(&below))
                    .map(|(path, file)| (path.clone(), *file))
                    .collect();
                self.paths.retain(|path, _| !moved.iter().any(|(old, _)| old == path));
                for (path, file) in moved {
                    self.paths.insert(format!("{to}{}", path.get(from.len()..).unwrap_or_default()), file);
                }
            }
            Op::Link { from, to } => {
                if let Some(node) = self.paths.get(from).copied() {
                    self.paths.insert(to.clone(), node);
                }
            }
            Op::Unlink { path } | Op::Rmdir { path } => {
                self.paths.remove(path);
            }
            Op::Fsync { .. } | Op::Sync | Op::Wait { .. } => {}
        }
    }

    /// Every operation over the few names that makes sense now.
    fn possible(&self, block_bytes: u32) -> Vec<Op> {
        let mut ops = Vec::new();
        let owned = |path: &str| path.to_owned();
        for path in FILES {
            if self.is_free(path) {
                ops.push(Op::Create { path: owned(path) });
            }
            let Some(length) = self.length(path) else { continue };
            ops.push(Op::Write { path: owned(path), at_byte: length.next_multiple_of(32), len_bytes: 1500 });
            if path == "a" {
                // Behind the direct blocks.
                ops.push(Op::Write { path: owned(path), at_byte: 12 * u64::from(block_bytes), len_bytes: 600 });
            }
            if length > 0 {
                ops.push(Op::Truncate { path: owned(path), len_bytes: 0 });
            }
            if length > 800 {
                ops.push(Op::Truncate { path: owned(path), len_bytes: 800 });
            }
            ops.push(Op::Unlink { path: owned(path) });
            ops.push(Op::Fsync { path: owned(path) });
            for to in FILES.into_iter().filter(|to| *to != path && self.has_parent(to)) {
                if self.is_free(to) || self.file(to).is_some_and(|file| Some(file) != self.file(path)) {
                    ops.push(Op::Rename { from: owned(path), to: owned(to) });
                }
                if self.is_free(to) {
                    ops.push(Op::Link { from: owned(path), to: owned(to) });
                }
            }
        }
        for path in DIRECTORIES {
            if self.is_free(path) {
                ops.push(Op::Mkdir { path: owned(path) });
                continue;
            }
            if self.is_empty_directory(path) {
                ops.push(Op::Rmdir { path: owned(path) });
            }
            for to in DIRECTORIES.into_iter().filter(|to| *to != path) {
                if self.is_free(to) || self.is_empty_directory(to) {
                    ops.push(Op::Rename { from: owned(path), to: owned(to) });
                }
                let below = format!("{to}/{path}");
                if self.is_directory(to) && self.is_free(&below) {
                    ops.push(Op::Rename { from: owned(path), to: below });
                }
            }
        }
        ops.push(Op::Sync);
        ops
    }
}

/// All sequences of `length` operations over the few names, after what [`prologue`] has made; one that promises nothing
/// new at its end is left out, since another one stands for it.
pub fn all(length: u32, block_bytes: u32) -> Vec<Vec<Op>> {
    let mut sequences = Vec::new();
    let start = Names::after(&prologue(block_bytes));
    extend(&mut Vec::new(), &start, length, block_bytes, &mut sequences);
    sequences
}

fn extend(so_far: &mut Vec<Op>, names: &Names, more: u32, block_bytes: u32, sequences: &mut Vec<Vec<Op>>) {
    if more == 0 {
        sequences.push(so_far.clone());
        return;
    }
    for op in names.possible(block_bytes) {
        let mut after = names.clone();
        after.perform(&op);
        so_far.push(op);
        extend(so_far, &after, more - 1, block_bytes, sequences);
        so_far.pop();
    }
}

/// How often what is done, of a hundred; what is left is time that passes.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// For whoever reads of a failure.
    pub name: &'static str,
    /// create, mkdir, symlink, write, truncate, unlink, rmdir, rename, link, fsync, sync, far write.
    pub parts: [u64; 12],
    /// Usual and greatest length of what is written.
    pub lengths: (u64, u64),
}

/// From files that are synced all the time to a disk that is full all the time.
pub const MIXES: [Mix; 6] = [
    //                               create mkdir link write trunc unlink rmdir rename link fsync sync far
    Mix { name: "all", parts: [18, 4, 3, 20, 7, 12, 3, 8, 3, 10, 2, 1], lengths: (9_000, 90_000) },
    Mix { name: "fsync", parts: [10, 2, 1, 27, 4, 7, 1, 4, 2, 36, 0, 1], lengths: (5_000, 40_000) },
    Mix { name: "names", parts: [24, 8, 5, 4, 2, 15, 6, 18, 6, 6, 1, 0], lengths: (900, 9_000) },
    Mix { name: "checkpoints", parts: [15, 3, 1, 25, 5, 11, 2, 6, 2, 6, 16, 2], lengths: (7_000, 60_000) },
    Mix { name: "never", parts: [20, 3, 1, 28, 8, 13, 2, 6, 2, 1, 0, 2], lengths: (12_000, 120_000) },
    Mix { name: "full", parts: [26, 1, 1, 38, 4, 4, 1, 4, 1, 12, 2, 0], lengths: (16_000, 200_000) },
];

/// A long sequence that follows from its seed, beginning with what is there.
#[derive(Debug)]
pub struct Drawn {
    random: Xoshiro256PlusPlus,
    mix: &'static Mix,
    names: Names,
    /// As they were before the last operation.
    before: Names,
    serial: u32,
    block_bytes: u32,
    /// How long time passes where it does, at most, milliseconds.
    pub most_wait_ms: u64,
}

impl Drawn {
    /// The beginning of one. `serial` goes before the names that it makes.
    pub fn new(seed: u64, mix: &'static Mix, found: &Found, serial: u32, block_bytes: u32) -> Drawn {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Drawn {
            random,
            mix,
            names: Names::of(found),
            before: Names::default(),
            serial,
            block_bytes,
            most_wait_ms: 40_000,
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.next_u64() % n.max(1)
    }

    fn pick(&mut self, wanted: impl Fn(&Names, &str) -> bool) -> Option<String> {
        let paths: Vec<&String> = self.names.paths.keys().filter(|path| wanted(&self.names, path)).collect();
        let at = self.random.next_u64() % (paths.len() as u64).max(1);
        paths.get(at as usize).map(|path| (*path).clone())
    }

    fn file(&mut self) -> Option<String> {
        self.pick(|names, path| names.file(path).is_some())
    }

    fn new_path(&mut self) -> String {
        self.serial += 1;
        let name = format!("n{}", self.serial);
        if self.below(3) == 0 {
            return name;
        }
        let dir = self.pick(|names, path| names.is_directory(path) && path.matches('/').count() < 3);
        dir.map_or(name.clone(), |dir| format!("{dir}/{name}"))
    }

    /// How many files there are.
    pub fn files(&self) -> usize {
        self.names.paths.values().filter(|node| matches!(node, Node::File(_))).count()
    }

    /// Removes a file, as there is no room; `None` if there is none. It is there until [`Drawn::removed`] is told.
    pub fn to_remove(&mut self) -> Option<Op> {
        self.file().map(|path| Op::Unlink { path })
    }

    /// What [`Drawn::to_remove`] has named is gone.
    pub fn removed(&mut self, op: &Op) {
        self.names.perform(op);
    }

    /// One in so many times.
    pub fn now_and_then(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    /// The last operation was refused: what is known of the names is as it was.
    pub fn refused(&mut self) {
        self.names = std::mem::take(&mut self.before);
    }

    fn write(&mut self, path: String) -> Op {
        let (usual, greatest) = self.mix.lengths;
        let most = if self.below(8) == 0 { greatest } else { usual };
        let size = self.names.length(&path).unwrap_or(0);
        let at_byte = match self.below(10) {
            0..5 => size,
            5..9 => self.below(size + 1),
            _ => size + self.below(30_000),
        };
        Op::Write { path, at_byte: at_byte / 32 * 32, len_bytes: 1 + self.below(most) }
    }

    fn rename(&mut self) -> Option<Op> {
        if self.below(4) > 0 {
            let from = self.file()?;
            let to = if self.below(3) == 0 { self.file()? } else { self.new_path() };
            return (self.names.file(&from) != self.names.file(&to)).then_some(Op::Rename { from, to });
        }
        let from = self.pick(|names, path| names.is_directory(path))?;
        let to = self.new_path();
        (!to.starts_with(&format!("{from}/"))).then_some(Op::Rename { from, to })
    }

    fn draw(&mut self) -> Option<Op> {
        let mut dice = self.below(100);
        let part = self.mix.parts.iter().position(|part| {
            let here = dice < *part;
            dice = dice.saturating_sub(*part);
            here
        });
        match part {
            Some(0) => Some(Op::Create { path: self.new_path() }),
            Some(1) => Some(Op::Mkdir { path: self.new_path() }),
            Some(2) => {
                let most = if self.below(3) == 0 { 500 } else { 30 };
                let len = 1 + self.below(most);
                let target = (0..len).map(|_| char::from(b'a' + (self.random.next_u64() % 26) as u8)).collect();
                Some(Op::Symlink { target, path: self.new_path() })
            }
            Some(3) => self.file().map(|path| self.write(path)),
            Some(4) => {
                let path = self.file()?;
                let size = self.names.length(&path).unwrap_or(0);
                let len_bytes = if self.below(5) == 0 { 0 } else { self.below(size + 5_000) };
                Some(Op::Truncate { path, len_bytes })
            }
            Some(5) => {
                let path = self.pick(|names, path| !names.is_directory(path))?;
                Some(Op::Unlink { path })
            }
            Some(6) => self.pick(|names, path| names.is_empty_directory(path)).map(|path| Op::Rmdir { path }),
            Some(7) => self.rename(),
            Some(8) => self.file().map(|from| Op::Link { from, to: self.new_path() }),
            Some(9) => self.file().map(|path| Op::Fsync { path }),
            Some(10) => Some(Op::Sync),
            Some(11) => {
                let path = self.file()?;
                let reach = 3 * (u64::from(self.block_bytes) << 10);
                let at_byte = self.below(reach) / 32 * 32;
                Some(Op::Write { path, at_byte, len_bytes: 1 + self.below(5_000) })
            }
            _ => {
                let most = self.most_wait_ms;
                Some(Op::Wait { ms: 1 + self.below(most) })
            }
        }
    }
}

impl Iterator for Drawn {
    type Item = Op;

    /// The next operation: there is always one.
    fn next(&mut self) -> Option<Op> {
        let op = (0..1000).find_map(|_| self.draw()).unwrap_or(Op::Sync);
        self.before = self.names.clone();
        self.names.perform(&op);
        Some(op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_sequences_make_sense_and_are_different() {
        let one = all(1, 4096);
        let two = all(2, 4096);
        let texts: std::collections::BTreeSet<String> = two.iter().map(|ops| crate::shown_ops(ops)).collect();
        assert_eq!(texts.len(), two.len());
        assert!(one.len() > 20 && two.len() > 400, "{} {}", one.len(), two.len());
        for word in ["create b", "mkdir e", "rename a d/b", "link a b", "unlink d/b", "truncate a 0", "rename d e"] {
            assert!(one.iter().any(|ops| crate::shown_ops(ops) == word), "{word}");
        }
        assert!(texts.contains("unlink d/b; rmdir d"));
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let draw = |seed| Drawn::new(seed, &MIXES[0], &Found::default(), 0, 4096).take(50).collect::<Vec<_>>();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
