//! Benchmarks: rates with intervals by point and phase, targets side by side, and one result held against another.

mod phases;

use crate::{BenchResult, Compared, Comparison, Phase, Repeat, Round, TableRows, TargetResult, Unit, Verdict};
use document::plot::{self, Bar, Counted, IntervalPoint};
use document::{Cell, Document, Plot, Table};
use posix::CacheState;
use stats::Estimate;

/// A result, on one target or several.
pub fn bench(result: &BenchResult) -> Document {
    if result.parameters.benchmark().table_rows() == TableRows::Phases {
        return phases::document(result);
    }
    let names: Vec<&str> = result.targets.iter().map(|t| t.name.as_str()).collect();
    let mut document = Document::new(format!("{}: {}", result.parameters.name(), names.join(", ")));
    document.paragraph(result.parameters.benchmark().what());
    document.paragraph(how(result.parameters.repeat()));
    for target in &result.targets {
        let mut remarks = vec![caches(target)];
        remarks.extend(target.notes.clone());
        remarks.extend(outliers(target));
        if let [_] = result.targets.as_slice() {
            document.list(remarks);
        } else {
            document.list(remarks.into_iter().map(|remark| format!("{}: {remark}", target.name)).collect());
        }
    }
    match result.targets.as_slice() {
        [target] => drop(document.table(phases_table(target))),
        targets => {
            for phase in phases(targets) {
                document.heading(phase.name()).table(side_by_side(targets, phase));
            }
        }
    }
    let unsynced = unsynced_table(&result.targets);
    end(&mut document, result, "Without the final write-back", unsynced);
    document
}

/// What ends every result: targets against each other, a further table, plots, and where it was.
fn end(document: &mut Document, result: &BenchResult, heading: &str, table: Table) {
    if let Some(comparison) = crate::compare_targets(result) {
        document
            .heading(format!("Against {}", comparison.a))
            .paragraph(comparison.how_to_read("B"))
            .list(comparison.cautions.iter().map(ToString::to_string).collect());
        document.table(ratios(&comparison));
    }
    if !table.rows.is_empty() {
        document.heading(heading).table(table);
    }
    let series: Vec<(String, &TargetResult)> = result.targets.iter().map(|t| (t.name.clone(), t)).collect();
    plots(document, &series);
    for target in &result.targets {
        document
            .heading(format!("Where: {}", target.name))
            .table(document::facts("environment", &target.environment.facts()));
    }
}

/// One result held against another.
pub fn bench_comparison(comparison: &Comparison, a: &BenchResult, b: &BenchResult) -> Document {
    let mut document =
        Document::new(format!("{}: {} (B) over {} (A)", comparison.benchmark, comparison.b, comparison.a));
    document.paragraph(comparison.how_to_read("B"));
    document.list(comparison.cautions.iter().map(ToString::to_string).collect()).table(ratios(comparison));
    let side = |letter: &str, result: &'_ BenchResult| {
        result.targets.iter().map(|t| format!("{letter}: {}", t.name)).collect::<Vec<_>>()
    };
    let names = side("A", a).into_iter().chain(side("B", b));
    let series: Vec<(String, &TargetResult)> = names.zip(a.targets.iter().chain(&b.targets)).collect();
    if comparison.rows.iter().any(|row| row.size_bytes.is_some()) {
        document.plot(ratio_plot(comparison));
    }
    plots(&mut document, &series);
    document
}

pub(crate) fn how(repeat: &Repeat) -> String {
    let warm_up = if repeat.warm_up { ", after a warm-up that is not counted" } else { "" };
    if repeat.rounds == 1 {
        return format!(
            "One round{warm_up}, without an interval; seed {}. In virtual time every round is like the first; \
             elsewhere take 6 or more.",
            repeat.seed
        );
    }
    let coverage = stats::coverage_of_rounds(repeat.rounds);
    let unsure = if coverage < 0.95 {
        format!(
            " So few rounds make intervals that hold the true median in at most {:.0} % of cases; take 6 or more.",
            coverage * 100.0
        )
    } else {
        String::new()
    };
    format!(
        "Medians of {} rounds in random order{warm_up}, with bootstrap 95 % intervals; seed {}.{unsure}",
        repeat.rounds, repeat.seed
    )
}

/// How cold caches were; where not always, in how many of the timings.
pub(crate) fn caches(target: &TargetResult) -> String {
    let note = &target.caches;
    let rounds = || target.points.iter().flat_map(|p| &p.phases).flat_map(|p| &p.rounds);
    let state = |worst: CacheState, of: fn(&Round) -> CacheState| match worst {
        CacheState::Cold => "cold (verified)".to_owned(),
        CacheState::Warm => "warm".to_owned(),
        CacheState::Unverified => {
            let unsure = rounds().filter(|round| of(round) != CacheState::Cold).count();
            match rounds().count() {
                all if unsure < all => format!("cold (verified) but for {unsure} of {all} timings"),
                _ => "not verified to be cold".to_owned(),
            }
        }
    };
    let why = if note.why.is_empty() { String::new() } else { format!(" ({})", note.why) };
    let (data, names) = (state(note.data, |r| r.data_cache), state(note.names, |r| r.name_cache));
    format!("caches before each phase: data {data}; names and attributes {names}{why}")
}

/// Rounds far from the others; they are in the medians all the same.
pub(crate) fn outliers(target: &TargetResult) -> Option<String> {
    let phases = target.points.iter().flat_map(|p| &p.phases);
    let (far, all) = phases.fold((0, 0), |(far, all), p| (far + p.outlier_rounds.len(), all + p.rounds.len()));
    (far > 0).then(|| format!("{far} of {all} timings are outliers (Tukey's fences); they are counted in"))
}

/// The phases of some targets, in the order they are run.
pub(crate) fn phases(targets: &[TargetResult]) -> Vec<Phase> {
    let mut phases = Vec::new();
    for result in targets.iter().flat_map(|t| &t.points).flat_map(|p| &p.phases) {
        if !phases.contains(&result.phase) {
            phases.push(result.phase);
        }
    }
    phases
}

/// A rate's unit for people, its part of a column's key, and what it is divided by.
pub const fn unit(unit: Unit) -> (&'static str, &'static str, f64) {
    match unit {
        Unit::BytesPerSecond => ("MiB/s", "mib_per_s", 1048576.0),
        Unit::FilesPerSecond => ("files/s", "files_per_s", 1.0),
        Unit::CallsPerSecond => ("calls/s", "calls_per_s", 1.0),
        Unit::TransactionsPerSecond => ("transactions/s", "transactions_per_s", 1.0),
        Unit::ScriptsPerHour => ("scripts/hour", "scripts_per_hour", 1.0),
    }
}

pub(crate) fn rate(estimate: Option<&Estimate>, of: Unit) -> Cell {
    let scale = unit(of).2;
    estimate.map_or(Cell::Empty, |e| Cell::Interval {
        value: e.median / scale,
        low: e.low / scale,
        high: e.high / scale,
    })
}

/// One target: a row for each point, a column for each phase; where files differ in size, also one for files a second.
fn phases_table(target: &TargetResult) -> Table {
    let mixed = target.points.iter().any(|p| p.point.size_bytes.is_none());
    let mut wanted: Vec<(Phase, Unit)> = Vec::new();
    for phase in phases(std::slice::from_ref(target)) {
        wanted.push((phase, phase.unit()));
        if mixed && phase.unit() == Unit::BytesPerSecond {
            wanted.push((phase, Unit::FilesPerSecond));
        }
    }
    let titles = wanted.iter().map(|(phase, of)| {
        let (title, key, _) = unit(*of);
        (format!("{}, {title}", phase.name()), format!("{}_{key}", phase.name()))
    });
    let first = [("Files", "file_size"), ("Number", "files")].map(|(title, key)| (title.to_owned(), key.to_owned()));
    let columns: Vec<(String, String)> = first.into_iter().chain(titles).collect();
    let columns: Vec<(&str, &str)> = columns.iter().map(|(title, key)| (title.as_str(), key.as_str())).collect();
    let mut table = Table::new("rates", "", &columns).all_about(&target.name);
    for point in &target.points {
        let files = point.phases.first().and_then(|p| p.rounds.last()).map_or(0, |r| r.files);
        let mut row = vec![Cell::from(point.point.label.clone()), Cell::Count(files)];
        row.extend(wanted.iter().map(|(phase, of)| {
            let found = point.phases.iter().find(|p| p.phase == *phase);
            rate(found.map(|p| if *of == p.unit { &p.rate } else { &p.files_per_s }), *of)
        }));
        table.row(row);
    }
    table
}

/// Several targets: a row for each point, a column for each target.
fn side_by_side(targets: &[TargetResult], phase: Phase) -> Table {
    let (title, key, _) = unit(phase.unit());
    let columns: Vec<(String, String)> = std::iter::once(("Files".to_owned(), "file_size".to_owned()))
        .chain(targets.iter().map(|t| (format!("{}, {title}", t.name), format!("{} {key}", t.name))))
        .collect();
    let columns: Vec<(&str, &str)> = columns.iter().map(|(title, key)| (title.as_str(), key.as_str())).collect();
    let mut table = Table::new(phase.name(), "", &columns);
    for ((_, own), target) in columns.iter().skip(1).zip(targets) {
        table = table.about(own, &target.name, &format!("rate_{key}"));
    }
    for point in targets.first().map(|t| t.points.as_slice()).unwrap_or_default() {
        let label = &point.point.label;
        let found: Vec<_> = targets.iter().map(|t| t.phase(label, phase).map(|p| &p.rate)).collect();
        if found.iter().any(Option::is_some) {
            let cells = found.into_iter().map(|estimate| rate(estimate, phase.unit()));
            table.row(std::iter::once(Cell::from(label.clone())).chain(cells).collect());
        }
    }
    table
}

/// What the calls alone would have one believe.
fn unsynced_table(targets: &[TargetResult]) -> Table {
    let mut table = Table::new(
        "without_sync",
        "Time to the end of the last call, before syncfs: what lies in memory counts as written.",
        &[
            ("Target", "target"),
            ("Files", "file_size"),
            ("Phase", "phase"),
            ("Rate", "rate"),
            ("Unit", "unit"),
            ("With syncfs", "rate_with_sync"),
        ],
    );
    for target in targets {
        for (point, phase) in target.points.iter().flat_map(|p| p.phases.iter().map(move |phase| (p, phase))) {
            if let Some(without) = &phase.rate_without_sync {
                table.row(vec![
                    Cell::from(target.name.clone()),
                    Cell::from(point.point.label.clone()),
                    Cell::from(phase.phase.name()),
                    rate(Some(without), phase.unit),
                    Cell::from(unit(phase.unit).0),
                    rate(Some(&phase.rate), phase.unit),
                ]);
            }
        }
    }
    table
}

pub(crate) fn ratios(comparison: &Comparison) -> Table {
    let many = |name: fn(&Compared) -> &str| {
        let mut names = comparison.rows.iter().map(name);
        names.next().is_some_and(|first| names.any(|other| other != first))
    };
    let named = many(|row| row.target_b.as_str()) || many(|row| row.target_a.as_str());
    let mut columns = vec![
        ("Files", "file_size"),
        ("Phase", "phase"),
        ("A", "a"),
        ("B", "b"),
        ("Unit", "unit"),
        ("B / A", "ratio"),
        ("B is", "verdict"),
    ];
    if named {
        columns.insert(0, ("Target", "target"));
    }
    let mut table = Table::new("ratios", "", &columns);
    for row in &comparison.rows {
        let ratio = match row.verdict {
            Verdict::Unknown => Cell::Number(row.ratio.median),
            _ => Cell::Interval { value: row.ratio.median, low: row.ratio.low, high: row.ratio.high },
        };
        let mut cells = vec![
            Cell::from(row.label.clone()),
            Cell::from(row.phase.name()),
            rate(Some(&row.a), row.unit),
            rate(Some(&row.b), row.unit),
            Cell::from(unit(row.unit).0),
            ratio,
            Cell::from(row.verdict.name()),
        ];
        if named {
            cells.insert(0, Cell::from(row.target_b.clone()));
        }
        table.row(cells);
    }
    table
}

/// Ratios by file size, a line for each phase.
fn ratio_plot(comparison: &Comparison) -> Plot {
    let first = comparison.rows.first().map(|row| &row.target_b);
    let many_targets = comparison.rows.iter().any(|row| Some(&row.target_b) != first);
    let name = |row: &Compared| match many_targets {
        true => format!("{}, {}", row.phase.name(), row.target_b),
        false => row.phase.name().to_owned(),
    };
    let names: Vec<String> = comparison.rows.iter().map(name).collect();
    let points: Vec<IntervalPoint<'_>> = comparison
        .rows
        .iter()
        .zip(&names)
        .filter_map(|(row, name)| {
            let (x, ratio) = (row.size_bytes? as f64, row.ratio);
            Some(IntervalPoint { series: name, x, y: ratio.median, low: ratio.low, high: ratio.high })
        })
        .collect();
    plot::interval_lines("B's rate over A's by file size, with 95 % intervals.", "file size", "B / A", &points)
}

/// A plot for each phase: lines over the file size where there are sizes, bars where there are none.
pub(crate) fn plots(document: &mut Document, series: &[(String, &TargetResult)]) {
    let targets: Vec<TargetResult> = series.iter().map(|(_, target)| (*target).clone()).collect();
    for phase in phases(&targets) {
        document.plot(plot_of(series, phase));
    }
}

fn plot_of(series: &[(String, &TargetResult)], phase: Phase) -> Plot {
    let measured = series.iter().flat_map(|(_, target)| &target.points).flat_map(|point| &point.phases);
    let of = measured.into_iter().find(|found| found.phase == phase).map_or(phase.unit(), |found| found.unit);
    let (title, _, scale) = unit(of);
    let found: Vec<_> = series
        .iter()
        .flat_map(|(name, target)| target.points.iter().map(move |point| (name, point)))
        .filter_map(|(name, point)| Some((name, &point.point, point.phases.iter().find(|p| p.phase == phase)?.rate)))
        .collect();
    let sizes = found.iter().any(|(_, point, _)| point.size_bytes.is_some());
    if sizes {
        let points: Vec<IntervalPoint<'_>> = found
            .iter()
            .filter_map(|(name, point, rate)| {
                let x = point.size_bytes? as f64;
                let (y, low, high) = (rate.median / scale, rate.low / scale, rate.high / scale);
                Some(IntervalPoint { series: name, x, y, low, high })
            })
            .collect();
        let caption = format!("Rate of {} by file size, with 95 % intervals.", phase.name());
        return plot::interval_lines(&caption, "file size", &format!("{}, {title}", phase.name()), &points);
    }
    let many = found.iter().any(|(_, point, _)| found.first().is_some_and(|(_, first, _)| first.label != point.label));
    let labels: Vec<String> = found
        .iter()
        .map(|(name, point, _)| if many { format!("{name}, {}", point.label) } else { (*name).clone() })
        .collect();
    let bars: Vec<Bar<'_>> = found
        .iter()
        .zip(&labels)
        .map(|((_, _, rate), label)| Bar {
            label,
            value_s: rate.median / scale,
            low_s: rate.low / scale,
            high_s: rate.high / scale,
        })
        .collect();
    plot::interval_bars(&format!("Rate of {}, with 95 % intervals.", phase.name()), Counted::Other(title), &bars)
}
