//! The state that sequences of operations begin with.

use crate::Found;
use device::store::Frozen;

/// What sequences begin with.
#[derive(Clone, Debug)]
pub struct Start {
    /// An image that was unmounted.
    pub image: Frozen,
    /// What is in it.
    pub seen: Found,
    /// Calls that made it: data of later ones is stamped with greater numbers.
    pub calls: u32,
}
