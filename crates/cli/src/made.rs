//! Where a result comes from: the command, the program's version, when, on which machine, with which seed.
//!
//! Every JSON result has it under `run`, and every report at its end.

use clap::ArgMatches;
use document::Origin;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// What this process was asked to do, once it is known.
static RUN: OnceLock<Run> = OnceLock::new();

#[derive(Debug)]
struct Run {
    command: String,
    seed: Option<u64>,
    time: String,
}

/// Takes down what was asked for.
pub fn begin(arguments: impl Iterator<Item = OsString>, matches: &ArgMatches) {
    let run = Run {
        command: command(arguments),
        seed: seed(matches),
        time: time(std::env::var("SOURCE_DATE_EPOCH").ok().as_deref()),
    };
    // Only a test of this file would do it twice.
    let _ = RUN.set(run);
}

/// For reports.
pub fn origin() -> Option<Origin> {
    let run = RUN.get()?;
    Some(Origin {
        command: run.command.clone(),
        version: format!("fsage {}", env!("CARGO_PKG_VERSION")),
        time: run.time.clone(),
        machine: posix::machine(),
        seed: run.seed,
    })
}

/// For results as JSON: `version`, `command`, `time` (UTC) and `seed`, where the command takes one.
pub fn json() -> Option<Value> {
    let run = RUN.get()?;
    let mut value = json!({ "version": env!("CARGO_PKG_VERSION"), "command": run.command, "time": run.time });
    if let Some(seed) = run.seed {
        value["seed"] = json!(seed);
    }
    Some(value)
}

/// As it was typed, so that a shell takes it again; the program by its name alone.
fn command(arguments: impl Iterator<Item = OsString>) -> String {
    let quoted = |argument: OsString| {
        use std::os::unix::ffi::OsStrExt as _;
        let shown = units::text::path(argument.as_bytes());
        let plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
        if !shown.is_empty() && shown.chars().all(plain) {
            shown
        } else {
            format!("'{}'", shown.replace('\'', "'\\''"))
        }
    };
    std::iter::once("fsage".to_owned()).chain(arguments.skip(1).map(quoted)).collect::<Vec<_>>().join(" ")
}

/// The seed of the innermost command, given or by default.
fn seed(matches: &ArgMatches) -> Option<u64> {
    if let Some((_, below)) = matches.subcommand()
        && let Some(seed) = seed(below)
    {
        return Some(seed);
    }
    matches.try_get_one::<u64>("seed").ok().flatten().copied()
}

/// Now, or the time that SOURCE_DATE_EPOCH says (<https://reproducible-builds.org/specs/source-date-epoch/>), so that
/// the same run has the same bytes.
fn time(epoch: Option<&str>) -> String {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let seconds = epoch.and_then(|text| text.trim().parse().ok()).unwrap_or_else(now);
    let unix_ns = i64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000_000);
    aging::snapshot::expand_name("%FT%H:%M:%SZ", unix_ns).expect("the pattern is well formed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let arguments =
            ["/usr/bin/fsage", "predict", "my web.workload", "it's", "--set", "rm=50us", ""].map(OsString::from);
        assert_eq!(command(arguments.into_iter()), r"fsage predict 'my web.workload' 'it'\''s' --set rm=50us ''");
    }

    #[test]
    fn the_time_is_utc_and_can_be_given() {
        assert_eq!(time(Some("1700000000")), "2023-11-14T22:13:20Z");
        assert!(time(Some("soon")).starts_with("20"), "what is no time is not taken for one");
        assert_eq!(time(None).len(), 20);
    }

    #[test]
    fn the_seed_is_that_of_the_innermost_command() {
        use clap::CommandFactory as _;
        let of = |line: &str| seed(&crate::args::Cli::command().get_matches_from(line.split(' ')));
        assert_eq!(of("fsage predict w s"), Some(1));
        assert_eq!(of("fsage bench scan . --seed 7"), Some(7));
        assert_eq!(of("fsage drive list"), None);
    }
}
