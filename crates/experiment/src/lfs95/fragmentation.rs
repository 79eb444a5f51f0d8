//! What the free space of aged file systems does to files written into it.

use super::age::{Use, Utilisation, aged};
use super::contiguity::{BLOCKS, ByBlocks, there, written};
use super::relative::{Measure, PHASES, Relative, SIZES};
use super::{DRIVE, MACHINE, NEWFS_POSITIONS, POSITIONS, WORDS, file_system_with};
use crate::parallel::each;
use crate::{
    Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Scale, Series, Unit,
    alloc96,
};
use aging::plan::personality::Churn;
use ffs::Ffs;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lfs95/fragmentation",
    title: "Free space of aged file systems: throughput against that of the same file system emptied",
    source: "Seltzer et al., File System Logging Versus Clustering, USENIX 1995, section 5",
    runs: "file, build and mail servers and a news spool, aged by personalities and by the 300 days of alloc96; of \
           each only the free maps are kept, and from them a file system is made again; creating and reading files of \
           8 KB, 64 KB and 1 MB on it and on the same emptied; how files of 2 and of 16 blocks lie, old and new ones; \
           then with eight rotational positions, and with other churns",
    run,
};

const fn used(personality: &'static str, days: u32, full: f64) -> Use {
    Use { personality, days, utilisation: Utilisation::AtLast(full), churn: Churn::Implied }
}

/// File systems, and what they have been used for. The first four are compared with one another.
const USES: [(&str, Use); 8] = [
    ("homes, 2 years, 60 % full", used("home", 730, 0.60)),
    ("homes, 2 years, 75 % full", used("home", 730, 0.75)),
    ("homes, 3 years, 75 % full", used("home", 1095, 0.75)),
    ("homes, 2 years, 90 % full", used("home", 730, 0.90)),
    ("build server, 2 years, 75 % full", used("build", 730, 0.75)),
    ("mail server, 2 years, 75 % full", used("mail", 730, 0.75)),
    ("news spool, 6 months, 90 % full", used("news", 180, 0.90)),
    ("news spool, 1 year, 90 % full", used("news", 365, 0.90)),
];
/// The same at a quick scale.
const QUICK_USES: [(&str, Use); 1] = [("homes, 20 days, 75 % full", used("home", 20, 0.75))];

/// Those whose churn is varied, by their numbers in [`USES`], and shares of what their personalities imply.
const SWEPT: [usize; 3] = [4, 5, 6];
const CHURNS: [f64; 3] = [0.125, 2.0, 0.5];

/// One that is aged and measured with eight rotational positions besides.
const POSITIONED: usize = 1;

/// The homes of `alloc96`.
const ALLOC96: &str = "homes of alloc96";

/// One aged file system against itself emptied.
struct Compared {
    name: String,
    /// Whether it is of the kind for which the publication gives a worst case of its own.
    is_news: bool,
    /// Bytes written a day, as a share of what users may use; unknown for that of `alloc96`.
    churn: Option<f64>,
    found: Relative,
    /// How files of two and of sixteen blocks lie: those that are there, and new ones; not looked at where something is
    /// varied.
    contiguity: Option<[ByBlocks; 2]>,
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let size_bytes = bench.pick(48 << 20, 512 << 20);
    let data_bytes = bench.pick(2 << 20, 32 << 20);
    let seed = bench.seed();
    let full = bench.scale() == Scale::Full;
    let measure = |volume: &Ffs| Measure::new(WORDS, data_bytes, seed).of(volume);
    let on = |name: &str, what: Use, positions: u32| -> Result<(Compared, Ffs, String), ExperimentError> {
        let aged = aged(file_system_with(size_bytes, 0, positions, WORDS)?, what, seed, None)?;
        let note = format!("{name}: aged by {} operations; {} files at the end.", aged.operations, aged.files);
        let (name, is_news) = (name.to_owned(), name.starts_with("news"));
        let found = measure(&aged.volume)?;
        Ok((Compared { name, is_news, churn: Some(aged.churn), found, contiguity: None }, aged.volume, note))
    };
    let lie = |volume: &Ffs| Ok::<_, ExperimentError>(Some([there(volume)?, written(volume, WORDS)?]));
    let uses = bench.pick(&QUICK_USES[..], &USES[..]);
    let of_alloc96 = if full { Some(alloc96::aged::aged(bench, "original,noorder")?.volume.clone()) } else { None };
    let aged = each(bench, "aging", uses, |(name, what)| {
        let (compared, volume, note) = on(name, *what, POSITIONS)?;
        Ok((Compared { contiguity: lie(&volume)?, ..compared }, note))
    })?;
    let (mut found, notes): (Vec<Compared>, Vec<String>) = aged.into_iter().unzip();
    if let Some(volume) = &of_alloc96 {
        let (name, relative, contiguity) = (ALLOC96.to_owned(), measure(volume)?, lie(volume)?);
        let homes = Compared { name, is_news: false, churn: None, found: relative, contiguity };
        found.push(homes);
    }
    let mut outcome = outcome(&found, size_bytes);
    outcome.parameter("other churns", bench.sweeps());
    let mut variants: Vec<(usize, String, Use, u32)> = Vec::new();
    if let Some((name, what)) = uses.get(if full { POSITIONED } else { 0 }) {
        variants.push((usize::MAX, format!("{name}, eight rotational positions"), *what, NEWFS_POSITIONS));
    }
    if full {
        for at in SWEPT {
            let (Some((name, what)), Some(churn)) = (USES.get(at), found.get(at).and_then(|f| f.churn)) else {
                continue;
            };
            for &share in bench.sweep(&CHURNS[..0], &CHURNS[..2], &CHURNS[..]) {
                let what = Use { churn: Churn::BytesPerDay(churn * share), ..*what };
                variants.push((at, format!("{name}, {share} times the churn"), what, POSITIONS));
            }
        }
    }
    let varied = each(bench, "aging otherwise", &variants, |(at, name, what, positions)| {
        Ok((*at, on(name, *what, *positions)?.0))
    })?;
    contiguous(&mut outcome, &found);
    positions(&mut outcome, &varied);
    churns(&mut outcome, &found, &varied);
    for note in notes {
        outcome.note(note);
    }
    Ok(outcome)
}

fn mean(found: &[Compared], of: impl Fn(&Compared) -> f64) -> f64 {
    found.iter().map(of).sum::<f64>() / found.len().max(1) as f64
}

fn outcome(found: &[Compared], size_bytes: u64) -> Outcome {
    let mut outcome = Outcome::new();
    let shape = format!(
        "{} MiB, 8 KiB blocks, clusters of 64 KiB, one rotational position, the original allocator",
        size_bytes >> 20
    );
    outcome
        .parameter("machine", MACHINE)
        .parameter("drive", DRIVE)
        .parameter("file systems", shape)
        .parameter("data", "32 MiB of each size, or three quarters of what is free; 25 files a directory");
    let not_known = || {
        Explain::because(
            "not known: of those measured then it is not published what was written to them, and by whom. An eighth to \
             twice the churn of a personality moves its mean by less than a tenth (below)",
        )
    };
    for system in found {
        let published = if system.is_news { Published::NONE } else { Published::about(0.90) };
        let what = format!("{}: aged over empty, mean", system.name);
        outcome.row(Row::new(what, Unit::Ratio, published, system.found.mean(), not_known()));
    }
    for system in found {
        let published = Published::about(if system.is_news { 0.70 } else { 0.85 });
        let what = format!("{}: aged over empty, at worst", system.name);
        outcome.row(Row::new(what, Unit::Ratio, published, system.found.worst(), not_known()));
    }
    for (at, size) in SIZES.iter().enumerate() {
        let what = format!("mean over all, {} KB files: aged over empty", size >> 10);
        let ours = mean(found, |s| s.found.of_size(at));
        outcome.row(Row::new(what, Unit::Ratio, Published::NONE, ours, Explain::Agrees));
    }
    for system in found {
        let mut row = |what: &str, ours| {
            let what = format!("{}: {what}", system.name);
            outcome.row(Row::new(what, Unit::Share, Published::NONE, ours, Explain::Agrees));
        };
        row("in use", system.found.used);
        if let Some(churn) = system.churn {
            row("written a day, of what users may use", churn);
        }
        row("of free space, in clusters of 64 KB or more", system.found.in_clusters);
        let [front, back] = system.found.ends();
        row("of free space in the front quarter of its groups, in clusters", front);
        row("of free space in the back quarter of its groups, in clusters", back);
    }
    claims(&mut outcome, found);
    for (at, phase) in PHASES.iter().enumerate() {
        let curve = |system: &Compared| {
            let values = system.found.ratios.get(at).copied().unwrap_or_default();
            Series::new(&system.name, SIZES.iter().map(|size| *size as f64).zip(values))
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

/// How much of small and of larger files lies in one piece.
fn contiguous(outcome: &mut Outcome, found: &[Compared]) {
    for system in found {
        let Some(each) = &system.contiguity else { continue };
        for (which, scores) in ["files", "new files"].iter().zip(each) {
            for (blocks, score) in BLOCKS.iter().zip(scores) {
                // A young file system may have none of a size.
                let Some(share) = score.value() else { continue };
                let what = format!("{}: {which} of {blocks} blocks, behind the block before", system.name);
                outcome.row(Row::new(what, Unit::Share, Published::NONE, share, Explain::Agrees));
            }
        }
    }
}

/// What tables of rotational positions do to the same.
fn positions(outcome: &mut Outcome, varied: &[(usize, Compared)]) {
    for (_, system) in varied.iter().filter(|(at, _)| *at == usize::MAX) {
        for (at, size) in SIZES.iter().enumerate() {
            let what = format!("{}, {} KB files: aged over empty", system.name, size >> 10);
            outcome.row(Row::new(what, Unit::Ratio, Published::NONE, system.found.of_size(at), Explain::Agrees));
        }
    }
}

/// The same use with more and less written a day.
fn churns(outcome: &mut Outcome, found: &[Compared], varied: &[(usize, Compared)]) {
    let mut series = Vec::new();
    for at in SWEPT {
        let own = varied.iter().filter(|(of, _)| *of == at).map(|(_, system)| system);
        let mut own: Vec<&Compared> = own.chain(found.get(at)).filter(|system| system.churn.is_some()).collect();
        own.sort_by(|a, b| a.churn.unwrap_or(0.0).total_cmp(&b.churn.unwrap_or(0.0)));
        if own.len() < 2 {
            continue;
        }
        for system in &own {
            let mut row = |what: &str, unit, ours| {
                let what = format!("churn, {}: {what}", system.name);
                outcome.row(Row::new(what, unit, Published::NONE, ours, Explain::Agrees));
            };
            row("written a day, of what users may use", Unit::Share, system.churn.unwrap_or(0.0));
            row("of free space, in clusters", Unit::Share, system.found.in_clusters);
            row("aged over empty, mean", Unit::Ratio, system.found.mean());
            row("aged over empty, at worst", Unit::Ratio, system.found.worst());
        }
        let name = found.get(at).map_or("", |system| system.name.as_str());
        series.push(Series::new(name, own.iter().map(|s| (s.found.in_clusters, s.found.mean()))));
    }
    if !series.is_empty() {
        outcome.figure(Figure {
            name: "churn".to_owned(),
            title: "Aged over empty by the share of free space in clusters, each use at several churns.".to_owned(),
            x: Axis::Share("of free space, in clusters".to_owned()),
            y: Axis::Ratio("aged over empty, mean".to_owned()),
            series,
        });
    }
}

fn claims(outcome: &mut Outcome, found: &[Compared]) {
    let servers: Vec<f64> = found.iter().filter(|s| !s.is_news).flat_map(|s| s.found.all()).collect();
    let within = servers.iter().filter(|ratio| **ratio >= 0.85).count();
    outcome.claim(Claim::new(
        "file servers run at 85 % of empty or more in most cases",
        2 * within > servers.len(),
        format!("{within} of {} figures", servers.len()),
        Explain::Agrees,
    ));
    let worst =
        |news: bool| found.iter().filter(|s| s.is_news == news).map(|s| s.found.worst()).fold(f64::INFINITY, f64::min);
    if found.iter().any(|s| s.is_news) {
        outcome.claim(Claim::new(
            "a news spool loses most",
            worst(true) < worst(false),
            format!("at worst {:.2} of empty; others {:.2}", worst(true), worst(false)),
            Explain::because("not known"),
        ));
    }
    let [small, middle, large]: [f64; SIZES.len()] = std::array::from_fn(|at| mean(found, |s| s.found.of_size(at)));
    let seen = format!("8 KB {small:.2}, 64 KB {middle:.2}, 1 MB {large:.2} of empty");
    outcome.claim(Claim::new(
        "64 KB files suffer most",
        middle < small.min(large),
        seen.clone(),
        Explain::because("not known"),
    ));
    let least = found.iter().filter(|s| s.found.of_size(2) > s.found.of_size(0)).count();
    outcome.claim(Claim::new(
        "1 MB files suffer least",
        large > small,
        format!("{seen}; 1 MB files less than 8 KB files in {least} of {} file systems", found.len()),
        Explain::because(
            "not known; with eight rotational positions files of 8 KB gain from age (below), so that it is not these. \
             The two are close",
        ),
    ));
    let front = found.iter().filter(|s| s.found.ends()[0] < s.found.ends()[1]).count();
    outcome.claim(Claim::new(
        "free space at the front of cylinder groups is more fragmented than at their back",
        2 * front > found.len(),
        format!("in {front} of {} file systems a smaller share of it is in clusters", found.len()),
        Explain::because("not known"),
    ));
    let named = |at: usize| {
        let name = USES.get(at).map_or("", |(name, _)| name);
        found.iter().find(|s| s.name == name).map(|s| s.found.mean())
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
