//! A copy of a tree on another file system, written in one go: what the tree would be like unaged.
//!
//! Conway et al., *File Systems Fated for Senescence? Nonsense, Says Science!* (FAST 2017) measure age this way: a scan
//! of the aged tree against a scan of its fresh copy.

use crate::driver::{Driver, poll};
use crate::tree::{Skipped, below};
use crate::{AGED_MARKER, WorkloadError};
use posix::{At, Call, FileKind, FileSystem, Mode, OpenFlags, SetTime};
use std::path::{Path, PathBuf};

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Regular files.
    pub files: u64,
    /// Their lengths, summed, bytes.
    pub bytes: u64,
    /// Directories, the root not counted.
    pub directories: u64,
    /// What was left out, if anything: links, special files, names that could not be read.
    pub left_out: Option<String>,
}

/// Copies names, lengths and modification times of all files and directories below the root of `from` into the empty
/// root of `to`: depth first, in the order `from` lists them, each file whole. Contents are the target's own filler,
/// not the originals, and holes become data.
///
/// # Errors
/// [`WorkloadError`] of either side, with the path.
pub fn copy_tree(from: &mut dyn FileSystem, to: &mut dyn FileSystem) -> Result<Copied, WorkloadError> {
    const PIECE_BYTES: u64 = 1 << 20;
    let mut copied = Copied::default();
    let mut skipped = Skipped::default();
    let mut pending = vec![PathBuf::from(".")];
    let mut to = Driver::new(to);
    while let Some(directory) = pending.pop() {
        poll()?;
        if directory != Path::new(".") {
            to.mkdir(&directory)?;
            copied.directories += 1;
        }
        let mut below_here = Vec::new();
        for (name, kind) in entries(from, &directory)? {
            let path = below(&directory, name);
            match kind {
                FileKind::Directory => below_here.push(path),
                FileKind::File if path == Path::new(AGED_MARKER) => {}
                FileKind::File => {
                    let stat = from.call(&Call::Stat { at: At::from(&*path), follow: false }).stat();
                    let stat = stat.map_err(|errno| WorkloadError::call("looking at a file", &path, errno))?;
                    to.create(&path, stat.size_bytes, PIECE_BYTES)?;
                    copied.files += 1;
                    copied.bytes += stat.size_bytes;
                    let (at, mtime) = (At::from(&*path), SetTime::To(stat.mtime_ns));
                    let set = to.fs.call(&Call::Utimens { at, follow: false, atime: SetTime::Omit, mtime });
                    set.result.map_err(|errno| WorkloadError::call("setting a file's times", &path, errno))?;
                }
                FileKind::Symlink | FileKind::Special => skipped.add(&path, "is no regular file"),
            }
        }
        pending.extend(below_here.into_iter().rev());
    }
    copied.left_out = skipped.note("names were not copied");
    Ok(copied)
}

fn entries(fs: &mut dyn FileSystem, directory: &Path) -> Result<Vec<(std::ffi::OsString, FileKind)>, WorkloadError> {
    let failed = |errno| WorkloadError::call("reading a directory", directory, errno);
    let flags = OpenFlags { nofollow: true, ..OpenFlags::DIRECTORY };
    let fd = fs.call(&Call::Open { at: directory.into(), flags, mode: Mode(0) }).fd().map_err(failed)?;
    let entries = fs.entries(fd);
    let _ = fs.call(&Call::Close { fd });
    entries.map_err(failed)
}
