//! What a profile is called by where somebody names one: a file, or a bundled profile.

use crate::{SystemProfile, SystemProfileError, bundled};
use std::path::Path;

/// What stands before the name of a bundled profile; alone it stands for all of them.
const BUNDLED: &str = "bundled";

/// A profile that somebody named.
#[derive(Clone, Debug)]
pub struct Called {
    /// What was measured.
    pub profile: SystemProfile,
    /// Its file's name without the ending; the short name of a bundled one (`ext4`).
    pub stem: String,
    /// The names by which it may be called. The one that tables show comes first.
    pub names: Vec<String>,
}

/// The profiles that a word names. `ext4` and `bundled:ext4` are the bundled one, the former where no file is called
/// so; `bundled` is all of them, in their order; anything else is a file.
///
/// # Errors
/// The file cannot be read, or nothing is called so.
pub fn called(word: &Path) -> Result<Vec<Called>, SystemProfileError> {
    let text = word.to_str().unwrap_or_default();
    let said = text.strip_prefix(BUNDLED).and_then(|rest| rest.strip_prefix(':'));
    if said.is_none() && word.exists() {
        let profile = SystemProfile::load(word)?;
        let stem = word.file_stem().unwrap_or(word.as_os_str()).to_string_lossy().into_owned();
        return Ok(vec![Called { names: vec![profile.name.clone(), stem.clone()], stem, profile }]);
    }
    let one = |short: &'static str| -> Result<Option<Called>, SystemProfileError> {
        let called = |profile: SystemProfile| Called {
            names: vec![profile.name.clone(), short.to_owned(), format!("{BUNDLED}:{short}")],
            stem: short.to_owned(),
            profile,
        };
        Ok(bundled::system(short)?.map(called))
    };
    if text == BUNDLED {
        return bundled::names().filter_map(|short| one(short).transpose()).collect();
    }
    let wanted = said.unwrap_or(text);
    if let Some(short) = bundled::names().find(|short| *short == wanted) {
        return Ok(one(short)?.into_iter().collect());
    }
    let tip = units::similar::tip(wanted, bundled::names());
    Err(match said {
        Some(_) => SystemProfileError::NotBundled { word: units::text::printable(text), tip },
        None => SystemProfileError::Nowhere { path: word.to_owned(), tip },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_profiles_are_called_by_their_names() {
        let names = |word: &str| -> Vec<String> {
            called(Path::new(word)).unwrap().into_iter().map(|called| called.profile.name).collect()
        };
        assert_eq!(names("ext4"), ["ext4 (bundled)"]);
        assert_eq!(names("bundled:xfs"), ["xfs (bundled)"]);
        assert_eq!(names("bundled").len(), 3);
        let said = |word: &str| called(Path::new(word)).map(|_| ()).unwrap_err().to_string();
        assert!(said("etx4").contains("did you mean 'ext4'?"), "{}", said("etx4"));
        assert!(said("bundled:zfs").contains("bundled are ext4, xfs, btrfs"), "{}", said("bundled:zfs"));
    }

    #[test]
    fn a_file_goes_before_the_bundled_profile_of_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("xfs");
        bundled::system("ext4").unwrap().unwrap().save(&path).unwrap();
        let [found] = &called(&path).unwrap()[..] else { panic!("one file is one profile") };
        assert_eq!((found.profile.name.as_str(), found.stem.as_str()), ("ext4 (bundled)", "xfs"));
    }
}
