//! Changes of directories: what a name waits for, and which links are dropped when one is gone from the disk.

use super::record::{Change, Entry, Key, Kind, Number};
use crate::Ffs;
use crate::format::{DIRBLKSIZ, FileType};
use crate::planted::Bug;
use crate::volume::inodes::Body;
use kernel::{BlockId, Cx, Ino, Lbn};
use posix::Errno;
use ufs::live::{Files as _, Name};

/// The byte of the chunk that a byte is in.
fn chunk_of(at: u64) -> u64 {
    at / DIRBLKSIZ as u64 * DIRBLKSIZ as u64
}

impl Ffs {
    /// A block of a directory has changed.
    fn chunk_changed(&mut self, cx: &mut Cx, dir: Ino, at: u64) -> Result<(), Errno> {
        self.update(cx, dir);
        let block = self.directory_block(dir, at)?;
        cx.change(&block);
        Ok(())
    }

    /// What a new name of an inode waits for.
    fn name_keys(&self, dir: Ino, chunk: u64, name: &[u8], ino: Ino, grown: bool) -> Vec<Key> {
        let mut keys = Vec::new();
        let planted = |bug| self.planted == Some(bug);
        if !planted(Bug::SoftNameEarly) {
            keys.push(Key::Inode(ino.0));
        }
        let node = self.inodes.get(ino.0);
        let dep = self.soft.inodes.get(ino.0);
        let slots = || dep.into_iter().flat_map(|dep| dep.slots.numbers().map(Key::Record));
        match node.map(|node| &node.body) {
            Some(Body::Directory(_)) => {
                if !planted(Bug::SoftMkdirBody) {
                    // A new directory's first block, and the pointer to it (`MKDIR_BODY`).
                    if dep.is_some_and(|dep| dep.new.is_some()) {
                        keys.push(Key::Block(BlockId { ino, lbn: Lbn(0) }));
                    }
                    keys.extend(slots());
                }
                // The link that its `..` is (`MKDIR_PARENT`).
                if !planted(Bug::SoftMkdirParent) {
                    keys.push(Key::Inode(dir.0));
                }
            }
            Some(Body::Symlink(_)) => keys.extend(slots()),
            _ => {}
        }
        if grown {
            // The chunk can be found (`newdirblk`).
            keys.push(Key::Inode(dir.0));
            keys.extend(self.pointer_record(dir, chunk >> self.g.bshift).map(Key::Record));
        }
        // An earlier name is gone before: one that had the room, or the same one elsewhere.
        let pages = &self.soft.pages;
        let removed = |number: Number| {
            let entry = self.soft.entry(number)?;
            let Change::Remove { ino: removed, .. } = entry.change else { return None };
            Some((entry.chunk, removed, self.soft.is_held(number)))
        };
        let had_room = |number: &&Number| removed(**number).is_some_and(|(_, _, held)| held);
        // One that goes back to its old name, elsewhere, must not wait for that to go.
        let elsewhere = |number: &Number| {
            removed(*number).is_some_and(|(at, removed, held)| at != chunk && !(held && removed == ino.0))
        };
        keys.extend(pages.of_chunk(dir.0, chunk).iter().filter(had_room).map(|number| Key::Record(*number)));
        keys.extend(self.soft.of_name(dir.0, name).map(|(number, _)| number).filter(elsewhere).map(Key::Record));
        keys
    }

    /// What the last name of a directory waits for: names that have moved out of it are elsewhere.
    fn moved_out(&self, dir: Ino) -> Vec<Key> {
        let held = self.soft.of_directory(dir.0).into_iter().filter(|number| {
            let removed = |entry: &Entry| matches!(entry.change, Change::Remove { .. });
            !self.soft.is_ready(*number) && self.soft.entry(*number).is_some_and(removed)
        });
        held.map(Key::Record).collect()
    }

    /// Names of an inode that are not on the disk yet, but for one: what is on the disk stays until one of these is.
    fn other_names(&self, ino: Ino, except: Option<Number>) -> Vec<Number> {
        if self.planted == Some(Bug::SoftOldNameFirst) {
            return Vec::new();
        }
        let names = self.soft.inodes.get(ino.0).into_iter().flat_map(|dep| &dep.names);
        names.copied().filter(|number| Some(*number) != except).collect()
    }

    /// Earlier names of a directory that the disk may still have.
    fn earlier_names(&self, ino: Ino) -> Vec<Key> {
        let leaving = self.soft.inodes.get(ino.0).into_iter().flat_map(|dep| &dep.leaving);
        leaving.copied().map(Key::Record).collect()
    }

    /// Whether the disk may have a name of a directory, besides the one that is being made.
    fn has_name_on_disk(&self, dir: Ino, new_name: Option<Number>) -> bool {
        let names = self.soft.inodes.get(dir.0).into_iter().flat_map(|dep| &dep.names);
        let not_yet = |number: &Number| Some(*number) != new_name && self.soft.is_held(*number);
        !names.copied().any(|number| not_yet(&number)) || !self.earlier_names(dir).is_empty()
    }

    /// A name that was made and has not set out is to go: what has waited for it waits for another one of its inode, if
    /// there is one.
    fn pass_on(&mut self, held: Number, others: &[Number]) {
        if let Some(other) = others.last() {
            self.soft.wait_for_other(Key::Record(held), Key::Record(*other));
        }
    }

    /// The record of the pointer to a block, if it is not stable.
    pub(super) fn pointer_record(&self, ino: Ino, lbn: u64) -> Option<Number> {
        let (holder, index) = super::space::place_of(ino, lbn, self.g.nindir())?;
        self.soft.pointer(ino.0, holder, index)
    }

    fn add_entry(&mut self, dir: Ino, chunk: u64, name: &[u8], change: Change, keys: &[Key]) -> Number {
        let entry = Entry { dir: dir.0, chunk, name: name.into(), change, drops: Vec::new() };
        let number = self.soft.add(Kind::Entry(entry.clone()), keys);
        self.soft.pages.add(&entry, number);
        if let Change::Add { to } | Change::Replace { to, .. } = change {
            self.soft.inodes.make(to).names.push(number);
        }
        if let Some(ino) = change.takes_directory() {
            self.soft.inodes.make(ino).leaving.push(number);
        }
        number
    }

    /// The change of a name that was made and has not set out.
    fn held_name(&self, dir: Ino, name: &[u8]) -> Option<Number> {
        let (last, entry) = self.soft.of_name(dir.0, name).next_back()?;
        let made = matches!(entry.change, Change::Add { .. } | Change::Replace { .. });
        (made && self.soft.is_held(last)).then_some(last)
    }

    /// Whether a name of an inode that was made and has not set out need not be on the disk at all when it goes. That
    /// of a directory which the disk knows by another name must: what has moved out of the directory goes before its
    /// last name.
    fn may_cancel(&self, ino: Ino) -> bool {
        self.soft.is_unborn(ino.0) || self.directory(ino).is_err()
    }

    pub(super) fn soft_name_added(
        &mut self,
        cx: &mut Cx,
        dir: Ino,
        at: u64,
        entry: Name<'_>,
        grown: bool,
    ) -> Result<(), Errno> {
        self.chunk_changed(cx, dir, at)?;
        let chunk = chunk_of(at);
        let keys = self.name_keys(dir, chunk, entry.name, entry.ino, grown);
        let number = self.add_entry(dir, chunk, entry.name, Change::Add { to: entry.ino.0 }, &keys);
        self.soft.new_name = Some((number, entry.ino.0));
        self.has_its_room(cx, number, entry.ino);
        if grown {
            self.has_empty_chunk_on_disk(cx, dir, chunk);
        }
        Ok(())
    }

    /// A new name waits for those that had its room, and what waits for an earlier name of its inode, or where a
    /// directory's `..` leads, is about to wait for it instead. If these were the same, as of two directories that have
    /// changed places again and again, nothing could go to the disk: so the room is free there first. Changes of one
    /// chunk go together, and are no such circle. It may have been a name of the same inode, which has been elsewhere
    /// meanwhile.
    fn has_its_room(&mut self, cx: &mut Cx, new: Number, ino: Ino) {
        let waits = self.soft.records.get(new).into_iter().flat_map(|record| &record.waits);
        let of_removal = |key: &(Key, u64)| match key.0 {
            Key::Record(number) => {
                let removed = |entry: &Entry| matches!(entry.change, Change::Remove { .. });
                self.soft.entry(number).is_some_and(removed).then_some(number)
            }
            Key::Block(_) | Key::Inode(_) => None,
        };
        let concerns = |entry: &Entry| match entry.change {
            Change::Add { to } => to == ino.0,
            Change::Replace { from, to, .. } => from == ino.0 || to == ino.0,
            Change::Remove { ino: of, .. } => of == ino.0,
            Change::Parent { .. } => entry.dir == ino.0,
        };
        let chunk = self.soft.entry(new).map(|entry| (entry.dir, entry.chunk));
        let here = |entry: &Entry| Some((entry.dir, entry.chunk)) == chunk;
        let waits_for_it = |number: &Number| self.soft.leads_to(*number, &here, &concerns);
        let mut first: Vec<Number> = waits.filter_map(of_removal).filter(waits_for_it).collect();
        if let Some((dir, _)) = chunk.filter(|_| self.directory(ino).is_ok()) {
            // Likewise the names of the directories that it is moved into.
            let above = self.names_above(Ino(dir)).into_iter().filter_map(|key| match key {
                Key::Record(number) => Some(number),
                Key::Block(_) | Key::Inode(_) => None,
            });
            first.extend(above.filter(|number| self.soft.leads_to(*number, &|_| false, &concerns)));
        }
        for number in first {
            self.push(cx, number);
        }
    }

    /// A directory is about to be longer on the disk by a chunk of a block that it has there already: the disk has a
    /// sound chunk there first. It has one where this mount has written the block ([`Ffs::fill_directory`]), and gets
    /// one otherwise.
    fn has_empty_chunk_on_disk(&mut self, cx: &mut Cx, dir: Ino, chunk: u64) {
        let lbn = chunk >> self.g.bshift;
        let id = BlockId { ino: dir, lbn: Lbn(lbn as i64) };
        let end = (chunk & u64::from(self.g.bsize - 1)) + DIRBLKSIZ as u64;
        let filled = self.soft.filled.get(&id).is_some_and(|bytes| u64::from(*bytes) >= end);
        let comes = self.pointer_record(dir, lbn).is_some_and(|number| self.soft.is_held(number));
        if !filled && !comes && self.planted != Some(Bug::SoftChunkLate) {
            self.force_even_clean(cx, id);
        }
    }

    pub(super) fn soft_name_changed(
        &mut self,
        cx: &mut Cx,
        dir: Ino,
        at: u64,
        from: Ino,
        entry: Name<'_>,
    ) -> Result<(), Errno> {
        self.chunk_changed(cx, dir, at)?;
        let chunk = chunk_of(at);
        let to = entry.ino.0;
        let kind =
            |ino: Ino| self.inodes.get(ino.0).and_then(|node| node.d.file_type()).map_or(0, FileType::entry_type);
        let (mut change, mut drops) = (Change::Replace { from: from.0, from_type: kind(from), to }, Vec::new());
        let held = self.held_name(dir, entry.name);
        let others = self.other_names(from, held);
        let mut keys = Vec::new();
        let cancelled = held.filter(|_| self.may_cancel(from));
        match (cancelled, held) {
            (Some(held), _) => self.pass_on(held, &others),
            (None, held) => {
                keys.extend(self.earlier_names(from));
                keys.extend(held.into_iter().chain(others).map(Key::Record));
            }
        }
        if let Some(record) = cancelled.and_then(|held| self.cancel(held))
            && let Kind::Entry(before) = record.kind
        {
            // The disk has what was there before.
            change = match before.change {
                Change::Replace { from, from_type, .. } => Change::Replace { from, from_type, to },
                _ => Change::Add { to },
            };
            drops = before.drops;
        }
        keys.extend(self.name_keys(dir, chunk, entry.name, entry.ino, false));
        keys.extend(self.moved_out(from));
        let number = self.add_entry(dir, chunk, entry.name, change, &keys);
        self.add_drops(number, drops);
        self.soft.replaced = Some((number, from.0));
        self.soft.new_name = Some((number, to));
        if matches!(change, Change::Replace { .. }) {
            self.soft.last_removal = Some(number);
        }
        self.has_its_room(cx, number, entry.ino);
        Ok(())
    }

    pub(super) fn soft_name_removed(&mut self, cx: &mut Cx, dir: Ino, at: u64, entry: Name<'_>) -> Result<(), Errno> {
        self.chunk_changed(cx, dir, at)?;
        let renamed = self.soft.new_name.filter(|(_, ino)| *ino == entry.ino.0).map(|(number, _)| number);
        let renamed = renamed.filter(|_| self.planted != Some(Bug::SoftOldNameFirst));
        let file_type = self.inodes.get(entry.ino.0).and_then(|node| node.d.file_type());
        let mut change = Change::Remove { ino: entry.ino.0, entry_type: file_type.map_or(0, FileType::entry_type) };
        let (mut keys, mut drops) = (Vec::new(), Vec::new());
        let held = self.held_name(dir, entry.name);
        let others = self.other_names(entry.ino, held);
        // Of a rename, besides the new name: where the directory's `..` leads, and the way to the new name.
        let mut firsts: Vec<Key> =
            self.soft.new_parent.filter(|_| renamed.is_some()).map(Key::Record).into_iter().collect();
        if let Some(dir) = renamed.and_then(|new| self.soft.entry(new)).map(|entry| Ino(entry.dir)) {
            firsts.extend(self.names_above(dir));
        }
        if let Some(held) = held.filter(|_| renamed.is_none() && !self.may_cancel(entry.ino)) {
            keys.push(Key::Record(held));
            keys.extend(self.earlier_names(entry.ino));
        } else if let Some(held) = held {
            self.soft.wait_besides(Key::Record(held), &firsts);
            self.pass_on(held, &others);
            if let Some(record) = self.cancel(held)
                && let Kind::Entry(before) = record.kind
            {
                let Change::Replace { from, from_type, .. } = before.change else {
                    // It never was on the disk.
                    self.soft.drops.extend(before.drops);
                    return Ok(());
                };
                change = Change::Remove { ino: from, entry_type: from_type };
                keys.extend(self.other_names(Ino(from), None).into_iter().map(Key::Record));
                drops = before.drops;
            }
        }
        // Other names come first.
        keys.extend(others.into_iter().map(Key::Record));
        match renamed {
            Some(_) => keys.extend(firsts),
            None => {
                keys.extend(self.moved_out(entry.ino));
                // Where `..` leads is where the last name of a directory is.
                keys.extend(self.earlier_names(entry.ino));
            }
        }
        let number = self.add_entry(dir, chunk_of(at), entry.name, change, &keys);
        self.add_drops(number, drops);
        self.soft.last_removal = Some(number);
        Ok(())
    }

    pub(super) fn soft_parent_changed(&mut self, cx: &mut Cx, dir: Ino, from: Ino, parent: Ino) -> Result<(), Errno> {
        self.chunk_changed(cx, dir, 0)?;
        let new_name = self.soft.new_name.map(|(number, _)| number);
        let mut keys = vec![Key::Inode(parent.0)];
        keys.extend(new_name.map(Key::Record));
        // The way to the new name: until it is there, the old one is the only one, and `..` leads there.
        keys.extend(self.names_above(parent));
        let before = self.soft.of_directory(dir.0).into_iter().find(|number| {
            let parent = |entry: &Entry| matches!(entry.change, Change::Parent { .. });
            self.soft.is_held(*number) && self.soft.entry(*number).is_some_and(parent)
        });
        let back = |number: &Number| {
            self.soft.entry(*number).map(|entry| entry.change) == Some(Change::Parent { from: parent.0 })
        };
        let number = match before {
            Some(before) if back(&before) => {
                // It leads where it leads on the disk. Links that were to go with it go with this operation.
                if let Some(record) = self.cancel(before)
                    && let Kind::Entry(entry) = record.kind
                {
                    self.soft.drops.extend(entry.drops);
                }
                return Ok(());
            }
            Some(before) => {
                // The disk still has what was there before.
                self.soft.wait(before, &keys);
                before
            }
            None if !self.has_name_on_disk(dir, new_name) => {
                // Nothing leads there: the new name waits for it.
                if let Some(new_name) = new_name {
                    self.soft.wait(new_name, &[Key::Block(BlockId { ino: dir, lbn: Lbn(0) })]);
                }
                return Ok(());
            }
            None => self.add_entry(dir, 0, b"..", Change::Parent { from: from.0 }, &keys),
        };
        self.soft.last_removal = Some(number);
        self.soft.new_parent = Some(number);
        Ok(())
    }

    fn add_drops(&mut self, number: Number, drops: Vec<(u32, i16)>) {
        if let Some(record) = self.soft.records.get_mut(number) {
            match &mut record.kind {
                Kind::Entry(Entry { drops: own, .. }) => own.extend(drops),
                _ => debug_assert!(drops.is_empty(), "only names drop links"),
            }
        }
    }

    /// Links are fewer in memory; the disk keeps them until the operation's names are gone from it.
    pub(super) fn soft_link_dropped(&mut self, cx: &mut Cx, ino: Ino, links: i16) {
        self.update(cx, ino);
        self.soft.inodes.make(ino.0).owed += i32::from(links);
        self.soft.drops.push((ino.0, links));
    }

    /// An operation is over, or has failed: the links it has dropped go with the name that led there, or with its last
    /// change of a directory.
    pub(super) fn soft_operation_ends(&mut self, cx: &mut Cx) {
        self.note_end();
        (self.soft.new_name, self.soft.new_parent) = (None, None);
        let (last, replaced) = (self.soft.last_removal.take(), self.soft.replaced.take());
        if self.soft.drops.is_empty() {
            return;
        }
        let mut drops = std::mem::take(&mut self.soft.drops);
        if let Some((number, from)) = replaced.filter(|(number, _)| self.soft.records.contains(*number)) {
            // What a name has led to goes with that name, whatever becomes of the rest.
            let own = drops.extract_if(.., |(ino, _)| *ino == from).collect();
            self.add_drops(number, own);
        }
        match last.filter(|last| self.soft.records.contains(*last)) {
            Some(last) => self.add_drops(last, drops),
            None => {
                let mut changed = Vec::new();
                self.settle_drops(&drops, &mut |_, id| changed.push(id));
                changed.into_iter().for_each(|id| cx.dirty(id));
            }
        }
    }
}
