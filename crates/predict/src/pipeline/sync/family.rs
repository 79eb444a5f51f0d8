//! Families of file systems, by what a sync of one file makes stable besides it.
//!
//! | family | a sync of a file commits | and writes the data of |
//! |---|---|---|
//! | one log (ext4, XFS) | every earlier change of names and inodes | that file; all new data in some modes of ext4 |
//! | each file (a log tree for each: btrfs; no log: FFS) | that file's own changes | that file |
//! | segments (LFS) | of a file or directory whose names changed, all such; of another that file | those |
//!
//! Whether new data of other files is written too is [`Behaviour::sync_writes_others`]. Which one a system belongs to
//! is measured (`measure::behaviour`); of a profile without that, the type of the file system tells.

use system::{Behaviour, Family, SystemProfile};

/// The family of a system: as measured, else that of its type.
pub(in crate::pipeline) fn family_of(profile: &SystemProfile) -> Family {
    profile.behaviour.family.unwrap_or_else(|| Family::of(&profile.environment.fs_type))
}

/// What follows for a sync from the family of a file system.
pub(super) trait Syncs {
    /// What a sync commits that is not clean to it. `operation`: the file or directory has names that are not
    /// committed.
    fn commits(self, operation: bool) -> Commit;

    /// Whose data a sync writes beside the file's own.
    fn carries(self, operation: bool, behaviour: Behaviour) -> Carries;

    /// Whether what a log has to carry of others' names is in the latency of a sync.
    fn logs_names(self) -> bool;

    /// Whether others' new data is in the latency of a sync. Of a system that was not asked it is taken to be.
    fn waits_for_others(self, behaviour: Behaviour) -> bool;
}

impl Syncs for Family {
    fn commits(self, operation: bool) -> Commit {
        match (self, operation) {
            (Family::Log, _) | (Family::Segments, true) => Commit::All,
            (Family::Each, _) | (Family::Segments, false) => Commit::Own,
        }
    }

    fn carries(self, operation: bool, behaviour: Behaviour) -> Carries {
        match self {
            Family::Segments if operation => Carries::Operations,
            Family::Log if behaviour.sync_writes_others == Some(true) => Carries::NewData,
            _ => Carries::Nothing,
        }
    }

    fn logs_names(self) -> bool {
        self == Family::Log
    }

    fn waits_for_others(self, behaviour: Behaviour) -> bool {
        self != Family::Segments && behaviour.sync_writes_others.unwrap_or(true)
    }
}

/// How far a commit reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commit {
    /// The file.
    Own,
    /// Everything.
    All,
}

/// Whose data goes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pipeline) enum Carries {
    /// Nobody's.
    Nothing,
    /// That of every file with data in new blocks.
    NewData,
    /// That of every file whose names are not committed.
    Operations,
}
