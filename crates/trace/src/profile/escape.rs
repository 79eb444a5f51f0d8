//! Paths as text, losslessly.
//!
//! Paths are bytes; Parquet strings, tables and text formats want UTF-8. What is printable UTF-8 stays as it is;
//! a backslash becomes `\\`, a newline `\n`, every other control character, every mark that turns the direction of
//! reading and every byte that is not UTF-8 `\xHH` (one escape per byte).

use std::borrow::Cow;
use std::fmt::Write;
use units::text::is_hidden;

/// The text of a path; borrowed where nothing needs an escape.
pub fn escape(path: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(path) {
        Ok(text) if !needs_escape(text) => Cow::Borrowed(text),
        _ => Cow::Owned(escape_slowly(path)),
    }
}

fn needs_escape(text: &str) -> bool {
    if text.is_ascii() {
        return text.bytes().any(|b| b < 0x20 || b == 0x7f || b == b'\\');
    }
    text.chars().any(|c| c == '\\' || is_hidden(c))
}

fn escape_slowly(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len() + 8);
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                c if is_hidden(c) => {
                    let mut buffer = [0; 4];
                    hex(&mut out, c.encode_utf8(&mut buffer).as_bytes());
                }
                c => out.push(c),
            }
        }
        hex(&mut out, chunk.invalid());
    }
    out
}

fn hex(out: &mut String, bytes: &[u8]) {
    for b in bytes {
        // Writing to a String cannot fail.
        let _ = write!(out, "\\x{b:02X}");
    }
}

/// Where an escaped text is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bad escape at byte {at}: a backslash is followed by another, by n, or by x and two hexadecimal digits")]
pub struct BadEscape {
    /// Offset of the backslash in the text.
    pub at: usize,
}

/// The bytes of an escaped text; undoes [`escape`].
///
/// # Errors
/// A backslash followed by anything else than `\`, `n` or `xHH`.
pub fn unescape(text: &[u8]) -> Result<Cow<'_, [u8]>, BadEscape> {
    let Some(first) = memchr::memchr(b'\\', text) else { return Ok(Cow::Borrowed(text)) };
    let mut out = Vec::with_capacity(text.len());
    out.extend_from_slice(&text[..first]);
    let mut at = first;
    while let Some(&b) = text.get(at) {
        if b != b'\\' {
            out.push(b);
            at += 1;
            continue;
        }
        let (byte, len) = match text.get(at + 1) {
            Some(b'\\') => (b'\\', 2),
            Some(b'n') => (b'\n', 2),
            Some(b'x') => match (text.get(at + 2).and_then(digit), text.get(at + 3).and_then(digit)) {
                (Some(high), Some(low)) => (high << 4 | low, 4),
                _ => return Err(BadEscape { at }),
            },
            _ => return Err(BadEscape { at }),
        };
        out.push(byte);
        at += len;
    }
    Ok(Cow::Owned(out))
}

fn digit(b: &u8) -> Option<u8> {
    (*b as char).to_digit(16).and_then(|d| u8::try_from(d).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_forms() {
        assert_eq!(escape(b"/a/b c"), "/a/b c");
        assert_eq!(escape("/ünï/文".as_bytes()), "/ünï/文");
        assert_eq!(escape(b"a\\b\nc\td\xff"), "a\\\\b\\nc\\x09d\\xFF");
        assert_eq!(escape("\u{85}".as_bytes()), "\\xC2\\x85");
        // The right-to-left override would show another name than there is.
        assert_eq!(escape("a\u{202e}txt.exe".as_bytes()), "a\\xE2\\x80\\xAEtxt.exe");
        assert_eq!(unescape(b"a\\xE2\\x80\\xAE").as_deref(), Ok("a\u{202e}".as_bytes()));
        assert_eq!(unescape(b"a\\q"), Err(BadEscape { at: 1 }));
        assert_eq!(unescape(b"\\x4"), Err(BadEscape { at: 0 }));
        assert_eq!(unescape(b"ab\\"), Err(BadEscape { at: 2 }));
    }

    proptest! {
        #[test]
        fn any_bytes_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let text = escape(&bytes);
            prop_assert!(!text.chars().any(is_hidden));
            let back = unescape(text.as_bytes()).unwrap();
            prop_assert_eq!(back.as_ref(), &bytes[..]);
        }

        #[test]
        fn awkward_bytes_round_trip(bytes in proptest::collection::vec(
            prop_oneof![Just(b'\\'), Just(b'n'), Just(b'x'), Just(b'\n'), Just(b'0'), Just(0xc2), Just(0x85),
                Just(0xff)], 0..40)) {
            let text = escape(&bytes).into_owned();
            let back = unescape(text.as_bytes()).unwrap();
            prop_assert_eq!(back.as_ref(), &bytes[..]);
        }
    }
}
