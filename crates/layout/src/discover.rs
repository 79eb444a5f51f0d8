//! From a path to a survey: what it is, and for a mounted directory what the hinge trait does not tell about it.

mod btrfs;
mod ext4;
mod mount;
mod xfs;

use crate::ext4::{Ext4Error, Image, survey_image};
use crate::geometry::Groups;
use crate::map::Span;
use crate::{LayoutError, Progress, Surroundings, Survey, SurveyOptions, survey_file_system};
use posix::{FileSystem, Mounted};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Surveys a directory of a mounted file system, or an unmounted ext4 image or block device. Nothing is written to
/// either; a mounted file system is asked to write back its dirty data first (`syncfs`).
pub fn survey(
    target: &Path,
    options: &SurveyOptions,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Survey, LayoutError> {
    let shown = target.display().to_string();
    let io = |doing| {
        let target = shown.clone();
        move |source| LayoutError::Io { target, doing, source }
    };
    let kind = std::fs::metadata(target).map_err(io("look at it"))?.file_type();
    if kind.is_dir() {
        return mounted(target, options, progress);
    }
    if !kind.is_file() && !kind.is_block_device() {
        return Err(LayoutError::NotATarget {
            target: shown,
            what: "is neither a directory, a file nor a block device".into(),
        });
    }
    let ext4 = |source| match source {
        Ext4Error::Interrupted => LayoutError::interrupted(),
        Ext4Error::NotExt4(_) => LayoutError::NotAnImage { target: shown.clone(), what: format!("{source}") },
        Ext4Error::Open(source) => LayoutError::Io { target: shown.clone(), doing: "open it", source },
        source => LayoutError::Ext4 { target: shown.clone(), source },
    };
    let image = Image::open(target).map_err(ext4)?;
    survey_image(&image, &shown, options, progress).map_err(ext4)
}

fn mounted(
    directory: &Path,
    options: &SurveyOptions,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Survey, LayoutError> {
    let io = |source| LayoutError::Io { target: directory.display().to_string(), doing: "open the directory", source };
    survey_handle(&mut Mounted::open(directory).map_err(io)?, options, progress)
}

// Magic numbers of linux/magic.h: unlike the mount table, they are there for mounts attached to no directory.
const EXT4: u64 = 0xEF53;
const XFS: u64 = 0x5846_5342;
const BTRFS: u64 = 0x9123_683E;

fn magic(handle: &File) -> io::Result<u64> {
    Ok(rustix::fs::fstatfs(handle)?.f_type.cast_unsigned())
}

/// The allocation groups of the file system that holds a directory, or why they are not known. Those of btrfs, which
/// inodes do not belong to, are not asked for.
pub fn groups_of(directory: &Path) -> Result<Groups, String> {
    let handle = File::open(directory).map_err(|e| format!("the directory cannot be opened: {e}"))?;
    match magic(&handle).map_err(|e| e.to_string())? {
        EXT4 => ext4::surroundings(&handle).groups,
        XFS => xfs::surroundings(&handle).groups,
        _ => Surroundings::default().groups,
    }
}

/// The allocation groups of the file system behind a handle, mounted or in the laboratory, or why they are not known.
///
/// # Errors
/// In words.
pub fn groups_of_handle(fs: &dyn FileSystem) -> Result<Groups, String> {
    match fs.host_path() {
        Some(path) => groups_of(path),
        None => laboratory(fs).groups,
    }
}

/// What a file system of the laboratory tells of itself.
fn laboratory(fs: &dyn FileSystem) -> Surroundings<'static> {
    let Some(groups) = fs.shape().and_then(|shape| shape.groups) else { return Surroundings::default() };
    let span = Span { start_bytes: groups.first_bytes, len_bytes: groups.len_bytes.saturating_mul(groups.count) };
    Surroundings { groups: Ok(groups.into()), split: Ok(()), span: Some(span), ..Surroundings::default() }
}

/// Surveys everything below the root of a handle, on a mounted directory or in the laboratory: as [`survey`] does, for
/// a handle that is there already (a site's).
///
/// # Errors
/// The root cannot be looked at; `progress` answered `false`; a signal.
pub fn survey_handle(
    fs: &mut dyn FileSystem,
    options: &SurveyOptions,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Survey, LayoutError> {
    let target = fs.environment().target;
    let io = |source| LayoutError::Io { target, doing: "open the directory", source };
    let then = |fs: &mut dyn FileSystem, around: Surroundings<'_>| survey_file_system(fs, around, options, progress);
    in_surroundings(fs, then).map_err(io)?
}

/// Finds out what the hinge trait does not tell about the file system behind a handle, and goes on with that.
///
/// # Errors
/// The directory of a mounted file system cannot be opened again.
pub fn in_surroundings<T>(
    fs: &mut dyn FileSystem,
    then: impl FnOnce(&mut dyn FileSystem, Surroundings<'_>) -> T,
) -> io::Result<T> {
    let Some(path) = fs.host_path() else {
        let surroundings = laboratory(fs);
        return Ok(then(fs, surroundings));
    };
    let handle = File::open(path)?;
    Ok(match magic(&handle)? {
        EXT4 => then(fs, ext4::surroundings(&handle)),
        XFS => then(fs, xfs::surroundings(&handle)),
        BTRFS => {
            // The trees are read as of the last commit. Where the file system is read-only there is nothing to commit.
            let _ = fs.call(&posix::Call::SyncFs);
            let trees = btrfs::Trees::read(&handle);
            then(fs, btrfs::surroundings(&trees))
        }
        _ => then(fs, Surroundings::default()),
    })
}
