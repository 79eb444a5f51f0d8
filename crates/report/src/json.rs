//! The envelope of every `--json` output: a versioned schema name beside the result.

use serde::Serialize;
use serde_json::{Map, Value};

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
