//! The files with the most breaks, as many as asked for and no more.

use crate::scores::file::FileLayout;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A badly laid out file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorstFile {
    /// Its path below the surveyed directory; bytes that are not UTF-8 are shown as `\xNN`.
    pub path: String,
    /// Its inode number.
    pub ino: u64,
    /// Its length.
    pub size_bytes: u64,
    /// Its extents.
    pub extents: u64,
    /// Blocks not directly after their predecessor.
    pub breaks: u64,
    /// Its layout score.
    pub layout_score: f64,
}

/// Keeps the worst files seen so far.
#[derive(Clone, Debug)]
pub struct Worst {
    keep: usize,
    /// Ordered best to worst: breaks ascending, then the later path first, so that ties are broken by path.
    files: BTreeSet<(u64, Reverse<String>, u64, u64, u64, u64)>,
}

impl Worst {
    /// Keeps at most `keep` files.
    pub fn new(keep: usize) -> Worst {
        Worst { keep, files: BTreeSet::new() }
    }

    /// Offers a file; `path` is only asked for where it may be kept.
    pub fn offer(&mut self, ino: u64, size_bytes: u64, layout: &FileLayout, path: impl FnOnce() -> String) {
        let breaks = layout.score.breaks();
        let full = self.files.len() >= self.keep;
        let least = self.files.first().map_or(0, |f| f.0);
        if breaks == 0 || self.keep == 0 || (full && breaks < least) {
            return;
        }
        self.files.insert((breaks, Reverse(path()), ino, size_bytes, layout.extents, layout.score.pairs));
        if self.files.len() > self.keep {
            self.files.pop_first();
        }
    }

    /// The files, worst first.
    pub fn finished(self) -> Vec<WorstFile> {
        let row =
            |(breaks, Reverse(path), ino, size_bytes, extents, pairs): (u64, Reverse<String>, u64, u64, u64, u64)| {
                let layout_score = (pairs - breaks) as f64 / pairs as f64;
                WorstFile { path, ino, size_bytes, extents, breaks, layout_score }
            };
        self.files.into_iter().rev().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scores::score::LayoutScore;

    #[test]
    fn the_worst_are_kept_and_ties_go_by_path() {
        let mut worst = Worst::new(2);
        for (path, following) in [("c", 5), ("b", 3), ("a", 3), ("d", 9), ("e", 10)] {
            let layout = FileLayout { score: LayoutScore { following, pairs: 10 }, ..FileLayout::default() };
            worst.offer(1, 2, &layout, || path.to_owned());
        }
        let kept: Vec<_> = worst.finished().into_iter().map(|f| (f.path, f.breaks)).collect();
        assert_eq!(kept, [("a".to_owned(), 7), ("b".to_owned(), 7)]);
    }
}
