//! The tracker against the kernel: random calls of several processes, made in a real directory and told to the tracker
//! as a tracer would tell them. After every call the tree of names must be the tree on disk, and what is behind every
//! descriptor must be the file and the offset that the kernel has there.

use super::*;
use crate::FileId;
use proptest::prelude::*;
use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, SeekFrom};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStringExt as _;

/// What a tracer shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Showing {
    /// Nothing but the calls (plain strace).
    Calls,
    /// What is behind descriptors, too (`strace -yy`).
    Behind,
}

/// A real descriptor that stands for a process's.
struct Real {
    fd: OwnedFd,
    cloexec: bool,
}

/// A descriptor table, and how many processes share it.
#[derive(Default)]
struct FdTable {
    fds: BTreeMap<i32, Real>,
    users: u32,
}

#[derive(Clone, Copy)]
struct Process {
    tid: u32,
    table: usize,
    cwd: usize,
}

/// The machine: the processes, on the kernel's side and on the tracker's.
struct Machine {
    root: tempfile::TempDir,
    /// `root`'s real path.
    home: Vec<u8>,
    showing: Showing,
    tracker: Tracker,
    processes: Vec<Process>,
    tables: Vec<FdTable>,
    cwds: Vec<OwnedFd>,
    next_tid: u32,
    /// What was told, for a failure's message.
    log: Vec<String>,
}

/// The bytes that a step is made of.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, n: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % n.max(1)
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    fn name(&mut self) -> Vec<u8> {
        match self.below(32) {
            0..=10 => b"a".to_vec(),
            15..=21 => b"b".to_vec(),
            22..=26 => b"c".to_vec(),
            11 => [&[0xff, b'\\', b'\n', b'"'][..], &[b'z'; 251]].concat(),
            12 => b"a \\303\xa9<>(deleted)".to_vec(),
            13 => b".".to_vec(),
            14 => b"..".to_vec(),
            _ => b"d".to_vec(),
        }
    }

    fn components(&mut self) -> Vec<u8> {
        let mut path = self.name();
        for _ in 0..[0, 0, 0, 1, 1, 2, 3][self.below(7)] {
            path.extend_from_slice(if self.below(12) == 0 { b"//" } else { b"/" });
            path.extend(self.name());
        }
        if self.below(16) == 0 {
            path.push(b'/');
        }
        path
    }
}

/// A path argument: where it starts, and its text.
#[derive(Clone, Debug)]
struct Arg {
    /// The process's descriptor; `None`: the working directory.
    dir: Option<i32>,
    path: Vec<u8>,
}

impl Machine {
    fn new(showing: Showing) -> Machine {
        let root = tempfile::tempdir().expect("a temporary directory");
        // The trace makes the directory that all happens in, and so knows it whole.
        let home = root.path().canonicalize().expect("its path").join("h").into_os_string().into_vec();
        rustix::fs::mkdir(&home[..], Mode::from_raw_mode(0o700)).expect("a directory");
        let cwd = rustix::fs::open(&home[..], OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).expect("the root");
        let mut tracker = Tracker::new(TrackOptions { keep_removed: true, cwd: None });
        let at = At { start: Start::Cwd(None), path: Some(home.clone().into()) };
        let out = Outcome { ret: 0, errno: 0, dur_ns: 0, seen: None, unfinished: false };
        tracker.call(1, 0, None, b"mkdir", &Call::Mkdir { at: at.clone(), mode: Some(0o700) }, &out);
        tracker.call(1, 0, None, b"chdir", &Call::Chdir { at }, &out);
        Machine {
            root,
            home,
            showing,
            tracker,
            processes: vec![Process { tid: 1, table: 0, cwd: 0 }],
            tables: vec![FdTable { users: 1, ..FdTable::default() }],
            cwds: vec![cwd],
            next_tid: 2,
            log: Vec::new(),
        }
    }

    fn real(&self, process: Process, fd: i32) -> Option<BorrowedFd<'_>> {
        self.tables[process.table].fds.get(&fd).map(|real| real.fd.as_fd())
    }

    /// The directory descriptor a path starts in.
    fn start(&self, process: Process, arg: &Arg) -> BorrowedFd<'_> {
        match arg.dir {
            Some(fd) if arg.path.first() != Some(&b'/') => self.real(process, fd).expect("an open descriptor"),
            _ => self.cwds[process.cwd].as_fd(),
        }
    }

    fn arg(&self, process: Process, choices: &mut Choices<'_>) -> Arg {
        let mut path = choices.components();
        match choices.below(8) {
            0 | 1 => Arg { dir: None, path: [&self.home, &b"/"[..], &path].concat() },
            2 | 3 => {
                let fds: Vec<i32> = self.tables[process.table].fds.keys().copied().collect();
                let dir = fds.get(choices.below(fds.len())).copied();
                Arg { dir, path }
            }
            _ => {
                if choices.below(40) == 0 {
                    path.clear();
                }
                Arg { dir: None, path }
            }
        }
    }

    /// Whether a path stays in our directory wherever the kernel leads it, so that the call may be made.
    fn is_confined(&self, process: Process, arg: &Arg) -> bool {
        let start = self.start(process, arg);
        let inside =
            |path: &[u8], flags: OFlags| match rustix::fs::openat(start, path, flags | OFlags::PATH, Mode::empty()) {
                Ok(fd) => self.is_inside(&behind(fd.as_fd()).0),
                Err(_) => true,
            };
        let (dir, _) = split(&arg.path);
        let dir_inside = inside(if dir.is_empty() { b"." } else { dir }, OFlags::DIRECTORY);
        let root_itself = match rustix::fs::openat(start, &arg.path[..], OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())
        {
            Ok(fd) => behind(fd.as_fd()).0 == self.home,
            Err(_) => false,
        };
        dir_inside && !root_itself && inside(&arg.path, OFlags::empty())
    }

    fn is_inside(&self, path: &[u8]) -> bool {
        path.starts_with(&self.home) && matches!(path.get(self.home.len()), None | Some(b'/'))
    }

    /// What a tracer shows of a descriptor now.
    fn shown(&self, number: i32, fd: BorrowedFd<'_>) -> TracedFd {
        let behind = (self.showing == Showing::Behind).then(|| {
            let (path, deleted) = behind(fd);
            (escaped(&path), deleted)
        });
        TracedFd { number, behind }
    }

    fn shown_fd(&self, process: Process, fd: i32) -> TracedFd {
        self.shown(fd, self.real(process, fd).expect("an open descriptor"))
    }

    fn shown_at(&self, process: Process, arg: &Arg) -> ShownAt {
        let dir = match arg.dir {
            Some(fd) => self.shown_fd(process, fd),
            None => self.shown(CWD_NUMBER, self.cwds[process.cwd].as_fd()),
        };
        ShownAt { dir, path: arg.path.clone() }
    }

    fn tell(&mut self, process: Process, call: &Call<'_>, result: Result<i64, Errno>, seen: Option<Seen<'_>>) {
        let (ret, errno) = match result {
            Ok(ret) => (ret, 0),
            Err(errno) => (-1, u16::try_from(errno.raw_os_error()).expect("a small number")),
        };
        self.log.push(format!("{} {} = {ret} {errno}", process.tid, readable(call)));
        let out = Outcome { ret, errno, dur_ns: 0, seen, unfinished: false };
        self.tracker.call(process.tid, 0, None, b"call", call, &out);
    }

    /// A new descriptor: the lowest free number.
    fn install(&mut self, process: Process, fd: OwnedFd, cloexec: bool) -> i32 {
        let fds = &mut self.tables[process.table].fds;
        let number = (3..).find(|number| !fds.contains_key(number)).expect("a free number");
        fds.insert(number, Real { fd, cloexec });
        number
    }

    fn any_fd(&self, process: Process, choices: &mut Choices<'_>) -> Option<i32> {
        let fds: Vec<i32> = self.tables[process.table].fds.keys().copied().collect();
        fds.get(choices.below(fds.len())).copied()
    }

    /// One call of one process.
    fn step(&mut self, bytes: &[u8]) {
        let mut choices = Choices(bytes.iter());
        let kind = choices.below(24);
        let process = self.processes[choices.below(self.processes.len())];
        match kind {
            0..=4 => self.open(process, &mut choices),
            5..=7 => self.on_descriptor(process, &mut choices),
            8 => self.close(process, &mut choices),
            9..=10 => self.on_name(process, &mut choices),
            11..=13 => self.rename(process, &mut choices),
            14..=15 => self.link(process, &mut choices),
            16..=18 => self.make(process, &mut choices),
            19 => self.chdir(process, &mut choices),
            20 => self.dup(process, &mut choices),
            21 => self.spawn(process, &mut choices),
            22 => self.look(process, &mut choices),
            _ => self.leave(process, &mut choices),
        }
    }

    fn open(&mut self, process: Process, choices: &mut Choices<'_>) {
        let arg = self.arg(process, choices);
        let mut flags = [OFlags::RDONLY, OFlags::RDWR][choices.below(2)];
        let bits = choices.below(256);
        for (bit, flag) in [(1, OFlags::CREATE), (2, OFlags::EXCL), (4, OFlags::APPEND), (8, OFlags::CLOEXEC)] {
            if bits & bit != 0 {
                flags |= flag;
            }
        }
        match choices.below(12) {
            0 | 1 => flags = (flags - OFlags::CREATE - OFlags::EXCL - OFlags::RDWR) | OFlags::DIRECTORY,
            2 => flags = OFlags::PATH | OFlags::NOFOLLOW,
            3 => flags = OFlags::TMPFILE | OFlags::RDWR,
            4 => flags = OFlags::RDWR | OFlags::TRUNC,
            5 => flags |= OFlags::NOFOLLOW,
            _ => {}
        }
        if flags.contains(OFlags::EXCL) && !flags.contains(OFlags::CREATE) {
            flags -= OFlags::EXCL;
        }
        if !self.is_confined(process, &arg) || self.tables[process.table].fds.len() > 20 {
            return;
        }
        let shown = self.shown_at(process, &arg);
        let mode = Mode::from_raw_mode(0o600);
        let made = rustix::fs::openat(
            self.start(process, &arg),
            &arg.path[..],
            flags | OFlags::CLOEXEC | OFlags::NONBLOCK,
            mode,
        );
        let call = Call::Open { at: shown.at(), flags: traced(flags), mode: Some(0o600) };
        match made {
            Err(errno) => self.tell(process, &call, Err(errno), None),
            Ok(fd) => {
                let number = self.install(process, fd, flags.contains(OFlags::CLOEXEC));
                let new = self.shown_fd(process, number);
                self.tell(process, &call, Ok(number.into()), new.fd().seen);
            }
        }
    }

    fn on_descriptor(&mut self, process: Process, choices: &mut Choices<'_>) {
        let Some(number) = self.any_fd(process, choices) else { return };
        let shown = self.shown_fd(process, number);
        let fd = self.real(process, number).expect("an open descriptor");
        let (len, at) = (choices.below(50), choices.below(100) as u64);
        let mut bytes = vec![7; len];
        let moved = |result: Result<usize, Errno>| result.map(|n| i64::try_from(n).expect("few bytes"));
        let transfer = |write, offset| Call::Transfer {
            write,
            fd: shown.fd(),
            len: Some(len as u64),
            offset,
            sync: false,
            append: false,
        };
        let (result, call) = match choices.below(8) {
            0 | 1 => (moved(rustix::io::write(fd, &bytes)), transfer(true, None)),
            2 => (moved(rustix::io::pwrite(fd, &bytes, at)), transfer(true, Some(at))),
            3 => (moved(rustix::io::read(fd, &mut bytes)), transfer(false, None)),
            4 => {
                let to = rustix::fs::seek(fd, SeekFrom::Start(at)).map(|to| to as i64);
                (to, Call::Seek { fd: shown.fd(), by: at as i64, whence: 0 })
            }
            5 => {
                let to = rustix::fs::seek(fd, SeekFrom::End(5)).map(|to| to as i64);
                (to, Call::Seek { fd: shown.fd(), by: 5, whence: 2 })
            }
            6 => (rustix::fs::ftruncate(fd, at).map(|()| 0), Call::Ftruncate { fd: shown.fd(), len: at }),
            _ => {
                let append = choices.flip();
                // What a FIFO has to say must not be waited for.
                let flags = if append { OFlags::APPEND } else { OFlags::empty() } | OFlags::NONBLOCK;
                (rustix::fs::fcntl_setfl(fd, flags).map(|()| 0), Call::SetFl { fd: shown.fd(), append })
            }
        };
        self.tell(process, &call, result, None);
    }

    fn close(&mut self, process: Process, choices: &mut Choices<'_>) {
        let Some(number) = self.any_fd(process, choices) else { return };
        let shown = self.shown_fd(process, number);
        self.tables[process.table].fds.remove(&number);
        self.tell(process, &Call::Close { fd: shown.fd() }, Ok(0), None);
    }

    /// unlink, rmdir, truncate.
    fn on_name(&mut self, process: Process, choices: &mut Choices<'_>) {
        let arg = self.arg(process, choices);
        if !self.is_confined(process, &arg) {
            return;
        }
        let shown = self.shown_at(process, &arg);
        let start = self.start(process, &arg);
        let done = |result: Result<(), Errno>| result.map(|()| 0);
        let (result, call) = match choices.below(5) {
            0 | 1 => {
                let removed = rustix::fs::unlinkat(start, &arg.path[..], AtFlags::REMOVEDIR);
                (done(removed), Call::Rmdir { at: shown.at() })
            }
            2 | 3 => {
                let removed = rustix::fs::unlinkat(start, &arg.path[..], AtFlags::empty());
                (done(removed), Call::Unlink { at: shown.at() })
            }
            _ => {
                let len = choices.below(100) as u64;
                // There is no truncateat: a descriptor leads there.
                let to = rustix::fs::openat(start, &arg.path[..], OFlags::PATH, Mode::empty());
                let to = to.and_then(|fd| {
                    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
                    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty())?;
                    rustix::fs::ftruncate(file, len)
                });
                (done(to), Call::Truncate { at: shown.at(), len })
            }
        };
        self.tell(process, &call, result, None);
    }

    fn rename(&mut self, process: Process, choices: &mut Choices<'_>) {
        let (from, to) = (self.arg(process, choices), self.arg(process, choices));
        if !self.is_confined(process, &from) || !self.is_confined(process, &to) {
            return;
        }
        let (shown_from, shown_to) = (self.shown_at(process, &from), self.shown_at(process, &to));
        let (noreplace, exchange) = [(false, false), (true, false), (false, true)][choices.below(5).saturating_sub(2)];
        let mut flags = RenameFlags::empty();
        flags.set(RenameFlags::NOREPLACE, noreplace);
        flags.set(RenameFlags::EXCHANGE, exchange);
        let result = rustix::fs::renameat_with(
            self.start(process, &from),
            &from.path[..],
            self.start(process, &to),
            &to.path[..],
            flags,
        );
        let call = Call::Rename { from: shown_from.at(), to: shown_to.at(), noreplace, exchange };
        self.tell(process, &call, result.map(|()| 0), None);
    }

    fn link(&mut self, process: Process, choices: &mut Choices<'_>) {
        let (from, to) = (self.arg(process, choices), self.arg(process, choices));
        if !self.is_confined(process, &from) || !self.is_confined(process, &to) {
            return;
        }
        let shown_to = self.shown_at(process, &to);
        if let (true, Some(number)) = (choices.below(3) == 0, self.any_fd(process, choices)) {
            let shown = self.shown_fd(process, number);
            let by = format!("/proc/self/fd/{}", self.real(process, number).expect("open").as_raw_fd());
            let start = self.start(process, &to);
            let result = rustix::fs::linkat(CWD, by, start, &to.path[..], AtFlags::SYMLINK_FOLLOW);
            self.tell(process, &Call::LinkFd { from: shown.fd(), to: shown_to.at() }, result.map(|()| 0), None);
            return;
        }
        let follow = choices.flip();
        let flags = if follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
        let shown_from = self.shown_at(process, &from);
        let result = rustix::fs::linkat(
            self.start(process, &from),
            &from.path[..],
            self.start(process, &to),
            &to.path[..],
            flags,
        );
        let call = Call::Link { from: shown_from.at(), to: shown_to.at(), follow };
        self.tell(process, &call, result.map(|()| 0), None);
    }

    /// mkdir, symlink, mknod.
    fn make(&mut self, process: Process, choices: &mut Choices<'_>) {
        let arg = self.arg(process, choices);
        if !self.is_confined(process, &arg) {
            return;
        }
        let shown = self.shown_at(process, &arg);
        let start = self.start(process, &arg);
        let mode = Mode::from_raw_mode(0o700);
        let (result, call) = match choices.below(5) {
            0..=2 => {
                (rustix::fs::mkdirat(start, &arg.path[..], mode), Call::Mkdir { at: shown.at(), mode: Some(0o700) })
            }
            3 => {
                let mut target = choices.components();
                if choices.below(3) == 0 {
                    target = [&self.home, &b"/"[..], &target].concat();
                }
                if target.split(|&b| b == b'/').any(|name| name == b"..") {
                    return; // A file made through it could be outside our directory.
                }
                let made = rustix::fs::symlinkat(&target[..], start, &arg.path[..]);
                (made, Call::Symlink { target: Some(target.into()), at: shown.at() })
            }
            _ => (
                rustix::fs::mknodat(start, &arg.path[..], FileType::Fifo, mode, 0),
                Call::Mknod { at: shown.at(), kind: Kind::Special, mode: Some(0o700) },
            ),
        };
        self.tell(process, &call, result.map(|()| 0), None);
    }

    fn chdir(&mut self, process: Process, choices: &mut Choices<'_>) {
        let open = |start: BorrowedFd<'_>, path: &[u8]| {
            rustix::fs::openat(start, path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
        };
        if let (true, Some(number)) = (choices.flip(), self.any_fd(process, choices)) {
            let shown = self.shown_fd(process, number);
            let entered = open(self.real(process, number).expect("open"), b".");
            if let Ok(fd) = &entered
                && !self.is_inside(&behind(fd.as_fd()).0)
            {
                return;
            }
            let result = entered.map(|fd| self.cwds[process.cwd] = fd);
            self.tell(process, &Call::Fchdir { fd: shown.fd() }, result.map(|()| 0), None);
            return;
        }
        let mut arg = self.arg(process, choices);
        arg.dir = None;
        if !self.is_confined(process, &arg) {
            return;
        }
        let shown = self.shown_at(process, &arg);
        let result = open(self.start(process, &arg), &arg.path).map(|fd| self.cwds[process.cwd] = fd);
        // chdir is no *at call: a tracer shows no directory.
        let at = At { start: Start::Cwd(None), ..shown.at() };
        self.tell(process, &Call::Chdir { at }, result.map(|()| 0), None);
    }

    fn dup(&mut self, process: Process, choices: &mut Choices<'_>) {
        let Some(number) = self.any_fd(process, choices) else { return };
        let shown = self.shown_fd(process, number);
        let cloexec = choices.flip();
        let fd = rustix::io::dup(self.real(process, number).expect("open")).expect("a descriptor");
        let (to, new) = if choices.flip() {
            let to = i32::try_from(3 + choices.below(12)).expect("small");
            if to != number {
                self.tables[process.table].fds.insert(to, Real { fd, cloexec });
            }
            (Some(to), to)
        } else {
            (None, self.install(process, fd, cloexec))
        };
        self.tell(process, &Call::Dup { fd: shown.fd(), to, cloexec }, Ok(new.into()), None);
    }

    fn spawn(&mut self, process: Process, choices: &mut Choices<'_>) {
        if self.processes.len() > 4 {
            return;
        }
        let flags = CloneFlags { files: choices.flip(), fs: choices.flip(), thread: false, own_mounts: false };
        let table = if flags.files {
            self.tables[process.table].users += 1;
            process.table
        } else {
            self.tables.push(FdTable { fds: self.copy(process.table), users: 1 });
            self.tables.len() - 1
        };
        let cwd = if flags.fs {
            process.cwd
        } else {
            self.cwds.push(rustix::io::dup(&self.cwds[process.cwd]).expect("a descriptor"));
            self.cwds.len() - 1
        };
        let tid = self.next_tid;
        self.next_tid += 1;
        self.processes.push(Process { tid, table, cwd });
        self.tell(process, &Call::Clone(flags), Ok(tid.into()), None);
    }

    fn copy(&self, table: usize) -> BTreeMap<i32, Real> {
        let dup = |real: &Real| Real { fd: rustix::io::dup(&real.fd).expect("a descriptor"), cloexec: real.cloexec };
        self.tables[table].fds.iter().map(|(&number, real)| (number, dup(real))).collect()
    }

    /// stat, access.
    fn look(&mut self, process: Process, choices: &mut Choices<'_>) {
        let arg = self.arg(process, choices);
        if !self.is_confined(process, &arg) {
            return;
        }
        let shown = self.shown_at(process, &arg);
        let nofollow = choices.flip();
        let flags = if nofollow { AtFlags::SYMLINK_NOFOLLOW } else { AtFlags::empty() };
        let stat = rustix::fs::statat(self.start(process, &arg), &arg.path[..], flags);
        let attrs = stat.as_ref().ok().map(|stat| Attrs {
            kind: kind_of(FileType::from_raw_mode(stat.st_mode)),
            mode: u16::try_from(stat.st_mode & 0o7777).expect("twelve bits"),
            size: u64::try_from(stat.st_size).ok(),
        });
        self.tell(process, &Call::Stat { at: shown.at(), nofollow, attrs }, stat.map(|_| 0), None);
    }

    /// exec, unshare, exit.
    fn leave(&mut self, process: Process, choices: &mut Choices<'_>) {
        let own = |machine: &mut Machine, process: Process| {
            if machine.tables[process.table].users > 1 {
                machine.tables[process.table].users -= 1;
                let fds = machine.copy(process.table);
                machine.tables.push(FdTable { fds, users: 1 });
                let table = machine.tables.len() - 1;
                for other in &mut machine.processes {
                    if other.tid == process.tid {
                        other.table = table;
                    }
                }
                return table;
            }
            process.table
        };
        match choices.below(3) {
            0 => {
                let table = own(self, process);
                self.tables[table].fds.retain(|_, real| !real.cloexec);
                let at = At { start: Start::Cwd(None), path: Some(b"/bin/true".into()) };
                self.tell(process, &Call::Exec { at }, Ok(0), None);
            }
            1 => {
                own(self, process);
                self.tell(process, &Call::Unshare { files: true, fs: false, own_mounts: false }, Ok(0), None);
            }
            _ if self.processes.len() > 1 => {
                self.processes.retain(|other| other.tid != process.tid);
                self.tables[process.table].users -= 1;
                if self.tables[process.table].users == 0 {
                    self.tables[process.table].fds.clear();
                }
                self.log.push(format!("{} exit", process.tid));
                self.tracker.exit(process.tid, 0, 0);
            }
            _ => {}
        }
    }

    /// The tracker's state is the kernel's.
    fn compare(&mut self) {
        self.tracker.check();
        let log = || self.log.join("\n");
        let mut inodes: BTreeMap<u64, FileId> = BTreeMap::new();
        let mut same = |inode: u64, file: Option<FileId>, what: &dyn std::fmt::Debug| {
            let file = file.unwrap_or_else(|| panic!("{what:?} is a file:\n{}", log()));
            assert_eq!(*inodes.entry(inode).or_insert(file), file, "{what:?} is inode {inode}:\n{}", log());
        };
        let limits = crate::snapshot::WalkLimits::default();
        let disk = crate::Snapshot::of_tree(&[self.root.path()], &limits).expect("a walk").snapshot;
        let mut standing = self.tracker.standing();
        standing.retain(|s| self.is_inside(&s.path) && s.path != self.home);
        standing.sort_by(|a, b| crate::snapshot::path_order(&a.path, &b.path));
        let names = |paths: Vec<&Vec<u8>>| paths.iter().map(|p| p.escape_ascii().to_string()).collect::<Vec<_>>();
        let found: Vec<_> = disk.below(&self.home).iter().collect();
        let (ours, theirs) =
            (names(standing.iter().map(|s| &s.path).collect()), names(found.iter().map(|e| &e.path).collect()));
        assert_eq!(ours, theirs, "names after\n{}", log());
        for (ours, theirs) in standing.iter().zip(found) {
            let path = theirs.path.escape_ascii().to_string();
            let kind = match theirs.kind {
                posix::FileKind::File => Kind::Regular,
                posix::FileKind::Directory => Kind::Directory,
                posix::FileKind::Symlink => Kind::Symlink,
                posix::FileKind::Special => Kind::Special,
            };
            assert_eq!(ours.kind, kind, "kind of {path} after\n{}", log());
            same(theirs.ino, ours.file, &path);
            if kind == Kind::Regular {
                assert_eq!(ours.size_bytes, Some(theirs.size_bytes), "length of {path} after\n{}", log());
            }
            if kind != Kind::Directory {
                assert_eq!(ours.links, Some(theirs.nlink), "links of {path} after\n{}", log());
            }
            assert_eq!(ours.target, theirs.target, "target of {path} after\n{}", log());
        }
        let inos: Vec<_> = inodes.values().copied().collect();
        assert_eq!(
            inos.iter().collect::<std::collections::BTreeSet<_>>().len(),
            inos.len(),
            "one inode each:\n{}",
            log()
        );

        for process in self.processes.clone() {
            let thread = self.tracker.thread(process.tid);
            let fds = &self.tables[process.table].fds;
            let known = self.tracker.fds.range(thread.table, 0, u32::MAX);
            assert_eq!(
                known,
                fds.keys().copied().collect::<Vec<_>>(),
                "descriptors of {} after\n{}",
                process.tid,
                log()
            );
            for (&number, real) in fds {
                let slot = self.tracker.fds.get(thread.table, number).expect("listed just now");
                assert_eq!(slot.cloexec, real.cloexec, "close-on-exec of {number} after\n{}", log());
                let state = self.tracker.fds.ofd(slot.ofd);
                let stat = rustix::fs::fstat(&real.fd).expect("a stat");
                let file = state.file.unwrap_or_else(|| panic!("descriptor {number} is a file:\n{}", log()));
                let id = self.tracker.names.id(file);
                assert_eq!(inodes.get(&stat.st_ino).copied().or(id), id, "file behind {number} after\n{}", log());
                if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                    assert_eq!(
                        self.tracker.names.file(file).size,
                        u64::try_from(stat.st_size).ok(),
                        "length behind {number} after\n{}",
                        log()
                    );
                    if let Ok(offset) = rustix::fs::seek(&real.fd, SeekFrom::Current(0)) {
                        assert_eq!(state.offset, Some(offset), "offset of {number} after\n{}", log());
                    }
                }
            }
        }
    }
}

/// A descriptor as a tracer shows it.
struct TracedFd {
    number: i32,
    behind: Option<(Vec<u8>, bool)>,
}

impl TracedFd {
    fn fd(&self) -> Fd<'_> {
        let seen = self.behind.as_ref().map(|(raw, deleted)| Seen::Path { raw, deleted: *deleted, who: None });
        Fd { number: self.number, seen }
    }
}

/// A path argument as a tracer shows it.
struct ShownAt {
    dir: TracedFd,
    path: Vec<u8>,
}

impl ShownAt {
    fn at(&self) -> At<'_> {
        let start = match (self.dir.number, &self.dir.behind) {
            (CWD_NUMBER, Some((raw, false))) => Start::Cwd(Some(raw)),
            (CWD_NUMBER, _) => Start::Cwd(None),
            _ => Start::Fd(self.dir.fd()),
        };
        At { start, path: Some(self.path.as_slice().into()) }
    }
}

/// `AT_FDCWD`
const CWD_NUMBER: i32 = -100;

/// The path behind a descriptor, and whether its name is gone.
fn behind(fd: BorrowedFd<'_>) -> (Vec<u8>, bool) {
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let path = std::fs::read_link(link).expect("a descriptor of ours").into_os_string().into_vec();
    match path.strip_suffix(b" (deleted)") {
        Some(path) => (path.to_vec(), true),
        None => (path, false),
    }
}

/// As strace escapes a path.
fn escaped(path: &[u8]) -> Vec<u8> {
    let mut raw = Vec::new();
    for &byte in path {
        match byte {
            b'\\' => raw.extend_from_slice(b"\\\\"),
            b'<' | b'>' | b'\n' | 0x7f.. => raw.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            _ => raw.push(byte),
        }
    }
    raw
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().rposition(|&b| b != b'/').map_or(0, |at| at + 1);
    let cut = memchr::memrchr(b'/', &path[..end]).map_or(0, |at| at + 1);
    path.split_at(cut)
}

fn kind_of(kind: FileType) -> Kind {
    match kind {
        FileType::RegularFile => Kind::Regular,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        _ => Kind::Special,
    }
}

/// A call for a failure's message, its byte strings as text.
fn readable(call: &Call<'_>) -> String {
    let text = format!("{call:?}");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(open) = rest.find('[') {
        let Some(close) = rest[open..].find(']').map(|at| open + at) else { break };
        out.push_str(&rest[..open]);
        let bytes: Option<Vec<u8>> = rest[open + 1..close].split(", ").map(|number| number.parse().ok()).collect();
        match bytes {
            Some(bytes) => out.push_str(&format!("\"{}\"", bytes.escape_ascii()).replace(&"z".repeat(251), "z...")),
            None => out.push_str(&rest[open..=close]),
        }
        rest = &rest[close + 1..];
    }
    out + rest
}

/// The bits of [`flag`].
fn traced(flags: OFlags) -> u32 {
    let mut bits = flag::READ;
    if flags.contains(OFlags::TMPFILE) {
        return flag::READ | flag::WRITE | flag::TMPFILE;
    }
    for (from, to) in [
        (OFlags::RDWR, flag::WRITE),
        (OFlags::CREATE, flag::CREATE),
        (OFlags::EXCL, flag::EXCL),
        (OFlags::APPEND, flag::APPEND),
        (OFlags::CLOEXEC, flag::CLOEXEC),
        (OFlags::TRUNC, flag::TRUNC),
        (OFlags::DIRECTORY, flag::DIRECTORY),
        (OFlags::PATH, flag::PATH_ONLY),
        (OFlags::NOFOLLOW, flag::NOFOLLOW),
    ] {
        if flags.contains(from) {
            bits |= to;
        }
    }
    bits
}

fn run(showing: Showing, steps: &[[u8; 24]]) {
    let mut machine = Machine::new(showing);
    for step in steps {
        machine.step(step);
        machine.compare();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        // PROPTEST_CASES asks for more.
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64),
        max_shrink_iters: 3000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_calls_alone_tell_the_tree(steps in prop::collection::vec(any::<[u8; 24]>(), 1..120)) {
        run(Showing::Calls, &steps);
    }

    #[test]
    fn what_a_tracer_shows_agrees_with_the_calls(steps in prop::collection::vec(any::<[u8; 24]>(), 1..120)) {
        run(Showing::Behind, &steps);
    }
}
