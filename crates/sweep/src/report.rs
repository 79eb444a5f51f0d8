//! What a sweep shows: means over tasks by each axis's values, the same as curves, and the Pareto front of two figures.
//!
//! A mean weighs each combination alike. Its 95 % interval is the bootstrap's, over combinations: it says how much the
//! mean depends on which were run, not how well each was measured. Axes called `seed` or `repeat` are repetitions: a
//! combination is the mean of its repetitions. Where there is one combination alone, the mean and its interval are over
//! the repetitions.

use crate::spec::{AxisValue, ReportSpec, Spec};
use crate::tasks::Tasks;
use crate::{Entry, Figure, Folder, Outcome, SweepError};
use serde::Serialize;
use std::collections::BTreeMap;

/// Parts that are shown where none is named.
const PARTS_MAX: usize = 4;
/// Lines that colours tell apart, and panels that fit.
const SERIES_MAX: usize = 9;
const PANELS_MAX: usize = 12;
/// The seed of the intervals.
const SEED: u64 = 1;
/// Axes of these names are repetitions.
const REPETITIONS: [&str; 2] = ["seed", "repeat"];
/// How the systems of one task are called, as an axis.
const SUBJECT: &str = "subject";

/// What a sweep shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The figure.
    pub metric: String,
    /// What it counts.
    pub unit: String,
    /// All figures there are, to choose another.
    pub metrics: Vec<String>,
    /// By part of the workload.
    pub parts: Vec<PartReport>,
    /// Parts that have the figure and are not shown.
    pub parts_left_out: Vec<String>,
    /// Two figures weighed against each other.
    pub pareto: Option<Pareto>,
}

/// One part's means.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartReport {
    /// The part; empty for the whole.
    pub part: String,
    /// Over all tasks.
    pub all: Mean,
    /// By each value of each axis that has several.
    pub marginals: Vec<Marginal>,
    /// As curves, if there is an axis to go across.
    pub curves: Option<Curves>,
}

/// A mean over tasks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// How many values: combinations, or repetitions of one.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// Its 95 % interval; of one value, that value.
    pub low: f64,
    #[allow(missing_docs)]
    pub high: f64,
}

/// The mean where one axis has one value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Marginal {
    /// The axis.
    pub axis: String,
    /// Its value.
    pub value: String,
    /// Over the tasks that have it.
    #[serde(flatten)]
    pub mean: Mean,
}

/// Small multiples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curves {
    /// The axis that goes across.
    pub x: String,
    /// Whether its values are numbers.
    pub is_numeric: bool,
    /// The axis of the lines.
    pub series: Option<String>,
    /// The axis of the panels.
    pub panel: Option<String>,
    /// Points, in the order of panels, lines and values.
    pub points: Vec<CurvePoint>,
}

/// A point of a curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The panel; empty where there is one.
    pub panel: String,
    /// The line; empty where there is one.
    pub series: String,
    /// The value across.
    pub x: String,
    /// The same as a number.
    pub x_number: Option<f64>,
    /// Over the tasks there.
    #[serde(flatten)]
    pub mean: Mean,
}

/// One of two figures that are weighed against each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Measure {
    /// The figure.
    pub metric: String,
    /// Its part.
    pub part: String,
    /// Whether more is better.
    pub more_is_better: bool,
    /// What it counts.
    pub unit: String,
}

/// Which combinations no other beats in both figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pareto {
    /// Across and upwards.
    pub measures: [Measure; 2],
    /// The axes that name a combination.
    pub axes: Vec<String>,
    /// Every combination, the front first.
    pub points: Vec<ParetoPoint>,
}

/// A combination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ParetoPoint {
    /// Its value on each axis.
    pub values: Vec<String>,
    /// The two figures, means over repetitions.
    pub figures: [f64; 2],
    /// Whether it is on the front.
    pub on_front: bool,
}

/// A value of one figure.
struct Seen {
    /// Position of the value on each axis; the last is the subject's.
    at: Vec<usize>,
    value: f64,
}

/// What is seen of a figure's part: its unit and values.
type Parts = Vec<(String, String, Vec<Seen>)>;

/// An axis as the report has it: its name, its values' names and numbers, and whether it is a repetition.
struct Dimension {
    name: String,
    values: Vec<(String, Option<f64>)>,
    is_repetition: bool,
}

/// Makes the report; `None` where no task has a result.
///
/// # Errors
/// A figure, part or axis that is asked for is not there; the journal cannot be read.
pub fn report(
    spec: &Spec,
    tasks: &Tasks,
    folder: &mut Folder,
    asked: &ReportSpec,
) -> Result<Option<Report>, SweepError> {
    let mut collected = Collected::default();
    for number in 1..=tasks.len() {
        let (Some(entry), Some(places)) = (folder.entry(number)?, tasks.places(spec, number)) else { continue };
        collected.take(entry, &places);
    }
    let Some(first) = collected.first.clone() else { return Ok(None) };
    let metric = asked.metric.clone().unwrap_or(first);
    let metrics: Vec<String> = collected.metrics.iter().map(|(name, _)| name.clone()).collect();
    let parts = collected.parts(&metric, &metrics)?;
    let dimensions = dimensions(spec, &collected.subjects, collected.several);
    let axes = chosen(&dimensions, asked)?;
    let wanted = |part: &str| asked.part.as_ref().is_none_or(|wanted| wanted == part);
    let mut report = Report { metric: metric.clone(), metrics, ..Report::default() };
    for (part, unit, seen) in parts {
        if !wanted(part) || report.parts.len() == PARTS_MAX {
            report.parts_left_out.push(part.clone());
            continue;
        }
        report.unit.clone_from(unit);
        report.parts.push(part_report(part, seen, &dimensions, &axes));
    }
    if let (true, Some(part)) = (report.parts.is_empty(), &asked.part) {
        let names = report.parts_left_out.join(", ");
        return Err(SweepError::Usage(format!("{metric} has no part {part:?}; there are {names}")));
    }
    if let Some([a, b]) = &asked.pareto {
        report.pareto = Some(pareto(&collected, &report.metrics, &dimensions, [a, b])?);
    }
    Ok(Some(report))
}

/// All figures of a sweep.
#[derive(Default)]
struct Collected {
    /// The first figure of the first task: what the command's result begins with.
    first: Option<String>,
    metrics: Vec<(String, Parts)>,
    /// Where each metric, and each part of it, stands.
    index: BTreeMap<(String, String), (usize, usize)>,
    subjects: Vec<String>,
    /// Whether a task has figures of several subjects.
    several: bool,
}

impl Collected {
    fn take(&mut self, entry: Entry, places: &[usize]) {
        let Outcome::Figures(figures) = entry.outcome else { return };
        if self.first.is_none() {
            self.first = figures.first().map(|figure| figure.metric.clone());
        }
        self.several |= figures.windows(2).any(|pair| pair[0].subject != pair[1].subject);
        for Figure { subject, part, metric, value, unit, .. } in figures {
            let subject = match self.subjects.iter().rposition(|known| *known == subject) {
                Some(at) => at,
                None => {
                    self.subjects.push(subject);
                    self.subjects.len() - 1
                }
            };
            let key = (metric, part);
            let (m, p) = match self.index.get(&key) {
                Some(found) => *found,
                None => {
                    let m = match self.metrics.iter().position(|(name, _)| *name == key.0) {
                        Some(m) => m,
                        None => {
                            self.metrics.push((key.0.clone(), Vec::new()));
                            self.metrics.len() - 1
                        }
                    };
                    self.metrics[m].1.push((key.1.clone(), unit, Vec::new()));
                    let place = (m, self.metrics[m].1.len() - 1);
                    self.index.insert(key, place);
                    place
                }
            };
            let at = places.iter().copied().chain([subject]).collect();
            self.metrics[m].1[p].2.push(Seen { at, value });
        }
    }

    fn parts(&self, metric: &str, metrics: &[String]) -> Result<&Parts, SweepError> {
        let found = self.metrics.iter().find(|(name, _)| name == metric);
        found.map(|(_, parts)| parts).ok_or_else(|| {
            SweepError::Usage(format!("no figure is called {metric:?}; there are {}", metrics.join(", ")))
        })
    }
}

fn dimensions(spec: &Spec, subjects: &[String], several: bool) -> Vec<Dimension> {
    let mut found: Vec<Dimension> = spec
        .axes
        .iter()
        .map(|axis| Dimension {
            name: axis.name.clone(),
            values: axis.values.iter().map(|value| (value.text(), AxisValue::number(value))).collect(),
            is_repetition: REPETITIONS.contains(&axis.name.as_str()),
        })
        .collect();
    // Where each task has one subject, the axes say which.
    let values = if several { subjects.iter().map(|subject| (subject.clone(), None)).collect() } else { Vec::new() };
    found.push(Dimension { name: SUBJECT.to_owned(), values, is_repetition: false });
    found
}

/// The axes of curves.
struct Axes {
    x: Option<usize>,
    series: Option<usize>,
    panel: Option<usize>,
}

/// The axes asked for, and for those that are not, the most telling: numbers across, the most values first.
fn chosen(dimensions: &[Dimension], asked: &ReportSpec) -> Result<Axes, SweepError> {
    let named = |name: &Option<String>| -> Result<Option<usize>, SweepError> {
        let Some(name) = name else { return Ok(None) };
        let found = dimensions.iter().position(|d| d.name == *name && !d.values.is_empty());
        found.map(Some).ok_or_else(|| {
            let names: Vec<&str> =
                dimensions.iter().filter(|d| !d.values.is_empty()).map(|d| d.name.as_str()).collect();
            SweepError::Usage(format!("no axis is called {name:?}; there are {}", names.join(", ")))
        })
    };
    let (x, series, panel) = (named(&asked.x)?, named(&asked.series)?, named(&asked.panel)?);
    let mut free: Vec<usize> = (0..dimensions.len())
        .filter(|&d| dimensions[d].values.len() > 1 && !dimensions[d].is_repetition)
        .filter(|&d| ![x, series, panel].contains(&Some(d)))
        .collect();
    free.sort_by_key(|&d| std::cmp::Reverse(dimensions[d].values.len()));
    let mut take =
        |fits: &dyn Fn(&Dimension) -> bool| free.iter().position(|&d| fits(&dimensions[d])).map(|at| free.remove(at));
    let is_numeric = |d: &Dimension| d.values.len() > 2 && d.values.iter().all(|(_, number)| number.is_some());
    let x = x.or_else(|| take(&is_numeric)).or_else(|| take(&|_| true));
    let series = series.or_else(|| take(&|d| d.values.len() <= SERIES_MAX));
    let panel = panel.or_else(|| take(&|d| d.values.len() <= PANELS_MAX));
    Ok(Axes { x, series, panel })
}

fn mean(values: &[f64]) -> Option<Mean> {
    let mean = stats::mean(values)?;
    let (low, high) = if values.len() > 1 { stats::mean_interval(values, SEED) } else { (mean, mean) };
    Some(Mean { n: values.len() as u64, mean, low, high })
}

/// The mean of what is seen. Repetitions of one combination are no further evidence on the others: each combination
/// counts once, as the mean of its repetitions; where there is one combination alone, its repetitions are what is seen.
fn mean_of(seen: &[&Seen], dimensions: &[Dimension]) -> Option<Mean> {
    let mut combinations: BTreeMap<Vec<usize>, Vec<f64>> = BTreeMap::new();
    for one in seen {
        let at = one.at.iter().zip(dimensions).filter(|(_, d)| !d.is_repetition).map(|(at, _)| *at).collect();
        combinations.entry(at).or_default().push(one.value);
    }
    if combinations.len() < 2 {
        return mean(&seen.iter().map(|one| one.value).collect::<Vec<f64>>());
    }
    mean(&combinations.values().filter_map(|values| stats::mean(values)).collect::<Vec<f64>>())
}

fn part_report(part: &str, seen: &[Seen], dimensions: &[Dimension], axes: &Axes) -> PartReport {
    let mut marginals = Vec::new();
    for (d, dimension) in dimensions.iter().enumerate().filter(|(_, d)| d.values.len() > 1 && !d.is_repetition) {
        for (v, (value, _)) in dimension.values.iter().enumerate() {
            let of: Vec<&Seen> = seen.iter().filter(|seen| seen.at[d] == v).collect();
            if let Some(mean) = mean_of(&of, dimensions) {
                marginals.push(Marginal { axis: dimension.name.clone(), value: value.clone(), mean });
            }
        }
    }
    // A sum of nothing would be no mean; a part that is listed has a value.
    let all = mean_of(&seen.iter().collect::<Vec<_>>(), dimensions);
    let all = all.unwrap_or(Mean { n: 0, mean: 0.0, low: 0.0, high: 0.0 });
    PartReport { part: part.to_owned(), all, marginals, curves: curves(seen, dimensions, axes) }
}

fn curves(seen: &[Seen], dimensions: &[Dimension], axes: &Axes) -> Option<Curves> {
    let x = axes.x?;
    let at = |axis: Option<usize>, seen: &Seen| axis.map_or(0, |axis| seen.at[axis]);
    let mut cells: BTreeMap<(usize, usize, usize), Vec<&Seen>> = BTreeMap::new();
    for one in seen {
        cells.entry((at(axes.panel, one), at(axes.series, one), one.at[x])).or_default().push(one);
    }
    let name =
        |axis: Option<usize>, value: usize| axis.map_or(String::new(), |axis| dimensions[axis].values[value].0.clone());
    let points = cells
        .into_iter()
        .filter_map(|((panel, series, value), values)| {
            let (text, number) = &dimensions[x].values[value];
            Some(CurvePoint {
                panel: name(axes.panel, panel),
                series: name(axes.series, series),
                x: text.clone(),
                x_number: *number,
                mean: mean_of(&values, dimensions)?,
            })
        })
        .collect();
    let named = |axis: Option<usize>| axis.map(|axis| dimensions[axis].name.clone());
    Some(Curves {
        x: dimensions[x].name.clone(),
        is_numeric: dimensions[x].values.iter().all(|(_, number)| number.is_some()),
        series: named(axes.series),
        panel: named(axes.panel),
        points,
    })
}

/// `METRIC`, `METRIC:PART`, either with `:min` or `:max` behind.
fn measure<'c>(text: &str, collected: &'c Collected, metrics: &[String]) -> Result<(Measure, &'c [Seen]), SweepError> {
    let (text, direction) = match text.rsplit_once(':') {
        Some((rest, "min")) => (rest, Some(false)),
        Some((rest, "max")) => (rest, Some(true)),
        _ => (text, None),
    };
    let (metric, part) = text.split_once(':').map_or((text, None), |(metric, part)| (metric, Some(part)));
    let parts = collected.parts(metric, metrics)?;
    let found = match part {
        Some(part) => parts.iter().find(|(name, _, _)| name == part),
        None => parts.iter().find(|(name, _, _)| name.is_empty()).or(parts.first().filter(|_| parts.len() == 1)),
    };
    let (part, unit, seen) = found.ok_or_else(|| {
        let names: Vec<String> = parts.iter().map(|(name, _, _)| format!("{metric}:{name}")).collect();
        SweepError::Usage(format!("pareto: {text:?} is no figure with its part; there are {}", names.join(", ")))
    })?;
    let measure = Measure {
        metric: metric.to_owned(),
        part: part.clone(),
        more_is_better: direction.unwrap_or_else(|| more_is_better(unit)),
        unit: unit.clone(),
    };
    Ok((measure, seen))
}

/// Rates and scores are the better the greater they are; times, sizes and numbers of things, the less.
pub fn more_is_better(unit: &str) -> bool {
    unit.contains("_per_") || unit == "score"
}

fn pareto(
    collected: &Collected,
    metrics: &[String],
    dimensions: &[Dimension],
    asked: [&String; 2],
) -> Result<Pareto, SweepError> {
    let named: Vec<usize> =
        (0..dimensions.len()).filter(|&d| dimensions[d].values.len() > 1 && !dimensions[d].is_repetition).collect();
    let (first, of_first) = measure(asked[0], collected, metrics)?;
    let (second, of_second) = measure(asked[1], collected, metrics)?;
    let mut cells: BTreeMap<Vec<usize>, [Vec<f64>; 2]> = BTreeMap::new();
    for (which, seen) in [of_first, of_second].into_iter().enumerate() {
        for one in seen {
            let at = named.iter().map(|&d| one.at[d]).collect();
            cells.entry(at).or_default()[which].push(one.value);
        }
    }
    let mut points: Vec<ParetoPoint> = cells
        .into_iter()
        .filter_map(|(at, [a, b])| {
            let values = named.iter().zip(&at).map(|(&d, &v)| dimensions[d].values[v].0.clone()).collect();
            Some(ParetoPoint { values, figures: [stats::mean(&a)?, stats::mean(&b)?], on_front: false })
        })
        .collect();
    let measures = [first, second];
    mark_front(&mut points, [measures[0].more_is_better, measures[1].more_is_better]);
    // The order of the axes stays within each.
    points.sort_by_key(|point| !point.on_front);
    Ok(Pareto { measures, axes: named.iter().map(|&d| dimensions[d].name.clone()).collect(), points })
}

/// On the front is what nothing else is at least as good as in both, and better in one.
fn mark_front(points: &mut [ParetoPoint], more_is_better: [bool; 2]) {
    let cost = |point: &ParetoPoint| {
        let [a, b] = point.figures;
        [if more_is_better[0] { -a } else { a }, if more_is_better[1] { -b } else { b }]
    };
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&i, &j| {
        let (i, j) = (cost(&points[i]), cost(&points[j]));
        i[0].total_cmp(&j[0]).then(i[1].total_cmp(&j[1]))
    });
    let mut best: Option<[f64; 2]> = None;
    for i in order {
        let here = cost(&points[i]);
        let on_front = best.is_none_or(|best| here[1] < best[1] || here == best);
        points[i].on_front = on_front;
        if on_front {
            best = Some(here);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(a: f64, b: f64) -> ParetoPoint {
        ParetoPoint { values: Vec::new(), figures: [a, b], on_front: false }
    }

    /// Against the definition, pair by pair.
    #[test]
    fn the_front_is_what_nothing_beats() {
        let mut points: Vec<ParetoPoint> =
            (0..60u32).map(|i| point(f64::from(i * 7 % 13), f64::from(i * 11 % 17))).collect();
        for directions in [[false, false], [true, false], [false, true], [true, true]] {
            mark_front(&mut points, directions);
            let better = |a: f64, b: f64, more: bool| if more { a > b } else { a < b };
            for p in &points {
                let beaten = points.iter().any(|q| {
                    let wins = |i: usize| better(q.figures[i], p.figures[i], directions[i]);
                    let loses = |i: usize| better(p.figures[i], q.figures[i], directions[i]);
                    (wins(0) || wins(1)) && !loses(0) && !loses(1)
                });
                assert_eq!(p.on_front, !beaten, "{:?} {directions:?}", p.figures);
            }
        }
    }

    #[test]
    fn a_mean_has_an_interval_of_its_values() {
        let found = mean(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!((found.n, found.mean), (4, 2.5));
        assert!(found.low < 2.5 && found.high > 2.5 && found.low >= 1.0 && found.high <= 4.0);
        assert_eq!(mean(&[7.0]), Some(Mean { n: 1, mean: 7.0, low: 7.0, high: 7.0 }));
        assert_eq!(mean(&[]), None);
    }
}
