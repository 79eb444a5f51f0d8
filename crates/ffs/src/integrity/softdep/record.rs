//! Dependency records: what a change waits for, and what waits for it.
//!
//! A record is *held* while something that it waits for is not stable: the change is undone in what is written of its
//! block. It is *written* when its block has set out with it, and gone when that write is complete. Records are
//! numbered by age, and a record waits only for older ones and for writes, so that there are no circles.

use crate::format::FileType;
use kernel::BlockId;
use smallvec::SmallVec;
use ufs::live::{Freed, Piece};

slotmap::new_key_type! {
    /// A record's number: where it is. It is not used again; a later one need not be greater.
    pub(super) struct Number;
}

/// Who waits for something, and from which write on one counts: in the order in which they have begun to.
pub(super) type Waiters = SmallVec<[(u64, Number); 1]>;

/// Something that becomes stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    /// A block with a write that sets out from now on.
    Block(BlockId),
    /// An inode, not left out of its block, likewise.
    Inode(u32),
    /// A record.
    Record(Number),
}

/// How far a record has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Undone in what is written.
    Held,
    /// On its way with its block; every later write of the block has it too.
    Written,
}

/// What a change is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A new inode (`inodedep` with `bmsafemap`): all of it is left out.
    NewInode(u32),
    /// A pointer in an inode (`allocdirect`, also for the indirect ones).
    Direct { ino: u32, slot: usize, placed: Placed },
    /// A pointer in an indirect block (`allocindir`).
    Indirect { holder: BlockId, index: usize, placed: Placed },
    /// An entry of a directory.
    Entry(Entry),
    /// What an inode, and some indirect blocks, have given up (`freeblks`, `freefile`): it is free when these are
    /// stable.
    Free { ino: u32, freed: Vec<Freed>, number: Option<bool>, drops: Vec<(u32, i16)> },
}

/// A pointer that leads elsewhere now.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    /// What the disk has.
    pub(super) was: Piece,
    /// What memory has.
    pub(super) now: Piece,
    /// The length of the file on the disk, if it ended in what was there.
    pub(super) old_size: u64,
    /// What is given up when the pointer is stable (`freefrag`).
    pub(super) freed: Vec<Freed>,
}

/// A change of a directory.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) dir: u32,
    /// Byte of its chunk, which is written as a whole.
    pub(super) chunk: u64,
    pub(super) name: Box<[u8]>,
    pub(super) change: Change,
    /// Links that are dropped when it is stable (`dirrem`).
    pub(super) drops: Vec<(u32, i16)>,
}

/// Which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A new name (`diradd`).
    Add { to: u32 },
    /// A name that leads elsewhere (`diradd` with `DIRCHG`).
    Replace { from: u32, from_type: u8, to: u32 },
    /// A name that is gone (`dirrem`); of a rename it waits for the new name, otherwise for nothing.
    Remove { ino: u32, entry_type: u8 },
    /// `..` leads elsewhere.
    Parent { from: u32 },
}

impl Change {
    /// The directory of which it takes a name from the disk.
    pub(super) fn takes_directory(self) -> Option<u32> {
        match self {
            Change::Remove { ino, entry_type: kind } | Change::Replace { from: ino, from_type: kind, .. } => {
                (kind == FileType::Directory.entry_type()).then_some(ino)
            }
            Change::Add { .. } | Change::Parent { .. } => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Record {
    /// How many there have been, with this one.
    pub(super) age: u64,
    pub(super) kind: Kind,
    pub(super) state: State,
    /// What is not stable yet of what it waits for, each with the first write that counts.
    pub(super) waits: SmallVec<[(Key, u64); 2]>,
    /// Records that wait for this one.
    pub(super) awaited: Waiters,
}

impl Record {
    pub(super) fn new(age: u64, kind: Kind) -> Record {
        Record { age, kind, state: State::Held, waits: SmallVec::new(), awaited: Waiters::new() }
    }
}

/// Things that become stable; mostly one or two.
pub(super) type Keys = SmallVec<[Key; 2]>;
