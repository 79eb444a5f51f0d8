//! A drive as the measurement sees it: reads, and how long each took.

use crate::{Device, Request};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;
use stats::random::below;
use std::io;

/// Something that can be read and timed.
pub trait Probe {
    /// Bytes of the unit of its addresses.
    fn sector_bytes(&self) -> u32;

    /// How many of them.
    fn capacity_sectors(&self) -> u64;

    /// Reads, past every cache but the drive's own; nanoseconds from the command to the data.
    ///
    /// # Errors
    /// The drive's.
    fn read(&mut self, lbn: u64, sectors: u32) -> io::Result<u64>;

    /// Leaves the drive alone for a while.
    ///
    /// # Errors
    /// A signal that asks to stop.
    fn rest(&mut self, ns: u64) -> io::Result<()>;
}

/// A model in virtual time.
pub struct Modelled<D> {
    device: D,
    now_ns: u64,
}

impl<D: Device> Modelled<D> {
    /// A model at time 0.
    pub fn new(device: D) -> Modelled<D> {
        Modelled { device, now_ns: 0 }
    }
}

impl<D: Device> Probe for Modelled<D> {
    fn sector_bytes(&self) -> u32 {
        self.device.sector_bytes()
    }

    fn capacity_sectors(&self) -> u64 {
        self.device.capacity_sectors()
    }

    fn read(&mut self, lbn: u64, sectors: u32) -> io::Result<u64> {
        let done = self.device.serve(self.now_ns, Request::read(lbn, sectors)).map_err(io::Error::other)?;
        let took_ns = done.at_ns - self.now_ns;
        self.now_ns = done.at_ns;
        Ok(took_ns)
    }

    fn rest(&mut self, ns: u64) -> io::Result<()> {
        self.now_ns += ns;
        Ok(())
    }
}

/// No drive that is smaller has places to tell apart.
const SECTORS_MIN: u64 = 1 << 14;

/// Segments that a buffer may have.
pub(super) const FORGOTTEN_AFTER: u32 = 40;

/// A probe with what all parts of the measurement need.
pub(super) struct Reader<'a> {
    probe: &'a mut dyn Probe,
    rng: Xoshiro256PlusPlus,
    pub capacity: u64,
    pub sector_bytes: u32,
    pub reads: u64,
}

impl<'a> Reader<'a> {
    pub fn new(probe: &'a mut dyn Probe, seed: u64) -> io::Result<Reader<'a>> {
        let (capacity, sector_bytes) = (probe.capacity_sectors(), probe.sector_bytes());
        if capacity < SECTORS_MIN {
            let why = format!("{capacity} sectors of {sector_bytes} bytes: at least {SECTORS_MIN} are needed");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(Reader { probe, rng: Xoshiro256PlusPlus::seed_from_u64(seed), capacity, sector_bytes, reads: 0 })
    }

    pub fn read(&mut self, lbn: u64, sectors: u32) -> io::Result<u64> {
        self.reads += 1;
        self.probe.read(lbn.min(self.capacity - u64::from(sectors)), sectors)
    }

    pub fn rest(&mut self, ns: u64) -> io::Result<()> {
        self.probe.rest(ns)
    }

    /// Reads elsewhere until the drive's buffer holds nothing else.
    pub fn forget(&mut self) -> io::Result<()> {
        for _ in 0..FORGOTTEN_AFTER {
            let lbn = self.anywhere(1);
            self.read(lbn, 1)?;
        }
        Ok(())
    }

    pub fn below(&mut self, n: u64) -> u64 {
        below(&mut self.rng, n.max(1))
    }

    /// A random place with room behind it.
    pub fn anywhere(&mut self, sectors: u64) -> u64 {
        self.below(self.capacity.saturating_sub(sectors))
    }

    /// The block at a share of the drive, with room behind it.
    pub fn at(&self, place: f64, sectors: u64) -> u64 {
        let lbn = (self.capacity as f64 * place) as u64;
        lbn.min(self.capacity.saturating_sub(sectors))
    }
}

/// The median, 0 of nothing.
pub(super) fn median(values: &[u64]) -> f64 {
    let values: Vec<f64> = values.iter().map(|&value| value as f64).collect();
    stats::median(&values).unwrap_or(0.0)
}

/// The lower end of what is spread evenly from it on: the least of `n`, less what the least lies above the end on
/// average.
pub(super) fn lower_end(values: &[u64], spread: f64) -> f64 {
    let least = values.iter().min().copied().unwrap_or(0) as f64;
    least - spread / (values.len() as f64 + 1.0)
}
