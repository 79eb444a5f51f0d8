//! What a file gives up when it is cut.

use crate::indirect::Pointer;

/// A piece of a file that it gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freed {
    /// The block of the file; negative for an indirect block.
    pub lbn: i64,
    /// Where it lies.
    pub addr: Pointer,
    /// Its length.
    pub bytes: u32,
}

/// What has become of the indirect blocks of a file that was cut: numbers and places.
#[derive(Clone, Debug, Default)]
pub struct CutIndirects {
    /// Given up, those that point to data.
    pub leaves: Vec<(i64, Pointer)>,
    /// Given up, the others.
    pub upper: Vec<(i64, Pointer)>,
    /// Kept, with pointers cleared: those on the way to the last block kept.
    pub changed: Vec<(i64, Pointer)>,
}
