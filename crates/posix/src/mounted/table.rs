//! The open descriptors of one target: which numbers are ours, and closing those left over.
#![allow(unsafe_code)]

use crate::{Errno, Fd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// More descriptors than this are not followed, whatever the hard limit says: 4 MiB of table at most.
const DESCRIPTORS_MAX: u64 = 1 << 20;

const OURS: u32 = 1;
const DIRECT: u32 = 2;
const DEPTH_SHIFT: u32 = 8;

/// What is known of a descriptor of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Opened with `O_DIRECT`.
    pub(crate) direct: bool,
    /// How many levels below the root it was opened (for directories, what `..` may climb).
    pub(crate) depth: u32,
}

impl Entry {
    fn pack(self) -> u32 {
        OURS | if self.direct { DIRECT } else { 0 } | (self.depth.min(u32::MAX >> DEPTH_SHIFT) << DEPTH_SHIFT)
    }

    fn unpack(word: u32) -> Option<Entry> {
        (word & OURS != 0).then_some(Entry { direct: word & DIRECT != 0, depth: word >> DEPTH_SHIFT })
    }
}

/// Indexed by descriptor number; shared by every handle of a target, so a word is read and written atomically.
#[derive(Debug)]
pub(crate) struct Table {
    words: Box<[AtomicU32]>,
    /// One past the highest descriptor ever held.
    end: AtomicUsize,
}

impl Table {
    pub(crate) fn new() -> Table {
        let limit = usize::try_from(raise_descriptor_limit()).unwrap_or(1024);
        Table { words: (0..limit).map(|_| AtomicU32::new(0)).collect(), end: AtomicUsize::new(0) }
    }

    /// Takes over a new descriptor.
    pub(crate) fn insert(&self, fd: OwnedFd, entry: Entry) -> Result<Fd, Errno> {
        let number = std::os::fd::AsRawFd::as_raw_fd(&fd);
        let index = usize::try_from(number).map_err(|_| Errno::EBADF)?;
        let word = self.words.get(index).ok_or(Errno::EMFILE)?;
        let _ = fd.into_raw_fd();
        word.store(entry.pack(), Ordering::Release);
        self.end.fetch_max(index + 1, Ordering::AcqRel);
        Ok(Fd(number.unsigned_abs()))
    }

    /// The descriptor behind a number, if it is ours.
    #[inline]
    pub(crate) fn get(&self, fd: Fd) -> Result<(BorrowedFd<'_>, Entry), Errno> {
        let word = usize::try_from(fd.0).ok().and_then(|i| self.words.get(i)).ok_or(Errno::EBADF)?;
        let entry = Entry::unpack(word.load(Ordering::Acquire)).ok_or(Errno::EBADF)?;
        let number = i32::try_from(fd.0).map_err(|_| Errno::EBADF)?;
        // SAFETY: the table owns every descriptor it marks as ours, so it is open now. A driver that closes a
        // descriptor on one thread while using it on another gets what POSIX gives: EBADF or another file of the
        // process; the table itself never closes one while it lives but through `take`.
        Ok((unsafe { BorrowedFd::borrow_raw(number) }, entry))
    }

    /// Gives a descriptor up, so that the caller closes it.
    pub(crate) fn take(&self, fd: Fd) -> Result<OwnedFd, Errno> {
        let word = usize::try_from(fd.0).ok().and_then(|i| self.words.get(i)).ok_or(Errno::EBADF)?;
        Entry::unpack(word.swap(0, Ordering::AcqRel)).ok_or(Errno::EBADF)?;
        let number = i32::try_from(fd.0).map_err(|_| Errno::EBADF)?;
        // SAFETY: the swap above made this the only caller to take the descriptor out of the table that owned it.
        Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(number) })
    }

    /// How many descriptors are open.
    pub(crate) fn open_count(&self) -> usize {
        let end = self.end.load(Ordering::Acquire);
        self.words.iter().take(end).filter(|w| w.load(Ordering::Acquire) != 0).count()
    }

    /// Closes everything still open.
    pub(crate) fn close_all(&self) {
        let end = self.end.load(Ordering::Acquire);
        for number in 0..u32::try_from(end).unwrap_or(u32::MAX) {
            drop(self.take(Fd(number)));
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.close_all();
    }
}

/// Raises the soft limit on open descriptors to the hard one, once per process, and says what it is now.
pub fn raise_descriptor_limit() -> u64 {
    static LIMIT: OnceLock<u64> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let now = getrlimit(Resource::Nofile);
        let wanted = now.maximum.unwrap_or(DESCRIPTORS_MAX).min(DESCRIPTORS_MAX);
        let current = now.current.unwrap_or(DESCRIPTORS_MAX);
        if current < wanted
            && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: now.maximum }).is_ok()
        {
            return wanted;
        }
        current.min(DESCRIPTORS_MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_number_that_is_not_ours_is_refused() {
        let table = Table::new();
        assert_eq!(table.get(Fd(0)).map(|(_, e)| e), Err(Errno::EBADF));
        assert_eq!(table.get(Fd(u32::MAX)).map(|(_, e)| e), Err(Errno::EBADF));
        assert!(table.take(Fd(1)).is_err());
    }

    #[test]
    fn descriptors_are_closed_with_the_table() {
        let table = Table::new();
        let (reader, writer) = std::io::pipe().unwrap();
        let entry = Entry { direct: true, depth: 7 };
        let fd = table.insert(OwnedFd::from(writer), entry).unwrap();
        assert_eq!(table.get(fd).map(|(f, e)| (f.as_raw_fd() as u32, e)), Ok((fd.0, entry)));
        assert_eq!(table.open_count(), 1);
        drop(table);
        let mut rest = Vec::new();
        // Ends only because the writing end has been closed.
        std::io::Read::read_to_end(&mut { reader }, &mut rest).unwrap();
        assert!(rest.is_empty());
    }
}
