//! What is in a file system, as far as processes can see it.

use crate::{Content, Unrecoverable};
use std::collections::BTreeMap;
use std::sync::Arc;
use ufs::FileType;

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

/// Everything that can be seen in an image.
pub(crate) fn look<T: ufs::extract::Tree>(image: &T) -> Result<Found, Unrecoverable>
where
    T::Error: std::error::Error,
{
    look_without(image, None)
}

/// The same without a file of the file system's own.
pub(crate) fn look_without<T: ufs::extract::Tree>(image: &T, own: Option<&str>) -> Result<Found, Unrecoverable>
where
    T::Error: std::error::Error,
{
    let mut found = Found::default();
    image.each_name(image.find(b"/")?, &mut |path, ino, inode| {
        let Some(name) = path.get(2..).filter(|name| own.is_none_or(|own| own.as_bytes() != *name)) else {
            return Ok(());
        };
        let status = image.status(inode);
        let id = (ino.0, status.generation);
        found.tree.insert(String::from_utf8_lossy(name).into_owned(), id);
        if found.files.contains_key(&id) {
            return Ok(());
        }
        let mut content = Content::default();
        let kind = match FileType::of(status.mode) {
            Some(FileType::Directory) => Kind::Directory,
            Some(FileType::Symlink) => {
                content.write(0, &image.target(ino, inode)?);
                Kind::Symlink
            }
            Some(FileType::Regular) => {
                image.each_piece(ino, inode, &mut |at, bytes| {
                    content.write(at, bytes);
                    Ok(())
                })?;
                content.set_len(status.size);
                Kind::File
            }
            _ => Kind::Special,
        };
        found.files.insert(id, (kind, Arc::new(content)));
        Ok(())
    })?;
    Ok(found)
}

/// Where repairs put what has lost its name.
pub(crate) const LOST_FOUND: &str = "lost+found";

/// Whether a path is the place for what has lost its name, or below it.
pub(crate) fn is_lost_found(path: &str) -> bool {
    path.strip_prefix(LOST_FOUND).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
