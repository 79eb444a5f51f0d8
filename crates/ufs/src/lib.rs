//! What the file systems of 4.4BSD share (`sys/ufs/ufs`): FFS and LFS have the same directories, kinds of files, and trees of
//! indirect blocks.
//!
//! What lives here: those structures as bytes and in memory, byte order, numbers with types, what can be wrong with a
//! structure, and copying files out of either and into either. What may not: where anything lies on a disk.

pub mod directory;
pub mod edit;
mod endian;
mod error;
pub mod extract;
mod file_type;
pub mod image;
pub mod indirect;
mod inode;
pub mod insert;
pub mod live;
mod numbers;
pub mod text;

pub use endian::{Disk, Endian, Field};
pub use error::{Error, FormatError, ImageError, System};
pub use file_type::{FileType, Time, mode};
pub use inode::{DiskInode, Fields, ReadFields, WriteFields};
pub use numbers::{Ino, Lbn, ROOT_INO};
pub use text::Text;
