//! Going on from a checkpoint: the tree is brought back to what it was there.
//!
//! A run that was killed has performed some of the operations after its last checkpoint, in the order of several
//! writers. What the tree should be at the checkpoint follows from the plan and the state; the whole tree is walked and
//! held against that. Names that should not be there are removed, but only if an operation after the checkpoint could
//! have made them: anything else is not of this run, and nothing is touched. What is missing is made again with its
//! length, lengths that differ are set. Then the run goes on as if it had not been ended there; only the layout of the
//! files made again is younger than it would be.

use super::error::{AgeError, advice};
use super::nodes::{Nodes, Presence, write_derived};
use super::options::DataMode;
use super::state::State;
use crate::format::Reader;
use crate::{AgingOp, Broken, NodeId, OpKind};
use posix::{At, Call, Errno, Fallocate, FileKind, FileSystem, Mode, OpenFlags};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// What was found and mended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reconciled {
    /// Files and directories moved back to where they were.
    pub moved: u64,
    /// Names removed that were made after the checkpoint.
    pub removed: u64,
    /// Files, links and directories made again that were removed after it.
    pub made: u64,
    /// Files given the length they had.
    pub resized: u64,
}

/// The nodes as they were at a checkpoint.
pub(super) fn nodes_at(plan: &Reader, block_bytes: u64, state: &State) -> Result<Nodes, AgeError> {
    let mut nodes = Nodes::new(block_bytes);
    let held: FxHashSet<NodeId> = state.held.iter().map(|id| NodeId(*id)).collect();
    let mut left = state.next_operation;
    for batch in plan.batches(0) {
        if left == 0 {
            break;
        }
        for op in batch? {
            if left == 0 {
                break;
            }
            let operation = state.next_operation - left;
            left -= 1;
            apply(&mut nodes, &op, &held).map_err(|why| AgeError::Broken {
                path: plan.path().to_owned(),
                operation,
                why,
            })?;
        }
    }
    for id in &state.absent {
        nodes.make_absent(NodeId(*id));
    }
    for (id, bytes) in &state.odd {
        nodes.set_actual(NodeId(*id), nodes.actual_bytes(NodeId(*id)), *bytes);
    }
    for id in &state.held {
        nodes.hold(NodeId(*id));
    }
    Ok(nodes)
}

fn apply(nodes: &mut Nodes, op: &AgingOp, held: &FxHashSet<NodeId>) -> Result<(), Broken> {
    match op.kind {
        OpKind::Mkdir => nodes.make(op, FileKind::Directory, 0),
        OpKind::Create => nodes.make(op, FileKind::File, op.size_bytes),
        OpKind::Symlink => nodes.make(op, FileKind::Symlink, op.size_bytes),
        OpKind::Rmdir => nodes.rmdir(op.node),
        OpKind::Rename => nodes.rename(op),
        OpKind::Append => {
            let size = nodes.file(op.node)?.size_bytes.saturating_add(op.size_bytes);
            nodes.resize(op.node, size, size);
            Ok(())
        }
        OpKind::Truncate => {
            nodes.file(op.node)?;
            nodes.resize(op.node, op.size_bytes, op.size_bytes);
            Ok(())
        }
        OpKind::Delete => {
            nodes.delete(op.node)?;
            if !held.contains(&op.node) {
                nodes.drop_held(op.node);
            }
            Ok(())
        }
        OpKind::Overwrite | OpKind::PunchHole | OpKind::Fsync | OpKind::Read => Ok(()),
    }
}

/// A name that should not be there.
struct Found {
    path: PathBuf,
    kind: FileKind,
    /// Its directory should be there.
    top: bool,
}

/// A name that is to be there.
struct Wanted {
    node: NodeId,
    path: PathBuf,
    kind: FileKind,
    size_bytes: u64,
    /// Its directory is there.
    top: bool,
}

/// How the tree differs from the one at the checkpoint.
#[derive(Default)]
struct Differences {
    /// Too many, parents before what is in them.
    extra: Vec<Found>,
    /// Missing, parents first.
    missing: Vec<Wanted>,
    /// Of the wrong length, with the length found.
    resized: Vec<(Wanted, u64)>,
}

/// Names of fsage's own in the root of the tree.
pub(super) const OWN_NAMES: [&str; 1] = [super::MARKER_NAME];

/// Brings the tree at the root of `fs` to the checkpoint.
///
/// # Errors
/// [`AgeError::Foreign`] for a name that this run cannot have made; then nothing has been changed.
pub fn reconcile<F: FileSystem>(
    fs: &mut F,
    plan: &Reader,
    state: &State,
    data: DataMode,
) -> Result<Reconciled, AgeError> {
    let mut nodes = nodes_at(plan, plan.meta().block_bytes, state)?;
    let target = fs.environment().target;
    let mut walk = Walk { fs, target, data, buffer: Vec::new() };
    let placed: FxHashSet<NodeId> = state.placed.iter().map(|id| NodeId(*id)).collect();
    let mut moved = 0;
    for _ in 0..PASSES_MAX {
        let differences = walk.differences(&mut nodes, plan, &placed)?;
        let renames = walk.explain(plan, state, &differences)?;
        let back = walk.move_back(&differences, &renames)?;
        moved += back;
        if back == 0 {
            return Ok(Reconciled { moved, ..walk.mend(&differences)? });
        }
    }
    let differences = walk.differences(&mut nodes, plan, &placed)?;
    walk.explain(plan, state, &differences)?;
    Ok(Reconciled { moved, ..walk.mend(&differences)? })
}

/// How often the tree is walked to move things back: once for each level of directories moved into one another. What is
/// left then is made again.
const PASSES_MAX: u32 = 16;

struct Walk<'f, F> {
    fs: &'f mut F,
    target: String,
    data: DataMode,
    buffer: Vec<u8>,
}

/// Names in a directory, with the node that has each.
type Names = FxHashMap<OsString, NodeId>;

impl<F: FileSystem> Walk<'_, F> {
    fn error(&self, what: &'static str, path: &Path, errno: Errno) -> AgeError {
        let (target, path) = (self.target.clone(), path.display().to_string());
        AgeError::Target { target, what, path, operation: 0, errno, advice: advice(errno) }
    }

    fn must(&mut self, what: &'static str, path: &Path, call: &Call<'_>) -> Result<posix::Reply, AgeError> {
        self.fs.call(call).result.map_err(|errno| self.error(what, path, errno))
    }

    fn open(&mut self, path: &Path, flags: OpenFlags) -> Result<posix::Fd, AgeError> {
        let opened = self.fs.call(&Call::Open { at: At::from(path), flags, mode: Mode(0o644) });
        opened.fd().map_err(|errno| self.error("opening", path, errno))
    }

    fn entries(&mut self, path: &Path) -> Result<Vec<(OsString, FileKind)>, AgeError> {
        let fd = self.open(path, OpenFlags::DIRECTORY)?;
        let listed = self.fs.entries(fd);
        let closed = self.fs.call(&Call::Close { fd });
        let listed = listed.map_err(|errno| self.error("listing", path, errno))?;
        closed.result.map_err(|errno| self.error("closing", path, errno))?;
        Ok(listed)
    }

    fn differences(
        &mut self,
        nodes: &mut Nodes,
        plan: &Reader,
        placed: &FxHashSet<NodeId>,
    ) -> Result<Differences, AgeError> {
        let mut names: FxHashMap<NodeId, Names> = FxHashMap::default();
        for (id, node) in nodes.iter().filter(|(id, n)| *id != NodeId::ROOT && n.presence != Presence::Absent) {
            let mut name = node.name.as_deref().map(<[u8]>::to_vec).unwrap_or_default();
            if node.name.is_none() {
                write_derived(&mut name, id, node.kind == FileKind::Directory);
            }
            names.entry(node.parent).or_default().insert(OsString::from_vec(name), id);
        }
        let ahead = placed_names(plan, placed)?;
        let mut differences = Differences::default();
        // Directories to look at, and whether they are there: what is in a missing one is missing.
        let mut queue = vec![(NodeId::ROOT, true)];
        while let Some((dir, is_there)) = queue.pop() {
            let path = self.path(nodes, dir);
            let mut expected = names.remove(&dir).unwrap_or_default();
            let listed = if dir == NodeId::ROOT { Path::new(".") } else { path.as_path() };
            let found = if is_there { self.entries(listed)? } else { Vec::new() };
            for (name, kind) in found {
                let at_root = dir == NodeId::ROOT;
                if at_root && (OWN_NAMES.iter().any(|own| name == *own) || ahead.contains(&name)) {
                    continue;
                }
                let node = expected.get(&name).copied().filter(|id| nodes.get(*id).is_some_and(|n| n.kind == kind));
                let full = path.join(&name);
                match node {
                    Some(id) => {
                        expected.remove(&name);
                        match kind {
                            FileKind::Directory => queue.push((id, true)),
                            FileKind::File => self.compare_length(nodes, id, full, &mut differences)?,
                            _ => {}
                        }
                    }
                    None => self.add_extra(full, kind, &mut differences)?,
                }
            }
            let mut missing: Vec<(OsString, NodeId)> = expected.into_iter().collect();
            missing.sort_unstable();
            for (name, id) in missing {
                let kind = nodes.get(id).map_or(FileKind::File, |n| n.kind);
                let size_bytes = nodes.actual_bytes(id);
                differences.missing.push(Wanted { node: id, path: path.join(&name), kind, size_bytes, top: is_there });
                if kind == FileKind::Directory {
                    queue.push((id, false));
                }
            }
        }
        Ok(differences)
    }

    fn path(&mut self, nodes: &mut Nodes, id: NodeId) -> PathBuf {
        self.buffer.clear();
        nodes.path(id, &mut self.buffer);
        PathBuf::from(OsStr::from_bytes(&self.buffer))
    }

    fn compare_length(
        &mut self,
        nodes: &Nodes,
        id: NodeId,
        path: PathBuf,
        differences: &mut Differences,
    ) -> Result<(), AgeError> {
        let stat = self.fs.call(&Call::Stat { at: At::from(path.as_path()), follow: false }).stat();
        let found = stat.map_err(|errno| self.error("looking at", &path, errno))?.size_bytes;
        let size_bytes = nodes.actual_bytes(id);
        if found != size_bytes {
            differences.resized.push((Wanted { node: id, path, kind: FileKind::File, size_bytes, top: true }, found));
        }
        Ok(())
    }

    /// Adds a name that should not be there, and all below it.
    fn add_extra(&mut self, path: PathBuf, kind: FileKind, differences: &mut Differences) -> Result<(), AgeError> {
        let mut stack = vec![Found { path, kind, top: true }];
        while let Some(found) = stack.pop() {
            if found.kind == FileKind::Directory {
                for (name, kind) in self.entries(&found.path)? {
                    stack.push(Found { path: found.path.join(name), kind, top: false });
                }
            }
            differences.extra.push(found);
        }
        Ok(())
    }

    /// Refuses names that no operation after the checkpoint gives, and that nothing missing has. Answers the names that
    /// were given to nodes of before, with the node.
    fn explain(
        &self,
        plan: &Reader,
        state: &State,
        differences: &Differences,
    ) -> Result<FxHashMap<OsString, NodeId>, AgeError> {
        let name_of = |path: &Path| path.file_name().map(OsStr::to_owned).unwrap_or_default();
        let mut unexplained: FxHashSet<OsString> = differences.extra.iter().map(|f| name_of(&f.path)).collect();
        let extra = unexplained.clone();
        for wanted in &differences.missing {
            // In a directory that was moved, names are what they were.
            unexplained.remove(&name_of(&wanted.path));
        }
        let missing: FxHashMap<NodeId, FileKind> = differences.missing.iter().map(|w| (w.node, w.kind)).collect();
        let mut renames = FxHashMap::default();
        let mut left = state.reach_operations;
        'plan: for batch in plan.batches(state.next_operation) {
            for op in batch? {
                if extra.is_empty() || left == 0 {
                    break 'plan;
                }
                left -= 1;
                let (is_rename, directory) = match op.kind {
                    OpKind::Mkdir => (false, true),
                    OpKind::Create | OpKind::Symlink => (false, false),
                    OpKind::Rename => (true, missing.get(&op.node) == Some(&FileKind::Directory)),
                    _ => continue,
                };
                let derived = || AgingOp::derived_name(op.node, directory).into_bytes();
                let name = OsString::from_vec(op.name.as_deref().map_or_else(derived, <[u8]>::to_vec));
                unexplained.remove(&name);
                if is_rename && missing.contains_key(&op.node) && extra.contains(&name) {
                    renames.insert(name, op.node);
                }
            }
        }
        match differences.extra.iter().find(|found| unexplained.contains(&name_of(&found.path))) {
            None => Ok(renames),
            Some(found) => Err(AgeError::Foreign {
                target: self.target.clone(),
                path: found.path.display().to_string(),
                why: "no operation of the plan after the checkpoint makes it",
            }),
        }
    }

    /// Moves back what was moved after the checkpoint, as far as the directories to move it into are there.
    fn move_back(&mut self, differences: &Differences, renames: &FxHashMap<OsString, NodeId>) -> Result<u64, AgeError> {
        let mut back: FxHashMap<NodeId, &Wanted> =
            differences.missing.iter().filter(|w| w.top).map(|w| (w.node, w)).collect();
        let mut moved = 0;
        for found in differences.extra.iter().filter(|found| found.top) {
            let node = found.path.file_name().and_then(|name| renames.get(name));
            let Some(wanted) = node.and_then(|node| back.get(node).copied()).filter(|w| w.kind == found.kind) else {
                continue;
            };
            // A directory that is to go below what lies in it has to wait until that has been moved.
            if wanted.path.starts_with(&found.path) {
                continue;
            }
            let (from, to) = (At::from(found.path.as_path()), At::from(wanted.path.as_path()));
            self.must("moving back", &found.path, &Call::Rename { from, to, noreplace: true, exchange: false })?;
            back.remove(&wanted.node);
            moved += 1;
        }
        Ok(moved)
    }

    fn mend(&mut self, differences: &Differences) -> Result<Reconciled, AgeError> {
        for found in differences.extra.iter().rev() {
            let at = At::from(found.path.as_path());
            let call = if found.kind == FileKind::Directory { Call::Rmdir { at } } else { Call::Unlink { at } };
            self.must("removing", &found.path, &call)?;
        }
        for (wanted, found) in &differences.resized {
            let fd = self.open(&wanted.path, OpenFlags::WRITE)?;
            if *found > wanted.size_bytes {
                self.must("truncating", &wanted.path, &Call::Ftruncate { fd, len_bytes: wanted.size_bytes })?;
            } else {
                self.write(fd, wanted, *found)?;
            }
            self.must("closing", &wanted.path, &Call::Close { fd })?;
        }
        for wanted in &differences.missing {
            self.make(wanted)?;
        }
        Ok(Reconciled {
            moved: 0,
            removed: differences.extra.len() as u64,
            made: differences.missing.len() as u64,
            resized: differences.resized.len() as u64,
        })
    }

    fn make(&mut self, wanted: &Wanted) -> Result<(), AgeError> {
        let at = At::from(wanted.path.as_path());
        match wanted.kind {
            FileKind::Directory => drop(self.must("making", &wanted.path, &Call::Mkdir { at, mode: Mode(0o755) })?),
            FileKind::Symlink => {
                let target = super::writer::symlink_target(wanted.size_bytes);
                self.must("making", &wanted.path, &Call::Symlink { target, at })?;
            }
            _ => {
                let fd = self.open(&wanted.path, OpenFlags::CREATE_NEW)?;
                self.write(fd, wanted, 0)?;
                self.must("closing", &wanted.path, &Call::Close { fd })?;
            }
        }
        Ok(())
    }

    /// Gives an open file its bytes from `from` on.
    fn write(&mut self, fd: posix::Fd, wanted: &Wanted, from: u64) -> Result<(), AgeError> {
        const CHUNK_BYTES: u64 = 1 << 20;
        let mut at = from;
        while at < wanted.size_bytes {
            let len_bytes = wanted.size_bytes - at;
            let call = match self.data {
                DataMode::Fallocate => Call::Fallocate { fd, how: Fallocate::Allocate, offset: at, len_bytes },
                DataMode::Write => {
                    Call::Write { fd, offset: Some(at), len_bytes: len_bytes.min(CHUNK_BYTES), data: None }
                }
            };
            match self.must("writing", &wanted.path, &call)? {
                posix::Reply::Count(0) => return Err(self.error("writing", &wanted.path, Errno::ENOSPC)),
                posix::Reply::Count(n) => at += n,
                _ => at = wanted.size_bytes,
            }
        }
        Ok(())
    }
}

/// The names of the directories made ahead of their operation.
fn placed_names(plan: &Reader, placed: &FxHashSet<NodeId>) -> Result<FxHashSet<OsString>, AgeError> {
    let mut names = FxHashSet::default();
    if placed.is_empty() {
        return Ok(names);
    }
    for batch in plan.batches(0) {
        for op in batch?.iter().filter(|op| op.kind == OpKind::Mkdir && placed.contains(&op.node)) {
            let name =
                op.name.as_deref().map_or_else(|| AgingOp::derived_name(op.node, true).into_bytes(), <[u8]>::to_vec);
            names.insert(OsString::from_vec(name));
        }
        if names.len() >= placed.len() {
            break;
        }
    }
    Ok(names)
}
