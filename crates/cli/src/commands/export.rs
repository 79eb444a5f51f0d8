//! `fsage export FILE`.

use crate::failure::Context as _;
use crate::{failure, output, progress};
use clap::ValueEnum;
use posix::output::Output;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use system::SystemProfile;
use trace::anonymise::anonymise;
use trace::fio;
use trace::profile::{Reader, WriterOptions};
use units::show;

/// Write a profile in a text format that other tools read, or without its names.
///
/// fio's logs name files without directories: run fio in an empty directory, after the script that the format fio-files
/// gives has made there what the log only reads.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage export build.workload > build.csv
  fsage export db.workload --anonymise -o for-others.workload
  fsage export db.workload --format fio -o db.iolog
  fsage export db.workload --format fio-files -o db.sh
  mkdir run && cd run && sh ../db.sh && fio --name=db --read_iolog=../db.iolog")]
pub struct Args {
    /// A workload profile (directory) or a system profile (file).
    file: PathBuf,
    /// The format (default: csv for a workload profile, thesis for a system profile).
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Where it goes (default: standard output).
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a workload profile again with every name hidden: of files, of links' targets, of command, host and
    /// devices. Its structure and the names' lengths stay, equal names stay equal; the key is random and not kept.
    #[arg(long, conflicts_with = "format", requires = "output")]
    anonymise: bool,
}

/// Text formats; docs/formats.md describes them.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// A workload's calls as comma-separated values.
    Csv,
    /// A workload's names in the thesis's snapshot text.
    Snapshot,
    /// A workload's reads, writes and syncs as fio's log, version 3.
    Fio,
    /// The same as version 2, without time.
    FioV2,
    /// A shell script that makes the files that the log reads.
    FioFiles,
    /// A system profile in the thesis's text of names and values.
    Thesis,
}

/// Exports.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    if let (true, Some(path)) = (args.anonymise, &args.output) {
        output::must_be_new(path)?;
        let meta = anonymise(&Reader::open(&args.file)?, path, WriterOptions::default())?;
        progress::note(&format!("wrote {}: {} calls without names", output::shown(path), show::count(meta.events)));
        return Ok(ExitCode::SUCCESS);
    }
    let is_workload = args.file.is_dir();
    let format = args.format.unwrap_or(if is_workload { Format::Csv } else { Format::Thesis });
    if is_workload == (format == Format::Thesis) {
        let is = if is_workload {
            "a workload profile: csv, snapshot or one of fio's"
        } else {
            "not a directory, so no workload profile"
        };
        return Err(failure::usage(format!("{}: is {is}", output::shown(&args.file))));
    }
    match &args.output {
        Some(path) => {
            output::must_be_new(path)?;
            // Half an export is worse than none.
            let cannot = |error| failure::environment(format!("cannot write {}: {error}", output::shown(path)));
            let (whole, file) = Output::create(path, 0o666).map_err(cannot)?;
            write(&args.file, format, &mut BufWriter::new(file)).with_context(|| output::shown(path))?;
            whole.finish().map_err(cannot)?;
        }
        None => broken_pipe_is_fine(write(&args.file, format, &mut BufWriter::new(io::stdout().lock())))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn write(file: &Path, format: Format, out: &mut dyn Write) -> failure::Result<()> {
    match format {
        Format::Csv => trace::text::trace::write_csv(&Reader::open(file)?, &mut *out)?,
        Format::Snapshot => trace::text::snapshot::write(&Reader::open(file)?.snapshot()?, &mut *out)?,
        Format::Fio => said(&fio::write(&Reader::open(file)?, fio::Version::V3, &mut *out)?),
        Format::FioV2 => said(&fio::write(&Reader::open(file)?, fio::Version::V2, &mut *out)?),
        Format::FioFiles => {
            for (name, bytes) in fio::files_needed(&Reader::open(file)?)? {
                // Names of the log hold nothing that a shell minds.
                out.write_all(format!("head -c {bytes} /dev/urandom > ").as_bytes())?;
                out.write_all(&name)?;
                out.write_all(b"\n")?;
            }
        }
        Format::Thesis => out.write_all(system::thesis::export(&SystemProfile::load(file)?).as_bytes())?,
    }
    Ok(out.flush()?)
}

/// What a log of fio's cannot say.
fn said(exported: &fio::Exported) {
    progress::note(&format!(
        "{} files, {} reads, {} writes, {} syncs; {} calls have no place in fio's log",
        show::count(exported.files),
        show::count(exported.reads),
        show::count(exported.writes),
        show::count(exported.syncs + exported.datasyncs),
        show::count(exported.left_out_calls())
    ));
    for left in &exported.left_out {
        progress::note(&format!("  {} {}: {}", show::count(left.calls), left.op, left.reason));
    }
}

/// A reader that went away (`| head`) has all it wanted.
fn broken_pipe_is_fine(result: failure::Result<()>) -> failure::Result<()> {
    match result {
        Err(error)
            if error
                .causes()
                .filter_map(|c| c.downcast_ref::<io::Error>())
                .any(|e| e.kind() == io::ErrorKind::BrokenPipe) =>
        {
            Ok(())
        }
        other => other,
    }
}
