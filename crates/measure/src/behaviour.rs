//! What the target does that no cost alone tells, found by trying: one small experiment for each field of
//! [`Behaviour`].
//!
//! An experiment looks at what is left to be written (`cachestat`), which says it exactly. Where a system does not
//! tell, it goes by how the file lies; where that does not tell either, the field stays unknown. What is committed is
//! not visible, so the family goes by time. No experiment asks for the file system's name.

use super::MeasureError;
use super::bench::Bench;
use posix::{Call, Errno, Fallocate, Fd, OpenFlags, Reply};
use stats::quantile;
use system::{Behaviour, Family};

/// The fsync of an empty new file has to take so many times that of a clean one to tell anything.
const CLEARLY: f64 = 2.0;
/// How often an experiment that goes by time is made; the lower quartile counts.
const TRIALS: usize = 7;
const BLOCK_BYTES: u64 = 4096;
const HERE: &str = "behaviour/here";
const ELSEWHERE: &str = "behaviour/elsewhere";

/// Makes the experiments. They take some hundred calls in all, so they have no budget of their own.
pub(super) fn find(b: &mut Bench<'_>) -> Result<Behaviour, MeasureError> {
    for path in ["behaviour", HERE, ELSEWHERE] {
        b.make_dir(path)?;
    }
    let writes_others = after_sync(b, Synced::Old, BLOCK_BYTES)?.left_bytes.map(|left| left == 0);
    let times = Times::take(b)?;
    let family = times.family(b, writes_others)?;
    let (directory_commits, sync_leaves_changes) = times.of_a_directory(b)?;
    Ok(Behaviour {
        family,
        sync_writes_others: writes_others,
        copies_share: copies_share(b)?,
        preallocates: preallocates(b)?,
        truncate_writes: truncate_writes(b)?,
        directory_commits,
        sync_leaves_changes,
    })
}

/// What a file is whose sync comes first.
#[derive(Clone, Copy)]
enum Synced {
    /// Nothing is synced first.
    Nothing,
    /// One that is there already and was appended to.
    Old,
    /// One that was made after the other, in [`HERE`].
    New,
}

/// How another file is after that.
struct After {
    /// Of its data, still to be written.
    left_bytes: Option<u64>,
    /// What its own fsync takes then.
    sync_ns: u64,
}

/// Makes a new file with data, then syncs another in another directory, and looks at the first.
fn after_sync(b: &mut Bench<'_>, synced: Synced, bytes: u64) -> Result<After, MeasureError> {
    let path = format!("{ELSEWHERE}/{}", b.new_name("other"));
    let first = format!("{HERE}/{}", b.new_name("synced"));
    if matches!(synced, Synced::Old) {
        b.make_file(first.as_str().into(), BLOCK_BYTES)?;
    }
    b.sync()?;
    let other = b.open(path.as_str().into(), OpenFlags { read: true, ..OpenFlags::CREATE_NEW })?;
    b.fill(other, 0, bytes)?;
    let flags = match synced {
        Synced::Nothing => None,
        Synced::Old => Some(OpenFlags { append: true, ..OpenFlags::WRITE }),
        Synced::New => Some(OpenFlags::CREATE_NEW),
    };
    if let Some(flags) = flags {
        let fd = b.open(first.as_str().into(), flags)?;
        b.quiet(&Call::Write { fd, offset: None, len_bytes: BLOCK_BYTES, data: None })?;
        b.quiet(&Call::Fsync { fd })?;
        b.close(fd)?;
        b.unlink(first.as_str().into())?;
    }
    let left_bytes = dirty_bytes(b, other);
    let sync_ns = b.outcome(&Call::Fsync { fd: other }).dur_ns;
    b.close(other)?;
    b.unlink(path.as_str().into())?;
    Ok(After { left_bytes, sync_ns })
}

/// What the experiments that go by time compare with.
struct Times {
    /// The fsync of an empty new file.
    alone_ns: f64,
    /// Of one with nothing to make stable.
    clean_ns: f64,
    /// Of an empty new file after that of a newer one.
    other_ns: f64,
}

/// Whatever else runs only ever adds to a time; what a commit of the system's own takes away it seldom does.
fn usual(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    quantile(&times, 0.25)
}

impl Times {
    fn take(b: &mut Bench<'_>) -> Result<Times, MeasureError> {
        let (mut alone, mut clean, mut other) = (Vec::new(), Vec::new(), Vec::new());
        b.make_file("behaviour/clean".into(), BLOCK_BYTES)?;
        let fd = b.open("behaviour/clean".into(), OpenFlags::READ_WRITE)?;
        for _ in 0..TRIALS {
            // Not the new file's own, which btrfs logs once more.
            b.quiet(&Call::Fsync { fd })?;
            clean.push(b.outcome(&Call::Fsync { fd }).dur_ns as f64);
            alone.push(after_sync(b, Synced::Nothing, 0)?.sync_ns as f64);
            other.push(after_sync(b, Synced::New, 0)?.sync_ns as f64);
        }
        b.close(fd)?;
        Ok(Times { alone_ns: usual(alone), clean_ns: usual(clean), other_ns: usual(other) })
    }

    /// Whether a sync costs anything here; it does not in memory.
    fn tell(&self) -> bool {
        self.alone_ns >= CLEARLY * self.clean_ns
    }

    /// Whether a sync of this time had something to make stable: halfway, by ratio.
    fn is_long(&self, ns: f64) -> bool {
        ns > (self.alone_ns * self.clean_ns).sqrt()
    }

    /// The family, by what is left of an empty new file for its own fsync after that of another: nothing where the
    /// other's has committed it.
    fn family(&self, b: &mut Bench<'_>, writes_others: Option<bool>) -> Result<Option<Family>, MeasureError> {
        if !self.tell() {
            return Ok(None);
        }
        if self.is_long(self.other_ns) {
            return Ok(Some(Family::Each));
        }
        let with_data = after_sync(b, Synced::New, BLOCK_BYTES)?.left_bytes == Some(0);
        let segments = with_data && writes_others == Some(false);
        Ok(Some(if segments { Family::Segments } else { Family::Log }))
    }

    /// Whether the fsync of a directory in which nothing has changed commits what has changed elsewhere; and, where it
    /// does, whether the fsync of a file with data leaves it something to commit. `None` of a system that syncs no
    /// directories.
    fn of_a_directory(&self, b: &mut Bench<'_>) -> Result<(Option<bool>, Option<bool>), MeasureError> {
        if !self.tell() {
            return Ok((None, None));
        }
        let dir = b.open(HERE.into(), OpenFlags::DIRECTORY)?;
        let (mut after_change, mut after_sync) = (Vec::new(), Vec::new());
        let mut refused = false;
        for _ in 0..TRIALS {
            let path = format!("{ELSEWHERE}/{}", b.new_name("changed"));
            b.sync()?;
            b.make_file(path.as_str().into(), 0)?;
            let outcome = b.outcome(&Call::Fsync { fd: dir });
            refused |= outcome.result.is_err();
            after_change.push(outcome.dur_ns as f64);
            let fd = b.open(path.as_str().into(), OpenFlags::WRITE)?;
            b.fill(fd, 0, BLOCK_BYTES)?;
            b.quiet(&Call::Fsync { fd })?;
            after_sync.push(b.outcome(&Call::Fsync { fd: dir }).dur_ns as f64);
            b.close(fd)?;
            b.unlink(path.as_str().into())?;
        }
        b.close(dir)?;
        if refused {
            return Ok((None, None));
        }
        let commits = self.is_long(usual(after_change));
        Ok((Some(commits), commits.then(|| self.is_long(usual(after_sync)))))
    }
}

/// Whether fallocate is there: `false` only where it is refused for good.
fn preallocates(b: &mut Bench<'_>) -> Result<Option<bool>, MeasureError> {
    let fd = b.open("behaviour/space".into(), OpenFlags::CREATE_NEW)?;
    let call = Call::Fallocate { fd, how: Fallocate::Allocate, offset: 0, len_bytes: BLOCK_BYTES };
    let answer = match b.outcome(&call).result {
        Ok(_) => Some(true),
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Some(false),
        Err(_) => None,
    };
    b.close(fd)?;
    b.unlink("behaviour/space".into())?;
    Ok(answer)
}

/// Whether setting the length of a file that is dirty and has become longer writes its data.
fn truncate_writes(b: &mut Bench<'_>) -> Result<Option<bool>, MeasureError> {
    const BYTES: u64 = 64 << 10;
    let fd = b.open("behaviour/cut".into(), OpenFlags { read: true, ..OpenFlags::CREATE_NEW })?;
    b.fill(fd, 0, BYTES)?;
    b.quiet(&Call::Ftruncate { fd, len_bytes: BYTES })?;
    let writes = dirty_bytes(b, fd).map(|left_bytes| left_bytes == 0);
    b.close(fd)?;
    b.unlink("behaviour/cut".into())?;
    Ok(writes)
}

/// Bytes of a file that are still to be written; `None` where the system does not say.
fn dirty_bytes(b: &mut Bench<'_>, fd: Fd) -> Option<u64> {
    match b.outcome(&Call::Residency { fd, offset: 0, len_bytes: 0 }).result {
        Ok(Reply::Residency(found)) => found.dirty_bytes,
        _ => None,
    }
}

/// Whether a copy of whole blocks leaves nothing to write, because both files share them.
fn copies_share(b: &mut Bench<'_>) -> Result<Option<bool>, MeasureError> {
    const BYTES: u64 = 64 << 10;
    b.make_file("behaviour/source".into(), BYTES)?;
    let from = b.open("behaviour/source".into(), OpenFlags::READ_WRITE)?;
    b.quiet(&Call::Fsync { fd: from })?;
    let to = b.open("behaviour/copy".into(), OpenFlags { read: true, ..OpenFlags::CREATE_NEW })?;
    let call = Call::CopyRange { from, from_offset: Some(0), to, to_offset: Some(0), len_bytes: BYTES };
    let copied = matches!(b.outcome(&call).result, Ok(Reply::Count(BYTES)));
    let shares = match (copied, dirty_bytes(b, to)) {
        (false, _) => None,
        (true, Some(left_bytes)) => Some(left_bytes == 0),
        (true, None) => b.fs.extents(to).ok().map(|extents| extents.iter().any(|extent| extent.flags.shared)),
    };
    b.close(from)?;
    b.close(to)?;
    b.unlink("behaviour/source".into())?;
    b.unlink("behaviour/copy".into())?;
    Ok(shares)
}
