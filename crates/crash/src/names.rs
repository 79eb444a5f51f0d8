//! When each name led where in a history: what a verdict asks for again and again, looked up instead of searched for in
//! every tree.

use crate::{Identity, Tree};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Calls after which something was so, from one on up to, not including, another.
type Span = Range<u32>;

/// The names of a tree, each with the directory that it is in rather than with its path.
pub(crate) fn entries(tree: &Tree) -> Tree {
    let entry = |(path, id): (&String, &Identity)| {
        let key = match path.rsplit_once('/') {
            None => path.clone(),
            Some((dir, name)) => match tree.get(dir) {
                Some((ino, generation)) => format!("{ino}.{generation}/{name}"),
                None => path.clone(),
            },
        };
        (key, *id)
    };
    tree.iter().map(entry).collect()
}

/// The same of the trees after each call.
pub(crate) fn all_entries(trees: &[Arc<Tree>]) -> Vec<Arc<Tree>> {
    let mut all: Vec<Arc<Tree>> = Vec::with_capacity(trees.len());
    for (at, tree) in trees.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| trees.get(before).zip(all.get(before)));
        let same = before.filter(|(before, _)| Arc::ptr_eq(before, tree)).map(|(_, same)| same.clone());
        all.push(same.unwrap_or_else(|| Arc::new(entries(tree))));
    }
    all
}

/// The names of a history by path and by file.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamesOverTime {
    /// What a path led to, in the order of time.
    paths: BTreeMap<String, Vec<(Span, Identity)>>,
    /// When a file had a name, in the order of time.
    named: BTreeMap<Identity, Vec<Span>>,
}

impl NamesOverTime {
    /// Of the trees after each call.
    pub(crate) fn new(trees: &[Arc<Tree>]) -> NamesOverTime {
        let mut names = NamesOverTime::default();
        // How many names a file has now.
        let mut count: BTreeMap<Identity, u32> = BTreeMap::new();
        let none = Arc::new(Tree::new());
        let mut before = &none;
        for (call, tree) in (0..).zip(trees) {
            if Arc::ptr_eq(before, tree) {
                continue;
            }
            // What comes before what goes: a file that is renamed always has a name.
            for (path, id) in tree.iter().filter(|(path, id)| before.get(*path) != Some(*id)) {
                names.paths.entry(path.clone()).or_default().push((call..u32::MAX, *id));
                let count = count.entry(*id).or_default();
                *count += 1;
                if *count == 1 {
                    names.named.entry(*id).or_default().push(call..u32::MAX);
                }
            }
            for (path, id) in before.iter().filter(|(path, id)| tree.get(*path) != Some(*id)) {
                let spans = names.paths.get_mut(path).into_iter().flatten();
                // If the path leads elsewhere now, that is the last span.
                spans
                    .rev()
                    .filter(|(span, of)| of == id && span.end == u32::MAX)
                    .take(1)
                    .for_each(|(s, _)| s.end = call);
                let count = count.entry(*id).or_default();
                *count -= 1;
                if *count == 0
                    && let Some(last) = names.named.get_mut(id).and_then(|spans| spans.last_mut())
                {
                    last.end = call;
                }
            }
            before = tree;
        }
        names
    }

    /// Whether a path led to a file after one of some calls.
    pub(crate) fn led(&self, path: &str, id: Identity, calls: &Span) -> bool {
        let spans = self.paths.get(path).into_iter().flatten();
        spans.rev().any(|(span, of)| *of == id && span.start < calls.end && calls.start < span.end)
    }

    /// What a path has led to last.
    pub(crate) fn last(&self, path: &str) -> Option<Identity> {
        self.paths.get(path)?.last().map(|(_, id)| *id)
    }

    /// Whether a path led to a file after all of some calls.
    pub(crate) fn always_led(&self, path: &str, id: Identity, calls: &Span) -> bool {
        let spans = self.paths.get(path).into_iter().flatten();
        spans.rev().any(|(span, of)| *of == id && span.start <= calls.start && calls.end <= span.end)
    }

    /// Whether a file had a name after all of some calls.
    pub(crate) fn always_named(&self, id: Identity, calls: &Span) -> bool {
        let spans = self.named.get(&id).into_iter().flatten();
        spans.rev().any(|span| span.start <= calls.start && calls.end <= span.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_when_they_were_there() {
        let tree = |names: &[(&str, u32)]| -> Arc<Tree> {
            Arc::new(names.iter().map(|(path, ino)| ((*path).to_owned(), (*ino, 1))).collect())
        };
        let (first, renamed) = (tree(&[("a", 1), ("b", 2)]), tree(&[("b", 1)]));
        let trees = [first.clone(), first, renamed, tree(&[]), tree(&[("a", 1)])];
        let names = NamesOverTime::new(&trees);
        // Against what a search of the trees finds, for every path, file and range.
        for (start, end) in (0..5).flat_map(|start| (start + 1..=5).map(move |end| (start, end))) {
            let some = &trees[start as usize..end as usize];
            for ino in 1..=2 {
                let id = (ino, 1);
                for path in ["a", "b"] {
                    let leads = |tree: &Arc<Tree>| tree.get(path) == Some(&id);
                    assert_eq!(
                        names.led(path, id, &(start..end)),
                        some.iter().any(leads),
                        "{path} {ino} {start} {end}"
                    );
                    let all = some.iter().all(leads);
                    assert_eq!(names.always_led(path, id, &(start..end)), all, "{path} {ino} {start} {end}");
                }
                let named = some.iter().all(|tree| tree.values().any(|of| *of == id));
                assert_eq!(names.always_named(id, &(start..end)), named, "{ino} {start} {end}");
            }
        }
        assert_eq!((names.last("a"), names.last("b"), names.last("c")), (Some((1, 1)), Some((1, 1)), None));
    }
}
