//! The hinge on a real directory: system calls relative to a root directory, timed one by one.
//!
//! Every path is taken relative to the root (or to a directory opened below it): a leading `/` is stripped, and
//! a `..` that would climb above the root is answered with `EXDEV`, as `openat2(RESOLVE_BENEATH)` would. This is
//! decided from the path's text alone, and **symbolic links are followed by the kernel as they are**. Paths and links
//! that come from somebody else belong into [`contained`](FileSystem::contained), where the kernel itself stops them at
//! the root.
//!
//! What is timed is the system call alone: arguments are converted, buffers faulted in and descriptors looked up
//! before the clock starts, and the cost of reading the clock is subtracted. `truncate`, `statfs`, and the
//! extended-attribute calls on kernels before 6.13 take no directory; they go through `/proc/self/fd/N/`, and
//! what that detour costs is measured once and subtracted as well. (A contained thread goes into the directory first.)

pub(crate) mod buffers;
mod caches;
mod call;
pub(crate) mod clock;
mod environment;
mod extents;
mod path;
pub(crate) mod raw;
mod removals;
mod resolve;
mod run;
mod table;
mod trim;

use crate::cache_state::CacheDrop;
pub use caches::begin_write_back;
pub(crate) use call::stat as stat_of;
pub use environment::machine;
pub(crate) use environment::meminfo_bytes;
pub use table::raise_descriptor_limit;

use crate::mounts::MountEntry;
use crate::{
    CacheState, Call, Contained, Environment, Errno, Extent, Fd, FileKind, FileSystem, FreeExtent, FsUsage, MountId,
    Outcome, Process, Unavailable, cleanup, interrupt,
};
use call::Tools;
use resolve::Reach;
use rustix::fs::{self, OFlags};
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What the record says of a target beyond what the system tells: filled in by whoever made it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// The target as the user wrote it.
    pub(crate) target: String,
    /// mkfs command line.
    pub(crate) mkfs: String,
    /// How the block device is attached; empty: as mountinfo says.
    pub(crate) device: String,
    /// Mount entry of a file system that mountinfo no longer shows.
    pub(crate) mount: Option<MountEntry>,
}

/// What all handles on one root share.
#[derive(Debug)]
struct Shared {
    root: OwnedFd,
    path: PathBuf,
    table: Arc<table::Table>,
    origin: Arc<Origin>,
    detour_ns: OnceLock<u64>,
    opening_ns: OnceLock<u64>,
    /// `/proc/self/fd`, opened where it can still be seen: a thread with a root directory of its own has none.
    links: Result<Arc<OwnedFd>, Errno>,
}

impl Shared {
    /// The directory in which every descriptor is a link to what it has open.
    fn links(&self) -> Result<BorrowedFd<'_>, Errno> {
        self.links.as_ref().map(|links| links.as_fd()).map_err(|&errno| errno)
    }

    /// What `openat2` takes to open a directory without a walk.
    fn opening_ns(&self) -> u64 {
        *self.opening_ns.get_or_init(|| {
            clock::median(101, || {
                let start = clock::now_ns();
                let opened = resolve::open_in_root(&self.root, c".", OFlags::PATH | OFlags::CLOEXEC, fs::Mode::empty());
                let took = clock::now_ns() - start;
                std::hint::black_box(opened.is_ok());
                took
            })
        })
    }

    /// What going through `/proc/self/fd/N/` costs more than going through the descriptor.
    fn detour_ns(&self) -> u64 {
        *self.detour_ns.get_or_init(|| {
            let Ok(through) = CString::new(format!("/proc/self/fd/{}/.", self.root.as_raw_fd())) else { return 0 };
            let time = |f: &dyn Fn() -> bool| {
                clock::median(101, || {
                    let start = clock::now_ns();
                    std::hint::black_box(f());
                    clock::now_ns() - start
                })
            };
            let plain = time(&|| fs::statat(&self.root, c".", fs::AtFlags::empty()).is_ok());
            let detour = time(&|| fs::statat(fs::CWD, through.as_c_str(), fs::AtFlags::empty()).is_ok());
            detour.saturating_sub(plain)
        })
    }
}

/// A handle on a directory of a mounted file system.
///
/// Clones share the root and the descriptors: an [`Fd`] opened through one handle is good in all of them, and in
/// those of [`subdir`](Mounted::subdir). Descriptors still open are closed when the last handle goes.
#[derive(Debug)]
pub struct Mounted {
    shared: Arc<Shared>,
    tools: Tools,
    reach: Reach,
}

impl Clone for Mounted {
    fn clone(&self) -> Mounted {
        Mounted { reach: self.reach, ..Mounted::on(Arc::clone(&self.shared)) }
    }
}

impl Mounted {
    /// A handle rooted in an existing directory. Raises the limit on open descriptors to its hard limit.
    pub fn open(directory: &Path) -> io::Result<Mounted> {
        Mounted::open_described(directory, Origin { target: directory.display().to_string(), ..Origin::default() })
    }

    /// As [`open`](Mounted::open), with what is known about where the directory came from.
    pub(crate) fn open_described(directory: &Path, origin: Origin) -> io::Result<Mounted> {
        let root = fs::open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, fs::Mode::empty())?;
        let path = std::path::absolute(directory)?;
        Mounted::rooted(root, path, origin)
    }

    /// A handle rooted in a directory that is already open.
    pub(crate) fn rooted(root: OwnedFd, path: PathBuf, origin: Origin) -> io::Result<Mounted> {
        buffers::Filler::prepare()?;
        clock::overhead_ns();
        let table = Arc::new(table::Table::new());
        let (detour_ns, opening_ns) = (OnceLock::new(), OnceLock::new());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let links = fs::open("/proc/self/fd", flags, fs::Mode::empty()).map(Arc::new).map_err(Errno::from);
        let origin = Arc::new(origin);
        Ok(Mounted::on(Arc::new(Shared { root, path, table, origin, detour_ns, opening_ns, links })))
    }

    fn on(shared: Arc<Shared>) -> Mounted {
        static HANDLES: AtomicUsize = AtomicUsize::new(0);
        Mounted { shared, tools: Tools::new(HANDLES.fetch_add(1, Ordering::Relaxed)), reach: Reach::Text }
    }

    /// A handle rooted deeper: in the directory `path` below this root, made (with its parents) if it is missing.
    /// Descriptors are shared with this handle.
    pub fn subdir(&self, path: impl AsRef<Path>) -> io::Result<Mounted> {
        let way = crate::way_below(path.as_ref())?;
        for directory in &way {
            match fs::mkdirat(&self.shared.root, directory, fs::Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(e) => return Err(at(&self.shared.path.join(directory), e)),
            }
        }
        let Some(below) = way.last() else { return Ok(self.clone()) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let full = self.shared.path.join(below);
        let root = fs::openat(&self.shared.root, below, flags, fs::Mode::empty()).map_err(|e| at(&full, e))?;
        Ok(Mounted::on(Arc::new(Shared {
            root,
            path: full,
            table: Arc::clone(&self.shared.table),
            origin: Arc::clone(&self.shared.origin),
            detour_ns: self.shared.detour_ns.clone(),
            opening_ns: self.shared.opening_ns.clone(),
            links: self.shared.links.clone(),
        })))
    }

    /// Where the root is, for messages; a scratch file system that is not attached to the directory tree is named
    /// by a path below `/proc/self/fd`, which only this process can use.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Whether the root still exists, but no longer under this path: its file system was unmounted, or it was moved.
    pub(crate) fn has_moved_away(&self, path: &Path) -> bool {
        let Ok(root) = fs::fstat(&self.shared.root) else { return true };
        let there = fs::lstat(path).is_ok_and(|s| (s.st_dev, s.st_ino) == (root.st_dev, root.st_ino));
        root.st_nlink > 0 && !there
    }

    /// Tells the device which blocks are free, as fstrim(8) does: a loop device gives them back to the file system that
    /// holds its image. Answers how many bytes that were. Needs root.
    pub fn trim(&self) -> io::Result<u64> {
        use std::os::fd::AsFd as _;
        trim::trim(self.shared.root.as_fd())
    }

    /// How many descriptors opened through this handle, its clones and subdirectories are open.
    pub fn open_descriptors(&self) -> usize {
        self.shared.table.open_count()
    }
}

/// An error with the path it is about.
fn at(path: &Path, error: rustix::io::Errno) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl FileSystem for Mounted {
    #[inline]
    fn call(&mut self, call: &Call<'_>) -> Outcome {
        cleanup::stand_aside();
        match self.dispatch(call) {
            Ok(outcome) => outcome,
            // Refused before any system call was made: it took no time.
            Err(errno) => Outcome { start_ns: clock::now_ns(), dur_ns: 0, result: Err(errno) },
        }
    }

    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    /// Sleeps, then spins over the last stretch that the kernel's timers are too coarse for. Ends early when an
    /// interrupt is requested.
    fn pause_ns(&mut self, ns: u64) {
        const SPIN_NS: u64 = 80_000;
        const SLICE_NS: u64 = 50_000_000;
        let end = clock::now_ns().saturating_add(ns);
        loop {
            let left = end.saturating_sub(clock::now_ns());
            if left == 0 || interrupt::requested() {
                return;
            }
            if left > SPIN_NS {
                std::thread::sleep(Duration::from_nanos((left - SPIN_NS).min(SLICE_NS)));
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn run(&mut self, processes: Vec<Box<dyn Process + '_>>) -> io::Result<()> {
        run::run(self, processes)
    }

    fn contained(&mut self, work: &mut Contained<'_>) -> io::Result<()> {
        run::contained(self, work)
    }

    fn read_into(&mut self, fd: Fd, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (file, _) = self.shared.table.get(fd)?;
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match rustix::io::pread(file, rest, offset.saturating_add(done as u64)) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(done)
    }

    fn entries(&mut self, fd: Fd) -> Result<Vec<(OsString, FileKind)>, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        // Looking should leave no trace; only a directory's owner may ask for that.
        let (directory, _) = self.shared.table.get(fd)?;
        let fresh = match call::open_again(directory, flags | OFlags::NOATIME) {
            Err(Errno::EPERM) => call::open_again(directory, flags)?,
            other => other?,
        };
        let mut entries = Vec::new();
        for entry in fs::Dir::read_from(&fresh)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let kind = match entry.file_type() {
                fs::FileType::Unknown => {
                    fs::FileType::from_raw_mode(fs::statat(&fresh, name, fs::AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
                }
                known => known,
            };
            entries.push((OsString::from_vec(name.to_bytes().to_vec()), call::kind(kind)));
        }
        Ok(entries)
    }

    fn drop_caches(&mut self) -> io::Result<CacheState> {
        self.drop_caches_explained().map(|drop| drop.state())
    }

    fn drop_caches_explained(&mut self) -> io::Result<CacheDrop> {
        Mounted::drop_caches_explained(self)
    }

    fn evict(&mut self, fd: Fd) -> io::Result<CacheState> {
        Mounted::evict(self, fd)
    }

    fn generation(&mut self, fd: Fd) -> Result<u32, Unavailable> {
        let found = self.shared.table.get(fd);
        let (file, _) = found.map_err(|errno| Unavailable::Failed { what: "the inode's generation", errno })?;
        extents::generation(file)
    }

    fn mount(&mut self, fd: Fd, name: Option<&OsStr>) -> Option<MountId> {
        let (file, _) = self.shared.table.get(fd).ok()?;
        mount(file, name)
    }

    fn usage(&mut self) -> io::Result<FsUsage> {
        usage(&self.shared.root)
    }

    fn finish_removals(&mut self) -> bool {
        removals::finish(self.shared.root.as_fd())
    }

    fn extents(&mut self, fd: Fd) -> Result<Vec<Extent>, Unavailable> {
        let found = self.shared.table.get(fd);
        let (file, _) = found.map_err(|errno| Unavailable::Failed { what: "extents of the file", errno })?;
        extents::extents(file)
    }

    fn free_extents(&mut self) -> Result<Vec<FreeExtent>, Unavailable> {
        extents::free_extents(&self.shared.root)
    }

    fn environment(&self) -> Environment {
        environment::environment(&self.shared)
    }

    fn host_path(&self) -> Option<&Path> {
        Some(&self.shared.path)
    }
}

/// The mount that something is in.
fn mount(file: BorrowedFd<'_>, name: Option<&OsStr>) -> Option<MountId> {
    use rustix::fs::{AtFlags, StatxFlags};
    /// `STATX_MNT_ID_UNIQUE` (linux/stat.h, since Linux 6.8).
    const UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::EMPTY_PATH;
    let found = fs::statx(file, name.unwrap_or_default(), flags, StatxFlags::MNT_ID | UNIQUE).ok()?;
    let told = |what: StatxFlags| found.stx_mask & what.bits() != 0;
    let is_unique = told(UNIQUE);
    (is_unique || told(StatxFlags::MNT_ID)).then_some(MountId { number: found.stx_mnt_id, is_unique })
}

/// Space and inodes of the file system that holds a directory.
pub(crate) fn usage(directory: &OwnedFd) -> io::Result<FsUsage> {
    let v = fs::fstatvfs(directory)?;
    Ok(FsUsage {
        total_bytes: v.f_blocks.saturating_mul(v.f_frsize),
        free_bytes: v.f_bfree.saturating_mul(v.f_frsize),
        available_bytes: v.f_bavail.saturating_mul(v.f_frsize),
        total_inodes: v.f_files,
        free_inodes: v.f_ffree,
        block_bytes: u32::try_from(v.f_frsize).unwrap_or(u32::MAX),
    })
}
