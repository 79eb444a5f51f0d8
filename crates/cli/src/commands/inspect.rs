//! `fsage inspect FILE…`.

use crate::failure;
use crate::output::{self, ResultArgs};
use aging::snapshot::Snapshot;
use document::Document;
use fault::Kind;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use system::SystemProfile;
use trace::inspect::InspectOptions;
use trace::profile::{META_FILE, Reader};
use trace::verify::{Verification, VerifyOptions, verify};

/// Show what is in workload profiles, system profiles, aging workloads, tree snapshots and annotated traces.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Workload profiles (directories); system profiles, aging workloads and tree snapshots (files).
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Show rows of a trace instead, with the columns that a prediction's stages added.
    #[arg(long)]
    rows: bool,
    /// The first row to show.
    #[arg(long, value_name = "ROW", default_value_t = 0, requires = "rows")]
    from: u64,
    /// How many rows to show.
    #[arg(long, value_name = "N", default_value_t = 50, requires = "rows")]
    count: usize,
    /// Show the names the workload found instead.
    #[arg(long, conflicts_with = "rows")]
    snapshot: bool,
    /// Show how long calls took instead, by operation: mean, quantiles, and time running and blocked where it is known.
    #[arg(long, conflicts_with_all = ["rows", "snapshot"])]
    latency: bool,
    /// Compare the tree below a directory with what a workload profile leads to: its snapshot with its trace applied.
    /// Exit status 1 if they differ.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["rows", "snapshot", "latency"])]
    against: Option<PathBuf>,
    #[command(flatten)]
    result: ResultArgs,
}

/// Shows each file.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    args.result.check()?;
    if let Some(tree) = &args.against {
        return against(&args, tree);
    }
    let mut document = Document::default();
    let mut values = Vec::new();
    for file in &args.files {
        let (one, value) = inspect(&args, file)?;
        if args.files.len() == 1 {
            document = one;
        } else {
            document.append(one);
        }
        values.push(value);
    }
    args.result.emit("fsage.inspect/1", &json!({ "files": values }), &document)?;
    Ok(ExitCode::SUCCESS)
}

/// Compares a profile with a tree.
fn against(args: &Args, tree: &Path) -> failure::Result<ExitCode> {
    let [file] = args.files.as_slice() else {
        return Err(failure::usage("--against compares one workload profile with one tree"));
    };
    let reader = Reader::open(file)?;
    let verification: Verification = verify(&reader, tree, &VerifyOptions::default())?;
    let document = trace::present::verification(&output::shown(file), &verification);
    args.result.emit("fsage.verification/1", &verification, &document)?;
    Ok(if verification.holds() { ExitCode::SUCCESS } else { failure::code(Kind::Check) })
}

fn inspect(args: &Args, file: &Path) -> failure::Result<(Document, Value)> {
    if file.is_dir() {
        return workload(args, file);
    }
    if args.rows || args.snapshot || args.latency {
        return Err(failure::usage(format!(
            "{}: only a workload profile has rows, a snapshot and latencies",
            output::shown(file)
        )));
    }
    if file.file_name().is_some_and(|name| name == META_FILE || name.to_string_lossy().ends_with(".parquet")) {
        let text = output::shown(file);
        return Err(failure::usage(format!("{text}: is a part of a workload profile; name the directory it is in")));
    }
    if file.extension().is_some_and(|e| e == "snapshot") {
        let snapshot = Snapshot::read_whole(file)?;
        let (name, summary) = (output::shown(file), snapshot.summary());
        let document = aging::present::tree_snapshot(&name, std::fs::metadata(file)?.len(), &summary);
        return Ok((document, json!({ "file": name, "kind": "tree_snapshot", "summary": summary })));
    }
    if file.extension().is_some_and(|e| e == "aging") {
        return aging_workload(file);
    }
    let profile = SystemProfile::load(file)?;
    let value = json!({ "file": output::shown(file), "kind": "system", "system": profile });
    Ok((system::present::system(&profile), value))
}

fn aging_workload(file: &Path) -> failure::Result<(Document, Value)> {
    let reader = aging::format::Reader::open(file)?;
    reader.verify()?;
    let (name, bytes) = (output::shown(file), std::fs::metadata(file)?.len());
    let value = json!({ "file": name, "kind": "aging", "bytes": bytes, "meta": reader.meta() });
    Ok((aging::present::plan(&name, bytes, reader.meta()), value))
}

fn workload(args: &Args, directory: &Path) -> failure::Result<(Document, Value)> {
    let reader = Reader::open(directory)?;
    let name = output::shown(directory);
    if args.rows {
        let rows = reader.rows(args.from, args.count)?;
        let document = trace::present::rows(&format!("Rows of {name}"), &rows);
        let value = json!({ "file": name, "kind": "rows", "rows": table_json(&document) });
        return Ok((document, value));
    }
    if args.snapshot {
        let document = trace::present::snapshot(&format!("Names that {name} found"), &reader.snapshot()?);
        let value = json!({ "file": name, "kind": "snapshot", "entries": table_json(&document) });
        return Ok((document, value));
    }
    if args.latency {
        let found = trace::inspect::latencies(&reader)?;
        let value = json!({ "file": name, "kind": "latency", "latency": found });
        return Ok((trace::present::latencies(&name, &found), value));
    }
    let inspection = trace::inspect::inspect(&reader, &InspectOptions::default())?;
    let document = trace::present::workload(&name, reader.meta(), &inspection);
    let value = json!({ "file": name, "kind": "workload", "meta": reader.meta(), "inspection": inspection });
    Ok((document, value))
}

/// The rows of a document's only table as objects by column.
fn table_json(document: &Document) -> Value {
    document.tables().next().map_or(Value::Array(Vec::new()), document::Table::to_json)
}
