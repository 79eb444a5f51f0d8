//! Everything fsage makes outside its own process, and how it goes away again.
//!
//! Five kinds of things can be left behind: private directories, mounts inside them, files on their way to their place
//! ([`crate::output`]), what a result replaces where names cannot be exchanged, and what this process serves (FUSE).
//! Each is entered in a list *before* it is made and struck off when it is gone. The list is kept twice: in memory, for
//! the forced clean-up after a second signal; and as a small journal file (`/run/fsage` for root, else
//! `$XDG_STATE_HOME/fsage` or `~/.local/state/fsage`), so that [`sweep`] of a later run can remove what a killed
//! process left. Loop devices need no entry: they are attached with autoclear and go with their last user.
//!
//! Nothing is removed on the strength of a path alone: every name carries 64 random bits (`fsage-<16 hex>`,
//! `.NAME.<16 hex>.tmp`, `.NAME.partial-<16 hex>`, `.NAME.<16 hex>.old`), a directory or file must have the inode
//! number it was made with, and only a mount directly inside such a directory is unmounted. What was replaced is
//! removed only where the new one has its place. What a process that has ended served is unmounted only where nobody
//! answers.

mod directories;
mod growing;
mod journal;
mod kept;
mod list;
mod lock;
mod making;
mod names;
mod path_text;
mod removal;
mod resource;
mod served;
mod unmount;

pub use directories::Temporary;
pub(crate) use directories::private_directory;
pub use growing::Growing;
pub use journal::{SweepReport, sweep};
pub use kept::Kept;
pub(crate) use list::{Entry, release_all};
pub use lock::{Locking, lock_directory};
pub(crate) use making::begin as begin_making;
pub use making::stand_aside;
pub use names::unguessable;
pub(crate) use names::{is_private_name, private_name};
pub(crate) use resource::Resource;
pub use served::Served;
pub use unmount::{also_mounted, served_at, unmount_served};
