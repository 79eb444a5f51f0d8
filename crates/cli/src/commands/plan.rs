//! `fsage plan SOURCE …`: one file per source beside this one; each writes an aging workload.

mod common;

use crate::failure;
use std::process::ExitCode;

/// Plan an aging workload: what a file system goes through in months or years of use.
///
/// Writes NAME.aging, which `fsage inspect` shows and `fsage age` replays. Same arguments and seed, same bytes.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Where the workload comes from.
    #[command(subcommand)]
    source: Source,
}

macro_rules! sources {
    ($($(#[$attr:meta])* $name:ident($module:ident)),* $(,)?) => {
        $(mod $module;)*

        #[derive(clap::Subcommand, Debug)]
        enum Source {
            $($(#[$attr])* $name($module::Args)),*
        }

        /// Plans.
        pub fn run(args: Args) -> failure::Result<ExitCode> {
            match args.source {
                $(Source::$name(args) => $module::run(args)),*
            }
        }
    };
}

sources! {
    Personality(personality),
    Geriatrix(geriatrix),
    Alloc96(alloc96),
    Snapshots(snapshots),
    Profile(profile),
    Git(git),
}
