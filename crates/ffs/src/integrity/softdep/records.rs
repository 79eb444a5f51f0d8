//! Dependency records: what a change waits for, and what waits for it.
//!
//! A record is *held* while something that it waits for is not stable: the change is undone in what is written of its block. It is
//! *written* when its block has set out with it, and gone when that write is complete. Records are numbered by age, and a record waits only for
//! older ones and for writes, so that there are no circles.

use crate::Ffs;
use kernel::BlockId;
use kernel::program::IoId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use ufs::live::{Files as _, Freed, Piece};

/// A record's number.
pub(super) type Number = u64;

/// Something that becomes stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    /// A block with a write that sets out from now on.
    Block(BlockId),
    /// An inode, not left out of its block, likewise.
    Inode(u32),
    /// A record.
    Record(Number),
}

/// How far a record has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Undone in what is written.
    Held,
    /// On its way with its block; every later write of the block has it too.
    Written,
}

/// What a change is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A new inode (`inodedep` with `bmsafemap`): all of it is left out.
    NewInode(u32),
    /// A pointer in an inode (`allocdirect`, also for the indirect ones).
    Direct { ino: u32, slot: usize, placed: Placed },
    /// A pointer in an indirect block (`allocindir`).
    Indirect { holder: BlockId, index: usize, placed: Placed },
    /// An entry of a directory.
    Entry(Entry),
    /// What an inode, and some indirect blocks, have given up (`freeblks`, `freefile`): it is free when these are stable.
    Free { ino: u32, freed: Vec<Freed>, number: Option<bool>, drops: Vec<(u32, i16)> },
}

/// A pointer that leads elsewhere now.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    /// What the disk has.
    pub(super) was: Piece,
    /// What memory has.
    pub(super) now: Piece,
    /// The length of the file on the disk, if it ended in what was there.
    pub(super) old_size: u64,
    /// What is given up when the pointer is stable (`freefrag`).
    pub(super) freed: Vec<Freed>,
}

/// A change of a directory.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) dir: u32,
    /// Byte of its chunk, which is written as a whole.
    pub(super) chunk: u64,
    pub(super) name: Box<[u8]>,
    pub(super) change: Change,
    /// Links that are dropped when it is stable (`dirrem`).
    pub(super) drops: Vec<(u32, i16)>,
}

/// Which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A new name (`diradd`).
    Add { to: u32 },
    /// A name that leads elsewhere (`diradd` with `DIRCHG`).
    Replace { from: u32, from_type: u8, to: u32 },
    /// A name that is gone (`dirrem`); of a rename it waits for the new name, otherwise for nothing.
    Remove { ino: u32, entry_type: u8 },
    /// `..` leads elsewhere.
    Parent { from: u32 },
}

#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) kind: Kind,
    pub(super) state: State,
    /// What is not stable yet of what it waits for, each with the first write that counts.
    pub(super) waits: Vec<(Key, u64)>,
}

/// What is known of an inode (`inodedep`).
#[derive(Clone, Debug, Default)]
pub(super) struct InodeDep {
    /// It is new, and may never have been on the disk.
    pub(super) new: Option<Number>,
    /// Pointers, by place: 12 direct ones and 3 indirect ones.
    pub(super) slots: BTreeMap<usize, Number>,
    /// Links that the disk has more than memory: names that are gone from memory only.
    pub(super) owed: i32,
    /// To be freed when nothing is owed.
    pub(super) released: bool,
    /// Names of it that are not stable.
    pub(super) names: Vec<Number>,
}

impl InodeDep {
    fn is_empty(&self) -> bool {
        self.new.is_none() && self.slots.is_empty() && self.owed == 0 && !self.released && self.names.is_empty()
    }
}

/// A block under way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) id: BlockId,
    /// Its length.
    bytes: u32,
    /// The number of this write.
    put: u64,
    /// What is stable when it is complete.
    pub(super) keys: Vec<Key>,
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

/// Changes of directories, of each chunk and of each name the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    /// By directory and byte of the chunk.
    chunks: BTreeMap<(u32, u64), Vec<Number>>,
    names: BTreeMap<(u32, Box<[u8]>), Vec<Number>>,
}

impl Pages {
    pub(super) fn add(&mut self, entry: &Entry, number: Number) {
        self.chunks.entry((entry.dir, entry.chunk)).or_default().push(number);
        self.names.entry((entry.dir, entry.name.clone())).or_default().push(number);
    }

    fn remove(&mut self, entry: &Entry, number: Number) {
        fn from<K: Ord>(lists: &mut BTreeMap<K, Vec<Number>>, key: &K, number: Number) {
            if let Some(list) = lists.get_mut(key) {
                list.retain(|other| *other != number);
                if list.is_empty() {
                    lists.remove(key);
                }
            }
        }
        from(&mut self.chunks, &(entry.dir, entry.chunk), number);
        from(&mut self.names, &(entry.dir, entry.name.clone()), number);
    }

    /// Changes of the chunk at a byte of a directory.
    pub(super) fn of_chunk(&self, dir: u32, chunk: u64) -> &[Number] {
        self.chunks.get(&(dir, chunk)).map_or(&[], Vec::as_slice)
    }

    /// Changes of the chunks at these bytes, chunk by chunk.
    pub(super) fn of_chunks(&self, dir: u32, bytes: Range<u64>) -> impl Iterator<Item = &[Number]> {
        self.chunks.range((dir, bytes.start)..(dir, bytes.end)).map(|(_, list)| list.as_slice())
    }

    /// Changes of a name in a directory.
    pub(super) fn of_name(&self, dir: u32, name: &[u8]) -> &[Number] {
        self.names.get(&(dir, Box::from(name))).map_or(&[], Vec::as_slice)
    }

    /// Whether a directory has changes.
    pub(super) fn concern(&self, dir: u32) -> bool {
        self.chunks.range((dir, 0)..=(dir, u64::MAX)).next().is_some()
    }

    /// All changes of a directory, the oldest first.
    pub(super) fn of_directory(&self, dir: u32) -> Vec<Number> {
        let mut all: Vec<Number> =
            self.chunks.range((dir, 0)..=(dir, u64::MAX)).flat_map(|(_, list)| list).copied().collect();
        all.sort_unstable();
        all
    }

    /// All changes.
    pub(super) fn all(&self) -> impl Iterator<Item = Number> {
        self.chunks.values().flatten().copied()
    }
}

/// The mode's memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deps {
    /// Whether the file system is in use, and dependencies are kept.
    pub(super) on: bool,
    /// So many records there may be ([`most_records`](super::most_records)).
    pub(super) most: usize,
    pub(super) records: FxHashMap<Number, Record>,
    next: Number,
    /// Blocks that have set out.
    puts: u64,
    waiting: FxHashMap<Key, Vec<(u64, Number)>>,
    pub(super) inodes: BTreeMap<u32, InodeDep>,
    /// Pointers of indirect blocks, by place (`indirdep`).
    pub(super) indirects: BTreeMap<BlockId, BTreeMap<usize, Number>>,
    /// Changes of directories (`pagedep`).
    pub(super) pages: Pages,
    pub(super) flights: BTreeMap<IoId, Vec<Flight>>,
    /// Blocks of directories of which the disk has so many bytes, with sound chunks up to there.
    pub(super) filled: BTreeMap<BlockId, u32>,
    /// Requests that a program waits for, whose blocks are taken as stable by what follows in it, with the program that has last
    /// waited for them. Whoever writes meanwhile waits for them too.
    pub(super) assumed: Vec<(u64, IoId)>,
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
    pub(super) fn in_use(most: usize) -> Deps {
        Deps { on: true, most, ..Deps::default() }
    }

    /// A new record. It waits for the keys with writes that set out from now on.
    pub(super) fn add(&mut self, kind: Kind, keys: &[Key]) -> Number {
        self.next += 1;
        let number = self.next;
        self.records.insert(number, Record { kind, state: State::Held, waits: Vec::new() });
        self.wait(number, keys);
        number
    }

    /// A record waits for more.
    pub(super) fn wait(&mut self, number: Number, keys: &[Key]) {
        for key in keys {
            if let Key::Record(of) = key
                && (*of == number || !self.records.contains_key(of))
            {
                continue;
            }
            let first = self.puts + 1;
            if let Some(record) = self.records.get_mut(&number) {
                record.waits.push((*key, first));
                self.waiting.entry(*key).or_default().push((first, number));
            }
        }
    }

    /// A record waits for nothing any more.
    pub(super) fn wait_no_more(&mut self, number: Number) {
        let waits = self.records.get_mut(&number).map(|record| std::mem::take(&mut record.waits)).unwrap_or_default();
        for (key, _) in waits {
            if let Some(waiting) = self.waiting.get_mut(&key) {
                waiting.retain(|(_, other)| *other != number);
                if waiting.is_empty() {
                    self.waiting.remove(&key);
                }
            }
        }
    }

    /// What waits for one thing waits for another one instead, from now on.
    pub(super) fn wait_for_other(&mut self, from: Key, to: Key) {
        let Some(waiting) = self.waiting.remove(&from) else { return };
        let first = self.puts + 1;
        for (_, number) in waiting {
            let waits = self.records.get_mut(&number).into_iter().flat_map(|record| &mut record.waits);
            for wait in waits.filter(|(key, _)| *key == from) {
                *wait = (to, first);
                self.waiting.entry(to).or_default().push((first, number));
            }
        }
    }

    /// What waits for one thing waits for others too.
    pub(super) fn wait_besides(&mut self, key: Key, others: &[Key]) {
        let waiting: Vec<Number> = self.waiting.get(&key).into_iter().flatten().map(|(_, number)| *number).collect();
        waiting.into_iter().for_each(|number| self.wait(number, others));
    }

    pub(super) fn state(&self, number: Number) -> Option<State> {
        self.records.get(&number).map(|record| record.state)
    }

    pub(super) fn is_held(&self, number: Number) -> bool {
        self.state(number) == Some(State::Held)
    }

    /// Whether a record waits for nothing.
    pub(super) fn is_ready(&self, number: Number) -> bool {
        self.records.get(&number).is_some_and(|record| record.waits.is_empty())
    }

    pub(super) fn is_awaited(&self, key: Key) -> bool {
        self.waiting.contains_key(&key)
    }

    pub(super) fn set_written(&mut self, number: Number) {
        if let Some(record) = self.records.get_mut(&number) {
            record.state = State::Written;
        }
    }

    pub(super) fn entry(&self, number: Number) -> Option<&Entry> {
        match &self.records.get(&number)?.kind {
            Kind::Entry(entry) => Some(entry),
            _ => None,
        }
    }

    pub(super) fn placed(&self, number: Number) -> Option<&Placed> {
        match &self.records.get(&number)?.kind {
            Kind::Direct { placed, .. } | Kind::Indirect { placed, .. } => Some(placed),
            _ => None,
        }
    }

    pub(super) fn placed_mut(&mut self, number: Number) -> Option<&mut Placed> {
        match &mut self.records.get_mut(&number)?.kind {
            Kind::Direct { placed, .. } | Kind::Indirect { placed, .. } => Some(placed),
            _ => None,
        }
    }

    pub(super) fn inode(&mut self, ino: u32) -> &mut InodeDep {
        self.inodes.entry(ino).or_default()
    }

    /// Forgets what is known of an inode if that is nothing.
    pub(super) fn tidy(&mut self, ino: u32) {
        if self.inodes.get(&ino).is_some_and(InodeDep::is_empty) {
            self.inodes.remove(&ino);
        }
    }

    /// Whether an inode has never been on the disk.
    pub(super) fn is_unborn(&self, ino: u32) -> bool {
        self.inodes.get(&ino).and_then(|dep| dep.new).is_some_and(|new| self.is_held(new))
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

    /// Whether a record is, or waits for, a change of a name that `wanted` says, by way of any that is not `here` (itself included).
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

    /// Visits a record and what it waits for, as long as `visit` says so. It is told whether the way there has left the changes that are `here`;
    /// a record may be visited once with either.
    fn walk<'a>(
        &'a self,
        number: Number,
        here: &dyn Fn(&Entry) -> bool,
        visit: &mut dyn FnMut(Number, &'a Record, bool) -> bool,
    ) {
        let mut known = FxHashSet::default();
        let mut todo = vec![(number, false)];
        while let Some((number, left)) = todo.pop() {
            let Some(record) = self.records.get(&number) else { continue };
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
    pub(super) fn set_out(&mut self, io: IoId, (id, bytes): (BlockId, u32), keys: Vec<Key>, undone: bool) {
        self.puts += 1;
        if undone || !keys.is_empty() {
            self.flights.entry(io).or_default().push(Flight { id, bytes, put: self.puts, keys, undone });
        }
    }

    /// What some record waits for is stable, with the write of that number.
    fn satisfy(&mut self, key: Key, put: u64, fired: &mut Vec<Number>) {
        let Some(mut waiting) = self.waiting.remove(&key) else { return };
        waiting.retain(|(first, number)| {
            if *first > put {
                return true;
            }
            if let Some(record) = self.records.get_mut(number) {
                if let Some(at) = record.waits.iter().position(|wait| *wait == (key, *first)) {
                    record.waits.swap_remove(at);
                }
                if record.waits.is_empty() && matches!(record.kind, Kind::Free { .. }) {
                    fired.push(*number);
                }
            }
            false
        });
        if !waiting.is_empty() {
            self.waiting.insert(key, waiting);
        }
    }

    /// A record is taken from its place in its block's list.
    fn detach(&mut self, number: Number, kind: &Kind) {
        match kind {
            Kind::NewInode(ino) => {
                let dep = self.inode(*ino);
                dep.new = dep.new.filter(|new| *new != number);
                self.tidy(*ino);
            }
            Kind::Direct { ino, slot, .. } => {
                let dep = self.inode(*ino);
                if dep.slots.get(slot) == Some(&number) {
                    dep.slots.remove(slot);
                }
                self.tidy(*ino);
            }
            Kind::Indirect { holder, index, .. } => {
                if let Some(pointers) = self.indirects.get_mut(holder) {
                    if pointers.get(index) == Some(&number) {
                        pointers.remove(index);
                    }
                    if pointers.is_empty() {
                        self.indirects.remove(holder);
                    }
                }
            }
            Kind::Entry(entry) => {
                self.pages.remove(entry, number);
                if let Change::Add { to } | Change::Replace { to, .. } = entry.change {
                    self.inode(to).names.retain(|other| *other != number);
                    self.tidy(to);
                }
            }
            Kind::Free { .. } => {}
        }
    }

    /// A record is no more: what it was about has become stable, or will never be on the disk. What waits for it waits no longer.
    pub(super) fn remove(&mut self, number: Number) -> Option<(Record, Vec<Number>)> {
        self.wait_no_more(number);
        let record = self.records.remove(&number)?;
        self.detach(number, &record.kind);
        let mut fired = Vec::new();
        self.satisfy(Key::Record(number), u64::MAX, &mut fired);
        Some((record, fired))
    }
}

impl Ffs {
    /// Blocks of a request are on the disk. `differs` is told of each block that was written with something undone.
    pub(super) fn landed(&mut self, io: IoId, differs: &mut dyn FnMut(&Ffs, BlockId)) {
        let Some(flights) = self.soft.flights.remove(&io) else { return };
        for flight in flights {
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
            let dep = self.soft.inode(*ino);
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
