//! Result files: one JSON object, `schema` first, then the result's own fields. The same object that `--json` prints.

use crate::WorkloadError;
use crate::result::BenchResult;
use serde_json::Value;
use std::path::Path;

/// The schema's name and version. A reader refuses any other.
pub const SCHEMA: &str = "fsage.bench/1";

/// What `-o DIR` calls the file in its directory.
const IN_DIRECTORY: &str = "result.json";
/// Larger files are not results: tens of thousands of rounds take a few megabytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Reads a result: the file, or a directory that `-o` made.
///
/// # Errors
/// It is not there, or not a result of this version; the message names file, line and column.
pub fn load(path: &Path) -> Result<BenchResult, WorkloadError> {
    let within = path.join(IN_DIRECTORY);
    let path = if path.is_dir() { within.as_path() } else { path };
    let shown = path.display().to_string();
    let io = |source| WorkloadError::Io { path: shown.clone(), source };
    let bad = |problem: String| WorkloadError::ResultFile { path: shown.clone(), problem };
    let text = posix::input::read(path, FILE_BYTES_MAX).map_err(io)?;
    let value: Value = serde_json::from_slice(&text).map_err(|e| bad(format!("is not a result file: {e}")))?;
    match value.get("schema").and_then(Value::as_str) {
        Some(SCHEMA) => {}
        Some(other) => return Err(bad(format!("has schema {other:?}, and this version reads {SCHEMA:?}"))),
        None => return Err(bad("has no \"schema\": give what `fsage bench --json` or -o wrote".into())),
    }
    // Parsed again from the text, so that an error names its line and column.
    serde_json::from_slice(&text).map_err(|e| bad(format!("is not a whole result: {e}")))
}
