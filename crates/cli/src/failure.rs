//! Failures of commands, and exit codes: the one place where the kind of a fault becomes a number.
//!
//! 0 done · 1 a comparison or check failed · 2 usage · 3 environment (no root, missing tool, no space) · 4 bad input
//! file · 130 interrupted, 143 by SIGTERM.

use fault::{Fault, Kind};
use std::error::Error;
use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// What a command comes to.
pub type Result<T> = std::result::Result<T, Failure>;

/// The exit code of a kind of fault.
fn number(kind: Kind) -> u8 {
    match kind {
        Kind::Check => 1,
        Kind::Usage => 2,
        Kind::Environment => 3,
        Kind::BadInput => 4,
        // As shells number SIGINT, where no signal came.
        Kind::Interrupted => posix::interrupt::exit_code().unwrap_or(130),
    }
}

/// The same for a command that ends with it.
pub fn code(kind: Kind) -> ExitCode {
    ExitCode::from(number(kind))
}

/// Why a command ends without its result.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    what: What,
    /// What it happened to, the innermost first.
    context: Vec<String>,
}

#[derive(Debug)]
enum What {
    /// The command itself has noticed: what is wrong and what to do.
    Message(String),
    Error(Box<dyn Error + Send + Sync>),
}

impl Failure {
    /// A failure that the command itself notices.
    pub fn new(kind: Kind, message: impl Into<String>) -> Failure {
        Failure { kind, what: What::Message(message.into()), context: Vec::new() }
    }

    /// The error it began with and those it came from.
    pub fn causes(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        let first: Option<&(dyn Error + 'static)> = match &self.what {
            What::Message(_) => None,
            What::Error(error) => Some(&**error),
        };
        std::iter::successors(first, |error: &&(dyn Error + 'static)| (*error).source())
    }
}

/// What it happened to, and what it came from, each once, on one line.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = self.context.iter().rev().cloned().collect();
        match &self.what {
            What::Message(message) => parts.push(message.clone()),
            What::Error(_) => parts.extend(self.causes().map(ToString::to_string)),
        }
        f.write_str(&units::text::chain(parts))
    }
}

impl<E: Fault + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure { kind: posix::input::kind_of(&error), what: What::Error(Box::new(error)), context: Vec::new() }
    }
}

/// Says what a failure happened to.
pub trait Context<T> {
    /// In these words.
    fn context(self, words: impl Into<String>) -> Result<T>;

    /// In words that are made where they are needed.
    fn with_context<W: Into<String>>(self, words: impl FnOnce() -> W) -> Result<T>;
}

impl<T, E: Into<Failure>> Context<T> for std::result::Result<T, E> {
    fn context(self, words: impl Into<String>) -> Result<T> {
        self.with_context(|| words)
    }

    fn with_context<W: Into<String>>(self, words: impl FnOnce() -> W) -> Result<T> {
        self.map_err(|error| {
            let mut failure = error.into();
            failure.context.push(words().into());
            failure
        })
    }
}

/// The arguments make no sense together, though each is well formed.
pub fn usage(message: impl Into<String>) -> Failure {
    Failure::new(Kind::Usage, message)
}

/// Something on this machine is missing.
pub fn environment(message: impl Into<String>) -> Failure {
    Failure::new(Kind::Environment, message)
}

/// An input file cannot be used.
pub fn bad_input(message: impl Into<String>) -> Failure {
    Failure::new(Kind::BadInput, message)
}

/// Says what is wrong with the command line, or shows the help asked for, and exits. An argument may be the name of
/// somebody else's file: what drives a terminal is escaped, where there is such a thing, for the price of the colours.
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

/// Prints a failure with its causes, each once, and gives its exit code. Nobody who does not read holds that up.
pub fn report(failure: &Failure) -> ExitCode {
    // A signal that ended the work matters more than the call it happened to interrupt.
    if let Some(code) = posix::interrupt::exit_code() {
        match (failure.kind, &failure.what) {
            // The command knows what became of its work.
            (Kind::Interrupted, What::Message(message)) => posix::notice::tell(message),
            _ => posix::notice::tell(
                "interrupted; what it made in its target has been removed, but for what it says is kept",
            ),
        }
        return ExitCode::from(code);
    }
    tell(failure)
}

/// The same whether a signal came or not, for what ends by signals.
pub fn tell(failure: &Failure) -> ExitCode {
    posix::notice::tell(&failure.to_string());
    code(failure.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the help says it.
    #[test]
    fn each_kind_has_its_exit_code() {
        let kinds = [Kind::Check, Kind::Usage, Kind::Environment, Kind::BadInput, Kind::Interrupted];
        assert_eq!(kinds.map(number), [1, 2, 3, 4, 130]);
    }

    #[test]
    fn an_error_keeps_its_kind_and_is_told_once() {
        let path = std::path::PathBuf::from("x.system");
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let error = system::SystemProfileError::Io { path, source: gone() };
        let failure = Err::<(), _>(error).context("a").with_context(|| "b").expect_err("still one");
        assert_eq!(failure.kind, Kind::BadInput);
        let text = failure.to_string();
        assert!(text.starts_with("b: a: x.system") && text.matches(&gone().to_string()).count() == 1, "{text}");
        assert_eq!(Failure::from(gone()).kind, Kind::Environment);
    }

    /// Whatever asks for it.
    #[test]
    fn what_is_no_file_is_a_bad_input() {
        let error = posix::input::open(std::path::Path::new("/dev/null")).expect_err("a device");
        assert_eq!(Failure::from(error).kind, Kind::BadInput);
    }
}
