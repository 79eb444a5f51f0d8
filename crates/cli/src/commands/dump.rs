//! `fsage dump IMAGE WHAT`.

use super::lfs;
use crate::failure::{self, Context as _};
use crate::output::{self, ResultArgs};
use clap::ValueEnum;
use ffs::{FileStore, GroupNo, Image, Ino, Search};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show a structure of an FFS or LFS image: superblock, groups or segments, inode, directory, free map, ifile.
///
/// What it is, is found out. Of an LFS image that was not unmounted, segments, ifile, inodes and directories are shown as roll-forward
/// makes them; with --checkpoint as of the checkpoint.
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
    pub(super) image: PathBuf,
    /// What to show.
    #[arg(value_enum, default_value_t = What::Superblock)]
    pub(super) what: What,
    /// Which one: a group's or segment's number; an inode's number, or a path from the root (default: the root directory).
    pub(super) which: Option<PathBuf>,
    /// FFS: use a group's copy of the superblock where the standard one is damaged.
    #[arg(long)]
    pub(super) copies: bool,
    /// LFS: as of the checkpoint, without what was written after it.
    #[arg(long)]
    pub(super) checkpoint: bool,
    #[command(flatten)]
    pub(super) result: ResultArgs,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Every field of the superblock.
    Superblock,
    /// FFS: a line for each cylinder group.
    Groups,
    /// FFS: a cylinder group.
    Group,
    /// An inode and where its data is.
    Inode,
    /// The entries of a directory.
    Directory,
    /// FFS: free fragments.
    Free,
    /// FFS: the free maps of all groups with the superblock, for `fsage mkfs free-maps`.
    FreeMaps,
    /// LFS: the segment usage table.
    Segments,
    /// LFS: a segment with its partial segments.
    Segment,
    /// LFS: cleaner information and the inode map.
    Ifile,
}

/// Shows it.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    args.result.check()?;
    let shown = output::shown(&args.image);
    let store = FileStore::open(&args.image)
        .map_err(|error| failure::bad_input(format!("{shown}: cannot open it: {error}")))?;
    if ::lfs::is_lfs(&store) {
        lfs::dump(&args, store).with_context(|| shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.checkpoint {
        return Err(failure::usage(format!("{shown}: is an FFS image, and --checkpoint is for LFS images")));
    }
    let search = if args.copies { Search::Copies } else { Search::Standard };
    let image = Image::open(store, search).with_context(|| shown.clone())?;
    show(&args, &image).with_context(|| shown)?;
    Ok(ExitCode::SUCCESS)
}

fn show(args: &Args, image: &Image<FileStore>) -> failure::Result<()> {
    let none = matches!(args.what, What::Superblock | What::Groups | What::Free | What::FreeMaps);
    if let (true, Some(which)) = (none, &args.which) {
        return Err(failure::usage(format!("{}: there is one of these only", output::shown(which))));
    }
    match args.what {
        What::Superblock => {
            let dump = image.dump_superblock();
            args.result.emit("fsage.ffs-superblock/1", &dump, &ffs::present::superblock(&dump))
        }
        What::Groups => {
            let rows = image.dump_groups()?;
            args.result.emit("fsage.ffs-groups/1", &Rows { groups: &rows }, &ffs::present::groups(&rows))
        }
        What::Group => {
            let number = args.which.as_deref().and_then(|p| p.to_str()).and_then(|text| text.parse().ok());
            let number = number.ok_or_else(|| failure::usage("which group? Give its number, from 0"))?;
            let dump = image.dump_group(GroupNo(number))?;
            args.result.emit("fsage.ffs-group/1", &dump, &ffs::present::group(&dump))
        }
        What::Inode => {
            let dump = image.dump_inode(inode(args, image)?)?;
            args.result.emit("fsage.ffs-inode/1", &dump, &ffs::present::inode(&dump))
        }
        What::Directory => {
            let dump = image.dump_directory(inode(args, image)?)?;
            args.result.emit("fsage.ffs-directory/1", &dump, &ffs::present::directory(&dump))
        }
        What::Segments | What::Segment | What::Ifile => {
            Err(failure::usage("this is an FFS image, which has groups and no segments or ifile"))
        }
        What::FreeMaps => {
            let maps = ffs::FreeMaps::of_image(image)?;
            let document = ffs::present::free_maps(&output::shown(&args.image), &maps.figures());
            args.result.emit(super::mkfs::free_maps::SCHEMA, &maps, &document)
        }
        What::Free => {
            let runs = image.dump_free()?;
            args.result.emit("fsage.ffs-free/1", &Free { free: &runs }, &ffs::present::free(&runs))
        }
    }
}

#[derive(serde::Serialize)]
struct Rows<'a> {
    groups: &'a [ffs::dump::GroupRow],
}

#[derive(serde::Serialize)]
struct Free<'a> {
    free: &'a [ffs::dump::FreeRun],
}

/// A number is an inode's, anything else a path from the root.
fn inode(args: &Args, image: &Image<FileStore>) -> failure::Result<Ino> {
    let Some(which) = &args.which else { return Ok(ffs::format::ROOT_INO) };
    if let Some(number) = which.to_str().and_then(|text| text.parse().ok()) {
        return Ok(Ino(number));
    }
    Ok(image.resolve(which.as_os_str().as_bytes())?.0)
}
