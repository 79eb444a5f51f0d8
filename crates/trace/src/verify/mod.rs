//! Whether a workload profile leads to the tree that is on disk: its snapshot, with its trace applied, against the tree
//! now.
//!
//! What lives here: applying a profile's rows to its snapshot (`apply`), and the comparison with a tree read from disk
//! (`compare`), which is the judge: nothing of the recorder's has touched it. What may not: what a call does to names;
//! that is the [tracker](crate::track)'s, which is what is being judged.
//!
//! What can be known: a directory that the trace made is known whole, and so is one that the trace touched, if its
//! names were read before the run. Of other directories only the names that the trace touched are known, and the rest
//! on disk is counted as not compared. A length, a type or a link count that neither snapshot nor trace tells is
//! counted as unknown; unknown is never equal. Lengths and link counts of directories are the file system's own affair
//! and are not compared.

mod apply;
mod compare;

use crate::profile::Reader;
use columnar::FileError;
use fault::{Fault, Kind};
use serde::Serialize;
use std::path::Path;

/// How a name on disk differs from what the trace leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Differs {
    /// The trace leads to a name that is not on disk.
    Missing,
    /// A name on disk that the trace does not lead to.
    Unexpected,
    /// Another type.
    Type,
    /// Another length.
    Size,
    /// Another number of names of the file.
    Links,
    /// Another target of a symbolic link.
    Target,
    /// It is one file with another name on one side, and not on the other.
    Identity,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The path, escaped.
    pub path: String,
    /// In what.
    pub differs: Differs,
    /// What snapshot and trace lead to; empty where there is nothing to say.
    pub expected: String,
    /// What is on disk.
    pub found: String,
}

/// The outcome of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// The tree on disk.
    pub tree: String,
    /// Names compared: those on either side that are known.
    pub names: u64,
    /// Lengths compared.
    pub sizes: u64,
    /// Link counts compared.
    pub links: u64,
    /// Ordinary files whose length neither snapshot nor trace tells.
    pub sizes_unknown: u64,
    /// Files whose link count neither tells.
    pub links_unknown: u64,
    /// Names whose type neither tells.
    pub types_unknown: u64,
    /// Names on disk in directories that are not known whole.
    pub not_compared: u64,
    /// Calls that did not return in the trace: whether they took effect is not known.
    pub unfinished_calls: u64,
    /// Calls whose path the trace does not tell, so that they could not be applied.
    pub calls_without_path: u64,
    /// Directories on disk that could not be read, with the reason.
    pub unreadable: Vec<String>,
    /// How many differences there are.
    pub differences: u64,
    /// The first of them, in order of paths.
    pub listed: Vec<Difference>,
}

impl Verification {
    /// Whether the trace tells every call's path and leads to the tree on disk.
    pub fn holds(&self) -> bool {
        self.differences == 0 && self.calls_without_path == 0
    }
}

/// How to compare.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// How many differences are listed; all are counted.
    pub listed_max: usize,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        VerifyOptions { listed_max: 1000 }
    }
}

/// Why a comparison could not be made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum VerifyError {
    #[error(transparent)]
    Profile(#[from] FileError),
    #[error("{tree}: the tree cannot be read: {source}")]
    Tree { tree: String, source: std::io::Error },
}

impl Fault for VerifyError {
    fn kind(&self) -> Kind {
        match self {
            VerifyError::Profile(error) => error.kind(),
            VerifyError::Tree { .. } => Kind::BadInput,
        }
    }
}

/// Compares what a profile leads to below `tree` with what is there now.
///
/// # Errors
/// The profile or the tree cannot be read.
pub fn verify(profile: &Reader, tree: &Path, options: &VerifyOptions) -> Result<Verification, VerifyError> {
    let applied = apply::apply(profile)?;
    compare::compare(&applied, profile, tree, options)
}
