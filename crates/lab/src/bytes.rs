//! What a laboratory begins with: the file system, and where its bytes are.

use crate::{Data, OpenError};
use device::store::{FileStore, Overlay, SparseStore};
use ffs::mkfs::{MkfsOptions, mkfs};
use ffs::policy::Options;
use ffs::{Ffs, FfsError, Image, Search};
use kernel::payload;
use std::path::Path;

/// A file system, its bytes, and the date on it, seconds since 1970.
pub(crate) struct Begun {
    pub(crate) volume: Ffs,
    pub(crate) bytes: payload::Image,
    pub(crate) time_s: i64,
}

/// A new one.
pub(crate) fn of_new(options: &MkfsOptions, data: Data, policy: Options) -> Result<Begun, FfsError> {
    let time_s = options.time_s;
    if data == Data::Given {
        let volume = Ffs::format(options, policy)?;
        return Ok(Begun { volume, bytes: payload::Image::of_given(), time_s });
    }
    let mut store = SparseStore::new(options.size_bytes);
    mkfs(&mut store, options)?;
    let image = Image::open(store, Search::Standard)?;
    let volume = Ffs::load(&image, policy)?;
    Ok(Begun { volume, bytes: payload::Image::full(image.into_store()), time_s })
}

/// What is in an image, which itself stays as it is.
pub(crate) fn of_image(path: &Path, policy: Options, target: &str) -> Result<Begun, OpenError> {
    let file = std::fs::File::open(path).and_then(FileStore::new);
    let store = Overlay::new(file.map_err(|source| OpenError::io(path, "open the image", source))?);
    let wrong = |source| OpenError::Ffs { target: target.to_owned(), source };
    let image = Image::open(store, Search::Standard).map_err(wrong)?;
    let volume = Ffs::load(&image, policy).map_err(wrong)?;
    let time_s = image.superblock().time();
    Ok(Begun { volume, bytes: payload::Image::full(image.into_store()), time_s })
}
