//! Names on the command line: whole, by a file's stem, or by a beginning that no other has.

use crate::failure;
use units::similar::{self, Named};

/// The place of the thing that `asked` names; each has several names, the first of which is shown.
///
/// # Errors
/// None or several are called so: the message says which there are. `what` is the option, with what its names are of.
pub fn find(what: &str, asked: &str, things: &[Vec<String>]) -> failure::Result<usize> {
    let shown = |i: &usize| things.get(*i).and_then(|names| names.first()).map_or("", String::as_str);
    match similar::named(asked, things) {
        Named::One(place) => Ok(place),
        Named::Several(places) => {
            let those: Vec<&str> = places.iter().map(shown).collect();
            Err(failure::usage(format!("{what}: {asked:?} may be any of {}; write more of the name", those.join(", "))))
        }
        Named::None => {
            let all: Vec<&str> = (0..things.len()).map(|i| shown(&i)).collect();
            let tip = similar::tip(asked, things.iter().flatten().map(String::as_str));
            Err(failure::usage(format!("{what}: none is called {asked:?}; there are {}{tip}", all.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_there_is_answered_by_one_that_is() {
        let things =
            [vec!["ext4 (bundled)".to_owned(), "ext4".to_owned()], vec!["xfs (bundled)".to_owned(), "xfs".to_owned()]];
        assert_eq!(find("--explain", "xfs", &things).unwrap(), 1);
        let said = find("--explain", "etx4", &things).unwrap_err().to_string();
        assert!(said.contains("there are ext4 (bundled), xfs (bundled); did you mean 'ext4'?"), "{said}");
        let both = [vec!["ext4-a".to_owned()], vec!["ext4-b".to_owned()]];
        let said = find("--explain", "ext4", &both).unwrap_err().to_string();
        assert!(said.contains("may be any of ext4-a, ext4-b"), "{said}");
    }
}
