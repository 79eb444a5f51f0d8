//! The bundled library of measured profiles: scratch images of ext4, XFS and btrfs (`profiles/` in the repository).

use crate::bundled_files::PROFILES;
use crate::{SystemProfile, SystemProfileError};
use std::path::Path;

pub use crate::bundled_files::names;

/// Every bundled profile.
///
/// # Errors
/// One of them is not of the version that this program reads.
pub fn systems() -> Result<Vec<SystemProfile>, SystemProfileError> {
    PROFILES.iter().map(|(_, path, text)| SystemProfile::parse(text, Path::new(path))).collect()
}

/// The bundled profile of a short name; `None`: there is no such name.
///
/// # Errors
/// As [`systems`].
pub fn system(name: &str) -> Result<Option<SystemProfile>, SystemProfileError> {
    let found = PROFILES.iter().find(|(short, _, _)| *short == name);
    found.map(|(_, path, text)| SystemProfile::parse(text, Path::new(path))).transpose()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_bundled_profile_is_read_and_says_where_it_was_measured() {
        let systems = super::systems().unwrap();
        assert_eq!(systems.len(), super::names().count());
        for (system, name) in systems.iter().zip(super::names()) {
            assert!(system.name.starts_with(name) && system.name.ends_with("(bundled)"), "{}", system.name);
            assert!(!system.environment.kernel.to_string().is_empty(), "{}", system.name);
            assert!(!system.environment.mkfs.is_empty(), "{}", system.name);
            assert_eq!(super::system(name).unwrap().as_ref(), Some(system));
        }
        assert!(super::system("ntfs").unwrap().is_none());
    }
}
