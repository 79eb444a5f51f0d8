//! Random calls on a small disk in the laboratory, with everything that a crash may be measured by: the log of writes, the tree
//! after each call, what each file held, and what was promised when.

use kernel::testing::FixedDevice;
use kernel::{Lab, LogEntry, Machine, Setup, payload};
use lfs::mkfs::{MkfsOptions, mkfs};
use lfs::{Lfs, MemoryStore, Options};
use posix::{At, Call, Errno, Fd, FileSystem, Mode, OpenFlags};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

/// What to run.
#[derive(Clone, Debug)]
pub struct Case {
    pub mkfs: MkfsOptions,
    pub words: &'static str,
    pub seed: u64,
    pub calls: u32,
}

/// A file that was made at some time.
#[derive(Debug)]
pub struct File {
    /// What it held after each call that changed that.
    pub versions: Vec<(u32, Rc<Vec<u8>>)>,
    /// Calls after which it was promised to be on the disk, with the length of the log then.
    pub promised: Vec<(u32, usize)>,
    pub directory: bool,
}

/// Inode and generation.
pub type Identity = (u32, u32);

/// The names, with what they name.
pub type Tree = BTreeMap<String, Identity>;

/// A run that is over.
pub struct Run {
    pub case: Case,
    /// The disk before the first write.
    pub before: MemoryStore,
    pub log: Vec<LogEntry>,
    /// The number of the call during which each entry of the log was completed.
    pub call_of: Vec<u32>,
    /// The tree after each call.
    pub trees: Vec<Rc<Tree>>,
    /// Trees in between, where one step makes several calls.
    pub between: Vec<(u32, Rc<Tree>)>,
    pub files: BTreeMap<Identity, File>,
    /// Calls after which all before them was promised to be on the disk, with the length of the log then.
    pub synced: Vec<(u32, usize)>,
    pub segments_cleaned: u64,
}

struct Driver {
    lab: Lab<Lfs>,
    random: Xoshiro256PlusPlus,
    tree: Tree,
    serial: u32,
    held: Vec<Fd>,
    run: Run,
}

/// A machine with little memory, so that much is written.
pub fn machine(cache_bytes: u64) -> Machine {
    let mut machine = Machine::load("pentium3-500").unwrap();
    machine.memory.buffer_cache_bytes.value = cache_bytes;
    machine.memory.attribute_cache_inodes.value = 64;
    machine.io.largest_transfer_bytes.value = 1 << 20;
    machine
}

pub fn setup(machine: Machine) -> Setup {
    let (target, drive) = ("lfs".into(), "fixed".into());
    Setup { machine, target, drive, epoch_ns: 820_000_000_000_000_000 }
}

pub fn options(words: &str) -> Options {
    let mut options = Options::default();
    assert!(words.split(',').all(|word| options.set(word)), "{words}");
    options
}

/// Runs a case to its end.
pub fn run(case: Case) -> Run {
    let mut store = MemoryStore(vec![0; case.mkfs.size_bytes as usize]);
    mkfs(&mut store, &case.mkfs).unwrap();
    let before = store.clone();
    let volume = Lfs::load(&mut store, options(case.words)).unwrap();
    let disk = Arc::new(Mutex::new(store));
    let device = Box::new(FixedDevice::new(case.mkfs.size_bytes, 3_000_000));
    let mut lab =
        Lab::with_image(volume, device, setup(machine(512 << 10)), payload::Image::full(disk.clone())).unwrap();
    // What mounting has written is there before the crash.
    let before = MemoryStore(disk.lock().map_or(before.0, |disk| disk.0.clone()));
    lab.record_writes(true);
    let random = Xoshiro256PlusPlus::seed_from_u64(case.seed);
    let calls = case.calls;
    let run = Run {
        case,
        before,
        log: Vec::new(),
        call_of: Vec::new(),
        trees: vec![Rc::default()],
        between: Vec::new(),
        files: BTreeMap::new(),
        synced: vec![(0, 0)],
        segments_cleaned: 0,
    };
    let mut driver = Driver { lab, random, tree: Tree::new(), serial: 0, held: Vec::new(), run };
    for number in 1..=calls {
        driver.step(number);
    }
    driver.run.segments_cleaned = driver.lab.volume().counters().cleaner.segments;
    driver.run
}

impl Driver {
    fn below(&mut self, n: u64) -> u64 {
        self.random.next_u64() % n.max(1)
    }

    fn call(&mut self, call: &Call<'_>) -> Result<posix::Reply, Errno> {
        self.lab.call(call).result
    }

    fn pick(&mut self, directory: bool) -> Option<(String, Identity)> {
        let of_kind = |id: &Identity| self.run.files.get(id).is_some_and(|file| file.directory == directory);
        let all: Vec<_> = self.tree.iter().filter(|(_, id)| of_kind(id)).map(|(p, id)| (p.clone(), *id)).collect();
        let at = self.below(all.len() as u64) as usize;
        all.into_iter().nth(at)
    }

    fn new_path(&mut self) -> String {
        self.serial += 1;
        let dir = if self.below(3) == 0 { None } else { self.pick(true) };
        let name = format!("n{}", self.serial);
        dir.map_or(name.clone(), |(path, _)| format!("{path}/{name}"))
    }

    fn step(&mut self, number: u32) {
        match self.below(100) {
            0..22 => self.create(number),
            22..27 => self.mkdir(number),
            27..47 => self.write(number),
            47..54 => self.truncate(number),
            54..66 => self.unlink(),
            66..69 => self.rmdir(),
            69..77 => self.rename(),
            77..80 => self.link(),
            80..90 => self.fsync(number),
            90..92 => self.sync(number),
            92..94 => self.release(),
            // Time for the cleaner and the syncer.
            _ => {
                let ms = 1 + self.below(4000);
                self.lab.pause_ns(ms * 1_000_000);
            }
        }
        let new = self.lab.take_log();
        self.run.call_of.resize(self.run.log.len() + new.len(), number);
        self.run.log.extend(new);
        // Promises made in this call hold from what is in the log by now.
        let len = self.run.log.len();
        for file in self.run.files.values_mut() {
            file.promised.iter_mut().filter(|(_, at)| *at == usize::MAX).for_each(|(_, at)| *at = len);
        }
        self.run.synced.iter_mut().filter(|(_, at)| *at == usize::MAX).for_each(|(_, at)| *at = len);
        self.run.trees.push(Rc::new(self.tree.clone()));
    }

    fn identity(&mut self, path: &str) -> Identity {
        let at: At<'_> = path.into();
        let fd = self.call(&Call::Open { at, flags: OpenFlags::READ, mode: Mode(0) }).unwrap();
        let posix::Reply::Fd(fd) = fd else { panic!("{fd:?}") };
        let posix::Reply::Stat(stat) = self.call(&Call::Fstat { fd }).unwrap() else { panic!("no answer") };
        let generation = self.lab.generation(fd).unwrap_or(0);
        self.call(&Call::Close { fd }).unwrap();
        (stat.ino as u32, generation)
    }

    fn made(&mut self, number: u32, path: String, directory: bool) {
        let id = self.identity(&path);
        let versions = vec![(number, Rc::default())];
        self.run.files.insert(id, File { versions, promised: Vec::new(), directory });
        self.tree.insert(path, id);
    }

    fn open(&mut self, path: &str) -> Option<Fd> {
        let at: At<'_> = path.into();
        match self.call(&Call::Open { at, flags: OpenFlags::READ_WRITE, mode: Mode(0) }) {
            Ok(posix::Reply::Fd(fd)) => Some(fd),
            other => panic!("{path}: {other:?}"),
        }
    }

    fn create(&mut self, number: u32) {
        let path = self.new_path();
        let at: At<'_> = path.as_str().into();
        match self.call(&Call::Open { at, flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) }) {
            Ok(posix::Reply::Fd(fd)) => {
                self.call(&Call::Close { fd }).unwrap();
                self.made(number, path.clone(), false);
                if self.below(4) > 0 {
                    let id = self.tree[&path];
                    let most = if self.below(8) == 0 { 90_000 } else { 9_000 };
                    let len = 1 + self.below(most);
                    self.write_at(number, &path, id, 0, len);
                }
            }
            Err(Errno::ENOSPC) => self.make_space(number),
            other => panic!("{path}: {other:?}"),
        }
    }

    /// The disk is full: some files go.
    fn make_space(&mut self, number: u32) {
        for _ in 0..self.tree.len() / 4 {
            self.unlink();
            self.run.between.push((number, Rc::new(self.tree.clone())));
        }
    }

    fn mkdir(&mut self, number: u32) {
        let path = self.new_path();
        if path.matches('/').count() > 3 {
            return;
        }
        match self.call(&Call::Mkdir { at: path.as_str().into(), mode: Mode(0o755) }) {
            Ok(_) => self.made(number, path, true),
            Err(Errno::ENOSPC) => {}
            other => panic!("{path}: {other:?}"),
        }
    }

    fn content(&self, id: Identity) -> Rc<Vec<u8>> {
        self.run.files[&id].versions.last().unwrap().1.clone()
    }

    fn new_version(&mut self, number: u32, id: Identity, content: Vec<u8>) {
        self.run.files.get_mut(&id).unwrap().versions.push((number, Rc::new(content)));
    }

    fn write(&mut self, number: u32) {
        let Some((path, id)) = self.pick(false) else { return };
        let size = self.content(id).len() as u64;
        let offset = match self.below(10) {
            0..5 => size,
            5..9 => self.below(size + 1),
            _ => size + self.below(30_000),
        };
        let len = 1 + self.below(12_000);
        self.write_at(number, &path, id, offset, len);
    }

    fn write_at(&mut self, number: u32, path: &str, id: Identity, offset: u64, len: u64) {
        let Some(fd) = self.open(path) else { return };
        let mut data = vec![0; len as usize];
        self.random.fill_bytes(&mut data);
        let call = Call::Write { fd, offset: Some(offset), len_bytes: len, data: Some(&data) };
        let written = match self.call(&call) {
            Ok(posix::Reply::Count(written)) => written as usize,
            Err(Errno::ENOSPC) => 0,
            other => panic!("{other:?}"),
        };
        if written > 0 {
            let mut content = (*self.content(id)).clone();
            let end = offset as usize + written;
            content.resize(content.len().max(end), 0);
            content[offset as usize..end].copy_from_slice(&data[..written]);
            self.new_version(number, id, content);
        }
        self.call(&Call::Close { fd }).unwrap();
    }

    fn truncate(&mut self, number: u32) {
        let Some((path, id)) = self.pick(false) else { return };
        let mut content = (*self.content(id)).clone();
        let len = if self.below(5) == 0 { 0 } else { self.below(content.len() as u64 + 5_000) };
        match self.call(&Call::Truncate { at: path.as_str().into(), len_bytes: len }) {
            Ok(_) => {
                content.resize(len as usize, 0);
                self.new_version(number, id, content);
            }
            Err(Errno::ENOSPC) => {}
            other => panic!("{other:?}"),
        }
    }

    fn unlink(&mut self) {
        let Some((path, _)) = self.pick(false) else { return };
        if self.held.len() < 3 && self.below(6) == 0 {
            let fd = self.open(&path);
            self.held.extend(fd);
        }
        if self.call(&Call::Unlink { at: path.as_str().into() }).is_ok() {
            self.tree.remove(&path);
        }
    }

    fn release(&mut self) {
        if let Some(fd) = self.held.pop() {
            self.call(&Call::Close { fd }).unwrap();
        }
    }

    fn rmdir(&mut self) {
        let Some((path, _)) = self.pick(true) else { return };
        if self.call(&Call::Rmdir { at: path.as_str().into() }).is_ok() {
            self.tree.remove(&path);
        }
    }

    fn rename(&mut self) {
        let directory = self.below(4) == 0;
        let Some((from, id)) = self.pick(directory) else { return };
        let to = match self.pick(directory) {
            Some((to, _)) if self.below(3) == 0 => to,
            _ => self.new_path(),
        };
        let same = self.tree.get(&to) == Some(&id);
        let call =
            Call::Rename { from: from.as_str().into(), to: to.as_str().into(), noreplace: false, exchange: false };
        if self.call(&call).is_err() || same {
            return;
        }
        let below = format!("{from}/");
        let moved: Vec<(String, Identity)> = self
            .tree
            .iter()
            .filter(|(p, _)| **p == from || p.starts_with(&below))
            .map(|(p, i)| (p.clone(), *i))
            .collect();
        for (path, _) in &moved {
            self.tree.remove(path);
        }
        for (path, id) in moved {
            self.tree.insert(format!("{to}{}", &path[from.len()..]), id);
        }
    }

    fn link(&mut self) {
        let Some((from, id)) = self.pick(false) else { return };
        let to = self.new_path();
        if self.call(&Call::Link { from: from.as_str().into(), to: to.as_str().into() }).is_ok() {
            self.tree.insert(to, id);
        }
    }

    fn fsync(&mut self, number: u32) {
        let Some((path, id)) = self.pick(false) else { return };
        let Some(fd) = self.open(&path) else { return };
        if self.call(&Call::Fsync { fd }).is_ok() {
            self.run.files.get_mut(&id).unwrap().promised.push((number, usize::MAX));
        }
        self.call(&Call::Close { fd }).unwrap();
    }

    fn sync(&mut self, number: u32) {
        if self.call(&Call::SyncFs).is_ok() {
            self.run.synced.push((number, usize::MAX));
        }
    }
}
