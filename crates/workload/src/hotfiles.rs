//! The hot-file benchmark (Smith and Seltzer, *A Comparison of FFS Disk Allocation Policies*, USENIX 1996, section 5):
//! the files of an aged tree that were modified last are read, and written over in place.
//!
//! Files are taken in a fixed order, directory by directory as in the paper. **Read**: each whole, in as few calls as
//! possible, from cold caches. **Overwrite**, only where asked for and only in a tree that `fsage age` made
//! ([`AGED_MARKER`](crate::AGED_MARKER)): the same length again without truncation, `syncfs` included. All rounds of
//! reading come before any of overwriting: a file system that writes elsewhere (btrfs) has another layout afterwards.
//! Modification times are put back, so that the same files are hot in the next run.

use crate::WorkloadError;
use crate::benchmark::{Benchmark, Prepared, TableRows};
use crate::driver::Driver;
use crate::phase::Phase;
use crate::point::Point;
use crate::repeat::Repeat;
use crate::sample::Sample;
use crate::tree::{self, Found, Skipped, Spread};
use posix::{Call, Errno, FileSystem, SetTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use units::show;

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Which files are hot.
    pub select: Select,
    /// Whether they are overwritten as well.
    pub overwrite: bool,
    /// The largest single read or write.
    pub piece_bytes: u64,
    /// How often.
    pub repeat: Repeat,
}

/// Which files of a tree are hot. Empty files never are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Select {
    /// Modified in the last so many days, counted back from the tree's newest file: an aged tree that is kept holds the
    /// same hot files next year. A month in the paper.
    NewerDays(f64),
    /// The most recently modified share (0 to 1) of the files.
    Share(f64),
    /// These, by path from the tree's root.
    List {
        /// Where the list is from.
        from: String,
        /// The paths.
        #[serde(skip)]
        paths: Vec<PathBuf>,
    },
}

impl std::fmt::Display for Select {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Select::NewerDays(1.0) => f.write_str("modified in the day before the newest"),
            Select::NewerDays(days) => write!(f, "modified in the {days} days before the newest"),
            Select::Share(share) => write!(f, "the most recently modified {} % of the files", share * 100.0),
            Select::List { from, .. } => write!(f, "listed in {from}"),
        }
    }
}

impl Default for Options {
    /// As in the paper, without overwriting.
    fn default() -> Options {
        Options { select: Select::NewerDays(30.0), overwrite: false, piece_bytes: 4 << 20, repeat: Repeat::default() }
    }
}

impl Benchmark for Options {
    fn name(&self) -> &'static str {
        "hotfiles"
    }

    fn repeat(&self) -> &Repeat {
        &self.repeat
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let wrong = |what: &str| Err(WorkloadError::Options(what.into()));
        match self.select {
            Select::NewerDays(days) if !(days.is_finite() && days >= 0.0) => wrong("newer days: a number, 0 or more"),
            Select::Share(share) if !(share > 0.0 && share <= 1.0) => {
                wrong("the share of hot files is above 0, at most 1")
            }
            _ if self.piece_bytes == 0 => wrong("the size of a piece is at least 1"),
            _ => Ok(()),
        }
    }

    fn prepare(&self, fs: &mut dyn FileSystem) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Hotfiles::new(self, fs)?))
    }

    fn what(&self) -> String {
        format!(
            "Hot files: {}, directory by directory; calls of at most {}; caches dropped before. Time is that of the \
             calls and, for overwrite, of the syncfs that ends it.",
            self.select,
            show::bytes(self.piece_bytes as f64)
        )
    }

    fn table_rows(&self) -> TableRows {
        TableRows::Points
    }

    fn differs_by(&self) -> Option<Vec<(&'static str, String)>> {
        Some(vec![("hot files", self.select.to_string()), ("bytes in a call", self.piece_bytes.to_string())])
    }
}

/// The benchmark on one tree.
pub(crate) struct Hotfiles {
    options: Options,
    hot: Vec<Found>,
    /// Hot files that may be overwritten.
    writable: Vec<Found>,
    notes: Vec<String>,
    noatime: bool,
}

impl Hotfiles {
    pub(crate) fn new(options: &Options, fs: &mut dyn FileSystem) -> Result<Hotfiles, WorkloadError> {
        options.check()?;
        if options.overwrite {
            tree::must_be_ours(fs)?;
        }
        let (files, skipped) = tree::files(fs)?;
        let mut notes: Vec<String> = skipped.note("names of the tree could not be looked at").into_iter().collect();
        let all = files.len();
        let all_bytes: u64 = files.iter().map(|f| f.stat.size_bytes).sum();
        let with_data = files.iter().filter(|f| f.stat.size_bytes > 0).count();
        let hot = in_order(select(&options.select, files)?);
        let chosen = hot.len();
        let mut noatime = tree::may_noatime(fs);
        let (hot, unreadable) = readable(fs, hot, &mut noatime);
        notes.extend(unreadable.note("hot files cannot be read and are left out"));
        if hot.is_empty() {
            return Err(WorkloadError::Nothing("read: its hot files cannot be opened".into()));
        }
        let hot_bytes: u64 = hot.iter().map(|f| f.stat.size_bytes).sum();
        notes.push(format!("{} of {all} files are hot, with {hot_bytes} of {all_bytes} bytes", hot.len()));
        if let (Select::NewerDays(days), true) = (&options.select, chosen == with_data) {
            notes.push(format!(
                "no file is older than {days} days before the newest, so every file is hot (aging takes the place of \
                 months in an hour); --share 10% takes those modified last"
            ));
        }
        let mut spread = Spread::default();
        hot.iter().for_each(|file| spread.offer(&file.path));
        notes.extend(spread.unwritten_note(fs));
        let mut writable = Vec::new();
        if options.overwrite {
            let left_out;
            (writable, left_out) = overwritable(&hot);
            notes.extend(left_out.note("hot files are read but not overwritten"));
            if writable.is_empty() {
                return Err(WorkloadError::Nothing("overwrite: its hot files all have holes or several names".into()));
            }
        }
        Ok(Hotfiles { options: options.clone(), hot, writable, notes, noatime })
    }

    fn overwrite(&self, driver: &mut Driver<'_>) -> Result<Sample, WorkloadError> {
        driver.begin_cold()?;
        for file in &self.writable {
            driver.overwrite(&file.path, file.stat.size_bytes, self.options.piece_bytes)?;
        }
        driver.end_synced(Phase::Overwrite)
    }

    /// The files stay as hot as they were.
    fn put_times_back(&self, driver: &mut Driver<'_>) -> Result<(), WorkloadError> {
        for file in &self.writable {
            let (atime, mtime) = (SetTime::Omit, SetTime::To(file.stat.mtime_ns));
            let call = Call::Utimens { at: file.path.as_path().into(), follow: false, atime, mtime };
            let doing = "putting the modification time back";
            driver.fs.call(&call).result.map_err(|errno| WorkloadError::call(doing, &file.path, errno))?;
        }
        Ok(())
    }
}

impl Prepared for Hotfiles {
    fn points(&self) -> Vec<Point> {
        let stages = if self.options.overwrite { 0..2 } else { 0..1 };
        stages.map(|stage| Point { label: "hot files".to_owned(), size_bytes: None, stage }).collect()
    }

    fn once(&mut self, driver: &mut Driver<'_>, point: &Point, _tag: &str) -> Result<Vec<Sample>, WorkloadError> {
        if point.stage == 0 {
            driver.begin_cold()?;
            for file in &self.hot {
                driver.read_foreign(&file.path, file.stat.size_bytes, self.options.piece_bytes, self.noatime)?;
            }
            return Ok(vec![driver.end(Phase::Read)]);
        }
        let sample = self.overwrite(driver);
        let back = self.put_times_back(driver);
        let sample = sample?;
        back?;
        Ok(vec![sample])
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// The hot files of a tree.
fn select(select: &Select, files: Vec<Found>) -> Result<Vec<Found>, WorkloadError> {
    let mut files: Vec<Found> = match select {
        Select::List { from, paths } => return listed(from, paths, files),
        _ => files.into_iter().filter(|f| f.stat.size_bytes > 0).collect(),
    };
    // Newest first; of the same age, by name.
    files.sort_by(|a, b| b.stat.mtime_ns.cmp(&a.stat.mtime_ns).then_with(|| a.path.cmp(&b.path)));
    let newest = files.first().map_or(0, |f| f.stat.mtime_ns);
    match *select {
        Select::NewerDays(days) => {
            let span_ns = (days * 86400e9) as i64;
            files.retain(|f| newest.saturating_sub(f.stat.mtime_ns) <= span_ns);
        }
        Select::Share(share) => files.truncate(((files.len() as f64 * share).round() as usize).max(1)),
        Select::List { .. } => {}
    }
    if files.is_empty() { Err(WorkloadError::Nothing("read: it has no files with data".into())) } else { Ok(files) }
}

fn listed(from: &str, paths: &[PathBuf], files: Vec<Found>) -> Result<Vec<Found>, WorkloadError> {
    let mut by_path: BTreeMap<PathBuf, Found> = files.into_iter().map(|f| (f.path.clone(), f)).collect();
    let mut chosen = Vec::new();
    for path in paths {
        let clean: PathBuf = path.components().filter(|c| !matches!(c, std::path::Component::CurDir)).collect();
        match by_path.remove(&clean) {
            Some(file) if file.stat.size_bytes > 0 => chosen.push(file),
            Some(_) => {}
            None => {
                let path = path.display();
                let problem = format!("{from}: {path} is not an ordinary file below the target, or is listed twice");
                return Err(WorkloadError::Options(problem));
            }
        }
    }
    if chosen.is_empty() {
        Err(WorkloadError::Nothing(format!("read: {from} names no file with data")))
    } else {
        Ok(chosen)
    }
}

/// Directory by directory, and by name in each.
fn in_order(mut files: Vec<Found>) -> Vec<Found> {
    files.sort_by(|a, b| (a.path.parent(), a.path.file_name()).cmp(&(b.path.parent(), b.path.file_name())));
    files
}

/// Hot files that can be opened. Access times are left alone only if that may be done for all.
fn readable(fs: &mut dyn FileSystem, hot: Vec<Found>, noatime: &mut bool) -> (Vec<Found>, Skipped) {
    let mut left_out = Skipped::default();
    let mut found = Vec::with_capacity(hot.len());
    for file in hot {
        let mut opened = tree::can_be_read(fs, &file.path, *noatime);
        if opened == Err(Errno::EPERM) && *noatime {
            *noatime = false;
            opened = tree::can_be_read(fs, &file.path, false);
        }
        match opened {
            Ok(()) => found.push(file),
            Err(errno) => left_out.add(&file.path, &errno.to_string()),
        }
    }
    (found, left_out)
}

/// Files that can be overwritten without changing more than their content: holes would be filled, and another name of
/// the same file may lie outside the tree.
fn overwritable(hot: &[Found]) -> (Vec<Found>, Skipped) {
    let mut left_out = Skipped::default();
    let mut writable = Vec::new();
    for file in hot {
        // Small files may lie in the inode (no blocks) or in a compressed extent.
        let has_holes = file.stat.allocated_bytes < file.stat.size_bytes && file.stat.size_bytes > 4096;
        if file.stat.nlink > 1 {
            left_out.add(&file.path, "has several names");
        } else if has_holes {
            left_out.add(&file.path, "has holes or is compressed");
        } else {
            writable.push(file.clone());
        }
    }
    (writable, left_out)
}
