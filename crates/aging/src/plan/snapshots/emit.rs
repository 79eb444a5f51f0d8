//! Steps to operations.

use super::compare::{NONE, View};
use super::interval::{Between, Change, Habit, Interval, Live, Tally, What, planned_bytes};
use super::order::{Next, in_order};
use crate::format::Writer;
use crate::plan::short_lived::habits::Habits;
use crate::plan::short_lived::{Activity, Carry, Number, ShortLived};
use crate::snapshot::InodeGroups;
use crate::{AgingOp, DAY_NS, NodeId, OpKind};
use columnar::FileError;
use posix::FileKind;
use rand_xoshiro::Xoshiro256PlusPlus;
use stats::random::unit;

/// A short-lived file that was placed: its directory by the snapshot after, and its length.
pub(super) struct Short {
    directory: u32,
    size_bytes: u64,
}

/// Writes operations, and knows how nodes are numbered and named.
pub(super) struct Emitter<'w> {
    writer: &'w mut Writer,
    /// Placement by allocation group: directories of the tree do not appear, names are derived.
    groups: Option<InodeGroups>,
    prefix: String,
    next_node: u64,
    own_names: u64,
}

impl<'w> Emitter<'w> {
    pub(super) fn new(writer: &'w mut Writer, groups: Option<InodeGroups>, prefix: String) -> Emitter<'w> {
        let next_node = 1 + groups.map_or(0, |g| g.count);
        Emitter { writer, groups, prefix, next_node, own_names: 0 }
    }

    fn new_node(&mut self) -> NodeId {
        self.next_node += 1;
        NodeId(self.next_node - 1)
    }

    fn group_directory(groups: &InodeGroups, ino: u64) -> NodeId {
        NodeId(1 + groups.of(ino))
    }

    /// A name that no snapshot has.
    fn own_name(&mut self) -> Option<Box<[u8]>> {
        self.own_names += 1;
        let name = format!("{}{:x}", self.prefix, self.own_names);
        self.groups.is_none().then(|| name.into_bytes().into())
    }

    /// Makes the first snapshot's tree in the first simulated day, in order of change time.
    pub(super) fn initial(&mut self, view: &View, tally: &mut Tally) -> Result<Vec<Option<Live>>, FileError> {
        if let Some(groups) = self.groups {
            for group in 0..groups.count {
                self.writer.push(AgingOp::new(0, OpKind::Mkdir, NodeId(1 + group)))?;
            }
        }
        let mut live: Vec<Option<Live>> = vec![None; view.len()];
        if let Some(root) = live.first_mut() {
            *root = Some(Live { node: NodeId::ROOT, born_ns: i64::MIN, habit: Habit::Unknown });
        }
        let mut order: Vec<(i64, u32)> = view.nodes().skip(1).map(|(i, e)| (e.inode.ctime_ns, i)).collect();
        order.sort_unstable();
        let step_ns = DAY_NS / (order.len() as u64 + 1);
        for (rank, (_, index)) in (1u64..).zip(order) {
            // The directories above it that are not there yet, topmost last.
            let mut missing = vec![index];
            while let Some(above) = missing.last().and_then(|i| view.entry(*i)).map(|e| e.parent) {
                if live.get(above as usize).copied().flatten().is_some() {
                    break;
                }
                missing.push(above);
            }
            for index in missing.into_iter().rev() {
                self.make_initial(view, index, rank * step_ns, &mut live, tally)?;
            }
        }
        Ok(live)
    }

    fn make_initial(
        &mut self,
        view: &View,
        index: u32,
        t_ns: u64,
        live: &mut [Option<Live>],
        tally: &mut Tally,
    ) -> Result<(), FileError> {
        let Some(entry) = view.entry(index) else { return Ok(()) };
        if live.get(index as usize).copied().flatten().is_some() {
            return Ok(());
        }
        let dir = live.get(entry.parent as usize).copied().flatten().map_or(NodeId::ROOT, |l| l.node);
        if entry.inode.kind == FileKind::Directory {
            tally.directories_made += 1;
        } else {
            tally.created += 1;
        }
        let node = self.make(view, index, dir, t_ns)?;
        if let Some(slot) = live.get_mut(index as usize) {
            *slot = Some(Live { node, born_ns: entry.inode.ctime_ns, habit: Habit::Unknown });
        }
        Ok(())
    }

    /// Makes a node; by groups, a directory gets its number only.
    fn make(&mut self, view: &View, index: u32, dir: NodeId, t_ns: u64) -> Result<NodeId, FileError> {
        let node = self.new_node();
        let Some(inode) = view.entry(index).map(|e| e.inode) else { return Ok(node) };
        let (kind, size_bytes) = match inode.kind {
            FileKind::Directory => (OpKind::Mkdir, 0),
            FileKind::Symlink => (OpKind::Symlink, inode.size_bytes),
            _ => (OpKind::Create, planned_bytes(&inode)),
        };
        let (dir, name) = match &self.groups {
            Some(_) if kind == OpKind::Mkdir => return Ok(node),
            Some(groups) => (Self::group_directory(groups, inode.ino), None),
            None => (dir, Some(view.name(index).into())),
        };
        self.writer.push(AgingOp { dir, name, size_bytes, ..AgingOp::new(t_ns, kind, node) })?;
        Ok(node)
    }

    /// Writes the operations of an interval; answers the nodes of the snapshot after, by index.
    pub(super) fn interval(
        &mut self,
        between: &Between<'_>,
        interval: &Interval,
        shorts: &[Short],
        from_ns: u64,
    ) -> Result<Vec<Option<NodeId>>, FileError> {
        let mut nodes: Vec<Option<NodeId>> = vec![None; between.b.len()];
        for (i, _) in between.b.nodes() {
            let before = between.matching.before_of(i);
            nodes[i as usize] = between.live.get(before as usize).copied().flatten().map(|l| l.node);
        }
        let mut short_nodes = vec![NodeId::ROOT; shorts.len()];
        in_order(interval, from_ns, |t_ns, next| {
            let (Next::Do(index) | Next::SetAside(index)) = next;
            let Some(step) = interval.steps.get(index as usize) else { return Ok(()) };
            match (next, step.what) {
                (Next::SetAside(_), What::Move { a, .. }) => self.set_aside(between, a, t_ns),
                (Next::SetAside(_), _) => Ok(()),
                (_, What::Make { b }) => {
                    let dir = parent_node(between.b, b, &nodes);
                    let node = self.make(between.b, b, dir, t_ns)?;
                    nodes[b as usize] = Some(node);
                    Ok(())
                }
                (_, What::Move { a, b }) => self.rename(between, a, b, t_ns, &nodes),
                (_, What::Remove { a }) => self.remove(between, a, t_ns),
                (_, What::Change { a, b, how }) => self.change(between, a, b, how, t_ns),
                (_, What::Write { a, kind, offset_bytes, size_bytes }) => {
                    let Some(live) = between.live.get(a as usize).copied().flatten() else { return Ok(()) };
                    self.writer.push(AgingOp { offset_bytes, size_bytes, ..AgingOp::new(t_ns, kind, live.node) })
                }
                (_, What::ShortBorn { short }) => {
                    let Some(file) = shorts.get(short as usize) else { return Ok(()) };
                    let node = self.new_node();
                    short_nodes[short as usize] = node;
                    self.short_lived(between, file, node, t_ns, &nodes)
                }
                (_, What::ShortDied { short }) => {
                    let Some(node) = short_nodes.get(short as usize) else { return Ok(()) };
                    self.writer.push(AgingOp::new(t_ns, OpKind::Delete, *node))
                }
            }
        })?;
        Ok(nodes)
    }

    fn short_lived(
        &mut self,
        between: &Between<'_>,
        file: &Short,
        node: NodeId,
        t_ns: u64,
        nodes: &[Option<NodeId>],
    ) -> Result<(), FileError> {
        let directory = nodes.get(file.directory as usize).copied().flatten().unwrap_or(NodeId::ROOT);
        let ino = between.b.entry(file.directory).map_or(0, |e| e.inode.ino);
        let dir = self.groups.as_ref().map_or(directory, |groups| Self::group_directory(groups, ino));
        let name = self.own_name();
        self.writer.push(AgingOp { dir, name, size_bytes: file.size_bytes, ..AgingOp::new(t_ns, OpKind::Create, node) })
    }

    fn set_aside(&mut self, between: &Between<'_>, a: u32, t_ns: u64) -> Result<(), FileError> {
        let node = between.live.get(a as usize).copied().flatten().map(|l| l.node);
        let (Some(node), None) = (node, &self.groups) else { return Ok(()) };
        let name = self.own_name();
        self.writer.push(AgingOp { name, ..AgingOp::new(t_ns, OpKind::Rename, node) })
    }

    fn rename(
        &mut self,
        between: &Between<'_>,
        a: u32,
        b: u32,
        t_ns: u64,
        nodes: &[Option<NodeId>],
    ) -> Result<(), FileError> {
        let node = between.live.get(a as usize).copied().flatten().map(|l| l.node);
        let (Some(node), None) = (node, &self.groups) else { return Ok(()) };
        let name = Some(between.b.name(b).into());
        let dir = parent_node(between.b, b, nodes);
        self.writer.push(AgingOp { dir, name, ..AgingOp::new(t_ns, OpKind::Rename, node) })
    }

    fn remove(&mut self, between: &Between<'_>, a: u32, t_ns: u64) -> Result<(), FileError> {
        let Some(live) = between.live.get(a as usize).copied().flatten() else { return Ok(()) };
        let is_directory = between.a.entry(a).is_some_and(|e| e.inode.kind == FileKind::Directory);
        match (is_directory, &self.groups) {
            (true, Some(_)) => Ok(()),
            (true, None) => self.writer.push(AgingOp::new(t_ns, OpKind::Rmdir, live.node)),
            (false, _) => self.writer.push(AgingOp::new(t_ns, OpKind::Delete, live.node)),
        }
    }

    fn change(&mut self, between: &Between<'_>, a: u32, b: u32, how: Change, t_ns: u64) -> Result<(), FileError> {
        let (Some(was), Some(is)) = (between.a.entry(a), between.b.entry(b)) else { return Ok(()) };
        let Some(live) = between.live.get(a as usize).copied().flatten() else { return Ok(()) };
        let (old, new) = (planned_bytes(&was.inode), planned_bytes(&is.inode));
        let op = |kind| AgingOp::new(t_ns, kind, live.node);
        match how {
            Change::Rewrite => {
                if old > 0 {
                    self.writer.push(op(OpKind::Truncate))?;
                }
                if new > 0 {
                    self.writer.push(AgingOp { size_bytes: new, ..op(OpKind::Append) })?;
                }
                Ok(())
            }
            Change::Append => self.writer.push(AgingOp { size_bytes: new.saturating_sub(old), ..op(OpKind::Append) }),
            Change::Overwrite if new > 0 => self.writer.push(AgingOp { size_bytes: new, ..op(OpKind::Overwrite) }),
            Change::Overwrite | Change::Habitual => Ok(()),
        }
    }
}

fn parent_node(view: &View, index: u32, nodes: &[Option<NodeId>]) -> NodeId {
    let parent = view.entry(index).map_or(0, |e| e.parent);
    nodes.get(parent as usize).copied().flatten().unwrap_or(NodeId::ROOT)
}

/// Adds short-lived files to an interval, day by day, in the busiest of the directories that were there all the time.
pub(super) fn add_short_lived(
    interval: &mut Interval,
    between: &Between<'_>,
    (short_lived, number, scale): (&ShortLived, Number, f64),
    carry: &mut Carry,
    random: &mut Xoshiro256PlusPlus,
    (from_ns, to_ns): (u64, u64),
) -> Vec<Short> {
    let mut shorts = Vec::new();
    for day in from_ns / DAY_NS..=to_ns / DAY_NS {
        let window = (from_ns.max(day * DAY_NS), to_ns.min((day + 1) * DAY_NS - 1));
        let activity = activity(interval, between, window);
        short_lived.place(
            &activity,
            window,
            short_lived.wanted(&activity, number) * scale,
            carry,
            &mut || unit(random),
            &mut |directory, born_ns, died_ns, size_bytes| {
                let short = shorts.len() as u32;
                shorts.push(Short { directory, size_bytes });
                let born = interval.push(born_ns, What::ShortBorn { short });
                let died = interval.push(died_ns, What::ShortDied { short });
                interval.before.push((born, died));
            },
        );
    }
    shorts
}

/// Gives files that were appended to or written over the steps of another workload's habits, where it has some of files
/// like them.
pub(super) fn add_habits(
    interval: &mut Interval,
    between: &Between<'_>,
    habits: &Habits,
    random: &mut Xoshiro256PlusPlus,
    from_ns: u64,
) -> u64 {
    let mut given = 0;
    for index in 0..interval.steps.len() {
        let Some(step) = interval.steps.get_mut(index) else { break };
        let What::Change { a, b, how: Change::Append | Change::Overwrite } = step.what else { continue };
        let (Some(was), Some(is)) = (between.a.entry(a), between.b.entry(b)) else { continue };
        let lengths = (planned_bytes(&was.inode), planned_bytes(&is.inode));
        let writes = habits.draw(lengths, (from_ns, step.t_ns), &mut || unit(random));
        if writes.is_empty() {
            continue;
        }
        step.what = What::Change { a, b, how: Change::Habitual };
        for (t_ns, kind, offset_bytes, size_bytes) in writes {
            interval.push(t_ns, What::Write { a, kind, offset_bytes, size_bytes });
        }
        given += 1;
    }
    given
}

/// What a day of the skeleton did, by directory.
fn activity(interval: &Interval, between: &Between<'_>, (from_ns, to_ns): (u64, u64)) -> Activity {
    let mut activity = Activity::default();
    let days_steps = interval.steps.iter().filter(|s| (from_ns..=to_ns).contains(&s.t_ns));
    for step in days_steps {
        let mut directory = match step.what {
            What::Make { b } | What::Move { b, .. } | What::Change { b, .. } => {
                between.b.entry(b).map_or(0, |e| e.parent)
            }
            What::Remove { a } => {
                let parent = between.a.entry(a).map_or(0, |e| e.parent);
                match between.matching.after_of(parent) {
                    NONE => continue,
                    after => after,
                }
            }
            What::Write { .. } | What::ShortBorn { .. } | What::ShortDied { .. } => continue,
        };
        // One that was made in the interval may not be there yet: the nearest above that was.
        while directory != 0 && between.matching.before_of(directory) == NONE {
            directory = between.b.entry(directory).map_or(0, |e| e.parent);
        }
        let is_file = |b: u32| between.b.entry(b).is_some_and(|e| e.inode.kind == FileKind::File);
        let lasting = matches!(step.what, What::Make { b } if is_file(b));
        activity.add(directory, step.t_ns, lasting);
    }
    activity
}
