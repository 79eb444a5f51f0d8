//! Group descriptors: where each group's bitmaps and inode table are.

use super::checksum::{crc16, crc32c};
use super::error::{Ext4Error, damaged};
use super::image::{Image, u16_at, u32_at, u64_of};
use super::superblock::{Superblock, incompat, ro_compat};

/// `bg_flags`: the block bitmap is not initialised.
const BLOCK_UNINIT: u16 = 0x2;

/// One group's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupDescriptor {
    pub(super) block_bitmap: u64,
    pub(super) inode_bitmap: u64,
    pub(super) inode_table: u64,
    pub(super) block_bitmap_uninit: bool,
    pub(super) bitmap_checksum: u32,
    /// Where the descriptor itself is.
    pub(super) at_byte: u64,
}

/// Where a group's descriptor is (`descriptor_loc` of fs/ext4/super.c).
fn descriptor_at(sb: &Superblock, group: u64) -> u64 {
    let per_block = sb.descs_per_block();
    let table_block = group / per_block;
    let within = group % per_block * sb.desc_bytes;
    // With blocks of 1024 bytes and bigalloc, the superblock is in block 1 all the same.
    let second_block = u64::from(sb.block_bytes == 1024 && sb.first_data_block == 0);
    if sb.incompat & incompat::META_BG == 0 || table_block < sb.first_meta_bg {
        return (sb.first_data_block + 1 + second_block + table_block) * sb.block_bytes + within;
    }
    let first_group = table_block * per_block;
    let after_super = u64::from(sb.group_has_super(first_group));
    let after_super = if first_group == 0 { after_super + second_block } else { after_super };
    (sb.group_first_block(first_group) + after_super) * sb.block_bytes + within
}

impl GroupDescriptor {
    /// Reads and checks one descriptor.
    pub(super) fn read(image: &Image, sb: &Superblock, group: u64) -> Result<GroupDescriptor, Ext4Error> {
        let at_byte = descriptor_at(sb, group);
        let mut buffer = [0u8; 1024];
        let len = usize::try_from(sb.desc_bytes).unwrap_or(buffer.len()).min(buffer.len());
        let (raw, _) = buffer.split_at_mut(len);
        image.read(at_byte, raw)?;
        check_checksum(sb, group, raw, at_byte)?;
        let wide = sb.desc_bytes >= 64;
        let high = |offset| if wide { u32_at(raw, offset) } else { 0 };
        let high16 = |offset| if wide { u32::from(u16_at(raw, offset)) } else { 0 };
        let descriptor = GroupDescriptor {
            block_bitmap: u64_of(u32_at(raw, 0x0), high(0x20)),
            inode_bitmap: u64_of(u32_at(raw, 0x4), high(0x24)),
            inode_table: u64_of(u32_at(raw, 0x8), high(0x28)),
            // The flag means something only where checksums guard it.
            block_bitmap_uninit: u16_at(raw, 0x12) & BLOCK_UNINIT != 0
                && sb.ro_compat & (ro_compat::GDT_CSUM | ro_compat::METADATA_CSUM) != 0,
            bitmap_checksum: u32::from(u16_at(raw, 0x18)) | high16(0x38) << 16,
            at_byte,
        };
        descriptor.check(sb)?;
        Ok(descriptor)
    }

    fn check(&self, sb: &Superblock) -> Result<(), Ext4Error> {
        let table_blocks = (sb.inodes_per_group * sb.inode_bytes).div_ceil(sb.block_bytes);
        for (what, block, count, offset) in [
            ("block bitmap", self.block_bitmap, 1, 0x0),
            ("inode bitmap", self.inode_bitmap, 1, 0x4),
            ("inode table", self.inode_table, table_blocks, 0x8),
        ] {
            if !sb.has_blocks(block, count) {
                return Err(damaged(
                    self.at_byte + offset,
                    format!("the {what} at block {block} is outside the file system of {} blocks", sb.blocks),
                ));
            }
        }
        Ok(())
    }
}

fn check_checksum(sb: &Superblock, group: u64, raw: &[u8], at_byte: u64) -> Result<(), Ext4Error> {
    let number = u32::try_from(group).unwrap_or(u32::MAX).to_le_bytes();
    let stored = u16_at(raw, 0x1E);
    let (before, after) = (raw.get(..0x1E).unwrap_or(raw), raw.get(0x20..).unwrap_or_default());
    let computed = if sb.has_metadata_csum() {
        let crc = [&number[..], before, &[0, 0], after].iter().fold(sb.checksum_seed, |crc, part| crc32c(crc, part));
        (crc & 0xFFFF) as u16
    } else if sb.ro_compat & ro_compat::GDT_CSUM != 0 {
        [&sb.uuid[..], &number, before, after].iter().fold(!0, |crc, part| crc16(crc, part))
    } else {
        return Ok(());
    };
    if computed != stored {
        return Err(damaged(at_byte + 0x1E, format!("the checksum of group descriptor {group} does not match")));
    }
    Ok(())
}
