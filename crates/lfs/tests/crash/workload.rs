//! Random calls on a small disk in the laboratory, with everything that a crash may be measured by: the log of writes, the tree
//! after each call, what each file held, and what was promised when.

use super::content::Content;
use super::verify::Seen;
use kernel::testing::{Choice, FixedDevice};
use kernel::{Lab, LogEntry, Machine, Setup, payload};
use lfs::mkfs::{MkfsOptions, mkfs};
use lfs::{Lfs, MemoryStore, Options};
use posix::{At, Call, Errno, Fd, FileSystem, Mode, OpenFlags};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

/// What to run.
#[derive(Clone, Debug)]
pub struct Case {
    pub mkfs: MkfsOptions,
    pub words: &'static str,
    /// From how full segments on holes are plugged.
    pub plug_percent: u32,
    pub seed: u64,
    /// How many runs this file system has behind it.
    pub number: u32,
    pub calls: u32,
    pub mix: &'static Mix,
    pub cache_bytes: u64,
    pub transfer_bytes: u64,
    /// How the disk chooses among waiting requests.
    pub choice: Choice,
    /// Whether all data looks alike where the checksums of the log look.
    pub alike: bool,
}

impl Case {
    /// The seed of this run's random numbers.
    pub fn stream(&self) -> u64 {
        self.seed + (u64::from(self.number) << 32)
    }
}

/// How often what is done, of a hundred.
/// Its name is for whoever reads of a failure.
#[allow(dead_code)]
#[derive(Debug)]
pub struct Mix {
    name: &'static str,
    /// In the order of [`Driver::step`]; what is left is time that passes.
    parts: [u64; 13],
    /// Usual and greatest length of what is written.
    lengths: (u64, u64),
}

/// From files that are synced all the time to a disk that is full all the time.
pub const MIXES: [Mix; 6] = [
    //                               create mkdir link write trunc unlink rmdir rename link fsync sync close far
    Mix { name: "all", parts: [18, 4, 3, 20, 7, 12, 3, 8, 3, 10, 2, 2, 1], lengths: (9_000, 90_000) },
    Mix { name: "fsync", parts: [10, 2, 1, 27, 4, 7, 1, 4, 2, 36, 0, 1, 1], lengths: (5_000, 40_000) },
    Mix { name: "names", parts: [24, 8, 5, 4, 2, 15, 6, 18, 6, 6, 1, 2, 0], lengths: (900, 9_000) },
    Mix { name: "checkpoints", parts: [15, 3, 1, 25, 5, 11, 2, 6, 2, 6, 16, 2, 1], lengths: (7_000, 60_000) },
    Mix { name: "never", parts: [20, 3, 1, 28, 8, 13, 2, 6, 2, 1, 0, 2, 2], lengths: (12_000, 120_000) },
    Mix { name: "full", parts: [26, 1, 1, 38, 4, 4, 1, 4, 1, 12, 2, 1, 0], lengths: (16_000, 200_000) },
];

/// What was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Symlink,
    Directory,
}

/// A file that was made at some time.
#[derive(Debug)]
pub struct File {
    /// What it held after each call that changed that.
    pub versions: Vec<(u32, Rc<Content>)>,
    /// Calls after which it was promised to be on the disk, with the length of the log then.
    pub promised: Vec<(u32, usize)>,
    /// Calls that changed its names.
    named: Vec<u32>,
    /// The version that was found on the disk last.
    pub found: Cell<usize>,
    pub kind: Kind,
}

impl File {
    fn new(call: u32, content: Rc<Content>, kind: Kind) -> File {
        File { versions: vec![(call, content)], promised: Vec::new(), named: vec![call], found: Cell::new(0), kind }
    }

    /// The last call up to `call` that changed its names: they are on the disk with what is promised of it.
    pub fn named_by(&self, call: u32) -> Option<u32> {
        self.named.iter().rev().find(|named| **named <= call).copied()
    }
}

/// Inode and generation.
pub type Identity = (u32, u32);

/// The names, with what they name.
pub type Tree = BTreeMap<String, Identity>;

/// A run that is over.
pub struct Run {
    pub case: Case,
    /// The disk before the first write.
    pub before: Vec<u8>,
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
    pub blocks_plugged: u64,
    /// Calls that found no room.
    pub out_of_space: u32,
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
fn setup(case: &Case) -> Setup {
    let mut machine = Machine::load("pentium3-500").unwrap();
    machine.memory.buffer_cache_bytes.value = case.cache_bytes;
    machine.memory.attribute_cache_inodes.value = 64;
    machine.io.largest_transfer_bytes.value = case.transfer_bytes;
    Setup { machine, target: "lfs".into(), drive: "fixed".into(), epoch_ns: 820_000_000_000_000_000 }
}

pub fn options(case: &Case) -> Options {
    let mut options = Options { plug_percent: case.plug_percent, ..Options::default() };
    assert!(case.words.split(',').all(|word| options.set(word)), "{}", case.words);
    options
}

/// A mounted disk, the log of its writes, and its bytes as they are.
pub type Mounted = (Lab<Lfs>, Arc<Mutex<MemoryStore>>);

/// Mounts what is on a disk.
pub fn mount(case: &Case, bytes: Vec<u8>) -> Result<Mounted, String> {
    let mut store = MemoryStore(bytes);
    let volume = Lfs::load(&mut store, options(case)).map_err(|error| error.to_string())?;
    let disk = Arc::new(Mutex::new(store));
    let device = Box::new(FixedDevice::with_distance(case.mkfs.size_bytes, 3_000_000, 100_000, case.choice));
    let image = payload::Image::full(disk.clone());
    let lab = Lab::recorded(volume, device, setup(case), image).map_err(|error| error.to_string())?;
    Ok((lab, disk))
}

/// A new file system.
pub fn blank(case: &Case) -> Vec<u8> {
    let mut store = MemoryStore(vec![0; case.mkfs.size_bytes as usize]);
    mkfs(&mut store, &case.mkfs).unwrap();
    store.0
}

/// Runs a case to its end, on a disk that shows `seen`.
pub fn run(case: Case, bytes: Vec<u8>, seen: Seen) -> Run {
    let (mut lab, disk) = mount(&case, bytes).unwrap_or_else(|problem| panic!("{case:?}: {problem}"));
    // What mounting has written is there before the crash.
    let before = disk.lock().unwrap().0.clone();
    lab.take_log();
    let random = Xoshiro256PlusPlus::seed_from_u64(case.stream());
    let calls = case.calls;
    let files = seen.contents.into_iter().map(|(id, (kind, content))| (id, File::new(0, content, kind)));
    let mut files: BTreeMap<Identity, File> = files.collect();
    for id in seen.tree.values() {
        files.entry(*id).or_insert_with(|| File::new(0, Rc::default(), Kind::Directory));
    }
    let run = Run {
        case,
        before,
        log: Vec::new(),
        call_of: Vec::new(),
        trees: vec![Rc::new(seen.tree.clone())],
        between: Vec::new(),
        files,
        synced: vec![(0, 0)],
        segments_cleaned: 0,
        blocks_plugged: 0,
        out_of_space: 0,
    };
    // Names that no run before it has made.
    let serial = 1_000_000 * run.case.number;
    let mut driver = Driver { lab, random, tree: seen.tree, serial, held: Vec::new(), run };
    for number in 1..=calls {
        driver.step(number);
    }
    driver.run.segments_cleaned = driver.lab.volume().counters().cleaner.segments;
    driver.run.blocks_plugged = driver.lab.volume().counters().cleaner.plugged_blocks;
    driver.run
}

impl Driver {
    fn below(&mut self, n: u64) -> u64 {
        self.random.next_u64() % n.max(1)
    }

    fn call(&mut self, call: &Call<'_>) -> Result<posix::Reply, Errno> {
        self.lab.call(call).result
    }

    fn pick(&mut self, wanted: &[Kind]) -> Option<(String, Identity)> {
        let files = &self.run.files;
        let of_kind = |id: &Identity| files.get(id).is_some_and(|file| wanted.contains(&file.kind));
        let all: Vec<_> = self.tree.iter().filter(|(_, id)| of_kind(id)).collect();
        let at = self.random.next_u64() % (all.len() as u64).max(1);
        all.get(at as usize).map(|(path, id)| ((*path).clone(), **id))
    }

    fn pick_file(&mut self) -> Option<(String, Identity)> {
        self.pick(&[Kind::File])
    }

    /// A file or a link.
    fn pick_name(&mut self) -> Option<(String, Identity)> {
        self.pick(&[Kind::File, Kind::Symlink])
    }

    /// A directory operation has changed what this names.
    fn renamed(&mut self, number: u32, id: Identity) {
        if let Some(file) = self.run.files.get_mut(&id) {
            file.named.push(number);
        }
    }

    fn new_path(&mut self) -> String {
        self.serial += 1;
        let dir = if self.below(3) == 0 { None } else { self.pick(&[Kind::Directory]) };
        let name = format!("n{}", self.serial);
        dir.map_or(name.clone(), |(path, _)| format!("{path}/{name}"))
    }

    fn step(&mut self, number: u32) {
        let mut dice = self.below(100);
        let part = self.run.case.mix.parts.iter().position(|part| {
            let here = dice < *part;
            dice = dice.saturating_sub(*part);
            here
        });
        match part {
            Some(0) => self.create(number),
            Some(1) => self.mkdir(number),
            Some(2) => self.symlink(number),
            Some(3) => self.write(number),
            Some(4) => self.truncate(number),
            Some(5) => self.unlink(number),
            Some(6) => self.rmdir(),
            Some(7) => self.rename(number),
            Some(8) => self.link(number),
            Some(9) => self.fsync(number),
            Some(10) => self.sync(number),
            Some(11) => self.release(),
            Some(12) => self.write_far(number),
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
        let same = self.run.trees.last().filter(|last| ***last == self.tree).cloned();
        self.run.trees.push(same.unwrap_or_else(|| Rc::new(self.tree.clone())));
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

    fn made(&mut self, number: u32, path: String, kind: Kind) {
        let id = self.identity(&path);
        self.made_as(number, path, id, Content::default(), kind);
    }

    fn made_as(&mut self, number: u32, path: String, id: Identity, content: Content, kind: Kind) {
        self.run.files.insert(id, File::new(number, Rc::new(content), kind));
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
                self.made(number, path.clone(), Kind::File);
                if self.below(4) > 0 {
                    let id = self.tree[&path];
                    let (usual, greatest) = self.run.case.mix.lengths;
                    let most = if self.below(8) == 0 { greatest } else { usual };
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
        self.run.out_of_space += 1;
        for _ in 0..self.tree.len() / 4 {
            self.unlink(number);
            self.run.between.push((number, Rc::new(self.tree.clone())));
        }
    }

    fn mkdir(&mut self, number: u32) {
        let path = self.new_path();
        if path.matches('/').count() > 3 {
            return;
        }
        match self.call(&Call::Mkdir { at: path.as_str().into(), mode: Mode(0o755) }) {
            Ok(_) => self.made(number, path, Kind::Directory),
            Err(Errno::ENOSPC) => {}
            other => panic!("{path}: {other:?}"),
        }
    }

    fn symlink(&mut self, number: u32) {
        let path = self.new_path();
        let most = if self.below(3) == 0 { 500 } else { 30 };
        let len = 1 + self.below(most);
        let target: String = (0..len).map(|_| char::from(b'a' + (self.random.next_u64() % 26) as u8)).collect();
        match self.call(&Call::Symlink { target: target.as_ref(), at: path.as_str().into() }) {
            Ok(_) => {
                let at: At<'_> = path.as_str().into();
                let Ok(posix::Reply::Stat(stat)) = self.call(&Call::Stat { at, follow: false }) else {
                    panic!("{path}")
                };
                let ino = kernel::Ino(stat.ino as u32);
                let generation = kernel::Volume::attributes(self.lab.volume(), ino).unwrap().generation;
                let content = Content::of(target.as_bytes());
                self.made_as(number, path, (ino.0, generation), content, Kind::Symlink);
            }
            Err(Errno::ENOSPC) => {}
            other => panic!("{path}: {other:?}"),
        }
    }

    fn content(&self, id: Identity) -> Rc<Content> {
        self.run.files[&id].versions.last().unwrap().1.clone()
    }

    fn new_version(&mut self, number: u32, id: Identity, content: Content) {
        self.run.files.get_mut(&id).unwrap().versions.push((number, Rc::new(content)));
    }

    fn write(&mut self, number: u32) {
        let Some((path, id)) = self.pick_file() else { return };
        let size = self.content(id).len();
        let offset = match self.below(10) {
            0..5 => size,
            5..9 => self.below(size + 1),
            _ => size + self.below(30_000),
        };
        let most = self.run.case.mix.lengths.0 * 4 / 3;
        let len = 1 + self.below(most);
        self.write_at(number, &path, id, offset, len);
    }

    /// Far behind the end of a file: below double indirect blocks.
    fn write_far(&mut self, number: u32) {
        let Some((path, id)) = self.pick_file() else { return };
        let reach = 3 * (u64::from(self.run.case.mkfs.bsize) << 10);
        let offset = self.below(reach);
        let len = 1 + self.below(5_000);
        self.write_at(number, &path, id, offset, len);
    }

    fn write_at(&mut self, number: u32, path: &str, id: Identity, offset: u64, len: u64) {
        let Some(fd) = self.open(path) else { return };
        let mut data = vec![0; len as usize];
        self.random.fill_bytes(&mut data);
        if self.run.case.alike {
            // The first bytes of every fragment, wherever it lies.
            let skip = offset.next_multiple_of(512) - offset;
            data.iter_mut().skip(skip as usize).step_by(512).for_each(|byte| *byte = 0);
            for k in 1..4 {
                data.iter_mut().skip(skip as usize + k).step_by(512).for_each(|byte| *byte = 0);
            }
        }
        let call = Call::Write { fd, offset: Some(offset), len_bytes: len, data: Some(&data) };
        let written = match self.call(&call) {
            Ok(posix::Reply::Count(written)) => written as usize,
            Err(Errno::ENOSPC) => 0,
            other => panic!("{other:?}"),
        };
        self.run.out_of_space += u32::from((written as u64) < len);
        if written > 0 {
            let mut content = (*self.content(id)).clone();
            content.write(offset, &data[..written]);
            self.new_version(number, id, content);
        }
        self.call(&Call::Close { fd }).unwrap();
    }

    fn truncate(&mut self, number: u32) {
        let Some((path, id)) = self.pick_file() else { return };
        let mut content = (*self.content(id)).clone();
        let len = if self.below(5) == 0 { 0 } else { self.below(content.len() + 5_000) };
        match self.call(&Call::Truncate { at: path.as_str().into(), len_bytes: len }) {
            Ok(_) => {
                content.set_len(len);
                self.new_version(number, id, content);
            }
            Err(Errno::ENOSPC) => {}
            other => panic!("{other:?}"),
        }
    }

    fn unlink(&mut self, number: u32) {
        let Some((path, id)) = self.pick_name() else { return };
        if self.held.len() < 3 && self.below(6) == 0 && self.run.files[&id].kind == Kind::File {
            let fd = self.open(&path);
            self.held.extend(fd);
        }
        if self.call(&Call::Unlink { at: path.as_str().into() }).is_ok() {
            self.tree.remove(&path);
            self.renamed(number, id);
        }
    }

    fn release(&mut self) {
        if let Some(fd) = self.held.pop() {
            self.call(&Call::Close { fd }).unwrap();
        }
    }

    fn rmdir(&mut self) {
        let Some((path, _)) = self.pick(&[Kind::Directory]) else { return };
        if self.call(&Call::Rmdir { at: path.as_str().into() }).is_ok() {
            self.tree.remove(&path);
        }
    }

    fn rename(&mut self, number: u32) {
        let wanted: &[Kind] = if self.below(4) == 0 { &[Kind::Directory] } else { &[Kind::File, Kind::Symlink] };
        let Some((from, id)) = self.pick(wanted) else { return };
        let to = match self.pick(wanted) {
            Some((to, _)) if self.below(3) == 0 => to,
            _ => self.new_path(),
        };
        let same = self.tree.get(&to) == Some(&id);
        let call =
            Call::Rename { from: from.as_str().into(), to: to.as_str().into(), noreplace: false, exchange: false };
        if self.call(&call).is_err() || same {
            return;
        }
        self.renamed(number, id);
        if let Some(replaced) = self.tree.get(&to).copied() {
            self.renamed(number, replaced);
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

    fn link(&mut self, number: u32) {
        let Some((from, id)) = self.pick_file() else { return };
        let to = self.new_path();
        if self.call(&Call::Link { from: from.as_str().into(), to: to.as_str().into(), follow: false }).is_ok() {
            self.tree.insert(to, id);
            self.renamed(number, id);
        }
    }

    fn fsync(&mut self, number: u32) {
        let Some((path, id)) = self.pick_file() else { return };
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
