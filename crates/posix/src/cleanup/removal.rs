//! What comes of removing something.

/// What came of removing something.
#[derive(Debug)]
pub(super) enum Removal {
    /// It is gone.
    Gone,
    /// It was not there.
    Absent,
    /// What has its name is not what we made, and is left alone; why. There is nothing to be tried again.
    NotOurs(String),
}
