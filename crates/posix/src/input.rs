//! Files that somebody names to be read: an argument, a key of a target, a part of a profile.
//!
//! A description is a regular file, an image is one or a block device. What else can have a name is refused before a
//! byte is read: a device that never ends, a FIFO that nobody writes to, a directory. What is read whole has a limit. A
//! text may come from anywhere, bit by bit: it is a [`Stream`], on which a signal is heard while nothing comes.

use fault::{Fault, Kind};
use rustix::fs::{FileType, Mode, OFlags};
use std::error::Error;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Why a file is not read though the system would give it. Inside the [`io::Error`] of this module's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is no file.
    #[error("is {found} where a file is expected")]
    Kind {
        /// What it is.
        found: &'static str,
    },
    /// It is longer than any of its kind.
    #[error("is longer than {bytes_max} bytes, which no such file is")]
    TooLong {
        /// The limit.
        bytes_max: u64,
    },
}

impl Refusal {
    /// The refusal in an error, if it is one.
    pub fn of(error: &io::Error) -> Option<Refusal> {
        error.get_ref()?.downcast_ref().copied()
    }

    fn error(self) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, self)
    }
}

/// Whose fault an error is. Whatever it was opened for: what is no file, or no file of its kind, is a bad input.
pub fn kind_of<E: Fault + 'static>(error: &E) -> Kind {
    let first: &(dyn Error + 'static) = error;
    let mut causes = std::iter::successors(Some(first), |error: &&(dyn Error + 'static)| (*error).source());
    if causes.any(|cause| cause.downcast_ref().is_some_and(|e| Refusal::of(e).is_some())) {
        return Kind::BadInput;
    }
    error.kind()
}

/// Opens a regular file to be read.
///
/// # Errors
/// Those of open(2); a [`Refusal`].
pub fn open(path: &Path) -> io::Result<File> {
    open_if(path, |kind| kind == FileType::RegularFile)
}

/// Opens an image to be read: a regular file or a block device.
///
/// # Errors
/// Those of open(2); a [`Refusal`].
pub fn open_image(path: &Path) -> io::Result<File> {
    open_if(path, |kind| matches!(kind, FileType::RegularFile | FileType::BlockDevice))
}

/// Reads a regular file whole.
///
/// # Errors
/// Those of open(2) and read(2); a [`Refusal`].
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let too_long = Refusal::TooLong { bytes_max };
    if file.metadata()?.len() > bytes_max {
        return Err(too_long.error());
    }
    // The length is no promise: files in /proc say 0, and others grow.
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(too_long.error()) } else { Ok(bytes) }
}

/// Reads a regular file of text whole.
///
/// # Errors
/// Those of [`read`]; it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let bytes = read(path, bytes_max)?;
    String::from_utf8(bytes).map_err(|e| {
        let message = format!("is no text: byte {} is not UTF-8", e.utf8_error().valid_up_to());
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

/// A text that may come from anywhere: a file, a FIFO, a terminal, standard input.
///
/// Reading waits until something comes or a signal asks to stop, which is an error of [`Stopped`]: one of the kind
/// [`io::ErrorKind::Interrupted`] would be tried again by whoever reads.
#[derive(Debug)]
pub struct Stream {
    file: File,
}

/// A signal asked to stop while a [`Stream`] was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted by a signal")]
pub struct Stopped;

/// How often a signal is looked for while nothing comes.
const LOOK: rustix::fs::Timespec = rustix::fs::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

impl Stream {
    /// Opens what has a name. A FIFO that nobody has opened for writing is waited for when it is read.
    ///
    /// # Errors
    /// Those of open(2); a directory.
    pub fn open(path: &Path) -> io::Result<Stream> {
        // Without NONBLOCK, opening a FIFO waits for a writer, and no signal ends that.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        if FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) == FileType::Directory {
            return Err(Refusal::Kind { found: called(FileType::Directory) }.error());
        }
        Ok(Stream { file: File::from(fd) })
    }

    /// What it is; its length is that of a file.
    ///
    /// # Errors
    /// Those of fstat(2).
    pub fn metadata(&self) -> io::Result<std::fs::Metadata> {
        self.file.metadata()
    }
}

impl io::Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use rustix::event::{PollFd, PollFlags, poll};
        loop {
            if crate::interrupt::requested() {
                return Err(io::Error::other(Stopped));
            }
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            match self.file.read(buffer) {
                // Another reader was quicker.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }
}

fn open_if(path: &Path, wanted: impl Fn(FileType) -> bool) -> io::Result<File> {
    // Without NONBLOCK, opening a FIFO waits for a writer. On files it means nothing.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty())?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
    if wanted(kind) { Ok(File::from(fd)) } else { Err(Refusal::Kind { found: called(kind) }.error()) }
}

fn called(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::CharacterDevice => "a character device",
        FileType::BlockDevice => "a block device",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        _ => "something else",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T: std::fmt::Debug>(result: io::Result<T>) -> Refusal {
        let error = result.expect_err("refused");
        Refusal::of(&error).unwrap_or_else(|| panic!("{error}"))
    }

    /// `machine=/dev/zero` was read until memory ended; a FIFO without a writer was waited for.
    #[test]
    fn what_never_ends_is_not_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let fifo = dir.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RUSR).expect("a FIFO");
        for (path, found) in
            [(Path::new("/dev/zero"), "a character device"), (&fifo, "a FIFO"), (dir.path(), "a directory")]
        {
            assert_eq!(refused(read(path, 10)), Refusal::Kind { found });
            assert_eq!(refused(open_image(path)), Refusal::Kind { found });
        }
        assert!(open(&dir.path().join("none")).is_err_and(|e| e.kind() == io::ErrorKind::NotFound));
    }

    #[test]
    fn what_is_too_long_is_not_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        std::fs::write(&path, "0123456789").expect("a file");
        assert_eq!(read(&path, 10).expect("read"), b"0123456789");
        assert_eq!(refused(read(&path, 9)), Refusal::TooLong { bytes_max: 9 });
        // Its length is said to be 0.
        assert_eq!(refused(read(Path::new("/proc/self/status"), 9)), Refusal::TooLong { bytes_max: 9 });
        std::fs::write(&path, b"ab\xff").expect("a file");
        assert!(read_text(&path, 10).is_err_and(|e| e.to_string().contains("byte 2")));
    }
}
