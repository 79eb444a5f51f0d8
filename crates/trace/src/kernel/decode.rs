//! From a call's record to what it asks of the tracker.

use super::calls::{FAMILY_BYTES, FICLONE, FICLONERANGE};
use super::files::Files;
use super::wire::{self, Fact, IN_BYTES, OUT_BYTES, call_flag, request_flag};
use crate::Op;
use crate::strace::constants::{self as c, *};
use crate::strace::{may_set_mounts, rooted};
use crate::syscalls::How;
use crate::track::{At, Attrs, Call, CloneFlags, Fd, Kind, Seen, Start};
use std::borrow::Cow;

/// `AT_FDCWD`
const AT_FDCWD: i32 = -100;

/// The error number of a negative result. Restart codes (`ERESTARTSYS` and its like), which programs never see, are
/// `EINTR`.
pub(super) fn errno(ret: i64) -> u16 {
    match -ret {
        512..=514 | 516 => posix::Errno::EINTR.0,
        errno => u16::try_from(errno).unwrap_or(0),
    }
}

/// A call's record in its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub flags: u16,
    pub call: wire::Call,
    pub facts: [Option<Fact>; 3],
    pub input: [Option<&'a [u8; IN_BYTES]>; 2],
    pub out: Option<&'a [u8; OUT_BYTES]>,
    pub strings: [Option<&'a [u8]>; 2],
}

impl<'a> Parts<'a> {
    /// Takes a record apart; `None` if it ends before its parts do.
    pub fn read(flags: u16, body: &'a [u8]) -> Option<Parts<'a>> {
        let mut rest = body;
        let has = |flag| flags & flag != 0;
        let call = wire::Call::read(&mut rest)?;
        let mut parts = Parts { flags, call, facts: [None; 3], input: [None; 2], out: None, strings: [None; 2] };
        for (fact, flag) in parts.facts.iter_mut().zip([call_flag::FACT0, call_flag::FACT1, call_flag::FACT_RET]) {
            if has(flag) {
                *fact = Some(Fact::read(&mut rest)?);
            }
        }
        for (input, flag) in parts.input.iter_mut().zip([call_flag::IN0, call_flag::IN1]) {
            if has(flag) {
                *input = Some(wire::memory(&mut rest)?);
            }
        }
        if has(call_flag::OUT) {
            parts.out = Some(wire::memory(&mut rest)?);
        }
        for (string, flag) in parts.strings.iter_mut().zip([call_flag::STR0, call_flag::STR1]) {
            if has(flag) {
                *string = Some(wire::string(&mut rest)?);
            }
        }
        Some(parts)
    }

    /// An argument as the kernel takes an `int` or `unsigned int`.
    #[allow(clippy::cast_possible_truncation)] // That is what the kernel does with the register.
    fn int(&self, i: usize) -> i32 {
        self.call.args[i] as u32 as i32
    }

    fn unsigned(&self, i: usize) -> u64 {
        self.call.args[i]
    }

    /// Flags: an `int` whose bits are wanted.
    fn bits(&self, i: usize) -> u64 {
        self.call.args[i] & 0xffff_ffff
    }

    /// An offset; negative ones are none.
    fn offset(&self, i: usize) -> Option<u64> {
        i64::try_from(self.call.args[i]).ok().and_then(|n| u64::try_from(n).ok())
    }

    /// Permission bits.
    fn mode(&self, i: usize) -> Option<u16> {
        u16::try_from(self.call.args[i] & 0o7777).ok()
    }

    fn iov_bytes(&self) -> Option<u64> {
        Some(self.call.iov_bytes).filter(|&bytes| bytes != wire::UNKNOWN)
    }

    /// A 64-bit number in memory an argument pointed to when the call began.
    fn input_u64(&self, i: usize, at: usize) -> Option<u64> {
        read_u64(self.input[i]?, at)
    }
}

fn read_u64(memory: &[u8], at: usize) -> Option<u64> {
    memory.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// The paths that facts stand for, for one call.
pub(super) struct Look<'a> {
    pub files: &'a Files,
}

impl<'a> Look<'a> {
    pub fn seen(&self, fact: Option<Fact>) -> Option<Seen<'a>> {
        self.files.seen(fact?.id)
    }

    fn fd(&self, parts: &Parts<'a>, argument: usize, fact: usize) -> Fd<'a> {
        Fd { number: parts.int(argument), seen: self.seen(parts.facts[fact]) }
    }

    fn cwd(&self, fact: Option<Fact>) -> Start<'a> {
        match self.seen(fact) {
            // The path of a directory that is gone is no path any more.
            Some(Seen::Path { raw, deleted: false, .. }) => Start::Cwd(Some(raw)),
            _ => Start::Cwd(None),
        }
    }

    /// A path in the working directory.
    fn in_cwd(&self, parts: &Parts<'a>, string: usize) -> At<'a> {
        At { start: self.cwd(parts.facts[0]), path: parts.strings[string].map(Cow::Borrowed) }
    }

    /// A path in the directory of an argument, whose fact is the given one.
    fn at(&self, parts: &Parts<'a>, argument: usize, fact: usize, string: usize) -> At<'a> {
        let start = if parts.int(argument) == AT_FDCWD {
            self.cwd(parts.facts[fact])
        } else {
            Start::Fd(self.fd(parts, argument, fact))
        };
        At { start, path: parts.strings[string].map(Cow::Borrowed) }
    }
}

/// What a call asks. `None`: nothing that concerns files.
pub(super) fn decode<'a>(how: How, p: &Parts<'a>, look: &Look<'a>) -> Option<Call<'a>> {
    let fd0 = || look.fd(p, 0, 0);
    let at = || look.at(p, 0, 0, 0);
    let path = || look.in_cwd(p, 0);
    let opened = |at, bits: u64, mode: u64| {
        let makes = bits & O_CREAT != 0 || bits & O_TMPFILE == O_TMPFILE;
        let mode = u16::try_from(mode & 0o7777).ok().filter(|_| makes);
        Call::Open { at, flags: trace_open_flags(bits), mode }
    };
    Some(match how {
        How::Open => opened(path(), p.bits(1), p.unsigned(2)),
        How::OpenAt => opened(at(), p.bits(2), p.unsigned(3)),
        How::OpenAt2 => {
            let within = p.input_u64(0, 16).unwrap_or(0) & c::IN_ROOT != 0;
            opened(rooted(at(), within), p.input_u64(0, 0).unwrap_or(0), p.input_u64(0, 8).unwrap_or(0))
        }
        How::Creat => opened(path(), c::CREAT, p.unsigned(1)),
        How::Close => Call::Close { fd: fd0() },
        How::CloseRange => {
            let number = |i| u32::try_from(p.bits(i)).ok();
            let flags = p.bits(2);
            Call::CloseRange { first: number(0)?, last: number(1)?, cloexec: flags & 4 != 0, unshare: flags & 2 != 0 }
        }
        How::Read | How::Write => transfer(how == How::Write, fd0(), Some(p.unsigned(2)), None, 0),
        How::Pread | How::Pwrite => transfer(how == How::Pwrite, fd0(), Some(p.unsigned(2)), p.offset(3), 0),
        How::Readv | How::Writev => transfer(how == How::Writev, fd0(), p.iov_bytes(), None, 0),
        How::Preadv | How::Pwritev => transfer(how == How::Pwritev, fd0(), p.iov_bytes(), p.offset(3), 0),
        How::Preadv2 | How::Pwritev2 => transfer(how == How::Pwritev2, fd0(), p.iov_bytes(), p.offset(3), p.bits(5)),
        How::Seek => Call::Seek { fd: fd0(), by: p.unsigned(1).cast_signed(), whence: p.int(2).cast_unsigned() },
        How::Fd(op) => on_fd(op, fd0(), None, None, None),
        How::FdRange(op) => {
            let asked = matches!(op, Op::SyncRange | Op::Fadvise).then(|| p.int(3));
            on_fd(op, fd0(), p.offset(1), Some(p.unsigned(2)), asked.and_then(|asked| u16::try_from(asked).ok()))
        }
        How::FdLen(op) => on_fd(op, fd0(), None, Some(p.bits(2)), None),
        How::FdMode(op) => on_fd(op, fd0(), None, None, p.mode(1)),
        How::Truncate => Call::Truncate { at: path(), len: p.unsigned(1) },
        How::Ftruncate => Call::Ftruncate { fd: fd0(), len: p.unsigned(1) },
        How::Fallocate => {
            Call::Fallocate { fd: fd0(), mode: p.int(1).cast_unsigned(), offset: p.offset(2)?, len: p.unsigned(3) }
        }
        How::CopyFileRange | How::Splice => Call::Copy {
            from: fd0(),
            from_offset: p.input_u64(0, 0),
            to: look.fd(p, 2, 1),
            to_offset: p.input_u64(1, 0),
            len: Some(p.unsigned(4)),
            reflink: false,
        },
        How::Sendfile => Call::Copy {
            from: look.fd(p, 1, 0),
            from_offset: p.input_u64(0, 0),
            to: look.fd(p, 0, 1),
            to_offset: None,
            len: Some(p.unsigned(3)),
            reflink: false,
        },
        How::Stat => Call::Stat { at: path(), nofollow: false, attrs: stat_attrs(p) },
        How::Lstat => Call::Stat { at: path(), nofollow: true, attrs: stat_attrs(p) },
        How::Fstat => Call::Fstat { fd: fd0(), attrs: stat_attrs(p) },
        How::FstatAt => stat_at(at(), p.bits(3), stat_attrs(p)),
        How::Statx => stat_at(at(), p.bits(2), statx_attrs(p)),
        How::Path(op) => on_path(op, path(), false, None),
        How::PathNoFollow(op) => on_path(op, path(), true, None),
        How::PathMode(op) => on_path(op, path(), false, p.mode(1)),
        How::Access => on_path(Op::Access, path(), false, access(p, 1)),
        How::AccessAt => on_path(Op::Access, at(), false, access(p, 2)),
        How::AccessAt2 => on_path(Op::Access, at(), p.bits(3) & AT_SYMLINK_NOFOLLOW != 0, access(p, 2)),
        How::ReadLink => read_link(path(), p.int(2)),
        How::ReadLinkAt => read_link(at(), p.int(3)),
        How::ChmodAt => at_or_fd(at(), 0, p.call.args[1] == 0, Op::Chmod, Op::Fchmod, p.mode(2)),
        How::ChmodAt2 => at_or_fd(at(), p.bits(3), p.call.args[1] == 0, Op::Chmod, Op::Fchmod, p.mode(2)),
        How::ChownAt => at_or_fd(at(), p.bits(4), p.call.args[1] == 0, Op::Chown, Op::Fchown, None),
        How::UtimensAt => at_or_fd(at(), p.bits(3), p.call.args[1] == 0, Op::Utimens, Op::Futimens, None),
        How::FutimesAt => at_or_fd(at(), 0, p.call.args[1] == 0, Op::Utimens, Op::Futimens, None),
        How::Mkdir => Call::Mkdir { at: path(), mode: p.mode(1) },
        How::MkdirAt => Call::Mkdir { at: at(), mode: p.mode(2) },
        How::Rmdir => Call::Rmdir { at: path() },
        How::Unlink => Call::Unlink { at: path() },
        How::UnlinkAt if p.bits(2) & AT_REMOVEDIR != 0 => Call::Rmdir { at: at() },
        How::UnlinkAt => Call::Unlink { at: at() },
        How::Rename => Call::Rename { from: path(), to: look.in_cwd(p, 1), noreplace: false, exchange: false },
        How::RenameAt | How::RenameAt2 => {
            let flags = if how == How::RenameAt2 { p.bits(4) } else { 0 };
            Call::Rename { from: at(), to: look.at(p, 2, 1, 1), noreplace: flags & 1 != 0, exchange: flags & 2 != 0 }
        }
        How::Link => Call::Link { from: path(), to: look.in_cwd(p, 1), follow: false },
        How::LinkAt => {
            let (from, to, flags) = (look.at(p, 0, 0, 0), look.at(p, 2, 1, 1), p.bits(4));
            match empty_path_fd(&from, flags) {
                Some(from) => Call::LinkFd { from, to },
                None => Call::Link { from, to, follow: flags & AT_SYMLINK_FOLLOW != 0 },
            }
        }
        How::Symlink => Call::Symlink { target: p.strings[0].map(Cow::Borrowed), at: look.in_cwd(p, 1) },
        How::SymlinkAt => Call::Symlink { target: p.strings[0].map(Cow::Borrowed), at: look.at(p, 1, 0, 1) },
        How::Mknod => Call::Mknod { at: path(), kind: node_kind(p.bits(1)), mode: p.mode(1) },
        How::MknodAt => Call::Mknod { at: at(), kind: node_kind(p.bits(2)), mode: p.mode(2) },
        How::Bind => bind(p, look)?,
        How::Mmap => mmap(p, look)?,
        How::Msync => Call::Msync { len: p.unsigned(1) },
        How::Sync => Call::Sync,
        How::Dup => Call::Dup { fd: fd0(), to: None, cloexec: false },
        How::Dup2 => Call::Dup { fd: fd0(), to: Some(p.int(1)), cloexec: false },
        How::Dup3 => Call::Dup { fd: fd0(), to: Some(p.int(1)), cloexec: p.bits(2) & O_CLOEXEC != 0 },
        How::Fcntl => match p.bits(1) {
            F_DUPFD => Call::Dup { fd: fd0(), to: None, cloexec: false },
            F_DUPFD_CLOEXEC => Call::Dup { fd: fd0(), to: None, cloexec: true },
            F_SETFD => Call::SetFd { fd: fd0(), cloexec: p.bits(2) & 1 != 0 },
            F_SETFL => Call::SetFl { fd: fd0(), append: p.bits(2) & O_APPEND != 0 },
            command => Call::Control { fd: fd0(), about: c::fcntl_about(command) },
        },
        How::Ioctl => ioctl(p, fd0()),
        How::Chdir => Call::Chdir { at: path() },
        How::Fchdir => Call::Fchdir { fd: fd0() },
        How::Exec => Call::Exec { at: path() },
        How::ExecAt => Call::Exec { at: at() },
        How::Fork => Call::Clone(CloneFlags::default()),
        How::Clone => Call::Clone(clone_flags(p.unsigned(0))),
        How::Clone3 => Call::Clone(clone_flags(p.input_u64(0, 0).unwrap_or(0))),
        How::SetNs if !may_set_mounts(p.bits(1)) => return None,
        How::SetNs => Call::Other { fd: None, at: None },
        How::Unshare => {
            let flags = clone_flags(p.unsigned(0));
            Call::Unshare { files: flags.files, fs: flags.fs, own_mounts: flags.own_mounts }
        }
        How::IoUringSetup => Call::IoUringSetup { polled: false },
        How::AioSubmit => Call::AioSubmit,
        How::IoUringEnter => Call::IoUringEnter,
        How::Mount => Call::Mount { from: path(), to: look.in_cwd(p, 1), flags: p.unsigned(3) },
        How::Unmount => Call::Unmount { at: path() },
        How::Chroot => Call::Chroot { at: path() },
        How::OtherPath => Call::Other { fd: None, at: Some(path()) },
        How::Other => Call::Other { fd: None, at: None },
        How::OtherAt => match empty_path_fd(&at(), AT_EMPTY_PATH) {
            Some(fd) => Call::Other { fd: Some(fd), at: None },
            None => Call::Other { fd: None, at: Some(at()) },
        },
        How::OtherFd => Call::Other { fd: Some(fd0()), at: None },
    })
}

fn on_fd<'a>(op: Op, fd: Fd<'a>, offset: Option<u64>, len: Option<u64>, mode: Option<u16>) -> Call<'a> {
    Call::OnFd { op, fd, offset, len, mode }
}

fn on_path(op: Op, at: At<'_>, nofollow: bool, mode: Option<u16>) -> Call<'_> {
    Call::OnPath { op, at, nofollow, mode, len: None }
}

fn read_link(at: At<'_>, len: i32) -> Call<'_> {
    Call::OnPath { op: Op::ReadLink, at, nofollow: true, mode: None, len: u64::try_from(len).ok() }
}

fn access(p: &Parts<'_>, i: usize) -> Option<u16> {
    u16::try_from(p.bits(i) & 7).ok()
}

fn transfer(write: bool, fd: Fd<'_>, len: Option<u64>, offset: Option<u64>, rwf: u64) -> Call<'_> {
    let sync = rwf & (RWF_DSYNC | RWF_SYNC) != 0;
    Call::Transfer { write, fd, len, offset, sync, append: rwf & RWF_APPEND != 0 }
}

/// The descriptor that a call with an empty path is about.
fn empty_path_fd<'a>(at: &At<'a>, flags: u64) -> Option<Fd<'a>> {
    match (&at.path, at.start) {
        (Some(path), Start::Fd(fd)) if path.is_empty() && flags & AT_EMPTY_PATH != 0 => Some(fd),
        _ => None,
    }
}

fn stat_at<'a>(at: At<'a>, flags: u64, attrs: Option<Attrs>) -> Call<'a> {
    match empty_path_fd(&at, flags) {
        Some(fd) => Call::Fstat { fd, attrs },
        None => Call::Stat { at, nofollow: flags & AT_SYMLINK_NOFOLLOW != 0, attrs },
    }
}

/// A call that takes a path, or a descriptor alone (an empty or NULL path).
fn at_or_fd<'a>(at: At<'a>, flags: u64, null: bool, op: Op, fd_op: Op, mode: Option<u16>) -> Call<'a> {
    let fd = empty_path_fd(&at, flags).or(match at.start {
        Start::Fd(fd) if null => Some(fd),
        _ => None,
    });
    match fd {
        Some(fd) => on_fd(fd_op, fd, None, None, mode),
        None => on_path(op, at, flags & AT_SYMLINK_NOFOLLOW != 0, mode),
    }
}

/// What `st_mode` says an object is.
pub(super) fn kind_of(mode: u32) -> Kind {
    match mode & 0o170_000 {
        0o100_000 => Kind::Regular,
        0o040_000 => Kind::Directory,
        0o120_000 => Kind::Symlink,
        0 => Kind::Unknown,
        _ => Kind::Special,
    }
}

fn attrs(mode: u32, size: u64) -> Option<Attrs> {
    let kind = kind_of(mode);
    // strace prints no length for devices.
    let size = i64::try_from(size).ok().and_then(|size| u64::try_from(size).ok());
    Some(Attrs { kind, mode: u16::try_from(mode & 0o7777).ok()?, size: size.filter(|_| kind != Kind::Special) })
}

/// `struct stat` of x86-64.
fn stat_attrs(p: &Parts<'_>) -> Option<Attrs> {
    let memory = p.out?;
    let mode = u32::from_le_bytes(*memory.get(24..)?.first_chunk()?);
    attrs(mode, read_u64(memory, 48)?)
}

/// `struct statx`
fn statx_attrs(p: &Parts<'_>) -> Option<Attrs> {
    let memory = p.out?;
    let mode = u16::from_le_bytes(*memory.get(28..)?.first_chunk()?);
    attrs(u32::from(mode), read_u64(memory, 40)?)
}

fn node_kind(mode: u64) -> Kind {
    match mode & 0o170_000 {
        0 | 0o100_000 => Kind::Regular,
        _ => Kind::Special,
    }
}

/// `struct sockaddr_un`: only a path makes a name on disk. The kernel takes no more of it than the length given says.
fn bind<'a>(p: &Parts<'a>, look: &Look<'a>) -> Option<Call<'a>> {
    const AF_UNIX: u16 = 1;
    let family = u16::from_le_bytes(*p.input[0]?.first_chunk()?);
    let room = usize::try_from(p.bits(2)).ok()?.saturating_sub(FAMILY_BYTES.into());
    let given = p.strings[0]?;
    let path = given.get(..room).unwrap_or(given);
    let at = At { start: look.cwd(p.facts[0]), path: Some(Cow::Borrowed(path)) };
    (family == AF_UNIX && !path.is_empty()).then_some(Call::Bind { at })
}

fn mmap<'a>(p: &Parts<'a>, look: &Look<'a>) -> Option<Call<'a>> {
    let (fd, flags, prot) = (look.fd(p, 4, 0), p.unsigned(3), p.unsigned(2));
    if fd.number < 0 || flags & MAP_ANONYMOUS != 0 {
        return None;
    }
    Some(Call::Mmap {
        fd,
        offset: p.unsigned(5),
        len: p.unsigned(1),
        shared_write: flags & MAP_TYPE != MAP_PRIVATE && prot & PROT_WRITE != 0,
        image: prot & PROT_EXEC != 0 || flags & MAP_DENYWRITE != 0,
    })
}

/// `ioctl(3, FICLONE, 4)` shares blocks; some make, remove or change files in other ways; the others only ask or set.
fn ioctl<'a>(p: &Parts<'a>, fd: Fd<'a>) -> Call<'a> {
    let command = p.int(1).cast_unsigned();
    if command == FICLONE {
        let from = Fd { number: p.int(2), seen: None };
        return Call::Copy { from, from_offset: Some(0), to: fd, to_offset: Some(0), len: None, reflink: true };
    }
    // struct file_clone_range: s64 src_fd; u64 src_offset, src_length, dest_offset.
    if let (FICLONERANGE, Some(source)) = (command, p.input_u64(0, 0)) {
        #[allow(clippy::cast_possible_truncation)] // Descriptors are ints.
        let from = Fd { number: source as i32, seen: None };
        return Call::Copy {
            from,
            from_offset: p.input_u64(0, 8),
            to: fd,
            to_offset: p.input_u64(0, 24),
            len: p.input_u64(0, 16).filter(|&len| len > 0),
            reflink: true,
        };
    }
    if c::ioctl_changes_files(command.into()) {
        return Call::Other { fd: Some(fd), at: None };
    }
    on_fd(Op::Ioctl, fd, None, None, None)
}

fn clone_flags(flags: u64) -> CloneFlags {
    CloneFlags {
        files: flags & CLONE_FILES != 0,
        fs: flags & CLONE_FS != 0,
        own_mounts: flags & CLONE_NEWNS != 0,
        thread: flags & CLONE_THREAD != 0,
    }
}

/// What an io_uring request asks. Files registered with a ring are descriptors below zero: the ring's own table.
pub(super) fn request<'a>(request: &wire::Request, flags: u16, seen: Option<Seen<'a>>) -> Call<'a> {
    /// `IORING_OP_*` of `<linux/io_uring.h>`
    const READV: u32 = 1;
    const WRITEV: u32 = 2;
    const FSYNC: u32 = 3;
    const READ_FIXED: u32 = 4;
    const WRITE_FIXED: u32 = 5;
    const READ: u32 = 22;
    const WRITE: u32 = 23;
    /// `IORING_FSYNC_DATASYNC`
    const DATASYNC: u32 = 1;
    let number = request.fd.cast_signed();
    let is_fixed = flags & request_flag::FIXED_FILE != 0;
    let fd = Fd { number: if is_fixed { i32::MIN.wrapping_add(number) } else { number }, seen };
    match request.opcode {
        // How it went is not known.
        _ if flags & request_flag::SILENT != 0 => Call::Other { fd: seen.map(|_| fd), at: None },
        READV | WRITEV | READ_FIXED | WRITE_FIXED | READ | WRITE => {
            let vector = matches!(request.opcode, READV | WRITEV);
            let offset = i64::try_from(request.offset).ok().and_then(|offset| u64::try_from(offset).ok());
            let write = matches!(request.opcode, WRITEV | WRITE_FIXED | WRITE);
            transfer(write, fd, Some(request.bytes).filter(|_| !vector), offset, u64::from(request.op_flags))
        }
        FSYNC if request.op_flags & DATASYNC != 0 => on_fd(Op::Fdatasync, fd, None, None, None),
        FSYNC => on_fd(Op::Fsync, fd, None, None, None),
        _ => Call::Other { fd: seen.map(|_| fd), at: None },
    }
}
