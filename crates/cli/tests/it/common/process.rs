//! Processes that tests start, and waiting for what they do.

use std::process::{Command, Stdio};
pub use testkit::process::{Running, status_field, until};

/// Whether a program can be run here; where not, the test is skipped.
pub fn has(program: &str, args: &[&str]) -> bool {
    match Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => true,
        other => {
            testkit::skip(format!("{program} {}: {other:?}", args.join(" ")));
            false
        }
    }
}
