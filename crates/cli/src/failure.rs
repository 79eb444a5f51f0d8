//! Exit codes: the one place where an error becomes a number.
//!
//! 0 done · 1 a comparison or check failed · 2 usage · 3 environment (no root, missing tool, no space) · 4 bad input
//! file · 130 interrupted.

use std::io;
use std::process::ExitCode;

/// Done, and the comparison or check it was asked for failed.
pub const CHECK_FAILED: u8 = 1;
/// The command line asks for what cannot be.
pub const USAGE: u8 = 2;
/// The machine lacks something: rights, a tool, space.
pub const ENVIRONMENT: u8 = 3;
/// An input file is not what it should be.
pub const BAD_INPUT: u8 = 4;
/// SIGINT or SIGTERM, as shells number it.
pub const INTERRUPTED: u8 = 130;

/// A failure that the command itself notices.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Its exit code.
    pub code: u8,
    /// What is wrong and what to do.
    pub message: String,
}

/// The arguments make no sense together, though each is well formed.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    Failure { code: USAGE, message: message.into() }.into()
}

/// Something on this machine is missing.
pub fn environment(message: impl Into<String>) -> anyhow::Error {
    Failure { code: ENVIRONMENT, message: message.into() }.into()
}

/// An input file cannot be used.
pub fn bad_input(message: impl Into<String>) -> anyhow::Error {
    Failure { code: BAD_INPUT, message: message.into() }.into()
}

/// Prints an error with its causes, each once, and gives its exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let code = exit_code(error);
    if code == INTERRUPTED {
        eprintln!("fsage: interrupted; everything it made in the target has been removed");
        return ExitCode::from(code);
    }
    let mut message = String::new();
    for cause in error.chain() {
        let text = report::units::printable(&cause.to_string());
        // Library errors often repeat their source in their own text.
        if message.contains(&text) {
            continue;
        }
        if !message.is_empty() {
            message.push_str(": ");
        }
        message.push_str(&text);
    }
    eprintln!("fsage: {message}");
    ExitCode::from(code)
}

/// The exit code of the first cause that has one.
fn exit_code(error: &anyhow::Error) -> u8 {
    error.chain().find_map(|cause| cause_code(cause)).unwrap_or(ENVIRONMENT)
}

fn cause_code(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    if let Some(failure) = cause.downcast_ref::<Failure>() {
        return Some(failure.code);
    }
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        return (error.kind() == io::ErrorKind::Interrupted).then_some(INTERRUPTED);
    }
    None
}
