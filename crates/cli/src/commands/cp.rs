//! `fsage cp IMAGE:/path DIR`.

use crate::output::{self, ResultArgs};
use crate::{failure, progress};
use anyhow::Context as _;
use ffs::{ExtractOptions, FileStore, Image, Search};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Copy files out of an FFS image, without mounting it.
///
/// Modes, times, links, symbolic links and holes are preserved, and owners with --owners. Nothing that is there is
/// overwritten.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage cp disk.img:/ everything
  fsage cp disk.img:/etc/passwd .")]
pub struct Args {
    /// The image and a path in it from the root: IMAGE:/PATH.
    #[arg(value_name = "IMAGE:/PATH")]
    from: OsString,
    /// Where the copy goes. In a directory that is there it keeps its name; the root goes into an empty one.
    to: PathBuf,
    /// Give files their owners; needs root.
    #[arg(long)]
    owners: bool,
    /// Use a group's copy of the superblock where the standard one is damaged.
    #[arg(long)]
    copies: bool,
    #[command(flatten)]
    result: ResultArgs,
}

/// Copies.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.result.check()?;
    let (file, path) = split(&args.from)?;
    let shown = output::shown(&file);
    let store = File::open(&file)
        .and_then(FileStore::new)
        .map_err(|error| failure::bad_input(format!("{shown}: cannot open it: {error}")))?;
    let search = if args.copies { Search::Copies } else { Search::Standard };
    let image = Image::open(store, search).with_context(|| shown.clone())?;
    let last = path.rsplit(|b| *b == b'/').find(|name| !name.is_empty());
    let to = match last {
        Some(name) if args.to.is_dir() => args.to.join(OsStr::from_bytes(name)),
        _ => args.to.clone(),
    };
    let bar = progress::bar(0, "copying");
    let done = ffs::extract(&image, &path, &to, ExtractOptions { owners: args.owners }, &mut |so_far| {
        bar.set_message(format!("copying: {} files", so_far.files));
        !posix::interrupt::requested()
    });
    bar.finish_and_clear();
    let done = done.with_context(|| shown)?;
    args.result.emit("fsage.cp-ffs/1", &done, &report::ffs_extracted(&done))?;
    Ok(ExitCode::SUCCESS)
}

/// The image and the path in it: parted at the first `:/` before which there is a file.
fn split(from: &OsStr) -> anyhow::Result<(PathBuf, Vec<u8>)> {
    let bytes = from.as_bytes();
    let places = (0..bytes.len()).filter(|i| bytes.get(*i..*i + 2) == Some(b":/"));
    for at in places {
        let (image, path) = bytes.split_at(at);
        let image = Path::new(OsStr::from_bytes(image));
        if image.exists() && !image.is_dir() {
            return Ok((image.to_owned(), path.get(1..).unwrap_or_default().to_vec()));
        }
    }
    Err(failure::usage(format!(
        "{}: is not IMAGE:/PATH with an image that is there (disk.img:/etc)",
        output::shown(Path::new(from))
    )))
}
