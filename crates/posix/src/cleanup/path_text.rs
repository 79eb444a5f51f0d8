//! Paths as text: bytes that are not printable ASCII, and `%`, as `%XX`.

use serde::{Deserialize, Deserializer, Serializer, de::Error};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if (byte.is_ascii_graphic() || byte == b' ') && byte != b'%' {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    serializer.serialize_str(&text)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    let text = String::deserialize(deserializer)?;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let hex = tail.get(..2).and_then(|h| std::str::from_utf8(h).ok());
        let byte = hex.and_then(|h| u8::from_str_radix(h, 16).ok());
        bytes.push(byte.ok_or_else(|| D::Error::custom("a '%' is not followed by two hexadecimal digits"))?);
        rest = tail.get(2..).unwrap_or_default();
    }
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}
