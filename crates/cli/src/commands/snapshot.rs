//! `fsage snapshot DIR`.

use crate::failure::Context as _;
use crate::output::{self, ResultArgs};
use crate::{failure, images, progress, target};
use aging::snapshot::{TakeOptions, expand_name, take_handle};
use lab::LabSite;
use posix::{FileSystem, Mounted, Site as _, Target};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

/// Take a snapshot of a directory tree: every inode with length, times and generation.
///
/// A series of snapshots, one a day, is what `fsage plan snapshots` makes an aging workload from. Nothing is modified,
/// nothing of the files' contents is read or kept. Files that other users own can be looked at by root only.
///
/// With --blocks, the snapshot also holds where each file lies on the disk: `fsage layout` shows the layout of that
/// moment from it.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage snapshot /home -o home-%F.snapshot       one file per day (times are UTC)
  fsage snapshot /home --into /var/lib/fsage     one file per run
  fsage snapshot /home --blocks -o a.snapshot    with block lists: fsage layout a.snapshot
In a crontab, where a percent sign must be escaped:
  55 23 * * *  fsage snapshot /home -o /var/lib/fsage/home-\\%F.snapshot")]
pub struct Args {
    /// The directory; file systems mounted below it are not entered. Or an unmounted image of UFS or LFS.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The file to write. %F stands for the date, %Y %m %d %H %M %S and %s for its parts (UTC). An existing file is not
    /// overwritten.
    #[arg(long, short, value_name = "FILE.snapshot", required_unless_present = "into")]
    output: Option<PathBuf>,
    /// Write DIR/snap-YYYYMMDD-HHMMSS.snapshot instead.
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    into: Option<PathBuf>,
    /// Keep where each file lies (its extents). Dirty data is written back first, so that it has a place.
    #[arg(long)]
    blocks: bool,
    /// Leave out inode generations; files are then not opened, unless for --blocks. Only for file systems that have
    /// none.
    #[arg(long)]
    no_generations: bool,
    /// Print the result as JSON (schema named in its first field) and nothing else on standard output.
    #[arg(long)]
    json: bool,
    /// Write a self-contained HTML report.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print nothing if all went well: for cron.
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
}

/// Takes it.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    let result = ResultArgs { json: args.json, html: args.html.clone(), output: None };
    result.check()?;
    let path = name(&args)?;
    output::must_be_new(&path)?;
    let mut fs = open(&args.directory)?;
    let bar = progress::bar(0, "taking a snapshot");
    let tell = |names: u64| {
        bar.set_message(format!("taking a snapshot: {names} names"));
        !posix::interrupt::requested()
    };
    let (no_generations, blocks) = (args.no_generations, args.blocks);
    let options = TakeOptions { no_generations, blocks, progress: Some(&tell), ..TakeOptions::default() };
    let snapshot = take_handle(&mut *fs, &options);
    bar.finish_and_clear();
    let snapshot = snapshot?;
    snapshot.write(&path)?;
    let bytes = std::fs::metadata(&path)?.len();
    if !args.quiet {
        snapshot.meta.remarks.iter().for_each(|remark| progress::note(remark));
        let summary = snapshot.summary();
        let document = aging::present::tree_snapshot(&output::shown(&path), bytes, &summary);
        result.emit("fsage.snapshot/1", &summary, &document)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A directory, or the tree in an image of UFS or LFS.
fn open(tree: &Path) -> failure::Result<Box<dyn FileSystem>> {
    let written = tree.to_str().and_then(|text| Target::parse(text).ok());
    match (tree.exists(), written) {
        (false, Some(Target::Lab(text))) => Ok(target::open_image(&text)?.handle()),
        _ if images::is_image(tree) => Ok(LabSite::look_at(tree)?.handle()),
        (true, _) if !tree.is_dir() => Err(failure::bad_input(format!(
            "{}: is neither a directory nor an image of UFS or LFS; mount the file system that is in it, and name the \
             directory where it is mounted",
            output::shown(tree)
        ))),
        _ => {
            let shown = output::shown(tree);
            let opened = Mounted::open(tree).with_context(|| format!("{shown}: cannot be opened as a directory"));
            Ok(Box::new(opened?))
        }
    }
}

/// The file to write, with the time in its name.
fn name(args: &Args) -> failure::Result<PathBuf> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now_ns = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
    if let Some(directory) = &args.into {
        let name = expand_name("snap-%Y%m%d-%H%M%S.snapshot", now_ns).map_err(failure::usage)?;
        return Ok(directory.join(name));
    }
    let pattern = args.output.as_deref().unwrap_or(Path::new(""));
    // Only the last component is a pattern; a name that is not UTF-8 is taken as it is.
    match pattern.file_name().and_then(|n| n.to_str()) {
        Some(text) => Ok(pattern.with_file_name(expand_name(text, now_ns).map_err(failure::usage)?)),
        None => Ok(pattern.to_owned()),
    }
}
