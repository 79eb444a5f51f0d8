//! The inner form of a call: `name(arguments) = result <duration>`.
//!
//! Zero-copy: arguments are slices of the line. Brackets, quoted strings, `/* comments */` and the `<...>` behind
//! descriptors nest; a path in such a decoration may hold any byte but `<`, `>` and control characters, which
//! strace writes as octal escapes.

use super::digits::{digits, eight_digits, fraction_ns};
use super::reason::Reason;
use memchr::memchr2;

/// More than any system call has; clone's labelled fields are the longest list.
pub(super) const ARGS_MAX: usize = 10;

/// An argument.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arg<'a> {
    pub text: &'a [u8],
    /// The place after the first decoration in it, so that nobody has to look for it again; 0 where that is not known.
    pub decorated_to: usize,
}

impl<'a> From<&'a [u8]> for Arg<'a> {
    fn from(text: &'a [u8]) -> Self {
        Arg { text, decorated_to: 0 }
    }
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Args<'a> {
    items: [Arg<'a>; ARGS_MAX],
    len: usize,
}

impl<'a> Args<'a> {
    /// The argument at a place; empty if the call has fewer.
    #[inline]
    pub fn arg(&self, i: usize) -> Arg<'a> {
        if i < self.len { self.items.get(i).copied().unwrap_or_default() } else { Arg::default() }
    }

    /// Its text.
    #[inline]
    pub fn get(&self, i: usize) -> &'a [u8] {
        self.arg(i).text
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.len
    }

    /// `untrimmed` may begin with spaces; its first decoration ends at `decorated_to` of it (0: it has none).
    #[inline]
    fn push(&mut self, untrimmed: &'a [u8], decorated_to: usize) {
        if let Some(item) = self.items.get_mut(self.len) {
            let text = trim(untrimmed);
            *item = Arg { text, decorated_to: decorated_to.saturating_sub(untrimmed.len() - text.len()) };
            self.len += 1;
        }
    }
}

/// What a call returned, as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Return<'a> {
    /// The number; `None` for `?`.
    pub value: Option<i64>,
    /// What is behind a returned descriptor: the text between `<` and `>`.
    pub decoration: Option<Decoration<'a>>,
    /// `ENOENT` and the like, also strace's `ERESTARTSYS`.
    pub error: Option<&'a [u8]>,
    /// How long it took.
    pub dur_ns: Option<u64>,
}

/// The text between `<` and `>` behind a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decoration<'a> {
    pub text: &'a [u8],
    /// `(deleted)` follows.
    pub deleted: bool,
}

/// Without leading spaces.
#[inline]
pub(super) fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ', tail @ ..] = text {
        text = tail;
    }
    text
}

/// A system call's name and what follows.
#[inline]
pub(super) fn name(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|&b| !IN_NAME[b as usize])?;
    (end > 0).then(|| text.split_at(end))
}

const IN_NAME: [bool; 256] = table(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_?#");

/// Bytes that the splitter must look at; all others it passes over.
const SPECIAL: [bool; 256] = table(b"\"<(){}[],/");

const fn table(bytes: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut i = 0;
    while i < bytes.len() {
        table[bytes[i] as usize] = true;
        i += 1;
    }
    table
}

/// Splits what follows a call's `(` into arguments, up to the closing `)`; also gives what follows that.
pub(super) fn split_args<'a>(text: &'a [u8], args: &mut Args<'a>) -> Result<&'a [u8], Reason> {
    match scan_args(text, args, false)? {
        Some(end) => Ok(&text[end..]),
        None => Err("the line ends inside the arguments"),
    }
}

/// The arguments of a call whose line ends before its `)`.
pub(super) fn partial_args(text: &[u8]) -> Args<'_> {
    let mut args = Args::default();
    match scan_args(text, &mut args, false) {
        Ok(_) => args,
        Err(_) => Args::default(),
    }
}

/// The first argument of a call whose line may end before its `)`; empty if there is none.
pub(super) fn first_arg(text: &[u8]) -> Arg<'_> {
    let mut args = Args::default();
    match scan_args(text, &mut args, true) {
        Ok(_) => args.arg(0),
        Err(_) => Arg::default(),
    }
}

/// Adds the arguments to an empty list, or only the first; gives the place after the closing `)`.
#[inline]
fn scan_args<'a>(text: &'a [u8], args: &mut Args<'a>, only_first: bool) -> Result<Option<usize>, Reason> {
    let mut depth = 0u32;
    let mut from = 0;
    let mut decorated_to = 0;
    let mut i = 0;
    while let Some(plain) = text[i..].iter().position(|&b| SPECIAL[b as usize]) {
        i += plain;
        match text[i] {
            b'"' => i = string_end(text, i).ok_or("a string without an end")?,
            b'<' => {
                // `1<<CAP_X` is a shift.
                if text.get(i + 1) == Some(&b'<') {
                    i += 2;
                } else {
                    i = decoration_end(text, i).ok_or("a '<' without its '>'")?;
                    if decorated_to == 0 {
                        decorated_to = i - from;
                    }
                }
            }
            b'/' => {
                i = if text.get(i + 1) == Some(&b'*') {
                    i + memchr::memmem::find(&text[i..], b"*/").ok_or("a comment without an end")? + 2
                } else {
                    i + 1
                };
            }
            b'(' | b'[' | b'{' => {
                depth += 1;
                i += 1;
            }
            b')' if depth == 0 => {
                if i > from || args.len() > 0 {
                    args.push(&text[from..i], decorated_to);
                }
                return Ok(Some(i + 1));
            }
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1).ok_or("a closing bracket without its opening one")?;
                i += 1;
            }
            _ => {
                if depth == 0 {
                    args.push(&text[from..i], decorated_to);
                    if only_first {
                        return Ok(None);
                    }
                    (from, decorated_to) = (i + 1, 0);
                }
                i += 1;
            }
        }
    }
    if from < text.len() {
        args.push(&text[from..], decorated_to);
    }
    Ok(None)
}

/// The place after the string that begins at `from`.
pub(super) fn string_end(text: &[u8], from: usize) -> Option<usize> {
    let mut i = from + 1;
    loop {
        i += memchr2(b'"', b'\\', text.get(i..)?)?;
        if text[i] == b'"' {
            return Some(i + 1);
        }
        i += 2;
    }
}

/// The place after the decoration that begins at `from` with `<`.
fn decoration_end(text: &[u8], from: usize) -> Option<usize> {
    let mut i = from + 1;
    if text.get(i) == Some(&b'/') {
        // A path; `<char 1:3>` may follow it inside.
        let mut depth = 1;
        loop {
            i += memchr2(b'<', b'>', text.get(i..)?)?;
            depth += if text[i] == b'<' { 1 } else { -1 };
            i += 1;
            if depth == 0 {
                return Some(i);
            }
        }
    }
    // `pipe:[12]`, `TCP:[1.2.3.4:5->6.7.8.9:10]`, `UNIX-STREAM:[12->13,"/path"]`, `anon_inode:[eventfd]`.
    let mut depth = 0;
    while let Some(&b) = text.get(i) {
        match b {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b'"' => {
                i = string_end(text, i)?;
                continue;
            }
            b'>' if depth <= 0 => return Some(i + 1),
            _ => {}
        }
        i += 1;
    }
    None
}

/// Reads a decoration at the start of the text; gives what follows it.
pub(super) fn decoration(text: &[u8]) -> Option<(Decoration<'_>, &[u8])> {
    if text.first() != Some(&b'<') {
        return None;
    }
    Some(decoration_to(text, decoration_end(text, 0)?))
}

/// The same where its end is known.
pub(super) fn decoration_to(text: &[u8], end: usize) -> (Decoration<'_>, &[u8]) {
    let rest = &text[end..];
    let inner = &text[1..end - 1];
    // Older versions print `</path (deleted)>`.
    match (rest.strip_prefix(b"(deleted)"), inner.strip_suffix(b" (deleted)")) {
        (Some(rest), _) => (Decoration { text: inner, deleted: true }, rest),
        (None, Some(inner)) => (Decoration { text: inner, deleted: true }, rest),
        (None, None) => (Decoration { text: inner, deleted: false }, rest),
    }
}

/// Reads what follows the arguments: ` = result <duration>`.
pub(super) fn returned(text: &[u8]) -> Result<Return<'_>, Reason> {
    let text = trim(text);
    let Some(text) = text.strip_prefix(b"=") else { return Err("no result after the arguments") };
    let (text, dur_ns) = duration(trim(text));
    let mut result = Return { dur_ns, ..Return::default() };
    if let Some(rest) = text.strip_prefix(b"?") {
        result.error = error_name(rest);
        return Ok(result);
    }
    let (value, rest) = number(text).ok_or("a result that is no number")?;
    result.value = Some(value);
    let rest = match decoration(rest) {
        Some((decoration, rest)) => {
            result.decoration = Some(decoration);
            rest
        }
        None => rest,
    };
    if value == -1 {
        result.error = error_name(rest);
    }
    // What a clone in another process number namespace returns, and whom that is for strace.
    if let Some(comment) = rest.strip_prefix(b" /* ")
        && let Some((here, b" in strace's PID NS */")) = number(comment)
    {
        result.value = Some(here);
    }
    if rest.first().is_some_and(|&b| b != b' ') {
        return Err("text directly behind the result");
    }
    Ok(result)
}

/// Splits the duration off the end: `<0.000123>`.
#[inline]
fn duration(text: &[u8]) -> (&[u8], Option<u64>) {
    let Some(inner) = text.strip_suffix(b">") else { return (text, None) };
    // Less than ten seconds in nanoseconds is by far the most frequent.
    if let Some((before, &[b'<', ones @ b'0'..=b'9', b'.', ref first @ .., last @ b'0'..=b'9'])) =
        inner.split_last_chunk::<12>()
        && let Some(tens_of_ns) = eight_digits(first)
    {
        let ns = u64::from(ones - b'0') * 1_000_000_000 + tens_of_ns * 10 + u64::from(last - b'0');
        return (before.trim_ascii_end(), Some(ns));
    }
    let tail = inner.len().saturating_sub(24);
    let Some(open) = memchr::memrchr(b'<', &inner[tail..]) else { return (text, None) };
    let open = tail + open;
    match seconds(&inner[open + 1..]) {
        Some(ns) => (inner[..open].trim_ascii_end(), Some(ns)),
        None => (text, None),
    }
}

/// `0.000123` in nanoseconds, and nothing behind it.
fn seconds(text: &[u8]) -> Option<u64> {
    let (seconds, rest) = digits(text)?;
    let (ns, rest) = fraction_ns(rest.strip_prefix(b".")?)?;
    rest.is_empty().then_some(())?;
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// Whether a line ends as a returned call does, with its duration.
pub(super) fn returned_ends(text: &[u8]) -> bool {
    duration(text).1.is_some()
}

fn error_name(text: &[u8]) -> Option<&[u8]> {
    let text = trim(text);
    let end = text.iter().position(|b| !b.is_ascii_uppercase() && !b.is_ascii_digit() && *b != b'_');
    let name = &text[..end.unwrap_or(text.len())];
    (name.len() > 1 && name[0] == b'E').then_some(name)
}

/// A number as C prints it: decimal, `0x` hexadecimal or `0` octal, perhaps negative; and what follows.
#[inline]
pub(super) fn number(text: &[u8]) -> Option<(i64, &[u8])> {
    match text {
        // Most numbers are plain ones.
        [b'1'..=b'9', ..] => {
            let (n, rest) = digits(text)?;
            Some((n.cast_signed(), rest))
        }
        [b'0'] | [b'0', b',' | b' ' | b'<' | b']' | b'}', ..] => Some((0, &text[1..])),
        [b'0' | b'-', ..] => any_number(text),
        _ => None,
    }
}

fn any_number(text: &[u8]) -> Option<(i64, &[u8])> {
    let (negative, unsigned) = match text {
        [b'-', tail @ ..] => (true, tail),
        _ => (false, text),
    };
    let (radix, body) = match unsigned {
        [b'0', b'x', tail @ ..] => (16, tail),
        [b'0', tail @ ..] if tail.first().is_some_and(u8::is_ascii_digit) => (8, tail),
        _ => (10, unsigned),
    };
    let mut n: u64 = 0;
    let mut used = 0;
    for &b in body {
        let digit = match b {
            b'0'..=b'9' => u64::from(b - b'0'),
            b'a'..=b'f' if radix == 16 => u64::from(b - b'a') + 10,
            _ => break,
        };
        if digit >= radix {
            return None;
        }
        n = n.checked_mul(radix)?.checked_add(digit)?;
        used += 1;
    }
    if used == 0 {
        return None;
    }
    // Addresses and unsigned lengths use all 64 bits; as the kernel, we read them as two's complement.
    let n = n.cast_signed();
    Some((if negative { n.wrapping_neg() } else { n }, &body[used..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        let mut args = Args::default();
        split_args(text.as_bytes(), &mut args).unwrap_or_else(|e| panic!("{text}: {e}"));
        (0..args.len()).map(|i| String::from_utf8_lossy(args.get(i)).into_owned()).collect()
    }

    #[test]
    fn arguments() {
        assert_eq!(split(") = 0"), Vec::<String>::new());
        assert_eq!(split("3</a b,(){}->, \"x\\\"),\"..., 10) = 1"), ["3</a b,(){}->", "\"x\\\"),\"...", "10"]);
        assert_eq!(split("1</dev/null<char 1:3>>, 2) = 0"), ["1</dev/null<char 1:3>>", "2"]);
        assert_eq!(split("5<UNIX-STREAM:[1->2,\"/p>],\"]>, 2) = 0"), ["5<UNIX-STREAM:[1->2,\"/p>],\"]>", "2"]);
        assert_eq!(
            split("{a=1<<CAP_X|1<<CAP_Y, b=[1, 2]}, 0x1 /* A,B) */) = 0"),
            ["{a=1<<CAP_X|1<<CAP_Y, b=[1, 2]}", "0x1 /* A,B) */"]
        );
        for text in [&b"3</a, 5"[..], b"\"abc", b"]) = 0"] {
            assert!(split_args(text, &mut Args::default()).is_err(), "{}", text.escape_ascii());
        }
        for (text, first) in
            [(&b"3</a,b>, \"x"[..], &b"3</a,b>"[..]), (b"3", b"3"), (b"", b""), (b") = 0", b""), (b"\"x", b"")]
        {
            assert_eq!(first_arg(text).text, first, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn ends_of_decorations() {
        let text = b" 3</a,b>, AT_FDCWD</x>(deleted), [4</y>], 5, {a=1<<2, b=6</z>}) = 0";
        let mut args = Args::default();
        split_args(text, &mut args).unwrap();
        let decorated: Vec<_> =
            (0..args.len()).map(|i| args.arg(i).text[..args.arg(i).decorated_to].escape_ascii().to_string()).collect();
        assert_eq!(decorated, ["3</a,b>", "AT_FDCWD</x>", "[4</y>", "", "{a=1<<2, b=6</z>"]);
    }

    fn result(text: &str) -> Return<'_> {
        returned(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn results() {
        assert_eq!(result("       = 0x562d00749000 <0.000038>").value, Some(0x562d_0074_9000));
        let r = result(" = -1 ENOENT (No such file or directory) <0.000039>");
        assert_eq!((r.value, r.error, r.dur_ns), (Some(-1), Some(&b"ENOENT"[..]), Some(39_000)));
        assert!(returned(b" = 3</a = <b (c)> <0.000000123>").is_err(), "strace escapes < inside paths");
        let r = result(" = 3</a>(deleted) <0.000000123>");
        assert_eq!(r.decoration, Some(Decoration { text: b"/a", deleted: true }));
        assert_eq!((r.value, r.dur_ns), (Some(3), Some(123)));
        let r = result(" = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <1.5>");
        assert_eq!((r.value, r.error, r.dur_ns), (None, Some(&b"ERESTARTSYS"[..]), Some(1_500_000_000)));
        for (text, ns) in [
            ("0.000032123", Some(32_123)),
            ("9.999999999", Some(9_999_999_999)),
            ("12.000000001", Some(12_000_000_001)),
            ("0.000032", Some(32_000)),
            ("0.0000321234", Some(32_123)),
            ("x.000032123", None),
            ("0.00003212x", None),
            ("0,000032123", None),
        ] {
            assert_eq!(result(&format!(" = 3 <{text}>")).dur_ns, ns, "{text}");
        }
        assert_eq!(result(" = 0x8402 (flags O_RDWR|O_APPEND) <0.000032>").value, Some(0x8402));
        assert_eq!(result(" = ?").value, None);
        assert!(returned(b"").is_err());
        assert!(returned(b" = ").is_err());
    }

    #[test]
    fn numbers() {
        assert_eq!(number(b"0644)"), Some((0o644, &b")"[..])));
        assert_eq!(number(b"0"), Some((0, &b""[..])));
        assert_eq!(number(b"-3, "), Some((-3, &b", "[..])));
        assert_eq!(number(b"18446744073709551615"), Some((-1, &b""[..])));
        assert_eq!(number(b"0xffffff9c"), Some((0xffff_ff9c, &b""[..])));
        assert_eq!(number(b"NULL"), None);
        assert_eq!(number(b"99999999999999999999999999"), None);
    }
}
