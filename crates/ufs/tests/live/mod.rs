//! A reference file system of maps and vectors, and random operations on it and on a live one side by side. The tests
//! of FFS and of LFS take it in by its path, and say what is theirs ([`Subject`]).

#![allow(dead_code, clippy::unwrap_used)]

use device::store::MemoryStore;
use kernel::{
    Durability, Entry, Ino, NewNode, ReadAhead, Rename, SetAttributes, Transfers, Untimed, Volume, WriteRange,
};
use posix::{Errno, FileKind};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use ufs::DiskInode as _;
use ufs::image::Readable;
use ufs::live::check::Disagreement;

/// Bytes of a whole disk, shared between the kernel and the test.
pub type Disk = Arc<Mutex<MemoryStore>>;

/// A file system that is run beside the reference.
pub trait Subject: Volume + Clone + Debug + Send + 'static {
    /// How it is made.
    type Mkfs: Clone + Debug + Send;
    /// How it is opened.
    type Options: Copy + Debug + Send;
    /// An image of it.
    type Image: Readable<Error: Debug>;

    /// Whether there is always room to remove something.
    const ALWAYS_REMOVES: bool;

    /// Bytes of a block, and of the whole.
    fn sizes(mkfs: &Self::Mkfs) -> (u32, u64);
    /// A new one, and its disk.
    fn make(case: &Case<Self>) -> (Self, MemoryStore);
    /// Everything in memory that does not agree.
    fn disagreements(&self) -> Vec<Disagreement>;
    /// `ENOSPC`, when so many bytes were wanted, must have a reason.
    fn assert_short(&self, case: &Case<Self>, what: &str, wanted_bytes: u64);
    /// Whether what is dirty may stay so for want of room.
    fn may_stay_full(_options: &Self::Options) -> bool {
        false
    }
    /// The image that unmounting has left, sound and checked; nothing if the structures alone are to be mounted again.
    fn left(&self, case: &Case<Self>, disk: Option<MemoryStore>, done: u64) -> Option<MemoryStore>;
    /// Reads it.
    fn open(image: MemoryStore) -> Self::Image;
    /// The file system in it, and the disk.
    fn reload(image: Self::Image, options: Self::Options) -> (Self, MemoryStore);
}

/// What to run on.
#[derive(Clone, Debug)]
pub struct Case<S: Subject> {
    pub mkfs: S::Mkfs,
    pub options: S::Options,
    pub cache_bytes: u64,
    /// Whether every byte is kept and compared.
    pub bytes: bool,
    pub seed: u64,
}

#[derive(Clone, Debug)]
pub struct ModelNode {
    kind: FileKind,
    mode: u16,
    nlink: u32,
    size: u64,
    content: Vec<u8>,
    entries: BTreeMap<Vec<u8>, u32>,
    parent: u32,
    target: Vec<u8>,
}

/// Both file systems and the random numbers.
pub struct Run<S: Subject> {
    case: Case<S>,
    live: Untimed<S>,
    disk: Option<Disk>,
    nodes: BTreeMap<u32, ModelNode>,
    files: Vec<u32>,
    dirs: Vec<u32>,
    /// Without names, but open.
    orphans: Vec<u32>,
    random: Xoshiro256PlusPlus,
    pub done: u64,
    pub out_of_space: u64,
    serial: u64,
}

const EPOCH_NS: i64 = 820_000_000_000_000_000;

fn transfers() -> Transfers {
    Transfers { largest_bytes: 65536, read_ahead: ReadAhead::Cluster, cluster_writes: true }
}

fn live<S: Subject>(case: &Case<S>, volume: S, disk: &Option<Disk>) -> Untimed<S> {
    let mut live = match disk {
        Some(disk) => {
            let image = kernel::payload::Image::full(disk.clone());
            Untimed::with_image(volume, case.cache_bytes, 64, transfers(), EPOCH_NS, image)
        }
        None => Untimed::new(volume, case.cache_bytes, 64, transfers(), EPOCH_NS),
    };
    live.run(|volume, cx| volume.mount(cx)).unwrap();
    live
}

impl<S: Subject> Run<S> {
    pub fn new(case: Case<S>) -> Run<S> {
        let (volume, disk) = S::make(&case);
        let root = volume.attributes(Ino(2)).unwrap();
        let disk = case.bytes.then(|| Arc::new(Mutex::new(disk)));
        let node = ModelNode {
            kind: FileKind::Directory,
            mode: root.mode,
            nlink: root.nlink,
            size: 0,
            content: Vec::new(),
            entries: BTreeMap::new(),
            parent: 2,
            target: Vec::new(),
        };
        Run {
            live: live(&case, volume, &disk),
            disk,
            nodes: BTreeMap::from([(2, node)]),
            files: Vec::new(),
            dirs: vec![2],
            orphans: Vec::new(),
            random: Xoshiro256PlusPlus::seed_from_u64(case.seed),
            case,
            done: 0,
            out_of_space: 0,
            serial: 0,
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.next_u64() % n.max(1)
    }

    fn pick(&mut self, from: &[u32]) -> Option<u32> {
        let at = self.below(from.len() as u64) as usize;
        from.get(at).copied()
    }

    fn node(&mut self, ino: u32) -> &mut ModelNode {
        self.nodes.get_mut(&ino).unwrap()
    }

    fn new_name(&mut self) -> Vec<u8> {
        self.serial += 1;
        let long = match self.below(10) {
            0 => 200,
            1..=3 => 40,
            _ => 6,
        };
        let len = self.below(long) as usize;
        let mut name = format!("{}", self.serial).into_bytes();
        name.resize((name.len() + len).min(255), b'n');
        name
    }

    /// `ENOSPC` must have a reason.
    fn no_space(&mut self, what: &str, wanted_bytes: u64) {
        self.out_of_space += 1;
        self.live.volume().assert_short(&self.case, what, wanted_bytes);
    }

    /// Whether what takes something away was refused, which may be for want of room only.
    fn refused(&mut self, what: &str, result: Result<(), Errno>) -> bool {
        if result == Err(Errno::ENOSPC) && !S::ALWAYS_REMOVES {
            self.no_space(what, 0);
            return true;
        }
        assert_eq!(result, Ok(()), "{what}: {:?}", self.case);
        false
    }

    fn bsize(&self) -> u64 {
        S::sizes(&self.case.mkfs).0.into()
    }

    /// The file system.
    pub fn volume(&self) -> &S {
        self.live.volume()
    }

    /// One random operation.
    pub fn step(&mut self) {
        self.done += 1;
        self.live.pause_ns(1_000_000);
        match self.below(100) {
            0..18 => self.create(),
            18..22 => self.mkdir(),
            22..24 => self.symlink(),
            24..27 => self.link(),
            27..57 => self.write(),
            57..65 => self.truncate(),
            65..79 => self.unlink(),
            79..82 => self.rmdir(),
            82..88 => self.rename(),
            88..91 => self.release_orphan(),
            91..94 => self.attributes(),
            94..96 => self.list(),
            96..98 => self.fsync(),
            98 => self.sync(),
            _ => self.remove_many(),
        }
    }

    fn create_node(&mut self, dir: u32, kind: FileKind, target: &[u8]) -> Option<u32> {
        let name = self.new_name();
        let mode = 0o600 | self.below(0o100) as u16;
        let new = NewNode { kind, mode, target };
        self.live.touch(Ino(dir));
        let made = self.live.run(|volume, cx| {
            assert_eq!(volume.lookup(cx, Ino(dir), &name), Ok(None));
            volume.create(cx, Ino(dir), &name, &new)
        });
        match made {
            Ok(ino) => {
                self.live.touch(ino);
                let directory = kind == FileKind::Directory;
                let node = ModelNode {
                    kind,
                    mode,
                    nlink: 1 + u32::from(directory),
                    size: target.len() as u64,
                    content: Vec::new(),
                    entries: BTreeMap::new(),
                    parent: dir,
                    target: target.to_vec(),
                };
                assert!(self.nodes.insert(ino.0, node).is_none(), "{ino:?} was in use");
                self.node(dir).entries.insert(name, ino.0);
                self.node(dir).nlink += u32::from(directory);
                Some(ino.0)
            }
            Err(Errno::ENOSPC) => {
                self.no_space("create", 0);
                None
            }
            Err(error) => panic!("create: {error}"),
        }
    }

    fn create(&mut self) {
        let dirs = std::mem::take(&mut self.dirs);
        let dir = self.pick(&dirs).unwrap();
        self.dirs = dirs;
        if let Some(ino) = self.create_node(dir, FileKind::File, b"") {
            self.files.push(ino);
            if self.below(2) == 0 {
                let len = self.size();
                self.write_to(ino, 0, len);
            }
        }
    }

    fn mkdir(&mut self) {
        let dirs = std::mem::take(&mut self.dirs);
        let dir = self.pick(&dirs).unwrap();
        self.dirs = dirs;
        if self.dirs.len() < 60
            && let Some(ino) = self.create_node(dir, FileKind::Directory, b"")
        {
            self.dirs.push(ino);
        }
    }

    fn symlink(&mut self) {
        let dirs = std::mem::take(&mut self.dirs);
        let dir = self.pick(&dirs).unwrap();
        self.dirs = dirs;
        let len = 1 + self.below(200) as usize;
        let target = vec![b't'; len];
        if let Some(ino) = self.create_node(dir, FileKind::Symlink, &target) {
            self.files.push(ino);
            let found = self.live.run(|volume, cx| volume.readlink(cx, Ino(ino)));
            assert_eq!(found.as_deref(), Ok(&target[..]));
        }
    }

    fn link(&mut self) {
        let (files, dirs) = (std::mem::take(&mut self.files), std::mem::take(&mut self.dirs));
        let (ino, dir) = (self.pick(&files), self.pick(&dirs).unwrap());
        (self.files, self.dirs) = (files, dirs);
        let Some(ino) = ino else { return };
        let name = self.new_name();
        self.live.touch(Ino(ino));
        match self.live.run(|volume, cx| volume.link(cx, Ino(ino), Ino(dir), &name)) {
            Ok(()) => {
                self.node(ino).nlink += 1;
                self.node(dir).entries.insert(name, ino);
            }
            Err(Errno::ENOSPC) => self.no_space("link", 0),
            Err(error) => panic!("link: {error}"),
        }
    }

    /// Small files, files about the first indirect block, a few larger.
    fn size(&mut self) -> u64 {
        let bsize = self.bsize();
        match self.below(20) {
            0..9 => 1 + self.below(bsize),
            9..15 => 1 + self.below(4 * bsize),
            15..18 => 1 + self.below(15 * bsize),
            _ => 1 + self.below(40 * bsize),
        }
    }

    fn file(&mut self) -> Option<u32> {
        let files = std::mem::take(&mut self.files);
        let orphans = std::mem::take(&mut self.orphans);
        let ino = if self.below(10) == 0 { self.pick(&orphans) } else { self.pick(&files) };
        (self.files, self.orphans) = (files, orphans);
        ino.filter(|ino| self.nodes[ino].kind == FileKind::File)
    }

    fn write(&mut self) {
        let Some(ino) = self.file() else { return };
        let (size, bsize) = (self.nodes[&ino].size, self.bsize());
        let most = if self.below(4) == 0 { 6 * bsize } else { bsize };
        let len = 1 + self.below(most);
        let offset = match self.below(20) {
            0..12 => size,
            12..17 => self.below(size + 1),
            17..19 => size + self.below(3 * bsize),
            // Far away: double and triple indirect blocks, if a block has few pointers.
            _ => self.below((3_000 * bsize).min(16 << 20)),
        };
        self.write_to(ino, offset, len);
    }

    fn write_to(&mut self, ino: u32, offset: u64, len: u64) {
        let mut data = Vec::new();
        if self.case.bytes {
            data.resize(len as usize, 0);
            self.random.fill_bytes(&mut data);
        }
        let sync = (self.below(30) == 0).then_some(Durability::Data);
        let bytes = self.case.bytes.then_some(&data[..]);
        let range = WriteRange { ino: Ino(ino), offset, len_bytes: len, data: bytes, sync };
        self.live.touch(Ino(ino));
        let written = match self.live.run(|volume, cx| volume.write(cx, &range)) {
            Ok(written) => written,
            Err(Errno::ENOSPC) => 0,
            Err(error) => panic!("write: {error}"),
        };
        if written < len {
            self.no_space("write", len + 12 * self.bsize());
        }
        let keep = self.case.bytes;
        let node = self.node(ino);
        if written > 0 {
            node.size = node.size.max(offset + written);
            if keep {
                node.content.resize(node.size as usize, 0);
                node.content[offset as usize..(offset + written) as usize].copy_from_slice(&data[..written as usize]);
            }
        }
        let size = node.size;
        assert_eq!(self.live.volume().attributes(Ino(ino)).unwrap().size_bytes, size);
    }

    fn truncate(&mut self) {
        let Some(ino) = self.file() else { return };
        let (size, bsize) = (self.nodes[&ino].size, self.bsize());
        let length = match self.below(10) {
            0..3 => 0,
            3..8 => self.below(size + 1),
            _ => size + self.below(20 * bsize),
        };
        self.live.touch(Ino(ino));
        match self.live.run(|volume, cx| volume.truncate(cx, Ino(ino), length)) {
            Ok(()) => {
                let keep = self.case.bytes;
                let node = self.node(ino);
                node.size = length;
                if keep {
                    node.content.resize(length as usize, 0);
                }
            }
            Err(Errno::ENOSPC) => {
                // Also when it is cut: inside a hole, its last block is allocated.
                self.no_space("truncate", 12 * bsize);
            }
            Err(error) => panic!("truncate: {error}"),
        }
        let size = self.nodes[&ino].size;
        assert_eq!(self.live.volume().attributes(Ino(ino)).unwrap().size_bytes, size);
    }

    /// A name that is not a directory's.
    fn file_name(&mut self) -> Option<(u32, Vec<u8>, u32)> {
        let dirs = std::mem::take(&mut self.dirs);
        let dir = self.pick(&dirs).unwrap();
        self.dirs = dirs;
        let entries: Vec<(Vec<u8>, u32)> = self.nodes[&dir]
            .entries
            .iter()
            .filter(|(_, ino)| self.nodes[ino].kind != FileKind::Directory)
            .map(|(name, ino)| (name.clone(), *ino))
            .collect();
        let at = self.below(entries.len() as u64) as usize;
        entries.get(at).map(|(name, ino)| (dir, name.clone(), *ino))
    }

    fn unlink(&mut self) {
        let Some((dir, name, ino)) = self.file_name() else { return };
        let found = self.live.run(|volume, cx| volume.lookup(cx, Ino(dir), &name));
        assert_eq!(found, Ok(Some(Ino(ino))));
        let removed = self.live.run(|volume, cx| volume.unlink(cx, Ino(dir), &name, Ino(ino)));
        if self.refused("unlink", removed) {
            return;
        }
        self.node(dir).entries.remove(&name);
        self.lost_link(ino, 1);
    }

    fn lost_link(&mut self, ino: u32, links: u32) {
        let node = self.node(ino);
        node.nlink -= links;
        if node.nlink > 0 {
            return;
        }
        let kind = node.kind;
        self.files.retain(|file| *file != ino);
        self.dirs.retain(|dir| *dir != ino);
        if kind == FileKind::File && self.below(5) == 0 && self.orphans.len() < 5 {
            self.orphans.push(ino);
        } else {
            self.release(ino);
        }
    }

    fn release(&mut self, ino: u32) {
        self.live.run(|volume, cx| volume.release(cx, Ino(ino)));
        self.live.forget(Ino(ino));
        self.nodes.remove(&ino);
        assert_eq!(self.live.volume().attributes(Ino(ino)), Err(Errno::ESTALE));
    }

    fn release_orphan(&mut self) {
        if let Some(ino) = self.orphans.pop() {
            self.release(ino);
        }
    }

    fn rmdir(&mut self) {
        let dirs = std::mem::take(&mut self.dirs);
        let dir = self.pick(&dirs).unwrap();
        self.dirs = dirs;
        if dir == 2 {
            return;
        }
        let parent = self.nodes[&dir].parent;
        let name = self.nodes[&parent].entries.iter().find(|(_, ino)| **ino == dir).unwrap().0.clone();
        let removed = self.live.run(|volume, cx| volume.rmdir(cx, Ino(parent), &name, Ino(dir)));
        if self.nodes[&dir].entries.is_empty() {
            if self.refused("rmdir", removed) {
                return;
            }
            self.node(parent).entries.remove(&name);
            self.node(parent).nlink -= 1;
            self.lost_link(dir, 2);
        } else {
            assert_eq!(removed, Err(Errno::ENOTEMPTY));
        }
    }

    fn is_below(&self, mut dir: u32, above: u32) -> bool {
        loop {
            if dir == above {
                return true;
            }
            if dir == 2 {
                return false;
            }
            dir = self.nodes[&dir].parent;
        }
    }

    fn rename(&mut self) {
        let dirs = std::mem::take(&mut self.dirs);
        let (from_dir, to_dir) = (self.pick(&dirs).unwrap(), self.pick(&dirs).unwrap());
        self.dirs = dirs;
        let count = self.nodes[&from_dir].entries.len() as u64;
        let at = self.below(count) as usize;
        let Some((from_name, ino)) = self.nodes[&from_dir].entries.iter().nth(at) else { return };
        let (from_name, ino) = (from_name.clone(), *ino);
        let directory = self.nodes[&ino].kind == FileKind::Directory;
        if directory && self.is_below(to_dir, ino) {
            return;
        }
        let count = self.nodes[&to_dir].entries.len() as u64;
        let at = self.below(count * 2) as usize;
        let existing = self.nodes[&to_dir].entries.iter().nth(at).map(|(name, ino)| (name.clone(), *ino));
        let (to_name, replaced) = match existing {
            Some((name, old)) => (name, Some(old)),
            None => (self.new_name(), None),
        };
        let kinds_differ = replaced.is_some_and(|old| (self.nodes[&old].kind == FileKind::Directory) != directory);
        if replaced == Some(ino) || kinds_differ || replaced.is_some_and(|old| self.is_below(from_dir, old)) {
            return;
        }
        let rename = Rename {
            from_dir: Ino(from_dir),
            from_name: &from_name,
            ino: Ino(ino),
            to_dir: Ino(to_dir),
            to_name: &to_name,
            replaced: replaced.map(Ino),
        };
        match self.live.run(|volume, cx| volume.rename(cx, &rename)) {
            Ok(()) => {}
            Err(Errno::ENOTEMPTY) => {
                assert!(!self.nodes[&replaced.unwrap()].entries.is_empty());
                return;
            }
            Err(Errno::ENOSPC) => return self.no_space("rename", 0),
            Err(error) => panic!("rename: {error}"),
        }
        self.node(from_dir).entries.remove(&from_name);
        self.node(to_dir).entries.insert(to_name, ino);
        if directory && from_dir != to_dir {
            self.node(from_dir).nlink -= 1;
            self.node(to_dir).nlink += 1;
            self.node(ino).parent = to_dir;
        }
        if let Some(old) = replaced {
            if directory {
                self.node(to_dir).nlink -= 1;
                self.lost_link(old, 2);
            } else {
                self.lost_link(old, 1);
            }
        }
    }

    fn attributes(&mut self) {
        let Some(ino) = self.file() else { return };
        let mode = self.below(0o1000) as u16;
        let set = SetAttributes { mode: Some(mode), uid: Some(7), ..SetAttributes::default() };
        self.live.touch(Ino(ino));
        let set = self.live.run(|volume, cx| {
            volume.load(cx, Ino(ino)).unwrap();
            volume.accessed(cx, Ino(ino));
            volume.set_attributes(cx, Ino(ino), &set)
        });
        if self.refused("set_attributes", set) {
            return;
        }
        self.node(ino).mode = mode;
    }

    fn list(&mut self) {
        let dirs = std::mem::take(&mut self.dirs);
        let dir = self.pick(&dirs).unwrap();
        self.dirs = dirs;
        assert_eq!(self.listing(dir), self.nodes[&dir].entries);
    }

    /// A directory's names, a few at a time.
    fn listing(&mut self, dir: u32) -> BTreeMap<Vec<u8>, u32> {
        let mut names = BTreeMap::new();
        let parent = self.nodes[&dir].parent;
        let mut cookie = 0;
        loop {
            let mut room = 7;
            let mut last = cookie;
            let mut sink = |entry: Entry<'_>| {
                if room == 0 {
                    return false;
                }
                room -= 1;
                last = entry.cookie;
                match entry.name {
                    b"." => assert_eq!(entry.ino.0, dir),
                    b".." => assert_eq!(entry.ino.0, parent),
                    name => assert!(names.insert(name.to_vec(), entry.ino.0).is_none()),
                }
                true
            };
            self.live.run(|volume, cx| volume.readdir(cx, Ino(dir), cookie, &mut sink)).unwrap();
            if last == cookie {
                return names;
            }
            cookie = last;
        }
    }

    fn fsync(&mut self) {
        let Some(ino) = self.file() else { return };
        self.live.touch(Ino(ino));
        let synced = self.live.run(|volume, cx| volume.fsync(cx, Ino(ino), Durability::All));
        self.synced(synced);
    }

    fn sync(&mut self) {
        let synced = self.live.run(|volume, cx| volume.sync(cx, Durability::Started));
        self.synced(synced);
    }

    fn synced(&self, synced: Result<(), Errno>) {
        let full = S::may_stay_full(&self.case.options) && synced == Err(Errno::ENOSPC);
        assert!(full || synced == Ok(()), "{synced:?}: {:?}", self.case);
    }

    /// Makes room when the disk is full, so that it fills up many times.
    fn remove_many(&mut self) {
        if self.live.volume().usage().available_bytes > S::sizes(&self.case.mkfs).1 / 20 {
            return;
        }
        for _ in 0..self.files.len() {
            if self.below(2) == 0 {
                self.unlink();
            }
        }
    }

    /// Compares everything in memory.
    pub fn check(&mut self) {
        let problems = self.live.volume().disagreements();
        assert!(problems.is_empty(), "{:?}, after {}: {problems:#?}", self.case, self.done);
        let inodes: Vec<u32> = self.nodes.keys().copied().collect();
        for ino in inodes {
            let found = self.live.volume().attributes(Ino(ino)).unwrap();
            let node = &self.nodes[&ino];
            assert_eq!((found.kind, found.nlink, found.mode), (node.kind, node.nlink, node.mode), "inode {ino}");
            if node.kind == FileKind::Directory {
                assert_eq!(self.listing(ino), self.nodes[&ino].entries);
            } else {
                assert_eq!(found.size_bytes, node.size, "inode {ino}");
            }
        }
    }

    /// The disk as the operations' own writes have left it, unmounted.
    pub fn disk(mut self) -> MemoryStore {
        while !self.orphans.is_empty() {
            self.release_orphan();
        }
        self.live.run(|volume, cx| volume.unmount(cx)).unwrap();
        let disk = self.disk.expect("a case with bytes");
        let bytes = std::mem::take(&mut disk.lock().unwrap().0);
        MemoryStore(bytes)
    }

    /// The disk as it is now, as a power failure would leave it.
    pub fn snapshot(&self) -> MemoryStore {
        self.disk.as_ref().expect("a case with bytes").lock().unwrap().clone()
    }

    /// Unmounts, has the image checked, compares it with the reference file by file, and mounts again. `false` if there
    /// is no room for that any more: a log without a cleaner is full some day.
    pub fn remount(&mut self) -> bool {
        while !self.orphans.is_empty() {
            self.release_orphan();
        }
        let unmounted = self.live.run(|volume, cx| volume.unmount(cx));
        if unmounted == Err(Errno::ENOSPC) && S::may_stay_full(&self.case.options) {
            return false;
        }
        assert_eq!(unmounted, Ok(()), "{:?}, after {}", self.case, self.done);
        let disk = self.disk.as_ref().map(|disk| disk.lock().unwrap().clone());
        let volume = match self.live.volume().left(&self.case, disk, self.done) {
            None => self.live.volume().clone(),
            Some(image) => {
                let image = S::open(image);
                self.compare(&image);
                let (volume, store) = S::reload(image, self.case.options);
                if let Some(disk) = &self.disk {
                    *disk.lock().unwrap() = store;
                }
                volume
            }
        };
        self.live = live(&self.case, volume, &self.disk);
        true
    }

    /// The same case on a new disk, with other random numbers.
    pub fn begin_again(self) -> Run<S> {
        let seed = self.case.seed + (1 << 32);
        let (done, out_of_space) = (self.done, self.out_of_space);
        Run { done, out_of_space, ..Run::new(Case { seed, ..self.case }) }
    }

    fn compare(&self, image: &S::Image) {
        let mut seen = 0;
        let mut paths: BTreeMap<Vec<u8>, u32> = BTreeMap::from([(b".".to_vec(), 2)]);
        let walked = ufs::image::walk(image, Ino(2), &mut |path, ino, inode| {
            seen += 1;
            let expected = paths.remove(path).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(path)));
            let node = &self.nodes[&expected];
            assert_eq!((ino.0, inode.nlink() as u32, inode.permissions()), (expected, node.nlink, node.mode));
            match node.kind {
                FileKind::Directory => {
                    assert_eq!(inode.file_type(), Some(ufs::FileType::Directory));
                    for (name, child) in &node.entries {
                        paths.insert([path, b"/", name].concat(), *child);
                    }
                }
                FileKind::Symlink => assert_eq!(ufs::image::target(image, ino, inode)?, node.target),
                FileKind::File | FileKind::Special => {
                    assert_eq!(inode.size(), node.size);
                    if self.case.bytes {
                        let mut content = vec![0; node.size as usize];
                        ufs::image::data(image, ino, inode, &mut |at, bytes| {
                            content[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
                            Ok(())
                        })?;
                        assert!(content == node.content, "inode {ino}: bytes differ");
                    }
                }
            }
            Ok(())
        });
        walked.unwrap();
        assert!(paths.is_empty(), "not in the image: {paths:?}");
        assert!(seen > 0);
    }
}

/// Runs a case in at least `rounds` rounds, of no more than so many operations, each of which ends with every check;
/// with `each`, every operation does.
fn run<S: Subject>(case: Case<S>, operations: u64, (rounds, most): (u64, u64), each: bool) -> (u64, u64) {
    let rounds = rounds.max(operations / most);
    let mut run = Run::new(case);
    for _ in 0..rounds {
        for _ in 0..operations / rounds {
            run.step();
            if each {
                run.check();
            }
        }
        run.check();
        if !run.remount() {
            run = run.begin_again();
        }
        run.check();
    }
    (run.done, run.out_of_space)
}

/// Runs every case, as many at a time as there are processors; each is on its own and has its own seed. How many
/// operations there were, and how many of them found no space.
pub fn run_all<S: Subject>(cases: Vec<Case<S>>, operations: u64, rounds: (u64, u64), each: bool) -> (u64, u64) {
    let waiting = Mutex::new(cases.into_iter());
    let next = || waiting.lock().unwrap().next();
    let work = || {
        let (mut done, mut full) = (0, 0);
        while let Some(case) = next() {
            let (steps, out_of_space) = run(case, operations, rounds, each);
            done += steps;
            full += out_of_space;
        }
        (done, full)
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
    })
}
