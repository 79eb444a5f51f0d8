//! What lies where in segments that were written before the file system was mounted.

use super::log::{INODE, INODES, SUMMARY, Segment, Written};
use crate::Store;
use crate::format::{FragAddr, Geometry, Piece, SegNo};
use crate::recover::partial_at;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Completes the list of what is live in a segment by what its summaries say is there beside it, all in the order in
/// which it lies. A segment that cannot be read whole, or where something live is in no summary, keeps its list; holes
/// of it are not filled.
pub(crate) fn tile<S: Store>(store: &S, g: &Geometry, number: SegNo, segment: &mut Segment) {
    let mut live: FxHashSet<Written> = FxHashSet::default();
    let mut inodes: BTreeMap<FragAddr, Vec<Written>> = BTreeMap::new();
    for entry in &segment.written {
        if entry.lbn == INODE {
            inodes.entry(entry.addr).or_default().push(*entry);
        } else {
            live.insert(*entry);
        }
    }
    let mut written = Vec::new();
    let mut at = g.log_start(number, segment.superblock);
    for _ in 0..segment.nsums {
        let Ok(partial) = partial_at(store, g, at) else { return };
        written.push(Written { ino: 0, lbn: SUMMARY, addr: at });
        for piece in &partial.pieces {
            match *piece {
                Piece::Inodes { addr } => {
                    written.push(Written { ino: 0, lbn: INODES, addr });
                    written.extend(inodes.remove(&addr).unwrap_or_default());
                }
                Piece::Block { addr, ino, lbn, .. } => {
                    let entry = Written { ino: ino.0, lbn, addr };
                    live.remove(&entry);
                    written.push(entry);
                }
            }
        }
        at = partial.end;
    }
    if live.is_empty() && inodes.is_empty() {
        (segment.written, segment.tiled, segment.end) = (written, true, at);
    }
}
