//! A system profile: where it was measured, what it knows of the caches, and the vector.

use crate::vector::{Class, parse_entry_name};
use crate::{Apart, Family, SystemProfile};
use document::{Cell, Document, Plot, Table, plot};

/// The whole profile.
pub fn system(profile: &SystemProfile) -> Document {
    let mut document = Document::new(format!("System profile {}", profile.name));
    document.paragraph(profile.provenance.clone());
    document.heading("Environment").table(document::facts("environment", &profile.environment.facts()));
    document.heading("Caches and write-back").table(parameters(profile));
    if !profile.behaviour.is_unknown() {
        document.heading("What it does").table(behaviour(profile));
    }
    document.heading("System vector").table(singles(profile)).table(curves(profile)).plot(curve_plot(profile));
    if !profile.write_load.is_empty() {
        let mut table = Table::new(
            "write_load",
            "A fixed workload while another process writes.",
            &[("Background load", "load_bytes_per_s"), ("Time", "time_ns"), ("Slowdown", "slowdown")],
        );
        for point in &profile.write_load {
            table.row(vec![
                Cell::from(format!("{}/s", units::show::bytes(point.load_bytes_per_s))),
                Cell::Ns(point.time_s * 1e9),
                Cell::Ratio(point.slowdown),
            ]);
        }
        document.heading("Asynchronous overhead").table(table);
    }
    if !profile.sync_beside.is_empty() {
        let mut table = Table::new(
            "sync_beside",
            "A sync of one file while other threads sync others, over one alone.",
            &[("Other threads", "others"), ("Slowdown", "slowdown")],
        );
        for point in &profile.sync_beside {
            table.row(vec![Cell::from(u64::from(point.others)), Cell::Ratio(point.slowdown)]);
        }
        document.heading("Syncs of several threads").table(table);
    }
    document
}

/// Entries shown of those that are farthest apart.
const FARTHEST: usize = 15;

/// Adds how far two profiles of one system are from each other.
pub fn apart(document: &mut Document, apart: &Apart) {
    let disjoint = apart.entries.iter().filter(|entry| entry.disjoint).count();
    document.heading("Measured twice").paragraph(format!(
        "The median entry differs by {}, one in ten by more than {}. Of {} entries, the 95 % intervals of {disjoint} \
         have nothing in common: those were not the same at the two times.",
        units::show::share(apart.median),
        units::show::share(apart.p90),
        apart.entries.len(),
    ));
    let mut table = Table::new(
        "apart",
        "The entries that are farthest apart.",
        &[
            ("Entry", "entry"),
            ("First", "first_ns"),
            ("Second", "second_ns"),
            ("Apart", "share"),
            ("Intervals", "disjoint"),
        ],
    );
    for entry in apart.entries.iter().take(FARTHEST) {
        table.row(vec![
            Cell::from(entry.name.as_str()),
            Cell::Ns(entry.first_ns),
            Cell::Ns(entry.second_ns),
            Cell::Share(entry.share()),
            Cell::from(if entry.disjoint { "disjoint" } else { "" }),
        ]);
    }
    document.table(table);
    if !apart.missing.is_empty() {
        document.paragraph(format!("Only one of the two has: {}.", apart.missing.join(", ")));
    }
}

fn parameters(profile: &SystemProfile) -> Table {
    let p = &profile.parameters;
    let mut table = Table::new("parameters", "", &[("Parameter", "parameter"), ("Value", "value")]);
    let data_cache = if p.data_cache_is_lower_bound { "data cache, at least (bc)" } else { "data cache (bc)" };
    table.row(vec![Cell::from(data_cache), Cell::Bytes(p.data_cache_bytes as f64)]);
    table.row(vec![Cell::from("data cache evicts by"), Cell::from(p.cache_policy.name())]);
    let entries = |n: u64| if n == 0 { Cell::from("not reached") } else { Cell::Count(n) };
    table.row(vec![Cell::from("name cache, entries (nc)"), entries(p.name_cache_entries)]);
    table.row(vec![Cell::from("attribute cache, files (mdc)"), entries(p.attribute_cache_files)]);
    table.row(vec![Cell::from("block size (bs)"), Cell::Bytes(p.block_bytes.into())]);
    table.row(vec![Cell::from("background write-back from"), Cell::Bytes(p.dirty_background_bytes as f64)]);
    table.row(vec![Cell::from("writers wait from"), Cell::Bytes(p.dirty_limit_bytes as f64)]);
    table.row(vec![Cell::from("dirty data expires after"), Cell::Ns(p.dirty_expire_ns as f64)]);
    table.row(vec![
        Cell::from("write-back of large files"),
        Cell::from(format!("{}/s", units::show::bytes(p.writeback_bytes_per_s))),
    ]);
    table.row(vec![
        Cell::from("write-back of 4 KiB files"),
        Cell::from(format!("{}/s", units::show::count(p.writeback_files_per_s as u64))),
    ]);
    table.row(vec![Cell::from("timer overhead, subtracted"), Cell::Ns(p.timer_overhead_ns)]);
    let repeated: Vec<f64> = profile.entries.values().filter_map(|e| e.reuse).map(|reuse| reuse.factor(1)).collect();
    if let Some(factor) = stats::median(&repeated) {
        table.row(vec![Cell::from("a call just after its like takes (median)"), Cell::Ratio(factor)]);
    }
    table
}

/// What was found by trying.
fn behaviour(profile: &SystemProfile) -> Table {
    let b = profile.behaviour;
    let mut table = Table::new("behaviour", "", &[("Found by trying", "behaviour"), ("Answer", "answer")]);
    let family = b.family.map(|family| match family {
        Family::Log => "everything that came before (one log)",
        Family::Each => "that file",
        Family::Segments => "a new file, and with it every other whose names changed (segments)",
    });
    let yes = |answer: Option<bool>| answer.map(|yes| if yes { "yes" } else { "no" });
    for (what, answer) in [
        ("a sync of one file commits", family),
        ("it writes new data of others", yes(b.sync_writes_others)),
        ("copies share blocks", yes(b.copies_share)),
        ("space can be preallocated", yes(b.preallocates)),
        ("setting a length writes what is dirty", yes(b.truncate_writes)),
        ("a sync of an unchanged directory commits others' changes", yes(b.directory_commits)),
        ("a sync of a file leaves it something to commit", yes(b.sync_leaves_changes)),
    ] {
        table.row(vec![Cell::from(what), Cell::from(answer.unwrap_or("not known"))]);
    }
    table
}

/// Entries with their class and size, in the vector's order.
fn entries(profile: &SystemProfile) -> Vec<(Class, u64, &crate::Entry)> {
    let mut entries: Vec<_> = profile
        .entries
        .iter()
        .filter_map(|(name, entry)| parse_entry_name(name).map(|(class, at)| (class, at, entry)))
        .collect();
    entries.sort_by_key(|(class, at, _)| (*class, *at));
    entries
}

fn cells(entry: &crate::Entry) -> Vec<Cell> {
    // Quantiles are stored at 1, 5, 10, 25, 50, 75, 90, 95, 99 and 99.9 %.
    let quantile = |i: usize| entry.quantiles_ns.get(i).map_or(Cell::Empty, |ns| Cell::Ns(*ns));
    let mean = match (entry.low_ns, entry.high_ns) {
        (low, high) if low > 0.0 && high > 0.0 => Cell::NsInterval { value: entry.mean_ns, low, high },
        _ => Cell::Ns(entry.mean_ns),
    };
    let samples = if entry.samples == 0 { Cell::Empty } else { Cell::Count(entry.samples) };
    vec![mean, quantile(4), quantile(8), samples]
}

const COLUMNS: [(&str, &str); 6] = [
    ("Entry", "entry"),
    ("Mean", "mean_ns"),
    ("Median", "median_ns"),
    ("99 %", "p99_ns"),
    ("Calls", "calls"),
    ("Meaning", "meaning"),
];

fn singles(profile: &SystemProfile) -> Table {
    let mut table = Table::new("costs", "Single costs: the mean of one call with its 95 % interval.", &COLUMNS);
    for (class, _, entry) in entries(profile).into_iter().filter(|(class, ..)| !class.is_curve()) {
        let mut row = vec![Cell::from(class.name())];
        row.extend(cells(entry));
        row.push(Cell::from(class.meaning().trim()));
        table.row(row);
    }
    table
}

fn curves(profile: &SystemProfile) -> Table {
    let mut table = Table::new("curves", "Curves over a size (bytes, or entries of a directory).", &COLUMNS);
    let mut last = None;
    for (class, at, entry) in entries(profile).into_iter().filter(|(class, ..)| class.is_curve()) {
        let mut row = vec![Cell::from(crate::vector::entry_name(class, at))];
        row.extend(cells(entry));
        row.push(if last == Some(class) { Cell::from("") } else { Cell::from(class.meaning().trim()) });
        last = Some(class);
        table.row(row);
    }
    table
}

fn curve_plot(profile: &SystemProfile) -> Plot {
    let shown = [
        Class::ReadCached,
        Class::ReadSeq,
        Class::ReadRand,
        Class::WriteAppend,
        Class::WriteCached,
        Class::FsyncAppend,
        Class::FdatasyncOverwrite,
        Class::Remove,
    ];
    let points: Vec<(String, f64, f64)> = entries(profile)
        .into_iter()
        .filter(|(class, ..)| shown.contains(class))
        .map(|(class, at, entry)| (class.name().to_owned(), at as f64, entry.mean_ns / 1e3))
        .collect();
    plot::lines("Cost of a call over its size.", ("size, bytes", true), ("mean, µs", true), &points)
}
