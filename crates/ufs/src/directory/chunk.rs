//! Directories: chunks of 512 bytes, each filled with entries (`struct direct`).

use crate::{Disk as _, Endian, FormatError, Ino};

/// Bytes of a chunk (`DIRBLKSIZ`): no entry crosses from one to the next, and each is written as a whole.
pub const DIRBLKSIZ: usize = 512;
/// Longest name.
pub const NAME_MAX: usize = 255;
const HEAD: usize = 8;

/// What the two bytes before a name mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirFormat {
    /// Byte order.
    pub endian: Endian,
    /// 4.2BSD: a 16-bit length and no type.
    pub old: bool,
}

/// An entry with a name and an inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Byte in the chunk.
    pub at: usize,
    /// Its inode, not 0.
    pub ino: Ino,
    /// Its type (`d_type`); 0 where none is kept.
    pub kind: u8,
    /// Its name.
    pub name: Vec<u8>,
}

/// An entry's head as it stands, sensible or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEntry {
    /// Inode; 0 for an entry without one.
    pub ino: u32,
    /// Bytes to the next entry.
    pub reclen: u16,
    /// Type; 0 where none is kept.
    pub kind: u8,
    /// Bytes of the name.
    pub namlen: u16,
}

/// Bytes that an entry with a name of `namlen` bytes needs (`DIRSIZ`): the name has a zero byte after it.
pub fn entry_bytes(namlen: usize) -> usize {
    (HEAD + namlen + 1).next_multiple_of(4)
}

impl RawEntry {
    /// Reads the head of the entry at a byte of a chunk; bytes that are not there are zeros.
    #[inline]
    pub fn get(chunk: &[u8], at: usize, format: DirFormat) -> RawEntry {
        let rest = chunk.get(at..).unwrap_or_default();
        let head: [u8; HEAD] = rest.first_chunk().copied().unwrap_or_else(|| {
            let mut head = [0; HEAD];
            head.iter_mut().zip(rest).for_each(|(place, byte)| *place = *byte);
            head
        });
        let [.., kind, namlen] = head;
        let (kind, namlen) = if format.old { (0, u16::get(format.endian, &head, 6)) } else { (kind, namlen.into()) };
        RawEntry { ino: u32::get(format.endian, &head, 0), reclen: u16::get(format.endian, &head, 4), kind, namlen }
    }

    /// Writes the head of the entry at a byte of a chunk.
    pub fn put(&self, chunk: &mut [u8], at: usize, format: DirFormat) {
        self.ino.put(format.endian, chunk, at);
        self.reclen.put(format.endian, chunk, at + 4);
        if format.old {
            self.namlen.put(format.endian, chunk, at + 6);
        } else {
            self.kind.put(format.endian, chunk, at + 6);
            (self.namlen as u8).put(format.endian, chunk, at + 7);
        }
    }

    /// Whether it leads on to a next entry or exactly to the end of its chunk.
    pub fn leads_on(&self, at: usize, chunk_bytes: usize) -> bool {
        let reclen = usize::from(self.reclen);
        reclen >= HEAD + 4 && reclen.is_multiple_of(4) && at + reclen <= chunk_bytes
    }
}

/// What is wrong with a name; `None` if nothing is.
pub fn name_problem(name: &[u8]) -> Option<&'static str> {
    if name.is_empty() {
        Some("an empty name")
    } else if name.len() > NAME_MAX {
        Some("a name of more than 255 bytes")
    } else if name.contains(&b'/') {
        Some("a name with a slash in it")
    } else if name.contains(&0) {
        Some("a name with a zero byte in it")
    } else {
        None
    }
}

/// The entries of a chunk that have inodes; the first thing wrong with the chunk as an error. `at_byte` is where it is
/// in the image.
pub fn parse_chunk(chunk: &[u8], format: DirFormat, at_byte: u64) -> Result<Vec<DirEntry>, FormatError> {
    let mut entries = Vec::new();
    let mut at = 0;
    while at < chunk.len() {
        let head = RawEntry::get(chunk, at, format);
        let wrong =
            |field, problem: String| Err(FormatError::field("directory entry", field, at_byte + at as u64, problem));
        if !head.leads_on(at, chunk.len()) {
            return wrong("reclen", format!("{} does not fit its chunk at byte {at}", head.reclen));
        }
        if head.ino != 0 {
            let namlen = usize::from(head.namlen);
            let Some(name) = chunk.get(at + HEAD..at + HEAD + namlen) else {
                return wrong("namlen", format!("{namlen} is more than its chunk holds"));
            };
            if HEAD + namlen > usize::from(head.reclen) {
                return wrong("namlen", format!("{namlen} is more than its entry of {} bytes holds", head.reclen));
            }
            if let Some(problem) = name_problem(name) {
                return wrong("name", problem.to_owned());
            }
            entries.push(DirEntry { at, ino: Ino(head.ino), kind: head.kind, name: name.to_vec() });
        }
        at += usize::from(head.reclen);
    }
    Ok(entries)
}

/// An empty chunk: one entry without an inode.
pub fn fresh_chunk(format: DirFormat) -> Vec<u8> {
    let mut chunk = vec![0; DIRBLKSIZ];
    RawEntry { ino: 0, reclen: DIRBLKSIZ as u16, kind: 0, namlen: 0 }.put(&mut chunk, 0, format);
    chunk
}

/// Puts an entry into the first place of a sound chunk that has room, compacting nothing; whether there was one.
pub fn insert(chunk: &mut [u8], format: DirFormat, ino: Ino, kind: u8, name: &[u8]) -> bool {
    let needed = entry_bytes(name.len());
    let mut at = 0;
    while at < chunk.len() {
        let mut head = RawEntry::get(chunk, at, format);
        if !head.leads_on(at, chunk.len()) {
            return false;
        }
        let reclen = usize::from(head.reclen);
        let held = if head.ino == 0 { 0 } else { entry_bytes(head.namlen.into()) };
        if reclen >= held + needed {
            if held > 0 {
                head.reclen = held as u16;
                head.put(chunk, at, format);
            }
            put_entry(chunk, at + held, (reclen - held) as u16, format, ino, kind, name);
            return true;
        }
        at += reclen;
    }
    false
}

fn put_entry(chunk: &mut [u8], at: usize, reclen: u16, format: DirFormat, ino: Ino, kind: u8, name: &[u8]) {
    let kind = if format.old { 0 } else { kind };
    RawEntry { ino: ino.0, reclen, kind, namlen: name.len() as u16 }.put(chunk, at, format);
    let room = at + HEAD..at + entry_bytes(name.len());
    if let Some(place) = chunk.get_mut(room) {
        place.fill(0);
        for (place, byte) in place.iter_mut().zip(name) {
            *place = *byte;
        }
    }
}

/// Takes the entry at a byte out of a sound chunk: its room goes to the entry before it, or, at the chunk's beginning,
/// it stays as an entry without an inode (as BSD does it).
pub fn remove(chunk: &mut [u8], format: DirFormat, entry_at: usize) {
    let mut previous: Option<usize> = None;
    let mut at = 0;
    while at < chunk.len() {
        let mut head = RawEntry::get(chunk, at, format);
        if !head.leads_on(at, chunk.len()) {
            return;
        }
        if at == entry_at {
            match previous {
                Some(before_at) => {
                    let mut before = RawEntry::get(chunk, before_at, format);
                    before.reclen += head.reclen;
                    before.put(chunk, before_at, format);
                }
                None => {
                    head.ino = 0;
                    head.put(chunk, at, format);
                }
            }
            return;
        }
        previous = Some(at);
        at += usize::from(head.reclen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_go_in_and_out() {
        for format in [Endian::Little, Endian::Big]
            .into_iter()
            .flat_map(|endian| [false, true].map(|old| DirFormat { endian, old }))
        {
            let mut chunk = fresh_chunk(format);
            let names: Vec<Vec<u8>> = (0..100).map(|i| format!("name-{i}").into_bytes()).collect();
            let fitted = names.iter().zip(3..).take_while(|(n, i)| insert(&mut chunk, format, Ino(*i), 8, n)).count();
            assert_eq!(fitted, 512 / 16 - usize::from(fitted < 10), "entries of 16 bytes");
            let entries = parse_chunk(&chunk, format, 0).unwrap();
            assert!(entries.iter().zip(&names).all(|(e, n)| e.name == *n && (e.kind == 8) != format.old));
            remove(&mut chunk, format, entries[5].at);
            remove(&mut chunk, format, entries[0].at);
            let left = parse_chunk(&chunk, format, 0).unwrap();
            assert_eq!(left.len(), fitted - 2);
            assert!(insert(&mut chunk, format, Ino(900), 8, b"again"));
            assert_eq!(parse_chunk(&chunk, format, 0).unwrap()[0].name, b"again");
        }
        assert!(parse_chunk(&[0; 512], DirFormat { endian: Endian::Little, old: false }, 0).is_err());
    }
}
