//! What cleaning costs by utilisation, and which segments there are then.

use super::{DRIVE, MACHINE};
use crate::parallel::each;
use crate::testbed::log;
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use workload::Repeat;
use workload::hotcold::{Files, Options, Skew};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lfs92/write-cost",
    title: "Write cost by utilisation, and how full segments are: greedy and cost-benefit cleaning",
    source: "Rosenblum and Ousterhout, The Design and Implementation of a Log-Structured File System, TOCS 10(1), \
             1992, sections 3.4 to 3.6, figures 3 to 7",
    runs: "files of 4 KB written over for ever, uniformly and nine tenths of the writes to a tenth of the files, on a \
           real log with its cleaner, by utilisation and policy; the cleaner's counters and the segments are read \
           between",
    run,
};

/// Classes of the histograms.
const CLASSES: usize = 25;
/// How often segments are looked at while the writes are measured.
const LOOKS: u64 = 40;
/// The utilisation of the histograms.
const HISTOGRAM_AT: f64 = 0.75;
/// Where greedy cleaning is looked at with one mark.
const COMPARED_AT: [f64; 2] = [0.6, 0.7];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Case {
    pub(crate) policy: &'static str,
    pub(crate) skew: Skew,
    /// Of the disk, by the number of files.
    pub(crate) utilisation: f64,
}

impl Case {
    pub(crate) fn name(&self) -> String {
        match self.skew {
            Skew::Uniform => format!("{}, uniform", self.policy),
            Skew::PAPER => format!("{}, hot and cold", self.policy),
            Skew::HotCold { hot_files, hot_writes } => {
                format!("{}, hot and cold {:.0}/{:.0}", self.policy, hot_files * 100.0, hot_writes * 100.0)
            }
        }
    }
}

/// What was found in steady state.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) case: Case,
    /// Live bytes of all segments, as a share of them.
    pub(crate) live: f64,
    pub(crate) write_cost: f64,
    /// Mean utilisation of the segments cleaned.
    cleaned_at: f64,
    /// Share of the segments cleaned, by utilisation.
    cleaned: Vec<f64>,
    /// Share of all written segments, by utilisation.
    segments: Vec<f64>,
}

/// How large a run is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) size_mb: u64,
    pub(crate) segment_kb: u64,
    /// Writes for each file, before and while measuring.
    pub(crate) warm_up: u64,
    pub(crate) measured: u64,
    pub(crate) marks: Marks,
}

/// Shares of clean segments between which the cleaner works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    /// It begins at 4 % and stops at 6 %.
    Two,
    /// It stops where it begins.
    One,
}

impl Marks {
    fn words(self) -> &'static str {
        match self {
            Marks::Two => "low=4,high=6",
            Marks::One => "low=4,high=4",
        }
    }
}

fn target(case: &Case, scale: Scale) -> String {
    let segments = (scale.size_mb << 10) / scale.segment_kb.max(1);
    let kept = (segments / 38).max(6);
    // The simulator of the publication cleans when it has run out of clean segments: here before processes have to
    // wait, which clean by no policy but the greedy one. It has neither idle time nor a cache. Nor does
    // it plug holes.
    format!(
        "lfs:cleaner={},bsize=4K,fsize=4K,segment={}K,size={}M,{},plug=0,idle=0,minfree=1,minfreeseg={kept},\
         resvseg={},cache=2M,dirty=50@{DRIVE}",
        case.policy,
        scale.segment_kb,
        scale.size_mb,
        scale.marks.words(),
        kept * 2 / 5
    )
}

pub(crate) fn measure(case: &Case, scale: Scale, seed: u64) -> Result<Found, ExperimentError> {
    let mut lab = log(&target(case, scale), MACHINE)?;
    let nseg = lab.volume().geometry().nseg;
    let files = (case.utilisation * (scale.size_mb << 20) as f64 / PER_FILE_BYTES) as u64;
    let options = Options {
        files,
        window: files,
        windows_max: u32::try_from(scale.warm_up).unwrap_or(u32::MAX),
        // All windows are wanted: a rate that is steady says little of segments that are written once in a hundred.
        turnover: f64::MAX,
        writes: (files * scale.measured / LOOKS).max(1),
        repeat: Repeat { seed, ..Repeat::once() },
        ..Options::default()
    };
    let mut written = Files::begin(&mut lab, &options, case.skew, None, "1")?;
    written.warm_up(&mut lab)?;
    let before = lab.volume().counters().clone();
    let mut segments = vec![0.0; CLASSES];
    let mut live = 0.0;
    for _ in 0..LOOKS {
        written.measure(&mut lab)?;
        for utilisation in lab.volume().segment_utilisations() {
            live += utilisation / f64::from(nseg) / LOOKS as f64;
            count(&mut segments, utilisation);
        }
    }
    let after = lab.volume().counters();
    let (cleaned, was) = (&after.cleaner, &before.cleaner);
    let new = (after.log_bytes - before.log_bytes) - (cleaned.written_bytes - was.written_bytes);
    let moved = cleaned.read_bytes - was.read_bytes + after.log_bytes - before.log_bytes;
    let times = cleaned.segments - was.segments;
    let by_class = cleaned.utilisations.iter().zip(&was.utilisations).map(|(now, then)| (now - then) as f64);
    Ok(Found {
        case: *case,
        live,
        write_cost: moved as f64 / new.max(1) as f64,
        cleaned_at: if times == 0 { 0.0 } else { (cleaned.utilisation_sum - was.utilisation_sum) / times as f64 },
        cleaned: shares(by_class.collect()),
        segments: shares(segments),
    })
}

/// A block, an inode, and a share of the inode map and of a directory.
const PER_FILE_BYTES: f64 = 4096.0 + 128.0 + 20.0 + 20.0;

fn count(classes: &mut [f64], utilisation: f64) {
    let at = (utilisation * classes.len() as f64) as usize;
    let last = classes.len().saturating_sub(1);
    if let Some(count) = classes.get_mut(at.min(last)) {
        *count += 1.0;
    }
}

fn shares(counts: Vec<f64>) -> Vec<f64> {
    let all = counts.iter().sum::<f64>().max(1.0);
    counts.into_iter().map(|count| count / all).collect()
}

/// Middle of each class with its share.
fn histogram(shares: &[f64]) -> Vec<(f64, f64)> {
    let width = 1.0 / shares.len().max(1) as f64;
    (0..).zip(shares).map(|(at, share)| ((f64::from(at) + 0.5) * width, *share)).collect()
}

/// What segments have become when their turn comes, if all files are equally likely to be written, and the oldest
/// segment is always next: the u with U = (1 - u) / -ln u.
pub(crate) fn uniform_at(utilisation: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..60 {
        let u = f64::midpoint(low, high);
        if (1.0 - u) / -u.ln() < utilisation { low = u } else { high = u }
    }
    low
}

pub(crate) fn formula(u: f64) -> f64 {
    2.0 / (1.0 - u)
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let scale = bench.pick(
        Scale { size_mb: 32, segment_kb: 128, warm_up: 2, measured: 1, marks: Marks::Two },
        Scale { size_mb: 96, segment_kb: 256, warm_up: 16, measured: 8, marks: Marks::Two },
    );
    let utilisations = bench.pick([0.4, 0.6].as_slice(), [0.2, 0.4, 0.6, 0.7, 0.75, 0.77].as_slice());
    let mut cases = Vec::new();
    for utilisation in utilisations.iter().rev() {
        for skew in [Skew::Uniform, Skew::PAPER] {
            for policy in ["greedy", "cost-benefit"] {
                cases.push(Case { policy, skew, utilisation: *utilisation });
            }
        }
    }
    let seed = bench.seed();
    let mut points: Vec<(Marks, Case)> = cases.iter().map(|case| (Marks::Two, *case)).collect();
    let of_one_mark = |case: &&Case| case.policy == "greedy" && COMPARED_AT.contains(&case.utilisation);
    points.extend(cases.iter().filter(of_one_mark).map(|case| (Marks::One, *case)));
    let mut found =
        each(bench, "cleaning", &points, |(marks, case)| measure(case, Scale { marks: *marks, ..scale }, seed))?;
    let mut one_mark = found.split_off(cases.len());
    found.reverse();
    one_mark.reverse();
    let mut outcome = Outcome::new();
    outcome
        .parameter("machine", MACHINE)
        .parameter("drive", DRIVE)
        .parameter(
            "file system",
            target(&Case { policy: "greedy|cost-benefit", skew: Skew::Uniform, utilisation: 0.0 }, scale),
        )
        .parameter("files", "of 4 KB; utilisation by their number")
        .parameter("writes", format!("{} for each file to begin with, {} measured", scale.warm_up, scale.measured));
    rows(&mut outcome, &found);
    for f in &one_mark {
        let what = format!("write cost, {}, {:.0} % live, a cleaner with one mark", f.case.name(), f.live * 100.0);
        outcome.row(Row::new(what, Unit::Ratio, Published::NONE, f.write_cost, Explain::Agrees));
    }
    // The quick scale ends before locality shows.
    if bench.pick(false, true) {
        claims(&mut outcome, &found, &one_mark);
    }
    figures(&mut outcome, &found);
    Ok(outcome)
}

fn at<'a>(found: &'a [Found], policy: &str, skew: Skew, utilisation: f64) -> Option<&'a Found> {
    found.iter().find(|f| f.case == Case { policy: f.case.policy, skew, utilisation } && f.case.policy == policy)
}

/// Write costs by utilisation.
fn costs(found: &[Found], policy: &str, skew: Skew) -> Vec<(f64, f64)> {
    let own = found.iter().filter(|f| f.case.policy == policy && f.case.skew == skew);
    own.map(|f| (f.case.utilisation, f.write_cost)).collect()
}

fn rows(outcome: &mut Outcome, found: &[Found]) {
    let hot = Skew::PAPER;
    if let Some(f) = at(found, "greedy", Skew::Uniform, HISTOGRAM_AT) {
        outcome.row(super::cleaned_at(f.cleaned_at)).row(Row::new(
            "the same by theory, at the utilisation that was",
            Unit::Share,
            Published::NONE,
            uniform_at(f.live),
            Explain::Agrees,
        ));
    }
    for f in found {
        let what = format!("write cost, {}, {:.0} % live", f.case.name(), f.live * 100.0);
        outcome.row(Row::new(what, Unit::Ratio, Published::NONE, f.write_cost, Explain::Agrees));
    }
    let (greedy, benefit) = (costs(found, "greedy", hot), costs(found, "cost-benefit", hot));
    let (best_at, best) = greedy
        .iter()
        .zip(&benefit)
        .map(|((utilisation, greedy), (_, benefit))| (*utilisation, benefit / greedy))
        .fold((0.0, f64::INFINITY), |best, here| if here.1 < best.1 { here } else { best });
    outcome.row(Row::new(
        format!("cost-benefit over greedy, hot and cold, at best (here at {:.0} %)", best_at * 100.0),
        Unit::Ratio,
        Published::about(0.5),
        best,
        Explain::because(
            "the publication's is of a simulator, which, run again, does not come to half either (lfs92/simulator); \
             with what this log has besides it comes to what is found here. Even hot and cold files kept apart in \
             segments of their own, and the free space shared out between them as is best, would by theory cost more \
             than half of greedy (see below)",
        ),
    ));
    if let Some(f) = at(found, "greedy", hot, best_at) {
        outcome.row(Row::new(
            "hot and cold kept apart, by theory, over greedy there",
            Unit::Ratio,
            Published::NONE,
            apart(f.live) / f.write_cost,
            Explain::Agrees,
        ));
    }
}

/// The least write cost with nine tenths of the writes to a tenth of the files, if these have segments of their own:
/// each part is cleaned as [`uniform_at`] has it, and gets the share of the free space that makes the sum least.
fn apart(utilisation: f64) -> f64 {
    let free = 1.0 - utilisation;
    let cost = |files: f64, share: f64| {
        let live = files * utilisation;
        formula(uniform_at(live / (live + share * free)))
    };
    let shares = (1..100).map(|percent| f64::from(percent) / 100.0);
    shares.map(|hot| 0.9 * cost(0.1, hot) + 0.1 * cost(0.9, 1.0 - hot)).fold(f64::INFINITY, f64::min)
}

/// What the publication says in words.
fn claims(outcome: &mut Outcome, found: &[Found], one_mark: &[Found]) {
    let hot = Skew::PAPER;
    let (greedy, benefit) = (costs(found, "greedy", hot), costs(found, "cost-benefit", hot));
    let uniform = costs(found, "greedy", Skew::Uniform);
    let worse =
        greedy.iter().zip(&uniform).filter(|((u, _), _)| *u >= 0.6).filter(|((_, hot), (_, u))| hot > u).count();
    let of = greedy.iter().filter(|(u, _)| *u >= 0.6).count();
    outcome.claim(Claim::new(
        "greedy does worse with locality than without",
        2 * worse > of,
        format!("write cost is higher at {worse} of {of} utilisations from 60 %"),
        Explain::because(format!(
            "how much is cleaned in a round. With one mark, where the cleaner stops where it begins, and nothing else \
             changed, it is {} with locality and {} without at 60 and 70 % (below)",
            shown(&costs(one_mark, "greedy", hot)),
            shown(&costs(one_mark, "greedy", Skew::Uniform)),
        )),
    ));
    let lower =
        greedy.iter().zip(&benefit).filter(|((u, _), _)| *u >= 0.6).all(|((_, greedy), (_, benefit))| benefit < greedy);
    outcome.claim(Claim::new(
        "cost-benefit does better than greedy with locality, from 60 % on",
        lower,
        format!("cost-benefit {}, greedy {}", shown(&benefit), shown(&greedy)),
        Explain::Agrees,
    ));
    if let (Some(one), Some(other)) =
        (at(found, "greedy", hot, HISTOGRAM_AT), at(found, "cost-benefit", hot, HISTOGRAM_AT))
    {
        let (greedy, benefit) = (valley(&one.cleaned), valley(&other.cleaned));
        outcome.claim(Claim::new(
            "cost-benefit cleans segments of two kinds, hot ones nearly empty and cold ones nearly full, far more so \
             than greedy",
            benefit >= 3.0 && greedy < benefit / 3.0,
            format!(
                "the lower of two peaks over the valley between them: cost-benefit {benefit:.1}, greedy {greedy:.1}"
            ),
            Explain::Agrees,
        ));
    }
}

fn shown(costs: &[(f64, f64)]) -> String {
    costs.iter().map(|(_, cost)| format!("{cost:.2}")).collect::<Vec<_>>().join(" ")
}

/// The lower of the two highest peaks over the lowest valley between them, of a histogram smoothed over three classes:
/// 1 and less where there is one peak.
pub(crate) fn valley(shares: &[f64]) -> f64 {
    let padded: Vec<f64> = [0.0].into_iter().chain(shares.iter().copied()).chain([0.0]).collect();
    let smooth: Vec<f64> = padded.windows(3).map(|near| near.iter().sum::<f64>() / 3.0).collect();
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let depth = |(at, share): (usize, &f64)| {
        let (before, after) = smooth.split_at(at);
        most(before).min(most(after)) / share.max(1e-3)
    };
    smooth.iter().enumerate().map(depth).fold(0.0, f64::max)
}

fn figures(outcome: &mut Outcome, found: &[Found]) {
    let mut series = Vec::new();
    for first in found.iter().take(4) {
        let own = found.iter().filter(|f| f.case.name() == first.case.name());
        series.push(Series::new(&first.case.name(), own.map(|f| (f.live, f.write_cost))));
    }
    let lives: Vec<f64> = (4..18).map(|n| f64::from(n) / 20.0).collect();
    series.push(Series::new("2/(1-u), no variance", lives.iter().map(|live| (*live, formula(*live)))));
    series.push(Series::new(
        "2/(1-u), uniform, oldest first",
        lives.iter().map(|live| (*live, formula(uniform_at(*live)))),
    ));
    outcome.figure(Figure {
        name: "write-cost".to_owned(),
        title: "Write cost by utilisation.".to_owned(),
        x: Axis::Share("live share of all segments".to_owned()),
        y: Axis::Number("write cost".to_owned()),
        series,
    });
    let at: Vec<&Found> = found.iter().filter(|f| f.case.utilisation == HISTOGRAM_AT).collect();
    let curves = at.iter().flat_map(|f| {
        [("all segments", &f.segments), ("segments cleaned", &f.cleaned)]
            .map(|(panel, shares)| Series::in_panel(panel, &f.case.name(), histogram(shares)))
    });
    outcome.figure(Figure {
        name: "segments".to_owned(),
        title: "How full segments are, three quarters of the disk in use.".to_owned(),
        x: Axis::Share("utilisation of the segment".to_owned()),
        y: Axis::Share("share of the segments".to_owned()),
        series: curves.collect(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn theory_of_uniform_writes() {
        // In the publication's own words: at 75 % overall, segments cleaned are 55 % full on average.
        assert!((uniform_at(0.75) - 0.55).abs() < 0.02, "{}", uniform_at(0.75));
        assert!(uniform_at(0.2) < 0.01 && uniform_at(0.95) > 0.89);
        assert!((formula(0.8) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn two_peaks_have_a_valley() {
        assert!(valley(&[0.0, 0.1, 0.3, 0.1, 0.0, 0.0, 0.1, 0.3, 0.1]) > 3.0);
        assert!(valley(&[0.0, 0.1, 0.2, 0.3, 0.4, 0.3, 0.1, 0.0]) <= 1.0);
    }
}
