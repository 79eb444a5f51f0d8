//! Several experiments, and experiments under several seeds: each row as the mean, with how far the seeds lie apart.
//!
//! One seed shows one history of a file system. A figure that another history would not show is chance, so it is the
//! mean that is held against what was published.

use crate::bench::Made;
use crate::{Bench, Experiment, ExperimentError, Outcome, Report, Scale, Series, Spread, Sweeps, parallel, run};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Told of each experiment that has been run: which, under which seed, and how long it took beside the others.
pub type Done<'a> = &'a (dyn Fn(&Experiment, u64, Duration) + Sync);

/// Runs experiments once for each seed, as many at a time as there are processors; what several of them need is made
/// once for each seed. One outcome each, in their order, of the means where there are several seeds.
///
/// # Errors
/// That of the first experiment, of the first seed, that has one.
///
/// # Panics
/// There is no seed.
pub fn run_all(
    experiments: &[&Experiment],
    (scale, sweeps): (Scale, Sweeps),
    seeds: &[u64],
    report: Report<'_>,
    told: Done<'_>,
) -> Result<Vec<Outcome>, ExperimentError> {
    let first = *seeds.first().expect("one seed at least");
    let timed = |experiment: &Experiment, bench: &mut Bench<'_>| -> Result<Outcome, ExperimentError> {
        let begun = Instant::now();
        let outcome = run(experiment, bench)?;
        told(experiment, bench.seed(), begun.elapsed());
        Ok(outcome)
    };
    let mut watch = Bench::new(scale, first, report).sweeping(sweeps);
    if let ([experiment], [_]) = (experiments, seeds) {
        // Nobody else runs, so that it may say itself what goes on.
        return Ok(vec![timed(experiment, &mut watch)?]);
    }
    // By seed first: what is made for one is of no use to another, and goes when its last experiment has ended.
    let of_seeds: Vec<(u64, Made, AtomicUsize)> =
        seeds.iter().map(|seed| (*seed, Made::default(), AtomicUsize::new(experiments.len()))).collect();
    let points: Vec<_> = of_seeds.iter().flat_map(|of| experiments.iter().map(move |e| (of, *e))).collect();
    let outcomes = parallel::each(&mut watch, "experiments", &points, |((seed, made, left), experiment)| {
        let mut silent = |_: &str, _: u64, _: Option<u64>| {};
        let outcome = timed(experiment, &mut Bench::with(made.clone(), scale, *seed, &mut silent).sweeping(sweeps));
        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
            made.clear();
        }
        outcome
    })?;
    let mut by_experiment: Vec<Vec<Outcome>> = experiments.iter().map(|_| Vec::new()).collect();
    for (at, outcome) in outcomes.into_iter().enumerate() {
        if let Some(of_one) = by_experiment.get_mut(at % experiments.len()) {
            of_one.push(outcome);
        }
    }
    Ok(by_experiment.into_iter().filter_map(together).collect())
}

/// One outcome of those of several seeds. What is said in words is the first seed's that has something to say.
fn together(outcomes: Vec<Outcome>) -> Option<Outcome> {
    let mut merged = outcomes.first()?.clone();
    if outcomes.len() == 1 {
        return Some(merged);
    }
    // A seed may have a row that another has not: where nothing was found there is none.
    for outcome in &outcomes {
        for row in &outcome.rows {
            if !merged.rows.iter().any(|known| known.what == row.what) {
                merged.rows.push(row.clone());
            }
        }
        for claim in &outcome.claims {
            if !merged.claims.iter().any(|known| known.what == claim.what) {
                merged.claims.push(claim.clone());
            }
        }
    }
    for row in &mut merged.rows {
        let same = || outcomes.iter().flat_map(|o| &o.rows).filter(|other| other.what == row.what);
        let found: Vec<f64> = same().map(|other| other.ours).collect();
        let explain = same().find(|other| other.why().is_some()).map(|other| other.explain.clone());
        let spread = Spread::of(&found);
        row.explain = explain.unwrap_or_else(|| row.explain.clone());
        row.ours = found.iter().sum::<f64>() / found.len() as f64;
        row.spread = Some(spread);
    }
    for claim in &mut merged.claims {
        let same: Vec<_> = outcomes.iter().flat_map(|o| &o.claims).filter(|other| other.what == claim.what).collect();
        let held = same.iter().filter(|other| other.holds).count();
        // What is shown is a seed that the verdict is of.
        claim.holds = 2 * held > same.len();
        if let Some(shown) = same.iter().find(|other| other.holds == claim.holds) {
            (claim.seen, claim.explain) = (shown.seen.clone(), shown.explain.clone());
        }
        claim.held = Some((held as u32, same.len() as u32));
    }
    for figure in &mut merged.figures {
        for series in &mut figure.series {
            let name = &figure.name;
            let same: Vec<&Series> = outcomes
                .iter()
                .flat_map(|o| o.figures.iter().filter(|other| other.name == *name))
                .flat_map(|other| other.series.iter().filter(|s| s.name == series.name && s.panel == series.panel))
                .collect();
            mean_of(series, &same);
        }
    }
    for parameter in &mut merged.parameters {
        let differs =
            outcomes.iter().flat_map(|o| &o.parameters).any(|p| p.name == parameter.name && p.value != parameter.value);
        if differs {
            parameter.value.push_str(" (of the first seed)");
        }
    }
    Some(merged)
}

/// The points of a curve that all seeds have, as means.
fn mean_of(series: &mut Series, same: &[&Series]) {
    let at = |curve: &Series, x: f64| curve.points.iter().find(|point| point.x == x).map(|point| point.y);
    series.points.retain(|point| same.iter().all(|curve| at(curve, point.x).is_some()));
    for point in &mut series.points {
        let sum: f64 = same.iter().filter_map(|curve| at(curve, point.x)).sum();
        point.y = sum / same.len() as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Claim, Difference, Explain, Figure, Published, Row, Unit};

    fn outcome(ours: f64, holds: bool, y: f64) -> Outcome {
        let mut outcome = Outcome::new();
        outcome.parameter("operations", ours.to_string()).parameter("drive", "one");
        outcome.row(Row::new(
            "score",
            Unit::Score,
            Published::exact(0.5),
            ours,
            Explain::because(format!("of {ours}")),
        ));
        outcome.claim(Claim::new("a dip", holds, format!("{y}"), Explain::unknown()));
        let (x, axis) = (Axis::Days("day".into()), Axis::Score("score".into()));
        let series = vec![Series::new("one", [(1.0, y), (ours, 0.5)])];
        outcome.figure(Figure { name: "f".into(), title: "F.".into(), x, y: axis, series });
        outcome
    }

    #[test]
    fn the_mean_is_judged_and_the_spread_shown() {
        let merged =
            together(vec![outcome(0.3, true, 0.2), outcome(0.5, false, 0.4), outcome(0.7, false, 0.9)]).unwrap();
        let row = &merged.rows[0];
        assert!((row.ours - 0.5).abs() < 1e-12 && row.difference() == Difference::Within, "{row:?}");
        assert_eq!(row.spread, Some(Spread { seeds: 3, low: 0.3, high: 0.7 }));
        let claim = &merged.claims[0];
        assert_eq!((claim.holds, claim.held, claim.seen.as_str()), (false, Some((1, 3)), "0.4"));
        let points: Vec<(f64, f64)> = merged.figures[0].series[0].points.iter().map(|p| (p.x, p.y)).collect();
        assert_eq!(points, [(1.0, 0.5)], "no seed is shown where others have nothing");
        let parameters: Vec<&str> = merged.parameters.iter().map(|p| p.value.as_str()).collect();
        assert_eq!(parameters, ["0.3 (of the first seed)", "one"]);
        let apart = together(vec![outcome(0.9, true, 0.2), outcome(0.3, true, 0.2)]).unwrap();
        assert!(apart.rows[0].why().is_none() && apart.rows[0].explain == Explain::because("of 0.9"));
        let one = together(vec![outcome(0.3, true, 0.2)]).unwrap();
        assert_eq!((one.rows[0].spread, one.claims[0].held), (None, None));
    }
}
