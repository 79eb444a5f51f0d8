//! `fsage umount DIR`.

use crate::failure;
use std::path::PathBuf;
use std::process::ExitCode;

/// Unmount what `fsage mount` has mounted, and wait until the image is whole.
///
/// umount(8) and fusermount3 -u unmount it as well, but return before the last of it is written.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage umount mnt")]
pub struct Args {
    /// The directory that it is mounted on.
    directory: PathBuf,
}

/// Unmounts.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    fuse::umount(&args.directory, &mut || !posix::interrupt::requested())?;
    posix::interrupt::check()?;
    Ok(ExitCode::SUCCESS)
}
