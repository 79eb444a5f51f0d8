//! What happened, with everything that a crash may be measured by: the log of writes, the tree after each call, what
//! each file held, and what was promised when.

use crate::names::{NamesOverTime, all_entries};
use crate::{Content, Found, Identity, Kind, Op, Start, Tree};
use device::crash::Event;
use device::store::Frozen;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// A file that was there at some time.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) kind: Kind,
    /// What it held after each call that changed that.
    pub(crate) versions: Vec<(u32, Arc<Content>)>,
    /// Calls after which it was promised to be on the disk, with the length of the log then.
    pub(crate) promised: Vec<(u32, usize)>,
    /// Calls that changed its names.
    pub(crate) named: Vec<u32>,
    /// Whether its bytes are known: not if the file system made them itself.
    pub(crate) known: bool,
}

impl File {
    pub(crate) fn new(call: u32, kind: Kind, content: Arc<Content>) -> File {
        let (versions, named) = (vec![(call, content)], vec![call]);
        File { kind, versions, promised: Vec::new(), named, known: true }
    }

    pub(crate) fn content(&self) -> Arc<Content> {
        self.versions.last().map(|(_, content)| content.clone()).unwrap_or_default()
    }

    /// The last call up to `call` that changed its names.
    pub(crate) fn named_by(&self, call: u32) -> Option<u32> {
        self.named.iter().rev().find(|named| **named <= call).copied()
    }
}

/// A run that is over: call 0 is the beginning.
#[derive(Clone, Debug)]
pub struct History {
    /// The disk before the first write.
    pub base: Frozen,
    /// Requests that were completed, in that order.
    pub log: Vec<Event>,
    /// When each of them was completed, nanoseconds of the laboratory's clock.
    pub(crate) completed_ns: Vec<u64>,
    /// When it began.
    pub(crate) begun_ns: u64,
    /// The number of the call during which each entry of the log was completed.
    pub(crate) call_of: Vec<u32>,
    /// The length of the log when each call had returned.
    pub(crate) returned: Vec<usize>,
    /// The names after each call.
    pub(crate) trees: Vec<Arc<Tree>>,
    /// The same by name, worked out when it is first asked for.
    pub(crate) names: OnceLock<NamesOverTime>,
    /// The same with the directory of each instead of its path.
    pub(crate) entries: OnceLock<NamesOverTime>,
    pub(crate) files: BTreeMap<Identity, File>,
    /// Calls after which all before them was promised to be on the disk, with the length of the log then.
    pub(crate) synced: Vec<(u32, usize)>,
    /// What each call did, as operations that can be made again: none for a call that changed nothing.
    pub(crate) ops: Vec<(u32, Op)>,
    /// The operations that were asked for, if that is how it came about: with those that were refused.
    pub(crate) script: Option<Vec<Op>>,
    /// Added to the numbers of calls in stamps, so that those of one life are greater than those of the life before.
    pub(crate) stamp_from: u32,
    /// Entries that the laboratory's log had before the history began.
    pub(crate) logged_before: u64,
    /// Bytes of a full block of the file system.
    pub(crate) block_bytes: u64,
    /// Calls that found no room.
    pub out_of_space: u32,
    /// Bytes that it takes of memory.
    pub(crate) held_bytes: u64,
    /// Whether there was no memory to keep more of it: what came afterwards is left out.
    pub cut_short: bool,
}

impl History {
    /// Nothing has happened to a disk that shows `seen`.
    pub(crate) fn new(base: Frozen, seen: &Found, stamp_from: u32) -> History {
        let begun =
            |(id, (kind, content)): (&Identity, &(Kind, Arc<Content>))| (*id, File::new(0, *kind, content.clone()));
        History {
            base,
            log: Vec::new(),
            completed_ns: Vec::new(),
            begun_ns: 0,
            call_of: Vec::new(),
            returned: vec![0],
            trees: vec![Arc::new(seen.tree.clone())],
            names: OnceLock::new(),
            entries: OnceLock::new(),
            files: seen.files.iter().map(begun).collect(),
            synced: vec![(0, 0)],
            ops: Vec::new(),
            script: None,
            stamp_from,
            logged_before: 0,
            block_bytes: 0,
            out_of_space: 0,
            held_bytes: 0,
            cut_short: false,
        }
    }

    /// The last call.
    pub fn last_call(&self) -> u32 {
        self.trees.len() as u32 - 1
    }

    /// When each name led where. The history is over.
    pub(crate) fn names(&self) -> &NamesOverTime {
        self.names.get_or_init(|| NamesOverTime::new(&self.trees))
    }

    /// The same, each with the directory that it is in.
    pub(crate) fn entries(&self) -> &NamesOverTime {
        self.entries.get_or_init(|| NamesOverTime::new(&all_entries(&self.trees)))
    }

    /// What it begins with.
    pub fn start(&self) -> Start {
        let files = self.files.iter().filter(|(_, file)| file.versions.first().is_some_and(|(call, _)| *call == 0));
        let files = files
            .map(|(id, file)| (*id, (file.kind, file.versions.first().map(|(_, v)| v.clone()).unwrap_or_default())));
        let tree = self.trees.first().map(|tree| (**tree).clone()).unwrap_or_default();
        Start { image: self.base.clone(), seen: Found { tree, files: files.collect() }, calls: self.stamp_from }
    }

    /// What was done, so that it can be done again: what was asked for, or else what changed something.
    pub fn ops(&self) -> Vec<Op> {
        self.script.clone().unwrap_or_else(|| self.ops.iter().map(|(_, op)| op.clone()).collect())
    }

    /// A number for what a state is measured by when `reached` entries of the log are complete: two histories that have
    /// the same measure it alike.
    pub(crate) fn measure(&self, reached: usize) -> u64 {
        use std::hash::{Hash as _, Hasher as _};
        let mut hasher = rustc_hash::FxHasher::default();
        let last = self.last_at(reached);
        for (call, op) in self.ops.iter().take_while(|(call, _)| *call <= last) {
            (call, op).hash(&mut hasher);
        }
        self.returned_at(reached).hash(&mut hasher);
        for (call, at) in self.synced.iter().filter(|(_, at)| *at <= reached) {
            (call, at == &0).hash(&mut hasher);
        }
        for (id, file) in &self.files {
            let promised = file.promised.iter().filter(|(_, at)| *at <= reached).map(|(call, _)| *call).max();
            (id, promised).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The last call of which anything can be on the disk then: the power may have failed at any time until the next
    /// request was complete.
    pub(crate) fn last_at(&self, reached: usize) -> u32 {
        self.call_of.get(reached).copied().unwrap_or(u32::MAX).min(self.last_call())
    }

    /// The last call that had returned.
    pub(crate) fn returned_at(&self, reached: usize) -> u32 {
        (self.returned.partition_point(|at| *at <= reached) as u32).saturating_sub(1).min(self.last_at(reached))
    }
}
