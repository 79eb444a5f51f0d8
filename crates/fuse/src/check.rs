//! The check in the background of an image that nobody has mounted.

use crate::MountError;
use crate::image::Locked;
use crate::live::date_ns;
use ffs::fsck::{Left, Phase};
use ffs::{Image, Search};
use std::path::Path;

/// Mounts the Fast File System in an image as a crash of Soft Updates has left it, has a snapshot of it checked, gives back what was found, and
/// unmounts it ([`ffs::check_in_background`]). With it the bytes of a fragment. `go_on` is asked now and then.
///
/// # Errors
/// There is no image, somebody else has it mounted, or it is not one that may be used without a full check.
pub fn check_in_background(path: &Path, go_on: &mut dyn FnMut(Phase) -> bool) -> Result<(Left, u32), MountError> {
    let wrong = |source| MountError::Ffs { source_name: path.display().to_string(), source };
    let (lock, mut store) = Locked::open(path, false)?;
    let fsize = Image::open(&mut store, Search::Standard).map_err(wrong)?.geometry().fsize;
    let (left, _) = ffs::check_in_background(store, date_ns(), go_on).map_err(wrong)?;
    drop(lock);
    Ok((left, fsize))
}
