//! How many file operations a second the live FFS takes, on one core, and in how much memory.
//!
//! `ffs [--size-mb N] [--operations N] [--policy WORDS] [--seed N]`: makes a file system (default 502 MB, 8 KB blocks, 1 KB
//! fragments, clusters of 7 blocks, as in Smith and Seltzer, USENIX 1996), fills it to three quarters, and then replaces
//! files at random as ageing does: creating a file with its content, removing one, writing one anew are one operation each. Sizes are
//! lognormal (median 8 KB, mean about 40 KB), one directory for each group. Nothing is timed in the simulation: this is the
//! cost of the file system's own code and of the buffer cache. Prints operations and blocks per second of processor time for
//! each round, the aggregate layout score, and the peak resident set.

use anyhow::{Context, bail, ensure};
use ffs::mkfs::MkfsOptions;
use ffs::policy::Options;
use ffs::{Ffs, Version};
use fsage_benchmarks::{on_cpu_s, peak_resident_bytes};
use kernel::{Ino, NewNode, ReadAhead, Transfers, Untimed, Volume, WriteRange};
use posix::FileKind;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

const ROUNDS: u64 = 3;
const EPOCH_NS: i64 = 800_000_000_000_000_000;
/// Operations between two runs of the syncer.
const SYNC_EVERY: u64 = 2_000;

struct Arguments {
    size_bytes: u64,
    operations: u64,
    options: Options,
    seed: u64,
}

fn arguments() -> anyhow::Result<Arguments> {
    let mut found = Arguments { size_bytes: 502 << 20, operations: 1_000_000, options: Options::default(), seed: 1 };
    found.options.set("noorder");
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--size-mb" => found.size_bytes = value()?.parse::<u64>().context("--size-mb")? << 20,
            "--operations" => found.operations = value()?.parse().context("--operations")?,
            "--seed" => found.seed = value()?.parse().context("--seed")?,
            "--policy" => {
                for word in value()?.split(',') {
                    let known: Vec<&str> = Options::words().collect();
                    ensure!(found.options.set(word), "--policy knows {}, not {word}", known.join(", "));
                }
            }
            _ => bail!("usage: ffs [--size-mb N] [--operations N] [--policy WORDS] [--seed N]"),
        }
    }
    Ok(found)
}

#[derive(Clone, Copy)]
struct File {
    ino: Ino,
    dir: Ino,
    serial: u64,
}

struct Ageing {
    live: Untimed<Ffs>,
    random: Xoshiro256PlusPlus,
    dirs: Vec<Ino>,
    files: Vec<File>,
    serial: u64,
    blocks: u64,
    operations: u64,
}

impl Ageing {
    fn new(arguments: &Arguments) -> anyhow::Result<Ageing> {
        let made = MkfsOptions {
            maxcontig: Some(7),
            minfree: 5,
            density: Some(8192),
            ..MkfsOptions::new(Version::Ufs1, arguments.size_bytes)
        };
        let volume = Ffs::format(&made, arguments.options)?;
        let groups = volume.geometry().ncg;
        let transfers = Transfers { largest_bytes: 7 * 8192, read_ahead: ReadAhead::Cluster, cluster_writes: true };
        let mut live = Untimed::new(volume, 16 << 20, 2_000, transfers, EPOCH_NS);
        live.run(|volume, cx| volume.mount(cx))?;
        let mut dirs = Vec::new();
        let new = NewNode { kind: FileKind::Directory, mode: 0o755, target: b"" };
        for n in 0..groups {
            let name = format!("d{n}");
            dirs.push(live.run(|volume, cx| volume.create(cx, Ino(2), name.as_bytes(), &new))?);
        }
        let random = Xoshiro256PlusPlus::seed_from_u64(arguments.seed);
        Ok(Ageing { live, random, dirs, files: Vec::new(), serial: 0, blocks: 0, operations: 0 })
    }

    fn below(&mut self, n: usize) -> usize {
        (self.random.next_u64() % n.max(1) as u64) as usize
    }

    /// Lognormal by Box and Muller: median 8 KB, sigma 1.8.
    fn size(&mut self) -> u64 {
        let mut uniform = || ((self.random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        let (a, b) = (uniform(), uniform());
        let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
        ((8192.0 * (1.8 * normal).exp()) as u64).clamp(1, 8 << 20)
    }

    fn write(&mut self, ino: Ino, len_bytes: u64) -> bool {
        self.live.touch(ino);
        let range = WriteRange { ino, offset: 0, len_bytes, data: None, sync: None };
        self.blocks += len_bytes.div_ceil(8192);
        self.live.run(|volume, cx| volume.write(cx, &range)) == Ok(len_bytes)
    }

    fn create(&mut self) -> bool {
        let at = self.below(self.dirs.len());
        let Some(&dir) = self.dirs.get(at) else { return false };
        self.serial += 1;
        let (serial, len) = (self.serial, self.size());
        let name = name(serial);
        let new = NewNode { kind: FileKind::File, mode: 0o644, target: b"" };
        let made = self.live.run(|volume, cx| {
            volume.lookup(cx, dir, &name)?;
            volume.create(cx, dir, &name, &new)
        });
        let Ok(ino) = made else { return false };
        let file = File { ino, dir, serial };
        if !self.write(ino, len) {
            self.unlink(file);
            return false;
        }
        self.files.push(file);
        true
    }

    fn unlink(&mut self, file: File) {
        let name = name(file.serial);
        let removed = self.live.run(|volume, cx| {
            volume.lookup(cx, file.dir, &name)?;
            volume.unlink(cx, file.dir, &name, file.ino)?;
            volume.release(cx, file.ino);
            Ok::<(), posix::Errno>(())
        });
        debug_assert!(removed.is_ok());
        self.live.gone(file.ino);
    }

    fn remove(&mut self) {
        let at = self.below(self.files.len());
        if !self.files.is_empty() {
            let file = self.files.swap_remove(at);
            self.unlink(file);
        }
    }

    fn rewrite(&mut self) {
        let at = self.below(self.files.len());
        let Some(&file) = self.files.get(at) else { return };
        let len = self.size();
        self.live.touch(file.ino);
        let cut = self.live.run(|volume, cx| volume.truncate(cx, file.ino, 0));
        if cut.is_err() || !self.write(file.ino, len) {
            self.files.swap_remove(at);
            self.unlink(file);
        }
    }

    fn used_share(&self) -> f64 {
        let usage = self.live.volume().usage();
        1.0 - usage.free_bytes as f64 / usage.total_bytes as f64
    }

    /// One operation, such that use stays about three quarters.
    fn step(&mut self) {
        self.operations += 1;
        let (full, choice) = (self.used_share() > 0.75, self.below(20));
        match choice {
            0..3 => self.rewrite(),
            3..12 if full => self.remove(),
            12..14 if !full => self.remove(),
            _ if full && choice >= 18 => self.remove(),
            _ => {
                if !self.create() {
                    self.remove();
                }
            }
        }
        if self.operations.is_multiple_of(SYNC_EVERY) {
            self.live.pause_ns(30_000_000_000);
            let synced = self.live.run(|volume, cx| volume.sync(cx, kernel::Durability::Started));
            debug_assert!(synced.is_ok());
        }
    }

    /// Blocks that directly follow the one before them, of all but the first of each file.
    fn layout_score(&self) -> f64 {
        let (mut follow, mut all) = (0, 0);
        for file in &self.files {
            let Ok(extents) = self.live.volume().extents(file.ino) else { continue };
            let blocks: u64 = extents.iter().map(|extent| extent.len_bytes.div_ceil(8192)).sum();
            if blocks > 1 {
                all += blocks - 1;
                follow += blocks - extents.len() as u64;
            }
        }
        follow as f64 / all.max(1) as f64
    }
}

fn name(serial: u64) -> Vec<u8> {
    format!("file-{serial}").into_bytes()
}

fn main() -> anyhow::Result<()> {
    let arguments = arguments()?;
    let mut ageing = Ageing::new(&arguments)?;
    let g = *ageing.live.volume().geometry();
    println!(
        "{} MB in {} groups, blocks of {}, {}, seed {}",
        arguments.size_bytes >> 20,
        g.ncg,
        g.bsize,
        arguments.options,
        arguments.seed
    );
    let start_s = on_cpu_s();
    while ageing.used_share() < 0.75 {
        if !ageing.create() {
            bail!("the file system is full at {:.1} %", 100.0 * ageing.used_share());
        }
    }
    println!(
        "filled: {} files in {:.2} s, layout score {:.3}",
        ageing.files.len(),
        on_cpu_s() - start_s,
        ageing.layout_score()
    );
    for round in 1..=ROUNDS {
        let (start_s, blocks) = (on_cpu_s(), ageing.blocks);
        for _ in 0..arguments.operations / ROUNDS {
            ageing.step();
        }
        let s = on_cpu_s() - start_s;
        println!(
            "round {round}: {:.0} operations/s, {:.0} blocks written/s, {} files, {:.1} % used, layout score {:.3}, peak {:.1} MB",
            (arguments.operations / ROUNDS) as f64 / s,
            (ageing.blocks - blocks) as f64 / s,
            ageing.files.len(),
            100.0 * ageing.used_share(),
            ageing.layout_score(),
            peak_resident_bytes() as f64 / 1e6,
        );
    }
    let problems = ageing.live.volume().check();
    ensure!(
        problems.is_empty(),
        "structures disagree: {}",
        problems.iter().map(|p| p.to_string()).collect::<Vec<_>>().join("; ")
    );
    Ok(())
}
