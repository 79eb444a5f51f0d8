//! Lines in strace's notation that the recorder puts before strace's own: where threads stood when they were attached
//! to.

use super::Importer;
use super::reason::{NO_CALL, Reason};
use crate::track::Seen;

/// What the names of the recorder's own lines begin with.
pub(super) const TOLD: &[u8] = b"fsage_";

/// A line in strace's notation that says what strace does not: where a thread stood when it was attached to, `what`
/// being its working directory (`cwd`) or its root directory (`root`), at the time of another line.
pub(crate) fn told(tid: u32, stamp: &[u8], what: &str, path: &[u8]) -> Vec<u8> {
    let mut line = format!("{tid} ").into_bytes();
    line.extend_from_slice(stamp);
    line.extend_from_slice(format!(" fsage_{what}(\"").as_bytes());
    for &byte in path {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', byte]),
            b' '..=b'~' => line.push(byte),
            _ => line.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    line.extend_from_slice(b"\") = 0 <0.000000000>\n");
    line
}

impl Importer {
    /// A line that the recorder put before strace's own ([`told`]).
    pub(super) fn take_told(&mut self, tid: u32, what: &[u8], path: &[u8]) -> Result<(), Reason> {
        self.summary.notes += 1;
        let raw = path.strip_prefix(b"\"").and_then(|path| path.strip_suffix(b"\"")).ok_or(NO_CALL)?;
        match what {
            b"cwd" => self.tracker.saw_cwd(tid, raw),
            b"root" => self.tracker.saw_root(tid, Some(Seen::Path { raw, deleted: false, who: None })),
            _ => return Err(NO_CALL),
        }
        Ok(())
    }
}
