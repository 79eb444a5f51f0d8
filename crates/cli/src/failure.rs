//! Exit codes: the one place where an error becomes a number.
//!
//! 0 done · 1 a comparison or check failed · 2 usage · 3 environment (no root, missing tool, no space) · 4 bad input
//! file · 130 interrupted, 143 by SIGTERM.

use crate::progress;
use aging::AgingError;
use aging::age::AgeError;
use aging::plan::PlanError;
use aging::snapshot::SnapshotError;
use crash::CrashError;
use device::DriveError;
use device::validate::TraceError;
use experiment::ExperimentError;
use ffs::FfsError;
use fuse::MountError;
use lab::OpenError;
use layout::LayoutError;
use lfs::LfsError;
use measure::MeasureError;
use posix::SetupError;
use predict::pipeline::PredictError;
use replay::ReplayError;
use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;
use system::SystemProfileError;
use system::thesis::ThesisError;
use trace::profile::ProfileError;
use trace::record::{AnalysisError, RecordError};
use trace::strace::ImportError;
use trace::text::snapshot::SnapshotTextError;
use trace::text::trace::ExportError;
use trace::verify::VerifyError;
use validate::ValidateError;
use workload::WorkloadError;

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

/// Says what is wrong with the command line, or shows the help asked for, and exits. An argument may be the name of somebody else's
/// file: what drives a terminal is escaped, where there is such a thing, for the price of the colours.
pub fn usage_of(error: &clap::Error) -> ! {
    let hidden = |arg: std::ffi::OsString| arg.to_string_lossy().chars().any(units::text::is_hidden);
    if !error.use_stderr() || !std::env::args_os().any(hidden) {
        error.exit();
    }
    let lines = error.render().to_string();
    for line in lines.lines() {
        let _ = writeln!(io::stderr(), "{}", units::text::printable(line));
    }
    std::process::exit(error.exit_code())
}

/// Prints an error with its causes, each once, and gives its exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    // A signal that ended the work matters more than the call it happened to interrupt.
    if let Some(code) = posix::interrupt::exit_code() {
        match error.downcast_ref::<Failure>() {
            // The command knows what became of its work.
            Some(failure) if failure.code == INTERRUPTED => progress::say(&failure.message),
            _ => progress::say("interrupted; what it made in its target has been removed"),
        }
        return ExitCode::from(code);
    }
    let mut message = String::new();
    for cause in error.chain() {
        let text = units::text::printable(&cause.to_string());
        // Library errors often repeat their source in their own text.
        if message.contains(&text) {
            continue;
        }
        if !message.is_empty() {
            message.push_str(": ");
        }
        message.push_str(&text);
    }
    progress::say(&message);
    ExitCode::from(exit_code(error))
}

/// The exit code of the first cause that has one; anything else is the environment's doing.
fn exit_code(error: &anyhow::Error) -> u8 {
    // Whatever it was opened for: what is no file, or no file of its kind, is a bad input.
    if error.chain().filter_map(|cause| cause.downcast_ref()).any(|e| posix::input::Refusal::of(e).is_some()) {
        return BAD_INPUT;
    }
    error.chain().find_map(cause_code).unwrap_or(ENVIRONMENT)
}

fn cause_code(cause: &(dyn Error + 'static)) -> Option<u8> {
    if let Some(failure) = cause.downcast_ref::<Failure>() {
        return Some(failure.code);
    }
    if let Some(error) = cause.downcast_ref::<SetupError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<CrashError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<OpenError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<MountError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<VerifyError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<ProfileError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<SystemProfileError>() {
        return Some(match error {
            // A profile that is not there is a bad input, not a fault of the machine.
            SystemProfileError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => BAD_INPUT,
            other => other.exit_code(),
        });
    }
    if let Some(error) = cause.downcast_ref::<ReplayError>() {
        return Some(replay_code(error));
    }
    if let Some(error) = cause.downcast_ref::<MeasureError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<ValidateError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<RecordError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<AnalysisError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<ImportError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<ExportError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<SnapshotTextError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<LayoutError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<DriveError>() {
        return Some(if matches!(error, DriveError::Unknown { .. }) { USAGE } else { BAD_INPUT });
    }
    if cause.is::<TraceError>() {
        return Some(BAD_INPUT);
    }
    if let Some(error) = cause.downcast_ref::<PlanError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<AgeError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<FfsError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<LfsError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<ExperimentError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<SnapshotError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<AgingError>() {
        return Some(error.exit_code());
    }
    if let Some(error) = cause.downcast_ref::<WorkloadError>() {
        return Some(error.exit_code());
    }
    if cause.is::<ThesisError>() {
        return Some(BAD_INPUT);
    }
    if let Some(error) = cause.downcast_ref::<PredictError>() {
        return Some(predict_code(error));
    }
    None
}

fn predict_code(error: &PredictError) -> u8 {
    match error {
        PredictError::Workload(profile) => profile.exit_code(),
        PredictError::Override(_) | PredictError::NoSystem => USAGE,
        PredictError::MissingEntries { .. } => BAD_INPUT,
        PredictError::Coverage { .. } => CHECK_FAILED,
    }
}

fn replay_code(error: &ReplayError) -> u8 {
    match error {
        ReplayError::Profile(profile) => profile.exit_code(),
        ReplayError::Interrupted { .. } => INTERRUPTED,
        _ => ENVIRONMENT,
    }
}
