//! Sizes of requests, and whether they continue where the last one ended.

use super::histogram::{Bar, Distribution, Histogram};
use crate::{Call, Event, FileId, OfdId, Opened, Range, flag};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// One direction's requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Requests {
    /// Calls that succeeded.
    pub calls: u64,
    /// Bytes they asked for.
    pub requested_bytes: u64,
    /// Bytes they moved.
    pub moved_bytes: u64,
    /// Sizes asked for, bytes.
    pub sizes: Distribution,
    /// The same as bars, one per power of two.
    pub size_bars: Vec<Bar>,
    /// How they follow one another on one open file description.
    pub by_description: Sequentiality,
    /// How they follow one another on one file, whoever asks.
    pub by_file: Sequentiality,
}

/// Sequentiality of requests whose offset is known. The first request of a description (or file) follows none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sequentiality {
    /// Requests that follow none.
    pub first_calls: u64,
    /// Requests that begin where the last of the same direction ended.
    pub sequential_calls: u64,
    /// Requests that begin elsewhere.
    pub other_calls: u64,
    /// Bytes moved by the sequential ones.
    pub sequential_bytes: u64,
    /// Sequential among those that follow one, 0 to 1; `None` where none does.
    pub sequential_share: Option<f64>,
    /// Lengths of runs of adjacent requests, bytes.
    pub run_bytes: Distribution,
}

/// Where a run stands.
#[derive(Clone, Copy)]
struct Run {
    start: u64,
    end: u64,
}

struct Runs<K> {
    runs: FxHashMap<K, Run>,
    lengths: Histogram,
    first: u64,
    sequential: u64,
    other: u64,
    sequential_bytes: u64,
}

impl<K> Default for Runs<K> {
    fn default() -> Self {
        Runs {
            runs: FxHashMap::default(),
            lengths: Histogram::default(),
            first: 0,
            sequential: 0,
            other: 0,
            sequential_bytes: 0,
        }
    }
}

impl<K: std::hash::Hash + Eq> Runs<K> {
    fn add(&mut self, key: K, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        let Some(run) = self.runs.get_mut(&key) else {
            self.first += 1;
            self.runs.insert(key, Run { start: offset, end });
            return;
        };
        if run.end == offset {
            self.sequential += 1;
            self.sequential_bytes = self.sequential_bytes.saturating_add(len);
            run.end = end;
        } else {
            self.other += 1;
            self.lengths.add(run.end - run.start);
            *run = Run { start: offset, end };
        }
    }

    /// The key will not be seen again.
    fn end(&mut self, key: &K) {
        if let Some(run) = self.runs.remove(key) {
            self.lengths.add(run.end - run.start);
        }
    }

    fn finish(mut self) -> Sequentiality {
        for run in self.runs.values() {
            self.lengths.add(run.end - run.start);
        }
        let followed = self.sequential + self.other;
        Sequentiality {
            first_calls: self.first,
            sequential_calls: self.sequential,
            other_calls: self.other,
            sequential_bytes: self.sequential_bytes,
            sequential_share: (followed > 0).then(|| self.sequential as f64 / followed as f64),
            run_bytes: self.lengths.distribution(),
        }
    }
}

/// Follows one direction.
#[derive(Default)]
pub(super) struct Locality {
    calls: u64,
    requested: u64,
    moved: u64,
    sizes: Histogram,
    by_description: Runs<OfdId>,
    by_file: Runs<FileId>,
}

impl Locality {
    /// A successful read or write, and how many bytes it moved.
    pub(super) fn add(&mut self, range: &Range, moved: u64) {
        let requested = range.bytes.unwrap_or(moved);
        self.calls += 1;
        self.requested = self.requested.saturating_add(requested);
        self.moved = self.moved.saturating_add(moved);
        self.sizes.add(requested);
        // A read at the end of the file moves nothing and breaks no run.
        let Some(offset) = range.offset.filter(|_| moved > 0) else { return };
        if let Some(ofd) = range.of.ofd {
            self.by_description.add(ofd, offset, moved);
        }
        if let Some(file) = range.of.file {
            self.by_file.add(file, offset, moved);
        }
    }

    /// Forgets what will not come again, so that memory is bounded by what is live.
    pub(super) fn forget(&mut self, event: &Event) {
        if let Call::Close(Opened { ofd: Some(ofd), .. }) = event.call
            && event.head.flags & flag::LAST != 0
        {
            self.by_description.end(&ofd);
        }
    }

    pub(super) fn finish(self) -> Requests {
        Requests {
            calls: self.calls,
            requested_bytes: self.requested,
            moved_bytes: self.moved,
            sizes: self.sizes.distribution(),
            size_bars: self.sizes.bars(),
            by_description: self.by_description.finish(),
            by_file: self.by_file.finish(),
        }
    }
}
