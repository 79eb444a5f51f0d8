//! `alloc96/by-size`: layout score against file size on the aged file systems.
//!
//! Which blocks count is shown both ways. The fragments at a file's end go to the smallest run that is long enough,
//! seldom behind the block before: counted as a block they hide what becomes of the others. What the study says of
//! files of two blocks, that realloc first runs when the second is full, is said of second blocks that were allocated
//! whole; so its statements are held against those.

use super::aged::{Aged, aged};
use super::replay::{AgedFile, layout_of, whole_blocks_of};
use super::{POLICIES, describe};
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use ffs::Ffs;
use layout::scores::score::LayoutScore;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "alloc96/by-size",
    title: "Layout score by file size",
    source: "Smith and Seltzer, A Comparison of FFS Disk Allocation Policies, USENIX 1996, figure 3",
    runs: "Looks at the files of the two aged file systems, by their number of blocks.",
    run,
};

/// Fewest blocks of each class of sizes; a class ends where the next begins. One class for each number of blocks where
/// the allocator changes its ways, doubling from there.
const CLASSES: [u64; 18] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 17, 25, 49, 97, 193];

/// Which blocks count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// All, the fragments at the end of a file as one.
    All,
    /// Those that were allocated whole.
    Whole,
}

/// Scores of one file system, by class.
pub(crate) struct BySize {
    classes: Vec<(u64, LayoutScore, u64)>,
}

impl BySize {
    /// Looks at every file.
    pub(crate) fn of(aged: &Aged, counted: Counted) -> Result<BySize, ExperimentError> {
        BySize::of_files(&aged.volume, aged.files.iter(), counted)
    }

    /// Looks at some.
    pub(crate) fn of_files<'a>(
        volume: &Ffs,
        files: impl Iterator<Item = &'a AgedFile>,
        counted: Counted,
    ) -> Result<BySize, ExperimentError> {
        let mut classes: Vec<_> = CLASSES.iter().map(|from| (*from, LayoutScore::default(), 0)).collect();
        for file in files {
            let layout = match counted {
                Counted::All => layout_of(volume, file.ino)?,
                Counted::Whole => whole_blocks_of(volume, file.ino, file.size_bytes)?,
            };
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

    /// The score of all together.
    pub(crate) fn aggregate(&self) -> f64 {
        self.score(0, u64::MAX)
    }

    fn files(&self) -> Vec<(f64, f64)> {
        self.classes.iter().map(|(from, _, files)| (*from as f64 * 8192.0, *files as f64)).collect()
    }
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let [original, realloc] = [aged(bench, POLICIES[0].1)?, aged(bench, POLICIES[1].1)?];
    let mut outcome = Outcome::new();
    describe(&mut outcome, original.days);
    let all = [BySize::of(&original, Counted::All)?, BySize::of(&realloc, Counted::All)?];
    let whole = [BySize::of(&original, Counted::Whole)?, BySize::of(&realloc, Counted::Whole)?];
    rows(&mut outcome, &whole, "");
    rows(&mut outcome, &all, ", fragments counted");
    claims(&mut outcome, &whole);
    let panels = [("blocks allocated whole", &whole), ("fragments counted as a block", &all)];
    let series = panels.iter().flat_map(|(panel, [original, realloc])| {
        [("original", original), ("realloc", realloc)].map(|(name, by)| Series::in_panel(panel, name, by.points()))
    });
    outcome.figure(Figure {
        name: "score-by-size".into(),
        title: "Aggregate layout score of the files of each size.".into(),
        x: Axis::Bytes("file size".into()),
        y: Axis::Score("layout score".into()),
        series: series.collect(),
    });
    outcome.figure(Figure {
        name: "files-by-size".into(),
        title: "Files of each size.".into(),
        x: Axis::Bytes("file size".into()),
        y: Axis::Number("files".into()),
        series: vec![Series::new("files", all[0].files())],
    });
    outcome.note(
        "No scores by size were published as numbers; the statements are about the curves, of blocks allocated whole.",
    );
    Ok(outcome)
}

fn rows(outcome: &mut Outcome, [original, realloc]: &[BySize; 2], which: &str) {
    for (name, by_size) in [("original", original), ("realloc", realloc)] {
        let bounds = [("2 blocks", 2, 2), ("3 to 7 blocks", 3, 7), ("8 to 12 blocks", 8, 12), ("13 blocks", 13, 13)];
        for (what, from, to) in bounds.into_iter().chain([("49 blocks and more", 49, u64::MAX)]) {
            let score = by_size.score(from, to);
            // A short run may have no file of a size.
            if score.is_finite() {
                let what = format!("{what}, {name}{which}");
                outcome.row(Row::new(what, Unit::Score, Published::NONE, score, Explain::Agrees));
            }
        }
    }
}

fn claims(outcome: &mut Outcome, [original, realloc]: &[BySize; 2]) {
    let pairs = original.points().into_iter().zip(realloc.points());
    let worse: Vec<String> = pairs
        .filter(|(o, r)| r.1 < o.1)
        .map(|(o, r)| format!("{} KB: {:.3} against {:.3}", o.0 / 1024.0, r.1, o.1))
        .collect();
    let seen = if worse.is_empty() { "at every size".to_owned() } else { worse.join("; ") };
    outcome.claim(Claim::new("realloc is better at every size", worse.is_empty(), seen, Explain::unknown()));
    let small = realloc.score(3, 7);
    outcome.claim(Claim::new(
        "realloc is near-perfect below the cluster size: 3 to 7 blocks above 0.95",
        small > 0.95,
        format!("{small:.3}"),
        Explain::unknown(),
    ));
    for (name, by_size) in [("original", original), ("realloc", realloc)] {
        let (before, at, after) = (by_size.score(11, 12), by_size.score(13, 13), by_size.score(49, u64::MAX));
        outcome.claim(Claim::new(
            format!("a dip just past 12 blocks, and a recovery with size, {name}"),
            at < before && at < after,
            format!("{before:.3} at 11 and 12 blocks, {at:.3} at 13, {after:.3} from 49 on"),
            Explain::unknown(),
        ));
    }
    let (two, more) = (realloc.score(2, 2), realloc.score(3, 4));
    outcome.claim(Claim::new(
        "files of two blocks are worse than slightly larger ones under realloc",
        two < more,
        format!("{two:.3} against {more:.3}"),
        Explain::unknown(),
    ));
}
