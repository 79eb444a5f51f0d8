//! Names that nobody can guess, and that are known again as ours.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// 64 random bits, for names that nobody can guess.
///
/// # Errors
/// The system has no random numbers.
pub fn unguessable() -> io::Result<u64> {
    use std::io::Read;
    let mut bytes = [0u8; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// A name no other run has: `fsage-` and 64 random bits.
pub(crate) fn private_name() -> io::Result<String> {
    Ok(format!("fsage-{:016x}", unguessable()?))
}

/// Whether a name is one that [`private_name`] makes.
pub(crate) fn is_private_name(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_prefix("fsage-"));
    name.is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
}

/// A name for what is replaced by a result of this name: `.NAME.`, 64 random bits, `.old`.
pub(super) fn name_aside(of: &OsStr) -> io::Result<OsString> {
    let mut name = OsString::from(".");
    name.push(of);
    name.push(format!(".{:016x}.old", unguessable()?));
    Ok(name)
}

/// Whether a name is one that [`name_aside`] makes, and for which result.
pub(super) fn aside_name(name: &OsStr) -> Option<&OsStr> {
    let name = name.as_bytes().strip_prefix(b".")?.strip_suffix(b".old")?;
    let (result, hex) = name.split_at_checked(name.len().checked_sub(17)?)?;
    let is_hex = hex.strip_prefix(b".")?.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b));
    Some(OsStr::from_bytes(result)).filter(|_| is_hex)
}

/// What stands between a result's name and the random bits of the directory in which it grows.
pub(super) const GROWING: &str = ".partial-";

/// Whether a name is one that [`Growing::within`](super::Growing::within) makes, and for which result.
pub(super) fn growing_name(name: &OsStr) -> Option<&OsStr> {
    let (result, hex) = name.as_bytes().strip_prefix(b".")?.split_at_checked(name.len().checked_sub(17)?)?;
    let is_hex = hex.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b));
    result.strip_suffix(GROWING.as_bytes()).filter(|_| is_hex).map(OsStr::from_bytes)
}
