//! A small file system in memory whose calls cost fixed virtual times, with a simple model of caches and dirty data.
//!
//! What it charges is exactly an entry of the system vector, so a measurement of it has to find the entries again. The
//! tests of the workloads take it in by its path for what calls do, and charge costs of their own.

mod calls;
pub mod costs;
mod data;
mod lru;
mod names;
mod syncs;

use lru::Lru;
use posix::{
    CacheState, Call, Environment, Errno, Extent, ExtentFlags, Fd, FileKind, FileSystem, FreeExtent, FsUsage,
    OpenFlags, Outcome, Process, Reply, Step, Unavailable,
};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use system::Family;

const BLOCK: u64 = 4096;

/// What a call does and costs, or why it fails and what that costs.
type Done = Result<(Reply, u64), Failed>;

#[derive(Debug)]
pub struct Failed(Errno, u64);

/// At no cost.
impl From<Errno> for Failed {
    fn from(errno: Errno) -> Failed {
        Failed(errno, 0)
    }
}

pub struct Node {
    pub kind: FileKind,
    pub size: u64,
    pub allocated: u64,
    pub mtime_ns: i64,
    pub nlink: u32,
    pub dev: u64,
    /// What can be read of it; calls move no data.
    pub content: Vec<u8>,
    /// Opening it fails.
    pub errno: Option<Errno>,
    pub unwritten: bool,
    /// It belongs to somebody else: `O_NOATIME` is not allowed.
    pub foreign: bool,
    pub entries: BTreeMap<String, usize>,
    xattrs: BTreeSet<std::ffi::OsString>,
    /// Bytes written at the end, and over what was there, since it was last written back.
    new_bytes: u64,
    over_bytes: u64,
    /// Runs of blocks that were written over, and where the last ends.
    over_runs: u64,
    over_end: u64,
    ever_synced: bool,
    /// Directories: since they were last synced.
    names_changed: bool,
    /// The directory it was made in, and when.
    dir: usize,
    made_ns: u64,
    /// Of a directory: when a new file in it was last synced.
    new_synced_ns: Option<u64>,
    /// Directory blocks, or a file's block map.
    map_cached: bool,
    /// Emptied by O_TRUNC and not closed since; how much it held.
    emptied: Option<u64>,
}

impl std::fmt::Debug for Node {
    /// What the calls of a program can find out; not what is cached, or to be written.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Node { kind, size, allocated, mtime_ns, nlink, dev, content, errno, unwritten, foreign, entries, .. } =
            self;
        (kind, size, allocated, mtime_ns, nlink, dev, content, errno, unwritten, foreign, entries).fmt(f)
    }
}

pub struct Open {
    node: usize,
    flags: OpenFlags,
    offset: u64,
    /// Where the last read ended, if there was one.
    read_end: Option<u64>,
    listed: bool,
}

pub struct Fake {
    pub now_ns: u64,
    /// Multiplies every cost: a slow device.
    pub factor: u64,
    pub root: bool,
    pub xattrs: bool,
    pub direct: bool,
    /// Copies share blocks.
    pub shares: bool,
    /// There is fallocate.
    pub preallocates: bool,
    /// What a sync commits of others.
    pub family: Family,
    /// Setting a length writes what is dirty.
    pub cut_writes: bool,
    /// The sync of a directory commits what changed elsewhere.
    pub directory_commits: bool,
    /// The sync of a file leaves something to commit.
    pub leaves_changes: bool,
    /// The sync of a file commits the data of all (ext4 with `data=journal`).
    pub journals_data: bool,
    /// Nothing has been synced since the caches were emptied.
    settled: bool,
    /// By what power of the reuse distance, over 16 calls, its calls take longer.
    pub reuse_power: f64,
    /// Calls so far, and each kind's last.
    calls: u64,
    last: BTreeMap<String, u64>,
    /// Something is not committed.
    uncommitted: bool,
    pub capacity_bytes: u64,
    used_bytes: u64,
    /// Descriptors open when caches were last dropped.
    pub open_at_drop: usize,
    /// Files made since the last sync and still empty.
    empty_made: u64,
    /// When the device last had something to do.
    device_ns: u64,
    /// By inode number, in the order in which they were made, the root first; also those that are gone.
    pub nodes: Vec<Node>,
    /// What may have something to write back.
    dirty: BTreeSet<usize>,
    pub fds: FxHashMap<u32, Open>,
    next_fd: u32,
    names: Lru<(usize, String)>,
    attributes: Lru<usize>,
    data: Lru<(usize, u64)>,
    processes: usize,
}

impl Default for Fake {
    /// Whose caches hold everything.
    fn default() -> Fake {
        Fake::new(u64::MAX, usize::MAX, usize::MAX)
    }
}

impl Fake {
    pub fn new(data_bytes: u64, names: usize, attributes: usize) -> Fake {
        let mut fake = Fake {
            now_ns: 1_000_000,
            factor: 1,
            root: true,
            xattrs: true,
            direct: true,
            shares: false,
            preallocates: true,
            family: Family::Each,
            cut_writes: false,
            directory_commits: false,
            leaves_changes: false,
            journals_data: false,
            settled: false,
            reuse_power: 0.0,
            calls: 0,
            last: BTreeMap::new(),
            uncommitted: false,
            empty_made: 0,
            device_ns: 0,
            capacity_bytes: 1 << 40,
            used_bytes: 0,
            open_at_drop: 0,
            nodes: Vec::new(),
            dirty: BTreeSet::new(),
            fds: FxHashMap::default(),
            next_fd: 3,
            names: Lru::new(names),
            attributes: Lru::new(attributes),
            data: Lru::new(if data_bytes == u64::MAX { usize::MAX } else { (data_bytes / BLOCK) as usize }),
            processes: 1,
        };
        fake.new_node(FileKind::Directory);
        fake
    }

    fn new_node(&mut self, kind: FileKind) -> usize {
        self.nodes.push(Node {
            kind,
            size: 0,
            allocated: 0,
            mtime_ns: 0,
            nlink: 1,
            dev: 1,
            content: Vec::new(),
            errno: None,
            unwritten: false,
            foreign: false,
            entries: BTreeMap::new(),
            xattrs: BTreeSet::new(),
            new_bytes: 0,
            over_bytes: 0,
            over_runs: 0,
            over_end: 0,
            ever_synced: false,
            names_changed: false,
            dir: 0,
            made_ns: self.now_ns,
            new_synced_ns: None,
            map_cached: true,
            emptied: None,
        });
        self.attributes.touch(self.nodes.len() - 1);
        self.dirty.insert(self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn reuse_factor(&mut self, call: &Call<'_>) -> f64 {
        if self.reuse_power == 0.0 {
            return 1.0;
        }
        self.calls += 1;
        let kind: String = format!("{call:?}").chars().take_while(char::is_ascii_alphanumeric).collect();
        let distance = self.last.insert(kind, self.calls).map_or(256, |last| (self.calls - last).min(256));
        (distance as f64 / 16.0).powf(self.reuse_power)
    }
}

impl FileSystem for Fake {
    fn core_probe_ns(&self) -> Option<f64> {
        Some(1500.0)
    }

    fn call(&mut self, call: &Call<'_>) -> Outcome {
        let start_ns = self.now_ns;
        let made = self.make(call);
        let (result, ns) = made.map_or_else(|Failed(errno, ns)| (Err(errno), ns), |(reply, ns)| (Ok(reply), ns));
        // Two processes at once take half as long again.
        let ns = ns * self.factor * if self.processes > 1 { 3 } else { 2 } / 2;
        let ns = (ns as f64 * self.reuse_factor(call)) as u64;
        self.now_ns += ns;
        if matches!(call, Call::Fsync { .. } | Call::Fdatasync { .. } | Call::SyncFs) {
            self.device_ns = self.now_ns;
        }
        Outcome { start_ns, dur_ns: ns, result }
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn pause_ns(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    /// Whoever is earliest on its own clock goes next.
    fn run(&mut self, processes: Vec<Box<dyn Process + '_>>) -> std::io::Result<()> {
        let began = self.now_ns;
        let mut latest = began;
        let mut running: Vec<(u64, Option<Outcome>, Box<dyn Process + '_>)> =
            processes.into_iter().map(|p| (began, None, p)).collect();
        self.processes = running.len();
        while let Some(next) = (0..running.len()).min_by_key(|&at| running[at].0) {
            let (clock, last, process) = &mut running[next];
            self.now_ns = *clock;
            match process.next(last.take().as_ref()) {
                Step::Call(call) => *last = Some(self.call(&call)),
                Step::PauseNs(ns) => self.now_ns += ns,
                Step::Blocked => self.now_ns += 1000,
                Step::Done => {
                    latest = latest.max(self.now_ns);
                    running.remove(next);
                    continue;
                }
            }
            running[next].0 = self.now_ns;
        }
        self.processes = 1;
        self.now_ns = latest;
        Ok(())
    }

    fn contained(&mut self, work: &mut posix::Contained<'_>) -> std::io::Result<()> {
        work(self);
        Ok(())
    }

    fn read_into(&mut self, fd: Fd, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let rest = &self.nodes[self.node_of(fd)?].content[usize::try_from(offset).unwrap()..];
        let n = rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    /// In creation order.
    fn entries(&mut self, fd: Fd) -> Result<Vec<(std::ffi::OsString, FileKind)>, Errno> {
        let mut found: Vec<_> = self.nodes[self.node_of(fd)?].entries.iter().collect();
        found.sort_by_key(|(_, node)| **node);
        Ok(found.into_iter().map(|(name, node)| (name.into(), self.nodes[*node].kind)).collect())
    }

    fn drop_caches(&mut self) -> std::io::Result<CacheState> {
        self.call(&Call::SyncFs);
        self.settled = true;
        self.data.clear();
        self.open_at_drop += self.fds.len();
        if !self.root {
            return Ok(CacheState::Unverified);
        }
        self.names.clear();
        self.attributes.clear();
        for node in &mut self.nodes {
            node.map_cached = false;
        }
        Ok(CacheState::Cold)
    }

    fn usage(&mut self) -> std::io::Result<FsUsage> {
        let (total_bytes, free_bytes) = (self.capacity_bytes, self.capacity_bytes - self.used_bytes);
        let (total_inodes, free_inodes, block_bytes) = (1 << 30, 1 << 30, 4096);
        Ok(FsUsage { total_bytes, free_bytes, available_bytes: free_bytes, total_inodes, free_inodes, block_bytes })
    }

    fn extents(&mut self, fd: Fd) -> Result<Vec<Extent>, Unavailable> {
        let node = self.node_of(fd).map_err(|errno| Unavailable::Failed { what: "extents", errno })?;
        let Node { size, unwritten, .. } = self.nodes[node];
        let flags = ExtentFlags { unwritten, ..ExtentFlags::default() };
        Ok(vec![Extent { logical_bytes: 0, physical_bytes: 0, len_bytes: size, flags }])
    }

    fn free_extents(&mut self) -> Result<Vec<FreeExtent>, Unavailable> {
        Err(Unavailable::Unsupported { what: "free extents", on: "the fake".to_owned(), why: String::new() })
    }

    fn environment(&self) -> Environment {
        Environment { target: "fake".to_owned(), ..Environment::default() }
    }
}
