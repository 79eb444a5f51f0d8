//! Waiting for XFS to free the space of removed files (`XFS_IOC_FREE_EOFBLOCKS`).
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct xfs_fs_eofblocks` (xfs_fs.h of the kernel).
#[repr(C)]
struct XfsFsEofblocks {
    version: u32,
    flags: u32,
    uid: u32,
    gid: u32,
    prid: u32,
    pad32: u32,
    min_file_size: u64,
    pad64: [u64; 12],
}

/// `XFS_IOC_FREE_EOFBLOCKS`: `_IOR('X', 58, struct xfs_fs_eofblocks)`.
const XFS_IOC_FREE_EOFBLOCKS: libc::c_ulong = 0x8080_583A;
const EOFBLOCKS_VERSION: u32 = 1;
const EOF_FLAGS_MINFILESIZE: u32 = 1 << 4;

/// Waits until the XFS that holds a directory has freed what removed files had. Answers false where that cannot be
/// waited for: it is no XFS, or we are not privileged.
///
/// The request gives back what files have been allocated beyond their ends, and then waits for the removals that the
/// kernel has put off (`xfs_inodegc_flush`, since Linux 5.14). Neither syncfs(2) nor statfs(2) waits for them. Only
/// files of 2^64 - 1 bytes are to give something back: there are none, and no file is changed.
pub(super) fn finish(directory: BorrowedFd<'_>) -> bool {
    const XFS_SUPER_MAGIC: u64 = 0x5846_5342;
    let is_xfs = rustix::fs::fstatfs(directory).is_ok_and(|s| u64::try_from(s.f_type) == Ok(XFS_SUPER_MAGIC));
    let none = XfsFsEofblocks {
        version: EOFBLOCKS_VERSION,
        flags: EOF_FLAGS_MINFILESIZE,
        uid: 0,
        gid: 0,
        prid: 0,
        pad32: 0,
        min_file_size: u64::MAX,
        pad64: [0; 12],
    };
    // SAFETY: the request reads a 128-byte struct xfs_fs_eofblocks, which `none` is; it outlives the call.
    is_xfs && unsafe { libc::ioctl(directory.as_raw_fd(), XFS_IOC_FREE_EOFBLOCKS as _, &raw const none) } == 0
}
