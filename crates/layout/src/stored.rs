//! The survey file: one JSON object, `schema` first, then the survey's own fields. The same object that `--json`
//! prints.

use crate::{LayoutError, Survey};
use serde_json::Value;
use std::path::Path;

/// The schema's name and version. A reader refuses any other.
pub const SCHEMA: &str = "fsage.layout/1";

/// Larger files are not surveys: a survey holds bounded tables.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Writes a survey, whole or not at all.
pub fn save(survey: &Survey, path: &Path) -> Result<(), LayoutError> {
    let io = |doing| move |source| LayoutError::Io { target: path.display().to_string(), doing, source };
    let mut object = serde_json::Map::new();
    object.insert("schema".to_owned(), Value::from(SCHEMA));
    match serde_json::to_value(survey) {
        Ok(Value::Object(fields)) => object.extend(fields),
        Ok(other) => drop(object.insert("survey".to_owned(), other)),
        Err(error) => return Err(io("write the survey")(error.into())),
    }
    let mut text =
        serde_json::to_string_pretty(&Value::Object(object)).map_err(|e| io("write the survey")(e.into()))?;
    text.push('\n');
    posix::output::write(path, text.as_bytes()).map_err(io("write the survey"))
}

/// Reads a survey file; a file of another schema or version is refused.
pub fn load(path: &Path) -> Result<Survey, LayoutError> {
    let io = |source| LayoutError::Io { target: path.display().to_string(), doing: "read the survey", source };
    let bad = |problem: String| LayoutError::SurveyFile { path: path.display().to_string(), problem };
    let text = posix::input::read(path, FILE_BYTES_MAX).map_err(io)?;
    let value: Value = serde_json::from_slice(&text).map_err(|e| bad(format!("is not a survey file: {e}")))?;
    match value.get("schema").and_then(Value::as_str) {
        Some(SCHEMA) => {}
        Some(other) => return Err(bad(format!("has schema {other:?}, and this version reads {SCHEMA:?}"))),
        None => return Err(bad("has no \"schema\": give a file that `fsage layout -o` wrote".to_owned())),
    }
    // Parsed again from the text, so that an error names its line and column.
    let survey: Survey = serde_json::from_slice(&text).map_err(|e| bad(format!("is not a whole survey: {e}")))?;
    if let Some(map) = survey.map.as_ref().and_then(|map| map.known()) {
        map.check().map_err(|why| bad(format!("is not a whole survey: {why}")))?;
    }
    Ok(survey)
}
