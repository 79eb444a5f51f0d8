//! FFS beside the reference.

#[path = "../../../../ufs/tests/live/mod.rs"]
mod reference;

use ffs::mkfs::{DiskGeometry, GroupSize, MkfsOptions, mkfs};
use ffs::policy::Options;
use ffs::{Endian, Ffs, Image, MemoryStore, Search, Version};
use kernel::Volume as _;
use reference::Subject;
pub use reference::{Disk, run_all};
use ufs::live::check::Disagreement;

pub type Case = reference::Case<Ffs>;
pub type Run = reference::Run<Ffs>;

impl Subject for Ffs {
    type Mkfs = MkfsOptions;
    type Options = Options;
    type Image = Image<MemoryStore>;

    const ALWAYS_REMOVES: bool = true;

    fn sizes(mkfs: &MkfsOptions) -> (u32, u64) {
        (mkfs.bsize, mkfs.size_bytes)
    }

    fn make(case: &Case) -> (Ffs, MemoryStore) {
        let mut image = MemoryStore(vec![0; case.mkfs.size_bytes as usize]);
        mkfs(&mut image, &case.mkfs).unwrap();
        <Ffs as Subject>::reload(<Ffs as Subject>::open(image), case.options)
    }

    fn disagreements(&self) -> Vec<Disagreement> {
        self.check()
    }

    fn assert_short(&self, _: &Case, what: &str, wanted_bytes: u64) {
        let (usage, total) = (self.usage(), self.space().total());
        let blocks = wanted_bytes / u64::from(self.block_bytes()) + 4;
        let short = usage.available_bytes < blocks * u64::from(self.block_bytes())
            || (total.nbfree as u64) < blocks
            || usage.free_inodes == 0;
        assert!(short, "{what}: no space, of {usage:?}, {total:?}");
    }

    fn left(&self, case: &Case, disk: Option<MemoryStore>, done: u64) -> Option<MemoryStore> {
        // All structures at once: over a new file system, or the same by another way, over what the writes have left.
        let mut stored = disk.clone().unwrap_or_else(|| Self::make(case).1);
        self.store(&mut stored, None).unwrap();
        if let Some(written) = disk {
            assert_same_groups(&written, &stored);
        }
        let report = ffs::fsck(&mut stored, &mut |_| true).unwrap();
        assert!(report.is_clean(), "{case:?}, after {done}: {report:#?}");
        Some(stored)
    }

    fn open(image: MemoryStore) -> Image<MemoryStore> {
        Image::open(image, Search::Standard).unwrap()
    }

    fn reload(image: Image<MemoryStore>, options: Options) -> (Ffs, MemoryStore) {
        let volume = Ffs::load(&image, options).unwrap();
        (volume, image.into_store())
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
