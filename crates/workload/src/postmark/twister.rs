//! The Mersenne Twister MT19937 (Matsumoto and Nishimura, ACM TOMACS 8(1), 1998) with the seeding of its 1999 version,
//! which is what PostMark draws from: with it the same settings give the same files.

const WORDS: usize = 624;
const DISTANCE: usize = 397;

/// The generator.
#[derive(Clone, Debug)]
pub(crate) struct Twister {
    state: [u32; WORDS],
    at: usize,
}

impl Twister {
    /// Each word takes the upper halves of two steps of a linear congruential generator.
    pub(crate) fn new(seed: u32) -> Twister {
        let mut congruential = seed;
        let mut upper = || {
            let half = congruential & 0xffff_0000;
            congruential = congruential.wrapping_mul(69069).wrapping_add(1);
            half
        };
        let state = std::array::from_fn(|_| {
            let (first, second) = (upper(), upper());
            first | second >> 16
        });
        Twister { state, at: WORDS }
    }

    fn refill(&mut self) {
        for at in 0..WORDS {
            let (next, far) = (self.state[(at + 1) % WORDS], self.state[(at + DISTANCE) % WORDS]);
            let mixed = (self.state[at] & 0x8000_0000) | (next & 0x7fff_ffff);
            let twist = if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[at] = far ^ (mixed >> 1) ^ twist;
        }
        self.at = 0;
    }

    fn draw(&mut self) -> u32 {
        if self.at == WORDS {
            self.refill();
        }
        let mut word = self.state[self.at];
        self.at += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// A number in `0..n` as PostMark takes it, by remainder. Nothing is drawn where `n` is 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { u64::from(self.draw()) % n }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_another_implementation() {
        // Python's generator, its state set to the same 624 words.
        let mut twister = Twister::new(4357);
        assert_eq!([0; 5].map(|_| twister.draw()), [2867219139, 1585203162, 3113124129, 2953900839, 2463794868]);
    }
}
