//! Bitmaps as cylinder groups keep them: bit n is bit n % 8 of byte n / 8, whatever the byte order.

/// A bitmap of whole bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len_bytes: usize,
}

impl Bitmap {
    /// All clear.
    pub fn new(bits: usize) -> Bitmap {
        let len_bytes = bits.div_ceil(8);
        Bitmap { words: vec![0; len_bytes.div_ceil(8)], len_bytes }
    }

    /// From its bytes.
    pub fn from_bytes(bytes: &[u8]) -> Bitmap {
        let words = bytes.chunks(8).map(|chunk| {
            let mut raw = [0; 8];
            for (place, byte) in raw.iter_mut().zip(chunk) {
                *place = *byte;
            }
            u64::from_le_bytes(raw)
        });
        Bitmap { words: words.collect(), len_bytes: bytes.len() }
    }

    /// Writes its bytes over the first ones of `bytes`.
    pub fn write_to(&self, bytes: &mut [u8]) {
        let all = self.words.iter().flat_map(|word| word.to_le_bytes());
        for (place, byte) in bytes.iter_mut().zip(all.take(self.len_bytes)) {
            *place = byte;
        }
    }

    /// How many bits there are room for.
    pub fn capacity(&self) -> usize {
        self.len_bytes * 8
    }

    /// Whether a bit is set; one that is not there is clear.
    #[inline]
    pub fn get(&self, bit: usize) -> bool {
        self.words.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// Sets or clears a bit.
    ///
    /// # Panics
    /// There is none.
    #[inline]
    pub fn put(&mut self, bit: usize, value: bool) {
        assert!(bit < self.capacity(), "bit {bit} of a map of {}", self.capacity());
        let word = &mut self.words[bit / 64];
        *word = *word & !(1 << (bit % 64)) | u64::from(value) << (bit % 64);
    }

    /// Sets or clears `n` bits from `from` on.
    ///
    /// # Panics
    /// There are not so many.
    #[inline]
    pub fn put_range(&mut self, from: usize, n: usize, value: bool) {
        if n < 64
            && from % 64 + n <= 64
            && from + n <= self.capacity()
            && let Some(word) = self.words.get_mut(from / 64)
        {
            let mask = ((1_u64 << n) - 1) << (from % 64);
            *word = *word & !mask | if value { mask } else { 0 };
            return;
        }
        self.put_long_range(from, n, value);
    }

    fn put_long_range(&mut self, from: usize, n: usize, value: bool) {
        let end = from + n;
        assert!(end <= self.capacity(), "bits {from} to {end} of a map of {}", self.capacity());
        let mut bit = from;
        while bit < end {
            let here = (64 - bit % 64).min(end - bit);
            if let Some(word) = self.words.get_mut(bit / 64) {
                let mask = u64::MAX >> (64 - here) << (bit % 64);
                *word = if value { *word | mask } else { *word & !mask };
            }
            bit += here;
        }
    }

    /// `n` bits (at most 8, inside one aligned group of 8) from `from` on, the first lowest: the fragments of a block.
    #[inline]
    pub fn bits(&self, from: usize, n: usize) -> u8 {
        let word = self.words.get(from / 64).copied().unwrap_or(0) >> (from % 64);
        (word & ((1_u64 << n.min(8)) - 1)) as u8
    }

    /// How many bits are set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The first set bit at or after `from` and before `to`.
    pub fn next_set(&self, from: usize, to: usize) -> Option<usize> {
        let mut bit = from;
        while bit < to {
            let word = self.words.get(bit / 64)? >> (bit % 64);
            if word != 0 {
                let found = bit + word.trailing_zeros() as usize;
                return (found < to).then_some(found);
            }
            bit = (bit / 64 + 1) * 64;
        }
        None
    }

    /// The first clear bit at or after `from` and before `to`.
    pub fn next_clear(&self, from: usize, to: usize) -> Option<usize> {
        let mut bit = from;
        while bit < to.min(self.capacity()) {
            let word = !self.words.get(bit / 64)? >> (bit % 64);
            if word != 0 {
                let found = bit + word.trailing_zeros() as usize;
                return (found < to.min(self.capacity())).then_some(found);
            }
            bit = (bit / 64 + 1) * 64;
        }
        None
    }

    /// How many set bits follow one another from `from` on, at most `most` (no more than 63), before `to`.
    #[inline]
    pub fn run_from(&self, from: usize, to: usize, most: usize) -> usize {
        let most = most.min(63).min(to.saturating_sub(from));
        ((!self.window(from)).trailing_zeros() as usize).min(most)
    }

    /// How many set bits follow one another just before `end`, at most `most` (no more than 63).
    #[inline]
    pub fn run_before(&self, end: usize, most: usize) -> usize {
        let most = most.min(63).min(end);
        let Some(start) = end.checked_sub(64) else {
            let word = self.window(0) << (64 - end.clamp(1, 64));
            return ((!word).leading_zeros() as usize).min(most);
        };
        ((!self.window(start)).leading_zeros() as usize).min(most)
    }

    /// How many set bits follow one another just before `n` bits at `from`, and just after them before `to`: at most
    /// `most` (no more than 63) of each.
    #[inline]
    pub fn runs_around(&self, from: usize, n: usize, to: usize, most: usize) -> (usize, usize) {
        const SIDE: usize = 16;
        if n > 64 - 2 * SIDE || most > SIDE {
            return (self.run_before(from, most), self.run_from(from + n, to, most));
        }
        let base = from.saturating_sub(SIDE);
        let (around, before) = (self.window(base), from - base);
        let behind = (!(around >> (before + n))).trailing_zeros() as usize;
        // Bits that are shifted in are clear: no more are counted than there are.
        let ahead = if before == 0 { 0 } else { (!(around << (64 - before))).leading_zeros() as usize };
        (ahead.min(most), behind.min(most).min(to.saturating_sub(from + n)))
    }

    /// 64 bits from `from` on; those that are not there are clear.
    #[inline]
    fn window(&self, from: usize) -> u64 {
        let (word, shift) = (from / 64, from % 64);
        let low = self.words.get(word).copied().unwrap_or(0) >> shift;
        if shift == 0 {
            return low;
        }
        low | self.words.get(word + 1).copied().unwrap_or(0) << (64 - shift)
    }

    /// Where the first `len` set bits in a row begin, at or after `from`, ending at or before `to`.
    pub fn next_run(&self, from: usize, to: usize, len: usize) -> Option<usize> {
        if (1..=32).contains(&len) { self.next_short_run(from, to, len) } else { self.next_long_run(from, to, len) }
    }

    /// By windows of 64 bits, each of which is folded until the bits left are beginnings of runs.
    fn next_short_run(&self, from: usize, to: usize, len: usize) -> Option<usize> {
        let to = to.min(self.capacity());
        let mut at = from;
        while at + len <= to {
            let beyond = 64 - (to - at).min(64);
            let mut starts = self.window(at) << beyond >> beyond;
            let mut folded = 1;
            while folded < len {
                let step = folded.min(len - folded);
                starts &= starts >> step;
                folded += step;
            }
            if starts != 0 {
                return Some(at + starts.trailing_zeros() as usize);
            }
            at += 65 - len;
        }
        None
    }

    fn next_long_run(&self, from: usize, to: usize, len: usize) -> Option<usize> {
        let mut start = self.next_set(from, to)?;
        loop {
            let end = self.next_clear(start, to).unwrap_or(to.min(self.capacity()));
            if end - start >= len {
                return Some(start);
            }
            start = self.next_set(end, to)?;
        }
    }

    /// The lengths of runs that the blocks of `per_block` bits in a word of 64 have, a bit for each: maximal runs of
    /// set bits, fewer than all of their block.
    #[inline]
    pub(crate) fn runs_in_word(&self, word: usize, per_block: u32) -> u8 {
        let log = per_block.trailing_zeros() as usize;
        let (Some(word), Some(table), Some(inside)) = (self.words.get(word), RUNS.get(log), INSIDE.get(log)) else {
            return 0;
        };
        let mut edges = edges(*word, *inside);
        let mut lengths = 0;
        while edges != 0 {
            let byte = edges.trailing_zeros() as usize / 8;
            lengths |= table.get(usize::from((word >> (byte * 8)) as u8)).copied().unwrap_or(0);
            edges &= !(0xFF << (byte * 8));
        }
        // Other blocks of these bytes may be wholly free.
        lengths & ((1_u16 << per_block.min(8)) - 1) as u8
    }

    /// The first byte of a word of 64 bits, from its byte `first` on, of which some block of `per_block` bits has a
    /// maximal run of exactly `run` set bits, fewer than all.
    #[inline]
    pub(crate) fn byte_with_run(&self, word: usize, first: usize, run: u32, per_block: u32) -> Option<usize> {
        let (log, wanted) = (per_block.trailing_zeros() as usize, 1_u8 << run.min(7));
        let (word, table) = (*self.words.get(word)?, RUNS.get(log)?);
        let mut edges = edges(word, *INSIDE.get(log)?);
        while edges != 0 {
            let byte = edges.trailing_zeros() as usize / 8;
            let bits = (word >> (byte * 8)) as u8;
            if byte >= first && table.get(usize::from(bits)).is_some_and(|runs| runs & wanted != 0) {
                return Some(byte);
            }
            edges &= !(0xFF << (byte * 8));
        }
        None
    }

    /// The last set bit before `to`.
    pub fn last_set(&self, to: usize) -> Option<usize> {
        (0..to.min(self.capacity())).rev().find(|bit| self.get(*bit))
    }
}

/// Bits that differ from the next one of their block: only blocks partly free have any.
#[inline]
fn edges(word: u64, inside: u64) -> u64 {
    (word ^ (word >> 1)) & inside
}

/// By log2 of the bits of a block: the bits that have a next one in the same block.
static INSIDE: [u64; 4] = [0, 0x5555_5555_5555_5555, 0x7777_7777_7777_7777, 0x7F7F_7F7F_7F7F_7F7F];

/// By log2 of the bits of a block, by byte: bit n is set if some block in the byte has a maximal run of n set bits
/// (`fragtbl` of `ffs_tables.c`). Runs of a whole block of 8 are left out.
static RUNS: [[u8; 256]; 4] = [run_table(1), run_table(2), run_table(4), run_table(8)];

const fn run_table(per_block: u32) -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut run) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                run += 1;
            }
            let ends = byte >> bit & 1 == 0 || (bit + 1) % per_block == 0;
            if ends {
                if run > 0 && run < 8 {
                    table[byte] |= 1 << run;
                }
                run = 0;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::Bitmap;

    #[test]
    fn runs_are_found() {
        let mut map = Bitmap::new(256);
        for (from, len) in [(3, 2), (10, 70), (100, 5), (190, 66)] {
            map.put_range(from, len, true);
        }
        for bit in 0..256_usize {
            let after = (bit..256).take_while(|b| map.get(*b)).count();
            let before = (0..bit).rev().take_while(|b| map.get(*b)).count();
            for most in [0, 1, 7, 16] {
                assert_eq!(
                    (map.run_from(bit, 256, most), map.run_before(bit, most)),
                    (after.min(most), before.min(most))
                );
            }
            for (n, to) in [(1, 256), (7, 256), (30, 256), (33, 256), (64, 256), (3, 200)] {
                for most in [1, 7, 16, 20] {
                    let expected = (map.run_before(bit, most), map.run_from(bit + n, to, most));
                    assert_eq!(map.runs_around(bit, n, to, most), expected, "{n} at {bit}");
                }
            }
            assert_eq!(map.run_from(bit, 200, 16), after.min(16).min(200_usize.saturating_sub(bit)), "{bit}");
            let clear = (bit..256).find(|b| !map.get(*b));
            assert_eq!(map.next_clear(bit, 256), clear);
            for len in 1..80 {
                let run = (bit..256).find(|b| b + len <= 250 && (*b..b + len).all(|b| map.get(b)));
                assert_eq!(map.next_run(bit, 250, len), run, "{len} from {bit}");
            }
        }
    }

    #[test]
    fn ranges_are_put_as_their_bits_are() {
        for (from, n) in [(0, 0), (0, 64), (3, 61), (3, 62), (60, 70), (64, 128), (1, 150), (190, 10), (200, 0)] {
            for value in [true, false] {
                let (mut range, mut bits) = (Bitmap::new(200), Bitmap::new(200));
                if !value {
                    range.put_range(0, 200, true);
                    (0..200).for_each(|bit| bits.put(bit, true));
                }
                range.put_range(from, n, value);
                (from..from + n).for_each(|bit| bits.put(bit, value));
                assert_eq!(range, bits, "{n} from {from}");
            }
        }
    }

    #[test]
    fn bytes_come_back_and_bits_are_found() {
        for len in [0, 1, 7, 8, 9, 23] {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 37 + 11) as u8).collect();
            let map = Bitmap::from_bytes(&bytes);
            let mut back = vec![0; len];
            map.write_to(&mut back);
            assert_eq!(back, bytes);
            for bit in 0..len * 8 {
                assert_eq!(map.get(bit), bytes[bit / 8] >> (bit % 8) & 1 == 1);
                let next = (bit..len * 8).find(|b| map.get(*b));
                assert_eq!(map.next_set(bit, len * 8), next);
            }
        }
        let mut map = Bitmap::new(100);
        map.put_range(60, 10, true);
        assert_eq!((map.count(), map.bits(64, 4), map.bits(68, 4)), (10, 0b1111, 0b0011));
        assert_eq!((map.next_set(0, 100), map.next_set(70, 100), map.last_set(100)), (Some(60), None, Some(69)));
        assert!(!map.get(200), "a bit that is not there is clear");
        let beyond = |change: fn(&mut Bitmap)| std::panic::catch_unwind(|| change(&mut Bitmap::new(100))).is_err();
        assert!(beyond(|map| map.put(200, true)) && beyond(|map| map.put_range(90, 20, true)));
    }
}
