//! Every call, by what it does and costs.

use super::costs::cost;
use super::{Done, Failed, Fake};
use posix::{Call, Errno, FileKind, Reply, Residency, SetTime, SyncRange, Whence};
use system::vector::Class;

impl Fake {
    pub(super) fn make(&mut self, call: &Call<'_>) -> Done {
        use Class::*;
        let done = |class: Class| Ok((Reply::Done, cost(class, 0)));
        match *call {
            Call::SetXattr { .. } | Call::GetXattr { .. } | Call::ListXattr { .. } | Call::RemoveXattr { .. }
                if !self.xattrs =>
            {
                Err(Errno::EOPNOTSUPP.into())
            }
            Call::Open { at, flags, .. } => self.open(at, flags),
            Call::Close { fd } => {
                let open = self.fds.remove(&fd.0).ok_or(Errno::EBADF)?;
                self.release(open.node);
                let file = &mut self.nodes[open.node];
                match file.emptied.take() {
                    Some(0) => Ok((Reply::Done, cost(CloseTruncatedEmpty, file.new_bytes))),
                    Some(_) => Ok((Reply::Done, cost(CloseTruncated, file.new_bytes))),
                    None => done(if file.new_bytes > 0 { CloseWritten } else { Close }),
                }
            }
            Call::Read { fd, offset, len_bytes } => self.read(fd, offset, len_bytes),
            Call::Write { fd, offset, len_bytes, .. } => self.write(fd, offset, len_bytes),
            Call::Seek { fd, offset, whence } => {
                let open = self.fds.get_mut(&fd.0).ok_or(Errno::EBADF)?;
                let from = match whence {
                    Whence::Set => 0,
                    Whence::Current => open.offset,
                    Whence::End => self.nodes[open.node].size,
                    Whence::Data | Whence::Hole => return Err(Errno::ENOSYS.into()),
                };
                open.offset = from.checked_add_signed(offset).ok_or(Errno::EINVAL)?;
                Ok((Reply::Count(open.offset), cost(Seek, 0)))
            }
            Call::Fsync { fd } => Ok((Reply::Done, self.sync_node(self.node_of(fd)?, false))),
            Call::Fdatasync { fd } => Ok((Reply::Done, self.sync_node(self.node_of(fd)?, true))),
            Call::SyncRange { fd, how, .. } => {
                let node = self.node_of(fd)?;
                let class = if how == SyncRange::STARTED { SyncRangeStart } else { SyncFs };
                Ok((Reply::Done, cost(class, self.nodes[node].new_bytes)))
            }
            Call::SyncFs => {
                let bytes = self.dirty_bytes();
                self.empty_made = 0;
                self.settled = false;
                self.write_back();
                Ok((Reply::Done, cost(SyncFs, bytes)))
            }
            Call::Truncate { at, len_bytes } => {
                let (node, ns) = self.find(at)?;
                let class = if self.nodes[node].map_cached { TruncateCached } else { TruncateUncached };
                self.drop_blocks(node);
                let size = self.nodes[node].size;
                self.resize(node, len_bytes)?;
                Ok((Reply::Done, ns + cost(class, size)))
            }
            Call::Ftruncate { fd, len_bytes } => {
                let node = self.node_of(fd)?;
                let cuts = self.cut_writes;
                let file = &mut self.nodes[node];
                assert_eq!(file.size, len_bytes, "only to the length it has");
                let ns = cost(TruncateDirty, file.new_bytes);
                if cuts {
                    file.new_bytes = 0;
                }
                Ok((Reply::Done, ns))
            }
            Call::Fallocate { .. } if !self.preallocates => Err(Errno::EOPNOTSUPP.into()),
            Call::Fallocate { len_bytes, .. } => Ok((Reply::Done, cost(Fallocate, len_bytes))),
            Call::CopyRange { from, to, len_bytes, .. } => {
                let (from, to) = (self.node_of(from)?, self.node_of(to)?);
                let class = if self.nodes[from].new_bytes > 0 { CopyDirty } else { CopyRange };
                self.resize(to, self.nodes[to].size + len_bytes)?;
                if !self.shares {
                    self.nodes[to].new_bytes += len_bytes;
                    self.dirty.insert(to);
                }
                Ok((Reply::Count(len_bytes), cost(class, len_bytes)))
            }
            Call::DontNeed { fd, .. } => {
                self.drop_blocks(self.node_of(fd)?);
                done(Fadvise)
            }
            Call::Advise { .. } => done(Fadvise),
            Call::Lock { .. } => done(Fcntl),
            Call::MapUnmap { .. } => done(Mmap),
            Call::Residency { fd, .. } => {
                let file = &self.nodes[self.node_of(fd)?];
                let dirty_bytes = Some(file.new_bytes + file.over_bytes);
                Ok((Reply::Residency(Residency { cached_bytes: file.size, missing_bytes: 0, dirty_bytes }), 0))
            }
            Call::Stat { at, .. } => {
                let (node, ns) = self.find(at)?;
                Ok((self.stat_of(node), ns + cost(Stat, 0)))
            }
            Call::Fstat { fd } => Ok((self.stat_of(self.node_of(fd)?), cost(Fstat, 0))),
            Call::StatFs { at } => self.on_path(at, StatFs),
            Call::Access { at, .. } => self.on_path(at, Access),
            Call::ReadLink { at } => {
                let (node, ns) = self.find(at)?;
                if self.nodes[node].kind == FileKind::Symlink {
                    Ok((Reply::Count(4), ns + cost(ReadLink, 0)))
                } else {
                    Err(Failed(Errno::EINVAL, ns + cost(ReadLinkNone, 0)))
                }
            }
            Call::GetDents { fd, .. } => {
                let open = self.fds.get_mut(&fd.0).ok_or(Errno::EBADF)?;
                if std::mem::replace(&mut open.listed, true) {
                    return Ok((Reply::Count(0), 0));
                }
                let dir = &mut self.nodes[open.node];
                let class = if std::mem::replace(&mut dir.map_cached, true) { ReadDir } else { ReadDirCold };
                Ok((Reply::Count(64), cost(class, dir.entries.len() as u64)))
            }
            Call::Mkdir { at, .. } => self.make_at(at, FileKind::Directory, Mkdir),
            Call::Symlink { at, .. } => self.make_at(at, FileKind::Symlink, Symlink),
            Call::Rmdir { at } => {
                let (dir, name, ns) = self.parent(at)?;
                self.remove(dir, &name, true).map_err(|errno| Failed(errno, ns))?;
                Ok((Reply::Done, ns + cost(Rmdir, 0)))
            }
            Call::Unlink { at } => self.unlink(at),
            Call::Rename { from, to, noreplace, exchange: false } => {
                let (node, ns) = self.find(from)?;
                let (old_dir, old, _) = self.parent(from)?;
                let (dir, name, _) = self.parent(to)?;
                let replaced = self.entry(dir, &name);
                match replaced {
                    Some(_) if noreplace => return Err(Errno::EEXIST.into()),
                    Some(there) if there == node => return Ok((Reply::Done, ns + cost(Rename, 0))),
                    Some(_) => self.remove(dir, &name, self.nodes[node].kind == FileKind::Directory)?,
                    None => {}
                }
                self.add(dir, &name, node)?;
                self.nodes[node].nlink += 1;
                self.unname(old_dir, &old, node);
                let dirty_bytes = self.nodes[node].new_bytes + self.nodes[node].over_bytes;
                let (class, at) = match (replaced, dirty_bytes) {
                    (None, _) => (Rename, 0),
                    (Some(_), 0) => (RenameOver, 0),
                    (Some(_), bytes) => (RenameOverDirty, bytes),
                };
                Ok((Reply::Done, ns + cost(class, at)))
            }
            Call::Link { from, to, .. } => {
                let (node, ns) = self.find(from)?;
                let (dir, name, _) = self.parent(to)?;
                self.add(dir, &name, node)?;
                self.nodes[node].nlink += 1;
                Ok((Reply::Done, ns + cost(Link, 0)))
            }
            Call::Rename { .. } | Call::LinkFd { .. } | Call::Mknod { .. } => Err(Errno::ENOSYS.into()),
            Call::Chmod { at, .. } => self.on_path(at, Chmod),
            Call::Fchmod { .. } => done(Fchmod),
            Call::Chown { at, uid, .. } => {
                assert_eq!(uid, Some(5), "only to the owner it has");
                self.on_path(at, Chown)
            }
            Call::Fchown { .. } => done(Fchown),
            Call::Utimens { at, mtime, .. } => {
                let (node, ns) = self.find(at)?;
                if let SetTime::To(set_ns) = mtime {
                    self.nodes[node].mtime_ns = set_ns;
                }
                Ok((Reply::Done, ns + cost(Utimens, 0)))
            }
            Call::Futimens { .. } => done(Futimens),
            Call::SetXattr { at, name, .. } => {
                let (node, ns) = self.find(at)?;
                assert!(self.nodes[node].xattrs.insert(name.to_owned()), "an attribute that is new");
                Ok((Reply::Done, ns + cost(SetXattr, 0)))
            }
            Call::GetXattr { at, name, .. } => {
                let (node, ns) = self.find(at)?;
                if self.nodes[node].xattrs.contains(name) {
                    Ok((Reply::Count(32), ns + cost(GetXattr, 0)))
                } else {
                    Err(Failed(Errno::ENODATA, ns + cost(GetXattrMissing, 0)))
                }
            }
            Call::RemoveXattr { at, name, .. } => {
                let (node, ns) = self.find(at)?;
                assert!(self.nodes[node].xattrs.remove(name));
                Ok((Reply::Done, ns + cost(RemoveXattr, 0)))
            }
            Call::ListXattr { at, .. } => self.on_path(at, ListXattr),
        }
    }
}
