//! The pointers of a file, direct or in indirect blocks.

pub(crate) use ufs::indirect::{Indirects, Leaf, Pointer, Way, of_number, way};
