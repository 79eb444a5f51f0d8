//! Adding files up, one at a time: sums, histograms and a bounded list of the worst.

use crate::SurveyOptions;
use crate::geometry::Groups;
use crate::map::MapBuilder;
use crate::scores::class::{ClassRow, Classes};
use crate::scores::distance::{Distances, TreeScan};
use crate::scores::file::{FileLayout, Kinds};
use crate::scores::split::SplitFiles;
use crate::scores::worst::Worst;
use crate::scores::xfs_factor::XfsFactor;
use crate::survey::{Available, FilesLayout, HotFiles};
use posix::Extent;
use rustc_hash::FxHashMap;

/// One file as the walk found it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileFacts {
    pub(crate) ino: u64,
    pub(crate) size_bytes: u64,
    pub(crate) mtime_ns: i64,
}

/// Where the last file of a directory ended: what the next one is compared with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DirectoryPlace {
    end_bytes: Option<u64>,
}

/// The sums so far.
pub(crate) struct Collector {
    block_bytes: u64,
    groups: Result<Groups, String>,
    hot_since_ns: Option<i64>,
    hot_days: f64,
    all: ClassRow,
    hot: ClassRow,
    classes: Classes,
    kinds: Kinds,
    records: u64,
    xfs: XfsFactor,
    split: Option<SplitFiles>,
    locality: Distances,
    scan: TreeScan,
    scan_at_bytes: Option<u64>,
    worst: Worst,
    map: Option<MapBuilder>,
}

const DAY_NS: f64 = 86_400e9;

impl Collector {
    /// Nothing added yet. `groups`: or why they are not known. `map`: an empty one, where one was asked for.
    pub(crate) fn new(
        block_bytes: u64,
        groups: Result<Groups, String>,
        taken_unix_s: i64,
        options: &SurveyOptions,
        map: Option<MapBuilder>,
    ) -> Collector {
        let hot_since_ns = options.hot_days.map(|days| {
            // Saturates for ages beyond what nanoseconds can count.
            taken_unix_s.saturating_mul(1_000_000_000).saturating_sub((days * DAY_NS) as i64)
        });
        Collector {
            block_bytes,
            split: groups.as_ref().ok().map(SplitFiles::new),
            groups,
            hot_since_ns,
            hot_days: options.hot_days.unwrap_or(0.0),
            all: ClassRow { high: u64::MAX, ..ClassRow::default() },
            hot: ClassRow { high: u64::MAX, ..ClassRow::default() },
            classes: Classes::default(),
            kinds: Kinds::default(),
            records: 0,
            xfs: XfsFactor::default(),
            locality: Distances::default(),
            scan: TreeScan::default(),
            scan_at_bytes: None,
            worst: Worst::new(options.worst_files),
            map,
        }
    }

    /// Adds a file met at this place of a directory.
    pub(crate) fn file(
        &mut self,
        place: &mut DirectoryPlace,
        facts: FileFacts,
        extents: &[Extent],
        path: impl FnOnce() -> String,
    ) {
        let layout = FileLayout::of(extents, self.block_bytes);
        self.all.add(facts.size_bytes, &layout);
        self.classes.add(facts.size_bytes, &layout);
        if self.hot_since_ns.is_some_and(|since| facts.mtime_ns >= since) {
            self.hot.add(facts.size_bytes, &layout);
        }
        self.kinds.add(&layout.kinds);
        self.records += layout.records;
        self.xfs.actual += layout.extents;
        self.xfs.ideal += layout.runs;
        if let Some(map) = &mut self.map {
            map.file(extents, facts.mtime_ns);
        }
        self.worst.offer(facts.ino, facts.size_bytes, &layout, path);
        if let (Some(first), Some(end)) = (layout.first_bytes, layout.end_bytes) {
            if let (Some(split), Ok(groups)) = (&mut self.split, &self.groups) {
                split.add(groups, facts.ino, first);
            }
            self.travel(place, &layout, first, end);
        }
    }

    fn travel(&mut self, place: &mut DirectoryPlace, layout: &FileLayout, first: u64, end: u64) {
        if let Some(before) = place.end_bytes.replace(end) {
            self.locality.add(before, first);
        }
        if let Some(at) = self.scan_at_bytes.replace(end) {
            self.scan.seeks += u64::from(at != first);
            self.scan.distance_bytes = self.scan.distance_bytes.saturating_add(at.abs_diff(first));
        }
        self.scan.files += 1;
        self.scan.seeks += layout.jumps;
        self.scan.seeks_inside_files += layout.jumps;
        self.scan.distance_bytes = self.scan.distance_bytes.saturating_add(layout.jump_bytes);
        self.scan.distance_inside_files_bytes = self.scan.distance_inside_files_bytes.saturating_add(layout.jump_bytes);
        self.scan.read_bytes = self.scan.read_bytes.saturating_add(layout.blocks.saturating_mul(self.block_bytes));
    }

    /// The map so far, for the free space to be added.
    pub(crate) fn take_map(&mut self) -> Option<MapBuilder> {
        self.map.take()
    }

    /// The figures.
    pub(crate) fn finished(self) -> FilesLayout {
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        let (by_size, by_blocks) = self.classes.finished();
        let hot = self.hot_since_ns.map(|_| HotFiles {
            days: self.hot_days,
            share_of_files: share(self.hot.files, self.all.files),
            share_of_blocks: share(self.hot.blocks, self.all.blocks),
            row: self.hot.finished(),
        });
        let placed_mib = self.all.blocks as f64 * self.block_bytes as f64 / f64::from(1 << 20);
        FilesLayout {
            score: self.all.score,
            layout_score: self.all.score.value(),
            records: self.records,
            extents_per_mib: (self.all.blocks > 0).then(|| self.all.extents as f64 / placed_mib),
            xfs_fragmentation: self.xfs.value(),
            xfs_factor: self.xfs,
            kinds: self.kinds,
            by_size,
            by_blocks,
            hot,
            split: match (self.split, self.groups) {
                (Some(split), _) => Available::Known(split),
                (None, Err(why)) => Available::Unavailable(why),
                (None, Ok(_)) => Available::Unavailable("allocation groups are not known".to_owned()),
            },
            locality: self.locality,
            scan: self.scan,
            worst: self.worst.finished(),
            all: self.all.finished(),
        }
    }
}
/// Names still to come of files with several, by inode.
#[derive(Debug, Default)]
pub(crate) struct LinksLeft(FxHashMap<u64, u32>);

impl LinksLeft {
    /// Whether another of a file's names was counted already. Forgets a file once all its names have been seen.
    pub(crate) fn seen_before(&mut self, ino: u64, links: u32) -> bool {
        match self.0.get_mut(&ino) {
            Some(left) => {
                *left -= 1;
                if *left == 0 {
                    self.0.remove(&ino);
                }
                true
            }
            None => {
                self.0.insert(ino, links - 1);
                false
            }
        }
    }
}
