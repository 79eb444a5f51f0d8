//! The annotated trace: the one type that all stages read and write.
//!
//! [`Annotated`] stands beside a [`Batch`](trace::Batch): one [`Note`] per event, and for each event a run of
//! [`Step`]s, the elementary operations that the call asks of a file system whatever its caches hold. The cache stage
//! answers each step with a [`Mark`] (hit or miss, dirty or clean, for one system), the pattern stage refines the marks
//! of what goes to disk, and pricing turns step and mark into entries of the system vector.

use super::near::{Distance, FarPages};
use posix::SyncRange;
use system::vector::Class;

/// A file, directory or link of the name tree. Numbers are re-used after a file is gone ([`Step::Freed`] says when).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// A name in a directory, whether or not a file has it at the moment: what a name cache caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub u32);

impl NodeId {
    /// No file: the name is absent.
    pub const NONE: NodeId = NodeId(u32::MAX);
    /// The root directory.
    pub const ROOT: NodeId = NodeId(0);

    /// As an index of dense tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl SlotId {
    /// No name: a file that never had one (`O_TMPFILE`).
    pub const NONE: SlotId = SlotId(u32::MAX);

    /// As an index of dense tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whether a call has a price, and if not why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Status {
    /// Priced.
    Modelled,
    /// Not on a file system fsage models (pipe, socket, /proc, /sys, /dev): left out on both sides.
    Foreign,
    /// State of the process rather than work of a file system (dup, chdir, flags of descriptors, fork, exit): free.
    Process,
    /// Programs started: their pages are mapped, so what the file system does for them is unseen.
    Exec,
    /// Mapped input/output (msync): unseen.
    Mapped,
    /// Submitted through io_uring: unseen.
    IoUring,
    /// The call never returned in the trace.
    Unfinished,
    /// The trace does not say which file the call is about.
    Unidentified,
    /// A call that has no class in the system vector (ioctl and the like).
    Other,
    /// A replay does not make it, and the prediction is of a replay.
    NotReplayed,
}

impl Status {
    /// Every status, in order.
    pub const ALL: [Status; 10] = [
        Status::Modelled,
        Status::Foreign,
        Status::Process,
        Status::Exec,
        Status::Mapped,
        Status::IoUring,
        Status::Unfinished,
        Status::Unidentified,
        Status::Other,
        Status::NotReplayed,
    ];

    /// The name used in tables and annotated traces.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Modelled => "modelled",
            Status::Foreign => "foreign",
            Status::Process => "process",
            Status::Exec => "exec",
            Status::Mapped => "mapped",
            Status::IoUring => "io_uring",
            Status::Unfinished => "unfinished",
            Status::Unidentified => "unidentified",
            Status::Other => "other",
            Status::NotReplayed => "not_replayed",
        }
    }

    /// Whether a call with this status is file system activity that the prediction leaves out.
    pub const fn is_uncovered(self) -> bool {
        !matches!(self, Status::Modelled | Status::Foreign | Status::Process | Status::Exec | Status::NotReplayed)
    }
}

/// What preprocessing says about one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Whether it is priced.
    pub status: Status,
    /// Its first step in [`Annotated::steps`]; the next event's first step ends the run.
    pub first_step: u32,
    /// The file the call is about; [`NodeId::NONE`] if it has none (a failed lookup, sync).
    pub node: NodeId,
    /// The directory it is reported under: an index of the report directories.
    pub directory: u32,
    /// Components looked up.
    pub lookups: u16,
    /// For a call that failed on its way: which component (from 1) was missing or no directory.
    pub failed_at: u16,
    /// The trace contradicts the model here; the trace was believed.
    pub surprise: bool,
}

/// Why a component is looked up, which decides what of it the call's own class already includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// On the way, or the file the call is about.
    Walk,
    /// Missing, and the call fails: the negative lookup is the call.
    Fails,
    /// The same for open, which has more to undo.
    FailsToOpen,
    /// Missing, and about to be made: the class (create, mkdir) includes looking up an absent name in a cached
    /// directory.
    Makes,
}

/// How a write reaches stable storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stable {
    /// Later, by write-back.
    No,
    /// With the call, as fdatasync does (`O_DSYNC`, `RWF_DSYNC`).
    Data,
    /// With the call, as fsync does (`O_SYNC`).
    All,
}

/// Between what data moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// A process and a file.
    Process,
    /// Two files, inside the kernel: another class covers it.
    Bytes,
    /// The same, in whole blocks of either: what a file system can share between the two.
    Blocks,
}

/// An elementary operation.
///
/// The fields throughout: `node` is the file acted on, `dir` the directory of the name, `slot` the name itself;
/// `size_bytes` is the file's length before; `first` marks the first component of a path, which the call's own class
/// includes; `direct` `O_DIRECT`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// The call itself, on a warm one-component path or a descriptor.
    Call(Class),
    /// The call itself, for a class with a size.
    CallAt(Class, u64),
    /// One component of a path; its name is in that page of the directory.
    Lookup { dir: NodeId, slot: SlotId, page: u32, entries: u32, child: NodeId, role: Role, first: bool },
    /// A `..` component.
    Parent { first: bool },
    /// A symbolic link was followed: its target is read, further components follow.
    Follow,
    /// Data was read; `hole_bytes` of it have no blocks, or such as nobody wrote.
    Read {
        node: NodeId,
        offset: u64,
        len_bytes: u64,
        size_bytes: u64,
        hole_bytes: u64,
        direct: bool,
        transfer: Transfer,
    },
    /// Data was written: `new_bytes` of it had no blocks before, or such as nobody wrote; the file was `size_bytes`
    /// long. Whether the first and the last block held data: `head_holds`, `tail_holds`.
    Write {
        node: NodeId,
        offset: u64,
        len_bytes: u64,
        size_bytes: u64,
        new_bytes: u64,
        head_holds: bool,
        tail_holds: bool,
        direct: bool,
        transfer: Transfer,
        stable: Stable,
    },
    /// A copy from one file into another begins; its read and its write follow.
    Copy { from: NodeId, len_bytes: u64, transfer: Transfer },
    /// A description that wrote to the file was closed for the last time.
    CloseWritten { node: NodeId },
    /// The length was set; `freed_bytes` of data lay beyond it; `opened` by `O_TRUNC`.
    Truncate { node: NodeId, from_bytes: u64, to_bytes: u64, freed_bytes: u64, opened: bool },
    /// Space was reserved or given back without a write.
    Allocate { node: NodeId, grew: bool },
    /// A name was made for a new file.
    Made { dir: NodeId, slot: SlotId, node: NodeId, directory: bool },
    /// A second name was made for a file.
    Linked { dir: NodeId, slot: SlotId, node: NodeId },
    /// A name was removed; `last`: the file goes with it (else other names or open descriptors keep it).
    Unlinked { dir: NodeId, slot: SlotId, node: NodeId, size_bytes: u64, last: bool, open: bool, next: bool },
    /// A directory was removed.
    RemovedDirectory { dir: NodeId, slot: SlotId },
    /// A file moved to another name; what had that name before, if anything, is `over` and `over_bytes` long.
    Renamed {
        moved: NodeId,
        from_dir: NodeId,
        from_slot: SlotId,
        to_dir: NodeId,
        to_slot: SlotId,
        over: NodeId,
        over_bytes: u64,
        over_last: bool,
        /// What the call itself was charged as.
        class: Class,
    },
    /// Two names were exchanged.
    Exchanged { from_dir: NodeId, to_dir: NodeId },
    /// A file is gone: its pages, attributes and number are free. `on_close`: removed long ago, freed by this close.
    Freed { node: NodeId, size_bytes: u64, on_close: bool },
    /// Attributes were changed.
    Changed { node: NodeId },
    /// fsync or fdatasync of one file or directory.
    Sync { node: NodeId, data_only: bool, directory: bool },
    /// sync_file_range of one file, taken for all of it.
    SyncRange { node: NodeId, how: SyncRange },
    /// The file's pages from one to before another are given up (`POSIX_FADV_DONTNEED`).
    DontNeed { node: NodeId, first_page: u64, end_page: u64 },
    /// sync or syncfs.
    SyncAll,
    /// Directory entries were read: `share_bytes` of `total_bytes`, `entries` in all.
    ReadDir { node: NodeId, entries: u64, share_bytes: u64, total_bytes: u64, first: bool, end: bool },
    /// A name that was there before the trace and that no snapshot told us of.
    Adopted { dir: NodeId, slot: SlotId, node: NodeId, size_bytes: u64, directory: bool },
    /// A working directory or inherited descriptor keeps this name and its file in the caches.
    Pinned { dir: NodeId, slot: SlotId, node: NodeId },
    /// An absent name's number is about to be re-used.
    Forgotten { slot: SlotId },
}

/// How a component was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Name and attributes cached.
    Hit,
    /// The name was not cached, the attributes were; `on_disk`: the directory's blocks had to be read.
    AttributesHit,
    /// Neither was.
    Miss,
    /// The name's absence was cached.
    NegativeHit,
    /// The name's absence was not cached, the directory's blocks were.
    NegativeMiss,
    /// The name's absence had to be read from disk.
    NegativeCold,
}

/// The order of disk-bound requests, from the pattern stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Not decided: not disk-bound.
    None,
    /// Follows the previous disk-bound request.
    Sequential,
    /// Somewhere else.
    Random,
    /// The first of the file, at its start.
    First,
    /// The same, just after that of a file that was made at about the same time.
    FirstNext,
}

/// What fsync finds dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirtyKind {
    /// Nothing.
    Clean,
    /// Allocated blocks overwritten.
    Overwrite,
    /// New blocks or a new length.
    Append,
    /// The file itself is new.
    Create,
    /// New blocks in a file that is new, after another's sync that has committed it, or was of a new file beside it.
    Late,
    /// A directory whose names changed.
    Names,
    /// A directory, and nothing.
    CleanDirectory,
}

/// Where the new bytes of a write lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewIn {
    /// At least some of them in new blocks.
    NewBlocks,
    /// All of them in the file's last block, which has no place on the device yet.
    LastBlock,
    /// All of them in the file's last block, which has one.
    AllocatedBlock,
}

/// One system's answer to a step.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// Nothing to say.
    Nothing,
    /// How a component was found; `directory_cached`: without reading the directory's blocks; how far from the
    /// processor a cached name was; of one that was not cached, how many files were made between it and the nearest
    /// with a cached inode (at least 1).
    Lookup { found: Found, directory_cached: bool, pattern: Pattern, far: Distance, inode_distance: u32 },
    /// Bytes found in the cache, bytes from disk, bytes the kernel reads in all (with read-ahead).
    Read { cached_bytes: u64, disk_bytes: u64, window_bytes: u64, pattern: Pattern, far: FarPages },
    /// Bytes by kind, and edge blocks that had to be read first. The sync that `O_SYNC` implies is in `sync`.
    Write {
        new_bytes: u64,
        new_in: NewIn,
        cached_bytes: u64,
        uncached_bytes: u64,
        partial_blocks: u32,
        far: FarPages,
        sync: Option<SyncMark>,
    },
    /// How a copy is made: by sharing blocks, of which so much of the source had to be written first.
    Copy { shares: bool, flushed_bytes: u64 },
    /// State of a file when it is removed; of one that takes another's name, its dirty bytes.
    Remove { dirty: bool, uncached: bool, moved_dirty_bytes: u64 },
    /// State of a file whose length is set: `kept_bytes` stay of data that has made the file longer and is not written.
    Truncate { uncached: bool, kept_bytes: u64 },
    /// What closing a written file did: wrote back this much at once, because it had been emptied.
    Close { flushed_bytes: u64, was_empty: bool },
    /// What fsync had to do.
    Sync(SyncMark),
    /// What sync_file_range started to write, where it did not wait for that, and how long it waited for what was under
    /// way.
    SyncRange { started_bytes: u64, wait_ns: f64 },
    /// A directory read from disk or from the cache.
    ReadDir { cold: bool },
    /// Dirty bytes of the file system at a sync; names and inodes that changed; whether any metadata did.
    SyncAll { dirty_bytes: u64, logged: u64, changed: bool },
}

/// What an fsync or fdatasync had to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyncMark {
    /// The kind of dirt.
    pub kind: DirtyKind,
    /// Dirty bytes of this file.
    pub dirty_bytes: u64,
    /// Runs of neighbouring dirty pages they lie in.
    pub runs: u64,
    /// Dirty bytes of other files in new blocks, as far as it waits for them.
    pub other_bytes: u64,
    /// Names and inodes of others that its log has to carry.
    pub logged: u64,
    /// fdatasync.
    pub data_only: bool,
    /// How long it waits for what is being written already, nanoseconds.
    pub wait_ns: f64,
}

impl Mark {
    /// Waiting for write-back that is under way: in no entry.
    pub fn wait_ns(&self) -> f64 {
        match *self {
            Mark::Sync(sync) | Mark::Write { sync: Some(sync), .. } => sync.wait_ns,
            Mark::SyncRange { wait_ns, .. } => wait_ns,
            _ => 0.0,
        }
    }
}

/// Notes and steps of consecutive events of one batch.
#[derive(Clone, Debug, Default)]
pub struct Annotated {
    /// Which of the batch's events is the first.
    pub first: usize,
    /// One per event.
    pub notes: Vec<Note>,
    /// The steps of these events, in order.
    pub steps: Vec<Step>,
}

impl Annotated {
    /// The steps of the event with the note at an index; none if there is no such event.
    pub fn steps_of(&self, event: usize) -> &[Step] {
        let Some(note) = self.notes.get(event) else { return &[] };
        let end = self.notes.get(event + 1).map_or(self.steps.len(), |next| next.first_step as usize);
        self.steps.get(note.first_step as usize..end).unwrap_or(&[])
    }

    /// Forgets all, keeping the memory.
    pub fn clear(&mut self) {
        self.first = 0;
        self.notes.clear();
        self.steps.clear();
    }
}
