//! Copies inside the kernel, of what is on the device already and of what is still dirty.
//!
//! The two differ where a copy shares blocks: only what has blocks can be shared, so dirty data is written first.

use super::bench::{Bench, Dir};
use super::{Group, MeasureError};
use posix::{Call, Fd, OpenFlags};
use system::vector::Class;

const BLOCK_BYTES: u64 = 4096;
/// The file that is copied from, where it fits a quarter of the cache.
const SOURCE_BYTES: u64 = 8 << 20;
/// Written in requests of a program's size: those of a megabyte would leave the file in large folios.
const CHUNK_BYTES: u64 = 16 << 10;

#[derive(Clone, Copy)]
enum Item {
    Clean(u64),
    Dirty(u64),
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Copy {
    source_bytes: u64,
}

impl Group for Copy {
    fn name(&self) -> &'static str {
        "copies"
    }

    fn classes(&self) -> &'static [Class] {
        &[Class::CopyRange, Class::CopyDirty]
    }

    fn prepare(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        b.make_dir("copy")?;
        let wanted_bytes = b.large_file_bytes(SOURCE_BYTES)?;
        let fits_bytes = b.fs.memory().map_or(u64::MAX, |limits| (limits.available_bytes / 4).max(1 << 20));
        self.source_bytes = wanted_bytes.min(fits_bytes) & !(CHUNK_BYTES - 1);
        let source = b.open("copy/source".into(), OpenFlags::CREATE_NEW)?;
        for chunk in 0..self.source_bytes / CHUNK_BYTES {
            let offset = Some(chunk * CHUNK_BYTES);
            b.quiet(&Call::Write { fd: source, offset, len_bytes: CHUNK_BYTES, data: None })?;
        }
        b.quiet(&Call::Fsync { fd: source })?;
        b.close(source)
    }

    fn round(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        let dir = b.open_dir("copy")?;
        let source = b.open(dir.at("source"), OpenFlags::READ)?;
        b.read_all(source, self.source_bytes)?;
        let mut items = Vec::new();
        for (class, make, most) in
            [(Class::CopyRange, Item::Clean as fn(u64) -> Item, 24), (Class::CopyDirty, Item::Dirty, 6)]
        {
            for &size in class.points() {
                items.extend((0..if size > 256 << 10 { 3 } else { most }).map(|_| make(size)));
            }
        }
        b.shuffle(&mut items);
        // Those that write come in a run, as programs copy many files one after the other: each finds the device awake.
        items.sort_by_key(|item| matches!(item, Item::Dirty(_)));
        for item in items {
            if !b.go_on()? {
                break;
            }
            match item {
                Item::Clean(size) => {
                    let places = (self.source_bytes.saturating_sub(size) / BLOCK_BYTES).max(1);
                    let place = b.pick(usize::try_from(places).unwrap_or(usize::MAX)) as u64 * BLOCK_BYTES;
                    copy(b, dir, Class::CopyRange, source, place, size)?;
                }
                Item::Dirty(size) => {
                    let name = b.new_name("dirty");
                    let from = b.open(dir.at(&name), OpenFlags { read: true, ..OpenFlags::CREATE_NEW })?;
                    b.fill(from, 0, size)?;
                    copy(b, dir, Class::CopyDirty, from, 0, size)?;
                    b.close(from)?;
                    b.unlink(dir.at(&name))?;
                }
            }
        }
        b.close(source)?;
        b.close(dir.fd)
    }
}

/// Copies into a new file, timed, and removes it.
fn copy(b: &mut Bench<'_>, dir: Dir, class: Class, from: Fd, offset: u64, size: u64) -> Result<(), MeasureError> {
    let name = b.new_name("copy");
    let to = b.open(dir.at(&name), OpenFlags::CREATE_NEW)?;
    let call = Call::CopyRange { from, from_offset: Some(offset), to, to_offset: None, len_bytes: size };
    b.try_timed(class, size, &call)?;
    b.close(to)?;
    b.unlink(dir.at(&name))
}
