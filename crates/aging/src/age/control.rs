//! Control of the utilisation: which deletions are brought forward or held back, so that `df` shows what the plan says.
//!
//! What the files on the target should take is known to the byte from the plan; what the file system adds (directories,
//! inodes, trees of extents, its own reserve) is known from `statvfs` only. The controller therefore keeps one number,
//! the *overhead*: the use read less the files' lengths in whole blocks. It is read with the writers drained, at fixed
//! counts of operations, and the number that decisions are made with changes only when the reading has left it by more
//! than
//! [`OVERHEAD_SLACK`]: a reading that is off by a few blocks decides nothing. Between readings every decision follows
//! from the plan and that number alone, so it does not depend on how many writers there are.

use posix::FsUsage;
use serde::{Deserialize, Serialize};

/// Deviation of the estimated use, as a share of the room, at which control sets in; it brings the deviation to zero.
const DEADBAND: f64 = 0.0025;
/// How far the overhead may be from its last reading, as a share of the room, before decisions follow it.
const OVERHEAD_SLACK: f64 = 0.002;
/// The overhead decided with is a multiple of this share of the room.
const OVERHEAD_QUANTUM: f64 = 0.0005;
/// A file system's own use when empty counts towards the plan's once the plan asks for this many times as much.
const BASE_ABSORBED: f64 = 10.0;
/// Beside others' files, a use that differs from the files' own lengths by more than this share is put down to the
/// others, whose writing must not have our files deleted.
const BESIDE_OVERHEAD_MAX: f64 = 0.05;

/// What the controller must remember across a resumption.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Control {
    /// The plan's whole on this target, bytes.
    room_bytes: u64,
    /// The plan's whole in the plan, bytes.
    capacity_bytes: u64,
    /// Used before the first operation.
    base_bytes: u64,
    /// Whether other files share the file system.
    beside: bool,
    /// Use beyond the files' lengths, as decided with. Negative where holes make files smaller than they are long.
    overhead_bytes: i64,
    /// Deletions are being held back.
    pub(super) holding: bool,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing.
    Nothing,
    /// Win so many bytes.
    Win(u64),
}

impl Control {
    pub(super) fn new(capacity_bytes: u64, room_bytes: u64, beside: bool, usage: &FsUsage) -> Control {
        let base_bytes = used(usage);
        let overhead_bytes = signed(base_bytes);
        Control { room_bytes, capacity_bytes, base_bytes, beside, overhead_bytes, holding: false }
    }

    pub(super) fn base_bytes(&self) -> u64 {
        self.base_bytes
    }

    pub(super) fn room_bytes(&self) -> u64 {
        self.room_bytes
    }

    fn share_of_room(&self, share: f64) -> i64 {
        // Below 2^53 for any disk there is; the fraction of a byte is of no interest.
        (self.room_bytes as f64 * share) as i64
    }

    /// What `df` should show as used when the plan has so many bytes alive.
    ///
    /// On a file system taken whole that is the plan's share of it, and at least what the empty one shows: the base use
    /// counts in full at first and is absorbed into the share as that grows to [`BASE_ABSORBED`] times the base. Beside
    /// others' files, all of their use is added.
    pub(super) fn target_bytes(&self, planned_bytes: u64) -> u64 {
        let planned = self.planned_share(planned_bytes) * self.room_bytes as f64;
        let base = self.base_bytes as f64;
        let base = if self.beside { base } else { (base - planned / BASE_ABSORBED).max(0.0) };
        (planned + base) as u64
    }

    /// The plan's use as a share of its capacity.
    pub(super) fn planned_share(&self, planned_bytes: u64) -> f64 {
        if self.capacity_bytes == 0 { 0.0 } else { planned_bytes as f64 / self.capacity_bytes as f64 }
    }

    /// Bytes used, as far as known: with so many bytes of files on the target.
    pub(super) fn estimate_bytes(&self, present_bytes: u64) -> u64 {
        present_bytes.saturating_add_signed(self.overhead_bytes)
    }

    /// A use of the target as a share of the plan's whole: of `df`'s total, or beside others of the room and above the
    /// base.
    pub(super) fn share(&self, used_bytes: u64) -> f64 {
        let own = if self.beside { used_bytes.saturating_sub(self.base_bytes) } else { used_bytes };
        if self.room_bytes == 0 { 0.0 } else { own as f64 / self.room_bytes as f64 }
    }

    /// Looks at the estimated use after an operation.
    pub(super) fn look(&mut self, planned_bytes: u64, present_bytes: u64) -> Need {
        let excess = signed(self.estimate_bytes(present_bytes)) - signed(self.target_bytes(planned_bytes));
        let deadband = self.share_of_room(DEADBAND);
        if excess >= 0 {
            self.holding = false;
        } else if excess < -deadband {
            self.holding = true;
        }
        if excess > deadband { Need::Win(excess.unsigned_abs()) } else { Need::Nothing }
    }

    /// Takes a reading of the use; answers whether decisions follow it from here on.
    pub(super) fn read(&mut self, used_bytes: u64, present_bytes: u64) -> bool {
        let read = signed(used_bytes) - signed(present_bytes);
        let own = (present_bytes as f64 * BESIDE_OVERHEAD_MAX) as i64;
        let base = signed(self.base_bytes);
        let read = if self.beside { read.clamp(base.saturating_sub(own), base.saturating_add(own)) } else { read };
        if (read - self.overhead_bytes).abs() <= self.share_of_room(OVERHEAD_SLACK) {
            return false;
        }
        let quantum = self.share_of_room(OVERHEAD_QUANTUM).max(1);
        self.overhead_bytes = read.div_euclid(quantum).saturating_mul(quantum) + quantum / 2;
        true
    }
}

/// Bytes in use, root's reserve counted as free, as `df` does.
pub(super) fn used(usage: &FsUsage) -> u64 {
    usage.total_bytes.saturating_sub(usage.free_bytes)
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
