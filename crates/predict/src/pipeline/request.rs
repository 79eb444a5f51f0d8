//! Request vectors: how many of which elementary operation a marked step costs.

use super::annotated::{DirtyKind, Found, Mark, NewIn, NodeId, Pattern, Role, Step, SyncMark, Transfer};
use super::near::FarPages;
use super::pages::PAGE_BYTES;
use system::vector::{Class, Part};

/// A class at a size, and how often. Negative where one class already includes a part of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// The elementary operation.
    pub class: Class,
    /// Bytes or entries, for a curve.
    pub size: u64,
    /// How many.
    pub weight: f64,
}

/// `fsync_oth` is measured up to this much dirty data of others; more is taken as this much.
const OTHER_BYTES_MAX: u64 = 4 << 20;
/// The first measured point of `fsync_oth`; less dirty data costs in proportion.
const OTHER_BYTES_MIN: u64 = 64 << 10;
/// `fsync_log` is measured between these numbers of names; fewer cost in proportion, more are taken as the most.
const LOG_NAMES_MIN: u64 = 10;
const LOG_NAMES_MAX: u64 = 10_000;
/// `sync_idle` is measured between these times; a shorter rest costs in proportion, a longer one as the longest.
const IDLE_NS_MIN: u64 = 100_000;
const IDLE_NS_MAX: u64 = 10_000_000;
/// `syncfs` is measured with files of this length.
const SYNC_FILE_BYTES: u64 = 64 << 10;
/// `lur_few` is of directories of up to so many names; in those of `lur_nc` a name is so far from its directory, on
/// average.
const FEW_NAMES: u32 = 16;
const MEASURED_DISTANCE: u64 = 20;
/// `lun_ac` is of directories of up to so many names.
const FEW_NAMES_SEARCHED: u32 = 50;
/// `copy` is measured up to this much.
const COPY_BYTES_MAX: u64 = 1 << 20;
/// `rename_over` is measured over a file of this length.
const OVER_BYTES: u64 = 4096;

/// `rdc_far` is measured with requests of this many bytes.
const FAR_BYTES: f64 = 16384.0;

/// Collects the requests of one call.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    list: Vec<Request>,
    /// Whether one of them uses the device, as a rule.
    device: bool,
    /// Whether one of them is a sync with something to write.
    sync: bool,
}

impl Requests {
    /// The requests so far.
    pub fn list(&self) -> &[Request] {
        &self.list
    }

    /// Whether the device is used for them, as a rule.
    pub fn use_device(&self) -> bool {
        self.device
    }

    /// Whether there is a sync with something to write.
    pub fn has_sync(&self) -> bool {
        self.sync
    }

    /// The device has had nothing to do for so long before: a sync finds it resting.
    pub fn rested(&mut self, rest_ns: f64) {
        if rest_ns < 1.0 || !self.has_sync() {
            return;
        }
        let share = (rest_ns / IDLE_NS_MIN as f64).min(1.0);
        self.add(Class::SyncIdle, (rest_ns as u64).clamp(IDLE_NS_MIN, IDLE_NS_MAX), share);
    }

    /// Nothing has been synced yet since the caches were emptied. Returns whether something is now.
    pub fn first_sync(&mut self) -> bool {
        let syncs = self.has_sync();
        if syncs {
            self.add(Class::SyncFirst, 0, 1.0);
        }
        syncs
    }

    /// What is read on from the device, in a file that is read from end to end: bytes.
    pub fn reads_on_bytes(&self) -> Option<u64> {
        self.list.iter().find(|request| request.class == Class::ReadSeq).map(|request| request.size)
    }

    /// A share of what is read on has been read ahead, and is cached by then.
    pub fn read_ahead(&mut self, size: u64, share: f64) {
        self.add(Class::ReadSeq, size, -share);
        self.add(Class::ReadCached, size, share);
    }

    /// Takes back all but the first so many: what was added behind them because of what they are.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.list.truncate(len);
    }

    /// Puts others in their place.
    pub fn replace(&mut self, others: &[Request]) {
        self.clear();
        others.iter().for_each(|other| self.add(other.class, other.size, other.weight));
    }

    /// Forgets them.
    #[inline]
    pub fn clear(&mut self) {
        self.list.clear();
        (self.device, self.sync) = (false, false);
    }

    #[inline]
    fn add(&mut self, class: Class, size: u64, weight: f64) {
        let part = class.part();
        self.device |= part != Part::Processor;
        self.sync |= part == Part::Sync && class != Class::FsyncClean;
        self.list.push(Request { class, size, weight });
    }

    /// Adds what one step costs, given its mark.
    #[inline]
    pub fn step(&mut self, step: &Step, mark: &Mark) {
        match (*step, mark) {
            (Step::Call(class), _) => self.add(class, 0, 1.0),
            (Step::CallAt(class, size), _) => self.add(class, size, 1.0),
            (Step::Parent { first: false }, _) => self.add(Class::LookupHit, 0, 1.0),
            (Step::Lookup { role, first, child, entries, .. }, mark @ &Mark::Lookup { far, .. }) => {
                self.lookup(role, first, child != NodeId::NONE, entries, mark);
                let class = if far.in_order { Class::LookupFarInOrder } else { Class::LookupFar };
                self.far(class, far.bytes, 1.0);
            }
            (
                Step::Read { len_bytes, direct, transfer, .. },
                &Mark::Read { cached_bytes, disk_bytes, window_bytes, pattern, ref far },
            ) => match (direct, transfer != Transfer::Process) {
                (true, _) => self.add(Class::ReadDirect, len_bytes, 1.0),
                (false, false) => {
                    self.read(cached_bytes, disk_bytes, window_bytes, pattern);
                    self.far_pages(far, cached_bytes);
                }
                (false, true) if disk_bytes > 0 => {
                    // The copy's class has the cached read in it; add what the disk takes longer.
                    self.read(0, disk_bytes, window_bytes, pattern);
                    self.add(Class::ReadCached, disk_bytes, -1.0);
                }
                (false, true) => {}
            },
            (Step::Write { .. }, Mark::Write { .. }) => self.write(step, mark),
            (Step::Copy { len_bytes, .. }, &Mark::Copy { shares, flushed_bytes }) => {
                self.copy(len_bytes, shares, flushed_bytes);
            }
            (Step::CloseWritten { .. }, &Mark::Close { flushed_bytes, was_empty }) if flushed_bytes > 0 => {
                let class = if was_empty { Class::CloseTruncatedEmpty } else { Class::CloseTruncated };
                self.add(class, flushed_bytes, 1.0);
            }
            (Step::CloseWritten { .. }, _) => self.add(Class::CloseWritten, 0, 1.0),
            // O_TRUNC on an empty file only marks it for its close.
            (Step::Truncate { from_bytes: 0, opened: true, .. }, _) => {}
            (Step::Truncate { freed_bytes, opened, .. }, &Mark::Truncate { uncached, kept_bytes }) => {
                let class = if uncached { Class::TruncateUncached } else { Class::TruncateCached };
                if kept_bytes == 0 {
                    self.add(class, freed_bytes, 1.0);
                } else {
                    self.add(Class::TruncateDirty, kept_bytes, 1.0);
                    if freed_bytes > 0 {
                        self.add(class, freed_bytes, 1.0);
                        self.add(class, 0, -1.0);
                    }
                }
                if opened {
                    // The class is of a call with a walk of its own.
                    self.add(Class::Access, 0, -1.0);
                }
            }
            (Step::Unlinked { size_bytes, last, next, .. }, mark) => {
                let size = if last { size_bytes } else { 0 };
                let class = remove_class(mark);
                self.add(if next { class_next(class, size) } else { class }, size, 1.0);
            }
            (Step::Freed { size_bytes, on_close: true, .. }, mark) if size_bytes > 0 => {
                self.add(remove_class(mark), size_bytes, 1.0);
                self.add(remove_class(mark), 0, -1.0);
            }
            (Step::Renamed { over_bytes, over_last, class, .. }, mark @ &Mark::Remove { moved_dirty_bytes, .. }) => {
                if over_last && over_bytes > OVER_BYTES {
                    self.add(remove_class(mark), over_bytes, 1.0);
                    self.add(remove_class(mark), OVER_BYTES, -1.0);
                }
                if moved_dirty_bytes > 0 {
                    // The call itself was charged as that of a file which is written back.
                    self.add(Class::RenameOverDirty, moved_dirty_bytes, 1.0);
                    self.add(class, 0, -1.0);
                }
            }
            (Step::Sync { .. } | Step::SyncRange { .. }, Mark::Sync(sync)) => self.sync(sync),
            (Step::SyncRange { .. }, &Mark::SyncRange { started_bytes: 0, .. }) => self.add(Class::Fadvise, 0, 1.0),
            (Step::SyncRange { .. }, &Mark::SyncRange { started_bytes, .. }) => {
                self.add(Class::SyncRangeStart, started_bytes, 1.0);
            }
            (Step::SyncAll, &Mark::SyncAll { dirty_bytes, logged, changed }) => {
                // Metadata alone is written as well: with the smallest measured file's. The names of the files are in
                // the class.
                let size = if changed { dirty_bytes.max(SYNC_FILE_BYTES) } else { dirty_bytes };
                self.add(Class::SyncFs, size, 1.0);
                self.log(logged.saturating_sub(size / SYNC_FILE_BYTES));
            }
            (Step::ReadDir { .. }, &Mark::ReadDir { cold }) => self.read_dir(step, cold),
            _ => {}
        }
    }

    fn lookup(&mut self, role: Role, first: bool, present: bool, entries: u32, mark: &Mark) {
        let &Mark::Lookup { found, pattern, inode_distance, .. } = mark else { return };
        if !first {
            self.add(Class::LookupHit, 0, 1.0);
        }
        let random = pattern == Pattern::Random;
        match (found, role) {
            (Found::Hit, _) => {}
            (Found::Miss, _) if random => {
                let distance = if entries <= FEW_NAMES {
                    self.add(Class::LookupFewMiss, entries.into(), 1.0);
                    u64::from(entries).div_ceil(2)
                } else {
                    self.add(Class::LookupRandMiss, 0, 1.0);
                    MEASURED_DISTANCE
                };
                // The classes are of files made after their directories, so that not far away an inode is known, and
                // some come with it.
                if u64::from(inode_distance) > distance {
                    self.add(Class::LookupNearMiss, inode_distance.into(), 1.0);
                    self.add(Class::LookupNearMiss, distance, -1.0);
                }
            }
            (Found::Miss, _) => self.add(Class::LookupNearMiss, inode_distance.into(), 1.0),
            (Found::AttributesHit, _) if random => self.add(Class::LookupRandAttrHit, 0, 1.0),
            (Found::AttributesHit, _) => self.add(Class::LookupSeqAttrHit, 0, 1.0),
            (Found::NegativeHit, Role::Fails) => self.add(Class::NegativeHit, 0, 1.0),
            (Found::NegativeMiss, Role::Fails) => {
                self.add(Class::NegativeMiss, 0, 1.0);
                self.many_names(entries);
            }
            (Found::NegativeCold, Role::Fails) => self.add(Class::NegativeCold, 0, 1.0),
            (Found::NegativeHit, Role::FailsToOpen) => self.add(Class::OpenMissing, 0, 1.0),
            (Found::NegativeMiss | Found::NegativeCold, Role::FailsToOpen) => {
                // What the lookup takes longer than one of a cached absence is the same for every call.
                let cold = found == Found::NegativeCold;
                self.add(Class::OpenMissing, 0, 1.0);
                self.add(if cold { Class::NegativeCold } else { Class::NegativeMiss }, 0, 1.0);
                self.add(Class::NegativeHit, 0, -1.0);
                if !cold {
                    self.many_names(entries);
                }
            }
            (Found::NegativeCold, _) if !present => {
                // Making a name includes not finding it in a cached directory.
                self.add(Class::NegativeCold, 0, 1.0);
                self.add(Class::NegativeMiss, 0, -1.0);
            }
            (Found::NegativeHit | Found::NegativeMiss | Found::NegativeCold, _) => {}
        }
    }

    /// A directory of more than few names is searched longer for one that is not there.
    fn many_names(&mut self, entries: u32) {
        if entries > FEW_NAMES_SEARCHED {
            self.add(Class::NegativeEach, 0, f64::from(entries) / 100.0);
        }
    }

    /// What is far takes longer; less so where it is nearer than what was measured.
    fn far(&mut self, class: Class, distance_bytes: u64, weight: f64) {
        let (Some(&least), Some(&most)) = (class.points().first(), class.points().last()) else { return };
        if distance_bytes > 0 && weight > 0.0 {
            let share = (distance_bytes as f64 / least as f64).min(1.0);
            self.add(class, distance_bytes.clamp(least, most), weight * share);
        }
    }

    /// Cached data that is far: what each page takes, be it for a byte, and what its bytes do.
    fn far_pages(&mut self, far: &FarPages, cached_bytes: u64) {
        if far.pages == 0 {
            return;
        }
        let pages = far.pages as f64;
        let bytes = (cached_bytes as f64).min(pages * PAGE_BYTES as f64);
        let whole = bytes / (pages * PAGE_BYTES as f64);
        let distance_bytes = far.mean_bytes();
        self.far(Class::ReadFarByte, distance_bytes, pages * (1.0 - whole));
        self.far(Class::ReadFar, distance_bytes, bytes / FAR_BYTES);
    }

    fn read(&mut self, cached_bytes: u64, disk_bytes: u64, window_bytes: u64, pattern: Pattern) {
        if disk_bytes == 0 {
            self.add(Class::ReadCached, cached_bytes, 1.0);
            return;
        }
        match pattern {
            Pattern::First => self.add(Class::ReadFirst, window_bytes, 1.0),
            Pattern::FirstNext => self.add(Class::ReadFirstNext, window_bytes, 1.0),
            Pattern::Sequential => self.add(Class::ReadSeq, disk_bytes, 1.0),
            Pattern::Random | Pattern::None => self.add(Class::ReadRand, disk_bytes, 1.0),
        }
        if cached_bytes > 0 {
            self.add(Class::ReadCached, cached_bytes, 1.0);
            self.add(Class::ReadOverhead, 0, -1.0);
        }
    }

    fn write(&mut self, step: &Step, mark: &Mark) {
        let Step::Write { len_bytes, direct, transfer, .. } = *step else { return };
        let copy = transfer != Transfer::Process;
        let Mark::Write { new_bytes, new_in, cached_bytes, uncached_bytes, partial_blocks, ref far, sync } = *mark
        else {
            return;
        };
        if direct {
            self.add(Class::WriteDirect, len_bytes, 1.0);
        } else {
            let mut parts = 0;
            let mut part = |list: &mut Requests, class, size, weight| {
                list.add(class, size, weight);
                parts += 1;
            };
            if !copy && new_bytes > 0 {
                let class = match new_in {
                    NewIn::NewBlocks => Class::WriteAppend,
                    NewIn::LastBlock => Class::WriteExtend,
                    NewIn::AllocatedBlock => Class::WriteExtendAllocated,
                };
                part(self, class, new_bytes, 1.0);
            }
            if !copy && cached_bytes > 0 {
                part(self, Class::WriteCached, cached_bytes, 1.0);
                self.far_pages(far, cached_bytes);
            }
            if !copy && uncached_bytes > 0 {
                part(self, Class::WriteUncached, uncached_bytes, 1.0);
            }
            if partial_blocks > 0 {
                part(self, Class::WritePartial, 0, f64::from(partial_blocks));
            }
            let calls = u32::from(copy) + parts + partial_blocks.saturating_sub(1);
            if calls > 1 {
                // Each class is a call of its own; this is one call.
                self.add(Class::WriteOverhead, 0, -f64::from(calls - 1));
            }
        }
        if let Some(sync) = sync {
            self.sync(&sync);
        }
    }

    /// Sharing is a matter of extents: more bytes than were measured take no longer. What has to be written first is in
    /// `copy_new`.
    fn copy(&mut self, len_bytes: u64, shares: bool, flushed_bytes: u64) {
        let size = if shares { len_bytes.min(COPY_BYTES_MAX) } else { len_bytes };
        if flushed_bytes == 0 {
            return self.add(Class::CopyRange, size, 1.0);
        }
        // Dirty are pages, and a file shorter than one may lie beside its inode.
        let flushed_bytes = if flushed_bytes <= PAGE_BYTES { flushed_bytes.min(len_bytes) } else { flushed_bytes };
        self.add(Class::CopyDirty, flushed_bytes, 1.0);
        let included = flushed_bytes.min(COPY_BYTES_MAX);
        if included != size {
            self.add(Class::CopyRange, size, 1.0);
            self.add(Class::CopyRange, included, -1.0);
        }
    }

    fn sync(&mut self, mark: &SyncMark) {
        use DirtyKind::{Append, Clean, CleanDirectory, Create, Late, Names, Overwrite};
        let (scattered, contiguous) = match mark.data_only {
            false => (Class::FsyncOverwrite, Class::FsyncContiguous),
            true => (Class::FdatasyncOverwrite, Class::FdatasyncContiguous),
        };
        // As many pages as there are runs are scattered, what else is dirty lies beside them.
        let runs_bytes = (mark.runs * PAGE_BYTES).min(mark.dirty_bytes);
        let class = match (mark.kind, mark.data_only) {
            (Clean, _) => return self.add(Class::FsyncClean, 0, 1.0),
            (CleanDirectory, _) => return self.add(Class::FsyncDirClean, 0, 1.0),
            (Names, false) => Class::FsyncDir,
            (Names, true) => Class::FdatasyncDir,
            // A length without data, as after ftruncate: the log alone is written, as for a name.
            (Append, false) if mark.dirty_bytes == 0 => Class::FsyncDir,
            (Append, true) if mark.dirty_bytes == 0 => Class::FdatasyncDir,
            (Overwrite, _) if runs_bytes >= mark.dirty_bytes => scattered,
            (Overwrite, _) => contiguous,
            (Append, false) => Class::FsyncAppend,
            (Create, false) => Class::FsyncCreate,
            (Late, false) => Class::FsyncLate,
            (Append, true) => Class::FdatasyncAppend,
            (Create, true) => Class::FdatasyncCreate,
            (Late, true) => Class::FdatasyncLate,
        };
        self.add(class, mark.dirty_bytes, 1.0);
        if mark.runs > 1 && class != scattered {
            self.add(scattered, runs_bytes, 1.0);
            self.add(contiguous, runs_bytes, -1.0);
        }
        self.log(mark.logged);
        let commits = !(mark.kind == Overwrite && mark.data_only);
        if commits && mark.other_bytes > 0 {
            let share = (mark.other_bytes as f64 / OTHER_BYTES_MIN as f64).min(1.0);
            self.add(Class::FsyncOther, mark.other_bytes.min(OTHER_BYTES_MAX), share);
        }
    }

    /// What a log carries of others' names.
    fn log(&mut self, names: u64) {
        if names > 0 {
            let share = (names as f64 / LOG_NAMES_MIN as f64).min(1.0);
            self.add(Class::FsyncLog, names.clamp(LOG_NAMES_MIN, LOG_NAMES_MAX), share);
        }
    }

    /// A directory's curve is the sum over its calls. Of what an empty one costs half goes to the first call and half
    /// to the empty answer, of one that is read from disk all to the first, which waits for it; what depends on the
    /// entries goes to each call in proportion to what it returned.
    fn read_dir(&mut self, step: &Step, cold: bool) {
        let Step::ReadDir { entries, share_bytes, total_bytes, first, end, .. } = *step else { return };
        let class = if cold { Class::ReadDirCold } else { Class::ReadDir };
        let share = if total_bytes > 0 { share_bytes as f64 / total_bytes as f64 } else { 0.0 };
        let fixed = match (cold, first, end) {
            (true, true, _) => 1.0,
            (false, true, _) | (false, _, true) => 0.5,
            _ => 0.0,
        };
        if share > 0.0 {
            self.add(class, entries, share);
        }
        if fixed - share != 0.0 {
            self.add(class, 0, fixed - share);
        }
    }
}

/// The class of a removal after another one in its directory.
fn class_next(class: Class, size: u64) -> Class {
    let next = match class {
        Class::RemoveDirty => Class::RemoveDirtyNext,
        Class::RemoveUncached => Class::RemoveUncachedNext,
        _ => Class::RemoveNext,
    };
    if next.points().last().is_some_and(|&most| size <= most) { next } else { class }
}

fn remove_class(mark: &Mark) -> Class {
    match mark {
        Mark::Remove { dirty: true, .. } => Class::RemoveDirty,
        Mark::Remove { uncached: true, .. } => Class::RemoveUncached,
        _ => Class::Remove,
    }
}
