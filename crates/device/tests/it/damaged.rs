//! Texts as they come from elsewhere: damaged.

use rand_core::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Damages a text in a few places.
pub fn damage(text: &str, rng: &mut Xoshiro256PlusPlus) -> String {
    const PARTS: [&str; 14] =
        ["0", "-1", "99999999999999999999", "nan", "1e300", "[", "]", "\"", "\n", "=", "0.0", "4294967295", "R", ""];
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + rng.next_u64() % 3 {
        let at = rng.next_u64() as usize % bytes.len().max(1);
        // Numbers are what most damage is done with.
        let at = (at..bytes.len()).find(|&n| bytes[n].is_ascii_digit()).unwrap_or(at);
        let end = (at + rng.next_u64() as usize % 6).min(bytes.len());
        bytes.splice(at..end, PARTS[rng.next_u64() as usize % PARTS.len()].bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
