//! How many lines of strace's text a second are imported, Parquet included, on one core.
//!
//! `import [--lines N] [--no-profile] [TRACE]`: without a trace, a recorded run of ordinary tools is repeated with its
//! times and process numbers shifted until it has N lines (default 4 million). `--no-profile` leaves the Parquet out.
//! Prints lines and megabytes per second of processor time, and the peak resident set.

use anyhow::{Context, bail};
use fsage_benchmarks::{CommandLine, on_cpu_s, peak_resident_bytes};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use trace::profile::WriterOptions;
use trace::strace::{ImportOptions, Importer, Summary, import_file};

const RECORDED: &str = include_str!("../../../crates/trace/tests/data/tools.strace");
const ROUNDS: usize = 3;

fn main() -> anyhow::Result<()> {
    let mut lines = 4_000_000u64;
    let mut with_profile = true;
    let mut given: Option<PathBuf> = None;
    let mut args = CommandLine::of_program();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--lines" => lines = args.number()?,
            "--no-profile" => with_profile = false,
            flag if flag.starts_with('-') => bail!("usage: import [--lines N] [--no-profile] [TRACE]"),
            path => given = Some(path.into()),
        }
    }
    let scratch = tempfile::tempdir()?;
    let trace = match given {
        Some(path) => path,
        None => {
            let path = scratch.path().join("repeated.strace");
            repeat(&path, lines)?;
            path
        }
    };
    for round in 1..=ROUNDS {
        let start_s = on_cpu_s();
        let summary = if with_profile {
            let output = scratch.path().join(format!("round-{round}.workload"));
            import_file(&trace, &output, ImportOptions::default(), WriterOptions::default())?.summary
        } else {
            parse(&trace)?
        };
        let s = on_cpu_s() - start_s;
        println!(
            "round {round}: {} lines, {} events, {} not understood: {:.0} lines/s, {:.1} MB/s, peak {:.1} MB",
            summary.lines,
            summary.events,
            summary.unparsed_lines,
            summary.lines as f64 / s,
            summary.bytes as f64 / 1e6 / s,
            peak_resident_bytes() as f64 / 1e6,
        );
    }
    Ok(())
}

fn parse(trace: &Path) -> anyhow::Result<Summary> {
    let mut importer = Importer::new(ImportOptions::default());
    importer.read(BufReader::with_capacity(1 << 20, File::open(trace)?), &mut |_| Ok(()))?;
    Ok(importer.finish(&mut |_| Ok(()))?.summary)
}

/// Writes the recorded trace over and over, each time later and with other process numbers.
fn repeat(path: &Path, lines: u64) -> anyhow::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut written = 0;
    let mut turn = 0u64;
    while written < lines {
        for line in RECORDED.lines() {
            let (pid, rest) = line.split_once(' ').context("a process number")?;
            let (seconds, rest) = rest.trim_start().split_once('.').context("a time stamp")?;
            let pid = pid.parse::<u64>()? + turn * 1000;
            let seconds = seconds.parse::<u64>()? + turn;
            // The child's number, where a fork returns.
            let forks = rest.contains("fork") || rest.contains("clone");
            match rest.rsplit_once(") = ").filter(|_| forks) {
                Some((call, result)) => {
                    let (child, rest) = result.split_once(' ').unwrap_or((result, ""));
                    let child = child.parse::<u64>().map_or(child.to_owned(), |n| (n + turn * 1000).to_string());
                    writeln!(out, "{pid} {seconds}.{call}) = {child} {rest}")?;
                }
                None => writeln!(out, "{pid} {seconds}.{rest}")?,
            }
            written += 1;
        }
        turn += 1;
    }
    out.flush()?;
    Ok(())
}
