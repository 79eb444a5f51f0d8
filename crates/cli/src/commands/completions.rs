//! `fsage completions SHELL`.

use crate::failure;
use crate::{args::Cli, output};
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::process::ExitCode;

/// Print a completion script for a shell.
///
/// For bash: fsage completions bash > ~/.local/share/bash-completion/completions/fsage
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The shell.
    shell: Shell,
}

/// Prints the script.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "fsage", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
