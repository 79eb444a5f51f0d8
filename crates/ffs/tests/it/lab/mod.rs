//! A disk that processes in the laboratory age: random calls through every layer, each block's bytes written by the
//! kernel.

use device::crash::{Event, Write};
use device::fixed::FixedDevice;
use ffs::policy::Options;
use ffs::{Ffs, FileType, Image, MemoryStore, Planted, Search};
use kernel::payload;
use kernel::{Lab, LogEntry, Machine, Setup};
use posix::{At, Call, Errno, Fd, FileKind, FileSystem as _, Mode, OpenFlags, Outcome, Reply};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What became of a disk.
pub struct Aged {
    /// Its bytes before and after.
    pub before: MemoryStore,
    pub store: MemoryStore,
    /// The file system as it was in memory at the end.
    pub volume: Ffs,
    /// Calls that found no space.
    pub out_of_space: u32,
}

/// The processes' side.
pub struct Ager {
    pub lab: Lab<Ffs>,
    random: Xoshiro256PlusPlus,
    files: Vec<String>,
    dirs: Vec<String>,
    serial: u32,
    out_of_space: u32,
}

/// Makes `steps` random calls on the file system in a store, and if asked fills it up; then unmounts it, and compares
/// what is in the image with what the processes read before.
pub fn age(before: MemoryStore, words: &str, steps: u32, fill: bool, seed: u64) -> Aged {
    let (mut ager, disk) = Ager::start(before.clone(), words, seed, None);
    for _ in 0..steps {
        ager.step();
    }
    if fill {
        ager.fill();
    }
    let seen = ager.listing();
    let out_of_space = ager.out_of_space;
    let volume = ager.lab.unmount().unwrap();
    assert!(volume.check().is_empty(), "{:?}", volume.check());
    let store = disk.lock().unwrap().clone();
    assert_eq!(listing(&store), seen, "what processes read is what is in the image");
    Aged { before, store, volume, out_of_space }
}

/// Path to what it is: mode, links, size and bytes, or the length of a link's target.
pub type Listing = BTreeMap<String, (u32, u32, u64, Vec<u8>)>;

/// The bytes of a file, by the reader of images.
pub fn content(store: &MemoryStore, path: &str) -> Vec<u8> {
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let (ino, inode) = image.resolve(path.as_bytes()).unwrap();
    let mut bytes = vec![0; inode.size as usize];
    image
        .data(ino, &inode, &mut |at, data| {
            bytes[at as usize..at as usize + data.len()].copy_from_slice(data);
            Ok(())
        })
        .unwrap();
    bytes
}

/// The same but for one file in the root.
pub fn listing_without(store: &MemoryStore, path: &str) -> Listing {
    let mut all = listing(store);
    assert!(all.remove(path).is_some());
    all
}

pub fn listing(store: &MemoryStore) -> Listing {
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let mut all = Listing::new();
    image
        .walk(ffs::format::ROOT_INO, &mut |path, ino, inode| {
            let path = std::str::from_utf8(path).unwrap().trim_start_matches('.').trim_start_matches('/').to_owned();
            let mut bytes = Vec::new();
            let mut size = inode.size;
            match inode.file_type() {
                Some(FileType::Regular) => {
                    bytes.resize(inode.size as usize, 0);
                    image.data(ino, inode, &mut |at, data| {
                        bytes[at as usize..at as usize + data.len()].copy_from_slice(data);
                        Ok(())
                    })?;
                }
                Some(FileType::Directory) => size = 0,
                _ => {}
            }
            all.insert(path, (inode.permissions().into(), inode.nlink as u32, size, bytes));
            Ok(())
        })
        .unwrap();
    all
}

impl Ager {
    /// Mounts the file system in a store; the store is there to be looked at, too.
    pub fn start(before: MemoryStore, words: &str, seed: u64, planted: Planted) -> (Ager, Arc<Mutex<MemoryStore>>) {
        let mut options = Options { seed, ..Options::default() };
        assert!(words.split(',').all(|word| options.set(word)), "{words}");
        let image = Image::open(before, Search::Standard).unwrap();
        let mut volume = Ffs::load(&image, options).unwrap();
        volume.plant(planted);
        let before = image.into_store();
        let len_bytes = before.0.len() as u64;
        let disk = Arc::new(Mutex::new(before));
        let mut machine = Machine::load("pentium-120").unwrap();
        // Small, so that blocks leave and come back.
        machine.memory.buffer_cache_bytes.value = 1 << 20;
        let setup = Setup { machine, target: "ffs".into(), drive: "fixed".into(), epoch_ns: 820_000_000_000_000_000 };
        let device = Box::new(FixedDevice::new(len_bytes, 1_000_000));
        let lab = Lab::with_image(volume, device, setup, payload::Image::full(disk.clone())).unwrap();
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut ager = Ager { lab, random, files: Vec::new(), dirs: vec![String::new()], serial: 0, out_of_space: 0 };
        ager.find("");
        (ager, disk)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.next_u64() % n.max(1)
    }

    fn call(&mut self, call: &Call<'_>) -> Outcome {
        let outcome = self.lab.call(call);
        match outcome.result {
            Ok(_) | Err(Errno::ENOTEMPTY | Errno::EINVAL | Errno::EMLINK) => {}
            Err(Errno::ENOSPC) => self.out_of_space += 1,
            Err(error) => panic!("{call:?}: {error}"),
        }
        outcome
    }

    pub fn open(&mut self, path: &str, flags: OpenFlags) -> Option<Fd> {
        self.call(&Call::Open { at: path.into(), flags, mode: Mode(0o644) }).fd().ok()
    }

    pub fn close(&mut self, fd: Fd) {
        self.call(&Call::Close { fd });
    }

    /// Takes up what is there already.
    fn find(&mut self, dir: &str) {
        let path = if dir.is_empty() { "." } else { dir };
        let fd = self.open(path, OpenFlags::DIRECTORY).unwrap();
        for (name, kind) in self.lab.entries(fd).unwrap() {
            let path = join(dir, name.to_str().unwrap());
            match kind {
                FileKind::Directory => {
                    self.find(&path);
                    self.dirs.push(path);
                }
                FileKind::File => self.files.push(path),
                FileKind::Symlink | FileKind::Special => {}
            }
        }
        self.close(fd);
    }

    fn new_path(&mut self) -> String {
        self.serial += 1;
        let at = self.below(self.dirs.len() as u64) as usize;
        let long = if self.below(8) == 0 { 150 } else { 12 };
        let len = self.below(long) as usize;
        join(&self.dirs[at], &format!("{}{}", self.serial, "x".repeat(len)))
    }

    fn some_file(&mut self) -> Option<String> {
        let at = self.below(self.files.len() as u64) as usize;
        self.files.get(at).cloned()
    }

    fn write(&mut self, fd: Fd, offset: u64, len: u64) {
        let mut data = vec![0; len as usize];
        self.random.fill_bytes(&mut data);
        // Sometimes the kernel's own filler.
        let given = (self.below(3) > 0).then_some(&data[..]);
        self.call(&Call::Write { fd, offset: Some(offset), len_bytes: len, data: given });
    }

    fn length(&mut self) -> u64 {
        match self.below(20) {
            0..12 => self.below(9_000),
            12..18 => self.below(60_000),
            _ => self.below(250_000),
        }
    }

    pub fn step(&mut self) {
        match self.below(100) {
            0..24 => {
                let path = self.new_path();
                let len = self.length();
                if let Some(fd) = self.open(&path, OpenFlags::CREATE_NEW) {
                    self.files.push(path);
                    if len > 0 {
                        self.write(fd, 0, len);
                    }
                    self.close(fd);
                }
            }
            24..40 => self.with_file(OpenFlags::WRITE, |ager, fd, size| {
                let offset = if ager.below(2) == 0 { size } else { ager.below(size + 100_000) };
                let len = 1 + ager.length() / 2;
                ager.write(fd, offset, len);
            }),
            40..47 => self.with_file(OpenFlags::WRITE, |ager, fd, size| {
                let len_bytes = ager.below(size + size / 8 + 1);
                ager.call(&Call::Ftruncate { fd, len_bytes });
            }),
            47..64 => self.unlink(),
            64..71 => self.rename(),
            71..75 if self.dirs.len() < 40 => {
                let path = self.new_path();
                if self.call(&Call::Mkdir { at: path.as_str().into(), mode: Mode(0o750) }).result.is_ok() {
                    self.dirs.push(path);
                }
            }
            75..78 => {
                let at = self.below(self.dirs.len() as u64) as usize;
                let path = self.dirs[at].clone();
                if at > 0 && self.call(&Call::Rmdir { at: path.as_str().into() }).result.is_ok() {
                    self.dirs.remove(at);
                }
            }
            78..81 => {
                let (path, len) = (self.new_path(), 1 + self.below(180) as usize);
                let target = "t".repeat(len);
                self.call(&Call::Symlink { target: Path::new(&target), at: path.as_str().into() });
            }
            81..84 => {
                if let Some(from) = self.some_file() {
                    let to = self.new_path();
                    let call = Call::Link { from: from.as_str().into(), to: to.as_str().into(), follow: false };
                    if self.call(&call).result.is_ok() {
                        self.files.push(to);
                    }
                }
            }
            84..87 => self.with_file(OpenFlags::WRITE, |ager, fd, _| {
                ager.call(&Call::Fsync { fd });
            }),
            87..90 => self.lab.pause_ns(4_000_000_000),
            90..93 => {
                if let Some(path) = self.some_file() {
                    let mode = Mode(self.below(0o1000) as u16 | 0o600);
                    self.call(&Call::Chmod { at: path.as_str().into(), mode });
                }
            }
            93 => {
                let path = self.new_path();
                let (at, mode) = (At::from(path.as_str()), Mode(0o600));
                self.call(&Call::Mknod { at, kind: FileKind::Special, mode });
            }
            _ => self.with_file(OpenFlags::READ, |ager, fd, size| {
                let offset = Some(ager.below(size));
                ager.call(&Call::Read { fd, offset, len_bytes: 50_000 });
            }),
        }
        if self.out_of_space > 0 && self.below(40) == 0 {
            for _ in 0..self.files.len() / 4 {
                self.unlink();
            }
        }
    }

    fn with_file(&mut self, flags: OpenFlags, then: impl FnOnce(&mut Ager, Fd, u64)) {
        let Some(path) = self.some_file() else { return };
        let fd = self.open(&path, flags).unwrap();
        let Ok(Reply::Stat(stat)) = self.call(&Call::Fstat { fd }).result else { panic!("fstat of {path}") };
        then(self, fd, stat.size_bytes);
        self.close(fd);
    }

    fn unlink(&mut self) {
        if self.files.is_empty() {
            return;
        }
        let at = self.below(self.files.len() as u64) as usize;
        let path = self.files.swap_remove(at);
        self.call(&Call::Unlink { at: path.as_str().into() });
    }

    /// A file onto a new name or another file, or a directory with all below it.
    fn rename(&mut self) {
        let to = self.new_path();
        if self.below(3) == 0 && self.dirs.len() > 1 {
            let at = 1 + self.below(self.dirs.len() as u64 - 1) as usize;
            let from = self.dirs[at].clone();
            let call =
                Call::Rename { from: from.as_str().into(), to: to.as_str().into(), noreplace: false, exchange: false };
            if self.call(&call).result.is_ok() {
                for path in self.dirs.iter_mut().chain(&mut self.files) {
                    if *path == from || path.starts_with(&format!("{from}/")) {
                        *path = format!("{to}{}", &path[from.len()..]);
                    }
                }
            }
            return;
        }
        let Some(from) = self.some_file() else { return };
        let onto = if self.below(2) == 0 { self.some_file().unwrap() } else { to };
        let call =
            Call::Rename { from: from.as_str().into(), to: onto.as_str().into(), noreplace: false, exchange: false };
        if self.call(&call).result.is_ok() && from != onto {
            // Two names of one file both stay.
            let gone = self.call_stat(&from).is_none();
            self.files.retain(|path| *path != onto && !(gone && *path == from));
            self.files.push(onto);
        }
    }

    fn call_stat(&mut self, path: &str) -> Option<posix::Stat> {
        match self.lab.call(&Call::Stat { at: path.into(), follow: false }).result {
            Ok(Reply::Stat(stat)) => Some(stat),
            _ => None,
        }
    }

    /// Writes until not a byte is to be had any more.
    pub fn fill(&mut self) {
        for len in [100_000, 20_000, 3_000, 400, 1] {
            let before = self.out_of_space;
            while self.out_of_space == before {
                let path = self.new_path();
                let Some(fd) = self.open(&path, OpenFlags::CREATE_NEW) else { break };
                self.files.push(path);
                self.write(fd, 0, len);
                self.close(fd);
            }
        }
    }

    /// Does nothing to a file from now on.
    pub fn leave_alone(&mut self, path: &str) {
        self.files.retain(|file| file != path);
    }

    /// New names are numbered from here on: those of an earlier ager are there.
    pub fn number_from(&mut self, serial: u32) {
        self.serial = serial;
    }

    /// Everything is written: what is on the disk then.
    pub fn sync(&mut self, disk: &Arc<Mutex<MemoryStore>>) -> MemoryStore {
        self.call(&Call::SyncFs);
        disk.lock().unwrap().clone()
    }

    /// All but one file in the root.
    pub fn listing_without(&mut self, path: &str) -> Listing {
        let mut all = self.listing();
        assert!(all.remove(path).is_some());
        all
    }

    /// A file's bytes.
    pub fn read(&mut self, path: &str) -> Vec<u8> {
        let mut all = self.listing();
        all.remove(path).unwrap().3
    }

    pub fn listing(&mut self) -> Listing {
        let mut all = Listing::new();
        self.list("", &mut all);
        all
    }

    fn list(&mut self, dir: &str, all: &mut Listing) {
        let path = if dir.is_empty() { "." } else { dir };
        let stat = self.call_stat(path).unwrap();
        all.insert(dir.to_owned(), (stat.mode.0.into(), stat.nlink, 0, Vec::new()));
        let fd = self.open(path, OpenFlags::DIRECTORY).unwrap();
        let entries = self.lab.entries(fd).unwrap();
        self.close(fd);
        for (name, kind) in entries {
            let path = join(dir, name.to_str().unwrap());
            let stat = self.call_stat(&path).unwrap();
            let mut bytes = Vec::new();
            match kind {
                FileKind::Directory => {
                    self.list(&path, all);
                    continue;
                }
                FileKind::File => {
                    bytes.resize(stat.size_bytes as usize, 0);
                    let fd = self.open(&path, OpenFlags::READ).unwrap();
                    assert_eq!(self.lab.read_into(fd, 0, &mut bytes), Ok(bytes.len()));
                    self.close(fd);
                }
                FileKind::Symlink | FileKind::Special => {}
            }
            all.insert(path, (stat.mode.0.into(), stat.nlink, stat.size_bytes, bytes));
        }
    }
}

fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}

/// What a log of the laboratory says to an engine of crashes.
pub fn events(log: Vec<LogEntry>) -> Vec<Event> {
    let event = |entry| match entry {
        LogEntry::Write(write) => Some(Event::Write(Write {
            at_byte: write.pbn.bytes(),
            bytes: write.contents.unwrap().into(),
            submitted_after: write.submitted_after,
            durable: write.durable,
        })),
        LogEntry::Flush { submitted_after, .. } => Some(Event::Flush { submitted_after }),
        LogEntry::Discard { .. } => None,
    };
    log.into_iter().filter_map(event).collect()
}
