//! A traced workload as operations on a tree of its own: its script.
//!
//! Successful calls that change something are kept: files and directories made, written, truncated, renamed and
//! removed, and fsync; reads where they are asked for. Of the names that were there, those are in the script's initial
//! tree that the workload changes (or reads, where that is kept), or that are in a directory in which it changes
//! something; with the directories above them.

use super::names::{Names, Walk};
use crate::OpKind;
use crate::plan::PlanError;
use posix::FileKind;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::path::Path;
use trace::profile::Reader;
use trace::tree::Node;
use trace::{Batch, Call, Event, OfdId, Opened, PathId, flag};

/// Something of the tree the script begins with. Directories come before what is in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::plan) struct Initial {
    pub(in crate::plan) node: u32,
    /// The directory it is in; `None`: the script's own root.
    pub(in crate::plan) dir: Option<u32>,
    pub(in crate::plan) name: Box<[u8]>,
    pub(in crate::plan) kind: FileKind,
    pub(in crate::plan) size_bytes: u64,
}

/// One operation of the script; nodes are numbered from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::plan) struct ScriptOp<N = u32> {
    pub(in crate::plan) t_ns: u64,
    pub(in crate::plan) kind: OpKind,
    pub(in crate::plan) node: N,
    pub(in crate::plan) dir: Option<N>,
    pub(in crate::plan) name: Option<Box<[u8]>>,
    pub(in crate::plan) offset_bytes: u64,
    pub(in crate::plan) size_bytes: u64,
}

/// What was not taken over, and what had to be supposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Calls on files that the trace does not name.
    pub unnamed: u64,
    /// Calls of kinds that aging has no operation for (`O_TMPFILE`, collapsing ranges).
    pub without_operation: u64,
    /// Calls that contradict what the trace has shown of names so far.
    pub contradictory: u64,
    /// Files written that no snapshot shows: supposed to have been there.
    pub supposed: u64,
}

/// A traced workload as operations.
#[derive(Clone, Debug, Default)]
pub(in crate::plan) struct Script {
    pub(in crate::plan) initial: Vec<Initial>,
    pub(in crate::plan) ops: Vec<ScriptOp>,
    /// Number of nodes.
    pub(in crate::plan) nodes: u32,
    /// From the first call to the last, nanoseconds.
    pub(in crate::plan) span_ns: u64,
    pub(in crate::plan) skipped: Skipped,
    /// By node: whether it is renamed, whether its contents change.
    moved: Vec<bool>,
    written: Vec<bool>,
}

impl Script {
    /// Whether a node is renamed in the script.
    pub(in crate::plan) fn moves(&self, node: usize) -> bool {
        self.moved.get(node).copied().unwrap_or(false)
    }

    /// Whether a file's contents change in the script.
    pub(in crate::plan) fn writes(&self, node: usize) -> bool {
        self.written.get(node).copied().unwrap_or(false)
    }

    /// Reads a workload profile; what it reads is kept if `reads` says so.
    pub(in crate::plan) fn read(path: &Path, reads: bool) -> Result<Script, PlanError> {
        let reader = Reader::open(path)?;
        let mut scribe = Scribe {
            names: Names::new(&reader.snapshot()?),
            open: FxHashMap::default(),
            ops: Vec::new(),
            skipped: Skipped::default(),
            now_ns: 0,
            temporary: 0,
            reads,
        };
        let too_deep = |place: String| Err(PlanError::input(path, place, trace::profile::too_deep()));
        if scribe.names.tree.is_too_deep() {
            return too_deep("snapshot".to_owned());
        }
        let mut batches = reader.batches()?;
        let mut batch = Batch::default();
        while batches.next_into(&mut batch)? {
            for event in &batch.events {
                // Calls overlap; they are taken in the order in which they began.
                if posix::interrupt::requested() {
                    return Err(PlanError::Interrupted);
                }
                scribe.now_ns = scribe.now_ns.max(event.head.t_ns);
                if event.head.errno.is_none() && event.head.flags & (flag::FOREIGN | flag::UNFINISHED) == 0 {
                    scribe.event(event, &batch);
                    if scribe.names.tree.is_too_deep() {
                        return too_deep(format!("call {}", event.head.seq));
                    }
                }
            }
        }
        if scribe.ops.is_empty() {
            return Err(PlanError::input(
                path,
                "whole profile",
                "the workload changes nothing: there is no aging in it",
            ));
        }
        Ok(scribe.finish())
    }
}

struct Scribe {
    names: Names,
    open: FxHashMap<OfdId, Node>,
    ops: Vec<ScriptOp<Node>>,
    skipped: Skipped,
    now_ns: u64,
    temporary: u64,
    /// Whether reads are kept.
    reads: bool,
}

impl Scribe {
    fn event(&mut self, event: &Event, batch: &Batch) {
        let path = |id: Option<PathId>| id.map(|id| batch.paths.get(id));
        let has = |bit: u32| event.head.flags & bit != 0;
        match event.call {
            Call::Open { at, ofd, .. } => self.open(event.head.flags, path(at.path), at.size_before, ofd),
            Call::Close(of) if has(flag::LAST) => {
                if let Some(ofd) = of.ofd {
                    self.open.remove(&ofd);
                }
            }
            Call::Write(range) => {
                let file = self.opened(&range.of, batch);
                self.write(file, range.offset, event.head.ret);
            }
            Call::Read(range) if self.reads => {
                let file = self.opened(&range.of, batch);
                self.read_from(file, range.offset, event.head.ret);
            }
            Call::MapRead(of) if self.reads => {
                let file = self.file(None, path(of.path), of.size_before);
                self.read_from(file, of.offset, event.head.ret);
            }
            Call::Copy { from, offset, to, .. } => {
                if self.reads {
                    let file = self.opened(&from, batch);
                    self.read_from(file, offset, event.head.ret);
                }
                let file = self.file(to.ofd, path(to.path), None);
                self.write(file, to.offset, event.head.ret);
            }
            Call::Truncate { at, len } => {
                let file = self.path_file(path(at.path), !has(flag::NOFOLLOW), at.size_before);
                self.truncate(file, len);
            }
            Call::Ftruncate { of, len } => {
                let file = self.opened(&of, batch);
                self.truncate(file, len);
            }
            Call::Fallocate(range) => {
                if let Some(file) = self.opened(&range.of, batch) {
                    self.fallocate(file, event.head.flags >> flag::SUB_SHIFT, range.offset, range.bytes);
                }
            }
            Call::Fsync(of) | Call::Fdatasync(of) => {
                if let Some(file) = self.opened(&of, batch) {
                    self.push(OpKind::Fsync, file, 0, 0);
                }
            }
            Call::Mkdir { at, .. } => self.make(path(at.path), FileKind::Directory, None),
            Call::Mknod { at, .. } => self.make(path(at.path), FileKind::File, None),
            Call::Symlink { at, target } => self.make(path(at.path), FileKind::Symlink, path(target)),
            Call::Unlink(at) | Call::Rmdir(at) => self.remove(path(at.path)),
            Call::Rename { from, to } => self.rename(path(from.path), path(to.path), has(flag::EXCHANGE)),
            Call::Link { from, to } => self.link(path(from.path), path(to.path)),
            _ => {}
        }
    }

    fn push(&mut self, kind: OpKind, node: Node, offset_bytes: u64, size_bytes: u64) {
        self.ops.push(ScriptOp { t_ns: self.now_ns, kind, node, dir: None, name: None, offset_bytes, size_bytes });
    }

    fn push_named(&mut self, kind: OpKind, node: Node, dir: Node, name: &[u8], size_bytes: u64) {
        let (dir, name) = (Some(dir), Some(name.into()));
        self.ops.push(ScriptOp { t_ns: self.now_ns, kind, node, dir, name, offset_bytes: 0, size_bytes });
    }

    /// The place of a path whose directory may not be known yet.
    fn place(&mut self, path: &[u8], follow: bool) -> Walk {
        self.names.walk(path.strip_suffix(b"/").unwrap_or(path), follow)
    }

    fn open(&mut self, flags: u32, path: Option<&[u8]>, size_before: Option<u64>, ofd: Option<OfdId>) {
        let Some(path) = path else { return self.skipped.unnamed += 1 };
        let has = |bits: u32| flags & bits != 0;
        if has(flag::TMPFILE) {
            return self.skipped.without_operation += 1;
        }
        let node = match self.place(path, !has(flag::NOFOLLOW)) {
            Walk::Found(node) => Some(node),
            Walk::Missing(dir, name) if has(flag::CREATE) && size_before.unwrap_or(0) == 0 => {
                let node = self.names.add(dir, &name, FileKind::File, None);
                self.push_named(OpKind::Create, node, dir, &name, 0);
                Some(node)
            }
            Walk::Missing(dir, name) if has(flag::WRITE | flag::CREATE | flag::TRUNC) => {
                Some(self.suppose(dir, &name, size_before))
            }
            _ => None,
        };
        let Some(node) = node.filter(|n| self.names.is_kind(*n, FileKind::File)) else { return };
        if has(flag::TRUNC) {
            self.truncate(Some(node), Some(0));
        }
        if let Some(ofd) = ofd {
            self.open.insert(ofd, node);
        }
    }

    /// A file that must have been there, though no snapshot shows it.
    fn suppose(&mut self, dir: Node, name: &[u8], size_before: Option<u64>) -> Node {
        self.skipped.supposed += 1;
        if self.names.tree.is_absent(dir, name) {
            // It has been removed: what has this name now came later, by nobody's call.
            let node = self.names.add(dir, name, FileKind::File, None);
            self.push_named(OpKind::Create, node, dir, name, 0);
            return node;
        }
        self.names.suppose(dir, name, size_before.unwrap_or(0))
    }

    /// The file that a call uses through a description.
    fn opened(&mut self, of: &Opened, batch: &Batch) -> Option<Node> {
        self.file(of.ofd, of.path.map(|id| batch.paths.get(id)), of.size_before)
    }

    /// The file behind a description, or under a path.
    fn file(&mut self, ofd: Option<OfdId>, path: Option<&[u8]>, size_before: Option<u64>) -> Option<Node> {
        let known = ofd.and_then(|ofd| self.open.get(&ofd)).copied();
        let file = known.or_else(|| self.path_file(path, true, size_before))?;
        Some(file).filter(|&file| self.names.get(file).names > 0)
    }

    fn path_file(&mut self, path: Option<&[u8]>, follow: bool, size_before: Option<u64>) -> Option<Node> {
        let Some(path) = path else {
            self.skipped.unnamed += 1;
            return None;
        };
        let node = match self.place(path, follow) {
            Walk::Found(node) => node,
            Walk::Missing(dir, name) => self.suppose(dir, &name, size_before),
            Walk::Nowhere => {
                self.skipped.contradictory += 1;
                return None;
            }
        };
        Some(node).filter(|&node| self.names.is_kind(node, FileKind::File))
    }

    fn write(&mut self, file: Option<Node>, offset: Option<u64>, ret: i64) {
        let (Some(file), Ok(len)) = (file, u64::try_from(ret)) else { return };
        if len == 0 {
            return;
        }
        let size = self.names.get(file).size_bytes;
        // Where the trace does not tell, at the end.
        let offset = offset.unwrap_or(size);
        let end = offset.saturating_add(len);
        if offset < size {
            self.push(OpKind::Overwrite, file, offset, len.min(size - offset));
        }
        self.extend(file, size, end, offset.saturating_sub(size));
    }

    /// What was read, as far as the file is known to be long.
    fn read_from(&mut self, file: Option<Node>, offset: Option<u64>, ret: i64) {
        let (Some(file), Some(offset), Ok(len)) = (file, offset, u64::try_from(ret)) else { return };
        let len = len.min(self.names.get(file).size_bytes.saturating_sub(offset));
        if len > 0 {
            self.push(OpKind::Read, file, offset, len);
        }
    }

    /// Makes a file longer; the first `hole_bytes` of what is new are a hole.
    fn extend(&mut self, file: Node, size: u64, end: u64, hole_bytes: u64) {
        let Some(more) = end.checked_sub(size).filter(|more| *more > 0) else { return };
        self.push(OpKind::Append, file, 0, more);
        if hole_bytes > 0 {
            self.push(OpKind::PunchHole, file, size, hole_bytes);
        }
        self.names.get_mut(file).size_bytes = end;
    }

    fn truncate(&mut self, file: Option<Node>, to: Option<u64>) {
        let (Some(file), Some(to)) = (file, to) else { return };
        let size = self.names.get(file).size_bytes;
        if to < size {
            self.push(OpKind::Truncate, file, 0, to);
            self.names.get_mut(file).size_bytes = to;
        } else {
            self.extend(file, size, to, to - size);
        }
    }

    fn fallocate(&mut self, file: Node, mode: u32, offset: Option<u64>, len: Option<u64>) {
        const KEEP_SIZE: u32 = 1;
        const PUNCH_HOLE: u32 = 2;
        let (Some(offset), Some(len)) = (offset, len) else { return self.skipped.unnamed += 1 };
        let size = self.names.get(file).size_bytes;
        match mode {
            0 => self.extend(file, size, offset.saturating_add(len), 0),
            mode if mode & PUNCH_HOLE != 0 => {
                let len = len.min(size.saturating_sub(offset));
                if len > 0 {
                    self.push(OpKind::PunchHole, file, offset, len);
                }
            }
            KEEP_SIZE => {}
            _ => self.skipped.without_operation += 1,
        }
    }

    fn make(&mut self, path: Option<&[u8]>, kind: FileKind, target: Option<&[u8]>) {
        let Some(path) = path else { return self.skipped.unnamed += 1 };
        let Walk::Missing(dir, name) = self.place(path, false) else { return self.skipped.contradictory += 1 };
        let op = match kind {
            FileKind::Symlink => OpKind::Symlink,
            FileKind::Directory => OpKind::Mkdir,
            _ => OpKind::Create,
        };
        let target = (kind == FileKind::Symlink).then(|| target.unwrap_or_default());
        let node = self.names.add(dir, &name, kind, target);
        let size = self.names.get(node).size_bytes;
        self.push_named(op, node, dir, &name, size);
    }

    /// The directory and name that a path stands for, not following a link at its end, and what is there.
    fn located(&mut self, path: Option<&[u8]>) -> Option<(Node, Box<[u8]>, Option<Node>)> {
        let Some(path) = path else {
            self.skipped.unnamed += 1;
            return None;
        };
        let trimmed = path.strip_suffix(b"/").unwrap_or(path);
        let slash = memchr::memrchr(b'/', trimmed)?;
        let name = &trimmed[slash + 1..];
        let dir = self.names.directory(&trimmed[..slash]).filter(|_| !matches!(name, b"" | b"." | b".."));
        let Some(dir) = dir else {
            self.skipped.contradictory += 1;
            return None;
        };
        Some((dir, name.into(), self.names.tree.child(dir, name)))
    }

    fn remove(&mut self, path: Option<&[u8]>) {
        let Some((dir, name, node)) = self.located(path) else { return };
        let node = node.unwrap_or_else(|| self.suppose(dir, &name, None));
        self.unname(node, dir, &name);
    }

    /// Takes a name from a node; with its last the node goes.
    fn unname(&mut self, node: Node, dir: Node, name: &[u8]) {
        let is_dir = self.names.is_kind(node, FileKind::Directory);
        if is_dir && !self.names.tree.is_empty(node) {
            return self.skipped.contradictory += 1;
        }
        let was_planned = self.names.detach(node, dir, name);
        match self.names.get(node).more.first().cloned() {
            None => {
                let op = if is_dir { OpKind::Rmdir } else { OpKind::Delete };
                self.push(op, node, 0, 0);
            }
            Some((dir, name)) if was_planned => self.push_named(OpKind::Rename, node, dir, &name, 0),
            Some(_) => {}
        }
    }

    fn rename(&mut self, from: Option<&[u8]>, to: Option<&[u8]>, exchange: bool) {
        let (Some((old_dir, old_name, source)), Some((dir, name, other))) = (self.located(from), self.located(to))
        else {
            return;
        };
        let source = source.unwrap_or_else(|| self.suppose(old_dir, &old_name, None));
        if other == Some(source) {
            return;
        }
        let into_itself = self.names.tree.is_within(dir, source);
        let exchanged_into_itself = exchange && other.is_none_or(|other| self.names.tree.is_within(old_dir, other));
        if into_itself || exchanged_into_itself {
            return self.skipped.contradictory += 1;
        }
        match other {
            Some(other) if exchange => {
                // Its way to its own place leads over a name that nobody has.
                self.temporary += 1;
                let between = format!("~exchange-{}", self.temporary);
                self.move_name(other, (dir, &name), (dir, between.as_bytes()));
                self.move_name(source, (old_dir, &old_name), (dir, &name));
                self.move_name(other, (dir, between.as_bytes()), (old_dir, &old_name));
            }
            Some(other) => {
                if self.names.is_kind(other, FileKind::Directory) && !self.names.tree.is_empty(other) {
                    return self.skipped.contradictory += 1;
                }
                self.unname(other, dir, &name);
                self.move_name(source, (old_dir, &old_name), (dir, &name));
            }
            None => self.move_name(source, (old_dir, &old_name), (dir, &name)),
        }
    }

    /// Gives a node another name for one of its own; only that of the planned one is an operation.
    fn move_name(&mut self, node: Node, from: (Node, &[u8]), to: (Node, &[u8])) {
        let was_planned = self.names.detach(node, from.0, from.1);
        self.names.attach(node, to.0, to.1);
        if was_planned {
            self.names.get_mut(node).more.rotate_right(1);
            self.push_named(OpKind::Rename, node, to.0, to.1, 0);
        }
    }

    fn link(&mut self, from: Option<&[u8]>, to: Option<&[u8]>) {
        let (Some(node), Some((dir, name, None))) = (self.path_file(from, false, None), self.located(to)) else {
            return self.skipped.contradictory += 1;
        };
        self.names.attach(node, dir, &name);
    }

    /// Chooses the initial tree, and numbers its nodes and those of the operations closely.
    fn finish(self) -> Script {
        let Scribe { names: Names { tree }, ops, skipped, now_ns, .. } = self;
        let mut wanted = vec![false; tree.objects().len()];
        let mut changed_directory = wanted.clone();
        let mark = |node: Node, flags: &mut Vec<bool>| flags[node.index()] = true;
        for op in &ops {
            mark(op.node, &mut wanted);
            if let Some(dir) = op.dir {
                mark(dir, &mut wanted);
                mark(dir, &mut changed_directory);
            }
            if let Some((dir, _)) = &tree.get(op.node).origin
                && op.kind != OpKind::Read
            {
                mark(*dir, &mut changed_directory);
            }
        }
        for (node, object) in tree.objects() {
            let Some((dir, _)) = &object.origin else { continue };
            wanted[node.index()] |= changed_directory[dir.index()] && object.kind != Some(FileKind::Special);
        }
        // Nodes come after the directory they were in at first; upwards, so that every directory above is wanted too.
        for (node, object) in tree.objects().rev() {
            if let Some((dir, _)) = object.origin.as_ref().filter(|_| wanted[node.index()]) {
                wanted[dir.index()] = true;
            }
        }
        wanted[Node::ROOT.index()] = false;
        let mut number = vec![0; wanted.len()];
        let mut nodes = 0;
        for at in (0..wanted.len()).filter(|at| wanted[*at]) {
            number[at] = nodes;
            nodes += 1;
        }
        let dir_number = |dir: Node| (dir != Node::ROOT).then(|| number[dir.index()]);
        let initial = tree.objects().filter(|(node, _)| wanted[node.index()]).filter_map(|(node, object)| {
            let ((dir, name), kind) = (object.origin.clone()?, object.kind?);
            let (node, dir) = (number[node.index()], dir_number(dir));
            Some(Initial { node, dir, name, kind, size_bytes: object.initial_bytes })
        });
        let initial = initial.collect();
        let renumber = |op: ScriptOp<Node>| {
            let ScriptOp { t_ns, kind, node, dir, name, offset_bytes, size_bytes } = op;
            let (node, dir) = (number[node.index()], dir.and_then(dir_number));
            ScriptOp { t_ns, kind, node, dir, name, offset_bytes, size_bytes }
        };
        let ops: Vec<ScriptOp> = ops.into_iter().map(renumber).collect();
        let (mut moved, mut written) = (vec![false; nodes as usize], vec![false; nodes as usize]);
        for op in &ops {
            let writes = matches!(op.kind, OpKind::Append | OpKind::Overwrite | OpKind::Truncate | OpKind::PunchHole);
            moved[op.node as usize] |= op.kind == OpKind::Rename;
            written[op.node as usize] |= writes;
        }
        Script { initial, ops, nodes, span_ns: now_ns, skipped, moved, written }
    }
}
