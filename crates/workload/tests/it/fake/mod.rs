//! A file system in memory whose calls cost fixed virtual times, that writes down every call, and fails where told to.

use posix::{
    At, CacheState, Call, Environment, Errno, Extent, ExtentFlags, Fd, FileKind, FileSystem, FreeExtent, FsUsage, Mode,
    OpenFlags, Outcome, Process, Reply, SetTime, Stat, Step, Unavailable, Whence,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What calls cost, nanoseconds; reads and writes also cost one a byte, and `syncfs` two a dirty byte.
pub const OPEN_NS: u64 = 1000;
pub const CLOSE_NS: u64 = 100;
pub const UNLINK_NS: u64 = 500;
pub const STAT_NS: u64 = 300;
pub const GETDENTS_NS: u64 = 700;
pub const SYNC_NS: u64 = 10_000;

#[derive(Clone, Debug)]
pub struct Node {
    pub kind: FileKind,
    pub size: u64,
    pub allocated: u64,
    pub mtime_ns: i64,
    pub nlink: u32,
    pub dev: u64,
    pub content: Vec<u8>,
    /// Opening it fails.
    pub errno: Option<Errno>,
    pub unwritten: bool,
    /// It belongs to somebody else: `O_NOATIME` is not allowed.
    pub foreign: bool,
    /// Position in its directory's listing.
    order: u64,
}

pub struct Open {
    path: PathBuf,
    offset: u64,
    append: bool,
    listed: bool,
}

fn at_offset(offset: Option<u64>) -> String {
    offset.map_or_else(String::new, |offset| format!(" @{offset}"))
}

#[derive(Default)]
pub struct Fake {
    pub nodes: BTreeMap<PathBuf, Node>,
    pub log: Vec<String>,
    pub capacity_bytes: Option<u64>,
    pub read_only: bool,
    /// What dropping caches answers.
    pub unverified: bool,
    /// How many calls go well before one fails with EIO.
    pub fail_at: Option<u64>,
    /// The call that was made to fail.
    pub failed: Option<String>,
    /// Every cost is multiplied by this; 0 is 1.
    pub slowness: u64,
    pub open: BTreeMap<u32, Open>,
    pub next_fd: u32,
    pub next_order: u64,
    pub dirty: u64,
    pub clock_ns: u64,
}

impl Fake {
    pub fn add(&mut self, path: &str, kind: FileKind, size: u64, mtime_ns: i64) -> &mut Node {
        self.next_order += 1;
        let node = Node {
            kind,
            size,
            allocated: size,
            mtime_ns,
            nlink: 1,
            dev: 1,
            content: Vec::new(),
            errno: None,
            unwritten: false,
            foreign: false,
            order: self.next_order,
        };
        self.nodes.insert(path.into(), node);
        self.nodes.get_mut(Path::new(path)).unwrap()
    }

    /// Lines of the log that begin with a word.
    pub fn logged(&self, word: &str) -> Vec<&str> {
        self.log.iter().filter(|line| line.split(' ').next() == Some(word)).map(String::as_str).collect()
    }

    pub fn descriptors(&self) -> usize {
        self.open.len()
    }

    fn path(&self, at: At<'_>) -> PathBuf {
        assert!(at.dir.is_none(), "benchmarks hold no directory open");
        at.path.components().filter(|c| matches!(c, std::path::Component::Normal(_))).collect()
    }

    fn used(&self) -> u64 {
        self.nodes.values().map(|n| n.size).sum()
    }

    fn stat(&self, path: &Path) -> Result<Stat, Errno> {
        let root = Node {
            kind: FileKind::Directory,
            size: 0,
            allocated: 0,
            mtime_ns: 0,
            nlink: 2,
            dev: 1,
            content: Vec::new(),
            errno: None,
            unwritten: false,
            foreign: false,
            order: 0,
        };
        let node = if path == Path::new("") { &root } else { self.nodes.get(path).ok_or(Errno::ENOENT)? };
        Ok(Stat {
            ino: node.order,
            dev: node.dev,
            kind: node.kind,
            mode: Mode(0o644),
            uid: 0,
            gid: 0,
            nlink: node.nlink,
            size_bytes: node.size,
            allocated_bytes: node.allocated,
            atime_ns: 0,
            mtime_ns: node.mtime_ns,
            ctime_ns: 0,
        })
    }

    fn open(&mut self, path: PathBuf, flags: OpenFlags) -> Result<Reply, Errno> {
        let known = self.stat(&path);
        match known {
            Err(_) if !flags.create => return Err(Errno::ENOENT),
            Ok(_) if flags.exclusive => return Err(Errno::EEXIST),
            Ok(stat) if stat.kind == FileKind::Symlink && flags.nofollow => return Err(Errno::ELOOP),
            Ok(stat) if flags.directory && stat.kind != FileKind::Directory => return Err(Errno::ENOTDIR),
            Ok(_) => {
                let node = self.nodes.get(&path);
                if let Some(errno) = node.and_then(|n| n.errno) {
                    return Err(errno);
                }
                if flags.noatime && node.is_some_and(|n| n.foreign) {
                    return Err(Errno::EPERM);
                }
                if let (true, Some(node)) = (flags.truncate, self.nodes.get_mut(&path)) {
                    (node.size, node.allocated) = (0, 0);
                }
            }
            Err(_) => {
                if path.parent().is_some_and(|p| self.stat(p).is_err()) {
                    return Err(Errno::ENOENT);
                }
                self.add(path.to_str().unwrap(), FileKind::File, 0, 0);
            }
        }
        self.next_fd += 1;
        self.open.insert(self.next_fd, Open { path, offset: 0, append: flags.append, listed: false });
        Ok(Reply::Fd(Fd(self.next_fd)))
    }

    fn transfer(&mut self, fd: Fd, at: Option<u64>, len: u64, writing: bool) -> Result<Reply, Errno> {
        let used = if self.capacity_bytes.is_some() { self.used() } else { 0 };
        let open = self.open.get_mut(&fd.0).ok_or(Errno::EBADF)?;
        let node = self.nodes.get_mut(&open.path).ok_or(Errno::EBADF)?;
        if open.append {
            open.offset = node.size;
        }
        let offset = at.unwrap_or(open.offset);
        if !writing {
            let n = len.min(node.size.saturating_sub(offset));
            if at.is_none() {
                open.offset += n;
            }
            return Ok(Reply::Count(n));
        }
        let grows = (offset + len).saturating_sub(node.size);
        if self.capacity_bytes.is_some_and(|capacity| used + grows > capacity) {
            return Err(Errno::ENOSPC);
        }
        node.size += grows;
        node.allocated = node.allocated.max(node.size);
        node.mtime_ns = i64::MAX;
        if at.is_none() {
            open.offset += len;
        }
        self.dirty += len;
        Ok(Reply::Count(len))
    }

    fn remove(&mut self, path: &Path, directory: bool) -> Result<Reply, Errno> {
        let node = self.nodes.get(path).ok_or(Errno::ENOENT)?;
        if (node.kind == FileKind::Directory) != directory {
            return Err(if directory { Errno::ENOTDIR } else { Errno::EISDIR });
        }
        if directory && self.nodes.keys().any(|p| p.parent() == Some(path)) {
            return Err(Errno::ENOTEMPTY);
        }
        self.nodes.remove(path);
        Ok(Reply::Done)
    }

    fn shown(&self, fd: Fd) -> String {
        self.open.get(&fd.0).map_or_else(|| "?".into(), |open| open.path.display().to_string())
    }

    /// The call in words, whether it changes anything, and what it costs.
    fn describe(&self, call: &Call<'_>) -> (String, bool, u64) {
        match *call {
            Call::Open { at, flags, .. } => {
                let how = match flags {
                    OpenFlags { create: true, .. } => "create",
                    OpenFlags { write: true, .. } => "rewrite",
                    OpenFlags { directory: true, .. } => "opendir",
                    _ => "open",
                };
                let how = if flags.append { "append" } else { how };
                (format!("{how} {}", self.path(at).display()), flags.write, OPEN_NS)
            }
            Call::Close { fd } => (format!("close {}", self.shown(fd)), false, CLOSE_NS),
            Call::Read { fd, len_bytes, offset } => {
                let how = if offset.is_some() { "pread" } else { "read" };
                (format!("{how} {} {len_bytes}{}", self.shown(fd), at_offset(offset)), false, len_bytes)
            }
            Call::Write { fd, len_bytes, offset, .. } => {
                let how = if offset.is_some() { "pwrite" } else { "write" };
                (format!("{how} {} {len_bytes}{}", self.shown(fd), at_offset(offset)), true, len_bytes)
            }
            Call::Unlink { at } => (format!("unlink {}", self.path(at).display()), true, UNLINK_NS),
            Call::Mkdir { at, .. } => (format!("mkdir {}", self.path(at).display()), true, 1),
            Call::Rmdir { at } => (format!("rmdir {}", self.path(at).display()), true, 1),
            Call::Stat { at, .. } => (format!("stat {}", self.path(at).display()), false, STAT_NS),
            Call::Fstat { fd } => (format!("fstat {}", self.shown(fd)), false, STAT_NS),
            Call::GetDents { fd, .. } => (format!("getdents {}", self.shown(fd)), false, GETDENTS_NS),
            Call::Utimens { at, .. } => (format!("utimens {}", self.path(at).display()), true, 1),
            Call::SyncFs => ("syncfs".into(), false, SYNC_NS + 2 * self.dirty),
            Call::Rename { from, to, .. } => {
                (format!("rename {} {}", self.path(from).display(), self.path(to).display()), true, UNLINK_NS)
            }
            Call::Seek { fd, .. } => (format!("lseek {}", self.shown(fd)), false, CLOSE_NS),
            Call::Fdatasync { fd } => (format!("fdatasync {}", self.shown(fd)), false, SYNC_NS),
            ref other => panic!("no benchmark makes this call: {other:?}"),
        }
    }

    fn answer(&mut self, call: &Call<'_>) -> Result<Reply, Errno> {
        match *call {
            Call::Open { at, flags, .. } => self.open(self.path(at), flags),
            Call::Close { fd } => self.open.remove(&fd.0).map(|_| Reply::Done).ok_or(Errno::EBADF),
            Call::Read { fd, len_bytes, offset } => self.transfer(fd, offset, len_bytes, false),
            Call::Write { fd, len_bytes, offset, .. } => self.transfer(fd, offset, len_bytes, true),
            Call::Unlink { at } => self.remove(&self.path(at), false),
            Call::Rmdir { at } => self.remove(&self.path(at), true),
            Call::Mkdir { at, .. } => {
                let path = self.path(at);
                if self.nodes.contains_key(&path) {
                    return Err(Errno::EEXIST);
                }
                self.add(path.to_str().unwrap(), FileKind::Directory, 0, 0);
                Ok(Reply::Done)
            }
            Call::Stat { at, .. } => self.stat(&self.path(at)).map(Reply::Stat),
            Call::Fstat { fd } => self.stat(&self.open.get(&fd.0).ok_or(Errno::EBADF)?.path).map(Reply::Stat),
            Call::GetDents { fd, .. } => {
                let open = self.open.get_mut(&fd.0).ok_or(Errno::EBADF)?;
                let again = std::mem::replace(&mut open.listed, true);
                Ok(Reply::Count(if again { 0 } else { 64 }))
            }
            Call::Utimens { at, mtime, .. } => {
                let path = self.path(at);
                let node = self.nodes.get_mut(&path).ok_or(Errno::ENOENT)?;
                if let SetTime::To(ns) = mtime {
                    node.mtime_ns = ns;
                }
                Ok(Reply::Done)
            }
            Call::Rename { from, to, .. } => {
                let node = self.nodes.remove(&self.path(from)).ok_or(Errno::ENOENT)?;
                self.nodes.insert(self.path(to), node);
                Ok(Reply::Done)
            }
            Call::Seek { fd, offset: 0, whence: Whence::End } => {
                let open = self.open.get_mut(&fd.0).ok_or(Errno::EBADF)?;
                open.offset = self.nodes.get(&open.path).ok_or(Errno::EBADF)?.size;
                Ok(Reply::Count(open.offset))
            }
            Call::Fdatasync { .. } => Ok(Reply::Done),
            Call::SyncFs => {
                self.dirty = 0;
                Ok(Reply::Done)
            }
            _ => Err(Errno::ENOSYS),
        }
    }
}

impl FileSystem for Fake {
    fn call(&mut self, call: &Call<'_>) -> Outcome {
        let (line, changes, cost_ns) = self.describe(call);
        let start_ns = self.clock_ns;
        let dur_ns = cost_ns * self.slowness.max(1);
        self.clock_ns += dur_ns;
        let fails = self.fail_at == Some(self.log.len() as u64);
        let result = match () {
            () if fails => {
                self.failed = Some(line.clone());
                // A close that fails has closed all the same, as on Linux.
                if let Call::Close { fd } = call {
                    self.open.remove(&fd.0);
                }
                Err(Errno::EIO)
            }
            () if changes && self.read_only => Err(Errno::EROFS),
            () => self.answer(call),
        };
        self.log.push(line);
        Outcome { start_ns, dur_ns, result }
    }

    fn now_ns(&self) -> u64 {
        self.clock_ns
    }

    fn pause_ns(&mut self, ns: u64) {
        self.clock_ns += ns;
    }

    /// A step of each in turn: calls and pauses follow one another on the one clock.
    fn run(&mut self, mut processes: Vec<Box<dyn Process + '_>>) -> std::io::Result<()> {
        let mut last: Vec<Option<Outcome>> = processes.iter().map(|_| None).collect();
        let mut ended = vec![false; processes.len()];
        let mut blocked_in_a_row = 0;
        while ended.contains(&false) {
            for (at, process) in processes.iter_mut().enumerate() {
                if ended[at] {
                    continue;
                }
                blocked_in_a_row += 1;
                match process.next(last[at].take().as_ref()) {
                    Step::Call(call) => last[at] = Some(self.call(&call)),
                    Step::PauseNs(ns) => self.clock_ns += ns,
                    Step::Done => ended[at] = true,
                    Step::Blocked => {
                        assert!(blocked_in_a_row < 3 * last.len(), "nobody can go on");
                        continue;
                    }
                }
                blocked_in_a_row = 0;
            }
        }
        Ok(())
    }

    fn contained(&mut self, work: &mut posix::Contained<'_>) -> std::io::Result<()> {
        work(self);
        Ok(())
    }

    fn read_into(&mut self, fd: Fd, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let node = self.nodes.get(&self.open.get(&fd.0).ok_or(Errno::EBADF)?.path).ok_or(Errno::EBADF)?;
        let rest = &node.content[usize::try_from(offset).unwrap()..];
        let n = rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    /// In creation order.
    fn entries(&mut self, fd: Fd) -> Result<Vec<(OsString, FileKind)>, Errno> {
        let directory = &self.open.get(&fd.0).ok_or(Errno::EBADF)?.path;
        let mut found: Vec<_> = self.nodes.iter().filter(|(p, _)| p.parent() == Some(directory)).collect();
        found.sort_by_key(|(_, node)| node.order);
        Ok(found.into_iter().map(|(p, n)| (p.file_name().unwrap().to_owned(), n.kind)).collect())
    }

    fn drop_caches(&mut self) -> std::io::Result<CacheState> {
        assert!(self.open.is_empty(), "what is open stays in memory");
        self.log.push("drop".into());
        self.dirty = 0;
        Ok(if self.unverified { CacheState::Unverified } else { CacheState::Cold })
    }

    fn usage(&mut self) -> std::io::Result<FsUsage> {
        let total_bytes = self.capacity_bytes.unwrap_or(1 << 40);
        let free_bytes = total_bytes - self.used();
        let (total_inodes, free_inodes, block_bytes) = (0, 0, 4096);
        let available_bytes = free_bytes;
        Ok(FsUsage { total_bytes, free_bytes, available_bytes, total_inodes, free_inodes, block_bytes })
    }

    fn extents(&mut self, fd: Fd) -> Result<Vec<Extent>, Unavailable> {
        let node = &self.nodes[&self.open[&fd.0].path];
        let flags = ExtentFlags { unwritten: node.unwritten, ..ExtentFlags::default() };
        Ok(vec![Extent { logical_bytes: 0, physical_bytes: 0, len_bytes: node.size, flags }])
    }

    fn free_extents(&mut self) -> Result<Vec<FreeExtent>, Unavailable> {
        Err(Unavailable::Failed { what: "free space", errno: Errno::ENOSYS })
    }

    fn environment(&self) -> Environment {
        Environment { target: "fake".into(), ..Environment::default() }
    }
}
