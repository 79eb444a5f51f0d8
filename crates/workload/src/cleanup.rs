//! Taking away what a run has made, whatever it was.

use crate::WorkloadError;
use crate::driver::Driver;
use posix::{Call, Errno, FileKind, Mode, OpenFlags};
use std::path::{Path, PathBuf};

/// Removes a directory with everything below it, outside any phase and even after a signal. One that is not there is as
/// good.
///
/// # Errors
/// The first failure; everything else is tried all the same.
pub(crate) fn remove_tree(driver: &mut Driver<'_>, top: &Path) -> Result<(), WorkloadError> {
    let (mut files, mut directories) = (Vec::new(), vec![top.to_path_buf()]);
    let mut at = 0;
    while let Some(directory) = directories.get(at).cloned() {
        at += 1;
        for (path, kind) in entries(driver, &directory)? {
            match kind {
                FileKind::Directory => directories.push(path),
                _ => files.push(path),
            }
        }
    }
    // A directory comes after its parent in the list, so the list is taken from its end.
    driver.remove_all(files.iter().map(PathBuf::as_path), directories.iter().rev().map(PathBuf::as_path))
}

fn entries(driver: &mut Driver<'_>, directory: &Path) -> Result<Vec<(PathBuf, FileKind)>, WorkloadError> {
    let failed = |errno| WorkloadError::call("cleaning up", directory, errno);
    let flags = OpenFlags { nofollow: true, ..OpenFlags::DIRECTORY };
    let fd = match driver.fs.call(&Call::Open { at: directory.into(), flags, mode: Mode(0) }).fd() {
        Ok(fd) => fd,
        Err(Errno::ENOENT) => return Ok(Vec::new()),
        Err(errno) => return Err(failed(errno)),
    };
    let found = driver.fs.entries(fd);
    let _ = driver.fs.call(&Call::Close { fd });
    let found = found.map_err(failed)?;
    Ok(found.into_iter().map(|(name, kind)| (directory.join(name), kind)).collect())
}

/// Runs something in a directory of its own, which is made before and removed with everything in it after, even where
/// it fails.
///
/// # Errors
/// What the run returns; else what making or removing does. A directory that is there already is not ours, and stays.
pub(crate) fn in_own_directory<T>(
    driver: &mut Driver<'_>,
    top: &Path,
    run: impl FnOnce(&mut Driver<'_>) -> Result<T, WorkloadError>,
) -> Result<T, WorkloadError> {
    driver.mkdir(top)?;
    let done = run(driver);
    let removed = remove_tree(driver, top);
    let done = done?;
    removed?;
    Ok(done)
}

/// The directory of one run. Its name differs from run to run: file systems that place directories by their name (ext4
/// below the root) then put the runs in different places.
pub(crate) fn top(benchmark: &str, tag: &str) -> PathBuf {
    PathBuf::from(format!("fsage-bench-{benchmark}.{tag}"))
}
