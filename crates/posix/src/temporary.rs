//! Names of files that have not taken their place: beside it, and nobody can guess them.

use rustix::rand::{GetRandomFlags, getrandom};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Bytes a name may have on the file systems of Linux.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// Whether a name is one that [`beside`] makes.
pub(crate) fn is_temporary_name(path: &Path) -> bool {
    let name = path.file_name().map(OsStr::as_bytes).and_then(|name| name.strip_prefix(b"."));
    let random = name.and_then(|name| name.strip_suffix(b".tmp")?.rsplit(|b| *b == b'.').next());
    random.is_some_and(|hex| hex.len() == 16 && hex.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b)))
}

/// A new one: `.NAME.<16 hex>.tmp`, cut where the name would be too long.
pub(crate) fn beside(name: &OsStr) -> io::Result<OsString> {
    let mut random = [0; 8];
    // So few bytes come whole or not at all.
    getrandom(&mut random, GetRandomFlags::empty())?;
    let ending = format!(".{:016x}.tmp", u64::from_le_bytes(random));
    let room = NAME_BYTES_MAX - 1 - ending.len();
    let mut beside = OsString::from(".");
    beside.push(OsStr::from_bytes(name.as_bytes().get(..room).unwrap_or(name.as_bytes())));
    beside.push(ending);
    Ok(beside)
}
