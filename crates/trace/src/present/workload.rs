//! A workload profile: where it comes from and how much of the truth it holds.

use crate::inspect::{DataLifetimes, Distribution, FileUse, Inspection, Latencies, Requests};
use crate::profile::{Durations, Meta};
use document::{Cell, Document, Plot, Table, plot};
use units::show;

/// What a profile says of itself, and what its calls add up to.
pub fn workload(name: &str, meta: &Meta, inspection: &Inspection) -> Document {
    let mut document = Document::new(format!("Workload profile {name}"));
    document.table(origin(meta, inspection));
    document.heading("Mix of calls").table(mix(inspection)).table(failures(inspection));
    document.table(thread_time(inspection));
    document.heading("Requests").table(requests(inspection)).table(distributions(inspection));
    document.plot(sizes_plot(inspection));
    document.heading("Reuse").paragraph(reuse_text(inspection)).table(reuse(inspection)).plot(reuse_plot(inspection));
    document.heading("How long data lives").table(data_lifetimes(&inspection.data_lifetimes));
    document.table(ended_within(&inspection.data_lifetimes));
    document.heading("Files and directories").table(files(&inspection.files)).table(snapshot(inspection));
    let mut table = Table::new(
        "file_systems",
        "",
        &[("File system", "fs_type"), ("Mounted on", "mount_point"), ("Device", "device"), ("Options", "options")],
    );
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

/// What traced durations are worth.
fn traced(durations: Durations) -> &'static str {
    match durations {
        Durations::InKernel => {
            "Durations were taken in the kernel, at each call's beginning and return: they are the calls' own."
        }
        Durations::Inflated => {
            "Durations are as traced, which inflates them: short calls seem to take as long as tracing them does."
        }
        Durations::None => "The trace has no durations.",
    }
}

fn thread_time(inspection: &Inspection) -> Table {
    let columns = [("Threads were", "where"), ("Time", "ns"), ("Share", "share")];
    let mut table = Table::new("thread_time", "Where the time of all threads together went.", &columns);
    if let Some(time) = inspection.thread_time {
        let parts = [
            ("computing", time.computing_ns),
            ("in calls on files", time.in_calls_ns),
            ("waiting for each other, for timers, for others", time.waiting_ns),
            ("ready, without a processor", time.queued_ns),
        ];
        for (name, ns) in parts {
            let share = if time.alive_ns > 0 { ns as f64 / time.alive_ns as f64 } else { 0.0 };
            table.row(vec![Cell::from(name), Cell::Ns(ns as f64), Cell::Share(share)]);
        }
    }
    table
}

fn mix(inspection: &Inspection) -> Table {
    let known = inspection.operations.iter().any(|row| row.running_ns.is_some() || row.blocked_ns.is_some());
    let mut columns = vec![
        ("Call", "call"),
        ("Calls", "calls"),
        ("Share", "share"),
        ("Failed", "failed"),
        ("Foreign", "foreign"),
        ("Traced time", "traced_ns"),
        ("Share", "traced_share"),
        ("Median", "median_ns"),
        ("99 %", "p99_ns"),
    ];
    if known {
        columns.extend([("Running", "running_ns"), ("Blocked", "blocked_ns")]);
    }
    let mut table = Table::new("operations", traced(inspection.durations), &columns);
    for row in &inspection.operations {
        let mut cells = vec![
            Cell::from(row.op),
            Cell::Count(row.calls),
            Cell::Share(row.share),
            Cell::Count(row.errors),
            Cell::Count(row.foreign),
            Cell::Ns(row.traced_ns as f64),
            Cell::Share(row.traced_share),
            Cell::Ns(row.dur_ns.p50 as f64),
            Cell::Ns(row.dur_ns.p99 as f64),
        ];
        if known {
            cells.extend([row.running_ns, row.blocked_ns].map(|ns| ns.map_or(Cell::Empty, |ns| Cell::Ns(ns as f64))));
        }
        table.row(cells);
    }
    table
}

/// A workload's own latencies, and where the time went.
pub fn latencies(name: &str, found: &Latencies) -> Document {
    let mut document = Document::new(format!("Latencies of {name}"));
    let mut table = Table::new(
        "latencies",
        traced(found.durations),
        &[
            ("Call", "call"),
            ("Calls", "calls"),
            ("Failed", "failed"),
            ("Total", "total_ns"),
            ("Mean", "mean_ns"),
            ("Median", "p50_ns"),
            ("90 %", "p90_ns"),
            ("99 %", "p99_ns"),
            ("99.9 %", "p999_ns"),
            ("Longest", "max_ns"),
        ],
    );
    let mut spent = Table::new(
        "spent",
        "Where the time went: running on a processor, blocked (device, lock, another process), or ready and waiting \
         for a processor.",
        &[
            ("Call", "call"),
            ("Calls known", "calls"),
            ("Running", "running_ns"),
            ("Blocked", "blocked_ns"),
            ("Waiting", "waiting_ns"),
        ],
    );
    for row in found.operations.iter().chain([&found.all]) {
        let times = [row.total_ns as f64, row.mean_ns]
            .into_iter()
            .chain([row.p50_ns, row.p90_ns, row.p99_ns, row.p999_ns, row.max_ns].map(|ns| ns as f64));
        let counts = [Cell::from(row.op), Cell::Count(row.calls), Cell::Count(row.errors)];
        table.row(counts.into_iter().chain(times.map(Cell::Ns)).collect());
        if let Some(known) = row.spent {
            let parts = [known.running_ns, known.blocked_ns, known.waiting_ns].map(|ns| Cell::Ns(ns as f64));
            spent.row([Cell::from(row.op), Cell::Count(known.calls)].into_iter().chain(parts).collect());
        }
    }
    document.table(table);
    if found.all.spent.is_some() {
        document.table(spent);
    } else {
        document.paragraph("Time running and blocked is not known: this tracer cannot tell.");
    }
    document.paragraph(format!(
        "Left out: {} on pipes, sockets, /proc, /sys and /dev, {} that never returned.",
        show::counted(found.foreign_calls, "call", "calls"),
        show::count(found.unfinished_calls)
    ));
    document
}

fn failures(inspection: &Inspection) -> Table {
    let columns = [("Call", "call"), ("Error", "error"), ("Calls", "calls")];
    let mut table = Table::new("failures", "Calls that failed.", &columns);
    for failure in inspection.failures.iter().take(12) {
        let name = if failure.name.is_empty() { failure.errno.to_string() } else { failure.name.clone() };
        table.row(vec![Cell::from(failure.op), Cell::from(name), Cell::Count(failure.calls)]);
    }
    table
}

fn requests(inspection: &Inspection) -> Table {
    let mut table = Table::new(
        "requests",
        "",
        &[
            ("Direction", "direction"),
            ("Calls", "calls"),
            ("Asked for", "requested_bytes"),
            ("Moved", "moved_bytes"),
            ("Sequential by descriptor", "sequential_by_descriptor"),
            ("Sequential by file", "sequential_by_file"),
        ],
    );
    let mut add = |direction: &str, r: &Requests| {
        let share = |share: Option<f64>| share.map_or(Cell::Empty, Cell::Share);
        table.row(vec![
            Cell::from(direction),
            Cell::Count(r.calls),
            Cell::Bytes(r.requested_bytes as f64),
            Cell::Bytes(r.moved_bytes as f64),
            share(r.by_description.sequential_share),
            share(r.by_file.sequential_share),
        ]);
    };
    add("read", &inspection.reads);
    add("write", &inspection.writes);
    table
}

fn distributions(inspection: &Inspection) -> Table {
    let mut table = Table::new(
        "distributions",
        "",
        &[
            ("Of", "of"),
            ("Values", "count"),
            ("Mean", "mean"),
            ("5 %", "p5"),
            ("Median", "p50"),
            ("95 %", "p95"),
            ("Largest", "max"),
        ],
    );
    let mut add = |of: &str, d: &Distribution, cell: fn(f64) -> Cell| {
        if d.count > 0 {
            let ends = [d.mean, d.p5 as f64, d.p50 as f64, d.p95 as f64, d.max as f64].map(cell);
            table.row([vec![Cell::from(of), Cell::Count(d.count)], ends.to_vec()].concat());
        }
    };
    add("bytes of a read", &inspection.reads.sizes, Cell::Bytes);
    add("bytes of a write", &inspection.writes.sizes, Cell::Bytes);
    add("bytes of a run of adjacent reads", &inspection.reads.by_description.run_bytes, Cell::Bytes);
    add("bytes of a run of adjacent writes", &inspection.writes.by_description.run_bytes, Cell::Bytes);
    add("bytes of a file it found", &inspection.snapshot.file_bytes, Cell::Bytes);
    add("names in a directory it found", &inspection.snapshot.fan_out, Cell::Number);
    add("components of a path it gave", &inspection.files.path_components, Cell::Number);
    add("lifetime of a file it made and removed", &inspection.files.lifetimes_ns, Cell::Ns);
    table
}

fn sizes_plot(inspection: &Inspection) -> Plot {
    let mut points = Vec::new();
    for (direction, r) in [("read", &inspection.reads), ("write", &inspection.writes)] {
        points.extend(r.size_bars.iter().map(|b| (direction.to_owned(), b.up_to as f64 + 1.0, b.count as f64)));
    }
    plot::lines("Requests by size, one point per power of two.", ("size up to, bytes", true), ("calls", false), &points)
}

fn reuse_text(inspection: &Inspection) -> String {
    if inspection.reuse.accesses == 0 {
        return String::new();
    }
    format!(
        "{} touches of blocks of {}, {} of distinct blocks{}.",
        show::count(inspection.reuse.accesses),
        show::bytes(inspection.reuse.block_bytes as f64),
        show::bytes(inspection.working_set_bytes),
        if inspection.reuse.sampled_share < 1.0 { ", estimated from a sample" } else { "" }
    )
}

fn reuse(inspection: &Inspection) -> Table {
    let caption = "Share of touches that miss in an LRU cache of this size, first touches among them.";
    let mut table = Table::new("miss_ratios", caption, &[("Cache", "cache_bytes"), ("Misses", "miss_ratio")]);
    for point in &inspection.reuse.miss_ratios {
        table.row(vec![Cell::Bytes(point.cache_bytes as f64), Cell::Share(point.miss_ratio)]);
    }
    table
}

fn reuse_plot(inspection: &Inspection) -> Plot {
    let points: Vec<(String, f64, f64)> =
        inspection.reuse.miss_ratios.iter().map(|p| ("LRU".to_owned(), p.cache_bytes as f64, p.miss_ratio)).collect();
    plot::lines(
        "Miss ratio of a data cache.",
        ("cache size, bytes", true),
        ("share of touches that miss", false),
        &points,
    )
}

fn data_lifetimes(found: &DataLifetimes) -> Table {
    let mut table =
        Table::new("data_lifetimes", "", &[("Written data", "what"), ("Bytes", "bytes"), ("Share", "share")]);
    let all = found.written_bytes.max(1) as f64;
    for (what, bytes) in [
        ("all", found.written_bytes),
        ("overwritten", found.overwritten_bytes),
        ("cut off", found.cut_bytes),
        ("removed with its file", found.removed_bytes),
        ("there at the end", found.lasting_bytes),
    ] {
        if found.written_bytes > 0 {
            table.row(vec![Cell::from(what), Cell::Bytes(bytes as f64), Cell::Share(bytes as f64 / all)]);
        }
    }
    table
}

fn ended_within(found: &DataLifetimes) -> Table {
    let caption = "How much of what was written was overwritten, cut off or removed within so long: what a write \
        delayed so long saves.";
    let columns = [("Within", "age_ns"), ("Of the bytes written", "share")];
    let mut table = Table::new("ended_within", caption, &columns);
    for point in &found.ended_within {
        table.row(vec![Cell::Ns(point.age_ns as f64), Cell::Share(point.share)]);
    }
    table
}

fn files(used: &FileUse) -> Table {
    let mut table = Table::new("files", "", &[("What", "what"), ("Count", "count")]);
    let mut add = |what: &str, n: u64| table.row(vec![Cell::from(what), Cell::Count(n)]);
    add("files used", used.files);
    add("of these, by more than one process", used.shared_files);
    add("directories used", used.directories);
    add("of these, by more than one process", used.shared_directories);
    add("files made", used.created_files);
    add("files removed", used.removed_files);
    add("files made and removed", used.created_and_removed_files);
    add("files removed while open", used.unlinked_open_files);
    add("calls with a relative path", used.relative_calls);
    table
}

fn snapshot(inspection: &Inspection) -> Table {
    let s = &inspection.snapshot;
    let mut table = Table::new("found", "Names that were there before.", &[("What", "what"), ("Count", "count")]);
    let mut add = |what: &str, n: u64| table.row(vec![Cell::from(what), Cell::Count(n)]);
    add("files", s.files);
    add("directories", s.directories);
    add("symbolic links", s.symlinks);
    add("FIFOs, sockets and devices", s.special);
    add("names that share a file with another", s.hard_linked_names);
    table
}

fn origin(meta: &Meta, inspection: &Inspection) -> Table {
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
    add(
        "traced by",
        // Its options fill pages; meta.json has them.
        format!("{} {}", meta.tracer.name, meta.tracer.version).trim().to_owned(),
    );
    add("clock", meta.clock.clone());
    add("kernel", meta.host.kernel.clone());
    if meta.host.cpus > 0 {
        add("processors", format!("{} x {}", meta.host.cpus, meta.host.cpu));
    }
    add("wall-clock time while traced", meta.wall_ns.map(|ns| show::duration_ns(ns as f64)).unwrap_or_default());
    add("wall-clock time untraced", meta.untraced_wall_ns.map(|ns| show::duration_ns(ns as f64)).unwrap_or_default());
    add("calls", show::count(meta.events));
    add("of these on pipes, sockets, /proc, /sys and /dev", show::count(inspection.foreign_calls));
    add("processes", show::count(inspection.processes));
    add("threads", show::count(inspection.threads));
    add("names it found", show::count(meta.snapshot.entries));
    add("activity covered", meta.coverage_share.map(show::share).unwrap_or_default());
    add("cut short", meta.cut_short.map(|why| format!("{why}: what was called then is not known")).unwrap_or_default());
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
