//! Results made readable: tables for the terminal, CSV, Markdown, and self-contained HTML with plots.
//!
//! What lives here: a small document model ([`Document`]: headings, paragraphs, tables, plots), its renderers, and one
//! module per kind of result that says which tables and plots show it. What may not: anything that computes a result.
//!
//! Text that comes from a workload (paths, command lines) is untrusted: renderers escape it for their medium, and
//! control characters never reach a terminal.

mod age;
pub mod aging;
mod bench;
mod bench_phases;
mod cache_plots;
mod copied;
mod crash;
mod drive;
mod environment;
mod experiment;
mod ffs;
mod layout;
mod lfs;
mod plan;
mod prediction;
pub mod quickstart;
mod replay;
mod rows;
mod snapshot;
mod system;
mod tree_snapshot;
mod validation;
mod validation_plots;
mod verification;
mod workload;

pub use self::age::age;
pub use self::bench::{bench, bench_comparison};
pub use self::copied::{extracted, inserted};
pub use self::crash::{crash_state, crashes};
pub use self::drive::{drive, drive_validation, drives};
pub use self::experiment::{experiments, reproduction};
pub use self::ffs::{
    checked_in_virtual_time, ffs_checked, ffs_directory, ffs_free, ffs_free_maps, ffs_group, ffs_groups, ffs_inode,
    ffs_made, ffs_superblock, reverted,
};
pub use self::layout::{layout, layout_comparison};
pub use self::lfs::{
    lfs_checked, lfs_cleaned, lfs_directory, lfs_ifile, lfs_inode, lfs_made, lfs_segment, lfs_segments, lfs_superblock,
};
pub use plan::plan;
pub use prediction::{prediction, ranking_table};
pub use replay::replay;
pub use rows::rows;
pub use snapshot::snapshot;
pub use system::{apart, system};
pub use tree_snapshot::tree_snapshot;
pub use validation::validation;
pub use verification::verification;
pub use workload::{latencies, workload};
