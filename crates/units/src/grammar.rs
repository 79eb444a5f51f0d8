//! The grammar: a number (`16`, `1.5`), and its unit behind it with or without a space (`1.5G`, `800 ns`).

use std::fmt;

/// What is wrong with a text, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrammarError {
    /// Characters before the place.
    pub at: usize,
    /// What is wrong there.
    pub problem: &'static str,
}

impl fmt::Display for GrammarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.problem)
    }
}

impl std::error::Error for GrammarError {}

/// The names of each unit, in small letters, and the power of two it stands for.
const SIZES: [(&[&str], u32); 5] = [
    (&["", "b"], 0),
    (&["k", "kb", "kib"], 10),
    (&["m", "mb", "mib"], 20),
    (&["g", "gb", "gib"], 30),
    (&["t", "tb", "tib"], 40),
];

/// The names of each unit, and its nanoseconds. Both letters that look like µ are taken.
const TIMES: [(&[&str], f64); 6] = [
    (&["ns"], 1.0),
    (&["us", "µs", "μs"], 1e3),
    (&["ms"], 1e6),
    (&["s"], 1e9),
    (&["m", "min"], 60e9),
    (&["h"], 3600e9),
];

/// The number, and the letters at the end.
fn split(text: &str) -> (&str, &str) {
    let number = text.trim_end_matches(char::is_alphabetic);
    (number.trim_end(), &text[number.len()..])
}

/// Where the unit starts, in characters.
fn unit_at(text: &str, unit: &str) -> usize {
    text.chars().count() - unit.chars().count()
}

/// Digits with at most one point among them: no sign, no exponent, no infinity.
fn decimal(number: &str) -> Option<(&str, &str)> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(whole) && digits(part) && !(whole.is_empty() && part.is_empty())).then_some((whole, part))
}

/// Bytes of a size: `4096`, `64K`, `1.5G`, `16 GiB`. Units are powers of 1024, `K`, `KB` and `KiB` the same, in
/// capitals or not; what is less than a byte is dropped. At most 2^63 - 1 bytes, which is as long as a file can be.
pub fn size_bytes(text: &str) -> Result<u64, GrammarError> {
    const MISSING: GrammarError = GrammarError { at: 0, problem: "a size is missing" };
    const TOO_LARGE: GrammarError = GrammarError { at: 0, problem: "the size is too large" };
    let (number, unit) = split(text);
    let small = unit.to_ascii_lowercase();
    let known = SIZES.iter().find(|(names, _)| names.contains(&small.as_str()));
    let &(_, shift) = known.ok_or(GrammarError { at: unit_at(text, unit), problem: "this is no unit of size" })?;
    if number.is_empty() {
        return Err(MISSING);
    }
    let (whole, part) = decimal(number).ok_or(GrammarError { at: 0, problem: "this is no number" })?;
    // Further digits are worth less than a byte even of tebibytes, and so many keep the sum below 2^128.
    let part = part.get(..part.len().min(18)).unwrap_or_default();
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse::<u64>().map_err(|_| TOO_LARGE)?.into() };
    let scale = 10u128.pow(u32::try_from(part.len()).unwrap_or(0));
    let part: u128 = if part.is_empty() { 0 } else { part.parse().map_err(|_| TOO_LARGE)? };
    let bytes = (whole << shift) + (part << shift) / scale;
    u64::try_from(bytes).ok().filter(|bytes| *bytes <= i64::MAX.unsigned_abs()).ok_or(TOO_LARGE)
}

/// Nanoseconds of a time: `1.5us`, `800 ns`, `50ms`, `90s`, `5m`, `1.5h`. A number alone is refused, and so is what is
/// negative or not finite.
pub fn duration_ns(text: &str) -> Result<f64, GrammarError> {
    let (number, unit) = split(text);
    let known = TIMES.iter().find(|(names, _)| names.contains(&unit));
    let &(_, scale) = known.ok_or(GrammarError { at: unit_at(text, unit), problem: "this is no unit of time" })?;
    let value: f64 = number.parse().map_err(|_| GrammarError { at: 0, problem: "this is no number" })?;
    let ns = value * scale;
    if ns.is_finite() && ns >= 0.0 { Ok(ns) } else { Err(GrammarError { at: 0, problem: "the time is out of range" }) }
}

/// A share, 0 to 1: `90%`, `90` and `0.9` are the same. A bare number above 1 is per cent.
pub fn share(text: &str) -> Result<f64, GrammarError> {
    let (number, percent) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), true),
        None => (text, false),
    };
    let value: f64 =
        number.parse().map_err(|_| GrammarError { at: 0, problem: "this is no share; write 90% or 0.9" })?;
    let share = if percent || value > 1.0 { value / 100.0 } else { value };
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(GrammarError { at: 0, problem: "not between 0 and 100 %" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes() {
        let written = [
            ("4096", 4096),
            ("0", 0),
            ("512B", 512),
            ("64K", 65536),
            ("64k", 65536),
            ("64KB", 65536),
            ("64 KiB", 65536),
            ("1.5G", 1_610_612_736),
            ("1.5 GiB", 1_610_612_736),
            (".5k", 512),
            ("0.1K", 102),
            ("16g", 16 << 30),
            ("2T", 2 << 40),
            // A float has lost the last bytes of this one.
            ("9007199254740993", 9_007_199_254_740_993),
            ("9223372036854775807", i64::MAX as u64),
        ];
        for (text, bytes) in written {
            assert_eq!(size_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_says_where() {
        let refused = [
            ("", 0, "a size is missing"),
            ("G", 0, "a size is missing"),
            ("1X", 1, "this is no unit of size"),
            ("1.5 Gx", 4, "this is no unit of size"),
            ("1e3", 0, "this is no number"),
            ("-1", 0, "this is no number"),
            ("1.2.3", 0, "this is no number"),
            (".", 0, "this is no number"),
            ("9999999T", 0, "the size is too large"),
            ("9223372036854775808", 0, "the size is too large"),
            ("99999999999999999999", 0, "the size is too large"),
        ];
        for (text, at, problem) in refused {
            assert_eq!(size_bytes(text), Err(GrammarError { at, problem }), "{text}");
        }
    }

    #[test]
    fn times() {
        let written = [
            ("1.5us", 1500.0),
            ("1.5 µs", 1500.0),
            ("1.5μs", 1500.0),
            ("800ns", 800.0),
            ("2 ms", 2e6),
            ("0.25s", 2.5e8),
            ("5m", 300e9),
            ("5 min", 300e9),
            ("1.5h", 5400e9),
            ("1e3s", 1e12),
        ];
        for (text, ns) in written {
            assert_eq!(duration_ns(text), Ok(ns), "{text}");
        }
        for text in ["", "5", "m", "us", "-1us", "infs", "inf s", "nanms", "nan ms", "1 M", "1e400s", "1,5us", "5 days"]
        {
            assert!(duration_ns(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares() {
        for (text, expected) in [("90%", 0.9), ("90 %", 0.9), ("90", 0.9), ("0.9", 0.9), ("1", 1.0), ("0", 0.0)] {
            assert_eq!(share(text), Ok(expected), "{text}");
        }
        for text in ["", "x", "%", "101%", "-1", "nan"] {
            assert!(share(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = (size_bytes(&text), duration_ns(&text), share(&text));
        }

        /// A fraction of a unit is what exact arithmetic makes of it.
        #[test]
        fn tenths_are_exact(tenths in 0u64..1 << 30, unit in 0u32..5) {
            let text = format!("{}.{}{}", tenths / 10, tenths % 10, ["", "K", "m", "GiB", "t"][unit as usize]);
            let bytes = (u128::from(tenths) << (10 * unit)) / 10;
            if let Ok(bytes) = i64::try_from(bytes) {
                prop_assert_eq!(size_bytes(&text), Ok(bytes as u64));
            } else {
                prop_assert!(size_bytes(&text).is_err());
            }
        }
    }
}
