//! A plan from a series of snapshots of a real (or aged) tree.
//!
//! The method is that of Smith and Seltzer (*File System Aging*, SIGMETRICS 1997, section 3): the first snapshot's
//! files are made in the order of their inode change times; then every pair of successive snapshots gives a skeleton of
//! what happened between them; short-lived files, which no snapshot shows, are added from profiles of such activity. It
//! goes beyond it in the times of removals and in telling appends from rewrites; docs/planning-from-snapshots.md has
//! the rules and their reasons.
//!
//! The first simulated day makes the first snapshot's tree; the snapshot stands at its end, and time runs from there as
//! it did between the snapshots.

mod compare;
mod emit;
mod evidence;
mod interval;
pub(super) mod lifetime;
mod order;
mod series;

pub use interval::Tally;

use super::inputs::input;
use super::short_lived::{Carry, Number, ShortLived};
use super::{PlanError, PlannedFor, Progress, go_on};
use crate::DAY_NS;
use crate::format::{Placement, PlanMeta, Source, Writer};
use crate::snapshot::{InodeGroups, Snapshot};
use compare::{Matching, NONE, View};
use emit::Emitter;
use evidence::SeriesEvidence;
use interval::{Between, Habit, Live};
use lifetime::{Evidence, Lifetimes};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;
use series::Series;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// When files that are gone were removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Deletions {
    /// By a model of lifetimes estimated from the series, and by what directories' times tell.
    #[default]
    Lifetimes,
    /// At any time of the interval, as published.
    Uniform,
}

/// How files whose contents changed were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Changes {
    /// Same length: over the old contents; shorter: anew; longer: appended to or anew, in the shares that the series
    /// suggests.
    #[default]
    Inferred,
    /// Always truncated and written anew, as published.
    Rewrite,
}

/// Where files are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Place {
    /// In the directories that the snapshots show.
    #[default]
    Directories,
    /// In one directory for each allocation group of the original, by inode number.
    Groups {
        /// How many groups to divide the inode numbers into; `None`: those that the first snapshot tells of.
        count: Option<u32>,
    },
}

/// How to plan.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotsOptions<'a> {
    /// Seed of all random choices.
    pub seed: u64,
    #[allow(missing_docs)]
    pub deletions: Deletions,
    #[allow(missing_docs)]
    pub changes: Changes,
    #[allow(missing_docs)]
    pub place: Place,
    /// Short-lived files to add, and habits of change to draw from.
    pub short_lived: Option<&'a ShortLived>,
    /// By what their number goes.
    pub short_lived_number: Number,
    /// Times as many of them as that says, besides what the sizes of the file systems say.
    pub short_lived_scale: f64,
}

impl Default for SnapshotsOptions<'_> {
    fn default() -> Self {
        SnapshotsOptions {
            seed: 1,
            deletions: Deletions::default(),
            changes: Changes::default(),
            place: Place::default(),
            short_lived: None,
            short_lived_number: Number::default(),
            short_lived_scale: 1.0,
        }
    }
}

/// The file system that the first snapshot was taken of.
///
/// # Errors
/// The snapshot cannot be read.
pub fn planned_for(paths: &[PathBuf]) -> Result<PlannedFor, PlanError> {
    let first = paths.first().ok_or_else(|| PlanError::parameter("snapshots", "name at least one"))?;
    let meta = Snapshot::read_meta(first)?;
    Ok(PlannedFor { capacity_bytes: meta.total_bytes, block_bytes: u64::from(meta.block_bytes) })
}

/// Plans from snapshots, oldest first. They are read twice, two at a time being in memory.
///
/// # Errors
/// [`PlanError::Input`] for snapshots that are damaged, out of order or not of one tree.
pub fn plan(
    paths: &[PathBuf],
    options: &SnapshotsOptions<'_>,
    writer: &mut Writer,
    mut progress: Progress<'_>,
) -> Result<PlanMeta, PlanError> {
    if !(options.short_lived_scale.is_finite() && options.short_lived_scale >= 0.0) {
        return Err(PlanError::parameter("short-lived-scale", "a number, 0 or more"));
    }
    let learned = learn(paths, &mut progress)?;
    let mut evidence = learned.evidence.lifetimes();
    if let Some(short_lived) = options.short_lived {
        evidence.add(short_lived.lifetimes());
    }
    let lifetimes = evidence.estimate();
    let mut planner = Planner {
        options,
        lifetimes: &lifetimes,
        append_share: learned.evidence.append_share(),
        random: Xoshiro256PlusPlus::seed_from_u64(options.seed),
        carry: Carry::default(),
        tally: Tally::default(),
        short: 0,
        times_as_large: 1.0,
    };
    let mut series = Series::new(paths);
    let none = || PlanError::parameter("snapshots", "name at least one");
    let mut a = series.read(0, None)?.ok_or_else(none)?;
    if options.short_lived_number == Number::EachDay {
        let times = options.short_lived.and_then(|source| source.times_as_large(a.snapshot.meta.total_bytes));
        planner.times_as_large = times.unwrap_or(1.0);
    }
    let origin_ns = a.snapshot.meta.taken_ns.saturating_sub(DAY_NS as i64);
    let groups = groups(options.place, &a, &learned, paths)?;
    let mut emitter = Emitter::new(writer, groups, learned.prefix());
    let mut live = emitter.initial(&a, &mut planner.tally)?;
    for index in 1.. {
        go_on(&mut progress, 0.5 + 0.5 * index as f64 / paths.len() as f64)?;
        let Some(b) = series.read(index, Some(&a))? else { break };
        live = planner.interval(&a, &b, &live, origin_ns, &mut emitter)?;
        a = b;
    }
    let last_ns = u64::try_from(a.snapshot.meta.taken_ns - origin_ns).unwrap_or(DAY_NS);
    let days = u32::try_from(last_ns.div_ceil(DAY_NS)).unwrap_or(u32::MAX);
    let placement = groups.map_or(Placement::Directories, |g| Placement::Groups { count: g.count as u32 });
    let source = source(paths, options, &learned, &planner, &evidence, &lifetimes)?;
    Ok(PlanMeta { source, seed: options.seed, days, placement, ..PlanMeta::default() })
}

fn source(
    paths: &[PathBuf],
    options: &SnapshotsOptions<'_>,
    learned: &Learned,
    planner: &Planner<'_>,
    evidence: &Evidence,
    lifetimes: &Lifetimes,
) -> Result<Source, PlanError> {
    let mut inputs = paths.iter().map(|path| input(path)).collect::<Result<Vec<_>, _>>()?;
    inputs.extend(options.short_lived.map(|s| s.input().clone()));
    let hazard: Vec<_> = lifetimes.per_day().into_iter().map(|(age, rate)| json!([age, rate])).collect();
    let name = paths.first().and_then(|p| p.file_name()).unwrap_or_default().to_string_lossy().into_owned();
    Ok(Source {
        kind: "snapshots".into(),
        name,
        description: format!(
            "From {} snapshots, by the method of Smith and Seltzer (File System Aging, 1997), removals {}.",
            paths.len(),
            match options.deletions {
                Deletions::Lifetimes => "timed by lifetimes",
                Deletions::Uniform => "at uniformly random times",
            }
        ),
        inputs,
        parameters: json!({
            "deletions": format!("{:?}", options.deletions).to_lowercase(),
            "changes": format!("{:?}", options.changes).to_lowercase(),
            "append_share": planner.append_share,
            "deaths_observed": evidence.deaths(),
            "hazard_per_day_from_age_days": hazard,
            "short_lived_number": options.short_lived.map(|_| match options.short_lived_number {
                Number::ForEachLasting => "for each lasting file",
                Number::EachDay => "each day",
            }),
            "short_lived_scale": options.short_lived.map(|_| options.short_lived_scale),
            "short_lived_for_size": options.short_lived.map(|_| planner.times_as_large),
            "short_lived_per_lasting_file": options.short_lived.map(ShortLived::per_lasting_file),
            "short_lived_files": planner.short,
            "changed_file_days": options.short_lived.map(ShortLived::changed_file_days),
            "without_generations": learned.without_generations,
            "unreadable": learned.unreadable,
            "special_files_left_out": learned.special,
            "found": planner.tally,
        }),
    })
}

/// What the first pass over the series learns.
#[derive(Default)]
struct Learned {
    evidence: SeriesEvidence,
    /// Numbers N of names that begin with `~N-`.
    tildes: BTreeSet<u64>,
    ino_max: u64,
    without_generations: u64,
    unreadable: u64,
    special: u64,
}

impl Learned {
    /// What names of the planner's own begin with: no name of the series does.
    fn prefix(&self) -> String {
        let free = (0..).find(|n| !self.tildes.contains(n)).unwrap_or(0);
        format!("~{free}-")
    }

    fn look(&mut self, view: &View) {
        self.without_generations += u64::from(view.snapshot.meta.no_generations.is_some());
        self.unreadable += view.snapshot.meta.unreadable;
        for entry in view.snapshot.entries() {
            self.ino_max = self.ino_max.max(entry.inode.ino);
            self.special += u64::from(entry.inode.kind == posix::FileKind::Special);
            if let Some(rest) = view.snapshot.name(entry).strip_prefix(b"~") {
                let digits = rest.split(|b| *b == b'-').next().and_then(|d| std::str::from_utf8(d).ok());
                self.tildes.extend(digits.and_then(|d| d.parse::<u64>().ok()));
            }
        }
    }
}

/// Of an inode: when it was first seen to have changed, and whether that was its birth.
type Birth = Option<(i64, bool)>;

fn learn(paths: &[PathBuf], progress: &mut Progress<'_>) -> Result<Learned, PlanError> {
    let mut learned = Learned::default();
    let mut series = Series::new(paths);
    let mut last: Option<(View, Vec<Birth>)> = None;
    for index in 0.. {
        go_on(progress, 0.5 * index as f64 / paths.len().max(1) as f64)?;
        let Some(b) = series.read(index, last.as_ref().map(|(a, _)| a))? else { break };
        learned.look(&b);
        let mut born = vec![None; b.len()];
        let matching = last.as_ref().map(|(a, _)| Matching::new(a, &b));
        for (i, entry) in b.nodes() {
            let before = matching.as_ref().map_or(NONE, |m| m.before_of(i));
            let known = last.as_ref().and_then(|(_, born)| born.get(before as usize).copied().flatten());
            born[i as usize] = Some(known.unwrap_or((entry.inode.ctime_ns, index > 0)));
        }
        if let (Some((a, born)), Some(matching)) = (&last, &matching) {
            learned.evidence.watch(a, &b, matching, born);
        }
        last = Some((b, born));
    }
    Ok(learned)
}

/// Groups that a plan has directories for. One of ext4's has 128 MiB as a rule: they are 128 TiB.
const GROUPS_MAX: u32 = 1 << 20;

/// The groups to place by, if it is by groups.
fn groups(place: Place, first: &View, learned: &Learned, paths: &[PathBuf]) -> Result<Option<InodeGroups>, PlanError> {
    let Place::Groups { count } = place else { return Ok(None) };
    let meta = &first.snapshot.meta;
    let Some(count) = count else {
        let refused = |message: String| {
            let path = paths.first().cloned().unwrap_or_default();
            PlanError::input(&path, "description, inode_groups", message)
        };
        let unknown = || refused("the inodes of a group are not known: say how many groups there are".to_owned());
        let groups = meta.inode_groups.ok_or_else(unknown)?;
        if groups.count > u64::from(GROUPS_MAX) {
            let count = groups.count;
            return Err(refused(format!(
                "{count} groups, where a plan has at most {GROUPS_MAX}: say how many to make"
            )));
        }
        return Ok(Some(groups));
    };
    if !(1..=GROUPS_MAX).contains(&count) {
        return Err(PlanError::parameter("groups", format!("from 1 to {GROUPS_MAX}")));
    }
    let inodes = meta.total_inodes.max(learned.ino_max).saturating_add(1);
    Ok(Some(InodeGroups { first_ino: 0, inodes_per_group: inodes.div_ceil(u64::from(count)), count: u64::from(count) }))
}

struct Planner<'a> {
    options: &'a SnapshotsOptions<'a>,
    lifetimes: &'a Lifetimes,
    append_share: f64,
    random: Xoshiro256PlusPlus,
    carry: Carry,
    tally: Tally,
    short: u64,
    /// So many times as many short-lived files as in their source, for the size of the file system alone.
    times_as_large: f64,
}

impl Planner<'_> {
    /// Plans what happened between two snapshots; answers what is there after it.
    fn interval(
        &mut self,
        a: &View,
        b: &View,
        live: &[Option<Live>],
        origin_ns: i64,
        emitter: &mut Emitter<'_>,
    ) -> Result<Vec<Option<Live>>, PlanError> {
        let matching = Matching::new(a, b);
        let between = Between {
            a,
            b,
            matching: &matching,
            live,
            origin_ns,
            from_ns: a.snapshot.meta.taken_ns,
            // Just before the second snapshot: one at the end of a day still sees what happened in that day.
            to_ns: b.snapshot.meta.taken_ns - 1,
            lifetimes: (self.options.deletions == Deletions::Lifetimes).then_some(self.lifetimes),
            changes: self.options.changes,
            append_share: self.append_share,
        };
        let mut habits: Vec<Habit> = live.iter().map(|l| l.map_or(Habit::Unknown, |l| l.habit)).collect();
        let mut interval = between.steps(&mut self.random, &mut habits);
        self.tally.add(&interval.tally);
        let plan_ns = |at_ns: i64| u64::try_from(at_ns - origin_ns).unwrap_or(0);
        let (from_ns, to_ns) = (plan_ns(between.from_ns), plan_ns(between.to_ns));
        let shorts = match self.options.short_lived {
            Some(short_lived) => {
                let number = self.options.short_lived_number;
                let scale = self.options.short_lived_scale * self.times_as_large;
                emit::add_short_lived(
                    &mut interval,
                    &between,
                    (short_lived, number, scale),
                    &mut self.carry,
                    &mut self.random,
                    (from_ns, to_ns),
                )
            }
            None => Vec::new(),
        };
        self.short += shorts.len() as u64;
        if let Some(short_lived) = self.options.short_lived {
            let habits = short_lived.habits();
            let given = emit::add_habits(&mut interval, &between, habits, &mut self.random, from_ns);
            self.tally.with_habits += given;
        }
        let made = emitter.interval(&between, &interval, &shorts, from_ns)?;
        let mut after = vec![None; b.len()];
        for (i, entry) in b.nodes() {
            let before = matching.before_of(i) as usize;
            let known = live.get(before).copied().flatten();
            after[i as usize] = match known {
                Some(known) => Some(Live { habit: habits.get(before).copied().unwrap_or_default(), ..known }),
                None => made.get(i as usize).copied().flatten().map(|node| Live {
                    node,
                    born_ns: entry.inode.ctime_ns,
                    habit: Habit::Unknown,
                }),
            };
        }
        Ok(after)
    }
}
