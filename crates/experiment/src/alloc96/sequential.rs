//! `alloc96/sequential`: the sequential benchmark on the aged file systems, by file size.

use super::aged::{Aged, aged};
use super::replay::failed;
use super::{DRIVE, MACHINE, POLICIES, SIZE_BYTES, WRITES, describe};
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use device::Drive;
use device::store::{SparseStore, Store as _};
use ffs::Ffs;
use kernel::{Ino, Lab, Machine, RawDisk, Volume as _};
use layout::scores::file::FileLayout;
use layout::scores::score::LayoutScore;
use posix::{Call, FileSystem as _, Mode, OpenFlags};
use workload::seqfile::Options;
use workload::{Phase, Repeat, TargetResult};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "alloc96/sequential",
    title: "Sequential throughput by file size on aged file systems",
    source: "Smith and Seltzer, A Comparison of FFS Disk Allocation Policies, USENIX 1996, section 5.1, figures 4 and \
        5",
    runs: "Creates, reads and overwrites 32 MB in files of each size on the two aged file systems: 25 files a \
           directory, calls of 4 MB; looks at the layout of such files; reads and writes the raw disk in sequence.",
    run,
};

const KB: u64 = 1024;

/// File sizes: multiples of a block about the cluster size and the first indirect block, doubling elsewhere.
const SIZES_KB: [u64; 23] =
    [16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 128, 192, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768];

/// The largest single read or write.
const PIECE_BYTES: u64 = 4 << 20;

/// Those of the quick scale.
const QUICK_KB: [u64; 8] = [16, 56, 64, 72, 96, 104, 128, 1024];

fn options(bench: &Bench<'_>) -> Options {
    let sizes = bench.pick(QUICK_KB.as_slice(), SIZES_KB.as_slice());
    Options {
        sizes_bytes: sizes.iter().map(|kb| kb * KB).collect(),
        files_per_directory: 25,
        piece_bytes: PIECE_BYTES,
        repeat: Repeat { seed: bench.seed(), ..Repeat::once() },
        ..Options::with_data(bench.pick(4, 32) << 20)
    }
}

/// Throughput of one file system by size.
pub(crate) struct Curves(TargetResult);

impl Curves {
    /// MiB a second in a phase at a size; not a number where it was not run.
    pub(crate) fn at(&self, phase: Phase, size_kb: u64) -> f64 {
        self.points(phase).into_iter().find(|(x, _)| *x == (size_kb * KB) as f64).map_or(f64::NAN, |(_, y)| y)
    }

    /// MiB a second by size.
    pub(crate) fn points(&self, phase: Phase) -> Vec<(f64, f64)> {
        let found = |p: &workload::PointResult| {
            let rate = p.phases.iter().find(|found| found.phase == phase)?.rate.median;
            Some((p.point.size_bytes? as f64, rate / (KB * KB) as f64))
        };
        self.0.points.iter().filter_map(found).collect()
    }
}

/// What is known of the two file systems: throughput, and the layout of the benchmark's own files by size.
struct Found {
    curves: [Curves; 2],
    /// The same throughput with late blocks gathered.
    gathered: [Curves; 2],
    layout: [Vec<(f64, f64)>; 2],
    raw: Raw,
    /// Reading files of 96 KB, realloc over original, where a track has about the published number of sectors.
    average_track: f64,
    /// Creating files of 64 KB, realloc over original, with metadata written late.
    late: f64,
}

/// Where the average number of sectors a track lies in the middle of what a file system of this size covers: its middle
/// is the drive's.
fn middle_sector(drive: &Drive) -> u64 {
    drive.device().capacity_sectors().saturating_sub(SIZE_BYTES / 512) / 2
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let (mut curves, mut gathered, mut layout) = (Vec::new(), Vec::new(), Vec::new());
    let (mut middle, mut late) = (Vec::new(), Vec::new());
    let mut outcome = Outcome::new();
    let first_sector = middle_sector(&Drive::find(DRIVE)?);
    for (name, words) in POLICIES {
        let aged = aged(bench, words)?;
        if curves.is_empty() {
            describe(&mut outcome, aged.days);
        }
        let options = options(bench);
        for (what, mut lab, into) in [
            ("", aged.laboratory()?, &mut curves),
            (", late blocks gathered", aged.laboratory_gathering()?, &mut gathered),
        ] {
            let mut tell =
                |p: &workload::Progress<'_>| bench.report(&format!("{name}{what}: {}", p.point), p.done, Some(p.total));
            let mut result = workload::run_on(&mut lab, &options, &mut tell)?;
            into.extend(result.targets.pop().map(Curves));
        }
        let mut scores = Vec::new();
        for size_bytes in &options.sizes_bytes {
            bench.report(&format!("{name}: layout of new files"), scores.len() as u64, None);
            let score = score_of_new(&mut aged.laboratory()?, *size_bytes, options.data_bytes)?;
            scores.push((*size_bytes as f64, score));
        }
        layout.push(scores);
        middle.push(read_96(bench, &aged, first_sector)?);
        late.push(one(bench, &mut aged.laboratory_without_order()?, Phase::Create, 64)?);
    }
    outcome.parameter("drive", DRIVE).parameter("machine", MACHINE).parameter("writes", WRITES);
    let gained =
        |both: &[f64]| both.last().zip(both.first()).map_or(f64::NAN, |(realloc, original)| realloc / original);
    let (average_track, late) = (gained(&middle), gained(&late));
    let (curves, gathered) = (<[Curves; 2]>::try_from(curves), <[Curves; 2]>::try_from(gathered));
    let layout = <[Vec<(f64, f64)>; 2]>::try_from(layout);
    if let (Ok(curves), Ok(gathered), Ok(layout)) = (curves, gathered, layout) {
        let found = Found { curves, gathered, layout, raw: raw(bench)?, average_track, late };
        rows(&mut outcome, &found);
        layout_rows(&mut outcome, &found);
        raw_rows(&mut outcome, &found);
        gathered_rows(&mut outcome, &found);
        figures(&mut outcome, &found);
    }
    Ok(outcome)
}

/// MiB a second, reading files of 96 KB that the benchmark has made, in a partition that begins at a sector.
pub(super) fn read_96(bench: &Bench<'_>, aged: &Aged, first_sector: u64) -> Result<f64, ExperimentError> {
    one(bench, &mut aged.laboratory_at(first_sector)?, Phase::Read, 96)
}

/// MiB a second of one phase, with files of one size.
fn one(bench: &Bench<'_>, lab: &mut Lab<Ffs>, phase: Phase, size_kb: u64) -> Result<f64, ExperimentError> {
    let options = Options { sizes_bytes: vec![size_kb * KB], until: phase, ..options(bench) };
    let result = workload::run_on(lab, &options, &mut |_| {})?;
    Ok(result.targets.into_iter().next_back().map_or(f64::NAN, |target| Curves(target).at(phase, size_kb)))
}

/// The aggregate layout score of files of 96 KB as the benchmark makes them.
pub(super) fn score_of_new_96(bench: &Bench<'_>, aged: &Aged) -> Result<f64, ExperimentError> {
    score_of_new(&mut aged.laboratory()?, 96 * KB, options(bench).data_bytes)
}

/// The aggregate layout score of files of one size as the benchmark makes them on an aged file system; that of files of
/// one block is 1.
fn score_of_new(lab: &mut Lab<Ffs>, size_bytes: u64, data_bytes: u64) -> Result<f64, ExperimentError> {
    let doing = || failed("making files to look at");
    let block_bytes = u64::from(lab.volume().geometry().bsize);
    let mut score = LayoutScore::default();
    for n in 0..data_bytes / size_bytes {
        let dir = format!("new-{}", n / 25);
        if n % 25 == 0 {
            lab.call(&Call::Mkdir { at: dir.as_str().into(), mode: Mode(0o755) }).result.map_err(doing())?;
        }
        let path = format!("{dir}/{n}");
        let open = Call::Open { at: path.as_str().into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
        let fd = lab.call(&open).fd().map_err(doing())?;
        let mut offset = 0;
        while offset < size_bytes {
            let len_bytes = (size_bytes - offset).min(PIECE_BYTES);
            let write = Call::Write { fd, offset: None, len_bytes, data: None };
            lab.call(&write).result.map_err(doing())?;
            offset += len_bytes;
        }
        let ino = lab.call(&Call::Fstat { fd }).stat().map_err(doing())?.ino;
        let extents = lab.volume().extents(Ino(ino as u32)).map_err(doing())?;
        score.add(FileLayout::of(&extents, block_bytes).score);
        lab.call(&Call::Close { fd }).result.map_err(doing())?;
    }
    Ok(score.value().unwrap_or(1.0))
}

/// The raw disk in sequence, MiB a second.
#[derive(Clone, Copy)]
struct Raw {
    read: f64,
    write: f64,
}

/// Reads and writes as much as the benchmark does from the beginning of the disk on, in requests of the kernel's
/// largest.
fn raw(bench: &Bench<'_>) -> Result<Raw, ExperimentError> {
    let machine = Machine::load(MACHINE)?;
    let (data_bytes, piece_bytes) = (options(bench).data_bytes, machine.transfers().largest_bytes as usize);
    let new = || {
        RawDisk::new(SparseStore::new(data_bytes), Drive::find(DRIVE)?.device(), &machine, 8192)
            .map_err(ExperimentError::from)
    };
    let io = |error| ExperimentError::Io { doing: "using the raw disk".to_owned(), error };
    let mut piece = vec![0; piece_bytes];
    let pieces = || (0..data_bytes).step_by(piece_bytes);
    let read = new()?;
    pieces().try_for_each(|at| read.read_at(at, &mut piece)).map_err(io)?;
    let mut write = new()?;
    pieces().try_for_each(|at| write.write_at(at, &piece)).map_err(io)?;
    let rate =
        |disk: &RawDisk<SparseStore>| data_bytes as f64 / (KB * KB) as f64 / (disk.times().elapsed_ns as f64 / 1e9);
    Ok(Raw { read: rate(&read), write: rate(&write) })
}

fn rows(outcome: &mut Outcome, found: &Found) {
    let [original, realloc] = &found.curves;
    let late = format!("with metadata written late (noorder), with nothing else changed, it is {:.2}", found.late);
    let gain = |phase, kb| realloc.at(phase, kb) / original.at(phase, kb);
    let sizes: Vec<u64> = realloc.points(Phase::Read).iter().map(|(x, _)| *x as u64 / KB).collect();
    let (best_kb, best) = sizes
        .iter()
        .filter(|kb| **kb <= 96)
        .map(|kb| (*kb, gain(Phase::Read, *kb)))
        .fold((0, 0.0), |best, here| if here.1 > best.1 { here } else { best });
    let why = format!(
        "in a partition in the middle of the drive, with nothing else changed, it is {:.2} for files of 96 KB; how it \
         depends on the partition and on rotational positions, neither of which the study gives, is shown by \
         alloc96/sensitivity",
        found.average_track
    );
    let ratio = |what: &str, published, ours, explain| Row::new(what, Unit::Ratio, published, ours, explain);
    outcome
        .row(ratio(
            "reading files of 96 KB, realloc over original",
            Published::exact(1.58),
            gain(Phase::Read, 96),
            Explain::because(&why),
        ))
        .row(ratio("the most in reading files up to 96 KB", Published::exact(1.58), best, Explain::because(&why)))
        .row(ratio(
            "creating files of 64 KB, realloc over original",
            Published::exact(1.44),
            gain(Phase::Create, 64),
            Explain::because(&late),
        ));
    outcome.note(format!("Reading gains most from realloc at {best_kb} KB, of the sizes up to 96 KB."));
    let large: Vec<f64> = sizes.iter().filter(|kb| **kb >= 4096).map(|kb| gain(Phase::Create, *kb)).collect();
    if !large.is_empty() {
        let mean = large.iter().sum::<f64>() / large.len() as f64;
        outcome.row(ratio(
            "creating files of 4 MB and more, realloc over original",
            Published::about(1.25),
            mean,
            Explain::unknown(),
        ));
    }
    for (name, curves) in [("original", original), ("realloc", realloc)] {
        for (phase, verb) in [(Phase::Read, "read"), (Phase::Create, "create")] {
            let (before, at, after) = (curves.at(phase, 96), curves.at(phase, 104), curves.at(phase, 1024));
            outcome.claim(Claim::new(
                format!("a dip at 104 KB, {verb}, {name}"),
                at < before && at < after,
                format!("{before:.2} MiB/s at 96 KB, {at:.2} at 104 KB, {after:.2} at 1 MB"),
                Explain::unknown(),
            ));
        }
        let (before, after) = (curves.at(Phase::Overwrite, 64), curves.at(Phase::Overwrite, 72));
        outcome.claim(Claim::new(
            format!("write throughput falls after 64 KB, {name}"),
            after < before,
            format!("overwriting {before:.2} MiB/s at 64 KB, {after:.2} at 72 KB"),
            Explain::unknown(),
        ));
    }
}

/// The layout of the benchmark's files (figure 5).
fn layout_rows(outcome: &mut Outcome, found: &Found) {
    for ((name, _), scores) in POLICIES.iter().zip(&found.layout) {
        let at =
            |kb: u64| scores.iter().find(|(size, _)| *size == (kb * KB) as f64).map_or(f64::NAN, |(_, score)| *score);
        let what = format!("layout score of new files of 96 KB, {name}");
        outcome.row(Row::new(what, Unit::Score, Published::NONE, at(96), Explain::Agrees));
    }
    let [_, realloc] = &found.layout;
    let small = realloc.iter().filter(|(size, _)| *size <= (56 * KB) as f64);
    let worst = small.fold((0.0, f64::INFINITY), |worst, here| if here.1 < worst.1 { *here } else { worst });
    outcome.claim(Claim::new(
        "realloc lays new files out perfectly up to 56 KB",
        worst.1 >= 1.0,
        format!("at worst {:.3}, of {} KB", worst.1, worst.0 as u64 / KB),
        Explain::unknown(),
    ));
}

/// The raw disk beside the file systems (figure 4).
fn raw_rows(outcome: &mut Outcome, found: &Found) {
    let Found { curves: [_, realloc], raw, .. } = found;
    for (what, ours) in
        [("the raw disk, reading in sequence", raw.read), ("the raw disk, writing in sequence", raw.write)]
    {
        outcome.row(Row::new(what, Unit::MibPerS, Published::NONE, ours, Explain::Agrees));
    }
    let written = [Phase::Create, Phase::Overwrite].into_iter().flat_map(|phase| realloc.points(phase));
    let (size, best) = written.fold((0.0, 0.0), |best, here| if here.1 > best.1 { here } else { best });
    outcome.claim(Claim::new(
        "writing files can beat writing the raw disk in sequence",
        best > raw.write,
        format!("{best:.2} MiB/s in files of {} KB under realloc, {:.2} on the raw disk", size as u64 / KB, raw.write),
        Explain::unknown(),
    ));
}

/// What changes if late blocks are written with their neighbours: each figure as it is, and so.
fn gathered_rows(outcome: &mut Outcome, found: &Found) {
    for (late, [original, realloc]) in [("", &found.curves), ("late blocks gathered: ", &found.gathered)] {
        let sizes: Vec<u64> = realloc.points(Phase::Read).iter().map(|(x, _)| *x as u64 / KB).collect();
        let gain = |phase, kb| realloc.at(phase, kb) / original.at(phase, kb);
        let mut row = |what: String, unit, ours| {
            outcome.row(Row::new(format!("{late}{what}"), unit, Published::NONE, ours, Explain::Agrees));
        };
        if !late.is_empty() {
            let over = "realloc over original";
            row(format!("reading files of 96 KB, {over}"), Unit::Ratio, gain(Phase::Read, 96));
            row(format!("creating files of 64 KB, {over}"), Unit::Ratio, gain(Phase::Create, 64));
            let large: Vec<f64> = sizes.iter().filter(|kb| **kb >= 4096).map(|kb| gain(Phase::Create, *kb)).collect();
            if !large.is_empty() {
                let mean = large.iter().sum::<f64>() / large.len() as f64;
                row(format!("creating files of 4 MB and more, {over}"), Unit::Ratio, mean);
            }
        }
        for (name, curves) in [("original", original), ("realloc", realloc)] {
            for (phase, verb) in [(Phase::Create, "creating"), (Phase::Overwrite, "overwriting")] {
                for kb in [56, 64, 72] {
                    row(format!("{verb} files of {kb} KB, {name}"), Unit::MibPerS, curves.at(phase, kb));
                }
            }
        }
        let written = [Phase::Create, Phase::Overwrite].into_iter().flat_map(|phase| realloc.points(phase));
        row("the most in writing, realloc".to_owned(), Unit::MibPerS, written.map(|(_, y)| y).fold(0.0, f64::max));
    }
}

fn figures(outcome: &mut Outcome, found: &Found) {
    let [original, realloc] = &found.curves;
    let phases = [(Phase::Create, "create"), (Phase::Read, "read"), (Phase::Overwrite, "overwrite")];
    let series = phases.iter().flat_map(|(phase, panel)| {
        let (name, rate) = match phase {
            Phase::Read => ("raw disk, read", found.raw.read),
            _ => ("raw disk, write", found.raw.write),
        };
        let line = realloc.points(*phase).into_iter().map(|(size, _)| (size, rate));
        [
            Series::in_panel(panel, "original", original.points(*phase)),
            Series::in_panel(panel, "realloc", realloc.points(*phase)),
            Series::in_panel(panel, name, line),
        ]
    });
    outcome.figure(Figure {
        name: "throughput".into(),
        title: "Throughput by file size on the aged file systems and of the raw disk, MiB/s.".into(),
        x: Axis::Bytes("file size".into()),
        y: Axis::Number("MiB/s".into()),
        series: series.collect(),
    });
    let gain = |phase| {
        let both = realloc.points(phase).into_iter().zip(original.points(phase));
        both.map(|((size, fast), (_, slow))| (size, fast / slow)).collect::<Vec<_>>()
    };
    let kb = |kb: u64| (kb * KB) as f64;
    outcome.figure(Figure {
        name: "gain".into(),
        title: "Throughput by file size, realloc over original.".into(),
        x: Axis::Bytes("file size".into()),
        y: Axis::Ratio("realloc over original".into()),
        series: vec![
            Series::in_panel("create", "ours", gain(Phase::Create)),
            Series::in_panel("read", "ours", gain(Phase::Read)),
            Series::published("create", "published", [(kb(64), 1.44), (kb(4096), 1.25)]),
            Series::published("read", "published", [(kb(96), 1.58)]),
        ],
    });
    let layout =
        POLICIES.iter().zip(&found.layout).map(|((name, _), scores)| Series::new(name, scores.iter().copied()));
    outcome.figure(Figure {
        name: "layout".into(),
        title: "Layout score of the files that the benchmark makes, by size.".into(),
        x: Axis::Bytes("file size".into()),
        y: Axis::Score("layout score".into()),
        series: layout.collect(),
    });
}
