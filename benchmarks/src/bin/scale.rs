//! Whether a large file system ages as fast as a small one, and in bounded memory.
//!
//! `scale [--size-gb N] [--operations N] [--policy WORDS] [--block N] [--fragment N] [--median N] [--sigma X] [--seed
//! N] [--check] [--image
//! FILE]`: makes a file system (default 1 TB = 1024 GB, UFS2 with blocks of 32 KB and fragments of 4 KB, which newfs
//! has made since FreeBSD 9), and ages it: creating a file with its content, removing one and writing one anew are one
//! operation each ([`fsage_benchmarks::ageing`]). More is created than removed until three quarters of the space are in
//! use, then as much. Sizes are lognormal with a median of 4 KB and a mean of about 189 KB, the mean of 2004 in Agrawal
//! et al., "A Five-Year Study of File-System Metadata" (FAST 2007, section 1); one directory for each 64 files,
//! anywhere in the tree. Files are written by calls of at most 1 MB; 64 MB of blocks and 10,000 inodes stay in memory.
//!
//! At 1, 3, 10, 30, 100 … million operations it prints, of the stretch since the line before: time of a processor for
//! an operation and for a block written; and as it is then: files, use, aggregate layout score (of 100,000 files),
//! resident memory.

use anyhow::{Context, bail, ensure};
use ffs::FileStore;
use ffs::Version;
use ffs::mkfs::MkfsOptions;
use ffs::policy::Options;
use fsage_benchmarks::ageing::{Ageing, Settings};
use fsage_benchmarks::{CommandLine, on_cpu_s, peak_resident_bytes, resident_bytes};
use kernel::{ReadAhead, Transfers};
use std::path::PathBuf;

const USAGE: &str = "usage: scale [--size-gb N] [--operations N] [--policy WORDS] [--block N] [--fragment N] \
                     [--median N] [--sigma X] [--seed N] [--check] [--image FILE]";

struct Arguments {
    settings: Settings,
    operations: u64,
    check: bool,
    /// A new, sparse file that gets the structures; data are holes.
    image: Option<PathBuf>,
}

fn arguments() -> anyhow::Result<Arguments> {
    let mut mkfs = MkfsOptions::new(Version::Ufs2, 1 << 40);
    (mkfs.bsize, mkfs.fsize) = (32768, 4096);
    let mut options = Options::default();
    for word in ["noorder", "dirpref", "noswitch"] {
        options.set(word);
    }
    let mut found = Arguments {
        settings: Settings {
            mkfs,
            options,
            cache_bytes: 64 << 20,
            inodes: 10_000,
            transfers: Transfers { largest_bytes: 131_072, read_ahead: ReadAhead::Cluster, cluster_writes: true },
            median_bytes: 4096.0,
            // exp(sigma^2 / 2) = 189 / 4
            sigma: 2.777,
            largest_bytes: 16 << 30,
            write_bytes: 1 << 20,
            fill: 0.75,
            files_per_directory: Some(64),
            seed: 1,
        },
        operations: 100_000_000,
        check: false,
        image: None,
    };
    let settings = &mut found.settings;
    let mut args = CommandLine::of_program();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--size-gb" => settings.mkfs.size_bytes = args.number::<u64>()? << 30,
            "--operations" => found.operations = args.number()?,
            "--block" => settings.mkfs.bsize = args.number()?,
            "--fragment" => settings.mkfs.fsize = args.number()?,
            "--median" => settings.median_bytes = args.number()?,
            "--sigma" => settings.sigma = args.number()?,
            "--seed" => settings.seed = args.number()?,
            "--check" => found.check = true,
            "--image" => found.image = Some(args.value()?.into()),
            "--policy" => {
                for word in args.value()?.split(',') {
                    let known: Vec<&str> = Options::words().collect();
                    ensure!(settings.options.set(word), "--policy knows {}, not {word}", known.join(", "));
                }
            }
            _ => bail!(USAGE),
        }
    }
    Ok(found)
}

/// 1, 3, 10, 30 … million, and the end.
fn stops(operations: u64) -> impl Iterator<Item = u64> {
    let decades = std::iter::successors(Some(1_000_000_u64), |at| at.checked_mul(10));
    let stops = decades.flat_map(|at| [at, at.saturating_mul(3)]);
    stops.take_while(move |at| *at < operations).chain([operations])
}

fn main() -> anyhow::Result<()> {
    let Arguments { settings, operations, check, image } = arguments()?;
    let (options, seed, started) = (settings.options, settings.seed, std::time::Instant::now());
    let (median, sigma) = (settings.median_bytes, settings.sigma);
    let mut ageing = Ageing::new(settings)?;
    let g = *ageing.volume().geometry();
    println!(
        "{} GB in {} groups, blocks of {} in fragments of {}, {options}, seed {seed}; files of {:.0} KB on average, \
         half of them below {:.0}; made in {:.2} s, {:.0} MB",
        (g.size_frags << g.fshift) >> 30,
        g.ncg,
        g.bsize,
        g.fsize,
        median * (sigma * sigma / 2.0).exp() / 1024.0,
        median,
        on_cpu_s(),
        resident_bytes() as f64 / 1e6,
    );
    println!(
        "million  ns/operation  ns/block  blocks/operation      files  directories   used  layout  resident MB  peak MB"
    );
    let (mut before_s, mut blocks_before) = (on_cpu_s(), 0);
    for stop in stops(operations) {
        let done = ageing.operations;
        while ageing.operations < stop {
            ageing.step();
        }
        let (ns, blocks) = ((on_cpu_s() - before_s) * 1e9, (ageing.blocks - blocks_before) as f64);
        let steps = (stop - done) as f64;
        println!(
            "{:7.0}  {:12.0}  {:8.0}  {:16.2}  {:9}  {:11}  {:4.1}%  {:6.3}  {:11.0}  {:7.0}",
            stop as f64 / 1e6,
            ns / steps,
            ns / blocks,
            blocks / steps,
            ageing.files(),
            ageing.directories(),
            100.0 * ageing.used_share(),
            ageing.layout_score(100_000),
            resident_bytes() as f64 / 1e6,
            peak_resident_bytes() as f64 / 1e6,
        );
        (before_s, blocks_before) = (on_cpu_s(), ageing.blocks);
    }
    println!("{:.0} s of processor time, {:.0} s in all", on_cpu_s(), started.elapsed().as_secs_f64());
    if check {
        ageing.check()?;
        println!("every count agrees with the maps, every piece of a file with the free maps, names with links");
    }
    if let Some(path) = image {
        let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.with_context(|| format!("cannot make {}", path.display()))?;
        file.set_len(g.size_frags << g.fshift)?;
        ageing.volume().store(&mut FileStore::new(file)?, None)?;
        println!("{} holds it, without the data", path.display());
    }
    Ok(())
}
