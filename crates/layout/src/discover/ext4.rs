//! Around a mounted ext4: its block groups, from the superblock on its device.

use super::mount::block_device;
use crate::Surroundings;
use crate::ext4::superblock_of;
use crate::geometry::Groups;
use std::fs::File;

/// The groups, where the device can be read; the kernel tells them nowhere else.
pub(super) fn surroundings(handle: &File) -> Surroundings<'static> {
    let groups = groups(handle);
    let split = groups.as_ref().map(drop).map_err(Clone::clone);
    Surroundings { groups, split, ..Surroundings::default() }
}

fn groups(handle: &File) -> Result<Groups, String> {
    let device = block_device(handle).map_err(|why| format!("block groups are not known: {why}"))?;
    let shown = device.display().to_string();
    let superblock = superblock_of(&device)
        .map_err(|why| format!("block groups are in the superblock, which {shown} does not give: {why}"))?;
    Ok(superblock.group_geometry())
}
