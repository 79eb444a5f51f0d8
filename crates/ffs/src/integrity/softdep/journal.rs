//! Journaled Soft Updates (`softdep+j`): records of what may be lost, so that recovery need not look at everything.
//!
//! Soft Updates themselves are the same. Before a block of metadata sets out, the records of all changes until then are
//! in the log ([`Ffs::log_first`]): a batch is written when there are new ones, and whoever writes waits for it. The
//! log's space is free again when all that its records name is on the disk ([`Ffs::checkpoint_records`]). The records
//! are described in [`crate::log::notes`], and what is done by them after a crash in `log::recover`. McKusick and
//! Roberson, BSDCan 2010.

use super::record::Key;
use crate::Ffs;
use crate::format::{DIRBLKSIZ, FragAddr, ROOT_INO};
use crate::integrity::LogCounts;
use crate::log::format::SECTOR;
use crate::log::notes::{Note, Reference, Space, batch_sectors, encode_batch};
use crate::log::{LogState, LogWriter};
use crate::planted::Bug;
use kernel::program::IoId;
use kernel::{BlockId, Cx, Ino};
use std::collections::{BTreeMap, BTreeSet};
use ufs::live::{Files as _, Freed, Piece};

/// Of the log, what is taken before room is made in it: one part in so many.
const CHECKPOINT_SHARE: u64 = 2;
/// Directories above one another: more than a path can name.
const DEEP: usize = 4_096;

/// What is in the log, and what goes there next.
#[derive(Clone, Debug)]
pub(super) struct Records {
    writer: LogWriter,
    /// Records that are in no batch yet.
    notes: Vec<Note>,
    /// Bytes of these.
    bytes: usize,
    /// Writes of the log that may not be complete.
    under_way: Vec<IoId>,
    /// Links that inodes have in memory, and that no record has yet; negative where it is the other way round.
    transit: BTreeMap<u32, i32>,
    /// Names of directories that the operation under way has touched.
    names: BTreeMap<u32, u32>,
    /// The directory that it has made, and its parent.
    made: Option<(u32, u32)>,
    /// Inodes in use that have no name.
    orphans: BTreeSet<u32>,
    /// Room is being made.
    busy: bool,
    pub(super) counts: LogCounts,
}

impl Records {
    fn new(place: LogState, orphans: BTreeSet<u32>) -> Records {
        Records {
            writer: LogWriter::new(place),
            notes: Vec::new(),
            bytes: 0,
            under_way: Vec::new(),
            transit: BTreeMap::new(),
            names: BTreeMap::new(),
            made: None,
            orphans,
            busy: false,
            counts: LogCounts::default(),
        }
    }

    /// Sectors that are taken, or will be when what is waiting is written.
    fn used(&self) -> u64 {
        self.writer.used() + (self.bytes as u64).div_ceil(SECTOR) + 1
    }
}

impl Ffs {
    fn note(&mut self, note: Note) {
        let left_out = matches!(
            (self.planted, &note),
            (Some(Bug::SujNoAddRef), Note::AddRef(_))
                | (Some(Bug::SujNoRemRef), Note::RemRef(_))
                | (Some(Bug::SujNoNumber), Note::Number { .. })
                | (Some(Bug::SujNoNewBlock), Note::NewBlock(_))
                | (Some(Bug::SujNoFreeBlock), Note::FreeBlock(_))
                | (Some(Bug::SujNoFreeFrag), Note::FreeFrag(_))
        );
        if let Some(log) = self.soft.log.as_mut().filter(|_| !left_out) {
            log.bytes += note.len_bytes();
            log.notes.push(note);
        }
    }

    fn has_records(&self) -> bool {
        self.soft.log.is_some()
    }

    /// The number of directories in the group of an inode.
    fn directories_beside(&self, ino: u32) -> u32 {
        let group = self.inode_group(Ino(ino)).0 as usize;
        self.space.cs.get(group).map_or(0, |cs| u32::try_from(cs.ndir).unwrap_or(0))
    }

    fn is_directory(&self, ino: u32) -> bool {
        self.inodes.get(ino).is_some_and(|node| node.d.is_dir())
    }

    // ---- links and names

    /// An entry that leads to an inode is added to a directory, or removed.
    pub(super) fn note_entry(&mut self, dir: Ino, at: u64, name: &[u8], ino: Ino, added: bool) {
        if !self.has_records() {
            return;
        }
        let is_dir = self.is_directory(ino.0);
        let nlink = self.inodes.get(ino.0).map_or(0, |node| i32::from(node.d.nlink));
        let ndir = self.directories_beside(ino.0);
        let Some(log) = &mut self.soft.log else { return };
        let change = if added { 1 } else { -1 };
        let transit = log.transit.entry(ino.0).or_default();
        *transit -= change;
        // Without its own `.`.
        let links = nlink - i32::from(is_dir && nlink > 0) - *transit;
        let mut names = u32::from(links > 0);
        if is_dir {
            let of_dir = log.names.entry(ino.0).or_insert(1);
            if name != b".." {
                *of_dir = of_dir.saturating_add_signed(change);
            }
            names = *of_dir;
        }
        let chunk = at / DIRBLKSIZ as u64 * DIRBLKSIZ as u64;
        let of = Reference { ino: ino.0, dir: dir.0, chunk, name: name.into(), is_dir, links, names, ndir };
        self.note(if added { Note::AddRef(of) } else { Note::RemRef(of) });
    }

    /// An inode has links more in memory; what they are for comes next, or was before.
    pub(super) fn note_links(&mut self, ino: Ino, links: i32) {
        if let Some(log) = &mut self.soft.log {
            *log.transit.entry(ino.0).or_default() += links;
        }
    }

    pub(super) fn note_links_dropped(&mut self, ino: Ino, links: i16) {
        if !self.has_records() {
            return;
        }
        let gone = self.is_directory(ino.0) && links == 2;
        // A directory that is removed loses its own `.`, too.
        self.note_links(ino, if gone { -1 } else { -i32::from(links) });
        if let Some(parent) = self.directory(ino).ok().and_then(|directory| directory.parent()).filter(|_| gone) {
            self.note_entry(ino, 0, b"..", Ino(parent), false);
        }
        let unnamed = self.inodes.get(ino.0).is_some_and(|node| node.d.nlink <= 0);
        if let Some(log) = self.soft.log.as_mut().filter(|_| unnamed) {
            log.orphans.insert(ino.0);
        }
    }

    pub(super) fn note_directory_made(&mut self, dir: Ino) {
        if let Some(parent) = self.directory(dir).ok().and_then(|directory| directory.parent())
            && let Some(log) = &mut self.soft.log
        {
            log.made = Some((dir.0, parent));
            self.note_entry(dir, 0, b"..", Ino(parent), true);
        }
    }

    /// Between two operations all links have their records.
    pub(super) fn note_end(&mut self) {
        if let Some(log) = &mut self.soft.log {
            log.made = None;
            log.names.clear();
            log.transit.retain(|_, links| *links != 0);
            debug_assert!(log.transit.is_empty(), "links without records: {:?}", log.transit);
        }
    }

    // ---- numbers

    pub(super) fn note_number(&mut self, ino: Ino, is_dir: bool, used: bool) {
        if !self.has_records() {
            return;
        }
        let ndir = self.directories_beside(ino.0);
        self.note(Note::Number { ino: ino.0, is_dir, used, ndir });
    }

    pub(super) fn note_inode_taken(&mut self, ino: Ino) {
        let is_dir = self.is_directory(ino.0);
        self.note_links(ino, 1);
        if let Some(log) = &mut self.soft.log {
            log.names.insert(ino.0, 0);
        }
        self.note_number(ino, is_dir, true);
    }

    /// An inode holds nothing any more.
    pub(super) fn note_inode_freed(&mut self, ino: Ino) {
        let Some(log) = &mut self.soft.log else { return };
        log.transit.remove(&ino.0);
        log.names.remove(&ino.0);
        log.orphans.remove(&ino.0);
        if let Some((dir, parent)) = log.made.filter(|(dir, _)| *dir == ino.0) {
            // It could not be given a name.
            log.made = None;
            self.note_entry(Ino(dir), 0, b"..", Ino(parent), false);
        }
    }

    // ---- space

    pub(super) fn note_taken(&mut self, addr: FragAddr, frags: u32) {
        if !self.has_records() {
            return;
        }
        // Whose it is comes next.
        self.note(Note::NewBlock(Space { ino: 0, lbn: 0, addr, frags }));
    }

    pub(super) fn note_placed(&mut self, ino: Ino, lbn: i64, was: Piece, now: Piece) {
        let Some(log) = &mut self.soft.log else { return };
        let grown = was.addr == now.addr;
        let had = if grown { was.bytes >> self.g.fshift } else { 0 };
        let addr = FragAddr(now.addr.unsigned_abs()).plus(had.into());
        let frags = (now.bytes >> self.g.fshift).saturating_sub(had);
        let space = Space { ino: ino.0, lbn, addr, frags };
        match log.notes.last_mut() {
            Some(Note::NewBlock(last)) if (last.ino, last.addr, last.frags) == (0, addr, frags) => *last = space,
            _ => self.note(Note::NewBlock(space)),
        }
        if !grown && was.addr != 0 {
            let (addr, frags) = (FragAddr(was.addr.unsigned_abs()), was.bytes >> self.g.fshift);
            self.note(Note::FreeFrag(Space { ino: ino.0, lbn, addr, frags }));
        }
    }

    /// A file has been cut by pieces; neighbours share a record.
    pub(super) fn note_cut(&mut self, ino: Ino, pieces: &[Freed]) {
        if !self.has_records() {
            return;
        }
        let mut rest = pieces.iter().peekable();
        while let Some(first) = rest.next() {
            let addr = FragAddr(first.addr.unsigned_abs());
            let mut frags = first.bytes >> self.g.fshift;
            while let Some(next) = rest.next_if(|next| next.addr.unsigned_abs() == addr.0 + u64::from(frags)) {
                frags += next.bytes >> self.g.fshift;
            }
            self.note(Note::FreeBlock(Space { ino: ino.0, lbn: first.lbn, addr, frags }));
        }
    }

    // ---- order

    /// What the old name of something renamed waits for besides the new one: names of the directories that the new one
    /// is in.
    pub(super) fn names_above(&self, mut dir: Ino) -> Vec<Key> {
        let mut keys = Vec::new();
        if self.planted == Some(Bug::SujOrphanedMove) {
            return keys;
        }
        for _ in 0..DEEP {
            let names = self.soft.inodes.get(dir.0).into_iter().flat_map(|dep| &dep.names);
            keys.extend(names.map(|number| Key::Record(*number)));
            match self.directory(dir).ok().and_then(|directory| directory.parent()) {
                Some(parent) if dir != ROOT_INO && parent != dir.0 => dir = Ino(parent),
                _ => break,
            }
        }
        keys
    }

    /// A directory is about to get another name, perhaps. If a removal waits for the one that it has, that is on the
    /// disk first.
    pub(super) fn settle_names(&mut self, cx: &mut Cx, ino: Ino) {
        if !self.has_records() || !self.is_directory(ino.0) {
            return;
        }
        let names = self.soft.inodes.get(ino.0).map(|dep| dep.names.clone()).unwrap_or_default();
        for number in names {
            if self.soft.is_awaited(Key::Record(number)) {
                self.push(cx, number);
            }
        }
    }

    // ---- the log

    pub(super) fn records_mounted(&mut self, cx: &mut Cx) {
        if !self.options.integrity.is_softdep_journaled() {
            return;
        }
        let place = self.log.expect("what is mounted with a log has one");
        let orphans = self.without_a_name().into_iter().map(|ino| ino.0).collect();
        self.soft.log = Some(Box::new(Records::new(place, orphans)));
        // From now on there is always a batch at the tail: what is unclean without one is not ours.
        self.write_batch(cx);
    }

    /// A block sets out: the records of what is in it are in the log.
    pub(super) fn log_first(&mut self, cx: &mut Cx, id: BlockId) {
        let data = id.ino != Ino::DEVICE && id.lbn.0 >= 0 && !self.is_directory(id.ino.0);
        let Some(log) = self.soft.log.as_mut().filter(|_| !data) else { return };
        if !log.notes.is_empty() {
            self.write_batch(cx);
        }
        self.wait_for_records(cx);
    }

    fn wait_for_records(&mut self, cx: &mut Cx) {
        let Some(log) = &mut self.soft.log else { return };
        log.under_way.retain(|io| cx.ios().get(*io).is_some());
        if self.planted != Some(Bug::SujRecordLate) {
            log.under_way.iter().for_each(|io| cx.wait_for(*io));
        }
    }

    /// Starts writing all records that are in no batch.
    fn write_batch(&mut self, cx: &mut Cx) {
        let endian = self.g.endian();
        let Some(log) = &mut self.soft.log else { return };
        let notes = std::mem::take(&mut log.notes);
        log.bytes = 0;
        let (next, sectors) = (log.writer.left(), batch_sectors(&notes));
        let bytes = cx.wants_metadata().then(|| encode_batch(&notes, next.id, next.seq, endian));
        log.under_way.extend(log.writer.append(cx, sectors, bytes.as_deref()));
        log.counts.commits += 1;
        log.counts.sectors += sectors;
    }

    /// Whether the log is to be given room.
    pub(super) fn wants_room_for_records(&self) -> bool {
        self.soft.log.as_ref().is_some_and(|log| !log.busy && log.used() >= log.writer.sectors() / CHECKPOINT_SHARE)
    }

    /// Everything is on the disk; then the tail of the log, if there is one, goes to its head. Between operations.
    pub(super) fn make_room_for_records(&mut self, cx: &mut Cx) {
        let Some(log) = &mut self.soft.log else { return self.drain(cx) };
        log.busy = true;
        if self.planted == Some(Bug::SujTailEarly) {
            self.checkpoint_records(cx);
        }
        self.drain(cx);
        self.checkpoint_records(cx);
        if let Some(log) = &mut self.soft.log {
            log.busy = false;
        }
    }

    /// All that the records name is on the disk: the log is empty but for inodes in use that have no name.
    pub(super) fn checkpoint_records(&mut self, cx: &mut Cx) {
        if !self.has_records() {
            return;
        }
        // Counts of groups that no record names any more.
        self.write_superblock(cx, true);
        let orphans = self.soft.log.as_ref().map(|log| log.orphans.clone()).unwrap_or_default();
        for ino in orphans {
            self.note_number(Ino(ino), self.is_directory(ino), true);
        }
        let Some(tail) = self.soft.log.as_ref().map(|log| log.writer) else { return };
        self.write_batch(cx);
        self.write_tail(cx, tail);
    }

    /// What was written until then is on the disk.
    fn write_tail(&mut self, cx: &mut Cx, then: LogWriter) {
        self.wait_for_records(cx);
        // Whoever writes to the log next waits for it: the space may be used again.
        let requests = self.put_header(cx, then.left(), 0);
        let Some(log) = &mut self.soft.log else { return };
        log.under_way.extend(requests);
        log.writer.free_until(then);
        log.counts.checkpoints += 1;
        self.wait_for_records(cx);
    }

    /// Unmounted, and everything written: the log is empty.
    pub(super) fn records_unmounted(&mut self, cx: &mut Cx) {
        let Some(head) = self.soft.log.as_ref().map(|log| log.writer) else { return };
        self.write_tail(cx, head);
        self.leave_records();
    }

    /// What is mounted next goes on where the log is now.
    pub(crate) fn leave_records(&mut self) {
        if let Some(log) = self.soft.log.take() {
            self.log = Some(log.writer.left());
        }
    }

    pub(crate) fn record_counts(&self) -> Option<LogCounts> {
        self.soft.log.as_ref().map(|log| log.counts)
    }
}
