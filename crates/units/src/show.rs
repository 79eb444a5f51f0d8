//! Numbers for people: durations, sizes, counts and shares with a unit and three significant digits.

/// A duration in nanoseconds: `850 ns`, `1.23 µs`, `45.6 ms`, `7.89 s`, `3m 05s`.
pub fn duration_ns(ns: f64) -> String {
    if !ns.is_finite() {
        return "-".to_owned();
    }
    let magnitude = ns.abs();
    if magnitude >= 120e9 {
        let seconds = (magnitude / 1e9).round();
        let sign = if ns < 0.0 { "-" } else { "" };
        return format!("{sign}{}m {:02}s", (seconds / 60.0).floor(), seconds % 60.0);
    }
    let steps = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    for (scale, unit) in steps {
        // 999.6 of a unit would print as 1000: it belongs to the next one.
        if magnitude >= scale * 0.9995 {
            return format!("{} {unit}", significant(ns / scale));
        }
    }
    if magnitude < 10.0 { format!("{ns:.1} ns") } else { format!("{ns:.0} ns") }
}

/// A duration with its interval, all in the unit of the value: `1.25 ms (1.20 to 1.31)`.
pub fn duration_interval_ns(value: f64, low: f64, high: f64) -> String {
    if low == high || ![value, low, high].iter().all(|x| x.is_finite()) || value.abs() >= 120e9 {
        return duration_ns(value);
    }
    let shown = duration_ns(value);
    let scale = match shown.rsplit(' ').next() {
        Some("s") => 1e9,
        Some("ms") => 1e6,
        Some("µs") => 1e3,
        _ => return format!("{shown} ({low:.0} to {high:.0})"),
    };
    format!("{shown} ({} to {})", significant(low / scale), significant(high / scale))
}

/// A size in bytes, in powers of 1024: `512 B`, `4 KiB`, `1.5 MiB`.
pub fn bytes(bytes: f64) -> String {
    if !bytes.is_finite() {
        return "-".to_owned();
    }
    let mut value = bytes;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if value.abs() < 1023.5 {
            return if unit == "B" || (value.fract() == 0.0 && value.abs() < 1000.0) {
                format!("{value:.0} {unit}")
            } else {
                format!("{} {unit}", significant(value))
            };
        }
        value /= 1024.0;
    }
    format!("{} PiB", significant(value))
}

/// The size of a file as publications of the time write it, in powers of 1024 without a rest: `64 KB`, `2 MB`.
pub fn size_name(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MB", bytes >> 20),
        _ if bytes >= 1 << 10 => format!("{} KB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// A count with thousands set apart: `12,345,678`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with what is counted: `1 thread`, `12,345 threads`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A share (0 to 1) in per cent: `12.3 %`; tiny but present shares are `<0.1 %`.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        "-".to_owned()
    } else if percent > 0.0 && percent < 0.1 {
        "<0.1 %".to_owned()
    } else if (99.95..100.0).contains(&percent) {
        ">99.9 %".to_owned()
    } else if percent.abs() >= 99.95 || percent == 0.0 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// A signed relative error (0.1 is 10 % too high): `+10.0 %`.
pub fn signed_share(share: f64) -> String {
    if share.is_finite() { format!("{:+.1} %", share * 100.0) } else { "-".to_owned() }
}

/// A plain number with three significant digits.
pub fn significant(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() {
        "-".to_owned()
    } else if magnitude >= 99.95 {
        format!("{value:.0}")
    } else if magnitude >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// A plain number with its interval: `12.3 (11.9 to 12.8)`.
pub fn interval(value: f64, low: f64, high: f64) -> String {
    if low == high || !low.is_finite() || !high.is_finite() {
        return significant(value);
    }
    format!("{} ({} to {})", significant(value), significant(low), significant(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_change_unit_without_a_thousand() {
        let shown = [
            (0.0, "0.0 ns"),
            (850.4, "850 ns"),
            (999.6, "1.00 µs"),
            (1234.0, "1.23 µs"),
            (45.6e6, "45.6 ms"),
            (999.7e6, "1.00 s"),
            (119e9, "119 s"),
            (185e9, "3m 05s"),
            (-1.5e6, "-1.50 ms"),
            (f64::NAN, "-"),
        ];
        for (ns, text) in shown {
            assert_eq!(duration_ns(ns), text, "{ns}");
        }
    }

    #[test]
    fn an_interval_shares_its_unit() {
        assert_eq!(duration_interval_ns(1.25e6, 0.9e6, 1.31e6), "1.25 ms (0.90 to 1.31)");
        assert_eq!(duration_interval_ns(850.0, 800.0, 1200.0), "850 ns (800 to 1200)");
        assert_eq!(duration_interval_ns(2e9, 2e9, 2e9), "2.00 s");
        assert_eq!(interval(12.34, 11.9, 12.8), "12.3 (11.9 to 12.8)");
        assert_eq!(interval(12.34, 12.34, 12.34), "12.3");
    }

    #[test]
    fn sizes_counts_and_shares() {
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes(4096.0), "4 KiB");
        assert_eq!(bytes(1.5 * 1048576.0), "1.50 MiB");
        let names = [512, 64 << 10, 1 << 20, (1 << 20) + (512 << 10), 2 << 20].map(size_name);
        assert_eq!(names, ["512 B", "64 KB", "1 MB", "1536 KB", "2 MB"]);
        assert_eq!(count(12345678), "12,345,678");
        assert_eq!(count(999), "999");
        let threads = [0, 1, 2, 1234].map(|n| counted(n, "thread", "threads"));
        assert_eq!(threads, ["0 threads", "1 thread", "2 threads", "1,234 threads"]);
        assert_eq!(share(0.0004), "<0.1 %");
        assert_eq!(share(1.0), "100 %");
        assert_eq!(signed_share(-0.123), "-12.3 %");
    }
}
