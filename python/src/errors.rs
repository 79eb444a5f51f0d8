//! Errors of the crates as exceptions, by whose fault they are. The classes are in `fsage/errors.py`.

use fault::{Fault, Kind};
use posix::Errno;
use pyo3::prelude::*;

/// An error on its way to Python.
pub enum Raised {
    /// One of the crates': whose fault, in words, and the error number where a file system answered with one.
    Ours { kind: Kind, message: String, errno: Option<Errno> },
    /// An exception that Python code raised meanwhile.
    Python(PyErr),
}

impl Raised {
    /// What was asked for cannot be.
    pub fn usage(message: impl Into<String>) -> Raised {
        Raised::Ours { kind: Kind::Usage, message: message.into(), errno: None }
    }

    /// A call on a laboratory that failed.
    pub fn call(what: &str, errno: Errno) -> Raised {
        let message = units::text::printable(what);
        Raised::Ours { kind: Kind::Environment, message, errno: Some(errno) }
    }
}

impl<E: Fault + 'static> From<E> for Raised {
    fn from(error: E) -> Raised {
        let first: &(dyn std::error::Error + 'static) = &error;
        let parts = std::iter::successors(Some(first), |error: &&(dyn std::error::Error + 'static)| (*error).source());
        let message = units::text::chain(parts.map(ToString::to_string));
        Raised::Ours { kind: posix::input::kind_of(&error), message, errno: None }
    }
}

/// The class of a kind of fault, in `fsage.errors`.
fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Check => "CheckError",
        Kind::Usage => "UsageError",
        Kind::Environment => "HostError",
        Kind::BadInput => "InputError",
        Kind::Interrupted => "Interrupted",
    }
}

impl From<Raised> for PyErr {
    fn from(raised: Raised) -> PyErr {
        let (kind, message, errno) = match raised {
            Raised::Python(error) => return error,
            Raised::Ours { kind, message, errno } => (kind, message, errno),
        };
        Python::attach(|py| {
            let made = py.import("fsage.errors").and_then(|errors| match errno {
                Some(errno) => errors.getattr("CallError")?.call1((errno.0, format!("{errno}: {message}"))),
                None => errors.getattr(class(kind))?.call1((message,)),
            });
            made.map_or_else(|error| error, PyErr::from_value)
        })
    }
}
