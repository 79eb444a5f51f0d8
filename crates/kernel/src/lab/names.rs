//! Making, removing and moving names; opening.

use super::Lab;
use super::descriptors::Description;
use super::walk::{Last, Parent};
use crate::{Ino, NewNode, Rename, Volume};
use posix::{At, Errno, Fd, FileKind, Mode, OpenFlags, Reply};

/// `PATH_MAX` less the terminating NUL.
const TARGET_MAX_BYTES: usize = 4095;

impl<V: Volume> Lab<V> {
    pub(super) fn open(&mut self, at: At<'_>, flags: OpenFlags, mode: Mode) -> Result<Reply, Errno> {
        let start = self.start(at)?;
        if !self.descriptors.has_room() {
            return Err(Errno::EMFILE);
        }
        self.cx.cpu(self.cx.costs.open_ns);
        if flags.path_only {
            let ino = self.resolve(at, !flags.nofollow)?;
            if flags.directory && self.kind(ino)? != FileKind::Directory {
                return Err(Errno::ENOTDIR);
            }
            return self.open_inode(ino, flags, start.depth);
        }
        if flags.tmpfile {
            if !flags.write {
                return Err(Errno::EINVAL);
            }
            let dir = self.resolve(at, true)?;
            self.must_be_directory(dir)?;
            let new = NewNode { kind: FileKind::File, mode: mode.0 & 0o7777, target: &[] };
            let ino = self.volume.create_unnamed(&mut self.cx, dir, &new)?;
            self.new_node(ino);
            return self.open_inode(ino, flags, start.depth);
        }
        if flags.create && flags.directory {
            return Err(Errno::EINVAL);
        }
        let follow = !(flags.nofollow || (flags.create && flags.exclusive));
        let parent = self.resolve_for_open(start, follow, flags.create)?;
        let (ino, created) = self.open_target(&parent, flags, mode)?;
        if !created {
            self.check_open(ino, flags)?;
            let kind = self.kind(ino)?;
            if flags.truncate && kind == FileKind::File {
                self.volume.truncate(&mut self.cx, ino, 0)?;
            }
        }
        self.open_inode(ino, flags, start.depth)
    }

    /// What a path to open leads to, made if need be; says whether it was.
    fn open_target(&mut self, parent: &Parent<'_>, flags: OpenFlags, mode: Mode) -> Result<(Ino, bool), Errno> {
        let name = match &parent.last {
            Last::Name(_) if flags.create && parent.slash => return Err(Errno::EISDIR),
            Last::Dot | Last::DotDot if flags.create => {
                return Err(if flags.exclusive { Errno::EEXIST } else { Errno::EISDIR });
            }
            Last::Dot => return Ok((parent.dir, false)),
            Last::DotDot => return Ok((self.dot_dot(parent.dir)?, false)),
            Last::Name(name) => name,
        };
        match self.lookup(parent.dir, name)? {
            Some(_) if flags.create && flags.exclusive => Err(Errno::EEXIST),
            Some(ino) if parent.slash && self.kind(ino)? != FileKind::Directory => Err(Errno::ENOTDIR),
            Some(ino) => Ok((ino, false)),
            None if !flags.create => Err(Errno::ENOENT),
            None => {
                let new = NewNode { kind: FileKind::File, mode: mode.0 & 0o7777, target: &[] };
                Ok((self.create(parent.dir, name, &new)?, true))
            }
        }
    }

    fn check_open(&self, ino: Ino, flags: OpenFlags) -> Result<(), Errno> {
        match self.kind(ino)? {
            FileKind::Directory if flags.write || flags.create || flags.truncate => Err(Errno::EISDIR),
            FileKind::Directory => Ok(()),
            // Only a link that was not to be followed is left.
            FileKind::Symlink => Err(if flags.directory { Errno::ENOTDIR } else { Errno::ELOOP }),
            _ if flags.directory => Err(Errno::ENOTDIR),
            FileKind::File => Ok(()),
            FileKind::Special => Err(Errno::ENXIO),
        }
    }

    pub(super) fn open_inode(&mut self, ino: Ino, flags: OpenFlags, depth: u32) -> Result<Reply, Errno> {
        let kind = self.kind(ino)?;
        let fd = self.descriptors.insert(Description { ino, kind, flags, offset: 0, depth })?;
        self.cx.nodes.open(ino);
        Ok(Reply::Fd(fd))
    }

    pub(super) fn close(&mut self, fd: Fd) -> Result<Reply, Errno> {
        let description = self.descriptors.remove(fd)?;
        self.cx.cpu(self.cx.costs.open_ns / 2);
        if self.cx.nodes.close(description.ino) == 0 {
            self.release_if_unused(description.ino);
        }
        Ok(Reply::Done)
    }

    fn must_be_directory(&self, ino: Ino) -> Result<(), Errno> {
        if self.kind(ino)? == FileKind::Directory { Ok(()) } else { Err(Errno::ENOTDIR) }
    }

    /// A directory that has been removed takes no names.
    fn must_be_linked(&self, dir: Ino) -> Result<(), Errno> {
        if self.volume.attributes(dir)?.nlink == 0 { Err(Errno::ENOENT) } else { Ok(()) }
    }

    fn create(&mut self, dir: Ino, name: &[u8], new: &NewNode<'_>) -> Result<Ino, Errno> {
        self.must_be_linked(dir)?;
        let ino = self.volume.create(&mut self.cx, dir, name, new)?;
        self.names.put(dir, name, Some(ino));
        self.new_node(ino);
        Ok(ino)
    }

    /// Makes what a path names and is not there.
    pub(super) fn make(&mut self, at: At<'_>, new: &NewNode<'_>) -> Result<Reply, Errno> {
        let parent = self.resolve_parent(at)?;
        let Last::Name(name) = &parent.last else { return Err(Errno::EEXIST) };
        if self.lookup(parent.dir, name)?.is_some() {
            return Err(Errno::EEXIST);
        }
        if parent.slash && new.kind != FileKind::Directory {
            return Err(Errno::ENOENT);
        }
        self.create(parent.dir, name, new)?;
        Ok(Reply::Done)
    }

    /// Takes a snapshot into a new file: see [`Volume::snapshot`].
    pub(super) fn take_snapshot(&mut self, at: At<'_>) -> Result<Ino, Errno> {
        let parent = self.resolve_parent(at)?;
        let Last::Name(name) = &parent.last else { return Err(Errno::EEXIST) };
        if self.lookup(parent.dir, name)?.is_some() {
            return Err(Errno::EEXIST);
        }
        let ino = self.volume.snapshot(&mut self.cx, parent.dir, name)?;
        self.names.put(parent.dir, name, Some(ino));
        self.new_node(ino);
        Ok(ino)
    }

    pub(super) fn symlink(&mut self, target: &[u8], at: At<'_>) -> Result<Reply, Errno> {
        if target.contains(&0) {
            return Err(Errno::EINVAL);
        }
        if target.is_empty() {
            return Err(Errno::ENOENT);
        }
        if target.len() > TARGET_MAX_BYTES {
            return Err(Errno::ENAMETOOLONG);
        }
        self.make(at, &NewNode { kind: FileKind::Symlink, mode: 0o777, target })
    }

    /// Enters another name of a file; one without any gets none (no volume makes files without a name).
    pub(super) fn link(&mut self, ino: Ino, to: At<'_>) -> Result<Reply, Errno> {
        let parent = self.resolve_parent(to)?;
        let Last::Name(name) = &parent.last else { return Err(Errno::EEXIST) };
        if self.lookup(parent.dir, name)?.is_some() {
            return Err(Errno::EEXIST);
        }
        if parent.slash {
            return Err(Errno::ENOENT);
        }
        if self.kind(ino)? == FileKind::Directory {
            return Err(Errno::EPERM);
        }
        self.must_be_linked(parent.dir)?;
        self.must_be_linked(ino)?;
        self.volume.link(&mut self.cx, ino, parent.dir, name)?;
        self.names.put(parent.dir, name, Some(ino));
        Ok(Reply::Done)
    }

    pub(super) fn unlink(&mut self, at: At<'_>) -> Result<Reply, Errno> {
        let parent = self.resolve_parent(at)?;
        let Last::Name(name) = &parent.last else { return Err(Errno::EISDIR) };
        let ino = self.lookup(parent.dir, name)?.ok_or(Errno::ENOENT)?;
        match self.kind(ino)? {
            FileKind::Directory => return Err(Errno::EISDIR),
            _ if parent.slash => return Err(Errno::ENOTDIR),
            _ => {}
        }
        self.volume.unlink(&mut self.cx, parent.dir, name, ino)?;
        self.names.put(parent.dir, name, None);
        self.release_if_unused(ino);
        Ok(Reply::Done)
    }

    pub(super) fn rmdir(&mut self, at: At<'_>) -> Result<Reply, Errno> {
        let parent = self.resolve_parent(at)?;
        let name = match &parent.last {
            Last::Name(name) => name,
            Last::Dot => return Err(Errno::EINVAL),
            Last::DotDot => return Err(Errno::ENOTEMPTY),
        };
        let ino = self.lookup(parent.dir, name)?.ok_or(Errno::ENOENT)?;
        self.must_be_directory(ino)?;
        self.volume.rmdir(&mut self.cx, parent.dir, name, ino)?;
        self.names.put(parent.dir, name, None);
        self.release_if_unused(ino);
        Ok(Reply::Done)
    }

    pub(super) fn rename(&mut self, from: At<'_>, to: At<'_>, noreplace: bool, exchange: bool) -> Result<Reply, Errno> {
        // The paths are looked at before the flags are.
        let old = self.start(from).and_then(|_| self.start(to));
        if noreplace && exchange {
            return old.and(Err(Errno::EINVAL));
        }
        old?;
        let old = self.resolve_parent(from)?;
        let new = self.resolve_parent(to)?;
        let (Last::Name(from_name), Last::Name(to_name)) = (&old.last, &new.last) else {
            let only_new = matches!(old.last, Last::Name(_));
            return Err(if noreplace && only_new { Errno::EEXIST } else { Errno::EBUSY });
        };
        let ino = self.lookup(old.dir, from_name)?.ok_or(Errno::ENOENT)?;
        let there = self.lookup(new.dir, to_name)?;
        if noreplace && there.is_some() {
            return Err(Errno::EEXIST);
        }
        let directory = self.kind(ino)? == FileKind::Directory;
        if exchange {
            let other = there.ok_or(Errno::ENOENT)?;
            return self.exchange(&old, &new, ino, other);
        }
        if !directory && (old.slash || new.slash) {
            return Err(Errno::ENOTDIR);
        }
        if directory && self.is_below(new.dir, ino)? {
            return Err(Errno::EINVAL);
        }
        if let Some(replaced) = there {
            if self.kind(replaced)? == FileKind::Directory && self.is_below(old.dir, replaced)? {
                return Err(Errno::ENOTEMPTY);
            }
            if replaced == ino {
                return Ok(Reply::Done);
            }
            match (directory, self.kind(replaced)? == FileKind::Directory) {
                (true, false) => return Err(Errno::ENOTDIR),
                (false, true) => return Err(Errno::EISDIR),
                _ => {}
            }
        }
        self.must_be_linked(new.dir)?;
        let rename = Rename { from_dir: old.dir, from_name, ino, to_dir: new.dir, to_name, replaced: there };
        self.volume.rename(&mut self.cx, &rename)?;
        self.names.put(old.dir, from_name, None);
        self.names.put(new.dir, to_name, Some(ino));
        if let Some(replaced) = there {
            self.release_if_unused(replaced);
        }
        Ok(Reply::Done)
    }

    fn exchange(&mut self, old: &Parent<'_>, new: &Parent<'_>, one: Ino, other: Ino) -> Result<Reply, Errno> {
        let (Last::Name(one_name), Last::Name(other_name)) = (&old.last, &new.last) else { return Err(Errno::EBUSY) };
        let one_is = self.kind(one)? == FileKind::Directory;
        let other_is = self.kind(other)? == FileKind::Directory;
        if (old.slash && !one_is) || (new.slash && !other_is) {
            return Err(Errno::ENOTDIR);
        }
        if (one_is && self.is_below(new.dir, one)?) || (other_is && self.is_below(old.dir, other)?) {
            return Err(Errno::EINVAL);
        }
        if one == other {
            return Ok(Reply::Done);
        }
        self.volume.exchange(&mut self.cx, (old.dir, one_name, one), (new.dir, other_name, other))?;
        self.names.put(old.dir, one_name, Some(other));
        self.names.put(new.dir, other_name, Some(one));
        Ok(Reply::Done)
    }
}
