//! Copying files out of an image.

use crate::{FileType, Ino, Time, mode};
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

/// What is known of a file before its data is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Type and permissions.
    pub mode: u16,
    /// Links.
    pub nlink: i16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// Last read.
    pub atime: Time,
    /// Last modified.
    pub mtime: Time,
    /// Of a device: major and minor number.
    pub device: (u32, u32),
}

/// What is done with each name of a tree: its path below where the walk began, which begins with `.`; its inode.
pub type EachName<'a, T> = &'a mut dyn FnMut(&[u8], Ino, &<T as Tree>::Inode) -> Result<(), <T as Tree>::Error>;

/// What is done with each piece of a file: its byte in the file, its bytes.
pub type EachPiece<'a, E> = &'a mut dyn FnMut(u64, &[u8]) -> Result<(), E>;

/// A file system that files are copied out of.
pub trait Tree {
    /// An inode as it reads them.
    type Inode;
    /// Its errors.
    type Error;

    /// The inode that a path names.
    fn find(&self, path: &[u8]) -> Result<Ino, Self::Error>;
    /// Every name below an inode, itself first, directories before what is in them.
    fn each_name(&self, from: Ino, each: EachName<'_, Self>) -> Result<(), Self::Error>;
    /// What is known of an inode.
    fn status(&self, inode: &Self::Inode) -> Status;
    /// Hands over a file's data in order; holes are left out.
    fn each_piece(&self, ino: Ino, inode: &Self::Inode, each: EachPiece<'_, Self::Error>) -> Result<(), Self::Error>;
    /// The target of a symbolic link.
    fn target(&self, ino: Ino, inode: &Self::Inode) -> Result<Vec<u8>, Self::Error>;
    /// An error of something outside the image.
    fn host_error(path: String, doing: &'static str, source: io::Error) -> Self::Error;
    /// An inode that cannot be what it says.
    fn inode_error(ino: Ino, problem: String) -> Self::Error;
    /// Stopped by the caller.
    fn interrupted() -> Self::Error;
}

/// Copies what `path` names in the image to `to`, which must not be there yet (or be an empty directory, for a directory):
/// names, data with holes, modes, times, links. Nothing that is there is overwritten, and no name of the image leads out
/// of `to`. `go_on` is asked before each file.
pub fn extract<T: Tree>(
    image: &T,
    path: &[u8],
    to: &Path,
    options: ExtractOptions,
    go_on: &mut dyn FnMut(&Extracted) -> bool,
) -> Result<Extracted, T::Error> {
    let from = image.find(path)?;
    let mut out =
        Extraction { image, options, done: Extracted::default(), names: BTreeMap::new(), directories: Vec::new() };
    image.each_name(from, &mut |below, ino, inode| {
        if !go_on(&out.done) {
            return Err(T::interrupted());
        }
        let below = below.strip_prefix(b"./").unwrap_or_default();
        let target = if below.is_empty() { to.to_owned() } else { to.join(OsStr::from_bytes(below)) };
        out.one(&target, ino, inode)
    })?;
    out.finish_directories()?;
    Ok(out.done)
}

struct Extraction<'a, T> {
    image: &'a T,
    options: ExtractOptions,
    done: Extracted,
    /// Where files with several names are.
    names: BTreeMap<Ino, PathBuf>,
    /// Directories get their modes and times last: making their entries changes both, and may need the right to write.
    directories: Vec<(PathBuf, Status)>,
}

fn host<T: Tree>(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> T::Error {
    let path = path.display().to_string();
    move |source| T::host_error(path, doing, source)
}

impl<T: Tree> Extraction<'_, T> {
    fn one(&mut self, target: &Path, ino: Ino, inode: &T::Inode) -> Result<(), T::Error> {
        let status = self.image.status(inode);
        let Some(kind) = FileType::of(status.mode) else {
            return Err(T::inode_error(ino, format!("mode 0{:o} is of no known type", status.mode)));
        };
        if let Some(first) = self.names.get(&ino) {
            std::fs::hard_link(first, target).map_err(host::<T>(target, "link"))?;
            self.done.hard_links += 1;
            return Ok(());
        }
        match kind {
            FileType::Directory => return self.directory(target, status),
            FileType::Regular => self.regular(target, ino, inode, status.size)?,
            FileType::Symlink => {
                let text = self.image.target(ino, inode)?;
                std::os::unix::fs::symlink(OsStr::from_bytes(&text), target)
                    .map_err(host::<T>(target, "make the link"))?;
                self.done.symlinks += 1;
            }
            FileType::Whiteout => {
                self.done.left_out.push(format!("{}: a whiteout has no counterpart here", target.display()));
                return Ok(());
            }
            special => {
                if !self.special(target, special, status.device)? {
                    return Ok(());
                }
            }
        }
        if status.nlink > 1 {
            self.names.insert(ino, target.to_owned());
        }
        self.attributes(target, &status, kind)
    }

    fn directory(&mut self, target: &Path, status: Status) -> Result<(), T::Error> {
        let first = self.directories.is_empty();
        let empty = || std::fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_none());
        match std::fs::create_dir(target) {
            // Only the destination itself may be there already.
            Err(error) if first && error.kind() == io::ErrorKind::AlreadyExists && empty() => {}
            other => other.map_err(host::<T>(target, "make the directory"))?,
        }
        self.directories.push((target.to_owned(), status));
        self.done.directories += 1;
        Ok(())
    }

    fn regular(&mut self, target: &Path, ino: Ino, inode: &T::Inode, size: u64) -> Result<(), T::Error> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(target, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| host::<T>(target, "make the file")(errno.into()))?;
        let file = File::from(fd);
        self.image.each_piece(ino, inode, &mut |at, bytes| {
            self.done.data_bytes += bytes.len() as u64;
            file.write_all_at(bytes, at).map_err(host::<T>(target, "write"))
        })?;
        file.set_len(size).map_err(host::<T>(target, "set the size"))?;
        self.done.files += 1;
        Ok(())
    }

    /// Whether it could be made: devices need root.
    fn special(&mut self, target: &Path, kind: FileType, (major, minor): (u32, u32)) -> Result<bool, T::Error> {
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
            Err(errno) => Err(host::<T>(target, "make the special file")(errno.into())),
        }
    }

    fn attributes(&self, target: &Path, status: &Status, kind: FileType) -> Result<(), T::Error> {
        if self.options.owners {
            let (uid, gid) = (Uid::from_raw(status.uid), Gid::from_raw(status.gid));
            rustix::fs::chownat(CWD, target, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|errno| host::<T>(target, "set the owner")(errno.into()))?;
        }
        if kind != FileType::Symlink {
            // After the owner, for a change of owner clears set-id bits.
            let mode = Mode::from_raw_mode((status.mode & mode::PERMISSIONS).into());
            rustix::fs::chmodat(CWD, target, mode, AtFlags::empty())
                .map_err(|errno| host::<T>(target, "set the mode")(errno.into()))?;
        }
        let times = Timestamps { last_access: timespec(&status.atime), last_modification: timespec(&status.mtime) };
        rustix::fs::utimensat(CWD, target, &times, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| host::<T>(target, "set the times")(errno.into()))
    }

    fn finish_directories(&mut self) -> Result<(), T::Error> {
        for (target, status) in self.directories.iter().rev() {
            self.attributes(target, status, FileType::Directory)?;
        }
        Ok(())
    }
}

fn timespec(time: &Time) -> Timespec {
    // A foreign number of nanoseconds is cut to what the call takes.
    Timespec { tv_sec: time.s, tv_nsec: i64::from(time.ns.clamp(0, 999_999_999)) }
}
