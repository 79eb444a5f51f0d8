//! Where data and free space lie, and which inode it is: `FS_IOC_FIEMAP`, `FS_IOC_GETFSMAP` and `FS_IOC_GETVERSION`.
#![allow(unsafe_code)]

use crate::{Errno, Extent, ExtentFlags, FreeExtent, Unavailable};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// `struct fiemap_extent` (linux/fiemap.h).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

const BATCH: usize = 256;

/// `struct fiemap` with room for a batch of extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FiemapExtent; BATCH],
}

const FS_IOC_FIEMAP: libc::c_ulong = 0xC020_660B;
const EXTENT_LAST: u32 = 0x1;
const EXTENT_UNKNOWN: u32 = 0x2;
const EXTENT_DELALLOC: u32 = 0x4;
const EXTENT_ENCODED: u32 = 0x8;
const EXTENT_DATA_INLINE: u32 = 0x200;
const EXTENT_UNWRITTEN: u32 = 0x800;
const EXTENT_SHARED: u32 = 0x2000;

/// The extents of a file, in file order. Data not yet written back shows as delayed, without an address.
pub(super) fn extents(file: BorrowedFd<'_>) -> Result<Vec<Extent>, Unavailable> {
    let logical_address = is_btrfs(file);
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        let mut map = Fiemap {
            start,
            length: u64::MAX - start,
            flags: 0,
            mapped_extents: 0,
            extent_count: BATCH as u32,
            reserved: 0,
            extents: [FiemapExtent::default(); BATCH],
        };
        ioctl(file, FS_IOC_FIEMAP, &mut map).map_err(|errno| unavailable("extents of the file (FIEMAP)", errno))?;
        let mapped = map.extents.get(..map.mapped_extents as usize).unwrap_or(&map.extents);
        found.extend(mapped.iter().map(|e| Extent {
            logical_bytes: e.logical,
            physical_bytes: e.physical,
            len_bytes: e.length,
            flags: extent_flags(e.flags, logical_address),
        }));
        match mapped.last() {
            Some(last) if last.flags & EXTENT_LAST == 0 => start = last.logical.saturating_add(last.length),
            _ => return Ok(found),
        }
    }
}

fn extent_flags(bits: u32, logical_address: bool) -> ExtentFlags {
    let has = |bit| bits & bit != 0;
    ExtentFlags {
        unwritten: has(EXTENT_UNWRITTEN),
        inline: has(EXTENT_DATA_INLINE),
        delayed: has(EXTENT_DELALLOC),
        encoded: has(EXTENT_ENCODED),
        shared: has(EXTENT_SHARED),
        unknown: has(EXTENT_UNKNOWN),
        logical_address,
    }
}

fn is_btrfs(file: BorrowedFd<'_>) -> bool {
    const BTRFS_SUPER_MAGIC: u64 = 0x9123_683E;
    rustix::fs::fstatfs(file).is_ok_and(|s| u64::try_from(s.f_type) == Ok(BTRFS_SUPER_MAGIC))
}

/// `struct fsmap` (linux/fsmap.h).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Fsmap {
    device: u32,
    flags: u32,
    physical: u64,
    owner: u64,
    offset: u64,
    length: u64,
    reserved: [u64; 3],
}

/// `struct fsmap_head` with room for a batch of records.
#[repr(C)]
struct FsmapHead {
    iflags: u32,
    oflags: u32,
    count: u32,
    entries: u32,
    reserved: [u64; 6],
    keys: [Fsmap; 2],
    records: [Fsmap; BATCH],
}

const FS_IOC_GETFSMAP: libc::c_ulong = 0xC0C0_583B;
const FMR_OF_SPECIAL_OWNER: u32 = 0x10;
const FMR_OF_LAST: u32 = 0x20;
/// `FMR_OWN_FREE`: `FMR_OWNER('v', 1)` is unknown, `FMR_OWNER(0, 1)` is free.
const FMR_OWN_FREE: u64 = 1;

/// The free space of a file system (ext4, xfs), in address order, neighbouring records joined.
pub(super) fn free_extents(root: &OwnedFd) -> Result<Vec<FreeExtent>, Unavailable> {
    let mut free: Vec<FreeExtent> = Vec::new();
    let high = Fsmap {
        device: u32::MAX,
        flags: u32::MAX,
        physical: u64::MAX,
        owner: u64::MAX,
        offset: u64::MAX,
        ..Fsmap::default()
    };
    let mut low = Fsmap::default();
    let mut device = None;
    loop {
        let mut head = FsmapHead {
            iflags: 0,
            oflags: 0,
            count: BATCH as u32,
            entries: 0,
            reserved: [0; 6],
            keys: [low, high],
            records: [Fsmap::default(); BATCH],
        };
        ioctl(root.as_fd(), FS_IOC_GETFSMAP, &mut head)
            .map_err(|errno| unavailable("the free space (GETFSMAP)", errno))?;
        let records = head.records.get(..head.entries as usize).unwrap_or(&head.records);
        for record in records {
            // A second device (an external log, a realtime volume) has addresses of its own.
            if *device.get_or_insert(record.device) != record.device {
                continue;
            }
            if record.flags & FMR_OF_SPECIAL_OWNER == 0 || record.owner != FMR_OWN_FREE {
                continue;
            }
            match free.last_mut() {
                Some(last) if last.physical_bytes + last.len_bytes == record.physical => {
                    last.len_bytes += record.length
                }
                _ => free.push(FreeExtent { physical_bytes: record.physical, len_bytes: record.length }),
            }
        }
        match records.last() {
            // As fsmap_advance() of linux/fsmap.h: the last record is where the next batch starts.
            Some(last) if last.flags & FMR_OF_LAST == 0 => low = *last,
            _ => return Ok(free),
        }
    }
}

/// `_IOR('v', 1, long)`; the argument is an `int` all the same (linux/fs.h, ext4's and XFS's ioctl.c).
const FS_IOC_GETVERSION: libc::c_ulong = 0x8000_7601 | ((size_of::<libc::c_long>() as libc::c_ulong) << 16);

/// The generation of an inode.
pub(super) fn generation(file: BorrowedFd<'_>) -> Result<u32, Unavailable> {
    // Eight bytes, in case a file system takes the request's stated size seriously.
    let mut answer = [0u32; 2];
    ioctl(file, FS_IOC_GETVERSION, &mut answer)
        .map_err(|errno| unavailable("the inode's generation (FS_IOC_GETVERSION)", errno))?;
    Ok(answer[0])
}

fn ioctl<T>(file: BorrowedFd<'_>, request: libc::c_ulong, argument: &mut T) -> Result<(), Errno> {
    // SAFETY: `argument` is the `#[repr(C)]` struct that this request reads and writes, with as much room behind
    // its header as the header's count says; it outlives the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request as _, std::ptr::from_mut(argument)) };
    if result >= 0 {
        return Ok(());
    }
    let errno = std::io::Error::last_os_error().raw_os_error().and_then(|e| u16::try_from(e).ok());
    Err(errno.map_or(Errno::EIO, Errno))
}

fn unavailable(what: &'static str, errno: Errno) -> Unavailable {
    match errno {
        Errno::EOPNOTSUPP | Errno::ENOTTY | Errno::EINVAL | Errno::ENOSYS | Errno::EBADF => Unavailable::Unsupported {
            what,
            on: "this file system".to_string(),
            why: format!("the file system does not answer the request ({errno})"),
        },
        errno => Unavailable::Failed { what, errno },
    }
}
