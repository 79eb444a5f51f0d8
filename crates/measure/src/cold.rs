//! Names, attributes, directories and block maps on a cold system.
//!
//! Caches are dropped once a round, then each thing is touched for the first time once. Names cannot be dropped without
//! root; where the system does not confirm that it dropped them, nothing about names is measured, and removing and
//! truncating are measured with the data evicted only, and marked unverified.

use super::bench::{Bench, Dir, FILE_MODE};
use super::remove::{RUN, files_of};
use super::{Group, MeasureError, Mode};
use posix::{CacheState, Call, Errno, OpenFlags};
use stats::midmean;
use system::vector::Class;

/// What needs names and attributes that are not cached.
const NAMES: [Class; 8] = [
    Class::LookupSeqMiss,
    Class::LookupRandMiss,
    Class::LookupFewMiss,
    Class::LookupNearMiss,
    Class::LookupSeqAttrHit,
    Class::LookupRandAttrHit,
    Class::NegativeCold,
    Class::ReadDirCold,
];
/// Directories whose names are looked up, and their number of entries.
const QUICK_DIRS: usize = 24;
const FULL_DIRS: usize = 64;
const ENTRIES: usize = 40;
/// Directories of each number of few names.
const SMALL_DIRS: usize = 12;
/// Every so many-th directory is a large one.
const LARGE_EVERY: usize = 8;
const LARGE_ENTRIES: usize = 400;
/// Names looked up in each directory.
const LOOKUPS: usize = 16;
/// Files of which names are looked up in the order of making: so many at least, for at most so many lookups. A walk
/// through a tree looks up hundreds in a row, and a system that reads ahead in its table of inodes (ext4, 512 at a
/// time) does so once for all of them.
const ORDERED_LOOKUPS: u64 = 520;
const ORDERED_FILES: u64 = 520;
const APART_LOOKUPS: u64 = 80;
const FAR_LOOKUPS: u64 = 5;
/// What files hold that are looked up, in turn: as in trees of sources, one in some is shorter than half a block. Where
/// data or its extents lie beside inodes (btrfs), fewer of these are read at once.
const SOURCE_BYTES: [u64; 5] = [1024, 4096, 8192, 4096, 16_384];
/// Free space below which they hold nothing; nor do those that are so far apart that each is read alone, nor those of a
/// laboratory: there lookups in a log came out dearer than replays found them, and why is not known.
const ROOM_BYTES: u64 = 1 << 30;
/// Nearer than this they are in directories of [`ENTRIES`], as most are in programs; farther apart in one large one, as
/// only there all between them is unknown.
const ORDERED_FAR: u64 = 64;
/// The file that is synced first, and what it begins with.
const SYNCED: &str = "cold/synced";
const SYNCED_BYTES: u64 = 64 << 10;
const APPENDED_BYTES: u64 = 4096;
/// The buffer of the C library's readdir.
const DENTS_BYTES: u64 = 32 << 10;

struct NameDir {
    path: String,
    names: Vec<String>,
    /// The directory with a second name of some of its files.
    links: String,
    linked: Vec<String>,
}

/// Files made one after the other, of which every so many-th is looked up.
struct Ordered {
    apart: u64,
    path: String,
    /// Below the path.
    dirs: Vec<String>,
    names: Vec<String>,
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Cold {
    dirs: Vec<NameDir>,
    /// Directories of few names: path, how many, names.
    small: Vec<(String, u64, Vec<String>)>,
    /// Directories in which only missing names are looked up.
    empty_handed: Vec<String>,
    /// Directories to read, with their number of entries; each once more for every round-trip.
    listed: Vec<(String, u64)>,
    /// What is looked up in the order of making.
    ordered: Vec<Ordered>,
    /// Whether names could be dropped in a round.
    was_cold: bool,
}

#[derive(Clone)]
enum Item {
    Names(usize),
    Few(usize),
    Missing(usize),
    List(usize),
    Ordered(usize),
    /// Removes these one after the other.
    Remove(u64, Vec<String>),
    Truncate(u64, String),
}

impl Item {
    /// The files that it was made for.
    fn paths(&self) -> &[String] {
        match self {
            Item::Remove(_, paths) => paths,
            Item::Truncate(_, path) => std::slice::from_ref(path),
            Item::Names(_) | Item::Few(_) | Item::Missing(_) | Item::List(_) | Item::Ordered(_) => &[],
        }
    }
}

impl Group for Cold {
    fn name(&self) -> &'static str {
        "cold names and directories"
    }

    fn classes(&self) -> &'static [Class] {
        use Class::*;
        &[
            LookupSeqMiss,
            LookupRandMiss,
            LookupFewMiss,
            LookupNearMiss,
            LookupSeqAttrHit,
            LookupRandAttrHit,
            NegativeCold,
            ReadDir,
            ReadDirCold,
            TruncateUncached,
            RemoveUncached,
            RemoveUncachedNext,
            SyncFirst,
        ]
    }

    fn prepare(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        b.make_dir("cold")?;
        b.make_dir("cold/removed")?;
        b.make_file(SYNCED.into(), SYNCED_BYTES)?;
        let dirs = if b.mode == Mode::Quick { QUICK_DIRS } else { FULL_DIRS };
        for number in 0..dirs {
            let entries = if number % LARGE_EVERY == 1 { LARGE_ENTRIES } else { ENTRIES };
            let dir = self.make_name_dir(b, number, entries)?;
            self.dirs.push(dir);
        }
        for &entries in Class::LookupFewMiss.points() {
            for number in 0..SMALL_DIRS {
                let path = format!("cold/few{entries}_{number}");
                let dir = b.new_dir(&path)?;
                let names: Vec<String> = (0..entries).map(|_| b.new_name("file")).collect();
                names.iter().try_for_each(|name| b.make_file(dir.at(name), 0))?;
                b.close(dir.fd)?;
                self.small.push((path, entries, names));
            }
        }
        for number in 0..dirs / 3 {
            let path = format!("cold/absent{number}");
            self.make_listed(b, &path, ENTRIES as u64)?;
            self.empty_handed.push(path);
        }
        for &apart in Class::LookupNearMiss.points() {
            let ordered = make_ordered(b, apart)?;
            self.ordered.push(ordered);
        }
        for &entries in Class::ReadDir.points() {
            // The small ones several times: one call on one directory would be the whole round.
            let copies = if entries <= 100 { 4 } else { 1 };
            for copy in 0..copies {
                let path = format!("cold/list{entries}_{copy}");
                self.make_listed(b, &path, entries)?;
                self.listed.push((path, entries));
            }
        }
        b.sync()
    }

    fn round(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        let mut items = self.make_items(b)?;
        b.sync()?;
        let state = b.drop_caches()?;
        if state == CacheState::Cold {
            self.was_cold = true;
        } else {
            // Now and then something else of the machine holds a name: then this round does without, as it did before.
            if !self.was_cold {
                give_up_names(b);
            }
            for path in items.iter().flat_map(Item::paths) {
                let fd = b.open(path.as_str().into(), OpenFlags::READ_WRITE)?;
                b.evict(fd)?;
                b.close(fd)?;
            }
        }
        first_sync(b)?;
        b.shuffle(&mut items);
        for item in &items {
            // What is left is removed below, whether it was measured or not.
            if !b.go_on()? {
                break;
            }
            match item {
                Item::Names(number) if state == CacheState::Cold => self.look_up(b, *number)?,
                Item::Few(number) if state == CacheState::Cold => self.look_up_few(b, *number)?,
                Item::Missing(number) if state == CacheState::Cold => self.miss(b, *number)?,
                Item::List(number) => self.list(b, *number, state == CacheState::Cold)?,
                Item::Ordered(number) if state == CacheState::Cold => self.in_order(b, *number)?,
                Item::Remove(size, paths) => {
                    let dir = b.open_dir("cold/removed")?;
                    for (number, path) in paths.iter().enumerate() {
                        let class = if number == 0 { Class::RemoveUncached } else { Class::RemoveUncachedNext };
                        b.quiet(&Call::Stat { at: path.as_str().into(), follow: true })?;
                        let at = path.strip_prefix("cold/removed/").unwrap_or(path);
                        b.timed(class, *size, &Call::Unlink { at: dir.at(at) })?;
                        b.sheet.note_cache(class, *size, state);
                    }
                    b.close(dir.fd)?;
                }
                Item::Truncate(size, path) => {
                    b.quiet(&Call::Stat { at: path.as_str().into(), follow: true })?;
                    let at = path.strip_prefix("cold/removed/").unwrap_or(path);
                    let dir = b.open_dir("cold/removed")?;
                    b.timed(Class::TruncateUncached, *size, &Call::Truncate { at: dir.at(at), len_bytes: 0 })?;
                    b.close(dir.fd)?;
                    b.sheet.note_cache(Class::TruncateUncached, *size, state);
                }
                Item::Names(_) | Item::Few(_) | Item::Missing(_) | Item::Ordered(_) => {}
            }
        }
        for path in items.iter().flat_map(Item::paths) {
            // Some are gone already.
            let _ = b.outcome(&Call::Unlink { at: path.as_str().into() });
        }
        Ok(())
    }
}

impl Cold {
    fn make_name_dir(&self, b: &mut Bench<'_>, number: usize, entries: usize) -> Result<NameDir, MeasureError> {
        let (path, links) = (format!("cold/d{number:03}"), format!("cold/l{number:03}"));
        let (dir, link_dir) = (b.new_dir(&path)?, b.new_dir(&links)?);
        let mut names = Vec::with_capacity(entries);
        let mut linked = Vec::new();
        let room = has_room(b)?;
        for number in 0..entries {
            let name = b.new_name("file");
            b.make_file(dir.at(&name), source_bytes(room, number as u64))?;
            names.push(name);
        }
        for name in names.iter().take(LOOKUPS) {
            let call = Call::Link { from: dir.at(name), to: link_dir.at(name), follow: false };
            if b.outcome(&call).result.is_ok() {
                linked.push(name.clone());
            }
        }
        b.close(dir.fd)?;
        b.close(link_dir.fd)?;
        Ok(NameDir { path, names, links, linked })
    }

    fn make_listed(&self, b: &mut Bench<'_>, path: &str, entries: u64) -> Result<(), MeasureError> {
        let dir = b.new_dir(path)?;
        for _ in 0..entries {
            let name = b.new_name("entry");
            b.make_file(dir.at(&name), 0)?;
        }
        b.close(dir.fd)
    }

    fn make_items(&self, b: &mut Bench<'_>) -> Result<Vec<Item>, MeasureError> {
        let mut items: Vec<Item> = Vec::new();
        items.extend((0..self.dirs.len()).map(Item::Names));
        items.extend((0..self.small.len()).map(Item::Few));
        items.extend((0..self.empty_handed.len()).map(Item::Missing));
        items.extend((0..self.listed.len()).map(Item::List));
        items.extend((0..self.ordered.len()).map(Item::Ordered));
        let mut sizes = Class::RemoveUncached.points().to_vec();
        b.shuffle(&mut sizes);
        for size in sizes {
            let run = if Class::RemoveUncachedNext.points().contains(&size) { RUN } else { 1 };
            for number in 0..files_of(size) {
                if !b.go_on()? {
                    break;
                }
                let paths = make_removed(b, size, 1)?;
                items.extend(paths.into_iter().map(|path| Item::Truncate(size, path)));
                if number % run == 0 {
                    items.push(Item::Remove(size, make_removed(b, size, run)?));
                }
            }
        }
        Ok(items)
    }

    /// Some names of one directory for the first time, then by their second name, then all again for what a hit costs.
    fn look_up(&self, b: &mut Bench<'_>, number: usize) -> Result<(), MeasureError> {
        let Some(place) = self.dirs.get(number) else { return Ok(()) };
        let mut names: Vec<&String> = place.names.iter().collect();
        b.shuffle(&mut names);
        names.truncate(LOOKUPS);
        // The second names are of files whose attributes are cached by then.
        let linked: Vec<&String> = place.linked.iter().collect();
        let dir = b.open_dir(&place.path)?;
        let first = stat_all(b, dir, &names)?;
        let base = midmean(&stat_all(b, dir, &names)?);
        stat_all(b, dir, &linked)?;
        b.close(dir.fd)?;
        let link_dir = b.open_dir(&place.links)?;
        let second = stat_all(b, link_dir, &linked)?;
        b.close(link_dir.fd)?;
        for (times, rand, seq) in [
            (first, Class::LookupRandMiss, Class::LookupSeqMiss),
            (second, Class::LookupRandAttrHit, Class::LookupSeqAttrHit),
        ] {
            for (at, ns) in times.into_iter().enumerate() {
                let class = if at == 0 { rand } else { seq };
                b.sheet.record(class, 0, ns - base);
                b.sheet.note_cache(class, 0, CacheState::Cold);
            }
        }
        Ok(())
    }

    /// One name of a directory of few.
    fn look_up_few(&self, b: &mut Bench<'_>, number: usize) -> Result<(), MeasureError> {
        let Some((path, entries, names)) = self.small.get(number) else { return Ok(()) };
        let name = b.pick(names.len());
        let names: Vec<&String> = names.iter().skip(name).take(1).collect();
        let dir = b.open_dir(path)?;
        let first = stat_all(b, dir, &names)?;
        let again = stat_all(b, dir, &names)?;
        b.close(dir.fd)?;
        for (first, again) in first.into_iter().zip(again) {
            b.sheet.record(Class::LookupFewMiss, *entries, first - again);
            b.sheet.note_cache(Class::LookupFewMiss, *entries, CacheState::Cold);
        }
        Ok(())
    }

    /// Names of a directory whose blocks were read, every so many of them in the order in which the files were made.
    fn in_order(&self, b: &mut Bench<'_>, number: usize) -> Result<(), MeasureError> {
        let Some(ordered) = self.ordered.get(number) else { return Ok(()) };
        let mut first = Vec::new();
        let mut again = Vec::new();
        for dir in &ordered.dirs {
            let (path, inside) = match dir.as_str() {
                "" => (ordered.path.clone(), String::new()),
                dir => (format!("{}/{dir}", ordered.path), format!("{dir}/")),
            };
            list_once(b, &path)?;
            let names: Vec<&String> = ordered.names.iter().filter(|name| name.starts_with(&inside)).collect();
            let dir = b.open_dir(&ordered.path)?;
            first.append(&mut stat_all(b, dir, &names)?);
            again.append(&mut stat_all(b, dir, &names)?);
            b.close(dir.fd)?;
        }
        let base = midmean(&again);
        // Of the first nothing is near.
        for ns in first.into_iter().skip(1) {
            b.sheet.record(Class::LookupNearMiss, ordered.apart, ns - base);
            b.sheet.note_cache(Class::LookupNearMiss, ordered.apart, CacheState::Cold);
        }
        Ok(())
    }

    fn miss(&self, b: &mut Bench<'_>, number: usize) -> Result<(), MeasureError> {
        let Some(path) = self.empty_handed.get(number) else { return Ok(()) };
        let name = b.new_name("absent");
        let dir = b.open_dir(path)?;
        b.timed_failure(Class::NegativeCold, &Call::Stat { at: dir.at(&name), follow: true }, Errno::ENOENT)?;
        b.sheet.note_cache(Class::NegativeCold, 0, CacheState::Cold);
        b.close(dir.fd)
    }

    /// Reads a directory, and once more when it is cached.
    fn list(&self, b: &mut Bench<'_>, number: usize, cold: bool) -> Result<(), MeasureError> {
        let Some((path, entries)) = self.listed.get(number) else { return Ok(()) };
        if cold {
            // Its inode is known by then, as it is to a program that has looked it up.
            b.quiet(&Call::Stat { at: path.as_str().into(), follow: true })?;
        }
        let first = list_once(b, path)?;
        let again = list_once(b, path)?;
        b.sheet.record(Class::ReadDir, *entries, again.listed_ns);
        if cold {
            // Opening it may read some of it already (btrfs).
            let opened_ns = (first.opened_ns - again.opened_ns).max(0.0);
            b.sheet.record(Class::ReadDirCold, *entries, first.listed_ns + opened_ns);
            b.sheet.note_cache(Class::ReadDirCold, *entries, CacheState::Cold);
        }
        Ok(())
    }
}

/// The first sync since the caches were emptied, beside those that come after others (`stable`).
fn first_sync(b: &mut Bench<'_>) -> Result<(), MeasureError> {
    let fd = b.open(SYNCED.into(), OpenFlags { append: true, ..OpenFlags::WRITE })?;
    b.quiet(&Call::Write { fd, offset: None, len_bytes: APPENDED_BYTES, data: None })?;
    let call = Call::Fsync { fd };
    let outcome = b.outcome(&call);
    outcome.result.map_err(|errno| MeasureError::call(&call, errno))?;
    // In the first turn those may not have been measured yet.
    if let Some(later_ns) = b.sheet.mean_so_far(Class::FsyncAppend, APPENDED_BYTES) {
        b.sheet.record(Class::SyncFirst, 0, outcome.dur_ns as f64 - later_ns);
    }
    b.close(fd)
}

/// Makes files to be removed or cut.
fn make_removed(b: &mut Bench<'_>, size: u64, files: usize) -> Result<Vec<String>, MeasureError> {
    let mut paths = Vec::with_capacity(files);
    for _ in 0..files {
        let path = format!("cold/removed/{}", b.new_name("file"));
        b.make_file(path.as_str().into(), size)?;
        paths.push(path);
    }
    Ok(paths)
}

fn give_up_names(b: &mut Bench<'_>) {
    for class in NAMES {
        let why = "names and attributes cannot be dropped from the caches here (run as root on a system of its own)";
        b.sheet.give_up(class.name().to_owned(), why.to_owned());
    }
}

/// Makes files one after the other, with the directories they are in.
fn make_ordered(b: &mut Bench<'_>, apart: u64) -> Result<Ordered, MeasureError> {
    let path = format!("cold/ordered{apart}");
    b.make_dir(&path)?;
    let small = apart < ORDERED_FAR;
    let files = match apart {
        1 => ORDERED_LOOKUPS,
        ..ORDERED_FAR => APART_LOOKUPS * apart,
        _ => ORDERED_FILES.max(FAR_LOOKUPS * apart),
    };
    let room = apart <= ORDERED_FAR && has_room(b)?;
    let (mut dirs, mut names) = (Vec::new(), Vec::new());
    let root = b.open_dir(&path)?;
    for number in 0..files {
        let dir = if small { format!("d{:02}", number / ENTRIES as u64) } else { String::new() };
        if dirs.last() != Some(&dir) {
            if small {
                b.make_dir(&format!("{path}/{dir}"))?;
            }
            dirs.push(dir.clone());
        }
        let name = if small { format!("{dir}/made{number:04}.dat") } else { format!("made{number:04}.dat") };
        b.make_file(root.at(&name), source_bytes(room, number))?;
        if number % apart == 0 {
            names.push(name);
        }
    }
    b.close(root.fd)?;
    Ok(Ordered { apart, path, dirs, names })
}

/// Whether files that are looked up may hold something.
fn has_room(b: &mut Bench<'_>) -> Result<bool, MeasureError> {
    if b.is_virtual() {
        return Ok(false);
    }
    let usage = b.fs.usage().map_err(|source| MeasureError::Io { doing: "asking for free space", source })?;
    Ok(usage.available_bytes >= ROOM_BYTES)
}

fn source_bytes(room: bool, number: u64) -> u64 {
    if room { SOURCE_BYTES[(number % SOURCE_BYTES.len() as u64) as usize] } else { 0 }
}

/// The time of each stat.
fn stat_all(b: &mut Bench<'_>, dir: Dir, names: &[&String]) -> Result<Vec<f64>, MeasureError> {
    let mut times = Vec::with_capacity(names.len());
    for name in names {
        let call = Call::Stat { at: dir.at(name), follow: true };
        let outcome = b.outcome(&call);
        outcome.result.map_err(|errno| MeasureError::call(&call, errno))?;
        times.push(outcome.dur_ns as f64);
    }
    Ok(times)
}

/// What it took to open a directory, and all its getdents.
struct Listed {
    opened_ns: f64,
    listed_ns: f64,
}

fn list_once(b: &mut Bench<'_>, path: &str) -> Result<Listed, MeasureError> {
    let call = Call::Open { at: path.into(), flags: OpenFlags::DIRECTORY, mode: FILE_MODE };
    let opened = b.outcome(&call);
    let fd = opened.fd().map_err(|errno| MeasureError::call(&call, errno))?;
    let mut listed_ns = 0.0;
    loop {
        let call = Call::GetDents { fd, len_bytes: DENTS_BYTES };
        let outcome = b.outcome(&call);
        listed_ns += outcome.dur_ns as f64;
        if outcome.count().map_err(|errno| MeasureError::call(&call, errno))? == 0 {
            break;
        }
    }
    b.close(fd)?;
    Ok(Listed { opened_ns: opened.dur_ns as f64, listed_ns })
}
