//! The `fsage` binary: arguments, progress, files and exit codes; no logic of its own.
//!
//! One file per command in `commands`; results are rendered by `document`, and every failure's exit code is decided in
//! `failure`. Standard output carries the result and nothing else; everything said on the way goes to standard error.

mod args;
mod commands;
mod conflict;
mod failure;
mod images;
mod output;
mod progress;
mod quickstart;
mod target;
mod values;

use clap::Parser as _;
use std::process::ExitCode;

/// What is read of somebody else's costs memory within limits.
#[global_allocator]
static ALLOCATOR: posix::memory::Counting = posix::memory::Counting;

fn main() -> ExitCode {
    // Exits with 2 on a usage error, 0 after --help and --version.
    let cli = args::Cli::try_parse().unwrap_or_else(|error| failure::usage_of(&conflict::explain(error)));
    if cli.command.replays() {
        posix::memory::one_heap();
        posix::contain::prepare();
    }
    let done = posix::interrupt::install().map_err(failure::Failure::from).and_then(|()| {
        target::sweep();
        let _at_once = cli.command.ends_at_once().then(posix::interrupt::at_once);
        cli.command.run()
    });
    match done {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}
