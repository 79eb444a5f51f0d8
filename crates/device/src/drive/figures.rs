//! Every figure of a drive's file beside its source.

use serde::Serialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// A figure with where it is from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its key, from the top of the file; the tables of an array share one.
    pub key: String,
    /// Its value as it stands, shortened where it is a long list.
    pub value: String,
    /// Its source.
    pub source: String,
    /// Whether nobody has published it.
    pub estimate: bool,
}

const ESTIMATE: &str = "[estimate]";

/// The figures of a file; a figure without source or a source without figure is an error with its key.
pub(super) fn figures(file: &Table, sources: &BTreeMap<String, String>) -> Result<Vec<Figure>, (String, String)> {
    let mut leaves: Vec<(String, Vec<String>)> = Vec::new();
    for (key, value) in file.iter().filter(|(key, _)| !["name", "summary", "sources"].contains(&key.as_str())) {
        collect(key, value, &mut leaves);
    }
    let mut used = BTreeMap::new();
    let mut figures = Vec::with_capacity(leaves.len());
    for (key, values) in leaves {
        let Some((place, text)) = source_of(&key, sources) else {
            return Err((key, "has no source: name one in [sources] for it or for its table".into()));
        };
        used.insert(place.to_owned(), ());
        let estimate = text.starts_with(ESTIMATE);
        let source = text.trim_start_matches(ESTIMATE).trim().to_owned();
        if source.is_empty() {
            return Err((format!("sources.\"{place}\""), "says nothing".into()));
        }
        figures.push(Figure { value: shortened(&values), key, source, estimate });
    }
    match sources.keys().find(|key| !used.contains_key(*key)) {
        Some(unused) => Err((format!("sources.\"{unused}\""), "is the source of no figure in this file".into())),
        None => Ok(figures),
    }
}

/// Leaves by key; those of an array of tables are gathered under one key.
pub(super) fn collect(key: &str, value: &Value, leaves: &mut Vec<(String, Vec<String>)>) {
    match value {
        Value::Table(table) => {
            for (name, value) in table {
                collect(&format!("{key}.{name}"), value, leaves);
            }
        }
        Value::Array(array) if array.iter().all(Value::is_table) && !array.is_empty() => {
            for value in array {
                collect(key, value, leaves);
            }
        }
        leaf => match leaves.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) => values.push(leaf.to_string()),
            None => leaves.push((key.to_owned(), vec![leaf.to_string()])),
        },
    }
}

fn source_of<'a>(key: &str, sources: &'a BTreeMap<String, String>) -> Option<(&'a str, &'a str)> {
    let mut prefix = key;
    loop {
        if let Some((place, text)) = sources.get_key_value(prefix) {
            return Some((place, text));
        }
        prefix = prefix.rsplit_once('.')?.0;
    }
}

fn shortened(values: &[String]) -> String {
    const MOST: usize = 60;
    let text = values.join("; ");
    if text.chars().count() <= MOST {
        return text;
    }
    let beginning: String = text.chars().take(MOST).collect();
    format!("{beginning}… ({} characters in all)", text.chars().count())
}
