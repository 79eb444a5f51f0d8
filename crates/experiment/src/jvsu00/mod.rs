//! Seltzer, Ganger, McKusick, Smith, Soules and Stein, *Journaling Versus Soft Updates: Asynchronous Meta-data
//! Protection in File Systems*, USENIX 2000: its four macro workloads on every system.
//!
//! The workloads are those of `fsage bench`; their sizes are estimates, since the publication's are not known to us.

use crate::parallel;
use crate::softdep99::{DRIVE, MACHINE, SIZE_BYTES};
use crate::{
    Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Scale, Series, Unit,
};
use lab::Spec;
use workload::{BenchResult, Parameters, Phase, Place, Repeat, netnews, postmark, sdet, ssh_build};

const SOURCE: &str = "Seltzer, Ganger, McKusick, Smith, Soules and Stein, Journaling Versus Soft Updates, USENIX 2000";

pub(crate) const SDET: Experiment = Experiment {
    key: "jvsu00/sdet",
    title: "Software developers at work, by number of scripts",
    source: SOURCE,
    runs: "scripts of commands, several at the same time, on new file systems that differ in when metadata is written, \
        and where a log is",
    run: run_sdet,
};

pub(crate) const SSH_BUILD: Experiment = Experiment {
    key: "jvsu00/ssh-build",
    title: "A package unpacked, configured and built",
    source: SOURCE,
    runs: "ssh-build on new file systems that differ in when metadata is written, and where a log is",
    run: run_ssh_build,
};

pub(crate) const NETNEWS: Experiment = Experiment {
    key: "jvsu00/netnews",
    title: "News articles arrive and expire",
    source: SOURCE,
    runs: "netnews on new file systems that differ in when metadata is written, and where a log is",
    run: run_netnews,
};

pub(crate) const POSTMARK: Experiment = Experiment {
    key: "jvsu00/postmark",
    title: "A mail server's small files (PostMark)",
    source: SOURCE,
    runs: "PostMark on new file systems that differ in when metadata is written, and where a log is",
    run: run_postmark,
};

/// By how much Soft Updates were faster than a log.
const PUBLISHED_GAIN: [f64; 2] = [1.04, 1.19];

/// What a table calls a system.
const SOFT_UPDATES: &str = "Soft Updates";
const LOG_IN_A_FILE: &str = "log in a file, async";

/// Every system: what a table calls it, the words of a target, and whether its log has a drive of its own.
const SYSTEMS: [(&str, &str, bool); 7] = [
    ("conventional", "conventional", false),
    ("No Order (async)", "noorder", false),
    (SOFT_UPDATES, "softdep", false),
    (LOG_IN_A_FILE, "journal=async", false),
    ("log in a file, async, data unordered", "journal=async,unordered", false),
    ("log on its own drive, async", "journal=async", true),
    ("log on its own drive, sync", "journal=sync", true),
];

/// A system's result.
struct Measured {
    name: &'static str,
    result: BenchResult,
}

impl Measured {
    /// Every phase of every point: the point's label, the phase, its headline, and its time with writing back.
    fn phases(&self) -> impl Iterator<Item = (&str, Phase, f64, f64)> {
        let points = self.result.targets.iter().flat_map(|target| &target.points);
        points.flat_map(|point| {
            point.phases.iter().map(|found| {
                let ns = found.rounds.iter().map(|round| round.time_ns(true)).sum::<u64>();
                (point.point.label.as_str(), found.phase, found.rate.median, ns as f64)
            })
        })
    }

    /// The time of all that was run.
    fn total_ns(&self) -> f64 {
        self.phases().map(|(.., ns)| ns).sum()
    }
}

fn measured(bench: &mut Bench<'_>, what: &str, parameters: &Parameters) -> Result<Vec<Measured>, ExperimentError> {
    parallel::each(bench, what, &SYSTEMS, |(name, words, is_apart)| {
        let log_drive = if *is_apart { format!(",logdrive={DRIVE}") } else { String::new() };
        let size = SIZE_BYTES >> 20;
        let target = format!("ffs:realloc,{words}{log_drive},maxcontig=8,size={size}M,machine={MACHINE}@{DRIVE}");
        let mut lab = Spec::parse(&target)?.ffs()?;
        let mut places = [Place { name: (*name).to_owned(), fs: &mut lab }];
        Ok(Measured { name, result: workload::run(parameters, &mut places, &mut |_| {})? })
    })
}

fn repeat(bench: &Bench<'_>) -> Repeat {
    Repeat { seed: bench.seed(), ..Repeat::once() }
}

/// An outcome with what all have in common.
fn begun(workload: String) -> Outcome {
    let mut outcome = Outcome::new();
    outcome
        .parameter("workload", workload)
        .parameter("machine", MACHINE)
        .parameter("drive", DRIVE)
        .parameter("file system", format!("{} MiB, new, realloc, 8 KiB blocks", SIZE_BYTES >> 20))
        .parameter(
            "log",
            "a 64th of the file system; data ordered where nothing else is said; the second drive is of the same kind",
        );
    outcome
}

fn run_sdet(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let base = bench.pick(sdet::Options::quick(), sdet::Options::default());
    let options = sdet::Options { repeat: repeat(bench), ..base };
    let mut outcome = begun(format!("sdet, {} commands a script, computing {} times", options.commands, options.cpu));
    let found = measured(bench, "sdet", &Parameters::Sdet(options.clone()))?;
    let mut series = Vec::new();
    for system in &found {
        let rates: Vec<(f64, f64)> =
            options.scripts.iter().zip(system.phases()).map(|(n, (.., rate, _))| (f64::from(*n), rate)).collect();
        for (scripts, rate) in &rates {
            let what = format!("scripts an hour, {scripts} at a time, {}", system.name);
            outcome.row(Row::new(what, Unit::Number, Published::NONE, *rate, Explain::Agrees));
        }
        series.push(Series::new(system.name, rates));
    }
    outcome.figure(Figure {
        name: "sdet".to_owned(),
        title: "Scripts an hour".to_owned(),
        x: Axis::Number("scripts at the same time".to_owned()),
        y: Axis::Number("scripts an hour".to_owned()),
        series,
    });
    compared(&mut outcome, &found);
    Ok(outcome)
}

fn run_ssh_build(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let base = bench.pick(ssh_build::Options::quick(), ssh_build::Options::default());
    let options = ssh_build::Options { repeat: repeat(bench), ..base };
    let outcome = begun(format!("ssh-build, {} package, computing {} times", options.packages, options.cpu));
    by_phase(bench, outcome, &Parameters::SshBuild(options))
}

fn run_netnews(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let base = bench.pick(netnews::Options::quick(), netnews::Options::default());
    let options = netnews::Options { repeat: repeat(bench), ..base };
    let outcome = begun(format!(
        "netnews, {} articles, {} arrive, {} expire, {} groups",
        options.articles, options.arrivals, options.expired, options.groups
    ));
    by_phase(bench, outcome, &Parameters::Netnews(options))
}

fn run_postmark(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let (number, transactions) = if bench.scale() == Scale::Full { (5_000, 20_000) } else { (500, 500) };
    let options = postmark::Options { number, transactions, repeat: repeat(bench), ..postmark::Options::default() };
    let outcome = begun(format!("PostMark, {number} files, {transactions} transactions, else its defaults"));
    by_phase(bench, outcome, &Parameters::Postmark(options))
}

/// A row for each phase and system, and the comparisons.
fn by_phase(bench: &mut Bench<'_>, mut outcome: Outcome, with: &Parameters) -> Result<Outcome, ExperimentError> {
    let found = measured(bench, with.name(), with)?;
    for system in &found {
        for (_, phase, _, ns) in system.phases() {
            let what = format!("{}, {}", phase.name(), system.name);
            outcome.row(Row::new(what, Unit::Ns, Published::NONE, ns, Explain::Agrees));
        }
    }
    let series = found.iter().map(|system| {
        let seconds = (1_u32..).zip(system.phases()).map(|(n, (.., ns))| (f64::from(n), ns / 1e9));
        Series::new(system.name, seconds.collect::<Vec<_>>())
    });
    let names: Vec<&str> = found.first().map_or_else(Vec::new, |system| system.phases().map(|p| p.1.name()).collect());
    outcome.figure(Figure {
        name: with.name().to_owned(),
        title: "Time of each phase, writing back included".to_owned(),
        x: Axis::Number(format!("phase: {}", names.join(", "))),
        y: Axis::Number("s".to_owned()),
        series: series.collect(),
    });
    compared(&mut outcome, &found);
    Ok(outcome)
}

/// Soft Updates against all others by the time of everything that was run, and the claim.
fn compared(outcome: &mut Outcome, found: &[Measured]) {
    let total = |name: &str| found.iter().find(|system| system.name == name).map_or(0.0, Measured::total_ns);
    let softdep = total(SOFT_UPDATES);
    for system in found.iter().filter(|system| system.name != SOFT_UPDATES) {
        let is_claimed = system.name == LOG_IN_A_FILE;
        let [least, most] = PUBLISHED_GAIN;
        let published = if is_claimed { Published::about((least + most) / 2.0) } else { Published::NONE };
        let what = format!("throughput, Soft Updates over {}", system.name);
        outcome.row(Row::new(what, Unit::Ratio, published, system.total_ns() / softdep, not_known()));
    }
    let [least, most] = PUBLISHED_GAIN;
    let gain = total(LOG_IN_A_FILE) / softdep;
    outcome.claim(Claim::new(
        "Soft Updates are 4 to 19 % faster than a log in a file",
        (least..=most).contains(&gain),
        format!("{:+.1} %", 100.0 * (gain - 1.0)),
        not_known(),
    ));
    let conventional = total("conventional") / softdep;
    outcome.claim(Claim::new(
        "Soft Updates are faster than conventional updates",
        conventional > 1.0,
        format!("{conventional:.2} times"),
        Explain::Agrees,
    ));
    outcome.note(
        "published is the middle of 4 to 19 %, which was said of the throughput of whole systems, not of this workload \
         alone",
    );
}

fn not_known() -> Explain {
    Explain::because(
        "the range was said of whole systems, and their sizes of workloads and logs are not known to us; the row with \
         unordered data and those with a second drive each change one thing about the log",
    )
}
