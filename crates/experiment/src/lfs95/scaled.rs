//! The study's comparison with Sprite: results of one computer scaled to another by one factor each, and the same code
//! run there.

use super::disc::Disc;
use super::{DRIVE, MACHINE};
use crate::lfs92;
use crate::parallel::each;
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use kernel::Machine;
use lab::Spec;
use workload::{BenchResult, Parameters, Phase, Place, Repeat, largefile, smallfile};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lfs95/scaled",
    title: "Small files and a large one on four systems, those of one computer scaled to the other",
    source: "Seltzer et al., File System Logging Versus Clustering, USENIX 1995, section 3.1, tables 1 and 2, figures \
        1 and 2",
    runs: "10,000 files of 1 KB and one of 100 MB on LFS and FFS of a SPARCstation 2, on the same two with the \
           computer and the disk of Sprite's study, and on systems as that one had them; what was found on the first \
           is scaled by how much slower processor, access or transfer is, and held against what the same code does on \
           the second",
    run,
};

/// What a rate is scaled by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Processor,
    Access,
    Bandwidth,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            By::Processor => "the processor",
            By::Access => "access time",
            By::Bandwidth => "bandwidth",
        }
    }
}

/// How much slower the computer and disk of Sprite's study are, by their descriptions.
#[derive(Clone, Copy, Debug)]
struct Factors {
    processor: f64,
    access: f64,
    bandwidth: f64,
}

impl Factors {
    fn new() -> Result<Factors, ExperimentError> {
        let call = |machine: &str| Ok::<f64, ExperimentError>(Machine::load(machine)?.costs.call_ns.value as f64);
        let (there, here) = (Disc::of(lfs92::DRIVE)?, Disc::of(DRIVE)?);
        Ok(Factors {
            processor: call(lfs92::MACHINE)? / call(MACHINE)?,
            access: there.access_s() / here.access_s(),
            bandwidth: here.bytes_per_s / there.bytes_per_s,
        })
    }

    fn of(&self, by: By) -> f64 {
        match by {
            By::Processor => self.processor,
            By::Access => self.access,
            By::Bandwidth => self.bandwidth,
        }
    }
}

/// A phase, and what each of the two systems is scaled by there: what it has most to wait for by the publication's
/// account. A log makes small files, and writes at random, as fast as the processor and the disk's bandwidth let it;
/// FFS waits for the disk's arm.
const PHASES: [(bool, Phase, [By; 2]); 8] = [
    (true, Phase::Create, [By::Processor, By::Access]),
    (true, Phase::Read, [By::Access, By::Access]),
    (true, Phase::Delete, [By::Processor, By::Access]),
    (false, Phase::Write, [By::Bandwidth, By::Bandwidth]),
    (false, Phase::Read, [By::Bandwidth, By::Bandwidth]),
    (false, Phase::RandomWrite, [By::Bandwidth, By::Access]),
    (false, Phase::RandomRead, [By::Access, By::Access]),
    (false, Phase::Reread, [By::Access, By::Bandwidth]),
];

/// LFS and FFS of 4.4BSD on a disk of either kind, which both hold 300 MB.
const BSD: [(&str, &str); 2] = [
    ("BSD LFS", "lfs:bsize=8K,fsize=1K,segment=1M,size=300M"),
    (
        "BSD FFS",
        "ffs:original,bsize=8K,fsize=1K,minfree=10,maxcontig=8,rotdelay=0,heads=14,sectors=57,rpm=5360,\
         positions=1,size=300M",
    ),
];
/// As Sprite and SunOS had them: code of ours with their sizes.
const THEIRS: [(&str, &str); 2] = [
    ("as Sprite LFS", "lfs:bsize=4K,fsize=4K,segment=512K,size=300M"),
    (
        "as SunOS FFS",
        "ffs:original,bsize=8K,fsize=1K,minfree=10,maxcontig=1,rotdelay=4,heads=19,sectors=72,rpm=4002,size=300M",
    ),
];

/// Where a system runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    /// BSD's computer and disk.
    Bsd,
    /// Sprite's computer and disk under BSD's kernel: what scaling is held against.
    Sprite,
    /// The same under a kernel of its own time, which does not cluster.
    SpriteItself,
}

impl On {
    fn machine(self) -> Result<Machine, ExperimentError> {
        let machine = Machine::load(if self == On::Bsd { MACHINE } else { lfs92::MACHINE })?;
        Ok(match self {
            On::Sprite => Machine { io: Machine::load(MACHINE)?.io, ..machine },
            On::Bsd | On::SpriteItself => machine,
        })
    }

    fn drive(self) -> &'static str {
        if self == On::Bsd { DRIVE } else { lfs92::DRIVE }
    }
}

struct Found {
    system: &'static str,
    on: On,
    small: bool,
    rates: Vec<(Phase, f64)>,
}

fn measure(place: &(&'static str, &str, On, bool), parameters: [&Parameters; 2]) -> Result<Found, ExperimentError> {
    let (system, words, on, small) = *place;
    let target = format!("{words}@{}", on.drive());
    let mut fs = Spec::parse(&target)?.open_on(on.machine()?)?;
    let place = Place { name: target, fs: &mut *fs };
    let result: BenchResult = workload::run(parameters[usize::from(!small)], &mut [place], &mut |_| {})?;
    let phases = result.targets.into_iter().flat_map(|target| target.points).flat_map(|point| point.phases);
    Ok(Found { system, on, small, rates: phases.map(|found| (found.phase, found.rate.median)).collect() })
}

fn rate(found: &[Found], system: &str, on: On, small: bool, phase: Phase) -> f64 {
    let of = found.iter().find(|f| (f.system, f.on, f.small) == (system, on, small));
    of.and_then(|f| f.rates.iter().find(|(known, _)| *known == phase)).map_or(f64::NAN, |(_, rate)| *rate)
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let repeat = Repeat { seed: bench.seed(), ..Repeat::once() };
    let (files, size_bytes) = (bench.pick(500, 10_000), bench.pick(8 << 20, 100 << 20));
    let small = Parameters::Smallfile(smallfile::Options { files, repeat, ..smallfile::Options::default() });
    let large = Parameters::Largefile(largefile::Options { size_bytes, repeat, ..largefile::Options::default() });
    let systems = BSD
        .iter()
        .flat_map(|(name, words)| [On::Bsd, On::Sprite].map(|on| (*name, *words, on)))
        .chain(THEIRS.iter().map(|(name, words)| (*name, *words, On::SpriteItself)));
    let places: Vec<_> =
        systems.flat_map(|(name, words, on)| [false, true].map(|small| (name, words, on, small))).collect();
    let found = each(bench, "four systems", &places, |place| measure(place, [&small, &large]))?;
    let factors = Factors::new()?;
    let mut outcome = Outcome::new();
    outcome
        .parameter("BSD's computer and disk", format!("{MACHINE}, {DRIVE}"))
        .parameter("Sprite's, of their class", format!("{}, {}", lfs92::MACHINE, lfs92::DRIVE));
    for (name, words) in BSD.iter().chain(&THEIRS) {
        outcome.parameter(name, *words);
    }
    outcome.parameter("files", format!("{files} of 1 KB; one of {} MiB in units of 8 KiB", size_bytes >> 20));
    scaled(&mut outcome, &found, &factors);
    four(&mut outcome, &found, &factors);
    outcome.note(
        "The code of Sprite and of SunOS is not to be had, nor are the study's figures but in drawings: what stands \
         for the two is ours, with their sizes of blocks and segments, on a computer and a disk of the class of \
         theirs.",
    );
    Ok(outcome)
}

fn phase_name(small: bool, phase: Phase) -> String {
    format!("{}, {}", if small { "small files" } else { "large file" }, phase.name())
}

/// How near scaling comes to what the same code does on the slower hardware.
fn scaled(outcome: &mut Outcome, found: &[Found], factors: &Factors) {
    let slower = [By::Processor, By::Access, By::Bandwidth];
    for by in slower {
        let what = format!("Sprite's hardware: {} so many times slower", by.name());
        outcome.row(Row::new(what, Unit::Ratio, Published::NONE, factors.of(by), Explain::Agrees));
    }
    let (mut near, mut all, mut off) = (0, 0, Vec::new());
    for (small, phase, by) in PHASES {
        for ((system, _), by) in BSD.iter().zip(by) {
            let here = rate(found, system, On::Bsd, small, phase);
            let there = rate(found, system, On::Sprite, small, phase);
            let ratio = here / factors.of(by) / there;
            let what = format!("{system}, {}: scaled by {} over run", phase_name(small, phase), by.name());
            outcome.row(Row::new(what, Unit::Ratio, Published::NONE, ratio, Explain::Agrees));
            all += 1;
            if (ratio - 1.0).abs() <= crate::TOLERANCE {
                near += 1;
            } else {
                // The three factors, and what it really is.
                let each = slower.map(|by| format!("{} {:.2}", by.name(), factors.of(by))).join(", ");
                let real = here / there;
                off.push(format!("{system}, {}: {real:.2} times slower ({each})", phase_name(small, phase)));
            }
        }
    }
    let seen = format!("{near} of {all} within a quarter of what the same code does there");
    let sentence = match off.is_empty() {
        true => String::new(),
        false => format!(
            "one factor cannot stand for a mixture of processor, arm and transfer. With nothing but the hardware \
             exchanged, {}",
            off.join("; ")
        ),
    };
    outcome.claim(Claim::new(
        "results of one computer, scaled by processor, access time or bandwidth, are those of the other",
        near == all,
        seen,
        Explain::because(sentence),
    ));
}

/// The four systems side by side, BSD's scaled.
fn four(outcome: &mut Outcome, found: &[Found], factors: &Factors) {
    const MIB: f64 = (1 << 20) as f64;
    let of = |system: &str, small, phase, by: By| match BSD.iter().any(|(name, _)| *name == system) {
        true => rate(found, system, On::Bsd, small, phase) / factors.of(by),
        false => rate(found, system, On::SpriteItself, small, phase),
    };
    let names: Vec<&str> = THEIRS.iter().chain(&BSD).map(|(name, _)| *name).collect();
    let mut curves = [Vec::new(), Vec::new()];
    for (at, name) in names.iter().enumerate() {
        for kind in [true, false] {
            let mut points = Vec::new();
            for (number, (small, phase, by)) in PHASES.iter().filter(|(small, ..)| *small == kind).enumerate() {
                let ours = of(name, *small, *phase, by[at % 2]);
                let (unit, value) = if kind { (Unit::FilesPerS, ours) } else { (Unit::MibPerS, ours / MIB) };
                let scaled = if at < 2 { "" } else { ", scaled" };
                let what = format!("{name}{scaled}, {}", phase_name(*small, *phase));
                outcome.row(Row::new(what, unit, Published::NONE, value, Explain::Agrees));
                points.push((number as f64 + 1.0, value));
            }
            curves[usize::from(!kind)].push(Series::new(name, points));
        }
    }
    for (phase, by) in [(Phase::Create, [By::Processor, By::Access]), (Phase::Delete, [By::Processor, By::Access])] {
        for pair in [&THEIRS, &BSD] {
            let lead = of(pair[0].0, true, phase, by[0]) / of(pair[1].0, true, phase, by[1]);
            let what = format!("small files, {}: {} over {}", phase.name(), pair[0].0, pair[1].0);
            let why = format!(
                "run on Sprite's hardware instead of scaled, BSD's are at {:.2}",
                rate(found, BSD[0].0, On::Sprite, true, phase) / rate(found, BSD[1].0, On::Sprite, true, phase)
            );
            outcome.row(Row::new(what, Unit::Ratio, Published::about(10.0), lead, Explain::because(why)));
        }
    }
    for ((kind, name, y), series) in [(true, "small", "files/s"), (false, "large", "MiB/s")].into_iter().zip(curves) {
        let phases: Vec<&str> = PHASES.iter().filter(|(small, ..)| *small == kind).map(|(_, p, _)| p.name()).collect();
        outcome.figure(Figure {
            name: name.to_owned(),
            title: format!("Four systems, BSD's scaled to Sprite's hardware: {}.", phases.join(", ")),
            x: Axis::Number("phase".to_owned()),
            y: Axis::Number(y.to_owned()),
            series,
        });
    }
}
