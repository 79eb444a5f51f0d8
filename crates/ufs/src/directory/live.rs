//! A directory in memory: its bytes as they are on disk, and what finds names and room in them.
//!
//! A new entry goes to the first entry with enough room behind its name; else to the first chunk that has enough in
//! all, which is compacted; else to a new chunk at the end (`ufs_lookup`, `ufs_direnter2`). Chunks at the end without
//! entries are given up when the next name is entered.

use super::chunk::{self, DIRBLKSIZ, DirFormat, RawEntry, entry_bytes, fresh_chunk, parse_chunk, remove};
use crate::{FormatError, Ino};
use rustc_hash::FxHasher;
use std::hash::Hasher as _;

const HEAD: usize = 8;

/// A directory.
#[derive(Clone, Debug)]
pub struct Directory {
    format: DirFormat,
    bytes: Vec<u8>,
    names: NameIndex,
    /// Of each chunk.
    rooms: Vec<Room>,
    /// All chunks before this one have no room for any name.
    full_before: usize,
    entries: u32,
    /// Where the last lookup ended: the next begins there (`i_diroff`).
    pub last_found: u32,
}

/// Room in a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Room {
    /// Behind one entry, the most.
    largest: u16,
    /// In all.
    total: u16,
}

/// The least bytes an entry takes.
const LEAST: u16 = 12;

/// A place for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// In a chunk there is.
    Chunk(usize),
    /// In a new one at the end.
    Append,
}

/// An entry found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its byte in the directory.
    pub at: u32,
    /// Its inode.
    pub ino: u32,
}

impl Directory {
    /// A directory of one chunk with `.` and `..`.
    pub fn new(format: DirFormat, own: u32, parent: u32, kind: u8) -> Directory {
        let mut bytes = fresh_chunk(format);
        chunk::insert(&mut bytes, format, Ino(own), kind, b".");
        chunk::insert(&mut bytes, format, Ino(parent), kind, b"..");
        let mut new = Directory::without_chunks(format);
        new.append(bytes);
        new.entries = 2;
        new
    }

    fn without_chunks(format: DirFormat) -> Directory {
        Directory {
            format,
            bytes: Vec::new(),
            names: NameIndex::default(),
            rooms: Vec::new(),
            full_before: 0,
            entries: 0,
            last_found: 0,
        }
    }

    /// From its bytes, whole chunks; an error if they are not sound.
    pub fn load(format: DirFormat, bytes: &[u8]) -> Result<Directory, FormatError> {
        let mut directory = Directory::without_chunks(format);
        for (number, chunk) in bytes.chunks(DIRBLKSIZ).enumerate() {
            let at = number * DIRBLKSIZ;
            let entries = parse_chunk(chunk, format, at as u64)?;
            directory.append(chunk.to_vec());
            for entry in entries {
                directory.entries += 1;
                if entry.name != b"." && entry.name != b".." {
                    directory.names.insert(&entry.name, (at + entry.at) as u32);
                }
            }
        }
        Ok(directory)
    }

    fn append(&mut self, chunk: Vec<u8>) {
        self.rooms.push(room(&chunk, self.format));
        self.bytes.extend(chunk);
    }

    /// Its length.
    pub fn len_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it holds no names but `.` and `..`.
    pub fn is_empty(&self) -> bool {
        self.names.len == 0
    }

    /// How many entries it has.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Finds a name, neither `.` nor `..`.
    pub fn find(&self, name: &[u8]) -> Option<Found> {
        let at = self.names.find(&self.bytes, self.format, name)?;
        Some(Found { at, ino: RawEntry::get(&self.bytes, at as usize, self.format).ino })
    }

    /// Where `..` leads; `None` if it has none.
    pub fn parent(&self) -> Option<u32> {
        self.dotdot().map(|at| RawEntry::get(&self.bytes, at, self.format).ino)
    }

    /// `..` is the second entry of the first chunk.
    fn dotdot(&self) -> Option<usize> {
        let at = usize::from(RawEntry::get(&self.bytes, 0, self.format).reclen);
        let second = RawEntry::get(&self.bytes, at, self.format);
        (second.namlen == 2 && self.bytes.get(at + HEAD..at + HEAD + 2) == Some(b"..")).then_some(at)
    }

    /// Makes `..` lead elsewhere.
    pub fn set_parent(&mut self, parent: u32) {
        if let Some(at) = self.dotdot() {
            self.rewrite(at as u32, parent, None);
        }
    }

    /// Makes an entry lead to another inode.
    pub fn rewrite(&mut self, at: u32, ino: u32, kind: Option<u8>) {
        let mut head = RawEntry::get(&self.bytes, at as usize, self.format);
        head.ino = ino;
        head.kind = kind.unwrap_or(head.kind);
        head.put(&mut self.bytes, at as usize, self.format);
    }

    /// Where a name of so many bytes goes.
    pub fn slot(&self, namlen: usize) -> Slot {
        let needed = entry_bytes(namlen) as u16;
        let candidates = || (0..).zip(&self.rooms).skip(self.full_before);
        let found = candidates().find(|(_, room)| room.largest >= needed);
        let found = found.or_else(|| candidates().find(|(_, room)| room.total >= needed));
        found.map_or(Slot::Append, |(chunk, _)| Slot::Chunk(chunk))
    }

    /// How long it will be if a name goes to a slot: chunks behind that hold nothing are given up.
    pub fn len_after(&self, slot: Slot) -> u64 {
        let chunks = match slot {
            Slot::Append => self.rooms.len() + 1,
            Slot::Chunk(chunk) => {
                let last = self.rooms.iter().rposition(|room| usize::from(room.total) < DIRBLKSIZ).unwrap_or(0);
                last.max(chunk) + 1
            }
        };
        (chunks * DIRBLKSIZ) as u64
    }

    /// Gives up chunks at the end, which hold nothing.
    pub fn cut(&mut self, len_bytes: u64) {
        let chunks = (len_bytes as usize / DIRBLKSIZ).min(self.rooms.len());
        debug_assert!(self.rooms.iter().skip(chunks).all(|room| usize::from(room.total) == DIRBLKSIZ));
        self.rooms.truncate(chunks);
        self.bytes.truncate(chunks * DIRBLKSIZ);
        self.full_before = self.full_before.min(chunks);
        if u64::from(self.last_found) >= len_bytes {
            self.last_found = 0;
        }
    }

    /// Enters a name that is not there. Returns the byte of the chunk that has changed.
    pub fn enter(&mut self, slot: Slot, name: &[u8], ino: u32, kind: u8) -> u64 {
        let chunk = match slot {
            Slot::Chunk(chunk) => chunk,
            Slot::Append => {
                let fresh = fresh_chunk(self.format);
                self.append(fresh);
                self.rooms.len() - 1
            }
        };
        let base = chunk * DIRBLKSIZ;
        let needed = entry_bytes(name.len());
        let at = base + self.make_room(base, needed);
        // The entry there has the room behind its own name, or none of its own.
        let mut head = RawEntry::get(&self.bytes, at, self.format);
        let held = if head.ino == 0 { 0 } else { entry_bytes(head.namlen.into()) };
        let reclen = usize::from(head.reclen);
        if held > 0 {
            head.reclen = held as u16;
            head.put(&mut self.bytes, at, self.format);
        }
        let new_at = at + held;
        let kind = if self.format.old { 0 } else { kind };
        let new = RawEntry { ino, reclen: (reclen - held) as u16, kind, namlen: name.len() as u16 };
        new.put(&mut self.bytes, new_at, self.format);
        if let Some(place) = self.bytes.get_mut(new_at + HEAD..new_at + needed) {
            let (text, rest) = place.split_at_mut(name.len());
            text.copy_from_slice(name);
            rest.fill(0);
        }
        self.names.insert(name, new_at as u32);
        self.entries += 1;
        self.recount(chunk);
        base as u64
    }

    /// The byte, in a chunk, of an entry with room for `needed` more bytes; entries before it move together if there is
    /// none yet.
    fn make_room(&mut self, base: usize, needed: usize) -> usize {
        let format = self.format;
        let mut at = 0;
        let (mut first_with_room, mut gathered) = (None, 0);
        while at < DIRBLKSIZ {
            let head = RawEntry::get(&self.bytes, base + at, format);
            let reclen = usize::from(head.reclen).max(HEAD);
            let room = reclen - if head.ino == 0 { 0 } else { entry_bytes(head.namlen.into()) };
            if room >= needed {
                return at;
            }
            at += reclen;
        }
        // None has enough: from the first with any room on, until there is enough.
        let mut end = 0;
        while end < DIRBLKSIZ && gathered < needed {
            let head = RawEntry::get(&self.bytes, base + end, format);
            let reclen = usize::from(head.reclen).max(HEAD);
            let room = reclen - if head.ino == 0 { 0 } else { entry_bytes(head.namlen.into()) };
            if room > 0 {
                first_with_room.get_or_insert(end);
                gathered += room;
            }
            end += reclen;
        }
        self.squeeze(base, first_with_room.unwrap_or(0), end.min(DIRBLKSIZ))
    }

    /// Moves the entries of a range together; the last of them gets the room. Returns its byte in the chunk.
    fn squeeze(&mut self, base: usize, from: usize, to: usize) -> usize {
        let format = self.format;
        let old: Vec<u8> = self.bytes.get(base + from..base + to).unwrap_or_default().to_vec();
        let (mut read, mut write) = (0, 0);
        let mut last = None;
        while read < old.len() {
            let head = RawEntry::get(&old, read, format);
            let size = entry_bytes(head.namlen.into());
            if head.ino != 0 {
                let target = base + from + write;
                if let (Some(place), Some(entry)) =
                    (self.bytes.get_mut(target..target + size), old.get(read..read + size))
                {
                    place.copy_from_slice(entry);
                }
                RawEntry { reclen: size as u16, ..head }.put(&mut self.bytes, target, format);
                if let Some(name) = old.get(read + HEAD..read + HEAD + usize::from(head.namlen)) {
                    self.names.moved(name, (base + from + read) as u32, target as u32);
                }
                last = Some(write);
                write += size;
            }
            read += usize::from(head.reclen).max(HEAD);
        }
        let at = last.unwrap_or(0);
        let mut head = RawEntry::get(&self.bytes, base + from + at, format);
        if last.is_none() {
            head.ino = 0;
        }
        head.reclen = (old.len() - at) as u16;
        head.put(&mut self.bytes, base + from + at, format);
        from + at
    }

    /// Takes the entry at a byte out. Returns the byte of the chunk that has changed.
    pub fn leave(&mut self, name: &[u8], at: u32) -> u64 {
        let (chunk, within) = (at as usize / DIRBLKSIZ, at as usize % DIRBLKSIZ);
        self.names.remove(&self.bytes, self.format, name);
        if let Some(bytes) = self.bytes.get_mut(chunk * DIRBLKSIZ..(chunk + 1) * DIRBLKSIZ) {
            remove(bytes, self.format, within);
        }
        self.entries -= 1;
        self.recount(chunk);
        (chunk * DIRBLKSIZ) as u64
    }

    fn recount(&mut self, chunk: usize) {
        let bytes = self.bytes.get(chunk * DIRBLKSIZ..(chunk + 1) * DIRBLKSIZ).unwrap_or_default();
        let now = room(bytes, self.format);
        if let Some(place) = self.rooms.get_mut(chunk) {
            *place = now;
        }
        if now.total >= LEAST {
            self.full_before = self.full_before.min(chunk);
        } else if self.full_before == chunk {
            let full = self.rooms.iter().skip(chunk).take_while(|room| room.total < LEAST).count();
            self.full_before = chunk + full;
        }
    }

    /// The entry at or after a byte: `(its byte, its head, its name)`.
    pub fn entry_from(&self, at: u64) -> Option<(u64, RawEntry, &[u8])> {
        let at = usize::try_from(at).ok()?;
        // Entries are found from the beginning of their chunk.
        let mut here = at / DIRBLKSIZ * DIRBLKSIZ;
        while here < self.bytes.len() {
            let head = RawEntry::get(&self.bytes, here, self.format);
            if here >= at && head.ino != 0 {
                let name = self.bytes.get(here + HEAD..here + HEAD + usize::from(head.namlen))?;
                return Some((here as u64, head, name));
            }
            here += usize::from(head.reclen).max(HEAD);
        }
        None
    }

    /// The byte behind an entry.
    pub fn behind(at: u64, head: &RawEntry) -> u64 {
        at + u64::from(head.reclen)
    }
}

/// The room of a sound chunk.
fn room(chunk: &[u8], format: DirFormat) -> Room {
    let mut room = Room::default();
    let mut at = 0;
    while at < chunk.len() {
        let head = RawEntry::get(chunk, at, format);
        let held = if head.ino == 0 { 0 } else { entry_bytes(head.namlen.into()) as u16 };
        let behind = head.reclen.saturating_sub(held);
        room.largest = room.largest.max(behind);
        room.total += behind;
        at += usize::from(head.reclen).max(HEAD);
    }
    room
}

/// Finds names: an open hash table of their places in the directory's bytes.
#[derive(Clone, Debug, Default)]
struct NameIndex {
    /// Part of the hash, and the entry's byte; [`EMPTY`] and [`TOMBSTONE`] are no entries. A power of two of them.
    slots: Vec<(u32, u32)>,
    len: usize,
    tombstones: usize,
}

const EMPTY: u32 = u32::MAX;
const TOMBSTONE: u32 = u32::MAX - 1;

impl NameIndex {
    fn hash(name: &[u8]) -> u32 {
        let mut hasher = FxHasher::default();
        hasher.write(name);
        let hash = hasher.finish();
        (hash ^ (hash >> 32)) as u32
    }

    fn insert(&mut self, name: &[u8], at: u32) {
        if (self.len + self.tombstones + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        self.len += 1;
        self.put(NameIndex::hash(name), at);
    }

    fn put(&mut self, hash: u32, at: u32) {
        let mask = self.slots.len() - 1;
        let mut here = hash as usize & mask;
        while let Some(slot) = self.slots.get_mut(here) {
            if slot.1 >= TOMBSTONE {
                self.tombstones -= usize::from(slot.1 == TOMBSTONE);
                *slot = (hash, at);
                return;
            }
            here = (here + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let size = ((self.len + 1) * 2).next_power_of_two().max(4);
        let old = std::mem::replace(&mut self.slots, vec![(0, EMPTY); size]);
        self.tombstones = 0;
        for (hash, at) in old {
            if at < TOMBSTONE {
                self.put(hash, at);
            }
        }
    }

    /// The slot of the entry that `is` says it is.
    fn slot_of(&self, name: &[u8], is: impl Fn(u32) -> bool) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let (hash, mask) = (NameIndex::hash(name), self.slots.len() - 1);
        let mut here = hash as usize & mask;
        loop {
            match self.slots.get(here)? {
                (_, EMPTY) => return None,
                (known, at) if *known == hash && *at < TOMBSTONE && is(*at) => return Some(here),
                _ => here = (here + 1) & mask,
            }
        }
    }

    fn find(&self, bytes: &[u8], format: DirFormat, name: &[u8]) -> Option<u32> {
        let slot = self.slot_of(name, |at| {
            let at = at as usize;
            usize::from(RawEntry::get(bytes, at, format).namlen) == name.len()
                && bytes.get(at + HEAD..at + HEAD + name.len()) == Some(name)
        })?;
        self.slots.get(slot).map(|(_, at)| *at)
    }

    fn remove(&mut self, bytes: &[u8], format: DirFormat, name: &[u8]) {
        let Some(at) = self.find(bytes, format, name) else { return };
        if let Some(slot) = self.slot_of(name, |other| other == at)
            && let Some(place) = self.slots.get_mut(slot)
        {
            place.1 = TOMBSTONE;
            self.len -= 1;
            self.tombstones += 1;
        }
    }

    fn moved(&mut self, name: &[u8], from: u32, to: u32) {
        if let Some(slot) = self.slot_of(name, |at| at == from)
            && let Some(place) = self.slots.get_mut(slot)
        {
            place.1 = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endian;
    use std::collections::BTreeMap;

    const FORMAT: DirFormat = DirFormat { endian: Endian::Little, old: false };

    fn names(directory: &Directory) -> Vec<(Vec<u8>, u32)> {
        let mut names = Vec::new();
        let mut at = 0;
        while let Some((here, head, name)) = directory.entry_from(at) {
            names.push((name.to_vec(), head.ino));
            at = Directory::behind(here, &head);
        }
        names
    }

    fn enter(directory: &mut Directory, name: &[u8], ino: u32) {
        let slot = directory.slot(name.len());
        let len = directory.len_after(slot);
        if len < directory.len_bytes() {
            directory.cut(len);
        }
        directory.enter(slot, name, ino, 8);
        assert_eq!(directory.len_bytes(), len);
    }

    #[test]
    fn room_is_used_again_and_chunks_are_compacted() {
        let mut directory = Directory::new(FORMAT, 2, 2, 4);
        // 24 bytes are taken; entries of 60 fill the chunk up to 8 * 60 + 24 = 504.
        for n in 0..8 {
            enter(&mut directory, &[b'a' + n; 51], 10 + u32::from(n));
        }
        assert_eq!(directory.len_bytes(), 512);
        assert_eq!(directory.slot(51), Slot::Append);
        for n in [1, 4] {
            let name = [b'a' + n; 51];
            let at = directory.find(&name).unwrap().at;
            directory.leave(&name, at);
        }
        // The first gap that is large enough; then two gaps of 60 and 60 - 24, and the 8 at the end, hold no 100
        // together ...
        enter(&mut directory, b"first gap", 30);
        assert_eq!(directory.find(b"first gap").unwrap().at, 24 + 60);
        assert_eq!(directory.slot(90), Slot::Chunk(0), "compacted");
        enter(&mut directory, &[b'z'; 90], 31);
        assert_eq!(directory.len_bytes(), 512);
        assert_eq!(names(&directory).len(), 2 + 6 + 2);
        for n in [0, 2, 3, 5, 6, 7] {
            assert_eq!(directory.find(&[b'a' + n; 51]).unwrap().ino, 10 + u32::from(n), "moved, and found");
        }
        assert_eq!(directory.find(&[b'z'; 90]).unwrap().ino, 31);
    }

    #[test]
    fn empty_chunks_at_the_end_are_given_up() {
        let mut directory = Directory::new(FORMAT, 2, 2, 4);
        let name = |n: u32| format!("a name that takes some room {n:04}").into_bytes();
        for n in 0..40 {
            enter(&mut directory, &name(n), 10 + n);
        }
        assert_eq!(directory.len_bytes(), 4 * 512);
        for n in 5..40 {
            let at = directory.find(&name(n)).unwrap().at;
            directory.leave(&name(n), at);
        }
        assert_eq!(directory.len_bytes(), 4 * 512, "only entering gives up");
        enter(&mut directory, b"new", 99);
        assert_eq!(directory.len_bytes(), 512);
        assert_eq!((directory.entries(), directory.find(&name(4)).unwrap().ino), (8, 14));
    }

    #[test]
    fn agrees_with_a_map_of_names() {
        use rand_core::{Rng as _, SeedableRng as _};
        let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(7);
        let mut directory = Directory::new(FORMAT, 2, 2, 4);
        let mut model: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        for round in 0..20_000_u32 {
            let key = random.next_u32() % 300;
            let name = format!("{key}{}", "x".repeat((key as usize * 7) % 60)).into_bytes();
            match model.remove(&name) {
                Some(ino) => {
                    let found = directory.find(&name).unwrap();
                    assert_eq!(found.ino, ino);
                    directory.leave(&name, found.at);
                }
                None => {
                    assert_eq!(directory.find(&name), None);
                    enter(&mut directory, &name, round + 3);
                    model.insert(name, round + 3);
                }
            }
            if round % 500 == 0 {
                let mut listed = names(&directory);
                listed.drain(..2);
                listed.sort();
                assert!(listed.iter().map(|(name, ino)| (name, ino)).eq(&model));
                let again = Directory::load(FORMAT, directory.bytes()).unwrap();
                assert_eq!((again.entries, again.rooms), (directory.entries, directory.rooms.clone()));
            }
        }
    }
}
