//! The same for inodes, blocks and names: passes 1 to 4 of NetBSD's and FreeBSD's fsck_ffs (`checkinode`, `pass1check`,
//! `ckinode`, `dircheck`, `pass2check`, `pass4`), worked out from the bytes. Stricter than they are where a kernel
//! would be confused all the same: every pointer beyond a file's end, and blocks across block boundaries.

use super::{Bytes, Fs, up};
use std::collections::{BTreeMap, BTreeSet};

const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;
const REGULAR: u32 = 0o100_000;

/// A file system's inodes.
pub struct Files<'a> {
    b: &'a Bytes<'a>,
    fs: Fs,
    nindir: i64,
    maxsymlinklen: i64,
    maxfilesize: i64,
    dblkno: i64,
    cssize: i64,
}

#[derive(Clone, Debug)]
pub struct Inode {
    pub ino: i64,
    /// Its bytes in the image.
    pub at: usize,
    pub width: usize,
    pub mode: u32,
    pub nlink: i64,
    pub size: i64,
    blocks: i64,
    db: Vec<i64>,
    ib: Vec<i64>,
    extsize: i64,
    extb: Vec<i64>,
    flags: i64,
}

/// A block of a file, or an indirect one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub addr: i64,
    pub frags: i64,
    /// Which block of the file; `None` for indirect blocks and extended attributes.
    pub lbn: Option<i64>,
}

/// What an inode leads to.
#[derive(Debug, Default)]
pub struct Held {
    pub pieces: Vec<Piece>,
    pub problems: Vec<String>,
}

impl Inode {
    pub fn kind(&self) -> u32 {
        self.mode & 0o170_000
    }
    /// No block: a hole, or in a snapshot (`SF_SNAPSHOT`) one not copied (`BLK_NOCOPY`, `BLK_SNAP`).
    fn has_none(&self, pointer: i64) -> bool {
        pointer == 0 || self.flags & 0x20_0000 != 0 && (1..=2).contains(&pointer)
    }
    pub fn is_regular(&self) -> bool {
        self.kind() == REGULAR
    }
}

impl<'a> Files<'a> {
    /// Of a file system whose superblock is at `sb`, with sound sizes.
    pub fn new(b: &'a Bytes<'a>, sb: usize) -> Files<'a> {
        let fs = Fs::read(b, sb);
        Files {
            b,
            nindir: fs.bsize / if fs.ufs2 { 8 } else { 4 },
            maxsymlinklen: b.i32(sb + 1320),
            maxfilesize: b.i64(sb + 1328),
            dblkno: b.i32(sb + 20),
            cssize: b.i32(sb + 156),
            fs,
        }
    }

    /// The same places in another image.
    pub fn of<'b>(&self, b: &'b Bytes<'b>) -> Files<'b> {
        let &Files { nindir, maxsymlinklen, maxfilesize, dblkno, cssize, ref fs, .. } = self;
        Files { b, fs: fs.clone(), nindir, maxsymlinklen, maxfilesize, dblkno, cssize }
    }

    /// Inodes of a group that have ever been written.
    fn known(&self, c: i64) -> i64 {
        let at = self.fs.byte(self.fs.start(c) + self.fs.cblkno);
        if self.fs.ufs2 { self.b.i32(at + 120).clamp(0, self.fs.ipg) } else { self.fs.ipg }
    }

    /// All inodes that can be in use.
    pub fn all(&self) -> impl Iterator<Item = Inode> + '_ {
        let numbers = (0..self.fs.ncg).flat_map(move |c| (0..self.known(c)).map(move |n| c * self.fs.ipg + n));
        numbers.filter(|ino| *ino >= 2).map(|ino| self.inode(ino))
    }

    pub fn inode(&self, ino: i64) -> Inode {
        let (c, n) = (ino / self.fs.ipg, ino % self.fs.ipg);
        let width = if self.fs.ufs2 { 256 } else { 128 };
        let at = self.fs.byte(self.fs.start(c) + self.fs.iblkno) + n as usize * width;
        let b = self.b;
        let (mode, nlink) = (b.u16(at), b.i16(at + 2));
        if self.fs.ufs2 {
            let p = |from: usize, n: usize| (0..n).map(|i| b.i64(at + from + 8 * i)).collect::<Vec<i64>>();
            let (size, blocks, extsize) = (b.i64(at + 16), b.i64(at + 24), b.i32(at + 92));
            let (db, ib, extb) = (p(112, 12), p(208, 3), p(96, 2));
            let flags = b.i32(at + 88);
            return Inode { ino, at, width, mode, nlink, size, blocks, db, ib, extsize, extb, flags };
        }
        let p = |from: usize, n: usize| (0..n).map(|i| b.i32(at + from + 4 * i)).collect::<Vec<i64>>();
        let (size, blocks) = (b.i64(at + 8), b.i32(at + 104));
        let (db, ib, flags) = (p(40, 12), p(88, 3), b.i32(at + 100));
        Inode { ino, at, width, mode, nlink, size, blocks, db, ib, extsize: 0, extb: vec![0; 2], flags }
    }

    /// Whether a file's block can be there (`chkrange`).
    fn outside(&self, addr: i64, frags: i64) -> bool {
        let fs = &self.fs;
        if addr <= 0 || addr >= fs.size || addr + frags > fs.size || addr % fs.frag + frags > fs.frag {
            return true;
        }
        let c = addr / fs.fpg;
        let (sblock, data) = (fs.start(c) + fs.sblkno, fs.start(c) + self.dblkno);
        let summaries = if fs.csaddr / fs.fpg == c { fs.csaddr + self.cssize / fs.fsize } else { 0 };
        let first = if c == 0 { 0 } else { sblock };
        addr < data && addr + frags > first || addr < summaries && addr + frags > fs.csaddr
    }

    fn is_short(&self, inode: &Inode) -> bool {
        inode.kind() == LINK && (inode.size < self.maxsymlinklen || self.maxsymlinklen == 0 && inode.blocks == 0)
    }

    /// Follows the pointers of an inode in use, and says what is wrong with it by itself.
    pub fn held(&self, inode: &Inode) -> Held {
        let fs = &self.fs;
        let mut held = Held::default();
        let kind = inode.kind();
        let bad = |held: &mut Held, what: String| held.problems.push(format!("inode {}: {what}", inode.ino));
        let special = [0o010_000, 0o020_000, 0o060_000, 0o140_000].contains(&kind);
        if !special && ![DIRECTORY, LINK, REGULAR].contains(&kind) {
            bad(&mut held, format!("UNKNOWN FILE TYPE 0{:o}", inode.mode));
            return held;
        }
        if inode.size < 0 || inode.size > self.maxfilesize || kind == DIRECTORY && inode.size > 0x7fff_ffff {
            bad(&mut held, format!("bad size {}", inode.size));
            return held;
        }
        if special && inode.size != 0 {
            bad(&mut held, format!("bad special-file size {}", inode.size));
        }
        let device = kind == 0o020_000 || kind == 0o060_000;
        if device && inode.db[0] == -1 {
            bad(&mut held, "bad special-file rdev NODEV".into());
        }
        if kind == DIRECTORY && (inode.size == 0 || inode.size % 512 != 0) {
            bad(&mut held, format!("directory of length {}", inode.size));
        }
        if self.is_short(inode) || special {
            let words = if special {
                i64::from(device)
            } else {
                (inode.size + 7 - 4 * i64::from(!fs.ufs2)) / if fs.ufs2 { 8 } else { 4 }
            };
            for (n, pointer) in inode.db.iter().chain(&inode.ib).enumerate() {
                if n as i64 >= words && *pointer != 0 {
                    bad(&mut held, format!("bad address {pointer} in place {n}"));
                }
            }
        } else {
            self.pointers(inode, &mut held);
        }
        if inode.extsize == 0 && inode.extb != [0, 0] {
            bad(&mut held, "extended attributes without a size".into());
        }
        for (n, pointer) in inode.extb.iter().enumerate().filter(|(_, pointer)| **pointer != 0) {
            let rest = (inode.extsize - n as i64 * fs.bsize).clamp(0, fs.bsize);
            let frags = if rest == 0 { fs.frag } else { up(rest, fs.fsize) / fs.fsize };
            self.piece(inode, *pointer, frags, None, &mut held);
        }
        let frags: i64 = held.pieces.iter().map(|piece| piece.frags).sum();
        if frags * (fs.fsize / 512) != inode.blocks {
            bad(&mut held, format!("INCORRECT BLOCK COUNT {} ({})", inode.blocks, frags * (fs.fsize / 512)));
        }
        held
    }

    fn piece(&self, inode: &Inode, addr: i64, frags: i64, lbn: Option<i64>, held: &mut Held) -> bool {
        let outside = self.outside(addr, frags);
        if outside {
            held.problems.push(format!("inode {}: {addr} BAD", inode.ino));
        } else {
            held.pieces.push(Piece { addr, frags, lbn });
        }
        !outside
    }

    fn pointers(&self, inode: &Inode, held: &mut Held) {
        let fs = &self.fs;
        let end = (inode.size + fs.bsize - 1) / fs.bsize;
        for (lbn, pointer) in (0..).zip(&inode.db).filter(|(_, pointer)| !inode.has_none(**pointer)) {
            if lbn >= end {
                held.problems.push(format!("inode {}: bad direct addr[{lbn}] {pointer}", inode.ino));
                continue;
            }
            let rest = (inode.size - lbn * fs.bsize).min(fs.bsize);
            self.piece(inode, *pointer, up(rest, fs.fsize) / fs.fsize, Some(lbn), held);
        }
        let (mut first, mut reach) = (12, self.nindir);
        for (level, pointer) in inode.ib.iter().enumerate() {
            self.below(inode, *pointer, first, reach, level, end, held);
            first += reach;
            reach *= self.nindir;
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn below(&self, inode: &Inode, pointer: i64, first: i64, reach: i64, level: usize, end: i64, held: &mut Held) {
        if pointer == 0 {
            return;
        }
        if first >= end {
            held.problems.push(format!("inode {}: bad indirect addr {pointer} for block {first}", inode.ino));
            return;
        }
        // More than there is: a circle.
        if held.pieces.len() as i64 > self.fs.size || !self.piece(inode, pointer, self.fs.frag, None, held) {
            return;
        }
        let span = reach / self.nindir;
        for i in 0..self.nindir {
            let at = self.fs.byte(pointer) + i as usize * if self.fs.ufs2 { 8 } else { 4 };
            let child = if self.fs.ufs2 { self.b.i64(at) } else { self.b.i32(at) };
            if child == 0 || level == 0 && inode.has_none(child) {
                continue;
            }
            let lbn = first + i * span;
            if lbn >= end {
                held.problems.push(format!("inode {}: PARTIALLY TRUNCATED, {child} for block {lbn}", inode.ino));
            } else if level == 0 {
                self.piece(inode, child, self.fs.frag, Some(lbn), held);
            } else {
                self.below(inode, child, lbn, span, level - 1, end, held);
            }
        }
    }

    /// What a file holds, holes as zeros; of a short link, its target.
    pub fn content(&self, inode: &Inode, held: &Held) -> Vec<u8> {
        if self.is_short(inode) {
            let from = inode.at + if self.fs.ufs2 { 112 } else { 40 };
            return self.b.image[from..from + inode.size as usize].to_vec();
        }
        let mut content = vec![0; inode.size as usize];
        for piece in &held.pieces {
            let Some(lbn) = piece.lbn else { continue };
            let (at, from) = ((lbn * self.fs.bsize) as usize, self.fs.byte(piece.addr));
            let n = ((piece.frags * self.fs.fsize) as usize).min(content.len() - at);
            content[at..at + n].copy_from_slice(&self.b.image[from..from + n]);
        }
        content
    }

    /// Blocks that a file has by its size.
    pub fn blocks_of(&self, inode: &Inode) -> i64 {
        (inode.size + self.fs.bsize - 1) / self.fs.bsize
    }

    /// Bytes of the image of a piece.
    pub fn bytes_of(&self, piece: &Piece) -> std::ops::Range<usize> {
        let at = self.fs.byte(piece.addr);
        at..at + (piece.frags * self.fs.fsize) as usize
    }

    /// Entries of a directory: inode, type, name; what is wrong with it by itself.
    pub fn entries(&self, inode: &Inode, held: &Held, found: &mut Vec<String>) -> Vec<(i64, u8, Vec<u8>)> {
        let dir = inode.ino;
        let content = self.content(inode, held);
        let blocks = held.pieces.iter().filter(|piece| piece.lbn.is_some()).count() as i64;
        if blocks != (inode.size + self.fs.bsize - 1) / self.fs.bsize {
            found.push(format!("directory {dir} with a hole"));
        }
        let mut entries = Vec::new();
        for (n, chunk) in content.chunks(512).enumerate() {
            let b = Bytes { image: chunk, big: self.b.big };
            let mut at = 0;
            while at < chunk.len() {
                let (ino, reclen) = (b.i32(at) & 0xffff_ffff, b.u16(at + 4) as usize);
                let (kind, namlen) = (chunk[at + 6], usize::from(chunk[at + 7]));
                let needed = (8 + namlen + 4) / 4 * 4;
                let fits = reclen >= 12 && reclen % 4 == 0 && at + reclen <= chunk.len();
                if !fits || ino != 0 && (needed > reclen || namlen == 0 || kind > 15) {
                    found.push(format!("directory {dir}, chunk {n}, {at}: DIRECTORY CORRUPTED"));
                    break;
                }
                if ino != 0 {
                    let name = &chunk[at + 8..at + 8 + namlen];
                    if name.contains(&0) || name.contains(&b'/') || chunk[at + 8 + namlen] != 0 {
                        found.push(format!("directory {dir}, chunk {n}, {at}: bad name {name:?}"));
                    }
                    entries.push((ino, kind, name.to_vec()));
                }
                at += reclen;
            }
        }
        entries
    }
}

/// What the passes would complain about.
pub fn complaints(b: &Bytes<'_>, sb: usize, found: &mut Vec<String>) {
    let files = Files::new(b, sb);
    let fs = &files.fs;
    let mut used = vec![false; fs.size as usize];
    for c in 0..fs.ncg {
        let start = if c == 0 { 0 } else { fs.start(c) + fs.sblkno };
        used[start as usize..(fs.start(c) + files.dblkno) as usize].fill(true);
    }
    used[fs.csaddr as usize..(fs.csaddr + files.cssize / fs.fsize) as usize].fill(true);
    let mut inodes: BTreeMap<i64, (Inode, Held)> = BTreeMap::new();
    for inode in files.all() {
        if inode.mode == 0 {
            let pointers = inode.db.iter().chain(&inode.ib).any(|pointer| *pointer != 0);
            if pointers || inode.size != 0 {
                found.push(format!("inode {}: PARTIALLY ALLOCATED", inode.ino));
            }
            continue;
        }
        let mut held = files.held(&inode);
        for piece in &held.pieces {
            let place = &mut used[piece.addr as usize..(piece.addr + piece.frags) as usize];
            if place.contains(&true) {
                found.push(format!("inode {}: {} DUP", inode.ino, piece.addr));
            }
            place.fill(true);
        }
        found.append(&mut held.problems);
        inodes.insert(inode.ino, (inode, held));
    }
    for c in 0..fs.ncg {
        let map = fs.byte(fs.start(c) + fs.cblkno);
        let map = map + b.i32(map + 96) as usize;
        for n in 0..fs.ndblk(c) {
            if b.bit(map, n) == used[(c * fs.fpg + n) as usize] {
                found.push(format!("BLK(S) MISSING IN BIT MAPS: group {c}, fragment {n}"));
            }
        }
    }
    names(&files, &inodes, found);
}

fn names(files: &Files<'_>, inodes: &BTreeMap<i64, (Inode, Held)>, found: &mut Vec<String>) {
    let mut links: BTreeMap<i64, i64> = BTreeMap::new();
    // Of each directory: what its `..` leads to; who names it.
    let (mut dotdot, mut named): (BTreeMap<i64, i64>, BTreeMap<i64, i64>) = Default::default();
    for (inode, held) in inodes.values() {
        if inode.kind() == LINK {
            let target = files.content(inode, held);
            if target.is_empty() || target.len() > 1023 || target.contains(&0) {
                found.push(format!("inode {}: a link to {} bytes, zeros among them or none", inode.ino, target.len()));
            }
        }
        if inode.kind() != DIRECTORY {
            continue;
        }
        let dir = inode.ino;
        let mut seen = BTreeSet::new();
        for (n, (ino, kind, name)) in files.entries(inode, held, found).into_iter().enumerate() {
            if (ino, kind) == (1, 0o16) {
                continue;
            }
            let dot = name == b"." || name == b"..";
            if dot != (n < 2) || n < 2 && name != [&b"."[..], b".."][n] {
                found.push(format!("directory {dir}: entry {n} is {name:?}"));
            }
            if !seen.insert(name.clone()) {
                found.push(format!("directory {dir}: {name:?} twice"));
            }
            let Some((target, _)) = inodes.get(&ino) else {
                found.push(format!("directory {dir}: {name:?} UNALLOCATED {ino}"));
                continue;
            };
            if i64::from(kind) != i64::from(target.kind() >> 12) {
                found.push(format!("directory {dir}: {name:?} BAD TYPE VALUE {kind}"));
            }
            *links.entry(ino).or_default() += 1;
            if name == b"." && ino != dir {
                found.push(format!("directory {dir}: BAD INODE NUMBER FOR '.'"));
            } else if name == b".." {
                dotdot.insert(dir, ino);
            } else if name != b"." && target.kind() == DIRECTORY && named.insert(ino, dir).is_some() || !dot && ino == 2
            {
                found.push(format!("directory {dir}: {name:?} IS AN EXTRANEOUS HARD LINK TO A DIRECTORY"));
            }
        }
    }
    for (inode, _) in inodes.values() {
        let ino = inode.ino;
        if links.get(&ino).copied().unwrap_or(0) != inode.nlink {
            found.push(format!("inode {ino}: LINK COUNT {} SHOULD BE {:?}", inode.nlink, links.get(&ino)));
        }
        if inode.kind() == DIRECTORY {
            let parent = if ino == 2 { Some(&2) } else { named.get(&ino) };
            if parent != dotdot.get(&ino) || parent.is_none() {
                found.push(format!("directory {ino}: BAD '..' {:?}, named by {parent:?}", dotdot.get(&ino)));
            }
            // From the root, and not in a circle.
            let mut at = ino;
            let reached = (0..inodes.len()).any(|_| {
                at = named.get(&at).copied().unwrap_or(if at == 2 { 2 } else { 0 });
                at == 2
            });
            if !reached {
                found.push(format!("directory {ino}: UNREF DIR"));
            }
        } else if !links.contains_key(&ino) {
            found.push(format!("inode {ino}: UNREF FILE"));
        }
    }
    if inodes.get(&2).is_none_or(|(root, _)| root.kind() != DIRECTORY) {
        found.push("ROOT INODE NOT DIRECTORY".into());
    }
}

impl Inode {
    /// Mode, owners, size, times, flags and generation.
    pub fn attributes(&self, files: &Files<'_>) -> Vec<u8> {
        let ranges: &[std::ops::Range<usize>] =
            if self.width == 256 { &[0..2, 4..12, 16..24, 32..96] } else { &[0..2, 8..40, 100..104, 108..120] };
        let raw = &files.b.image[self.at..self.at + self.width];
        ranges.iter().flat_map(|range| raw[range.clone()].to_vec()).collect()
    }
}
