//! What the updates show: rows, curves, and statements that are decided by the figures.

use super::bare::Layout;
use super::updates::{self, Case, Found, Kind, Size};
use super::{AT, ORDINARY, SERVER, SKEWS, lfs};
use crate::lfs92::write_cost::uniform_at;
use crate::{Axis, Claim, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use workload::hotcold::Skew;

const MIB: f64 = (1 << 20) as f64;

fn skew_name(skew: Skew) -> &'static str {
    if skew == Skew::Uniform { "uniform" } else { "hot and cold" }
}

impl Case {
    /// The file system, with what it is told to do.
    pub(super) fn system(&self) -> String {
        let own = match self.kind {
            Kind::Ffs => "FFS".to_owned(),
            Kind::Lfs { policy, segment_eighths, fragment_bytes } => {
                let segment =
                    if segment_eighths == 8 { String::new() } else { format!(", segments of {segment_eighths}/8") };
                let fragment =
                    if fragment_bytes == 4096 { String::new() } else { format!(", fragments of {fragment_bytes}") };
                format!("LFS {policy}{segment}{fragment}")
            }
        };
        let flash = if self.over_provisioning == ORDINARY {
            String::new()
        } else {
            format!(", {:.0} % over-provisioned", self.over_provisioning * 100.0)
        };
        format!("{own}{}{flash}", if self.discard { ", discards" } else { "" })
    }

    fn of(&self) -> String {
        format!("{}, {}, {:.0} % full", self.system(), skew_name(self.skew), self.utilisation * 100.0)
    }
}

/// What an amplification counts.
type Part = fn(&Found) -> f64;

/// The three: of the file system, of the drive, of both.
const PARTS: [(&str, Part); 3] = [("file system", Found::file_system), ("drive", Found::drive), ("both", Found::both)];

/// All that was found.
pub(super) struct All<'a> {
    pub(super) found: &'a [Found],
    /// Whole segments without a file system.
    pub(super) bare: &'a [(Layout, f64)],
    pub(super) utilisations: &'a [f64],
    /// Sizes of segment, in eighths of what the drive erases together, ascending.
    pub(super) eighths: &'a [u64],
}

impl All<'_> {
    fn part(&self, case: Case, part: Part) -> f64 {
        self.found.iter().find(|f| f.case == case).map_or(f64::NAN, part)
    }

    /// One system and another wherever both were run on the ordinary drive, by skew and utilisation.
    fn pairs(&self, one: (Kind, bool), other: (Kind, bool), skews: &[Skew], parts: (Part, Part)) -> Vec<(f64, f64)> {
        let mut pairs = Vec::new();
        for skew in skews {
            for utilisation in self.utilisations {
                let case = |(kind, discard)| Case {
                    kind,
                    discard,
                    skew: *skew,
                    utilisation: *utilisation,
                    over_provisioning: ORDINARY,
                };
                pairs.push((self.part(case(one), parts.0), self.part(case(other), parts.1)));
            }
        }
        pairs
    }

    fn bare(&self, segment_eighths: u64, superblocks: bool) -> f64 {
        let layout = Layout { segment_eighths, superblocks };
        self.bare.iter().find(|(of, _)| *of == layout).map_or(f64::NAN, |(_, found)| *found)
    }

    /// The drive's share by size of segment.
    fn by_segment(&self, skew: Skew) -> Vec<f64> {
        self.eighths.iter().map(|n| self.part(greedy(*n, skew), Found::drive)).collect()
    }
}

/// A greedy cleaner of segments of so many eighths, on a drive that is told what is free.
fn greedy(eighths: u64, skew: Skew) -> Case {
    let kind = lfs("greedy", eighths);
    Case { kind, discard: true, skew, utilisation: AT, over_provisioning: ORDINARY }
}

fn shown(pairs: &[(f64, f64)]) -> String {
    pairs.iter().map(|(a, b)| format!("{a:.2} and {b:.2}")).collect::<Vec<_>>().join(", ")
}

fn listed(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.2}")).collect::<Vec<_>>().join(", ")
}

fn holds(pairs: &[(f64, f64)], both: impl Fn(f64, f64) -> bool) -> bool {
    !pairs.is_empty() && pairs.iter().all(|(a, b)| both(*a, *b))
}

/// Rows, statements and curves.
pub(super) fn report(outcome: &mut Outcome, all: &All<'_>, size: Size) -> Result<(), ExperimentError> {
    for f in all.found {
        let of = f.case.of();
        for (what, part) in PARTS {
            let what = format!("written by {what}: {of}");
            outcome.row(Row::new(what, Unit::Ratio, Published::NONE, part(f), Explain::Agrees));
        }
        let what = format!("updates: {of}");
        outcome.row(Row::new(what, Unit::MibPerS, Published::NONE, f.rate() / MIB, Explain::Agrees));
    }
    for (layout, found) in all.bare {
        let between = if layout.superblocks { "a block between them" } else { "nothing between them" };
        let what = format!("written by drive: whole segments of {}/8, {between}", layout.segment_eighths);
        outcome.row(Row::new(what, Unit::Ratio, Published::NONE, *found, Explain::Agrees));
    }
    who_wins(outcome, all);
    theory(outcome, all, size)?;
    log_on_log(outcome, all);
    figures(outcome, all);
    Ok(())
}

fn claim(outcome: &mut Outcome, what: &str, holds: bool, seen: String) {
    outcome.claim(Claim::new(what, holds, seen, Explain::Agrees));
}

fn who_wins(outcome: &mut Outcome, all: &All<'_>) {
    let both: (Part, Part) = (Found::both, Found::both);
    let (greedy, benefit) = (lfs("greedy", 8), lfs("cost-benefit", 8));
    let pairs = all.pairs((benefit, false), (Kind::Ffs, false), &SKEWS, both);
    claim(
        outcome,
        "a drive that is told nothing: LFS with cost-benefit writes less flash than FFS, since the log leaves whole \
         blocks behind it and FFS has the drive move what it has long freed",
        holds(&pairs, |lfs, ffs| lfs < ffs),
        shown(&pairs),
    );
    let mut pairs = all.pairs((Kind::Ffs, true), (benefit, true), &[Skew::Uniform], both);
    pairs.extend(all.pairs((Kind::Ffs, true), (greedy, true), &[Skew::Uniform], both));
    claim(
        outcome,
        "with discards, uniform: FFS writes less flash than LFS, since all that it has free helps the drive, and \
         nothing is cleaned twice",
        holds(&pairs, |ffs, lfs| ffs < lfs),
        shown(&pairs),
    );
    let pairs = all.pairs((Kind::Ffs, true), (benefit, true), &[Skew::PAPER], both);
    claim(
        outcome,
        "with discards, hot and cold: cost-benefit is within a quarter of FFS, since the drive mixes hot and cold, and \
         the log does not",
        holds(&pairs, |ffs, lfs| (0.8..1.25).contains(&(lfs / ffs))),
        shown(&pairs),
    );
    let spared = |kind| -> Vec<f64> {
        all.pairs((kind, true), (kind, false), &SKEWS, both).iter().map(|(with, without)| with / without).collect()
    };
    let (ffs, log): (Vec<f64>, Vec<f64>) = (spared(Kind::Ffs), [spared(greedy), spared(benefit)].concat());
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    claim(
        outcome,
        "discards spare FFS more than they spare LFS, whose clean segments are all that it can discard",
        most(&ffs) < least(&log),
        format!("of the flash written without: FFS {:.2} at most, LFS {:.2} at least", most(&ffs), least(&log)),
    );
    let pairs = all.pairs((benefit, true), (greedy, true), &[Skew::PAPER], both);
    claim(
        outcome,
        "hot and cold: cost-benefit writes less flash than greedy, in the drive as well, since what it writes together \
         dies together",
        holds(&pairs, |benefit, greedy| benefit < greedy)
            && holds(
                &all.pairs((benefit, true), (greedy, true), &[Skew::PAPER], (Found::drive, Found::drive)),
                |b, g| b < g,
            ),
        shown(&pairs),
    );
    let server = |kind, skew| {
        all.part(Case { kind, discard: false, skew, utilisation: AT, over_provisioning: SERVER }, Found::drive)
    };
    let log: Vec<f64> = SKEWS.iter().map(|skew| server(benefit, *skew)).collect();
    let ffs: Vec<f64> = SKEWS.iter().map(|skew| server(Kind::Ffs, *skew)).collect();
    claim(
        outcome,
        "28 % over-provisioned, told nothing: the drive moves hardly anything under LFS (below 5 %), and still much \
         under FFS (above 40 %)",
        log.iter().all(|drive| *drive < 1.05) && ffs.iter().all(|drive| *drive > 1.4),
        format!("LFS {}; FFS {}", listed(&log), listed(&ffs)),
    );
}

fn theory(outcome: &mut Outcome, all: &All<'_>, size: Size) -> Result<(), ExperimentError> {
    let spec = updates::drive(size, ORDINARY)?;
    let blocks = f64::from(spec.blocks_per_die());
    let host = spec.capacity_sectors as f64 * f64::from(spec.sector_bytes) / updates::stripe_bytes(&spec) as f64;
    // Blocks that are kept free, and two half full ones that are being written.
    let usable = blocks - f64::from(spec.gc_free_blocks()) - 1.5;
    let mut pairs = Vec::new();
    for utilisation in all.utilisations {
        let expected = 1.0 / (1.0 - uniform_at(utilisation * host / usable));
        let case = Case {
            kind: Kind::Ffs,
            discard: true,
            skew: Skew::Uniform,
            utilisation: *utilisation,
            over_provisioning: ORDINARY,
        };
        pairs.push((all.part(case, Found::drive), expected));
        let what = format!("the same by theory: {}", case.of());
        outcome.row(Row::new(what, Unit::Ratio, Published::NONE, expected, Explain::Agrees));
    }
    claim(
        outcome,
        "FFS with discards, uniform: the drive is within a tenth of the theory of greedy collection at that \
         utilisation",
        holds(&pairs, |drive, expected| (drive / expected - 1.0).abs() < 0.1),
        shown(&pairs),
    );
    let both = (Found::file_system as Part, Found::drive as Part);
    let pairs = all.pairs((lfs("greedy", 8), true), (Kind::Ffs, true), &[Skew::Uniform], both);
    claim(
        outcome,
        "cleaning in the log costs more than the same cleaning in the drive: it cannot use the drive's spare flash, \
         and keeps a tenth of the segments clean",
        holds(&pairs, |log, drive| log > drive),
        shown(&pairs),
    );
    Ok(())
}

fn log_on_log(outcome: &mut Outcome, all: &All<'_>) {
    for skew in SKEWS {
        let drive = all.by_segment(skew);
        let (first, last) = (drive.first().copied().unwrap_or(0.0), drive.last().copied().unwrap_or(0.0));
        claim(
            outcome,
            &format!(
                "log on log, {}: the drive moves again what segments smaller than its own leave it, and less the \
                 larger they are; at the largest hardly anything (below 10 %)",
                skew_name(skew)
            ),
            drive.windows(2).all(|pair| pair.first() > pair.last() || pair.iter().all(|drive| *drive < 1.01))
                && first > 1.2
                && last < 1.1,
            format!("segments of {}: {}", sizes(all.eighths), listed(&drive)),
        );
    }
    let pairs: Vec<(f64, f64)> = SKEWS.iter().map(|skew| at_segments(all, *skew)).collect();
    claim(
        outcome,
        "a segment of just what the drive erases together is no better than one an eighth larger, which never begins \
         where a block does",
        holds(&pairs, |equal, larger| larger < equal),
        shown(&pairs),
    );
    let (aligned, shifted) = (all.bare(8, false), all.bare(8, true));
    claim(
        outcome,
        "alignment is a matter of time, not of address: whole segments of that size one behind the other leave the \
         drive nothing to move; a block between them shifts all that follow, and it has",
        aligned < 1.001 && shifted > 1.02,
        format!("{aligned:.3} and {shifted:.3}"),
    );
    let fragments = |skew, fragment_bytes| {
        let kind = Kind::Lfs { policy: "greedy", segment_eighths: 8, fragment_bytes };
        all.part(Case { kind, discard: true, skew, utilisation: AT, over_provisioning: ORDINARY }, Found::drive)
    };
    let (small, whole) = (fragments(Skew::Uniform, 1024), fragments(Skew::Uniform, 4096));
    claim(
        outcome,
        "uniform: a log that goes on in steps of 1 KB has the drive write more than one in steps of 4 KB, its mapping \
         unit: units at the seams of requests are written twice",
        small > whole,
        format!("{small:.2} and {whole:.2}"),
    );
}

fn at_segments(all: &All<'_>, skew: Skew) -> (f64, f64) {
    let by_segment = all.by_segment(skew);
    let of = |eighths: u64| {
        let at = all.eighths.iter().position(|n| *n == eighths);
        at.and_then(|at| by_segment.get(at)).copied().unwrap_or(f64::NAN)
    };
    (of(8), of(9))
}

fn sizes(eighths: &[u64]) -> String {
    eighths.iter().map(|n| format!("{n}/8")).collect::<Vec<_>>().join(", ")
}

fn figures(outcome: &mut Outcome, all: &All<'_>) {
    let mut series = Vec::new();
    for skew in SKEWS {
        for (name, part) in PARTS {
            for kind in [Kind::Ffs, lfs("greedy", 8), lfs("cost-benefit", 8)] {
                for discard in [false, true] {
                    let case = |utilisation: &f64| Case {
                        kind,
                        discard,
                        skew,
                        utilisation: *utilisation,
                        over_provisioning: ORDINARY,
                    };
                    let points = all.utilisations.iter().map(|u| (*u, all.part(case(u), part)));
                    let panel = format!("{name}, {}", skew_name(skew));
                    series.push(Series::in_panel(&panel, &case(&AT).system(), points));
                }
            }
        }
    }
    outcome.figure(Figure {
        name: "amplification".to_owned(),
        title: "Written for each byte of the application (file system, both) or of the file system (drive), by \
            utilisation."
            .to_owned(),
        x: Axis::Share("of the drive's capacity in data".to_owned()),
        y: Axis::Number("write amplification".to_owned()),
        series,
    });
    let mut series = Vec::new();
    for skew in SKEWS {
        for (name, part) in PARTS {
            let points = all.eighths.iter().map(|n| (*n as f64 / 8.0, all.part(greedy(*n, skew), part)));
            series.push(Series::in_panel(skew_name(skew), name, points));
        }
    }
    outcome.figure(Figure {
        name: "segments".to_owned(),
        title: "LFS greedy with discards, 55 % full, by size of segment.".to_owned(),
        x: Axis::Number("segment over what the drive erases together".to_owned()),
        y: Axis::Number("write amplification".to_owned()),
        series,
    });
}
