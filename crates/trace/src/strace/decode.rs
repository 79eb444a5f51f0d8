//! From a system call's name and arguments to what it asks of the tracker.

use super::constants::{self as c, *};
use super::lex::{Arg, Args, Return};
use super::value::{
    at, attrs, fd, field, flags, int, iov_bytes, mode, offset, path, pointed_offset, start, string, unsigned,
    until_comma,
};
use crate::Op;
use crate::track::{At, Call, CloneFlags, Kind, Start};

/// What a system call's arguments look like, and so how to decode it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// No business of file systems, nor of descriptors.
    Ignored,
    Open,
    OpenAt,
    OpenAt2,
    Creat,
    Close,
    CloseRange,
    Read,
    Write,
    Pread,
    Pwrite,
    Readv,
    Writev,
    Preadv,
    Pwritev,
    Preadv2,
    Pwritev2,
    Seek,
    /// `call(fd)`
    Fd(Op),
    /// `call(fd, offset, len)`
    FdRange(Op),
    /// `call(fd, x, len)`
    FdLen(Op),
    /// `call(fd, mode)`
    FdMode(Op),
    Truncate,
    Ftruncate,
    Fallocate,
    CopyFileRange,
    Sendfile,
    Splice,
    /// `call(path, {attributes})`
    Stat,
    Lstat,
    Fstat,
    FstatAt,
    Statx,
    /// `call(path)`
    Path(Op),
    /// `call(path)`, not following a link at the end
    PathNoFollow(Op),
    /// `call(path, mode)`
    PathMode(Op),
    Access,
    AccessAt,
    ReadLink,
    ReadLinkAt,
    ChmodAt,
    ChownAt,
    UtimensAt,
    FutimesAt,
    Mkdir,
    MkdirAt,
    Rmdir,
    Unlink,
    UnlinkAt,
    Rename,
    RenameAt,
    RenameAt2,
    Link,
    LinkAt,
    Symlink,
    SymlinkAt,
    Mknod,
    MknodAt,
    Bind,
    Mmap,
    Msync,
    Sync,
    Dup,
    Dup2,
    Dup3,
    Fcntl,
    Ioctl,
    Chdir,
    Fchdir,
    Exec,
    ExecAt,
    Fork,
    Clone,
    Clone3,
    Unshare,
    SetNs,
    /// Makes descriptors of what is no file.
    NewFd,
    IoUringSetup,
    IoUringEnter,
    AioSubmit,
    Mount,
    Unmount,
    Chroot,
    /// `call(path, ...)` that is not modelled
    OtherPath,
    /// `call(dirfd, path, ...)` that is not modelled
    OtherAt,
    /// `call(fd, ...)` that is not modelled
    OtherFd,
}

/// System calls by name. A name that is not here is not modelled; it counts if its first argument is a file.
#[rustfmt::skip]
const NAMES: &[(&str, Form)] = {
    use Form::*;
    &[
        ("open", Open), ("openat", OpenAt), ("openat2", OpenAt2), ("creat", Creat), ("close", Close),
        ("close_range", CloseRange), ("read", Read), ("write", Write), ("pread64", Pread), ("pwrite64", Pwrite),
        ("pread", Pread), ("pwrite", Pwrite), ("readv", Readv), ("writev", Writev), ("preadv", Preadv),
        ("pwritev", Pwritev), ("preadv2", Preadv2), ("pwritev2", Pwritev2), ("lseek", Seek), ("_llseek", Seek),
        ("fsync", Fd(Op::Fsync)), ("fdatasync", Fd(Op::Fdatasync)), ("sync_file_range", FdRange(Op::SyncRange)),
        ("syncfs", Fd(Op::SyncFs)), ("sync", Sync), ("msync", Msync), ("truncate", Truncate),
        ("truncate64", Truncate), ("ftruncate", Ftruncate), ("ftruncate64", Ftruncate), ("fallocate", Fallocate),
        ("copy_file_range", CopyFileRange), ("sendfile", Sendfile), ("sendfile64", Sendfile), ("splice", Splice),
        ("fadvise64", FdRange(Op::Fadvise)), ("fadvise64_64", FdRange(Op::Fadvise)),
        ("readahead", FdRange(Op::Readahead)), ("stat", Stat), ("stat64", Stat), ("lstat", Lstat),
        ("lstat64", Lstat), ("fstat", Fstat), ("fstat64", Fstat), ("newfstatat", FstatAt), ("fstatat64", FstatAt),
        ("statx", Statx), ("statfs", Path(Op::StatFs)), ("statfs64", Path(Op::StatFs)), ("fstatfs", Fd(Op::StatFs)),
        ("fstatfs64", Fd(Op::StatFs)), ("access", Access), ("faccessat", AccessAt), ("faccessat2", AccessAt),
        ("readlink", ReadLink), ("readlinkat", ReadLinkAt), ("getdents", FdLen(Op::GetDents)),
        ("getdents64", FdLen(Op::GetDents)), ("mkdir", Mkdir), ("mkdirat", MkdirAt), ("rmdir", Rmdir),
        ("unlink", Unlink), ("unlinkat", UnlinkAt), ("rename", Rename), ("renameat", RenameAt),
        ("renameat2", RenameAt2), ("link", Link), ("linkat", LinkAt), ("symlink", Symlink), ("symlinkat", SymlinkAt),
        ("mknod", Mknod), ("mknodat", MknodAt), ("bind", Bind), ("chmod", PathMode(Op::Chmod)), ("fchmodat", ChmodAt),
        ("fchmodat2", ChmodAt), ("fchmod", FdMode(Op::Fchmod)), ("chown", Path(Op::Chown)),
        ("lchown", PathNoFollow(Op::Chown)), ("fchownat", ChownAt), ("fchown", Fd(Op::Fchown)),
        ("utime", Path(Op::Utimens)), ("utimes", Path(Op::Utimens)), ("utimensat", UtimensAt),
        ("futimesat", FutimesAt), ("setxattr", Path(Op::SetXattr)), ("lsetxattr", PathNoFollow(Op::SetXattr)),
        ("fsetxattr", Fd(Op::SetXattr)), ("getxattr", Path(Op::GetXattr)), ("lgetxattr", PathNoFollow(Op::GetXattr)),
        ("fgetxattr", Fd(Op::GetXattr)), ("listxattr", Path(Op::ListXattr)),
        ("llistxattr", PathNoFollow(Op::ListXattr)), ("flistxattr", Fd(Op::ListXattr)),
        ("removexattr", Path(Op::RemoveXattr)), ("lremovexattr", PathNoFollow(Op::RemoveXattr)),
        ("fremovexattr", Fd(Op::RemoveXattr)), ("mmap", Mmap), ("mmap2", Mmap), ("dup", Dup), ("dup2", Dup2),
        ("dup3", Dup3), ("fcntl", Fcntl), ("fcntl64", Fcntl), ("flock", Fd(Op::Fcntl)), ("ioctl", Ioctl),
        ("chdir", Chdir), ("fchdir", Fchdir), ("execve", Exec), ("execveat", ExecAt), ("fork", Fork),
        ("vfork", Fork), ("clone", Clone), ("clone3", Clone3), ("unshare", Unshare), ("setns", SetNs), ("socket", NewFd),
        ("accept", NewFd), ("accept4", NewFd), ("eventfd", NewFd), ("eventfd2", NewFd), ("epoll_create", NewFd),
        ("epoll_create1", NewFd), ("memfd_create", NewFd), ("memfd_secret", NewFd), ("timerfd_create", NewFd),
        ("signalfd", NewFd), ("signalfd4", NewFd), ("inotify_init", NewFd), ("inotify_init1", NewFd),
        ("fanotify_init", NewFd), ("pidfd_open", NewFd), ("userfaultfd", NewFd), ("perf_event_open", NewFd),
        ("bpf", Ignored), ("mq_open", NewFd), ("io_uring_setup", IoUringSetup), ("io_uring_enter", IoUringEnter),
        ("io_uring_register", Ignored), ("chroot", Chroot), ("pivot_root", OtherPath), ("mount", Mount),
        ("umount2", Unmount), ("umount", Unmount), ("acct", OtherPath), ("swapon", OtherPath),
        ("swapoff", OtherPath), ("quotactl", OtherPath), ("uselib", OtherPath), ("name_to_handle_at", OtherAt),
        ("open_tree", OtherAt), ("move_mount", OtherAt), ("mount_setattr", OtherAt), ("fspick", OtherAt),
        ("setxattrat", OtherAt), ("getxattrat", OtherAt), ("listxattrat", OtherAt), ("removexattrat", OtherAt),
        ("file_getattr", OtherAt), ("file_setattr", OtherAt), ("quotactl_fd", OtherFd),
        ("open_by_handle_at", OtherFd), ("vmsplice", OtherFd), ("fanotify_mark", Ignored),
        ("inotify_add_watch", Ignored), ("inotify_rm_watch", Ignored), ("munmap", Ignored), ("mremap", Ignored),
        ("io_submit", AioSubmit),
    ]
};

/// The table of forms: names that share their length, first and last letters stand in one row.
#[derive(Debug)]
pub(super) struct Forms(Vec<Vec<(&'static [u8], Form)>>);

impl Forms {
    const ROWS: usize = 256;

    pub fn new() -> Self {
        let mut rows = vec![Vec::new(); Self::ROWS];
        for &(name, form) in NAMES {
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

/// The path of an openat2 whose directory is the root for it (`RESOLVE_IN_ROOT`): where that leads, only the descriptor tells.
pub(crate) fn rooted(at: At<'_>, within: bool) -> At<'_> {
    At { path: at.path.filter(|_| !within), ..at }
}

/// What a call asks. `None`: nothing that concerns files, or its arguments are not there (a call cut short).
pub(super) fn decode<'a>(form: Option<Form>, args: &Args<'a>, ret: &Return<'a>) -> Option<Call<'a>> {
    let a = |i| args.get(i);
    let d = |i| args.arg(i);
    let Some(form) = form else { return unknown(args) };
    if let Some(call) = decode_data(form, args, ret) {
        return Some(call);
    }
    let two = |i: usize, j: usize| (at(d(i), a(i + 1)), at(d(j), a(j + 1)));
    Some(match form {
        Form::Stat => Call::Stat { at: path(a(0)), nofollow: false, attrs: attrs(a(1)) },
        Form::Lstat => Call::Stat { at: path(a(0)), nofollow: true, attrs: attrs(a(1)) },
        Form::Fstat => Call::Fstat { fd: fd(d(0))?, attrs: attrs(a(1)) },
        Form::FstatAt => stat_at(d(0), a(1), a(3), attrs(a(2)))?,
        Form::Statx => stat_at(d(0), a(1), a(2), attrs(a(4)))?,
        Form::Path(op) => on_path(op, path(a(0)), false, None),
        Form::PathNoFollow(op) => on_path(op, path(a(0)), true, None),
        Form::PathMode(op) => on_path(op, path(a(0)), false, mode(a(1))),
        Form::Access => on_path(Op::Access, path(a(0)), false, access(a(1))),
        Form::AccessAt => {
            let nofollow = flags(a(3), at_flag) & AT_SYMLINK_NOFOLLOW != 0;
            on_path(Op::Access, at(d(0), a(1)), nofollow, access(a(2)))
        }
        Form::ReadLink => {
            Call::OnPath { op: Op::ReadLink, at: path(a(0)), nofollow: true, mode: None, len: unsigned(a(2)) }
        }
        Form::ReadLinkAt => {
            Call::OnPath { op: Op::ReadLink, at: at(d(0), a(1)), nofollow: true, mode: None, len: unsigned(a(3)) }
        }
        Form::ChmodAt => at_or_fd(d(0), a(1), a(3), Op::Chmod, Op::Fchmod, mode(a(2)))?,
        Form::ChownAt => at_or_fd(d(0), a(1), a(4), Op::Chown, Op::Fchown, None)?,
        Form::UtimensAt => at_or_fd(d(0), a(1), a(3), Op::Utimens, Op::Futimens, None)?,
        Form::FutimesAt => at_or_fd(d(0), a(1), b"0", Op::Utimens, Op::Futimens, None)?,
        Form::Mkdir => Call::Mkdir { at: path(a(0)), mode: mode(a(1)) },
        Form::MkdirAt => Call::Mkdir { at: at(d(0), a(1)), mode: mode(a(2)) },
        Form::Rmdir => Call::Rmdir { at: path(a(0)) },
        Form::Unlink => Call::Unlink { at: path(a(0)) },
        Form::UnlinkAt if flags(a(2), at_flag) & AT_REMOVEDIR != 0 => Call::Rmdir { at: at(d(0), a(1)) },
        Form::UnlinkAt => Call::Unlink { at: at(d(0), a(1)) },
        Form::Rename => Call::Rename { from: path(a(0)), to: path(a(1)), noreplace: false, exchange: false },
        Form::RenameAt | Form::RenameAt2 => {
            let (from, to) = two(0, 2);
            let how = if form == Form::RenameAt2 { flags(a(4), rename_flag) } else { 0 };
            Call::Rename { from, to, noreplace: how & 1 != 0, exchange: how & 2 != 0 }
        }
        Form::Link => Call::Link { from: path(a(0)), to: path(a(1)), follow: false },
        Form::LinkAt => {
            let (from, to) = two(0, 2);
            let how = flags(a(4), at_flag);
            match (empty_path_fd(&from, how), how & AT_SYMLINK_FOLLOW != 0) {
                (Some(from), _) => Call::LinkFd { from, to },
                (None, follow) => Call::Link { from, to, follow },
            }
        }
        Form::Symlink => Call::Symlink { target: string(a(0)), at: path(a(1)) },
        Form::SymlinkAt => Call::Symlink { target: string(a(0)), at: at(d(1), a(2)) },
        Form::Mknod => Call::Mknod { at: path(a(0)), kind: node_kind(a(1)), mode: mode(a(1)) },
        Form::MknodAt => Call::Mknod { at: at(d(0), a(1)), kind: node_kind(a(2)), mode: mode(a(2)) },
        Form::Bind => Call::Bind { at: path(bound_path(a(1))?) },
        Form::Chdir => Call::Chdir { at: path(a(0)) },
        Form::Fchdir => Call::Fchdir { fd: fd(d(0))? },
        Form::Exec => Call::Exec { at: path(a(0)) },
        Form::ExecAt => Call::Exec { at: at(d(0), a(1)) },
        Form::Fork => Call::Clone(CloneFlags::default()),
        Form::Clone | Form::Clone3 => Call::Clone(clone_flags(args)),
        Form::Unshare => {
            let how = flags(a(0), clone_flag);
            let own_mounts = how & CLONE_NEWNS != 0;
            Call::Unshare { files: how & CLONE_FILES != 0, fs: how & CLONE_FS != 0, own_mounts }
        }
        Form::SetNs if !may_set_mounts(flags(a(1), clone_flag)) => return None,
        Form::SetNs => Call::Other { fd: None, at: None },
        Form::NewFd => Call::NewFd,
        Form::IoUringSetup => {
            let how = until_comma(field(a(1), b"flags").unwrap_or_default());
            Call::IoUringSetup { polled: flags(how, io_uring_flag) & SQPOLL != 0 }
        }
        Form::AioSubmit => Call::AioSubmit,
        Form::IoUringEnter => Call::IoUringEnter,
        Form::Mount => Call::Mount { from: path(a(0)), to: path(a(1)), flags: flags(a(3), mount_flag) },
        Form::Unmount => Call::Unmount { at: path(a(0)) },
        Form::Chroot => Call::Chroot { at: path(a(0)) },
        Form::OtherPath => Call::Other { fd: None, at: Some(path(a(0))) },
        Form::OtherAt => match empty_path_fd(&at(d(0), a(1)), AT_EMPTY_PATH) {
            Some(fd) => Call::Other { fd: Some(fd), at: None },
            None => Call::Other { fd: None, at: Some(at(d(0), a(1))) },
        },
        Form::OtherFd => Call::Other { fd: fd(d(0)), at: None },
        _ => return None,
    })
}

/// Calls on descriptors, which are most of a trace.
fn decode_data<'a>(form: Form, args: &Args<'a>, ret: &Return<'a>) -> Option<Call<'a>> {
    let a = |i| args.get(i);
    let d = |i| args.arg(i);
    let opened = |at, bits: u64, mode| Some(Call::Open { at, flags: trace_open_flags(bits), mode });
    match form {
        Form::Open => opened(path(a(0)), flags(a(1), open_flag), mode(a(2))),
        Form::OpenAt => opened(at(d(0), a(1)), flags(a(2), open_flag), mode(a(3))),
        Form::OpenAt2 => {
            let how = until_comma(field(a(2), b"flags").unwrap_or_default());
            let resolve =
                field(a(2), b"resolve").map(|text| until_comma(text).strip_suffix(b"}").unwrap_or(until_comma(text)));
            let within = flags(resolve.unwrap_or_default(), resolve_flag) & IN_ROOT != 0;
            let at = rooted(at(d(0), a(1)), within);
            opened(at, flags(how, open_flag), field(a(2), b"mode").map(until_comma).and_then(mode))
        }
        Form::Creat => opened(path(a(0)), c::CREAT, mode(a(1))),
        Form::Close => Some(Call::Close { fd: fd(d(0))? }),
        Form::CloseRange => {
            let how = flags(a(2), close_range_flag);
            let number = |text| u32::try_from(unsigned(text)?).ok();
            Some(Call::CloseRange {
                first: number(a(0))?,
                last: number(a(1))?,
                cloexec: how & 4 != 0,
                unshare: how & 2 != 0,
            })
        }
        Form::Read | Form::Write => transfer(form == Form::Write, d(0), unsigned(a(2)), None, 0),
        Form::Pread | Form::Pwrite => transfer(form == Form::Pwrite, d(0), unsigned(a(2)), Some(a(3)), 0),
        Form::Readv | Form::Writev => transfer(form == Form::Writev, d(0), iov_bytes(a(1)), None, 0),
        Form::Preadv | Form::Pwritev => transfer(form == Form::Pwritev, d(0), iov_bytes(a(1)), Some(a(3)), 0),
        Form::Preadv2 | Form::Pwritev2 => {
            transfer(form == Form::Pwritev2, d(0), iov_bytes(a(1)), Some(a(3)), flags(a(4), rwf))
        }
        Form::Seek => Some(Call::Seek {
            fd: fd(d(0))?,
            by: int(a(1)).unwrap_or(0),
            whence: u32::try_from(flags(a(2), whence)).unwrap_or(0),
        }),
        Form::Fd(op) => Some(Call::OnFd { op, fd: fd(d(0))?, offset: None, len: None, mode: None }),
        Form::FdRange(op) => {
            let asked = match op {
                _ if a(3).is_empty() => None,
                Op::SyncRange => u16::try_from(flags(a(3), sync_range_flag)).ok(),
                Op::Fadvise => u16::try_from(flags(a(3), advice)).ok(),
                _ => None,
            };
            Some(Call::OnFd { op, fd: fd(d(0))?, offset: offset(a(1)), len: unsigned(a(2)), mode: asked })
        }
        Form::FdLen(op) => Some(Call::OnFd { op, fd: fd(d(0))?, offset: None, len: unsigned(a(2)), mode: None }),
        Form::FdMode(op) => Some(Call::OnFd { op, fd: fd(d(0))?, offset: None, len: None, mode: mode(a(1)) }),
        Form::Truncate => Some(Call::Truncate { at: path(a(0)), len: unsigned(a(1))? }),
        Form::Ftruncate => Some(Call::Ftruncate { fd: fd(d(0))?, len: unsigned(a(1))? }),
        Form::Fallocate => Some(Call::Fallocate {
            fd: fd(d(0))?,
            mode: u32::try_from(flags(a(1), fallocate_flag)).unwrap_or(0),
            offset: offset(a(2))?,
            len: unsigned(a(3))?,
        }),
        Form::CopyFileRange | Form::Splice => copy(d(0), a(1), d(2), a(3), unsigned(a(4))),
        Form::Sendfile => copy(d(1), a(2), d(0), b"NULL", unsigned(a(3))),
        Form::Mmap => mmap(args),
        Form::Msync => Some(Call::Msync { len: unsigned(a(1))? }),
        Form::Sync => Some(Call::Sync),
        Form::Dup => Some(Call::Dup { fd: fd(d(0))?, to: None, cloexec: false }),
        Form::Dup2 => Some(Call::Dup { fd: fd(d(0))?, to: fd(d(1)).map(|fd| fd.number), cloexec: false }),
        Form::Dup3 => {
            let cloexec = flags(a(2), open_flag) & O_CLOEXEC != 0;
            Some(Call::Dup { fd: fd(d(0))?, to: fd(d(1)).map(|fd| fd.number), cloexec })
        }
        Form::Fcntl => fcntl(args),
        Form::Ioctl => ioctl(args, ret),
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

/// `ioctl(3</x>, FICLONE, 4</y>)` shares blocks; some make, remove or change files in other ways; the others only ask or set.
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

/// The system calls a recording must show: all that the tracker models, and those on files that it counts as not
/// modelled. Those that only make descriptors of other things are left out: strace shows what is behind a descriptor
/// when it is used.
pub(crate) fn traced_calls() -> impl Iterator<Item = &'static str> {
    NAMES.iter().filter(|(_, form)| !matches!(form, Form::Ignored | Form::NewFd)).map(|&(name, _)| name)
}
