//! Names read before the run, as the bytes of a frame: little-endian, one entry behind the other.

use crate::profile::no_path;
use crate::snapshot::is_plain;
use crate::{Provenance, SnapshotEntry};
use posix::FileKind;

const KINDS: [FileKind; 4] = [FileKind::File, FileKind::Directory, FileKind::Symlink, FileKind::Special];

/// Appends an entry. Its provenance is not kept: all were read before the run.
pub(super) fn append(entry: &SnapshotEntry, out: &mut Vec<u8>) {
    let kind = KINDS.iter().position(|&k| k == entry.kind).expect("every kind of file is in the list");
    out.push(u8::try_from(kind).expect("there are four kinds"));
    bytes(&entry.path, out);
    out.extend_from_slice(&entry.size_bytes.to_le_bytes());
    out.extend_from_slice(&entry.mode.to_le_bytes());
    out.extend_from_slice(&entry.uid.to_le_bytes());
    out.extend_from_slice(&entry.gid.to_le_bytes());
    out.extend_from_slice(&entry.nlink.to_le_bytes());
    out.extend_from_slice(&entry.ino.to_le_bytes());
    out.extend_from_slice(&entry.dev.to_le_bytes());
    out.extend_from_slice(&entry.mtime_ns.to_le_bytes());
    out.push(u8::from(entry.target.is_some()));
    if let Some(target) = &entry.target {
        bytes(target, out);
    }
}

fn bytes(text: &[u8], out: &mut Vec<u8>) {
    let len = u32::try_from(text.len()).expect("a path is shorter than 4 GiB");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(text);
}

/// The entries of a frame; `None` if the bytes are none.
pub(super) fn read(mut rest: &[u8]) -> Option<Vec<SnapshotEntry>> {
    let mut entries = Vec::new();
    while !rest.is_empty() {
        entries.push(entry(&mut rest)?);
    }
    Some(entries)
}

fn entry(rest: &mut &[u8]) -> Option<SnapshotEntry> {
    let [kind] = take(rest)?;
    let path = text(rest).filter(|path| is_plain(path))?;
    Some(SnapshotEntry {
        path,
        kind: *KINDS.get(usize::from(kind))?,
        size_bytes: u64::from_le_bytes(take(rest)?),
        mode: u16::from_le_bytes(take(rest)?),
        uid: u32::from_le_bytes(take(rest)?),
        gid: u32::from_le_bytes(take(rest)?),
        nlink: u32::from_le_bytes(take(rest)?),
        ino: u64::from_le_bytes(take(rest)?),
        dev: u64::from_le_bytes(take(rest)?),
        mtime_ns: i64::from_le_bytes(take(rest)?),
        target: match take(rest)? {
            [0] => None,
            [1] => Some(text(rest)?),
            _ => return None,
        },
        provenance: Provenance::Before,
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

fn text(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let len = usize::try_from(u32::from_le_bytes(take(rest)?)).ok()?;
    let (head, tail) = rest.split_at_checked(len).filter(|(head, _)| no_path(head).is_none())?;
    *rest = tail;
    Some(head.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_no_profile_can_hold_is_none() {
        for (path, holds) in [("/", true), ("/a/b", true), ("/a/..", false), ("/a/", false), ("a", false)] {
            let entry = SnapshotEntry::implied(path.as_bytes().to_vec(), FileKind::Directory);
            let mut bytes = Vec::new();
            append(&entry, &mut bytes);
            assert_eq!(read(&bytes).is_some(), holds, "{path}");
        }
    }
}
