//! The file systems of the laboratory, mounted: the kernel's calls, real bytes, real time.
//!
//! What lives here: what a mounted file system is between two calls of the kernel ([`live`]), how the calls are
//! answered (`filesystem`, the protocol of the crate `fuser`), the image below and its lock (`image`), checking an
//! image in the background (`check`), and mounting from the first byte read to the last one written ([`mount()`],
//! [`umount()`]). What may not: operations on names and files, which are [`ufs::live`]'s; allocation and the order of
//! writes, which are each file system's.
//!
//! One lock is around each file system: its operations act on structures in memory, and none waits for a disk in
//! virtual time. Several threads read requests and send answers, so that copying between the kernel and this process
//! overlaps.

mod check;
mod error;
mod filesystem;
mod image;
pub mod live;
mod mount;
mod umount;

pub use check::check_in_background;
pub use error::MountError;
pub use mount::{Access, Events, MountOptions, Source, mount};
pub use umount::umount;

/// The type that the system shows of our mounts.
pub const FS_TYPE: &str = "fuse.fsage";
