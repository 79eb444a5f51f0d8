//! What every scenario works with: calls, timed or not; names; directories; the clock and its limits.

use super::sheet::Sheet;
use super::{MeasureError, Mode};
use posix::{At, CacheState, Call, Errno, Fd, FileSystem, Mode as FileMode, OpenFlags, Outcome, Reply};
use rand_xoshiro::Xoshiro256PlusPlus;
use stats::random::{index, shuffle};
use std::collections::BTreeMap;
use std::path::Path;
use system::vector::Class;

/// Permissions of every file made.
pub(super) const FILE_MODE: FileMode = FileMode(0o644);
/// Permissions of every directory made.
pub(super) const DIR_MODE: FileMode = FileMode(0o755);
/// The largest request a preparation makes.
const CHUNK_BYTES: u64 = 1 << 20;
/// What [`Bench::disturb`] walks through: larger than the second-level caches of today's processors.
const DISTURB_BYTES: usize = 4 << 20;
/// Cache lines it touches before each timed call.
const DISTURB_LINES: usize = 8;
/// Calls from one look at the core to the next: some microseconds.
const PROBE_EVERY: u64 = 8;

/// An open directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dir {
    pub(super) fd: Fd,
}

impl Dir {
    /// A name in it, as a one-component path.
    pub(super) fn at<'a>(self, name: &'a str) -> At<'a> {
        At { dir: Some(self.fd), path: Path::new(name) }
    }
}

/// A measurement under way.
pub(super) struct Bench<'a> {
    pub(super) fs: &'a mut dyn FileSystem,
    pub(super) rng: Xoshiro256PlusPlus,
    pub(super) sheet: Sheet,
    pub(super) mode: Mode,
    /// How often caches were dropped: what was warm is no longer where this has moved.
    pub(super) drops: u64,
    /// The sync of any file commits overwritten blocks of it, and with them all that has changed.
    pub(super) any_sync_commits: bool,
    interrupted: &'a dyn Fn() -> bool,
    slice_end_ns: u64,
    next_name: u64,
    disturbance: Vec<u64>,
    disturbed: usize,
    /// Timed so far.
    calls: u64,
    /// Made so far, and each kind last; how far back the last of the kind was when the latest was made.
    made: u64,
    last: BTreeMap<&'static str, u64>,
    distance: u64,
    has_processor: bool,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        fs: &'a mut dyn FileSystem,
        rng: Xoshiro256PlusPlus,
        mode: Mode,
        interrupted: &'a dyn Fn() -> bool,
    ) -> Bench<'a> {
        let has_processor = fs.core_probe_ns().is_some();
        Bench {
            fs,
            rng,
            sheet: Sheet::default(),
            mode,
            drops: 0,
            any_sync_commits: false,
            interrupted,
            slice_end_ns: u64::MAX,
            next_name: 0,
            disturbance: vec![1; DISTURB_BYTES / 8],
            disturbed: 0,
            calls: 0,
            made: 0,
            last: BTreeMap::new(),
            distance: 0,
            has_processor,
        }
    }

    /// Whether the clock is that of a laboratory.
    pub(super) fn is_virtual(&self) -> bool {
        self.fs.is_deterministic()
    }

    /// Whether there is a processor, which finds again what the calls before have left in its caches: in virtual time
    /// there is none.
    pub(super) fn has_processor(&self) -> bool {
        self.has_processor
    }

    /// Limits what follows to this much time; loops end when [`go_on`](Bench::go_on) says so.
    pub(super) fn set_slice_ns(&mut self, ns: u64) {
        self.slice_end_ns = self.fs.now_ns().saturating_add(ns);
    }

    /// Whether there is time left in the slice.
    pub(super) fn go_on(&mut self) -> Result<bool, MeasureError> {
        self.poll()?;
        Ok(self.fs.now_ns() < self.slice_end_ns)
    }

    /// Whether this much time is left in the slice.
    pub(super) fn has_left_ns(&self, ns: u64) -> bool {
        self.fs.now_ns().saturating_add(ns) < self.slice_end_ns
    }

    /// Fails if the user has asked to stop.
    fn poll(&self) -> Result<(), MeasureError> {
        if (self.interrupted)() { Err(MeasureError::Interrupted) } else { Ok(()) }
    }

    /// A name that was never used before, as long as names are in source trees.
    pub(super) fn new_name(&mut self, kind: &str) -> String {
        self.next_name += 1;
        format!("{kind}{:07}.dat", self.next_name)
    }

    /// One of `n` things at random.
    pub(super) fn pick(&mut self, n: usize) -> usize {
        index(&mut self.rng, n)
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        shuffle(&mut self.rng, items);
    }

    /// Touches memory as a replay between two calls does, so that the kernel does not find all of its data in the
    /// processor's nearest caches. More than that makes what waits for the device dearer than replays find it
    /// (docs/validation.md).
    fn disturb(&mut self) {
        self.probe();
        let words = self.disturbance.len();
        for _ in 0..DISTURB_LINES {
            self.disturbed = (self.disturbed + 8) % words;
            if let Some(word) = self.disturbance.get_mut(self.disturbed) {
                *word = word.wrapping_mul(3);
            }
        }
        std::hint::black_box(&self.disturbance);
    }

    /// Looks from time to time how much of its core the processor has.
    fn probe(&mut self) {
        self.calls += 1;
        if self.calls.is_multiple_of(PROBE_EVERY)
            && let Some(ns) = self.fs.core_probe_ns()
        {
            self.sheet.probed(ns);
        }
    }

    /// Writes down what the call just made took.
    pub(super) fn record(&mut self, class: Class, at: u64, ns: f64) {
        if self.has_processor {
            self.sheet.record_call(class, at, ns, self.distance);
        } else {
            self.sheet.record(class, at, ns);
        }
    }

    /// Makes a call that must succeed, and writes its time down.
    pub(super) fn timed(&mut self, class: Class, at: u64, call: &Call<'_>) -> Result<Reply, MeasureError> {
        self.disturb();
        let outcome = self.make(call);
        let reply = outcome.result.map_err(|errno| MeasureError::call(call, errno))?;
        self.record(class, at, outcome.dur_ns as f64);
        Ok(reply)
    }

    /// Makes a call that a system may not offer. Where it is refused the class is given up with the error as
    /// the reason, and is not tried again.
    pub(super) fn try_timed(&mut self, class: Class, at: u64, call: &Call<'_>) -> Result<Option<Reply>, MeasureError> {
        if self.sheet.given_up(class) {
            return Ok(None);
        }
        self.disturb();
        let outcome = self.make(call);
        match outcome.result {
            Ok(reply) => {
                self.record(class, at, outcome.dur_ns as f64);
                Ok(Some(reply))
            }
            Err(errno) if is_fatal(errno) => Err(MeasureError::call(call, errno)),
            Err(errno) => {
                self.sheet.give_up(class.name().to_owned(), format!("{}: {errno}", call_name(call)));
                Ok(None)
            }
        }
    }

    /// Makes a call that must fail with `expected`, and writes its time down.
    pub(super) fn timed_failure(&mut self, class: Class, call: &Call<'_>, expected: Errno) -> Result<(), MeasureError> {
        if let Some(ns) = self.failure(class, call, expected)? {
            self.record(class, 0, ns);
        }
        Ok(())
    }

    /// What such a call took, without writing it down; `None` if the class is given up, maybe for how this one ended.
    pub(super) fn failure(
        &mut self,
        class: Class,
        call: &Call<'_>,
        expected: Errno,
    ) -> Result<Option<f64>, MeasureError> {
        if self.sheet.given_up(class) {
            return Ok(None);
        }
        self.disturb();
        let outcome = self.make(call);
        match outcome.result {
            Err(errno) if errno == expected => return Ok(Some(outcome.dur_ns as f64)),
            Err(errno) if is_fatal(errno) => return Err(MeasureError::call(call, errno)),
            Err(errno) => self.sheet.give_up(class.name().to_owned(), format!("{}: {errno}", call_name(call))),
            Ok(_) => self.sheet.give_up(class.name().to_owned(), format!("{} did not fail", call_name(call))),
        }
        Ok(None)
    }

    /// Makes a call whose time is wanted but not filed yet.
    pub(super) fn outcome(&mut self, call: &Call<'_>) -> Outcome {
        self.disturb();
        self.make(call)
    }

    /// Makes a call that belongs to no measurement.
    pub(super) fn quiet(&mut self, call: &Call<'_>) -> Result<Reply, MeasureError> {
        self.poll()?;
        self.make(call).result.map_err(|errno| MeasureError::call(call, errno))
    }

    pub(super) fn open(&mut self, at: At<'_>, flags: OpenFlags) -> Result<Fd, MeasureError> {
        self.poll()?;
        let call = Call::Open { at, flags, mode: FILE_MODE };
        self.make(&call).fd().map_err(|errno| MeasureError::call(&call, errno))
    }

    pub(super) fn close(&mut self, fd: Fd) -> Result<(), MeasureError> {
        self.quiet(&Call::Close { fd }).map(|_| ())
    }

    /// Makes a directory below the root; its parent is there.
    pub(super) fn make_dir(&mut self, path: &str) -> Result<(), MeasureError> {
        self.quiet(&Call::Mkdir { at: path.into(), mode: DIR_MODE }).map(|_| ())
    }

    /// Opens a directory as a place for paths to start in, without reading it. Close it before caches are dropped: what
    /// is open stays in memory.
    pub(super) fn open_dir(&mut self, path: &str) -> Result<Dir, MeasureError> {
        let flags = OpenFlags { path_only: true, ..OpenFlags::DIRECTORY };
        Ok(Dir { fd: self.open(path.into(), flags)? })
    }

    /// Makes a directory and opens it.
    pub(super) fn new_dir(&mut self, path: &str) -> Result<Dir, MeasureError> {
        self.make_dir(path)?;
        self.open_dir(path)
    }

    /// Makes a file of `size_bytes`, neither timed nor written back.
    pub(super) fn make_file(&mut self, at: At<'_>, size_bytes: u64) -> Result<(), MeasureError> {
        let fd = self.open(at, OpenFlags::CREATE_NEW)?;
        self.fill(fd, 0, size_bytes)?;
        self.close(fd)
    }

    /// Writes `size_bytes` from `offset` on.
    pub(super) fn fill(&mut self, fd: Fd, offset: u64, size_bytes: u64) -> Result<(), MeasureError> {
        let mut done = 0;
        while done < size_bytes {
            let len_bytes = CHUNK_BYTES.min(size_bytes - done);
            self.quiet(&Call::Write { fd, offset: Some(offset + done), len_bytes, data: None })?;
            done += len_bytes;
        }
        Ok(())
    }

    /// Reads a whole file, so that it is cached as far as it fits.
    pub(super) fn read_all(&mut self, fd: Fd, size_bytes: u64) -> Result<(), MeasureError> {
        let mut done = 0;
        while done < size_bytes {
            self.quiet(&Call::Read { fd, offset: Some(done), len_bytes: CHUNK_BYTES })?;
            done += CHUNK_BYTES;
        }
        Ok(())
    }

    pub(super) fn unlink(&mut self, at: At<'_>) -> Result<(), MeasureError> {
        self.quiet(&Call::Unlink { at }).map(|_| ())
    }

    /// Writes back everything.
    pub(super) fn sync(&mut self) -> Result<(), MeasureError> {
        self.quiet(&Call::SyncFs).map(|_| ())
    }

    /// Writes a file back and takes its data out of the cache.
    pub(super) fn evict(&mut self, fd: Fd) -> Result<CacheState, MeasureError> {
        self.fs.evict(fd).map_err(|source| MeasureError::Io { doing: "taking a file out of the cache", source })
    }

    /// Does something several times in a row: what is timed meanwhile tells what calls cost after their like.
    pub(super) fn in_a_row(
        &mut self,
        times: usize,
        each: &mut dyn FnMut(&mut Self) -> Result<(), MeasureError>,
    ) -> Result<(), MeasureError> {
        self.sheet.set_in_a_row(true);
        let done = (0..times).try_for_each(|_| each(self));
        self.sheet.set_in_a_row(false);
        done
    }

    /// Makes a call, and notes how far back the last of its kind is.
    pub(super) fn make(&mut self, call: &Call<'_>) -> Outcome {
        self.made += 1;
        let last = self.last.insert(call_name(call), self.made);
        self.distance = last.map_or(u64::MAX, |last| self.made - last);
        self.fs.call(call)
    }

    /// A size for a large file: what is wanted, or an eighth of the free space on a small target; at least 4 MB.
    pub(super) fn large_file_bytes(&mut self, wanted: u64) -> Result<u64, MeasureError> {
        let usage = self.fs.usage().map_err(|source| MeasureError::Io { doing: "asking for free space", source })?;
        Ok(wanted.min(usage.available_bytes / 8).max(4 << 20) & !((1 << 20) - 1))
    }

    /// Empties all caches as far as the system lets us.
    pub(super) fn drop_caches(&mut self) -> Result<CacheState, MeasureError> {
        self.poll()?;
        self.drops += 1;
        self.fs.drop_caches().map_err(|source| MeasureError::Io { doing: "dropping caches", source })
    }
}

/// Errors after which there is no point in going on.
fn is_fatal(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::ENOSPC | Errno::EIO | Errno::EROFS | Errno::EDQUOT | Errno::ENODEV | Errno::EUCLEAN | Errno::EMFILE
    )
}

/// The system call behind a [`Call`], for messages.
pub(super) fn call_name(call: &Call<'_>) -> &'static str {
    match call {
        Call::Open { .. } => "open",
        Call::Close { .. } => "close",
        Call::Read { .. } => "read",
        Call::Write { .. } => "write",
        Call::Seek { .. } => "lseek",
        Call::Fsync { .. } => "fsync",
        Call::Fdatasync { .. } => "fdatasync",
        Call::SyncRange { .. } => "sync_file_range",
        Call::SyncFs => "syncfs",
        Call::Ftruncate { .. } => "ftruncate",
        Call::Truncate { .. } => "truncate",
        Call::Fallocate { .. } => "fallocate",
        Call::CopyRange { .. } => "copy_file_range",
        Call::DontNeed { .. } | Call::Advise { .. } => "posix_fadvise",
        Call::Lock { .. } => "fcntl",
        Call::MapUnmap { .. } => "mmap",
        Call::Residency { .. } => "cachestat",
        Call::Stat { .. } => "stat",
        Call::Fstat { .. } => "fstat",
        Call::StatFs { .. } => "statfs",
        Call::Access { .. } => "access",
        Call::ReadLink { .. } => "readlink",
        Call::GetDents { .. } => "getdents",
        Call::Mkdir { .. } => "mkdir",
        Call::Rmdir { .. } => "rmdir",
        Call::Unlink { .. } => "unlink",
        Call::Rename { .. } => "rename",
        Call::Link { .. } | Call::LinkFd { .. } => "link",
        Call::Symlink { .. } => "symlink",
        Call::Mknod { .. } => "mknod",
        Call::Chmod { .. } => "chmod",
        Call::Fchmod { .. } => "fchmod",
        Call::Chown { .. } => "chown",
        Call::Fchown { .. } => "fchown",
        Call::Utimens { .. } => "utimensat",
        Call::Futimens { .. } => "futimens",
        Call::SetXattr { .. } => "setxattr",
        Call::GetXattr { .. } => "getxattr",
        Call::ListXattr { .. } => "listxattr",
        Call::RemoveXattr { .. } => "removexattr",
    }
}
