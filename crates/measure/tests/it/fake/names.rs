//! Names: walking, opening, making and removing.

use super::costs::cost;
use super::{BLOCK, Done, Fake, Open};
use posix::{At, Errno, Fd, FileKind, Mode, OpenFlags, Reply, Stat};
use system::vector::Class;

impl Fake {
    pub(super) fn node_of(&self, fd: Fd) -> Result<usize, Errno> {
        self.fds.get(&fd.0).map(|open| open.node).ok_or(Errno::EBADF)
    }

    /// The parent and last name of a path, and what walking the components before the last costs.
    pub(super) fn parent(&mut self, at: At<'_>) -> Result<(usize, String, u64), Errno> {
        let mut dir = match at.dir {
            Some(fd) => self.node_of(fd)?,
            None => 0,
        };
        let path = at.path.to_str().ok_or(Errno::EILSEQ)?;
        let components: Vec<&str> = path.split('/').filter(|c| !c.is_empty()).collect();
        let (last, before) = components.split_last().ok_or(Errno::ENOENT)?;
        let mut ns = cost(Class::LookupHit, 0) * before.len() as u64;
        for name in before {
            let (node, extra) = self.look_up(dir, name);
            ns += extra;
            dir = node.ok_or(Errno::ENOENT)?;
        }
        Ok((dir, (*last).to_owned(), ns))
    }

    /// A name's node, and what the lookup takes longer than a hit (or the whole failing call, if it is not there).
    pub(super) fn look_up(&mut self, dir: usize, name: &str) -> (Option<usize>, u64) {
        let key = (dir, name.to_owned());
        let node = self.nodes[dir].entries.get(name).copied();
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
    pub(super) fn find(&mut self, at: At<'_>) -> Result<(usize, u64), (Errno, u64)> {
        let (dir, name, ns) = self.parent(at).map_err(|e| (e, 0))?;
        match self.look_up(dir, &name) {
            (Some(node), extra) => Ok((node, ns + extra)),
            (None, whole) => Err((Errno::ENOENT, ns + whole)),
        }
    }

    pub(super) fn add(&mut self, dir: usize, name: &str, node: usize) {
        self.nodes[dir].entries.insert(name.to_owned(), node);
        self.nodes[dir].map_cached = true;
        self.nodes[dir].names_changed = true;
        self.uncommitted = true;
        self.names.touch((dir, name.to_owned()));
    }

    pub(super) fn remove(&mut self, dir: usize, name: &str) -> Option<usize> {
        self.names.forget(&(dir, name.to_owned()));
        let node = self.nodes[dir].entries.remove(name)?;
        self.nodes[dir].names_changed = true;
        self.uncommitted = true;
        self.nodes[node].nlink -= 1;
        if self.nodes[node].nlink == 0 {
            self.drop_blocks(node);
            (self.nodes[node].new_bytes, self.nodes[node].over_bytes, self.nodes[node].over_runs) = (0, 0, 0);
            self.dirty.remove(&node);
            self.attributes.forget(&node);
        }
        Some(node)
    }

    pub(super) fn drop_blocks(&mut self, node: usize) {
        for block in 0..self.nodes[node].size.div_ceil(BLOCK) {
            self.data.forget(&(node, block));
        }
    }

    pub(super) fn open(&mut self, at: At<'_>, flags: OpenFlags) -> Done {
        let (dir, name, ns) = self.parent(at).map_err(|e| (e, 0))?;
        let exists = self.nodes[dir].entries.contains_key(&name);
        if flags.direct && !self.direct {
            return Err((Errno::EINVAL, 0));
        }
        let (node, ns) = if flags.create && !exists {
            let node = self.new_node(FileKind::File);
            self.nodes[node].dir = dir;
            self.empty_made += 1;
            self.add(dir, &name, node);
            (node, ns + cost(Class::Create, 0))
        } else {
            let class = if flags.directory { Class::OpenDir } else { Class::Open };
            match self.look_up(dir, &name) {
                (Some(node), extra) => (node, ns + extra + cost(class, 0)),
                (None, whole) => {
                    let more = cost(Class::OpenMissing, 0) - cost(Class::NegativeHit, 0);
                    return Err((Errno::ENOENT, ns + whole + more));
                }
            }
        };
        if flags.truncate {
            self.drop_blocks(node);
            let file = &mut self.nodes[node];
            file.emptied = Some(std::mem::take(&mut file.size));
            (file.new_bytes, file.over_bytes) = (0, 0);
        }
        self.next_fd += 1;
        let offset = if flags.append { self.nodes[node].size } else { 0 };
        self.fds.insert(self.next_fd, Open { node, offset, read_end: None, direct: flags.direct, listed: false });
        Ok((Reply::Fd(Fd(self.next_fd)), ns))
    }

    pub(super) fn unlink(&mut self, at: At<'_>) -> Done {
        let (dir, name, ns) = self.parent(at).map_err(|e| (e, 0))?;
        let (Some(node), extra) = self.look_up(dir, &name) else { return Err((Errno::ENOENT, ns)) };
        let file = &self.nodes[node];
        let class = if file.kind != FileKind::File {
            Class::Remove
        } else if !file.ever_synced || file.new_bytes > 0 {
            Class::RemoveDirty
        } else if file.map_cached {
            Class::Remove
        } else {
            Class::RemoveUncached
        };
        let size = file.size;
        self.remove(dir, &name);
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
            dev: 1,
            kind: n.kind,
            mode: Mode(0o644),
            uid: 5,
            gid: 6,
            nlink: n.nlink,
            size_bytes: n.size,
            allocated_bytes: n.size,
            atime_ns: 0,
            mtime_ns: 0,
            ctime_ns: 0,
        })
    }
}
