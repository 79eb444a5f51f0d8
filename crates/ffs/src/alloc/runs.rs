//! Where in a group's free map there are runs of fragments of each length, so that none of the map has to be searched.

use crate::format::Bitmap;

/// By length of a run: the words (of 64 fragments) of a free map in which some block that is not wholly free has a run
/// of exactly that length.
#[derive(Clone, Debug, Default)]
pub(super) struct RunWords {
    /// `len - 1` after `len - 1`, `stride` words each.
    sets: Vec<u64>,
    stride: usize,
    per_block: u32,
}

impl RunWords {
    /// Of a map of `frags` fragments.
    pub(super) fn new(map: &Bitmap, frags: u32, per_block: u32) -> RunWords {
        let words = frags.div_ceil(64) as usize;
        let stride = words.div_ceil(64);
        let lengths = per_block.saturating_sub(1) as usize;
        let mut runs = RunWords { sets: vec![0; stride * lengths], stride, per_block };
        for word in 0..words {
            runs.update(map, word as u32 * 64);
        }
        runs
    }

    /// The map has changed in the block of a fragment.
    pub(super) fn update(&mut self, map: &Bitmap, frag: u32) {
        if self.per_block < 2 {
            return;
        }
        let word = frag as usize / 64;
        let lengths = map.runs_in_word(word, self.per_block) >> 1;
        let (at, bit) = (word / 64, word % 64);
        for (length, set) in self.sets.chunks_exact_mut(self.stride).enumerate() {
            if let Some(place) = set.get_mut(at) {
                *place = *place & !(1 << bit) | u64::from(lengths >> length & 1) << bit;
            }
        }
    }

    /// The first byte of the map from `from` on and before `to` that has a run of exactly `len`, fewer than a block
    /// has.
    pub(super) fn next_byte(&self, map: &Bitmap, from: usize, to: usize, len: u32) -> Option<usize> {
        let mut word = from / 8;
        loop {
            word = self.next_word(word, len)?;
            if word * 8 >= to {
                return None;
            }
            // The first word may have it only before `from`.
            let first = from.saturating_sub(word * 8);
            if let Some(byte) = map.byte_with_run(word, first, len, self.per_block) {
                return Some(word * 8 + byte).filter(|byte| *byte < to);
            }
            word += 1;
        }
    }

    fn next_word(&self, from: usize, len: u32) -> Option<usize> {
        let set = self.sets.chunks_exact(self.stride.max(1)).nth(len.checked_sub(1)? as usize)?;
        let first = from / 64;
        let here = set.get(first)? & (u64::MAX << (from % 64));
        if here != 0 {
            return Some(first * 64 + here.trailing_zeros() as usize);
        }
        let (at, word) = set.iter().enumerate().skip(first + 1).find(|(_, word)| **word != 0)?;
        Some(at * 64 + word.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_in_blocks_are_found_by_byte() {
        let mut bytes: Vec<u8> = (0..64_u32).map(|i| (i * 89 + i / 7) as u8).chain([0; 600]).chain([255; 9]).collect();
        bytes.extend([0b0110_0010, 0, 0b1110_0111]);
        for per_block in [1, 2, 4, 8] {
            let mut map = Bitmap::new(bytes.len() * 8);
            let mut runs = RunWords::new(&map, bytes.len() as u32 * 8, per_block);
            // Bit by bit, as fragments are given back.
            for bit in (0..bytes.len() * 8).filter(|bit| bytes[bit / 8] >> (bit % 8) & 1 == 1) {
                map.put(bit, true);
                runs.update(&map, bit as u32);
            }
            for run in 1..per_block {
                let has = |byte: usize| {
                    (byte * 8..byte * 8 + 8).step_by(per_block as usize).any(|block| {
                        let bits: Vec<bool> = (0..per_block as usize).map(|i| map.get(block + i)).collect();
                        bits.split(|set| !set).any(|set| set.len() == run as usize)
                    })
                };
                let has: Vec<bool> = (0..bytes.len()).map(has).collect();
                for from in (0..70).chain(655..bytes.len()) {
                    for to in [bytes.len(), 50, 670] {
                        let expected = (from..to).find(|byte| has[*byte]);
                        assert_eq!(runs.next_byte(&map, from, to, run), expected, "{run} of {per_block} from {from}");
                    }
                }
            }
        }
    }
}
