//! Many small files (Rosenblum and Ousterhout, *The Design and Implementation of a Log-Structured File System*, TOCS
//! 10(1), 1992, section 5.1; run again by Seltzer et al., USENIX 1995): they are **created**, caches are flushed, they
//! are **read** in creation order, and **deleted**.
//!
//! Files a second for each phase. The caches are dropped before creation and before reading, and nowhere else: files
//! are deleted with their inodes in memory, as in the paper. Create and delete end with `syncfs`, which the headline
//! includes.

use crate::WorkloadError;
use crate::benchmark::{Benchmark, Prepared};
use crate::cleanup::{in_own_directory, top};
use crate::driver::Driver;
use crate::phase::{Phase, Unit};
use crate::point::Point;
use crate::repeat::Repeat;
use crate::sample::Sample;
use posix::FileSystem;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use units::show;

/// Files that a run makes at most: their names are kept in memory.
const FILES_MAX: u32 = 16 << 20;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// How many files: 10,000 in the paper.
    pub files: u32,
    /// How large each is: 1 KiB in the paper.
    pub size_bytes: u64,
    /// Files in a directory, at most. The paper does not say; 100 is the rule of the benchmark by file size in the
    /// study of 1995, and keeps the cost of searching a directory out of the result.
    pub files_per_directory: u32,
    /// How often.
    pub repeat: Repeat,
}

impl Default for Options {
    /// As in the paper.
    fn default() -> Options {
        Options { files: 10_000, size_bytes: 1 << 10, files_per_directory: 100, repeat: Repeat::default() }
    }
}

impl Options {
    /// A tenth of the files, once.
    pub fn quick() -> Options {
        Options { files: 1000, repeat: Repeat::once(), ..Options::default() }
    }
}

impl Benchmark for Options {
    fn name(&self) -> &'static str {
        "smallfile"
    }

    fn repeat(&self) -> &Repeat {
        &self.repeat
    }

    /// Space that it takes at most, in whole blocks of 4 KiB with half a kilobyte of metadata a file.
    fn need_bytes(&self) -> u64 {
        u64::from(self.files).saturating_mul(self.size_bytes.next_multiple_of(4096).saturating_add(512))
    }

    fn need_inodes(&self) -> u64 {
        u64::from(self.files) + u64::from(self.files.div_ceil(self.files_per_directory.max(1))) + 1
    }

    fn check(&self) -> Result<(), WorkloadError> {
        if self.files == 0 || self.files > FILES_MAX || self.size_bytes == 0 || self.files_per_directory == 0 {
            let what = format!("files (at most {FILES_MAX}), their size and files in a directory are at least 1");
            return Err(WorkloadError::Options(what));
        }
        Ok(())
    }

    fn prepare(&self, _: &mut dyn FileSystem) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Smallfile::new(self)?))
    }

    fn what(&self) -> String {
        format!(
            "{} files of {}, at most {} in a directory, are created, read in creation order after caches were dropped, \
             and deleted. Rates are files a second, with the syncfs that ends create and delete.",
            show::count(self.files.into()),
            show::bytes(self.size_bytes as f64),
            show::count(self.files_per_directory.into())
        )
    }
}

/// The benchmark on one target.
pub(crate) struct Smallfile {
    options: Options,
}

impl Smallfile {
    pub(crate) fn new(options: &Options) -> Result<Smallfile, WorkloadError> {
        options.check()?;
        Ok(Smallfile { options: options.clone() })
    }

    fn phases(&self, driver: &mut Driver<'_>, top: &Path) -> Result<Vec<Sample>, WorkloadError> {
        let size = self.options.size_bytes;
        let (directories, files) = self.names(top);
        for directory in &directories {
            driver.mkdir(directory)?;
        }
        driver.begin_cold()?;
        for file in &files {
            driver.create(file, size, size)?;
        }
        let create = driver.end_synced(Phase::Create)?;
        driver.begin_cold()?;
        for file in &files {
            driver.read(file, size, size)?;
        }
        let read = driver.end(Phase::Read);
        driver.begin_warm()?;
        for file in &files {
            driver.unlink(file, size)?;
        }
        let delete = driver.end_synced(Phase::Delete)?;
        Ok([create, read, delete].map(|sample| sample.per(Unit::FilesPerSecond)).into())
    }

    /// Directories and files, in creation order.
    fn names(&self, top: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let per_directory = self.options.files_per_directory;
        let directory = |n: u32| top.join(format!("d{:05}", n / per_directory));
        let directories = (0..self.options.files.div_ceil(per_directory)).map(|n| directory(n * per_directory));
        let files = (0..self.options.files).map(|n| directory(n).join(format!("f{n:07}")));
        (directories.collect(), files.collect())
    }
}

impl Prepared for Smallfile {
    fn points(&self) -> Vec<Point> {
        vec![Point { label: "small files".into(), size_bytes: None, stage: 0 }]
    }

    fn once(&mut self, driver: &mut Driver<'_>, _: &Point, tag: &str) -> Result<Vec<Sample>, WorkloadError> {
        let top = top("smallfile", tag);
        in_own_directory(driver, &top, |driver| self.phases(driver, &top))
    }
}
