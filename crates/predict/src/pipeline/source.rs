//! Where a pipeline's events come from.

use columnar::FileError;
use std::path::Path;
use trace::profile::{Durations, Reader};
use trace::{Batch, Snapshot};

/// A recorded workload that can be read more than once.
pub trait Workload {
    /// The names that were there when the trace began.
    ///
    /// # Errors
    /// The profile is damaged.
    fn snapshot(&self) -> Result<Snapshot, FileError>;

    /// Hands over the batches in the order of the trace, until the visitor says `false`. What the columns named hold
    /// may be left out of the events ([`Reader::batches_without`]). A batch is the visitor's to keep, in exchange for
    /// another whose memory may be used.
    ///
    /// # Errors
    /// The profile is damaged.
    fn visit(&self, unread: &[&str], visitor: &mut dyn FnMut(&mut Batch) -> bool) -> Result<(), FileError>;

    /// What it is called, for messages.
    fn path(&self) -> &Path {
        Path::new("the workload")
    }

    /// The share of the workload's activity that the importer says the events stand for.
    fn stated_coverage(&self) -> Option<f64>;

    /// How far its durations are the calls' own.
    fn durations(&self) -> Durations {
        Durations::default()
    }
}

impl Workload for Reader {
    fn snapshot(&self) -> Result<Snapshot, FileError> {
        Reader::snapshot(self)
    }

    fn visit(&self, unread: &[&str], visitor: &mut dyn FnMut(&mut Batch) -> bool) -> Result<(), FileError> {
        let mut batches = self.batches_without(unread)?;
        let mut batch = Batch::default();
        while batches.next_into(&mut batch)? {
            if !visitor(&mut batch) {
                break;
            }
        }
        Ok(())
    }

    fn durations(&self) -> Durations {
        self.meta().durations()
    }

    fn path(&self) -> &Path {
        self.directory()
    }

    fn stated_coverage(&self) -> Option<f64> {
        self.meta().coverage_share
    }
}

/// A workload in memory: tests, generated traces.
#[derive(Clone, Debug, Default)]
pub struct InMemory {
    /// Names at the start.
    pub snapshot: Snapshot,
    /// The trace.
    pub batches: Vec<Batch>,
}

impl Workload for InMemory {
    fn snapshot(&self) -> Result<Snapshot, FileError> {
        Ok(self.snapshot.clone())
    }

    fn visit(&self, _unread: &[&str], visitor: &mut dyn FnMut(&mut Batch) -> bool) -> Result<(), FileError> {
        for batch in &self.batches {
            if !visitor(&mut batch.clone()) {
                break;
            }
        }
        Ok(())
    }

    fn stated_coverage(&self) -> Option<f64> {
        None
    }
}
