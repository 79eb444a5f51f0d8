//! System profiles on the command line: files, and the bundled ones by name (`system::called`).

use crate::{failure, output};
use std::path::PathBuf;
use system::{Called, called};

/// Reads profiles. Two of one name are told apart by their files.
///
/// # Errors
/// A file cannot be read, or nothing is called so.
pub fn load(arguments: &[PathBuf]) -> failure::Result<Vec<Called>> {
    let mut found: Vec<(Called, PathBuf)> = Vec::new();
    for argument in arguments {
        for called in called(argument)? {
            found.push((called, argument.clone()));
        }
    }
    let own: Vec<String> = found.iter().map(|(called, _)| called.profile.name.clone()).collect();
    for (called, path) in &mut found {
        if own.iter().filter(|name| **name == called.profile.name).count() > 1 {
            called.profile.name = output::shown(path);
            called.names.insert(0, called.profile.name.clone());
        }
    }
    Ok(found.into_iter().map(|(called, _)| called).collect())
}
