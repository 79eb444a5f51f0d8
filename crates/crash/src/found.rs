//! What is in a file system, as far as processes can see it.

use crate::Content;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An inode's number and generation: which file it is.
pub type Identity = (u32, u32);

/// The names, with what they name.
pub type Tree = BTreeMap<String, Identity>;

/// What something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file with data.
    File,
    /// A symbolic link; its target is its content.
    Symlink,
    /// A directory.
    Directory,
    /// A FIFO, socket or device.
    Special,
}

/// Everything that can be seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The names.
    pub tree: Tree,
    /// What they name.
    pub files: BTreeMap<Identity, (Kind, Arc<Content>)>,
}

/// Where repairs put what has lost its name.
pub(crate) const LOST_FOUND: &str = "lost+found";

/// Whether a path is the place for what has lost its name, or below it.
pub(crate) fn is_lost_found(path: &str) -> bool {
    path.strip_prefix(LOST_FOUND).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
