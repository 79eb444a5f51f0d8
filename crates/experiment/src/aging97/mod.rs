//! Smith and Seltzer, *File System Aging: Increasing the Relevance of File System Benchmarks*, SIGMETRICS 1997: an
//! aging workload made from snapshots ages a file system as the original was aged.

mod snapshot;
pub(crate) mod verify;
