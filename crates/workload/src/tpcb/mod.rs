//! Transaction processing against disk utilisation (Seltzer et al., *File System Logging Versus Clustering*, USENIX
//! 1995, section 4: a modified TPC-B).
//!
//! A bank's **account file** of about 237 MB (here MiB: scaled for 15 transactions a second) is a B-tree of 4 KiB
//! pages. Its inner pages, and the branch and teller records, stay in the database's own cache of 8 MB in user space;
//! what is left of the cache holds leaf pages, least recently used first to go. A **transaction** updates one account
//! at random: its leaf page is read, unless it is in the cache, and takes the place of another, which has been updated
//! too and is written (4 KiB at a random place); 50 bytes are appended to the **history file**. One process, which does
//! nothing else. The file system is filled to a wanted utilisation by one large file beside.
//!
//! The **database log** lies on a second disk, and is left out of the result in the paper. Given a second file system
//! ([`run_with_logs`](crate::run_with_logs)), a log record is appended and forced there for each transaction, and its
//! time is in the result; without one there is no log.
//!
//! Transactions a second in **steady state**: windows of transactions are run until the cache is full, the wanted share
//! of the free space has been written over, and eight windows in a row are alike; then the measured transactions
//! follow.
//!
//! Simplified: inner pages are counted, not searched (what the database computes is a time given in the options, none
//! by default); accounts are spread evenly over leaf pages; there is no checkpoint.

mod pool;

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
use pool::{Found, Pool};
use posix::{Call, Fd, FileSystem, OpenFlags, Reply};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use units::show;

/// A page of the database.
const PAGE_BYTES: u64 = 4096;
/// Leaf pages below an inner page: entries of 20 bytes, as 4.4BSD's B-tree has them, fill a page.
const FANOUT: u64 = PAGE_BYTES / 20;
/// Pages of branch and teller records: 15 branches and 150 tellers of 100 bytes.
const BRANCH_AND_TELLER_PAGES: u64 = 5;
/// What a transaction appends to the history file.
const HISTORY_BYTES: u64 = 50;
/// What a transaction appends to the log: images of three records before and after, and the history's.
const LOG_BYTES: u64 = 1024;
/// The [count](crate::Count) of what one of them took at most, microseconds.
pub const LONGEST: &str = "longest transaction, microseconds";
/// How often the account file is filled from start to end, in pieces.
const SIGNAL_EVERY: u64 = 64;

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Size of the account file.
    pub account_bytes: u64,
    /// Size of the database's cache.
    pub pool_bytes: u64,
    /// Processor time of the database for each transaction: looking up, locking, its log; nanoseconds.
    pub compute_ns: u64,
    /// Shares of the file system (0 to 1) that are to be in use, a point of the result each; empty: as it is.
    pub utilisations: Vec<f64>,
    /// How much of the space that is free at the start has to be written over before the state may be called steady: 1
    /// lets a log-structured file system come round once, so that its cleaner works.
    pub turnover: f64,
    /// Transactions in a window of the warm-up.
    pub window: u64,
    /// Windows after which the warm-up is given up; what is measured then is said not to be steady.
    pub windows_max: u32,
    /// Transactions measured.
    pub transactions: u64,
    /// How often; its seed also picks the accounts.
    pub repeat: Repeat,
}

impl Default for Options {
    /// As in the paper, at the utilisation the target has, steady as soon as the rate is.
    fn default() -> Options {
        Options {
            account_bytes: 237 << 20,
            pool_bytes: 8 << 20,
            compute_ns: 0,
            utilisations: Vec::new(),
            turnover: 0.0,
            window: 500,
            windows_max: 400,
            transactions: 5000,
            repeat: Repeat::default(),
        }
    }
}

impl Options {
    /// A twentieth of account file, cache and transactions, once.
    pub fn quick() -> Options {
        Options {
            account_bytes: 12 << 20,
            pool_bytes: 512 << 10,
            window: 50,
            transactions: 250,
            repeat: Repeat::once(),
            ..Options::default()
        }
    }

    /// Leaf pages of the account file.
    pub fn leaf_pages(&self) -> u64 {
        self.account_bytes / PAGE_BYTES
    }

    /// Leaf pages that the cache has room for, beside inner pages and the branch and teller records.
    pub fn frames(&self) -> u64 {
        let mut inner = 0;
        let mut level = self.leaf_pages();
        while level > 1 {
            level = level.div_ceil(FANOUT);
            inner += level;
        }
        (self.pool_bytes / PAGE_BYTES).saturating_sub(inner + BRANCH_AND_TELLER_PAGES)
    }
}

impl Benchmark for Options {
    fn name(&self) -> &'static str {
        "tpcb"
    }

    fn repeat(&self) -> &Repeat {
        &self.repeat
    }

    /// Space that it takes at least; with the history of a long warm-up.
    fn need_bytes(&self) -> u64 {
        let transactions = self.transactions + self.window * u64::from(self.windows_max);
        self.account_bytes + self.account_bytes / 512 + transactions * HISTORY_BYTES
    }

    /// Files and directories that are there at the same time.
    fn need_inodes(&self) -> u64 {
        4
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let wrong = |what: &str| Err(WorkloadError::Options(what.into()));
        space::check_shares(&self.utilisations)?;
        if self.window == 0 || self.transactions == 0 || self.windows_max == 0 {
            return wrong("windows, and transactions in a window and to measure, are at least 1");
        }
        if !(self.turnover >= 0.0 && self.turnover.is_finite()) {
            return wrong("the share of the free space to write over is 0 or more");
        }
        if self.frames() == 0 || self.frames() >= self.leaf_pages() {
            return wrong("the database's cache holds more than its inner pages, and less than the whole account file");
        }
        Ok(())
    }

    fn prepare(&self, _: &mut dyn FileSystem) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Tpcb::new(self)?))
    }

    fn what(&self) -> String {
        format!(
            "Transactions update accounts at random in a file of {}, through a cache of the database's own of {}; {} \
             of them are measured in steady state. Time is that of the calls.",
            show::bytes(self.account_bytes as f64),
            show::bytes(self.pool_bytes as f64),
            show::count(self.transactions)
        )
    }
}

/// The database on one file system, step by step: for who wants to look at the file system between them. It must be
/// [ended](Database::end), or its files stay.
#[derive(Debug)]
pub struct Database {
    options: Options,
    top: PathBuf,
    log_file: PathBuf,
    account: Option<Fd>,
    history: Option<Fd>,
    log: Option<Fd>,
    pool: Pool,
    random: Random,
    tally: Tally,
    free_bytes: u64,
    utilisation: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    transactions: u64,
    pages_read: u64,
    pages_written: u64,
}

/// How the warm-up ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// Transactions it took.
    pub transactions: u64,
    /// Whether the state is steady.
    pub steady: bool,
}

impl Database {
    /// Makes the account file, fills the file system to a utilisation (`None`: leaves it), and drops the caches. `tag`
    /// names the directory.
    ///
    /// # Errors
    /// A call failed; nothing is left of it then.
    pub fn begin(
        fs: &mut dyn FileSystem,
        log: Option<&mut dyn FileSystem>,
        options: &Options,
        utilisation: Option<f64>,
        tag: &str,
    ) -> Result<Database, WorkloadError> {
        Database::open(&mut with_log(fs, log), options, utilisation, tag)
    }

    /// Runs transactions until the state is steady, or the windows are used up.
    ///
    /// # Errors
    /// A call failed.
    pub fn warm_up(
        &mut self,
        fs: &mut dyn FileSystem,
        log: Option<&mut dyn FileSystem>,
    ) -> Result<WarmUp, WorkloadError> {
        self.settle(&mut with_log(fs, log))
    }

    /// Runs and measures the transactions.
    ///
    /// # Errors
    /// A call failed.
    pub fn measure(
        &mut self,
        fs: &mut dyn FileSystem,
        log: Option<&mut dyn FileSystem>,
    ) -> Result<Round, WorkloadError> {
        Ok(Round::new(0, &self.timed(&mut with_log(fs, log))?))
    }

    /// Closes and removes everything.
    ///
    /// # Errors
    /// The first failure.
    pub fn end(self, fs: &mut dyn FileSystem, log: Option<&mut dyn FileSystem>) -> Result<(), WorkloadError> {
        self.close(&mut with_log(fs, log))
    }

    fn open(
        driver: &mut Driver<'_>,
        options: &Options,
        utilisation: Option<f64>,
        tag: &str,
    ) -> Result<Database, WorkloadError> {
        options.check()?;
        let mut database = Database {
            options: options.clone(),
            top: top("tpcb", tag),
            log_file: top("tpcb-log", tag),
            account: None,
            history: None,
            log: None,
            pool: Pool::new(usize::try_from(options.frames()).unwrap_or(usize::MAX)),
            random: Random::new(options.repeat.seed, "tpcb"),
            tally: Tally::default(),
            free_bytes: 0,
            utilisation: 0.0,
        };
        driver.mkdir(&database.top)?;
        match database.set_up(driver, utilisation) {
            Ok(()) => Ok(database),
            Err(error) => {
                let error = space::beside_share(driver, &database.top, utilisation, error);
                let _ = database.close(driver);
                Err(error)
            }
        }
    }

    fn set_up(&mut self, driver: &mut Driver<'_>, utilisation: Option<f64>) -> Result<(), WorkloadError> {
        let account = self.top.join("account");
        space::write_whole(driver, &account, self.options.leaf_pages() * PAGE_BYTES)?;
        if let Some(share) = utilisation {
            space::fill(driver, &self.top.join("filler"), share)?;
        }
        let usage = space::usage(driver)?;
        (self.free_bytes, self.utilisation) = (usage.free_bytes, space::share(&usage));
        driver.begin_cold()?;
        self.account = Some(driver.open("opening the account file", &account, OpenFlags::READ_WRITE)?);
        let flags = OpenFlags { append: true, ..OpenFlags::CREATE_NEW };
        self.history = Some(driver.open("making the history file", &self.top.join("history"), flags)?);
        if driver.log.is_some() {
            let opened =
                driver.on_log(&Call::Open { at: self.log_file.as_path().into(), flags, mode: posix::Mode(0o644) });
            match opened {
                Ok(Reply::Fd(fd)) => self.log = Some(fd),
                Ok(_) => return Err(WorkloadError::call("making the log", &self.log_file, posix::Errno::EINVAL)),
                Err(errno) => return Err(WorkloadError::call("making the log", &self.log_file, errno)),
            }
        }
        Ok(())
    }

    fn transaction(&mut self, driver: &mut Driver<'_>) -> Result<(), WorkloadError> {
        const ACCOUNT: &str = "reading or writing an account page";
        let (Some(account), Some(history)) = (self.account, self.history) else { return Ok(()) };
        if self.tally.transactions.is_multiple_of(SIGNAL_EVERY) {
            poll()?;
        }
        let page = self.random.below(self.options.leaf_pages());
        let found = self.pool.touch(page);
        if let Found::Replaced(victim) = found {
            driver.transfer_at(ACCOUNT, &self.top, account, victim * PAGE_BYTES, PAGE_BYTES, true)?;
            self.tally.pages_written += 1;
        }
        if found != Found::Resident {
            driver.transfer_at(ACCOUNT, &self.top, account, page * PAGE_BYTES, PAGE_BYTES, false)?;
            self.tally.pages_read += 1;
        }
        let append = Call::Write { fd: history, offset: None, len_bytes: HISTORY_BYTES, data: None };
        let appended = driver.timed(&append);
        appended.map_err(|errno| WorkloadError::call("appending to the history file", &self.top, errno))?;
        if let Some(fd) = self.log {
            let failed = |errno| WorkloadError::call("writing the log", &self.log_file, errno);
            driver.on_log(&Call::Write { fd, offset: None, len_bytes: LOG_BYTES, data: None }).map_err(failed)?;
            driver.on_log(&Call::Fdatasync { fd }).map_err(failed)?;
        }
        driver.compute(self.options.compute_ns);
        self.tally.transactions += 1;
        driver.complete(1);
        Ok(())
    }

    fn settle(&mut self, driver: &mut Driver<'_>) -> Result<WarmUp, WorkloadError> {
        let mut steady = Steady::default();
        let wanted_bytes = self.options.turnover * self.free_bytes as f64;
        let before = self.tally.transactions;
        loop {
            let start_ns = driver.spent_ns();
            for _ in 0..self.options.window {
                self.transaction(driver)?;
            }
            steady.push(self.options.window as f64 * 1e9 / (driver.spent_ns() - start_ns).max(1) as f64);
            let written = (self.tally.pages_written * PAGE_BYTES) as f64 >= wanted_bytes;
            let settled = self.pool.is_full() && written && steady.is_steady();
            if settled || steady.windows() >= self.options.windows_max as usize {
                return Ok(WarmUp { transactions: self.tally.transactions - before, steady: settled });
            }
        }
    }

    fn timed(&mut self, driver: &mut Driver<'_>) -> Result<Sample, WorkloadError> {
        driver.begin_warm()?;
        let before = self.tally;
        let mut longest_ns = 0;
        for _ in 0..self.options.transactions {
            let start_ns = driver.spent_ns();
            self.transaction(driver)?;
            longest_ns = longest_ns.max(driver.spent_ns() - start_ns);
        }
        let read = self.tally.pages_read - before.pages_read;
        let written = self.tally.pages_written - before.pages_written;
        driver.count(0, (read + written) * PAGE_BYTES + self.options.transactions * HISTORY_BYTES);
        let permille = (self.utilisation * 1000.0).round() as u64;
        Ok(driver.end(Phase::Transactions).with_counts(&[
            ("account pages read", read),
            ("account pages written", written),
            ("transactions before measuring", before.transactions),
            (LONGEST, longest_ns / 1000),
            ("file system in use at the start, permille", permille),
        ]))
    }

    fn close(self, driver: &mut Driver<'_>) -> Result<(), WorkloadError> {
        for fd in [self.account, self.history].into_iter().flatten() {
            let _ = driver.fs.call(&Call::Close { fd });
        }
        let logged = match (&mut driver.log, self.log) {
            (Some(log), Some(fd)) => {
                let _ = log.call(&Call::Close { fd });
                let removed = log.call(&Call::Unlink { at: self.log_file.as_path().into() }).result;
                removed.map_err(|errno| WorkloadError::call("removing the log", &self.log_file, errno)).map(|_| ())
            }
            _ => Ok(()),
        };
        remove_tree(driver, &self.top).and(logged)
    }
}

fn with_log<'a, 'l: 'a>(fs: &'a mut dyn FileSystem, log: Option<&'a mut (dyn FileSystem + 'l)>) -> Driver<'a> {
    let mut driver = Driver::new(fs);
    driver.log = log.map(|log| log as &mut dyn FileSystem);
    driver
}

/// The benchmark on one target.
pub(crate) struct Tpcb {
    options: Options,
    notes: Vec<String>,
}

impl Tpcb {
    pub(crate) fn new(options: &Options) -> Result<Tpcb, WorkloadError> {
        options.check()?;
        Ok(Tpcb { options: options.clone(), notes: Vec::new() })
    }

    fn steps(
        &mut self,
        driver: &mut Driver<'_>,
        database: &mut Database,
        label: &str,
    ) -> Result<Sample, WorkloadError> {
        let warm_up = database.settle(driver)?;
        if !warm_up.steady {
            let note = format!(
                "{label}: not steady after {} transactions; what follows was measured all the same",
                warm_up.transactions
            );
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        database.timed(driver)
    }
}

impl Prepared for Tpcb {
    fn points(&self) -> Vec<Point> {
        crate::space::points("TPC-B", &self.options.utilisations)
    }

    fn once(&mut self, driver: &mut Driver<'_>, point: &Point, tag: &str) -> Result<Vec<Sample>, WorkloadError> {
        let utilisation = crate::space::of_point(point, "TPC-B", &self.options.utilisations);
        let mut database = Database::open(driver, &self.options, utilisation, tag)?;
        let sample = self.steps(driver, &mut database, &point.label);
        let sample = sample.map_err(|error| space::beside_share(driver, &database.top, utilisation, error));
        let closed = database.close(driver);
        let sample = sample?;
        closed?;
        Ok(vec![sample])
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        let (pages, frames) = (self.options.leaf_pages(), self.options.frames());
        notes.push(format!("{pages} leaf pages, of which the database's cache holds {frames}"));
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_database_and_its_cache() {
        let options = Options::default();
        assert_eq!(options.leaf_pages(), 60_672);
        // 2048 pages, less 298 + 2 + 1 inner ones and 5 of branches and tellers.
        assert_eq!(options.frames(), 2048 - 301 - 5);
        options.check().unwrap();
        Options::quick().check().unwrap();
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |options: Options| assert!(matches!(options.check(), Err(WorkloadError::Options(_))));
        refused(Options { pool_bytes: 1 << 20, ..Options::default() });
        refused(Options { pool_bytes: 1 << 30, ..Options::default() });
        refused(Options { utilisations: vec![1.5], ..Options::default() });
        refused(Options { turnover: f64::NAN, ..Options::default() });
        refused(Options { window: 0, ..Options::default() });
    }

    #[test]
    fn paths_of_the_log_and_of_the_database_differ() {
        assert_ne!(top("tpcb", "0-0"), top("tpcb-log", "0-0"));
        assert_eq!(std::path::Path::new("fsage-bench-tpcb.0-0"), top("tpcb", "0-0"));
    }
}
