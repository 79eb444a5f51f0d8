//! Snapshots of one tree in order of time: what must be the same in all of them, and their layout by day.

use super::{FORMAT, Snapshot, SnapshotMeta};
use columnar::FileError;
use layout::series::{Days, UsedPoint};
use layout::{Series, SeriesHeader, SeriesPoint, SurveyOptions};
use posix::Environment;
use std::path::{Path, PathBuf};
use units::text::printable;

/// What must be the same, or rise, from one snapshot to the next.
struct Seen {
    path: PathBuf,
    meta: SnapshotMeta,
    root_ino: u64,
    root_generation: Option<u32>,
}

/// Where a snapshot contradicts the one before it: place and message.
type Problem = (&'static str, String);

/// The snapshots of one tree, told one after the other.
#[derive(Default)]
pub(crate) struct Sequence {
    last: Option<Seen>,
}

impl Sequence {
    /// Holds a snapshot against the one before.
    ///
    /// # Errors
    /// The place in the file, and what is wrong.
    pub(crate) fn check(&mut self, path: &Path, snapshot: &Snapshot) -> Result<(), Problem> {
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

fn compare(last: &Seen, next: &Seen) -> Result<(), Problem> {
    let other = last.path.display();
    let wrong = |place: &'static str, message: String| Err((place, message));
    let (a, b) = (&last.meta, &next.meta);
    if a.simulated != b.simulated {
        return wrong(
            "description, simulated",
            format!("real and simulated times do not mix: {other} has the other kind"),
        );
    }
    if b.taken_ns <= a.taken_ns {
        return wrong(
            "description, taken_ns",
            format!(
                "time goes backwards: {} is not after {} of {other}; name the snapshots in order of time",
                b.taken_ns, a.taken_ns
            ),
        );
    }
    if a.fs_type != b.fs_type {
        return wrong(
            "description, fs_type",
            format!("{} where {other} is of {}: not the same file system", b.fs_type, a.fs_type),
        );
    }
    if b.fs_type.id_is_lasting()
        && let (Some(x), Some(y)) = (&a.fs_id, &b.fs_id)
        && x != y
    {
        return wrong("description, fs_id", format!("{y} where {other} has {x}: not the same file system"));
    }
    let generations_differ = matches!((last.root_generation, next.root_generation), (Some(x), Some(y)) if x != y);
    if last.root_ino != next.root_ino || generations_differ {
        let message =
            format!("the root is inode {} where {other} has {}: not the same directory", next.root_ino, last.root_ino);
        return wrong("row 0, column ino", message);
    }
    Ok(())
}

/// The layout of one tree by day, from its snapshots with block lists, oldest first. One is in memory at a time.
///
/// # Errors
/// [`FileError`]: a snapshot cannot be read, has no block lists, or is not the next one of the same tree; interrupted,
/// `go_on` said no.
pub fn layout_by_day(
    paths: &[PathBuf],
    options: &SurveyOptions,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<Series, FileError> {
    let mut series = Series::default();
    let mut sequence = Sequence::default();
    let mut first_ns = None;
    for (done, path) in paths.iter().enumerate() {
        if !go_on(done) {
            return Err(FileError::io(path, "read on")(std::io::ErrorKind::Interrupted.into()));
        }
        let snapshot = Snapshot::read_with_blocks(path)?;
        sequence.check(path, &snapshot).map_err(|(place, message)| FORMAT.corrupt(path, place, message))?;
        let meta = &snapshot.meta;
        let survey = snapshot.layout(&path.display().to_string(), options).ok_or_else(|| no_blocks(path))?;
        // Simulated time begins with the plan, real time with the first snapshot.
        let since_ns = if meta.simulated { 0 } else { *first_ns.get_or_insert(meta.taken_ns) };
        let day = meta.taken_ns.saturating_sub(since_ns) as f64 / 86_400e9;
        if series.points.is_empty() {
            series.header = header(&snapshot, &survey.source.options);
        }
        let used = meta.total_bytes.saturating_sub(meta.free_bytes) as f64;
        if meta.total_bytes > 0 {
            let actual_share = used / meta.total_bytes as f64;
            series.used.push(UsedPoint { day, planned_share: None, actual_share });
        }
        series.points.push(SeriesPoint { day, t_unix_ns: meta.taken_ns, operations: 0, survey });
    }
    Ok(series)
}

/// A snapshot has no block lists.
pub(super) fn no_blocks(path: &Path) -> FileError {
    FileError::schema(
        path,
        "extents",
        "not in the file, so that it does not say where files lie: `fsage snapshot --blocks` keeps that",
    )
}

fn header(snapshot: &Snapshot, options: &str) -> SeriesHeader {
    let meta = &snapshot.meta;
    let environment = Environment {
        target: meta.root.clone(),
        fs_type: meta.fs_type.clone(),
        mount_options: options.to_owned(),
        total_bytes: meta.total_bytes,
        ..Environment::default()
    };
    SeriesHeader {
        name: printable(&meta.root),
        workload: "snapshots".to_owned(),
        notes: vec![format!("from snapshots of {} on {}", printable(&meta.root), printable(&meta.host))],
        environment,
        days: if meta.simulated { Days::Simulated } else { Days::Real },
    }
}
