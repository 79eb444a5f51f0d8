//! The form of a line: time stamp, duration, thread, and a call that is whole, begun or continued.
//!
//! ```text
//!      2.223 ( 0.166 ms): sh/958 openat(dfd: CWD, filename: 0x46b1fed0, flags: CREAT|TRUNC|WRONLY) = 4
//!      3.355 (         ): sh/958 wait4(upid: -1, stat_addr: 0x7fffa2172a6c)                         ...
//!      3.355 ( 5.357 ms): sh/958  ... [continued]: wait4())                                            = 959 (cat)
//!          ? (         ): sh/959  ... [continued]: vfork())                                            = 0
//! LOST 12 events!
//! ```
//!
//! The thread is left out where there is but one, its program's name with `--no-comm`. Nothing is escaped: a name that
//! holds what separates fields is cut where the first such mark is.

/// Why a line is not understood.
pub(super) type Reason = &'static str;

/// perf cuts a program's name to so many bytes (`%.14s`).
const COMM_BYTES_MAX: usize = 14;

/// A line about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// When the call began, nanoseconds; `None`: the trace does not show it (`?`).
    pub at_ns: Option<u64>,
    /// How long it took, if it has returned and its beginning was seen.
    pub dur_ns: Option<u64>,
    /// The thread; `None` where perf leaves it out.
    pub tid: Option<u32>,
    pub body: Body<'a>,
}

/// What is said of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body<'a> {
    Whole { name: &'a [u8], args: &'a [u8], ret: Ret<'a> },
    Begun { name: &'a [u8], args: &'a [u8] },
    Continued { name: &'a [u8], ret: Ret<'a> },
}

/// What a call returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ret<'a> {
    Value(i64),
    /// The name of the error.
    Error(&'a [u8]),
    /// `?`: it never returns.
    Never,
    /// Nothing: a process that perf has not heard of.
    Blank,
}

/// Any line that is perf's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    Call(Line<'a>),
    /// `LOST n events!`
    Lost(u64),
    /// A line with a time stamp that is no call: a tracepoint's, a page fault's.
    Other,
}

/// Reads a line.
pub(super) fn parse(line: &[u8]) -> Result<Parsed<'_>, Reason> {
    if let Some(rest) = line.strip_prefix(b"LOST ") {
        let (lost, rest) = digits(rest).ok_or("LOST without a number")?;
        return if rest.starts_with(b" events!") { Ok(Parsed::Lost(lost)) } else { Err("LOST, and no events") };
    }
    let (at_ns, rest) = stamp(line.trim_ascii_start()).ok_or("no time stamp of perf's at its beginning")?;
    let Some(rest) = rest.strip_prefix(b" (") else {
        return if at_ns.is_some() { Ok(Parsed::Other) } else { Err("no duration behind the time stamp") };
    };
    let (dur_ns, rest) = duration(rest).ok_or("no duration behind the time stamp")?;
    let Some((tid, call)) = thread(rest) else { return Ok(Parsed::Other) };
    let body = match call.strip_prefix(b" ... [continued]: ") {
        Some(call) => continued(call)?,
        None => call_body(call)?,
    };
    Ok(Parsed::Call(Line { at_ns, dur_ns, tid, body }))
}

/// `12.345`, in milliseconds, or `?`.
fn stamp(text: &[u8]) -> Option<(Option<u64>, &[u8])> {
    match text.strip_prefix(b"?") {
        Some(rest) => Some((None, rest)),
        None => milliseconds(text).map(|(ns, rest)| (Some(ns), rest)),
    }
}

fn milliseconds(text: &[u8]) -> Option<(u64, &[u8])> {
    let (ms, rest) = digits(text)?;
    let rest = rest.strip_prefix(b".")?;
    let (us, rest) = (digits(rest.get(..3)?)?, rest.get(3..)?);
    if !us.1.is_empty() {
        return None;
    }
    Some((ms.checked_mul(1_000_000)?.checked_add(us.0 * 1000)?, rest))
}

/// `0.016 ms): ` or blanks, the bracket before it gone.
fn duration(text: &[u8]) -> Option<(Option<u64>, &[u8])> {
    let text = text.trim_ascii_start();
    if let Some(rest) = text.strip_prefix(b"): ") {
        return Some((None, rest));
    }
    let (ns, rest) = milliseconds(text)?;
    Some((Some(ns), rest.strip_prefix(b" ms): ")?))
}

/// `comm/tid `, `tid ` or nothing, and the call behind it.
fn thread(text: &[u8]) -> Option<(Option<u32>, &[u8])> {
    let numbered = |text| {
        let (tid, rest) = digits(text)?;
        let rest = rest.strip_prefix(b" ")?;
        is_call(rest).then_some((u32::try_from(tid).ok(), rest))
    };
    if is_call(text) {
        return Some((None, text));
    }
    if let Some(found) = numbered(text) {
        return Some(found);
    }
    let slashes = (0..=COMM_BYTES_MAX).filter(|&i| text.get(i) == Some(&b'/'));
    slashes.filter_map(|i| text.get(i + 1..)).find_map(numbered)
}

fn is_call(text: &[u8]) -> bool {
    if text.starts_with(b" ... [continued]: ") {
        return true;
    }
    let name = name_bytes(text);
    name > 0 && text.get(name) == Some(&b'(')
}

fn name_bytes(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || **b == b'_').count()
}

/// `name()) = 0`
fn continued(text: &[u8]) -> Result<Body<'_>, Reason> {
    let (name, rest) = text.split_at(name_bytes(text));
    let rest = rest.strip_prefix(b"()").ok_or("a continued call without a name")?;
    let rest = rest.strip_prefix(b")").unwrap_or(rest).trim_ascii_start();
    let ret = rest.strip_prefix(b"=").ok_or("a continued call without its return")?;
    Ok(Body::Continued { name, ret: returned(ret)? })
}

fn call_body(text: &[u8]) -> Result<Body<'_>, Reason> {
    let (name, rest) = text.split_at(name_bytes(text));
    let rest = rest.strip_prefix(b"(").ok_or("no bracket behind the call's name")?;
    if let Some(begun) = rest.trim_ascii_end().strip_suffix(b" ...").map(<[u8]>::trim_ascii_end)
        && let Some(args) = begun.strip_suffix(b")")
    {
        return Ok(Body::Begun { name, args });
    }
    // The last bracket with blanks and an equals sign behind it: a name can hold what looks like one, a return cannot.
    let mut end = rest.len();
    while let Some(bracket) = rest.get(..end).and_then(|text| memchr::memrchr(b')', text)) {
        let behind = rest.get(bracket + 1..).unwrap_or_default().trim_ascii_start();
        if let (Some(ret), Some(args)) = (behind.strip_prefix(b"="), rest.get(..bracket)) {
            return Ok(Body::Whole { name, args, ret: returned(ret)? });
        }
        end = bracket;
    }
    Err("a call without its return")
}

/// ` 3</tmp/x>`, ` -1 ENOENT (No such file or directory)`, ` 0x7f00`, ` 959 (cat)`, ` ?`, nothing, ` RDWR|LARGEFILE`.
fn returned(text: &[u8]) -> Result<Ret<'_>, Reason> {
    let text = text.trim_ascii();
    match text.first() {
        None => return Ok(Ret::Blank),
        Some(b'?') => return Ok(Ret::Never),
        // A number printed by its name: it is no error, and what it is has no bearing on files.
        Some(b'A'..=b'Z') => return Ok(Ret::Value(0)),
        _ => {}
    }
    if let Some(hex) = text.strip_prefix(b"0x") {
        let digits = hex.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let text = std::str::from_utf8(hex.get(..digits).unwrap_or_default()).unwrap_or_default();
        let value = u64::from_str_radix(text, 16).map_err(|_| "a return that is no number")?;
        return Ok(Ret::Value(i64::from_ne_bytes(value.to_ne_bytes())));
    }
    if let Some(error) = text.strip_prefix(b"-1 E") {
        let letters = error.iter().take_while(|b| b.is_ascii_uppercase() || b.is_ascii_digit()).count();
        return Ok(Ret::Error(text.get(3..4 + letters).unwrap_or_default()));
    }
    let (negative, number) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (value, _) = digits(number).ok_or("a return that is no number")?;
    let value = i64::try_from(value).map_err(|_| "a return out of range")?;
    Ok(Ret::Value(if negative { -value } else { value }))
}

/// A decimal number and what follows.
pub(super) fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let count = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, rest) = text.split_at(count);
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> Line<'_> {
        match parse(line.as_bytes()) {
            Ok(Parsed::Call(line)) => line,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn whole_calls() {
        let line = call("     2.223 ( 0.166 ms): sh/958 openat(dfd: CWD, filename: 0x46b1) = 4");
        assert_eq!((line.at_ns, line.dur_ns, line.tid), (Some(2_223_000), Some(166_000), Some(958)));
        let args = b"dfd: CWD, filename: 0x46b1";
        assert_eq!(line.body, Body::Whole { name: b"openat", args, ret: Ret::Value(4) });
        for (text, tid) in [
            ("     0.000 ( 0.023 ms): close(fd: 4)         = 0", None),
            ("1008084.956 ( 0.011 ms): 77 close(fd: 4)         = 0", Some(77)),
            ("     0.000 ( 0.023 ms): kworker/0:1/12 close(fd: 4)         = 0", Some(12)),
            ("     0.000 ( 0.023 ms): Web Content/99 close(fd: 4)         = 0", Some(99)),
            ("     0.000 ( 0.023 ms): :1845/1845 close(fd: 4)         = 0", Some(1845)),
        ] {
            let line = call(text);
            assert_eq!(line.tid, tid, "{text}");
            assert_eq!(line.body, Body::Whole { name: b"close", args: b"fd: 4", ret: Ret::Value(0) }, "{text}");
        }
        assert_eq!(call("1008084.956 ( 0.011 ms): 77 brk() = 0").at_ns, Some(1_008_084_956_000));
    }

    #[test]
    fn returns() {
        for (text, ret) in [
            ("-1 ENOENT (No such file or directory)", Ret::Error(b"ENOENT")),
            ("11</tmp/x>", Ret::Value(11)),
            ("959 (cat)", Ret::Value(959)),
            ("0x7f0d02b4d000", Ret::Value(0x7f0d_02b4_d000)),
            ("0 (Timeout)", Ret::Value(0)),
            ("-5", Ret::Value(-5)),
            ("?", Ret::Never),
            ("", Ret::Blank),
            ("RDWR|LARGEFILE", Ret::Value(0)),
        ] {
            let line = format!("     0.000 ( 0.023 ms): a/1 x(fd: 4)    = {text}");
            assert_eq!(call(&line).body, Body::Whole { name: b"x", args: b"fd: 4", ret }, "{text}");
        }
    }

    #[test]
    fn calls_in_two_lines() {
        let begun = call("     3.355 (         ): sh/958 wait4(upid: -1, stat_addr: 0x7f)      ...");
        assert_eq!(begun.body, Body::Begun { name: b"wait4", args: b"upid: -1, stat_addr: 0x7f" });
        let line = call("     3.355 ( 5.357 ms): sh/958  ... [continued]: wait4())      = 959 (cat)");
        assert_eq!(line.body, Body::Continued { name: b"wait4", ret: Ret::Value(959) });
        let line = call("         ? (         ): sh/959  ... [continued]: vfork())      = 0");
        assert_eq!((line.at_ns, line.tid), (None, Some(959)));
        assert_eq!(line.body, Body::Continued { name: b"vfork", ret: Ret::Value(0) });
    }

    #[test]
    fn other_lines() {
        assert_eq!(parse(b"LOST 12 events!"), Ok(Parsed::Lost(12)));
        let tracepoint = b"     0.123 sched:sched_switch:prev_comm=a";
        assert_eq!(parse(tracepoint), Ok(Parsed::Other));
        for line in
            [&b""[..], b"make: *** error", b"1234 1700000000.123456 close(3) = 0 <0.000012>", b"    0.1 (x ms): "]
        {
            assert!(parse(line).is_err(), "{}", String::from_utf8_lossy(line));
        }
    }
}
