//! The log: segments and how much of each is live ([`Log`]), partial segments before they are written ([`plan`]), and
//! the segment writer that gathers what is dirty ([`write`]).

mod log;
pub(crate) mod plan;
mod tiles;
mod write;

pub(crate) use log::{INODE, INODE_BYTES, INODES, Log, SUMMARY, Segment, SegmentState, Written};
pub(crate) use tiles::tile;
pub(crate) use write::Scope;
