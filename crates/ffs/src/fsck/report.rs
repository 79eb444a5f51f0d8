//! What a check found.

use crate::format::{Endian, Version};
use crate::image::Located;
use serde::{Serialize, Serializer};
use ufs::Ino;

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

/// Which kind of problem, with what it is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The superblock used is not the standard one.
    SuperblockDamaged,
    /// A field of the superblock.
    SuperblockField,
    /// A copy of the superblock.
    SuperblockCopy,
    /// A log that was replayed.
    Log,
    /// A log that cannot be.
    LogDamaged,
    /// The last pass still repaired something.
    Unsettled,
    /// A cylinder group that cannot be read.
    GroupDamaged,
    /// A cylinder group's check hash.
    GroupHash,
    /// A field of a cylinder group, or bytes of none.
    GroupField,
    /// An inode's check hash.
    InodeHash,
    /// An inode that is not in use, and has something.
    PartlyAllocated,
    /// The root is not a directory by its mode.
    RootType,
    /// A mode that no file has.
    Type,
    /// How much an inode says that it holds.
    BlockCount,
    /// A file's length.
    Size {
        /// It ends behind its last block.
        too_long: bool,
    },
    /// A pointer to a block.
    Pointer {
        /// It is beyond the end of its file.
        beyond_end: bool,
    },
    /// A symbolic link's target.
    Link,
    /// A device's number.
    Device,
    /// A block of two files.
    Duplicate,
    /// A directory with blocks missing.
    DirectoryHole,
    /// A part of a directory that cannot be read.
    DirectoryChunk,
    /// There is no root directory.
    Root,
    /// `.` or `..`.
    Dots,
    /// A directory entry that leads to nothing.
    Entry,
    /// A directory entry of another type than its inode.
    EntryType {
        /// It is `..`.
        parent: bool,
    },
    /// A second name of a directory.
    DirectoryLink {
        /// The directory.
        child: Ino,
    },
    /// An inode in use without a name.
    NoName {
        /// It is a directory.
        directory: bool,
    },
    /// There was no `lost+found` for those.
    LostFound,
    /// A file that was removed while it was open.
    Unlinked,
    /// A link count.
    LinkCount {
        /// What it says.
        counted: i16,
        /// The links there are.
        links: i32,
    },
    /// Totals in the superblock.
    Totals,
    /// A group's line of the summary.
    Summary,
    /// Counts in a cylinder group.
    Counts,
    /// A group's map of inodes.
    InodeMap {
        /// Inodes in use that it has as free.
        used_as_free: u64,
    },
    /// A group's map of fragments.
    BlockMap {
        /// Fragments in use that it has as free.
        used_as_free: u64,
    },
    /// A group's map of clusters.
    Clusters,
    /// A group's tables of free blocks by position.
    Rotation,
}

impl Finding {
    /// As a word for programs.
    pub fn word(self) -> &'static str {
        match self {
            Finding::SuperblockDamaged => "superblock-damaged",
            Finding::SuperblockField => "superblock-field",
            Finding::SuperblockCopy => "superblock-copy",
            Finding::Log => "log",
            Finding::LogDamaged => "log-damaged",
            Finding::Unsettled => "unsettled",
            Finding::GroupDamaged => "group-damaged",
            Finding::GroupHash => "group-hash",
            Finding::GroupField => "group-field",
            Finding::InodeHash => "inode-hash",
            Finding::PartlyAllocated => "partly-allocated",
            Finding::RootType => "root-type",
            Finding::Type => "type",
            Finding::BlockCount => "block-count",
            Finding::Size { .. } => "size",
            Finding::Pointer { .. } => "pointer",
            Finding::Link => "link",
            Finding::Device => "device",
            Finding::Duplicate => "duplicate",
            Finding::DirectoryHole => "directory-hole",
            Finding::DirectoryChunk => "directory-chunk",
            Finding::Root => "root",
            Finding::Dots => "dots",
            Finding::Entry => "entry",
            Finding::EntryType { .. } => "entry-type",
            Finding::DirectoryLink { .. } => "directory-link",
            Finding::NoName { .. } => "no-name",
            Finding::LostFound => "lost+found",
            Finding::Unlinked => "unlinked",
            Finding::LinkCount { .. } => "link-count",
            Finding::Totals => "totals",
            Finding::Summary => "summary",
            Finding::Counts => "counts",
            Finding::InodeMap { .. } => "inode-map",
            Finding::BlockMap { .. } => "block-map",
            Finding::Clusters => "clusters",
            Finding::Rotation => "rotation",
        }
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where in the check it came up.
    pub phase: Phase,
    /// Which kind.
    pub kind: Finding,
    /// The inode concerned.
    pub ino: Option<u32>,
    /// The byte in the image concerned.
    pub at_byte: Option<u64>,
    /// What is wrong.
    pub message: String,
    /// What a repair does about it; `None` where nothing can be done.
    pub repair: Option<String>,
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
            superblock_at: chosen.at_byte,
            marked_clean: chosen.sb.is_marked_clean(),
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

    /// The first problem that Soft Updates promise that a crash cannot leave: one that is more than blocks or inodes
    /// marked as used that are not, a link count that is too high, and what comes with these (docs/soft-updates.md).
    pub fn beyond_soft_updates(&self) -> Option<&Problem> {
        // The check's own doing: `lost+found` was free until then, and counts the directories that are put into it; one
        // of them that has no block gets one.
        let made = u64::from(self.problems.iter().any(|problem| problem.kind == Finding::LostFound));
        let orphan = |problem: &&Problem| problem.kind == Finding::NoName { directory: true };
        let orphans = self.problems.iter().filter(orphan).count() as u64;
        self.problems.iter().find(|problem| match problem.kind {
            // In a crash they are as they were when the superblock or the group was last written.
            Finding::Totals | Finding::Summary | Finding::Counts | Finding::Clusters | Finding::Rotation => false,
            // An inode whose name was not there yet, or is gone already; the second name of a directory that is being
            // moved.
            Finding::NoName { .. } | Finding::LostFound | Finding::Unlinked | Finding::DirectoryLink { .. } => false,
            // Indirect blocks are written apart from their inode.
            Finding::BlockCount => false,
            Finding::Pointer { beyond_end } => !beyond_end,
            // It has no name, and is in `lost+found` now; or it was being moved, and keeps its old one. What the `..`
            // of one without a name led to may be gone, and the number another inode's.
            Finding::Dots | Finding::DirectoryHole | Finding::EntryType { parent: true } => {
                !self.problems.iter().any(|other| match other.kind {
                    Finding::NoName { .. } => other.ino == problem.ino,
                    Finding::DirectoryLink { child } => Some(child.0) == problem.ino,
                    _ => false,
                })
            }
            Finding::Size { too_long } => too_long,
            Finding::InodeMap { used_as_free } => used_as_free > made,
            Finding::BlockMap { used_as_free } => self.unmarked_frags > 0 && used_as_free > 0,
            Finding::LinkCount { counted, links } => i64::from(links) - i64::from(counted) > (orphans + made) as i64,
            _ => true,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn beyond(kinds: &[Finding]) -> bool {
        let problem = |&kind: &Finding| Problem {
            phase: Phase::LinkCounts,
            kind,
            ino: Some(7),
            at_byte: None,
            message: String::new(),
            repair: Some("set".to_owned()),
        };
        let report = Report {
            version: Version::Ufs2,
            endian: Endian::Little,
            fsize: 1024,
            superblock_at: 65536,
            marked_clean: false,
            problems: kinds.iter().map(problem).collect(),
            problem_count: kinds.len() as u64,
            unmarked_frags: 0,
            unrepaired: 0,
            contents: Contents::default(),
        };
        report.beyond_soft_updates().is_some()
    }

    /// It was read from the words of the messages.
    #[test]
    fn what_soft_updates_may_leave_is_judged_by_numbers() {
        let too_high = Finding::LinkCount { counted: 3, links: 2 };
        let too_low = Finding::LinkCount { counted: 1, links: 2 };
        assert!(!beyond(&[too_high]) && beyond(&[too_low]));
        // `lost+found` has one more in it.
        assert!(!beyond(&[too_low, Finding::NoName { directory: true }]));
        assert!(beyond(&[too_low, Finding::NoName { directory: false }]));
        assert!(beyond(&[Finding::Size { too_long: true }]) && !beyond(&[Finding::Size { too_long: false }]));
        assert!(beyond(&[Finding::Dots]) && !beyond(&[Finding::Dots, Finding::NoName { directory: true }]));
        assert!(!beyond(&[Finding::Dots, Finding::DirectoryLink { child: Ino(7) }]));
        assert!(beyond(&[Finding::Dots, Finding::DirectoryLink { child: Ino(8) }]));
    }
}
