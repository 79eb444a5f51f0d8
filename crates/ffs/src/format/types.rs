//! Numbers that must not be confused.

use serde::Serialize;
use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// An inode number. 0 is no inode, 1 was for bad blocks, 2 is the root.
    Ino(u32)
}
number! {
    /// The address of a fragment: fragments from the beginning of the file system. 0 is never a file's.
    FragAddr(u64)
}
number! {
    /// A cylinder group.
    GroupNo(u32)
}
number! {
    /// A logical block number: a block of a file, counted from its beginning.
    Lbn(u64)
}

/// The root directory.
pub const ROOT_INO: Ino = Ino(2);

impl FragAddr {
    /// The fragment `frags` further on.
    pub fn plus(self, frags: u64) -> FragAddr {
        FragAddr(self.0.saturating_add(frags))
    }
}
