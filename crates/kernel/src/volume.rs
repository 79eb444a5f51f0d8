//! What a file system is to this kernel: the inode-level interface.
//!
//! A volume keeps the whole of its structures in memory, in whatever form suits it, and acts on them at once. What the
//! operation would have cost is said to the [`Cx`]: which blocks it had to have in memory, which it changed, which it
//! wrote and whether it waited. Names, descriptors, permissions of the caller, `.` and `..` at mount points, symbolic
//! links: all that is the kernel's. A volume can rely on its arguments: the directory is one, the name is neither `.`
//! nor `..` nor empty nor longer than [`name_max_bytes`](Volume::name_max_bytes), a name to be made is not there, a
//! name to be removed is.

use crate::program::IoId;
use crate::{BlockId, Cx, Ino, Lbn, Pbn};
use posix::{Errno, Extent, FileKind, FreeExtent, FsUsage};

/// Bytes of blocks that are not what processes wrote.
pub trait Encode {
    /// Fills in the bytes of a metadata block as they would be on the disk now. `out` is as long as the block and
    /// zeroed.
    ///
    /// Asked for at the moment the block's write is put into a program, and only if somebody wants the bytes (an image,
    /// a crash test). What may not yet be on the disk (Soft Updates) is left out here.
    fn encode(&self, id: BlockId, pbn: Pbn, out: &mut [u8]);

    /// A block in memory sets out for the disk with a request that is not in the program yet;
    /// [`encode`](Encode::encode) is asked for its bytes next, if anybody wants them. Asked of every block, whoever
    /// writes it. What has to be on the disk before is written, or waited for, here.
    #[inline]
    fn sets_out(&mut self, _cx: &mut Cx, _id: BlockId, _io: IoId) {}

    /// Whether what was left dirty goes to the disk together with its dirty neighbours, where the kernel writes
    /// neighbours in one request at all. If not, only a cluster that has gathered in sequence does
    /// ([`cluster::write`](crate::cluster::write)), and the rest goes block by block, as `fsync`, `sync` and short
    /// memory write it in 4.4BSD (`bawrite` of each buffer in `ffs_fsync` and `getnewbuf`). FreeBSD gathers then too
    /// (`vfs_bio_awrite`).
    #[inline]
    fn gathers_late(&self) -> bool {
        true
    }
}

/// A file system.
pub trait Volume: Encode + Clone + 'static {
    /// The root directory.
    fn root(&self) -> Ino;

    /// Size of a full block of a file.
    fn block_bytes(&self) -> u32;

    /// The longest name.
    fn name_max_bytes(&self) -> usize {
        255
    }

    /// The longest file.
    fn file_max_bytes(&self) -> u64;

    /// The type's name (`ffs`), as an environment shows it.
    fn type_name(&self) -> &str;

    /// The options in force, in the grammar of targets.
    fn options(&self) -> String;

    /// Reads what has to be in memory before anything else, and marks the file system as in use.
    fn mount(&mut self, cx: &mut Cx) -> Result<(), Errno>;

    /// Writes back everything, waits for it, and marks the file system as clean.
    fn unmount(&mut self, cx: &mut Cx) -> Result<(), Errno>;

    /// Attributes. Costs nothing: [`load`](Volume::load) has been called.
    fn attributes(&self, ino: Ino) -> Result<Attributes, Errno>;

    /// Brings an inode into memory: it is not in the attribute cache. Reads the block it is in.
    fn load(&mut self, cx: &mut Cx, ino: Ino) -> Result<(), Errno>;

    /// An inode leaves the attribute cache: changes that are not in any block yet go into their (delayed) block now.
    fn unload(&mut self, _cx: &mut Cx, _ino: Ino) {}

    /// Changes attributes, and the change time.
    fn set_attributes(&mut self, cx: &mut Cx, ino: Ino, set: &SetAttributes) -> Result<(), Errno>;

    /// A file was read: its access time.
    fn accessed(&mut self, _cx: &mut Cx, _ino: Ino) {}

    /// Looks a name up; `None` if it is not there. Reads as much of the directory as it takes.
    fn lookup(&mut self, cx: &mut Cx, dir: Ino, name: &[u8]) -> Result<Option<Ino>, Errno>;

    /// The directory a directory is in; the root's is the root.
    fn parent(&mut self, cx: &mut Cx, dir: Ino) -> Result<Ino, Errno>;

    /// Makes an inode and enters it in a directory.
    fn create(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], new: &NewNode<'_>) -> Result<Ino, Errno>;

    /// Makes a file that is in no directory (`O_TMPFILE`); its link count is 0. `EOPNOTSUPP` by default.
    fn create_unnamed(&mut self, _cx: &mut Cx, _dir: Ino, _new: &NewNode<'_>) -> Result<Ino, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Enters another name of a file.
    fn link(&mut self, cx: &mut Cx, ino: Ino, dir: Ino, name: &[u8]) -> Result<(), Errno>;

    /// Removes a name; the inode stays, even without links, until [`release`](Volume::release).
    fn unlink(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Errno>;

    /// Removes an empty directory's name; the inode stays until [`release`](Volume::release). `ENOTEMPTY` if it is not
    /// empty.
    fn rmdir(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Errno>;

    /// Moves a name. The kernel has made sure that a directory does not go below itself and that what is replaced is of
    /// the right kind; `ENOTEMPTY` if it is a directory that is not empty. What is replaced loses the link; its inode
    /// stays until [`release`](Volume::release).
    fn rename(&mut self, cx: &mut Cx, rename: &Rename<'_>) -> Result<(), Errno>;

    /// Exchanges two names (`RENAME_EXCHANGE`); `EINVAL` by default, as where a kernel has no such flag.
    fn exchange(&mut self, _cx: &mut Cx, _one: (Ino, &[u8], Ino), _other: (Ino, &[u8], Ino)) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    /// Frees an inode that has no links and that nobody has open, with all its blocks.
    fn release(&mut self, cx: &mut Cx, ino: Ino);

    /// Where a symbolic link leads.
    fn readlink(&mut self, cx: &mut Cx, ino: Ino) -> Result<Vec<u8>, Errno>;

    /// Entries from a place in a directory on, until `sink` says `false` (that entry is not taken) or they end. `.` and
    /// `..` are entries like others. Cookie 0 is the start; the cookie of an entry is the place behind it.
    fn readdir(
        &mut self,
        cx: &mut Cx,
        dir: Ino,
        cookie: u64,
        sink: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<(), Errno>;

    /// Where a block of a file lies, and how many blocks after it lie directly behind one another, at most `ahead`.
    /// Reads indirect blocks. `None` is a hole.
    fn map(&mut self, cx: &mut Cx, ino: Ino, lbn: Lbn, ahead: u32) -> Result<Option<Mapped>, Errno>;

    /// Writes a range: allocates, and marks blocks or writes them (see [`crate::cluster`]). Returns how much was
    /// written: less than asked for only if the disk is full after some of it; `ENOSPC` if after nothing. The new
    /// length and the times are set. `sync` as for `O_SYNC` and `O_DSYNC`: nothing is left to write when it is done.
    fn write(&mut self, cx: &mut Cx, range: &WriteRange<'_>) -> Result<u64, Errno>;

    /// Sets the length: frees what is behind it, or extends by a hole.
    fn truncate(&mut self, cx: &mut Cx, ino: Ino, size_bytes: u64) -> Result<(), Errno>;

    /// Allocates a range; `EOPNOTSUPP` by default.
    fn allocate(&mut self, _cx: &mut Cx, _ino: Ino, _offset: u64, _len: u64, _keep: bool) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Frees a range inside a file; `EOPNOTSUPP` by default.
    fn punch_hole(&mut self, _cx: &mut Cx, _ino: Ino, _offset: u64, _len: u64) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Tries to move delayed blocks of a file, `blocks` from `first` on, into one contiguous run, and says whether they
    /// lie in one now (`VOP_REALLOCBLKS` of 4.4BSD). `false` by default.
    fn reallocate(&mut self, _cx: &mut Cx, _ino: Ino, _first: Lbn, _blocks: u32) -> bool {
        false
    }

    /// Takes a snapshot of the file system into a new file, which shows all of it as it is now; removing the file
    /// removes it. `EOPNOTSUPP` by default.
    fn snapshot(&mut self, _cx: &mut Cx, _dir: Ino, _name: &[u8]) -> Result<Ino, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Takes a snapshot for a check beside the work. It has no name when this returns, so that a crash leaves none:
    /// whoever reads it [releases](Volume::release) it in the end. `EOPNOTSUPP` by default.
    fn snapshot_to_check(&mut self, _cx: &mut Cx) -> Result<Ino, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Gives back something that a crash has left, which a check of a [snapshot](Volume::snapshot) has found while the
    /// file system was in use. Nobody can have reached it since; where the file system finds that it is not there any
    /// more, nothing happens. Returns the inodes that have no links now: whoever has none of them open calls
    /// [`release`](Volume::release). `EOPNOTSUPP` by default.
    fn give_back(&mut self, _cx: &mut Cx, _correction: &Correction) -> Result<Vec<Ino>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// The check of a snapshot is over: the file system says in its superblock what came of it. `EOPNOTSUPP` by
    /// default.
    fn checked(&mut self, _cx: &mut Cx, _end: CheckEnd) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Writes a file's dirty blocks and its inode.
    fn fsync(&mut self, cx: &mut Cx, ino: Ino, how: Durability) -> Result<(), Errno>;

    /// Writes everything dirty, and what describes the whole (superblock, summaries).
    fn sync(&mut self, cx: &mut Cx, how: Durability) -> Result<(), Errno>;

    /// Starts writing some dirty blocks that the kernel wants clean: memory is short, or they are old. By default where
    /// they lie; a log-structured file system writes a segment.
    fn write_back(&mut self, cx: &mut Cx, blocks: &[BlockId])
    where
        Self: Sized,
    {
        cx.write_in_place(self, blocks);
    }

    /// A write of blocks is complete. Told before anything else takes effect, and only if [asked
    /// for](Cx::tell_of_writes). Adds nothing to the program: what is to be read or written for it waits for
    /// [`work`](Volume::work), or for whoever writes next.
    fn arrived(&mut self, _cx: &mut Cx, _io: IoId) {}

    /// Whether there is work for a daemon of the file system's own (a cleaner) now. Asked after each call, and after
    /// each piece of work; must be quick.
    fn wants_work(&self, _cx: &Cx) -> bool {
        false
    }

    /// How long nobody may have called before the daemon does what can wait for idle time; `None` if nothing does.
    fn idle_work_after_ns(&self, _cx: &Cx) -> Option<u64> {
        None
    }

    /// Does a piece of that work, in the name of the daemon: its program competes with those of processes. Says whether
    /// there was anything to do; if so, it is asked again when the program is done.
    fn work(&mut self, _cx: &mut Cx, _idle: bool) -> bool {
        false
    }

    /// Where a file's data lie, in order of the file.
    fn extents(&self, ino: Ino) -> Result<Vec<Extent>, Errno>;

    /// The free space, in order of address.
    fn free_extents(&self) -> Vec<FreeExtent>;

    /// Space and inodes.
    fn usage(&self) -> FsUsage;

    /// The unit of layout, and allocation groups where there are any.
    fn shape(&self) -> posix::Shape {
        posix::Shape { block_bytes: self.block_bytes(), groups: None }
    }
}

/// How a check beside the work has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckEnd {
    /// All that it found has been given back: once that is on the disk, the file system is no longer one that has
    /// crashed.
    AllGivenBack,
    /// It found more: the file system is not to be mounted again without a full check.
    FullCheckNeeded,
}

/// What a crash has left of something, for [`Volume::give_back`]: what BSD's check tells the kernel
/// (`vfs.ffs.adjrefcnt`, `freefiles`, `freeblks`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Correction {
    /// A directory that no name leads to from the root: the names in it go, those of directories below it first.
    Names {
        /// The directory.
        dir: Ino,
    },
    /// Links that are no names: so many are not to be counted any more. An inode that has none then is let go, unless
    /// somebody has it open.
    Links {
        /// The inode.
        ino: Ino,
        /// How many.
        links: u32,
    },
    /// A number marked as used that no inode has.
    Number {
        /// Which.
        ino: Ino,
    },
    /// Space marked as used that nothing has, inside one allocation group.
    Space {
        /// Where it begins.
        at_byte: u64,
        /// Its length.
        len_bytes: u64,
    },
}

/// What `stat` shows of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// What it is.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Links.
    pub nlink: u32,
    /// Which of the inodes that had this number.
    pub generation: u32,
    /// Length.
    pub size_bytes: u64,
    /// Space, with indirect blocks.
    pub allocated_bytes: u64,
    /// Access time, nanoseconds since 1970.
    pub atime_ns: i64,
    /// Modification time.
    pub mtime_ns: i64,
    /// Change time.
    pub ctime_ns: i64,
}

/// Attributes to change; `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SetAttributes {
    pub mode: Option<u16>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub atime_ns: Option<i64>,
    pub mtime_ns: Option<i64>,
}

/// An inode to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewNode<'a> {
    /// What it is.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u16,
    /// Where it leads, of a symbolic link; empty otherwise.
    pub target: &'a [u8],
}

/// A name to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Rename<'a> {
    pub from_dir: Ino,
    pub from_name: &'a [u8],
    /// What has the name.
    pub ino: Ino,
    pub to_dir: Ino,
    pub to_name: &'a [u8],
    /// What has the new name until now.
    pub replaced: Option<Ino>,
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The name.
    pub name: &'a [u8],
    /// What it names.
    pub ino: Ino,
    /// What that is.
    pub kind: FileKind,
    /// The place behind this entry.
    pub cookie: u64,
}

/// Where a block of a file lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// The place.
    pub pbn: Pbn,
    /// Its length: a full block, or the fragments at a file's end.
    pub bytes: u32,
    /// Blocks that lie directly behind it.
    pub ahead: u32,
}

/// A range to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRange<'a> {
    /// The file.
    pub ino: Ino,
    /// Where in it.
    pub offset: u64,
    /// How much; not 0, and it ends within [`Volume::file_max_bytes`].
    pub len_bytes: u64,
    /// The bytes, if a process gave them.
    pub data: Option<&'a [u8]>,
    /// How much of it has to be on the disk at the end.
    pub sync: Option<Durability>,
}

/// How far something has to be on its way to the disk before an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Writes are started, nobody waits.
    Started,
    /// Data, and what is needed to find them, are on the disk (`fdatasync`, `O_DSYNC`).
    Data,
    /// Everything is on the disk (`fsync`, `O_SYNC`).
    All,
}
