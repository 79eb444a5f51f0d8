//! Which block device a mounted file system is on.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// The device node of the block device behind an open file. Found by its number, so that it works for mounts that are
/// attached to no directory.
pub(super) fn block_device(handle: &File) -> Result<PathBuf, String> {
    let device = handle.metadata().map_err(|e| format!("the directory cannot be looked at: {e}"))?.dev();
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let uevent = format!("/sys/dev/block/{number}/uevent");
    let text = std::fs::read_to_string(&uevent).map_err(|e| format!("its block device is not known: {uevent}: {e}"))?;
    let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="));
    name.map(|name| PathBuf::from("/dev").join(name)).ok_or_else(|| format!("{uevent} names no device"))
}

/// How long that device is, where it tells; needs no privilege.
pub(super) fn device_bytes(handle: &File) -> Option<u64> {
    let device = handle.metadata().ok()?.dev();
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let sectors: u64 = std::fs::read_to_string(format!("/sys/dev/block/{number}/size")).ok()?.trim().parse().ok()?;
    // Sectors of 512 bytes, whatever the device's own.
    sectors.checked_mul(512)
}
