//! Durations as people write them: `1.5us`, `50ms`, `800 ns`, `2s`.

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration; write a number with a unit: ns, us, ms or s (\"1.5us\")")]
pub struct DurationError {
    text: String,
}

/// Nanoseconds of a duration such as `1.5us`. Units: `ns`, `us` (or `µs`), `ms`, `s`; a bare number is refused, as is anything
/// negative or not finite.
pub fn parse_duration_ns(text: &str) -> Result<f64, DurationError> {
    let refused = || DurationError { text: text.chars().take(40).collect() };
    let trimmed = text.trim();
    // Units that end in another unit's name come first.
    let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (number, factor) =
        units.iter().find_map(|&(unit, factor)| Some((trimmed.strip_suffix(unit)?, factor))).ok_or_else(refused)?;
    let value: f64 = number.trim_end().parse().map_err(|_| refused())?;
    let ns = value * factor;
    if ns.is_finite() && ns >= 0.0 { Ok(ns) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::parse_duration_ns;

    #[test]
    fn units() {
        assert_eq!(parse_duration_ns("1.5us"), Ok(1500.0));
        assert_eq!(parse_duration_ns("1.5 µs"), Ok(1500.0));
        assert_eq!(parse_duration_ns("800ns"), Ok(800.0));
        assert_eq!(parse_duration_ns(" 2 ms "), Ok(2e6));
        assert_eq!(parse_duration_ns("0.25s"), Ok(2.5e8));
    }

    #[test]
    fn refused() {
        for text in ["", "5", "us", "-1us", "infs", "nanms", "1 m", "1e400s", "1,5us"] {
            assert!(parse_duration_ns(text).is_err(), "{text}");
        }
    }
}
