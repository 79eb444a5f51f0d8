//! What an aging workload says of itself.

use crate::OpKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The description in an aging workload's footer.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct PlanMeta {
    /// [`FORMAT_VERSION`](super::FORMAT_VERSION); set by the writer.
    pub version: u32,
    /// Version of the program that wrote it; set by the writer.
    pub fsage: String,
    /// Where the workload comes from.
    pub source: Source,
    /// Seed of all random choices.
    pub seed: u64,
    /// Size of the file system planned for, as `df` counts it (`f_blocks * f_frsize`), bytes.
    pub capacity_bytes: u64,
    /// Unit in which planned use is rounded up for each file, bytes.
    pub block_bytes: u64,
    /// Simulated days.
    pub days: u32,
    /// Whose directories the workload uses.
    pub placement: Placement,
    /// What it does in all; set by the writer.
    pub counts: Counts,
    /// Planned use at the end of each simulated day; set by the writer, first day first.
    pub utilisation: Vec<DayUse>,
    /// How well what was planned matches what was asked for.
    pub fit: Vec<FitResult>,
}

/// Where a workload comes from.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Source {
    /// `personality`, `geriatrix`, `snapshots`, `profile` or `git`.
    pub kind: String,
    /// Name of the personality or of the input.
    pub name: String,
    /// In a sentence or two.
    pub description: String,
    /// Files it was made from.
    pub inputs: Vec<Input>,
    /// Every parameter, with the literature or file it comes from, as the planner's own structure.
    pub parameters: serde_json::Value,
}

/// A file a plan was made from.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Input {
    /// Its name, without directories.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// CRC-32C of its contents, hexadecimal (of a directory: of its files' checksums, in order of name).
    pub crc32c: String,
}

/// Whose directories a workload uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// The directories are those of the tree.
    #[default]
    Directories,
    /// The original paths are unknown: the first `count` directories made, all in the root, stand for allocation groups
    /// 0 to `count` - 1 of the original; each file is in the directory of its inode's group (`aging97`, section 3).
    Groups {
        /// How many.
        count: u32,
    },
}

/// What a workload does in all.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Operations.
    pub operations: u64,
    /// Operations by kind, by [`OpKind::name`].
    pub by_kind: BTreeMap<String, u64>,
    /// Bytes written.
    pub written_bytes: u64,
    /// Files and symbolic links alive at the end.
    pub files_at_end: u64,
    /// Sum of their lengths, bytes.
    pub bytes_at_end: u64,
    /// Most bytes alive at any time (lengths rounded up to `block_bytes`).
    pub used_bytes_max: u64,
}

impl Counts {
    /// Operations of one kind.
    pub fn of(&self, kind: OpKind) -> u64 {
        self.by_kind.get(kind.name()).copied().unwrap_or(0)
    }
}

/// Planned use at the end of a simulated day.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct DayUse {
    /// The day, from 1.
    pub day: u32,
    /// Operations up to here.
    pub operations: u64,
    /// Files and symbolic links alive.
    pub files: u64,
    /// Their lengths, each rounded up to `block_bytes`, summed. Holes count as data.
    pub used_bytes: u64,
    /// `used_bytes` as a share of `capacity_bytes`: what the replayer steers to.
    pub used_share: f64,
}

/// How well one aspect of a plan matches what was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitResult {
    /// What is compared: `size_by_count`, `size_by_bytes`, `age`, `depth`, ...
    pub what: String,
    /// Largest distance of the two cumulative distributions (Kolmogorov-Smirnov), 0 to 1.
    pub ks: f64,
    /// Number of observations.
    pub observations: u64,
    /// Against what, and over which files.
    pub against: String,
}
