//! The system calls that the kernel's recorder records: their numbers, and where their arguments point.
//!
//! What lives here: one table, from which the recorder is told what to copy ([`Spec`]) and the decoder what it got ([`How`]). What may
//! not: what calls mean. The numbers are those of x86-64 (`<asm/unistd_64.h>`).

use crate::Op;
use crate::strace::constants::AT_REMOVEDIR;

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

/// How a call's arguments are laid out, and so how to decode it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Named like the system calls.
pub enum How {
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
    AccessAt2,
    ReadLink,
    ReadLinkAt,
    /// `call(dirfd, path, mode)`, without flags
    ChmodAt,
    ChmodAt2,
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
    AioSubmit,
    Mount,
    Unmount,
    IoUringSetup,
    IoUringEnter,
    /// `call(path, ...)` that is not modelled
    Chroot,
    OtherPath,
    /// The same without a path that is told
    Other,
    /// `call(dirfd, path, ...)` that is not modelled
    OtherAt,
    /// `call(fd, ...)` that is not modelled
    OtherFd,
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

/// The system calls recorded: number, name, layout.
#[rustfmt::skip]
pub const CALLS: &[(u32, &str, How)] = {
    use How::*;
    &[
        (0, "read", Read), (1, "write", Write), (2, "open", Open), (3, "close", Close), (4, "stat", Stat), (5, "fstat", Fstat),
        (6, "lstat", Lstat), (8, "lseek", Seek), (9, "mmap", Mmap), (16, "ioctl", Ioctl), (17, "pread64", Pread),
        (18, "pwrite64", Pwrite), (19, "readv", Readv), (20, "writev", Writev), (21, "access", Access), (26, "msync", Msync),
        (32, "dup", Dup), (33, "dup2", Dup2), (40, "sendfile", Sendfile), (49, "bind", Bind), (56, "clone", Clone), (57, "fork", Fork),
        (58, "vfork", Fork), (59, "execve", Exec), (72, "fcntl", Fcntl), (73, "flock", Fd(Op::Fcntl)),
        (74, "fsync", Fd(Op::Fsync)), (75, "fdatasync", Fd(Op::Fdatasync)), (76, "truncate", Truncate),
        (77, "ftruncate", Ftruncate), (78, "getdents", FdLen(Op::GetDents)), (80, "chdir", Chdir), (81, "fchdir", Fchdir),
        (82, "rename", Rename), (83, "mkdir", Mkdir), (84, "rmdir", Rmdir), (85, "creat", Creat), (86, "link", Link),
        (87, "unlink", Unlink), (88, "symlink", Symlink), (89, "readlink", ReadLink), (90, "chmod", PathMode(Op::Chmod)),
        (91, "fchmod", FdMode(Op::Fchmod)), (92, "chown", Path(Op::Chown)), (93, "fchown", Fd(Op::Fchown)),
        (94, "lchown", PathNoFollow(Op::Chown)), (132, "utime", Path(Op::Utimens)), (133, "mknod", Mknod),
        (134, "uselib", OtherPath), (137, "statfs", Path(Op::StatFs)), (138, "fstatfs", Fd(Op::StatFs)),
        (155, "pivot_root", OtherPath), (161, "chroot", Chroot), (162, "sync", Sync), (163, "acct", OtherPath),
        (165, "mount", Mount), (166, "umount2", Unmount), (167, "swapon", OtherPath), (168, "swapoff", OtherPath),
        (179, "quotactl", Other), (187, "readahead", FdRange(Op::Readahead)), (188, "setxattr", Path(Op::SetXattr)),
        (189, "lsetxattr", PathNoFollow(Op::SetXattr)), (190, "fsetxattr", Fd(Op::SetXattr)),
        (191, "getxattr", Path(Op::GetXattr)), (192, "lgetxattr", PathNoFollow(Op::GetXattr)),
        (193, "fgetxattr", Fd(Op::GetXattr)), (194, "listxattr", Path(Op::ListXattr)),
        (195, "llistxattr", PathNoFollow(Op::ListXattr)), (196, "flistxattr", Fd(Op::ListXattr)),
        (197, "removexattr", Path(Op::RemoveXattr)), (198, "lremovexattr", PathNoFollow(Op::RemoveXattr)),
        (199, "fremovexattr", Fd(Op::RemoveXattr)), (209, "io_submit", AioSubmit), (217, "getdents64", FdLen(Op::GetDents)),
        (221, "fadvise64", FdRange(Op::Fadvise)), (235, "utimes", Path(Op::Utimens)), (257, "openat", OpenAt),
        (258, "mkdirat", MkdirAt), (259, "mknodat", MknodAt), (260, "fchownat", ChownAt), (261, "futimesat", FutimesAt),
        (262, "newfstatat", FstatAt), (263, "unlinkat", UnlinkAt), (264, "renameat", RenameAt), (265, "linkat", LinkAt),
        (266, "symlinkat", SymlinkAt), (267, "readlinkat", ReadLinkAt), (268, "fchmodat", ChmodAt), (269, "faccessat", AccessAt),
        (272, "unshare", Unshare), (275, "splice", Splice), (277, "sync_file_range", FdRange(Op::SyncRange)),
        (278, "vmsplice", OtherFd), (280, "utimensat", UtimensAt), (285, "fallocate", Fallocate), (292, "dup3", Dup3),
        (295, "preadv", Preadv), (296, "pwritev", Pwritev), (303, "name_to_handle_at", OtherAt),
        (304, "open_by_handle_at", OtherFd), (306, "syncfs", Fd(Op::SyncFs)), (308, "setns", SetNs), (316, "renameat2", RenameAt2),
        (322, "execveat", ExecAt), (326, "copy_file_range", CopyFileRange), (327, "preadv2", Preadv2),
        (328, "pwritev2", Pwritev2), (332, "statx", Statx), (425, "io_uring_setup", IoUringSetup),
        (426, "io_uring_enter", IoUringEnter), (428, "open_tree", OtherAt), (429, "move_mount", OtherAt), (433, "fspick", OtherAt),
        (435, "clone3", Clone3), (436, "close_range", CloseRange), (437, "openat2", OpenAt2), (439, "faccessat2", AccessAt2),
        (442, "mount_setattr", OtherAt), (443, "quotactl_fd", OtherFd), (452, "fchmodat2", ChmodAt2),
        (463, "setxattrat", OtherAt), (464, "getxattrat", OtherAt), (465, "listxattrat", OtherAt), (466, "removexattrat", OtherAt),
        (468, "file_getattr", OtherAt), (469, "file_setattr", OtherAt),
    ]
};

/// The first number that no kernel known to us gives a meaning: calls from here on are counted as not modelled.
pub const FIRST_UNKNOWN: u32 = 470;

const AT_REMOVEDIR_BIT: u8 = 9;
const _: () = assert!(AT_REMOVEDIR == 1 << AT_REMOVEDIR_BIT);

/// Calls after which directories may have other paths than before, or be gone; and the bit of argument 2 without which the call does no
/// such thing (0: always).
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

/// What the recorder is told, by the numbers of calls. Those that no kernel known to us gives a meaning are recorded without a
/// look at their arguments, and counted.
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
    use crate::strace::traced_calls;

    /// The names are judged by the importer of strace's text, which has its own table: what one shows, the other does.
    #[test]
    fn both_tracers_record_the_same_calls() {
        let ours: Vec<&str> = CALLS.iter().map(|&(_, name, _)| name).collect();
        // Names of other machines' calls, and of calls that x86-64 has under another name.
        let elsewhere = [
            "pread",
            "pwrite",
            "_llseek",
            "truncate64",
            "ftruncate64",
            "sendfile64",
            "fadvise64_64",
            "stat64",
            "lstat64",
            "fstat64",
            "fstatat64",
            "statfs64",
            "fstatfs64",
            "mmap2",
            "fcntl64",
            "umount",
        ];
        for name in traced_calls().filter(|name| !elsewhere.contains(name)) {
            assert!(ours.contains(&name), "{name} is traced by strace and not recorded by the kernel's recorder");
        }
        for name in ours {
            assert!(traced_calls().any(|traced| traced == name), "{name}");
        }
    }

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

    #[test]
    fn numbers_are_the_kernel_headers() {
        let path = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h";
        let Ok(header) = std::fs::read_to_string(path) else {
            testkit::skip(format!("{path} is not installed (linux-libc-dev)"));
            return;
        };
        let mut found = 0;
        for line in header.lines() {
            let mut words = line.split_whitespace().skip(1);
            let (Some(name), Some(number)) = (words.next().and_then(|w| w.strip_prefix("__NR_")), words.next()) else {
                continue;
            };
            if let Some(&(ours, _, _)) = CALLS.iter().find(|&&(_, known, _)| known == name) {
                assert_eq!(number.parse(), Ok(ours), "{name}");
                found += 1;
            }
        }
        assert!(found > 100, "only {found} names found in {path}");
    }
}
