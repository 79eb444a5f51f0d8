//! The choices.

use crate::integrity::Integrity;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a file's blocks come to lie behind one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clusters {
    /// One block at a time, where each is preferred.
    Original,
    /// A cluster is moved into one piece when it has gathered and is not written yet.
    #[default]
    Realloc,
}

/// When a growing file goes to another cylinder group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupSwitch {
    /// At its first indirect block, the 13th of its blocks (4.4BSD), and then each `maxbpg` blocks.
    #[default]
    Switch,
    /// At its second indirect block ("noswitch"; BSD from about 2001 on).
    Noswitch,
    /// As before, with the first indirect block between the 12th and the 13th data block, and all other metadata in a
    /// zone of its own at the beginning of each group (FreeBSD from 2013 on).
    Metaspace,
}

/// Where the fragments at a file's end go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fragments {
    /// Into the smallest run of free fragments in the group that is long enough.
    #[default]
    Bestfit,
    /// Behind the file's last full block, if the block there is free; else as before.
    Smart,
}

/// Which group a new directory goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Directories {
    /// The one with the fewest directories among those with as many free inodes as the average.
    #[default]
    Original,
    /// Near its parent, within limits that keep room for its files.
    Dirpref,
}

/// Who may use the last `minfree` per cent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reserve {
    /// Nobody: callers are ordinary users.
    #[default]
    Kept,
    /// Everybody: callers are root.
    Open,
}

/// Whether the device is told of space that files give up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discard {
    /// No, as in 4.4BSD.
    #[default]
    Nodiscard,
    /// As soon as no inode on the disk has it (with `conventional`; with `noorder`, at once).
    Discard,
}

/// How what was left dirty goes to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LateWrites {
    /// Neighbours in one request (FreeBSD).
    #[default]
    Gathered,
    /// Block by block: only a cluster that has filled in sequence goes in one request (4.4BSD).
    Blockwise,
}

impl LateWrites {
    fn is_default(&self) -> bool {
        *self == LateWrites::default()
    }
}

/// With a log: when the data of new blocks is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataOrder {
    /// Before the log leads to them, so that no file shows what was in its blocks before.
    #[default]
    Ordered,
    /// Whenever it is.
    Unordered,
}

impl DataOrder {
    fn is_default(&self) -> bool {
        *self == DataOrder::default()
    }
}

/// How a file system allocates and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Options {
    pub clusters: Clusters,
    pub switch: GroupSwitch,
    pub fragments: Fragments,
    pub directories: Directories,
    pub integrity: Integrity,
    pub reserve: Reserve,
    pub discard: Discard,
    #[serde(skip_serializing_if = "DataOrder::is_default")]
    pub data: DataOrder,
    #[serde(skip_serializing_if = "LateWrites::is_default")]
    pub late: LateWrites,
    /// Of what is chosen at random: generations of inodes, and `dirpref` in the root.
    pub seed: u64,
}

/// A word of the targets' grammar, with what it sets.
type Word = (&'static str, fn(&mut Options));

const WORDS: [Word; 23] = [
    ("original", |o| o.clusters = Clusters::Original),
    ("realloc", |o| o.clusters = Clusters::Realloc),
    ("switch", |o| o.switch = GroupSwitch::Switch),
    ("noswitch", |o| o.switch = GroupSwitch::Noswitch),
    ("metaspace", |o| o.switch = GroupSwitch::Metaspace),
    ("bestfit", |o| o.fragments = Fragments::Bestfit),
    ("smartfrags", |o| o.fragments = Fragments::Smart),
    ("spread", |o| o.directories = Directories::Original),
    ("dirpref", |o| o.directories = Directories::Dirpref),
    ("conventional", |o| o.integrity = Integrity::Conventional),
    ("noorder", |o| o.integrity = Integrity::Noorder),
    ("softdep", |o| o.integrity = Integrity::Softdep),
    ("softdep+j", |o| o.integrity = Integrity::SoftdepJournal),
    ("journal=async", |o| o.integrity = Integrity::JournalAsync),
    ("journal=sync", |o| o.integrity = Integrity::JournalSync),
    ("ordered", |o| o.data = DataOrder::Ordered),
    ("unordered", |o| o.data = DataOrder::Unordered),
    ("user", |o| o.reserve = Reserve::Kept),
    ("root", |o| o.reserve = Reserve::Open),
    ("nodiscard", |o| o.discard = Discard::Nodiscard),
    ("discard", |o| o.discard = Discard::Discard),
    ("gathered", |o| o.late = LateWrites::Gathered),
    ("blockwise", |o| o.late = LateWrites::Blockwise),
];

impl Options {
    /// Sets what a word of a target stands for (`realloc`, `noswitch` …); `false` if there is no such word.
    pub fn set(&mut self, word: &str) -> bool {
        let found = WORDS.iter().find(|(known, _)| *known == word);
        if let Some((_, apply)) = found {
            apply(self);
        }
        found.is_some()
    }

    /// The words there are.
    pub fn words() -> impl Iterator<Item = &'static str> {
        WORDS.iter().map(|(word, _)| *word)
    }
}

/// As words of a target. Every choice is named, but the order of data only with a log, and late writes only where they
/// are not gathered.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A word is in force if setting it changes nothing.
        let in_force = WORDS.iter().filter(|(word, apply)| {
            let mut changed = *self;
            apply(&mut changed);
            // The order of data is a log's; gathering is not a choice of the file systems that images and profiles
            // name.
            let shown = (self.integrity.is_journaled() || !word.ends_with("ordered")) && *word != "gathered";
            changed == *self && shown
        });
        f.write_str(&in_force.map(|(word, _)| word.to_string()).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let mut options = Options::default();
        assert_eq!(options.to_string(), "realloc,switch,bestfit,spread,conventional,user,nodiscard");
        for word in ["original", "noswitch", "smartfrags", "dirpref", "noorder", "root", "discard"] {
            assert!(options.set(word));
        }
        assert_eq!(options.to_string(), "original,noswitch,smartfrags,dirpref,noorder,root,discard");
        let mut again = Options::default();
        assert!(options.to_string().split(',').all(|word| again.set(word)));
        assert_eq!(again, options);
        assert!(again.set("softdep") && again.set("softdep+j") && !again.set("journaled"));
        assert_eq!(again.to_string(), "original,noswitch,smartfrags,dirpref,softdep+j,root,discard");
        assert!(again.set("blockwise") && again.to_string().ends_with(",discard,blockwise") && again.set("gathered"));
        assert!(again.set("journal=sync") && again.set("unordered") && !again.set("journal"));
        assert_eq!(again.to_string(), "original,noswitch,smartfrags,dirpref,journal=sync,unordered,root,discard");
    }
}
