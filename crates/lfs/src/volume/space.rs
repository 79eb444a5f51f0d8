//! Whether there is room: for more in files, and in the log for what is in memory.
//!
//! Two limits keep the cleaner able to work. What files hold stays below [`capacity_frags`](Lfs::capacity_frags), so that
//! there are always segments worth cleaning. And nothing becomes dirty that the log could not take at once, with a reserve left for the
//! cleaner's own writes ([`make_room`](Lfs::make_room)); whoever would exceed that cleans first, or is refused.

use super::Lfs;
use crate::format::DINODE_BYTES;
use crate::segment::Scope;
use kernel::Cx;
use posix::Errno;

/// Segments that only the cleaner and checkpoints may write to.
const RESERVED_SEGMENTS: u64 = 3;
/// Passes of cleaning that one operation waits for at most.
const PASSES_MAX: u32 = 64;

impl Lfs {
    /// Fragments that files may hold.
    pub(crate) fn capacity_frags(&self) -> u64 {
        let segments = u64::from(self.g.nseg.saturating_sub(self.sb.minfreeseg.max(RESERVED_SEGMENTS as u32 + 2)));
        // Where a segment has few blocks, a few blocks less in each: a full disk's segments must be worth cleaning.
        let bytes = self.log.usable_bytes().saturating_sub(4 * u64::from(self.g.bsize));
        let by_segments = (segments * bytes) >> self.g.fshift;
        by_segments.min(self.sb.dsize.into())
    }

    /// Fragments that are held, inodes included.
    pub(crate) fn held_frags(&self) -> u64 {
        let inodes = u64::from(self.inodes.len()) * u64::from(DINODE_BYTES);
        self.used_frags + inodes.div_ceil(self.g.fsize.into())
    }

    /// Fragments that files may still take.
    pub(crate) fn free_frags(&self) -> u64 {
        self.capacity_frags().saturating_sub(self.held_frags())
    }

    /// `ENOSPC` if a file may not take so many more fragments.
    pub(crate) fn may_take(&self, frags: u64) -> Result<(), Errno> {
        if self.held_frags() + frags > self.capacity_frags() { Err(Errno::ENOSPC) } else { Ok(()) }
    }

    /// What the log needs if everything that is dirty is written now, and a checkpoint after it.
    pub(crate) fn needed_bytes(&self, cx: &Cx) -> u64 {
        self.dirty_need_bytes(cx) + self.checkpoint_need_bytes(self.dirty_files())
    }

    /// The same without a checkpoint.
    pub(crate) fn dirty_need_bytes(&self, cx: &Cx) -> u64 {
        let few = 4 * u64::from(self.g.sumsize + self.g.ibsize);
        with_overhead(cx.cache().dirty_bytes()) + self.dirty_files() * 256 + few
    }

    pub(crate) fn dirty_files(&self) -> u64 {
        (self.dirty.len() + self.dead.len()) as u64
    }

    /// What a checkpoint takes when so many files have been written before it.
    pub(crate) fn checkpoint_need_bytes(&self, files: u64) -> u64 {
        // The blocks that have changed, and those that writing files changes; with what is above them.
        let all = u64::from(self.g.cleansz + self.g.segtabsz + self.map.len() / self.g.ifpb.max(1));
        let blocks = (u64::from(self.ifile.changed()) + files + 4).min(all) + 3;
        with_overhead(blocks * u64::from(self.g.bsize))
    }

    /// What is kept for the cleaner.
    pub(crate) fn reserve_bytes(&self) -> u64 {
        RESERVED_SEGMENTS * self.log.usable_bytes()
    }

    /// Makes the log able to take `bytes` more than what is dirty: by writing what is dirty, by checkpoints, and by cleaning,
    /// which whoever calls waits for.
    pub(crate) fn make_room(&mut self, cx: &mut Cx, bytes: u64, reserve: u64) -> Result<(), Errno> {
        self.cleaner.room_is_wanted();
        let wanted = with_overhead(bytes) + reserve;
        if self.needed_bytes(cx) + wanted <= self.log.room_bytes() {
            return Ok(());
        }
        self.counters.cleaner.stalls += 1;
        let mut need = false;
        for _ in 0..PASSES_MAX {
            let before = self.log.room_bytes().saturating_sub(self.needed_bytes(cx));
            self.clean_for_room(cx, need)?;
            let after = self.log.room_bytes().saturating_sub(self.needed_bytes(cx));
            if after >= wanted {
                return Ok(());
            }
            if need && after <= before {
                break;
            }
            need = true;
        }
        Err(Errno::ENOSPC)
    }

    /// Room for an operation that makes files hold more.
    #[inline]
    pub(crate) fn admit(&mut self, cx: &mut Cx, frags: u64, bytes: u64) -> Result<(), Errno> {
        self.may_take(frags)?;
        self.make_room(cx, bytes, self.reserve_bytes())
    }

    /// Room for an operation that does not, and may use some of what is kept back: a full disk can be emptied. Refused only if
    /// what it changes could never be written.
    #[inline]
    pub(crate) fn admit_change(&mut self, cx: &mut Cx, bytes: u64) -> Result<(), Errno> {
        if self.make_room(cx, bytes, self.log.usable_bytes()).is_ok()
            || self.needed_bytes(cx) + with_overhead(bytes) <= self.log.room_bytes()
        {
            Ok(())
        } else {
            Err(Errno::ENOSPC)
        }
    }

    /// An operation is done: writes what is dirty if it is too much.
    #[inline]
    pub(crate) fn settle(&mut self, cx: &mut Cx) {
        let dirty = cx.cache().dirty_bytes();
        let share = cx.cache().capacity_bytes() / 100 * u64::from(self.options.dirty_percent);
        // No more than an eighth of the disk, however large the cache.
        let disk = u64::from(self.g.nseg) * u64::from(self.g.ssize) / 8;
        if dirty > share.min(disk) {
            self.write_dirty(cx);
        }
    }

    /// Before what only writes what is dirty: there is room for that and for the cleaner after it, if there can be.
    /// What is dirty has been let in: if there is no more than room for it, it is written all the same.
    pub(crate) fn keep_room(&mut self, cx: &mut Cx) -> bool {
        self.make_room(cx, 0, 2 * self.log.usable_bytes()).is_ok()
    }

    /// Writes everything dirty, with a checkpoint if the log has come far since the last.
    pub(crate) fn write_dirty(&mut self, cx: &mut Cx) {
        self.keep_room(cx);
        // `LFS_MAX_ACTIVE` of NetBSD.
        let far = self.log.since_checkpoint > 10;
        let written =
            if far { self.checkpoint(cx, kernel::Durability::Started) } else { self.flush(cx, Scope::All, 0) };
        if written.is_err() {
            // The log is full: what is dirty stays so until there is room.
            let _ = self.clean_for_room(cx, true);
        }
    }
}

/// So many bytes with summaries, inode blocks and what is left over at the ends of segments.
pub(crate) fn with_overhead(bytes: u64) -> u64 {
    bytes + bytes / 8
}
