//! The operations of [`Volume`](kernel::Volume), each in the order of steps that 4.4BSD has (`ufs_vnops.c`).

use super::backing::{Backing, Change, Name, NewInode};
use super::files::{Files as _, kind_of};
use super::names::{enter, first_chunk, leave, move_parent, reenter, search, stamp_modified};
use super::node::Body;
use super::{date_of, time_of, truncate};
use crate::directory::Directory;
use crate::special::Special;
use crate::{DiskInode as _, FileType, Time, mode};
use kernel::{Attributes, Cx, Entry, Ino, NewNode, Rename, SetAttributes};
use posix::{Errno, FileKind};
use std::ops::RangeInclusive;

/// The type of a new inode. What has no data of its own is a FIFO.
fn type_of(kind: FileKind) -> FileType {
    match kind {
        FileKind::File => FileType::Regular,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Special => FileType::Fifo,
    }
}

/// [`Volume::attributes`](kernel::Volume::attributes)
pub fn attributes<B: Backing>(fs: &B, ino: Ino) -> Result<Attributes, Errno> {
    let d = &fs.node(ino)?.d;
    Ok(Attributes {
        kind: kind_of(d.file_type()),
        mode: d.permissions(),
        uid: d.uid(),
        gid: d.gid(),
        nlink: u32::try_from(d.nlink()).unwrap_or(0),
        generation: d.generation(),
        size_bytes: d.size(),
        allocated_bytes: fs.held_bytes(d),
        atime_ns: date_of(d.atime()),
        mtime_ns: date_of(d.mtime()),
        ctime_ns: date_of(d.ctime()),
    })
}

/// [`Volume::set_attributes`](kernel::Volume::set_attributes)
pub fn set_attributes<B: Backing>(fs: &mut B, cx: &mut Cx, ino: Ino, set: &SetAttributes) -> Result<(), Errno> {
    fs.admit(cx, Change::Attributes)?;
    let now = time_of(cx.date_ns());
    let times = fs.times();
    let d = &mut fs.node_mut(ino)?.d;
    if let Some(permissions) = set.mode {
        *d.mode_mut() = d.mode() & mode::IFMT | permissions & mode::PERMISSIONS;
    }
    *d.uid_mut() = set.uid.unwrap_or(d.uid());
    *d.gid_mut() = set.gid.unwrap_or(d.gid());
    *d.atime_mut() = set.atime_ns.map_or(d.atime(), |ns| nearest_time(ns, &times));
    *d.mtime_mut() = set.mtime_ns.map_or(d.mtime(), |ns| nearest_time(ns, &times));
    *d.ctime_mut() = now;
    fs.attributes_changed(cx, ino);
    fs.settle(cx);
    Ok(())
}

/// A time; the first or last one that an inode can have if it is outside of these (`timestamp_truncate` of Linux).
fn nearest_time(date_ns: i64, times: &RangeInclusive<i64>) -> Time {
    let time = time_of(date_ns);
    let s = time.s.clamp(*times.start(), *times.end());
    if s == time.s { time } else { Time { s, ns: 0 } }
}

/// [`Volume::lookup`](kernel::Volume::lookup)
pub fn lookup<B: Backing>(fs: &mut B, cx: &mut Cx, dir: Ino, name: &[u8]) -> Result<Option<Ino>, Errno> {
    let found = fs.directory(dir)?.find(name);
    search(fs, cx, dir, found.map(|found| found.at))?;
    Ok(found.map(|found| Ino(found.ino)))
}

/// [`Volume::parent`](kernel::Volume::parent)
pub fn parent<B: Backing>(fs: &mut B, cx: &mut Cx, dir: Ino) -> Result<Ino, Errno> {
    let parent = fs.directory(dir)?.parent().ok_or(Errno::EIO)?;
    if fs.node(dir)?.d.size() > 0 {
        cx.read(&fs.directory_block(dir, 0)?);
    }
    Ok(Ino(parent))
}

/// [`Volume::create`](kernel::Volume::create)
pub fn create<B: Backing>(fs: &mut B, cx: &mut Cx, dir: Ino, name: &[u8], new: &NewNode<'_>) -> Result<Ino, Errno> {
    live_directory(fs, dir)?;
    fs.admit(cx, Change::Create)?;
    let made = match new.kind {
        FileKind::Directory => make_directory(fs, cx, dir, name, new),
        FileKind::File | FileKind::Symlink | FileKind::Special => {
            make_file(fs, cx, dir, name, new, type_of(new.kind), 0)
        }
    };
    fs.settle(cx);
    made
}

/// Makes a pipe, a socket or a device (`mknod`). A device's number is in the place of its first block.
pub fn create_special<B: Backing>(
    fs: &mut B,
    cx: &mut Cx,
    dir: Ino,
    name: &[u8],
    permissions: u16,
    special: Special,
) -> Result<Ino, Errno> {
    live_directory(fs, dir)?;
    fs.admit(cx, Change::CreateSpecial)?;
    let (file_type, device) = special.parts();
    let new = NewNode { kind: FileKind::Special, mode: permissions, target: b"" };
    let made = make_file(fs, cx, dir, name, &new, file_type, device);
    fs.settle(cx);
    made
}

/// [`Volume::link`](kernel::Volume::link)
pub fn link<B: Backing>(fs: &mut B, cx: &mut Cx, ino: Ino, dir: Ino, name: &[u8]) -> Result<(), Errno> {
    live_directory(fs, dir)?;
    fs.may_change(ino)?;
    let file_type = file_type(fs, ino)?;
    room_for_link(fs, ino)?;
    fs.admit(cx, Change::Link)?;
    with_link(fs, cx, ino, |fs, cx| enter(fs, cx, dir, Name { name, ino }, file_type))?;
    fs.settle(cx);
    Ok(())
}

/// [`Volume::unlink`](kernel::Volume::unlink)
pub fn unlink<B: Backing>(fs: &mut B, cx: &mut Cx, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Errno> {
    fs.may_change(ino)?;
    fs.admit(cx, Change::Remove)?;
    leave(fs, cx, dir, name)?;
    drop_links(fs, cx, ino, 1)?;
    fs.settle(cx);
    Ok(())
}

/// [`Volume::rmdir`](kernel::Volume::rmdir)
pub fn rmdir<B: Backing>(fs: &mut B, cx: &mut Cx, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Errno> {
    empty_directory(fs, ino)?;
    fs.admit(cx, Change::Remove)?;
    leave(fs, cx, dir, name)?;
    drop_links(fs, cx, dir, 1)?;
    drop_links(fs, cx, ino, 2)?;
    fs.settle(cx);
    Ok(())
}

/// [`Volume::rename`](kernel::Volume::rename)
pub fn rename<B: Backing>(fs: &mut B, cx: &mut Cx, rename: &Rename<'_>) -> Result<(), Errno> {
    let Rename { from_dir, from_name, ino, to_dir, to_name, replaced } = *rename;
    live_directory(fs, to_dir)?;
    fs.may_change(ino)?;
    replaced.map_or(Ok(()), |old| fs.may_change(old))?;
    let file_type = file_type(fs, ino)?;
    let directory = file_type == FileType::Directory;
    let moves = directory && from_dir != to_dir;
    if B::ATOMIC
        && let Some(old) = replaced.filter(|_| directory)
    {
        empty_directory(fs, old)?;
    }
    if moves && !(B::ATOMIC && replaced.is_some()) {
        room_for_link(fs, to_dir)?;
    }
    fs.admit(cx, Change::Rename { replaces: replaced.is_some() })?;
    // A link for the time that it has two names.
    if !B::ATOMIC {
        add_link(fs, cx, ino)?;
    }
    let old_name_first = fs.removes_old_name_first();
    if old_name_first {
        leave(fs, cx, from_dir, from_name)?;
    }
    let named = match replaced {
        Some(old) => {
            replace(fs, cx, rename, old, file_type).and_then(|()| if moves { add_link(fs, cx, to_dir) } else { Ok(()) })
        }
        None if moves => {
            with_link(fs, cx, to_dir, |fs, cx| enter(fs, cx, to_dir, Name { name: to_name, ino }, file_type))
        }
        None => enter(fs, cx, to_dir, Name { name: to_name, ino }, file_type),
    };
    if let Err(error) = named {
        if !B::ATOMIC {
            drop_links(fs, cx, ino, 1)?;
        }
        return Err(error);
    }
    if moves {
        drop_links(fs, cx, from_dir, 1)?;
        move_parent(fs, cx, ino, to_dir)?;
    }
    if !old_name_first {
        leave(fs, cx, from_dir, from_name)?;
    }
    drop_links(fs, cx, ino, if B::ATOMIC { 0 } else { 1 })?;
    fs.settle(cx);
    Ok(())
}

/// What the new name replaced has lost it; an empty directory loses its own entry for itself as well.
fn replace<B: Backing>(
    fs: &mut B,
    cx: &mut Cx,
    rename: &Rename<'_>,
    replaced: Ino,
    file_type: FileType,
) -> Result<(), Errno> {
    let directory = file_type == FileType::Directory;
    if directory {
        empty_directory(fs, replaced)?;
    }
    reenter(fs, cx, rename.to_dir, Name { name: rename.to_name, ino: rename.ino }, file_type)?;
    if directory {
        // The replaced directory's `..` is gone; that of the moved one may come.
        drop_links(fs, cx, rename.to_dir, 1)?;
        drop_links(fs, cx, replaced, 2)
    } else {
        drop_links(fs, cx, replaced, 1)
    }
}

/// [`Volume::release`](kernel::Volume::release)
pub fn release<B: Backing>(fs: &mut B, cx: &mut Cx, ino: Ino) {
    fs.begin_release(cx, ino);
    give_up(fs, cx, ino);
    fs.end_release(cx);
}

/// Frees an inode and its blocks.
fn give_up<B: Backing>(fs: &mut B, cx: &mut Cx, ino: Ino) {
    if fs.releases_later(cx, ino) {
        return;
    }
    cx.cpu(cx.costs().inode_ns);
    let Ok(node) = fs.node(ino) else { return };
    if fs.has_blocks(&node.d) && (fs.held_bytes(&node.d) > 0 || node.d.size() > 0) {
        // It has no other user, and nothing in it can be missing: cutting it cannot fail.
        let cut = truncate::shorten(fs, cx, ino, 0);
        debug_assert!(cut.is_ok(), "inode {ino}: {cut:?}");
    }
    fs.free_inode(cx, ino);
}

/// [`Volume::readlink`](kernel::Volume::readlink)
pub fn readlink<B: Backing>(fs: &mut B, cx: &mut Cx, ino: Ino) -> Result<Vec<u8>, Errno> {
    let node = fs.node(ino)?;
    let Body::Symlink(target) = &node.body else { return Err(Errno::EINVAL) };
    if fs.has_blocks(&node.d)
        && let Some(piece) = node.piece(0, &fs.sizes())
    {
        cx.read(&fs.file_block(node, ino, 0, piece));
    }
    Ok(target.to_vec())
}

/// [`Volume::readdir`](kernel::Volume::readdir)
pub fn readdir<B: Backing>(
    fs: &mut B,
    cx: &mut Cx,
    dir: Ino,
    cookie: u64,
    sink: &mut dyn FnMut(Entry<'_>) -> bool,
) -> Result<(), Errno> {
    let bsize = u64::from(fs.sizes().bsize);
    let (mut at, mut read_to) = (cookie, cookie / bsize * bsize);
    while at < fs.node(dir)?.d.size() {
        if at >= read_to {
            cx.read(&fs.directory_block(dir, at)?);
            read_to = (at / bsize + 1) * bsize;
        }
        let Some((here, head, name)) = fs.directory(dir)?.entry_from(at) else { return Ok(()) };
        if here >= read_to {
            // The next entry is in a block not read yet.
            at = here;
            continue;
        }
        let behind = Directory::behind(here, &head);
        let kind = kind_of(fs.node(Ino(head.ino)).ok().and_then(|node| node.d.file_type()));
        if !sink(Entry { name, ino: Ino(head.ino), kind, cookie: behind }) {
            return Ok(());
        }
        at = behind;
    }
    Ok(())
}

/// [`Volume::truncate`](kernel::Volume::truncate)
pub fn truncate<B: Backing>(fs: &mut B, cx: &mut Cx, ino: Ino, size_bytes: u64) -> Result<(), Errno> {
    if size_bytes > fs.file_max_bytes() {
        return Err(Errno::EFBIG);
    }
    fs.may_write(ino)?;
    let grows = size_bytes > fs.node(ino)?.d.size();
    fs.admit(cx, Change::Length { grows })?;
    stamp_modified(fs, cx, ino)?;
    truncate::set_length(fs, cx, ino, size_bytes)?;
    fs.length_set(cx, ino);
    fs.settle(cx);
    Ok(())
}

// ---- steps of operations

fn file_type<B: Backing>(fs: &B, ino: Ino) -> Result<FileType, Errno> {
    fs.node(ino)?.d.file_type().ok_or(Errno::EIO)
}

/// A directory that is still in the tree.
fn live_directory<B: Backing>(fs: &B, dir: Ino) -> Result<(), Errno> {
    if fs.node(dir)?.d.nlink() <= 0 { Err(Errno::ENOENT) } else { Ok(()) }
}

fn empty_directory<B: Backing>(fs: &B, dir: Ino) -> Result<(), Errno> {
    if fs.directory(dir)?.is_empty() { Ok(()) } else { Err(Errno::ENOTEMPTY) }
}

/// `EMLINK` if an inode has as many links as it can count (`LINK_MAX`).
fn room_for_link<B: Backing>(fs: &B, ino: Ino) -> Result<(), Errno> {
    if fs.node(ino)?.d.nlink() == i16::MAX { Err(Errno::EMLINK) } else { Ok(()) }
}

/// Does what gives an inode a link more, which is counted before it, or after it if both reach the disk together.
fn with_link<B: Backing>(
    fs: &mut B,
    cx: &mut Cx,
    ino: Ino,
    name: impl FnOnce(&mut B, &mut Cx) -> Result<(), Errno>,
) -> Result<(), Errno> {
    if B::ATOMIC {
        name(fs, cx)?;
        return add_link(fs, cx, ino);
    }
    add_link(fs, cx, ino)?;
    let named = name(fs, cx);
    if named.is_err() {
        drop_links(fs, cx, ino, 1)?;
    }
    named
}

fn add_link<B: Backing>(fs: &mut B, cx: &mut Cx, ino: Ino) -> Result<(), Errno> {
    let now = time_of(cx.date_ns());
    let d = &mut fs.node_mut(ino)?.d;
    *d.nlink_mut() = d.nlink().checked_add(1).ok_or(Errno::EMLINK)?;
    *d.ctime_mut() = now;
    fs.link_added(cx, ino);
    Ok(())
}

/// So many links fewer, after the names are gone.
fn drop_links<B: Backing>(fs: &mut B, cx: &mut Cx, ino: Ino, links: i16) -> Result<(), Errno> {
    let now = time_of(cx.date_ns());
    let d = &mut fs.node_mut(ino)?.d;
    *d.nlink_mut() = d.nlink().saturating_sub(links).max(0);
    *d.ctime_mut() = now;
    fs.link_dropped(cx, ino, links);
    Ok(())
}

/// Takes back an inode whose name could not be entered.
fn unmake<B: Backing>(fs: &mut B, cx: &mut Cx, ino: Ino) {
    if let Ok(node) = fs.node_mut(ino) {
        *node.d.nlink_mut() = 0;
    }
    give_up(fs, cx, ino);
}

/// A new inode is whose operation made it.
fn belongs_to_owner<B: Backing>(fs: &mut B, cx: &Cx, ino: Ino) -> Result<(), Errno> {
    let d = &mut fs.node_mut(ino)?.d;
    (*d.uid_mut(), *d.gid_mut()) = cx.owner();
    Ok(())
}

fn make_file<B: Backing>(
    fs: &mut B,
    cx: &mut Cx,
    dir: Ino,
    name: &[u8],
    new: &NewNode<'_>,
    file_type: FileType,
    device: u16,
) -> Result<Ino, Errno> {
    let body = match new.kind {
        FileKind::Symlink => Body::Symlink(new.target.into()),
        _ => Body::File,
    };
    let ino = fs.new_inode(cx, dir, NewInode { file_type, permissions: new.mode, nlink: 1, device, body })?;
    belongs_to_owner(fs, cx, ino)?;
    // 4.4BSD enters a symbolic link's name before it writes the target; a name that leads nowhere is what this avoids.
    let linked = match new.kind {
        FileKind::Symlink => write_target(fs, cx, ino, new.target),
        _ => Ok(()),
    };
    fs.inode_made(cx, ino);
    if let Err(error) = linked.and_then(|()| enter(fs, cx, dir, Name { name, ino }, file_type)) {
        unmake(fs, cx, ino);
        return Err(error);
    }
    Ok(ino)
}

/// Where a symbolic link leads: in the inode if it is short, else in a block.
fn write_target<B: Backing>(fs: &mut B, cx: &mut Cx, ino: Ino, target: &[u8]) -> Result<(), Errno> {
    if target.len() > fs.sizes().bsize as usize {
        return Err(Errno::ENAMETOOLONG);
    }
    if fs.put_target(ino, target)? {
        *fs.node_mut(ino)?.d.size_mut() = target.len() as u64;
        return Ok(());
    }
    let wanted = fs.balloc(cx, ino, 0, target.len() as u32)?;
    let block = fs.file_block(fs.node(ino)?, ino, 0, wanted.piece);
    cx.make(&block);
    *fs.node_mut(ino)?.d.size_mut() = target.len() as u64;
    fs.target_made(cx, block.id);
    Ok(())
}

fn make_directory<B: Backing>(fs: &mut B, cx: &mut Cx, dir: Ino, name: &[u8], new: &NewNode<'_>) -> Result<Ino, Errno> {
    room_for_link(fs, dir)?;
    let (file_type, format) = (FileType::Directory, fs.dir_format());
    let content = |own: Ino| Box::new(Directory::new(format, own.0, dir.0, file_type.entry_type()));
    let new = NewInode {
        file_type,
        permissions: new.mode,
        nlink: 2,
        device: 0,
        // Its own number is not known yet.
        body: Body::Directory(content(Ino(0))),
    };
    let ino = fs.new_inode(cx, dir, new)?;
    fs.node_mut(ino)?.body = Body::Directory(content(ino));
    belongs_to_owner(fs, cx, ino)?;
    fs.inode_made(cx, ino);
    // The link that `..` is.
    let made = with_link(fs, cx, dir, |fs, cx| {
        first_chunk(fs, cx, ino)?;
        enter(fs, cx, dir, Name { name, ino }, file_type)
    });
    if let Err(error) = made {
        unmake(fs, cx, ino);
        return Err(error);
    }
    Ok(ino)
}

/// The operations as methods of an implementation of [`kernel::Volume`], for a [`Backing`]. The types of
/// [`kernel::Volume`] that they take are in scope where it is used.
#[macro_export]
macro_rules! volume_operations {
    () => {
        fn attributes(&self, ino: Ino) -> Result<Attributes, Errno> {
            $crate::live::operations::attributes(self, ino)
        }

        fn set_attributes(&mut self, cx: &mut Cx, ino: Ino, set: &SetAttributes) -> Result<(), Errno> {
            $crate::live::operations::set_attributes(self, cx, ino, set)
        }

        fn lookup(&mut self, cx: &mut Cx, dir: Ino, name: &[u8]) -> Result<Option<Ino>, Errno> {
            $crate::live::operations::lookup(self, cx, dir, name)
        }

        fn parent(&mut self, cx: &mut Cx, dir: Ino) -> Result<Ino, Errno> {
            $crate::live::operations::parent(self, cx, dir)
        }

        fn create(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], new: &NewNode<'_>) -> Result<Ino, Errno> {
            $crate::live::operations::create(self, cx, dir, name, new)
        }

        fn link(&mut self, cx: &mut Cx, ino: Ino, dir: Ino, name: &[u8]) -> Result<(), Errno> {
            $crate::live::operations::link(self, cx, ino, dir, name)
        }

        fn unlink(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Errno> {
            $crate::live::operations::unlink(self, cx, dir, name, ino)
        }

        fn rmdir(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Errno> {
            $crate::live::operations::rmdir(self, cx, dir, name, ino)
        }

        fn rename(&mut self, cx: &mut Cx, rename: &Rename<'_>) -> Result<(), Errno> {
            $crate::live::operations::rename(self, cx, rename)
        }

        fn release(&mut self, cx: &mut Cx, ino: Ino) {
            $crate::live::operations::release(self, cx, ino);
        }

        fn readlink(&mut self, cx: &mut Cx, ino: Ino) -> Result<Vec<u8>, Errno> {
            $crate::live::operations::readlink(self, cx, ino)
        }

        fn readdir(
            &mut self,
            cx: &mut Cx,
            dir: Ino,
            at: u64,
            sink: &mut dyn FnMut(Entry<'_>) -> bool,
        ) -> Result<(), Errno> {
            $crate::live::operations::readdir(self, cx, dir, at, sink)
        }

        fn truncate(&mut self, cx: &mut Cx, ino: Ino, size_bytes: u64) -> Result<(), Errno> {
            $crate::live::operations::truncate(self, cx, ino, size_bytes)
        }

        fn map(&mut self, cx: &mut Cx, ino: Ino, lbn: Lbn, ahead: u32) -> Result<Option<Mapped>, Errno> {
            $crate::live::Files::map_block(self, cx, ino, lbn, ahead)
        }

        fn extents(&self, ino: Ino) -> Result<Vec<Extent>, Errno> {
            $crate::live::Files::extents_of(self, ino)
        }
    };
}
