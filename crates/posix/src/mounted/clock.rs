//! The wall clock of a mounted file system, and what reading it costs.

use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;

/// `CLOCK_MONOTONIC` in nanoseconds. It is read through the vDSO, so it costs no system call.
#[inline(always)]
pub(crate) fn now_ns() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    // The monotonic clock starts at boot: neither field is ever negative.
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64)
}

/// What an empty timed section measures: the cost that is subtracted from every duration.
///
/// The median of many back-to-back readings, found once per process.
pub(crate) fn overhead_ns() -> u64 {
    static OVERHEAD: OnceLock<u64> = OnceLock::new();
    *OVERHEAD.get_or_init(|| {
        median(2001, || {
            let start = now_ns();
            now_ns() - start
        })
    })
}

/// The median of `samples` runs of a measurement, after as many unrecorded ones.
pub(crate) fn median(samples: usize, mut measure: impl FnMut() -> u64) -> u64 {
    for _ in 0..samples {
        measure();
    }
    let mut values: Vec<u64> = (0..samples).map(|_| measure()).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_runs_backwards() {
        let mut last = now_ns();
        for _ in 0..10_000 {
            let now = now_ns();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn the_median_ignores_outliers() {
        let mut i = 0;
        assert_eq!(
            median(101, || {
                i += 1;
                if i % 10 == 0 { 1_000_000 } else { 7 }
            }),
            7
        );
    }
}
