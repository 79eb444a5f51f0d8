//! A series of snapshots: read one at a time, and checked to be of one tree, in order of time.

use super::compare::View;
use crate::plan::PlanError;
use crate::snapshot::{Snapshot, SnapshotMeta};
use std::path::{Path, PathBuf};

/// What must be the same, or rise, from one snapshot to the next.
struct Seen {
    path: PathBuf,
    meta: SnapshotMeta,
    root_ino: u64,
    root_generation: Option<u32>,
}

/// The snapshots of one tree.
pub(super) struct Series<'a> {
    paths: &'a [PathBuf],
    last: Option<Seen>,
}

impl<'a> Series<'a> {
    pub(super) fn new(paths: &'a [PathBuf]) -> Series<'a> {
        Series { paths, last: None }
    }

    /// Reads the next, and checks it against the one before.
    pub(super) fn read(&mut self, index: usize, before: Option<&View>) -> Result<Option<View>, PlanError> {
        let Some(path) = self.paths.get(index) else { return Ok(None) };
        let snapshot = read(path)?;
        self.check(path, &snapshot)?;
        Ok(Some(View::new(snapshot, before)))
    }

    fn check(&mut self, path: &Path, snapshot: &Snapshot) -> Result<(), PlanError> {
        let root = snapshot.entries().first().map(|e| e.inode);
        let seen = Seen {
            path: path.to_owned(),
            meta: snapshot.meta.clone(),
            root_ino: root.map_or(0, |r| r.ino),
            root_generation: root.and_then(|r| r.generation),
        };
        if let Some(last) = &self.last {
            compare(last, &seen)?;
        }
        self.last = Some(seen);
        Ok(())
    }
}

fn compare(last: &Seen, next: &Seen) -> Result<(), PlanError> {
    let other = last.path.display();
    let wrong =
        |what: &str, message: String| Err(PlanError::input(&next.path, format!("description, {what}"), message));
    let (a, b) = (&last.meta, &next.meta);
    if a.simulated != b.simulated {
        return wrong("simulated", format!("real and simulated times do not mix: {other} has the other kind"));
    }
    if b.taken_ns <= a.taken_ns {
        return wrong(
            "taken_ns",
            format!(
                "time goes backwards: {} is not after {} of {other}; name the snapshots in order of time",
                b.taken_ns, a.taken_ns
            ),
        );
    }
    if a.fs_type != b.fs_type {
        return wrong("fs_type", format!("{} where {other} is of {}: not the same file system", b.fs_type, a.fs_type));
    }
    if b.fs_type.id_is_lasting()
        && let (Some(x), Some(y)) = (&a.fs_id, &b.fs_id)
        && x != y
    {
        return wrong("fs_id", format!("{y} where {other} has {x}: not the same file system"));
    }
    let generations_differ = matches!((last.root_generation, next.root_generation), (Some(x), Some(y)) if x != y);
    if last.root_ino != next.root_ino || generations_differ {
        let message =
            format!("the root is inode {} where {other} has {}: not the same directory", next.root_ino, last.root_ino);
        return Err(PlanError::input(&next.path, "row 0, column ino", message));
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
        let message = "this is a snapshot as text, which has neither change times nor generations of inodes: no plan can be \
                       made from it; take snapshots with `fsage snapshot`";
        return Err(PlanError::input(path, "line 1", message));
    }
    Ok(Snapshot::read(path)?)
}
