//! All dependency records, the blocks under way, and what is to be done in the background.

use super::inodes::Inodes;
use super::pages::Pages;
use super::record::{Change, Entry, Key, Keys, Kind, Number, Placed, Record, Waiters};
use super::table::Table;
use crate::Ffs;
use kernel::BlockId;
use kernel::program::IoId;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use ufs::live::{Files as _, Freed};

/// So many empty lists of flights are kept.
const SPARE: usize = 16;

/// In a list that is longer, one that waits no more leaves an empty place; these go when it is full.
const SHORT: usize = 16;

/// A block under way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) id: BlockId,
    /// Its length.
    bytes: u32,
    /// The number of this write.
    put: u64,
    /// What is stable when it is complete.
    pub(super) keys: Keys,
    /// Whether something of it was undone.
    pub(super) undone: bool,
}

/// Something to be done in the background.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Space, and perhaps a number with whether it was a directory's, is free.
    Free { freed: Vec<Freed>, number: Option<(u32, bool)> },
    /// An inode has no name on the disk any more, and nobody has it open.
    Release(u32),
}

/// The mode's memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deps {
    /// Whether the file system is in use, and dependencies are kept.
    pub(super) on: bool,
    /// So many records there may be ([`most_records`](super::most_records)).
    pub(super) max_records: usize,
    pub(super) records: Table,
    /// Blocks that have set out.
    puts: u64,
    /// Records that wait for a block.
    waiting: FxHashMap<BlockId, Waiters>,
    pub(super) inodes: Inodes,
    /// Changes of directories (`pagedep`).
    pub(super) pages: Pages,
    pub(super) flights: BTreeMap<IoId, Vec<Flight>>,
    /// Empty lists of flights, to be used again.
    spare: Vec<Vec<Flight>>,
    /// Blocks of directories of which the disk has so many bytes, with sound chunks up to there.
    pub(super) filled: BTreeMap<BlockId, u32>,
    /// Requests that a program waits for, whose blocks are taken as stable by what follows in it, with the program that
    /// has last waited for it. Whoever writes meanwhile waits for them too.
    pub(super) assumed: BTreeMap<IoId, u64>,
    /// The program that has waited for all of these.
    pub(super) assumed_by: Option<u64>,
    /// The work list.
    pub(super) work: VecDeque<Work>,
    /// Links dropped by the operation under way.
    pub(super) drops: Vec<(u32, i16)>,
    /// The last change of a directory by it that takes something from the disk.
    pub(super) last_removal: Option<Number>,
    /// The name that it has made to lead elsewhere, and what it led to.
    pub(super) replaced: Option<(Number, u32)>,
    /// The name that it has made, and of what.
    pub(super) new_name: Option<(Number, u32)>,
    /// `..` that it has changed.
    pub(super) new_parent: Option<Number>,
    /// Records that are being made stable.
    pub(super) pushing: Vec<Number>,
    /// A release from the work list is under way.
    pub(super) releasing: bool,
    /// The log of journaled Soft Updates.
    pub(super) log: Option<Box<super::journal::Records>>,
}

impl Deps {
    /// Of a file system that is in use from now on.
    pub(super) fn in_use(max_records: usize) -> Deps {
        Deps { on: true, max_records, ..Deps::default() }
    }

    /// A new record. It waits for the keys with writes that set out from now on.
    pub(super) fn add(&mut self, kind: Kind, keys: &[Key]) -> Number {
        let number = self.records.add(kind);
        self.wait(number, keys);
        number
    }

    /// A record waits for more.
    pub(super) fn wait(&mut self, number: Number, keys: &[Key]) {
        let first = self.puts + 1;
        for key in keys {
            if let Key::Record(of) = key
                && (*of == number || !self.records.contains(*of))
            {
                continue;
            }
            if let Some(record) = self.records.get_mut(number) {
                record.waits.push((*key, first));
                let waiters = self.waiters_mut(*key);
                if waiters.len() > SHORT && waiters.len() == waiters.capacity() {
                    waiters.retain(|(_, number)| *number != Number::default());
                    waiters.reserve(waiters.capacity() / 2);
                }
                waiters.push((first, number));
            }
        }
    }

    /// The list of those that wait for something; if that is a record, it exists.
    fn waiters_mut(&mut self, key: Key) -> &mut Waiters {
        match key {
            Key::Block(id) => self.waiting.entry(id).or_default(),
            Key::Inode(ino) => &mut self.inodes.make(ino).awaited,
            Key::Record(of) => &mut self.records.get_mut(of).expect("what is waited for is there").awaited,
        }
    }

    /// Empties the list of those that wait for something, and returns it.
    fn take_waiters(&mut self, key: Key) -> Waiters {
        match key {
            Key::Block(id) => self.waiting.remove(&id).unwrap_or_default(),
            Key::Inode(ino) => {
                let waiters = self.inodes.get_mut(ino).map(|dep| std::mem::take(&mut dep.awaited));
                self.tidy(ino);
                waiters.unwrap_or_default()
            }
            Key::Record(of) => {
                self.records.get_mut(of).map(|record| std::mem::take(&mut record.awaited)).unwrap_or_default()
            }
        }
    }

    /// A record waits for nothing any more.
    pub(super) fn wait_no_more(&mut self, number: Number) {
        let waits = self.records.get_mut(number).map(|record| std::mem::take(&mut record.waits)).unwrap_or_default();
        for (key, first) in waits {
            self.leave(number, key, first);
        }
    }

    /// A record is taken from the list of those that wait for something.
    fn leave(&mut self, number: Number, key: Key, first: u64) {
        let waiters = match key {
            Key::Block(id) => self.waiting.get_mut(&id),
            Key::Inode(ino) => self.inodes.get_mut(ino).map(|dep| &mut dep.awaited),
            Key::Record(of) => self.records.get_mut(of).map(|record| &mut record.awaited),
        };
        let Some(waiters) = waiters else { return };
        // They are in the order of their first writes.
        let from = waiters.partition_point(|(of, _)| *of < first);
        if let Some(at) = waiters.iter().skip(from).position(|waiter| *waiter == (first, number)) {
            if waiters.len() > SHORT {
                waiters[from + at].1 = Number::default();
            } else {
                waiters.remove(from + at);
            }
        }
        if waiters.is_empty() {
            match key {
                Key::Block(id) => drop(self.waiting.remove(&id)),
                Key::Inode(ino) => self.tidy(ino),
                Key::Record(_) => {}
            }
        }
    }

    /// What waits for one thing waits for another one instead, from now on.
    pub(super) fn wait_for_other(&mut self, from: Key, to: Key) {
        let waiting = self.take_waiters(from);
        let first = self.puts + 1;
        for (_, number) in waiting {
            let waits = self.records.get_mut(number).into_iter().flat_map(|record| &mut record.waits);
            let mut moved = 0;
            for wait in waits.filter(|(key, _)| *key == from) {
                *wait = (to, first);
                moved += 1;
            }
            self.waiters_mut(to).extend(std::iter::repeat_n((first, number), moved));
        }
    }

    /// What waits for one thing waits for others too.
    pub(super) fn wait_besides(&mut self, key: Key, others: &[Key]) {
        let waiting: Vec<Number> = self.waiters(key).iter().map(|(_, number)| *number).collect();
        waiting.into_iter().for_each(|number| self.wait(number, others));
    }

    /// Who waits for something.
    fn waiters(&self, key: Key) -> &[(u64, Number)] {
        let waiters = match key {
            Key::Block(id) => self.waiting.get(&id),
            Key::Inode(ino) => self.inodes.get(ino).map(|dep| &dep.awaited),
            Key::Record(of) => self.records.get(of).map(|record| &record.awaited),
        };
        waiters.map_or(&[], SmallVec::as_slice)
    }

    pub(super) fn is_held(&self, number: Number) -> bool {
        self.records.is_held(number)
    }

    /// Whether a record waits for nothing.
    pub(super) fn is_ready(&self, number: Number) -> bool {
        self.records.is_ready(number)
    }

    pub(super) fn is_awaited(&self, key: Key) -> bool {
        !self.waiters(key).is_empty()
    }

    /// Changes of a name in a directory, the oldest first.
    pub(super) fn of_name<'a>(
        &'a self,
        dir: u32,
        name: &'a [u8],
    ) -> impl DoubleEndedIterator<Item = (Number, &'a Entry)> {
        self.pages.maybe_of_name(dir, name).iter().filter_map(move |number| {
            let entry = self.entry(*number)?;
            (entry.dir == dir && *entry.name == *name).then_some((*number, entry))
        })
    }

    /// Changes of a directory, the oldest first.
    pub(super) fn of_directory(&self, dir: u32) -> Vec<Number> {
        let mut all = self.pages.of_directory(dir);
        self.records.sort(&mut all);
        all
    }

    pub(super) fn entry(&self, number: Number) -> Option<&Entry> {
        match &self.records.get(number)?.kind {
            Kind::Entry(entry) => Some(entry),
            _ => None,
        }
    }

    pub(super) fn placed(&self, number: Number) -> Option<&Placed> {
        self.records.placed(number)
    }

    pub(super) fn placed_mut(&mut self, number: Number) -> Option<&mut Placed> {
        match &mut self.records.get_mut(number)?.kind {
            Kind::Direct { placed, .. } | Kind::Indirect { placed, .. } => Some(placed),
            _ => None,
        }
    }

    /// The record of a pointer that is not stable: in an indirect block, if there is a holder, or in the inode.
    pub(super) fn pointer(&self, ino: u32, holder: Option<BlockId>, index: usize) -> Option<Number> {
        let dep = self.inodes.get(ino)?;
        match holder {
            None => dep.slots.get(index),
            Some(holder) => dep.indirects.get(&holder.lbn.0)?.get(&index).copied(),
        }
    }

    /// Records of an indirect block's pointers, by place.
    pub(super) fn pointers(&self, holder: BlockId) -> impl Iterator<Item = (usize, Number)> {
        let pointers = self.inodes.get(holder.ino.0).and_then(|dep| dep.indirects.get(&holder.lbn.0));
        pointers.into_iter().flatten().map(|(index, number)| (*index, *number))
    }

    /// A pointer has a record.
    pub(super) fn set_pointer(&mut self, ino: u32, holder: Option<BlockId>, index: usize, number: Number) {
        let dep = self.inodes.make(ino);
        match holder {
            None => dep.slots.set(index, number),
            Some(holder) => drop(dep.indirects.entry(holder.lbn.0).or_default().insert(index, number)),
        }
    }

    /// Forgets what is known of an inode if that is nothing.
    pub(super) fn tidy(&mut self, ino: u32) {
        self.inodes.tidy(ino);
    }

    /// Whether an inode has never been on the disk.
    pub(super) fn is_unborn(&self, ino: u32) -> bool {
        self.inodes.get(ino).and_then(|dep| dep.new).is_some_and(|new| self.is_held(new))
    }

    /// A record that is still there, and all records that it waits for.
    pub(super) fn awaited_by(&self, number: Number) -> Vec<(Number, &Record)> {
        let mut found = Vec::new();
        self.walk(number, &|_| true, &mut |number, record, _| {
            found.push((number, record));
            true
        });
        found
    }

    /// Whether a record is, or waits for, a change of a name that `wanted` says, by way of any that is not `here`
    /// (itself included).
    pub(super) fn leads_to(
        &self,
        number: Number,
        here: &dyn Fn(&Entry) -> bool,
        wanted: &dyn Fn(&Entry) -> bool,
    ) -> bool {
        let mut found = false;
        self.walk(number, here, &mut |_, record, left| {
            found |= left && matches!(&record.kind, Kind::Entry(entry) if wanted(entry));
            !found
        });
        found
    }

    /// Visits a record and what it waits for, as long as `visit` says so. It is told whether the way there has left the
    /// changes that are `here`; a record may be visited once with either.
    fn walk<'a>(
        &'a self,
        number: Number,
        here: &dyn Fn(&Entry) -> bool,
        visit: &mut dyn FnMut(Number, &'a Record, bool) -> bool,
    ) {
        let mut known = FxHashSet::default();
        let mut todo = vec![(number, false)];
        while let Some((number, left)) = todo.pop() {
            let Some(record) = self.records.get(number) else { continue };
            let left = left || !matches!(&record.kind, Kind::Entry(entry) if here(entry));
            if !known.insert((number, left)) {
                continue;
            }
            if !visit(number, record, left) {
                return;
            }
            todo.extend(record.waits.iter().filter_map(|(key, _)| match key {
                Key::Record(other) => Some((*other, left)),
                Key::Block(_) | Key::Inode(_) => None,
            }));
        }
    }

    /// A block has set out.
    pub(super) fn set_out(&mut self, io: IoId, (id, bytes): (BlockId, u32), keys: Keys, undone: bool) {
        self.puts += 1;
        if undone || !keys.is_empty() {
            let flights = self.flights.entry(io).or_insert_with(|| self.spare.pop().unwrap_or_default());
            flights.push(Flight { id, bytes, put: self.puts, keys, undone });
        }
    }

    /// What some record waits for is stable, with the write of that number.
    fn satisfy(&mut self, key: Key, put: u64, fired: &mut Vec<Number>) {
        let mut waiting = self.take_waiters(key);
        // They are in the order of their first writes.
        let served = waiting.partition_point(|(first, _)| *first <= put);
        for (first, number) in waiting.drain(..served) {
            self.served(number, (key, first), fired);
        }
        if !waiting.is_empty() {
            *self.waiters_mut(key) = waiting;
        }
    }

    /// A record waits for one thing less.
    fn served(&mut self, number: Number, wait: (Key, u64), fired: &mut Vec<Number>) {
        let Some(record) = self.records.get_mut(number) else { return };
        if let Some(at) = record.waits.iter().position(|other| *other == wait) {
            record.waits.swap_remove(at);
        }
        if record.waits.is_empty() && matches!(record.kind, Kind::Free { .. }) {
            fired.push(number);
        }
    }

    /// A record is taken from its place in its block's list.
    fn detach(&mut self, number: Number, kind: &Kind) {
        match kind {
            Kind::NewInode(ino) => {
                if let Some(dep) = self.inodes.get_mut(*ino) {
                    dep.new = dep.new.filter(|new| *new != number);
                }
                self.tidy(*ino);
            }
            Kind::Direct { ino, slot, .. } => {
                if let Some(dep) = self.inodes.get_mut(*ino)
                    && dep.slots.get(*slot) == Some(number)
                {
                    dep.slots.clear(*slot);
                }
                self.tidy(*ino);
            }
            Kind::Indirect { holder, index, .. } => {
                if let Some(dep) = self.inodes.get_mut(holder.ino.0)
                    && let Some(pointers) = dep.indirects.get_mut(&holder.lbn.0)
                {
                    if pointers.get(index) == Some(&number) {
                        pointers.remove(index);
                    }
                    if pointers.is_empty() {
                        dep.indirects.remove(&holder.lbn.0);
                    }
                }
                self.tidy(holder.ino.0);
            }
            Kind::Entry(entry) => {
                self.pages.remove(entry, number);
                if let Some(ino) = entry.change.takes_directory() {
                    if let Some(dep) = self.inodes.get_mut(ino) {
                        dep.leaving.retain(|other| *other != number);
                    }
                    self.tidy(ino);
                }
                if let Change::Add { to } | Change::Replace { to, .. } = entry.change {
                    if let Some(dep) = self.inodes.get_mut(to) {
                        dep.names.retain(|other| *other != number);
                    }
                    self.tidy(to);
                }
            }
            Kind::Free { .. } => {}
        }
    }

    /// A record is no more: what it was about has become stable, or will never be on the disk. What waits for it waits
    /// no longer.
    pub(super) fn remove(&mut self, number: Number) -> Option<(Record, Vec<Number>)> {
        self.wait_no_more(number);
        let mut record = self.records.remove(number)?;
        self.detach(number, &record.kind);
        let mut fired = Vec::new();
        for (first, waiter) in std::mem::take(&mut record.awaited) {
            self.served(waiter, (Key::Record(number), first), &mut fired);
        }
        Some((record, fired))
    }
}

impl Ffs {
    /// Blocks of a request are on the disk. `differs` is told of each block that was written with something undone.
    pub(super) fn landed(&mut self, io: IoId, differs: &mut dyn FnMut(&Ffs, BlockId)) {
        let Some(mut flights) = self.soft.flights.remove(&io) else { return };
        for flight in flights.drain(..) {
            let mut fired = Vec::new();
            for key in &flight.keys {
                match key {
                    Key::Record(number) => self.stable(*number, differs),
                    Key::Block(_) | Key::Inode(_) => self.soft.satisfy(*key, flight.put, &mut fired),
                }
                if let Key::Block(id) = key
                    && id.ino != kernel::Ino::DEVICE
                    && self.directory(id.ino).is_ok()
                {
                    self.soft.filled.insert(*id, flight.bytes);
                }
            }
            for number in fired {
                self.stable(number, differs);
            }
            if flight.undone {
                differs(self, flight.id);
            }
        }
        if self.soft.spare.len() < SPARE {
            self.soft.spare.push(flights);
        }
    }

    /// A record has done its duty.
    fn stable(&mut self, number: Number, differs: &mut dyn FnMut(&Ffs, BlockId)) {
        let Some((record, fired)) = self.soft.remove(number) else { return };
        match record.kind {
            Kind::NewInode(_) => {}
            Kind::Direct { placed, .. } | Kind::Indirect { placed, .. } => {
                if !placed.freed.is_empty() {
                    self.soft.work.push_back(Work::Free { freed: placed.freed, number: None });
                }
            }
            Kind::Entry(entry) => self.settle_drops(&entry.drops, differs),
            Kind::Free { ino, freed, number, drops } => {
                let number = number.map(|directory| (ino, directory));
                if number.is_some() || !freed.is_empty() {
                    self.soft.work.push_back(Work::Free { freed, number });
                }
                self.settle_drops(&drops, differs);
            }
        }
        for number in fired {
            self.stable(number, differs);
        }
    }

    /// A record will never be on the disk. Returns what it was.
    pub(super) fn cancel(&mut self, number: Number) -> Option<Record> {
        let (record, fired) = self.soft.remove(number)?;
        for number in fired {
            self.stable(number, &mut |_, _| {});
        }
        Some(record)
    }

    /// Names are gone from the disk: their links are, and what has none any more can be freed.
    pub(super) fn settle_drops(&mut self, drops: &[(u32, i16)], differs: &mut dyn FnMut(&Ffs, BlockId)) {
        for (ino, links) in drops {
            let dep = self.soft.inodes.make(*ino);
            dep.owed -= i32::from(*links);
            debug_assert!(dep.owed >= 0, "inode {ino} owes {} links", dep.owed);
            if dep.owed == 0 && std::mem::take(&mut dep.released) {
                self.soft.work.push_back(Work::Release(*ino));
            }
            self.soft.tidy(*ino);
            differs(self, self.inode_block(kernel::Ino(*ino)).id);
        }
    }
}
