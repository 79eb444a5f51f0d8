//! Where an importer hands its events on to.

use crate::Batch;
use columnar::FileError;

/// Where batches go, for good: the events a sink is given are its own.
pub type Sink<'s> = dyn FnMut(Batch) -> Result<(), FileError> + 's;
