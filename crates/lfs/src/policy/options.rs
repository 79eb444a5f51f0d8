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
    /// Not before the log is full. Then whoever needs room waits until all segments that are worth it are clean: the
    /// best case of the arithmetic of Seltzer et al. (USENIX 1995, section 4), which fills the disk, stops, cleans all
    /// of it and goes on.
    All,
}

/// How a partial segment goes to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Summary and blocks together, as 4.4BSD and NetBSD do it. The checksum of the summary is all that tells a torn
    /// write from a whole one, and it looks at four bytes of each block.
    #[default]
    Together,
    /// The blocks first, then a flush of the disk's cache, then the summary: safe on a disk that tears and reorders
    /// writes.
    Barrier,
}

/// When the indirect blocks that lead to new data are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Indirect {
    /// With the data, whenever that is written, as in 4.4BSD.
    #[default]
    With,
    /// When too much is dirty, data only, until indirect blocks are half of what may be dirty; `fsync`, `sync` and
    /// checkpoints write them. Until then a crash loses what they lead to (Seltzer et al., USENIX 1995, section 4, name
    /// the policy).
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
    /// Segments are emptied into the holes of others when those worth cleaning most are at least this full, percent; 0:
    /// never.
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

/// A key of the targets' grammar: its name, what its values are, and how one is shown.
struct Key {
    name: &'static str,
    values: Values,
    show: fn(&Options) -> Option<String>,
}

/// What a key may be set to, and how.
enum Values {
    /// One of these words; whether it is one.
    Words(&'static str, fn(&mut Options, &str) -> bool),
    /// A number within bounds, what it counts.
    Number(&'static str, u64, u64, fn(&mut Options, u64)),
    /// Bytes within bounds, in the units of every size.
    Size(u64, u64, fn(&mut Options, u64)),
}

impl Values {
    /// Sets a value; `false` if it is none.
    fn set(&self, options: &mut Options, value: &str) -> bool {
        let (number, least, most, set) = match *self {
            Values::Words(_, set) => return set(options, value),
            Values::Number(_, least, most, set) => (value.parse().ok(), least, most, set),
            Values::Size(least, most, set) => (units::size_bytes(value).ok(), least, most, set),
        };
        let within = number.filter(|n| (least..=most).contains(n));
        within.map(|n| set(options, n)).is_some()
    }

    /// What stands for them in a list of keys.
    fn word(&self) -> &'static str {
        match self {
            Values::Words(word, _) | Values::Number(word, ..) => word,
            Values::Size(..) => "SIZE",
        }
    }
}

/// As the end of a sentence: what a value has to be.
impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Values::Words(words, _) => write!(f, "one of {words}"),
            Values::Number(_, least, most, _) => write!(f, "a whole number from {least} to {most}"),
            Values::Size(least, most, _) => {
                write!(f, "a size from {} to {}", units::show::bytes(*least as f64), units::show::bytes(*most as f64))
            }
        }
    }
}

/// A key whose value is one of a table's words.
macro_rules! choice {
    ($name:literal, $values:literal, $field:ident, $table:ident) => {
        Key {
            name: $name,
            values: Values::Words($values, |o, v| pick(&mut o.$field, v, &$table)),
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
        values: Values::Number("PERCENT", 0, 90, |o, n| o.low_percent = n as u32),
        show: |o| o.cleans_ahead().then(|| o.low_percent.to_string()),
    },
    Key {
        name: "high",
        values: Values::Number("PERCENT", 1, 95, |o, n| o.high_percent = n as u32),
        show: |o| o.cleans_ahead().then(|| o.high_percent.to_string()),
    },
    Key {
        name: "plug",
        values: Values::Number("PERCENT|0", 0, 100, |o, n| o.plug_percent = n as u32),
        show: |o| Some(o.plug_percent.to_string()),
    },
    Key {
        name: "memory",
        values: Values::Size(1 << 16, 1 << 40, |o, n| o.memory_bytes = n),
        show: |o| Some(o.memory_bytes.to_string()),
    },
    Key {
        name: "idle",
        values: Values::Number("MILLISECONDS|0", 0, 86_400_000, |o, n| o.idle_ms = n),
        show: |o| o.cleans_ahead().then(|| o.idle_ms.to_string()),
    },
    Key {
        name: "dirty",
        values: Values::Number("PERCENT", 1, 90, |o, n| o.dirty_percent = n as u32),
        show: |o| Some(o.dirty_percent.to_string()),
    },
    Key {
        name: "segment",
        values: Values::Size(1 << 14, 1 << 30, |o, n| o.segment_bytes = n as u32),
        show: |o| (o.segment_bytes > 0).then(|| o.segment_bytes.to_string()),
    },
    Key {
        name: "bsize",
        values: Values::Size(512, 1 << 16, |o, n| o.block_bytes = n as u32),
        show: |o| (o.block_bytes > 0).then(|| o.block_bytes.to_string()),
    },
    Key {
        name: "fsize",
        values: Values::Size(512, 1 << 16, |o, n| o.fragment_bytes = n as u32),
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

impl Options {
    /// Sets what a word of a target says (`cleaner=greedy`, `segment=1M` …); `false` if there is no such key, or not
    /// that value.
    pub fn set(&mut self, word: &str) -> bool {
        word.split_once('=').is_some_and(|(key, value)| matches!(self.set_key(key, value), Some(Ok(()))))
    }

    /// Sets a key; `None` if there is no such key, or else what its value has to be, as the end of a sentence.
    pub fn set_key(&mut self, key: &str, value: &str) -> Option<Result<(), String>> {
        let values = &KEYS.iter().find(|known| known.name == key)?.values;
        Some(if values.set(self, value) { Ok(()) } else { Err(values.to_string()) })
    }

    /// Whether the cleaner runs before the log is full, so that when and how far it does means something.
    fn cleans_ahead(&self) -> bool {
        self.cleaning == Cleaning::Ahead
    }

    /// Of the keys that a target has given, one that would do nothing beside the others, and why.
    pub fn without_effect(&self, given: &[&str]) -> Option<(&'static str, &'static str)> {
        if self.cleaning != Cleaning::All {
            let below = self.high_percent < self.low_percent && ["low", "high"].iter().all(|key| given.contains(key));
            return below.then_some(("high", "it is below low=, where cleaning begins"));
        }
        if self.cleaner == CleanerPolicy::Off {
            return Some(("cleaning", "without a cleaner there is nothing to clean with"));
        }
        let key = ["low", "high", "idle"].into_iter().find(|key| given.contains(key))?;
        Some((key, "with cleaning=all, segments are cleaned when the log is full, and at no other time"))
    }

    /// The words there are, with what stands for their values: `cleaner=cost-benefit|greedy|netbsd|off` …
    pub fn words() -> impl Iterator<Item = String> {
        KEYS.iter().map(|key| format!("{}={}", key.name, key.values.word()))
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
        for (key, value, has_to_be) in [
            ("low", "91", "a whole number from 0 to 90"),
            ("memory", "1", "a size from 64 KiB to 1 TiB"),
            ("sort", "size", "one of age|found"),
        ] {
            assert_eq!(options.set_key(key, value), Some(Err(has_to_be.to_owned())), "{key}");
        }
        assert_eq!((options.set_key("realloc", "1"), again), (None, options));
        assert!(Options::words().any(|word| word == "order=together|barrier"));
    }
}
