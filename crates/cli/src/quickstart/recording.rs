//! The quickstart's workload: recorded here, or the bundled recording where strace cannot run.

use crate::commands::record::{aside, say};
use anyhow::Context as _;
use std::fs;
use std::path::Path;
use trace::record::{self, RecordError, RecordOptions};

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

/// Records the workload in a directory of its own below `place`, or unpacks the bundled recording.
pub fn record(place: &Path, output: &Path, bundled: bool) -> anyhow::Result<Source> {
    let why = if bundled {
        "as asked for with --bundled".to_owned()
    } else {
        match here(place, output) {
            Ok(()) => return Ok(Source::Recorded),
            Err(error) => reason(error)?,
        }
    };
    fs::create_dir_all(output).with_context(|| format!("cannot make {}", output.display()))?;
    for (name, bytes) in RECORDED {
        fs::write(output.join(name), bytes).with_context(|| format!("cannot write {}", output.join(name).display()))?;
    }
    Ok(Source::Bundled { why })
}

fn here(place: &Path, output: &Path) -> anyhow::Result<()> {
    let work = place.join("work");
    let script = place.join("workload.sh");
    fs::create_dir(&work).and_then(|()| fs::write(&script, SCRIPT)).context("cannot prepare the workload")?;
    let shell = "cd \"$1\" && exec sh ../workload.sh >/dev/null";
    let command = ["sh", "-c", shell, "sh"].iter().map(Into::into).chain([work.clone().into_os_string()]).collect();
    let mut options = RecordOptions::command(command, output.to_owned());
    options.snapshot_working_directory = false;
    options.roots = vec![work];
    let summary = aside(|| record::record(&options))??;
    say(output, &summary);
    if summary.exit_status != Some(0) {
        return Err(crate::failure::environment("the workload's script failed under strace; see its messages above"));
    }
    Ok(())
}

/// Why strace cannot record here; any other failure stays one.
fn reason(error: anyhow::Error) -> anyhow::Result<String> {
    match error.downcast_ref::<RecordError>() {
        Some(RecordError::StraceMissing | RecordError::StraceTooOld { .. } | RecordError::CannotTrace { .. }) => {
            Ok(error.to_string())
        }
        _ => Err(error),
    }
}
