//! What tests of this room share.

use trace::{Event, Op};

/// An event of one operation with nothing else said.
pub(crate) fn event(op: Op) -> Event {
    Event {
        seq: 0,
        t_ns: 0,
        dur_ns: 0,
        pid: 1,
        tid: 1,
        op,
        flags: 0,
        mode: None,
        errno: 0,
        ret: 0,
        ofd: None,
        ofd2: None,
        file: None,
        parent: None,
        path: None,
        path2: None,
        caller_dir: None,
        caller_dir2: None,
        offset: None,
        offset2: None,
        req_bytes: None,
        size_before: None,
    }
}
