//! What path resolution ([`trace::tree`]) costs, one step per component.

use super::annotated::{Annotated, NodeId, Role, SlotId, Step};
use super::names::{NameId, Names};
use super::tree::{Node, Tree, page_of};
use posix::FileKind;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use trace::tree::{self, Walk, What};
use trace::{Batch, PathId};

/// Steps of walks that are remembered, in all: beyond, a path that is used again is walked again.
const MEMO_STEPS_MAX: usize = 1 << 21;

/// The directories of a walk that was made before in this batch, so that a path used again costs one lookup here.
#[derive(Clone, Copy, Debug)]
struct Memo {
    epoch: u64,
    caller: Option<PathId>,
    from: u32,
    to: u32,
    dir: NodeId,
    /// The last component: where in the path, and its name.
    last_at: u32,
    last: NameId,
    slot: SlotId,
    lookups: u16,
}

/// The directories above the last component of a path, and where the walk starts.
#[derive(Clone, Copy, Debug)]
struct Above<'p> {
    /// Up to the last component.
    bytes: &'p [u8],
    caller: Option<PathId>,
}

impl<'p> Above<'p> {
    /// None if there is no directory to walk through.
    fn of(whole: &'p [u8], caller: Option<PathId>) -> Option<Above<'p>> {
        let slashes = whole.iter().rev().take_while(|&&b| b == b'/').count();
        let name = whole[..whole.len() - slashes].iter().rev().take_while(|&&b| b != b'/').count();
        let bytes = &whole[..whole.len() - slashes - name];
        (bytes.len() > 1).then_some(Above { bytes, caller })
    }

    fn hash(&self) -> u64 {
        FxBuildHasher.hash_one((self.bytes, self.caller))
    }
}

/// What the trace says must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Must {
    /// Nothing: the call failed.
    Nothing,
    /// The directory: the call may have made the last component.
    Parents,
    /// All of it; the last component is of this kind and length if the model does not know it yet.
    All(FileKind, u64),
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// At a file.
    Found,
    /// The last component is absent.
    Absent,
    /// At a missing component in the middle, at something that is no directory, or in a loop.
    Broken,
}

/// The result of a walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walked {
    pub end: End,
    /// The directory of the last component looked up.
    pub dir: NodeId,
    /// The slot of the last component looked up; [`SlotId::NONE`] if the path has no name (`/`, `..`).
    pub slot: SlotId,
    /// The file found.
    pub node: NodeId,
    /// Components looked up.
    pub lookups: u16,
    /// The step of the last component, to set its role once the call is understood.
    pub last_step: Option<usize>,
    /// The trace contradicted the model.
    pub surprise: bool,
}

/// The tree, what is remembered of walks until the batch ends, and what all walks have found.
#[derive(Debug)]
pub(super) struct Walker {
    pub(super) tree: Tree,
    /// By path: the directory that a relative walk starts in, and the epoch in which it was reached.
    starts: Vec<(NodeId, u64)>,
    memos: Vec<Option<Memo>>,
    /// By the hash of the directories that a path leads through ([`Above`]): one of the paths through them.
    memos_above: FxHashMap<u64, (PathId, Memo)>,
    memo_steps: Vec<Step>,
    interned: Interned,
    /// Counts changes after which a directory path may lead elsewhere.
    pub(super) directory_epoch: u64,
    /// Names that were there before the trace and that no snapshot told of.
    pub(super) discovered_names: u64,
    /// Directories that nothing but names deeper in them told of.
    pub(super) implied_directories: usize,
}

impl Walker {
    /// With an empty tree.
    pub(super) fn new() -> Walker {
        Walker {
            tree: Tree::new(),
            starts: Vec::new(),
            memos: Vec::new(),
            memos_above: FxHashMap::default(),
            memo_steps: Vec::new(),
            interned: Interned::new(),
            directory_epoch: 0,
            discovered_names: 0,
            implied_directories: 0,
        }
    }

    /// Another batch begins, with other paths.
    pub(super) fn begin_batch(&mut self, batch: &Batch) {
        self.starts.clear();
        self.memos.clear();
        self.memos.resize(batch.paths.len(), None);
        self.memos_above.clear();
        self.memo_steps.clear();
        self.interned.forget();
        self.tree.names.sweep();
    }

    /// A new file with a name.
    pub(super) fn add(&mut self, slot: SlotId, kind: FileKind, size_bytes: u64) -> NodeId {
        let node = self.tree.new_node(kind, size_bytes);
        self.tree.node_mut(node).report = u32::MAX;
        self.tree.attach(slot, node);
        node
    }

    /// Walks `path`, starting in `caller` if the trace says so, and emits what the walk costs.
    pub(super) fn walk(
        &mut self,
        out: &mut Annotated,
        batch: &Batch,
        path: PathId,
        caller: Option<PathId>,
        follow: bool,
        must: Must,
    ) -> Walked {
        let whole = batch.paths.get(path);
        if let Some(Some(memo)) = self.memos.get(path.0 as usize).copied()
            && memo.epoch == self.directory_epoch
            && memo.caller == caller
        {
            self.again(out, &memo);
            let hint = Some((memo.last, memo.slot));
            let walking = Walking { hint, ..Walking::new(self, out, memo.dir, must, true, memo.lookups) };
            return walking.along(&whole[memo.last_at as usize..], follow);
        }
        let above = Above::of(whole, caller);
        if let Some(memo) = above.as_ref().and_then(|above| self.above_memo(above, batch)) {
            self.again(out, &memo);
            let name = &whole[memo.last_at as usize..];
            let walked = Walking::new(self, out, memo.dir, must, true, memo.lookups).along(name, follow);
            self.remember_last(path, memo, name, &walked);
            return walked;
        }
        let (mut start, mut rest) = (NodeId::ROOT, whole);
        if let Some(caller) = caller {
            let prefix = batch.paths.get(caller);
            let boundary = prefix.ends_with(b"/") || whole.get(prefix.len()).is_none_or(|&c| c == b'/');
            if whole.starts_with(prefix) && boundary {
                start = self.start_of(out, batch, caller);
                rest = &whole[prefix.len()..];
                rest = &rest[rest.iter().take_while(|&&b| b == b'/').count()..];
            }
        }
        let steps_before = out.steps.len();
        let walked = Walking::new(self, out, start, must, true, 0).along(rest, follow);
        self.remember(out, steps_before, batch, path, caller, &walked);
        walked
    }

    /// Emits what a remembered walk costs up to the last component, in the directories as they are by now.
    fn again(&self, out: &mut Annotated, memo: &Memo) {
        let from = out.steps.len();
        out.steps.extend_from_slice(&self.memo_steps[memo.from as usize..memo.to as usize]);
        for step in &mut out.steps[from..] {
            let Step::Lookup { dir, slot, page, entries, .. } = step else {
                unreachable!("what is remembered are lookups")
            };
            let directory = self.tree.node(*dir);
            (*page, *entries) = (page_of(*slot, directory.dirent_bytes), directory.entries);
        }
    }

    /// Remembers the directories of a walk that met nothing out of the ordinary.
    fn remember(
        &mut self,
        out: &Annotated,
        before: usize,
        batch: &Batch,
        path: PathId,
        caller: Option<PathId>,
        walked: &Walked,
    ) {
        let Some(last) = walked.last_step.filter(|&at| at > before && walked.lookups > 1) else { return };
        let prefix = &out.steps[before..last];
        let plain = |step: &Step| matches!(step, Step::Lookup { .. });
        if walked.end == End::Broken || !prefix.iter().all(plain) || prefix.len() + 1 != usize::from(walked.lookups) {
            return;
        }
        // Behind a dot, the name looked up last is not the last of the path.
        let (whole, last) = (batch.paths.get(path), self.tree.slot(walked.slot).name);
        let slashes = whole.iter().rev().take_while(|&&b| b == b'/').count();
        let above = whole[..whole.len() - slashes].strip_suffix(self.tree.names.get(last));
        let Some(above) = above.filter(|above| above.ends_with(b"/")) else { return };
        if self.memo_steps.len() + prefix.len() > MEMO_STEPS_MAX {
            return;
        }
        let at = path.0 as usize;
        let from = self.memo_steps.len();
        self.memo_steps.extend_from_slice(prefix);
        let index = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let memo = Memo {
            epoch: self.directory_epoch,
            caller,
            from: index(from),
            to: index(self.memo_steps.len()),
            dir: walked.dir,
            last_at: index(above.len()),
            last,
            slot: walked.slot,
            lookups: walked.lookups - 1,
        };
        self.memos[at] = Some(memo);
        let above = Above { bytes: &whole[..memo.last_at as usize], caller };
        self.memos_above.insert(above.hash(), (path, memo));
    }

    /// A walk of this batch that went through the same directories.
    fn above_memo(&self, above: &Above<'_>, batch: &Batch) -> Option<Memo> {
        let &(path, memo) = self.memos_above.get(&above.hash())?;
        let same = memo.caller == above.caller && batch.paths.get(path)[..memo.last_at as usize] == *above.bytes;
        (same && memo.epoch == self.directory_epoch).then_some(memo)
    }

    /// Remembers a walk whose directories were remembered already.
    fn remember_last(&mut self, path: PathId, memo: Memo, name: &[u8], walked: &Walked) {
        let plain = walked.last_step.is_some() && walked.end != End::Broken && walked.lookups == memo.lookups + 1;
        if !plain {
            return;
        }
        let last = self.tree.slot(walked.slot).name;
        let slashes = name.iter().rev().take_while(|&&b| b == b'/').count();
        // A path that ends in a dot has looked up another name last.
        if self.tree.names.get(last) == &name[..name.len() - slashes] {
            self.memos[path.0 as usize] = Some(Memo { last, slot: walked.slot, ..memo });
        }
    }

    /// The directory a relative walk starts in: reached long ago, so nothing is charged; a process keeps it in the
    /// caches.
    fn start_of(&mut self, out: &mut Annotated, batch: &Batch, caller: PathId) -> NodeId {
        let at = caller.0 as usize;
        if let Some(&(node, epoch)) = self.starts.get(at)
            && epoch == self.directory_epoch
        {
            return node;
        }
        let node = self.silent(out, batch, caller, FileKind::Directory, 0);
        if self.starts.len() <= at {
            self.starts.resize(at + 1, (NodeId::NONE, u64::MAX));
        }
        self.starts[at] = (node, self.directory_epoch);
        node
    }

    /// Resolves the path of something a process already holds, without charge.
    pub(super) fn silent(
        &mut self,
        out: &mut Annotated,
        batch: &Batch,
        path: PathId,
        kind: FileKind,
        size_bytes: u64,
    ) -> NodeId {
        let must = Must::All(kind, size_bytes);
        Walking::new(self, out, NodeId::ROOT, must, false, 0).along(batch.paths.get(path), true).node
    }
}

/// Components of a batch's paths that were interned, by where they lie in memory: a path is walked again and again. One
/// place for each few, so that it is found at once.
#[derive(Debug)]
struct Interned {
    places: Vec<(usize, usize, NameId)>,
}

/// A power of two.
const PLACES: usize = 1 << 12;

impl Interned {
    fn new() -> Interned {
        Interned { places: vec![(0, 0, NameId(0)); PLACES] }
    }

    /// Another batch begins, with other components, or what is not held is swept.
    fn forget(&mut self) {
        self.places.fill((0, 0, NameId(0)));
    }

    #[inline]
    fn of(&mut self, name: &[u8], names: &mut Names) -> NameId {
        let (at, len) = (name.as_ptr().addr(), name.len());
        let place = &mut self.places[(at ^ (at >> 12)) % PLACES];
        if (place.0, place.1) != (at, len) {
            *place = (at, len, names.intern(name));
        }
        place.2
    }
}

/// A walk on its way.
struct Walking<'w> {
    walker: &'w mut Walker,
    out: &'w mut Annotated,
    must: Must,
    /// Whether it costs anything.
    charged: bool,
    /// The next component, if it was looked up before in this batch, and the slot that it probably has.
    hint: Option<(NameId, SlotId)>,
    /// Where in memory the path lies, which is the batch's: its components stay there.
    text: std::ops::Range<usize>,
    walked: Walked,
}

impl<'w> Walking<'w> {
    /// A walk from a directory, `lookups` components into its path.
    fn new(
        walker: &'w mut Walker,
        out: &'w mut Annotated,
        start: NodeId,
        must: Must,
        charged: bool,
        lookups: u16,
    ) -> Walking<'w> {
        let Node { dir, slot, .. } = *walker.tree.node(start);
        let (end, last_step, surprise) = (End::Broken, None, false);
        let walked = Walked { end, dir, slot, node: start, lookups, last_step, surprise };
        Walking { walker, out, must, charged, hint: None, text: 0..0, walked }
    }

    fn along(mut self, path: &[u8], follow: bool) -> Walked {
        let from = self.walked.node;
        self.text = path.as_ptr().addr()..path.as_ptr().addr() + path.len();
        if let Must::All(..) = self.must
            && path.ends_with(b"/")
        {
            // A slash follows directories only.
            self.must = Must::All(FileKind::Directory, 0);
        }
        match tree::walk(&mut self, from, path, follow) {
            Walk::Found { node, .. } => Walked { end: End::Found, node, ..self.walked },
            Walk::Missing { last: true, .. } => Walked { end: End::Absent, ..self.walked },
            _ => self.walked,
        }
    }

    /// Counts a component; answers whether it is the first.
    fn is_first(&mut self) -> bool {
        let before = self.walked.lookups;
        self.walked.lookups = before.saturating_add(1);
        before == 0
    }

    /// Finds one component, believing the trace where it says that there is one.
    fn component(&mut self, dir: NodeId, name: &[u8], last: bool) -> (SlotId, NodeId) {
        let Walking { walker, out, hint, text, .. } = self;
        let (name, hint) = match hint.take() {
            Some((name, slot)) => (name, Some(slot).filter(|&slot| walker.tree.is_slot_of(slot, dir, name))),
            // What a link leads to is elsewhere, and gone after the walk.
            None if text.contains(&name.as_ptr().addr()) => (walker.interned.of(name, &mut walker.tree.names), None),
            None => (walker.tree.names.intern(name), None),
        };
        let mut forgotten = None;
        let (slot, known) = match hint.or_else(|| walker.tree.find(dir, name)) {
            Some(slot) => (slot, true),
            None => (walker.tree.slot_of(dir, name, &mut forgotten), false),
        };
        let node = walker.tree.slot(slot).node;
        if node != NodeId::NONE {
            return (slot, node);
        }
        if known {
            walker.tree.touch_absent(slot);
        }
        if let Some(slot) = forgotten {
            out.steps.push(Step::Forgotten { slot });
        }
        let (kind, size_bytes) = match self.must {
            Must::All(kind, size_bytes) if last => (kind, size_bytes),
            Must::Nothing => return (slot, NodeId::NONE),
            Must::Parents if last => return (slot, NodeId::NONE),
            Must::Parents | Must::All(..) => (FileKind::Directory, 0),
        };
        if !last {
            walker.implied_directories += 1;
        }
        // A name that was looked up and absent, or removed, contradicts; one never heard of was only unknown.
        if known {
            self.walked.surprise = true;
        } else {
            walker.discovered_names += 1;
        }
        let node = walker.add(slot, kind, size_bytes);
        let directory = kind == FileKind::Directory;
        out.steps.push(Step::Adopted { dir, slot, node, size_bytes, directory });
        (slot, node)
    }
}

impl tree::Names for Walking<'_> {
    type Node = NodeId;

    fn root(&self) -> NodeId {
        NodeId::ROOT
    }

    fn up(&mut self, directory: NodeId) -> NodeId {
        let first = self.is_first();
        if self.charged {
            self.out.steps.push(Step::Parent { first });
        }
        let above = self.walker.tree.node(directory).dir;
        let Node { dir, slot, .. } = *self.walker.tree.node(above);
        (self.walked.dir, self.walked.slot, self.walked.last_step) = (dir, slot, None);
        above
    }

    fn child(&mut self, dir: NodeId, name: &[u8], last: bool) -> Option<NodeId> {
        let first = self.is_first();
        let (slot, child) = self.component(dir, name, last);
        (self.walked.node, self.walked.dir, self.walked.slot) = (dir, dir, slot);
        if self.charged {
            self.walked.last_step = Some(self.out.steps.len());
            let directory = self.walker.tree.node(dir);
            let (page, entries) = (page_of(slot, directory.dirent_bytes), directory.entries);
            self.out.steps.push(Step::Lookup { dir, slot, page, entries, child, role: Role::Walk, first });
        } else if child != NodeId::NONE {
            self.out.steps.push(Step::Pinned { dir, slot, node: child });
        }
        Some(child).filter(|&child| child != NodeId::NONE)
    }

    fn what(&self, node: NodeId) -> What<'_> {
        let tree = &self.walker.tree;
        match tree.node(node).kind {
            FileKind::Directory => What::Directory,
            // One whose target is not known is where the walk ends.
            FileKind::Symlink => tree.link_target(node).map_or(What::Other, |target| What::Link(Some(target))),
            FileKind::File | FileKind::Special => What::Other,
        }
    }

    fn believe(&mut self, node: NodeId) -> bool {
        if self.must == Must::Nothing {
            return false;
        }
        self.walker.tree.node_mut(node).kind = FileKind::Directory;
        self.walked.surprise = true;
        true
    }

    fn follow(&mut self, directory: NodeId, absolute: bool) -> NodeId {
        if self.charged {
            self.out.steps.push(Step::Follow);
        }
        if absolute { NodeId::ROOT } else { directory }
    }
}
