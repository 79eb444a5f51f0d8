//! `alloc96/workload`: how the 300-day workload meets the figures that were published of the original one.

use super::aged::{PLANNED_FOR, days};
use super::describe;
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use aging::plan::alloc96::figures::{Count, FigureUnit};
use aging::plan::alloc96::{Model, Options, Parameters};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "alloc96/workload",
    title: "The 300-day workload against what is known of the original",
    source: "Smith and Seltzer, A Comparison of FFS Disk Allocation Policies, USENIX 1996, section 3",
    runs: "Plans the workload and counts. These figures are all that it was calibrated on.",
    run,
};

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let (days, seed) = (days(bench), bench.seed());
    let parameters = Parameters::published();
    let mut count = Count::new(PLANNED_FOR, &parameters);
    let mut model = Model::new(&Options { planned_for: PLANNED_FOR, days, seed }, parameters)?;
    model.beginning().iter().for_each(|op| count.add(op));
    for day in 0..days {
        bench.report("planning", day.into(), Some(days.into()));
        model.day(day).iter().for_each(|op| count.add(op));
    }
    count.end_days(days);
    let mut outcome = Outcome::new();
    describe(&mut outcome, days);
    for figure in count.figures() {
        let unit = match figure.unit {
            FigureUnit::Count => Unit::Count,
            FigureUnit::Bytes => Unit::Bytes,
            FigureUnit::Share => Unit::Share,
        };
        outcome.row(Row::new(
            figure.what,
            unit,
            figure.published.and_then(Published::exact),
            figure.planned,
            Explain::Agrees,
        ));
    }
    let above = count.shares().iter().filter(|share| **share > 0.7).count();
    let all = count.shares().len();
    let seen = format!("at the end of {above} of {all} days");
    outcome.claim(Claim::new("use is above 70 % most of the time", 2 * above > all, seen, Explain::Agrees));
    let points = count.shares().iter().enumerate().map(|(day, share)| (day as f64, *share));
    outcome.figure(Figure {
        name: "use".into(),
        title: "Space in use at the end of each day, of what users may use.".into(),
        x: Axis::Days("day".into()),
        y: Axis::Share("in use".into()),
        series: vec![Series::new("in use", points)],
    });
    outcome.note("Use is what df shows: of the space that users may use, which is 90 % of the file system.");
    Ok(outcome)
}
