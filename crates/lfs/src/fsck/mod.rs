//! Checking: everything that is kept twice is compared.
//!
//! A check changes nothing. It rolls forward in memory as a mount would, follows every pointer from the inode map on,
//! and compares what it met with the usage table, the free list, the summaries of the segments and the counters of the
//! superblock. Every live block must be met once, and be described by the summary before it: the cleaner believes
//! summaries.
//!
//! Counters that other systems let drift are bounds: `bfree`, `avail` and `nfiles` may be less than what there is,
//! never more. The copies of both in the cleaner information are set anew by every mount, and are not looked at.

mod names;
mod report;
mod segments;

pub use report::{Contents, Phase, Problem, Report};

use crate::blocks::blocks_of;
use crate::format::{
    DINODE_BYTES, Dinode, FragAddr, Geometry, IFILE_INO, Ino, InodeMapEntry, LABEL_BYTES, SegNo, SegmentUsage,
    Superblock, segment_flags,
};
use crate::image::{Located, superblock_at};
use crate::mkfs::available;
use crate::planted::Planted;
use crate::{Checkpoint, Image, LfsError, RolledForward, Store};
use ufs::ImageError as _;

/// Checks the file system in a store, from its newer checkpoint on. `go_on` is asked now and then.
pub fn fsck<S: Store>(store: S, go_on: &mut dyn FnMut(Phase) -> bool) -> Result<Report, LfsError> {
    fsck_planted(store, Planted::NONE, go_on)
}

/// The same with a bug that a test must find.
#[doc(hidden)]
pub fn fsck_planted<S: Store>(
    mut store: S,
    planted: Planted,
    go_on: &mut dyn FnMut(Phase) -> bool,
) -> Result<Report, LfsError> {
    fsck_any(&mut store, planted, go_on)
}

/// Whatever store it is, the code is the same: it is too long to have it in the program once for each kind.
fn fsck_any(store: &mut dyn Store, planted: Planted, go_on: &mut dyn FnMut(Phase) -> bool) -> Result<Report, LfsError> {
    let mut image = Image::open(store, Checkpoint::Newer)?;
    image.plant(planted);
    let tail = image.log_tail();
    let (marked_clean, superblock_at) = (image.sb.is_clean(), image.superblock_at());
    let mut report = Report {
        superblock_at,
        serials: [None, None],
        fsize: image.geometry.fsize,
        marked_clean,
        after_checkpoint: tail.partials.len() as u64,
        rolled_forward: RolledForward::default(),
        problems: Vec::new(),
        problem_count: 0,
        contents: Contents::default(),
    };
    superblocks(&image, &mut report);
    newest(&image, &mut report);
    match image.roll_forward() {
        Ok(done) => report.rolled_forward = done,
        Err(error) => report.add(Problem {
            phase: Phase::RollForward,
            kind: "roll-forward",
            ino: None,
            segment: None,
            message: error.to_string(),
        }),
    }
    if marked_clean && report.after_checkpoint > 0 {
        let message = format!("{} partial segments follow a checkpoint said to be the last", report.after_checkpoint);
        report.add(Problem { phase: Phase::RollForward, kind: "after-clean", ino: None, segment: None, message });
    }
    check(&image, report, go_on)
}

/// Checks a file system as it has been read: after [`Image::roll_forward`], or as of its checkpoint.
pub fn check<S: Store>(
    image: &Image<S>,
    report: Report,
    go_on: &mut dyn FnMut(Phase) -> bool,
) -> Result<Report, LfsError> {
    let g = image.geometry;
    let mut check = Check {
        image,
        g,
        report,
        go_on,
        claimed: vec![None; g.nseg as usize],
        live: Vec::new(),
        nbytes: vec![0; g.nseg as usize],
        known: vec![Known::default(); image.ifile.map.len()],
    };
    check.inodes()?;
    check.names()?;
    check.free_inodes()?;
    check.segments()?;
    check.counters()?;
    Ok(check.report)
}

/// Both superblocks that checkpoints go to, and the copies.
fn superblocks<S: Store>(image: &Image<S>, report: &mut Report) {
    let (g, sb) = (&image.geometry, &image.sb);
    let places = sb.sboffs.iter().take_while(|addr| **addr != 0);
    for (i, addr) in places.enumerate() {
        let at = if i == 0 { Superblock::FIRST_AT } else { g.byte_of(FragAddr(*addr)) };
        let problem = match superblock_at(&image.store, at) {
            Ok(Located { sb: other, geometry, .. }) => {
                if let Some(place) = report.serials.get_mut(i) {
                    *place = Some(other.serial);
                }
                let same = geometry == *g && other.sboffs == sb.sboffs;
                (!same).then(|| format!("superblock {i}, at byte {at}, is of another file system"))
            }
            Err(error) => Some(format!("superblock {i}: {error}")),
        };
        if let Some(message) = problem {
            report.add(Problem { phase: Phase::Superblocks, kind: "superblock", ino: None, segment: None, message });
        }
    }
}

/// Whether the newer checkpoint could be used: a superblock is written after all that it points to.
fn newest<S: Store>(image: &Image<S>, report: &mut Report) {
    let newest = report.serials.iter().flatten().max().copied().unwrap_or(0);
    if image.sb.serial < newest {
        let message = format!("the checkpoint with serial number {newest} has no ifile; {} was used", image.sb.serial);
        report.add(Problem { phase: Phase::Superblocks, kind: "checkpoint", ino: None, segment: None, message });
    }
}

/// What is known of an inode.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Its type as directory entries have it; 0 if it is not in use or cannot be read.
    entry_type: u8,
    /// Links it says it has.
    nlink: i16,
    /// Names found.
    names: i32,
}

/// A live block of a file, or an inode block (`lbn` is 0 and `ino` is 0 there).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Live {
    addr: FragAddr,
    ino: Ino,
    /// A block whose number no FINFO can have is given the last one that it can.
    lbn: i32,
    bytes: u32,
}

/// A check under way.
struct Check<'a, S> {
    image: &'a Image<S>,
    g: Geometry,
    report: Report,
    go_on: &'a mut dyn FnMut(Phase) -> bool,
    /// Of each segment with something live: a bit for each fragment, set if claimed.
    claimed: Vec<Option<Box<[u64]>>>,
    /// Everything live, with which a summary must agree.
    live: Vec<Live>,
    /// Of each segment: live bytes.
    nbytes: Vec<u64>,
    known: Vec<Known>,
}

impl<S: Store> Check<'_, S> {
    fn problem(&mut self, phase: Phase, kind: &'static str, ino: Option<Ino>, message: impl Into<String>) {
        let ino = ino.map(|ino| ino.0);
        self.report.add(Problem { phase, kind, ino, segment: None, message: message.into() });
    }

    fn segment_problem(&mut self, kind: &'static str, segment: SegNo, message: impl Into<String>) {
        let (phase, message) = (Phase::Segments, message.into());
        self.report.add(Problem { phase, kind, ino: None, segment: Some(segment.0), message });
    }

    fn asked(&mut self, phase: Phase) -> Result<(), LfsError> {
        if (self.go_on)(phase) { Ok(()) } else { Err(LfsError::interrupted()) }
    }

    /// Every inode of the map, and every block it points to.
    fn inodes(&mut self) -> Result<(), LfsError> {
        self.asked(Phase::Inodes)?;
        let image = self.image;
        let mut inode_blocks = vec![(FragAddr(image.sb.idaddr), IFILE_INO)];
        self.inode(IFILE_INO, &image.ifile.inode.clone())?;
        let in_use = image.ifile.in_use().filter(|(ino, _)| *ino != IFILE_INO);
        for (i, (ino, entry)) in in_use.enumerate() {
            if i % 1024 == 0 {
                self.asked(Phase::Inodes)?;
            }
            inode_blocks.push((FragAddr(entry.daddr), ino));
            match image.inode(ino) {
                Ok(inode) => {
                    self.version(ino, entry, &inode);
                    self.inode(ino, &inode)?;
                }
                Err(LfsError::Io(error)) => return Err(error.into()),
                Err(error) => self.problem(Phase::Inodes, "inode", Some(ino), error.to_string()),
            }
        }
        // An inode block is shared by its inodes, so that it is claimed once for all of them.
        inode_blocks.sort();
        inode_blocks.dedup_by_key(|(addr, _)| *addr);
        let ibsize = self.g.ibsize;
        for (addr, ino) in inode_blocks {
            if self.g.within_segment(addr, self.g.ib_frags()) {
                self.claim(ino, "its inode block", Live { addr, ino: Ino(0), lbn: 0, bytes: ibsize });
            }
        }
        Ok(())
    }

    fn version(&mut self, ino: Ino, entry: &InodeMapEntry, inode: &Dinode) {
        if entry.version != inode.generation {
            let message = format!("version {} in the inode map, {} in the inode", entry.version, inode.generation);
            self.problem(Phase::Inodes, "version", Some(ino), message);
        }
    }

    /// An inode that could be read.
    fn inode(&mut self, ino: Ino, inode: &Dinode) -> Result<(), LfsError> {
        let (image, g) = (self.image, self.g);
        let Some(kind) = inode.file_type() else {
            self.problem(Phase::Inodes, "type", Some(ino), format!("mode 0{:o} is of no known type", inode.mode));
            return Ok(());
        };
        if let Some(known) = self.known.get_mut(ino.0 as usize) {
            *known = Known { entry_type: kind.entry_type(), nlink: inode.nlink, names: 0 };
        }
        let addr = if ino == IFILE_INO { Some(FragAddr(image.sb.idaddr)) } else { image.ifile.daddr(ino) };
        if let Some(nbytes) = addr.and_then(|addr| g.segment_of(addr)).and_then(|s| self.nbytes.get_mut(s.0 as usize)) {
            *nbytes += u64::from(DINODE_BYTES);
        }
        let mut held = Vec::new();
        let result = blocks_of(&image.store, &g, ino, inode, true, &mut |block| {
            let lbn = i32::try_from(block.lbn).unwrap_or(i32::MAX);
            held.push(Live { addr: block.addr, ino, lbn, bytes: block.bytes });
            Ok(())
        });
        match result {
            Err(LfsError::Inode { problem, .. }) => self.problem(Phase::Inodes, "pointer", Some(ino), problem),
            other => other?,
        }
        let frags = held.iter().map(|live| live.bytes >> g.fshift).sum::<u32>();
        if frags != inode.blocks {
            let message = format!("holds {frags} fragments, and says {}", inode.blocks);
            self.problem(Phase::Inodes, "blocks", Some(ino), message);
        }
        self.report.contents.data_frags += u64::from(frags);
        for live in held {
            if let Some(nbytes) = g.segment_of(live.addr).and_then(|s| self.nbytes.get_mut(s.0 as usize)) {
                *nbytes += u64::from(live.bytes);
            }
            self.claim(ino, "a block", live);
        }
        Ok(())
    }

    /// Takes the fragments of something live, which must lie in one segment and be nobody else's.
    fn claim(&mut self, ino: Ino, what: &str, live: Live) {
        let g = self.g;
        let Some(segment) = g.segment_of(live.addr) else { return };
        let Some(usage) = self.image.ifile.usage(segment) else { return };
        let start = g.log_start(segment, usage.is(segment_flags::SUPERBLOCK));
        if live.addr < start {
            let message = format!("{what} at {} lies over a superblock or the label", live.addr);
            self.problem(Phase::Inodes, "over-superblock", Some(ino), message);
        }
        let base = g.segment_base(segment).0;
        let (from, frags) = ((live.addr.0 - base) as usize, (live.bytes >> g.fshift) as usize);
        let Some(place) = self.claimed.get_mut(segment.0 as usize) else { return };
        let map = place.get_or_insert_with(|| vec![0; g.fsbpseg.div_ceil(64) as usize].into());
        let mut twice = false;
        for frag in from..from + frags {
            let Some(word) = map.get_mut(frag / 64) else { return };
            twice |= *word & 1 << (frag % 64) != 0;
            *word |= 1 << (frag % 64);
        }
        if twice {
            let message = format!("{what} at {} ({}) belongs to something else as well", live.addr, live.lbn);
            self.problem(Phase::Inodes, "duplicate", Some(ino), message);
            return;
        }
        self.live.push(live);
    }

    /// The list of free inodes: every one that is not in use is on it once.
    fn free_inodes(&mut self) -> Result<(), LfsError> {
        self.asked(Phase::FreeInodes)?;
        let ifile = &self.image.ifile;
        let mut listed = vec![false; ifile.map.len()];
        let mut problems = Vec::new();
        let mut last = Ino(0);
        for ino in ifile.free_list() {
            match (ifile.entry(ino), listed.get_mut(ino.0 as usize)) {
                (Some(entry), _) if entry.daddr != 0 || ino <= IFILE_INO => {
                    problems.push((ino, "is in use, and on the list of free inodes"));
                    break;
                }
                (Some(_), Some(seen)) if !*seen => *seen = true,
                (Some(_), _) => {
                    problems.push((ino, "is on the list of free inodes twice"));
                    break;
                }
                (None, _) => {
                    problems.push((ino, "is on the list of free inodes, and there is no such inode"));
                    break;
                }
            }
            last = ino;
        }
        let all = (0_u32..).map(Ino).zip(&ifile.map).zip(&listed);
        let lost = all.filter(|((ino, entry), listed)| {
            *ino > IFILE_INO && entry.daddr == 0 && !**listed && entry.nextfree != InodeMapEntry::ORPHAN
        });
        if problems.is_empty() {
            problems.extend(lost.map(|((ino, _), _)| (ino, "is not in use, and not on the list of free inodes")));
        }
        for (ino, message) in problems {
            self.problem(Phase::FreeInodes, "free-list", Some(ino), message);
        }
        if last.0 != ifile.info.free_tail && ifile.info.free_head != 0 {
            let message =
                format!("the list of free inodes ends with {last}, its tail is said to be {}", ifile.info.free_tail);
            self.problem(Phase::FreeInodes, "free-tail", None, message);
        }
        Ok(())
    }

    /// The superblock's counters.
    fn counters(&mut self) -> Result<(), LfsError> {
        self.asked(Phase::Counters)?;
        let (g, sb, ifile) = (self.g, &self.image.sb.f, &self.image.ifile);
        let clean = ifile.usage.iter().filter(|u| u.is_clean()).count() as u32;
        let dirty = ifile.usage.iter().filter(|u| !u.is_clean());
        let meta_frags = |u: &SegmentUsage| {
            u64::from(u.nsums) * u64::from(g.sum_frags()) + u64::from(u.ninos) * u64::from(g.ib_frags())
        };
        let meta: u64 = dirty.map(meta_frags).sum();
        let nfiles = ifile.in_use().count() as u32;
        let contents = &mut self.report.contents;
        contents.meta_frags = meta;
        contents.clean_segments = clean.into();
        contents.dirty_segments = u64::from(g.nseg - clean);
        contents.live_bytes = self.nbytes.iter().sum();
        let label = g.frags_of(LABEL_BYTES.into()).saturating_sub(sb.s0addr);
        contents.free_frags = i64::from(sb.dsize) - i64::from(label) - (contents.data_frags + meta) as i64;
        contents.available_frags = available(sb, &g, &ifile.usage).into();
        let (free, avail) = (contents.free_frags, contents.available_frags);
        let exact = [
            ("nclean", u64::from(sb.nclean), u64::from(clean)),
            ("clean segments of the cleaner information", ifile.info.clean.into(), clean.into()),
            ("dirty segments of the cleaner information", ifile.info.dirty.into(), u64::from(g.nseg - clean)),
            ("dmeta", sb.dmeta.max(0).unsigned_abs().into(), meta),
            ("freehd", sb.freehd.into(), ifile.info.free_head.into()),
        ];
        for (name, found, expected) in exact {
            if found != expected {
                self.problem(Phase::Counters, "counter", None, format!("{name} is {found}, should be {expected}"));
            }
        }
        // NetBSD's newfs_lfs counts half of the inode blocks, and its fsck_lfs none of them (pass5.c).
        let counted = |u: &SegmentUsage| (u64::from(u.nbytes) + u64::from(u.nsums) * u64::from(g.sumsize)) >> g.fshift;
        let used: u64 = ifile.usage.iter().filter(|u| !u.is_clean()).map(counted).sum();
        let bfree = free.max(i64::from(sb.dsize) - i64::from(label) - used as i64);
        // newfs_lfs does not count the ifile and the root: nfiles stays low for ever.
        let bounds = [
            ("bfree", sb.bfree.into(), bfree),
            ("avail", sb.avail.into(), avail),
            ("nfiles", sb.nfiles.into(), nfiles.into()),
        ];
        for (name, found, most) in bounds {
            let found: i64 = found;
            if found > most {
                self.problem(Phase::Counters, "counter", None, format!("{name} is {found}, can be {most} at most"));
            }
        }
        self.places(sb.curseg, sb.nextseg, sb.offset);
        Ok(())
    }

    /// Where the log goes on: in a segment that is being written, then in one that is clean.
    fn places(&mut self, curseg: u32, nextseg: u32, offset: u32) {
        let (g, ifile) = (self.g, &self.image.ifile);
        let segment = |addr: u32| g.segment_of(FragAddr(addr)).filter(|s| g.segment_base(*s).0 == addr);
        let is_clean = |s: SegNo| ifile.usage(s).is_some_and(SegmentUsage::is_clean);
        let current = segment(curseg);
        if current.is_none_or(is_clean) {
            let message = format!("curseg {curseg} is not the beginning of a segment in use");
            self.problem(Phase::Counters, "place", None, message);
        }
        // A full segment's log ends at its end.
        let within = current.is_some_and(|s| (g.segment_base(s).0..=g.segment_end(s).0).contains(&offset));
        if !within {
            let message = format!("offset {offset} is not in the segment at {curseg}");
            self.problem(Phase::Counters, "place", None, message);
        }
        if !segment(nextseg).is_some_and(is_clean) {
            let message = format!("nextseg {nextseg} is not the beginning of a clean segment");
            self.problem(Phase::Counters, "place", None, message);
        }
    }
}
