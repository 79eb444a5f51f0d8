//! `fsage mkfs ffs|lfs IMAGE --size SIZE`, `fsage mkfs free-maps IMAGE MAPS`.

mod free_maps;
mod image;
mod lfs;

use crate::failure::Context as _;
use crate::output::{self, ResultArgs};
use crate::{failure, values};
use clap::{Subcommand, ValueEnum};
use ffs::mkfs::{DiskGeometry, GroupSize, MkfsOptions};
use ffs::{Endian, Version};
use image::{Opened, Populate, Result, finish, narrow, now, open, size_of};
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a file system in an image file, empty or with the files of a directory.
///
/// Same options, seed and time, and same files, same bytes.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage mkfs ffs disk.img --size 64M
  fsage mkfs ffs disk.img --size 1G --ufs 2 --label home --seed 7 --time 0
  fsage mkfs ffs root.img --size 256M --ufs 2 --populate tree --owner 0:0 --time 0
  fsage mkfs ffs old.img --size 502M --heads 22 --sectors 118 --cpg 16 --maxcontig 7
  fsage mkfs lfs log.img --size 256M --segment 512K
  fsage mkfs lfs log.img --size 256M --populate tree
  fsage dump aged.img free-maps --json > aged.maps; fsage mkfs free-maps again.img aged.maps")]
pub struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand, Debug)]
enum Kind {
    /// The Fast File System: UFS1 (4.4BSD) or UFS2.
    Ffs(Box<FfsArgs>),
    /// The log-structured file system of 4.4BSD, in the format of NetBSD (version 2, 32-bit).
    Lfs(lfs::LfsArgs),
    /// An FFS in which just as much is in use as free maps of another one say, held by files without content.
    FreeMaps(free_maps::FreeMapsArgs),
}

#[derive(clap::Args, Debug)]
struct FfsArgs {
    /// The image file to make; or with --force one to overwrite, or a block device.
    image: PathBuf,
    /// Size of the file system (64M, 2G); of an existing file or device, its own where left out.
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    size: Option<u64>,
    /// The format: 1 or 2.
    #[arg(long, value_name = "VERSION", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    ufs: u8,
    /// Bytes of a block (default: 8K for UFS1, 16K for UFS2).
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    bsize: Option<u64>,
    /// Bytes of a fragment (default: an eighth of a block).
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    fsize: Option<u64>,
    /// Per cent of space held back.
    #[arg(long, value_name = "PERCENT", default_value_t = 8)]
    minfree: u32,
    /// Blocks of one file in a group before the next is taken (default: the pointers of an indirect block).
    #[arg(long, value_name = "BLOCKS")]
    maxbpg: Option<u32>,
    /// Blocks of a cluster (default: 128 KiB of them).
    #[arg(long, value_name = "BLOCKS")]
    maxcontig: Option<u32>,
    /// Milliseconds between successive blocks of a file (UFS1).
    #[arg(long, value_name = "MS", default_value_t = 0)]
    rotdelay: u32,
    /// Expected size of a file.
    #[arg(long, value_name = "SIZE", value_parser = values::size, default_value = "16K")]
    avgfilesize: u64,
    /// Expected number of files in a directory.
    #[arg(long, value_name = "N", default_value_t = 64)]
    avgfpdir: u32,
    /// Cylinders of a group; needs --heads and --sectors.
    #[arg(long, value_name = "N", conflicts_with = "fpg", requires_all = ["heads", "sectors"])]
    cpg: Option<u32>,
    /// Fragments of a group (default: as many as a block's maps allow, but at least four groups).
    #[arg(long, value_name = "N")]
    fpg: Option<u32>,
    /// Inodes of a group, rounded up to a block.
    #[arg(long, value_name = "N", conflicts_with = "density")]
    ipg: Option<u32>,
    /// Bytes of space for each inode (default: four fragments).
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    density: Option<u64>,
    /// Tracks of a cylinder of the disk that UFS1 is laid out for.
    #[arg(long, value_name = "N", requires = "sectors")]
    heads: Option<u32>,
    /// Sectors of its tracks.
    #[arg(long, value_name = "N", requires = "heads")]
    sectors: Option<u32>,
    /// Its revolutions per minute.
    #[arg(long, value_name = "RPM", default_value_t = 3600)]
    rpm: u32,
    /// Rotational positions told apart on it.
    #[arg(long, value_name = "N", default_value_t = 8)]
    positions: u32,
    /// Save space rather than time.
    #[arg(long)]
    space: bool,
    /// Byte order.
    #[arg(long, value_enum, default_value_t = Order::Little)]
    endian: Order,
    /// Volume name.
    #[arg(long, value_name = "NAME", default_value = "")]
    label: String,
    /// Seed of the file system's identity and the generations of inodes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    populate: Populate,
    /// Allocation policies for what is copied (noswitch,dirpref,root; default: 4.4BSD's).
    #[arg(long, value_name = "WORDS", value_parser = values::ffs_policy, requires = "populate")]
    policy: Option<ffs::policy::Options>,
    /// Overwrite what is there.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    result: ResultArgs,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Order {
    #[value(alias = "le")]
    Little,
    #[value(alias = "be")]
    Big,
}

/// Makes it.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    match args.kind {
        Kind::Ffs(args) => make_ffs(&args),
        Kind::Lfs(args) => lfs::make(&args),
        Kind::FreeMaps(args) => free_maps::make(&args),
    }
}

fn make_ffs(args: &FfsArgs) -> failure::Result<ExitCode> {
    args.result.check()?;
    if !args.force {
        output::must_be_new(&args.image)?;
    }
    let size = args.size.map_or_else(|| size_of(&args.image), Ok)?;
    let mut options = options(args, size)?;
    options.check().with_context(|| output::shown(&args.image))?;
    let Opened { mut store, blank, whole } = open(&args.image, size)?;
    options.blank = blank;
    let policy = args.policy.unwrap_or_default();
    let made = ffs::mkfs::mkfs_while(&mut store, &options, &mut || !posix::interrupt::requested())
        .and_then(|made| Ok((made, args.populate.copy::<ffs::Ffs>(store, policy, options.time_s)?)));
    let (made, copied) = made.with_context(|| output::shown(&args.image))?;
    finish(whole, &args.image)?;
    let document = ffs::present::made(&output::shown(&args.image), &made, copied.as_ref());
    args.result.emit("fsage.mkfs-ffs/1", &Result { made, copied }, &document)?;
    Ok(ExitCode::SUCCESS)
}

fn options(args: &FfsArgs, size_bytes: u64) -> failure::Result<MkfsOptions> {
    let version = if args.ufs == 1 { Version::Ufs1 } else { Version::Ufs2 };
    let base = MkfsOptions::new(version, size_bytes);
    let bsize = args.bsize.map_or(Ok(base.bsize), |n| narrow("--bsize", n))?;
    let fsize = args.fsize.map_or(Ok((bsize / 8).max(512)), |n| narrow("--fsize", n))?;
    let disk = args.heads.zip(args.sectors).map(|(heads, sectors)| DiskGeometry {
        heads,
        sectors,
        rpm: args.rpm,
        positions: args.positions,
    });
    Ok(MkfsOptions {
        bsize,
        fsize,
        endian: match args.endian {
            Order::Little => Endian::Little,
            Order::Big => Endian::Big,
        },
        minfree: args.minfree,
        maxbpg: args.maxbpg,
        maxcontig: args.maxcontig,
        rotdelay: args.rotdelay,
        avgfilesize: narrow("--avgfilesize", args.avgfilesize)?,
        avgfpdir: args.avgfpdir,
        group: args.cpg.map(GroupSize::Cylinders).or(args.fpg.map(GroupSize::Fragments)),
        ipg: args.ipg,
        density: args.density.map(|n| narrow("--density", n)).transpose()?,
        disk,
        optimize_space: args.space,
        label: args.label.clone(),
        seed: args.seed,
        time_s: args.populate.time.unwrap_or_else(now),
        lost_found: args.populate.lost_found,
        ..base
    })
}
