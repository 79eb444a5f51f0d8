//! The outer form of a line: who, when, and what kind of line it is.
//!
//! Follows what strace 4.26 to 6.x print with `-f -ttt -T` (strace.c `printleader`, syscall.c `syscall_exiting_trace`).

use super::digits::{digits, eight_digits, fraction_ns};
use super::lex::{self, trim};
use super::reason::Reason;

/// Who and when, and the rest of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head<'a> {
    /// Thread, where the line names it.
    pub tid: Option<u32>,
    /// Time stamp in nanoseconds since the epoch.
    pub at_ns: u64,
    pub rest: &'a [u8],
}

/// What the beginning of a line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leader<'a> {
    /// As it should be.
    Stamped(Head<'a>),
    /// `12:34:56` or `12:34:56.789012` (`-t`, `-tt`): the day is missing.
    TimeOfDay,
    /// Seconds since the epoch without a fraction (`--absolute-timestamps=unix`).
    WholeSeconds,
    /// Seconds since the previous call (`-r`).
    Relative,
    /// A call without a time stamp.
    Unstamped,
    /// Something else.
    Unknown,
}

/// Reads a line's beginning: `PID TIME rest`, `[pid PID] TIME rest` or `TIME rest`.
#[inline]
pub(super) fn leader(line: &[u8]) -> Leader<'_> {
    match usual_leader(line) {
        Some(head) => Leader::Stamped(head),
        None => any_leader(line),
    }
}

/// The beginning of nearly every line, `PID SECONDS.NANOSECONDS `, of which only the number's length varies.
#[inline]
fn usual_leader(line: &[u8]) -> Option<Head<'_>> {
    let (mut tid, mut digits) = (0u32, 0);
    let mut rest = line;
    while let [b @ b'0'..=b'9', tail @ ..] = rest {
        tid = tid.wrapping_mul(10).wrapping_add(u32::from(b - b'0'));
        digits += 1;
        rest = tail;
    }
    // So few always fit.
    if !(1..=9).contains(&digits) || rest.first() != Some(&b' ') {
        return None;
    }
    let (stamp, rest) = trim(rest).split_first_chunk::<21>()?;
    let (&[tens, ones], &billionths) = (stamp[8..].first_chunk()?, stamp.get(19)?);
    if stamp[10] != b'.' || stamp[20] != b' ' || ![tens, ones, billionths].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds = eight_digits(stamp)? * 100 + u64::from(tens - b'0') * 10 + u64::from(ones - b'0');
    let ns = eight_digits(&stamp[11..])? * 10 + u64::from(billionths - b'0');
    let at_ns = seconds.checked_mul(1_000_000_000)?.checked_add(ns)?;
    (seconds >= EPOCH_S_MIN).then(|| Head { tid: Some(tid), at_ns, rest: trim(rest) })
}

fn any_leader(line: &[u8]) -> Leader<'_> {
    let mut rest = line;
    let mut tid = None;
    if let Some(tail) = rest.strip_prefix(b"[pid ") {
        let Some((number, tail)) = digits(trim(tail)) else { return Leader::Unknown };
        let Some(tail) = tail.strip_prefix(b"] ") else { return Leader::Unknown };
        (tid, rest) = (u32::try_from(number).ok(), tail);
    } else if let Some((number, tail)) = digits(rest) {
        // strace pads the number to five places and puts a space behind it.
        if tail.first() == Some(&b' ') {
            let next = trim(tail);
            if next.first().is_some_and(u8::is_ascii_digit) {
                (tid, rest) = (u32::try_from(number).ok(), next);
            } else {
                return if number >= EPOCH_S_MIN { Leader::WholeSeconds } else { unstamped(next) };
            }
        }
    }
    stamp(tid, rest)
}

/// Time stamps below this many seconds are not since the epoch (this is 1973; strace is from 1991).
const EPOCH_S_MIN: u64 = 100_000_000;

fn unstamped(rest: &[u8]) -> Leader<'_> {
    let looks_like_call = lex::name(rest).is_some_and(|(_, tail)| tail.first() == Some(&b'('));
    if looks_like_call || rest.starts_with(b"<... ") { Leader::Unstamped } else { Leader::Unknown }
}

fn stamp(tid: Option<u32>, text: &[u8]) -> Leader<'_> {
    let Some((seconds, tail)) = digits(trim(text)) else { return unstamped(text) };
    match tail.first() {
        Some(b':') if tail.get(1).is_some_and(u8::is_ascii_digit) => Leader::TimeOfDay,
        Some(b'.') => {
            let Some((ns, rest)) = fraction_ns(&tail[1..]) else { return Leader::Unknown };
            let Some(rest) = rest.strip_prefix(b" ") else { return Leader::Unknown };
            if seconds < EPOCH_S_MIN {
                return Leader::Relative;
            }
            match seconds.checked_mul(1_000_000_000).and_then(|s| s.checked_add(ns)) {
                Some(at_ns) => Leader::Stamped(Head { tid, at_ns, rest: trim(rest) }),
                None => Leader::Unknown,
            }
        }
        Some(b' ') if seconds >= EPOCH_S_MIN => Leader::WholeSeconds,
        Some(b' ') => unstamped(trim(tail)),
        _ => Leader::Unknown,
    }
}

/// What kind of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body<'a> {
    /// A whole call: from its name on.
    Call(&'a [u8]),
    /// A call that has started: from its name on, up to where it was interrupted.
    Unfinished(&'a [u8]),
    /// The same of an execve whose thread goes on under another number.
    Changed { text: &'a [u8], to: u32 },
    /// The rest of a call: its name, and what follows.
    Resumed { name: &'a [u8], rest: &'a [u8], unfinished: bool },
    /// `+++ exited with N +++`
    Exited(i64),
    /// `+++ killed by SIGNAL +++`
    Killed(&'a [u8]),
    /// `+++ superseded by execve in pid N +++`
    Superseded(u32),
    /// `--- SIGNAL {...} ---`, `--- stopped by SIGNAL ---`
    Signal,
}

/// Reads what follows the time stamp.
pub(super) fn body(rest: &[u8]) -> Result<Body<'_>, Reason> {
    match rest {
        [b'-', b'-', b'-', b' ', ..] => {
            if rest.ends_with(b" ---") {
                Ok(Body::Signal)
            } else {
                Err("a signal line that does not end in ---")
            }
        }
        [b'+', b'+', b'+', b' ', text @ ..] => ending(text),
        [b'<', b'.', b'.', b'.', b' ', text @ ..] => resumed(text),
        _ => Ok(match (started(rest), changed(rest)) {
            (Some(text), _) => Body::Unfinished(text),
            (None, Some((text, to))) => Body::Changed { text, to },
            (None, None) => Body::Call(rest),
        }),
    }
}

/// An execve of a thread that goes on under the number of its process's first: the text before
/// ` <pid changed to 12 ...>`, and that number.
fn changed(text: &[u8]) -> Option<(&[u8], u32)> {
    const MARK: &[u8] = b" <pid changed to ";
    let inside = text.strip_suffix(b" ...>")?;
    let at = memchr::memmem::rfind(inside, MARK)?;
    let (n, rest) = digits(&inside[at + MARK.len()..])?;
    Some((&inside[..at], u32::try_from(n).ok().filter(|_| rest.is_empty())?))
}

/// The text before ` <unfinished ...>`; also ` <detached ...>`, where strace was told to stop, and
/// ` <unfinished ...>) = ?`, where the thread was killed.
fn started(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_suffix(b") = ?").filter(|t| t.ends_with(b"...>")).unwrap_or(text);
    if !text.ends_with(b" ...>") {
        return None;
    }
    text.strip_suffix(b" <unfinished ...>").or_else(|| text.strip_suffix(b" <detached ...>"))
}

fn ending(text: &[u8]) -> Result<Body<'_>, Reason> {
    let Some(text) = text.strip_suffix(b" +++") else { return Err("an exit line that does not end in +++") };
    if let Some(status) = text.strip_prefix(b"exited with ") {
        let (negative, number) = match status {
            [b'-', tail @ ..] => (true, tail),
            _ => (false, status),
        };
        let Some((n, b"")) = digits(number) else { return Err("an exit status that is no number") };
        let n = i64::try_from(n).map_err(|_| "an exit status out of range")?;
        return Ok(Body::Exited(if negative { -n } else { n }));
    }
    if let Some(signal) = text.strip_prefix(b"killed by ") {
        return Ok(Body::Killed(signal.split(|&b| b == b' ').next().unwrap_or(signal)));
    }
    if let Some(number) = text.strip_prefix(b"superseded by execve in pid ")
        && let Some((n, _)) = digits(number)
    {
        return u32::try_from(n).map(Body::Superseded).map_err(|_| "a thread number out of range");
    }
    Err("an unknown kind of +++ line")
}

fn resumed(text: &[u8]) -> Result<Body<'_>, Reason> {
    const NO_END: Reason = "\"<... \" without \" resumed>\"";
    let close = text.iter().position(|&b| b == b' ').ok_or(NO_END)?;
    let (name, tail) = text.split_at(close);
    let tail = tail.strip_prefix(b" resumed>").ok_or(NO_END)?;
    let unfinished = started(tail);
    Ok(Body::Resumed { name, rest: unfinished.unwrap_or(tail), unfinished: unfinished.is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(line: &str) -> (Option<u32>, u64, String) {
        match leader(line.as_bytes()) {
            Leader::Stamped(h) => (h.tid, h.at_ns, String::from_utf8_lossy(h.rest).into_owned()),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn leaders() {
        let ns = 1_795_232_076_823_032_000;
        assert_eq!(head("11537 1795232076.823032 getpid() = 1"), (Some(11537), ns, "getpid() = 1".into()));
        assert_eq!(head("7     1795232076.823032 x"), (Some(7), ns, "x".into()));
        assert_eq!(head("[pid    42] 1795232076.823032 x"), (Some(42), ns, "x".into()));
        assert_eq!(head("1795232076.823032 x"), (None, ns, "x".into()));
        assert_eq!(head("5 1795232076.823032123 x"), (Some(5), ns + 123, "x".into()));
    }

    #[test]
    fn the_usual_leader_is_read_as_any_other() {
        let lines = [
            "1 1795232076.823032123 close(3) = 0",
            "7     1795232076.000000000 x",
            "999999999 1795232076.999999999  x",
            "4294967295 1795232076.999999999 x",
            "9999999999 1795232076.999999999 x",
            "5 0095232076.823032123 x",
            "5 0195232076.823032123 x",
            "5 9999999999.999999999 x",
            "5 1795232076.823032 x",
            "5 1795232076.8230321234 x",
            "5 179523207x.823032123 x",
            "5 1795232076.82303x123 x",
            "5 1795232076:823032123 x",
            "5 1795232076.823032123",
            "[pid 5] 1795232076.823032123 x",
            "1795232076.823032123 x",
        ];
        for line in lines {
            assert_eq!(leader(line.as_bytes()), any_leader(line.as_bytes()), "{line}");
            if let Some(head) = usual_leader(line.as_bytes()) {
                assert_eq!(any_leader(line.as_bytes()), Leader::Stamped(head), "{line}");
            }
        }
        assert!(usual_leader(lines[0].as_bytes()).is_some());
    }

    #[test]
    fn leaders_without_use() {
        for (line, want) in [
            ("11537 03:34:36 close(3) = 0", Leader::TimeOfDay),
            ("[pid 3] 03:34:36.123456 close(3) = 0", Leader::TimeOfDay),
            ("03:34:36.123456 close(3) = 0", Leader::TimeOfDay),
            ("11537 close(3) = 0", Leader::Unstamped),
            ("close(3) = 0", Leader::Unstamped),
            ("12 1795232076 close(3) = 0", Leader::WholeSeconds),
            ("1795232076 close(3) = 0", Leader::WholeSeconds),
            ("12      0.000123 close(3) = 0", Leader::Relative),
            ("", Leader::Unknown),
            ("make: *** error", Leader::Unknown),
            ("99999999999999999999999 1.0 x", Leader::Unknown),
        ] {
            assert_eq!(leader(line.as_bytes()), want, "{line}");
        }
    }

    #[test]
    fn bodies() {
        assert_eq!(body(b"+++ exited with 3 +++"), Ok(Body::Exited(3)));
        assert_eq!(body(b"+++ killed by SIGSEGV (core dumped) +++"), Ok(Body::Killed(b"SIGSEGV")));
        assert_eq!(body(b"+++ superseded by execve in pid 12 +++"), Ok(Body::Superseded(12)));
        assert_eq!(body(b"--- SIGCHLD {si_signo=SIGCHLD} ---"), Ok(Body::Signal));
        assert!(body(b"--- SIGCHLD {si_sig").is_err());
        assert!(body(b"+++ exited wi").is_err());
        let changed = Body::Changed { text: b"execve(\"/bin/sh\", [...], 0x7f /* 3 vars */", to: 12 };
        assert_eq!(body(b"execve(\"/bin/sh\", [...], 0x7f /* 3 vars */ <pid changed to 12 ...>"), Ok(changed));
        assert_eq!(body(b"read(3,  <unfinished ...>"), Ok(Body::Unfinished(b"read(3, ")));
        assert_eq!(
            body(b"<... read resumed>\"\", 5) = 0 <0.1>"),
            Ok(Body::Resumed { name: b"read", rest: b"\"\", 5) = 0 <0.1>", unfinished: false })
        );
    }
}
