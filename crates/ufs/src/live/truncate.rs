//! Changing a file's length (`ffs_truncate`, `ffs_indirtrunc`, `lfs_truncate`).
//!
//! A file's last byte is always in a block, never in a hole: growing allocates it, and so does cutting a file inside a
//! hole. Where 4.4BSD frees the last block first, blocks are freed in order of the file here.

use super::backing::Backing;
use super::files::Files as _;
use super::freed::{CutIndirects, Freed};
use super::node::{Body, Node, Sizes};
use crate::DiskInode;
use crate::indirect::{NDADDR, Pointer, of_number, way};
use kernel::{Cx, Ino, Lbn, WriteRange};
use posix::Errno;

/// Sets the length. What is behind it is freed; a longer file ends in a block of its own, behind a hole.
pub(super) fn set_length<B: Backing>(fs: &mut B, cx: &mut Cx, ino: Ino, length: u64) -> Result<(), Errno> {
    let size = fs.node(ino)?.d.size();
    if length > size {
        end_in_block(fs, cx, ino, length)?;
        *fs.node_mut(ino)?.d.size_mut() = length;
    } else if length < size {
        if length > 0 && fs.pointer(ino, (length - 1) >> fs.sizes().bshift)? == 0 {
            end_in_block(fs, cx, ino, length)?;
        }
        shorten(fs, cx, ino, length)?;
    }
    Ok(())
}

/// Allocates the last byte that a file is to have.
fn end_in_block<B: Backing>(fs: &mut B, cx: &mut Cx, ino: Ino, length: u64) -> Result<(), Errno> {
    let sizes = fs.sizes();
    let old_size = fs.node(ino)?.d.size();
    let lbn = (length - 1) >> sizes.bshift;
    let end = ((length - 1) & u64::from(sizes.bsize - 1)) as u32 + 1;
    let target = match fs.balloc(cx, ino, lbn, end) {
        Ok(target) => target,
        Err(error) => {
            shorten(fs, cx, ino, old_size)?;
            return Err(error);
        }
    };
    let block = fs.file_block(fs.node(ino)?, ino, lbn, target.piece);
    if target.fresh {
        cx.make(&block);
        cx.zero(block.id, lbn << sizes.bshift, 0);
    } else {
        cx.change(&block);
    }
    Ok(())
}

/// Writes a range block by block: `piece` is told the byte of the file, how many bytes from there, and how many were
/// written before; answers how many were written. Where a later one fails, those before it stay.
pub fn write_by_blocks<B: Backing>(
    fs: &mut B,
    cx: &mut Cx,
    range: &WriteRange<'_>,
    mut piece: impl FnMut(&mut B, &mut Cx, u64, u32, u64) -> Result<(), Errno>,
) -> Result<u64, Errno> {
    let (size_before, bsize) = (fs.node(range.ino)?.d.size(), u64::from(fs.sizes().bsize));
    let mut done = 0;
    while done < range.len_bytes {
        let at = range.offset + done;
        let len = (bsize - at % bsize).min(range.len_bytes - done) as u32;
        if let Err(error) = piece(fs, cx, at, len, done) {
            to_what_is_written(fs, cx, range, size_before, done)?;
            return if done == 0 { Err(error) } else { Ok(done) };
        }
        done += u64::from(len);
    }
    Ok(done)
}

/// After a write that failed when so much was done: the file may have been lengthened for a block that then was not to
/// be had.
fn to_what_is_written<B: Backing>(
    fs: &mut B,
    cx: &mut Cx,
    range: &WriteRange<'_>,
    size_before: u64,
    done: u64,
) -> Result<(), Errno> {
    let length = if done > 0 { size_before.max(range.offset + done) } else { size_before };
    if fs.node(range.ino)?.d.size() > length { shorten(fs, cx, range.ino, length) } else { Ok(()) }
}

/// Frees what is behind a length that is not above the file's.
pub fn shorten<B: Backing>(fs: &mut B, cx: &mut Cx, ino: Ino, length: u64) -> Result<(), Errno> {
    let sizes = fs.sizes();
    let bsize = u64::from(sizes.bsize);
    let (keep, last) = (length.div_ceil(bsize), length >> sizes.bshift);
    let within = (length & (bsize - 1)) as u32;
    let mut freed = std::mem::take(fs.spare_list());
    freed.clear();
    let node = fs.node_mut(ino)?;
    let old_last = if within > 0 { node.piece(last, &sizes) } else { None };
    cut_pointers(node, &sizes, keep, &mut freed);
    fs.pointers_cut(cx, ino, &mut freed);
    *fs.node_mut(ino)?.d.size_mut() = length;
    if let Some(old) = old_last {
        // The block that the file ends in now: its end reads as zeros, and may be given up.
        let node = fs.node(ino)?;
        let (bytes, data) = (sizes.block_bytes(length, last), matches!(node.body, Body::File));
        let block = fs.file_block(node, ino, last, old);
        if data || B::ATOMIC {
            fs.change_block(cx, &block);
        }
        if data {
            cx.zero(block.id, (last << sizes.bshift) + u64::from(within), within);
        }
        if bytes < old.bytes {
            cx.resize(block.id, bytes);
            let addr = old.addr + Pointer::from(bytes >> sizes.fshift);
            freed.push(Freed { lbn: last as i64, addr, bytes: old.bytes - bytes });
        }
    }
    // Blocks that are given up are not written any more.
    cx.forget_from(ino, Lbn(keep as i64));
    let indirects = cut_indirects(fs.node_mut(ino)?, keep, sizes.nindir);
    fs.cut(cx, ino, &mut freed, indirects)?;
    *fs.spare_list() = freed;
    Ok(())
}

/// Clears the pointers to all data blocks from `keep` on, and lists the blocks.
fn cut_pointers<D: DiskInode, O>(node: &mut Node<D, O>, sizes: &Sizes, keep: u64, freed: &mut Vec<Freed>) {
    let size = node.d.size();
    let (direct, _) = node.d.pointers_mut();
    for (lbn, place) in (0..).zip(direct.iter_mut()).skip(keep.min(NDADDR as u64) as usize) {
        let addr = std::mem::take(place);
        if addr != 0 {
            // Blocks beyond the end are whole: they were allocated for a write that then failed.
            let bytes = match sizes.block_bytes(size, lbn) {
                0 => sizes.bsize,
                bytes => bytes,
            };
            freed.push(Freed { lbn: lbn as i64, addr, bytes });
        }
    }
    let Some(indirects) = &mut node.indirects else { return };
    for (first, leaf) in indirects.leaves.range_mut(keep.saturating_sub(sizes.nindir - 1).max(NDADDR as u64)..) {
        let from = keep.saturating_sub(*first).min(leaf.pointers.len() as u64) as usize;
        let numbered = (*first as i64 + from as i64..).zip(leaf.pointers.drain(from..));
        let cut = numbered.filter(|(_, addr)| *addr != 0);
        freed.extend(cut.map(|(lbn, addr)| Freed { lbn, addr, bytes: sizes.bsize }));
    }
}

/// Takes the indirect blocks that reach nothing below `keep` from a file.
fn cut_indirects<D: DiskInode, O>(node: &mut Node<D, O>, keep: u64, n: u64) -> CutIndirects {
    let Some(indirects) = &mut node.indirects else { return CutIndirects::default() };
    let cut = indirects.leaves.split_off(&keep.max(NDADDR as u64));
    let leaves = cut.iter().map(|(first, leaf)| (-(*first as i64), leaf.addr)).collect();
    let mut upper = Vec::new();
    indirects.upper.retain(|number, addr| {
        let first = of_number(*number, n).map_or(0, |(first, _)| first);
        if first >= keep {
            upper.push((*number, *addr));
        }
        first < keep
    });
    let mut changed = Vec::new();
    if let Some(way) = keep.checked_sub(1).and_then(|last| way(last, n)) {
        let numbers = way.numbers.iter().take(way.slot + 1);
        changed.extend(numbers.map(|number| (*number, indirects.addr(*number, n))).filter(|(_, addr)| *addr != 0));
    }
    let empty = indirects.leaves.is_empty() && indirects.upper.is_empty();
    let mut first = NDADDR as u64;
    let (_, tops) = node.d.pointers_mut();
    for (slot, place) in (1_u32..).zip(tops.iter_mut()) {
        if first >= keep {
            *place = 0;
        }
        first = first.saturating_add(n.saturating_pow(slot));
    }
    if empty {
        node.indirects = None;
    }
    CutIndirects { leaves, upper, changed }
}
