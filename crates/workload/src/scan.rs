//! A cold scan of a whole tree, as `grep -r` makes it: directories are read and their entries visited in the order the
//! file system gives them, depth first; every ordinary file is opened, read to its end and closed. With `stat_only`, as
//! `find` with a test on attributes: every name is asked for its attributes instead.
//!
//! Links are not followed, other file systems not entered, and access times left alone where we may. Names that cannot
//! be read are counted, not hidden. Nothing is written.

use crate::WorkloadError;
use crate::benchmark::{Benchmark, Prepared, TableRows};
use crate::driver::{Driver, poll};
use crate::phase::Phase;
use crate::point::Point;
use crate::repeat::Repeat;
use crate::sample::Sample;
use crate::tree::{self, Skipped, Spread};
use posix::{Call, Errno, Fd, FileKind, FileSystem, Mode, OpenFlags, Reply};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use units::show;

/// The buffer that glibc's `readdir` gives `getdents64`.
const DIRECTORY_BYTES: u64 = 32 << 10;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Ask for attributes instead of reading files.
    pub stat_only: bool,
    /// Size of a read.
    pub piece_bytes: u64,
    /// How often.
    pub repeat: Repeat,
}

impl Default for Options {
    /// Reads of 96 KiB, as GNU grep's.
    fn default() -> Options {
        Options { stat_only: false, piece_bytes: 96 << 10, repeat: Repeat::default() }
    }
}

impl Benchmark for Options {
    fn name(&self) -> &'static str {
        "scan"
    }

    fn repeat(&self) -> &Repeat {
        &self.repeat
    }

    fn check(&self) -> Result<(), WorkloadError> {
        if self.piece_bytes == 0 {
            return Err(WorkloadError::Options("the size of a read is at least 1".into()));
        }
        Ok(())
    }

    fn prepare(&self, fs: &mut dyn FileSystem) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Scan::new(self, fs)?))
    }

    fn what(&self) -> String {
        if self.stat_only {
            return "Every directory read and every name asked for its attributes, in directory order, caches dropped \
                before."
                .into();
        }
        format!(
            "Every directory read and every file read to its end in calls of {}, in directory order, caches dropped \
             before.",
            show::bytes(self.piece_bytes as f64)
        )
    }

    fn table_rows(&self) -> TableRows {
        TableRows::Points
    }

    fn differs_by(&self) -> Option<Vec<(&'static str, String)>> {
        Some(vec![("bytes in a call", self.piece_bytes.to_string())])
    }
}

/// The benchmark on one tree.
pub(crate) struct Scan {
    options: Options,
    dev: u64,
    noatime: bool,
    /// Of the last run: a tree in use may change between two.
    skipped: Skipped,
    spread: Spread,
    unwritten: Option<String>,
}

/// A directory that is being visited.
struct Open {
    path: PathBuf,
    entries: std::vec::IntoIter<(OsString, FileKind)>,
}

impl Scan {
    pub(crate) fn new(options: &Options, fs: &mut dyn FileSystem) -> Result<Scan, WorkloadError> {
        options.check()?;
        let dev = tree::root_stat(fs)?.dev;
        let noatime = tree::may_noatime(fs);
        let (skipped, spread) = (Skipped::default(), Spread::default());
        Ok(Scan { options: options.clone(), dev, noatime, skipped, spread, unwritten: None })
    }

    fn walk(&mut self, driver: &mut Driver<'_>) -> Result<(), WorkloadError> {
        (self.skipped, self.spread) = (Skipped::default(), Spread::default());
        let root = PathBuf::from(".");
        let entries =
            self.directory(driver, &root).map_err(|e| WorkloadError::call("reading a directory", &root, e))?;
        let mut stack = vec![Open { path: root, entries: entries.into_iter() }];
        while let Some(open) = stack.last_mut() {
            poll()?;
            let Some((name, kind)) = open.entries.next() else {
                stack.pop();
                continue;
            };
            let path = tree::below(&open.path, name);
            if let Err(errno) = self.visit(driver, &path, kind) {
                self.skipped.add(&path, &errno.to_string());
            }
            if kind == FileKind::Directory {
                match self.directory(driver, &path) {
                    Ok(entries) => stack.push(Open { path, entries: entries.into_iter() }),
                    Err(Errno::EXDEV) => self.skipped.add(&path, "is on another file system"),
                    Err(errno) => self.skipped.add(&path, &errno.to_string()),
                }
            }
        }
        Ok(())
    }

    /// What is done with a name, whatever it stands for.
    fn visit(&mut self, driver: &mut Driver<'_>, path: &Path, kind: FileKind) -> Result<(), Errno> {
        if self.options.stat_only {
            driver.timed(&Call::Stat { at: path.into(), follow: false })?;
            driver.count(1, 0);
        } else if kind == FileKind::File {
            let bytes = self.read(driver, path)?;
            driver.count(1, bytes);
            self.spread.offer(path);
        }
        Ok(())
    }

    /// Opens without changing the access time, until a file of another owner forbids it: then times change for all that
    /// follow, so that no later open is made twice.
    fn open(&mut self, driver: &mut Driver<'_>, path: &Path, flags: OpenFlags) -> Result<Fd, Errno> {
        let mut open = |noatime| {
            let flags = OpenFlags { noatime, ..flags };
            match driver.timed(&Call::Open { at: path.into(), flags, mode: Mode(0) })? {
                Reply::Fd(fd) => Ok(fd),
                _ => Err(Errno::EINVAL),
            }
        };
        match open(self.noatime) {
            Err(Errno::EPERM) if self.noatime => {
                self.noatime = false;
                open(false)
            }
            other => other,
        }
    }

    /// Reads a file to its end.
    fn read(&mut self, driver: &mut Driver<'_>, path: &Path) -> Result<u64, Errno> {
        let fd = self.open(driver, path, OpenFlags { nofollow: true, ..OpenFlags::READ })?;
        let mut bytes = 0;
        let read = loop {
            match driver.timed(&Call::Read { fd, offset: None, len_bytes: self.options.piece_bytes }) {
                Ok(Reply::Count(0)) => break Ok(bytes),
                Ok(Reply::Count(n)) => bytes += n,
                Ok(_) => break Err(Errno::EINVAL),
                Err(errno) => break Err(errno),
            }
        };
        let closed = driver.timed(&Call::Close { fd });
        let bytes = read?;
        closed?;
        Ok(bytes)
    }

    /// Reads a directory; the time of `getdents64` counts, and names are then taken from the cache. `EXDEV` where it is
    /// on another file system.
    fn directory(&mut self, driver: &mut Driver<'_>, path: &Path) -> Result<Vec<(OsString, FileKind)>, Errno> {
        let fd = self.open(driver, path, OpenFlags { nofollow: path != Path::new("."), ..OpenFlags::DIRECTORY })?;
        let entries = self.entries(driver, fd);
        let closed = driver.timed(&Call::Close { fd });
        let entries = entries?;
        closed?;
        Ok(entries)
    }

    fn entries(&self, driver: &mut Driver<'_>, fd: Fd) -> Result<Vec<(OsString, FileKind)>, Errno> {
        if driver.fs.call(&Call::Fstat { fd }).stat()?.dev != self.dev {
            return Err(Errno::EXDEV);
        }
        while driver.timed(&Call::GetDents { fd, len_bytes: DIRECTORY_BYTES })? != Reply::Count(0) {}
        driver.fs.entries(fd)
    }
}

impl Prepared for Scan {
    fn points(&self) -> Vec<Point> {
        let label = if self.options.stat_only { "whole tree, attributes" } else { "whole tree" };
        vec![Point { label: label.to_owned(), size_bytes: None, stage: 0 }]
    }

    fn once(&mut self, driver: &mut Driver<'_>, _point: &Point, _tag: &str) -> Result<Vec<Sample>, WorkloadError> {
        driver.begin_cold()?;
        self.walk(driver)?;
        let phase = if self.options.stat_only { Phase::Stat } else { Phase::Scan };
        let sample = driver.end(phase);
        if sample.files == 0 {
            return Err(WorkloadError::Nothing("scan: it has no files that can be read".into()));
        }
        self.unwritten = self.spread.unwritten_note(driver.fs);
        Ok(vec![sample])
    }

    fn notes(&self) -> Vec<String> {
        self.skipped.note("names could not be read").into_iter().chain(self.unwritten.clone()).collect()
    }
}
