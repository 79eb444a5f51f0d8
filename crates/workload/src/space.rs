//! How full a file system is, and filling it further.

use crate::WorkloadError;
use crate::driver::{Driver, poll};
use crate::point::Point;
use posix::{Call, FsUsage, OpenFlags, Reply};
use std::path::Path;

/// What a filler is written in.
const PIECE_BYTES: u64 = 1 << 20;
/// How far above the wanted share a file system may be already, for metadata that has come and gone.
const TOLERANCE: f64 = 0.01;

/// Space, all data written so far counted in, and what removed files had as free.
pub(crate) fn usage(driver: &mut Driver<'_>) -> Result<FsUsage, WorkloadError> {
    let synced = driver.fs.call(&Call::SyncFs).result;
    synced.map_err(|errno| WorkloadError::call("writing back (syncfs)", Path::new("."), errno))?;
    driver.fs.finish_removals();
    driver.fs.usage().map_err(|source| WorkloadError::System { doing: "looking at the free space", source })
}

/// The share in use, 0 to 1; what is kept for the superuser counts as free.
pub(crate) fn share(usage: &FsUsage) -> f64 {
    1.0 - usage.free_bytes as f64 / usage.total_bytes.max(1) as f64
}

/// Whether shares to fill to make sense.
pub(crate) fn check_shares(shares: &[f64]) -> Result<(), WorkloadError> {
    if shares.iter().any(|share| !(*share > 0.0 && *share < 1.0)) {
        return Err(WorkloadError::Options("a utilisation lies between 0 and 100 %".into()));
    }
    Ok(())
}

/// The error where a share of the file system was asked for: if no space was left for a file below `top`, it says how
/// much of the file system was in use then.
pub(crate) fn beside_share(
    driver: &mut Driver<'_>,
    top: &Path,
    wanted: Option<f64>,
    error: WorkloadError,
) -> WorkloadError {
    match (error, wanted, driver.fs.usage()) {
        (WorkloadError::NoSpace { doing, path }, Some(wanted), Ok(usage)) if Path::new(&path).starts_with(top) => {
            WorkloadError::Full { doing, path, wanted_percent: wanted * 100.0, used_percent: share(&usage) * 100.0 }
        }
        (error, ..) => error,
    }
}

/// Makes one large file, so large that the given share of the file system is in use. Returns its length.
///
/// # Errors
/// More is in use already; there is no space left.
pub(crate) fn fill(driver: &mut Driver<'_>, path: &Path, to: f64) -> Result<u64, WorkloadError> {
    let now = usage(driver)?;
    if share(&now) > to + TOLERANCE {
        return Err(WorkloadError::Options(format!(
            "the file system is {:.1} % full with the benchmark's own files, more than the {:.1} % asked for; take a \
             larger file system or less data",
            share(&now) * 100.0,
            to * 100.0
        )));
    }
    let used_bytes = now.total_bytes - now.free_bytes.min(now.total_bytes);
    let size_bytes = ((now.total_bytes as f64 * to) as u64).saturating_sub(used_bytes);
    write_whole(driver, path, size_bytes)?;
    Ok(size_bytes)
}

/// Writes a new file in large pieces, outside any phase.
pub(crate) fn write_whole(driver: &mut Driver<'_>, path: &Path, size_bytes: u64) -> Result<(), WorkloadError> {
    const DOING: &str = "filling the file system";
    let fd = driver.open(DOING, path, OpenFlags::CREATE_NEW)?;
    let mut done = 0;
    let mut written = Ok(());
    while done < size_bytes && written.is_ok() {
        let len_bytes = PIECE_BYTES.min(size_bytes - done);
        written = poll().and_then(|()| match driver.timed(&Call::Write { fd, offset: None, len_bytes, data: None }) {
            Ok(Reply::Count(n)) if n > 0 => {
                done += n;
                Ok(())
            }
            Ok(_) => {
                let path = path.display().to_string();
                Err(WorkloadError::Short { doing: DOING, path, wanted_bytes: size_bytes, got_bytes: done })
            }
            Err(errno) => Err(WorkloadError::call(DOING, path, errno)),
        });
    }
    let closed = driver.close(DOING, path, fd);
    written.and(closed)
}

/// A point for each share, or one for the file system as it is.
pub(crate) fn points(name: &str, shares: &[f64]) -> Vec<Point> {
    let point = |label: String| Point { label, size_bytes: None, stage: 0 };
    if shares.is_empty() {
        return vec![point(name.to_owned())];
    }
    shares.iter().map(|share| point(label(name, *share))).collect()
}

/// The share that a point of [`points`] stands for.
pub(crate) fn of_point(point: &Point, name: &str, shares: &[f64]) -> Option<f64> {
    shares.iter().copied().find(|share| label(name, *share) == point.label)
}

fn label(name: &str, share: f64) -> String {
    // Rounded, so that 0.07 is not 7.000000000000001 %.
    format!("{name}, {} % in use", (share * 1e6).round() / 1e4)
}
