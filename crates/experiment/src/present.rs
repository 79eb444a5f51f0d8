//! Published experiments: which there are, and published against ours with the curves.

use crate::{Axis, Difference, Experiment, Figure, Outcome, Published, Reproduction, Row, Scale, Unit};
use document::chart::{self, Colours, Dot};
use document::{Cell, Document, Table};
use units::show;

/// The experiments that can be run.
pub fn experiments(experiments: &[Experiment]) -> Document {
    let columns = [("Key", "key"), ("Shows", "title"), ("Source", "source"), ("Runs", "runs")];
    let mut table = Table::new("experiments", "", &columns);
    for e in experiments {
        table.row([e.key, e.title, e.source, e.runs].map(Cell::from).into());
    }
    let mut document = Document::default();
    document.table(table);
    document
}

/// What was run: tables for a terminal; with `figures`, also the curves and their points.
pub fn reproduction(reproduction: &Reproduction, figures: bool) -> Document {
    let mut document = Document::new(match reproduction.outcomes.as_slice() {
        [outcome] => outcome.key.clone(),
        _ => "Published experiments".to_owned(),
    });
    let scale = match reproduction.scale {
        Scale::Quick => "a quick scale: less than published, so that differences are to be expected",
        Scale::Full => "the published scale",
    };
    document.paragraph(format!("fsage {}, seed {}, {scale}.", reproduction.version, reproduction.seed));
    for outcome in &reproduction.outcomes {
        one(&mut document, outcome, figures, reproduction.outcomes.len() > 1);
    }
    document
}

fn one(document: &mut Document, outcome: &Outcome, figures: bool, several: bool) {
    let name = outcome.key.replace('/', "-");
    let title = if several { format!("{}: {}", outcome.key, outcome.title) } else { outcome.title.clone() };
    document.heading(title).paragraph(format!("{}.", outcome.source));
    document.table(compared(&name, outcome)).table(claims(&name, outcome));
    let differences = outcome.rows.iter().filter_map(|row| Some(format!("{}: {}", row.what, row.why()?)));
    let refuted = outcome.claims.iter().filter_map(|claim| Some(format!("{}: {}", claim.what, claim.why()?)));
    document.list(differences.chain(refuted).collect());
    document.list(outcome.notes.clone());
    if figures {
        for figure in &outcome.figures {
            draw(document, &name, figure);
        }
        if let Some(validation) = &outcome.validation {
            validate::present::found(document, validation);
        }
    }
    document.table(parameters(&name, outcome));
}

fn compared(name: &str, outcome: &Outcome) -> Table {
    let columns = [
        ("", "what"),
        ("Published", "published"),
        ("", "approximate"),
        ("Ours", "ours"),
        ("Ratio", "ratio"),
        ("", "verdict"),
    ];
    let mut table = Table::new(&format!("{name}-published"), "", &columns);
    for row in &outcome.rows {
        let approximate = row.published.is_some_and(|p| p.approximate);
        table.row(vec![
            Cell::from(row.what.as_str()),
            row.published.map_or(Cell::Empty, |Published { value, .. }| number(row.unit, value)),
            Cell::from(if approximate { "approx." } else { "" }),
            number(row.unit, row.ours),
            row.ratio().map_or(Cell::Empty, Cell::Ratio),
            Cell::from(verdict(row)),
        ]);
    }
    table
}

fn verdict(row: &Row) -> &'static str {
    match row.difference() {
        Difference::NothingPublished | Difference::Within => "",
        Difference::Explained => "differs, see below",
        Difference::NotExplained => crate::NOT_EXPLAINED,
    }
}

fn claims(name: &str, outcome: &Outcome) -> Table {
    let columns = [("Published in words", "claim"), ("Holds", "holds"), ("Ours", "seen")];
    let mut table = Table::new(&format!("{name}-claims"), "", &columns);
    for claim in &outcome.claims {
        let holds = if claim.holds { "yes" } else { "no" };
        table.row(vec![Cell::from(claim.what.as_str()), Cell::from(holds), Cell::from(claim.seen.as_str())]);
    }
    table
}

fn parameters(name: &str, outcome: &Outcome) -> Table {
    let mut table = Table::new(&format!("{name}-parameters"), "", &[("Parameter", "parameter"), ("Value", "value")]);
    for parameter in &outcome.parameters {
        table.row(vec![Cell::from(parameter.name.as_str()), Cell::from(parameter.value.as_str())]);
    }
    table
}

fn number(unit: Unit, value: f64) -> Cell {
    match unit {
        Unit::Score => Cell::Score(value),
        Unit::Share => Cell::Share(value),
        Unit::Ratio => Cell::Ratio(value),
        Unit::Bytes => Cell::Bytes(value),
        Unit::Ns => Cell::Ns(value),
        Unit::Count => Cell::Count(value.max(0.0).round() as u64),
        Unit::MibPerS => Cell::from(format!("{} MiB/s", show::significant(value))),
        Unit::FilesPerS => Cell::from(format!("{} files/s", show::significant(value))),
        Unit::TransactionsPerS => Cell::from(format!("{} tps", show::significant(value))),
        Unit::Number => Cell::Number(value),
    }
}

fn axis(axis: &Axis) -> chart::Axis<'_> {
    match axis {
        Axis::Bytes(title) => chart::Axis::Bytes(title),
        Axis::Share(title) => chart::Axis::Share(title),
        Axis::Score(title) => chart::Axis::Score(title),
        Axis::Days(title) => chart::Axis::Days(title),
        Axis::Ratio(title) => chart::Axis::Ratio(title),
        Axis::Number(title) => chart::Axis::Number(title),
    }
}

fn on(axis: &Axis, value: f64) -> Cell {
    match axis {
        Axis::Bytes(_) => Cell::Bytes(value),
        Axis::Share(_) => Cell::Share(value),
        Axis::Score(_) => Cell::Score(value),
        Axis::Days(_) => Cell::Count(value.max(0.0).round() as u64),
        Axis::Ratio(_) | Axis::Number(_) => Cell::Number(value),
    }
}

fn draw(document: &mut Document, name: &str, figure: &Figure) {
    let dots: Vec<Dot> = figure
        .series
        .iter()
        .flat_map(|series| {
            series
                .points
                .iter()
                .map(|point| Dot { panel: series.panel.clone(), ..Dot::new(series.name.clone(), point.x, point.y) })
        })
        .collect();
    document.plot(chart::chart(&figure.title, axis(&figure.x), axis(&figure.y), Colours::Apart, &dots));
    document.table(points(name, figure));
}

/// The points of a figure's curves, by x. Curves without a point there leave their cell empty.
fn points(name: &str, figure: &Figure) -> Table {
    let titles: Vec<String> = figure
        .series
        .iter()
        .map(|s| if s.panel.is_empty() { s.name.clone() } else { format!("{}: {}", s.panel, s.name) })
        .collect();
    let mut columns = vec![(figure.x.title(), "x")];
    columns.extend(titles.iter().map(|title| (title.as_str(), title.as_str())));
    let mut table = Table::new(&format!("{name}-{}", figure.name), &figure.title, &columns);
    let mut xs: Vec<f64> = figure.series.iter().flat_map(|s| s.points.iter().map(|p| p.x)).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    for x in xs {
        let mut row = vec![on(&figure.x, x)];
        row.extend(figure.series.iter().map(|s| {
            let here = s.points.iter().find(|p| p.x == x);
            here.map_or(Cell::Empty, |p| on(&figure.y, p.y))
        }));
        table.row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Claim, Explain, Series};

    #[test]
    fn differences_are_shown_with_their_sentence() {
        let mut outcome = Outcome { key: "a/b".into(), title: "T".into(), source: "S".into(), ..Outcome::new() };
        outcome.row(Row::new("alike", Unit::Score, Published::exact(0.9), 0.92, Explain::because("unsaid")));
        outcome.row(Row::new("apart", Unit::Ratio, Published::about(2.0), 1.0, Explain::because("the reason")));
        outcome.row(Row::new("silent", Unit::Count, Published::exact(2.0), 1.0, Explain::Agrees));
        outcome.claim(Claim::new("a dip", false, "none at 104 KB", Explain::because("another reason")));
        let series = [Series::new("one", [(1.0, 0.5), (2.0, 0.6)]), Series::new("two", [(2.0, 0.7)])].into();
        let (x, y) = (Axis::Days("day".into()), Axis::Score("score".into()));
        outcome.figure(Figure { name: "f".into(), title: "A figure.".into(), x, y, series });
        let reproduction = Reproduction { version: "0", scale: Scale::Full, seed: 1, outcomes: vec![outcome] };
        let text = super::reproduction(&reproduction, true).to_text(None);
        for shown in ["apart: the reason", "silent: not explained", "a dip: another reason", "approx.", "0.7000"] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        assert!(!text.contains("unsaid"));
        let short = super::reproduction(&reproduction, false).to_text(None);
        assert!(!short.contains("A figure."));
    }
}
