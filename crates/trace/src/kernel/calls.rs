//! What the kernel's recorder copies of the system calls that it records: where their arguments point.
//!
//! What lives here: what the recorder is told ([`Spec`]), by a call's layout ([`How`]), and the decoder's table by
//! number. What may not: what calls mean.

use crate::strace::constants::AT_REMOVEDIR;
use crate::syscalls::{CALLS, How};

/// An argument that is not there.
pub const NO_ARG: u8 = 0xff;
/// In a call's specification, for a descriptor: the working directory takes the place of a descriptor.
pub const CWD_ARG: u8 = 0xfe;
/// Bytes of a [`Spec`].
pub const SPEC_BYTES: usize = 20;
/// How many calls have a [`Spec`]: those with numbers above are recorded without a look at their arguments.
pub const SPECS: usize = 512;

/// Flags of a [`Spec`], as in `spec.h`.
pub mod spec_flag {
    /// The call is recorded.
    pub const RECORDED: u8 = 1 << 0;
    /// It returns a descriptor.
    pub const RETURNS_FD: u8 = 1 << 1;
    /// Arguments 1 and 2 are an I/O vector.
    pub const IOV: u8 = 1 << 2;
    /// It frees descriptors when it begins.
    pub const CLOSES: u8 = 1 << 3;
    /// It runs another program.
    pub const EXEC: u8 = 1 << 4;
    /// It is of no interest without a descriptor.
    pub const NEEDS_FD: u8 = 1 << 5;
    /// Memory is read only if argument 1 is [`in_if`](super::Spec::in_if).
    pub const IN_IF: u8 = 1 << 6;
    /// It may move or remove directories, whoever makes it.
    pub const MOVES: u8 = 1 << 7;
}

/// What the recorder copies of one system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// [`spec_flag`]
    pub flags: u8,
    /// Arguments that are descriptors.
    pub fd: [u8; 2],
    /// Arguments that are strings.
    pub str: [u8; 2],
    /// Bytes of the first one's memory before the string.
    pub str_skip: u8,
    /// Arguments that point to memory read when the call begins, and how many bytes.
    pub input: [(u8, u8); 2],
    /// The same when it returns.
    pub out: (u8, u8),
    /// [`spec_flag::MOVES`] only if this bit of argument 2 is set; 0: always.
    pub moves_if_bit: u8,
    /// See [`spec_flag::IN_IF`].
    pub in_if: u32,
}

impl Spec {
    const fn new(flags: u8) -> Spec {
        Spec {
            flags: flags | spec_flag::RECORDED,
            fd: [NO_ARG; 2],
            str: [NO_ARG; 2],
            str_skip: 0,
            input: [(NO_ARG, 0); 2],
            out: (NO_ARG, 0),
            moves_if_bit: 0,
            in_if: 0,
        }
    }
    /// Recorded without a look at its arguments.
    pub const fn plain() -> Spec {
        Spec::new(0)
    }
    const fn fd(self, first: u8) -> Spec {
        Spec { fd: [first, NO_ARG], ..self }
    }
    const fn fds(self, first: u8, second: u8) -> Spec {
        Spec { fd: [first, second], ..self }
    }
    const fn string(self, first: u8) -> Spec {
        Spec { str: [first, NO_ARG], ..self }
    }
    const fn strings(self, first: u8, second: u8) -> Spec {
        Spec { str: [first, second], ..self }
    }
    const fn input(self, argument: u8, bytes: u8) -> Spec {
        Spec { input: [(argument, bytes), (NO_ARG, 0)], ..self }
    }
    const fn out(self, argument: u8, bytes: u8) -> Spec {
        Spec { out: (argument, bytes), ..self }
    }

    /// As `struct spec` of `spec.h`.
    pub fn to_bytes(self) -> [u8; SPEC_BYTES] {
        let [(in0, bytes0), (in1, bytes1)] = self.input;
        let [i0, i1, i2, i3] = self.in_if.to_le_bytes();
        [
            self.flags,
            self.fd[0],
            self.fd[1],
            self.str[0],
            self.str[1],
            in0,
            in1,
            bytes0,
            bytes1,
            self.out.0,
            self.out.1,
            self.str_skip,
            self.moves_if_bit,
            0,
            0,
            0,
            i0,
            i1,
            i2,
            i3,
        ]
    }
}

/// Bytes of the address family that begins every `struct sockaddr`.
pub(super) const FAMILY_BYTES: u8 = 2;
/// Bytes of `struct stat` that are looked at: up to `st_size`.
const STAT_BYTES: u8 = 56;
/// Bytes of `struct statx` that are looked at: up to `stx_size`.
const STATX_BYTES: u8 = 48;
/// `FICLONERANGE`
pub(super) const FICLONERANGE: u32 = 0x4020_940d;
/// `FICLONE`
pub(super) const FICLONE: u32 = 0x4004_9409;

impl How {
    /// What to copy.
    pub fn spec(self) -> Spec {
        use How::*;
        use spec_flag::*;
        let path = || Spec::new(0).fd(CWD_ARG).string(0);
        let at = |flags| Spec::new(flags).fd(0).string(1);
        let fd = |flags| Spec::new(flags).fd(0);
        match self {
            Open | Creat => Spec::new(RETURNS_FD).fd(CWD_ARG).string(0),
            OpenAt => at(RETURNS_FD),
            OpenAt2 => at(RETURNS_FD).input(2, 24),
            Close => fd(CLOSES),
            CloseRange | Msync | Sync | Fork | Clone | Unshare | SetNs | AioSubmit | Other => Spec::new(0),
            Read | Write | Pread | Pwrite | Seek => fd(0),
            Readv | Writev | Preadv | Pwritev | Preadv2 | Pwritev2 => fd(IOV),
            Fd(_) | FdRange(_) | FdLen(_) | FdMode(_) | Fchdir | Fcntl | OtherFd => fd(0),
            Ftruncate | Fallocate => fd(0),
            CopyFileRange | Splice => Spec { input: [(1, 8), (3, 8)], ..Spec::new(0).fds(0, 2) },
            Sendfile => Spec::new(0).fds(1, 0).input(2, 8),
            Stat | Lstat => path().out(1, STAT_BYTES),
            Fstat => fd(0).out(1, STAT_BYTES),
            FstatAt => at(0).out(2, STAT_BYTES),
            Statx => at(0).out(4, STATX_BYTES),
            Path(_) | PathNoFollow(_) | PathMode(_) | Truncate | Access | ReadLink | Mkdir | Rmdir | Unlink | Mknod
            | Chdir | Chroot | Unmount | OtherPath => path(),
            AccessAt | AccessAt2 | ReadLinkAt | ChmodAt | ChmodAt2 | ChownAt | UtimensAt | FutimesAt | MkdirAt
            | UnlinkAt | MknodAt | OtherAt => at(0),
            Rename | Link | Mount => Spec::new(0).fd(CWD_ARG).strings(0, 1),
            RenameAt | RenameAt2 | LinkAt => Spec::new(0).fds(0, 2).strings(1, 3),
            // The path follows the address family.
            Bind => Spec { str_skip: FAMILY_BYTES, ..Spec::new(0).fd(CWD_ARG).string(1).input(1, FAMILY_BYTES) },
            Symlink => Spec::new(0).fd(CWD_ARG).strings(0, 1),
            SymlinkAt => Spec::new(0).fd(1).strings(0, 2),
            Mmap => Spec::new(NEEDS_FD).fd(4),
            Dup => fd(RETURNS_FD),
            Dup2 | Dup3 => fd(RETURNS_FD | CLOSES),
            Ioctl => Spec { in_if: FICLONERANGE, ..fd(IN_IF).input(2, 32) },
            Exec => Spec::new(EXEC).fd(CWD_ARG).string(0),
            ExecAt => at(EXEC),
            Clone3 => Spec::new(0).input(0, 8),
            IoUringSetup => Spec::new(RETURNS_FD),
            IoUringEnter => fd(0),
        }
    }
}

/// The first number that no kernel known to us gives a meaning: calls from here on are counted as not modelled.
pub const FIRST_UNKNOWN: u32 = 470;

const AT_REMOVEDIR_BIT: u8 = 9;
const _: () = assert!(AT_REMOVEDIR == 1 << AT_REMOVEDIR_BIT);

/// Calls after which directories may have other paths than before, or be gone; and the bit of argument 2 without which
/// the call does no such thing (0: always).
const MOVES: &[(&str, u8)] = &[
    ("rename", 0),
    ("renameat", 0),
    ("renameat2", 0),
    ("rmdir", 0),
    ("unlinkat", AT_REMOVEDIR_BIT),
    ("pivot_root", 0),
    ("mount", 0),
    ("umount2", 0),
    ("move_mount", 0),
];

/// What the recorder is told, by the numbers of calls. Those that no kernel known to us gives a meaning are recorded
/// without a look at their arguments, and counted.
pub fn specs() -> Vec<[u8; SPEC_BYTES]> {
    let mut specs = vec![[0; SPEC_BYTES]; SPECS];
    for &(number, name, how) in CALLS {
        let mut spec = how.spec();
        if let Some(&(_, bit)) = MOVES.iter().find(|&&(moves, _)| moves == name) {
            spec.flags |= spec_flag::MOVES;
            spec.moves_if_bit = bit;
        }
        specs[usize::try_from(number).expect("small numbers")] = spec.to_bytes();
    }
    specs[usize::try_from(FIRST_UNKNOWN).expect("small numbers")..].fill(Spec::plain().to_bytes());
    specs
}

/// Requests of io_uring by opcode (`IORING_OP_*` of `<linux/io_uring.h>`), up to Linux 6.18.
#[rustfmt::skip]
pub(super) const REQUESTS: &[&str] = &[
    "nop", "readv", "writev", "fsync", "read_fixed", "write_fixed", "poll_add", "poll_remove", "sync_file_range",
    "sendmsg", "recvmsg", "timeout", "timeout_remove", "accept", "async_cancel", "link_timeout", "connect",
    "fallocate", "openat", "close", "files_update", "statx", "read", "write", "fadvise", "madvise", "send", "recv",
    "openat2", "epoll_ctl", "splice", "provide_buffers", "remove_buffers", "tee", "shutdown", "renameat", "unlinkat",
    "mkdirat", "symlinkat", "linkat", "msg_ring", "fsetxattr", "setxattr", "fgetxattr", "getxattr", "socket",
    "uring_cmd", "send_zc", "sendmsg_zc", "read_multishot", "waitid", "futex_wait", "futex_wake", "futex_waitv",
    "fixed_fd_install", "ftruncate", "bind", "listen", "recv_zc", "epoll_wait", "readv_fixed", "writev_fixed", "pipe",
];

/// The layout of calls by number.
#[derive(Debug)]
pub(super) struct Table(Vec<Option<(&'static str, How)>>);

impl Table {
    pub fn new() -> Table {
        let mut by_number = Vec::new();
        for &(number, name, how) in CALLS {
            let at = usize::try_from(number).expect("small numbers");
            if by_number.len() <= at {
                by_number.resize(at + 1, None);
            }
            by_number[at] = Some((name, how));
        }
        Table(by_number)
    }

    pub fn get(&self, number: u32) -> Option<(&'static str, How)> {
        self.0.get(usize::try_from(number).ok()?).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_the_kernel_headers() {
        let path = "/usr/include/linux/io_uring.h";
        let Ok(header) = std::fs::read_to_string(path) else {
            testkit::skip(format!("{path} is not installed (linux-libc-dev)"));
            return;
        };
        let opcode = |line: &str| {
            let name = line
                .trim()
                .strip_prefix("IORING_OP_")?
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next()?;
            Some(name.to_ascii_lowercase()).filter(|name| name != "last")
        };
        let theirs: Vec<String> = header.lines().filter_map(opcode).collect();
        assert!(theirs.len() > 40, "only {} opcodes found in {path}", theirs.len());
        // A later header has more.
        for (ours, theirs) in REQUESTS.iter().zip(&theirs) {
            assert_eq!(ours, theirs);
        }
    }
}
