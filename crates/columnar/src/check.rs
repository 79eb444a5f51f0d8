//! How much of a file can be verified, and by what.

use serde::{Deserialize, Serialize};

/// Length and checksum of a file, kept beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileCheck {
    /// Length in bytes.
    pub bytes: u64,
    /// Where the footer begins. The checksums of the row groups before it are in the footer
    /// ([`ROW_GROUPS_KEY`](crate::ROW_GROUPS_KEY)).
    pub footer_at_byte: u64,
    /// CRC-32C of the bytes from there to the end, eight hexadecimal digits.
    pub footer_crc32c: String,
}

/// How much of a file can be verified.
#[derive(Clone, Copy, Debug)]
pub enum Check<'a> {
    /// Row groups and footer, by what a file beside it states.
    Beside {
        /// What it states.
        check: &'a FileCheck,
        /// The name of that file.
        stated_in: &'static str,
    },
    /// Row groups, by the sums in the footer, where it has them (a file that another tool rewrote has none).
    Footer,
    /// Nothing: another tool wrote it.
    Nothing,
}
