//! Cleaning in idle time against cleaning at need, under work that comes in bursts.

use super::{DRIVE, MACHINE};
use crate::parallel::each;
use crate::testbed::{call, log};
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use kernel::Lab;
use lfs::Lfs;
use posix::{Call, Fd, FileSystem as _, Mode, OpenFlags};
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lfs95/idle-cleaning",
    title: "Bursts of writes with pauses: a cleaner that works in idle time against one that works at need",
    source: "Seltzer et al., File System Logging Versus Clustering, USENIX 1995, section 7, after Blackwell, Harris \
             and Seltzer, Heuristic Cleaning Algorithms in Log-Structured File Systems, USENIX 1995",
    runs: "pages at random places of one file are written over in bursts, with pauses between them, on a log that the \
           file fills to 60 %; by the size of a burst and the length of a pause: throughput of the bursts, how long a \
           call waits, and what the cleaner does in bursts and in pauses",
    run,
};

const MIB: f64 = (1 << 20) as f64;
const PAGE_BYTES: u64 = 4096;
/// Of the file system, the file's share.
const FULL: f64 = 0.6;
/// Nobody calls for so long before the cleaner takes it for idle time, milliseconds. A call that waits for the disk may
/// take a second.
const IDLE_MS: u64 = 2000;

/// The cleaner goes on until a fifth of the file system is clean; larger bursts than an eighth, with what goes with
/// their pages, need more.
const KEPT_CLEAN: u64 = 8;

/// When the log is cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cleaner {
    /// When few segments are clean, and no longer than until a few more are.
    AtNeed,
    /// When few are clean, and then until many are, whether somebody calls or not.
    Ahead,
    /// The same, and in idle time before few are.
    Idle,
    /// Never: as long as there is room.
    Off,
}

impl Cleaner {
    const ALL: [Cleaner; 4] = [Cleaner::AtNeed, Cleaner::Ahead, Cleaner::Idle, Cleaner::Off];

    fn name(self) -> &'static str {
        match self {
            Cleaner::AtNeed => "cleaned at need",
            Cleaner::Ahead => "cleaned ahead of need",
            Cleaner::Idle => "cleaned in idle time",
            Cleaner::Off => "not cleaned",
        }
    }

    fn target(self, scale: Scale) -> String {
        let own = match self {
            Cleaner::AtNeed => "low=4,high=5,idle=0".to_owned(),
            Cleaner::Ahead => "low=4,high=24,idle=0".to_owned(),
            Cleaner::Idle => format!("low=4,high=24,idle={IDLE_MS}"),
            Cleaner::Off => "cleaner=off,low=0".to_owned(),
        };
        let Scale { size_bytes, segment_bytes, .. } = scale;
        format!("lfs:{own},bsize=4K,fsize=4K,segment={segment_bytes},size={size_bytes}@{DRIVE}")
    }
}

#[derive(Clone, Copy, Debug)]
struct Scale {
    size_bytes: u64,
    segment_bytes: u64,
    /// Written in bursts before anything counts, and while it does, as shares of the file system.
    warm_up: f64,
    measured: f64,
}

impl Scale {
    /// Bursts that hold a share of the file system.
    fn bursts(self, share: f64, burst_bytes: u64) -> u64 {
        ((share * self.size_bytes as f64 / burst_bytes as f64).ceil() as u64).max(2)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    cleaner: Cleaner,
    burst_bytes: u64,
    pause_s: u64,
}

impl Case {
    /// What two cleaners have in common.
    fn work(self) -> String {
        format!("bursts of {} KiB, pauses of {} s", self.burst_bytes >> 10, self.pause_s)
    }
}

struct Found {
    case: Case,
    /// Bytes a second while somebody calls, until all of a burst is on the disk.
    rate: f64,
    /// What a call of 4 KB takes: one in a hundred takes longer than this, and the longest.
    late_ns: f64,
    longest_ns: f64,
    cleaned: Cleaned,
    /// Of the bursts, those in which the cleaner read.
    begun: f64,
}

/// Segments that were read to be cleaned.
#[derive(Clone, Copy, Debug, Default)]
struct Cleaned {
    in_bursts: u64,
    in_pauses: u64,
}

impl Cleaned {
    fn all(self) -> u64 {
        self.in_bursts + self.in_pauses
    }
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let scale = bench.pick(
        Scale { size_bytes: 32 << 20, segment_bytes: 128 << 10, warm_up: 0.5, measured: 0.5 },
        Scale { size_bytes: 256 << 20, segment_bytes: 1 << 20, warm_up: 1.0, measured: 1.0 },
    );
    let bursts: &[u64] = bench.pick(&[1 << 20], &[4 << 20, 16 << 20, 64 << 20]);
    let pauses: &[u64] = bench.pick(&[0, 30], &[0, 20, 60]);
    let seed = bench.seed();
    let mut cases = Vec::new();
    for &burst_bytes in bursts {
        for cleaner in Cleaner::ALL {
            cases.extend(pauses.iter().map(|&pause_s| Case { cleaner, burst_bytes, pause_s }));
        }
    }
    let found = each(bench, "bursts", &cases, |case| measure(*case, scale, seed))?;
    let mut outcome = Outcome::new();
    outcome.parameter("machine", MACHINE);
    for cleaner in Cleaner::ALL {
        outcome.parameter(cleaner.name(), cleaner.target(scale));
    }
    outcome
        .parameter("file", format!("{:.0} % of the file system; pages of 4 KB at random, written over", 100.0 * FULL));
    outcome.parameter("counted", "after as much as the file system holds has been written, as much again");
    rows(&mut outcome, &found);
    claims(&mut outcome, &found, scale);
    figures(&mut outcome, &found, bursts);
    Ok(outcome)
}

fn measure(case: Case, scale: Scale, seed: u64) -> Result<Found, ExperimentError> {
    let mut lab = log(&case.cleaner.target(scale), MACHINE)?;
    let file_bytes = (scale.size_bytes as f64 * FULL) as u64 / PAGE_BYTES * PAGE_BYTES;
    let open = Call::Open { at: "accounts".into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
    let failed = |errno| ExperimentError::Call { doing: "making the file".to_owned(), errno };
    let fd = lab.call(&open).fd().map_err(failed)?;
    for from in (0..file_bytes).step_by(1 << 20) {
        let len_bytes = (file_bytes - from).min(1 << 20);
        call(&mut lab, "filling the file", &Call::Write { fd, offset: Some(from), len_bytes, data: None })?;
    }
    call(&mut lab, "writing back", &Call::SyncFs)?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut bursts = Bursts { fd, pages: file_bytes / PAGE_BYTES, random: &mut random, calls_ns: Vec::new() };
    // What has no cleaner runs out of room: it has had none to wait for, and its first bursts are as its last.
    let (before, counted) = match case.cleaner {
        Cleaner::Off => (1, scale.bursts(0.1, case.burst_bytes).saturating_sub(1).max(1)),
        _ => (scale.bursts(scale.warm_up, case.burst_bytes), scale.bursts(scale.measured, case.burst_bytes)),
    };
    if case.cleaner != Cleaner::Off || case.burst_bytes <= scale.size_bytes / KEPT_CLEAN {
        for _ in 0..before {
            bursts.burst(&mut lab, case)?;
            lab.pause_ns(case.pause_s * 1_000_000_000);
        }
    }
    bursts.calls_ns.clear();
    let (mut busy_ns, mut begun, mut cleaned) = (0, 0_u64, Cleaned::default());
    for _ in 0..counted {
        let from = segments(&lab, scale);
        busy_ns += bursts.burst(&mut lab, case)?;
        let until = segments(&lab, scale);
        lab.pause_ns(case.pause_s * 1_000_000_000);
        begun += u64::from(until > from);
        cleaned.in_bursts += until - from;
        cleaned.in_pauses += segments(&lab, scale) - until;
    }
    let mut calls_ns = bursts.calls_ns;
    calls_ns.sort_by(f64::total_cmp);
    Ok(Found {
        case,
        rate: (counted * case.burst_bytes) as f64 / (busy_ns as f64 / 1e9),
        late_ns: stats::quantile(&calls_ns, 0.99),
        longest_ns: calls_ns.last().copied().unwrap_or(0.0),
        cleaned,
        begun: begun as f64 / counted as f64,
    })
}

/// Segments that the cleaner has read: what is live in them may be moved after a burst that they were read in.
fn segments(lab: &Lab<Lfs>, scale: Scale) -> u64 {
    lab.volume().counters().cleaner.read_bytes / scale.segment_bytes
}

struct Bursts<'a> {
    fd: Fd,
    pages: u64,
    random: &'a mut Xoshiro256PlusPlus,
    /// What each call has taken.
    calls_ns: Vec<f64>,
}

impl Bursts<'_> {
    /// Writes pages at random until a burst is on the disk; how long that takes.
    fn burst(&mut self, lab: &mut Lab<Lfs>, case: Case) -> Result<u64, ExperimentError> {
        let from_ns = lab.now_ns();
        for _ in 0..case.burst_bytes / PAGE_BYTES {
            let offset = Some(stats::random::below(self.random, self.pages) * PAGE_BYTES);
            let write = Call::Write { fd: self.fd, offset, len_bytes: PAGE_BYTES, data: None };
            let begun_ns = lab.now_ns();
            call(lab, "writing a page", &write)?;
            self.calls_ns.push((lab.now_ns() - begun_ns) as f64);
        }
        call(lab, "waiting for the disk", &Call::Fsync { fd: self.fd })?;
        Ok(lab.now_ns() - from_ns)
    }
}

/// Over bursts of the same size, with the same pauses, that nothing was cleaned for.
fn over_uncleaned(found: &[Found], of: &Found) -> f64 {
    let same = |f: &&Found| f.case == Case { cleaner: Cleaner::Off, ..of.case };
    found.iter().find(same).map_or(f64::NAN, |uncleaned| of.rate / uncleaned.rate)
}

fn rows(outcome: &mut Outcome, found: &[Found]) {
    for f in found {
        let (work, cleaner) = (f.case.work(), f.case.cleaner.name());
        let mut row = |what: &str, unit, ours| {
            let what = format!("{work}, {cleaner}: {what}");
            outcome.row(Row::new(what, unit, Published::NONE, ours, Explain::Agrees));
        };
        row("throughput in bursts", Unit::MibPerS, f.rate / MIB);
        if f.case.cleaner == Cleaner::Off {
            continue;
        }
        row("the same over bursts that nothing is cleaned for", Unit::Ratio, over_uncleaned(found, f));
        row("one call in a hundred takes longer than", Unit::Ns, f.late_ns);
        row("the longest call", Unit::Ns, f.longest_ns);
        row("segments read to be cleaned", Unit::Count, f.cleaned.all() as f64);
        if f.cleaned.all() > 0 {
            row("of them, in pauses", Unit::Share, f.cleaned.in_pauses as f64 / f.cleaned.all() as f64);
        }
        row("of the bursts, those in which some are", Unit::Share, f.begun);
    }
}

fn claims(outcome: &mut Outcome, found: &[Found], scale: Scale) {
    let longest = found.iter().map(|f| f.case.pause_s).max().unwrap_or(0);
    let of = |cleaner: Cleaner| found.iter().filter(move |f| f.case.cleaner == cleaner && f.case.pause_s == longest);
    let shown = |cleaner: Cleaner| {
        let one = |f: &Found| format!("{} KiB {:.2}", f.case.burst_bytes >> 10, over_uncleaned(found, f));
        of(cleaner).map(one).collect::<Vec<_>>().join(", ")
    };
    let fits = |f: &&Found| f.case.burst_bytes <= scale.size_bytes / KEPT_CLEAN;
    let free = of(Cleaner::Idle).filter(fits).all(|f| over_uncleaned(found, f) > 0.95);
    outcome.claim(Claim::new(
        "where pauses are long enough, cleaning in idle time costs bursts nothing that find room",
        free,
        format!(
            "pauses of {longest} s, over bursts that nothing is cleaned for: in idle time {}; at need {}",
            shown(Cleaner::Idle),
            shown(Cleaner::AtNeed)
        ),
        Explain::because(format!(
            "the cleaner reads in bursts too, in {} of them; one that does not look for idle time, with the same \
             marks: {}",
            of(Cleaner::Idle)
                .filter(fits)
                .map(|f| format!("{:.0} %", 100.0 * f.begun))
                .collect::<Vec<_>>()
                .join(" and "),
            shown(Cleaner::Ahead)
        )),
    ));
    let gains: Vec<String> = of(Cleaner::Idle)
        .zip(of(Cleaner::AtNeed))
        .map(|(idle, need)| format!("{} KiB {:.2} times", idle.case.burst_bytes >> 10, idle.rate / need.rate))
        .collect();
    outcome.claim(Claim::new(
        "bursts are no slower than where segments are cleaned at need",
        of(Cleaner::Idle).zip(of(Cleaner::AtNeed)).all(|(idle, need)| idle.rate > 0.95 * need.rate),
        format!("pauses of {longest} s: {}", gains.join(", ")),
        Explain::unknown(),
    ));
    let in_pauses: Vec<f64> = of(Cleaner::Idle)
        .filter(fits)
        .filter(|f| f.cleaned.all() > 0)
        .map(|f| f.cleaned.in_pauses as f64 / f.cleaned.all() as f64)
        .collect();
    outcome.claim(Claim::new(
        "nearly all segments are cleaned in idle time then",
        !in_pauses.is_empty() && in_pauses.iter().all(|share| *share > 0.9),
        in_pauses.iter().map(|share| format!("{:.0} %", 100.0 * share)).collect::<Vec<_>>().join(", "),
        Explain::because("the cleaner reads in bursts too, as above"),
    ));
}

fn figures(outcome: &mut Outcome, found: &[Found], bursts: &[u64]) {
    let mut series = Vec::new();
    for &burst_bytes in bursts {
        let panel = format!("bursts of {} KiB", burst_bytes >> 10);
        for cleaner in [Cleaner::Idle, Cleaner::Ahead, Cleaner::AtNeed] {
            let own = found.iter().filter(|f| f.case.cleaner == cleaner && f.case.burst_bytes == burst_bytes);
            let points = own.map(|f| (f.case.pause_s as f64, over_uncleaned(found, f)));
            series.push(Series::in_panel(&panel, cleaner.name(), points));
        }
    }
    outcome.figure(Figure {
        name: "throughput".to_owned(),
        title: "Throughput of bursts over that of bursts which nothing is cleaned for, by the length of pauses."
            .to_owned(),
        x: Axis::Number("pause, seconds".to_owned()),
        y: Axis::Ratio("over bursts that nothing is cleaned for".to_owned()),
        series,
    });
}
