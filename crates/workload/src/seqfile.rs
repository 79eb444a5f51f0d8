//! Sequential performance against file size (Seltzer et al., *File System Logging Versus Clustering*, USENIX 1995,
//! section 3; Smith and Seltzer, *A Comparison of FFS Disk Allocation Policies*, USENIX 1996, section 4).
//!
//! A fixed amount of data is cut into files of one size, spread over directories of at most so many files. Four phases,
//! each over all files in creation order and from cold caches: **create**, **read**, **overwrite**, **delete**. A file
//! is opened, moved in as few calls as possible, and closed. Directories are made before and removed after, untimed.
//! Bytes a second for the first three, files a second for the last; phases that write include the `syncfs` that ends
//! them.

use crate::WorkloadError;
use crate::benchmark::{Benchmark, Prepared, TableRows};
use crate::driver::Driver;
use crate::phase::Phase;
use crate::point::Point;
use crate::repeat::Repeat;
use crate::sample::Sample;
use posix::FileSystem;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use units::show;

/// The published sizes: 1 KiB to 32 MiB in powers of two, and around the first indirect block of an FFS with 8 KiB
/// blocks and twelve direct pointers 96 KiB and 104 KiB.
pub const SIZES_BYTES: [u64; 18] = {
    const K: u64 = 1 << 10;
    [
        K,
        2 * K,
        4 * K,
        8 * K,
        16 * K,
        32 * K,
        64 * K,
        96 * K,
        104 * K,
        128 * K,
        256 * K,
        512 * K,
        1024 * K,
        2048 * K,
        4096 * K,
        8192 * K,
        16384 * K,
        32768 * K,
    ]
};

/// Files in all that a run makes at most: their names are kept in memory.
const FILES_MAX: u64 = 16 << 20;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Data that each size's files hold together, at most. 32 MiB in the papers.
    pub data_bytes: u64,
    /// File sizes.
    pub sizes_bytes: Vec<u64>,
    /// Files in a directory, at most: 100 in `lfs95`, 25 in `alloc96`.
    pub files_per_directory: u32,
    /// The largest single read or write: 1 MiB in `lfs95`, 4 MiB in `alloc96`.
    pub piece_bytes: u64,
    /// The last phase that is run, [`Phase::Delete`] for all four of the papers. After an earlier one the files are
    /// removed without being timed. No result that is kept has it.
    #[serde(skip, default = "last_phase")]
    pub until: Phase,
    /// How often.
    pub repeat: Repeat,
}

fn last_phase() -> Phase {
    Phase::Delete
}

impl Default for Options {
    /// As in `lfs95`.
    fn default() -> Options {
        Options::with_data(32 << 20)
    }
}

impl Options {
    /// The published sizes, as far as the data suffices for one file.
    pub fn with_data(data_bytes: u64) -> Options {
        Options {
            data_bytes,
            sizes_bytes: SIZES_BYTES.into_iter().filter(|size| *size <= data_bytes).collect(),
            files_per_directory: 100,
            piece_bytes: 1 << 20,
            until: last_phase(),
            repeat: Repeat::default(),
        }
    }

    /// How many files of a size the data is cut into; what does not fill a file is left out.
    pub fn files_of(&self, size_bytes: u64) -> u64 {
        self.data_bytes.checked_div(size_bytes).unwrap_or(0)
    }
}

impl Benchmark for Options {
    fn name(&self) -> &'static str {
        "seqfile"
    }

    fn repeat(&self) -> &Repeat {
        &self.repeat
    }

    /// Space that one size's files take at most, in whole blocks of 4 KiB with half a kilobyte of metadata each.
    fn need_bytes(&self) -> u64 {
        let one = |size: &u64| self.files_of(*size).saturating_mul(size.next_multiple_of(4096).saturating_add(512));
        self.sizes_bytes.iter().map(one).max().unwrap_or(0)
    }

    fn need_inodes(&self) -> u64 {
        let per_directory = u64::from(self.files_per_directory.max(1));
        let one = |size: &u64| self.files_of(*size) + self.files_of(*size).div_ceil(per_directory) + 1;
        self.sizes_bytes.iter().map(one).max().unwrap_or(0)
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let wrong = |what: String| Err(WorkloadError::Options(what));
        if self.sizes_bytes.is_empty() {
            return wrong(format!("no file size is as small as the {} bytes of data; take more data", self.data_bytes));
        }
        if self.files_per_directory == 0 || self.piece_bytes == 0 {
            return wrong("files in a directory and the size of a piece are at least 1".into());
        }
        for (at, size) in self.sizes_bytes.iter().enumerate() {
            if *size == 0 || *size > self.data_bytes {
                return wrong(format!("a file of {size} bytes cannot be cut from {} bytes of data", self.data_bytes));
            }
            if self.files_of(*size) > FILES_MAX {
                return wrong(format!(
                    "{} bytes of data make more than {FILES_MAX} files of {size} bytes; take less data or larger files",
                    self.data_bytes
                ));
            }
            if self.sizes_bytes.iter().take(at).any(|earlier| earlier == size) {
                return wrong(format!("the file size of {size} bytes is given twice"));
            }
        }
        Ok(())
    }

    fn prepare(&self, _: &mut dyn FileSystem) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Seqfile::new(self)?))
    }

    fn what(&self) -> String {
        format!(
            "{} of data cut into files of each size, at most {} in a directory; calls of at most {}; every phase in \
             creation order with caches dropped before it. Time is that of the calls and, for create, overwrite and \
             delete, of the syncfs that ends them.",
            show::bytes(self.data_bytes as f64),
            show::count(self.files_per_directory.into()),
            show::bytes(self.piece_bytes as f64)
        )
    }

    fn table_rows(&self) -> TableRows {
        TableRows::Points
    }

    fn differs_by(&self) -> Option<Vec<(&'static str, String)>> {
        Some(vec![
            ("bytes of data", self.data_bytes.to_string()),
            ("files in a directory", self.files_per_directory.to_string()),
            ("bytes in a call", self.piece_bytes.to_string()),
        ])
    }
}

/// The benchmark on one target.
pub(crate) struct Seqfile {
    options: Options,
}

impl Seqfile {
    pub(crate) fn new(options: &Options) -> Result<Seqfile, WorkloadError> {
        options.check()?;
        Ok(Seqfile { options: options.clone() })
    }

    fn phases(&self, driver: &mut Driver<'_>, names: &Names, size: u64) -> Result<Vec<Sample>, WorkloadError> {
        let piece = self.options.piece_bytes;
        for directory in &names.directories {
            driver.mkdir(directory)?;
        }
        driver.begin_cold()?;
        for file in &names.files {
            driver.create(file, size, piece)?;
        }
        let mut samples = vec![driver.end_synced(Phase::Create)?];
        if self.options.until == Phase::Create {
            return Ok(samples);
        }
        driver.begin_cold()?;
        for file in &names.files {
            driver.read(file, size, piece)?;
        }
        samples.push(driver.end(Phase::Read));
        if self.options.until == Phase::Read {
            return Ok(samples);
        }
        driver.begin_cold()?;
        for file in &names.files {
            driver.overwrite(file, size, piece)?;
        }
        samples.push(driver.end_synced(Phase::Overwrite)?);
        if self.options.until == Phase::Overwrite {
            return Ok(samples);
        }
        driver.begin_cold()?;
        for file in &names.files {
            driver.unlink(file, size)?;
        }
        samples.push(driver.end_synced(Phase::Delete)?);
        Ok(samples)
    }
}

impl Prepared for Seqfile {
    fn points(&self) -> Vec<Point> {
        let point = |size: &u64| Point { label: label(*size), size_bytes: Some(*size), stage: 0 };
        self.options.sizes_bytes.iter().map(point).collect()
    }

    fn once(&mut self, driver: &mut Driver<'_>, point: &Point, tag: &str) -> Result<Vec<Sample>, WorkloadError> {
        let size = point.size_bytes.unwrap_or(0);
        let names = Names::new(&self.options, size, tag);
        let samples = self.phases(driver, &names, size);
        if matches!(samples, Err(WorkloadError::LeftOver { .. })) {
            // What is there is not ours: it stays.
            return samples;
        }
        let removed = driver.remove_all(
            // Where all went well, to the last phase, no file is left.
            names
                .files
                .iter()
                .filter(|_| samples.is_err() || self.options.until != Phase::Delete)
                .map(PathBuf::as_path),
            names.directories.iter().rev().map(PathBuf::as_path),
        );
        let samples = samples?;
        removed?;
        Ok(samples)
    }
}

/// Paths of one run, in creation order; a directory comes after its parent.
struct Names {
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Names {
    /// The top directory's name differs from run to run: file systems that place directories by their name (ext4 below
    /// the root) then put the runs in different places.
    fn new(options: &Options, size: u64, tag: &str) -> Names {
        let top = Path::new("fsage-bench-seqfile").with_extension(tag);
        let per_directory = u64::from(options.files_per_directory);
        let count = options.files_of(size);
        let mut directories = vec![top.clone()];
        let mut files = Vec::new();
        for n in 0..count {
            if n % per_directory == 0 {
                directories.push(top.join(format!("d{:05}", n / per_directory)));
            }
            if let Some(directory) = directories.last() {
                files.push(directory.join(format!("f{n:07}")));
            }
        }
        Names { directories, files }
    }
}

/// A file size as tables have it.
fn label(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}
