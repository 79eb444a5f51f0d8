//! A log without a file system on the drive: segments are discarded and written whole, in no order. What is left of the
//! drive's amplification is the segments' size and where they begin, nothing else.

use super::updates::{self, Size};
use crate::ExperimentError;
use device::ssd::Ssd;
use device::{Device, Request, RequestError};
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use stats::random::index;

/// Share of the segments that hold something.
const HELD: f64 = 0.92;

/// How the segments lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Size, in eighths of what the drive erases together.
    pub(super) segment_eighths: u64,
    /// Whether a block is written between two segments, as a checkpoint's superblock is.
    pub(super) superblocks: bool,
}

/// What the drive programs for each byte written.
pub(super) fn measure(layout: &Layout, size: Size, seed: u64) -> Result<f64, ExperimentError> {
    let spec = updates::drive(size, super::ORDINARY)?;
    let unit = spec.mapping_bytes / spec.sector_bytes;
    let (capacity, most) = (spec.capacity_sectors, spec.max_transfer_sectors);
    let sectors = updates::stripe_bytes(&spec) * layout.segment_eighths / 8 / u64::from(spec.sector_bytes);
    // The first segment's place is the superblock's.
    let segments = capacity / sectors.max(1) - 1;
    let mut ssd = Ssd::new(spec);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = |n: usize| index(&mut random, n);
    let mut held: Vec<u64> = (1..=segments).collect();
    let mut free = held.split_off((segments as f64 * HELD) as usize);
    let write = |ssd: &mut Ssd, segment: u64| -> Result<(), RequestError> {
        let (mut at, end) = (segment * sectors, (segment + 1) * sectors);
        while at < end {
            let piece = u64::from(most).min(end - at) as u32;
            ssd.serve(0, Request::write(at, piece))?;
            at += u64::from(piece);
        }
        if layout.superblocks {
            ssd.serve(0, Request::write(0, unit))?;
        }
        Ok(())
    };
    let refused = |error: RequestError| ExperimentError::Io {
        doing: "writing segments".to_owned(),
        error: std::io::Error::other(error),
    };
    for segment in &held {
        write(&mut ssd, *segment).map_err(refused)?;
    }
    let rounds = |capacities: f64| (capacity as f64 * capacities / sectors.max(1) as f64) as u64;
    let mut before = device::FlashCounts::default();
    let warm_up = rounds(size.warm_up);
    for round in 0..warm_up + rounds(size.measured) {
        if round == warm_up {
            before = ssd.flash_counts().unwrap_or_default();
        }
        // One goes, and the log goes on in the one that has been free for longest.
        let (at, next) = (below(held.len()), free.remove(0));
        let Some(place) = held.get_mut(at) else { continue };
        let gone = std::mem::replace(place, next);
        let sectors = u32::try_from(sectors).unwrap_or(u32::MAX);
        ssd.serve(0, Request::trim(gone * u64::from(sectors), sectors)).map_err(refused)?;
        free.push(gone);
        write(&mut ssd, next).map_err(refused)?;
    }
    Ok((ssd.flash_counts().unwrap_or_default() - before).write_amplification())
}
