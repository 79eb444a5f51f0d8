//! One large file (Rosenblum and Ousterhout, *The Design and Implementation of a Log-Structured File System*, TOCS
//! 10(1), 1992, section 5.1; run again by Seltzer et al., USENIX 1995): it is **written** from start to end, **read**
//! from start to end, **written at random**, **read at random**, and **re-read** from start to end; all in units of 8
//! KiB.
//!
//! Bytes a second for each phase, from cold caches, with the `syncfs` that ends a phase which writes. A random phase
//! moves as much data as the file holds, unit by unit; each unit's place is drawn anew, so some are hit several times
//! and about 37 % are not hit. The paper does not say whether its places repeat.

use crate::WorkloadError;
use crate::benchmark::{Benchmark, Prepared};
use crate::cleanup::{in_own_directory, top};
use crate::driver::{Driver, poll};
use crate::phase::Phase;
use crate::point::Point;
use crate::random::Random;
use crate::repeat::Repeat;
use crate::sample::Sample;
use posix::{FileSystem, OpenFlags};
use serde::{Deserialize, Serialize};
use std::path::Path;
use units::show;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// How large the file is: 100 MB (here MiB) in the paper.
    pub size_bytes: u64,
    /// The size of each read and write: 8 KiB in the paper.
    pub unit_bytes: u64,
    /// How often; its seed also places the random reads and writes.
    pub repeat: Repeat,
}

impl Default for Options {
    /// As in the paper.
    fn default() -> Options {
        Options { size_bytes: 100 << 20, unit_bytes: 8 << 10, repeat: Repeat::default() }
    }
}

impl Options {
    /// A tenth of the data, once.
    pub fn quick() -> Options {
        Options { size_bytes: 10 << 20, repeat: Repeat::once(), ..Options::default() }
    }
}

impl Benchmark for Options {
    fn name(&self) -> &'static str {
        "largefile"
    }

    fn repeat(&self) -> &Repeat {
        &self.repeat
    }

    /// Space that it takes at most.
    fn need_bytes(&self) -> u64 {
        self.size_bytes.saturating_add(self.size_bytes / 512)
    }

    /// Files and directories that are there at the same time.
    fn need_inodes(&self) -> u64 {
        2
    }

    fn check(&self) -> Result<(), WorkloadError> {
        if self.unit_bytes == 0 || !self.size_bytes.is_multiple_of(self.unit_bytes) || self.size_bytes == 0 {
            return Err(WorkloadError::Options(
                "the file's size is a multiple of the unit, and both are above 0".into(),
            ));
        }
        Ok(())
    }

    fn prepare(&self, _: &mut dyn FileSystem) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Largefile::new(self)?))
    }

    fn what(&self) -> String {
        format!(
            "One file of {} is written, read, written at random, read at random and read again, in units of {}, from \
             cold caches each time. Rates include the syncfs that ends a phase which writes.",
            show::bytes(self.size_bytes as f64),
            show::bytes(self.unit_bytes as f64)
        )
    }
}

/// The benchmark on one target.
pub(crate) struct Largefile {
    options: Options,
}

impl Largefile {
    pub(crate) fn new(options: &Options) -> Result<Largefile, WorkloadError> {
        options.check()?;
        Ok(Largefile { options: options.clone() })
    }

    fn phases(&self, driver: &mut Driver<'_>, file: &Path) -> Result<Vec<Sample>, WorkloadError> {
        let Options { size_bytes, unit_bytes, repeat } = self.options;
        let mut random = Random::new(repeat.seed, "largefile");
        driver.begin_cold()?;
        driver.create(file, size_bytes, unit_bytes)?;
        let write = driver.end_synced(Phase::Write)?;
        driver.begin_cold()?;
        driver.read(file, size_bytes, unit_bytes)?;
        let read = driver.end(Phase::Read);
        driver.begin_cold()?;
        self.at_random(driver, file, &mut random, true)?;
        let random_write = driver.end_synced(Phase::RandomWrite)?;
        driver.begin_cold()?;
        self.at_random(driver, file, &mut random, false)?;
        let random_read = driver.end(Phase::RandomRead);
        driver.begin_cold()?;
        driver.read(file, size_bytes, unit_bytes)?;
        Ok(vec![write, read, random_write, random_read, driver.end(Phase::Reread)])
    }

    /// As much data as the file holds, a unit at a time.
    fn at_random(
        &self,
        driver: &mut Driver<'_>,
        file: &Path,
        random: &mut Random,
        writing: bool,
    ) -> Result<(), WorkloadError> {
        const DOING: &str = "reading or writing a file at random";
        let Options { size_bytes, unit_bytes, .. } = self.options;
        let units = size_bytes / unit_bytes;
        let flags = if writing { OpenFlags::WRITE } else { OpenFlags::READ };
        let fd = driver.open(DOING, file, flags)?;
        let moved = (0..units).try_for_each(|n| {
            if n % 256 == 0 {
                poll()?;
            }
            let offset = random.below(units) * unit_bytes;
            driver.transfer_at(DOING, file, fd, offset, unit_bytes, writing)
        });
        let closed = driver.close(DOING, file, fd);
        moved?;
        closed?;
        driver.count(1, size_bytes);
        Ok(())
    }
}

impl Prepared for Largefile {
    fn points(&self) -> Vec<Point> {
        vec![Point { label: "large file".into(), size_bytes: None, stage: 0 }]
    }

    fn once(&mut self, driver: &mut Driver<'_>, _: &Point, tag: &str) -> Result<Vec<Sample>, WorkloadError> {
        let top = top("largefile", tag);
        in_own_directory(driver, &top, |driver| self.phases(driver, &top.join("file")))
    }
}
