//! Fragments behind a file's last full block.

use super::changed::{Change, aged_by_each};
use super::thesis::{self, THESIS, with_one_position};
use super::{Side, describe, extents, gain, rate, rates_figure, side};
use crate::alloc96::aged::Aged;
use crate::study::writing;
use crate::testbed::{AtSize, make_files};
use crate::{
    Axis, Bench, Claim, Difference, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series,
    Study, Unit, parallel,
};
use ffs::Ffs;
use ffs::policy::{Integrity, LateWrites};
use layout::scores::file::FileLayout;
use layout::scores::score::LayoutScore;
use posix::{Call, FileSystem as _, Mode, OpenFlags};
use units::show::size_name;
use workload::Phase;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "hbench01/fragments",
    title: "Fragments behind a file's last full block (smart fragment allocation)",
    source: "Smith, Workload-Specific File System Benchmarks, PhD thesis, Harvard, 2001, chapter 3",
    runs: "seven months with realloc and with realloc,smartfrags; layout by file size, of the files there and of files \
           written then; the sequential benchmark on both, empty and aged, and with late blocks gathered; free space \
           held in fragments, and the same with other distributions of the documents' sizes, other use, and the file \
           system and days of alloc96",
    run,
};

const K: u64 = 1 << 10;
/// Files written of each size to see their layout; of large ones, as many as hold so much.
const FILES: u64 = 100;
const WRITTEN_BYTES: u64 = 32 << 20;

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let sizes: &[u64] = bench.pick(
        &[12 * K, 56 * K, 64 * K],
        &[
            4 * K,
            8 * K,
            9 * K,
            12 * K,
            15 * K,
            16 * K,
            20 * K,
            24 * K,
            28 * K,
            32 * K,
            36 * K,
            40 * K,
            44 * K,
            48 * K,
            52 * K,
            56 * K,
            60 * K,
            64 * K,
            72 * K,
            76 * K,
            80 * K,
            88 * K,
            92 * K,
            96 * K,
            104 * K,
            256 * K,
            1024 * K,
        ],
    );
    let best = side(bench, THESIS, "realloc", sizes)?;
    let smart = side(bench, THESIS, "realloc,smartfrags", sizes)?;
    let shown = [12 * K, 56 * K, 64 * K];
    let gathered = [side(bench, GATHERED, "realloc", &shown)?, side(bench, GATHERED, "realloc,smartfrags", &shown)?];
    let steps: Vec<u64> = bench.pick(vec![12, 16], (4..=48).collect());
    let written = |bench: &mut Bench<'_>, volume: &Ffs, words: &str| {
        let mut scores = Vec::new();
        for (done, kb) in (0_u64..).zip(&steps) {
            bench.report(&format!("layout by size, {words}"), done, Some(steps.len() as u64));
            scores.push((kb * K, written_score(THESIS, volume, kb * K)?));
        }
        Ok::<_, ExperimentError>(scores)
    };
    let by_size = [written(bench, &best.aged.volume, "realloc")?, written(bench, &smart.aged.volume, "smartfrags")?];
    let on_empty = written(bench, &THESIS.file_system("realloc,smartfrags,noorder")?, "smartfrags, empty")?;
    let one_position = written(bench, &with_one_position("realloc,smartfrags,noorder")?, "one rotational position")?;
    let sweep = sweep(bench)?;
    let mut outcome = Outcome::new();
    describe(&mut outcome, bench, &best.aged);
    outcome
        .parameter("compared", "realloc against realloc,smartfrags; late blocks are written one by one (blockwise)")
        .parameter("other sizes of documents", bench.sweeps());
    aged_layout(&mut outcome, &best.aged, &smart.aged)?;
    saw_tooth(&mut outcome, &by_size, &on_empty, &one_position);
    free_fragments(&mut outcome, &best.aged.volume, &smart.aged.volume, &sweep);
    throughput(&mut outcome, "", [&best, &smart]);
    throughput(&mut outcome, "late blocks gathered: ", [&gathered[0], &gathered[1]]);
    jump(&mut outcome, &best, &gathered[0]);
    requests(bench, &mut outcome)?;
    let sides = [("original fragments", &best), ("smart fragments", &smart)];
    outcome.figure(rates_figure("read", "Reading files", Phase::Read, sides));
    outcome.figure(rates_figure("create", "Creating files", Phase::Create, sides));
    Ok(outcome)
}

/// The aggregate layout score of files of one size, written on a copy of a file system.
pub(super) fn written_score(study: Study, volume: &Ffs, size_bytes: u64) -> Result<f64, ExperimentError> {
    let block = u64::from(volume.geometry().bsize);
    let mut lab = study.laboratory(volume.clone())?;
    let files = (WRITTEN_BYTES / size_bytes.max(1)).clamp(1, FILES);
    let paths = make_files(&mut lab, "new", files, size_bytes, 25)?;
    let mut score = LayoutScore::default();
    for path in paths {
        let failed = |errno| ExperimentError::Call { doing: format!("looking at {path}"), errno };
        let open = Call::Open { at: path.as_str().into(), flags: OpenFlags::READ, mode: Mode(0) };
        let fd = lab.call(&open).fd().map_err(failed)?;
        let extents = lab.extents(fd).map_err(|_| failed(posix::Errno::EOPNOTSUPP))?;
        score.add(FileLayout::of(&extents, block).score);
        lab.call(&Call::Close { fd }).result.map_err(failed)?;
    }
    // A file of one block has no score; nothing is out of place.
    Ok(score.value().unwrap_or(1.0))
}

/// Scores of the files of an aged file system that end in a fragment and of those that do not, without those of one
/// block.
struct ByEnd {
    fragment: LayoutScore,
    full: LayoutScore,
    /// Whether the last piece of a file that ends in a fragment lies behind the one before it.
    ends: LayoutScore,
}

impl ByEnd {
    fn of(aged: &Aged) -> Result<ByEnd, ExperimentError> {
        let g = aged.volume.geometry();
        let block = u64::from(g.bsize);
        let mut all =
            ByEnd { fragment: LayoutScore::default(), full: LayoutScore::default(), ends: LayoutScore::default() };
        for file in &aged.files {
            // Behind the direct blocks a file has no fragments.
            if file.size_bytes <= block || file.size_bytes > ffs::format::NDADDR as u64 * block {
                continue;
            }
            let found = extents(&aged.volume, file.ino)?;
            let score = FileLayout::of(&found, block).score;
            let rest = (file.size_bytes % block).div_ceil(g.fsize.into());
            if rest == 0 || rest == u64::from(g.frag) {
                all.full.add(score);
                continue;
            }
            all.fragment.add(score);
            // The last extent is more than the fragments where they follow.
            let last = found.last().map_or(0, |extent| extent.len_bytes);
            all.ends.add(LayoutScore { following: u64::from(last > rest * u64::from(g.fsize)), pairs: 1 });
        }
        Ok(all)
    }
}

fn aged_layout(outcome: &mut Outcome, best: &Aged, smart: &Aged) -> Result<(), ExperimentError> {
    let (before, after) = (ByEnd::of(best)?, ByEnd::of(smart)?);
    let value = |score: LayoutScore| score.value().unwrap_or(0.0);
    for (name, of) in [("original fragments", &before), ("smart fragments", &after)] {
        let mut row = |what: &str, score: LayoutScore| {
            outcome.row(Row::new(
                format!("{what}, {name}"),
                Unit::Score,
                Published::NONE,
                value(score),
                Explain::Agrees,
            ));
        };
        row("aged, files up to 96 KB that end in a fragment: layout score", of.fragment);
        row("aged, files up to 96 KB that end in a full block: layout score", of.full);
        row("aged, fragments behind the block before them: share", of.ends);
    }
    outcome.claim(Claim::new(
        "of the aged files, those that end in a fragment are laid out better with smart fragments",
        value(after.fragment) > value(before.fragment) && value(after.ends) > value(before.ends),
        format!(
            "score {:.3} against {:.3}; {:.0} % of ends in place against {:.0} %",
            value(after.fragment),
            value(before.fragment),
            value(after.ends) * 100.0,
            value(before.ends) * 100.0
        ),
        Explain::Agrees,
    ));
    Ok(())
}

/// How much lower the mean score of sizes that end in a fragment is, from two blocks on.
fn tooth(scores: &[(u64, f64)]) -> Option<(f64, f64)> {
    let mean = |full: bool| {
        let of: Vec<f64> = scores
            .iter()
            .filter(|(size, _)| *size > 8 * K && size.is_multiple_of(8 * K) == full)
            .map(|(_, score)| *score)
            .collect();
        (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64)
    };
    Some((mean(false)?, mean(true)?))
}

fn saw_tooth(
    outcome: &mut Outcome,
    by_size: &[Vec<(u64, f64)>; 2],
    on_empty: &[(u64, f64)],
    one_position: &[(u64, f64)],
) {
    let [best, smart] = by_size;
    let (Some((best_part, best_full)), Some((smart_part, smart_full))) = (tooth(best), tooth(smart)) else { return };
    let mut row = |what: &str, ours| {
        outcome.row(Row::new(what, Unit::Score, Published::NONE, ours, Explain::Agrees));
    };
    row("written on the aged one, sizes that end in a fragment: layout score, original fragments", best_part);
    row("written on the aged one, sizes that end in a full block: layout score, original fragments", best_full);
    row("written on the aged one, sizes that end in a fragment: layout score, smart fragments", smart_part);
    row("written on the aged one, sizes that end in a full block: layout score, smart fragments", smart_full);
    outcome.claim(Claim::new(
        "original fragments: layout by size is a saw-tooth, worse at sizes that end in a fragment",
        best_part < best_full - 0.05,
        format!("mean score {best_part:.3} where a fragment ends the file, {best_full:.3} where it does not"),
        Explain::Agrees,
    ));
    let part = |scores: &[(u64, f64)]| tooth(scores).map_or(0.0, |(part, _)| part);
    let empty_part = part(on_empty);
    outcome.row(Row::new(
        "written on an empty one with one rotational position, sizes that end in a fragment: layout score, smart \
         fragments",
        Unit::Score,
        Published::NONE,
        part(one_position),
        Explain::Agrees,
    ));
    outcome.claim(Claim::new(
        "smart fragments, empty file system: sizes that end in a fragment are laid out perfectly",
        empty_part > 0.97,
        format!("mean score {empty_part:.3}"),
        Explain::because(format!(
            "with one change, one rotational position instead of eight, it is {:.3}; what is left is not known",
            part(one_position)
        )),
    ));
    outcome.claim(Claim::new(
        "smart fragments, aged file system: sizes that end in a fragment are laid out perfectly",
        smart_part > 0.97,
        format!("mean score {smart_part:.3}"),
        Explain::because(
            "blocks go into the first free run that is long enough, and a single block is not even moved by realloc: \
             in the small holes of the aged file system the block behind the last one is often in use, the more so the \
             shorter the file",
        ),
    ));
    let series = [("original fragments", best), ("smart fragments", smart)]
        .map(|(name, scores)| Series::new(name, scores.iter().map(|(size, score)| (*size as f64, *score))));
    outcome.figure(Figure {
        name: "layout-by-size".to_owned(),
        title: format!("Layout of {FILES} files of each size written on the aged file system"),
        x: Axis::Bytes("file size".to_owned()),
        y: Axis::Score("layout score".to_owned()),
        series: series.into(),
    });
}

/// Of free space, what is in blocks partly used.
fn in_fragments(volume: &Ffs) -> f64 {
    volume.space().total().nffree as f64 / volume.space().free_frags().max(1) as f64
}

/// Standard deviations of the logarithm of the documents' sizes, at the workload's mean; its own is 2.2.
const SIGMAS: [f64; 4] = [1.2, 1.6, 1.9, 2.5];
/// The documents' mean size as a multiple of the workload's.
const MEANS: [f64; 4] = [2.0, 0.5, 0.25, 0.125];

/// The share of free space in fragments, original and smart, with one thing changed.
struct Swept {
    change: Change,
    best: f64,
    smart: f64,
}

impl Swept {
    fn ratio(&self) -> f64 {
        self.smart / self.best.max(f64::MIN_POSITIVE)
    }
}

/// Ages both with one thing changed at a time, first about the documents' sizes; use stays then, and so there are more
/// or fewer of them. A change that fills the file system is left out.
fn sweep(bench: &mut Bench<'_>) -> Result<Vec<Swept>, ExperimentError> {
    let change = |name: String, sigma: Option<f64>, times: f64| {
        let mut parameters = (THESIS.workload)();
        let sizes = &mut parameters.document_size;
        let sigma = sigma.unwrap_or(sizes.sigma);
        // The mean is exp(mu + sigma^2 / 2).
        sizes.mu += (sizes.sigma.powi(2) - sigma.powi(2)) / 2.0 + times.ln();
        sizes.sigma = sigma;
        Change::of_use(name, THESIS, parameters)
    };
    let sigmas = bench.sweep(&SIGMAS[..1], &SIGMAS[..1], &SIGMAS[..]);
    let means = bench.sweep(&MEANS[..0], &MEANS[..1], &MEANS[..]);
    let spread = sigmas.iter().map(|&sigma| change(format!("documents' sizes, sigma {sigma}"), Some(sigma), 1.0));
    let larger = means.iter().map(|&times| change(format!("documents' sizes, mean {times} times"), None, times));
    let changes: Vec<Change> = spread.chain(larger).chain(thesis::unknown(bench)).collect();
    let words = ["realloc,noorder", "realloc,smartfrags,noorder"];
    let stage = "aging with one thing changed";
    let found = aged_by_each(bench, stage, &changes, &words, |aged| Ok(in_fragments(&aged.volume)))?;
    let swept = changes.iter().cloned().zip(found).filter_map(|(change, shares)| {
        let mut shares = shares.into_iter();
        let (best, smart) = (shares.next()??, shares.next()??);
        Some(Swept { change, best, smart })
    });
    Ok(swept.collect())
}

fn free_fragments(outcome: &mut Outcome, best: &Ffs, smart: &Ffs, sweep: &[Swept]) {
    let (before, after) = (in_fragments(best), in_fragments(smart));
    let doubled = |what: String, ratio, explain| Row::new(what, Unit::Ratio, Published::about(2.0), ratio, explain);
    let says = |swept: &Swept| format!("{}: {:.2}", swept.change.name, swept.ratio());
    let reached: Vec<String> = sweep
        .iter()
        .filter(|swept| doubled(String::new(), swept.ratio(), Explain::Agrees).difference() == Difference::Within)
        .map(says)
        .collect();
    let why = if reached.is_empty() {
        let all: Vec<String> = sweep.iter().map(says).collect();
        format!("not known: nothing that was tried comes within a quarter ({})", all.join("; "))
    } else {
        format!(
            "it depends on the use. With one change to it, the ratio is within a quarter of the published one for {}",
            reached.join("; ")
        )
    };
    let share = |what: &str, ours| Row::new(what, Unit::Share, Published::NONE, ours, Explain::Agrees);
    outcome
        .row(share("free space in fragments, original", before))
        .row(share("free space in fragments, smart", after))
        .row(doubled(
            "free space in fragments, smart over original".to_owned(),
            after / before.max(f64::MIN_POSITIVE),
            Explain::because(why),
        ));
    for swept in sweep {
        let name = &swept.change.name;
        outcome
            .row(share(&format!("{name}: free space in fragments, original"), swept.best))
            .row(share(&format!("{name}: free space in fragments, smart"), swept.smart));
        let what = format!("{name}: smart over original");
        outcome.row(Row::new(what, Unit::Ratio, Published::NONE, swept.ratio(), Explain::Agrees));
    }
}

/// Sizes that rows are of: such as end in a fragment, and those about a full cluster.
const SHOWN: [u64; 6] = [12 * K, 20 * K, 56 * K, 64 * K, 72 * K, 92 * K];

/// The same kernel, if it wrote what was left dirty with its neighbours, as FreeBSD's does.
const GATHERED: Study = Study { late: LateWrites::Gathered, ..THESIS };

fn throughput(outcome: &mut Outcome, with: &str, [best, smart]: [&Side; 2]) {
    for phase in [Phase::Read, Phase::Create] {
        for size in SHOWN {
            let both = [("empty", &best.on_empty, &smart.on_empty), ("aged", &best.on_aged, &smart.on_aged)];
            for (on, before, after) in both {
                // Not every size is run at every scale.
                let Some(ours) = gain(before, after, size, phase) else { continue };
                let what = format!("{with}{}, smart over original, {on}, {} files", phase.name(), size_name(size));
                outcome.row(Row::new(what, Unit::Ratio, Published::NONE, ours, Explain::Agrees));
            }
        }
    }
}

/// How much faster files are written that just fill a cluster than those of a block less.
fn full_cluster(found: &[AtSize]) -> Option<f64> {
    Some(rate(found, 64 * K, Phase::Create)? / rate(found, 56 * K, Phase::Create)?)
}

/// More than this is a jump, where files are written at nearly the same rate otherwise.
const JUMP: f64 = 1.25;

fn jump(outcome: &mut Outcome, blockwise: &Side, gathered: &Side) {
    let of = |found: &[AtSize]| full_cluster(found).unwrap_or(0.0);
    for (late, side) in [("", blockwise), ("late blocks gathered: ", gathered)] {
        for (on, found) in [("empty", &side.on_empty), ("aged", &side.on_aged)] {
            let what = format!("{late}create, original fragments, {on}, 64 KB over 56 KB files");
            outcome.row(Row::new(what, Unit::Ratio, Published::NONE, of(found), Explain::Agrees));
        }
    }
    let (ours, without) = (of(&blockwise.on_empty), of(&gathered.on_empty));
    outcome.claim(Claim::new(
        "create: throughput jumps at 64 KB, where a cluster is full",
        ours > JUMP,
        format!("files of 64 KB are written {ours:.2} times as fast as those of 56 KB on an empty file system"),
        Explain::because(format!("not known; with late blocks gathered it is {without:.2} times")),
    ));
}

/// The device's writes for each file of 12 KB (a block and half a block of fragments) on an empty file system.
fn requests(bench: &mut Bench<'_>, outcome: &mut Outcome) -> Result<(), ExperimentError> {
    let words = [("original", "realloc"), ("smart", "realloc,smartfrags")];
    let points: Vec<_> = [THESIS, GATHERED].into_iter().flat_map(|study| words.map(|words| (study, words))).collect();
    let found = parallel::each(bench, "requests for fragments", &points, |(study, (_, words))| {
        let mut lab = study.laboratory(writing(&study.file_system(words)?, Integrity::Noorder, study.late))?;
        let before = lab.counters().device.writes;
        make_files(&mut lab, "d", FILES, 12 * K, 25)?;
        lab.drop_caches().map_err(|error| ExperimentError::Io { doing: "writing back".to_owned(), error })?;
        Ok((lab.counters().device.writes - before) as f64 / FILES as f64)
    })?;
    for ((study, (name, _)), ours) in points.iter().zip(&found) {
        let late = if study.late == LateWrites::Gathered { "late blocks gathered: " } else { "" };
        let what = format!("{late}disk writes for each 12 KB file, metadata late, {name} fragments");
        outcome.row(Row::new(what, Unit::Number, Published::NONE, *ours, Explain::Agrees));
    }
    if let [alone, smart_alone, _, smart_gathered] = found[..] {
        outcome.claim(Claim::new(
            "fragments are written by a request of their own, wherever they lie",
            alone >= 2.0 && smart_alone >= 2.0,
            format!(
                "{alone:.2} and {smart_alone:.2} writes for each file of a block and fragments, original and smart; \
                 gathered, {smart_gathered:.2} with smart ones"
            ),
            Explain::unknown(),
        ));
    }
    Ok(())
}
