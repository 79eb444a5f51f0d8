//! Relative performance by date, over ten months, beside utilisation.

use super::age::{Use, Utilisation, aged};
use super::relative::{Measure, PHASES, Relative, SIZES};
use super::{DRIVE, MACHINE, WORDS, file_system};
use crate::parallel::each;
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use aging::plan::personality::Churn;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lfs95/by-date",
    title: "Throughput on aged free space by date, beside utilisation",
    source: "Seltzer et al., File System Logging Versus Clustering, USENIX 1995, section 5, figures 8 and 9",
    runs: "six file systems of 512 MB, used for ten months by four personalities at utilisations that rise, stay or \
           fall; each month their free maps are taken, and files of 8 KB, 64 KB and 1 MB created and read on them and \
           on the same emptied",
    run,
};

const DAYS: u32 = 300;
/// Between two looks.
const MONTH: f64 = 30.0;
/// Looks in a tenth of the time.
const QUICK_DAYS: u32 = 30;

/// Half of the files go in the fifth month, and come back.
const CLEARED: &[[f64; 2]] = &[[0.0, 0.6], [120.0, 0.9], [135.0, 0.5], [300.0, 0.9]];
const RISING: &[[f64; 2]] = &[[0.0, 0.4], [300.0, 0.95]];
const STEADY: &[[f64; 2]] = &[[0.0, 0.75], [300.0, 0.75]];
const FULL: &[[f64; 2]] = &[[0.0, 0.9], [300.0, 0.9]];

/// The six: what they are used for, and how full they are by day. Those of the study are given by their names only.
const SYSTEMS: [(&str, &str, &[[f64; 2]]); 6] = [
    ("homes, rising", "home", RISING),
    ("homes, cleared in the fifth month", "home", CLEARED),
    ("build server, steady", "build", STEADY),
    ("build server, cleared in the fifth month", "build", CLEARED),
    ("mail server, rising", "mail", RISING),
    ("news spool, full", "news", FULL),
];

/// What a file system was like at one date.
struct Dated {
    day: f64,
    found: Relative,
}

type System = (&'static str, Vec<Dated>);

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let size_bytes = bench.pick(48 << 20, 512 << 20);
    let data_bytes = bench.pick(1 << 20, 32 << 20);
    let days = bench.pick(QUICK_DAYS, DAYS);
    let every = bench.pick(MONTH / 2.0, MONTH);
    let systems = bench.pick(&SYSTEMS[..1], &SYSTEMS[..]);
    let seed = bench.seed();
    let found: Vec<System> = each(bench, "file systems by date", systems, |(name, personality, by_day)| {
        let what = Use { personality, days, utilisation: Utilisation::ByDay(by_day), churn: Churn::Implied };
        let mut measure = Measure::new(WORDS, data_bytes, seed);
        let mut dates: Vec<Dated> = Vec::new();
        let mut look = |day: f64, volume: &ffs::Ffs| {
            // The last day is told of twice.
            if dates.last().is_none_or(|last| day - last.day > 1.0) {
                dates.push(Dated { day, found: measure.of(volume)? });
            }
            Ok(())
        };
        aged(file_system(size_bytes, 0)?, what, seed, Some((every, &mut look)))?;
        Ok((*name, dates))
    })?;
    let mut outcome = Outcome::new();
    outcome
        .parameter("machine", MACHINE)
        .parameter("drive", DRIVE)
        .parameter("file systems", format!("{} MiB, as in lfs95/fragmentation", size_bytes >> 20))
        .parameter("dates", format!("every {every:.0} of {days} days"))
        .parameter("utilisation", "straight lines chosen here: the study's are drawn only");
    rows(&mut outcome, &found);
    claims(&mut outcome, &found);
    figures(&mut outcome, &found);
    Ok(outcome)
}

/// Utilisation with the mean ratio, by date.
fn pairs(dates: &[Dated]) -> Vec<(f64, f64)> {
    dates.iter().map(|dated| (dated.found.used, dated.found.mean())).collect()
}

/// How far use moved.
fn range(dates: &[Dated]) -> f64 {
    let used = dates.iter().map(|dated| dated.found.used);
    used.clone().fold(0.0, f64::max) - used.fold(1.0, f64::min)
}

fn rows(outcome: &mut Outcome, found: &[System]) {
    for (name, dates) in found {
        for dated in dates {
            let mut row = |what: &str, unit, ours| {
                let what = format!("{name}, day {:.0}: {what}", dated.day);
                outcome.row(Row::new(what, unit, Published::NONE, ours, Explain::Agrees));
            };
            row("in use", Unit::Share, dated.found.used);
            row("aged over empty, mean", Unit::Ratio, dated.found.mean());
        }
    }
}

/// Use has to move by this much, as a share of the file system, to be followed.
const MOVES: f64 = 0.1;

fn claims(outcome: &mut Outcome, found: &[System]) {
    let moving: Vec<(&str, f64)> = found
        .iter()
        .filter(|(_, dates)| range(dates) > MOVES)
        .filter_map(|(name, dates)| Some((*name, stats::pearson(&pairs(dates))?)))
        .collect();
    let shown = moving.iter().map(|(name, r)| format!("{name} {r:.2}")).collect::<Vec<_>>().join(", ");
    outcome.claim(Claim::new(
        "throughput follows utilisation inversely",
        !moving.is_empty() && moving.iter().all(|(_, r)| *r < -0.5),
        format!("correlation over the dates: {shown}"),
        Explain::because(
            "it does where the plan moves utilisation. That of the steady build server moves only as checkouts and \
             builds come and go; why its throughput goes with it is not known",
        ),
    ));
    let falls = found.iter().filter_map(|(name, dates)| {
        let steps = dates.windows(2).filter_map(|pair| match pair {
            [before, after] => Some((before.found.used - after.found.used, before, after)),
            _ => None,
        });
        let (fall, before, after) = steps.max_by(|a, b| a.0.total_cmp(&b.0))?;
        (fall > MOVES).then(|| (*name, before.found.mean(), after.found.mean()))
    });
    let falls: Vec<(&str, f64, f64)> = falls.collect();
    if !falls.is_empty() {
        let shown = falls.iter().map(|(name, before, after)| format!("{name} {before:.2} to {after:.2}"));
        outcome.claim(Claim::new(
            "throughput recovers when files are deleted",
            falls.iter().all(|(_, before, after)| after > before),
            shown.collect::<Vec<_>>().join(", "),
            Explain::because("not known"),
        ));
    }
}

fn figures(outcome: &mut Outcome, found: &[System]) {
    let curve = |panel: &str, name: &str, dates: &[Dated], of: &dyn Fn(&Relative) -> f64| {
        Series::in_panel(panel, name, dates.iter().map(|dated| (dated.day, of(&dated.found))))
    };
    let mut series = Vec::new();
    for (name, dates) in found {
        series.push(curve("aged over empty, mean", name, dates, &Relative::mean));
        series.push(curve("in use", name, dates, &|found| found.used));
    }
    let days = || Axis::Days("day".to_owned());
    outcome.figure(Figure {
        name: "by-date".to_owned(),
        title: "Throughput on aged free space over that of the same emptied, and utilisation.".to_owned(),
        x: days(),
        y: Axis::Ratio("share".to_owned()),
        series,
    });
    for (at, phase) in PHASES.iter().enumerate() {
        let mut series = Vec::new();
        for (of, size) in SIZES.iter().enumerate() {
            for (name, dates) in found {
                let ratio =
                    |found: &Relative| found.ratios.get(at).and_then(|r| r.get(of)).copied().unwrap_or(f64::NAN);
                series.push(curve(&format!("{} KB", size >> 10), name, dates, &ratio));
            }
        }
        outcome.figure(Figure {
            name: phase.name().to_owned(),
            title: format!("{} throughput by date, aged over empty, by file size.", phase.name()),
            x: days(),
            y: Axis::Ratio("aged over empty".to_owned()),
            series,
        });
    }
}
