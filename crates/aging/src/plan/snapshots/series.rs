//! A series of snapshots: read one at a time, and checked to be of one tree, in order of time.

use super::compare::View;
use crate::plan::PlanError;
use crate::snapshot::{Sequence, Snapshot};
use std::path::{Path, PathBuf};

/// The snapshots of one tree.
pub(super) struct Series<'a> {
    paths: &'a [PathBuf],
    sequence: Sequence,
}

impl<'a> Series<'a> {
    pub(super) fn new(paths: &'a [PathBuf]) -> Series<'a> {
        Series { paths, sequence: Sequence::default() }
    }

    /// Reads the next, and checks it against the one before.
    pub(super) fn read(&mut self, index: usize, before: Option<&View>) -> Result<Option<View>, PlanError> {
        let Some(path) = self.paths.get(index) else { return Ok(None) };
        let snapshot = read(path)?;
        check_time(snapshot.meta.taken_ns).map_err(|why| PlanError::input(path, "description, taken_ns", why))?;
        self.sequence.check(path, &snapshot).map_err(|(place, message)| PlanError::input(path, place, message))?;
        Ok(Some(View::new(snapshot, before)))
    }
}

/// A time that a plan can have: no day is before 1970, or before the first simulated one. The latest that a file can
/// state is within [`DAYS_MAX`](crate::format::DAYS_MAX) of that.
fn check_time(taken_ns: i64) -> Result<(), String> {
    if taken_ns < 0 {
        return Err(format!("{taken_ns} ns is before all time: before 1970, or before the first simulated day"));
    }
    Ok(())
}

/// Reads one snapshot; says what to do with the thesis's text form, which lacks what is needed.
fn read(path: &Path) -> Result<Snapshot, PlanError> {
    let mut begin = [0; 1];
    let is_text = posix::input::open(path)
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut begin))
        .is_ok_and(|()| begin == *b"/");
    if is_text {
        let message = "this is a snapshot as text, which has neither change times nor generations of inodes: no plan \
                       can be made from it; take snapshots with `fsage snapshot`";
        return Err(PlanError::input(path, "line 1", message));
    }
    Ok(Snapshot::read(path)?)
}
