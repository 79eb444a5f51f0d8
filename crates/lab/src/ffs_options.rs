//! The options of `ffs:`: how it is made, and how it allocates.

use ffs::mkfs::{DiskGeometry, GroupSize, MkfsOptions};
use ffs::policy::Options;
use ffs::{Endian, Version};
use posix::grammar;

/// How large cylinder groups are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Groups {
    /// So many of equal size.
    Count(u32),
    /// So many cylinders each.
    Cylinders(u32),
    /// So many fragments each.
    Fragments(u32),
}

/// A Fast File System as a target asks for it; `None` is what [`MkfsOptions::new`] has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FfsOptions {
    /// Where things go, and what is waited for.
    pub policy: Options,
    pub version: Version,
    pub endian: Endian,
    pub bsize: Option<u32>,
    pub fsize: Option<u32>,
    pub minfree: Option<u32>,
    pub maxcontig: Option<u32>,
    pub maxbpg: Option<u32>,
    pub rotdelay: Option<u32>,
    pub density: Option<u32>,
    pub ipg: Option<u32>,
    pub groups: Option<Groups>,
    pub heads: Option<u32>,
    pub sectors: Option<u32>,
    pub rpm: Option<u32>,
    pub positions: Option<u32>,
    pub avgfilesize: Option<u32>,
    pub avgfpdir: Option<u32>,
    /// Bytes of a log; `None` for what is usual where the mode needs one.
    pub log: Option<u32>,
    /// Whether space rather than time is saved.
    pub space: bool,
}

impl Default for FfsOptions {
    fn default() -> FfsOptions {
        FfsOptions {
            policy: Options { seed: 1, ..Options::default() },
            version: Version::Ufs1,
            endian: Endian::Little,
            bsize: None,
            fsize: None,
            minfree: None,
            maxcontig: None,
            maxbpg: None,
            rotdelay: None,
            density: None,
            ipg: None,
            groups: None,
            heads: None,
            sectors: None,
            rpm: None,
            positions: None,
            avgfilesize: None,
            avgfpdir: None,
            log: None,
            space: false,
        }
    }
}

/// A word with what it sets.
type Word = (&'static str, fn(&mut FfsOptions));

/// Words that say how a file system is made.
const WORDS: [Word; 6] = [
    ("ufs1", |o| o.version = Version::Ufs1),
    ("ufs2", |o| o.version = Version::Ufs2),
    ("little", |o| o.endian = Endian::Little),
    ("big", |o| o.endian = Endian::Big),
    ("time", |o| o.space = false),
    ("space", |o| o.space = true),
];

/// A key, whether its value is a size (else a plain number), and what it sets.
type Key = (&'static str, bool, fn(&mut FfsOptions, u32));

/// Keys that say how a file system is made.
const KEYS: [Key; 18] = [
    ("bsize", true, |o, n| o.bsize = Some(n)),
    ("fsize", true, |o, n| o.fsize = Some(n)),
    ("minfree", false, |o, n| o.minfree = Some(n)),
    ("maxcontig", false, |o, n| o.maxcontig = Some(n)),
    ("maxbpg", false, |o, n| o.maxbpg = Some(n)),
    ("rotdelay", false, |o, n| o.rotdelay = Some(n)),
    ("density", true, |o, n| o.density = Some(n)),
    ("ipg", false, |o, n| o.ipg = Some(n)),
    ("groups", false, |o, n| o.groups = Some(Groups::Count(n))),
    ("cpg", false, |o, n| o.groups = Some(Groups::Cylinders(n))),
    ("fpg", false, |o, n| o.groups = Some(Groups::Fragments(n))),
    ("heads", false, |o, n| o.heads = Some(n)),
    ("sectors", false, |o, n| o.sectors = Some(n)),
    ("rpm", false, |o, n| o.rpm = Some(n)),
    ("positions", false, |o, n| o.positions = Some(n)),
    ("avgfilesize", true, |o, n| o.avgfilesize = Some(n)),
    ("avgfpdir", false, |o, n| o.avgfpdir = Some(n)),
    ("log", true, |o, n| o.log = Some(n)),
];

/// Keys of which a target may have one.
const EXCLUSIVE: [&[&str]; 2] = [&["groups", "cpg", "fpg"], &["density", "ipg"]];

impl FfsOptions {
    /// Sets what a word stands for; `false` if there is no such word.
    pub(crate) fn set_word(&mut self, word: &str) -> bool {
        let found = WORDS.iter().find(|(known, _)| *known == word);
        if let Some((_, apply)) = found {
            apply(self);
        }
        found.is_some() || self.policy.set(word)
    }

    /// Whether a word says how a file system is made rather than how it works.
    pub(crate) fn is_of_making(word: &str) -> bool {
        WORDS.iter().any(|(known, _)| *known == word) || KEYS.iter().any(|(known, ..)| *known == word)
    }

    /// Sets a key; `None` if there is no such key, or else how far into the value something is wrong, and what.
    pub(crate) fn set_key(&mut self, key: &str, value: &str) -> Option<Result<(), (usize, String)>> {
        // A choice of the policy's words that has a value.
        if key == "journal" {
            let known = self.policy.set(&format!("{key}={value}"));
            return Some(if known { Ok(()) } else { Err((0, format!("'{value}' is neither async nor sync"))) });
        }
        let (_, is_size, apply) = KEYS.iter().find(|(known, ..)| *known == key)?;
        let number = if *is_size {
            grammar::parse_size(value).map_err(|(offset, problem)| (offset, problem.to_owned()))
        } else {
            value.parse().map_err(|_| (0, format!("'{value}' is no whole number")))
        };
        let narrow = number.and_then(|n: u64| u32::try_from(n).map_err(|_| (0, format!("{n} is too much"))));
        Some(narrow.map(|n| apply(self, n)))
    }

    /// Whether a new file system gets a log, and of how many bytes if that was said.
    pub fn log(&self) -> Option<Option<u64>> {
        let wanted = self.log.is_some() || self.policy.integrity.has_log();
        wanted.then_some(self.log.map(u64::from))
    }

    /// The other key that was given and does not go with this one.
    pub(crate) fn excluded<'a>(key: &str, given: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
        let sets = EXCLUSIVE.iter().filter(|set| set.contains(&key));
        sets.flat_map(|set| given.clone().filter(|other| set.contains(other) && *other != key)).next()
    }

    /// Everything accepted, for messages.
    pub(crate) fn accepted() -> String {
        let words: Vec<&str> = Options::words().chain(WORDS.iter().map(|(word, _)| *word)).collect();
        let keys: Vec<String> = KEYS.iter().map(|(key, ..)| format!("{key}=")).collect();
        format!("the words {}; and {}", words.join(", "), keys.join(", "))
    }

    /// What [`ffs::mkfs()`] is asked for.
    pub fn mkfs(&self, size_bytes: u64, time_s: i64) -> MkfsOptions {
        let base = MkfsOptions::new(self.version, size_bytes);
        let bsize = self.bsize.unwrap_or(base.bsize);
        let fsize = self.fsize.unwrap_or((bsize / 8).max(512));
        let disk = self.heads.zip(self.sectors).map(|(heads, sectors)| DiskGeometry {
            heads,
            sectors,
            rpm: self.rpm.unwrap_or(3600),
            positions: self.positions.unwrap_or(8),
        });
        let group = self.groups.map(|groups| match groups {
            Groups::Cylinders(n) => GroupSize::Cylinders(n),
            Groups::Fragments(n) => GroupSize::Fragments(n),
            Groups::Count(n) => {
                let frags = (size_bytes / u64::from(fsize.max(1))).div_ceil(u64::from(n.max(1)));
                let whole = frags.next_multiple_of(u64::from((bsize / fsize.max(1)).max(1)));
                GroupSize::Fragments(u32::try_from(whole).unwrap_or(u32::MAX))
            }
        });
        MkfsOptions {
            bsize,
            fsize,
            endian: self.endian,
            minfree: self.minfree.unwrap_or(base.minfree),
            maxbpg: self.maxbpg,
            maxcontig: self.maxcontig,
            rotdelay: self.rotdelay.unwrap_or(base.rotdelay),
            avgfilesize: self.avgfilesize.unwrap_or(base.avgfilesize),
            avgfpdir: self.avgfpdir.unwrap_or(base.avgfpdir),
            group,
            ipg: self.ipg,
            density: self.density,
            disk,
            optimize_space: self.space,
            seed: self.policy.seed,
            time_s,
            blank: true,
            ..base
        }
    }
}
