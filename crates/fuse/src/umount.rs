//! Unmounting from outside: take the mount away, then wait until whoever served it has written the last of it.

use crate::{FS_TYPE, MountError};
use rustix::fs::FlockOperation;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long is waited for a file system to be written back.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long is waited for a server that has only read.
const READERS_PATIENCE: Duration = Duration::from_secs(10);

/// Unmounts what `fsage mount` has mounted on a directory. When this returns, the image is as it will be, unless it is
/// mounted at another place as well, which is returned. `go_on` is asked while that is waited for. With `force` what
/// cannot be written is lost.
///
/// # Errors
/// Nothing of ours is mounted there, it is in use, or the system refuses. Without `force`: not all of it can be
/// written; it stays mounted.
pub fn umount(on: &Path, force: bool, go_on: &mut dyn FnMut() -> bool) -> Result<Option<PathBuf>, MountError> {
    // Of a mount whose server is dead only the name can be had.
    let on = on.canonicalize().or_else(|_| std::path::absolute(on)).unwrap_or_else(|_| on.to_owned());
    let Some(mount) = posix::cleanup::served_at(&on, FS_TYPE) else { return Err(MountError::NotMounted { path: on }) };
    let read_only = mount.options.split(',').any(|option| option == "ro");
    let readers = if read_only { locks_of(&mount.source) } else { 0 };
    // What cannot be written is not known any more once it is unmounted. A server that is dead has nothing to write.
    if !read_only
        && !force
        && let Err(source) = std::fs::File::open(&on).and_then(|root| root.sync_all())
        && source.raw_os_error() != Some(rustix::io::Errno::NOTCONN.raw_os_error())
    {
        return Err(MountError::Unwritten { path: on, source });
    }
    let others = posix::cleanup::also_mounted(&mount);
    posix::cleanup::unmount_served(&on, false).map_err(|source| match source.kind() {
        std::io::ErrorKind::ResourceBusy => MountError::Busy { path: on.clone() },
        _ => MountError::Io { path: on.clone(), doing: "unmount it", source },
    })?;
    // Its server goes on as long as it is mounted anywhere. Where mounts are shared, several have gone at once.
    let left = posix::cleanup::also_mounted(&mount);
    if let Some(other) = others.into_iter().find(|other| left.contains(other)) {
        return Ok(Some(other.point));
    }
    // Nothing is written back of what was only read, and others may still read it: one of its locks goes.
    if read_only {
        let begun = Instant::now();
        while readers > 0 && locks_of(&mount.source) >= readers && begun.elapsed() < READERS_PATIENCE && go_on() {
            std::thread::sleep(Duration::from_millis(5));
        }
        return Ok(None);
    }
    // What is no file was in memory, and has gone.
    if !mount.source.is_absolute() {
        return Ok(None);
    }
    // The server holds a lock on the image until it has written everything.
    let image = std::fs::File::open(&mount.source).map_err(|source| MountError::Io {
        path: mount.source.clone(),
        doing: "see whether the last of it is written (it is unmounted)",
        source,
    })?;
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && go_on() {
        match rustix::fs::flock(&image, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(None),
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(5)),
            // A file system without locks: nobody can tell.
            Err(_) => return Ok(None),
        }
    }
    Err(MountError::InUse { path: mount.source })
}

/// How many locks of whole files there are on an image (`/proc/locks`, proc_locks(5)); 0 where that cannot be told.
fn locks_of(image: &Path) -> usize {
    let Ok(status) = std::fs::metadata(image) else { return 0 };
    let (major, minor) = (rustix::fs::major(status.dev()), rustix::fs::minor(status.dev()));
    let of_image = format!("{major:02x}:{minor:02x}:{}", status.ino());
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let held = |line: &&str| line.contains("FLOCK") && line.split_whitespace().any(|word| word == of_image);
    locks.lines().filter(held).count()
}
