//! Names: walking, opening, making and removing.

use super::costs::cost;
use super::{Done, Failed, Fake, Node, Open};
use posix::{At, Errno, Fd, FileKind, Mode, OpenFlags, Reply, Stat};
use system::vector::Class;

impl Fake {
    pub(super) fn node_of(&self, fd: Fd) -> Result<usize, Errno> {
        self.fds.get(&fd.0).map(|open| open.node).ok_or(Errno::EBADF)
    }

    /// The parent and last name of a path, and what walking the components before the last costs. The root is `.` in
    /// itself.
    pub fn parent(&mut self, at: At<'_>) -> Result<(usize, String, u64), Errno> {
        let mut dir = at.dir.map_or(Ok(0), |fd| self.node_of(fd))?;
        let path = at.path.to_str().ok_or(Errno::EILSEQ)?;
        let components: Vec<&str> = path.split('/').filter(|c| !matches!(*c, "" | ".")).collect();
        let Some((last, before)) = components.split_last() else { return Ok((dir, ".".to_owned(), 0)) };
        let mut ns = cost(Class::LookupHit, 0) * before.len() as u64;
        for name in before {
            let (node, extra) = self.look_up(dir, name);
            ns += extra;
            dir = node.ok_or(Errno::ENOENT)?;
        }
        if self.nodes[dir].kind != FileKind::Directory {
            return Err(Errno::ENOTDIR);
        }
        Ok((dir, (*last).to_owned(), ns))
    }

    pub(super) fn entry(&self, dir: usize, name: &str) -> Option<usize> {
        if name == "." { Some(dir) } else { self.nodes[dir].entries.get(name).copied() }
    }

    /// A name's node, and what the lookup takes longer than a hit (or the whole failing call, if it is not there).
    pub(super) fn look_up(&mut self, dir: usize, name: &str) -> (Option<usize>, u64) {
        let key = (dir, name.to_owned());
        let node = self.entry(dir, name);
        let name_hit = self.names.has(&key);
        let blocks = self.nodes[dir].map_cached;
        self.nodes[dir].map_cached |= !name_hit;
        self.names.touch(key);
        let Some(node) = node else {
            let class = match (name_hit, blocks) {
                (true, _) => Class::NegativeHit,
                (false, true) => Class::NegativeMiss,
                (false, false) => Class::NegativeCold,
            };
            return (None, cost(class, 0));
        };
        let attribute_hit = self.attributes.has(&node);
        self.attributes.touch(node);
        let class = match (name_hit, attribute_hit, blocks) {
            (true, true, _) => return (Some(node), 0),
            (false, true, true) => Class::LookupSeqAttrHit,
            (false, true, false) => Class::LookupRandAttrHit,
            (_, false, true) => Class::LookupSeqMiss,
            (_, false, false) => Class::LookupRandMiss,
        };
        (Some(node), cost(class, 0))
    }

    /// Walks to an existing file.
    pub fn find(&mut self, at: At<'_>) -> Result<(usize, u64), Failed> {
        let (dir, name, ns) = self.parent(at)?;
        match self.look_up(dir, &name) {
            (Some(node), extra) => Ok((node, ns + extra)),
            (None, whole) => Err(Failed(Errno::ENOENT, ns + whole)),
        }
    }

    pub(super) fn add(&mut self, dir: usize, name: &str, node: usize) -> Result<(), Errno> {
        if self.entry(dir, name).is_some() {
            return Err(Errno::EEXIST);
        }
        self.nodes[dir].entries.insert(name.to_owned(), node);
        self.nodes[dir].map_cached = true;
        self.nodes[dir].names_changed = true;
        self.uncommitted = true;
        self.names.touch((dir, name.to_owned()));
        Ok(())
    }

    pub fn make_node(&mut self, dir: usize, name: &str, kind: FileKind) -> Result<usize, Errno> {
        let node = self.nodes.len();
        self.add(dir, name, node)?;
        self.new_node(kind);
        self.nodes[node].dir = dir;
        Ok(node)
    }

    /// Makes a directory or a symbolic link.
    pub(super) fn make_at(&mut self, at: At<'_>, kind: FileKind, class: Class) -> Done {
        let (dir, name, ns) = self.parent(at)?;
        self.make_node(dir, &name, kind).map_err(|errno| Failed(errno, ns))?;
        Ok((Reply::Done, ns + cost(class, 0)))
    }

    pub(super) fn remove(&mut self, dir: usize, name: &str, directory: bool) -> Result<(), Errno> {
        let number = self.nodes[dir].entries.get(name).copied().ok_or(Errno::ENOENT)?;
        let node = &self.nodes[number];
        match (node.kind == FileKind::Directory, directory) {
            (true, false) => return Err(Errno::EISDIR),
            (false, true) => return Err(Errno::ENOTDIR),
            _ if !node.entries.is_empty() => return Err(Errno::ENOTEMPTY),
            _ => self.unname(dir, name, number),
        }
        Ok(())
    }

    /// Takes a name away, and what is kept of its node if that was the last.
    pub(super) fn unname(&mut self, dir: usize, name: &str, node: usize) {
        self.names.forget(&(dir, name.to_owned()));
        self.nodes[dir].entries.remove(name);
        self.nodes[dir].names_changed = true;
        self.uncommitted = true;
        self.nodes[node].nlink -= 1;
        if self.nodes[node].nlink == 0 {
            self.drop_blocks(node);
            (self.nodes[node].new_bytes, self.nodes[node].over_bytes, self.nodes[node].over_runs) = (0, 0, 0);
            self.dirty.remove(&node);
            self.attributes.forget(&node);
            self.release(node);
        }
    }

    /// What has neither a name nor a descriptor takes no space.
    pub(super) fn release(&mut self, node: usize) {
        if self.nodes[node].nlink == 0 && self.fds.values().all(|open| open.node != node) {
            self.used_bytes -= self.nodes[node].size;
        }
    }

    pub(super) fn open(&mut self, at: At<'_>, flags: OpenFlags) -> Done {
        let (dir, name, ns) = self.parent(at)?;
        if flags.direct && !self.direct {
            return Err(Errno::EINVAL.into());
        }
        let there = self.entry(dir, &name);
        let (node, ns) = if flags.create && there.is_none() {
            self.empty_made += 1;
            (self.make_node(dir, &name, FileKind::File)?, ns + cost(Class::Create, 0))
        } else {
            let class = if flags.directory { Class::OpenDir } else { Class::Open };
            match self.look_up(dir, &name) {
                (Some(node), extra) => (node, ns + extra + cost(class, 0)),
                (None, whole) => {
                    let more = cost(Class::OpenMissing, 0) - cost(Class::NegativeHit, 0);
                    return Err(Failed(Errno::ENOENT, ns + whole + more));
                }
            }
        };
        let Node { kind, errno, foreign, .. } = self.nodes[node];
        match kind {
            _ if there.is_some() && flags.create && flags.exclusive => return Err(Failed(Errno::EEXIST, ns)),
            FileKind::Symlink if flags.nofollow => return Err(Failed(Errno::ELOOP, ns)),
            FileKind::Directory if flags.write => return Err(Failed(Errno::EISDIR, ns)),
            kind if flags.directory && kind != FileKind::Directory => return Err(Failed(Errno::ENOTDIR, ns)),
            _ => errno.map_or(Ok(()), |errno| Err(Failed(errno, ns)))?,
        }
        if flags.noatime && foreign {
            return Err(Failed(Errno::EPERM, ns));
        }
        if flags.truncate {
            self.drop_blocks(node);
            let size = self.nodes[node].size;
            self.resize(node, 0)?;
            let file = &mut self.nodes[node];
            (file.emptied, file.new_bytes, file.over_bytes) = (Some(size), 0, 0);
        }
        self.next_fd += 1;
        self.fds.insert(self.next_fd, Open { node, flags, offset: 0, read_end: None, listed: false });
        Ok((Reply::Fd(Fd(self.next_fd)), ns))
    }

    pub(super) fn unlink(&mut self, at: At<'_>) -> Done {
        let (dir, name, ns) = self.parent(at)?;
        let (Some(node), extra) = self.look_up(dir, &name) else { return Err(Failed(Errno::ENOENT, ns)) };
        let file = &self.nodes[node];
        let class = match file.kind {
            FileKind::File if !file.ever_synced || file.new_bytes > 0 => Class::RemoveDirty,
            FileKind::File if !file.map_cached => Class::RemoveUncached,
            _ => Class::Remove,
        };
        let size = file.size;
        self.remove(dir, &name, false).map_err(|errno| Failed(errno, ns))?;
        Ok((Reply::Done, ns + extra + cost(class, size)))
    }

    /// A call on an existing path that only costs.
    pub(super) fn on_path(&mut self, at: At<'_>, class: Class) -> Done {
        let (_, ns) = self.find(at)?;
        Ok((Reply::Done, ns + cost(class, 0)))
    }

    pub(super) fn stat_of(&self, node: usize) -> Reply {
        let n = &self.nodes[node];
        Reply::Stat(Stat {
            ino: node as u64,
            dev: n.dev,
            kind: n.kind,
            mode: Mode(0o644),
            uid: 5,
            gid: 6,
            nlink: n.nlink,
            size_bytes: n.size,
            allocated_bytes: n.allocated,
            atime_ns: 0,
            mtime_ns: n.mtime_ns,
            ctime_ns: 0,
        })
    }
}
