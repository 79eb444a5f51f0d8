//! From a system call's name and arguments to what it asks of the tracker.

use super::constants::{self as c, *};
use super::lex::{Arg, Args, Return};
use super::value::{
    at, attrs, fd, field, flags, int, iov_bytes, mode, offset, path, pointed_offset, start, string, unsigned,
    until_comma,
};
use crate::Op;
use crate::syscalls::{CALLS, How};
use crate::track::{At, Call, CloneFlags, Kind, Start};

/// What the importer knows of a system call by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// No business of file systems, nor of descriptors.
    Ignored,
    /// Makes descriptors of what is no file.
    NewFd,
    /// Its arguments are laid out so.
    Call(How),
}

/// Calls of other machines, and what strace calls those of x86-64 otherwise. A name that is neither here nor in
/// [`CALLS`] is not modelled; it counts if its first argument is a file.
#[rustfmt::skip]
const OTHER_NAMES: &[(&str, How)] = {
    use How::*;
    &[
        ("pread", Pread), ("pwrite", Pwrite), ("_llseek", Seek), ("truncate64", Truncate),
        ("ftruncate64", Ftruncate), ("sendfile64", Sendfile), ("fadvise64_64", FdRange(Op::Fadvise)),
        ("stat64", Stat), ("lstat64", Lstat), ("fstat64", Fstat), ("fstatat64", FstatAt),
        ("statfs64", Path(Op::StatFs)), ("fstatfs64", Fd(Op::StatFs)), ("mmap2", Mmap), ("fcntl64", Fcntl),
        ("umount", Unmount),
    ]
};

/// Calls that make descriptors of other things than files.
#[rustfmt::skip]
const NEW_FDS: &[&str] = &[
    "socket", "accept", "accept4", "eventfd", "eventfd2", "epoll_create", "epoll_create1", "memfd_create",
    "memfd_secret", "timerfd_create", "signalfd", "signalfd4", "inotify_init", "inotify_init1", "fanotify_init",
    "pidfd_open", "userfaultfd", "perf_event_open", "mq_open",
];

const IGNORED: &[&str] =
    &["bpf", "io_uring_register", "fanotify_mark", "inotify_add_watch", "inotify_rm_watch", "munmap", "mremap"];

/// The table of forms: names that share their length, first and last letters stand in one row.
#[derive(Debug)]
pub(super) struct Forms(Vec<Vec<(&'static [u8], Form)>>);

impl Forms {
    const ROWS: usize = 256;

    pub fn new() -> Self {
        let mut rows = vec![Vec::new(); Self::ROWS];
        let calls = named_calls().map(|(name, how)| (name, Form::Call(how)));
        let new_fds = NEW_FDS.iter().map(|&name| (name, Form::NewFd));
        let ignored = IGNORED.iter().map(|&name| (name, Form::Ignored));
        for (name, form) in calls.chain(new_fds).chain(ignored) {
            rows[Self::row(name.as_bytes())].push((name.as_bytes(), form));
        }
        Forms(rows)
    }

    #[inline]
    fn row(name: &[u8]) -> usize {
        let (first, last) = (name.first().copied().unwrap_or(0), name.last().copied().unwrap_or(0));
        (usize::from(first) + 32 * usize::from(last) + 5 * name.len()) % Self::ROWS
    }

    /// The form of a system call; `None` if it is not in the table.
    #[inline]
    pub fn get(&self, name: &[u8]) -> Option<Form> {
        self.0.get(Self::row(name))?.iter().find(|(known, _)| *known == name).map(|&(_, form)| form)
    }
}

/// Whether setns can change the mount namespace: 0 leaves it to the descriptor.
pub(crate) fn may_set_mounts(flags: u64) -> bool {
    flags == 0 || flags & CLONE_NEWNS != 0
}

/// The path of an openat2 whose directory is the root for it (`RESOLVE_IN_ROOT`): where that leads, only the descriptor
/// tells.
pub(crate) fn rooted(at: At<'_>, within: bool) -> At<'_> {
    At { path: at.path.filter(|_| !within), ..at }
}

/// What a call asks. `None`: nothing that concerns files, or its arguments are not there (a call cut short).
pub(super) fn decode<'a>(form: Option<Form>, args: &Args<'a>, ret: &Return<'a>) -> Option<Call<'a>> {
    let a = |i| args.get(i);
    let d = |i| args.arg(i);
    let how = match form {
        None => return unknown(args),
        Some(Form::Ignored) => return None,
        Some(Form::NewFd) => return Some(Call::NewFd),
        Some(Form::Call(how)) => how,
    };
    if let Some(call) = decode_data(how, args, ret) {
        return Some(call);
    }
    let two = |i: usize, j: usize| (at(d(i), a(i + 1)), at(d(j), a(j + 1)));
    Some(match how {
        How::Stat => Call::Stat { at: path(a(0)), nofollow: false, attrs: attrs(a(1)) },
        How::Lstat => Call::Stat { at: path(a(0)), nofollow: true, attrs: attrs(a(1)) },
        How::Fstat => Call::Fstat { fd: fd(d(0))?, attrs: attrs(a(1)) },
        How::FstatAt => stat_at(d(0), a(1), a(3), attrs(a(2)))?,
        How::Statx => stat_at(d(0), a(1), a(2), attrs(a(4)))?,
        How::Path(op) => on_path(op, path(a(0)), false, None),
        How::PathNoFollow(op) => on_path(op, path(a(0)), true, None),
        How::PathMode(op) => on_path(op, path(a(0)), false, mode(a(1))),
        How::Access => on_path(Op::Access, path(a(0)), false, access(a(1))),
        How::AccessAt | How::AccessAt2 => {
            let nofollow = flags(a(3), at_flag) & AT_SYMLINK_NOFOLLOW != 0;
            on_path(Op::Access, at(d(0), a(1)), nofollow, access(a(2)))
        }
        How::ReadLink => {
            Call::OnPath { op: Op::ReadLink, at: path(a(0)), nofollow: true, mode: None, len: unsigned(a(2)) }
        }
        How::ReadLinkAt => {
            Call::OnPath { op: Op::ReadLink, at: at(d(0), a(1)), nofollow: true, mode: None, len: unsigned(a(3)) }
        }
        How::ChmodAt | How::ChmodAt2 => at_or_fd(d(0), a(1), a(3), Op::Chmod, Op::Fchmod, mode(a(2)))?,
        How::ChownAt => at_or_fd(d(0), a(1), a(4), Op::Chown, Op::Fchown, None)?,
        How::UtimensAt => at_or_fd(d(0), a(1), a(3), Op::Utimens, Op::Futimens, None)?,
        How::FutimesAt => at_or_fd(d(0), a(1), b"0", Op::Utimens, Op::Futimens, None)?,
        How::Mkdir => Call::Mkdir { at: path(a(0)), mode: mode(a(1)) },
        How::MkdirAt => Call::Mkdir { at: at(d(0), a(1)), mode: mode(a(2)) },
        How::Rmdir => Call::Rmdir { at: path(a(0)) },
        How::Unlink => Call::Unlink { at: path(a(0)) },
        How::UnlinkAt if flags(a(2), at_flag) & AT_REMOVEDIR != 0 => Call::Rmdir { at: at(d(0), a(1)) },
        How::UnlinkAt => Call::Unlink { at: at(d(0), a(1)) },
        How::Rename => Call::Rename { from: path(a(0)), to: path(a(1)), noreplace: false, exchange: false },
        How::RenameAt | How::RenameAt2 => {
            let (from, to) = two(0, 2);
            let how = if how == How::RenameAt2 { flags(a(4), rename_flag) } else { 0 };
            Call::Rename { from, to, noreplace: how & 1 != 0, exchange: how & 2 != 0 }
        }
        How::Link => Call::Link { from: path(a(0)), to: path(a(1)), follow: false },
        How::LinkAt => {
            let (from, to) = two(0, 2);
            let how = flags(a(4), at_flag);
            match (empty_path_fd(&from, how), how & AT_SYMLINK_FOLLOW != 0) {
                (Some(from), _) => Call::LinkFd { from, to },
                (None, follow) => Call::Link { from, to, follow },
            }
        }
        How::Symlink => Call::Symlink { target: string(a(0)), at: path(a(1)) },
        How::SymlinkAt => Call::Symlink { target: string(a(0)), at: at(d(1), a(2)) },
        How::Mknod => Call::Mknod { at: path(a(0)), kind: node_kind(a(1)), mode: mode(a(1)) },
        How::MknodAt => Call::Mknod { at: at(d(0), a(1)), kind: node_kind(a(2)), mode: mode(a(2)) },
        How::Bind => Call::Bind { at: path(bound_path(a(1))?) },
        How::Chdir => Call::Chdir { at: path(a(0)) },
        How::Fchdir => Call::Fchdir { fd: fd(d(0))? },
        How::Exec => Call::Exec { at: path(a(0)) },
        How::ExecAt => Call::Exec { at: at(d(0), a(1)) },
        How::Fork => Call::Clone(CloneFlags::default()),
        How::Clone | How::Clone3 => Call::Clone(clone_flags(args)),
        How::Unshare => {
            let how = flags(a(0), clone_flag);
            let own_mounts = how & CLONE_NEWNS != 0;
            Call::Unshare { files: how & CLONE_FILES != 0, fs: how & CLONE_FS != 0, own_mounts }
        }
        How::SetNs if !may_set_mounts(flags(a(1), clone_flag)) => return None,
        How::SetNs => Call::Other { fd: None, at: None },
        How::IoUringSetup => {
            let how = until_comma(field(a(1), b"flags").unwrap_or_default());
            Call::IoUringSetup { polled: flags(how, io_uring_flag) & SQPOLL != 0 }
        }
        How::AioSubmit => Call::AioSubmit,
        How::IoUringEnter => Call::IoUringEnter,
        How::Mount => Call::Mount { from: path(a(0)), to: path(a(1)), flags: flags(a(3), mount_flag) },
        How::Unmount => Call::Unmount { at: path(a(0)) },
        How::Chroot => Call::Chroot { at: path(a(0)) },
        How::OtherPath | How::Other => Call::Other { fd: None, at: Some(path(a(0))) },
        How::OtherAt => match empty_path_fd(&at(d(0), a(1)), AT_EMPTY_PATH) {
            Some(fd) => Call::Other { fd: Some(fd), at: None },
            None => Call::Other { fd: None, at: Some(at(d(0), a(1))) },
        },
        How::OtherFd => Call::Other { fd: fd(d(0)), at: None },
        _ => return None,
    })
}

/// Calls on descriptors, which are most of a trace.
fn decode_data<'a>(how: How, args: &Args<'a>, ret: &Return<'a>) -> Option<Call<'a>> {
    let a = |i| args.get(i);
    let d = |i| args.arg(i);
    let opened = |at, bits: u64, mode| Some(Call::Open { at, flags: trace_open_flags(bits), mode });
    match how {
        How::Open => opened(path(a(0)), flags(a(1), open_flag), mode(a(2))),
        How::OpenAt => opened(at(d(0), a(1)), flags(a(2), open_flag), mode(a(3))),
        How::OpenAt2 => {
            let how = until_comma(field(a(2), b"flags").unwrap_or_default());
            let resolve =
                field(a(2), b"resolve").map(|text| until_comma(text).strip_suffix(b"}").unwrap_or(until_comma(text)));
            let within = flags(resolve.unwrap_or_default(), resolve_flag) & IN_ROOT != 0;
            let at = rooted(at(d(0), a(1)), within);
            opened(at, flags(how, open_flag), field(a(2), b"mode").map(until_comma).and_then(mode))
        }
        How::Creat => opened(path(a(0)), c::CREAT, mode(a(1))),
        How::Close => Some(Call::Close { fd: fd(d(0))? }),
        How::CloseRange => {
            let how = flags(a(2), close_range_flag);
            let number = |text| u32::try_from(unsigned(text)?).ok();
            Some(Call::CloseRange {
                first: number(a(0))?,
                last: number(a(1))?,
                cloexec: how & 4 != 0,
                unshare: how & 2 != 0,
            })
        }
        How::Read | How::Write => transfer(how == How::Write, d(0), unsigned(a(2)), None, 0),
        How::Pread | How::Pwrite => transfer(how == How::Pwrite, d(0), unsigned(a(2)), Some(a(3)), 0),
        How::Readv | How::Writev => transfer(how == How::Writev, d(0), iov_bytes(a(1)), None, 0),
        How::Preadv | How::Pwritev => transfer(how == How::Pwritev, d(0), iov_bytes(a(1)), Some(a(3)), 0),
        How::Preadv2 | How::Pwritev2 => {
            transfer(how == How::Pwritev2, d(0), iov_bytes(a(1)), Some(a(3)), flags(a(4), rwf))
        }
        How::Seek => Some(Call::Seek {
            fd: fd(d(0))?,
            by: int(a(1)).unwrap_or(0),
            whence: u32::try_from(flags(a(2), whence)).unwrap_or(0),
        }),
        How::Fd(op) => Some(Call::OnFd { op, fd: fd(d(0))?, offset: None, len: None, mode: None }),
        How::FdRange(op) => {
            let asked = match op {
                _ if a(3).is_empty() => None,
                Op::SyncRange => u16::try_from(flags(a(3), sync_range_flag)).ok(),
                Op::Fadvise => u16::try_from(flags(a(3), advice)).ok(),
                _ => None,
            };
            Some(Call::OnFd { op, fd: fd(d(0))?, offset: offset(a(1)), len: unsigned(a(2)), mode: asked })
        }
        How::FdLen(op) => Some(Call::OnFd { op, fd: fd(d(0))?, offset: None, len: unsigned(a(2)), mode: None }),
        How::FdMode(op) => Some(Call::OnFd { op, fd: fd(d(0))?, offset: None, len: None, mode: mode(a(1)) }),
        How::Truncate => Some(Call::Truncate { at: path(a(0)), len: unsigned(a(1))? }),
        How::Ftruncate => Some(Call::Ftruncate { fd: fd(d(0))?, len: unsigned(a(1))? }),
        How::Fallocate => Some(Call::Fallocate {
            fd: fd(d(0))?,
            mode: u32::try_from(flags(a(1), fallocate_flag)).unwrap_or(0),
            offset: offset(a(2))?,
            len: unsigned(a(3))?,
        }),
        How::CopyFileRange | How::Splice => copy(d(0), a(1), d(2), a(3), unsigned(a(4))),
        How::Sendfile => copy(d(1), a(2), d(0), b"NULL", unsigned(a(3))),
        How::Mmap => mmap(args),
        How::Msync => Some(Call::Msync { len: unsigned(a(1))? }),
        How::Sync => Some(Call::Sync),
        How::Dup => Some(Call::Dup { fd: fd(d(0))?, to: None, cloexec: false }),
        How::Dup2 => Some(Call::Dup { fd: fd(d(0))?, to: fd(d(1)).map(|fd| fd.number), cloexec: false }),
        How::Dup3 => {
            let cloexec = flags(a(2), open_flag) & O_CLOEXEC != 0;
            Some(Call::Dup { fd: fd(d(0))?, to: fd(d(1)).map(|fd| fd.number), cloexec })
        }
        How::Fcntl => fcntl(args),
        How::Ioctl => ioctl(args, ret),
        _ => None,
    }
}

fn on_path(op: Op, at: At<'_>, nofollow: bool, mode: Option<u16>) -> Call<'_> {
    Call::OnPath { op, at, nofollow, mode, len: None }
}

fn access(text: &[u8]) -> Option<u16> {
    u16::try_from(flags(text, access_mode) & 7).ok()
}

fn transfer<'a>(write: bool, on: Arg<'a>, len: Option<u64>, at: Option<&[u8]>, rwf: u64) -> Option<Call<'a>> {
    // preadv2 and pwritev2 use the description's own offset if given -1, which `offset` makes `None`.
    Some(Call::Transfer {
        write,
        fd: fd(on)?,
        len,
        offset: at.and_then(offset),
        sync: rwf & (RWF_DSYNC | RWF_SYNC) != 0,
        append: rwf & RWF_APPEND != 0,
    })
}

fn copy<'a>(from: Arg<'a>, from_at: &[u8], to: Arg<'a>, to_at: &[u8], len: Option<u64>) -> Option<Call<'a>> {
    Some(Call::Copy {
        from: fd(from)?,
        from_offset: pointed_offset(from_at),
        to: fd(to)?,
        to_offset: pointed_offset(to_at),
        len,
        reflink: false,
    })
}

fn stat_at<'a>(dir: Arg<'a>, name: &'a [u8], how: &[u8], attrs: Option<crate::track::Attrs>) -> Option<Call<'a>> {
    let how = flags(how, at_flag);
    let at = at(dir, name);
    match empty_path_fd(&at, how) {
        Some(fd) => Some(Call::Fstat { fd, attrs }),
        None => Some(Call::Stat { at, nofollow: how & AT_SYMLINK_NOFOLLOW != 0, attrs }),
    }
}

/// The descriptor that a call with an empty path is about.
fn empty_path_fd<'a>(at: &At<'a>, how: u64) -> Option<crate::track::Fd<'a>> {
    match (&at.path, at.start) {
        (Some(path), Start::Fd(fd)) if path.is_empty() && how & AT_EMPTY_PATH != 0 => Some(fd),
        _ => None,
    }
}

/// A call that takes a path, or a descriptor alone (an empty or NULL path).
fn at_or_fd<'a>(dir: Arg<'a>, name: &'a [u8], how: &[u8], op: Op, fd_op: Op, mode: Option<u16>) -> Option<Call<'a>> {
    let how = flags(how, at_flag);
    let at = at(dir, name);
    if let Some(fd) = empty_path_fd(&at, how) {
        return Some(Call::OnFd { op: fd_op, fd, offset: None, len: None, mode });
    }
    match at.start {
        Start::Fd(fd) if name == b"NULL" => Some(Call::OnFd { op: fd_op, fd, offset: None, len: None, mode }),
        _ => Some(on_path(op, at, how & AT_SYMLINK_NOFOLLOW != 0, mode)),
    }
}

fn node_kind(text: &[u8]) -> Kind {
    match flags(text, super::value::file_type) & 0o170_000 {
        0 | 0o100_000 => Kind::Regular,
        _ => Kind::Special,
    }
}

/// The path in `{sa_family=AF_UNIX, sun_path="/run/x"}`. An abstract address (`sun_path=@"x"`) is no name on disk.
fn bound_path(address: &[u8]) -> Option<&[u8]> {
    field(address, b"sun_path").filter(|path| path.first() == Some(&b'"'))
}

fn mmap<'a>(args: &Args<'a>) -> Option<Call<'a>> {
    let how = flags(args.get(3), map_flag);
    let on = fd(args.arg(4))?;
    if on.number < 0 || how & MAP_ANONYMOUS != 0 {
        return None;
    }
    let prot = flags(args.get(2), prot);
    Some(Call::Mmap {
        fd: on,
        offset: unsigned(args.get(5))?,
        len: unsigned(args.get(1))?,
        shared_write: how & MAP_TYPE != MAP_PRIVATE && prot & PROT_WRITE != 0,
        image: prot & PROT_EXEC != 0 || how & MAP_DENYWRITE != 0,
    })
}

fn fcntl<'a>(args: &Args<'a>) -> Option<Call<'a>> {
    let on = fd(args.arg(0))?;
    let value = args.get(2);
    Some(match flags(args.get(1), fcntl_command) {
        F_DUPFD => Call::Dup { fd: on, to: None, cloexec: false },
        F_DUPFD_CLOEXEC => Call::Dup { fd: on, to: None, cloexec: true },
        F_SETFD => Call::SetFd { fd: on, cloexec: flags(value, |name| u64::from(name == b"FD_CLOEXEC")) & 1 != 0 },
        F_SETFL => Call::SetFl { fd: on, append: flags(value, open_flag) & O_APPEND != 0 },
        command => Call::Control { fd: on, about: c::fcntl_about(command) },
    })
}

/// `ioctl(3</x>, FICLONE, 4</y>)` shares blocks; some make, remove or change files in other ways; the others only ask
/// or set.
fn ioctl<'a>(args: &Args<'a>, ret: &Return<'a>) -> Option<Call<'a>> {
    const FICLONE: u64 = 0x4004_9409;
    const FICLONERANGE: u64 = 0x4020_940d;
    let command = |name: &[u8]| match name {
        // strace prints all names that a number has.
        b"FICLONE" | b"BTRFS_IOC_CLONE" | b"BTRFS_IOC_CLONE or FICLONE" => FICLONE,
        b"FICLONERANGE" | b"BTRFS_IOC_CLONE_RANGE" | b"BTRFS_IOC_CLONE_RANGE or FICLONERANGE" => FICLONERANGE,
        _ => 0,
    };
    let on = fd(args.arg(0))?;
    let last = args.get(2);
    match flags(args.get(1), command) {
        FICLONE => Some(Call::Copy {
            from: fd(last)?,
            from_offset: Some(0),
            to: on,
            to_offset: Some(0),
            len: None,
            reflink: true,
        }),
        FICLONERANGE if ret.value.is_some() => Some(Call::Copy {
            from: fd(field(last, b"src_fd")?)?,
            from_offset: field(last, b"src_offset").and_then(offset),
            to: on,
            to_offset: field(last, b"dest_offset").and_then(offset),
            len: field(last, b"src_length").and_then(unsigned).filter(|&len| len > 0),
            reflink: true,
        }),
        _ if c::printed_ioctl_changes_files(args.get(1)) => Some(Call::Other { fd: Some(on), at: None }),
        _ => Some(Call::OnFd { op: Op::Ioctl, fd: on, offset: None, len: None, mode: None }),
    }
}

fn clone_flags(args: &Args<'_>) -> CloneFlags {
    let text = (0..args.len()).find_map(|i| field(args.get(i), b"flags")).unwrap_or_default();
    let how = flags(until_comma(text), clone_flag);
    CloneFlags {
        files: how & CLONE_FILES != 0,
        fs: how & CLONE_FS != 0,
        own_mounts: how & CLONE_NEWNS != 0,
        thread: how & CLONE_THREAD != 0,
    }
}

/// A system call not in the table counts if its first argument is a file.
fn unknown<'a>(args: &Args<'a>) -> Option<Call<'a>> {
    let on = fd(args.arg(0)).filter(|fd| matches!(fd.seen, Some(crate::track::Seen::Path { .. })));
    if on.is_some() {
        return Some(Call::Other { fd: on, at: None });
    }
    match start(args.arg(0)) {
        Some(Start::Cwd(Some(_))) => Some(Call::Other { fd: None, at: Some(at(args.arg(0), args.get(1))) }),
        _ => None,
    }
}

/// The calls that are known by name, with how their arguments are laid out.
fn named_calls() -> impl Iterator<Item = (&'static str, How)> {
    CALLS.iter().map(|&(_, name, how)| (name, how)).chain(OTHER_NAMES.iter().copied())
}

/// The system calls a recording must show: all that the tracker models, and those on files that it counts as not
/// modelled. Those that only make descriptors of other things are left out: strace shows what is behind a descriptor
/// when it is used.
pub(crate) fn traced_calls() -> impl Iterator<Item = &'static str> {
    named_calls().map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<&str> = traced_calls().chain(NEW_FDS.iter().chain(IGNORED).copied()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
