//! Removing a directory tree of ours, whatever is in it.
//!
//! The walk works on descriptors and single names, never on long paths, so depth is bounded by memory alone; it
//! keeps a bounded number of directories open and climbs back through `..`. It follows no symbolic links, does
//! not enter another file system, and gives itself permission to directories that lack it.

use rustix::fs::{self, AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Directories kept open at a time; those above are re-opened through `..` on the way back. Few, for whoever cleans up
/// may have few descriptors left.
const OPEN_MAX: usize = 4;
/// How often a directory that others fill while it is emptied is emptied again.
const PASSES_MAX: u32 = 8;

/// One directory on the way down.
struct Level {
    /// Its name in its parent.
    name: CString,
    /// Open, unless too many deeper ones are.
    fd: Option<OwnedFd>,
    dev: u64,
    ino: u64,
    /// Names of subdirectories still to be removed.
    pending: Vec<CString>,
    passes: u32,
}

/// Removes the tree `name` in the open directory `parent`. A tree that is not there is a success.
pub(crate) fn remove_tree(parent: BorrowedFd<'_>, name: &Path) -> io::Result<()> {
    let name = CString::new(std::os::unix::ffi::OsStrExt::as_bytes(name.as_os_str()))?;
    let stat = match fs::statat(parent, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    if fs::FileType::from_raw_mode(stat.st_mode) != fs::FileType::Directory {
        return Ok(fs::unlinkat(parent, &name, AtFlags::empty())?);
    }
    let mut stack = vec![descend(parent, name, None)?];
    while let Some(level) = stack.last_mut() {
        let Some(fd) = level.fd.as_ref() else {
            return Err(io::Error::other("a directory was moved while it was being removed"));
        };
        if let Some(next) = level.pending.pop() {
            match descend(fd.as_fd(), next, Some(level.dev)) {
                Ok(deeper) => {
                    stack.push(deeper);
                    close_far_above(&mut stack);
                }
                // Somebody else removes it too.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            continue;
        }
        if level.passes < PASSES_MAX {
            level.pending = empty(fd.as_fd())?;
            level.passes += 1;
            if !level.pending.is_empty() {
                continue;
            }
        }
        leave(&mut stack, parent)?;
    }
    Ok(())
}

/// Closes the directory that is now too far above, to be re-opened on the way back.
fn close_far_above(stack: &mut [Level]) {
    if let Some(far) = stack.len().checked_sub(OPEN_MAX).and_then(|i| stack.get_mut(i)) {
        far.fd = None;
    }
}

/// Removes the (now empty) directory at the end of the stack from its parent.
fn leave(stack: &mut Vec<Level>, parent: BorrowedFd<'_>) -> io::Result<()> {
    let Some(done) = stack.pop() else { return Ok(()) };
    let Some(above) = stack.last_mut() else {
        match fs::unlinkat(parent, &done.name, AtFlags::REMOVEDIR) {
            // Somebody fills it while we empty it.
            Err(Errno::NOTEMPTY | Errno::EXIST) if done.passes < PASSES_MAX => stack.push(done),
            Err(Errno::NOENT) => {}
            other => other?,
        }
        return Ok(());
    };
    if above.fd.is_none()
        && let Some(below) = &done.fd
    {
        let up = open_dir(below.as_fd(), c"..")?;
        let stat = fs::fstat(&up)?;
        if (stat.st_dev, stat.st_ino) != (above.dev, above.ino) {
            return Err(io::Error::other("a directory was moved while it was being removed"));
        }
        above.fd = Some(up);
    }
    let Some(fd) = &above.fd else { return Ok(()) };
    match fs::unlinkat(fd, &done.name, AtFlags::REMOVEDIR) {
        // Somebody fills it while we empty it: the next pass over its parent finds it again.
        Err(Errno::NOTEMPTY | Errno::EXIST) if above.passes < PASSES_MAX => Ok(()),
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Opens a directory to be emptied. `dev`: the file system it must be on.
fn descend(at: BorrowedFd<'_>, name: CString, dev: Option<u64>) -> io::Result<Level> {
    let fd = match open_dir(at, &name) {
        Err(Errno::ACCESS | Errno::PERM) => {
            // No permission: it is ours, so give ourselves some. Not following links, as the name may be one by now.
            fs::chmodat(at, &name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)
                .or_else(|_| fs::chmodat(at, &name, Mode::RWXU, AtFlags::empty()))?;
            open_dir(at, &name)?
        }
        Err(Errno::XDEV) => return Err(mounted_here(&name)),
        other => other?,
    };
    let stat = fs::fstat(&fd)?;
    if dev.is_some_and(|dev| dev != stat.st_dev) {
        return Err(mounted_here(&name));
    }
    if stat.st_mode & 0o700 != 0o700 {
        // Read alone opens it; removing names needs write and search too.
        let _ = fs::fchmod(&fd, Mode::RWXU);
    }
    Ok(Level { name, fd: Some(fd), dev: stat.st_dev, ino: stat.st_ino, pending: Vec::new(), passes: 0 })
}

fn mounted_here(name: &CStr) -> io::Error {
    let message = format!("{}: something is mounted here; unmount it first", name.to_string_lossy());
    io::Error::new(io::ErrorKind::ResourceBusy, message)
}

/// Removes everything but directories; answers the directories' names.
fn empty(dir: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut directories = Vec::new();
    for entry in fs::Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if entry.file_type() == fs::FileType::Directory {
            directories.push(name.to_owned());
            continue;
        }
        match fs::unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            // The type was not told, or has changed; POSIX lets unlink answer EPERM for a directory.
            Err(Errno::ISDIR) => directories.push(name.to_owned()),
            Err(Errno::PERM) if is_directory(dir, name) => directories.push(name.to_owned()),
            Err(e) => {
                return Err(io::Error::new(io::Error::from(e).kind(), format!("{}: {e}", name.to_string_lossy())));
            }
        }
    }
    Ok(directories)
}

fn is_directory(dir: BorrowedFd<'_>, name: &CStr) -> bool {
    fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|s| fs::FileType::from_raw_mode(s.st_mode) == fs::FileType::Directory)
}

/// Opens a directory without crossing into another mount, be it of the same file system; kernels before 5.6 leave
/// that to the comparison of device numbers.
pub(crate) fn open_dir(at: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match fs::openat2(at, name, flags, Mode::empty(), ResolveFlags::NO_XDEV) {
        Err(Errno::NOSYS | Errno::PERM) => fs::openat(at, name, flags, Mode::empty()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;

    fn open(path: &Path) -> OwnedFd {
        open_dir(fs::CWD, &CString::new(path.as_os_str().as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_tree_deeper_than_any_path_goes() {
        let base = tempfile::tempdir().unwrap();
        let mut at = open(base.path());
        fs::mkdirat(&at, c"beside", Mode::RWXU).unwrap();
        for _ in 0..1100 {
            fs::mkdirat(&at, c"deep", Mode::RWXU).unwrap();
            fs::openat(&at, c"file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
            at = open_dir(at.as_fd(), c"deep").unwrap();
        }
        remove_tree(open(base.path()).as_fd(), Path::new("deep")).unwrap();
        assert!(!base.path().join("deep").exists());
        assert!(base.path().join("beside").exists());
    }

    #[test]
    fn odd_names_and_missing_permissions_do_not_matter() {
        let base = tempfile::tempdir().unwrap();
        let tree = base.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        for name in [&b"new\nline"[..], b"\xff\xfe", b" ", b"-rf", b"*"] {
            std::fs::write(tree.join(std::ffi::OsStr::from_bytes(name)), "x").unwrap();
        }
        let closed = tree.join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::write(closed.join("x"), "x").unwrap();
        for mode in [0o000, 0o400, 0o100] {
            std::fs::create_dir_all(&tree).unwrap();
            std::fs::set_permissions(&tree, PermissionsExt::from_mode(mode)).unwrap();
            if closed.exists() {
                std::fs::set_permissions(&closed, PermissionsExt::from_mode(mode)).unwrap();
            }
            remove_tree(open(base.path()).as_fd(), Path::new("tree")).unwrap();
            assert!(!tree.exists());
        }
        remove_tree(open(base.path()).as_fd(), Path::new("tree")).unwrap();
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let (tree, outside) = (base.path().join("tree"), base.path().join("outside"));
        std::fs::create_dir(&tree).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("precious"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("link")).unwrap();
        std::os::unix::fs::symlink("/nowhere", tree.join("dangling")).unwrap();
        remove_tree(open(base.path()).as_fd(), Path::new("tree")).unwrap();
        assert!(outside.join("precious").exists() && !tree.exists());
        std::os::unix::fs::symlink(&outside, &tree).unwrap();
        remove_tree(open(base.path()).as_fd(), Path::new("tree")).unwrap();
        assert!(outside.join("precious").exists() && std::fs::symlink_metadata(&tree).is_err());
    }

    #[test]
    fn a_mount_is_not_crossed() {
        if !testkit::need(testkit::Need::Root) {
            return;
        }
        let base = tempfile::tempdir().unwrap();
        let (point, outside) = (base.path().join("tree/point"), base.path().join("outside"));
        std::fs::create_dir_all(&point).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("precious"), "x").unwrap();
        // Of the same file system, so that device numbers alone do not tell.
        if let Err(error) = rustix::mount::mount_bind(&outside, &point) {
            return testkit::skip(format!("cannot mount here: {error}"));
        }
        let refused = remove_tree(open(base.path()).as_fd(), Path::new("tree"));
        rustix::mount::unmount(&point, rustix::mount::UnmountFlags::empty()).unwrap();
        assert_eq!(refused.map_err(|e| e.kind()), Err(io::ErrorKind::ResourceBusy));
        assert!(outside.join("precious").exists());
        remove_tree(open(base.path()).as_fd(), Path::new("tree")).unwrap();
    }
}
