//! System profiles on the command line: files, and the bundled ones by name.

use crate::{failure, names, output};
use std::path::{Path, PathBuf};
use system::{SystemProfile, bundled};

/// What stands before the name of a bundled profile; alone it stands for all of them.
const BUNDLED: &str = "bundled";

/// A profile, with the names by which it may be called: its own, its file's stem.
pub struct Named {
    /// What was measured.
    pub profile: SystemProfile,
    /// The name that tables show comes first.
    pub names: Vec<String>,
}

/// Reads profiles. `ext4` and `bundled:ext4` are the bundled one where no file is called so. Two of one name are told apart by their files.
///
/// # Errors
/// A file cannot be read, or nothing is called so.
pub fn load(arguments: &[PathBuf]) -> failure::Result<Vec<Named>> {
    let mut found: Vec<(Named, PathBuf)> = Vec::new();
    for argument in arguments {
        for named in one(argument)? {
            found.push((named, argument.clone()));
        }
    }
    let own: Vec<String> = found.iter().map(|(named, _)| named.profile.name.clone()).collect();
    for (named, path) in &mut found {
        if own.iter().filter(|name| **name == named.profile.name).count() > 1 {
            named.profile.name = output::shown(path);
            named.names.insert(0, named.profile.name.clone());
        }
    }
    Ok(found.into_iter().map(|(named, _)| named).collect())
}

fn one(argument: &Path) -> failure::Result<Vec<Named>> {
    let text = argument.to_str().unwrap_or_default();
    let said = text.strip_prefix(BUNDLED).and_then(|rest| rest.strip_prefix(':'));
    if said.is_none() && argument.exists() {
        let profile = SystemProfile::load(argument)?;
        let stem = argument.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        return Ok(vec![Named { names: std::iter::once(profile.name.clone()).chain(stem).collect(), profile }]);
    }
    let bundled = bundled::systems()?;
    let named = |profile: SystemProfile| {
        let short = short(&profile.name).to_owned();
        Named { names: vec![profile.name.clone(), short.clone(), format!("{BUNDLED}:{short}")], profile }
    };
    let all: Vec<Named> = bundled.into_iter().map(named).collect();
    if text == BUNDLED {
        return Ok(all);
    }
    let shorts: Vec<String> = all.iter().filter_map(|named| named.names.get(1).cloned()).collect();
    let wanted = said.unwrap_or(text);
    if let Some(place) = shorts.iter().position(|short| short == wanted) {
        return Ok(all.into_iter().skip(place).take(1).collect());
    }
    let known = shorts.iter().map(String::as_str);
    let there = format!("bundled are {}", shorts.join(", "));
    Err(match said {
        Some(_) => names::unknown(format_args!("{text}: no profile is bundled by this name; {there}"), wanted, known),
        // A file that is missing is a bad input, whatever it is for.
        None => failure::bad_input(format!(
            "{}: no such file, and no bundled profile ({there}){}",
            output::shown(argument),
            units::similar::tip(wanted, known)
        )),
    })
}

/// A bundled profile's name without the word that says so.
fn short(name: &str) -> &str {
    name.split(' ').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_profiles_are_called_by_their_names() {
        let loaded = |argument: &str| load(&[PathBuf::from(argument)]);
        let names = |argument: &str| -> Vec<String> {
            loaded(argument).unwrap().into_iter().map(|named| named.profile.name).collect()
        };
        assert_eq!(names("ext4"), ["ext4 (bundled)"]);
        assert_eq!(names("bundled:xfs"), ["xfs (bundled)"]);
        assert_eq!(names("bundled").len(), 3);
        let said = |argument: &str| loaded(argument).map(|_| ()).unwrap_err().to_string();
        assert!(said("etx4").contains("did you mean 'ext4'?"), "{}", said("etx4"));
        assert!(said("bundled:zfs").contains("bundled are ext4, xfs, btrfs"), "{}", said("bundled:zfs"));
    }
}
