//! Sets of byte ranges of a file: its holes, and what was preallocated and never written.

/// Ranges that are told apart; beyond, the smallest gap between two is swallowed.
const RANGES_MAX: usize = 256;

/// Disjoint ranges in order.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    list: Vec<(u64, u64)>,
}

impl Ranges {
    /// Adds a range.
    pub fn add(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        self.list.push((start, end));
        self.list.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(self.list.len());
        for &(start, end) in &self.list {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        while merged.len() > RANGES_MAX {
            let gap = |i: usize| merged[i + 1].0 - merged[i].1;
            let at = (0..merged.len() - 1).min_by_key(|&i| gap(i)).unwrap_or(0);
            merged[at].1 = merged[at + 1].1;
            merged.remove(at + 1);
        }
        self.list = merged;
    }

    /// Takes a range out.
    pub fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let mut left: Vec<(u64, u64)> = Vec::with_capacity(self.list.len() + 1);
        for &(from, to) in &self.list {
            let (cut_from, cut_to) = (start.max(from), end.min(to));
            if cut_from >= cut_to {
                left.push((from, to));
                continue;
            }
            if from < cut_from {
                left.push((from, cut_from));
            }
            if cut_to < to {
                left.push((cut_to, to));
            }
        }
        self.list = left;
    }

    /// Takes out what lies at or beyond a place.
    pub fn cut(&mut self, from: u64) {
        self.remove(from, u64::MAX);
    }

    /// Bytes of a range that are in the set.
    pub fn bytes_in(&self, start: u64, end: u64) -> u64 {
        self.list.iter().map(|r| r.1.min(end).saturating_sub(r.0.max(start))).sum()
    }

    /// What of it lies in a range.
    pub fn within(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let cut = self.list.iter().map(|r| (r.0.max(start), r.1.min(end)));
        cut.filter(|r| r.0 < r.1).collect()
    }
}
