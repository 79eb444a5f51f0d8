//! What it costs a replay that its calls cannot leave their directory: the same workload replayed with its threads' root below the
//! run's directory, and with calls that begin there but may lead anywhere, in turns, from warm caches, where calls are shortest.
//!
//! `containment WORKLOAD DIRECTORY [ROUNDS]`: prints the sums of the calls' latencies of every round, and the median of their ratios. Only
//! for a workload of your own: the calls without containment go wherever it leads them.

use anyhow::{Context, ensure};
use posix::{
    CacheDrop, CacheState, Call, Contained, Environment, Errno, Extent, Fd, FileKind, FileSystem, FreeExtent, FsUsage,
    Mounted, Outcome, Process, Unavailable,
};
use replay::{Initially, ReplayError, ReplayOptions, replay_on};
use stats::median;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use trace::profile::Reader;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(workload), Some(directory)) = (args.next(), args.next()) else {
        anyhow::bail!("usage: containment WORKLOAD DIRECTORY [ROUNDS]");
    };
    let rounds: usize = args.next().map_or(Ok(9), |text| text.parse().context("ROUNDS is a number"))?;
    ensure!(rounds > 0, "ROUNDS is at least 1");
    let reader = Reader::open(Path::new(&workload))?;
    let mut ratios = Vec::with_capacity(rounds);
    println!("{:>6} {:>14} {:>14} {:>7}", "round", "contained ms", "not ms", "ratio");
    for round in 0..rounds {
        // Who goes first changes, so that a drift of the machine favours none.
        let (contained_ms, open_ms) = if round % 2 == 0 {
            let contained_ms = replayed_ms(&reader, Path::new(&directory), true)?;
            (contained_ms, replayed_ms(&reader, Path::new(&directory), false)?)
        } else {
            let open_ms = replayed_ms(&reader, Path::new(&directory), false)?;
            (replayed_ms(&reader, Path::new(&directory), true)?, open_ms)
        };
        ratios.push(contained_ms / open_ms);
        println!("{round:>6} {contained_ms:>14.1} {open_ms:>14.1} {:>7.3}", contained_ms / open_ms);
    }
    let (least, most) =
        ratios.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &ratio| (least.min(ratio), most.max(ratio)));
    println!("median of the ratios {:.3} ({least:.3} to {most:.3})", median(&ratios).unwrap_or(0.0));
    Ok(())
}

/// One replay in a directory of its own, which is removed; the sum of its calls' latencies, milliseconds.
fn replayed_ms(reader: &Reader, directory: &Path, contained: bool) -> anyhow::Result<f64> {
    let own = tempfile::Builder::new().prefix("fsage-containment-").tempdir_in(directory)?;
    let mounted = Mounted::open(own.path())?;
    let options = ReplayOptions { initially: Initially::Warm, ..ReplayOptions::default() };
    let snapshot = reader.snapshot()?;
    let open = || -> Result<_, ReplayError> {
        Ok(Box::new(reader.batches()?.map(|batch| batch.map_err(ReplayError::from))) as Box<_>)
    };
    let result = if contained {
        replay_on(&mut { mounted }, &snapshot, &open, &options, &mut |_| ())?
    } else {
        replay_on(&mut Open(mounted), &snapshot, &open, &options, &mut |_| ())?
    };
    own.close()?;
    Ok(result.total_ns as f64 / 1e6)
}

/// A directory whose contained calls are made like any others.
struct Open(Mounted);

impl FileSystem for Open {
    fn call(&mut self, call: &Call<'_>) -> Outcome {
        self.0.call(call)
    }
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }
    fn pause_ns(&mut self, ns: u64) {
        self.0.pause_ns(ns);
    }
    fn run(&mut self, processes: Vec<Box<dyn Process + '_>>) -> io::Result<()> {
        self.0.run(processes)
    }
    fn contained(&mut self, work: &mut Contained<'_>) -> io::Result<()> {
        work(&mut self.0.subdir("root")?);
        Ok(())
    }
    fn read_into(&mut self, fd: Fd, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.0.read_into(fd, offset, buffer)
    }
    fn entries(&mut self, fd: Fd) -> Result<Vec<(OsString, FileKind)>, Errno> {
        self.0.entries(fd)
    }
    fn drop_caches(&mut self) -> io::Result<CacheState> {
        self.0.drop_caches()
    }
    fn drop_caches_explained(&mut self) -> io::Result<CacheDrop> {
        self.0.drop_caches_explained()
    }
    fn usage(&mut self) -> io::Result<FsUsage> {
        self.0.usage()
    }
    fn extents(&mut self, fd: Fd) -> Result<Vec<Extent>, Unavailable> {
        self.0.extents(fd)
    }
    fn free_extents(&mut self) -> Result<Vec<FreeExtent>, Unavailable> {
        self.0.free_extents()
    }
    fn environment(&self) -> Environment {
        self.0.environment()
    }
}
