//! The records of journaled Soft Updates: what may be lost in a crash, named before it can be.
//!
//! ```text
//! log   batch 7          batch 8          batch 9
//!       names · space    names · space    …              tail at the first that may still matter
//! ```
//!
//! A batch of records is written in one piece into the ring of the log ([`Ring`]), with a checksum. It has no images of
//! blocks: Soft Updates keep the disk nearly consistent, and the records name the inodes, names and fragments that
//! recovery has to look at (`recover`, beside this file). McKusick and Roberson, "Journaled Soft-updates", BSDCan 2010;
//! names of records as there.

use super::format::{HeaderFields, RecordFields, Ring, SECTOR, seal};
use crate::format::{Disk as _, Endian, FragAddr};
use crate::planted::Planted;
use crate::{FfsError, FormatError};
use device::store::Store;

/// What a batch begins with.
pub const BATCH_MAGIC: u32 = 0x4653_4A52;
/// Where its records begin.
const NOTES_AT: usize = 40;
/// Bytes of a record, without its name.
const NOTE_BYTES: usize = 32;

/// A name of an inode, or a directory's `..`, which is a link to its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// What has the link.
    pub ino: u32,
    /// The directory that the entry is in.
    pub dir: u32,
    /// Byte of the entry's chunk there.
    pub chunk: u64,
    /// The entry's name.
    pub name: Box<[u8]>,
    /// Whether `ino` is a directory.
    pub is_dir: bool,
    /// Links of `ino` in memory once this is done: entries of any directory that lead to it, without its own `.`.
    pub links: i32,
    /// How many of them are names, and not `..` of others.
    pub names: u32,
    /// Directories in the group of `ino`.
    pub ndir: u32,
}

/// Fragments of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The file; 0 if it is not known yet.
    pub ino: u32,
    /// Its block: negative for an indirect one.
    pub lbn: i64,
    /// Where.
    pub addr: FragAddr,
    /// How many.
    pub frags: u32,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// `jaddref`: a name is added.
    AddRef(Reference),
    /// `jremref`: a name is removed.
    RemRef(Reference),
    /// `jaddref` and `jfreefile` of an inode without a name: its number is taken, or free again; or it is in use
    /// without a name.
    Number {
        /// Which.
        ino: u32,
        /// Whether it is a directory.
        is_dir: bool,
        /// Whether its map has it as used.
        used: bool,
        /// Directories in its group.
        ndir: u32,
    },
    /// `jnewblk`: fragments are taken for a block, or for what it grows by.
    NewBlock(Space),
    /// `jfreeblk`: a file has been cut by them.
    FreeBlock(Space),
    /// `jfreefrag`: a block has left them for another place.
    FreeFrag(Space),
}

impl Note {
    fn kind(&self) -> u8 {
        match self {
            Note::AddRef(_) => 1,
            Note::RemRef(_) => 2,
            Note::Number { .. } => 3,
            Note::NewBlock(_) => 4,
            Note::FreeBlock(_) => 5,
            Note::FreeFrag(_) => 6,
        }
    }

    fn name(&self) -> &[u8] {
        match self {
            Note::AddRef(of) | Note::RemRef(of) => &of.name,
            _ => &[],
        }
    }

    /// Bytes on the disk.
    pub fn len_bytes(&self) -> usize {
        NOTE_BYTES + self.name().len().next_multiple_of(8)
    }

    fn put(&self, endian: Endian, out: &mut Vec<u8>) {
        let at = out.len();
        out.resize(at + self.len_bytes(), 0);
        let Some(bytes) = out.get_mut(at..) else { return };
        let name = self.name();
        self.kind().put(endian, bytes, 0);
        (name.len() as u16).put(endian, bytes, 2);
        let flag = |is_dir: bool, used: bool| u8::from(is_dir) | u8::from(used) << 1;
        match self {
            Note::AddRef(of) | Note::RemRef(of) => {
                flag(of.is_dir, true).put(endian, bytes, 1);
                of.ino.put(endian, bytes, 4);
                of.dir.put(endian, bytes, 8);
                of.links.put(endian, bytes, 12);
                of.chunk.put(endian, bytes, 16);
                of.names.put(endian, bytes, 24);
                of.ndir.put(endian, bytes, 28);
            }
            Note::Number { ino, is_dir, used, ndir } => {
                flag(*is_dir, *used).put(endian, bytes, 1);
                ino.put(endian, bytes, 4);
                ndir.put(endian, bytes, 28);
            }
            Note::NewBlock(space) | Note::FreeBlock(space) | Note::FreeFrag(space) => {
                space.ino.put(endian, bytes, 4);
                space.frags.put(endian, bytes, 8);
                space.lbn.put(endian, bytes, 16);
                space.addr.0.put(endian, bytes, 24);
            }
        }
        if let Some(place) = bytes.get_mut(NOTE_BYTES..NOTE_BYTES + name.len()) {
            place.copy_from_slice(name);
        }
    }

    /// The record at the beginning of some bytes.
    fn get(endian: Endian, bytes: &[u8]) -> Option<Note> {
        let name_len = usize::from(u16::get(endian, bytes, 2));
        let name = bytes.get(NOTE_BYTES..NOTE_BYTES + name_len)?;
        let flags = u8::get(endian, bytes, 1);
        let u32_at = |at| u32::get(endian, bytes, at);
        let (is_dir, used) = (flags & 1 != 0, flags & 2 != 0);
        let ino = u32_at(4);
        let reference = || Reference {
            ino,
            dir: u32_at(8),
            chunk: u64::get(endian, bytes, 16),
            name: name.into(),
            is_dir,
            links: i32::get(endian, bytes, 12),
            names: u32_at(24),
            ndir: u32_at(28),
        };
        let space = || Space {
            ino,
            lbn: i64::get(endian, bytes, 16),
            addr: FragAddr(u64::get(endian, bytes, 24)),
            frags: u32_at(8),
        };
        Some(match u8::get(endian, bytes, 0) {
            1 => Note::AddRef(reference()),
            2 => Note::RemRef(reference()),
            3 => Note::Number { ino, is_dir, used, ndir: u32_at(28) },
            4 => Note::NewBlock(space()),
            5 => Note::FreeBlock(space()),
            6 => Note::FreeFrag(space()),
            _ => return None,
        })
    }
}

/// Sectors of a batch of records.
pub fn batch_sectors(notes: &[Note]) -> u64 {
    let bytes: usize = notes.iter().map(Note::len_bytes).sum();
    ((NOTES_AT + bytes) as u64).div_ceil(SECTOR)
}

/// A batch as bytes.
pub fn encode_batch(notes: &[Note], id: u64, seq: u64, endian: Endian) -> Vec<u8> {
    let sectors = batch_sectors(notes);
    let mut bytes = vec![0; NOTES_AT];
    let fields = RecordFields {
        magic: BATCH_MAGIC,
        checksum: 0,
        id,
        seq,
        sectors: sectors as u32,
        images: notes.len() as u32,
        revoked: 0,
        orphans: 0,
    };
    fields.put(endian, &mut bytes);
    for note in notes {
        note.put(endian, &mut bytes);
    }
    bytes.resize((sectors * SECTOR) as usize, 0);
    seal(&mut bytes, endian);
    bytes
}

/// What the log has from its tail on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Records, the oldest first.
    pub notes: Vec<Note>,
    /// Batches.
    pub batches: u64,
    /// Behind the last one, not going round.
    pub at: u64,
    /// The number of the next.
    pub seq: u64,
}

impl Window {
    /// Reads it; `None` if there is no batch at the tail.
    ///
    /// # Errors
    /// The store cannot be read, or a batch whose checksum is right makes no sense.
    pub fn read<S: Store + ?Sized>(
        store: &S,
        ring: &Ring,
        header: &HeaderFields,
        planted: Planted,
    ) -> Result<Option<Window>, FfsError> {
        let mut window = Window { at: header.tail, seq: header.seq, ..Window::default() };
        let end = header.tail + ring.sectors;
        while window.at < end
            && let Some((fields, bytes)) =
                ring.sealed(store, BATCH_MAGIC, (window.at, window.seq), header.id, planted)?
        {
            let mut rest = bytes.get(NOTES_AT..).unwrap_or_default();
            for number in 0..fields.images {
                let Some(note) = Note::get(ring.endian, rest) else {
                    let problem = format!("record {number} of {} is of no kind known here", fields.images);
                    let at_byte = ring.byte_of(window.at);
                    return Err(FormatError::field("batch of the log", "records", at_byte, problem).into());
                };
                rest = rest.get(note.len_bytes()..).unwrap_or_default();
                window.notes.push(note);
            }
            window.batches += 1;
            window.at += u64::from(fields.sectors);
            window.seq += 1;
        }
        Ok((window.batches > 0).then_some(window))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_in_either_byte_order() {
        let reference = Reference {
            ino: 7,
            dir: 2,
            chunk: 1024,
            name: b"a name"[..].into(),
            is_dir: true,
            links: 3,
            names: 1,
            ndir: 9,
        };
        let space = Space { ino: 5, lbn: -12, addr: FragAddr(1 << 40), frags: 8 };
        let notes = [
            Note::AddRef(reference.clone()),
            Note::RemRef(reference),
            Note::Number { ino: 4, is_dir: true, used: false, ndir: 2 },
            Note::NewBlock(space),
            Note::FreeBlock(space),
            Note::FreeFrag(space),
        ];
        for endian in [Endian::Little, Endian::Big] {
            let bytes = encode_batch(&notes, 1, 2, endian);
            assert_eq!(bytes.len() as u64, batch_sectors(&notes) * SECTOR);
            let mut rest = &bytes[NOTES_AT..];
            for note in &notes {
                assert_eq!(Note::get(endian, rest).as_ref(), Some(note));
                rest = &rest[note.len_bytes()..];
            }
            assert_eq!(Note::get(endian, &[0; NOTE_BYTES]), None);
        }
    }
}
