//! The verdict on a state: what recovery has made of it, against what had happened and was promised.

use crate::found::is_lost_found;
use crate::history::File;
use crate::names::entries;
use crate::stamp::{STAMP_BYTES, Stamp};
use crate::{Content, Found, History, Identity, Kind, Names, Recovered, Tree, Unrecoverable};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How bad a crash was. The later, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Nothing had to be repaired, and everything is as it was at some moment.
    Clean,
    /// The same, after repairs.
    Repaired,
    /// Names, lengths or bytes are as they were at no moment; nobody had been promised them.
    UnsyncedLost,
    /// Two files had a block, a file has another's data or name, or the check cannot make it consistent.
    Unresolvable,
    /// What was promised to be on the disk is not there.
    PromiseBroken,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 5] =
        [Class::Clean, Class::Repaired, Class::UnsyncedLost, Class::Unresolvable, Class::PromiseBroken];

    /// As a table names it.
    pub fn title(self) -> &'static str {
        match self {
            Class::Clean => "clean",
            Class::Repaired => "repaired without loss",
            Class::UnsyncedLost => "repaired, lost what nobody had synced",
            Class::Unresolvable => "unresolvable",
            Class::PromiseBroken => "lost after fsync",
        }
    }
}

/// What a state is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How bad.
    pub class: Class,
    /// Why it is not better; empty for the first two classes.
    pub why: String,
    /// Whether some file shows bytes that were on the disk before it had the block: its own never got there.
    pub exposed: bool,
}

impl Verdict {
    fn worse(&mut self, class: Class, why: impl FnOnce() -> String) {
        if class > self.class {
            (self.class, self.why) = (class, why());
        }
    }
}

/// Judges what recovery has made of the disk that a crash left when `reached` entries of the log were complete.
pub fn judge(history: &History, reached: usize, recovered: &Result<Recovered, Unrecoverable>, names: Names) -> Verdict {
    let mut verdict = Verdict { class: Class::Clean, why: String::new(), exposed: false };
    let recovered = match recovered {
        Ok(recovered) => recovered,
        Err(Unrecoverable(why)) => {
            verdict.worse(Class::Unresolvable, || why.clone());
            return verdict;
        }
    };
    if recovered.repaired > 0 {
        verdict.worse(Class::Repaired, String::new);
    }
    if let Some(beyond) = &recovered.beyond {
        verdict.worse(Class::Unresolvable, || beyond.clone());
    }
    if let Some(shared) = &recovered.shared {
        verdict.worse(Class::Unresolvable, || format!("a block of two files: {shared}"));
    }
    let moment = Moment::new(history, reached, names);
    let found = &recovered.found;
    if names.are_in_order() {
        moment.names_in_order(found, &mut verdict);
    } else {
        moment.names(found, &mut verdict);
    }
    moment.promised_files(found, &mut verdict);
    for (id, (kind, content)) in &found.files {
        if *kind == Kind::Directory {
            continue;
        }
        match history.files.get(id) {
            None => verdict.worse(Class::Unresolvable, || format!("{} was never made", shown(found, *id))),
            Some(file) if file.kind != *kind => {
                // Of a symbolic link that has no target yet fsck makes a file.
                let class = match (names, moment.promised(file)) {
                    (Names::InOrder | Names::Journaled { .. }, _) => Class::Unresolvable,
                    (_, Some(_)) => Class::PromiseBroken,
                    (_, None) => Class::UnsyncedLost,
                };
                verdict.worse(class, || format!("{} has become {kind:?}", shown(found, *id)));
            }
            Some(file) => moment.content(found, *id, file, content, &mut verdict),
        }
    }
    verdict
}

/// A file as a person knows it.
fn shown(found: &Found, id: Identity) -> String {
    let path = found.tree.iter().find(|(_, of)| **of == id).map_or("?", |(path, _)| path);
    format!("'{path}' (inode {}, generation {})", id.0, id.1)
}

/// What holds at a point.
struct Moment<'a> {
    history: &'a History,
    reached: usize,
    names: Names,
    /// Everything up to this call was synced.
    synced: u32,
    /// Names are not older than after this call.
    names_since: u32,
    /// Nothing is newer than after this call.
    last: u32,
}

impl<'a> Moment<'a> {
    fn new(history: &'a History, reached: usize, names: Names) -> Moment<'a> {
        let last = history.last_at(reached);
        let promises = history.synced.iter().filter(|(_, at)| *at <= reached);
        let synced = promises.map(|(call, _)| *call).max().unwrap_or(0);
        let mut moment = Moment { history, reached, names, synced, names_since: synced, last };
        moment.names_since = match names {
            Names::AfterSync | Names::Entries => synced,
            Names::AtReturn => synced.max(history.returned_at(reached)),
            Names::InOrder => {
                let named = |file: &File| moment.promised(file).and_then(|since| file.named_by(since));
                synced.max(history.files.values().filter_map(named).max().unwrap_or(0))
            }
            Names::Journaled { at_return, .. } => {
                let promised = history.files.values().filter_map(|file| moment.promised(file)).max().unwrap_or(0);
                synced.max(promised).max(if at_return { history.returned_at(reached) } else { 0 })
            }
        };
        moment
    }

    /// The last call whose effect on a file was promised.
    fn promised(&self, file: &File) -> Option<u32> {
        let own = file.promised.iter().filter(|(_, at)| *at <= self.reached).map(|(call, _)| *call).max();
        let was_there = file.versions.first().is_some_and(|(call, _)| *call <= self.synced);
        own.max(was_there.then_some(self.synced))
    }

    /// The calls whose names may be there.
    fn calls(&self) -> std::ops::Range<u32> {
        self.names_since..self.last.max(self.names_since) + 1
    }

    /// The trees that may be there, each once.
    fn trees(&self) -> Vec<&'a Arc<Tree>> {
        let calls = self.calls();
        let calls = calls.start as usize..calls.end as usize;
        let mut trees: Vec<&Arc<Tree>> = self.history.trees.get(calls).unwrap_or_default().iter().collect();
        trees.dedup_by(|a, b| Arc::ptr_eq(a, b));
        trees
    }

    /// Why names are as they should not be: a promise, or nothing at all.
    fn earlier(&self, holds: impl Fn(&Tree) -> bool) -> bool {
        let before = self.history.trees.get(..self.names_since as usize).unwrap_or_default();
        before.iter().rev().any(|tree| holds(tree))
    }

    /// The tree is as it was after some call.
    fn names_in_order(&self, found: &Found, verdict: &mut Verdict) {
        let trees = self.trees();
        if trees.iter().rev().any(|tree| ***tree == found.tree) {
            return;
        }
        let expected = trees.last().map(|tree| (***tree).clone()).unwrap_or_default();
        let (more, less) = differences(&found.tree, &expected);
        let why = || {
            let (first, last) = (self.names_since, self.last);
            format!(
                "the names are as after no call from {first} to {last}; against the last, more {more:?}, less {less:?}"
            )
        };
        let class = if self.earlier(|tree| *tree == found.tree) { Class::PromiseBroken } else { Class::Unresolvable };
        verdict.worse(class, why);
    }

    /// Each name by itself.
    fn names(&self, found: &Found, verdict: &mut Verdict) {
        let calls = self.calls();
        let by_entry = self.names == Names::Entries;
        let names = if by_entry { self.history.entries() } else { self.history.names() };
        let (mut all, mut visible) = (Cow::Borrowed(&found.tree), Cow::Borrowed(&found.tree));
        if by_entry {
            visible.to_mut().retain(|path, _| !is_lost_found(path));
            (all, visible) = (Cow::Owned(entries(&found.tree)), Cow::Owned(entries(&visible)));
        }
        for (path, id) in visible.iter().filter(|(path, _)| by_entry || !is_lost_found(path)) {
            if names.led(path, *id, &calls) {
                continue;
            }
            if names.led(path, *id, &(0..self.names_since)) {
                verdict.worse(Class::PromiseBroken, || format!("the name '{path}' was removed for good, and is back"));
            } else {
                let why = || match names.last(path) {
                    Some(was) => format!(
                        "the name '{path}' leads to another file: {id:?}, inode and generation, instead of {was:?}"
                    ),
                    None => format!("the name '{path}' was never made"),
                };
                verdict.worse(Class::Unresolvable, why);
            }
        }
        let Some(first) = self.history.trees.get(calls.start as usize) else { return };
        let promised = if by_entry { Cow::Owned(entries(first)) } else { Cow::Borrowed(&**first) };
        let stable = promised.iter().filter(|(path, id)| names.always_led(path, **id, &calls));
        for (path, id) in stable.filter(|(path, id)| all.get(*path) != Some(id)) {
            let why = || format!("the name '{path}' was promised, and is not there (inode {})", id.0);
            verdict.worse(Class::PromiseBroken, why);
        }
        // A file that is being renamed has one name or the other.
        let there: BTreeSet<Identity> =
            found.tree.iter().filter(|(path, _)| !is_lost_found(path)).map(|(_, id)| *id).collect();
        let named: BTreeSet<Identity> =
            first.iter().filter(|(path, _)| !is_lost_found(path)).map(|(_, id)| *id).collect();
        for id in named.iter().filter(|id| names.always_named(**id, &calls) && !there.contains(id)) {
            let why = || format!("inode {}, generation {}, always had a name, and has none", id.0, id.1);
            verdict.worse(Class::PromiseBroken, why);
        }
    }

    /// What was promised is there, under whatever name, if it was not removed.
    fn promised_files(&self, found: &Found, verdict: &mut Verdict) {
        for (id, file) in &self.history.files {
            let Some(since) = self.promised(file) else { continue };
            // Of directories the names say it.
            if found.files.contains_key(id) || file.kind == Kind::Directory {
                continue;
            }
            // Of a promise at the very end nothing can have been removed since.
            if since > self.last || self.history.names().always_named(*id, &(since..self.last + 1)) {
                let why =
                    || format!("inode {}, generation {}, was promised by call {since} and is not there", id.0, id.1);
                verdict.worse(Class::PromiseBroken, why);
            }
        }
    }

    /// The last call that has changed a range, or has made the file reach into it.
    fn last_change(&self, versions: &[(u32, Arc<Content>)], at: u64, len: u64) -> Option<u32> {
        let reaches = |content: &Content| content.len() > at;
        let changes = |old: &Content, new: &Content| {
            reaches(old) != reaches(new) || new.differs_at(old, at).is_some_and(|first| first < at + len)
        };
        let pairs = versions.iter().zip(versions.iter().skip(1)).rev();
        pairs.into_iter().find(|((_, old), (_, new))| changes(old, new)).map(|(_, (call, _))| *call)
    }

    /// What a file holds.
    fn content(&self, found: &Found, id: Identity, file: &File, content: &Content, verdict: &mut Verdict) {
        let since = self.promised(file);
        let first = file.versions.partition_point(|(call, _)| *call <= since.unwrap_or(0)).saturating_sub(1);
        let behind = file.versions.partition_point(|(call, _)| *call <= self.last);
        let versions = file.versions.get(first..behind.max(first + 1)).unwrap_or_default();
        if !file.known || versions.iter().rev().any(|(_, version)| **version == *content) {
            return;
        }
        let name = || shown(found, id);
        if self.names == Names::InOrder {
            let pairs = versions.windows(2);
            if pairs.into_iter().any(|pair| matches!(pair, [(_, old), (_, new)] if content.is_between(old, new))) {
                return;
            }
            let older = file.versions.get(..first).unwrap_or_default();
            let older = older.iter().any(|(_, version)| **version == *content);
            let class = if older { Class::PromiseBroken } else { Class::Unresolvable };
            let lengths: Vec<_> = versions.iter().map(|(call, version)| (*call, version.len())).collect();
            let (len, last) = (content.len(), self.last);
            verdict.worse(class, || {
                format!("{} of {len} bytes is as after no call from {since:?} to {last}: lengths {lengths:?}", name())
            });
            return;
        }
        self.bytes(&name, (id, since.is_some()), versions, content, verdict);
    }

    /// Each piece of a file by itself: blocks are written in any order.
    fn bytes(
        &self,
        name: &dyn Fn() -> String,
        (id, promised): (Identity, bool),
        versions: &[(u32, Arc<Content>)],
        content: &Content,
        verdict: &mut Verdict,
    ) {
        let lengths = || versions.iter().map(|(_, version)| version.len());
        let (least, most) = (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0));
        let len = content.len();
        if !(least..=most).contains(&len) {
            // A log has lengths, too: a longer one from before the promise is as wrong as a shorter one.
            let logged = matches!(self.names, Names::Journaled { .. });
            let class = if promised && (len < least || logged) { Class::PromiseBroken } else { Class::UnsyncedLost };
            verdict.worse(class, || format!("{} has {len} bytes, and never had from {least} to {most}", name()));
        }
        let mut pieces = BTreeSet::new();
        for (_, version) in versions {
            let mut from = 0;
            while let Some(at) = content.differs_at(version, from) {
                pieces.insert(at / STAMP_BYTES as u64);
                from = (at / STAMP_BYTES as u64 + 1) * STAMP_BYTES as u64;
            }
        }
        let piece_of = |content: &Content, at: u64| {
            let mut piece = [0; STAMP_BYTES];
            content.read(at, &mut piece);
            piece
        };
        for at in pieces.into_iter().map(|number| number * STAMP_BYTES as u64).filter(|at| *at < len) {
            let here = piece_of(content, at);
            let expected: Vec<_> = versions.iter().map(|(call, version)| (*call, piece_of(version, at))).collect();
            if expected.iter().any(|(_, piece)| *piece == here) {
                continue;
            }
            // Behind the end of the shortest version a piece may be cut anywhere.
            let cut = at + STAMP_BYTES as u64 > least && expected.iter().any(|(_, piece)| is_cut(&here, piece));
            if cut {
                continue;
            }
            let changed = self.last_change(versions, at, STAMP_BYTES as u64);
            // A hole whose block is being written comes with it.
            let block = self.history.block_bytes.max(STAMP_BYTES as u64);
            let is_hole = expected.iter().all(|(_, piece)| *piece == [0; STAMP_BYTES]);
            let changed = match changed {
                None if is_hole => self.last_change(versions, at / block * block, block),
                changed => changed,
            };
            let other = Stamp::read(&here).filter(|stamp| stamp.file != id || stamp.at_byte != at);
            let newest = changed.map_or(0, |call| call + self.history.stamp_from);
            match (other, changed) {
                (Some(stamp), _) if stamp.file != id && stamp.call > newest => {
                    let (of, call) = (stamp.file.0, stamp.call);
                    verdict.worse(Class::Unresolvable, || {
                        format!("{} has data of inode {of}, written by call {call}, at byte {at}", name())
                    });
                }
                (_, None) => {
                    let class = if promised { Class::PromiseBroken } else { Class::UnsyncedLost };
                    let by = if promised { "were promised" } else { "were there before" };
                    verdict.worse(class, || format!("{}: the bytes at {at} {by}, and are others", name()));
                }
                (_, Some(_)) => {
                    verdict.exposed |= here != [0; STAMP_BYTES];
                    let never = matches!(self.names, Names::Journaled { ordered: true, .. });
                    let class = if never { Class::Unresolvable } else { Class::UnsyncedLost };
                    verdict.worse(class, || format!("{}: the bytes at {at} were never written", name()));
                }
            }
        }
    }
}

/// Whether a piece is the beginning of another, and zeros.
fn is_cut(piece: &[u8; STAMP_BYTES], whole: &[u8; STAMP_BYTES]) -> bool {
    let same = piece.iter().zip(whole).take_while(|(a, b)| a == b).count();
    piece.iter().skip(same).all(|byte| *byte == 0)
}

fn differences(found: &Tree, expected: &Tree) -> (Vec<String>, Vec<String>) {
    let only = |one: &Tree, other: &Tree| {
        let missing = one.iter().filter(|(path, id)| other.get(*path) != Some(id));
        missing.map(|(path, id)| format!("{path} ({}, {})", id.0, id.1)).collect::<Vec<_>>()
    };
    (only(found, expected), only(expected, found))
}
