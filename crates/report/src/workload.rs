//! A workload profile: where it comes from and how much of the truth it holds.

use crate::{Cell, Document, Table, units};
use trace::profile::Meta;

/// What a profile says of itself.
pub fn workload(name: &str, meta: &Meta) -> Document {
    let mut document = Document::new(format!("Workload profile {name}"));
    document.table(origin(meta));
    let mut table = Table::new("file_systems", "", &[
        ("File system", "fs_type"),
        ("Mounted on", "mount_point"),
        ("Device", "device"),
        ("Options", "options"),
    ]);
    for fs in &meta.file_systems {
        table.row(vec![
            Cell::from(fs.fs_type.as_str()),
            Cell::from(fs.mount_point.as_str()),
            Cell::from(fs.device.as_str()),
            Cell::from(fs.options.as_str()),
        ]);
    }
    document.heading("File systems it touched").table(table);
    document.heading("What the trace does not show").table(unseen(meta));
    document
}

fn origin(meta: &Meta) -> Table {
    let mut table = Table::new("origin", "", &[("What", "what"), ("Value", "value")]);
    let mut add = |what: &str, value: String| {
        if !value.is_empty() {
            table.row(vec![Cell::from(what), Cell::from(value)]);
        }
    };
    if let Some(command) = &meta.command {
        add("command", command.argv.join(" "));
        add("working directory", command.working_directory.clone());
        add("exit status", command.exit_status.map(|s| s.to_string()).unwrap_or_default());
        add("killed by signal", command.signal.map(|s| s.to_string()).unwrap_or_default());
    }
    add("traced by", format!("{} {} {}", meta.tracer.name, meta.tracer.version, meta.tracer.options.join(" ")).trim().to_owned());
    add("clock", meta.clock.clone());
    add("kernel", meta.host.kernel.clone());
    if meta.host.cpus > 0 {
        add("processors", format!("{} x {}", meta.host.cpus, meta.host.cpu));
    }
    add("wall-clock time while traced", meta.wall_ns.map(|ns| units::duration_ns(ns as f64)).unwrap_or_default());
    add("wall-clock time untraced", meta.untraced_wall_ns.map(|ns| units::duration_ns(ns as f64)).unwrap_or_default());
    add("calls", units::count(meta.events));
    add("names it found", units::count(meta.snapshot.entries));
    add("activity covered", meta.coverage_share.map(units::share).unwrap_or_default());
    table
}

fn unseen(meta: &Meta) -> Table {
    let mut table = Table::new("unseen", "", &[("What", "what"), ("Count", "count")]);
    let mut add = |what: String, count: u64| {
        if count > 0 {
            table.row(vec![Cell::Text(what), Cell::Count(count)]);
        }
    };
    add("mappings of files".to_owned(), meta.unseen.maps);
    add("io_uring instances".to_owned(), meta.unseen.io_uring_setups);
    add("programs executed, their images mapped".to_owned(), meta.unseen.exec_images);
    add("events the tracer lost".to_owned(), meta.lost_events);
    let lines: Vec<String> = meta.unparsed.first_line_numbers.iter().map(u64::to_string).collect();
    add(format!("lines not understood ({})", lines.join(", ")), meta.unparsed.lines);
    for (call, count) in &meta.unmodelled {
        add(format!("calls of {call}, not modelled"), *count);
    }
    table
}
