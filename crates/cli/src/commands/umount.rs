//! `fsage umount DIR`.

use crate::failure;
use std::path::PathBuf;
use std::process::ExitCode;

/// Unmount what `fsage mount` has mounted, and wait until the image is whole.
///
/// What cannot be written is not lost in silence: then it stays mounted. umount(8) and fusermount3 -u unmount it as
/// well, but return before the last of it is written, and do not say whether it was.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage umount mnt

Exit codes: 0 unmounted, and everything is written, 2 nothing of fsage is mounted there, 3 in use, or it cannot be \
written.")]
pub struct Args {
    /// The directory that it is mounted on.
    directory: PathBuf,
    /// Unmount even if not everything can be written: what cannot be is lost.
    #[arg(long)]
    force: bool,
}

/// Unmounts.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    if let Some(other) = fuse::umount(&args.directory, args.force, &mut || !posix::interrupt::requested())? {
        posix::notice::tell(&format!("still mounted on {}, and served there", other.display()));
    }
    posix::interrupt::check()?;
    Ok(ExitCode::SUCCESS)
}
