//! The data cache: which pages of which files are in memory, and which of them are dirty.
//!
//! Pages are kept in chunks of up to 64 with a bitmap each; what leaves is a chunk, which one [`CachePolicy`] decides.
//! With chunks of one page it is the policy over pages exactly; larger chunks evict a run of neighbouring pages
//! together, as a kernel with large folios does, and cost as much per request however large it is.

use super::annotated::NodeId;
use super::near::{Clock, FarPages, NEAR_BYTES};
use super::replacement::{Evicted, Replacement};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use system::CachePolicy;

/// Bytes of a page: the unit of Linux's page cache.
pub const PAGE_BYTES: u64 = 4096;

const NONE: u32 = u32::MAX;

/// The page before the first request of a file.
const NO_PAGE: u64 = u64::MAX;

/// What a request is to the pages that it touches. Least recently used makes no difference between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Each is used.
    Whole,
    /// It begins inside of a page. If the request before ended in that page, both are one use of it, as in Linux
    /// (`pos_same_folio`, mm/filemap.c).
    FromWithin,
    /// None is used yet: they are read ahead.
    Ahead,
}

impl Use {
    /// Of a request that begins at a byte of a file.
    pub fn at(offset: u64) -> Use {
        if offset.is_multiple_of(PAGE_BYTES) { Use::Whole } else { Use::FromWithin }
    }
}

/// In a line of the processor's cache of its own: what a touch waits for is memory.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Chunk {
    node: u32,
    number: u64,
    present: u64,
    dirty: u64,
    newer: u32,
    older: u32,
    /// When its pages were last touched, and which of them; the others were at `before`, if ever.
    touched: u64,
    before: u64,
    seen: u64,
}

impl Chunk {
    /// Touches pages that are there, and counts those that were far.
    #[inline]
    fn approach(&mut self, bits: u64, clock: &mut Clock, far: &mut FarPages) {
        let again = bits & self.seen;
        if again != 0 && clock.since(self.touched) > NEAR_BYTES {
            // Another pass over the chunk begins.
            (self.before, self.seen) = (self.touched, 0);
        }
        let late = bits & !self.seen;
        if late == 0 {
            self.touched = clock.touch(self.touched, 0).1;
            return;
        }
        let pages = u64::from(late.count_ones());
        let (distance, now) = clock.touch(self.before, pages * PAGE_BYTES);
        far.add(pages, distance);
        self.touched = now;
        self.seen |= bits;
    }

    /// Touches pages that have just come in.
    #[inline]
    fn enter(&mut self, bits: u64, clock: &mut Clock) {
        self.touched = clock.enter(u64::from(bits.count_ones()) * PAGE_BYTES);
        self.seen |= bits;
    }
}

/// A file's pages.
#[derive(Clone, Copy, Debug)]
struct FilePages {
    /// Chunk 0, which is all that most files have, is found without hashing.
    zero: u32,
    /// The chunk touched last, so that a sequential stream hashes once per chunk.
    last_number: u64,
    last: u32,
    /// The page that the request before ended in.
    last_page: u64,
    /// Head of the list of chunks.
    newest: u32,
    pages: u64,
    dirty: u64,
}

const NO_PAGES: FilePages =
    FilePages { zero: NONE, last_number: 0, last: NONE, last_page: NO_PAGE, newest: NONE, pages: 0, dirty: 0 };

/// What a request asks of one chunk: its pages, as bits.
#[derive(Clone, Copy, Debug)]
struct Part {
    node: NodeId,
    number: u64,
    /// Those that are touched.
    bits: u64,
    /// Of these, those that are used.
    used: u64,
    /// Of these, those that become dirty.
    written: u64,
}

/// What touching a range found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Touched {
    /// Pages that were there.
    pub hits: u64,
    /// Pages that were not, and now are.
    pub misses: u64,
    /// Pages that became dirty.
    pub dirtied: u64,
    /// Dirty pages evicted to make room: they had to be written at once.
    pub forced: u64,
    /// Of the hits, those that were no longer in the processor's caches.
    pub far: FarPages,
}

/// The cache.
#[derive(Clone, Debug)]
pub struct DataCache {
    chunk_pages: u64,
    limit_pages: Option<u64>,
    pages: u64,
    dirty: u64,
    /// Chunks with pages in them; the others are remembered by the policy.
    resident: usize,
    chunks: Vec<Chunk>,
    free: Vec<u32>,
    files: Vec<FilePages>,
    /// Chunks by file and number, but for the first of each file. The numbers alone are kept: the chunk is looked at in
    /// any case.
    index: HashTable<u32>,
    replacement: Replacement,
    /// Of bytes touched, these pages and whatever else shares the processor's caches.
    pub clock: Clock,
}

fn hash_of(node: u32, number: u64) -> u64 {
    FxBuildHasher.hash_one((node, number))
}

/// The bits of a chunk that a run of pages covers.
fn mask(from: u64, len: u64) -> u64 {
    (if len >= 64 { u64::MAX } else { (1 << len) - 1 }) << from
}

impl DataCache {
    /// A cache of at most `limit_bytes` (`None`: unbounded) in chunks of `chunk_pages`, which is cut to 1 to 64, that
    /// evicts what was not used for longest.
    pub fn new(limit_bytes: Option<u64>, chunk_pages: u64) -> DataCache {
        DataCache::with_policy(limit_bytes, chunk_pages, CachePolicy::Lru)
    }

    /// As [`new`](DataCache::new), with another policy.
    pub fn with_policy(limit_bytes: Option<u64>, chunk_pages: u64, policy: CachePolicy) -> DataCache {
        let limit_pages = limit_bytes.map(|b| (b / PAGE_BYTES).max(1));
        DataCache {
            chunk_pages: chunk_pages.clamp(1, 64),
            limit_pages,
            pages: 0,
            dirty: 0,
            resident: 0,
            chunks: Vec::new(),
            free: Vec::new(),
            files: Vec::new(),
            index: HashTable::new(),
            replacement: Replacement::new(policy, limit_pages),
            clock: Clock::default(),
        }
    }

    /// Pages in the cache.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Dirty pages in the cache.
    pub fn dirty_pages(&self) -> u64 {
        self.dirty
    }

    fn file(&mut self, node: NodeId) -> &mut FilePages {
        let at = node.index();
        if at >= self.files.len() {
            self.files.resize(at + 1 + at / 2, NO_PAGES);
        }
        &mut self.files[at]
    }

    /// Pages of a file in the cache, and how many of them are dirty.
    pub fn pages_of(&self, node: NodeId) -> (u64, u64) {
        self.files.get(node.index()).map_or((0, 0), |f| (f.pages, f.dirty))
    }

    /// Whether a page is in the cache; does not touch it.
    pub fn has(&self, node: NodeId, page: u64) -> bool {
        let (number, bit) = (page / self.chunk_pages, page % self.chunk_pages);
        self.find(node, number).is_some_and(|c| self.chunks[c as usize].present & (1 << bit) != 0)
    }

    #[inline]
    fn find(&self, node: NodeId, number: u64) -> Option<u32> {
        let file = self.files.get(node.index())?;
        let at = if number == 0 {
            file.zero
        } else if file.last != NONE && file.last_number == number {
            file.last
        } else if file.newest == NONE {
            NONE
        } else {
            let is_it = |&at: &u32| {
                let chunk = &self.chunks[at as usize];
                (chunk.node, chunk.number) == (node.0, number)
            };
            self.index.find(hash_of(node.0, number), is_it).copied().unwrap_or(NONE)
        };
        (at != NONE).then_some(at)
    }

    /// Touches a range of pages, letting in what is missing, and makes them dirty if asked.
    #[inline]
    pub fn touch(&mut self, node: NodeId, first: u64, count: u64, dirty: bool) -> Touched {
        self.touch_as(node, first, count, dirty, Use::Whole)
    }

    /// As [`touch`](DataCache::touch), where not every page is used that is touched.
    #[inline]
    pub fn touch_as(&mut self, node: NodeId, first: u64, count: u64, dirty: bool, how: Use) -> Touched {
        let mut touched = Touched::default();
        let (mut page, end) = (first, first.saturating_add(count));
        let unused = match how {
            Use::FromWithin if self.files.get(node.index()).is_some_and(|f| f.last_page == first) => first + 1,
            Use::Whole | Use::FromWithin => first,
            Use::Ahead => end,
        };
        while page < end {
            let (number, from) = (page / self.chunk_pages, page % self.chunk_pages);
            let len = (self.chunk_pages - from).min(end - page);
            let bits = mask(from, len);
            let used = if page >= unused { bits } else { bits & !mask(from, (unused - page).min(len)) };
            let written = if dirty { bits } else { 0 };
            self.touch_chunk(Part { node, number, bits, used, written }, &mut touched);
            page += len;
        }
        if how != Use::Ahead && count > 0 {
            self.files[node.index()].last_page = end - 1;
        }
        touched
    }

    #[inline]
    fn touch_chunk(&mut self, part: Part, touched: &mut Touched) {
        let found = self.find(part.node, part.number);
        let Some(at) = found.filter(|&at| part.bits & !self.chunks[at as usize].present == 0) else {
            return self.touch_missing(part, found, touched);
        };
        touched.hits += u64::from(part.bits.count_ones());
        self.chunks[at as usize].approach(part.bits, &mut self.clock, &mut touched.far);
        self.replacement.touch(at, part.used);
        self.note(part, at, touched);
    }

    /// Touches pages of a chunk of which some are missing.
    #[inline]
    fn touch_missing(&mut self, part: Part, found: Option<u32>, touched: &mut Touched) {
        let Part { node, number, bits, used, .. } = part;
        let mut at = found.unwrap_or_else(|| self.new_chunk(node, number));
        let present = self.chunks[at as usize].present;
        let mut misses = u64::from((bits & !present).count_ones());
        touched.misses += misses;
        if present != 0 {
            self.replacement.touch(at, used);
        } else {
            self.replacement.recall(at);
        }
        if present & bits != 0 {
            touched.hits += u64::from((present & bits).count_ones());
            self.chunks[at as usize].approach(bits & present, &mut self.clock, &mut touched.far);
        }
        if self.make_room(at, bits, misses, touched) {
            // The chunk itself was evicted: it comes in again, with all that is asked for.
            at = self.find(node, number).unwrap_or_else(|| self.new_chunk(node, number));
            self.replacement.recall(at);
            misses = u64::from(bits.count_ones());
        }
        self.let_in(at, bits, used, misses);
        self.note(part, at, touched);
    }

    /// Makes pages of a chunk dirty, and remembers it as the file's last.
    #[inline]
    fn note(&mut self, part: Part, at: u32, touched: &mut Touched) {
        let file = &mut self.files[part.node.index()];
        (file.last_number, file.last) = (part.number, at);
        if part.written != 0 {
            let chunk = &mut self.chunks[at as usize];
            let dirtied = u64::from((part.written & !chunk.dirty).count_ones());
            chunk.dirty |= part.written;
            touched.dirtied += dirtied;
            file.dirty += dirtied;
            self.dirty += dirtied;
        }
    }

    /// Gives a chunk the pages of `bits` that it has not, of which there are some.
    #[inline]
    fn let_in(&mut self, at: u32, bits: u64, used: u64, misses: u64) {
        let chunk = &mut self.chunks[at as usize];
        let was_empty = chunk.present == 0;
        chunk.enter(bits & !chunk.present, &mut self.clock);
        chunk.present |= bits;
        if was_empty {
            self.resident += 1;
            self.replacement.enter(at, misses as u8, used);
        } else {
            let pages = chunk.present.count_ones() as u8;
            self.replacement.resize(at, pages);
        }
        self.files[self.chunks[at as usize].node as usize].pages += misses;
        self.pages += misses;
    }

    /// Evicts chunks until those pages of `bits` that the chunk `of` has not, `misses` of them, have room; says whether
    /// it was evicted itself. Whatever the limit, one chunk fits.
    #[inline]
    fn make_room(&mut self, of: u32, bits: u64, misses: u64, touched: &mut Touched) -> bool {
        let Some(limit) = self.limit_pages else { return false };
        let (mut incoming, mut evicts_itself) = (misses, false);
        let mut stays = usize::from(self.chunks[of as usize].present != 0);
        while self.pages + incoming > limit && self.resident > stays {
            let Some(Evicted { id, is_ghost }) = self.replacement.evict(incoming) else { break };
            touched.forced += self.empty_chunk(id);
            if id == of {
                (incoming, evicts_itself, stays) = (bits.count_ones().into(), true, 0);
            }
            if !is_ghost {
                self.remove_chunk(id);
            }
            while let Some(ghost) = self.replacement.forget() {
                self.remove_chunk(ghost);
            }
        }
        evicts_itself
    }

    fn new_chunk(&mut self, node: NodeId, number: u64) -> u32 {
        let older = self.file(node).newest;
        let (touched, before) = (0, 0);
        let chunk = Chunk { node: node.0, number, present: 0, dirty: 0, newer: NONE, older, touched, before, seen: 0 };
        let at = match self.free.pop() {
            Some(at) => {
                self.chunks[at as usize] = chunk;
                at
            }
            None => {
                self.chunks.push(chunk);
                u32::try_from(self.chunks.len() - 1).unwrap_or(NONE - 1)
            }
        };
        if older != NONE {
            self.chunks[older as usize].newer = at;
        }
        let file = self.file(node);
        file.newest = at;
        if number == 0 {
            file.zero = at;
        } else {
            let chunks = &self.chunks;
            let hash = |&at: &u32| hash_of(chunks[at as usize].node, chunks[at as usize].number);
            self.index.insert_unique(hash_of(node.0, number), at, hash);
        }
        at
    }

    /// Takes the pages from a chunk that is out of the order already; returns how many of them were dirty.
    fn empty_chunk(&mut self, at: u32) -> u64 {
        let chunk = &mut self.chunks[at as usize];
        let (pages, dirty) = (u64::from(chunk.present.count_ones()), u64::from(chunk.dirty.count_ones()));
        (chunk.present, chunk.dirty) = (0, 0);
        (chunk.touched, chunk.before, chunk.seen) = (0, 0, 0);
        let file = &mut self.files[chunk.node as usize];
        file.pages -= pages;
        file.dirty -= dirty;
        self.pages -= pages;
        self.dirty -= dirty;
        self.resident -= usize::from(pages > 0);
        dirty
    }

    /// Forgets a chunk without pages.
    fn remove_chunk(&mut self, at: u32) {
        let Chunk { node, number, newer, older, .. } = self.chunks[at as usize];
        let file = &mut self.files[node as usize];
        if newer == NONE {
            file.newest = older
        } else {
            self.chunks[newer as usize].older = older
        }
        if older != NONE {
            self.chunks[older as usize].newer = newer;
        }
        if file.last == at {
            file.last = NONE;
        }
        if number == 0 {
            file.zero = NONE;
        } else {
            let entry = self.index.find_entry(hash_of(node, number), |&other| other == at);
            entry.expect("a chunk that is not the first of its file is in the index").remove();
        }
        self.free.push(at);
    }

    /// Drops the pages of a file from `first` on.
    pub fn drop_from(&mut self, node: NodeId, first: u64) {
        if first == 0
            && let Some(file) = self.files.get_mut(node.index())
        {
            file.last_page = NO_PAGE;
        }
        self.drop_between(node, first, u64::MAX, false);
    }

    /// Drops the clean pages of a file from `first` on to before `end`.
    pub fn drop_clean(&mut self, node: NodeId, first: u64, end: u64) {
        self.drop_between(node, first, end, true);
    }

    /// Drops all pages of a file from `first` on to before `end`.
    pub fn drop_range(&mut self, node: NodeId, first: u64, end: u64) {
        self.drop_between(node, first, end, false);
    }

    fn drop_between(&mut self, node: NodeId, first: u64, end: u64, clean_only: bool) {
        let mut at = self.files.get(node.index()).map_or(NONE, |f| f.newest);
        while at != NONE {
            let Chunk { number, older, present, dirty, .. } = self.chunks[at as usize];
            let start = number * self.chunk_pages;
            let (from, to) = (first.max(start) - start, end.min(start + self.chunk_pages).saturating_sub(start));
            if from < to {
                let gone = mask(from, to - from) & present;
                let gone = if clean_only { gone & !dirty } else { gone };
                // What was evicted is forgotten too.
                if gone == present {
                    self.replacement.remove(at);
                    self.empty_chunk(at);
                    self.remove_chunk(at);
                } else if gone != 0 {
                    self.cut_chunk(at, !gone);
                }
            }
            at = older;
        }
    }

    fn cut_chunk(&mut self, at: u32, keep: u64) {
        let chunk = &mut self.chunks[at as usize];
        let pages = u64::from((chunk.present & !keep).count_ones());
        let dirty = u64::from((chunk.dirty & !keep).count_ones());
        chunk.present &= keep;
        chunk.dirty &= keep;
        self.replacement.resize(at, chunk.present.count_ones() as u8);
        let file = &mut self.files[chunk.node as usize];
        file.pages -= pages;
        file.dirty -= dirty;
        self.pages -= pages;
        self.dirty -= dirty;
    }

    /// Runs of neighbouring dirty pages of a file.
    pub fn dirty_runs(&self, node: NodeId) -> u64 {
        let Some(file) = self.files.get(node.index()) else { return 0 };
        let (mut at, mut seen, mut runs) = (file.newest, 0, 0);
        let last_bit = 1 << (self.chunk_pages - 1);
        while at != NONE && seen < file.dirty {
            let Chunk { number, dirty, older, .. } = self.chunks[at as usize];
            seen += u64::from(dirty.count_ones());
            runs += u64::from((dirty & !(dirty << 1)).count_ones());
            let before = number.checked_sub(1).filter(|_| dirty & 1 != 0).and_then(|before| self.find(node, before));
            if before.is_some_and(|before| self.chunks[before as usize].dirty & last_bit != 0) {
                runs -= 1;
            }
            at = older;
        }
        runs
    }

    /// Makes up to `most` dirty pages of a file clean; returns how many.
    pub fn clean(&mut self, node: NodeId, most: u64) -> u64 {
        let Some(file) = self.files.get_mut(node.index()) else { return 0 };
        let (mut at, mut cleaned) = (file.newest, 0);
        while at != NONE && cleaned < most && file.dirty > 0 {
            let chunk = &mut self.chunks[at as usize];
            let pages = u64::from(chunk.dirty.count_ones());
            chunk.dirty = 0;
            cleaned += pages;
            file.dirty -= pages;
            self.dirty -= pages;
            at = chunk.older;
        }
        cleaned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A list of pages, newest last.
    #[derive(Default)]
    struct Naive {
        pages: Vec<(u32, u64, bool)>,
        limit: usize,
    }

    impl Naive {
        fn touch(&mut self, node: u32, first: u64, count: u64, dirty: bool) -> Touched {
            let mut t = Touched::default();
            for page in first..first + count {
                let at = self.pages.iter().position(|p| (p.0, p.1) == (node, page));
                let was_dirty = at.map(|at| self.pages.remove(at).2);
                if was_dirty.is_some() {
                    t.hits += 1
                } else {
                    t.misses += 1
                }
                t.dirtied += u64::from(dirty && was_dirty != Some(true));
                self.pages.push((node, page, dirty || was_dirty == Some(true)));
                while self.pages.len() > self.limit {
                    t.forced += u64::from(self.pages.remove(0).2);
                }
            }
            t
        }
    }

    #[test]
    fn a_pass_over_data_is_as_far_as_it_is_long() {
        let mut cache = DataCache::new(None, 16);
        let pages = 16 << 10;
        for pass in 0..3 {
            for page in 0..pages {
                let far = cache.touch(NodeId(1), page, 1, false).far;
                if pass == 0 {
                    assert_eq!(far, FarPages::default());
                } else {
                    let off = far.mean_bytes().abs_diff(pages * PAGE_BYTES);
                    assert!(far.pages == 1 && off <= 64 * PAGE_BYTES, "{pass} {page}: {far:?}");
                    assert_eq!(cache.touch(NodeId(1), page, 1, false).far, FarPages::default(), "once more");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn chunks_of_one_page_are_exact_lru(
            limit in 1usize..30,
            ops in prop::collection::vec((0u8..10, 0u32..4, 0u64..20, 1u64..8), 0..200),
        ) {
            let mut cache = DataCache::new(Some(limit as u64 * PAGE_BYTES), 1);
            let mut naive = Naive { limit, ..Naive::default() };
            for (op, node, first, count) in ops {
                match op {
                    0 => {
                        cache.drop_from(NodeId(node), first);
                        naive.pages.retain(|p| p.0 != node || p.1 < first);
                    }
                    2 => {
                        cache.drop_clean(NodeId(node), first, first + count);
                        naive.pages.retain(|p| p.2 || p.0 != node || p.1 < first || p.1 >= first + count);
                    }
                    1 => {
                        cache.clean(NodeId(node), u64::MAX);
                        naive.pages.iter_mut().filter(|p| p.0 == node).for_each(|p| p.2 = false);
                    }
                    _ => {
                        let dirty = op < 5;
                        let touched = Touched { far: FarPages::default(),
                            ..cache.touch(NodeId(node), first, count, dirty) };
                        prop_assert_eq!(touched, naive.touch(node, first, count, dirty));
                    }
                }
                prop_assert_eq!(cache.pages(), naive.pages.len() as u64);
                prop_assert_eq!(cache.dirty_pages(), naive.pages.iter().filter(|p| p.2).count() as u64);
                for node in 0..4 {
                    let of = naive.pages.iter().filter(|p| p.0 == node);
                    let dirty = of.clone().filter(|p| p.2).count() as u64;
                    prop_assert_eq!(cache.pages_of(NodeId(node)), (of.count() as u64, dirty));
                    let is_dirty = |page: u64| naive.pages.contains(&(node, page, true));
                    let runs = (0..40).filter(|&page| is_dirty(page) && (page == 0 || !is_dirty(page - 1))).count();
                    prop_assert_eq!(cache.dirty_runs(NodeId(node)), runs as u64);
                }
            }
        }

        /// Whatever leaves: what is said to be there is, what was just read is, and no more than fits.
        #[test]
        fn the_books_are_kept_under_every_policy(
            policy in prop::sample::select(&CachePolicy::ALL),
            chunk in 1u64..=8,
            limit in 1u64..40,
            ops in prop::collection::vec((0u8..12, 0u32..3, 0u64..60, 1u64..12), 0..300),
        ) {
            let mut cache = DataCache::with_policy(Some(limit * PAGE_BYTES), chunk, policy);
            for (op, node, first, count) in ops {
                let id = NodeId(node);
                match op {
                    0 => cache.drop_from(id, first),
                    1 => cache.drop_clean(id, first, first + count),
                    2 => cache.drop_range(id, first, first + count),
                    3 => { cache.clean(id, u64::MAX); }
                    _ => {
                        let how = [Use::Whole, Use::FromWithin, Use::Ahead][usize::from(op) % 3];
                        let there = (first..first + count).filter(|&page| cache.has(id, page)).count() as u64;
                        let touched = cache.touch_as(id, first, count, op < 7, how);
                        prop_assert_eq!(touched.hits + touched.misses, count);
                        // What is there when a request begins may leave before its turn has come.
                        prop_assert!(touched.hits <= there, "{:?}, {} there", touched, there);
                        prop_assert!(cache.has(id, first + count - 1));
                    }
                }
                let mut all = 0;
                for node in (0..3).map(NodeId) {
                    let (pages, dirty) = cache.pages_of(node);
                    prop_assert_eq!(pages, (0..80).filter(|&page| cache.has(node, page)).count() as u64);
                    prop_assert!(dirty <= pages);
                    all += pages;
                }
                prop_assert_eq!(cache.pages(), all);
                prop_assert!(all <= limit.max(chunk), "{} pages", all);
            }
        }

        #[test]
        fn without_a_limit_chunk_size_does_not_matter(
            chunk in 1u64..=64,
            ops in prop::collection::vec((0u8..6, 0u32..4, 0u64..300, 1u64..100), 0..60),
        ) {
            let mut large = DataCache::new(None, chunk);
            let mut exact = DataCache::new(None, 1);
            for (op, node, first, count) in ops {
                let node = NodeId(node);
                match op {
                    0 => { large.drop_from(node, first); exact.drop_from(node, first); }
                    1 => prop_assert_eq!(large.clean(node, u64::MAX), exact.clean(node, u64::MAX)),
                    5 => {
                        large.drop_clean(node, first, first + count);
                        exact.drop_clean(node, first, first + count);
                    }
                    _ => {
                        let (a, b) = (large.touch(node, first, count, op < 4), exact.touch(node, first, count, op < 4));
                        // Distances are those of whole chunks.
                        let far = FarPages::default();
                        prop_assert_eq!(Touched { far, ..a }, Touched { far, ..b });
                    }
                }
                prop_assert_eq!((large.pages(), large.dirty_pages()), (exact.pages(), exact.dirty_pages()));
                prop_assert_eq!(large.has(node, first), exact.has(node, first));
                prop_assert_eq!(large.dirty_runs(node), exact.dirty_runs(node));
            }
        }
    }
}
