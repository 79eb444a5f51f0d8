//! Who uses which files, and how long files live.

use super::histogram::{Distribution, Histogram};
use crate::{Event, FileId, Op, flag};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

/// Files and directories as the workload used them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileUse {
    /// Distinct files (and other non-directories) that calls were about.
    pub files: u64,
    /// Of these, touched by more than one process.
    pub shared_files: u64,
    /// Distinct directories in which names were used.
    pub directories: u64,
    /// Of these, used by more than one process.
    pub shared_directories: u64,
    /// Names used per directory.
    pub names_per_directory: Distribution,
    /// Components of the paths given by calls that walk one.
    pub path_components: Distribution,
    /// Calls whose path was relative to a directory.
    pub relative_calls: u64,
    /// Files that the trace shows being created, being removed, and both.
    pub created_files: u64,
    #[allow(missing_docs)]
    pub removed_files: u64,
    #[allow(missing_docs)]
    pub created_and_removed_files: u64,
    /// Time from creation to removal of those, nanoseconds.
    pub lifetimes_ns: Distribution,
    /// Files removed while open.
    pub unlinked_open_files: u64,
}

/// What is remembered of a file or directory.
struct Known {
    first_pid: u32,
    shared: bool,
    /// Directories: names used in it.
    names: u32,
    is_parent: bool,
    open: u32,
    /// Names added by link less names removed; one below that of its creation, and it is gone.
    links: i32,
    created_ns: Option<u64>,
}

#[derive(Default)]
pub(super) struct Files {
    known: FxHashMap<FileId, Known>,
    /// Files counted and gone: they are no longer in `known`.
    dropped: u64,
    dropped_shared: u64,
    components: Histogram,
    relative: u64,
    created: u64,
    removed: u64,
    both: u64,
    lifetimes: Histogram,
    unlinked_open: u64,
    dead_but_open: FxHashSet<FileId>,
}

impl Files {
    /// A call on a modelled file system. `components` are those of its path, where it walks one; `new_name` is true
    /// where an open with `O_CREAT` is known to have made the file. Returns the file that is no more after the call.
    pub(super) fn add(&mut self, event: &Event, components: Option<u64>, new_name: bool) -> Option<FileId> {
        if let Some(n) = components {
            self.components.add(n);
            self.relative += u64::from(event.caller_dir().is_some());
        }
        let new_file = event.file().is_some_and(|file| !self.known.contains_key(&file));
        if let Some(parent) = event.parent() {
            let known = self.touch(parent, event.head.pid);
            known.is_parent = true;
            known.names += u32::from(new_file);
        }
        let file = event.file()?;
        let known = self.touch(file, event.head.pid);
        if event.head.errno.is_some() {
            return None;
        }
        match event.op() {
            Op::Open if event.head.flags & flag::PATH_ONLY == 0 => {
                known.open += 1;
                if event.head.flags & flag::CREATE != 0
                    && (event.head.flags & flag::EXCL != 0 || (new_file && new_name))
                {
                    known.created_ns = Some(event.head.t_ns);
                    self.created += 1;
                }
            }
            Op::Close if event.head.flags & flag::LAST != 0 => {
                known.open = known.open.saturating_sub(1);
                if known.open == 0 && self.dead_but_open.remove(&file) {
                    self.forget(file);
                }
            }
            Op::Link => known.links += 1,
            Op::Unlink => self.unlink(file, event.head.t_ns),
            _ => {}
        }
        (!self.known.contains_key(&file)).then_some(file)
    }

    fn touch(&mut self, file: FileId, pid: u32) -> &mut Known {
        let fresh =
            Known { first_pid: pid, shared: false, names: 0, is_parent: false, open: 0, links: 0, created_ns: None };
        let known = self.known.entry(file).or_insert(fresh);
        known.shared |= known.first_pid != pid;
        known
    }

    fn unlink(&mut self, file: FileId, now_ns: u64) {
        let Some(known) = self.known.get_mut(&file) else { return };
        known.links -= 1;
        if known.links >= 0 {
            return;
        }
        self.removed += 1;
        if let Some(created) = known.created_ns {
            self.both += 1;
            self.lifetimes.add(now_ns.saturating_sub(created));
        }
        if known.open > 0 {
            self.unlinked_open += 1;
            self.dead_but_open.insert(file);
        } else {
            self.forget(file);
        }
    }

    /// Drops a removed file: its identity is never used again.
    fn forget(&mut self, file: FileId) {
        if let Some(known) = self.known.remove(&file) {
            self.dropped += 1;
            self.dropped_shared += u64::from(known.shared);
        }
    }

    pub(super) fn finish(self) -> FileUse {
        let mut names = Histogram::default();
        let (mut files, mut shared_files) = (self.dropped, self.dropped_shared);
        let (mut directories, mut shared_directories) = (0, 0);
        // Counts only: the map's order does not show.
        for known in self.known.values() {
            if known.is_parent {
                directories += 1;
                shared_directories += u64::from(known.shared);
                names.add(u64::from(known.names));
            } else {
                files += 1;
                shared_files += u64::from(known.shared);
            }
        }
        FileUse {
            files,
            shared_files,
            directories,
            shared_directories,
            names_per_directory: names.distribution(),
            path_components: self.components.distribution(),
            relative_calls: self.relative,
            created_files: self.created,
            removed_files: self.removed,
            created_and_removed_files: self.both,
            lifetimes_ns: self.lifetimes.distribution(),
            unlinked_open_files: self.unlinked_open,
        }
    }
}
