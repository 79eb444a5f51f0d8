//! How long data lives: from the write of a byte until it is overwritten, cut off, or removed with its file (Ousterhout
//! et al., *A Trace-Driven Analysis of the UNIX 4.2 BSD File System*, SOSP 1985, section 6; Roselli et al., *A
//! Comparison of File System Workloads*, USENIX 2000, section 5). What a delayed write saves is what dies before it.

use super::histogram::{Distribution, Histogram};
use crate::{Call, Event, FileId, flag};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;

/// Lifetimes of the data that the workload wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DataLifetimes {
    /// Bytes written, each time they were.
    pub written_bytes: u64,
    /// Of these, bytes that were written over, cut off by a truncation, and removed with their file.
    pub overwritten_bytes: u64,
    #[allow(missing_docs)]
    pub cut_bytes: u64,
    #[allow(missing_docs)]
    pub removed_bytes: u64,
    /// Of these, bytes that were there at the end. A file over which another was renamed counts as there: the trace
    /// does not say which it was.
    pub lasting_bytes: u64,
    /// Time from write to end of those that ended, nanoseconds; every byte counts.
    pub lifetimes_ns: Distribution,
    /// How much of what was written had ended within some time, the shortest first.
    pub ended_within: Vec<EndedWithin>,
}

/// A point of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EndedWithin {
    /// So long after the write, nanoseconds.
    pub age_ns: u64,
    /// Share of all bytes written, 0 to 1.
    pub share: f64,
}

/// Ages of interest: those at which systems have written data back (1 s to 5 min), and beyond.
const AGES_NS: [u64; 7] = [
    1_000_000_000,
    5_000_000_000,
    30_000_000_000,
    300_000_000_000,
    3_600_000_000_000,
    86_400_000_000_000,
    604_800_000_000_000,
];

/// Written parts of a file, by where they begin: where each ends, and when it was written.
type Written = BTreeMap<u64, (u64, u64)>;

/// Counts lifetimes. Memory is bounded by the parts that live files were written in.
#[derive(Default)]
pub(super) struct Lifetimes {
    files: FxHashMap<FileId, Written>,
    found: DataLifetimes,
    lifetimes: Histogram,
    /// Bytes that ended within each of the ages.
    within: [u64; AGES_NS.len()],
}

impl Lifetimes {
    /// What a successful call does to data; `gone`: the file that is no more after it.
    pub(super) fn add(&mut self, event: &Event, gone: Option<FileId>) {
        let now_ns = event.head.t_ns;
        if event.head.errno.is_none() && event.head.flags & flag::UNFINISHED == 0 {
            let moved = u64::try_from(event.head.ret).unwrap_or(0);
            match (&event.call, event.file()) {
                (Call::Write(range), Some(file)) => {
                    if let Some((from, to)) = range.offset.and_then(|from| Some((from, from.checked_add(moved)?))) {
                        let over = self.end(file, from, to, now_ns);
                        self.found.overwritten_bytes = self.found.overwritten_bytes.saturating_add(over);
                        self.begin(file, from, to, now_ns);
                    }
                }
                (Call::Truncate { len: Some(len), .. } | Call::Ftruncate { len: Some(len), .. }, Some(file)) => {
                    self.cut(file, *len, now_ns);
                }
                (Call::Open { .. }, Some(file)) if event.head.flags & flag::TRUNC != 0 => self.cut(file, 0, now_ns),
                _ => {}
            }
        }
        if let Some(file) = gone {
            let removed = self.end(file, 0, u64::MAX, now_ns);
            self.found.removed_bytes = self.found.removed_bytes.saturating_add(removed);
            self.files.remove(&file);
        }
    }

    fn cut(&mut self, file: FileId, len: u64, now_ns: u64) {
        let cut = self.end(file, len, u64::MAX, now_ns);
        self.found.cut_bytes = self.found.cut_bytes.saturating_add(cut);
    }

    fn begin(&mut self, file: FileId, from: u64, to: u64, now_ns: u64) {
        if from >= to {
            return;
        }
        self.found.written_bytes = self.found.written_bytes.saturating_add(to - from);
        self.files.entry(file).or_default().insert(from, (to, now_ns));
    }

    /// Ends what is written between two places; how many bytes that was.
    fn end(&mut self, file: FileId, from: u64, to: u64, now_ns: u64) -> u64 {
        let Some(written) = self.files.get_mut(&file) else { return 0 };
        let first = written.range(..from).next_back().filter(|(_, (end, _))| *end > from).map(|(start, _)| *start);
        let mut hit: Vec<u64> = first.into_iter().collect();
        hit.extend(written.range(from..to).map(|(start, _)| *start));
        let mut ended = 0;
        for start in hit {
            let Some((end, born_ns)) = written.remove(&start) else { continue };
            if start < from {
                written.insert(start, (from, born_ns));
            }
            if end > to {
                written.insert(to, (end, born_ns));
            }
            let bytes = end.min(to) - start.max(from);
            let age_ns = now_ns.saturating_sub(born_ns);
            self.lifetimes.add_many(age_ns, bytes);
            for (within, age) in self.within.iter_mut().zip(AGES_NS) {
                if age_ns <= age {
                    *within = within.saturating_add(bytes);
                }
            }
            ended += bytes;
        }
        ended
    }

    pub(super) fn finish(self) -> DataLifetimes {
        let mut found = self.found;
        let ended = found.overwritten_bytes.saturating_add(found.cut_bytes).saturating_add(found.removed_bytes);
        found.lasting_bytes = found.written_bytes.saturating_sub(ended);
        found.lifetimes_ns = self.lifetimes.distribution();
        if found.written_bytes > 0 {
            let share = |bytes: u64| bytes as f64 / found.written_bytes as f64;
            let points = AGES_NS.into_iter().zip(self.within);
            found.ended_within = points.map(|(age_ns, bytes)| EndedWithin { age_ns, share: share(bytes) }).collect();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;
    use crate::profile::Row;

    const FILE: FileId = FileId(7);
    const S: u64 = 1_000_000_000;

    fn write(t_ns: u64, offset: u64, bytes: u64) -> Event {
        let row = Row { file: Some(FILE), offset: Some(offset), ret: bytes as i64, ..Row::new(0, t_ns, Op::Write) };
        row.into()
    }

    #[test]
    fn bytes_end_by_being_overwritten_cut_off_and_removed() {
        let mut lifetimes = Lifetimes::default();
        lifetimes.add(&write(0, 0, 100), None);
        // The middle is written over after 2 s, and is in two parts then.
        lifetimes.add(&write(2 * S, 40, 20), None);
        // Half a second later all beyond 90 goes, a minute later the rest.
        let cut = Row { file: Some(FILE), req_bytes: Some(90), ..Row::new(0, 5 * S / 2, Op::Ftruncate) };
        lifetimes.add(&cut.into(), None);
        let mut failed: Event = write(3 * S, 0, 90);
        failed.head.errno = Some(posix::Errno::ENOSPC);
        lifetimes.add(&failed, None);
        let unlink = Row { file: Some(FILE), ..Row::new(0, 62 * S, Op::Unlink) };
        lifetimes.add(&unlink.into(), Some(FILE));
        lifetimes.add(&write(70 * S, 5, 3), None);
        let found = lifetimes.finish();
        assert_eq!((found.written_bytes, found.lasting_bytes), (123, 3));
        assert_eq!((found.overwritten_bytes, found.cut_bytes, found.removed_bytes), (20, 10, 90));
        assert_eq!((found.lifetimes_ns.count, found.lifetimes_ns.max), (120, 62 * S));
        assert_eq!(found.lifetimes_ns.sum, u128::from(S) * (20 * 2 + 25 + 20 * 60 + 70 * 62));
        let within: Vec<f64> = found.ended_within.iter().map(|point| (point.share * 123.0).round()).collect();
        assert_eq!(within, [0.0, 30.0, 30.0, 120.0, 120.0, 120.0, 120.0]);
    }

    #[test]
    fn nothing_written_nothing_claimed() {
        assert_eq!(Lifetimes::default().finish(), DataLifetimes::default());
    }
}
