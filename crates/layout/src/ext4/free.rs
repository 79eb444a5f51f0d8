//! Free space from the block bitmaps.

use super::checksum::crc32c;
use super::error::{Ext4Error, damaged};
use super::group::GroupDescriptor;
use super::image::{Image, u8_at};
use super::superblock::{Superblock, incompat};
use posix::FreeExtent;

/// The free space of a whole file system, in address order, pieces that touch joined.
pub(super) fn free_extents(
    image: &Image,
    sb: &Superblock,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<FreeExtent>, Ext4Error> {
    let mut free = Vec::new();
    for group in 0..sb.groups {
        if group % 256 == 0 && !go_on() {
            return Err(Ext4Error::Interrupted);
        }
        let descriptor = GroupDescriptor::read(image, sb, group)?;
        let bitmap = if descriptor.block_bitmap_uninit {
            initial_bitmap(sb, group, &descriptor)
        } else {
            read_bitmap(image, sb, group, &descriptor)?
        };
        push_free(sb, group, &bitmap, &mut free);
    }
    Ok(free)
}

fn read_bitmap(image: &Image, sb: &Superblock, group: u64, descriptor: &GroupDescriptor) -> Result<Vec<u8>, Ext4Error> {
    let at_byte = descriptor.block_bitmap * sb.block_bytes;
    let len = usize::try_from(sb.blocks_per_group / sb.cluster_blocks / 8).unwrap_or(0);
    let bitmap = image.bytes(at_byte, len)?;
    if sb.has_metadata_csum() {
        let computed = crc32c(sb.checksum_seed, &bitmap);
        // 32-byte descriptors hold the low half only.
        let computed = if sb.desc_bytes >= 64 { computed } else { computed & 0xFFFF };
        if computed != descriptor.bitmap_checksum {
            return Err(damaged(at_byte, format!("the checksum of the block bitmap of group {group} does not match")));
        }
    }
    Ok(bitmap)
}

/// The bitmap of a group that never had one written (`ext4_init_block_bitmap`): only its own metadata is in use.
fn initial_bitmap(sb: &Superblock, group: u64, descriptor: &GroupDescriptor) -> Vec<u8> {
    let mut bitmap = vec![0u8; usize::try_from(sb.blocks_per_group / sb.cluster_blocks / 8).unwrap_or(0)];
    let first = sb.group_first_block(group);
    let mut mark = |start: u64, count: u64| {
        for block in start..start.saturating_add(count) {
            let Some(within) = block.checked_sub(first).filter(|b| *b < sb.blocks_per_group) else { continue };
            let cluster = within / sb.cluster_blocks;
            if let Some(byte) = usize::try_from(cluster / 8).ok().and_then(|i| bitmap.get_mut(i)) {
                *byte |= 1 << (cluster % 8);
            }
        }
    };
    mark(first, base_blocks(sb, group));
    mark(descriptor.block_bitmap, 1);
    mark(descriptor.inode_bitmap, 1);
    mark(descriptor.inode_table, (sb.inodes_per_group * sb.inode_bytes).div_ceil(sb.block_bytes));
    bitmap
}

/// Blocks that copies of the superblock and of the descriptors take at a group's start.
fn base_blocks(sb: &Superblock, group: u64) -> u64 {
    let has_super = u64::from(sb.group_has_super(group));
    let per_block = sb.descs_per_block();
    let meta = sb.incompat & incompat::META_BG != 0;
    let old_table = if meta { sb.first_meta_bg } else { sb.groups.div_ceil(per_block) };
    if !meta || group < sb.first_meta_bg.saturating_mul(per_block) {
        return if has_super == 1 { 1 + old_table + sb.reserved_gdt_blocks } else { 0 };
    }
    // A meta group's descriptors are in its first, second and last group.
    let within = group % per_block;
    has_super + u64::from(within == 0 || within == 1 || within == per_block - 1)
}

/// Adds the clear bits of a group, joining what touches the piece before.
fn push_free(sb: &Superblock, group: u64, bitmap: &[u8], free: &mut Vec<FreeExtent>) {
    let clusters = sb.group_blocks(group).div_ceil(sb.cluster_blocks);
    let start = sb.group_first_block(group);
    let mut cluster = 0;
    while cluster < clusters {
        let byte = usize::try_from(cluster / 8).map_or(0xFF, |i| u8_at(bitmap, i));
        let bits = byte >> (cluster % 8);
        if bits & 1 == 1 {
            // Used clusters up to the next free one or the byte's end.
            cluster += u64::from(bits.trailing_ones()).min(8 - cluster % 8);
            continue;
        }
        let len = u64::from(bits.trailing_zeros()).min(8 - cluster % 8).min(clusters - cluster);
        let first = start + cluster * sb.cluster_blocks;
        // The last cluster may reach beyond the file system's end.
        let end = (first + len * sb.cluster_blocks).min(sb.blocks);
        let (physical_bytes, len_bytes) = (first * sb.block_bytes, (end - first) * sb.block_bytes);
        match free.last_mut() {
            Some(last) if last.physical_bytes + last.len_bytes == physical_bytes => last.len_bytes += len_bytes,
            _ => free.push(FreeExtent { physical_bytes, len_bytes }),
        }
        cluster += len;
    }
}
