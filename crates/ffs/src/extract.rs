//! Copying files out of an image.

use crate::format::Ino;
use crate::{Dinode, FfsError, Image, Store};
use std::io;
use std::path::Path;
use ufs::extract::{EachName, EachPiece, Status, Tree};
pub use ufs::extract::{ExtractOptions, Extracted};

/// Copies what `path` names in the image to `to`: see [`ufs::extract::extract`].
pub fn extract<S: Store>(
    image: &Image<S>,
    path: &[u8],
    to: &Path,
    options: ExtractOptions,
    go_on: &mut dyn FnMut(&Extracted) -> bool,
) -> Result<Extracted, FfsError> {
    ufs::extract::extract(image, path, to, options, go_on)
}

impl<S: Store> Tree for Image<S> {
    type Inode = Dinode;
    type Error = FfsError;

    fn find(&self, path: &[u8]) -> Result<Ino, FfsError> {
        self.resolve(path).map(|(ino, _)| ino)
    }

    fn each_name(&self, from: Ino, each: EachName<'_, Self>) -> Result<(), FfsError> {
        self.walk(from, each)
    }

    fn status(&self, inode: &Dinode) -> Status {
        let &Dinode { mode, nlink, generation, uid, gid, size, atime, mtime, .. } = inode;
        Status { mode, nlink, generation, uid, gid, size, atime, mtime, device: inode.device() }
    }

    fn each_piece(&self, ino: Ino, inode: &Dinode, each: EachPiece<'_, FfsError>) -> Result<(), FfsError> {
        self.data(ino, inode, each)
    }

    fn target(&self, ino: Ino, inode: &Dinode) -> Result<Vec<u8>, FfsError> {
        self.symlink(ino, inode)
    }

    fn host_error(path: String, doing: &'static str, source: io::Error) -> FfsError {
        FfsError::Host { path, doing, source }
    }

    fn inode_error(ino: Ino, problem: String) -> FfsError {
        FfsError::Inode { ino: ino.0, problem }
    }

    fn interrupted() -> FfsError {
        FfsError::interrupted()
    }
}
