//! How many file operations a second the live LFS takes, its cleaner included, on one core, and in how much memory.
//!
//! `lfs [--size-mb N] [--operations N] [--fill PERCENT] [--policy WORDS] [--seed N]`: makes a file system (default 512
//! MB, 8 KB blocks, 1 KB fragments, segments of 1 MB), fills it to a share of its space (default 75 %), and then
//! replaces files at random as ageing does ([`fsage_benchmarks::ageing`]). Sizes are lognormal (median 8 KB, mean about
//! 40 KB). Prints operations and blocks per second of processor time for each round, what the cleaner did, and the peak
//! resident set.

use anyhow::{bail, ensure};
use fsage_benchmarks::ageing::{Ageing, Settings};
use fsage_benchmarks::{CommandLine, on_cpu_s, peak_resident_bytes};
use kernel::{ReadAhead, Transfers};
use lfs::mkfs::MkfsOptions;
use lfs::{Lfs, Options};

const ROUNDS: u64 = 3;

struct Arguments {
    size_bytes: u64,
    operations: u64,
    fill: f64,
    options: Options,
    seed: u64,
}

fn arguments() -> anyhow::Result<Arguments> {
    let (size_bytes, options) = (512 << 20, Options::default());
    let mut found = Arguments { size_bytes, operations: 1_000_000, fill: 0.75, options, seed: 1 };
    let mut args = CommandLine::of_program();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--size-mb" => found.size_bytes = args.number::<u64>()? << 20,
            "--operations" => found.operations = args.number()?,
            "--fill" => found.fill = args.number::<f64>()? / 100.0,
            "--seed" => found.seed = args.number()?,
            "--policy" => {
                for word in args.value()?.split(',') {
                    let known: Vec<String> = Options::words().collect();
                    ensure!(found.options.set(word), "--policy knows {}, not {word}", known.join(", "));
                }
            }
            _ => bail!("usage: lfs [--size-mb N] [--operations N] [--fill PERCENT] [--policy WORDS] [--seed N]"),
        }
    }
    Ok(found)
}

fn settings(arguments: &Arguments) -> Settings<Lfs> {
    Settings {
        mkfs: MkfsOptions::new(arguments.size_bytes),
        options: arguments.options,
        cache_bytes: 16 << 20,
        inodes: 2_000,
        transfers: Transfers { largest_bytes: 65536, read_ahead: ReadAhead::Cluster, cluster_writes: true },
        median_bytes: 8192.0,
        sigma: 1.8,
        largest_bytes: 8 << 20,
        write_bytes: 8 << 20,
        fill: arguments.fill,
        files_per_directory: None,
        seed: arguments.seed,
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = arguments()?;
    let mut ageing = Ageing::new(settings(&arguments))?;
    let g = *ageing.volume().geometry();
    println!(
        "{} MB in {} segments of {} KB, blocks of {}, {}, seed {}",
        arguments.size_bytes >> 20,
        g.nseg,
        g.ssize >> 10,
        g.bsize,
        arguments.options,
        arguments.seed
    );
    let start_s = on_cpu_s();
    ageing.fill()?;
    println!("filled: {} files in {:.2} s", ageing.files(), on_cpu_s() - start_s);
    for round in 1..=ROUNDS {
        let (start_s, blocks) = (on_cpu_s(), ageing.blocks);
        let before = ageing.volume().counters().clone();
        for _ in 0..arguments.operations / ROUNDS {
            ageing.step();
        }
        let s = on_cpu_s() - start_s;
        let counters = ageing.volume().counters();
        let cleaner = &counters.cleaner;
        let segments = cleaner.segments - before.cleaner.segments;
        println!(
            "round {round}: {:.0} operations/s, {:.0} blocks written/s, {} files, {:.1} % used, {segments} segments \
             cleaned at {:.2} of them live, {} stalls, write cost so far {:.2}, peak {:.1} MB",
            (arguments.operations / ROUNDS) as f64 / s,
            (ageing.blocks - blocks) as f64 / s,
            ageing.files(),
            100.0 * ageing.used_share(),
            (cleaner.utilisation_sum - before.cleaner.utilisation_sum) / segments.max(1) as f64,
            cleaner.stalls - before.cleaner.stalls,
            counters.write_cost(),
            peak_resident_bytes() as f64 / 1e6,
        );
    }
    ageing.check()
}
