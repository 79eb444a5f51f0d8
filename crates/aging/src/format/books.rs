//! What a description counts: the sums over an aging workload's operations, as the writer states them and a check finds
//! them again.

use super::{Counts, DayUse};
use crate::tree::Broken;
use crate::{AgingOp, DAY_NS, OpKind, Tree};

/// The tree that the operations so far have made, and the sums over them.
pub(super) struct Books {
    pub(super) capacity_bytes: u64,
    pub(super) block_bytes: u64,
    tree: Tree,
    operations: u64,
    by_kind: [u64; OpKind::ALL.len()],
    written_bytes: u64,
    used_bytes: u64,
    used_bytes_max: u64,
    days: Vec<DayUse>,
}

impl Books {
    /// Nothing yet, for a file system of `capacity_bytes` in blocks of `block_bytes`.
    pub(super) fn new(capacity_bytes: u64, block_bytes: u64) -> Books {
        Books {
            capacity_bytes,
            block_bytes,
            tree: Tree::new(),
            operations: 0,
            by_kind: [0; OpKind::ALL.len()],
            written_bytes: 0,
            used_bytes: 0,
            used_bytes_max: 0,
            days: Vec::new(),
        }
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Enters one operation, of a day that its caller has found to be one.
    ///
    /// # Errors
    /// It contradicts those before it; nothing is entered.
    pub(super) fn apply(&mut self, op: &AgingOp) -> Result<(), Broken> {
        let files = self.tree.files();
        let before = self.tree.apply(op)?;
        self.end_days(op.t_ns / DAY_NS, files);
        let after = match op.kind {
            OpKind::Delete => 0,
            OpKind::Create | OpKind::Append | OpKind::Truncate => self.tree.get(op.node).map_or(0, |n| n.size_bytes),
            _ => before,
        };
        // A plan from elsewhere may say more bytes than there are.
        let used_bytes = self.used_bytes.saturating_add(self.rounded(after));
        self.used_bytes = used_bytes.saturating_sub(self.rounded(before));
        self.used_bytes_max = self.used_bytes_max.max(self.used_bytes);
        self.operations += 1;
        self.by_kind[usize::from(op.kind.code())] += 1;
        self.written_bytes = self.written_bytes.saturating_add(op.written_bytes());
        Ok(())
    }

    /// Ends every day, and answers what the description states.
    pub(super) fn close(&mut self, days: u32) -> (Counts, Vec<DayUse>) {
        self.end_days(u64::from(days), self.tree.files());
        let counts = Counts {
            operations: self.operations,
            by_kind: OpKind::ALL.iter().zip(self.by_kind).map(|(k, n)| (k.name().to_owned(), n)).collect(),
            written_bytes: self.written_bytes,
            files_at_end: self.tree.files(),
            bytes_at_end: self.tree.bytes(),
            used_bytes_max: self.used_bytes_max,
        };
        (counts, std::mem::take(&mut self.days))
    }

    fn rounded(&self, bytes: u64) -> u64 {
        bytes.checked_next_multiple_of(self.block_bytes.max(1)).unwrap_or(u64::MAX)
    }

    /// Ends the days before `day` (from 0).
    fn end_days(&mut self, day: u64, files: u64) {
        while (self.days.len() as u64) < day {
            let number = u32::try_from(self.days.len() + 1).unwrap_or(u32::MAX);
            let used_share =
                if self.capacity_bytes == 0 { 0.0 } else { self.used_bytes as f64 / self.capacity_bytes as f64 };
            let (operations, used_bytes) = (self.operations, self.used_bytes);
            self.days.push(DayUse { day: number, operations, files, used_bytes, used_share });
        }
    }
}
