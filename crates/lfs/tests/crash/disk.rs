//! A disk as a power failure may leave it.

use device::store::Store;
use kernel::LogEntry;
use rand_core::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::io;

pub const SECTOR: usize = 512;

/// What has happened to the writes since the last flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All that were completed are there, and nothing else.
    Prefix,
    /// Some are there, some are not.
    Reordered,
    /// Some are there, some are not, and of some the first sectors.
    Torn,
    /// Any of their sectors are there.
    Scattered,
}

/// Bytes of a disk, with a sum over its sectors that tells its states apart.
pub struct Disk {
    pub bytes: Vec<u8>,
    sectors: Vec<u64>,
    sum: u64,
    /// What was there before, if it is to be put back.
    undo: Option<Vec<(usize, [u8; SECTOR])>>,
}

/// A number for what is in a sector: FxHash over its words, with its place.
fn sum_of(number: usize, sector: &[u8]) -> u64 {
    let mut sum = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for word in sector.as_chunks::<8>().0 {
        sum = (sum.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    // The low bits of a product depend on low bits only.
    sum ^ sum >> 32
}

impl Disk {
    pub fn new(bytes: Vec<u8>) -> Disk {
        let sectors: Vec<u64> = bytes.chunks(SECTOR).enumerate().map(|(n, sector)| sum_of(n, sector)).collect();
        let sum = sectors.iter().fold(0, |sum: u64, one| sum.wrapping_add(*one));
        Disk { bytes, sectors, sum, undo: None }
    }

    /// A number that no two states share, but by a chance of one in 2^64.
    pub fn state(&self) -> u64 {
        self.sum
    }

    fn put(&mut self, number: usize, sector: &[u8]) {
        let place = &mut self.bytes[number * SECTOR..(number + 1) * SECTOR];
        if place == sector {
            return;
        }
        if let Some(undo) = &mut self.undo {
            undo.push((number, (&*place).try_into().unwrap()));
        }
        place.copy_from_slice(sector);
        let new = sum_of(number, sector);
        let old = std::mem::replace(&mut self.sectors[number], new);
        self.sum = self.sum.wrapping_sub(old).wrapping_add(new);
    }

    /// Some sectors of an entry of the log; those of a discard may read as anything.
    fn apply_sectors(&mut self, entry: &LogEntry, wanted: &mut dyn FnMut(usize) -> bool) {
        match entry {
            LogEntry::Write(write) => {
                let contents = write.contents.as_deref().unwrap();
                for (n, sector) in contents.chunks(SECTOR).enumerate().filter(|(n, _)| wanted(*n)) {
                    self.put(write.pbn.0 as usize + n, sector);
                }
            }
            LogEntry::Discard { pbn, bytes, .. } => {
                for n in (0..*bytes as usize / SECTOR).filter(|n| wanted(*n)) {
                    self.put(pbn.0 as usize + n, &[0xD1; SECTOR]);
                }
            }
            LogEntry::Flush { .. } => {}
        }
    }

    pub fn apply(&mut self, entry: &LogEntry) {
        self.apply_sectors(entry, &mut |_| true);
    }

    /// Lets the power fail with some writes not flushed: applies part of them.
    pub fn apply_some(&mut self, window: &[LogEntry], kind: Kind, random: &mut Xoshiro256PlusPlus) {
        for entry in window {
            let sectors = match entry {
                LogEntry::Write(write) => write.bytes as usize / SECTOR,
                LogEntry::Discard { bytes, .. } => *bytes as usize / SECTOR,
                LogEntry::Flush { .. } => 0,
            };
            match (kind, random.next_u64() % 4) {
                (Kind::Prefix, _) | (Kind::Reordered, 0 | 1) | (_, 0) => self.apply(entry),
                (Kind::Reordered, _) | (_, 1) => {}
                (Kind::Torn, _) => {
                    let cut = random.next_u64() as usize % (sectors + 1);
                    self.apply_sectors(entry, &mut |n| n < cut);
                }
                (Kind::Scattered, _) => self.apply_sectors(entry, &mut |_| random.next_u64().is_multiple_of(2)),
            }
        }
    }

    /// What is written from here on will be [put back](Disk::back).
    pub fn try_out(&mut self) {
        self.undo = Some(Vec::new());
    }

    /// As it was.
    pub fn back(&mut self) {
        for (number, sector) in self.undo.take().into_iter().flatten().rev() {
            self.put(number, &sector);
        }
    }
}

/// A disk that is only looked at.
pub struct Frozen<'a>(pub &'a [u8]);

impl Store for Frozen<'_> {
    fn len_bytes(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        let bytes = usize::try_from(at).ok().and_then(|at| self.0.get(at..at.checked_add(buf.len())?));
        buf.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
    fn write_at(&mut self, _at: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}
