//! Names in directories: looked up, entered, taken out, and with them the blocks of directories.

use super::backing::{Backing, Name};
use super::files::Files as _;
use super::truncate;
use crate::directory::Slot;
use crate::{DiskInode as _, FileType};
use kernel::{Cx, Ino};
use posix::Errno;

/// Reads a directory as far as looking a name up does: from where the last one was found, round to there, or to the
/// name (`ufs_lookup`).
pub(super) fn search<B: Backing>(fs: &mut B, cx: &mut Cx, dir: Ino, found: Option<u32>) -> Result<(), Errno> {
    let directory = fs.directory(dir)?;
    let (len, entries) = (directory.len_bytes(), u64::from(directory.entries()));
    let bsize = u64::from(fs.sizes().bsize);
    let start = u64::from(directory.last_found) / bsize * bsize;
    let start = if start < len { start } else { 0 };
    let target = found.map(u64::from);
    let mut at = start;
    let mut passed = 0;
    loop {
        cx.read(&fs.directory_block(dir, at)?);
        let end = (at + bsize).min(len);
        if let Some(target) = target.filter(|target| (at..end).contains(target)) {
            passed += target - at;
            break;
        }
        passed += end - at;
        at = if end >= len { 0 } else { end };
        if at == start {
            break;
        }
    }
    cx.cpu(cx.costs().entry_ns * (entries * passed / len.max(1) + 1));
    if let Some(found) = found {
        fs.directory_mut(dir)?.last_found = found;
    }
    Ok(())
}

/// Enters a name that is not there (`ufs_direnter`).
pub(super) fn enter<B: Backing>(
    fs: &mut B,
    cx: &mut Cx,
    dir: Ino,
    name: Name<'_>,
    file_type: FileType,
) -> Result<(), Errno> {
    cx.cpu(cx.costs().name_ns);
    let directory = fs.directory(dir)?;
    let slot = directory.slot(name.name.len());
    let (old_len, new_len) = (directory.len_bytes(), directory.len_after(slot));
    let grown = slot == Slot::Append;
    if grown {
        grow(fs, cx, dir, old_len, new_len)?;
    } else if new_len < old_len && !fs.keeps_chunks(dir) {
        fs.directory_mut(dir)?.cut(new_len);
        truncate::shorten(fs, cx, dir, new_len)?;
    }
    let at = fs.directory_mut(dir)?.enter(slot, name.name, name.ino.0, file_type.entry_type());
    stamp_modified(fs, cx, dir)?;
    fs.name_added(cx, dir, at, name, grown)
}

/// Room for another chunk.
fn grow<B: Backing>(fs: &mut B, cx: &mut Cx, dir: Ino, old_len: u64, new_len: u64) -> Result<(), Errno> {
    let sizes = fs.sizes();
    let lbn = old_len >> sizes.bshift;
    let end = ((new_len - 1) & u64::from(sizes.bsize - 1)) as u32 + 1;
    let target = fs.balloc(cx, dir, lbn, end)?;
    let block = fs.file_block(fs.node(dir)?, dir, lbn, target.piece);
    if target.fresh {
        cx.make(&block);
    } else {
        cx.change(&block);
    }
    *fs.node_mut(dir)?.d.size_mut() = new_len;
    Ok(())
}

/// Takes a name out (`ufs_dirremove`).
pub(super) fn leave<B: Backing>(fs: &mut B, cx: &mut Cx, dir: Ino, name: &[u8]) -> Result<(), Errno> {
    cx.cpu(cx.costs().name_ns);
    let found = fs.directory(dir)?.find(name).ok_or(Errno::ENOENT)?;
    let at = fs.directory_mut(dir)?.leave(name, found.at);
    stamp_modified(fs, cx, dir)?;
    fs.name_removed(cx, dir, at, Name { name, ino: Ino(found.ino) })
}

/// Makes a name stand for another inode (`ufs_dirrewrite`).
pub(super) fn reenter<B: Backing>(
    fs: &mut B,
    cx: &mut Cx,
    dir: Ino,
    name: Name<'_>,
    file_type: FileType,
) -> Result<(), Errno> {
    cx.cpu(cx.costs().name_ns);
    let directory = fs.directory_mut(dir)?;
    let found = directory.find(name.name).ok_or(Errno::ENOENT)?;
    directory.rewrite(found.at, name.ino.0, Some(file_type.entry_type()));
    stamp_modified(fs, cx, dir)?;
    fs.name_changed(cx, dir, found.at.into(), Ino(found.ino), name)
}

/// Makes a directory's `..` lead elsewhere.
pub(super) fn move_parent<B: Backing>(fs: &mut B, cx: &mut Cx, dir: Ino, parent: Ino) -> Result<(), Errno> {
    let directory = fs.directory_mut(dir)?;
    let from = directory.parent().unwrap_or(parent.0);
    directory.set_parent(parent.0);
    fs.parent_changed(cx, dir, Ino(from), parent)
}

/// The first block of a new directory.
pub(super) fn first_chunk<B: Backing>(fs: &mut B, cx: &mut Cx, dir: Ino) -> Result<(), Errno> {
    let len = fs.directory(dir)?.len_bytes();
    let target = fs.balloc(cx, dir, 0, len as u32)?;
    let block = fs.file_block(fs.node(dir)?, dir, 0, target.piece);
    cx.make(&block);
    *fs.node_mut(dir)?.d.size_mut() = len;
    fs.directory_made(cx, dir, block.id);
    Ok(())
}

pub(super) fn stamp_modified<B: Backing>(fs: &mut B, cx: &Cx, ino: Ino) -> Result<(), Errno> {
    fs.node_mut(ino)?.d.stamp_modified(super::time_of(cx.date_ns()));
    Ok(())
}
