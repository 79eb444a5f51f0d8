//! The kernel's symbolic constants that strace prints, as numbers (x86-64 and all that use asm-generic values).

use crate::flag;

/// `O_*` names to the kernel's numbers (`<asm-generic/fcntl.h>`). Names that say nothing here are 0.
pub(crate) fn open_flag(name: &[u8]) -> u64 {
    match name {
        b"O_RDONLY" => 0,
        b"O_CLOEXEC" => O_CLOEXEC,
        b"O_WRONLY" => O_WRONLY,
        b"O_CREAT" => O_CREAT,
        b"O_TRUNC" => O_TRUNC,
        b"O_RDWR" => O_RDWR,
        b"O_DIRECTORY" => O_DIRECTORY,
        b"O_EXCL" => O_EXCL,
        b"O_APPEND" => O_APPEND,
        b"O_NOFOLLOW" => O_NOFOLLOW,
        b"O_NOATIME" => O_NOATIME,
        b"O_DIRECT" => O_DIRECT,
        b"O_DSYNC" => O_DSYNC,
        b"O_SYNC" => O_SYNC,
        b"O_PATH" => O_PATH,
        b"O_TMPFILE" => O_TMPFILE,
        b"__O_TMPFILE" => O_TMPFILE & !O_DIRECTORY,
        _ => 0,
    }
}

const O_WRONLY: u64 = 0o1;
const O_RDWR: u64 = 0o2;
pub(crate) const O_CREAT: u64 = 0o100;
const O_EXCL: u64 = 0o200;
const O_TRUNC: u64 = 0o1000;
pub(crate) const O_APPEND: u64 = 0o2000;
const O_DSYNC: u64 = 0o10000;
const O_DIRECT: u64 = 0o40000;
const O_DIRECTORY: u64 = 0o200_000;
const O_NOFOLLOW: u64 = 0o400_000;
const O_NOATIME: u64 = 0o1_000_000;
pub(crate) const O_CLOEXEC: u64 = 0o2_000_000;
const O_SYNC: u64 = 0o4_010_000;
const O_PATH: u64 = 0o10_000_000;
pub(crate) const O_TMPFILE: u64 = 0o20_200_000;

/// What `creat` opens with.
pub(crate) const CREAT: u64 = O_WRONLY | O_CREAT | O_TRUNC;

/// The kernel's open flags as the trace's.
pub(crate) fn trace_open_flags(kernel: u64) -> u32 {
    let access = match kernel & 3 {
        0 => flag::READ,
        1 => flag::WRITE,
        // 3 is for ioctl only (open(2)).
        2 => flag::READ | flag::WRITE,
        _ => 0,
    };
    let has = |bits: u64, flag: u32| if kernel & bits == bits { flag } else { 0 };
    let tmpfile = has(O_TMPFILE, flag::TMPFILE);
    let path_only = has(O_PATH, flag::PATH_ONLY);
    let sync = has(O_SYNC, flag::SYNC);
    access
        | has(O_CREAT, flag::CREATE)
        | has(O_EXCL, flag::EXCL)
        | has(O_TRUNC, flag::TRUNC)
        | has(O_APPEND, flag::APPEND)
        | if tmpfile == 0 { has(O_DIRECTORY, flag::DIRECTORY) } else { tmpfile }
        | has(O_NOFOLLOW, flag::NOFOLLOW)
        | has(O_NOATIME, flag::NOATIME)
        | has(O_DIRECT, flag::DIRECT)
        | if sync == 0 { has(O_DSYNC, flag::DSYNC) } else { sync }
        | has(O_CLOEXEC, flag::CLOEXEC)
        | path_only
}

/// `AT_*` flags.
pub(crate) fn at_flag(name: &[u8]) -> u64 {
    match name {
        b"AT_SYMLINK_NOFOLLOW" => AT_SYMLINK_NOFOLLOW,
        // The same bit means "effective ids" to faccessat.
        b"AT_REMOVEDIR" => AT_REMOVEDIR,
        b"AT_SYMLINK_FOLLOW" => AT_SYMLINK_FOLLOW,
        b"AT_EMPTY_PATH" => AT_EMPTY_PATH,
        _ => 0,
    }
}

pub(crate) const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
pub(crate) const AT_REMOVEDIR: u64 = 0x200;
pub(crate) const AT_SYMLINK_FOLLOW: u64 = 0x400;
pub(crate) const AT_EMPTY_PATH: u64 = 0x1000;

/// `RENAME_*` flags.
pub(crate) fn rename_flag(name: &[u8]) -> u64 {
    match name {
        b"RENAME_NOREPLACE" => 1,
        b"RENAME_EXCHANGE" => 2,
        b"RENAME_WHITEOUT" => 4,
        _ => 0,
    }
}

/// `SEEK_*`.
pub(crate) fn whence(name: &[u8]) -> u64 {
    match name {
        b"SEEK_CUR" => 1,
        b"SEEK_END" => 2,
        b"SEEK_DATA" => 3,
        b"SEEK_HOLE" => 4,
        _ => 0,
    }
}

/// `R_OK` and the like.
pub(crate) fn access_mode(name: &[u8]) -> u64 {
    match name {
        b"R_OK" => 4,
        b"W_OK" => 2,
        b"X_OK" => 1,
        _ => 0,
    }
}

/// `FALLOC_FL_*`.
pub(crate) fn fallocate_flag(name: &[u8]) -> u64 {
    match name {
        b"FALLOC_FL_KEEP_SIZE" => 1,
        b"FALLOC_FL_PUNCH_HOLE" => 2,
        b"FALLOC_FL_NO_HIDE_STALE" => 4,
        b"FALLOC_FL_COLLAPSE_RANGE" => 8,
        b"FALLOC_FL_ZERO_RANGE" => 16,
        b"FALLOC_FL_INSERT_RANGE" => 32,
        b"FALLOC_FL_UNSHARE_RANGE" => 64,
        _ => 0,
    }
}

/// `SYNC_FILE_RANGE_*`.
pub(crate) fn sync_range_flag(name: &[u8]) -> u64 {
    match name {
        b"SYNC_FILE_RANGE_WAIT_BEFORE" => 1,
        b"SYNC_FILE_RANGE_WRITE" => 2,
        b"SYNC_FILE_RANGE_WAIT_AFTER" => 4,
        _ => 0,
    }
}

/// `POSIX_FADV_*`, as on all machines but s390.
pub(crate) fn advice(name: &[u8]) -> u64 {
    match name {
        b"POSIX_FADV_RANDOM" => 1,
        b"POSIX_FADV_SEQUENTIAL" => 2,
        b"POSIX_FADV_WILLNEED" => 3,
        b"POSIX_FADV_DONTNEED" => 4,
        b"POSIX_FADV_NOREUSE" => 5,
        _ => 0,
    }
}

/// `PROT_*`.
pub(crate) fn prot(name: &[u8]) -> u64 {
    match name {
        b"PROT_READ" => 1,
        b"PROT_WRITE" => PROT_WRITE,
        b"PROT_EXEC" => PROT_EXEC,
        _ => 0,
    }
}

pub(crate) const PROT_WRITE: u64 = 2;
pub(crate) const PROT_EXEC: u64 = 4;

/// `MAP_*`.
pub(crate) fn map_flag(name: &[u8]) -> u64 {
    match name {
        b"MAP_SHARED" => 1,
        b"MAP_PRIVATE" => 2,
        b"MAP_SHARED_VALIDATE" => 3,
        b"MAP_ANONYMOUS" => MAP_ANONYMOUS,
        b"MAP_DENYWRITE" => MAP_DENYWRITE,
        _ => 0,
    }
}

pub(crate) const MAP_TYPE: u64 = 3;
pub(crate) const MAP_PRIVATE: u64 = 2;
pub(crate) const MAP_ANONYMOUS: u64 = 0x20;
pub(crate) const MAP_DENYWRITE: u64 = 0x800;

/// `RWF_*` of preadv2 and pwritev2.
pub(crate) fn rwf(name: &[u8]) -> u64 {
    match name {
        b"RWF_DSYNC" => RWF_DSYNC,
        b"RWF_SYNC" => RWF_SYNC,
        b"RWF_APPEND" => RWF_APPEND,
        _ => 0,
    }
}

pub(crate) const RWF_DSYNC: u64 = 2;
pub(crate) const RWF_SYNC: u64 = 4;
pub(crate) const RWF_APPEND: u64 = 16;

/// `CLONE_*`.
pub(crate) fn clone_flag(name: &[u8]) -> u64 {
    match name {
        b"CLONE_FS" => CLONE_FS,
        b"CLONE_FILES" => CLONE_FILES,
        b"CLONE_THREAD" => CLONE_THREAD,
        b"CLONE_NEWNS" => CLONE_NEWNS,
        _ => 0,
    }
}

pub(crate) const CLONE_FS: u64 = 0x200;
pub(crate) const CLONE_FILES: u64 = 0x400;
pub(crate) const CLONE_THREAD: u64 = 0x10000;
pub(crate) const CLONE_NEWNS: u64 = 0x20000;

/// `MS_*`, of those that matter to names.
pub(crate) fn mount_flag(name: &[u8]) -> u64 {
    match name {
        b"MS_REMOUNT" => 32,
        b"MS_BIND" => 4096,
        b"MS_MOVE" => 8192,
        b"MS_REC" => 16384,
        b"MS_UNBINDABLE" => 1 << 17,
        b"MS_PRIVATE" => 1 << 18,
        b"MS_SLAVE" => 1 << 19,
        b"MS_SHARED" => 1 << 20,
        _ => 0,
    }
}

/// `CLOSE_RANGE_*`.
pub(crate) fn close_range_flag(name: &[u8]) -> u64 {
    match name {
        b"CLOSE_RANGE_UNSHARE" => 2,
        b"CLOSE_RANGE_CLOEXEC" => 4,
        _ => 0,
    }
}

/// `fcntl` commands.
pub(crate) fn fcntl_command(name: &[u8]) -> u64 {
    match name {
        b"F_DUPFD" => F_DUPFD,
        b"F_DUPFD_CLOEXEC" => F_DUPFD_CLOEXEC,
        b"F_GETFD" => F_GETFD,
        b"F_SETFD" => F_SETFD,
        b"F_GETFL" => F_GETFL,
        b"F_SETFL" => F_SETFL,
        b"F_GETLK" | b"F_GETLK64" => 5,
        b"F_SETLK" | b"F_SETLK64" => 6,
        b"F_SETLKW" | b"F_SETLKW64" => 7,
        b"F_OFD_GETLK" => 36,
        b"F_OFD_SETLK" => 37,
        b"F_OFD_SETLKW" => 38,
        _ => F_OTHER,
    }
}

/// What a command of `fcntl` is about, as bits of an event's flags (`<asm-generic/fcntl.h>`, `<linux/fcntl.h>`).
pub(crate) fn fcntl_about(command: u64) -> u32 {
    match command {
        F_GETFD | F_SETFD | F_GETFL | F_SETFL => flag::DESCRIPTOR_FLAGS,
        // F_GETLK, F_SETLK, F_SETLKW and their variants for descriptions.
        5..=7 | 36..=38 => 0,
        _ => flag::NO_LOCK,
    }
}

pub(crate) const F_DUPFD: u64 = 0;
pub(crate) const F_GETFD: u64 = 1;
pub(crate) const F_SETFD: u64 = 2;
pub(crate) const F_GETFL: u64 = 3;
pub(crate) const F_SETFL: u64 = 4;
pub(crate) const F_DUPFD_CLOEXEC: u64 = 0x406;
const F_OTHER: u64 = 1 << 32;

/// The number of an error name strace prints. Restart codes, which programs never see, are `EINTR`.
pub(crate) fn errno(name: &[u8]) -> Option<u16> {
    if let Some(errno) = posix::Errno::from_name(name) {
        return Some(errno.0);
    }
    if name.starts_with(b"ERESTART") {
        return Some(posix::Errno::EINTR.0);
    }
    REST.iter().find(|(n, _)| n.as_bytes() == name).map(|&(_, n)| n)
}

/// Those of `<asm-generic/errno.h>` that are no business of file systems.
#[rustfmt::skip]
const REST: &[(&str, u16)] = &[
    ("EIDRM", 43), ("ECHRNG", 44), ("EL2NSYNC", 45), ("EL3HLT", 46), ("EL3RST", 47), ("ELNRNG", 48), ("EUNATCH", 49),
    ("ENOCSI", 50), ("EL2HLT", 51), ("EBADE", 52), ("EBADR", 53), ("EXFULL", 54), ("ENOANO", 55), ("EBADRQC", 56),
    ("EBADSLT", 57), ("EBFONT", 59), ("ENOSTR", 60), ("ENOSR", 63), ("ENONET", 64), ("ENOPKG", 65), ("EREMOTE", 66),
    ("EADV", 68), ("ESRMNT", 69), ("ECOMM", 70), ("EMULTIHOP", 72), ("EDOTDOT", 73), ("ENOTUNIQ", 76), ("EBADFD", 77),
    ("EREMCHG", 78), ("ELIBACC", 79), ("ELIBBAD", 80), ("ELIBSCN", 81), ("ELIBMAX", 82), ("ELIBEXEC", 83),
    ("ERESTART", 85), ("ESTRPIPE", 86), ("EDESTADDRREQ", 89), ("EMSGSIZE", 90), ("EPROTOTYPE", 91),
    ("ENOPROTOOPT", 92), ("EPROTONOSUPPORT", 93), ("ESOCKTNOSUPPORT", 94), ("EPFNOSUPPORT", 96), ("EAFNOSUPPORT", 97),
    ("EADDRNOTAVAIL", 99), ("ENETDOWN", 100), ("ENETRESET", 102), ("ECONNABORTED", 103), ("ENOBUFS", 105),
    ("EISCONN", 106), ("ESHUTDOWN", 108), ("ETOOMANYREFS", 109), ("EHOSTDOWN", 112), ("EHOSTUNREACH", 113),
    ("ENOTNAM", 118), ("ENAVAIL", 119), ("EISNAM", 120), ("EREMOTEIO", 121), ("ENOMEDIUM", 123), ("EMEDIUMTYPE", 124),
    ("ENOKEY", 126), ("EKEYEXPIRED", 127), ("EKEYREVOKED", 128), ("EKEYREJECTED", 129), ("EOWNERDEAD", 130),
    ("ENOTRECOVERABLE", 131), ("ERFKILL", 132), ("EHWPOISON", 133), ("ENOIOCTLCMD", 515), ("ENOTSUPP", 524),
];

/// The number of a signal name.
pub(crate) fn signal(name: &[u8]) -> Option<i64> {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    ];
    let name = name.strip_prefix(b"SIG")?;
    (1..).zip(NAMES).find(|(_, n)| n.as_bytes() == name).map(|(i, _)| i)
}

/// `IORING_SETUP_SQPOLL` of `<linux/io_uring.h>`.
pub(super) const SQPOLL: u64 = 2;
/// `RESOLVE_IN_ROOT` of `<linux/openat2.h>`.
pub(crate) const IN_ROOT: u64 = 0x10;

/// The one flag of io_uring_setup that matters here.
pub(super) fn io_uring_flag(name: &[u8]) -> u64 {
    if name == b"IORING_SETUP_SQPOLL" { SQPOLL } else { 0 }
}

/// The one way of openat2 to resolve that matters here.
pub(super) fn resolve_flag(name: &[u8]) -> u64 {
    if name == b"RESOLVE_IN_ROOT" { IN_ROOT } else { 0 }
}
/// Requests of ioctl that make, remove or change files: name as strace prints it, type and number (`_IOC` of
/// `<linux/ioctl.h>`). `<linux/btrfs.h>`, `<linux/falloc.h>`, `<xfs/xfs_fs.h>`, `fs/ext4/ext4.h`, `<linux/f2fs.h>`.
const CHANGING_IOCTLS: [(&[u8], u64, u64); 17] = [
    (b"BTRFS_IOC_SNAP_CREATE", 0x94, 1),
    (b"BTRFS_IOC_SUBVOL_CREATE", 0x94, 14),
    (b"BTRFS_IOC_SNAP_DESTROY", 0x94, 15),
    (b"BTRFS_IOC_SNAP_CREATE_V2", 0x94, 23),
    (b"BTRFS_IOC_SUBVOL_CREATE_V2", 0x94, 24),
    (b"BTRFS_IOC_SNAP_DESTROY_V2", 0x94, 63),
    (b"FS_IOC_RESVSP", 0x58, 40),
    (b"FS_IOC_UNRESVSP", 0x58, 41),
    (b"FS_IOC_RESVSP64", 0x58, 42),
    (b"FS_IOC_UNRESVSP64", 0x58, 43),
    (b"FS_IOC_ZERO_RANGE", 0x58, 57),
    (b"XFS_IOC_SWAPEXT", 0x58, 109),
    (b"XFS_IOC_EXCHANGE_RANGE", 0x58, 129),
    (b"EXT4_IOC_MOVE_EXT", 0x66, 15),
    (b"F2FS_IOC_START_ATOMIC_WRITE", 0xf5, 1),
    (b"F2FS_IOC_COMMIT_ATOMIC_WRITE", 0xf5, 2),
    (b"F2FS_IOC_MOVE_RANGE", 0xf5, 9),
];

/// Whether a request of ioctl makes, removes or changes files.
pub(crate) fn ioctl_changes_files(request: u64) -> bool {
    let (kind, number) = (request >> 8 & 0xff, request & 0xff);
    CHANGING_IOCTLS.iter().any(|&(_, k, n)| (k, n) == (kind, number))
}

/// The same of one as strace prints it: all names that its number has, or
/// `_IOC(_IOC_READ|_IOC_WRITE, 0x58, 0x6d, 0xc0)`.
pub(super) fn printed_ioctl_changes_files(text: &[u8]) -> bool {
    let Some(parts) = text.strip_prefix(b"_IOC(") else {
        let mut names = text.split(|&b| b == b' ');
        return names.any(|name| CHANGING_IOCTLS.iter().any(|&(known, ..)| known == name));
    };
    let mut parts = parts.split(|&b| b == b',').skip(1).map(|part| {
        let digits = std::str::from_utf8(part.trim_ascii()).ok()?;
        u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok()
    });
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(kind), Some(number)) => ioctl_changes_files(kind << 8 | number),
        _ => false,
    }
}
