//! Paths: component by component through the name cache, symbolic links and all.

use super::Lab;
use crate::{Ino, Volume};
use posix::{At, Errno, FileKind, LINKS_MAX};
use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;

/// `PATH_MAX`, with the terminating NUL.
const PATH_MAX_BYTES: usize = 4096;

/// The last component of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Last<'p> {
    /// A name.
    Name(Cow<'p, [u8]>),
    /// `.`, or the path ends where it starts.
    Dot,
    /// `..`
    DotDot,
}

/// Where a path ends, but for its last component.
#[derive(Clone, Debug)]
pub(super) struct Parent<'p> {
    pub(super) dir: Ino,
    pub(super) last: Last<'p>,
    /// Whether slashes follow, so that it has to be a directory.
    pub(super) slash: bool,
}

/// Where a walk starts, and how deep that is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start<'p> {
    dir: Ino,
    path: &'p [u8],
    pub(super) depth: u32,
}

impl<V: Volume> Lab<V> {
    /// Checks a path as a mounted system's handle does, before any system call: it stays below the root by its text. A
    /// contained one need not: its walk stays there.
    pub(super) fn start<'p>(&self, at: At<'p>) -> Result<Start<'p>, Errno> {
        let (dir, depth) = match at.dir {
            None => (None, 0),
            Some(fd) => {
                let description = self.descriptors.get(fd)?;
                (Some(description), description.depth)
            }
        };
        let path = at.path.as_os_str().as_bytes();
        let depth = if self.contained { 0 } else { depth_after(path, depth).ok_or(Errno::EXDEV)? };
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        let relative = path.iter().position(|&b| b != b'/').map_or(&b"."[..], |first| &path[first..]);
        if relative.contains(&0) {
            return Err(Errno::EINVAL);
        }
        if relative.len() >= PATH_MAX_BYTES {
            return Err(Errno::ENAMETOOLONG);
        }
        let dir = match dir {
            None => self.root,
            Some(description) if description.kind == FileKind::Directory => description.ino,
            Some(_) => return Err(Errno::ENOTDIR),
        };
        Ok(Start { dir, path: relative, depth })
    }

    /// The inode at the end of a path.
    pub(super) fn resolve(&mut self, at: At<'_>, follow: bool) -> Result<Ino, Errno> {
        let start = self.start(at)?;
        self.walk(start.dir, start.path, follow, &mut 0)
    }

    /// The directory that a path's last component is in.
    pub(super) fn resolve_parent<'p>(&mut self, at: At<'p>) -> Result<Parent<'p>, Errno> {
        let start = self.start(at)?;
        self.walk_to_parent(start.dir, start.path, &mut 0)
    }

    /// The same for opening: the last component's links are followed if it is a link. A path to create that ends in a
    /// slash is refused as it stands, so its links are not looked at.
    pub(super) fn resolve_for_open<'p>(
        &mut self,
        start: Start<'p>,
        follow: bool,
        create: bool,
    ) -> Result<Parent<'p>, Errno> {
        let mut links = 0;
        let mut parent = self.walk_to_parent(start.dir, start.path, &mut links)?;
        while if create { follow && !parent.slash } else { follow || parent.slash } {
            let Last::Name(name) = &parent.last else { break };
            let Some(ino) = self.lookup(parent.dir, name)? else { break };
            if self.kind(ino)? != FileKind::Symlink {
                break;
            }
            let (dir, target) = self.follow(parent.dir, ino, &mut links)?;
            let slash = parent.slash;
            let next = self.walk_to_parent(dir, &target, &mut links)?;
            parent = Parent { dir: next.dir, last: owned(next.last), slash: slash || next.slash };
        }
        Ok(parent)
    }

    fn walk(&mut self, start: Ino, path: &[u8], follow: bool, links: &mut u32) -> Result<Ino, Errno> {
        let parent = self.walk_to_parent(start, path, links)?;
        let ino = match &parent.last {
            Last::Dot => parent.dir,
            Last::DotDot => self.dot_dot(parent.dir)?,
            Last::Name(name) => {
                let ino = self.lookup(parent.dir, name)?.ok_or(Errno::ENOENT)?;
                if (follow || parent.slash) && self.kind(ino)? == FileKind::Symlink {
                    let (dir, target) = self.follow(parent.dir, ino, links)?;
                    self.walk(dir, &target, true, links)?
                } else {
                    ino
                }
            }
        };
        if parent.slash && self.kind(ino)? != FileKind::Directory {
            return Err(Errno::ENOTDIR);
        }
        Ok(ino)
    }

    fn walk_to_parent<'p>(&mut self, start: Ino, path: &'p [u8], links: &mut u32) -> Result<Parent<'p>, Errno> {
        let mut dir = start;
        self.node(dir)?;
        let mut rest = path;
        loop {
            let name_len = rest.iter().position(|&b| b == b'/').unwrap_or(rest.len());
            let (name, behind) = rest.split_at(name_len);
            let next = behind.iter().position(|&b| b != b'/');
            let last = match name {
                b"" | b"." => Last::Dot,
                b".." => Last::DotDot,
                name => Last::Name(Cow::Borrowed(name)),
            };
            let Some(next) = next else {
                return Ok(Parent { dir, last, slash: !behind.is_empty() });
            };
            rest = &behind[next..];
            self.cx.cpu(self.cx.costs.component_ns);
            dir = match last {
                Last::Dot => dir,
                Last::DotDot => self.dot_dot(dir)?,
                Last::Name(name) => {
                    let ino = self.lookup(dir, &name)?.ok_or(Errno::ENOENT)?;
                    match self.kind(ino)? {
                        FileKind::Directory => ino,
                        FileKind::Symlink => {
                            let (from, target) = self.follow(dir, ino, links)?;
                            let ino = self.walk(from, &target, true, links)?;
                            if self.kind(ino)? != FileKind::Directory {
                                return Err(Errno::ENOTDIR);
                            }
                            ino
                        }
                        FileKind::File | FileKind::Special => return Err(Errno::ENOTDIR),
                    }
                }
            };
        }
    }

    /// Where a symbolic link in a directory leads: the start of its path, and the path.
    fn follow(&mut self, dir: Ino, link: Ino, links: &mut u32) -> Result<(Ino, Vec<u8>), Errno> {
        *links += 1;
        if *links > LINKS_MAX {
            return Err(Errno::ELOOP);
        }
        let mut target = self.volume.readlink(&mut self.cx, link)?;
        if target.is_empty() {
            return Err(Errno::ENOENT);
        }
        let slashes = target.iter().take_while(|&&b| b == b'/').count();
        if slashes == 0 {
            return Ok((dir, target));
        }
        target.drain(..slashes);
        if target.is_empty() {
            target.push(b'.');
        }
        Ok((if self.contained { self.root } else { self.volume.root() }, target))
    }

    /// What a name in a directory stands for; its inode is in memory then.
    pub(super) fn lookup(&mut self, dir: Ino, name: &[u8]) -> Result<Option<Ino>, Errno> {
        if name.len() > self.volume.name_max_bytes() {
            return Err(Errno::ENAMETOOLONG);
        }
        self.cx.cpu(self.cx.costs.component_ns);
        let found = match self.names.get(dir, name) {
            Some(known) => known,
            None => {
                let found = self.volume.lookup(&mut self.cx, dir, name)?;
                self.names.put(dir, name, found);
                found
            }
        };
        if let Some(ino) = found {
            self.node(ino)?;
        }
        Ok(found)
    }

    /// Where `..` leads.
    pub(super) fn dot_dot(&mut self, dir: Ino) -> Result<Ino, Errno> {
        if self.contained && dir == self.root { Ok(dir) } else { self.parent_of(dir) }
    }

    fn parent_of(&mut self, dir: Ino) -> Result<Ino, Errno> {
        let parent = self.volume.parent(&mut self.cx, dir)?;
        self.node(parent)?;
        Ok(parent)
    }

    /// Whether a directory is another one or lies below it.
    pub(super) fn is_below(&mut self, mut dir: Ino, above: Ino) -> Result<bool, Errno> {
        let root = self.volume.root();
        loop {
            if dir == above {
                return Ok(true);
            }
            if dir == root {
                return Ok(false);
            }
            dir = self.parent_of(dir)?;
        }
    }
}

fn owned(last: Last<'_>) -> Last<'static> {
    match last {
        Last::Name(name) => Last::Name(Cow::Owned(name.into_owned())),
        Last::Dot => Last::Dot,
        Last::DotDot => Last::DotDot,
    }
}

/// How deep below its start a path ends by its text; `None` if `..` leads above `depth` levels at any point.
fn depth_after(path: &[u8], mut depth: u32) -> Option<u32> {
    for component in path.split(|&b| b == b'/') {
        match component {
            b"" | b"." => {}
            b".." => depth = depth.checked_sub(1)?,
            _ => depth = depth.saturating_add(1),
        }
    }
    Some(depth)
}
