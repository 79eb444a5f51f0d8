//! Where the log wins and where the Fast File System does: by operation, size of file, and use of the disk.
//!
//! The study ends with a summary of these regions. New file systems are those of `lfs95/file-size`, random updates
//! those of `lfs95/tpcb`; used ones are made here.

use super::{DRIVE, MACHINE, POSITIONS, WORDS, file_size, file_system_with, laboratory, tpcb};
use crate::parallel::each;
use crate::testbed::{AtSize, at_size, call, log};
use crate::{
    Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, TOLERANCE, Unit,
};
use posix::{At, Call, FileSystem, Mode, OpenFlags};
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use workload::Phase;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lfs95/regions",
    title: "Regions of dominance: LFS or FFS, by operation, file size and use of the disk",
    source: "Seltzer et al., File System Logging Versus Clustering, USENIX 1995, section 7",
    runs: "the runs of lfs95/file-size on new file systems and of lfs95/tpcb by utilisation; and the four phases on \
           file systems that were filled with files of many sizes, of which some were removed at random: LFS with its \
           cleaner, and FFS",
    run,
};

const K: u64 = 1 << 10;
const SIZES_KB: [u64; 8] = [1, 4, 16, 64, 104, 256, 1024, 4096];
const QUICK_KB: [u64; 3] = [1, 64, 1024];
const PHASES: [Phase; 4] = [Phase::Create, Phase::Read, Phase::Overwrite, Phase::Delete];
/// Shares in use when files are made on used file systems.
const USED: [f64; 3] = [0.50, 0.70, 0.85];
/// Filled so far before any are removed.
const FILLED: f64 = 0.93;
/// Sizes of the files that fill them: uniform in their logarithm.
const FILLING: (f64, f64) = (1024.0, 262_144.0);
const FILES_PER_DIRECTORY: u64 = 100;
/// Then nobody calls for an hour: the cleaner comes to its upper mark.
const REST_NS: u64 = 3_600_000_000_000;
/// Nobody wins who is not faster by this: as near as that counts as the same wherever figures are compared here.
const LEVEL: f64 = 1.0 + TOLERANCE;

/// What a file system was like before the files were made.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    New,
    /// With so much in use.
    Used(f64),
}

impl State {
    fn name(self) -> String {
        match self {
            State::New => "new".to_owned(),
            State::Used(share) => format!("{:.0} % in use", 100.0 * share),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    Lfs,
    /// The same log, with a cleaner that does not begin while the files are made and read: what is clean after the hour
    /// is enough.
    LfsAtRest,
    Ffs,
}

impl System {
    const ALL: [System; 3] = [System::Lfs, System::LfsAtRest, System::Ffs];
}

/// LFS over FFS.
#[derive(Clone, Copy, Debug)]
struct Lead {
    state: State,
    phase: Phase,
    kb: u64,
    ratio: f64,
}

/// Who wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Winner {
    Lfs,
    Level,
    Ffs,
}

impl Winner {
    fn of(ratio: f64) -> Winner {
        match ratio {
            r if r >= LEVEL => Winner::Lfs,
            r if r <= 1.0 / LEVEL => Winner::Ffs,
            _ => Winner::Level,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Winner::Lfs => "LFS",
            Winner::Level => "level",
            Winner::Ffs => "FFS",
        }
    }
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let sizes: &[u64] = bench.pick(&QUICK_KB, &SIZES_KB);
    let mut leads = Vec::new();
    for (kb, [lfs, ffs]) in sizes.iter().zip(file_size::new_ones(bench, sizes)?) {
        leads.extend(PHASES.map(|phase| lead(State::New, phase, *kb, [&lfs, &ffs])));
    }
    let size_bytes: u64 = bench.pick(48 << 20, 512 << 20);
    let used: &[f64] = bench.pick(&USED[..1], &USED);
    let (with, seed) = (file_size::sequential(bench), bench.seed());
    let points: Vec<(f64, System)> = used.iter().flat_map(|share| System::ALL.map(|system| (*share, system))).collect();
    let found = each(bench, "used file systems", &points, |(share, system)| {
        let filled = fill(*system, size_bytes, *share, seed)?;
        let mut at = Vec::new();
        for kb in sizes {
            // Every size finds the same.
            let Some(mut again) = filled.duplicate() else { break };
            at.push(at_size(&mut *again, kb * K, with, seed)?);
        }
        Ok(at)
    })?;
    let mut at_rest = Vec::new();
    for (share, systems) in used.iter().zip(found.chunks_exact(System::ALL.len())) {
        let [lfs, resting, ffs] = systems else { continue };
        for (((kb, lfs), resting), ffs) in sizes.iter().zip(lfs).zip(resting).zip(ffs) {
            leads.extend(PHASES.map(|phase| lead(State::Used(*share), phase, *kb, [lfs, ffs])));
            at_rest.push(lead(State::Used(*share), Phase::Read, *kb, [resting, ffs]));
        }
    }
    let updates = tpcb::leads(bench)?;
    let mut outcome = Outcome::new();
    outcome
        .parameter("machine", MACHINE)
        .parameter("drive", DRIVE)
        .parameter("new file systems", "as in lfs95/file-size: FFS m8r0, LFS without its cleaner")
        .parameter("used ones, LFS", lfs_target(System::Lfs, size_bytes))
        .parameter("used ones, LFS whose cleaner rests", lfs_target(System::LfsAtRest, size_bytes))
        .parameter(
            "used ones",
            format!(
                "filled to {:.0} % with files of 1 to 256 KiB, each size as often as its double; then files removed at \
                 random, and an hour without calls. The share in use is that before {} MiB more are written",
                100.0 * FILLED,
                with.data_bytes >> 20
            ),
        )
        .parameter("random updates", "as in lfs95/tpcb")
        .parameter("level", format!("neither is {LEVEL} times as fast as the other"));
    show(&mut outcome, &leads, &updates);
    for lead in &at_rest {
        let what = format!("read, {}, {} KB, a cleaner that rests meanwhile: LFS over FFS", lead.state.name(), lead.kb);
        outcome.row(Row::new(what, Unit::Ratio, Published::NONE, lead.ratio, Explain::Agrees));
    }
    claims(&mut outcome, &leads, &updates);
    Ok(outcome)
}

fn lead(state: State, phase: Phase, kb: u64, [lfs, ffs]: [&AtSize; 2]) -> Lead {
    Lead { state, phase, kb, ratio: lfs.rate(phase) / ffs.rate(phase) }
}

/// Segments as the publication has them; cleaned when few are clean.
fn lfs_target(system: System, size_bytes: u64) -> String {
    let segment = if size_bytes > 64 << 20 { "1M" } else { "128K" };
    let low = if system == System::LfsAtRest { "low=1," } else { "" };
    format!("lfs:{low}bsize=8K,fsize=1K,segment={segment},idle=0,size={size_bytes}@{DRIVE}")
}

/// A file system of which files have been removed.
fn fill(system: System, size_bytes: u64, share: f64, seed: u64) -> Result<Box<dyn FileSystem>, ExperimentError> {
    let mut fs: Box<dyn FileSystem> = match system {
        System::Lfs | System::LfsAtRest => Box::new(log(&lfs_target(system, size_bytes), MACHINE)?),
        System::Ffs => Box::new(laboratory(file_system_with(size_bytes, 0, POSITIONS, WORDS)?)?),
    };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (least, most) = FILLING;
    let mut files: Vec<u64> = Vec::new();
    while in_use(&mut *fs)? < FILLED {
        let number = files.len() as u64;
        let bytes = (least.ln() + stats::random::unit(&mut random) * (most / least).ln()).exp() as u64;
        if number.is_multiple_of(FILES_PER_DIRECTORY) {
            let directory = format!("d{}", number / FILES_PER_DIRECTORY);
            call(&mut *fs, "making a directory", &Call::Mkdir { at: At::from(directory.as_str()), mode: Mode(0o755) })?;
        }
        let path = path(number);
        let open = Call::Open { at: path.as_str().into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
        let fd =
            fs.call(&open).fd().map_err(|errno| ExperimentError::Call { doing: format!("making {path}"), errno })?;
        call(&mut *fs, "writing", &Call::Write { fd, offset: None, len_bytes: bytes, data: None })?;
        call(&mut *fs, "closing", &Call::Close { fd })?;
        files.push(number);
    }
    while in_use(&mut *fs)? > share {
        let number = files.swap_remove(stats::random::index(&mut random, files.len()));
        call(&mut *fs, "removing a file", &Call::Unlink { at: path(number).as_str().into() })?;
    }
    call(&mut *fs, "writing back", &Call::SyncFs)?;
    fs.pause_ns(REST_NS);
    Ok(fs)
}

fn path(number: u64) -> String {
    format!("d{}/{number}", number / FILES_PER_DIRECTORY)
}

/// Of what users may use.
fn in_use(fs: &mut dyn FileSystem) -> Result<f64, ExperimentError> {
    let failed = |error| ExperimentError::Io { doing: "looking at the free space".to_owned(), error };
    let usage = fs.usage().map_err(failed)?;
    let room = usage.total_bytes - (usage.free_bytes - usage.available_bytes);
    Ok(1.0 - usage.available_bytes as f64 / room as f64)
}

/// The states in the order in which they were looked at.
fn states(leads: &[Lead]) -> Vec<State> {
    let mut states: Vec<State> = leads.iter().map(|lead| lead.state).collect();
    states.dedup();
    states
}

fn of(leads: &[Lead], state: State, phase: Phase) -> Vec<Lead> {
    leads.iter().filter(|lead| (lead.state, lead.phase) == (state, phase)).copied().collect()
}

fn show(outcome: &mut Outcome, leads: &[Lead], updates: &[(f64, f64)]) {
    let mut series = Vec::new();
    for phase in PHASES {
        for state in states(leads) {
            let own = of(leads, state, phase);
            for lead in &own {
                let what = format!("{}, {}, {} KB: LFS over FFS", phase.name(), state.name(), lead.kb);
                outcome.row(Row::new(what, Unit::Ratio, Published::NONE, lead.ratio, Explain::Agrees));
            }
            let points = own.iter().map(|lead| ((lead.kb * K) as f64, lead.ratio));
            series.push(Series::in_panel(phase.name(), &state.name(), points));
            outcome.note(format!("{}, {}: {}.", phase.name(), state.name(), in_words(&own)));
        }
    }
    for (utilisation, ratio) in updates {
        let what =
            format!("random updates of a file, {:.0} % in use: LFS with its cleaner over FFS", 100.0 * utilisation);
        outcome.row(Row::new(what, Unit::Ratio, Published::NONE, *ratio, Explain::Agrees));
    }
    let words: Vec<String> = updates
        .iter()
        .map(|(utilisation, ratio)| format!("{} at {:.0} % in use", Winner::of(*ratio).name(), 100.0 * utilisation))
        .collect();
    outcome.note(format!("random updates of a file: {}.", words.join(", ")));
    outcome.figure(Figure {
        name: "regions".to_owned(),
        title: "LFS over FFS by file size, on new file systems and on used ones; above 1 LFS wins.".to_owned(),
        x: Axis::Bytes("file size".to_owned()),
        y: Axis::Ratio("LFS over FFS".to_owned()),
        series,
    });
    let updates = updates.iter().copied();
    outcome.figure(Figure {
        name: "updates".to_owned(),
        title: "LFS with its cleaner over FFS in random updates of a file, by utilisation.".to_owned(),
        x: Axis::Share("in use".to_owned()),
        y: Axis::Ratio("LFS over FFS".to_owned()),
        series: vec![Series::new("random updates", updates)],
    });
}

/// `LFS at 1 to 64 KB, level at 104 KB`.
fn in_words(leads: &[Lead]) -> String {
    let mut regions: Vec<(Winner, u64, u64)> = Vec::new();
    for lead in leads {
        let winner = Winner::of(lead.ratio);
        match regions.last_mut() {
            Some((last, _, to)) if *last == winner => *to = lead.kb,
            _ => regions.push((winner, lead.kb, lead.kb)),
        }
    }
    let region = |(winner, from, to): &(Winner, u64, u64)| {
        let sizes = if from == to { format!("{from} KB") } else { format!("{from} to {to} KB") };
        format!("{} at {sizes}", winner.name())
    };
    regions.iter().map(region).collect::<Vec<_>>().join(", ")
}

fn claims(outcome: &mut Outcome, leads: &[Lead], updates: &[(f64, f64)]) {
    let new = |phase, from: u64, to: u64| -> Vec<Lead> {
        of(leads, State::New, phase).into_iter().filter(|lead| (from..=to).contains(&lead.kb)).collect()
    };
    let shown = |leads: &[Lead]| {
        leads.iter().map(|lead| format!("{} KB {:.2}", lead.kb, lead.ratio)).collect::<Vec<_>>().join(", ")
    };
    let all = |leads: &[Lead], winner| leads.iter().all(|lead| Winner::of(lead.ratio) == winner);
    let mut claim = |what: &str, holds, seen, explain| {
        outcome.claim(Claim::new(what, holds, seen, explain));
    };
    let (create, delete) = (new(Phase::Create, 1, 64), new(Phase::Delete, 1, 64));
    claim(
        "creating and deleting files of up to 64 KB, new file systems: LFS wins",
        all(&create, Winner::Lfs) && all(&delete, Winner::Lfs),
        format!("create {}; delete {}", shown(&create), shown(&delete)),
        Explain::unknown(),
    );
    let large = new(Phase::Create, 1024, u64::MAX);
    claim(
        "creating files of 1 MB and more, new file systems: level",
        all(&large, Winner::Level),
        shown(&large),
        Explain::unknown(),
    );
    let read = new(Phase::Read, 1, 64);
    claim(
        "reading files of up to 64 KB, new file systems: level",
        all(&read, Winner::Level),
        shown(&read),
        Explain::because("in the mean it is (lfs95/file-size); why LFS leads with the smallest files is not known"),
    );
    let (small, large) = (new(Phase::Overwrite, 1, 104), new(Phase::Overwrite, 257, u64::MAX));
    claim(
        "overwriting, new file systems: LFS wins up to 256 KB, FFS beyond",
        all(&small, Winner::Lfs) && all(&large, Winner::Ffs),
        format!("{}; {}", shown(&small), shown(&large)),
        Explain::because(
            "the processor decides up to there, whose costs are estimates: lfs95/file-size has it with one that takes \
             no time",
        ),
    );
    let half: Vec<&(f64, f64)> = updates.iter().filter(|(utilisation, _)| *utilisation >= 0.5).collect();
    claim(
        "random updates of a file, half of the disk in use or more: LFS with its cleaner is no faster than FFS",
        half.iter().all(|(_, ratio)| Winner::of(*ratio) != Winner::Lfs),
        half.iter().map(|(u, ratio)| format!("{:.0} % {ratio:.2}", 100.0 * u)).collect::<Vec<_>>().join(", "),
        Explain::unknown(),
    );
}
