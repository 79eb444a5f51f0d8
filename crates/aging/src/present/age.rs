//! What a replay of an aging workload did.

use crate::age::{AgeResult, DataMode, DayRow, Room};
use document::{Cell, Document, Table};
use units::show;

/// Rows of the tables by day and by control point shown at most; the result has all.
const ROWS_MAX: usize = 60;

/// A replay: what it did, how well the utilisation was kept, day by day.
pub fn age(result: &AgeResult) -> Document {
    let mut document = Document::new(format!("Aging of {}", result.environment.target));
    document.table(summary(result));
    document.list(notes(result));
    document.heading("Utilisation").table(deviation(result));
    document.heading("Days").table(days(result));
    document.heading("What was done").table(performed(result)).table(control(result));
    document
}

fn figures(name: &str, caption: &str) -> Table {
    Table::new(name, caption, &[("Figure", "figure"), ("Value", "value")])
}

fn add(table: &mut Table, figure: &str, value: Cell) {
    table.row(vec![Cell::from(figure), value]);
}

fn summary(result: &AgeResult) -> Table {
    let mut table = figures("age", result.environment.kernel.whose_times());
    let plan = &result.plan;
    add(&mut table, "plan", Cell::from(format!("{} (CRC-32C {})", plan.name, plan.crc32c)));
    add(&mut table, "source", Cell::from(format!("{}: {}", result.meta.source.kind, result.meta.source.name)));
    add(&mut table, "seed", Cell::Count(result.meta.seed));
    add(&mut table, "file system", Cell::from(result.environment.fs_type.name()));
    add(&mut table, "data", Cell::from(if result.data == DataMode::Write { "written" } else { "fallocate" }));
    add(&mut table, "writers", Cell::Count(result.writers));
    add(&mut table, "simulated days", Cell::Count(u64::from(result.days_done)));
    add(&mut table, "operations", Cell::Count(result.counters.operations));
    add(&mut table, "bytes written", Cell::Bytes(result.counters.written_bytes as f64));
    add(&mut table, "time in operations", Cell::Ns(result.wall_ns as f64));
    if let Some(rate) = result.operations_per_second() {
        add(&mut table, "operations per second", Cell::Number(rate));
    }
    add(&mut table, "files at the end", Cell::Count(result.files));
    add(&mut table, "their blocks", Cell::Bytes(result.file_bytes as f64));
    table
}

fn notes(result: &AgeResult) -> Vec<String> {
    let mut notes = result.notes.clone();
    if result.data == DataMode::Fallocate {
        notes.push(
            "Files were allocated with fallocate, not written: extents are marked unwritten, and nothing was allocated \
             late (delayed allocation), so layout may differ from that of written files."
                .to_owned(),
        );
    }
    let left_out = result.counters.overwrites_left_out;
    if left_out > 0 {
        let fs_type = &result.environment.fs_type;
        let cow = if fs_type.copies_on_write() {
            format!("; on {fs_type}, which copies on write, they would have moved data")
        } else {
            String::new()
        };
        notes.push(format!("{} overwriting operations were left out (--data=fallocate){cow}.", show::count(left_out)));
    }
    if result.counters.holes_unsupported > 0 {
        let n = show::count(result.counters.holes_unsupported);
        notes.push(format!("{n} holes were not punched: the file system has no such operation."));
    }
    notes
}

fn deviation(result: &AgeResult) -> Table {
    let d = &result.deviation;
    let caption = match result.room {
        Some(Room::Beside { .. }) => {
            "Of all readings. Shares are of the room that is the plan's, above what was in use when the run began."
        }
        _ => {
            "Of all readings. Shares are of the size that df shows. The target is what was steered to: the plan's \
             share, and at first all that the empty file system uses."
        }
    };
    let points = |share: f64| Cell::from(format!("{:.2} points", share * 100.0));
    let mut table = figures("utilisation", caption);
    add(&mut table, "in use before", Cell::Bytes(result.base_bytes as f64));
    add(&mut table, "readings of statvfs", Cell::Count(d.readings));
    add(&mut table, "largest excess over the target", points(d.over_max));
    add(&mut table, "largest shortfall", points(d.under_max));
    add(&mut table, "mean deviation", points(d.mean));
    add(&mut table, "largest excess over the plan's share", points(d.over_plan_max));
    add(&mut table, "highest use", Cell::Share(d.used_max));
    table
}

fn days(result: &AgeResult) -> Table {
    let caption = if result.days.len() > ROWS_MAX {
        "Evenly spaced days; operations, time, deletions and full are sums since the row before. The JSON result has \
         every day."
    } else {
        ""
    };
    let mut table = Table::new(
        "days",
        caption,
        &[
            ("Day", "day"),
            ("Planned", "planned_share"),
            ("Target", "target_share"),
            ("In use", "used_share"),
            ("Files", "files"),
            ("Operations", "operations"),
            ("Time", "wall_ns"),
            ("Deleted early", "early_deletions"),
            ("Held back", "held_back"),
            ("Full", "full"),
        ],
    );
    let step = result.days.len().div_ceil(ROWS_MAX).max(1);
    for days in result.days.chunks(step) {
        let Some(last) = days.last() else { continue };
        let sum = |of: fn(&DayRow) -> u64| days.iter().map(of).sum::<u64>();
        table.row(vec![
            Cell::Count(u64::from(last.day)),
            Cell::Share(last.planned_share),
            Cell::Share(last.target_share),
            Cell::Share(last.used_share),
            Cell::Count(last.files),
            Cell::Count(sum(|day| day.operations)),
            Cell::Ns(sum(|day| day.wall_ns) as f64),
            Cell::Count(sum(|day| day.early_deletions)),
            Cell::Count(sum(|day| day.held_back)),
            Cell::Count(sum(|day| day.full)),
        ]);
    }
    table
}

fn performed(result: &AgeResult) -> Table {
    let mut table =
        Table::new("performed", "", &[("Operation", "operation"), ("Planned", "planned"), ("Performed", "performed")]);
    for (kind, n) in result.counters.performed.iter() {
        let planned = result.meta.counts.by_kind.get(kind).copied().unwrap_or(0);
        if planned > 0 || *n > 0 {
            table.row(vec![Cell::from(kind.clone()), Cell::Count(planned), Cell::Count(*n)]);
        }
    }
    table
}

fn control(result: &AgeResult) -> Table {
    let c = &result.counters;
    let mut table =
        figures("control", "What control and a full target did to the plan; sizes of files are never changed.");
    for (figure, n) in [
        ("deletions brought forward", c.brought_forward),
        ("deletions held back", c.held_back),
        ("of them made up for later", c.released),
        ("of them made up for because the name was needed", c.released_for_name),
        ("files deleted that the plan deletes later than it was looked ahead, or never", c.out_of_plan),
        ("operations dropped with their file", c.dropped),
        ("operations that found the target full", c.full),
        ("of them left out", c.full_left_out),
        ("files deleted for room", c.deleted_for_room),
    ] {
        if n > 0 {
            add(&mut table, figure, Cell::Count(n));
        }
    }
    table
}
