//! Making the operations of a personality, day by day.
//!
//! Every file gets its time of death when it is made, from its stream's lifetimes. A day's arrivals are as many as make
//! up for the bytes that die on it and for the way the utilisation curve takes; so lifetimes are kept, and the curve is
//! too. Only where an arrival would go over the curve are the files that are due next deleted before their time, which
//! is counted.

use super::books::Books;
use super::population::{File, FileRef, Population};
use super::prepared::Prepared;
use super::spec::{Dies, Directories, Personality, Write};
use super::time::{Clock, Curve};
use super::tree::{Dir, Tree};
use crate::format::Writer;
use crate::model::{Rng, rng};
use crate::plan::{PlanError, PlannedFor, Progress, go_on};
use crate::{AgingOp, DAY_NS, NodeId, OpKind};
use rand_distr::{Distribution as _, Poisson, StandardNormal};
use stats::random::{index, unit};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Utilisation may be above the curve by this, as a share of the capacity.
const SLACK: f64 = 0.004;

/// The lasting files aim at this much below the curve, as a share of the capacity, so that a burst finds room.
const BURST_ROOM: f64 = 0.004;

/// The most that is left free for short-lived files, as a share of the capacity.
const PASSING_MAX: f64 = 0.05;

/// How often a short-lived file that finds no room is drawn again.
const REDRAWS: u32 = 4;

/// Files that live at least this long belong to the lasting population.
const LASTING_S: f64 = 86_400.0;

/// Simulated time between two operations of one arrival: what a busy writer needs.
const STEP_NS: u64 = 50_000;

/// Pieces that a growing file is written in, at most.
const PIECES_MAX: u64 = 256;

/// Files updated lately that each stream remembers.
const HOT_FILES: usize = 64;

/// Something that is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    t_ns: u64,
    order: u64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The curve falls: delete what is above it.
    Trim,
    Arrive {
        stream: u8,
    },
    Update {
        stream: u8,
    },
    Grow(FileRef),
    Die(FileRef),
    DieTogether {
        group: u32,
        generation: u32,
    },
}

/// The writer with its clock.
pub(super) struct Output<'a> {
    writer: &'a mut Writer,
    now_ns: u64,
    end_ns: u64,
    next_node: u64,
}

impl Output<'_> {
    fn push(&mut self, op: AgingOp) -> Result<(), PlanError> {
        self.writer.push(AgingOp { t_ns: self.now_ns, ..op })?;
        self.now_ns = (self.now_ns + STEP_NS).min(self.end_ns);
        Ok(())
    }

    fn op(&mut self, kind: OpKind, node: NodeId, offset_bytes: u64, size_bytes: u64) -> Result<(), PlanError> {
        self.push(AgingOp { offset_bytes, size_bytes, ..AgingOp::new(0, kind, node) })
    }

    fn node(&mut self) -> NodeId {
        self.next_node += 1;
        NodeId(self.next_node)
    }

    fn mkdir(&mut self, tree: &mut Tree, parent: Dir) -> Result<Dir, PlanError> {
        let node = self.node();
        self.push(AgingOp { dir: tree.node(parent), ..AgingOp::new(0, OpKind::Mkdir, node) })?;
        Ok(tree.add(node, parent))
    }
}

/// The engine.
pub(super) struct Engine<'a> {
    out: Output<'a>,
    rng: Rng,
    planned_for: PlannedFor,
    curve: Curve,
    clock: Clock,
    pub(super) streams: Vec<Prepared>,
    shares: Vec<f64>,
    pub(super) tree: Tree,
    pub(super) files: Population,
    pub(super) books: Books,
    /// Events by the day they are due, beyond today; the last is for whatever comes after the end.
    due: Vec<Vec<Event>>,
    /// Bytes that die on each day.
    due_bytes: Vec<u64>,
    today: BinaryHeap<Reverse<Event>>,
    day: u32,
    days: u32,
    order: u64,
    /// Bytes of all files once they are written, each rounded up to a block.
    committed: u64,
    staging: Option<NodeId>,
    /// Before the first event: files are as if they had lived for long.
    filling: bool,
}

impl<'a> Engine<'a> {
    pub(super) fn new(
        personality: &Personality,
        planned_for: PlannedFor,
        curve: Curve,
        days: u32,
        pace: f64,
        seed: u64,
        writer: &'a mut Writer,
    ) -> Engine<'a> {
        let mut rng = rng(seed);
        let streams: Vec<Prepared> =
            personality.stream.iter().map(|s| Prepared::new(s, planned_for, pace, &mut rng)).collect();
        let mut sum = 0.0;
        let shares = personality
            .stream
            .iter()
            .map(|s| {
                sum += s.share;
                sum
            })
            .collect();
        let tree = Tree::new(&personality.directories, &mut rng);
        Engine {
            out: Output { writer, now_ns: 0, end_ns: u64::from(days) * DAY_NS - 1, next_node: 0 },
            rng,
            planned_for,
            curve,
            clock: Clock::new(&personality.rhythm),
            books: Books::new(&streams, days),
            files: Population::new(streams.len()),
            streams,
            shares,
            tree,
            due: vec![Vec::new(); days as usize + 1],
            due_bytes: vec![0; days as usize + 1],
            today: BinaryHeap::new(),
            day: 0,
            days,
            order: 0,
            committed: 0,
            staging: None,
            filling: false,
        }
    }

    /// Everything from the first to the last day.
    pub(super) fn run(&mut self, personality: &Personality, mut progress: Progress<'_>) -> Result<(), PlanError> {
        self.lay_out(&personality.directories)?;
        self.fill()?;
        for day in 0..self.days {
            if day % 8 == 0 {
                go_on(&mut progress, f64::from(day) / f64::from(self.days))?;
            }
            self.begin_day(day)?;
            while let Some(Reverse(event)) = self.today.pop() {
                self.out.now_ns = self.out.now_ns.max(event.t_ns).min(self.out.end_ns);
                self.happen(event.what)?;
            }
            self.out.now_ns = self.out.now_ns.max(u64::from(day + 1) * DAY_NS - 1).min(self.out.end_ns);
            self.make_room(0)?;
        }
        Ok(())
    }

    fn lay_out(&mut self, directories: &Directories) -> Result<(), PlanError> {
        if self.streams.iter().any(|s| s.stream.write == Write::Staged) {
            let node = self.out.node();
            self.out.op(OpKind::Mkdir, node, 0, 0)?;
            self.staging = Some(node);
        }
        let Directories::Fixed { fan_out, .. } = directories else { return Ok(()) };
        let mut level = vec![Dir(0)];
        for n in fan_out {
            let mut below = Vec::with_capacity(level.len() * *n as usize);
            for parent in level {
                for _ in 0..*n {
                    below.push(self.out.mkdir(&mut self.tree, parent)?);
                }
            }
            level = below;
        }
        self.tree.set_leaves(level);
        Ok(())
    }

    /// The files there are at the beginning, as if they had come long ago.
    fn fill(&mut self) -> Result<(), PlanError> {
        self.filling = true;
        // Of what is alive at a moment, each stream has a share by how long its files live.
        let mut sum = 0.0;
        let weights: Vec<f64> = self
            .streams
            .iter()
            .map(|s| {
                sum += s.stream.share * s.life.mean_s();
                sum
            })
            .collect();
        let wanted = self.curve.at(0.0) * self.planned_for.capacity_bytes as f64;
        let mut refused = 0;
        while (self.committed as f64) < wanted && refused < 64 {
            let at = unit(&mut self.rng) * sum;
            let stream = weights.partition_point(|end| *end <= at).min(self.streams.len() - 1);
            refused = if self.arrive(stream)? { 0 } else { refused + 1 };
        }
        self.filling = false;
        Ok(())
    }

    fn begin_day(&mut self, day: u32) -> Result<(), PlanError> {
        self.day = day;
        let due = self.due.get_mut(day as usize).map(std::mem::take).unwrap_or_default();
        let start_ns = u64::from(day) * DAY_NS;
        let mut events = due;
        for _ in 0..self.arrivals(day) {
            let at = unit(&mut self.rng) * self.shares.last().copied().unwrap_or(1.0);
            let stream = self.shares.partition_point(|end| *end <= at).min(self.streams.len() - 1);
            let t_ns = start_ns + self.clock.draw_ns(&mut self.rng);
            let order = self.next_order();
            events.push(Event { t_ns, order, what: What::Arrive { stream: stream as u8 } });
        }
        for stream in 0..self.streams.len() {
            for _ in 0..self.updates(stream, day) {
                let t_ns = start_ns + self.clock.draw_ns(&mut self.rng);
                let order = self.next_order();
                events.push(Event { t_ns, order, what: What::Update { stream: stream as u8 } });
            }
        }
        // Where the curve falls, it is followed in steps of a fraction of the slack.
        for moment in self.curve.falls(f64::from(day), f64::from(day) + 1.0, 0.2 * SLACK) {
            let order = self.next_order();
            let t_ns = ((moment * DAY_NS as f64) as u64).min(start_ns + DAY_NS - 1);
            events.push(Event { t_ns, order, what: What::Trim });
        }
        self.today.extend(events.into_iter().map(Reverse));
        Ok(())
    }

    fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// How many arrivals make up for what dies on a day and for the curve's way.
    fn arrivals(&mut self, day: u32) -> u64 {
        let capacity = self.planned_for.capacity_bytes as f64;
        let (now, then) = (self.curve.at(f64::from(day)), self.curve.at(f64::from(day) + 1.0));
        let dying = self.due_bytes.get(day as usize).copied().unwrap_or(0) as f64;
        // What was missed before is caught up with over a few days.
        let expected = self.books.arrival(self.planned_for.block_bytes as f64);
        let (lasting_bytes, residence_days) = (expected.lasting_bytes, expected.residence_days);
        let steady = now * capacity / residence_days / lasting_bytes;
        // The lasting files leave room for what comes and goes within hours, and for a burst.
        let passing = (2.0 * steady * expected.passing_byte_days).min(PASSING_MAX * capacity);
        let missed = ((now - BURST_ROOM) * capacity - passing - self.committed as f64) / 3.0;
        let wanted = (dying + (then - now) * capacity + missed) / lasting_bytes;
        let mean = wanted.max(0.2 * steady) * self.clock.weekday(day);
        // Whole arrivals whose mean is right; no more than files of one block would need.
        let most = capacity / self.planned_for.block_bytes as f64;
        (mean.min(most) + unit(&mut self.rng)) as u64
    }

    fn updates(&mut self, stream: usize, day: u32) -> u64 {
        let rate = self.streams.get(stream).map_or(0.0, |s| s.update_rate);
        let mean = rate * self.files.of_stream(stream).len() as f64 * self.clock.weekday(day);
        Poisson::new(mean).map_or(0, |p| p.sample(&mut self.rng) as u64)
    }

    fn happen(&mut self, what: What) -> Result<(), PlanError> {
        match what {
            What::Trim => drop(self.make_room(0)?),
            What::Arrive { stream } => drop(self.arrive(stream.into())?),
            What::Update { stream } => self.update(stream.into())?,
            What::Grow(file) => self.grow(file)?,
            What::Die(file) => self.die(file, false)?,
            What::DieTogether { group, generation } => self.die_together(group, generation, false)?,
        }
        Ok(())
    }

    fn schedule(&mut self, t_ns: u64, order: u64, what: What) {
        let event = Event { t_ns, order, what };
        let day = (t_ns / DAY_NS).min(u64::from(self.days));
        if day <= u64::from(self.day) && !self.filling {
            self.today.push(Reverse(event));
        } else if let Some(due) = self.due.get_mut(day as usize) {
            due.push(event);
        }
    }

    /// Files of a stream come. `false` if they found no room while filling.
    fn arrive(&mut self, stream: usize) -> Result<bool, PlanError> {
        let Some(s) = self.streams.get(stream) else { return Ok(false) };
        let (batch, dies, batch_max) = (s.stream.batch, s.stream.dies, s.batch_max);
        let mut count = 1;
        if batch.mean > 1.0 {
            let z: f64 = StandardNormal.sample(&mut self.rng);
            let mean = batch.mean * (batch.sigma * z - 0.5 * batch.sigma * batch.sigma).exp();
            count = (mean.min(batch_max) + unit(&mut self.rng)).max(1.0) as u64;
        }
        let together = if dies == Dies::Together { Some(self.draw_life(stream)) } else { None };
        let own = batch.files_per_directory > 0.0;
        let tree = &mut self.tree;
        let out = &mut self.out;
        let mut dir = tree.choose(&mut self.rng, |tree, parent| out.mkdir(tree, parent))?;
        let group = (together.is_some() || own).then(|| self.files.add_group());
        let mut dirs: Vec<Dir> = Vec::new();
        let mut in_dir = 0;
        let mut all_fit = true;
        for _ in 0..count {
            if own && (dirs.is_empty() || f64::from(in_dir) >= batch.files_per_directory) {
                // The first directory goes where the files were to go, each other into any of the group's.
                let parent = if dirs.is_empty() {
                    dir
                } else {
                    dirs.get(index(&mut self.rng, dirs.len())).copied().unwrap_or(dir)
                };
                dir = self.out.mkdir(&mut self.tree, parent)?;
                dirs.push(dir);
                in_dir = 0;
            }
            let life_s = together.unwrap_or_else(|| self.draw_life(stream));
            if !self.create(stream, dir, group.map(|g| g.0), life_s)? {
                all_fit = false;
                break;
            }
            in_dir += 1;
        }
        if let Some((id, generation)) = group {
            if let Some(group) = self.files.group_mut(id) {
                group.dirs = dirs;
                group.complete = true;
            }
            if let Some(life_s) = together {
                let t_ns = self.death_ns(life_s, dies);
                let order = self.next_order();
                self.schedule(t_ns, order, What::DieTogether { group: id, generation });
            }
            self.end_group(id)?;
        }
        Ok(all_fit)
    }

    fn draw_life(&mut self, stream: usize) -> f64 {
        let Some(s) = self.streams.get(stream) else { return 0.0 };
        if self.filling { s.life.draw_residual_s(&mut self.rng) } else { s.life.draw_s(&mut self.rng) }
    }

    fn death_ns(&self, life_s: f64, dies: Dies) -> u64 {
        let t_ns = self.out.now_ns.saturating_add((life_s * 1e9) as u64);
        match dies {
            Dies::Run(hour) => {
                let at_ns = (hour * DAY_NS as f64 / 24.0) as u64;
                // The run nearest to the end of the lifetime, but one that is still to come.
                let nearest = t_ns.saturating_sub(at_ns).saturating_add(DAY_NS / 2) / DAY_NS;
                let next = self.out.now_ns.saturating_sub(at_ns).div_ceil(DAY_NS);
                nearest.max(next).saturating_mul(DAY_NS).saturating_add(at_ns)
            }
            _ => t_ns,
        }
    }

    fn rounded(&self, bytes: u64) -> u64 {
        bytes.checked_next_multiple_of(self.planned_for.block_bytes).unwrap_or(u64::MAX)
    }

    fn ceiling(&self) -> u64 {
        let day = self.out.now_ns as f64 / DAY_NS as f64;
        let share = self.curve.at(day) + if self.filling { 0.0 } else { SLACK };
        (share * self.planned_for.capacity_bytes as f64) as u64
    }

    /// Deletes what is due next until so many bytes more are below the curve. `false` if they cannot be.
    fn make_room(&mut self, bytes: u64) -> Result<bool, PlanError> {
        let ceiling = self.ceiling();
        if self.committed + bytes <= ceiling {
            return Ok(true);
        }
        if self.filling || bytes > ceiling {
            return Ok(false);
        }
        let mut day = self.day as usize + 1;
        while self.committed + bytes > ceiling {
            match self.due.get_mut(day).map(Vec::pop) {
                Some(Some(event)) => self.hurry(event)?,
                Some(None) => day += 1,
                None => return self.make_room_today(bytes, ceiling),
            }
        }
        Ok(true)
    }

    /// The same, once nothing is left but what is due today.
    fn make_room_today(&mut self, bytes: u64, ceiling: u64) -> Result<bool, PlanError> {
        let mut others = Vec::new();
        while self.committed + bytes > ceiling {
            match self.today.pop() {
                Some(Reverse(event)) if matches!(event.what, What::Die(_) | What::DieTogether { .. }) => {
                    self.hurry(event)?
                }
                Some(other) => others.push(other),
                None => break,
            }
        }
        self.today.extend(others);
        Ok(self.committed + bytes <= ceiling)
    }

    /// Lets a death happen now; anything else at least no longer waits for its day.
    fn hurry(&mut self, event: Event) -> Result<(), PlanError> {
        match event.what {
            What::Die(file) => self.die(file, true),
            What::DieTogether { group, generation } => self.die_together(group, generation, true),
            what => {
                self.today.push(Reverse(Event { t_ns: self.out.now_ns, what, ..event }));
                Ok(())
            }
        }
    }

    /// Makes one file. `false` where there is no room for it.
    fn create(&mut self, stream: usize, dir: Dir, group: Option<u32>, life_s: f64) -> Result<bool, PlanError> {
        let Some(s) = self.streams.get_mut(stream) else { return Ok(false) };
        let lasting = life_s >= LASTING_S;
        let stratum = lasting.then(|| s.quota.draw(&mut self.rng));
        let mut size = match stratum {
            Some(stratum) => s.size.quantile(s.quota.within(stratum, &mut self.rng)),
            None => s.size.draw(&mut self.rng),
        };
        let (dies, write, fsync) = (s.stream.dies, s.stream.write, s.stream.fsync);
        // Nothing lasting goes for the sake of a file that lives for hours: that one is drawn again, or not made.
        let mut fits = if lasting { self.make_room(self.rounded(size))? } else { self.fits(size) };
        for _ in 0..REDRAWS {
            if let (false, false, Some(s)) = (fits, lasting, self.streams.get(stream)) {
                size = s.size.draw(&mut self.rng);
                fits = self.fits(size);
            }
        }
        if !fits {
            self.books.no_room += 1;
            return Ok(false);
        }
        if let (Some(stratum), Some(s)) = (stratum, self.streams.get_mut(stream)) {
            s.quota.add(stratum);
        }
        let node = self.out.node();
        let dies_ns = self.death_ns(life_s, dies);
        let dies_day = u32::try_from(dies_ns / DAY_NS).unwrap_or(u32::MAX).min(self.days);
        let (born_ns, stratum) = (self.out.now_ns, stratum.map(|s| s as u8));
        let from_the_start = self.filling;
        let file = File {
            node,
            dir,
            size: 0,
            full: size,
            stream: stream as u8,
            stratum,
            group,
            born_ns,
            dies_day,
            from_the_start,
        };
        let file = self.files.add(file);
        let own = self.streams.get(stream).is_some_and(|s| s.stream.batch.files_per_directory > 0.0);
        self.tree.file_added(dir, own);
        self.committed += self.rounded(size);
        self.add_due(dies_day, self.rounded(size), true);
        if !self.filling {
            self.books.created(stream, size, born_ns);
        }
        self.write_new(file, node, dir, size, write, fsync)?;
        if dies != Dies::Together {
            // Runs go directory by directory.
            let order = if matches!(dies, Dies::Run(_)) {
                u64::from(dir.0) << 32 | u64::from(file.slot)
            } else {
                self.next_order()
            };
            self.schedule(dies_ns, order, What::Die(file));
        }
        Ok(true)
    }

    fn fits(&self, bytes: u64) -> bool {
        self.committed.saturating_add(self.rounded(bytes)) <= self.ceiling()
    }

    fn add_due(&mut self, day: u32, bytes: u64, more: bool) {
        if let Some(due) = self.due_bytes.get_mut(day as usize) {
            *due = if more { *due + bytes } else { due.saturating_sub(bytes) };
        }
    }

    fn write_new(
        &mut self,
        file: FileRef,
        node: NodeId,
        dir: Dir,
        size: u64,
        write: Write,
        fsync: bool,
    ) -> Result<(), PlanError> {
        let dir = self.tree.node(dir);
        let first = match write {
            // What is there already was written long ago.
            Write::Grown { chunk_bytes, .. } if !self.filling => chunk_bytes.max(size.div_ceil(PIECES_MAX)).min(size),
            _ => size,
        };
        let staging = self.staging.filter(|_| write == Write::Staged);
        let at = staging.unwrap_or(dir);
        self.out.push(AgingOp { dir: at, size_bytes: first, ..AgingOp::new(0, OpKind::Create, node) })?;
        if let Some(file) = self.files.get_mut(file) {
            file.size = first;
        }
        if fsync {
            self.out.op(OpKind::Fsync, node, 0, 0)?;
        }
        if staging.is_some() {
            self.out.push(AgingOp { dir, ..AgingOp::new(0, OpKind::Rename, node) })?;
        }
        if first < size {
            self.next_piece(file, first, size);
        }
        Ok(())
    }

    fn next_piece(&mut self, file: FileRef, piece: u64, full: u64) {
        let stream = self.files.get(file).map_or(0, |f| usize::from(f.stream));
        let Some(Write::Grown { span_s, .. }) = self.streams.get(stream).map(|s| s.stream.write) else { return };
        let pieces = full.div_ceil(piece.max(1)).max(1);
        // Between none and twice the mean: the span is met on average.
        let wait_s = 2.0 * unit(&mut self.rng) * span_s / pieces as f64;
        let order = self.next_order();
        self.schedule(self.out.now_ns.saturating_add((wait_s * 1e9) as u64), order, What::Grow(file));
    }

    fn grow(&mut self, at: FileRef) -> Result<(), PlanError> {
        let Some(file) = self.files.get(at).copied() else { return Ok(()) };
        let Some(s) = self.streams.get(usize::from(file.stream)) else { return Ok(()) };
        let Write::Grown { chunk_bytes, .. } = s.stream.write else { return Ok(()) };
        let fsync = s.stream.fsync;
        let chunk = chunk_bytes.max(file.full.div_ceil(PIECES_MAX));
        let piece = chunk.min(file.full.saturating_sub(file.size));
        if piece == 0 {
            return Ok(());
        }
        self.out.op(OpKind::Append, file.node, 0, piece)?;
        if let Some(file) = self.files.get_mut(at) {
            file.size += piece;
        }
        if fsync {
            self.out.op(OpKind::Fsync, file.node, 0, 0)?;
        }
        if file.size + piece < file.full {
            self.next_piece(at, chunk, file.full);
        }
        Ok(())
    }

    /// A file goes (`early`: before its time).
    fn die(&mut self, at: FileRef, early: bool) -> Result<(), PlanError> {
        let Some(file) = self.files.remove(at) else { return Ok(()) };
        self.out.op(OpKind::Delete, file.node, 0, 0)?;
        let stream = usize::from(file.stream);
        self.committed -= self.rounded(file.full);
        self.add_due(file.dies_day, self.rounded(file.full), false);
        let own = if let Some(s) = self.streams.get_mut(stream) {
            if let Some(stratum) = file.stratum {
                s.quota.remove(stratum.into());
            }
            s.stream.batch.files_per_directory > 0.0
        } else {
            false
        };
        self.tree.file_removed(file.dir, own);
        self.books.died(stream, file.born_ns, self.out.now_ns, early, !file.from_the_start);
        file.group.map_or(Ok(()), |group| self.end_group(group))
    }

    fn die_together(&mut self, group: u32, generation: u32, early: bool) -> Result<(), PlanError> {
        let Some(files) = self.files.group_files(group, generation).map(<[FileRef]>::to_vec) else { return Ok(()) };
        files.into_iter().try_for_each(|file| self.die(file, early))
    }

    /// Removes a group's directories once its files are gone, the deepest first.
    fn end_group(&mut self, group: u32) -> Result<(), PlanError> {
        let Some(dirs) = self.files.end_group_if_empty(group) else { return Ok(()) };
        for dir in dirs.into_iter().rev() {
            self.out.op(OpKind::Rmdir, self.tree.node(dir), 0, 0)?;
            self.tree.remove(dir);
        }
        Ok(())
    }

    fn update(&mut self, stream: usize) -> Result<(), PlanError> {
        let Some(s) = self.streams.get(stream) else { return Ok(()) };
        let Some(update) = s.stream.update else { return Ok(()) };
        let Some(first) = self.pick(stream, update.hot) else { return Ok(()) };
        let kinds = [update.overwrite, update.rewrite, update.replace, update.punch];
        let mut at = unit(&mut self.rng) * kinds.iter().sum::<f64>();
        let kind = kinds.iter().position(|w| {
            at -= w;
            at < 0.0
        });
        for file in self.neighbours(first, update.together as usize) {
            // A file that is still being written is left alone.
            let Some(known) = self.files.get(file).copied().filter(|f| f.size == f.full) else { continue };
            match kind {
                Some(1) => self.rewrite(file, false, update.fsync)?,
                Some(2) => self.rewrite(file, true, true)?,
                Some(3) => self.pieces(known.node, known.size, OpKind::PunchHole, update)?,
                _ => self.pieces(known.node, known.size, OpKind::Overwrite, update)?,
            }
        }
        Ok(())
    }

    /// A file to update: one updated lately, or any.
    fn pick(&mut self, stream: usize, hot: f64) -> Option<FileRef> {
        let s = self.streams.get_mut(stream)?;
        if unit(&mut self.rng) < hot && !s.hot.is_empty() {
            let file = s.hot.get(index(&mut self.rng, s.hot.len())).copied();
            if let Some(file) = file.filter(|f| self.files.get(*f).is_some()) {
                return Some(file);
            }
        }
        let all = self.files.of_stream(stream);
        let file = all.get(index(&mut self.rng, all.len())).and_then(|slot| self.files.at_slot(*slot))?;
        if s.hot.len() < HOT_FILES {
            s.hot.push(file);
        } else {
            s.next_hot = (s.next_hot + 1) % HOT_FILES;
            if let Some(place) = s.hot.get_mut(s.next_hot) {
                *place = file;
            }
        }
        Some(file)
    }

    /// A file and those that arrived next to it.
    fn neighbours(&mut self, first: FileRef, count: usize) -> Vec<FileRef> {
        let group = self.files.get(first).and_then(|f| f.group);
        let Some(group) = group.filter(|_| count > 1).and_then(|g| self.files.group_mut(g)) else { return vec![first] };
        let place = group.files.iter().position(|f| *f == first).unwrap_or(0);
        group.files.iter().skip(place).take(count).copied().collect()
    }

    fn pieces(&mut self, node: NodeId, size: u64, kind: OpKind, update: super::spec::Update) -> Result<(), PlanError> {
        for _ in 0..update.pieces {
            let places = (size / update.piece_bytes).max(1);
            let offset =
                index(&mut self.rng, usize::try_from(places).unwrap_or(usize::MAX)) as u64 * update.piece_bytes;
            let len = update.piece_bytes.min(size.saturating_sub(offset));
            if len > 0 {
                self.out.op(kind, node, offset, len)?;
            }
        }
        if update.fsync { self.out.op(OpKind::Fsync, node, 0, 0) } else { Ok(()) }
    }

    /// Writes a file anew with a new size: in place, or beside it and renamed over it.
    fn rewrite(&mut self, at: FileRef, replace: bool, fsync: bool) -> Result<(), PlanError> {
        let Some(old) = self.files.get(at).copied() else { return Ok(()) };
        let Some(s) = self.streams.get_mut(usize::from(old.stream)) else { return Ok(()) };
        let (size, stratum) = match old.stratum {
            Some(stratum) => {
                s.quota.remove(stratum.into());
                let drawn = s.quota.draw(&mut self.rng);
                let size = s.size.quantile(s.quota.within(drawn, &mut self.rng));
                // Until the rewrite is certain the file counts as what it was.
                s.quota.add(stratum.into());
                (size, Some(drawn as u8))
            }
            None => (s.size.draw(&mut self.rng), None),
        };
        let (before, after) = (self.rounded(old.full), self.rounded(size));
        let more = if replace { after } else { after.saturating_sub(before) };
        // Making room may have taken this very file.
        if !self.make_room(more)? || self.files.get(at).is_none() {
            return Ok(());
        }
        if let Some(s) = self.streams.get_mut(usize::from(old.stream))
            && let (Some(from), Some(to)) = (old.stratum, stratum)
        {
            s.quota.remove(from.into());
            s.quota.add(to.into());
        }
        self.committed = self.committed - before + after;
        self.add_due(old.dies_day, before, false);
        self.add_due(old.dies_day, after, true);
        let mut node = old.node;
        if replace {
            node = self.out.node();
            let dir = self.tree.node(old.dir);
            let name = format!(".{}.new", AgingOp::derived_name(node, false)).into_bytes().into_boxed_slice();
            self.out.push(AgingOp {
                dir,
                name: Some(name),
                size_bytes: size,
                ..AgingOp::new(0, OpKind::Create, node)
            })?;
            self.out.op(OpKind::Fsync, node, 0, 0)?;
            self.out.op(OpKind::Delete, old.node, 0, 0)?;
            self.out.push(AgingOp { dir, ..AgingOp::new(0, OpKind::Rename, node) })?;
        } else {
            self.out.op(OpKind::Truncate, node, 0, 0)?;
            self.out.op(OpKind::Append, node, 0, size)?;
            if fsync {
                self.out.op(OpKind::Fsync, node, 0, 0)?;
            }
        }
        if let Some(file) = self.files.get_mut(at) {
            (file.node, file.size, file.full, file.stratum) = (node, size, size, stratum);
        }
        Ok(())
    }
}
