//! The options of `lfs:`: how it is made, and how it cleans.

use lfs::Options;
use lfs::mkfs::MkfsOptions;

/// A log-structured file system as a target asks for it; `None` is what [`MkfsOptions::new`] has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LfsOptions {
    /// How it writes and cleans, and its sizes.
    pub policy: Options,
    pub minfree: Option<u32>,
    /// Segments that are room for the cleaner.
    pub minfreeseg: Option<u32>,
    /// Segments that only the cleaner may write.
    pub resvseg: Option<u32>,
    /// Of its identity.
    pub seed: u64,
}

impl Default for LfsOptions {
    fn default() -> LfsOptions {
        LfsOptions { policy: Options::default(), minfree: None, minfreeseg: None, resvseg: None, seed: 1 }
    }
}

/// A key, and what it sets.
type Key = (&'static str, fn(&mut LfsOptions, u32));

/// Keys of the superblock's figures.
const KEYS: [Key; 3] = [
    ("minfree", |o, n| o.minfree = Some(n)),
    ("minfreeseg", |o, n| o.minfreeseg = Some(n)),
    ("resvseg", |o, n| o.resvseg = Some(n)),
];

/// Keys of the policies that say how it is made.
const SIZES: [&str; 3] = ["segment", "bsize", "fsize"];

impl LfsOptions {
    /// Whether a key says how a file system is made rather than how it works.
    pub(crate) fn is_of_making(key: &str) -> bool {
        SIZES.contains(&key) || KEYS.iter().any(|(known, _)| *known == key)
    }

    /// Sets a key; `None` if there is no such key, or else how far into the value something is wrong, and what.
    pub(crate) fn set_key(&mut self, key: &str, value: &str) -> Option<Result<(), (usize, String)>> {
        if let Some((_, apply)) = KEYS.iter().find(|(known, _)| *known == key) {
            let number = value.parse().map_err(|_| (0, format!("'{value}' is no whole number")));
            return Some(number.map(|n| apply(self, n)));
        }
        let set = self.policy.set_key(key, value)?;
        Some(set.map_err(|has_to_be| (0, format!("'{value}' is not {has_to_be}"))))
    }

    /// Everything accepted, for messages.
    pub(crate) fn accepted() -> String {
        let keys = KEYS.iter().map(|(key, _)| format!("{key}="));
        Options::words().chain(keys).collect::<Vec<_>>().join(", ")
    }

    /// What [`lfs::mkfs()`] is asked for.
    pub fn mkfs(&self, size_bytes: u64, time_s: i64) -> MkfsOptions {
        let base = MkfsOptions::new(size_bytes);
        let minfree = self.minfree.unwrap_or(base.minfree);
        let (minfreeseg, resvseg) = (self.minfreeseg, self.resvseg);
        self.policy.sizes(&MkfsOptions { minfree, minfreeseg, resvseg, seed: self.seed, time_s, ..base })
    }
}
