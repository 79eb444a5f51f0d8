//! Where a file's blocks are: extent trees, and the direct and indirect pointers of older files.

use super::checksum::crc32c;
use super::error::{Ext4Error, damaged};
use super::image::{Image, u16_at, u32_at};
use super::inode::{EXTENTS, Inode};
use super::superblock::{Superblock, ro_compat};
use posix::{Extent, ExtentFlags};

/// `EXT4_EXT_MAGIC`
const MAGIC: u16 = 0xF30A;
/// `EXT4_MAX_EXTENT_DEPTH`
const DEPTH_MAX: u16 = 5;
/// Longer lengths mark an unwritten extent (`EXT_INIT_MAX_LEN`).
const WRITTEN_MAX: u16 = 32768;
const ENTRY: usize = 12;

/// How much may still be read before the image must be looping: no file system has more mapping blocks, or (without
/// shared blocks) more mapped blocks, than blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    metadata_blocks: u64,
    mapped_blocks: Option<u64>,
}

impl Budget {
    pub(super) fn new(sb: &Superblock) -> Budget {
        let sharing = sb.ro_compat & ro_compat::SHARED_BLOCKS != 0;
        Budget { metadata_blocks: sb.blocks, mapped_blocks: (!sharing).then_some(sb.blocks) }
    }

    /// Takes one mapping or directory block out of the budget.
    pub(super) fn metadata_block(&mut self, at_byte: u64) -> Result<(), Ext4Error> {
        match self.metadata_blocks.checked_sub(1) {
            Some(left) => self.metadata_blocks = left,
            None => {
                return Err(damaged(
                    at_byte,
                    "more mapping and directory blocks than the file system has: some are shared",
                ));
            }
        }
        Ok(())
    }

    fn mapped(&mut self, blocks: u64, at_byte: u64) -> Result<(), Ext4Error> {
        if let Some(left) = self.mapped_blocks {
            let rest = left.checked_sub(blocks);
            self.mapped_blocks = Some(rest.ok_or_else(|| {
                damaged(at_byte, "files map more blocks than the file system has: some are mapped twice")
            })?);
        }
        Ok(())
    }
}

/// Reads the maps of one image's files.
pub(super) struct Mapper<'a> {
    pub(super) image: &'a Image,
    pub(super) sb: &'a Superblock,
    pub(super) budget: &'a mut Budget,
}

/// The map so far, in file order.
struct Building<'a> {
    inode: &'a Inode,
    extents: Vec<Extent>,
    /// The first block of the file that the next extent may map: extents only go up.
    next_block: u64,
}

impl Mapper<'_> {
    /// The extents of a file or directory, in file order. Inline data has none.
    pub(super) fn extents(&mut self, inode: &Inode) -> Result<Vec<Extent>, Ext4Error> {
        let mut building = Building { inode, extents: Vec::new(), next_block: 0 };
        if inode.is(super::inode::INLINE_DATA) {
            return Ok(building.extents);
        }
        if inode.is(EXTENTS) {
            let depth = u16_at(&inode.block, 6);
            if depth > DEPTH_MAX {
                return Err(damaged(inode.at_byte + 0x28 + 6, format!("an extent tree {depth} levels deep cannot be")));
            }
            let whole = (0, u64::from(u32::MAX) + 1);
            self.node(&mut building, &inode.block, inode.at_byte + 0x28, depth, whole)?;
        } else {
            self.pointers(&mut building)?;
        }
        Ok(building.extents)
    }

    /// One node of an extent tree. `bounds`: the blocks of the file that its parent gives it.
    fn node(
        &mut self,
        building: &mut Building<'_>,
        raw: &[u8],
        at_byte: u64,
        depth: u16,
        bounds: (u64, u64),
    ) -> Result<(), Ext4Error> {
        let wrong = |offset: usize, what: String| Err(damaged(at_byte + offset as u64, what));
        let ino = building.inode.ino;
        let (magic, entries, most) = (u16_at(raw, 0), usize::from(u16_at(raw, 2)), usize::from(u16_at(raw, 4)));
        if magic != MAGIC {
            return wrong(0, format!("an extent node of inode {ino} has magic {magic:#06x}, not {MAGIC:#06x}"));
        }
        if ENTRY + most * ENTRY > raw.len() || entries > most {
            return wrong(2, format!("{entries} of {most} entries do not fit an extent node of inode {ino}"));
        }
        if u16_at(raw, 6) != depth {
            return wrong(6, format!("an extent node of inode {ino} is at another depth than its parent says"));
        }
        for entry in 0..entries {
            let at = ENTRY + entry * ENTRY;
            let first = u64::from(u32_at(raw, at));
            if first < building.next_block.max(bounds.0) || first >= bounds.1 {
                return wrong(at, format!("block {first} of inode {ino} is mapped out of order"));
            }
            if depth == 0 {
                self.leaf(building, raw, at, at_byte)?;
                continue;
            }
            let next = if entry + 1 < entries { u64::from(u32_at(raw, at + ENTRY)) } else { bounds.1 };
            let child = u64::from(u32_at(raw, at + 4)) | u64::from(u16_at(raw, at + 8)) << 32;
            let block = self.tree_block(building.inode, child, at_byte + at as u64)?;
            self.node(building, &block, child * self.sb.block_bytes, depth - 1, (first, next.min(bounds.1)))?;
        }
        Ok(())
    }

    fn leaf(&mut self, building: &mut Building<'_>, raw: &[u8], at: usize, at_byte: u64) -> Result<(), Ext4Error> {
        let here = at_byte + at as u64;
        let first = u64::from(u32_at(raw, at));
        let coded = u16_at(raw, at + 4);
        let unwritten = coded > WRITTEN_MAX;
        let len = u64::from(if unwritten { coded - WRITTEN_MAX } else { coded });
        let start = u64::from(u32_at(raw, at + 8)) | u64::from(u16_at(raw, at + 6)) << 32;
        if len == 0 {
            return Err(damaged(here + 4, format!("an extent of inode {} is empty", building.inode.ino)));
        }
        self.push(building, first, start, len, unwritten, here)
    }

    fn push(
        &mut self,
        building: &mut Building<'_>,
        first: u64,
        start: u64,
        len: u64,
        unwritten: bool,
        at_byte: u64,
    ) -> Result<(), Ext4Error> {
        if !self.sb.has_blocks(start, len) {
            let (ino, blocks) = (building.inode.ino, self.sb.blocks);
            return Err(damaged(
                at_byte,
                format!("inode {ino} maps {len} blocks at {start}, outside the file system of {blocks} blocks"),
            ));
        }
        self.budget.mapped(len, at_byte)?;
        building.next_block = first + len;
        building.extents.push(Extent {
            logical_bytes: first.saturating_mul(self.sb.block_bytes),
            physical_bytes: start * self.sb.block_bytes,
            len_bytes: len * self.sb.block_bytes,
            flags: ExtentFlags { unwritten, ..ExtentFlags::default() },
        });
        Ok(())
    }

    /// Reads a block of an extent tree and checks its checksum, which lies behind the last possible entry.
    fn tree_block(&mut self, inode: &Inode, block: u64, from_byte: u64) -> Result<Vec<u8>, Ext4Error> {
        let raw = self.block(inode, block, from_byte)?;
        if self.sb.has_metadata_csum() {
            let tail = ENTRY + usize::from(u16_at(&raw, 4)) * ENTRY;
            if let Some(covered) = raw.get(..tail).filter(|_| tail + 4 <= raw.len())
                && crc32c(inode.checksum_seed, covered) != u32_at(&raw, tail)
            {
                let at = block * self.sb.block_bytes + tail as u64;
                return Err(damaged(
                    at,
                    format!("the checksum of an extent node of inode {} does not match", inode.ino),
                ));
            }
        }
        Ok(raw)
    }

    /// Reads a mapping block, within the budget.
    fn block(&mut self, inode: &Inode, block: u64, from_byte: u64) -> Result<Vec<u8>, Ext4Error> {
        if !self.sb.has_blocks(block, 1) {
            let what = format!("a mapping block of inode {} is at block {block}, outside the file system", inode.ino);
            return Err(damaged(from_byte, what));
        }
        self.budget.metadata_block(from_byte)?;
        self.image.bytes(block * self.sb.block_bytes, usize::try_from(self.sb.block_bytes).unwrap_or(1024))
    }

    /// Twelve direct pointers, then one tree each of one, two and three levels.
    fn pointers(&mut self, building: &mut Building<'_>) -> Result<(), Ext4Error> {
        let raw = building.inode.block;
        let at_byte = building.inode.at_byte + 0x28;
        let mut logical = 0;
        for i in 0..15usize {
            let pointer = u64::from(u32_at(&raw, i * 4));
            let levels = i.saturating_sub(11) as u32;
            self.pointer(building, pointer, levels, &mut logical, at_byte + i as u64 * 4)?;
        }
        Ok(())
    }

    fn pointer(
        &mut self,
        building: &mut Building<'_>,
        pointer: u64,
        levels: u32,
        logical: &mut u64,
        at_byte: u64,
    ) -> Result<(), Ext4Error> {
        let per_block = self.sb.block_bytes / 4;
        if pointer == 0 {
            *logical = logical.saturating_add(per_block.saturating_pow(levels));
            return Ok(());
        }
        if levels == 0 {
            self.push_pointer(building, *logical, pointer, at_byte)?;
            *logical += 1;
            return Ok(());
        }
        let raw = self.block(building.inode, pointer, at_byte)?;
        for i in 0..raw.len() / 4 {
            let below = u64::from(u32_at(&raw, i * 4));
            self.pointer(building, below, levels - 1, logical, pointer * self.sb.block_bytes + i as u64 * 4)?;
        }
        Ok(())
    }

    /// Adds one block, to the extent before it where it continues that.
    fn push_pointer(
        &mut self,
        building: &mut Building<'_>,
        first: u64,
        start: u64,
        at_byte: u64,
    ) -> Result<(), Ext4Error> {
        let size = self.sb.block_bytes;
        if let Some(last) = building.extents.last_mut()
            && last.logical_bytes + last.len_bytes == first.saturating_mul(size)
            && last.physical_bytes + last.len_bytes == start * size
            && self.sb.has_blocks(start, 1)
        {
            self.budget.mapped(1, at_byte)?;
            last.len_bytes += size;
            return Ok(());
        }
        self.push(building, first, start, 1, false, at_byte)
    }
}
