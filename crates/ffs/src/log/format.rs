//! The log as bytes: a header, and transactions in a ring. Integers are in the byte order of the file system.
//!
//! A transaction is written in one piece and has a checksum over all of it: it is there as a whole, or the log ends
//! before it. It holds sectors as they are to be, so that replaying it twice is replaying it once.

use crate::FormatError;
use crate::format::{Disk as _, Endian, Geometry, LOG_AT, check_hash, on_disk};
use crate::planted::{Bug, Planted};
use device::store::{Store, StoreError, read};
use kernel::{Block, Encode};

pub use crate::format::LogPlace;

/// Bytes of a sector: what the log counts in, and what a drive writes whole or not at all.
pub const SECTOR: u64 = 512;
/// What the header begins with.
pub const HEADER_MAGIC: u32 = 0x4653_4A48;
/// What a transaction begins with.
pub const RECORD_MAGIC: u32 = 0x4653_4A54;
/// The format's version.
pub const VERSION: u32 = 1;
/// Where a transaction's list of extents begins.
const LIST_AT: usize = 40;
/// Bytes of an extent of that list.
const EXTENT_BYTES: usize = 16;

on_disk! {
    /// The header: the first sector of the log.
    pub struct HeaderFields {
        /// Which structure.
        0 magic: u32,
        /// Of the format.
        4 version: u32,
        /// Over the sector, with this field zero.
        8 checksum: u32,
        /// Inodes in use without a name when the log was empty: open files that were removed.
        12 orphans: u32,
        /// Which log: no transaction of another is taken for one of this.
        16 id: u64,
        /// Sectors of the ring.
        24 sectors: u64,
        /// Where in the ring the first transaction is.
        32 tail: u64,
        /// Its number.
        40 seq: u64,
        /// When the file system that last used the log was mounted, as its superblock says.
        48 mtime: i64,
    }
}

on_disk! {
    /// The beginning of a transaction.
    pub struct RecordFields {
        /// Which structure.
        0 magic: u32,
        /// Over all of its sectors, with this field zero.
        4 checksum: u32,
        /// Which log.
        8 id: u64,
        /// Its number: one more than that of the one before.
        16 seq: u64,
        /// Its sectors, these among them.
        24 sectors: u32,
        /// Extents whose bytes follow.
        28 images: u32,
        /// Extents that no earlier transaction is to write: they were given up.
        32 revoked: u32,
        /// Inodes in use without a name when it was committed.
        36 orphans: u32,
    }
}

/// Sectors of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first.
    pub at: u64,
    /// How many.
    pub sectors: u32,
}

/// What a transaction says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub seq: u64,
    /// What it writes.
    pub images: Vec<Extent>,
    /// What earlier ones are not to write any more.
    pub revoked: Vec<Extent>,
    /// Inodes in use without a name.
    pub orphans: u32,
}

impl Extent {
    /// Where a block lies.
    pub(crate) fn of(block: &Block) -> Extent {
        Extent { at: block.pbn.0, sectors: block.bytes / SECTOR as u32 }
    }
}

impl HeaderFields {
    /// Its sector.
    pub fn encode(&self, endian: Endian) -> Vec<u8> {
        let mut bytes = vec![0; SECTOR as usize];
        HeaderFields { magic: HEADER_MAGIC, version: VERSION, checksum: 0, ..self.clone() }.put(endian, &mut bytes);
        let checksum = check_hash(&bytes);
        checksum.put(endian, &mut bytes, 8);
        bytes
    }
}

/// Sectors that a transaction's list takes, with the fields before it.
pub fn list_sectors(images: usize, revoked: usize) -> u64 {
    ((LIST_AT + (images + revoked) * EXTENT_BYTES) as u64).div_ceil(SECTOR)
}

impl Record {
    /// Sectors of all of it.
    pub fn sectors(&self) -> u64 {
        let images: u64 = self.images.iter().map(|extent| u64::from(extent.sectors)).sum();
        list_sectors(self.images.len(), self.revoked.len()) + images
    }

    /// All of it, with the bytes of blocks as a file system makes them.
    pub(crate) fn encode(&self, id: u64, endian: Endian, blocks: &[Block], from: &impl Encode) -> Vec<u8> {
        let mut bytes = self.encode_list(id, endian);
        for block in blocks {
            let at = bytes.len();
            bytes.resize(at + block.bytes as usize, 0);
            from.encode(block.id, block.pbn, bytes.get_mut(at..).unwrap_or_default());
        }
        seal(&mut bytes, endian);
        bytes
    }

    /// Its beginning, before the bytes of its images; [`seal`] puts in the checksum when these are there.
    pub fn encode_list(&self, id: u64, endian: Endian) -> Vec<u8> {
        let count = |extents: &[Extent]| u32::try_from(extents.len()).unwrap_or(u32::MAX);
        let fields = RecordFields {
            magic: RECORD_MAGIC,
            checksum: 0,
            id,
            seq: self.seq,
            sectors: u32::try_from(self.sectors()).unwrap_or(u32::MAX),
            images: count(&self.images),
            revoked: count(&self.revoked),
            orphans: self.orphans,
        };
        let len = list_sectors(self.images.len(), self.revoked.len()) * SECTOR;
        let mut bytes = vec![0; len as usize];
        fields.put(endian, &mut bytes);
        for (n, extent) in self.images.iter().chain(&self.revoked).enumerate() {
            let at = LIST_AT + n * EXTENT_BYTES;
            extent.at.put(endian, &mut bytes, at);
            extent.sectors.put(endian, &mut bytes, at + 8);
        }
        bytes
    }
}

/// Puts the checksum into a transaction that is otherwise complete.
pub fn seal(bytes: &mut [u8], endian: Endian) {
    0_u32.put(endian, bytes, 4);
    let checksum = check_hash(bytes);
    checksum.put(endian, bytes, 4);
}

/// The ring of a log in an image.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    /// Byte of the header.
    pub header_at: u64,
    /// Byte of the ring.
    pub at_byte: u64,
    /// Its sectors.
    pub sectors: u64,
    /// Byte order.
    pub endian: Endian,
    /// Sectors of the file system.
    volume_sectors: u64,
}

impl Ring {
    /// The one that the superblock says there is. The block with the header is followed by the ring.
    pub fn new(place: LogPlace, g: &Geometry) -> Result<Ring, FormatError> {
        let (first, frags) = (place.first.0, u64::from(place.frags));
        let inside = first > 0 && first.checked_add(frags).is_some_and(|end| end <= g.size_frags);
        if !inside || frags < u64::from(2 * g.frag) {
            let problem = format!("{frags} fragments from {first} on are no log in a file system of {}", g.size_frags);
            return Err(FormatError::field("superblock", "log", LOG_AT as u64, problem));
        }
        let header_at = g.byte_of(place.first);
        Ok(Ring {
            header_at,
            at_byte: header_at + u64::from(g.bsize),
            sectors: ((frags << g.fshift) - u64::from(g.bsize)) / SECTOR,
            endian: g.endian(),
            volume_sectors: (g.size_frags << g.fshift) / SECTOR,
        })
    }

    /// The header of a log.
    pub fn header<S: Store + ?Sized>(&self, store: &S) -> Result<HeaderFields, crate::FfsError> {
        let bytes = read(store, self.header_at, SECTOR as usize)?;
        let header = HeaderFields::get(self.endian, &bytes);
        let at_byte = self.header_at;
        if header.magic != HEADER_MAGIC {
            let (structure, found, expected) = ("header of the log".to_owned(), header.magic, HEADER_MAGIC);
            return Err(FormatError::Magic { structure, at_byte, found, expected }.into());
        }
        let wrong = |(field, at): (&'static str, u64), problem: String| -> Result<HeaderFields, crate::FfsError> {
            Err(FormatError::field("header of the log", field, at_byte + at, problem).into())
        };
        if header.version != VERSION {
            return wrong(
                HeaderFields::version.place(),
                format!("{} is not known here, only {VERSION} is", header.version),
            );
        }
        if header.encode(self.endian) != bytes {
            return wrong(HeaderFields::checksum.place(), format!("{:#x} is not that of the sector", header.checksum));
        }
        if header.sectors != self.sectors {
            return wrong(
                HeaderFields::sectors.place(),
                format!("{}, and the log has {}", header.sectors, self.sectors),
            );
        }
        if header.tail >= self.sectors {
            return wrong(
                HeaderFields::tail.place(),
                format!("{} is outside the ring of {}", header.tail, self.sectors),
            );
        }
        Ok(header)
    }

    /// Byte in the image of a place in the ring, which goes round.
    pub fn byte_of(&self, at: u64) -> u64 {
        self.at_byte + at % self.sectors * SECTOR
    }

    /// Sectors of the ring from a place on, round its end if need be.
    pub fn read<S: Store + ?Sized>(&self, store: &S, at: u64, sectors: u64) -> Result<Vec<u8>, StoreError> {
        let at = at % self.sectors;
        let first = sectors.min(self.sectors - at);
        let mut bytes = read(store, self.byte_of(at), (first * SECTOR) as usize)?;
        if first < sectors {
            bytes.extend(read(store, self.at_byte, ((sectors - first) * SECTOR) as usize)?);
        }
        Ok(bytes)
    }

    /// The transaction of a number at a place, with all of its bytes; `None` if there is none: the log ends here.
    ///
    /// # Errors
    /// Its checksum is right, and it makes no sense.
    pub fn record<S: Store + ?Sized>(
        &self,
        store: &S,
        (at, seq): (u64, u64),
        id: u64,
        planted: Planted,
    ) -> Result<Option<(Record, Vec<u8>)>, crate::FfsError> {
        let Some((fields, bytes)) = self.sealed(store, RECORD_MAGIC, (at, seq), id, planted)? else { return Ok(None) };
        let record = self.parse(&fields, &bytes, self.byte_of(at))?;
        Ok(Some((record, bytes)))
    }

    /// What begins with a magic number at a place, and has that number and the right checksum, with all of its bytes.
    pub(crate) fn sealed<S: Store + ?Sized>(
        &self,
        store: &S,
        magic: u32,
        (at, seq): (u64, u64),
        id: u64,
        planted: Planted,
    ) -> Result<Option<(RecordFields, Vec<u8>)>, StoreError> {
        let fields = RecordFields::get(self.endian, &self.read(store, at, 1)?);
        let sectors = u64::from(fields.sectors);
        let next = fields.seq == seq || planted == Some(Bug::LogOldLap) && fields.seq > 0;
        if fields.magic != magic || fields.id != id || !next || sectors == 0 || sectors > self.sectors {
            return Ok(None);
        }
        let bytes = self.read(store, at, sectors)?;
        let mut sealed = bytes.clone();
        seal(&mut sealed, self.endian);
        if sealed != bytes && planted != Some(Bug::LogChecksumIgnored) {
            return Ok(None);
        }
        Ok(Some((fields, bytes)))
    }

    fn parse(&self, fields: &RecordFields, bytes: &[u8], at_byte: u64) -> Result<Record, FormatError> {
        let wrong = |(field, at): (&'static str, u64), problem: String| {
            FormatError::field("transaction", field, at_byte + at, problem)
        };
        let (images, revoked) = (fields.images as usize, fields.revoked as usize);
        let most = bytes.len() / EXTENT_BYTES;
        if images > most || revoked > most || list_sectors(images, revoked) > u64::from(fields.sectors) {
            let problem = format!("{images} extents and {revoked} revoked do not fit {} sectors", fields.sectors);
            return Err(wrong(RecordFields::images.place(), problem));
        }
        let log = self.header_at / SECTOR..self.byte_of(0) / SECTOR + self.sectors;
        let extent = |n: usize| {
            let at = LIST_AT + n * EXTENT_BYTES;
            let extent = Extent { at: u64::get(self.endian, bytes, at), sectors: u32::get(self.endian, bytes, at + 8) };
            let end = extent.at.checked_add(extent.sectors.into());
            let inside =
                end.is_some_and(|end| end <= self.volume_sectors && (end <= log.start || extent.at >= log.end));
            if inside && extent.sectors > 0 {
                return Ok(extent);
            }
            let problem = format!("{} sectors from {} on are outside, or the log's own", extent.sectors, extent.at);
            Err(wrong(("extent", at as u64), problem))
        };
        let record = Record {
            seq: fields.seq,
            images: (0..images).map(extent).collect::<Result<_, _>>()?,
            revoked: (images..images + revoked).map(extent).collect::<Result<_, _>>()?,
            orphans: fields.orphans,
        };
        if record.sectors() != u64::from(fields.sectors) {
            let problem = format!("{}, and its extents take {}", fields.sectors, record.sectors());
            return Err(wrong(RecordFields::sectors.place(), problem));
        }
        Ok(record)
    }
}
