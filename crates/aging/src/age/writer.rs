//! One writer: a process that performs its share of a window, call by call.

use super::options::DataMode;
use super::window::{Action, Job, Window};
use crate::NodeId;
use posix::{At, Call, Errno, Fallocate, Fd, Mode, OpenFlags, Outcome, Process, Reply, Step};
use rustc_hash::FxHashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const FILE_MODE: Mode = Mode(0o644);
const DIRECTORY_MODE: Mode = Mode(0o755);
/// What a symbolic link's target can be at most, without the terminating NUL (`PATH_MAX`).
const SYMLINK_BYTES_MAX: usize = 4095;
/// Targets of symbolic links lead nowhere.
static SYMLINK_TARGET: [u8; SYMLINK_BYTES_MAX] = [b'x'; SYMLINK_BYTES_MAX];

/// A job that was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) job: u32,
    /// `None`: not tried, as an earlier job on the same node had failed.
    pub(super) errno: Option<Errno>,
}

/// What a writer did.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) calls: u64,
    pub(super) written_bytes: u64,
    /// Jobs left out because the file system has no such operation.
    pub(super) unsupported: u64,
    pub(super) failures: Vec<Failure>,
}

/// Where a writer is within a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before the job; no call is out.
    Start,
    /// The descriptor of another file is being closed.
    Closing,
    Opening,
    /// Bytes done so far.
    Body(u64),
    /// A tolerant append sets the length.
    Trimming,
    /// The one call of a job that needs no descriptor.
    Single,
    /// Taking back what a job did before it failed.
    Undoing(Errno),
    /// The partly written file is closed, then removed.
    UndoClosing(Errno),
    /// The last descriptor is being closed.
    Ending,
}

/// What comes after an outcome.
enum Next {
    /// The job is done.
    JobDone,
    /// Go on in this phase, with a call.
    Call(Phase),
}

/// Performs one writer's queue of a window.
#[derive(Debug)]
pub(super) struct Writer<'w> {
    window: &'w Window,
    number: usize,
    /// Place in the queue.
    place: usize,
    phase: Phase,
    open: Option<(NodeId, Fd)>,
    failed: FxHashSet<NodeId>,
    pub(super) report: Report,
}

impl<'w> Writer<'w> {
    pub(super) fn new(window: &'w Window, number: usize) -> Writer<'w> {
        let report = Report::default();
        Writer { window, number, place: 0, phase: Phase::Start, open: None, failed: FxHashSet::default(), report }
    }

    /// After an interruption: the job under way is begun again, and may find left-overs of itself.
    pub(super) fn restart_job(&mut self) {
        self.phase = Phase::Start;
        self.open = None;
    }

    fn job(&self) -> Option<(u32, &'w Job)> {
        let number = *self.window.queue(self.number).get(self.place)?;
        Some((number, self.window.jobs.get(number as usize)?))
    }

    fn advance(&mut self) {
        self.place += 1;
        self.phase = Phase::Start;
        self.window.reached(self.number, self.place);
    }

    fn fail(&mut self, number: u32, node: NodeId, errno: Option<Errno>) {
        let errno = errno.filter(|e| !(self.window.was_full() && is_consequence(*e)));
        self.report.failures.push(Failure { job: number, errno });
        self.failed.insert(node);
        match errno {
            Some(errno) if is_full(errno) => self.window.fill_up(),
            // The run ends here; the other writers need not go on.
            Some(_) => self.window.stop(),
            None => {}
        }
        self.advance();
    }

    /// What the outcome of the call that was out leads to.
    fn digest(&mut self, number: u32, job: &'w Job, outcome: &Outcome) -> Next {
        self.report.calls += 1;
        match self.phase {
            Phase::Start => unreachable!("no call is out before a job"),
            Phase::Ending => Next::JobDone,
            Phase::Closing => {
                // A deferred write error (NFS, quota) shows here, after the job it belongs to; the next fsync or
                // write of that file system shows it as well.
                self.open = None;
                self.begin(job)
            }
            Phase::Opening => match outcome.fd() {
                Ok(fd) => {
                    self.open = Some((job.node, fd));
                    self.body(job)
                }
                Err(Errno::ENOENT) if self.window.is_tolerant() && job.action != Action::Create => {
                    self.advance();
                    Next::JobDone
                }
                Err(errno) => self.failed_with(number, job, errno),
            },
            Phase::Body(done) => match outcome.result {
                // No progress and no error: POSIX allows it, and it must not loop for ever.
                Ok(Reply::Count(0)) => self.undo(number, job, Errno::ENOSPC),
                Ok(Reply::Count(n)) => {
                    self.report.written_bytes += n;
                    if done + n < job.len_bytes { Next::Call(Phase::Body(done + n)) } else { self.finish(job) }
                }
                Ok(_) => {
                    if matches!(job.action, Action::Create | Action::Append) {
                        self.report.written_bytes += job.len_bytes;
                    }
                    self.finish(job)
                }
                Err(Errno::EINTR | Errno::EAGAIN) => Next::Call(Phase::Body(done)),
                Err(Errno::EOPNOTSUPP) if job.action == Action::PunchHole => {
                    self.report.unsupported += 1;
                    self.finish(job)
                }
                Err(errno) => self.undo(number, job, errno),
            },
            Phase::Trimming => {
                self.advance();
                Next::JobDone
            }
            Phase::Single => match outcome.result {
                Ok(_) => {
                    self.advance();
                    Next::JobDone
                }
                Err(errno) if self.window.is_tolerant() && is_left_over(job.action, errno) => {
                    self.advance();
                    Next::JobDone
                }
                Err(errno) => self.failed_with(number, job, errno),
            },
            Phase::UndoClosing(errno) => {
                self.open = None;
                Next::Call(Phase::Undoing(errno))
            }
            Phase::Undoing(errno) => self.failed_with(number, job, errno),
        }
    }

    fn failed_with(&mut self, number: u32, job: &'w Job, errno: Errno) -> Next {
        self.fail(number, job.node, Some(errno));
        Next::JobDone
    }

    /// The first call of a job.
    fn begin(&mut self, job: &'w Job) -> Next {
        match self.open {
            // A file is closed before its name goes, so that its space goes with it.
            Some((node, _)) if node != job.node || !job.action.needs_open() => Next::Call(Phase::Closing),
            Some(_) => self.body(job),
            None if job.action.needs_open() => Next::Call(Phase::Opening),
            None => Next::Call(Phase::Single),
        }
    }

    /// The first call on the open file. Nothing is to be done for a file made empty.
    fn body(&mut self, job: &'w Job) -> Next {
        let nothing = matches!(job.action, Action::Create | Action::Append | Action::Overwrite) && job.len_bytes == 0;
        if nothing { self.finish(job) } else { Next::Call(Phase::Body(0)) }
    }

    /// After the last call on the open file.
    fn finish(&mut self, job: &'w Job) -> Next {
        if self.window.is_tolerant() && job.action == Action::Append && self.phase != Phase::Trimming {
            return Next::Call(Phase::Trimming);
        }
        self.advance();
        Next::JobDone
    }

    /// After a failed write: what it left is taken back, so that the file is as before.
    fn undo(&mut self, number: u32, job: &'w Job, errno: Errno) -> Next {
        match job.action {
            Action::Create => Next::Call(Phase::UndoClosing(errno)),
            Action::Append => Next::Call(Phase::Undoing(errno)),
            _ => self.failed_with(number, job, errno),
        }
    }

    /// The call of the present phase.
    fn call(&self, job: &'w Job) -> Call<'w> {
        let path = At::from(self.window.path(job));
        let fd = self.open.map_or(Fd(u32::MAX), |(_, fd)| fd);
        match self.phase {
            Phase::Closing | Phase::UndoClosing(_) | Phase::Ending | Phase::Start => Call::Close { fd },
            Phase::Opening => {
                let new = OpenFlags {
                    exclusive: !self.window.is_tolerant(),
                    truncate: self.window.is_tolerant(),
                    ..OpenFlags::CREATE_NEW
                };
                let flags = if job.action == Action::Create { new } else { OpenFlags::WRITE };
                Call::Open { at: path, flags, mode: FILE_MODE }
            }
            Phase::Body(done) => self.body_call(job, fd, done),
            Phase::Trimming => Call::Ftruncate { fd, len_bytes: job.offset_bytes + job.len_bytes },
            Phase::Undoing(_) if job.action == Action::Create => Call::Unlink { at: path },
            Phase::Undoing(_) => Call::Ftruncate { fd, len_bytes: job.offset_bytes },
            Phase::Single => match job.action {
                Action::Mkdir => Call::Mkdir { at: path, mode: DIRECTORY_MODE },
                Action::Rmdir => Call::Rmdir { at: path },
                Action::Symlink => Call::Symlink { target: symlink_target(job.len_bytes), at: path },
                Action::Rename => {
                    let to = At::from(self.window.to(job));
                    Call::Rename { from: path, to, noreplace: false, exchange: false }
                }
                _ => Call::Unlink { at: path },
            },
        }
    }

    fn body_call(&self, job: &'w Job, fd: Fd, done: u64) -> Call<'w> {
        let offset = job.offset_bytes + done;
        match job.action {
            Action::Truncate => Call::Ftruncate { fd, len_bytes: job.len_bytes },
            Action::Fsync => Call::Fsync { fd },
            Action::PunchHole => Call::Fallocate { fd, how: Fallocate::PunchHole, offset, len_bytes: job.len_bytes },
            Action::Create | Action::Append if self.window.data == DataMode::Fallocate => {
                Call::Fallocate { fd, how: Fallocate::Allocate, offset, len_bytes: job.len_bytes }
            }
            _ => {
                let len_bytes = (job.len_bytes - done).min(self.window.chunk_bytes);
                Call::Write { fd, offset: Some(offset), len_bytes, data: None }
            }
        }
    }
}

/// A target of a length, within what the system allows.
pub(super) fn symlink_target(len_bytes: u64) -> &'static Path {
    let len = usize::try_from(len_bytes).unwrap_or(SYMLINK_BYTES_MAX).clamp(1, SYMLINK_BYTES_MAX);
    Path::new(OsStr::from_bytes(SYMLINK_TARGET.get(..len).unwrap_or(&SYMLINK_TARGET)))
}

/// Whether an error says that there is no room.
pub(super) fn is_full(errno: Errno) -> bool {
    matches!(errno, Errno::ENOSPC | Errno::EDQUOT)
}

/// Whether an error may come of a directory that could not be made, or a name that could not be freed.
fn is_consequence(errno: Errno) -> bool {
    matches!(errno, Errno::ENOENT | Errno::EEXIST | Errno::ENOTEMPTY)
}

/// Whether an error says that a job was done before.
fn is_left_over(action: Action, errno: Errno) -> bool {
    match action {
        Action::Mkdir | Action::Symlink => errno == Errno::EEXIST,
        Action::Rmdir | Action::Unlink | Action::Rename => errno == Errno::ENOENT,
        _ => false,
    }
}

impl Process for Writer<'_> {
    fn next(&mut self, last: Option<&Outcome>) -> Step<'_> {
        let mut last = last;
        loop {
            let Some((number, job)) = self.job().filter(|_| !(self.phase == Phase::Start && self.window.is_stopping()))
            else {
                // A call that was out was the closing of the last descriptor.
                if self.phase == Phase::Ending && last.is_some() {
                    self.report.calls += 1;
                    self.open = None;
                    self.phase = Phase::Start;
                }
                let Some((_, fd)) = self.open else { return Step::Done };
                self.phase = Phase::Ending;
                return Step::Call(Call::Close { fd });
            };
            let next = match last.take() {
                Some(outcome) => self.digest(number, job, outcome),
                None if !self.window.may_start(number, job) => return Step::Blocked,
                None if self.failed.contains(&job.node) => {
                    self.fail(number, job.node, None);
                    continue;
                }
                // A file that is still to be made may belong into it: what was put off is done in order.
                None if job.action == Action::Rmdir && self.window.was_full() => {
                    self.fail(number, job.node, None);
                    continue;
                }
                None => self.begin(job),
            };
            match next {
                Next::JobDone => {}
                Next::Call(phase) => {
                    self.phase = phase;
                    return Step::Call(self.call(job));
                }
            }
        }
    }
}
