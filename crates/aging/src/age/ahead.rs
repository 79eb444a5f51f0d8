//! The look-ahead: operations read from the plan and not yet reached, and the deletions among them.

use crate::format::{Batches, Reader};
use crate::{AgingOp, NodeId, OpKind};
use columnar::FileError;
use std::collections::VecDeque;

/// A bounded window over the plan's operations.
pub(super) struct Ahead<'p> {
    batches: Batches<'p>,
    ended: bool,
    /// Number of the first operation in `ops`.
    next: u64,
    ops: VecDeque<AgingOp>,
    /// The deletions in `ops`, by number.
    deletions: VecDeque<(u64, NodeId)>,
    length: usize,
}

impl<'p> Ahead<'p> {
    /// Begins at operation `first`, and looks at least `length` operations ahead (at most a row group more).
    pub(super) fn new(reader: &'p Reader, first: u64, length: usize) -> Ahead<'p> {
        let (ops, deletions) = (VecDeque::new(), VecDeque::new());
        Ahead { batches: reader.batches(first), ended: false, next: first, ops, deletions, length: length.max(1) }
    }

    fn fill(&mut self) -> Result<(), FileError> {
        while !self.ended && self.ops.len() < self.length {
            let Some(batch) = self.batches.next() else {
                self.ended = true;
                break;
            };
            for op in batch? {
                if op.kind == OpKind::Delete {
                    self.deletions.push_back((self.next + self.ops.len() as u64, op.node));
                }
                self.ops.push_back(op);
            }
        }
        Ok(())
    }

    /// The next operation, left where it is; `None` at the plan's end.
    pub(super) fn peek(&mut self) -> Result<Option<&AgingOp>, FileError> {
        if self.ops.len() * 2 < self.length || self.ops.is_empty() {
            self.fill()?;
        }
        Ok(self.ops.front())
    }

    /// Takes the next operation, with its number.
    pub(super) fn take(&mut self) -> Option<(u64, AgingOp)> {
        let op = self.ops.pop_front()?;
        let number = self.next;
        self.next += 1;
        if self.deletions.front().is_some_and(|(at, _)| *at <= number) {
            self.deletions.pop_front();
        }
        Some((number, op))
    }

    /// The first directories that will be made in the root, as far as they are within the look-ahead.
    pub(super) fn first_directories(&mut self, count: usize) -> Result<Vec<AgingOp>, FileError> {
        self.fill()?;
        let in_root = |op: &&AgingOp| op.kind == OpKind::Mkdir && op.dir == NodeId::ROOT;
        Ok(self.ops.iter().filter(in_root).take(count).cloned().collect())
    }

    /// Number of the next operation.
    pub(super) fn position(&self) -> u64 {
        self.next
    }

    /// The files that will be deleted within the look-ahead, the nearest deletion first.
    pub(super) fn deletions(&self) -> impl Iterator<Item = NodeId> {
        self.deletions.iter().map(|(_, node)| *node)
    }
}
