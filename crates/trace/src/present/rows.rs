//! Rows of a trace, one call a line, with whatever columns a stage has added.

use crate::profile::{Rows, Values};
use crate::{Event, Paths, flag};
use document::{Cell, Column, Document, Table};

/// Consecutive rows of a trace.
pub fn rows(title: &str, rows: &Rows) -> Document {
    let mut table = Table::new(
        "rows",
        "",
        &[
            ("Row", "seq"),
            ("At", "t_ns"),
            ("Took", "dur_ns"),
            ("Thread", "tid"),
            ("Call", "op"),
            ("Flags", "flags"),
            ("Path", "path"),
            ("Path 2", "path2"),
            ("Offset", "offset"),
            ("Bytes", "req_bytes"),
            ("Result", "ret"),
            ("File", "file_id"),
            ("Description", "ofd_id"),
        ],
    );
    table.columns.extend(rows.annotations.iter().map(|(name, _)| Column {
        title: name.clone(),
        key: name.clone(),
        of: None,
    }));
    for (i, event) in rows.batch.events.iter().enumerate() {
        let mut cells = event_cells(event, &rows.batch.paths);
        cells.extend(rows.annotations.iter().map(|(_, values)| annotation(values, i)));
        table.row(cells);
    }
    let mut document = Document::new(title);
    document.table(table);
    document
}

fn event_cells(event: &Event, paths: &Paths) -> Vec<Cell> {
    let number = |n: Option<u64>| n.map_or(Cell::Empty, Cell::Count);
    let path = |id: Option<crate::PathId>| id.map_or(Cell::from(""), |id| Cell::from(units::text::path(paths.get(id))));
    let result = match event.head.errno {
        None => event.head.ret.to_string(),
        Some(errno) => errno.to_string(),
    };
    vec![
        Cell::Count(event.head.seq),
        Cell::Ns(event.head.t_ns as f64),
        Cell::Ns(event.head.dur_ns as f64),
        Cell::Count(event.head.tid.into()),
        Cell::from(event.op().name()),
        Cell::from(flags(event.head.flags)),
        path(event.path()),
        path(event.path2()),
        number(event.offset()),
        number(event.req_bytes()),
        Cell::from(result),
        number(event.file().map(|id| id.0)),
        number(event.ofd().map(|id| id.0)),
    ]
}

/// The names of the flag bits that are set.
fn flags(bits: u32) -> String {
    let names = [
        (flag::READ, "read"),
        (flag::WRITE, "write"),
        (flag::CREATE, "create"),
        (flag::EXCL, "excl"),
        (flag::TRUNC, "trunc"),
        (flag::APPEND, "append"),
        (flag::DIRECTORY, "directory"),
        (flag::DIRECT, "direct"),
        (flag::SYNC, "sync"),
        (flag::DSYNC, "dsync"),
        (flag::PATH_ONLY, "path"),
        (flag::TMPFILE, "tmpfile"),
        (flag::POSITIONAL, "positional"),
        (flag::NOFOLLOW, "nofollow"),
        (flag::LAST, "last"),
        (flag::NOREPLACE, "noreplace"),
        (flag::EXCHANGE, "exchange"),
        (flag::FOREIGN, "foreign"),
        (flag::SHARED, "shared"),
        (flag::RWF_SYNC, "rwf_sync"),
        (flag::UNFINISHED, "unfinished"),
    ];
    let set: Vec<&str> = names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect();
    set.join(" ")
}

fn annotation(values: &Values, i: usize) -> Cell {
    fn at<T: Clone>(values: &[Option<T>], i: usize, cell: impl FnOnce(T) -> Cell) -> Cell {
        values.get(i).cloned().flatten().map_or(Cell::Empty, cell)
    }
    match values {
        Values::F64(v) => at(v, i, Cell::Number),
        Values::U64(v) => at(v, i, Cell::Count),
        Values::Bool(v) => at(v, i, |yes| Cell::from(if yes { "yes" } else { "no" })),
        Values::Utf8(v) => at(v, i, Cell::from),
    }
}
