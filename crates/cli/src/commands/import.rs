//! `fsage import FILE`.

use crate::commands::record;
use crate::failure::Context as _;
use crate::{failure, output, progress};
use clap::ValueEnum;
use posix::input::Stream;
use serde::Serialize;
use std::io::{BufReader, Cursor, ErrorKind, Read};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trace::analysis::Decode;
use trace::anonymise::{Anonymiser, anonymise_in_place};
use trace::profile::{Meta, Reader, Writer, WriterBeside, WriterOptions};
use trace::recognise::{self, Form};
use trace::strace::{ImportError, ImportOptions, Summary};
use trace::{Snapshot, fio, perf, spool, strace, text};
use units::show;

/// Make a profile of a text another tool wrote, or of a recording that was cut off.
///
/// What the text is, is told by its content. strace must have been given -f -ttt -T, better -yy -s0 as well. Names that
/// the trace implies become its snapshot; --snapshot adds what was really there.
///
/// A spool that `fsage record` left (W.spool: it was killed, or could not make the profile) is recognised as well, and
/// stays.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  strace -f --seccomp-bpf -ttt -T -yy -s0 -o build.strace make && fsage import build.strace
  perf trace -o db.perf -p 4711 && fsage import db.perf
  fio --write_iolog=job.iolog job.fio && fsage import job.iolog --cwd .
  fsage import build.spool
  fsage import old-disk.txt -o old-disk.system")]
pub struct Args {
    /// The text, or the spool.
    file: PathBuf,
    /// What it is (default: told by its content).
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The profile to write (default: the file's name with .workload or .system).
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a workload profile that is there.
    #[arg(long)]
    overwrite: bool,
    /// The first process's working directory, where the trace does not show it (strace without -y, perf trace, fio).
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Names that were there before, in the thesis's snapshot text.
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Hide every name in the profile, as `fsage export --anonymise` does.
    #[arg(long)]
    anonymise: bool,
    /// Print a summary as JSON and nothing else on standard output.
    #[arg(long)]
    json: bool,
}

/// Texts that can be imported; docs/formats.md describes them.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// strace's output: a workload profile.
    Strace,
    /// The output of perf trace: a workload profile.
    Perf,
    /// fio's log of I/O, version 2 or 3: a workload profile.
    Fio,
    /// The thesis's text of names and values: a system profile.
    Thesis,
}

impl Format {
    /// The format of what begins with these bytes.
    fn of(head: &[u8], path: &Path) -> failure::Result<Format> {
        match recognise::recognise(head) {
            Some(Form::Perf) => Ok(Format::Perf),
            Some(Form::FioLog) => Ok(Format::Fio),
            Some(Form::SystemVector) => Ok(Format::Thesis),
            Some(Form::SnapshotText) => Err(failure::usage(format!(
                "{}: is a snapshot of names and no trace; give it with --snapshot beside the trace it belongs to",
                output::shown(path)
            ))),
            Some(Form::Spool) => Err(failure::usage(format!(
                "{}: is a spool, which is read from a file alone and without --format",
                output::shown(path)
            ))),
            // strace's importer says best what a text lacks that nothing else claims.
            Some(Form::Strace) | None => Ok(Format::Strace),
        }
    }
}

#[derive(Serialize)]
struct Output<'a> {
    output: String,
    meta: &'a Meta,
    import: &'a Summary,
}

/// Imports.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    posix::memory::in_hand(&args.file);
    if args.format.is_none() && spool::is_spool(&args.file) {
        spool(&args, &output_path(&args, "workload"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut file = open(&args.file)?;
    let length = file.metadata().map_or(0, |m| m.len());
    let unreadable = |error| failure::bad_input(format!("{}: {error}", output::shown(&args.file)));
    let mut head = Vec::new();
    file.by_ref().take(recognise::ENOUGH_BYTES as u64).read_to_end(&mut head).map_err(unreadable)?;
    let format = match args.format {
        Some(format) => format,
        None => Format::of(&head, &args.file)?,
    };
    let extension = if format == Format::Thesis { "system" } else { "workload" };
    let path = output_path(&args, extension);
    output::writable_parent(&path)?;
    let input = Cursor::new(head).chain(file);
    if format == Format::Thesis {
        thesis(&args, &path, input)?
    } else {
        workload(&args, format, &path, length, input)?
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the profile goes: as told, or beside the caller under the input's name.
fn output_path(args: &Args, extension: &str) -> PathBuf {
    args.output.clone().unwrap_or_else(|| {
        PathBuf::from(args.file.with_extension(extension).file_name().unwrap_or_else(|| "imported".as_ref()))
    })
}

fn open(path: &Path) -> failure::Result<Stream> {
    Stream::open(path)
        .map_err(|error| failure::bad_input(format!("{}: cannot be opened: {error}", output::shown(path))))
}

fn workload(args: &Args, format: Format, path: &Path, length: u64, input: impl Read) -> failure::Result<()> {
    let known = args.snapshot.as_deref().map(snapshot).transpose()?.unwrap_or_default();
    let cwd = args.cwd.as_deref().map(std::path::absolute).transpose()?;
    let options = ImportOptions {
        name: args.file.clone(),
        cwd: cwd.map(|cwd| cwd.into_os_string().into_vec()),
        // They belong to the names it started from.
        keep_removed: true,
        ..ImportOptions::default()
    };
    let mut decoder: Box<dyn Decode> = match format {
        Format::Perf => Box::new(perf::Importer::new(options)),
        Format::Fio => Box::new(fio::Importer::new(options)),
        Format::Strace | Format::Thesis => Box::new(strace::Importer::new(options)),
    };
    let bar = progress::bar(length, "importing");
    let mut input = bar.wrap_read(input);
    let options = WriterOptions { overwrite: args.overwrite, ..WriterOptions::default() };
    let mut writer = WriterBeside::start(Writer::create(path, options)?)?;
    let mut hiding = args.anonymise.then(Anonymiser::new).transpose().context("no random key for hiding names")?;
    let mut push = |batch: trace::Batch| match &mut hiding {
        Some(hiding) => writer.push(hiding.batch(&batch)),
        None => writer.push(batch),
    };
    let mut chunk = vec![0; 1 << 20];
    loop {
        match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => decoder.bytes(chunk.get(..length).unwrap_or_default(), &mut push)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(source) => return Err(ImportError::Read { name: args.file.clone(), source }.into()),
        }
    }
    let mut imported = decoder.finish(&mut push)?;
    bar.finish_and_clear();
    let found = known.merged(Snapshot::from_entries(imported.implied_snapshot()));
    let writer = writer.finish()?;
    let meta = match &mut hiding {
        Some(hiding) => writer.finish(hiding.meta(imported.meta()), &hiding.snapshot(found))?,
        None => writer.finish(imported.meta(), &found)?,
    };
    say(path, &meta, &imported.summary);
    if args.json {
        let result = Output { output: output::shown(path), meta: &meta, import: &imported.summary };
        let value = output::envelope("fsage.import/1", &result)?;
        output::print(&document::json_text(&value))?;
    }
    Ok(())
}

/// What came of it, and what the text could not tell.
fn say(path: &Path, meta: &Meta, summary: &Summary) {
    progress::note(&format!(
        "wrote {}: {} of {}, {} it started from",
        output::shown(path),
        show::counted(meta.events, "call", "calls"),
        show::counted(summary.lines, "line", "lines"),
        show::counted(meta.snapshot.entries, "name", "names")
    ));
    record::say_unparsed(summary);
    if let Some(line) = summary.truncated_last_line {
        progress::note(&format!("line {line}, the last, is cut short and was left out"));
    }
    if summary.unread_names > 0 {
        progress::note(&format!(
            "{} paths are addresses in the traced process's memory: which files they name is not known. perf prints \
             names with its BPF program (perf 6.6 and later) or the vfs_getname probe",
            show::count(summary.unread_names)
        ));
    }
    if summary.unstarted_calls > 0 {
        progress::note(&format!(
            "{} calls returned whose beginning is not in the trace; they were left out",
            show::count(summary.unstarted_calls)
        ));
    }
    if meta.lost_events > 0 {
        progress::note(&format!("the tracer lost {}", show::counted(meta.lost_events, "event", "events")));
    }
}

fn spool(args: &Args, path: &Path) -> failure::Result<()> {
    if args.cwd.is_some() || args.snapshot.is_some() {
        return Err(failure::usage("--cwd and --snapshot are for texts: a spool holds both"));
    }
    output::writable_parent(path)?;
    let mut summary = trace::record::import_spool(&args.file, path, args.overwrite)?;
    if args.anonymise {
        summary.meta = anonymise_in_place(path)?;
    }
    record::say(path, &summary);
    if args.json {
        let result = Output { output: output::shown(path), meta: &summary.meta, import: &summary.import };
        let value = output::envelope("fsage.import/1", &result)?;
        output::print(&document::json_text(&value))?;
    }
    Ok(())
}

/// A snapshot as text, or that of a workload profile.
fn snapshot(path: &Path) -> failure::Result<Snapshot> {
    if path.is_dir() {
        return Ok(Reader::open(path)?.snapshot()?);
    }
    text::snapshot::read(BufReader::new(open(path)?)).with_context(|| output::shown(path))
}

fn thesis(args: &Args, path: &Path, input: impl Read) -> failure::Result<()> {
    output::must_be_new(path)?;
    let mut text = String::new();
    input
        .take(1 << 20)
        .read_to_string(&mut text)
        .map_err(|error| failure::bad_input(format!("{}: {error}", output::shown(&args.file))))?;
    let profile = system::thesis::import(&text, &args.file)?;
    profile.save(path)?;
    progress::note(&format!("wrote {}: {} entries", output::shown(path), profile.entries.len()));
    if args.json {
        let value = output::envelope("fsage.import/1", &profile)?;
        output::print(&document::json_text(&value))?;
    }
    Ok(())
}
