//! What the publications did not run.

pub(crate) mod lfs_sweep;
pub(crate) mod modern;
