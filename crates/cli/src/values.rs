//! Values of options: sizes, spans of time and shares with their units.

/// A size in bytes: `4096`, `64K`, `16G`, `1.5T`.
pub fn size(text: &str) -> Result<u64, String> {
    units::size_bytes(text.trim()).map_err(|wrong| {
        format!("{wrong}; write bytes, or a number with K, M, G or T (powers of 1024), such as 64M or 1.5G")
    })
}

/// Several sizes, set apart by commas; `none` is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<u64>);

/// Sizes such as `64M,256M,1G`, each at least a page and once; they come out in order.
pub fn sizes(text: &str) -> Result<Sizes, String> {
    /// More are no curve that anybody reads, and each takes a prediction.
    const SIZES_MAX: usize = 64;
    if text.trim() == "none" {
        return Ok(Sizes(Vec::new()));
    }
    let mut sizes = text.split(',').map(size).collect::<Result<Vec<u64>, String>>()?;
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() > SIZES_MAX {
        return Err(format!("{} sizes; {SIZES_MAX} at most", sizes.len()));
    }
    match sizes.first() {
        Some(&least) if least < 4096 => Err(format!("{least} bytes are less than a page; the least is 4K")),
        _ => Ok(Sizes(sizes)),
    }
}

/// A span of time for a budget, in nanoseconds: `90s`, `5m`, `1.5h`, `500ms`.
pub fn span_ns(text: &str) -> Result<u64, String> {
    /// 30 years: no budget is longer, and the sum of a few is still a time.
    const MOST_NS: f64 = 1e18;
    match units::duration_ns(text.trim()) {
        Ok(ns) if ns <= MOST_NS => Ok(ns as u64),
        _ => Err(format!("{text:?} is not a span of time; write a number with ms, s, m or h (5m)")),
    }
}

/// A share: `90%`, `90` and `0.9` are the same. A bare number above 1 is per cent.
pub fn share(text: &str) -> Result<f64, String> {
    units::share(text.trim()).map_err(|wrong| wrong.to_string())
}

/// `UID:GID`: numbers of an owner and a group.
pub fn owner(text: &str) -> Result<(u32, u32), String> {
    let parsed = text.split_once(':').and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
    parsed.ok_or_else(|| format!("{text:?} is not UID:GID in numbers (0:0)"))
}

/// Words of FFS's allocation policies, separated by commas: `realloc,dirpref`.
pub fn ffs_policy(text: &str) -> Result<ffs::policy::Options, String> {
    let mut options = ffs::policy::Options::default();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        if !options.set(word) {
            let words: Vec<&str> = ffs::policy::Options::words().collect();
            return Err(format!("{word:?} is no policy; there are {}", words.join(", ")));
        }
    }
    Ok(options)
}

/// `NAME=TIME`: an entry of the system vector and its cost in nanoseconds.
pub fn setting(text: &str) -> Result<(String, f64), String> {
    let (name, time) = text.split_once('=').ok_or_else(|| format!("{text:?}: write NAME=TIME, such as rm=50us"))?;
    let ns = units::duration_ns(time.trim()).map_err(|wrong| {
        format!("{time:?} is not a duration ({wrong}); write a number with a unit: ns, us, ms or s (\"1.5us\")")
    })?;
    Ok((name.trim().to_owned(), ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_number_and_a_unit() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("64K"), Ok(65536));
        assert_eq!(size("1.5 GiB"), Ok(1_610_612_736));
        assert_eq!(size("16g"), Ok(16 << 30));
        for bad in ["", "G", "-1", "1X", "1e3", "9999999T", "1.2.3"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn several_sizes_come_out_in_order() {
        assert_eq!(sizes("1G,64M,4k,64M"), Ok(Sizes(vec![4096, 64 << 20, 1 << 30])));
        assert_eq!(sizes("none"), Ok(Sizes(vec![])));
        for bad in ["", "64M,", "64M,none", "0", "4095", &["1G"; 3].join(";")] {
            assert!(sizes(bad).is_err(), "{bad}");
        }
        let many: Vec<String> = (1..=65).map(|i| format!("{i}M")).collect();
        assert!(sizes(&many.join(",")).is_err());
    }

    #[test]
    fn spans() {
        assert_eq!(span_ns("5m"), Ok(300_000_000_000));
        assert_eq!(span_ns("500ms"), Ok(500_000_000));
        assert_eq!(span_ns("1.5h"), Ok(5_400_000_000_000));
        for bad in ["", "5", "m", "-1s", "nans", "1e30h"] {
            assert!(span_ns(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares() {
        assert_eq!(share("90%"), Ok(0.9));
        assert_eq!(share("90"), Ok(0.9));
        assert_eq!(share("0.9"), Ok(0.9));
        assert_eq!(share("1"), Ok(1.0));
        for bad in ["", "x", "101%", "-1", "nan"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn settings() {
        assert_eq!(setting("rm=50us"), Ok(("rm".to_owned(), 50_000.0)));
        assert!(setting("rm").is_err());
        assert!(setting("rm=50").is_err());
    }
}
