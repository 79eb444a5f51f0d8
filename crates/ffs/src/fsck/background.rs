//! The check in the background: what a crash of Soft Updates has left, as a snapshot shows it, for the file system to
//! give back while it is in use.
//!
//! The snapshot is checked by the same phases as any image, and nothing is written. Inodes that no name leads to and
//! space and numbers that nothing has were so when the snapshot was taken, and nobody can have come to them since. Link
//! counts may have changed; what is told of them is the difference. Anything else is for the full check.

use super::{Check, Finding, Kind, Phase, Problem, Report};
use crate::format::{FragAddr, GroupNo, Ino, ROOT_INO};
use crate::planted::{Bug, Planted};
use crate::{FfsError, Overlay, Store};
use kernel::Correction;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What a crash has left.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Left {
    /// Files and directories without a name; what has its names only below one of them goes with it.
    pub unnamed: u64,
    /// Inodes with names that count more links than these.
    pub link_counts: u64,
    /// Numbers marked as used that no inode has.
    pub inodes: u64,
    /// Fragments marked as used that nothing has.
    pub frags: u64,
    /// What the file system is to be told, in this order.
    #[serde(skip)]
    pub corrections: Vec<Correction>,
}

impl Left {
    /// Whether it has left nothing.
    pub fn is_nothing(&self) -> bool {
        self.corrections.is_empty()
    }
}

/// Checks a snapshot. `go_on` is asked now and then. What is more than a crash of Soft Updates leaves is an error.
pub fn background<S: Store>(snapshot: S, go_on: &mut dyn FnMut(Phase) -> bool) -> Result<Left, FfsError> {
    background_planted(snapshot, None, go_on)
}

/// The same with a bug that a test must find.
#[doc(hidden)]
pub fn background_planted<S: Store>(
    snapshot: S,
    planted: Planted,
    go_on: &mut dyn FnMut(Phase) -> bool,
) -> Result<Left, FfsError> {
    background_any(&mut Overlay::new(snapshot), planted, go_on)
}

fn background_any(
    mut store: &mut dyn Store,
    planted: Planted,
    go_on: &mut dyn FnMut(Phase) -> bool,
) -> Result<Left, FfsError> {
    let chosen = super::superblock::choose(&store)?;
    let mut report = Report::new(&chosen);
    let home_byte = chosen.home_byte;
    let sb = super::superblock::repaired(&mut store, chosen, &mut report)?;
    let mut check = Check::new(&mut store, sb, home_byte, report, go_on)?;
    check.planted = planted;
    check.blocks_and_sizes()?;
    check.duplicates()?;
    check.path_names()?;
    let left = check.left()?;
    // The rest says whether that is all.
    check.connectivity()?;
    check.link_counts()?;
    check.groups()?;
    let report = check.report;
    match report.beyond_soft_updates().or_else(|| not_given_back(&report.problems, &left)) {
        Some(problem) => Err(FfsError::NeedsFullCheck(problem.message.clone())),
        None => Ok(left),
    }
}

/// The first problem that Soft Updates may leave, and that is still one when all has been given back. Files have their
/// lengths, and directories one name, since the file system was mounted.
fn not_given_back<'a>(problems: &'a [Problem], left: &Left) -> Option<&'a Problem> {
    let goes = left.corrections.iter().filter_map(|correction| match correction {
        Correction::Names { dir: ino } | Correction::Links { ino, .. } => Some(ino.0),
        Correction::Number { .. } | Correction::Space { .. } => None,
    });
    let goes: BTreeSet<u32> = goes.collect();
    problems.iter().find(|problem| match problem.kind {
        Finding::BlockCount
        | Finding::Pointer { .. }
        | Finding::Size { .. }
        | Finding::DirectoryLink { .. }
        | Finding::DirectoryHole
        | Finding::Dots
        | Finding::EntryType { .. } => !problem.ino.is_some_and(|ino| goes.contains(&ino)),
        _ => false,
    })
}

impl<S: Store> Check<'_, S> {
    /// What is to be given back, known when all names have been read.
    fn left(&self) -> Result<Left, FfsError> {
        let mut left = Left::default();
        self.left_names(&mut left)?;
        self.left_links(&mut left)?;
        self.left_numbers(&mut left);
        self.left_space(&mut left);
        Ok(left)
    }

    /// Directories that no name leads to from the root, with how many are above them; nothing for a circle.
    fn unreached(&self) -> Option<BTreeMap<Ino, usize>> {
        let mut unreached = BTreeMap::new();
        for start in self.dirs.keys() {
            let (mut at, mut above, mut seen) = (*start, 0, BTreeSet::new());
            while at != ROOT_INO {
                if !seen.insert(at) {
                    return None;
                }
                let Some(parent) = self.dirs.get(&at).and_then(|info| info.parent) else {
                    unreached.insert(*start, above);
                    break;
                };
                (at, above) = (parent, above + 1);
            }
        }
        Some(unreached)
    }

    fn left_names(&self, left: &mut Left) -> Result<(), FfsError> {
        let circle = || FfsError::NeedsFullCheck("directories that lead to one another and not to the root".to_owned());
        let unreached = self.unreached().ok_or_else(circle)?;
        let mut deepest_first: Vec<(usize, Ino)> = unreached.into_iter().map(|(dir, above)| (above, dir)).collect();
        deepest_first.sort_unstable_by(|a, b| b.cmp(a));
        for (_, dir) in deepest_first {
            if self.planted != Some(Bug::BackgroundNamesStay) {
                left.corrections.push(Correction::Names { dir });
            }
        }
        Ok(())
    }

    fn left_links(&self, left: &mut Left) -> Result<(), FfsError> {
        let mut children: BTreeMap<Ino, i32> = BTreeMap::new();
        for parent in self.dirs.values().filter_map(|info| info.parent) {
            *children.entry(parent).or_default() += 1;
        }
        for ino in (ROOT_INO.0..self.g.inodes()).map(Ino) {
            let Some(known) = self.known(ino).filter(|known| known.kind != Kind::Free) else { continue };
            // Those that go with its names, where they have to, and those that it keeps.
            let (names, unnamed) = match known.kind {
                Kind::Dir => {
                    let named = ino == ROOT_INO || self.dirs.get(&ino).is_some_and(|info| info.parent.is_some());
                    (children.get(&ino).copied().unwrap_or(0) + if named { 2 } else { 0 }, !named)
                }
                _ => (known.found, known.found <= 0),
            };
            let links = i32::from(known.nlink).max(0) - names;
            if links == 0 && !unnamed {
                continue;
            }
            let Ok(mut links) = u32::try_from(links) else {
                let message = format!("inode {ino} has {names} links and counts {}", known.nlink);
                return Err(FfsError::NeedsFullCheck(message));
            };
            match unnamed {
                true => left.unnamed += 1,
                false => left.link_counts += 1,
            }
            if self.planted == Some(Bug::BackgroundCountsAllLinks) && !unnamed {
                links += 1;
            }
            left.corrections.push(Correction::Links { ino, links });
        }
        Ok(())
    }

    fn left_numbers(&self, left: &mut Left) {
        for (number, group) in (0..).zip(&self.on_disk) {
            let Some(group) = group else { continue };
            for index in 0..self.g.ipg {
                let ino = Ino(number * self.g.ipg + index);
                let used = group.used_inodes.get(index as usize)
                    || self.planted == Some(Bug::BackgroundNumbersOfNow) && index < 64;
                let free = self.known(ino).is_some_and(|known| known.kind == Kind::Free);
                if used && free && ino >= ROOT_INO {
                    left.inodes += 1;
                    left.corrections.push(Correction::Number { ino });
                }
            }
        }
    }

    fn left_space(&self, left: &mut Left) {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (number, group) in (0..).zip(&self.on_disk) {
            let Some(group) = group else { continue };
            let base = self.g.group_base(GroupNo(number)).0;
            for frag in 0..self.g.group_frags(GroupNo(number)) {
                let addr = base + u64::from(frag);
                let taken = self.claimed.get(addr as usize) && !self.filled.iter().any(|piece| piece.contains(&addr));
                let used = !group.free.get(frag as usize) || self.planted == Some(Bug::BackgroundSpaceOfNow);
                if taken || !used {
                    continue;
                }
                match runs.last_mut() {
                    Some((first, frags)) if *first + *frags == addr && frag > 0 => *frags += 1,
                    _ => runs.push((addr, 1)),
                }
            }
        }
        for (first, frags) in runs {
            left.frags += frags;
            let (at_byte, len_bytes) = (self.g.byte_of(FragAddr(first)), frags << self.g.fshift);
            left.corrections.push(Correction::Space { at_byte, len_bytes });
        }
    }
}
