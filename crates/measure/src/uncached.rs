//! Reads and writes of data that is on the device only.
//!
//! Files are taken out of the cache one by one (`fsync`, then `POSIX_FADV_DONTNEED`), which an ordinary user can do as
//! well.

use super::bench::{Bench, Dir};
use super::{Group, MeasureError, Mode};
use posix::{CacheState, Call, Fd, OpenFlags};
use system::vector::Class;

const BLOCK_BYTES: u64 = 4096;
/// Random requests of a size in a round.
const RANDOM_REQUESTS: usize = 12;
const PARTIAL_BYTES: u64 = 512;

#[derive(Clone, Copy)]
enum Item {
    Sequential(u64),
    Random(u64),
    First,
    Overwrite(u64),
    Partial,
    DirectRead(u64),
    DirectWrite(u64),
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Uncached {
    big_bytes: u64,
    /// Small files for first reads: name and size.
    small: Vec<(String, u64)>,
}

impl Group for Uncached {
    fn name(&self) -> &'static str {
        "uncached data"
    }

    fn classes(&self) -> &'static [Class] {
        use Class::*;
        &[ReadSeq, ReadRand, ReadFirst, ReadFirstNext, ReadDirect, WriteUncached, WritePartial, WriteDirect]
    }

    fn prepare(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        let dir = b.new_dir("uncached")?;
        self.big_bytes = b.large_file_bytes(if b.mode == Mode::Quick { 64 << 20 } else { 256 << 20 })?;
        b.make_file(dir.at("big"), self.big_bytes)?;
        let more = if b.mode == Mode::Quick { 1 } else { 2 };
        for &size in Class::ReadFirst.points() {
            let files = match size {
                0..4096 => 6,
                4096..=65_536 => 12,
                _ => 4,
            };
            for _ in 0..files * more {
                let name = b.new_name("first");
                b.make_file(dir.at(&name), size)?;
                self.small.push((name, size));
            }
        }
        b.close(dir.fd)?;
        b.sync()
    }

    fn round(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        let dir = b.open_dir("uncached")?;
        let mut items = vec![Item::First, Item::Partial];
        for (class, make) in [
            (Class::ReadSeq, Item::Sequential as fn(u64) -> Item),
            (Class::ReadRand, Item::Random),
            (Class::WriteUncached, Item::Overwrite),
            (Class::ReadDirect, Item::DirectRead),
            (Class::WriteDirect, Item::DirectWrite),
        ] {
            items.extend(class.points().iter().map(|&size| make(size)));
        }
        b.shuffle(&mut items);
        for item in items {
            if !b.go_on()? {
                break;
            }
            match item {
                Item::Sequential(size) => self.sequential(b, dir, size)?,
                Item::First => self.first(b, dir)?,
                Item::Random(size) => self.random(b, dir, Class::ReadRand, size)?,
                Item::Overwrite(size) => self.random(b, dir, Class::WriteUncached, size)?,
                Item::Partial => self.random(b, dir, Class::WritePartial, PARTIAL_BYTES)?,
                Item::DirectRead(size) => self.direct(b, dir, Class::ReadDirect, size)?,
                Item::DirectWrite(size) => self.direct(b, dir, Class::WriteDirect, size)?,
            }
        }
        b.close(dir.fd)
    }
}

impl Uncached {
    /// A fresh descriptor (no read-ahead history) of the large file, nothing of which is cached.
    fn open_cold(&self, b: &mut Bench<'_>, dir: Dir, flags: OpenFlags) -> Result<(Fd, CacheState), MeasureError> {
        let fd = b.open(dir.at("big"), OpenFlags::READ_WRITE)?;
        let state = b.evict(fd)?;
        b.close(fd)?;
        Ok((b.open(dir.at("big"), flags)?, state))
    }

    /// A run of adjacent requests from a random megabyte on.
    fn sequential(&self, b: &mut Bench<'_>, dir: Dir, size: u64) -> Result<(), MeasureError> {
        let run_bytes = (64 * size).clamp(1 << 20, 8 << 20).min(self.big_bytes);
        let starts = usize::try_from((self.big_bytes - run_bytes) >> 20).unwrap_or(0) + 1;
        let start = (b.pick(starts) as u64) << 20;
        let (fd, state) = self.open_cold(b, dir, OpenFlags::READ)?;
        // The first is not sequential to anything: it is the random read that every run begins with.
        b.quiet(&Call::Read { fd, offset: Some(start), len_bytes: size })?;
        for request in 1..run_bytes / size {
            let call = Call::Read { fd, offset: Some(start + request * size), len_bytes: size };
            b.timed(Class::ReadSeq, size, &call)?;
        }
        b.sheet.note_cache(Class::ReadSeq, size, state);
        b.close(fd)
    }

    /// Distinct places of the large file, each block aligned and farther apart than read-ahead reaches.
    fn places(&self, b: &mut Bench<'_>, size: u64) -> Vec<u64> {
        let spacing = size.next_multiple_of(BLOCK_BYTES) + (512 << 10);
        let mut places: Vec<u64> = (0..self.big_bytes / spacing).map(|slot| slot * spacing).collect();
        b.shuffle(&mut places);
        places.truncate(RANDOM_REQUESTS);
        let jitter = (256 << 10) / BLOCK_BYTES;
        places.iter().map(|place| place + (b.pick(jitter as usize) as u64 + 1) * BLOCK_BYTES).collect()
    }

    fn random(&self, b: &mut Bench<'_>, dir: Dir, class: Class, size: u64) -> Result<(), MeasureError> {
        let (fd, state) = self.open_cold(b, dir, OpenFlags::READ_WRITE)?;
        for place in self.places(b, size) {
            let call = if class == Class::ReadRand {
                Call::Read { fd, offset: Some(place), len_bytes: size }
            } else {
                Call::Write { fd, offset: Some(place), len_bytes: size, data: None }
            };
            b.timed(class, size, &call)?;
        }
        b.sheet.note_cache(class, size, state);
        b.close(fd)
    }

    fn direct(&self, b: &mut Bench<'_>, dir: Dir, class: Class, size: u64) -> Result<(), MeasureError> {
        if b.sheet.given_up(class) {
            return Ok(());
        }
        let flags = OpenFlags { direct: true, ..OpenFlags::READ_WRITE };
        let fd = match self.open_cold(b, dir, flags) {
            Ok((fd, _)) => fd,
            Err(MeasureError::Call { errno, .. }) => {
                b.sheet.give_up(class.name().to_owned(), format!("O_DIRECT is refused: {errno}"));
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        for place in self.places(b, size) {
            let call = if class == Class::ReadDirect {
                Call::Read { fd, offset: Some(place), len_bytes: size }
            } else {
                Call::Write { fd, offset: Some(place), len_bytes: size, data: None }
            };
            b.try_timed(class, size, &call)?;
        }
        b.close(fd)
    }

    /// Whole small files, opened (which is priced apart) before the clock starts.
    fn first(&self, b: &mut Bench<'_>, dir: Dir) -> Result<(), MeasureError> {
        // Two that were made one after the other, and are of one size, are read one after the other.
        let mut pairs: Vec<&[(String, u64)]> = self.small.chunks(2).collect();
        b.shuffle(&mut pairs);
        // Those of one size were made at one time, and lie near each other, as the files of a directory do that a
        // program reads.
        let mut sizes = Class::ReadFirst.points().to_vec();
        b.shuffle(&mut sizes);
        let turn =
            |pair: &[(String, u64)]| sizes.iter().position(|size| pair.first().is_some_and(|file| file.1 == *size));
        pairs.sort_by_key(|pair| turn(pair));
        let mut states = Vec::with_capacity(self.small.len());
        for (name, _) in pairs.iter().copied().flatten() {
            let fd = b.open(dir.at(name), OpenFlags::READ_WRITE)?;
            states.push(b.evict(fd)?);
            b.close(fd)?;
        }
        let mut states = states.into_iter();
        for pair in pairs {
            for ((name, size), class) in pair.iter().zip([Class::ReadFirst, Class::ReadFirstNext]) {
                let fd = b.open(dir.at(name), OpenFlags::READ)?;
                b.timed(class, *size, &Call::Read { fd, offset: None, len_bytes: *size })?;
                if let Some(state) = states.next() {
                    b.sheet.note_cache(class, *size, state);
                }
                b.close(fd)?;
            }
        }
        Ok(())
    }
}
