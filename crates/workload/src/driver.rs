//! Calls as benchmarks make them: whole files in as few calls as possible, time summed, errors with their path.

use crate::WorkloadError;
use crate::cache_note::CacheNote;
use crate::phase::Phase;
use crate::sample::{Sample, TimedBy};
use posix::{At, CacheState, Call, Errno, Fd, FileSystem, Mode, OpenFlags, Reply, Stat, interrupt};
use std::path::Path;

/// Permissions of every file made.
const FILE_MODE: Mode = Mode(0o644);
/// Permissions of every directory made.
const DIR_MODE: Mode = Mode(0o755);

/// A file system, and the clock of the phase under way.
pub struct Driver<'a> {
    pub(crate) fs: &'a mut dyn FileSystem,
    /// A file system on another disk, for a benchmark that keeps a log there.
    pub(crate) log: Option<&'a mut dyn FileSystem>,
    began_ns: u64,
    calls_ns: u64,
    calls: u64,
    completed: u64,
    bytes: u64,
    files: u64,
    caches: CacheNote,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(fs: &'a mut dyn FileSystem) -> Driver<'a> {
        let began_ns = fs.now_ns();
        let caches = CacheNote::cold();
        Driver { fs, log: None, began_ns, calls_ns: 0, calls: 0, completed: 0, bytes: 0, files: 0, caches }
    }

    /// Writes back, empties the caches, and starts the clock of a phase at zero.
    pub(crate) fn begin_cold(&mut self) -> Result<(), WorkloadError> {
        poll()?;
        let dropped = self.fs.drop_caches_explained().map_err(|error| match error.kind() {
            std::io::ErrorKind::Interrupted => WorkloadError::Interrupted,
            _ => WorkloadError::Caches(error),
        })?;
        self.caches = CacheNote { data: dropped.data, names: dropped.names, why: dropped.why };
        self.begin();
        Ok(())
    }

    /// Starts the clock of a phase at zero with caches as the phase before has left them: part of the benchmark, and no
    /// shortcoming of the measurement.
    pub(crate) fn begin_warm(&mut self) -> Result<(), WorkloadError> {
        poll()?;
        self.caches = CacheNote { data: CacheState::Warm, names: CacheState::Warm, why: String::new() };
        self.begin();
        Ok(())
    }

    fn begin(&mut self) {
        (self.calls_ns, self.calls, self.completed, self.bytes, self.files) = (0, 0, 0, 0, 0);
        self.began_ns = self.fs.now_ns();
    }

    /// Ends a phase that only reads, or whose writing back is not waited for.
    pub(crate) fn end(&mut self, phase: Phase) -> Sample {
        Sample {
            phase,
            unit: phase.unit(),
            calls_ns: self.calls_ns,
            elapsed_ns: self.fs.now_ns().saturating_sub(self.began_ns),
            timed_by: TimedBy::Calls,
            sync_ns: None,
            calls: self.calls,
            completed: self.completed,
            bytes: self.bytes,
            files: self.files,
            caches: self.caches.clone(),
            counts: Vec::new(),
        }
    }

    /// Ends a phase that writes: what it has written is put on the device, and that is timed apart.
    pub(crate) fn end_synced(&mut self, phase: Phase) -> Result<Sample, WorkloadError> {
        let ended = self.end(phase);
        let outcome = self.fs.call(&Call::SyncFs);
        outcome.result.map_err(|errno| WorkloadError::call("writing back (syncfs)", Path::new("."), errno))?;
        Ok(Sample { sync_ns: Some(outcome.dur_ns), ..ended })
    }

    /// Makes a call that belongs to the phase; its time counts whether it fails or not.
    pub(crate) fn timed(&mut self, call: &Call<'_>) -> Result<Reply, Errno> {
        let outcome = self.fs.call(call);
        self.spend(1, outcome.dur_ns);
        outcome.result
    }

    /// Makes a call on the log's file system, which counts like the others. Where that has a clock of its own, time
    /// passes on this one as well.
    pub(crate) fn on_log(&mut self, call: &Call<'_>) -> Result<Reply, Errno> {
        let Some(log) = &mut self.log else { return Err(Errno::EBADF) };
        let before_ns = self.fs.now_ns();
        let outcome = log.call(call);
        let passed_ns = self.fs.now_ns().saturating_sub(before_ns);
        if passed_ns < outcome.dur_ns {
            self.fs.pause_ns(outcome.dur_ns - passed_ns);
        }
        self.spend(1, outcome.dur_ns);
        outcome.result
    }

    /// The program works for so long between calls, as part of the phase.
    pub(crate) fn compute(&mut self, ns: u64) {
        if ns > 0 {
            let before_ns = self.fs.now_ns();
            self.fs.pause_ns(ns);
            self.spend(0, self.fs.now_ns().saturating_sub(before_ns));
        }
    }

    /// Time in the phase's calls so far, nanoseconds.
    pub(crate) fn spent_ns(&self) -> u64 {
        self.calls_ns
    }

    /// Counts calls that the phase has made elsewhere, with their time.
    pub(crate) fn spend(&mut self, calls: u64, ns: u64) {
        self.calls = self.calls.saturating_add(calls);
        self.calls_ns = self.calls_ns.saturating_add(ns);
    }

    /// Counts transactions or scripts that are done.
    pub(crate) fn complete(&mut self, count: u64) {
        self.completed = self.completed.saturating_add(count);
    }

    /// Counts files (or names) that the phase has been through, with their data.
    pub(crate) fn count(&mut self, files: u64, bytes: u64) {
        self.files += files;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Opens a file, as part of the phase.
    pub(crate) fn open(&mut self, doing: &'static str, path: &Path, flags: OpenFlags) -> Result<Fd, WorkloadError> {
        poll()?;
        let failed = |errno| WorkloadError::call(doing, path, errno);
        match self.timed(&Call::Open { at: path.into(), flags, mode: FILE_MODE }).map_err(failed)? {
            Reply::Fd(fd) => Ok(fd),
            _ => Err(failed(Errno::EINVAL)),
        }
    }

    /// Makes a file that must not be there and writes it whole.
    pub(crate) fn create(&mut self, path: &Path, size_bytes: u64, piece_bytes: u64) -> Result<(), WorkloadError> {
        const DOING: &str = "creating a file";
        let fd = self.open(DOING, path, OpenFlags::CREATE_NEW)?;
        self.move_all(DOING, path, fd, size_bytes, piece_bytes, false)
    }

    /// Writes a file again from its start to its end, without truncating it.
    pub(crate) fn overwrite(&mut self, path: &Path, size_bytes: u64, piece_bytes: u64) -> Result<(), WorkloadError> {
        const DOING: &str = "overwriting a file";
        let fd = self.open(DOING, path, OpenFlags { nofollow: true, ..OpenFlags::WRITE })?;
        self.move_all(DOING, path, fd, size_bytes, piece_bytes, false)
    }

    /// Reads a file of known size whole.
    pub(crate) fn read(&mut self, path: &Path, size_bytes: u64, piece_bytes: u64) -> Result<(), WorkloadError> {
        self.read_as(path, size_bytes, piece_bytes, OpenFlags::READ)
    }

    /// As [`read`](Driver::read), of a file that is not ours: its access time stays as it is, where we may say so.
    pub(crate) fn read_foreign(
        &mut self,
        path: &Path,
        size_bytes: u64,
        piece_bytes: u64,
        noatime: bool,
    ) -> Result<(), WorkloadError> {
        self.read_as(path, size_bytes, piece_bytes, OpenFlags { nofollow: true, noatime, ..OpenFlags::READ })
    }

    fn read_as(&mut self, path: &Path, size_bytes: u64, piece: u64, flags: OpenFlags) -> Result<(), WorkloadError> {
        const DOING: &str = "reading a file";
        let fd = self.open(DOING, path, flags)?;
        self.move_all(DOING, path, fd, size_bytes, piece, true)
    }

    /// Reads or writes a whole file in pieces, and closes it whatever happened.
    fn move_all(
        &mut self,
        doing: &'static str,
        path: &Path,
        fd: Fd,
        size_bytes: u64,
        piece_bytes: u64,
        reading: bool,
    ) -> Result<(), WorkloadError> {
        let mut done = 0;
        let mut moved = Ok(());
        while done < size_bytes {
            let len_bytes = piece_bytes.max(1).min(size_bytes - done);
            let call = if reading {
                Call::Read { fd, offset: None, len_bytes }
            } else {
                Call::Write { fd, offset: None, len_bytes, data: None }
            };
            moved = match self.timed(&call) {
                Ok(Reply::Count(n)) if n > 0 => {
                    done += n;
                    Ok(())
                }
                Ok(_) => {
                    let path = path.display().to_string();
                    Err(WorkloadError::Short { doing, path, wanted_bytes: size_bytes, got_bytes: done })
                }
                Err(errno) => Err(WorkloadError::call(doing, path, errno)),
            };
            if moved.is_err() {
                break;
            }
        }
        let closed = self.timed(&Call::Close { fd });
        moved?;
        closed.map_err(|errno| WorkloadError::call(doing, path, errno))?;
        self.count(1, size_bytes);
        Ok(())
    }

    /// Reads or writes a piece of a file at an offset, whole.
    pub(crate) fn transfer_at(
        &mut self,
        doing: &'static str,
        path: &Path,
        fd: Fd,
        offset: u64,
        len_bytes: u64,
        writing: bool,
    ) -> Result<(), WorkloadError> {
        let offset = Some(offset);
        let call = match writing {
            true => Call::Write { fd, offset, len_bytes, data: None },
            false => Call::Read { fd, offset, len_bytes },
        };
        match self.timed(&call) {
            Ok(Reply::Count(n)) if n == len_bytes => Ok(()),
            Ok(reply) => {
                let got_bytes = if let Reply::Count(n) = reply { n } else { 0 };
                let path = path.display().to_string();
                Err(WorkloadError::Short { doing, path, wanted_bytes: len_bytes, got_bytes })
            }
            Err(errno) => Err(WorkloadError::call(doing, path, errno)),
        }
    }

    /// Closes a file, as part of the phase.
    pub(crate) fn close(&mut self, doing: &'static str, path: &Path, fd: Fd) -> Result<(), WorkloadError> {
        self.timed(&Call::Close { fd }).map_err(|errno| WorkloadError::call(doing, path, errno)).map(|_| ())
    }

    /// Removes a file.
    pub(crate) fn unlink(&mut self, path: &Path, size_bytes: u64) -> Result<(), WorkloadError> {
        poll()?;
        let removed = self.timed(&Call::Unlink { at: path.into() });
        removed.map_err(|errno| WorkloadError::call("removing a file", path, errno))?;
        self.count(1, size_bytes);
        Ok(())
    }

    /// Reads a file of known size whole, which is no file of the phase's count.
    pub(crate) fn read_uncounted(&mut self, path: &Path, size_bytes: u64, piece: u64) -> Result<(), WorkloadError> {
        let counted = (self.files, self.bytes);
        let read = self.read(path, size_bytes, piece);
        (self.files, self.bytes) = counted;
        read
    }

    /// Removes a file which is none of the phase's count.
    pub(crate) fn unlink_uncounted(&mut self, path: &Path) -> Result<(), WorkloadError> {
        let counted = (self.files, self.bytes);
        let removed = self.unlink(path, 0);
        (self.files, self.bytes) = counted;
        removed
    }

    /// Writes a little at the end of a file, which is no file of the phase's count.
    pub(crate) fn append(&mut self, path: &Path, len_bytes: u64) -> Result<(), WorkloadError> {
        const DOING: &str = "appending to a file";
        let fd = self.open(DOING, path, OpenFlags { append: true, ..OpenFlags::WRITE })?;
        let counted = (self.files, self.bytes);
        let appended = self.move_all(DOING, path, fd, len_bytes, len_bytes, false);
        (self.files, self.bytes) = counted;
        appended
    }

    /// Writes a file under another name and puts it in the place of an old one; no file of the phase's count.
    pub(crate) fn replace(&mut self, old: &Path, new: &Path, size_bytes: u64, piece: u64) -> Result<(), WorkloadError> {
        let counted = (self.files, self.bytes);
        let created = self.create(new, size_bytes, piece);
        (self.files, self.bytes) = counted;
        created?;
        let (from, to) = (new.into(), old.into());
        let renamed = self.timed(&Call::Rename { from, to, noreplace: false, exchange: false });
        renamed.map_err(|errno| WorkloadError::call("replacing a file", old, errno)).map(|_| ())
    }

    /// Makes a directory, outside any phase.
    pub(crate) fn mkdir(&mut self, path: &Path) -> Result<(), WorkloadError> {
        poll()?;
        match self.fs.call(&Call::Mkdir { at: path.into(), mode: DIR_MODE }).result {
            Ok(_) => Ok(()),
            Err(Errno::EEXIST) => Err(WorkloadError::LeftOver { path: path.display().to_string() }),
            Err(errno) => Err(WorkloadError::call("making a directory", path, errno)),
        }
    }

    /// Removes files and directories that may or may not be there, outside any phase and even after a signal. Returns
    /// the first failure, but tries them all.
    pub(crate) fn remove_all<'p>(
        &mut self,
        files: impl Iterator<Item = &'p Path>,
        directories: impl Iterator<Item = &'p Path>,
    ) -> Result<(), WorkloadError> {
        let mut first = Ok(());
        let mut note = |path: &Path, result: Result<Reply, Errno>| match result {
            Ok(_) | Err(Errno::ENOENT) => {}
            Err(errno) if first.is_ok() => first = Err(WorkloadError::call("cleaning up", path, errno)),
            Err(_) => {}
        };
        for path in files {
            note(path, self.fs.call(&Call::Unlink { at: path.into() }).result);
        }
        for path in directories {
            note(path, self.fs.call(&Call::Rmdir { at: path.into() }).result);
        }
        first
    }

    /// Attributes, outside any phase.
    pub(crate) fn stat(&mut self, path: &Path) -> Result<Stat, Errno> {
        self.fs.call(&Call::Stat { at: At::from(path), follow: false }).stat()
    }
}

/// Ends the work once a signal has asked for it.
pub(crate) fn poll() -> Result<(), WorkloadError> {
    if interrupt::requested() { Err(WorkloadError::Interrupted) } else { Ok(()) }
}
