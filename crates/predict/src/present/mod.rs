//! A prediction: the ranking, where the time goes, and what would change it.

mod answer;
mod cache_plots;

pub use answer::{Row, answer, matrix};

use crate::cache_sizes::CacheSize;
use crate::explain::{Explanation, Part};
use crate::pipeline::{InitialCaches, Pace, Prediction, SystemPrediction};
use crate::rank::{Ranked, Ranking};
use crate::runtime::RunTimes;
use crate::tipping::Tipping;
use document::plot::{Bar, Counted, interval_bars, stacked_bars};
use document::{Cell, Document, Table};
use trace::profile::Durations;
use units::show;

/// Rows of a breakdown; what is beyond is summed up.
const TOP: usize = 12;

/// Everything there is to say about a prediction; `cache_sizes` may be empty.
pub fn prediction(
    workload: &str,
    prediction: &Prediction,
    ranking: &Ranking,
    run_time: Option<&RunTimes>,
    explanation: Option<&Explanation>,
    tipping: &[Tipping],
    cache_sizes: &[CacheSize],
) -> Document {
    let mut document = Document::new(format!("Predicted time in the file system: {workload}"));
    document.paragraph(assumptions(prediction, ranking));
    document.heading("Ranking").table(ranking_table(ranking));
    document.paragraph(ties(ranking));
    document.paragraph(mapped(prediction, ranking));
    document.plot(ranking_plot(ranking));
    if let Some(times) = run_time {
        document.heading("Run time");
        self::run_time(&mut document, ranking, times);
    }
    let order: Vec<&SystemPrediction> =
        ranking.systems.iter().filter_map(|ranked| prediction.systems.get(ranked.index)).collect();
    document.heading("Where the time goes").table(by_op_table(&order, TOP)).plot(by_op_plot(&order));
    if let Some(fastest) = order.first() {
        document.table(by_entry_of(fastest, TOP)).table(by_directory(fastest)).table(caches(fastest));
    }
    if let Some(plot) = cache_plots::over_time(&order, prediction.options.pace) {
        document.plot(plot);
    }
    if !cache_sizes.is_empty() {
        document.heading("How much memory");
        sizes(&mut document, prediction, &order, cache_sizes);
    }
    if let Some(explanation) = explanation {
        self::explanation(&mut document, explanation);
    }
    document.heading("What would change it").table(tipping_table(tipping, 6));
    document.heading("Beside simpler methods").table(baselines(&order));
    document.heading("Coverage").table(coverage(prediction));
    document.heading("Before believing it").list(warnings(&order));
    document
}

fn sizes(document: &mut Document, prediction: &Prediction, order: &[&SystemPrediction], cache_sizes: &[CacheSize]) {
    let names: Vec<&str> = order.iter().map(|system| system.system.as_str()).collect();
    let own_bytes = || order.iter().map(|system| system.data_cache_bytes).max().unwrap_or(0);
    let at_bytes = prediction.options.cache_bytes.unwrap_or_else(own_bytes);
    document.plot(cache_plots::sizes_plot(cache_sizes, &names, at_bytes));
    document.table(cache_plots::sizes_table(cache_sizes, &names));
}

/// How long the program takes, on the wall clock.
fn run_time(document: &mut Document, ranking: &Ranking, times: &RunTimes) {
    let (basis, systems) = match times {
        RunTimes::Unknown(why) => {
            document.paragraph(format!("Not known: {why}."));
            return;
        }
        RunTimes::Known { basis, systems } => (basis, systems),
    };
    let ns = |ns: u64| show::duration_ns(ns as f64);
    let moved = match &basis.moved {
        Some(mount) => format!(
            "{} on {mount} {} priced and {} elsewhere are",
            show::counted(basis.calls, "call", "calls"),
            if basis.calls == 1 { "is" } else { "are" },
            show::count(basis.calls_elsewhere)
        ),
        None => format!("{} priced; all others are", show::counted(basis.calls, "call is", "calls are")),
    };
    document.paragraph(format!(
        "The program's {} again, on {}: {moved} as recorded. It took {} when it was recorded, of which the simulation \
         makes {} with all calls as recorded.",
        match basis.threads {
            1 => "1 thread computes and calls".to_owned(),
            n => format!("{} threads compute, call and wait for each other", show::count(n)),
        },
        show::counted(basis.processors.into(), "processor", "processors"),
        ns(basis.recorded_ns),
        ns(basis.recorded_simulated_ns)
    ));
    let columns =
        [("System", "system"), ("Run time (95 % interval)", "run_time_ns"), ("Priced calls in it", "calls_ns")];
    let mut table =
        Table::new("run_time", "The calls of all threads together, of which several may run at a time.", &columns);
    for ranked in &ranking.systems {
        if let Some(time) = systems.get(ranked.index) {
            let total =
                Cell::NsInterval { value: time.ns as f64, low: time.interval.low_ns, high: time.interval.high_ns };
            table.row(vec![Cell::from(ranked.system.as_str()), total, Cell::Ns(time.calls_ns)]);
        }
    }
    document.table(table);
}

/// The ranking alone, as a table.
pub fn ranking_table(ranking: &Ranking) -> Table {
    let mut table = Table::new(
        "ranking",
        "",
        &[
            ("", "place"),
            ("System", "system"),
            ("Total (95 % interval)", "total_ns"),
            ("Times the fastest", "ratio"),
            ("P(fastest)", "p_fastest"),
        ],
    );
    for (ranked, tied) in ranking.systems.iter().zip(ranking.tied_places()) {
        let place = if tied < ranked.place { format!("= {tied}") } else { ranked.place.to_string() };
        table.row(vec![
            Cell::from(place),
            Cell::from(ranked.system.as_str()),
            total(ranked),
            Cell::Ratio(ranked.ratio),
            Cell::Share(ranked.p_fastest),
        ]);
    }
    table
}

fn total(ranked: &Ranked) -> Cell {
    Cell::NsInterval { value: ranked.total_ns, low: ranked.interval.low_ns, high: ranked.interval.high_ns }
}

fn assumptions(prediction: &Prediction, ranking: &Ranking) -> String {
    let o = &prediction.options;
    let caches = match o.initial {
        InitialCaches::Cold => "cold caches at the start",
        InitialCaches::Warm => "warm caches at the start",
    };
    let pace = match o.pace {
        Pace::Asap => "calls as fast as possible",
        Pace::Recorded => "calls at the recorded times",
    };
    let mut text = format!(
        "The sum of the latencies of all modelled calls; {caches}, {pace}, {} of the activity covered, seed {}.",
        show::share(prediction.coverage.share()),
        ranking.seed
    );
    let what_if = what_if(prediction);
    if !what_if.is_empty() {
        text.push_str(&format!(" What if: {what_if} everywhere."));
    }
    text
}

/// What was changed on every system; empty where nothing was.
fn what_if(prediction: &Prediction) -> String {
    let o = &prediction.options;
    let size = o.cache_bytes.map(|bytes| format!("a data cache of {}", show::bytes(bytes as f64)));
    let policy = o.cache_policy.map(|policy| format!("data caches that evict by {}", policy.name()));
    let costs = o.set_ns.iter().map(|(name, ns)| format!("{name} at {}", show::duration_ns(*ns)));
    size.into_iter().chain(policy).chain(costs).collect::<Vec<_>>().join(", ")
}

/// Which systems cannot be told apart, in a sentence; empty where all can.
pub fn ties(ranking: &Ranking) -> String {
    let tied: Vec<String> = ranking
        .pairs
        .iter()
        .filter(|pair| pair.tie)
        .map(|pair| format!("{} and {}", pair.faster, pair.slower))
        .collect();
    if tied.is_empty() { String::new() } else { format!("Cannot be told apart: {}.", tied.join("; ")) }
}

/// What of the totals no replay makes, in a sentence; empty where it makes all.
fn mapped(prediction: &Prediction, ranking: &Ranking) -> String {
    let systems = ranking.systems.iter().filter_map(|ranked| prediction.systems.get(ranked.index));
    let times: Vec<String> = systems
        .map(|system| (system, op_ns(system, "map_read") + op_ns(system, "map_write")))
        .filter(|(_, ns)| *ns > 0.0)
        .map(|(system, ns)| format!("{} on {}", show::duration_ns(ns), system.system))
        .collect();
    if times.is_empty() {
        return String::new();
    }
    format!(
        "Accesses through mapped files (map_read, map_write) are in the totals: {}. A replay does not make them: \
         compare it with what is left.",
        times.join(", ")
    )
}

fn ranking_plot(ranking: &Ranking) -> document::Plot {
    let bars: Vec<Bar<'_>> = ranking
        .systems
        .iter()
        .map(|r| Bar {
            label: &r.system,
            value_s: r.total_ns / 1e9,
            low_s: r.interval.low_ns / 1e9,
            high_s: r.interval.high_ns / 1e9,
        })
        .collect();
    interval_bars("Predicted totals with their 95 % intervals.", Counted::Time("time in the file system"), &bars)
}

/// Operations by their largest time on any system, the rest left out.
fn top_ops(systems: &[&SystemPrediction]) -> Vec<String> {
    let mut largest: std::collections::BTreeMap<&str, f64> = std::collections::BTreeMap::new();
    for op in systems.iter().flat_map(|s| &s.by_op) {
        let time = largest.entry(op.op.as_str()).or_default();
        *time = time.max(op.ns);
    }
    let mut ops: Vec<(&str, f64)> = largest.into_iter().collect();
    ops.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    ops.into_iter().filter(|(_, ns)| *ns > 0.0).map(|(op, _)| op.to_owned()).collect()
}

fn op_ns(system: &SystemPrediction, op: &str) -> f64 {
    system.by_op.iter().find(|o| o.op == op).map_or(0.0, |o| o.ns)
}

/// Where the time goes, by type of call, so many rows.
pub fn by_op_table(systems: &[&SystemPrediction], rows: usize) -> Table {
    let mut columns = vec![("Call".to_owned(), "call".to_owned()), ("Calls".to_owned(), "calls".to_owned())];
    columns.extend(systems.iter().map(|s| (s.system.clone(), format!("{}_ns", s.system))));
    let borrowed: Vec<(&str, &str)> = columns.iter().map(|(t, k)| (t.as_str(), k.as_str())).collect();
    let mut table = Table::new("by_op", "By call type.", &borrowed);
    for (system, (_, key)) in systems.iter().zip(columns.iter().skip(2)) {
        table = table.about(key, &system.system, "total_ns");
    }
    let ops = top_ops(systems);
    let calls = |op: &str| systems.iter().find_map(|s| s.by_op.iter().find(|o| o.op == op)).map_or(0, |o| o.calls);
    for op in ops.iter().take(rows) {
        let mut row = vec![Cell::from(op.as_str()), Cell::Count(calls(op))];
        row.extend(systems.iter().map(|s| Cell::Ns(op_ns(s, op))));
        table.row(row);
    }
    if let Some(rest) = ops.get(rows..).filter(|rest| !rest.is_empty()) {
        let mut row = vec![Cell::from("others"), Cell::Count(rest.iter().map(|op| calls(op)).sum())];
        row.extend(systems.iter().map(|s| Cell::Ns(rest.iter().map(|op| op_ns(s, op)).sum())));
        table.row(row);
    }
    table
}

fn by_op_plot(systems: &[&SystemPrediction]) -> document::Plot {
    const COLOURS: usize = 9;
    let ops = top_ops(systems);
    let mut order: Vec<String> = ops.iter().take(COLOURS).cloned().collect();
    let mut parts = Vec::new();
    for system in systems {
        for op in &order {
            parts.push((system.system.clone(), op.clone(), op_ns(system, op) / 1e9));
        }
        let rest: f64 = ops.iter().skip(COLOURS).map(|op| op_ns(system, op)).sum();
        if rest > 0.0 {
            parts.push((system.system.clone(), "others".to_owned(), rest / 1e9));
        }
    }
    if ops.len() > COLOURS {
        order.push("others".to_owned());
    }
    stacked_bars("Predicted time by call type.", Counted::Time("time in the file system"), &order, &parts)
}

/// Where the time goes on one system, by entry of its vector, so many rows.
pub fn by_entry_of(system: &SystemPrediction, rows: usize) -> Table {
    let caption = format!("The costs that make up the total on {}, the largest first.", system.system);
    let columns = [
        ("Entry", "entry"),
        ("Times", "times"),
        ("Each", "each_ns"),
        ("Total", "total_ns"),
        ("Share", "share"),
        ("Meaning", "meaning"),
    ];
    let table = Table::new("by_entry", &caption, &columns);
    let mut table = table.all_about(&system.system);
    for share in system.by_entry.iter().take(rows) {
        let meaning = system::vector::parse_entry_name(&share.entry).map_or("", |(class, _)| class.meaning().trim());
        table.row(vec![
            Cell::from(share.entry.as_str()),
            Cell::Count(share.weight.round() as u64),
            Cell::Ns(share.mean_ns),
            Cell::Ns(share.ns),
            Cell::Share(ratio(share.ns, system.total_ns)),
            Cell::from(meaning),
        ]);
    }
    table
}

fn by_directory(system: &SystemPrediction) -> Table {
    let caption = format!("By directory on {}, each with what is below it.", system.system);
    let table = Table::new(
        "by_directory",
        &caption,
        &[("Directory", "directory"), ("Calls", "calls"), ("Total", "total_ns"), ("Share", "share")],
    );
    let mut table = table.all_about(&system.system);
    for directory in system.by_directory.iter().take(TOP) {
        table.row(vec![
            Cell::from(directory.path.as_str()),
            Cell::Count(directory.calls),
            Cell::Ns(directory.ns),
            Cell::Share(ratio(directory.ns, system.total_ns)),
        ]);
    }
    table
}

fn caches(system: &SystemPrediction) -> Table {
    let c = &system.cache;
    let mut caption = format!("What the caches did on {}.", system.system);
    if system.data_cache_bytes > 0 {
        caption.push_str(&format!(" Its data cache has {}.", show::bytes(system.data_cache_bytes as f64)));
    }
    if !system.cache_policy.is_default() {
        caption.push_str(&format!(" Its data cache evicts by {}.", system.cache_policy.name()));
    }
    let table =
        Table::new("caches", &caption, &[("What", "what"), ("Hits", "hits"), ("Misses", "misses"), ("Hit", "share")]);
    let mut table = table.all_about(&system.system);
    let mut add = |what: &str, hits: u64, misses: u64| {
        if hits + misses > 0 {
            let share = ratio(hits as f64, (hits + misses) as f64);
            table.row(vec![Cell::from(what), Cell::Count(hits), Cell::Count(misses), Cell::Share(share)]);
        }
    };
    add("lookups of names that are there", c.name_hits, c.name_misses);
    add("lookups of names that are not", c.negative_hits, c.negative_misses);
    add("pages read", c.page_hits, c.page_misses);
    table
}

fn explanation(document: &mut Document, e: &Explanation) {
    document.heading(format!("Why {} and {} differ", e.a, e.b));
    document.paragraph(format!(
        "{} takes {}, {} takes {}: a difference of {}. Gains and losses cancel: each part's share is of what all parts \
         of its table differ by, whichever way.",
        e.a,
        show::duration_ns(e.a_total_ns),
        e.b,
        show::duration_ns(e.b_total_ns),
        show::duration_ns(e.difference_ns)
    ));
    document.table(parts("explain_by_class", "By elementary operation.", e, &e.by_class, true));
    document.table(parts("explain_by_op", "By call type.", e, &e.by_op, false));
}

fn parts(name: &str, caption: &str, e: &Explanation, parts: &[Part], meanings: bool) -> Table {
    let titles = [format!("{}, each", e.a), format!("{}, each", e.b), e.a.clone(), e.b.clone()];
    let mut columns = vec![
        ("Part", "part"),
        ("Difference", "difference_ns"),
        ("Of all parts", "share_of_parts"),
        (titles[2].as_str(), "a_ns"),
        (titles[3].as_str(), "b_ns"),
        (titles[0].as_str(), "a_each_ns"),
        (titles[1].as_str(), "b_each_ns"),
        ("Times", "times"),
    ];
    if meanings {
        columns.push(("Meaning", "meaning"));
    }
    let mut table = Table::new(name, caption, &columns)
        .about("a_ns", &e.a, "total_ns")
        .about("b_ns", &e.b, "total_ns")
        .about("a_each_ns", &e.a, "each_ns")
        .about("b_each_ns", &e.b, "each_ns");
    for part in parts.iter().filter(|part| part.difference_ns != 0.0).take(TOP) {
        let mut row = vec![
            Cell::from(part.name.as_str()),
            Cell::Ns(part.difference_ns),
            Cell::SignedShare(part.share_of_parts),
            Cell::Ns(part.a_ns),
            Cell::Ns(part.b_ns),
            Cell::Ns(part.a_each_ns),
            Cell::Ns(part.b_each_ns),
            Cell::Count(part.a_count.max(part.b_count).round() as u64),
        ];
        if meanings {
            row.push(Cell::from(part.meaning.as_str()));
        }
        table.row(row);
    }
    table
}

/// Which one cost, changed by how much, would make the first two equally fast.
pub fn tipping_table(tipping: &[Tipping], rows: usize) -> Table {
    let caption = "Any one of these alone would make the first two equally fast.";
    let columns = [("Cost of", "class"), ("On", "system"), ("Must change to", "factor"), ("Meaning", "meaning")];
    let mut table = Table::new("tipping", caption, &columns);
    for t in tipping.iter().take(rows) {
        table.row(vec![
            Cell::from(t.class.as_str()),
            Cell::from(t.system.as_str()),
            Cell::Ratio(t.factor),
            Cell::from(t.meaning.as_str()),
        ]);
    }
    table
}

fn baselines(systems: &[&SystemPrediction]) -> Table {
    let mut table = Table::new(
        "baselines",
        systems.first().map_or("", |system| traced(system.baselines.traced)),
        &[
            ("System", "system"),
            ("fsage", "fsage_ns"),
            ("Count x mean", "count_times_mean_ns"),
            ("Bandwidth only", "bandwidth_only_ns"),
            ("Same as traced", "same_as_traced_ns"),
        ],
    );
    for system in systems {
        let b = &system.baselines;
        let known = |ns: Option<f64>| ns.map_or(Cell::Empty, Cell::Ns);
        table.row(vec![
            Cell::from(system.system.as_str()),
            Cell::Ns(system.total_ns),
            known(b.count_times_mean_ns),
            known(b.bandwidth_only_ns),
            known(b.same_as_traced_ns),
        ]);
    }
    table
}

/// What the traced durations are worth as a baseline.
fn traced(durations: Durations) -> &'static str {
    match durations {
        Durations::InKernel => "Same as traced: durations taken in the kernel, so an honest baseline.",
        Durations::Inflated => "Same as traced: tracing inflates it, so it is no honest baseline.",
        Durations::None => "Same as traced: the trace has no durations.",
    }
}

fn coverage(prediction: &Prediction) -> Table {
    let c = &prediction.coverage;
    let mut table = Table::new("coverage", "", &[("Calls", "calls"), ("Are", "status")]);
    for (status, calls) in &c.by_status {
        table.row(vec![Cell::Count(*calls), Cell::from(*status)]);
    }
    for (op, calls) in &c.uncovered_by_op {
        table.row(vec![Cell::Count(*calls), Cell::from(format!("not covered: {op}"))]);
    }
    table
}

fn warnings(systems: &[&SystemPrediction]) -> Vec<String> {
    let mut lines = Vec::new();
    for system in systems {
        lines.extend(system.warnings.iter().map(|warning| format!("{}: {warning}", system.system)));
        for fallback in &system.fallbacks {
            let instead = if fallback.instead.is_empty() {
                "they were left out".to_owned()
            } else {
                format!("{} stood in", fallback.instead.join(", "))
            };
            lines.push(format!(
                "{}: the profile has no {} for {} requests; {instead}",
                system.system,
                fallback.class,
                show::count(fallback.requests)
            ));
        }
    }
    lines
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
