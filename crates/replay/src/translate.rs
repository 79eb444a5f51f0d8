//! One traced call as a [`Call`]: descriptors, split paths, flags.

use posix::{
    AccessMode, Advice, At, Call, Errno, Fallocate, Fd, FileKind, Lock, Mode, OpenFlags, Outcome, Reply, SetTime,
    SyncRange, Whence,
};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use trace::disposition::gives_offset;
use trace::{About, Call as Asked, Event, Op, Range, Via, flag};

/// The name of the attribute that stands for every traced one: traces do not keep names.
const XATTR: &str = "user.fsage";
/// The name asked for where the trace found no such attribute: nobody sets it.
const XATTR_NONE: &str = "user.fsage.none";
/// What is set where the trace does not give a length.
const XATTR_BYTES: u64 = 32;
/// Bytes of the values given to setxattr; longer traced values are cut.
static XATTR_VALUE: [u8; 4096] = [b'v'; 4096];
/// The byte locked: far behind any data.
const LOCK_BYTE: u64 = 1 << 40;
/// A fixed time for utimensat: traces do not keep the times.
const TIME: SetTime = SetTime::To(1_000_000_000_000_000_000);

/// A path split where the traced process's own walk began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Split {
    /// What is walked.
    pub path: Vec<u8>,
    /// The directory it starts in, absolute in the traced system; `None`: the root.
    pub dir: Option<Vec<u8>>,
}

/// Splits a recorded path.
pub(super) fn split(path: &[u8], caller_dir: Option<&[u8]>, out: &mut Split) {
    out.path.clear();
    let suffix = caller_dir.and_then(|dir| {
        let rest = path.strip_prefix(dir)?;
        if dir.last() == Some(&b'/') || rest.is_empty() { Some(rest) } else { rest.strip_prefix(b"/") }
    });
    match (suffix, caller_dir) {
        (Some(suffix), Some(dir)) => {
            out.path.extend_from_slice(suffix);
            let kept = out.dir.get_or_insert_default();
            kept.clear();
            kept.extend_from_slice(dir);
        }
        _ => {
            out.dir = None;
            out.path.extend_from_slice(path.strip_prefix(b"/").unwrap_or(path));
            if out.path.is_empty() && path.first() == Some(&b'/') {
                out.path.push(b'.');
            }
        }
    }
}

/// What a call needs besides its event: descriptors and paths of the replay.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub fd: Option<Fd>,
    pub fd2: Option<Fd>,
    pub path: Split,
    pub path2: Split,
    pub dir: Option<Fd>,
    pub dir2: Option<Fd>,
    /// What a fcntl does.
    pub lock: Lock,
    /// A chmod is on a directory.
    pub sets_directory: bool,
    /// Permission bits that are given.
    pub modes: u16,
}

impl Parts {
    pub fn new(modes: u16) -> Self {
        let (path, path2) = (Split::default(), Split::default());
        let (fd, fd2, dir, dir2, lock) = (None, None, None, None, Lock::Unlock);
        Parts { fd, fd2, path, path2, dir, dir2, lock, sets_directory: false, modes }
    }
}

pub(super) fn at(dir: Option<Fd>, path: &Split) -> At<'_> {
    At { dir, path: Path::new(OsStr::from_bytes(&path.path)) }
}

/// The call that an event asks for; `None` where a needed descriptor is missing.
pub(super) fn call<'a>(e: &Event, parts: &'a Parts) -> Option<Call<'a>> {
    let has = |bit: u32| e.head.flags & bit != 0;
    let path = || at(parts.dir, &parts.path);
    let path2 = || at(parts.dir2, &parts.path2);
    let follow = !has(flag::NOFOLLOW);
    let len = |bytes: Option<u64>| bytes.unwrap_or(0);
    let start = |range: Range| range.offset.unwrap_or(0);
    let given = |range: Range| range.offset.filter(|_| has(flag::POSITIONAL));
    // The owner can go on reading and writing, and searching directories; who may execute a file is as traced.
    let of_file = |mode: Option<u16>| Mode(mode.unwrap_or(0o644) & parts.modes | 0o600);
    let of_directory = |mode: Option<u16>| Mode(mode.unwrap_or(0o755) & parts.modes | 0o700);
    let set = |mode| if parts.sets_directory { of_directory(mode) } else { of_file(mode) };
    let attribute = OsStr::new(if e.head.errno == Some(Errno::ENODATA) { XATTR_NONE } else { XATTR });
    Some(match e.call {
        Asked::Open { mode, .. } => {
            let create = has(flag::CREATE) || has(flag::TMPFILE);
            let mode = if create { of_file(mode) } else { Mode(0) };
            Call::Open { at: path(), flags: open_flags(e.head.flags), mode }
        }
        Asked::Close(_) => Call::Close { fd: parts.fd? },
        Asked::Read(range) => Call::Read { fd: parts.fd?, offset: given(range), len_bytes: len(range.bytes) },
        Asked::Write(range) => {
            Call::Write { fd: parts.fd?, offset: given(range), len_bytes: len(range.bytes), data: None }
        }
        Asked::Seek(_) => {
            let whence = match e.head.flags >> flag::SUB_SHIFT & 7 {
                3 => Whence::Data,
                4 => Whence::Hole,
                // The trace keeps where a seek led; from the end or from here, that is where it leads again.
                _ => Whence::Set,
            };
            let to = match whence {
                Whence::Set if e.head.errno.is_some() => return Some(Call::Seek { fd: parts.fd?, offset: -1, whence }),
                Whence::Set => u64::try_from(e.head.ret).unwrap_or(0),
                // Data begins, or a hole, where the traced seek ended: a hole after the byte before it.
                Whence::Hole => u64::try_from(e.head.ret).map_or(u64::MAX, |to| to.saturating_sub(1)),
                _ => u64::try_from(e.head.ret).unwrap_or(u64::MAX),
            };
            Call::Seek { fd: parts.fd?, offset: i64::try_from(to).unwrap_or(i64::MAX), whence }
        }
        Asked::Fsync(_) => Call::Fsync { fd: parts.fd? },
        Asked::Fdatasync(_) => Call::Fdatasync { fd: parts.fd? },
        Asked::SyncRange { range, how } => {
            let how = how.and_then(SyncRange::from_bits).unwrap_or(SyncRange::WAITED);
            Call::SyncRange { fd: parts.fd?, offset: start(range), len_bytes: len(range.bytes), how }
        }
        Asked::Sync | Asked::SyncFs(_) => Call::SyncFs,
        Asked::Truncate { len: to, .. } => Call::Truncate { at: path(), len_bytes: len(to) },
        Asked::Ftruncate { len: to, .. } => Call::Ftruncate { fd: parts.fd?, len_bytes: len(to) },
        Asked::Fallocate(range) => {
            let [.., bits] = (e.head.flags >> flag::SUB_SHIFT & 0xff).to_be_bytes();
            let how = Fallocate::from_bits(bits);
            Call::Fallocate { fd: parts.fd?, how, offset: start(range), len_bytes: len(range.bytes) }
        }
        Asked::Copy { offset, to, bytes, .. } => {
            let offset = offset.filter(|_| gives_offset(e, false));
            let to_offset = to.offset.filter(|_| gives_offset(e, true));
            copy(parts, (offset, to_offset), len(bytes), e.head.ret)?
        }
        Asked::Stat(_) => Call::Stat { at: path(), follow },
        Asked::Fstat(_) => Call::Fstat { fd: parts.fd? },
        Asked::StatFs(_) => Call::StatFs { at: path() },
        Asked::Access { mode, .. } => {
            let asked = mode.unwrap_or(0);
            let mode = AccessMode { read: asked & 4 != 0, write: asked & 2 != 0, execute: asked & 1 != 0 };
            Call::Access { at: path(), mode }
        }
        Asked::ReadLink { .. } => Call::ReadLink { at: path() },
        Asked::GetDents { bytes, .. } => Call::GetDents { fd: parts.fd?, len_bytes: len(bytes).max(1024) },
        Asked::Mkdir { mode, .. } => Call::Mkdir { at: path(), mode: of_directory(mode) },
        Asked::Rmdir(_) => Call::Rmdir { at: path() },
        Asked::Unlink(_) => Call::Unlink { at: path() },
        Asked::Rename { .. } => {
            Call::Rename { from: path(), to: path2(), noreplace: has(flag::NOREPLACE), exchange: has(flag::EXCHANGE) }
        }
        Asked::Link { from: About { via: Via::Ofd(_), .. }, .. } => Call::LinkFd { fd: parts.fd?, to: path2() },
        Asked::Link { .. } => Call::Link { from: path(), to: path2(), follow },
        Asked::Symlink { .. } => Call::Symlink { target: Path::new(OsStr::from_bytes(&parts.path2.path)), at: path() },
        // Never a FIFO: an open of it in the replay could wait for ever.
        Asked::Mknod { mode, .. } => Call::Mknod { at: path(), kind: FileKind::File, mode: of_file(mode) },
        Asked::Chmod { mode, .. } => Call::Chmod { at: path(), mode: set(mode) },
        Asked::Fchmod { mode, .. } => Call::Fchmod { fd: parts.fd?, mode: set(mode) },
        Asked::Chown(_) => Call::Chown { at: path(), follow, uid: None, gid: None },
        Asked::Fchown(_) => Call::Fchown { fd: parts.fd?, uid: None, gid: None },
        Asked::Utimens(_) => Call::Utimens { at: path(), follow, atime: TIME, mtime: TIME },
        Asked::Futimens(_) => Call::Futimens { fd: parts.fd?, atime: TIME, mtime: TIME },
        Asked::SetXattr { bytes, .. } => set_xattr(path(), follow, bytes.unwrap_or(XATTR_BYTES)),
        Asked::GetXattr(_) => Call::GetXattr { at: path(), follow, name: attribute },
        Asked::ListXattr(_) => Call::ListXattr { at: path(), follow },
        Asked::RemoveXattr(_) => Call::RemoveXattr { at: path(), follow, name: attribute },
        Asked::Mmap(range) => Call::MapUnmap { fd: parts.fd?, len_bytes: len(range.bytes).max(1) },
        Asked::Fadvise { range, how } => {
            let (fd, offset, len_bytes) = (parts.fd?, start(range), len(range.bytes));
            let advise = |advice| Call::Advise { fd, offset, len_bytes, advice };
            match how {
                Some(flag::ADVICE_DONT_NEED) => Call::DontNeed { fd, offset, len_bytes },
                Some(0) => advise(Advice::Normal),
                Some(1) => advise(Advice::Random),
                Some(3) => advise(Advice::WillNeed),
                // Where a trace does not say which: tools give this one.
                _ => advise(Advice::Sequential),
            }
        }
        Asked::Readahead(range) => {
            let (offset, len_bytes) = (start(range), len(range.bytes));
            Call::Advise { fd: parts.fd?, offset, len_bytes, advice: Advice::WillNeed }
        }
        // Nor which lock a fcntl took or gave back: locks and unlocks in turn stand for all.
        Asked::Fcntl(_) => Call::Lock { fd: parts.fd?, offset: LOCK_BYTE, len_bytes: 1, lock: parts.lock },
        Asked::Msync { .. }
        | Asked::MapRead(_)
        | Asked::MapWrite(_)
        | Asked::Dup(_)
        | Asked::Ioctl(_)
        | Asked::Chdir(_)
        | Asked::Fchdir(_)
        | Asked::Exec(_)
        | Asked::Clone
        | Asked::Exit
        | Asked::IoUring
        | Asked::Other(_) => return None,
    })
}

/// Sets the attribute that stands for every traced one.
pub(super) fn set_xattr(at: At<'_>, follow: bool, bytes: u64) -> Call<'_> {
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    let value = XATTR_VALUE.get(..len).unwrap_or(&XATTR_VALUE);
    Call::SetXattr { at, follow, name: OsStr::new(XATTR), value }
}

/// A copy with a file at one end only (splice, sendfile to a socket) is that file's read or write, of as much as the
/// other end gave or took.
fn copy<'a>(parts: &Parts, offsets: (Option<u64>, Option<u64>), len_bytes: u64, ret: i64) -> Option<Call<'a>> {
    let (from_offset, to_offset) = offsets;
    let moved = u64::try_from(ret).unwrap_or(0);
    match (parts.fd, parts.fd2) {
        (Some(from), Some(to)) => Some(Call::CopyRange { from, from_offset, to, to_offset, len_bytes }),
        // That nothing was read says that the file ended there.
        (Some(fd), None) if moved == 0 => Some(Call::Read { fd, offset: from_offset, len_bytes }),
        (Some(fd), None) => Some(Call::Read { fd, offset: from_offset, len_bytes: moved }),
        (None, Some(fd)) => Some(Call::Write { fd, offset: to_offset, len_bytes: moved, data: None }),
        (None, None) => None,
    }
}

/// The bits of [`flag`] as [`OpenFlags`].
pub(super) fn open_flags(bits: u32) -> OpenFlags {
    let has = |bit: u32| bits & bit != 0;
    OpenFlags {
        read: has(flag::READ),
        write: has(flag::WRITE),
        create: has(flag::CREATE),
        exclusive: has(flag::EXCL),
        truncate: has(flag::TRUNC),
        append: has(flag::APPEND),
        directory: has(flag::DIRECTORY),
        nofollow: has(flag::NOFOLLOW),
        direct: has(flag::DIRECT),
        sync: has(flag::SYNC),
        dsync: has(flag::DSYNC),
        path_only: has(flag::PATH_ONLY),
        tmpfile: has(flag::TMPFILE),
        noatime: has(flag::NOATIME),
    }
}

/// How an outcome differs from the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Mismatch {
    /// Another error, or an error instead of success, or the reverse (0: success).
    Errno { expected: u16, got: u16 },
    /// Another count, length or offset.
    Count { expected: u64, got: u64 },
}

/// The error that the call made in the place of the traced one must give.
fn expected_errno(e: &Event) -> u16 {
    let bound = e.op() == Op::Mknod && e.head.flags & flag::BOUND != 0;
    if bound && e.head.errno == Some(Errno::EADDRINUSE) {
        Errno::EEXIST.0
    } else {
        e.head.errno.map_or(0, |errno| errno.0)
    }
}

/// Compares an outcome with what the trace says came back.
pub(super) fn compare(e: &Event, outcome: &Outcome) -> Option<Mismatch> {
    let got = match outcome.result {
        Ok(_) => 0,
        Err(Errno(errno)) => errno,
    };
    let expected = expected_errno(e);
    if got != expected {
        return Some(Mismatch::Errno { expected, got });
    }
    let (Ok(Reply::Count(got)), Ok(expected)) = (outcome.result, u64::try_from(e.head.ret)) else { return None };
    let same = match e.op() {
        Op::Read | Op::Write | Op::Seek | Op::Copy | Op::ReadLink => got == expected,
        // Each file system orders a directory in its own way, so that buffers fill differently; its end is its end.
        Op::GetDents => (got == 0) == (expected == 0),
        _ => true,
    };
    (!same).then_some(Mismatch::Count { expected, got })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::event;
    use trace::profile::Row;

    fn splits(path: &[u8], dir: Option<&[u8]>) -> (Vec<u8>, Option<Vec<u8>>) {
        let mut s = Split::default();
        split(path, dir, &mut s);
        (s.path, s.dir)
    }

    #[test]
    fn paths_split_where_the_walk_began() {
        assert_eq!(splits(b"/a/b/c", None), (b"a/b/c".to_vec(), None));
        assert_eq!(splits(b"/a/b/../c", Some(b"/a")), (b"b/../c".to_vec(), Some(b"/a".to_vec())));
        assert_eq!(splits(b"/x", Some(b"/")), (b"x".to_vec(), Some(b"/".to_vec())));
        assert_eq!(splits(b"/", None), (b".".to_vec(), None));
        // A directory that is only a prefix of the name is not the start.
        assert_eq!(splits(b"/ab", Some(b"/a")), (b"ab".to_vec(), None));
    }

    #[test]
    fn a_copy_with_one_file_is_a_read_or_a_write() {
        let mut e = event(Op::Copy);
        (e.req_bytes, e.ret) = (Some(65536), 10);
        let parts = Parts { fd2: Some(Fd(7)), ..Parts::new(0) };
        assert_eq!(call(&e.into(), &parts), Some(Call::Write { fd: Fd(7), offset: None, len_bytes: 10, data: None }));
        assert_eq!(call(&e.into(), &Parts::new(0)), None);
        (e.offset, e.offset2, e.flags) = (Some(5), Some(7), flag::TARGET_OFFSET);
        assert_eq!(
            call(&e.into(), &parts),
            Some(Call::Write { fd: Fd(7), offset: Some(7), len_bytes: 10, data: None })
        );
        let parts = Parts { fd: Some(Fd(7)), ..Parts::new(0) };
        assert_eq!(call(&e.into(), &parts), Some(Call::Read { fd: Fd(7), offset: None, len_bytes: 10 }));
    }

    #[test]
    fn every_mode_of_fallocate_is_given_on() {
        let parts = Parts { fd: Some(Fd(7)), ..Parts::new(0) };
        for bits in 0..=0xff {
            let e = Row { flags: u32::from(bits) << flag::SUB_SHIFT, ..event(Op::Fallocate) };
            let Some(Call::Fallocate { how, .. }) = call(&e.into(), &parts) else { panic!("a fallocate is one") };
            assert_eq!(how.bits(), bits);
        }
        assert_eq!(Fallocate::from_bits(0x11), Fallocate::ZeroRangeKeepSize);
    }

    #[test]
    fn compares_errors_and_counts() {
        let mut e = event(Op::Read);
        e.ret = 10;
        let ok = |n| Outcome { start_ns: 0, dur_ns: 0, result: Ok(Reply::Count(n)) };
        assert_eq!(compare(&e.into(), &ok(10)), None);
        assert_eq!(compare(&e.into(), &ok(9)), Some(Mismatch::Count { expected: 10, got: 9 }));
        let err = Outcome { start_ns: 0, dur_ns: 0, result: Err(Errno::ENOENT) };
        assert_eq!(compare(&e.into(), &err), Some(Mismatch::Errno { expected: 0, got: 2 }));
        e.errno = 2;
        assert_eq!(compare(&e.into(), &err), None);
    }
}
