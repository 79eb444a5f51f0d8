//! What can be wrong with an image, and where.

/// FFS, as errors name it.
#[derive(Debug)]
pub enum Named {}

impl ufs::System for Named {
    const NAME: &'static str = "ffs";
    const NONE: &'static str = "no UFS1 or UFS2 superblock at bytes 65536, 8192, 0 or 262144";
    const CHECK: &'static str = "check a copy of the image with `fsage fsck`";
}

/// An error of this crate.
pub type FfsError = ufs::Error<Named>;
