//! The hinge of the house: the calls a process makes on a file system, as one trait.
//!
//! Everything that *drives* a file system (trace replay, micro-benchmarks, workloads, aging) talks
//! to [`FileSystem`]; everything that *is* one implements it. What lives here: the trait and its
//! types ([`Call`], [`Outcome`], [`Process`]), the implementation on real mounted directories
//! ([`Mounted`]), scratch file systems on loop devices, the target grammar, cache control, extents, and the
//! clean-up that runs on every exit path. What may not: anything that knows about traces, predictions or a
//! particular benchmark.
//!
//! A run, in short:
//!
//! ```no_run
//! use posix::{Call, FileSystem, Mode, OpenFlags, Target, Workspace, WorkspaceOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! posix::interrupt::install()?; // the binary, once
//! for line in posix::cleanup::sweep().removed {
//!     eprintln!("{line}"); // what a killed run had left
//! }
//! let target = Target::parse("xfs:8G,-m reflink=0,mount=noatime")?;
//! let options = WorkspaceOptions { need_bytes: 1 << 30, ..WorkspaceOptions::default() };
//! let workspace = Workspace::open(&target, &options)?; // mkfs, mount, a private directory
//! let mut fs = workspace.fs();
//! let flags = OpenFlags { create: true, ..OpenFlags::WRITE };
//! let opened = fs.call(&Call::Open { at: "f".into(), flags, mode: Mode(0o644) });
//! println!("open took {} ns", opened.dur_ns);
//! let fd = opened.fd()?;
//! fs.call(&Call::Write { fd, offset: None, len_bytes: 4096, data: None }).count()?;
//! fs.call(&Call::Close { fd }).result?;
//! let caches = fs.drop_caches()?; // Cold only if verified
//! drop(fs); // a scratch file system goes with its last handle
//! workspace.close()?; // reports what dropping would swallow
//! # Ok(())
//! # }
//! ```
//!
//! Beyond the trait, [`Mounted`] has [`subdir`](Mounted::subdir) (a handle rooted deeper), [`evict`](Mounted::evict)
//! (one file's data out of the cache, without root) and [`drop_caches_explained`](Mounted::drop_caches_explained) (what
//! is cold, and why not). Long loops poll [`interrupt::requested`].
//!
//! Times are integer nanoseconds (`_ns`), sizes are bytes (`_bytes`).

pub mod apart;
mod bounds;
mod cache_state;
mod call;
pub mod cleanup;
pub mod contain;
pub mod core_probe;
mod delegate;
mod errno;
mod fs;
mod fs_type;
mod geometry;
pub mod grammar;
pub mod held;
mod inherited;
pub mod input;
pub mod interrupt;
mod kernel;
pub mod limits;
pub mod memory;
mod mount_id;
mod mounted;
mod mounts;
pub mod notice;
pub mod offspring;
pub mod output;
mod process;
pub mod raw_disk;
mod remove;
mod rename;
mod scratch;
mod setup;
mod site;
mod target;
mod temporary;
pub mod trail;
mod workspace;

pub use bounds::Bounds;
pub use cache_state::{CacheDrop, CacheState};
pub use call::{
    AccessMode, Advice, At, Call, Fallocate, Fd, FileKind, LINKS_MAX, Lock, Mode, OpenFlags, Outcome, Reply, Residency,
    SetTime, Stat, SyncRange, Whence,
};
pub use errno::Errno;
pub use fs::{
    Contained, Environment, Extent, ExtentFlags, FileSystem, FreeExtent, FsUsage, GroupShape, MemoryLimits, Shape,
    Unavailable,
};
pub use fs_type::FsType;
pub use geometry::{BtrfsKey, XfsGeometry, btrfs_tree_search, xfs_geometry};
pub use kernel::Kernel;
pub use mount_id::MountId;
pub use mounted::{Mounted, begin_write_back, machine, raise_descriptor_limit};
pub use mounts::{MountEntry, mount_of_path, other_mounts};
pub use process::{Calls, Process, Step, process, run_one_by_one};
pub use setup::SetupError;
pub use site::{Site, way_below};
pub use target::{Backing, ScratchKind, ScratchSpec, Target, TargetError};
pub use workspace::{Image, Workspace, WorkspaceOptions};

/// What reading the clock costs, nanoseconds: already subtracted from every [`Outcome::dur_ns`] of a [`Mounted`]
/// system.
pub fn timer_overhead_ns() -> u64 {
    mounted::clock::overhead_ns()
}
