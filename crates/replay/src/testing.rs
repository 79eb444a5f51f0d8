//! What tests of this room share.

use trace::{Event, Op};

/// An event of one operation with nothing else said.
pub(crate) fn event(op: Op) -> Event {
    Event::new(0, 0, op)
}
