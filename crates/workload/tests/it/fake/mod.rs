//! A file system in memory whose calls cost fixed virtual times, that writes down every call, and fails where told to.

use crate::memory::{self, Node};
use posix::{At, CacheState, Call, Errno, Fd, FileKind, FileSystem, OpenFlags, Outcome, Process, Reply, Step};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What calls cost, nanoseconds; reads and writes also cost one a byte, and `syncfs` two a dirty byte.
pub const OPEN_NS: u64 = 1000;
pub const CLOSE_NS: u64 = 100;
pub const UNLINK_NS: u64 = 500;
pub const STAT_NS: u64 = 300;
pub const GETDENTS_NS: u64 = 700;
pub const SYNC_NS: u64 = 10_000;

fn at_offset(offset: Option<u64>) -> String {
    offset.map_or_else(String::new, |offset| format!(" @{offset}"))
}

#[derive(Default)]
pub struct Fake {
    /// What calls do.
    pub memory: memory::Fake,
    /// Every path that was opened, by its descriptor.
    pub paths: BTreeMap<u32, PathBuf>,
    pub log: Vec<String>,
    pub read_only: bool,
    /// What dropping caches answers.
    pub unverified: bool,
    /// How many calls go well before one fails with EIO.
    pub fail_at: Option<u64>,
    /// The call that was made to fail.
    pub failed: Option<String>,
    /// Every cost is multiplied by this; 0 is 1.
    pub slowness: u64,
    pub dirty: u64,
    pub clock_ns: u64,
}

impl Fake {
    pub fn of_capacity(bytes: u64) -> Fake {
        let mut fake = Fake::default();
        fake.memory.capacity_bytes = bytes;
        fake
    }

    pub fn add(&mut self, path: &str, kind: FileKind, size: u64, mtime_ns: i64) -> &mut Node {
        let (dir, name, _) = self.memory.parent(path.into()).unwrap();
        let number = self.memory.make_node(dir, &name, kind).unwrap();
        self.memory.resize(number, size).unwrap();
        let node = &mut self.memory.nodes[number];
        node.mtime_ns = mtime_ns;
        node
    }

    pub fn node(&mut self, path: &str) -> &mut Node {
        let number = self.memory.find(path.into()).unwrap().0;
        &mut self.memory.nodes[number]
    }

    /// All but the root, by path.
    pub fn nodes(&self) -> BTreeMap<PathBuf, &Node> {
        let mut found = BTreeMap::new();
        let mut pending = vec![(PathBuf::new(), &self.memory.nodes[0])];
        while let Some((directory, node)) = pending.pop() {
            let below = node.entries.iter().map(|(name, number)| (directory.join(name), &self.memory.nodes[*number]));
            pending.extend(below.clone());
            found.extend(below);
        }
        found
    }

    /// Lines of the log that begin with a word.
    pub fn logged(&self, word: &str) -> Vec<&str> {
        self.log.iter().filter(|line| line.split(' ').next() == Some(word)).map(String::as_str).collect()
    }

    pub fn descriptors(&self) -> usize {
        self.memory.fds.len()
    }

    fn path(&self, at: At<'_>) -> PathBuf {
        assert!(at.dir.is_none(), "benchmarks hold no directory open");
        at.path.components().filter(|c| matches!(c, std::path::Component::Normal(_))).collect()
    }

    fn shown(&self, fd: Fd) -> String {
        self.paths.get(&fd.0).map_or_else(|| "?".into(), |path| path.display().to_string())
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
                if let Call::Close { .. } = call {
                    self.memory.call(call).result.unwrap();
                }
                Err(Errno::EIO)
            }
            () if changes && self.read_only => Err(Errno::EROFS),
            () => self.memory.call(call).result,
        };
        match (*call, result) {
            (Call::Open { at, .. }, Ok(Reply::Fd(fd))) => drop(self.paths.insert(fd.0, self.path(at))),
            (Call::Close { fd }, _) => drop(self.paths.remove(&fd.0)),
            (Call::Write { .. }, Ok(Reply::Count(bytes))) => self.dirty += bytes,
            (Call::SyncFs, Ok(_)) => self.dirty = 0,
            _ => {}
        }
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

    fn drop_caches(&mut self) -> std::io::Result<CacheState> {
        self.memory.drop_caches()?;
        assert_eq!(self.memory.open_at_drop, 0, "what is open stays in memory");
        self.log.push("drop".into());
        self.dirty = 0;
        Ok(if self.unverified { CacheState::Unverified } else { CacheState::Cold })
    }

    posix::delegate! { |me| me.memory => read_into, entries, usage, extents, free_extents, environment }
}
