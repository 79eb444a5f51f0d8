//! The stage of every test here: a directory that is written in, beside it a tree that nobody may touch, and the
//! judges.

use crate::common;
use assert_cmd::Command;
use common::fsage;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

/// Nobody, on every Linux.
pub const NOBODY: u32 = 65534;
/// Nothing that is done here takes anywhere near as long.
pub const PATIENCE: Duration = Duration::from_secs(1800);

/// Who runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// Whoever runs the test.
    Same,
    /// An ordinary user, whom the tree outside belongs to.
    Nobody,
    /// The same where nobody gets a user namespace: in a process whose root directory is not the machine's.
    NobodyWithout,
}

/// A directory that is written in, and beside it a tree that nothing may happen to.
pub struct Stage {
    base: tempfile::TempDir,
    pub user: User,
    watch: OwnedFd,
    before: BTreeMap<PathBuf, String>,
}

impl Stage {
    pub fn new(user: User) -> Stage {
        let base = tempfile::Builder::new().prefix("fsage-contain").tempdir().expect("a temporary directory");
        let at = |name: &str| base.path().join(name);
        for directory in ["root", "target", "outside", "outside/victim", "outside/victim/dir"] {
            fs::create_dir(at(directory)).expect("a new directory");
        }
        for (name, mode) in [("victim/prog", 0o755), ("victim/secret", 0o600), ("victim/dir/deep", 0o644)] {
            let path = at("outside").join(name);
            fs::write(&path, format!("{name} is not yours")).expect("a new file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        }
        symlink("secret", at("outside/victim/link")).expect("a new link");
        let fifo = at("outside/victim/fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a new FIFO");
        if user != User::Same {
            fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
            testkit::process::copy_program(env!("CARGO_BIN_EXE_fsage"), at("fsage"));
            for path in every_path(&at("outside")).into_iter().chain([at("target")]) {
                std::os::unix::fs::lchown(&path, Some(NOBODY), Some(NOBODY)).expect("root may give away");
            }
            chown(base.path(), Some(NOBODY), Some(NOBODY)).expect("root may give away");
        }
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("inotify");
        for path in every_path(&at("outside")).iter().filter(|path| path.symlink_metadata().is_ok_and(|m| m.is_dir())) {
            inotify::add_watch(&watch, path, WatchFlags::ALL_EVENTS).expect("a watch");
        }
        // Nor may anything be made beside the target.
        let changes = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE | WatchFlags::ATTRIB;
        inotify::add_watch(&watch, base.path(), changes).expect("a watch");
        let mut stage = Stage { base, user, watch, before: BTreeMap::new() };
        stage.note();
        stage
    }

    /// Notes what is outside; our own look at it is no news.
    pub fn note(&mut self) {
        let paths = every_path(&self.at("outside"));
        make_old(&paths);
        self.before = paths.into_iter().map(|path| (path.clone(), look(&path))).collect();
        drain(&self.watch);
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    /// The binary, to be run by whom the stage is for.
    pub fn fsage(&self) -> Command {
        match self.user {
            User::Same => fsage(),
            User::Nobody => self.as_nobody(Command::new("setpriv")),
            User::NobodyWithout => {
                let script = "mount --rbind / \"$1\" && shift && exec chroot \"$0\" setpriv \"$@\"";
                let mut command = Command::new("unshare");
                command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
                command.arg(self.at("root")).arg(self.at("root"));
                self.as_nobody(command)
            }
        }
    }

    fn as_nobody(&self, mut command: Command) -> Command {
        command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".to_owned()]);
        command.arg(self.at("fsage")).env_remove("RUST_BACKTRACE").env_remove("XDG_RUNTIME_DIR");
        command.env("TMPDIR", self.at("target")).env("HOME", self.at("target"));
        command
    }

    /// Runs it, and checks that nothing happened outside.
    #[track_caller]
    pub fn run(&mut self, command: &mut Command) -> Output {
        let output = command.current_dir("/").timeout(PATIENCE).output().expect("the binary runs");
        self.check();
        output
    }

    /// Nothing outside was opened, read, changed, made or removed.
    #[track_caller]
    pub fn check(&mut self) {
        let mut events = drain(&self.watch);
        // What we looked at is closed late where another thread of this test starts a program meanwhile: until that
        // runs, its copy of our descriptors is open. Whoever else closes something has opened it before.
        if !events.iter().any(|event| event.contains("OPEN")) {
            events.retain(|event| !event.contains("CLOSE"));
        }
        assert!(events.is_empty(), "outside the target: {events:#?}");
        for (path, was) in &self.before {
            assert_eq!(&look(path), was, "{}", path.display());
        }
        let now = every_path(&self.at("outside"));
        assert_eq!(now, self.before.keys().cloned().collect::<Vec<_>>(), "names outside");
        self.note();
    }
}

/// A directory and everything below it, sorted.
pub fn every_path(top: &Path) -> Vec<PathBuf> {
    let mut found = vec![top.to_owned()];
    let mut next = 0;
    while let Some(path) = found.get(next).cloned() {
        if fs::symlink_metadata(&path).expect("it is there").is_dir() {
            found.extend(fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("an entry").path()));
        }
        next += 1;
    }
    found.sort();
    found
}

/// Sets times of access before those of change, so that the next reader shows where times of access are kept.
fn make_old(paths: &[PathBuf]) {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};
    for path in paths {
        let times = Timestamps {
            last_access: Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 },
            last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        };
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).expect("times of our own files");
    }
}

/// What the kernel says of a name, and of a file its bytes, read without a trace.
fn look(path: &Path) -> String {
    let Ok(m) = fs::symlink_metadata(path) else { return "gone".to_owned() };
    let mut out = format!("{:o} {}:{} {} names, {} bytes", m.mode(), m.uid(), m.gid(), m.nlink(), m.size());
    let times = [(m.atime(), m.atime_nsec()), (m.mtime(), m.mtime_nsec()), (m.ctime(), m.ctime_nsec())];
    write!(out, ", {times:?}").expect("into a string");
    if m.is_file() {
        use rustix::fs::{Mode, OFlags, open};
        let file = open(path, OFlags::RDONLY | OFlags::NOATIME, Mode::empty()).expect("our own file");
        let bytes = std::io::read_to_string(fs::File::from(file)).expect("what we wrote");
        write!(out, ", {bytes:?}").expect("into a string");
    }
    out
}

/// What has happened in the watched directories.
fn drain(watch: &OwnedFd) -> Vec<String> {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 1 << 14];
    let mut reader = inotify::Reader::new(watch, &mut buffer);
    let mut found = Vec::new();
    loop {
        match reader.next() {
            Ok(event) => found.push(format!("{:?} {:?}", event.events(), event.file_name())),
            Err(rustix::io::Errno::AGAIN) => return found,
            Err(e) => panic!("inotify: {e}"),
        }
    }
}

/// A temporary directory that everybody may look into.
pub fn open_directory() -> tempfile::TempDir {
    let directory = tempfile::Builder::new().prefix("fsage-contain").tempdir().expect("a temporary directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    directory
}
