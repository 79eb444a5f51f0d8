//! Names that are taken only where nothing has them.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::io;
use std::path::Path;

/// Renames where nothing has the name.
///
/// # Errors
/// Something has it (`AlreadyExists`), or those of renameat2(2).
pub(crate) fn rename_to_empty(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A file system that knows no flags, or a system that knows no such call.
        Err(Errno::INVAL | Errno::NOSYS) => match to.symlink_metadata() {
            Ok(_) => Err(Errno::EXIST.into()),
            Err(_) => std::fs::rename(from, to),
        },
        renamed => Ok(renamed?),
    }
}
