//! What a profile leads to against a tree read from disk.

use super::apply::Applied;
use super::{Difference, Differs, Verification, VerifyError, VerifyOptions};
use crate::profile::{Reader, escape};
use crate::snapshot::{WalkLimits, is_below, parent_of, path_order};
use crate::track::{Kind, Standing};
use crate::{FileId, Snapshot, SnapshotEntry};
use posix::FileKind;
use rustc_hash::{FxHashMap, FxHashSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

pub(super) fn compare(
    applied: &Applied,
    profile: &Reader,
    tree: &Path,
    options: &VerifyOptions,
) -> Result<Verification, VerifyError> {
    let shown = escape(tree.as_os_str().as_bytes()).into_owned();
    let unreadable = |source| VerifyError::Tree { tree: shown.clone(), source };
    let real = std::fs::canonicalize(tree).map_err(unreadable)?;
    let limits = WalkLimits { cross_file_systems: true, ..WalkLimits::default() };
    let disk = Snapshot::of_tree(&[&real], &limits).map_err(unreadable)?;
    let root = real.as_os_str().as_bytes();
    // A profile written into the tree is ours, not the program's.
    let own = std::fs::canonicalize(profile.directory()).ok().map(|own| own.into_os_string().into_encoded_bytes());
    let is_own = |path: &[u8]| own.as_deref().is_some_and(|own| path == own || is_below(path, own));
    let in_tree = |path: &[u8]| is_below(path, root) && !is_own(path);

    let mut expected: Vec<Standing> = applied.tracker.standing();
    let whole = whole_directories(applied, &expected);
    expected.retain(|standing| in_tree(&standing.path));
    expected.sort_by(|a, b| path_order(&a.path, &b.path));
    let mut comparison = Comparison {
        result: Verification {
            tree: shown,
            unfinished_calls: applied.unfinished,
            calls_without_path: applied.without_path,
            unreadable: disk.unreadable.iter().map(|u| format!("{}: {}", u.path, u.error)).collect(),
            ..Verification::default()
        },
        listed_max: options.listed_max,
        inodes: FxHashMap::default(),
        files: FxHashMap::default(),
    };
    let found = disk.snapshot.below(root).iter().filter(|entry| in_tree(&entry.path));
    let mut expected = expected.iter().peekable();
    for entry in found {
        while let Some(gone) = expected.next_if(|standing| path_order(&standing.path, &entry.path).is_lt()) {
            comparison.missing(gone);
        }
        match expected.next_if(|standing| standing.path == entry.path) {
            Some(standing) => comparison.both(standing, entry),
            None => comparison.unexpected(entry, &whole),
        }
    }
    for gone in expected {
        comparison.missing(gone);
    }
    Ok(comparison.result)
}

/// The directories whose names are all known: those the trace made, and those it touched whose names were read.
fn whole_directories(applied: &Applied, standing: &[Standing]) -> FxHashSet<Vec<u8>> {
    let touched = |s: &Standing| s.file.is_some_and(|file| applied.touched.contains(&file));
    let known = |s: &&Standing| s.made || (applied.whole && touched(s));
    standing.iter().filter(known).map(|s| s.path.clone()).collect()
}

struct Comparison {
    result: Verification,
    listed_max: usize,
    /// Which inode each file of the trace turned out to be, and the other way round.
    inodes: FxHashMap<FileId, (u64, u64)>,
    files: FxHashMap<(u64, u64), FileId>,
}

impl Comparison {
    fn differ(&mut self, path: &[u8], differs: Differs, expected: String, found: String) {
        self.result.differences += 1;
        if self.result.listed.len() < self.listed_max {
            let path = escape(path).into_owned();
            self.result.listed.push(Difference { path, differs, expected, found });
        }
    }

    fn missing(&mut self, standing: &Standing) {
        self.result.names += 1;
        self.differ(&standing.path, Differs::Missing, kind_name(standing.kind).into(), String::new());
    }

    fn unexpected(&mut self, entry: &SnapshotEntry, whole: &FxHashSet<Vec<u8>>) {
        if parent_of(&entry.path).is_some_and(|parent| whole.contains(parent)) {
            self.result.names += 1;
            self.differ(&entry.path, Differs::Unexpected, String::new(), kind_name(kind_of(entry)).into());
        } else {
            self.result.not_compared += 1;
        }
    }

    fn both(&mut self, standing: &Standing, entry: &SnapshotEntry) {
        self.result.names += 1;
        let kind = kind_of(entry);
        match standing.kind {
            Kind::Unknown => self.result.types_unknown += 1,
            expected if expected != kind => {
                let (expected, found) = (kind_name(expected).into(), kind_name(kind).into());
                return self.differ(&entry.path, Differs::Type, expected, found);
            }
            _ => {}
        }
        if kind == Kind::Directory {
            return;
        }
        self.identity(standing, entry);
        match standing.links {
            None => self.result.links_unknown += 1,
            Some(links) => {
                self.result.links += 1;
                if links != entry.nlink {
                    self.differ(&entry.path, Differs::Links, links.to_string(), entry.nlink.to_string());
                }
            }
        }
        match (kind, standing.size_bytes, &standing.target) {
            (Kind::Regular, None, _) => self.result.sizes_unknown += 1,
            (Kind::Regular, Some(size), _) => {
                self.result.sizes += 1;
                if size != entry.size_bytes {
                    self.differ(&entry.path, Differs::Size, size.to_string(), entry.size_bytes.to_string());
                }
            }
            (Kind::Symlink, _, None) => self.result.sizes_unknown += 1,
            (Kind::Symlink, _, Some(target)) => {
                self.result.sizes += 1;
                let found = entry.target.as_deref().unwrap_or_default();
                if target != found {
                    self.differ(&entry.path, Differs::Target, escape(target).into_owned(), escape(found).into_owned());
                }
            }
            _ => {}
        }
    }

    /// Names of one file must be names of one inode, and the other way round.
    fn identity(&mut self, standing: &Standing, entry: &SnapshotEntry) {
        let Some(file) = standing.file else { return };
        let inode = (entry.dev, entry.ino);
        let same =
            *self.inodes.entry(file).or_insert(inode) == inode && *self.files.entry(inode).or_insert(file) == file;
        // A file of unknown link count can have a name that the trace did not recognise as its own.
        if !same && standing.links.is_some() {
            self.differ(&entry.path, Differs::Identity, String::new(), format!("inode {}", entry.ino));
        }
    }
}

fn kind_of(entry: &SnapshotEntry) -> Kind {
    match entry.kind {
        FileKind::File => Kind::Regular,
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink => Kind::Symlink,
        FileKind::Special => Kind::Special,
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Unknown => "of unknown type",
        Kind::Regular => "file",
        Kind::Directory => "directory",
        Kind::Symlink => "symlink",
        Kind::Special => "special",
    }
}
