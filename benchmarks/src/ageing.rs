//! Ageing a file system by its own operations, without a clock: what the programs `ffs`, `lfs` and `scale` have in
//! common.
//!
//! Creating a file with its content, removing one, and writing one anew are one operation each. Sizes are lognormal.
//! Nothing is timed in the simulation: what is measured is the cost of the file system's own code and of the buffer
//! cache.

use anyhow::{Context, ensure};
use ffs::Ffs;
use kernel::{Durability, Ino, NewNode, Transfers, Untimed, Volume, WriteRange};
use lfs::Lfs;
use posix::FileKind;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

const EPOCH_NS: i64 = 800_000_000_000_000_000;
/// Operations between two runs of the syncer.
const SYNC_EVERY: u64 = 2_000;

/// A file system that can be made and checked.
pub trait Aged: Volume + Sized {
    /// Its sizes.
    type Mkfs: Clone + std::fmt::Debug;
    /// Its policies.
    type Options: Clone + std::fmt::Debug;

    /// Makes an empty one.
    fn made(mkfs: &Self::Mkfs, options: &Self::Options) -> anyhow::Result<Self>;

    /// As many directories as are natural to it.
    fn directories(&self) -> u32;

    /// Counts everything anew; what does not agree.
    fn problems(&self) -> Vec<String>;
}

impl Aged for Ffs {
    type Mkfs = ffs::mkfs::MkfsOptions;
    type Options = ffs::policy::Options;

    fn made(mkfs: &Self::Mkfs, options: &Self::Options) -> anyhow::Result<Ffs> {
        let mut volume = Ffs::format(mkfs, *options)?;
        if options.integrity.has_log() {
            volume.make_log(None)?;
        }
        Ok(volume)
    }

    fn directories(&self) -> u32 {
        self.geometry().ncg
    }

    fn problems(&self) -> Vec<String> {
        self.check().iter().map(|problem| problem.to_string()).collect()
    }
}

impl Aged for Lfs {
    type Mkfs = lfs::mkfs::MkfsOptions;
    type Options = lfs::Options;

    fn made(mkfs: &Self::Mkfs, options: &Self::Options) -> anyhow::Result<Lfs> {
        Ok(Lfs::format(mkfs, *options)?)
    }

    fn directories(&self) -> u32 {
        // As many as an FFS of the study of ageing has groups.
        27
    }

    fn problems(&self) -> Vec<String> {
        self.check().iter().map(|problem| problem.to_string()).collect()
    }
}

/// What ages, and how.
#[derive(Clone, Debug)]
pub struct Settings<V: Aged = Ffs> {
    /// The file system.
    pub mkfs: V::Mkfs,
    /// Its policies.
    pub options: V::Options,
    /// Room for blocks in memory.
    pub cache_bytes: u64,
    /// Inodes that stay in memory.
    pub inodes: usize,
    /// How the kernel reads and writes.
    pub transfers: Transfers,
    /// Size that half of all files are smaller than.
    pub median_bytes: f64,
    /// Standard deviation of the size's logarithm.
    pub sigma: f64,
    /// No file is larger.
    pub largest_bytes: u64,
    /// What one call writes of a file, at most.
    pub write_bytes: u64,
    /// Share of the space in use that is kept to.
    pub fill: f64,
    /// Files to a directory; `None` for as many directories as there are groups.
    pub files_per_directory: Option<usize>,
    /// Of everything that is chosen at random.
    pub seed: u64,
}

#[derive(Clone, Copy, Debug)]
struct File {
    ino: Ino,
    dir: Ino,
    serial: u32,
}

/// A file system that ages.
#[derive(Debug)]
pub struct Ageing<V: Aged = Ffs> {
    settings: Settings<V>,
    live: Untimed<V>,
    random: Xoshiro256PlusPlus,
    dirs: Vec<Ino>,
    files: Vec<File>,
    serial: u32,
    block_bytes: u64,
    /// Blocks written so far.
    pub blocks: u64,
    /// Operations so far.
    pub operations: u64,
}

impl<V: Aged> Ageing<V> {
    /// Makes the file system, empty but for directories.
    pub fn new(settings: Settings<V>) -> anyhow::Result<Ageing<V>> {
        let volume = V::made(&settings.mkfs, &settings.options)?;
        let directories = if settings.files_per_directory.is_some() { 1 } else { volume.directories() };
        let block_bytes = volume.block_bytes().into();
        let mut live = Untimed::new(volume, settings.cache_bytes, settings.inodes, settings.transfers, EPOCH_NS);
        live.run(|volume, cx| volume.mount(cx))?;
        let random = Xoshiro256PlusPlus::seed_from_u64(settings.seed);
        let (dirs, files) = (Vec::new(), Vec::new());
        let mut ageing =
            Ageing { settings, live, random, dirs, files, serial: 0, block_bytes, blocks: 0, operations: 0 };
        for _ in 0..directories {
            ageing.make_directory(Ino(2))?;
        }
        Ok(ageing)
    }

    /// The file system.
    pub fn volume(&self) -> &V {
        self.live.volume()
    }

    /// Files there are.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Directories there are, the root not counted.
    pub fn directories(&self) -> usize {
        self.dirs.len()
    }

    fn make_directory(&mut self, parent: Ino) -> anyhow::Result<()> {
        let new = NewNode { kind: FileKind::Directory, mode: 0o755, target: b"" };
        let name = format!("d{}", self.dirs.len());
        let made = self.live.run(|volume, cx| volume.create(cx, parent, name.as_bytes(), &new));
        self.dirs.push(made.with_context(|| format!("making directory {name}"))?);
        Ok(())
    }

    fn below(&mut self, n: usize) -> usize {
        (self.random.next_u64() % n.max(1) as u64) as usize
    }

    /// Lognormal by Box and Muller.
    fn size(&mut self) -> u64 {
        let mut uniform = || ((self.random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        let (a, b) = (uniform(), uniform());
        let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
        let Settings { median_bytes, sigma, largest_bytes, .. } = self.settings;
        ((median_bytes * (sigma * normal).exp()) as u64).clamp(1, largest_bytes)
    }

    fn write(&mut self, ino: Ino, len_bytes: u64) -> bool {
        self.live.touch(ino);
        self.blocks += len_bytes.div_ceil(self.block_bytes);
        let mut offset = 0;
        while offset < len_bytes {
            let piece = (len_bytes - offset).min(self.settings.write_bytes);
            let range = WriteRange { ino, offset, len_bytes: piece, data: None, sync: None };
            if self.live.run(|volume, cx| volume.write(cx, &range)) != Ok(piece) {
                return false;
            }
            offset += piece;
        }
        true
    }

    /// Creates a file with its content; `false` if there is no room.
    pub fn create(&mut self) -> bool {
        if let Some(most) = self.settings.files_per_directory
            && self.files.len() >= self.dirs.len() * most
        {
            // Below any directory there is, so that the tree grows in depth and width.
            let at = self.below(self.dirs.len() + 1);
            let parent = self.dirs.get(at).copied().unwrap_or(Ino(2));
            if self.make_directory(parent).is_err() {
                return false;
            }
        }
        let at = self.below(self.dirs.len());
        let Some(&dir) = self.dirs.get(at) else { return false };
        self.serial += 1;
        let (serial, len) = (self.serial, self.size());
        let name = Name::of(serial);
        let new = NewNode { kind: FileKind::File, mode: 0o644, target: b"" };
        let made = self.live.run(|volume, cx| {
            volume.lookup(cx, dir, name.bytes())?;
            volume.create(cx, dir, name.bytes(), &new)
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
        let name = Name::of(file.serial);
        let removed = self.live.run(|volume, cx| {
            volume.lookup(cx, file.dir, name.bytes())?;
            volume.unlink(cx, file.dir, name.bytes(), file.ino)?;
            volume.release(cx, file.ino);
            Ok::<(), posix::Errno>(())
        });
        debug_assert!(removed.is_ok());
        self.live.forget(file.ino);
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

    /// Share of the data space in use.
    pub fn used_share(&self) -> f64 {
        let usage = self.live.volume().usage();
        1.0 - usage.free_bytes as f64 / usage.total_bytes as f64
    }

    /// Creates files until use has reached its share.
    pub fn fill(&mut self) -> anyhow::Result<()> {
        while self.used_share() < self.settings.fill {
            ensure!(self.create(), "the file system is full at {:.1} %", 100.0 * self.used_share());
        }
        Ok(())
    }

    /// One operation, such that use goes to its share and stays there.
    pub fn step(&mut self) {
        self.operations += 1;
        let (full, choice) = (self.used_share() > self.settings.fill, self.below(20));
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
            let synced = self.live.run(|volume, cx| volume.sync(cx, Durability::Started));
            debug_assert!(synced.is_ok());
        }
    }

    /// Blocks that directly follow the one before them, of all but the first of each file; of `sample` files evenly
    /// taken.
    pub fn layout_score(&self, sample: usize) -> f64 {
        let (mut follow, mut all) = (0, 0);
        for file in self.files.iter().step_by((self.files.len() / sample.max(1)).max(1)) {
            let Ok(extents) = self.live.volume().extents(file.ino) else { continue };
            let blocks: u64 = extents.iter().map(|extent| extent.len_bytes.div_ceil(self.block_bytes)).sum();
            if blocks > 1 {
                all += blocks - 1;
                follow += blocks - extents.len() as u64;
            }
        }
        follow as f64 / all.max(1) as f64
    }

    /// Writes everything, counts it anew; an error if something does not agree.
    pub fn check(&mut self) -> anyhow::Result<()> {
        // What Soft Updates give up is free when the disk knows.
        self.live.run(|volume, cx| volume.sync(cx, Durability::All)).context("a sync")?;
        let problems = self.live.volume().problems();
        ensure!(problems.is_empty(), "structures disagree: {}", problems.join("; "));
        Ok(())
    }
}

/// A file's name, without an allocation of its own.
struct Name {
    text: [u8; 16],
    len: usize,
}

impl Name {
    fn of(serial: u32) -> Name {
        use std::io::Write as _;
        let mut text = [0; 16];
        let mut rest = &mut text[..];
        // A serial number has at most ten digits.
        let _ = write!(rest, "file-{serial}");
        let len = 16 - rest.len();
        Name { text, len }
    }

    fn bytes(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or_default()
    }
}
