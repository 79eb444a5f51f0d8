//! The torture program under strace. What is compared, and with what: `torture/harness.rs`.
//!
//! The quick settings run here. The long ones, by hand, as root or not:
//!
//!     TORTURE_OPERATIONS=1000000 TORTURE_SEED=7 cargo test --release -p fsage-trace --test it -- --nocapture torture::

mod harness;

use harness::{Run, hold};
use trace::agree::Agreement;
use trace::record::Strace;

/// Records with strace and holds it against the truth; `None` where that cannot be done, for which the test is skipped.
fn with_strace(run: Run) -> Option<Agreement> {
    hold(run, &mut testkit::have(Strace::find(None))?)
}

#[test]
fn serial_calls_are_recorded_as_they_were() {
    let run =
        Run { seed: 1, operations: 6_000, processes: 3, threads: 2, serial: true, everything: false, rooted: false };
    let Some(agreement) = with_strace(run) else { return };
    // Files known to neither, or to one side alone, are no agreement.
    assert!(agreement.files_compared * 3 > agreement.calls, "{} of {}", agreement.files_compared, agreement.calls);
}

#[test]
fn one_thread_alone_is_recorded_as_it_was() {
    with_strace(Run {
        seed: 2,
        operations: 3_000,
        processes: 1,
        threads: 1,
        serial: true,
        everything: false,
        rooted: false,
    });
}

#[test]
fn racing_calls_are_recorded_as_they_were() {
    with_strace(Run {
        seed: 3,
        operations: 10_000,
        processes: 3,
        threads: 3,
        serial: false,
        everything: false,
        rooted: false,
    });
}

/// Paths mean something else to whoever has a root directory of his own.
#[test]
fn roots_of_their_own_are_known() {
    let run =
        Run { seed: 4, operations: 8_000, processes: 3, threads: 2, serial: true, everything: false, rooted: true };
    let Some(agreement) = with_strace(run) else { return };
    assert!(agreement.files_compared * 4 > agreement.calls, "{} of {}", agreement.files_compared, agreement.calls);
}
