//! Names of things: files, blocks in files, places on the disk.

/// An inode number. [`Ino::DEVICE`] stands for the disk itself, whose blocks are the metadata outside all files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Ino(pub u32);

impl std::fmt::Display for Ino {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}

impl Ino {
    /// The disk as a file: superblock, group descriptors, inode tables. No file has this number.
    pub const DEVICE: Ino = Ino(0);
}

/// A block of a file, counted in the file system's blocks. Negative numbers are the file's indirect blocks, in whatever
/// order the file system numbers them (as 4.4BSD does). Blocks of [`Ino::DEVICE`] are numbered by their address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lbn(pub i64);

impl Lbn {
    /// The block `blocks` further on.
    pub fn plus(self, blocks: u32) -> Lbn {
        Lbn(self.0 + i64::from(blocks))
    }
}

/// A place on the disk, counted in units of [`Pbn::BYTES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pbn(pub u64);

impl Pbn {
    /// The unit: 512 bytes, whatever the disk's sectors are (`DEV_BSIZE` of 4.4BSD).
    pub const BYTES: u64 = 512;

    /// The place `bytes` further on.
    pub fn after(self, bytes: u64) -> Pbn {
        Pbn(self.0 + bytes / Pbn::BYTES)
    }

    /// Distance from the start of the disk.
    pub fn bytes(self) -> u64 {
        self.0 * Pbn::BYTES
    }
}

/// What the cache knows a block by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId {
    /// The file.
    pub ino: Ino,
    /// The block in it.
    pub lbn: Lbn,
}

impl BlockId {
    /// A block of a file.
    pub fn file(ino: Ino, lbn: Lbn) -> BlockId {
        BlockId { ino, lbn }
    }

    /// A block of the disk outside all files.
    pub fn device(pbn: Pbn) -> BlockId {
        // An address in units of 512 bytes has at most 55 bits.
        BlockId { ino: Ino::DEVICE, lbn: Lbn(pbn.0 as i64) }
    }
}

/// Who knows the bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Contents {
    /// What processes wrote. Kept only if asked for, or if a process gave the bytes.
    Data,
    /// The file system's own structures: [`Encode::encode`](crate::Encode::encode) makes the bytes when they are
    /// written.
    Metadata,
}

/// A block and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its name.
    pub id: BlockId,
    /// Its place on the disk.
    pub pbn: Pbn,
    /// Its length: a whole block, or fewer fragments.
    pub bytes: u32,
    /// What is in it.
    pub contents: Contents,
}

impl Block {
    /// A block of what a file holds.
    pub fn data(ino: Ino, lbn: Lbn, pbn: Pbn, bytes: u32) -> Block {
        Block { id: BlockId { ino, lbn }, pbn, bytes, contents: Contents::Data }
    }

    /// A block of a directory, or an indirect block (`lbn` negative).
    pub fn metadata(ino: Ino, lbn: Lbn, pbn: Pbn, bytes: u32) -> Block {
        Block { id: BlockId { ino, lbn }, pbn, bytes, contents: Contents::Metadata }
    }

    /// A block outside all files.
    pub fn device(pbn: Pbn, bytes: u32) -> Block {
        Block { id: BlockId::device(pbn), pbn, bytes, contents: Contents::Metadata }
    }

    /// Where it ends on the disk.
    pub fn end(&self) -> Pbn {
        self.pbn.after(u64::from(self.bytes))
    }
}
