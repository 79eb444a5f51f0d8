//! The allocator's mechanics: what is free, and how it is found, taken and given back (`ffs_alloc.c` of 4.4BSD).
//!
//! What lives here: the free maps with every count that depends on them ([`Space`]), the searches in a group and from
//! group to group. What may not: where something *should* go (that is `policy`), inodes, directories, the cache. A
//! search reports each group that it looks into, so that the caller can have it in memory.
//!
//! Addresses are fragments from the beginning of the file system, as on disk; 0 is no address. Nothing here scans all
//! groups: per predicate there is a bitmap of the groups it holds for.

mod blocks;
mod clusters;
mod fragments;
mod groups;
mod hash;
mod inodes;
mod runs;
mod space;

pub use hash::hash_order;
pub use space::Space;

/// A count of what is free, without what is taken.
///
/// # Panics
/// So many were not counted: maps and counts disagree. Images of which they do are not mounted.
fn fewer(count: u32, taken: u32) -> u32 {
    count.checked_sub(taken).expect("what is taken was counted as free")
}
