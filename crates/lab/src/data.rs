//! Which bytes a laboratory keeps.

/// Which bytes a laboratory keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Data {
    /// Those that processes give explicitly; others read as a pattern, and are zeros in an image.
    #[default]
    Given,
    /// Those of every block, as on a disk.
    Full,
}
