//! A tree that is there already: what is in it, and whether it is ours to write to.

use crate::WorkloadError;
use crate::driver::{Driver, poll};
use posix::{At, Call, Errno, Fd, FileKind, FileSystem, Mode, OpenFlags, Stat};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file that marks a tree as made by `fsage age`: a JSON object in the tree's root. Only such a tree is ever
/// overwritten.
pub const AGED_MARKER: &str = ".fsage-aged";

/// A marker is a short record; anything longer is not one.
const MARKER_BYTES_MAX: u64 = 16 << 20;
/// Files whose extents are looked at for what reading them would not show.
const EXTENT_SAMPLE: usize = 64;

/// A regular file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) stat: Stat,
}

/// What was left out of a tree, and the first reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Skipped {
    count: u64,
    first: Option<String>,
}

impl Skipped {
    pub(crate) fn add(&mut self, path: &Path, why: &str) {
        self.count += 1;
        self.first.get_or_insert_with(|| format!("{}: {why}", path.display()));
    }

    /// A sentence for the reader, if anything was left out.
    pub(crate) fn note(&self, what: &str) -> Option<String> {
        let first = self.first.as_ref()?;
        Some(format!("{} {what}; the first is {first}", self.count))
    }
}

/// All regular files below the root that lie on the root's file system, in no meaning order; links are not followed.
/// The marker is not listed.
pub(crate) fn files(fs: &mut dyn FileSystem) -> Result<(Vec<Found>, Skipped), WorkloadError> {
    let mut skipped = Skipped::default();
    let root = root_stat(fs)?;
    let mut found = Vec::new();
    let mut pending = vec![PathBuf::from(".")];
    let mut driver = Driver::new(fs);
    while let Some(directory) = pending.pop() {
        poll()?;
        let entries = match entries(driver.fs, &directory) {
            Ok(entries) => entries,
            Err(errno) if directory == Path::new(".") => {
                return Err(WorkloadError::call("reading a directory", &directory, errno));
            }
            Err(errno) => {
                skipped.add(&directory, &errno.to_string());
                continue;
            }
        };
        for (name, _) in entries {
            let path = below(&directory, name);
            if path == Path::new(AGED_MARKER) {
                continue;
            }
            match driver.stat(&path) {
                Ok(stat) if stat.dev != root.dev => skipped.add(&path, "is on another file system"),
                Ok(stat) if stat.kind == FileKind::Directory => pending.push(path),
                Ok(stat) if stat.kind == FileKind::File => found.push(Found { path, stat }),
                Ok(_) => {}
                Err(errno) => skipped.add(&path, &errno.to_string()),
            }
        }
    }
    Ok((found, skipped))
}

/// A name in a directory, without `./` before what lies in the root.
pub(crate) fn below(directory: &Path, name: OsString) -> PathBuf {
    if directory == Path::new(".") { PathBuf::from(name) } else { directory.join(name) }
}

/// Attributes of the root directory.
pub(crate) fn root_stat(fs: &mut dyn FileSystem) -> Result<Stat, WorkloadError> {
    let path = Path::new(".");
    let stat = fs.call(&Call::Stat { at: path.into(), follow: true }).stat();
    stat.map_err(|errno| WorkloadError::call("looking at the tree", path, errno))
}

/// Whether files may be opened without changing their access time: root and the owner may.
pub(crate) fn may_noatime(fs: &mut dyn FileSystem) -> bool {
    let opened = open(fs, Path::new("."), OpenFlags { noatime: true, ..OpenFlags::DIRECTORY });
    match opened {
        Ok(fd) => {
            let _ = fs.call(&Call::Close { fd });
            true
        }
        Err(_) => false,
    }
}

/// Whether a file can be opened for reading.
pub(crate) fn can_be_read(fs: &mut dyn FileSystem, path: &Path, noatime: bool) -> Result<(), Errno> {
    let fd = open(fs, path, OpenFlags { nofollow: true, noatime, ..OpenFlags::READ })?;
    let _ = fs.call(&Call::Close { fd });
    Ok(())
}

fn open(fs: &mut dyn FileSystem, path: &Path, flags: OpenFlags) -> Result<Fd, Errno> {
    fs.call(&Call::Open { at: At::from(path), flags, mode: Mode(0) }).fd()
}

fn entries(fs: &mut dyn FileSystem, directory: &Path) -> Result<Vec<(OsString, FileKind)>, Errno> {
    let fd = open(fs, directory, OpenFlags { nofollow: true, read: true, ..OpenFlags::DIRECTORY })?;
    let entries = fs.entries(fd);
    let _ = fs.call(&Call::Close { fd });
    entries
}

/// Makes sure that a tree was made by `fsage age`, and is therefore ours to write to.
pub(crate) fn must_be_ours(fs: &mut dyn FileSystem) -> Result<(), WorkloadError> {
    let refuse = |why: String| Err(WorkloadError::NotOurs(format!("{AGED_MARKER} {why}")));
    let fd = match open(fs, Path::new(AGED_MARKER), OpenFlags { nofollow: true, ..OpenFlags::READ }) {
        Ok(fd) => fd,
        Err(Errno::ENOENT) => return refuse("is not there".into()),
        Err(errno) => return refuse(format!("cannot be opened: {errno}")),
    };
    let text = marker_text(fs, fd);
    let _ = fs.call(&Call::Close { fd });
    let text = match text {
        Ok(Some(text)) => text,
        Ok(None) => return refuse("is not an ordinary file of a marker's size".into()),
        Err(errno) => return refuse(format!("cannot be read: {errno}")),
    };
    match serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&text) {
        Ok(_) => Ok(()),
        Err(error) => refuse(format!("is not what `fsage age` writes: {error}")),
    }
}

fn marker_text(fs: &mut dyn FileSystem, fd: Fd) -> Result<Option<Vec<u8>>, Errno> {
    let stat = fs.call(&Call::Fstat { fd }).stat()?;
    if stat.kind != FileKind::File || stat.size_bytes > MARKER_BYTES_MAX {
        return Ok(None);
    }
    let mut text = vec![0; usize::try_from(stat.size_bytes).map_err(|_| Errno::EOVERFLOW)?];
    let got = fs.read_into(fd, 0, &mut text)?;
    text.truncate(got);
    Ok(Some(text))
}

/// Some files of a tree, evenly spread over the order they come in, without knowing how many will come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spread {
    seen: usize,
    /// One of `1 << thinned` files is kept.
    thinned: u32,
    paths: Vec<PathBuf>,
}

impl Spread {
    pub(crate) fn offer(&mut self, path: &Path) {
        if self.seen.is_multiple_of(1 << self.thinned) {
            if self.paths.len() == 2 * EXTENT_SAMPLE {
                let mut at = 0;
                self.paths.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.thinned += 1;
            }
            if self.seen.is_multiple_of(1 << self.thinned) {
                self.paths.push(path.to_path_buf());
            }
        }
        self.seen += 1;
    }

    /// What the extents of these files say that a rate alone would hide: preallocated extents are not read from the
    /// device at all.
    pub(crate) fn unwritten_note(&self, fs: &mut dyn FileSystem) -> Option<String> {
        let (mut looked_at, mut unwritten) = (0u64, 0u64);
        for path in &self.paths {
            let Ok(fd) = open(fs, path, OpenFlags { nofollow: true, ..OpenFlags::READ }) else { continue };
            if let Ok(extents) = fs.extents(fd) {
                looked_at += 1;
                unwritten += u64::from(extents.iter().any(|e| e.flags.unwritten));
            }
            let _ = fs.call(&Call::Close { fd });
        }
        (unwritten > 0).then(|| {
            format!(
                "{unwritten} of {looked_at} files looked at hold preallocated extents that were never written: reading \
                 those moves no data from the device, so read rates say nothing about it (a tree aged with \
                 --data=fallocate is like this)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_even_and_bounded() {
        for count in [0, 1, 100, 128, 129, 1000, 100_000] {
            let mut spread = Spread::default();
            for n in 0..count {
                spread.offer(Path::new(&n.to_string()));
            }
            let kept: Vec<usize> = spread.paths.iter().map(|p| p.to_str().unwrap().parse().unwrap()).collect();
            let step = 1 << spread.thinned;
            assert_eq!(kept, (0..count).step_by(step).collect::<Vec<_>>());
            assert!(
                kept.len() >= count.min(EXTENT_SAMPLE) && kept.len() <= 2 * EXTENT_SAMPLE,
                "{count}: {}",
                kept.len()
            );
        }
    }
}
