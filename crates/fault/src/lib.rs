//! Whose fault an error is, and so who can do something about it.
//!
//! What lives here: [`Kind`], the few answers there are, and [`Fault`], by which an error gives its own. What may not: exit codes, which
//! are the command line's, and messages, which are each error's own.

use std::error::Error;
use std::io;

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing went wrong, and a comparison or check that was asked for failed.
    Check,
    /// What was asked for cannot be: another option, name or target is needed.
    Usage,
    /// The machine or a file system refuses or lacks something: rights, a tool, space. Faults of this program count here, too.
    Environment,
    /// An input is not what it should be.
    BadInput,
    /// A signal, or the caller, asked to stop.
    Interrupted,
}

/// An error that says whose fault it is. Each error that can come to the terminal is one: the command line takes no other.
pub trait Fault: Error {
    /// Whose fault it is.
    fn kind(&self) -> Kind;
}

/// What the system refuses. An error with a path knows better: a file that somebody named and that is not there is a bad input.
impl Fault for io::Error {
    fn kind(&self) -> Kind {
        Kind::Environment
    }
}
