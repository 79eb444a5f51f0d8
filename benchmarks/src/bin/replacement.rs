//! How many accesses a second each replacement policy of the data cache takes, and libCacheSim's of the same name, in
//! one run.
//!
//! `replacement [--accesses N] [--rounds N] [--only POLICY]`: both read the same file of 24-byte records (libCacheSim's
//! "oracleGeneral"), Zipf's law with exponent 1 over 100,000 and over a million pages of a file, and cache a tenth of
//! them. Ours looks pages up by file and number and keeps what else the prediction needs of them (dirty pages,
//! distances). Rounds are interleaved; a line gives the medians, each in accesses per second of processor time, reading
//! included, their ratio, and both counts of misses, which must be the same.
//!
//! libCacheSim is a module of the python3 that FSAGE_PYTHON names or that is found on the path
//! (`pip install libcachesim`).

use anyhow::{Context, bail, ensure};
use fsage_benchmarks::{CommandLine, on_cpu_s};
use predict::pipeline::CachePolicy;
use predict::pipeline::annotated::NodeId;
use predict::pipeline::pages::{DataCache, PAGE_BYTES};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use stats::median;
use stats::random::{shuffle, unit};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const SEED: u64 = 1;
const RECORD_BYTES: usize = 24;

/// Answers "CLASS LIMIT" with seconds of processor time and misses. Tables of 2^20 slots are the faster ones here; the
/// module's own choice is 2^24.
const THEIRS: &str = "
import sys, time, libcachesim
for line in sys.stdin:
    policy, limit = line.split()
    reader = libcachesim.TraceReader(sys.argv[1], libcachesim.TraceType.ORACLE_GENERAL_TRACE)
    cache = getattr(libcachesim, policy)(int(limit), hashpower=20)
    start = time.process_time()
    misses = cache.process_trace(reader)[0]
    print(time.process_time() - start, round(misses * int(sys.argv[2])), flush=True)
";

fn theirs_of(policy: CachePolicy) -> Option<&'static str> {
    match policy {
        CachePolicy::Lru => Some("LRU"),
        CachePolicy::Clock => Some("Clock"),
        CachePolicy::Sieve => Some("Sieve"),
        CachePolicy::S3Fifo => Some("S3FIFO"),
        CachePolicy::Arc => Some("ARC"),
        CachePolicy::Linux => None,
    }
}

fn main() -> anyhow::Result<()> {
    let (mut accesses, mut rounds, mut only) = (10_000_000u64, 3usize, None);
    let mut args = CommandLine::of_program();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--accesses" => accesses = args.number()?,
            "--rounds" => rounds = args.number()?,
            "--only" => only = Some(args.value()?),
            _ => bail!("usage: replacement [--accesses N] [--rounds N] [--only POLICY]"),
        }
    }
    let policies = CachePolicy::ALL.into_iter().filter(|p| only.as_ref().is_none_or(|o| o == p.name()));
    let policies: Vec<CachePolicy> = policies.collect();
    let scratch = tempfile::tempdir()?;
    let path = scratch.path().join("zipf.oracleGeneral");
    for pages in [100_000, 1_000_000] {
        zipf(&path, accesses, pages)?;
        let limit = pages / 10;
        println!("{accesses} accesses to {pages} pages, {limit} of them cached");
        let mut theirs = Theirs::start(&path, accesses)?;
        let mut results = vec![(Vec::new(), Vec::new()); policies.len()];
        for _ in 0..rounds {
            for (&policy, (ours_s, theirs_s)) in policies.iter().zip(&mut results) {
                ours_s.push(ours(&path, policy, limit)?);
                if let Some(class) = theirs_of(policy) {
                    theirs_s.push(theirs.run(class, limit)?);
                }
            }
        }
        theirs.end()?;
        for (policy, (ours, theirs)) in policies.iter().zip(results) {
            let rate = |runs: &[(f64, u64)]| {
                accesses as f64 / median(&runs.iter().map(|run| run.0).collect::<Vec<f64>>()).unwrap_or(0.0) / 1e6
            };
            let misses = |runs: &[(f64, u64)]| runs.first().map(|run| run.1);
            print!("{:8} ours {:6.2} M/s", policy.name(), rate(&ours));
            if theirs.is_empty() {
                println!(", {} misses; libCacheSim has none", misses(&ours).unwrap_or(0));
                continue;
            }
            ensure!(misses(&ours) == misses(&theirs), "{policy:?}: {:?} and {:?} misses", ours, theirs);
            let (ours_rate, theirs_rate) = (rate(&ours), rate(&theirs));
            println!(
                ", libCacheSim {theirs_rate:6.2} M/s: {:5.2} times; {} misses, both",
                ours_rate / theirs_rate,
                misses(&ours).unwrap_or(0)
            );
        }
    }
    Ok(())
}

/// Records of time, object, size and next access (unknown), little endian and packed.
fn zipf(path: &Path, accesses: u64, pages: u64) -> anyhow::Result<()> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    // Which page has which rank: a shuffle, so that neighbours are not alike.
    let mut page_of: Vec<u64> = (0..pages).collect();
    shuffle(&mut rng, &mut page_of);
    let mut sums: Vec<f64> = (1..=pages).map(|rank| 1.0 / rank as f64).collect();
    let total = sums.iter_mut().fold(0.0, |sum, share| {
        *share += sum;
        *share
    });
    let mut out = BufWriter::new(File::create(path)?);
    for second in 0..accesses {
        let u = unit(&mut rng) * total;
        let rank = sums.partition_point(|&sum| sum < u).min(page_of.len() - 1);
        out.write_all(&((second / 1_000_000) as u32).to_le_bytes())?;
        out.write_all(&page_of[rank].to_le_bytes())?;
        out.write_all(&1u32.to_le_bytes())?;
        out.write_all(&(-2i64).to_le_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// Seconds and misses of ours.
fn ours(path: &Path, policy: CachePolicy, limit: u64) -> anyhow::Result<(f64, u64)> {
    let start_s = on_cpu_s();
    let mut cache = DataCache::with_policy(Some(limit * PAGE_BYTES), 1, policy);
    let mut file = File::open(path)?;
    let mut buffer = vec![0u8; RECORD_BYTES << 14];
    let mut misses = 0;
    loop {
        // The file is whole records, and an ordinary file gives all that it has.
        let got = file.read(&mut buffer)?;
        if got == 0 {
            break;
        }
        ensure!(got % RECORD_BYTES == 0, "a read ended inside of a record");
        for record in buffer[..got].chunks_exact(RECORD_BYTES) {
            let page = u64::from_le_bytes(record[4..12].try_into()?);
            misses += cache.touch(NodeId(0), page, 1, false).misses;
        }
    }
    Ok((on_cpu_s() - start_s, misses))
}

/// The process that simulates with libCacheSim.
struct Theirs {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Theirs {
    fn start(path: &Path, accesses: u64) -> anyhow::Result<Theirs> {
        let python = std::env::var("FSAGE_PYTHON").unwrap_or_else(|_| "python3".into());
        let mut child = Command::new(&python)
            .args(["-c", THEIRS])
            .arg(path)
            .arg(accesses.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| python.clone())?;
        let questions = child.stdin.take().context("its input")?;
        let answers = BufReader::new(child.stdout.take().context("its output")?);
        Ok(Theirs { child, questions, answers })
    }

    fn run(&mut self, class: &str, limit: u64) -> anyhow::Result<(f64, u64)> {
        writeln!(self.questions, "{class} {limit}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let (seconds, misses) = line.trim().split_once(' ').context("no answer: has this python3 libcachesim?")?;
        Ok((seconds.parse()?, misses.parse()?))
    }

    fn end(self) -> anyhow::Result<()> {
        let Theirs { mut child, questions, .. } = self;
        drop(questions);
        ensure!(child.wait()?.success(), "libCacheSim's process failed");
        Ok(())
    }
}
