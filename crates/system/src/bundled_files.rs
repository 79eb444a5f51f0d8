//! The files of the bundled library, with the short name of each.

/// Of each profile its short name, its path in the repository and its text.
pub(crate) const PROFILES: [(&str, &str, &str); 3] = [
    ("ext4", "profiles/ext4.system", include_str!("../profiles/ext4.system")),
    ("xfs", "profiles/xfs.system", include_str!("../profiles/xfs.system")),
    ("btrfs", "profiles/btrfs.system", include_str!("../profiles/btrfs.system")),
];

/// The short names of the bundled profiles, in their order: `ext4`, `xfs`, `btrfs`.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _, _)| *name)
}
