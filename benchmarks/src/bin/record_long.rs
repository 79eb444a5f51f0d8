//! A long recording: so many generated lines of strace's go through capture, spool and analysis as those of a real
//! tracer do, and memory stays bounded. `record_long DIRECTORY [--calls N] [--keep]`: default 5 million calls; 24 hours
//! of a busy service are some 500 million.
//!
//! The tracer is the only part that is not real: it emits lines as fast as they are taken. Prints the calls, wall-clock
//! time until all were stored and until the profile was written, processor time of the whole process, its peak resident
//! set, and bytes per call of the spool and of the profile. Both go into DIRECTORY and are removed (`--keep` keeps the
//! profile).
//!
//! The mix: eight threads, each opening one of 10,000 files at a time, looking at it, reading it in parts, now and then
//! writing it anew under another name and renaming that over it, and looking for files that are not there.

use anyhow::{Context, bail};
use fsage_benchmarks::{CommandLine, peak_resident_bytes};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use trace::analysis::Decode;
use trace::profile::Tracer as Description;
use trace::record::{Drained, Ending, RecordError, RecordOptions, Target, Tracer, Tracing, record_with};
use trace::spool::Notation;
use trace::strace::{ImportOptions, Importer};

const THREADS: u64 = 8;
const FILES: u64 = 10_000;
/// As much as a pipe hands over at a time.
const CHUNK_BYTES: usize = 1 << 20;

fn main() -> anyhow::Result<()> {
    let (mut calls, mut keep, mut directory) = (5_000_000u64, false, None);
    let mut args = CommandLine::of_program();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--calls" => calls = args.number()?,
            "--keep" => keep = true,
            flag if flag.starts_with('-') => bail!("usage: record_long DIRECTORY [--calls N] [--keep]"),
            path => directory = Some(PathBuf::from(path)),
        }
    }
    let directory = directory.context("usage: record_long DIRECTORY [--calls N] [--keep]")?;
    let output = directory.join(format!("long-{}.workload", std::process::id()));
    let mut options = RecordOptions::command(vec!["true".into()], output.clone());
    options.snapshot_working_directory = false;
    let stored = Arc::new(Mutex::new(Stored::default()));
    let spool = output.with_extension("spool");
    let mut tracer = Generated { calls, spool, begun: Instant::now(), stored: Arc::clone(&stored) };
    let begun = Instant::now();
    let recording = record_with(&options, &mut tracer)?;
    let summary = recording.profile?;
    let wall = begun.elapsed();
    let profile_bytes = bytes_in(&output)?;
    if !keep {
        std::fs::remove_dir_all(&output)?;
    }
    let stored = stored.lock().map_err(|_| anyhow::anyhow!("the tracer broke off"))?;
    let per_call = |bytes: u64| bytes as f64 / summary.import.calls.max(1) as f64;
    let per_second = |time: Duration| summary.import.calls as f64 / time.as_secs_f64() / 1e6;
    println!(
        "calls: {} of {} lines, {} events, {} lost",
        summary.import.calls, summary.import.lines, summary.meta.events, summary.meta.lost_events
    );
    println!(
        "stored after {:.1} s: {:.2} million calls a second",
        stored.after.as_secs_f64(),
        per_second(stored.after)
    );
    println!("profile after {:.1} s: {:.2} million calls a second", wall.as_secs_f64(), per_second(wall));
    println!("peak resident set: {:.0} MB", peak_resident_bytes() as f64 / 1e6);
    println!(
        "bytes per call: {:.1} of text, {:.2} of spool, {:.2} of profile",
        per_call(summary.import.bytes),
        per_call(stored.spool_bytes),
        per_call(profile_bytes)
    );
    Ok(())
}

fn bytes_in(directory: &Path) -> anyhow::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(directory)? {
        sum += entry?.metadata()?.len();
    }
    Ok(sum)
}

#[derive(Default)]
struct Stored {
    after: Duration,
    spool_bytes: u64,
}

/// A tracer that makes its lines up.
struct Generated {
    calls: u64,
    spool: PathBuf,
    begun: Instant,
    stored: Arc<Mutex<Stored>>,
}

impl Tracer for Generated {
    fn notation(&self) -> Notation {
        Notation::Strace
    }
    fn describe(&self) -> Description {
        Description { name: "generated".into(), ..Description::default() }
    }
    fn clock(&self) -> String {
        "generated".into()
    }
    fn check(&self, _: &Target) -> Result<(), RecordError> {
        Ok(())
    }
    fn start(&mut self, _: &Target) -> Result<Box<dyn Tracing>, RecordError> {
        Ok(Box::new(Generating {
            left: self.calls,
            at_ns: 0,
            state: 1,
            unit: 0,
            lines: Vec::with_capacity(CHUNK_BYTES + 4096),
            spool: self.spool.clone(),
            begun: self.begun,
            stored: Arc::clone(&self.stored),
        }))
    }
    fn counter(&self) -> fn(&[u8]) -> u64 {
        |lines| lines.iter().filter(|&&b| b == b'\n').count() as u64
    }
    fn decoder(&self, options: ImportOptions) -> Box<dyn Decode> {
        Box::new(Importer::new(options))
    }
}

struct Generating {
    left: u64,
    at_ns: u64,
    state: u64,
    unit: u64,
    lines: Vec<u8>,
    spool: PathBuf,
    begun: Instant,
    stored: Arc<Mutex<Stored>>,
}

impl Generating {
    /// xorshift64: speed matters here, and nothing else.
    fn pick(&mut self, n: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % n
    }

    fn call(&mut self, tid: u64, call: std::fmt::Arguments<'_>) {
        self.at_ns += 1_500 + self.state % 4_000;
        let (seconds, ns) = (1_700_000_000 + self.at_ns / 1_000_000_000, self.at_ns % 1_000_000_000);
        let took = 400 + self.state % 9_000;
        // Writing to memory cannot fail.
        let _ = writeln!(self.lines, "{tid} {seconds}.{ns:09} {call} <0.{took:09}>");
        self.left = self.left.saturating_sub(1);
    }

    /// What a thread does with one file.
    fn file(&mut self) {
        let tid = 4000 + self.unit % THREADS;
        let fd = 10 + self.unit % THREADS;
        self.unit += 1;
        let file = self.pick(FILES);
        let path = format!("/srv/data/d{:02}/object{file:05}.dat", file % 100);
        if self.pick(3) == 0 {
            let missing = self.pick(FILES);
            self.call(
                tid,
                format_args!(
                    "newfstatat(AT_FDCWD</srv>, \"/srv/cache/{missing}\", 0x7ffe10, 0) = -1 ENOENT \
                (No such file or directory)"
                ),
            );
        }
        self.call(tid, format_args!("openat(AT_FDCWD</srv>, \"{path}\", O_RDONLY|O_CLOEXEC) = {fd}<{path}>"));
        self.call(tid, format_args!("fstat({fd}<{path}>, {{st_mode=S_IFREG|0644, st_size=24576, ...}}) = 0"));
        for part in 0..3u64 {
            let offset = part * 8192;
            self.call(tid, format_args!("pread64({fd}<{path}>, \"\"..., 8192, {offset}) = 8192"));
        }
        self.call(tid, format_args!("close({fd}<{path}>) = 0"));
        if self.pick(8) == 0 {
            let new = format!("{path}.new");
            self.call(
                tid,
                format_args!(
                    "openat(AT_FDCWD</srv>, \"{new}\", O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0644) = {fd}<{new}>"
                ),
            );
            for _ in 0..3 {
                self.call(tid, format_args!("write({fd}<{new}>, \"\"..., 8192) = 8192"));
            }
            self.call(tid, format_args!("fdatasync({fd}<{new}>) = 0"));
            self.call(tid, format_args!("close({fd}<{new}>) = 0"));
            self.call(tid, format_args!("rename(\"{new}\", \"{path}\") = 0"));
        }
    }
}

impl Tracing for Generating {
    fn drain(&mut self, _: Duration, take: &mut dyn FnMut(&[u8])) -> std::io::Result<Drained> {
        self.lines.clear();
        while self.left > 0 && self.lines.len() < CHUNK_BYTES {
            self.file();
        }
        if !self.lines.is_empty() {
            take(&self.lines);
        }
        Ok(if self.left == 0 { Drained::Ended } else { Drained::Open })
    }

    fn stop(&mut self) {
        self.left = 0;
    }

    /// Everything is stored now.
    fn end(self: Box<Self>) -> Ending {
        if let Ok(mut stored) = self.stored.lock() {
            stored.after = self.begun.elapsed();
            stored.spool_bytes = std::fs::metadata(&self.spool).map_or(0, |meta| meta.len());
        }
        Ending::default()
    }
}
