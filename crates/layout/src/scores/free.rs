//! Free space: how much of it is in how large pieces.
//!
//! Histogram buckets, mean and extremes are those of `e2freefrag` (e2fsprogs) and of `freesp` of `xfs_db`: bucket k
//! holds extents of 2^k to 2^(k+1) - 1 bytes. Shares by chunk are given twice: in extents at least that long, and in
//! naturally aligned chunks of that size (what `e2freefrag -c` calls free chunks, and what a huge allocation can use).

use crate::geometry::Groups;
use crate::scores::{fsperf, zfs};
use posix::FreeExtent;
use serde::{Deserialize, Serialize};

/// The chunk sizes reported.
pub const CHUNKS_BYTES: [u64; 3] = [64 << 10, 1 << 20, 2 << 20];

/// A bucket of the histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreeBucket {
    /// The shortest extent it takes.
    pub low_bytes: u64,
    /// The longest it takes.
    pub high_bytes: u64,
    /// Extents in it.
    pub extents: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The share of free space that is in large pieces.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChunkShare {
    /// The chunk.
    pub chunk_bytes: u64,
    /// The share of free bytes in extents of at least that length.
    pub share: f64,
    /// Whole chunks that are free and aligned to their size.
    pub aligned_chunks: u64,
    /// The share of free bytes in those.
    pub aligned_share: f64,
}

/// A point of the cumulative distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CdfPoint {
    /// Extent length.
    pub len_bytes: u64,
    /// The share of free *bytes* in extents up to that length.
    pub share: f64,
}

/// All figures of a list of free extents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FreeSpace {
    /// Sum.
    pub free_bytes: u64,
    /// How many extents.
    pub extents: u64,
    /// The largest.
    pub largest_bytes: u64,
    /// The smallest.
    pub smallest_bytes: u64,
    /// The mean; `None` without free space.
    pub mean_bytes: Option<f64>,
    /// The histogram, from the bucket of the smallest to that of the largest.
    pub histogram: Vec<FreeBucket>,
    /// Shares in chunks of [`CHUNKS_BYTES`].
    pub chunks: Vec<ChunkShare>,
    /// The distribution of free bytes over extent lengths, at most 101 points.
    pub cdf: Vec<CdfPoint>,
    /// ZFS's metric, per cent.
    pub zfs_percent: Option<u64>,
    /// fsperf's score per group.
    pub fsperf: fsperf::FsperfScore,
    /// btrfs: device space not yet given to any block group, in which new ones can be made; not in the figures above.
    pub unallocated_bytes: Option<u64>,
}

/// Puts free extents in address order and joins those that touch. Interfaces that go group by group report one piece in
/// two.
pub fn joined(mut free: Vec<FreeExtent>) -> Vec<FreeExtent> {
    free.retain(|e| e.len_bytes > 0);
    free.sort_unstable_by_key(|e| e.physical_bytes);
    let mut out: Vec<FreeExtent> = Vec::with_capacity(free.len());
    for extent in free {
        match out.last_mut() {
            Some(last) if extent.physical_bytes <= last.physical_bytes.saturating_add(last.len_bytes) => {
                let end = extent.physical_bytes.saturating_add(extent.len_bytes);
                last.len_bytes = last.len_bytes.max(end.saturating_sub(last.physical_bytes));
            }
            _ => out.push(extent),
        }
    }
    out
}

impl FreeSpace {
    /// Counts a list made by [`joined`].
    pub fn of(free: &[FreeExtent], groups: Option<&Groups>) -> FreeSpace {
        let free_bytes = free.iter().fold(0u64, |sum, e| sum.saturating_add(e.len_bytes));
        let extents = free.len() as u64;
        FreeSpace {
            free_bytes,
            extents,
            largest_bytes: free.iter().map(|e| e.len_bytes).max().unwrap_or(0),
            smallest_bytes: free.iter().map(|e| e.len_bytes).min().unwrap_or(0),
            mean_bytes: (extents > 0).then(|| free_bytes as f64 / extents as f64),
            histogram: histogram(free),
            chunks: CHUNKS_BYTES.iter().map(|&chunk| chunk_share(free, free_bytes, chunk)).collect(),
            cdf: cdf(free, free_bytes),
            zfs_percent: zfs::fragmentation_percent(free),
            fsperf: fsperf::score(free, groups),
            unallocated_bytes: None,
        }
    }
}

fn histogram(free: &[FreeExtent]) -> Vec<FreeBucket> {
    let mut buckets: Vec<FreeBucket> = (0..u64::BITS)
        .map(|k| FreeBucket {
            low_bytes: 1 << k,
            high_bytes: (1u64 << k).saturating_add((1 << k) - 1),
            extents: 0,
            bytes: 0,
        })
        .collect();
    for extent in free {
        let bucket = extent.len_bytes.checked_ilog2().and_then(|k| buckets.get_mut(k as usize));
        if let Some(bucket) = bucket {
            bucket.extents += 1;
            bucket.bytes = bucket.bytes.saturating_add(extent.len_bytes);
        }
    }
    let first = buckets.iter().position(|b| b.extents > 0).unwrap_or(buckets.len());
    let end = buckets.iter().rposition(|b| b.extents > 0).map_or(0, |i| i + 1);
    buckets.get(first..end).map(<[FreeBucket]>::to_vec).unwrap_or_default()
}

fn chunk_share(free: &[FreeExtent], free_bytes: u64, chunk_bytes: u64) -> ChunkShare {
    let (mut long, mut aligned_chunks) = (0u64, 0u64);
    for extent in free {
        if extent.len_bytes >= chunk_bytes {
            long = long.saturating_add(extent.len_bytes);
        }
        let first = extent.physical_bytes.div_ceil(chunk_bytes);
        let end = extent.physical_bytes.saturating_add(extent.len_bytes) / chunk_bytes;
        aligned_chunks += end.saturating_sub(first);
    }
    let of_free = |bytes: u64| if free_bytes == 0 { 0.0 } else { bytes as f64 / free_bytes as f64 };
    ChunkShare {
        chunk_bytes,
        share: of_free(long),
        aligned_chunks,
        aligned_share: of_free(aligned_chunks.saturating_mul(chunk_bytes)),
    }
}

/// The points at which each hundredth of the free bytes is reached.
fn cdf(free: &[FreeExtent], free_bytes: u64) -> Vec<CdfPoint> {
    if free_bytes == 0 {
        return Vec::new();
    }
    let mut lengths: Vec<u64> = free.iter().map(|e| e.len_bytes).collect();
    lengths.sort_unstable();
    let mut points: Vec<CdfPoint> = Vec::new();
    let (mut sum, mut shown) = (0u64, -1.0f64);
    for (i, &len_bytes) in lengths.iter().enumerate() {
        sum = sum.saturating_add(len_bytes);
        // All extents of one length make one step.
        if lengths.get(i + 1) == Some(&len_bytes) {
            continue;
        }
        let share = sum as f64 / free_bytes as f64;
        if (share * 100.0).floor() > shown || i + 1 == lengths.len() {
            shown = (share * 100.0).floor();
            points.push(CdfPoint { len_bytes, share });
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(extents: &[(u64, u64)]) -> Vec<FreeExtent> {
        extents.iter().map(|&(physical_bytes, len_bytes)| FreeExtent { physical_bytes, len_bytes }).collect()
    }

    #[test]
    fn touching_pieces_are_one() {
        let joined = joined(free(&[(300, 10), (0, 100), (100, 50), (200, 0), (310, 1)]));
        assert_eq!(joined, free(&[(0, 150), (300, 11)]));
    }

    #[test]
    fn histogram_and_chunks() {
        let space = FreeSpace::of(&free(&[(4096, 4096), (16384, 12288), (65536 + 4096, 3 << 20)]), None);
        assert_eq!(space.extents, 3);
        let counts: Vec<(u64, u64)> =
            space.histogram.iter().filter(|b| b.extents > 0).map(|b| (b.low_bytes, b.extents)).collect();
        assert_eq!(counts, [(4096, 1), (8192, 1), (2 << 20, 1)]);
        let mib = space.chunks.iter().find(|c| c.chunk_bytes == 1 << 20).copied().unwrap();
        // The long extent starts off its alignment: two whole aligned chunks of the three.
        assert_eq!(mib.aligned_chunks, 2);
        assert!((mib.share - (3 << 20) as f64 / space.free_bytes as f64).abs() < 1e-12);
        assert_eq!(space.cdf.last().map(|p| (p.len_bytes, p.share)), Some((3 << 20, 1.0)));
    }

    #[test]
    fn no_free_space_divides_by_nothing() {
        let space = FreeSpace::of(&[], None);
        assert_eq!((space.free_bytes, space.mean_bytes, space.histogram.len(), space.cdf.len()), (0, None, 0, 0));
        assert!(space.chunks.iter().all(|c| c.share == 0.0));
    }

    #[test]
    fn the_distribution_is_bounded() {
        let many: Vec<(u64, u64)> = (0..5000).map(|i| (i * 100_000, i + 1)).collect();
        let space = FreeSpace::of(&free(&many), None);
        assert!(space.cdf.len() <= 102, "{}", space.cdf.len());
        assert!(space.cdf.windows(2).all(|w| w[0].share < w[1].share && w[0].len_bytes < w[1].len_bytes));
    }
}
