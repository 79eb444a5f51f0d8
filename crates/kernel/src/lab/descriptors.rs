//! Open file descriptions.

use crate::Ino;
use posix::{Errno, Fd, FileKind, OpenFlags};

/// As many as a process may have on a mounted system.
const DESCRIPTORS_MAX: usize = 1 << 20;

/// An open file description.
#[derive(Clone, Copy, Debug)]
pub(super) struct Description {
    pub(super) ino: Ino,
    pub(super) kind: FileKind,
    pub(super) flags: OpenFlags,
    /// Where the next read or write goes; in a directory, the cookie of the next entry.
    pub(super) offset: u64,
    /// How many levels below the root it was opened, by its path's text.
    pub(super) depth: u32,
}

impl Description {
    pub(super) fn readable(&self) -> Result<(), Errno> {
        if self.flags.path_only || (self.flags.write && !self.flags.read) { Err(Errno::EBADF) } else { Ok(()) }
    }

    pub(super) fn writable(&self) -> Result<(), Errno> {
        if self.flags.write && !self.flags.path_only { Ok(()) } else { Err(Errno::EBADF) }
    }

    /// Everything but `fstat` and the like refuses a mere location.
    pub(super) fn opened(&self) -> Result<(), Errno> {
        if self.flags.path_only { Err(Errno::EBADF) } else { Ok(()) }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Descriptors {
    slots: Vec<Option<Description>>,
    free: Vec<u32>,
}

impl Descriptors {
    pub(super) fn insert(&mut self, description: Description) -> Result<Fd, Errno> {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(description);
            return Ok(Fd(slot));
        }
        if self.slots.len() >= DESCRIPTORS_MAX {
            return Err(Errno::EMFILE);
        }
        self.slots.push(Some(description));
        Ok(Fd((self.slots.len() - 1) as u32))
    }

    pub(super) fn has_room(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < DESCRIPTORS_MAX
    }

    #[inline]
    pub(super) fn get(&self, fd: Fd) -> Result<Description, Errno> {
        self.slots.get(fd.0 as usize).copied().flatten().ok_or(Errno::EBADF)
    }

    pub(super) fn set_offset(&mut self, fd: Fd, offset: u64) {
        if let Some(Some(description)) = self.slots.get_mut(fd.0 as usize) {
            description.offset = offset;
        }
    }

    pub(super) fn remove(&mut self, fd: Fd) -> Result<Description, Errno> {
        let removed = self.slots.get_mut(fd.0 as usize).and_then(Option::take).ok_or(Errno::EBADF)?;
        self.free.push(fd.0);
        Ok(removed)
    }
}
