//! `fsage bench NAME TARGET…` and `fsage bench --compare A B`.

mod targets;
mod workloads;

use crate::failure::Context as _;
use crate::output::{self, ResultArgs};
use crate::target;
use crate::{failure, values};
use posix::{FileSystem, Mounted, Site as _, Target};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use targets::{RepeatArgs, in_virtual_time, name_of, on_targets, side_by_side};
use workload::hotfiles::{self, Select};
use workload::{BenchResult, Parameters, scan, seqfile};

/// Run a benchmark on targets side by side, or hold results against each other.
///
/// Rounds run in random order, interleaved over targets; caches are dropped before every phase, and are said to be cold
/// only where that was verified. Rates of phases that write include the write-back.
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  fsage bench seqfile ext4:8G xfs:8G --html seqfile.html
  fsage bench seqfile /mnt/aged --json > aged.json
  fsage bench hotfiles /mnt/aged/tree --newer-days 30
  fsage bench scan ~/src
  fsage bench postmark ext4:4G xfs:4G --transactions 20000
  fsage bench --compare fresh.json aged.json"
)]
pub struct Args {
    /// Compare two results that --json or -o wrote: B over A, with intervals.
    #[arg(long, num_args = 2, value_names = ["A", "B"], required = true)]
    compare: Vec<PathBuf>,
    #[command(flatten)]
    result: ResultArgs,
    #[command(subcommand)]
    benchmark: Option<Benchmark>,
}

/// The benchmarks; each is explained by its arguments.
#[derive(clap::Subcommand, Debug)]
enum Benchmark {
    Seqfile(SeqfileArgs),
    Hotfiles(HotfilesArgs),
    Scan(ScanArgs),
    #[command(flatten)]
    Workload(workloads::Workload),
}

/// Sequential performance by file size: create, read, overwrite, delete.
///
/// A given amount of data is cut into files of each size (Seltzer et al., USENIX 1995). Works in a directory of its own
/// in each target, and removes it. Run it in a directory on an aged file system, or on a fresh one. The write-back is
/// that of the whole file system: what others write to it meanwhile is in the time.
#[derive(clap::Args, Debug)]
struct SeqfileArgs {
    /// Directories, scratch file systems (as root): ext4:8G, xfs:8G, btrfs:8G, or those of the laboratory:
    /// ffs:OPTIONS@DRIVE.
    #[arg(value_name = "TARGET", required = true, value_parser = target::parse)]
    targets: Vec<Target>,
    /// Data that the files of one size hold together.
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = values::size)]
    data: u64,
    /// File sizes, separated by commas (default: 1K to 32M in powers of two, 96K and 104K).
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = values::size)]
    sizes: Vec<u64>,
    /// Files in a directory, at most (25 in the study of 1996).
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    per_directory: u32,
    /// The largest single read or write (4M in the study of 1996).
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = values::size)]
    piece: u64,
    #[command(flatten)]
    repeat: RepeatArgs,
    #[command(flatten)]
    result: ResultArgs,
}

/// Read (and overwrite) the recently modified files of a tree that is there.
///
/// Smith and Seltzer, USENIX 1996: the files modified last, directory by directory, from cold caches. Only reads,
/// unless --overwrite is given; and only a tree that `fsage age` made is ever overwritten.
#[derive(clap::Args, Debug)]
struct HotfilesArgs {
    /// Directories holding a tree each, or images in the laboratory (ffs:image=FILE).
    #[arg(value_name = "DIRECTORY", required = true)]
    trees: Vec<PathBuf>,
    /// Files modified in the last N days before the tree's newest file.
    #[arg(long, value_name = "N", default_value_t = 30.0)]
    newer_days: f64,
    /// The most recently modified share of the files instead: 10%, 0.1.
    #[arg(long, value_name = "SHARE", value_parser = values::share, conflicts_with_all = ["newer_days", "list"])]
    share: Option<f64>,
    /// The files listed here instead, one a line, by path from the directory.
    #[arg(long, value_name = "FILE", conflicts_with = "newer_days")]
    list: Option<PathBuf>,
    /// Write the files over in place as well; refused for a tree that `fsage age` did not make.
    #[arg(long)]
    overwrite: bool,
    /// The largest single read or write.
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = values::size)]
    piece: u64,
    #[command(flatten)]
    repeat: RepeatArgs,
    #[command(flatten)]
    result: ResultArgs,
}

/// Read a whole tree that is there, as grep -r does.
///
/// Directories are read, and files opened, read to their end and closed, in the order the file system lists them, from
/// cold caches. Writes nothing.
#[derive(clap::Args, Debug)]
struct ScanArgs {
    /// Directories holding a tree each, or images in the laboratory (ffs:image=FILE).
    #[arg(value_name = "DIRECTORY", required = true)]
    trees: Vec<PathBuf>,
    /// Ask every name for its attributes instead of reading files, as find does.
    #[arg(long)]
    stat_only: bool,
    /// Size of a read.
    #[arg(long, value_name = "SIZE", default_value = "96K", value_parser = values::size)]
    piece: u64,
    #[command(flatten)]
    repeat: RepeatArgs,
    #[command(flatten)]
    result: ResultArgs,
}

/// Runs a benchmark, or compares.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    let (result, found) = match args.benchmark {
        Some(Benchmark::Seqfile(args)) => (args.result.clone(), seqfile(&args)?),
        Some(Benchmark::Hotfiles(args)) => (args.result.clone(), hotfiles(&args)?),
        Some(Benchmark::Scan(args)) => (args.result.clone(), scan(&args)?),
        Some(Benchmark::Workload(args)) => (args.result().clone(), workloads::run(&args)?),
        None => return compare(&args.compare, &args.result),
    };
    result.emit(workload::SCHEMA, &found, &workload::present::bench(&found))?;
    Ok(ExitCode::SUCCESS)
}

fn compare(files: &[PathBuf], result: &ResultArgs) -> failure::Result<ExitCode> {
    result.check()?;
    let [a, b] = files else { return Err(failure::usage("--compare: name two results")) };
    let (found_a, found_b) = (workload::load(a)?, workload::load(b)?);
    let comparison = workload::compare(&found_a, &found_b, (&output::shown(a), &output::shown(b)))?;
    let document = workload::present::bench_comparison(&comparison, &found_a, &found_b);
    result.emit("fsage.bench-comparison/1", &comparison, &document)?;
    Ok(ExitCode::SUCCESS)
}

fn seqfile(args: &SeqfileArgs) -> failure::Result<BenchResult> {
    args.result.check()?;
    let mut options = seqfile::Options::with_data(args.data);
    if !args.sizes.is_empty() {
        options.sizes_bytes.clone_from(&args.sizes);
    }
    options.files_per_directory = args.per_directory;
    options.piece_bytes = args.piece;
    options.repeat = args.repeat.repeat(in_virtual_time(&args.targets));
    on_targets(&Parameters::Seqfile(options), &args.targets, &[])
}

fn hotfiles(args: &HotfilesArgs) -> failure::Result<BenchResult> {
    args.result.check()?;
    let select = match (args.share, &args.list) {
        (Some(share), _) => Select::Share(share),
        (_, Some(list)) => Select::List { from: output::shown(list), paths: read_list(list)? },
        _ => Select::NewerDays(args.newer_days),
    };
    let repeat = args.repeat.repeat(images_in_virtual_time(&args.trees));
    let options = hotfiles::Options { select, overwrite: args.overwrite, piece_bytes: args.piece, repeat };
    on_trees(&Parameters::Hotfiles(options), &args.trees)
}

fn scan(args: &ScanArgs) -> failure::Result<BenchResult> {
    args.result.check()?;
    let repeat = args.repeat.repeat(images_in_virtual_time(&args.trees));
    let options = scan::Options { stat_only: args.stat_only, piece_bytes: args.piece, repeat };
    on_trees(&Parameters::Scan(options), &args.trees)
}

/// The same of trees.
fn images_in_virtual_time(trees: &[PathBuf]) -> bool {
    let in_laboratory = |tree: &Path| {
        let target = tree.to_str().and_then(|text| Target::parse(text).ok());
        !tree.exists() && matches!(target, Some(Target::Lab(_)))
    };
    trees.iter().all(|tree| in_laboratory(tree))
}

/// Runs a benchmark on trees that are there.
fn on_trees(parameters: &Parameters, trees: &[PathBuf]) -> failure::Result<BenchResult> {
    let handles = trees.iter().map(|tree| open_tree(tree)).collect::<failure::Result<Vec<Box<dyn FileSystem>>>>()?;
    let names = trees.iter().map(|tree| name_of(&Target::Directory(tree.clone()))).collect();
    side_by_side(parameters, names, handles, Vec::new())
}

fn open_tree(tree: &Path) -> failure::Result<Box<dyn FileSystem>> {
    if tree.is_dir() {
        let opened = Mounted::open(tree).with_context(|| format!("cannot open {}", output::shown(tree)))?;
        return Ok(Box::new(opened));
    }
    let scratch = tree.to_str().and_then(|text| Target::parse(text).ok());
    if let Some(Target::Lab(text)) = &scratch {
        return Ok(target::open_image(text)?.handle());
    }
    let shown = output::shown(tree);
    Err(failure::usage(match (tree.exists(), scratch) {
        (false, Some(Target::Scratch(_))) => {
            format!("{shown}: a scratch file system would be empty; name a directory that holds a tree")
        }
        (false, _) => format!("{shown}: no such directory"),
        (true, _) => format!("{shown}: is not a directory"),
    }))
}

/// No list of paths is longer.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// Paths, one a line; empty lines are left out.
fn read_list(file: &Path) -> failure::Result<Vec<PathBuf>> {
    use std::os::unix::ffi::OsStrExt as _;
    let shown = output::shown(file);
    let text = posix::input::read(file, LIST_BYTES_MAX)
        .map_err(|error| failure::bad_input(format!("cannot read {shown}: {error}")))?;
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(|line| PathBuf::from(std::ffi::OsStr::from_bytes(line))).collect())
}
