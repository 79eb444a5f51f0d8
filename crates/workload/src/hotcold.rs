//! The workload of the cleaning study (Rosenblum and Ousterhout, *The Design and Implementation of a Log-Structured
//! File System*, TOCS 10(1), 1992, section 3.4): files of 4 KiB are written over, whole, again and again, at a given
//! disk utilisation. **Uniform**: every file is as likely as any other. **Hot and cold**: a tenth of the files gets
//! nine tenths of the writes.
//!
//! Bytes of new data a second in steady state, with the `syncfs` that ends the measured writes; what cleaning costs is
//! for the file system to say. Where a utilisation is asked for, files are made until the file system is that full;
//! else a fixed number of files is made.
//!
//! The paper's figures are of a simulator that knows segments and files only. Here the files are real ones: each write
//! is an open, a write and a close, and inodes and directories take space too.

use crate::WorkloadError;
use crate::benchmark::{Benchmark, Prepared};
use crate::cleanup::{remove_tree, top};
use crate::driver::{Driver, poll};
use crate::phase::Phase;
use crate::point::Point;
use crate::random::Random;
use crate::repeat::Repeat;
use crate::sample::Sample;
use crate::space;
use crate::steady::Steady;
use crate::target_result::Round;
use posix::FileSystem;
use rand_core::Rng;
use serde::{Deserialize, Serialize};
use stats::random::{below, unit};
use std::path::PathBuf;
use units::show;

/// Files that a run makes at most.
const FILES_MAX: u64 = 16 << 20;
/// Files made between two looks at the free space.
const BATCH: u64 = 250;

/// Which files are written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Skew {
    /// Every file is as likely as any other.
    Uniform,
    /// This share of the files (`hot_files`, 0 to 1) gets that share of the writes (`hot_writes`).
    HotCold {
        /// 0.1 in the paper.
        hot_files: f64,
        /// 0.9 in the paper.
        hot_writes: f64,
    },
}

impl Skew {
    /// The paper's: a tenth of the files gets nine tenths of the writes.
    pub const PAPER: Skew = Skew::HotCold { hot_files: 0.1, hot_writes: 0.9 };

    fn label(self) -> String {
        match self {
            Skew::Uniform => "uniform".into(),
            Skew::HotCold { hot_files, hot_writes } => {
                let percent = |share: f64| (share * 1e6).round() / 1e4;
                format!("hot and cold {}/{}", percent(hot_files), percent(hot_writes))
            }
        }
    }

    /// The file that is written next, of so many.
    pub fn pick(self, files: u64, random: &mut impl Rng) -> u64 {
        match self {
            Skew::Uniform => below(random, files),
            Skew::HotCold { hot_files, hot_writes } => {
                let hot = ((files as f64 * hot_files).round() as u64).clamp(1, files);
                if unit(random) < hot_writes || hot == files {
                    below(random, hot)
                } else {
                    hot + below(random, files - hot)
                }
            }
        }
    }
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Which files are written, a point of the result each.
    pub skews: Vec<Skew>,
    /// Shares of the file system (0 to 1) that are to be in use, a point of the result each; empty: as it is with
    /// `files`.
    pub utilisations: Vec<f64>,
    /// How many files, where no utilisation says so.
    pub files: u64,
    /// How large each is: 4 KiB in the paper.
    pub file_bytes: u64,
    /// Files in a directory, at most. The paper's simulator has no directories.
    pub files_per_directory: u32,
    /// How much of the space that is free at the start has to be written over before the state may be called steady: 1
    /// lets a log-structured file system come round once, so that its cleaner works.
    pub turnover: f64,
    /// Writes in a window of the warm-up.
    pub window: u64,
    /// Windows after which the warm-up is given up; what is measured then is said not to be steady.
    pub windows_max: u32,
    /// Writes measured.
    pub writes: u64,
    /// How often; its seed also picks the files.
    pub repeat: Repeat,
}

impl Default for Options {
    /// Both skews of the paper on 5,000 files, steady as soon as the rate is.
    fn default() -> Options {
        Options {
            skews: vec![Skew::Uniform, Skew::PAPER],
            utilisations: Vec::new(),
            files: 5000,
            file_bytes: 4 << 10,
            files_per_directory: 100,
            turnover: 0.0,
            window: 1000,
            windows_max: 400,
            writes: 20_000,
            repeat: Repeat::default(),
        }
    }
}

impl Options {
    /// A tenth of files and writes, once.
    pub fn quick() -> Options {
        Options { files: 500, window: 200, writes: 2000, windows_max: 50, repeat: Repeat::once(), ..Options::default() }
    }
}

impl Benchmark for Options {
    fn name(&self) -> &'static str {
        "hotcold"
    }

    fn repeat(&self) -> &Repeat {
        &self.repeat
    }

    /// Space that it takes at least, in whole blocks of 4 KiB with half a kilobyte of metadata a file.
    fn need_bytes(&self) -> u64 {
        let files = if self.utilisations.is_empty() { self.files } else { 0 };
        files.saturating_mul(self.file_bytes.next_multiple_of(4096).saturating_add(512))
    }

    /// Files and directories that are there at the same time, at least.
    fn need_inodes(&self) -> u64 {
        let files = if self.utilisations.is_empty() { self.files } else { 0 };
        files + files.div_ceil(u64::from(self.files_per_directory.max(1))) + 1
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let wrong = |what: String| Err(WorkloadError::Options(what));
        space::check_shares(&self.utilisations)?;
        if self.skews.is_empty() || self.files == 0 || self.files > FILES_MAX || self.file_bytes == 0 {
            return wrong(format!("at least one skew, a file (at most {FILES_MAX}) and a byte in it are needed"));
        }
        if self.files_per_directory == 0 || self.window == 0 || self.windows_max == 0 || self.writes == 0 {
            return wrong(
                "files in a directory, windows, and writes in a window and to measure, are at least 1".into(),
            );
        }
        let inside = |share: f64| share > 0.0 && share < 1.0;
        let odd = |skew: &Skew| match *skew {
            Skew::Uniform => false,
            Skew::HotCold { hot_files, hot_writes } => !(inside(hot_files) && inside(hot_writes)),
        };
        if self.skews.iter().any(odd) {
            return wrong("shares of hot files and of writes to them lie between 0 and 100 %".into());
        }
        if !(self.turnover >= 0.0 && self.turnover.is_finite()) {
            return wrong("the share of the free space to write over is 0 or more".into());
        }
        Ok(())
    }

    fn prepare(&self, _: &mut dyn FileSystem) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Hotcold::new(self)?))
    }

    fn what(&self) -> String {
        format!(
            "Files of {} are written over whole, one at a time and at random; {} writes are measured in steady state. \
             Rates are of new data, with the syncfs at the end.",
            show::bytes(self.file_bytes as f64),
            show::count(self.writes)
        )
    }
}

/// The files on one file system, step by step: for who wants to look at the file system between them. They must be
/// [ended](Files::end), or they stay.
#[derive(Debug)]
pub struct Files {
    options: Options,
    skew: Skew,
    top: PathBuf,
    files: u64,
    random: Random,
    written: u64,
    free_bytes: u64,
    utilisation: f64,
}

/// How the warm-up ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// Writes it took.
    pub writes: u64,
    /// Whether the state is steady.
    pub steady: bool,
}

impl Files {
    /// Makes the files (until a utilisation is reached, where one is given), and drops the caches. `tag` names the
    /// directory.
    ///
    /// # Errors
    /// A call failed; nothing is left of them then.
    pub fn begin(
        fs: &mut dyn FileSystem,
        options: &Options,
        skew: Skew,
        utilisation: Option<f64>,
        tag: &str,
    ) -> Result<Files, WorkloadError> {
        Files::make(&mut Driver::new(fs), options, skew, utilisation, tag)
    }

    /// How many files there are.
    pub fn count(&self) -> u64 {
        self.files
    }

    /// Writes until the state is steady, or the windows are used up.
    ///
    /// # Errors
    /// A call failed.
    pub fn warm_up(&mut self, fs: &mut dyn FileSystem) -> Result<WarmUp, WorkloadError> {
        self.settle(&mut Driver::new(fs))
    }

    /// Makes and measures the writes.
    ///
    /// # Errors
    /// A call failed.
    pub fn measure(&mut self, fs: &mut dyn FileSystem) -> Result<Round, WorkloadError> {
        Ok(Round::new(0, &self.timed(&mut Driver::new(fs))?))
    }

    /// Removes the files.
    ///
    /// # Errors
    /// The first failure.
    pub fn end(self, fs: &mut dyn FileSystem) -> Result<(), WorkloadError> {
        remove_tree(&mut Driver::new(fs), &self.top)
    }

    fn make(
        driver: &mut Driver<'_>,
        options: &Options,
        skew: Skew,
        utilisation: Option<f64>,
        tag: &str,
    ) -> Result<Files, WorkloadError> {
        options.check()?;
        let mut files = Files {
            options: options.clone(),
            skew,
            top: top("hotcold", tag),
            files: 0,
            random: Random::new(options.repeat.seed, "hotcold"),
            written: 0,
            free_bytes: 0,
            utilisation: 0.0,
        };
        driver.mkdir(&files.top)?;
        match files.set_up(driver, utilisation) {
            Ok(()) => Ok(files),
            Err(error) => {
                let error = space::beside_share(driver, &files.top, utilisation, error);
                let _ = remove_tree(driver, &files.top);
                Err(error)
            }
        }
    }

    fn set_up(&mut self, driver: &mut Driver<'_>, utilisation: Option<f64>) -> Result<(), WorkloadError> {
        match utilisation {
            None => self.add(driver, self.options.files)?,
            Some(share) => self.fill(driver, share)?,
        }
        let usage = space::usage(driver)?;
        (self.free_bytes, self.utilisation) = (usage.free_bytes, space::share(&usage));
        driver.begin_cold()
    }

    /// Makes files until so much of the file system is in use: most at once, by what the first have taken, then batch
    /// by batch.
    fn fill(&mut self, driver: &mut Driver<'_>, share: f64) -> Result<(), WorkloadError> {
        let empty = space::usage(driver)?;
        let wanted_bytes = (empty.total_bytes as f64 * share) as u64;
        let used = |free_bytes: u64| empty.total_bytes.saturating_sub(free_bytes);
        if used(empty.free_bytes) >= wanted_bytes {
            let now = space::share(&empty) * 100.0;
            let problem = format!("the file system is {now:.1} % full already; {:.1} % are asked for", share * 100.0);
            return Err(WorkloadError::Options(problem));
        }
        loop {
            let now = space::usage(driver)?;
            let missing = wanted_bytes.saturating_sub(used(now.free_bytes));
            if missing == 0 || self.files >= FILES_MAX {
                return Ok(());
            }
            let taken = empty.free_bytes.saturating_sub(now.free_bytes);
            let each = taken.checked_div(self.files).unwrap_or(0).max(self.options.file_bytes);
            let most = if self.files == 0 { BATCH } else { FILES_MAX };
            self.add(driver, (missing / each).clamp(1, most))?;
        }
    }

    fn add(&mut self, driver: &mut Driver<'_>, count: u64) -> Result<(), WorkloadError> {
        let per_directory = u64::from(self.options.files_per_directory);
        for _ in 0..count {
            if self.files.is_multiple_of(per_directory) {
                driver.mkdir(&self.directory(self.files))?;
            }
            driver.create(&self.path(self.files), self.options.file_bytes, self.options.file_bytes)?;
            self.files += 1;
        }
        Ok(())
    }

    fn directory(&self, file: u64) -> PathBuf {
        self.top.join(format!("d{:06}", file / u64::from(self.options.files_per_directory)))
    }

    fn path(&self, file: u64) -> PathBuf {
        self.directory(file).join(format!("f{file:08}"))
    }

    fn write(&mut self, driver: &mut Driver<'_>) -> Result<(), WorkloadError> {
        let file = self.skew.pick(self.files, self.random.generator());
        driver.overwrite(&self.path(file), self.options.file_bytes, self.options.file_bytes)?;
        self.written += 1;
        Ok(())
    }

    fn settle(&mut self, driver: &mut Driver<'_>) -> Result<WarmUp, WorkloadError> {
        let mut steady = Steady::default();
        let wanted_bytes = self.options.turnover * self.free_bytes as f64;
        let before = self.written;
        loop {
            let start_ns = driver.spent_ns();
            for _ in 0..self.options.window {
                self.write(driver)?;
            }
            steady.push(self.options.window as f64 * 1e9 / (driver.spent_ns() - start_ns).max(1) as f64);
            let turned_over = (self.written * self.options.file_bytes) as f64 >= wanted_bytes;
            let settled = turned_over && steady.is_steady();
            if settled || steady.windows() >= self.options.windows_max as usize {
                return Ok(WarmUp { writes: self.written - before, steady: settled });
            }
            poll()?;
        }
    }

    fn timed(&mut self, driver: &mut Driver<'_>) -> Result<Sample, WorkloadError> {
        let synced = driver.fs.call(&posix::Call::SyncFs).result;
        synced.map_err(|errno| WorkloadError::call("writing back (syncfs)", &self.top, errno))?;
        driver.begin_warm()?;
        let before = self.written;
        for _ in 0..self.options.writes {
            self.write(driver)?;
        }
        Ok(driver.end_synced(Phase::Overwrite)?.with_counts(&[
            ("files there", self.files),
            ("writes before measuring", before),
            ("file system in use at the start, permille", (self.utilisation * 1000.0).round() as u64),
        ]))
    }
}

/// The benchmark on one target.
pub(crate) struct Hotcold {
    options: Options,
    notes: Vec<String>,
}

impl Hotcold {
    pub(crate) fn new(options: &Options) -> Result<Hotcold, WorkloadError> {
        options.check()?;
        Ok(Hotcold { options: options.clone(), notes: Vec::new() })
    }

    fn steps(&mut self, driver: &mut Driver<'_>, files: &mut Files, label: &str) -> Result<Sample, WorkloadError> {
        let warm_up = files.settle(driver)?;
        if !warm_up.steady {
            let writes = warm_up.writes;
            let note = format!("{label}: not steady after {writes} writes; what follows was measured all the same");
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        files.timed(driver)
    }
}

impl Prepared for Hotcold {
    fn points(&self) -> Vec<Point> {
        let of = |skew: &Skew| space::points(&skew.label(), &self.options.utilisations);
        self.options.skews.iter().flat_map(of).collect()
    }

    fn once(&mut self, driver: &mut Driver<'_>, point: &Point, tag: &str) -> Result<Vec<Sample>, WorkloadError> {
        let at = self.points().iter().position(|other| other == point).unwrap_or(0);
        let shares = &self.options.utilisations;
        let skew = self.options.skews.get(at / shares.len().max(1)).copied().unwrap_or(Skew::Uniform);
        let share = at.checked_rem(shares.len()).and_then(|at| shares.get(at)).copied();
        let mut files = Files::make(driver, &self.options, skew, share, tag)?;
        let sample = self.steps(driver, &mut files, &point.label);
        let sample = sample.map_err(|error| space::beside_share(driver, &files.top, share, error));
        let removed = remove_tree(driver, &files.top);
        let sample = sample?;
        removed?;
        Ok(vec![sample])
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_files_gets_nine_tenths_of_the_writes() {
        let mut random = Random::new(3, "test");
        let hot = |skew: Skew, random: &mut Random| {
            (0..100_000).filter(|_| skew.pick(1000, random.generator()) < 100).count()
        };
        let share = hot(Skew::PAPER, &mut random);
        assert!((89_000..91_000).contains(&share), "{share}");
        let share = hot(Skew::Uniform, &mut random);
        assert!((9_000..11_000).contains(&share), "{share}");
        let mut seen = [false; 10];
        (0..1000).for_each(|_| seen[usize::try_from(Skew::PAPER.pick(10, random.generator())).unwrap()] = true);
        assert_eq!(seen, [true; 10], "cold files are written too");
        assert_eq!(Skew::PAPER.pick(1, random.generator()), 0);
    }
}
