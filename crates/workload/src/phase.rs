//! The parts of benchmarks that are timed on their own, and what their rates count.

use serde::{Deserialize, Serialize};

/// A part of a benchmark that is timed on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Files are made and written.
    Create,
    /// Files are read whole.
    Read,
    /// Files are written again over what they hold, without truncation.
    Overwrite,
    /// Files are removed.
    Delete,
    /// A tree is read, directories and files.
    Scan,
    /// A tree's directories are read and its attributes asked for.
    Stat,
    /// One file is written from its start to its end.
    Write,
    /// Pieces of one file are written at random places.
    RandomWrite,
    /// Pieces of one file are read at random places.
    RandomRead,
    /// One file is read from its start to its end once more, after it was written at random.
    Reread,
    /// Transactions are processed.
    Transactions,
    /// Scripts are run, several at a time.
    Scripts,
    /// An archive's files are made.
    Unpack,
    /// A package is configured: many small programs are compiled and run.
    Configure,
    /// A package is built.
    Build,
    /// News articles arrive.
    Unbatch,
    /// Old news articles go.
    Expire,
    /// Directories are made.
    Mkdir,
    /// A tree is copied.
    Copy,
    /// A program is compiled.
    Compile,
}

impl Phase {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Create => "create",
            Phase::Read => "read",
            Phase::Overwrite => "overwrite",
            Phase::Delete => "delete",
            Phase::Scan => "scan",
            Phase::Stat => "stat",
            Phase::Write => "write",
            Phase::RandomWrite => "random write",
            Phase::RandomRead => "random read",
            Phase::Reread => "re-read",
            Phase::Transactions => "transactions",
            Phase::Scripts => "scripts",
            Phase::Unpack => "unpack",
            Phase::Configure => "configure",
            Phase::Build => "build",
            Phase::Unbatch => "unbatch",
            Phase::Expire => "expire",
            Phase::Mkdir => "mkdir",
            Phase::Copy => "copy",
            Phase::Compile => "compile",
        }
    }

    /// What its headline counts, unless the benchmark says otherwise ([`PhaseResult::unit`](crate::PhaseResult::unit)).
    pub const fn unit(self) -> Unit {
        match self {
            Phase::Delete | Phase::Stat | Phase::Unbatch | Phase::Expire => Unit::FilesPerSecond,
            Phase::Transactions => Unit::TransactionsPerSecond,
            Phase::Scripts => Unit::ScriptsPerHour,
            Phase::Unpack | Phase::Configure | Phase::Build | Phase::Mkdir | Phase::Copy | Phase::Compile => {
                Unit::CallsPerSecond
            }
            _ => Unit::BytesPerSecond,
        }
    }
}

/// What a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Unit {
    BytesPerSecond,
    FilesPerSecond,
    CallsPerSecond,
    TransactionsPerSecond,
    ScriptsPerHour,
}
