//! `fsage man`: manual pages from the same definitions as `--help`.

use crate::failure::{self, Context as _};
use crate::{args::Cli, output};
use clap::CommandFactory as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print the manual page, or write one page per command into a directory.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Write fsage.1 and fsage-COMMAND.1 into this directory instead.
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Prints or writes the pages.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    match args.output {
        Some(directory) => {
            std::fs::create_dir_all(&directory)
                .with_context(|| format!("cannot make {}", output::shown(&directory)))?;
            clap_mangen::generate_to(Cli::command(), &directory)
                .with_context(|| format!("cannot write manual pages into {}", output::shown(&directory)))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            output::print(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
