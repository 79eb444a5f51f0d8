//! The system vector: which elementary operations are priced, by what name, over which sizes.
//!
//! A [`Class`] is either a single cost or a **curve** over a size; a point of a curve is the entry `name_size`
//! (`rdc_4096`). Between points a price is interpolated linearly in the size, beyond the last point by the last
//! segment's slope, so that a request vector stays a linear combination of entries and `--set NAME=TIME` means what it
//! says.
//!
//! Every entry is the mean latency in nanoseconds of one call (or of one extra lookup), timer overhead subtracted, on
//! files spread over many directories, measured in interleaved rounds. Names follow the thesis' text profile where it
//! has one.
//!
//! How a call on a path adds up. The call's own entry includes the walk of one cached component. So a call on `n`
//! components costs
//!
//! ```text
//! call + (n - 1) lu_bc + (one of lus_nc, lur_nc, lus_ac, lur_ac for each component that misses)
//! ```
//!
//! where the entries of misses are what the lookup takes *longer than a hit*. A call that fails on a missing component
//! costs `lun_*` in place of the call's own entry: those are whole calls.

/// What a lookup touches of a name and its inode, as the clock counts it.
pub const OBJECT_BYTES: u64 = 1 << 10;

macro_rules! classes {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal $(, curve $points:expr)?;)*) => {
        /// An elementary operation of the system vector.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Class { $($(#[doc = $doc])* $name),* }

        impl Class {
            /// Every class, in the order of the profile file.
            pub const ALL: &'static [Class] = &[$(Class::$name),*];

            /// Its name in profiles, without a size.
            pub const fn name(self) -> &'static str {
                match self { $(Class::$name => $text),* }
            }

            /// What it means, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Class::$name => concat!($($doc),*)),* }
            }

            /// The sizes measured by default (bytes, or entries for the directory classes); empty for a single cost.
            pub const fn points(self) -> &'static [u64] {
                match self { $(Class::$name => classes!(@points $($points)?)),* }
            }

            /// Whether it is a curve over a size.
            pub const fn is_curve(self) -> bool {
                !self.points().is_empty()
            }

            /// The class of a name without a size.
            pub fn from_name(name: &str) -> Option<Class> {
                match name { $($text => Some(Class::$name),)* _ => None }
            }
        }
    };
    (@points) => { &[] };
    (@points $points:expr) => { $points };
}

const K: u64 = 1024;
const REQUEST: &[u64] = &[1, 512, 4 * K, 16 * K, 64 * K, 256 * K, 1024 * K];
const FILE: &[u64] = &[0, 1, 4 * K, 16 * K, 64 * K, 256 * K, 1024 * K, 4096 * K];
/// Sizes of files that are removed one after the other; what larger ones cost, their blocks decide.
const NEXT_FILE: &[u64] = &[0, 1, 4 * K, 16 * K, 64 * K];
const DIRTY: &[u64] = &[4 * K, 16 * K, 64 * K, 256 * K, 1024 * K, 4096 * K];
const FAR: &[u64] = &[1024 * K, 4096 * K, 16384 * K];
/// One block is neither scattered nor side by side.
const BESIDE: &[u64] = &[16 * K, 64 * K, 256 * K, 1024 * K, 4096 * K];
const ENTRIES: &[u64] = &[0, 10, 40, 100, 1000, 10000];

classes! {
    // ---- name lookups, per component beyond the first -------------------------------------------------
    /// Lookup of one more path component, name and attributes cached (from stat of one and of nine components).
    LookupHit = "lu_bc";
    /// What a lookup takes longer than a hit when neither name nor attributes are cached, the lookup before was in the
    /// same directory (thesis: lus_nc).
    LookupSeqMiss = "lus_nc";
    /// The same, the first lookup in its directory (thesis: lur_nc).
    LookupRandMiss = "lur_nc";
    /// The same in a directory of so few names: it may lie in its inode (XFS) or beside it (btrfs).
    LookupFewMiss = "lur_few", curve &[8, 16];
    /// What a lookup in a directory whose blocks are cached takes longer than a hit, per how many files were made
    /// between this one and the nearest whose inode is cached: inodes that were made one after the other lie in one
    /// block, and come with it.
    LookupNearMiss = "lus_nn", curve &[1, 8, 64, 256, 1024];
    /// What a lookup takes longer than a hit when the attributes are cached (through another name) and this name is
    /// not, the lookup before was in the same directory (thesis: lus_ac).
    LookupSeqAttrHit = "lus_ac";
    /// The same, the first lookup in its directory, whose blocks are not cached (thesis: lur_ac).
    LookupRandAttrHit = "lur_ac";
    /// What a lookup of a cached name takes longer, per bytes touched since the name and its inode were last touched (1
    /// KB for each other name), where names are met in another order than they came in: they are no longer in the
    /// processor's caches.
    LookupFar = "lu_far", curve FAR;
    /// The same where names are met in the order in which they came in.
    LookupFarInOrder = "lu_far_seq", curve FAR;
    /// stat of a missing name, its absence cached (a negative entry): the whole call.
    NegativeHit = "lun_bc";
    /// stat of a missing name, its absence not cached, the blocks of the directory, of few names, in memory: the whole
    /// call.
    NegativeMiss = "lun_ac";
    /// What that takes longer for every 100 names in the directory, where it is searched from end to end.
    NegativeEach = "lun_each";
    /// stat of a missing name in a directory whose blocks are not cached: the whole call.
    NegativeCold = "lun_nc";
    /// open of a missing name, its absence cached: the whole call.
    OpenMissing = "open_none";

    // ---- calls on a warm one-component path -----------------------------------------------------------
    /// open of an existing file.
    Open = "open";
    /// open of an existing directory.
    OpenDir = "opendir";
    /// open with O_CREAT of a new file.
    Create = "cr";
    /// The same in the directory in which a name was made just before.
    CreateNext = "cr_next";
    /// close of a file that was only read.
    Close = "close";
    /// close of a file that was written.
    CloseWritten = "close_wr";
    /// close of a file that O_TRUNC emptied and that was then written, per dirty bytes: many systems write it back at
    /// once, lest a crash leave it empty (ext4's auto_da_alloc, XFS, btrfs).
    CloseTruncated = "close_tr", curve &[4 * K, 64 * K, 1024 * K];
    /// The same where O_TRUNC found the file empty already, as after mkstemp.
    CloseTruncatedEmpty = "close_tre", curve &[4 * K, 64 * K, 1024 * K];
    /// stat.
    Stat = "stat";
    /// fstat.
    Fstat = "fstat";
    /// access.
    Access = "access";
    /// statfs.
    StatFs = "statfs";
    /// readlink.
    ReadLink = "readlink";
    /// readlink of something that is no symbolic link: what path canonicalisation asks of every directory.
    ReadLinkNone = "readlink_none";
    /// lseek.
    Seek = "lseek";
    /// mkdir.
    Mkdir = "mkdir";
    /// rmdir of an empty directory.
    Rmdir = "rmdir";
    /// rename to a new name in the same directory.
    Rename = "rename";
    /// rename over an existing file of 4 KB, of a file that is written back.
    RenameOver = "rename_over";
    /// The same of a file that was just written, per dirty bytes: some systems begin to write it back then, lest a
    /// crash leave neither (ext4's auto_da_alloc).
    RenameOverDirty = "rename_wr", curve &[4 * K, 64 * K, 1024 * K];
    /// link.
    Link = "link";
    /// symlink (short target).
    Symlink = "symlink";
    /// The same in the directory in which a name was made just before.
    SymlinkNext = "symlink_next";
    /// chmod.
    Chmod = "chmod";
    /// fchmod.
    Fchmod = "fchmod";
    /// chown.
    Chown = "chown";
    /// fchown.
    Fchown = "fchown";
    /// utimensat by path.
    Utimens = "utimens";
    /// futimens.
    Futimens = "futimens";
    /// setxattr of a new 32-byte user attribute.
    SetXattr = "setxattr";
    /// getxattr of an attribute that is there.
    GetXattr = "getxattr";
    /// getxattr of an attribute that is not there.
    GetXattrMissing = "getxattr_none";
    /// listxattr.
    ListXattr = "listxattr";
    /// removexattr.
    RemoveXattr = "removexattr";
    /// mmap and munmap of a file's first 64 KB, both together, without touching a page.
    Mmap = "mmap";
    /// fcntl (lock and unlock of a byte range, mean of the two).
    Fcntl = "fcntl";
    /// posix_fadvise.
    Fadvise = "fadvise";
    /// Reading a whole directory by getdents, names cached, per number of entries: the sum of the calls with a 32 KB
    /// buffer up to the empty answer, open and close apart.
    ReadDir = "readdir", curve ENTRIES;
    /// The same on a cold system, with what opening the directory takes longer than when it is cached.
    ReadDirCold = "readdiru", curve ENTRIES;

    // ---- data -----------------------------------------------------------------------------------------
    /// read at end of file: the call's own overhead.
    ReadOverhead = "rdo";
    /// write of no bytes: the call's own overhead.
    WriteOverhead = "wro";
    /// read of cached data, per request size.
    ReadCached = "rdc", curve REQUEST;
    /// What a cached read of one byte takes longer, per bytes touched since its page was last touched.
    ReadFarByte = "rdb_far", curve FAR;
    /// What a cached read of 16 KB takes longer, per bytes touched since its pages were last touched.
    ReadFar = "rdc_far", curve FAR;
    /// Uncached sequential read in a large file, per request size: read-ahead included, the run's first read apart.
    ReadSeq = "rd", curve &[4 * K, 16 * K, 64 * K, 256 * K, 1024 * K];
    /// Uncached read at a random place of a large file, per request size.
    ReadRand = "rrd", curve &[4 * K, 16 * K, 64 * K, 256 * K, 1024 * K];
    /// First uncached read of a whole small file (open already paid), per file size. The smallest may lie beside their
    /// inodes (btrfs), and come with them.
    ReadFirst = "rdf", curve &[K, 2 * K, 3 * K, 4 * K, 16 * K, 64 * K, 256 * K, 1024 * K];
    /// The same just after that of the file that was made before it.
    ReadFirstNext = "rdf_next", curve &[K, 2 * K, 3 * K, 4 * K, 16 * K, 64 * K, 256 * K, 1024 * K];
    /// Uncached O_DIRECT read at a random aligned place.
    ReadDirect = "rdd", curve &[4 * K, 16 * K, 64 * K, 256 * K, 1024 * K];
    /// write of new blocks at the end of a file, from a block's start, per request size.
    WriteAppend = "wra", curve REQUEST;
    /// write that lengthens a file inside its last block, which is cached and was not written back, per request size.
    WriteExtend = "wrx", curve &[1, 512, 2 * K];
    /// The same where that block has its place on the device, as the file was synced or written back before.
    WriteExtendAllocated = "wrx_old", curve &[1, 512, 2 * K];
    /// write over cached data, per request size.
    WriteCached = "wrc", curve REQUEST;
    /// write over whole uncached allocated blocks, per request size.
    WriteUncached = "wru", curve &[4 * K, 16 * K, 64 * K, 256 * K, 1024 * K];
    /// write of part (512 bytes) of an uncached block, which must be read first.
    WritePartial = "wrp";
    /// O_DIRECT write over allocated blocks at a random aligned place.
    WriteDirect = "wrd", curve &[4 * K, 16 * K, 64 * K, 256 * K, 1024 * K];
    /// fallocate of new space, per size.
    Fallocate = "falloc", curve &[4 * K, 64 * K, 1024 * K];
    /// copy_file_range of cached data that was written back into new space, whole blocks, per size. Beyond the last
    /// point a system that shares blocks takes no longer.
    CopyRange = "copy", curve &[4 * K, 64 * K, 1024 * K];
    /// copy_file_range of the whole of a new file whose data is still dirty, per size: where blocks are shared they are
    /// written first. Those of the smallest may lie beside their inodes (btrfs), and are not.
    CopyDirty = "copy_new", curve &[K, 2 * K, 4 * K, 64 * K, 1024 * K];

    // ---- truncate and remove --------------------------------------------------------------------------
    /// truncate to zero by path, data and block maps not cached, per file size; its name has just been looked up
    /// (thesis: trc).
    TruncateUncached = "tr", curve FILE;
    /// truncate to zero by path, data and metadata cached and written back, per file size (thesis: tr).
    TruncateCached = "trc", curve FILE;
    /// ftruncate of a new file, still dirty, to the length it has, per dirty bytes: some systems write them first, lest
    /// the new length come to be on the device before them (XFS).
    TruncateDirty = "trd", curve &[4 * K, 64 * K, 1024 * K];
    /// unlink of a file in the cache and written back, per file size (0 is the thesis' rm).
    Remove = "rm", curve FILE;
    /// unlink of a file just written and still dirty, per file size.
    RemoveDirty = "rmd", curve FILE;
    /// unlink of a file whose data and block maps are not cached, per file size; its name has just been looked up.
    RemoveUncached = "rmu", curve FILE;
    /// unlink of a file in the cache and written back, in the directory in which another was removed just before, per
    /// file size.
    RemoveNext = "rm_next", curve NEXT_FILE;
    /// unlink of a file just written and still dirty, in the directory in which another was removed just before, per
    /// file size.
    RemoveDirtyNext = "rmd_next", curve NEXT_FILE;
    /// unlink of a file whose data and block maps are not cached, in the directory in which another was removed just
    /// before, per file size; its name has just been looked up.
    RemoveUncachedNext = "rmu_next", curve NEXT_FILE;

    // ---- stable storage -------------------------------------------------------------------------------
    /// fsync of a clean file.
    FsyncClean = "fsync_clean";
    /// fsync after appending to an existing file, per dirty bytes.
    FsyncAppend = "fsync_app", curve DIRTY;
    /// fsync after overwriting allocated blocks scattered over the file, per dirty bytes.
    FsyncOverwrite = "fsync_ovr", curve DIRTY;
    /// fsync of a new file, per dirty bytes.
    FsyncCreate = "fsync_cr", curve DIRTY;
    /// fsync after overwriting allocated blocks that lie side by side, per dirty bytes.
    FsyncContiguous = "fsync_seq", curve BESIDE;
    /// fsync of a new file just after that of another that was made beside it, both dirty, per dirty bytes.
    FsyncLate = "fsync_late", curve &[4 * K, 64 * K, 1024 * K];
    /// fdatasync after appending to an existing file, per dirty bytes.
    FdatasyncAppend = "fds_app", curve DIRTY;
    /// fdatasync after overwriting allocated blocks scattered over the file, per dirty bytes.
    FdatasyncOverwrite = "fds_ovr", curve DIRTY;
    /// fdatasync of a new file, per dirty bytes.
    FdatasyncCreate = "fds_cr", curve DIRTY;
    /// fdatasync after overwriting allocated blocks that lie side by side, per dirty bytes.
    FdatasyncContiguous = "fds_seq", curve BESIDE;
    /// fdatasync of a new file just after that of another that was made beside it, both dirty, per dirty bytes.
    FdatasyncLate = "fds_late", curve &[4 * K, 64 * K, 1024 * K];
    /// What an fsync (append of 4 KB) takes longer when so many empty files were made since the last, by their number.
    FsyncLog = "fsync_log", curve &[10, 100, 1000];
    /// What an fsync (append of 4 KB) takes longer when other files have this much new dirty data.
    FsyncOther = "fsync_oth", curve &[64 * K, 1024 * K, 4096 * K];
    /// What an fdatasync (one block overwritten) takes longer when the device has had nothing to do for so long before,
    /// in nanoseconds; the others are measured just after another one.
    SyncIdle = "sync_idle", curve &[100_000, 300_000, 1_000_000, 3_000_000, 10_000_000];
    /// What an fsync (append of 4 KB) takes longer when it is the first since everything was written back and the
    /// caches were emptied: what it needs of the file system's maps is read, and a log is begun.
    SyncFirst = "sync_first";
    /// fsync of a directory after a name in it was made or removed.
    FsyncDir = "fsync_dir";
    /// fdatasync of a directory after a name in it was made or removed.
    FdatasyncDir = "fds_dir";
    /// fsync of a directory in which nothing has changed since.
    FsyncDirClean = "fsync_dir_clean";
    /// sync_file_range that starts write-back of a new file and waits for nothing, per dirty bytes.
    SyncRangeStart = "sfr", curve DIRTY;
    /// syncfs with this much dirty data of new 64 KB files.
    SyncFs = "syncfs", curve &[0, 64 * K, 1024 * K, 4096 * K];
}

/// What a cost waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The processor and memory.
    Processor,
    /// Reads of the device.
    Read,
    /// Writes of the device, to their end.
    Sync,
}

impl Class {
    /// What calls of this class wait for as a rule.
    pub const fn part(self) -> Part {
        use Class::*;
        match self {
            LookupSeqMiss | LookupRandMiss | LookupFewMiss | LookupNearMiss | LookupRandAttrHit | NegativeCold
            | ReadDirCold | ReadSeq | ReadRand | ReadFirst | ReadDirect | WritePartial | TruncateUncached
            | RemoveUncached | RemoveUncachedNext | ReadFirstNext => Part::Read,
            WriteDirect | CopyDirty | FsyncClean | FsyncAppend | FsyncOverwrite | FsyncCreate | FsyncContiguous
            | FsyncLate | FdatasyncAppend | FdatasyncOverwrite | FdatasyncCreate | FdatasyncContiguous
            | FdatasyncLate | FsyncLog | FsyncOther | SyncIdle | SyncFirst | FsyncDir | FdatasyncDir
            | FsyncDirClean | SyncFs => Part::Sync,
            _ => Part::Processor,
        }
    }

    /// The same without a read of the device, where the vector has it.
    pub const fn cached(self) -> Option<Class> {
        use Class::*;
        match self {
            ReadSeq | ReadRand | ReadFirst | ReadFirstNext => Some(ReadCached),
            ReadDirCold => Some(ReadDir),
            NegativeCold => Some(NegativeHit),
            TruncateUncached => Some(TruncateCached),
            RemoveUncached => Some(Remove),
            RemoveUncachedNext => Some(RemoveNext),
            _ => None,
        }
    }
}

/// The entry name of a class at a size: `rdc_4096`, or just `open` for a single cost (`at` is then ignored).
pub fn entry_name(class: Class, at: u64) -> String {
    if class.is_curve() { format!("{}_{at}", class.name()) } else { class.name().to_owned() }
}

/// Splits an entry name into class and size, undoing [`entry_name`].
pub fn parse_entry_name(name: &str) -> Option<(Class, u64)> {
    if let Some(class) = Class::from_name(name) {
        return (!class.is_curve()).then_some((class, 0));
    }
    let (stem, size) = name.rsplit_once('_')?;
    let class = Class::from_name(stem)?;
    class.is_curve().then_some((class, size.parse().ok()?))
}
