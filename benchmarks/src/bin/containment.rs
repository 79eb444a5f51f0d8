//! What it costs a replay that its calls cannot leave their directory: the same workload replayed with its threads'
//! root below the run's directory, and with calls that begin there but may lead anywhere, in turns, from warm caches,
//! where calls are shortest.
//!
//! `containment WORKLOAD DIRECTORY [ROUNDS]`: prints the sums of the calls' latencies of every round, and the median of
//! their ratios. Only for a workload of your own: the calls without containment go wherever it leads them.

use anyhow::{Context, ensure};
use posix::{Contained, FileSystem, Mounted};
use replay::{Initially, ReplayError, ReplayOptions, replay_on};
use stats::median;
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
    fn contained(&mut self, work: &mut Contained<'_>) -> io::Result<()> {
        work(&mut self.0.subdir("root")?);
        Ok(())
    }
    posix::delegate! { |me| me.0 =>
        call, now_ns, pause_ns, run, read_into, entries, drop_caches, drop_caches_explained, usage, extents,
        free_extents, environment
    }
}
