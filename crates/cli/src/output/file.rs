//! One file of a result, and how a path is shown.

use crate::failure;
use std::path::Path;

/// Writes a file whole or not at all.
pub fn write_file(path: &Path, bytes: &[u8]) -> failure::Result<()> {
    if path.file_name().is_none() {
        return Err(failure::usage(format!("{}: is not a file name", shown(path))));
    }
    posix::output::write(path, bytes)
        .map_err(|error| failure::environment(format!("cannot write {}: {error}", shown(path))))
}

/// A path as people can read it.
pub fn shown(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    units::text::path(path.as_os_str().as_bytes())
}
