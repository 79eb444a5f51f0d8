//! Why there is no survey at all. What is merely missing from one is [`crate::Available::Unavailable`].

use fault::{Fault, Kind};
use std::io;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// The target could not be read.
    #[error("{target}: cannot {doing}: {source}")]
    Io {
        /// What was to be surveyed, or the survey file.
        target: String,
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The target is neither a directory nor an image we read.
    #[error(
        "{target}: {what}; a survey needs a directory on a mounted file system, or an unmounted ext2, ext3 or ext4 \
         image or device"
    )]
    NotATarget {
        /// The target.
        target: String,
        /// What it is.
        what: String,
    },
    /// A file or device that is no image we read, or one without its beginning.
    #[error("{target}: {what}; a survey needs an image with ext2, ext3, ext4, UFS or LFS, or a directory")]
    NotAnImage {
        /// The file.
        target: String,
        /// What is missing.
        what: String,
    },
    /// An ext4 image is damaged or uses a feature that is not read.
    #[error("{target}: {source}")]
    Ext4 {
        /// The image.
        target: String,
        /// What, and at which byte.
        source: crate::ext4::Ext4Error,
    },
    /// A directory of an image has a second name: a walk would count it again, or never end.
    #[error("{target}: inode {ino} is a directory with two names, one of them {path}; `fsage fsck` says more")]
    TwoNames {
        /// The image.
        target: String,
        /// The directory's inode.
        ino: u64,
        /// The name that it was found by last.
        path: String,
    },
    /// A survey file cannot be used.
    #[error("{path}: {problem}")]
    SurveyFile {
        /// The file.
        path: String,
        /// What is wrong with it, with line and column where known.
        problem: String,
    },
    /// A series of surveys cannot be used.
    #[error("{path}: {problem}")]
    SeriesFile {
        /// The file.
        path: String,
        /// What is wrong with it, and at which byte.
        problem: String,
    },
    /// Stopped by a signal or by the caller.
    #[error("the survey was interrupted")]
    Interrupted(#[source] io::Error),
}

impl Fault for LayoutError {
    fn kind(&self) -> Kind {
        match self {
            LayoutError::NotATarget { .. } => Kind::Usage,
            // As any file that is not there.
            LayoutError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => Kind::BadInput,
            LayoutError::Io { .. } => Kind::Environment,
            LayoutError::Ext4 { source: crate::ext4::Ext4Error::Io { .. }, .. } => Kind::Environment,
            LayoutError::TwoNames { .. }
            | LayoutError::NotAnImage { .. }
            | LayoutError::Ext4 { .. }
            | LayoutError::SurveyFile { .. }
            | LayoutError::SeriesFile { .. } => Kind::BadInput,
            LayoutError::Interrupted(_) => Kind::Interrupted,
        }
    }
}

impl LayoutError {
    /// Interrupted, in the form the binary recognises.
    pub(crate) fn interrupted() -> LayoutError {
        LayoutError::Interrupted(io::Error::from(io::ErrorKind::Interrupted))
    }
}
