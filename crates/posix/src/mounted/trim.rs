//! Telling the device which blocks are free (`FITRIM`).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct fstrim_range` (linux/fs.h).
#[repr(C)]
struct FstrimRange {
    start: u64,
    len: u64,
    minlen: u64,
}

/// `FITRIM`: `_IOWR('X', 121, struct fstrim_range)`.
const FITRIM: libc::c_ulong = 0xC018_5879;

/// Discards all free blocks of the file system that holds a directory; answers how many bytes that were.
pub(super) fn trim(directory: BorrowedFd<'_>) -> io::Result<u64> {
    let mut range = FstrimRange { start: 0, len: u64::MAX, minlen: 0 };
    // SAFETY: the request reads and writes a struct fstrim_range, which `range` is; it outlives the call.
    let result = unsafe { libc::ioctl(directory.as_raw_fd(), FITRIM as _, &raw mut range) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(range.len) }
}
