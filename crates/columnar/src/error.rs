//! What can be wrong with a file of ours, and what to do about it.

use crate::format::Format;
use fault::{Fault, Kind, Refused};
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};

/// Why a file could not be written or read. Every message names the file and the place.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] Refused),
    /// There is no such file.
    #[error("{}: not found; {}", path.display(), format.missing)]
    Missing {
        /// The file or directory.
        path: PathBuf,
        /// What it was to be.
        format: &'static Format,
    },
    /// A file is where a directory of files was to be.
    #[error("{}: is a file, and not {}; {}", path.display(), format.name, format.missing)]
    IsFile {
        /// The file.
        path: PathBuf,
        /// What it was to be.
        format: &'static Format,
    },
    /// The output is there already.
    #[error("{}: already exists; --overwrite replaces it, or choose another name", path.display())]
    Exists {
        /// The file or directory.
        path: PathBuf,
    },
    /// The output is there and is something else, which is never replaced.
    #[error("{}: exists and is not {}, so it is not overwritten; choose another name", path.display(), format.name)]
    NotOurs {
        /// The directory or file.
        path: PathBuf,
        /// What it was to be.
        format: &'static Format,
    },
    /// A version that this program does not know.
    #[error("{}: format version {found} is not supported: this fsage ({}) reads {}; {}",
        path.display(), env!("CARGO_PKG_VERSION"), format.versions(), format.version_hint(*found))]
    Version {
        /// The file.
        path: PathBuf,
        /// Version found.
        found: u64,
        /// The format, with the version supported.
        format: &'static Format,
    },
    /// A column is not there, or is of another type.
    #[error("{}: column {column}: {message}; docs/formats.md lists the columns", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// What is wrong.
        message: String,
    },
    /// No such file, truncated, damaged, or contradicting itself.
    #[error("{}: {place}: {message}; restore the file from a copy, or {}", path.display(), format.again)]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Row group, row, column, line or byte range.
        place: String,
        /// What is wrong.
        message: String,
        /// What it was to be.
        format: &'static Format,
    },
    /// What was to be written breaks the format's rules: a fault of the writer's caller.
    #[error("{}: cannot write: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The rule broken.
        message: String,
    },
}

impl Fault for FileError {
    fn kind(&self) -> Kind {
        match self {
            FileError::Exists { .. } | FileError::NotOurs { .. } => Kind::Usage,
            FileError::Io(refused) => refused.kind(),
            FileError::Missing { .. }
            | FileError::IsFile { .. }
            | FileError::Version { .. }
            | FileError::Schema { .. }
            | FileError::Corrupt { .. }
            | FileError::Invalid { .. } => Kind::BadInput,
        }
    }
}

impl FileError {
    /// The system's answer to what was being done (a verb phrase).
    pub fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> FileError + use<> {
        let refused = fault::refused(path, doing);
        move |source| FileError::Io(refused(source))
    }

    /// A column is not there, or is of another type.
    pub fn schema(path: &Path, column: &str, message: impl Into<String>) -> FileError {
        FileError::Schema { path: path.to_owned(), column: quoted(column), message: quoted(&message.into()) }
    }

    /// What was to be written breaks a rule.
    pub fn invalid(path: &Path, message: impl ToString) -> FileError {
        FileError::Invalid { path: path.to_owned(), message: quoted(&message.to_string()) }
    }
}

impl Format {
    /// There is no such file.
    pub fn missing(&'static self, path: &Path) -> FileError {
        FileError::Missing { path: path.to_owned(), format: self }
    }

    /// A place in a file (a row group, row, column, line, byte range) is not what it should be.
    pub fn corrupt(&'static self, path: &Path, place: impl Into<String>, message: impl ToString) -> FileError {
        let (place, message) = (quoted(&place.into()), quoted(&message.to_string()));
        FileError::Corrupt { path: path.to_owned(), place, message, format: self }
    }

    /// The file is of another version, if it is.
    ///
    /// # Errors
    /// [`FileError::Version`].
    pub fn check_version(&'static self, path: &Path, found: u64) -> Result<(), FileError> {
        if (u64::from(self.oldest)..=u64::from(self.version)).contains(&found) {
            return Ok(());
        }
        Err(FileError::Version { path: path.to_owned(), found, format: self })
    }

    /// Whether a footer states this format and version.
    pub(crate) fn check_footer<'t>(
        &'static self,
        path: &Path,
        value: impl FnOnce(&str) -> Option<&'t str>,
    ) -> Result<(), FileError> {
        #[derive(Deserialize)]
        struct Described {
            version: u64,
        }
        let Some(key) = self.key else { return Ok(()) };
        let bad = |message: String| self.corrupt(path, format!("footer, {key}"), message);
        let text = value(key).ok_or_else(|| bad(format!("missing: this is not {}", self.name)))?;
        let found = match text.parse() {
            Ok(alone) => alone,
            Err(_) => {
                serde_json::from_str::<Described>(text)
                    .map_err(|e| bad(format!("{e}: this is not {}, or it is damaged", self.name)))?
                    .version
            }
        };
        self.check_version(path, found)
    }
}

/// What is quoted of a file: names of columns, values and what another library says of them may be as long as the file.
const QUOTED_MAX: usize = 600;

/// What is said of a file, of a length for people.
pub(crate) fn quoted(text: &str) -> String {
    units::text::shortened(text, QUOTED_MAX).into_owned()
}
