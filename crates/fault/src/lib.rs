//! Whose fault an error is, and so who can do something about it.
//!
//! What lives here: [`Kind`], the few answers there are; [`Fault`], by which an error gives its own; and [`Refused`],
//! the one error that every crate with files has. What may not: exit codes, which are the command line's, and other
//! messages, which are each error's own.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing went wrong, and a comparison or check that was asked for failed.
    Check,
    /// What was asked for cannot be: another option, name or target is needed.
    Usage,
    /// The machine or a file system refuses or lacks something: rights, a tool, space. Faults of this program count
    /// here, too.
    Environment,
    /// An input is not what it should be.
    BadInput,
    /// A signal, or the caller, asked to stop.
    Interrupted,
}

/// An error that says whose fault it is. Each error that can come to the terminal is one: the command line takes no
/// other.
pub trait Fault: Error {
    /// Whose fault it is.
    fn kind(&self) -> Kind;
}

/// What the system refuses. An error with a path knows better: a file that somebody named and that is not there is a
/// bad input.
impl Fault for io::Error {
    fn kind(&self) -> Kind {
        Kind::Environment
    }
}

/// What the system refused to do with a file or directory.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot {doing}: {source}", path.display())]
pub struct Refused {
    /// The file or directory.
    pub path: PathBuf,
    /// What was being done, as a verb phrase.
    pub doing: &'static str,
    /// The system's answer.
    pub source: io::Error,
}

/// Makes the error of the system's answer to what was being done.
pub fn refused(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Refused + use<> {
    let path = path.to_owned();
    move |source| Refused { path, doing, source }
}

impl Fault for Refused {
    fn kind(&self) -> Kind {
        match self.source.kind() {
            io::ErrorKind::Interrupted => Kind::Interrupted,
            _ => Kind::Environment,
        }
    }
}
