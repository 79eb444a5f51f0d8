//! What a file is supposed to be.

use crate::FileError;
use crate::error::quoted;
use serde::Deserialize;
use std::path::Path;

/// A format of ours: its version, and what to say where a file is not what it should be.
#[derive(Debug, PartialEq, Eq)]
pub struct Format {
    /// What a file of it is, with its article: "an aging workload".
    pub name: &'static str,
    /// The version that is written.
    pub version: u32,
    /// The oldest that is read; older ones, and newer ones than are written, are refused.
    pub oldest: u32,
    /// Key of the footer that states the version: the number alone, or a description (JSON) with a field `version`.
    /// `None`: a file beside it does.
    pub key: Option<&'static str>,
    /// What to do where there is no such file, as a clause.
    pub missing: &'static str,
    /// What to do about one that is damaged or too old and has no copy, as a clause: "plan it again".
    pub again: &'static str,
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

    /// The versions that are read, for a message.
    pub(crate) fn versions(&self) -> String {
        if self.oldest == self.version {
            format!("version {}", self.version)
        } else {
            format!("versions {} to {}", self.oldest, self.version)
        }
    }

    /// What to do about a file of version `found`.
    pub(crate) fn version_hint(&self, found: u64) -> &'static str {
        if found > u64::from(self.version) { "use a newer fsage" } else { self.again }
    }
}
