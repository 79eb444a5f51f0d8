//! What must be on the disk now: a record is made stable by writing what it waits for, then its own block.
//!
//! A program waits for each of these writes before it goes on, so that what follows in it can take them as done.
//! Whoever writes or takes a block meanwhile waits for them too (`assumed`).

use super::record::{Key, Kind, Number};
use super::undo::HoldsBack;
use crate::Ffs;
use crate::format::ROOT_INO;
use crate::volume::encode::Place;
use kernel::program::IoId;
use kernel::{Block, BlockId, Cx, Durability, Ino, Lbn, Pbn};
use posix::Errno;
use rustc_hash::FxHashSet;
use ufs::live::{Backing as _, Files as _};

/// So often everything is written before something must be wrong: chains of changes are no longer.
const ROUNDS: usize = 10_000;

/// The search for blocks to write instead looks at so many for each that is wanted: thousands may wait for a few maps.
const LOOKED_AT: usize = 16;

/// So often a record is tried: what it waits for is stable after the first time, and then what its block waits for.
const TRIES: usize = 64;

/// Directories above one another: more than a path can name.
const DEEP: usize = 4_096;

impl Ffs {
    /// A block that records are about, as the cache knows it; `None` if there is none any more.
    pub(super) fn block_of(&self, id: BlockId) -> Option<Block> {
        if id.ino == Ino::DEVICE {
            let pbn = Pbn(id.lbn.0.unsigned_abs());
            return match self.place(pbn) {
                Place::Inodes(_) => Some(Block::device(pbn, self.g.bsize)),
                Place::Group(group) => Some(Ffs::group_block(&self.g, group)),
                Place::Superblock | Place::Summaries(_) | Place::Unknown => None,
            };
        }
        let node = self.inodes.get(id.ino.0)?;
        if id.lbn.0 < 0 {
            let addr = self.indirect_addr(id.ino, id.lbn.0);
            return (addr != 0).then(|| self.indirect_block(id.ino, id.lbn.0, addr));
        }
        let lbn = id.lbn.0.unsigned_abs();
        node.piece(lbn, &self.sizes()).map(|piece| self.file_block(node, id.ino, lbn, piece))
    }

    /// A request that this program waits for is taken as complete.
    fn assume(&mut self, cx: &mut Cx, io: IoId) {
        if !self.soft.flights.contains_key(&io) {
            return;
        }
        let now = cx.program_number();
        self.soft.assumed.insert(io, now);
        self.soft.assumed_by = self.soft.assumed_by.filter(|program| *program == now);
        let mut differ = Vec::new();
        self.landed(io, &mut |_, id| differ.push(id));
        for id in differ {
            if let Some(block) = self.block_of(id) {
                cx.change(&block);
            }
        }
    }

    /// What another program has taken as complete, this one waits for.
    pub(super) fn wait_for_assumed(&mut self, cx: &mut Cx) {
        let now = cx.program_number();
        if self.soft.assumed_by == Some(now) {
            return;
        }
        self.soft.assumed_by = Some(now);
        for (io, program) in &mut self.soft.assumed {
            if *program != now {
                *program = now;
                cx.wait_for(*io);
            }
        }
    }

    /// A block is on the disk when this is done.
    fn force(&mut self, cx: &mut Cx, id: BlockId) {
        if let Some(io) = cx.io_of(id) {
            cx.wait_for(io);
            self.assume(cx, io);
        }
        if !cx.cache().is_dirty(id) {
            return;
        }
        cx.write(self, id, true);
        if let Some(io) = cx.io_of(id) {
            self.assume(cx, io);
        }
    }

    /// Makes a record stable, with all that it waits for.
    pub(super) fn push(&mut self, cx: &mut Cx, number: Number) {
        if !self.soft.pushing.contains(&number) {
            self.soft.pushing.push(number);
            self.push_all(cx, number);
            self.soft.pushing.pop();
        }
    }

    fn push_all(&mut self, cx: &mut Cx, number: Number) {
        for _ in 0..TRIES {
            let Some(record) = self.soft.records.get(number) else { return };
            let (kind, waits) = (record.kind.clone(), record.waits.clone());
            // Changes of a chunk that wait for one another go together: whoever asked for this one writes them.
            let pushed = |key: &Key| matches!(key, Key::Record(other) if self.soft.pushing.contains(other));
            let goes_on = !waits.iter().any(|(key, _)| pushed(key));
            for (key, _) in waits {
                match key {
                    Key::Block(id) => self.force_even_clean(cx, id),
                    Key::Inode(ino) => self.push_inode(cx, Ino(ino)),
                    Key::Record(other) => self.push(cx, other),
                }
            }
            match kind {
                Kind::NewInode(ino) => self.force_even_clean(cx, self.inode_block(Ino(ino)).id),
                Kind::Direct { ino, slot, .. } => {
                    // Pointers go in order.
                    let slots = self.soft.inodes.get(ino).map(|dep| dep.slots).unwrap_or_default();
                    let mut before = slots.iter().take_while(|(at, _)| *at < slot).map(|(_, number)| number);
                    if let Some(first) = before.find(|before| !self.soft.is_ready(*before)) {
                        self.push(cx, first);
                    }
                    self.push_inode(cx, Ino(ino));
                }
                Kind::Indirect { holder, index, .. } => {
                    let mut before = self.soft.pointers(holder).take_while(|(at, _)| *at < index);
                    let first = before.find(|(_, before)| !self.soft.is_ready(*before));
                    drop(before);
                    if let Some((_, first)) = first {
                        self.push(cx, first);
                    }
                    self.force_even_clean(cx, holder);
                }
                Kind::Entry(entry) => {
                    let lbn = Lbn((entry.chunk >> self.g.bshift) as i64);
                    self.force_even_clean(cx, BlockId { ino: Ino(entry.dir), lbn });
                }
                Kind::Free { .. } => return,
            }
            if !goes_on {
                return;
            }
        }
        let left = self.soft.awaited_by(number);
        assert!(left.is_empty(), "Soft Updates: record {number:?} cannot be made stable: {left:#?}");
    }

    /// An inode is on the disk, and not left out of its block.
    fn push_inode(&mut self, cx: &mut Cx, ino: Ino) {
        if let Some(new) = self.soft.inodes.get(ino.0).and_then(|dep| dep.new) {
            self.push(cx, new);
        }
        self.force_even_clean(cx, self.inode_block(ino).id);
    }

    /// The same where memory may not know that the disk has something else.
    pub(super) fn force_even_clean(&mut self, cx: &mut Cx, id: BlockId) {
        let under_way = cx.io_of(id).is_some_and(|io| cx.ios().get(io).is_some());
        if !under_way
            && !cx.cache().is_dirty(id)
            && let Some(block) = self.block_of(id)
        {
            cx.change(&block);
        }
        self.force(cx, id);
    }

    /// Pointers and inode of a file, and what these wait for.
    fn push_file(&mut self, cx: &mut Cx, ino: Ino) {
        let Some(dep) = self.soft.inodes.get(ino.0) else { return };
        let mut numbers: Vec<Number> = dep.indirects.values().flat_map(|pointers| pointers.values().copied()).collect();
        numbers.extend(dep.new);
        numbers.extend(dep.slots.numbers());
        for number in numbers {
            self.push(cx, number);
        }
    }

    /// The way from the root to an inode is on the disk.
    fn push_names(&mut self, cx: &mut Cx, mut ino: Ino) -> Result<(), Errno> {
        if self.directory(ino).is_err() && self.soft.inodes.get(ino.0).is_none_or(|dep| dep.names.is_empty()) {
            // Its name is in a block on the disk, of a directory that may have no name there itself. Which, nobody
            // knows.
            return self.push_directories(cx);
        }
        for _ in 0..DEEP {
            let names = self.soft.inodes.get(ino.0).map(|dep| dep.names.clone()).unwrap_or_default();
            let mut up = self.directory(ino).ok().and_then(|directory| directory.parent()).map(Ino);
            for number in names {
                let dir = self.soft.entry(number).map(|entry| Ino(entry.dir));
                self.push(cx, number);
                if let Some(dir) = dir {
                    self.push_file(cx, dir);
                    up = up.or(Some(dir));
                    if up != Some(dir) {
                        self.push_names(cx, dir)?;
                    }
                }
            }
            match up {
                Some(dir) if ino != ROOT_INO && self.inodes.get(dir.0).is_some() => ino = dir,
                _ => return Ok(()),
            }
            self.push_file(cx, ino);
        }
        Ok(())
    }

    /// The names of all directories are on the disk.
    fn push_directories(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        let named = |(ino, dep): (u32, &super::inodes::InodeDep)| {
            let directory = !dep.names.is_empty() && self.directory(Ino(ino)).is_ok();
            directory.then_some(Ino(ino))
        };
        let directories: Vec<Ino> = self.soft.inodes.in_order().into_iter().filter_map(named).collect();
        for dir in directories {
            self.push_file(cx, dir);
            self.push_names(cx, dir)?;
        }
        Ok(())
    }

    pub(super) fn soft_fsync(&mut self, cx: &mut Cx, ino: Ino, how: Durability) -> Result<(), Errno> {
        if how == Durability::Started {
            return self.write_file(cx, ino, how);
        }
        cx.flush_file(self, ino, how);
        self.assume_waited(cx, Some(ino));
        self.push_file(cx, ino);
        for number in self.soft.of_directory(ino.0) {
            self.push(cx, number);
        }
        if self.node(ino)?.own.pending {
            self.update(cx, ino);
        }
        self.force(cx, self.inode_block(ino).id);
        self.push_names(cx, ino)?;
        self.wait_for_assumed(cx);
        Ok(())
    }

    /// All requests of a file, or all, which the program waits for, are taken as complete.
    fn assume_waited(&mut self, cx: &mut Cx, of: Option<Ino>) {
        let waited = self
            .soft
            .flights
            .iter()
            .filter(|(_, flights)| of.is_none_or(|ino| flights.iter().any(|flight| flight.id.ino == ino)));
        for io in waited.map(|(io, _)| *io).collect::<Vec<_>>() {
            cx.wait_for(io);
            self.assume(cx, io);
        }
    }

    /// Everything is on the disk, and nothing left to do, when this is done.
    pub(super) fn drain(&mut self, cx: &mut Cx) {
        self.drain_to(cx, 0);
    }

    /// So few records are left when this is done; for 0 as [`drain`](Ffs::drain).
    fn drain_to(&mut self, cx: &mut Cx, most: usize) {
        self.wait_for_assumed(cx);
        for _ in 0..ROUNDS {
            if most > 0 && self.soft.records.len() <= most {
                return;
            }
            self.write_what_is_safe(cx);
            self.assume_waited(cx, None);
            while self.do_work(cx, usize::MAX) {}
            if cx.cache().dirty_bytes() == 0 {
                debug_assert!(self.soft.records.is_empty(), "left: {:?}", self.soft.records);
                return;
            }
        }
        assert!(
            self.soft.records.is_empty(),
            "Soft Updates: {} records cannot be made stable",
            self.soft.records.len()
        );
    }

    /// Writes every changed block that can go as it is in memory, and waits for them: one of which something would be
    /// left out goes a second time, so it is written only where no other can go.
    fn write_what_is_safe(&mut self, cx: &mut Cx) {
        let dirty: Vec<BlockId> = cx.cache().all_dirty_blocks().collect();
        let safe: Vec<BlockId> = dirty.iter().copied().filter(|id| self.goes_whole(*id)).collect();
        if safe.is_empty() || safe.len() == dirty.len() {
            return cx.flush_all(self, Durability::All);
        }
        cx.write_in_place(self, &safe);
        cx.wait_for_writes();
    }

    /// The kernel wants some blocks clean. Those of which something would be left out stay dirty, and others are
    /// written instead, as many as are wanted, as BSD does (`buf_countdeps`): data that has been dirty for longest,
    /// which they mostly wait for, then whatever else they wait for.
    pub(super) fn soft_write_back(&mut self, cx: &mut Cx, blocks: &[BlockId]) {
        let dirty = |id: &BlockId| cx.cache().is_dirty(*id);
        let (mut go, rest): (Vec<BlockId>, Vec<BlockId>) =
            blocks.iter().copied().filter(dirty).partition(|id| self.goes_whole(*id));
        let wanted = go.len() + rest.len();
        let mut seen: FxHashSet<BlockId> = FxHashSet::default();
        if !rest.is_empty() {
            seen.extend(go.iter().chain(&rest));
            let data = cx.cache().all_dirty_blocks().take_while(|id| id.ino != Ino::DEVICE);
            let data = data.filter(|id| id.lbn.0 >= 0 && !self.is_of_directory(*id) && seen.insert(*id));
            go.extend(data.take(rest.len()));
        }
        let mut todo = rest;
        // Maps, which everything waits for, would be written again and again: only when nothing else is left to be.
        let mut maps = Vec::new();
        let mut looked = 0;
        let goes_on = |found: usize, looked: usize| found < wanted && (looked < LOOKED_AT * wanted || found == 0);
        while goes_on(go.len(), looked)
            && let Some(id) = todo.pop()
        {
            self.blocks_before(id, &mut |first| {
                looked += 1;
                if cx.cache().is_dirty(first) && seen.insert(first) {
                    let list = match self.goes_whole(first) {
                        true if first.ino == Ino::DEVICE => &mut maps,
                        true => &mut go,
                        false => &mut todo,
                    };
                    list.push(first);
                }
                goes_on(go.len(), looked)
            });
        }
        if go.is_empty() {
            go = maps;
        }
        // Where all of that is on its way, they are written as they are: whoever asks would ask again and again.
        cx.write_in_place(self, if go.is_empty() { blocks } else { &go });
    }

    /// What holds a block back waits for these blocks; as long as `found` says yes.
    fn blocks_before(&self, id: BlockId, found: &mut dyn FnMut(BlockId) -> bool) {
        // Changes of one block mostly wait for one map.
        let mut last = None;
        self.hold_back(id, &mut |what| {
            let record = match what {
                HoldsBack::Indirect(indirect) => return found(indirect),
                HoldsBack::Change(record) => record,
            };
            record.waits.iter().all(|(key, _)| {
                let block = match *key {
                    Key::Block(id) => Some(id),
                    Key::Inode(ino) => Some(self.inode_block(Ino(ino)).id),
                    Key::Record(number) => self.soft.records.get(number).and_then(|record| self.home_of(&record.kind)),
                };
                let Some(block) = block.filter(|block| last != Some(*block)) else { return true };
                if block.ino == Ino::DEVICE {
                    last = Some(block);
                }
                found(block)
            })
        });
    }

    /// The block that a change is in.
    fn home_of(&self, kind: &Kind) -> Option<BlockId> {
        match kind {
            Kind::NewInode(ino) | Kind::Direct { ino, .. } => Some(self.inode_block(Ino(*ino)).id),
            Kind::Indirect { holder, .. } => Some(*holder),
            Kind::Entry(entry) => {
                Some(BlockId { ino: Ino(entry.dir), lbn: Lbn((entry.chunk >> self.g.bshift) as i64) })
            }
            Kind::Free { .. } => None,
        }
    }

    /// Too many dependencies, or little room while some is about to be free: whoever goes on making changes waits.
    pub(super) fn slow_down(&mut self, cx: &mut Cx) {
        if self.soft.records.len() > self.soft.max_records {
            self.drain_to(cx, self.soft.max_records / 2);
        }
        let total = &self.space.total;
        let few = total.nbfree < 32
            || total.nifree < 8
            || self.tuning.available(self.space.free_frags()) < 32 * i64::from(self.g.frag);
        if few && self.owes_space() {
            self.drain(cx);
        }
    }

    /// Whether space or numbers are about to be free.
    fn owes_space(&self) -> bool {
        let gives = |kind: &Kind| match kind {
            Kind::Free { .. } => true,
            Kind::Direct { placed, .. } | Kind::Indirect { placed, .. } => !placed.freed.is_empty(),
            Kind::NewInode(_) | Kind::Entry(_) => false,
        };
        !self.soft.work.is_empty()
            || self.soft.inodes.values().any(|dep| dep.released)
            || self.soft.records.values().any(|record| gives(&record.kind))
    }
}
