//! What `dump`, `fsck` and `cp` do with LFS images.

use super::dump::{Args, What};
use crate::failure::Context as _;
use crate::output::{self, ResultArgs};
use crate::{failure, progress};
use ::lfs::format::{Ino, ROOT_INO, SegNo};
use ::lfs::{Checkpoint, ExtractOptions, Extracted, FileStore, Image, LfsError};
use fault::Kind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::ExitCode;

/// Shows a structure.
pub(super) fn dump(args: &Args, store: FileStore) -> failure::Result<()> {
    if args.copies {
        return Err(failure::usage("--copies: of an LFS image the newer of the first two superblocks counts"));
    }
    let mut image = Image::open(store, Checkpoint::Newer)?;
    let once = matches!(args.what, What::Superblock | What::Segments | What::Ifile);
    if let (true, Some(which)) = (once, &args.which) {
        return Err(failure::usage(format!("{}: there is one of these only", output::shown(which))));
    }
    if args.what == What::Superblock {
        let dump = image.dump_superblock();
        return args.result.emit("fsage.lfs-superblock/1", &dump, &lfs::present::superblock(&dump));
    }
    if !args.checkpoint {
        image.roll_forward()?;
    }
    match args.what {
        What::Segments => {
            let rows = image.dump_segments();
            args.result.emit("fsage.lfs-segments/1", &Rows { segments: &rows }, &lfs::present::segments(&rows))
        }
        What::Segment => {
            let number = args.which.as_deref().and_then(|p| p.to_str()).and_then(|text| text.parse().ok());
            let number = number.ok_or_else(|| failure::usage("which segment? Give its number, from 0"))?;
            let dump = image.dump_segment(SegNo(number))?;
            args.result.emit("fsage.lfs-segment/1", &dump, &lfs::present::segment(&dump))
        }
        What::Ifile => {
            let dump = image.dump_ifile();
            args.result.emit("fsage.lfs-ifile/1", &dump, &lfs::present::ifile(&dump))
        }
        What::Inode => {
            let dump = image.dump_inode(inode(args, &image)?)?;
            args.result.emit("fsage.lfs-inode/1", &dump, &lfs::present::inode(&dump))
        }
        What::Directory => {
            let dump = image.dump_directory(inode(args, &image)?)?;
            args.result.emit("fsage.lfs-directory/1", &dump, &lfs::present::directory(&dump))
        }
        What::Superblock | What::Groups | What::Group | What::Free | What::FreeMaps => {
            Err(failure::usage("this is an LFS image, which has segments and no groups or free map"))
        }
    }
}

#[derive(serde::Serialize)]
struct Rows<'a> {
    segments: &'a [::lfs::dump::SegmentRow],
}

/// A number is an inode's, anything else a path from the root.
fn inode(args: &Args, image: &Image<FileStore>) -> Result<Ino, LfsError> {
    let Some(which) = &args.which else { return Ok(ROOT_INO) };
    match which.to_str().and_then(|text| text.parse().ok()) {
        Some(number) => Ok(Ino(number)),
        None => Ok(image.resolve(which.as_os_str().as_bytes())?.0),
    }
}

/// Checks an image.
pub(super) fn fsck(result: &ResultArgs, store: FileStore, image: &str) -> failure::Result<ExitCode> {
    let bar = progress::bar(0, "checking");
    let report = ::lfs::fsck(store, &mut |phase| {
        bar.set_message(format!("checking: {}", phase.title()));
        !posix::interrupt::requested()
    });
    bar.finish_and_clear();
    let report = report.with_context(|| image.to_owned())?;
    result.emit("fsage.fsck-lfs/1", &report, &lfs::present::checked(image, &report))?;
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { failure::code(Kind::Check) })
}

/// Copies out of an image, as roll-forward makes it.
pub(super) fn extract(
    store: FileStore,
    path: &[u8],
    to: &Path,
    options: ExtractOptions,
    go_on: &mut dyn FnMut(&Extracted) -> bool,
) -> Result<Extracted, LfsError> {
    let mut image = Image::open(store, Checkpoint::Newer)?;
    image.roll_forward()?;
    ::lfs::extract(&image, path, to, options, go_on)
}
