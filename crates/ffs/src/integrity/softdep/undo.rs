//! Undo: what must not be on the disk yet is taken out of a block when it sets out.
//!
//! Memory keeps everything, and the block is changed again when its write is complete: that is all of the redo.

use super::deps::Deps;
use super::inodes::InodeDep;
use super::record::{Change, Entry, Key, Keys, Number, Placed, Record, State};
use super::table::Table;
use crate::Ffs;
use crate::format::{DIRBLKSIZ, Dinode, Disk as _, NDADDR, Version, fresh_chunk, insert, parse_chunk};
use crate::volume::encode::Place;
use crate::volume::inodes::Body;
use crate::volume::pointers::way;
use kernel::{BlockId, Ino, Pbn};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use ufs::live::{Files as _, copy};

/// Why not all of a block can be written.
#[derive(Clone, Copy, Debug)]
pub(super) enum HoldsBack<'a> {
    /// A change waits for something.
    Change(&'a Record),
    /// The length of a file depends on an indirect block that is not on the disk as it is in memory.
    Indirect(BlockId),
}

/// Sectors of a file as they are without a pointer that is not on the disk yet.
fn without(sectors: u64, placed: &Placed) -> u64 {
    let (was, now) = (u64::from(placed.was.bytes / 512), u64::from(placed.now.bytes / 512));
    debug_assert!(sectors + was >= now, "{placed:?} is more than the {sectors} sectors of its file");
    (sectors + was).saturating_sub(now)
}

impl Ffs {
    /// An inode as it may be on the disk: `None` if it may not.
    pub(super) fn safe_inode(&self, ino: u32) -> Option<Dinode> {
        let node = self.inodes.get(ino)?;
        let Some(dep) = self.soft.inodes.get(ino) else { return Some(node.d.clone()) };
        if dep.new.is_some_and(|new| self.soft.is_held(new)) {
            return None;
        }
        let mut d = if self.holds_pointers(dep) { self.with_safe_pointers(ino, dep, &node.d) } else { node.d.clone() };
        d.nlink = node.d.nlink.saturating_add(i16::try_from(dep.owed).unwrap_or(i16::MAX));
        if self.planted == Some(crate::planted::Bug::SoftLinkEarly) {
            d.nlink = node.d.nlink;
        }
        for placed in dep.indirects.values().flat_map(BTreeMap::values).filter_map(|number| self.soft.placed(*number)) {
            d.blocks = without(d.blocks, placed);
        }
        Some(d)
    }

    /// The length of an inode as it may be on the disk: `None` if the inode may not.
    fn safe_length(&self, ino: u32) -> Option<u64> {
        let node = self.inodes.get(ino)?;
        let Some(dep) = self.soft.inodes.get(ino) else { return Some(node.d.size) };
        if dep.new.is_some_and(|new| self.soft.is_held(new)) {
            return None;
        }
        let whole = !self.holds_pointers(dep);
        Some(if whole { node.d.size } else { self.with_safe_pointers(ino, dep, &node.d).size })
    }

    /// Whether a pointer of an inode may not be on the disk yet, or one in its indirect blocks.
    fn holds_pointers(&self, dep: &InodeDep) -> bool {
        !dep.indirects.is_empty() || dep.slots.numbers().any(|number| self.soft.is_held(number))
    }

    /// An inode with the pointers that may be on the disk, pulled back to the last block there.
    fn with_safe_pointers(&self, ino: u32, dep: &InodeDep, d: &Dinode) -> Dinode {
        let mut d = d.clone();
        let mut ends = false;
        for (slot, number) in dep.slots.iter().filter(|(_, number)| self.soft.is_held(*number)) {
            let Some(placed) = self.soft.placed(number) else { continue };
            let place = if slot < NDADDR { d.db.get_mut(slot) } else { d.ib.get_mut(slot - NDADDR) };
            if let Some(place) = place {
                *place = if ends { 0 } else { placed.was.addr };
            }
            d.blocks = without(d.blocks, placed);
            if placed.was.addr != 0 && placed.was.bytes < self.g.bsize {
                // The file ends in fragments there.
                d.size = d.size.min(placed.old_size);
                ends = true;
            }
        }
        self.pull_back(ino, dep, &mut d);
        d
    }

    /// The length of an inode is pulled back to its last block on the disk.
    fn pull_back(&self, ino: u32, dep: &InodeDep, d: &mut Dinode) {
        let Some(node) = self.inodes.get(ino) else { return };
        if !node.d.has_blocks(&self.g) || self.planted == Some(crate::planted::Bug::SoftLengthEarly) {
            return;
        }
        let whole = matches!(node.body, Body::Directory(_));
        let (n, shift) = (self.g.nindir(), self.g.bshift);
        if whole {
            // No block of a directory may be missing.
            let blocks = d.size.div_ceil(1 << shift);
            if let Some(missing) = (0..blocks).find(|lbn| !self.is_placed(ino, dep, d, *lbn, n)) {
                d.size = d.size.min(missing << shift);
            }
            return;
        }
        while let Some(last) = d.size.checked_sub(1).map(|byte| byte >> shift) {
            if self.is_placed(ino, dep, d, last, n) {
                break;
            }
            d.size = last << shift;
        }
    }

    /// Whether block `lbn` of an inode as it may be on the disk can be found there.
    fn is_placed(&self, ino: u32, dep: &InodeDep, d: &Dinode, lbn: u64, n: u64) -> bool {
        let Some(way) = way(lbn, n) else { return d.db.get(lbn as usize).is_some_and(|addr| *addr != 0) };
        if d.ib.get(way.slot).is_none_or(|addr| *addr == 0) {
            return false;
        }
        let Some(node) = self.inodes.get(ino) else { return false };
        let held = |holder: i64, index: usize| {
            // Of a block that has moved the disk has one of the two places.
            let number = dep.indirects.get(&holder).and_then(|pointers| pointers.get(&index));
            number.and_then(|number| self.soft.placed(*number)).is_some_and(|placed| placed.was.addr == 0)
        };
        for level in 0..way.slot {
            let (Some(above), Some(below)) = (way.numbers.get(level), way.numbers.get(level + 1)) else { break };
            if held(*above, super::space::index_in(*above, *below, n)) {
                return false;
            }
        }
        node.pointer(lbn, n) != 0 && !held(-(way.leaf as i64), way.index)
    }

    /// Takes what must not be on the disk yet out of a block.
    pub(super) fn undo_block(&self, id: BlockId, pbn: Pbn, out: &mut [u8]) {
        if self.is_of_directory(id) {
            self.fill_directory(id, out);
        }
        if self.soft.records.is_empty() && self.soft.inodes.is_empty() {
            return;
        }
        if id.ino == Ino::DEVICE {
            if let Place::Inodes(first) = self.place(pbn) {
                self.undo_inodes(first, out);
            }
        } else if id.lbn.0 < 0 {
            self.undo_indirect(id, out);
        } else if self.is_of_directory(id) {
            self.undo_directory(id.ino.0, (id.lbn.0 as u64) << self.g.bshift, out);
        }
    }

    pub(super) fn is_of_directory(&self, id: BlockId) -> bool {
        id.ino != Ino::DEVICE && id.lbn.0 >= 0 && self.directory(id.ino).is_ok()
    }

    /// What a block has behind its directory's end are sound chunks, so that the directory can become longer on the
    /// disk before the block is written again (as `ufs_direnter` does under Soft Updates).
    fn fill_directory(&self, id: BlockId, out: &mut [u8]) {
        let Some(node) = self.inodes.get(id.ino.0) else { return };
        let from = (id.lbn.0 as u64) << self.g.bshift;
        let used = node.d.size.saturating_sub(from) as usize;
        let fresh = fresh_chunk(self.g.dir_format());
        for chunk in out.chunks_mut(DIRBLKSIZ).skip(used.div_ceil(DIRBLKSIZ)) {
            copy(&fresh, chunk);
        }
    }

    fn undo_inodes(&self, first: u32, out: &mut [u8]) {
        let size = self.g.layout.version.inode_bytes() as usize;
        for ino in self.soft.inodes.within(first..first + self.g.inopb()) {
            let place = out.chunks_mut(size).nth((ino - first) as usize);
            let Some(place) = place.filter(|_| self.inodes.get(ino).is_some()) else { continue };
            match self.safe_inode(ino) {
                Some(d) => copy(&self.encode_inode(ino, &d), place),
                None => place.fill(0),
            }
        }
    }

    fn undo_indirect(&self, id: BlockId, out: &mut [u8]) {
        let (endian, width) = (self.g.endian(), self.g.layout.version.pointer_bytes() as usize);
        for (index, number) in self.soft.pointers(id).filter(|(_, number)| self.soft.is_held(*number)) {
            let Some(placed) = self.soft.placed(number) else { continue };
            match self.g.layout.version {
                Version::Ufs1 => (placed.was.addr as i32).put(endian, out, index * width),
                Version::Ufs2 => placed.was.addr.put(endian, out, index * width),
            }
        }
    }

    fn undo_directory(&self, dir: u32, from: u64, out: &mut [u8]) {
        for (chunk, bytes) in (from..).step_by(DIRBLKSIZ).zip(out.chunks_mut(DIRBLKSIZ)) {
            let page = self.soft.pages.of_chunk(dir, chunk);
            let held = page.iter().rev().filter(|number| self.soft.is_held(**number));
            let mut entries = held.filter_map(|number| self.soft.entry(*number)).peekable();
            if entries.peek().is_some() {
                self.undo_chunk(entries, bytes);
            }
        }
    }

    /// Makes a chunk anew, the youngest change undone first.
    fn undo_chunk<'a>(&self, changes: impl Iterator<Item = &'a Entry>, bytes: &mut [u8]) {
        let format = self.g.dir_format();
        let Ok(mut entries) = parse_chunk(bytes, format, 0) else {
            debug_assert!(false, "a directory in memory is not sound");
            return;
        };
        for change in changes {
            let at = entries.iter().position(|entry| entry.name == *change.name);
            match (change.change, at) {
                (Change::Add { .. }, Some(at)) => drop(entries.remove(at)),
                (Change::Replace { from, from_type, .. }, Some(at)) => {
                    if let Some(entry) = entries.get_mut(at) {
                        (entry.ino, entry.kind) = (Ino(from), from_type);
                    }
                }
                (Change::Parent { from }, Some(at)) => {
                    if let Some(entry) = entries.get_mut(at) {
                        entry.ino = Ino(from);
                    }
                }
                (Change::Remove { ino, entry_type }, None) => {
                    let name = change.name.to_vec();
                    entries.push(crate::format::DirEntry { at: 0, ino: Ino(ino), kind: entry_type, name });
                }
                (_, at) => debug_assert!(false, "{change:?} cannot be undone: entry {at:?}"),
            }
        }
        let mut chunk = fresh_chunk(format);
        for entry in &entries {
            let fits = insert(&mut chunk, format, entry.ino, entry.kind, &entry.name);
            debug_assert!(fits, "what was in a chunk once has room in it");
        }
        copy(&chunk, bytes);
    }

    /// A block sets out: what is ready goes with it. Returns what is stable when it has arrived, and whether something
    /// is undone.
    pub(super) fn load_up(&mut self, id: BlockId) -> (Keys, bool) {
        let mut keys = Keys::new();
        let mut undone = false;
        let of_directory = self.is_of_directory(id);
        if of_directory || self.soft.is_awaited(Key::Block(id)) {
            keys.push(Key::Block(id));
        }
        if id.ino == Ino::DEVICE {
            if let Place::Inodes(first) = self.place(Pbn(id.lbn.0.unsigned_abs())) {
                for ino in self.soft.inodes.within(first..first + self.g.inopb()) {
                    self.load_inode(ino, &mut keys, &mut undone);
                }
            }
        } else if id.lbn.0 < 0 {
            let whole = matches!(self.inodes.get(id.ino.0).map(|node| &node.body), Some(Body::Directory(_)));
            let Deps { inodes, records, .. } = &mut self.soft;
            let pointers = inodes.get(id.ino.0).and_then(|dep| dep.indirects.get(&id.lbn.0));
            let numbers = pointers.into_iter().flat_map(BTreeMap::values).copied();
            records.load(numbers, whole, &mut keys, &mut undone);
        } else if of_directory {
            let bytes = self.bytes_of(id);
            let Deps { pages, records, .. } = &mut self.soft;
            for numbers in pages.of_chunks(id.ino.0, bytes) {
                records.load_entries(numbers, &mut keys, &mut undone);
            }
        }
        (keys, undone)
    }

    /// Whether nothing is left out of a block if it is written now.
    pub(super) fn goes_whole(&self, id: BlockId) -> bool {
        let mut whole = true;
        self.hold_back(id, &mut |_| {
            whole = false;
            false
        });
        whole
    }

    /// Everything because of which not all of a block could be written now, as long as `found` says yes.
    pub(super) fn hold_back<'a>(&'a self, id: BlockId, found: &mut dyn FnMut(HoldsBack<'a>) -> bool) {
        let change = |number: Number, found: &mut dyn FnMut(HoldsBack<'a>) -> bool| {
            let record = self.soft.records.get(number).filter(|record| record.state == State::Held);
            record.filter(|record| !record.waits.is_empty()).is_none_or(|record| found(HoldsBack::Change(record)))
        };
        if id.ino == Ino::DEVICE {
            let Place::Inodes(first) = self.place(Pbn(id.lbn.0.unsigned_abs())) else { return };
            for ino in self.soft.inodes.within(first..first + self.g.inopb()) {
                let Some(own) = self.soft.inodes.get(ino) else { continue };
                if !own.new.into_iter().chain(own.slots.numbers()).all(|number| change(number, found)) {
                    return;
                }
                if let Some(lbn) = own.indirects.keys().next() {
                    let block = BlockId { ino: Ino(ino), lbn: kernel::Lbn(*lbn) };
                    if !found(HoldsBack::Indirect(block)) {
                        return;
                    }
                }
            }
        } else if id.lbn.0 < 0 {
            self.soft.pointers(id).all(|(_, number)| change(number, found));
        } else if self.is_of_directory(id) {
            self.soft.pages.of_chunks(id.ino.0, self.bytes_of(id)).flatten().all(|number| change(*number, found));
        }
    }

    /// Bytes of a file that a block of it has.
    fn bytes_of(&self, id: BlockId) -> std::ops::Range<u64> {
        let from = (id.lbn.0 as u64) << self.g.bshift;
        from..from + u64::from(self.g.bsize)
    }

    fn load_inode(&mut self, ino: u32, keys: &mut Keys, undone: &mut bool) {
        let Some(dep) = self.soft.inodes.get(ino) else { return };
        let (new, slots, awaited) = (dep.new, dep.slots, !dep.awaited.is_empty());
        if let Some(new) = new {
            if self.soft.is_held(new) && !self.soft.is_ready(new) {
                *undone = true;
                return;
            }
            self.soft.records.set_written(new);
            keys.push(Key::Record(new));
        }
        let whole = matches!(self.inodes.get(ino).map(|node| &node.body), Some(Body::Directory(_)));
        self.soft.records.load(slots.numbers(), whole, keys, undone);
        // Its length may be pulled back for what is in indirect blocks.
        *undone |= self.safe_length(ino) != self.inodes.get(ino).map(|node| node.d.size);
        if awaited {
            keys.push(Key::Inode(ino));
        }
    }
}

impl Table {
    /// Pointers, in order: behind one of a file's last fragments that is held all others are, and of a directory behind
    /// any.
    fn load(&mut self, numbers: impl Iterator<Item = Number>, whole: bool, keys: &mut Keys, undone: &mut bool) {
        let mut ends = false;
        for number in numbers {
            let held = self.is_held(number);
            if held && (ends || !self.is_ready(number)) {
                *undone = true;
                ends |= whole || self.placed(number).is_some_and(|placed| placed.was.addr != 0);
            } else {
                self.set_written(number);
                keys.push(Key::Record(number));
            }
        }
    }

    /// Changes of a chunk. It is written as a whole: those go that wait for nothing but one another.
    fn load_entries(&mut self, numbers: &[Number], keys: &mut Keys, undone: &mut bool) {
        let mut go: SmallVec<[Number; 8]> = numbers.into();
        loop {
            let before = go.clone();
            go.retain(|number| self.goes_with(*number, &before));
            if go.len() == before.len() {
                break;
            }
        }
        *undone |= go.len() < numbers.len();
        for number in go {
            self.set_written(number);
            keys.push(Key::Record(number));
        }
    }

    /// Whether a change can go to the disk with others of its chunk.
    fn goes_with(&self, number: Number, all: &[Number]) -> bool {
        let Some(record) = self.get(number) else { return false };
        record.state == State::Written
            || record.waits.iter().all(|(key, _)| match key {
                Key::Record(other) => all.contains(other),
                Key::Block(_) | Key::Inode(_) => false,
            })
    }
}
