//! Every call, by what it does and costs.

use super::costs::cost;
use super::{Done, Fake};
use posix::{Call, Errno, FileKind, Reply, Residency, SyncRange};
use system::vector::Class;

impl Fake {
    pub(super) fn make(&mut self, call: &Call<'_>) -> Done {
        use Class::*;
        let bad = |e: Errno| (e, 0);
        let done = |class: Class| Ok((Reply::Done, cost(class, 0)));
        match *call {
            Call::Open { at, flags, .. } => self.open(at, flags),
            Call::Close { fd } => {
                let open = self.fds.remove(&fd.0).ok_or(bad(Errno::EBADF))?;
                let file = &mut self.nodes[open.node];
                match file.emptied.take() {
                    Some(0) => Ok((Reply::Done, cost(CloseTruncatedEmpty, file.new_bytes))),
                    Some(_) => Ok((Reply::Done, cost(CloseTruncated, file.new_bytes))),
                    None => done(if file.new_bytes > 0 { CloseWritten } else { Close }),
                }
            }
            Call::Read { fd, offset, len_bytes } => self.read(fd, offset, len_bytes),
            Call::Write { fd, offset, len_bytes, .. } => self.write(fd, offset, len_bytes),
            Call::Seek { fd, offset, .. } => {
                self.fds.get_mut(&fd.0).ok_or(bad(Errno::EBADF))?.offset = offset as u64;
                Ok((Reply::Count(offset as u64), cost(Seek, 0)))
            }
            Call::Fsync { fd } => {
                let node = self.node_of(fd).map_err(bad)?;
                Ok((Reply::Done, self.sync_node(node, false)))
            }
            Call::Fdatasync { fd } => {
                let node = self.node_of(fd).map_err(bad)?;
                Ok((Reply::Done, self.sync_node(node, true)))
            }
            Call::SyncRange { fd, how, .. } => {
                let node = self.node_of(fd).map_err(bad)?;
                let class = if how == SyncRange::STARTED { SyncRangeStart } else { SyncFs };
                Ok((Reply::Done, cost(class, self.nodes[node].new_bytes)))
            }
            Call::SyncFs => {
                let bytes = self.dirty_bytes();
                self.empty_made = 0;
                self.settled = false;
                for node in std::mem::take(&mut self.dirty) {
                    let node = &mut self.nodes[node];
                    (node.new_bytes, node.over_bytes, node.over_runs, node.ever_synced) = (0, 0, 0, true);
                }
                Ok((Reply::Done, cost(SyncFs, bytes)))
            }
            Call::Truncate { at, .. } => {
                let (node, ns) = self.find(at)?;
                let class = if self.nodes[node].map_cached { TruncateCached } else { TruncateUncached };
                self.drop_blocks(node);
                let size = std::mem::take(&mut self.nodes[node].size);
                Ok((Reply::Done, ns + cost(class, size)))
            }
            Call::Ftruncate { fd, len_bytes } => {
                let node = self.node_of(fd).map_err(bad)?;
                let cuts = self.cut_writes;
                let file = &mut self.nodes[node];
                assert_eq!(file.size, len_bytes, "only to the length it has");
                let ns = cost(TruncateDirty, file.new_bytes);
                if cuts {
                    file.new_bytes = 0;
                }
                Ok((Reply::Done, ns))
            }
            Call::Fallocate { .. } if !self.preallocates => Err((Errno::EOPNOTSUPP, 0)),
            Call::Fallocate { len_bytes, .. } => Ok((Reply::Done, cost(Fallocate, len_bytes))),
            Call::CopyRange { from, to, len_bytes, .. } => {
                let (from, to) = (self.node_of(from).map_err(bad)?, self.node_of(to).map_err(bad)?);
                let class = if self.nodes[from].new_bytes > 0 { CopyDirty } else { CopyRange };
                if !self.shares {
                    self.nodes[to].new_bytes += len_bytes;
                    self.dirty.insert(to);
                }
                self.nodes[to].size += len_bytes;
                Ok((Reply::Count(len_bytes), cost(class, len_bytes)))
            }
            Call::DontNeed { fd, .. } => {
                let node = self.node_of(fd).map_err(bad)?;
                self.drop_blocks(node);
                done(Fadvise)
            }
            Call::Advise { .. } => done(Fadvise),
            Call::Lock { .. } => done(Fcntl),
            Call::MapUnmap { .. } => done(Mmap),
            Call::Residency { fd, .. } => {
                let file = &self.nodes[self.node_of(fd).map_err(bad)?];
                let dirty_bytes = Some(file.new_bytes + file.over_bytes);
                Ok((Reply::Residency(Residency { cached_bytes: file.size, missing_bytes: 0, dirty_bytes }), 0))
            }
            Call::Stat { at, .. } => {
                let (node, ns) = self.find(at)?;
                Ok((self.stat_of(node), ns + cost(Stat, 0)))
            }
            Call::Fstat { fd } => {
                let node = self.node_of(fd).map_err(bad)?;
                Ok((self.stat_of(node), cost(Fstat, 0)))
            }
            Call::StatFs { at } => self.on_path(at, StatFs),
            Call::Access { at, .. } => self.on_path(at, Access),
            Call::ReadLink { at } => {
                let (node, ns) = self.find(at)?;
                if self.nodes[node].kind == FileKind::Symlink {
                    Ok((Reply::Count(4), ns + cost(ReadLink, 0)))
                } else {
                    Err((Errno::EINVAL, ns + cost(ReadLinkNone, 0)))
                }
            }
            Call::GetDents { fd, .. } => {
                let open = self.fds.get_mut(&fd.0).ok_or(bad(Errno::EBADF))?;
                if std::mem::replace(&mut open.listed, true) {
                    return Ok((Reply::Count(0), 0));
                }
                let dir = &mut self.nodes[open.node];
                let class = if std::mem::replace(&mut dir.map_cached, true) { ReadDir } else { ReadDirCold };
                Ok((Reply::Count(24), cost(class, dir.entries.len() as u64)))
            }
            Call::Mkdir { at, .. } => {
                let (dir, name, ns) = self.parent(at).map_err(bad)?;
                if self.nodes[dir].entries.contains_key(&name) {
                    return Err((Errno::EEXIST, ns));
                }
                let node = self.new_node(FileKind::Directory);
                self.add(dir, &name, node);
                Ok((Reply::Done, ns + cost(Mkdir, 0)))
            }
            Call::Rmdir { at } => {
                let (dir, name, ns) = self.parent(at).map_err(bad)?;
                self.remove(dir, &name).ok_or((Errno::ENOENT, ns))?;
                Ok((Reply::Done, ns + cost(Rmdir, 0)))
            }
            Call::Unlink { at } => self.unlink(at),
            Call::Rename { from, to, .. } => {
                let (_, ns) = self.find(from)?;
                let (old_dir, old, _) = self.parent(from).map_err(bad)?;
                let (dir, name, _) = self.parent(to).map_err(bad)?;
                let node = self.nodes[old_dir].entries[&old];
                self.nodes[node].nlink += 1;
                self.remove(old_dir, &old);
                let replaced = self.remove(dir, &name).is_some();
                let dirty_bytes = self.nodes[node].new_bytes + self.nodes[node].over_bytes;
                let (class, at) = match (replaced, dirty_bytes) {
                    (false, _) => (Rename, 0),
                    (true, 0) => (RenameOver, 0),
                    (true, bytes) => (RenameOverDirty, bytes),
                };
                self.add(dir, &name, node);
                Ok((Reply::Done, ns + cost(class, at)))
            }
            Call::LinkFd { .. } => Err((Errno::ENOSYS, 0)),
            Call::Link { from, to, .. } => {
                let (node, ns) = self.find(from)?;
                let (dir, name, _) = self.parent(to).map_err(bad)?;
                self.nodes[node].nlink += 1;
                self.add(dir, &name, node);
                Ok((Reply::Done, ns + cost(Link, 0)))
            }
            Call::Symlink { at, .. } => {
                let (dir, name, ns) = self.parent(at).map_err(bad)?;
                let node = self.new_node(FileKind::Symlink);
                self.add(dir, &name, node);
                Ok((Reply::Done, ns + cost(Symlink, 0)))
            }
            Call::Mknod { .. } => Err((Errno::ENOSYS, 0)),
            Call::Chmod { at, .. } => self.on_path(at, Chmod),
            Call::Fchmod { .. } => done(Fchmod),
            Call::Chown { at, uid, .. } => {
                assert_eq!(uid, Some(5), "only to the owner it has");
                self.on_path(at, Chown)
            }
            Call::Fchown { .. } => done(Fchown),
            Call::Utimens { at, .. } => self.on_path(at, Utimens),
            Call::Futimens { .. } => done(Futimens),
            Call::SetXattr { .. } | Call::GetXattr { .. } | Call::ListXattr { .. } | Call::RemoveXattr { .. } => {
                self.xattr(call)
            }
        }
    }

    pub(super) fn xattr(&mut self, call: &Call<'_>) -> Done {
        if !self.xattrs {
            return Err((Errno::EOPNOTSUPP, 0));
        }
        match *call {
            Call::SetXattr { at, name, .. } => {
                let (node, ns) = self.find(at)?;
                assert!(self.nodes[node].xattrs.insert(name.to_owned()), "an attribute that is new");
                Ok((Reply::Done, ns + cost(Class::SetXattr, 0)))
            }
            Call::GetXattr { at, name, .. } => {
                let (node, ns) = self.find(at)?;
                if self.nodes[node].xattrs.contains(name) {
                    Ok((Reply::Count(32), ns + cost(Class::GetXattr, 0)))
                } else {
                    Err((Errno::ENODATA, ns + cost(Class::GetXattrMissing, 0)))
                }
            }
            Call::RemoveXattr { at, name, .. } => {
                let (node, ns) = self.find(at)?;
                assert!(self.nodes[node].xattrs.remove(name));
                Ok((Reply::Done, ns + cost(Class::RemoveXattr, 0)))
            }
            Call::ListXattr { at, .. } => self.on_path(at, Class::ListXattr),
            _ => Err((Errno::ENOSYS, 0)),
        }
    }
}
