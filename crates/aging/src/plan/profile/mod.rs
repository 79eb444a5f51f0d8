//! A plan from a workload profile: a trace run again and again, in several copies, until the simulated days are over.
//!
//! Each copy of the workload has a directory of its own. A copy runs its script (what the trace changed, `script`) so
//! many times, either each time on a fresh tree of its own, the oldest trees being removed whole when the file system
//! would grow too full ([`Again::Fresh`]: builds, releases, containers); or always on the same tree, which is put back
//! to its initial state before each further run ([`Again::Same`]: a checkout that is cleaned and built again). The
//! copies take turns by time, each begun at a random time of the first run.

mod names;
pub(super) mod script;

pub use script::Skipped;

use super::inputs::input;
use super::{PlanError, Progress, go_on};
use crate::format::{DAYS_MAX, PlanMeta, Source, Writer};
use crate::{AgingOp, DAY_NS, NodeId, OpKind};
use posix::FileKind;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::FxHashMap;
use script::{Initial, Script, ScriptOp};
use serde_json::json;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::Path;

/// On what a workload is run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Again {
    /// On a fresh tree; the oldest is removed when there would be no room.
    #[default]
    Fresh,
    /// On the same tree, put back to its initial state.
    Same,
}

/// How to plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfileOptions {
    /// Runs of each copy.
    pub repeat: u32,
    /// Copies that run side by side, each in a directory of its own.
    pub copies: u32,
    /// Simulated days that all runs take; `None`: as long as they took when recorded.
    pub days: Option<u32>,
    #[allow(missing_docs)]
    pub again: Again,
    /// Whether what was read is read again: file systems that go by what is read age by it.
    pub reads: bool,
    /// The share of the capacity that may be planned for, 0 to 1.
    pub fill: f64,
    /// Seed of the times at which copies begin.
    pub seed: u64,
}

impl Default for ProfileOptions {
    fn default() -> Self {
        ProfileOptions { repeat: 1, copies: 1, days: None, again: Again::default(), reads: false, fill: 0.9, seed: 1 }
    }
}

/// Plans from the workload profile in the directory `path`, for a file system of `capacity_bytes`.
///
/// # Errors
/// A damaged profile, one that changes nothing, and copies that do not fit the capacity.
pub fn plan(
    path: &Path,
    options: &ProfileOptions,
    capacity_bytes: u64,
    writer: &mut Writer,
    mut progress: Progress<'_>,
) -> Result<PlanMeta, PlanError> {
    if options.repeat == 0 || options.copies == 0 || options.days == Some(0) {
        return Err(PlanError::parameter("repeat, copies, days", "at least one of each"));
    }
    if !(options.fill > 0.0 && options.fill <= 1.0) {
        return Err(PlanError::parameter("fill", "a share above 0, 1 at most"));
    }
    let script = Script::read(path, options.reads)?;
    go_on(&mut progress, 0.0)?;
    let runs_ns = match options.days {
        Some(days) => u64::from(days).saturating_mul(DAY_NS),
        None => script.span_ns.saturating_add(1).saturating_mul(u64::from(options.repeat)),
    };
    if runs_ns > u64::from(DAYS_MAX) * DAY_NS {
        let message = format!("the runs take more than {DAYS_MAX} days; say how many with --days");
        return Err(PlanError::parameter("days", message));
    }
    // The last copy may begin up to a run later than the first.
    let run_ns = runs_ns / (u64::from(options.repeat) + u64::from(options.copies > 1));
    if run_ns == 0 {
        return Err(PlanError::parameter("days", "too few for so many runs"));
    }
    let room_bytes = (capacity_bytes as f64 * options.fill) as u64;
    let mut stage = Stage {
        script: &script,
        again: options.again,
        run_ns,
        room_bytes,
        peak_bytes: script.peak_bytes(),
        writer,
        next_node: 1,
        finished: VecDeque::new(),
    };
    stage.run(options, &mut progress)?;
    let days =
        u32::try_from((stage.writer.tree().now_ns() / DAY_NS + 1).max(runs_ns.div_ceil(DAY_NS))).unwrap_or(u32::MAX);
    let input = input(path)?;
    let source = Source {
        kind: "profile".into(),
        name: input.name.clone(),
        description: format!(
            "A recorded workload, {} copies run {} times, {}.",
            options.copies,
            options.repeat,
            match options.again {
                Again::Fresh => "each time on a fresh tree",
                Again::Same => "always on the same tree, put back to its initial state",
            }
        ),
        inputs: vec![input],
        parameters: json!({
            "repeat": options.repeat,
            "copies": options.copies,
            "again": format!("{:?}", options.again).to_lowercase(),
            "reads": options.reads,
            "fill": options.fill,
            "run_ns": run_ns,
            "recorded_ns": script.span_ns,
            "operations_of_a_run": script.ops.len(),
            "initial_nodes": script.initial.len(),
            "skipped": script.skipped,
        }),
    };
    Ok(PlanMeta { source, seed: options.seed, days, ..PlanMeta::default() })
}

impl Script {
    /// The most that a run uses, initial tree included; lengths are rounded up to a usual block.
    fn peak_bytes(&self) -> u64 {
        const BLOCK: u64 = 4096;
        let rounded = |bytes: u64| bytes.checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX);
        let mut sizes: FxHashMap<u32, u64> = FxHashMap::default();
        let (mut now, mut most) = (0u64, 0u64);
        for node in &self.initial {
            sizes.insert(node.node, node.size_bytes);
            now = now.saturating_add(rounded(node.size_bytes));
        }
        most = most.max(now);
        for op in &self.ops {
            let before = sizes.get(&op.node).copied().unwrap_or(0);
            let after = match op.kind {
                OpKind::Append => before.saturating_add(op.size_bytes),
                OpKind::Truncate | OpKind::Create => op.size_bytes,
                OpKind::Delete => 0,
                _ => before,
            };
            sizes.insert(op.node, after);
            now = now.saturating_sub(rounded(before)).saturating_add(rounded(after));
            most = most.max(now);
        }
        most
    }
}

/// A tree that a run is made on.
#[derive(Clone, Debug)]
struct Stand {
    root: NodeId,
    /// By node of the script.
    nodes: Vec<Option<NodeId>>,
}

/// A copy: which run, where in the script, and its tree.
struct Copy {
    number: u32,
    run: u32,
    next_op: usize,
    stand: Option<Stand>,
}

struct Stage<'a> {
    script: &'a Script,
    again: Again,
    run_ns: u64,
    room_bytes: u64,
    peak_bytes: u64,
    writer: &'a mut Writer,
    next_node: u64,
    /// Trees of runs that are over, oldest first.
    finished: VecDeque<Stand>,
}

impl Stage<'_> {
    fn run(&mut self, options: &ProfileOptions, progress: &mut Progress<'_>) -> Result<(), PlanError> {
        let mut copies: Vec<Copy> =
            (0..options.copies).map(|number| Copy { number, run: 0, next_op: 0, stand: None }).collect();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(options.seed);
        // The first begins at once, the others within a run's length.
        let phases: Vec<u64> =
            (0..options.copies).map(|copy| if copy == 0 { 0 } else { random.next_u64() % self.run_ns }).collect();
        let mut turns: BinaryHeap<Reverse<(u64, u32)>> = phases.iter().copied().zip(0..).map(Reverse).collect();
        let total = self.script.ops.len() as u64 * u64::from(options.repeat) * u64::from(options.copies);
        let mut done = 0u64;
        while let Some(Reverse((t_ns, number))) = turns.pop() {
            let Some(copy) = copies.get_mut(number as usize) else { continue };
            if copy.next_op == 0 {
                self.begin(copy, t_ns)?;
            }
            let begin = phases.get(number as usize).copied().unwrap_or(0) + self.run_ns * u64::from(copy.run);
            // The copy goes on until another's turn has come.
            let until = turns.peek().map_or(u64::MAX, |Reverse((t, _))| *t);
            while let Some(op) = self.script.ops.get(copy.next_op) {
                let at = begin + self.scaled(op.t_ns);
                if at > until {
                    break;
                }
                self.perform(copy, op, at.max(t_ns))?;
                copy.next_op += 1;
                done += 1;
                if done.is_multiple_of(65_536) {
                    go_on(progress, done as f64 / total as f64)?;
                }
            }
            match self.script.ops.get(copy.next_op) {
                Some(op) => turns.push(Reverse((begin + self.scaled(op.t_ns), number))),
                None => {
                    self.end(copy);
                    if copy.run < options.repeat {
                        turns.push(Reverse((begin + self.run_ns, number)));
                    }
                }
            }
        }
        Ok(())
    }

    /// A time of the script in a run's time.
    fn scaled(&self, t_ns: u64) -> u64 {
        let span = u128::from(self.script.span_ns) + 1;
        u64::try_from(u128::from(t_ns) * u128::from(self.run_ns) / span).unwrap_or(self.run_ns)
    }

    /// Makes the tree for a run.
    fn begin(&mut self, copy: &mut Copy, t_ns: u64) -> Result<(), PlanError> {
        if let Some(stand) = &mut copy.stand {
            let mut stand = std::mem::replace(stand, Stand { root: NodeId::ROOT, nodes: Vec::new() });
            self.restore(&mut stand, t_ns)?;
            copy.stand = Some(stand);
            return Ok(());
        }
        while self.writer.used_bytes().saturating_add(self.peak_bytes) > self.room_bytes {
            let Some(oldest) = self.finished.pop_front() else {
                let message = format!(
                    "a copy of the workload takes up to {} bytes; there is no room for one more beside {} bytes in {} \
                     (capacity times fill)",
                    self.peak_bytes,
                    self.writer.used_bytes(),
                    self.room_bytes
                );
                return Err(PlanError::parameter("capacity, copies", message));
            };
            self.clear(&oldest, t_ns)?;
        }
        let root = self.new_node();
        let name = match self.again {
            Again::Fresh => format!("copy-{}-run-{}", copy.number, copy.run),
            Again::Same => format!("copy-{}", copy.number),
        };
        self.writer
            .push(AgingOp { name: Some(name.into_bytes().into()), ..AgingOp::new(t_ns, OpKind::Mkdir, root) })?;
        let mut stand = Stand { root, nodes: vec![None; self.script.nodes as usize] };
        for node in &self.script.initial {
            self.make(&mut stand, node, t_ns)?;
        }
        copy.stand = Some(stand);
        Ok(())
    }

    fn end(&mut self, copy: &mut Copy) {
        copy.run += 1;
        copy.next_op = 0;
        if self.again == Again::Fresh {
            self.finished.extend(copy.stand.take());
        }
    }

    fn new_node(&mut self) -> NodeId {
        self.next_node += 1;
        NodeId(self.next_node - 1)
    }

    fn make(&mut self, stand: &mut Stand, node: &Initial, t_ns: u64) -> Result<(), PlanError> {
        let id = self.new_node();
        let kind = match node.kind {
            FileKind::Directory => OpKind::Mkdir,
            FileKind::Symlink => OpKind::Symlink,
            _ => OpKind::Create,
        };
        let (dir, name) = (stand.directory(node.dir), Some(node.name.clone()));
        self.writer.push(AgingOp { dir, name, size_bytes: node.size_bytes, ..AgingOp::new(t_ns, kind, id) })?;
        if let Some(slot) = stand.nodes.get_mut(node.node as usize) {
            *slot = Some(id);
        }
        Ok(())
    }

    fn perform(&mut self, copy: &mut Copy, op: &ScriptOp, t_ns: u64) -> Result<(), PlanError> {
        let Some(stand) = &mut copy.stand else { return Ok(()) };
        let known = stand.nodes.get(op.node as usize).copied().flatten();
        let makes = matches!(op.kind, OpKind::Mkdir | OpKind::Create | OpKind::Symlink);
        let node = match known {
            Some(node) if !makes => node,
            None if makes => self.new_node(),
            // The script is consistent by itself.
            _ => return Ok(()),
        };
        let named = makes || op.kind == OpKind::Rename;
        let dir = if named { stand.directory(op.dir) } else { NodeId::ROOT };
        let name = op.name.clone();
        let (offset_bytes, size_bytes) = (op.offset_bytes, op.size_bytes);
        self.writer.push(AgingOp { t_ns, kind: op.kind, node, dir, name, offset_bytes, size_bytes })?;
        let gone = matches!(op.kind, OpKind::Delete | OpKind::Rmdir);
        if let Some(slot) = stand.nodes.get_mut(op.node as usize) {
            *slot = (!gone).then_some(node);
        }
        Ok(())
    }

    /// The nodes of a tree that are there, directories after what is in them.
    fn alive(&self, stand: &Stand) -> Vec<(usize, NodeId)> {
        let tree = self.writer.tree();
        let depth = |mut node: NodeId| {
            let mut depth = 0u32;
            while let Some(n) = tree.get(node).filter(|_| node != stand.root && node != NodeId::ROOT) {
                node = n.parent;
                depth += 1;
            }
            depth
        };
        let alive = stand.nodes.iter().enumerate().filter_map(|(i, node)| node.map(|node| (i, node)));
        let mut alive: Vec<(u32, usize, NodeId)> = alive.map(|(i, node)| (depth(node), i, node)).collect();
        alive.sort_by_key(|(depth, i, _)| (Reverse(*depth), *i));
        alive.into_iter().map(|(_, i, node)| (i, node)).collect()
    }

    fn remove(&mut self, node: NodeId, t_ns: u64) -> Result<(), PlanError> {
        let is_directory = self.writer.tree().get(node).is_some_and(|n| n.kind == FileKind::Directory);
        let kind = if is_directory { OpKind::Rmdir } else { OpKind::Delete };
        Ok(self.writer.push(AgingOp::new(t_ns, kind, node))?)
    }

    /// Removes a whole tree.
    fn clear(&mut self, stand: &Stand, t_ns: u64) -> Result<(), PlanError> {
        for (_, node) in self.alive(stand) {
            self.remove(node, t_ns)?;
        }
        self.remove(stand.root, t_ns)
    }

    /// Puts a tree back to its initial state: what the run made is removed, what it removed is made, what it changed is
    /// written anew; what it moved is moved back.
    fn restore(&mut self, stand: &mut Stand, t_ns: u64) -> Result<(), PlanError> {
        let mut initial: Vec<Option<&Initial>> = vec![None; stand.nodes.len()];
        for node in &self.script.initial {
            if let Some(slot) = initial.get_mut(node.node as usize) {
                *slot = Some(node);
            }
        }
        // Aside first: names may have been exchanged, and new directories may hold what is to stay.
        for (i, node) in self.alive(stand) {
            if initial.get(i).copied().flatten().is_some() && self.script.moves(i) {
                let name = Some(format!("~aside-{i}").into_bytes().into());
                self.writer.push(AgingOp { dir: stand.root, name, ..AgingOp::new(t_ns, OpKind::Rename, node) })?;
            }
        }
        for (i, node) in self.alive(stand) {
            if initial.get(i).copied().flatten().is_none() {
                self.remove(node, t_ns)?;
                if let Some(slot) = stand.nodes.get_mut(i) {
                    *slot = None;
                }
            }
        }
        for node in &self.script.initial {
            let i = node.node as usize;
            match stand.nodes.get(i).copied().flatten() {
                None => self.make(stand, node, t_ns)?,
                Some(id) => {
                    if self.script.moves(i) {
                        let (dir, name) = (stand.directory(node.dir), Some(node.name.clone()));
                        self.writer.push(AgingOp { dir, name, ..AgingOp::new(t_ns, OpKind::Rename, id) })?;
                    }
                    if node.kind == FileKind::File && self.script.writes(i) {
                        self.rewrite(id, node.size_bytes, t_ns)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn rewrite(&mut self, node: NodeId, size_bytes: u64, t_ns: u64) -> Result<(), PlanError> {
        if self.writer.tree().get(node).is_some_and(|n| n.size_bytes > 0) {
            self.writer.push(AgingOp::new(t_ns, OpKind::Truncate, node))?;
        }
        if size_bytes > 0 {
            self.writer.push(AgingOp { size_bytes, ..AgingOp::new(t_ns, OpKind::Append, node) })?;
        }
        Ok(())
    }
}

impl Stand {
    fn directory(&self, dir: Option<u32>) -> NodeId {
        dir.and_then(|dir| self.nodes.get(dir as usize).copied().flatten()).unwrap_or(self.root)
    }
}
