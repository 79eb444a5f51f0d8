//! The comparison of 1995 on a disk and a flash drive of today.
//!
//! What lives here: the four phases by file size ([`sizes`]); updates in steady state on a flash drive that has been
//! full ([`updates`]), where log meets log; the log's half of that alone ([`bare`]); what is said of them
//! ([`findings`]).

mod bare;
mod findings;
mod sizes;
mod updates;

use crate::parallel::each;
use crate::testbed::Sequential;
use crate::{Bench, Experiment, ExperimentError, Outcome};
use bare::Layout;
use findings::All;
use sizes::{Curves, System};
use updates::{Case, Kind, MACHINE, Size};
use workload::Phase;
use workload::hotcold::Skew;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "beyond/modern",
    title: "LFS and FFS on a disk and a flash drive of today: by file size, and what file system and drive write for \
        an update",
    source: "ours; after Seltzer et al., File System Logging Versus Clustering, USENIX 1995, section 3, and Yang et \
             al., Don't Stack Your Log on My Log, INFLOW 2014",
    runs: "32 MB cut into files of each size on a nearline disk and an NVMe drive; then updates of 4 KB for ever, \
           uniformly and nine tenths of them to a tenth of the files, on an NVMe drive of 512 MB that has been full \
           once: bytes that the application, the file system and the drive's flash were given to write",
    run,
};

/// Over-provisioning of the drive as its file has it, and of one for servers.
const ORDINARY: f64 = 0.07;
const SERVER: f64 = 0.28;

/// The utilisation at which segments, fragments and over-provisioning are compared.
const AT: f64 = 0.55;

/// What every run of updates is compared at.
const SKEWS: [Skew; 2] = [Skew::Uniform, Skew::PAPER];

/// A log with fragments of 4 KB.
const fn lfs(policy: &'static str, segment_eighths: u64) -> Kind {
    Kind::Lfs { policy, segment_eighths, fragment_bytes: 4096 }
}

/// File system, discards and skew by utilisation; then what the segment's size, the fragment's and over-provisioning do
/// at one.
fn cases(utilisations: &[f64], eighths: &[u64]) -> Vec<Case> {
    let mut cases = Vec::new();
    let case =
        Case { kind: Kind::Ffs, discard: true, skew: Skew::Uniform, utilisation: AT, over_provisioning: ORDINARY };
    for skew in SKEWS {
        for kind in [Kind::Ffs, lfs("greedy", 8), lfs("cost-benefit", 8)] {
            for discard in [false, true] {
                cases.extend(utilisations.iter().map(|u| Case { kind, discard, skew, utilisation: *u, ..case }));
            }
        }
        // Those of eight are there already.
        cases.extend(eighths.iter().filter(|n| **n != 8).map(|n| Case { kind: lfs("greedy", *n), skew, ..case }));
        let small = Kind::Lfs { policy: "greedy", segment_eighths: 8, fragment_bytes: 1024 };
        cases.push(Case { kind: small, skew, ..case });
        for kind in [Kind::Ffs, lfs("cost-benefit", 8)] {
            cases.push(Case { kind, skew, discard: false, over_provisioning: SERVER, ..case });
        }
    }
    cases
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let sizes_kb = bench.pick(sizes::QUICK_KB.as_slice(), sizes::SIZES_KB.as_slice());
    let with = Sequential {
        data_bytes: bench.pick(512 << 10, 32 << 20),
        files_per_directory: 100,
        piece_bytes: 1 << 20,
        until: Phase::Delete,
    };
    let size =
        bench.pick(Size { smaller: 8, warm_up: 0.4, measured: 0.2 }, Size { smaller: 1, warm_up: 4.0, measured: 1.0 });
    let utilisations = bench.pick([0.55].as_slice(), [0.4, 0.55, 0.7].as_slice());
    let eighths = bench.pick([8, 16].as_slice(), [4, 6, 8, 9, 12, 32].as_slice());
    let cases = cases(utilisations, eighths);
    let seed = bench.seed();
    let curves = each(bench, "by file size", &sizes::points(sizes_kb), |point| sizes::measure(point, with, seed))?;
    let found = each(bench, "updates", &cases, |case| updates::measure(case, size, seed))?;
    let of_size = |n: &u64| [false, true].map(|superblocks| Layout { segment_eighths: *n, superblocks });
    let layouts: Vec<Layout> = eighths.iter().flat_map(of_size).collect();
    let bare = each(bench, "segments", &layouts, |layout| Ok((*layout, bare::measure(layout, size, seed)?)))?;
    let mut outcome = Outcome::new();
    outcome
        .parameter("machine", MACHINE)
        .parameter("by file size: drives", sizes::DRIVES.join(", "))
        .parameter("by file size: file systems", System::ALL.map(System::target).join("; "))
        .parameter(
            "by file size: data",
            format!("{} MiB of each size, 100 files a directory, calls of 1 MiB", with.data_bytes >> 20),
        )
        .parameter("updates", format!("of 4 KB, in files of {} KB", updates::FILE_BLOCKS * 4))
        .parameter(
            "updates: drive",
            format!(
                "{}{}; full once; then {} times its capacity written, and {} measured",
                updates::DRIVE,
                if size.smaller > 1 { format!(", a {}th of it", size.smaller) } else { String::new() },
                size.warm_up,
                size.measured
            ),
        );
    for kind in [Kind::Ffs, lfs("greedy", 8), lfs("cost-benefit", 8)] {
        let case = Case { kind, discard: true, skew: Skew::Uniform, utilisation: AT, over_provisioning: ORDINARY };
        outcome.parameter(&format!("updates: {}", case.system()), updates::target(&case, size)?);
    }
    sizes::report(&mut outcome, &Curves(curves));
    findings::report(&mut outcome, &All { found: &found, bare: &bare, utilisations, eighths }, size)?;
    Ok(outcome)
}
