//! Arguments as values: numbers, flags, descriptors, paths, structures.

use super::lex::{self, Arg, decoration, decoration_to, number, string_end};
use crate::track::{At, Attrs, Fd, Kind, Seen, Start, unescape_into};
use std::borrow::Cow;

/// `AT_FDCWD`
const AT_FDCWD: i64 = -100;

/// A number, also behind a label (`len=5`) or with a comment after it.
pub(super) fn int(text: &[u8]) -> Option<i64> {
    number(text).map(|(n, _)| n)
}

/// A number that cannot be negative.
pub(super) fn unsigned(text: &[u8]) -> Option<u64> {
    // As printed in hexadecimal, lengths use all 64 bits.
    number(text).map(|(n, _)| u64::from_ne_bytes(n.to_ne_bytes()))
}

/// A length or an offset that the kernel takes as signed: negative ones are no offsets.
pub(super) fn offset(text: &[u8]) -> Option<u64> {
    int(text).and_then(|n| u64::try_from(n).ok())
}

/// `[123]` or `[123 => 456]` (an offset passed by address): the value before the call. `None` for NULL: a negative one
/// is given, too, and kept bit for bit.
pub(super) fn pointed_offset(text: &[u8]) -> Option<u64> {
    unsigned(text.strip_prefix(b"[")?)
}

/// Permission bits.
pub(super) fn mode(text: &[u8]) -> Option<u16> {
    let bits = text.rsplit(|&b| b == b'|').next()?;
    // `0100644 /* S_IFREG|0644 */` (-X verbose) has its number in front.
    let n = int(text).or_else(|| int(bits))?;
    u16::try_from(n & 0o7777).ok()
}

/// An OR of symbolic names and numbers, each name translated by `of`.
pub(super) fn flags(text: &[u8], of: impl Fn(&[u8]) -> u64) -> u64 {
    let one = |name: &[u8]| match number(name) {
        Some((n, _)) => u64::from_ne_bytes(n.to_ne_bytes()),
        None => of(name),
    };
    let mut all = 0;
    let mut from = 0;
    for (i, &b) in text.iter().enumerate() {
        match b {
            b'|' => {
                all |= one(&text[from..i]);
                from = i + 1;
            }
            // `0x241 /* O_WRONLY|O_CREAT|O_TRUNC */`, or `0x8000 /* O_??? */` after names.
            b' ' if text[i..].starts_with(b" /*") => return all | one(&text[from..i]),
            _ => {}
        }
    }
    all | one(&text[from..])
}

/// The text before the next field of a structure.
pub(super) fn until_comma(text: &[u8]) -> &[u8] {
    &text[..text.iter().position(|&b| matches!(b, b',' | b'}')).unwrap_or(text.len())]
}

/// What is shown behind a descriptor; `rest` is what of the argument follows its number.
#[inline]
fn seen<'a>(arg: Arg<'a>, rest: &'a [u8]) -> Option<Seen<'a>> {
    let rest = skip_comment(rest);
    if rest.first() != Some(&b'<') {
        return None;
    }
    let begin = arg.text.len() - rest.len();
    let (decoration, _) = match arg.decorated_to.checked_sub(begin) {
        Some(end) => decoration_to(rest, end),
        None => decoration(rest)?,
    };
    Some(seen_behind(decoration))
}

/// What a decoration says is behind a descriptor.
pub(super) fn seen_behind(decoration: lex::Decoration<'_>) -> Seen<'_> {
    let text = decoration.text;
    // `</dev/null<char 1:3>>`: a device's path and numbers.
    if text.first() == Some(&b'/') && text.last() != Some(&b'>') {
        Seen::Path { raw: text, deleted: decoration.deleted, who: None }
    } else {
        Seen::Foreign
    }
}

fn skip_comment(text: &[u8]) -> &[u8] {
    match text.strip_prefix(b" /*").and_then(|tail| memchr::memmem::find(tail, b"*/").map(|end| &tail[end + 2..])) {
        Some(tail) => tail,
        None => text,
    }
}

/// A descriptor.
#[inline]
pub(super) fn fd<'a>(arg: impl Into<Arg<'a>>) -> Option<Fd<'a>> {
    let arg = arg.into();
    let (n, rest) = number(arg.text)?;
    // Descriptors are ints: 0xffffff9c and 4294967196 are -100.
    #[allow(clippy::cast_possible_truncation)]
    let number = n as i32;
    Some(Fd { number, seen: seen(arg, rest) })
}

/// The directory argument of an `*at` call.
#[inline]
pub(super) fn start<'a>(arg: impl Into<Arg<'a>>) -> Option<Start<'a>> {
    let arg = arg.into();
    let cwd = |rest| match seen(arg, rest) {
        // The path of a directory that is gone is no path any more.
        Some(Seen::Path { raw, deleted: false, .. }) => Start::Cwd(Some(raw)),
        _ => Start::Cwd(None),
    };
    if let Some(rest) = arg.text.strip_prefix(b"AT_FDCWD") {
        return Some(cwd(rest));
    }
    let fd = fd(arg)?;
    if i64::from(fd.number) == AT_FDCWD {
        let (_, rest) = number(arg.text)?;
        return Some(cwd(rest));
    }
    Some(Start::Fd(fd))
}

/// A string: its bytes, if all of them are there. `None` for NULL, an address, and a string cut short (`"abc"...`).
pub(super) fn string(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    if text.first() != Some(&b'"') {
        return None;
    }
    // Nearly always the argument is the string and nothing in it is escaped.
    if let [b'"', inner @ .., b'"'] = text
        && memchr::memchr2(b'"', b'\\', inner).is_none()
    {
        return Some(Cow::Borrowed(inner));
    }
    let end = string_end(text, 0)?;
    if text[end..].starts_with(b"...") {
        return None;
    }
    let inner = &text[1..end - 1];
    if memchr::memchr(b'\\', inner).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    let mut out = Vec::new();
    unescape_into(inner, &mut out);
    Some(Cow::Owned(out))
}

/// A path in the working directory.
pub(super) fn path(text: &[u8]) -> At<'_> {
    At { start: Start::Cwd(None), path: possible(text) }
}

/// A path that a file can have. With a NUL in it, it is no more known than one cut short.
fn possible(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    string(text).filter(|path| memchr::memchr(0, path).is_none())
}

/// A path in a given directory.
pub(super) fn at<'a>(dir: impl Into<Arg<'a>>, text: &'a [u8]) -> At<'a> {
    At { start: start(dir).unwrap_or(Start::Cwd(None)), path: possible(text) }
}

/// The value of `name=` in a structure.
pub(super) fn field<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut from = 0;
    while let Some(found) = memchr::memmem::find(&text[from..], name) {
        let begin = from + found;
        let end = begin + name.len();
        let bounded = begin == 0 || matches!(text[begin - 1], b'{' | b' ' | b',');
        if bounded && text.get(end) == Some(&b'=') {
            return Some(&text[end + 1..]);
        }
        from = end;
    }
    None
}

/// The attributes in `{st_mode=S_IFREG|0644, st_size=35783, ...}`, also statx's `stx_` fields.
pub(super) fn attrs(text: &[u8]) -> Option<Attrs> {
    if text.first() != Some(&b'{') {
        return None;
    }
    let (mode_text, size) = match text.strip_prefix(b"{st_mode=") {
        // Without `-v`, a stat begins so.
        Some(rest) => {
            let mode = until_comma(rest);
            let behind = &rest[mode.len()..];
            (mode, behind.strip_prefix(b", st_size=").or_else(|| field(behind, b"st_size")))
        }
        None if field(text, b"stx_mode").is_some() => (field(text, b"stx_mode")?, field(text, b"stx_size")),
        None => (field(text, b"st_mode")?, field(text, b"st_size")),
    };
    let mode_text = until_comma(mode_text);
    let bits = flags(mode_text, file_type);
    let kind = match bits & 0o170_000 {
        0o100_000 => Kind::Regular,
        0o040_000 => Kind::Directory,
        0o120_000 => Kind::Symlink,
        0 => Kind::Unknown,
        _ => Kind::Special,
    };
    #[allow(clippy::cast_possible_truncation)]
    Some(Attrs { kind, mode: (bits & 0o7777) as u16, size: size.and_then(offset) })
}

/// `S_IF...` and the set-id bits of `<sys/stat.h>`.
pub(super) fn file_type(name: &[u8]) -> u64 {
    match name {
        b"S_IFREG" => 0o100_000,
        b"S_IFDIR" => 0o040_000,
        b"S_IFLNK" => 0o120_000,
        b"S_IFIFO" => 0o010_000,
        b"S_IFSOCK" => 0o140_000,
        b"S_IFCHR" => 0o020_000,
        b"S_IFBLK" => 0o060_000,
        b"S_ISUID" => 0o4000,
        b"S_ISGID" => 0o2000,
        b"S_ISVTX" => 0o1000,
        _ => 0,
    }
}

/// The sum of `iov_len` in `[{iov_base="aa", iov_len=2}, ...]`. `None` if strace cut the list short (`-s0` does).
pub(super) fn iov_bytes(text: &[u8]) -> Option<u64> {
    if text.first() != Some(&b'[') || text.ends_with(b"...]") {
        return None;
    }
    let mut sum: u64 = 0;
    let mut i = 0;
    while let Some(&b) = text.get(i) {
        match b {
            b'"' => i = string_end(text, i)?,
            b'i' if text[i..].starts_with(b"iov_len=") => {
                i += b"iov_len=".len();
                sum = sum.checked_add(offset(&text[i..])?)?;
            }
            _ => i += 1,
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors() {
        let path = |raw: &'static [u8]| Some(Seen::Path { raw, deleted: false, who: None });
        let fd = |text: &'static [u8]| fd(text);
        assert_eq!(fd(b"3</a/b->"), Some(Fd { number: 3, seen: path(b"/a/b-") }));
        assert_eq!(fd(b"3"), Some(Fd { number: 3, seen: None }));
        assert_eq!(fd(b"-1"), Some(Fd { number: -1, seen: None }));
        assert_eq!(fd(b"1<pipe:[3]>"), Some(Fd { number: 1, seen: Some(Seen::Foreign) }));
        assert_eq!(fd(b"1</dev/null<char 1:3>>"), Some(Fd { number: 1, seen: Some(Seen::Foreign) }));
        let deleted = Some(Seen::Path { raw: b"/x", deleted: true, who: None });
        assert_eq!(fd(b"3</x>(deleted)"), Some(Fd { number: 3, seen: deleted }));
        assert_eq!(fd(b"3</x (deleted)>"), Some(Fd { number: 3, seen: deleted }));
        for text in [&b"AT_FDCWD</x>"[..], b"-100</x>", b"0xffffff9c</x>", b"-100 /* AT_FDCWD */</x>"] {
            assert_eq!(start(text), Some(Start::Cwd(Some(b"/x"))), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn strings() {
        assert_eq!(string(br#""a\n\377b""#).as_deref(), Some(&b"a\n\xffb"[..]));
        assert_eq!(string(br#""abc"..."#), None);
        assert_eq!(string(b"NULL"), None);
        assert_eq!(string(b"0x7ffe"), None);
    }

    #[test]
    fn structures() {
        let regular = Attrs { kind: Kind::Regular, mode: 0o4755, size: Some(12) };
        assert_eq!(attrs(b"{st_mode=S_IFREG|S_ISUID|0755, st_size=12, ...}"), Some(regular));
        assert_eq!(attrs(b"{st_mode=0104755, st_size=12, ...}"), Some(regular));
        assert_eq!(attrs(b"{st_mode=0104755 /* S_IFREG|S_ISUID|0755 */, st_size=12, ...}"), Some(regular));
        assert_eq!(attrs(b"{stx_mask=STATX_ALL, stx_mode=S_IFREG|S_ISUID|0755, stx_size=12, ...}"), Some(regular));
        assert_eq!(attrs(b"{st_dev=makedev(0xfe, 0), st_mode=S_IFREG|S_ISUID|0755, st_size=12}"), Some(regular));
        let device = attrs(b"{st_mode=S_IFCHR|0666, st_rdev=makedev(0x1, 0x3), ...}").map(|a| (a.kind, a.size));
        assert_eq!(device, Some((Kind::Special, None)));
        assert_eq!(attrs(b"0x7ffc84d6ec10"), None);
        assert_eq!(iov_bytes(br#"[{iov_base="a\"iov_len=9", iov_len=2}, {iov_base=""..., iov_len=40}]"#), Some(42));
        assert_eq!(iov_bytes(b"[...]"), None);
        assert_eq!(mode(b"0666"), Some(0o666));
        assert_eq!(mode(b"S_IFIFO|0600"), Some(0o600));
        assert_eq!(pointed_offset(b"[50 => 53]"), Some(50));
        assert_eq!(pointed_offset(b"NULL"), None);
        // The recorder in the kernel has it so, too (torture under both, seed 5).
        assert_eq!(pointed_offset(b"[-5]"), Some(u64::MAX - 4));
    }
}
