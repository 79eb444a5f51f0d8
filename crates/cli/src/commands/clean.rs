//! `fsage clean`.

use crate::failure::Context as _;
use crate::output::{self, ResultArgs};
use crate::{failure, images, progress};
use lfs::policy::CleanerPolicy;
use lfs::{Cleaned, Edit, Options};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run the cleaner on an LFS image, without mounting it.
///
/// What is live is moved out of segments that have room to gain, oldest files first, until cleaning gains no more: what
/// lfs_cleanerd does for a mounted one. An image that was not unmounted is rolled forward first.
///
/// This is done to a copy, which is checked and then takes the image's place: if anything goes wrong, the image is as
/// it was. With --in-place it is written to where it is; nothing live is overwritten, and two checkpoints end each
/// step.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage clean log.img
  fsage clean log.img --segments 20 --policy greedy")]
pub struct Args {
    /// The image file or block device.
    image: PathBuf,
    /// Stop when so many more segments are clean.
    #[arg(long, value_name = "N")]
    segments: Option<u32>,
    /// Which segments first: cost-benefit, greedy or netbsd.
    #[arg(long, value_name = "POLICY", default_value = "cost-benefit", value_parser = policy)]
    policy: Options,
    /// Write to it where it is. Always so for block devices.
    #[arg(long)]
    in_place: bool,
    /// When this is done, seconds since 1970 (default: now).
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    time: Option<i64>,
    #[command(flatten)]
    result: ResultArgs,
}

fn policy(word: &str) -> Result<Options, String> {
    let mut options = Options::default();
    let known = options.set(&format!("cleaner={word}")) && options.cleaner != CleanerPolicy::Off;
    known.then_some(options).ok_or_else(|| "there are cost-benefit, greedy and netbsd".to_owned())
}

/// Cleans.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    args.result.check()?;
    let shown = output::shown(&args.image);
    if !lfs::is_lfs(&images::open(&args.image)?) {
        return Err(failure::bad_input(format!("{shown}: is no LFS image; only a log has segments to clean")));
    }
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.as_secs() as i64);
    let date_ns = args.time.unwrap_or_else(now).saturating_mul(1_000_000_000);
    let how = if args.in_place { Edit::InPlace } else { Edit::Copy };
    let bar = progress::bar(0, "cleaning");
    let done = lfs::edit(&args.image, how, |store| {
        lfs::clean(store, args.policy, date_ns, args.segments.unwrap_or(u32::MAX), &mut |so_far: &Cleaned| {
            bar.set_message(format!("cleaning: {} segments clean", so_far.clean_after));
            !posix::interrupt::requested()
        })
    });
    bar.finish_and_clear();
    let done = done.with_context(|| shown.clone())?;
    args.result.emit("fsage.clean/1", &done, &lfs::present::cleaned(&shown, &done))?;
    Ok(ExitCode::SUCCESS)
}
