//! The envelope of every `--json` output: a versioned schema name beside the result.

use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// A value as indented text, its last line ended.
pub fn text(value: &Value) -> String {
    hidden_escaped(&format!("{value:#}\n"))
}

/// JSON in which what does not show is escaped, so that names do not drive a terminal: JSON itself minds only the first
/// 32 characters.
pub(crate) fn hidden_escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // Only between values.
            '\n' => out.push(c),
            c if units::text::is_hidden(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing into a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// `{"schema": "fsage.NAME/VERSION", ...}`: the result's own fields follow the schema; a result that is not an object
/// is put under `result`.
pub fn envelope<T: Serialize>(schema: &str, result: &T) -> serde_json::Result<Value> {
    let mut out = Map::new();
    out.insert("schema".to_owned(), Value::from(schema));
    match serde_json::to_value(result)? {
        Value::Object(fields) => out.extend(fields),
        other => drop(out.insert("result".to_owned(), other)),
    }
    Ok(Value::Object(out))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[test]
    fn strings_do_not_drive_a_terminal() {
        let value = json!({ "a\u{9b}": ["\u{7f}\u{1b}\u{202e}", "ü文"] });
        let text = super::text(&value);
        assert!(text.chars().all(|c| c == '\n' || !units::text::is_hidden(c)), "{}", text.escape_debug());
        assert!(text.ends_with("}\n") && text.contains("ü文") && text.contains("\\u202e"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
    }
}
