//! The operations of a trace: system calls reduced to what they ask of a file system.

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident = $text:literal),* $(,)?) => {
        /// What a traced call asked for. Variants of one call (`stat`, `newfstatat`, `statx`) share an operation; what
        /// sets them apart is in the event's flags.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Op { $($(#[$doc])* $name),* }

        impl Op {
            /// Every operation, in the order of their numbers.
            pub const ALL: &'static [Op] = &[$(Op::$name),*];

            /// The name used in files and tables.
            pub const fn name(self) -> &'static str {
                match self { $(Op::$name => $text),* }
            }

            /// The operation of a name, if there is one.
            pub fn from_name(name: &str) -> Option<Op> {
                match name { $($text => Some(Op::$name),)* _ => None }
            }
        }
    };
}

ops! {
    /// open, openat, openat2, creat. `flags`: [`OpenFlags`](posix::OpenFlags) packed by `Event::pack_open`; `mode`.
    Open = "open",
    /// close, and each descriptor of close_range; only the last close of a description carries `last` in its flags.
    Close = "close",
    /// read, readv, pread64, preadv, preadv2 (`flags`: positional).
    Read = "read",
    /// write, writev, pwrite64, pwritev, pwritev2 (`flags`: positional).
    Write = "write",
    /// lseek; `ret` is the new offset, `flags` the whence.
    Seek = "lseek",
    /// fsync
    Fsync = "fsync",
    /// fdatasync
    Fdatasync = "fdatasync",
    /// sync_file_range
    SyncRange = "sync_file_range",
    /// sync
    Sync = "sync",
    /// syncfs
    SyncFs = "syncfs",
    /// msync
    Msync = "msync",
    /// truncate; `req_bytes` is the new length
    Truncate = "truncate",
    /// ftruncate; `req_bytes` is the new length
    Ftruncate = "ftruncate",
    /// fallocate; `offset`, `req_bytes`, `flags` the mode
    Fallocate = "fallocate",
    /// copy_file_range, sendfile, splice with a file at one or both ends, FICLONE: `file_id` is the source,
    /// `ofd_id2` the destination.
    Copy = "copy",
    /// posix_fadvise
    Fadvise = "fadvise",
    /// readahead
    Readahead = "readahead",
    /// stat, lstat, newfstatat, statx by path (`flags`: nofollow)
    Stat = "stat",
    /// fstat, and the at-calls with an empty path
    Fstat = "fstat",
    /// statfs, fstatfs
    StatFs = "statfs",
    /// access, faccessat, faccessat2; `mode` is what was asked
    Access = "access",
    /// readlink, readlinkat
    ReadLink = "readlink",
    /// getdents, getdents64
    GetDents = "getdents",
    /// mkdir, mkdirat
    Mkdir = "mkdir",
    /// rmdir, unlinkat with AT_REMOVEDIR
    Rmdir = "rmdir",
    /// unlink, unlinkat
    Unlink = "unlink",
    /// rename, renameat, renameat2: `path` to `path2`
    Rename = "rename",
    /// link, linkat: `path2` becomes a name of `path`
    Link = "link",
    /// symlink, symlinkat: `path` is the link, `path2` its target as given
    Symlink = "symlink",
    /// mknod, mknodat, bind of a socket to a path
    Mknod = "mknod",
    /// chmod, fchmodat
    Chmod = "chmod",
    /// fchmod
    Fchmod = "fchmod",
    /// chown, lchown, fchownat
    Chown = "chown",
    /// fchown
    Fchown = "fchown",
    /// utime, utimes, utimensat, futimesat by path
    Utimens = "utimens",
    /// futimens: utimensat with a null path
    Futimens = "futimens",
    /// setxattr, lsetxattr, fsetxattr
    SetXattr = "setxattr",
    /// getxattr, lgetxattr, fgetxattr
    GetXattr = "getxattr",
    /// listxattr, llistxattr, flistxattr
    ListXattr = "listxattr",
    /// removexattr, lremovexattr, fremovexattr
    RemoveXattr = "removexattr",
    /// mmap of a file; a tracer in the kernel shows the faults on it, strace does not. `offset`, `req_bytes`.
    Mmap = "mmap",
    /// A page fault that read a file through a mapping. `offset` and `ret`: the bytes that the fault made accessible;
    /// no call.
    MapRead = "map_read",
    /// A page fault that made pages of a shared mapping writable. `offset` and `ret`: the bytes made dirty; no call.
    MapWrite = "map_write",
    /// dup, dup2, dup3, fcntl(F_DUPFD): shares the description
    Dup = "dup",
    /// fcntl other than duplication, flock: locks and flags
    Fcntl = "fcntl",
    /// ioctl on a file
    Ioctl = "ioctl",
    /// chdir
    Chdir = "chdir",
    /// fchdir
    Fchdir = "fchdir",
    /// execve, execveat: the path walk and the open of the image; its pages are mapped, so unseen
    Exec = "exec",
    /// fork, vfork, clone, clone3; `ret` is the child
    Clone = "clone",
    /// exit, exit_group, killed by a signal
    Exit = "exit",
    /// io_uring_setup: everything submitted through the ring is unseen
    IoUring = "io_uring",
    /// A call on a file that is seen and not modelled; counted in the coverage
    Other = "other",
}

impl Op {
    /// The operation with this number.
    pub fn from_u8(n: u8) -> Option<Op> {
        Op::ALL.get(usize::from(n)).copied()
    }
}
