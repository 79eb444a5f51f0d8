//! Reads and writes in the page cache, and space.

use super::bench::{Bench, Dir};
use super::{Group, MeasureError, Mode};
use posix::{AccessMode, Call, Fallocate, Fd, OpenFlags};
use system::vector::Class;

/// A block, for where writes start; larger than or equal to that of any file system measured.
const BLOCK_BYTES: u64 = 4096;
const WARM_CHUNK_BYTES: u64 = 16 << 10;

#[derive(Clone, Copy)]
enum Item {
    Read(u64),
    Overwrite(u64),
    Append(u64),
    Extend(u64),
    ExtendAllocated(u64),
    Fallocate(u64),
}

impl Item {
    fn bytes(self) -> u64 {
        let (Item::Read(bytes)
        | Item::Overwrite(bytes)
        | Item::Append(bytes)
        | Item::Extend(bytes)
        | Item::ExtendAllocated(bytes)
        | Item::Fallocate(bytes)) = self;
        bytes
    }
}

/// One in so many requests comes after other calls: so many times five.
const ELSEWHERE_EVERY: usize = 8;
const ELSEWHERE: usize = 8;

/// Requests that are made in a row, and the largest of them: what larger ones cost, the memory that they copy decides.
const REQUESTS_IN_A_ROW: usize = 10;
const REPEATED_BYTES: u64 = 16 << 10;

/// Where memory is short, so much may be dirty before it is written back: a writer that has to wait for others' data is
/// no price of its own call (`measure::writeback` finds when that is).
const CROWDED_DIRTY_BYTES: u64 = 256 << 10;
/// Files that grow by little at the same time, of which one in so many calls turns to another (most programs write one
/// log, or what they print), and what they begin with.
const LOGS: usize = 8;
const LOG_CHANGES: usize = 8;
const LOG_START_BYTES: u64 = 100;

/// What is written is kept until there is this much of it: pages given back at once would be handed out again while the
/// processor still has them in its caches, and new data would seem cheaper than it is to a program that keeps what it
/// writes.
const KEPT_BYTES: u64 = 64 << 20;

/// Cached data, at random places of a file that is larger than the processor's caches.
#[derive(Default)]
pub(super) struct Data {
    big_bytes: u64,
    /// The cache is so small that what else is measured drives the large file out of it.
    crowded: bool,
    warm_since: Option<u64>,
    /// Files made and not removed yet, and how much was written to them.
    kept: Vec<String>,
    kept_bytes: u64,
    /// Appended since the last sync.
    dirty_bytes: u64,
}

impl Group for Data {
    fn name(&self) -> &'static str {
        "cached data"
    }

    fn classes(&self) -> &'static [Class] {
        use Class::*;
        &[ReadCached, WriteAppend, WriteExtend, WriteExtendAllocated, WriteCached, Fallocate]
    }

    fn prepare(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        b.make_dir("data")?;
        let wanted_bytes = b.large_file_bytes(if b.mode == Mode::Quick { 32 << 20 } else { 64 << 20 })?;
        let fits_bytes = b.fs.memory().map_or(u64::MAX, |limits| (limits.available_bytes / 4).max(1 << 20));
        self.big_bytes = wanted_bytes.min(fits_bytes) & !(WARM_CHUNK_BYTES - 1);
        self.crowded = fits_bytes < wanted_bytes;
        b.make_file("data/big".into(), 0)
    }

    fn round(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        let dir = b.open_dir("data")?;
        let big = b.open(dir.at("big"), OpenFlags::READ_WRITE)?;
        if self.warm_since != Some(b.drops) {
            self.write_big(b, big)?;
            self.warm_since = Some(b.drops);
        }
        let mut items = items();
        b.shuffle(&mut items);
        // What is large displaces what small ones find in the processor's caches, and is made before them.
        items.sort_by_key(|item| item.bytes() <= REPEATED_BYTES);
        if self.crowded {
            // Reads come first: afterwards there is something dirty, and old systems let readers wait while it is
            // written.
            b.sync()?;
            b.read_all(big, self.big_bytes)?;
            items.sort_by_key(|item| match item {
                Item::Read(_) => 0,
                Item::Overwrite(_) => 1,
                _ => 2,
            });
        }
        // Appends come in a run: programs that make files make many, and a file system that leaves work for later
        // (btrfs's delayed items, XFS's log) lets the later ones pay for the earlier.
        items.sort_by_key(|item| matches!(item, Item::Append(_)));
        // These are synced together before the first is timed: after each commit the next change of an inode costs
        // more.
        let allocated = items.iter().filter(|item| matches!(item, Item::ExtendAllocated(_))).count();
        let mut old_logs = (0..allocated).map(|_| Log::new(b, dir)).collect::<Result<Vec<_>, _>>()?;
        b.sync()?;
        let mut logs = (0..LOGS).map(|_| Log::new(b, dir)).collect::<Result<Vec<_>, _>>()?;
        let mut log = 0;
        for item in items {
            if !b.go_on()? {
                break;
            }
            // What is near is brought near; now and then a program has done something else since.
            let offset = match item {
                Item::Read(size) | Item::Overwrite(size) => Some(self.approach(b, big, size)?),
                _ => None,
            };
            if b.has_processor() && b.pick(ELSEWHERE_EVERY) == 0 {
                elsewhere(b, dir)?;
            }
            match item {
                Item::Read(size) => {
                    b.timed(Class::ReadCached, size, &Call::Read { fd: big, offset, len_bytes: size })?;
                }
                Item::Overwrite(size) => {
                    let call = Call::Write { fd: big, offset, len_bytes: size, data: None };
                    b.timed(Class::WriteCached, size, &call)?;
                }
                Item::Append(size) => self.append(b, dir, size)?,
                Item::Extend(size) => {
                    if b.pick(LOG_CHANGES) == 0 {
                        log = b.pick(logs.len());
                    }
                    if let Some(log) = logs.get_mut(log) {
                        log.extend(b, dir, size)?;
                    }
                }
                Item::ExtendAllocated(size) => {
                    let chosen = b.pick(old_logs.len());
                    if let Some(log) = old_logs.get_mut(chosen).filter(|log| log.holds(size)) {
                        log.lengthen(b, Class::WriteExtendAllocated, size)?;
                    }
                }
                Item::Fallocate(size) => fallocate(b, dir, size)?,
            }
        }
        if !self.crowded && b.has_processor() {
            self.repeat(b, dir, big, &mut logs)?;
        }
        logs.into_iter().chain(old_logs).try_for_each(|log| log.end(b, dir))?;
        if self.kept_bytes >= KEPT_BYTES {
            for name in std::mem::take(&mut self.kept) {
                b.unlink(dir.at(&name))?;
            }
            self.kept_bytes = 0;
        }
        // The next round overwrites clean blocks again.
        b.quiet(&Call::Fsync { fd: big })?;
        b.close(big)?;
        b.close(dir.fd)
    }
}

impl Data {
    /// Writes the large file in requests of a program's size. In one of a megabyte, or through read-ahead, the system
    /// would keep it in large folios, and the first small write into each of those pays for all of its blocks.
    fn write_big(&self, b: &mut Bench<'_>, big: Fd) -> Result<(), MeasureError> {
        b.evict(big)?;
        for chunk in 0..self.big_bytes / WARM_CHUNK_BYTES {
            let offset = Some(chunk * WARM_CHUNK_BYTES);
            b.quiet(&Call::Write { fd: big, offset, len_bytes: WARM_CHUNK_BYTES, data: None })?;
        }
        b.quiet(&Call::Fsync { fd: big }).map(|_| ())
    }

    /// Writes at the end of a new file, each from a block's start: one where the request is less than a block, else a
    /// few.
    fn append(&mut self, b: &mut Bench<'_>, dir: Dir, size: u64) -> Result<(), MeasureError> {
        let name = b.new_name("append");
        let fd = b.open(dir.at(&name), OpenFlags::CREATE_NEW)?;
        let writes = if size < BLOCK_BYTES { 1 } else { 4 };
        for _ in 0..writes {
            if self.crowded && self.dirty_bytes + size > CROWDED_DIRTY_BYTES {
                b.sync()?;
                self.dirty_bytes = 0;
            }
            self.dirty_bytes += size;
            b.timed(Class::WriteAppend, size, &Call::Write { fd, offset: None, len_bytes: size, data: None })?;
        }
        b.close(fd)?;
        self.kept.push(name);
        self.kept_bytes += writes * size.max(BLOCK_BYTES);
        Ok(())
    }

    /// Requests of one kind and size in a row, through one file: as programs read and write.
    fn repeat(&mut self, b: &mut Bench<'_>, dir: Dir, big: Fd, logs: &mut [Log]) -> Result<(), MeasureError> {
        let mut items: Vec<Item> = Vec::new();
        items.extend(Class::ReadCached.points().iter().map(|&size| Item::Read(size)));
        items.extend(Class::WriteCached.points().iter().map(|&size| Item::Overwrite(size)));
        items.extend(Class::WriteAppend.points().iter().map(|&size| Item::Append(size)));
        // A block has room for some of them.
        let lengthens = Class::WriteExtend.points().iter().filter(|&&size| size * 4 <= BLOCK_BYTES);
        items.extend(lengthens.map(|&size| Item::Extend(size)));
        items.retain(|item| item.bytes() <= REPEATED_BYTES);
        b.shuffle(&mut items);
        for item in items {
            if !b.go_on()? {
                break;
            }
            let chosen = b.pick(logs.len());
            let size = item.bytes();
            let mut offset = self.place(b, size * REQUESTS_IN_A_ROW as u64);
            b.in_a_row(REQUESTS_IN_A_ROW, &mut |b| {
                let at = Some(offset);
                offset += size;
                match item {
                    Item::Read(_) => {
                        b.quiet(&Call::Read { fd: big, offset: at, len_bytes: size })?;
                        b.timed(Class::ReadCached, size, &Call::Read { fd: big, offset: at, len_bytes: size })?;
                    }
                    Item::Overwrite(_) => {
                        b.quiet(&Call::Read { fd: big, offset: at, len_bytes: size })?;
                        let call = Call::Write { fd: big, offset: at, len_bytes: size, data: None };
                        b.timed(Class::WriteCached, size, &call)?;
                    }
                    Item::Append(_) => self.append(b, dir, size)?,
                    Item::Extend(_) => {
                        if let Some(log) = logs.get_mut(chosen) {
                            log.extend(b, dir, size)?;
                        }
                    }
                    Item::ExtendAllocated(_) | Item::Fallocate(_) => {}
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// A random place, read once so that its data is near the processor: what it costs when it is far is measured apart
    /// (`far`).
    fn approach(&self, b: &mut Bench<'_>, fd: Fd, size: u64) -> Result<u64, MeasureError> {
        let offset = self.place(b, size);
        b.quiet(&Call::Read { fd, offset: Some(offset), len_bytes: size })?;
        Ok(offset)
    }

    /// A random block where a request of this size fits.
    fn place(&self, b: &mut Bench<'_>, size: u64) -> u64 {
        let blocks = (self.big_bytes.saturating_sub(size) / BLOCK_BYTES).max(1);
        b.pick(usize::try_from(blocks).unwrap_or(usize::MAX)) as u64 * BLOCK_BYTES
    }
}

/// A round's items: fewer of the large ones, so that no size takes much more time than another.
fn items() -> Vec<Item> {
    let mut items = Vec::new();
    let count = |size: u64| match size {
        0..=16_384 => 24,
        16_385..=65_536 => 12,
        65_537..=262_144 => 6,
        _ => 3,
    };
    for (class, make) in [
        (Class::ReadCached, Item::Read as fn(u64) -> Item),
        (Class::WriteCached, Item::Overwrite),
        (Class::WriteExtend, Item::Extend),
        (Class::WriteExtendAllocated, Item::ExtendAllocated),
        (Class::Fallocate, Item::Fallocate),
    ] {
        for &size in class.points() {
            items.extend((0..count(size)).map(|_| make(size)));
        }
    }
    for &size in Class::WriteAppend.points() {
        let files = if size <= 16_384 { 48 } else { count(size) / 3 };
        items.extend((0..files).map(|_| Item::Append(size)));
    }
    items
}

/// A file that grows by little, as logs and whatever is printed do: other calls come in between.
struct Log {
    fd: Fd,
    name: String,
    bytes: u64,
}

impl Log {
    fn new(b: &mut Bench<'_>, dir: Dir) -> Result<Log, MeasureError> {
        let name = b.new_name("extend");
        let fd = b.open(dir.at(&name), OpenFlags { read: true, ..OpenFlags::CREATE_NEW })?;
        b.quiet(&Call::Write { fd, offset: None, len_bytes: LOG_START_BYTES, data: None })?;
        Ok(Log { fd, name, bytes: LOG_START_BYTES })
    }

    /// Lengthens the file without leaving its first block; a full one makes room for another.
    fn extend(&mut self, b: &mut Bench<'_>, dir: Dir, size: u64) -> Result<(), MeasureError> {
        if !self.holds(size) {
            let full = std::mem::replace(self, Log::new(b, dir)?);
            full.end(b, dir)?;
        }
        self.lengthen(b, Class::WriteExtend, size)
    }

    /// Whether so much more fits into its first block.
    fn holds(&self, size: u64) -> bool {
        self.bytes + size <= BLOCK_BYTES
    }

    fn lengthen(&mut self, b: &mut Bench<'_>, class: Class, size: u64) -> Result<(), MeasureError> {
        if b.is_virtual() {
            // Its last block is to be in memory, which a small buffer cache may not have kept.
            b.quiet(&Call::Read { fd: self.fd, offset: Some(0), len_bytes: 1 })?;
        }
        self.bytes += size;
        b.timed(class, size, &Call::Write { fd: self.fd, offset: None, len_bytes: size, data: None })?;
        Ok(())
    }

    fn end(self, b: &mut Bench<'_>, dir: Dir) -> Result<(), MeasureError> {
        b.close(self.fd)?;
        b.unlink(dir.at(&self.name))
    }
}

/// Calls that are no requests of data, as many as change what the processor's caches hold.
fn elsewhere(b: &mut Bench<'_>, dir: Dir) -> Result<(), MeasureError> {
    let at = dir.at("big");
    for _ in 0..ELSEWHERE {
        b.quiet(&Call::Stat { at, follow: true })?;
        b.quiet(&Call::Access { at, mode: AccessMode { read: true, ..AccessMode::default() } })?;
        let fd = b.open(at, OpenFlags::READ)?;
        b.quiet(&Call::Fstat { fd })?;
        b.close(fd)?;
    }
    Ok(())
}

fn fallocate(b: &mut Bench<'_>, dir: Dir, size: u64) -> Result<(), MeasureError> {
    let name = b.new_name("space");
    let fd = b.open(dir.at(&name), OpenFlags::CREATE_NEW)?;
    let call = Call::Fallocate { fd, how: Fallocate::Allocate, offset: 0, len_bytes: size };
    b.try_timed(Class::Fallocate, size, &call)?;
    b.close(fd)?;
    b.unlink(dir.at(&name))
}
