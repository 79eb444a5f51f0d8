//! An image as NetBSD's sources see it: places of fields written down here once more, from `sys/ufs/lfs/lfs.h`, and
//! nothing of the crate that is tested.

/// Bytes of a sector.
pub const SECTOR: u64 = 512;
/// `LFS_LABELPAD` and `LFS_SBPAD`.
pub const PAD: u64 = 8192;
/// `ULFS_NDADDR`.
pub const NDADDR: u64 = 12;
/// `LFS_IFILE_INUM`.
pub const IFILE: u32 = 1;
/// `ULFS_ROOTINO`.
pub const ROOT: u32 = 2;
/// `LFS_ORPHAN_NEXTFREE`.
pub const ORPHAN: u32 = u32::MAX;

pub const SEGUSE_ACTIVE: u32 = 1;
pub const SEGUSE_DIRTY: u32 = 2;
pub const SEGUSE_SUPERBLOCK: u32 = 4;
pub const SEGUSE_ERROR: u32 = 8;
pub const SEGUSE_EMPTY: u32 = 0x10;
pub const SEGUSE_INVAL: u32 = 0x20;

pub const SS_CONT: u16 = 2;

pub fn u16_at(bytes: &[u8], at: u64) -> u16 {
    u16::from_le_bytes(bytes[at as usize..][..2].try_into().unwrap())
}

pub fn u32_at(bytes: &[u8], at: u64) -> u32 {
    u32::from_le_bytes(bytes[at as usize..][..4].try_into().unwrap())
}

pub fn i32_at(bytes: &[u8], at: u64) -> i32 {
    u32_at(bytes, at) as i32
}

pub fn u64_at(bytes: &[u8], at: u64) -> u64 {
    u64::from_le_bytes(bytes[at as usize..][..8].try_into().unwrap())
}

/// `cksum`: exclusive or of 16-bit words.
pub fn cksum(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).fold(0, |sum, word| sum ^ u32::from(u16_at(word, 0)))
}

/// A `struct dlfs`.
#[derive(Clone, Copy)]
pub struct Superblock<'a>(pub &'a [u8]);

macro_rules! fields {
    ($($name:ident: $at:literal),+) => {
        $(pub fn $name(&self) -> u64 { u32_at(self.0, $at).into() })+
    };
}

impl Superblock<'_> {
    fields!(magic: 0, version: 4, size: 8, ssize: 12, dsize: 16, bsize: 20, fsize: 24, frag: 28, freehd: 32,
        nfiles: 40);
    fields!(uinodes: 48, idaddr: 52, ifile: 56, lastseg: 60, nextseg: 64, curseg: 68, offset: 72, inopf: 80);
    fields!(minfree: 84, fsbpseg: 96, inopb: 100, ifpb: 104, sepb: 108, nindir: 112, nseg: 116, nspf: 120,
        cleansz: 124);
    fields!(segtabsz: 128, segmask: 132, segshift: 136, bshift: 140, ffshift: 144, fbshift: 148, blktodb: 176);
    fields!(sushift: 180, maxsymlinklen: 184, nclean: 228, minfreeseg: 328, sumsize: 332, ibsize: 344, s0addr: 348);
    fields!(inodefmt: 360, interleave: 364, ident: 368, fsbtodb: 372, resvseg: 376, cksum: 508);

    pub fn bfree(&self) -> i64 {
        i32_at(self.0, 36).into()
    }
    pub fn avail(&self) -> i64 {
        i32_at(self.0, 44).into()
    }
    pub fn dmeta(&self) -> i64 {
        i32_at(self.0, 324).into()
    }
    pub fn maxfilesize(&self) -> u64 {
        u64_at(self.0, 88)
    }
    pub fn masks(&self) -> [u64; 3] {
        [152, 160, 168].map(|at| u64_at(self.0, at))
    }
    pub fn sboff(&self, n: u64) -> u64 {
        u32_at(self.0, 188 + 4 * n).into()
    }
    pub fn pflags(&self) -> u16 {
        u16_at(self.0, 322)
    }
    pub fn serial(&self) -> u64 {
        u64_at(self.0, 336)
    }
    pub fn tstamp(&self) -> u64 {
        u64_at(self.0, 352)
    }
}

/// A `struct ulfs1_dinode`.
#[derive(Clone, Copy)]
pub struct Inode<'a>(pub &'a [u8]);

impl Inode<'_> {
    pub fn mode(&self) -> u16 {
        u16_at(self.0, 0)
    }
    /// The type, as in the upper bits of a mode.
    pub fn ifmt(&self) -> u16 {
        self.mode() & 0o170_000
    }
    pub fn nlink(&self) -> i16 {
        u16_at(self.0, 2) as i16
    }
    pub fn number(&self) -> u32 {
        u32_at(self.0, 4)
    }
    pub fn size(&self) -> u64 {
        u64_at(self.0, 8)
    }
    pub fn db(&self, n: u64) -> u64 {
        u32_at(self.0, 40 + 4 * n).into()
    }
    pub fn ib(&self, n: u64) -> u64 {
        u32_at(self.0, 88 + 4 * n).into()
    }
    pub fn blocks(&self) -> u64 {
        u32_at(self.0, 104).into()
    }
    pub fn generation(&self) -> u32 {
        u32_at(self.0, 108)
    }
}

/// A `SEGUSE`.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub nbytes: u64,
    pub nsums: u64,
    pub ninos: u64,
    pub flags: u32,
    pub lastmod: u64,
}

impl Usage {
    pub fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// An `IFILE`.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub version: u32,
    pub daddr: u64,
    pub nextfree: u32,
}

/// A block that a file has: number, fragment, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub lbn: i64,
    pub addr: u64,
    pub bytes: u64,
}

/// The disk, by one of its checkpoints.
pub struct Disk<'a> {
    pub bytes: &'a [u8],
    pub sb: Superblock<'a>,
    /// The whole ifile.
    pub ifile: Vec<u8>,
}

impl<'a> Disk<'a> {
    /// Takes the checkpoint of a superblock; an error if its ifile cannot be read.
    pub fn open(bytes: &'a [u8], sb: Superblock<'a>) -> Result<Disk<'a>, String> {
        let mut disk = Disk { bytes, sb, ifile: Vec::new() };
        let inode = disk.inode_at(sb.idaddr(), IFILE).ok_or("the ifile's inode is not where the superblock says")?;
        let held = disk.held(inode)?;
        let blocks = inode.size() / sb.bsize();
        let mut ifile = vec![0; inode.size() as usize];
        let mut found = 0;
        for block in held.iter().filter(|block| block.lbn >= 0) {
            let at = (block.lbn as u64 * sb.bsize()) as usize;
            let Some(place) = ifile.get_mut(at..at + sb.bsize() as usize) else { return Err("a long ifile".into()) };
            place.copy_from_slice(disk.piece(block.addr, sb.bsize()));
            found += 1;
        }
        if found != blocks || !inode.size().is_multiple_of(sb.bsize()) {
            return Err(format!("the ifile has {} bytes and {found} blocks", inode.size()));
        }
        disk.ifile = ifile;
        Ok(disk)
    }

    pub fn byte(&self, addr: u64) -> u64 {
        addr * self.sb.fsize()
    }

    pub fn piece(&self, addr: u64, bytes: u64) -> &'a [u8] {
        &self.bytes[self.byte(addr) as usize..][..bytes as usize]
    }

    /// `lfs_dtosn`; `lfs_sntod` is `base`.
    pub fn segment(&self, addr: u64) -> u64 {
        (addr - self.sb.s0addr()) / self.sb.fsbpseg()
    }

    pub fn base(&self, segment: u64) -> u64 {
        self.sb.s0addr() + segment * self.sb.fsbpseg()
    }

    pub fn frags(&self, bytes: u64) -> u64 {
        bytes / self.sb.fsize()
    }

    /// Where the log of a segment begins: `load_segment` of lfs_cleanerd.
    pub fn log_start(&self, segment: u64) -> u64 {
        let at = self.base(segment).max(self.frags(PAD));
        let superblock = (0..10).any(|n| self.sb.sboff(n) == at);
        if superblock { at + self.frags(PAD) } else { at }
    }

    /// An inode in an inode block; the last of its number counts (`lfs_ifind`).
    pub fn inode_at(&self, addr: u64, number: u32) -> Option<Inode<'a>> {
        self.inodes_at(addr).into_iter().rev().find(|inode| inode.number() == number)
    }

    pub fn inodes_at(&self, addr: u64) -> Vec<Inode<'a>> {
        if addr == 0 || self.byte(addr) + self.sb.ibsize() > self.bytes.len() as u64 {
            return Vec::new();
        }
        self.piece(addr, self.sb.ibsize()).chunks_exact(128).map(Inode).collect()
    }

    pub fn entry(&self, number: u32) -> Entry {
        let sb = &self.sb;
        let block = sb.cleansz() + sb.segtabsz() + u64::from(number) / sb.ifpb();
        let at = block * sb.bsize() + u64::from(number) % sb.ifpb() * 20;
        let field = |offset| u32_at(&self.ifile, at + offset);
        Entry { version: field(0), daddr: field(4).into(), nextfree: field(8) }
    }

    pub fn usage(&self, segment: u64) -> Usage {
        let sb = &self.sb;
        let at = (sb.cleansz() + segment / sb.sepb()) * sb.bsize() + segment % sb.sepb() * 24;
        Usage {
            nbytes: u32_at(&self.ifile, at).into(),
            nsums: u16_at(&self.ifile, at + 8).into(),
            ninos: u16_at(&self.ifile, at + 10).into(),
            flags: u32_at(&self.ifile, at + 12),
            lastmod: u64_at(&self.ifile, at + 16),
        }
    }

    /// One more than the highest inode number (`maxino`).
    pub fn inodes(&self) -> u32 {
        let blocks = self.ifile.len() as u64 / self.sb.bsize() - self.sb.cleansz() - self.sb.segtabsz();
        (blocks * self.sb.ifpb()) as u32
    }

    /// Whether an inode's pointers are none.
    pub fn has_no_blocks(&self, inode: Inode<'_>) -> bool {
        let short = inode.ifmt() == 0o120_000 && inode.size() < self.sb.maxsymlinklen();
        short || [0o010_000, 0o020_000, 0o060_000, 0o140_000].contains(&inode.ifmt())
    }

    /// Bytes of a block (`lfs_blksize`).
    pub fn block_bytes(&self, inode: Inode<'_>, lbn: u64) -> u64 {
        let (bsize, fsize) = (self.sb.bsize(), self.sb.fsize());
        if lbn >= NDADDR || inode.size() >= (lbn + 1) * bsize {
            bsize
        } else {
            (inode.size() % bsize).div_ceil(fsize) * fsize
        }
    }

    /// Everything an inode points to, indirect blocks included.
    pub fn held(&self, inode: Inode<'_>) -> Result<Vec<Held>, String> {
        let mut held = Vec::new();
        if self.has_no_blocks(inode) {
            return Ok(held);
        }
        for lbn in (0..NDADDR).filter(|lbn| inode.db(*lbn) != 0) {
            let bytes = self.block_bytes(inode, lbn);
            held.push(Held { lbn: lbn as i64, addr: inode.db(lbn), bytes });
        }
        let (mut first, n) = (NDADDR, self.sb.nindir());
        for level in 0..3 {
            if inode.ib(level) != 0 {
                self.below(inode.ib(level), first, level as u32, &mut held)?;
            }
            first += n.pow(level as u32 + 1);
        }
        Ok(held)
    }

    /// An indirect block and what is below it: the block that reaches block `first` first.
    fn below(&self, addr: u64, first: u64, level: u32, held: &mut Vec<Held>) -> Result<(), String> {
        let (bsize, n) = (self.sb.bsize(), self.sb.nindir());
        held.push(Held { lbn: -(first as i64) - i64::from(level), addr, bytes: bsize });
        if self.byte(addr) + bsize > self.bytes.len() as u64 {
            return Err(format!("an indirect block at {addr}, outside"));
        }
        for i in 0..n {
            let pointer = u64::from(u32_at(self.piece(addr, bsize), 4 * i));
            let first = first + i * n.pow(level);
            match level {
                _ if pointer == 0 => {}
                0 => held.push(Held { lbn: first as i64, addr: pointer, bytes: bsize }),
                _ => self.below(pointer, first, level - 1, held)?,
            }
        }
        Ok(())
    }
}

/// A partial segment: what lfs_cleanerd makes of it (`parse_pseg`).
#[derive(Clone, Debug)]
pub struct Partial {
    pub serial: u64,
    pub next: u64,
    pub create: u64,
    pub flags: u16,
    /// File, version, block.
    pub blocks: Vec<(u32, u32, Held)>,
    pub inode_blocks: Vec<u64>,
    /// The fragment behind it.
    pub end: u64,
}

impl Disk<'_> {
    /// Parses a partial segment by the rules of lfs_cleanerd; the error is what it would complain about.
    pub fn partial(&self, at: u64) -> Result<Partial, String> {
        let (sb, sumsize) = (&self.sb, self.sb.sumsize());
        let sum = self.piece(at, sumsize);
        if u32_at(sum, 8) != 0x061_561 {
            return Err(format!("sumsum magic number bad at {at}"));
        }
        if u32_at(sum, 0) != cksum(&sum[4..]) {
            return Err(format!("sumsum checksum mismatch at {at}"));
        }
        if u64::from(u32_at(sum, 16)) != sb.ident() {
            return Err(format!("incorrect fsid at {at}"));
        }
        let (nfinfo, ninos) = (u16_at(sum, 20), u64::from(u16_at(sum, 22)));
        if nfinfo == 0 && ninos == 0 {
            return Err(format!("empty pseg at {at}"));
        }
        // The addresses of inode blocks are found from the end.
        let mut inode_at = sumsize - 4;
        let mut info_at = 48;
        let mut partial = Partial {
            serial: u64_at(sum, 32),
            next: u32_at(sum, 12).into(),
            create: u64_at(sum, 40),
            flags: u16_at(sum, 24),
            blocks: Vec::new(),
            inode_blocks: Vec::new(),
            end: at + 1,
        };
        let (mut infos, mut inodes, mut datasum) = (0, 0, 0);
        let segment_end = self.base(self.segment(at) + 1);
        while infos < nfinfo || inodes < ninos {
            if partial.end >= segment_end {
                return Err(format!("pseg at {at} leaves its segment"));
            }
            let is_inodes = u64::from(u32_at(sum, inode_at)) == partial.end;
            if inodes < ninos && is_inodes {
                let block = self.piece(partial.end, sb.ibsize());
                datasum ^= cksum(&block[..4]);
                inodes += block.chunks_exact(128).take_while(|inode| Inode(inode).number() != 0).count() as u64;
                partial.inode_blocks.push(partial.end);
                partial.end += self.frags(sb.ibsize());
                inode_at -= 4;
                continue;
            }
            if infos == nfinfo {
                return Err(format!("bad pseg at {at}: no inode block at {}", partial.end));
            }
            infos += 1;
            let nblocks = u64::from(u32_at(sum, info_at));
            if nblocks == 0 || info_at + 16 + 4 * nblocks > inode_at + 4 {
                return Err(format!("pseg at {at}: FINFO of {nblocks} blocks"));
            }
            let (version, ino) = (u32_at(sum, info_at + 4), u32_at(sum, info_at + 8));
            for i in 0..nblocks {
                let last = u64::from(u32_at(sum, info_at + 12));
                let bytes = if i + 1 == nblocks { last } else { sb.bsize() };
                if bytes == 0 || bytes > sb.bsize() || bytes % sb.fsize() != 0 {
                    return Err(format!("pseg at {at}: a block of {bytes} bytes"));
                }
                let lbn = i32_at(sum, info_at + 16 + 4 * i).into();
                datasum ^= cksum(&self.piece(partial.end, bytes)[..4]);
                partial.blocks.push((ino, version, Held { lbn, addr: partial.end, bytes }));
                partial.end += self.frags(bytes);
            }
            info_at += 16 + 4 * nblocks;
        }
        if datasum != u32_at(sum, 4) {
            return Err(format!("data checksum bad at {at}"));
        }
        if partial.end > segment_end || inodes != ninos {
            return Err(format!("pseg at {at}: {inodes} inodes of {ninos}, end {}", partial.end));
        }
        Ok(partial)
    }
}
