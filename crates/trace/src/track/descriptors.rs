//! Descriptor tables and open file descriptions, as the kernel keeps them.
//!
//! A table is shared by threads and by `CLONE_FILES`, copied by fork; a description is what open makes and dup and fork
//! share: the offset lives there.

use super::call::Who;
use super::mounts::Mount;
use super::names::{File, Names};
use super::sequence::Interned;
use crate::OfdId;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};

/// How many descriptions that no table holds any more are remembered: one that was sent over a socket and closed
/// arrives later.
const UNHELD_MAX: usize = 4096;

/// A live descriptor table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Table(u32);

/// A live open file description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ofd(u32);

/// One descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub ofd: Ofd,
    pub cloexec: bool,
}

/// What is known of an open file description.
#[derive(Debug)]
pub(super) struct Description {
    pub id: OfdId,
    /// The file; `None` for foreign objects and those never identified.
    pub file: Option<File>,
    /// Who it is, from a tracer that knows; set by [`Descriptors::identify`].
    pub who: Option<Who>,
    /// Not a file of a file system we model.
    pub foreign: bool,
    /// The file offset, if known.
    pub offset: Option<u64>,
    /// `O_APPEND`, if known.
    pub append: Option<bool>,
    /// The path as the tracer last printed it, in its escapes; empty if it never did.
    pub raw: Vec<u8>,
    /// The path, unescaped.
    pub path: Interned,
    /// Of a directory: through which mount it is seen.
    pub mount: Mount,
    /// [`Names::moves`] when the path was last known to be right.
    pub moves: u64,
    refs: u32,
    /// Its last descriptor was closed, as far as was seen: it may be on its way over a socket.
    left: bool,
}

impl Description {
    /// Takes the path that the tracer printed, as it is after so many moves.
    pub fn show(&mut self, raw: &[u8], path: &[u8], moves: u64) {
        self.raw.clear();
        self.raw.extend_from_slice(raw);
        self.path.set(path);
        self.moves = moves;
    }
}

#[derive(Debug, Default)]
struct TableState {
    slots: FxHashMap<i32, Slot>,
    users: u32,
    /// Of a copy whose moment is not known exactly: what the original came to have while it was made. Nothing here
    /// keeps a description open.
    rivals: Vec<Rival>,
}

/// A descriptor that a copied table may have instead of the one that it was given.
#[derive(Clone, Copy, Debug)]
struct Rival {
    fd: i32,
    slot: Slot,
    id: OfdId,
}

/// All tables and descriptions.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    tables: Vec<TableState>,
    free_tables: Vec<Table>,
    ofds: Vec<Description>,
    free_ofds: Vec<Ofd>,
    /// The descriptions of which it is known who they are, by [`Who::description`].
    known: FxHashMap<u64, Ofd>,
    /// Of these, the ones that no table held at some time, the earliest first.
    unheld: VecDeque<(Ofd, OfdId)>,
    /// How often a description that no table held any more arrived in one.
    returned: BTreeMap<OfdId, u64>,
    next_id: u64,
}

impl Descriptors {
    /// A new, empty table with one user.
    pub fn new_table(&mut self) -> Table {
        let state = TableState { users: 1, ..TableState::default() };
        match self.free_tables.pop() {
            Some(table) => {
                self.tables[table.0 as usize] = state;
                table
            }
            None => {
                self.tables.push(state);
                Table(index(self.tables.len() - 1))
            }
        }
    }

    /// Another user of the same table.
    pub fn share(&mut self, table: Table) -> Table {
        self.tables[table.0 as usize].users += 1;
        table
    }

    /// A copy of a table, as fork makes it: the same descriptions, one more reference to each.
    pub fn copy(&mut self, table: Table) -> Table {
        let slots = self.tables[table.0 as usize].slots.clone();
        for slot in slots.values() {
            self.ofds[slot.ofd.0 as usize].refs += 1;
        }
        let rivals = self.tables[table.0 as usize].rivals.clone();
        let copy = self.new_table();
        self.tables[copy.0 as usize] = TableState { slots, rivals, users: 1 };
        copy
    }

    /// `copy` was made of `original` at some moment between then and now: what changed in between may be in it too.
    pub fn copied_until_now(&mut self, copy: Table, original: Table) {
        let (then, now) = (&self.tables[copy.0 as usize].slots, &self.tables[original.0 as usize].slots);
        let changed = |&(fd, slot): &(&i32, &Slot)| then.get(fd).is_none_or(|before| before.ofd != slot.ofd);
        let rivals = now.iter().filter(changed).map(|(&fd, &slot)| Rival { fd, slot, id: self.ofd(slot.ofd).id });
        self.tables[copy.0 as usize].rivals = rivals.collect();
    }

    /// The slot that a descriptor of a copied table may have instead of its own, if that description is still open.
    pub fn rival(&self, table: Table, fd: i32) -> Option<Slot> {
        let rivals = &self.tables[table.0 as usize].rivals;
        let rival = rivals.iter().find(|rival| rival.fd == fd)?;
        let state = self.ofd(rival.slot.ofd);
        (state.refs > 0 && state.id == rival.id).then_some(rival.slot)
    }

    /// The descriptor's slot is known from here on.
    fn settle(&mut self, table: Table, fd: i32) {
        self.tables[table.0 as usize].rivals.retain(|rival| rival.fd != fd);
    }

    /// Whether more than one process uses the table.
    pub fn is_shared(&self, table: Table) -> bool {
        self.tables[table.0 as usize].users > 1
    }

    /// One user less; the last one's leaving empties the table. Returns the descriptions to release, by descriptor.
    pub fn leave(&mut self, table: Table) -> Vec<Ofd> {
        let state = &mut self.tables[table.0 as usize];
        state.users = state.users.saturating_sub(1);
        if state.users > 0 {
            return Vec::new();
        }
        let slots = std::mem::take(&mut state.slots);
        state.rivals = Vec::new();
        self.free_tables.push(table);
        let mut slots: Vec<_> = slots.into_iter().collect();
        slots.sort_unstable_by_key(|&(fd, _)| fd);
        slots.into_iter().map(|(_, slot)| slot.ofd).collect()
    }

    /// Takes the close-on-exec descriptors out of a table, in descriptor order.
    pub fn take_cloexec(&mut self, table: Table) -> Vec<Ofd> {
        let TableState { slots, rivals, .. } = &mut self.tables[table.0 as usize];
        rivals.retain(|rival| !rival.slot.cloexec);
        let mut taken: Vec<_> = slots.extract_if(|_, slot| slot.cloexec).collect();
        taken.sort_unstable_by_key(|&(fd, _)| fd);
        taken.into_iter().map(|(_, slot)| slot.ofd).collect()
    }

    /// The descriptors of a table in a range, ascending.
    pub fn range(&self, table: Table, first: u32, last: u32) -> Vec<i32> {
        let slots = &self.tables[table.0 as usize].slots;
        let mut fds: Vec<_> = slots
            .keys()
            .copied()
            .filter(|&fd| u32::try_from(fd).is_ok_and(|fd| (first..=last).contains(&fd)))
            .collect();
        fds.sort_unstable();
        fds
    }

    /// The descriptor's slot.
    pub fn get(&self, table: Table, fd: i32) -> Option<Slot> {
        self.tables[table.0 as usize].slots.get(&fd).copied()
    }

    /// Sets close-on-exec.
    pub fn set_cloexec(&mut self, table: Table, fd: i32, cloexec: bool) {
        if let Some(slot) = self.tables[table.0 as usize].slots.get_mut(&fd) {
            slot.cloexec = cloexec;
        }
    }

    /// Puts a description behind a descriptor and counts the reference. Returns what was there.
    pub fn put(&mut self, table: Table, fd: i32, slot: Slot) -> Option<Ofd> {
        let state = &mut self.ofds[slot.ofd.0 as usize];
        state.refs += 1;
        if std::mem::take(&mut state.left) && !state.foreign {
            *self.returned.entry(state.id).or_default() += 1;
        }
        self.settle(table, fd);
        self.tables[table.0 as usize].slots.insert(fd, slot).map(|old| old.ofd)
    }

    /// Takes a descriptor away. The caller [releases](Self::release) the description.
    pub fn take(&mut self, table: Table, fd: i32) -> Option<Ofd> {
        self.settle(table, fd);
        self.tables[table.0 as usize].slots.remove(&fd).map(|slot| slot.ofd)
    }

    /// A new description without descriptors.
    pub fn new_ofd(&mut self, file: Option<File>, foreign: bool, names: &mut Names) -> Ofd {
        if let Some(file) = file {
            names.opened(file);
        }
        let id = OfdId(self.next_id);
        self.next_id += 1;
        let state = Description {
            id,
            file,
            who: None,
            foreign,
            offset: None,
            append: None,
            raw: Vec::new(),
            path: Interned::default(),
            mount: Mount::default(),
            moves: names.moves(),
            refs: 0,
            left: false,
        };
        match self.free_ofds.pop() {
            Some(ofd) => {
                self.ofds[ofd.0 as usize] = state;
                ofd
            }
            None => {
                self.ofds.push(state);
                Ofd(index(self.ofds.len() - 1))
            }
        }
    }

    /// What is known of a description.
    pub fn ofd(&self, ofd: Ofd) -> &Description {
        &self.ofds[ofd.0 as usize]
    }

    /// The same, to change.
    pub fn ofd_mut(&mut self, ofd: Ofd) -> &mut Description {
        &mut self.ofds[ofd.0 as usize]
    }

    /// Through which mounts the descriptions are seen.
    pub fn mounts(&self) -> impl Iterator<Item = Mount> {
        self.ofds.iter().filter(|state| state.id != GONE).map(|state| state.mount)
    }

    /// The description that the kernel knows as this.
    pub fn with(&self, who: Who) -> Option<Ofd> {
        let ofd = self.known.get(&who.description).copied()?;
        (self.ofd(ofd).who == Some(who)).then_some(ofd)
    }

    /// Takes note of who a description is. The kernel's numbers are used again: the latest holds.
    pub fn identify(&mut self, ofd: Ofd, who: Who) {
        self.ofd_mut(ofd).who = Some(who);
        self.known.insert(who.description, ofd);
    }

    /// The descriptions whose last descriptor was closed and that came into a table after it, over a socket, and how
    /// often.
    pub fn returned(&self) -> &BTreeMap<OfdId, u64> {
        &self.returned
    }

    /// Whether this is the only descriptor of the description.
    pub fn is_last(&self, ofd: Ofd) -> bool {
        self.ofd(ofd).refs <= 1
    }

    /// The descriptions that are open, with the number of references each should have.
    #[cfg(test)]
    pub fn check(&self) -> Vec<Option<File>> {
        let mut refs: FxHashMap<Ofd, u32> = FxHashMap::default();
        for table in self.tables.iter().filter(|table| table.users > 0) {
            for slot in table.slots.values() {
                *refs.entry(slot.ofd).or_insert(0) += 1;
            }
        }
        for (&ofd, &refs) in &refs {
            assert_eq!(self.ofd(ofd).refs, refs, "references of {ofd:?}");
        }
        let live = self.ofds.iter().filter(|state| state.refs > 0).count();
        assert_eq!(live, refs.len(), "descriptions that nobody refers to");
        refs.keys().map(|&ofd| self.ofd(ofd).file).collect()
    }

    /// One descriptor less; the last one frees the description.
    pub fn release(&mut self, ofd: Ofd, names: &mut Names) {
        let state = self.ofd_mut(ofd);
        state.refs = state.refs.saturating_sub(1);
        if state.refs > 0 {
            return;
        }
        state.left = true;
        let id = state.id;
        if state.who.is_none() {
            return self.free(ofd, names);
        }
        self.unheld.push_back((ofd, id));
        if self.unheld.len() > UNHELD_MAX
            && let Some((ofd, id)) = self.unheld.pop_front()
            && self.ofd(ofd).id == id
            && self.ofd(ofd).refs == 0
        {
            self.free(ofd, names);
        }
    }

    fn free(&mut self, ofd: Ofd, names: &mut Names) {
        let state = self.ofd_mut(ofd);
        state.id = GONE;
        let (file, who) = (state.file.take(), state.who.take());
        state.raw = Vec::new();
        state.path = Interned::default();
        self.free_ofds.push(ofd);
        if let Some(who) = who.filter(|who| self.known.get(&who.description) == Some(&ofd)) {
            self.known.remove(&who.description);
        }
        if let Some(file) = file {
            names.closed(file);
        }
    }
}

/// The identity of a description that is gone; never told.
const GONE: OfdId = OfdId(u64::MAX);

fn index(n: usize) -> u32 {
    u32::try_from(n).expect("fewer than 2^32 live descriptions")
}
