//! `fsage fsck IMAGE`, and of a laboratory target in virtual time.

use crate::failure::Context as _;
use crate::images::{self, Answer, Found, Images};
use crate::output::{self, ResultArgs};
use crate::{failure, progress};
use device::undo::UndoError;
use fault::Kind;
use ffs::fsck::Left;
use ffs::{FileStore, Overlay, Store as _};
use lab::{CheckedInBackground, Spec};
use posix::output::Output;
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use ufs::edit::Lock;
use units::show;

/// Check an FFS or LFS image, and repair FFS if asked.
///
/// Of an LFS image the log is rolled forward in memory; then everything live is compared with the usage table, the
/// inode map, the summaries and the counters. It is never changed.
///
/// FFS: the five phases of BSD's fsck: blocks and sizes, path names, connectivity, link counts, cylinder groups. A
/// repair loses nothing that can still be reached: blocks that two files have are copied, what has lost its name goes
/// to lost+found.
///
/// --background checks an FFS image of Soft Updates (softdep) that was not unmounted, as a system in use would: it is
/// mounted as it is, a snapshot is taken and checked, and space, inodes and links that a crash has left behind are
/// given back by the file system itself. What has no name goes. It changes the image itself, and stops where more is
/// wrong than a crash of Soft Updates leaves. Of a target the time is told at which the file system can be used, and at
/// which the check has ended; its image stays as it is.
///
/// Of a laboratory target (ffs:image=disk.img@st39102lw) the disk is checked in virtual time: each read and write goes
/// through the drive, the buffer cache and the processor of the target, and the result says how long it took.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage fsck disk.img                    what is wrong; changes nothing
  fsage fsck disk.img --repair           a repaired copy: disk.img.repaired
  fsage fsck disk.img --repair --in-place --undo disk.undo
  fsage fsck disk.img --revert disk.undo      as it was before that repair
  fsage fsck disk.img --background       of Soft Updates, after a crash: gives back what it has left
  fsage fsck ffs:softdep,image=disk.img@st39102lw --background      until when it takes
  fsage fsck ffs:image=disk.img,machine=pentium-120@st39102lw      how long it takes on that machine and drive

Exit codes: 0 clean, or reverted; 1 problems were found: repaired or given back where that was asked for, as fsck(8) \
says it, otherwise left as they were (the last line says which); 3 in use; 4 no file system, not what the file is of, \
or (--background) more than it puts right. Other codes of fsck(8) are not used: problems that are left are 1 and not \
4.")]
pub struct Args {
    /// An unmounted image file or device, or a laboratory target.
    image: PathBuf,
    /// Change nothing: the default.
    #[arg(short = 'n', conflicts_with = "repair")]
    no: bool,
    /// Repair a copy of the image, IMAGE.repaired.
    #[arg(long)]
    repair: bool,
    /// Where the repaired copy goes.
    #[arg(long, value_name = "FILE", requires = "repair", conflicts_with = "in_place")]
    copy: Option<PathBuf>,
    /// Repair the image itself.
    #[arg(long, requires = "repair")]
    in_place: bool,
    /// Write to FILE what the repair changes, before it is changed: --revert takes it back.
    #[arg(long, value_name = "FILE", requires = "repair")]
    undo: Option<PathBuf>,
    /// Take a repair back: write to the image what was there before.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["repair", "no"])]
    revert: Option<PathBuf>,
    /// Check a snapshot of the mounted image, and give back what a crash of Soft Updates has left.
    #[arg(long, conflicts_with_all = ["repair", "no", "revert"])]
    background: bool,
    #[command(flatten)]
    result: ResultArgs,
}

/// Checks.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    let image = output::shown(&args.image);
    let target = target(&args.image)?;
    let looked_at = match &target {
        Some(spec) => spec.image.as_deref(),
        None => Some(args.image.as_path()),
    };
    each_for_itself(&args, looked_at)?;
    args.result.check()?;
    if let Some(spec) = target.as_ref().filter(|_| args.background) {
        return target_in_background(&args, spec);
    }
    if args.background {
        return in_background(&args, &image);
    }
    if let Some(spec) = target {
        return in_virtual_time(&args, &spec);
    }
    let original = || images::open(&args.image);
    let writable = || {
        original()?;
        let no_image = |error| failure::bad_input(format!("{image}: cannot open it: {error}"));
        let file = OpenOptions::new().read(true).write(true).open(&args.image).map_err(no_image)?;
        // A repair below a mounted file system would damage what that one holds in memory, and be written over.
        let lock = Lock::take(&file).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => {
                let next = "unmount it first (fsage umount), or repair a copy";
                failure::environment(format!("{image} is in use: something else has locked it; {next}"))
            }
            _ => failure::environment(format!("{image}: cannot lock it: {error}")),
        })?;
        failure::Result::Ok((lock, FileStore::new(file).map_err(no_image)?))
    };
    if let Some(file) = &args.revert {
        let (_lock, store) = writable()?;
        return revert(&args, file, store, &image);
    }
    original()?;
    let images = images::of(&args.image);
    let (found, outcome) = if !args.repair {
        let found = images.check(&mut Overlay::new(original()?)).with_context(|| image.clone())?;
        let outcome = if found.is_clean() { "Clean." } else { "Nothing was changed; --repair repairs a copy." };
        (found, outcome.to_owned())
    } else {
        images.may_repair()?;
        let undo = args.undo.as_deref();
        if args.in_place {
            let (_lock, store) = writable()?;
            let (found, file) = repair(images, store, undo, &image)?;
            file.sync_all().with_context(|| image.clone())?;
            let outcome = repaired(&*found, &image, Place::Image);
            (found, outcome)
        } else {
            let copy = copy_of(&args);
            output::must_be_new(&copy)?;
            let found = repair_copy(images, &original()?, &copy, undo, &image)?;
            let outcome = repaired(&*found, &output::shown(&copy), Place::Copy);
            (found, outcome)
        }
    };
    found.answer(&image, &outcome)?.emit(&args.result)?;
    Ok(if found.is_clean() { ExitCode::SUCCESS } else { failure::code(Kind::Check) })
}

/// Where the repaired copy goes.
fn copy_of(args: &Args) -> PathBuf {
    let mut name = args.image.clone().into_os_string();
    name.push(".repaired");
    args.copy.clone().unwrap_or_else(|| PathBuf::from(name))
}

/// A report or an undo file never takes the place of the image, of its copy, or of the other.
fn each_for_itself(args: &Args, image: Option<&Path>) -> failure::Result<()> {
    let copy = (args.repair && !args.in_place).then(|| copy_of(args));
    let (undo, revert, html) = (args.undo.as_deref(), args.revert.as_deref(), args.result.html.as_deref());
    let mut before: Vec<(&str, &Path)> =
        [("the image", image), ("--revert", revert)].into_iter().filter_map(named).collect();
    for (what, path) in [("--copy", copy.as_deref()), ("--undo", undo), ("--html", html)].into_iter().filter_map(named)
    {
        if let Some((other, _)) = before.iter().find(|(_, other)| is_same_place(other, path)) {
            return Err(failure::usage(format!("{}: {other} and {what} are the same file", output::shown(path))));
        }
        before.push((what, path));
    }
    Ok(())
}

fn named<'a>((what, path): (&'static str, Option<&'a Path>)) -> Option<(&'static str, &'a Path)> {
    path.map(|path| (what, path))
}

/// Whether two names lead to one file, or would if it were there.
fn is_same_place(a: &Path, b: &Path) -> bool {
    // A name in a directory, however either is written.
    let place = |path: &Path| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some((parent.canonicalize().ok()?, path.file_name()?.to_owned()))
    };
    let whole = |path: &Path| path.canonicalize().ok();
    place(a).is_some_and(|a| Some(a) == place(b)) || whole(a).is_some_and(|a| Some(a) == whole(b))
}

/// The laboratory target that is meant, if no file is called that.
fn target(image: &Path) -> failure::Result<Option<Spec>> {
    let text =
        image.to_str().filter(|text| ["ffs", "lfs"].contains(&text.split([':', '@']).next().unwrap_or_default()));
    match text {
        Some(text) if image.symlink_metadata().is_err() => {
            Spec::parse(text).map(Some).map_err(|error| failure::usage(error.to_string()))
        }
        _ => Ok(None),
    }
}

fn in_virtual_time(args: &Args, spec: &Spec) -> failure::Result<ExitCode> {
    if args.in_place || args.undo.is_some() || args.revert.is_some() {
        return Err(failure::usage("a target's image stays as it is: --copy FILE says where the repaired one goes"));
    }
    let bar = progress::bar(0, "checking");
    let mut go_on = || {
        bar.tick();
        !posix::interrupt::requested()
    };
    let (found, times, outcome) = if !args.repair {
        let (checked, times) = spec.check_in_virtual_time(spec.unmounted()?, &mut go_on)?;
        let outcome =
            if checked.is_clean() { "Clean." } else { "Nothing was changed; --repair --copy FILE repairs a copy." };
        (images::found(checked), times, outcome.to_owned())
    } else {
        images::of_target(&spec.system).may_repair()?;
        let Some(copy) = args.copy.as_deref() else {
            return Err(failure::usage("--repair of a target needs --copy FILE"));
        };
        output::must_be_new(copy)?;
        let cannot = || format!("cannot make {}", output::shown(copy));
        let (whole, file) = Output::create(copy, 0o666).with_context(cannot)?;
        ffs::copy_sparse(&*spec.unmounted()?, &file).with_context(cannot)?;
        let (checked, times, _) = spec.repair_in_virtual_time(FileStore::new(file)?, &mut go_on)?;
        whole.finish().with_context(cannot)?;
        let found = images::found(checked);
        let outcome = repaired(&*found, &output::shown(copy), Place::Copy);
        (found, times, outcome)
    };
    bar.finish_and_clear();
    let virtual_time = json!({
        "machine": spec.machine,
        "drive": spec.drive.to_string(),
        "elapsed_ns": times.elapsed_ns,
        "processor_ns": times.processor_ns,
        "reads": times.device.reads,
        "read_bytes": times.device.read_bytes,
        "writes": times.device.writes,
        "write_bytes": times.device.write_bytes,
        "cache_hits": times.cache.hits,
        "cache_misses": times.cache.misses,
    });
    let Answer { value: check, mut document, .. } = found.answer(&spec.text, &outcome)?;
    ufs::present::checked_in_virtual_time(&mut document, &spec.machine, &spec.drive.to_string(), &times);
    args.result.emit(
        "fsage.fsck-target/1",
        &json!({ "target": spec.text, "check": check, "virtual_time": virtual_time }),
        &document,
    )?;
    Ok(if found.is_clean() { ExitCode::SUCCESS } else { failure::code(Kind::Check) })
}

/// Mounts an image, checks it, and unmounts it: nobody else may have it mounted.
fn in_background(args: &Args, image: &str) -> failure::Result<ExitCode> {
    let bar = progress::bar(0, "checking");
    let mut go_on = |phase: ffs::fsck::Phase| {
        bar.set_message(format!("checking: {}", phase.title()));
        !posix::interrupt::requested()
    };
    let checked = fuse::check_in_background(&args.image, &mut go_on);
    bar.finish_and_clear();
    let (left, fsize) = checked?;
    let outcome = given_back(&left);
    let document = ffs::present::checked_in_background(image, &left, fsize, outcome);
    args.result.emit("fsage.fsck-background/1", &json!({ "left": left }), &document)?;
    Ok(exit_code(&left))
}

fn target_in_background(args: &Args, spec: &Spec) -> failure::Result<ExitCode> {
    let bar = progress::bar(0, "checking");
    let mut go_on = || {
        bar.tick();
        !posix::interrupt::requested()
    };
    let checked = spec.check_in_background(&mut go_on);
    bar.finish_and_clear();
    let CheckedInBackground { left, fsize, usable_ns, ended_ns } = checked?;
    let (drive, times) = (spec.drive.to_string(), (usable_ns, ended_ns));
    let mut document = ffs::present::checked_in_background(&spec.text, &left, fsize, given_back(&left));
    ffs::present::checked_beside_work(&mut document, &spec.machine, &drive, times);
    let times = json!({ "machine": spec.machine, "drive": drive, "usable_ns": usable_ns, "ended_ns": ended_ns });
    let result = json!({ "target": spec.text, "left": left, "virtual_time": times });
    args.result.emit("fsage.fsck-background/1", &result, &document)?;
    Ok(exit_code(&left))
}

fn given_back(left: &Left) -> &'static str {
    if left.is_nothing() { "Clean." } else { "All of it has been given back." }
}

fn exit_code(left: &Left) -> ExitCode {
    if left.is_nothing() { ExitCode::SUCCESS } else { failure::code(Kind::Check) }
}

/// A copy that was not repaired would only mislead: it takes its place afterwards.
fn repair_copy(
    images: &dyn Images,
    original: &FileStore,
    copy: &Path,
    undo: Option<&Path>,
    image: &str,
) -> failure::Result<Box<dyn Found>> {
    let cannot = || format!("cannot make {}", output::shown(copy));
    let (whole, file) = Output::create(copy, 0o666).with_context(cannot)?;
    ffs::copy_sparse(original, &file).with_context(cannot)?;
    let (found, _) = repair(images, FileStore::new(file)?, undo, image)?;
    whole.finish().with_context(cannot)?;
    Ok(found)
}

/// Nothing is written before it is known what all of it will be, and what it replaces is stored.
fn repair(
    images: &dyn Images,
    store: FileStore,
    undo: Option<&Path>,
    image: &str,
) -> failure::Result<(Box<dyn Found>, File)> {
    if let Some(path) = undo {
        output::must_be_new(path)?;
    }
    let mut changes = Overlay::new(store);
    let found = images.check(&mut changes).with_context(|| image.to_owned())?;
    if let Some(path) = undo {
        let file = device::undo::record(&changes).with_context(|| image.to_owned())?;
        posix::output::write_durably(path, &file).with_context(|| format!("cannot write {}", output::shown(path)))?;
    }
    let store = changes.apply().with_context(|| image.to_owned())?;
    Ok((found, store.into_file()))
}

fn revert(args: &Args, file: &Path, mut store: FileStore, image: &str) -> failure::Result<ExitCode> {
    let shown = output::shown(file);
    // A piece of 512 bytes has a head of 16.
    let most = store.len_bytes().saturating_mul(2).saturating_add(4096);
    let bytes =
        posix::input::read(file, most).map_err(|e| failure::bad_input(format!("{shown}: cannot read it: {e}")))?;
    let done = match device::undo::revert(&bytes, &mut store) {
        Ok(done) => done,
        Err(UndoError::Store(error)) => return Err(error).context(image.to_owned()),
        Err(error) => return Err(failure::bad_input(format!("{image}: {shown}: {error}"))),
    };
    store.into_file().sync_all().with_context(|| image.to_owned())?;
    args.result.emit(
        "fsage.fsck-reverted/1",
        &json!({ "changed_bytes": done }),
        &device::present::reverted(image, done),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Where a repair is made.
#[derive(Clone, Copy)]
enum Place {
    Copy,
    Image,
}

/// What became of `what`.
fn repaired(found: &dyn Found, what: &str, place: Place) -> String {
    match (found.unrepaired(), place) {
        (0, _) if !found.is_clean() => format!("Repaired: {what}."),
        (0, _) if !found.was_marked_clean() => format!("There was nothing to repair; {what} is now marked as clean."),
        (0, Place::Copy) => format!("Clean: there was nothing to repair; {what} is a copy without a change."),
        (0, Place::Image) => format!("Clean: there was nothing to repair; {what} was not changed."),
        (n, _) => {
            format!("Repaired as far as possible: {what}; {} left.", show::counted(n, "problem is", "problems are"))
        }
    }
}
