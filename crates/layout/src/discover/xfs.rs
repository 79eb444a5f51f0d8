//! Around a mounted XFS: its allocation groups, by ioctl.

use crate::Surroundings;
use crate::geometry::{GroupKind, Groups, InodeRule};
use crate::map::Span;
use posix::XfsGeometry;
use std::fs::File;
use std::os::fd::AsFd as _;

/// The groups, as `XFS_IOC_FSGEOMETRY` has them; needs no privilege.
pub(super) fn surroundings(handle: &File) -> Surroundings<'static> {
    let geometry = posix::xfs_geometry(handle.as_fd())
        .map_err(|errno| format!("XFS does not tell its allocation groups: {errno}"));
    let span = geometry
        .as_ref()
        .ok()
        .map(|g| Span { start_bytes: 0, len_bytes: g.data_blocks.saturating_mul(u64::from(g.block_bytes)) });
    let groups = geometry.and_then(|geometry| groups(&geometry));
    let split = groups.as_ref().map(drop).map_err(Clone::clone);
    Surroundings { groups, split, span, ..Surroundings::default() }
}

/// An XFS inode number is group, block in group, inode in block, each in as many bits as its range needs
/// (`XFS_INO_TO_AGNO` of xfs_format.h).
fn groups(geometry: &XfsGeometry) -> Result<Groups, String> {
    let per_block = geometry.block_bytes.checked_div(geometry.inode_bytes).filter(|n| n.is_power_of_two());
    let (Some(per_block), 1..) = (per_block, geometry.group_blocks) else {
        return Err(format!("XFS tells a shape that cannot be: {geometry:?}"));
    };
    let block_bits = u32::BITS - (geometry.group_blocks - 1).leading_zeros();
    let len_bytes = u64::from(geometry.group_blocks) * u64::from(geometry.block_bytes);
    let groups = Groups::uniform(GroupKind::XfsAllocationGroups, 0, len_bytes, geometry.groups.into());
    Ok(Groups { inodes: InodeRule::HighBits(block_bits + per_block.trailing_zeros()), ..groups })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inode_numbers_are_taken_apart() {
        let geometry =
            XfsGeometry { block_bytes: 4096, group_blocks: 65536, groups: 4, inode_bytes: 512, data_blocks: 262_144 };
        let groups = groups(&geometry).unwrap();
        // 16 bits of block, 3 of inode in block.
        assert_eq!(groups.inodes, InodeRule::HighBits(19));
        assert_eq!((groups.of_inode(128), groups.of_inode((3 << 19) + 128)), (Some(0), Some(3)));
        assert_eq!(groups.of_byte(65536 * 4096), Some(1));
    }

    #[test]
    fn a_shape_that_cannot_be_is_refused() {
        let zero = XfsGeometry { block_bytes: 4096, group_blocks: 0, groups: 0, inode_bytes: 0, data_blocks: 0 };
        assert!(super::groups(&zero).is_err());
    }
}
