//! Replaying a log: what a crash leaves becomes what the last transaction says.
//!
//! Nothing is looked at but the log, the blocks that it names, and the cylinder groups, whose counts become the
//! summaries and the totals: time in proportion to the log, and not to the files. The log is empty only when everything
//! is in its place, so that a crash meanwhile costs nothing: replaying begins again.

use super::format::{Extent, HeaderFields, Record, Ring, SECTOR};
use super::notes::{BATCH_MAGIC, Window};
use super::replayed::{Noted, Replayed};
use crate::format::{Csum, CsumTotal, Geometry, GroupNo, LogPlace};
use crate::image::{Located, Search, locate, read_inode};
use crate::integrity::Integrity;
use crate::planted::{Bug, Planted};
use crate::policy::Options;
use crate::{Ffs, FfsError, Image};
use device::store::{Overlay, Store, read, write};
use kernel::{Block, Pbn, ReadAhead, Transfers, Untimed, Volume as _};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that are moved in one piece.
const PIECE_SECTORS: u64 = 128;
/// Blocks that freeing files without a name keeps in memory.
const CACHE_BYTES: u64 = 4 << 20;

/// A log as a mount begins with it: empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogState {
    /// Its header's place.
    pub(crate) header: Pbn,
    /// Its ring's.
    pub(crate) ring: Pbn,
    pub(crate) sectors: u64,
    pub(crate) id: u64,
    /// Where the next transaction goes.
    pub(crate) at: u64,
    /// Its number.
    pub(crate) seq: u64,
}

impl LogState {
    /// The log of an image, if it has one.
    ///
    /// # Errors
    /// There is something in it: it must be replayed first.
    pub(crate) fn load<S: Store>(image: &Image<S>) -> Result<Option<LogState>, FfsError> {
        let Some(place) = image.superblock().log_place() else { return Ok(None) };
        let ring = Ring::new(place, image.geometry())?;
        let header = ring.header(image.store())?;
        if !is_empty(image.store(), &ring, &header)? {
            let why = "its log has not been replayed; `fsage fsck IMAGE --repair` does";
            return Err(FfsError::NotWritable(why.to_owned()));
        }
        Ok(Some(LogState::of(&ring, &header)))
    }

    pub(crate) fn of(ring: &Ring, header: &HeaderFields) -> LogState {
        LogState {
            header: Pbn(ring.header_at / SECTOR),
            ring: Pbn(ring.at_byte / SECTOR),
            sectors: ring.sectors,
            id: header.id,
            at: header.tail,
            seq: header.seq,
        }
    }
}

/// Replays the log of the file system in a store, if it has one; `None` if not.
///
/// # Errors
/// The store cannot be read or written; or the log makes no sense, in which case nothing has been written.
pub fn replay<S: Store>(store: &mut S) -> Result<Option<Replayed>, FfsError> {
    replay_planted(store, None)
}

/// The same with a bug that a test must find.
#[doc(hidden)]
pub fn replay_planted<S: Store>(store: &mut S, planted: Planted) -> Result<Option<Replayed>, FfsError> {
    replay_any(store, planted)
}

fn replay_any(store: &mut dyn Store, planted: Planted) -> Result<Option<Replayed>, FfsError> {
    let mut noted = Noted { store, steps: Vec::new(), reads: RefCell::default() };
    let done = replay_noted(&mut noted, planted)?;
    let reads = noted.reads.into_inner();
    let reads = move |done: &Replayed| if done.records > 0 { reads } else { Vec::new() };
    Ok(done.map(|done| Replayed { steps: noted.steps, reads: reads(&done), ..done }))
}

fn replay_noted(store: &mut Noted<'_>, planted: Planted) -> Result<Option<Replayed>, FfsError> {
    let located = locate(store, Search::Standard)?;
    let Some(place) = located.sb.log_place() else { return Ok(None) };
    let ring = Ring::new(place, &located.geometry)?;
    let header = ring.header(store)?;
    let clean = located.sb.is_marked_clean();
    if clean || !located.sb.log_in_use() || located.sb.mtime != header.mtime {
        // Others have used the file system since, or it has been checked: what is in the log is out of date.
        if !is_empty(store, &ring, &header)? {
            empty_anew(store, place, &located.geometry)?;
        }
        return Ok(Some(Replayed { log_sectors: 1, ..Replayed::default() }));
    }
    if let Some(window) = Window::read(store, &ring, &header, planted)? {
        // Reads of the log are counted as such.
        store.reads.get_mut().clear();
        return super::recover::recover(store, &located, &ring, &header, &window, planted).map(Some);
    }
    let scanned = Scanned::new(store, &ring, &header, planted)?;
    let mut done = Replayed {
        transactions: scanned.transactions,
        log_sectors: scanned.at - header.tail + 1,
        counted: true,
        ..Replayed::default()
    };
    let emptied =
        HeaderFields { tail: scanned.at % ring.sectors, seq: scanned.seq, orphans: scanned.orphans, ..header.clone() };
    if planted == Some(Bug::ReplayEmptiesFirst) {
        write(store, ring.header_at, &emptied.encode(ring.endian))?;
    }
    done.sectors = scanned.write_home(store, &ring)?;
    count(store)?;
    write(store, ring.header_at, &emptied.encode(ring.endian))?;
    store.flush();
    if scanned.orphans > 0 {
        done.orphans = free_orphans(store, &ring, &emptied, planted)?;
    }
    mark_clean(store)?;
    Ok(Some(done))
}

/// Whether there is nothing in a log.
fn is_empty<S: Store + ?Sized>(store: &S, ring: &Ring, header: &HeaderFields) -> Result<bool, FfsError> {
    let first = ring.record(store, (header.tail, header.seq), header.id, None)?;
    let batch = ring.sealed(store, BATCH_MAGIC, (header.tail, header.seq), header.id, None)?;
    Ok(first.is_none() && batch.is_none() && header.orphans == 0)
}

/// Makes a log that cannot be read an empty one. No transaction that may lie in it is taken for one of the new log.
/// `false` if its inode does not have that place: nothing is written then.
pub(crate) fn empty_anew<S: Store>(store: &mut S, place: LogPlace, g: &Geometry) -> Result<bool, FfsError> {
    let (Ok(ring), Ok(inode)) = (Ring::new(place, g), read_inode(store, g, kernel::Ino(place.ino))) else {
        return Ok(false);
    };
    let begins = inode.db.first().is_some_and(|first| first.unsigned_abs() == place.first.0);
    if !begins || inode.size != u64::from(place.frags) << g.fshift {
        return Ok(false);
    }
    let before = HeaderFields::get(ring.endian, &read(store, ring.header_at, SECTOR as usize)?);
    let id = before.id.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let header = HeaderFields { id, sectors: ring.sectors, seq: 1, ..HeaderFields::default() };
    write(store, ring.header_at, &header.encode(ring.endian))?;
    Ok(true)
}

/// What a log says.
struct Scanned {
    transactions: u64,
    /// Behind the last one, not going round.
    at: u64,
    /// The number of the next.
    seq: u64,
    orphans: u32,
    /// Each sector that is to be written, with the place in the ring of what goes there.
    sectors: BTreeMap<u64, u64>,
}

impl Scanned {
    fn new<S: Store>(store: &S, ring: &Ring, header: &HeaderFields, planted: Planted) -> Result<Scanned, FfsError> {
        let mut scanned = Scanned {
            transactions: 0,
            at: header.tail,
            seq: header.seq,
            orphans: header.orphans,
            sectors: BTreeMap::new(),
        };
        let end = header.tail + ring.sectors;
        while scanned.at < end
            && let Some((record, _)) = ring.record(store, (scanned.at, scanned.seq), header.id, planted)?
        {
            if scanned.at + record.sectors() > end {
                break;
            }
            scanned.take(&record);
        }
        Ok(scanned)
    }

    fn take(&mut self, record: &Record) {
        let Record { images, revoked, orphans, .. } = record;
        for extent in revoked {
            for sector in extent.at..extent.at + u64::from(extent.sectors) {
                self.sectors.remove(&sector);
            }
        }
        let mut from = self.at + record.sectors() - images.iter().map(|extent| u64::from(extent.sectors)).sum::<u64>();
        for extent in images {
            for n in 0..u64::from(extent.sectors) {
                self.sectors.insert(extent.at + n, from + n);
            }
            from += u64::from(extent.sectors);
        }
        self.transactions += 1;
        self.at += record.sectors();
        self.seq += 1;
        self.orphans = *orphans;
    }

    /// Puts every sector into its place, neighbours together.
    fn write_home(&self, store: &mut Noted<'_>, ring: &Ring) -> Result<u64, FfsError> {
        let mut written = 0;
        let mut rest = self.sectors.iter().map(|(to, from)| (*to, *from)).peekable();
        while let Some((first, from)) = rest.next() {
            let mut bytes = ring.read(store, from, 1)?;
            let mut sectors = 1;
            while sectors < PIECE_SECTORS
                && let Some((_, from)) = rest.next_if(|(to, _)| *to == first + sectors)
            {
                bytes.extend(ring.read(store, from, 1)?);
                sectors += 1;
            }
            write(store, first * SECTOR, &bytes)?;
            written += sectors;
        }
        store.flush();
        Ok(written)
    }
}

/// Works the summaries and the totals out from the cylinder groups.
fn count(store: &mut Noted<'_>) -> Result<(), FfsError> {
    let Located { mut sb, geometry, at_byte, .. } = locate(store, Search::Standard)?;
    let g = &geometry;
    let mut summaries = vec![0; g.cssize as usize];
    let mut total = CsumTotal::default();
    for number in 0..g.ncg {
        let at = g.byte_of(g.group_block(GroupNo(number)));
        let bytes = read(store, at, g.cgsize as usize)?;
        let group = crate::CylinderGroup::decode(&bytes, g, at)?;
        total.add(&group.cs);
        group.cs.encode(summaries.get_mut(number as usize * Csum::BYTES..).unwrap_or_default(), g.endian());
    }
    write(store, g.byte_of(g.csaddr), &summaries)?;
    sb.set_cstotal(&total);
    write(store, at_byte, &sb.encode())?;
    store.flush();
    Ok(())
}

/// Marks the file system as clean, and the log as not in use: last, and when the totals are there, since a superblock
/// is more than a sector.
fn mark_clean(store: &mut Noted<'_>) -> Result<(), FfsError> {
    let Located { mut sb, at_byte, .. } = locate(store, Search::Standard)?;
    (sb.clean, sb.fmod) = (1, 0);
    sb.set_log_in_use(false);
    if sb.wide() {
        (sb.pendingblocks, sb.pendinginodes) = (0, 0);
        sb.flags &= !(crate::format::flags::UNCLEAN | crate::format::flags::NEEDSFSCK);
    }
    write(store, at_byte, &sb.encode())?;
    store.flush();
    Ok(())
}

/// Frees files that nobody has a name for and nobody has open any more: as a transaction of the log, which is empty
/// otherwise. The inodes are looked through for them.
fn free_orphans(store: &mut Noted<'_>, ring: &Ring, header: &HeaderFields, planted: Planted) -> Result<u64, FfsError> {
    let (volume, epoch_ns) = {
        let mut overlay = Overlay::new(&mut *store.store);
        write(&mut overlay, ring.header_at, &HeaderFields { orphans: 0, ..header.clone() }.encode(ring.endian))?;
        let image = Image::open(overlay, Search::Standard)?;
        let options = Options { integrity: Integrity::Noorder, ..Options::default() };
        (Ffs::load(&image, options)?, image.superblock().time().saturating_mul(1_000_000_000))
    };
    let orphans = volume.without_a_name();
    let transfers = Transfers { largest_bytes: 1 << 16, read_ahead: ReadAhead::None, cluster_writes: false };
    let mut untimed = Untimed::new(volume, CACHE_BYTES, 64, transfers, epoch_ns);
    let blocks: Vec<Block> = untimed.run(|volume, cx| {
        cx.note_changes(true);
        orphans.iter().for_each(|ino| volume.release(cx, *ino));
        let mut changed = BTreeSet::new();
        cx.take_changes(&mut |id| {
            changed.insert(id);
        });
        changed.into_iter().filter_map(|id| cx.cache().block(id)).collect()
    });
    let volume = untimed.into_volume();
    let images = blocks.iter().map(Extent::of).collect();
    let record = Record { seq: header.seq, images, revoked: Vec::new(), orphans: 0 };
    if record.sectors() > ring.sectors {
        let problem = format!("freeing {} files without a name takes more than the log holds", orphans.len());
        return Err(FfsError::Inode { ino: orphans.first().map_or(0, |ino| ino.0), problem });
    }
    let bytes = record.encode(header.id, ring.endian, &blocks, &volume);
    for (at, sector) in (header.tail..).zip(bytes.chunks(SECTOR as usize)) {
        write(store, ring.byte_of(at), sector)?;
    }
    store.flush();
    let scanned = Scanned::new(store, ring, header, planted)?;
    scanned.write_home(store, ring)?;
    count(store)?;
    let emptied = HeaderFields { tail: scanned.at % ring.sectors, seq: scanned.seq, orphans: 0, ..header.clone() };
    write(store, ring.header_at, &emptied.encode(ring.endian))?;
    store.flush();
    Ok(orphans.len() as u64)
}
