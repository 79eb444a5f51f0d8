//! An aging workload: where it comes from, what it does, and how well it matches what was asked for.

use crate::OpKind;
use crate::format::{Placement, PlanMeta};
use document::{Cell, Document, Plot, Table, plot};

/// One aging workload of `file_bytes` bytes.
pub fn plan(name: &str, file_bytes: u64, meta: &PlanMeta) -> Document {
    let mut document = Document::new(format!("Aging workload {name}"));
    document.paragraph(meta.source.description.clone());
    document.table(about(file_bytes, meta)).table(inputs(meta));
    document.heading("Operations").table(operations(meta));
    document.heading("Utilisation").table(utilisation(meta));
    document.plot(utilisation_plot(meta));
    document.heading("Fit").table(fit(meta));
    document
}

fn about(file_bytes: u64, meta: &PlanMeta) -> Table {
    let mut table = Table::new("plan", "", &[("Figure", "figure"), ("Value", "value")]);
    let mut add = |figure: &str, value: Cell| table.row(vec![Cell::from(figure), value]);
    add("source", Cell::from(format!("{} {}", meta.source.kind, meta.source.name)));
    add("seed", Cell::from(meta.seed.to_string()));
    add("capacity planned for", Cell::Bytes(meta.capacity_bytes as f64));
    add("block", Cell::Bytes(meta.block_bytes as f64));
    add("simulated days", Cell::Count(meta.days.into()));
    if let Placement::Groups { count } = meta.placement {
        add("directories stand for allocation groups", Cell::Count(count.into()));
    }
    let counts = &meta.counts;
    add("operations", Cell::Count(counts.operations));
    add("bytes written", Cell::Bytes(counts.written_bytes as f64));
    let turnovers = counts.written_bytes as f64 / meta.capacity_bytes.max(1) as f64;
    add("bytes written, in capacities", Cell::Number(turnovers));
    add("files at the end", Cell::Count(counts.files_at_end));
    add("bytes at the end", Cell::Bytes(counts.bytes_at_end as f64));
    let mean = (counts.files_at_end > 0).then(|| counts.bytes_at_end as f64 / counts.files_at_end as f64);
    add("mean file at the end", mean.map_or(Cell::Empty, Cell::Bytes));
    let most = counts.used_bytes_max as f64 / meta.capacity_bytes.max(1) as f64;
    add("highest utilisation", Cell::Share(most));
    add("utilisation at the end", meta.utilisation.last().map_or(Cell::Empty, |d| Cell::Share(d.used_share)));
    add("bytes of this file", Cell::Bytes(file_bytes as f64));
    let each = (counts.operations > 0).then(|| file_bytes as f64 / counts.operations as f64);
    add("of these per operation", each.map_or(Cell::Empty, Cell::Bytes));
    table
}

fn inputs(meta: &PlanMeta) -> Table {
    let mut table =
        Table::new("inputs", "Made from:", &[("Input", "input"), ("Bytes", "bytes"), ("CRC-32C", "crc32c")]);
    for input in &meta.source.inputs {
        table.row(vec![
            Cell::from(input.name.clone()),
            Cell::Bytes(input.bytes as f64),
            Cell::from(input.crc32c.clone()),
        ]);
    }
    table
}

fn operations(meta: &PlanMeta) -> Table {
    let mut table = Table::new(
        "operations",
        "",
        &[("Operation", "operation"), ("Count", "count"), ("Share", "share"), ("Per day", "per_day")],
    );
    for kind in OpKind::ALL {
        let count = meta.counts.of(kind);
        if count > 0 {
            table.row(vec![
                Cell::from(kind.name()),
                Cell::Count(count),
                Cell::Share(count as f64 / meta.counts.operations.max(1) as f64),
                Cell::Number(count as f64 / f64::from(meta.days.max(1))),
            ]);
        }
    }
    table
}

/// Rows of the utilisation table: enough to see the curve, few enough to read.
const CURVE_ROWS: usize = 12;

fn utilisation(meta: &PlanMeta) -> Table {
    let mut table = Table::new(
        "utilisation",
        "Planned use at the end of some simulated days (the file has every day).",
        &[
            ("Day", "day"),
            ("Operations up to here", "operations"),
            ("Files", "files"),
            ("Used", "used_bytes"),
            ("Utilisation", "used_share"),
        ],
    );
    let days = &meta.utilisation;
    let rows = days.len().min(CURVE_ROWS);
    // The first, the last, and evenly between.
    let picked = (0..rows).filter_map(|i| days.get(i * (days.len() - 1) / (rows - 1).max(1)));
    for day in picked {
        table.row(vec![
            Cell::Count(day.day.into()),
            Cell::Count(day.operations),
            Cell::Count(day.files),
            Cell::Bytes(day.used_bytes as f64),
            Cell::Share(day.used_share),
        ]);
    }
    table
}

fn utilisation_plot(meta: &PlanMeta) -> Plot {
    let points: Vec<(String, f64, f64)> =
        meta.utilisation.iter().map(|d| ("planned".to_owned(), f64::from(d.day), d.used_share)).collect();
    plot::lines("Planned utilisation at the end of each day.", ("day", false), ("share of capacity", false), &points)
}

fn fit(meta: &PlanMeta) -> Table {
    let mut table = Table::new(
        "fit",
        "What was planned against what was asked for: Kolmogorov-Smirnov distance, 0 (the same) to 1.",
        &[("What", "what"), ("KS", "ks"), ("Observations", "observations"), ("Against", "against")],
    );
    for result in &meta.fit {
        table.row(vec![
            Cell::from(result.what.clone()),
            Cell::from(if result.ks.is_finite() { format!("{:.4}", result.ks) } else { String::new() }),
            Cell::Count(result.observations),
            Cell::from(units::text::printable(&result.against)),
        ]);
    }
    table
}
