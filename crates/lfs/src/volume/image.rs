//! A live file system from an image, and back into one.

use super::pointers::{self, Indirects, Leaf};
use super::{Body, Counters, Inodes, Lfs, Node, Own};
use super::{InodeMap, MapEntry};
use crate::blocks::{EachPiece, blocks_of};
use crate::cleaner::state::Cleaner;
use crate::format::{
    Dinode, FileType, FragAddr, Geometry, IFILE_INO, InodeMapEntry, NDADDR, SegNo, SuperblockFields, segment_flags,
};
use crate::ifile_state::IfileState;
use crate::image::Checkpoint;
use crate::mkfs::{MkfsOptions, mkfs};
use crate::planted::Planted;
use crate::policy::Options;
use crate::segment::{INODE, INODE_BYTES, Log, SegmentState, Written, tile};
use crate::{Image, LfsError, Store, file_data, inode_at};
use device::store::SparseStore;
use kernel::Ino;
use ufs::directory::Directory;
use ufs::live::{Files as _, Piece};

impl Lfs {
    /// A new, empty file system. Sizes that the options name go before those of `mkfs_options`.
    pub fn format(mkfs_options: &MkfsOptions, options: Options) -> Result<Lfs, LfsError> {
        let mkfs_options = options.sizes(mkfs_options);
        let mut store = SparseStore::new(mkfs_options.size_bytes);
        mkfs(&mut store, &mkfs_options)?;
        Lfs::load(store, options)
    }

    /// The file system in an image: its newest complete checkpoint, and what the log has after it. Nothing is written;
    /// that is for [mounting](kernel::Volume::mount). One that does not [agree with itself](Lfs::check) is refused.
    pub fn load<S: Store>(store: S, options: Options) -> Result<Lfs, LfsError> {
        Lfs::load_planted(store, options, Planted::NONE)
    }

    /// The same with a bug that a test must find.
    #[doc(hidden)]
    pub fn load_planted<S: Store>(mut store: S, options: Options, planted: Planted) -> Result<Lfs, LfsError> {
        Lfs::load_any(&mut store, options, planted)
    }

    /// Whatever store it is, the code is the same: it is too long to have it in the program once for each kind.
    fn load_any(store: &mut dyn Store, options: Options, planted: Planted) -> Result<Lfs, LfsError> {
        let mut image = Image::open(store, Checkpoint::Newer)?;
        image.plant(planted);
        let at_checkpoints = image.empty_segments();
        let rolled = image.roll_forward()?;
        let recovered = !image.superblock().is_clean();
        let turn = image.superblock_at() == crate::format::Superblock::FIRST_AT;
        let (store, sb, ifile) = image.into_parts();
        let g = sb.geometry(crate::format::Superblock::FIRST_AT)?;
        let mut inodes = Inodes::default();
        let mut map = Vec::with_capacity(ifile.map.len());
        for (ino, entry) in (0_u32..).zip(&ifile.map) {
            let is_ifile = ino == IFILE_INO.0;
            let version = if is_ifile { ifile.inode.generation } else { entry.version };
            map.push(MapEntry { version, next: 0 });
            if is_ifile {
                inodes.insert(ino, load_node(&store, &g, FragAddr(sb.idaddr), ifile.inode.clone())?);
            } else if entry.daddr != 0 && ino != 0 {
                let addr = FragAddr(entry.daddr);
                let d = inode_at(&store, &g, addr, Ino(ino))?;
                inodes.insert(ino, load_node(&store, &g, addr, with_access_time(d, entry))?);
            }
        }
        let map = InodeMap::new(map, |ino| inodes.get(ino).is_some());
        let usages = ifile.usage.iter().map(|usage| {
            let mut segment = Log::blank(usage.is(segment_flags::SUPERBLOCK));
            if usage.is(segment_flags::DIRTY) || usage.is(segment_flags::ACTIVE) || usage.is(segment_flags::ERROR) {
                segment.state = SegmentState::Dirty;
                (segment.nsums, segment.ninos) = (usage.nsums, usage.ninos);
            }
            segment.lastmod_s = usage.lastmod;
            segment.modified_ns = i64::try_from(usage.lastmod).unwrap_or(0).saturating_mul(1_000_000_000);
            segment
        });
        let mut segments: Vec<_> = usages.collect();
        let used_frags = find_live(&g, &inodes, &mut segments);
        for (number, segment) in (0..).map(SegNo).zip(&mut segments).filter(|(_, segment)| segment.live_bytes > 0) {
            tile(&store, &g, number, segment);
        }
        let place = |at: u32, field| {
            g.segment_of(FragAddr(at))
                .ok_or_else(|| ufs::FormatError::field("superblock", field, 0, format!("{at} is in no segment")))
        };
        let (current, next) = (place(sb.curseg, "curseg")?, place(sb.nextseg, "nextseg")?);
        let last = place(sb.lastseg, "lastseg").unwrap_or(current);
        let offset = if g.segment_of(FragAddr(sb.offset)) == Some(current) {
            FragAddr(sb.offset)
        } else {
            g.segment_end(current)
        };
        let taken = |segment: SegNo| {
            let live = segments.get(segment.0 as usize).is_none_or(|segment| segment.live_bytes > 0);
            live || segment == current
        };
        if taken(next) {
            let problem = format!("segment {next}, where the log is to go on, is in use");
            return Err(ufs::FormatError::field("superblock", "nextseg", SuperblockFields::nextseg.at, problem).into());
        }
        if recovered {
            // What was empty at both checkpoints and still is may be written: nothing that recovery needs is in it.
            let numbered = (0..).map(SegNo).zip(segments.iter_mut()).zip(at_checkpoints);
            for ((number, segment), empty) in numbered {
                let of_log = number == current || rolled.segments.contains(&number);
                if empty && !of_log && segment.live_bytes == 0 {
                    let lastmod_s = segment.lastmod_s;
                    *segment = Log::blank(segment.superblock);
                    segment.lastmod_s = lastmod_s;
                }
            }
        }
        let mut log = Log::new(g, segments, current, next, offset, sb.serial);
        log.last = last;
        log.planted = planted;
        let lost_bytes = log.all_lost_bytes();
        let mut lfs = Lfs {
            sb,
            g,
            options,
            inodes,
            map,
            log,
            lost_bytes,
            ifile: IfileState::default(),
            dirty: Vec::new(),
            operations: 0,
            dead: Vec::new(),
            used_frags,
            cleaner: Cleaner::default(),
            counters: Counters::default(),
            writing: None,
            rewriting: None,
            turn,
            last_checkpoint_ns: 0,
            scratch: Default::default(),
            spare_partials: Vec::new(),
            freed: Vec::new(),
            mounted: false,
            recovered,
            planted,
        };
        // What roll-forward has changed of the ifile is on the disk in no form yet. And the list of free inodes is in
        // ascending order from here on: where it is not so in the image, all of it is written.
        let ordered = (ifile.info.free_head, ifile.info.free_tail) == (lfs.map.head(), lfs.map.tail())
            && ifile.free_list().all(|ino| {
                let next = ifile.entry(ino).map(|entry| entry.nextfree);
                next == lfs.map.get(ino.0).map(|entry| entry.next)
            });
        if recovered || !ordered {
            lfs.whole_ifile_changed();
        }
        // Operations rely on it that everything agrees.
        match lfs.check().first() {
            Some(problem) => Err(LfsError::NotWritable(format!("{problem}; `fsage fsck` lists what is wrong"))),
            None => Ok(lfs),
        }
    }

    fn whole_ifile_changed(&mut self) {
        let blocks = u64::from(self.g.cleansz + self.g.segtabsz) + u64::from(self.map.len() / self.g.ifpb.max(1));
        (0..blocks).for_each(|lbn| self.ifile.touch(lbn));
    }

    /// Every place that a file holds: pointer, bytes in memory, bytes on disk.
    pub(super) fn each_piece(&self, ino: u32, each: &mut dyn FnMut(i64, u32, u32)) {
        let Some(node) = self.inodes.get(ino) else { return };
        // An inode that is being walked is there.
        let _ = self.each_block(Ino(ino), &mut |lbn, Piece { addr, bytes }| {
            let on_disk = node.own.frags.get(lbn as usize).map_or(bytes, |frags| u32::from(*frags) << self.g.fshift);
            each(addr, bytes, on_disk);
        });
        let bsize = self.g.bsize;
        for indirects in node.indirects.iter().filter(|_| node.d.has_blocks(self.g.maxsymlinklen)) {
            indirects.leaves.values().for_each(|leaf| each(leaf.addr, bsize, bsize));
            indirects.upper.values().for_each(|addr| each(*addr, bsize, bsize));
        }
    }

    /// What is in no file, summaries and dead blocks of segments that are not clean included: from and to.
    pub(super) fn free_places(&self) -> Vec<(FragAddr, FragAddr)> {
        let mut used: Vec<(u32, u32)> = Vec::new();
        for (ino, node) in self.inodes.iter() {
            self.each_piece(ino, &mut |addr, _, on_disk| {
                if let Ok(addr) = u32::try_from(addr) {
                    used.push((addr, addr + (on_disk >> self.g.fshift)));
                }
            });
            if !node.own.daddr.is_none() {
                used.push((node.own.daddr.0, node.own.daddr.0 + self.g.ib_frags()));
            }
        }
        used.sort_unstable();
        let mut free = Vec::new();
        let mut at = self.g.segment_base(SegNo(0)).0;
        for (from, to) in used {
            if from > at {
                free.push((FragAddr(at), FragAddr(from)));
            }
            at = at.max(to);
        }
        let end = self.g.segment_end(SegNo(self.g.nseg.saturating_sub(1)));
        if end.0 > at {
            free.push((FragAddr(at), end));
        }
        free
    }
}

/// The time of access is newer in the map than in the inode.
fn with_access_time(mut d: Dinode, entry: &InodeMapEntry) -> Dinode {
    let known = ufs::Time { s: i64::from(entry.atime_sec as i32), ns: entry.atime_nsec as i32 };
    if (known.s, known.ns) > (d.atime.s, d.atime.ns) {
        d.atime = known;
    }
    d
}

/// An inode with its indirect blocks and what is the file system's own of its contents.
fn load_node<S: Store>(store: &S, g: &Geometry, daddr: FragAddr, d: Dinode) -> Result<Node, LfsError> {
    let ino = d.inumber;
    let wrong = |problem: String| LfsError::Inode { ino, problem };
    let file_type = d.file_type().ok_or_else(|| wrong(format!("mode {:o} is no file's", d.mode)))?;
    let n = u64::from(g.nindir);
    let mut frags = [0; NDADDR];
    let mut indirects = Indirects::default();
    blocks_of(store, g, Ino(ino), &d, true, &mut |block| {
        match u64::try_from(block.lbn) {
            Ok(lbn) => match pointers::way(lbn, n) {
                None => {
                    if let Some(place) = frags.get_mut(lbn as usize) {
                        *place = (block.bytes >> g.fshift) as u8;
                    }
                }
                Some(way) => {
                    let leaf = indirects.leaves.entry(way.leaf).or_insert_with(Leaf::default);
                    leaf.pointers.resize(way.index + 1, 0);
                    if let Some(place) = leaf.pointers.get_mut(way.index) {
                        *place = block.addr.0.into();
                    }
                }
            },
            Err(_) => match pointers::of_number(block.lbn, n) {
                Some((first, 0)) => {
                    indirects.leaves.entry(first).or_insert_with(Leaf::default).addr = block.addr.0.into();
                }
                _ => {
                    indirects.upper.insert(block.lbn, block.addr.0.into());
                }
            },
        }
        Ok(())
    })?;
    let none = indirects.leaves.is_empty() && indirects.upper.is_empty();
    let body = match file_type {
        _ if ino == IFILE_INO.0 => Body::System,
        FileType::Directory => Body::Directory(Box::new(load_directory(store, g, &d)?)),
        FileType::Symlink if d.is_short_symlink(g.maxsymlinklen) => {
            let area = d.pointer_area();
            Body::Symlink(area.get(..d.size as usize).unwrap_or(&area).into())
        }
        FileType::Symlink => {
            let mut target = Vec::new();
            file_data(store, g, Ino(ino), &d, g.bsize, &mut |_, bytes| {
                target.extend_from_slice(bytes);
                Ok(())
            })?;
            Body::Symlink(target.into())
        }
        _ => Body::File,
    };
    let indirects = (!none).then(|| Box::new(indirects));
    Ok(Node { d, indirects, body, own: Own { daddr, frags, ..Own::default() } })
}

fn load_directory<S: Store>(store: &S, g: &Geometry, d: &Dinode) -> Result<Directory, LfsError> {
    let ino = d.ino();
    let pieces = |each: EachPiece<'_>| file_data(store, g, ino, d, g.bsize, each);
    ufs::image::directory(ino, d.size, crate::format::DIR_FORMAT, pieces)
}

/// Finds what is live in each segment; returns how many fragments files hold.
fn find_live(g: &Geometry, inodes: &Inodes, segments: &mut [crate::segment::Segment]) -> u64 {
    let mut used = 0;
    let mut note = |ino: u32, lbn: i64, pointer: i64, bytes: u32| {
        let Ok(addr) = u32::try_from(pointer).map(FragAddr) else { return };
        let Some(segment) = g.segment_of(addr).and_then(|number| segments.get_mut(number.0 as usize)) else { return };
        segment.live_bytes += bytes;
        segment.state = SegmentState::Dirty;
        let lbn = if lbn == i64::from(INODE) { INODE } else { lbn as i32 };
        segment.written.push(Written { ino, lbn, addr });
    };
    for (ino, node) in inodes.iter() {
        used += u64::from(node.d.blocks);
        note(ino, INODE.into(), node.own.daddr.0.into(), INODE_BYTES);
        if !node.d.has_blocks(g.maxsymlinklen) {
            continue;
        }
        for ((lbn, addr), frags) in (0..).zip(&node.d.db).zip(&node.own.frags).filter(|((_, addr), _)| **addr != 0) {
            note(ino, lbn, *addr, u32::from(*frags) << g.fshift);
        }
        if let Some(indirects) = &node.indirects {
            for (first, leaf) in &indirects.leaves {
                note(ino, -(*first as i64), leaf.addr, g.bsize);
                for (lbn, addr) in (*first as i64..).zip(&leaf.pointers).filter(|(_, addr)| **addr != 0) {
                    note(ino, lbn, *addr, g.bsize);
                }
            }
            for (number, addr) in &indirects.upper {
                note(ino, *number, *addr, g.bsize);
            }
        }
    }
    used
}

impl Options {
    /// What `mkfs` is to make, with the sizes that these options name.
    pub fn sizes(&self, mkfs_options: &MkfsOptions) -> MkfsOptions {
        let mut sizes = mkfs_options.clone();
        if self.segment_bytes > 0 {
            sizes.ssize = Some(self.segment_bytes);
        }
        if self.block_bytes > 0 {
            sizes.bsize = self.block_bytes;
            // Fragments stay an eighth of a block.
            sizes.fsize = (self.block_bytes / 8).max(512);
        }
        if self.fragment_bytes > 0 {
            sizes.fsize = self.fragment_bytes;
        }
        sizes
    }
}
