//! A reference file system of maps and vectors, and random operations on it and on a live FFS side by side.

use ffs::mkfs::{DiskGeometry, GroupSize, MkfsOptions, mkfs};
use ffs::policy::Options;
use ffs::{Endian, Ffs, Image, MemoryStore, Search, Version};
use kernel::{
    Durability, Entry, Ino, NewNode, ReadAhead, Rename, SetAttributes, Transfers, Untimed, Volume, WriteRange,
};
use posix::{Errno, FileKind};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Bytes of a whole disk, shared between the kernel and the test.
pub type Disk = Arc<Mutex<MemoryStore>>;

/// What to run on.
#[derive(Clone, Debug)]
pub struct Case {
    pub mkfs: MkfsOptions,
    pub options: Options,
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
pub struct Run {
    case: Case,
    live: Untimed<Ffs>,
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

fn live(case: &Case, volume: Ffs, disk: &Option<Disk>) -> Untimed<Ffs> {
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

impl Run {
    pub fn new(case: Case) -> Run {
        let mut image = MemoryStore(vec![0; case.mkfs.size_bytes as usize]);
        mkfs(&mut image, &case.mkfs).unwrap();
        let loaded = Image::open(image, Search::Standard).unwrap();
        let volume = Ffs::load(&loaded, case.options).unwrap();
        let root = volume.attributes(Ino(2)).unwrap();
        let disk = case.bytes.then(|| Arc::new(Mutex::new(loaded.into_store())));
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
        let volume = self.live.volume();
        let usage = volume.usage();
        let total = volume.space().total();
        let blocks = wanted_bytes / u64::from(volume.block_bytes()) + 4;
        let short = usage.available_bytes < blocks * u64::from(volume.block_bytes())
            || (total.nbfree as u64) < blocks
            || usage.free_inodes == 0;
        assert!(short, "{what}: no space, of {usage:?}, {total:?}");
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
        let bsize = u64::from(self.case.mkfs.bsize);
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
        let (size, bsize) = (self.nodes[&ino].size, u64::from(self.case.mkfs.bsize));
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
            self.no_space("write", len + 12 * u64::from(self.case.mkfs.bsize));
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
        let (size, bsize) = (self.nodes[&ino].size, u64::from(self.case.mkfs.bsize));
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
        self.live.run(|volume, cx| volume.unlink(cx, Ino(dir), &name, Ino(ino))).unwrap();
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
        self.live.gone(Ino(ino));
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
            removed.unwrap();
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
        self.live.run(|volume, cx| {
            volume.load(cx, Ino(ino)).unwrap();
            volume.accessed(cx, Ino(ino));
            volume.set_attributes(cx, Ino(ino), &set).unwrap();
        });
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
        self.live.run(|volume, cx| volume.fsync(cx, Ino(ino), Durability::All)).unwrap();
    }

    fn sync(&mut self) {
        self.live.run(|volume, cx| volume.sync(cx, Durability::Started)).unwrap();
    }

    /// Makes room when the disk is full, so that it fills up many times.
    fn remove_many(&mut self) {
        if self.live.volume().usage().available_bytes > self.case.mkfs.size_bytes / 20 {
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
        let problems = self.live.volume().check();
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

    /// Unmounts, compares the image with the reference file by file, checks it with fsck, and mounts again.
    pub fn remount(&mut self) {
        while !self.orphans.is_empty() {
            self.release_orphan();
        }
        self.live.run(|volume, cx| volume.unmount(cx)).unwrap();
        let mut image = match &self.disk {
            Some(disk) => disk.lock().unwrap().clone(),
            None => {
                let mut image = MemoryStore(vec![0; self.case.mkfs.size_bytes as usize]);
                mkfs(&mut image, &self.case.mkfs).unwrap();
                self.live.volume().store(&mut image, None).unwrap();
                image
            }
        };
        if self.disk.is_some() {
            // The same by another way: all structures at once, over what the writes have left.
            let mut stored = image.clone();
            self.live.volume().store(&mut stored, None).unwrap();
            assert_same_groups(&image, &stored);
            image = stored;
        }
        let report = ffs::fsck(&mut image, &mut |_| true).unwrap();
        assert!(report.is_clean(), "{:?}, after {}: {report:#?}", self.case, self.done);
        let image = Image::open(image, Search::Standard).unwrap();
        self.compare(&image);
        let volume = Ffs::load(&image, self.case.options).unwrap();
        if let Some(disk) = &self.disk {
            *disk.lock().unwrap() = image.into_store();
        }
        self.live = live(&self.case, volume, &self.disk);
    }

    fn compare(&self, image: &Image<MemoryStore>) {
        let mut seen = 0;
        let mut paths: BTreeMap<Vec<u8>, u32> = BTreeMap::from([(b".".to_vec(), 2)]);
        image
            .walk(ffs::Ino(2), &mut |path, ino, inode| {
                seen += 1;
                let expected = paths.remove(path).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(path)));
                let node = &self.nodes[&expected];
                assert_eq!((ino.0, inode.nlink as u32, inode.permissions()), (expected, node.nlink, node.mode));
                match node.kind {
                    FileKind::Directory => {
                        assert!(inode.is_dir());
                        for (name, child) in &node.entries {
                            paths.insert([path, b"/", name].concat(), *child);
                        }
                    }
                    FileKind::Symlink => assert_eq!(image.symlink(ino, inode)?, node.target),
                    FileKind::File | FileKind::Special => {
                        assert_eq!(inode.size, node.size);
                        if self.case.bytes {
                            let mut content = vec![0; node.size as usize];
                            image.data(ino, inode, &mut |at, bytes| {
                                content[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
                                Ok(())
                            })?;
                            assert!(content == node.content, "inode {ino}: bytes differ");
                        }
                    }
                }
                Ok(())
            })
            .unwrap();
        assert!(paths.is_empty(), "not in the image: {paths:?}");
        assert!(seen > 0);
    }
}

/// Every group as the writes left it is as it is in memory.
fn assert_same_groups(written: &MemoryStore, stored: &MemoryStore) {
    let written = Image::open(MemoryStore(written.0.clone()), Search::Standard).unwrap();
    let stored = Image::open(MemoryStore(stored.0.clone()), Search::Standard).unwrap();
    assert_eq!(written.superblock().cstotal, stored.superblock().cstotal);
    assert_eq!(written.superblock().clean, 1);
    for group in 0..stored.geometry().ncg {
        let group = ffs::GroupNo(group);
        assert_eq!(written.group(group).unwrap(), stored.group(group).unwrap(), "group {group}");
    }
    for ino in 2..stored.geometry().inodes() {
        let (left, right) = (written.inode(ffs::Ino(ino)).unwrap(), stored.inode(ffs::Ino(ino)).unwrap());
        assert_eq!(left, right, "inode {ino}");
    }
}

/// Small file systems of eight shapes, both formats, every policy in turn.
pub fn cases(bytes: bool) -> Vec<Case> {
    let shapes = [
        (4096, 512),
        (4096, 1024),
        (8192, 1024),
        (8192, 8192),
        (8192, 4096),
        (16384, 2048),
        (4096, 2048),
        (65536, 8192),
    ];
    cases_of(shapes.into_iter(), bytes)
}

/// The same of every block and fragment size.
pub fn every_case(bytes: bool) -> Vec<Case> {
    let sizes = [4096, 8192, 16384, 32768, 65536];
    cases_of(sizes.into_iter().flat_map(|bsize| [8, 4, 2, 1].map(|frag| (bsize, bsize / frag))), bytes)
}

fn cases_of(shapes: impl Iterator<Item = (u32, u32)>, bytes: bool) -> Vec<Case> {
    let policies = [
        "original,switch,bestfit,spread,conventional",
        "realloc,switch,bestfit,dirpref,noorder",
        "realloc,noswitch,smartfrags,spread,noorder",
        "original,metaspace,smartfrags,dirpref,conventional,root",
    ];
    let mut cases = Vec::new();
    for (n, (bsize, fsize)) in shapes.enumerate() {
        for (v, version) in [Version::Ufs1, Version::Ufs2].into_iter().enumerate() {
            let number = n * 2 + v;
            let size_mb = match bsize {
                65536 => 24,
                32768 => 12,
                _ => 3 + 2 * (number as u64 % 3),
            };
            let size_bytes = size_mb << 20;
            let mut options = Options { seed: number as u64, ..Options::default() };
            assert!(policies[(number + n) % policies.len()].split(',').all(|word| options.set(word)));
            let mut mkfs = MkfsOptions {
                bsize,
                fsize,
                minfree: if number.is_multiple_of(3) { 0 } else { 8 },
                maxbpg: Some([20, 100][number % 2]),
                maxcontig: Some([1, 7, 16][number % 3]),
                endian: if (n + v).is_multiple_of(3) { Endian::Big } else { Endian::Little },
                density: Some(8192),
                optimize_space: number % 5 == 1,
                seed: 9,
                ..MkfsOptions::new(version, size_bytes)
            };
            if version == Version::Ufs1 && number % 4 == 2 && bsize == 8192 {
                mkfs.disk = Some(DiskGeometry { heads: 4, sectors: 32, rpm: 3600, positions: 8 });
                mkfs.group = Some(GroupSize::Cylinders(32));
                mkfs.rotdelay = 4;
                mkfs.size_bytes = 8 << 20;
            }
            cases.push(Case { mkfs, options, cache_bytes: 1 << 20, bytes, seed: 1000 + number as u64 });
        }
    }
    cases
}
