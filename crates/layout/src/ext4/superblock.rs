//! The superblock: what the file system's numbers are, checked so that everything after may rely on them.

use super::checksum::crc32c;
use super::error::{Ext4Error, damaged};
use super::features;
use super::image::{Image, u8_at, u16_at, u32_at, u64_of};
use crate::geometry::{GroupKind, Groups, InodeRule, Ranges};

/// Where the superblock is.
pub(super) const SUPERBLOCK_AT: u64 = 1024;
const SUPERBLOCK_LEN: usize = 1024;
const MAGIC: u16 = 0xEF53;

/// `s_feature_compat`
pub(super) mod compat {
    pub const HAS_JOURNAL: u32 = 0x4;
    pub const DIR_INDEX: u32 = 0x20;
    pub const SPARSE_SUPER2: u32 = 0x200;
}

/// `s_feature_incompat`
pub(super) mod incompat {
    pub const FILETYPE: u32 = 0x2;
    pub const RECOVER: u32 = 0x4;
    pub const META_BG: u32 = 0x10;
    pub const EXTENTS: u32 = 0x40;
    pub const BITS64: u32 = 0x80;
    pub const FLEX_BG: u32 = 0x200;
    pub const CSUM_SEED: u32 = 0x2000;
    pub const LARGEDIR: u32 = 0x4000;
    pub const INLINE_DATA: u32 = 0x8000;
    /// Everything this reader can cope with; further: mmp, ea_inode, encrypt, casefold.
    pub const KNOWN: u32 = FILETYPE
        | RECOVER
        | META_BG
        | EXTENTS
        | BITS64
        | 0x100
        | FLEX_BG
        | 0x400
        | CSUM_SEED
        | LARGEDIR
        | INLINE_DATA
        | 0x1_0000
        | 0x2_0000;
}

/// `s_feature_ro_compat`
pub(super) mod ro_compat {
    pub const SPARSE_SUPER: u32 = 0x1;
    pub const GDT_CSUM: u32 = 0x10;
    pub const BIGALLOC: u32 = 0x200;
    pub const METADATA_CSUM: u32 = 0x400;
    pub const SHARED_BLOCKS: u32 = 0x4000;
}

/// The superblock's fields that a survey needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Bytes in a block: 1024 to 65536.
    pub block_bytes: u64,
    /// Blocks in the file system.
    pub blocks: u64,
    /// Blocks free, as the superblock has it.
    pub free_blocks: u64,
    /// The first block of group 0: 1 with blocks of 1024 bytes, else 0.
    pub first_data_block: u64,
    /// Blocks in a cluster (bigalloc); 1 otherwise.
    pub cluster_blocks: u64,
    /// Blocks in a group.
    pub blocks_per_group: u64,
    /// Inodes in a group.
    pub inodes_per_group: u64,
    /// Inodes in all.
    pub inodes: u64,
    /// Bytes in an inode.
    pub inode_bytes: u64,
    /// Block groups.
    pub groups: u64,
    /// Groups in a flexible group; 1 without flex_bg.
    pub groups_per_flex: u64,
    /// When it was last written, seconds since the epoch.
    pub written_unix_s: i64,
    pub(super) desc_bytes: u64,
    pub(super) first_meta_bg: u64,
    pub(super) reserved_gdt_blocks: u64,
    pub(super) backup_groups: [u64; 2],
    pub(super) compat: u32,
    pub(super) incompat: u32,
    pub(super) ro_compat: u32,
    pub(super) uuid: [u8; 16],
    pub(super) checksum_seed: u32,
    pub(super) hash_seed: [u32; 4],
    pub(super) hash_version: u8,
    pub(super) unsigned_hash: bool,
    clean: bool,
}

impl Superblock {
    /// Reads and checks the superblock of an image.
    pub fn read(image: &Image) -> Result<Superblock, Ext4Error> {
        if image.len_bytes() < SUPERBLOCK_AT + SUPERBLOCK_LEN as u64 {
            return Err(Ext4Error::NotExt4(format!("the image is only {} bytes long", image.len_bytes())));
        }
        let raw = image.bytes(SUPERBLOCK_AT, SUPERBLOCK_LEN)?;
        let magic = u16_at(&raw, 0x38);
        if magic != MAGIC {
            return Err(Ext4Error::NotExt4(format!("the magic number is {magic:#06x}, not {MAGIC:#06x}")));
        }
        let superblock = Superblock::parse(&raw)?;
        superblock.check(&raw, image.len_bytes())?;
        Ok(superblock)
    }

    fn parse(raw: &[u8]) -> Result<Superblock, Ext4Error> {
        let at = |offset: u64| SUPERBLOCK_AT + offset;
        let dynamic = u32_at(raw, 0x4C) >= 1;
        let feature = |offset| if dynamic { u32_at(raw, offset) } else { 0 };
        let (compat, incompat, ro_compat) = (feature(0x5C), feature(0x60), feature(0x64));
        let unknown = incompat & !incompat::KNOWN;
        if unknown != 0 {
            return Err(Ext4Error::Unsupported(features::incompatible(unknown)));
        }
        let log_block = u32_at(raw, 0x18);
        let log_cluster = u32_at(raw, 0x1C);
        if log_block > 6 {
            return Err(damaged(at(0x18), format!("the block size is 2^{} KiB; at most 64 KiB exist", log_block)));
        }
        let bigalloc = ro_compat & ro_compat::BIGALLOC != 0;
        if bigalloc && (log_cluster < log_block || log_cluster > log_block + 20) {
            return Err(damaged(at(0x1C), format!("the cluster size 2^{log_cluster} KiB does not fit the block size")));
        }
        let bits64 = incompat & incompat::BITS64 != 0;
        let high = |offset| if bits64 { u32_at(raw, offset) } else { 0 };
        let mut uuid = [0; 16];
        uuid.iter_mut().enumerate().for_each(|(i, byte)| *byte = u8_at(raw, 0x68 + i));
        let checksum_seed = if incompat & incompat::CSUM_SEED != 0 { u32_at(raw, 0x270) } else { crc32c(!0, &uuid) };
        let blocks = u64_of(u32_at(raw, 0x4), high(0x150));
        let first_data_block = u64::from(u32_at(raw, 0x14));
        let blocks_per_group = u64::from(u32_at(raw, 0x20));
        let log_flex = u8_at(raw, 0x174);
        Ok(Superblock {
            block_bytes: 1024 << log_block,
            blocks,
            free_blocks: u64_of(u32_at(raw, 0xC), high(0x158)),
            first_data_block,
            cluster_blocks: if bigalloc { 1 << (log_cluster - log_block) } else { 1 },
            blocks_per_group,
            inodes_per_group: u64::from(u32_at(raw, 0x28)),
            inodes: u64::from(u32_at(raw, 0x0)),
            inode_bytes: if dynamic { u64::from(u16_at(raw, 0x58)) } else { 128 },
            groups: blocks.saturating_sub(first_data_block).div_ceil(blocks_per_group.max(1)),
            groups_per_flex: if incompat & incompat::FLEX_BG != 0 && log_flex < 32 { 1 << log_flex } else { 1 },
            written_unix_s: u64_of(u32_at(raw, 0x30), u32::from(u8_at(raw, 0x274))).cast_signed(),
            desc_bytes: if bits64 { u64::from(u16_at(raw, 0xFE)) } else { 32 },
            first_meta_bg: u64::from(u32_at(raw, 0x104)),
            reserved_gdt_blocks: u64::from(u16_at(raw, 0xCE)),
            backup_groups: [u64::from(u32_at(raw, 0x24C)), u64::from(u32_at(raw, 0x250))],
            compat,
            incompat,
            ro_compat,
            uuid,
            checksum_seed,
            hash_seed: [u32_at(raw, 0xEC), u32_at(raw, 0xF0), u32_at(raw, 0xF4), u32_at(raw, 0xF8)],
            hash_version: u8_at(raw, 0xFC),
            unsigned_hash: u32_at(raw, 0x160) & 0x2 != 0,
            clean: u16_at(raw, 0x3A) & 1 != 0,
        })
    }

    fn check(&self, raw: &[u8], image_bytes: u64) -> Result<(), Ext4Error> {
        let wrong = |offset: u64, what: String| Err(damaged(SUPERBLOCK_AT + offset, what));
        if self.has_metadata_csum() && crc32c(!0, raw.get(..0x3FC).unwrap_or(raw)) != u32_at(raw, 0x3FC) {
            return wrong(0x3FC, "the superblock's checksum does not match".to_owned());
        }
        let block_bits = self.block_bytes * 8;
        let in_group = self.blocks_per_group / self.cluster_blocks;
        if in_group == 0 || in_group > block_bits || !self.blocks_per_group.is_multiple_of(8 * self.cluster_blocks) {
            return wrong(0x20, format!("{} blocks in a group do not fit one bitmap block", self.blocks_per_group));
        }
        if self.inodes_per_group == 0 || self.inodes_per_group > block_bits {
            return wrong(0x28, format!("{} inodes in a group do not fit one bitmap block", self.inodes_per_group));
        }
        if !(128..=self.block_bytes).contains(&self.inode_bytes) || !self.inode_bytes.is_power_of_two() {
            return wrong(0x58, format!("an inode of {} bytes cannot be", self.inode_bytes));
        }
        if !(32..=1024).contains(&self.desc_bytes) || !self.desc_bytes.is_power_of_two() {
            return wrong(0xFE, format!("a group descriptor of {} bytes cannot be", self.desc_bytes));
        }
        if self.incompat & incompat::BITS64 != 0 && self.desc_bytes < 64 {
            return wrong(0xFE, format!("a 64-bit group descriptor of {} bytes cannot be", self.desc_bytes));
        }
        if self.first_data_block != u64::from(self.block_bytes == 1024 && self.cluster_blocks == 1)
            || self.blocks <= self.first_data_block
        {
            return wrong(0x14, format!("data cannot begin at block {}", self.first_data_block));
        }
        let len = self.blocks.checked_mul(self.block_bytes).filter(|len| *len <= i64::MAX.cast_unsigned());
        match len {
            Some(len) if len <= image_bytes => {}
            _ => {
                let (blocks, size) = (self.blocks, self.block_bytes);
                return wrong(
                    0x4,
                    format!(
                        "{blocks} blocks of {size} bytes are more than the image, which ends at byte {image_bytes}"
                    ),
                );
            }
        }
        if self.inodes != self.groups.saturating_mul(self.inodes_per_group) {
            let (inodes, groups) = (self.inodes, self.groups);
            return wrong(0x0, format!("{inodes} inodes are not {groups} groups of {}", self.inodes_per_group));
        }
        Ok(())
    }

    /// `ext2`, `ext3` or `ext4`, by the features in use.
    pub fn fs_type(&self) -> &'static str {
        let newer = incompat::EXTENTS | incompat::BITS64 | incompat::FLEX_BG | incompat::INLINE_DATA;
        if self.incompat & newer != 0 || self.has_metadata_csum() {
            "ext4"
        } else if self.compat & compat::HAS_JOURNAL != 0 {
            "ext3"
        } else {
            "ext2"
        }
    }

    /// What the reader of a survey should know about the image's state.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.incompat & incompat::RECOVER != 0 {
            notes.push(
                "the journal has not been replayed: the file system is mounted, or was not unmounted; what the journal \
                 holds is not in this survey"
                    .to_owned(),
            );
        } else if !self.clean {
            notes.push("the file system is not marked clean: it is mounted, or was not unmounted".to_owned());
        }
        notes
    }

    /// The block groups, for split files and scores per group.
    pub fn group_geometry(&self) -> Groups {
        Groups {
            kind: GroupKind::Ext4BlockGroups,
            ranges: Ranges::Uniform {
                first_bytes: self.first_data_block * self.block_bytes,
                len_bytes: self.blocks_per_group * self.block_bytes,
                count: self.groups,
            },
            inodes: InodeRule::PerGroup(self.inodes_per_group),
            per_flex: self.groups_per_flex,
        }
    }

    pub(super) fn has_metadata_csum(&self) -> bool {
        self.ro_compat & ro_compat::METADATA_CSUM != 0
    }

    /// Whether a group holds a copy of the superblock and the descriptors.
    pub(super) fn group_has_super(&self, group: u64) -> bool {
        if group == 0 {
            return true;
        }
        if self.compat & compat::SPARSE_SUPER2 != 0 {
            return self.backup_groups.contains(&group);
        }
        if group == 1 || self.ro_compat & ro_compat::SPARSE_SUPER == 0 {
            return true;
        }
        let power_of = |base: u64| {
            let mut n = base;
            while n < group {
                n = n.saturating_mul(base);
            }
            n == group
        };
        power_of(3) || power_of(5) || power_of(7)
    }

    /// The first block of a group.
    pub(super) fn group_first_block(&self, group: u64) -> u64 {
        self.first_data_block + group * self.blocks_per_group
    }

    /// How many blocks a group has: the last may be short.
    pub(super) fn group_blocks(&self, group: u64) -> u64 {
        self.blocks.saturating_sub(self.group_first_block(group)).min(self.blocks_per_group)
    }

    /// Descriptors in one block.
    pub(super) fn descs_per_block(&self) -> u64 {
        self.block_bytes / self.desc_bytes
    }

    /// Whether a block number is inside the file system.
    pub(super) fn has_blocks(&self, first: u64, count: u64) -> bool {
        first >= self.first_data_block && first.checked_add(count).is_some_and(|end| end <= self.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_image_is_not_ext4() {
        for len in [0, 1024, 2047, 4096] {
            let error = Superblock::read(&Image::from_bytes(vec![0; len])).unwrap_err();
            assert!(matches!(error, Ext4Error::NotExt4(_)), "{len}: {error}");
        }
    }
}
