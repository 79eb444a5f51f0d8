//! `fsage umount DIR`.

use crate::failure;
use crate::output::shown;
use fault::Kind;
use fuse::MountError;
use std::io;
use std::path::{Path, PathBuf};
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
    let done = fuse::umount(&args.directory, args.force, &mut || !posix::interrupt::requested());
    if posix::interrupt::requested() {
        let became = became(&args.directory, done);
        return Err(failure::Failure::new(Kind::Interrupted, format!("interrupted; {became}")));
    }
    if let Some(other) = done? {
        posix::notice::tell(&format!("still mounted on {}", shown(&other)));
    }
    Ok(ExitCode::SUCCESS)
}

/// How far it has come when a signal ends it.
fn became(directory: &Path, done: Result<Option<PathBuf>, MountError>) -> String {
    let directory = shown(directory);
    match done {
        Ok(None) => format!("{directory} is unmounted"),
        Ok(Some(other)) => format!("{directory} is unmounted, and {} is not", shown(&other)),
        // Only what serves it was still waited for, and that goes on.
        Err(MountError::InUse { path }) => {
            format!("{directory} is unmounted; {} is in use until the rest of it is written", shown(&path))
        }
        Err(MountError::Unwritten { source, .. }) if source.kind() == io::ErrorKind::Interrupted => {
            format!("{directory} is still mounted")
        }
        Err(error) => error.to_string(),
    }
}
