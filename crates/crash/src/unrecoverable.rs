//! Why a disk cannot be recovered.

/// Why a disk cannot be recovered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrecoverable(pub String);

impl<E: std::error::Error> From<E> for Unrecoverable {
    fn from(error: E) -> Unrecoverable {
        Unrecoverable(error.to_string())
    }
}
