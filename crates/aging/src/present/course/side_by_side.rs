//! Several agings: what each file system became under each workload.

use super::{Input, Panel, day, day_cell, ends, over_time::days, throughput};
use crate::verify::SelfCheck;
use document::chart::{Axis, Colours, Dot, chart, steps};
use document::{Cell, Document, Table};
use layout::present::{score, share};
use layout::series::PointSummary;
use units::show;
use workload::Verdict;

/// Which line an aging is: the panel by workload where several file systems met several workloads.
struct Label {
    panel: String,
    series: String,
    /// Both in one, for tables.
    name: String,
    workload: String,
}

impl Label {
    /// Both in one, as short as can be told apart.
    fn title(&self) -> String {
        if self.panel.is_empty() { self.series.clone() } else { format!("{}, {}", self.series, self.panel) }
    }
}

/// Several agings over each other.
pub fn compare(inputs: &[Input<'_>]) -> Document {
    let labels = labels(inputs);
    let mut document = Document::new(format!("Aging of {} file systems", inputs.len()));
    document.list(remarks(inputs, &labels));
    document.table(ends_table(inputs, &labels));
    document.heading("Layout over time").table(scores_table(inputs, &labels));
    lines(&mut document, inputs, &labels, "Aggregate layout score.", Axis::Score("layout score"), |p| p.layout_score);
    lines(&mut document, inputs, &labels, "Extents for each MiB of data.", Axis::Number("extents per MiB"), |p| {
        p.extents_per_mib
    });
    let title = "Files of two blocks or more that are in more than one piece.";
    lines(&mut document, inputs, &labels, title, Axis::Share("share of files"), |p| p.broken_share);
    document.heading("Layout score by file size, at the end");
    sizes(&mut document, inputs, &labels);
    document.heading("Free space over time");
    let title = "Share of free space in extents of 1 MiB or more.";
    lines(&mut document, inputs, &labels, title, Axis::Share("share of free space"), |p| p.free_in_1m_share);
    free(&mut document, inputs, &labels);
    used(&mut document, inputs, &labels);
    disks(&mut document, inputs, &labels);
    speeds(&mut document, inputs, &labels);
    let checks: Vec<SelfCheck> = inputs.iter().filter_map(|input| input.check.cloned()).collect();
    if !checks.is_empty() {
        super::check::section(&mut document, &checks);
    }
    document
}

fn labels(inputs: &[Input<'_>]) -> Vec<Label> {
    let header = |i: &Input<'_>| (super::name(i.series).to_owned(), i.series.header.workload.clone());
    let all: Vec<(String, String)> = inputs.iter().map(header).collect();
    let many = |of: fn(&(String, String)) -> &String| {
        let mut names = all.iter().map(of);
        names.next().is_some_and(|first| names.any(|other| other != first))
    };
    let (names, workloads) = (many(|l| &l.0), many(|l| &l.1));
    all.iter()
        .enumerate()
        .map(|(i, (name, workload))| {
            // The same twice (two seeds, say) is told apart by its place.
            let before = all.iter().take(i).filter(|other| *other == &(name.clone(), workload.clone())).count();
            let name = if before == 0 { name.clone() } else { format!("{name} ({})", before + 1) };
            let (panel, series) = match (names, workloads) {
                (true, true) => (workload.clone(), name.clone()),
                (false, true) => {
                    (String::new(), if before == 0 { workload.clone() } else { format!("{workload} ({})", before + 1) })
                }
                _ => (String::new(), name.clone()),
            };
            Label { panel, series, name, workload: workload.clone() }
        })
        .collect()
}

/// What each has to say, and once what all say.
fn remarks(inputs: &[Input<'_>], labels: &[Label]) -> Vec<String> {
    let of: Vec<Vec<String>> = inputs.iter().map(|input| super::remarks(input.series)).collect();
    let mut found = Vec::new();
    for (label, remarks) in labels.iter().zip(&of) {
        for remark in remarks {
            let all = of.iter().all(|other| other.contains(remark));
            let shown = if all { remark.clone() } else { format!("{}, {}: {remark}", label.name, label.workload) };
            if !found.contains(&shown) {
                found.push(shown);
            }
        }
    }
    found
}

/// Scores by day of all: a few rows.
fn scores_table(inputs: &[Input<'_>], labels: &[Label]) -> Table {
    let titles: Vec<String> = labels.iter().map(Label::title).collect();
    let columns = std::iter::once(("Day", "day")).chain(titles.iter().map(|t| (t.as_str(), t.as_str())));
    let mut table = Table::new("scores_by_day", "Aggregate layout score.", &columns.collect::<Vec<_>>());
    let mut days: Vec<f64> = inputs.iter().flat_map(|i| &i.series.points).map(|p| p.day).collect();
    days.sort_by(f64::total_cmp);
    days.dedup();
    for day in super::thinned(&days, 11) {
        let of = |input: &Input<'_>| {
            let point = input.series.points.iter().find(|p| p.day == *day)?;
            point.survey.files.known()?.layout_score
        };
        let cells = inputs.iter().map(|input| score(of(input)));
        table.row(std::iter::once(day_cell(*day)).chain(cells).collect());
    }
    table
}

/// What each disk looks like in the end.
fn disks(document: &mut Document, inputs: &[Input<'_>], labels: &[Label]) {
    let mut panels = Vec::new();
    for (label, input) in labels.iter().zip(inputs) {
        let with_map = |p: &&layout::SeriesPoint| p.survey.map.as_ref().is_some_and(|map| map.known().is_some());
        let last = input.series.points.iter().rev().find(with_map);
        if let (Some(point), false) = (last, input.series.clock.is_empty())
            && let Some(map) = point.survey.map.as_ref().and_then(|map| map.known())
        {
            let workload = if label.workload.is_empty() { String::new() } else { format!(", {}", label.workload) };
            panels.push(Panel {
                title: format!("{}{workload}, day {}", label.name, day(point.day)),
                map,
                age: Box::new(|ns| input.series.day_of_unix_ns(ns).unwrap_or(0.0)),
            });
        }
    }
    document.heading("The disks, at the end");
    super::maps(document, &panels, "last written on day", true);
}

fn ends_table(inputs: &[Input<'_>], labels: &[Label]) -> Table {
    let mut table = Table::new(
        "agings",
        "The first and the last survey of each; the last three columns are of the last: the largest free extent, and \
         the share of free space in extents of 1 MiB or more.",
        &[
            ("File system", "name"),
            ("Workload", "workload"),
            ("Days", "days"),
            ("In use", "used_share"),
            ("Score, first", "layout_score_first"),
            ("last", "layout_score_last"),
            ("Extents/MiB, first", "extents_per_mib_first"),
            ("last", "extents_per_mib_last"),
            ("Largest free", "largest_free_bytes"),
            ("Free in 1 MiB", "free_in_1m_share"),
        ],
    );
    for (label, input) in labels.iter().zip(inputs) {
        let Some((first, last)) = ends(input.series) else { continue };
        let (a, b) = (first.summary(), last.summary());
        let number = |n: Option<f64>| n.map_or(Cell::Empty, Cell::Number);
        table.row(vec![
            Cell::from(label.name.clone()),
            Cell::from(label.workload.clone()),
            day_cell(b.day),
            share(b.used_share),
            score(a.layout_score),
            score(b.layout_score),
            number(a.extents_per_mib),
            number(b.extents_per_mib),
            b.largest_free_bytes.map_or(Cell::Empty, |bytes| Cell::Bytes(bytes as f64)),
            share(b.free_in_1m_share),
        ]);
    }
    table
}

fn dot(label: &Label, x: f64, y: f64) -> Dot {
    Dot { panel: label.panel.clone(), ..Dot::new(label.series.clone(), x, y) }
}

fn lines(
    document: &mut Document,
    inputs: &[Input<'_>],
    labels: &[Label],
    title: &str,
    axis: Axis<'_>,
    figure: fn(&PointSummary) -> Option<f64>,
) {
    let mut dots = Vec::new();
    for (label, input) in labels.iter().zip(inputs) {
        let points = input.series.points.iter().map(layout::SeriesPoint::summary);
        dots.extend(points.filter_map(|p| Some(dot(label, p.day, figure(&p)?))));
    }
    if !dots.is_empty() {
        document.plot(chart(title, days(inputs.iter().map(|i| i.series)), axis, Colours::Apart, &dots));
    }
}

fn sizes(document: &mut Document, inputs: &[Input<'_>], labels: &[Label]) {
    let mut dots = Vec::new();
    for (label, input) in labels.iter().zip(inputs) {
        let files = input.series.points.last().and_then(|p| p.survey.files.known());
        let rows = files.map(|f| f.by_size.as_slice()).unwrap_or_default();
        dots.extend(rows.iter().filter_map(|row| Some(dot(label, row.high as f64, row.layout_score?))));
    }
    if !dots.is_empty() {
        let (x, y) = (Axis::Bytes("file size up to"), Axis::Score("layout score"));
        document.plot(chart("Aggregate layout score of the aged files by size.", x, y, Colours::Apart, &dots));
    }
}

fn free(document: &mut Document, inputs: &[Input<'_>], labels: &[Label]) {
    let mut dots = Vec::new();
    for (label, input) in labels.iter().zip(inputs) {
        let Some((first, last)) = ends(input.series) else { continue };
        for (kind, point) in [("first survey", first), ("last survey", last)] {
            let cdf = point.survey.free.known().map(|f| f.cdf.as_slice()).unwrap_or_default();
            dots.extend(cdf.iter().map(|p| Dot { kind: kind.to_owned(), ..dot(label, p.len_bytes as f64, p.share) }));
        }
    }
    if !dots.is_empty() {
        let (x, y) = (Axis::Bytes("length of free extent"), Axis::Share("share of free space"));
        document.plot(steps("Share of free space in free extents up to a length.", x, y, Colours::Apart, &dots));
    }
}

fn used(document: &mut Document, inputs: &[Input<'_>], labels: &[Label]) {
    let mut dots = Vec::new();
    for (label, input) in labels.iter().zip(inputs) {
        for used in super::thinned(&input.series.used, 300) {
            let of = |kind: &str, y: f64| Dot { kind: kind.to_owned(), ..dot(label, used.day, y) };
            dots.push(of("actual", used.actual_share));
            dots.extend(used.planned_share.map(|planned| of("planned", planned)));
        }
    }
    if !dots.is_empty() {
        document.heading("Utilisation");
        let title = "Share of the file system in use, as planned and as statvfs had it.";
        document.plot(chart(
            title,
            days(inputs.iter().map(|i| i.series)),
            Axis::Share("in use"),
            Colours::Apart,
            &dots,
        ));
    }
}

/// Aged over fresh by size, a plot for each phase.
fn speeds(document: &mut Document, inputs: &[Input<'_>], labels: &[Label]) {
    let compared: Vec<_> = labels.iter().zip(inputs).filter_map(|(label, i)| Some((label, i.throughput?))).collect();
    if compared.is_empty() {
        return;
    }
    document.heading("Throughput, aged over fresh");
    let mut phases = Vec::new();
    for phase in compared.iter().flat_map(|(_, comparison)| throughput::phases(&comparison.rows)) {
        if !phases.contains(&phase) {
            phases.push(phase);
        }
    }
    document.table(ratios(&compared));
    for phase in phases {
        let mut dots = Vec::new();
        for (label, comparison) in &compared {
            let rows = comparison.rows.iter().filter(|row| row.phase == phase);
            dots.extend(rows.filter_map(|row| Some(dot(label, row.size_bytes? as f64, row.ratio.median))));
        }
        if !dots.is_empty() {
            let title = format!("Rate of {} by file size, aged over fresh.", phase.name());
            document.plot(chart(&title, Axis::Bytes("file size"), Axis::Ratio("aged / fresh"), Colours::Apart, &dots));
        }
    }
}

/// Aged over fresh: a row for each phase and size, a column for each aging.
fn ratios(compared: &[(&Label, &workload::Comparison)]) -> Table {
    let titles: Vec<String> = compared.iter().map(|(label, _)| label.title()).collect();
    let columns = [("Phase", "phase"), ("Files", "file_size")].into_iter();
    let columns: Vec<(&str, &str)> = columns.chain(titles.iter().map(|t| (t.as_str(), t.as_str()))).collect();
    let caption = "Below 1, the aged one is slower. In brackets: no faster and no slower.";
    let mut table = Table::new("throughput_ratios", caption, &columns);
    let mut rows: Vec<(workload::Phase, Option<u64>, &str)> = Vec::new();
    for row in compared.iter().flat_map(|(_, comparison)| &comparison.rows) {
        let key = (row.phase, row.size_bytes, row.label.as_str());
        if !rows.contains(&key) {
            rows.push(key);
        }
    }
    // Sizes that only some were measured at would come last otherwise.
    rows.sort_by_key(|(phase, size, _)| (*phase, *size));
    for (phase, size, label) in rows {
        let cells = compared.iter().map(|(_, comparison)| {
            let found = comparison.rows.iter().find(|row| row.phase == phase && row.label == label);
            found.map_or(Cell::Empty, |row| match row.verdict {
                Verdict::Tie | Verdict::Same => Cell::from(format!("({})", show::significant(row.ratio.median))),
                _ => Cell::Ratio(row.ratio.median),
            })
        });
        let files = size.map_or_else(|| Cell::from(label), |bytes| Cell::Bytes(bytes as f64));
        table.row([Cell::from(phase.name()), files].into_iter().chain(cells).collect());
    }
    table
}
