//! A mount, as the kernel tells mounts apart.

/// A mount, as the kernel tells mounts apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountId {
    pub(crate) number: u64,
    /// Whether no later mount gets the same number.
    pub(crate) is_unique: bool,
}
