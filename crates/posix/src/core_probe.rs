//! What else runs on this processor's core.
//!
//! Two hardware threads of a core share its units: while the other one is busy, the same system call takes up to twice
//! as long. In a virtual machine the other thread may be somebody else's, and is not seen. A short loop of operations
//! that do not wait for each other takes longer at the same times (`validation/core.c`).

use std::hint::black_box;
use std::time::Instant;

/// Long enough for the clock to tell, short enough to be made every few calls.
const STEPS: u64 = 1000;
const PLACES: usize = 128;

/// How long the loop takes now, nanoseconds: one or two microseconds.
pub fn ns() -> f64 {
    let places = black_box([7u64; PLACES]);
    let began = Instant::now();
    black_box(wide(&places));
    began.elapsed().as_nanos() as f64
}

/// Six chains of operations: more than one thread of a core can have of its units while another has them too.
#[inline(never)]
fn wide(places: &[u64; PLACES]) -> u64 {
    let (mut a, mut b, mut c, mut d, mut e, mut f) = (1u64, 2u64, 3u64, 4u64, 5u64, 6u64);
    for step in 0..STEPS {
        a = a.wrapping_mul(3).wrapping_add(places[step as usize % PLACES]);
        b = b.wrapping_add(a >> 3);
        c ^= places[step.wrapping_mul(7) as usize % PLACES];
        d = d.wrapping_add(c);
        e = e.wrapping_add(d ^ step);
        f = f.wrapping_add(e >> 1);
    }
    a ^ b ^ c ^ d ^ e ^ f
}
