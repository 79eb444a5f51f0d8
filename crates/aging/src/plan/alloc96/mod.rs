//! Ten months of a research group's home directories: the workload of Smith and Seltzer, *A Comparison of FFS Disk
//! Allocation Policies* (USENIX 1996), made again.
//!
//! Their workload came from daily snapshots of a file server and a trace; neither is to be had. What was published of
//! it are its sums: how full, how many operations, bytes and files, how much of it was modified in the last month. This
//! model has the same parts and the same sums ([`figures`]); it knows nothing of how file systems lay files out, and
//! was never fitted to that.
//!
//! **Lasting files** are documents, which stay unless the utilisation curve takes them, and data, which projects keep
//! for weeks. Some documents are written anew each day. **Short-lived files** come and go between two nights, in
//! sessions of one directory, at the hour at which that is busiest; they are nearly all of the operations. Files are
//! written whole. As the original's paths are unknown there is one directory for each allocation group, and each file
//! is in that of its inode's group.
//!
//! docs/experiments.md has the parameters with their reasons.

mod deck;
pub mod figures;
mod parameters;
mod places;

use super::personality::spec::Rhythm;
use super::personality::time::{Clock, Curve};
use super::{PlanError, PlannedFor, Progress, go_on};
use crate::format::{Placement, PlanMeta, Source, Writer};
use crate::model::{Rng, rng};
use crate::{AgingOp, DAY_NS, NodeId, OpKind};
use deck::Deck;
use figures::Count;
pub use parameters::{CAPACITY_BYTES, DAYS, Parameters};
use places::{Directory, Places};
use rand_distr::{Distribution as _, Exp1, Poisson, StandardNormal};
use serde_json::json;
use stats::random::{index, unit};

/// The share of what use is off the curve that is made up for in a day. Estimate.
const CATCH_UP: f64 = 0.1;

/// What to plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The file system.
    pub planned_for: PlannedFor,
    /// The first so many of the 300 days.
    pub days: u32,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Plans.
///
/// # Errors
/// [`PlanError::Parameter`] for what cannot be; those of the writer.
pub fn plan(options: &Options, writer: &mut Writer, mut progress: Progress<'_>) -> Result<PlanMeta, PlanError> {
    let parameters = Parameters::published();
    let mut model = Model::new(options, parameters.clone())?;
    let mut count = Count::new(options.planned_for, &parameters);
    let mut push = |op: AgingOp| {
        count.add(&op);
        writer.push(op)
    };
    for op in model.beginning() {
        push(op)?;
    }
    for day in 0..options.days {
        go_on(&mut progress, f64::from(day) / f64::from(options.days))?;
        for op in model.day(day) {
            push(op)?;
        }
    }
    count.end_days(options.days);
    Ok(PlanMeta {
        source: Source {
            kind: "alloc96".into(),
            name: "alloc96".into(),
            description:
                "Ten months of a research group's home directories, after the published sums of Smith and Seltzer's \
                          workload (USENIX 1996)."
                    .into(),
            inputs: Vec::new(),
            parameters: json!({ "model": parameters, "figures": count.figures() }),
        },
        seed: options.seed,
        days: options.days,
        placement: Placement::Groups { count: parameters.groups },
        ..PlanMeta::default()
    })
}

/// Which documents go when use falls. Their sizes are the same in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leaving {
    /// Any, so that large and small ones go alike: nothing is known of it.
    #[default]
    AnyOfItsSize,
    /// Those that were made first.
    TheOldest,
    /// One, and then those that were made after it: what a project made goes when it ends.
    Neighbours,
}

/// Documents that go together ([`Leaving::Neighbours`]). Estimate.
const PROJECT_FILES: u32 = 50;

/// A file that lasts.
#[derive(Clone, Copy, Debug)]
struct File {
    node: NodeId,
    size_bytes: u64,
    /// Data goes on this day; a document never does by itself.
    dies_day: Option<u32>,
    /// The last day on which something was done to it: once a day is enough.
    touched_day: Option<u32>,
}

/// The model, day by day.
#[derive(Clone, Debug)]
pub struct Model {
    p: Parameters,
    planned_for: PlannedFor,
    /// Of the published capacity.
    scale: f64,
    curve: Curve,
    clock: Clock,
    places: Places,
    documents: Deck,
    /// Which documents go, by size.
    leaving: Deck,
    which_leave: Leaving,
    /// The document that went last, and how many more go with it.
    project: (NodeId, u32),
    data: Deck,
    short_lived: Deck,
    files: Vec<File>,
    used_bytes: u64,
    /// Of those, in documents.
    documents_bytes: u64,
    next_node: u64,
    rng: Rng,
}

impl Model {
    /// Before the first day.
    ///
    /// # Errors
    /// [`PlanError::Parameter`]: more days than there are, or no room for a file in each group.
    pub fn new(options: &Options, p: Parameters) -> Result<Model, PlanError> {
        if !(1..=DAYS).contains(&options.days) {
            return Err(PlanError::parameter("days", format!("{} is not in 1 to {DAYS}", options.days)));
        }
        let capacity = options.planned_for.capacity_bytes as f64;
        let scale = capacity / CAPACITY_BYTES as f64;
        if scale < 0.02 || options.planned_for.block_bytes == 0 {
            return Err(PlanError::parameter("capacity", "this workload needs 10 MB at least"));
        }
        let mut rng = rng(options.seed);
        let clock = Clock::new(&Rhythm { hours: p.hours.to_vec(), weekdays: p.weekdays.to_vec() });
        let deck = |sizes, cards| Deck::new(sizes, CAPACITY_BYTES as f64 * scale.min(1.0), cards);
        Ok(Model {
            planned_for: options.planned_for,
            scale,
            curve: Curve::new(p.utilisation.clone()),
            places: Places::new(&p, &clock, &mut rng),
            clock,
            documents: deck(p.document_size, 512),
            leaving: deck(p.document_size, 512),
            which_leave: Leaving::default(),
            project: (NodeId::ROOT, 0),
            data: deck(p.data_size, 64),
            short_lived: deck(p.short_lived_size, 512),
            files: Vec::new(),
            used_bytes: 0,
            documents_bytes: 0,
            next_node: 0,
            rng,
            p,
        })
    }

    /// The same with other documents going when use falls.
    #[must_use]
    pub fn losing(self, which_leave: Leaving) -> Model {
        Model { which_leave, ..self }
    }

    /// The directories, and what is there at the beginning, at time 0.
    pub fn beginning(&mut self) -> Vec<AgingOp> {
        let mut ops = Vec::new();
        for _ in 0..self.p.groups {
            let node = self.node();
            ops.push(AgingOp::new(0, OpKind::Mkdir, node));
        }
        while self.used_bytes < self.wanted_bytes(0.0) {
            let dies = self.data_among_first();
            ops.push(self.create(0, 0, dies));
        }
        ops
    }

    /// What happens on a day (from 0), in order of time.
    pub fn day(&mut self, day: u32) -> Vec<AgingOp> {
        let mut ops = Vec::new();
        self.projects_end(day, &mut ops);
        self.write_anew(day, &mut ops);
        self.arrive(day, &mut ops);
        self.sessions(day, &mut ops);
        // What belongs together has the same time and stays in order.
        ops.sort_by_key(|op| op.t_ns);
        ops
    }

    fn node(&mut self) -> NodeId {
        self.next_node += 1;
        NodeId(self.next_node)
    }

    fn rounded(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.planned_for.block_bytes)
    }

    fn wanted_bytes(&self, day: f64) -> u64 {
        (self.curve.at(day) * self.p.usable_share * self.planned_for.capacity_bytes as f64) as u64
    }

    fn time(&mut self, day: u32) -> u64 {
        u64::from(day) * DAY_NS + 1 + self.clock.draw_ns(&mut self.rng).min(DAY_NS - 2)
    }

    /// A number with a Poisson distribution, of a mean that is in proportion to the capacity.
    fn number(&mut self, per_day: f64) -> u64 {
        Poisson::new(per_day * self.scale).map_or(0, |poisson| poisson.sample(&mut self.rng) as u64)
    }

    /// The directory of a group: they have the first numbers.
    fn dir(place: Directory) -> NodeId {
        NodeId(u64::from(place.group) + 1)
    }

    // ---- lasting files

    /// A lasting file comes: data if it dies on a day, else a document.
    fn create(&mut self, t_ns: u64, day: u32, dies_day: Option<u32>) -> AgingOp {
        let deck = if dies_day.is_some() { &mut self.data } else { &mut self.documents };
        let size_bytes = deck.draw(&mut self.rng);
        let place = self.places.of_lasting(&mut self.rng);
        let node = self.node();
        self.count_bytes(0, size_bytes, dies_day.is_none());
        self.files.push(File { node, size_bytes, dies_day, touched_day: Some(day) });
        AgingOp { dir: Self::dir(place), size_bytes, ..AgingOp::new(t_ns, OpKind::Create, node) }
    }

    fn count_bytes(&mut self, before: u64, after: u64, document: bool) {
        let (before, after) = (self.rounded(before), self.rounded(after));
        self.used_bytes = self.used_bytes - before + after;
        if document {
            self.documents_bytes = self.documents_bytes - before + after;
        }
    }

    fn data_lifetime(&mut self) -> u32 {
        let days: f64 = Exp1.sample(&mut self.rng);
        1 + (days * self.p.data_mean_days) as u32
    }

    /// Whether a file that is there at the beginning is data, and until when: as many as there are in the long run.
    fn data_among_first(&mut self) -> Option<u32> {
        let share = self.p.data_per_day * self.p.data_mean_days / 8_774.0;
        (unit(&mut self.rng) < share).then(|| self.data_lifetime())
    }

    fn remove(&mut self, at: usize, day: u32, ops: &mut Vec<AgingOp>) {
        let file = self.files.swap_remove(at);
        self.count_bytes(file.size_bytes, 0, file.dies_day.is_none());
        let t_ns = self.time(day);
        ops.push(AgingOp::new(t_ns, OpKind::Delete, file.node));
    }

    fn projects_end(&mut self, day: u32, ops: &mut Vec<AgingOp>) {
        let mut at = 0;
        while let Some(file) = self.files.get(at) {
            if file.dies_day.is_some_and(|dies| dies <= day) {
                self.remove(at, day, ops);
            } else {
                at += 1;
            }
        }
    }

    /// A document that nothing has happened to today.
    fn any_document(&mut self, day: u32) -> Option<usize> {
        // Nearly all are: the first tries find one.
        (0..1000).find_map(|_| {
            let at = index(&mut self.rng, self.files.len());
            let file = self.files.get(at)?;
            (file.dies_day.is_none() && file.touched_day != Some(day)).then_some(at)
        })
    }

    /// The documents that nothing has happened to today, by size.
    fn documents_by_size(&self, day: u32) -> Vec<(u64, NodeId)> {
        let free = |file: &&File| file.dies_day.is_none() && file.touched_day != Some(day);
        let mut found: Vec<_> = self.files.iter().filter(free).map(|file| (file.size_bytes, file.node)).collect();
        found.sort_unstable();
        found
    }

    fn write_anew(&mut self, day: u32, ops: &mut Vec<AgingOp>) {
        // Fewer while there are fewer files.
        let full = self.wanted_bytes(f64::from(DAYS)).max(1) as f64;
        let share = (self.used_bytes as f64 / full).min(1.0);
        for _ in 0..self.number(self.p.rewrites_per_day * share * self.clock.weekday(day)) {
            let Some(at) = self.any_document(day) else { return };
            let z: f64 = StandardNormal.sample(&mut self.rng);
            let t_ns = self.time(day);
            let Some(file) = self.files.get_mut(at) else { return };
            let before = file.size_bytes;
            file.size_bytes = ((before as f64 * (self.p.rewrite_sigma * z).exp()) as u64).max(1);
            file.touched_day = Some(day);
            let (node, size_bytes) = (file.node, file.size_bytes);
            self.count_bytes(before, size_bytes, true);
            ops.push(AgingOp::new(t_ns, OpKind::Truncate, node));
            ops.push(AgingOp { size_bytes, ..AgingOp::new(t_ns, OpKind::Append, node) });
        }
    }

    /// Data comes; documents come and go so that use follows the curve. What data adds or takes is made up for slowly,
    /// as it is in life: by a tenth of what is missing or too much in a day.
    fn arrive(&mut self, day: u32, ops: &mut Vec<AgingOp>) {
        let busy = self.clock.weekday(day);
        for _ in 0..self.number(self.p.data_per_day * busy) {
            let dies = day + self.data_lifetime();
            let t_ns = self.time(day);
            ops.push(self.create(t_ns, day, Some(dies)));
        }
        let (from, to) = (self.wanted_bytes(day.into()) as f64, self.wanted_bytes(f64::from(day) + 1.0) as f64);
        let start = self.documents_bytes;
        let end = start as f64 + (to - from) + CATCH_UP * (to - self.used_bytes as f64);
        for _ in 0..self.number(self.p.documents_per_day * busy) {
            let t_ns = self.time(day);
            ops.push(self.create(t_ns, day, None));
        }
        while (self.documents_bytes as f64) < end {
            let t_ns = self.time(day);
            ops.push(self.create(t_ns, day, None));
        }
        // Large and small ones go alike, so that sizes stay as they are.
        let mut by_size = self.documents_by_size(day);
        while self.documents_bytes as f64 > end && !by_size.is_empty() {
            let at = match self.which_leave {
                Leaving::AnyOfItsSize => self.any_rank(by_size.len()),
                Leaving::TheOldest => first_by_node(&by_size, NodeId::ROOT).unwrap_or(0),
                Leaving::Neighbours => self.neighbour(&by_size),
            };
            let (_, node) = by_size.remove(at);
            self.project = (node, self.project.1);
            if let Some(at) = self.files.iter().position(|file| file.node == node) {
                self.remove(at, day, ops);
            }
        }
    }

    /// A place among so many documents by size.
    fn any_rank(&mut self, documents: usize) -> usize {
        let rank = (self.leaving.draw_share(&mut self.rng) * documents as f64) as usize;
        rank.min(documents.saturating_sub(1))
    }

    /// The document that was made next after the one that went last, or any once a project is gone.
    fn neighbour(&mut self, by_size: &[(u64, NodeId)]) -> usize {
        let (last, more) = self.project;
        if let Some(at) = first_by_node(by_size, last).filter(|_| more > 0) {
            self.project.1 -= 1;
            return at;
        }
        self.project.1 = PROJECT_FILES - 1;
        self.any_rank(by_size.len())
    }

    // ---- short-lived files

    fn sessions(&mut self, day: u32, ops: &mut Vec<AgingOp>) {
        let mut left = self.number(self.p.short_lived_per_day * self.clock.weekday(day));
        while left > 0 {
            let share: f64 = Exp1.sample(&mut self.rng);
            let files = ((share * self.p.session_files) as u64 + 1).min(left);
            self.session(day, files, ops);
            left -= files;
        }
    }

    /// A few files made in a directory, about the hour at which it is busiest, and gone before midnight.
    fn session(&mut self, day: u32, files: u64, ops: &mut Vec<AgingOp>) {
        const HOUR_NS: f64 = DAY_NS as f64 / 24.0;
        let place = self.places.of_session(&mut self.rng);
        let [median_s, sigma] = self.p.session_length;
        let z: f64 = StandardNormal.sample(&mut self.rng);
        let length_ns = (median_s * 1e9 * (sigma * z).exp()).min(8.0 * HOUR_NS);
        let z: f64 = StandardNormal.sample(&mut self.rng);
        let latest = DAY_NS as f64 - length_ns - HOUR_NS;
        let start_ns = (place.peak_ns as f64 + z * HOUR_NS - length_ns / 2.0).clamp(1.0, latest);
        for _ in 0..files {
            let born_ns = start_ns + unit(&mut self.rng) * length_ns;
            let dies_ns = (born_ns + self.lifetime_s() * 1e9).max(born_ns + 1.0).min(DAY_NS as f64 - 2.0);
            let midnight = u64::from(day) * DAY_NS;
            let (born, dies) = (midnight + born_ns as u64, midnight + dies_ns as u64);
            let node = self.node();
            let size_bytes = self.short_lived.draw(&mut self.rng);
            ops.push(AgingOp { dir: Self::dir(place), size_bytes, ..AgingOp::new(born, OpKind::Create, node) });
            ops.push(AgingOp::new(dies.max(born), OpKind::Delete, node));
        }
    }

    fn lifetime_s(&mut self) -> f64 {
        let [[share, ..], _] = self.p.short_lived_lifetime;
        let at = usize::from(unit(&mut self.rng) >= share);
        let [_, median_s, sigma] = self.p.short_lived_lifetime.get(at).copied().unwrap_or_default();
        let z: f64 = StandardNormal.sample(&mut self.rng);
        median_s * (sigma * z).exp()
    }
}

/// Where, among documents, the one is that was made first after another.
fn first_by_node(documents: &[(u64, NodeId)], after: NodeId) -> Option<usize> {
    let later = documents.iter().enumerate().filter(|(_, (_, node))| *node > after);
    later.min_by_key(|(_, (_, node))| *node).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PLANNED_FOR: PlannedFor = PlannedFor { capacity_bytes: CAPACITY_BYTES, block_bytes: 1024 };

    fn run(seed: u64) -> Count {
        let options = Options { planned_for: PLANNED_FOR, days: DAYS, seed };
        let parameters = Parameters::published();
        let mut model = Model::new(&options, parameters.clone()).unwrap();
        let mut count = Count::new(PLANNED_FOR, &parameters);
        let mut tree = crate::Tree::new();
        let mut add = |op: AgingOp| {
            tree.apply(&op).unwrap();
            count.add(&op);
        };
        model.beginning().into_iter().for_each(&mut add);
        (0..DAYS).for_each(|day| model.day(day).into_iter().for_each(&mut add));
        count.end_days(DAYS);
        count
    }

    #[test]
    fn the_published_figures_are_met() {
        // Calibrated with the first seed; the sums of others are as far off as a few hundred large files make them.
        for (seed, tolerance) in [(1, 0.1), (2, 0.2)] {
            let count = run(seed);
            assert!(count.shares().iter().filter(|share| **share > 0.7).count() > DAYS as usize / 2);
            for figure in count.figures() {
                let off = figure.published.map_or(0.0, |published| figure.planned / published - 1.0);
                assert!(off.abs() < tolerance, "seed {seed}: {figure:?} is off by {:.1} %", off * 100.0);
            }
        }
    }

    /// Another way to lose documents changes neither how full it is nor how many files there are, and it does lose
    /// others.
    #[test]
    fn which_documents_go_is_a_choice_and_nothing_else_changes() {
        let options = Options {
            planned_for: PlannedFor { capacity_bytes: CAPACITY_BYTES / 16, block_bytes: 1024 },
            days: 140,
            seed: 1,
        };
        let run = |leaving| {
            let parameters = Parameters::published();
            let mut count = Count::new(options.planned_for, &parameters);
            let mut model = Model::new(&options, parameters).unwrap().losing(leaving);
            let mut ops = model.beginning();
            (0..options.days).for_each(|day| ops.extend(model.day(day)));
            ops.iter().for_each(|op| count.add(op));
            count.end_days(options.days);
            let nodes = model.files.iter().filter(|file| file.dies_day.is_none()).map(|file| file.node.0);
            let nodes: Vec<u64> = nodes.collect();
            let mean = nodes.iter().sum::<u64>() as f64 / nodes.len() as f64;
            (count.shares().last().copied().unwrap_or(0.0), mean)
        };
        let [any, oldest, neighbours] = [Leaving::AnyOfItsSize, Leaving::TheOldest, Leaving::Neighbours].map(run);
        for other in [oldest, neighbours] {
            assert!((any.0 - other.0).abs() < 0.1, "in use: {any:?}, {other:?}");
        }
        assert!(oldest.1 > any.1, "what is left is younger: {any:?}, {oldest:?}");
    }

    #[test]
    fn another_capacity_is_in_proportion() {
        let planned_for = PlannedFor { capacity_bytes: CAPACITY_BYTES / 8, block_bytes: 4096 };
        let options = Options { planned_for, days: 3, seed: 1 };
        let parameters = Parameters::published();
        let mut model = Model::new(&options, parameters.clone()).unwrap();
        let mut count = Count::new(planned_for, &parameters);
        model.beginning().iter().for_each(|op| count.add(op));
        (0..3).for_each(|day| model.day(day).iter().for_each(|op| count.add(op)));
        let whole = 800_000.0 / 8.0 * 3.0 / f64::from(DAYS);
        assert!((count.operations() as f64 / whole - 1.0).abs() < 0.6, "{} of {whole}", count.operations());
        assert!(Model::new(&Options { days: 301, ..options }, parameters.clone()).is_err());
        let tiny = PlannedFor { capacity_bytes: 1 << 20, block_bytes: 4096 };
        assert!(Model::new(&Options { planned_for: tiny, ..options }, parameters).is_err());
    }
}
