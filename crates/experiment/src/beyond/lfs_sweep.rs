//! Write cost by segment size, utilisation, policy and skew.

use crate::lfs92::write_cost::{Case, Found, Marks, Scale, formula, measure, uniform_at};
use crate::parallel::each;
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use workload::hotcold::Skew;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "beyond/lfs-sweep",
    title: "Write cost by segment size, utilisation, cleaning policy and skew",
    source: "ours; the workload of Rosenblum and Ousterhout, TOCS 10(1), 1992, section 3.5",
    runs: "the cleaning workload of lfs92/write-cost with segments of three sizes, three policies, and three skews",
    run,
};

const POLICIES: [&str; 3] = ["greedy", "cost-benefit", "netbsd"];
/// Uniform, the publication's, and one that is more skewed.
const SKEWS: [Skew; 3] = [Skew::Uniform, Skew::PAPER, Skew::HotCold { hot_files: 0.01, hot_writes: 0.95 }];

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let scale = bench.pick(
        Scale { size_mb: 16, segment_kb: 0, warm_up: 1, measured: 1, marks: Marks::Two },
        Scale { size_mb: 64, segment_kb: 0, warm_up: 10, measured: 5, marks: Marks::Two },
    );
    let segments_kb = bench.pick([128].as_slice(), [128, 256, 512].as_slice());
    let utilisations = bench.pick([0.3, 0.45].as_slice(), [0.4, 0.55, 0.65].as_slice());
    let mut points = Vec::new();
    for segment_kb in segments_kb {
        for skew in SKEWS {
            for policy in POLICIES {
                for utilisation in utilisations {
                    points.push((*segment_kb, Case { policy, skew, utilisation: *utilisation }));
                }
            }
        }
    }
    let seed = bench.seed();
    let found = each(bench, "cleaning", &points, |(segment_kb, case)| {
        Ok((*segment_kb, measure(case, Scale { segment_kb: *segment_kb, ..scale }, seed)?))
    })?;
    // The longest segments in a log with four times as many of them.
    let larger =
        Scale { size_mb: scale.size_mb * 4, segment_kb: segments_kb.last().copied().unwrap_or_default(), ..scale };
    let fullest = utilisations.last().copied().unwrap_or_default();
    let larger = measure(&Case { policy: "greedy", skew: Skew::Uniform, utilisation: fullest }, larger, seed)?;
    Ok(outcome(&found, scale, &larger))
}

fn outcome(found: &[(u64, Found)], scale: Scale, larger: &Found) -> Outcome {
    let mut outcome = Outcome::new();
    outcome
        .parameter("file systems", format!("{} MiB, files of 4 KB", scale.size_mb))
        .parameter("writes", format!("{} for each file to begin with, {} measured", scale.warm_up, scale.measured));
    for (segment_kb, f) in found {
        let what = format!("write cost, segments of {segment_kb} KB, {}, {:.0} % live", f.case.name(), f.live * 100.0);
        outcome.row(Row::new(what, Unit::Ratio, Published::NONE, f.write_cost, Explain::Agrees));
    }
    let (four_times, theory) = (scale.size_mb * 4, formula(uniform_at(larger.live)));
    let what = format!("{:.0} % live, a log of {four_times} MiB: write cost over theory", larger.live * 100.0);
    outcome.row(Row::new(what, Unit::Ratio, Published::NONE, larger.write_cost / theory, Explain::Agrees));
    let uniform: Vec<&Found> =
        found.iter().map(|(_, f)| f).filter(|f| f.case.skew == Skew::Uniform && f.case.policy == "greedy").collect();
    let below = uniform.iter().filter(|f| f.write_cost <= formula(uniform_at(f.live)) * 1.25).count();
    outcome.claim(Claim::new(
        "greedy under uniform writes costs no more than a quarter above theory, whatever the segment's size",
        below == uniform.len(),
        format!("{below} of {}", uniform.len()),
        Explain::because(format!(
            "the log is too small for its longest segments: in one of {four_times} MiB, with nothing else changed, the \
             fullest costs {:.2} times as much as by theory (above). Which part of a log's upkeep weighs more in a \
             small one is not known",
            larger.write_cost / theory,
        )),
    ));
    let mut series: Vec<Series> = Vec::new();
    for (segment_kb, f) in found {
        let (panel, name) = (format!("segments of {segment_kb} KB"), f.case.name());
        let point = crate::Point { x: f.live, y: f.write_cost };
        match series.iter_mut().find(|known| known.panel == panel && known.name == name) {
            Some(known) => known.points.push(point),
            None => series.push(Series::in_panel(&panel, &name, [(point.x, point.y)])),
        }
    }
    outcome.figure(Figure {
        name: "write-cost".to_owned(),
        title: "Write cost by utilisation, for each segment size, policy and skew.".to_owned(),
        x: Axis::Share("live share of all segments".to_owned()),
        y: Axis::Number("write cost".to_owned()),
        series,
    });
    outcome
}
