//! A small file system in memory whose calls cost fixed virtual times, with a simple model of caches and dirty data.
//!
//! What it charges is exactly an entry of the system vector, so a measurement of it has to find the entries again.

use posix::{
    At, CacheState, Call, Environment, Errno, Extent, Fd, FileKind, FileSystem, FreeExtent, FsUsage, Mode, OpenFlags,
    Outcome, Process, Reply, Residency, Stat, Step, SyncRange, Unavailable,
};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use system::Family;
use system::vector::Class;

const BLOCK: u64 = 4096;

/// What an operation costs, nanoseconds: a different straight line for every class.
pub fn cost(class: Class, at: u64) -> u64 {
    use Class::*;
    let number = class as u64;
    let base = match class {
        LookupHit => return 120,
        // It has no processor.
        LookupFar | LookupFarInOrder | ReadFarByte | ReadFar => return 0,
        // Names are hashed, and it has no arm that could be near.
        NegativeEach => return 0,
        CreateNext => return cost(Create, 0),
        SymlinkNext => return cost(Symlink, 0),
        ReadFirstNext => return cost(ReadFirst, at),
        RemoveNext => return cost(Remove, at),
        RemoveDirtyNext => return cost(RemoveDirty, at),
        RemoveUncachedNext => return cost(RemoveUncached, at),
        LookupSeqMiss | LookupRandMiss | LookupSeqAttrHit | LookupRandAttrHit => 40_000 + 1000 * number,
        // Each inode has a block of its own.
        LookupNearMiss => return cost(LookupSeqMiss, 0),
        LookupFewMiss => return cost(LookupRandMiss, 0),
        ReadSeq => 20_000,
        ReadRand | ReadFirst | ReadDirect | WriteDirect | WritePartial => 60_000 + 100 * number,
        FsyncClean => 5_000,
        FsyncAppend | FsyncOverwrite | FsyncCreate | FdatasyncAppend | FdatasyncOverwrite | FdatasyncCreate
        | FsyncContiguous | FsyncLate | FdatasyncContiguous | FdatasyncLate | FsyncDir | FdatasyncDir | SyncFs => {
            500_000 + 1000 * number
        }
        FsyncOther | FsyncLog => 100_000,
        SyncIdle => 20_000,
        SyncFirst => 300_000,
        _ => 1000 + 10 * number,
    };
    base + at * (1 + number % 3) / 8
}

/// What a device that has rested for so long takes longer: in steps.
fn rest_cost(rested_ns: u64) -> u64 {
    let reached = Class::SyncIdle.points().iter().rev().find(|point| **point <= rested_ns);
    reached.map_or(0, |point| cost(Class::SyncIdle, *point))
}

/// Least recently used things up to a number; `usize::MAX` is without limit (and quicker).
struct Lru<K> {
    limit: usize,
    tick: u64,
    by_key: FxHashMap<K, u64>,
    by_age: BTreeMap<u64, K>,
}

impl<K: Clone + Eq + std::hash::Hash> Lru<K> {
    fn new(limit: usize) -> Self {
        Lru { limit, tick: 0, by_key: FxHashMap::default(), by_age: BTreeMap::new() }
    }

    fn has(&self, key: &K) -> bool {
        self.by_key.contains_key(key)
    }

    fn touch(&mut self, key: K) {
        self.tick += 1;
        if self.limit == usize::MAX {
            self.by_key.insert(key, 0);
            return;
        }
        if let Some(old) = self.by_key.insert(key.clone(), self.tick) {
            self.by_age.remove(&old);
        }
        self.by_age.insert(self.tick, key);
        if self.by_age.len() > self.limit {
            let (_, key) = self.by_age.pop_first().expect("not empty");
            self.by_key.remove(&key);
        }
    }

    fn forget(&mut self, key: &K) {
        if let Some(age) = self.by_key.remove(key) {
            self.by_age.remove(&age);
        }
    }

    fn clear(&mut self) {
        self.by_key.clear();
        self.by_age.clear();
    }
}

struct Node {
    kind: FileKind,
    size: u64,
    nlink: u32,
    entries: BTreeMap<String, usize>,
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

struct Open {
    node: usize,
    offset: u64,
    /// Where the last read ended, if there was one.
    read_end: Option<u64>,
    direct: bool,
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
    /// Bytes that can be written before the disk is full.
    pub space: u64,
    /// Descriptors open when caches were last dropped.
    pub open_at_drop: usize,
    /// Files made since the last sync and still empty.
    empty_made: u64,
    /// When the device last had something to do.
    device_ns: u64,
    nodes: Vec<Node>,
    /// What may have something to write back.
    dirty: BTreeSet<usize>,
    fds: FxHashMap<u32, Open>,
    next_fd: u32,
    names: Lru<(usize, String)>,
    attributes: Lru<usize>,
    data: Lru<(usize, u64)>,
    processes: usize,
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
            space: 1 << 40,
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
            nlink: 1,
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

    fn node_of(&self, fd: Fd) -> Result<usize, Errno> {
        self.fds.get(&fd.0).map(|open| open.node).ok_or(Errno::EBADF)
    }

    /// The parent and last name of a path, and what walking the components before the last costs.
    fn parent(&mut self, at: At<'_>) -> Result<(usize, String, u64), Errno> {
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
    fn look_up(&mut self, dir: usize, name: &str) -> (Option<usize>, u64) {
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
    fn find(&mut self, at: At<'_>) -> Result<(usize, u64), (Errno, u64)> {
        let (dir, name, ns) = self.parent(at).map_err(|e| (e, 0))?;
        match self.look_up(dir, &name) {
            (Some(node), extra) => Ok((node, ns + extra)),
            (None, whole) => Err((Errno::ENOENT, ns + whole)),
        }
    }

    fn add(&mut self, dir: usize, name: &str, node: usize) {
        self.nodes[dir].entries.insert(name.to_owned(), node);
        self.nodes[dir].map_cached = true;
        self.nodes[dir].names_changed = true;
        self.uncommitted = true;
        self.names.touch((dir, name.to_owned()));
    }

    fn remove(&mut self, dir: usize, name: &str) -> Option<usize> {
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

    fn drop_blocks(&mut self, node: usize) {
        for block in 0..self.nodes[node].size.div_ceil(BLOCK) {
            self.data.forget(&(node, block));
        }
    }

    fn open(&mut self, at: At<'_>, flags: OpenFlags) -> Result<(Reply, u64), (Errno, u64)> {
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

    fn read(&mut self, fd: Fd, offset: Option<u64>, len: u64) -> Result<(Reply, u64), (Errno, u64)> {
        let open = self.fds.get_mut(&fd.0).ok_or((Errno::EBADF, 0))?;
        let node = open.node;
        let from = offset.unwrap_or(open.offset);
        let size = self.nodes[node].size;
        if from >= size {
            return Ok((Reply::Count(0), cost(Class::ReadOverhead, 0)));
        }
        let len = len.min(size - from);
        if offset.is_none() {
            open.offset += len;
        }
        let first = open.read_end.is_none();
        let adjacent = open.read_end.replace(from + len) == Some(from);
        if open.direct {
            return Ok((Reply::Count(len), cost(Class::ReadDirect, len)));
        }
        let blocks = from / BLOCK..(from + len).div_ceil(BLOCK);
        let cached = blocks.clone().all(|block| self.data.has(&(node, block)));
        for block in blocks {
            self.data.touch((node, block));
        }
        self.nodes[node].map_cached = true;
        let class = match (cached, adjacent) {
            (true, _) => Class::ReadCached,
            (false, true) => Class::ReadSeq,
            (false, false) if first && from == 0 && len == size => Class::ReadFirst,
            (false, false) => Class::ReadRand,
        };
        Ok((Reply::Count(len), cost(class, len)))
    }

    fn write(&mut self, fd: Fd, offset: Option<u64>, len: u64) -> Result<(Reply, u64), (Errno, u64)> {
        let open = self.fds.get_mut(&fd.0).ok_or((Errno::EBADF, 0))?;
        if len == 0 {
            return Ok((Reply::Count(0), cost(Class::WriteOverhead, 0)));
        }
        let node = open.node;
        let from = offset.unwrap_or(open.offset);
        if offset.is_none() {
            open.offset += len;
        }
        if open.direct {
            return Ok((Reply::Count(len), cost(Class::WriteDirect, len)));
        }
        let blocks = from / BLOCK..(from + len).div_ceil(BLOCK);
        let cached = blocks.clone().all(|block| self.data.has(&(node, block)));
        let file = &mut self.nodes[node];
        file.map_cached = true;
        let class = if from + len > file.size {
            self.space = self.space.checked_sub(len).ok_or((Errno::ENOSPC, 0))?;
            let class = match from {
                _ if from.is_multiple_of(BLOCK) => Class::WriteAppend,
                _ if from / BLOCK * BLOCK < file.size - file.new_bytes => Class::WriteExtendAllocated,
                _ => Class::WriteExtend,
            };
            self.empty_made -= u64::from(file.size == 0).min(self.empty_made);
            file.size = from + len;
            file.new_bytes += len;
            class
        } else {
            file.over_bytes += len;
            file.over_runs += u64::from(file.over_runs == 0 || from != file.over_end);
            file.over_end = from + len;
            match (cached, from.is_multiple_of(BLOCK) && len.is_multiple_of(BLOCK)) {
                (true, _) => Class::WriteCached,
                (false, true) => Class::WriteUncached,
                (false, false) => return self.wrote(node, blocks, len, cost(Class::WritePartial, 0)),
            }
        };
        self.wrote(node, blocks, len, cost(class, len))
    }

    fn wrote(
        &mut self,
        node: usize,
        blocks: std::ops::Range<u64>,
        len: u64,
        ns: u64,
    ) -> Result<(Reply, u64), (Errno, u64)> {
        for block in blocks {
            self.data.touch((node, block));
        }
        self.dirty.insert(node);
        Ok((Reply::Count(len), ns))
    }

    fn dirty_bytes(&self) -> u64 {
        self.dirty.iter().map(|&n| self.nodes[n].new_bytes + self.nodes[n].over_bytes).sum()
    }

    fn sync_node(&mut self, node: usize, data_only: bool) -> u64 {
        let mut ns = self.sync_one(node, data_only);
        if ns > cost(Class::FsyncClean, 0) && std::mem::take(&mut self.settled) {
            ns += cost(Class::SyncFirst, 0);
        }
        if self.journals_data {
            for other in std::mem::take(&mut self.dirty) {
                let other = &mut self.nodes[other];
                (other.new_bytes, other.over_bytes, other.over_runs, other.ever_synced) = (0, 0, 0, true);
            }
        }
        ns
    }

    fn sync_one(&mut self, node: usize, data_only: bool) -> u64 {
        // Another process, which is further on its own clock, may have it.
        let rested_ns = self.now_ns.saturating_sub(self.device_ns);
        let is_directory = self.nodes[node].kind == FileKind::Directory;
        // Nothing but blocks that there were has to be written: no log is.
        if data_only && !is_directory && self.nodes[node].new_bytes == 0 && self.nodes[node].over_bytes > 0 {
            return self.sync_overwritten(node) + rest_cost(rested_ns);
        }
        self.sync_all_of(node, data_only)
    }

    fn sync_overwritten(&mut self, node: usize) -> u64 {
        self.dirty.remove(&node);
        let file = &mut self.nodes[node];
        let (bytes, runs) = (std::mem::take(&mut file.over_bytes), std::mem::take(&mut file.over_runs));
        let scattered = runs > 1 || bytes <= BLOCK;
        cost(if scattered { Class::FdatasyncOverwrite } else { Class::FdatasyncContiguous }, bytes)
    }

    fn sync_all_of(&mut self, node: usize, data_only: bool) -> u64 {
        use Class::*;
        let of = |fsync: Class, fdatasync: Class| if data_only { fdatasync } else { fsync };
        let names = std::mem::take(&mut self.empty_made);
        if self.nodes[node].kind == FileKind::Directory {
            let elsewhere = std::mem::take(&mut self.uncommitted) && self.directory_commits;
            let changed = std::mem::take(&mut self.nodes[node].names_changed) || elsewhere;
            return cost(if changed { of(FsyncDir, FdatasyncDir) } else { FsyncDirClean }, 0);
        }
        let total = self.dirty_bytes();
        self.uncommitted = self.leaves_changes;
        self.dirty.remove(&node);
        let file = &mut self.nodes[node];
        let (new, over) = (std::mem::take(&mut file.new_bytes), std::mem::take(&mut file.over_bytes));
        let runs = std::mem::take(&mut file.over_runs);
        let synced = std::mem::replace(&mut file.ever_synced, true);
        let (dir, made_ns) = (file.dir, file.made_ns);
        let late = self.nodes[dir].new_synced_ns.is_some_and(|ns| ns > made_ns);
        let ns = match (new + over, synced, new > 0) {
            (0, true, _) => return cost(FsyncClean, 0),
            (bytes, false, true) if late => cost(of(FsyncLate, FdatasyncLate), bytes),
            (bytes, false, _) => cost(of(FsyncCreate, FdatasyncCreate), bytes),
            (bytes, true, true) => cost(of(FsyncAppend, FdatasyncAppend), bytes),
            (bytes, true, false) if runs > 1 || bytes <= BLOCK => cost(of(FsyncOverwrite, FdatasyncOverwrite), bytes),
            (bytes, true, false) => cost(of(FsyncContiguous, FdatasyncContiguous), bytes),
        };
        if !synced {
            self.nodes[dir].new_synced_ns = Some(self.now_ns);
        }
        self.commit(synced);
        let others = total - new - over;
        ns + if others > 0 { cost(FsyncOther, others) } else { 0 } + if names > 0 { cost(FsyncLog, names) } else { 0 }
    }

    /// What the sync of a file, new unless it was synced before, does to the others.
    fn commit(&mut self, synced: bool) {
        let writes = match self.family {
            Family::Log => false,
            Family::Segments if !synced => true,
            _ => return,
        };
        for &other in &self.dirty {
            let other = &mut self.nodes[other];
            if writes && !other.ever_synced {
                other.new_bytes = 0;
            }
            other.ever_synced = true;
        }
    }

    fn unlink(&mut self, at: At<'_>) -> Result<(Reply, u64), (Errno, u64)> {
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
    fn on_path(&mut self, at: At<'_>, class: Class) -> Result<(Reply, u64), (Errno, u64)> {
        let (_, ns) = self.find(at)?;
        Ok((Reply::Done, ns + cost(class, 0)))
    }

    fn stat_of(&self, node: usize) -> Reply {
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

    fn make(&mut self, call: &Call<'_>) -> Result<(Reply, u64), (Errno, u64)> {
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

    fn xattr(&mut self, call: &Call<'_>) -> Result<(Reply, u64), (Errno, u64)> {
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

impl Fake {
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
        let (result, ns) = match self.make(call) {
            Ok((reply, ns)) => (Ok(reply), ns),
            Err((errno, ns)) => (Err(errno), ns),
        };
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

    fn read_into(&mut self, _: Fd, _: u64, _: &mut [u8]) -> Result<usize, Errno> {
        Err(Errno::ENOSYS)
    }

    fn entries(&mut self, _: Fd) -> Result<Vec<(std::ffi::OsString, FileKind)>, Errno> {
        Err(Errno::ENOSYS)
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
        let available_bytes = self.space;
        Ok(FsUsage {
            total_bytes: 1 << 40,
            free_bytes: available_bytes,
            available_bytes,
            total_inodes: 1 << 30,
            free_inodes: 1 << 30,
            block_bytes: 4096,
        })
    }

    fn extents(&mut self, _: Fd) -> Result<Vec<Extent>, Unavailable> {
        Err(Unavailable::Unsupported { what: "extents", on: "the fake".to_owned(), why: String::new() })
    }

    fn free_extents(&mut self) -> Result<Vec<FreeExtent>, Unavailable> {
        Err(Unavailable::Unsupported { what: "free extents", on: "the fake".to_owned(), why: String::new() })
    }

    fn environment(&self) -> Environment {
        Environment { target: "fake".to_owned(), ..Environment::default() }
    }
}
