//! Transactions a second by utilisation, with the model of their cost beside the simulation.

use super::{DRIVE, MACHINE};
use crate::parallel::each;
use crate::testbed::log;
use crate::{
    Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Scale, Series, Unit,
};
use device::disk::Disk;
use device::{Drive, Model};
use lab::Spec;
use workload::Repeat;
use workload::tpcb::{Database, Options};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lfs95/tpcb",
    title: "Transaction processing by utilisation: FFS, LFS, and LFS with its cleaner",
    source: "Seltzer et al., File System Logging Versus Clustering, USENIX 1995, section 4, figures 5 and 6",
    runs: "the modified TPC-B on file systems of 960 MB that one large file fills to eight utilisations, in steady state; the cost of a \
           transaction by a model of seeks, rotation and transfers beside it",
    run,
};

/// Shares of the file system in use.
const UTILISATIONS: [f64; 8] = [0.30, 0.40, 0.50, 0.60, 0.70, 0.75, 0.80, 0.85];
const QUICK_UTILISATIONS: [f64; 2] = [0.50, 0.70];
const PAGE_BYTES: f64 = 4096.0;
/// Of the computer's 32 MB a tenth.
const CACHE: &str = "cache=3276K";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    Ffs,
    WithoutCleaner,
    WithCleaner,
}

impl System {
    const ALL: [System; 3] = [System::Ffs, System::WithoutCleaner, System::WithCleaner];

    fn name(self) -> &'static str {
        match self {
            System::Ffs => "FFS",
            System::WithoutCleaner => "LFS without cleaner",
            System::WithCleaner => "LFS with cleaner",
        }
    }

    fn target(self, scale: Scale) -> String {
        let (size, segment) = match scale {
            Scale::Full => ("960M", "1M"),
            Scale::Quick => ("48M", "128K"),
        };
        let log = |cleaner: &str| {
            format!("lfs:{cleaner},bsize=4K,fsize=4K,segment={segment},low=2,high=4,idle=0,size={size},{CACHE}@{DRIVE}")
        };
        match self {
            System::Ffs => {
                format!("ffs:original,bsize=4K,fsize=512,minfree=10,maxcontig=16,size={size},{CACHE}@{DRIVE}")
            }
            System::WithoutCleaner => log("cleaner=off"),
            System::WithCleaner => log("cleaner=cost-benefit"),
        }
    }
}

/// What was found at a utilisation.
#[derive(Clone, Copy, Debug)]
struct Found {
    system: System,
    utilisation: f64,
    tps: f64,
    /// Whether the rate was steady.
    steady: bool,
    log: Option<Logged>,
}

/// What the log has done for the transactions measured.
#[derive(Clone, Copy, Debug)]
struct Logged {
    /// Bytes of the log for each transaction, without what the cleaner wrote.
    bytes_each: f64,
    /// Partial segments for each transaction.
    partials_each: f64,
    segments_cleaned: u64,
    read_bytes: u64,
    written_bytes: u64,
    cleaned_at: f64,
    write_cost: f64,
}

fn options(system: System, scale: Scale, seed: u64) -> Options {
    let base = if scale == Scale::Full { Options::default() } else { Options::quick() };
    let repeat = Repeat { seed, ..Repeat::once() };
    match system {
        // The pool is full after some windows, and nothing else has to settle.
        System::Ffs => Options { repeat, ..base },
        // Room lasts for so many, whatever the utilisation.
        System::WithoutCleaner => Options { windows_max: 10, repeat, ..base },
        System::WithCleaner => {
            let (window, transactions) = (base.window * 4, base.transactions * 4);
            Options { turnover: 2.0, window, windows_max: 400, transactions, repeat, ..base }
        }
    }
}

fn measure(system: System, utilisation: f64, scale: Scale, seed: u64) -> Result<Found, ExperimentError> {
    let options = options(system, scale, seed);
    let target = system.target(scale);
    if system == System::Ffs {
        let spec = Spec { machine: MACHINE.to_owned(), ..Spec::parse(&target)? };
        let mut lab = spec.ffs()?;
        let mut database = Database::begin(&mut lab, None, &options, Some(utilisation), "1")?;
        let steady = database.warm_up(&mut lab, None)?.steady;
        let round = database.measure(&mut lab, None)?;
        return Ok(Found { system, utilisation, tps: tps(&round), steady, log: None });
    }
    let mut lab = log(&target, MACHINE)?;
    let mut database = Database::begin(&mut lab, None, &options, Some(utilisation), "1")?;
    let steady = database.warm_up(&mut lab, None)?.steady;
    let before = lab.volume().counters().clone();
    let round = database.measure(&mut lab, None)?;
    let after = lab.volume().counters();
    let (now, was) = (&after.cleaner, &before.cleaner);
    let (read, written) = (now.read_bytes - was.read_bytes, now.written_bytes - was.written_bytes);
    let all = after.log_bytes - before.log_bytes;
    let new = (all - written) as f64;
    let segments = now.segments - was.segments;
    let transactions = round.completed.max(1) as f64;
    let logged = Logged {
        bytes_each: new / transactions,
        partials_each: (after.partial_segments - before.partial_segments) as f64 / transactions,
        segments_cleaned: segments,
        read_bytes: read,
        written_bytes: written,
        cleaned_at: (now.utilisation_sum - was.utilisation_sum) / segments.max(1) as f64,
        write_cost: (all + read) as f64 / new.max(1.0),
    };
    Ok(Found { system, utilisation, tps: tps(&round), steady, log: Some(logged) })
}

fn tps(round: &workload::Round) -> f64 {
    round.rate(workload::Unit::TransactionsPerSecond, true)
}

/// The disk as the model of the publication sees it.
struct Disc {
    disk: Disk,
    overhead_s: f64,
    revolution_s: f64,
    bytes_per_s: f64,
}

impl Disc {
    fn new() -> Result<Disc, ExperimentError> {
        let drive = Drive::find(DRIVE)?;
        let Model::Disk(spec) = drive.model else {
            return Err(device::DriveError::Unknown { name: DRIVE.to_owned(), known: "disks".to_owned() }.into());
        };
        let revolution_s = spec.revolution_ns() as f64 / 1e9;
        let track_bytes = spec.zones.first().map_or(0.0, |zone| f64::from(zone.sectors_per_track) * 512.0);
        let overhead_s = spec.controller.read_miss_after_read_ms / 1e3;
        Ok(Disc { disk: Disk::new(*spec), overhead_s, revolution_s, bytes_per_s: track_bytes / revolution_s })
    }

    /// A seek between two places at random in a share of the disk.
    fn seek_s(&self, share: f64) -> f64 {
        let n =
            (f64::from(self.disk.cylinder_of(device::Lbn(self.disk.geometry().capacity_sectors() - 1))) + 1.0) * share;
        let cylinders = (n as u32).max(1);
        let weighted = |d: u32| self.disk.seek().distance_ns(d) as f64 * 2.0 * (n - f64::from(d)) / (n * n);
        (1..cylinders).map(weighted).sum::<f64>() / 1e9
    }

    /// A page at a place at random in a share of the disk.
    fn page_s(&self, share: f64) -> f64 {
        self.overhead_s + self.seek_s(share) + self.revolution_s / 2.0 + PAGE_BYTES / self.bytes_per_s
    }

    /// So many bytes in one piece, at a share of the disk's bandwidth.
    fn piece_s(&self, bytes: f64, of_bandwidth: f64) -> f64 {
        self.overhead_s + self.seek_s(1.0) + self.revolution_s / 2.0 + bytes / (self.bytes_per_s * of_bandwidth)
    }
}

/// Of the bandwidth, what segments are written at (section 4 of the publication).
const WRITING: f64 = 2.0 / 3.0;

/// Transactions a second by the model: a page read, a page written or its share of the log, and what cleaning that takes.
/// Utilisation of cleaned segments and bytes of the log are those of the simulation.
fn model(disc: &Disc, found: &Found, scale: Scale) -> f64 {
    model_at(disc, found, found.log.map_or(0.0, |logged| logged.cleaned_at), scale)
}

/// The same if segments were cleaned at some other utilisation.
fn model_at(disc: &Disc, found: &Found, cleaned_at: f64, scale: Scale) -> f64 {
    let size_bytes: f64 = if scale == Scale::Full { (960_u64 << 20) as f64 } else { (48_u64 << 20) as f64 };
    let segment_bytes: f64 = if scale == Scale::Full { (1 << 20) as f64 } else { (128 << 10) as f64 };
    let device_bytes = disc.disk.geometry().capacity_sectors() as f64 * 512.0;
    let accounts = options(found.system, scale, 1).account_bytes as f64 / device_bytes;
    let whole = size_bytes / device_bytes;
    let Some(logged) = found.log else {
        return 1.0 / (2.0 * disc.page_s(accounts));
    };
    let partial_bytes = logged.bytes_each / logged.partials_each.max(f64::MIN_POSITIVE);
    let writing_s = logged.partials_each * disc.piece_s(partial_bytes, WRITING);
    if found.system == System::WithoutCleaner {
        return 1.0 / (disc.page_s(whole) + writing_s);
    }
    // What is gained from a segment is what was not live in it.
    let segments_each = logged.bytes_each / (segment_bytes * (1.0 - cleaned_at));
    let reading_s = segments_each * disc.piece_s(segment_bytes, 1.0);
    let moving_s = segments_each * cleaned_at * disc.piece_s(segment_bytes, WRITING);
    1.0 / (disc.page_s(whole) + writing_s + reading_s + moving_s)
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let (scale, seed) = (bench.scale(), bench.seed());
    let utilisations = bench.pick(QUICK_UTILISATIONS.as_slice(), UTILISATIONS.as_slice());
    // The longest first.
    let points: Vec<(System, f64)> =
        System::ALL.iter().rev().flat_map(|system| utilisations.iter().map(|u| (*system, *u))).collect();
    let mut found = each(bench, "transactions", &points, |(system, u)| measure(*system, *u, scale, seed))?;
    found.sort_by_key(|f| System::ALL.iter().position(|system| *system == f.system));
    let mut outcome = Outcome::new();
    outcome.parameter("machine", MACHINE).parameter("log of the database", "on another disk, not counted");
    for system in System::ALL {
        outcome.parameter(system.name(), system.target(scale));
    }
    let tpcb = options(System::Ffs, scale, seed);
    outcome.parameter(
        "database",
        format!("{} MiB of accounts, {} KiB of cache", tpcb.account_bytes >> 20, tpcb.pool_bytes >> 10),
    );
    let disc = Disc::new()?;
    rows(&mut outcome, &found, &disc, scale);
    details(&mut outcome, &found);
    models(&mut outcome, &found, &disc, scale);
    Ok(outcome)
}

fn of(found: &[Found], system: System) -> Vec<&Found> {
    found.iter().filter(|f| f.system == system).collect()
}

/// One over another at every utilisation.
fn ratios(found: &[Found], one: System, other: System) -> Vec<(f64, f64)> {
    let pairs = of(found, one).into_iter().zip(of(found, other));
    pairs.map(|(one, other)| (one.utilisation, one.tps / other.tps)).collect()
}

fn rows(outcome: &mut Outcome, found: &[Found], disc: &Disc, scale: Scale) {
    use System::{Ffs, WithCleaner, WithoutCleaner};
    let at = |ratios: &[(f64, f64)], u: f64| ratios.iter().find(|(at, _)| *at == u).map_or(f64::NAN, |(_, r)| *r);
    let mut row = |what: String, published, ours, explain| {
        outcome.row(Row::new(what, Unit::Ratio, Published::about(published), ours, explain));
    };
    let gain = ratios(found, WithoutCleaner, Ffs);
    let mean = gain.iter().map(|(_, r)| r).sum::<f64>() / gain.len().max(1) as f64;
    let (cost, parity) = (ratios(found, WithCleaner, WithoutCleaner), ratios(found, WithCleaner, Ffs));
    let (last_u, last) = cost.last().copied().unwrap_or((0.0, f64::NAN));
    let half_full = |system| of(found, system).into_iter().find(|f| f.utilisation == 0.5);
    let second = |system| half_full(system).map_or(f64::NAN, |f| 1.0 / f.tps);
    // (ffs + c) = 1.5 (lfs + c)
    let computing_ms = (second(Ffs) - 1.5 * second(WithoutCleaner)) / 0.5 * 1e3;
    let no_computing = format!(
        "two positionings against one and a piece of a segment: near 2 where nothing else takes time. The database computes nothing here \
         (with {computing_ms:.0} ms of processor for each transaction it would be 1.5), and this drive takes longer for writes than for reads \
         over the distances within the account file"
    );
    let static_file = "segments of the large file stay full and are never cleaned, so that account pages have all the rest to spread over, and \
                       few are live in segments cleaned (below); cleaned at the utilisation of the whole disk, as the publication has \
                       it, the model gives parity";
    row("LFS without cleaner over FFS, mean".to_owned(), 1.5, mean, Explain::because(no_computing));
    row("half full: LFS with cleaner over without".to_owned(), 0.66, at(&cost, 0.5), Explain::Agrees);
    row("half full: LFS with cleaner over FFS".to_owned(), 1.0, at(&parity, 0.5), Explain::because(static_file));
    if let (Some(with), Some(ffs)) = (half_full(WithCleaner), half_full(Ffs)) {
        let ours = model_at(disc, with, 0.5, scale) / model(disc, ffs, scale);
        row("the same by the model, segments cleaned half full".to_owned(), 1.0, ours, Explain::Agrees);
    }
    row(format!("{:.0} % full: LFS with cleaner over without", last_u * 100.0), 0.6, last, Explain::Agrees);
    let flat: Vec<f64> = of(found, Ffs).iter().map(|f| f.tps).collect();
    let (least, most) = flat.iter().fold((f64::INFINITY, 0.0_f64), |(l, m), t| (l.min(*t), m.max(*t)));
    outcome.claim(Claim::new(
        "FFS does not depend on utilisation",
        most <= 1.1 * least,
        format!("{least:.1} to {most:.1} transactions a second"),
        Explain::Agrees,
    ));
    outcome.claim(Claim::new(
        "the loss to cleaning grows with utilisation",
        cost.first().is_some_and(|(_, first)| *first > last),
        cost.iter().map(|(u, r)| format!("{:.0} %: {r:.2}", u * 100.0)).collect::<Vec<_>>().join(", "),
        Explain::Agrees,
    ));
    for f in found.iter().filter(|f| !f.steady && f.system != WithoutCleaner) {
        outcome.note(format!("{} at {:.0} %: the rate was not steady.", f.system.name(), f.utilisation * 100.0));
    }
}

fn details(outcome: &mut Outcome, found: &[Found]) {
    for f in found {
        let what = format!("{}, {:.0} % full", f.system.name(), f.utilisation * 100.0);
        outcome.row(Row::new(what, Unit::TransactionsPerS, Published::NONE, f.tps, Explain::Agrees));
    }
    for f in of(found, System::WithCleaner) {
        let Some(logged) = f.log else { continue };
        let mut row = |what: &str, unit, ours| {
            let what = format!("cleaner, {:.0} % full: {what}", f.utilisation * 100.0);
            outcome.row(Row::new(what, unit, Published::NONE, ours, Explain::Agrees));
        };
        row("bytes of the log for each transaction", Unit::Bytes, logged.bytes_each);
        row("segments cleaned", Unit::Count, logged.segments_cleaned as f64);
        row("bytes read", Unit::Bytes, logged.read_bytes as f64);
        row("bytes written", Unit::Bytes, logged.written_bytes as f64);
        row("utilisation of segments cleaned", Unit::Share, logged.cleaned_at);
        row("write cost", Unit::Ratio, logged.write_cost);
    }
}

fn models(outcome: &mut Outcome, found: &[Found], disc: &Disc, scale: Scale) {
    let mut series = Vec::new();
    for system in System::ALL {
        let own = of(found, system);
        let modelled: Vec<(f64, f64)> = own.iter().map(|f| (f.utilisation, model(disc, f, scale))).collect();
        let off = own.iter().zip(&modelled).map(|(f, (_, tps))| f.tps / tps).sum::<f64>() / own.len().max(1) as f64;
        let what = format!("{}: simulation over model, mean", system.name());
        outcome.row(Row::new(what, Unit::Ratio, Published::NONE, off, Explain::Agrees));
        series.push(Series::new(system.name(), own.iter().map(|f| (f.utilisation, f.tps))));
        series.push(Series::new(&format!("{}, model", system.name()), modelled));
    }
    outcome.figure(Figure {
        name: "tps".to_owned(),
        title: "Transactions a second by utilisation.".to_owned(),
        x: Axis::Share("of the file system in use".to_owned()),
        y: Axis::Number("transactions/s".to_owned()),
        series,
    });
}
