//! CSV by RFC 4180: one header line of keys, raw numbers.
//!
//! Text that a spreadsheet would take for a formula has an apostrophe before it, as OWASP advises (*CSV Injection*): a
//! name from outside is never computed.

use crate::{Cell, Table};
use std::borrow::Cow;

/// A table as CSV.
pub fn render(table: &Table) -> String {
    let mut out = String::new();
    line(&mut out, table.columns.iter().map(|c| text(&c.key)));
    for row in &table.rows {
        line(&mut out, row.iter().map(field));
    }
    out
}

fn line(out: &mut String, fields: impl Iterator<Item = String>) {
    for (i, field) in fields.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&quoted(&field));
    }
    out.push('\n');
}

fn field(cell: &Cell) -> String {
    match cell {
        Cell::Text(own) => text(own),
        number => number.raw(),
    }
}

fn text(own: &str) -> String {
    let shown = units::text::printable(own);
    // What began with a tab or a carriage return begins with a backslash by now.
    if own.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{shown}") } else { shown }
}

fn quoted(field: &str) -> Cow<'_, str> {
    if field.contains(['"', ',', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", field.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(field)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cell, Table};

    #[test]
    fn quotes_what_needs_it_and_keeps_numbers_bare() {
        let mut table = Table::new("t", "", &[("Path", "path"), ("Time", "time_ns")]);
        table.row(vec![Cell::from("a,\"b\"\nc"), Cell::Ns(1500.5)]);
        assert_eq!(super::render(&table), "path,time_ns\n\"a,\"\"b\"\"\\nc\",1500.5\n");
    }

    /// Such cells were written as they are.
    #[test]
    fn names_are_no_formulas() {
        let mut table = Table::new("t", "", &[("Path", "=1+1"), ("Time", "time_ns")]);
        for name in ["=HYPERLINK(\"http://x\",\"y\")", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\u{1b}[31m", "a=b"] {
            table.row(vec![Cell::from(name), Cell::Ns(-1.0)]);
        }
        let rows = [
            "'=1+1,time_ns",
            "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\",-1",
            "'+1,-1",
            "'-1,-1",
            "'@SUM(1),-1",
            "'\\t=1,-1",
            "'\\r=1,-1",
            "\\u{1b}[31m,-1",
            "a=b,-1",
        ];
        assert_eq!(super::render(&table).lines().collect::<Vec<_>>(), rows);
    }
}
