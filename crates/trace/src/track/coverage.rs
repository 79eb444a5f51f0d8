//! How much of a workload's file activity the trace shows.

use crate::profile::Row;
use crate::{Op, flag};
use serde::Serialize;
use std::collections::BTreeMap;

/// The unit in which unseen accesses through a data mapping are reckoned: the kernel maps up to 16 pages around a fault
/// (`fault_around_bytes`, 64 KiB by default), so a mapping touched everywhere faults at least once for each.
pub const FAULT_AROUND_BYTES: u64 = 64 * 1024;

/// The unit in which unseen writes through a mapping are reckoned once an msync has made its pages clean: the first
/// write to each faults.
pub const PAGE_BYTES: u64 = 4096;

/// Counts of what was seen, seen and not modelled, and known to be unseen.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Coverage {
    /// Calls on files of file systems, modelled.
    pub modelled_calls: u64,
    /// Calls on files of file systems that are not modelled.
    pub other_calls: u64,
    /// The same by name.
    pub other_by_name: BTreeMap<String, u64>,
    /// Calls on pipes, sockets, devices, /proc, /sys and the like: no file system's work.
    pub foreign_calls: u64,
    /// Calls that started and never returned in the trace.
    pub unfinished_calls: u64,
    /// Paths whose directory the trace does not tell: a working directory, or a root directory after chroot.
    pub unknown_directory_calls: u64,
    /// Descriptors whose printed path contradicted our tables (passed over a socket, renamed by an untraced process).
    pub resynchronised_descriptors: u64,
    /// Programs started; their pages are read through mappings, unseen.
    pub execs: u64,
    /// Mappings of programs and libraries, and their bytes: pages are read unseen, mostly from the page cache.
    pub image_maps: u64,
    #[allow(missing_docs)]
    pub image_mapped_bytes: u64,
    /// Mappings of other files, and their bytes: accesses through them are unseen.
    pub data_maps: u64,
    #[allow(missing_docs)]
    pub data_mapped_bytes: u64,
    /// Unseen accesses through data mappings if each were touched everywhere once, in units of `FAULT_AROUND_BYTES`,
    /// and written everywhere between one msync and the next, in units of `PAGE_BYTES`.
    pub data_map_accesses: u64,
    /// Accesses through mappings are events of their own.
    pub accesses_seen: bool,
    /// io_uring requests are events of their own.
    pub requests_seen: bool,
    /// io_uring instances made.
    pub io_uring_setups: u64,
    /// Those of them that the kernel polls: what is submitted to them is not told.
    pub io_uring_polled: u64,
    /// Operations submitted to them, unseen.
    pub io_uring_submitted: u64,
    /// Calls by operation, foreign ones and implied closes left out.
    pub by_op: ByOp,
}

/// How many calls there were of each operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByOp([u64; Op::ALL.len()]);

impl Default for ByOp {
    fn default() -> Self {
        ByOp([0; Op::ALL.len()])
    }
}

impl ByOp {
    /// The operations that there were, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (Op, u64)> {
        Op::ALL.iter().copied().zip(self.0).filter(|&(_, n)| n > 0)
    }

    #[inline]
    fn count(&mut self, op: Op) {
        self.0[op as usize] += 1;
    }
}

impl Serialize for ByOp {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.iter().map(|(op, n)| (op.name(), n)))
    }
}

impl Coverage {
    /// Share of the file activity that is seen and modelled, 0 to 1: modelled calls whose paths are known over modelled
    /// calls, calls not modelled, io_uring operations, [`data_map_accesses`](Self::data_map_accesses) and `lost`
    /// records. Loading of programs and libraries is left out on both sides and reported by itself. 1 if there was no
    /// activity; `None` if an io_uring was made whose submissions the trace does not show (no `io_uring_enter` in it,
    /// or kernel polling).
    pub fn share(&self, lost: u64) -> Option<f64> {
        let untold = self.io_uring_polled > 0 || self.io_uring_setups > 0 && self.io_uring_submitted == 0;
        if untold && !self.requests_seen {
            return None;
        }
        let unseen = self.other_calls.saturating_add(self.io_uring_submitted).saturating_add(self.data_map_accesses);
        let all = self.modelled_calls.saturating_add(unseen).saturating_add(lost);
        if all == 0 {
            return Some(1.0);
        }
        #[allow(clippy::cast_precision_loss)]
        Some(self.modelled_calls.saturating_sub(self.unknown_directory_calls) as f64 / all as f64)
    }

    pub(super) fn count(&mut self, event: &Row) {
        if event.flags & flag::UNFINISHED != 0 {
            self.unfinished_calls += 1;
        }
        if event.flags & flag::IMPLIED != 0 {
            return;
        }
        if event.flags & flag::FOREIGN != 0 {
            self.foreign_calls += 1;
            return;
        }
        self.by_op.count(event.op);
        match event.op {
            Op::Other => self.other_calls += 1,
            Op::Exec => self.execs += u64::from(event.errno == 0),
            Op::Clone | Op::Exit | Op::IoUring | Op::Mmap => {}
            _ => self.modelled_calls += 1,
        }
    }
}
