//! Analysis: from a spool to a workload profile, beside a recording that goes on or after it.
//!
//! It runs in a thread of its own and reads the spool like any other file, so that its panics, errors and endless loops
//! are nobody's but its own: the recording goes on, the spool is kept, and the same function makes the profile from it
//! later ([`import_spool`]).

use super::before::{Touched, complete, implied};
use super::{RecordSummary, host};
use crate::analysis::Decode;
use crate::profile::{self, CutShort, GAPS_MAX, Gap, Meta, Writer, WriterBeside, escape, unescape};
use crate::snapshot::{View, Walked};
use crate::spool::{End, Frame, Header, Lost, NamesEnd, Reader, SpoolError, Subject};
use crate::strace::{ImportError, Imported};
use crate::track::SHARED_MOUNT;
use columnar::FileError;
use fault::{Fault, Kind};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Why a profile could not be made of a spool.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum AnalysisError {
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Profile(#[from] FileError),
    #[error("it broke off: {what}. This is a bug of fsage's: please report it")]
    Panicked { what: String },
    #[error("it got nowhere for {seconds} s. This is a bug of fsage's: please report it")]
    Stuck { seconds: u64 },
    #[error("a signal asked fsage not to wait for it")]
    Abandoned,
}

impl Fault for AnalysisError {
    fn kind(&self) -> Kind {
        match self {
            AnalysisError::Spool(e) => e.kind(),
            AnalysisError::Import(e) => e.kind(),
            AnalysisError::Profile(e) => e.kind(),
            AnalysisError::Abandoned => Kind::Interrupted,
            AnalysisError::Panicked { .. } | AnalysisError::Stuck { .. } => Kind::Environment,
        }
    }
}

/// Where the names come from that neither were read before the run nor are told by the trace.
#[derive(Debug)]
pub(super) enum Completion {
    /// What is on disk now, as what was recorded sees it, the run's changes undone: the run has just ended.
    Disk(View),
    /// The trace alone: since then, anything may have happened to the disk.
    Trace,
}

/// An analysis in its thread.
pub(super) struct Analysis {
    result: Receiver<Result<RecordSummary, AnalysisError>>,
    progress: Arc<AtomicU64>,
    partial: PathBuf,
}

/// Set in the progress once all records are decoded: what then remains is bounded by the disk, not by the trace.
const DECODED: u64 = 1 << 63;
/// Set by the analysis when all that is left is the profile's name, and by who gives it up. Whoever sets one first has
/// decided: a profile that is there was not given up.
const PUBLISHING: u64 = 1 << 62;
const GIVEN_UP: u64 = 1 << 61;

/// Says to the other that one's own bit is set; whether the other's was first.
fn comes_second(progress: &AtomicU64, own: u64, other: u64) -> bool {
    progress.fetch_or(own, Ordering::SeqCst) & other != 0
}

impl Analysis {
    /// Begins. The profile is published at the end.
    pub fn start<R: Read + Send + 'static>(
        reader: Reader<R>,
        decoder: Box<dyn Decode>,
        writer: Writer,
        view: View,
    ) -> std::io::Result<Analysis> {
        let (sender, result) = sync_channel(1);
        let progress = Arc::new(AtomicU64::new(0));
        let partial = writer.partial().to_owned();
        let seen = Arc::clone(&progress);
        std::thread::Builder::new().name("analysis".into()).spawn(move || {
            let work = AssertUnwindSafe(|| analyse(reader, decoder, writer, Completion::Disk(view), &seen));
            // Nobody listens to an analysis that was given up.
            let _ = sender.send(catch_unwind(work).unwrap_or_else(|panic| Err(panicked(&*panic))));
        })?;
        Ok(Analysis { result, progress, partial })
    }

    /// Waits for the end; asks `give_up` now and then whether to go on waiting; a profile that is about to be there, or
    /// is, is waited for all the same. `patience`: how long decoding may take over one frame.
    pub fn wait(self, patience: Duration, give_up: &mut dyn FnMut() -> bool) -> Result<RecordSummary, AnalysisError> {
        const POLL: Duration = Duration::from_millis(20);
        let mut last = self.progress.load(Ordering::Relaxed);
        let mut waited = Duration::ZERO;
        let error = loop {
            match self.result.recv_timeout(POLL) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) => waited += POLL,
                Err(RecvTimeoutError::Disconnected) => break AnalysisError::Panicked { what: "without a word".into() },
            }
            let now = self.progress.load(Ordering::Relaxed);
            if now != last {
                (last, waited) = (now, Duration::ZERO);
            }
            if now & DECODED == 0 && waited >= patience {
                break AnalysisError::Stuck { seconds: patience.as_secs() };
            }
            if give_up() && !comes_second(&self.progress, GIVEN_UP, PUBLISHING) {
                break AnalysisError::Abandoned;
            }
        };
        // The thread cannot be ended and goes with the process. What it wrote so far is of no use and ours alone.
        let _ = std::fs::remove_dir_all(&self.partial);
        Err(error)
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> AnalysisError {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    AnalysisError::Panicked { what: text.unwrap_or("a panic without words").to_owned() }
}

/// What a spool says beside its records.
#[derive(Default)]
struct Around {
    before: Walked,
    names_end: Option<NamesEnd>,
    lost: Vec<Lost>,
    end: Option<End>,
    torn_bytes: u64,
}

/// Makes a profile of a spool.
pub(super) fn analyse<R: Read>(
    mut reader: Reader<R>,
    mut decoder: Box<dyn Decode>,
    writer: Writer,
    completion: Completion,
    progress: &AtomicU64,
) -> Result<RecordSummary, AnalysisError> {
    let mut around = Around::default();
    let mut touched = Touched::default();
    let mut writer = WriterBeside::start(writer)?;
    let mut sink = |batch: crate::Batch| {
        touched.note(&batch);
        writer.push(batch)
    };
    while let Some(frame) = reader.next_frame()? {
        match frame {
            Frame::Names(names) => around.before.snapshot.entries.extend(names),
            Frame::NamesEnd(end) => around.names_end = Some(end),
            Frame::Records(records) => decoder.bytes(&records, &mut sink)?,
            Frame::Lost(lost) => around.lost.push(lost),
            Frame::End(end) => around.end = Some(end),
        }
        progress.fetch_add(1, Ordering::Relaxed);
    }
    let mut imported = decoder.finish(&mut sink)?;
    progress.fetch_or(DECODED, Ordering::Relaxed);
    around.torn_bytes = reader.torn_bytes();
    let header = reader.header();
    let mut notes = Vec::new();
    let names_end = around.names_end.take().unwrap_or_else(|| NamesEnd { truncated: true, ..NamesEnd::default() });
    around.before.unreadable = names_end.unreadable;
    around.before.truncated = names_end.truncated;
    let roots: Vec<PathBuf> = names_end.roots.iter().map(|root| path(root)).collect();
    if names_end.truncated {
        notes.push(format!(
            "only {} names were read before the run; those beyond are reconstructed",
            around.before.snapshot.entries.len()
        ));
    }
    if header.mount_namespace.is_some() && matches!(completion, Completion::Disk(_)) {
        notes.push("what was recorded has a mount namespace of its own: paths are as it sees them".into());
    }
    let exact = if names_end.truncated { Vec::new() } else { roots };
    let before = std::mem::take(&mut around.before);
    let view = match &completion {
        Completion::Disk(view) => view,
        Completion::Trace => &View::own(),
    };
    let completed = match completion {
        Completion::Disk(_) => complete(&mut imported, before, &exact, touched, (view, header.started_unix_ns)),
        Completion::Trace => {
            notes.push("names that were not read before the run are only those that the trace tells of".into());
            implied(&mut imported, before, &exact, touched)
        }
    };
    let mut meta = meta(header, &imported, &around, &mut notes);
    meta.file_systems = host::file_systems(view, &completed.snapshot);
    meta.snapshot.unreadable = completed.unreadable;
    meta.snapshot.truncated = completed.truncated;
    let mut given_up = || comes_second(progress, PUBLISHING, GIVEN_UP);
    let meta = writer.finish()?.finish_unless(meta, &completed.snapshot, &mut given_up)?;
    let end = around.end.unwrap_or_default();
    Ok(RecordSummary {
        meta,
        import: imported.summary,
        exit_status: end.exit_status,
        signal: end.signal,
        tracer_lost: end.tracer_lost,
        notes,
    })
}

fn path(escaped: &str) -> PathBuf {
    PathBuf::from(OsString::from_vec(
        unescape(escaped.as_bytes()).map_or_else(|_| escaped.as_bytes().to_vec(), |p| p.into_owned()),
    ))
}

/// The calls that change what paths mean and are counted alone.
const UNFOLLOWED: [&str; 4] = ["pivot_root", "move_mount", "setns", SHARED_MOUNT];

fn meta(header: &Header, imported: &Imported, around: &Around, notes: &mut Vec<String>) -> Meta {
    let mut meta = imported.meta();
    meta.tracer = header.tracer.clone();
    meta.clock.clone_from(&header.clock);
    meta.host = header.host.clone();
    let argv = match &header.subject {
        Subject::Command { argv } => argv.clone(),
        Subject::Processes { .. } | Subject::Cgroup { .. } | Subject::Mount { .. } => Vec::new(),
    };
    let end = around.end.clone().unwrap_or_default();
    meta.command = Some(profile::Command {
        argv,
        working_directory: header.working_directory.clone(),
        exit_status: end.exit_status,
        signal: end.signal,
    });
    let others = &imported.summary.coverage.other_by_name;
    let compat = others.iter().filter(|(name, _)| name.starts_with(crate::kernel::COMPAT_CALL)).map(|(_, count)| count);
    match compat.sum::<u64>() {
        0 => {}
        count => notes.push(format!(
            "{} calls were made by a 32-bit program, which the recorder in the kernel counts and does not understand; \
             strace does (--with strace)",
            count
        )),
    }
    if let Some(count) = others.get("ioctl") {
        notes.push(format!(
            "{count} requests of ioctl make, remove or change files (subvolumes, snapshots, exchanged extents), which \
             is not followed"
        ));
    }
    let unfollowed: Vec<&str> = UNFOLLOWED.into_iter().filter(|&name| others.contains_key(name)).collect();
    if !unfollowed.is_empty() {
        notes.push(format!(
            "{} can give paths another meaning, which is not followed: paths behind it may be wrong",
            unfollowed.join(", ")
        ));
    }
    let began = meta.started_unix_ns.unwrap_or(0);
    for lost in &around.lost {
        meta.lost_events = meta.lost_events.saturating_add(lost.records);
        if meta.gaps.len() < GAPS_MAX {
            let at_ns = u64::try_from(lost.at_unix_ns).unwrap_or(0).saturating_sub(began);
            meta.gaps.push(Gap { at_ns, events: lost.records });
        }
    }
    meta.gaps.sort_by_key(|gap| gap.at_ns);
    meta.coverage_share = imported.summary.coverage.share(meta.lost_events);
    if let Some(first) = around.lost.first() {
        let records: u64 = around.lost.iter().map(|lost| lost.records).sum();
        notes.push(format!("{records} records of the tracer's are missing: {}", first.why));
    }
    meta.cut_short = match &around.end {
        None => Some(CutShort::RecorderEnded),
        Some(end) => end.tracer_lost.then_some(CutShort::TracerEnded),
    };
    if around.end.is_none() {
        notes.push("the recorder was killed: the profile holds what had been stored until then".into());
    }
    if around.torn_bytes > 0 {
        notes.push(format!("the last {} bytes of the spool are a torn frame and were left out", around.torn_bytes));
    }
    if end.tracer_lost {
        notes.push(format!(
            "{} ended before what it traced: the profile holds what was seen until then",
            escape(header.tracer.name.as_bytes())
        ));
    }
    meta
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An analysis of which a test is the thread.
    fn ours(progress: u64) -> (Analysis, std::sync::mpsc::SyncSender<Result<RecordSummary, AnalysisError>>) {
        let (sender, result) = sync_channel(1);
        let partial = PathBuf::from("/nonexistent/partial");
        (Analysis { result, progress: Arc::new(AtomicU64::new(progress)), partial }, sender)
    }

    /// A second signal came when the profile had its name and its directory was being written back: "no profile could
    /// be made".
    #[test]
    fn who_gives_up_a_profile_that_is_there_gets_it() {
        let (analysis, sender) = ours(DECODED | PUBLISHING);
        let mut asked = 0;
        let result = analysis.wait(Duration::from_secs(1), &mut || {
            asked += 1;
            // Its result comes later than the wish.
            if asked == 3 {
                sender.send(Err(AnalysisError::Stuck { seconds: 7 })).expect("it is waited for");
            }
            true
        });
        assert!(matches!(result, Err(AnalysisError::Stuck { seconds: 7 })), "{result:?}");
    }

    #[test]
    fn what_is_given_up_before_gets_no_name() {
        let (analysis, _sender) = ours(DECODED);
        let progress = Arc::clone(&analysis.progress);
        let result = analysis.wait(Duration::from_secs(1), &mut || true);
        assert!(matches!(result, Err(AnalysisError::Abandoned)), "{result:?}");
        assert!(comes_second(&progress, PUBLISHING, GIVEN_UP), "its thread sees that");
    }
}
