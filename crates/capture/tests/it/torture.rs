//! The torture program under the recorder in the kernel. What is compared, and with what:
//! `crates/trace/tests/it/torture/harness.rs`.
//!
//! The quick settings run here. The long ones, by hand, as root:
//!
//!     export TORTURE_OPERATIONS=1000000 TORTURE_SEED=7
//!     cargo test --release -p fsage-capture --test it -- --nocapture torture::

use crate::harness::{Run, hold};
use capture::{Kernel, Options};
use trace::agree::Agreement;

/// Records in the kernel and holds it against the truth; `None` where that cannot be done, for which the test is
/// skipped.
fn in_the_kernel(run: Run) -> Option<Agreement> {
    hold(run, &mut testkit::have(Kernel::find(Options::default()))?)
}

#[test]
fn serial_calls_are_recorded_as_they_were() {
    let run =
        Run { seed: 1, operations: 8_000, processes: 3, threads: 2, serial: true, everything: true, rooted: false };
    let Some(agreement) = in_the_kernel(run) else { return };
    // Files known to neither, or to one side alone, are no agreement.
    assert!(agreement.files_compared * 3 > agreement.calls, "{} of {}", agreement.files_compared, agreement.calls);
}

#[test]
fn one_thread_alone_is_recorded_as_it_was() {
    in_the_kernel(Run {
        seed: 2,
        operations: 3_000,
        processes: 1,
        threads: 1,
        serial: true,
        everything: true,
        rooted: false,
    });
}

#[test]
fn racing_calls_are_recorded_as_they_were() {
    in_the_kernel(Run {
        seed: 3,
        operations: 20_000,
        processes: 3,
        threads: 3,
        serial: false,
        everything: true,
        rooted: false,
    });
}

/// Paths mean something else to whoever has a root directory of his own.
#[test]
fn roots_of_their_own_are_known() {
    let run =
        Run { seed: 4, operations: 8_000, processes: 3, threads: 2, serial: true, everything: true, rooted: true };
    let Some(agreement) = in_the_kernel(run) else { return };
    assert!(agreement.files_compared * 4 > agreement.calls, "{} of {}", agreement.files_compared, agreement.calls);
}
