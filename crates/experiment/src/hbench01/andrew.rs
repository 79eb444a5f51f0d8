//! The Andrew benchmark by several users at the same time: which of three systems is the fastest.

use crate::lfs95::{DRIVE, MACHINE};
use crate::parallel::each;
use crate::{
    Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, NOT_KNOWN, Outcome, Published, Row, Series, Unit,
};
use kernel::{Machine, ReadAhead};
use lab::Spec;
use workload::{Parameters, Phase, Place, Repeat, andrew};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "hbench01/andrew",
    title: "The Andrew benchmark with one and more users on LFS, a clustering FFS and one that writes block by block",
    source: "Smith, Workload-Specific File System Benchmarks, PhD thesis, Harvard, 2001, chapter 4, figure 4.1, of \
             Seltzer, Bostic, McKusick and Staelin, An Implementation of a Log-Structured File System for UNIX, USENIX \
             Winter 1993",
    runs: "one to sixteen users, each of whom goes through the five phases on trees of their own, on three new file \
           systems of one computer; the same with computing that takes no time, and with more memory for the cache",
    run,
};

/// Of 512 MB each. The extent-like system of the publication (EFS) is 4.4BSD's FFS with clusters; the FFS beside it is
/// laid out with a gap behind each block, and its kernel reads and writes block by block.
const SYSTEMS: [(&str, &str, bool); 3] = [
    ("LFS", "lfs:bsize=4K,fsize=1K,segment=1M,size=512M", true),
    ("EFS", "ffs:original,minfree=10,maxcontig=8,rotdelay=0,heads=14,sectors=57,rpm=5360,positions=1,size=512M", true),
    ("FFS", "ffs:original,minfree=10,maxcontig=1,rotdelay=4,heads=14,sectors=57,rpm=5360,positions=1,size=512M", false),
];

/// The machine of 1999 that computing times are given for.
const OF_1999: &str = "pentium3-500";
/// Two rates as near as this are a tie.
const TIE: f64 = 0.01;

/// What is otherwise, one thing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Nothing,
    NoComputing,
    /// Eight times the cache: what all users read and write stays in memory.
    LargeCache,
}

impl Change {
    const ALL: [Change; 3] = [Change::Nothing, Change::NoComputing, Change::LargeCache];

    fn name(self) -> &'static str {
        match self {
            Change::Nothing => "",
            Change::NoComputing => ", computing takes no time",
            Change::LargeCache => ", eight times the cache",
        }
    }
}

struct Found {
    system: &'static str,
    users: u32,
    change: Change,
    /// Scripts an hour.
    rate: f64,
}

/// How much slower the computer is than one of 1999, by what their kernels' calls cost.
fn slower() -> Result<f64, ExperimentError> {
    let call = |machine: &str| Ok::<f64, ExperimentError>(Machine::load(machine)?.costs.call_ns.value as f64);
    Ok(call(MACHINE)? / call(OF_1999)?)
}

fn measure(place: &(usize, u32, Change), copies: u32, seed: u64) -> Result<Found, ExperimentError> {
    let (system, users, change) = *place;
    let (name, words, clusters) = SYSTEMS[system];
    let mut machine = Machine::load(MACHINE)?;
    if !clusters {
        (machine.io.cluster_writes, machine.io.read_ahead) = (false, ReadAhead::Block);
    }
    if change == Change::LargeCache {
        machine.memory.buffer_cache_bytes.value *= 8;
    }
    let cpu = if change == Change::NoComputing { 0.0 } else { slower()? };
    let options = andrew::Options { copies, users: vec![users], cpu, repeat: Repeat { seed, ..Repeat::once() } };
    let target = format!("{words}@{DRIVE}");
    let mut fs = Spec::parse(&target)?.open_on(machine)?;
    let place = Place { name: target, fs: &mut *fs };
    let result = workload::run(&Parameters::Andrew(options), &mut [place], &mut |_| {})?;
    let phases = result.targets.iter().flat_map(|target| &target.points).flat_map(|point| &point.phases);
    let rate = phases.filter(|found| found.phase == Phase::Scripts).map(|found| found.rate.median).sum();
    Ok(Found { system: name, users, change, rate })
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let (seed, copies) = (bench.seed(), 1);
    let users: &[u32] = bench.pick(&[1, 3], &[1, 2, 4, 8, 16]);
    let points: Vec<(usize, u32, Change)> = Change::ALL
        .into_iter()
        .flat_map(|change| users.iter().rev().map(move |users| (*users, change)))
        .flat_map(|(users, change)| (0..SYSTEMS.len()).map(move |system| (system, users, change)))
        .collect();
    let found = each(bench, "users", &points, |place| measure(place, copies, seed))?;
    let mut outcome = Outcome::new();
    outcome.parameter("machine", MACHINE).parameter("drive", DRIVE);
    for (name, words, clusters) in SYSTEMS {
        let kernel = if clusters { "" } else { ", on a kernel that reads and writes single blocks" };
        outcome.parameter(name, format!("{words}{kernel}"));
    }
    let what = "a tree of 70 files with about 200 KB, copied once, of each user";
    outcome
        .parameter("a user", what)
        .parameter("computing", format!("{:.0} times as long as on a computer of 1999", slower()?));
    rows(&mut outcome, &found, users);
    claims(&mut outcome, &found, users);
    for change in Change::ALL {
        let curve = |name: &str| {
            let own = found.iter().filter(|f| f.system == name && f.change == change);
            let mut points: Vec<(f64, f64)> = own.map(|f| (f64::from(f.users), f.rate)).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Series::new(name, points)
        };
        outcome.figure(Figure {
            name: format!("scripts{}", ["", "-no-computing", "-large-cache"][change as usize]),
            title: format!("Scripts an hour by the number of users{}", change.name()),
            x: Axis::Number("users".to_owned()),
            y: Axis::Number("scripts/h".to_owned()),
            series: SYSTEMS.iter().map(|(name, ..)| curve(name)).collect(),
        });
    }
    Ok(outcome)
}

fn rate(found: &[Found], system: &str, users: u32, change: Change) -> f64 {
    found.iter().find(|f| (f.system, f.users, f.change) == (system, users, change)).map_or(f64::NAN, |f| f.rate)
}

fn rows(outcome: &mut Outcome, found: &[Found], users: &[u32]) {
    for change in Change::ALL {
        for users in users.iter().copied() {
            let of = |system| rate(found, system, users, change);
            for system in ["LFS", "EFS"] {
                let people = if users == 1 { "1 user".to_owned() } else { format!("{users} users") };
                let what = format!("{people}{}: {system} over FFS", change.name());
                let ours = of(system) / of("FFS");
                outcome.row(Row::new(what, Unit::Ratio, Published::NONE, ours, Explain::Agrees));
            }
        }
    }
}

/// The systems from the fastest on; ties are joined by `=`, in the order of the list.
fn ranking(found: &[Found], users: u32, change: Change) -> String {
    let mut order: Vec<(&str, f64)> =
        SYSTEMS.iter().map(|(name, ..)| (*name, rate(found, name, users, change))).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut groups: Vec<Vec<(&str, f64)>> = Vec::new();
    for one in order {
        match groups.last_mut() {
            Some(group) if group.last().is_some_and(|(_, before)| one.1 * (1.0 + TIE) >= *before) => group.push(one),
            _ => groups.push(vec![one]),
        }
    }
    let joined = groups.iter().map(|group| {
        let of_group = |name: &&str| group.iter().any(|(other, _)| other == name);
        SYSTEMS.iter().map(|(name, ..)| *name).filter(of_group).collect::<Vec<_>>().join(" = ")
    });
    joined.collect::<Vec<_>>().join(" > ")
}

fn claims(outcome: &mut Outcome, found: &[Found], users: &[u32]) {
    let rankings = |change| users.iter().map(|n| ranking(found, *n, change)).collect::<Vec<String>>();
    let shown = |of: &[String]| {
        let each = users.iter().zip(of).map(|(n, order)| format!("{n}: {order}"));
        each.collect::<Vec<_>>().join("; ")
    };
    let changes = |of: &[String]| of.iter().any(|order| Some(order) != of.first());
    let base = rankings(Change::Nothing);
    let (idle, cached) = (rankings(Change::NoComputing), rankings(Change::LargeCache));
    let why = format!(
        "{NOT_KNOWN}. With computing that takes no time: {}. With eight times the cache: {}",
        shown(&idle),
        shown(&cached)
    );
    outcome.claim(Claim::new(
        "the order of the three depends on how many users there are",
        changes(&base),
        shown(&base),
        Explain::because(why),
    ));
    for (change, found) in [(Change::NoComputing, idle), (Change::LargeCache, cached)] {
        outcome.note(format!("The order by users{}: {}.", change.name(), shown(&found)));
    }
}
