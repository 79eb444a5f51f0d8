//! What is known of caches that were to be emptied.

use serde::{Deserialize, Serialize};

/// How sure we are that caches are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheState {
    /// Emptied and verified.
    Cold,
    /// Known to hold what was touched.
    Warm,
    /// We asked, and could not verify.
    Unverified,
}

/// What [`FileSystem::drop_caches_explained`](crate::FileSystem::drop_caches_explained) achieved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheDrop {
    /// File data: the pages that were looked at are gone (`Cold`) or not all of them (`Unverified`).
    pub data: CacheState,
    /// Names and attributes.
    pub names: CacheState,
    /// Files whose pages were looked at.
    pub checked_files: usize,
    /// Why a state is not `Cold`, in words for the record; empty if both are.
    pub why: String,
}

impl CacheDrop {
    /// Both together: cold only if both are.
    pub fn state(&self) -> CacheState {
        match (self.data, self.names) {
            (CacheState::Cold, CacheState::Cold) => CacheState::Cold,
            _ => CacheState::Unverified,
        }
    }
}
