//! What paths, files and open file descriptions are told apart by.

/// A path interned in its batch's [`Paths`](crate::Paths).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathId(pub u32);

/// A file's identity over its whole life: a new one for each creation, kept across renames and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u64);

/// An open file description: what `open` makes and `dup` and `fork` share. Never re-used within a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OfdId(pub u64);
