//! Replacement policies of a data cache, by name; what they do is in `pipeline/replacement`.

use serde::{Deserialize, Serialize};

/// How a data cache chooses what to evict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CachePolicy {
    /// The least recently used.
    #[default]
    Lru,
    /// In turn, but what was used since its last turn is passed over (CLOCK, second chance; Corbató, *A paging
    /// experiment with the Multics system*, 1968).
    Clock,
    /// As CLOCK, but what comes in is put at the end of the queue instead of behind the hand (Zhang et al., *SIEVE is
    /// simpler than LRU*, NSDI 2024, section 3).
    Sieve,
    /// Three queues: what is used only once leaves through a small one (Yang et al., *FIFO queues are all you need for
    /// cache eviction*, SOSP 2023, section 4).
    S3Fifo,
    /// Two lists, used once and used again, whose sizes follow from what was evicted too early (Megiddo and Modha,
    /// *ARC: a self-tuning, low overhead replacement cache*, FAST 2003, figure 4).
    Arc,
    /// Linux's inactive and active lists with refault distances (mm/vmscan.c, mm/workingset.c).
    Linux,
}

impl CachePolicy {
    /// All of them.
    pub const ALL: [CachePolicy; 6] = [
        CachePolicy::Lru,
        CachePolicy::Clock,
        CachePolicy::Sieve,
        CachePolicy::S3Fifo,
        CachePolicy::Arc,
        CachePolicy::Linux,
    ];

    /// Whether it is the one that profiles need not name.
    pub fn is_default(&self) -> bool {
        *self == CachePolicy::default()
    }

    /// As profiles, options and reports write it.
    pub fn name(self) -> &'static str {
        match self {
            CachePolicy::Lru => "lru",
            CachePolicy::Clock => "clock",
            CachePolicy::Sieve => "sieve",
            CachePolicy::S3Fifo => "s3-fifo",
            CachePolicy::Arc => "arc",
            CachePolicy::Linux => "linux",
        }
    }
}
