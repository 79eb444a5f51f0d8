//! LFS beside the reference.

#[path = "../../../../ufs/tests/live/mod.rs"]
mod reference;

use kernel::Volume as _;
use lfs::mkfs::{MkfsOptions, mkfs};
use lfs::policy::CleanerPolicy;
use lfs::{Checkpoint, Image, Lfs, MemoryStore, Options};
use reference::Subject;
pub use reference::run_all;
use ufs::live::check::Disagreement;

pub type Case = reference::Case<Lfs>;
pub type Run = reference::Run<Lfs>;

impl Subject for Lfs {
    type Mkfs = MkfsOptions;
    type Options = Options;
    type Image = Image<MemoryStore>;

    const ALWAYS_REMOVES: bool = false;

    fn sizes(mkfs: &MkfsOptions) -> (u32, u64) {
        (mkfs.bsize, mkfs.size_bytes)
    }

    fn make(case: &Case) -> (Lfs, MemoryStore) {
        let mut image = MemoryStore(vec![0; case.mkfs.size_bytes as usize]);
        mkfs(&mut image, &case.mkfs).unwrap();
        let volume = Lfs::load(&mut image, case.options).unwrap();
        (volume, image)
    }

    fn disagreements(&self) -> Vec<Disagreement> {
        self.check()
    }

    fn assert_short(&self, case: &Case, what: &str, wanted_bytes: u64) {
        let usage = self.usage();
        let blocks = wanted_bytes / u64::from(self.block_bytes()) + 8;
        let short =
            usage.available_bytes < blocks * u64::from(self.block_bytes()) || Self::may_stay_full(&case.options);
        let segments: Vec<f64> = self.segment_utilisations().map(|u| (u * 100.0).round()).collect();
        let clean = self.clean_segments();
        assert!(short, "{what}: no space, of {usage:?}, clean {clean:?}, {segments:?}, {case:?}");
    }

    fn may_stay_full(options: &Options) -> bool {
        options.cleaner == CleanerPolicy::Off
    }

    fn left(&self, case: &Case, disk: Option<MemoryStore>, done: u64) -> Option<MemoryStore> {
        let image = disk?;
        let report = lfs::fsck(image.clone(), &mut |_| true).unwrap();
        assert!(report.is_clean(), "{case:?}, after {done}: {report:#?}");
        assert!(report.marked_clean);
        Some(image)
    }

    fn open(image: MemoryStore) -> Image<MemoryStore> {
        Image::open(image, Checkpoint::Newer).unwrap()
    }

    fn reload(image: Image<MemoryStore>, options: Options) -> (Lfs, MemoryStore) {
        let mut store = image.into_parts().0;
        let volume = Lfs::load(&mut store, options).unwrap();
        (volume, store)
    }
}

/// Small file systems of several block, fragment and segment sizes, every policy in turn.
pub fn cases(bytes: bool) -> Vec<Case> {
    let policies = [
        "cleaner=cost-benefit",
        "cleaner=greedy,sort=found",
        "cleaner=netbsd,memory=64k",
        "cleaner=cost-benefit,order=barrier,memory=1M",
        "cleaner=greedy,dirty=5,indirect=late",
        "cleaner=off",
        "cleaner=cost-benefit,cleaning=all",
    ];
    let shapes = [
        (4096, 512, 64 << 10),
        (4096, 1024, 128 << 10),
        (8192, 1024, 128 << 10),
        (8192, 8192, 256 << 10),
        (8192, 4096, 96 << 10),
        (16384, 2048, 256 << 10),
        (4096, 4096, 80 << 10),
        (32768, 4096, 512 << 10),
    ];
    let mut cases = Vec::new();
    for (n, (bsize, fsize, ssize)) in shapes.into_iter().enumerate() {
        for (p, policy) in policies.iter().enumerate() {
            let plug_percent = [90, 20, 0, 60][(n + p) % 4];
            let mut options = Options { plug_percent, ..Options::default() };
            assert!(policy.split(',').all(|word| options.set(word)), "{policy}");
            let segments = 30 + 7 * (n as u64 + p as u64) % 40;
            let mkfs = MkfsOptions {
                bsize,
                fsize,
                ssize: Some(ssize),
                ibsize: [None, Some(bsize)][p % 2],
                ..MkfsOptions::new(segments * u64::from(ssize))
            };
            let seed = 1000 + (n * policies.len() + p) as u64;
            cases.push(Case { mkfs, options, cache_bytes: 1 << 20, bytes, seed });
        }
    }
    cases
}
