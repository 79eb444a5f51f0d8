//! How much to ask for when a fragment grows and cannot do so where it is (`fs_optim`).

use super::Tuning;
use crate::format::CsumTotal;

/// What is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Optimise {
    /// A whole block is taken and its end given back: the next growth needs no copying.
    Time,
    /// Only as much as is needed is taken.
    Space,
}

impl Optimise {
    /// Fragments to ask for, of `needed`. Switches to saving space when nearly all of the reserve is in
    /// fragments, and back when less than half of it is.
    pub(crate) fn request(&mut self, tuning: &Tuning, total: &CsumTotal, needed: u32, per_block: u32) -> u32 {
        match self {
            Optimise::Space => {
                if tuning.minfree >= 5 && total.nffree <= tuning.dsize * tuning.minfree / 200 {
                    *self = Optimise::Time;
                }
                needed
            }
            Optimise::Time => {
                if total.nffree >= tuning.dsize * (tuning.minfree - 2) / 100 {
                    *self = Optimise::Space;
                }
                per_block
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_at_the_published_limits() {
        let tuning = Tuning {
            maxbpg: 1,
            maxcontig: 1,
            gap_frags: 0,
            minfree: 10,
            dsize: 10_000,
            reserve: 1_000,
            metaspace: 0,
            avgfilesize: 1,
            avgfpdir: 1,
        };
        let with = |nffree| CsumTotal { nffree, ..CsumTotal::default() };
        let mut optim = Optimise::Time;
        assert_eq!(optim.request(&tuning, &with(799), 3, 8), 8);
        assert_eq!(optim, Optimise::Time);
        // The request that notices is still served the old way.
        assert_eq!(optim.request(&tuning, &with(800), 3, 8), 8);
        assert_eq!(optim, Optimise::Space);
        assert_eq!(optim.request(&tuning, &with(501), 3, 8), 3);
        assert_eq!(optim, Optimise::Space);
        assert_eq!(optim.request(&tuning, &with(500), 3, 8), 3);
        assert_eq!(optim, Optimise::Time);
    }
}
