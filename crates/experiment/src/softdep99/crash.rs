//! Crashes in the midst of a benchmark: how often the check has something to repair, and how often more is lost than it
//! can repair.

use super::{DRIVE, MACHINE};
use crate::{
    Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit, parallel,
};
use ::crash::{Class, FfsSubject, Trial, Trials, Watched, When, start, trials};
use device::crash::{Plan, UnderWay, WriteCache};
use kernel::Syncer;
use lab::Spec;
use workload::{Parameters, Place, Repeat, sdet, ssh_build};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "softdep99/crash",
    title: "Crashes during a benchmark: conventional FFS, no order at all, Soft Updates and a log",
    source: "McKusick and Ganger, Soft Updates, USENIX 1999; Ganger, McKusick, Soules and Patt, TOCS 18(2), 2000",
    runs: "software developers at work (sdet) on new file systems; the power fails at a random time; fsck repairs, and \
           what it leaves is held against what was done; then one thing changed at a time",
    run,
};

/// How a file system orders its writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Conventional,
    Noorder,
    Softdep,
    Journal,
}

impl Mode {
    const ALL: [Mode; 4] = [Mode::Conventional, Mode::Noorder, Mode::Softdep, Mode::Journal];

    fn word(self) -> &'static str {
        match self {
            Mode::Conventional => "conventional",
            Mode::Noorder => "noorder",
            Mode::Softdep => "softdep",
            Mode::Journal => "journal=async",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Mode::Conventional => "conventional",
            Mode::Noorder => "No Order",
            Mode::Softdep => "Soft Updates",
            Mode::Journal => "log, async",
        }
    }
}

/// What runs when the power fails.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    /// So many users with scripts of so many commands, which compute so many times as long as on a workstation of 1999.
    Sdet { scripts: u32, commands: u32, cpu: f64 },
    /// A package unpacked, configured and built: hardly anything is removed.
    SshBuild,
}

/// What is crashed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Case {
    work: Work,
    size_mib: u64,
    syncer: Syncer,
    when: When,
    under_way: UnderWay,
    cache: WriteCache,
}

/// A benchmark's run, and how often it is crashed.
#[derive(Clone, Copy, Debug)]
struct Point {
    mode: Mode,
    case: Case,
    seed: u64,
    trials: u32,
}

/// One thing changed, by what a row says of it.
type Change = (&'static str, fn(&mut Case));

/// What is changed for No Order.
const CHANGES: [Change; 9] = [
    ("8 scripts, half as long", |case| scripts(case, 8)),
    ("4 scripts, a quarter as long", |case| scripts(case, 4)),
    ("a package is built instead (ssh-build)", |case| case.work = Work::SshBuild),
    ("everything is written back every 30 s, as by update", |case| case.syncer = Syncer::Update),
    ("a file system of 256 MiB", |case| case.size_mib = 256),
    ("crashed when a write is complete, not at any time", |case| case.when = When::Write),
    ("the same, and any sectors of what is under way are there", |case| {
        (case.when, case.under_way) = (When::Write, UnderWay::Torn);
    }),
    ("the drive holds what it reported in a cache", |case| case.cache = WriteCache::On),
    ("processors that take half the time", |case| {
        if let Work::Sdet { cpu, .. } = &mut case.work {
            *cpu /= 2.0;
        }
    }),
];

/// What is changed for conventional updates.
const CONVENTIONAL_CHANGES: [Change; 3] = [
    ("crashed when a write is complete, any sectors of what is under way are there", |case| {
        (case.when, case.under_way) = (When::Write, UnderWay::Torn);
    }),
    ("a package is built instead (ssh-build)", |case| case.work = Work::SshBuild),
    ("the drive holds what it reported in a cache", |case| case.cache = WriteCache::On),
];

fn scripts(case: &mut Case, number: u32) {
    if let Work::Sdet { scripts, .. } = &mut case.work {
        *scripts = number;
    }
}

/// Seconds that a point of the curves stands for.
const BIN_S: u64 = 15;

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    // At the quick scale fewer commands that take longer.
    let work = bench
        .pick(Work::Sdet { scripts: 8, commands: 40, cpu: 6.0 }, Work::Sdet { scripts: 16, commands: 100, cpu: 1.0 });
    let case = Case {
        work,
        size_mib: bench.pick(8, 64),
        syncer: Syncer::Wheel,
        when: When::Time,
        under_way: UnderWay::Nothing,
        cache: WriteCache::Off,
    };
    let (runs, per_run) = bench.sweep((1, 24), (4, 25), (10, 25));
    let (changed_runs, changes) = bench.sweep((1, 0), (2, 5), (4, CHANGES.len()));
    let mut cases = Mode::ALL.map(|mode| (mode, case, runs)).to_vec();
    let with = |change: &Change| {
        let mut changed = case;
        change.1(&mut changed);
        changed
    };
    let changes = CHANGES.get(..changes).unwrap_or_default();
    cases.extend(changes.iter().map(|change| (Mode::Noorder, with(change), changed_runs)));
    let conventional = CONVENTIONAL_CHANGES.get(..bench.sweep(0, 1, CONVENTIONAL_CHANGES.len())).unwrap_or_default();
    cases.extend(conventional.iter().map(|change| (Mode::Conventional, with(change), changed_runs)));
    let points: Vec<Point> = cases
        .iter()
        .flat_map(|(mode, case, runs)| (0..*runs).map(|run| (*mode, *case, run)))
        .map(|(mode, case, run)| Point { mode, case, seed: bench.seed().wrapping_add(run), trials: per_run })
        .collect();
    let found = parallel::each(bench, "crashing", &points, crashed)?;
    let mut found = found.into_iter();
    let mut crashes = cases.iter().map(|(.., runs)| Crashes::of(found.by_ref().take(*runs as usize)));
    let base = Mode::ALL.map(|_| crashes.next().unwrap_or_default());
    let noorder: Vec<_> = changes.iter().map(|change| change.0).zip(crashes.by_ref()).collect();
    let conventional: Vec<_> = conventional.iter().map(|change| change.0).zip(crashes).collect();
    let mut outcome = outcome(&case, (runs, per_run), &base, &noorder, &conventional);
    outcome.parameter("runs and changes", bench.sweeps());
    Ok(outcome)
}

/// Runs a benchmark and crashes it: seconds that it took, and the crashes.
fn crashed(point: &Point) -> Result<(f64, Vec<Trial>), ExperimentError> {
    let Point { mode, case, seed, trials: count } = *point;
    let (word, size) = (mode.word(), case.size_mib);
    let spec = Spec::parse(&format!("ffs:realloc,{word},maxcontig=8,size={size}M,machine={MACHINE}@{DRIVE}"))?;
    let blank = spec.image_in_memory(size << 20, size << 20)?;
    let mut machine = spec.load_machine()?;
    machine.write_back.syncer = case.syncer;
    let subject = FfsSubject::new(spec)?.on(machine);
    let begin = start(&subject, blank.0, &[])?;
    let mut watched = Watched::mount(&subject, begin.image, &begin.seen, 0)?;
    // What the benchmark finds is there; its run is crashed.
    watched.begins_cold = true;
    let repeat = Repeat { seed, ..Repeat::once() };
    let parameters = match case.work {
        Work::Sdet { scripts, commands, cpu } => {
            Parameters::Sdet(sdet::Options { scripts: vec![scripts], commands, cpu, repeat })
        }
        Work::SshBuild => Parameters::SshBuild(ssh_build::Options { repeat, ..ssh_build::Options::default() }),
    };
    let mut places = [Place { name: word.to_owned(), fs: &mut watched }];
    let result = workload::run(&parameters, &mut places, &mut |_| {})?;
    let phases = result.targets.iter().flat_map(|target| &target.points).flat_map(|point| &point.phases);
    let run_ns = phases.flat_map(|phase| &phase.rounds).map(|round| round.elapsed_ns).sum();
    let plan = Plan { cache: case.cache, under_way: case.under_way, seed, ..Plan::default() };
    let with = Trials { count, when: case.when, run_ns, plan };
    let found = trials(&subject, &watched.into_history(), &with, &|| !posix::interrupt::requested())?;
    Ok((run_ns as f64 / 1e9, found))
}

/// The crashes of some runs.
#[derive(Debug, Default)]
struct Crashes {
    seconds: Vec<f64>,
    trials: Vec<Trial>,
}

impl Crashes {
    fn of(runs: impl Iterator<Item = (f64, Vec<Trial>)>) -> Crashes {
        let mut crashes = Crashes::default();
        for (seconds, trials) in runs {
            crashes.seconds.push(seconds);
            crashes.trials.extend(trials);
        }
        crashes
    }

    fn share(&self, what: impl Fn(&Trial) -> bool) -> f64 {
        share(self.trials.iter(), what)
    }

    /// How many crashes have left more than something mends, and what the first of them is.
    fn beyond(&self, what: &str) -> String {
        let first = self.trials.iter().find(|trial| bad(trial));
        let first = first.map_or_else(String::new, |trial| format!("; the first: {}", trial.why));
        format!("{:.0} % of {} crashes beyond {what}{first}", 100.0 * self.share(bad), self.trials.len())
    }

    fn mean_s(&self) -> f64 {
        self.seconds.iter().sum::<f64>() / self.seconds.len().max(1) as f64
    }

    /// Shares by the time of the crash.
    fn by_time(&self, what: impl Fn(&Trial) -> bool) -> Vec<(f64, f64)> {
        let bin = |trial: &Trial| trial.at_ns / 1_000_000_000 / BIN_S;
        let last = self.trials.iter().map(bin).max().unwrap_or(0);
        let bins = (0..=last).filter(|number| self.trials.iter().any(|trial| bin(trial) == *number));
        bins.map(|number| {
            let some = self.trials.iter().filter(|trial| bin(trial) == number);
            ((number * BIN_S) as f64 + BIN_S as f64 / 2.0, share(some, &what))
        })
        .collect()
    }
}

fn share<'a>(trials: impl Iterator<Item = &'a Trial> + Clone, what: impl Fn(&Trial) -> bool) -> f64 {
    trials.clone().filter(|trial| what(trial)).count() as f64 / trials.count().max(1) as f64
}

fn repaired(trial: &Trial) -> bool {
    trial.repaired > 0
}

fn shared(trial: &Trial) -> bool {
    trial.shared
}

fn bad(trial: &Trial) -> bool {
    trial.class >= Class::Unresolvable
}

fn outcome(
    case: &Case,
    (runs, per_run): (u64, u32),
    [conventional, noorder, softdep, journal]: &[Crashes; 4],
    noorder_changed: &[(&str, Crashes)],
    conventional_changed: &[(&str, Crashes)],
) -> Outcome {
    let mut outcome = Outcome::new();
    if let Work::Sdet { scripts, commands, cpu } = case.work {
        outcome.parameter("workload", format!("sdet, {scripts} scripts of {commands} commands, computing {cpu} times"));
    }
    outcome
        .parameter("machine", format!("{MACHINE}, files written back 30 s after they became dirty"))
        .parameter("drive", format!("{DRIVE}, what it reported is on the medium"))
        .parameter("file system", format!("{} MiB, realloc, 8 KiB blocks, new", case.size_mib))
        .parameter("crashes", format!("{per_run} of each of {runs} runs, at any time of the run"));
    let alone = |what: String, ours| Row::new(what, Unit::Share, Published::NONE, ours, Explain::Agrees);
    let fsck = "fsck has something to repair";
    outcome.row(Row::new(
        format!("conventional: {fsck}"),
        Unit::Share,
        Published::exact(0.96),
        conventional.share(repaired),
        Explain::Agrees,
    ));
    let length = Explain::because(
        "which benchmark they crashed, how long it had run, and how their kernel wrote back is not known to us, and \
         each of these alone changes the share by more than that: no block is in two files before blocks that are on \
         the disk are given up and used again, well over half a minute into the run",
    );
    let two = "a block in two files";
    let row = Row::new(format!("No Order: {two}"), Unit::Share, Published::exact(0.30), noorder.share(shared), length);
    outcome.row(row).row(alone(format!("conventional: {two}"), conventional.share(shared)));
    let errors = "an error that the quick check or the log's replay does not mend";
    for (mode, crashes, published) in
        [(Mode::Softdep, softdep, Published::exact(0.0)), (Mode::Journal, journal, Published::NONE)]
    {
        let what = format!("{}: {errors}", mode.title());
        outcome.row(Row::new(what, Unit::Share, published, crashes.share(bad), Explain::Agrees));
    }
    for (mode, crashes) in Mode::ALL.into_iter().zip([conventional, noorder, softdep, journal]) {
        for class in Class::ALL {
            let ours = crashes.share(|trial| trial.class == class);
            outcome.row(alone(format!("{}: {}", mode.title(), class.title()), ours));
        }
    }
    for (change, crashes) in noorder_changed {
        outcome.row(alone(format!("No Order, {two}: {change}"), crashes.share(shared)));
    }
    for (change, crashes) in conventional_changed {
        outcome.row(alone(format!("conventional, {fsck}: {change}"), crashes.share(repaired)));
        outcome.row(alone(format!("conventional, {two}: {change}"), crashes.share(shared)));
        let lost = crashes.share(|trial| trial.class == Class::PromiseBroken);
        outcome.row(alone(format!("conventional, names or files lost that had been promised: {change}"), lost));
    }
    outcome.claim(Claim::new(
        "conventional: fsck repairs whatever a crash leaves",
        conventional.share(bad) == 0.0,
        format!("{:.0} % of {} crashes beyond repair", 100.0 * conventional.share(bad), conventional.trials.len()),
        Explain::Agrees,
    ));
    outcome.claim(Claim::new(
        "No Order: damage that no check can resolve is common",
        noorder.share(shared) > 0.1,
        format!(
            "a block in two files after {:.0} % of {} crashes",
            100.0 * noorder.share(shared),
            noorder.trials.len()
        ),
        Explain::Agrees,
    ));
    outcome.claim(Claim::new(
        "Soft Updates: no crash leaves an error",
        softdep.share(bad) == 0.0,
        softdep.beyond("the quick check"),
        Explain::Agrees,
    ));
    outcome.claim(Claim::new(
        "a log: its replay mends whatever a crash leaves",
        journal.share(bad) == 0.0,
        journal.beyond("the replay"),
        Explain::Agrees,
    ));
    outcome.figure(Figure {
        name: "by-time".to_owned(),
        title: format!("Share of crashes by their time in the run, {BIN_S} s each"),
        x: Axis::Number("seconds since the run began".to_owned()),
        y: Axis::Share("share of crashes".to_owned()),
        series: vec![
            Series::new("conventional: fsck has something to repair", conventional.by_time(repaired)),
            Series::new("No Order: fsck has something to repair", noorder.by_time(repaired)),
            Series::new("No Order: a block in two files", noorder.by_time(shared)),
        ],
    });
    outcome
        .note(format!(
            "a run takes {:.0} s with conventional updates, {:.0} s without order, {:.0} s with Soft Updates and {:.0} \
             s with a log",
            conventional.mean_s(),
            noorder.mean_s(),
            softdep.mean_s(),
            journal.mean_s()
        ))
        .note(
            "the publications count what fsck says; by verdict (docs/crash.md) it counts, too, if a name leads to \
               another file or a file has another's bytes, which fsck does not see",
        );
    outcome
}
