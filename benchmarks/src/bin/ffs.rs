//! How many file operations a second the live FFS takes, on one core, and in how much memory.
//!
//! `ffs [--size-mb N] [--operations N] [--policy WORDS] [--modes WORDS] [--seed N]`: makes a file system (default 502
//! MB, 8 KB blocks, 1 KB fragments, clusters of 7 blocks, as in Smith and Seltzer, USENIX 1996), fills it to three
//! quarters, and then replaces files at random as ageing does ([`fsage_benchmarks::ageing`]). Sizes are lognormal
//! (median 8 KB, mean about 40 KB), one directory for each group. With `--modes noorder,softdep,journal=async` once for
//! each mode of integrity, with its rate over the first one's; the peak is then that of all so far. Prints operations
//! and blocks per second of processor time for each round, the aggregate layout score, and the peak resident set.

use anyhow::{bail, ensure};
use ffs::Version;
use ffs::mkfs::MkfsOptions;
use ffs::policy::Options;
use fsage_benchmarks::ageing::{Ageing, Settings};
use fsage_benchmarks::{CommandLine, on_cpu_s, peak_resident_bytes};
use kernel::{ReadAhead, Transfers};

const ROUNDS: u64 = 3;

struct Arguments {
    size_bytes: u64,
    operations: u64,
    options: Options,
    /// Modes of integrity that are run one after another; none: that of `options`.
    modes: Vec<String>,
    seed: u64,
}

fn arguments() -> anyhow::Result<Arguments> {
    let options = Options::default();
    let mut found = Arguments { size_bytes: 502 << 20, operations: 1_000_000, options, modes: Vec::new(), seed: 1 };
    found.options.set("noorder");
    let mut args = CommandLine::of_program();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--size-mb" => found.size_bytes = args.number::<u64>()? << 20,
            "--operations" => found.operations = args.number()?,
            "--seed" => found.seed = args.number()?,
            "--modes" => found.modes = args.value()?.split(',').map(str::to_owned).collect(),
            "--policy" => {
                for word in args.value()?.split(',') {
                    let known: Vec<&str> = Options::words().collect();
                    ensure!(found.options.set(word), "--policy knows {}, not {word}", known.join(", "));
                }
            }
            _ => bail!("usage: ffs [--size-mb N] [--operations N] [--policy WORDS] [--modes WORDS] [--seed N]"),
        }
    }
    Ok(found)
}

fn settings(arguments: &Arguments) -> Settings {
    Settings {
        mkfs: MkfsOptions {
            maxcontig: Some(7),
            minfree: 5,
            density: Some(8192),
            ..MkfsOptions::new(Version::Ufs1, arguments.size_bytes)
        },
        options: arguments.options,
        cache_bytes: 16 << 20,
        inodes: 2_000,
        transfers: Transfers { largest_bytes: 7 * 8192, read_ahead: ReadAhead::Cluster, cluster_writes: true },
        median_bytes: 8192.0,
        sigma: 1.8,
        largest_bytes: 8 << 20,
        write_bytes: 8 << 20,
        fill: 0.75,
        files_per_directory: None,
        seed: arguments.seed,
    }
}

fn main() -> anyhow::Result<()> {
    let mut arguments = arguments()?;
    let modes = std::mem::take(&mut arguments.modes);
    if modes.is_empty() {
        return run(&arguments).map(drop);
    }
    let mut first = None;
    for mode in modes {
        ensure!(arguments.options.set(&mode), "--modes: there is no mode {mode}");
        let rate = run(&arguments)?;
        let base = *first.get_or_insert(rate);
        println!("{mode}: {rate:.0} operations/s over all rounds, {:.2} of the first mode's", rate / base);
    }
    Ok(())
}

/// Operations a second over all rounds.
fn run(arguments: &Arguments) -> anyhow::Result<f64> {
    let mut ageing = Ageing::new(settings(arguments))?;
    let g = *ageing.volume().geometry();
    println!(
        "{} MB in {} groups, blocks of {}, {}, seed {}",
        arguments.size_bytes >> 20,
        g.ncg,
        g.bsize,
        arguments.options,
        arguments.seed
    );
    let start_s = on_cpu_s();
    ageing.fill()?;
    println!(
        "filled: {} files in {:.2} s, layout score {:.3}",
        ageing.files(),
        on_cpu_s() - start_s,
        ageing.layout_score(usize::MAX)
    );
    let mut all_s = 0.0;
    for round in 1..=ROUNDS {
        let (start_s, blocks) = (on_cpu_s(), ageing.blocks);
        for _ in 0..arguments.operations / ROUNDS {
            ageing.step();
        }
        let s = on_cpu_s() - start_s;
        all_s += s;
        println!(
            "round {round}: {:.0} operations/s, {:.0} blocks written/s, {} files, {:.1} % used, layout score {:.3}, \
             peak {:.1} MB",
            (arguments.operations / ROUNDS) as f64 / s,
            (ageing.blocks - blocks) as f64 / s,
            ageing.files(),
            100.0 * ageing.used_share(),
            ageing.layout_score(usize::MAX),
            peak_resident_bytes() as f64 / 1e6,
        );
    }
    ageing.check()?;
    Ok((arguments.operations / ROUNDS * ROUNDS) as f64 / all_s)
}
