//! `lfs92/smallfile` and `lfs92/largefile`: the micro-benchmarks of both file systems.

use super::{DRIVE, MACHINE};
use crate::parallel::each;
use crate::testbed::{call, faster, make_files};
use crate::{Bench, Claim, Experiment, ExperimentError, Explain, Outcome, Published, Row, Unit};
use kernel::{Machine, ReadAhead};
use lab::Spec;
use posix::{Call, FileSystem as _};
use workload::{Parameters, Phase, Place, Repeat, largefile, smallfile};

pub(crate) const SMALLFILE: Experiment = Experiment {
    key: "lfs92/smallfile",
    title: "Many files of 1 KB: create, read, delete",
    source: "Rosenblum and Ousterhout, The Design and Implementation of a Log-Structured File System, TOCS 10(1), \
             1992, section 5.1, figure 8",
    runs: "10,000 files of 1 KB are made, read in the order they were made, and removed, by LFS and FFS, with the \
           processor of 1991 and ones two, four and eight times as fast",
    run: run_smallfile,
};

pub(crate) const LARGEFILE: Experiment = Experiment {
    key: "lfs92/largefile",
    title: "A file of 100 MB: written and read, in sequence and at random",
    source: "Rosenblum and Ousterhout, The Design and Implementation of a Log-Structured File System, TOCS 10(1), \
             1992, section 5.1, figure 9",
    runs: "100 MB in units of 8 KB: written, read, written at random, read at random, read again, by LFS and FFS; and \
           the random reads again on a computer that does not read ahead",
    run: run_largefile,
};

/// The file system of a kernel that does not cluster, laid out with a gap behind each block as was usual then; and the
/// log.
const SYSTEMS: [(&str, &str); 2] = [
    ("FFS", "ffs:original,bsize=8K,fsize=1K,minfree=10,maxcontig=1,rotdelay=4,heads=19,sectors=72,rpm=4002,size=300M"),
    ("LFS", "lfs:bsize=4K,fsize=1K,segment=1M,size=300M"),
];

/// The first of them on a kernel that clusters, as 4.4BSD's.
const CLUSTERED: &str =
    "ffs:original,bsize=8K,fsize=1K,minfree=10,maxcontig=8,rotdelay=0,heads=19,sectors=72,rpm=4002,size=300M";

/// Rates of one system in one benchmark, by phase.
struct Rates(Vec<(Phase, f64)>);

impl Rates {
    fn of(&self, phase: Phase) -> f64 {
        self.0.iter().find(|(of, _)| *of == phase).map_or(f64::NAN, |(_, rate)| *rate)
    }
}

fn measure(system: &str, machine: Machine, parameters: &Parameters) -> Result<Rates, ExperimentError> {
    let target = format!("{system}@{DRIVE}");
    let spec = Spec::parse(&target)?;
    let mut fs = spec.open_on(machine)?;
    let place = Place { name: target, fs: &mut *fs };
    let result = workload::run(parameters, &mut [place], &mut |_| {})?;
    let phases = result.targets.into_iter().flat_map(|target| target.points).flat_map(|point| point.phases);
    Ok(Rates(phases.map(|found| (found.phase, found.rate.median)).collect()))
}

/// Shares of a phase in which the processor and the disk worked.
#[derive(Clone, Copy, Debug)]
struct Busy {
    processor: f64,
    disk: f64,
}

/// How busy processor and disk are while files of 1 KB are made, and while they are removed: until everything is
/// written.
fn busy(system: &str, files: u64, times: f64) -> Result<[Busy; 2], ExperimentError> {
    let mut lab = Spec::parse(&format!("{system}@{DRIVE}"))?.open_on(faster(MACHINE, times)?)?;
    let mut paths = Vec::new();
    let mut phase = |paths: &mut Vec<String>, makes: bool| {
        let (from_ns, before) = (lab.now_ns(), lab.counters().busy);
        if makes {
            *paths = make_files(&mut *lab, "d", files, 1024, 100)?;
        }
        for path in paths.iter().filter(|_| !makes) {
            call(&mut *lab, "removing a file", &Call::Unlink { at: path.as_str().into() })?;
        }
        call(&mut *lab, "writing back", &Call::SyncFs)?;
        let (ns, after) = ((lab.now_ns() - from_ns) as f64, lab.counters().busy);
        Ok(Busy {
            processor: (after.processors_ns - before.processors_ns) as f64 / ns,
            disk: (after.device_ns - before.device_ns) as f64 / ns,
        })
    };
    let made: Result<Busy, ExperimentError> = phase(&mut paths, true);
    let removed: Result<Busy, ExperimentError> = phase(&mut paths, false);
    Ok([made?, removed?])
}

fn parameter(outcome: &mut Outcome) {
    outcome.parameter("machine", MACHINE).parameter("drive", DRIVE);
    for (name, target) in SYSTEMS {
        outcome.parameter(name, target);
    }
}

fn run_smallfile(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let repeat = Repeat { seed: bench.seed(), ..Repeat::once() };
    let files = bench.pick(500, 10_000);
    let parameters = Parameters::Smallfile(smallfile::Options { files, repeat, ..smallfile::Options::default() });
    let speeds = bench.pick([1, 8].as_slice(), [1, 2, 4, 8].as_slice());
    let points: Vec<(&str, &str, u64)> =
        SYSTEMS.iter().flat_map(|(name, system)| speeds.iter().map(|times| (*name, *system, *times))).collect();
    let found = each(bench, "small files", &points, |(name, system, times)| {
        Ok((*name, *times, measure(system, faster(MACHINE, *times as f64)?, &parameters)?))
    })?;
    let rate = |system: &str, times: u64, phase| {
        let own = found.iter().find(|(name, at, _)| (*name, *at) == (system, times));
        own.map_or(f64::NAN, |(_, _, rates)| rates.of(phase))
    };
    let mut outcome = Outcome::new();
    parameter(&mut outcome);
    outcome.parameter("files", format!("{files} of 1 KB, 100 in a directory"));
    for (phase, published) in [(Phase::Create, Some(10.0)), (Phase::Read, None), (Phase::Delete, Some(10.0))] {
        let published = published.and_then(Published::about);
        let lead = rate("LFS", 1, phase) / rate("FFS", 1, phase);
        outcome.row(Row::new(format!("{}: LFS over FFS", phase.name()), Unit::Ratio, published, lead, Explain::Agrees));
    }
    for (name, times, rates) in &found {
        for phase in [Phase::Create, Phase::Read, Phase::Delete] {
            let what = format!("{name}, {}, processor {times} times as fast", phase.name());
            outcome.row(Row::new(what, Unit::FilesPerS, Published::NONE, rates.of(phase), Explain::Agrees));
        }
    }
    how_busy(bench, &mut outcome, files)?;
    let last = speeds.last().copied().unwrap_or(1);
    let gain = |system| rate(system, last, Phase::Create) / rate(system, 1, Phase::Create);
    outcome.claim(Claim::new(
        "creation by LFS scales with the processor, by FFS with the disk",
        gain("LFS") > 3.0 && gain("FFS") < 1.5,
        format!("a processor {last} times as fast: LFS {:.2} times, FFS {:.2} times", gain("LFS"), gain("FFS")),
        Explain::Agrees,
    ));
    Ok(outcome)
}

/// The publication's shares of time in which the disk is busy while files are made, LFS and the other system; from
/// memory.
const DISK_BUSY: [(&str, f64); 2] = [("LFS", 0.17), ("FFS", 0.85)];

fn how_busy(bench: &mut Bench<'_>, outcome: &mut Outcome, files: u32) -> Result<(), ExperimentError> {
    let points: Vec<(&str, &str, f64)> =
        SYSTEMS.iter().flat_map(|(name, system)| [1.0, 0.5].map(|times| (*name, *system, times))).collect();
    let found = each(bench, "how busy", &points, |(name, system, times)| {
        Ok((*name, *times, busy(system, files.into(), *times)?))
    })?;
    let slower =
        |of: &str| found.iter().find(|(name, times, _)| *name == of && *times < 1.0).map(|(.., [made, _])| made.disk);
    for (name, times, phases) in &found {
        for (phase, busy) in ["create", "delete"].iter().zip(phases) {
            let compared = *phase == "create" && *times == 1.0;
            let published =
                DISK_BUSY.iter().find(|(of, _)| of == name && compared).and_then(|(_, share)| Published::about(*share));
            let slow = if *times < 1.0 { ", a processor half as fast" } else { "" };
            let what = |of: &str| format!("{name}, {phase}: of the time, the {of}{slow}");
            let why = format!(
                "what this computer spends on a file is an estimate, and the disk is another; with a processor half as \
                 fast {:.2} (below)",
                slower(name).unwrap_or(f64::NAN)
            );
            outcome
                .row(Row::new(what("processor works"), Unit::Share, Published::NONE, busy.processor, Explain::Agrees))
                .row(Row::new(
                    what("disk has something to do"),
                    Unit::Share,
                    published,
                    busy.disk,
                    Explain::because(why),
                ));
        }
    }
    Ok(())
}

fn run_largefile(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    const PHASES: [Phase; 5] = [Phase::Write, Phase::Read, Phase::RandomWrite, Phase::RandomRead, Phase::Reread];
    const MIB: f64 = (1 << 20) as f64;
    let repeat = Repeat { seed: bench.seed(), ..Repeat::once() };
    let size_bytes = bench.pick(8 << 20, 100 << 20);
    let parameters = Parameters::Largefile(largefile::Options { size_bytes, repeat, ..largefile::Options::default() });
    let points: Vec<(&str, &str, bool)> =
        SYSTEMS.iter().flat_map(|(name, system)| [true, false].map(|ahead| (*name, *system, ahead))).collect();
    let found = each(bench, "large file", &points, |(name, system, ahead)| {
        let mut machine = Machine::load(MACHINE)?;
        if !ahead {
            machine.io.read_ahead = ReadAhead::None;
        }
        Ok((*name, *ahead, measure(system, machine, &parameters)?))
    })?;
    let rate = |system: &str, ahead: bool, phase| {
        let own = found.iter().find(|(name, with, _)| (*name, *with) == (system, ahead));
        own.map_or(f64::NAN, |(_, _, rates)| rates.of(phase) / MIB)
    };
    let lead = |phase| rate("LFS", true, phase) / rate("FFS", true, phase);
    let mut machine = Machine::load(MACHINE)?;
    (machine.io.cluster_writes, machine.io.read_ahead) = (true, ReadAhead::Cluster);
    let clustered = measure(CLUSTERED, machine, &parameters)?;
    let against_clusters = rate("LFS", true, Phase::Write) / (clustered.of(Phase::Write) / MIB);
    let mut outcome = Outcome::new();
    parameter(&mut outcome);
    outcome.parameter("file", format!("{} MiB in units of 8 KiB", size_bytes >> 20));
    for (system, _) in SYSTEMS {
        for phase in PHASES {
            let what = format!("{system}, {}", phase.name());
            outcome.row(Row::new(what, Unit::MibPerS, Published::NONE, rate(system, true, phase), Explain::Agrees));
        }
    }
    let row = |what, published, ours, explain| Row::new(what, Unit::Ratio, published, ours, explain);
    let unclustered = Explain::because(format!(
        "the published 1 is doubtful for this kernel. It writes a block of 8 KB, lets the disk turn by the gap that \
         the file system is laid out with, and writes the next. From memory, the publication has its log ahead in \
         sequential writing for just this reason, and expects 1 of a kernel that groups blocks; against an FFS of \
         clusters of 64 KB on the same computer it is {against_clusters:.2} (below)"
    ));
    let quirk = rate("LFS", true, Phase::RandomRead) / rate("LFS", false, Phase::RandomRead);
    outcome
        .row(row("sequential write: LFS over FFS", Published::about(1.0), lead(Phase::Write), unclustered))
        .row(row("the same, FFS with clusters", Published::about(1.0), against_clusters, Explain::Agrees))
        .row(row("sequential read: LFS over FFS", Published::NONE, lead(Phase::Read), Explain::Agrees))
        .row(row("LFS, random reads: reading ahead over not", Published::NONE, quirk, Explain::Agrees));
    let claim = |what, holds, seen: String| Claim::new(what, holds, seen, Explain::Agrees);
    let (write, reread) = (lead(Phase::RandomWrite), lead(Phase::Reread));
    outcome
        .claim(claim("random writes: LFS is much faster", write > 2.0, format!("{write:.2} times as fast")))
        .claim(claim(
            "reading in sequence what was written at random: FFS is faster",
            reread < 0.75,
            format!("LFS at {reread:.2} of its speed"),
        ))
        .claim(claim(
            "8 KB at random places of a file with 4 KB blocks: a policy that reads ahead after one read in sequence \
             loses",
            quirk < 0.95,
            format!("{quirk:.2} of the throughput without reading ahead"),
        ));
    Ok(outcome)
}
