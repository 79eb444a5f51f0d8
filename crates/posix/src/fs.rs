//! The hinge trait and the things POSIX hides: the clock, extents, free space and caches.

use crate::cache_state::{CacheDrop, CacheState};
use crate::{Call, Errno, Fd, FsType, Kernel, Outcome, Process};
use serde::{Deserialize, Serialize};
use units::show;

/// What makes calls that cannot leave the root: see [`FileSystem::contained`].
pub type Contained<'a> = dyn FnMut(&mut dyn FileSystem) + Send + 'a;

/// A file system as the processes using it see it.
///
/// Implementations are handles: cloning the handle for a second thread of control is what
/// [`run`](FileSystem::run) does with its processes.
pub trait FileSystem {
    /// Makes one call and times it.
    fn call(&mut self, call: &Call<'_>) -> Outcome;

    /// The file system's clock, in nanoseconds from an arbitrary start: wall-clock or virtual time.
    fn now_ns(&self) -> u64;

    /// The date that files get, nanoseconds since 1970: this machine's, or the virtual one.
    fn date_ns(&self) -> i64 {
        use std::time::SystemTime;
        let nanoseconds = |time: std::time::Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => nanoseconds(after),
            Err(before) => -nanoseconds(before.duration()),
        }
    }

    /// Has the date that files get be this at least, nanoseconds since 1970, without time passing: where dates are
    /// virtual, a history is told at the dates that it had. Where they are this machine's nothing happens.
    fn advance_date(&mut self, _to_ns: i64) {}

    /// Lets time pass without calls (a workload's think time).
    fn pause_ns(&mut self, ns: u64);

    /// Runs concurrent processes to their end: OS threads on a mounted system, interleaved in virtual time in the
    /// laboratory. Fails only where the *running* fails (a process that blocks for ever, an interrupt).
    fn run(&mut self, processes: Vec<Box<dyn Process + '_>>) -> std::io::Result<()>;

    /// Has calls made that cannot leave the root, wherever their paths and links lead: for paths that come from
    /// somebody else. `..` stays at the root and absolute links begin there, as for a process whose root directory it
    /// is. `work` makes calls, runs processes and asks for the time; what else there is to do is done outside.
    ///
    /// # Errors
    /// The system does not give us the means; `work` was not called.
    fn contained(&mut self, work: &mut Contained<'_>) -> std::io::Result<()>;

    /// Reads file contents without timing (verification, not measurement). Returns the bytes read.
    fn read_into(&mut self, fd: Fd, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno>;

    /// The entries of an open directory, without timing: name and kind, in the file system's own order, without
    /// `.` and `..`.
    fn entries(&mut self, fd: Fd) -> Result<Vec<(std::ffi::OsString, crate::FileKind)>, Errno>;

    /// Writes back everything dirty and empties data, name and attribute caches as far as the system lets us,
    /// and says how far that was.
    fn drop_caches(&mut self) -> std::io::Result<CacheState>;

    /// The same, with data and names apart and the reason why a state is not `Cold`, where the system can tell.
    fn drop_caches_explained(&mut self) -> std::io::Result<CacheDrop> {
        let state = self.drop_caches()?;
        Ok(CacheDrop { data: state, names: state, checked_files: 0, why: String::new() })
    }

    /// Writes one file back and takes its data (not its name and attributes) out of the cache, without timing, and says
    /// whether that was verified.
    fn evict(&mut self, fd: Fd) -> std::io::Result<CacheState> {
        self.call(&Call::Fdatasync { fd }).result?;
        self.call(&Call::DontNeed { fd, offset: 0, len_bytes: 0 }).result?;
        Ok(CacheState::Unverified)
    }

    /// The generation of an open file's inode: a number that changes when the inode's number is used for another file.
    fn generation(&mut self, _fd: Fd) -> Result<u32, Unavailable> {
        let why = "it has no such number".to_owned();
        Err(Unavailable::Unsupported { what: "the inode's generation", on: "this file system".to_owned(), why })
    }

    /// The mount that a name of an open directory leads to, links not followed, or that an open file is in; without
    /// timing. `None` where that is not known, or nothing can be mounted.
    fn mount(&mut self, _fd: Fd, _name: Option<&std::ffi::OsStr>) -> Option<crate::mount_id::MountId> {
        None
    }

    /// Space and inodes, total and free.
    fn usage(&mut self) -> std::io::Result<FsUsage>;

    /// Waits until the space of removed files is free, where the system frees it in the background. Answers whether it
    /// has waited: false where it has no call that waits, or does not let us.
    fn finish_removals(&mut self) -> bool {
        false
    }

    /// Where a file's data lies.
    fn extents(&mut self, fd: Fd) -> Result<Vec<Extent>, Unavailable>;

    /// The free space, in address order.
    fn free_extents(&mut self) -> Result<Vec<FreeExtent>, Unavailable>;

    /// What this is, for the record beside every result.
    fn environment(&self) -> Environment;

    /// Whether the same calls always take the same time, as in virtual time: then nothing is gained by repeating a run.
    fn is_deterministic(&self) -> bool {
        false
    }

    /// Another file system in just the state that this one is in, its clock among it: what is called on one changes
    /// nothing on the other. `None` where there is only one, as of a mounted system, and while somebody watches what
    /// happens on this one.
    fn duplicate(&self) -> Option<Box<dyn FileSystem>> {
        None
    }

    /// How long a loop takes that shows how much of its core the processor has ([`crate::core_probe`]), nanoseconds;
    /// `None` in virtual time.
    fn core_probe_ns(&self) -> Option<f64> {
        (!self.is_deterministic()).then(crate::core_probe::ns)
    }

    /// Where the root is in this machine's directory tree; `None` if the file system is not mounted here.
    fn host_path(&self) -> Option<&std::path::Path> {
        None
    }

    /// What a file system that is not mounted here says of its own shape.
    fn shape(&self) -> Option<Shape> {
        None
    }

    /// The memory of the computer that this file system is used by, if that is not this machine.
    fn memory(&self) -> Option<MemoryLimits> {
        None
    }
}

impl<F: FileSystem + ?Sized> FileSystem for Box<F> {
    crate::delegate! { |me| **me }
}

impl<F: FileSystem + ?Sized> FileSystem for &mut F {
    crate::delegate! { |me| **me }
}

/// The shape of a file system, as far as layout depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// A full block of a file: the unit of layout scores.
    pub block_bytes: u32,
    /// Its allocation groups, if it has any.
    pub groups: Option<GroupShape>,
}

/// Allocation groups of one size, with as many inodes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupShape {
    /// Where the first begins.
    pub first_bytes: u64,
    /// The length of each; the last may be shorter.
    pub len_bytes: u64,
    /// How many.
    pub count: u64,
    /// Inode numbers of each; the first group's begin with 0.
    pub inodes: u64,
}

/// How much memory a kernel gives to caches, and when it writes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// What the cache of data can grow into.
    pub available_bytes: u64,
    /// Names that the name cache holds.
    pub name_entries: u64,
    /// Inodes whose attributes are in memory.
    pub attribute_inodes: u64,
    /// Dirty data at which background write-back starts.
    pub dirty_background_bytes: u64,
    /// Dirty data at which writers are made to wait.
    pub dirty_limit_bytes: u64,
    /// Age at which dirty data is written back, nanoseconds.
    pub dirty_expire_ns: u64,
}

/// Space on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsUsage {
    /// Size of the file system.
    pub total_bytes: u64,
    /// Free, root's reserve included.
    pub free_bytes: u64,
    /// Free for an ordinary user.
    pub available_bytes: u64,
    /// Inodes in all; 0 where they are made on demand.
    pub total_inodes: u64,
    /// Inodes free.
    pub free_inodes: u64,
    /// The unit of allocation.
    pub block_bytes: u32,
}

/// One contiguous piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where in the file it starts.
    pub logical_bytes: u64,
    /// Where on the device (or in the file system's own address space: see `flags.logical_address`).
    pub physical_bytes: u64,
    /// How long it is.
    pub len_bytes: u64,
    /// What kind of extent.
    pub flags: ExtentFlags,
}

/// What FIEMAP says about an extent (`linux/fiemap.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct ExtentFlags {
    pub unwritten: bool,
    pub inline: bool,
    pub delayed: bool,
    pub encoded: bool,
    pub shared: bool,
    pub unknown: bool,
    /// The "physical" address is the file system's own logical address (btrfs).
    pub logical_address: bool,
}

/// One contiguous piece of free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeExtent {
    /// Where it starts on the device.
    pub physical_bytes: u64,
    /// How long it is.
    pub len_bytes: u64,
}

/// Why something POSIX hides could not be had; never replaced by a guess.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Unavailable {
    /// The file system or kernel has no such interface.
    #[error("{what} is not available on {on}: {why}")]
    Unsupported { what: &'static str, on: String, why: String },
    /// The interface is there and failed.
    #[error("{what}: {errno}")]
    Failed { what: &'static str, errno: Errno },
}

/// Where a result was measured, stored beside it.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// The target as the user wrote it (`ext4:8G`, `/mnt/data`).
    pub target: String,
    /// What ran it.
    pub kernel: Kernel,
    /// Processor model and number of processors.
    pub cpu: String,
    #[allow(missing_docs)]
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// File system type.
    pub fs_type: FsType,
    /// Mount options in force.
    pub mount_options: String,
    /// mkfs command line of a scratch system, empty otherwise.
    pub mkfs: String,
    /// Block device or backing store, and how it is attached.
    pub device: String,
    /// Size and share in use (0 to 1) when measured.
    pub total_bytes: u64,
    #[allow(missing_docs)]
    pub used_share: f64,
}

impl Environment {
    /// What is known of it, for people: what, and its value.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        let mut add = |what, value: String| {
            if !value.is_empty() {
                facts.push((what, value));
            }
        };
        add("target", self.target.clone());
        add("file system", self.fs_type.to_string());
        add("mount options", self.mount_options.clone());
        add("mkfs", self.mkfs.clone());
        add("device", self.device.clone());
        if self.total_bytes > 0 {
            add("size", format!("{}, {} in use", show::bytes(self.total_bytes as f64), show::share(self.used_share)));
        }
        add("kernel", self.kernel.to_string());
        if self.cpus > 0 {
            add("processors", format!("{} x {}", self.cpus, self.cpu));
        }
        if self.memory_bytes > 0 {
            add("memory", show::bytes(self.memory_bytes as f64));
        }
        facts
    }
}
