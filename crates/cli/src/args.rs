//! The command line as a type: `fsage COMMAND …`.

use crate::commands;
use crate::failure;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// How fast will my workload run on that file system?
///
/// Record a workload once, measure each file system once, predict every combination, and check a prediction against a
/// replay.
#[derive(Parser, Debug)]
#[command(
    name = "fsage",
    version,
    max_term_width = 100,
    after_help = "\
Exit codes: 0 done, 1 a comparison or check failed, 2 usage, 3 environment (no root, missing tool, no space), \
4 bad input file, 130 interrupted (143 by SIGTERM)."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

macro_rules! commands {
    ($($(#[$attr:meta])* $name:ident($module:ident)),* $(,)?) => {
        /// The commands, in the order of `fsage help`.
        #[derive(Subcommand, Debug)]
        pub enum Command {
            $($(#[$attr])* $name(commands::$module::Args)),*
        }

        impl Command {
            /// Runs it.
            pub fn run(self) -> failure::Result<ExitCode> {
                match self {
                    $(Command::$name(args) => commands::$module::run(args)),*
                }
            }
        }
    };
}

impl Command {
    /// Whether it makes calls that a recording says, which are to stay inside the target.
    pub fn replays(&self) -> bool {
        match self {
            Command::Replay(_) | Command::Validate(_) | Command::Quickstart(_) | Command::Library(_) => true,
            Command::Predict(args) => args.replays(),
            _ => false,
        }
    }

    /// Whether it records what it replays.
    pub fn records_apart(&self) -> bool {
        matches!(self, Command::Quickstart(_))
    }

    /// Whether a signal may end it wherever it is: it works something out and says it, and makes nothing but files that
    /// take their place when they are whole.
    pub fn ends_at_once(&self) -> bool {
        use Command::{Completions, Drive, Dump, Export, Inspect, Layout, Man, Predict, Reproduce};
        match self {
            Completions(_) | Drive(_) | Dump(_) | Export(_) | Inspect(_) | Layout(_) | Man(_) | Reproduce(_) => true,
            Predict(args) => !args.works_in_a_target(),
            _ => false,
        }
    }
}

commands! {
    Record(record),
    Import(import),
    Export(export),
    Inspect(inspect),
    Layout(layout),
    Snapshot(snapshot),
    Plan(plan),
    Age(age),
    Bench(bench),
    Drive(drive),
    Mkfs(mkfs),
    Fsck(fsck),
    Dump(dump),
    Cp(cp),
    Clean(clean),
    Mount(mount),
    Umount(umount),
    Crash(crash),
    Measure(measure),
    Predict(predict),
    Replay(replay),
    Validate(validate),
    Reproduce(reproduce),
    Sweep(sweep),
    Library(library),
    Quickstart(quickstart),
    Completions(completions),
    Man(man),
}
