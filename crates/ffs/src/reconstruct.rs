//! File systems made again from their free-space maps (Seltzer et al., "File System Logging Versus Clustering", USENIX
//! 1995, section 5).
//!
//! What a file system's age does to files written next is in its free space alone. Of an aged file system only the map
//! of free fragments of every cylinder group is taken ([`FreeMaps`]); from the maps comes a file system of the same
//! shape in which exactly the same fragments are in use, and nothing else ([`Ffs::from_free_maps`]).
//!
//! **Who holds what is in use.** The tool of the paper marked fragments as used that no file had: `fsck` would give
//! them back. Here files hold them, in directories of the root called `.held0`, `.held1` …: one file for each run of
//! fragments in a block partly used, and few large ones for all whole blocks, their indirect blocks among them. The
//! directories' own blocks and the root's fragment are of those in use, too. So every checker finds the file system
//! sound, and it can be mounted anywhere. The files have no content. Their inodes are dealt out evenly over the groups,
//! which therefore stand to each other as in an empty file system when a group is chosen for a directory.

use crate::format::{
    Bitmap, CsumTotal, CylinderGroup, Dinode, FileType, FragAddr, Geometry, GroupNo, Ino, NDADDR, ROOT_INO, Superblock,
    Time, Version, flags, fresh_chunk,
};
use crate::image::{SUPERBLOCK_PLACES, home};
use crate::mkfs::metadata;
use crate::policy::Options;
use crate::volume::inodes::{Body, Inodes, Node, Own};
use crate::volume::pointers::{Indirects, Leaf};
use crate::{Ffs, FfsError, Image, Store};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};
use std::ops::Range;
use ufs::directory::Directory;

/// What is free in a file system, and its shape.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Stored", try_from = "Stored")]
pub struct FreeMaps {
    /// Its totals are what these maps say, with all inodes free.
    sb: Superblock,
    sb_at: u64,
    g: Geometry,
    /// Of each group: a bit for each fragment, set where it is free.
    free: Vec<Bitmap>,
}

/// How much is free, and in how many pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FreeFigures {
    /// Bytes of the file system.
    pub size_bytes: u64,
    /// Cylinder groups.
    pub groups: u32,
    /// Free bytes.
    pub free_bytes: u64,
    /// Of them, in blocks partly used.
    pub in_part_blocks_bytes: u64,
    /// Runs of free fragments; one that goes on in the next group counts twice.
    pub runs: u64,
    /// The longest.
    pub longest_run_bytes: u64,
}

/// Fragments of the file system that maps from a file describe: a bit each, whether the file says anything of them or
/// not.
const FRAGS_MAX: u64 = 1 << 32;

/// The form in files.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    /// Byte of the superblock in the image.
    superblock_at: u64,
    /// The superblock's bytes, hexadecimal.
    superblock: String,
    /// Of each group, in order: first fragment, counted from the group's, and length of each run of free fragments.
    free: Vec<Vec<(u32, u32)>>,
}

impl fmt::Debug for FreeMaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.free.iter().map(Bitmap::count).collect::<Vec<_>>();
        f.debug_struct("FreeMaps").field("geometry", &self.g).field("free_frags", &groups).finish_non_exhaustive()
    }
}

impl From<FreeMaps> for Stored {
    fn from(maps: FreeMaps) -> Stored {
        let mut superblock = String::new();
        for byte in maps.sb.encode() {
            // A string takes what it is given.
            let _ = write!(superblock, "{byte:02x}");
        }
        let groups = (0..maps.g.ncg).map(|group| maps.runs(GroupNo(group)).collect());
        Stored { superblock_at: maps.sb_at, superblock, free: groups.collect() }
    }
}

impl TryFrom<Stored> for FreeMaps {
    type Error = FfsError;

    fn try_from(stored: Stored) -> Result<FreeMaps, FfsError> {
        let sb = Superblock::decode(&unhex(&stored.superblock)?, stored.superblock_at)?;
        let g = sb.geometry(stored.superblock_at)?;
        if stored.free.len() != g.ncg as usize {
            return Err(refused(format!("maps of {} groups for a file system of {}", stored.free.len(), g.ncg)));
        }
        if u64::from(g.ncg) * u64::from(g.fpg) > FRAGS_MAX {
            return Err(refused(format!("{} groups of {} fragments are more than {FRAGS_MAX}", g.ncg, g.fpg)));
        }
        let mut free = Vec::with_capacity(stored.free.len());
        for (group, runs) in (0..).map(GroupNo).zip(stored.free) {
            let mut map = Bitmap::new(g.fpg as usize);
            for (from, frags) in runs {
                if from.checked_add(frags).is_none_or(|end| end > g.group_frags(group)) {
                    return Err(refused(format!("group {group} has no {frags} fragments from {from} on")));
                }
                map.put_range(from as usize, frags as usize, true);
            }
            free.push(map);
        }
        FreeMaps::new(sb, stored.superblock_at, free)
    }
}

fn refused(problem: impl Into<String>) -> FfsError {
    FfsError::FreeMaps(problem.into())
}

fn unhex(text: &str) -> Result<Vec<u8>, FfsError> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some((digit(*high)? * 16 + digit(*low)?) as u8),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
    bytes.ok_or_else(|| refused("the superblock is not pairs of hexadecimal digits"))
}

impl FreeMaps {
    /// Of a live file system.
    ///
    /// # Errors
    /// What is free overlaps its metadata: it is damaged.
    pub fn of(ffs: &Ffs) -> Result<FreeMaps, FfsError> {
        let maps = ffs.space.groups.iter().map(|group| group.cg.free.clone());
        FreeMaps::new(ffs.superblock_now(true), ffs.sb_at, maps.collect())
    }

    /// Of an image. Nothing but the superblock and the cylinder groups is read.
    ///
    /// # Errors
    /// A group cannot be read; what is free overlaps metadata; groups are of 4.2BSD's form.
    pub fn of_image<S: Store>(image: &Image<S>) -> Result<FreeMaps, FfsError> {
        let groups = 0..image.geometry().ncg;
        let maps = groups.map(|number| image.group(GroupNo(number)).map(|group| group.free));
        FreeMaps::new(image.superblock().clone(), image.superblock_at(), maps.collect::<Result<_, _>>()?)
    }

    fn new(mut sb: Superblock, sb_at: u64, mut free: Vec<Bitmap>) -> Result<FreeMaps, FfsError> {
        let g = sb.geometry(sb_at)?;
        if g.old_groups {
            return Err(FfsError::Options("4.2BSD cylinder groups can be read, not written".to_owned()));
        }
        // It may have been found in a copy; where else it was, nobody would look for it.
        let sb_at = home(&sb, &g, sb_at);
        if !SUPERBLOCK_PLACES.contains(&sb_at) {
            return Err(refused(format!("no file system has its superblock at byte {sb_at}")));
        }
        // What does not change where anything is, and is wrong, was to be repaired anyway.
        crate::fsck::superblock::mend(&mut sb, &g, sb_at, &mut |_, _, _| {});
        // Where the maps are in a group depends on some of it.
        let g = sb.geometry(sb_at)?;
        // Copies of the superblock are written between the two, whole.
        let copy_frags = (sb.encode().len() as u64).div_ceil(g.fsize.into());
        if u64::from(g.cblkno - g.sblkno) < copy_frags {
            return Err(refused("copies of the superblock lie on the cylinder groups"));
        }
        if sb.wide() {
            // The new file system is clean, and has neither snapshots nor a journal.
            sb.f.flags &= !(flags::UNCLEAN | flags::NEEDSFSCK | flags::SUJ);
            (sb.f.snapinum, sb.f.pendingblocks, sb.f.pendinginodes, sb.f.unrefs) = ([0; 20], 0, 0, 0);
            // What is free is counted below; the rest of the totals is nobody's.
            sb.f.cstotal = CsumTotal::default();
        }
        for (group, map) in (0..).map(GroupNo).zip(&mut free) {
            let (low, high) = metadata(&g, group);
            if (low..high).any(|frag| map.get(frag as usize)) {
                return Err(refused(format!(
                    "of group {group} metadata is free; `fsage fsck` repairs an image like that"
                )));
            }
            let frags = g.group_frags(group) as usize;
            map.put_range(frags, map.capacity().saturating_sub(frags), false);
        }
        let maps = FreeMaps { sb, sb_at, g, free };
        maps.check_summaries()?;
        maps.counted()
    }

    /// The fragments of the group summaries.
    fn summaries(&self) -> Range<u64> {
        let first = self.g.csaddr.0;
        first..first + self.g.frags_of(self.g.cssize.into())
    }

    /// A foreign file system may have its summaries elsewhere than behind the first group's inodes: among data, and in
    /// use.
    fn check_summaries(&self) -> Result<(), FfsError> {
        let g = &self.g;
        if g.csaddr == g.group_data(GroupNo(0)) {
            return Ok(());
        }
        for addr in self.summaries().map(FragAddr) {
            let group = g.group_of(addr);
            let frag = (addr.0 - g.group_base(group).0) as u32;
            let (low, high) = metadata(g, group);
            if (low..high).contains(&frag) {
                return Err(refused(format!("the summaries of groups lie on other metadata, at fragment {addr}")));
            }
            if self.free.get(group.0 as usize).is_none_or(|map| map.get(frag as usize)) {
                return Err(refused(format!("the summaries of groups are free, at fragment {addr}")));
            }
        }
        Ok(())
    }

    /// Brings the superblock's totals up to date, and forgets every byte of it that would not be written.
    fn counted(mut self) -> Result<FreeMaps, FfsError> {
        let mut total = CsumTotal { nifree: self.g.inodes().into(), ..CsumTotal::default() };
        for (group, map) in (0..).map(GroupNo).zip(&self.free) {
            let mut cg = CylinderGroup::new(&self.g, group);
            cg.free = map.clone();
            cg.recount(&self.g);
            total.nbfree += i64::from(cg.cs.nbfree);
            total.nffree += i64::from(cg.cs.nffree);
        }
        self.sb.set_cstotal(&total);
        (self.sb.f.clean, self.sb.f.fmod, self.sb.f.ronly) = (1, 0, 0);
        self.sb = Superblock::decode(&self.sb.encode(), self.sb_at)?;
        Ok(self)
    }

    /// The same file system emptied: all is free but metadata.
    ///
    /// # Errors
    /// None where the maps themselves could be made.
    pub fn emptied(&self) -> Result<FreeMaps, FfsError> {
        let map = |group| {
            let ((low, high), frags) = (metadata(&self.g, group), self.g.group_frags(group) as usize);
            let mut map = Bitmap::new(self.g.fpg as usize);
            map.put_range(0, frags, true);
            map.put_range(low as usize, (high - low) as usize, false);
            map
        };
        FreeMaps { free: (0..self.g.ncg).map(GroupNo).map(map).collect(), ..self.clone() }.counted()
    }

    /// Sizes and places.
    pub fn geometry(&self) -> &Geometry {
        &self.g
    }

    /// How much is free.
    pub fn figures(&self) -> FreeFigures {
        let total = self.sb.cstotal();
        let longest = (0..self.g.ncg).flat_map(|group| self.runs(GroupNo(group)).map(|(_, frags)| frags)).max();
        let bytes = |frags: i64| u64::try_from(frags).unwrap_or(0) << self.g.fshift;
        FreeFigures {
            size_bytes: self.size_bytes(),
            groups: self.g.ncg,
            free_bytes: bytes(total.nbfree * i64::from(self.g.frag) + total.nffree),
            in_part_blocks_bytes: bytes(total.nffree),
            runs: (0..self.g.ncg).map(|group| self.runs(GroupNo(group)).count() as u64).sum(),
            longest_run_bytes: bytes(longest.unwrap_or(0).into()),
        }
    }

    /// Bytes of the file system.
    pub fn size_bytes(&self) -> u64 {
        self.g.size_frags << self.g.fshift
    }

    /// Free fragments, those of whole blocks included.
    pub fn free_frags(&self) -> u64 {
        self.free.iter().map(|map| map.count() as u64).sum()
    }

    /// Runs of free fragments of a group: first fragment, counted from the group's, and length.
    pub fn runs(&self, group: GroupNo) -> impl Iterator<Item = (u32, u32)> {
        let map = self.free.get(group.0 as usize);
        let end = self.g.group_frags(group) as usize;
        let mut from = 0;
        std::iter::from_fn(move || {
            let start = map?.next_set(from, end)?;
            from = map?.next_clear(start, end).unwrap_or(end);
            Some((start as u32, (from - start) as u32))
        })
    }

    /// What files hold, by address: runs inside blocks partly used, and whole blocks.
    fn held(&self) -> Held {
        let (g, mut held, summaries) = (&self.g, Held::default(), self.summaries());
        for (group, map) in (0..).map(GroupNo).zip(&self.free) {
            let (low, high) = metadata(g, group);
            let end = g.group_frags(group);
            for block in (0..end).step_by(g.frag as usize) {
                let block_end = (block + g.frag).min(end);
                let is_summary = |frag: u32| summaries.contains(&g.group_base(group).plus(frag.into()).0);
                let used = |frag: u32| !map.get(frag as usize) && !(low..high).contains(&frag) && !is_summary(frag);
                let mut frag = block;
                while frag < block_end {
                    let run = (frag..block_end).take_while(|at| used(*at)).count() as u32;
                    if run > 0 {
                        held.add(g.group_base(group).plus(frag.into()), run, g.frag);
                    }
                    frag += run.max(1);
                }
            }
        }
        held
    }
}

/// Space for files to hold.
#[derive(Debug, Default)]
struct Held {
    /// Parts of blocks: first fragment and length.
    runs: Vec<(FragAddr, u32)>,
    /// Whole blocks.
    blocks: Vec<FragAddr>,
}

impl Held {
    fn add(&mut self, addr: FragAddr, frags: u32, per_block: u32) {
        if frags == per_block {
            self.blocks.push(addr);
        } else {
            self.runs.push((addr, frags));
        }
    }

    /// Takes the first fragment there is, for the root.
    fn take_fragment(&mut self, per_block: u32) -> Option<FragAddr> {
        let run = self.runs.first().copied();
        let block = self.blocks.first().copied();
        let (addr, frags) = match (run, block) {
            (Some((run, _)), Some(block)) if block < run => (block, per_block),
            (Some(run), _) => run,
            (None, Some(block)) => (block, per_block),
            (None, None) => return None,
        };
        if frags == per_block {
            self.blocks.remove(0);
        } else {
            self.runs.remove(0);
        }
        if frags > 1 {
            self.runs.insert(0, (addr.plus(1), frags - 1));
        }
        Some(addr)
    }

    /// Files that it takes to hold everything. `most` is the blocks of a file with an indirect one.
    fn files(&self, most: usize) -> usize {
        // 13 blocks are no file: an indirect block needs a pointer.
        let rest = self.blocks.len() % most;
        self.runs.len() + self.blocks.len() / most + usize::from(rest > 0) + usize::from(rest == NDADDR + 1)
    }
}

/// A directory that names files, before it has an inode.
#[derive(Debug)]
struct Names {
    blocks: Vec<FragAddr>,
    /// Of the only piece, where that is not a block.
    frags: u32,
    room: usize,
}

/// Bytes of an entry: a name of seven bytes.
const ENTRY_BYTES: usize = 16;

/// What a group starts with when its blocks are dealt out anew.
const FIRST_FREE_INODE: u32 = ROOT_INO.0 + 1;

impl Ffs {
    /// A file system of the shape of these maps in which just what they say is free, and the root's only directories
    /// are those that hold the rest. Where nothing is in use, the root takes the first fragment there is.
    ///
    /// # Errors
    /// There are more pieces in use than inodes, or names for them find no room.
    pub fn from_free_maps(maps: &FreeMaps, options: Options) -> Result<Ffs, FfsError> {
        let mut builder = Builder::new(maps);
        builder.build()?;
        let mut groups = Vec::new();
        for (group, map) in (0..).map(GroupNo).zip(&builder.free) {
            groups.push(builder.group(group, map));
        }
        let ffs = Ffs::assemble(maps.sb.clone(), maps.sb_at, groups, builder.inodes, options)?;
        match ffs.check().into_iter().next() {
            None => Ok(ffs),
            Some(problem) => Err(refused(format!("what they say cannot be made a file system: {problem}"))),
        }
    }
}

struct Builder<'a> {
    maps: &'a FreeMaps,
    free: Vec<Bitmap>,
    inodes: Inodes,
    /// Inodes of each group.
    per_group: u32,
    /// Inodes given out so far, the root not counted.
    given: u32,
    /// Directories of each group.
    directories_in_group: Vec<i32>,
}

impl<'a> Builder<'a> {
    fn new(maps: &'a FreeMaps) -> Builder<'a> {
        Builder {
            maps,
            free: maps.free.clone(),
            inodes: Inodes::default(),
            per_group: 0,
            given: 0,
            directories_in_group: vec![0; maps.g.ncg as usize],
        }
    }

    fn build(&mut self) -> Result<(), FfsError> {
        let g = &self.maps.g;
        let mut held = self.maps.held();
        let root_at = match held.take_fragment(g.frag) {
            Some(addr) => addr,
            None => self.take_free_fragment()?,
        };
        let most = NDADDR + g.nindir() as usize + 1;
        let homes = homes(g, &mut held, most)?;
        let files = files(self.maps, held, most);
        let inodes = homes.len() + files.len();
        let per_group = inodes.div_ceil(g.ncg as usize);
        if per_group > (g.ipg - FIRST_FREE_INODE) as usize {
            let there = u64::from(g.ncg) * u64::from(g.ipg - FIRST_FREE_INODE);
            return Err(refused(format!(
                "what is in use is {inodes} pieces, and there are {there} inodes to hold them"
            )));
        }
        self.per_group = per_group as u32;
        self.enter(root_at, homes, files)
    }

    /// Of the first free block, as in a new file system, the first fragment is used from now on; without a block, the
    /// first fragment there is.
    fn take_free_fragment(&mut self) -> Result<FragAddr, FfsError> {
        let g = &self.maps.g;
        for frags in [g.frag as usize, 1] {
            for (group, map) in (0..).map(GroupNo).zip(&mut self.free) {
                let mut places = (0..g.group_frags(group) as usize).step_by(frags);
                let found = places.find(|at| map.run_from(*at, g.group_frags(group) as usize, frags) == frags);
                if let Some(at) = found {
                    map.put(at, false);
                    return Ok(g.group_base(group).plus(at as u64));
                }
            }
        }
        Err(refused("there is no room for a root directory"))
    }

    /// Makes inodes and names of everything.
    fn enter(&mut self, root_at: FragAddr, homes: Vec<Names>, files: Vec<Node>) -> Result<(), FfsError> {
        let (g, kind) = (&self.maps.g, FileType::Directory.entry_type());
        let mut root = Directory::new(g.dir_format(), ROOT_INO.0, ROOT_INO.0, kind);
        let mut files = (0_usize..).zip(files);
        for (number, home) in homes.into_iter().enumerate() {
            let own = self.next_ino();
            let mut directory = Directory::new(g.dir_format(), own, ROOT_INO.0, kind);
            for (number, file) in files.by_ref().take(home.room) {
                let ino = self.next_ino();
                enter(&mut directory, format!("{number:07x}").as_bytes(), ino, FileType::Regular);
                self.inodes.insert(ino, file);
            }
            enter(&mut root, format!(".held{number}").as_bytes(), own, FileType::Directory);
            let frags = (home.blocks.len() as u32).saturating_sub(1) * g.frag + home.frags;
            let full = filled(directory, g, u64::from(frags) << g.fshift)?;
            let node = directory_node(self.maps, full, &home.blocks, frags, 2);
            self.count_directory(own);
            self.inodes.insert(own, node);
        }
        let links = 2 + i16::try_from(root.entries().saturating_sub(2)).unwrap_or(i16::MAX);
        if root.len_bytes() > u64::from(g.fsize) {
            return Err(refused("the directories that would hold what is in use do not fit into the root"));
        }
        let node = directory_node(self.maps, root, &[root_at], 1, links);
        self.count_directory(ROOT_INO.0);
        self.inodes.insert(ROOT_INO.0, node);
        Ok(())
    }

    /// The next inode: each group gives as many, one group after the other.
    fn next_ino(&mut self) -> u32 {
        let (group, index) = (self.given / self.per_group.max(1), self.given % self.per_group.max(1));
        self.given += 1;
        let first = if group == 0 { FIRST_FREE_INODE } else { 0 };
        group * self.maps.g.ipg + first + index
    }

    fn count_directory(&mut self, ino: u32) {
        let group = self.maps.g.group_of_ino(Ino(ino));
        if let Some(count) = self.directories_in_group.get_mut(group.0 as usize) {
            *count += 1;
        }
    }

    /// A group with these fragments free, and the inodes that have been given out.
    fn group(&self, group: GroupNo, free: &Bitmap) -> CylinderGroup {
        let g = &self.maps.g;
        let mut cg = CylinderGroup::new(g, group);
        cg.free = free.clone();
        let before = group.0 * self.per_group;
        let mut used = self.given.saturating_sub(before).min(self.per_group);
        if group.0 == 0 {
            used += FIRST_FREE_INODE;
        }
        cg.used_inodes.put_range(0, used as usize, true);
        cg.cs.ndir = self.directories_in_group.get(group.0 as usize).copied().unwrap_or(0);
        let time_s = self.maps.sb.time();
        match g.layout.version {
            Version::Ufs1 => cg.old_time = time_s as i32, // Wraps in 2038, as UFS1 does.
            Version::Ufs2 => {
                // Inodes are made a block ahead of their use.
                let ahead = used.next_multiple_of(g.inopb()).saturating_add(g.inopb());
                (cg.time, cg.initediblk) = (time_s, ahead.max(2 * g.inopb()).min(g.ipg));
            }
        }
        cg.recount(g);
        cg
    }
}

fn enter(directory: &mut Directory, name: &[u8], ino: u32, kind: FileType) {
    directory.enter(directory.slot(name.len()), name, ino, kind.entry_type());
}

/// Sets space aside for directories until all other files can be named in them: whole blocks, or where there are none
/// the longest runs.
fn homes(g: &Geometry, held: &mut Held, most: usize) -> Result<Vec<Names>, FfsError> {
    let in_block = |frags: u32| (frags << g.fshift) as usize / ENTRY_BYTES;
    let mut homes: Vec<Names> = Vec::new();
    while homes.iter().map(|home| home.room).sum::<usize>() < held.files(most) {
        // From the end: what comes first is nearest to the root.
        let block = held.blocks.pop();
        let last = homes.last_mut().filter(|home| home.frags == g.frag && home.blocks.len() < NDADDR);
        match (block, last) {
            (Some(block), Some(home)) => {
                home.blocks.push(block);
                home.room += in_block(g.frag);
            }
            // `.` and `..` take the room of two names.
            (Some(block), None) => {
                homes.push(Names { blocks: vec![block], frags: g.frag, room: in_block(g.frag) - 2 });
            }
            (None, _) => {
                let longest = (0..held.runs.len()).max_by_key(|at| held.runs.get(*at).map_or(0, |run| run.1));
                let Some(at) = longest else { return Err(refused("names find no room")) };
                let (addr, frags) = held.runs.remove(at);
                homes.push(Names { blocks: vec![addr], frags, room: in_block(frags) - 2 });
            }
        }
    }
    Ok(homes)
}

/// The same directory with chunks without entries behind, so that it is as long as its blocks.
fn filled(directory: Directory, g: &Geometry, len_bytes: u64) -> Result<Directory, FfsError> {
    let mut bytes = directory.bytes().to_vec();
    while (bytes.len() as u64) < len_bytes {
        bytes.extend(fresh_chunk(g.dir_format()));
    }
    Ok(Directory::load(g.dir_format(), &bytes)?)
}

fn directory_node(maps: &FreeMaps, directory: Directory, blocks: &[FragAddr], frags: u32, nlink: i16) -> Node {
    let mut d = inode(maps, FileType::Directory, directory.len_bytes(), frags);
    (d.mode, d.nlink) = (d.mode | 0o111, nlink);
    for (place, addr) in d.db.iter_mut().zip(blocks) {
        *place = addr.0 as i64;
    }
    Node { d, indirects: None, body: Body::Directory(Box::new(directory)), own: Own::default() }
}

/// The files that hold everything, in order of address as far as runs and blocks go.
fn files(maps: &FreeMaps, held: Held, most: usize) -> Vec<Node> {
    let g = &maps.g;
    let mut files = Vec::new();
    for (addr, frags) in held.runs {
        files.push(file(maps, &[addr], None, u64::from(frags) << g.fshift, frags));
    }
    let mut rest = held.blocks.as_slice();
    while !rest.is_empty() {
        let take = match rest.len() {
            n if n == NDADDR + 1 => NDADDR,
            n => n.min(most),
        };
        let (these, behind) = rest.split_at(take);
        rest = behind;
        let frags = take as u32 * g.frag;
        // One of them is the indirect block, in the place that it has when a file is written.
        let (indirect, data) = match these.get(NDADDR) {
            Some(indirect) => (Some(*indirect), without_one(these, NDADDR)),
            None => (None, these.to_vec()),
        };
        files.push(file(maps, &data, indirect, (data.len() as u64) << g.bshift, frags));
    }
    files
}

fn file(maps: &FreeMaps, data: &[FragAddr], indirect: Option<FragAddr>, size: u64, frags: u32) -> Node {
    let mut d = inode(maps, FileType::Regular, size, frags);
    for (place, addr) in d.db.iter_mut().zip(data) {
        *place = addr.0 as i64;
    }
    let indirects = indirect.map(|indirect| {
        let addr = indirect.0 as i64;
        let pointers = data.iter().skip(NDADDR).map(|addr| addr.0 as i64).collect();
        let mut indirects = Indirects::default();
        indirects.leaves.insert(NDADDR as u64, Leaf { addr, pointers });
        if let Some(first) = d.ib.first_mut() {
            *first = addr;
        }
        Box::new(indirects)
    });
    Node { d, indirects, body: Body::File, own: Own::default() }
}

fn inode(maps: &FreeMaps, file_type: FileType, size: u64, frags: u32) -> Dinode {
    let now = Time { s: maps.sb.time(), ns: 0 };
    Dinode {
        mode: file_type.mode_bits() | 0o600,
        nlink: 1,
        size,
        blocks: u64::from(frags) * u64::from(maps.g.fsize / 512),
        atime: now,
        mtime: now,
        ctime: now,
        birthtime: if maps.g.layout.version == Version::Ufs2 { now } else { Time::default() },
        generation: 1,
        ..Dinode::default()
    }
}

fn without_one(blocks: &[FragAddr], at: usize) -> Vec<FragAddr> {
    let others = (0..).zip(blocks).filter(|(number, _)| *number != at);
    others.map(|(_, addr)| *addr).collect()
}
