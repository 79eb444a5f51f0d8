//! What a power failure may leave of a write, and how many of the states are looked at.

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
