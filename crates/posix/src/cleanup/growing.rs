//! Directories in which results grow.

use super::directories::make_directory;
use super::list::Entry;
use super::lock::{Locking, lock};
use super::making::{self, Making};
use super::names::{GROWING, growing_name, name_aside, unguessable};
use super::removal::Removal;
use super::resource::{Resource, remove_replaced};
use crate::remove::open_dir;
use crate::rename::rename_to_empty;
use rustix::fs::{self, OFlags};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A directory (mode 0700) in which a result grows until it is whole, beside its place or elsewhere. It goes when this
/// is dropped, or with the next run if this one is killed.
#[derive(Debug)]
pub struct Growing {
    path: PathBuf,
    entry: Option<Entry>,
}

impl Growing {
    /// Makes one for a result of this name.
    ///
    /// # Errors
    /// Those of mkdir(2).
    pub fn within(parent: &Path, result: &OsStr) -> io::Result<Growing> {
        loop {
            let mut name = std::ffi::OsString::from(".");
            name.push(result);
            name.push(format!("{GROWING}{:016x}", unguessable()?));
            let path = parent.join(name);
            if let Some(entry) = make_directory(&path)? {
                return Ok(Growing { path, entry: Some(entry) });
            }
        }
    }

    /// Removes what killed runs left in a directory, of results of this name or of all: directories of our own user
    /// that nobody has locked, that are no mount points, and that hold nothing but regular files of the names `parts`,
    /// which are all that a result consists of. What cannot be looked at or removed is left alone.
    pub fn sweep(parent: &Path, result: Option<&OsStr>, parts: &[&str]) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(parent_fd) = fs::open(parent, flags, fs::Mode::empty()) else { return };
        for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if growing_name(&name).is_some_and(|grown| result.is_none_or(|result| result == grown)) {
                let _ = sweep_grown(parent_fd.as_fd(), &name, parts);
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with what grew in it.
    ///
    /// # Errors
    /// Those of unlinkat(2).
    pub fn remove(&mut self) -> io::Result<()> {
        self.entry.take().map_or(Ok(()), Entry::remove)
    }

    /// Takes its place. With `replace`, a directory that is there goes once its place is taken: at every moment either
    /// is there whole. What cannot be removed of the old one is named.
    ///
    /// # Errors
    /// Those of renameat2(2): it has not taken its place.
    pub fn publish(&mut self, place: &Path, replace: bool) -> io::Result<()> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        let Some(entry) = self.entry.take() else { return Ok(()) };
        // On its way it is not removed: the place would have what is left of it.
        let making = making::begin();
        entry.moves(&making);
        match rename_to_empty(&self.path, place) {
            Ok(()) => {
                entry.forget();
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && replace => {}
            Err(error) => return Err(error),
        }
        // Whichever has the name from now on is to go.
        entry.was_replaced();
        match renameat_with(CWD, &self.path, CWD, place, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                let replaced = replace_in_steps(&self.path, place, &making)?;
                entry.forget();
                drop(making);
                told(replaced.remove_by(|aside| remove_replaced(aside.path()).map(|()| Removal::Gone)));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        drop(making);
        told(entry.remove_by(|_| remove_replaced(&self.path).map(|()| Removal::Gone)));
        Ok(())
    }
}

/// Removes a directory in which a result grew, if it is ours, nobody has it, and nothing else is in it. Where others
/// may rename, the name may be that of any directory of ours by now: files go by their names in what was locked, and
/// the directory only when it is empty.
fn sweep_grown(parent: BorrowedFd<'_>, name: &OsStr, parts: &[&str]) -> io::Result<()> {
    let directory = open_dir(parent, &CString::new(name.as_bytes())?)?;
    let stat = fs::fstat(&directory)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_dev != fs::fstat(parent)?.st_dev {
        return Ok(());
    }
    let Locking::Ours(directory) = lock(directory) else { return Ok(()) };
    let mut found = Vec::new();
    for entry in fs::Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let stat = fs::statat(&directory, name, fs::AtFlags::SYMLINK_NOFOLLOW)?;
        let is_file = fs::FileType::from_raw_mode(stat.st_mode) == fs::FileType::RegularFile;
        if !is_file || !parts.iter().any(|part| part.as_bytes() == name.to_bytes()) {
            return Ok(());
        }
        found.push(name.to_owned());
    }
    for name in found {
        fs::unlinkat(&directory, &name, fs::AtFlags::empty())?;
    }
    Ok(fs::unlinkat(parent, name, fs::AtFlags::REMOVEDIR)?)
}

/// The new one has its place; what is left of the old one is another matter.
fn told(removed: io::Result<()>) {
    if let Err(error) = removed {
        crate::notice::tell(&format!("cannot remove what was replaced: {error}"));
    }
}

/// Where names cannot be exchanged at once. What was there is under another name meanwhile and afterwards, and is to be
/// removed: whoever is killed in the middle leaves it in the journal, and the next run puts it back where its place is
/// empty.
fn replace_in_steps(new: &Path, place: &Path, making: &Making) -> io::Result<Entry> {
    let place = std::path::absolute(place)?;
    let path = place.with_file_name(name_aside(place.file_name().unwrap_or_default())?);
    let aside = Resource::Aside { path: path.clone(), place: place.clone(), new_ino: fs::lstat(new)?.st_ino };
    let entry = Entry::new(making, aside);
    if let Err(error) = std::fs::rename(&place, &path) {
        entry.forget();
        return Err(error);
    }
    let Err(error) = std::fs::rename(new, &place) else { return Ok(entry) };
    match std::fs::rename(&path, &place) {
        Ok(()) => {
            entry.forget();
            Err(error)
        }
        Err(back) => {
            // It stays in the journal, for the next run.
            std::mem::forget(entry);
            Err(io::Error::other(format!("{error}; what was there is {} now ({back})", path.display())))
        }
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        // Says what went wrong itself.
        drop(self.entry.take());
    }
}

#[cfg(test)]
mod tests {
    use super::super::lock::lock_directory;
    use super::*;
    use rustix::mount::{UnmountFlags, unmount};

    /// A FIFO with such a name was opened, which waits for ever; a directory of another user's was removed, and what
    /// was mounted on one was emptied.
    #[test]
    fn what_others_call_as_we_do_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let name = |n: u32| dir.path().join(format!(".w{GROWING}{n:016x}"));
        fs::mknodat(fs::CWD, name(0), fs::FileType::Fifo, fs::Mode::RWXU, 0).expect("a FIFO");
        for n in 1..5 {
            std::fs::create_dir(name(n)).expect("made");
            std::fs::write(name(n).join("a"), "a").expect("written");
        }
        std::os::unix::fs::symlink(name(2), name(5)).expect("a link");
        let living = lock_directory(&name(1));
        assert!(matches!(living, Locking::Ours(_)));
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            std::os::unix::fs::chown(name(2), Some(65534), None).expect("given away");
        }
        let elsewhere = tempfile::tempdir().expect("a directory");
        std::fs::write(elsewhere.path().join("a"), "precious").expect("written");
        let mounted = rustix::mount::mount_bind(elsewhere.path(), name(3)).is_ok();
        Growing::sweep(dir.path(), Some(OsStr::new("w")), &["a"]);
        Growing::sweep(dir.path(), Some(OsStr::new("x")), &["a"]);
        if mounted {
            assert!(elsewhere.path().join("a").exists());
            unmount(name(3), UnmountFlags::empty()).expect("unmounted");
        }
        let left: Vec<bool> = (0..6).map(|n| name(n).symlink_metadata().is_ok()).collect();
        assert_eq!(left, [true, true, is_root, mounted, false, true]);
        drop(living);
    }

    /// Whoever may rename in the directory could have had a directory of ours emptied, by a name that a growing result
    /// has.
    #[test]
    fn a_sweep_removes_the_files_of_a_result_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a directory");
        let name = |n: u32| dir.path().join(format!(".w{GROWING}{n:016x}"));
        let write = |path: PathBuf| std::fs::write(path, "a").expect("written");
        for n in 0..6 {
            std::fs::create_dir(name(n)).expect("made");
            write(name(n).join("a"));
        }
        write(name(0).join("another"));
        std::fs::create_dir_all(name(1).join("directory")).expect("made");
        write(name(1).join("directory/a"));
        std::fs::create_dir(name(2).join("b")).expect("made");
        std::os::unix::fs::symlink(name(0), name(3).join("b")).expect("a link");
        write(name(4).join("b"));
        Growing::sweep(dir.path(), None, &["a", "b"]);
        for left in ["a", "another"].map(|file| name(0).join(file)) {
            assert!(left.exists(), "{left:?}");
        }
        assert!(name(1).join("a").exists() && name(1).join("directory/a").exists());
        assert!(name(2).join("a").exists() && name(2).join("b").is_dir());
        assert!(name(3).join("a").exists() && name(3).join("b").is_symlink());
        assert!(!name(4).exists() && !name(5).exists());
    }

    /// What was to be replaced was in a directory that a sweep takes, while nothing had its place.
    #[test]
    fn what_is_replaced_in_steps_is_never_in_a_directory_that_is_swept_before_it_is_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let (new, place) = (dir.path().join("new"), dir.path().join("w.workload"));
        let make = |path: &Path, text: &str| {
            std::fs::create_dir(path).expect("made");
            std::fs::write(path.join("meta.json"), text).expect("written");
        };
        let read = |path: &Path| std::fs::read_to_string(path.join("meta.json")).expect("there");
        make(&new, "new");
        make(&place, "old");
        let in_steps = || replace_in_steps(&new, &place, &making::begin());
        let replaced = in_steps().expect("replaced");
        assert_eq!(read(&place), "new");
        replaced.remove().expect("removed by its number");
        assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 1);
        let error = in_steps().expect_err("no new one");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(read(&place), "new", "back in its place");
        assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 1);
    }
}
