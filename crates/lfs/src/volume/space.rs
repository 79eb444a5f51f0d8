//! Whether there is room: for more in files, and in the log for what is in memory.
//!
//! Two limits keep the cleaner able to work. What files hold stays below [`capacity_frags`](Lfs::capacity_frags), so
//! that there are always segments worth cleaning. And nothing becomes dirty that the log could not take at once, with a
//! reserve left for the cleaner's own writes ([`make_room`](Lfs::make_room)); whoever would exceed that cleans first,
//! or is refused.
//!
//! How large these are follows from what cleaning costs. Let written segments be full to a share u. To move k of them
//! the log takes k·u segments and a checkpoint of q segments: at most the whole ifile, as moved files are anywhere in
//! the inode map. It gains k(1-u)-q. So k must be more than q/(1-u), and the reserve at least q·u/(1-u) + q = q/(1-u)
//! segments. With n segments, s of them not needed for what is live and x kept in reserve, 1-u = (s-x)/n, and x =
//! qn/(s-x): x = (s - √(s² - 4qn))/2, which has a solution from s = 2√(qn) on. That is how much of a disk cannot be
//! used, and half of it is then the reserve.

use super::{INODE_LBN, Lfs};
use crate::format::DINODE_BYTES;
use crate::policy::{CleanerPolicy, Cleaning, Indirect, Order};
use crate::segment::Scope;
use kernel::{Cx, Ino};
use posix::Errno;

/// Segments in reserve beside what cleaning takes: one that is begun, and one for what does not divide evenly.
const BESIDE: f64 = 2.0;
/// Passes of cleaning that one operation waits for at most.
const PASSES_MAX: u32 = 64;

impl Lfs {
    /// Fragments that files may hold.
    pub(crate) fn capacity_frags(&self) -> u64 {
        let unusable = 2.0 * (self.largest_reserve() + BESIDE);
        let segments = self.g.nseg.saturating_sub(self.sb.minfreeseg.max(unusable.ceil() as u32));
        let bytes = (u64::from(segments) * self.log.usable_bytes()).saturating_sub(self.lost_bytes);
        let by_segments = bytes >> self.g.fshift;
        by_segments.min(self.sb.dsize.into())
    }

    /// q: segments that a checkpoint takes if all of the ifile has changed.
    fn checkpoint_segments(&self) -> f64 {
        let bytes = with_overhead((self.ifile_blocks() + 3) * u64::from(self.g.bsize));
        bytes as f64 / self.log.usable_bytes() as f64
    }

    /// √(qn): the reserve that is needed on a full disk.
    fn largest_reserve(&self) -> f64 {
        (self.checkpoint_segments() * f64::from(self.g.nseg)).sqrt()
    }

    /// Whether holes are plugged. A summary that is written again must not be torn: with `order=barrier`, which is for
    /// disks that tear writes, only if it is one sector.
    pub(crate) fn plugs(&self) -> bool {
        let whole = self.options.order == Order::Together || u64::from(self.g.sumsize) <= kernel::Pbn::BYTES;
        self.options.plug_percent > 0 && self.options.cleaner != CleanerPolicy::Off && whole
    }

    fn ifile_blocks(&self) -> u64 {
        u64::from(self.g.cleansz + self.g.segtabsz + self.map.len() / self.g.ifpb.max(1))
    }

    /// Segments that what is held does not need.
    pub(crate) fn slack_segments(&self) -> f64 {
        let held = ((self.held_frags() << self.g.fshift) + self.lost_bytes) as f64;
        (f64::from(self.g.nseg) - held / self.log.usable_bytes() as f64).max(0.0)
    }

    /// Segments that only the cleaner and checkpoints may write to.
    pub(crate) fn reserve_segments(&self) -> u32 {
        let slack = (self.slack_segments() - BESIDE).max(0.0);
        let rest = slack * slack - 4.0 * self.checkpoint_segments() * f64::from(self.g.nseg);
        let by_cleaning = if rest <= 0.0 { f64::INFINITY } else { (slack - rest.sqrt()) / 2.0 };
        (by_cleaning.min(self.largest_reserve()) + BESIDE).ceil() as u32
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

    /// What a checkpoint takes now at most: less than is kept for it and for partial segments before it. One that is
    /// affordable is never refused; after a crash the log may have no more room than that.
    pub(crate) fn checkpoint_takes_bytes(&self, cx: &Cx) -> u64 {
        let files = self.dirty_files();
        // Files, directory operations, the ifile.
        let partials = if files == 0 { 1 } else { 3 };
        let around = partials * u64::from(self.g.sumsize + self.g.ibsize);
        with_overhead(cx.cache().dirty_bytes()) + files * 256 + around + self.checkpoint_need_bytes(files)
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
        let blocks = (u64::from(self.ifile.changed()) + files + 4).min(self.ifile_blocks()) + 3;
        with_overhead(blocks * u64::from(self.g.bsize))
    }

    /// What is kept for the cleaner.
    pub(crate) fn reserve_bytes(&self) -> u64 {
        (u64::from(self.reserve_segments()) * self.log.usable_bytes()).max(2 * self.kept_for_unmounting_bytes())
    }

    /// Makes the log able to take `bytes` more than what is dirty: by writing what is dirty, by checkpoints, and by
    /// cleaning, which whoever calls waits for.
    pub(crate) fn make_room(&mut self, cx: &mut Cx, bytes: u64, reserve: u64) -> Result<(), Errno> {
        self.cleaner.room_is_wanted();
        self.rest_if_enough_is_clean();
        let wanted = with_overhead(bytes) + reserve;
        if self.needed_bytes(cx) + wanted <= self.log.room_bytes() {
            return Ok(());
        }
        self.counters.cleaner.stalls += 1;
        if self.options.cleaning == Cleaning::All && self.options.cleaner != CleanerPolicy::Off {
            self.clean_all(cx)?;
            if self.needed_bytes(cx) + wanted <= self.log.room_bytes() {
                return Ok(());
            }
        }
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
    pub(crate) fn admit_blocks(&mut self, cx: &mut Cx, frags: u64, bytes: u64) -> Result<(), Errno> {
        self.may_take(frags)?;
        self.make_room(cx, bytes, self.reserve_bytes())
    }

    /// Room for an operation that does not, and may use some of what is kept back: a full disk can be emptied. Refused
    /// only if what it changes could never be written.
    #[inline]
    pub(crate) fn admit_change(&mut self, cx: &mut Cx, bytes: u64) -> Result<(), Errno> {
        let kept = self.kept_for_unmounting_bytes();
        if self.make_room(cx, bytes, self.reserve_bytes() / 2).is_ok()
            || self.needed_bytes(cx) + with_overhead(bytes) + kept <= self.log.room_bytes()
        {
            Ok(())
        } else {
            Err(Errno::ENOSPC)
        }
    }

    /// Without a cleaner nobody makes room for the checkpoint of unmounting once what is dirty has been written.
    fn kept_for_unmounting_bytes(&self) -> u64 {
        if self.options.cleaner != CleanerPolicy::Off {
            return 0;
        }
        let partials = 4 * u64::from(self.g.sumsize + self.g.ibsize);
        partials + self.checkpoint_need_bytes(u64::from(self.map.len()))
    }

    /// Writes what is dirty if it is too much.
    #[inline]
    pub(crate) fn write_if_much(&mut self, cx: &mut Cx) {
        if self.has_much_dirty(cx) {
            self.write_dirty(cx);
        }
    }

    /// Whether more is dirty than may be.
    pub(crate) fn has_much_dirty(&self, cx: &Cx) -> bool {
        cx.cache().dirty_bytes() > self.dirty_max_bytes(cx)
    }

    /// What may be dirty before it is written.
    fn dirty_max_bytes(&self, cx: &Cx) -> u64 {
        let share = cx.cache().capacity_bytes() / 100 * u64::from(self.options.dirty_percent);
        // No more than an eighth of the disk, however large the cache.
        let disk = u64::from(self.g.nseg) * u64::from(self.g.ssize) / 8;
        share.min(disk)
    }

    /// What is written when too much is dirty: with `indirect=late` data only, as long as that makes much clean.
    fn scope_of_dirty(&self, cx: &Cx) -> Scope<'static> {
        if self.options.indirect == Indirect::With {
            return Scope::All;
        }
        let indirect =
            |ino: &Ino| cx.cache().dirty_blocks(*ino).filter(|id| id.lbn.0 < 0 && id.lbn != INODE_LBN).count() as u64;
        let bytes = self.dirty.iter().map(indirect).sum::<u64>() * u64::from(self.g.bsize);
        if bytes > self.dirty_max_bytes(cx) / 2 { Scope::All } else { Scope::Data }
    }

    /// Before what only writes what is dirty: there is room for that and for the cleaner after it, if there can be.
    /// What is dirty has been let in: if there is no more than room for it, it is written all the same.
    pub(crate) fn keep_room(&mut self, cx: &mut Cx) -> bool {
        self.make_room(cx, 0, self.reserve_bytes() / 2).is_ok()
    }

    /// Writes everything dirty, with a checkpoint if the log has come far since the last.
    pub(crate) fn write_dirty(&mut self, cx: &mut Cx) {
        self.keep_room(cx);
        // `LFS_MAX_ACTIVE` of NetBSD.
        let far = self.log.since_checkpoint > 10;
        let written = match far {
            true => self.checkpoint(cx, kernel::Durability::Started),
            false => self.flush(cx, self.scope_of_dirty(cx), 0),
        };
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
