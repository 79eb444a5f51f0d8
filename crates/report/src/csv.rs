//! CSV by RFC 4180: one header line of keys, raw numbers.

use crate::Table;
use std::borrow::Cow;

/// A table as CSV.
pub fn render(table: &Table) -> String {
    let mut out = String::new();
    line(&mut out, table.columns.iter().map(|c| c.key.clone()));
    for row in &table.rows {
        line(&mut out, row.iter().map(|cell| cell.raw()));
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
        assert_eq!(super::render(&table), "path,time_ns\n\"a,\"\"b\"\"\nc\",1500.5\n");
    }
}
