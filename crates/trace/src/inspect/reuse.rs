//! Reuse distances: how many other blocks are touched between two touches of one block.
//!
//! An LRU cache of C blocks hits exactly the accesses whose distance is below C (Mattson et al., "Evaluation techniques
//! for storage hierarchies", 1970), so one pass gives the miss ratio of every cache size. Exact distances come from a
//! Fenwick tree over last-access times (after Olken, "Efficient methods for calculating the success function of fixed
//! space replacement policies", 1981). Where more blocks are live than we want to hold, a spatial sample is followed
//! instead (Waldspurger et al., "Efficient MRC construction with SHARDS", FAST 2015): a block is in the sample if the
//! hash of its identity is below a threshold, which is halved whenever the sample grows too large.

use rustc_hash::FxHashMap;
use serde::Serialize;
use stats::random::{GOLDEN, finalise};

/// A block: file and block number in it.
pub(super) type Block = (u64, u64);

/// Distances and what they mean for caches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReuseDistances {
    /// Size of a block.
    pub block_bytes: u64,
    /// Block touches, reads and writes.
    pub accesses: u64,
    /// Estimated number of blocks touched for the first time: misses of any cache.
    pub first_touches: f64,
    /// Share of blocks followed at the end; 1: the figures are exact.
    pub sampled_share: f64,
    /// Estimated number of touches per distance, by powers of two.
    pub histogram: Vec<DistanceBar>,
    /// Miss ratio of an LRU cache, at powers of two of its size, from one block to the working set.
    pub miss_ratios: Vec<MissRatio>,
}

/// Touches at distances below `below_blocks` and not below the bar before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DistanceBar {
    /// Upper end, exclusive: a power of two.
    pub below_blocks: u64,
    /// How many.
    pub touches: f64,
}

/// A point of the miss ratio curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MissRatio {
    /// Size of the cache.
    pub cache_bytes: u64,
    /// Share of touches that miss, 0 to 1; the first touches of each block among them.
    pub miss_ratio: f64,
}

/// Followed at most, unless told otherwise: some hundred megabytes of memory.
pub(super) const BLOCKS_MAX: usize = 4 << 20;

pub(super) struct Reuse {
    block_bytes: u64,
    blocks_max: usize,
    /// Blocks whose hash is below this are followed.
    threshold: u64,
    last: FxHashMap<Block, u32>,
    times: Fenwick,
    accesses: u64,
    /// Estimated touches by distance: index is the bit length, so that bar `k` holds distances below 2^k.
    bars: [f64; 65],
    first: f64,
}

/// splitmix64's finaliser: every bit of the block's identity reaches every bit of the hash.
fn hash(block: Block) -> u64 {
    finalise(block.0.wrapping_mul(GOLDEN) ^ block.1)
}

impl Reuse {
    pub(super) fn new(block_bytes: u64, blocks_max: usize) -> Reuse {
        Reuse {
            block_bytes: block_bytes.max(1),
            blocks_max: blocks_max.max(1),
            threshold: u64::MAX,
            last: FxHashMap::default(),
            times: Fenwick::with_len(1 << 12),
            accesses: 0,
            bars: [0.0; 65],
            first: 0.0,
        }
    }

    /// Touches every block of a byte range of a file.
    pub(super) fn range(&mut self, file: u64, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        for block in offset / self.block_bytes..=offset.saturating_add(len - 1) / self.block_bytes {
            self.touch((file, block));
        }
    }

    /// Share of blocks in the sample.
    fn share(&self) -> f64 {
        if self.threshold == u64::MAX { 1.0 } else { self.threshold as f64 / 2f64.powi(64) }
    }

    pub(super) fn touch(&mut self, block: Block) {
        self.accesses += 1;
        if self.threshold != u64::MAX && hash(block) >= self.threshold {
            return;
        }
        if self.times.is_full() {
            self.compact();
        }
        let weight = 1.0 / self.share();
        let now = self.times.push();
        match self.last.insert(block, now) {
            Some(before) => {
                // Blocks touched since: those whose last touch is later than ours was. `now` itself is not one of them.
                let between = self.times.count_after(before) - 1;
                self.times.remove(before);
                let distance = (f64::from(between) * weight) as u64;
                self.bars[(u64::BITS - distance.leading_zeros()) as usize] += weight;
            }
            None => {
                self.first += weight;
                if self.last.len() > self.blocks_max {
                    self.halve_sample();
                }
            }
        }
    }

    fn halve_sample(&mut self) {
        while self.last.len() > self.blocks_max / 2 + 1 && self.threshold > 1 {
            self.threshold /= 2;
            let (threshold, times) = (self.threshold, &mut self.times);
            self.last.retain(|&block, &mut time| {
                let stays = hash(block) < threshold;
                if !stays {
                    times.remove(time);
                }
                stays
            });
        }
    }

    /// Renumbers the last touches without gaps, in a tree of twice their number.
    fn compact(&mut self) {
        let mut order: Vec<&mut u32> = self.last.values_mut().collect();
        order.sort_unstable();
        let live = order.len();
        for (new, time) in order.into_iter().enumerate() {
            *time = new as u32;
        }
        self.times = Fenwick::with_len((live * 2).max(1 << 12));
        for _ in 0..live {
            self.times.push();
        }
    }

    pub(super) fn finish(self) -> ReuseDistances {
        let sampled: f64 = self.first + self.bars.iter().sum::<f64>();
        // SHARDS' adjustment: hot blocks in or out of the sample skew the count of touches, which is known exactly; the
        // difference belongs to the shortest distances.
        let mut bars = self.bars;
        if self.threshold != u64::MAX {
            bars[0] = (bars[0] + self.accesses as f64 - sampled).max(0.0);
        }
        let total = self.first + bars.iter().sum::<f64>();
        let mut hits = 0.0;
        let mut miss_ratios = Vec::new();
        let used = bars.iter().rposition(|&n| n > 0.0).unwrap_or(0);
        for (k, touches) in bars.iter().enumerate().take(used + 1) {
            hits += touches;
            let cache_bytes = self.block_bytes.saturating_mul(1u64.checked_shl(k as u32).unwrap_or(u64::MAX));
            let miss_ratio = if total > 0.0 { 1.0 - hits / total } else { 0.0 };
            miss_ratios.push(MissRatio { cache_bytes, miss_ratio });
        }
        if total == 0.0 {
            miss_ratios.clear();
        }
        let bar = |(k, &touches): (usize, &f64)| DistanceBar {
            below_blocks: 1u64.checked_shl(k as u32).unwrap_or(u64::MAX),
            touches,
        };
        ReuseDistances {
            block_bytes: self.block_bytes,
            accesses: self.accesses,
            first_touches: self.first,
            sampled_share: self.share(),
            histogram: bars.iter().enumerate().filter(|(_, n)| **n > 0.0).map(bar).collect(),
            miss_ratios,
        }
    }
}

/// Ones and zeros at times 0, 1, ...; counts the ones after a time in logarithmic time.
struct Fenwick {
    tree: Vec<u32>,
    next: u32,
    ones: u32,
}

impl Fenwick {
    fn with_len(len: usize) -> Fenwick {
        Fenwick { tree: vec![0; len + 1], next: 0, ones: 0 }
    }

    fn is_full(&self) -> bool {
        self.next as usize + 1 >= self.tree.len()
    }

    /// A one at the next time, which is returned.
    fn push(&mut self) -> u32 {
        let at = self.next;
        self.next += 1;
        self.ones += 1;
        self.add(at, 1);
        at
    }

    fn remove(&mut self, at: u32) {
        self.ones -= 1;
        self.add(at, u32::MAX);
    }

    fn add(&mut self, at: u32, delta: u32) {
        let mut i = at as usize + 1;
        while let Some(cell) = self.tree.get_mut(i) {
            *cell = cell.wrapping_add(delta);
            i += i & i.wrapping_neg();
        }
    }

    /// How many ones lie at times later than `at`.
    fn count_after(&self, at: u32) -> u32 {
        let mut i = at as usize + 1;
        let mut up_to = 0u32;
        while i > 0 {
            up_to = up_to.wrapping_add(self.tree.get(i).copied().unwrap_or(0));
            i &= i - 1;
        }
        self.ones - up_to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};
    use std::process::Command;

    /// Skewed towards low numbers, with scans in between.
    fn touches(seed: u64, count: usize, blocks: u64) -> Vec<u64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut out = Vec::new();
        while out.len() < count {
            let r = rng.next_u64();
            if r % 50 == 0 {
                let start = r / 50 % blocks;
                out.extend((start..start + 30).map(|b| b % blocks));
            } else {
                let u = (r >> 11) as f64 / (1u64 << 53) as f64;
                out.push((u * u * u * blocks as f64) as u64);
            }
        }
        out.truncate(count);
        out
    }

    fn measured(touches: &[u64], blocks_max: usize) -> ReuseDistances {
        let mut reuse = Reuse::new(4096, blocks_max);
        touches.iter().for_each(|&b| reuse.touch((1, b)));
        reuse.finish()
    }

    /// LRU as everybody would write it first.
    fn naive_misses(touches: &[u64], size: usize) -> usize {
        let mut stack: Vec<u64> = Vec::new();
        let mut misses = 0;
        for &block in touches {
            match stack.iter().position(|&b| b == block) {
                Some(at) => drop(stack.remove(at)),
                None => misses += 1,
            }
            stack.insert(0, block);
            stack.truncate(size);
        }
        misses
    }

    #[test]
    fn exact_curve_is_that_of_lru() {
        for (seed, count, blocks) in [(1, 4000, 300), (2, 9000, 1000), (3, 500, 5)] {
            let touches = touches(seed, count, blocks);
            let result = measured(&touches, BLOCKS_MAX);
            assert_eq!(result.sampled_share, 1.0);
            for point in &result.miss_ratios {
                let want = naive_misses(&touches, (point.cache_bytes / 4096) as usize) as f64 / count as f64;
                assert!((point.miss_ratio - want).abs() < 1e-12, "seed {seed}: {point:?} instead of {want}");
            }
        }
    }

    #[test]
    fn sampled_curve_is_near() {
        let touches = touches(4, 400_000, 60_000);
        let exact = measured(&touches, BLOCKS_MAX);
        let sampled = measured(&touches, 8000);
        assert!(sampled.sampled_share <= 0.25, "{}", sampled.sampled_share);
        assert_eq!(sampled.accesses, exact.accesses);
        for point in exact.miss_ratios.iter().filter(|p| p.cache_bytes >= 256 * 4096) {
            let near = sampled.miss_ratios.iter().find(|p| p.cache_bytes == point.cache_bytes);
            let near = near.map_or(exact.first_touches / exact.accesses as f64, |p| p.miss_ratio);
            assert!((near - point.miss_ratio).abs() < 0.04, "{point:?}: {near}");
        }
    }

    #[test]
    fn nothing_touched_nothing_claimed() {
        let result = measured(&[], 10);
        assert!(result.miss_ratios.is_empty() && result.histogram.is_empty());
    }

    /// The curve of software that is not ours: libCacheSim's LRU (PyPI `libcachesim`).
    #[test]
    fn exact_curve_is_libcachesims() {
        const SCRIPT: &str = "
import sys
import libcachesim as lcs
touches = [int(x) for x in sys.stdin.read().split()]
for size in sys.argv[1:]:
    cache = lcs.LRU(cache_size=int(size))
    misses = 0
    for block in touches:
        req = lcs.Request()
        req.obj_id = block + 1
        req.obj_size = 1
        misses += not cache.get(req)
    print(misses)
";
        let Some(python) = testkit::python_with("libcachesim") else { return };
        let touches = touches(5, 20_000, 2000);
        let result = measured(&touches, BLOCKS_MAX);
        let sizes: Vec<String> = result.miss_ratios.iter().map(|p| (p.cache_bytes / 4096).to_string()).collect();
        let input = std::env::temp_dir().join(format!("fsage-reuse-{}", std::process::id()));
        std::fs::write(&input, touches.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")).unwrap();
        let stdin = std::fs::File::open(&input).unwrap();
        std::fs::remove_file(&input).unwrap();
        let output = Command::new(python).args(["-c", SCRIPT]).args(&sizes).stdin(stdin).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let theirs: Vec<f64> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|l| l.trim().parse::<f64>().unwrap() / touches.len() as f64)
            .collect();
        assert_eq!(theirs.len(), result.miss_ratios.len());
        for (point, want) in result.miss_ratios.iter().zip(theirs) {
            assert!((point.miss_ratio - want).abs() < 1e-12, "{point:?} instead of {want}");
        }
    }
}
