//! File names that tell when a snapshot was taken, so that cron needs no shell for it.

/// A calendar date and time of day, UTC.
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
}

/// Days to date after Howard Hinnant, *chrono-Compatible Low-Level Date Algorithms* (`civil_from_days`).
fn civil(unix_ns: i64) -> Civil {
    let seconds = unix_ns.div_euclid(1_000_000_000);
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    Civil {
        year: year_of_era + era * 400 + i64::from(month <= 2),
        month,
        day: day_of_year - (153 * from_march + 2) / 5 + 1,
        hour: rest / 3600,
        minute: rest % 3600 / 60,
        second: rest % 60,
    }
}

/// Replaces `%Y %m %d %H %M %S`, `%F` (`%Y-%m-%d`), `%s` (seconds since the epoch) and `%%` in a file name. Times are
/// UTC.
///
/// # Errors
/// A percent sign followed by anything else.
pub fn expand(pattern: &str, unix_ns: i64) -> Result<String, String> {
    let Civil { year, month, day, hour, minute, second } = civil(unix_ns);
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('Y') => out.push_str(&format!("{year:04}")),
            Some('m') => out.push_str(&format!("{month:02}")),
            Some('d') => out.push_str(&format!("{day:02}")),
            Some('H') => out.push_str(&format!("{hour:02}")),
            Some('M') => out.push_str(&format!("{minute:02}")),
            Some('S') => out.push_str(&format!("{second:02}")),
            Some('F') => out.push_str(&format!("{year:04}-{month:02}-{day:02}")),
            Some('s') => out.push_str(&unix_ns.div_euclid(1_000_000_000).to_string()),
            Some('%') => out.push('%'),
            other => {
                let found = other.map_or_else(|| "nothing".to_owned(), |c| format!("{c:?}"));
                return Err(format!(
                    "{pattern:?}: after a percent sign one of Y, m, d, H, M, S, F, s and % can stand, not {found}"
                ));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        // As `date -u -d @SECONDS +%F_%H:%M:%S` prints them.
        for (seconds, text) in [
            (0, "1970-01-01_00:00:00"),
            (951_782_400, "2000-02-29_00:00:00"),
            (1_709_251_199, "2024-02-29_23:59:59"),
            (4_102_444_800, "2100-01-01_00:00:00"),
            (-1, "1969-12-31_23:59:59"),
        ] {
            assert_eq!(expand("%F_%H:%M:%S", seconds * 1_000_000_000), Ok(text.to_owned()));
        }
        assert_eq!(expand("a%%b-%s-%Y%m%d", 86_400_000_000_000), Ok("a%b-86400-19700102".to_owned()));
        assert!(expand("%q", 0).is_err() && expand("x%", 0).is_err());
    }
}
