//! Geriatrix profiles: fill, then churn until the ages, sizes and depths of the files are those of the profile.
//!
//! After Kadekodi, Nagarajan, Ganger and Gibson, *Geriatrix: Aging what you see and what you don't see* (USENIX ATC
//! 2018). Their program corrects the distributions operation by operation and stops when a test is passed. Here the
//! creations that are to stay are chosen beforehand ([`schedule`]), so that the run ends at the profile's ages, and
//! each creation fills the size and the depth that the live files lack most, so that sizes and depths hold all along
//! and utilisation does not drift.

pub mod profile;
pub mod schedule;

use super::{PlanError, PlannedFor, Progress, go_on};
use crate::format::{FitResult, PlanMeta, Source, Writer};
use crate::model::{self, Quota, Rng};
use crate::{AgingOp, DAY_NS, NodeId, OpKind, fit};
use profile::Profile;
use schedule::{Keepers, Schedule};
use serde_json::json;
use stats::random::{index, unit};

/// How long to churn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Churn {
    /// Until the ages are within `ks` of the profile's, but not beyond `turnovers_max` times the bytes filled with.
    Converge {
        /// Largest distance of the cumulative distributions.
        ks: f64,
        /// Bytes written after filling, as a multiple of the bytes alive.
        turnovers_max: f64,
    },
    /// Until so many bytes were written after filling.
    Bytes(u64),
    /// Until so many times the bytes alive were written after filling.
    Turnovers(f64),
}

/// What to make of a profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The file system.
    pub planned_for: PlannedFor,
    /// Utilisation to fill to and stay at, a share of the capacity.
    pub fill: f64,
    /// How long to churn.
    pub churn: Churn,
    /// Simulated days that the whole is spread over; ages are relative.
    pub days: u32,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Sizes above this share of the bytes alive are left out: a few such files would make the utilisation jump.
const LARGEST_SHARE: f64 = 0.1;

/// Utilisation stays within this of the plan, as a share of the capacity.
const SLACK: f64 = 0.004;

/// Plans.
///
/// # Errors
/// [`PlanError::Parameter`] for what cannot be; those of the writer.
pub fn plan(
    profile: &Profile,
    options: &Options,
    writer: &mut Writer,
    progress: Progress<'_>,
) -> Result<PlanMeta, PlanError> {
    if !(0.0..=0.99).contains(&options.fill) || options.fill == 0.0 {
        return Err(PlanError::parameter("fill", format!("{} is not above 0 and at most 0.99", options.fill)));
    }
    if options.days == 0 {
        return Err(PlanError::parameter("days", "at least one simulated day is needed"));
    }
    let sizes = Sizes::new(profile, options)?;
    let schedule = schedule(profile, options, &sizes)?;
    let mut run = Run::new(profile, options, &sizes, &schedule, writer);
    run.directories()?;
    run.files(progress)?;
    let fit = run.fit(profile);
    Ok(meta(profile, options, &sizes, &schedule, fit))
}

/// The sizes that fit, and the population that fills the file system to the share wanted.
struct Sizes {
    bytes: Vec<u64>,
    weights: Vec<f64>,
    /// Share of the profile's files that are too large.
    left_out: f64,
    files: u64,
    /// Mean size at that number of files, bytes.
    mean_bytes: f64,
    phase: f64,
}

impl Sizes {
    fn new(profile: &Profile, options: &Options) -> Result<Sizes, PlanError> {
        let PlannedFor { capacity_bytes, block_bytes } = options.planned_for;
        let budget = capacity_bytes as f64 * options.fill;
        let fits: Vec<_> = profile.sizes.iter().filter(|row| row.bytes as f64 <= budget * LARGEST_SHARE).collect();
        let all: f64 = profile.sizes.iter().map(|row| row.weight).sum();
        let kept: f64 = fits.iter().map(|row| row.weight).sum();
        let rounded = |bytes: u64| bytes.checked_next_multiple_of(block_bytes).unwrap_or(u64::MAX);
        let mean_rounded: f64 = fits.iter().map(|row| row.weight / kept * rounded(row.bytes) as f64).sum();
        // Empty files fill nothing.
        if kept <= 0.0 || mean_rounded <= 0.0 {
            let message = format!("no file size of profile {} fits {:.0} bytes", profile.name, budget);
            return Err(PlanError::parameter("capacity", message));
        }
        let mut sizes = Sizes {
            bytes: fits.iter().map(|row| row.bytes).collect(),
            weights: fits.iter().map(|row| row.weight).collect(),
            left_out: 1.0 - kept / all,
            files: 0,
            mean_bytes: 0.0,
            phase: unit(&mut model::rng(options.seed ^ 0x5153)),
        };
        let used = |n: u64| -> f64 {
            let quota = sizes.quota(n);
            quota.want().iter().zip(&sizes.bytes).map(|(n, bytes)| f64::from(*n) * rounded(*bytes) as f64).sum()
        };
        let (mut low, mut high) = (0u64, (2.0 * budget / mean_rounded) as u64 + 2);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if used(middle) <= budget { low = middle } else { high = middle }
        }
        if low == 0 {
            let message = format!("not one file of profile {} fits {budget:.0} bytes", profile.name);
            return Err(PlanError::parameter("capacity", message));
        }
        sizes.files = low;
        let quota = sizes.quota(low);
        let total: f64 = quota.want().iter().zip(&sizes.bytes).map(|(n, bytes)| f64::from(*n) * *bytes as f64).sum();
        sizes.mean_bytes = total / low as f64;
        Ok(sizes)
    }

    fn quota(&self, files: u64) -> Quota {
        let mut quota = Quota::new(cumulative(&self.weights), self.phase);
        quota.plan_for(files);
        quota
    }
}

/// Weights as cumulative shares, the last exactly 1.
fn cumulative(weights: &[f64]) -> Vec<f64> {
    let all: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let mut ends: Vec<f64> = weights
        .iter()
        .map(|w| {
            sum += w;
            sum / all
        })
        .collect();
    if let Some(last) = ends.last_mut() {
        *last = 1.0;
    }
    ends
}

fn schedule(profile: &Profile, options: &Options, sizes: &Sizes) -> Result<Schedule, PlanError> {
    let files = sizes.files;
    // Creations for so many bytes.
    let creations = |bytes: f64| (bytes / sizes.mean_bytes.max(1.0)).min(1e15) as u64;
    let alive = sizes.mean_bytes * files as f64;
    let turnovers = |n: f64| {
        if n.is_finite() && (0.0..=1e6).contains(&n) {
            Ok(creations(n * alive))
        } else {
            Err(PlanError::parameter("turnovers", format!("{n} is not in 0 to 1e6")))
        }
    };
    Ok(match options.churn {
        Churn::Bytes(bytes) => Schedule::new(&profile.ages, files, creations(bytes as f64)),
        Churn::Turnovers(n) => Schedule::new(&profile.ages, files, turnovers(n)?),
        Churn::Converge { ks, turnovers_max } => {
            Schedule::converging(&profile.ages, files, ks, turnovers(turnovers_max)?)
        }
    })
}

/// A live file.
#[derive(Clone, Copy)]
struct Live {
    node: NodeId,
    born_ns: u64,
    size: u32,
    depth: u32,
}

struct Run<'a> {
    writer: &'a mut Writer,
    rng: Rng,
    sizes: &'a Sizes,
    schedule: &'a Schedule,
    size_quota: Quota,
    depth_quota: Quota,
    /// Directories of each row of the profile.
    directories: Vec<Vec<NodeId>>,
    depths: Vec<(u32, usize)>,
    /// Files that go before the end, in no order; those that stay.
    passing: Vec<Live>,
    staying: Vec<Live>,
    next_node: u64,
    end_ns: u64,
    ceiling_bytes: u64,
    block_bytes: u64,
}

impl<'a> Run<'a> {
    fn new(
        profile: &Profile,
        options: &Options,
        sizes: &'a Sizes,
        schedule: &'a Schedule,
        writer: &'a mut Writer,
    ) -> Run<'a> {
        let mut rng = model::rng(options.seed);
        let depth_weights: Vec<f64> = profile.dirs.iter().map(|row| row.weight).collect();
        let depth_quota = Quota::new(cumulative(&depth_weights), unit(&mut rng));
        Run {
            writer,
            rng,
            sizes,
            schedule,
            size_quota: sizes.quota(sizes.files),
            depth_quota,
            directories: Vec::new(),
            depths: profile.dirs.iter().map(|row| (row.depth, row.directories as usize)).collect(),
            passing: Vec::new(),
            staying: Vec::new(),
            next_node: 1,
            end_ns: u64::from(options.days) * DAY_NS - 1,
            ceiling_bytes: ((options.fill + SLACK) * options.planned_for.capacity_bytes as f64) as u64,
            block_bytes: options.planned_for.block_bytes,
        }
    }

    fn node(&mut self) -> NodeId {
        self.next_node += 1;
        NodeId(self.next_node - 1)
    }

    /// Makes the tree: at each depth as many directories as the profile says (at least one on the way to deeper ones),
    /// each in a random one of the depth above. Geriatrix puts them all into the first directory above, which keeps no
    /// tree apart.
    fn directories(&mut self) -> Result<(), PlanError> {
        let deepest = self.depths.last().map_or(0, |d| d.0);
        let mut above = vec![NodeId::ROOT];
        let mut rows = self.depths.clone().into_iter().peekable();
        for depth in 0..=deepest {
            let count = rows.peek().filter(|(d, _)| *d == depth).map_or(1, |(_, n)| (*n).max(1));
            let level = if depth == 0 {
                above.clone()
            } else {
                let mut level = Vec::with_capacity(count);
                for _ in 0..count {
                    let parent = above.get(index(&mut self.rng, above.len())).copied().unwrap_or(NodeId::ROOT);
                    let node = self.node();
                    self.writer.push(AgingOp { dir: parent, ..AgingOp::new(0, OpKind::Mkdir, node) })?;
                    level.push(node);
                }
                level
            };
            if rows.next_if(|(d, _)| *d == depth).is_some() {
                self.directories.push(level.clone());
            }
            above = level;
        }
        Ok(())
    }

    /// Creates all files, and deletes those that do not stay.
    fn files(&mut self, mut progress: Progress<'_>) -> Result<(), PlanError> {
        let total = self.schedule.fill + self.schedule.churn;
        let mut keepers = Keepers::new(self.schedule);
        for i in 0..total {
            if i % 4096 == 0 {
                go_on(&mut progress, i as f64 / total as f64)?;
            }
            // Age is counted in creations.
            let t_ns = (u128::from(self.end_ns) * u128::from(i) / u128::from(total)) as u64;
            self.create(t_ns, keepers.next_stays())?;
        }
        // What is left over where the schedule was too short for all ages.
        while self.alive() > self.sizes.files && !self.passing.is_empty() {
            self.delete(self.end_ns)?;
        }
        Ok(())
    }

    fn alive(&self) -> u64 {
        (self.passing.len() + self.staying.len()) as u64
    }

    fn create(&mut self, t_ns: u64, stays: bool) -> Result<(), PlanError> {
        // Whoever goes makes room before the new file comes; what it was is lacking then, and is what comes.
        if self.alive() >= self.sizes.files {
            self.delete(t_ns)?;
        }
        let size = self.size_quota.draw(&mut self.rng);
        let bytes = self.sizes.bytes.get(size).copied().unwrap_or(0);
        let rounded = bytes.next_multiple_of(self.block_bytes);
        while self.writer.used_bytes() + rounded > self.ceiling_bytes && self.alive() > 0 {
            self.delete(t_ns)?;
        }
        let depth = self.depth_quota.draw(&mut self.rng);
        self.size_quota.add(size);
        self.depth_quota.add(depth);
        let level = self.directories.get(depth).map_or(&[][..], |level| level);
        let dir = level.get(index(&mut self.rng, level.len())).copied().unwrap_or(NodeId::ROOT);
        let node = self.node();
        self.writer.push(AgingOp { dir, size_bytes: bytes, ..AgingOp::new(t_ns, OpKind::Create, node) })?;
        let live = Live { node, born_ns: t_ns, size: size as u32, depth: depth as u32 };
        if stays {
            self.staying.push(live)
        } else {
            self.passing.push(live)
        }
        Ok(())
    }

    /// Deletes a random file of those that do not stay (of the others where there are none).
    fn delete(&mut self, t_ns: u64) -> Result<(), PlanError> {
        let from = if self.passing.is_empty() { &mut self.staying } else { &mut self.passing };
        if from.is_empty() {
            return Ok(());
        }
        let live = from.swap_remove(index(&mut self.rng, from.len()));
        self.size_quota.remove(live.size as usize);
        self.depth_quota.remove(live.depth as usize);
        Ok(self.writer.push(AgingOp::new(t_ns, OpKind::Delete, live.node))?)
    }

    /// Holds the files alive at the end against the profile.
    fn fit(&self, profile: &Profile) -> Vec<FitResult> {
        let oldest = profile.ages.last().map_or(1.0, |row| row.age);
        let mut ages = vec![0.0; profile.ages.len()];
        let mut depths = vec![0.0; profile.dirs.len()];
        let mut counts = vec![0.0; self.sizes.bytes.len()];
        for live in self.passing.iter().chain(&self.staying) {
            let age = (self.end_ns - live.born_ns) as f64 / self.end_ns as f64 * oldest;
            let class = profile.ages.partition_point(|row| row.age < age).min(ages.len() - 1);
            for (of, at) in [(&mut ages, class), (&mut depths, live.depth as usize), (&mut counts, live.size as usize)]
            {
                if let Some(n) = of.get_mut(at) {
                    *n += 1.0;
                }
            }
        }
        let in_bytes = |counts: &[f64]| -> Vec<f64> {
            counts.iter().zip(&self.sizes.bytes).map(|(n, bytes)| n * *bytes as f64).collect()
        };
        let observations = self.alive();
        let result = |what: &str, have: &[f64], want: &[f64], against: String| FitResult {
            what: what.to_owned(),
            ks: fit::ks_of_classes(have, want),
            observations,
            against,
        };
        let wanted_ages: Vec<f64> = profile.ages.iter().map(|row| row.weight).collect();
        let wanted_depths: Vec<f64> = profile.dirs.iter().map(|row| row.weight).collect();
        let name = &profile.name;
        let sizes = if self.sizes.left_out > 0.0 {
            format!("size_distribution of {name}, sizes that fit; files alive at the end")
        } else {
            format!("size_distribution of {name}; files alive at the end")
        };
        vec![
            result("size_by_count", &counts, &self.sizes.weights, sizes.clone()),
            result("size_by_bytes", &in_bytes(&counts), &in_bytes(&self.sizes.weights), sizes),
            result("age", &ages, &wanted_ages, format!("age_distribution of {name}; files alive at the end")),
            result("depth", &depths, &wanted_depths, format!("dir_distribution of {name}; files alive at the end")),
        ]
    }
}

fn meta(profile: &Profile, options: &Options, sizes: &Sizes, schedule: &Schedule, fit: Vec<FitResult>) -> PlanMeta {
    let alive_bytes = sizes.mean_bytes * schedule.fill as f64;
    let churn_bytes = sizes.mean_bytes * schedule.churn as f64;
    let turnovers = churn_bytes / alive_bytes.max(1.0);
    let mut description = format!(
        "Geriatrix profile {}: filled to {:.1} % with {} files of {:.0} bytes on average, then {} files created and \
         deleted ({turnovers:.2} times the bytes alive).",
        profile.name,
        options.fill * 100.0,
        schedule.fill,
        sizes.mean_bytes,
        schedule.churn,
    );
    if sizes.left_out > 0.0 {
        let largest = sizes.bytes.last().copied().unwrap_or(0);
        description.push_str(&format!(
            " Sizes above {largest} bytes are left out: with {:.4} % of the profile's files, they do not fit this \
             capacity.",
            sizes.left_out * 100.0
        ));
    }
    let parameters = json!({
        "method": "Kadekodi, Nagarajan, Ganger, Gibson, Geriatrix, USENIX ATC 2018; survivors chosen beforehand",
        "fill": options.fill,
        "files": schedule.fill,
        "mean_file_bytes": sizes.mean_bytes,
        "churn_files": schedule.churn,
        "churn_bytes": churn_bytes,
        "turnovers": turnovers,
        "share_of_files_left_out": sizes.left_out,
        "ages": profile.ages.iter().map(|r| json!([r.age, r.weight])).collect::<Vec<_>>(),
        "sizes": profile.sizes.iter().map(|r| json!([r.bytes, r.weight])).collect::<Vec<_>>(),
        "directories": profile.dirs.iter().map(|r| json!([r.depth, r.weight, r.directories])).collect::<Vec<_>>(),
    });
    PlanMeta {
        source: Source {
            kind: "geriatrix".into(),
            name: profile.name.clone(),
            description,
            inputs: profile.inputs.clone(),
            parameters,
        },
        seed: options.seed,
        days: options.days,
        fit,
        ..PlanMeta::default()
    }
}
