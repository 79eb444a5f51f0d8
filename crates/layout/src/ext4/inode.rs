//! Inodes.

use super::checksum::crc32c;
use super::error::{Ext4Error, damaged};
use super::group::GroupDescriptor;
use super::image::{Image, u8_at, u16_at, u32_at, u64_of};
use super::superblock::{Superblock, incompat};
use posix::FileKind;

/// `EXT4_INDEX_FL`: a directory with a hash tree.
pub(super) const INDEX: u32 = 0x1000;
/// `EXT4_EXTENTS_FL`
pub(super) const EXTENTS: u32 = 0x8_0000;
/// `EXT4_INLINE_DATA_FL`
pub(super) const INLINE_DATA: u32 = 0x1000_0000;
/// `EXT4_CASEFOLD_FL`
pub(super) const CASEFOLD: u32 = 0x4000_0000;
/// The root directory.
pub(super) const ROOT: u64 = 2;

/// The length of the part that every inode has.
const OLD_BYTES: usize = 128;

/// An inode as it is on disk, with the fields a survey needs.
#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub(super) ino: u64,
    /// Where it is.
    pub(super) at_byte: u64,
    pub(super) mode: u16,
    pub(super) links: u32,
    pub(super) size_bytes: u64,
    pub(super) flags: u32,
    pub(super) mtime_ns: i64,
    /// `i_block`: the head of the extent tree, the block pointers, or inline data.
    pub(super) block: [u8; 60],
    /// The start of the checksums of everything that belongs to this inode.
    pub(super) checksum_seed: u32,
    /// The extended attributes inside the inode, for inline data.
    attributes: Vec<u8>,
}

impl Inode {
    /// Reads and checks one inode.
    pub(super) fn read(image: &Image, sb: &Superblock, ino: u64) -> Result<Inode, Ext4Error> {
        let group = ino.saturating_sub(1) / sb.inodes_per_group;
        if ino == 0 || group >= sb.groups {
            return Err(damaged(0, format!("there is no inode {ino}: the file system has {}", sb.inodes)));
        }
        let table = GroupDescriptor::read(image, sb, group)?.inode_table;
        let at_byte = table * sb.block_bytes + (ino - 1) % sb.inodes_per_group * sb.inode_bytes;
        let raw = image.bytes(at_byte, usize::try_from(sb.inode_bytes).unwrap_or(OLD_BYTES))?;
        let extra = if raw.len() > OLD_BYTES { usize::from(u16_at(&raw, 0x80)) } else { 0 };
        if OLD_BYTES + extra > raw.len() || !extra.is_multiple_of(4) {
            return Err(damaged(at_byte + 0x80, format!("the extra size {extra} of inode {ino} does not fit")));
        }
        let number = u32::try_from(ino).unwrap_or(u32::MAX).to_le_bytes();
        let generation = raw.get(0x64..0x68).unwrap_or_default();
        let checksum_seed = crc32c(crc32c(sb.checksum_seed, &number), generation);
        let inode = Inode::parse(sb, ino, at_byte, &raw, extra, checksum_seed);
        // An inode never used is all zeros, its checksum too.
        if sb.has_metadata_csum() && raw.iter().any(|b| *b != 0) {
            inode.check_checksum(&raw, extra)?;
        }
        Ok(inode)
    }

    fn parse(sb: &Superblock, ino: u64, at_byte: u64, raw: &[u8], extra: usize, checksum_seed: u32) -> Inode {
        let mut block = [0; 60];
        block.iter_mut().enumerate().for_each(|(i, byte)| *byte = u8_at(raw, 0x28 + i));
        // i_mtime_extra is the extra part's third field: it needs 12 bytes with the size field's own two.
        let mtime_extra = if extra >= 12 { u32_at(raw, 0x88) } else { 0 };
        let seconds = i64::from(u32_at(raw, 0x10).cast_signed()) + (i64::from(mtime_extra & 3) << 32);
        let mode = u16_at(raw, 0x0);
        // `ext4_isize`: a directory's field for the high half was once another thing.
        let high_half = mode & 0xF000 == 0x8000 || sb.incompat & incompat::LARGEDIR != 0;
        let size_bytes = u64_of(u32_at(raw, 0x4), if high_half { u32_at(raw, 0x6C) } else { 0 });
        Inode {
            ino,
            at_byte,
            mode,
            links: u32::from(u16_at(raw, 0x1A)),
            size_bytes,
            flags: u32_at(raw, 0x20),
            mtime_ns: seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(mtime_extra >> 2)),
            block,
            checksum_seed,
            attributes: raw.get(OLD_BYTES + extra..).unwrap_or_default().to_vec(),
        }
    }

    fn check_checksum(&self, raw: &[u8], extra: usize) -> Result<(), Ext4Error> {
        let has_high = extra >= 4;
        let mut clear = raw.to_vec();
        let fields: &[usize] = if has_high { &[0x7C, 0x82] } else { &[0x7C] };
        for at in fields.iter().flat_map(|at| [*at, at + 1]) {
            if let Some(byte) = clear.get_mut(at) {
                *byte = 0;
            }
        }
        let computed = crc32c(self.checksum_seed, &clear);
        let high = if has_high { u32::from(u16_at(raw, 0x82)) << 16 } else { computed & 0xFFFF_0000 };
        if computed != (high | u32::from(u16_at(raw, 0x7C))) {
            return Err(damaged(self.at_byte + 0x7C, format!("the checksum of inode {} does not match", self.ino)));
        }
        Ok(())
    }

    /// What it is.
    pub(super) fn kind(&self) -> FileKind {
        match self.mode & 0xF000 {
            0x8000 => FileKind::File,
            0x4000 => FileKind::Directory,
            0xA000 => FileKind::Symlink,
            _ => FileKind::Special,
        }
    }

    /// Whether a flag is set.
    pub(super) fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// The part of its inline data that lies among the extended attributes (`system.data`), with where it is on disk.
    pub(super) fn inline_overflow(&self) -> Result<Option<(&[u8], u64)>, Ext4Error> {
        const MAGIC: u32 = 0xEA02_0000;
        const SYSTEM: u8 = 7;
        let attributes = self.attributes.as_slice();
        let start_byte = self.at_byte; // For messages: the exact field is found by the inode.
        if u32_at(attributes, 0) != MAGIC {
            return Ok(None);
        }
        let entries = attributes.get(4..).unwrap_or_default();
        let mut at = 0;
        // An entry takes 16 bytes at least, so this ends.
        while at + 16 <= entries.len() && u32_at(entries, at) != 0 {
            let name_len = usize::from(u8_at(entries, at));
            let name = entries.get(at + 16..at + 16 + name_len).unwrap_or_default();
            if u8_at(entries, at + 1) == SYSTEM && name == b"data" {
                let offset = usize::from(u16_at(entries, at + 2));
                let len = usize::try_from(u32_at(entries, at + 8)).unwrap_or(usize::MAX);
                let value = offset.checked_add(len).and_then(|end| entries.get(offset..end));
                let value = value.ok_or_else(|| {
                    damaged(start_byte, format!("the inline data of inode {} ends outside the inode", self.ino))
                })?;
                let before = OLD_BYTES as u64 + 4 + offset as u64;
                return Ok(Some((value, start_byte + before)));
            }
            at += (16 + name_len).next_multiple_of(4);
        }
        Ok(None)
    }
}
