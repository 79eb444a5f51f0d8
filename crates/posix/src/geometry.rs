//! What XFS and btrfs tell by ioctl about where things lie: allocation groups, and btrfs's trees.
#![allow(unsafe_code)]

use crate::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The shape of a mounted XFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XfsGeometry {
    /// Bytes in a block.
    pub block_bytes: u32,
    /// Blocks in an allocation group; the last may be shorter.
    pub group_blocks: u32,
    /// Allocation groups.
    pub groups: u32,
    /// Bytes in an inode.
    pub inode_bytes: u32,
    /// Blocks on the data device.
    pub data_blocks: u64,
}

/// `struct xfs_fsop_geom_v1` (xfs_fs.h of the kernel).
#[repr(C)]
#[derive(Default)]
struct XfsFsopGeomV1 {
    blocksize: u32,
    rtextsize: u32,
    agblocks: u32,
    agcount: u32,
    logblocks: u32,
    sectsize: u32,
    inodesize: u32,
    imaxpct: u32,
    datablocks: u64,
    rtblocks: u64,
    rtextents: u64,
    logstart: u64,
    uuid: [u8; 16],
    rest: [u32; 8],
}

/// `XFS_IOC_FSGEOMETRY_V1`: `_IOR('X', 100, struct xfs_fsop_geom_v1)`.
const XFS_IOC_FSGEOMETRY_V1: libc::c_ulong = 0x8070_5864;

/// Asks the XFS that holds an open file or directory for its shape. Needs no privilege; `ENOTTY` where it is no XFS.
pub fn xfs_geometry(file: BorrowedFd<'_>) -> Result<XfsGeometry, Errno> {
    let mut geometry = XfsFsopGeomV1::default();
    // SAFETY: `geometry` is the 112-byte `#[repr(C)]` struct that this request fills, and outlives the call.
    let result =
        unsafe { libc::ioctl(file.as_raw_fd(), XFS_IOC_FSGEOMETRY_V1 as _, std::ptr::from_mut(&mut geometry)) };
    if result < 0 {
        return Err(last_errno());
    }
    Ok(XfsGeometry {
        block_bytes: geometry.blocksize,
        group_blocks: geometry.agblocks,
        groups: geometry.agcount,
        inode_bytes: geometry.inodesize,
        data_blocks: geometry.datablocks,
    })
}

/// The key of an item in a btrfs tree: compared by object, then type, then offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct BtrfsKey {
    pub object: u64,
    pub item_type: u8,
    pub offset: u64,
}

impl BtrfsKey {
    /// The smallest and the largest key.
    pub const MIN: BtrfsKey = BtrfsKey { object: 0, item_type: 0, offset: 0 };
    #[allow(missing_docs)]
    pub const MAX: BtrfsKey = BtrfsKey { object: u64::MAX, item_type: u8::MAX, offset: u64::MAX };

    fn next(self) -> Option<BtrfsKey> {
        if let Some(offset) = self.offset.checked_add(1) {
            return Some(BtrfsKey { offset, ..self });
        }
        if let Some(item_type) = self.item_type.checked_add(1) {
            return Some(BtrfsKey { item_type, offset: 0, ..self });
        }
        Some(BtrfsKey { object: self.object.checked_add(1)?, item_type: 0, offset: 0 })
    }
}

/// Room for the items of one request: many times the largest item, which fits a node of 64 KiB.
const ITEMS_BYTES: usize = 256 << 10;

/// `struct btrfs_ioctl_search_args_v2` (linux/btrfs.h) with its buffer.
#[repr(C)]
struct SearchArgs {
    tree_id: u64,
    min_objectid: u64,
    max_objectid: u64,
    min_offset: u64,
    max_offset: u64,
    min_transid: u64,
    max_transid: u64,
    min_type: u32,
    max_type: u32,
    nr_items: u32,
    unused: u32,
    unused64: [u64; 4],
    buf_size: u64,
    buf: [u8; ITEMS_BYTES],
}

/// `BTRFS_IOC_TREE_SEARCH_V2`: `_IOWR(0x94, 17, struct btrfs_ioctl_search_args_v2)`, 112 bytes without the buffer.
const BTRFS_IOC_TREE_SEARCH_V2: libc::c_ulong = 0xC070_9411;
/// `struct btrfs_ioctl_search_header`: transid, objectid, offset, type, len.
const HEADER_BYTES: usize = 32;

/// Calls `each` with every item of a btrfs tree between two keys, both included, in key order. Needs `CAP_SYS_ADMIN`
/// (`EPERM` without); `ENOENT` where there is no such tree.
pub fn btrfs_tree_search(
    file: BorrowedFd<'_>,
    tree: u64,
    from: BtrfsKey,
    to: BtrfsKey,
    each: &mut dyn FnMut(BtrfsKey, &[u8]),
) -> Result<(), Errno> {
    let mut args = new_args();
    let mut next = Some(from);
    while let Some(start) = next.filter(|start| *start <= to) {
        args.tree_id = tree;
        (args.min_objectid, args.min_type, args.min_offset) = (start.object, u32::from(start.item_type), start.offset);
        (args.max_objectid, args.max_type, args.max_offset) = (to.object, u32::from(to.item_type), to.offset);
        (args.min_transid, args.max_transid) = (0, u64::MAX);
        args.nr_items = u32::MAX;
        args.buf_size = ITEMS_BYTES as u64;
        // SAFETY: `args` is the `#[repr(C)]` struct of this request followed by `buf_size` bytes of buffer, which is
        // all that the kernel writes; it outlives the call.
        let result =
            unsafe { libc::ioctl(file.as_raw_fd(), BTRFS_IOC_TREE_SEARCH_V2 as _, std::ptr::from_mut(args.as_mut())) };
        if result < 0 {
            return Err(last_errno());
        }
        if args.nr_items == 0 {
            return Ok(());
        }
        let last = pass_on(&args.buf, args.nr_items, each).ok_or(Errno::EIO)?;
        next = last.next();
    }
    Ok(())
}

fn new_args() -> Box<SearchArgs> {
    Box::new(SearchArgs {
        tree_id: 0,
        min_objectid: 0,
        max_objectid: 0,
        min_offset: 0,
        max_offset: 0,
        min_transid: 0,
        max_transid: 0,
        min_type: 0,
        max_type: 0,
        nr_items: 0,
        unused: 0,
        unused64: [0; 4],
        buf_size: 0,
        buf: [0; ITEMS_BYTES],
    })
}

/// Hands out the items of one answer; the last one's key, or `None` if the answer is not whole.
fn pass_on(buffer: &[u8], items: u32, each: &mut dyn FnMut(BtrfsKey, &[u8])) -> Option<BtrfsKey> {
    let u64_at = |bytes: &[u8], at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let u32_at = |bytes: &[u8], at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let mut rest = buffer;
    let mut last = None;
    for _ in 0..items {
        let item_type = u8::try_from(u32_at(rest, 24)?).ok()?;
        let key = BtrfsKey { object: u64_at(rest, 8)?, item_type, offset: u64_at(rest, 16)? };
        let len = usize::try_from(u32_at(rest, 28)?).ok()?;
        let end = HEADER_BYTES.checked_add(len)?;
        each(key, rest.get(HEADER_BYTES..end)?);
        rest = rest.get(end..)?;
        last = Some(key);
    }
    last
}

fn last_errno() -> Errno {
    std::io::Error::last_os_error().raw_os_error().and_then(|e| u16::try_from(e).ok()).map_or(Errno::EIO, Errno)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_structs_have_the_kernel_s_sizes() {
        assert_eq!(std::mem::size_of::<XfsFsopGeomV1>(), 112);
        assert_eq!(std::mem::offset_of!(SearchArgs, buf), 112);
    }

    #[test]
    fn a_file_elsewhere_is_refused() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(xfs_geometry(null.as_fd()).is_err());
        let mut none = |_, _: &[u8]| unreachable!("no tree, no items");
        assert!(btrfs_tree_search(null.as_fd(), 3, BtrfsKey::MIN, BtrfsKey::MAX, &mut none).is_err());
    }

    #[test]
    fn keys_count_up_over_all_three_fields() {
        let last = BtrfsKey { object: 5, item_type: 255, offset: u64::MAX };
        assert_eq!(last.next(), Some(BtrfsKey { object: 6, item_type: 0, offset: 0 }));
        assert_eq!(BtrfsKey::MAX.next(), None);
    }
}
