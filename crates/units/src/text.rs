//! Text from outside, for people: names of files, command lines, messages of other programs.
//!
//! Whatever prints such text, on a terminal or into a report, has it from here. What a medium minds beyond that (a
//! comma, a `<`) is escaped by who writes for that medium.

use std::borrow::Cow;

/// Text with what does not show escaped: control characters, which would drive a terminal, and those that change the
/// order in which text is read, which would show another name than there is.
pub fn printable(text: &str) -> String {
    if !text.chars().any(is_hidden) {
        return text.to_owned();
    }
    text.chars().map(|c| if is_hidden(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}

/// A text of at most so many characters; of a longer one the beginning and the end, with a word between them that says
/// how much was left out. What somebody else's file says may be megabytes long.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    // No character is shorter than a byte.
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let all = text.chars().count();
    let Some(left_out) = all.checked_sub(most).filter(|n| *n > 0) else { return Cow::Borrowed(text) };
    let tail = most / 4;
    let at = |characters: usize| text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (text.get(..at(most - tail)), text.get(at(all - tail)..));
    let left_out = crate::show::count(left_out as u64);
    Cow::Owned(format!(
        "{}... [{left_out} characters left out] ...{}",
        head.unwrap_or_default(),
        tail.unwrap_or_default()
    ))
}

/// A part of a message is not longer: the longest path that a call takes is quoted whole.
const PART_MAX: usize = 6_000;

/// A path or argument in the same way; bytes that are not UTF-8 are escaped, too.
pub fn path(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(&printable(chunk.valid()));
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// Parts of a message on one line, the outermost first, each [`printable`], [`shortened`] and once: library errors
/// often repeat their source in their own text.
pub fn chain(parts: impl IntoIterator<Item = String>) -> String {
    let mut line = String::new();
    for part in parts.into_iter().map(|part| shortened(&printable(&part), PART_MAX).into_owned()) {
        if line.contains(&part) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&part);
    }
    line
}

/// The line and the column of a byte of a text, both from 1; a column is a character.
pub fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.as_bytes().get(..at.min(text.len())).unwrap_or_default();
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    // Continuation bytes of UTF-8 do not start a character.
    let column = before.iter().skip(line_start).filter(|&&b| b & 0xc0 != 0x80).count() + 1;
    (line, column)
}

/// Whether a character is not shown as itself.
pub fn is_hidden(c: char) -> bool {
    // Marks, embeddings, overrides and isolates of direction (Unicode, annex 9), separators of lines, the byte order
    // mark.
    let reorders = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2066}'..='\u{2069}' | '\u{feff}');
    c.is_control() || reorders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_cannot_drive_a_terminal() {
        assert_eq!(path(b"/a\n\x1b[31mb\xff\xc3\xa9"), "/a\\n\\u{1b}[31mb\\xff\u{e9}");
        assert_eq!(printable("\u{9b}31m\u{7f}"), "\\u{9b}31m\\u{7f}");
    }

    #[test]
    fn a_chain_says_each_part_once() {
        let parts = ["b", "a: gone", "gone", "\n"].map(str::to_owned);
        assert_eq!(chain(parts), "b: a: gone: \\n");
    }

    #[test]
    fn a_long_text_is_shortened_and_says_so() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("0123456789abcdefg", 8), "012345... [9 characters left out] ...fg");
        assert_eq!(shortened(&"ü".repeat(2_000), 4), "üüü... [1,996 characters left out] ...ü");
        let told = chain([format!("a.snapshot: {}: not there", "x".repeat(5 << 20))]);
        assert!(told.len() < 7_000 && told.starts_with("a.snapshot: xxx") && told.ends_with("x: not there"), "{told}");
    }

    #[test]
    fn places_in_a_text_count_from_one() {
        assert_eq!(line_and_column("a\nüb", 4), (2, 2));
        assert_eq!(line_and_column("", 0), (1, 1));
        assert_eq!(line_and_column("ab", 99), (1, 3));
    }

    #[test]
    fn names_are_read_in_the_order_they_have() {
        assert_eq!(printable("a\u{202e}txt.exe"), "a\\u{202e}txt.exe");
        assert_eq!(printable("ünï 文"), "ünï 文");
    }
}
