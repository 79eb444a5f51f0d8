//! Where a file's blocks lie: direct pointers in the inode, the others in indirect blocks kept as plain lists.
//!
//! Indirect blocks have negative numbers, as in 4.4BSD (`ufs_getlbns`): one that reaches the blocks from `first` on has
//! number `-first` if it points to data, `-first - 1` if to such blocks, `-first - 2` one level above.

use std::collections::BTreeMap;

/// Direct pointers of an inode.
pub const NDADDR: usize = 12;
/// Indirect pointers of an inode.
pub const NIADDR: usize = 3;

/// Block addresses as they are on disk: 0 is a hole.
pub type Pointer = i64;

/// The indirect blocks of a file.
#[derive(Clone, Debug, Default)]
pub struct Indirects {
    /// Those that point to data, by the first block they reach.
    pub leaves: BTreeMap<u64, Leaf>,
    /// The others, by number: where they lie.
    pub upper: BTreeMap<i64, Pointer>,
}

/// An indirect block that points to data.
#[derive(Clone, Debug, Default)]
pub struct Leaf {
    /// Where it lies.
    pub addr: Pointer,
    /// Its pointers; those behind the end are 0.
    pub pointers: Vec<Pointer>,
}

/// The way to a block behind the direct ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Which of the inode's indirect pointers.
    pub slot: usize,
    /// Numbers of the indirect blocks on the way, top first; `slot + 1` of them count.
    pub numbers: [i64; NIADDR],
    /// First block that the last of them reaches.
    pub leaf: u64,
    /// The place in it.
    pub index: usize,
}

/// The way to a block; `None` for a direct one, or one that no pointer reaches. `n` is how many pointers a block has.
pub fn way(lbn: u64, n: u64) -> Option<Way> {
    let mut rest = lbn.checked_sub(NDADDR as u64)?;
    let mut span = n;
    for slot in 0..NIADDR {
        if rest < span {
            let mut numbers = [0; NIADDR];
            let mut first = lbn - rest;
            let mut reach = span;
            for (level, number) in (0..=slot as i64).rev().zip(numbers.iter_mut()) {
                *number = -(first as i64) - level;
                if level > 0 {
                    reach /= n;
                    first += rest / reach * reach;
                    rest %= reach;
                }
            }
            return Some(Way { slot, numbers, leaf: first, index: rest as usize });
        }
        rest -= span;
        span = span.checked_mul(n)?;
    }
    None
}

/// What the number of an indirect block says: the first block it reaches, and its level (0: it points to data).
pub fn of_number(number: i64, n: u64) -> Option<(u64, u32)> {
    let x = number.checked_neg().filter(|x| *x >= NDADDR as i64)? as u64;
    let level = (x - NDADDR as u64) % n;
    (level < NIADDR as u64).then_some((x - level, level as u32))
}

impl Indirects {
    /// Where an indirect block lies; 0 if there is none.
    pub fn addr(&self, number: i64, n: u64) -> Pointer {
        match of_number(number, n) {
            Some((first, 0)) => self.leaves.get(&first).map_or(0, |leaf| leaf.addr),
            Some(_) => self.upper.get(&number).copied().unwrap_or(0),
            None => 0,
        }
    }

    /// The pointers of an indirect block as they are on disk: place and address, those that are not 0.
    pub fn content(&self, number: i64, n: u64, each: &mut dyn FnMut(usize, Pointer)) {
        let Some((first, level)) = of_number(number, n) else { return };
        let span = n.pow(level);
        let reach = first..first.saturating_add(span.saturating_mul(n));
        match level {
            0 => {
                let pointers = self.leaves.get(&first).map(|leaf| leaf.pointers.as_slice()).unwrap_or_default();
                pointers.iter().enumerate().filter(|(_, addr)| **addr != 0).for_each(|(at, addr)| each(at, *addr));
            }
            1 => {
                for (leaf_first, leaf) in self.leaves.range(reach) {
                    each(((leaf_first - first) / span) as usize, leaf.addr);
                }
            }
            _ => {
                for (child, addr) in &self.upper {
                    if let Some((child_first, 1)) = of_number(*child, n)
                        && reach.contains(&child_first)
                    {
                        each(((child_first - first) / span) as usize, *addr);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_and_numbers() {
        let n = 4;
        assert_eq!(way(11, n), None);
        let single = way(13, n).unwrap();
        assert_eq!((single.slot, single.numbers[0], single.leaf, single.index), (0, -12, 12, 1));
        let double = way(12 + 4 + 6, n).unwrap();
        assert_eq!((double.slot, &double.numbers[..2], double.leaf, double.index), (1, &[-17, -20][..], 20, 2));
        let triple = way(12 + 4 + 16 + 16 + 5, n).unwrap();
        // The triple one reaches from 32 on; its second child from 48, whose second from 52.
        assert_eq!((triple.slot, triple.numbers, triple.leaf, triple.index), (2, [-34, -49, -52], 52, 1));
        assert_eq!(way(12 + 4 + 16 + 64, n), None);
        assert_eq!(of_number(-34, n), Some((32, 2)));
        assert_eq!(of_number(-49, n), Some((48, 1)));
        assert_eq!(of_number(-52, n), Some((52, 0)));
        assert_eq!((of_number(-3, n), of_number(5, n)), (None, None));
    }
}
