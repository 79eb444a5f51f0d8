//! Where results go: standard output, and the files asked for.

mod file;
mod kept;

use crate::failure::{self, Context as _};
use crate::{long, made};
use clap::Args;
use document::Document;
pub use file::{shown, write_file};
use serde::Serialize;
use serde_json::Value;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Options of every command that has a result to show.
#[derive(Args, Clone, Debug, Default)]
pub struct ResultArgs {
    /// Print the result as JSON (schema named in its first field) and nothing else on standard output.
    #[arg(long)]
    pub json: bool,
    /// Write a self-contained HTML report with plots.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write everything into a directory: result.json, each table as CSV, all figures as one long table (long.csv,
    /// long.parquet), report.html and report.md. Files of an earlier result there are replaced.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// A result as JSON, in the envelope of its schema, with what it comes from.
pub fn envelope<T: Serialize>(schema: &str, result: &T) -> failure::Result<Value> {
    let value = document::envelope(schema, result).map_err(no_json)?;
    let (Value::Object(fields), Some(run)) = (&value, made::json()) else { return Ok(value) };
    // Behind the schema, before what may be megabytes.
    let (schema, others): (Vec<_>, Vec<_>) = fields.clone().into_iter().partition(|(name, _)| name == "schema");
    let run = std::iter::once(("run".to_owned(), run));
    Ok(Value::Object(schema.into_iter().chain(run).chain(others).collect()))
}

/// A part of a result as JSON.
pub fn json<T: Serialize>(part: &T) -> failure::Result<Value> {
    serde_json::to_value(part).map_err(no_json)
}

fn no_json(error: serde_json::Error) -> failure::Failure {
    failure::environment(format!("the result cannot be written as JSON: {error}"))
}

impl ResultArgs {
    /// Fails early on what would fail after hours: a report that cannot be written.
    pub fn check(&self) -> failure::Result<()> {
        if let Some(html) = &self.html {
            writable_parent(html)?;
            must_be_report(html)?;
        }
        if let Some(directory) = &self.output {
            if directory.exists() && !directory.is_dir() {
                return Err(failure::usage(format!("{}: is there and is not a directory", shown(directory))));
            }
            writable_parent(directory)?;
            kept::check(directory)?;
        }
        Ok(())
    }

    /// Whether a report with plots was asked for.
    pub fn has_report(&self) -> bool {
        self.html.is_some() || self.output.is_some()
    }

    /// Prints a result and writes the files asked for.
    pub fn emit<T: Serialize>(&self, schema: &str, result: &T, document: &Document) -> failure::Result<()> {
        self.emit_short(schema, result, document, document)
    }

    /// The same with a shorter document for the terminal.
    pub fn emit_short<T: Serialize>(
        &self,
        schema: &str,
        result: &T,
        short: &Document,
        document: &Document,
    ) -> failure::Result<()> {
        let with_origin = || Document { origin: made::origin(), ..document.clone() };
        if let Some(html) = &self.html {
            must_be_report(html)?;
            write_file(html, with_origin().to_html().as_bytes())?;
        }
        let value = if self.json || self.output.is_some() { envelope(schema, result)? } else { Value::Null };
        if let Some(directory) = &self.output {
            std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", shown(directory)))?;
            let document = with_origin();
            let figures = document.to_tidy();
            let mut files: Vec<(String, Vec<u8>)> = vec![
                ("report.html".to_owned(), document.to_html().into_bytes()),
                ("report.md".to_owned(), document.to_markdown().into_bytes()),
                ("long.csv".to_owned(), document::tidy::csv(&figures).into_bytes()),
                ("long.parquet".to_owned(), long::parquet(schema, &figures)?),
            ];
            files.extend(document.to_csv().into_iter().map(|(name, csv)| (name, csv.into_bytes())));
            kept::write(directory, value.clone(), &files)?;
        }
        if self.json { print(&document::json_text(&value)) } else { print_document(short) }
    }
}

/// Prints a document to standard output, as wide as [`width`] says.
pub fn print_document(document: &Document) -> failure::Result<()> {
    let terminal =
        io::stdout().is_terminal().then(|| rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_col));
    print(&document.to_text(Some(width(std::env::var("COLUMNS").ok().as_deref(), terminal))))
}

/// Columns where nobody says how many there are: a file, a pipe, a terminal that does not know.
const COLUMNS: u16 = 100;

/// How many columns text has: what COLUMNS says, else the terminal (zero: it does not say), else [`COLUMNS`].
fn width(said: Option<&str>, terminal: Option<u16>) -> u16 {
    let said = said.and_then(|text| text.trim().parse().ok());
    said.or(terminal).filter(|columns| *columns > 0).unwrap_or(COLUMNS)
}

/// Prints to standard output. A reader that went away (`| head`) is not an error.
pub fn print(text: &str) -> failure::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// A report takes the place of an older report only, whatever name it is given.
fn must_be_report(path: &Path) -> failure::Result<()> {
    let is_report = || -> std::io::Result<bool> {
        let metadata = std::fs::metadata(path)?;
        if !metadata.is_file() {
            return Ok(!metadata.is_dir()); // A pipe or a terminal.
        }
        let mut begin = Vec::new();
        std::fs::File::open(path)?.take(document::HTML_BEGINS.len() as u64).read_to_end(&mut begin)?;
        Ok(begin.is_empty() || begin == document::HTML_BEGINS.as_bytes())
    };
    match is_report() {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(failure::usage(format!("{}: is there and is no report of fsage's: it is not overwritten", shown(path))))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failure::bad_input(format!("{}: {error}", shown(path)))),
    }
}

/// What the files of other commands end with. A profile under such a name would be taken for one of them.
const OTHERS: [&str; 10] = ["system", "aging", "snapshot", "series", "toml", "json", "html", "img", "spool", "csv"];

/// A name for a workload profile: new or to be overwritten, and not what files of another kind are called.
pub fn for_workload(path: &Path, overwrite: bool) -> failure::Result<()> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if OTHERS.contains(&extension) {
        return Err(failure::usage(format!(
            "{}: a workload profile is a directory NAME.workload, and a name that ends in .{extension} says that it is \
             something else",
            shown(path)
        )));
    }
    if !overwrite && path.symlink_metadata().is_ok() {
        return Err(failure::usage(format!(
            "{}: is already there; --overwrite replaces it, or choose another name",
            shown(path)
        )));
    }
    writable_parent(path)
}

/// An output that must not be there yet, because overwriting it would lose a recording.
pub fn must_be_new(path: &Path) -> failure::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(failure::usage(format!(
            "{}: is already there and is not overwritten; name another or remove it",
            shown(path)
        )));
    }
    writable_parent(path)
}

/// The directory an output goes to must exist.
pub fn writable_parent(path: &Path) -> failure::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if parent.is_dir() {
        Ok(())
    } else {
        Err(failure::usage(format!("{}: the directory {} is not there", shown(path), shown(parent))))
    }
}

/// A name as part of a file name: `ext4:8G` becomes `ext4-8G`.
pub fn file_name(name: &str) -> String {
    let safe: String = name.chars().map(|c| if c.is_alphanumeric() || "._".contains(c) { c } else { '-' }).collect();
    let trimmed = safe.trim_matches(['-', '.']);
    if trimmed.is_empty() { "unnamed".to_owned() } else { trimmed.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::width;

    #[test]
    fn columns_come_from_who_knows_them() {
        let cases = [
            (None, None, 100),
            (None, Some(72), 72),
            (None, Some(0), 100),
            (Some("60"), Some(72), 60),
            (Some("240"), None, 240),
            (Some("0"), Some(72), 100),
            (Some("wide"), Some(72), 72),
            (Some(""), None, 100),
        ];
        for (said, terminal, columns) in cases {
            assert_eq!(width(said, terminal), columns, "{said:?}, {terminal:?}");
        }
    }
}
