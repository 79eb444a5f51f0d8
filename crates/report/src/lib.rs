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
mod chart;
mod copied;
mod crash;
mod csv;
mod drive;
mod environment;
mod experiment;
mod ffs;
mod html;
pub use html::HTML_BEGINS;
mod json;
mod layout;
mod lfs;
mod markdown;
mod model;
mod plan;
mod plot;
mod prediction;
pub mod quickstart;
mod replay;
mod rows;
mod snapshot;
mod system;
mod terminal;
mod tree_snapshot;
pub mod units;
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
    checked_beside_work, checked_in_virtual_time, ffs_checked, ffs_checked_in_background, ffs_directory, ffs_free,
    ffs_free_maps, ffs_group, ffs_groups, ffs_inode, ffs_made, ffs_superblock, reverted,
};
pub use self::layout::{layout, layout_comparison};
pub use self::lfs::{
    lfs_checked, lfs_cleaned, lfs_directory, lfs_ifile, lfs_inode, lfs_made, lfs_segment, lfs_segments, lfs_superblock,
};
pub use json::{envelope, text as json_text};
pub use model::{Block, Cell, Column, Document, Table};
pub use plan::plan;
pub use plot::Plot;
pub use prediction::{prediction, ranking_table};
pub use replay::replay;
pub use rows::rows;
pub use snapshot::snapshot;
pub use system::{apart, system};
pub use tree_snapshot::tree_snapshot;
pub use validation::validation;
pub use verification::verification;
pub use workload::{latencies, workload};
