//! What a map adds to a survey: the same tree surveyed without and with one, in turns, from warm caches.
//!
//! `map [--rounds N] [--side N] DIRECTORY`: prints the processor time of both (the system's part included) and their
//! ratio.

use anyhow::{Context, bail};
use fsage_benchmarks::{CommandLine, on_cpu_s};
use layout::{MapOrder, SurveyOptions};
use stats::median;
use std::path::{Path, PathBuf};

fn main() -> anyhow::Result<()> {
    let (mut rounds, mut side) = (11usize, 128u32);
    let mut target: Option<PathBuf> = None;
    let mut args = CommandLine::of_program();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rounds" => rounds = args.number()?,
            "--side" => side = args.number()?,
            flag if flag.starts_with('-') => bail!("usage: map [--rounds N] [--side N] DIRECTORY"),
            path => target = Some(path.into()),
        }
    }
    let target = target.context("usage: map [--rounds N] [--side N] DIRECTORY")?;
    let order = MapOrder::of_side(side).context("--side: a power of two up to 1024")?;
    // The first survey writes back what is dirty and fills the caches.
    let (files, _) = timed(&target, None)?;
    let (mut plain, mut mapped) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        plain.push(timed(&target, None)?.1);
        mapped.push(timed(&target, Some(order))?.1);
    }
    let (plain, mapped) = (median(&plain).unwrap_or(0.0), median(&mapped).unwrap_or(0.0));
    println!(
        "{files} files, {rounds} rounds: {:.1} ms without, {:.1} ms with a map of {side} x {side}: ratio {:.3}",
        plain * 1e3,
        mapped * 1e3,
        mapped / plain
    );
    Ok(())
}

/// Files, and processor time in seconds.
fn timed(target: &Path, map: Option<MapOrder>) -> anyhow::Result<(u64, f64)> {
    let start_s = on_cpu_s();
    let survey = layout::survey(target, &SurveyOptions { map, ..SurveyOptions::default() }, &mut |_| true)?;
    Ok((survey.walked.files, on_cpu_s() - start_s))
}
