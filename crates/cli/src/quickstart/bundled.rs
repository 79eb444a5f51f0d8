//! The bundled library of measured profiles: scratch images of ext4, XFS and btrfs (`profiles/` in the repository).

use crate::failure;
use std::path::Path;
use system::SystemProfile;

const PROFILES: [(&str, &str); 3] = [
    ("profiles/ext4.system", include_str!("../../../../profiles/ext4.system")),
    ("profiles/xfs.system", include_str!("../../../../profiles/xfs.system")),
    ("profiles/btrfs.system", include_str!("../../../../profiles/btrfs.system")),
];

/// Every bundled profile.
pub fn systems() -> failure::Result<Vec<SystemProfile>> {
    PROFILES.iter().map(|(name, text)| Ok(SystemProfile::parse(text, Path::new(name))?)).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_bundled_profile_is_read_and_says_where_it_was_measured() {
        let systems = super::systems().unwrap();
        assert_eq!(systems.len(), 3);
        for system in systems {
            assert!(system.name.ends_with("(bundled)"), "{}", system.name);
            assert!(
                !system.environment.kernel.to_string().is_empty() && !system.environment.mkfs.is_empty(),
                "{}",
                system.name
            );
        }
    }
}
