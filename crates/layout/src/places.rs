//! Where the files of a file system lie, asked through the hinge trait and brought into a device's addresses where
//! these are known: what a survey and a snapshot with block lists have in common.

use crate::AddressSpace;
use posix::{Call, Extent, Fd, FileSystem, Unavailable};

/// Turns the file system's own addresses into a device's.
pub trait Translate {
    /// Appends the device extents of one file extent, in file order; `false` if any part has no known place.
    fn translate(&self, extent: &Extent, out: &mut Vec<Extent>) -> bool;
}

/// Asks one file after the other.
pub struct Places<'a> {
    translate: Option<&'a dyn Translate>,
    logical: bool,
    untranslated: u64,
    delayed_synced: bool,
}

impl<'a> Places<'a> {
    /// Nothing asked yet; `translate` as [`Surroundings`](crate::Surroundings) has it.
    pub fn new(translate: Option<&'a dyn Translate>) -> Places<'a> {
        Places { translate, logical: false, untranslated: 0, delayed_synced: false }
    }

    /// The extents of an open file, in file order.
    ///
    /// # Errors
    /// The file system does not tell.
    pub fn of(&mut self, fs: &mut dyn FileSystem, fd: Fd) -> Result<Vec<Extent>, Unavailable> {
        let extents = self.written_back(fs, fd)?;
        self.logical |= extents.iter().any(|e| e.flags.logical_address);
        let Some(translate) = self.translate else { return Ok(extents) };
        let mut translated = Vec::with_capacity(extents.len());
        for extent in &extents {
            let f = extent.flags;
            let placed = !(f.inline || f.delayed || f.unknown || f.encoded);
            if !placed {
                translated.push(*extent);
            } else if !translate.translate(extent, &mut translated) {
                self.untranslated += 1;
            }
        }
        // They are a device's now, or have no place of their own.
        translated.iter_mut().for_each(|extent| extent.flags.logical_address = false);
        Ok(translated)
    }

    /// As the file system has them; where the file has been written since the walk began, after writing it back once
    /// more.
    fn written_back(&mut self, fs: &mut dyn FileSystem, fd: Fd) -> Result<Vec<Extent>, Unavailable> {
        let extents = fs.extents(fd)?;
        if extents.iter().any(|e| e.flags.delayed) && !self.delayed_synced {
            // Once only: a file that is being written all the time would hold the walk up.
            self.delayed_synced = true;
            fs.call(&Call::SyncFs);
            return fs.extents(fd);
        }
        Ok(extents)
    }

    /// What the addresses are.
    pub fn addresses(&self) -> AddressSpace {
        match (self.logical, self.translate) {
            (true, Some(_)) => AddressSpace::BtrfsTranslated,
            (true, None) => AddressSpace::BtrfsLogical,
            (false, _) => AddressSpace::Device,
        }
    }

    /// What the reader should know of those asked so far.
    pub fn note(&self) -> Option<String> {
        let lost = self.untranslated;
        (lost > 0).then(|| format!("{lost} extents lie outside every chunk and were left out"))
    }
}
