//! Where things are: what follows from a superblock, checked once.

use super::{
    DINODE_BYTES, FragAddr, InodeMapEntry, LABEL_BYTES, SB_PAD_BYTES, SegmentUsage, Superblock, SuperblockFields as F,
};
use ufs::indirect::NDADDR;
use ufs::{FormatError, number};

number! {
    /// A segment.
    SegNo(u32)
}

/// Sizes and places that everything is found with. All of them are consistent with one another: a value of this type
/// can be computed with freely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of a block, a power of two from 512 to 65536.
    pub bsize: u32,
    /// Bytes of a fragment, a power of two from 512.
    pub fsize: u32,
    /// Fragments of a block: a power of two.
    pub frag: u32,
    /// log2 of `bsize`.
    pub bshift: u32,
    /// log2 of `fsize`.
    pub fshift: u32,
    /// Fragments of the file system.
    pub size_frags: u32,
    /// Bytes of a segment.
    pub ssize: u32,
    /// Fragments of a segment.
    pub fsbpseg: u32,
    /// Segments.
    pub nseg: u32,
    /// Fragment where segment 0 begins.
    pub s0addr: u32,
    /// Bytes of a summary.
    pub sumsize: u32,
    /// Bytes of an inode block.
    pub ibsize: u32,
    /// Inodes of an inode block.
    pub inopb: u32,
    /// Inode-map entries of a block.
    pub ifpb: u32,
    /// Segment-usage entries of a block.
    pub sepb: u32,
    /// Pointers of an indirect block.
    pub nindir: u32,
    /// Blocks of the ifile for cleaner information.
    pub cleansz: u32,
    /// Blocks of the ifile for segment usage.
    pub segtabsz: u32,
    /// A symbolic link shorter than this is kept in its inode.
    pub maxsymlinklen: u32,
    /// Identity of the file system.
    pub ident: u32,
}

impl Geometry {
    /// What follows from a superblock at byte `at_byte` of the image. An error where a field has a value that cannot
    /// be, or where two contradict each other.
    pub fn new(sb: &Superblock, at_byte: u64) -> Result<Geometry, FormatError> {
        let wrong = |(field, at): (&'static str, u64), problem: String| {
            FormatError::field("superblock", field, at_byte + at, problem)
        };
        if !sb.bsize.is_power_of_two() || !(512..=65536).contains(&sb.bsize) {
            return Err(wrong(F::bsize.place(), format!("{} is not a power of two from 512 to 65536", sb.bsize)));
        }
        if !sb.fsize.is_power_of_two() || sb.fsize < 512 || sb.fsize > sb.bsize {
            return Err(wrong(
                F::fsize.place(),
                format!("{} is not a power of two from 512 to {}", sb.fsize, sb.bsize),
            ));
        }
        let g = Geometry {
            bsize: sb.bsize,
            fsize: sb.fsize,
            frag: sb.bsize / sb.fsize,
            bshift: sb.bsize.trailing_zeros(),
            fshift: sb.fsize.trailing_zeros(),
            size_frags: sb.size,
            ssize: sb.ssize,
            fsbpseg: sb.ssize / sb.fsize,
            nseg: sb.nseg,
            s0addr: sb.s0addr,
            sumsize: sb.sumsize,
            ibsize: sb.ibsize,
            inopb: sb.ibsize / DINODE_BYTES,
            ifpb: sb.bsize / InodeMapEntry::BYTES as u32,
            sepb: sb.bsize / SegmentUsage::BYTES as u32,
            nindir: sb.bsize / 4,
            cleansz: sb.cleansz,
            segtabsz: sb.segtabsz,
            maxsymlinklen: sb.maxsymlinklen.max(0).unsigned_abs(),
            ident: sb.ident,
        };
        g.check_sizes(&wrong)?;
        let derived = [
            (F::frag, g.frag),
            (F::fsbpseg, g.fsbpseg),
            (F::inopb, g.inopb),
            (F::ifpb, g.ifpb),
            (F::sepb, g.sepb),
            (F::nindir, g.nindir),
            (F::segtabsz, g.nseg.div_ceil(g.sepb)),
            (F::bshift, g.bshift),
            (F::ffshift, g.fshift),
            (F::inodefmt, 0),
        ];
        for (field, expected) in derived {
            let found = *(field.get)(sb);
            if found != expected {
                let problem = format!("{found} does not go with the other fields, which make it {expected}");
                return Err(wrong(field.place(), problem));
            }
        }
        Ok(g)
    }

    fn check_sizes(&self, wrong: &dyn Fn((&'static str, u64), String) -> FormatError) -> Result<(), FormatError> {
        let whole = |bytes: u32, most: u32| bytes > 0 && bytes.is_multiple_of(self.fsize) && bytes <= most;
        if !whole(self.ssize, 1 << 30) || self.fsbpseg < 2 * self.frag + 2 {
            let problem = format!("segments of {} bytes are not whole fragments, too small or too large", self.ssize);
            return Err(wrong(F::ssize.place(), problem));
        }
        // Summaries of other systems are a fragment; larger ones would be read just as well.
        if !whole(self.sumsize, self.bsize) {
            return Err(wrong(
                F::sumsize.place(),
                format!("summaries of {} bytes are not whole fragments", self.sumsize),
            ));
        }
        if !whole(self.ibsize, self.bsize) {
            return Err(wrong(
                F::ibsize.place(),
                format!("inode blocks of {} bytes are not whole fragments", self.ibsize),
            ));
        }
        let end = u64::from(self.s0addr) + u64::from(self.nseg) * u64::from(self.fsbpseg);
        if self.nseg == 0 || end > u64::from(self.size_frags) || self.size_frags > i32::MAX as u32 {
            let problem = format!("{} segments do not fit into {} fragments", self.nseg, self.size_frags);
            return Err(wrong(F::nseg.place(), problem));
        }
        if self.cleansz == 0 || self.cleansz > 16 {
            return Err(wrong(F::cleansz.place(), format!("{} blocks of cleaner information", self.cleansz)));
        }
        if self.maxsymlinklen > super::SYMLINK_AREA_BYTES as u32 {
            let problem = format!("{} is more than the pointers of an inode hold", self.maxsymlinklen);
            return Err(wrong(F::maxsymlinklen.place(), problem));
        }
        Ok(())
    }

    /// Byte of a fragment in the image.
    pub fn byte_of(&self, addr: FragAddr) -> u64 {
        u64::from(addr.0) << self.fshift
    }

    /// Fragments that so many bytes take.
    pub fn frags_of(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(self.fsize.into())).unwrap_or(u32::MAX)
    }

    /// Fragments of a summary.
    pub fn sum_frags(&self) -> u32 {
        self.sumsize >> self.fshift
    }

    /// Fragments of an inode block.
    pub fn ib_frags(&self) -> u32 {
        self.ibsize >> self.fshift
    }

    /// The segment that a fragment is in; `None` before the first and behind the last.
    pub fn segment_of(&self, addr: FragAddr) -> Option<SegNo> {
        let n = addr.0.checked_sub(self.s0addr)? / self.fsbpseg;
        (n < self.nseg).then_some(SegNo(n))
    }

    /// First fragment of a segment.
    pub fn segment_base(&self, segment: SegNo) -> FragAddr {
        FragAddr(self.s0addr.saturating_add(segment.0.saturating_mul(self.fsbpseg)))
    }

    /// The fragment behind a segment.
    pub fn segment_end(&self, segment: SegNo) -> FragAddr {
        self.segment_base(segment).plus(self.fsbpseg)
    }

    /// The first fragment of a segment that partial segments use: behind a superblock if it has one, and in segment 0
    /// behind the label if that lies in it.
    pub fn log_start(&self, segment: SegNo, has_superblock: bool) -> FragAddr {
        let mut start = self.segment_base(segment);
        if has_superblock {
            start = start.plus(self.frags_of(SB_PAD_BYTES.into()));
        }
        if segment.0 == 0 {
            start = start.plus(self.frags_of(LABEL_BYTES.into()).saturating_sub(self.s0addr));
        }
        start
    }

    /// Whether so many fragments lie within one segment from here on.
    pub fn within_segment(&self, addr: FragAddr, frags: u32) -> bool {
        self.segment_of(addr)
            .is_some_and(|segment| u64::from(addr.0) + u64::from(frags) <= u64::from(self.segment_end(segment).0))
    }

    /// Whether a pointer of a file is a hole, or leads to so many fragments of a segment.
    pub fn is_pointer(&self, pointer: i64, frags: u32) -> bool {
        pointer == 0 || u32::try_from(pointer).is_ok_and(|addr| self.within_segment(FragAddr(addr), frags))
    }

    /// Whether a further partial segment goes behind one that ends here; if not, the log goes on in the next segment.
    ///
    /// NetBSD's writer wants more than a block of room, its roll-forward more than a summary and a block. Here the
    /// stricter of the two decides, so that both find what was written. Nor may one end where its segment does:
    /// NetBSD's roll-forward would take the next segment on the disk for the next one of the log.
    pub fn partial_fits(&self, end: FragAddr) -> bool {
        self.segment_of(end).is_some_and(|s| self.segment_end(s).0 - end.0 > self.sum_frags() + self.frag)
    }

    /// The most bytes a file can have with these pointers.
    pub fn max_file_bytes(&self) -> u64 {
        let n = u64::from(self.nindir);
        (NDADDR as u64 + n + n * n + n * n * n) << self.bshift
    }

    /// Bytes of a file's block on disk: whole fragments for the last one of a file without indirect blocks, else a
    /// block.
    pub fn block_bytes(&self, size: u64, lbn: u64) -> u32 {
        let start = lbn << self.bshift;
        if lbn >= NDADDR as u64 || size >= start + u64::from(self.bsize) {
            self.bsize
        } else {
            (size.saturating_sub(start) as u32).next_multiple_of(self.fsize)
        }
    }
}

impl Superblock {
    /// What everything is found with; an error where the fields make no sense. See [`Geometry::new`].
    pub fn geometry(&self, at_byte: u64) -> Result<Geometry, FormatError> {
        Geometry::new(self, at_byte)
    }
}
