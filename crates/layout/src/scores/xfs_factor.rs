//! The XFS fragmentation factor, as the `frag` command of `xfs_db` prints it (xfsprogs `db/frag.c`): (actual - ideal) /
//! actual, where actual is the number of extents and ideal the number there would be if every run between two holes
//! were one extent.
//!
//! `xfs_db` itself warns that the number is "largely meaningless": ten extents a file already give 90 %. It is here
//! because it is quoted. Only regular files are counted, which is what `frag -f` prints.

use serde::{Deserialize, Serialize};

/// Both counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct XfsFactor {
    /// Extents.
    pub actual: u64,
    /// Runs between holes.
    pub ideal: u64,
}

impl XfsFactor {
    /// The factor, 0 to 1; 0 where there are no extents, as `xfs_db` has it.
    pub fn value(self) -> f64 {
        if self.actual == 0 { 0.0 } else { self.actual.saturating_sub(self.ideal) as f64 / self.actual as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_published_outputs_have_it() {
        // "actual 2645859, ideal 32191, fragmentation factor 98.78%"
        let factor = XfsFactor { actual: 2_645_859, ideal: 32_191 };
        assert_eq!(format!("{:.2}", factor.value() * 100.0), "98.78");
        assert_eq!(XfsFactor::default().value(), 0.0);
    }
}
