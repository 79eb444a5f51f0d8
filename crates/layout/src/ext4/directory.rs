//! Directories: every block read in turn, hash tree or not, and the names put in the order that `readdir` gives.

use super::checksum::crc32c;
use super::error::{Ext4Error, damaged};
use super::hash::NameHash;
use super::image::{u8_at, u16_at, u32_at};
use super::inode::{CASEFOLD, INDEX, INLINE_DATA, Inode};
use super::map::Mapper;
use super::superblock::{compat, incompat};

/// A name and its inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) ino: u64,
}

/// A directory's names, without `.` and `..`.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) entries: Vec<Entry>,
    /// Whether they are in the order of `readdir`; not so where that needs a hash this reader lacks (case folding).
    pub(super) ordered: bool,
}

/// The fixed part of an entry.
const HEAD: usize = 8;
/// `EXT4_FT_DIR_CSUM`: the entry at a block's end that holds its checksum.
const CHECKSUM_TYPE: u8 = 0xDE;
const CHECKSUM_TAIL: usize = 12;

impl Mapper<'_> {
    /// Reads a whole directory.
    pub(super) fn listing(&mut self, inode: &Inode) -> Result<Listing, Ext4Error> {
        let mut entries = Vec::new();
        let mut version = self.sb.hash_version;
        if inode.is(INLINE_DATA) {
            self.inline_entries(inode, &mut entries)?;
        } else {
            self.block_entries(inode, &mut entries, &mut version)?;
        }
        // `is_dx_dir` of fs/ext4/dir.c: also a directory of one block is read in hash order.
        let one_block = inode.size_bytes / self.sb.block_bytes == 1;
        let hashed = self.sb.compat & compat::DIR_INDEX != 0 && (inode.is(INDEX) || one_block || inode.is(INLINE_DATA));
        let mut ordered = true;
        if hashed {
            match NameHash::new(version, self.sb.unsigned_hash, self.sb.hash_seed).filter(|_| !inode.is(CASEFOLD)) {
                Some(hash) => entries.sort_by_cached_key(|entry| hash.of(&entry.name)),
                None => ordered = false,
            }
        }
        Ok(Listing { entries, ordered })
    }

    fn block_entries(&mut self, inode: &Inode, entries: &mut Vec<Entry>, version: &mut u8) -> Result<(), Ext4Error> {
        let size = self.sb.block_bytes;
        for extent in self.extents(inode)? {
            for at in (0..extent.len_bytes).step_by(usize::try_from(size).unwrap_or(1024)) {
                // Blocks beyond the directory's end are preallocated and hold nothing.
                if extent.logical_bytes.saturating_add(at) >= inode.size_bytes || extent.flags.unwritten {
                    break;
                }
                let at_byte = extent.physical_bytes + at;
                self.budget.metadata_block(at_byte)?;
                let block = self.image.bytes(at_byte, usize::try_from(size).unwrap_or(1024))?;
                let first = extent.logical_bytes + at == 0;
                if first && inode.is(INDEX) {
                    // dx_root: after `.` and `..` (12 bytes each), four reserved bytes, then the hash version.
                    *version = u8_at(&block, 28);
                }
                // The nodes of a hash tree end in a checksum of another form, and may keep the tail of the leaf they
                // once were: the root is the first block, and every other node begins with one empty entry.
                let node = first || record_len(u16_at(&block, 4), block.len()) == block.len();
                if !(inode.is(INDEX) && node) {
                    self.check_tail(inode, &block, at_byte)?;
                }
                self.parse(inode, &block, at_byte, entries)?;
            }
        }
        Ok(())
    }

    fn check_tail(&self, inode: &Inode, block: &[u8], at_byte: u64) -> Result<(), Ext4Error> {
        let Some(tail) = block.len().checked_sub(CHECKSUM_TAIL) else { return Ok(()) };
        let is_tail = u32_at(block, tail) == 0
            && u16_at(block, tail + 4) == 12
            && u16_at(block, tail + 6) == u16::from(CHECKSUM_TYPE) << 8;
        if !self.sb.has_metadata_csum() || !is_tail {
            return Ok(());
        }
        let covered = block.get(..tail).unwrap_or(block);
        if crc32c(inode.checksum_seed, covered) != u32_at(block, tail + 8) {
            let what = format!("the checksum of a block of directory inode {} does not match", inode.ino);
            return Err(damaged(at_byte + tail as u64 + 8, what));
        }
        Ok(())
    }

    /// Inline directories: the parent's number, then entries, in `i_block` and on among the extended attributes.
    fn inline_entries(&mut self, inode: &Inode, entries: &mut Vec<Entry>) -> Result<(), Ext4Error> {
        self.parse(inode, inode.block.get(4..).unwrap_or_default(), inode.at_byte + 0x28 + 4, entries)?;
        if let Some((rest, at_byte)) = inode.inline_overflow()? {
            self.parse(inode, rest, at_byte, entries)?;
        }
        Ok(())
    }

    fn parse(&self, inode: &Inode, raw: &[u8], at_byte: u64, entries: &mut Vec<Entry>) -> Result<(), Ext4Error> {
        let wide_names = self.sb.incompat & incompat::FILETYPE == 0;
        let mut at = 0;
        while at + HEAD <= raw.len() {
            let len = record_len(u16_at(raw, at + 4), raw.len());
            let name_len = if wide_names { usize::from(u16_at(raw, at + 6)) } else { usize::from(u8_at(raw, at + 6)) };
            let ino = u64::from(u32_at(raw, at));
            let fits = at.checked_add(len).is_some_and(|end| end <= raw.len());
            // A deleted entry keeps whatever name it had.
            if len < HEAD || !len.is_multiple_of(4) || !fits || (ino != 0 && HEAD + name_len > len) {
                let what = format!("an entry of {len} bytes does not fit its block of directory inode {}", inode.ino);
                return Err(damaged(at_byte + at as u64 + 4, what));
            }
            let name = raw.get(at + HEAD..at + HEAD + name_len).unwrap_or_default();
            if ino != 0 && name_len > 0 && name != b"." && name != b".." {
                if ino > self.sb.inodes {
                    let what =
                        format!("an entry of directory inode {} names inode {ino}, which does not exist", inode.ino);
                    return Err(damaged(at_byte + at as u64, what));
                }
                entries.push(Entry { name: name.to_vec(), ino });
            }
            at += len;
        }
        Ok(())
    }
}

/// `ext4_rec_len_from_disk`: in blocks of 64 KiB, 0 and 65535 mean all of the block.
fn record_len(stored: u16, block_len: usize) -> usize {
    if stored == 0xFFFF || stored == 0 && block_len == 65536 {
        return block_len;
    }
    if block_len < 65536 { usize::from(stored) } else { usize::from(stored & 0xFFFC) | usize::from(stored & 3) << 16 }
}
