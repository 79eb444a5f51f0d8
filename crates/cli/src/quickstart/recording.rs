//! The quickstart's workload: recorded here, or the bundled recording where strace cannot run.
//!
//! What replays it is kept inside its target, for which an ordinary user's process enters a user namespace; there
//! strace could trace nothing. So it is recorded by a process that was made before.

use crate::commands::record::{aside, say};
use crate::failure::{self, Context as _};
use posix::apart::Apart;
use posix::offspring::Offspring;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Mutex;
use trace::record::{self, RecordError, RecordOptions, Strace};

/// The workload itself: a shell script that needs nothing but coreutils.
const SCRIPT: &str = include_str!("workload.sh");

/// The script recorded on another machine.
const RECORDED: [(&str, &[u8]); 3] = [
    ("meta.json", include_bytes!("recorded/meta.json")),
    ("trace.parquet", include_bytes!("recorded/trace.parquet")),
    ("snapshot.parquet", include_bytes!("recorded/snapshot.parquet")),
];

/// Where the workload profile comes from.
pub enum Source {
    /// Recorded here.
    Recorded,
    /// Bundled.
    Bundled {
        /// Why it could not be recorded here.
        why: String,
    },
}

/// What came of it.
#[derive(Deserialize, Serialize)]
enum Recorded {
    Done,
    CannotTrace(String),
    Interrupted,
    Failed(String),
}

/// The process that records, or why there is none.
static RECORDER: Mutex<Option<Result<Apart, String>>> = Mutex::new(None);

/// Makes the process that records, before this one has threads and a namespace. Under an emulator there is none, and
/// nothing is recorded.
///
/// # Errors
/// No process can be made.
pub fn prepare() -> io::Result<()> {
    let recorder = Apart::fork(|asked| {
        // No path has the byte between them.
        let mut paths = asked.split(|&byte| byte == 0).map(|path| Path::new(OsStr::from_bytes(path)));
        let (place, output) = (paths.next().expect("where to record"), paths.next().expect("where the profile goes"));
        serde_json::to_vec(&work(place, output)).expect("words alone")
    });
    let recorder = match recorder {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Err(error.to_string()),
        made => Ok(made?),
    };
    *RECORDER.lock().expect("nobody panics with it") = Some(recorder);
    Ok(())
}

/// Records the workload in a directory of its own below `place`, or unpacks the bundled recording.
pub fn record(place: &Path, output: &Path, bundled: bool) -> failure::Result<Source> {
    let recorder = RECORDER.lock().expect("nobody panics with it").take().expect("made when the program began");
    let why = match recorder {
        _ if bundled => "as asked for with --bundled".to_owned(),
        Err(why) => why,
        Ok(recorder) => {
            let asked = [place, output].map(|path| path.as_os_str().as_bytes()).join(&0);
            match serde_json::from_slice(&recorder.ask(&asked).context("recording")?).expect("its own words") {
                Recorded::Done => return Ok(Source::Recorded),
                Recorded::CannotTrace(why) => why,
                Recorded::Interrupted => return Err(io::Error::from(io::ErrorKind::Interrupted).into()),
                Recorded::Failed(why) => return Err(failure::environment(why)),
            }
        }
    };
    fs::create_dir_all(output).with_context(|| format!("cannot make {}", output.display()))?;
    for (name, bytes) in RECORDED {
        let path = output.join(name);
        posix::output::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(Source::Bundled { why })
}

/// In the process that records.
fn work(place: &Path, output: &Path) -> Recorded {
    let installed = posix::interrupt::install().map_err(failure::Failure::from);
    let recorded = installed.and_then(|()| here(place, output));
    // The signal that ended the script was meant for us: what it failed at is no news, and nothing goes on.
    posix::interrupt::heed_passed();
    match recorded {
        _ if posix::interrupt::requested() => Recorded::Interrupted,
        Ok(()) => Recorded::Done,
        Err(error) => reason(&error).map_or_else(|| Recorded::Failed(error.to_string()), Recorded::CannotTrace),
    }
}

fn here(place: &Path, output: &Path) -> failure::Result<()> {
    let work = place.join("work");
    let script = place.join("workload.sh");
    // A compiler that is killed leaves its temporary files behind: they go with the directory of the run.
    let temporary = place.join("tmp");
    fs::create_dir(&work)
        .and_then(|()| fs::create_dir(&temporary))
        .and_then(|()| fs::write(&script, SCRIPT))
        .context("cannot prepare the workload")?;
    let shell = "cd \"$1\" && TMPDIR=$2 && export TMPDIR && exec sh ../workload.sh >/dev/null";
    let directories = [work.clone().into_os_string(), temporary.into_os_string()];
    let command = ["sh", "-c", shell, "sh"].iter().map(Into::into).chain(directories).collect();
    let mut options = RecordOptions::command(command, output.to_owned());
    options.snapshot_working_directory = false;
    options.roots = vec![work];
    // The spool is nothing to go on from: it goes with the directory of the run, also when that is killed.
    options.spool_in = Some(place.to_owned());
    let offspring = Offspring::adopt().context("cannot find out what the workload starts")?;
    let recorded = aside(|| {
        let mut recording = record::record_with(&options, &mut Strace::find(None)?)?;
        if posix::interrupt::passed().is_some() {
            // The command got the signal too, but neither need it end for that, nor what it started.
            offspring.kill();
        }
        let profile = std::mem::replace(&mut recording.profile, Err(RecordError::NoCommand));
        let end = recording.wait().context("cannot wait for the workload")?;
        let mut summary = profile?;
        // The command may have ended after its recording did.
        summary.exit_status = summary.exit_status.or(end.exit_status);
        summary.signal = summary.signal.or(end.signal);
        failure::Result::Ok(summary)
    })?;
    // Whatever still runs works in the directory that is about to be removed.
    drop(offspring);
    let summary = recorded?;
    if posix::interrupt::passed().is_some() {
        return Ok(());
    }
    say(output, &summary);
    if summary.exit_status != Some(0) {
        return Err(crate::failure::environment("the workload's script failed under strace; see its messages above"));
    }
    Ok(())
}

/// Why strace cannot record here, if that is what failed.
fn reason(failure: &failure::Failure) -> Option<String> {
    failure.causes().find_map(|cause| match cause.downcast_ref()? {
        error @ (RecordError::StraceMissing | RecordError::StraceTooOld { .. } | RecordError::CannotTrace { .. }) => {
            Some(error.to_string())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::profile::Reader;

    /// It was of the format before, and nothing read it: where strace cannot run, quickstart ended with an error.
    #[test]
    fn the_bundled_recording_is_read_to_its_end() {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, bytes) in RECORDED {
            fs::write(directory.path().join(name), bytes).expect("written");
        }
        let reader = Reader::open(directory.path()).expect("of this format");
        let events: usize = reader.batches().expect("a trace").map(|batch| batch.expect("whole").events.len()).sum();
        assert_eq!(events as u64, reader.meta().events);
        assert!(events > 10_000 && !reader.snapshot().expect("names").entries.is_empty());
    }
}
