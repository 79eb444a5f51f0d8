//! A disk's figures as the text of a drive's file.

use crate::disk::spec::DiskSpec;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use toml::{Table, Value};

/// Columns after which a long array goes on in the next line.
const COLUMNS: usize = 100;

/// Every figure of a disk's file, by key, with its value as it stands there; the tables of an array share one.
pub(crate) fn leaves(disk: &DiskSpec) -> BTreeMap<String, String> {
    let mut leaves = Vec::new();
    super::figures::collect("disk", &Value::Table(as_table(disk)), &mut leaves);
    leaves.into_iter().map(|(key, values)| (key, values.join("; "))).collect()
}

fn as_table(disk: &DiskSpec) -> Table {
    Table::try_from(disk).expect("a disk's figures are numbers that TOML has")
}

/// The text of a drive's file: what [`crate::Drive::parse`] reads as the same figures. What has its default value is
/// left out.
///
/// `comment` goes above it, a line each; `sources` are the table of that name. Every figure must have a source there by
/// the longest beginning of its key, or the file is refused when it is read.
///
/// # Panics
/// If a figure is greater than TOML has integers (2^63): no checked specification has one.
pub fn written(
    name: &str,
    summary: &str,
    comment: &[String],
    disk: &DiskSpec,
    sources: &BTreeMap<String, String>,
) -> String {
    let mut text = String::new();
    for line in comment {
        let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        text += &format!("# {line}\n");
    }
    let string = |text: &str| Value::String(text.to_owned()).to_string();
    let _ = writeln!(text, "name = {}\nsummary = {}\n\n[sources]", string(name), string(summary));
    for (key, source) in sources {
        let _ = writeln!(text, "{} = {}", string(key), string(source));
    }
    table(&mut text, "disk", &as_table(disk));
    text
}

/// A table: its own values, then the tables in it, then its arrays of tables.
fn table(text: &mut String, name: &str, values: &Table) {
    let _ = writeln!(text, "\n[{name}]");
    own_values(text, values);
    for (key, value) in values {
        if let Value::Table(inner) = value {
            table(text, &format!("{name}.{key}"), inner);
        }
    }
    for (key, value) in values {
        let Value::Array(array) = value else { continue };
        for inner in array.iter().filter_map(Value::as_table) {
            let _ = writeln!(text, "\n[[{name}.{key}]]");
            own_values(text, inner);
        }
    }
}

fn own_values(text: &mut String, values: &Table) {
    for (key, value) in values {
        match value {
            Value::Table(_) => {}
            Value::Array(array) if array.iter().any(Value::is_table) => {}
            Value::Array(array) => {
                let _ = writeln!(text, "{key} = {}", wrapped(array));
            }
            leaf => {
                let _ = writeln!(text, "{key} = {leaf}");
            }
        }
    }
}

fn wrapped(array: &[Value]) -> String {
    let items: Vec<String> = array.iter().map(Value::to_string).collect();
    let line = format!("[{}]", items.join(", "));
    if line.len() <= COLUMNS {
        return line;
    }
    let mut text = "[\n ".to_owned();
    let mut column = 1;
    for item in items {
        if column + item.len() + 2 > COLUMNS {
            text += "\n ";
            column = 1;
        }
        text += &format!(" {item},");
        column += item.len() + 2;
    }
    text + "\n]"
}
