//! The Berkeley layer: what the file systems of 4.4BSD share (`sys/ufs/ufs`).
//!
//! What lives here: the operations on names, directories, truncation and attributes, each once, generic over a
//! [`Backing`](live::Backing) ([`live`]); reading the files of an image ([`image`]); the structures that FFS and LFS
//! have alike, as bytes and in memory: directories, kinds of files, trees of indirect blocks, byte order, numbers with
//! types, what can be wrong with a structure; copying files out of either and into either. What may not: where anything
//! lies on a disk, how it is written, and when.

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
pub mod present;
mod special;
pub mod text;

pub use endian::{Disk, Endian, Field, FieldDef};
pub use error::{Error, FormatError, ImageError, System};
pub use file_type::{FileType, Time, mode};
pub use inode::{DiskInode, Fields, ReadFields, WriteFields};
pub use numbers::{Ino, Lbn, ROOT_INO};
pub use special::Special;
pub use text::Text;
