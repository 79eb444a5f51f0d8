//! A traced call in the terms of the kernel, free of any tracer's notation.
//!
//! Importers decode their text into these; the [tracker](super::Tracker) alone decides what they mean.

use crate::Op;
use std::borrow::Cow;

/// A descriptor argument: its number, and what the tracer says it stood for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fd<'a> {
    /// The number.
    pub number: i32,
    /// What the tracer saw behind it (`strace -y`); `None` if it did not look.
    pub seen: Option<Seen<'a>>,
}

/// What stands behind a descriptor, as the tracer prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen<'a> {
    /// A file's path, still in the tracer's escapes, and whether its name is gone.
    Path {
        /// The path as printed; equal text means equal path, so most uses need not unescape it.
        raw: &'a [u8],
        /// The name was removed.
        deleted: bool,
        /// Who it is, from a tracer that knows.
        who: Option<Who>,
    },
    /// A file whose path could not be shown, as it is too long.
    Unnamed(Who),
    /// A pipe, socket, device or other object that is not a file of a file system.
    Foreign,
}

/// An open file as the kernel itself knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// The description, while it is open.
    pub description: u64,
    /// The file, while it is there.
    pub inode: Inode,
}

/// A file as its file system knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inode {
    /// Device.
    pub dev: u32,
    /// Which of those that had the number, where the file system tells.
    pub generation: u32,
    /// Number.
    pub ino: u64,
}

/// Where a path argument starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start<'a> {
    /// The working directory, and its path where the tracer shows it (as [`Seen::Path`]'s `raw`).
    Cwd(Option<&'a [u8]>),
    /// An open directory.
    Fd(Fd<'a>),
}

/// A path argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At<'a> {
    /// The directory a relative path starts in.
    pub start: Start<'a>,
    /// The path as given; `None` if the tracer could not read it (a bad pointer) or shows none.
    pub path: Option<Cow<'a, [u8]>>,
}

/// What an object is, as far as a stat told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing said so far.
    Unknown,
    /// An ordinary file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, socket or device.
    Special,
}

/// The attributes a stat returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attrs {
    /// What it is.
    pub kind: Kind,
    /// Permission bits.
    pub mode: u16,
    /// Length in bytes, where printed (devices print none).
    pub size: Option<u64>,
}

/// How the kernel answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// The returned value; -1 on failure.
    pub ret: i64,
    /// Error number, 0 on success.
    pub errno: u16,
    /// How long it took.
    pub dur_ns: u64,
    /// What the tracer saw behind a returned descriptor.
    pub seen: Option<Seen<'a>>,
    /// It never returned.
    pub unfinished: bool,
}

impl Outcome<'_> {
    /// Whether the call took effect.
    pub fn ok(&self) -> bool {
        self.errno == 0 && !self.unfinished
    }
}

/// Where a call's time went, from a tracer that knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// On a processor.
    pub running_ns: u64,
    /// Asleep.
    pub blocked_ns: u64,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The fields are the system call's own arguments.
pub enum Call<'a> {
    /// `flags` are the bits of [`crate::flag`].
    Open {
        at: At<'a>,
        flags: u32,
        mode: Option<u16>,
    },
    Close {
        fd: Fd<'a>,
    },
    CloseRange {
        first: u32,
        last: u32,
        cloexec: bool,
        unshare: bool,
    },
    /// read and write in all their forms. `offset` is set for the positional ones.
    Transfer {
        write: bool,
        fd: Fd<'a>,
        len: Option<u64>,
        offset: Option<u64>,
        sync: bool,
        append: bool,
    },
    Seek {
        fd: Fd<'a>,
        by: i64,
        whence: u32,
    },
    /// A call on a descriptor that changes neither offset, length nor name.
    OnFd {
        op: Op,
        fd: Fd<'a>,
        offset: Option<u64>,
        len: Option<u64>,
        mode: Option<u16>,
    },
    /// A call on a path that changes neither length nor name.
    OnPath {
        op: Op,
        at: At<'a>,
        nofollow: bool,
        mode: Option<u16>,
        len: Option<u64>,
    },
    Truncate {
        at: At<'a>,
        len: u64,
    },
    Ftruncate {
        fd: Fd<'a>,
        len: u64,
    },
    Fallocate {
        fd: Fd<'a>,
        mode: u32,
        offset: u64,
        len: u64,
    },
    /// A copy inside the kernel. `None` offsets: the descriptions' own.
    Copy {
        from: Fd<'a>,
        from_offset: Option<u64>,
        to: Fd<'a>,
        to_offset: Option<u64>,
        len: Option<u64>,
        reflink: bool,
    },
    Stat {
        at: At<'a>,
        nofollow: bool,
        attrs: Option<Attrs>,
    },
    Fstat {
        fd: Fd<'a>,
        attrs: Option<Attrs>,
    },
    Mkdir {
        at: At<'a>,
        mode: Option<u16>,
    },
    Rmdir {
        at: At<'a>,
    },
    Unlink {
        at: At<'a>,
    },
    Rename {
        from: At<'a>,
        to: At<'a>,
        noreplace: bool,
        exchange: bool,
    },
    /// `follow`: `AT_SYMLINK_FOLLOW`.
    Link {
        from: At<'a>,
        to: At<'a>,
        follow: bool,
    },
    /// A new name for an open file (`linkat` with `AT_EMPTY_PATH`).
    LinkFd {
        from: Fd<'a>,
        to: At<'a>,
    },
    Symlink {
        target: Option<Cow<'a, [u8]>>,
        at: At<'a>,
    },
    Mknod {
        at: At<'a>,
        kind: Kind,
        mode: Option<u16>,
    },
    /// A socket bound to a path, which makes that name.
    Bind {
        at: At<'a>,
    },
    /// `image`: a program or library, mapped by a loader.
    Mmap {
        fd: Fd<'a>,
        offset: u64,
        len: u64,
        shared_write: bool,
        image: bool,
    },
    /// A fault on a mapping that read from its file, or made its pages dirty. [`Outcome::ret`] is how many bytes.
    Access {
        write: bool,
        file: Option<Seen<'a>>,
        offset: u64,
    },
    Msync {
        len: u64,
    },
    Sync,
    /// `to` is the number asked for (dup2, dup3); the lowest free one otherwise.
    Dup {
        fd: Fd<'a>,
        to: Option<i32>,
        cloexec: bool,
    },
    /// A fcntl that changes nothing the tracker follows. `about`: [`crate::flag::DESCRIPTOR_FLAGS`],
    /// [`crate::flag::NO_LOCK`], or 0 for locks.
    Control {
        fd: Fd<'a>,
        about: u32,
    },
    SetFd {
        fd: Fd<'a>,
        cloexec: bool,
    },
    SetFl {
        fd: Fd<'a>,
        append: bool,
    },
    Chdir {
        at: At<'a>,
    },
    Fchdir {
        fd: Fd<'a>,
    },
    Exec {
        at: At<'a>,
    },
    Clone(CloneFlags),
    /// `own_mounts`: `CLONE_NEWNS`.
    Unshare {
        files: bool,
        fs: bool,
        own_mounts: bool,
    },
    /// `flags` are the kernel's (`MS_*`).
    Mount {
        from: At<'a>,
        to: At<'a>,
        flags: u64,
    },
    Chroot {
        at: At<'a>,
    },
    Unmount {
        at: At<'a>,
    },
    /// A call that makes a descriptor of something that is no file (socket, eventfd).
    NewFd,
    IoUringSetup {
        /// The kernel looks for requests by itself: no call tells of them.
        polled: bool,
    },
    IoUringEnter,
    /// Requests of Linux AIO (io_submit).
    AioSubmit,
    /// A call that concerns files and is not modelled.
    Other {
        fd: Option<Fd<'a>>,
        at: Option<At<'a>>,
    },
}

/// The path arguments of a call, as variants hold them.
macro_rules! paths {
    ($call:expr) => {
        match $call {
            Call::Open { at, .. }
            | Call::OnPath { at, .. }
            | Call::Truncate { at, .. }
            | Call::Stat { at, .. }
            | Call::Mkdir { at, .. }
            | Call::Rmdir { at }
            | Call::Unlink { at }
            | Call::LinkFd { to: at, .. }
            | Call::Symlink { at, .. }
            | Call::Mknod { at, .. }
            | Call::Bind { at }
            | Call::Chdir { at }
            | Call::Exec { at }
            | Call::Chroot { at }
            | Call::Unmount { at }
            | Call::Other { at: Some(at), .. } => [Some(at), None],
            Call::Rename { from, to, .. } | Call::Link { from, to, .. } | Call::Mount { from, to, .. } => {
                [Some(from), Some(to)]
            }
            _ => [None, None],
        }
    };
}

impl<'a> Call<'a> {
    /// Its path arguments.
    pub(super) fn paths(&self) -> [Option<&At<'a>>; 2] {
        paths!(self)
    }

    /// The same, to be changed.
    pub(super) fn paths_mut(&mut self) -> [Option<&mut At<'a>>; 2] {
        paths!(self)
    }
}

/// What a new process shares with its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CloneFlags {
    /// `CLONE_FILES`: the descriptor table.
    pub files: bool,
    /// `CLONE_FS`: the working directory.
    pub fs: bool,
    /// `CLONE_NEWNS`: it has mounts of its own, which are its parent's at first.
    pub own_mounts: bool,
    /// `CLONE_THREAD`: it is a thread of the same process.
    pub thread: bool,
}
