//! A repair never makes things worse. Images are damaged by class, by seed; of each must hold after its repair:
//!
//! * (a) A file whose inode, indirect blocks and data the damage did not touch has the same bytes and attributes; and
//!   the same name if the directories above it were not touched either.
//! * (b) The image is clean for the independent check of its bytes (`common/bsd.rs`).
//! * (c) Everything that has a name can be read and copied out.
//! * (d) A repair of the repair changes nothing.
//! * (e) What BSD's rule keeps is kept: a file with a link whose size, block count and pointers agree in the damaged
//!   image, and which shares no block with another such file, has what it had.
//!
//! What was touched, and what agrees, is worked out from the bytes by the same independent parser. 2,000 images; a
//! failing seed is printed. `FSAGE_FFS_INVARIANTS=FROM..TO` runs other seeds.

use crate::bsd_fsck;
use crate::bsd_fsck::Bytes;
use crate::bsd_fsck::files::{Files, Held, Inode, Piece};
use crate::lab;
use ffs::format::ROOT_INO;
use ffs::mkfs::{GroupSize, MkfsOptions, mkfs};
use ffs::{Endian, FileType, Image, MemoryStore, Search, Version, fsck};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// An image to damage, and what is in it.
struct Base {
    name: String,
    store: MemoryStore,
    /// The same some calls later: a killed kernel leaves a mixture.
    later: MemoryStore,
    big: bool,
    sb_at: usize,
    fsize: usize,
    bsize: usize,
    files: BTreeMap<i64, File>,
    /// Places of structures, by class.
    inodes: Vec<Range<usize>>,
    groups: Vec<Range<usize>>,
    directories: Vec<Range<usize>>,
    indirects: Vec<Range<usize>>,
    data: Vec<Range<usize>>,
    superblocks: Vec<Range<usize>>,
}

/// A file as it was.
struct File {
    inode: Inode,
    /// Everything that it is made of.
    places: Vec<Range<usize>>,
    content: Vec<u8>,
    /// Its names, each with the directories on its way.
    names: BTreeMap<Vec<u8>, Vec<i64>>,
}

fn bases() -> Vec<Base> {
    let group = |options: MkfsOptions| MkfsOptions { group: Some(GroupSize::Fragments(1024)), ..options };
    let base = |version, endian, bsize, fsize, kib: u64| {
        let options = MkfsOptions { bsize, fsize, endian, density: Some(4096), ..MkfsOptions::new(version, kib << 10) };
        if fsize < 1024 { group(options) } else { options }
    };
    let cases = [
        (base(Version::Ufs1, Endian::Little, 4096, 512, 1800), "original,switch,bestfit,spread,conventional", false),
        (base(Version::Ufs2, Endian::Little, 4096, 512, 2400), "realloc,metaspace,smartfrags,dirpref,noorder", false),
        (base(Version::Ufs1, Endian::Big, 4096, 1024, 1600), "realloc,noswitch,smartfrags,dirpref,noorder", true),
        (base(Version::Ufs2, Endian::Big, 8192, 1024, 2400), "realloc,switch,bestfit,spread,conventional", false),
        (base(Version::Ufs1, Endian::Little, 8192, 8192, 2400), "realloc,noswitch,bestfit,dirpref,noorder", false),
    ];
    (1..).zip(cases).map(|(seed, (options, words, fill))| Base::new(&options, words, fill, seed)).collect()
}

impl Base {
    fn new(options: &MkfsOptions, words: &str, fill: bool, seed: u64) -> Base {
        let mut store = MemoryStore(vec![0; options.size_bytes as usize]);
        mkfs(&mut store, options).unwrap();
        let store = lab::age(store, words, 320, fill, seed).store;
        let later = lab::age(store.clone(), words, 40, false, seed + 100).store;
        let image = Image::open(store.clone(), Search::Standard).unwrap();
        let g = *image.geometry();
        let (big, sb_at) = (g.endian() == Endian::Big, image.superblock_at() as usize);
        assert_eq!(bsd_fsck::complaints(&store.0, big, sb_at), Vec::<String>::new(), "{words}");
        let mut base = Base {
            name: format!("{:?} {:?} {}/{} {words}", options.version, options.endian, options.bsize, options.fsize),
            big,
            sb_at,
            fsize: g.fsize as usize,
            bsize: g.bsize as usize,
            files: BTreeMap::new(),
            inodes: Vec::new(),
            groups: Vec::new(),
            directories: Vec::new(),
            indirects: Vec::new(),
            data: Vec::new(),
            superblocks: Vec::new(),
            later,
            store: store.clone(),
        };
        base.superblocks.push(sb_at..sb_at + 1376);
        for c in (0..g.ncg).map(ffs::GroupNo) {
            let at = g.byte_of(g.group_block(c)) as usize;
            base.groups.push(at..at + g.cgsize as usize);
            let at = image.superblock().copy_at(&g, c) as usize;
            base.superblocks.push(at..at + 1376);
        }
        base.inventory();
        base
    }

    fn inventory(&mut self) {
        let store = self.store.clone();
        let bytes = Bytes { image: &store.0, big: self.big };
        let raw = Files::new(&bytes, self.sb_at);
        for inode in raw.all().filter(|inode| inode.mode != 0) {
            let held = raw.held(&inode);
            let own = inode.at..inode.at + inode.width;
            self.inodes.push(own.clone());
            let mut places = Vec::from([own]);
            for piece in &held.pieces {
                let place = raw.bytes_of(piece);
                places.push(place.clone());
                match piece.lbn {
                    None => self.indirects.push(place),
                    Some(_) if inode.kind() == 0o040_000 => self.directories.push(place),
                    Some(_) => self.data.push(place),
                }
            }
            let content = raw.content(&inode, &held);
            self.files.insert(inode.ino, File { inode, places, content, names: BTreeMap::new() });
        }
        let mut below = vec![(2_i64, b"".to_vec(), vec![2_i64])];
        while let Some((dir, path, way)) = below.pop() {
            let inode = raw.inode(dir);
            for (ino, kind, name) in raw.entries(&inode, &raw.held(&inode), &mut Vec::new()) {
                if name == b"." || name == b".." {
                    continue;
                }
                let path = [&path[..], b"/", &name].concat();
                self.files.get_mut(&ino).unwrap().names.insert(path.clone(), way.clone());
                if kind == 4 {
                    below.push((ino, path, [&way[..], &[ino]].concat()));
                }
            }
        }
        let counts = (self.files.len(), self.indirects.len(), self.directories.len());
        assert!(counts.0 > 20 && counts.1 > 0 && counts.2 > 1, "{}: {counts:?}", self.name);
    }

    fn is_touched(&self, file: &File, damaged: &[u8]) -> bool {
        file.places.iter().any(|place| self.store.0[place.clone()] != damaged[place.clone()])
    }
}

/// Damage under way.
struct Damage<'a> {
    base: &'a Base,
    bytes: Vec<u8>,
    random: Xoshiro256PlusPlus,
}

const CLASSES: u64 = 13;

impl Damage<'_> {
    fn below(&mut self, n: usize) -> usize {
        (self.random.next_u64() % n.max(1) as u64) as usize
    }

    fn one<'b>(&mut self, of: &'b [Range<usize>]) -> &'b Range<usize> {
        &of[self.below(of.len())]
    }

    fn number(&mut self, at: usize, width: usize, value: u64) {
        let mut raw = value.to_le_bytes()[..width].to_vec();
        if self.base.big {
            raw.reverse();
        }
        self.bytes[at..at + width].copy_from_slice(&raw);
    }

    fn ufs2(&self) -> bool {
        self.base.inodes[0].len() == 256
    }

    /// A fragment that somebody's stray pointer may lead to.
    fn stray(&mut self) -> u64 {
        let (base, end) = (self.base, self.base.store.0.len() / self.base.fsize);
        let frag = |place: &Range<usize>| (place.start / base.fsize) as u64;
        match self.below(9) {
            0 => frag(self.one(&base.data)),
            1 | 2 => frag(self.one(&base.indirects)),
            3 => frag(self.one(&base.directories)),
            4 => frag(self.one(&base.inodes)),
            5 => frag(self.one(&base.groups)),
            6 => (end + self.below(3)) as u64,
            7 => [u64::MAX, 1, 2, 0x7fff_ffff, u64::MAX - 7][self.below(5)],
            _ => self.below(end) as u64,
        }
    }

    /// The byte of a pointer in an inode: 0 to 11 direct, 12 to 14 indirect.
    fn pointer_at(&self, inode: usize, n: usize) -> (usize, usize) {
        if self.ufs2() { (inode + 112 + 8 * n, 8) } else { (inode + 40 + 4 * n, 4) }
    }

    fn edge(&mut self) -> u64 {
        let any = self.random.next_u64();
        let stray = self.stray();
        let values = [
            0,
            1,
            2,
            7,
            12,
            0x7fff,
            0x8000,
            0xffff,
            u64::MAX,
            1 << 31,
            (1 << 31) - 1,
            512,
            4096,
            8192,
            any,
            any % 5000,
            stray,
        ];
        values[self.below(values.len())]
    }

    fn do_one(&mut self, class: u64) {
        let base = self.base;
        match class {
            // Any field of an inode.
            0 => {
                let inode = self.one(&base.inodes).start;
                let fields: &[(usize, usize)] = if self.ufs2() {
                    &[
                        (0, 2),
                        (2, 2),
                        (16, 8),
                        (24, 8),
                        (92, 4),
                        (96, 8),
                        (104, 8),
                        (112, 8),
                        (208, 8),
                        (216, 8),
                        (224, 8),
                        (4, 4),
                    ]
                } else {
                    &[(0, 2), (2, 2), (8, 8), (8, 4), (104, 4), (40, 4), (88, 4), (92, 4), (96, 4), (112, 4), (100, 4)]
                };
                let (at, width) = fields[self.below(fields.len())];
                let value = self.edge();
                self.number(inode + at, width, value);
            }
            // Stray direct and indirect pointers, cycles among them.
            1 | 2 => {
                let inode = self.one(&base.inodes).start;
                let n = if class == 1 { self.below(12) } else { 12 + self.below(3) };
                let (at, width) = self.pointer_at(inode, n);
                let value = self.stray();
                self.number(at, width, value);
            }
            // In an indirect block, to itself among others.
            3 => {
                let block = self.one(&base.indirects).clone();
                let width = if self.ufs2() { 8 } else { 4 };
                let most = [4, 40, base.bsize / width][self.below(3)];
                let at = block.start + width * self.below(most);
                let value = if self.below(4) == 0 { (block.start / base.fsize) as u64 } else { self.stray() };
                self.number(at, width, value);
            }
            // A structure zeroed, or all ones, wholly or from some place on.
            4 => {
                let kinds =
                    [&base.indirects, &base.directories, &base.inodes, &base.groups, &base.superblocks, &base.data];
                let which = self.below(kinds.len());
                let place = self.one(kinds[which]).clone();
                let from =
                    if self.below(2) == 0 { place.start } else { place.start + self.below(place.len()) / 512 * 512 };
                let value = [0, 0, 0xff][self.below(3)];
                self.bytes[from..place.end].fill(value);
            }
            // Two blocks swapped.
            5 => {
                let kinds = [&base.indirects, &base.directories, &base.data, &base.groups];
                let (a, b) = (self.below(4), self.below(3));
                let (a, b) = (self.one(kinds[a]).start, self.one(kinds[b]).start);
                let n = base.fsize.min(self.bytes.len() - a.max(b));
                for i in 0..n {
                    self.bytes.swap(a + i, b + i);
                }
            }
            // Torn: some sectors of a structure as they are later.
            6 => {
                let kinds = [&base.groups, &base.inodes, &base.directories, &base.indirects];
                let which = self.below(kinds.len());
                let place = self.one(kinds[which]).clone();
                for at in (place.start / 512 * 512..place.end).step_by(512) {
                    if self.below(2) == 0 {
                        self.bytes[at..at + 512].copy_from_slice(&base.later.0[at..at + 512]);
                    }
                }
            }
            // A killed kernel: some of what changes is written, in any order, torn here and there.
            7 => {
                let share = 1 + self.below(9);
                for at in (0..self.bytes.len()).step_by(base.fsize) {
                    let end = (at + base.fsize).min(self.bytes.len());
                    if base.store.0[at..end] != base.later.0[at..end] && self.below(10) < share {
                        let end = if self.below(16) == 0 { (at + 512).min(end) } else { end };
                        self.bytes[at..end].copy_from_slice(&base.later.0[at..end]);
                    }
                }
            }
            // Fields of entries.
            8 | 9 => {
                let block = self.one(&base.directories).clone();
                let mut entries = Vec::new();
                let mut at = block.start;
                while at + 8 < block.end {
                    let raw = [self.bytes[at + 4], self.bytes[at + 5]];
                    let reclen = if base.big { u16::from_be_bytes(raw) } else { u16::from_le_bytes(raw) };
                    entries.push(at);
                    at += usize::from(reclen).max(8);
                }
                let at = entries[self.below(entries.len())];
                match self.below(7) {
                    0 | 1 => {
                        let value = if self.below(2) == 0 { self.below(60) as u64 } else { self.edge() };
                        self.number(at, 4, value);
                    }
                    2 => {
                        let value = [0, 4, 13, 12, 512, 16][self.below(6)];
                        self.number(at + 4, 2, value);
                    }
                    3 => self.bytes[at + 6] = [0, 4, 8, 10, 1, 14, 255][self.below(7)],
                    4 => self.bytes[at + 7] = [0, 1, 2, 40, 255][self.below(5)],
                    5 => self.bytes[at + 8] = *b"/.\0x\xff".get(self.below(5)).unwrap(),
                    // The name of another.
                    _ => {
                        let other = entries[self.below(entries.len())];
                        let n = 12.min(block.end - at.max(other));
                        self.bytes.copy_within(other + 7..other + n, at + 7);
                    }
                }
            }
            // Fields of groups and superblocks.
            10 => {
                let place = if self.below(3) == 0 { &base.superblocks } else { &base.groups };
                let place = self.one(place).clone();
                let at = place.start + self.below(place.len() / 4) * 4;
                let value = self.edge();
                self.number(at, 4, value);
            }
            // A pointer of another inode's in place of one's own: both may agree with themselves.
            11 => {
                let (from, to) = (self.one(&base.inodes).start, self.one(&base.inodes).start);
                let places: Vec<usize> = (0..15)
                    .filter(|n| {
                        let (at, width) = self.pointer_at(to, *n);
                        self.bytes[at..at + width].iter().any(|byte| *byte != 0)
                    })
                    .collect();
                if !places.is_empty() {
                    let n = places[self.below(places.len())];
                    let first = if n < 12 && self.below(3) > 0 { 0 } else { n };
                    let ((from, width), (to, _)) = (self.pointer_at(from, first), self.pointer_at(to, n));
                    self.bytes.copy_within(from..from + width, to);
                }
            }
            // A byte of anything but data.
            _ => {
                let kinds = [&base.indirects, &base.directories, &base.inodes, &base.groups];
                let which = self.below(kinds.len());
                let place = self.one(kinds[which]).clone();
                let at = place.start + self.below(place.len());
                self.bytes[at] ^= 1 << self.below(8);
            }
        }
    }
}

/// How often what came of it.
#[derive(Debug, Default)]
struct Tally {
    images: u64,
    by_class: BTreeMap<u64, u64>,
    not_found: u64,
    unrepaired: u64,
    untouched_files: u64,
    kept_by_rule: u64,
    copied_out: u64,
}

fn one_image(base: &Base, seed: u64, tally: &mut Tally) -> Result<(), String> {
    let random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut damage = Damage { base, bytes: base.store.0.clone(), random };
    for n in 0..1 + damage.below(3) {
        let class = if n == 0 { seed / 5 % CLASSES } else { damage.random.next_u64() % CLASSES };
        *tally.by_class.entry(class).or_default() += 1;
        damage.do_one(class);
    }
    tally.images += 1;
    let damaged = damage.bytes;
    let mut store = MemoryStore(damaged.clone());
    let Ok(report) = fsck(&mut store, &mut |_| true) else {
        tally.not_found += 1;
        return Ok(());
    };
    let told: Vec<String> = report
        .problems
        .iter()
        .map(|p| format!("{:?} inode {:?}: {}: {:?}", p.phase, p.ino, p.message, p.repair))
        .collect();
    let told = told.join("\n");
    let no_room = report.unrepaired > 0 || told.contains("no block is free");
    tally.unrepaired += u64::from(report.unrepaired > 0);
    // (a), (e)
    let (before, after) = (Bytes { image: &damaged, big: base.big }, Bytes { image: &store.0, big: base.big });
    let original = Bytes { image: &base.store.0, big: base.big };
    let raw = Files::new(&original, base.sb_at);
    let (raw_before, raw_after) = (raw.of(&before), raw.of(&after));
    let same = |ino: i64, content: &[u8]| {
        let inode = raw_after.inode(ino);
        let held = raw_after.held(&inode);
        inode.mode != 0 && held.problems.is_empty() && raw_after.content(&inode, &held) == content
    };
    let touched: BTreeSet<i64> =
        base.files.iter().filter(|(_, file)| base.is_touched(file, &damaged)).map(|(ino, _)| *ino).collect();
    for (ino, file) in base.files.iter().filter(|(ino, _)| !touched.contains(ino)) {
        let now = raw_after.inode(*ino);
        let attributes = now.attributes(&raw_after) == file.inode.attributes(&raw);
        // A directory's entries may have to go; a root that is a file moves.
        let is_dir = file.inode.kind() == 0o040_000;
        if !attributes || !is_dir && !same(*ino, &file.content) {
            // One of two files that both agree, with no room for a copy.
            if !no_room {
                return Err(format!("(a) inode {ino} is not as it was: {:?}, now {now:?}\n{told}", file.inode));
            }
            continue;
        }
        tally.untouched_files += 1;
    }
    let kept = kept_by_rule(&raw_before);
    for (ino, content) in &kept {
        if !same(*ino, content) && !no_room {
            let (was, now) = (raw_before.inode(*ino), raw_after.inode(*ino));
            return Err(format!("(e) inode {ino} agreed with itself: {was:?}, now {now:?}\n{told}"));
        }
        tally.kept_by_rule += 1;
    }
    if report.unrepaired > 0 {
        return Ok(());
    }
    let found = bsd_fsck::complaints(&store.0, base.big, base.sb_at);
    if !found.is_empty() {
        return Err(format!("(b) {:?}\nafter\n{told}", &found[..found.len().min(10)]));
    }
    let mut again = store.clone();
    let second = fsck(&mut again, &mut |_| true).map_err(|error| format!("(d) {error}"))?;
    if again != store || !second.is_clean() {
        return Err(format!("(d) {:?}\nafter\n{told}", second.problems));
    }
    names(base, &touched, &store, &told)?;
    if seed.is_multiple_of(41) {
        let scratch = tempfile::tempdir().unwrap();
        let image = Image::open(store, Search::Standard).unwrap();
        let to: &Path = &scratch.path().join("out");
        let done = ffs::extract(&image, b"/", to, ffs::ExtractOptions::default(), &mut |_| true)
            .map_err(|error| format!("(c) {error}\nafter\n{told}"))?;
        if !done.bad_links.is_empty() {
            return Err(format!("(c) {:?}\nafter\n{told}", done.bad_links));
        }
        tally.copied_out += 1;
    }
    Ok(())
}

/// (c), and the names of (a).
fn names(base: &Base, touched: &BTreeSet<i64>, store: &MemoryStore, told: &str) -> Result<(), String> {
    let image = Image::open(store.clone(), Search::Standard).map_err(|error| format!("(c) {error}"))?;
    let mut names: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    let mut twice = false;
    image
        .walk(ROOT_INO, &mut |path, ino, inode| {
            twice |= names.insert(path[1..].to_vec(), ino.0.into()).is_some();
            match inode.file_type() {
                Some(FileType::Symlink) => image.symlink(ino, inode).map(drop),
                Some(FileType::Regular) => image.data(ino, inode, &mut |_, _| Ok(())),
                _ => Ok(()),
            }
        })
        .map_err(|error| format!("(c) {error}\nafter\n{told}"))?;
    if twice {
        return Err(format!("(c) a name twice\nafter\n{told}"));
    }
    for (ino, file) in base.files.iter().filter(|(ino, _)| !touched.contains(ino)) {
        for (name, way) in &file.names {
            if !way.iter().any(|dir| touched.contains(dir)) && names.get(name) != Some(ino) {
                let name = String::from_utf8_lossy(name);
                return Err(format!("(a) {name} does not lead to inode {ino} any more\n{told}"));
            }
        }
    }
    Ok(())
}

/// Regular files that BSD's rule keeps, with what they hold.
fn kept_by_rule(raw: &Files<'_>) -> Vec<(i64, Vec<u8>)> {
    let mut owners: BTreeMap<i64, usize> = BTreeMap::new();
    let mut all: Vec<(Inode, Held)> = Vec::new();
    for inode in raw.all().filter(|inode| inode.mode != 0 && inode.ino != 2) {
        let held = raw.held(&inode);
        // A file does not end in a hole: FreeBSD's fsck cuts one that does.
        let blocks = held.pieces.iter().filter_map(|piece| piece.lbn).max().map_or(0, |last| last + 1);
        if held.problems.is_empty() && blocks == raw.blocks_of(&inode) {
            for frag in frags(&held.pieces) {
                *owners.entry(frag).or_default() += 1;
            }
            all.push((inode, held));
        }
    }
    let alone = |held: &Held| frags(&held.pieces).all(|frag| owners[&frag] == 1);
    let kept = all.iter().filter(|(inode, held)| inode.is_regular() && inode.nlink > 0 && alone(held));
    kept.map(|(inode, held)| (inode.ino, raw.content(inode, held))).collect()
}

fn frags(pieces: &[Piece]) -> impl Iterator<Item = i64> + '_ {
    pieces.iter().flat_map(|piece| piece.addr..piece.addr + piece.frags)
}

/// The image of a seed, repaired, is as it must be.
fn holds(seed: u64) {
    let bases = bases();
    let base = &bases[(seed % bases.len() as u64) as usize];
    let found = one_image(base, seed, &mut Tally::default());
    assert!(found.is_ok(), "seed {seed}, {}: {found:?}", base.name);
}

/// A UFS1 superblock that said it belonged between 0 and its place was left so, and FreeBSD's check reckons from there.
#[test]
fn a_superblock_belongs_where_it_is() {
    holds(96_042);
}

/// A stray pointer to extended attributes was counted, so that a block count that agreed with the size seemed not to;
/// and a block in the middle of a file kept only the fragments that nobody else had.
#[test]
fn what_is_cleared_is_in_no_count() {
    holds(53_403);
}

#[test]
fn a_repair_never_makes_things_worse() {
    let (from, to) = match std::env::var("FSAGE_FFS_INVARIANTS") {
        Ok(text) => {
            let (from, to) = text.split_once("..").unwrap();
            (from.parse().unwrap(), to.parse().unwrap())
        }
        Err(_) => (0, 2000),
    };
    let bases = bases();
    let mut tally = Tally::default();
    let mut failures: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for seed in from..to {
        let base = &bases[(seed % bases.len() as u64) as usize];
        if let Err(what) = one_image(base, seed, &mut tally) {
            let kind = what.chars().filter(|c| !c.is_ascii_digit()).take(40).collect::<String>();
            let seeds = failures.entry(kind).or_default();
            if seeds.len() < 3 {
                println!("seed {seed}, {}: {what}\n", base.name);
            }
            seeds.push(seed);
        }
        if seed % 10_000 == 9_999 {
            eprintln!("{} images, {} failures", tally.images, failures.values().map(Vec::len).sum::<usize>());
        }
    }
    println!("{tally:?}");
    for (kind, seeds) in &failures {
        println!("{kind}: {} of {} images, seeds {:?}", seeds.len(), tally.images, &seeds[..seeds.len().min(20)]);
    }
    assert!(failures.is_empty());
    // The test looked at something.
    assert!(tally.not_found * 20 < tally.images + 20 && tally.unrepaired * 10 < tally.images + 10, "{tally:?}");
    assert!(tally.untouched_files > 20 * tally.images && tally.kept_by_rule > 10 * tally.images, "{tally:?}");
}
