//! `fsage drive`: list, describe and validate models of drives; make them from DiskSim's parameters, measured traces,
//! and timed reads.

use crate::failure;
use crate::output::{self, ResultArgs};
use crate::progress;
use clap::Subcommand;
use device::extract::{Effort, Start};
use device::measure::{Modelled, Probe};
use device::validate::{self, TraceError};
use device::{Drive, Model, catalogue};
use fault::Kind;
use posix::raw_disk::RawDisk;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// List, describe and validate the models of disks and flash drives, and make new ones.
///
/// A DRIVE is the key of one that comes with the program, or the path of a .toml file of your own.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage drive list
  fsage drive describe st39102lw --html cheetah.html
  fsage drive validate hp-c2247a hp_c2247a.trace --max-demerit 0.09
  fsage drive import barracuda.parv -o barracuda.toml
  fsage drive extract barracuda.trace --from barracuda.toml --drive fitted.toml
  fsage drive measure /dev/sdb --drive mine.toml")]
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
    /// Make a drive's file from DiskSim's parameters.
    Import(Import),
    /// Fit a disk model to the first half of a measured trace, and judge it by the second.
    Extract(Extract),
    /// Make a drive's file from timed reads of a disk, a partition or an image. Nothing is written.
    Measure(Measure),
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

#[derive(clap::Args, Debug)]
struct Import {
    /// A parameter file of DiskSim 4.0: a .parv, with the files that it names beside it, or a .diskspecs alone.
    file: PathBuf,
    /// The file with the seek curve, in place of the one that the parameters name.
    #[arg(long, value_name = "FILE")]
    seek: Option<PathBuf>,
    /// The drive (disksim_disk), if there are several.
    #[arg(long, value_name = "NAME")]
    disk: Option<String>,
    /// Write the drive's file there; otherwise to standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct Extract {
    /// A trace in DiskSim's validation format: `R|W ACTION LBN SECTORS RESPONSE THINK` a line, times in microseconds.
    trace: PathBuf,
    /// The drive to begin with: a disk's key, or the path of its .toml file. Its geometry is kept. Without it, the
    /// geometry is a guess.
    #[arg(long, value_name = "DRIVE")]
    from: Option<String>,
    /// The seed of the order in which figures are tried.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The most models to try from each start.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    models: u64,
    /// How often to begin, each time with the next seed. What is best on the first half is kept.
    #[arg(long, value_name = "N", default_value_t = 3)]
    starts: u32,
    /// Write the drive's file there.
    #[arg(long, value_name = "FILE")]
    drive: Option<PathBuf>,
    #[command(flatten)]
    result: ResultArgs,
}

#[derive(clap::Args, Debug)]
struct Measure {
    /// A block device, or a file that is the image of one; or, with `model:DRIVE`, a disk model in virtual time.
    device: String,
    /// The seed of the places that are read.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the drive's file there.
    #[arg(long, value_name = "FILE")]
    drive: Option<PathBuf>,
    #[command(flatten)]
    result: ResultArgs,
}

fn positive_ms(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ms) if ms.is_finite() && ms >= 0.0 => Ok(ms),
        _ => Err("a number of milliseconds, 0 or more".to_owned()),
    }
}

/// Lists, describes, validates, imports, extracts or measures.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    match args.command {
        Command::List(args) => list(&args),
        Command::Describe(args) => describe(&args),
        Command::Validate(args) => validate(&args),
        Command::Import(args) => import(&args),
        Command::Extract(args) => extract(&args),
        Command::Measure(args) => measure(&args),
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
    for warning in &drive.warnings {
        progress::note(warning);
    }
    let trace = validate::read_trace(&args.trace)?;
    let refused = |(request, why)| TraceError::Request { file: output::shown(&args.trace), request, why };
    let validation = validate::validate(&drive.key, &drive.name, spec, &trace).map_err(refused)?;
    args.result.emit("fsage.drive-validation/1", &validation, &device::present::drive_validation(&validation))?;
    match args.max_demerit {
        Some(limit_ms) if validation.compared.demerit_ns > limit_ms * 1e6 => {
            progress::note(&format!(
                "demerit {:.4} ms is greater than {limit_ms} ms",
                validation.compared.demerit_ns / 1e6
            ));
            Ok(failure::code(Kind::Check))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn import(args: &Import) -> failure::Result<ExitCode> {
    let imported = device::import::import(&args.file, args.seek.as_deref(), args.disk.as_deref())?;
    for warning in imported.warnings.iter().chain(&imported.drive.warnings) {
        progress::note(warning);
    }
    written(args.output.as_deref(), &imported.text)?;
    Ok(ExitCode::SUCCESS)
}

fn extract(args: &Extract) -> failure::Result<ExitCode> {
    args.result.check()?;
    let trace = validate::read_trace(&args.trace)?;
    let shown = output::shown(&args.trace);
    let (key, name, start, spec) = match &args.from {
        None => ("a guess".to_owned(), "A disk".to_owned(), Start::guessed(), device::extract::guess(&trace)),
        Some(from) => {
            let drive = Drive::find(from)?;
            let Model::Disk(spec) = &drive.model else {
                return Err(failure::usage(format!("{from}: is not a disk; traces in this format are of disks")));
            };
            (drive.key.clone(), drive.name.clone(), Start::from(&drive), (**spec).clone())
        }
    };
    let bar = progress::bar(0, "fitting");
    let effort = Effort { seed: args.seed, models: args.models, starts: args.starts };
    let refused = |(request, why)| TraceError::Request { file: shown.clone(), request, why };
    let found = device::extract::extract(&key, &spec, &trace, effort, &mut |tried| bar.set_position(tried));
    bar.finish_and_clear();
    let (found, extraction) = found.map_err(refused)?;
    if let Some(to) = &args.drive {
        let text = device::extract::file(&name, &start, &found, &extraction, &output::shown(&args.trace));
        written(Some(to), &text)?;
    }
    args.result.emit("fsage.drive-extraction/1", &extraction, &device::present::extraction(&extraction))?;
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &Measure) -> failure::Result<ExitCode> {
    args.result.check()?;
    let found = match args.device.strip_prefix("model:") {
        Some(drive) => {
            let mut probe = Modelled::new(Drive::find(drive)?.device());
            device::measure::measure(drive, &mut probe, args.seed)
        }
        None => {
            let path = Path::new(&args.device);
            let disk =
                RawDisk::open(path).map_err(|error| failure::bad_input(format!("{}: {error}", output::shown(path))))?;
            device::measure::measure(&output::shown(path), &mut RealDisk(disk), args.seed)
        }
    };
    let found = found.map_err(|error| failure::bad_input(format!("{}: {error}", args.device)))?;
    args.result.emit("fsage.drive-measurement/1", &found, &device::present::measurement(&found))?;
    match (&args.drive, found.file()) {
        (None, _) => Ok(ExitCode::SUCCESS),
        (Some(to), Some(text)) => written(Some(to), &text).map(|()| ExitCode::SUCCESS),
        (Some(_), None) => {
            progress::note("no drive's file was written: this is no disk with an arm");
            Ok(failure::code(Kind::Check))
        }
    }
}

/// A disk of this machine.
struct RealDisk(RawDisk);

impl Probe for RealDisk {
    fn sector_bytes(&self) -> u32 {
        self.0.sector_bytes()
    }

    fn capacity_sectors(&self) -> u64 {
        self.0.size_bytes() / u64::from(self.0.sector_bytes())
    }

    fn read(&mut self, lbn: u64, sectors: u32) -> io::Result<u64> {
        posix::interrupt::check()?;
        let sector = u64::from(self.0.sector_bytes());
        self.0.read(lbn * sector, sectors as usize * sector as usize)
    }

    fn rest(&mut self, ns: u64) -> io::Result<()> {
        posix::interrupt::check()?;
        std::thread::sleep(Duration::from_nanos(ns));
        Ok(())
    }
}

/// A drive's file to where it was asked for.
fn written(to: Option<&Path>, text: &str) -> failure::Result<()> {
    match to {
        None => output::print(text),
        Some(path) => output::write_file(path, text.as_bytes()),
    }
}
