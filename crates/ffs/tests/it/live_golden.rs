//! Where everything lies, and when everything was done, after the same calls under every combination of policies: as it
//! was recorded before the allocator and the kernel were made faster. Whatever makes them faster must leave these
//! numbers alone. A change that is *meant* to alter an allocation or a time replaces them; the failing test prints the
//! new table.

use device::fixed::{Choice, FixedDevice};
use ffs::mkfs::MkfsOptions;
use ffs::policy::Options;
use ffs::{Ffs, Version};
use kernel::{Lab, Machine, Setup, Volume as _};
use posix::{At, Call, FileSystem, Mode, OpenFlags};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// FNV-1a.
#[derive(Clone, Copy)]
struct Digest(u64);

impl Digest {
    fn new() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

const SIZE: u64 = 24 << 20;
const DIRS: u64 = 12;

struct Driver {
    lab: Lab<Ffs>,
    random: Xoshiro256PlusPlus,
    files: Vec<String>,
    serial: u64,
}

impl Driver {
    fn new(version: Version, words: &str) -> Driver {
        let mut options = Options { seed: 5, ..Options::default() };
        assert!(words.split(',').all(|word| options.set(word)), "{words}");
        let made = MkfsOptions {
            bsize: 8192,
            fsize: 1024,
            group: Some(ffs::mkfs::GroupSize::Fragments(2048)),
            maxcontig: Some(7),
            maxbpg: Some(40),
            density: Some(8192),
            ..MkfsOptions::new(version, SIZE)
        };
        let volume = Ffs::format(&made, options).unwrap();
        let mut machine = Machine::load("pentium-120").unwrap();
        machine.memory.buffer_cache_bytes.value = 1 << 20;
        machine.memory.attribute_cache_inodes.value = 50;
        let setup = Setup { machine, target: "ffs".into(), drive: "fixed".into(), epoch_ns: 820_000_000_000_000_000 };
        let device = FixedDevice::with_distance(SIZE, 3_000_000, 100_000, Choice::Nearest);
        let lab = Lab::new(volume, Box::new(device), setup).unwrap();
        Driver { lab, random: Xoshiro256PlusPlus::seed_from_u64(11), files: Vec::new(), serial: 0 }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.next_u64() % n.max(1)
    }

    fn size(&mut self) -> u64 {
        let most = [3_000, 20_000, 120_000, 600_000][self.below(4) as usize];
        1 + self.below(most)
    }

    fn write(&mut self, path: &str, flags: OpenFlags, offset: Option<u64>, len_bytes: u64) {
        let at: At<'_> = path.into();
        let Ok(fd) = self.lab.call(&Call::Open { at, flags, mode: Mode(0o644) }).fd() else { return };
        // In pieces, as programs write.
        let mut done = 0;
        while done < len_bytes {
            let piece = (len_bytes - done).min(24_000);
            let offset = offset.map(|offset| offset + done);
            self.lab.call(&Call::Write { fd, offset, len_bytes: piece, data: None });
            done += piece;
        }
        if self.below(12) == 0 {
            self.lab.call(&Call::Fsync { fd });
        }
        self.lab.call(&Call::Close { fd });
    }

    fn any(&mut self) -> Option<usize> {
        let at = self.below(self.files.len() as u64) as usize;
        (at < self.files.len()).then_some(at)
    }

    fn step(&mut self) {
        match self.below(20) {
            0..9 => {
                let dir = self.below(DIRS);
                self.serial += 1;
                let path = format!("d{}/file {}", dir, self.serial);
                let len = self.size();
                self.write(&path, OpenFlags::CREATE_NEW, None, len);
                self.files.push(path);
            }
            9..15 => {
                if let Some(at) = self.any() {
                    let path = self.files.swap_remove(at);
                    self.lab.call(&Call::Unlink { at: path.as_str().into() });
                }
            }
            15..17 => {
                if let Some(at) = self.any() {
                    let (path, len) = (self.files[at].clone(), self.size());
                    self.write(&path, OpenFlags { truncate: true, ..OpenFlags::WRITE }, None, len);
                }
            }
            17 => {
                if let Some(at) = self.any() {
                    let (path, len, offset) = (self.files[at].clone(), self.size() / 4 + 1, self.below(200_000));
                    self.write(&path, OpenFlags::WRITE, Some(offset), len);
                }
            }
            18 => {
                self.serial += 1;
                let path = format!("d{}/dir {}", self.below(DIRS), self.serial);
                self.lab.call(&Call::Mkdir { at: path.as_str().into(), mode: Mode(0o755) });
            }
            _ => {
                if let Some(at) = self.any() {
                    let path = self.files[at].clone();
                    let fd =
                        self.lab.call(&Call::Open { at: path.as_str().into(), flags: OpenFlags::READ, mode: Mode(0) });
                    if let Ok(fd) = fd.fd() {
                        self.lab.call(&Call::Read { fd, offset: None, len_bytes: 100_000 });
                        self.lab.call(&Call::Close { fd });
                    }
                }
            }
        }
    }

    /// Of places, and of times.
    fn digests(self) -> [u64; 2] {
        let (mut places, mut times) = (Digest::new(), Digest::new());
        times.add(self.lab.now_ns());
        let counters = self.lab.counters();
        for count in [
            counters.cache.hits,
            counters.cache.misses,
            counters.cache.prefetched,
            counters.cache.evicted,
            counters.device.reads,
            counters.device.read_bytes,
            counters.device.writes,
            counters.device.write_bytes,
        ] {
            times.add(count);
        }
        let volume = self.lab.unmount().unwrap();
        let problems = volume.check();
        assert!(problems.is_empty(), "{problems:#?}");
        for ino in 2..volume.geometry().inodes() {
            let Ok(attributes) = volume.attributes(kernel::Ino(ino)) else { continue };
            for value in [ino.into(), attributes.size_bytes, attributes.allocated_bytes, attributes.nlink.into()] {
                places.add(value);
            }
            for extent in volume.extents(kernel::Ino(ino)).unwrap() {
                for value in [extent.logical_bytes, extent.physical_bytes, extent.len_bytes] {
                    places.add(value);
                }
            }
        }
        for free in volume.free_extents() {
            places.add(free.physical_bytes);
            places.add(free.len_bytes);
        }
        [places.0, times.0]
    }
}

/// Each with every combination of the other choices: places, times.
const RECORDED: [(&str, [u64; 2]); 12] = [
    ("original,switch,bestfit", [0xeadf631a571ba8cd, 0x8d10bb770f6fa1f7]),
    ("original,switch,smartfrags", [0xec8cc987638f7a3d, 0x784273de7742539c]),
    ("original,noswitch,bestfit", [0x3dfd35c245afbf4c, 0xf144927c4345a284]),
    ("original,noswitch,smartfrags", [0x695f8fb3c816734e, 0xfac5e8119f69fcce]),
    ("original,metaspace,bestfit", [0x2df5250a4b9b1360, 0x66285f70e89e366c]),
    ("original,metaspace,smartfrags", [0xa65c9385aeae7172, 0xd55487a9b1e8671e]),
    ("realloc,switch,bestfit", [0x5a0581308406736f, 0xd1bda25bcae9e1d3]),
    ("realloc,switch,smartfrags", [0xf268aad6fe0bf901, 0x2ee3882f8d24ca44]),
    ("realloc,noswitch,bestfit", [0xceacc12a304b45fa, 0x8eae96f99a463471]),
    ("realloc,noswitch,smartfrags", [0x1e5c418ad4bbdeb8, 0x70580722a285cec1]),
    ("realloc,metaspace,bestfit", [0x3c86ec28cc07f788, 0x8b0a7e8e393f105c]),
    ("realloc,metaspace,smartfrags", [0x516b68c33f4924af, 0x3a90d76c4dc36e1e]),
];

#[test]
fn places_and_times_are_as_recorded() {
    let mut found = Vec::new();
    for (number, (words, _)) in RECORDED.iter().enumerate() {
        let (mut places, mut times) = (Digest::new(), Digest::new());
        for other in 0..4 {
            let directories = ["spread", "dirpref"][other % 2];
            // Every pair of the rest with every line, and both formats.
            let (integrity, reserve) = (["conventional", "noorder"][other / 2], ["user", "root"][(other + number) % 2]);
            let version = [Version::Ufs1, Version::Ufs2][(number + other / 2) % 2];
            let mut driver = Driver::new(version, &format!("{words},{directories},{integrity},{reserve}"));
            for dir in 0..DIRS {
                driver.lab.call(&Call::Mkdir { at: format!("d{dir}").as_str().into(), mode: Mode(0o755) });
            }
            for _ in 0..1500 {
                driver.step();
            }
            let [p, t] = driver.digests();
            places.add(p);
            times.add(t);
        }
        found.push((*words, [places.0, times.0]));
    }
    let table: Vec<String> =
        found.iter().map(|(words, [p, t])| format!("    (\"{words}\", [{p:#018x}, {t:#018x}]),")).collect();
    assert!(found == RECORDED, "now it is\n{}", table.join("\n"));
}
