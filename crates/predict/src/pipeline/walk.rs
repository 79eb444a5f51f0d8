//! Path resolution as `path_resolution(7)` describes it, one step per component.

use super::annotated::{Annotated, NodeId, Role, SlotId, Step};
use super::names::{DOT, DOTDOT, NameId};
use super::preprocess::Preprocess;
use super::tree::page_of;
use posix::{FileKind, LINKS_MAX};
use trace::{Batch, PathId};

/// Steps of walks that are remembered, in all: beyond, a path that is used again is walked again.
const MEMO_STEPS_MAX: usize = 1 << 21;

/// A path of the batch taken apart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parsed {
    start: u32,
    len: u32,
    trailing_slash: bool,
    known: bool,
}

/// The directories of a walk that was made before in this batch, so that a path used again costs one lookup here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memo {
    epoch: u64,
    caller: Option<PathId>,
    from: u32,
    to: u32,
    dir: NodeId,
    last: NameId,
    slot: SlotId,
    lookups: u16,
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

impl Preprocess {
    /// Walks `path`, starting in `caller` if the trace says so, and emits what the walk costs.
    pub(super) fn walk(
        &mut self,
        out: &mut Annotated,
        batch: &Batch,
        path: PathId,
        caller: Option<PathId>,
        follow_last: bool,
        must: Must,
    ) -> Walked {
        let parsed = self.parse(batch, path);
        let follow_last = follow_last || parsed.trailing_slash;
        if let Some(Some(memo)) = self.memos.get(path.0 as usize).copied()
            && memo.epoch == self.directory_epoch
            && memo.caller == caller
        {
            out.steps.extend_from_slice(&self.memo_steps[memo.from as usize..memo.to as usize]);
            self.pending.clear();
            self.pending.push(memo.last);
            self.hint = memo.slot;
            return self.resolve(out, memo.dir, follow_last, must, true, memo.lookups);
        }
        let mut start = NodeId::ROOT;
        let mut skip = 0;
        if let Some(caller) = caller {
            let (whole, prefix) = (batch.paths.get(path), batch.paths.get(caller));
            let boundary = prefix.ends_with(b"/") || whole.get(prefix.len()).is_none_or(|&c| c == b'/');
            if whole.starts_with(prefix) && boundary {
                start = self.start_of(out, batch, caller);
                skip = self.parse(batch, caller).len;
            }
        }
        let from = (parsed.start + skip.min(parsed.len)) as usize;
        let to = (parsed.start + parsed.len) as usize;
        self.pending.clear();
        self.pending.extend(self.components[from..to].iter().rev());
        let steps_before = out.steps.len();
        let walked = self.resolve(out, start, follow_last, must, true, 0);
        self.remember(out, steps_before, path, caller, &walked);
        walked
    }

    /// Remembers the directories of a walk that met nothing out of the ordinary.
    fn remember(&mut self, out: &Annotated, before: usize, path: PathId, caller: Option<PathId>, walked: &Walked) {
        let Some(last) = walked.last_step.filter(|&at| at > before && walked.lookups > 1) else { return };
        let prefix = &out.steps[before..last];
        let plain = |step: &Step| matches!(step, Step::Lookup { .. });
        if walked.end == End::Broken || !prefix.iter().all(plain) || prefix.len() + 1 != usize::from(walked.lookups) {
            return;
        }
        if self.memo_steps.len() + prefix.len() > MEMO_STEPS_MAX {
            return;
        }
        let at = path.0 as usize;
        if self.memos.len() <= at {
            self.memos.resize(at + 1 + at / 2, None);
        }
        let from = self.memo_steps.len();
        self.memo_steps.extend_from_slice(prefix);
        let index = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.memos[at] = Some(Memo {
            epoch: self.directory_epoch,
            caller,
            from: index(from),
            to: index(self.memo_steps.len()),
            dir: walked.dir,
            last: self.tree.slot(walked.slot).name,
            slot: walked.slot,
            lookups: walked.lookups - 1,
        });
    }

    /// The directory a relative walk starts in: reached long ago, so nothing is charged; a process keeps it in the caches.
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
        let parsed = self.parse(batch, path);
        let (from, to) = (parsed.start as usize, (parsed.start + parsed.len) as usize);
        self.pending.clear();
        self.pending.extend(self.components[from..to].iter().rev());
        self.resolve(out, NodeId::ROOT, true, Must::All(kind, size_bytes), false, 0).node
    }

    /// Walks the pending components from a directory, `lookups` components into the path.
    fn resolve(
        &mut self,
        out: &mut Annotated,
        start: NodeId,
        follow_last: bool,
        must: Must,
        charged: bool,
        lookups: u16,
    ) -> Walked {
        let mut walked = Walked {
            end: End::Found,
            dir: self.tree.node(start).dir,
            slot: self.tree.node(start).slot,
            node: start,
            lookups,
            last_step: None,
            surprise: false,
        };
        let mut links = 0;
        while let Some(name) = self.pending.pop() {
            if name == DOT {
                continue;
            }
            let here = walked.node;
            if self.tree.node(here).kind != FileKind::Directory {
                if must == Must::Nothing {
                    walked.end = End::Broken;
                    return walked;
                }
                self.tree.node_mut(here).kind = FileKind::Directory;
                walked.surprise = true;
            }
            let first = walked.lookups == 0;
            walked.lookups = walked.lookups.saturating_add(1);
            if name == DOTDOT {
                if charged {
                    out.steps.push(Step::Parent { first });
                }
                walked.node = self.tree.node(here).dir;
                let parent = self.tree.node(walked.node);
                (walked.dir, walked.slot, walked.last_step) = (parent.dir, parent.slot, None);
                continue;
            }
            let last = self.pending.is_empty();
            let (slot, child) = self.component(out, here, name, last, must, &mut walked.surprise);
            (walked.dir, walked.slot) = (here, slot);
            if charged {
                walked.last_step = Some(out.steps.len());
                let directory = self.tree.node(here);
                let (page, entries) = (page_of(slot, directory.dirent_bytes), directory.entries);
                out.steps.push(Step::Lookup { dir: here, slot, page, entries, child, role: Role::Walk, first });
            } else if child != NodeId::NONE {
                out.steps.push(Step::Pinned { dir: here, slot, node: child });
            }
            if child == NodeId::NONE {
                walked.end = if last { End::Absent } else { End::Broken };
                return walked;
            }
            if self.tree.node(child).kind == FileKind::Symlink && (!last || follow_last) {
                links += 1;
                if links > LINKS_MAX {
                    walked.end = End::Broken;
                    return walked;
                }
                if let Some(absolute) = self.push_target(child) {
                    if charged {
                        out.steps.push(Step::Follow);
                    }
                    if absolute {
                        walked.node = NodeId::ROOT;
                    }
                    continue;
                }
            }
            walked.node = child;
        }
        walked
    }

    /// Finds one component, believing the trace where it says that there is one.
    fn component(
        &mut self,
        out: &mut Annotated,
        dir: NodeId,
        name: NameId,
        last: bool,
        must: Must,
        surprise: &mut bool,
    ) -> (SlotId, NodeId) {
        let hint = std::mem::replace(&mut self.hint, SlotId::NONE);
        let known = if self.tree.is_slot_of(hint, dir, name) { Some(hint) } else { self.tree.find(dir, name) };
        let mut forgotten = None;
        let slot = match known {
            Some(slot) => {
                let node = self.tree.slot(slot).node;
                if node != NodeId::NONE {
                    return (slot, node);
                }
                self.tree.touch_absent(slot);
                slot
            }
            None => self.tree.slot_of(dir, name, &mut forgotten),
        };
        if let Some(slot) = forgotten {
            out.steps.push(Step::Forgotten { slot });
        }
        let (kind, size_bytes) = match must {
            Must::All(kind, size_bytes) if last => (kind, size_bytes),
            Must::Nothing => return (slot, NodeId::NONE),
            Must::Parents if last => return (slot, NodeId::NONE),
            Must::Parents | Must::All(..) => (FileKind::Directory, 0),
        };
        if !last {
            self.implied_directories += 1;
        }
        // A name that was looked up and absent, or removed, contradicts; one never heard of was only unknown.
        if known.is_some() {
            *surprise = true;
        } else {
            self.discovered_names += 1;
        }
        let node = self.tree.new_node(kind, size_bytes);
        self.tree.attach(slot, node);
        self.tree.node_mut(node).report = u32::MAX;
        let directory = kind == FileKind::Directory;
        out.steps.push(Step::Adopted { dir, slot, node, size_bytes, directory });
        (slot, node)
    }

    /// Pushes the components of a link's target; says whether it is absolute. `None`: the target is unknown.
    fn push_target(&mut self, link: NodeId) -> Option<bool> {
        let target = self.tree.link_target(link)?.to_vec();
        for part in target.split(|&c| c == b'/').rev().filter(|p| !p.is_empty()) {
            let name = self.tree.names.intern(part);
            self.pending.push(name);
        }
        Some(target.starts_with(b"/"))
    }

    /// Takes a path apart, once per batch.
    fn parse(&mut self, batch: &Batch, path: PathId) -> Parsed {
        let at = path.0 as usize;
        if let Some(parsed) = self.parsed.get(at).filter(|p| p.known) {
            return *parsed;
        }
        let bytes = batch.paths.get(path);
        let start = self.components.len();
        for part in bytes.split(|&c| c == b'/').filter(|p| !p.is_empty()) {
            let name = self.tree.names.intern(part);
            self.components.push(name);
        }
        let parsed = Parsed {
            start: u32::try_from(start).unwrap_or(u32::MAX),
            len: u32::try_from(self.components.len() - start).unwrap_or(0),
            trailing_slash: bytes.len() > 1 && bytes.ends_with(b"/"),
            known: true,
        };
        if self.parsed.len() <= at {
            self.parsed.resize(batch.paths.len().max(at + 1), Parsed::default());
        }
        self.parsed[at] = parsed;
        parsed
    }
}
