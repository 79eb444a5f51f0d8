//! `fsage dump IMAGE WHAT`.

use crate::failure::{self, Context as _};
use crate::images::{self, Wanted, What};
use crate::output::{self, ResultArgs};
use std::path::PathBuf;
use std::process::ExitCode;

/// Show a structure of an FFS or LFS image: superblock, groups or segments, inode, directory, free map, ifile.
///
/// What it is, is found out. Of an LFS image that was not unmounted, segments, ifile, inodes and directories are shown
/// as roll-forward makes them; with --checkpoint as of the checkpoint.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage dump disk.img superblock
  fsage dump disk.img group 0
  fsage dump disk.img inode /etc/passwd
  fsage dump disk.img directory 2 --json
  fsage dump log.img segment 1")]
pub struct Args {
    /// An unmounted image file or device.
    image: PathBuf,
    /// What to show.
    #[arg(value_enum, default_value_t = What::Superblock)]
    what: What,
    /// Which one: a group's or segment's number; an inode's number, or a path from the root (default: the root
    /// directory).
    which: Option<PathBuf>,
    /// FFS: use a group's copy of the superblock where the standard one is damaged.
    #[arg(long)]
    copies: bool,
    /// LFS: as of the checkpoint, without what was written after it.
    #[arg(long)]
    checkpoint: bool,
    #[command(flatten)]
    result: ResultArgs,
}

/// Shows it.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    args.result.check()?;
    let Args { image, what, which, copies, checkpoint, result } = args;
    let image_name = output::shown(&image);
    let store = images::open(&image)?;
    let wanted = Wanted { what, which: which.as_deref(), copies, checkpoint, image_name: &image_name };
    images::of(&image).dump(store, &wanted).with_context(|| image_name.clone())?.emit(&result)?;
    Ok(ExitCode::SUCCESS)
}
