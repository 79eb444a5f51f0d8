//! What a test needs of the machine, and what becomes of it without.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write as _;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Names the file that skipped tests are written to, a line for each reason: package, test, reason, with tabs between
/// them.
pub const SKIPPED_FILE: &str = "FSAGE_SKIPPED";

/// Something that not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// To run as root.
    Root,
    /// Loop devices, and root to attach them.
    LoopDevices,
    /// A mount namespace of one's own, in which something can be mounted.
    Mount,
    /// To mount what a process serves (`/dev/fuse`), as root.
    Fuse,
    /// A program.
    Tool(Tool),
    /// `/dev/shm`, as a tmpfs.
    Shm,
}

macro_rules! tools {
    ($($tool:ident = $program:literal of $package:literal,)*) => {
        /// A program that tests run or compare with. `scripts/setup test` installs what is not on every system.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Tool {
            $(#[doc = concat!("`", $program, "`, of the Debian package ", $package, ".")] $tool,)*
        }

        impl Tool {
            /// All of them.
            pub const ALL: &[Tool] = &[$(Tool::$tool),*];

            /// How it is called.
            pub fn program(self) -> &'static str {
                match self {
                    $(Tool::$tool => $program,)*
                }
            }

            /// The Debian package that brings it.
            pub fn package(self) -> &'static str {
                match self {
                    $(Tool::$tool => $package,)*
                }
            }
        }
    };
}

tools! {
    Btrfs = "btrfs" of "btrfs-progs",
    Cc = "cc" of "gcc",
    Dumpe2fs = "dumpe2fs" of "e2fsprogs",
    E2freefrag = "e2freefrag" of "e2fsprogs",
    Filefrag = "filefrag" of "e2fsprogs",
    Fincore = "fincore" of "util-linux",
    Fio = "fio" of "fio",
    Fls = "fls" of "sleuthkit",
    Fsstat = "fsstat" of "sleuthkit",
    Fusermount = "fusermount3" of "fuse3",
    Git = "git" of "git",
    Icat = "icat" of "sleuthkit",
    Insmod = "insmod" of "kmod",
    LinuxUml = "linux.uml" of "user-mode-linux",
    Makefs = "makefs" of "makefs",
    MkfsBtrfs = "mkfs.btrfs" of "btrfs-progs",
    MkfsExt4 = "mkfs.ext4" of "e2fsprogs",
    MkfsXfs = "mkfs.xfs" of "xfsprogs",
    Postmark = "postmark" of "postmark",
    Python = "python3" of "python3",
    Rsync = "rsync" of "rsync",
    Script = "script" of "bsdutils",
    Setpriv = "setpriv" of "util-linux",
    Strace = "strace" of "strace",
    XfsDb = "xfs_db" of "xfsprogs",
}

/// Whether the test can have it. Where not, the test is skipped: it has to return; under `CI` it fails here.
#[track_caller]
#[must_use = "a test that cannot have what it needs returns"]
pub fn need(what: Need) -> bool {
    match missing(what) {
        None => true,
        Some(why) => {
            skip(why);
            false
        }
    }
}

/// The same of several.
#[track_caller]
#[must_use = "a test that cannot have what it needs returns"]
pub fn needs(all: &[Need]) -> bool {
    for what in all {
        if let Some(why) = missing(*what) {
            skip(why);
            return false;
        }
    }
    true
}

/// Where a program is; `None` where the test is skipped.
#[track_caller]
#[must_use = "a test that cannot have what it needs returns"]
pub fn tool(tool: Tool) -> Option<PathBuf> {
    need(Need::Tool(tool)).then(|| find(tool.program())).flatten()
}

/// What a trial came to; `None` where it failed, for which the test is skipped.
#[track_caller]
#[must_use = "a test that cannot have what it needs returns"]
pub fn have<T, E: Display>(tried: Result<T, E>) -> Option<T> {
    match tried {
        Ok(value) => Some(value),
        Err(why) => {
            skip(why);
            None
        }
    }
}

/// The Python that has a module; `None` where the test is skipped. `FSAGE_PYTHON` names another than `python3`.
#[track_caller]
#[must_use = "a test that cannot have what it needs returns"]
pub fn python_with(module: &str) -> Option<String> {
    let python = std::env::var("FSAGE_PYTHON").unwrap_or_else(|_| "python3".into());
    let tried = Command::new(&python).args(["-c", &format!("import {module}")]).output();
    if tried.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    skip(format!("{python} has no module {module} (pip install {module})"));
    None
}

/// Skips the running test, or a part of it. Under `CI` that is a failure: whatever a test needs is there.
#[track_caller]
pub fn skip(why: impl Display) {
    let thread = std::thread::current();
    let place = Location::caller();
    // The test's name, which the harness gives to its thread.
    let test = match thread.name() {
        Some(name) if name != "main" => Cow::Borrowed(name),
        _ => Cow::Owned(format!("{}:{}", place.file(), place.line())),
    };
    // In a line of its own, whatever the reason.
    let why = why.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    let on_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!on_ci, "{test} cannot run, and under CI nothing is skipped: {why}");
    eprintln!("skipped: {why}");
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "-".into());
    if let Some(file) = std::env::var_os(SKIPPED_FILE) {
        let line = format!("{package}\t{test}\t{why}\n");
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(&file);
        let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|e| panic!("{}: {e}", Path::new(&file).display()));
    }
}

/// A number that the long settings of a test are asked for with; a value that is no number is no reason to take the
/// usual one.
pub fn parameter<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: not understood")))
}

/// Makes a test one of an ordinary user's: `true` where it is to be done. For root it is done by nobody, in another
/// process, and `false` says that this has passed. It is to be told its own name, as the harness has it.
#[track_caller]
#[must_use = "false: it has been done"]
pub fn as_ordinary_user(test: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        return true;
    }
    let Some(setpriv) = tool(Tool::Setpriv) else { return false };
    // A copy: the build's directories may be closed to nobody.
    let program =
        std::env::temp_dir().join(format!("fsage-as-nobody-{}-{}", std::process::id(), test.replace("::", "-")));
    crate::process::copy_program(std::env::current_exe().unwrap(), &program);
    let mut command = Command::new(setpriv);
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(&program);
    command.args(["--exact", test, "--nocapture"]).current_dir("/").stdin(Stdio::null());
    let output = command.env_remove("XDG_RUNTIME_DIR").env_remove(SKIPPED_FILE).output();
    std::fs::remove_file(&program).unwrap();
    passed(&output.unwrap(), "as nobody");
    false
}

/// Sees to it that a test has passed that another process did, or was skipped there.
#[track_caller]
fn passed(output: &Output, how: &str) {
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // Indented, so that run-tests does not count its lines as well.
    let shown = || said.replace('\n', "\n    ");
    assert!(output.status.success() && said.contains("1 passed"), "{how}:\n    {}", shown());
    if let Some(why) = said.lines().find_map(|line| line.strip_prefix("skipped: ")) {
        skip(format!("{how}: {why}"));
    }
}

/// Makes a test one that mounts: `Some` where it is to be done, an empty directory for what it mounts. It is done in
/// another process with mounts of its own, which go with it however it ends; `None` says that this has passed. It is to
/// be told its own name, as the harness has it.
#[track_caller]
#[must_use = "`None`: it has been done"]
pub fn with_own_mounts(test: &str) -> Option<PathBuf> {
    const WITHIN: &str = "FSAGE_TEST_WITH_OWN_MOUNTS";
    let directory = PathBuf::from("/mnt");
    if std::env::var(WITHIN).is_ok_and(|value| value == test) {
        mount(&["-t", "tmpfs", "none"], &directory);
        return Some(directory);
    }
    if !needs(&[Need::Root, Need::Mount]) {
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).stdin(Stdio::null());
    let output = command.env(WITHIN, test).env_remove(SKIPPED_FILE).output();
    passed(&output.unwrap(), "with mounts of its own");
    None
}

/// Mounts something in a test that has mounts of its own: arguments of mount(8), and where.
pub fn mount(what: &[&str], at: &Path) {
    let output = Command::new("mount").args(what).arg(at).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "mount {what:?} {}: {said}", at.display());
}

/// Unmounts something. What is in use is asked again: what this process has open, its other threads' children have open
/// too, from fork(2) to execve(2).
#[track_caller]
pub fn unmount(point: &Path) {
    let asked = || rustix::mount::unmount(point, rustix::mount::UnmountFlags::NOFOLLOW);
    crate::process::until(&format!("{} is not in use", point.display()), || match asked() {
        Err(rustix::io::Errno::BUSY) => false,
        other => {
            other.unwrap();
            true
        }
    });
}

/// Why a need cannot be met here.
fn missing(what: Need) -> Option<String> {
    match what {
        Need::Root => (!rustix::process::geteuid().is_root()).then(|| "only root can do this".into()),
        Need::LoopDevices => {
            let there = Path::new("/dev/loop-control").exists();
            missing(Need::Root).or_else(|| (!there).then(|| "there are no loop devices (/dev/loop-control)".into()))
        }
        Need::Mount => {
            let tried = Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
            match tried {
                Ok(output) if output.status.success() => None,
                Ok(output) => {
                    Some(format!("nothing can be mounted here: {}", String::from_utf8_lossy(&output.stderr).trim()))
                }
                Err(error) => Some(format!("unshare(1): {error}")),
            }
        }
        Need::Fuse => {
            let there = Path::new("/dev/fuse").exists();
            missing(Need::Root).or_else(|| (!there).then(|| "there is no /dev/fuse (module fuse)".into()))
        }
        Need::Tool(tool) => {
            let missing = || format!("{} is not installed (package {})", tool.program(), tool.package());
            find(tool.program()).is_none().then(missing)
        }
        Need::Shm => {
            let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
            let there = mounts.lines().any(|line| line.split(' ').skip(1).take(2).eq(["/dev/shm", "tmpfs"]));
            (!there).then(|| "/dev/shm is no tmpfs".into())
        }
    }
}

/// A program on the path or where administrators have theirs.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(sbin).map(|directory| directory.join(program)).find(|path| path.is_file())
}
