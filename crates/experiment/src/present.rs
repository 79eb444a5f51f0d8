//! Published experiments: which there are, and published against ours with the curves.

use crate::{
    Axis, Claim, Covered, Difference, Experiment, Figure, Outcome, Published, Reproduction, Row, Scale, Source, Spread,
    Unit,
};
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

/// The figures and tables of each source, and what runs them again.
pub fn coverage(sources: &[Source]) -> Document {
    let mut document = Document::default();
    let columns = [
        ("Source", "source"),
        ("Figures and tables", "items"),
        ("Run again", "run"),
        ("In part", "partly"),
        ("Not", "not"),
    ];
    let mut counts = Table::new(
        "coverage",
        "Figures and tables of the sources; those that only describe a set-up are not counted.",
        &columns,
    );
    let mut all = [0; 3];
    let cells = |title: &str, [run, partly, not]: [u64; 3]| {
        vec![title.into(), Cell::Count(run + partly + not), Cell::Count(run), Cell::Count(partly), Cell::Count(not)]
    };
    for source in sources {
        let mut count = [0; 3];
        for item in source.items {
            match item.covered {
                Covered::By(_) => count[0] += 1,
                Covered::Partly(..) => count[1] += 1,
                Covered::No(_) => count[2] += 1,
                Covered::SetUp(_) => {}
            }
        }
        counts.row(cells(source.title, count));
        all.iter_mut().zip(count).for_each(|(all, one)| *all += one);
    }
    counts.row(cells("all", all));
    document.table(counts);
    for source in sources {
        document.heading(source.title);
        let columns = [("", "item"), ("Shows", "shows"), ("Run again by", "experiments"), ("", "note")];
        let mut table = Table::new(&format!("coverage-{}", source.key), "", &columns);
        for item in source.items {
            let note = match item.covered {
                Covered::By(_) => String::new(),
                Covered::Partly(_, what) => format!("in part: {what}"),
                Covered::SetUp(what) => format!("set-up: {what}"),
                Covered::No(why) => format!("not: {why}"),
            };
            let keys = item.covered.keys().join(", ");
            table.row([item.name.to_owned(), item.shows.to_owned(), keys, note].map(Cell::from).into());
        }
        document.table(table);
    }
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
    let seeds = match reproduction.seeds.as_slice() {
        [seed] => format!("seed {seed}"),
        seeds => {
            let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
            format!("means over the seeds {}", seeds.join(", "))
        }
    };
    document.paragraph(format!("fsage {}, {seeds}, {scale}.", reproduction.version));
    if reproduction.outcomes.len() > 1 {
        in_short(&mut document, &reproduction.outcomes);
    }
    for outcome in &reproduction.outcomes {
        one(&mut document, outcome, figures, reproduction.outcomes.len() > 1);
    }
    document
}

/// Rows that have a published figure: how many are within a quarter, and how many there are.
fn within(outcome: &Outcome) -> [usize; 2] {
    let differences = || outcome.rows.iter().map(Row::difference).filter(|d| *d != Difference::NothingPublished);
    [differences().filter(|d| *d == Difference::Within).count(), differences().count()]
}

/// What holds and what does not, before anything else.
fn in_short(document: &mut Document, outcomes: &[Outcome]) {
    let holds = |outcome: &Outcome| [outcome.claims.iter().filter(|c| c.holds).count(), outcome.claims.len()];
    let sum =
        |of: &dyn Fn(&Outcome) -> [usize; 2]| outcomes.iter().map(of).fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
    let ([near, figures], [held, statements]) = (sum(&within), sum(&holds));
    let share = |part: usize, of: usize| {
        if of == 0 { String::new() } else { format!(" ({})", show::share(part as f64 / of as f64)) }
    };
    document.paragraph(format!(
        "{near} of {figures} published figures are met within a quarter{}, and {held} of {statements} statements \
         hold{}.",
        share(near, figures),
        share(held, statements),
    ));
    let columns = [
        ("Experiment", "experiment"),
        ("Figures within a quarter", "figures"),
        ("Statements that hold", "statements"),
        ("What does not", "not"),
    ];
    let mut table = Table::new("summary", "", &columns);
    for outcome in outcomes {
        let rows = outcome.rows.iter().filter(|row| row.why().is_some()).map(|row| {
            let ratio = row.ratio().map_or(String::new(), |ratio| format!(" ({}x)", show::significant(ratio)));
            format!("{}{ratio}", row.what)
        });
        let claims = outcome.claims.iter().filter(|claim| !claim.holds).map(|claim| claim.what.clone());
        let not: Vec<String> = rows.chain(claims).collect();
        let of = |[part, all]: [usize; 2]| if all == 0 { String::new() } else { format!("{part} of {all}") };
        table
            .row([outcome.key.clone(), of(within(outcome)), of(holds(outcome)), not.join("; ")].map(Cell::from).into());
    }
    document.table(table);
}

fn one(document: &mut Document, outcome: &Outcome, figures: bool, several: bool) {
    let name = outcome.key.replace('/', "-");
    let title = if several { format!("{}: {}", outcome.key, outcome.title) } else { outcome.title.clone() };
    document.heading(title).paragraph(format!("{}.", outcome.source));
    if figures {
        for figure in &outcome.figures {
            draw(document, &name, figure);
        }
        if let Some(validation) = &outcome.validation {
            validate::present::found(document, validation);
        }
    }
    document.table(compared(&name, outcome)).table(claims(&name, outcome));
    let differences = outcome.rows.iter().filter_map(|row| Some(format!("{}: {}", row.what, row.why()?)));
    let refuted = outcome.claims.iter().filter_map(|claim| Some(format!("{}: {}", claim.what, claim.why()?)));
    document.list(differences.chain(refuted).collect());
    document.list(outcome.notes.clone());
    document.table(parameters(&name, outcome));
}

fn compared(name: &str, outcome: &Outcome) -> Table {
    let several = outcome.rows.iter().any(|row| row.spread.is_some());
    let mut columns = vec![
        ("", "what"),
        ("Published", "published"),
        ("", "approximate"),
        ("Ours", "ours"),
        ("Ratio", "ratio"),
        ("", "verdict"),
    ];
    if several {
        columns.splice(4..4, [("from", "low"), ("to", "high")]);
    }
    let mut table = Table::new(&format!("{name}-published"), "", &columns);
    for row in &outcome.rows {
        let approximate = row.published.is_some_and(|p| p.approximate);
        let mut cells = vec![
            Cell::from(row.what.as_str()),
            row.published.map_or(Cell::Empty, |Published { value, .. }| number(row.unit, value)),
            Cell::from(if approximate { "approx." } else { "" }),
            number(row.unit, row.ours),
            row.ratio().map_or(Cell::Empty, Cell::Ratio),
            Cell::from(verdict(row)),
        ];
        if several {
            let ends = row.spread.map(|Spread { low, high, .. }| [low, high].map(|end| number(row.unit, end)));
            cells.splice(4..4, ends.unwrap_or([Cell::Empty, Cell::Empty]));
        }
        table.row(cells);
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
        let holds = match claim {
            Claim { held: Some((held, seeds)), .. } => format!("{held} of {seeds} seeds"),
            Claim { holds: true, .. } => "yes".to_owned(),
            Claim { holds: false, .. } => "no".to_owned(),
        };
        table.row(vec![Cell::from(claim.what.as_str()), Cell::from(holds), Cell::from(claim.seen.as_str())]);
    }
    table
}

fn parameters(name: &str, outcome: &Outcome) -> Table {
    let columns = [("Parameter", "parameter"), ("Value", "value")];
    let mut table = Table::new(&format!("{name}-parameters"), "Parameters.", &columns).folded();
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
            series.points.iter().map(|point| {
                let dot = Dot::new(series.name.clone(), point.x, point.y);
                Dot { panel: series.panel.clone(), alone: series.published, ..dot }
            })
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
    let caption = format!("Points: {}", figure.title);
    let mut table = Table::new(&format!("{name}-{}", figure.name), &caption, &columns).folded();
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
        let reproduction = Reproduction { version: "0", scale: Scale::Full, seeds: vec![1], outcomes: vec![outcome] };
        let text = super::reproduction(&reproduction, true).to_text(None);
        for shown in ["apart: the reason", "silent: not explained", "a dip: another reason", "approx.", "0.7000"] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        assert!(!text.contains("unsaid"));
        let short = super::reproduction(&reproduction, false).to_text(None);
        assert!(!short.contains("A figure."));
    }

    #[test]
    fn what_does_not_hold_is_said_first_and_of_how_many_seeds() {
        let outcome = |key: &str, ours: f64| {
            let mut outcome = Outcome { key: key.into(), title: "T".into(), source: "S".into(), ..Outcome::new() };
            let row =
                Row::new(format!("row of {key}"), Unit::Ratio, Published::exact(1.0), ours, Explain::because("why"));
            outcome.row(Row { spread: Some(Spread { seeds: 5, low: 0.125, high: 8.5 }), ..row });
            let claim = Claim::new(format!("claim of {key}"), ours < 2.0, "seen", Explain::because("why"));
            outcome.claim(Claim { held: Some((3, 5)), ..claim });
            outcome
        };
        let outcomes = vec![outcome("a/near", 1.0), outcome("b/far", 2.5)];
        let reproduction = Reproduction { version: "0", scale: Scale::Full, seeds: vec![1, 2, 3, 4, 5], outcomes };
        let text = super::reproduction(&reproduction, true).to_text(None);
        let summary = text.split("T\n").next().unwrap_or_default();
        assert!(summary.contains("1 of 2 published figures") && summary.contains("1 of 2 statements hold"), "{text}");
        assert!(summary.contains("row of b/far (2.50x)") && !summary.contains("row of a/near"), "{summary}");
        for shown in ["seeds 1, 2, 3, 4, 5", "3 of 5 seeds", "0.12x", "8.50x"] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
    }

    #[test]
    fn the_coverage_counts_every_figure_once() {
        let text = coverage(crate::sources()).to_text(None);
        for source in crate::sources() {
            let start: String = source.title.chars().take(20).collect();
            assert!(text.contains(&start), "{start}");
        }
    }
}
