//! Files that take their place when they are whole.
//!
//! Each is written beside its place under a name that nobody can guess, and which was not there (`O_EXCL`): a link
//! planted in a directory that others can write to is never followed. What was at the place, a link too, is replaced
//! and not written through. A run that is killed leaves it to the next one ([`crate::cleanup`]).

use crate::cleanup::{Entry, Resource, begin_making};
use crate::temporary::beside;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Names tried before giving up. Two of 64 random bits that meet are no accident.
const TRIES: usize = 16;

/// A file that is written beside its place: removed when dropped, unless it has taken the place.
#[derive(Debug)]
pub struct Output {
    place: PathBuf,
    temporary: PathBuf,
    /// `None` once it has taken the place.
    entry: Option<Entry>,
}

impl Output {
    /// Makes the file beside its place, for writing and reading. `mode` is its mode before the umask.
    ///
    /// # Errors
    /// `place` names no file, or none can be made beside it.
    pub fn create(place: &Path, mode: u32) -> io::Result<(Output, File)> {
        let name =
            place.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "is not a file name"))?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut refused = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..TRIES {
            let temporary = place.with_file_name(beside(name)?);
            // The next run may be in another directory.
            let path = std::path::absolute(&temporary)?;
            let making = begin_making();
            let entry = Entry::new(&making, Resource::File { path, ino: None });
            match rustix::fs::open(&temporary, flags, Mode::from_raw_mode(mode)) {
                Ok(fd) => {
                    let output = Output { place: place.to_owned(), temporary, entry: Some(entry) };
                    if let (Some(entry), Ok(stat)) = (&output.entry, rustix::fs::fstat(&fd)) {
                        entry.made(stat.st_ino);
                    }
                    return Ok((output, File::from(fd)));
                }
                Err(errno) => {
                    entry.forget();
                    if errno != rustix::io::Errno::EXIST {
                        return Err(errno.into());
                    }
                    refused = errno.into();
                }
            }
        }
        Err(refused)
    }

    /// Where it is until it has taken its place.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Takes its place, and replaces what is there.
    ///
    /// # Errors
    /// Those of rename(2); the file is removed.
    pub fn finish(self) -> io::Result<()> {
        self.finish_by(|temporary, place| std::fs::rename(temporary, place))
    }

    /// Takes its place if nothing is there.
    ///
    /// # Errors
    /// Something is there (`AlreadyExists`), or those of renameat2(2); the file is removed.
    pub fn finish_new(self) -> io::Result<()> {
        self.finish_by(crate::rename::rename_to_empty)
    }

    fn finish_by(mut self, rename: impl FnOnce(&Path, &Path) -> io::Result<()>) -> io::Result<()> {
        let making = begin_making();
        if let Some(entry) = &self.entry {
            entry.moves(&making);
        }
        let renamed = rename(&self.temporary, &self.place);
        if renamed.is_err() {
            drop(making);
            return renamed;
        }
        if let Some(entry) = self.entry.take() {
            entry.forget();
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            // The error to report is the one that brought us here.
            let _ = entry.remove();
        }
    }
}

/// Writes a file whole or not at all, replacing what has its name.
///
/// # Errors
/// Those of making, writing and renaming it.
pub fn write(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let (output, mut file) = Output::create(place, 0o666)?;
    file.write_all(bytes)?;
    output.finish()
}

/// The same, and on stable storage before it has its name.
///
/// # Errors
/// Those of making, writing and renaming it.
pub fn write_durably(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let (output, mut file) = Output::create(place, 0o666)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    output.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::{NAME_BYTES_MAX, is_temporary_name};
    use std::fs;

    /// What the names were before: the process's number, which anybody knows.
    #[test]
    fn a_planted_link_is_not_written_through() {
        let dir = tempfile::tempdir().expect("a directory");
        let (canary, place) = (dir.path().join("canary"), dir.path().join("report.html"));
        fs::write(&canary, "alive").expect("a file");
        std::os::unix::fs::symlink(&canary, dir.path().join(format!("report.html.{}.tmp", std::process::id())))
            .expect("a link");
        std::os::unix::fs::symlink(&canary, &place).expect("a link");
        write(&place, b"report").expect("written");
        assert_eq!(fs::read_to_string(&canary).expect("there"), "alive");
        assert!(place.symlink_metadata().expect("there").is_file());
        assert_eq!(fs::read_to_string(&place).expect("there"), "report");
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 3);
    }

    #[test]
    fn what_is_not_finished_is_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let (output, _file) = Output::create(&dir.path().join("a"), 0o666).expect("made");
        let (other, _file) = Output::create(&dir.path().join("a"), 0o666).expect("made");
        assert_ne!(output.temporary(), other.temporary());
        assert!(is_temporary_name(output.temporary()) && !is_temporary_name(Path::new("/x/a.0123456789abcdef.tmp")));
        assert!(!is_temporary_name(Path::new(".a.0123456789abcdeg.tmp")) && !is_temporary_name(Path::new(".a.tmp")));
        drop((output, other));
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 0);
        let long = dir.path().join("n".repeat(NAME_BYTES_MAX));
        write_durably(&long, b"x").expect("written");
        assert_eq!(fs::read(&long).expect("there"), b"x");
    }
}
