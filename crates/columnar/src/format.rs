//! What a file is supposed to be.

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
