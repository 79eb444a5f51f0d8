//! `fsage mount IMAGE DIR`.

use crate::failure;
use crate::failure::Context as _;
use crate::values;
use fault::Kind;
use fuse::{Access, Events, MountOptions, Source};
use lab::Spec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

/// Mount an FFS or LFS image, or a laboratory's file system, on a directory.
///
/// It is served by this program (FUSE), with real bytes and in real time, until `fsage umount DIR`, umount(8), or
/// SIGINT or SIGTERM to the program, which all leave the image as a clean unmount does. Further signals do not hurry
/// it: what is not written yet is in its memory alone. Killed with SIGKILL it leaves an image that `fsage fsck` repairs
/// (a log repairs itself when it is mounted; Soft Updates are used at once and checked meanwhile), and in which is what
/// was put there with fsync(2); the next run of fsage takes the dead mount away.
///
/// As root everybody may use it, as the permissions of its files say. Other users need fusermount3 of the system
/// (package fuse3); it is then theirs alone, and permissions are not checked, unless they ask for --allow-other and
/// /etc/fuse.conf has user_allow_other.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage mount disk.img mnt                   in the background, once it can be used
  fsage mount --read-only disk.img mnt       the image is not touched
  fsage mount ffs:noorder,image=disk.img mnt  with another mode of integrity than the default
  fsage mount lfs:size=64M mnt               a new one, in memory; it goes with the mount
  fsage mount --foreground disk.img mnt      until Ctrl-C
  fsage mount --snapshot today disk.img mnt  mnt/.snap/today is an image of the disk as it was
  fsage umount mnt

Exit codes: 0 mounted (with --foreground: unmounted, and everything is written), 3 it cannot be mounted here, or is in \
use, 4 no file system, or not a clean one.")]
pub struct Args {
    /// An image file or block device, or a laboratory target.
    image: PathBuf,
    /// An existing directory.
    directory: PathBuf,
    /// Change nothing, in the image either.
    #[arg(short, long)]
    read_only: bool,
    /// Stay in the foreground: messages go to standard error, and Ctrl-C unmounts.
    #[arg(short, long)]
    foreground: bool,
    /// Everybody may use it, as the permissions of its files say: always so for root.
    #[arg(long)]
    allow_other: bool,
    /// Wait for the disk at each write that the file system waits for, not only at fsync: safe against a power failure
    /// of this machine, and slow.
    #[arg(long)]
    ordered: bool,
    /// Memory for blocks that are not written yet.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = values::size)]
    cache: u64,
    /// Before anything else take a snapshot of an FFS: the file .snap/NAME shows the whole file system as it is then,
    /// whatever is done later. Remove it like any file. There is one at a time.
    #[arg(long, value_name = "NAME", conflicts_with = "read_only", value_parser = name)]
    snapshot: Option<String>,
    /// Threads that answer the kernel.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Add messages to FILE when it is in the background: what cannot be read or written, and where, and what a check
    /// beside the mount has found. Otherwise nobody sees them.
    #[arg(long, value_name = "FILE", conflicts_with = "foreground")]
    log: Option<PathBuf>,
    /// Says on standard output that it is mounted: for the process that has started this one.
    #[arg(long, hide = true, requires = "foreground")]
    tell_ready: bool,
}

/// What the process in the background says once it is mounted.
const READY: &str = "mounted";

/// Mounts.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    if !args.foreground {
        return in_background(&args);
    }
    let source = source(&args.image)?;
    let everybody = args.allow_other || rustix::process::geteuid().is_root();
    let options = MountOptions {
        read_only: args.read_only,
        access: if everybody { Access::Everybody } else { Access::Owner },
        threads: args.threads.into(),
        cache_bytes: args.cache.max(CACHE_BYTES_MIN),
        ordered: args.ordered,
        snapshot: args.snapshot,
    };
    let caller = Cell::new(Caller::LetGo);
    let mut ready = || {
        if args.tell_ready {
            // Whoever called may have ended: then it was not to be mounted.
            let said = writeln!(io::stdout(), "{READY}").and_then(|()| io::stdout().flush());
            caller.set(if said.is_ok() { Caller::Asked } else { Caller::Gone });
        }
    };
    let mut stop = || {
        if caller.get() == Caller::Asked {
            caller.set(answer());
        }
        posix::interrupt::requested() || caller.get() == Caller::Gone
    };
    let events = Events { ready: &mut ready, stop: &mut stop, tell: posix::notice::tell };
    let Err(error) = fuse::mount(&source, &args.directory, &options, events) else { return Ok(ExitCode::SUCCESS) };
    // A signal is how this ends: it excuses nothing.
    Ok(failure::tell(&error.into()))
}

/// Whoever has started this process in the background, once it is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// Has let it go; or there is none.
    LetGo,
    /// Has been told, and has not answered yet.
    Asked,
    /// Has ended before it knew: then it does not stay mounted.
    Gone,
}

/// What is there at once, and no waiting.
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// What the caller has answered so far. It is not waited for: it may have been stopped (Ctrl-Z), and meanwhile others
/// use the mount, whose server writes back and hears signals.
fn answer() -> Caller {
    let stdin = rustix::stdio::stdin();
    match poll(&mut [PollFd::from_borrowed_fd(stdin, PollFlags::IN)], Some(&AT_ONCE)) {
        Ok(1..) => {}
        Ok(0) | Err(_) => return Caller::Asked,
    }
    match rustix::io::read(stdin, &mut [0]) {
        Ok(1..) => Caller::LetGo,
        Err(Errno::INTR | Errno::AGAIN) => Caller::Asked,
        Ok(0) | Err(_) => Caller::Gone,
    }
}

/// Less than this, and a log has no room for a segment.
const CACHE_BYTES_MIN: u64 = 8 << 20;

/// A name in a directory.
fn name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 255 || text.contains('/') || [".", ".."].contains(&text) {
        return Err("not a name of a file".to_owned());
    }
    Ok(text.to_owned())
}

fn source(image: &Path) -> failure::Result<Source> {
    let text =
        image.to_str().filter(|text| ["ffs", "lfs"].contains(&text.split([':', '@']).next().unwrap_or_default()));
    match text {
        Some(text) if image.symlink_metadata().is_err() => {
            let spec = Spec::parse(text).map_err(|error| failure::usage(error.to_string()))?;
            Ok(Source::Target(Box::new(spec)))
        }
        _ => Ok(Source::Image(image.to_owned())),
    }
}

/// Has another process serve it, and returns when it can be used.
fn in_background(args: &Args) -> failure::Result<ExitCode> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.arg("mount").args(["--foreground", "--tell-ready"]);
    for (given, option) in
        [(args.read_only, "--read-only"), (args.allow_other, "--allow-other"), (args.ordered, "--ordered")]
    {
        command.args(given.then_some(option));
    }
    command.arg(format!("--cache={}", args.cache)).arg(format!("--threads={}", args.threads));
    command.args(args.snapshot.iter().map(|name| format!("--snapshot={name}")));
    command.arg("--").arg(&args.image).arg(&args.directory);
    // Of its own group: what a terminal sends to this one is not for it.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
    match &args.log {
        Some(path) => {
            let log = OpenOptions::new().append(true).create(true).open(path);
            let log = log.with_context(|| format!("cannot write {}", crate::output::shown(path)))?;
            command.stderr(log);
        }
        None => {
            command.stderr(Stdio::piped());
        }
    }
    // It hears of our end, however we end, and does not stay mounted. If we are only asked to end, that is over then.
    let only_asked = posix::interrupt::only_asked();
    let mut child = command.spawn().context("cannot start a process in the background")?;
    let hears = child.stdin.take();
    let mut server = Server::new(child);
    server.hear_line().context("cannot read what the process in the background says")?;
    if server.stdout.bytes.trim_ascii_end() == READY.as_bytes() && !posix::interrupt::requested() {
        // Whoever has ended hears nothing.
        let _ = hears.map_or(Ok(()), |mut hears| hears.write_all(&[1]));
        return Ok(ExitCode::SUCCESS);
    }
    drop(hears);
    let status = server.hear_all().context("cannot wait for the process in the background")?;
    // All of ours is done: what is left is to say so.
    drop(only_asked);
    pass_on(&server.stderr.bytes);
    let mut became = match status.code() {
        Some(_) => "nothing is mounted".to_owned(),
        None => "the process in the background was killed; what it may have mounted goes with the next run of fsage"
            .to_owned(),
    };
    if let Some(log) = &args.log {
        became.push_str(&format!("; see {}", crate::output::shown(log)));
    }
    if posix::interrupt::requested() {
        return Err(failure::Failure::new(Kind::Interrupted, format!("interrupted; {became}")));
    }
    // Otherwise it has said itself what is wrong.
    if args.log.is_some() || status.code().is_none() {
        posix::notice::tell(&became);
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or_else(|| failure::code(Kind::Environment), ExitCode::from))
}

/// Passes on what a process of ours has said, to whoever reads it: nobody who does not holds us up.
fn pass_on(said: &[u8]) {
    for line in String::from_utf8_lossy(said).lines() {
        posix::notice::tell(line.strip_prefix("fsage: ").unwrap_or(line));
    }
}

/// What came through a pipe so far.
struct Piped {
    /// `None` once its other end is closed.
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
}

impl Piped {
    fn new(pipe: Option<impl Into<OwnedFd>>) -> Piped {
        Piped { pipe: pipe.map(Into::into), bytes: Vec::new() }
    }

    /// Takes what is there.
    fn take(&mut self) -> io::Result<()> {
        let Some(pipe) = &self.pipe else { return Ok(()) };
        let mut bytes = [0; 4096];
        match rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut bytes))? {
            0 => self.pipe = None,
            n => self.bytes.extend(bytes.iter().take(n)),
        }
        Ok(())
    }
}

/// The process in the background, until it can be used or has ended. What it says is taken as it comes, whatever it is
/// waited for: it must not wait for us in turn, with a full pipe.
struct Server {
    child: Child,
    stdout: Piped,
    stderr: Piped,
}

impl Server {
    fn new(mut child: Child) -> Server {
        let (stdout, stderr) = (Piped::new(child.stdout.take()), Piped::new(child.stderr.take()));
        Server { child, stdout, stderr }
    }

    /// Waits until it has said that it can be used, or never will.
    fn hear_line(&mut self) -> io::Result<()> {
        while self.stdout.pipe.is_some() && !self.stdout.bytes.contains(&b'\n') {
            self.hear(None)?;
        }
        Ok(())
    }

    /// Waits for its end.
    fn hear_all(&mut self) -> io::Result<ExitStatus> {
        const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let status = loop {
            match self.child.try_wait()? {
                Some(status) => break status,
                None => self.hear(Some(&TICK))?,
            };
        };
        // Not until the pipe is closed: what it has started may have it as well, and outlive it.
        while self.hear(Some(&AT_ONCE))? {}
        Ok(status)
    }

    /// Takes what comes within a time; `false`: nothing.
    fn hear(&mut self, patience: Option<&Timespec>) -> io::Result<bool> {
        let mut open: Vec<&mut Piped> =
            [&mut self.stdout, &mut self.stderr].into_iter().filter(|piped| piped.pipe.is_some()).collect();
        let mut asked: Vec<PollFd<'_>> = open
            .iter()
            .filter_map(|piped| Some(PollFd::from_borrowed_fd(piped.pipe.as_ref()?.as_fd(), PollFlags::IN)))
            .collect();
        rustix::io::retry_on_intr(|| poll(&mut asked, patience))?;
        let comes: Vec<bool> = asked.iter().map(|asked| !asked.revents().is_empty()).collect();
        for (piped, comes) in open.iter_mut().zip(&comes) {
            if *comes {
                piped.take()?;
            }
        }
        Ok(comes.contains(&true))
    }
}
