//! What a check of the whole disk costs: fsck of the Fast File System by fullness, and a log's rolling forward by what
//! was written since its checkpoint.

use super::{DRIVE, MACHINE};
use crate::testbed::call;
use crate::{
    Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit, parallel,
};
use aging::model::Rng;
use aging::model::size::{SizeModel, SizeParameters};
use device::store::SparseStore;
use kernel::payload::Image;
use kernel::{Lab, RawTimes};
use lab::{Spec, System};
use posix::{At, Call, FileSystem, Mode, OpenFlags};
use rand_core::SeedableRng as _;
use stats::random::unit as uniform;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "softdep99/fsck",
    title: "The time of fsck: an empty disk, a full one, and a log's rolling forward",
    source: "McKusick and Ganger, Soft Updates, USENIX 1999; Ganger, McKusick, Soules and Patt, TOCS 18(2), 2000; \
             Seltzer et al., An Implementation of a Log-Structured File System for UNIX, USENIX Winter 1993",
    runs: "file systems filled with files, 50 in a directory; each is checked in virtual time, every request through \
           the drive and the processor; then one thing changed at a time",
    run,
};

const K: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Bytes of a call that writes.
const PIECE: u64 = 4 * MIB;

/// A file system of the Berkeley kind to be checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Case {
    pub(super) size_mib: u64,
    /// Share of the data blocks that files take.
    pub(super) full: f64,
    pub(super) sizes: Sizes,
    pub(super) files_per_directory: u64,
    /// Bytes of space for each inode.
    density: u64,
    machine: &'static str,
    drive: &'static str,
    /// Whether a directory gets all its files before the next is made, instead of any directory any file.
    in_turn: bool,
}

impl Case {
    /// Files of 16 KB in the mean, 50 in a directory; an inode for 4 KB.
    pub(super) fn filled(size_mib: u64, full: f64) -> Case {
        Case {
            size_mib,
            full,
            sizes: Sizes { mean_bytes: 16 * K, differ: true },
            files_per_directory: 50,
            density: 4 * K,
            machine: MACHINE,
            drive: DRIVE,
            in_turn: false,
        }
    }
}

/// Sizes of files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sizes {
    mean_bytes: u64,
    /// Whether they differ: lognormal, with a median of a quarter of the mean. An estimate.
    differ: bool,
}

impl Sizes {
    fn model(self, capacity_bytes: f64) -> Option<SizeModel> {
        let parameters = SizeParameters {
            mu: (self.mean_bytes as f64 / 4.0).ln(),
            // exp(sigma^2 / 2) is the mean over the median.
            sigma: (2.0 * 4.0_f64.ln()).sqrt(),
            tail_share: 0.0,
            tail_alpha: 1.0,
            tail_min_bytes: 1.0,
            max_share: 0.05,
        };
        self.differ.then(|| SizeModel::new(parameters, parameters.max_share * capacity_bytes))
    }
}

/// What its check cost.
#[derive(Clone, Copy, Debug)]
struct Point {
    files: u64,
    directories: u64,
    times: RawTimes,
}

impl Point {
    fn seconds(&self) -> f64 {
        self.times.elapsed_ns as f64 / 1e9
    }
}

/// A log to be rolled forward, and what that cost.
#[derive(Clone, Copy, Debug)]
struct Rolled {
    /// Since the checkpoint.
    written_bytes: u64,
    partial_segments: u64,
    roll: RawTimes,
    check: RawTimes,
}

/// One thing changed, by what a row says of it; those first that do most.
type Change = (&'static str, fn(&mut Case));

const CHANGES: [Change; 9] = [
    ("10 files in a directory", |case| case.files_per_directory = 10),
    ("all files of the same size", |case| case.sizes.differ = false),
    ("an inode for 16 KB", |case| case.density = 16 * K),
    ("files of 8 KB", |case| case.sizes.mean_bytes = 8 * K),
    ("files of 32 KB", |case| case.sizes.mean_bytes = 32 * K),
    ("files of 128 KB", |case| case.sizes.mean_bytes = 128 * K),
    ("directories filled in turn", |case| case.in_turn = true),
    ("a processor of 120 MHz", |case| case.machine = "pentium-120"),
    ("the drive on a slower bus", |case| case.drive = "st39102lw"),
];

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let base = Case::filled(bench.pick(192, 4608), 0.76);
    let seed = bench.seed();
    let shares: &[f64] = bench.sweep(&[0.0, 0.38, 0.76], &[0.0, 0.4, 0.76], &[0.0, 0.2, 0.4, 0.6, 0.76]);
    let sizes: &[u64] = bench.sweep(&[64, 128], &[1152], &[576, 1152, 2304]);
    let changes = CHANGES.get(..bench.sweep(2, 3, CHANGES.len())).unwrap_or_default();
    let mut cases: Vec<Case> = shares.iter().map(|full| Case { full: *full, ..base }).collect();
    cases.extend(sizes.iter().map(|size_mib| Case { size_mib: *size_mib, ..base }));
    cases.extend(changes.iter().map(|(_, change)| {
        let mut changed = base;
        change(&mut changed);
        changed
    }));
    cases.push(Case { full: 0.0, density: 16 * K, ..base });
    let points = parallel::each(bench, "checking", &cases, |case| checked(case, seed))?;
    let written: &[u64] =
        bench.sweep(&[0, MIB, 4 * MIB], &[0, MIB, 4 * MIB, 16 * MIB], &[0, MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB]);
    let log_mib = bench.pick(48, 256);
    let logs: Vec<(u64, u64)> = written.iter().map(|bytes| (log_mib, *bytes)).collect();
    let rolled = parallel::each(bench, "rolling forward", &logs, |(size_mib, bytes)| rolled(*size_mib, *bytes, seed))?;
    let mut outcome = outcome(&base, shares, sizes, changes, &points, &rolled);
    outcome.parameter("fullness, sizes and changes", bench.sweeps());
    Ok(outcome)
}

/// Fills a file system and checks it.
fn checked(case: &Case, seed: u64) -> Result<Point, ExperimentError> {
    let target = Spec::parse(&format!(
        "ffs:realloc,bsize=8K,fsize=1K,size={}M,density={},machine={}@{}",
        case.size_mib, case.density, case.machine, case.drive
    ))?;
    let mut lab = target.ffs()?;
    fill(&mut lab, case, seed)?;
    let volume = lab.unmount().map_err(|errno| ExperimentError::Call { doing: "unmounting".to_owned(), errno })?;
    let mut store = SparseStore::new(case.size_mib * MIB);
    volume.store(&mut store, None)?;
    drop(volume);
    let (found, times) = target.check_in_virtual_time(store, &mut || true)?;
    let lab::Checked::Ffs(report) = found else { unreachable!("the target is of this kind") };
    assert!(
        report.is_clean(),
        "a laboratory's file system is clean when it is unmounted: {:?}",
        report.problems.first()
    );
    Ok(Point { files: report.contents.files, directories: report.contents.directories, times })
}

/// Makes files until so much of the space is taken.
pub(super) fn fill(lab: &mut dyn FileSystem, case: &Case, seed: u64) -> Result<(), ExperimentError> {
    let usage = lab.usage().map_err(|error| ExperimentError::Io { doing: "statfs".to_owned(), error })?;
    let wanted = (usage.total_bytes as f64 * case.full) as u64;
    let sizes = case.sizes.model(usage.total_bytes as f64);
    let mut random = Rng::seed_from_u64(seed);
    let (mut number, mut directories, mut taken) = (0, 0, 0);
    loop {
        let bytes = sizes.as_ref().map_or(case.sizes.mean_bytes, |sizes| sizes.quantile(uniform(&mut random)).max(1));
        if taken + bytes > wanted {
            return Ok(());
        }
        if number % case.files_per_directory == 0 {
            let name = format!("d{directories}");
            call(lab, "making a directory", &Call::Mkdir { at: At::from(name.as_str()), mode: Mode(0o755) })?;
            directories += 1;
        }
        let directory = if case.in_turn { directories - 1 } else { (uniform(&mut random) * directories as f64) as u64 };
        let fd = make(lab, &format!("d{directory}"), number)?;
        let mut done = 0;
        while done < bytes {
            let len_bytes = PIECE.min(bytes - done);
            call(lab, "writing", &Call::Write { fd, offset: None, len_bytes, data: None })?;
            done += len_bytes;
        }
        call(lab, "closing", &Call::Close { fd })?;
        taken += bytes.next_multiple_of(K);
        number += 1;
    }
}

pub(super) fn make(lab: &mut dyn FileSystem, directory: &str, number: u64) -> Result<posix::Fd, ExperimentError> {
    let path = format!("{directory}/{number}");
    let open = Call::Open { at: path.as_str().into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
    lab.call(&open).fd().map_err(|errno| ExperimentError::Call { doing: format!("making {path}"), errno })
}

/// A log that is half full and has a checkpoint; so many bytes are written and made durable, and the power fails.
fn rolled(size_mib: u64, written_bytes: u64, seed: u64) -> Result<Rolled, ExperimentError> {
    let target = Spec::parse(&format!("lfs:data=full,size={size_mib}M,machine={MACHINE}@{DRIVE}"))?;
    let System::Lfs(own) = &target.system else { unreachable!("the target is of this kind") };
    let mut store = SparseStore::new(size_mib * MIB);
    lfs::mkfs(&mut store, &own.mkfs(size_mib * MIB, 0))?;
    let shared = Arc::new(Mutex::new(store));
    let volume = lfs::Lfs::load(shared.clone(), own.policy)?;
    let setup = target.setup(target.load_machine()?, 0);
    let mut lab = Lab::with_image(volume, target.drive.device()?, setup, Image::full(shared.clone()))?;
    fill(&mut lab, &Case::filled(size_mib, 0.5), seed)?;
    lab.drop_caches().map_err(|error| ExperimentError::Io { doing: "a checkpoint".to_owned(), error })?;
    let mut done = 0;
    let mut number = 1_000_000;
    while done < written_bytes {
        let fd = make(&mut lab, "d0", number)?;
        call(&mut lab, "writing", &Call::Write { fd, offset: None, len_bytes: 64 * K, data: None })?;
        call(&mut lab, "making it durable", &Call::Fsync { fd })?;
        call(&mut lab, "closing", &Call::Close { fd })?;
        done += 64 * K;
        number += 1;
    }
    let crashed = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
    drop(lab);
    let disk = target.raw_disk(crashed.clone())?;
    let mut image = lfs::Image::open(disk, lfs::Checkpoint::Newer)?;
    let before = image.store().times();
    let found = image.roll_forward()?;
    let after = image.store().times();
    let (_, check) = target.check_in_virtual_time(crashed, &mut || true)?;
    let roll = RawTimes {
        elapsed_ns: after.elapsed_ns - before.elapsed_ns,
        processor_ns: after.processor_ns - before.processor_ns,
        ..after
    };
    Ok(Rolled { written_bytes, partial_segments: found.partial_segments, roll, check })
}

fn outcome(
    base: &Case,
    shares: &[f64],
    sizes: &[u64],
    changes: &[Change],
    points: &[Point],
    rolled: &[Rolled],
) -> Outcome {
    let mut outcome = Outcome::new();
    outcome
        .parameter("machine", base.machine)
        .parameter("drive", base.drive)
        .parameter("file system", format!("{} MiB, 8 KiB blocks, an inode for {} KiB", base.size_mib, base.density / K))
        .parameter(
            "files",
            format!(
                "of {} KiB in the mean, lognormal, {} in a directory",
                base.sizes.mean_bytes / K,
                base.files_per_directory
            ),
        )
        .parameter("the check's own computing", "attributes and the comparison of a name for each inode; an estimate");
    let (by_share, rest) = points.split_at(shares.len());
    let (by_size, changed) = rest.split_at(sizes.len());
    let (changed, fewer_inodes) = changed.split_at(changes.len());
    let (Some(empty), Some(full)) = (by_share.first(), by_share.last()) else { unreachable!("there are shares") };
    let unknown = "not known: the published disk's files, directories and inodes are not published, and ours is filled \
                   in one go; the rows of one thing changed say what each of them does";
    let row = |what: &str, published, value| {
        Row::new(what.to_owned(), Unit::Ns, published, value * 1e9, Explain::because(unknown))
    };
    outcome.row(row("fsck of an empty disk", Published::about(5e9), empty.seconds()));
    outcome.row(row("fsck of a disk that is 76 % full", Published::about(150e9), full.seconds()));
    outcome.row(Row::new(
        "full over empty",
        Unit::Ratio,
        Published::about(30.0),
        full.seconds() / empty.seconds(),
        Explain::because(unknown),
    ));
    let plain = |what: String, value| Row::new(what, Unit::Ns, Published::NONE, value * 1e9, Explain::Agrees);
    outcome.row(Row::new("files on the full disk", Unit::Count, Published::NONE, full.files as f64, Explain::Agrees));
    outcome.row(Row::new("directories", Unit::Count, Published::NONE, full.directories as f64, Explain::Agrees));
    outcome.row(plain("of the full disk's time, the processor's".to_owned(), full.times.processor_ns as f64 / 1e9));
    outcome.row(Row::new("requests", Unit::Count, Published::NONE, full.times.device.reads as f64, Explain::Agrees));
    for point in fewer_inodes {
        outcome.row(plain("empty, an inode for 16 KB".to_owned(), point.seconds()));
    }
    for (size_mib, point) in sizes.iter().zip(by_size) {
        outcome.row(plain(format!("76 % full, {size_mib} MiB"), point.seconds()));
    }
    for ((what, _), point) in changes.iter().zip(changed) {
        outcome.row(plain(format!("76 % full, {what}"), point.seconds()));
    }
    for log in rolled {
        let what = format!(
            "rolling forward, {} MiB since the checkpoint in {} partial segments",
            log.written_bytes / MIB,
            log.partial_segments
        );
        outcome.row(plain(what, log.roll.elapsed_ns as f64 / 1e9));
    }
    claims(&mut outcome, base, sizes, by_size, by_share, rolled);
    figures(&mut outcome, shares, by_share, rolled);
    outcome
}

fn claims(outcome: &mut Outcome, base: &Case, sizes: &[u64], by_size: &[Point], by_share: &[Point], rolled: &[Rolled]) {
    let seconds: Vec<f64> = by_share.iter().map(Point::seconds).collect();
    outcome.claim(Claim::new(
        "a full disk takes several times as long as an empty one, and longer the fuller it is",
        seconds.is_sorted() && seconds.last() > seconds.first().map(|empty| 2.0 * empty).as_ref(),
        format!("{:.1} s to {:.1} s", seconds.first().unwrap_or(&0.0), seconds.last().unwrap_or(&0.0)),
        Explain::Agrees,
    ));
    let full = seconds.last().copied().unwrap_or(0.0);
    let expected = |size_mib: u64| full * size_mib as f64 / base.size_mib as f64;
    let off = sizes.iter().zip(by_size).map(|(size, point)| (point.seconds() / expected(*size) - 1.0).abs());
    let off = off.fold(0.0, f64::max);
    outcome.claim(Claim::new(
        "the time grows with the size of the file system",
        off < 0.5,
        format!("at most {:.0} % from proportional", off * 100.0),
        Explain::Agrees,
    ));
    let roll: Vec<f64> = rolled.iter().map(|log| log.roll.elapsed_ns as f64 / 1e9).collect();
    outcome.claim(Claim::new(
        "a log rolls forward in a time that depends on what was written since the checkpoint",
        roll.is_sorted(),
        format!("{:.3} s to {:.3} s", roll.first().unwrap_or(&0.0), roll.last().unwrap_or(&0.0)),
        Explain::Agrees,
    ));
    let least = rolled.iter().map(|log| log.check.elapsed_ns as f64 / log.roll.elapsed_ns.max(1) as f64);
    let least = least.fold(f64::INFINITY, f64::min);
    outcome.claim(Claim::new(
        "a log that rolls forward needs no check of the whole disk, which would take longer",
        least > 1.0,
        format!("the check takes at least {least:.1} times as long"),
        Explain::Agrees,
    ));
}

fn figures(outcome: &mut Outcome, shares: &[f64], by_share: &[Point], rolled: &[Rolled]) {
    let fullness: Vec<(f64, f64)> =
        shares.iter().zip(by_share).map(|(share, point)| (100.0 * share, point.seconds())).collect();
    outcome.figure(Figure {
        name: "fsck".to_owned(),
        title: "Checking a file system of the Berkeley kind".to_owned(),
        x: Axis::Number("full, %".to_owned()),
        y: Axis::Number("s".to_owned()),
        series: vec![Series::new("fsck", fullness)],
    });
    let of = |ns: fn(&Rolled) -> u64| {
        rolled.iter().map(|log| (log.written_bytes as f64, ns(log) as f64 / 1e9)).collect::<Vec<_>>()
    };
    outcome.figure(Figure {
        name: "roll-forward".to_owned(),
        title: "A log after a crash".to_owned(),
        x: Axis::Bytes("written since the checkpoint".to_owned()),
        y: Axis::Number("s".to_owned()),
        series: vec![
            Series::new("rolling forward", of(|log| log.roll.elapsed_ns)),
            Series::new("a check of the whole log", of(|log| log.check.elapsed_ns)),
        ],
    });
}
