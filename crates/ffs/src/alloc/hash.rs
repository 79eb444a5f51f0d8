//! Which groups are tried, and in which order (`ffs_hashalloc`).
//!
//! The preferred group; then groups at distances 1, 3, 7, 15 … (each step twice the one before), which spreads what
//! overflows; then, by brute force, all others from the second after the preferred on.

/// The groups to try, preferred one first, with each group of the last, linear part in it. Without end conditions of
/// its own: at most `2 * groups` long.
pub fn hash_order(preferred: u32, groups: u32) -> impl Iterator<Item = u32> {
    let quadratic = quadratic(preferred, groups);
    // The linear search starts two groups on: the next group was the first step of the quadratic one.
    let linear = (2..groups).map(move |n| ((u64::from(preferred) + u64::from(n)) % u64::from(groups)) as u32);
    std::iter::once(preferred).chain(quadratic).chain(linear)
}

/// The quadratic part.
pub(super) fn quadratic(preferred: u32, groups: u32) -> impl Iterator<Item = u32> {
    let steps = std::iter::successors(Some(1_u32), |step| step.checked_mul(2)).take_while(move |step| *step < groups);
    steps.scan(preferred, move |at, step| {
        *at = ((u64::from(*at) + u64::from(step)) % u64::from(groups)) as u32;
        Some(*at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_published_code() {
        // cg += i for i = 1, 2, 4, 8; then from preferred + 2, for ncg - 2 groups.
        let order: Vec<u32> = hash_order(3, 10).collect();
        assert_eq!(order, [3, 4, 6, 0, 8, 5, 6, 7, 8, 9, 0, 1, 2]);
        assert_eq!(hash_order(0, 1).collect::<Vec<_>>(), [0]);
        assert_eq!(hash_order(1, 2).collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn every_group_is_tried() {
        for groups in 1..40 {
            for preferred in 0..groups {
                let mut seen: Vec<u32> = hash_order(preferred, groups).collect();
                assert!(seen.len() <= 2 * groups as usize);
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), groups as usize);
            }
        }
    }
}
