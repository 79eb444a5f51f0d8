//! System calls that rustix does not have, each behind a safe function.
#![allow(unsafe_code)]

use crate::{Errno, Lock, Residency, SyncRange, Whence};
use rustix::fs::AtFlags;
use rustix::io::Result;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::OnceLock;

// <asm/unistd_64.h> and <asm-generic/unistd.h>; Linux 6.13 and later.
const SYS_SETXATTRAT: libc::c_long = 463;
const SYS_GETXATTRAT: libc::c_long = 464;
const SYS_LISTXATTRAT: libc::c_long = 465;
const SYS_REMOVEXATTRAT: libc::c_long = 466;

/// `struct xattr_args` of linux/xattr.h.
#[repr(C, align(8))]
struct XattrArgs {
    value: u64,
    size: u32,
    flags: u32,
}

fn answer(result: libc::c_long) -> Result<u64> {
    u64::try_from(result).map_err(|_| {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        rustix::io::Errno::from_raw_os_error(errno)
    })
}

fn signed(value: u64) -> Result<i64> {
    i64::try_from(value).map_err(|_| rustix::io::Errno::INVAL)
}

/// `close(2)`, whose error `OwnedFd` would swallow.
pub(crate) fn close(fd: OwnedFd) -> Result<()> {
    // SAFETY: the number comes from its only owner, which forgets it here.
    answer(unsafe { libc::close(fd.into_raw_fd()) }.into()).map(drop)
}

/// What `fcntl(F_SETLK)` is to do, made before the clock starts.
pub(crate) fn lock_request(lock: Lock, offset: u64, len_bytes: u64) -> std::result::Result<libc::flock64, Errno> {
    let kind = match lock {
        Lock::Shared => libc::F_RDLCK,
        Lock::Exclusive => libc::F_WRLCK,
        Lock::Unlock => libc::F_UNLCK,
    };
    // SAFETY: all fields of the struct are integers, for which zero is a value.
    let mut request: libc::flock64 = unsafe { std::mem::zeroed() };
    #[allow(clippy::unnecessary_cast)] // the constants' types differ between C libraries
    {
        request.l_type = kind as libc::c_short;
        request.l_whence = libc::SEEK_SET as libc::c_short;
    }
    request.l_start = signed(offset)?;
    request.l_len = signed(len_bytes)?;
    Ok(request)
}

/// `fcntl(F_SETLK)`
pub(crate) fn set_lock(fd: BorrowedFd<'_>, request: &libc::flock64) -> Result<()> {
    // SAFETY: the request is read by the kernel only and outlives the call.
    answer(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETLK, std::ptr::from_ref(request)) }.into()).map(drop)
}

/// `mmap(2)` of the start of a file, shared and read-only, and `munmap(2)` of it.
pub(crate) fn map_unmap(fd: BorrowedFd<'_>, len: usize) -> Result<()> {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    // SAFETY: a new mapping at an address of the kernel's choice, never touched.
    let start = unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, fd, 0) }?;
    // SAFETY: the mapping just made, which nothing refers to.
    unsafe { munmap(start, len) }
}

/// `lseek(2)` with any whence, and with offsets that the kernel is to refuse.
pub(crate) fn lseek(fd: BorrowedFd<'_>, offset: i64, whence: Whence) -> Result<u64> {
    let whence = match whence {
        Whence::Set => libc::SEEK_SET,
        Whence::Current => libc::SEEK_CUR,
        Whence::End => libc::SEEK_END,
        Whence::Data => libc::SEEK_DATA,
        Whence::Hole => libc::SEEK_HOLE,
    };
    // SAFETY: takes a descriptor and integers, touches no memory of ours.
    answer(unsafe { libc::lseek64(fd.as_raw_fd(), offset, whence) })
}

/// `sync_file_range(2)`
pub(crate) fn sync_range(fd: BorrowedFd<'_>, offset: u64, len_bytes: u64, how: SyncRange) -> Result<()> {
    let (offset, len) = (signed(offset)?, signed(len_bytes)?);
    // SAFETY: takes a descriptor and integers, touches no memory of ours.
    answer(unsafe { libc::sync_file_range(fd.as_raw_fd(), offset, len, how.bits().into()) }.into()).map(drop)
}

/// `getdents64(2)`
pub(crate) fn getdents(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<u64> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into the buffer, which is ours for the call.
    answer(unsafe { libc::syscall(libc::SYS_getdents64, fd.as_raw_fd(), buffer.as_mut_ptr(), buffer.len()) })
}

/// `readv(2)`, or `preadv(2)` with an offset.
///
/// # Safety
/// Every piece must be memory that may be overwritten during the call; pieces may overlap.
pub(crate) unsafe fn read_pieces(fd: BorrowedFd<'_>, pieces: &[libc::iovec], offset: Option<u64>) -> Result<u64> {
    let count = i32::try_from(pieces.len()).map_err(|_| rustix::io::Errno::INVAL)?;
    let read = match offset {
        // SAFETY: the list is valid for the call, its pieces are writable by the caller's promise.
        None => unsafe { libc::readv(fd.as_raw_fd(), pieces.as_ptr(), count) },
        // SAFETY: as above.
        Some(at) => unsafe { libc::preadv64(fd.as_raw_fd(), pieces.as_ptr(), count, signed(at)?) },
    };
    answer(read as libc::c_long)
}

/// `truncate(2)`
pub(crate) fn truncate(path: &CStr, len_bytes: u64) -> Result<()> {
    let len = signed(len_bytes)?;
    // SAFETY: the path is NUL-terminated and outlives the call.
    answer(unsafe { libc::truncate64(path.as_ptr(), len) }.into()).map(drop)
}

/// Whether the kernel has the xattr calls that start at a directory.
pub(crate) fn has_xattrat() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        // SAFETY: an invalid descriptor and a null list of size 0: the call can only fail.
        let probe = answer(unsafe {
            libc::syscall(SYS_LISTXATTRAT, -1, c".".as_ptr(), 0u32, std::ptr::null_mut::<u8>(), 0usize)
        });
        matches!(probe, Err(rustix::io::Errno::BADF))
    })
}

/// `setxattrat(2)`
pub(crate) fn setxattrat(dir: BorrowedFd<'_>, path: &CStr, how: AtFlags, name: &CStr, value: &[u8]) -> Result<()> {
    let size = u32::try_from(value.len()).map_err(|_| rustix::io::Errno::TOOBIG)?;
    let args = XattrArgs { value: value.as_ptr() as u64, size, flags: 0 };
    // SAFETY: strings are NUL-terminated, `args` names `size` readable bytes; all outlive the call.
    answer(unsafe {
        libc::syscall(
            SYS_SETXATTRAT,
            dir.as_raw_fd(),
            path.as_ptr(),
            how.bits(),
            name.as_ptr(),
            &raw const args,
            size_of::<XattrArgs>(),
        )
    })
    .map(drop)
}

/// `getxattrat(2)`
pub(crate) fn getxattrat(
    dir: BorrowedFd<'_>,
    path: &CStr,
    how: AtFlags,
    name: &CStr,
    buffer: &mut [u8],
) -> Result<u64> {
    let size = u32::try_from(buffer.len()).map_err(|_| rustix::io::Errno::TOOBIG)?;
    let mut args = XattrArgs { value: buffer.as_mut_ptr() as u64, size, flags: 0 };
    // SAFETY: strings are NUL-terminated, `args` names `size` writable bytes; all outlive the call.
    answer(unsafe {
        libc::syscall(
            SYS_GETXATTRAT,
            dir.as_raw_fd(),
            path.as_ptr(),
            how.bits(),
            name.as_ptr(),
            &raw mut args,
            size_of::<XattrArgs>(),
        )
    })
}

/// `listxattrat(2)`
pub(crate) fn listxattrat(dir: BorrowedFd<'_>, path: &CStr, how: AtFlags, buffer: &mut [u8]) -> Result<u64> {
    // SAFETY: the path is NUL-terminated, the kernel writes at most `buffer.len()` bytes.
    answer(unsafe {
        libc::syscall(SYS_LISTXATTRAT, dir.as_raw_fd(), path.as_ptr(), how.bits(), buffer.as_mut_ptr(), buffer.len())
    })
}

/// `removexattrat(2)`
pub(crate) fn removexattrat(dir: BorrowedFd<'_>, path: &CStr, how: AtFlags, name: &CStr) -> Result<()> {
    // SAFETY: both strings are NUL-terminated and outlive the call.
    answer(unsafe { libc::syscall(SYS_REMOVEXATTRAT, dir.as_raw_fd(), path.as_ptr(), how.bits(), name.as_ptr()) })
        .map(drop)
}

/// How much of a range of a file is in the page cache (a length of 0: to the end): `cachestat(2)` (Linux 6.5), else
/// `mincore(2)` on a mapping, which does not tell dirty pages. Whoever may not be told gets an error: `mincore` would
/// tell such that everything is there.
pub(crate) fn residency(
    fd: BorrowedFd<'_>,
    offset: u64,
    len_bytes: u64,
    size_bytes: u64,
) -> std::result::Result<Residency, Errno> {
    const SYS_CACHESTAT: libc::c_long = 451;
    let page = rustix::param::page_size() as u64;
    let end = if len_bytes == 0 { size_bytes } else { offset.saturating_add(len_bytes).min(size_bytes) };
    let pages = end.div_ceil(page).saturating_sub(offset / page);
    let found = |cached: u64, dirty: Option<u64>| Residency {
        cached_bytes: cached.saturating_mul(page),
        missing_bytes: pages.saturating_sub(cached) * page,
        dirty_bytes: dirty.map(|dirty| dirty.saturating_mul(page)),
    };
    let range = [offset, len_bytes];
    let mut stat = [0u64; 5];
    // SAFETY: `range` and `stat` have the layouts of struct cachestat_range and struct cachestat (linux/mman.h)
    // and outlive the call.
    let asked =
        answer(unsafe { libc::syscall(SYS_CACHESTAT, fd.as_raw_fd(), range.as_ptr(), stat.as_mut_ptr(), 0u32) });
    match asked {
        Ok(_) => Ok(found(stat[0], Some(stat[1].saturating_add(stat[2])))),
        Err(rustix::io::Errno::NOSYS) => Ok(found(mincore(fd, offset, end)?, None)),
        Err(errno) => Err(errno.into()),
    }
}

/// Counts the resident pages of a range of a file, window by window.
pub(crate) fn mincore(fd: BorrowedFd<'_>, from: u64, to: u64) -> std::result::Result<u64, Errno> {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    const WINDOW_BYTES: u64 = 1 << 30;
    let page = rustix::param::page_size();
    let mut resident = 0;
    let mut offset = from / page as u64 * page as u64;
    while offset < to {
        let len = usize::try_from((to - offset).min(WINDOW_BYTES)).map_err(|_| Errno::EOVERFLOW)?;
        // SAFETY: a new shared read-only mapping at an address of the kernel's choice; it is never read, so a file
        // that shrinks meanwhile cannot raise SIGBUS.
        let start = unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, fd, offset) }?;
        let mut pages = vec![0u8; len.div_ceil(page)];
        // SAFETY: the range is the mapping just made, the vector has one byte for each of its pages.
        let asked = answer(unsafe { libc::mincore(start, len, pages.as_mut_ptr()) }.into());
        // SAFETY: the mapping made above, which nothing refers to.
        unsafe { munmap(start, len) }?;
        asked?;
        resident += pages.iter().filter(|&&p| p & 1 != 0).count() as u64;
        offset += WINDOW_BYTES;
    }
    Ok(resident)
}
