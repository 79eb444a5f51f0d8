//! The names as they were before the run: what was read then, and what is there now with the run's changes undone.

use crate::profile::Unreadable;
use crate::snapshot::{View, WalkLimits, Walked, parent_of};
use crate::strace::Imported;
use crate::track::{Change, History, is_foreign};
use crate::{Batch, Op, Provenance, Snapshot, SnapshotEntry};
use posix::FileKind;
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::StatxFlags;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How far a file system's time stamps lag behind the clock: they are taken at timer ticks.
const TICK_NS: i64 = 10_000_000;

/// The directories a run touched: those of every path used, and those entered or read themselves.
#[derive(Debug, Default)]
pub(super) struct Touched {
    directories: FxHashSet<Box<[u8]>>,
}

impl Touched {
    /// Takes note of a batch's paths.
    pub fn note(&mut self, batch: &Batch) {
        let mut seen: FxHashMap<u32, ()> = FxHashMap::default();
        for event in &batch.events {
            let whole = matches!(event.op(), Op::GetDents | Op::Chdir | Op::Fchdir | Op::Mkdir | Op::Rmdir);
            let paths = [event.path(), if event.op() == Op::Symlink { None } else { event.path2() }];
            for id in paths.into_iter().flatten() {
                let path = batch.paths.get(id);
                if whole {
                    self.add(path);
                }
                if seen.insert(id.0, ()).is_none()
                    && let Some(parent) = parent_of(trim_slashes(path))
                {
                    self.add(parent);
                }
            }
            for id in [event.caller_dir(), event.caller_dir2()].into_iter().flatten() {
                if seen.insert(id.0, ()).is_none() {
                    self.add(batch.paths.get(id));
                }
            }
        }
    }

    fn add(&mut self, path: &[u8]) {
        if path.first() == Some(&b'/') && !self.directories.contains(path) && !is_foreign(path) {
            self.directories.insert(path.into());
        }
    }

    fn sorted(&self) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = self.directories.iter().map(|d| PathBuf::from(OsStr::from_bytes(d))).collect();
        all.sort_unstable();
        all
    }
}

fn trim_slashes(path: &[u8]) -> &[u8] {
    let slashes = path.iter().rev().take_while(|&&b| b == b'/').count();
    &path[..(path.len() - slashes).max(1).min(path.len())]
}

/// The names before the run.
#[derive(Debug)]
pub(super) struct Completed {
    pub snapshot: Snapshot,
    pub unreadable: Vec<Unreadable>,
    pub truncated: bool,
}

/// Puts together what was read before the run (`before`, exact below the trees `exact`), what is in the touched
/// directories of its view now with the run's changes undone, and what the run removed.
pub(super) fn complete(
    imported: &mut Imported,
    before: Walked,
    exact: &[PathBuf],
    touched: Touched,
    (view, started_ns): (&View, i64),
) -> Completed {
    let directories = touched.sorted();
    let is_exact = |path: &[u8]| exact.iter().any(|root| Path::new(OsStr::from_bytes(path)).starts_with(root));
    // No interrupt reaches the walk: signals are the command's until the recording ends, and after that end the waiting
    // for this thread.
    let after = view.directories(&directories, &WalkLimits::default()).unwrap_or_default();
    let mut wanted = Wanted::default();
    wanted.directories.extend(real_directories(view, &directories, &mut wanted.names));
    // A directory that was moved before it was used had its names elsewhere.
    wanted.directories.extend(imported.take_touched());
    let links = used_links(imported, &[&after.snapshot, &before.snapshot]);
    let mut led_to = view.names(&links).unwrap_or_default();
    led_to.snapshot.entries.retain(|entry| !is_foreign(&entry.path));
    wanted.names.extend(led_to.snapshot.entries.iter().map(|entry| entry.path.clone()));
    let mut entries = Vec::new();
    for entry in after.snapshot.merged(led_to.snapshot).entries {
        if !is_exact(&entry.path) {
            entries.extend(undo(imported, entry, view, started_ns));
        }
    }
    for removed in imported.take_removed() {
        wanted.directories.extend(parent_of(&removed.path).map(<[u8]>::to_vec));
        if !is_exact(&removed.path) {
            entries.push(removed.into_entry());
        }
    }
    entries.extend(wanted.of(before.snapshot));
    let mut unreadable = before.unreadable;
    unreadable.extend(after.unreadable);
    unreadable.extend(led_to.unreadable);
    Completed { snapshot: Snapshot::from_entries(entries), unreadable, truncated: before.truncated || after.truncated }
}

/// Puts together what was read before the run and what the trace alone tells, for a disk on which anything may have
/// happened since.
pub(super) fn implied(imported: &mut Imported, before: Walked, exact: &[PathBuf], touched: Touched) -> Completed {
    let is_exact = |path: &[u8]| exact.iter().any(|root| Path::new(OsStr::from_bytes(path)).starts_with(root));
    let mut wanted = Wanted::default();
    wanted.directories.extend(touched.directories.iter().map(|d| d.to_vec()));
    wanted.directories.extend(imported.take_touched());
    let mut entries = Vec::new();
    for entry in imported.implied_snapshot() {
        wanted.directories.extend(parent_of(&entry.path).map(<[u8]>::to_vec));
        if !is_exact(&entry.path) {
            entries.push(entry);
        }
    }
    entries.extend(wanted.of(before.snapshot));
    Completed { snapshot: Snapshot::from_entries(entries), unreadable: before.unreadable, truncated: before.truncated }
}

/// The touched directories by the paths they were used by and by their real paths. `passed` takes what a path that is
/// not real leads through: links behind other links and behind `..`.
fn real_directories(view: &View, directories: &[PathBuf], passed: &mut FxHashSet<Vec<u8>>) -> FxHashSet<Vec<u8>> {
    let mut wanted: FxHashSet<Vec<u8>> = FxHashSet::default();
    let mut reals = view.real_paths();
    // Those above the next that are there, by the paths they were used by and by their real paths.
    let mut above: Vec<(&Path, PathBuf)> = Vec::new();
    for directory in directories {
        while above.last().is_some_and(|(above, _)| !directory.starts_with(above)) {
            above.pop();
        }
        let (from, mut real) = above.last().cloned().unwrap_or((Path::new("/"), PathBuf::from("/")));
        let mut names = Vec::new();
        let is_there = directory.strip_prefix(from).unwrap_or(directory).components().all(|component| {
            let name = real.join(component);
            let found = reals.of(&name);
            names.push(name.into_os_string().into_encoded_bytes());
            found.map(|found| real = found).is_some()
        });
        // A directory that is gone keeps the path it was used by.
        if is_there {
            if real != *directory {
                passed.extend(names);
            }
            above.push((directory, real.clone()));
            wanted.insert(real.into_os_string().into_encoded_bytes());
        }
        wanted.insert(directory.as_os_str().as_bytes().to_vec());
    }
    wanted
}

/// The symbolic links that the run met: what they lead to may lie in directories that nothing else touched.
fn used_links(imported: &Imported, snapshots: &[&Snapshot]) -> Vec<PathBuf> {
    let entries = snapshots.iter().flat_map(|snapshot| &snapshot.entries);
    let used = entries.filter(|entry| entry.kind == FileKind::Symlink && imported.has_met(&entry.path));
    let mut links: Vec<PathBuf> = used.map(|entry| PathBuf::from(OsStr::from_bytes(&entry.path))).collect();
    links.sort_unstable();
    links.dedup();
    links
}

/// What is kept of the trees read before the run.
#[derive(Debug, Default)]
struct Wanted {
    /// The names in these directories.
    directories: FxHashSet<Vec<u8>>,
    /// These names.
    names: FxHashSet<Vec<u8>>,
}

impl Wanted {
    /// The entries wanted, and the directories that lead to them.
    fn of(&self, before: Snapshot) -> impl Iterator<Item = SnapshotEntry> {
        let mut leading: FxHashSet<&[u8]> = FxHashSet::default();
        for path in self.directories.iter().chain(&self.names) {
            let mut at = Some(path.as_slice());
            while let Some(path) = at.filter(|path| leading.insert(path)) {
                at = parent_of(path);
            }
        }
        let in_touched = |path: &[u8]| parent_of(path).is_some_and(|parent| self.directories.contains(parent));
        before
            .entries
            .into_iter()
            .filter(move |entry| in_touched(&entry.path) || leading.contains(entry.path.as_slice()))
    }
}

/// An entry as it was before the run; `None` if the run made it.
fn undo(imported: &Imported, mut entry: SnapshotEntry, view: &View, started_ns: i64) -> Option<SnapshotEntry> {
    entry.provenance = Provenance::After;
    let changed = match imported.history(&entry.path) {
        History::Untouched => None,
        History::Made => return None,
        History::Opened { changed } => {
            if born_ns(view, &entry.path).is_none_or(|born| born >= started_ns - TICK_NS) {
                return None;
            }
            changed
        }
        History::Kept { path, changed } => {
            entry.path = path;
            changed
        }
    };
    match changed {
        Some(Change::From(size_bytes)) => entry.size_bytes = size_bytes,
        Some(Change::Grew(bytes)) => entry.size_bytes = entry.size_bytes.saturating_sub(bytes),
        Some(Change::Unknown) | None => {}
    }
    Some(entry)
}

/// When a file was made, where the file system keeps it.
fn born_ns(view: &View, path: &[u8]) -> Option<i64> {
    let stat = view.statx(Path::new(OsStr::from_bytes(path)), StatxFlags::BTIME).ok()?;
    if stat.stx_mask & StatxFlags::BTIME.bits() == 0 {
        return None;
    }
    stat.stx_btime.tv_sec.checked_mul(1_000_000_000)?.checked_add(i64::from(stat.stx_btime.tv_nsec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::open::tests::OPENED;
    use crate::snapshot::walk::tests::nest;

    /// Each was resolved from `/`, its names one by one.
    #[test]
    fn real_paths_of_directories_in_directories_cost_a_step_each() {
        let base = tempfile::tempdir().expect("a directory");
        let top = base.path().canonicalize().expect("there");
        let (straight, link) = (nest(&top, 400), top.join("link"));
        std::os::unix::fs::symlink(&top, &link).expect("a link");
        let linked = straight.iter().map(|path| link.join(path.strip_prefix(&top).expect("below")));
        let (odd, gone) = (top.join("link/d/../link/d"), top.join("link/none/d"));
        let mut all: Vec<PathBuf> = straight.iter().cloned().chain(linked).chain([odd.clone(), gone.clone()]).collect();
        all.sort_unstable();
        OPENED.set(0);
        let mut passed = FxHashSet::default();
        let wanted = real_directories(&View::own(), &all, &mut passed);
        assert!(all.iter().all(|path| wanted.contains(path.as_os_str().as_bytes())));
        assert_eq!(wanted.len(), all.len());
        assert!(passed.contains(link.as_os_str().as_bytes()), "a link, and what is behind it");
        assert!(straight.iter().all(|path| passed.contains(path.as_os_str().as_bytes())));
        assert!(passed.contains(top.join("d/..").as_os_str().as_bytes()));
        let opened = OPENED.take();
        assert!(opened < 4 * all.len(), "{opened} directories were opened");
    }
}
