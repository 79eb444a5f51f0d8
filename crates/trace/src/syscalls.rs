//! The system calls that a recording must show: all that the tracker models, and those on files that it counts as not
//! modelled.
//!
//! What lives here: their names, their numbers, and how their arguments are laid out ([`How`]), which the recorder in
//! the kernel and the importer of strace's text share. What may not: what calls mean. The numbers are those of x86-64
//! (`<asm/unistd_64.h>`).

use crate::Op;

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
    Chroot,
    /// `call(path, ...)` that is not modelled
    OtherPath,
    /// The same without a path that is told
    Other,
    /// `call(dirfd, path, ...)` that is not modelled
    OtherAt,
    /// `call(fd, ...)` that is not modelled
    OtherFd,
}

/// Number, name, layout. The recorder in the kernel records these; strace is asked for these, and for what other
/// machines call them.
#[rustfmt::skip]
pub const CALLS: &[(u32, &str, How)] = {
    use How::*;
    &[
        (0, "read", Read), (1, "write", Write), (2, "open", Open), (3, "close", Close), (4, "stat", Stat),
        (5, "fstat", Fstat),
        (6, "lstat", Lstat), (8, "lseek", Seek), (9, "mmap", Mmap), (16, "ioctl", Ioctl), (17, "pread64", Pread),
        (18, "pwrite64", Pwrite), (19, "readv", Readv), (20, "writev", Writev), (21, "access", Access),
        (26, "msync", Msync),
        (32, "dup", Dup), (33, "dup2", Dup2), (40, "sendfile", Sendfile), (49, "bind", Bind), (56, "clone", Clone),
        (57, "fork", Fork),
        (58, "vfork", Fork), (59, "execve", Exec), (72, "fcntl", Fcntl), (73, "flock", Fd(Op::Fcntl)),
        (74, "fsync", Fd(Op::Fsync)), (75, "fdatasync", Fd(Op::Fdatasync)), (76, "truncate", Truncate),
        (77, "ftruncate", Ftruncate), (78, "getdents", FdLen(Op::GetDents)), (80, "chdir", Chdir),
        (81, "fchdir", Fchdir),
        (82, "rename", Rename), (83, "mkdir", Mkdir), (84, "rmdir", Rmdir), (85, "creat", Creat), (86, "link", Link),
        (87, "unlink", Unlink), (88, "symlink", Symlink), (89, "readlink", ReadLink),
        (90, "chmod", PathMode(Op::Chmod)),
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
        (199, "fremovexattr", Fd(Op::RemoveXattr)), (209, "io_submit", AioSubmit),
        (217, "getdents64", FdLen(Op::GetDents)),
        (221, "fadvise64", FdRange(Op::Fadvise)), (235, "utimes", Path(Op::Utimens)), (257, "openat", OpenAt),
        (258, "mkdirat", MkdirAt), (259, "mknodat", MknodAt), (260, "fchownat", ChownAt), (261, "futimesat", FutimesAt),
        (262, "newfstatat", FstatAt), (263, "unlinkat", UnlinkAt), (264, "renameat", RenameAt), (265, "linkat", LinkAt),
        (266, "symlinkat", SymlinkAt), (267, "readlinkat", ReadLinkAt), (268, "fchmodat", ChmodAt),
        (269, "faccessat", AccessAt),
        (272, "unshare", Unshare), (275, "splice", Splice), (277, "sync_file_range", FdRange(Op::SyncRange)),
        (278, "vmsplice", OtherFd), (280, "utimensat", UtimensAt), (285, "fallocate", Fallocate), (292, "dup3", Dup3),
        (295, "preadv", Preadv), (296, "pwritev", Pwritev), (303, "name_to_handle_at", OtherAt),
        (304, "open_by_handle_at", OtherFd), (306, "syncfs", Fd(Op::SyncFs)), (308, "setns", SetNs),
        (316, "renameat2", RenameAt2),
        (322, "execveat", ExecAt), (326, "copy_file_range", CopyFileRange), (327, "preadv2", Preadv2),
        (328, "pwritev2", Pwritev2), (332, "statx", Statx), (425, "io_uring_setup", IoUringSetup),
        (426, "io_uring_enter", IoUringEnter), (428, "open_tree", OtherAt), (429, "move_mount", OtherAt),
        (433, "fspick", OtherAt),
        (435, "clone3", Clone3), (436, "close_range", CloseRange), (437, "openat2", OpenAt2),
        (439, "faccessat2", AccessAt2),
        (442, "mount_setattr", OtherAt), (443, "quotactl_fd", OtherFd), (452, "fchmodat2", ChmodAt2),
        (463, "setxattrat", OtherAt), (464, "getxattrat", OtherAt), (465, "listxattrat", OtherAt),
        (466, "removexattrat", OtherAt),
        (468, "file_getattr", OtherAt), (469, "file_setattr", OtherAt),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strace::traced_calls;

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
            } else {
                let shown = traced_calls().any(|traced| traced == name);
                assert!(!shown, "strace shows {name}, and the recorder in the kernel does not record it");
            }
        }
        assert!(found > 100, "only {found} names found in {path}");
    }
}
