//! The worst case of free space: all of it in fragments. A news spool is provoked into it.

use super::{DRIVE, MACHINE, POSITIONS, WORDS, laboratory, mkfs_options};
use crate::alloc96::policy;
use crate::parallel::each;
use crate::testbed::call;
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use ffs::mkfs::MkfsOptions;
use ffs::{Ffs, FreeMaps};
use kernel::Lab;
use posix::{At, Call, Errno, FileSystem as _, Mode, OpenFlags};
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lfs95/fragments-only",
    title: "The worst case of free space: a news spool that has only fragments left",
    source: "Seltzer et al., File System Logging Versus Clustering, USENIX 1995, section 5",
    runs: "a spool of small articles is filled until articles are refused, a tenth of them expires at random, and so \
           on; what is free in whole blocks by round, with a reserve of 10, 5 and 0 %; then files are made in what \
           another expiry has freed, and on the same emptied",
    run,
};

/// Groups of the spool, a directory each.
const GROUPS: u64 = 100;
/// Articles of the personality `news` without its tail are lognormal: the natural logarithm of their bytes, and its
/// deviation.
const NEWS: (f64, f64) = (7.7, 0.8);
/// Such that hardly two fit into a block: five fragments, and three are left.
const FIVE_FRAGMENTS: (f64, f64) = (8.43, 0.05);
const BYTES_MAX: f64 = 64.0 * 1024.0;
/// Of the articles, so many expire in each round.
const EXPIRE: f64 = 0.10;
/// So many refused one after another, and the spool is full.
const REFUSED: u32 = 50;
/// Made into the free space, at most.
const FILES: u64 = 500;
/// Their sizes: a fragment, half a block, a block.
const SIZES: [u64; 3] = [1 << 10, 4 << 10, 8 << 10];
/// Bytes for each inode of the spool.
const DENSITY: u32 = 2048;

/// How a spool is set up.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// How much of the file system is held back, per cent.
    reserve: u32,
    /// Logarithm of the articles' sizes, and its deviation.
    ln_bytes: (f64, f64),
}

const CASES: [Case; 5] = [
    Case { reserve: 10, ln_bytes: NEWS },
    Case { reserve: 5, ln_bytes: NEWS },
    Case { reserve: 0, ln_bytes: NEWS },
    Case { reserve: 10, ln_bytes: (NEWS.0 + std::f64::consts::LN_2, NEWS.1) },
    Case { reserve: 10, ln_bytes: FIVE_FRAGMENTS },
];

/// A full spool.
#[derive(Clone, Copy, Debug)]
struct Look {
    /// Of the file system, the share that is free, the reserve included.
    free: f64,
    /// Of that, the share in whole blocks.
    in_blocks: f64,
    /// Articles refused although df showed room for them.
    refused: u64,
    /// When the last whole block was gone while it was filled: how much was still free, of the file system.
    out_of_blocks: Option<f64>,
}

/// Files of one size made into free space.
#[derive(Clone, Copy, Debug)]
struct Made {
    /// How many before one was refused, or [`FILES`].
    files: u64,
    /// For which df showed room.
    room_for: u64,
    files_per_s: f64,
}

struct Found {
    case: Case,
    rounds: Vec<Look>,
    /// Free after the last expiry.
    last: Look,
    /// By [`SIZES`]: in what was free when it was full the last time, where df showed any.
    full: Vec<Made>,
    /// By [`SIZES`]: in what was free after the last expiry, and on the same emptied.
    made: Vec<[Made; 2]>,
}

impl Found {
    fn name(&self) -> String {
        let (mean, deviation) = self.case.ln_bytes;
        let kb = mean.exp() / 1024.0;
        let alike = if deviation < 0.1 { " all alike" } else { "" };
        format!("articles of {kb:.1} KB{alike}, reserve of {} %", self.case.reserve)
    }
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let size_bytes = bench.pick(16 << 20, 128 << 20);
    let rounds = bench.pick(3, 30);
    let cases = bench.pick(&CASES[..1], &CASES[..]);
    let seed = bench.seed();
    let found = each(bench, "spools", cases, |case| provoke(*case, size_bytes, rounds, seed))?;
    let mut outcome = Outcome::new();
    outcome
        .parameter("machine", MACHINE)
        .parameter("drive", DRIVE)
        .parameter(
            "file systems",
            format!("{} MiB, as in lfs95/fragmentation, an inode for each {DENSITY} bytes", size_bytes >> 20),
        )
        .parameter(
            "articles",
            "lognormal, by their median (an estimate), in 100 directories; all alike: within a tenth",
        )
        .parameter(
            "rounds",
            format!("{rounds}: filled until {REFUSED} articles in a row are refused; a tenth expires"),
        );
    rows(&mut outcome, &found);
    claims(&mut outcome, &found);
    figures(&mut outcome, &found);
    Ok(outcome)
}

fn provoke(case: Case, size_bytes: u64, rounds: u32, seed: u64) -> Result<Found, ExperimentError> {
    let base = mkfs_options(size_bytes, 0, POSITIONS);
    let options = MkfsOptions { minfree: case.reserve, density: Some(DENSITY), ..base };
    // Written late, which does not change where anything goes.
    let volume = Ffs::format(&options, policy("original,blockwise,noorder")?)?;
    let mut spool = Spool::new(laboratory(volume)?, case, seed)?;
    let mut looks = Vec::new();
    let mut full = FreeMaps::of(spool.lab.volume())?;
    for _ in 0..rounds {
        let (refused, out_of_blocks) = spool.fill()?;
        looks.push(Look { refused, out_of_blocks, ..look(spool.lab.volume()) });
        full = FreeMaps::of(spool.lab.volume())?;
        spool.expire()?;
    }
    let volume =
        spool.lab.unmount().map_err(|errno| ExperimentError::Call { doing: "unmounting".to_owned(), errno })?;
    let maps = FreeMaps::of(&volume)?;
    let emptied = maps.emptied()?;
    let made = SIZES.iter().map(|size| Ok([make(&maps, *size)?, make(&emptied, *size)?]));
    let made: Result<Vec<_>, ExperimentError> = made.collect();
    let full: Result<Vec<_>, ExperimentError> = SIZES.iter().map(|size| make(&full, *size)).collect();
    Ok(Found { case, rounds: looks, last: look(&volume), full: full?, made: made? })
}

fn look(volume: &Ffs) -> Look {
    let (total, free) = (volume.tuning().dsize as f64, volume.space().free_frags() as f64);
    let blocks = volume.space().total().nbfree as f64 * f64::from(volume.geometry().frag);
    let in_blocks = if free > 0.0 { blocks / free } else { 0.0 };
    Look { free: free / total, in_blocks, refused: 0, out_of_blocks: None }
}

/// A spool in use.
struct Spool {
    lab: Lab<Ffs>,
    case: Case,
    random: Xoshiro256PlusPlus,
    articles: Vec<u64>,
    next: u64,
}

fn path(article: u64) -> String {
    format!("group{}/{article}", article % GROUPS)
}

impl Spool {
    fn new(mut lab: Lab<Ffs>, case: Case, seed: u64) -> Result<Spool, ExperimentError> {
        for group in 0..GROUPS {
            let directory = format!("group{group}");
            call(&mut lab, "making a directory", &Call::Mkdir { at: At::from(directory.as_str()), mode: Mode(0o755) })?;
        }
        Ok(Spool { lab, case, random: Xoshiro256PlusPlus::seed_from_u64(seed), articles: Vec::new(), next: 0 })
    }

    /// Articles arrive until it is full; how many were refused although df showed room for them, and what was free when
    /// the last whole block was gone.
    fn fill(&mut self) -> Result<(u64, Option<f64>), ExperimentError> {
        let (mut in_a_row, mut with_room, mut out_of_blocks) = (0, 0, None);
        while in_a_row < REFUSED {
            if out_of_blocks.is_none() && self.lab.volume().space().total().nbfree == 0 {
                out_of_blocks = Some(look(self.lab.volume()).free);
            }
            let (mean, deviation) = self.case.ln_bytes;
            let bytes = (mean + deviation * stats::random::normal(&mut self.random)).exp().clamp(1.0, BYTES_MAX) as u64;
            self.next += 1;
            let article = self.next;
            match write(&mut self.lab, &path(article), bytes)? {
                true => {
                    self.articles.push(article);
                    in_a_row = 0;
                }
                false => {
                    with_room += u64::from(available(&mut self.lab)? >= bytes);
                    in_a_row += 1;
                }
            }
        }
        Ok((with_room, out_of_blocks))
    }

    /// Some articles go, wherever they are.
    fn expire(&mut self) -> Result<(), ExperimentError> {
        let going = (self.articles.len() as f64 * EXPIRE) as usize;
        for _ in 0..going {
            let article = self.articles.swap_remove(stats::random::index(&mut self.random, self.articles.len()));
            call(&mut self.lab, "removing an article", &Call::Unlink { at: path(article).as_str().into() })?;
        }
        Ok(())
    }
}

fn available(lab: &mut Lab<Ffs>) -> Result<u64, ExperimentError> {
    let failed = |error| ExperimentError::Io { doing: "looking at the free space".to_owned(), error };
    Ok(lab.usage().map_err(failed)?.available_bytes)
}

/// Writes a file; `false` where there is no room for it, of which nothing is left then.
fn write(lab: &mut Lab<Ffs>, path: &str, bytes: u64) -> Result<bool, ExperimentError> {
    let open = Call::Open { at: path.into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
    let fd = match lab.call(&open).fd() {
        Ok(fd) => fd,
        Err(Errno::ENOSPC) => return Ok(false),
        Err(errno) => return Err(ExperimentError::Call { doing: format!("making {path}"), errno }),
    };
    let written = lab.call(&Call::Write { fd, offset: None, len_bytes: bytes, data: None }).count();
    call(lab, "closing", &Call::Close { fd })?;
    match written {
        Ok(count) if count == bytes => return Ok(true),
        Ok(_) | Err(Errno::ENOSPC) => {}
        Err(errno) => return Err(ExperimentError::Call { doing: format!("writing {path}"), errno }),
    }
    call(lab, "removing what was refused", &Call::Unlink { at: path.into() })?;
    Ok(false)
}

/// Makes files of one size in free space, as synchronously as the study's file system, until one is refused.
fn make(maps: &FreeMaps, size_bytes: u64) -> Result<Made, ExperimentError> {
    let mut lab = laboratory(Ffs::from_free_maps(maps, policy(WORDS)?)?)?;
    let room_for = available(&mut lab)? / size_bytes;
    let from_ns = lab.now_ns();
    let mut files = 0;
    while files < FILES && write(&mut lab, &format!("new{files}"), size_bytes)? {
        files += 1;
    }
    call(&mut lab, "writing back", &Call::SyncFs)?;
    let seconds = (lab.now_ns() - from_ns) as f64 / 1e9;
    Ok(Made { files, room_for: room_for.min(FILES), files_per_s: files as f64 / seconds })
}

fn rows(outcome: &mut Outcome, found: &[Found]) {
    for spool in found {
        let name = spool.name();
        let mut row = |what: String, unit, ours| {
            outcome.row(Row::new(format!("{name}: {what}"), unit, Published::NONE, ours, Explain::Agrees));
        };
        let worst = spool.rounds.iter().map(|look| look.in_blocks).fold(1.0, f64::min);
        if let Some(full) = spool.rounds.last() {
            row("free when full".to_owned(), Unit::Share, full.free);
            row("of that, in whole blocks".to_owned(), Unit::Share, full.in_blocks);
            row("articles refused although df showed room".to_owned(), Unit::Count, full.refused as f64);
            if let Some(free) = full.out_of_blocks {
                row("free, in fragments only, when the last whole block was gone".to_owned(), Unit::Share, free);
            }
        }
        row("the least share of free space in whole blocks in any round".to_owned(), Unit::Share, worst);
        row("free after a tenth has expired".to_owned(), Unit::Share, spool.last.free);
        row("of what is free then, in whole blocks".to_owned(), Unit::Share, spool.last.in_blocks);
        for (size, here) in SIZES.iter().zip(&spool.full).filter(|(_, here)| here.room_for > 1) {
            let what = format!("when full, files of {} KB made, of those that df shows room for", size >> 10);
            row(what, Unit::Share, here.files as f64 / here.room_for as f64);
        }
        for (size, [here, emptied]) in SIZES.iter().zip(&spool.made) {
            let kb = size >> 10;
            row(
                format!("files of {kb} KB made before one is refused, of those that df shows room for"),
                Unit::Share,
                here.files as f64 / here.room_for.max(1) as f64,
            );
            if here.files > 0 {
                let ratio = here.files_per_s / emptied.files_per_s;
                row(format!("making files of {kb} KB, over the same emptied"), Unit::Ratio, ratio);
            }
        }
    }
}

fn claims(outcome: &mut Outcome, found: &[Found]) {
    let out = |spool: &&Found| {
        spool.rounds.iter().any(|look| look.out_of_blocks.is_some_and(|free| free > 0.0) && look.refused > 0)
    };
    let seen: Vec<String> = found
        .iter()
        .map(|spool| {
            let least = spool.rounds.iter().map(|look| look.in_blocks).fold(1.0, f64::min);
            format!("{}: down to {:.1} %", spool.name(), 100.0 * least)
        })
        .collect();
    outcome.claim(Claim::new(
        "a news spool can be out of whole blocks while fragments are free",
        found.iter().any(|spool| out(&spool)),
        format!("of free space, in whole blocks: {}", seen.join("; ")),
        Explain::unknown(),
    ));
}

fn figures(outcome: &mut Outcome, found: &[Found]) {
    let curve = |panel: &str, spool: &Found, of: &dyn Fn(&Look) -> f64| {
        let points = (1_u32..).zip(&spool.rounds).map(|(round, look)| (f64::from(round), of(look)));
        Series::in_panel(panel, &spool.name(), points)
    };
    let mut series = Vec::new();
    for spool in found {
        series.push(curve("of free space, in whole blocks", spool, &|look| look.in_blocks));
        series.push(curve("free when full", spool, &|look| look.free));
    }
    outcome.figure(Figure {
        name: "whole-blocks".to_owned(),
        title: "A full spool, round by round: how much is free, and how much of that is in whole blocks.".to_owned(),
        x: Axis::Number("round".to_owned()),
        y: Axis::Share("share".to_owned()),
        series,
    });
}
