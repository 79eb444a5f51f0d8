//! `fsage drive list`, `fsage drive describe DRIVE` and `fsage drive validate DRIVE TRACE`.

use crate::failure;
use crate::output::{self, ResultArgs};
use crate::progress;
use clap::Subcommand;
use device::validate::{self, TraceError};
use device::{Drive, Model, catalogue};
use fault::Kind;
use std::path::PathBuf;
use std::process::ExitCode;

/// List, describe and validate the models of disks and flash drives.
///
/// A DRIVE is the key of one that comes with the program, or the path of a .toml file of your own.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage drive list
  fsage drive describe st39102lw --html cheetah.html
  fsage drive validate hp-c2247a hp_c2247a.trace --max-demerit 0.09")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show the drives that come with the program.
    List(List),
    /// Show a drive's data sheet: what its figures add up to, and where each is from.
    Describe(Describe),
    /// Replay a measured trace on a disk model and show how far apart the response times are.
    Validate(Validate),
}

#[derive(clap::Args, Debug)]
struct List {
    #[command(flatten)]
    result: ResultArgs,
}

#[derive(clap::Args, Debug)]
struct Describe {
    /// A drive's key, or the path of its .toml file.
    drive: String,
    #[command(flatten)]
    result: ResultArgs,
}

#[derive(clap::Args, Debug)]
struct Validate {
    /// A disk's key, or the path of its .toml file.
    drive: String,
    /// A trace in DiskSim's validation format: `R|W ACTION LBN SECTORS RESPONSE THINK` a line, times in microseconds.
    trace: PathBuf,
    /// Fail (exit code 1) if the demerit figure is greater.
    #[arg(long, value_name = "MS", value_parser = positive_ms)]
    max_demerit: Option<f64>,
    #[command(flatten)]
    result: ResultArgs,
}

fn positive_ms(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ms) if ms.is_finite() && ms >= 0.0 => Ok(ms),
        _ => Err("a number of milliseconds, 0 or more".to_owned()),
    }
}

/// Lists, describes or validates.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    match args.command {
        Command::List(args) => list(&args),
        Command::Describe(args) => describe(&args),
        Command::Validate(args) => validate(&args),
    }
}

fn list(args: &List) -> failure::Result<ExitCode> {
    args.result.check()?;
    let drives = catalogue().iter().map(|(key, _)| Drive::find(key).map(|drive| drive.describe()));
    let drives = drives.collect::<Result<Vec<_>, _>>()?;
    args.result.emit("fsage.drives/1", &drives, &device::present::drives(&drives))?;
    Ok(ExitCode::SUCCESS)
}

fn describe(args: &Describe) -> failure::Result<ExitCode> {
    args.result.check()?;
    let description = Drive::find(&args.drive)?.describe();
    args.result.emit("fsage.drive/1", &description, &device::present::drive(&description))?;
    Ok(ExitCode::SUCCESS)
}

fn validate(args: &Validate) -> failure::Result<ExitCode> {
    args.result.check()?;
    let drive = Drive::find(&args.drive)?;
    let Model::Disk(spec) = &drive.model else {
        return Err(failure::usage(format!("{}: is not a disk; traces in this format are of disks", args.drive)));
    };
    let trace = validate::read_trace(&args.trace)?;
    let refused = |(request, why)| TraceError::Request { file: output::shown(&args.trace), request, why };
    let validation = validate::validate(&drive.key, &drive.name, spec, &trace).map_err(refused)?;
    args.result.emit("fsage.drive-validation/1", &validation, &device::present::drive_validation(&validation))?;
    match args.max_demerit {
        Some(limit_ms) if validation.demerit_ns > limit_ms * 1e6 => {
            progress::note(&format!("demerit {:.4} ms is greater than {limit_ms} ms", validation.demerit_ns / 1e6));
            Ok(failure::code(Kind::Check))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
