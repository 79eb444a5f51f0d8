//! Gathering delayed writes into clusters, as 4.4BSD does (`cluster_write` in `vfs_cluster.c`; McVoy and Kleiman,
//! "Extent-like Performance from a UNIX File System", USENIX Winter 1991).

use crate::{BlockId, Cx, Ino, Lbn, Pbn, Volume};

/// A full block of a file has just been filled in the cache: delays its write, or writes the cluster that it completes.
///
/// `size_bytes` is the file's length with this block. Blocks written in sequence gather until a request is full, or a
/// block comes that does not fit; then they are pushed. Where a gathered cluster ends at the end of the file
/// before it is full, because the next block lies elsewhere, the file system may move it first
/// ([`Volume::reallocate`]): this happens first when the *second* block has been filled.
pub fn write<V: Volume>(volume: &mut V, cx: &mut Cx, ino: Ino, lbn: Lbn, pbn: Pbn, size_bytes: u64) {
    let id = BlockId { ino, lbn };
    let block_bytes = volume.block_bytes();
    if !cx.transfers.cluster_writes {
        return cx.write(volume, id, false);
    }
    let Some(node) = cx.nodes.get_mut(ino) else { return cx.dirty(id) };
    if lbn == Lbn(0) {
        node.writing = Default::default();
    }
    let mut state = node.writing;
    let at_end = (lbn.0 + 1) as u64 * u64::from(block_bytes) == size_bytes;
    let in_sequence = lbn == state.last.plus(1);
    if state.len_blocks == 0 || !in_sequence || pbn != state.last_pbn.after(u64::from(block_bytes)) {
        if state.len_blocks != 0 {
            let gathered = (state.last.0 - state.start.0 + 1).max(0) as u32;
            let may_move = at_end && in_sequence && state.len_blocks > gathered;
            if may_move {
                cx.dirty(id);
                if volume.reallocate(cx, ino, state.start, gathered + 1) {
                    // It lies in one piece now: keep gathering.
                    let moved_to = cx.cache.find(id).map_or(pbn, |slot| cx.cache.get(slot).pbn);
                    (state.last, state.last_pbn) = (lbn, moved_to);
                    return remember(cx, ino, state);
                }
            }
            cx.write_run(volume, ino, state.start, gathered);
        }
        // The start of another cluster: at the end of the file as large as can be, inside it as far as it is
        // contiguous.
        let most = (cx.transfers.largest_bytes / block_bytes).saturating_sub(1);
        state.len_blocks = if at_end {
            most
        } else {
            match volume.map(cx, ino, lbn, most) {
                Ok(Some(mapped)) => mapped.ahead.min(most),
                Ok(None) | Err(_) => 0,
            }
        };
        if state.len_blocks == 0 {
            state.start = lbn.plus(1);
            cx.write(volume, id, false);
        } else {
            state.start = lbn;
            cx.dirty(id);
        }
    } else if lbn == state.start.plus(state.len_blocks) {
        cx.dirty(id);
        cx.write_run(volume, ino, state.start, state.len_blocks + 1);
        state.len_blocks = 0;
        state.start = lbn.plus(1);
    } else {
        cx.dirty(id);
    }
    (state.last, state.last_pbn) = (lbn, pbn);
    remember(cx, ino, state);
}

fn remember(cx: &mut Cx, ino: Ino, state: crate::nodes::Writing) {
    if let Some(node) = cx.nodes.get_mut(ino) {
        node.writing = state;
    }
}
