//! The directory of a result (`-o DIR`): what an earlier result left there is replaced whole, and nothing else is
//! touched.
//!
//! `result.json` lists the files beside it under `run.files`. A file that is listed there and is still as it was
//! written goes with the result that it belonged to; one that somebody has changed stays, and that is said.

use super::file::{shown, write_file};
use crate::failure::{self, Context as _};
use crate::progress;
use serde_json::{Value, json};
use std::path::Path;

/// The result itself, and so the mark of a directory of ours.
const RESULT: &str = "result.json";
/// No result of ours is larger.
const RESULT_BYTES_MAX: u64 = 1 << 30;

/// Fails early where files of somebody else's would be overwritten.
pub fn check(directory: &Path) -> failure::Result<()> {
    if is_result(directory) {
        return Ok(());
    }
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(()) };
    let would_be_lost = |name: &str| {
        name == RESULT || name.ends_with(".csv") || matches!(name, "report.html" | "report.md" | "long.parquet")
    };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(would_be_lost) {
            return Err(failure::usage(format!(
                "{}: is there and is of no result of fsage's: it would be overwritten; name another directory",
                shown(&entry.path())
            )));
        }
    }
    Ok(())
}

fn old(directory: &Path) -> Option<Value> {
    let text = posix::input::read(&directory.join(RESULT), RESULT_BYTES_MAX).ok()?;
    serde_json::from_slice(&text).ok()
}

fn is_result(directory: &Path) -> bool {
    let schema =
        |value: Value| value.get("schema").and_then(Value::as_str).is_some_and(|schema| schema.starts_with("fsage."));
    old(directory).is_some_and(schema)
}

/// Writes the files, and the result last: until then the old one still lists what is there.
pub fn write(directory: &Path, mut value: Value, files: &[(String, Vec<u8>)]) -> failure::Result<()> {
    check(directory)?;
    let listed = old(directory).and_then(|old| old.get("run")?.get("files")?.as_array().cloned()).unwrap_or_default();
    for file in listed {
        remove_stale(directory, &file, files);
    }
    for (name, bytes) in files {
        write_file(&directory.join(name), bytes)?;
    }
    let list =
        files.iter().map(|(name, bytes)| json!({ "name": name, "bytes": bytes.len(), "crc32c": checksum(bytes) }));
    if let Some(run) = value.get_mut("run").and_then(Value::as_object_mut) {
        run.insert("files".to_owned(), Value::Array(list.collect()));
    }
    write_file(&directory.join(RESULT), document::json_text(&value).as_bytes())
        .with_context(|| format!("cannot write the result into {}", shown(directory)))
}

fn checksum(bytes: &[u8]) -> String {
    format!("{:08x}", crc32c::crc32c(bytes))
}

/// Removes a file of the earlier result that the new one does not have.
fn remove_stale(directory: &Path, file: &Value, files: &[(String, Vec<u8>)]) {
    let Some(name) = file.get("name").and_then(Value::as_str) else { return };
    // The list may be somebody else's: it names files in this directory and nothing else.
    if name.contains('/') || name == RESULT || files.iter().any(|(new, _)| new == name) {
        return;
    }
    let path = directory.join(name);
    let Some(bytes) = file.get("bytes").and_then(Value::as_u64) else { return };
    let Ok(found) = posix::input::read(&path, bytes) else { return };
    let same = found.len() as u64 == bytes && file.get("crc32c").and_then(Value::as_str) == Some(&checksum(&found));
    if !same {
        progress::note(&format!("{}: of an earlier result, and changed since: it is left there", shown(&path)));
    } else if let Err(error) = std::fs::remove_file(&path) {
        progress::note(&format!("{}: of an earlier result, and cannot be removed: {error}", shown(&path)));
    }
}
