//! The pointer of a block and its neighbours, direct or in an indirect block.

use crate::format::Dinode;
use ufs::indirect::NDADDR;
pub(crate) use ufs::indirect::{Indirects, Leaf, Pointer, Way, of_number, way};

/// The pointers among which that of a block is, and its place; behind the end of the list all are 0.
pub(crate) fn beside<'a>(d: &'a Dinode, indirects: Option<&'a Indirects>, lbn: u64, n: u64) -> (&'a [Pointer], usize) {
    match way(lbn, n) {
        None => (&d.db, lbn.min(NDADDR as u64) as usize),
        Some(way) => (of_leaf(indirects, way.leaf), way.index),
    }
}

/// The pointers of the indirect block that reaches data from block `first` on; behind the end of the list all are 0.
pub(crate) fn of_leaf(indirects: Option<&Indirects>, first: u64) -> &[Pointer] {
    let leaf = indirects.and_then(|indirects| indirects.leaves.get(&first));
    leaf.map(|leaf| leaf.pointers.as_slice()).unwrap_or_default()
}
