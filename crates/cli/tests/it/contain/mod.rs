//! A recording, a plan or an image from somebody else, made use of beside a tree that nobody may touch.
//!
//! The judges are the kernel's: inotify(7) says whether anything outside was opened, read, changed or made, `lstat`
//! whether names, modes, owners, sizes or times differ, and the bytes are compared. `FSAGE_CONTAIN_CALLS` sets how many
//! hostile calls, operations or names the property tests make (a million in the long setting), `FSAGE_CONTAIN_SEED`
//! makes one seed again. A `find /` of somebody else's is seen too: in the long setting, point TMPDIR at a directory
//! that nobody else looks into.

mod images;
mod plans;
mod recordings;
mod stage;

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What is at random here, by a seed.
struct Dice(Xoshiro256PlusPlus);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.0.next_u64() % n as u64).expect("less than n")
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A setting of the tests.
fn number(name: &str) -> Option<u64> {
    testkit::parameter(name)
}

/// The seeds to try, one after the other, until a run of them has made so many calls.
struct Seeds {
    next: u64,
    only: bool,
    made: u64,
    wanted: u64,
}

impl Seeds {
    fn new(usual_calls: u64) -> Seeds {
        let only = number("FSAGE_CONTAIN_SEED");
        let wanted = number("FSAGE_CONTAIN_CALLS").unwrap_or(usual_calls);
        Seeds { next: only.unwrap_or(1), only: only.is_some(), made: 0, wanted }
    }

    /// The next seed, if more is to be done.
    fn next(&mut self) -> Option<u64> {
        if self.made >= self.wanted || self.only && self.made > 0 {
            return None;
        }
        println!("seed {}", self.next);
        self.next += 1;
        Some(self.next - 1)
    }
}
