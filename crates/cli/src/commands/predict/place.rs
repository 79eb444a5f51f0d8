//! `NAME=TARGET`: which system a target is for.

use crate::failure;
use system::Called;

/// Which system `NAME=TARGET` is about, and the target. A target may hold `=` itself (mount=noatime), and so may a
/// name.
pub(super) fn place<'h>(option: &str, systems: &[Called], here: &'h str) -> failure::Result<(usize, &'h str)> {
    match (prefixed(systems, here), systems.len()) {
        (Some(found), _) => Ok(found),
        (None, 1) => Ok((0, here)),
        _ => Err(failure::usage(format!("{option} {here}: write NAME=TARGET, NAME as in the ranking"))),
    }
}

/// The system that `NAME=TARGET` names, if it does: by any of its names, the longest that fits.
pub(super) fn prefixed<'h>(systems: &[Called], here: &'h str) -> Option<(usize, &'h str)> {
    let fits = |name: &String| Some((name.len(), here.strip_prefix(name.as_str())?.strip_prefix('=')?));
    let all = systems.iter().enumerate().flat_map(|(place, named)| {
        named.names.iter().filter_map(fits).map(move |(length, target)| (length, place, target))
    });
    all.max_by_key(|(length, ..)| *length).map(|(_, place, target)| (place, target))
}
