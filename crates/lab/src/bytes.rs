//! What a laboratory begins with: the file system, and where its bytes are.

use crate::{Data, OpenError};
use device::store::{FileStore, Overlay, SparseStore};
use ffs::mkfs::{MkfsOptions, mkfs};
use ffs::policy::Options;
use ffs::{Ffs, FfsError};
use kernel::payload;
use lfs::{Lfs, LfsError};
use std::path::Path;

/// A file system, its bytes, and the date on it, seconds since 1970.
pub(crate) struct Begun<V> {
    pub(crate) volume: V,
    pub(crate) bytes: payload::Image,
    pub(crate) time_s: i64,
}

/// A new one; with a log if one is asked for, of so many bytes, or as large as is usual.
pub(crate) fn of_new(
    options: &MkfsOptions,
    data: Data,
    policy: Options,
    log: Option<Option<u64>>,
) -> Result<Begun<Ffs>, FfsError> {
    let time_s = options.time_s;
    if data == Data::Given {
        let mut volume = Ffs::format(options, policy)?;
        if let Some(bytes) = log {
            volume.make_log(bytes)?;
        }
        return Ok(Begun { volume, bytes: payload::Image::of_given(), time_s });
    }
    let mut store = SparseStore::new(options.size_bytes);
    mkfs(&mut store, options)?;
    if let Some(bytes) = log {
        ffs::log::make(&mut store, bytes)?;
    }
    let (volume, image) = ffs::log::load(store, policy, None)?;
    Ok(Begun { volume, bytes: payload::Image::full(image.into_store()), time_s })
}

/// What is in an image, which itself stays as it is.
pub(crate) fn of_image(path: &Path, policy: Options, target: &str) -> Result<Begun<Ffs>, OpenError> {
    let store = overlay(path)?;
    let wrong = |source| OpenError::Ffs { target: target.to_owned(), source };
    let (volume, image) = ffs::log::load(store, policy, None).map_err(wrong)?;
    let time_s = image.superblock().time();
    Ok(Begun { volume, bytes: payload::Image::full(image.into_store()), time_s })
}

/// A new one that is a log.
pub(crate) fn of_new_lfs(
    options: &lfs::mkfs::MkfsOptions,
    data: Data,
    policy: lfs::Options,
) -> Result<Begun<Lfs>, LfsError> {
    let time_s = options.time_s;
    if data == Data::Given {
        let volume = Lfs::format(options, policy)?;
        return Ok(Begun { volume, bytes: payload::Image::of_given(), time_s });
    }
    let mut store = SparseStore::new(options.size_bytes);
    lfs::mkfs(&mut store, options)?;
    let volume = Lfs::load(&mut store, policy)?;
    Ok(Begun { volume, bytes: payload::Image::full(store), time_s })
}

/// The log in an image, which itself stays as it is. What follows its checkpoint is written when it is mounted.
pub(crate) fn of_lfs_image(path: &Path, policy: lfs::Options, target: &str) -> Result<Begun<Lfs>, OpenError> {
    let mut store = overlay(path)?;
    let loaded = Lfs::load(&mut store, policy);
    let volume = loaded.map_err(|source| OpenError::Lfs { target: target.to_owned(), source })?;
    let time_s = i64::try_from(volume.superblock().tstamp).unwrap_or(0);
    Ok(Begun { volume, bytes: payload::Image::full(store), time_s })
}

/// Whether an image holds a log.
pub(crate) fn is_lfs(path: &Path) -> Result<bool, OpenError> {
    Ok(lfs::is_lfs(&overlay(path)?))
}

pub(crate) fn overlay(path: &Path) -> Result<Overlay<FileStore>, OpenError> {
    let file = FileStore::open(path);
    Ok(Overlay::new(file.map_err(|source| OpenError::io(path, "open the image", source))?))
}
