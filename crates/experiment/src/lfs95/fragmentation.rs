//! What the free space of aged file systems does to files written into it.

use super::age::{Use, aged};
use super::{DRIVE, MACHINE, file_system, laboratory};
use crate::testbed::{AtSize, Sequential, sequential};
use crate::{
    Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Scale, Series, Unit,
    alloc96,
};
use ffs::{Ffs, FreeMaps, GroupNo};
use workload::Phase;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lfs95/fragmentation",
    title: "Free space of aged file systems: throughput against that of the same file system emptied",
    source: "Seltzer et al., File System Logging Versus Clustering, USENIX 1995, section 5",
    runs: "file, build and mail servers and a news spool, aged by personalities and by the 300 days of alloc96; of each only the \
           free maps are kept, and from them a file system is made again; creating and reading files of 8 KB, 64 KB and 1 MB \
           on it and on the same emptied",
    run,
};

const SIZES: [u64; 3] = [8 << 10, 64 << 10, 1 << 20];
const PHASES: [Phase; 2] = [Phase::Create, Phase::Read];

/// File systems, and what they have been used for. The first four are compared with one another.
const USES: [(&str, Use); 8] = [
    ("homes, 2 years, 60 % full", Use { personality: "home", days: 730, full: 0.60 }),
    ("homes, 2 years, 75 % full", Use { personality: "home", days: 730, full: 0.75 }),
    ("homes, 3 years, 75 % full", Use { personality: "home", days: 1095, full: 0.75 }),
    ("homes, 2 years, 90 % full", Use { personality: "home", days: 730, full: 0.90 }),
    ("build server, 2 years, 75 % full", Use { personality: "build", days: 730, full: 0.75 }),
    ("mail server, 2 years, 75 % full", Use { personality: "mail", days: 730, full: 0.75 }),
    ("news spool, 6 months, 90 % full", Use { personality: "news", days: 180, full: 0.90 }),
    ("news spool, 1 year, 90 % full", Use { personality: "news", days: 365, full: 0.90 }),
];
/// The same at a quick scale.
const QUICK_USES: [(&str, Use); 1] = [("homes, 20 days, 75 % full", Use { personality: "home", days: 20, full: 0.75 })];

/// One aged file system against itself emptied.
struct Compared {
    name: &'static str,
    /// Whether it is of the kind for which the publication gives a worst case of its own.
    is_news: bool,
    /// Share in use of what users may use.
    used: f64,
    /// Free space in runs of whole blocks that are at least a cluster long, as a share of all.
    in_clusters: f64,
    /// By phase, by size.
    relative: [[f64; SIZES.len()]; PHASES.len()],
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let size_bytes = bench.pick(48 << 20, 512 << 20);
    let uses = bench.pick(&QUICK_USES[..], &USES[..]);
    let mut found = Vec::new();
    let mut notes = Vec::new();
    for (name, what) in uses {
        let aged = aged(bench, file_system(size_bytes, 0)?, *what)?;
        notes.push(format!("{name}: aged by {} operations; {} files at the end.", aged.operations, aged.files));
        found.push(compare(bench, name, &aged.volume)?);
    }
    if bench.scale() == Scale::Full {
        let homes = alloc96::aged::aged(bench, "original,noorder")?;
        found.push(compare(bench, "homes of alloc96", &homes.volume)?);
    }
    let mut outcome = outcome(&found, size_bytes);
    for note in notes {
        outcome.note(note);
    }
    Ok(outcome)
}

fn compare(bench: &mut Bench<'_>, name: &'static str, volume: &Ffs) -> Result<Compared, ExperimentError> {
    let maps = FreeMaps::of(volume)?;
    let with = Sequential {
        // All of it has to fit into what is free for users.
        data_bytes: bench.pick(2 << 20, 32 << 20).min(available_bytes(volume) / 4 * 3),
        files_per_directory: 25,
        piece_bytes: 1 << 20,
    };
    let mut on = |maps: &FreeMaps, what: &str| {
        let volume = Ffs::from_free_maps(maps, alloc96::policy("original")?)?;
        sequential(bench, &format!("{name}, {what}"), &volume, laboratory, &SIZES, with)
    };
    let (aged, empty) = (on(&maps, "aged")?, on(&maps.emptied()?, "emptied")?);
    let ratio = |phase: Phase, at: usize| {
        let rate = |found: &[AtSize]| found.get(at).map_or(0.0, |found| found.rate(phase));
        rate(&aged) / rate(&empty).max(f64::MIN_POSITIVE)
    };
    let free = volume.space().free_frags() as f64;
    let (total, reserve) = (volume.tuning().dsize as f64, volume.tuning().reserve as f64);
    Ok(Compared {
        name,
        is_news: name.starts_with("news"),
        used: (total - free) / (total - reserve),
        in_clusters: in_clusters(volume) as f64 / free.max(1.0),
        relative: PHASES.map(|phase| std::array::from_fn(|at| ratio(phase, at))),
    })
}

fn available_bytes(volume: &Ffs) -> u64 {
    let frags = volume.tuning().available(volume.space().free_frags());
    u64::try_from(frags).unwrap_or(0) << volume.geometry().fshift
}

/// Free fragments in runs of whole blocks that are at least a cluster long.
fn in_clusters(volume: &Ffs) -> u64 {
    let g = volume.geometry();
    let least = volume.tuning().maxcontig * u64::from(g.frag);
    let mut frags = 0;
    for group in (0..g.ncg).map(GroupNo) {
        volume.space().free_runs(group, &mut |from, len| {
            let first = from.next_multiple_of(g.frag);
            let whole = u64::from((from + len).saturating_sub(first) / g.frag * g.frag);
            if whole >= least {
                frags += whole;
            }
        });
    }
    frags
}

impl Compared {
    fn all(&self) -> impl Iterator<Item = f64> {
        self.relative.iter().flatten().copied()
    }

    fn mean(&self) -> f64 {
        self.all().sum::<f64>() / self.all().count().max(1) as f64
    }

    fn worst(&self) -> f64 {
        self.all().fold(f64::INFINITY, f64::min)
    }

    /// Mean of both phases at one size.
    fn of_size(&self, at: usize) -> f64 {
        self.relative.iter().filter_map(|phase| phase.get(at)).sum::<f64>() / PHASES.len() as f64
    }
}

fn mean(found: &[Compared], of: impl Fn(&Compared) -> f64) -> f64 {
    found.iter().map(of).sum::<f64>() / found.len().max(1) as f64
}

fn outcome(found: &[Compared], size_bytes: u64) -> Outcome {
    let mut outcome = Outcome::new();
    let shape = format!("{} MiB, 8 KiB blocks, clusters of 64 KiB, the original allocator", size_bytes >> 20);
    outcome
        .parameter("machine", MACHINE)
        .parameter("drive", DRIVE)
        .parameter("file systems", shape)
        .parameter("data", "32 MiB of each size, or three quarters of what is free; 25 files a directory");
    let smaller_pieces = || {
        Explain::because(
            "its free space is in smaller pieces than that of the file systems measured then; how much a personality turns \
             over is an estimate",
        )
    };
    for system in found {
        let published = if system.is_news { Published::NONE } else { Published::about(0.90) };
        let what = format!("{}: aged over empty, mean", system.name);
        outcome.row(Row::new(what, Unit::Ratio, published, system.mean(), smaller_pieces()));
    }
    for system in found {
        let published = Published::about(if system.is_news { 0.70 } else { 0.85 });
        let what = format!("{}: aged over empty, at worst", system.name);
        outcome.row(Row::new(what, Unit::Ratio, published, system.worst(), smaller_pieces()));
    }
    for (at, size) in SIZES.iter().enumerate() {
        let what = format!("mean over all, {} KB files: aged over empty", size >> 10);
        outcome.row(Row::new(what, Unit::Ratio, Published::NONE, mean(found, |s| s.of_size(at)), Explain::Agrees));
    }
    for system in found {
        let mut row = |what: &str, ours| {
            let what = format!("{}: {what}", system.name);
            outcome.row(Row::new(what, Unit::Share, Published::NONE, ours, Explain::Agrees));
        };
        row("in use", system.used);
        row("of free space, in clusters of 64 KB or more", system.in_clusters);
    }
    claims(&mut outcome, found);
    for (at, phase) in PHASES.iter().enumerate() {
        let curve = |system: &Compared| {
            let values = system.relative.get(at).copied().unwrap_or_default();
            Series::new(system.name, SIZES.iter().map(|size| *size as f64).zip(values))
        };
        outcome.figure(Figure {
            name: phase.name().to_owned(),
            title: format!("{} throughput, aged over empty", phase.name()),
            x: Axis::Bytes("file size".to_owned()),
            y: Axis::Ratio("aged over empty".to_owned()),
            series: found.iter().map(curve).collect(),
        });
    }
    outcome
}

fn claims(outcome: &mut Outcome, found: &[Compared]) {
    let servers: Vec<f64> = found.iter().filter(|s| !s.is_news).flat_map(Compared::all).collect();
    let within = servers.iter().filter(|ratio| **ratio >= 0.85).count();
    outcome.claim(Claim::new(
        "file servers run at 85 % of empty or more in most cases",
        2 * within > servers.len(),
        format!("{within} of {} figures", servers.len()),
        Explain::Agrees,
    ));
    let worst =
        |news: bool| found.iter().filter(|s| s.is_news == news).map(Compared::worst).fold(f64::INFINITY, f64::min);
    if found.iter().any(|s| s.is_news) {
        outcome.claim(Claim::new(
            "a news spool loses most",
            worst(true) < worst(false),
            format!("at worst {:.2} of empty; others {:.2}", worst(true), worst(false)),
            Explain::because(
                "the homes of alloc96, which are among the others, write about a hundred times their file system in ten \
                 months; that turns free space over as a spool does",
            ),
        ));
    }
    let [small, middle, large]: [f64; SIZES.len()] = std::array::from_fn(|at| mean(found, |s| s.of_size(at)));
    outcome.claim(Claim::new(
        "64 KB files suffer most, 1 MB files least",
        middle < small && small < large,
        format!("8 KB {small:.2}, 64 KB {middle:.2}, 1 MB {large:.2} of empty"),
        Explain::because(
            "the first block of a file is asked for at the beginning of its group; in an empty one the allocator takes the rotationally \
             nearest blocks of the first cylinder, and reading one 8 KB file after another waits for the disk each time, while in \
             an aged group they lie behind one another in the holes of the map",
        ),
    ));
    let named = |at: usize| {
        let name = USES.get(at).map_or("", |(name, _)| name);
        found.iter().find(|s| s.name == name).map(Compared::mean)
    };
    if let [Some(less_full), Some(young), Some(old), Some(full)] = [0, 1, 2, 3].map(named) {
        outcome.claim(Claim::new(
            "utilisation matters more than age",
            less_full - full > (young - old).abs(),
            format!("60 to 90 % full: {less_full:.2} to {full:.2}; 2 to 3 years: {young:.2} to {old:.2}"),
            Explain::Agrees,
        ));
    }
}
