//! The answer to a prediction in five sentences, in the words of calls: which, by how much, why, how sure, and what to
//! do next.
//!
//! The names of the system vector's costs belong into the details and are not here.

use super::{explanation, sizes};
use crate::cache_sizes::CacheSize;
use crate::explain::{Explanation, explain};
use crate::pipeline::{InitialCaches, Pace, Prediction, SystemPrediction, Warning};
use crate::rank::{Pair, Ranked, Ranking};
use crate::runtime::RunTimes;
use document::{Cell, Document, Table};
use std::fmt::Write as _;
use units::show;

/// Systems that are named one by one; of more, the rest is counted.
const NAMED: usize = 4;
/// Call types that are named.
const CALLS: usize = 3;
/// Stand-ins for costs that a profile lacks are worth a measurement where they are this share of the requests.
const STANDING_IN: f64 = 0.001;

/// The five sentences; below them what was asked for by name (`explained`, `cache_sizes`: empty where they were not).
pub fn answer(
    workload: &str,
    prediction: &Prediction,
    ranking: &Ranking,
    run_time: Option<&RunTimes>,
    explained: Option<&Explanation>,
    cache_sizes: &[CacheSize],
) -> Document {
    let mut document = Document::new(format!("Predicted time in the file system: {workload}"));
    let order: Vec<&SystemPrediction> =
        ranking.systems.iter().filter_map(|ranked| prediction.systems.get(ranked.index)).collect();
    document.list(sentences(workload, prediction, ranking, run_time, &order));
    if !cache_sizes.is_empty() {
        document.heading("How much memory");
        sizes(&mut document, prediction, &order, cache_sizes);
    }
    if let Some(explained) = explained {
        explanation(&mut document, explained);
    }
    document
}

fn sentences(
    workload: &str,
    prediction: &Prediction,
    ranking: &Ranking,
    run_time: Option<&RunTimes>,
    order: &[&SystemPrediction],
) -> Vec<String> {
    let (Some(first), Some(fastest)) = (ranking.systems.first(), order.first()) else {
        return vec!["There is no system to predict for.".to_owned()];
    };
    if order.iter().all(|system| system.calls == 0) {
        let events = prediction.coverage.events;
        return vec![format!(
            "Nothing to predict: {} of the workload asks anything of a file system.",
            none_of(events)
        )];
    }
    let mut sentences = vec![which(ranking, first, run_time)];
    if ranking.systems.len() > 1 {
        sentences.push(by_how_much(ranking));
    }
    sentences.push(why(ranking, order, fastest));
    sentences.push(how_sure(prediction, ranking, first, order));
    sentences.push(next(workload, prediction, ranking, order));
    sentences
}

fn none_of(events: u64) -> String {
    match events {
        0 => "no call".to_owned(),
        1 => "not the one call".to_owned(),
        more => format!("none of {} calls", show::count(more)),
    }
}

fn total(ranked: &Ranked) -> String {
    show::duration_interval_ns(ranked.total_ns, ranked.interval.low_ns, ranked.interval.high_ns)
}

/// The systems that cannot be told from the first.
fn tied(ranking: &Ranking) -> Vec<&Ranked> {
    ranking.systems.iter().skip(1).filter(|ranked| ranked.ties_with_fastest).collect()
}

fn which(ranking: &Ranking, first: &Ranked, run_time: Option<&RunTimes>) -> String {
    let tied = tied(ranking);
    let mut text = match (ranking.systems.len(), tied.as_slice()) {
        (1, _) => format!("Time: {} on {}", total(first), first.system),
        (_, []) => format!("Fastest: {}, with {}", first.system, total(first)),
        (_, others) => {
            let others: Vec<String> =
                others.iter().take(NAMED).map(|ranked| format!("{} with {}", ranked.system, total(ranked))).collect();
            let more = tied.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!(
                "Fastest: {} with {}, or {}{more}: they cannot be told apart",
                first.system,
                total(first),
                others.join(", ")
            )
        }
    };
    if let Some(RunTimes::Known { systems, .. }) = run_time
        && let Some(time) = systems.get(first.index)
    {
        let took = show::duration_interval_ns(time.ns as f64, time.interval.low_ns, time.interval.high_ns);
        // Writing into a string cannot fail.
        let _ = write!(text, "; the program itself takes {took} there");
    }
    text.push('.');
    text
}

fn by_how_much(ranking: &Ranking) -> String {
    let others: Vec<String> = ranking
        .systems
        .iter()
        .skip(1)
        .take(NAMED)
        .enumerate()
        .map(|(n, r)| {
            let [ratio, low, high] = [r.ratio, r.ratio_low, r.ratio_high].map(show::significant);
            let (takes, as_long) = if n == 0 { ("takes ", " as long") } else { ("", "") };
            format!("{} {takes}{ratio} times ({low} to {high}){as_long}", r.system)
        })
        .collect();
    let more = ranking.systems.len().saturating_sub(NAMED + 1);
    let more = if more > 0 { format!(", and {more} more (--details)") } else { String::new() };
    format!("By how much: {}{more}.", others.join(", "))
}

fn why(ranking: &Ranking, order: &[&SystemPrediction], fastest: &SystemPrediction) -> String {
    let most: Vec<String> = largest(fastest)
        .into_iter()
        .map(|(op, ns)| format!("{op} {}", show::share(super::ratio(ns, fastest.total_ns))))
        .collect();
    let mut text = format!("Why: on {} the time goes into {}", fastest.system, most.join(", "));
    // Against the next that is really slower; where none is, against the second.
    let other = ranking.systems.iter().position(|ranked| ranked.place > 1 && !ranked.ties_with_fastest);
    if let Some(other) = order.get(other.unwrap_or(1)) {
        let explained = explain(fastest, other);
        let mut parts: Vec<(&str, f64)> = explained
            .by_op
            .iter()
            .map(|part| (part.name.as_str(), part.difference_ns))
            .filter(|(_, ns)| *ns > 0.0)
            .collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let parts: Vec<String> =
            parts.iter().take(CALLS).map(|(op, ns)| format!("{op} by {}", show::duration_ns(*ns))).collect();
        if !parts.is_empty() {
            let _ = write!(text, "; {} is slower in {}", other.system, parts.join(", "));
        }
    }
    text.push('.');
    text
}

fn largest(system: &SystemPrediction) -> Vec<(&str, f64)> {
    let mut ops: Vec<(&str, f64)> = system.by_op.iter().map(|op| (op.op.as_str(), op.ns)).collect();
    ops.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    ops.truncate(CALLS);
    ops
}

fn how_sure(prediction: &Prediction, ranking: &Ranking, first: &Ranked, order: &[&SystemPrediction]) -> String {
    let o = &prediction.options;
    let mut parts = Vec::new();
    if ranking.systems.len() > 1 {
        parts.push(format!("{} is the fastest with a probability of {}", first.system, show::share(first.p_fastest)));
    }
    parts.push("the intervals (95 %) hold the model's own error as well".to_owned());
    parts.push(format!("{} of the activity is covered", show::share(prediction.coverage.share())));
    let caches = if o.initial == InitialCaches::Cold { "cold" } else { "warm" };
    let pace = if o.pace == Pace::Asap { "calls as fast as possible" } else { "calls at the recorded times" };
    parts.push(format!("{caches} caches at the start, {pace}, seed {}", ranking.seed));
    let what_if = super::what_if(prediction);
    if !what_if.is_empty() {
        parts.push(format!("what if: {what_if} everywhere"));
    }
    let warnings = super::warnings(order).len();
    if warnings > 0 {
        parts.push(format!("{} (--details)", show::counted(warnings as u64, "warning", "warnings")));
    }
    format!("How sure: {}.", parts.join("; "))
}

fn next(workload: &str, prediction: &Prediction, ranking: &Ranking, order: &[&SystemPrediction]) -> String {
    let lacking: Vec<&str> = order
        .iter()
        .filter(|system| {
            let stands_in = |warning: &Warning| match warning {
                Warning::StandIns { requests, .. } => *requests as f64 > STANDING_IN * system.calls.max(1) as f64,
                _ => false,
            };
            system.warnings.iter().any(stands_in)
        })
        .map(|system| system.system.as_str())
        .collect();
    let mut steps = Vec::new();
    if !lacking.is_empty() {
        let whose = match lacking.as_slice() {
            [one] => format!("{one} lacks costs that this workload has"),
            all if all.len() == prediction.systems.len() => "the profiles lack costs that this workload has".to_owned(),
            all => format!("{} lack costs that this workload has", all.join(", ")),
        };
        steps.push(format!("{whose}: fsage measure TARGET makes a profile that has them"));
    }
    let first = ranking.systems.first().map_or("", |ranked| ranked.system.as_str());
    steps.push(match tied(ranking).as_slice() {
        [] => format!("fsage replay {workload} TARGET, on {first}, is the truth"),
        _ => format!("fsage replay {workload} TARGET, on each of the fastest, tells which it is"),
    });
    steps.push("--details shows every call, cost and warning".to_owned());
    format!("Next: {}.", steps.join("; "))
}

/// One workload of a matrix.
pub struct Row<'a> {
    /// Its name.
    pub workload: &'a str,
    /// Its prediction.
    pub prediction: &'a Prediction,
    /// The systems in order.
    pub ranking: &'a Ranking,
}

/// Several workloads on the same systems: a row for each workload, a column for each system, and which is the fastest
/// for how many.
pub fn matrix(rows: &[Row<'_>]) -> Document {
    let systems: Vec<&str> = rows
        .first()
        .map(|row| row.prediction.systems.iter().map(|system| system.system.as_str()).collect())
        .unwrap_or_default();
    let mut document = Document::new(format!(
        "Predicted time in the file system: {} on {}",
        show::counted(rows.len() as u64, "workload", "workloads"),
        show::counted(systems.len() as u64, "system", "systems")
    ));
    document.list(matrix_sentences(rows, &systems));
    let keys: Vec<String> = systems.iter().map(|system| format!("{system}_ns")).collect();
    let mut columns = vec![("Workload", "workload"), ("Fastest", "fastest")];
    columns.extend(systems.iter().zip(&keys).map(|(system, key)| (*system, key.as_str())));
    let mut table = Table::new("matrix", "Totals; the fastest, and what cannot be told from it.", &columns);
    for (system, key) in systems.iter().zip(&keys) {
        table = table.about(key, system, "total_ns");
    }
    for row in rows {
        let fastest: Vec<&str> = row
            .ranking
            .systems
            .iter()
            .filter(|r| r.place == 1 || r.ties_with_fastest)
            .map(|r| r.system.as_str())
            .collect();
        let mut cells = vec![Cell::from(row.workload), Cell::from(fastest.join(" = "))];
        for (index, _) in systems.iter().enumerate() {
            let ranked = row.ranking.systems.iter().find(|ranked| ranked.index == index);
            cells.push(ranked.map_or(Cell::Empty, super::total));
        }
        table.row(cells);
    }
    document.table(table);
    document
}

fn matrix_sentences(rows: &[Row<'_>], systems: &[&str]) -> Vec<String> {
    let count = |pred: &dyn Fn(&Ranked) -> bool, index: usize| {
        rows.iter().filter(|row| row.ranking.systems.iter().any(|ranked| ranked.index == index && pred(ranked))).count()
    };
    let mut wins: Vec<(&str, usize, usize)> = systems
        .iter()
        .enumerate()
        .map(|(i, system)| {
            let alone = |ranked: &Ranked| ranked.place == 1;
            let fast = |ranked: &Ranked| ranked.place == 1 || ranked.ties_with_fastest;
            (*system, count(&alone, i), count(&fast, i))
        })
        .collect();
    wins.sort_by_key(|(_, first, fast)| std::cmp::Reverse((*fast, *first)));
    let all = rows.len();
    let said: Vec<String> =
        wins.iter().take(NAMED).map(|(system, _, fast)| format!("{system} for {fast} of {all}")).collect();
    let pairs: Vec<&Pair> = rows.iter().flat_map(|row| &row.ranking.pairs).collect();
    let ties = pairs.iter().filter(|pair| pair.tie).count();
    vec![
        format!("Fastest, or not to be told from the fastest: {}.", said.join(", ")),
        format!(
            "How sure: of {}, {ties} cannot be told apart.",
            show::counted(pairs.len() as u64, "pair of systems", "pairs of systems")
        ),
        "Next: --details shows each workload by itself.".to_owned(),
    ]
}
