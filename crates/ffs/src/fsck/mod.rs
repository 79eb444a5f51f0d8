//! Checking and repairing, in the five phases of BSD's fsck.
//!
//! A check is a repair that is thrown away: every phase relies on what the one before put right, so [`fsck`] always
//! repairs the store that it is given. To look without touching, give it an [`Overlay`](crate::Overlay).
//!
//! Where BSD's fsck offers to clear a file, this one keeps what can be kept: a bad block pointer becomes a hole, a
//! block claimed twice stays with the file that agrees with itself and is copied for the other, a size that contradicts
//! blocks and their count is set by them, an entry that cannot be followed is skipped over, and what has lost its name
//! goes to `lost+found`. It does not ask.

mod background;
mod claims;
mod maps;
mod names;
mod pointers;
mod report;
pub(crate) mod superblock;

pub use background::{Left, background, background_planted};
pub use report::{Contents, Finding, Phase, Problem, Report};

use crate::format::{Bitmap, CylinderGroup, Dinode, FragAddr, Geometry, Ino, LogPlace, Superblock};
use crate::image::{Located, read_inode, write_inode};
use crate::log::Replayed;
use crate::planted::{Bug, Planted};
use crate::{FfsError, Store};
use std::collections::{BTreeMap, BTreeSet};
use ufs::ImageError as _;

/// Passes over everything at most. A repair can bring up what it hid, such as the size of a file whose blocks turned
/// out to be another's, and so there is another pass after every one that repaired something.
const PASSES: usize = 8;

/// Checks the file system in a store and repairs it there. `go_on` is asked now and then.
pub fn fsck<S: Store>(store: S, go_on: &mut dyn FnMut(Phase) -> bool) -> Result<Report, FfsError> {
    fsck_planted(store, None, go_on)
}

/// The same with a bug that a test must find.
#[doc(hidden)]
pub fn fsck_planted<S: Store>(
    mut store: S,
    planted: Planted,
    go_on: &mut dyn FnMut(Phase) -> bool,
) -> Result<Report, FfsError> {
    fsck_any(&mut store, planted, go_on)
}

/// Whatever store it is, the code is the same: it is too long to have it in the program once for each kind.
fn fsck_any(
    mut store: &mut dyn Store,
    planted: Planted,
    go_on: &mut dyn FnMut(Phase) -> bool,
) -> Result<Report, FfsError> {
    let mut chosen = superblock::choose(&store)?;
    let log = chosen.sb.log_place();
    // What the log has is put into its place before anything is checked.
    let replayed = log.map(|_| crate::log::replay_planted(&mut store, planted));
    if log.is_some() {
        chosen = superblock::choose(&store)?;
    }
    let mut report = Report::new(&chosen);
    if let (Some(place), Some(replayed)) = (log, replayed) {
        after_replay(&mut store, place, &mut chosen, replayed, &mut report)?;
    }
    let home_byte = chosen.home_byte;
    let mut sb = superblock::repaired(&mut store, chosen, &mut report)?;
    for pass in 1..=PASSES {
        let repaired = report.repaired();
        let mut check = Check::new(&mut store, sb, home_byte, report, go_on)?;
        check.planted = planted;
        check.phases()?;
        (report, sb) = (check.report, check.sb);
        if report.repaired() == repaired || planted == Some(Bug::FsckGroupsFirst) {
            break;
        }
        if pass == PASSES {
            let message = format!("pass {PASSES} still repaired something; check what it has left");
            report.add(Problem {
                phase: Phase::Groups,
                kind: Finding::Unsettled,
                ino: None,
                at_byte: None,
                message,
                repair: None,
            });
        }
    }
    superblock::finish(&mut store, &mut sb, home_byte, &report)?;
    Ok(report)
}

/// Says what replaying the log has done. A log that cannot be replayed is emptied, or forgotten where the superblock is
/// wrong about its place; the phases put right what they find.
fn after_replay<S: Store>(
    store: &mut S,
    place: LogPlace,
    chosen: &mut Located,
    replayed: Result<Option<Replayed>, FfsError>,
    report: &mut Report,
) -> Result<(), FfsError> {
    let g = &chosen.geometry;
    let mut add = |kind, message: String, repair: &str| {
        let (at_byte, repair) = (Some(g.byte_of(place.first)), Some(repair.to_owned()));
        report.add(Problem { phase: Phase::Superblock, kind, ino: Some(place.ino), at_byte, message, repair });
    };
    match replayed {
        Ok(Some(done)) if !done.is_nothing() => {
            let (transactions, sectors, orphans) = (done.transactions, done.sectors, done.orphans);
            let message = format!(
                "the file system was not unmounted; its log has {transactions} transactions of {sectors} sectors in \
                 all, and {orphans} files without a name"
            );
            add(Finding::Log, message, "replayed");
        }
        Ok(_) => {}
        Err(FfsError::Io(error)) => return Err(FfsError::Io(error)),
        Err(error) => {
            let emptied = crate::log::empty_anew(store, place, g)?;
            if !emptied {
                chosen.sb.forget_log();
            }
            let repair = if emptied { "emptied" } else { "forgotten" };
            add(Finding::LogDamaged, format!("the log cannot be replayed: {error}"), repair);
        }
    }
    Ok(())
}

/// What an inode is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Free,
    File,
    Dir,
}

/// What is known of an inode.
#[derive(Clone, Copy, Debug)]
struct Known {
    kind: Kind,
    /// Its type as directory entries have it.
    entry_type: u8,
    /// Links it says it has.
    nlink: i16,
    /// Links found.
    found: i32,
}

/// A directory's place in the tree.
#[derive(Clone, Copy, Debug, Default)]
struct DirInfo {
    /// The directory that has its name.
    parent: Option<Ino>,
    /// Where its `..` leads.
    dotdot: Option<Ino>,
}

/// A pass over a file system.
struct Check<'a, S> {
    store: S,
    sb: Superblock,
    g: Geometry,
    home_byte: u64,
    report: Report,
    go_on: &'a mut dyn FnMut(Phase) -> bool,
    /// Groups as they are in the image; `None` where one cannot be read.
    on_disk: Vec<Option<CylinderGroup>>,
    /// Inodes of each group that have been written at least once.
    inited: Vec<u32>,
    known: Vec<Known>,
    /// Fragments that belong to something.
    claimed: Bitmap,
    /// Fragments that inodes lead to which are not settled yet: nothing new is put there.
    pending: Bitmap,
    /// Indirect blocks that were set aside with what they lead to, and their levels.
    looked_into: BTreeSet<(u64, usize)>,
    /// Where to look for a free block next.
    alloc_from: usize,
    /// Fragments that this pass has taken, and no inode had.
    filled: Vec<std::ops::Range<u64>>,
    /// Inodes that agree with themselves, and have a block that another one has as well.
    second: Vec<Ino>,
    /// Inodes whose size, block count and pointers do not agree.
    unsettled: Vec<Ino>,
    /// Inodes in use without a type.
    untyped: Vec<Ino>,
    symlinks: Vec<Ino>,
    /// Directories with blocks missing.
    holes: Vec<Ino>,
    dirs: BTreeMap<Ino, DirInfo>,
    lost_found: Option<Ino>,
    /// A bug that a test must find.
    planted: Planted,
}

impl<'a, S: Store> Check<'a, S> {
    fn new(
        store: S,
        sb: Superblock,
        home_byte: u64,
        report: Report,
        go_on: &'a mut dyn FnMut(Phase) -> bool,
    ) -> Result<Check<'a, S>, FfsError> {
        let g = sb.geometry(home_byte)?;
        let frags = usize::try_from(g.size_frags).map_err(|_| FfsError::NoFileSystem(": too large".to_owned()))?;
        let free = Known { kind: Kind::Free, entry_type: 0, nlink: 0, found: 0 };
        Ok(Check {
            store,
            sb,
            g,
            home_byte,
            report,
            go_on,
            on_disk: Vec::new(),
            inited: Vec::new(),
            known: vec![free; g.inodes() as usize],
            claimed: Bitmap::new(frags),
            pending: Bitmap::new(frags),
            looked_into: BTreeSet::new(),
            alloc_from: 0,
            filled: Vec::new(),
            second: Vec::new(),
            unsettled: Vec::new(),
            untyped: Vec::new(),
            symlinks: Vec::new(),
            holes: Vec::new(),
            dirs: BTreeMap::new(),
            lost_found: None,
            planted: None,
        })
    }

    /// One after the other; each relies on those before it.
    fn phases(&mut self) -> Result<(), FfsError> {
        if self.planted == Some(Bug::FsckGroupsFirst) {
            self.groups()?;
        }
        self.blocks_and_sizes()?;
        if self.planted != Some(Bug::FsckNoDuplicates) {
            self.duplicates()?;
        }
        if self.planted == Some(Bug::FsckLinksBeforeNames) {
            self.link_counts()?;
        }
        self.path_names()?;
        if self.planted != Some(Bug::FsckNoConnectivity) {
            self.connectivity()?;
        }
        if self.planted != Some(Bug::FsckLinksBeforeNames) {
            self.link_counts()?;
        }
        if self.planted != Some(Bug::FsckGroupsFirst) {
            self.groups()?;
        }
        Ok(())
    }

    fn problem(
        &mut self,
        phase: Phase,
        kind: Finding,
        place: Place,
        message: impl Into<String>,
        repair: impl Into<Option<&'static str>>,
    ) {
        let (ino, at_byte) = match place {
            Place::Inode(ino) => (Some(ino.0), self.g.inode_at(ino)),
            Place::InodeByte(ino, byte) => (Some(ino.0), Some(byte)),
            Place::Byte(byte) => (None, Some(byte)),
        };
        let repair = repair.into().map(str::to_owned);
        self.report.add(Problem { phase, kind, ino, at_byte, message: message.into(), repair });
    }

    /// Something in an inode's pointers that is none of the file's, and cleared.
    fn stray_pointer(&mut self, ino: Ino, message: impl Into<String>) {
        let kind = Finding::Pointer { beyond_end: false };
        self.problem(Phase::BlocksAndSizes, kind, Place::Inode(ino), message, "cleared");
    }

    fn asked(&mut self, phase: Phase) -> Result<(), FfsError> {
        if (self.go_on)(phase) { Ok(()) } else { Err(FfsError::interrupted()) }
    }

    fn known(&self, ino: Ino) -> Option<Known> {
        self.known.get(ino.0 as usize).copied()
    }

    fn known_mut(&mut self, ino: Ino) -> Option<&mut Known> {
        self.known.get_mut(ino.0 as usize)
    }

    fn inode(&self, ino: Ino) -> Result<Dinode, FfsError> {
        read_inode(&self.store, &self.g, ino)
    }

    fn put_inode(&mut self, ino: Ino, inode: &Dinode) -> Result<(), FfsError> {
        write_inode(&mut self.store, &self.g, ino, inode)
    }

    fn is_claimed(&self, addr: FragAddr, frags: u32) -> bool {
        (0..u64::from(frags)).any(|i| self.claimed.get((addr.0 + i) as usize))
    }

    /// Takes a free block.
    fn take_block(&mut self) -> Option<FragAddr> {
        let frag = self.g.frag as usize;
        let blocks = (self.g.size_frags as usize) / frag;
        for _ in 0..2 {
            for block in self.alloc_from..blocks {
                let at = block * frag;
                if self.claimed.bits(at, frag) == 0 && self.pending.bits(at, frag) == 0 {
                    self.claimed.put_range(at, frag, true);
                    self.alloc_from = block + 1;
                    self.filled.push(at as u64..(at + frag) as u64);
                    return Some(FragAddr(at as u64));
                }
            }
            if self.alloc_from == 0 {
                return None;
            }
            self.alloc_from = 0;
        }
        None
    }

    /// Takes free fragments that lie together in a block, where no whole block is free.
    fn take_fragments(&mut self, frags: u32) -> Option<FragAddr> {
        let (frag, frags) = (self.g.frag as usize, frags as usize);
        let blocks = (self.g.size_frags as usize) / frag;
        let places = (0..blocks).flat_map(|block| (0..=frag.saturating_sub(frags)).map(move |at| block * frag + at));
        let at = places
            .filter(|_| frags <= frag)
            .find(|at| self.claimed.bits(*at, frags) == 0 && self.pending.bits(*at, frags) == 0)?;
        self.claimed.put_range(at, frags, true);
        self.filled.push(at as u64..(at + frags) as u64);
        Some(FragAddr(at as u64))
    }
}

/// What a problem is about.
#[derive(Clone, Copy)]
enum Place {
    Inode(Ino),
    InodeByte(Ino, u64),
    Byte(u64),
}
