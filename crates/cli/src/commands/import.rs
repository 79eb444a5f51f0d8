//! `fsage import FILE`.

use crate::commands::record;
use crate::{failure, output, progress};
use anyhow::Context as _;
use clap::ValueEnum;
use report::units;
use serde::Serialize;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trace::profile::{Meta, Reader, Writer, WriterOptions};
use trace::strace::{ImportOptions, Importer, Summary};
use trace::{Snapshot, spool, text};

/// Make a profile of a text another tool wrote, or of a recording that was cut off.
///
/// A trace must have been made with strace -f -ttt -T, better with -yy -s0 as well. Names that the trace implies become its
/// snapshot; --snapshot adds what was really there.
///
/// A spool that `fsage record` left (W.spool: it was killed, or could not make the profile) is recognised by itself, and stays.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  strace -f --seccomp-bpf -ttt -T -yy -s0 -o build.strace make && fsage import build.strace
  fsage import build.spool
  fsage import --format thesis old-disk.txt -o old-disk.system")]
pub struct Args {
    /// The text, or the spool.
    file: PathBuf,
    /// What it is.
    #[arg(long, value_enum, default_value_t = Format::Strace)]
    format: Format,
    /// The profile to write (default: the file's name with .workload or .system).
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a workload profile that is there.
    #[arg(long)]
    overwrite: bool,
    /// The first process's working directory, for a trace made without -y.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Names that were there before, in the thesis's snapshot text.
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Print a summary as JSON and nothing else on standard output.
    #[arg(long)]
    json: bool,
}

/// Texts that can be imported; docs/formats.md describes them.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// strace's output: a workload profile.
    Strace,
    /// The thesis's text of names and values: a system profile.
    Thesis,
}

#[derive(Serialize)]
struct Output<'a> {
    output: String,
    meta: &'a Meta,
    import: &'a Summary,
}

/// Imports.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let extension = if args.format == Format::Strace { "workload" } else { "system" };
    let path = args.output.clone().unwrap_or_else(|| {
        PathBuf::from(args.file.with_extension(extension).file_name().unwrap_or_else(|| "imported".as_ref()))
    });
    output::writable_parent(&path)?;
    match args.format {
        Format::Strace if spool::is_spool(&args.file) => self::spool(&args, &path)?,
        Format::Strace => strace(&args, &path)?,
        Format::Thesis => thesis(&args, &path)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn open(path: &Path) -> anyhow::Result<File> {
    File::open(path).map_err(|error| failure::bad_input(format!("{}: cannot be opened: {error}", output::shown(path))))
}

fn strace(args: &Args, path: &Path) -> anyhow::Result<()> {
    let known = args.snapshot.as_deref().map(snapshot).transpose()?.unwrap_or_default();
    let file = open(&args.file)?;
    let bar = progress::bar(file.metadata().map_or(0, |m| m.len()), "importing");
    let mut writer = Writer::create(path, WriterOptions { overwrite: args.overwrite, ..WriterOptions::default() })?;
    let options = ImportOptions {
        name: args.file.clone(),
        cwd: args.cwd.clone().map(|cwd| cwd.into_os_string().into_vec()),
        ..ImportOptions::default()
    };
    let mut importer = Importer::new(options);
    let mut push = |batch: &trace::Batch| writer.push(batch);
    importer.read(BufReader::with_capacity(1 << 20, bar.wrap_read(file)), &mut push)?;
    let mut imported = importer.finish(&mut push)?;
    bar.finish_and_clear();
    let found = known.merged(Snapshot::from_entries(imported.implied_snapshot()));
    let meta = writer.finish(imported.meta(), &found)?;
    progress::note(&format!(
        "wrote {}: {} calls of {} lines, {} names it started from",
        output::shown(path),
        units::count(meta.events),
        units::count(imported.summary.lines),
        units::count(meta.snapshot.entries)
    ));
    record::say_unparsed(&imported.summary);
    if let Some(line) = imported.summary.truncated_last_line {
        progress::note(&format!("line {line}, the last, is cut short and was left out"));
    }
    if args.json {
        let result = Output { output: output::shown(path), meta: &meta, import: &imported.summary };
        let value = report::envelope("fsage.import/1", &result)?;
        output::print(&format!("{}\n", serde_json::to_string_pretty(&value)?))?;
    }
    Ok(())
}

fn spool(args: &Args, path: &Path) -> anyhow::Result<()> {
    if args.cwd.is_some() || args.snapshot.is_some() {
        return Err(failure::usage("--cwd and --snapshot are for texts: a spool holds both"));
    }
    let summary = trace::record::import_spool(&args.file, path, args.overwrite)?;
    record::say(path, &summary);
    if args.json {
        let result = Output { output: output::shown(path), meta: &summary.meta, import: &summary.import };
        let value = report::envelope("fsage.import/1", &result)?;
        output::print(&format!("{}\n", serde_json::to_string_pretty(&value)?))?;
    }
    Ok(())
}

/// A snapshot as text, or that of a workload profile.
fn snapshot(path: &Path) -> anyhow::Result<Snapshot> {
    if path.is_dir() {
        return Ok(Reader::open(path)?.snapshot()?);
    }
    text::snapshot::read(BufReader::new(open(path)?)).with_context(|| output::shown(path))
}

fn thesis(args: &Args, path: &Path) -> anyhow::Result<()> {
    output::must_be_new(path)?;
    let mut text = String::new();
    open(&args.file)?
        .take(1 << 20)
        .read_to_string(&mut text)
        .map_err(|error| failure::bad_input(format!("{}: {error}", output::shown(&args.file))))?;
    let profile = predict::system::thesis::import(&text, &args.file)?;
    profile.save(path)?;
    progress::note(&format!("wrote {}: {} entries", output::shown(path), profile.entries.len()));
    if args.json {
        let value = report::envelope("fsage.import/1", &profile)?;
        output::print(&format!("{}\n", serde_json::to_string_pretty(&value)?))?;
    }
    Ok(())
}
