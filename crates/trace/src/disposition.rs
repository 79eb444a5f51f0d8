//! Which traced calls can be made again, and why the others cannot: what a replay makes, and a prediction of it prices.

use crate::{About, Call, Event, OfdId, Op, Via, flag};
use posix::Errno;
use serde::Serialize;

/// Why a traced call is not made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// On a pipe, a socket, `/proc`, `/sys` or `/dev`.
    Foreign,
    /// exec, fork and exit: the program itself is not run.
    ProcessControl,
    /// dup, chdir, fchdir, a fcntl on the flags of a descriptor or description, a close that is not its description's
    /// last, and the kernel's own closes at exec and exit (made, not timed): the replay's own bookkeeping stands in.
    Bookkeeping,
    /// msync, io_uring and accesses through mappings: they are no calls that a replay could make one by one.
    Unseen,
    /// ioctls, fcntl on leases and hints, and calls no operation stands for; reflinks, which only some file systems
    /// have.
    NotModelled,
    /// The call never returned in the trace, or a signal interrupted it.
    Unfinished,
    /// The trace does not say enough to make it (no path, or no descriptor).
    Incomplete,
    /// Its descriptor or directory could not be had in the replay, because an earlier call went differently.
    NoDescriptor,
}

impl Skip {
    /// In words, for tables.
    pub fn meaning(self) -> &'static str {
        match self {
            Skip::Foreign => "on pipes, sockets, /proc, /sys or /dev",
            Skip::ProcessControl => "exec, fork and exit",
            Skip::Bookkeeping => "dup, chdir, descriptors' flags and closes of shared descriptions",
            Skip::Unseen => "msync, io_uring and accesses through mappings",
            Skip::NotModelled => "ioctls, reflinks and others not modelled",
            Skip::Unfinished => "interrupted or never returned in the trace",
            Skip::Incomplete => "the trace lacks a path or descriptor",
            Skip::NoDescriptor => "descriptor or directory missing after an earlier difference",
        }
    }
}

/// Whether the replay makes this call. [`Skip::NoDescriptor`] is only found out later.
pub fn disposition(e: &Event) -> Result<(), Skip> {
    match e.op() {
        Op::Exec | Op::Clone | Op::Exit => return Err(Skip::ProcessControl),
        Op::Dup | Op::Chdir | Op::Fchdir => return Err(Skip::Bookkeeping),
        Op::Fcntl if e.head.flags & flag::DESCRIPTOR_FLAGS != 0 => return Err(Skip::Bookkeeping),
        Op::Fcntl if e.head.flags & flag::NO_LOCK != 0 => return Err(Skip::NotModelled),
        Op::Msync | Op::IoUring | Op::MapRead | Op::MapWrite => return Err(Skip::Unseen),
        Op::Other | Op::Ioctl => return Err(Skip::NotModelled),
        _ => {}
    }
    if e.head.flags & flag::FOREIGN != 0 {
        return Err(Skip::Foreign);
    }
    if e.head.flags & flag::UNFINISHED != 0 || matches!(e.head.errno, Some(Errno::EINTR | Errno::EAGAIN)) {
        return Err(Skip::Unfinished);
    }
    match &e.call {
        Call::Close(_) if e.head.flags & flag::LAST == 0 => Err(Skip::Bookkeeping),
        Call::Copy { .. } if e.head.flags & flag::SHARED != 0 => Err(Skip::NotModelled),
        Call::Copy { .. } => match copy_ends(e) {
            (None, None) => Err(Skip::Incomplete),
            // It failed at the end that is no file.
            (None, Some(_)) | (Some(_), None) if e.head.errno.is_some() => Err(Skip::Foreign),
            _ => Ok(()),
        },
        // A process without the right to link by a descriptor is told so, too, and the replay needs no such right.
        Call::Link { from: About { via: Via::Ofd(_), .. }, .. } if e.head.errno == Some(Errno::ENOENT) => {
            Err(Skip::NotModelled)
        }
        Call::Sync => Ok(()),
        Call::Rename { to, .. } | Call::Link { to, .. } if to.path.is_none() => Err(Skip::Incomplete),
        Call::Symlink { target: None, .. } => Err(Skip::Incomplete),
        call => match call.opened() {
            Some(of) if of.ofd.is_none() => Err(Skip::Incomplete),
            None if call.path().is_none() => Err(Skip::Incomplete),
            _ => Ok(()),
        },
    }
}

/// The source and the destination of a copy; `None` for an end that is no file (a pipe or socket): it has no path.
pub fn copy_ends(e: &Event) -> (Option<OfdId>, Option<OfdId>) {
    match &e.call {
        Call::Copy { from, to, .. } => (from.ofd.filter(|_| from.path.is_some()), to.ofd.filter(|_| to.path.is_some())),
        _ => (None, None),
    }
}

/// Whether the call gave the offset of a copy's source or destination, so that the description's stays.
pub fn gives_offset(e: &Event, second: bool) -> bool {
    let bit = match e.call {
        Call::Copy { .. } if second => flag::TARGET_OFFSET,
        Call::Copy { .. } => flag::SOURCE_OFFSET,
        _ => flag::POSITIONAL,
    };
    e.head.flags & bit != 0
}

/// Whether a file that is open gets a name.
pub fn links_open_file(e: &Event) -> bool {
    matches!(e.call, Call::Link { from: About { via: Via::Ofd(_), .. }, .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Row;

    #[test]
    fn leaves_out_what_it_must() {
        let mut e = Row::new(0, 0, Op::Read);
        assert_eq!(disposition(&e.into()), Err(Skip::Incomplete));
        e.ofd = Some(OfdId(1));
        assert_eq!(disposition(&e.into()), Ok(()));
        e.flags = flag::FOREIGN;
        assert_eq!(disposition(&e.into()), Err(Skip::Foreign));
        e.flags = 0;
        e.errno = Errno::EINTR.0;
        assert_eq!(disposition(&e.into()), Err(Skip::Unfinished));
        let mut c = Row::new(0, 0, Op::Close);
        c.ofd = Some(OfdId(1));
        assert_eq!(disposition(&c.into()), Err(Skip::Bookkeeping));
        c.flags = flag::LAST;
        assert_eq!(disposition(&c.into()), Ok(()));
    }
}
