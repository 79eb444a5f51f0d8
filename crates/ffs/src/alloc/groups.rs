//! A set of groups that the next member can be found in without looking at each.

/// A set of groups.
#[derive(Clone, Debug)]
pub(super) struct GroupSet {
    words: Vec<u64>,
    len: u32,
}

impl GroupSet {
    pub(super) fn new(len: u32) -> GroupSet {
        GroupSet { words: vec![0; len.div_ceil(64) as usize], len }
    }

    #[inline]
    pub(super) fn contains(&self, group: u32) -> bool {
        self.words.get(group as usize / 64).is_some_and(|word| word >> (group % 64) & 1 == 1)
    }

    #[inline]
    pub(super) fn put(&mut self, group: u32, member: bool) {
        let word = &mut self.words[group as usize / 64];
        *word = *word & !(1 << (group % 64)) | u64::from(member) << (group % 64);
    }

    /// The first member from `from` on, going round.
    pub(super) fn next(&self, from: u32) -> Option<u32> {
        let from = if from < self.len { from } else { 0 };
        let first = from as usize / 64;
        let here = self.words.get(first)? & (u64::MAX << (from % 64));
        if here != 0 {
            return Some(first as u32 * 64 + here.trailing_zeros());
        }
        let behind = self.words.iter().enumerate().skip(first + 1);
        let before = self.words.iter().enumerate().take(first + 1);
        let (at, word) = behind.chain(before).find(|(_, word)| **word != 0)?;
        Some(at as u32 * 64 + word.trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::GroupSet;

    #[test]
    fn the_next_member_going_round() {
        let mut set = GroupSet::new(200);
        assert_eq!(set.next(7), None);
        for group in [3, 70, 199] {
            set.put(group, true);
        }
        let found: Vec<_> = [0, 3, 4, 70, 71, 199].map(|from| set.next(from)).into();
        assert_eq!(found, [Some(3), Some(3), Some(70), Some(70), Some(199), Some(199)]);
        set.put(199, false);
        assert_eq!(set.next(71), Some(3), "round the end");
        assert!(set.contains(70) && !set.contains(199));
    }
}
