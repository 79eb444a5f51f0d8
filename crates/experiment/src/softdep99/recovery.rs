//! What a crash costs until the file system can be used, by mode of integrity: a full check, the check of Soft Updates
//! in the background, the replay of a log of metadata, recovery by the records of journaled Soft Updates; by fullness,
//! size, and what was going on.

use super::fsck::{Case, fill, make};
use super::{DRIVE, MACHINE};
use crate::testbed::call;
use crate::{
    Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit, parallel,
};
use device::store::SparseStore;
use kernel::payload::Image;
use kernel::{Lab, RawTimes};
use lab::{BackgroundCheck, Checked, Spec, System};
use posix::{At, Call, Fd, FileSystem as _, Mode, OpenFlags, Process, Step};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "softdep99/recovery",
    title: "From a crash to a file system in use: the full check, a log's replay, and records",
    source: "McKusick and Ganger, Soft Updates, USENIX 1999; Seltzer, Ganger, McKusick and others, Journaling versus \
             Soft Updates, USENIX 2000; McKusick and Roberson, Journaled Soft-updates, BSDCan 2010",
    runs: "file systems filled with files and synced; files are then made, written and removed until the power fails, \
           a minute later; what the mode needs is done in virtual time, every request through the drive and the \
           processor, and the full check after it; of Soft Updates also the check in the background, with nothing \
           beside it and beside the same work",
    run,
};

const K: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// The number of the first file that is made beside a check.
const BESIDE: u64 = 1_000_000;

/// Modes, and whether the full check is all they have.
const MODES: [(&str, bool); 4] =
    [("conventional", true), ("softdep", true), ("journal=async", false), (BY_RECORDS, false)];
/// The mode that is recovered by records.
const BY_RECORDS: &str = "softdep+j";

/// A file system that crashes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Crash {
    mode: &'static str,
    size_mib: u64,
    full: f64,
    /// Files made, and half as many removed, before the power fails.
    files: u64,
    /// Seconds without work then.
    rest_s: u64,
    seed: u64,
}

/// What that costs.
#[derive(Clone, Debug)]
struct Point {
    /// Until the file system can be used.
    recovery: RawTimes,
    /// Records, or transactions.
    named: u64,
    /// Problems that the check found: with a log, after its replay.
    problems: u64,
    /// Of Soft Updates: what the check in the background takes.
    background: Option<Background>,
}

/// The check in the background.
#[derive(Clone, Copy, Debug)]
struct Background {
    /// Until the file system can be used.
    usable_ns: u64,
    /// Until the check ends with nothing beside it, and with work; from the beginning of the mount.
    idle_ns: u64,
    busy_ns: u64,
    /// Problems that the full check finds then.
    problems: u64,
}

impl Point {
    fn seconds(&self) -> f64 {
        self.recovery.elapsed_ns as f64 / 1e9
    }
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let shares: &[f64] = bench.sweep(&[0.0, 0.6], &[0.0, 0.76], &[0.0, 0.2, 0.4, 0.6, 0.76]);
    let sizes: &[u64] = bench.sweep(&[48, 96], &[256, 1024], &[256, 512, 1024, 2048]);
    let files = bench.pick(60, 1000);
    let counts: &[u64] = bench.sweep(&[30, 60], &[250, 1000], &[250, 500, 1000, 2000]);
    let (size_mib, seed) = (bench.pick(96, 1024), bench.seed());
    let full = shares.last().copied().unwrap_or(0.0);
    let base = Crash { mode: "", size_mib, full, files, rest_s: 0, seed };
    let rests: &[u64] = bench.sweep(&[5], &[1, 25], &[1, 5, 15, 25]);
    let mut cases = Vec::new();
    for (mode, _) in MODES {
        cases.extend(shares.iter().map(|full| Crash { mode, full: *full, ..base }));
        cases.extend(sizes.iter().map(|size_mib| Crash { mode, size_mib: *size_mib, ..base }));
        cases.extend(counts.iter().map(|files| Crash { mode, files: *files, ..base }));
    }
    cases.extend(rests.iter().map(|rest_s| Crash { mode: BY_RECORDS, rest_s: *rest_s, ..base }));
    // What ends one list stands in the others too, and is crashed once.
    let mut each: Vec<Crash> = Vec::new();
    let numbers = cases.iter().map(|case| {
        each.iter().position(|other| other == case).unwrap_or_else(|| {
            each.push(*case);
            each.len() - 1
        })
    });
    let numbers: Vec<usize> = numbers.collect();
    let found = parallel::each(bench, "crashing", &each, crashed)?;
    let points: Vec<Point> = numbers.iter().filter_map(|number| found.get(*number).cloned()).collect();
    let (points, later) = points.split_at(points.len() - rests.len());
    let mut outcome = outcome(&base, (shares, sizes, counts), points);
    outcome.parameter("fullness, sizes, files and rests", bench.sweeps());
    for (rest_s, point) in rests.iter().zip(later) {
        outcome.row(row(format!("{BY_RECORDS}, {rest_s} s after the last call"), point));
    }
    Ok(outcome)
}

/// Fills a file system, works on it, lets the power fail, and recovers.
fn crashed(crash: &Crash) -> Result<Point, ExperimentError> {
    let target = Spec::parse(&format!(
        "ffs:{},data=full,bsize=8K,fsize=1K,size={}M,machine={MACHINE}@{DRIVE}",
        crash.mode, crash.size_mib
    ))?;
    let System::Ffs(own) = &target.system else { unreachable!("the target is of this kind") };
    let mut store = SparseStore::new(crash.size_mib * MIB);
    ffs::mkfs(&mut store, &own.mkfs(crash.size_mib * MIB, 0))?;
    if let Some(bytes) = own.log() {
        ffs::log::make(&mut store, bytes)?;
    }
    let shared = Arc::new(Mutex::new(store));
    let (volume, _) = ffs::log::load(shared.clone(), own.policy, None)?;
    let setup = target.setup(target.load_machine()?, 0);
    let mut lab = Lab::with_image(volume, target.drive.device()?, setup, Image::full(shared.clone()))?;
    call(&mut lab, "making a directory", &Call::Mkdir { at: At::from("work"), mode: posix::Mode(0o755) })?;
    fill(&mut lab, &Case::filled(crash.size_mib, crash.full), crash.seed)?;
    lab.drop_caches().map_err(|error| ExperimentError::Io { doing: "a sync".to_owned(), error })?;
    work(&mut lab, crash.files)?;
    lab.pause_ns(crash.rest_s * 1_000_000_000);
    let crashed = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
    drop(lab);
    let mut point = recovered(&target, crashed.clone())?;
    if crash.mode == "softdep" {
        let (usable_ns, idle_ns, idle) = in_background(&target, crashed.clone(), None)?;
        let (_, busy_ns, busy) = in_background(&target, crashed, Some(crash.files))?;
        point.background = Some(Background { usable_ns, idle_ns, busy_ns, problems: idle + busy });
    }
    Ok(point)
}

/// Files are made and written in a directory, and every second one is removed; a minute passes.
fn work(lab: &mut Lab<ffs::Ffs>, files: u64) -> Result<(), ExperimentError> {
    let pause_ns = 60_000_000_000 / files.max(1);
    (0..files).try_for_each(|number| file(lab, number, pause_ns))
}

fn file(lab: &mut Lab<ffs::Ffs>, number: u64, pause_ns: u64) -> Result<(), ExperimentError> {
    let fd = make(lab, "work", number)?;
    call(lab, "writing", &Call::Write { fd, offset: None, len_bytes: 16 * K, data: None })?;
    call(lab, "closing", &Call::Close { fd })?;
    if number % 2 == 1 {
        let path = format!("work/{}", number - 1);
        call(lab, "removing", &Call::Unlink { at: path.as_str().into() })?;
    }
    lab.pause_ns(pause_ns);
    Ok(())
}

fn recovered(target: &Spec, crashed: SparseStore) -> Result<Point, ExperimentError> {
    let mut disk = target.raw_disk(crashed.clone())?;
    let before = disk.times();
    let replayed = ffs::log::replay(&mut disk)?;
    let after = disk.times();
    let Some(replayed) = replayed else {
        let (found, recovery) = target.check_in_virtual_time(crashed, &mut || true)?;
        let Checked::Ffs(report) = found else { unreachable!("the target is of this kind") };
        return Ok(Point { recovery, named: 0, problems: report.problem_count, background: None });
    };
    let recovery = RawTimes {
        elapsed_ns: after.elapsed_ns - before.elapsed_ns,
        processor_ns: after.processor_ns - before.processor_ns,
        ..after
    };
    let report = ffs::fsck(&mut disk, &mut |_| true)?;
    let named = if replayed.records > 0 { replayed.records } else { replayed.transactions };
    Ok(Point { recovery, named, problems: report.problem_count, background: None })
}

/// Mounts a file system of Soft Updates as the crash has left it, and checks it in the background, perhaps beside the
/// work that went on before the crash: when it could be used, when the check has ended, and what a full check finds
/// then.
fn in_background(target: &Spec, crashed: SparseStore, files: Option<u64>) -> Result<(u64, u64, u64), ExperimentError> {
    let System::Ffs(own) = &target.system else { unreachable!("the target is of this kind") };
    let shared = Arc::new(Mutex::new(crashed));
    let (volume, _) = ffs::log::load(shared.clone(), own.policy, None)?;
    let setup = target.setup(target.load_machine()?, 0);
    let mut lab = Lab::with_image(volume, target.drive.device()?, setup, Image::full(shared.clone()))?;
    let usable_ns = lab.now_ns();
    let check = BackgroundCheck::begin(&mut lab, &mut || true)?;
    let ended = AtomicBool::new(false);
    let pause_ns = files.map_or(0, |files| 60_000_000_000 / files.max(1));
    let mut processes: Vec<Box<dyn Process + '_>> = vec![Box::new(Until { reader: check.reader(), ended: &ended })];
    if files.is_some() {
        processes.push(Box::new(Worker {
            ended: &ended,
            pause_ns,
            number: BESIDE,
            path: String::new(),
            next: Doing::Make,
        }));
    }
    let io = |error| ExperimentError::Io { doing: "a check in the background".to_owned(), error };
    lab.run(processes).map_err(io)?;
    // The first one is not to remove another.
    let mut number = 2 * BESIDE - 1;
    check.give_back(&mut lab, &mut |lab| {
        number += 1;
        if files.is_some() { file(lab, number, pause_ns) } else { Ok(()) }
    })?;
    let ended_ns = lab.now_ns();
    lab.unmount().map_err(|errno| io(errno.into()))?;
    let mut after = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let report = ffs::fsck(&mut after, &mut |_| true)?;
    Ok((usable_ns, ended_ns, report.problem_count))
}

/// The check, and a sign when it has read all.
struct Until<'a> {
    reader: lab::Reader<'a>,
    ended: &'a AtomicBool,
}

impl Process for Until<'_> {
    fn next(&mut self, last: Option<&posix::Outcome>) -> Step<'_> {
        let step = self.reader.next(last);
        if matches!(step, Step::Done) {
            self.ended.store(true, Ordering::Relaxed);
        }
        step
    }
}

/// What the worker does next.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Make,
    Write,
    Close(Fd),
    Remove,
    Rest,
}

/// The work that went on before the crash, until the check has read all.
struct Worker<'a> {
    ended: &'a AtomicBool,
    pause_ns: u64,
    number: u64,
    path: String,
    next: Doing,
}

impl Process for Worker<'_> {
    fn next(&mut self, last: Option<&posix::Outcome>) -> Step<'_> {
        match self.next {
            Doing::Make if self.ended.load(Ordering::Relaxed) => Step::Done,
            Doing::Make => {
                self.next = Doing::Write;
                self.path = format!("work/{}", self.number);
                let at = At::from(self.path.as_str());
                Step::Call(Call::Open { at, flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) })
            }
            Doing::Write => {
                let fd = last.and_then(|outcome| outcome.fd().ok()).expect("there is room for the files of a minute");
                self.next = Doing::Close(fd);
                Step::Call(Call::Write { fd, offset: None, len_bytes: 16 * K, data: None })
            }
            Doing::Close(fd) => {
                self.next = if self.number % 2 == 1 { Doing::Remove } else { Doing::Rest };
                Step::Call(Call::Close { fd })
            }
            Doing::Remove => {
                self.next = Doing::Rest;
                self.path = format!("work/{}", self.number - 1);
                Step::Call(Call::Unlink { at: self.path.as_str().into() })
            }
            Doing::Rest => {
                (self.next, self.number) = (Doing::Make, self.number + 1);
                Step::PauseNs(self.pause_ns)
            }
        }
    }
}

type Lists<'a> = (&'a [f64], &'a [u64], &'a [u64]);

/// Lines of the check in the background.
type Line = (&'static str, fn(&Background) -> u64);
const BACKGROUND: [Line; 3] = [
    ("softdep, usable", |background| background.usable_ns),
    ("softdep, checked in the background", |background| background.idle_ns),
    ("softdep, checked beside work", |background| background.busy_ns),
];

fn outcome(base: &Crash, (shares, sizes, counts): Lists<'_>, points: &[Point]) -> Outcome {
    let mut outcome = Outcome::new();
    outcome
        .parameter("machine", MACHINE)
        .parameter("drive", DRIVE)
        .parameter("file system", format!("{} MiB, 8 KiB blocks; {:.0} % full", base.size_mib, base.full * 100.0))
        .parameter("until the power fails", format!("{} files of 16 KiB made in a minute, half removed", base.files))
        .parameter(
            "in the background",
            "softdep is the full check; softdep, usable is a mount without it; the check of a snapshot ends with \
             nothing beside it, or beside the same work",
        );
    let each = shares.len() + sizes.len() + counts.len();
    let mut figures = (Vec::new(), Vec::new(), Vec::new());
    for ((mode, _), of_mode) in MODES.iter().zip(points.chunks(each)) {
        let (by_share, rest) = of_mode.split_at(shares.len());
        let (by_size, by_count) = rest.split_at(sizes.len());
        for (share, point) in shares.iter().zip(by_share) {
            outcome.row(row(format!("{mode}, {:.0} % full", share * 100.0), point));
        }
        for (size_mib, point) in sizes.iter().zip(by_size) {
            outcome.row(row(format!("{mode}, {size_mib} MiB"), point));
        }
        for (files, point) in counts.iter().zip(by_count) {
            outcome.row(row(format!("{mode}, {files} files, {} records", point.named), point));
        }
        let curve = |x: Vec<f64>, points: &[Point]| {
            let xy: Vec<(f64, f64)> = x.into_iter().zip(points).map(|(x, point)| (x, point.seconds())).collect();
            Series::new(mode, xy)
        };
        figures.0.push(curve(shares.iter().map(|share| 100.0 * share).collect(), by_share));
        figures.1.push(curve(sizes.iter().map(|size| (size * MIB) as f64).collect(), by_size));
        figures.2.push(curve(counts.iter().map(|files| *files as f64).collect(), by_count));
    }
    let softdep = points.get(each..2 * each).unwrap_or_default();
    let (by_share, rest) = softdep.split_at(shares.len().min(softdep.len()));
    let by_size = rest.get(..sizes.len()).unwrap_or_default();
    for (what, of) in BACKGROUND {
        let line = |x: Vec<f64>, points: &[Point]| {
            let ns = points.iter().filter_map(|point| point.background.as_ref().map(of));
            Series::new(what, x.into_iter().zip(ns.map(|ns| ns as f64 / 1e9)).collect::<Vec<(f64, f64)>>())
        };
        let mut rows = |names: Vec<String>, points: &[Point]| {
            for (name, background) in names.into_iter().zip(points.iter().filter_map(|point| point.background.as_ref()))
            {
                let ns = of(background) as f64;
                outcome.row(Row::new(format!("{what}, {name}"), Unit::Ns, Published::NONE, ns, Explain::Agrees));
            }
        };
        rows(shares.iter().map(|share| format!("{:.0} % full", share * 100.0)).collect(), by_share);
        rows(sizes.iter().map(|size_mib| format!("{size_mib} MiB")).collect(), by_size);
        figures.0.push(line(shares.iter().map(|share| 100.0 * share).collect(), by_share));
        figures.1.push(line(sizes.iter().map(|size| (size * MIB) as f64).collect(), by_size));
    }
    claims(&mut outcome, shares.len(), sizes.len(), each, points);
    let mut figure = |name: &str, title: &str, x: Axis, series: Vec<Series>| {
        let y = Axis::Number("s".to_owned());
        outcome.figure(Figure { name: name.to_owned(), title: title.to_owned(), x, y, series });
    };
    figure("fullness", "Recovery by fullness", Axis::Number("full, %".to_owned()), figures.0);
    figure("size", "Recovery by size", Axis::Bytes("file system".to_owned()), figures.1);
    figure("work", "Recovery by files of the last minute", Axis::Number("files".to_owned()), figures.2);
    outcome
}

fn row(what: String, point: &Point) -> Row {
    Row::new(what, Unit::Ns, Published::NONE, point.seconds() * 1e9, Explain::Agrees)
}

fn claims(outcome: &mut Outcome, shares: usize, sizes: usize, each: usize, points: &[Point]) {
    let of = |mode: usize| points.chunks(each).nth(mode).unwrap_or_default();
    let range = |points: &[Point]| {
        let seconds = || points.iter().map(Point::seconds);
        (seconds().fold(f64::INFINITY, f64::min), seconds().fold(0.0, f64::max))
    };
    let states = |points: &[Point]| points.get(..shares + sizes).unwrap_or_default().to_vec();
    let (least_check, most_check) = range(&states(of(0)));
    let (least, most) = range(&states(of(3)));
    outcome.claim(Claim::new(
        "recovery by records depends neither on the size of the file system nor on its fullness, and a full check does",
        most < 4.0 * least && most_check > 1.5 * least_check,
        format!("{least:.3} s to {most:.3} s; the check {least_check:.2} s to {most_check:.2} s"),
        Explain::Agrees,
    ));
    let logged = || of(2).iter().chain(of(3));
    outcome.claim(Claim::new(
        "after a log's replay and after recovery by records the full check finds nothing",
        logged().all(|point| point.problems == 0),
        format!("{} problems in all", logged().map(|point| point.problems).sum::<u64>()),
        Explain::Agrees,
    ));
    let background: Vec<(f64, Background)> =
        of(1).iter().filter_map(|point| point.background.map(|background| (point.seconds(), background))).collect();
    let shares_of_check = background.iter().map(|(check, background)| background.usable_ns as f64 / 1e9 / check);
    let most_share = shares_of_check.fold(0.0, f64::max);
    outcome.claim(Claim::new(
        "with a check in the background the file system can be used in less than half the time of the full check",
        most_share < 0.5 && !background.is_empty(),
        format!("at most {:.1} % of it", 100.0 * most_share),
        Explain::Agrees,
    ));
    let problems: u64 = background.iter().map(|(_, background)| background.problems).sum();
    outcome.claim(Claim::new(
        "after the check in the background the full check finds nothing",
        problems == 0 && !background.is_empty(),
        format!("{problems} problems in all"),
        Explain::Agrees,
    ));
}
