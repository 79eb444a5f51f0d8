//! `alloc96/old-machine`: what an older computer with a slower bus makes of the same gain in layout.
//!
//! The study compares its gain in reading hot files with that of an earlier one on a SPARCstation, where the same gain
//! in layout gave 15 %, and puts it down to the bus. Here the same aged file systems lie on the same drive, and one
//! thing is changed at a time: how fast the bus is, and the computer.

use super::aged::aged;
use super::{DRIVE, MACHINE, POLICIES, describe, hot_files};
use crate::{
    Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit, lfs95,
    parallel,
};
use device::{Drive, Model};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "alloc96/old-machine",
    title: "The gain of realloc on the files of the last month, with a slower bus and an older computer",
    source: "Smith and Seltzer, A Comparison of FFS Disk Allocation Policies, USENIX 1996, section 5, on the earlier \
        results with a SPARCstation",
    runs: "Reads the files modified in the last 30 days on the two aged file systems of the study: with the drive's \
           bus of 10 MB/s and slower ones, under the kernel of the Pentium and of a SPARCstation 2.",
    run,
};

/// What realloc gained in reading hot files: on the study's computer, and on a SPARCstation.
const PUBLISHED: [f64; 2] = [1.32, 1.15];
/// Megabytes a second of buses: fast SCSI-2, that of the study's computer; synchronous SCSI-1; asynchronous ones and
/// what an adapter without direct access to memory leaves of them.
const BUSES: [f64; 5] = [10.0, 5.0, 3.0, 2.0, 1.5];
const QUICK_BUSES: [f64; 2] = [10.0, 1.5];
/// What the SPARCstation's was, by the standard of its time.
const SCSI_1: f64 = 5.0;
const MACHINES: [(&str, &str); 2] = [("Pentium", MACHINE), ("SPARCstation 2", lfs95::MACHINE)];

/// The drive of the study with a bus of so many megabytes a second.
fn drive(mb_per_s: f64) -> Result<Drive, ExperimentError> {
    let mut drive = Drive::find(DRIVE)?;
    if let Model::Disk(spec) = &mut drive.model {
        let sector_ms = f64::from(spec.sector_bytes) / (mb_per_s * 1e3);
        (spec.bus.read_sector_ms, spec.bus.write_sector_ms) = (sector_ms, sector_ms);
    }
    Ok(drive)
}

/// Reading, MiB/s.
#[derive(Clone, Copy)]
struct Found {
    machine: &'static str,
    bus: f64,
    original: f64,
    realloc: f64,
}

impl Found {
    fn gain(&self) -> f64 {
        self.realloc / self.original
    }
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let pair = [aged(bench, POLICIES[0].1)?, aged(bench, POLICIES[1].1)?];
    let (seed, buses) = (bench.seed(), bench.pick(QUICK_BUSES.as_slice(), BUSES.as_slice()));
    let places: Vec<_> = MACHINES.iter().flat_map(|machine| buses.iter().map(move |bus| (*machine, *bus))).collect();
    let found = parallel::each(bench, "hot files", &places, |((name, machine), bus)| {
        let drive = drive(*bus)?;
        let rate = |at: usize| Ok(hot_files::rates_in(pair[at].laboratory_on(machine, &drive)?, false, seed)?[0]);
        let [original, realloc]: [Result<f64, ExperimentError>; 2] = [rate(0), rate(1)];
        Ok(Found { machine: name, bus: *bus, original: original?, realloc: realloc? })
    })?;
    let mut outcome = Outcome::new();
    describe(&mut outcome, pair[0].days);
    outcome.parameter("drive", DRIVE).parameter("writes", super::WRITES);
    for (name, machine) in MACHINES {
        outcome.parameter(name, machine);
    }
    rows(&mut outcome, &found);
    let curve = |machine: &str, of: fn(&Found) -> f64| {
        let own = found.iter().filter(|f| f.machine == machine);
        let mut points: Vec<(f64, f64)> = own.map(|f| (f.bus, of(f))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    outcome.figure(Figure {
        name: "gain".into(),
        title: "Reading hot files, realloc over original, by the speed of the bus.".into(),
        x: Axis::Number("MB/s of the bus".into()),
        y: Axis::Number("realloc over original".into()),
        series: MACHINES.iter().map(|(name, _)| Series::new(name, curve(name, Found::gain))).collect(),
    });
    Ok(outcome)
}

fn rows(outcome: &mut Outcome, found: &[Found]) {
    let at = |machine: &str, bus: f64| found.iter().find(|f| f.machine == machine && f.bus == bus);
    let slowest = found.iter().map(|f| f.bus).fold(f64::INFINITY, f64::min);
    let why = format!(
        "how fast that computer's bus was is not known to us, and this is the standard of its time; with nothing but a \
         slower one, of {slowest} MB/s, {slower_bus:.2} (below)",
        slower_bus = at("SPARCstation 2", slowest).map_or(f64::NAN, Found::gain)
    );
    for f in found {
        let (published, explain) = match (f.machine, f.bus) {
            ("Pentium", 10.0) => (Published::exact(PUBLISHED[0]), Explain::unknown()),
            (machine, SCSI_1) if machine != "Pentium" => {
                (Published::about(PUBLISHED[1]), Explain::because(why.clone()))
            }
            _ => (Published::NONE, Explain::Agrees),
        };
        let what = format!("{}, bus of {} MB/s: reading hot files, realloc over original", f.machine, f.bus);
        outcome.row(Row::new(what, Unit::Ratio, published, f.gain(), explain));
    }
    for f in found {
        for (name, rate) in [("original", f.original), ("realloc", f.realloc)] {
            let what = format!("{}, bus of {} MB/s: reading hot files, {name}", f.machine, f.bus);
            outcome.row(Row::new(what, Unit::MibPerS, Published::NONE, rate, Explain::Agrees));
        }
    }
    let (Some(base), Some(slow)) = (at("Pentium", 10.0), at("Pentium", slowest)) else { return };
    outcome.claim(Claim::new(
        "a slow bus hides what a better layout gains",
        slow.gain() - 1.0 < 0.75 * (base.gain() - 1.0),
        format!("{:.2} with {slowest} MB/s, {:.2} with 10, on the same computer", slow.gain(), base.gain()),
        Explain::unknown(),
    ));
    if let Some(other) = at("SPARCstation 2", 10.0) {
        outcome.claim(Claim::new(
            "it is the bus and not the processor",
            base.gain() - slow.gain() > base.gain() - other.gain(),
            format!(
                "{:.2} with a bus of {slowest} MB/s alone, {:.2} with the SPARCstation's processor alone, {:.2} with \
                 neither",
                slow.gain(),
                other.gain(),
                base.gain()
            ),
            Explain::because("both are changed alone above; which was slower in the study's SPARCstation is not known"),
        ));
    }
}
