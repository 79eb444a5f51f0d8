//! How cold the caches were.

use posix::CacheState;
use serde::{Deserialize, Serialize};

/// How cold caches were, at worst over all phases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheNote {
    /// File data.
    pub data: CacheState,
    /// Names and attributes.
    pub names: CacheState,
    /// Why a state is not cold; empty if both are.
    pub why: String,
}

impl CacheNote {
    /// Nothing measured yet: as cold as can be.
    pub(crate) fn cold() -> CacheNote {
        CacheNote { data: CacheState::Cold, names: CacheState::Cold, why: String::new() }
    }

    /// The worse of both; the first reason stays.
    pub(crate) fn worsen(&mut self, other: &CacheNote) {
        let worse = |a: CacheState, b: CacheState| if a == CacheState::Cold { b } else { a };
        self.data = worse(self.data, other.data);
        self.names = worse(self.names, other.names);
        if self.why.is_empty() {
            self.why.clone_from(&other.why);
        }
    }
}
