//! What a power failure may leave on a disk, worked out from a log of the writes that it was asked for.
//!
//! The model of a drive: it executes requests in an order of its own, and a write sector by sector. A write that the
//! drive has reported as being on the medium is there. Of all others, those under way and those that only its cache
//! holds, any sectors may be there and any others not, until a flush that was asked for after their completion is
//! complete. A sector is written whole or not at all.
//!
//! A [`Point`] is a moment between two completions, and a state is what the disk holds if the power fails then:
//! everything that has settled, and a choice among the sectors that have not. Where few sectors are open every choice
//! is made; where there are many, the regular ones (nothing, everything, each write alone, each write missing, each
//! write cut at each sector) and others drawn by a seed. A state is laid over the disk in place and taken off again:
//! nothing is copied but the sectors in question. The same log, plan, point and choice give the same state, always
//! ([`StateId`]).

mod disk;
mod points;

pub use disk::{Disk, Recording};
pub use points::{Crash, Point};

use stats::random::mix;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Bytes that a drive writes whole or not at all.
pub const SECTOR_BYTES: usize = 512;

/// What discarded sectors hold afterwards: nobody may rely on anything.
const DISCARDED: [u8; SECTOR_BYTES] = [0xD1; SECTOR_BYTES];

/// A write that was asked for: whole sectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Where; a multiple of [`SECTOR_BYTES`].
    pub at_byte: u64,
    /// What; as many bytes as whole sectors have.
    pub bytes: Arc<[u8]>,
    /// Entries that the log had when the drive got the request: it is under way from then on.
    pub submitted_after: u64,
    /// Whether the drive has reported it as being on the medium, and not in a cache that the power failure empties.
    pub durable: bool,
}

/// An entry of a log: requests in the order in which they were completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A write.
    Write(Write),
    /// A flush: what was complete when the drive got it is on the medium.
    Flush {
        /// Entries that the log had when the drive got it.
        submitted_after: u64,
    },
    /// A discard, entered when the drive got it: what was there may be lost from then on.
    Discard {
        /// Where.
        at_byte: u64,
        /// How much.
        len_bytes: u64,
    },
}

impl Event {
    /// Bytes that it carries: what a log takes of memory.
    pub fn held_bytes(&self) -> u64 {
        match self {
            Event::Write(write) => write.bytes.len() as u64,
            Event::Flush { .. } | Event::Discard { .. } => 0,
        }
    }
}

/// When a completed write is on the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WriteCache {
    /// When the drive's model said so.
    #[default]
    AsReported,
    /// At its completion: the cache is off, or survives.
    Off,
    /// Not before a flush, whatever the drive's model said.
    On,
}

/// What may be on the disk of a write that is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnderWay {
    /// Nothing: requests are executed one by one, each at its completion.
    Nothing,
    /// All of it or nothing.
    Whole,
    /// Any of its sectors.
    #[default]
    Torn,
}

/// Which states there are, and how many of a point are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The drive's cache.
    pub cache: WriteCache,
    /// Writes under way, and those in the cache likewise.
    pub under_way: UnderWay,
    /// States of a point, at most; if it has no more, all of them.
    pub most_of_a_point: u32,
    /// Of the states that are drawn.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { cache: WriteCache::default(), under_way: UnderWay::default(), most_of_a_point: 64, seed: 1 }
    }
}

/// The name of a state: with the log and the plan it is made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId {
    /// Entries of the log that are complete.
    pub point: u32,
    /// Which of the point's choices.
    pub choice: u32,
}

/// `12.3`: the third choice at the moment when twelve requests are complete.
impl fmt::Display for StateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.point, self.choice)
    }
}

impl FromStr for StateId {
    type Err = String;

    fn from_str(text: &str) -> Result<StateId, String> {
        let parts = text.split_once('.').and_then(|(point, choice)| Some((point.parse().ok()?, choice.parse().ok()?)));
        let (point, choice) = parts.ok_or_else(|| format!("'{text}' names no state; they look like 12.3"))?;
        Ok(StateId { point, choice })
    }
}
