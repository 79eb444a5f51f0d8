//! The job that the arguments of `fsage age` come to.

use super::kept;
use aging::age::{AgeOptions, PlanIdentity, State};
use aging::format::Reader;
use posix::Target;
use std::path::PathBuf;

/// What the run is about, decided before anything is made.
pub(super) struct Job {
    pub(super) target: Target,
    pub(super) plan_path: PathBuf,
    pub(super) identity: PlanIdentity,
    pub(super) plan: Reader,
    pub(super) options: AgeOptions,
    /// Where the tree stays; `None`: it is removed at the end.
    pub(super) keep: Option<kept::Keep>,
    pub(super) results: Option<PathBuf>,
    pub(super) snapshots: Option<PathBuf>,
    pub(super) resume: Option<State>,
    pub(super) notes: Vec<String>,
}
