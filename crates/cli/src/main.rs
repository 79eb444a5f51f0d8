//! The `fsage` binary: arguments, progress, files and exit codes; no logic of its own.
//!
//! One file per command in `commands`; results are rendered by `document`, and every failure's exit code is decided in
//! `failure`. Standard output carries the result and nothing else; everything said on the way goes to standard error.

mod args;
mod commands;
mod conflict;
mod failure;
mod images;
mod long;
mod made;
mod names;
mod output;
mod progress;
mod quickstart;
mod systems;
mod target;
mod tips;
mod values;

use clap::{CommandFactory as _, FromArgMatches as _};
use std::ffi::OsString;
use std::process::ExitCode;

/// What is read of somebody else's costs memory within limits.
#[global_allocator]
static ALLOCATOR: posix::memory::Counting = posix::memory::Counting;

/// The command line. Exits with 2 on a usage error, 0 after --help and --version.
fn parsed() -> args::Cli {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let mut command = args::Cli::command();
    let parsed = command.try_get_matches_from_mut(&arguments).and_then(|matches| {
        made::begin(arguments.iter().cloned(), &matches);
        args::Cli::from_arg_matches(&matches)
    });
    parsed.unwrap_or_else(|error| {
        let error = error.format(&mut command);
        failure::usage_of(&conflict::explain(tips::add(error, &command, &arguments)))
    })
}

fn main() -> ExitCode {
    let cli = parsed();
    let prepared = if cli.command.replays() {
        posix::memory::one_heap();
        // It stays outside.
        let recorder = if cli.command.records_apart() { quickstart::recording::prepare() } else { Ok(()) };
        posix::contain::prepare();
        recorder
    } else {
        Ok(())
    };
    let done = prepared.and_then(|()| posix::interrupt::install()).map_err(failure::Failure::from).and_then(|()| {
        target::sweep();
        let _at_once = cli.command.ends_at_once().then(posix::interrupt::at_once);
        cli.command.run()
    });
    posix::cleanup::stand_aside();
    match done {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}
