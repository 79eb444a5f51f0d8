//! Around a mounted ext4: its block groups, from the superblock on its device.

use super::mount::{block_device, device_bytes};
use crate::Surroundings;
use crate::ext4::superblock_of;
use crate::geometry::Groups;
use crate::map::Span;
use std::fs::File;

/// The groups, where the device can be read; the kernel tells them nowhere else.
pub(super) fn surroundings(handle: &File) -> Surroundings<'static> {
    let (groups, span) = match shape(handle) {
        Ok((groups, span)) => (Ok(groups), Some(span)),
        Err(why) => (Err(why), device_bytes(handle).map(|len_bytes| Span { start_bytes: 0, len_bytes })),
    };
    let split = groups.as_ref().map(drop).map_err(Clone::clone);
    Surroundings { groups, split, span, ..Surroundings::default() }
}

fn shape(handle: &File) -> Result<(Groups, Span), String> {
    let device = block_device(handle).map_err(|why| format!("block groups are not known: {why}"))?;
    let shown = device.display().to_string();
    let superblock = superblock_of(&device)
        .map_err(|why| format!("block groups are in the superblock, which {shown} does not give: {why}"))?;
    let len_bytes = superblock.blocks.saturating_mul(superblock.block_bytes);
    Ok((superblock.group_geometry(), Span { start_bytes: 0, len_bytes }))
}
