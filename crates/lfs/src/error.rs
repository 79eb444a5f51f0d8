//! What can be wrong with an image, and where.

/// LFS, as errors name it.
#[derive(Debug)]
pub enum Named {}

impl ufs::System for Named {
    const NAME: &'static str = "lfs";
    const NONE: &'static str = "no superblock of a log-structured file system at byte 8192";
    const CHECK: &'static str = "check the image with `fsage fsck`";
}

/// An error of what works on images.
pub type LfsError = ufs::Error<Named>;
