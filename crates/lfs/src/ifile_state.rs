//! Which blocks of the ifile are to be written by the next checkpoint.

use crate::format::IFILE_INO;
use kernel::Ino;

/// The ifile as a file in memory: which of its blocks differ from the disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct IfileState {
    changed: Vec<bool>,
    count: u32,
}

impl IfileState {
    /// A block has changed.
    pub(crate) fn touch(&mut self, lbn: u64) {
        let at = lbn as usize;
        if at >= self.changed.len() {
            self.changed.resize(at + 1, false);
        }
        if let Some(changed) = self.changed.get_mut(at)
            && !std::mem::replace(changed, true)
        {
            self.count += 1;
        }
    }

    /// How many have.
    pub(crate) fn changed(&self) -> u32 {
        self.count
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        (0..).zip(&self.changed).filter(|(_, changed)| **changed).map(|(lbn, _)| lbn)
    }

    pub(crate) fn clear(&mut self) {
        self.changed.fill(false);
        self.count = 0;
    }
}

/// The ifile's number.
pub(crate) const IFILE: Ino = IFILE_INO;
