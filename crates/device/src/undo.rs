//! What a set of changes replaced, as a file, so that it can be taken back.
//!
//! Changes are gathered in an [`Overlay`]; [`record`] makes the file of them before [`Overlay::apply`] writes any, and
//! [`revert`] puts back what was there. A run that is killed between the two, or within one of them, is reverted all
//! the same. Format: docs/formats.md.

use crate::store::{Change, Overlay, Store, StoreError, read, write};

/// The first bytes.
const MAGIC: [u8; 8] = *b"FSAGEUND";
/// Version of the format.
const VERSION: u32 = 1;
/// Bytes of the head: magic, version, unused, length of the store, number of pieces.
const HEAD: usize = 32;
/// Bytes of a piece's head: its place, its length, the checksum of what replaced it.
const PIECE_HEAD: usize = 16;

/// Why changes cannot be taken back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bytes are no such file.
    #[error("byte {at_byte}: {problem}")]
    Format {
        /// Where in the file.
        at_byte: usize,
        /// What is wrong.
        problem: String,
    },
    /// It is of another store, or what it would replace is not what it knows.
    #[error("{0}")]
    Other(String),
}

/// What the changes in an overlay would replace.
pub fn record<S: Store>(changes: &Overlay<S>) -> Result<Vec<u8>, StoreError> {
    let pieces = changes.changes()?;
    let mut file = Vec::with_capacity(HEAD + pieces.len() * (PIECE_HEAD + 512) + 4);
    file.extend(MAGIC);
    file.extend(VERSION.to_le_bytes());
    file.extend([0; 4]);
    file.extend(changes.len_bytes().to_le_bytes());
    file.extend((pieces.len() as u64).to_le_bytes());
    for Change { at_byte, old, new } in pieces {
        file.extend(at_byte.to_le_bytes());
        file.extend((old.len() as u32).to_le_bytes());
        file.extend(crc32c::crc32c(new).to_le_bytes());
        file.extend(old);
    }
    let sum = crc32c::crc32c(&file);
    file.extend(sum.to_le_bytes());
    Ok(file)
}

/// Puts back what [`record`] has recorded; how many bytes were other than that. Nothing is written unless each piece is
/// as the changes left it, or as it was before them.
pub fn revert<S: Store>(file: &[u8], store: &mut S) -> Result<u64, UndoError> {
    let pieces = pieces(file, store.len_bytes())?;
    let mut changed = Vec::new();
    for Piece { at_byte: at, sum, old } in pieces {
        let now = read(store, at, old.len())?;
        if now == old {
            continue;
        }
        if crc32c::crc32c(&now) != sum {
            let what =
                format!("the {} bytes at byte {at} were changed after the repair: nothing is taken back", old.len());
            return Err(UndoError::Other(what));
        }
        changed.push((at, now, old));
    }
    let mut bytes = 0;
    for (at, now, old) in changed {
        bytes += now.iter().zip(old).filter(|(now, old)| now != old).count() as u64;
        write(store, at, old)?;
    }
    Ok(bytes)
}

/// A piece of a store as it was.
struct Piece<'a> {
    at_byte: u64,
    /// Checksum of what replaced it.
    sum: u32,
    old: &'a [u8],
}

fn pieces(file: &[u8], store_bytes: u64) -> Result<Vec<Piece<'_>>, UndoError> {
    let wrong = |at_byte: usize, problem: &str| UndoError::Format { at_byte, problem: problem.to_owned() };
    let u32_at = |at: usize| file.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
    let u64_at = |at: usize| file.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
    if file.get(..8) != Some(&MAGIC) {
        return Err(wrong(0, "this is not what `fsage fsck --undo` writes"));
    }
    if u32_at(8) != Some(VERSION) {
        return Err(wrong(8, "written by another version of fsage"));
    }
    let body = file.len().saturating_sub(4);
    let sum = file.get(..body).map(crc32c::crc32c);
    if body < HEAD || sum != u32_at(body) {
        return Err(wrong(body, "the checksum does not match: the file is cut short or damaged"));
    }
    if u64_at(16) != Some(store_bytes) {
        return Err(UndoError::Other(format!(
            "it is of an image of {} bytes, and this one has {store_bytes}",
            u64_at(16).unwrap_or(0)
        )));
    }
    let mut pieces = Vec::new();
    let mut at = HEAD;
    while at < body {
        let (Some(place), Some(len), Some(sum)) = (u64_at(at), u32_at(at + 8), u32_at(at + 12)) else {
            return Err(wrong(at, "a piece without an end"));
        };
        let end = at + PIECE_HEAD + len as usize;
        let Some(old) = file.get(at + PIECE_HEAD..end).filter(|_| end <= body) else {
            return Err(wrong(at + 8, "a piece longer than the file"));
        };
        if place.checked_add(len.into()).is_none_or(|end| end > store_bytes) {
            return Err(wrong(at, "a piece outside the image"));
        }
        pieces.push(Piece { at_byte: place, sum, old });
        at = end;
    }
    if u64_at(24) != Some(pieces.len() as u64) {
        return Err(wrong(24, "the number of pieces is wrong"));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    #[test]
    fn changes_are_taken_back_wholly_or_not_at_all() {
        let before = MemoryStore((0..=255).cycle().take(5000).collect());
        let mut changes = Overlay::new(before.clone());
        write(&mut changes, 100, &[9; 1000]).unwrap();
        write(&mut changes, 4990, &[7; 10]).unwrap();
        // The same bytes again are no change.
        write(&mut changes, 2560, &before.0[2560..2570]).unwrap();
        let file = record(&changes).unwrap();
        assert_eq!(file.len(), HEAD + 4 * PIECE_HEAD + 3 * 512 + (5000 - 4608) + 4);
        let repaired = changes.apply().unwrap();
        assert!(repaired.0[100..1100] == [9; 1000] && repaired.0[4990..] == [7; 10]);

        let mut store = repaired.clone();
        assert_eq!(revert(&file, &mut store).unwrap(), 1006);
        assert_eq!(store, before);
        assert_eq!(revert(&file, &mut store).unwrap(), 0, "twice is once");
        // Killed in between: some of it is back already.
        let mut half = repaired.clone();
        half.0[..512].copy_from_slice(&before.0[..512]);
        revert(&file, &mut half).unwrap();
        assert_eq!(half, before);
        // Somebody has written since.
        let mut used = repaired.clone();
        used.0[600] = 1;
        let kept = used.clone();
        assert!(matches!(revert(&file, &mut used), Err(UndoError::Other(what)) if what.contains("byte 512")));
        assert_eq!(used, kept);
        let mut other = MemoryStore(vec![0; 5001]);
        assert!(matches!(revert(&file, &mut other), Err(UndoError::Other(_))));
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            assert!(revert(&damaged, &mut repaired.clone()).is_err(), "byte {at}");
            assert!(revert(&file[..at], &mut repaired.clone()).is_err(), "cut at {at}");
        }
    }
}
