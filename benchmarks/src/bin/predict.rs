//! How many calls a second the prediction pipeline takes, reading the profile included, on one core.
//!
//! `predict [--calls N] [--write DIR | WORKLOAD [SYSTEM]]`: without a workload a seeded compile-like trace is generated
//! and written as a workload profile first; with `--write`, into a new directory that stays, and that is all. Without a
//! system profile one with an entry for every class is made up: prices do not matter here. Prints calls per second of
//! processor time, calls per second of the clock for one system and for [`SYSTEMS`] that share no simulation, and the
//! peak resident set.

use anyhow::bail;
use fsage_benchmarks::{CommandLine, all_on_cpu_s, peak_resident_bytes, synthetic};
use predict::pipeline::{PredictOptions, predict};
use std::path::PathBuf;
use std::time::Instant;
use system::vector::{Class, entry_name};
use system::{Entry, SystemProfile};
use trace::profile::Reader;

const SEED: u64 = 1;
const ROUNDS: usize = 3;
/// Candidates that are predicted at once.
const SYSTEMS: usize = 4;

fn main() -> anyhow::Result<()> {
    let mut calls = 4_000_000u64;
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut write = None;
    let mut args = CommandLine::of_program();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--calls" => calls = args.number()?,
            "--write" => write = Some(PathBuf::from(args.value()?)),
            flag if flag.starts_with('-') => bail!("usage: predict [--calls N] [--write DIR | WORKLOAD [SYSTEM]]"),
            path => paths.push(path.into()),
        }
    }
    if let Some(directory) = write {
        return Ok(synthetic::compile_like(&directory, calls, SEED)?);
    }
    let scratch = tempfile::tempdir()?;
    let workload = match paths.first() {
        Some(path) => path.clone(),
        None => {
            let path = scratch.path().join("synthetic.workload");
            synthetic::compile_like(&path, calls, SEED)?;
            path
        }
    };
    let system = match paths.get(1) {
        Some(path) => SystemProfile::load(path)?,
        None => made_up(),
    };
    let candidates: Vec<SystemProfile> = (0..SYSTEMS as u64).map(|n| with_cache(&system, n)).collect();
    let before = peak_resident_bytes();
    for round in 1..=ROUNDS {
        let start_s = all_on_cpu_s();
        let reader = Reader::open(&workload)?;
        let mut reading = reader.batches()?;
        let mut batch = trace::Batch::default();
        let mut events = 0;
        while reading.next_into(&mut batch)? {
            events += batch.events.len();
        }
        let read_s = all_on_cpu_s() - start_s;
        let options = PredictOptions { min_coverage: 0.0, ..PredictOptions::default() };
        let (start_s, clock) = (all_on_cpu_s(), Instant::now());
        let reader = Reader::open(&workload)?;
        let prediction = predict(&reader, std::slice::from_ref(&system), &options)?;
        let (all_s, one_s) = (all_on_cpu_s() - start_s, clock.elapsed().as_secs_f64());
        let clock = Instant::now();
        predict(&Reader::open(&workload)?, &candidates, &options)?;
        let many_s = clock.elapsed().as_secs_f64();
        let millions = events as f64 / 1e6;
        let surprises = prediction.coverage.surprises;
        println!(
            "round {round}: {events} calls, {surprises} surprises: {:.2} M calls/s in all; reading alone {:.2} M \
             calls/s; the stages alone {:.2} M calls/s; by the clock {:.2} M calls/s, {:.2} M for {SYSTEMS} systems",
            millions / all_s,
            millions / read_s,
            millions / (all_s - read_s).max(1e-9),
            millions / one_s,
            millions * SYSTEMS as f64 / many_s,
        );
    }
    println!(
        "peak resident set {:.1} MB ({:.1} MB before the first prediction)",
        peak_resident_bytes() as f64 / 1e6,
        before as f64 / 1e6
    );
    Ok(())
}

/// A system that differs in the size of its cache.
fn with_cache(system: &SystemProfile, n: u64) -> SystemProfile {
    let mut system = system.clone();
    system.parameters.data_cache_bytes += n << 20;
    system
}

/// A system with every entry, each call 1 us and each byte 0.1 ns.
fn made_up() -> SystemProfile {
    let mut system = SystemProfile { name: "made up".into(), ..SystemProfile::default() };
    for &class in Class::ALL {
        let points = if class.is_curve() { class.points() } else { &[0] };
        for &at in points {
            system.entries.insert(entry_name(class, at), Entry::exactly(1000.0 + at as f64 * 0.1));
        }
    }
    let parameters = &mut system.parameters;
    parameters.data_cache_bytes = 4 << 30;
    parameters.data_cache_is_lower_bound = false;
    parameters.dirty_background_bytes = 400 << 20;
    parameters.dirty_limit_bytes = 800 << 20;
    parameters.writeback_bytes_per_s = 500e6;
    parameters.writeback_files_per_s = 20e3;
    system
}
