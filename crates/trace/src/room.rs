//! Room that is left to others on a file system that is written to while they work on it.

use rustix::fs::statvfs;
use std::io;
use std::path::Path;

/// At most so much is left free unless more is asked for.
const KEPT_BYTES_MAX: u64 = 1 << 30;

/// How much room is left to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    kept_bytes: u64,
}

impl Room {
    /// So much, or a twentieth of the file system that a path is on and a GiB at most. Of one that does not tell its
    /// size, nothing.
    pub fn on(path: &Path, kept_bytes: Option<u64>) -> Room {
        let total = || statvfs(path).map_or(0, |of| of.f_blocks.saturating_mul(of.f_frsize));
        Room { kept_bytes: kept_bytes.unwrap_or_else(|| (total() / 20).min(KEPT_BYTES_MAX)) }
    }

    /// The same for somebody who gives way earlier: twice as much.
    pub fn twice(self) -> Room {
        Room { kept_bytes: self.kept_bytes.saturating_mul(2) }
    }

    /// Whether so many bytes more at a path leave it. Where the file system does not tell, they do.
    ///
    /// # Errors
    /// They do not.
    pub fn check(self, path: &Path, bytes: u64) -> io::Result<()> {
        let free = match statvfs(path) {
            Ok(of) if of.f_blocks > 0 => of.f_bavail.saturating_mul(of.f_frsize),
            _ => return Ok(()),
        };
        if self.kept_bytes == 0 || free >= self.kept_bytes.saturating_add(bytes) {
            return Ok(());
        }
        let kept = self.kept_bytes;
        let message = format!("{kept} bytes are to stay free on its file system (--keep-free)");
        Err(io::Error::new(io::ErrorKind::StorageFull, message))
    }
}
