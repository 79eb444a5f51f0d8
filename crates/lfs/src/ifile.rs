//! The ifile in memory: cleaner information, segment usage, inode map.

use crate::blocks::file_data;
use crate::format::{
    CleanerInfo, Dinode, ENDIAN, FragAddr, Geometry, IFILE_INO, Ino, InodeMapEntry, SegNo, SegmentUsage,
};
use crate::{LfsError, Store};

/// What the ifile says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ifile {
    /// Its inode.
    pub inode: Dinode,
    /// What the kernel tells the cleaner.
    pub info: CleanerInfo,
    /// Of each segment how much is live.
    pub usage: Vec<SegmentUsage>,
    /// Of each inode where it is; whole blocks of entries.
    pub map: Vec<InodeMapEntry>,
}

impl Ifile {
    /// Reads it, given its inode.
    pub fn read<S: Store + ?Sized>(store: &S, g: &Geometry, inode: Dinode) -> Result<Ifile, LfsError> {
        let wrong = |problem: String| LfsError::Inode { ino: IFILE_INO.0, problem: format!("the ifile {problem}") };
        let head = u64::from(g.cleansz + g.segtabsz);
        let blocks = inode.size >> g.bshift;
        if !inode.size.is_multiple_of(g.bsize.into()) || blocks <= head || blocks > u64::from(g.size_frags / g.frag) {
            return Err(wrong(format!("of {} bytes is not whole blocks of a table each", inode.size)));
        }
        let mut ifile = Ifile { inode, info: CleanerInfo::default(), usage: Vec::new(), map: Vec::new() };
        let mut next = 0;
        let owner = ifile.inode.clone();
        file_data(store, g, IFILE_INO, &owner, g.bsize, &mut |at, block| {
            if at != next {
                return Err(wrong(format!("has a hole at byte {next}")));
            }
            next += block.len() as u64;
            ifile.take(g, at >> g.bshift, block);
            Ok(())
        })?;
        if next < owner.size {
            return Err(wrong(format!("has a hole at byte {next}")));
        }
        Ok(ifile)
    }

    fn take(&mut self, g: &Geometry, lbn: u64, block: &[u8]) {
        if lbn == 0 {
            self.info = CleanerInfo::get(ENDIAN, block);
        } else if lbn >= u64::from(g.cleansz + g.segtabsz) {
            let entries = block.chunks_exact(InodeMapEntry::BYTES).take(g.ifpb as usize);
            self.map.extend(entries.map(|entry| InodeMapEntry::get(ENDIAN, entry)));
        } else if lbn >= u64::from(g.cleansz) {
            let entries = block.chunks_exact(SegmentUsage::BYTES).take(g.sepb as usize);
            let room = g.nseg as usize - self.usage.len();
            self.usage.extend(entries.map(|entry| SegmentUsage::get(ENDIAN, entry)).take(room));
        }
    }

    /// Blocks it has.
    pub fn blocks(&self, g: &Geometry) -> u64 {
        u64::from(g.cleansz + g.segtabsz) + (self.map.len() as u64).div_ceil(g.ifpb.into())
    }

    /// One of its blocks, as it is to be written.
    pub fn block(&self, g: &Geometry, lbn: u64) -> Vec<u8> {
        let mut block = vec![0; g.bsize as usize];
        let (usage_at, map_at) = (u64::from(g.cleansz), u64::from(g.cleansz + g.segtabsz));
        if lbn == 0 {
            self.info.put(ENDIAN, &mut block);
        } else if lbn >= map_at {
            let entries = self.map.iter().skip(((lbn - map_at) * u64::from(g.ifpb)) as usize);
            for (place, entry) in block.chunks_exact_mut(InodeMapEntry::BYTES).zip(entries) {
                entry.put(ENDIAN, place);
            }
        } else if lbn >= usage_at {
            let entries = self.usage.iter().skip(((lbn - usage_at) * u64::from(g.sepb)) as usize);
            for (place, entry) in block.chunks_exact_mut(SegmentUsage::BYTES).zip(entries) {
                entry.put(ENDIAN, place);
            }
        }
        block
    }

    /// The entry of an inode.
    pub fn entry(&self, ino: Ino) -> Option<&InodeMapEntry> {
        self.map.get(ino.0 as usize)
    }

    /// The entry of an inode, to change.
    pub fn entry_mut(&mut self, ino: Ino) -> Option<&mut InodeMapEntry> {
        self.map.get_mut(ino.0 as usize)
    }

    /// Where an inode is; `None` if it is not in use. The ifile's own entry is stale.
    pub fn daddr(&self, ino: Ino) -> Option<FragAddr> {
        let addr = FragAddr(self.entry(ino)?.daddr);
        (!addr.is_none()).then_some(addr)
    }

    /// The usage of a segment.
    pub fn usage(&self, segment: SegNo) -> Option<&SegmentUsage> {
        self.usage.get(segment.0 as usize)
    }

    /// Inodes in use, in their order, the ifile's first.
    pub fn in_use(&self) -> impl Iterator<Item = (Ino, &InodeMapEntry)> {
        let numbered = (0_u32..).map(Ino).zip(&self.map);
        numbered.filter(|(ino, entry)| entry.daddr != 0 && ino.0 != 0)
    }

    /// The list of free inodes, from its head. Stops after as many as there are, so that a circle ends.
    pub fn free_list(&self) -> impl Iterator<Item = Ino> {
        let first = Some(Ino(self.info.free_head)).filter(|ino| ino.0 != 0);
        std::iter::successors(first, |ino| self.entry(*ino).map(|entry| Ino(entry.nextfree)).filter(|next| next.0 != 0))
            .take(self.map.len())
    }
}
