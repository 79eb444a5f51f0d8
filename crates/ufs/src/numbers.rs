//! Numbers that must not be confused.

/// Makes a number that must not be confused with others.
#[macro_export]
macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        pub struct $name(pub $inner);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

pub use kernel::Ino;

number! {
    /// A logical block number: a block of a file, counted from its beginning.
    Lbn(u64)
}

/// The root directory. 0 is no inode, and 1 was for bad blocks.
pub const ROOT_INO: Ino = Ino(2);
