//! `fsage mkfs lfs IMAGE --size SIZE`.

use super::image::{Opened, Populate, Result, finish, narrow, now, open, size_of};
use crate::failure::{self, Context as _};
use crate::output::{self, ResultArgs};
use crate::values;
use ::lfs::mkfs::MkfsOptions;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub(super) struct LfsArgs {
    /// The image file to make; or with --force one to overwrite, or a block device.
    image: PathBuf,
    /// Size of the file system (64M, 2G); of an existing file or device, its own where left out.
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    size: Option<u64>,
    /// Bytes of a block.
    #[arg(long, value_name = "SIZE", value_parser = values::size, default_value = "8K")]
    bsize: u64,
    /// Bytes of a fragment (default: an eighth of a block).
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    fsize: Option<u64>,
    /// Bytes of a segment (default: 1M, less if there would be fewer than 80).
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    segment: Option<u64>,
    /// Bytes of an inode block (default: a fragment; NetBSD's lfs_cleanerd and fsck_lfs know no others).
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    ibsize: Option<u64>,
    /// Per cent of space held back.
    #[arg(long, value_name = "PERCENT", default_value_t = 10)]
    minfree: u32,
    /// Segments that are room for the cleaner (default: a twentieth, but 20; of fewer than 80 segments an eighth).
    #[arg(long, value_name = "N")]
    minfreeseg: Option<u32>,
    /// Segments that only the cleaner may write (default: half of those and one).
    #[arg(long, value_name = "N")]
    resvseg: Option<u32>,
    /// Seed of the file system's identity.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    populate: Populate,
    /// Overwrite what is there.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    result: ResultArgs,
}

/// Makes it.
pub(super) fn make(args: &LfsArgs) -> failure::Result<ExitCode> {
    args.result.check()?;
    if !args.force {
        output::must_be_new(&args.image)?;
    }
    let size = args.size.map_or_else(|| size_of(&args.image), Ok)?;
    let options = options(args, size)?;
    options.check().with_context(|| output::shown(&args.image))?;
    let Opened { mut store, whole, .. } = open(&args.image, size)?;
    let policy = ::lfs::Options::default();
    let made = ::lfs::mkfs(&mut store, &options)
        .and_then(|made| Ok((made, args.populate.copy::<::lfs::Lfs>(store, policy, options.time_s)?)));
    let (made, copied) = made.with_context(|| output::shown(&args.image))?;
    finish(whole, &args.image)?;
    let document = lfs::present::made(&output::shown(&args.image), &made, copied.as_ref());
    args.result.emit("fsage.mkfs-lfs/1", &Result { made, copied }, &document)?;
    Ok(ExitCode::SUCCESS)
}

fn options(args: &LfsArgs, size_bytes: u64) -> failure::Result<MkfsOptions> {
    let bsize = narrow("--bsize", args.bsize)?;
    Ok(MkfsOptions {
        bsize,
        fsize: args.fsize.map_or(Ok((bsize / 8).max(512)), |n| narrow("--fsize", n))?,
        ssize: args.segment.map(|n| narrow("--segment", n)).transpose()?,
        ibsize: args.ibsize.map(|n| narrow("--ibsize", n)).transpose()?,
        minfree: args.minfree,
        minfreeseg: args.minfreeseg,
        resvseg: args.resvseg,
        seed: args.seed,
        time_s: args.populate.time.unwrap_or_else(now),
        lost_found: args.populate.lost_found,
        ..MkfsOptions::new(size_bytes)
    })
}
