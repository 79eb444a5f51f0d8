//! The fragmentation metric of ZFS, from any list of free extents.
//!
//! OpenZFS `module/zfs/metaslab.c`: each power-of-two bucket of free segments has a percentage (`zfs_frag_table`), and
//! a metaslab's fragmentation is their mean weighted by space, in whole per cent, rounded down. A segment weighs as
//! much as its bucket's lower end, as in ZFS's histogram, which keeps counts only. ZFS takes this per metaslab and
//! averages over them; here the whole list is taken as one metaslab.

use posix::FreeExtent;

/// `zfs_frag_table`: per cent for segments of 512 B, 1 KiB, 2 KiB ... 16 MiB and more.
const TABLE: [u64; 17] = [100, 100, 98, 95, 90, 80, 70, 60, 50, 40, 30, 20, 15, 10, 5, 0, 0];

/// `SPA_MINBLOCKSHIFT`: the first bucket is 512 bytes.
const FIRST_SHIFT: u32 = 9;

/// The fragmentation in per cent, 0 to 100; `None` without free space.
pub fn fragmentation_percent(free: &[FreeExtent]) -> Option<u64> {
    let (mut total, mut weighted) = (0u128, 0u128);
    for extent in free.iter().filter(|e| e.len_bytes > 0) {
        let shift = extent.len_bytes.ilog2();
        let index = usize::try_from(shift.saturating_sub(FIRST_SHIFT)).unwrap_or(usize::MAX);
        let percent = TABLE.get(index).copied().unwrap_or(0);
        let space = 1u128 << shift;
        total += space;
        weighted += space * u128::from(percent);
    }
    (total > 0).then(|| u64::try_from(weighted / total).unwrap_or(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(lengths: &[u64]) -> Vec<FreeExtent> {
        lengths.iter().map(|&len_bytes| FreeExtent { physical_bytes: 0, len_bytes }).collect()
    }

    #[test]
    fn the_table_by_size() {
        for (len, percent) in
            [(512, 100), (4096, 95), (8191, 95), (65536, 60), (1 << 20, 20), (16 << 20, 0), (1 << 40, 0)]
        {
            assert_eq!(fragmentation_percent(&free(&[len])), Some(percent), "{len}");
        }
        assert_eq!(fragmentation_percent(&[]), None);
    }

    #[test]
    fn weighted_by_space_and_rounded_down() {
        // (4096 * 95 + 65536 * 60) / 69632 = 62.06
        assert_eq!(fragmentation_percent(&free(&[4096, 65536])), Some(62));
    }
}
