//! Write-back: when dirty data leaves the cache by itself, and what that costs those who do not wait for it.
//!
//! The policy is Linux's in outline: files wait in the order in which they became dirty; a file older than the expiry
//! age is written; above the background threshold the oldest are written until below it; a writer that would go beyond
//! the set point between background threshold and limit waits. The device writes one file at a time at the measured
//! write-back rates.

use super::annotated::NodeId;
use super::pages::{DataCache, PAGE_BYTES};
use system::Parameters;

const NONE: u32 = u32::MAX;

/// A file is written in pieces of this many pages, then waits behind the others again (`MIN_WRITEBACK_PAGES`).
const PIECE_PAGES: u64 = 1024;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    since_ns: f64,
    before: u32,
    after: u32,
    queued: bool,
}

const NOT_WAITING: Waiting = Waiting { since_ns: 0.0, before: NONE, after: NONE, queued: false };

/// Thresholds and rates of one system, in pages and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    background_pages: f64,
    set_point_pages: f64,
    expire_ns: f64,
    page_ns: f64,
    file_ns: f64,
}

impl Policy {
    /// The policy of a system whose dirty thresholds scale with its cache. A threshold of 0 is taken as not known: no
    /// limit.
    pub fn new(parameters: &Parameters) -> Policy {
        let pages = |bytes: u64| if bytes == 0 { f64::INFINITY } else { bytes as f64 / PAGE_BYTES as f64 };
        let (background, limit) = (pages(parameters.dirty_background_bytes), pages(parameters.dirty_limit_bytes));
        let set_point = if background.is_finite() { (background + 3.0 * limit) / 4.0 } else { limit };
        let inverse = |rate: f64| if rate > 0.0 { 1e9 / rate } else { 0.0 };
        Policy {
            background_pages: background.min(limit),
            set_point_pages: set_point,
            expire_ns: if parameters.dirty_expire_ns == 0 { f64::INFINITY } else { parameters.dirty_expire_ns as f64 },
            page_ns: inverse(parameters.writeback_bytes_per_s) * PAGE_BYTES as f64,
            file_ns: inverse(parameters.writeback_files_per_s),
        }
    }
}

/// The queue of dirty files and the state of the flusher.
#[derive(Clone, Debug)]
pub struct Writeback {
    policy: Policy,
    waiting: Vec<Waiting>,
    oldest: u32,
    newest: u32,
    files: u64,
    busy_until_ns: f64,
    /// Pages written back by age or threshold so far.
    pub written_pages: u64,
    /// Time it took the device.
    pub device_ns: f64,
    /// Whether anything ever happened that depends on the clock.
    pub time_mattered: bool,
}

impl Writeback {
    pub fn new(policy: Policy) -> Writeback {
        Writeback {
            policy,
            waiting: Vec::new(),
            oldest: NONE,
            newest: NONE,
            files: 0,
            busy_until_ns: 0.0,
            written_pages: 0,
            device_ns: 0.0,
            time_mattered: false,
        }
    }

    /// A file became dirty; the first time counts.
    pub fn dirtied(&mut self, node: NodeId, now_ns: f64) {
        let at = node.index();
        if at >= self.waiting.len() {
            self.waiting.resize(at + 1 + at / 2, NOT_WAITING);
        }
        if self.waiting[at].queued {
            return;
        }
        self.files += 1;
        self.waiting[at] = Waiting { since_ns: now_ns, before: self.newest, after: NONE, queued: true };
        if self.newest == NONE {
            self.oldest = node.0;
        } else {
            self.waiting[self.newest as usize].after = node.0;
        }
        self.newest = node.0;
    }

    /// A file is clean or gone.
    pub fn cleaned(&mut self, node: NodeId) {
        let Some(&Waiting { before, after, queued: true, .. }) = self.waiting.get(node.index()) else { return };
        self.files -= 1;
        if before == NONE {
            self.oldest = after
        } else {
            self.waiting[before as usize].after = after
        }
        if after == NONE {
            self.newest = before
        } else {
            self.waiting[after as usize].before = before
        }
        self.waiting[node.index()] = NOT_WAITING;
    }

    /// Empties the queue, oldest first: someone waits for all of it.
    pub fn drain(&mut self, mut clean: impl FnMut(NodeId)) {
        while self.oldest != NONE {
            let node = NodeId(self.oldest);
            self.cleaned(node);
            clean(node);
        }
    }

    /// Lets the flusher work until `now_ns`. `on_clean` hears of each file that became clean.
    pub fn tick(&mut self, data: &mut DataCache, now_ns: f64, mut on_clean: impl FnMut(NodeId)) {
        while self.oldest != NONE && self.busy_until_ns <= now_ns {
            let expires_ns = self.waiting[self.oldest as usize].since_ns + self.policy.expire_ns;
            let over = data.dirty_pages() as f64 > self.policy.background_pages;
            if expires_ns > now_ns && !over {
                return;
            }
            // The flusher began when there was reason to, which may be before this call.
            let start_ns = if over { now_ns.max(self.busy_until_ns) } else { expires_ns.max(self.busy_until_ns) };
            self.write_piece(data, start_ns, &mut on_clean);
        }
    }

    /// Makes a writer wait until dirty data is below the set point; returns for how long.
    pub fn throttle(&mut self, data: &mut DataCache, now_ns: f64, mut on_clean: impl FnMut(NodeId)) -> f64 {
        let mut until_ns = now_ns;
        while self.oldest != NONE && data.dirty_pages() as f64 > self.policy.set_point_pages {
            self.write_piece(data, self.busy_until_ns.max(now_ns), &mut on_clean);
            until_ns = self.busy_until_ns.max(now_ns);
        }
        until_ns - now_ns
    }

    /// The files that have dirty data, oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = NodeId> {
        let next = |at: u32| (at != NONE).then_some(at);
        std::iter::successors(next(self.oldest), move |&at| next(self.waiting[at as usize].after)).map(NodeId)
    }

    /// Files that have dirty data.
    pub fn waiting_files(&self) -> u64 {
        self.files
    }

    /// A file's dirty pages are handed to the device now, behind what it has; answers when they will be written.
    pub fn start(&mut self, data: &mut DataCache, node: NodeId, now_ns: f64) -> f64 {
        let pages = data.clean(node, u64::MAX);
        self.cleaned(node);
        self.occupy(pages, self.busy_until_ns.max(now_ns));
        self.busy_until_ns
    }

    /// The device writes so many pages of a file.
    fn occupy(&mut self, pages: u64, start_ns: f64) {
        self.time_mattered = true;
        let cost_ns =
            self.policy.file_ns.max(self.policy.page_ns) + self.policy.page_ns * pages.saturating_sub(1) as f64;
        self.busy_until_ns = start_ns + cost_ns;
        self.written_pages += pages;
        self.device_ns += cost_ns;
    }

    /// Whether the flusher is writing.
    pub fn is_busy(&self, now_ns: f64) -> bool {
        now_ns < self.busy_until_ns
    }

    /// Writes that somebody waited for keep the flusher busy as well, but are not its own.
    fn write_piece(&mut self, data: &mut DataCache, start_ns: f64, on_clean: &mut impl FnMut(NodeId)) {
        let node = NodeId(self.oldest);
        let pages = data.clean(node, PIECE_PAGES);
        self.occupy(pages, start_ns);
        let since_ns = self.waiting[node.index()].since_ns;
        self.cleaned(node);
        if data.pages_of(node).1 > 0 {
            self.dirtied(node, since_ns);
        } else {
            on_clean(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Parameters {
        Parameters {
            dirty_background_bytes: 10 * PAGE_BYTES,
            dirty_limit_bytes: 20 * PAGE_BYTES,
            dirty_expire_ns: 1000,
            writeback_bytes_per_s: PAGE_BYTES as f64 * 1e7, // 100 ns a page
            writeback_files_per_s: 2e6,                     // 500 ns a small file
            ..Parameters::default()
        }
    }

    fn dirty(w: &mut Writeback, data: &mut DataCache, node: u32, pages: u64, now_ns: f64) {
        data.touch(NodeId(node), 0, pages, true);
        w.dirtied(NodeId(node), now_ns);
    }

    #[test]
    fn old_files_are_written_in_the_order_of_their_age() {
        let (mut w, mut data) = (Writeback::new(Policy::new(&parameters())), DataCache::new(None, 64));
        dirty(&mut w, &mut data, 1, 2, 0.0);
        dirty(&mut w, &mut data, 2, 1, 100.0);
        let mut clean = Vec::new();
        w.tick(&mut data, 999.0, |n| clean.push(n.0));
        assert!(clean.is_empty() && !w.time_mattered);
        w.tick(&mut data, 1000.0, |n| clean.push(n.0));
        assert_eq!(clean, [1]);
        // 500 for the first page and the inode, 100 for the second page.
        assert!(w.is_busy(1599.0) && !w.is_busy(1600.0));
        w.tick(&mut data, 1599.0, |n| clean.push(n.0));
        assert_eq!(clean, [1]);
        w.tick(&mut data, 1600.0, |n| clean.push(n.0));
        assert_eq!((clean.as_slice(), data.dirty_pages()), ([1, 2].as_slice(), 0));
    }

    #[test]
    fn above_the_background_threshold_age_does_not_matter() {
        let (mut w, mut data) = (Writeback::new(Policy::new(&parameters())), DataCache::new(None, 64));
        dirty(&mut w, &mut data, 1, 6, 0.0);
        dirty(&mut w, &mut data, 2, 5, 0.0);
        let mut clean = Vec::new();
        w.tick(&mut data, 1.0, |n| clean.push(n.0));
        assert_eq!(clean, [1], "one file brings it below");
    }

    #[test]
    fn a_writer_waits_at_the_set_point() {
        let (mut w, mut data) = (Writeback::new(Policy::new(&parameters())), DataCache::new(None, 64));
        dirty(&mut w, &mut data, 1, 10, 0.0);
        assert_eq!(w.throttle(&mut data, 0.0, |_| ()), 0.0);
        dirty(&mut w, &mut data, 2, 8, 0.0);
        // Set point: (10 + 3 * 20) / 4 = 17.5 pages; file 1 goes, 500 + 9 * 100 ns.
        assert_eq!(w.throttle(&mut data, 50.0, |_| ()), 1400.0);
        assert_eq!(data.dirty_pages(), 8);
    }
}
