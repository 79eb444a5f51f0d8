//! What tests of this room share.

use trace::Op;
use trace::profile::Row;

/// A call of one operation with nothing else said.
pub(crate) fn event(op: Op) -> Row {
    Row::new(0, 0, op)
}
