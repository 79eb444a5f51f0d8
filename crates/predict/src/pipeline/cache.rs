//! Stage 2: what the target's caches make of each step.
//!
//! Data, name and attribute caches of the target's sizes; names and attributes leave by recency, data as the options
//! say; names are cached whether present or absent.
//! What is not simulated as a cache is the read-ahead inside a sequential stream (the classes `rd_*` are measured with
//! it); the window that a first read brings in is. Dirty data is followed per file: new blocks or overwritten ones,
//! what an fsync finds, and when write-back takes it away.

use super::annotated::{DirtyKind, Found, Mark, NewIn, NodeId, Pattern, SlotId, Stable, Step, SyncMark, Transfer};
use super::inodes::Inodes;
use super::lru::Lru;
use super::near::{Distance, FarPages, NearNames};
use super::pages::{DataCache, PAGE_BYTES, Use};
use super::sync::{Carries, Ledger, SyncRules};
use super::tree::{Tree, directory_pages};
use super::writeback::{Policy, Writeback};
use posix::{FileKind, SyncRange};
use system::Parameters;

/// The largest read-ahead window, pages (`read_ahead_kb` = 128, Linux's default).
const READ_AHEAD_PAGES: u64 = 32;

/// A file warms at most this many pages (1 TiB): sparse files can be longer than anyone's memory.
const WARM_PAGES_MAX: u64 = 1 << 28;

/// How the stage is set up beyond a system's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheOptions {
    /// Whether what is there when the trace begins is cached.
    pub warm: bool,
    /// Pages of a chunk of the data cache.
    pub chunk_pages: u64,
    /// What decides what a sync does, and what else was found by trying.
    pub rules: SyncRules,
}

/// What matters about a file beyond its pages and what is not committed of it.
#[derive(Clone, Copy, Debug, Default)]
struct FileState {
    /// When what was handed to the device by request will be written.
    under_way_until_ns: f64,
    /// It was cut to nothing and not closed since.
    emptied: Emptied,
    /// A directory is being listed, and its blocks were not cached when that began.
    listing_cold: bool,
}

/// Whether a file was cut to nothing since a writer last closed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Emptied {
    #[default]
    No,
    /// It had nothing to lose.
    WasEmpty,
    /// It had data.
    HadData,
}

/// Counts for the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct CacheCounts {
    /// Lookups of which name and attributes were cached, of present names.
    pub name_hits: u64,
    /// Lookups of present names that were not.
    pub name_misses: u64,
    /// Lookups of absent names, cached.
    pub negative_hits: u64,
    /// Lookups of absent names, not cached.
    pub negative_misses: u64,
    /// Pages read that were cached.
    pub page_hits: u64,
    /// Pages read that were not.
    pub page_misses: u64,
    /// Pages made dirty.
    pub pages_dirtied: u64,
    /// Pages written back by age or threshold.
    pub pages_written_back: u64,
    /// Dirty pages evicted to make room.
    pub pages_forced: u64,
    /// Dirty pages left at the end: their write-back is in nobody's latency.
    pub pages_dirty_at_end: u64,
}

/// What a call finds of what is not stable yet, as the simulation has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Unstable {
    /// Dirty pages of all files.
    pub dirty_pages: u64,
    /// Files that have some.
    pub dirty_files: u64,
    /// Changes of names, attributes and lengths since anything was last committed.
    pub metadata_changes: u64,
    /// How long ago that was; `None` before the first commit.
    pub since_commit_ns: Option<f64>,
}

/// The caches of one system.
#[derive(Clone, Debug)]
pub struct CacheStage {
    options: CacheOptions,
    block_bytes: u64,
    names: Lru,
    near: NearNames,
    attributes: Lru,
    inodes: Inodes,
    data: DataCache,
    writeback: Writeback,
    files: Vec<FileState>,
    ledger: Ledger,
    counts: CacheCounts,
}

fn unbounded_if_zero(n: u64) -> Option<usize> {
    (n > 0).then(|| usize::try_from(n).unwrap_or(usize::MAX))
}

impl CacheStage {
    /// Empty caches of a system's sizes.
    pub fn new(parameters: &Parameters, options: CacheOptions) -> CacheStage {
        let data_bytes = parameters.data_cache_to_simulate_bytes();
        CacheStage {
            options,
            block_bytes: u64::from(parameters.block_bytes).clamp(512, PAGE_BYTES),
            names: Lru::new(unbounded_if_zero(parameters.name_cache_entries)),
            near: NearNames::default(),
            attributes: Lru::new(unbounded_if_zero(parameters.attribute_cache_files)),
            inodes: Inodes::default(),
            data: DataCache::with_policy(
                (data_bytes > 0).then_some(data_bytes),
                options.chunk_pages,
                parameters.cache_policy,
            ),
            writeback: Writeback::new(Policy::new(parameters)),
            files: Vec::new(),
            ledger: Ledger::new(options.rules),
            counts: CacheCounts::default(),
        }
    }

    /// Fills the caches with what is there at the start, as far as it fits.
    pub fn warm_with(&mut self, tree: &Tree) {
        for (slot, record) in tree.live_slots() {
            self.name(slot);
            self.near.enter(&mut self.data.clock, slot.0);
            self.attribute(record.node);
        }
        for (id, node) in tree.live_nodes() {
            let pages = if node.kind == FileKind::Directory {
                directory_pages(node.dirent_bytes).into()
            } else {
                node.size_bytes.div_ceil(PAGE_BYTES)
            };
            self.data.touch(id, 0, pages, false);
        }
    }

    /// Lets a file in, as much of it as any cache could hold.
    fn warm_pages(&mut self, node: NodeId, pages: u64) {
        self.data.touch(node, 0, pages.min(WARM_PAGES_MAX), false);
    }

    /// Counts so far.
    pub fn counts(&self) -> CacheCounts {
        CacheCounts {
            pages_written_back: self.writeback.written_pages,
            pages_dirty_at_end: self.data.dirty_pages(),
            ..self.counts
        }
    }

    /// Whether anything so far depended on the predicted time.
    pub fn time_mattered(&self) -> bool {
        self.writeback.time_mattered
    }

    /// What is not stable yet, for a call that begins now.
    pub fn unstable(&self, now_ns: f64) -> Unstable {
        Unstable {
            dirty_pages: self.data.dirty_pages(),
            dirty_files: self.writeback.waiting_files(),
            metadata_changes: self.ledger.metadata_changes,
            since_commit_ns: self.ledger.committed_ns.map(|then_ns| now_ns - then_ns),
        }
    }

    /// Dirty pages of all files.
    #[inline]
    pub fn dirty_pages(&self) -> u64 {
        self.data.dirty_pages()
    }

    /// Dirty pages of a file.
    pub fn dirty_pages_of(&self, node: NodeId) -> u64 {
        self.data.pages_of(node).1
    }

    /// Whether background write-back competes with a call at this time.
    pub fn is_writing_back(&self, now_ns: f64) -> bool {
        self.writeback.is_busy(now_ns)
    }

    /// Time the device spent on background write-back.
    pub fn writeback_ns(&self) -> f64 {
        self.writeback.device_ns
    }

    /// Lets background write-back work until now.
    pub fn tick(&mut self, now_ns: f64) {
        let ledger = &mut self.ledger;
        self.writeback.tick(&mut self.data, now_ns, |node| ledger.cleaned(node));
    }

    /// How long a writer has to wait for dirty data to fall below the set point.
    pub fn throttle(&mut self, now_ns: f64) -> f64 {
        let ledger = &mut self.ledger;
        self.writeback.throttle(&mut self.data, now_ns, |node| ledger.cleaned(node))
    }

    fn name(&mut self, slot: SlotId) -> bool {
        let hit = self.names.touch(slot.0);
        self.names.pop_over_limit();
        hit
    }

    fn attribute(&mut self, node: NodeId) -> bool {
        let hit = self.attributes.touch(node.0);
        self.attributes.pop_over_limit();
        hit
    }

    /// What changes a directory has its first page in the cache.
    fn directory(&mut self, dir: NodeId) -> bool {
        self.directory_pages(dir, 0, 1)
    }

    fn directory_page(&mut self, dir: NodeId, page: u32) -> bool {
        // All of a directory that was made in the trace is in the cache if any of it is.
        let page = if self.ledger.was_made(dir) { 0 } else { page };
        self.directory_pages(dir, page.into(), 1)
    }

    fn directory_pages(&mut self, dir: NodeId, first: u64, count: u64) -> bool {
        let touched = self.data.touch(dir, first, count, false);
        self.counts.pages_forced += touched.forced;
        touched.misses == 0
    }

    fn file(&mut self, node: NodeId) -> &mut FileState {
        let at = node.index();
        if at >= self.files.len() {
            self.files.resize(at + 1 + at / 2, FileState::default());
        }
        &mut self.files[at]
    }

    fn changed_names(&mut self, dir: NodeId) {
        self.ledger.names(dir);
        self.directory(dir);
    }

    /// Answers one step.
    #[inline]
    pub fn apply(&mut self, step: &Step, now_ns: f64) -> Mark {
        self.ledger.metadata_changes += u64::from(changes_metadata(step));
        match *step {
            Step::Call(_) | Step::CallAt(..) | Step::Parent { .. } | Step::Follow => Mark::Nothing,
            Step::Lookup { dir, slot, page, child, .. } => self.lookup(dir, slot, page, child),
            Step::Read { transfer: Transfer::Blocks, .. } | Step::Write { transfer: Transfer::Blocks, .. }
                if self.shares_copies() =>
            {
                self.share(step)
            }
            Step::Read { .. } => self.read(step),
            Step::Write { .. } => self.write(step, now_ns),
            Step::Copy { from, transfer, .. } => self.copy(from, transfer),
            Step::Truncate { node, from_bytes, to_bytes, .. } => self.truncate(node, from_bytes, to_bytes),
            Step::CloseWritten { node } => self.close_written(node),
            Step::Sync { node, data_only, directory } => Mark::Sync(self.sync(node, data_only, directory, now_ns)),
            Step::SyncRange { node, how } => self.sync_range(node, how, now_ns),
            Step::DontNeed { node, first_page, end_page } => {
                self.data.drop_clean(node, first_page, end_page);
                self.start(node, now_ns);
                Mark::Nothing
            }
            Step::SyncAll => self.sync_all(now_ns),
            Step::ReadDir { node, total_bytes, first, end, .. } => self.read_dir(node, total_bytes, first, end),
            _ => self.change(step),
        }
    }

    fn lookup(&mut self, dir: NodeId, slot: SlotId, page: u32, child: NodeId) -> Mark {
        let name_hit = self.name(slot);
        let far = if name_hit {
            self.near.touch(&mut self.data.clock, slot.0)
        } else {
            self.near.enter(&mut self.data.clock, slot.0);
            Distance::default()
        };
        let present = child != NodeId::NONE;
        let attributes_hit = present && self.attribute(child);
        let (hits, misses) = if present {
            (&mut self.counts.name_hits, &mut self.counts.name_misses)
        } else {
            (&mut self.counts.negative_hits, &mut self.counts.negative_misses)
        };
        if name_hit && (attributes_hit || !present) {
            *hits += 1;
            let found = if present { Found::Hit } else { Found::NegativeHit };
            return Mark::Lookup { found, directory_cached: true, pattern: Pattern::None, far, inode_distance: 1 };
        }
        *misses += 1;
        // A cached name says where the inode is: then the directory is not read.
        let directory_cached = name_hit || self.directory_page(dir, page);
        let found = match (present, attributes_hit, directory_cached) {
            (true, true, _) => Found::AttributesHit,
            (true, false, _) => Found::Miss,
            (false, _, true) => Found::NegativeMiss,
            (false, _, false) => Found::NegativeCold,
        };
        let inode_distance = if found == Found::Miss { self.inodes.read(child.0) } else { 1 };
        // What was just read is near.
        Mark::Lookup { found, directory_cached, pattern: Pattern::None, far: Distance::default(), inode_distance }
    }

    fn read(&mut self, step: &Step) -> Mark {
        let Step::Read { node, offset, len_bytes, size_bytes, hole_bytes, direct, .. } = *step else {
            return Mark::Nothing;
        };
        if direct {
            return Mark::Read {
                cached_bytes: 0,
                disk_bytes: len_bytes,
                window_bytes: len_bytes,
                pattern: Pattern::None,
                far: FarPages::default(),
            };
        }
        let first = offset / PAGE_BYTES;
        let count = offset.saturating_add(len_bytes).div_ceil(PAGE_BYTES).saturating_sub(first);
        let touched = self.data.touch_as(node, first, count, false, Use::at(offset));
        self.counts.page_hits += touched.hits;
        self.counts.page_misses += touched.misses;
        self.counts.pages_forced += touched.forced;
        let missing_bytes =
            if touched.misses == count { len_bytes } else { (touched.misses * PAGE_BYTES).min(len_bytes) };
        // A hole's pages are filled with zeros where they are.
        let disk_bytes = missing_bytes.min(len_bytes - hole_bytes);
        let mut window_bytes = disk_bytes;
        if first == 0 && touched.misses == count && disk_bytes > 0 {
            // The first read of a file: the kernel reads a window ahead of it.
            let window = initial_window(count).max(count);
            window_bytes = size_bytes.min(window * PAGE_BYTES).max(len_bytes);
            let last = window_bytes.div_ceil(PAGE_BYTES);
            if last > count {
                self.counts.pages_forced += self.data.touch_as(node, count, last - count, false, Use::Ahead).forced;
            }
        }
        let (cached_bytes, far) = (len_bytes - disk_bytes, touched.far);
        Mark::Read { cached_bytes, disk_bytes, window_bytes, pattern: Pattern::None, far }
    }

    fn shares_copies(&self) -> bool {
        self.options.rules.behaviour().copies_share == Some(true)
    }

    /// How a copy is made. Only what is on the device can be shared: what is dirty of the source is written first.
    fn copy(&mut self, from: NodeId, transfer: Transfer) -> Mark {
        let shares = self.shares_copies() && transfer == Transfer::Blocks;
        let flushed_bytes = if shares { self.data.pages_of(from).1 * PAGE_BYTES } else { 0 };
        if flushed_bytes > 0 {
            self.clean_file(from);
        }
        Mark::Copy { shares, flushed_bytes }
    }

    /// The two ends of a copy that shares blocks: nothing is read; what is written gets other blocks, and what was
    /// cached of them before is not its data any more.
    fn share(&mut self, step: &Step) -> Mark {
        let Step::Write { node, offset, len_bytes, .. } = *step else { return Mark::Nothing };
        self.ledger.grew(node);
        self.data.drop_range(node, offset / PAGE_BYTES, offset.saturating_add(len_bytes).div_ceil(PAGE_BYTES));
        self.settle(node);
        Mark::Nothing
    }

    fn write(&mut self, step: &Step, now_ns: f64) -> Mark {
        let Step::Write { node, len_bytes, new_bytes, direct, stable, .. } = *step else {
            return Mark::Nothing;
        };
        if new_bytes > 0 {
            self.ledger.grew(node);
        } else {
            self.ledger.changed(node);
        }
        if direct {
            let sync = (stable != Stable::No).then(|| self.sync(node, stable == Stable::Data, false, now_ns));
            let cached_bytes = len_bytes - new_bytes;
            let far = FarPages::default();
            return Mark::Write {
                new_bytes,
                new_in: NewIn::NewBlocks,
                cached_bytes,
                uncached_bytes: 0,
                partial_blocks: 0,
                far,
                sync,
            };
        }
        let mut mark = self.write_cached(step);
        self.writeback.dirtied(node, now_ns);
        if stable != Stable::No
            && let Mark::Write { sync, .. } = &mut mark
        {
            *sync = Some(self.sync(node, stable == Stable::Data, false, now_ns));
        }
        mark
    }

    fn write_cached(&mut self, step: &Step) -> Mark {
        let Step::Write { node, offset, len_bytes, size_bytes, new_bytes, head_holds, tail_holds, .. } = *step else {
            return Mark::Nothing;
        };
        let block = self.block_bytes;
        let end = offset.saturating_add(len_bytes);
        let (first_page, last_page) = (offset / PAGE_BYTES, end.saturating_sub(1) / PAGE_BYTES);
        // Edge blocks of which only a part is written, that hold data, and are not in memory, are read first.
        let head_start = offset / block * block;
        let tail_start = end / block * block;
        let head = head_holds && offset > head_start && !self.data.has(node, first_page);
        let tail = tail_holds
            && end > tail_start
            && end < size_bytes
            && tail_start >= offset
            && !self.data.has(node, last_page);
        let one_block = head_start == tail_start;
        let tail = (tail
            || (tail_holds
                && one_block
                && !head
                && end < size_bytes
                && !self.data.has(node, first_page)
                && end > tail_start))
            && !(head && one_block);
        let partial_blocks = u32::from(head) + u32::from(tail);

        let pages = last_page - first_page + 1;
        let touched = self.data.touch_as(node, first_page, pages, true, Use::at(offset));
        self.counts.pages_dirtied += touched.dirtied;
        self.counts.pages_forced += touched.forced;
        let allocated_bytes = self.ledger.length_on_device(node, size_bytes);
        if new_bytes > 0 {
            self.ledger.wrote_new(node, touched.dirtied, (end > size_bytes).then_some(size_bytes));
        }
        let old_bytes = len_bytes - new_bytes;
        // Pages past the old end are always missing; of the old ones, the edges are priced as partial blocks.
        let new_pages = new_bytes.div_ceil(PAGE_BYTES).min(pages);
        let missing_old = touched.misses.saturating_sub(new_pages).saturating_sub(u64::from(partial_blocks));
        let uncached_bytes = (missing_old * PAGE_BYTES).min(old_bytes);
        let edge_bytes = u64::from(partial_blocks) * block;
        let extends =
            new_bytes == len_bytes && offset >= size_bytes && offset > head_start && one_block_run(offset, end, block);
        let new_in = match extends {
            false => NewIn::NewBlocks,
            true if head_start < allocated_bytes => NewIn::AllocatedBlock,
            true => NewIn::LastBlock,
        };
        Mark::Write {
            new_bytes,
            new_in,
            cached_bytes: (old_bytes - uncached_bytes).saturating_sub(edge_bytes),
            uncached_bytes,
            partial_blocks,
            far: touched.far,
            sync: None,
        }
    }

    fn truncate(&mut self, node: NodeId, from_bytes: u64, to_bytes: u64) -> Mark {
        let (pages, _) = self.data.pages_of(node);
        if to_bytes < from_bytes {
            self.data.drop_from(node, to_bytes.div_ceil(PAGE_BYTES));
            self.settle(node);
        }
        let dirty_bytes = self.data.pages_of(node).1 * PAGE_BYTES;
        let kept_bytes = self.ledger.longer_bytes(node, to_bytes).min(dirty_bytes);
        if kept_bytes > 0 && self.options.rules.behaviour().truncate_writes == Some(true) {
            self.clean_file(node);
        }
        if from_bytes > 0 {
            self.ledger.grew(node);
        }
        let file = self.file(node);
        if to_bytes == 0 {
            file.emptied = match (from_bytes, file.emptied) {
                (0, Emptied::No) => Emptied::WasEmpty,
                (0, before) => before,
                _ => Emptied::HadData,
            };
        }
        Mark::Truncate { uncached: from_bytes > 0 && pages == 0, kept_bytes }
    }

    /// A file that was emptied and written anew is written back when it is closed, so that a crash does not leave it
    /// empty. Whether a system does that shows in what its `close_tr` and `close_tre` cost; that its pages are clean
    /// afterwards is taken for granted.
    fn close_written(&mut self, node: NodeId) -> Mark {
        let emptied = std::mem::take(&mut self.file(node).emptied);
        let flushed_bytes = if emptied == Emptied::No { 0 } else { self.data.pages_of(node).1 * PAGE_BYTES };
        if emptied == Emptied::HadData {
            self.clean_file(node);
        }
        Mark::Close { flushed_bytes, was_empty: emptied == Emptied::WasEmpty }
    }

    /// The state in which a file's blocks are given back.
    fn removal(&mut self, node: NodeId, size_bytes: u64) -> Mark {
        let (pages, dirty) = self.data.pages_of(node);
        let unwritten = self.ledger.is_new(node);
        let is_dirty = if size_bytes == 0 { unwritten } else { dirty > 0 && dirty * 2 >= pages };
        Mark::Remove { dirty: is_dirty, uncached: size_bytes > 0 && pages == 0, moved_dirty_bytes: 0 }
    }

    /// After pages were dropped: is the file still dirty?
    fn settle(&mut self, node: NodeId) {
        if self.data.pages_of(node).1 == 0 {
            self.ledger.cleaned(node);
            self.writeback.cleaned(node);
        }
    }

    fn sync(&mut self, node: NodeId, data_only: bool, directory: bool, now_ns: f64) -> SyncMark {
        let dirty_pages = self.data.pages_of(node).1;
        let found = self.ledger.found(node, data_only, directory, dirty_pages);
        let wait_ns = self.wait_for(node, now_ns);
        let mut mark = SyncMark {
            kind: found.kind,
            dirty_bytes: dirty_pages * PAGE_BYTES,
            runs: self.data.dirty_runs(node),
            other_bytes: found.other_pages * PAGE_BYTES,
            logged: found.logged,
            data_only,
            wait_ns,
        };
        self.clean_file(node);
        let carried = self.ledger.carried(found.carries, node, self.writeback.waiting());
        for other in carried {
            // Where the system waits for others' new data anyway, that is `fsync_oth`; else it is data like the file's
            // own.
            if found.carries == Carries::Operations {
                mark.dirty_bytes += self.data.pages_of(other).1 * PAGE_BYTES;
            }
            self.clean_file(other);
        }
        self.ledger.synced(node, found.kind, data_only, now_ns);
        mark
    }

    fn clean_file(&mut self, node: NodeId) {
        self.data.clean(node, u64::MAX);
        self.settle(node);
    }

    fn sync_range(&mut self, node: NodeId, how: SyncRange, now_ns: f64) -> Mark {
        let (dirty_bytes, runs) = (self.data.pages_of(node).1 * PAGE_BYTES, self.data.dirty_runs(node));
        let waits = how.wait_before || how.wait_after;
        let wait_ns = if waits { self.wait_for(node, now_ns) } else { 0.0 };
        if how.write && how.wait_after {
            self.clean_file(node);
            let kind = if dirty_bytes > 0 { DirtyKind::Overwrite } else { DirtyKind::Clean };
            return Mark::Sync(SyncMark {
                kind,
                dirty_bytes,
                runs,
                other_bytes: 0,
                logged: 0,
                data_only: true,
                wait_ns,
            });
        }
        let started_bytes = if how.write { dirty_bytes } else { 0 };
        if how.write {
            self.start(node, now_ns + wait_ns);
        }
        Mark::SyncRange { started_bytes, wait_ns }
    }

    /// Hands a file's dirty pages to the device; nobody waits.
    fn start(&mut self, node: NodeId, now_ns: f64) {
        if self.data.pages_of(node).1 > 0 {
            let until_ns = self.writeback.start(&mut self.data, node, now_ns);
            self.ledger.cleaned(node);
            self.file(node).under_way_until_ns = until_ns;
        }
    }

    /// How long whoever waits for a file's data waits for what is under way.
    fn wait_for(&mut self, node: NodeId, now_ns: f64) -> f64 {
        let until_ns = std::mem::take(&mut self.file(node).under_way_until_ns);
        (until_ns - now_ns).max(0.0)
    }

    fn sync_all(&mut self, now_ns: f64) -> Mark {
        let dirty_bytes = self.data.dirty_pages() * PAGE_BYTES;
        let (logged, changed) = self.ledger.pending();
        let (data, ledger) = (&mut self.data, &mut self.ledger);
        self.writeback.drain(|node| {
            data.clean(node, u64::MAX);
            ledger.cleaned(node);
        });
        self.ledger.synced_all(now_ns);
        Mark::SyncAll { dirty_bytes, logged, changed }
    }

    fn read_dir(&mut self, node: NodeId, total_bytes: u64, first: bool, end: bool) -> Mark {
        let pages = if self.ledger.was_made(node) { 1 } else { directory_pages(total_bytes) };
        let cached = self.directory_pages(node, 0, pages.into());
        let file = self.file(node);
        if first {
            file.listing_cold = !cached;
        }
        let cold = file.listing_cold;
        if end {
            file.listing_cold = false;
        }
        Mark::ReadDir { cold }
    }

    /// Steps that change names and attributes; removals answer with the state of what they remove.
    fn change(&mut self, step: &Step) -> Mark {
        match *step {
            Step::Made { dir, slot, node, directory } => {
                *self.file(node) = FileState::default();
                self.ledger.made(node, if slot == SlotId::NONE { NodeId::NONE } else { dir });
                self.attribute(node);
                if slot != SlotId::NONE {
                    self.name(slot);
                    self.changed_names(dir);
                }
                if directory {
                    self.directory(node);
                }
            }
            Step::Linked { dir, slot, node } => {
                self.name(slot);
                self.changed_names(dir);
                self.ledger.renamed(node);
            }
            Step::Unlinked { dir, slot, node, size_bytes, open, .. } => {
                let mark = self.removal(node, size_bytes);
                // The absent name stays cached, unless an open file holds on to its directory entry.
                if open {
                    self.names.remove(slot.0);
                } else {
                    self.name(slot);
                }
                self.changed_names(dir);
                self.ledger.renamed(node);
                return mark;
            }
            Step::RemovedDirectory { dir, slot } => {
                self.name(slot);
                self.changed_names(dir);
            }
            Step::Renamed { moved, from_dir, from_slot, to_dir, to_slot, over, over_bytes, .. } => {
                self.ledger.renamed(to_dir);
                let mut mark = if over == NodeId::NONE { Mark::Nothing } else { self.removal(over, over_bytes) };
                if let Mark::Remove { moved_dirty_bytes, .. } = &mut mark {
                    *moved_dirty_bytes = self.data.pages_of(moved).1 * PAGE_BYTES;
                }
                // The cached entry moves to the new name; nothing is known any more of the old one.
                self.names.remove(from_slot.0);
                self.name(to_slot);
                self.changed_names(from_dir);
                self.changed_names(to_dir);
                return mark;
            }
            Step::Exchanged { from_dir, to_dir } => {
                self.changed_names(from_dir);
                self.changed_names(to_dir);
            }
            Step::Freed { node, size_bytes, .. } => {
                let mark = self.removal(node, size_bytes);
                self.data.drop_from(node, 0);
                self.settle(node);
                self.attributes.remove(node.0);
                *self.file(node) = FileState::default();
                self.ledger.forget(node);
                return mark;
            }
            Step::Allocate { node, grew } => {
                if grew {
                    self.ledger.grew(node);
                } else {
                    self.ledger.changed(node);
                }
            }
            Step::Changed { node } => self.ledger.set_attributes(node),
            Step::Adopted { dir, slot, node, size_bytes, directory } => {
                *self.file(node) = FileState::default();
                self.ledger.forget(node);
                if self.options.warm {
                    self.name(slot);
                    self.near.enter(&mut self.data.clock, slot.0);
                    self.attribute(node);
                    self.directory(dir);
                    let pages = if directory { 1 } else { size_bytes.div_ceil(PAGE_BYTES) };
                    self.warm_pages(node, pages);
                }
            }
            Step::Pinned { dir, slot, node } => {
                self.name(slot);
                self.attribute(node);
                self.directory(dir);
            }
            Step::Forgotten { slot } => {
                self.names.remove(slot.0);
            }
            _ => {}
        }
        Mark::Nothing
    }
}

/// Whether a step changes what a log would have to carry: names, attributes, lengths, maps of blocks.
fn changes_metadata(step: &Step) -> bool {
    match *step {
        Step::Made { .. }
        | Step::Linked { .. }
        | Step::Unlinked { .. }
        | Step::RemovedDirectory { .. }
        | Step::Renamed { .. }
        | Step::Exchanged { .. }
        | Step::Changed { .. } => true,
        Step::Write { new_bytes, .. } => new_bytes > 0,
        Step::Truncate { from_bytes, to_bytes, .. } => from_bytes != to_bytes,
        Step::Allocate { grew, .. } => grew,
        Step::Freed { on_close, .. } => on_close,
        _ => false,
    }
}

/// Whether a range lies in one block.
fn one_block_run(offset: u64, end: u64, block: u64) -> bool {
    end > offset && offset / block == (end - 1) / block
}

/// The window of a file's first read, pages: `get_init_ra_size` of Linux's mm/readahead.c.
fn initial_window(request_pages: u64) -> u64 {
    let size = request_pages.checked_next_power_of_two().unwrap_or(u64::MAX);
    match size {
        _ if size <= READ_AHEAD_PAGES / 32 => size * 4,
        _ if size <= READ_AHEAD_PAGES / 4 => size * 2,
        _ => READ_AHEAD_PAGES,
    }
}
