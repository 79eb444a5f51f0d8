//! Soft Updates and a log of metadata against conventional updates and no order at all: what a crash that can be mended
//! costs.

use super::noorder::{Gain, Mode, RUNS, SOURCE, at, figures, found, mode, sizes, with};
use super::{DRIVE, MACHINE, SIZE_BYTES};
use crate::testbed::Sequential;
use crate::{Bench, Claim, Experiment, ExperimentError, Explain, Outcome, Published, Row, Unit};
use units::show::size_name;
use workload::Phase;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "softdep99/softdep",
    title: "Soft Updates and journaling against conventional FFS and no order at all",
    source: SOURCE,
    runs: RUNS,
    run,
};

/// The sizes that matter with blocks of 8 KB: two clusters, the first indirect block, many clusters.
const SHOWN: [u64; 3] = [64 << 10, 104 << 10, 1024 << 10];

/// Of No Order's rate, what Soft Updates reach when files are created.
const EQUAL: f64 = 0.95;

/// Every mode, with what a target and a table call it.
const MODES: [(&str, &str); 5] = [
    ("conventional", "conventional"),
    ("noorder", "No Order"),
    ("softdep", "Soft Updates"),
    ("journal=async", "log, async"),
    ("journal=sync", "log, sync"),
];

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let mut found = Vec::with_capacity(MODES.len());
    for (word, name) in MODES {
        found.push((name, mode(bench, word)?));
    }
    let modes: Vec<(&str, &Mode)> = found.iter().map(|(name, mode)| (*name, &**mode)).collect();
    Ok(outcome(&modes, &sizes(bench), with(bench)))
}

fn outcome(modes: &[(&str, &Mode)], sizes: &[u64], with: Sequential) -> Outcome {
    let mut outcome = Outcome::new();
    outcome
        .parameter("machine", MACHINE)
        .parameter("drive", DRIVE)
        .parameter("file system", format!("{} MiB, empty, realloc, 8 KiB blocks", SIZE_BYTES >> 20))
        .parameter("log", "inside the file system, a 64th of it, data ordered")
        .parameter("data", format!("{} MiB of each size, 50 files a directory", with.data_bytes >> 20));
    let [(_, conventional), (_, noorder), (_, softdep), ..] = modes else { return outcome };
    for (name, mode) in modes.iter().filter(|(name, _)| *name != "No Order") {
        // The publications draw one curve over the other.
        let published = |is_drawn: bool| if *name == "Soft Updates" && is_drawn { Published::about(1.0) } else { None };
        let gains = [
            ("create", true, Gain::of(noorder, mode, sizes, Phase::Create)),
            ("create, the calls alone", false, Gain::of_calls(noorder, mode, sizes, Phase::Create)),
            ("read", true, Gain::of(noorder, mode, sizes, Phase::Read)),
            ("delete, writing back included", false, Gain::of(noorder, mode, sizes, Phase::Delete)),
            ("delete, the calls alone", false, Gain::of_calls(noorder, mode, sizes, Phase::Delete)),
        ];
        for (what, is_drawn, gain) in gains {
            for size in SHOWN {
                let what = format!("{what}, {name} over No Order, {} files", size_name(size));
                let ours = gain.at(size).unwrap_or(0.0);
                outcome.row(Row::new(what, Unit::Ratio, published(is_drawn), ours, Explain::Agrees));
            }
        }
    }
    for size in SHOWN {
        for (name, mode) in modes {
            let what = format!("disk writes for each {} file created, {name}", size_name(size));
            let ours = at(sizes, &mode.writes, size).unwrap_or(0.0);
            outcome.row(Row::new(what, Unit::Number, Published::NONE, ours, Explain::Agrees));
        }
    }
    creating(&mut outcome, [conventional, noorder, softdep], sizes);
    deleting(&mut outcome, [conventional, noorder, softdep], sizes);
    figures(&mut outcome, modes, sizes);
    outcome
}

fn creating(outcome: &mut Outcome, [conventional, noorder, softdep]: [&Mode; 3], sizes: &[u64]) {
    let (first, last) = (sizes.first().copied().unwrap_or(0), sizes.last().copied().unwrap_or(0));
    let (size, least) = Gain::of(noorder, softdep, sizes, Phase::Create).least();
    let (calls_size, calls) = Gain::of_calls(noorder, softdep, sizes, Phase::Create).least();
    outcome.claim(Claim::new(
        "create: Soft Updates are as fast as No Order at every size (95 %), the calls alone",
        calls >= EQUAL,
        format!("at least {calls:.3} times ({})", size_name(calls_size)),
        Explain::Agrees,
    ));
    outcome.claim(Claim::new(
        "create: Soft Updates are as fast as No Order at every size (95 %), with all of it written back at the end",
        least >= EQUAL,
        format!("at least {least:.3} times ({})", size_name(size)),
        at_the_end(),
    ));
    let over = Gain::of(conventional, softdep, sizes, Phase::Create);
    let (_, least) = over.least();
    let (small, large) = (over.at(first).unwrap_or(0.0), over.at(last).unwrap_or(0.0));
    outcome.claim(Claim::new(
        "create: Soft Updates are faster than conventional at every size, and the gap closes with file size",
        least > 1.0 && small > 2.0 * large && large < 1.25,
        format!("{small:.2} times at {}, {large:.2} at {}", size_name(first), size_name(last)),
        Explain::Agrees,
    ));
    let writes = |mode: &Mode, size| at(sizes, &mode.writes, size).unwrap_or(0.0);
    let several = writes(conventional, first) - writes(softdep, first);
    outcome.claim(Claim::new(
        "create: conventional needs several disk writes more for each small file than Soft Updates",
        several >= 2.0,
        format!("{several:.2} more for each file of {}", size_name(first)),
        Explain::Agrees,
    ));
    let more = |size: &u64| writes(softdep, *size) / writes(noorder, *size);
    let most = sizes.iter().map(more).fold(0.0, f64::max);
    outcome.claim(Claim::new(
        "create: Soft Updates need about as many disk writes as No Order (within a quarter)",
        most <= 1.25,
        format!("at most {most:.2} times as many"),
        at_the_end(),
    ));
}

fn at_the_end() -> Explain {
    Explain::because(
        "the calls alone are as fast (rows above), so it is the sync at the end that takes longer; how much of that is \
         its order of writes has not been isolated",
    )
}

fn deleting(outcome: &mut Outcome, [_, noorder, softdep]: [&Mode; 3], sizes: &[u64]) {
    let (size, least) = Gain::of_calls(noorder, softdep, sizes, Phase::Delete).least();
    outcome.claim(Claim::new(
        "delete: Soft Updates are at least as fast as No Order at every size",
        least >= 1.0,
        format!("at least {least:.2} times ({}), the calls alone: files are cut in the background", size_name(size)),
        Explain::Agrees,
    ));
    let files = |mode: &Mode, size| found(&mode.rates, size).map_or(0.0, |at| at.rate_without_sync(Phase::Delete));
    let drop = |mode: &Mode| files(mode, 104 << 10) / files(mode, 96 << 10);
    let (without, with) = (drop(noorder), drop(softdep));
    outcome.claim(Claim::new(
        "delete: the drop at the first indirect block (96 to 104 KB) is No Order's",
        without < 0.6 && with > without,
        format!("No Order drops to {without:.2} of the rate, Soft Updates to {with:.2}"),
        Explain::Agrees,
    ));
}
