//! Copying files out of an image.

use crate::format::{FileType, Ino, Time};
use crate::{Dinode, FfsError, Image, Store};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// What to preserve.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtractOptions {
    /// Give files their owners; needs root.
    pub owners: bool,
}

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Extracted {
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Further names of files copied already.
    pub hard_links: u64,
    /// Pipes, sockets, devices.
    pub specials: u64,
    /// Bytes of data, holes not counted.
    pub data_bytes: u64,
    /// What could not be made here, with the reason.
    pub left_out: Vec<String>,
}

impl Extracted {
    /// Counts what another copy has done as well.
    pub fn add(&mut self, other: Extracted) {
        self.files += other.files;
        self.directories += other.directories;
        self.symlinks += other.symlinks;
        self.hard_links += other.hard_links;
        self.specials += other.specials;
        self.data_bytes += other.data_bytes;
        self.left_out.extend(other.left_out);
    }
}

/// Copies what `path` names in the image to `to`, which must not be there yet (or be an empty directory, for a directory):
/// names, data with holes, modes, times, links. Nothing that is there is overwritten, and no name of the image leads out
/// of `to`. `go_on` is asked before each file.
pub fn extract<S: Store>(
    image: &Image<S>,
    path: &[u8],
    to: &Path,
    options: ExtractOptions,
    go_on: &mut dyn FnMut(&Extracted) -> bool,
) -> Result<Extracted, FfsError> {
    let (from, _) = image.resolve(path)?;
    let mut out =
        Extraction { image, options, done: Extracted::default(), names: BTreeMap::new(), directories: Vec::new() };
    image.walk(from, &mut |below, ino, inode| {
        if !go_on(&out.done) {
            return Err(FfsError::interrupted());
        }
        let below = below.strip_prefix(b"./").unwrap_or_default();
        let target = if below.is_empty() { to.to_owned() } else { to.join(OsStr::from_bytes(below)) };
        out.one(&target, ino, inode)
    })?;
    out.finish_directories()?;
    Ok(out.done)
}

struct Extraction<'a, S> {
    image: &'a Image<S>,
    options: ExtractOptions,
    done: Extracted,
    /// Where files with several names are.
    names: BTreeMap<Ino, PathBuf>,
    /// Directories get their modes and times last: making their entries changes both, and may need the right to write.
    directories: Vec<(PathBuf, Dinode)>,
}

fn host(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> FfsError {
    let path = path.display().to_string();
    move |source| FfsError::Host { path, doing, source }
}

impl<S: Store> Extraction<'_, S> {
    fn one(&mut self, target: &Path, ino: Ino, inode: &Dinode) -> Result<(), FfsError> {
        let Some(kind) = inode.file_type() else {
            return Err(FfsError::Inode { ino: ino.0, problem: format!("mode 0{:o} is of no known type", inode.mode) });
        };
        if let Some(first) = self.names.get(&ino) {
            std::fs::hard_link(first, target).map_err(host(target, "link"))?;
            self.done.hard_links += 1;
            return Ok(());
        }
        match kind {
            FileType::Directory => return self.directory(target, inode),
            FileType::Regular => self.regular(target, ino, inode)?,
            FileType::Symlink => {
                let text = self.image.symlink(ino, inode)?;
                std::os::unix::fs::symlink(OsStr::from_bytes(&text), target).map_err(host(target, "make the link"))?;
                self.done.symlinks += 1;
            }
            FileType::Whiteout => {
                self.done.left_out.push(format!("{}: a whiteout has no counterpart here", target.display()));
                return Ok(());
            }
            special => {
                if !self.special(target, special, inode)? {
                    return Ok(());
                }
            }
        }
        if inode.nlink > 1 {
            self.names.insert(ino, target.to_owned());
        }
        self.attributes(target, inode, kind)
    }

    fn directory(&mut self, target: &Path, inode: &Dinode) -> Result<(), FfsError> {
        let first = self.directories.is_empty();
        let empty = || std::fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_none());
        match std::fs::create_dir(target) {
            // Only the destination itself may be there already.
            Err(error) if first && error.kind() == io::ErrorKind::AlreadyExists && empty() => {}
            other => other.map_err(host(target, "make the directory"))?,
        }
        self.directories.push((target.to_owned(), inode.clone()));
        self.done.directories += 1;
        Ok(())
    }

    fn regular(&mut self, target: &Path, ino: Ino, inode: &Dinode) -> Result<(), FfsError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(target, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| host(target, "make the file")(errno.into()))?;
        let file = File::from(fd);
        self.image.data(ino, inode, &mut |at, bytes| {
            self.done.data_bytes += bytes.len() as u64;
            file.write_all_at(bytes, at).map_err(host(target, "write"))
        })?;
        file.set_len(inode.size).map_err(host(target, "set the size"))?;
        self.done.files += 1;
        Ok(())
    }

    /// Whether it could be made: devices need root.
    fn special(&mut self, target: &Path, kind: FileType, inode: &Dinode) -> Result<bool, FfsError> {
        let (major, minor) = inode.device();
        let kind_here = match kind {
            FileType::CharDevice => rustix::fs::FileType::CharacterDevice,
            FileType::BlockDevice => rustix::fs::FileType::BlockDevice,
            FileType::Socket => rustix::fs::FileType::Socket,
            _ => rustix::fs::FileType::Fifo,
        };
        let device = if kind_here.is_fifo() || kind_here.is_socket() { 0 } else { rustix::fs::makedev(major, minor) };
        match rustix::fs::mknodat(CWD, target, kind_here, Mode::RUSR | Mode::WUSR, device) {
            Ok(()) => {
                self.done.specials += 1;
                Ok(true)
            }
            Err(rustix::io::Errno::PERM) => {
                self.done.left_out.push(format!("{}: making a {kind} needs root", target.display()));
                Ok(false)
            }
            Err(errno) => Err(host(target, "make the special file")(errno.into())),
        }
    }

    fn attributes(&self, target: &Path, inode: &Dinode, kind: FileType) -> Result<(), FfsError> {
        if self.options.owners {
            let (uid, gid) = (Uid::from_raw(inode.uid), Gid::from_raw(inode.gid));
            rustix::fs::chownat(CWD, target, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|errno| host(target, "set the owner")(errno.into()))?;
        }
        if kind != FileType::Symlink {
            // After the owner, for a change of owner clears set-id bits.
            let mode = Mode::from_raw_mode(inode.permissions().into());
            rustix::fs::chmodat(CWD, target, mode, AtFlags::empty())
                .map_err(|errno| host(target, "set the mode")(errno.into()))?;
        }
        let times = Timestamps { last_access: timespec(&inode.atime), last_modification: timespec(&inode.mtime) };
        rustix::fs::utimensat(CWD, target, &times, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| host(target, "set the times")(errno.into()))
    }

    fn finish_directories(&mut self) -> Result<(), FfsError> {
        for (target, inode) in self.directories.iter().rev() {
            self.attributes(target, inode, FileType::Directory)?;
        }
        Ok(())
    }
}

fn timespec(time: &Time) -> Timespec {
    // A foreign number of nanoseconds is cut to what the call takes.
    Timespec { tv_sec: time.s, tv_nsec: i64::from(time.ns.clamp(0, 999_999_999)) }
}
