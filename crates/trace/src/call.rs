//! What a call asked: one variant for each operation, with what that call has and nothing else.
//!
//! What lives here: [`Call`], what its variants carry, and the questions that are the same for several of them. What
//! may not: what all calls have ([`Head`](crate::Head)), and how a file keeps them ([`Row`](crate::profile::Row)).

use crate::{FileId, OfdId, Op, PathId};

/// A file that a call names, so far as the trace alone can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Absolute path: `caller_dir` and the path as given, with `.`, `..` and repeated slashes left in, so that the
    /// components the kernel walked can be counted.
    pub path: Option<PathId>,
    /// The directory the walk of `path` started in where the given path was relative; `None` where it was absolute.
    pub caller_dir: Option<PathId>,
    /// The file's identity.
    pub file: Option<FileId>,
    /// Its directory's identity.
    pub parent: Option<FileId>,
    /// The file's length before the call, bytes.
    pub size_before: Option<u64>,
}

/// A file that a call uses through a description, so far as the trace alone can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The description.
    pub ofd: Option<OfdId>,
    /// Its path.
    pub path: Option<PathId>,
    /// The file's identity.
    pub file: Option<FileId>,
    /// Its directory's identity.
    pub parent: Option<FileId>,
    /// The file's length before the call, bytes.
    pub size_before: Option<u64>,
}

/// How a call that takes a path or a descriptor came to its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// By an absolute path, or by a description that is not known.
    #[default]
    Path,
    /// By a path from this directory on.
    Dir(PathId),
    /// By a description.
    Ofd(OfdId),
}

/// A file of a call that takes either a path or a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// How the call came to it.
    pub via: Via,
    /// Its path, as in [`Named`] or [`Opened`].
    pub path: Option<PathId>,
    /// The file's identity.
    pub file: Option<FileId>,
    /// Its directory's identity.
    pub parent: Option<FileId>,
    /// The file's length before the call, bytes.
    pub size_before: Option<u64>,
}

/// A part of an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The file.
    pub of: Opened,
    /// Where it begins, resolved, bytes.
    pub offset: Option<u64>,
    /// How long it is, as asked for, bytes.
    pub bytes: Option<u64>,
}

/// A part of a file that was touched through a mapping: no description is left, and no call was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mapped {
    /// The file's path.
    pub path: Option<PathId>,
    /// The file's identity.
    pub file: Option<FileId>,
    /// Its directory's identity.
    pub parent: Option<FileId>,
    /// The file's length before, bytes.
    pub size_before: Option<u64>,
    /// Where the part begins, bytes.
    pub offset: Option<u64>,
    /// How long it is, bytes.
    pub bytes: Option<u64>,
}

/// The name that a call gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// As [`Named::path`].
    pub path: Option<PathId>,
    /// As [`Named::caller_dir`].
    pub caller_dir: Option<PathId>,
}

/// Where a copy goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Destination {
    /// The description.
    pub ofd: Option<OfdId>,
    /// Its path; `None` where it is no file.
    pub path: Option<PathId>,
    /// The offset there, resolved, bytes.
    pub offset: Option<u64>,
}

/// What a call asked for. `None` means unknown; nothing is guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`Op::Open`]: what was opened, the description made, and the permission bits given to a creating open.
    #[allow(missing_docs)]
    Open { at: Named, ofd: Option<OfdId>, mode: Option<u16> },
    /// [`Op::Close`].
    Close(Opened),
    /// [`Op::Read`].
    Read(Range),
    /// [`Op::Write`].
    Write(Range),
    /// [`Op::Seek`].
    Seek(Opened),
    /// [`Op::Fsync`].
    Fsync(Opened),
    /// [`Op::Fdatasync`].
    Fdatasync(Opened),
    /// [`Op::SyncRange`]: the range, and what was done of it (1 wait before, 2 write, 4 wait after).
    #[allow(missing_docs)]
    SyncRange { range: Range, how: Option<u16> },
    /// [`Op::Sync`].
    Sync,
    /// [`Op::SyncFs`].
    SyncFs(Opened),
    /// [`Op::Msync`]: bytes asked for.
    #[allow(missing_docs)]
    Msync { bytes: Option<u64> },
    /// [`Op::Truncate`]: the file by its path, and its new length.
    #[allow(missing_docs)]
    Truncate { at: Named, len: Option<u64> },
    /// [`Op::Ftruncate`]: the file by a description, and its new length.
    #[allow(missing_docs)]
    Ftruncate { of: Opened, len: Option<u64> },
    /// [`Op::Fallocate`].
    Fallocate(Range),
    /// [`Op::Copy`]: the source and the offset there (resolved), the destination, and the bytes asked for.
    #[allow(missing_docs)]
    Copy { from: Opened, offset: Option<u64>, to: Destination, bytes: Option<u64> },
    /// [`Op::Fadvise`]: the range, and the advice (`POSIX_FADV_*`; 4 is `DONTNEED`).
    #[allow(missing_docs)]
    Fadvise { range: Range, how: Option<u16> },
    /// [`Op::Readahead`].
    Readahead(Range),
    /// [`Op::Stat`].
    Stat(Named),
    /// [`Op::Fstat`].
    Fstat(Opened),
    /// [`Op::StatFs`].
    StatFs(About),
    /// [`Op::Access`]: what was asked for, and how (4 read, 2 write, 1 execute).
    #[allow(missing_docs)]
    Access { at: Named, mode: Option<u16> },
    /// [`Op::ReadLink`]: the link, and the bytes there was room for.
    #[allow(missing_docs)]
    ReadLink { at: Named, bytes: Option<u64> },
    /// [`Op::GetDents`]: the directory, and the bytes there was room for.
    #[allow(missing_docs)]
    GetDents { of: Opened, bytes: Option<u64> },
    /// [`Op::Mkdir`]: the name, and the permission bits given.
    #[allow(missing_docs)]
    Mkdir { at: Named, mode: Option<u16> },
    /// [`Op::Rmdir`].
    Rmdir(Named),
    /// [`Op::Unlink`].
    Unlink(Named),
    /// [`Op::Rename`]: the name, and the one it gets.
    #[allow(missing_docs)]
    Rename { from: Named, to: Target },
    /// [`Op::Link`]: the file, and its new name.
    #[allow(missing_docs)]
    Link { from: About, to: Target },
    /// [`Op::Symlink`]: the link, and its target as given.
    #[allow(missing_docs)]
    Symlink { at: Named, target: Option<PathId> },
    /// [`Op::Mknod`]: the name, and the permission bits given.
    #[allow(missing_docs)]
    Mknod { at: Named, mode: Option<u16> },
    /// [`Op::Chmod`]: the name, and the permission bits given.
    #[allow(missing_docs)]
    Chmod { at: Named, mode: Option<u16> },
    /// [`Op::Fchmod`]: the file, and its new permission bits.
    #[allow(missing_docs)]
    Fchmod { of: Opened, mode: Option<u16> },
    /// [`Op::Chown`].
    Chown(Named),
    /// [`Op::Fchown`].
    Fchown(Opened),
    /// [`Op::Utimens`].
    Utimens(Named),
    /// [`Op::Futimens`].
    Futimens(Opened),
    /// [`Op::SetXattr`]: the file, and the length of the value.
    #[allow(missing_docs)]
    SetXattr { on: About, bytes: Option<u64> },
    /// [`Op::GetXattr`].
    GetXattr(About),
    /// [`Op::ListXattr`].
    ListXattr(About),
    /// [`Op::RemoveXattr`].
    RemoveXattr(About),
    /// [`Op::Mmap`].
    Mmap(Range),
    /// [`Op::MapRead`].
    MapRead(Mapped),
    /// [`Op::MapWrite`].
    MapWrite(Mapped),
    /// [`Op::Dup`].
    Dup(Opened),
    /// [`Op::Fcntl`].
    Fcntl(Opened),
    /// [`Op::Ioctl`].
    Ioctl(Opened),
    /// [`Op::Chdir`].
    Chdir(Named),
    /// [`Op::Fchdir`].
    Fchdir(Opened),
    /// [`Op::Exec`].
    Exec(Named),
    /// [`Op::Clone`].
    Clone,
    /// [`Op::Exit`].
    Exit,
    /// [`Op::IoUring`].
    IoUring,
    /// [`Op::Other`].
    Other(About),
}

/// The calls on names.
macro_rules! of_name {
    ($x:ident) => {
        Call::Open { at: $x, .. }
            | Call::Truncate { at: $x, .. }
            | Call::Stat($x)
            | Call::Access { at: $x, .. }
            | Call::ReadLink { at: $x, .. }
            | Call::Mkdir { at: $x, .. }
            | Call::Rmdir($x)
            | Call::Unlink($x)
            | Call::Rename { from: $x, .. }
            | Call::Symlink { at: $x, .. }
            | Call::Mknod { at: $x, .. }
            | Call::Chmod { at: $x, .. }
            | Call::Chown($x)
            | Call::Utimens($x)
            | Call::Chdir($x)
            | Call::Exec($x)
    };
}

/// The calls on descriptions alone.
macro_rules! of_description {
    ($x:ident) => {
        Call::Close($x)
            | Call::Seek($x)
            | Call::Fsync($x)
            | Call::Fdatasync($x)
            | Call::SyncFs($x)
            | Call::Ftruncate { of: $x, .. }
            | Call::Copy { from: $x, .. }
            | Call::Fstat($x)
            | Call::GetDents { of: $x, .. }
            | Call::Fchmod { of: $x, .. }
            | Call::Fchown($x)
            | Call::Futimens($x)
            | Call::Dup($x)
            | Call::Fcntl($x)
            | Call::Ioctl($x)
            | Call::Fchdir($x)
    };
}

/// The calls on part of a file.
macro_rules! of_range {
    ($x:ident) => {
        Call::Read($x)
            | Call::Write($x)
            | Call::SyncRange { range: $x, .. }
            | Call::Fallocate($x)
            | Call::Fadvise { range: $x, .. }
            | Call::Readahead($x)
            | Call::Mmap($x)
    };
}

/// The calls that take either.
macro_rules! of_about {
    ($x:ident) => {
        Call::StatFs($x)
            | Call::Link { from: $x, .. }
            | Call::SetXattr { on: $x, .. }
            | Call::GetXattr($x)
            | Call::ListXattr($x)
            | Call::RemoveXattr($x)
            | Call::Other($x)
    };
}

/// The accesses through mappings.
macro_rules! of_mapping {
    ($x:ident) => {
        Call::MapRead($x) | Call::MapWrite($x)
    };
}

/// The calls with a mode.
macro_rules! with_mode {
    ($x:ident) => {
        Call::Open { mode: $x, .. }
            | Call::SyncRange { how: $x, .. }
            | Call::Fadvise { how: $x, .. }
            | Call::Access { mode: $x, .. }
            | Call::Mkdir { mode: $x, .. }
            | Call::Mknod { mode: $x, .. }
            | Call::Chmod { mode: $x, .. }
            | Call::Fchmod { mode: $x, .. }
    };
}

/// The calls with a number of bytes that are about no range.
macro_rules! with_bytes {
    ($x:ident) => {
        Call::Msync { bytes: $x, .. }
            | Call::Truncate { len: $x, .. }
            | Call::Ftruncate { len: $x, .. }
            | Call::Copy { bytes: $x, .. }
            | Call::ReadLink { bytes: $x, .. }
            | Call::GetDents { bytes: $x, .. }
            | Call::SetXattr { bytes: $x, .. }
    };
}

/// The calls that give another name.
macro_rules! with_target {
    ($x:ident) => {
        Call::Rename { to: $x, .. } | Call::Link { to: $x, .. }
    };
}

impl Call {
    /// The operation.
    #[inline]
    pub fn op(&self) -> Op {
        match self {
            Call::Open { .. } => Op::Open,
            Call::Close(_) => Op::Close,
            Call::Read(_) => Op::Read,
            Call::Write(_) => Op::Write,
            Call::Seek(_) => Op::Seek,
            Call::Fsync(_) => Op::Fsync,
            Call::Fdatasync(_) => Op::Fdatasync,
            Call::SyncRange { .. } => Op::SyncRange,
            Call::Sync => Op::Sync,
            Call::SyncFs(_) => Op::SyncFs,
            Call::Msync { .. } => Op::Msync,
            Call::Truncate { .. } => Op::Truncate,
            Call::Ftruncate { .. } => Op::Ftruncate,
            Call::Fallocate(_) => Op::Fallocate,
            Call::Copy { .. } => Op::Copy,
            Call::Fadvise { .. } => Op::Fadvise,
            Call::Readahead(_) => Op::Readahead,
            Call::Stat(_) => Op::Stat,
            Call::Fstat(_) => Op::Fstat,
            Call::StatFs(_) => Op::StatFs,
            Call::Access { .. } => Op::Access,
            Call::ReadLink { .. } => Op::ReadLink,
            Call::GetDents { .. } => Op::GetDents,
            Call::Mkdir { .. } => Op::Mkdir,
            Call::Rmdir(_) => Op::Rmdir,
            Call::Unlink(_) => Op::Unlink,
            Call::Rename { .. } => Op::Rename,
            Call::Link { .. } => Op::Link,
            Call::Symlink { .. } => Op::Symlink,
            Call::Mknod { .. } => Op::Mknod,
            Call::Chmod { .. } => Op::Chmod,
            Call::Fchmod { .. } => Op::Fchmod,
            Call::Chown(_) => Op::Chown,
            Call::Fchown(_) => Op::Fchown,
            Call::Utimens(_) => Op::Utimens,
            Call::Futimens(_) => Op::Futimens,
            Call::SetXattr { .. } => Op::SetXattr,
            Call::GetXattr(_) => Op::GetXattr,
            Call::ListXattr(_) => Op::ListXattr,
            Call::RemoveXattr(_) => Op::RemoveXattr,
            Call::Mmap(_) => Op::Mmap,
            Call::MapRead(_) => Op::MapRead,
            Call::MapWrite(_) => Op::MapWrite,
            Call::Dup(_) => Op::Dup,
            Call::Fcntl(_) => Op::Fcntl,
            Call::Ioctl(_) => Op::Ioctl,
            Call::Chdir(_) => Op::Chdir,
            Call::Fchdir(_) => Op::Fchdir,
            Call::Exec(_) => Op::Exec,
            Call::Clone => Op::Clone,
            Call::Exit => Op::Exit,
            Call::IoUring => Op::IoUring,
            Call::Other(_) => Op::Other,
        }
    }

    /// The file of a call on a name; `None` for the calls that use a description, or may.
    #[inline]
    pub fn named(&self) -> Option<&Named> {
        match self {
            of_name!(at) => Some(at),
            _ => None,
        }
    }

    /// The file of a call on a description alone.
    #[inline]
    pub fn opened(&self) -> Option<&Opened> {
        match self {
            of_description!(of) => Some(of),
            of_range!(range) => Some(&range.of),
            _ => None,
        }
    }

    /// The description used (or made, by open).
    #[inline]
    pub fn ofd(&self) -> Option<OfdId> {
        match self {
            Call::Open { ofd, .. } => *ofd,
            of_description!(of) => of.ofd,
            of_range!(range) => range.of.ofd,
            of_about!(about) => match about.via {
                Via::Ofd(ofd) => Some(ofd),
                Via::Path | Via::Dir(_) => None,
            },
            _ => None,
        }
    }

    /// Second description: the destination of a copy.
    #[inline]
    pub fn ofd2(&self) -> Option<OfdId> {
        match self {
            Call::Copy { to, .. } => to.ofd,
            _ => None,
        }
    }

    /// The file the call is about.
    #[inline]
    pub fn file(&self) -> Option<FileId> {
        match self {
            of_name!(at) => at.file,
            of_description!(of) => of.file,
            of_range!(range) => range.of.file,
            of_about!(about) => about.file,
            of_mapping!(mapped) => mapped.file,
            Call::Msync { .. } | Call::Sync | Call::Clone | Call::Exit | Call::IoUring => None,
        }
    }

    /// Its directory.
    #[inline]
    pub fn parent(&self) -> Option<FileId> {
        match self {
            of_name!(at) => at.parent,
            of_description!(of) => of.parent,
            of_range!(range) => range.of.parent,
            of_about!(about) => about.parent,
            of_mapping!(mapped) => mapped.parent,
            Call::Msync { .. } | Call::Sync | Call::Clone | Call::Exit | Call::IoUring => None,
        }
    }

    /// The path: [`Named::path`]; for calls on descriptors, the description's.
    #[inline]
    pub fn path(&self) -> Option<PathId> {
        match self {
            of_name!(at) => at.path,
            of_description!(of) => of.path,
            of_range!(range) => range.of.path,
            of_about!(about) => about.path,
            of_mapping!(mapped) => mapped.path,
            Call::Msync { .. } | Call::Sync | Call::Clone | Call::Exit | Call::IoUring => None,
        }
    }

    /// The second path of rename, link, symlink (the target as given) and copy.
    #[inline]
    pub fn path2(&self) -> Option<PathId> {
        match self {
            with_target!(to) => to.path,
            Call::Symlink { target, .. } => *target,
            Call::Copy { to, .. } => to.path,
            _ => None,
        }
    }

    /// The directory the walk of [`path`](Call::path) started in where the given path was relative.
    #[inline]
    pub fn caller_dir(&self) -> Option<PathId> {
        match self {
            of_name!(at) => at.caller_dir,
            of_about!(about) => match about.via {
                Via::Dir(dir) => Some(dir),
                Via::Path | Via::Ofd(_) => None,
            },
            _ => None,
        }
    }

    /// The same for [`path2`](Call::path2).
    #[inline]
    pub fn caller_dir2(&self) -> Option<PathId> {
        match self {
            with_target!(to) => to.caller_dir,
            _ => None,
        }
    }

    /// Resolved file offset, bytes; of a copy, the source's.
    #[inline]
    pub fn offset(&self) -> Option<u64> {
        match self {
            of_range!(range) => range.offset,
            of_mapping!(mapped) => mapped.offset,
            Call::Copy { offset, .. } => *offset,
            _ => None,
        }
    }

    /// Resolved destination offset of a copy, bytes.
    #[inline]
    pub fn offset2(&self) -> Option<u64> {
        match self {
            Call::Copy { to, .. } => to.offset,
            _ => None,
        }
    }

    /// Bytes asked for; new length of a truncate.
    #[inline]
    pub fn req_bytes(&self) -> Option<u64> {
        match self {
            of_range!(range) => range.bytes,
            of_mapping!(mapped) => mapped.bytes,
            with_bytes!(bytes) => *bytes,
            _ => None,
        }
    }

    /// The file's length before the call, bytes.
    #[inline]
    pub fn size_before(&self) -> Option<u64> {
        match self {
            of_name!(at) => at.size_before,
            of_description!(of) => of.size_before,
            of_range!(range) => range.of.size_before,
            of_about!(about) => about.size_before,
            of_mapping!(mapped) => mapped.size_before,
            Call::Msync { .. } | Call::Sync | Call::Clone | Call::Exit | Call::IoUring => None,
        }
    }

    /// Permission bits given to creating calls and chmod; what `access` asked, what `sync_file_range` did, which advice
    /// `fadvise` gave.
    #[inline]
    pub fn mode(&self) -> Option<u16> {
        match self {
            with_mode!(mode) => *mode,
            _ => None,
        }
    }
}
