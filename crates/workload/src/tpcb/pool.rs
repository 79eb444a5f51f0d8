//! The database's own cache of account pages, in user space: least recently used goes first.

use std::collections::BTreeMap;

/// What a transaction finds when it asks for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The page is there.
    Resident,
    /// It is not, and there was a free frame for it.
    Loaded,
    /// It is not, and this page has gone to make room. Every page in the pool has been updated, so it must be written.
    Replaced(u64),
}

/// The pages in memory.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    frames: usize,
    /// When each page was last used, and the page last used at each of these times.
    used: BTreeMap<u64, u64>,
    pages: BTreeMap<u64, u64>,
    clock: u64,
}

impl Pool {
    pub(crate) fn new(frames: usize) -> Pool {
        Pool { frames: frames.max(1), used: BTreeMap::new(), pages: BTreeMap::new(), clock: 0 }
    }

    /// Uses a page; afterwards it is in memory.
    pub(crate) fn touch(&mut self, page: u64) -> Found {
        self.clock += 1;
        let found = match self.used.insert(page, self.clock) {
            Some(earlier) => {
                self.pages.remove(&earlier);
                Found::Resident
            }
            None if self.pages.len() < self.frames => Found::Loaded,
            None => match self.pages.pop_first() {
                Some((_, victim)) => {
                    self.used.remove(&victim);
                    Found::Replaced(victim)
                }
                None => Found::Loaded,
            },
        };
        self.pages.insert(self.clock, page);
        found
    }

    pub(crate) fn is_full(&self) -> bool {
        self.pages.len() >= self.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_that_was_not_used_for_longest_goes() {
        let mut pool = Pool::new(3);
        assert_eq!([1, 2, 3].map(|page| pool.touch(page)), [Found::Loaded; 3]);
        assert!(pool.is_full());
        assert_eq!(pool.touch(1), Found::Resident);
        assert_eq!(pool.touch(4), Found::Replaced(2));
        assert_eq!(pool.touch(2), Found::Replaced(3));
        assert_eq!(pool.touch(1), Found::Resident);
        assert_eq!(pool.touch(5), Found::Replaced(4));
    }
}
