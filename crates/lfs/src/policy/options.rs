//! The choices, and how a target names them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Which segments are cleaned first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CleanerPolicy {
    /// None: what has become empty by itself is all there is to write to.
    Off,
    /// Those with the fewest live bytes.
    Greedy,
    /// Sprite's: free space, weighted by how long it is likely to stay free, for the cost.
    #[default]
    CostBenefit,
    /// NetBSD's form of the same.
    Netbsd,
}

/// In which order a cleaner writes what is live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// The oldest first, so that what is written together is of one age.
    #[default]
    Age,
    /// As it was found.
    Found,
}

/// When segments are cleaned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cleaning {
    /// Ahead of need: a daemon keeps segments clean, beside what processes do, between two marks and in idle time.
    #[default]
    Ahead,
    /// Not before the log is full. Then whoever needs room waits until all segments that are worth it are clean: the best case of the
    /// arithmetic of Seltzer et al. (USENIX 1995, section 4), which fills the disk, stops, cleans all of it and goes on.
    All,
}

/// How a partial segment goes to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Summary and blocks together, as 4.4BSD and NetBSD do it. The checksum of the summary is all that tells a torn write from a
    /// whole one, and it looks at four bytes of each block.
    #[default]
    Together,
    /// The blocks first, then a flush of the disk's cache, then the summary: safe on a disk that tears and reorders writes.
    Barrier,
}

/// When the indirect blocks that lead to new data are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Indirect {
    /// With the data, whenever that is written, as in 4.4BSD.
    #[default]
    With,
    /// When too much is dirty, data only, until indirect blocks are half of what may be dirty; `fsync`, `sync` and checkpoints write
    /// them. Until then a crash loses what they lead to (Seltzer et al., USENIX 1995, section 4, name the policy).
    Late,
}

/// Whether the disk is told which segments hold nothing any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discard {
    /// No, as in 4.4BSD and NetBSD.
    #[default]
    Off,
    /// As soon as a segment is clean: both superblocks that know it as empty are written.
    On,
}

/// How a log-structured file system works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Which segments are cleaned.
    pub cleaner: CleanerPolicy,
    /// When they are.
    pub cleaning: Cleaning,
    /// In which order.
    pub sort: Sort,
    /// How partial segments are written.
    pub order: Order,
    /// Whether segments that have become clean are discarded.
    pub discard: Discard,
    /// When indirect blocks are written.
    pub indirect: Indirect,
    /// Cleaning begins when no more than this share of all segments is clean, percent.
    pub low_percent: u32,
    /// And goes on until this share is.
    pub high_percent: u32,
    /// Segments are emptied into the holes of others when those worth cleaning most are at least this full, percent; 0: never.
    pub plug_percent: u32,
    /// Memory for the segments that are cleaned together.
    pub memory_bytes: u64,
    /// How long nobody may have called before the cleaner uses the time, milliseconds; 0: it does not.
    pub idle_ms: u64,
    /// Share of the buffer cache, percent, that may be dirty before everything is written.
    pub dirty_percent: u32,
    /// Bytes of a segment of a new file system; 0: as `mkfs` chooses.
    pub segment_bytes: u32,
    /// Bytes of its blocks; 0: as `mkfs` chooses.
    pub block_bytes: u32,
    /// Bytes of its fragments; 0: as `mkfs` chooses.
    pub fragment_bytes: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cleaner: CleanerPolicy::default(),
            cleaning: Cleaning::default(),
            sort: Sort::default(),
            order: Order::default(),
            discard: Discard::default(),
            indirect: Indirect::default(),
            low_percent: 8,
            high_percent: 12,
            plug_percent: 90,
            memory_bytes: 4 << 20,
            idle_ms: 2000,
            dirty_percent: 25,
            segment_bytes: 0,
            block_bytes: 0,
            fragment_bytes: 0,
        }
    }
}

/// A key of the targets' grammar: its name, what stands for its values, how one is set (whether it is one), how it is shown.
struct Key {
    name: &'static str,
    values: &'static str,
    set: fn(&mut Options, &str) -> bool,
    show: fn(&Options) -> Option<String>,
}

/// A key whose value is one of a table's words.
macro_rules! choice {
    ($name:literal, $values:literal, $field:ident, $table:ident) => {
        Key {
            name: $name,
            values: $values,
            set: |o, v| pick(&mut o.$field, v, &$table),
            show: |o| name(o.$field, &$table),
        }
    };
}

const KEYS: [Key; 15] = [
    choice!("cleaner", "cost-benefit|greedy|netbsd|off", cleaner, CLEANERS),
    choice!("cleaning", "ahead|all", cleaning, CLEANINGS),
    choice!("sort", "age|found", sort, SORTS),
    choice!("order", "together|barrier", order, ORDERS),
    choice!("discard", "off|on", discard, DISCARDS),
    choice!("indirect", "with|late", indirect, INDIRECT),
    Key {
        name: "low",
        values: "PERCENT",
        set: |o, v| number(v, 0, 90).map(|n| o.low_percent = n as u32).is_some(),
        show: |o| o.cleans_ahead().then(|| o.low_percent.to_string()),
    },
    Key {
        name: "high",
        values: "PERCENT",
        set: |o, v| number(v, 1, 95).map(|n| o.high_percent = n as u32).is_some(),
        show: |o| o.cleans_ahead().then(|| o.high_percent.to_string()),
    },
    Key {
        name: "plug",
        values: "PERCENT|0",
        set: |o, v| number(v, 0, 100).map(|n| o.plug_percent = n as u32).is_some(),
        show: |o| Some(o.plug_percent.to_string()),
    },
    Key {
        name: "memory",
        values: "SIZE",
        set: |o, v| size(v, 1 << 16, 1 << 40).map(|n| o.memory_bytes = n).is_some(),
        show: |o| Some(o.memory_bytes.to_string()),
    },
    Key {
        name: "idle",
        values: "MILLISECONDS|0",
        set: |o, v| number(v, 0, 86_400_000).map(|n| o.idle_ms = n).is_some(),
        show: |o| o.cleans_ahead().then(|| o.idle_ms.to_string()),
    },
    Key {
        name: "dirty",
        values: "PERCENT",
        set: |o, v| number(v, 1, 90).map(|n| o.dirty_percent = n as u32).is_some(),
        show: |o| Some(o.dirty_percent.to_string()),
    },
    Key {
        name: "segment",
        values: "SIZE",
        set: |o, v| size(v, 1 << 14, 1 << 30).map(|n| o.segment_bytes = n as u32).is_some(),
        show: |o| (o.segment_bytes > 0).then(|| o.segment_bytes.to_string()),
    },
    Key {
        name: "bsize",
        values: "SIZE",
        set: |o, v| size(v, 512, 1 << 16).map(|n| o.block_bytes = n as u32).is_some(),
        show: |o| (o.block_bytes > 0).then(|| o.block_bytes.to_string()),
    },
    Key {
        name: "fsize",
        values: "SIZE",
        set: |o, v| size(v, 512, 1 << 16).map(|n| o.fragment_bytes = n as u32).is_some(),
        show: |o| (o.fragment_bytes > 0).then(|| o.fragment_bytes.to_string()),
    },
];

const CLEANERS: [(&str, CleanerPolicy); 4] = [
    ("cost-benefit", CleanerPolicy::CostBenefit),
    ("greedy", CleanerPolicy::Greedy),
    ("netbsd", CleanerPolicy::Netbsd),
    ("off", CleanerPolicy::Off),
];
const CLEANINGS: [(&str, Cleaning); 2] = [("ahead", Cleaning::Ahead), ("all", Cleaning::All)];
const SORTS: [(&str, Sort); 2] = [("age", Sort::Age), ("found", Sort::Found)];
const INDIRECT: [(&str, Indirect); 2] = [("with", Indirect::With), ("late", Indirect::Late)];
const DISCARDS: [(&str, Discard); 2] = [("off", Discard::Off), ("on", Discard::On)];
const ORDERS: [(&str, Order); 2] = [("together", Order::Together), ("barrier", Order::Barrier)];

fn pick<T: Copy>(place: &mut T, value: &str, names: &[(&str, T)]) -> bool {
    let found = names.iter().find(|(name, _)| *name == value);
    if let Some((_, value)) = found {
        *place = *value;
    }
    found.is_some()
}

fn name<T: PartialEq>(value: T, names: &[(&str, T)]) -> Option<String> {
    names.iter().find(|(_, known)| *known == value).map(|(name, _)| (*name).to_owned())
}

fn number(text: &str, least: u64, most: u64) -> Option<u64> {
    text.parse().ok().filter(|n| (least..=most).contains(n))
}

/// Bytes, in the units of every size.
fn size(text: &str, least: u64, most: u64) -> Option<u64> {
    units::size_bytes(text).ok().filter(|bytes| (least..=most).contains(bytes))
}

impl Options {
    /// Sets what a word of a target says (`cleaner=greedy`, `segment=1M` …); `false` if there is no such key, or not that value.
    pub fn set(&mut self, word: &str) -> bool {
        let Some((key, value)) = word.split_once('=') else { return false };
        let mut changed = *self;
        let set = KEYS.iter().find(|known| known.name == key).is_some_and(|key| (key.set)(&mut changed, value));
        if set {
            *self = changed;
        }
        set
    }

    /// Whether the cleaner runs before the log is full, so that when and how far it does means something.
    fn cleans_ahead(&self) -> bool {
        self.cleaning == Cleaning::Ahead
    }

    /// Of the keys that a target has given, one that would do nothing beside the others, and why.
    pub fn without_effect(&self, given: &[&str]) -> Option<(&'static str, &'static str)> {
        if self.cleaning != Cleaning::All {
            return None;
        }
        if self.cleaner == CleanerPolicy::Off {
            return Some(("cleaning", "without a cleaner there is nothing to clean with"));
        }
        let key = ["low", "high", "idle"].into_iter().find(|key| given.contains(key))?;
        Some((key, "with cleaning=all, segments are cleaned when the log is full, and at no other time"))
    }

    /// The words there are, with what stands for their values: `cleaner=cost-benefit|greedy|netbsd|off` …
    pub fn words() -> impl Iterator<Item = String> {
        KEYS.iter().map(|key| format!("{}={}", key.name, key.values))
    }
}

/// As words of a target, every choice named.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |key: &Key| Some(format!("{}={}", key.name, (key.show)(self)?));
        f.write_str(&KEYS.iter().filter_map(shown).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let mut options = Options::default();
        for word in [
            "cleaner=greedy",
            "sort=found",
            "order=barrier",
            "discard=on",
            "low=20",
            "high=30",
            "segment=512k",
            "indirect=late",
        ] {
            assert!(options.set(word), "{word}");
        }
        assert_eq!(options.segment_bytes, 512 << 10);
        let mut again = Options::default();
        assert!(options.to_string().split(',').all(|word| again.set(word)), "{options}");
        assert_eq!(again, options);
        // What does nothing beside it is not said: pasted back, it would be refused.
        let mut all = Options::default();
        assert!(all.set("cleaning=all"));
        let said = all.to_string();
        assert!(
            said.contains("cleaning=all") && ["low=", "high=", "idle="].iter().all(|word| !said.contains(word)),
            "{said}"
        );
        for wrong in ["cleaner=best", "cleaner", "cleaning=some", "low=91", "segment=1", "bsize=4q", "realloc"] {
            assert!(!options.set(wrong), "{wrong}");
        }
        assert_eq!(again, options);
        assert!(Options::words().any(|word| word == "order=together|barrier"));
    }
}
