//! Names that a person may have meant: tips for what is misspelt, and names that are given by their beginning.

/// The candidate that a misspelt word is nearest to, if it is near at all: by the optimal string alignment distance, in
/// which two letters that have changed places are one mistake; the first in order among equals.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // Nobody misspells longer names, and the distance takes the product of both lengths.
    const LETTERS_MAX: usize = 60;
    let short: String = word.to_lowercase().chars().take(LETTERS_MAX).collect();
    let distance = |candidate: &&str| {
        let candidate: String = candidate.to_lowercase().chars().take(LETTERS_MAX).collect();
        // What is wrong in a third of its letters was not misspelt.
        let most = short.chars().count().max(candidate.chars().count()).div_ceil(3);
        let distance = strsim::osa_distance(&short, &candidate);
        (distance <= most).then_some(distance)
    };
    candidates.into_iter().filter_map(|c| distance(&c).map(|d| (d, c))).min_by_key(|(d, _)| *d).map(|(_, c)| c)
}

/// The same as the end of a sentence: `; did you mean 'postmark'?`, or nothing.
pub fn tip<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    nearest(word, candidates).map_or(String::new(), |near| format!("; did you mean '{near}'?"))
}

/// Which of several things a word names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// This one.
    One(usize),
    /// More than one begins so.
    Several(Vec<usize>),
    /// None.
    None,
}

/// Which thing `word` names: each has several names, any of which will do, whole or by a beginning that no other has.
/// Capitals do not matter.
pub fn named<N: AsRef<str>>(word: &str, things: &[Vec<N>]) -> Named {
    let word = word.to_lowercase();
    let those = |fits: &dyn Fn(&str) -> bool| -> Vec<usize> {
        let named = |names: &Vec<N>| names.iter().any(|name| fits(&name.as_ref().to_lowercase()));
        things.iter().enumerate().filter(|(_, names)| named(names)).map(|(i, _)| i).collect()
    };
    for found in [those(&|name| name == word), those(&|name| !word.is_empty() && name.starts_with(&word))] {
        match found.as_slice() {
            [] => {}
            [one] => return Named::One(*one),
            _ => return Named::Several(found),
        }
    }
    Named::None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_meant_and_what_is_not_is_not() {
        let words = ["predict", "reproduce", "record"];
        assert_eq!(nearest("predct", words), Some("predict"));
        assert_eq!(nearest("PERDICT", words), Some("predict"), "letters that changed places");
        assert_eq!(nearest("frobnicate", words), None);
        assert_eq!(nearest("", words), None);
        assert_eq!(tip("recrod", words), "; did you mean 'record'?");
        assert_eq!(tip("x", words), "");
        assert_eq!(nearest(&"a".repeat(100_000), words), None);
    }

    #[test]
    fn a_beginning_that_no_other_has_is_a_name() {
        let things = [vec!["ext4 (bundled)", "ext4"], vec!["ext4-aged"], vec!["xfs (bundled)", "xfs"]];
        assert_eq!(named("ext4", &things), Named::One(0), "whole before a beginning");
        assert_eq!(named("x", &things), Named::One(2));
        assert_eq!(named("EXT4-", &things), Named::One(1));
        assert_eq!(named("ext", &things), Named::Several(vec![0, 1]));
        assert_eq!(named("btrfs", &things), Named::None);
        assert_eq!(named("", &things), Named::None);
    }
}
