//! Snapshots: every inode of a tree at one time, with what tells a file from its successor.
//!
//! The planner of `plan::snapshots` compares successive ones. A snapshot is taken of a mounted tree by [`take`] (any
//! [`FileSystem`](posix::FileSystem) handle) or [`take_handle`], written by [`Snapshot::write`] as one checked Parquet
//! file, `NAME.snapshot`, and read by [`Snapshot::read`]. What may not live here: what a series of snapshots means.
//!
//! **A snapshot of an aged file system** must carry simulated times: give [`TakeOptions::clock`], which maps a
//! wall-clock time (nanoseconds since the epoch, as in inodes) to the simulated time of the operations performed then,
//! and [`TakeOptions::taken_ns`], the simulated time it is now:
//!
//! ```no_run
//! # type Clock<'a> = &'a dyn Fn(i64) -> i64;
//! # fn f(fs: &mut dyn posix::FileSystem, simulated: Clock<'_>, day: i64) -> Result<(), columnar::FileError> {
//! use aging::snapshot::{TakeOptions, take_handle};
//! let taken_ns = Some(day * 86_400_000_000_000);
//! let options = TakeOptions { clock: Some(simulated), taken_ns, ..TakeOptions::default() };
//! take_handle(fs, &options)?.write(std::path::Path::new("day-0001.snapshot"))?;
//! # Ok(()) }
//! ```
//!
//! Inode times come from the kernel's coarse clock, which lags the clock that [`posix::FileSystem::now_ns`] reads by up
//! to a timer tick (10 ms): a mapping should give a time just before a simulated day's first operation to that day.

mod blocks;
mod file;
mod naming;
mod rows;
mod series;
mod summary;
mod survey;
mod take;

pub use blocks::{Blocks, BlocksMeta, EXTENTS_MAX, Extents};
pub use naming::expand as expand_name;
pub(crate) use series::Sequence;
pub use series::layout_by_day;
pub use summary::{BlocksSummary, Summary};
pub use take::{TakeOptions, take, take_handle};

use blocks::{ListAt, Lists, Place};
use columnar::Format;
use posix::{Extent, FileKind};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use trace::snapshot::path_order;

/// The version of a snapshot with block lists. One without is of version 1, as it always was; both are read.
pub const FORMAT_VERSION: u32 = 2;
/// The version of one without.
const WITHOUT_BLOCKS: u32 = 1;

/// The format.
pub static FORMAT: Format = Format {
    name: "a snapshot",
    version: FORMAT_VERSION,
    oldest: WITHOUT_BLOCKS,
    key: Some("fsage.snapshot"),
    missing: "`fsage snapshot` writes snapshots",
    again: "leave this snapshot out",
};

/// What a snapshot says of itself: in the file's footer.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct SnapshotMeta {
    /// 1, or with block lists [`FORMAT_VERSION`].
    pub version: u32,
    /// Version of the program that took it.
    pub fsage: String,
    /// When the walk ended, nanoseconds since the epoch, or simulated.
    pub taken_ns: i64,
    /// When it began.
    pub began_ns: i64,
    /// Whether all times are simulated ones (of an aged file system).
    pub simulated: bool,
    /// Node name.
    pub host: String,
    /// The directory, escaped as paths are.
    pub root: String,
    /// File system type; empty where unknown.
    pub fs_type: posix::FsType,
    /// What tells the file system from others of its type, hexadecimal (`f_fsid` of statfs(2)); `None` where unknown.
    pub fs_id: Option<String>,
    /// Size of the file system, bytes.
    pub total_bytes: u64,
    /// Free of that, bytes.
    pub free_bytes: u64,
    /// Unit of allocation, bytes.
    pub block_bytes: u32,
    /// Inodes in all; 0 where they are made on demand.
    pub total_inodes: u64,
    /// Which inodes belong to which allocation group, where that is known.
    pub inode_groups: Option<InodeGroups>,
    /// Why inode generations are not known; `None` where they are.
    pub no_generations: Option<String>,
    /// Number of names.
    pub entries: u64,
    /// Names and directories that could not be read.
    pub unreadable: u64,
    /// The first of them, with the reason.
    pub first_unreadable: Vec<String>,
    /// Names that lead to other file systems or mounts, and were left out.
    pub other_file_systems: u64,
    /// What who takes it should know of how it was taken. Not kept in the file, where block lists have their own.
    #[serde(skip)]
    pub remarks: Vec<String>,
    /// What the block lists are; `None` where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<BlocksMeta>,
}

/// Which inodes belong to which allocation group: group `(ino - first_ino) / inodes_per_group`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InodeGroups {
    /// The first inode's number: 1 on ext4, 0 on XFS and FFS.
    pub first_ino: u64,
    /// Inode numbers a group has.
    pub inodes_per_group: u64,
    /// How many groups.
    pub count: u64,
}

impl InodeGroups {
    /// The group of an inode; one beyond the last (the file system has grown since) is in the last.
    pub fn of(&self, ino: u64) -> u64 {
        let group = ino.saturating_sub(self.first_ino) / self.inodes_per_group.max(1);
        group.min(self.count.saturating_sub(1))
    }

    /// The groups in the form the layout figures have them; `None` where inodes belong to none.
    pub fn from_layout(groups: &layout::geometry::Groups) -> Option<InodeGroups> {
        use layout::geometry::InodeRule;
        let (first_ino, inodes_per_group) = match groups.inodes {
            InodeRule::PerGroup(n) => (1, n),
            InodeRule::FromZero(n) => (0, n),
            InodeRule::HighBits(bits) => (0, 1u64.checked_shl(bits)?),
            InodeRule::Unknown => return None,
        };
        Some(InodeGroups { first_ino, inodes_per_group, count: groups.count() })
    }
}

/// What is known of one inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// What it is.
    pub kind: FileKind,
    /// Length in bytes (of a symbolic link: of its target).
    pub size_bytes: u64,
    /// Space in use, bytes.
    pub allocated_bytes: u64,
    /// Its number.
    pub ino: u64,
    /// Its generation, which changes when the number is used again; `None` where the file system does not tell (never
    /// of symbolic links and special files, which cannot be asked).
    pub generation: Option<u32>,
    /// Last change of the inode, nanoseconds.
    pub ctime_ns: i64,
    /// Last change of the contents, nanoseconds.
    pub mtime_ns: i64,
    /// Number of names.
    pub nlink: u32,
}

/// One name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Index of the directory it is in; the root's own is 0.
    pub parent: u32,
    /// Its inode.
    pub inode: Inode,
    name_at: usize,
    name_len: u32,
}

/// Every name of a tree, sorted so that a directory comes before what is in it. The first is the root.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// What it says of itself.
    pub meta: SnapshotMeta,
    entries: Vec<Entry>,
    names: Vec<u8>,
    lists: Option<Listed>,
}

/// Block lists, and where each name stood in the listing of its directory.
#[derive(Clone, Debug, Default)]
struct Listed {
    lists: Lists,
    /// One of each name.
    places: Vec<Place>,
}

impl PartialEq for Listed {
    fn eq(&self, other: &Listed) -> bool {
        let same = |(a, b): (&Place, &Place)| {
            a.position == b.position
                && match (self.lists.get(a.at), other.lists.get(b.at)) {
                    (Blocks::NotKept, Blocks::NotKept) => true,
                    (Blocks::Known(a), Blocks::Known(b)) => a.eq(b),
                    (Blocks::Unknown(a), Blocks::Unknown(b)) => a == b,
                    _ => false,
                }
        };
        self.places.len() == other.places.len() && self.places.iter().zip(&other.places).all(same)
    }
}

impl Snapshot {
    /// The names, root first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The last component of an entry's path; empty for the root.
    pub fn name(&self, entry: &Entry) -> &[u8] {
        self.names.get(entry.name_at..).and_then(|rest| rest.get(..entry.name_len as usize)).unwrap_or_default()
    }

    /// Where the data behind a name lay; `None` where the snapshot has no block lists, or was read without.
    pub fn blocks(&self, index: usize) -> Option<Blocks<'_>> {
        let listed = self.lists.as_ref()?;
        listed.places.get(index).map(|place| listed.lists.get(place.at))
    }

    /// Where a name stood in the listing of its directory, from 0; `None` as of [`blocks`](Self::blocks).
    pub fn position(&self, index: usize) -> Option<u32> {
        self.lists.as_ref()?.places.get(index).map(|place| place.position)
    }

    /// An entry's path from the root (`/`, `/a`, `/a/b`).
    pub fn path(&self, index: usize) -> Vec<u8> {
        let mut components = Vec::new();
        let mut at = index;
        while let Some(entry) = self.entries.get(at).filter(|_| at > 0) {
            components.push(self.name(entry));
            at = entry.parent as usize;
        }
        if components.is_empty() {
            return b"/".to_vec();
        }
        let mut path = Vec::new();
        for component in components.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(component);
        }
        path
    }
}

/// Puts a snapshot together from names in order.
#[derive(Default)]
pub struct Builder {
    entries: Vec<Entry>,
    names: Vec<u8>,
    /// Path of the last name; every directory on the stack is a part of it.
    last: Vec<u8>,
    /// Directories down to the last name: index, length of the path.
    stack: Vec<(u32, usize)>,
    lists: Option<Listed>,
}

impl Builder {
    /// One for names with block lists: each is added by [`push_with`](Self::push_with).
    pub fn with_blocks() -> Builder {
        Builder { lists: Some(Listed::default()), ..Builder::default() }
    }

    /// The same for lists that are there, added by [`push_at`](Self::push_at).
    fn with_lists(lists: Lists) -> Builder {
        Builder { lists: Some(Listed { lists, places: Vec::new() }), ..Builder::default() }
    }

    /// Adds a name, as [`push`](Self::push), with where it stood in the listing of its directory and what is known of
    /// its data: the extents, or why they are not known. `None` is for symbolic links and special files.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_with(
        &mut self,
        path: &[u8],
        inode: Inode,
        position: u32,
        blocks: Option<Result<&[Extent], &str>>,
    ) -> Result<(), String> {
        let lists = self.lists.as_mut().ok_or("has a list of blocks, where no name has one")?;
        let at = match blocks {
            None => ListAt::NotKept,
            Some(Ok(extents)) => lists.lists.add(extents.iter().copied())?,
            Some(Err(why)) => lists.lists.told(why)?,
        };
        self.push_at(path, inode, Place { position, at })
    }

    /// Whether names have block lists.
    fn has_blocks(&self) -> bool {
        self.lists.is_some()
    }

    /// The lists so far.
    fn lists(&mut self) -> Option<&mut Lists> {
        self.lists.as_mut().map(|listed| &mut listed.lists)
    }

    fn push_at(&mut self, path: &[u8], inode: Inode, place: Place) -> Result<(), String> {
        let kept = matches!(inode.kind, FileKind::File | FileKind::Directory);
        match (kept, place.at) {
            (true, ListAt::NotKept) => return Err("has neither a list of blocks nor a reason why not".into()),
            (false, ListAt::Known { .. } | ListAt::Unknown(_)) => {
                return Err("has a list of blocks, and is neither a file nor a directory".into());
            }
            _ => {}
        }
        self.push(path, inode)?;
        if let Some(lists) = &mut self.lists {
            lists.places.push(place);
        }
        Ok(())
    }

    /// Adds a name, by its path from the root. The root (`/`) comes first, then names in the order of
    /// [`path_order`].
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence that begins with the path.
    pub fn push(&mut self, path: &[u8], inode: Inode) -> Result<(), String> {
        if self.entries.is_empty() {
            if path != b"/" || inode.kind != FileKind::Directory {
                return Err("is not the root directory, which must come first".into());
            }
            self.stack.push((0, 0));
            self.entries.push(Entry { parent: 0, inode, name_at: 0, name_len: 0 });
            return Ok(());
        }
        if path_order(&self.last, path) != Ordering::Less {
            return Err("is there twice, or out of order".into());
        }
        let slash = memchr::memrchr(b'/', path).ok_or("is not an absolute path")?;
        let (directory, name) = (&path[..slash], &path[slash + 1..]);
        if name.is_empty() || name.len() > 255 || name == b"." || name == b".." || name.contains(&0) {
            return Err("does not end in a name".into());
        }
        while self.stack.last().is_some_and(|(_, len)| *len > directory.len()) {
            self.stack.pop();
        }
        let parent = self.stack.last().filter(|(_, len)| self.last.get(..*len) == Some(directory));
        let &(parent, _) = parent.ok_or("is in a directory that is not there")?;
        let index = u32::try_from(self.entries.len()).map_err(|_| "is one name too many (2^32)")?;
        let name_len = u32::try_from(name.len()).unwrap_or(0);
        self.entries.push(Entry { parent, inode, name_at: self.names.len(), name_len });
        self.names.extend_from_slice(name);
        self.last.clear();
        self.last.extend_from_slice(path);
        if inode.kind == FileKind::Directory {
            self.stack.push((index, path.len()));
        }
        Ok(())
    }

    /// Names so far.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The snapshot. `meta.version`, `meta.fsage` and `meta.entries` are filled in; with block lists, `meta.blocks`
    /// must be there.
    ///
    /// # Errors
    /// The index of a name and what contradicts it: another name of the same inode.
    pub fn finish(self, mut meta: SnapshotMeta) -> Result<Snapshot, (usize, String)> {
        let Builder { entries, names, lists, .. } = self;
        let whole = lists.as_ref().is_none_or(|lists| lists.places.len() == entries.len());
        if lists.is_some() != meta.blocks.is_some() || !whole {
            return Err((0, "block lists and what they are do not go together".into()));
        }
        if entries.is_empty() {
            return Err((0, "there is no root".into()));
        }
        let mut seen = rustc_hash::FxHashMap::with_capacity_and_hasher(entries.len(), rustc_hash::FxBuildHasher);
        for (i, entry) in entries.iter().enumerate() {
            let Some(first) = seen.insert(entry.inode.ino, i) else { continue };
            let before = entries.get(first).map(|e| e.inode);
            if before.is_some_and(|b| b != entry.inode) {
                return Err((i, format!("inode {} has other attributes under another name", entry.inode.ino)));
            }
            if entry.inode.kind == FileKind::Directory || entry.inode.nlink < 2 {
                return Err((i, format!("inode {} has another name, but a link count of 1", entry.inode.ino)));
            }
            let at = |i: usize| lists.as_ref().and_then(|l| l.places.get(i)).map(|place| place.at);
            if let (Some(lists), Some(a), Some(b)) = (&lists, at(first), at(i))
                && !lists.lists.same(a, b)
            {
                return Err((i, format!("inode {} has other blocks under another name", entry.inode.ino)));
            }
        }
        meta.version = if lists.is_some() { FORMAT_VERSION } else { WITHOUT_BLOCKS };
        meta.fsage = env!("CARGO_PKG_VERSION").to_owned();
        meta.entries = entries.len() as u64;
        Ok(Snapshot { meta, entries, names, lists })
    }
}
