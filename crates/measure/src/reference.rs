//! References: a few costs, always measured in the same small way, to see later whether the system is still the same
//! ([`system::Drift`]).
//!
//! They are taken in bursts, in a measurement several times between its groups, as a device and a processor that are
//! kept busy in one way answer sooner than after other work: only a burst is like a burst.

use super::MeasureError;
use super::bench::Bench;
use posix::{At, Call, Fd, OpenFlags};
use stats::random::shuffle;
use stats::{mean, midmean, midmean_interval};
use std::collections::BTreeMap;
use std::hint::black_box;
use system::{Entry, Reference, References};

const DIRECTORY: &str = "references";
const DATA: &str = "references/data";
const DATA_BYTES: u64 = 32 << 20;
const BLOCK_BYTES: u64 = 4096;
/// Of each reference in a round.
const LOOPS: usize = 4;
const PROBES: usize = 16;
const STATS: usize = 64;
const READS: usize = 16;
const SYNCS: usize = 8;
const LOOP_STEPS: u64 = 10_000;
const WALK_STEPS: u32 = 1_000;
const WALK_BYTES: usize = 16 << 20;
const BURST_NS: u64 = 250_000_000;
const LEAST_ROUNDS: u32 = 3;

/// Measures the references of a system on its own clock; in virtual time there are none, as nothing drifts there.
pub(super) struct Measured {
    blocks: u64,
    /// A way through memory: where to go from each place.
    way: Vec<u32>,
    place: u32,
    rounds: BTreeMap<Reference, Vec<f64>>,
    samples: BTreeMap<Reference, u64>,
}

impl Measured {
    pub(super) fn prepare(b: &mut Bench<'_>) -> Result<Option<Measured>, MeasureError> {
        if b.fs.is_deterministic() {
            return Ok(None);
        }
        b.make_dir(DIRECTORY)?;
        let bytes = b.large_file_bytes(DATA_BYTES)?.min(DATA_BYTES);
        b.make_file(DATA.into(), bytes)?;
        b.sync()?;
        let mut order: Vec<u32> = (0..u32::try_from(WALK_BYTES / size_of::<u32>()).unwrap_or(u32::MAX)).collect();
        shuffle(&mut b.rng, &mut order);
        let mut way = vec![0; order.len()];
        for (from, to) in order.iter().zip(order.iter().cycle().skip(1)) {
            if let Some(step) = way.get_mut(*from as usize) {
                *step = *to;
            }
        }
        let blocks = (bytes / BLOCK_BYTES).max(1);
        Ok(Some(Measured { blocks, way, place: 0, rounds: BTreeMap::new(), samples: BTreeMap::new() }))
    }

    /// A quarter of a second of rounds, the first of which finds the system at other work and does not count.
    pub(super) fn burst(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        b.set_slice_ns(BURST_NS);
        self.round(b, false)?;
        let mut rounds = 0;
        while rounds < LEAST_ROUNDS || b.go_on()? {
            self.round(b, true)?;
            rounds += 1;
        }
        Ok(())
    }

    fn round(&mut self, b: &mut Bench<'_>, counts: bool) -> Result<(), MeasureError> {
        let mut order = Reference::ALL;
        b.shuffle(&mut order);
        for reference in order {
            let taken = match reference {
                Reference::Processor => (0..LOOPS).map(|_| turn_in_place(b)).collect(),
                Reference::Memory => (0..LOOPS).map(|_| self.walk(b)).collect(),
                Reference::Core => (0..PROBES).filter_map(|_| b.fs.core_probe_ns()).collect(),
                Reference::Stat => stats(b)?,
                Reference::Read => self.reads(b)?,
                Reference::Sync => self.syncs(b)?,
            };
            if !counts {
                continue;
            }
            // Interruptions are longer than all that takes no device.
            let interrupted = matches!(reference, Reference::Processor | Reference::Memory | Reference::Stat);
            let of_round = if interrupted { midmean(&taken) } else { mean(&taken).unwrap_or(0.0) };
            self.rounds.entry(reference).or_default().push(of_round);
            *self.samples.entry(reference).or_default() += taken.len() as u64;
        }
        Ok(())
    }

    /// What came of it; removes its files.
    pub(super) fn finish(self, b: &mut Bench<'_>) -> Result<References, MeasureError> {
        b.unlink(DATA.into())?;
        b.quiet(&Call::Rmdir { at: DIRECTORY.into() })?;
        let tidy = |ns: f64| (ns * 10.0).round() / 10.0;
        let entry = |(reference, rounds): (Reference, Vec<f64>)| {
            let (low, high) = midmean_interval(&rounds, reference as u64);
            let entry = Entry {
                mean_ns: tidy(midmean(&rounds)),
                low_ns: tidy(low),
                high_ns: tidy(high),
                samples: self.samples.get(&reference).copied().unwrap_or(0),
                rounds_ns: rounds.into_iter().map(tidy).collect(),
                ..Entry::default()
            };
            (reference, entry)
        };
        Ok(self.rounds.into_iter().map(entry).collect())
    }

    fn walk(&mut self, b: &Bench<'_>) -> f64 {
        let began_ns = b.fs.now_ns();
        let mut place = self.place;
        for _ in 0..WALK_STEPS {
            place = self.way.get(place as usize).copied().unwrap_or(0);
        }
        self.place = black_box(place);
        (b.fs.now_ns() - began_ns) as f64
    }

    fn block(&self, b: &mut Bench<'_>) -> u64 {
        b.pick(usize::try_from(self.blocks).unwrap_or(usize::MAX)) as u64 * BLOCK_BYTES
    }

    fn reads(&self, b: &mut Bench<'_>) -> Result<Vec<f64>, MeasureError> {
        let fd = b.open(DATA.into(), OpenFlags::READ_WRITE)?;
        b.evict(fd)?;
        b.close(fd)?;
        let fd = b.open(DATA.into(), OpenFlags::READ)?;
        let mut taken = Vec::with_capacity(READS);
        for _ in 0..READS {
            let offset = Some(self.block(b));
            taken.push(took(b, &Call::Read { fd, offset, len_bytes: BLOCK_BYTES })?);
        }
        b.close(fd)?;
        Ok(taken)
    }

    fn syncs(&self, b: &mut Bench<'_>) -> Result<Vec<f64>, MeasureError> {
        let fd = b.open(DATA.into(), OpenFlags::READ_WRITE)?;
        let mut taken = Vec::with_capacity(SYNCS);
        for _ in 0..SYNCS {
            taken.push(self.overwrite(b, fd)?);
        }
        b.close(fd)?;
        Ok(taken)
    }

    fn overwrite(&self, b: &mut Bench<'_>, fd: Fd) -> Result<f64, MeasureError> {
        let offset = Some(self.block(b));
        b.quiet(&Call::Write { fd, offset, len_bytes: BLOCK_BYTES, data: None })?;
        took(b, &Call::Fdatasync { fd })
    }
}

fn turn_in_place(b: &Bench<'_>) -> f64 {
    let began_ns = b.fs.now_ns();
    let mut sum = black_box(1u64);
    for _ in 0..LOOP_STEPS {
        sum = sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1;
    }
    black_box(sum);
    (b.fs.now_ns() - began_ns) as f64
}

fn stats(b: &mut Bench<'_>) -> Result<Vec<f64>, MeasureError> {
    let at: At<'_> = DATA.into();
    (0..STATS).map(|_| took(b, &Call::Stat { at, follow: true })).collect()
}

fn took(b: &mut Bench<'_>, call: &Call<'_>) -> Result<f64, MeasureError> {
    let outcome = b.outcome(call);
    outcome.result.map_err(|errno| MeasureError::call(call, errno))?;
    Ok(outcome.dur_ns as f64)
}
