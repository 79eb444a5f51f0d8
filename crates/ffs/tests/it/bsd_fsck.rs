//! What the fsck_ffs of FreeBSD 14 and of NetBSD ask of a superblock, its copies, the groups, and (`bsd_files.rs`) of
//! inodes, blocks and names, worked out again from the bytes alone: nothing of the crate under test is used to read
//! them.
//!
//! FreeBSD: `validate_sblock` (ffs_subr.c), `check_cgmagic` (fsutil.c), `checkinode` (pass1.c), pass5.c. NetBSD:
//! `setup` and `cmpsblks` (setup.c), pass5.c.

pub mod files;

pub struct Bytes<'a> {
    pub image: &'a [u8],
    pub big: bool,
}

impl Bytes<'_> {
    fn raw<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut raw: [u8; N] = self.image[at..at + N].try_into().expect("as long");
        if self.big {
            raw.reverse();
        }
        raw
    }
    fn i16(&self, at: usize) -> i64 {
        i16::from_le_bytes(self.raw(at)).into()
    }
    fn u16(&self, at: usize) -> u32 {
        u16::from_le_bytes(self.raw(at)).into()
    }
    fn i32(&self, at: usize) -> i64 {
        i32::from_le_bytes(self.raw(at)).into()
    }
    fn i64(&self, at: usize) -> i64 {
        i64::from_le_bytes(self.raw(at))
    }
    fn bit(&self, map: usize, n: i64) -> bool {
        self.image[map + n as usize / 8] >> (n % 8) & 1 == 1
    }
}

fn up(n: i64, to: i64) -> i64 {
    (n + to - 1) / to * to
}

/// What they would complain about. `sb_at` is the byte of the superblock.
pub fn complaints(image: &[u8], big: bool, sb_at: usize) -> Vec<String> {
    let b = Bytes { image, big };
    let mut found = Vec::new();
    superblock(&b, sb_at, &mut found);
    if found.is_empty() {
        let fs = Fs::read(&b, sb_at);
        let mut total = [0; 4];
        for c in 0..fs.ncg {
            copy(&b, &fs, sb_at, c, &mut found);
            group(&b, &fs, c, &mut total, &mut found);
        }
        for (n, name) in
            ["ndir", "nbfree", "nifree", "nffree", "numclusters", "spare", "spare", "spare"].iter().enumerate()
        {
            let expected = total.get(n).copied().unwrap_or(0);
            let there = b.i64(sb_at + 1008 + 8 * n);
            if there != expected {
                found.push(format!("SUMMARY BLK COUNT(S) WRONG IN SUPERBLK: {name} {there}, {expected} counted"));
            }
        }
    }
    if found.is_empty() {
        files::complaints(&b, sb_at, &mut found);
    }
    found
}

#[derive(Clone)]
struct Fs {
    ufs2: bool,
    bsize: i64,
    fsize: i64,
    frag: i64,
    ncg: i64,
    fpg: i64,
    ipg: i64,
    size: i64,
    cpg: i64,
    nrpos: i64,
    contigsumsize: i64,
    cgsize: i64,
    cgoffset: i64,
    cgmask: i64,
    sblkno: i64,
    cblkno: i64,
    iblkno: i64,
    csaddr: i64,
    /// Groups carry check hashes.
    group_hash: bool,
}

impl Fs {
    fn read(b: &Bytes<'_>, sb: usize) -> Fs {
        let i = |at| b.i32(sb + at);
        Fs {
            ufs2: i(1372) == 0x1954_0119,
            bsize: i(48),
            fsize: i(52),
            frag: i(56),
            ncg: i(44),
            fpg: i(188),
            ipg: i(184),
            size: b.i64(sb + 1080),
            cpg: i(180),
            nrpos: i(1360),
            contigsumsize: i(1316),
            cgsize: i(160),
            cgoffset: i(24),
            cgmask: i(28),
            sblkno: i(8),
            cblkno: i(12),
            iblkno: i(16),
            csaddr: b.i64(sb + 1096),
            group_hash: i(1372) == 0x1954_0119 && i(1312) & 0x200 != 0 && i(1308) & 2 != 0,
        }
    }
    fn start(&self, c: i64) -> i64 {
        self.fpg * c + if self.ufs2 { 0 } else { self.cgoffset * (c & !self.cgmask) }
    }
    fn byte(&self, frag: i64) -> usize {
        (frag * self.fsize) as usize
    }
    fn ndblk(&self, c: i64) -> i64 {
        self.fpg.min(self.size - c * self.fpg)
    }
    /// Bytes that a group needs (`CGSIZE`).
    fn group_bytes(&self) -> i64 {
        let tables = if self.ufs2 { 0 } else { self.cpg * 4 + self.cpg * 2 * self.nrpos };
        let clusters =
            if self.contigsumsize > 0 { self.contigsumsize * 4 + up(self.fpg / self.frag, 8) / 8 } else { 0 };
        168 + 4 + tables + up(self.ipg, 8) / 8 + up(self.fpg, 8) / 8 + clusters
    }
}

fn superblock(b: &Bytes<'_>, sb: usize, found: &mut Vec<String>) {
    let i = |at| b.i32(sb + at);
    let fs = Fs::read(b, sb);
    let log2 = |n: i64| 63 - i64::from(n.leading_zeros());
    let mut must = |name: &str, there: i64, holds: bool| {
        if !holds {
            found.push(format!("superblock: {name} {there}"));
        }
    };
    let (bsize, fsize, frag) = (fs.bsize, fs.fsize, fs.frag);
    must("magic", i(1372), fs.ufs2 || i(1372) == 0x1_1954);
    must("bsize", bsize, (4096..=65536).contains(&bsize) && bsize & (bsize - 1) == 0);
    must("fsize", fsize, fsize >= 512 && fsize & (fsize - 1) == 0 && fsize * frag == bsize);
    must("frag", frag, (1..=8).contains(&frag));
    if bsize < 4096 || frag < 1 || fsize < 512 {
        return;
    }
    let (pointer, dinode) = if fs.ufs2 { (8, 256) } else { (4, 128) };
    must(
        "sblockloc",
        b.i64(sb + 1000),
        if fs.ufs2 { b.i64(sb + 1000) == 65536 } else { (0..=8192).contains(&b.i64(sb + 1000)) },
    );
    must("sblockactualloc", b.i64(sb + 992), [0, sb as i64].contains(&b.i64(sb + 992)));
    must("maxsymlinklen", i(1320), i(1320) == 15 * pointer);
    must("nindir", i(116), i(116) == bsize / pointer);
    must("inopb", i(120), i(120) == bsize / dinode);
    if !fs.ufs2 {
        must("old_inodefmt", i(1324), i(1324) == 2);
        must("old_interleave", i(136), (1..=i(168)).contains(&i(136)));
        must("old_npsect", i(132), (i(168)..=2 * i(168)).contains(&i(132)));
        must("old_postblformat", i(1356), i(1356) == 1);
        must("old_nspf", i(124), i(124) == fsize / 512);
        if fs.cpg == 1 {
            // What FreeBSD's newfs has made since 2002, and the only form that its fsck takes since 2022.
            must("old_rps", i(68), i(68) == 60);
            must("old_trackskew", i(140), i(140) == 0);
            must("old_cpc", i(856), i(856) == 0);
            must("old_nrpos", fs.nrpos, fs.nrpos == 1);
            must("old_spc", i(172), i(172) == fs.fpg * i(124));
            must("old_nsect", i(168), i(168) == i(172));
            must("old_npsect", i(132), i(132) == i(172));
            must("old_ncyl", i(176), i(176) == fs.ncg);
        }
    }
    must("fpg", fs.fpg, fs.fpg >= 3 * frag);
    must("ncg", fs.ncg, fs.ncg >= 1);
    must("ipg", fs.ipg, fs.ipg >= i(120) && i(120) > 0 && fs.ipg % i(120).max(1) == 0);
    let inodes = fs.ipg * fs.ncg;
    must("inodes", inodes, inodes <= (1 << 32) - i(120));
    let (ndir, nifree) = (b.i64(sb + 1008), b.i64(sb + 1024));
    must("cstotal.nifree", nifree, (0..=inodes).contains(&nifree));
    must("cstotal.ndir", ndir, (1..=inodes - nifree).contains(&ndir));
    must("sbsize", i(104), (1376..=8192).contains(&i(104)) && i(104) % 512 == 0);
    must("maxbsize", i(860), i(860) >= bsize && i(860) & (i(860) - 1) == 0 && i(860) <= 16 * bsize);
    must("bmask", i(72), i(72) == !(bsize - 1));
    must("fmask", i(76), i(76) == !(fsize - 1));
    must("qbmask", b.i64(sb + 1336), b.i64(sb + 1336) == bsize - 1);
    must("qfmask", b.i64(sb + 1344), b.i64(sb + 1344) == fsize - 1);
    must("bshift", i(80), i(80) == log2(bsize));
    must("fshift", i(84), i(84) == log2(fsize));
    must("fragshift", i(96), i(96) == log2(frag));
    must("fsbtodb", i(100), i(100) == log2(fsize / 512));
    must("old_cgoffset", fs.cgoffset, fs.cgoffset >= 0 && fs.cgoffset * !fs.cgmask <= fs.fpg);
    must("CGSIZE", fs.group_bytes(), fs.group_bytes() <= bsize);
    let up_to_blocks = |bytes: i64| up((bytes + fsize - 1) / fsize, frag);
    must("sblkno", fs.sblkno, fs.sblkno == up_to_blocks(b.i64(sb + 1000) + 8192));
    must("cblkno", fs.cblkno, fs.cblkno == fs.sblkno + up_to_blocks(8192));
    must("iblkno", fs.iblkno, fs.iblkno == fs.cblkno + frag);
    must("dblkno", i(20), i(20) == fs.iblkno + fs.ipg / (i(120) / frag).max(1));
    must("cgsize", fs.cgsize, (fsize..=bsize).contains(&fs.cgsize) && fs.cgsize % fsize == 0);
    must("metaspace", b.i64(sb + 880), (0..=fs.fpg / 2).contains(&b.i64(sb + 880)));
    must("minfree", i(60), (0..=99).contains(&i(60)));
    must("optim", i(128), (0..=1).contains(&i(128)));
    let n = bsize / pointer;
    let reach = i128::from(bsize) * i128::from(12 + n + n * n + n * n * n) - 1;
    must("maxfilesize", b.i64(sb + 1328), i128::from(b.i64(sb + 1328)) == reach);
    must("size", fs.size, fs.size >= 8 * frag && fs.size > (fs.ncg - 1) * fs.fpg && fs.size <= fs.ncg * fs.fpg);
    let cssize = i(156);
    must("cssize", cssize, cssize == up(fs.ncg * 16, fsize));
    let (group, data) = (fs.csaddr / fs.fpg.max(1), fs.csaddr - fs.start(fs.csaddr / fs.fpg.max(1)));
    must("csaddr", fs.csaddr, data >= i(20) && (fs.csaddr + cssize / fsize) / fs.fpg.max(1) == group);
    must("cgrotor", i(724), (0..fs.ncg).contains(&i(724)));
    must("clean", i64::from(b.image[sb + 209]), b.image[sb + 209] == 1);
    // FreeBSD's and NetBSD's (FS_KNOWN_FLAGS), and none that says that something is to be done.
    must("flags", i(1312), i(1312) & 5 == 0 && i(1312) & !0xfff == 0);
    must("pendingblocks", b.i64(sb + 1104), b.i64(sb + 1104) == 0);
    must("pendinginodes", i(1112), i(1112) == 0);
}

/// The fields in which a copy may not differ.
fn copy(b: &Bytes<'_>, fs: &Fs, sb: usize, c: i64, found: &mut Vec<String>) {
    let at = fs.byte(fs.start(c) + fs.sblkno);
    let same =
        [8, 12, 16, 20, 24, 28, 44, 48, 52, 56, 72, 76, 80, 84, 96, 100, 104, 116, 120, 156, 180, 184, 188, 1372];
    for offset in same {
        if b.i32(at + offset) != b.i32(sb + offset) {
            found.push(format!("VALUES IN SUPER BLOCK DISAGREE WITH THOSE IN ALTERNATE of group {c}: byte {offset}"));
        }
    }
}

fn group(b: &Bytes<'_>, fs: &Fs, c: i64, total: &mut [i64; 4], found: &mut Vec<String>) {
    let at = fs.byte(fs.start(c) + fs.cblkno);
    let ndblk = fs.ndblk(c);
    // A header as it should be; `None` where anything in bounds is right.
    let (bto, bo, iused) =
        if fs.ufs2 { (0, 0, 168) } else { (168, 168 + 4 * fs.cpg, 168 + 4 * fs.cpg + 2 * fs.cpg * fs.nrpos) };
    let free = iused + up(fs.ipg, 8) / 8;
    let free_end = free + up(fs.fpg, 8) / 8;
    let (mut sum, mut clusters, mut end) = (0, 0, free_end);
    if fs.contigsumsize > 0 {
        sum = up(free_end - 4, 4);
        clusters = sum + 4 * (fs.contigsumsize + 1);
        end = clusters + up(fs.fpg / fs.frag, 8) / 8;
    }
    let mut must = |name: &str, there: i64, expected: i64| {
        if there != expected {
            found.push(format!("cylinder group {c}: {name} is {there}, should be {expected}"));
        }
    };
    let i = |offset: usize| b.i32(at + offset);
    let last = c == fs.ncg - 1;
    let ncyl = match (fs.ufs2, last) {
        (true, _) => 0,
        (false, false) => fs.cpg,
        (false, true) => (ndblk + fs.fpg / fs.cpg - 1) / (fs.fpg / fs.cpg),
    };
    must("firstfield", i(0), 0);
    must("magic", i(4), 0x9_0255);
    must("cgx", i(12), c);
    must("old_ncyl", b.i16(at + 16), ncyl);
    must("old_niblk", b.i16(at + 18), if fs.ufs2 { 0 } else { i64::from(fs.ipg as i16) });
    must("ndblk", i(20), ndblk);
    must("old_btotoff", i(84), bto);
    must("old_boff", i(88), bo);
    must("iusedoff", i(92), iused);
    must("freeoff", i(96), free);
    must("nextfreeoff", i(100), end);
    must("clustersumoff", i(104), sum);
    must("clusteroff", i(108), clusters);
    must("nclusterblks", i(112), if fs.contigsumsize > 0 { ndblk / fs.frag } else { 0 });
    must("niblk", i(116), if fs.ufs2 { fs.ipg } else { 0 });
    for (name, offset, most) in [("rotor", 40, ndblk), ("frotor", 44, ndblk), ("irotor", 48, fs.ipg)] {
        must(name, i(offset), i(offset).clamp(0, most - 1));
    }
    let inited = i(120);
    must("initediblk", inited, if fs.ufs2 { inited.clamp(0, fs.ipg) } else { 0 });
    must("unrefs", i(124), 0);
    for offset in (128..132).chain(144..168) {
        must("a spare byte", b.image[at + offset].into(), 0);
    }
    if !fs.group_hash {
        must("ckhash", i(132), 0);
    }
    let mut expected = vec![0_u8; fs.bsize as usize];
    let cs = maps(b, fs, c, at, &mut expected, (iused, free, sum, clusters));
    for (n, name) in ["ndir", "nbfree", "nifree", "nffree"].iter().enumerate() {
        must(name, i(24 + 4 * n), cs[n]);
        must("summary", b.i32(fs.byte(fs.csaddr) + 16 * c as usize + 4 * n), cs[n]);
        total[n] += cs[n];
    }
    let mut frsum = [0; 8];
    for block in 0..(ndblk + fs.frag - 1) / fs.frag {
        let in_block = |j: i64| block * fs.frag + j < ndblk && b.bit(at + free as usize, block * fs.frag + j);
        let count = (0..fs.frag).filter(|j| in_block(*j)).count() as i64;
        let mut run = 0;
        for j in (0..=fs.frag).filter(|_| count < fs.frag) {
            if j < fs.frag && in_block(j) {
                run += 1;
            } else if run > 0 {
                frsum[run] += 1;
                run = 0;
            }
        }
    }
    for (n, expected) in frsum.into_iter().enumerate() {
        must("frsum", i(52 + 4 * n), expected);
    }
    for offset in iused..end {
        let there = b.image[at + offset as usize];
        must(&format!("map byte {offset}"), there.into(), expected[offset as usize].into());
    }
}

/// The maps of a group as they should be, given which fragments are free, into `out`; the counts of what is in it.
fn maps(
    b: &Bytes<'_>,
    fs: &Fs,
    c: i64,
    at: usize,
    out: &mut [u8],
    (iused, free, sum, clusters): (i64, i64, i64, i64),
) -> [i64; 4] {
    let mut set = |map: i64, n: i64| out[map as usize + n as usize / 8] |= 1 << (n % 8);
    let ndblk = fs.ndblk(c);
    let (mut ndir, mut nifree, mut nbfree, mut nffree) = (0, fs.ipg, 0, 0);
    let width = if fs.ufs2 { 256 } else { 128 };
    let known = if fs.ufs2 { b.i32(at + 120).clamp(0, fs.ipg) } else { fs.ipg };
    for n in 0..fs.ipg {
        let mode = b.u16(fs.byte(fs.start(c) + fs.iblkno) + n as usize * width) & 0o170_000;
        if c * fs.ipg + n < 2 || n < known && mode != 0 {
            set(iused, n);
            nifree -= 1;
            ndir += i64::from(mode == 0o040_000);
        }
    }
    let mut run = 0;
    let mut sums = vec![0_u32; fs.contigsumsize as usize + 1];
    for block in 0..=(ndblk + fs.frag - 1) / fs.frag {
        let first = block * fs.frag;
        let in_group: Vec<i64> =
            (first..first + fs.frag).filter(|n| *n < ndblk && b.bit(at + free as usize, *n)).collect();
        in_group.iter().for_each(|n| set(free, *n));
        if in_group.len() as i64 == fs.frag {
            nbfree += 1;
            run += 1;
            if fs.contigsumsize > 0 {
                set(clusters, block);
            }
        } else {
            nffree += in_group.len() as i64;
            if run > 0 && fs.contigsumsize > 0 {
                sums[run.min(fs.contigsumsize as usize)] += 1;
            }
            run = 0;
        }
    }
    for (n, count) in sums.iter().enumerate().skip(1).filter(|_| fs.contigsumsize > 0) {
        let bytes = if b.big { count.to_be_bytes() } else { count.to_le_bytes() };
        out[sum as usize + 4 * n..sum as usize + 4 * n + 4].copy_from_slice(&bytes);
    }
    [ndir, nbfree, nifree, nffree]
}
