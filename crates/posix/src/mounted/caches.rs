//! Emptying caches, and checking that they are empty.
//!
//! As root: everything is written back and the kernel is told to drop its caches; then a sample of the files below
//! the target is looked at, page by page (`cachestat` or `mincore`), and so is a sample of their names
//! (`openat2(RESOLVE_CACHED)`, which answers only from memory). Without root: every file below the target is written
//! back and its pages are given up one file at a time, and looked at; names and attributes cannot be dropped that way.

use super::{Mounted, Shared, raw};
use crate::cache_state::{CacheDrop, CacheState};
use crate::{Fd, FileKind, SyncRange, interrupt};
use rustix::fs::{self, Advice, AtFlags, OFlags};
use rustix::io::Errno as Sys;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
/// Files looked at after dropping everything as root.
const SAMPLE_FILES: usize = 64;
/// Directory entries read in search of them, and the time given to it: the search itself may have to read the disk.
const SAMPLE_ENTRIES: usize = 4096;
const SAMPLE_TIME: Duration = Duration::from_millis(250);
/// Attempts before a state is called unverified.
const ATTEMPTS: u32 = 4;
/// Directories held open at a time while walking.
const WALK_DEPTH: usize = 4096;

impl Mounted {
    /// Empties the caches and says what is known about data and about names, and why.
    ///
    /// The name and the attributes of a file that is open stay in memory, whatever the answer: close first what is to
    /// be found cold. Nothing tells whether attributes are in memory: they are taken to go with the names.
    pub fn drop_caches_explained(&mut self) -> io::Result<CacheDrop> {
        fs::syncfs(&self.shared.root)?;
        match fs::access(DROP_CACHES, fs::Access::WRITE_OK) {
            Ok(()) => self.drop_everything(),
            Err(errno) => self.drop_own_files(&format!("{DROP_CACHES} cannot be written ({errno})")),
        }
    }

    /// Writes one file back and empties its pages, untimed and without root; the file's name and attributes stay.
    pub fn evict(&mut self, fd: Fd) -> io::Result<CacheState> {
        let (file, _) = self.shared.table.get(fd)?;
        evict(file)
    }

    fn drop_everything(&mut self) -> io::Result<CacheDrop> {
        let sample = self.sample()?;
        fs::sync();
        self.shared.settle_metadata();
        let mut bytes = 0;
        for _ in 0..ATTEMPTS {
            if let Err(error) = drop_caches("3") {
                // Root of a container may be refused although the file's mode allows it.
                return self.drop_own_files(&format!("writing {DROP_CACHES} failed: {error}"));
            }
            bytes = 0;
            for (file, size_bytes) in &sample.files {
                bytes += raw::residency(file.as_fd(), 0, 0, *size_bytes)?.cached_bytes;
            }
            if bytes == 0 {
                break;
            }
            fs::sync();
        }
        let checked_files = sample.files.len();
        // The sample's own names and attributes were held in memory until now.
        drop(sample.files);
        let mut names = Names::Unknown;
        for _ in 0..ATTEMPTS {
            drop_caches("2")?;
            names = self.cached_names(&sample.paths);
            if names != (Names::Cached { some: true }) {
                break;
            }
        }
        let mut why = Vec::new();
        if bytes > 0 {
            why.push(format!("{bytes} bytes of sampled files stayed in memory"));
        }
        match names {
            Names::Cached { some: false } => {}
            Names::Cached { some: true } => why.push("names of sampled files stayed in memory".to_string()),
            Names::Unknown => why.push("this kernel does not tell which names are in memory".to_string()),
        }
        let cold_if = |cold| if cold { CacheState::Cold } else { CacheState::Unverified };
        let names = cold_if(names == Names::Cached { some: false });
        Ok(CacheDrop { data: cold_if(bytes == 0), names, checked_files, why: why.join("; ") })
    }

    /// Whether any of some paths below the root can be walked from memory alone.
    fn cached_names(&self, paths: &[PathBuf]) -> Names {
        for path in paths {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match fs::openat2(&self.shared.root, path, flags, fs::Mode::empty(), fs::ResolveFlags::CACHED) {
                Ok(_) => return Names::Cached { some: true },
                // Removed or too long to be asked for in one piece: tells nothing.
                Err(Sys::AGAIN | Sys::NOENT | Sys::NAMETOOLONG) => {}
                Err(_) => return Names::Unknown,
            }
        }
        Names::Cached { some: false }
    }

    fn drop_own_files(&mut self, reason: &str) -> io::Result<CacheDrop> {
        let mut warm_files = 0usize;
        let mut skipped_files = 0usize;
        let mut checked_files = 0usize;
        walk(self.shared.root.as_fd(), usize::MAX, &mut |file, _, _| {
            match file.map(|file| evict(file.as_fd())) {
                Ok(Ok(CacheState::Cold)) => checked_files += 1,
                Ok(Ok(_)) => (checked_files, warm_files) = (checked_files + 1, warm_files + 1),
                Ok(Err(_)) | Err(_) => skipped_files += 1,
            }
            true
        })?;
        let mut why = format!("{reason}: names and attributes stay in memory");
        if warm_files + skipped_files > 0 {
            why.push_str(&format!("; {warm_files} files kept pages, {skipped_files} could not be opened"));
        }
        let data = if warm_files + skipped_files == 0 { CacheState::Cold } else { CacheState::Unverified };
        Ok(CacheDrop { data, names: CacheState::Unverified, checked_files, why })
    }

    /// Some files below the root that have pages in memory now, held open, and the paths of some files.
    fn sample(&self) -> io::Result<Sample> {
        let mut sample = Sample::default();
        let start = Instant::now();
        walk(self.shared.root.as_fd(), SAMPLE_ENTRIES, &mut |file, size_bytes, path| {
            if sample.paths.len() < SAMPLE_FILES {
                sample.paths.push(path.iter().map(|name| OsStr::from_bytes(name.to_bytes())).collect());
            }
            if let Ok(file) = file
                && raw::residency(file.as_fd(), 0, 0, size_bytes).is_ok_and(|r| r.cached_bytes > 0)
            {
                sample.files.push((file, size_bytes));
            }
            sample.files.len() < SAMPLE_FILES && start.elapsed() < SAMPLE_TIME
        })?;
        Ok(sample)
    }
}

impl Shared {
    /// Has a scratch file system write its metadata home. A journal keeps the blocks that it has committed and not yet
    /// checkpointed in memory, whatever is dropped, and with them the directories and inodes just made: freezing
    /// checkpoints them. Only for file systems of our own: freezing one that others use would stop them.
    ///
    /// A process of its own freezes and thaws, out of reach of the signals sent to this one's group: killed between the
    /// two, this process would leave a file system behind that nothing can take down. Where the tool is missing
    /// (it is part of util-linux) metadata may stay warm.
    fn settle_metadata(&self) {
        if self.origin.mount.is_none() {
            return;
        }
        let Ok(root) = self.root.try_clone() else { return };
        let _ = Command::new("sh")
            .args(["-c", "fsfreeze --freeze /proc/self/fd/0 && fsfreeze --unfreeze /proc/self/fd/0"])
            .stdin(root)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .status();
    }
}

/// What is looked at after dropping.
#[derive(Default)]
struct Sample {
    files: Vec<(OwnedFd, u64)>,
    paths: Vec<PathBuf>,
}

/// What is known about names in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Cached { some: bool },
    Unknown,
}

fn drop_caches(what: &str) -> io::Result<()> {
    std::fs::write(DROP_CACHES, what)
}

/// Writes a file back, gives its pages up and looks whether they are gone.
fn evict(file: BorrowedFd<'_>) -> io::Result<CacheState> {
    let size_bytes = u64::try_from(fs::fstat(file)?.st_size).unwrap_or(0);
    for _ in 0..ATTEMPTS {
        fs::fdatasync(file)?;
        fs::fadvise(file, 0, None, Advice::DontNeed)?;
        if raw::residency(file, 0, 0, size_bytes)?.cached_bytes == 0 {
            return Ok(CacheState::Cold);
        }
    }
    Ok(CacheState::Unverified)
}

/// What is done with each file: given the open file, its size, and its path from the root. `false` ends the walk.
type Visit<'a> = dyn FnMut(Result<OwnedFd, Sys>, u64, &[CString]) -> bool + 'a;

/// Visits non-empty regular files below a directory, opened for reading, until `visit` says stop or
/// `entries_max` names have been read. Follows no links and stays on the file system.
fn walk(root: BorrowedFd<'_>, entries_max: usize, visit: &mut Visit<'_>) -> io::Result<()> {
    let open_dir = |at: BorrowedFd<'_>, name: &std::ffi::CStr| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        fs::openat(at, name, flags, fs::Mode::empty())
    };
    let dev = fs::fstat(root)?.st_dev;
    let first = open_dir(root, c".")?;
    let mut stack = vec![(fs::Dir::read_from(&first)?, first)];
    let mut path: Vec<CString> = Vec::new();
    let mut entries = 0;
    loop {
        let deeper_allowed = stack.len() < WALK_DEPTH;
        let Some((dir, at)) = stack.last_mut() else { break };
        if interrupt::requested() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let Some(entry) = dir.next() else {
            stack.pop();
            path.pop();
            continue;
        };
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        entries += 1;
        if entries > entries_max {
            return Ok(());
        }
        let stat = match fs::statat(&*at, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if stat.st_dev == dev => super::stat_of(&stat),
            _ => continue,
        };
        if stat.kind == FileKind::Directory && deeper_allowed {
            // One that may not be searched, as a replay makes some, can be opened, and nothing in it.
            if let Ok(deeper) = open_dir(at.as_fd(), name)
                && let Ok(names) = fs::Dir::read_from(&deeper)
            {
                path.push(name.to_owned());
                stack.push((names, deeper));
            }
        } else if stat.kind == FileKind::File && stat.size_bytes > 0 {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let file = fs::openat(&*at, name, flags | OFlags::NOATIME, fs::Mode::empty())
                .or_else(|_| fs::openat(&*at, name, flags, fs::Mode::empty()));
            path.push(name.to_owned());
            let go_on = visit(file, stat.size_bytes, &path);
            path.pop();
            if !go_on {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Has the kernel begin to write what is dirty of a range of a file; nobody waits for it (`sync_file_range(2)`).
///
/// # Errors
/// The file system's.
pub fn begin_write_back(file: &impl AsFd, offset: u64, len_bytes: u64) -> io::Result<()> {
    Ok(raw::sync_range(file.as_fd(), offset, len_bytes, SyncRange::STARTED)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, FileSystem, Mode, OpenFlags};
    use std::path::Path;

    #[test]
    fn without_root_data_is_cold_and_names_are_not_claimed() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut fs = Mounted::open(dir.path()).unwrap();
        for name in ["a", "d/b", "d/e/c"] {
            fs.subdir(Path::new(name).parent().unwrap()).unwrap();
            let flags = OpenFlags { create: true, ..OpenFlags::WRITE };
            let fd = fs.call(&Call::Open { at: name.into(), flags, mode: Mode(0o600) }).fd().unwrap();
            fs.call(&Call::Write { fd, offset: None, len_bytes: 300_000, data: None }).count().unwrap();
            fs.call(&Call::Close { fd });
        }
        let kind = rustix::fs::statfs(dir.path()).unwrap().f_type;
        if kind == 0x0102_1994 {
            testkit::skip(format!("{} is a tmpfs, whose pages cannot be dropped", dir.path().display()));
            return;
        }
        let dropped = fs.drop_own_files("not asked").unwrap();
        assert_eq!((dropped.data, dropped.names, dropped.checked_files), (CacheState::Cold, CacheState::Unverified, 3));
        assert_eq!(dropped.state(), CacheState::Unverified);
        assert!(dropped.why.contains("names and attributes"), "{}", dropped.why);
    }

    #[test]
    fn both_ways_of_counting_pages_agree() {
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        std::io::Write::write_all(&mut file, &vec![1; 100 * 4096 + 1]).unwrap();
        let size = 100 * 4096 + 1;
        let counted = raw::residency(file.as_fd(), 0, 0, size).unwrap();
        assert_eq!(counted.cached_bytes, 101 * 4096);
        assert_eq!(raw::mincore(file.as_fd(), 0, size).unwrap(), 101);
        // Byte 4095 to byte 8192 is three pages of which the middle one is whole.
        let found = raw::residency(file.as_fd(), 4095, 4098, size).unwrap();
        assert_eq!((found.cached_bytes, found.missing_bytes), (3 * 4096, 0));
        assert_eq!(raw::mincore(file.as_fd(), 4095, 4095 + 4098).unwrap(), 3);
        if evict(file.as_fd()).unwrap() == CacheState::Cold {
            assert_eq!(raw::mincore(file.as_fd(), 0, size).unwrap(), 0);
            // The range reaches beyond the file's end, where nothing can be missing.
            let found = raw::residency(file.as_fd(), 99 * 4096, 1 << 20, size).unwrap();
            assert_eq!((found.cached_bytes, found.missing_bytes), (0, 2 * 4096));
        }
    }
}
