//! One arm per call.

use super::Lab;
use crate::engine::ActorId;
use crate::{CheckEnd, Correction, Durability, Ino, NewNode, SetAttributes, Volume};
use posix::{Advice, Call, Errno, Fallocate, Fd, FileKind, Lock, Mode, OpenFlags, Reply, SetTime, Stat, SyncRange};
use std::os::unix::ffi::OsStrExt;

/// The device number that files of a laboratory show.
const DEV: u64 = 0xf5;
/// A `linux_dirent64` without its name and the NUL behind it.
const DIRENT_HEAD_BYTES: u64 = 19;
/// Permission bits, with set-user-id, set-group-id and sticky.
const MODE_BITS: u16 = 0o7777;

impl<V: Volume> Lab<V> {
    /// Lets a call take effect now; its program is left in the context.
    pub(super) fn perform(&mut self, call: &Call<'_>) -> Result<Reply, Errno> {
        self.begin();
        if let Call::Residency { fd, offset, len_bytes } = *call {
            return self.residency(fd, offset, len_bytes);
        }
        self.cx.cpu(self.cx.costs.call_ns);
        let result = self.dispatch(call);
        self.after_operation();
        match self.trouble() {
            Ok(()) => result,
            Err(errno) => result.and(Err(errno)),
        }
    }

    /// Takes a snapshot of the file system into a new file: [`Volume::snapshot`], in virtual time. Returns its inode.
    ///
    /// # Errors
    /// The file system's, and those of a path.
    pub fn snapshot(&mut self, path: &str) -> Result<Ino, Errno> {
        self.operation(|lab| lab.take_snapshot(path.into()))
    }

    /// Gives back what a crash has left: [`Volume::give_back`], in virtual time, as one call.
    ///
    /// # Errors
    /// The file system's.
    pub fn give_back(&mut self, corrections: &[Correction]) -> Result<(), Errno> {
        self.operation(|lab| {
            for correction in corrections {
                for ino in lab.volume.give_back(&mut lab.cx, correction)? {
                    lab.release_if_unused(ino);
                }
            }
            Ok(())
        })
    }

    /// Takes a snapshot for a check beside the work, and opens it: [`Volume::snapshot_to_check`], in virtual time. It
    /// goes when it is closed.
    ///
    /// # Errors
    /// The file system's.
    pub fn snapshot_to_check(&mut self) -> Result<Fd, Errno> {
        self.operation(|lab| {
            let ino = lab.volume.snapshot_to_check(&mut lab.cx)?;
            lab.new_node(ino);
            match lab.open_inode(ino, OpenFlags { noatime: true, ..OpenFlags::READ }, 0)? {
                Reply::Fd(fd) => Ok(fd),
                other => unreachable!("opening answers with a descriptor, not {other:?}"),
            }
        })
    }

    /// The check beside the work is over: [`Volume::checked`], in virtual time.
    ///
    /// # Errors
    /// The file system's.
    pub fn checked(&mut self, end: CheckEnd) -> Result<(), Errno> {
        self.operation(|lab| lab.volume.checked(&mut lab.cx, end))
    }

    /// What there is no call for, in virtual time.
    fn operation<T>(&mut self, operation: impl FnOnce(&mut Self) -> Result<T, Errno>) -> Result<T, Errno> {
        self.begin();
        self.cx.cpu(self.cx.costs.call_ns);
        let result = operation(self);
        self.after_operation();
        let trouble = self.trouble();
        self.run_program(ActorId(0));
        trouble.and(result)
    }

    fn dispatch(&mut self, call: &Call<'_>) -> Result<Reply, Errno> {
        match *call {
            Call::Open { at, flags, mode } => self.open(at, flags, mode),
            Call::Close { fd } => self.close(fd),
            Call::Read { fd, offset, len_bytes } => self.read(fd, offset, len_bytes),
            Call::Write { fd, offset, len_bytes, data } => self.write(fd, offset, len_bytes, data),
            Call::Seek { fd, offset, whence } => self.seek(fd, offset, whence),
            Call::Fsync { fd } => self.fsync(fd, Durability::All),
            Call::Fdatasync { fd } => self.fsync(fd, Durability::Data),
            Call::SyncRange { fd, offset, len_bytes, how } => self.sync_range(fd, offset, len_bytes, how),
            Call::SyncFs => {
                self.volume.sync(&mut self.cx, Durability::All)?;
                Ok(Reply::Done)
            }
            Call::Ftruncate { fd, len_bytes } => {
                let description = self.descriptors.get(fd)?;
                description.opened()?;
                if description.kind != FileKind::File || description.writable().is_err() {
                    return Err(Errno::EINVAL);
                }
                self.truncate(description.ino, len_bytes)
            }
            Call::Truncate { at, len_bytes } => {
                let ino = self.resolve(at, true)?;
                match self.kind(ino)? {
                    FileKind::Directory => Err(Errno::EISDIR),
                    FileKind::File => self.truncate(ino, len_bytes),
                    FileKind::Symlink | FileKind::Special => Err(Errno::EINVAL),
                }
            }
            Call::Fallocate { fd, how, offset, len_bytes } => self.fallocate(fd, how, offset, len_bytes),
            Call::CopyRange { from, from_offset, to, to_offset, len_bytes } => {
                self.copy_range((from, from_offset), (to, to_offset), len_bytes)
            }
            Call::DontNeed { fd, offset, len_bytes } => self.dont_need(fd, offset, len_bytes),
            Call::Advise { fd, offset, len_bytes, advice } => self.advise(fd, offset, len_bytes, advice),
            Call::Lock { fd, lock, .. } => {
                let description = self.descriptors.get(fd)?;
                // All processes here are one as far as record locks go, so none is ever refused.
                match lock {
                    Lock::Shared => description.readable()?,
                    Lock::Exclusive => description.writable()?,
                    Lock::Unlock => description.opened()?,
                }
                Ok(Reply::Done)
            }
            Call::MapUnmap { fd, len_bytes } => {
                let description = self.descriptors.get(fd)?;
                description.opened()?;
                match description.kind {
                    _ if len_bytes == 0 => Err(Errno::EINVAL),
                    _ if description.readable().is_err() => Err(Errno::EACCES),
                    FileKind::File => Ok(Reply::Done),
                    _ => Err(Errno::ENODEV),
                }
            }
            Call::Residency { fd, offset, len_bytes } => self.residency(fd, offset, len_bytes),
            Call::Stat { at, follow } => {
                let ino = self.resolve(at, follow)?;
                self.stat(ino)
            }
            Call::Fstat { fd } => {
                let ino = self.descriptors.get(fd)?.ino;
                self.stat(ino)
            }
            Call::StatFs { at } => self.resolve(at, true).map(|_| Reply::Done),
            Call::Access { at, mode } => {
                let ino = self.resolve(at, true)?;
                let attributes = self.volume.attributes(ino)?;
                // As root: everything may be read and written, and executed if anybody may.
                let never = attributes.kind != FileKind::Directory && attributes.mode & 0o111 == 0;
                if mode.execute && never { Err(Errno::EACCES) } else { Ok(Reply::Done) }
            }
            Call::ReadLink { at } => {
                let ino = self.resolve(at, false)?;
                if self.kind(ino)? != FileKind::Symlink {
                    return Err(Errno::EINVAL);
                }
                let target = self.volume.readlink(&mut self.cx, ino)?;
                Ok(Reply::Count(target.len() as u64))
            }
            Call::GetDents { fd, len_bytes } => self.getdents(fd, len_bytes),
            Call::Mkdir { at, mode } => {
                self.make(at, &NewNode { kind: FileKind::Directory, mode: mode.0 & MODE_BITS, target: &[] })
            }
            Call::Rmdir { at } => self.rmdir(at),
            Call::Unlink { at } => self.unlink(at),
            Call::Rename { from, to, noreplace, exchange } => self.rename(from, to, noreplace, exchange),
            Call::Link { from, to, follow } => {
                let ino = self.resolve(from, follow)?;
                self.link(ino, to)
            }
            Call::LinkFd { fd, to } => {
                let ino = self.descriptors.get(fd)?.ino;
                self.link(ino, to)
            }
            Call::Symlink { target, at } => self.symlink(target.as_os_str().as_bytes(), at),
            Call::Mknod { at, kind: kind @ (FileKind::File | FileKind::Special), mode } => {
                self.make(at, &NewNode { kind, mode: mode.0 & MODE_BITS, target: &[] })
            }
            Call::Mknod { .. } => Err(Errno::EPERM),
            Call::Chmod { at, mode } => {
                let ino = self.resolve(at, true)?;
                self.set(ino, &chmod(mode))
            }
            Call::Fchmod { fd, mode } => {
                let ino = self.opened(fd)?;
                self.set(ino, &chmod(mode))
            }
            Call::Chown { at, follow, uid, gid } => {
                let ino = self.resolve(at, follow)?;
                self.set(ino, &SetAttributes { uid, gid, ..SetAttributes::default() })
            }
            Call::Fchown { fd, uid, gid } => {
                let ino = self.opened(fd)?;
                self.set(ino, &SetAttributes { uid, gid, ..SetAttributes::default() })
            }
            Call::Utimens { at, follow, atime, mtime } => {
                let start = self.start(at);
                if (atime, mtime) == (SetTime::Omit, SetTime::Omit) {
                    return start.map(|_| Reply::Done);
                }
                let ino = self.resolve(at, follow)?;
                self.set_times(ino, atime, mtime)
            }
            Call::Futimens { fd, atime, mtime } => {
                let ino = self.opened(fd)?;
                self.set_times(ino, atime, mtime)
            }
            // No file system here has extended attributes.
            Call::SetXattr { at, follow, .. }
            | Call::GetXattr { at, follow, .. }
            | Call::RemoveXattr { at, follow, .. } => self.resolve(at, follow).and(Err(Errno::EOPNOTSUPP)),
            Call::ListXattr { at, follow } => self.resolve(at, follow).map(|_| Reply::Count(0)),
        }
    }

    fn opened(&self, fd: Fd) -> Result<Ino, Errno> {
        let description = self.descriptors.get(fd)?;
        description.opened().map(|()| description.ino)
    }

    fn fsync(&mut self, fd: Fd, how: Durability) -> Result<Reply, Errno> {
        let ino = self.opened(fd)?;
        self.volume.fsync(&mut self.cx, ino, how)?;
        Ok(Reply::Done)
    }

    fn sync_range(&mut self, fd: Fd, offset: u64, len_bytes: u64, how: SyncRange) -> Result<Reply, Errno> {
        let description = self.descriptors.get(fd)?;
        description.opened()?;
        let end = offset.checked_add(len_bytes).filter(|end| *end <= i64::MAX as u64).ok_or(Errno::EINVAL)?;
        if description.kind == FileKind::Special {
            return Err(Errno::ESPIPE);
        }
        let block = i64::from(self.volume.block_bytes());
        let end = if len_bytes == 0 { i64::MAX } else { end as i64 };
        let range = offset as i64 / block..=(end - 1) / block;
        // Whoever waits waits for all of the file that is under way: a file's requests are not told apart by range.
        if how.wait_before {
            self.cx.wait_for_file(description.ino);
        }
        if how.write {
            let dirty = self.cx.cache.dirty_of(description.ino).map(|slot| self.cx.cache.get(slot).id);
            let blocks: Vec<_> = dirty.filter(|id| range.contains(&id.lbn.0)).collect();
            self.volume.write_back(&mut self.cx, &blocks);
        }
        if how.wait_after {
            self.cx.wait_for_file(description.ino);
        }
        Ok(Reply::Done)
    }

    fn truncate(&mut self, ino: Ino, len_bytes: u64) -> Result<Reply, Errno> {
        if len_bytes > i64::MAX as u64 {
            return Err(Errno::EINVAL);
        }
        if len_bytes > self.volume.file_max_bytes() {
            return Err(Errno::EFBIG);
        }
        self.volume.truncate(&mut self.cx, ino, len_bytes)?;
        Ok(Reply::Done)
    }

    fn fallocate(&mut self, fd: Fd, how: Fallocate, offset: u64, len_bytes: u64) -> Result<Reply, Errno> {
        let description = self.descriptors.get(fd)?;
        if len_bytes == 0 || offset > i64::MAX as u64 {
            return Err(Errno::EINVAL);
        }
        description.writable()?;
        if description.kind != FileKind::File {
            return Err(Errno::ENODEV);
        }
        if offset.saturating_add(len_bytes) > self.volume.file_max_bytes() {
            return Err(Errno::EFBIG);
        }
        let (cx, ino) = (&mut self.cx, description.ino);
        match how {
            Fallocate::Allocate => self.volume.allocate(cx, ino, offset, len_bytes, false)?,
            Fallocate::AllocateKeepSize => self.volume.allocate(cx, ino, offset, len_bytes, true)?,
            Fallocate::PunchHole => self.volume.punch_hole(cx, ino, offset, len_bytes)?,
            Fallocate::ZeroRange
            | Fallocate::ZeroRangeKeepSize
            | Fallocate::CollapseRange
            | Fallocate::InsertRange
            | Fallocate::UnshareRange
            | Fallocate::UnshareRangeKeepSize
            | Fallocate::Other(_) => return Err(Errno::EOPNOTSUPP),
        }
        Ok(Reply::Done)
    }

    /// Starts writing what is dirty of a range, and gives up what is clean.
    fn dont_need(&mut self, fd: Fd, offset: u64, len_bytes: u64) -> Result<Reply, Errno> {
        let ino = self.opened(fd)?;
        let len = if len_bytes == 0 { u64::MAX } else { len_bytes };
        let block = u64::from(self.volume.block_bytes());
        let range = (offset / block) as i64..=(offset.saturating_add(len).saturating_sub(1) / block) as i64;
        let dirty = self.cx.cache.dirty_of(ino).map(|slot| self.cx.cache.get(slot).id);
        let blocks: Vec<_> = dirty.filter(|id| range.contains(&id.lbn.0)).collect();
        self.volume.write_back(&mut self.cx, &blocks);
        self.drop_clean_data(ino, offset, len);
        Ok(Reply::Done)
    }

    /// Looks at the cache: no time passes, nothing is touched.
    fn residency(&self, fd: Fd, offset: u64, len_bytes: u64) -> Result<Reply, Errno> {
        let description = self.descriptors.get(fd)?;
        description.opened()?;
        if description.kind != FileKind::File {
            return Err(Errno::EINVAL);
        }
        let len = if len_bytes == 0 { u64::MAX } else { len_bytes };
        let size_bytes = self.volume.attributes(description.ino)?.size_bytes;
        Ok(Reply::Residency(self.cached_data(description.ino, offset, offset.saturating_add(len).min(size_bytes))))
    }

    fn advise(&mut self, fd: Fd, offset: u64, len_bytes: u64, advice: Advice) -> Result<Reply, Errno> {
        let ino = self.opened(fd)?;
        match advice {
            Advice::Normal | Advice::Sequential | Advice::Random => {
                if let Some(node) = self.cx.nodes.get_mut(ino) {
                    node.random = advice == Advice::Random;
                }
            }
            Advice::WillNeed if self.kind(ino)? == FileKind::File => {
                let len = if len_bytes == 0 { u64::MAX } else { len_bytes };
                self.prefetch(ino, offset, len)?;
            }
            Advice::WillNeed => {}
        }
        Ok(Reply::Done)
    }

    fn stat(&mut self, ino: Ino) -> Result<Reply, Errno> {
        self.cx.cpu(self.cx.costs.attributes_ns);
        let attributes = self.volume.attributes(ino)?;
        Ok(Reply::Stat(Stat {
            ino: u64::from(ino.0),
            dev: DEV,
            kind: attributes.kind,
            mode: Mode(attributes.mode),
            uid: attributes.uid,
            gid: attributes.gid,
            nlink: attributes.nlink,
            size_bytes: attributes.size_bytes,
            allocated_bytes: attributes.allocated_bytes,
            atime_ns: attributes.atime_ns,
            mtime_ns: attributes.mtime_ns,
            ctime_ns: attributes.ctime_ns,
        }))
    }

    fn set(&mut self, ino: Ino, set: &SetAttributes) -> Result<Reply, Errno> {
        self.cx.cpu(self.cx.costs.attributes_ns);
        self.volume.set_attributes(&mut self.cx, ino, set)?;
        Ok(Reply::Done)
    }

    fn set_times(&mut self, ino: Ino, atime: SetTime, mtime: SetTime) -> Result<Reply, Errno> {
        let date_ns = self.cx.date_ns();
        let time = |set| match set {
            SetTime::Now => Some(date_ns),
            SetTime::Omit => None,
            SetTime::To(ns) => Some(ns),
        };
        self.set(ino, &SetAttributes { atime_ns: time(atime), mtime_ns: time(mtime), ..SetAttributes::default() })
    }

    fn getdents(&mut self, fd: Fd, len_bytes: u64) -> Result<Reply, Errno> {
        let description = self.descriptors.get(fd)?;
        description.opened()?;
        if description.kind != FileKind::Directory {
            return Err(Errno::ENOTDIR);
        }
        if self.volume.attributes(description.ino)?.nlink == 0 {
            return Err(Errno::ENOENT);
        }
        let room = len_bytes.clamp(4, 1 << 20);
        let (mut filled, mut cookie, mut taken, mut full) = (0, description.offset, 0u64, false);
        self.volume.readdir(&mut self.cx, description.ino, cookie, &mut |entry| {
            let record = (DIRENT_HEAD_BYTES + entry.name.len() as u64 + 1).next_multiple_of(8);
            full = filled + record > room;
            if !full {
                (filled, cookie, taken) = (filled + record, entry.cookie, taken + 1);
            }
            !full
        })?;
        self.cx.cpu(self.cx.costs.entry_ns * taken + self.cx.costs.copy_ns(filled));
        if full && taken == 0 {
            return Err(Errno::EINVAL);
        }
        self.descriptors.set_offset(fd, cookie);
        Ok(Reply::Count(filled))
    }
}

fn chmod(mode: Mode) -> SetAttributes {
    SetAttributes { mode: Some(mode.0 & MODE_BITS), ..SetAttributes::default() }
}
