//! What the cleaner moves in one go: files, and of each the blocks that nobody has changed in memory.

use crate::format::FragAddr;
use kernel::Ino;

/// Files that are being moved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moving {
    files: Vec<File>,
    /// By file, then by number.
    blocks: Vec<MovingBlock>,
    /// Numbers of files, in the order in which they are written.
    order: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct File {
    ino: Ino,
    /// When the last of the segments was written that something of it lies in, nanoseconds since 1970.
    age_ns: i64,
    /// Its blocks: the first, and the one behind the last.
    blocks: (u32, u32),
}

#[derive(Clone, Copy, Debug)]
struct MovingBlock {
    file: u32,
    lbn: i32,
    /// Where it lies, unless it is in the cache.
    from: Option<FragAddr>,
}

impl Moving {
    /// Nothing moves.
    pub(super) fn clear(&mut self) {
        self.files.clear();
        self.blocks.clear();
        self.order.clear();
    }

    /// Something of a file moves that has lain in a segment of this age. `known` is the file's number if it has one; it
    /// has from now on.
    #[inline]
    pub(super) fn file_moves(&mut self, ino: Ino, known: u32, age_ns: i64) -> u32 {
        if let Some(file) = self.files.get_mut((known as usize).wrapping_sub(1)) {
            file.age_ns = file.age_ns.max(age_ns);
            return known;
        }
        self.files.push(File { ino, age_ns, blocks: (0, 0) });
        self.files.len() as u32
    }

    /// A block moves: from where it lies, or out of the cache.
    #[inline]
    pub(super) fn block_moves(&mut self, file: u32, lbn: i32, from: Option<FragAddr>) {
        self.blocks.push(MovingBlock { file, lbn, from });
    }

    /// All is known: the blocks get their order, the files that of `key` if there is one.
    pub(super) fn arrange(&mut self, key: Option<impl Fn(Ino, i64) -> i64>) {
        // Mostly they lie in order.
        let key_of = |block: &MovingBlock| (block.file, block.lbn);
        if !self.blocks.is_sorted_by_key(key_of) {
            self.blocks.sort_by_key(key_of);
        }
        let mut at = 0;
        for (number, file) in (1..).zip(&mut self.files) {
            let first = at;
            while self.blocks.get(at).is_some_and(|block| block.file == number) {
                at += 1;
            }
            file.blocks = (first as u32, at as u32);
        }
        self.order.extend(1..=self.files.len() as u32);
        if let Some(key) = key {
            let Self { files, order, .. } = self;
            order.sort_by_cached_key(|number| files.get(*number as usize - 1).map(|file| key(file.ino, file.age_ns)));
        }
    }

    /// How many files move.
    pub(crate) fn files(&self) -> usize {
        self.order.len()
    }

    /// Which one is written at this turn.
    pub(crate) fn file(&self, turn: usize) -> Option<Ino> {
        let number = self.order.get(turn)?;
        self.files.get(*number as usize - 1).map(|file| file.ino)
    }

    /// All of them, in the order in which they were found.
    pub(super) fn inos(&self) -> impl Iterator<Item = Ino> + '_ {
        self.files.iter().map(|file| file.ino)
    }

    /// Its blocks: their numbers, negative ones of indirect blocks, and where those lie that are in no cache.
    pub(crate) fn blocks(&self, file: u32) -> impl Iterator<Item = (i64, Option<FragAddr>)> + '_ {
        let (first, end) = self.files.get((file as usize).wrapping_sub(1)).map_or((0, 0), |file| file.blocks);
        let blocks = self.blocks.get(first as usize..end as usize).unwrap_or_default();
        blocks.iter().map(|block| (block.lbn.into(), block.from))
    }
}
