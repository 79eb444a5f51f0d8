//! A drive's file that gives only what differs from another drive.

use super::catalogue;
use toml::{Table, Value};

/// A file's figures over those of the drive of the catalogue that it names as its base: tables are merged, everything
/// else is replaced. A key and what is wrong with it otherwise.
pub(super) fn over_base(base: &Value, over: Table) -> Result<Table, (String, String)> {
    let wrong = |why: String| ("base".to_owned(), why);
    let name = base.as_str().ok_or_else(|| wrong(format!("{base} is not a drive's key")))?;
    let Some((_, text)) = catalogue().iter().find(|(key, _)| *key == name) else {
        let tip = units::similar::tip(name, catalogue().iter().map(|(key, _)| *key));
        return Err(wrong(format!("{name}: no such drive; `fsage drive list` shows those there are{tip}")));
    };
    let mut table: Table = toml::from_str(text).map_err(|error| wrong(format!("{name}: {}", error.message())))?;
    if table.contains_key("base") {
        return Err(wrong(format!("{name} has a base itself; name that one")));
    }
    merge(&mut table, over);
    Ok(table)
}

fn merge(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => merge(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}
