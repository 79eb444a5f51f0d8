//! What age did: layout, free space, use and speed over simulated time, of one file system or of several side by side.
//!
//! [`document()`] shows one [`Input`], [`compare`] lays several over each other, [`self_check`] shows how well a replay
//! reproduced its original.

mod check;
mod free;
mod over_time;
mod side_by_side;
mod sizes;
mod throughput;

pub use check::self_check;
pub use side_by_side::compare;

use crate::verify::SelfCheck;
use document::{Cell, Document, Table};
use layout::present::days_before;
use layout::present::in_unit;
use layout::present::map::{Panel, maps, over_time as over_time_with_slider};
use layout::series::Days;
use layout::{Series, SeriesPoint};
use units::show;

/// What is known of one aging.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Its surveys.
    pub series: &'a Series,
    /// A benchmark on the fresh file system (A) and on the aged one (B).
    pub throughput: Option<&'a workload::Comparison>,
    /// How well a replay of it reproduced it.
    pub check: Option<&'a SelfCheck>,
}

impl<'a> Input<'a> {
    /// Surveys alone.
    pub fn new(series: &'a Series) -> Input<'a> {
        Input { series, throughput: None, check: None }
    }
}

/// One aging.
pub fn document(input: &Input<'_>) -> Document {
    let series = input.series;
    let title = match series.header.days {
        Days::Simulated => "Aging of",
        Days::Real => "Layout by day of",
    };
    let mut document = Document::new(format!("{title} {}", name(series)));
    document.paragraph(in_short(series)).list(remarks(series));
    document.table(before_and_after(series));
    disk(&mut document, series);
    over_time::layout(&mut document, series);
    sizes::by_size(&mut document, series);
    free::over_time(&mut document, series);
    over_time::used(&mut document, series);
    if let Some(comparison) = input.throughput {
        document.heading("Throughput, fresh and aged");
        throughput::one(&mut document, comparison);
    }
    if let Some(check) = input.check {
        check::section(&mut document, std::slice::from_ref(check));
    }
    document
}

fn name(series: &Series) -> &str {
    if series.header.name.is_empty() { "a file system" } else { &series.header.name }
}

fn in_short(series: &Series) -> String {
    let Some((first, last)) = ends(series) else { return "There is no survey yet.".to_owned() };
    let workload = &series.header.workload;
    let workload = if workload.is_empty() { String::new() } else { format!("{workload}: ") };
    let surveys = match series.points.len() {
        1 => "one survey".to_owned(),
        n => format!("{n} surveys"),
    };
    let time = match series.header.days {
        Days::Simulated => " of simulated time",
        Days::Real => ", counted from the first",
    };
    // Snapshots do not say how many there were.
    let operations = match last.operations {
        0 => String::new(),
        n => format!("; {}", show::counted(n, "operation", "operations")),
    };
    format!(
        "{workload}{surveys} of {}, from day {} to day {}{time}{operations}.",
        first.survey.source.fs_type,
        day(first.day),
        day(last.day),
    )
}

fn remarks(series: &Series) -> Vec<String> {
    let mut remarks = series.header.notes.clone();
    if series.torn_bytes > 0 {
        let bytes = show::count(series.torn_bytes);
        remarks.push(format!("the run was cut off: an incomplete record of {bytes} bytes at the end was left out"));
    }
    // What every survey says is said once.
    for note in series.points.iter().flat_map(|p| &p.survey.source.notes) {
        if !remarks.contains(note) {
            remarks.push(note.clone());
        }
    }
    let missing = |what: &str, why: &str| format!("{what} not available: {why}");
    let why = series.points.iter().find_map(|p| p.survey.files.why()).map(|why| missing("layout of files is", why));
    let why_free = series.points.iter().find_map(|p| p.survey.free.why()).map(|why| missing("free space is", why));
    remarks.extend(why.into_iter().chain(why_free));
    remarks
}

/// The first and the last survey.
fn ends(series: &Series) -> Option<(&SeriesPoint, &SeriesPoint)> {
    series.points.first().zip(series.points.last())
}

/// A day for people: whole where it is whole.
fn day(day: f64) -> String {
    if day.fract().abs() < 0.05 { format!("{day:.0}") } else { format!("{day:.1}") }
}

/// The same in a column.
fn day_cell(day: f64) -> Cell {
    // Days are counted from 0 and stay far below 2^53.
    if day.fract().abs() < 0.05 { Cell::Count(day.round() as u64) } else { Cell::Number(day) }
}

/// At most so many of a list, evenly spaced, with its first and last.
fn thinned<T>(list: &[T], most: usize) -> Vec<&T> {
    let n = list.len();
    if n <= most || most < 2 {
        return list.iter().collect();
    }
    (0..most).filter_map(|i| list.get(i * (n - 1) / (most - 1))).collect()
}

fn before_and_after(series: &Series) -> Table {
    let Some((first, last)) = ends(series).filter(|_| series.points.len() > 1) else {
        return Table::new("before_and_after", "", &[]);
    };
    let titles = [format!("Day {}", day(first.day)), format!("Day {}", day(last.day))];
    let [from, to] = titles.each_ref().map(String::as_str);
    let columns = [("Figure", "figure"), (from, "first"), (to, "last"), ("Change", "change")];
    let mut table = Table::new("before_and_after", "", &columns);
    for row in layout::compare(&first.survey, &last.survey).figures {
        let cell = |value: Option<f64>| value.map_or(Cell::Empty, |value| in_unit(&row.unit, value));
        let change = row.difference.map_or(Cell::Empty, |difference| match row.unit.as_str() {
            "score" => Cell::SignedScore(difference),
            "bytes" => Cell::Bytes(difference),
            "share" => Cell::SignedShare(difference),
            "percent" => Cell::SignedShare(difference / 100.0),
            _ => Cell::Number(difference),
        });
        table.row(vec![Cell::from(row.figure), cell(row.a), cell(row.b), change]);
    }
    table
}

/// The disk: the first and the last map side by side, and one with a slider over all of them.
fn disk<'s>(document: &mut Document, series: &'s Series) {
    let known = |p: &&SeriesPoint| p.survey.map.as_ref().is_some_and(|map| map.known().is_some());
    let all: Vec<&SeriesPoint> = series.points.iter().filter(known).collect();
    let first = all.first().copied();
    let last = all.last().copied().filter(|last| first.is_some_and(|f| f.day != last.day));
    document.heading("The disk");
    let why = series.points.iter().find_map(|p| p.survey.map.as_ref()?.why());
    if let (None, Some(why)) = (first, why) {
        document.paragraph(format!("There is no map: {why}."));
    }
    let clock = !series.clock.is_empty();
    let panels = |points: &[&'s SeriesPoint]| -> Vec<Panel<'s>> {
        points.iter().filter_map(|p| panel(series, p, clock)).collect()
    };
    let title = if clock { "last written on day" } else { "last written, days before the survey" };
    let ends: Vec<&SeriesPoint> = [first, last].into_iter().flatten().collect();
    maps(document, &panels(&ends), title, clock);
    over_time_with_slider(document, &panels(&all), title, clock);
}

/// A survey's map; ages are days of the simulated clock, or days before the survey.
fn panel<'s>(series: &'s Series, point: &'s SeriesPoint, clock: bool) -> Option<Panel<'s>> {
    let map = point.survey.map.as_ref()?.known()?;
    let age: Box<dyn Fn(i64) -> f64 + 's> = match clock {
        true => Box::new(move |ns| series.day_of_unix_ns(ns).unwrap_or(0.0)),
        false => Box::new(move |ns| days_before(&point.survey, ns)),
    };
    let used = point.summary().used_share.map(|s| format!(", {} in use", show::share(s))).unwrap_or_default();
    Some(Panel { title: format!("Day {}{used}", day(point.day)), map, age })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_both_ends() {
        let list: Vec<u32> = (0..1000).collect();
        assert_eq!(thinned(&list, 5), [&0, &249, &499, &749, &999]);
        assert_eq!(thinned(&list, 2000).len(), 1000);
        assert_eq!(thinned(&[7], 6), [&7]);
    }
}
