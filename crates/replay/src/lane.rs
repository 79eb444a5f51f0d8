//! One thread of the replay as a state machine: fetch a call, wait for its turn, make what it needs ready, make it,
//! take the result in.
//!
//! Making ready (opening the directory a walk starts in, a file that was open before the trace began) and tidying up
//! (closing what the trace does not close) are calls too, but neither timed nor counted.

use super::observed::{Observation, Observer};
use super::rebuild::{pieces, relative};
use super::shared::{Fetched, Job, Shared, Slot};
use super::tally::Tally;
use super::translate::{self, Mismatch, Parts, compare, split};
use super::{Pace, ReplayError};
use posix::{Call, Errno, Fd, Lock, Mode, OpenFlags, Outcome, Process, Reply, Residency, Step, Whence};
use std::collections::VecDeque;
use trace::disposition::{Skip, copy_ends, gives_offset, links_open_file};
use trace::{Event, OfdId, Op, flag};

/// A lane of the replay.
pub(super) struct Lane<'s, 'a> {
    shared: &'s Shared<'a>,
    index: usize,
    state: State,
    job: Option<Box<Job>>,
    parts: Parts,
    /// Directory descriptors held for the call in hand.
    held: Vec<Fd>,
    to_close: Vec<Fd>,
    /// What is left to walk to a directory being opened, and from where.
    walk: VecDeque<Vec<u8>>,
    walk_from: Fd,
    /// A call of our own to be made before anything else.
    next_help: Option<Help>,
    /// A name that stands in for none.
    stand_in: Vec<u8>,
    /// Whether the last fcntl was a lock.
    locked: bool,
    tally: Option<Tally>,
    observer: Option<Observer<'a>>,
    /// Whether the cache was looked at for the call in hand, what was found, and how many calls were under way.
    looked: bool,
    found: Option<Residency>,
    in_flight: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Needs a call.
    Fetch,
    /// Has one; its turn has not come.
    Turn,
    /// Its turn has come and its pause is over.
    Ready,
    /// A call of our own is being made.
    Helping(Help),
    /// The traced call is being made.
    Calling,
    Ended,
}

/// Calls of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Help {
    Close(Fd),
    /// One step of the walk to the directory of the first or second path.
    Walk {
        second: bool,
    },
    /// Opening a file that was open when the trace began, with ever fewer rights.
    Open {
        second: bool,
        attempt: u8,
    },
    /// Putting its offset where the trace found it.
    Place {
        fd: Fd,
        offset: u64,
    },
    /// Opening the directory of a file that cannot be made without a name here.
    StandInDirectory,
    /// Making it with a name that stands in for none.
    StandIn {
        dir: Fd,
    },
    /// Looking what of a range is in memory.
    Look {
        fd: Fd,
        offset: u64,
        len_bytes: u64,
    },
    /// Taking that name away.
    Unname {
        dir: Fd,
        ofd: OfdId,
    },
}

/// What to do next, in terms that borrow nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Do {
    Help(Help),
    Call,
    PauseNs(u64),
    Blocked,
    Done,
}

/// How a file that was open before the trace is opened: for both, for reading, as a directory.
const ATTEMPTS: [OpenFlags; 3] = [OpenFlags::READ_WRITE, OpenFlags::READ, OpenFlags::DIRECTORY];

impl<'s, 'a> Lane<'s, 'a> {
    pub fn new(shared: &'s Shared<'a>, index: usize, tally: Tally) -> Self {
        Lane {
            shared,
            index,
            state: State::Fetch,
            job: None,
            parts: Parts::new(shared.fixed.modes),
            held: Vec::new(),
            to_close: Vec::new(),
            walk: VecDeque::new(),
            walk_from: shared.fixed.root,
            next_help: None,
            stand_in: Vec::new(),
            locked: false,
            tally: Some(tally),
            observer: shared.fixed.observed.map(Observer::new),
            looked: false,
            found: None,
            in_flight: 0,
        }
    }

    fn step(&mut self, last: Option<&Outcome>) -> Do {
        match (self.state, last) {
            (State::Calling, Some(outcome)) => self.take_in(outcome),
            (State::Helping(help), Some(outcome)) => self.helped(help, outcome),
            _ => {}
        }
        // Calls fetched (perhaps for another lane) or left out move the order on without an outcome that would wake the
        // lanes waiting for them: a lane that has done so says so by an empty pause before it waits itself.
        let mut moved = false;
        let wait = |moved: bool| if moved { Do::PauseNs(0) } else { Do::Blocked };
        loop {
            if let Some(fd) = self.to_close.pop() {
                return self.help(Help::Close(fd));
            }
            if self.shared.stopping() {
                return self.end();
            }
            if let Some(help) = self.next_help.take() {
                return self.help(help);
            }
            match self.state {
                State::Fetch => match self.shared.fetch(self.index) {
                    Fetched::Job(job) => {
                        self.job = Some(job);
                        self.state = State::Turn;
                        moved = true;
                    }
                    Fetched::Wait { read } => return wait(moved || read),
                    Fetched::End => return self.end(),
                },
                State::Turn => {
                    let Some(job) = &self.job else { return self.end() };
                    if self.shared.fixed.lanes > 1 && !self.shared.lock().order.ready(job.needs) {
                        return wait(moved);
                    }
                    let think_ns = job.think_ns;
                    self.state = State::Ready;
                    self.begin();
                    if self.shared.fixed.pace == Pace::Recorded && think_ns > 0 {
                        return Do::PauseNs(think_ns);
                    }
                }
                State::Ready => match self.make_ready() {
                    Ok(None) => {
                        if let Some(look) = self.look() {
                            return self.help(look);
                        }
                        self.state = State::Calling;
                        return Do::Call;
                    }
                    Ok(Some(help)) => return self.help(help),
                    Err(why) => {
                        self.leave_out(why);
                        moved = true;
                    }
                },
                // A caller that gives no outcome where one is due has no more for us.
                State::Helping(_) | State::Calling | State::Ended => return self.end(),
            }
        }
    }

    fn help(&mut self, help: Help) -> Do {
        // Closing may happen in any state, and returns to it.
        if !matches!(help, Help::Close(_)) {
            self.state = State::Helping(help);
        }
        Do::Help(help)
    }

    fn end(&mut self) -> Do {
        self.state = State::Ended;
        if let Some(tally) = self.tally.take() {
            let observed = self.observer.take().map(Observer::end).transpose();
            let observed = observed.unwrap_or_else(|source| {
                self.shared.stop(ReplayError::Io { doing: "storing what was seen of the calls", source });
                None
            });
            self.shared.hand_in(tally, observed);
        }
        Do::Done
    }

    /// Splits the paths of the call in hand and forgets directories that it is about to move or remove.
    fn begin(&mut self) {
        let Some(job) = &self.job else { return };
        let (e, paths) = (job.event(), &job.batch.paths);
        self.parts.fd = None;
        self.parts.fd2 = None;
        self.parts.dir = None;
        self.parts.dir2 = None;
        (self.looked, self.found) = (false, None);
        self.parts.sets_directory = self.shared.fixed.modes_of_directories.contains(&e.head.seq);
        let text = |id: Option<trace::PathId>| id.map_or(&b""[..], |id| paths.get(id));
        // Calls on attributes and statfs are made on the path in either form: their cost is not the walk's.
        if e.call.opened().is_none() {
            split(text(e.path()), e.caller_dir().map(|d| paths.get(d)), &mut self.parts.path);
        }
        match e.op() {
            Op::Rename | Op::Link => {
                split(text(e.path2()), e.caller_dir2().map(|d| paths.get(d)), &mut self.parts.path2);
            }
            Op::Symlink => {
                self.parts.path2.dir = None;
                self.parts.path2.path.clear();
                self.parts.path2.path.extend_from_slice(text(e.path2()));
            }
            _ => {}
        }
        if e.head.errno.is_none() && matches!(e.op(), Op::Rename | Op::Rmdir | Op::Mkdir) {
            let directories = &mut self.shared.lock().directories;
            for path in [e.path(), e.path2()].into_iter().flatten() {
                directories.invalidate(paths.get(path), &mut self.to_close);
            }
        }
    }

    /// Finds descriptors; answers the call of our own that must come first, if any.
    fn make_ready(&mut self) -> Result<Option<Help>, Skip> {
        let Some(job) = &self.job else { return Err(Skip::Incomplete) };
        let e = job.event();
        if self.shared.fixed.off_path.contains(&e.head.seq) {
            return Err(Skip::NotModelled);
        }
        let links_open_file = links_open_file(e);
        if e.call.opened().is_some() || links_open_file && self.parts.fd.is_none() {
            for second in [false, true] {
                let Some(ofd) = end(e, second) else { continue };
                let slot = self.shared.lock().descriptors.get(&ofd).copied();
                match slot {
                    Some(Slot::Open { fd, .. }) if second => self.parts.fd2 = Some(fd),
                    Some(Slot::Open { fd, writes }) => {
                        self.parts.fd = Some(fd);
                        if e.op() == Op::Fcntl {
                            self.locked = !self.locked;
                            self.parts.lock = match (self.locked, writes) {
                                (false, _) => Lock::Unlock,
                                (true, true) => Lock::Exclusive,
                                (true, false) => Lock::Shared,
                            };
                        }
                    }
                    Some(Slot::Lost) => return Err(Skip::NoDescriptor),
                    // Nothing is gained by opening what is then closed.
                    None if e.op() == Op::Close => return Err(Skip::NoDescriptor),
                    None => return Ok(Some(self.open_inherited(second)?)),
                }
            }
            if !links_open_file {
                return Ok(None);
            }
        }
        let job = self.job.as_ref().ok_or(Skip::Incomplete)?;
        let two = matches!(job.event().op(), Op::Rename | Op::Link);
        for second in [false, true].into_iter().take(1 + usize::from(two)).skip(usize::from(links_open_file)) {
            if self.directory(second).is_some() {
                continue;
            }
            let split = if second { &self.parts.path2 } else { &self.parts.path };
            let found = match &split.dir {
                None => Some(self.shared.fixed.root),
                Some(path) => {
                    let found = self.shared.lock().directories.acquire(path);
                    if found.is_none() {
                        self.walk = pieces(path).map(<[u8]>::to_vec).collect();
                        self.walk_from = self.shared.fixed.root;
                    }
                    self.held.extend(found);
                    found
                }
            };
            match found {
                Some(fd) => self.set_directory(second, fd),
                None => return Ok(Some(Help::Walk { second })),
            }
        }
        Ok(None)
    }

    /// The look at the cache that is due before the call in hand, once: at the range that it reads or writes, or at the
    /// whole file where what is dirty of it decides.
    fn look(&mut self) -> Option<Help> {
        self.observer.as_ref()?;
        if std::mem::replace(&mut self.looked, true) {
            return None;
        }
        let (e, fd) = (self.job.as_ref()?.event(), self.parts.fd?);
        match e.op() {
            Op::Read | Op::Write | Op::Copy => {
                let len_bytes = u64::try_from(e.head.ret).ok().filter(|&len| len > 0)?;
                Some(Help::Look { fd, offset: e.offset()?, len_bytes })
            }
            Op::Fsync | Op::Fdatasync | Op::SyncRange | Op::Ftruncate | Op::Close => {
                Some(Help::Look { fd, offset: 0, len_bytes: 0 })
            }
            _ => None,
        }
    }

    fn directory(&self, second: bool) -> Option<Fd> {
        if second { self.parts.dir2 } else { self.parts.dir }
    }

    fn set_directory(&mut self, second: bool, fd: Fd) {
        *(if second { &mut self.parts.dir2 } else { &mut self.parts.dir }) = Some(fd);
    }

    fn open_inherited(&mut self, second: bool) -> Result<Help, Skip> {
        let job = self.job.as_ref().ok_or(Skip::Incomplete)?;
        let path = if second { job.event().path2() } else { job.event().path() };
        let path = job.batch.paths.get(path.ok_or(Skip::Incomplete)?);
        self.walk = VecDeque::from([path.to_vec()]);
        Ok(Help::Open { second, attempt: 0 })
    }

    /// A call of our own has returned.
    fn helped(&mut self, help: Help, outcome: &Outcome) {
        self.state = State::Ready;
        match help {
            // Its state was kept.
            Help::Close(_) => {}
            Help::Walk { second } => self.walked(second, outcome),
            Help::Open { second, attempt } => match outcome.fd() {
                Ok(fd) => self.inherited(second, fd, attempt == 0),
                Err(_) if usize::from(attempt) + 1 < ATTEMPTS.len() => {
                    self.next_help = Some(Help::Open { second, attempt: attempt + 1 });
                }
                Err(_) => {
                    if let Some(ofd) = self.ofd(second) {
                        self.shared.lock().descriptors.insert(ofd, Slot::Lost);
                    }
                }
            },
            Help::Place { .. } => {}
            Help::Look { .. } => self.found = outcome.residency().ok(),
            Help::StandInDirectory => match outcome.fd() {
                Ok(dir) => self.next_help = Some(Help::StandIn { dir }),
                Err(_) => self.made_unnamed(outcome),
            },
            Help::StandIn { dir } => {
                match self.ofd(false) {
                    Some(ofd) if outcome.result.is_ok() => {
                        self.shared.lock().stand_ins.insert(ofd, dir);
                    }
                    _ => self.to_close.push(dir),
                }
                self.made_unnamed(outcome);
            }
            Help::Unname { dir, .. } => {
                self.to_close.push(dir);
                self.state = State::Fetch;
            }
        }
    }

    /// The open of a file without a name has led to a descriptor or not.
    fn made_unnamed(&mut self, outcome: &Outcome) {
        if let Some(e) = self.job.as_ref().map(|job| *job.event()) {
            self.descriptors_after(&e, outcome);
        }
        self.finish_job();
    }

    /// Whether a file is to be made without a name, and the target makes none such.
    fn needs_stand_in(e: &Event, outcome: &Outcome) -> bool {
        let asked = e.op() == Op::Open && e.head.errno.is_none() && e.head.flags & flag::TMPFILE != 0;
        // Kernels and file systems that do not know the flag see a directory opened for writing.
        asked && matches!(outcome.result, Err(Errno::EOPNOTSUPP | Errno::EISDIR))
    }

    /// The name that stands in for none while a description is open. It is taken away as soon as the file has another.
    fn name_stand_in(&mut self, ofd: OfdId) {
        self.stand_in = format!(".fsage-unnamed-{}", ofd.0).into_bytes();
    }

    fn ofd(&self, second: bool) -> Option<OfdId> {
        end(self.job.as_ref()?.event(), second)
    }

    fn inherited(&mut self, second: bool, fd: Fd, writes: bool) {
        let (Some(ofd), Some(job)) = (self.ofd(second), &self.job) else {
            self.to_close.push(fd);
            return;
        };
        let mut inner = self.shared.lock();
        if inner.descriptors.contains_key(&ofd) {
            drop(inner);
            self.to_close.push(fd);
            return;
        }
        inner.descriptors.insert(ofd, Slot::Open { fd, writes });
        drop(inner);
        let offset = if second { job.event().offset2() } else { job.event().offset() };
        if let Some(offset) = offset.filter(|&o| o > 0 && !gives_offset(job.event(), second)) {
            self.next_help = Some(Help::Place { fd, offset });
        }
    }

    fn walked(&mut self, second: bool, outcome: &Outcome) {
        if self.walk_from != self.shared.fixed.root {
            self.to_close.push(self.walk_from);
        }
        self.walk.pop_front();
        match outcome.fd() {
            Ok(fd) if self.walk.is_empty() => {
                let split = if second { &self.parts.path2 } else { &self.parts.path };
                let path = split.dir.as_deref().unwrap_or(b"/");
                let (fd, close) = self.shared.lock().directories.insert(path, fd);
                self.to_close.extend(close);
                self.held.push(fd);
                self.set_directory(second, fd);
            }
            Ok(fd) => {
                self.walk_from = fd;
                self.next_help = Some(Help::Walk { second });
            }
            Err(errno) => {
                // The walk cannot begin. If the trace's call failed for that reason, this is no difference.
                let same = self.job.as_ref().is_some_and(|job| job.event().head.errno == Some(errno));
                if !same {
                    self.differs(Mismatch::Errno { expected: 0, got: errno.0 });
                }
                self.leave_out(Skip::NoDescriptor);
            }
        }
    }

    fn differs(&mut self, mismatch: Mismatch) {
        let (Some(job), Some(tally)) = (&self.job, &mut self.tally) else { return };
        let path = job.event().path().map_or(&b""[..], |p| job.batch.paths.get(p));
        tally.differs(job.event().head.seq, job.event().op(), path, mismatch);
    }

    /// The call in hand is not made after all.
    fn leave_out(&mut self, why: Skip) {
        if let Some(tally) = &mut self.tally {
            tally.skip(why);
        }
        let Some(job) = &self.job else { return };
        let e = *job.event();
        let mut inner = self.shared.lock();
        if let (Op::Open, Some(ofd)) = (e.op(), e.ofd()) {
            inner.descriptors.insert(ofd, Slot::Lost);
        }
        if let (Op::Close, Some(ofd)) = (e.op(), e.ofd()) {
            inner.descriptors.remove(&ofd);
        }
        drop(inner);
        self.finish_job();
    }

    /// The traced call has returned.
    fn take_in(&mut self, outcome: &Outcome) {
        self.shared.leave();
        let Some(job) = &self.job else { return };
        let e = *job.event();
        let path = e.path().map_or(&b""[..], |p| job.batch.paths.get(p));
        let mismatch = compare(&e, outcome);
        if let (Some(Mismatch::Errno { expected: 0, got }), false) = (mismatch, self.shared.stopping())
            && is_targets_fault(e.op(), Errno(got))
        {
            self.shared.stop(ReplayError::Target {
                seq: e.head.seq,
                op: e.op().name(),
                path: trace::profile::escape(path).into_owned(),
                errno: Errno(got),
                calls: self.shared.calls(),
            });
        }
        self.shared.count_call();
        if let Some(tally) = &mut self.tally {
            if e.op() == Op::Close && e.head.flags & flag::IMPLIED != 0 {
                // The process did not make this call: it exited.
                tally.skip(Skip::Bookkeeping);
                self.descriptors_after(&e, outcome);
                return self.finish_job();
            }
            tally.timed(e.head.seq, e.op(), path, outcome.dur_ns, outcome.result.is_err());
            if let Some(mismatch) = mismatch {
                tally.differs(e.head.seq, e.op(), path, mismatch);
            }
        }
        if let Some(observer) = &mut self.observer {
            observer.see(&Observation {
                seq: e.head.seq,
                op: e.op(),
                latency_ns: outcome.dur_ns,
                in_flight: self.in_flight,
                unlike: mismatch.is_some(),
                found: self.found,
            });
        }
        if let (true, Some(ofd)) = (Self::needs_stand_in(&e, outcome), e.ofd()) {
            self.name_stand_in(ofd);
            self.next_help = Some(Help::StandInDirectory);
            return;
        }
        self.descriptors_after(&e, outcome);
        self.finish_job();
    }

    fn descriptors_after(&mut self, e: &Event, outcome: &Outcome) {
        let mut inner = self.shared.lock();
        match (e.op(), outcome.result) {
            (Op::Open, Ok(Reply::Fd(fd))) => match e.ofd().filter(|_| e.head.errno.is_none()) {
                Some(ofd) => {
                    let writes = e.head.flags & flag::WRITE != 0;
                    inner.descriptors.insert(ofd, Slot::Open { fd, writes });
                }
                None => self.to_close.push(fd),
            },
            (Op::Open, _) => {
                if let Some(ofd) = e.ofd() {
                    inner.descriptors.insert(ofd, Slot::Lost);
                }
            }
            (Op::Close, _) => {
                if let Some(ofd) = e.ofd() {
                    inner.descriptors.remove(&ofd);
                }
            }
            _ => {}
        }
        let fixed = &self.shared.fixed;
        // A name that stands in for none is there until the file has another, or nobody can give it one.
        let needless = e.ofd().filter(|ofd| match e.op() {
            Op::Link => outcome.result.is_ok(),
            Op::Open => !fixed.named_later.contains(ofd),
            op => op == Op::Close || fixed.last_use.get(ofd) == Some(&e.head.seq),
        });
        let unnamed = needless.and_then(|ofd| Some((ofd, inner.stand_ins.remove(&ofd)?)));
        // Descriptions that their process left open are closed after their last use.
        for ofd in [e.ofd(), e.ofd2()].into_iter().flatten() {
            if fixed.last_use.get(&ofd) == Some(&e.head.seq)
                && let Some(Slot::Open { fd, .. }) = inner.descriptors.remove(&ofd)
            {
                self.to_close.push(fd);
            }
        }
        drop(inner);
        if let Some((ofd, dir)) = unnamed {
            self.name_stand_in(ofd);
            self.next_help = Some(Help::Unname { dir, ofd });
        }
    }

    fn finish_job(&mut self) {
        if let Some(job) = self.job.take() {
            let mut inner = self.shared.lock();
            if self.shared.fixed.lanes > 1 {
                inner.order.complete(job.event().head.seq);
            }
            for fd in self.held.drain(..) {
                self.to_close.extend(inner.directories.release(fd));
            }
        }
        self.state = State::Fetch;
    }

    fn translates(&self) -> bool {
        self.job.as_ref().is_some_and(|job| translate::call(job.event(), &self.parts).is_some())
    }

    fn help_call(&self, help: Help) -> Call<'_> {
        let path = self.walk.front().map_or(&b"."[..], Vec::as_slice);
        match help {
            Help::Close(fd) => Call::Close { fd },
            Help::Walk { .. } => {
                let flags = OpenFlags { path_only: true, directory: true, ..OpenFlags::default() };
                Call::Open { at: relative(self.walk_from, path), flags, mode: Mode(0) }
            }
            Help::Open { attempt, .. } => {
                let flags = ATTEMPTS.get(usize::from(attempt)).copied().unwrap_or(OpenFlags::READ);
                Call::Open { at: relative(self.shared.fixed.root, path), flags, mode: Mode(0) }
            }
            Help::Place { fd, offset } => {
                Call::Seek { fd, offset: i64::try_from(offset).unwrap_or(i64::MAX), whence: Whence::Set }
            }
            Help::StandInDirectory => {
                let flags = OpenFlags { path_only: true, directory: true, ..OpenFlags::default() };
                Call::Open { at: translate::at(self.parts.dir, &self.parts.path), flags, mode: Mode(0) }
            }
            Help::StandIn { dir } => {
                let asked = self.job.as_ref().map_or(0, |job| job.event().head.flags);
                let asked = translate::open_flags(asked);
                let flags = OpenFlags { create: true, exclusive: true, tmpfile: false, directory: false, ..asked };
                let mode = self.job.as_ref().and_then(|job| job.event().mode()).unwrap_or(0o644);
                Call::Open { at: relative(dir, &self.stand_in), flags, mode: Mode(mode & self.parts.modes | 0o600) }
            }
            Help::Look { fd, offset, len_bytes } => Call::Residency { fd, offset, len_bytes },
            Help::Unname { dir, .. } => Call::Unlink { at: relative(dir, &self.stand_in) },
        }
    }
}

impl Process for Lane<'_, '_> {
    fn next(&mut self, last: Option<&Outcome>) -> Step<'_> {
        let mut last = last;
        let what = loop {
            let what = self.step(last.take());
            if what == Do::Call && !self.translates() {
                self.leave_out(Skip::Incomplete);
                continue;
            }
            if what == Do::Call {
                self.in_flight = self.shared.enter();
            }
            break what;
        };
        match what {
            Do::Help(help) => Step::Call(self.help_call(help)),
            Do::PauseNs(ns) => Step::PauseNs(ns),
            Do::Blocked => Step::Blocked,
            Do::Done => Step::Done,
            Do::Call => match self.job.as_ref().and_then(|job| translate::call(job.event(), &self.parts)) {
                Some(call) => Step::Call(call),
                None => Step::Blocked,
            },
        }
    }
}

/// The first or second description of a call.
fn end(e: &Event, second: bool) -> Option<OfdId> {
    let (first_end, second_end) = if e.op() == Op::Copy { copy_ends(e) } else { (e.ofd(), e.ofd2()) };
    if second { second_end } else { first_end }
}

/// Errors that mean the target is unfit, not that the workload went differently.
fn is_targets_fault(op: Op, errno: Errno) -> bool {
    // What has no pages to map (a directory, say) is no device that went away.
    if op == Op::Mmap && errno == Errno::ENODEV {
        return false;
    }
    matches!(
        errno,
        Errno::ENOSPC
            | Errno::EDQUOT
            | Errno::EROFS
            | Errno::EIO
            | Errno::ENODEV
            | Errno::ESTALE
            | Errno::EUCLEAN
            | Errno::EMFILE
            | Errno::ENFILE
    )
}
