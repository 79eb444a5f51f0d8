//! `alloc96/aggregate`: the aggregate layout score day by day, under the original allocator and under realloc.

use super::aged::aged;
use super::{POLICIES, describe};
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "alloc96/aggregate",
    title: "Aggregate layout score by day",
    source: "Smith and Seltzer, A Comparison of FFS Disk Allocation Policies, USENIX 1996, figure 2",
    runs: "Ages two file systems by the 300-day workload, with the original allocator and with realloc.",
    run,
};

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let [original, realloc] = [aged(bench, POLICIES[0].1)?, aged(bench, POLICIES[1].1)?];
    let days = original.days;
    let mut outcome = Outcome::new();
    describe(&mut outcome, days);
    let agrees = || Explain::Agrees;
    let score = |what: &str, published, ours| Row::new(what, Unit::Score, published, ours, agrees());
    outcome
        .row(score("day 1, original", Published::exact(0.924), original.score(1)))
        .row(score("day 1, realloc", Published::exact(0.950), realloc.score(1)))
        .row(score("last day, original", Published::exact(0.766), original.score(days)))
        .row(score("last day, realloc", Published::exact(0.899), realloc.score(days)));
    let (bad, good) = (1.0 - original.score(days), 1.0 - realloc.score(days));
    let share = |what: &str, published, ours| Row::new(what, Unit::Share, Published::exact(published), ours, agrees());
    outcome
        .row(share("blocks not placed optimally, original", 0.234, bad))
        .row(share("blocks not placed optimally, realloc", 0.101, good))
        .row(share("of these, saved by realloc", 0.568, 1.0 - good / bad));
    let worse = (1..=days).filter(|day| realloc.score(*day) < original.score(*day)).count();
    let seen = format!("worse on {worse} of {days} days");
    outcome.claim(Claim::new("realloc is better on every day", worse == 0, seen, Explain::Agrees));
    let by_day = |aged: &super::aged::Aged| -> Vec<(f64, f64)> {
        (1..=aged.days).map(|day| (f64::from(day), aged.score(day))).collect()
    };
    outcome.figure(Figure {
        name: "score-by-day".into(),
        title: "Aggregate layout score at the end of each day.".into(),
        x: Axis::Days("day".into()),
        y: Axis::Score("aggregate layout score".into()),
        series: vec![
            Series::new("original", by_day(&original)),
            Series::new("realloc", by_day(&realloc)),
            Series::published("", "original, published", [(1.0, 0.924), (300.0, 0.766)]),
            Series::published("", "realloc, published", [(1.0, 0.950), (300.0, 0.899)]),
        ],
    });
    outcome.note(
        "The layout score of a file is the share of its blocks from the second on that directly follow the one before; \
         the aggregate is weighted by block.",
    );
    Ok(outcome)
}
