//! Names as text, as docs/formats.md has it: printable UTF-8 stays, everything else is escaped byte by byte.

use crate::{Disk, Endian};
use serde::{Serialize, Serializer};

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

/// A name of at most `N` bytes, ended by a zero byte if shorter.
#[derive(Clone, PartialEq, Eq)]
pub struct Text<const N: usize>(pub [u8; N]);

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Text([0; N])
    }
}

impl<const N: usize> Text<N> {
    /// Up to the first zero byte; what is not UTF-8 replaced.
    pub fn shown(&self) -> String {
        let end = self.0.iter().position(|b| *b == 0).unwrap_or(N);
        String::from_utf8_lossy(self.0.get(..end).unwrap_or_default()).into_owned()
    }
}

impl<const N: usize> std::fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.shown())
    }
}

impl<const N: usize> Serialize for Text<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown())
    }
}

impl<const N: usize> Disk for Text<N> {
    const BYTES: usize = N;
    fn get(endian: Endian, bytes: &[u8], at: usize) -> Self {
        Text(<[u8; N]>::get(endian, bytes, at))
    }
    fn put(&self, endian: Endian, bytes: &mut [u8], at: usize) {
        self.0.put(endian, bytes, at);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_byte_is_shown() {
        assert_eq!(super::escaped(b"a\\b\nc\x01\xFFd"), "a\\\\b\\nc\\x01\\xFFd");
        assert_eq!(super::escaped("ä".as_bytes()), "ä");
    }
}
