//! `alloc96/by-size`: layout score against file size on the aged file systems.

use super::aged::{Aged, aged};
use super::replay::layout_of;
use super::{POLICIES, describe};
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use layout::scores::score::LayoutScore;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "alloc96/by-size",
    title: "Layout score by file size",
    source: "Smith and Seltzer, A Comparison of FFS Disk Allocation Policies, USENIX 1996, figure 3",
    runs: "Looks at the files of the two aged file systems, by their number of blocks.",
    run,
};

/// Fewest blocks of each class of sizes; a class ends where the next begins. One class for each number of blocks where the
/// allocator changes its ways, doubling from there.
const CLASSES: [u64; 18] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 17, 25, 49, 97, 193];

/// Scores of one file system, by class.
pub(crate) struct BySize {
    classes: Vec<(u64, LayoutScore, u64)>,
}

impl BySize {
    /// Looks at every file.
    pub(crate) fn of(aged: &Aged) -> Result<BySize, ExperimentError> {
        let mut classes: Vec<_> = CLASSES.iter().map(|from| (*from, LayoutScore::default(), 0)).collect();
        for file in &aged.files {
            let layout = layout_of(&aged.volume, file.ino)?;
            let at = classes.partition_point(|(from, ..)| *from <= layout.blocks);
            if let Some((_, sum, files)) = at.checked_sub(1).and_then(|at| classes.get_mut(at)) {
                sum.add(layout.score);
                *files += 1;
            }
        }
        Ok(BySize { classes })
    }

    /// The score of files of `from` to `to` blocks, bounds of classes.
    pub(crate) fn score(&self, from: u64, to: u64) -> f64 {
        let mut sum = LayoutScore::default();
        self.classes.iter().filter(|(at, ..)| (from..=to).contains(at)).for_each(|(_, score, _)| sum.add(*score));
        sum.value().unwrap_or(f64::NAN)
    }

    /// Curve over the smallest size of each class.
    pub(crate) fn points(&self) -> Vec<(f64, f64)> {
        let known = self.classes.iter().filter_map(|(from, score, _)| Some((*from, score.value()?)));
        known.map(|(from, score)| (from as f64 * 8192.0, score)).collect()
    }

    fn files(&self) -> Vec<(f64, f64)> {
        self.classes.iter().map(|(from, _, files)| (*from as f64 * 8192.0, *files as f64)).collect()
    }
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let [original, realloc] = [aged(bench, POLICIES[0].1)?, aged(bench, POLICIES[1].1)?];
    let days = original.days;
    let (original, realloc) = (BySize::of(&original)?, BySize::of(&realloc)?);
    let mut outcome = Outcome::new();
    describe(&mut outcome, days);
    let row = |what: String, ours| Row::new(what, Unit::Score, Published::NONE, ours, Explain::Agrees);
    for (name, by_size) in [("original", &original), ("realloc", &realloc)] {
        outcome
            .row(row(format!("2 blocks, {name}"), by_size.score(2, 2)))
            .row(row(format!("3 to 7 blocks, {name}"), by_size.score(3, 7)))
            .row(row(format!("8 to 12 blocks, {name}"), by_size.score(8, 12)))
            .row(row(format!("13 blocks, {name}"), by_size.score(13, 13)))
            .row(row(format!("49 blocks and more, {name}"), by_size.score(49, u64::MAX)));
    }
    claims(&mut outcome, &original, &realloc);
    outcome.figure(Figure {
        name: "score-by-size".into(),
        title: "Aggregate layout score of the files of each size.".into(),
        x: Axis::Bytes("file size".into()),
        y: Axis::Score("layout score".into()),
        series: vec![Series::new("original", original.points()), Series::new("realloc", realloc.points())],
    });
    outcome.figure(Figure {
        name: "files-by-size".into(),
        title: "Files of each size.".into(),
        x: Axis::Bytes("file size".into()),
        y: Axis::Number("files".into()),
        series: vec![Series::new("files", original.files())],
    });
    Ok(outcome)
}

fn claims(outcome: &mut Outcome, original: &BySize, realloc: &BySize) {
    let pairs = original.points().into_iter().zip(realloc.points());
    let worse: Vec<String> = pairs
        .filter(|(o, r)| r.1 < o.1)
        .map(|(o, r)| format!("{} KB: {:.3} against {:.3}", o.0 / 1024.0, r.1, o.1))
        .collect();
    let seen = if worse.is_empty() { "at every size".to_owned() } else { worse.join("; ") };
    outcome.claim(Claim::new("realloc is better at every size", worse.is_empty(), seen, Explain::Agrees));
    let small = realloc.score(3, 7);
    outcome.claim(Claim::new(
        "realloc is near-perfect below the cluster size (3 to 7 blocks above 0.95)",
        small > 0.95,
        format!("{small:.3}"),
        Explain::Agrees,
    ));
    let (two, more) = (realloc.score(2, 2), realloc.score(3, 4));
    outcome.claim(Claim::new(
        "files of two blocks are worse than slightly larger ones under realloc",
        two < more,
        format!("{two:.3} against {more:.3}"),
        Explain::Agrees,
    ));
    for (name, by_size) in [("original", original), ("realloc", realloc)] {
        let (before, at, after) = (by_size.score(11, 12), by_size.score(13, 13), by_size.score(49, u64::MAX));
        outcome.claim(Claim::new(
            format!("a dip just past 12 blocks, and a recovery with size, {name}"),
            at < before && at < after,
            format!("{before:.3} at 11 and 12 blocks, {at:.3} at 13, {after:.3} from 49 on"),
            Explain::Agrees,
        ));
    }
}
