//! Names, attributes, directories and block maps on a cold system.
//!
//! Caches are dropped once a round, then each thing is touched for the first time once. Names cannot be dropped without root;
//! where the system does not confirm that it dropped them, nothing about names is measured, and removing and
//! truncating are measured with the data evicted only, and marked unverified.

use super::bench::{Bench, Dir};
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
/// Files of which names are looked up in the order of making: at most so many lookups, and as many files as they take.
const ORDERED_LOOKUPS: u64 = 80;
const ORDERED_FILES: u64 = 520;
const FAR_LOOKUPS: u64 = 5;
/// Nearer than this they are in directories of [`ENTRIES`], as most are in programs; farther apart in one large one, as only there all
/// between them is unknown.
const ORDERED_FAR: u64 = 64;
const FILE_BYTES: u64 = 4096;
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
        ]
    }

    fn prepare(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        b.make_dir("cold")?;
        b.make_dir("cold/removed")?;
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
        for number in 0..entries {
            let name = b.new_name("file");
            b.make_file(dir.at(&name), if number % 4 == 0 { FILE_BYTES } else { 0 })?;
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
        let first = list_once(b, path)?;
        if cold {
            b.sheet.record(Class::ReadDirCold, *entries, first);
            b.sheet.note_cache(Class::ReadDirCold, *entries, CacheState::Cold);
        }
        let again = list_once(b, path)?;
        b.sheet.record(Class::ReadDir, *entries, again);
        Ok(())
    }
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
    let files = if small { ORDERED_LOOKUPS * apart } else { ORDERED_FILES.max(FAR_LOOKUPS * apart) };
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
        b.make_file(root.at(&name), 0)?;
        if number % apart == 0 {
            names.push(name);
        }
    }
    b.close(root.fd)?;
    Ok(Ordered { apart, path, dirs, names })
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

/// The time of all getdents of a directory.
fn list_once(b: &mut Bench<'_>, path: &str) -> Result<f64, MeasureError> {
    let fd = b.open(path.into(), OpenFlags::DIRECTORY)?;
    let mut total = 0.0;
    loop {
        let call = Call::GetDents { fd, len_bytes: DENTS_BYTES };
        let outcome = b.outcome(&call);
        total += outcome.dur_ns as f64;
        if outcome.count().map_err(|errno| MeasureError::call(&call, errno))? == 0 {
            break;
        }
    }
    b.close(fd)?;
    Ok(total)
}
