//! What a check found.

use crate::RolledForward;
use serde::Serialize;

/// Problems listed; more are only counted.
const LISTED: usize = 10_000;

/// The parts of a check, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The superblocks, and which of them counts.
    Superblocks,
    /// What was written after the checkpoint.
    RollForward,
    /// Inodes and the blocks they hold.
    Inodes,
    /// Directories, names, link counts.
    Names,
    /// The list of free inodes.
    FreeInodes,
    /// Segment usage, and whether summaries describe what is live.
    Segments,
    /// Counters of the superblock.
    Counters,
}

impl Phase {
    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Phase::Superblocks => "superblocks",
            Phase::RollForward => "roll-forward",
            Phase::Inodes => "inodes and blocks",
            Phase::Names => "names and links",
            Phase::FreeInodes => "free inodes",
            Phase::Segments => "segments",
            Phase::Counters => "counters",
        }
    }
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where in the check it came up.
    pub phase: Phase,
    /// Which kind, as a word for programs.
    pub kind: &'static str,
    /// The inode concerned.
    pub ino: Option<u32>,
    /// The segment concerned.
    pub segment: Option<u32>,
    /// What is wrong.
    pub message: String,
}

/// What is in a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Contents {
    /// Files of every kind but directories; the ifile is not one.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Fragments of files, directories and the ifile, indirect blocks among them.
    pub data_frags: u64,
    /// Fragments of summaries and inode blocks in dirty segments, current or not.
    pub meta_frags: u64,
    /// Segments with something in them.
    pub dirty_segments: u64,
    /// Segments that can be written.
    pub clean_segments: u64,
    /// Live bytes of all segments: data and inodes.
    pub live_bytes: u64,
    /// Fragments that would be free if nothing were held back: space less data, metadata and label.
    pub free_frags: i64,
    /// Fragments that could be written before cleaning, as fsck_lfs counts them.
    pub available_frags: i64,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Byte of the superblock that was used.
    pub superblock_at: u64,
    /// Serial numbers of the first two superblocks; `None` where one is damaged.
    pub serials: [Option<u64>; 2],
    /// Bytes of a fragment.
    pub fsize: u32,
    /// Whether the superblock says that the file system was unmounted cleanly.
    pub marked_clean: bool,
    /// Partial segments that follow the checkpoint.
    pub after_checkpoint: u64,
    /// What roll-forward did with them, in memory.
    pub rolled_forward: RolledForward,
    /// What is wrong, in the order found; at most 10,000.
    pub problems: Vec<Problem>,
    /// How many problems there are in all.
    pub problem_count: u64,
    /// What is there.
    pub contents: Contents,
}

impl Report {
    /// Whether nothing is wrong with the structure. An image that was not unmounted can be without problems: mounting
    /// it rolls forward.
    pub fn is_clean(&self) -> bool {
        self.problem_count == 0
    }

    /// The state that the file system was left in, in a sentence.
    pub fn state(&self) -> String {
        match (self.marked_clean, self.after_checkpoint) {
            (true, 0) => "unmounted cleanly".to_owned(),
            (true, n) => format!("marked as unmounted cleanly, with {n} partial segments after the checkpoint"),
            (false, 1) => "not unmounted, 1 partial segment after the checkpoint".to_owned(),
            (false, n) => format!("not unmounted, {n} partial segments after the checkpoint"),
        }
    }

    pub(super) fn add(&mut self, problem: Problem) {
        self.problem_count += 1;
        if self.problems.len() < LISTED {
            self.problems.push(problem);
        }
    }
}
