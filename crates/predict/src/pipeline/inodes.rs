//! Which inodes have been read since the caches were emptied, in the order in which the files were made.
//!
//! Inodes lie in blocks, and a system that reads one reads its neighbours with it: 16 in a block of ext4's table, and
//! 32 blocks ahead; 64 in a chunk of XFS; in a leaf of btrfs whatever was made about then. How many they are, a
//! lookup's price tells, which is measured by the distance to the nearest that is known
//! ([`Class::LookupNearMiss`](system::vector::Class::LookupNearMiss)). Files are numbered in the order in which a
//! snapshot tells them, which is that of a replay's rebuild, and near to how they were made.

/// Farther than this all are as far as this: no system reads so many at once.
pub const DISTANCE_MAX: u32 = 1024;

/// The inodes read, by number.
#[derive(Clone, Debug, Default)]
pub struct Inodes {
    read: Vec<u64>,
}

impl Inodes {
    /// An inode is read. Answers how far the nearest is that was before, up to [`DISTANCE_MAX`].
    #[inline]
    pub fn read(&mut self, number: u32) -> u32 {
        let (word, bit) = ((number / 64) as usize, number % 64);
        if word >= self.read.len() {
            self.read.resize(word + 1 + word / 2, 0);
        }
        let distance = self.nearest(word, bit);
        self.read[word] |= 1 << bit;
        distance
    }

    fn nearest(&self, word: usize, bit: u32) -> u32 {
        let mut nearest = DISTANCE_MAX;
        let here = self.read[word];
        // To the left with the bits below it, to the right with those above.
        let below = here & ((1 << bit) - 1);
        let above = (here >> bit) >> 1;
        for step in 0..=(DISTANCE_MAX / 64) {
            let at = |back: bool| {
                let place = if back { word.checked_sub(step as usize) } else { Some(word + step as usize) };
                place.and_then(|place| self.read.get(place)).copied().unwrap_or(0)
            };
            let (left, right) = if step == 0 { (below, above) } else { (at(true), at(false)) };
            if left != 0 {
                nearest = nearest.min(step * 64 + bit - (63 - left.leading_zeros()));
            }
            if right != 0 {
                let first = right.trailing_zeros();
                nearest = nearest.min(if step == 0 { first + 1 } else { step * 64 + first - bit });
            }
            if nearest <= step * 64 {
                break;
            }
        }
        nearest.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_nearest_is_found(numbers in prop::collection::vec(0u32..3000, 1..60)) {
            let mut inodes = Inodes::default();
            let mut before: Vec<u32> = Vec::new();
            for number in numbers {
                let others = before.iter().filter(|&&other| other != number).map(|other| other.abs_diff(number)).min();
                prop_assert_eq!(inodes.read(number), others.unwrap_or(DISTANCE_MAX).min(DISTANCE_MAX));
                before.push(number);
            }
        }
    }
}
