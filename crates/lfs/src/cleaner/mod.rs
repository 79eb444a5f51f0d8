//! The cleaner: makes clean segments by moving what is live out of others.
//!
//! It works as a daemon, below a low-water mark of clean segments and in idle time, or in the name of a process that
//! has to wait for room; or not before the log is full, and then until everything worth it is clean (`cleaning=all`). A
//! pass reads a few segments whole, finds what is live in them (an entry of a segment is live if its file's pointer
//! still leads there), makes that dirty, and has the segment writer write it, the oldest files first. The segments are
//! empty then, and clean when both superblocks know that (`checkpoint`).

pub(crate) mod counters;
mod moving;
mod plug;
pub(crate) mod state;

use crate::format::{NDADDR, SegNo, summary_flags};
use crate::ifile_state::IFILE;
use crate::policy::{Candidate, CleanerPolicy, Cleaning, Sort, value};
use crate::segment::{INODE, INODE_BYTES, Scope, Segment, SegmentState, Written};
use crate::volume::{Lfs, pointers, with_overhead};
pub use counters::CleanerCounters;
use kernel::{BlockId, Cx, Ino, Lbn};
use posix::Errno;
use rustc_hash::FxHashSet;
use state::Round;
use ufs::live::Files as _;

/// With few clean segments at least so many are cleaned together whatever the memory: each pass costs a checkpoint.
const NEEDED_SEGMENTS: usize = 8;

/// The low-water mark is so many segments at least, or a third of all if that is fewer.
const LOW_MIN: u32 = 6;
/// The high-water mark is so many more at least, unless it is told to be the same.
const BETWEEN_MIN: u32 = 2;

/// Bytes that [`needed_bytes`](Lfs::needed_bytes) counts for a file that has become dirty.
const INODE_ROOM: u64 = 512;

/// What else moves with the blocks of segments, counted once.
#[derive(Debug, Default)]
struct Seen {
    /// Files, and their indirect blocks.
    blocks: FxHashSet<(u32, i64)>,
    files: u64,
    /// What the segment looked at last has added: it goes again if that one is not taken.
    added: Vec<(u32, i64)>,
}

impl Seen {
    /// Whether a file (`i64::MIN`) or an indirect block is met for the first time.
    fn first_time(&mut self, ino: u32, number: i64) -> bool {
        let first = self.blocks.insert((ino, number));
        if first {
            self.added.push((ino, number));
            self.files += u64::from(number == i64::MIN);
        }
        first
    }

    /// The segment looked at last moves.
    fn keep(&mut self) {
        self.added.clear();
    }

    /// It does not, and neither does what is only above it: others that share that have to count it.
    fn take_back(&mut self) {
        for block in self.added.drain(..) {
            self.blocks.remove(&block);
            self.files -= u64::from(block.1 == i64::MIN);
        }
    }
}

/// Segments that are clean or could be, of all.
fn share(nseg: u32, percent: u32) -> u32 {
    (u64::from(nseg) * u64::from(percent) / 100) as u32
}

impl Lfs {
    /// With fewer clean segments than the first of these the daemon works, until there are as many as the second.
    fn marks(&self) -> (u32, u32) {
        let works = self.options.low_percent > 0 && self.options.cleaning == Cleaning::Ahead;
        let low =
            if works { share(self.g.nseg, self.options.low_percent).max(LOW_MIN.min(self.g.nseg / 3)) } else { 0 };
        // Told the same share twice, it has one mark, as the cleaner of 4.4BSD: it stops where it would begin.
        let one = low > 0 && self.options.high_percent == self.options.low_percent;
        let high = if one { low } else { share(self.g.nseg, self.options.high_percent).max(low + BETWEEN_MIN) };
        // On a full disk the fewer are clean, the emptier are the others: both come down alike. But nobody should have
        // to wait.
        let most = self.slack_segments() / 2.0;
        let down = (most / f64::from(high)).min(1.0);
        let low = low.min(((f64::from(low) * down) as u32).max(self.reserve_segments() + 1));
        (low, if one { low } else { high.min(most as u32).max(low + BETWEEN_MIN) })
    }

    fn low_water(&self) -> u32 {
        self.marks().0
    }

    fn high_water(&self) -> u32 {
        self.marks().1
    }

    /// Whether the daemon has to work now.
    pub(crate) fn wants_cleaning(&self, _cx: &Cx) -> bool {
        if !self.cleaner.read.is_empty() {
            return true;
        }
        let (low, high) = self.marks();
        let below = if self.cleaner.round == Round::Short { high } else { low };
        self.log.clean < below && self.cleaner.idle_since != Some(self.log.taken)
    }

    /// Ends the daemon's round if enough segments are clean. Told when segments become clean, whoever has cleaned them,
    /// and before room is taken: files that grow or go move the marks. When the daemon is next asked, some may have
    /// been taken again.
    pub(crate) fn rest_if_enough_is_clean(&mut self) {
        if self.cleaner.round != Round::Resting && self.log.clean >= self.high_water() {
            self.cleaner.round = Round::Resting;
        }
    }

    /// How long nobody may have called before it works in idle time; `None` if there is nothing to do.
    pub(crate) fn idle_cleaning_after_ns(&self, _cx: &Cx) -> Option<u64> {
        let ahead = self.options.cleaning == Cleaning::Ahead && self.options.cleaner != CleanerPolicy::Off;
        let on = self.options.idle_ms > 0 && ahead;
        let enough = self.log.clean >= self.high_water() || self.cleaner.idle_since == Some(self.log.taken);
        (on && !enough).then_some(self.options.idle_ms.saturating_mul(1_000_000))
    }

    /// A piece of the daemon's work: what has become empty is made clean; segments are read; what was live in them when
    /// they were there is moved.
    pub(crate) fn clean_in_background(&mut self, cx: &mut Cx, idle: bool) -> bool {
        let read = std::mem::take(&mut self.cleaner.read);
        if !read.is_empty() {
            let unchanged = read.into_iter().filter(|(number, turn)| {
                let segment = self.log.segments.get(number.0 as usize);
                segment.is_some_and(|s| s.turn == *turn && s.state == SegmentState::Dirty)
            });
            let unchanged: Vec<SegNo> = unchanged.map(|(number, _)| number).collect();
            // While they were read, others may have taken room.
            let victims = self.affordable(cx, unchanged.into_iter(), usize::MAX);
            self.cleaner.fruitless += victims.len().max(1) as u32;
            return victims.is_empty() || self.move_live(cx, &victims).is_ok();
        }
        self.rest_if_enough_is_clean();
        if self.log.clean >= self.high_water() {
            return false;
        }
        let last = self.cleaner.round;
        if last == Round::Resting {
            self.cleaner.round = Round::Idle;
        }
        if self.log.clean < self.low_water() {
            self.cleaner.round = Round::Short;
        }
        if last == Round::Resting || self.log.clean > self.cleaner.best {
            self.cleaner.best = self.log.clean;
            self.cleaner.fruitless = 0;
        }
        // Where segments are nearly full, moving them may use up what it gains: not for ever.
        if self.cleaner.fruitless > self.g.nseg / 2 {
            self.give_up();
            return false;
        }
        let before = self.log.clean;
        if self.log.has_emptied()
            && (idle || self.log.clean + (self.log.emptied() as u32) >= self.low_water() || before < 4)
            && self.checkpoint_twice(cx).is_ok()
            && self.log.clean > before
        {
            return true;
        }
        // With few clean segments there is a checkpoint behind each pass: one must gain more than that takes.
        let reserve = self.reserve_segments();
        let least = if before <= reserve { NEEDED_SEGMENTS.max(reserve as usize) } else { 1 };
        let victims = self.choose(cx, self.options.cleaner, least);
        if self.prefers_plugging(&victims, false) && self.plug_holes(cx) == Ok(true) {
            return true;
        }
        if victims.is_empty() {
            // What has become empty may be the room that moving others takes.
            if self.log.has_emptied() && self.checkpoint_twice(cx).is_ok() && self.log.clean > before {
                return true;
            }
            self.give_up();
            return false;
        }
        self.read_segments(cx, &victims);
        let turn = |number: &SegNo| self.log.segments.get(number.0 as usize).map_or(0, |segment| segment.turn);
        self.cleaner.read = victims.iter().map(|number| (*number, turn(number))).collect();
        true
    }

    /// There is nothing to gain before the log has taken another segment.
    fn give_up(&mut self) {
        self.cleaner.idle_since = Some(self.log.taken);
        self.cleaner.round = Round::Resting;
    }

    /// Cleans in the name of whoever needs room: writes what is dirty, makes clean what is empty, and moves what is
    /// live if that is not enough. In need, that is where it gains most now, whatever the policy.
    pub(crate) fn clean_for_room(&mut self, cx: &mut Cx, need: bool) -> Result<(), Errno> {
        let clean = self.log.clean;
        if self.log.has_emptied() || cx.cache().dirty_bytes() > u64::from(self.g.ssize) / 4 {
            self.checkpoint_twice(cx)?;
            if self.log.clean > clean {
                return Ok(());
            }
        }
        let policy = self.options.cleaner;
        let policy = if need && policy != CleanerPolicy::Off { CleanerPolicy::Greedy } else { policy };
        let least = if need { NEEDED_SEGMENTS.max(self.reserve_segments() as usize) } else { 1 };
        let victims = self.choose(cx, policy, least);
        if self.prefers_plugging(&victims, need) && self.plug_holes(cx) == Ok(true) {
            return Ok(());
        }
        if victims.is_empty() {
            return Ok(());
        }
        self.read_segments(cx, &victims);
        self.move_live(cx, &victims)?;
        self.checkpoint_twice(cx)
    }

    /// Cleans all that is worth it, in the name of whoever needs room (`cleaning=all`): every segment that was written
    /// before.
    ///
    /// There is a checkpoint behind a pass only where the log has no room for the next one, or much is dirty: the
    /// indirect blocks above what moves, which segments have in common, are written once for many of them.
    pub(crate) fn clean_all(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        // Since the last time nothing has been written that could have gone out of use.
        if self.cleaner.swept == Some(self.log.taken) || self.checkpoint_twice(cx).is_err() {
            return Ok(());
        }
        self.counters.cleaner.sweeps += 1;
        // What is written meanwhile is not moved again.
        let written = |segment: &Segment| (segment.state == SegmentState::Dirty).then_some(segment.turn);
        let before: Vec<Option<u32>> = self.log.segments.iter().map(written).collect();
        let is_old = |number: SegNo, segment: &Segment| before.get(number.0 as usize) == Some(&Some(segment.turn));
        // Each pass moves a segment at least, or its checkpoint makes one clean.
        for _ in 0..2 * before.len() {
            let reserve = self.reserve_segments();
            let least = if self.log.clean <= reserve { NEEDED_SEGMENTS.max(reserve as usize) } else { 1 };
            let victims = self.choose_of(cx, self.options.cleaner, least, is_old);
            if victims.is_empty() {
                let clean = self.log.clean;
                if !self.log.has_emptied() {
                    break;
                }
                self.checkpoint_twice(cx)?;
                if self.log.clean <= clean {
                    break;
                }
                continue;
            }
            if self.prefers_plugging(&victims, false) {
                break;
            }
            self.read_segments(cx, &victims);
            self.move_live(cx, &victims)?;
            if self.has_much_dirty(cx) {
                self.checkpoint_twice(cx)?;
            }
        }
        self.checkpoint_twice(cx)?;
        self.cleaner.swept = Some(self.log.taken);
        Ok(())
    }

    /// Cleans some segments; says whether more are clean than before.
    pub(crate) fn clean_some(&mut self, cx: &mut Cx) -> Result<bool, Errno> {
        let clean = self.log.clean;
        self.clean_for_room(cx, false)?;
        Ok(self.log.clean > clean)
    }

    /// The segments most worth cleaning, as many as memory and the log have room for.
    fn choose(&self, cx: &Cx, policy: CleanerPolicy, least: usize) -> Vec<SegNo> {
        self.choose_of(cx, policy, least, |_, _| true)
    }

    /// The same of those that may be cleaned.
    fn choose_of(
        &self,
        cx: &Cx,
        policy: CleanerPolicy,
        least: usize,
        may_be: impl Fn(SegNo, &Segment) -> bool,
    ) -> Vec<SegNo> {
        if policy == CleanerPolicy::Off {
            return Vec::new();
        }
        let now_ns = cx.date_ns();
        let usable = self.log.usable_bytes();
        let mut candidates: Vec<(f64, u32)> = Vec::with_capacity(self.log.segments.len());
        for (number, segment) in (0..).zip(&self.log.segments) {
            let live = u64::from(segment.live_bytes);
            // What is moved takes a little more room than it had.
            let worth = live + live / 64 + u64::from(self.g.bsize) < usable;
            if segment.state != SegmentState::Dirty || live == 0 || !worth || segment.leaving {
                continue;
            }
            if self.empties_itself(segment) || !may_be(SegNo(number), segment) {
                continue;
            }
            let candidate = Candidate {
                segment_bytes: f64::from(self.g.ssize),
                live_bytes: f64::from(segment.live_bytes),
                summary_bytes: f64::from(segment.nsums) * f64::from(self.g.sumsize),
                age_s: (now_ns - segment.modified_ns).max(1) as f64 / 1e9,
            };
            candidates.push((value(policy, &candidate), number));
        }
        let most = ((self.options.memory_bytes / u64::from(self.g.ssize)) as usize).max(least);
        let better = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        // More than are taken, since some may not fit.
        let wanted = most * 4;
        if candidates.len() > wanted {
            candidates.select_nth_unstable_by(wanted, better);
            candidates.truncate(wanted);
        }
        candidates.sort_unstable_by(better);
        self.affordable(cx, candidates.into_iter().map(|(_, number)| SegNo(number)), most)
    }

    /// Those of some segments whose live blocks the log can take, with a checkpoint after them.
    fn affordable(&self, cx: &Cx, candidates: impl Iterator<Item = SegNo> + Clone, most: usize) -> Vec<SegNo> {
        let room = self.log.room_bytes();
        let dirty_files = self.dirty_files();
        let mut bytes = self.dirty_need_bytes(cx);
        let at_most = candidates.clone().take(most).map(|number| self.most_to_move(number));
        let (pieces, live) = at_most.fold((0, 0), |(pieces, live), more| (pieces + more.0, live + more.1));
        // Of each piece an inode, and three indirect blocks above it. Mostly there is room for as much.
        let around = pieces * (INODE_ROOM + 3 * with_overhead(self.g.bsize.into()));
        if bytes + with_overhead(live) + around + self.checkpoint_need_bytes(dirty_files + pieces) <= room {
            return candidates.take(most).collect();
        }
        let mut seen = Seen::default();
        let mut victims = Vec::new();
        for number in candidates {
            if victims.len() >= most {
                break;
            }
            let more = self.bytes_to_move(cx, number, &mut seen);
            if bytes + more + self.checkpoint_need_bytes(dirty_files + seen.files) <= room {
                bytes += more;
                victims.push(number);
                seen.keep();
            } else {
                seen.take_back();
            }
        }
        victims
    }

    /// How many pieces are in a segment at most, and the bytes of those that are live.
    fn most_to_move(&self, number: SegNo) -> (u64, u64) {
        let segment = self.log.segments.get(number.0 as usize);
        segment.map_or((0, 0), |segment| (segment.written.len() as u64, segment.live_bytes.into()))
    }

    /// What the log needs for what is live in a segment: that, and the indirect blocks and inodes that change with it.
    fn bytes_to_move(&self, cx: &Cx, number: SegNo, seen: &mut Seen) -> u64 {
        let Some(segment) = self.log.segments.get(number.0 as usize) else { return 0 };
        let n = u64::from(self.g.nindir);
        let mut bytes = with_overhead(segment.live_bytes.into());
        for entry in segment.written.iter().filter(|entry| self.is_live(entry)) {
            if entry.ino == IFILE.0 {
                continue;
            }
            if seen.first_time(entry.ino, i64::MIN) {
                bytes += INODE_ROOM;
            }
            if entry.lbn == INODE || (0..NDADDR as i32).contains(&entry.lbn) {
                continue;
            }
            let lbn = match u64::try_from(entry.lbn) {
                Ok(lbn) => lbn,
                Err(_) => pointers::of_number(entry.lbn.into(), n).map_or(0, |(first, _)| first),
            };
            let Some(way) = pointers::way(lbn, n) else { continue };
            for number in way.numbers.iter().take(way.slot + 1) {
                let id = BlockId { ino: Ino(entry.ino), lbn: Lbn(*number) };
                if seen.first_time(entry.ino, *number) && !cx.cache().is_dirty(id) {
                    bytes += with_overhead(self.g.bsize.into());
                }
            }
        }
        bytes
    }

    /// Whether what was written is still what its file points to.
    fn is_live(&self, entry: &Written) -> bool {
        let Some(node) = self.inodes.get(entry.ino) else { return false };
        let addr = i64::from(entry.addr.0);
        match u64::try_from(entry.lbn) {
            _ if entry.lbn == INODE => node.own.daddr == entry.addr,
            // The target of a short symbolic link, where other files have pointers, may look like one.
            _ if !node.d.has_blocks(self.g.maxsymlinklen) => false,
            Ok(lbn) if lbn < NDADDR as u64 => node.d.db.get(lbn as usize) == Some(&addr),
            Ok(lbn) => self.pointer(Ino(entry.ino), lbn) == Ok(addr),
            Err(_) => self.indirect_addr(Ino(entry.ino), entry.lbn.into()) == addr,
        }
    }

    /// Whether all that is live in a segment moves with every checkpoint.
    fn empties_itself(&self, segment: &Segment) -> bool {
        let most = INODE_BYTES + 2 * self.g.bsize;
        if segment.live_bytes > most {
            return false;
        }
        let moves = |entry: &&Written| {
            // The ifile's inode, the cleaner's information, and the usage table if it is one block.
            entry.ino == IFILE.0
                && (entry.lbn == INODE || entry.lbn == 0 || entry.lbn == self.g.cleansz as i32 && self.g.segtabsz == 1)
                && self.is_live(entry)
        };
        let bytes = |entry: &Written| if entry.lbn == INODE { INODE_BYTES } else { self.g.bsize };
        segment.written.iter().rev().filter(moves).map(bytes).sum::<u32>() == segment.live_bytes
    }

    /// Reads segments whole, as far as they have been written.
    fn read_segments(&mut self, cx: &mut Cx, victims: &[SegNo]) {
        for number in victims {
            let base = self.pbn(self.g.segment_base(*number));
            cx.read_through(base, self.g.ssize.into());
            self.counters.cleaner.read_bytes += u64::from(self.g.ssize);
        }
    }

    /// Moves what is live out of segments that have been read.
    fn move_live(&mut self, cx: &mut Cx, victims: &[SegNo]) -> Result<(), Errno> {
        for number in victims {
            let Some(segment) = self.log.segments.get_mut(number.0 as usize) else { continue };
            let (age_ns, live) = (segment.modified_ns, segment.live_bytes);
            let written = std::mem::take(&mut segment.written);
            for entry in &written {
                if self.is_live(entry) {
                    self.take_up(cx, entry, age_ns);
                }
            }
            if let Some(segment) = self.log.segments.get_mut(number.0 as usize) {
                segment.written = written;
            }
            self.counters.cleaner.count(f64::from(live) / f64::from(self.g.ssize));
        }
        let before = self.counters.log_bytes;
        let moved = self.write_moved(cx);
        if moved.is_ok() {
            victims.iter().for_each(|number| self.log.moved_out(*number));
        }
        self.counters.cleaner.written_bytes += self.counters.log_bytes - before;
        for ino in self.cleaner.moving.inos() {
            if let Some(node) = self.inodes.get_mut(ino.0) {
                node.own.moving = 0;
            }
        }
        self.cleaner.moving.clear();
        debug_assert!(
            moved.is_err() || self.checkpoint_takes_bytes(cx) <= self.log.room_bytes(),
            "moving {} segments has left {} bytes of the log, and a checkpoint takes {}",
            victims.len(),
            self.log.room_bytes(),
            self.checkpoint_takes_bytes(cx)
        );
        moved
    }

    /// Something live is to be written.
    fn take_up(&mut self, cx: &mut Cx, entry: &Written, age_ns: i64) {
        let ino = Ino(entry.ino);
        if ino == IFILE {
            return self.touch_ifile(entry);
        }
        let Some(node) = self.inodes.get_mut(entry.ino) else { return };
        node.own.moving = self.cleaner.moving.file_moves(ino, node.own.moving, age_ns);
        let file = node.own.moving;
        let id = BlockId { ino, lbn: Lbn(entry.lbn.into()) };
        if entry.lbn == INODE || cx.cache().is_dirty(id) {
            // It is written with its file anyway.
            return;
        }
        if entry.lbn < 0 {
            let block = self.indirect_block(ino, entry.lbn.into(), entry.addr.0.into());
            cx.adopt(&block);
        }
        let from = (!cx.cache().contains(id)).then_some(entry.addr);
        self.cleaner.moving.block_moves(file, entry.lbn, from);
    }

    /// Something of the ifile moves with the next checkpoint.
    fn touch_ifile(&mut self, entry: &Written) {
        self.ifile.touch(u64::try_from(entry.lbn).unwrap_or(0));
        if let Some(way) = u64::try_from(-i64::from(entry.lbn)).ok().filter(|_| entry.lbn != INODE) {
            self.ifile.touch(way);
        }
    }

    /// Writes what has been taken up.
    fn write_moved(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        let inodes = &self.inodes;
        let by_age = self.options.sort == Sort::Age;
        self.cleaner.moving.arrange(by_age.then_some(|ino: Ino, age_ns: i64| {
            age_ns.min(inodes.get(ino.0).map_or(0, |node| ufs::live::date_of(node.d.mtime)))
        }));
        if self.cleaner.moving.inos().any(|ino| self.inodes.get(ino.0).is_some_and(|node| node.own.dirop)) {
            // Directory operations go together or not at all; then their files are like others.
            self.flush(cx, Scope::Operations, 0)?;
        }
        self.flush(cx, Scope::Moved, summary_flags::CLEAN)
    }
}
