//! No change of cylinder group at the first indirect block.

use super::{Side, extents, gain, group_of, rates_figure, side};
use crate::alloc96::aged::Aged;
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use units::show::size_name;
use workload::Phase;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "hbench01/noswitch",
    title: "No change of cylinder group at a file's first indirect block",
    source: "Smith, Workload-Specific File System Benchmarks, PhD thesis, Harvard, 2001, chapter 3",
    runs: "the 300 days of alloc96 with realloc and with realloc,noswitch; the sequential benchmark around the first indirect \
           block on both, empty and aged; where the files of the aged ones begin",
    run,
};

const K: u64 = 1 << 10;
/// Sizes just over the first indirect block.
const JUST_OVER: std::ops::RangeInclusive<u64> = 104 * K..=160 * K;

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let sizes: &[u64] = bench.pick(
        &[96 * K, 104 * K, 256 * K],
        &[
            16 * K,
            32 * K,
            48 * K,
            56 * K,
            64 * K,
            72 * K,
            80 * K,
            88 * K,
            96 * K,
            104 * K,
            112 * K,
            120 * K,
            128 * K,
            160 * K,
            192 * K,
            256 * K,
            512 * K,
            1024 * K,
            2048 * K,
            4096 * K,
        ],
    );
    let switch = side(bench, "realloc", sizes)?;
    let noswitch = side(bench, "realloc,noswitch", sizes)?;
    let mut outcome = Outcome::new();
    outcome
        .parameter("file systems", "that of alloc96, realloc against realloc,noswitch")
        .parameter("days of aging", switch.aged.days.to_string())
        .parameter("data", format!("{} MiB of each size, 25 files a directory", bench.pick(4, 32)));
    throughput(&mut outcome, &switch, &noswitch, sizes);
    split_files(&mut outcome, &switch.aged, &noswitch.aged)?;
    Ok(outcome)
}

fn throughput(outcome: &mut Outcome, switch: &Side, noswitch: &Side, sizes: &[u64]) {
    let on_empty = |size, phase| gain(&switch.on_empty, &noswitch.on_empty, size, phase).unwrap_or(0.0);
    let on_aged = |size, phase| gain(&switch.on_aged, &noswitch.on_aged, size, phase).unwrap_or(0.0);
    for phase in [Phase::Read, Phase::Create] {
        for size in [96 * K, 104 * K, 256 * K] {
            let what = |on: &str| format!("{}, noswitch over switch, {on}, {} files", phase.name(), size_name(size));
            outcome.row(Row::new(what("empty"), Unit::Ratio, Published::NONE, on_empty(size, phase), Explain::Agrees));
            outcome.row(Row::new(what("aged"), Unit::Ratio, Published::NONE, on_aged(size, phase), Explain::Agrees));
        }
    }
    let indirect_at_base = || {
        Explain::because(
            "as in the code of 4.4BSD the indirect block and the block behind it are asked for at the beginning of the group, so that \
             the arm leaves the file at its 13th block all the same, only not as far; what comes after that stays near, and \
             so somewhat larger files gain more",
        )
    };
    for (on, of) in [("empty", &on_empty as &dyn Fn(u64, Phase) -> f64), ("aged", &on_aged)] {
        let best = sizes.iter().map(|size| (of(*size, Phase::Read), *size)).max_by(|a, b| a.0.total_cmp(&b.0));
        let (most, at) = best.unwrap_or((0.0, 0));
        outcome.claim(Claim::new(
            format!("read, {on}: files just over 96 KB gain most"),
            JUST_OVER.contains(&at) && most > 1.0,
            format!("{most:.2} times at {}", size_name(at)),
            indirect_at_base(),
        ));
    }
    let mean = |of: &dyn Fn(u64, Phase) -> f64| {
        let over: Vec<f64> = sizes.iter().filter(|s| JUST_OVER.contains(s)).map(|s| of(*s, Phase::Read)).collect();
        over.iter().sum::<f64>() / over.len().max(1) as f64
    };
    let (empty, aged) = (mean(&on_empty), mean(&on_aged));
    outcome.claim(Claim::new(
        "read: files just over 96 KB gain, and less on an aged file system",
        1.0 < aged && aged < empty,
        format!("104 to 160 KB: on the mean {empty:.2} times on an empty one, {aged:.2} on an aged one"),
        indirect_at_base(),
    ));
    let sides = [("switch", switch), ("noswitch", noswitch)];
    outcome.figure(rates_figure("read", "Reading files", Phase::Read, sides));
    outcome.figure(rates_figure("create", "Creating files", Phase::Create, sides));
}

/// Files whose first block is in another group than their inode.
struct Split {
    /// Of all files with blocks, how many.
    share: f64,
    /// How many groups away, of each of them, going round.
    distances: Vec<u32>,
}

impl Split {
    fn of(aged: &Aged) -> Result<Split, ExperimentError> {
        let g = aged.volume.geometry();
        let (mut files, mut distances) = (0_u64, Vec::new());
        for file in &aged.files {
            let found = extents(&aged.volume, file.ino)?;
            let Some(first) = found.first() else { continue };
            files += 1;
            let (home, at) = (file.ino.0 / g.ipg, group_of(&aged.volume, first));
            if home != at {
                distances.push((at + g.ncg - home) % g.ncg);
            }
        }
        distances.sort_unstable();
        Ok(Split { share: distances.len() as f64 / files.max(1) as f64, distances })
    }

    /// The share of them that are more than so many groups away.
    fn beyond(&self, groups: u32) -> f64 {
        let far = self.distances.iter().filter(|distance| **distance > groups).count();
        far as f64 / self.distances.len().max(1) as f64
    }
}

/// Groups from which on a file's data are far from its inode: behind the third step of the hash.
const FAR_GROUPS: u32 = 7;

fn split_files(outcome: &mut Outcome, switch: &Aged, noswitch: &Aged) -> Result<(), ExperimentError> {
    let (before, after) = (Split::of(switch)?, Split::of(noswitch)?);
    let share = |what: &str, ours| Row::new(what, Unit::Share, Published::NONE, ours, Explain::Agrees);
    outcome
        .row(share("split files at the end, switch", before.share))
        .row(share("split files at the end, noswitch", after.share));
    // To none at all there is no ratio.
    if before.share > 0.0 {
        outcome.row(Row::new(
            "split files at the end, noswitch over switch",
            Unit::Ratio,
            Published::about(2.0),
            after.share / before.share,
            Explain::because(
                "hardly any file is split without the change here: a file begins in another group only where its own is full, and with \
                 one directory to a group few are; noswitch fills the groups of large files. The ratio is of small numbers",
            ),
        ));
    }
    outcome
        .row(share("of split files, more than 7 groups away, switch", before.beyond(FAR_GROUPS)))
        .row(share("of split files, more than 7 groups away, noswitch", after.beyond(FAR_GROUPS)));
    outcome.claim(Claim::new(
        "noswitch splits more files",
        after.share > before.share,
        format!("{:.2} % of files against {:.2} %", after.share * 100.0, before.share * 100.0),
        Explain::Agrees,
    ));
    outcome.claim(Claim::new(
        "with noswitch a larger share of split files is many groups away",
        after.beyond(FAR_GROUPS) > before.beyond(FAR_GROUPS),
        format!(
            "{:.0} % beyond {FAR_GROUPS} groups against {:.0} %",
            after.beyond(FAR_GROUPS) * 100.0,
            before.beyond(FAR_GROUPS) * 100.0
        ),
        Explain::Agrees,
    ));
    let curve = |split: &Split| {
        let groups = switch.volume.geometry().ncg;
        let within = |far: u32| split.distances.iter().filter(|distance| **distance <= far).count();
        (1..groups).map(|far| (f64::from(far), within(far) as f64)).collect::<Vec<_>>()
    };
    outcome.figure(Figure {
        name: "split".to_owned(),
        title: "Split files at most so many groups away".to_owned(),
        x: Axis::Number("cylinder groups".to_owned()),
        y: Axis::Number("files".to_owned()),
        series: vec![Series::new("switch", curve(&before)), Series::new("noswitch", curve(&after))],
    });
    Ok(())
}
