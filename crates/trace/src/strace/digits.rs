//! Decimal digits at the start of a text.

/// Eight digits at the start of a text as a number, all of them at once.
#[inline]
pub(super) fn eight_digits(text: &[u8]) -> Option<u64> {
    const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);
    // What takes '9' + 1 to 0x80, and so marks every byte above '9' in its top bit.
    const ABOVE_NINE: u64 = u64::from_ne_bytes([0x7f - b'9'; 8]);
    const TOP_BITS: u64 = u64::from_ne_bytes([0x80; 8]);
    let bytes = u64::from_le_bytes(*text.first_chunk()?);
    let digits = bytes.wrapping_sub(ZEROS);
    if (bytes.wrapping_add(ABOVE_NINE) | digits) & TOP_BITS != 0 {
        return None;
    }
    // Neighbours make pairs (the first of two is the lower byte), pairs make fours, fours make eight.
    const PAIRS: u64 = 0x0000_00ff_0000_00ff;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let first = (pairs & PAIRS).wrapping_mul(100 + (1_000_000 << 32));
    let second = ((pairs >> 16) & PAIRS).wrapping_mul(1 + (10_000 << 32));
    Some(first.wrapping_add(second) >> 32)
}

/// A decimal number and what follows; `None` if there is none or it is too large.
#[inline]
pub(super) fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    /// So many digits always fit.
    const SAFE: usize = 19;
    // Most numbers are short.
    let long = text.get(7).filter(|b| b.is_ascii_digit()).and_then(|_| eight_digits(text));
    let (mut n, mut i) = long.map_or((0, 0), |n| (n, 8));
    while let Some(b @ b'0'..=b'9') = text.get(i) {
        let digit = u64::from(b - b'0');
        n = if i < SAFE { n * 10 + digit } else { n.checked_mul(10)?.checked_add(digit)? };
        i += 1;
    }
    (i > 0).then(|| (n, &text[i..]))
}

/// The digits after a decimal point as nanoseconds (further digits are dropped), and what follows.
#[inline]
pub(super) fn fraction_ns(text: &[u8]) -> Option<(u64, &[u8])> {
    let (mut ns, mut unit, mut i) = eight_digits(text).map_or((0, 100_000_000, 0), |n| (n * 10, 1, 8));
    while let Some(b @ b'0'..=b'9') = text.get(i) {
        ns += u64::from(b - b'0') * unit;
        unit /= 10;
        i += 1;
    }
    (i > 0).then(|| (ns, &text[i..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length() {
        for n in [0, 7, 10, 1_234_567, 12_345_678, 123_456_789, 1_795_232_076, u64::MAX / 10, u64::MAX] {
            for (before, behind) in [("", ""), ("", " "), ("0", ":"), ("00000000000000000000", "/")] {
                let text = format!("{before}{n}{behind}");
                assert_eq!(digits(text.as_bytes()), Some((n, behind.as_bytes())), "{text}");
            }
        }
        for text in ["", "x", "18446744073709551616", "99999999999999999999"] {
            assert_eq!(digits(text.as_bytes()), None, "{text}");
        }
        // Every byte in every place of eight.
        for place in 0..8 {
            for byte in 0..=u8::MAX {
                let mut text = *b"12345678";
                text[place] = byte;
                let want = std::str::from_utf8(&text)
                    .ok()
                    .and_then(|t| if t.starts_with('+') { None } else { t.parse().ok() });
                assert_eq!(eight_digits(&text), want, "{}", text.escape_ascii());
            }
        }
    }

    #[test]
    fn fractions_of_any_length() {
        for (text, ns) in [
            ("1", 100_000_000),
            ("000001", 1000),
            ("1234567", 123_456_700),
            ("12345678", 123_456_780),
            ("123456789", 123_456_789),
            ("1234567899", 123_456_789),
        ] {
            assert_eq!(fraction_ns(format!("{text}>").as_bytes()), Some((ns, &b">"[..])), "{text}");
        }
        assert_eq!(fraction_ns(b">"), None);
    }
}
