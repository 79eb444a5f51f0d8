//! One writer: a process that performs its share of a window, call by call.

use super::options::DataMode;
use super::window::{Job, Window};
use crate::{NodeId, OpKind};
use posix::{At, Call, Calls, Errno, Fallocate, Fd, Mode, OpenFlags, Outcome, Process, Reply};
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

/// How far a writer is with its queue of a window. A writer that was interrupted begins the job under way again, and
/// may find left-overs of itself.
#[derive(Debug)]
pub(super) struct Progress {
    number: usize,
    /// Place in the queue.
    place: usize,
    failed: FxHashSet<NodeId>,
    pub(super) report: Report,
}

impl Progress {
    /// That of the writer of a number.
    pub(super) fn new(number: usize) -> Progress {
        Progress { number, place: 0, failed: FxHashSet::default(), report: Report::default() }
    }

    /// The writer as a process.
    pub(super) fn go_on<'w>(&'w mut self, window: &'w Window) -> Box<dyn Process + 'w> {
        Box::new(posix::process(move |calls| Writer { window, calls, open: None, at: self }.work()))
    }
}

/// Performs one writer's queue of a window.
struct Writer<'w> {
    window: &'w Window,
    calls: Calls<'w>,
    open: Option<(NodeId, Fd)>,
    at: &'w mut Progress,
}

impl<'w> Writer<'w> {
    async fn work(mut self) {
        let window = self.window;
        while let Some(&number) = window.queue(self.at.number).get(self.at.place)
            && let Some(job) = window.jobs.get(number as usize)
            && !window.is_stopping()
        {
            if !window.may_start(number, job) {
                self.calls.blocked().await;
                continue;
            }
            // A file that is still to be made may belong into a directory: what was put off is done in order.
            let put_off = job.kind == OpKind::Rmdir && window.was_full();
            if put_off || self.at.failed.contains(&job.node) {
                self.fail(number, job, None);
            } else if let Err(errno) = self.perform(job).await {
                self.fail(number, job, Some(errno));
            }
            self.at.place += 1;
            window.reached(self.at.number, self.at.place);
        }
        self.close().await;
    }

    fn fail(&mut self, number: u32, job: &Job, errno: Option<Errno>) {
        let errno = errno.filter(|e| !(self.window.was_full() && is_consequence(*e)));
        self.at.report.failures.push(Failure { job: number, errno });
        self.at.failed.insert(job.node);
        match errno {
            Some(errno) if is_full(errno) => self.window.fill_up(),
            // The run ends here; the other writers need not go on.
            Some(_) => self.window.stop(),
            None => {}
        }
    }

    async fn call(&mut self, call: Call<'w>) -> Outcome {
        let outcome = self.calls.make(call).await;
        self.at.report.calls += 1;
        outcome
    }

    /// Closes the open file, if there is one. A deferred write error (NFS, quota) shows here, after the job it belongs
    /// to; the next fsync or write of that file system shows it as well.
    async fn close(&mut self) {
        if let Some((_, fd)) = self.open {
            self.call(Call::Close { fd }).await;
            self.open = None;
        }
    }

    async fn perform(&mut self, job: &'w Job) -> Result<(), Errno> {
        // A file is closed before its name goes, so that its space goes with it; and it is opened to be read, or to be
        // written.
        let alone = !job.needs_open() || job.kind == OpKind::Read;
        if self.open.is_some_and(|(node, _)| node != job.node || alone) {
            self.close().await;
        }
        if !job.needs_open() {
            return self.change_name(job).await;
        }
        let tolerant = self.window.is_tolerant();
        let fd = match self.open {
            Some((_, fd)) => fd,
            None => match self.open(job).await {
                Err(Errno::ENOENT) if tolerant && job.kind != OpKind::Create => return Ok(()),
                opened => opened?,
            },
        };
        if job.kind == OpKind::Read {
            let read = self.read_file(job, fd).await;
            self.close().await;
            return read;
        }
        if let Err(errno) = self.change_file(job, fd).await {
            self.undo(job, fd).await;
            return Err(errno);
        }
        if tolerant && job.kind == OpKind::Append {
            self.call(Call::Ftruncate { fd, len_bytes: job.offset_bytes + job.len_bytes }).await;
        }
        Ok(())
    }

    async fn open(&mut self, job: &'w Job) -> Result<Fd, Errno> {
        let tolerant = self.window.is_tolerant();
        let flags = match job.kind {
            OpKind::Create => OpenFlags { exclusive: !tolerant, truncate: tolerant, ..OpenFlags::CREATE_NEW },
            OpKind::Read => OpenFlags::READ,
            _ => OpenFlags::WRITE,
        };
        let fd = self.call(Call::Open { at: self.window.path(job).into(), flags, mode: FILE_MODE }).await.fd()?;
        self.open = Some((job.node, fd));
        Ok(fd)
    }

    /// A job of one call, which needs no descriptor.
    async fn change_name(&mut self, job: &'w Job) -> Result<(), Errno> {
        let at = At::from(self.window.path(job));
        let call = match job.kind {
            OpKind::Mkdir => Call::Mkdir { at, mode: DIRECTORY_MODE },
            OpKind::Rmdir => Call::Rmdir { at },
            OpKind::Symlink => Call::Symlink { target: symlink_target(job.len_bytes), at },
            OpKind::Rename => {
                let to = At::from(self.window.to(job));
                Call::Rename { from: at, to, noreplace: false, exchange: false }
            }
            _ => Call::Unlink { at },
        };
        match self.call(call).await.result {
            Err(errno) if !(self.window.is_tolerant() && is_left_over(job.kind, errno)) => Err(errno),
            _ => Ok(()),
        }
    }

    /// A job on the open file. Nothing is to be done for a file made empty.
    async fn change_file(&mut self, job: &'w Job, fd: Fd) -> Result<(), Errno> {
        let writes = matches!(job.kind, OpKind::Create | OpKind::Append | OpKind::Overwrite);
        if writes && job.len_bytes == 0 {
            return Ok(());
        }
        let mut done = 0;
        loop {
            match self.call(self.call_on_file(job, fd, done)).await.result {
                // No progress and no error: POSIX allows it, and it must not loop for ever.
                Ok(Reply::Count(0)) => return Err(Errno::ENOSPC),
                Ok(Reply::Count(n)) => {
                    self.at.report.written_bytes += n;
                    done += n;
                    if done >= job.len_bytes {
                        return Ok(());
                    }
                }
                Ok(_) => {
                    if matches!(job.kind, OpKind::Create | OpKind::Append) {
                        self.at.report.written_bytes += job.len_bytes;
                    }
                    return Ok(());
                }
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(Errno::EOPNOTSUPP) if job.kind == OpKind::PunchHole => {
                    self.at.report.unsupported += 1;
                    return Ok(());
                }
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Reads a range, or as much of it as there is.
    async fn read_file(&mut self, job: &'w Job, fd: Fd) -> Result<(), Errno> {
        let mut done = 0;
        while done < job.len_bytes {
            let len_bytes = (job.len_bytes - done).min(self.window.chunk_bytes);
            match self.call(Call::Read { fd, offset: Some(job.offset_bytes + done), len_bytes }).await.count() {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    fn call_on_file(&self, job: &Job, fd: Fd, done: u64) -> Call<'w> {
        let offset = job.offset_bytes + done;
        match job.kind {
            OpKind::Truncate => Call::Ftruncate { fd, len_bytes: job.len_bytes },
            OpKind::Fsync => Call::Fsync { fd },
            OpKind::PunchHole => Call::Fallocate { fd, how: Fallocate::PunchHole, offset, len_bytes: job.len_bytes },
            OpKind::Create | OpKind::Append if self.window.data == DataMode::Fallocate => {
                Call::Fallocate { fd, how: Fallocate::Allocate, offset, len_bytes: job.len_bytes }
            }
            _ => {
                let len_bytes = (job.len_bytes - done).min(self.window.chunk_bytes);
                Call::Write { fd, offset: Some(offset), len_bytes, data: None }
            }
        }
    }

    /// After a failed write: what it left is taken back, so that the file is as before.
    async fn undo(&mut self, job: &'w Job, fd: Fd) {
        match job.kind {
            OpKind::Create => {
                self.close().await;
                self.call(Call::Unlink { at: self.window.path(job).into() }).await;
            }
            OpKind::Append => {
                self.call(Call::Ftruncate { fd, len_bytes: job.offset_bytes }).await;
            }
            _ => {}
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
fn is_left_over(kind: OpKind, errno: Errno) -> bool {
    match kind {
        OpKind::Mkdir | OpKind::Symlink => errno == Errno::EEXIST,
        OpKind::Rmdir | OpKind::Delete | OpKind::Rename => errno == Errno::ENOENT,
        _ => false,
    }
}
