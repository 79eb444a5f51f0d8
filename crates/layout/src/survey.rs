//! The result of a survey: every figure, and for each that could not be had the reason.

use crate::geometry::GroupKind;
use crate::map::Map;
use crate::scores::class::ClassRow;
use crate::scores::distance::{Distances, TreeScan};
use crate::scores::file::Kinds;
use crate::scores::free::FreeSpace;
use crate::scores::score::LayoutScore;
use crate::scores::split::SplitFiles;
use crate::scores::worst::WorstFile;
use crate::scores::xfs_factor::XfsFactor;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A figure, or why there is none. Never a guess.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Available<T> {
    /// It was measured.
    Known(T),
    /// It could not be had, and why.
    Unavailable(String),
}

impl<T> Available<T> {
    /// The figure, if there is one.
    pub fn known(&self) -> Option<&T> {
        match self {
            Available::Known(value) => Some(value),
            Available::Unavailable(_) => None,
        }
    }

    /// Why there is none.
    pub fn why(&self) -> Option<&str> {
        match self {
            Available::Known(_) => None,
            Available::Unavailable(why) => Some(why),
        }
    }
}

/// What the addresses in a survey are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressSpace {
    /// Bytes on the block device the file system is on.
    Device,
    /// btrfs's own address space. Contiguity inside a chunk is contiguity on a device (single, DUP, RAID1); distances
    /// are **not** distances on any device.
    BtrfsLogical,
    /// btrfs addresses translated to the one device through the chunk tree, first copy.
    BtrfsTranslated,
}

impl AddressSpace {
    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            AddressSpace::Device => "bytes on the device",
            AddressSpace::BtrfsLogical => "btrfs logical addresses: distances and split figures are not physical",
            AddressSpace::BtrfsTranslated => {
                "btrfs addresses translated to the device through the chunk tree (first copy)"
            }
        }
    }
}

/// How the survey was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// A mounted directory: FIEMAP, and GETFSMAP or the file system's trees.
    Mounted,
    /// An unmounted ext2, ext3 or ext4 image or device, read by this program itself.
    Ext4Image,
    /// A file system of the laboratory, or an image in it.
    Laboratory,
    /// The block lists of a snapshot.
    Snapshot,
}

/// What was surveyed, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// As the user named it.
    pub target: String,
    /// How.
    pub method: Method,
    /// `ext4`, `xfs`, `btrfs`, ...
    pub fs_type: posix::FsType,
    /// Mount options, or the image's features.
    pub options: String,
    /// The unit of allocation, bytes.
    pub block_bytes: u64,
    /// Size of the file system, bytes.
    pub total_bytes: u64,
    /// Free as the file system itself counts it, bytes.
    pub free_bytes: u64,
    /// When, seconds since the epoch; the moment `hot` is counted back from.
    pub taken_unix_s: i64,
    /// What the addresses are.
    pub addresses: AddressSpace,
    /// Allocation groups; `None` where there are none or they are not known.
    pub groups: Option<GroupCount>,
    /// What the reader should know: dirty journal, data not written back, file systems not entered.
    pub notes: Vec<String>,
}

/// The allocation groups in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCount {
    /// What they are.
    pub kind: GroupKind,
    /// How many.
    pub count: u64,
    /// How many make a flexible group; 1 where that does not exist.
    pub per_flex: u64,
}

/// The files modified lately (Smith and Seltzer 1996, section 5: "hot" files).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotFiles {
    /// How many days back.
    pub days: f64,
    /// Sums over them.
    pub row: ClassRow,
    /// Their share of all files.
    pub share_of_files: Option<f64>,
    /// Their share of all placed blocks.
    pub share_of_blocks: Option<f64>,
}

/// What the files' extents amount to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilesLayout {
    /// Sums over all files.
    pub all: ClassRow,
    /// The aggregate score's numerator and denominator.
    pub score: LayoutScore,
    /// The aggregate layout score.
    pub layout_score: Option<f64>,
    /// Records as the file system reported them.
    pub records: u64,
    /// Extents for each MiB of placed data.
    pub extents_per_mib: Option<f64>,
    /// The XFS factor over regular files.
    pub xfs_factor: XfsFactor,
    /// The same as a number, 0 to 1.
    pub xfs_fragmentation: f64,
    /// Special extents.
    pub kinds: Kinds,
    /// By length, powers of two.
    pub by_size: Vec<ClassRow>,
    /// By exact number of placed blocks, small files.
    pub by_blocks: Vec<ClassRow>,
    /// Files modified lately.
    pub hot: Option<HotFiles>,
    /// Files in another group than their inode.
    pub split: Available<SplitFiles>,
    /// Distance from one file's data to the next one's, within directories, in `readdir` order.
    pub locality: Distances,
    /// Travel of a scan of the whole tree.
    pub scan: TreeScan,
    /// The files with the most breaks.
    pub worst: Vec<WorstFile>,
}

impl FilesLayout {
    /// The files modified lately, where they are some of the files and not all: otherwise they have no figures of their
    /// own. A tree that was aged in an hour has not been idle for a month.
    pub fn hot_apart(&self) -> Option<&HotFiles> {
        self.hot.as_ref().filter(|hot| hot.row.files > 0 && hot.row.files < self.all.files)
    }
}

/// What was walked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Walked {
    /// Regular files, hard links once.
    pub files: u64,
    /// Further names of files already counted.
    pub further_links: u64,
    /// Directories, the root among them.
    pub directories: u64,
    /// Symbolic links, FIFOs, sockets and devices.
    pub others: u64,
    /// Names that lead to other file systems or mounts: left out.
    pub other_file_systems: u64,
    /// Things that could not be read, by error.
    pub unreadable: BTreeMap<String, u64>,
    /// The first of them.
    pub unreadable_examples: Vec<String>,
}

impl Walked {
    /// How many examples are kept.
    const EXAMPLES_MAX: usize = 20;

    /// Records something that could not be read.
    pub fn unreadable(&mut self, path: impl FnOnce() -> String, why: &str) {
        *self.unreadable.entry(why.to_owned()).or_default() += 1;
        if self.unreadable_examples.len() < Self::EXAMPLES_MAX {
            self.unreadable_examples.push(format!("{}: {why}", path()));
        }
    }
}

/// Layout and free space of a file system at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// What, how and when.
    pub source: Source,
    /// What was walked.
    pub walked: Walked,
    /// The files.
    pub files: Available<FilesLayout>,
    /// The free space.
    pub free: Available<FreeSpace>,
    /// The map, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<Available<Map>>,
}
