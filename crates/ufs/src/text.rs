//! Names as text, as docs/formats.md has it: printable UTF-8 stays, everything else is escaped byte by byte.

use serde::Serializer;

/// `\\`, `\n`, `\xHH`; any byte comes back from it.
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                c if c.is_control() => c.to_string().bytes().for_each(|b| text.push_str(&format!("\\x{b:02X}"))),
                c => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|b| text.push_str(&format!("\\x{b:02X}")));
    }
    text
}

/// For `#[serde(serialize_with)]`.
pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&escaped(bytes))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_byte_is_shown() {
        assert_eq!(super::escaped(b"a\\b\nc\x01\xFFd"), "a\\\\b\\nc\\x01\\xFFd");
        assert_eq!(super::escaped("ä".as_bytes()), "ä");
    }
}
