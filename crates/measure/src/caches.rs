//! The sizes of the caches, measured: a working set grows until touching it again takes longer.
//!
//! Each step touches all of the working set in order, then a random sample of it again. Under least-recently-used
//! replacement the share of the sample that is still fast, times the working set, is the cache's size. A size that the
//! time or the space did not suffice to reach is a lower bound, and is said to be one.
//!
//! In virtual time a touch takes as long as the next of its kind, and costs nothing: there the first step is smaller
//! (the machines of old papers had caches of a few megabytes), the sample is larger, and a miss is whatever takes
//! longer than a hit.

use super::bench::{Bench, Dir};
use super::{MeasureError, Mode};
use posix::{Call, Fd, OpenFlags};
use system::Parameters;
use system::vector::Class;

const BLOCK_BYTES: u64 = 4096;
/// Below this share of fast touches the cache counts as exceeded; a few may be slow for other reasons.
const FAST_SHARE: f64 = 0.9;
const NAMES_PER_DIR: usize = 1000;
/// Second names of one file: fewer than any file system's limit (ext4: 65,000).
const LINKS_PER_FILE: usize = 500;

/// How closely it is looked.
struct Scale {
    /// Touched again in each step.
    sample: usize,
    /// The first working sets, of data and of names.
    first_bytes: u64,
    first_names: usize,
}

const SCALE: Scale = Scale { sample: 300, first_bytes: 16 << 20, first_names: 1000 };
const SCALE_VIRTUAL: Scale = Scale { sample: 5000, first_bytes: 1 << 20, first_names: 64 };

fn scale(b: &Bench<'_>) -> Scale {
    if b.is_virtual() { SCALE_VIRTUAL } else { SCALE }
}

/// What a growing working set showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Everything up to this size stayed cached.
    AtLeast(u64),
    /// The cache holds about this much.
    Size(u64),
}

/// Measures the data, name and attribute caches within `budget_ns`.
pub(super) fn measure(b: &mut Bench<'_>, budget_ns: u64, parameters: &mut Parameters) -> Result<(), MeasureError> {
    b.make_dir("caches")?;
    b.set_slice_ns(budget_ns * 2 / 5);
    match data(b)? {
        Found::AtLeast(bytes) => parameters.data_cache_bytes = bytes,
        Found::Size(bytes) => {
            parameters.data_cache_bytes = bytes;
            parameters.data_cache_is_lower_bound = false;
        }
    }
    b.set_slice_ns(budget_ns * 3 / 10);
    let files = names(b, Kind::Files)?;
    b.set_slice_ns(budget_ns * 3 / 10);
    let links = names(b, Kind::Links)?;
    if let Found::Size(n) = files {
        parameters.attribute_cache_files = n;
    }
    if let Found::Size(n) = links {
        parameters.name_cache_entries = n;
    }
    let seen = |found| match found {
        Found::AtLeast(n) | Found::Size(n) => n,
    };
    parameters.names_seen_cached = seen(files).min(seen(links));
    Ok(())
}

/// Grows one file. Its blocks are clean, so that nothing keeps the system from giving them up.
fn data(b: &mut Bench<'_>) -> Result<Found, MeasureError> {
    let hit = b.sheet.mean_so_far(Class::ReadCached, BLOCK_BYTES);
    let miss = b.sheet.mean_so_far(Class::ReadRand, BLOCK_BYTES);
    let (Some(hit), Some(miss)) = (hit, miss) else { return Ok(Found::AtLeast(0)) };
    let usage = b.fs.usage().map_err(|source| MeasureError::Io { doing: "asking for free space", source })?;
    let most = if b.mode == Mode::Quick && !b.is_virtual() { 256 << 20 } else { u64::MAX };
    let limit = (usage.available_bytes / 2).min(most) / BLOCK_BYTES * BLOCK_BYTES;
    let fd = b.open("caches/data".into(), OpenFlags { read: true, ..OpenFlags::CREATE_NEW })?;
    let (mut have, mut wanted) = (0, scale(b).first_bytes);
    let mut found = Found::AtLeast(0);
    while wanted <= limit && b.go_on()? {
        let began = b.fs.now_ns();
        b.fill(fd, have, wanted - have)?;
        b.quiet(&Call::Fsync { fd })?;
        b.read_all(fd, wanted)?;
        let share = fast_share(b, fd, wanted, threshold(hit, miss))?;
        have = wanted;
        if share < FAST_SHARE {
            found = Found::Size((wanted as f64 * share) as u64 / BLOCK_BYTES * BLOCK_BYTES);
            break;
        }
        found = Found::AtLeast(wanted);
        if wanted == limit {
            break;
        }
        // What is not twice as much is still more, where there is no room for that.
        wanted = if b.is_virtual() { (2 * wanted).min(limit) } else { 2 * wanted };
        // The next step takes about twice this one.
        let step_ns = b.fs.now_ns().saturating_sub(began);
        if !b.has_left_ns(2 * step_ns) {
            break;
        }
    }
    b.close(fd)?;
    b.unlink("caches/data".into())?;
    Ok(found)
}

/// Between a hit and a miss, in proportion: neither a slow hit nor a lucky miss crosses it easily.
fn threshold(hit_ns: f64, miss_ns: f64) -> f64 {
    (hit_ns.max(1.0) * miss_ns.max(1.0)).sqrt()
}

fn fast_share(b: &mut Bench<'_>, fd: Fd, size: u64, threshold_ns: f64) -> Result<f64, MeasureError> {
    let blocks = usize::try_from(size / BLOCK_BYTES).unwrap_or(usize::MAX);
    let (mut fast, sample) = (0, scale(b).sample);
    for _ in 0..sample {
        let offset = Some(b.pick(blocks) as u64 * BLOCK_BYTES);
        let outcome = b.outcome(&Call::Read { fd, offset, len_bytes: BLOCK_BYTES });
        fast += usize::from((outcome.dur_ns as f64) < threshold_ns);
    }
    Ok(fast as f64 / sample as f64)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Files of one name each: exceeds the attribute cache.
    Files,
    /// Many names of few files: exceeds the name cache alone.
    Links,
}

fn names(b: &mut Bench<'_>, kind: Kind) -> Result<Found, MeasureError> {
    let Some(hit) = b.sheet.mean_so_far(Class::Stat, 0) else { return Ok(Found::AtLeast(0)) };
    let extra = match kind {
        Kind::Files => b.sheet.mean_so_far(Class::LookupSeqMiss, 0),
        Kind::Links => b.sheet.mean_so_far(Class::LookupSeqAttrHit, 0),
    };
    // Where misses could not be measured, a touch has to be much slower than usual to count as one.
    let least = 1.5 * hit;
    let threshold = extra.map_or(4.0 * hit, |extra| threshold(hit, hit + extra)).max(least);
    // An inode or a name that comes from the buffer cache takes longer than a hit, and much less than one from the
    // disk.
    let threshold = if b.is_virtual() { least } else { threshold };
    let root = if kind == Kind::Files { "caches/files" } else { "caches/links" };
    b.make_dir(root)?;
    let most = match b.mode {
        Mode::Quick if b.is_virtual() => 64_000,
        Mode::Quick => 8_000,
        Mode::Full => 512_000,
    };
    let usage = b.fs.usage().map_err(|source| MeasureError::Io { doing: "asking for free inodes", source })?;
    // Some file systems make inodes on demand.
    let room = if usage.total_inodes == 0 { u64::MAX } else { usage.free_inodes / 2 };
    let most = most.min(usize::try_from(room).unwrap_or(usize::MAX));
    let mut set = Names { root, kind, dirs: Vec::new(), names: Vec::new(), source: None };
    let mut wanted = scale(b).first_names;
    let mut found = Found::AtLeast(0);
    while wanted <= most && b.go_on()? {
        let began = b.fs.now_ns();
        if !set.grow(b, wanted)? {
            break;
        }
        let share = set.fast_share(b, threshold)?;
        if share < FAST_SHARE {
            found = Found::Size((wanted as f64 * share) as u64);
            break;
        }
        found = Found::AtLeast(wanted as u64);
        wanted *= 2;
        let step_ns = b.fs.now_ns().saturating_sub(began);
        if !b.has_left_ns(2 * step_ns) {
            break;
        }
    }
    for dir in set.dirs {
        b.close(dir.fd)?;
    }
    Ok(found)
}

struct Names {
    root: &'static str,
    kind: Kind,
    dirs: Vec<Dir>,
    names: Vec<String>,
    /// The file that gets further names, and how many it has.
    source: Option<(Dir, String, usize)>,
}

impl Names {
    /// Makes names up to this number; false if the time did not suffice.
    fn grow(&mut self, b: &mut Bench<'_>, wanted: usize) -> Result<bool, MeasureError> {
        while self.names.len() < wanted {
            if self.names.len().is_multiple_of(100) && !b.go_on()? {
                return Ok(false);
            }
            if self.names.len().is_multiple_of(NAMES_PER_DIR) {
                let path = format!("{}/d{}", self.root, self.dirs.len());
                self.dirs.push(b.new_dir(&path)?);
            }
            let Some(&dir) = self.dirs.last() else { return Ok(false) };
            let name = b.new_name("name");
            match &mut self.source {
                Some((source_dir, source, links)) if *links < LINKS_PER_FILE => {
                    b.quiet(&Call::Link { from: source_dir.at(source), to: dir.at(&name), follow: false })?;
                    *links += 1;
                }
                source => {
                    b.make_file(dir.at(&name), 0)?;
                    if self.kind == Kind::Links {
                        *source = Some((dir, name.clone(), 1));
                    }
                }
            }
            self.names.push(name);
        }
        Ok(true)
    }

    fn touch(&self, b: &mut Bench<'_>, number: usize) -> u64 {
        match (self.dirs.get(number / NAMES_PER_DIR), self.names.get(number)) {
            (Some(dir), Some(name)) => b.outcome(&Call::Stat { at: dir.at(name), follow: true }).dur_ns,
            _ => 0,
        }
    }

    fn fast_share(&self, b: &mut Bench<'_>, threshold_ns: f64) -> Result<f64, MeasureError> {
        for number in 0..self.names.len() {
            self.touch(b, number);
        }
        let (mut fast, sample) = (0, scale(b).sample);
        for _ in 0..sample {
            let chosen = b.pick(self.names.len());
            fast += usize::from((self.touch(b, chosen) as f64) < threshold_ns);
        }
        Ok(fast as f64 / sample as f64)
    }
}
