//! `fsage cp`: out of an image and into one.

use crate::failure::Context as _;
use crate::images::{self, Extracting, Inserting};
use crate::output::{self, ResultArgs};
use crate::{failure, progress, values};
use fault::Kind;
use ffs::{Edit, ExtractOptions, Extracted, InsertOptions};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Copy files out of an FFS or LFS image, or into one, without mounting it.
///
/// Modes, times, links, symbolic links, holes, and into an image owners and devices, are preserved. Nothing that is
/// there is overwritten, unless --overwrite says so.
///
/// Into an image, files are copied to a copy of it, which is checked and then takes its place: if anything goes wrong,
/// the image is as it was. With --in-place it is written to where it is, in an order that `fsage fsck` can repair from
/// (FFS), or the next mount (LFS). An LFS image that was not unmounted is rolled forward first.
#[derive(clap::Args, Debug)]
#[command(override_usage = "fsage cp [OPTIONS] <FROM>... <TO>")]
#[command(after_help = "\
Examples:
  fsage cp disk.img:/ everything
  fsage cp disk.img:/etc/passwd .
  fsage cp kernel disk.img:/boot/kernel
  fsage cp etc usr disk.img:/                    trees below the root
  fsage cp tree/. disk.img:/                     what is in a directory
  fsage cp --owner 0:0 --policy noswitch,dirpref src disk.img:/usr

Exit codes: 0 copied, 1 copied but for symbolic links that are damaged in the image, 4 a damaged image.")]
pub struct Args {
    /// What is copied, and where it goes: files and IMAGE:/PATH, or IMAGE:/PATH and a path. In a directory that is
    /// there everything keeps its name.
    #[arg(value_names = ["FROM", "TO"], required = true, num_args = 2..)]
    paths: Vec<OsString>,
    /// Out of an image: give files their owners; needs root.
    #[arg(long)]
    owners: bool,
    /// Out of an image, with --owners: make devices, and keep setuid and setgid bits. Only for an image that you trust:
    /// otherwise both are left out, and counted.
    #[arg(long, requires = "owners")]
    special: bool,
    /// Out of an FFS image: use a group's copy of the superblock where the standard one is damaged.
    #[arg(long)]
    copies: bool,
    /// Into an image: replace files of the same name.
    #[arg(long)]
    overwrite: bool,
    /// Into an image: write to it where it is. Always so for block devices.
    #[arg(long)]
    in_place: bool,
    /// Into an image: owner of everything copied (0:0), instead of the files' own.
    #[arg(long, value_name = "UID:GID", value_parser = values::owner)]
    owner: Option<(u32, u32)>,
    /// Into an FFS image: allocation policies (noswitch,dirpref,root; default: 4.4BSD's).
    #[arg(long, value_name = "WORDS", value_parser = values::ffs_policy)]
    policy: Option<ffs::policy::Options>,
    /// Into an image: when it is done, seconds since 1970 (default: now). Files modified later get this time, and every
    /// file was last read when it was modified: same files, same bytes.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    time: Option<i64>,
    #[command(flatten)]
    result: ResultArgs,
}

/// Copies.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    args.result.check()?;
    let Some((to, from)) = args.paths.split_last() else { return Err(failure::usage("copy what?")) };
    match (split(to), from.iter().map(|path| split(path)).collect::<Option<Vec<_>>>()) {
        (Some(_), Some(_)) => Err(failure::usage(
            "from an image into an image: copy into a directory first, and from there into the other",
        )),
        (Some((image, path)), None) => {
            let only_out = [("--owners", args.owners), ("--special", args.special), ("--copies", args.copies)];
            refuse(&only_out, "is for copying out of an image")?;
            into(&args, from, &image, &path)
        }
        (None, Some(sources)) => {
            let only_in = [
                ("--overwrite", args.overwrite),
                ("--in-place", args.in_place),
                ("--owner", args.owner.is_some()),
                ("--policy", args.policy.is_some()),
                ("--time", args.time.is_some()),
            ];
            refuse(&only_in, "is for copying into an image")?;
            out_of(&args, &sources, Path::new(to))
        }
        (None, None) => {
            let missing = args.paths.iter().find_map(missing_image);
            if let Some(image) = missing {
                return Err(failure::bad_input(format!("{}: no such file", output::shown(&image))));
            }
            let paths = args.paths.iter().map(|path| output::shown(Path::new(path))).collect::<Vec<_>>().join(" ");
            Err(failure::usage(format!(
                "{paths}: neither side is IMAGE:/PATH with an image that is there (disk.img:/etc)"
            )))
        }
    }
}

/// The image that `IMAGE:/PATH` means, where there is none.
fn missing_image(path: &OsString) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = path.as_bytes();
    let at = bytes.windows(2).position(|two| two == b":/")?;
    let image = PathBuf::from(std::ffi::OsStr::from_bytes(bytes.get(..at)?));
    (!image.as_os_str().is_empty() && !image.exists()).then_some(image)
}

fn refuse(options: &[(&str, bool)], why: &str) -> failure::Result<()> {
    match options.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(failure::usage(format!("{name} {why}"))),
        None => Ok(()),
    }
}

fn into(args: &Args, from: &[OsString], image: &Path, path: &[u8]) -> failure::Result<ExitCode> {
    let shown = output::shown(image);
    let how = if args.in_place { Edit::InPlace } else { Edit::Copy };
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.as_secs() as i64);
    let date_ns = args.time.unwrap_or_else(now).saturating_mul(1_000_000_000);
    // Several things go into a directory only, as one does whose path ends in a slash.
    let mut path = path.to_vec();
    path.extend(if from.len() > 1 { &b"/"[..] } else { b"" });
    let options = InsertOptions { owner: args.owner, overwrite: args.overwrite, latest_s: args.time };
    let copying = Inserting { from, path: &path, how, date_ns, options, policy: args.policy };
    let (schema, done) = images::of(image).insert(image, &copying).with_context(|| shown.clone())?;
    args.result.emit(schema, &done, &ufs::present::inserted(&shown, &done))?;
    Ok(ExitCode::SUCCESS)
}

fn out_of(args: &Args, sources: &[(PathBuf, Vec<u8>)], to: &Path) -> failure::Result<ExitCode> {
    if sources.len() > 1 && !to.is_dir() {
        return Err(failure::usage(format!(
            "{}: is not a directory, and there are several things to copy",
            output::shown(to)
        )));
    }
    let bar = progress::bar(0, "copying");
    let mut all = Extracted::default();
    for (file, path) in sources {
        let done = one_out_of(args, file, path, to, &mut |so_far| {
            bar.set_message(format!("copying: {} files", so_far.files));
            !posix::interrupt::requested()
        });
        match done {
            Ok(done) => all.add(done),
            Err(error) => {
                bar.finish_and_clear();
                return Err(error);
            }
        }
    }
    bar.finish_and_clear();
    args.result.emit("fsage.cp-ffs/1", &all, &ufs::present::extracted(&all))?;
    Ok(if all.bad_links.is_empty() { ExitCode::SUCCESS } else { failure::code(Kind::Check) })
}

fn one_out_of(
    args: &Args,
    file: &Path,
    path: &[u8],
    to: &Path,
    go_on: &mut dyn FnMut(&Extracted) -> bool,
) -> failure::Result<Extracted> {
    let store = images::open(file)?;
    let last = path.rsplit(|b| *b == b'/').find(|name| !name.is_empty());
    let to = match last {
        Some(name) if to.is_dir() => to.join(OsStr::from_bytes(name)),
        _ => to.to_owned(),
    };
    let options = ExtractOptions { owners: args.owners, special: args.special };
    let copying = Extracting { path, to: &to, options, copies: args.copies };
    images::of(file).extract(store, &copying, go_on).with_context(|| output::shown(file))
}

/// The image and the path in it: parted at the first `:/` before which there is a file.
fn split(from: &OsStr) -> Option<(PathBuf, Vec<u8>)> {
    let bytes = from.as_bytes();
    let mut places = (0..bytes.len()).filter(|i| bytes.get(*i..*i + 2) == Some(b":/"));
    places.find_map(|at| {
        let (image, path) = bytes.split_at(at);
        let image = Path::new(OsStr::from_bytes(image));
        let there = image.exists() && !image.is_dir();
        there.then(|| (image.to_owned(), path.get(1..).unwrap_or_default().to_vec()))
    })
}
