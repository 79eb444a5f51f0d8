//! PostMark (Katcher, *PostMark: A New File System Benchmark*, Network Appliance TR3022, 1997): small files as a mail
//! or news server handles them.
//!
//! A pool of files of random size is **created**; **transactions** follow, each of which reads a file or appends to
//! one, and creates a file or deletes one; what is left is **deleted**. Parameters, defaults, the random numbers and
//! the order in which they are drawn are those of the program (1.53, as Debian ships it): the same settings give the
//! same files, the same calls in the same order and the same counts, which a test compares. Times are the clock's, as
//! the program's are, and nothing is synced or dropped between the phases; caches are dropped before the first.
//!
//! Not here: several locations with weights (targets are run side by side instead), and the text that fills the files.

mod report;
mod stdio;
mod twister;

pub use report::text;

use crate::WorkloadError;
use crate::benchmark::{Benchmark, Prepared};
use crate::cleanup::{in_own_directory, top};
use crate::driver::{Driver, poll};
use crate::phase::{Phase, Unit};
use crate::point::Point;
use crate::repeat::Repeat;
use crate::sample::Sample;
use crate::target_result::TargetResult;
use posix::{Call, Errno, Fd, FileSystem, OpenFlags, Whence};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use twister::Twister;
use units::show;

/// Files at the same time that a run may be asked for: their names and sizes are kept in memory.
const FILES_MAX: u32 = 8 << 20;

/// What to run; the names are those of the program's `set` commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// `set number`: files in the pool.
    pub number: u32,
    /// `set transactions`.
    pub transactions: u32,
    /// `set size`: lower bound of a new file's size, bytes.
    pub size_low: u32,
    /// Upper bound of a file's size, bytes.
    pub size_high: u32,
    /// `set subdirectories`: files are spread over so many; below two, there are none.
    pub subdirectories: u32,
    /// `set read`: block size of reads, bytes.
    pub read_block: u32,
    /// `set write`: block size of writes, bytes.
    pub write_block: u32,
    /// `set buffering`: whether blocks go through the C library's buffer.
    pub buffering: bool,
    /// `set bias read`: in how many of ten transactions a file is read rather than appended to; none: neither.
    pub bias_read: Option<u8>,
    /// `set bias create`: in how many of ten transactions a file is created rather than deleted; none: neither.
    pub bias_create: Option<u8>,
    /// `set seed`.
    pub seed: u32,
    /// How often.
    pub repeat: Repeat,
}

impl Default for Options {
    /// The program's.
    fn default() -> Options {
        Options {
            number: 500,
            transactions: 500,
            size_low: 500,
            size_high: 10_000,
            subdirectories: 0,
            read_block: 512,
            write_block: 512,
            buffering: true,
            bias_read: Some(5),
            bias_create: Some(5),
            seed: 42,
            repeat: Repeat::default(),
        }
    }
}

impl Options {
    /// The program's, once: they are small already.
    pub fn quick() -> Options {
        Options { repeat: Repeat::once(), ..Options::default() }
    }
}

impl Benchmark for Options {
    fn name(&self) -> &'static str {
        "postmark"
    }

    fn repeat(&self) -> &Repeat {
        &self.repeat
    }

    /// Space that it takes at most, in whole blocks of 4 KiB with half a kilobyte of metadata a file: the pool can
    /// double.
    fn need_bytes(&self) -> u64 {
        u64::from(self.number) * 2 * (u64::from(self.size_high).next_multiple_of(4096) + 512)
    }

    fn need_inodes(&self) -> u64 {
        u64::from(self.number) * 2 + u64::from(self.subdirectories) + 1
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let wrong = |what: String| Err(WorkloadError::Options(what));
        if self.number == 0 || self.number > FILES_MAX || self.transactions == 0 {
            return wrong(format!("files (at most {FILES_MAX}) and transactions are at least 1"));
        }
        if self.size_low == 0 || self.size_high < self.size_low || self.size_high > 1 << 30 {
            return wrong(
                "file sizes are at least 1, at most 1 GiB, and the lower bound is not above the upper".into(),
            );
        }
        if self.read_block == 0 || self.write_block == 0 {
            return wrong("block sizes are at least 1".into());
        }
        if [self.bias_read, self.bias_create].into_iter().flatten().any(|bias| bias > 10) {
            return wrong("a bias lies between 0 and 10".into());
        }
        if i32::try_from(self.seed).is_err() || self.seed == 0 {
            return wrong("PostMark's seed lies between 1 and 2147483647".into());
        }
        Ok(())
    }

    fn prepare(&self, _: &mut dyn FileSystem) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Postmark::new(self)?))
    }

    fn what(&self) -> String {
        format!(
            "PostMark: {} files of {} to {} bytes, {} transactions in blocks of {} and {} bytes (read and write), {}; \
             its seed is {}. Nothing is synced.",
            show::count(self.number.into()),
            show::count(self.size_low.into()),
            show::count(self.size_high.into()),
            show::count(self.transactions.into()),
            self.read_block,
            self.write_block,
            if self.buffering { "through the C library's buffer" } else { "unbuffered" },
            self.seed
        )
    }

    fn own_report(&self, target: &TargetResult) -> Option<(&'static str, String)> {
        Some(("As PostMark reports it", text(target)?))
    }
}

/// A place in the program's table of files; of size 0 where there is none.
#[derive(Clone, Debug, Default)]
struct Slot {
    name: PathBuf,
    size: u64,
}

/// What the program counts.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    created: u64,
    deleted: u64,
    read: u64,
    appended: u64,
    bytes_read: u64,
    bytes_written: u64,
}

/// One run of the program.
struct Run<'o> {
    options: &'o Options,
    top: PathBuf,
    random: Twister,
    table: Vec<Slot>,
    /// The slot after the one taken last.
    next: usize,
    /// The C library's buffer: the file system's block, as `st_blksize` says.
    buffer_bytes: u64,
    tally: Tally,
}

impl<'o> Run<'o> {
    fn new(options: &'o Options, top: &Path, buffer_bytes: u64) -> Run<'o> {
        let mut random = Twister::new(options.seed);
        // The program fills a buffer of twice the largest size with random text first.
        for _ in 0..u64::from(options.size_high) * 2 {
            random.below(95);
        }
        let table = vec![Slot::default(); options.number as usize * 2];
        Run { options, top: top.to_path_buf(), random, table, next: 0, buffer_bytes, tally: Tally::default() }
    }

    /// The next slot if it is free, else the first that is.
    fn free_slot(&mut self) -> Option<usize> {
        let free = |slot: &Slot| slot.size == 0;
        let at = match self.table.get(self.next) {
            Some(slot) if free(slot) => self.next,
            _ => self.table.iter().position(free)?,
        };
        self.next = at + 1;
        Some(at)
    }

    /// A slot that is taken, by trial. The caller makes sure that there is one.
    fn used_slot(&mut self) -> usize {
        loop {
            let at = usize::try_from(self.random.below(self.table.len() as u64)).unwrap_or(0);
            if self.table.get(at).is_some_and(|slot| slot.size > 0) {
                return at;
            }
        }
    }

    fn create(&mut self, driver: &mut Driver<'_>) -> Result<(), WorkloadError> {
        const DOING: &str = "creating a file";
        let Some(at) = self.free_slot() else { return Ok(()) };
        let Options { size_low, size_high, subdirectories, .. } = *self.options;
        let mut name = self.top.clone();
        if subdirectories > 1 {
            name.push(format!("s{}", self.random.below(subdirectories.into())));
        }
        self.tally.created += 1;
        name.push(self.tally.created.to_string());
        let size = u64::from(size_low) + self.random.below((size_high - size_low).into());
        let flags = match self.options.buffering {
            true => OpenFlags { create: true, truncate: true, ..OpenFlags::WRITE },
            false => OpenFlags { create: true, ..OpenFlags::READ_WRITE },
        };
        let fd = driver.open(DOING, &name, flags)?;
        self.write(driver, DOING, &name, fd, size)?;
        if let Some(slot) = self.table.get_mut(at) {
            *slot = Slot { name, size };
        }
        Ok(())
    }

    fn append(&mut self, driver: &mut Driver<'_>, at: usize) -> Result<(), WorkloadError> {
        const DOING: &str = "appending to a file";
        let high = u64::from(self.options.size_high);
        let Some(slot) = self.table.get(at).filter(|slot| slot.size < high).cloned() else { return Ok(()) };
        let flags = match self.options.buffering {
            true => OpenFlags { create: true, append: true, ..OpenFlags::WRITE },
            false => OpenFlags { append: true, ..OpenFlags::READ_WRITE },
        };
        let fd = driver.open(DOING, &slot.name, flags)?;
        let size = self.random.below(high - slot.size) + 1;
        if self.options.buffering {
            let sought = driver.timed(&Call::Seek { fd, offset: 0, whence: Whence::End });
            self.close_if_failed(driver, DOING, &slot.name, fd, sought.map(|_| ()))?;
        }
        self.write(driver, DOING, &slot.name, fd, size)?;
        self.tally.appended += 1;
        if let Some(slot) = self.table.get_mut(at) {
            slot.size += size;
        }
        Ok(())
    }

    /// Writes at the end of an open file, and closes it.
    fn write(
        &mut self,
        driver: &mut Driver<'_>,
        doing: &'static str,
        name: &Path,
        fd: Fd,
        size: u64,
    ) -> Result<(), WorkloadError> {
        let block = u64::from(self.options.write_block);
        let calls = match self.options.buffering {
            true => stdio::writes(size, block, self.buffer_bytes),
            false => stdio::blocks(size, block).collect(),
        };
        self.look(driver, doing, name, fd)?;
        for len_bytes in calls {
            let written = driver.timed(&Call::Write { fd, offset: None, len_bytes, data: None });
            self.close_if_failed(driver, doing, name, fd, written.map(|_| ()))?;
        }
        driver.close(doing, name, fd)?;
        driver.count(1, size);
        self.tally.bytes_written += size;
        Ok(())
    }

    fn read(&mut self, driver: &mut Driver<'_>, at: usize) -> Result<(), WorkloadError> {
        const DOING: &str = "reading a file";
        let Some(Slot { name, size }) = self.table.get(at).cloned() else { return Ok(()) };
        let block = u64::from(self.options.read_block);
        let calls = match self.options.buffering {
            true => stdio::reads(size, block, self.buffer_bytes),
            false => stdio::blocks(size, block).collect(),
        };
        let fd = driver.open(DOING, &name, OpenFlags::READ)?;
        self.look(driver, DOING, &name, fd)?;
        for len_bytes in calls {
            let read = driver.timed(&Call::Read { fd, offset: None, len_bytes });
            self.close_if_failed(driver, DOING, &name, fd, read.map(|_| ()))?;
        }
        driver.close(DOING, &name, fd)?;
        driver.count(1, size);
        self.tally.read += 1;
        self.tally.bytes_read += size;
        Ok(())
    }

    /// The C library asks for the block size before it makes its buffer.
    fn look(&self, driver: &mut Driver<'_>, doing: &'static str, name: &Path, fd: Fd) -> Result<(), WorkloadError> {
        if !self.options.buffering {
            return Ok(());
        }
        let looked = driver.timed(&Call::Fstat { fd });
        self.close_if_failed(driver, doing, name, fd, looked.map(|_| ()))
    }

    fn close_if_failed(
        &self,
        driver: &mut Driver<'_>,
        doing: &'static str,
        name: &Path,
        fd: Fd,
        result: Result<(), Errno>,
    ) -> Result<(), WorkloadError> {
        result.map_err(|errno| {
            let _ = driver.timed(&Call::Close { fd });
            WorkloadError::call(doing, name, errno)
        })
    }

    fn delete(&mut self, driver: &mut Driver<'_>, at: usize) -> Result<(), WorkloadError> {
        let Some(slot) = self.table.get_mut(at).filter(|slot| slot.size > 0) else { return Ok(()) };
        let Slot { name, size } = std::mem::take(slot);
        driver.unlink(&name, size)?;
        self.tally.deleted += 1;
        Ok(())
    }

    fn transaction(&mut self, driver: &mut Driver<'_>, number: u32) -> Result<(), WorkloadError> {
        if self.tally.created == self.tally.deleted {
            let problem = format!("out of files after {number} transactions: take more files or fewer transactions");
            return Err(WorkloadError::Options(problem));
        }
        if let Some(bias) = self.options.bias_read {
            let reads = self.random.below(10) < u64::from(bias);
            let at = self.used_slot();
            if reads {
                self.read(driver, at)?;
            } else {
                self.append(driver, at)?;
            }
        }
        if let Some(bias) = self.options.bias_create {
            if self.random.below(10) < u64::from(bias) {
                self.create(driver)?;
            } else {
                let at = self.used_slot();
                self.delete(driver, at)?;
            }
        }
        driver.complete(1);
        Ok(())
    }

    fn phases(&mut self, driver: &mut Driver<'_>) -> Result<Vec<Sample>, WorkloadError> {
        if self.options.subdirectories > 1 {
            for n in 0..self.options.subdirectories {
                driver.mkdir(&self.top.join(format!("s{n}")))?;
            }
        }
        driver.begin_cold()?;
        for _ in 0..self.options.number {
            self.create(driver)?;
        }
        let create = driver.end(Phase::Create).per(Unit::FilesPerSecond);
        let pool = self.tally;
        driver.begin_warm()?;
        for number in 0..self.options.transactions {
            self.transaction(driver, number)?;
        }
        let transactions = driver.end(Phase::Transactions).with_counts(&[
            ("created", self.tally.created - pool.created),
            ("read", self.tally.read),
            ("appended", self.tally.appended),
            ("deleted", self.tally.deleted),
            ("bytes read", self.tally.bytes_read),
            ("bytes written", self.tally.bytes_written - pool.bytes_written),
        ]);
        let before = self.tally.deleted;
        driver.begin_warm()?;
        for at in 0..self.table.len() {
            if at % 1024 == 0 {
                poll()?;
            }
            self.delete(driver, at)?;
        }
        let delete = driver.end(Phase::Delete).with_counts(&[("deleted", self.tally.deleted - before)]);
        let create = create.with_counts(&[("created", pool.created), ("bytes written", pool.bytes_written)]);
        Ok([create, transactions, delete].map(Sample::by_clock).into())
    }
}

/// The benchmark on one target.
pub(crate) struct Postmark {
    options: Options,
}

impl Postmark {
    pub(crate) fn new(options: &Options) -> Result<Postmark, WorkloadError> {
        options.check()?;
        Ok(Postmark { options: options.clone() })
    }
}

impl Prepared for Postmark {
    fn points(&self) -> Vec<Point> {
        vec![Point { label: "PostMark".into(), size_bytes: None, stage: 0 }]
    }

    fn once(&mut self, driver: &mut Driver<'_>, _: &Point, tag: &str) -> Result<Vec<Sample>, WorkloadError> {
        let top = top("postmark", tag);
        let usage = driver.fs.usage();
        let usage = usage.map_err(|source| WorkloadError::System { doing: "asking for the block size", source })?;
        let buffer_bytes = u64::from(usage.block_bytes.clamp(512, 1 << 20));
        in_own_directory(driver, &top, |driver| Run::new(&self.options, &top, buffer_bytes).phases(driver))
    }
}
