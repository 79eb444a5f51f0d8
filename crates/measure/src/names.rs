//! Calls on names and attributes, on a warm system.
//!
//! A tight loop of one call on one file finds everything in the processor's nearest caches and reports a half of what a
//! program pays. So the calls are made as programs make them: in short scripts (read a file; write a new one; change
//! its attributes; ...), each on another file in another directory, in random order, every call timed.

use super::bench::{Bench, DIR_MODE, Dir, FILE_MODE};
use super::{Group, MeasureError, Mode};
use posix::{AccessMode, Advice, At, Call, Errno, Fd, Lock, Mode as FileMode, OpenFlags, SetTime, Whence};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::Path;
use system::vector::Class;

/// Directories of the pool by their number of entries: mostly small, a few large, as in source trees and mail spools.
const QUICK_DIRS: &[usize] = &[12, 12, 12, 12, 24, 24, 24, 24, 50, 50, 50, 100, 100, 400, 1500];
/// The same several times over in a full measurement.
const FULL_REPEATS: usize = 4;
const FILE_BYTES: u64 = 4096;
/// Files of a directory that calls are made on.
const USED_FILES: usize = 40;
/// Where all of them are.
pub(super) const DIRECTORY: &str = "names";
/// So many names are few, and so many are many.
const FEW: usize = 50;
const MANY: usize = 1000;
/// New directories of a round, where directories are put apart.
const FRESH_DIRS: usize = 4;
/// Directories that are there before the first of them is removed.
const DIRECTORIES_KEPT: usize = 16;
/// Chains of directories for the cost of one more component.
const CHAINS: usize = 8;
const CHAIN_DEPTH: usize = 8;
/// Scripts of each kind in a round.
const QUICK_SCRIPTS: usize = 40;
const FULL_SCRIPTS: usize = 80;
/// New files of a burst, for each script of a kind.
const NEW_FILES: usize = 5;
/// Of which so many are in one directory, one after the other.
const RUN: usize = 8;
/// Symbolic links made one after the other.
const SYMLINKS: usize = 4;
/// Parts of a file that are mapped one after the other: the segments of a library.
const MAPPED_PARTS: usize = 4;
const XATTR: &str = "user.fsage";

#[derive(Clone, Copy)]
enum Script {
    ReadFile,
    MapFile,
    NewFile,
    Rename,
    RenameOver,
    RenameWritten,
    Link,
    Symlink,
    Directory,
    OpenAttributes,
    Xattr,
    Question,
    Missing,
    Deep,
}

/// The scripts that programs repeat many times. The others are seldom made in a row, or make what has a class of its
/// own then.
const REPEATED: &[Script] = &[
    Script::ReadFile,
    Script::MapFile,
    Script::Rename,
    Script::Link,
    Script::OpenAttributes,
    Script::Xattr,
    Script::Question,
];
/// How often in a row.
const RUN_OF_SCRIPTS: usize = 8;

const SCRIPTS: &[Script] = &[
    Script::ReadFile,
    Script::MapFile,
    Script::NewFile,
    Script::Rename,
    Script::RenameOver,
    Script::RenameWritten,
    Script::Link,
    Script::Symlink,
    Script::Directory,
    Script::OpenAttributes,
    Script::Xattr,
    Script::Question,
    Script::Missing,
    Script::Deep,
];

struct Place {
    path: String,
    /// Open during a round only.
    dir: Option<Dir>,
    files: Vec<String>,
    symlink: String,
    entries: usize,
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Names {
    places: Vec<Place>,
    chains: Vec<String>,
    warm_since: Option<u64>,
    /// Whether subdirectories of [`DIRECTORY`] lie in parts of the disk of their own. Then files, links and directories
    /// are made in new ones in each round, where nothing has been removed before.
    apart: bool,
    fresh: Vec<(Dir, String)>,
    /// Files made in this round.
    made: Vec<(Dir, String)>,
    /// Pairs of files that are written back, the first to be renamed over the second.
    pairs: Vec<(Dir, String, String)>,
    /// Directories made in this round, which are still there.
    directories: VecDeque<(Dir, String)>,
    shallow_ns: Vec<f64>,
    deep_ns: Vec<f64>,
    /// What a missing name cost, by the number of names in its directory.
    missing_ns: Vec<(usize, f64)>,
}

impl Group for Names {
    fn name(&self) -> &'static str {
        "names and attributes"
    }

    fn classes(&self) -> &'static [Class] {
        use Class::*;
        &[
            LookupHit,
            NegativeHit,
            OpenMissing,
            NegativeMiss,
            NegativeEach,
            Open,
            OpenDir,
            Create,
            CreateNext,
            Close,
            CloseWritten,
            Stat,
            Fstat,
            Access,
            StatFs,
            ReadLink,
            ReadLinkNone,
            Seek,
            Mkdir,
            Rmdir,
            Rename,
            RenameOver,
            RenameOverDirty,
            Link,
            Symlink,
            SymlinkNext,
            Chmod,
            Fchmod,
            Chown,
            Fchown,
            Utimens,
            Futimens,
            SetXattr,
            GetXattr,
            GetXattrMissing,
            ListXattr,
            RemoveXattr,
            Mmap,
            Fcntl,
            Fadvise,
            ReadOverhead,
            WriteOverhead,
        ]
    }

    fn prepare(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        // Where directories are put apart it is there already.
        let call = Call::Mkdir { at: DIRECTORY.into(), mode: DIR_MODE };
        match b.outcome(&call).result {
            Ok(_) => {}
            Err(Errno::EEXIST) => self.apart = true,
            Err(errno) => return Err(MeasureError::call(&call, errno)),
        }
        let repeats = if b.mode == Mode::Quick { 1 } else { FULL_REPEATS };
        let mut sizes: Vec<usize> = (0..repeats).flat_map(|_| QUICK_DIRS.iter().copied()).collect();
        b.shuffle(&mut sizes);
        for (number, size) in sizes.into_iter().enumerate() {
            let path = format!("{DIRECTORY}/d{number:03}");
            let dir = b.new_dir(&path)?;
            let mut files = Vec::with_capacity(size);
            for number in 0..size {
                let name = b.new_name("file");
                // What fills up a large directory stays empty: it is never used, and quickly removed.
                b.make_file(dir.at(&name), if number < USED_FILES { FILE_BYTES } else { 0 })?;
                if number < USED_FILES {
                    files.push(name);
                }
            }
            b.shuffle(&mut files);
            let symlink = b.new_name("link");
            b.quiet(&Call::Symlink { target: Path::new("some/where/else.dat"), at: dir.at(&symlink) })?;
            b.close(dir.fd)?;
            self.places.push(Place { path, dir: None, files, symlink, entries: size });
        }
        for chain in 0..CHAINS {
            let mut path = format!("{DIRECTORY}/c{chain}");
            for level in 1..CHAIN_DEPTH {
                b.quiet(&Call::Mkdir { at: path.as_str().into(), mode: DIR_MODE })?;
                if level + 1 < CHAIN_DEPTH {
                    path += &format!("/level{level}");
                }
            }
            b.make_file(format!("{path}/end.dat").as_str().into(), FILE_BYTES)?;
            self.chains.push(path);
        }
        b.sync()
    }

    fn round(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        for place in &mut self.places {
            place.dir = Some(b.open_dir(&place.path)?);
        }
        let each = if b.mode == Mode::Quick { QUICK_SCRIPTS } else { FULL_SCRIPTS };
        let mut scripts: Vec<Script> = (0..each).flat_map(|_| SCRIPTS.iter().copied()).collect();
        b.shuffle(&mut scripts);
        self.make_pairs(b, each)?;
        for _ in 0..if self.apart { FRESH_DIRS } else { 0 } {
            let path = format!("{DIRECTORY}/{}", b.new_name("fresh"));
            self.fresh.push((b.new_dir(&path)?, path));
        }
        self.warm_up(b)?;
        for script in scripts {
            if !b.go_on()? {
                break;
            }
            let chosen = b.pick(self.places.len());
            self.run(b, script, chosen)?;
        }
        if b.has_processor() {
            self.repeat(b)?;
        }
        self.burst(b, each * NEW_FILES)?;
        while !self.directories.is_empty() {
            self.remove_directory(b)?;
        }
        self.file_depths(b);
        self.file_missing(b);
        for (dir, from, to) in self.pairs.drain(..) {
            b.unlink(dir.at(&from))?;
            self.made.push((dir, to));
        }
        for (dir, name) in self.made.drain(..) {
            b.unlink(dir.at(&name))?;
        }
        for (dir, path) in self.fresh.drain(..) {
            b.close(dir.fd)?;
            b.quiet(&Call::Rmdir { at: path.as_str().into() })?;
        }
        for place in &mut self.places {
            if let Some(dir) = place.dir.take() {
                b.close(dir.fd)?;
            }
        }
        Ok(())
    }
}

impl Names {
    /// Brings every name and the start of every file back into the caches, where they were dropped.
    fn warm_up(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        if self.warm_since == Some(b.drops) {
            return Ok(());
        }
        for place in &self.places {
            let Some(dir) = place.dir else { continue };
            for name in &place.files {
                let fd = b.open(dir.at(name), OpenFlags::READ)?;
                b.read_all(fd, FILE_BYTES)?;
                b.close(fd)?;
            }
            b.quiet(&Call::ReadLink { at: dir.at(&place.symlink) })?;
        }
        for chain in &self.chains {
            b.quiet(&Call::Stat { at: format!("{chain}/end.dat").as_str().into(), follow: true })?;
        }
        self.warm_since = Some(b.drops);
        Ok(())
    }

    /// Files to be renamed over others, written back all at once.
    fn make_pairs(&mut self, b: &mut Bench<'_>, pairs: usize) -> Result<(), MeasureError> {
        for _ in 0..pairs {
            let chosen = b.pick(self.places.len());
            let Some(dir) = self.places.get(chosen).and_then(|place| place.dir) else { continue };
            let (from, to) = (b.new_name("old"), b.new_name("over"));
            b.make_file(dir.at(&from), FILE_BYTES)?;
            b.make_file(dir.at(&to), FILE_BYTES)?;
            self.pairs.push((dir, from, to));
        }
        b.sync()
    }

    fn run(&mut self, b: &mut Bench<'_>, script: Script, number: usize) -> Result<(), MeasureError> {
        let Some(place) = self.places.get(number) else { return Ok(()) };
        let Some(dir) = place.dir else { return Ok(()) };
        // Files whose attributes change are never the ones that are read: the first read after a change writes the
        // access time (relatime), which would be charged to cached reads.
        let changes = matches!(script, Script::Link | Script::OpenAttributes | Script::Xattr);
        let chosen = b.pick(place.files.len() / 2) * 2 + usize::from(changes);
        let Some(name) = place.files.get(chosen) else { return Ok(()) };
        let at = dir.at(name);
        if matches!(
            script,
            Script::ReadFile
                | Script::MapFile
                | Script::Link
                | Script::OpenAttributes
                | Script::Xattr
                | Script::Question
        ) {
            approach(b, at)?;
        }
        bring_in(b, dir);
        let makes_in = self.fresh(b).unwrap_or(dir);
        match script {
            Script::ReadFile => read_file(b, at),
            Script::MapFile => map_file(b, at),
            Script::NewFile => new_file(b, makes_in, Class::Create, &mut self.made),
            Script::Rename => rename(b, dir, &mut self.made),
            Script::RenameOver => self.rename_over(b),
            Script::RenameWritten => rename_written(b, dir, &mut self.made),
            Script::Link => link(b, dir, at),
            Script::Symlink => {
                let names = symlinks(b, makes_in, dir.at(&place.symlink))?;
                self.unlink_links(b, makes_in, names)
            }
            Script::Directory => self.directory(b, makes_in),
            Script::OpenAttributes => open_attributes(b, at),
            Script::Xattr => xattr(b, at),
            Script::Question => question(b, at),
            Script::Missing => {
                let entries = place.entries;
                let ns = missing(b, dir)?;
                self.missing_ns.extend(ns.map(|ns| (entries, ns)));
                Ok(())
            }
            Script::Deep => self.deep(b),
        }
    }

    /// A new directory, where there are some.
    fn fresh(&self, b: &mut Bench<'_>) -> Option<Dir> {
        if self.fresh.is_empty() {
            return None;
        }
        let chosen = b.pick(self.fresh.len());
        self.fresh.get(chosen).map(|fresh| fresh.0)
    }

    /// Removes links, at the round's end where nothing else has been removed.
    fn unlink_links(&mut self, b: &mut Bench<'_>, dir: Dir, names: Vec<String>) -> Result<(), MeasureError> {
        if self.fresh.is_empty() {
            return names.iter().try_for_each(|name| b.unlink(dir.at(name)));
        }
        self.made.extend(names.into_iter().map(|name| (dir, name)));
        Ok(())
    }

    /// Each script several times in a row, on other files of one directory: as programs do that walk through a tree or
    /// copy one.
    fn repeat(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        let mut scripts = REPEATED.to_vec();
        b.shuffle(&mut scripts);
        for script in scripts {
            if !b.go_on()? {
                break;
            }
            let chosen = b.pick(self.places.len());
            b.in_a_row(RUN_OF_SCRIPTS, &mut |b| self.run(b, script, chosen))?;
        }
        let chosen = b.pick(self.places.len());
        self.repeat_calls(b, chosen)
    }

    /// The commonest calls several times in a row, with nothing in between.
    fn repeat_calls(&mut self, b: &mut Bench<'_>, number: usize) -> Result<(), MeasureError> {
        let Some(place) = self.places.get(number) else { return Ok(()) };
        let (Some(dir), Some(name)) = (place.dir, place.files.first()) else { return Ok(()) };
        // Those whose attributes never change, as in the scripts.
        let names: Vec<&String> = place.files.iter().step_by(2).take(RUN_OF_SCRIPTS).collect();
        names.iter().try_for_each(|name| approach(b, dir.at(name)))?;
        let fd = b.open(dir.at(name), OpenFlags::READ)?;
        let mode = AccessMode { read: true, ..AccessMode::default() };
        let stats: Vec<Call<'_>> = names.iter().map(|name| Call::Stat { at: dir.at(name), follow: true }).collect();
        let accesses: Vec<Call<'_>> = names.iter().map(|name| Call::Access { at: dir.at(name), mode }).collect();
        let seeks = vec![Call::Seek { fd, offset: 0, whence: Whence::Set }; RUN_OF_SCRIPTS];
        for (class, calls) in [
            (Class::Stat, stats),
            (Class::Access, accesses),
            (Class::Fstat, vec![Call::Fstat { fd }; RUN_OF_SCRIPTS]),
            (Class::Seek, seeks),
        ] {
            let mut calls = calls.iter();
            b.in_a_row(calls.len(), &mut |b| calls.next().map_or(Ok(()), |call| b.timed(class, 0, call).map(|_| ())))?;
        }
        let mut names = names.iter();
        b.in_a_row(names.len(), &mut |b| {
            let Some(name) = names.next() else { return Ok(()) };
            let fd = open_timed(b, Class::Open, dir.at(name), OpenFlags::READ)?;
            b.timed(Class::Close, 0, &Call::Close { fd }).map(|_| ())
        })?;
        b.close(fd)
    }

    /// Many new files in a row, as when an archive is unpacked: what a file system leaves for later comes due
    /// meanwhile.
    fn burst(&mut self, b: &mut Bench<'_>, files: usize) -> Result<(), MeasureError> {
        for _ in 0..files.div_ceil(RUN) {
            if !b.go_on()? {
                break;
            }
            let chosen = b.pick(self.places.len());
            let Some(dir) = self.places.get(chosen).and_then(|place| place.dir) else { continue };
            bring_in(b, dir);
            let dir = self.fresh(b).unwrap_or(dir);
            new_file(b, dir, Class::Create, &mut self.made)?;
            for _ in 1..RUN {
                new_file(b, dir, Class::CreateNext, &mut self.made)?;
            }
        }
        Ok(())
    }

    /// Makes a directory, and removes one that was made some time before: a file system that spreads directories goes
    /// on to other places.
    fn directory(&mut self, b: &mut Bench<'_>, dir: Dir) -> Result<(), MeasureError> {
        let name = b.new_name("dir");
        let at = dir.at(&name);
        b.timed(Class::Mkdir, 0, &Call::Mkdir { at, mode: DIR_MODE })?;
        let fd = open_timed(b, Class::OpenDir, at, OpenFlags::DIRECTORY)?;
        b.timed(Class::Close, 0, &Call::Close { fd })?;
        self.directories.push_back((dir, name));
        if self.directories.len() > DIRECTORIES_KEPT {
            self.remove_directory(b)?;
        }
        Ok(())
    }

    /// Removes the directory that was made first.
    fn remove_directory(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        let Some((dir, name)) = self.directories.pop_front() else { return Ok(()) };
        bring_in(b, dir);
        b.timed(Class::Rmdir, 0, &Call::Rmdir { at: dir.at(&name) }).map(|_| ())
    }

    fn rename_over(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        let Some((dir, from, to)) = self.pairs.pop() else { return Ok(()) };
        bring_in(b, dir);
        b.timed(Class::RenameOver, 0, &plain_rename(dir, &from, &to))?;
        self.made.push((dir, to));
        Ok(())
    }

    /// The same file by one component and by eight, in either order.
    fn deep(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        let chosen = b.pick(self.chains.len());
        let Some(chain) = self.chains.get(chosen) else { return Ok(()) };
        let path = format!("{chain}/end.dat");
        let dir = b.open_dir(chain)?;
        let shallow = Call::Stat { at: dir.at("end.dat"), follow: true };
        let deep = Call::Stat { at: path.as_str().into(), follow: true };
        // In a small name cache the last name may be gone.
        b.quiet(&shallow)?;
        let deep_first = b.pick(2) == 0;
        for is_deep in [deep_first, !deep_first] {
            let call = if is_deep { &deep } else { &shallow };
            let outcome = b.outcome(call);
            outcome.result.map_err(|errno| MeasureError::call(call, errno))?;
            if is_deep { &mut self.deep_ns } else { &mut self.shallow_ns }.push(outcome.dur_ns as f64);
        }
        b.close(dir.fd)
    }

    /// What a missing name costs in directories of few names, and what more for those of many.
    fn file_missing(&mut self, b: &mut Bench<'_>) {
        let mut few: Vec<f64> = Vec::new();
        let mut many = Vec::new();
        for (entries, ns) in self.missing_ns.drain(..) {
            match entries {
                0..=FEW => few.push(ns),
                MANY.. => many.push((entries, ns)),
                _ => {}
            }
        }
        few.iter().for_each(|&ns| b.sheet.record(Class::NegativeMiss, 0, ns));
        few.sort_by(f64::total_cmp);
        let base = stats::quantile(&few, 0.5);
        for (entries, ns) in many {
            b.sheet.record(Class::NegativeEach, 0, (ns - base) * 100.0 / entries as f64);
        }
    }

    /// What each further component costs. Medians: two means of a few dozen calls would differ by whatever interrupted
    /// one of them.
    fn file_depths(&mut self, b: &mut Bench<'_>) {
        let mut shallow = std::mem::take(&mut self.shallow_ns);
        let deep = std::mem::take(&mut self.deep_ns);
        shallow.sort_by(f64::total_cmp);
        let base = stats::quantile(&shallow, 0.5);
        // "names/c0/level1/.../end.dat" has CHAIN_DEPTH + 1 components; the other walk has one.
        for ns in deep {
            b.sheet.record(Class::LookupHit, 0, (ns - base) / CHAIN_DEPTH as f64);
        }
    }
}

/// In a laboratory, whose buffer cache may be small: brings the blocks of a directory into memory, which the classes
/// are said to find there. (Of the processor's caches, which this would warm elsewhere, it has none.)
fn bring_in(b: &mut Bench<'_>, dir: Dir) {
    if b.is_virtual() {
        let other = b.new_name("absent");
        let _ = b.outcome(&Call::Stat { at: dir.at(&other), follow: true });
    }
}

/// Brings a file's name, inode and data to the processor: what it costs when they are far is measured apart (`far`).
fn approach(b: &mut Bench<'_>, at: At<'_>) -> Result<(), MeasureError> {
    let fd = b.open(at, OpenFlags::READ)?;
    b.quiet(&Call::Read { fd, offset: None, len_bytes: FILE_BYTES })?;
    b.close(fd)
}

fn read_file(b: &mut Bench<'_>, at: At<'_>) -> Result<(), MeasureError> {
    b.timed(Class::Stat, 0, &Call::Stat { at, follow: true })?;
    let fd = open_timed(b, Class::Open, at, OpenFlags::READ)?;
    b.timed(Class::Fstat, 0, &Call::Fstat { fd })?;
    b.timed(Class::ReadCached, FILE_BYTES, &Call::Read { fd, offset: None, len_bytes: FILE_BYTES })?;
    b.timed(Class::ReadOverhead, 0, &Call::Read { fd, offset: None, len_bytes: FILE_BYTES })?;
    b.timed(Class::Seek, 0, &Call::Seek { fd, offset: 0, whence: Whence::Set })?;
    b.timed(Class::Close, 0, &Call::Close { fd })?;
    Ok(())
}

fn map_file(b: &mut Bench<'_>, at: At<'_>) -> Result<(), MeasureError> {
    let fd = open_timed(b, Class::Open, at, OpenFlags::READ)?;
    b.timed(Class::Fstat, 0, &Call::Fstat { fd })?;
    let advice = Advice::Sequential;
    b.try_timed(Class::Fadvise, 0, &Call::Advise { fd, offset: 0, len_bytes: 0, advice })?;
    // As a loader maps the parts of a library, or a searcher one file after the other: seldom once.
    for _ in 0..MAPPED_PARTS {
        b.try_timed(Class::Mmap, 0, &Call::MapUnmap { fd, len_bytes: 64 << 10 })?;
    }
    b.timed(Class::Close, 0, &Call::Close { fd })?;
    Ok(())
}

/// As an archiver makes a file: create, write, close, then owner, permissions and times.
fn new_file(b: &mut Bench<'_>, dir: Dir, class: Class, made: &mut Vec<(Dir, String)>) -> Result<(), MeasureError> {
    if b.is_virtual() && class == Class::Create {
        // Brings in what a new file needs, such as the inodes beside its own: a small buffer cache has lost it since
        // the last one.
        let before = b.new_name("before");
        b.make_file(dir.at(&before), 0)?;
        made.push((dir, before));
        bring_in(b, dir);
    }
    let name = b.new_name("new");
    let at = dir.at(&name);
    let fd = open_timed(b, class, at, OpenFlags::CREATE_NEW)?;
    made.push((dir, name.clone()));
    let at = dir.at(&name);
    b.quiet(&Call::Write { fd, offset: None, len_bytes: FILE_BYTES, data: None })?;
    b.timed(Class::WriteOverhead, 0, &Call::Write { fd, offset: None, len_bytes: 0, data: None })?;
    b.timed(Class::CloseWritten, 0, &Call::Close { fd })?;
    b.try_timed(
        Class::Utimens,
        0,
        &Call::Utimens { at, follow: true, atime: SetTime::Now, mtime: SetTime::To(1_000_000_007) },
    )?;
    chown(b, at)?;
    b.try_timed(Class::Chmod, 0, &Call::Chmod { at, mode: FileMode(0o755) })?;
    Ok(())
}

/// To the owner it has: what an ordinary user may do, too.
fn chown(b: &mut Bench<'_>, at: At<'_>) -> Result<(), MeasureError> {
    let stat = b.outcome(&Call::Stat { at, follow: true }).stat();
    if let Ok(stat) = stat {
        let call = Call::Chown { at, follow: true, uid: Some(stat.uid), gid: Some(stat.gid) };
        b.try_timed(Class::Chown, 0, &call)?;
    }
    Ok(())
}

fn rename(b: &mut Bench<'_>, dir: Dir, made: &mut Vec<(Dir, String)>) -> Result<(), MeasureError> {
    let (old, new) = (b.new_name("old"), b.new_name("renamed"));
    b.make_file(dir.at(&old), FILE_BYTES)?;
    b.timed(Class::Rename, 0, &plain_rename(dir, &old, &new))?;
    made.push((dir, new));
    Ok(())
}

/// As editors and package managers replace a file: the new one is written, and takes the old one's name at once.
fn rename_written(b: &mut Bench<'_>, dir: Dir, made: &mut Vec<(Dir, String)>) -> Result<(), MeasureError> {
    let sizes = Class::RenameOverDirty.points();
    let size = sizes.get(b.pick(sizes.len())).copied().unwrap_or(FILE_BYTES);
    let (old, new) = (b.new_name("old"), b.new_name("over"));
    b.make_file(dir.at(&new), FILE_BYTES)?;
    b.make_file(dir.at(&old), size)?;
    b.timed(Class::RenameOverDirty, size, &plain_rename(dir, &old, &new))?;
    made.push((dir, new));
    Ok(())
}

fn plain_rename<'a>(dir: Dir, from: &'a str, to: &'a str) -> Call<'a> {
    Call::Rename { from: dir.at(from), to: dir.at(to), noreplace: false, exchange: false }
}

fn link(b: &mut Bench<'_>, dir: Dir, at: At<'_>) -> Result<(), MeasureError> {
    let name = b.new_name("link");
    if b.try_timed(Class::Link, 0, &Call::Link { from: at, to: dir.at(&name), follow: false })?.is_some() {
        b.unlink(dir.at(&name))?;
    }
    Ok(())
}

/// Makes some, and reads another; they are still there.
fn symlinks(b: &mut Bench<'_>, dir: Dir, existing: At<'_>) -> Result<Vec<String>, MeasureError> {
    let names: Vec<String> = (0..SYMLINKS).map(|_| b.new_name("symlink")).collect();
    for (number, name) in names.iter().enumerate() {
        let class = if number == 0 { Class::Symlink } else { Class::SymlinkNext };
        b.timed(class, 0, &Call::Symlink { target: Path::new("some/where/else.dat"), at: dir.at(name) })?;
    }
    // In a small cache it may be gone.
    b.quiet(&Call::ReadLink { at: existing })?;
    b.timed(Class::ReadLink, 0, &Call::ReadLink { at: existing })?;
    Ok(names)
}

fn open_attributes(b: &mut Bench<'_>, at: At<'_>) -> Result<(), MeasureError> {
    let stat = b.outcome(&Call::Stat { at, follow: true }).stat();
    let fd = b.open(at, OpenFlags::READ_WRITE)?;
    for lock in [Lock::Exclusive, Lock::Unlock] {
        b.try_timed(Class::Fcntl, 0, &Call::Lock { fd, offset: 0, len_bytes: 1, lock })?;
    }
    b.try_timed(Class::Fchmod, 0, &Call::Fchmod { fd, mode: FileMode(0o600) })?;
    if let Ok(stat) = stat {
        b.try_timed(Class::Fchown, 0, &Call::Fchown { fd, uid: Some(stat.uid), gid: Some(stat.gid) })?;
    }
    b.try_timed(Class::Futimens, 0, &Call::Futimens { fd, atime: SetTime::Now, mtime: SetTime::Now })?;
    b.close(fd)
}

fn xattr(b: &mut Bench<'_>, at: At<'_>) -> Result<(), MeasureError> {
    let name = OsStr::new(XATTR);
    if b.try_timed(Class::SetXattr, 0, &Call::SetXattr { at, follow: true, name, value: &[b'x'; 32] })?.is_none() {
        for class in [Class::GetXattr, Class::GetXattrMissing, Class::RemoveXattr] {
            b.sheet.give_up(class.name().to_owned(), "user attributes cannot be set here".to_owned());
        }
        b.try_timed(Class::ListXattr, 0, &Call::ListXattr { at, follow: true })?;
        return Ok(());
    }
    b.try_timed(Class::GetXattr, 0, &Call::GetXattr { at, follow: true, name })?;
    let absent = Call::GetXattr { at, follow: true, name: OsStr::new("user.absent") };
    b.timed_failure(Class::GetXattrMissing, &absent, Errno::ENODATA)?;
    b.try_timed(Class::ListXattr, 0, &Call::ListXattr { at, follow: true })?;
    b.try_timed(Class::RemoveXattr, 0, &Call::RemoveXattr { at, follow: true, name })?;
    Ok(())
}

fn question(b: &mut Bench<'_>, at: At<'_>) -> Result<(), MeasureError> {
    let mode = AccessMode { read: true, ..AccessMode::default() };
    b.timed(Class::Access, 0, &Call::Access { at, mode })?;
    b.timed(Class::StatFs, 0, &Call::StatFs { at })?;
    b.timed_failure(Class::ReadLinkNone, &Call::ReadLink { at }, Errno::EINVAL)
}

/// A name that is not there, asked for twice: the second time its absence is cached.
fn missing(b: &mut Bench<'_>, dir: Dir) -> Result<Option<f64>, MeasureError> {
    let name = b.new_name("absent");
    let call = Call::Stat { at: dir.at(&name), follow: true };
    let ns = b.failure(Class::NegativeMiss, &call, Errno::ENOENT)?;
    b.timed_failure(Class::NegativeHit, &call, Errno::ENOENT)?;
    let call = Call::Open { at: dir.at(&name), flags: OpenFlags::READ, mode: FILE_MODE };
    b.timed_failure(Class::OpenMissing, &call, Errno::ENOENT)?;
    Ok(ns)
}

fn open_timed(b: &mut Bench<'_>, class: Class, at: At<'_>, flags: OpenFlags) -> Result<Fd, MeasureError> {
    let call = Call::Open { at, flags, mode: FILE_MODE };
    let outcome = b.outcome(&call);
    let fd = outcome.fd().map_err(|errno| MeasureError::call(&call, errno))?;
    b.record(class, 0, outcome.dur_ns as f64);
    Ok(fd)
}
