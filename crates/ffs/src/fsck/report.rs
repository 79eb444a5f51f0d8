//! What a check found.

use crate::format::{Endian, Version};
use crate::image::Located;
use serde::Serialize;

/// Problems listed; more are only counted.
const LISTED: usize = 10_000;

/// The phases of BSD's fsck, with the superblock before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Finding and checking the superblock.
    Superblock,
    /// Phase 1: blocks and sizes.
    BlocksAndSizes,
    /// Phase 1b: blocks in more than one place.
    Duplicates,
    /// Phase 2: path names.
    PathNames,
    /// Phase 3: connectivity.
    Connectivity,
    /// Phase 4: link counts.
    LinkCounts,
    /// Phase 5: cylinder groups.
    Groups,
}

impl Phase {
    /// As fsck announces it.
    pub fn title(self) -> &'static str {
        match self {
            Phase::Superblock => "superblock",
            Phase::BlocksAndSizes => "1 blocks and sizes",
            Phase::Duplicates => "1b duplicates",
            Phase::PathNames => "2 path names",
            Phase::Connectivity => "3 connectivity",
            Phase::LinkCounts => "4 link counts",
            Phase::Groups => "5 cylinder groups",
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
    /// The byte in the image concerned.
    pub at_byte: Option<u64>,
    /// What is wrong.
    pub message: String,
    /// What a repair does about it; `None` where nothing can be done.
    pub repair: Option<String>,
}

impl Problem {
    /// The number that a part of the message is followed by.
    fn number_behind(&self, part: &str) -> Option<i64> {
        let (_, rest) = self.message.split_once(part)?;
        rest.split(' ').next()?.parse().ok()
    }
}

/// What is in a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Contents {
    /// Files of every kind but directories.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Fragments of files and directories, indirect blocks among them.
    pub used_frags: u64,
    /// Free fragments in wholly free blocks and outside them.
    pub free_frags: u64,
    /// Free fragments outside wholly free blocks.
    pub free_in_part_blocks: u64,
    /// Wholly free blocks.
    pub free_blocks: u64,
    /// `free_in_part_blocks` as a share of all data fragments, which is what fsck calls fragmentation.
    pub fragmentation: f64,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Format.
    pub version: Version,
    /// Byte order.
    pub endian: Endian,
    /// Bytes of a fragment.
    pub fsize: u32,
    /// Bytes of a block.
    #[serde(skip)]
    pub(crate) bsize: u32,
    /// Byte of the superblock that was used.
    pub superblock_at: u64,
    /// Whether the superblock says that the file system was unmounted cleanly.
    pub marked_clean: bool,
    /// What is wrong, in the order found; at most 10,000.
    pub problems: Vec<Problem>,
    /// How many problems there were in all.
    pub problem_count: u64,
    /// Fragments that a file has and a group's map does not, but for those that the check has taken itself.
    #[serde(skip)]
    pub(crate) unmarked_frags: u64,
    /// How many of them no repair exists for.
    pub unrepaired: u64,
    /// What is there after the repairs.
    pub contents: Contents,
}

impl Report {
    /// Of a file system that has not been looked at yet.
    pub(super) fn new(chosen: &Located) -> Report {
        Report {
            version: chosen.geometry.layout.version,
            endian: chosen.geometry.endian(),
            fsize: chosen.geometry.fsize,
            bsize: chosen.geometry.bsize,
            superblock_at: chosen.at_byte,
            marked_clean: super::superblock::is_marked_clean(&chosen.sb),
            problems: Vec::new(),
            problem_count: 0,
            unmarked_frags: 0,
            unrepaired: 0,
            contents: Contents::default(),
        }
    }

    /// Whether nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.problem_count == 0
    }

    /// How many problems were repaired.
    pub fn repaired(&self) -> u64 {
        self.problem_count - self.unrepaired
    }

    /// The first problem that Soft Updates promise that a crash cannot leave: one that is more than blocks or inodes marked as used
    /// that are not, a link count that is too high, and what comes with these (docs/soft-updates.md).
    pub fn beyond_soft_updates(&self) -> Option<&Problem> {
        // The check's own doing: `lost+found` was free until then, and counts the directories that are put into it; one of them
        // that has no block gets one.
        let made = i64::from(self.problems.iter().any(|problem| problem.kind == "lost+found"));
        let orphan = |problem: &&Problem| problem.kind == "no-name" && problem.message.starts_with("directory");
        let orphans = self.problems.iter().filter(orphan).count() as i64;
        self.problems.iter().find(|problem| {
            let number = |part| problem.number_behind(part).unwrap_or(i64::MAX);
            match problem.kind {
                // In a crash they are as they were when the superblock or the group was last written.
                "totals" | "summary" | "counts" | "clusters" | "rotation" => false,
                // An inode whose name was not there yet, or is gone already; the second name of a directory that is being moved.
                "no-name" | "lost+found" | "unlinked" | "directory-link" => false,
                // Indirect blocks are written apart from their inode.
                "block-count" => false,
                "pointer" => !problem.message.contains("beyond the end"),
                // It has no name, and is in `lost+found` now; or it was being moved, and keeps its old one.
                "dots" | "directory-hole" | "entry-type" => {
                    // What its `..` led to may be gone, and the number another inode's.
                    if problem.kind == "entry-type" && !problem.message.starts_with(".. ") {
                        return true;
                    }
                    let of_it = format!("second name of directory {}", problem.ino.unwrap_or(0));
                    !self.problems.iter().any(|other| match other.kind {
                        "no-name" => other.ino == problem.ino,
                        "directory-link" => other.message.ends_with(&of_it),
                        _ => false,
                    })
                }
                "size" => {
                    let last = number("its last block, ");
                    number("size ") > last.saturating_mul(self.bsize.into())
                }
                "inode-map" => number(": ") > made,
                "block-map" => self.unmarked_frags > 0 && number(": ") > 0,
                "link-count" => number("it has ").saturating_sub(number("link count ")) > orphans + made,
                _ => true,
            }
        })
    }

    pub(super) fn add(&mut self, problem: Problem) {
        if problem.repair.is_none() && self.problems.contains(&problem) {
            return; // An earlier pass could do nothing about it either.
        }
        self.problem_count += 1;
        if problem.repair.is_none() {
            self.unrepaired += 1;
        }
        if self.problems.len() < LISTED {
            self.problems.push(problem);
        }
    }
}
