//! Journaling of metadata: what operations change goes to a log before it goes to its place (write-ahead).
//!
//! ```text
//! operations ──▶ transaction ──▶ log ──flush──▶ places ──flush──▶ the log's space is free again
//!                what they have   one write     written back when    (checkpoint)
//!                changed          (commit)      the kernel wants to
//! ```
//!
//! Nothing is ordered by waiting for single blocks. An operation changes blocks in memory, as ever; the kernel lists
//! which ([`Cx::note_changes`]). A **commit** writes them as they are between two operations, all in one piece with a
//! checksum, and then has the drive flush its cache: after a crash all of it is replayed, or nothing. Several
//! operations share a commit. The rules:
//!
//! * A metadata block goes to its place only when the log has what is in it ([`Ffs::write_home`]).
//! * What a file gives up nobody gets before the commit that gives it up is on the disk
//!   ([`Ffs::keep_until_committed`]).
//! * What was metadata and is given up is taken out of the log (*revoked*): a replay would write it over another file's
//!   data.
//! * With `ordered` data, new blocks have their data before a commit leads to them.
//! * The log's space is used again only when what it held is in its place ([`Ffs::checkpoint`]). An operation begins
//!   only if the log has room for all that it may change, and makes room before.
//!
//! `journal=async` commits every five seconds, when a quarter of the log is waiting, and when fsync or sync ask;
//! `journal=sync` before an operation on names or attributes returns. Summaries and superblock are not logged: a replay
//! counts them. Hagmann, SOSP 1987; Seltzer et al., USENIX 2000 (`LFFS`); the block images and the revocations are
//! those of ext3 (Tweedie, 1998).

use super::Mode;
use crate::Ffs;
use crate::format::FragAddr;
use crate::log::format::{Extent, HeaderFields, Record, SECTOR, list_sectors};
use crate::log::{LogState, LogWriter, OPERATION_BLOCKS};
use crate::planted::Bug;
use crate::policy::{DataOrder, Discard, Integrity};
use kernel::program::IoId;
use kernel::{Block, BlockId, Contents, Cx, Durability, Ino, Lbn};
use posix::Errno;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use ufs::live::{Backing as _, Body};

/// How long changes wait for others that share their commit.
const COMMIT_AFTER_NS: u64 = 5_000_000_000;
/// Of the log, what a transaction takes before the daemon commits it: one part in so many.
const COMMIT_SHARE: u64 = 4;
/// Of the log, what is taken before the daemon makes room in it: one part in so many.
const CHECKPOINT_SHARE: u64 = 2;
/// Blocks that are free, or what was given up is asked for.
const FEW_BLOCKS: i64 = 16;

/// What is in the log, and what goes there next.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    writer: LogWriter,
    /// Blocks changed since the last commit.
    changed: BTreeSet<BlockId>,
    /// Since when there are any.
    since_ns: Option<u64>,
    /// Files that have got blocks since the last commit.
    with_new_blocks: BTreeSet<Ino>,
    /// Files of which something lies elsewhere since then.
    moved: BTreeSet<Ino>,
    /// Given up since the last commit.
    given_up: Vec<(FragAddr, u32)>,
    /// Of that, what the log has.
    revoked: Vec<Extent>,
    /// Inodes in use that have no name.
    orphans: BTreeSet<Ino>,
    /// Commits that may not be on the disk yet, the oldest first.
    commits: VecDeque<Commit>,
    /// Blocks that the log has and that may not be in their places.
    away: BTreeSet<BlockId>,
    /// Sectors that the log has, by the first, with how many follow.
    logged: BTreeMap<u64, u32>,
    /// The flush behind the header: the log's space that a checkpoint has given back is not used before.
    header: Option<IoId>,
    /// A flush that everybody waits for: what was given up is in use again already.
    barrier: Option<IoId>,
    /// What has happened.
    pub(crate) counts: LogCounts,
}

/// What has happened to a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Transactions.
    pub commits: u64,
    /// Sectors of them.
    pub sectors: u64,
    /// How often the log was emptied.
    pub checkpoints: u64,
    /// Extents that were taken out of it.
    pub revoked: u64,
}

/// A transaction that is on its way.
#[derive(Clone, Debug)]
struct Commit {
    requests: Vec<IoId>,
    /// The flush behind them: it is on the disk when this is complete.
    stable: IoId,
    given_up: Vec<(FragAddr, u32)>,
}

impl Journal {
    fn new(place: LogState, orphans: BTreeSet<Ino>) -> Journal {
        Journal {
            writer: LogWriter::new(place),
            changed: BTreeSet::new(),
            since_ns: None,
            with_new_blocks: BTreeSet::new(),
            moved: BTreeSet::new(),
            given_up: Vec::new(),
            revoked: Vec::new(),
            orphans,
            commits: VecDeque::new(),
            away: BTreeSet::new(),
            logged: BTreeMap::new(),
            header: None,
            barrier: None,
            counts: LogCounts::default(),
        }
    }

    /// What was given up and nobody may have yet.
    pub(crate) fn given_up(&self) -> impl Iterator<Item = (FragAddr, u32)> + '_ {
        let committed = self.commits.iter().flat_map(|commit| &commit.given_up);
        committed.chain(&self.given_up).copied()
    }

    /// Sectors of a transaction of so many blocks, at most.
    fn sectors_of(&self, blocks: u64, block_bytes: u32) -> u64 {
        let revoked = self.revoked.len() + self.logged.len();
        list_sectors(blocks as usize, revoked) + blocks * (u64::from(block_bytes) / SECTOR)
    }

    /// What the log has of a place is not to be replayed any more.
    fn revoke(&mut self, first: u64, sectors: u64, block_sectors: u64) {
        let end = first + sectors;
        let there = self.logged.range(first.saturating_sub(block_sectors - 1)..end);
        if there.into_iter().any(|(at, len)| at + u64::from(*len) > first) {
            self.revoked.push(Extent { at: first, sectors: sectors as u32 });
            self.counts.revoked += 1;
        }
    }
}

/// The mode.
pub(crate) struct Journaled;

impl Mode for Journaled {
    fn in_order(_fs: &mut Ffs, _cx: &mut Cx, _id: BlockId) {}

    fn moved(fs: &mut Ffs, _cx: &mut Cx, ino: Ino, _lbn: u64, _from: FragAddr, _frags: u32) {
        fs.has_moved(ino);
    }

    fn link_dropped(fs: &mut Ffs, cx: &mut Cx, ino: Ino, _links: i16) {
        fs.update(cx, ino);
        let unnamed = fs.node(ino).is_ok_and(|node| node.d.nlink <= 0);
        if let Some(journal) = fs.journal.as_mut().filter(|_| unnamed) {
            journal.orphans.insert(ino);
        }
        if fs.planted == Some(Bug::CommitWithinOperation) {
            fs.commit(cx);
        }
    }

    fn inode_freed(fs: &mut Ffs, cx: &mut Cx, ino: Ino) {
        fs.update(cx, ino);
        fs.free_number(cx, ino);
        if let Some(journal) = &mut fs.journal {
            journal.orphans.remove(&ino);
        }
    }

    // ---- operations

    fn begins(fs: &mut Ffs, cx: &mut Cx) {
        fs.look_at_commits(cx);
        let free = fs.space.free_frags();
        let few = fs.space.total.nbfree < FEW_BLOCKS || fs.tuning.available(free) < FEW_BLOCKS * i64::from(fs.g.frag);
        if few && fs.journal.as_ref().is_some_and(|journal| journal.given_up().next().is_some()) {
            fs.commit(cx);
            fs.have_given_up_now(cx);
        }
        if !fs.has_room_in_log() {
            fs.checkpoint(cx);
        }
    }

    fn goes_on(fs: &mut Ffs, cx: &mut Cx, ino: Ino) {
        fs.look_at_commits(cx);
        if !fs.has_room_in_log() {
            fs.update(cx, ino);
            fs.checkpoint(cx);
        }
    }

    fn ends(fs: &mut Ffs, cx: &mut Cx) {
        if fs.options.integrity != Integrity::JournalSync {
            return;
        }
        // A file that nobody has open is freed next, before the call returns: both are one transaction.
        let freed_next = |journal: &Journal| journal.orphans.iter().any(|ino| !cx.is_open(*ino));
        if !fs.journal.as_ref().is_some_and(|journal| freed_next(journal)) {
            fs.commit(cx);
        }
    }

    fn release_begins(fs: &mut Ffs, cx: &mut Cx) {
        Journaled::begins(fs, cx);
    }

    fn release_ends(fs: &mut Ffs, cx: &mut Cx) {
        Journaled::ends(fs, cx);
    }

    // ---- the whole file system

    fn mounting(fs: &mut Ffs, cx: &mut Cx) {
        fs.mount_log(cx);
    }

    fn mounted(fs: &mut Ffs, cx: &mut Cx) {
        let place = fs.log.expect("what is mounted with a log has one");
        let orphans = fs.without_a_name().into_iter().collect();
        fs.journal = Some(Box::new(Journal::new(place, orphans)));
        cx.note_changes(true);
    }

    fn unmounted(fs: &mut Ffs, cx: &mut Cx) {
        cx.flush_device(true);
        cx.note_changes(false);
        let empty = |journal: &Journal| journal.given_up().next().is_none() && journal.writer.used() == 0;
        debug_assert!(fs.journal.as_ref().is_none_or(|journal| empty(journal)), "a log is empty at the end");
        fs.leave_journal();
    }

    fn fsync(fs: &mut Ffs, cx: &mut Cx, ino: Ino, how: Durability) -> Result<(), Errno> {
        Journaled::begins(fs, cx);
        if fs.node(ino)?.own.pending {
            fs.update(cx, ino);
        }
        if how == Durability::Started {
            let dirty: Vec<BlockId> = cx.cache().dirty_blocks(ino).collect();
            Journaled::write_back(fs, cx, &dirty);
            return Ok(());
        }
        fs.write_data(cx, ino);
        cx.wait_for_file(ino);
        let before = fs.journal.as_ref().map_or(0, |journal| journal.counts.commits);
        if fs.planted == Some(Bug::FsyncWithoutCommit) {
            return Ok(());
        }
        fs.commit(cx);
        if fs.journal.as_ref().is_none_or(|journal| journal.counts.commits == before) {
            cx.flush_device(true);
        }
        Ok(())
    }

    fn sync(fs: &mut Ffs, cx: &mut Cx, how: Durability) {
        fs.look_at_commits(cx);
        fs.commit(cx);
        cx.flush_all(fs, Durability::Started);
        if how != Durability::Started {
            fs.checkpoint(cx);
            fs.have_given_up_now(cx);
        }
    }

    fn write_back(fs: &mut Ffs, cx: &mut Cx, blocks: &[BlockId]) {
        fs.look_at_commits(cx);
        let is_data = |id: &&BlockId| cx.cache().block(**id).is_some_and(|block| block.contents == Contents::Data);
        let (data, metadata): (Vec<&BlockId>, Vec<&BlockId>) = blocks.iter().partition(is_data);
        let data: Vec<BlockId> = data.into_iter().copied().collect();
        cx.write_in_place(fs, &data);
        let metadata: Vec<BlockId> = metadata.into_iter().copied().collect();
        if !metadata.is_empty() {
            fs.write_home(cx, &metadata);
        }
    }

    fn wants_work(fs: &Ffs, cx: &Cx) -> bool {
        fs.journal.as_ref().is_some_and(|journal| journal.is_due(cx.now_ns(), fs.g.bsize))
    }

    fn idle_work_after_ns(fs: &Ffs) -> Option<u64> {
        fs.journal.as_ref().and_then(|journal| journal.since_ns).map(|_| COMMIT_AFTER_NS)
    }

    fn work(fs: &mut Ffs, cx: &mut Cx, idle: bool) -> bool {
        fs.look_at_commits(cx);
        let Some(journal) = &fs.journal else { return false };
        if journal.writer.used() >= journal.writer.sectors() / CHECKPOINT_SHARE {
            fs.checkpoint(cx);
            return true;
        }
        let due = journal.since_ns.is_some() && (idle || journal.is_due(cx.now_ns(), fs.g.bsize));
        if due {
            fs.commit(cx);
        }
        due
    }
}

impl Journal {
    /// Whether the daemon has something to do.
    fn is_due(&self, now_ns: u64, block_bytes: u32) -> bool {
        let old = self.since_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) >= COMMIT_AFTER_NS);
        let much = self.sectors_of(self.changed.len() as u64, block_bytes) >= self.writer.sectors() / COMMIT_SHARE;
        old || much && !self.changed.is_empty() || self.writer.used() >= self.writer.sectors() / CHECKPOINT_SHARE
    }
}

impl Ffs {
    /// What happened to the log since the file system was mounted; `None` without one.
    pub fn log_counts(&self) -> Option<LogCounts> {
        self.journal.as_ref().map(|journal| journal.counts).or_else(|| self.record_counts())
    }

    /// The sectors of 512 bytes that the log lies in, its header first; `None` without one.
    pub fn log_sectors(&self) -> Option<std::ops::Range<u64>> {
        let place = self.log.or_else(|| self.journal.as_ref().map(|journal| journal.writer.left()))?;
        Some(place.header.0..place.ring.0 + place.sectors)
    }

    /// What is mounted next goes on where the log is now.
    pub(crate) fn leave_journal(&mut self) {
        self.leave_records();
        let Some(journal) = self.journal.take() else { return };
        for (addr, frags) in journal.given_up() {
            self.space.free(addr, frags);
        }
        self.log = Some(journal.writer.left());
    }

    /// A file has got blocks, or a longer piece of one: with ordered data, what is in them goes first.
    pub(crate) fn has_new_blocks(&mut self, ino: Ino) {
        if let Some(journal) = &mut self.journal {
            journal.with_new_blocks.insert(ino);
        }
    }

    /// Something of a file lies elsewhere now: it is there before the log leads to it, whatever the order of data.
    pub(crate) fn has_moved(&mut self, ino: Ino) {
        if let Some(journal) = &mut self.journal {
            journal.moved.insert(ino);
        }
    }

    /// Whether what files give up is kept from others for a while.
    pub(crate) fn keeps_until_committed(&self) -> bool {
        self.journal.is_some() && self.planted != Some(Bug::ReuseBeforeCommit)
    }

    /// A file gives something up: nobody gets it before that is committed. Says whether it is kept for that.
    pub(crate) fn keep_until_committed(&mut self, addr: FragAddr, frags: u32) -> bool {
        let keeps = self.keeps_until_committed();
        let (first, block_sectors) = (self.pbn(addr).0, u64::from(self.g.bsize) / SECTOR);
        let sectors = u64::from(frags) << (self.g.fshift - 9);
        let revokes = self.planted != Some(Bug::NoRevocation);
        let Some(journal) = &mut self.journal else { return false };
        if revokes {
            journal.revoke(first, sectors, block_sectors);
        }
        if keeps {
            journal.given_up.push((addr, frags));
        }
        keeps
    }

    /// Fragments that were given up and nobody may have yet.
    pub(crate) fn frags_kept(&self) -> i64 {
        let kept = self.journal.iter().flat_map(|journal| journal.given_up());
        kept.map(|(_, frags)| i64::from(frags)).sum()
    }

    /// Takes note of what operations have changed, and of the commits that have reached the disk.
    fn look_at_commits(&mut self, cx: &mut Cx) {
        self.take_changes(cx);
        let mut free = Vec::new();
        let Some(journal) = &mut self.journal else { return };
        let complete = |commit: &Commit| cx.ios().get(commit.stable).is_none();
        while journal.commits.front().is_some_and(complete) {
            free.extend(journal.commits.pop_front().map(|commit| commit.given_up));
        }
        if let Some(io) = journal.barrier {
            match cx.ios().get(io) {
                Some(_) => cx.wait_for(io),
                None => journal.barrier = None,
            }
        }
        for given_up in free {
            self.free_given_up(cx, &given_up);
        }
    }

    fn take_changes(&mut self, cx: &mut Cx) {
        let (sb, summaries) = (self.sb_at / SECTOR, self.pbn(self.g.csaddr).0);
        let summaries = summaries..summaries + u64::from(self.g.cssize).div_ceil(SECTOR);
        let now_ns = cx.now_ns();
        let Some(journal) = &mut self.journal else { return };
        cx.take_changes(&mut |id| {
            // What a replay counts is not logged.
            let counted = |at: u64| at == sb || summaries.contains(&at);
            if id.ino != Ino::DEVICE || !counted(id.lbn.0.unsigned_abs()) {
                journal.changed.insert(id);
                journal.since_ns.get_or_insert(now_ns);
            }
        });
    }

    /// What was given up is free for everybody.
    fn free_given_up(&mut self, cx: &mut Cx, given_up: &[(FragAddr, u32)]) {
        for (addr, frags) in given_up {
            self.space.free(*addr, *frags);
            if self.options.discard == Discard::Discard {
                cx.discard(self.pbn(*addr), u64::from(*frags) << self.g.fshift);
            }
        }
    }

    /// What was given up until the last commit, which this program waits for, is free from now on; whoever comes before
    /// it is on the disk waits for it.
    fn have_given_up_now(&mut self, cx: &mut Cx) {
        let Some(journal) = &mut self.journal else { return };
        let commits = std::mem::take(&mut journal.commits);
        let last = commits.back().map(|commit| commit.stable).filter(|stable| cx.ios().get(*stable).is_some());
        journal.barrier = last.or(journal.barrier);
        for commit in commits {
            self.free_given_up(cx, &commit.given_up);
        }
    }

    /// Whether the log has room for the transaction as it is, and for another operation with all that it may change.
    fn has_room_in_log(&self) -> bool {
        let Some(journal) = &self.journal else { return true };
        let blocks = journal.changed.len() as u64 + OPERATION_BLOCKS + u64::from(self.g.ncg);
        journal.writer.used() + journal.sectors_of(blocks, self.g.bsize) <= journal.writer.sectors()
    }

    /// Starts writing what is dirty of a file's data.
    fn write_data(&mut self, cx: &mut Cx, ino: Ino) {
        if self.node(ino).is_ok_and(|node| matches!(node.body, Body::File)) {
            let dirty: Vec<BlockId> = cx.cache().dirty_blocks(ino).filter(|id| id.lbn >= Lbn(0)).collect();
            cx.write_in_place(self, &dirty);
        }
    }

    /// Commits what operations have changed, and waits until it is on the disk. Called between operations only: what it
    /// writes is the state after the last one.
    fn commit(&mut self, cx: &mut Cx) {
        self.take_changes(cx);
        let Some(journal) = &mut self.journal else { return };
        if journal.changed.is_empty() && journal.given_up.is_empty() {
            journal.since_ns = None;
            return self.wait_for_commits(cx);
        }
        // What has moved may have been synced where it was.
        let mut first = std::mem::take(&mut journal.moved);
        let with_new_blocks = std::mem::take(&mut journal.with_new_blocks);
        let header = journal.header.take();
        if self.options.data == DataOrder::Ordered && self.planted != Some(Bug::DataAfterLog) {
            first.extend(with_new_blocks);
        }
        if !first.is_empty() {
            first.iter().for_each(|ino| self.write_data(cx, *ino));
            first.iter().for_each(|ino| cx.wait_for_file(*ino));
            cx.flush_device(true);
        }
        if let Some(io) = header {
            cx.wait_for(io);
        }
        self.write_transaction(cx);
    }

    fn write_transaction(&mut self, cx: &mut Cx) {
        let Some(journal) = &mut self.journal else { return };
        let changed = std::mem::take(&mut journal.changed);
        journal.since_ns = None;
        // A block that was given up is not there any more, or is another file's data by now.
        let blocks = changed.iter().filter_map(|id| cx.cache().block(*id));
        let blocks: Vec<Block> = blocks.filter(|block| block.contents == Contents::Metadata).collect();
        let record = Record {
            seq: journal.writer.seq(),
            images: blocks.iter().map(Extent::of).collect(),
            revoked: std::mem::take(&mut journal.revoked),
            orphans: journal.orphans.len() as u32,
        };
        let sectors = record.sectors();
        let id = journal.writer.left().id;
        let bytes = cx.wants_metadata().then(|| record.encode(id, self.g.endian(), &blocks, self));
        let waits = self.planted != Some(Bug::HomeBeforeLog);
        let Some(journal) = &mut self.journal else { return };
        let requests = journal.writer.append(cx, sectors, bytes.as_deref());
        // It counts only if those before it are there.
        if waits {
            for io in journal.commits.iter().flat_map(|commit| &commit.requests).chain(&requests) {
                cx.wait_for(*io);
            }
        }
        let stable = match requests.last() {
            Some(last) if !waits => *last,
            _ => cx.flush_device(true),
        };
        let given_up = std::mem::take(&mut journal.given_up);
        journal.commits.push_back(Commit { requests, stable, given_up });
        journal.away.extend(blocks.iter().map(|block| block.id));
        for extent in &record.images {
            let longest = journal.logged.get(&extent.at).map_or(0, |sectors| *sectors).max(extent.sectors);
            journal.logged.insert(extent.at, longest);
        }
        journal.counts.commits += 1;
        journal.counts.sectors += sectors;
    }

    /// Waits until every commit is on the disk.
    fn wait_for_commits(&mut self, cx: &mut Cx) {
        if let Some(journal) = self.journal.as_ref().filter(|_| self.planted != Some(Bug::HomeBeforeLog)) {
            journal.commits.iter().for_each(|commit| cx.wait_for(commit.stable));
        }
    }

    /// Starts writing metadata in its place, when the log has it.
    fn write_home(&mut self, cx: &mut Cx, blocks: &[BlockId]) {
        self.take_changes(cx);
        let logged = self.journal.as_ref().is_none_or(|journal| !blocks.iter().any(|id| journal.changed.contains(id)));
        if logged {
            self.wait_for_commits(cx);
        } else {
            self.commit(cx);
        }
        cx.write_in_place(self, blocks);
    }

    /// Empties the log: commits, has everything in its place, and says so in the header.
    fn checkpoint(&mut self, cx: &mut Cx) {
        self.commit(cx);
        let too_early = self.planted == Some(Bug::CheckpointTooFar);
        if too_early {
            self.write_header(cx);
        }
        let Some(journal) = &mut self.journal else { return };
        let away: Vec<BlockId> = std::mem::take(&mut journal.away).into_iter().collect();
        cx.write_in_place(self, &away);
        cx.wait_for_writes();
        cx.flush_device(true);
        if !too_early {
            self.write_header(cx);
        }
    }

    fn write_header(&mut self, cx: &mut Cx) {
        let Some(journal) = &mut self.journal else { return };
        if journal.writer.used() == 0 {
            return;
        }
        journal.writer.free_until(journal.writer);
        journal.logged.clear();
        journal.counts.checkpoints += 1;
        let (log, orphans) = (journal.writer.left(), journal.orphans.len() as u32);
        self.put_header(cx, log, orphans).into_iter().for_each(|io| cx.wait_for(io));
        let stable = cx.flush_device(true);
        if let Some(journal) = &mut self.journal {
            journal.header = Some(stable);
        }
    }

    /// Starts writing the header: what it says of the log is that the next transaction goes there, or the first one is
    /// there.
    pub(super) fn put_header(&mut self, cx: &mut Cx, log: LogState, orphans: u32) -> Vec<IoId> {
        let header = HeaderFields {
            id: log.id,
            sectors: log.sectors,
            tail: log.at,
            seq: log.seq,
            orphans,
            mtime: self.sb.mtime,
            ..HeaderFields::default()
        };
        let bytes = cx.wants_metadata().then(|| header.encode(self.g.endian()));
        cx.write_through(log.header, SECTOR, bytes.as_deref())
    }

    /// The log is empty, and of this mount: before the superblock says that it is in use.
    pub(super) fn mount_log(&mut self, cx: &mut Cx) {
        let log = self.log.expect("what is mounted with a log has one");
        let orphans = self.without_a_name().len() as u32;
        self.put_header(cx, log, orphans).into_iter().for_each(|io| cx.wait_for(io));
        cx.flush_device(true);
    }
}
